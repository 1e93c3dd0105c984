//! What any circuit is worth in a model: the chances of all pairs of state and private memory, step by step.
//!
//! This is exact for the model, whatever the circuit remembers, as long as the pairs stay few.

use super::chance::{CHANCE_BITS, Dynamics, VALUE_BITS};
use super::counts::Model;
use crate::policy::{Policy, action_bits};
use bem_base::environment::Bits;
use std::collections::BTreeMap;

/// Pairs of state and memory at one time, at most.
const PAIRS_MAX: usize = 1 << 14;
/// Pairs over all steps, at most.
const WORK_MAX: usize = 1 << 20;
/// Chances below this share are dropped, with [`CHANCE_BITS`].
const CHANCE_MIN: i64 = 2;

/// Private memory, one bit a place.
type Memory = Vec<u64>;

/// The mean return of a circuit, with the value bits of a plan; none when its memory takes too many forms.
pub fn value_of(policy: &Policy, model: &Model, dynamics: &Dynamics) -> Option<i64> {
    Answers::new(policy).value(model, dynamics)
}

/// Milli-units of a value.
pub fn to_milli(value: i64) -> i64 {
    value >> VALUE_BITS
}

/// A circuit with the answers it has given: they are the same in all draws of a model.
pub struct Answers<'p> {
    policy: &'p Policy,
    known: BTreeMap<(Bits, Memory), (u16, Memory)>,
}

impl<'p> Answers<'p> {
    /// Nothing was asked yet.
    pub fn new(policy: &'p Policy) -> Answers<'p> {
        Answers { policy, known: BTreeMap::new() }
    }

    /// The mean return, as [`value_of`] says it. Pairs that were never tried earn nothing more.
    pub fn value(&mut self, model: &Model, dynamics: &Dynamics) -> Option<i64> {
        let policy = self.policy;
        let blank: Memory = vec![0; policy.memory_bits().div_ceil(64)];
        let mut now: BTreeMap<(u32, Memory), i64> = BTreeMap::new();
        for (state, chance) in &dynamics.starts {
            now.insert((*state, blank.clone()), *chance);
        }
        let (mut sum, mut work) = (0i128, 0);
        for _ in 0..model.horizon() {
            let mut then: BTreeMap<(u32, Memory), i64> = BTreeMap::new();
            work += now.len();
            if PAIRS_MAX < now.len() || WORK_MAX < work {
                return None;
            }
            for ((state, memory), chance) in &now {
                let (action, kept) = self.ask(model.observation(*state), memory);
                let row = &dynamics.of(*state as usize)[usize::from(*action)];
                sum += i128::from(row.reward) * i128::from(*chance);
                for (next, share) in &row.next {
                    let part = ((i128::from(*chance) * i128::from(*share)) >> CHANCE_BITS) as i64;
                    if CHANCE_MIN <= part {
                        *then.entry((*next, kept.clone())).or_default() += part;
                    }
                }
            }
            if then.is_empty() {
                break;
            }
            now = then;
        }
        Some((sum >> CHANCE_BITS) as i64)
    }

    fn ask(&mut self, observation: &Bits, memory: &Memory) -> &(u16, Memory) {
        let policy = self.policy;
        self.known.entry((*observation, memory.clone())).or_insert_with(|| {
            let seen = policy.reads().iter().map(|index| u64::from(observation.get(usize::from(*index))));
            let held = (0..policy.memory_bits()).map(|place| memory[place / 64] >> (place % 64) & 1);
            let inputs: Vec<u64> = seen.chain(held).collect();
            let (mut values, mut outputs) = (Vec::new(), Vec::new());
            policy.circuit().evaluate_words(&inputs, &mut values, &mut outputs);
            let (code, next) = outputs.split_at(action_bits(policy.actions()));
            let action =
                code.iter().enumerate().fold(0, |code, (bit, word)| code | (*word as u16 & 1) << bit);
            let mut kept = vec![0; memory.len()];
            for (place, word) in next.iter().enumerate() {
                kept[place / 64] |= (word & 1) << (place % 64);
            }
            (action, kept)
        })
    }
}
