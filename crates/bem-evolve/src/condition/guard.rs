//! The condition of GUARD: no forbidden action passes.
//!
//! Promised, for every observation and every action that anybody may propose: what comes out of the guard's circuit is no
//! action that a rule forbids for what is seen, and exists. So no turn can take one, whatever acts and whatever it
//! remembers. Not promised: that a rule is wise; it is entered on evidence, or because the user says so.
//! Clauses: SCC-3, SCC-5; decisions D-45, D-275.

use super::{Context, Finding, Rejection, budget, misfit, prove};
use bem_checker::Cnf;
use bem_circuit::netlist::{Builder, Signal};
use bem_machine::family::Family;
use bem_machine::guard::{Guard, Rule};
use bem_prover::encode::{Wire, encode_circuit, fresh_inputs};

/// Shows all of the condition.
pub fn check(context: &Context<'_>, family: &Family, rules: &[Rule]) -> Result<Vec<Finding>, Rejection> {
    let shape = family.shape();
    let guard = Guard::new(rules.to_vec(), shape.actions)
        .ok_or_else(|| misfit("rules that contradict each other or name actions that are none"))?;
    let seen = usize::from(shape.observation_bits);
    if !rules.iter().all(|rule| rule.seen.fits(seen)) {
        return Err(misfit(format!("a rule about bits past the {seen} that can be seen")));
    }
    let mut findings = vec![Finding::Compared { condition: "rules fit each other" }];
    if rules.is_empty() {
        return Ok(findings);
    }
    let width = family.layout().action().len();
    let mut builder = Builder::new(seen + width);
    let inputs: Vec<Signal> = (0..seen + width).map(Signal::input).collect();
    let passed = guard.build(&mut builder, &inputs[..seen], &inputs[seen..], |_| true);
    let circuit = builder.finish(&passed).map_err(|error| misfit(error.to_string()))?;
    let mut base = Cnf::new(0);
    let wires = fresh_inputs(&mut base, seen + width);
    let outputs = encode_circuit(&mut base, &circuit, &wires);
    let mut negation = Cnf::new(base.variables());
    let mut selectors = Vec::new();
    for rule in rules {
        // A variable that says: what the rule looks at is seen, and its forbidden action comes out. Other bits are free.
        let selector = negation.fresh();
        for (place, wire) in wires[..seen].iter().enumerate() {
            if let Some(value) = rule.seen.bit(place) {
                require(&mut negation, selector, *wire, value);
            }
        }
        for (bit, wire) in outputs.iter().enumerate() {
            require(&mut negation, selector, *wire, rule.forbidden >> bit & 1 == 1);
        }
        selectors.push(selector);
    }
    negation.add(&selectors);
    findings.push(prove(
        "no forbidden action passes",
        &base,
        &negation,
        seen + width,
        budget(context.config),
    )?);
    Ok(findings)
}

/// Where the selector holds, the wire has this value.
fn require(negation: &mut Cnf, selector: bem_checker::Literal, wire: Wire, value: bool) {
    match wire {
        Wire::Literal(literal) => negation.add(&[!selector, literal.xor(!value)]),
        Wire::Constant(found) if found == value => {}
        Wire::Constant(_) => negation.add(&[!selector]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::battery::Laboratory;
    use bem_base::environment::{Bits, Pattern};

    fn rule(seen: u64, forbidden: u16, instead: u16) -> Rule {
        Rule { seen: Pattern::whole(Bits([seen, 0, 0, 0])), forbidden, instead }
    }

    /// A rule about some of the bits.
    fn partly(mask: u64, seen: u64, forbidden: u16, instead: u16) -> Rule {
        Rule { seen: Pattern::new(Bits([mask, 0, 0, 0]), Bits([seen, 0, 0, 0])), forbidden, instead }
    }

    #[test]
    fn a_constant_wire_asks_for_nothing_where_it_fits_and_excludes_the_selector_where_it_does_not() {
        let clauses = |found: bool, value: bool| {
            let mut negation = Cnf::new(0);
            let selector = negation.fresh();
            require(&mut negation, selector, Wire::Constant(found), value);
            negation.clauses().map(|clause| clause == [!selector]).collect::<Vec<_>>()
        };
        for value in [false, true] {
            assert!(clauses(value, value).is_empty());
            assert_eq!(clauses(!value, value), [true]);
        }
    }

    #[test]
    fn a_guard_is_proven_to_let_no_forbidden_action_pass() {
        let laboratory = Laboratory::new();
        let show = |rules: &[Rule]| check(&laboratory.context(), laboratory.family(), rules);
        let findings = show(&[rule(5, 1, 0), rule(5, 2, 0), rule(9, 0, 1)]).unwrap();
        assert_eq!(findings.iter().filter(|finding| finding.proof().is_some()).count(), 1);
        assert!(show(&[]).unwrap().iter().all(|finding| finding.proof().is_none()));
        let findings = show(&[partly(1, 1, 1, 0), partly(6, 2, 2, 0), partly(0, 0, 2, 0), rule(4, 1, 0)]);
        assert_eq!(findings.unwrap().iter().filter(|finding| finding.proof().is_some()).count(), 1);
        for wrong in [
            vec![rule(5, 1, 2), rule(5, 2, 1)],
            vec![rule(5, 3, 0)],
            vec![rule(64, 0, 1)],
            // Two that meet where bits 0 and 1 are set, bits that nobody sees, and all bits that are seen in another form.
            vec![partly(1, 1, 1, 2), partly(2, 2, 2, 1)],
            vec![partly(65, 1, 1, 0)],
            vec![partly(63, 5, 1, 0)],
        ] {
            assert!(show(&wrong).is_err(), "{wrong:?}");
        }
    }
}
