//! Where a family's bits stand in STATE: observation, action, last reward, last BAD, and what experts remember.
//!
//! ```text
//! plane 0 ............................................................ config.state_bits
//! | observation | action | reward | bad | memory of experts ........ |  bits of SHARED words |
//! ```
//!
//! The action planes hold the number of the last action, so an expert that reads them sees what it did before. The
//! reward plane says whether the last reward was in the upper half of its range. Both are false at the start of an
//! episode. Must not know what an expert computes. Clauses: MEM-1, VM-15, D-10, D-32.

use crate::config::GenesisConfig;
use bem_base::environment::Shape;
use bem_base::lanes::planes_for;
use bem_base::limits::{ACTIONS_MAX, OBSERVATION_BITS_MAX, STATE_BITS_MAX};
use core::ops::Range;

/// Why a world does not fit into STATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// Observation, action and outcome planes need more bits than STATE has.
    #[error("the world needs {needed} state bits, STATE has {available} (N_state_bits)")]
    TooWide {
        /// Planes needed.
        needed: usize,
        /// Planes there are.
        available: usize,
    },
    /// No action, or more than the machine can name.
    #[error("{actions} actions: a world has 1 to {ACTIONS_MAX}")]
    Actions {
        /// Actions of the world.
        actions: u16,
    },
    /// More observation bits than an observation has.
    #[error("{bits} observation bits: a world has at most {OBSERVATION_BITS_MAX}")]
    Observation {
        /// Bits of the world.
        bits: u16,
    },
    /// An episode longer than the configuration allows.
    #[error("a horizon of {horizon} steps exceeds the bound of {bound} (H_episode_max)")]
    Horizon {
        /// Steps of the world.
        horizon: u32,
        /// Steps allowed.
        bound: u32,
    },
    /// Rewards outside the configured range.
    #[error("rewards from {low} to {high} exceed the range of {min} to {max} (R_min, R_max)")]
    Rewards {
        /// Smallest reward of the world.
        low: i32,
        /// Largest reward of the world.
        high: i32,
        /// Smallest reward allowed.
        min: i32,
        /// Largest reward allowed.
        max: i32,
    },
}

/// The places of one family. Invariant: the parts follow each other and end at `state_bits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLayout {
    observation_bits: usize,
    action_bits: usize,
    state_bits: usize,
}

impl StateLayout {
    /// The layout for a world of this shape.
    pub fn new(config: &GenesisConfig, shape: &Shape) -> Result<StateLayout, LayoutError> {
        if shape.actions == 0 || ACTIONS_MAX < usize::from(shape.actions) {
            return Err(LayoutError::Actions { actions: shape.actions });
        }
        if OBSERVATION_BITS_MAX < usize::from(shape.observation_bits) {
            return Err(LayoutError::Observation { bits: shape.observation_bits });
        }
        if config.episode_steps_max < shape.horizon {
            return Err(LayoutError::Horizon { horizon: shape.horizon, bound: config.episode_steps_max });
        }
        if shape.reward_min < config.reward_min || config.reward_max < shape.reward_max {
            return Err(LayoutError::Rewards {
                low: shape.reward_min,
                high: shape.reward_max,
                min: config.reward_min,
                max: config.reward_max,
            });
        }
        let observation_bits = usize::from(shape.observation_bits);
        let action_bits = planes_for(usize::from(shape.actions));
        let (needed, available) = (observation_bits + action_bits + 2, config.state_bits as usize);
        if available < needed {
            return Err(LayoutError::TooWide { needed, available });
        }
        Ok(StateLayout { observation_bits, action_bits, state_bits: available })
    }

    /// What the world shows.
    pub fn observation(&self) -> Range<usize> {
        0..self.observation_bits
    }

    /// The number of the action, lowest bit first.
    pub fn action(&self) -> Range<usize> {
        self.observation_bits..self.observation_bits + self.action_bits
    }

    /// Whether the last reward was in the upper half of its range.
    pub fn reward(&self) -> usize {
        self.action().end
    }

    /// Whether the last step was BAD.
    pub fn bad(&self) -> usize {
        self.action().end + 1
    }

    /// What experts remember within an episode.
    pub fn memory(&self) -> Range<usize> {
        self.action().end + 2..self.state_bits
    }

    /// Bits of STATE; planes from here on hold bits of SHARED words for experts that read them.
    pub fn state_bits(&self) -> usize {
        self.state_bits
    }

    /// Whether an expert may write this bit: actions and memory, never what the world says.
    pub fn may_write(&self, bit: usize) -> bool {
        self.action().contains(&bit) || self.memory().contains(&bit)
    }
}

const _: () = assert!(OBSERVATION_BITS_MAX + 16 < STATE_BITS_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(observation_bits: u16, actions: u16) -> Shape {
        Shape {
            observation_bits,
            actions,
            horizon: 10,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 10_000,
            fields: Vec::new(),
        }
    }

    #[test]
    fn the_parts_follow_each_other() {
        let layout = StateLayout::new(&GenesisConfig::default(), &shape(10, 5)).unwrap();
        assert_eq!((layout.observation(), layout.action()), (0..10, 10..13));
        assert_eq!((layout.reward(), layout.bad(), layout.memory()), (13, 14, 15..768));
        let writable: Vec<usize> = (0..20).filter(|bit| layout.may_write(*bit)).collect();
        assert_eq!(writable, [10, 11, 12, 15, 16, 17, 18, 19]);
    }

    #[test]
    fn a_world_out_of_bounds_is_refused_by_name() {
        let config = GenesisConfig { state_bits: 64, reward_max: 1_500, ..GenesisConfig::default() };
        let refused = |shape: &Shape| StateLayout::new(&config, shape).unwrap_err().to_string();
        assert_eq!(refused(&shape(62, 2)), "the world needs 65 state bits, STATE has 64 (N_state_bits)");
        assert_eq!(refused(&shape(1, 0)), "0 actions: a world has 1 to 1024");
        assert_eq!(refused(&shape(300, 2)), "300 observation bits: a world has at most 256");
        let long = Shape { horizon: 70_000, ..shape(1, 2) };
        assert_eq!(refused(&long), "a horizon of 70000 steps exceeds the bound of 65536 (H_episode_max)");
        let rich = Shape { reward_max: 2_000, ..shape(1, 2) };
        assert_eq!(
            refused(&rich),
            "rewards from 0 to 2000 exceed the range of -250000000 to 1500 (R_min, R_max)"
        );
    }
}
