//! The static cost of a whole step: what it can cost at most, in work units, before anything has run.
//!
//! A work unit is a gate, a word read or written, a probe of a table or a comparison (decision D-13); what arithmetic
//! costs is a fixed number of them. The bounds hold for every step, whatever was learned and however long the
//! episode. Must not know nanoseconds: the benchmark puts them beside. Clauses: VM-5, VM-14, D-13.

use crate::config::{ChoiceRule, GenesisConfig, RouterKind};
use crate::route::directory::DECLARED_MAX;
use crate::trace::RECORDS_PER_STEP;
use bem_base::limits::{ACTIONS_MAX, ARMS_MAX, OBSERVATION_BITS_MAX};

/// One index: two quotients, a logarithm, a root and the words they are read from and written to.
const INDEX: u32 = 16;
/// The weight of one arm in a softmax: a quotient and eight terms of a series.
const SOFTMAX_WEIGHT: u32 = 12;
/// The chance of one arm under Tsallis-INF: thirteen quotients, squares and cubes.
const TSALLIS_WEIGHT: u32 = 52;
/// Words of ENV, WORK and TRACE_META that a step publishes.
const PUBLISHED_WORDS: u32 = 16;
/// Words of statistics that one outcome changes, and both sums of the change detector.
const STATISTICS_WORDS: u32 = 8;

/// What each part of a step costs at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "Cost_step")]
pub struct StepCost {
    /// Observation in, action out, words published.
    pub observe: u32,
    /// Signature, directory and search.
    #[doc(alias = "C_ANN")]
    pub route: u32,
    /// The choice among the candidates.
    #[doc(alias = "C_bandit_choose")]
    pub choose: u32,
    /// The expert's circuit.
    #[doc(alias = "C_expert_batch")]
    pub expert: u32,
    /// Records appended.
    pub trace: u32,
    /// Statistics, indices and the next best arm.
    #[doc(alias = "C_stats")]
    pub learn: u32,
}

impl StepCost {
    /// The most that a step can cost under this configuration, with experts of this cost.
    pub fn new(config: &GenesisConfig, expert: u32) -> StepCost {
        let arms = ARMS_MAX as u32;
        let searched = match config.router {
            RouterKind::Directory => 0,
            // Every descriptor is compared twice, word by word: once to find the radius, once to pick.
            RouterKind::Hamming => {
                let words = config.feature_bits.div_ceil(64);
                2 * words * config.search_depth_max * config.search_degree_max
            }
        };
        let (choose, sampler) = match config.choice_rule {
            ChoiceRule::UcbV | ChoiceRule::AsPrinted => (arms, 0),
            ChoiceRule::Softmax => (arms * SOFTMAX_WEIGHT, 0),
            ChoiceRule::TsallisInf => (2 * arms, arms * TSALLIS_WEIGHT),
        };
        StepCost {
            observe: (OBSERVATION_BITS_MAX + ACTIONS_MAX.ilog2() as usize) as u32 + PUBLISHED_WORDS,
            route: DECLARED_MAX as u32 + 1 + searched,
            choose,
            // Every candidate that survives the choice may be evaluated, though only the first acts.
            expert: expert.saturating_mul(config.candidates_kept),
            trace: 2 * RECORDS_PER_STEP as u32,
            // One index for the arm that acted, one in turn, and the minimum; at an episode's end the same again.
            learn: 2 * (2 * INDEX + arms + STATISTICS_WORDS + sampler),
        }
    }

    /// All parts together.
    pub fn total(&self) -> u32 {
        let parts = [self.observe, self.route, self.choose, self.expert, self.trace, self.learn];
        parts.into_iter().fold(0, u32::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_and_router_adds_its_part_and_the_parts_add_up() {
        let plain = StepCost::new(&GenesisConfig::default(), 100);
        assert_eq!(plain.total() - plain.expert, StepCost::new(&GenesisConfig::default(), 0).total());
        let config = GenesisConfig { router: RouterKind::Hamming, ..GenesisConfig::default() };
        let searched = StepCost::new(&config, 100);
        assert_eq!(searched.route - plain.route, 2 * 2 * 8 * 64);
        for choice_rule in [ChoiceRule::Softmax, ChoiceRule::TsallisInf] {
            let config = GenesisConfig { choice_rule, ..GenesisConfig::default() };
            assert!(plain.total() < StepCost::new(&config, 100).total());
        }
        // The largest configuration does not overflow.
        let config =
            GenesisConfig { search_depth_max: 64, search_degree_max: 1_024, feature_bits: 256, ..config };
        assert!(StepCost::new(&config, u32::MAX).total() == u32::MAX);
    }
}
