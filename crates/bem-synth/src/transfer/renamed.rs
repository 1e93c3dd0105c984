//! The same circuit where what it sees and does has other names: bits of the observation at other places, actions with other codes.

use crate::function::build_word_table;
use crate::policy::{Policy, action_bits};
use crate::statement::Index;
use bem_circuit::netlist::{Builder, Signal};
use std::collections::BTreeMap;

/// The policy under other names: `bits` has for every bit of its own observation the one that stands for it, and `actions` for every
/// action of its own the one that is meant. None where a bit or an action that it needs has no other name, or a bound is exceeded.
pub fn renamed(policy: &Policy, bits: &[Index], actions: &[u16]) -> Option<Policy> {
    let width = bits.len();
    let is_known = |action: &u16| *action < policy.actions();
    if actions.len() != usize::from(policy.actions()) || !actions.iter().all(is_known) {
        return None;
    }
    let mut builder = Builder::new(width + policy.memory_bits());
    let mut inputs = Vec::with_capacity(policy.circuit().inputs());
    for own in policy.reads() {
        let there = bits.get(usize::from(*own)).filter(|there| usize::from(**there) < width)?;
        inputs.push(Signal::input(usize::from(*there)));
    }
    inputs.extend((width..width + policy.memory_bits()).map(Signal::input));
    let outputs = builder.embed(policy.circuit(), &inputs);
    let (code, next) = outputs.split_at(action_bits(policy.actions()));
    let moves = actions.iter().enumerate().any(|(own, there)| own != usize::from(*there));
    let code = if moves {
        let table: BTreeMap<u64, u64> =
            actions.iter().enumerate().map(|(own, there)| (own as u64, u64::from(*there))).collect();
        build_word_table(&mut builder, code, &table, code.len())
    } else {
        code.to_vec()
    };
    Policy::close(builder, width, policy.actions(), &code, next).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three actions over two fields of two bits, with one remembered bit.
    fn policy() -> Policy {
        let mut builder = Builder::new(5);
        let signals: Vec<Signal> = (0..5).map(Signal::input).collect();
        let low = builder.xor(signals[0], signals[4]);
        let high = builder.and_not(signals[3], low);
        Policy::close(builder, 4, 3, &[low, high], &[signals[1]]).unwrap()
    }

    #[test]
    fn a_renamed_circuit_does_the_same_under_the_other_names_whatever_it_remembers() {
        let own = policy();
        // The two fields trade places, and the actions go round.
        let (bits, actions) = ([2, 3, 0, 1], [1u16, 2, 0]);
        let there = renamed(&own, &bits, &actions).unwrap();
        let act = |policy: &Policy, seen: &[bool], kept: bool| {
            let read = policy.reads().iter().map(|bit| seen[usize::from(*bit)]);
            let outputs = policy.circuit().evaluate(&read.chain([kept]).collect::<Vec<_>>());
            let code = usize::from(outputs[0]) | usize::from(outputs[1]) << 1;
            (code, outputs[2])
        };
        let mut differs = false;
        for key in 0..32u32 {
            let seen: Vec<bool> = (0..4).map(|bit| key >> bit & 1 == 1).collect();
            let mut shown = vec![false; 4];
            bits.iter().zip(&seen).for_each(|(there, value)| shown[usize::from(*there)] = *value);
            let kept = key >> 4 & 1 == 1;
            let (code, next) = act(&own, &seen, kept);
            assert_eq!(act(&there, &shown, kept), (usize::from(actions[code]), next), "{key}");
            differs |= act(&there, &seen, kept) != (code, next);
        }
        // Control: under its own names it is another policy.
        assert!(differs);
        assert_eq!(renamed(&own, &[0, 1, 2, 3], &[0, 1, 2]).unwrap().reads(), own.reads());
    }

    #[test]
    fn names_that_are_missing_or_beyond_the_world_are_refused() {
        let own = policy();
        assert!(renamed(&own, &[0, 1, 2], &[0, 1, 2]).is_none());
        assert!(renamed(&own, &[0, 1, 2, 9], &[0, 1, 2]).is_none());
        assert!(renamed(&own, &[0, 1, 2, 3], &[0, 1]).is_none());
        assert!(renamed(&own, &[0, 1, 2, 3], &[0, 1, 3]).is_none());
    }
}
