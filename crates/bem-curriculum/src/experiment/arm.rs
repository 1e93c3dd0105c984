//! The arms: what is changed about the agent before it is evaluated.
//!
//! Clauses: CUR-6, CUR-8.

use crate::agent::{AgentConfig, Interference};
use crate::fraction::{FORCED_HIGH, FORCED_LOW};
use crate::latch::RELEASE_THRESHOLD_MILLI;
use bem_games::rulegrid::config::ConfigError;
use serde::Serialize;

/// What is changed about the agent in an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// Nothing: commitment must come by itself.
    Emergent,
    /// The running variance is pinned low.
    ForcedLow,
    /// The running variance is pinned high.
    ForcedHigh,
    /// The latch does not hold.
    NoHold,
    /// The variance spikes at every second look.
    Spike,
    /// The variance spikes and the latch does not hold.
    SpikeNoHold,
    /// Holds longer: a higher bar for completion and no automatic closure.
    Strong,
}

impl Arm {
    /// All arms, with their names on the command line.
    pub const ALL: [(Arm, &'static str); 7] = [
        (Arm::Emergent, "emergent"),
        (Arm::ForcedLow, "forced_low"),
        (Arm::ForcedHigh, "forced_high"),
        (Arm::NoHold, "no_hold"),
        (Arm::Spike, "spike"),
        (Arm::SpikeNoHold, "spike_no_hold"),
        (Arm::Strong, "strong"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Arm::ALL[self as usize].1
    }

    /// The arm with this name.
    pub fn parse(name: &str) -> Result<Arm, ConfigError> {
        let known = Arm::ALL.map(|(_, name)| name).join(", ");
        let found = Arm::ALL.into_iter().find(|(_, own)| *own == name);
        found.map(|(arm, _)| arm).ok_or_else(|| ConfigError::refused("arm", name, &format!("one of {known}")))
    }

    /// The agent's set-up in this arm.
    pub fn agent_config(self) -> AgentConfig {
        let base = AgentConfig::default();
        match self {
            Arm::Emergent => base,
            Arm::ForcedLow => AgentConfig { interference: Interference::Pinned(FORCED_LOW), ..base },
            Arm::ForcedHigh => AgentConfig { interference: Interference::Pinned(FORCED_HIGH), ..base },
            Arm::NoHold => AgentConfig { bistable: false, ..base },
            Arm::Spike => AgentConfig { interference: Interference::Spiked, ..base },
            Arm::SpikeNoHold => AgentConfig { interference: Interference::Spiked, bistable: false, ..base },
            Arm::Strong => AgentConfig {
                release_threshold_milli: RELEASE_THRESHOLD_MILLI + 200,
                automatic_closure: false,
                ..base
            },
        }
    }
}
