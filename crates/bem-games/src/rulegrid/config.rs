//! What a grid is made of, which of its features are on, and the five difficulties of the curriculum.
//!
//! A feature that is off draws no random number, so that switching it off equals not having it. Clause: CUR-3.

/// How far apart two cells are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The larger of the two coordinate differences.
    Chebyshev,
    /// Their sum.
    Manhattan,
}

impl Metric {
    /// Reads a name; others are refused.
    pub fn parse(name: &str) -> Result<Metric, ConfigError> {
        match name {
            "chebyshev" => Ok(Metric::Chebyshev),
            "manhattan" => Ok(Metric::Manhattan),
            _ => Err(ConfigError::refused("tolerance.metric", name, "chebyshev or manhattan")),
        }
    }
}

/// What a contact at a distance is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// Everything within the band counts in full.
    Hard,
    /// exp(-distance / scale), from a table in thousandths.
    Graded {
        /// Distance, in thousandths of a cell, at which the credit has fallen to 1/e.
        scale_milli: u32,
    },
}

/// The adaptive tolerance band: how near counts as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// Share of the grid's size, in thousandths, unless `cells` says otherwise.
    pub fraction_milli: u32,
    /// A fixed radius.
    pub cells: Option<u32>,
    /// How distance is measured.
    pub metric: Metric,
    /// What a contact is worth.
    pub credit: Credit,
}

/// Counter-evidence: the value of the pending target degrades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterEvidence {
    /// Ticks between chances.
    pub interval: u32,
    /// Chance in thousandths.
    pub chance_milli: u32,
    /// How much is lost, in thousandths.
    pub step_milli: u32,
    /// Below which it does not fall.
    pub floor_milli: u32,
    /// Only while a sequence is in progress.
    pub requires_persistent_rule: bool,
}

impl Default for CounterEvidence {
    fn default() -> CounterEvidence {
        CounterEvidence {
            interval: 50,
            chance_milli: 500,
            step_milli: 200,
            floor_milli: 0,
            requires_persistent_rule: true,
        }
    }
}

/// Two kinds of resources that must both be there for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DualCue {
    /// The two kinds.
    pub tags: (u8, u8),
    /// Ticks before which taking one makes the episode invalid.
    pub active_ticks_min: u32,
    /// Put a taken one back instead (diagnosis only).
    pub replace: bool,
}

/// A reward that is paid only after waiting in the band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Ticks to wait.
    pub ticks: u32,
    /// Whether a resource appears nearby when the wait begins.
    pub distractor: bool,
}

/// Everything that fixes a grid but its seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridConfig {
    /// Cells along a side, walls included: 6 to 32.
    pub size: u32,
    /// Ticks of an episode.
    pub steps: u32,
    /// Waypoints of a sequence.
    pub waypoints: u32,
    /// Least and greatest distance to the previous waypoint.
    pub waypoint_distance: (u32, u32),
    /// Hazards.
    pub hazards: u32,
    /// Resources, shared among the kinds that are active.
    pub resources: u32,
    /// Spawn weights of the two kinds; a second weight of zero means one kind only.
    pub resource_weights: (u32, u32),
    /// Ticks after which a kind may spawn, counted over all episodes and looked at on reset only.
    pub introduction: (u64, u64),
    /// Harm of a hazard, in thousandths.
    pub hazard_harm: i32,
    /// Benefit of a resource, in thousandths.
    pub resource_benefit: i32,
    /// Reward of a waypoint, and of the last one.
    pub waypoint_rewards: (i32, i32),
    /// Ticks until a pending waypoint counts as missed.
    pub timeout: u32,
    /// Ticks between drifts, and the chance of each hazard in thousandths.
    pub drift: (u32, u32),
    /// Contamination per visit (0: off) and the level at which a cell harms, in thousandths.
    pub contamination: (u32, u32),
    /// Energy lost per tick, in thousandths.
    pub energy_decay: i32,
    /// Adaptive tolerance band.
    pub tolerance: Option<Tolerance>,
    /// Counter-evidence.
    pub counter_evidence: Option<CounterEvidence>,
    /// Dual cue.
    pub dual_cue: Option<DualCue>,
    /// Delayed reward.
    pub delay: Option<Delay>,
}

/// Why a grid cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} cannot be {value}: it must be {allowed}")]
pub struct ConfigError {
    /// Which field.
    pub field: &'static str,
    /// What it was.
    pub value: String,
    /// What it may be.
    pub allowed: String,
}

impl ConfigError {
    /// A field with a value that is not allowed.
    pub fn refused(field: &'static str, value: impl ToString, allowed: &str) -> ConfigError {
        ConfigError { field, value: value.to_string(), allowed: allowed.to_string() }
    }
}

/// The hardest difficulty; the easiest is 0.
pub const DIFFICULTY_MAX: usize = 4;

impl GridConfig {
    /// The grid of one difficulty, from 0 (easy) to [`DIFFICULTY_MAX`] (the target).
    pub fn of_difficulty(difficulty: usize) -> GridConfig {
        let pick = |values: [u32; 5]| values[difficulty.min(DIFFICULTY_MAX)];
        GridConfig {
            size: 10,
            steps: 200,
            waypoints: pick([2, 2, 3, 3, 3]),
            waypoint_distance: (pick([2, 3, 3, 4, 4]), pick([4, 5, 6, 6, 7])),
            hazards: pick([1, 2, 2, 3, 4]),
            resources: pick([2, 2, 2, 2, 3]),
            resource_weights: (1, 0),
            introduction: (0, 0),
            hazard_harm: 20,
            resource_benefit: 50,
            waypoint_rewards: (200, 800),
            timeout: 20,
            drift: (5, pick([0, 0, 150, 300, 300])),
            contamination: (0, 2_000),
            energy_decay: 10,
            tolerance: Some(Tolerance {
                fraction_milli: pick([200, 200, 150, 100, 100]),
                cells: None,
                metric: Metric::Chebyshev,
                credit: Credit::Hard,
            }),
            counter_evidence: None,
            dual_cue: None,
            delay: None,
        }
    }

    /// The radius within which a waypoint counts as reached: halves round to the even neighbour.
    pub fn tolerance_cells(&self) -> Option<u32> {
        let tolerance = self.tolerance?;
        Some(tolerance.cells.unwrap_or_else(|| {
            let scaled = tolerance.fraction_milli * self.size;
            let (whole, rest) = (scaled / 1_000, scaled % 1_000);
            whole + u32::from(500 < rest || rest == 500 && whole % 2 == 1)
        }))
    }

    /// Checks every field; the first breach is named.
    pub fn check(&self) -> Result<(), ConfigError> {
        let interior = (self.size.saturating_sub(2)).pow(2);
        let objects = self.waypoints + self.hazards + self.resources + 1;
        if !(6..=32).contains(&self.size) {
            return Err(ConfigError::refused("size", self.size, "6 to 32"));
        }
        if self.waypoints == 0 {
            return Err(ConfigError::refused(
                "waypoints",
                0,
                "at least 1: without waypoints nothing can be committed to",
            ));
        }
        if interior < 2 * objects {
            let allowed = format!("at most half of the {interior} inner cells");
            return Err(ConfigError::refused("waypoints + hazards + resources", objects, &allowed));
        }
        if self.steps == 0 || 65_536 < self.steps {
            return Err(ConfigError::refused("steps", self.steps, "1 to 65536"));
        }
        if self.waypoint_distance.0 == 0 || self.waypoint_distance.1 < self.waypoint_distance.0 {
            let value = format!("{:?}", self.waypoint_distance);
            return Err(ConfigError::refused("waypoint_distance", value, "from 1 on, least first"));
        }
        if self.drift.0 == 0 {
            return Err(ConfigError::refused("drift interval", 0, "at least 1"));
        }
        let chances = [("drift chance", self.drift.1), ("resource weights", self.resource_weights.0)];
        for (field, value) in chances {
            if 1_000 < value {
                return Err(ConfigError::refused(field, value, "0 to 1000"));
            }
        }
        if let Some(evidence) = self.counter_evidence
            && (evidence.interval == 0 || 1_000 < evidence.chance_milli || 1_000 < evidence.floor_milli)
        {
            let value = format!("{evidence:?}");
            return Err(ConfigError::refused(
                "counter_evidence",
                value,
                "an interval from 1 on, thousandths up to 1000",
            ));
        }
        if let Some(cue) = self.dual_cue {
            if self.resource_weights.1 == 0 {
                return Err(ConfigError::refused(
                    "dual_cue",
                    "on",
                    "off unless two kinds of resources exist",
                ));
            }
            if cue.tags.0 == cue.tags.1 || 1 < cue.tags.0.max(cue.tags.1) {
                let value = format!("{:?}", cue.tags);
                return Err(ConfigError::refused("dual_cue.tags", value, "two different kinds, 0 and 1"));
            }
        }
        if let Some(delay) = self.delay
            && delay.ticks == 0
        {
            return Err(ConfigError::refused(
                "delay.ticks",
                0,
                "at least 1; leave the delay out to switch it off",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_to_the_even_neighbour() {
        let tolerance = |fraction_milli| {
            let mut config = GridConfig::of_difficulty(0);
            config.tolerance = config.tolerance.map(|tolerance| Tolerance { fraction_milli, ..tolerance });
            config.tolerance_cells()
        };
        assert_eq!([150, 250, 200, 100, 0].map(tolerance), [2, 2, 2, 1, 0].map(Some));
    }

    #[test]
    fn every_difficulty_is_a_valid_grid() {
        for difficulty in 0..=DIFFICULTY_MAX {
            assert_eq!(GridConfig::of_difficulty(difficulty).check(), Ok(()));
        }
    }

    #[test]
    fn bad_grids_are_refused_by_field() {
        let easy = || GridConfig::of_difficulty(0);
        let message = |config: GridConfig| config.check().unwrap_err().to_string();
        assert!(message(GridConfig { waypoints: 0, ..easy() }).starts_with("waypoints cannot be 0"));
        assert!(
            message(GridConfig { size: 5, ..easy() }).starts_with("size cannot be 5: it must be 6 to 32")
        );
        let cue = DualCue { tags: (0, 1), active_ticks_min: 10, replace: false };
        assert!(message(GridConfig { dual_cue: Some(cue), ..easy() }).starts_with("dual_cue cannot be on"));
        let same = DualCue { tags: (1, 1), ..cue };
        let twice = GridConfig { dual_cue: Some(same), resource_weights: (1, 1), ..easy() };
        assert!(message(twice).starts_with("dual_cue.tags cannot be (1, 1)"));
        assert!(Metric::parse("euclidean").is_err());
    }
}
