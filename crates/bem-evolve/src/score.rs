//! The improvement score, its threshold, and what is remembered about scores.
//!
//! The score of a patch is a weighted sum of what was *measured*: the lower confidence bound of the gain in
//! return, gates saved, fewer BAD episodes, novelty (decision D-23). Gates count one by one where behaviour is
//! proven unchanged, so that one gate less is worth one weight; elsewhere they count as a share of what an expert
//! may cost, because there they only break ties. The threshold moves within the bounds of the configuration: up
//! when nearly everything passes, down when nearly nothing does. Clauses: SCC-8, SCC-12; decision D-23.

use crate::patch::PatchKind;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use bem_machine::config::GenesisConfig;

/// What was measured of one patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Lower confidence bound of the gain in return, over the range of returns.
    pub return_gain: Fixed,
    /// Gates that go less gates that come.
    pub gates_saved: i64,
    /// Whether behaviour is proven unchanged.
    pub behaviour_is_equal: bool,
    /// Fewer BAD episodes, as a share of the pairs.
    pub safety_gain: Fixed,
    /// What is new about it, from zero to one.
    pub novelty: Fixed,
}

/// Weights of the score, from the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Of return.
    #[doc(alias = "w_R")]
    pub regret: Fixed,
    /// Of cost.
    #[doc(alias = "w_C")]
    pub cost: Fixed,
    /// Of safety.
    #[doc(alias = "w_S")]
    pub safety: Fixed,
    /// Of novelty.
    #[doc(alias = "w_N")]
    #[doc(alias = "w_I")]
    pub novelty: Fixed,
}

/// What became of a proposer's patches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProposerRecord {
    /// Applied.
    pub applied: u32,
    /// Rejected, by proof or by measure.
    pub rejected: u32,
    /// Applied and taken back; weighs as much as eight rejections.
    pub rolled_back: u32,
}

impl ProposerRecord {
    /// How far to trust the next proposal: a share of successes, one half if nothing is known.
    pub fn trust(&self) -> Fixed {
        let kept = i64::from(self.applied.saturating_sub(self.rolled_back));
        let failed = i64::from(self.rejected) + 8 * i64::from(self.rolled_back);
        Fixed::from_ratio(kept + 1, kept + failed + 2)
    }
}

/// What is remembered about scores. Invariant: the threshold lies within the bounds of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "PoX state")]
pub struct PoxState {
    weights: Weights,
    threshold: Fixed,
    threshold_bounds: (Fixed, Fixed),
    newest: Fixed,
    cost_max: u32,
    score_average: Fixed,
    yield_average: Fixed,
    last_high_score_step: u64,
    decided: u64,
    records: [ProposerRecord; PatchKind::ALL.len()],
    /// What an approval may add to a score; lent, and no part of what is saved.
    approval: Fixed,
}

/// A score this many times the average is a high one.
const HIGH_SCORE_FACTOR: i64 = 2;
/// The threshold moves by one part in this many.
const THRESHOLD_STEP: u64 = 16;

impl PoxState {
    /// The state at the start of a run.
    pub fn new(config: &GenesisConfig) -> PoxState {
        PoxState {
            weights: Weights {
                regret: config.regret_weight,
                cost: config.cost_weight,
                safety: config.safety_weight,
                novelty: config.novelty_weight,
            },
            threshold: config.improvement_threshold,
            threshold_bounds: (config.improvement_threshold_min, config.improvement_threshold_max),
            newest: config.improvement_weight,
            cost_max: config.expert_cost_max,
            score_average: Fixed::ZERO,
            yield_average: Fixed::HALF,
            last_high_score_step: 0,
            decided: 0,
            records: [ProposerRecord::default(); PatchKind::ALL.len()],
            approval: Fixed::ZERO,
        }
    }

    /// The score of what was measured.
    pub fn score(&self, measured: &Measured) -> Fixed {
        let saved = measured.gates_saved.clamp(-65_536, 65_536);
        let cost = if measured.behaviour_is_equal {
            Fixed::from_int(saved as i32)
        } else {
            Fixed::from_ratio(saved, i64::from(self.cost_max))
        };
        let terms = [
            (self.weights.regret, measured.return_gain),
            (self.weights.cost, cost),
            (self.weights.safety, measured.safety_gain),
            (self.weights.novelty, measured.novelty.clamp(Fixed::ZERO, Fixed::ONE)),
        ];
        terms.iter().fold(Fixed::ZERO, |sum, (weight, value)| sum.plus_saturating(weight.mul_floor(*value)))
    }

    /// The score that a patch must reach now.
    #[doc(alias = "D_threshold")]
    pub fn threshold(&self) -> Fixed {
        self.threshold
    }

    /// What an approval may add to the score of a patch that is measured to be no worse; nothing where nobody is asked.
    #[doc(alias = "human_weight_pox")]
    pub fn approval(&self) -> Fixed {
        self.approval
    }

    /// Somebody may approve what is decided from now on, and that adds at most this to a score.
    pub fn lend_approval(&mut self, approval: Fixed) {
        self.approval = approval.max(Fixed::ZERO);
    }

    /// Books the decision about one patch that reached the gate, and moves the averages and the threshold.
    pub fn book(&mut self, kind: PatchKind, score: Fixed, applied: bool, step: u64) {
        if self.score_average.mul_int(HIGH_SCORE_FACTOR) < score && applied {
            self.last_high_score_step = step;
        }
        let average = |old: Fixed, new: Fixed| old.plus(new.minus(old).mul_floor(self.newest));
        // A score is bounded before it is averaged, so that one outlier cannot stand for a whole run.
        self.score_average = average(self.score_average, score.clamp(Fixed::from_int(-1), Fixed::ONE));
        self.yield_average = average(self.yield_average, if applied { Fixed::ONE } else { Fixed::ZERO });
        self.decided += 1;
        let record = &mut self.records[kind as usize];
        *if applied { &mut record.applied } else { &mut record.rejected } += 1;
        let step = self.threshold.div_count_floor(THRESHOLD_STEP).max(Fixed::from_raw(1));
        let (low, high) = self.threshold_bounds;
        if Fixed::from_ratio(9, 10) < self.yield_average {
            self.threshold = self.threshold.plus(step).clamp(low, high);
        } else if self.yield_average < Fixed::from_ratio(1, 10) {
            self.threshold = self.threshold.minus(step).clamp(low, high);
        }
    }

    /// Books a decision that leaves averages and threshold as they are.
    pub fn book_aside(&mut self, kind: PatchKind, applied: bool) {
        let record = &mut self.records[kind as usize];
        *if applied { &mut record.applied } else { &mut record.rejected } += 1;
    }

    /// Books that a patch was rejected before it reached the gate.
    pub fn book_rejected(&mut self, kind: PatchKind) {
        self.records[kind as usize].rejected += 1;
    }

    /// Books that an applied patch of this kind was taken back.
    pub fn book_rolled_back(&mut self, kind: PatchKind) {
        self.records[kind as usize].rolled_back += 1;
    }

    /// What became of the patches of a kind.
    pub fn record(&self, kind: PatchKind) -> ProposerRecord {
        self.records[kind as usize]
    }

    /// Moving average of scores.
    pub fn score_average(&self) -> Fixed {
        self.score_average
    }

    /// Moving average of the share of patches that were applied.
    pub fn yield_average(&self) -> Fixed {
        self.yield_average
    }

    /// Steps since the score of an applied patch stood out, or since the beginning where none has: how saturated the search for
    /// structure is.
    pub fn steps_since_high_score(&self, step: u64) -> u64 {
        step.saturating_sub(self.last_high_score_step)
    }

    /// Writes what changes over a run; the rest follows from the configuration.
    pub fn encode(&self, writer: &mut Writer) {
        writer.i64(self.threshold.to_raw());
        writer.i64(self.score_average.to_raw());
        writer.i64(self.yield_average.to_raw());
        writer.u64(self.last_high_score_step);
        writer.u64(self.decided);
        for record in &self.records {
            writer.u32(record.applied);
            writer.u32(record.rejected);
            writer.u32(record.rolled_back);
        }
    }

    /// Reads it back.
    pub fn decode(config: &GenesisConfig, reader: &mut Reader<'_>) -> Result<PoxState, DecodeError> {
        let start = reader.clone();
        let mut state = PoxState::new(config);
        state.threshold = Fixed::from_raw(reader.i64()?);
        state.score_average = Fixed::from_raw(reader.i64()?);
        state.yield_average = Fixed::from_raw(reader.i64()?);
        state.last_high_score_step = reader.u64()?;
        state.decided = reader.u64()?;
        for record in &mut state.records {
            record.applied = reader.u32()?;
            record.rejected = reader.u32()?;
            record.rolled_back = reader.u32()?;
        }
        let (low, high) = state.threshold_bounds;
        let unit = Fixed::ZERO..=Fixed::ONE;
        let bounded = (Fixed::ONE.negated()..=Fixed::ONE).contains(&state.score_average);
        if !(low..=high).contains(&state.threshold) || !unit.contains(&state.yield_average) || !bounded {
            return Err(start.error("an improvement state outside its bounds"));
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    #[test]
    fn an_average_that_has_no_negative_is_refused() {
        let config = GenesisConfig::default();
        let mut writer = Writer::new();
        PoxState::new(&config).encode(&mut writer);
        let mut bytes = writer.into_bytes();
        bytes[8..16].copy_from_slice(&i64::MIN.to_le_bytes());
        assert!(PoxState::decode(&config, &mut Reader::new(&bytes)).is_err());
    }

    #[test]
    fn one_gate_less_at_equal_behaviour_reaches_the_threshold_and_breaks_only_ties_elsewhere() {
        let pox = PoxState::new(&GenesisConfig::default());
        let mut measured = Measured {
            return_gain: Fixed::ZERO,
            gates_saved: 1,
            behaviour_is_equal: true,
            safety_gain: Fixed::ZERO,
            novelty: Fixed::ZERO,
        };
        assert!(pox.threshold() <= pox.score(&measured));
        measured.behaviour_is_equal = false;
        assert!(pox.score(&measured) < pox.threshold());
    }

    #[test]
    fn the_threshold_stays_within_its_bounds_whatever_happens() {
        let config = GenesisConfig::default();
        let mut pox = PoxState::new(&config);
        let mut prng = Prng::stream(1, "threshold");
        for phase in 0..8 {
            for step in 0..500 {
                let applied = if phase % 2 == 0 { true } else { prng.below(50) == 0 };
                let score = Fixed::from_raw(prng.next_u64() as i64);
                pox.book(PatchKind::Synthesize, score, applied, step);
                let bounds = config.improvement_threshold_min..=config.improvement_threshold_max;
                assert!(bounds.contains(&pox.threshold()));
            }
            let end = if phase % 2 == 0 {
                config.improvement_threshold_max
            } else {
                config.improvement_threshold_min
            };
            assert_eq!(pox.threshold(), end, "phase {phase}");
        }
        let mut writer = Writer::new();
        pox.encode(&mut writer);
        assert_eq!(PoxState::decode(&config, &mut Reader::new(writer.as_bytes())), Ok(pox));
    }

    #[test]
    fn a_high_score_is_remembered_and_saturation_grows_from_there() {
        let mut pox = PoxState::new(&GenesisConfig::default());
        pox.book(PatchKind::Split, Fixed::HALF, true, 100);
        pox.book(PatchKind::Split, Fixed::from_raw(1), true, 200);
        assert_eq!(pox.steps_since_high_score(1_000), 900);
        assert!(Fixed::ZERO < pox.score_average());
    }

    #[test]
    fn a_patch_that_was_taken_back_costs_its_proposer_more_than_a_rejection() {
        let mut pox = PoxState::new(&GenesisConfig::default());
        let fresh = pox.record(PatchKind::Merge).trust();
        pox.book_rejected(PatchKind::Merge);
        let rejected = pox.record(PatchKind::Merge).trust();
        pox.book(PatchKind::Macro, Fixed::HALF, true, 1);
        pox.book_rolled_back(PatchKind::Macro);
        let rolled_back = pox.record(PatchKind::Macro).trust();
        assert!(rolled_back < rejected && rejected < fresh);
    }
}
