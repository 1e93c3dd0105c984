//! The conditions of SUPEROPT and MERGE of experts: circuits that must do what other circuits did.
//!
//! SUPEROPT promises: on every input the new circuit has the outputs of the old one, with fewer gates.
//! MERGE promises: on every state of a member's domain, the merged expert writes what that member would have
//! written; the domains together cover all states; no domain is empty. It does not promise that routing chose the
//! member there before.
//!
//! Experts that read SHARED, narrow the mask or count lanes are not merged. Safety tags may be kept or added,
//! never dropped, and stickiness never changes. Clauses: SCC-2, SCC-3, SCC-7.

use super::{Context, Finding, Rejection, budget, misfit, prove, prove_same};
use crate::patch::{Body, MEMBERS_MAX, Member};
use bem_base::ids::ObjectId;
use bem_checker::Cnf;
use bem_circuit::netlist::{Netlist, Signal};
use bem_circuit::simplify::Simplifier;
use bem_machine::expert::{Expert, OutputUse};
use bem_machine::family::{Family, FamilyError, STEP_BY_STEP};
use bem_machine::layout::StateLayout;
use bem_prover::encode::{Wire, encode_circuit, fresh_inputs, require_any, require_difference};
use std::collections::BTreeMap;

/// All bounds of the configuration, the write set, and memory only for sticky experts.
pub(crate) fn check_bounds(
    context: &Context<'_>,
    family: &Family,
    body: &Body,
) -> Result<Finding, Rejection> {
    let parts = body.to_parts(0);
    check_writes(family.layout(), body)?;
    Expert::new(context.config, ObjectId::expert(0, 0), parts).map_err(FamilyError::from)?;
    Ok(Finding::Compared { condition: "bounds and write set" })
}

fn check_writes(layout: &StateLayout, body: &Body) -> Result<(), Rejection> {
    for bit in &body.writes {
        if !layout.may_write(usize::from(*bit)) {
            return Err(FamilyError::WriteRefused { bit: *bit }.into());
        }
        if layout.memory().contains(&usize::from(*bit)) && !body.sticky {
            return Err(FamilyError::MemoryNeedsSticky { bit: *bit }.into());
        }
    }
    Ok(())
}

/// The expert in a slot that may be changed.
pub(crate) fn occupant(family: &Family, slot: u8) -> Result<&Expert, Rejection> {
    let slot = usize::from(slot);
    family.expert(slot).filter(|_| slot != STEP_BY_STEP).ok_or_else(|| FamilyError::EmptySlot { slot }.into())
}

/// An expert of the pool as patches carry it.
pub fn body_of(expert: &Expert) -> Result<Body, Rejection> {
    if !expert.read().shared.is_empty() || !expert.write().integers.is_empty() {
        return Err(misfit("an expert that uses SHARED cannot be merged"));
    }
    let writes = expert.write().outputs.iter().map(|output| match output {
        OutputUse::State(bit) => Ok(*bit),
        OutputUse::Mask | OutputUse::Count => {
            Err(misfit("an expert that narrows or counts lanes cannot be merged"))
        }
    });
    Ok(Body {
        reads: expert.read().state_bits.clone(),
        writes: writes.collect::<Result<_, _>>()?,
        circuit: expert.placed().circuit().clone(),
        sticky: expert.profile().sticky,
    })
}

/// SUPEROPT: the same function with fewer gates.
pub fn check_superoptimized(
    context: &Context<'_>,
    family: &Family,
    slot: u8,
    circuit: &Netlist,
) -> Result<Vec<Finding>, Rejection> {
    let old = occupant(family, slot)?.placed().circuit();
    if old.gates().len() <= circuit.gates().len() {
        return Err(misfit(format!(
            "{} gates are not fewer than {}",
            circuit.gates().len(),
            old.gates().len()
        )));
    }
    let fewer = Finding::Compared { condition: "fewer gates" };
    Ok(vec![fewer, prove_same("equivalence", old, circuit, budget(context.config))?])
}

/// MERGE: agreement with every member on its domain, and domains that cover everything.
pub fn check_merged(
    context: &Context<'_>,
    family: &Family,
    members: &[Member],
    body: &Body,
) -> Result<Vec<Finding>, Rejection> {
    if !(2..=MEMBERS_MAX).contains(&members.len()) {
        return Err(misfit(format!("{} experts to merge: 2 to {MEMBERS_MAX} may be", members.len())));
    }
    // One expert may be right in several places, but a single one is no merge.
    if members.iter().all(|member| member.slot == members[0].slot) {
        return Err(misfit("an expert cannot be merged with itself"));
    }
    let mut findings = vec![check_bounds(context, family, body)?];
    let budget = budget(context.config);
    for member in members {
        let expert = occupant(family, member.slot)?;
        let old = body_of(expert)?;
        check_tags(&old, body)?;
        if sorted(&old.writes) != sorted(&body.writes) {
            return Err(misfit(format!("slot {} writes other bits than the merged expert", member.slot)));
        }
        let mut places = Places::new();
        let outputs = [effect(&mut places, &[&old])?, effect(&mut places, &[body])?];
        let Joint { mut base, inputs, outputs } = join(&places, outputs, &member.domain)?;
        constrain(&mut base, &inputs, &member.domain);
        let mut negation = Cnf::new(base.variables());
        require_difference(&mut negation, &outputs[0], &outputs[1]);
        findings.push(prove("agreement on a domain", &base, &negation, inputs.len(), budget)?);
    }
    findings.push(check_cover(members, budget)?);
    Ok(findings)
}

/// Every state lies in some domain.
fn check_cover(members: &[Member], budget: bem_prover::Budget) -> Result<Finding, Rejection> {
    let bits = sorted(
        &members.iter().flat_map(|member| member.domain.iter().map(|(bit, _)| *bit)).collect::<Vec<_>>(),
    );
    let mut base = Cnf::new(0);
    let wires = fresh_inputs(&mut base, bits.len());
    let mut negation = Cnf::new(base.variables());
    for member in members {
        let outside: Vec<Wire> = member
            .domain
            .iter()
            .map(|(bit, value)| {
                let wire = wires[bits.binary_search(bit).expect("every bit of a domain is listed")];
                if *value { wire.complement() } else { wire }
            })
            .collect();
        // A domain without bits is everything: the clause is empty and nothing lies outside.
        require_any(&mut negation, &outside);
    }
    prove("domains cover all states", &base, &negation, bits.len(), budget)
}

fn check_tags(old: &Body, new: &Body) -> Result<(), Rejection> {
    if old.sticky != new.sticky {
        return Err(misfit("whether an expert is chosen for whole episodes must not change"));
    }
    Ok(())
}

fn sorted(bits: &[u16]) -> Vec<u16> {
    let mut bits = bits.to_vec();
    bits.sort_unstable();
    bits.dedup();
    bits
}

/// Which bit of STATE is which input, in order of first use.
struct Places(BTreeMap<u16, usize>);

impl Places {
    fn new() -> Places {
        Places(BTreeMap::new())
    }

    fn of(&mut self, bit: u16) -> usize {
        let next = self.0.len();
        *self.0.entry(bit).or_insert(next)
    }

    fn bits(&self) -> Vec<u16> {
        let mut bits = vec![0; self.0.len()];
        self.0.iter().for_each(|(bit, place)| bits[*place] = *bit);
        bits
    }
}

/// What some experts do one after the other: circuits, and where each finds its inputs.
struct Effect {
    steps: Vec<(Netlist, Vec<u16>, Vec<u16>)>,
    writes: Vec<u16>,
}

/// Names all inputs of a sequence, so that several sequences share them.
fn effect(places: &mut Places, parts: &[&Body]) -> Result<Effect, Rejection> {
    let mut written = Vec::new();
    for part in parts {
        if part.circuit.inputs() != part.reads.len() || part.circuit.outputs().len() != part.writes.len() {
            return Err(misfit("the circuit does not fit what it reads and writes"));
        }
        part.reads.iter().chain(&part.writes).for_each(|bit| {
            places.of(*bit);
        });
        written.extend_from_slice(&part.writes);
    }
    let steps = parts.iter().map(|part| (part.circuit.clone(), part.reads.clone(), part.writes.clone()));
    Ok(Effect { steps: steps.collect(), writes: sorted(&written) })
}

impl Effect {
    /// Adds the effect to a circuit; returns the values of the written bits, lowest bit first.
    fn embed(&self, simplifier: &mut Simplifier, places: &Places) -> Vec<Signal> {
        let mut state: BTreeMap<u16, Signal> =
            places.0.iter().map(|(bit, place)| (*bit, Signal::input(*place))).collect();
        for (circuit, reads, writes) in &self.steps {
            let inputs: Vec<Signal> = reads.iter().map(|bit| state[bit]).collect();
            let outputs = simplifier.embed(circuit, &inputs);
            state.extend(writes.iter().copied().zip(outputs));
        }
        self.writes.iter().map(|bit| state[bit]).collect()
    }
}

/// Two effects as clauses over shared inputs.
struct Joint {
    base: Cnf,
    inputs: Vec<(u16, Wire)>,
    outputs: [Vec<Wire>; 2],
}

/// Both effects in one simplifier, which sees equal parts at once (decision D-36), and then as clauses.
fn join(places: &Places, effects: [Effect; 2], domain: &[(u16, bool)]) -> Result<Joint, Rejection> {
    let mut simplifier = Simplifier::new(places.0.len());
    let mut signals = effects[0].embed(&mut simplifier, places);
    let border = signals.len();
    signals.extend(effects[1].embed(&mut simplifier, places));
    let circuit = simplifier.finish(&signals).map_err(|error| misfit(error.to_string()))?;
    let mut base = Cnf::new(0);
    let wires = fresh_inputs(&mut base, places.0.len());
    let mut inputs: Vec<(u16, Wire)> = places.bits().into_iter().zip(wires.iter().copied()).collect();
    for (bit, _) in domain {
        if inputs.iter().all(|(known, _)| known != bit) {
            let wire = fresh_inputs(&mut base, 1)[0];
            inputs.push((*bit, wire));
        }
    }
    let outputs = encode_circuit(&mut base, &circuit, &wires);
    Ok(Joint { base, inputs, outputs: [outputs[..border].to_vec(), outputs[border..].to_vec()] })
}

/// Demands that the state lies in the domain.
fn constrain(base: &mut Cnf, inputs: &[(u16, Wire)], domain: &[(u16, bool)]) {
    for (bit, value) in domain {
        let (_, wire) =
            inputs.iter().find(|(known, _)| known == bit).expect("every bit of a domain is an input");
        require_any(base, &[if *value { *wire } else { wire.complement() }]);
    }
}
