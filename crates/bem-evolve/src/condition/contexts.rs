//! The conditions of patches about a choice's contexts: SPLIT, MERGE and RESET of what it keeps apart.
//!
//! SPLIT promises: every new context is a part of one old context, so that nothing that was kept apart is mixed; every
//! context can be reached; only bits that can be seen are tested. MERGE promises: what is chosen stays the same for every
//! observation, shown for the frozen circuits before and after, and no test is new. RESET promises: the context exists and
//! forgets nothing twice. Not promised: that the parts differ in anything that matters, which is what the log was asked.
//! Clauses: SCC-2, SCC-3; decisions D-21, D-33.

use super::{Context, Finding, Rejection, budget, misfit, prove_same};
use crate::apply::rechosen;
use crate::contexts::{Choice, ContextTree};
use crate::patch::Change;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_machine::family::Family;
use bem_synth::policy::action_bits;

/// Shows all of the condition; also how many contexts are saved.
pub fn check(
    context: &Context<'_>,
    family: &Family,
    choice: &Choice,
    change: &Change,
) -> Result<(Vec<Finding>, i64), Rejection> {
    let Some(after) = rechosen(choice, change) else {
        return Err(misfit("the contexts afterwards do not follow from those before"));
    };
    let seen = family.shape().observation_bits;
    if let Some(bit) = after.tree().bits().last().filter(|bit| seen <= **bit) {
        return Err(misfit(format!("bit {bit} cannot be seen: there are {seen}")));
    }
    let mut findings = vec![Finding::Compared { condition: "contexts follow from those before" }];
    if let Change::Join { actions, .. } = change {
        findings.push(check_same_choice(context, family, choice.tree(), after.tree(), actions)?);
    }
    Ok((findings, choice.tree().count() as i64 - after.tree().count() as i64))
}

/// The frozen choice is the same function before and after, if every whole chooses what its parts chose.
fn check_same_choice(
    context: &Context<'_>,
    family: &Family,
    before: &ContextTree,
    after: &ContextTree,
    actions: &[u16],
) -> Result<Finding, Rejection> {
    let count = family.shape().actions;
    if actions.len() != before.count() || actions.iter().any(|action| count <= *action) {
        return Err(misfit(format!("{} contexts have one action of {count} each", before.count())));
    }
    let origins =
        before.origins(after).ok_or_else(|| misfit("a test is made after that was not made before"))?;
    let mut joined = vec![0; after.count()];
    origins.into_iter().zip(actions).for_each(|(whole, action)| joined[whole] = *action);
    let width = action_bits(count);
    let (old, new) = (before.freeze(actions, width), after.freeze(&joined, width));
    let new = over(&new, &after.bits(), &before.bits()).map_err(|error| misfit(error.to_string()))?;
    prove_same("the same choice", &old, &new, budget(context.config))
}

/// A circuit over some bits as a circuit over more bits.
fn over(circuit: &Netlist, bits: &[u16], all: &[u16]) -> Result<Netlist, bem_circuit::netlist::NetlistError> {
    let mut builder = Builder::new(all.len());
    let place =
        |bit: &u16| Signal::input(all.binary_search(bit).expect("fewer bits are tested after joining"));
    let inputs: Vec<Signal> = bits.iter().map(place).collect();
    let outputs = builder.embed(circuit, &inputs);
    builder.finish(&outputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::battery::Laboratory;
    use crate::patch::ExpectedEffects;
    use crate::propose::patch;
    use crate::score::PoxState;
    use crate::verify::{Improvement, accept, verify};
    use bem_base::fixed::Fixed;

    fn tree(places: &[Option<u16>]) -> ContextTree {
        ContextTree::from_places(places).unwrap()
    }

    /// Applies a change of the laboratory's contexts, or says why not.
    fn take(laboratory: &mut Laboratory, serial: u64, change: Change) -> Result<(), String> {
        let improvement = match change {
            Change::Join { .. } => Improvement::Static,
            _ => Improvement::Logged { lower_bound: Fixed::HALF, steps: 100 },
        };
        let patch = patch(laboratory.tables(), serial, 0, change, ExpectedEffects::default()).unwrap();
        let verified = verify(patch, &laboratory.context()).map_err(|error| error.to_string())?;
        let pox = PoxState::new(laboratory.config());
        let accepted = accept(verified, improvement, Fixed::ZERO, &pox).map_err(|error| error.to_string())?;
        laboratory.apply(accepted).map_err(|error| error.to_string())
    }

    #[test]
    fn contexts_are_divided_joined_and_forget_only_as_their_conditions_allow() {
        let mut laboratory = Laboratory::new();
        let (coarse, fine) = (tree(&[Some(3), None, None]), tree(&[Some(3), None, Some(1), None, None]));
        let divide = |after: &ContextTree| Change::Divide { after: after.clone() };
        let join = |after: &ContextTree, actions: &[u16]| Change::Join {
            after: after.clone(),
            actions: actions.to_vec(),
        };
        // The laboratory sees six bits, and its contexts are the sides of bit 3.
        let error =
            take(&mut laboratory, 20, divide(&tree(&[Some(3), None, Some(6), None, None]))).unwrap_err();
        assert_eq!(error, "bit 6 cannot be seen: there are 6");
        assert_eq!(take(&mut laboratory, 21, divide(&fine)), Ok(()));
        for wrong in
            [divide(&tree(&[Some(1), None, None])), divide(&coarse), divide(&fine), join(&fine, &[0, 1, 1])]
        {
            let error = take(&mut laboratory, 22, wrong).unwrap_err();
            assert_eq!(error, "the contexts afterwards do not follow from those before");
        }
        // Contexts are joined where the choice is the same, and nowhere else.
        let error = take(&mut laboratory, 23, join(&coarse, &[0, 1, 2])).unwrap_err();
        assert!(error.starts_with("the same choice fails"), "{error}");
        assert!(take(&mut laboratory, 24, join(&coarse, &[0, 1])).is_err());
        assert_eq!(take(&mut laboratory, 25, join(&coarse, &[0, 1, 1])), Ok(()));
        let forget = |context, before| Change::Forget { context, before };
        assert!(take(&mut laboratory, 26, forget(2, 9)).is_err());
        assert_eq!(take(&mut laboratory, 27, forget(1, 9)), Ok(()));
        assert!(take(&mut laboratory, 28, forget(1, 9)).is_err());
        assert_eq!(laboratory.tables().choice(0).unwrap().since(), [0, 9]);
        let error = take(&mut laboratory, 27, forget(1, 10)).unwrap_err();
        assert_eq!(error, "serial 27 is not new: 27 was applied");
    }
}
