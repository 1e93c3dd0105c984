//! The condition of MACRO in time: one expert plays by a counter of its own what a sequence of experts did.
//!
//! Promised: everything that SYNTH promises about any policy ([`super::synthesize::check_policy`]), that it takes the claimed
//! actions, and that in every claimed episode, from its start on,
//! each step's expert of the sequence takes just the action that is claimed, so that the claims are what the sequence did
//! and not what somebody wrote down. Not promised: that other episodes than the claimed ones go the same way; the
//! improvement gate asks the world. Clauses: SCC-2, SCC-3.

use super::circuits::{body_of, occupant};
use super::{Context, Finding, Rejection, misfit, synthesize};
use crate::patch::{Example, PLAY_STEPS_MAX};
use bem_machine::expert::Expert;
use bem_machine::family::Family;
use bem_synth::policy::{Policy, PolicyState};
use std::collections::BTreeMap;

/// Shows all of the condition.
pub fn check(
    context: &Context<'_>,
    family: &Family,
    sequence: &[u8],
    policy: &Policy,
    examples: &[Example],
) -> Result<Vec<Finding>, Rejection> {
    if !(2..=PLAY_STEPS_MAX).contains(&sequence.len()) {
        return Err(misfit(format!("a sequence of {}: 2 to {PLAY_STEPS_MAX} steps may be", sequence.len())));
    }
    let mut experts = BTreeMap::new();
    for slot in sequence {
        let expert = occupant(family, *slot)?;
        experts
            .insert(*slot, policy_of(family, expert).ok_or_else(|| misfit("an expert that is no policy"))?);
    }
    // Who remembers must have seen everything: such an expert plays alone.
    if 1 < experts.len() && experts.values().any(|expert| 0 < expert.memory_bits()) {
        return Err(misfit("an expert that remembers is followed by another"));
    }
    let mut findings = synthesize::check_policy(context, family, policy)?;
    findings.push(synthesize::check_rows(policy, examples, 0)?);
    let mut rows = 0;
    for example in examples {
        if sequence.len() < example.steps.len() {
            return Err(misfit("a claimed episode is longer than the sequence"));
        }
        let mut states: BTreeMap<u8, PolicyState> =
            experts.iter().map(|(slot, expert)| (*slot, PolicyState::new(expert))).collect();
        for (step, slot) in example.steps.iter().zip(sequence) {
            let expert = &experts[slot];
            let action = states.get_mut(slot).map(|state| state.act(expert, &step.observation));
            if step.wanted.is_none() || action != step.wanted {
                return Err(misfit("a claimed action that the sequence does not take"));
            }
            rows += 1;
        }
    }
    if rows == 0 {
        return Err(misfit("a macro that claims nothing"));
    }
    findings.push(Finding::Exhausted { condition: "the sequence does what is claimed", rows });
    Ok(findings)
}

/// An expert of the pool as the policy that it was made from, if it sees observations and its own memory only.
pub fn policy_of(family: &Family, expert: &Expert) -> Option<Policy> {
    let (body, layout) = (body_of(expert).ok()?, family.layout());
    let memory_bits = body.writes.len().checked_sub(layout.action().len())?;
    let memory: Vec<u16> = layout.memory().take(memory_bits).map(|bit| bit as u16).collect();
    let reads = body.reads.strip_suffix(memory.as_slice())?.to_vec();
    let writes: Vec<u16> = layout.action().map(|bit| bit as u16).chain(memory).collect();
    let sees = reads.iter().all(|bit| layout.observation().contains(&usize::from(*bit)));
    if !sees || body.writes != writes {
        return None;
    }
    Policy::new(body.circuit, reads, memory_bits, family.shape().actions)
}
