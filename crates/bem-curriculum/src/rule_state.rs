//! The rule state: a slow trace of what the agent is doing and where, under a write gate per mode.
//!
//! Sixteen numbers follow the held option's code and a pooled view. The codes come from a seeded table; no label
//! of the world's rules enters. Clauses: CUR-2, CUR-9.

use crate::fraction::{ONE, RULE_RATE};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::prng::Prng;
use bem_games::rulegrid::view::{PLANES, View};

/// Numbers of the state.
pub const WIDTH: usize = 16;
/// Options an agent can hold.
pub const OPTIONS: usize = 4;
/// Each entry of a code, plus or minus: sixteen of them make a code of norm one.
const CODE_ENTRY: i64 = ONE / 4;

/// What the agent is busy with; it decides how far the rule state may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Awake in the world.
    ExternalTask = 0,
    /// After a closure, until the next look.
    InternalPlanning = 1,
    /// Replaying.
    InternalReplay = 2,
    /// Between phases.
    OfflineConsolidation = 3,
}

impl Mode {
    /// How far the rule state may move.
    pub const fn write_gate(self) -> i64 {
        match self {
            Mode::ExternalTask | Mode::InternalPlanning => ONE,
            Mode::InternalReplay => 3_277,
            Mode::OfflineConsolidation => 19_661,
        }
    }

    /// Whether a closure may happen.
    pub const fn allows_closure(self) -> bool {
        matches!(self, Mode::ExternalTask | Mode::InternalPlanning)
    }

    /// The mode with this number.
    pub fn from_code(code: u8) -> Option<Mode> {
        [Mode::ExternalTask, Mode::InternalPlanning, Mode::InternalReplay, Mode::OfflineConsolidation]
            .into_iter()
            .find(|mode| *mode as u8 == code)
    }
}

/// Codes of options and planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codes {
    options: [[i64; WIDTH]; OPTIONS],
    planes: [[i64; WIDTH]; PLANES],
}

impl Codes {
    /// The table of a run.
    pub fn new(seed: u64) -> Codes {
        let mut prng = Prng::stream(seed, "curriculum/codes");
        let mut code = || core::array::from_fn(|_| if prng.bit() { CODE_ENTRY } else { -CODE_ENTRY });
        Codes { options: core::array::from_fn(|_| code()), planes: core::array::from_fn(|_| code()) }
    }
}

/// Presence of each plane, integrated with hysteresis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pool {
    level: [u8; PLANES],
    present: [bool; PLANES],
}

impl Pool {
    fn follow(&mut self, view: &View) {
        for (plane, bits) in view.planes.iter().enumerate() {
            let level = &mut self.level[plane];
            *level = if *bits != 0 { (*level + 1).min(64) } else { level.saturating_sub(1) };
            self.present[plane] = if self.present[plane] { 24 < *level } else { 40 <= *level };
        }
    }

    fn sum(&self, codes: &Codes) -> [i64; WIDTH] {
        let mut sum = [0; WIDTH];
        for (plane, _) in self.present.iter().enumerate().filter(|(_, present)| **present) {
            for (total, entry) in sum.iter_mut().zip(codes.planes[plane]) {
                *total += entry;
            }
        }
        // Some six planes of norm one add up to a norm of about two and a half.
        sum.map(|total| total * 2 / 5)
    }
}

/// The rule state and what it is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleState {
    codes: Codes,
    pool: Pool,
    value: [i64; WIDTH],
}

impl RuleState {
    /// All zero.
    pub fn new(seed: u64) -> RuleState {
        RuleState { codes: Codes::new(seed), pool: Pool::default(), value: [0; WIDTH] }
    }

    /// A new episode forgets everything.
    pub fn reset(&mut self) {
        self.pool = Pool::default();
        self.value = [0; WIDTH];
    }

    /// One tick: moves toward the option's code and half of the pooled view.
    pub fn follow(&mut self, option: Option<u8>, view: &View, mode: Mode) {
        self.pool.follow(view);
        let pooled = self.pool.sum(&self.codes);
        let code = option.map_or([0; WIDTH], |option| self.codes.options[usize::from(option) % OPTIONS]);
        let rate = (RULE_RATE * mode.write_gate()) >> 16;
        for ((value, entry), pooled) in self.value.iter_mut().zip(code).zip(pooled) {
            *value += (rate * (entry + pooled / 2 - *value)) >> 16;
        }
    }

    /// The sixteen numbers.
    pub fn value(&self) -> &[i64; WIDTH] {
        &self.value
    }

    /// The squared norm.
    pub fn norm_squared(&self) -> i64 {
        self.value.iter().map(|entry| entry * entry).sum()
    }

    /// The norm, rounded down.
    pub fn norm(&self) -> i64 {
        self.norm_squared().unsigned_abs().isqrt() as i64
    }

    /// Writes the state; the codes come from the seed.
    pub fn encode(&self, writer: &mut Writer) {
        self.value.iter().for_each(|entry| writer.i64(*entry));
        self.pool.level.iter().for_each(|level| writer.u8(*level));
        self.pool.present.iter().for_each(|present| writer.bool(*present));
    }

    /// Reads the state.
    pub fn decode(seed: u64, reader: &mut Reader<'_>) -> Result<RuleState, DecodeError> {
        let mut state = RuleState::new(seed);
        for entry in &mut state.value {
            *entry = reader.i64()?;
        }
        for level in &mut state.pool.level {
            *level = reader.u8()?.min(64);
        }
        for present in &mut state.pool.present {
            *present = reader.bool()?;
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cosine in thousandths.
    fn cosine(a: &[i64; WIDTH], b: &[i64; WIDTH]) -> i64 {
        let dot: i64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        let norm = |value: &[i64; WIDTH]| {
            value.iter().map(|entry| entry * entry).sum::<i64>().unsigned_abs().isqrt() as i64
        };
        dot / norm(a).max(1) * 1_000 / norm(b).max(1)
    }

    #[test]
    fn the_gates_of_the_modes_are_exact() {
        let gates = [0, 1, 2, 3].map(|code| Mode::from_code(code).unwrap().write_gate());
        assert_eq!(gates, [65_536, 65_536, 3_277, 19_661]);
        assert_eq!(Mode::from_code(4), None);
    }

    #[test]
    fn a_nearly_shut_gate_protects_the_state_from_distractors_and_an_open_one_does_not() {
        // The tables are random: one in which some option's code points away from the first's has a distractor.
        let against = |seed: u64, option: u8| {
            let codes = Codes::new(seed);
            cosine(&codes.options[0], &codes.options[usize::from(option)]) <= -125
        };
        let pairs = (0..100).flat_map(|seed| (1..OPTIONS as u8).map(move |option| (seed, option)));
        let (seed, distractor) = pairs.into_iter().find(|(seed, option)| against(*seed, *option)).unwrap();
        let installed = || {
            let mut state = RuleState::new(seed);
            (0..30).for_each(|_| state.follow(Some(0), &View::default(), Mode::ExternalTask));
            state
        };
        let before = *installed().value();
        let after = |mode: Mode| {
            let mut state = installed();
            (0..40).for_each(|_| state.follow(Some(distractor), &View::default(), mode));
            cosine(&before, state.value())
        };
        assert!(950 <= after(Mode::InternalReplay));
        assert!(after(Mode::ExternalTask) <= 0);
    }

    #[test]
    fn a_reset_zeroes_everything() {
        let mut state = RuleState::new(1);
        state.follow(Some(1), &View::default(), Mode::ExternalTask);
        state.reset();
        assert_eq!(state.norm(), 0);
    }

    #[test]
    fn a_constant_source_settles_in_some_eighty_ticks() {
        let mut state = RuleState::new(2);
        let mut last = *state.value();
        let settled = (0..200).find(|_| {
            state.follow(Some(0), &View::default(), Mode::ExternalTask);
            let delta: i64 = state.value().iter().zip(last).map(|(now, then)| (now - then).pow(2)).sum();
            last = *state.value();
            delta < 66 * 66 && 656 * 656 < state.norm_squared()
        });
        assert!((60..100).contains(&settled.unwrap()), "{settled:?}");
    }
}
