//! What must hold between parameters that are fine alone.
//!
//! Clauses: MEM-3, VM-5.

use super::value::Value;
use super::{ConfigError, GenesisConfig, RouterKind};
use crate::cost::StepCost;

impl GenesisConfig {
    /// Every range, and the relations between parameters.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        let relation = |holds: bool, field: &'static str, value: String, relation: &'static str| {
            if holds { Ok(()) } else { Err(ConfigError::Relation { field, value, relation }) }
        };
        relation(
            self.buckets.is_power_of_two(),
            "buckets",
            self.buckets.show(),
            "it must be a power of two",
        )?;
        relation(
            self.router == RouterKind::Directory
                || self.expert_slots <= self.search_depth_max * self.search_degree_max,
            "search_depth_max",
            self.search_depth_max.show(),
            "with router = \"hamming\", search_depth_max times search_degree_max must reach expert_slots, or some \
             experts could never be found",
        )?;
        relation(
            self.candidates_kept <= self.candidates_max,
            "candidates_kept",
            self.candidates_kept.show(),
            "it must not exceed candidates_max",
        )?;
        relation(
            self.expert_cost_max <= self.step_cost_max,
            "expert_cost_max",
            self.expert_cost_max.show(),
            "it must not exceed step_cost_max",
        )?;
        relation(
            StepCost::new(self, 0).total() <= self.step_cost_max,
            "step_cost_max",
            self.step_cost_max.show(),
            "a step costs more than this before any expert has acted, with this router and this rule",
        )?;
        relation(
            self.mutation_depth_max <= self.tree_depth_max,
            "mutation_depth_max",
            self.mutation_depth_max.show(),
            "it must not exceed tree_depth_max",
        )?;
        relation(
            self.templates_per_band <= self.templates_max,
            "templates_per_band",
            self.templates_per_band.show(),
            "it must not exceed templates_max",
        )?;
        relation(
            self.reward_min < self.reward_max,
            "reward_min",
            self.reward_min.show(),
            "it must be below reward_max",
        )?;
        relation(
            self.prior_min < self.prior_max,
            "prior_min",
            self.prior_min.show(),
            "it must be below prior_max",
        )?;
        relation(
            self.meta_reward_min < self.meta_reward_max,
            "meta_reward_min",
            self.meta_reward_min.show(),
            "it must be below meta_reward_max",
        )?;
        relation(
            self.improvement_threshold_min <= self.improvement_threshold
                && self.improvement_threshold <= self.improvement_threshold_max,
            "improvement_threshold",
            self.improvement_threshold.show(),
            "it must lie between improvement_threshold_min and improvement_threshold_max",
        )?;
        relation(
            self.words().len() <= self.words_config as usize,
            "words_config",
            self.words_config.show(),
            "the configuration itself does not fit into it",
        )
    }
}
