//! Budgets and bars, registered before anything runs. Clauses: CUR-4, CUR-5.

use bem_games::rulegrid::config::{ConfigError, DIFFICULTY_MAX, GridConfig};

/// Budgets and bars, registered before anything runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolConfig {
    /// Episodes of the first, second and third phase.
    pub budgets: (u32, u32, u32),
    /// Episodes between probes.
    pub probe_every: u32,
    /// Share of a budget after which a missing commitment aborts, in thousandths.
    pub abort_at_milli: u32,
    /// Probes that must pass in a row.
    pub stable_probes: u32,
    /// Competence below which no probe passes, in thousandths.
    pub competence_floor_milli: i64,
    /// Median committed steps that the ratchet asks for.
    pub ratchet_committed: u32,
    /// Episodes the ratchet looks back on.
    pub ratchet_episodes: usize,
    /// Ticks after the first phase from which each difficulty may begin.
    pub introduction: [u64; DIFFICULTY_MAX + 1],
    /// Whether the one threshold step is allowed.
    pub allow_step: bool,
    /// The easy grid, if not the registered one (used to look for grids on which the gate fails).
    pub easy_grid: GridConfig,
}

impl Default for ProtocolConfig {
    fn default() -> ProtocolConfig {
        ProtocolConfig {
            budgets: (40, 100, 50),
            probe_every: 4,
            abort_at_milli: 600,
            stable_probes: 3,
            competence_floor_milli: 500,
            ratchet_committed: 100,
            ratchet_episodes: 5,
            introduction: [0, 2_000, 4_000, 6_000, 8_000],
            allow_step: true,
            easy_grid: GridConfig::of_difficulty(0),
        }
    }
}

impl ProtocolConfig {
    /// Checks every field.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.easy_grid.check()?;
        let (first, second, third) = self.budgets;
        for (field, value) in [("budgets.0", first), ("budgets.1", second), ("budgets.2", third)] {
            if !(1..=100_000).contains(&value) {
                return Err(ConfigError::refused(field, value, "1 to 100000 episodes"));
            }
        }
        if self.probe_every == 0 || first < self.probe_every {
            return Err(ConfigError::refused("probe_every", self.probe_every, "1 up to the first budget"));
        }
        if 1_000 < self.abort_at_milli {
            return Err(ConfigError::refused("abort_at_milli", self.abort_at_milli, "0 to 1000"));
        }
        Ok(())
    }

    pub(super) fn abort_episode(&self, budget: u32) -> u32 {
        (budget * self.abort_at_milli).div_ceil(1_000)
    }
}
