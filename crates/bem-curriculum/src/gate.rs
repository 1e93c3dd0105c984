//! The commitment gate: committed while the running variance of the model's error is below a threshold.
//!
//! The variance is measured whether committed or not, in every phase. Breath and urgency only ever lower the
//! threshold, never raise it. Every write to the variance says who made it. Clause: CUR-1.

use crate::fraction::{ONE, THRESHOLD, VARIANCE_RATE, VARIANCE_START, moving_average};
use crate::world_model::Surprise;
use bem_base::encode::{DecodeError, Reader, Writer};

/// How the threshold breathes and yields to urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateConfig {
    /// The registered threshold.
    pub threshold: i64,
    /// Ticks of a breath; 0 for none.
    pub breath_period: u32,
    /// Ticks at the end of each breath in which the threshold is three quarters.
    pub breath_duration: u32,
    /// Weight of the harm level in urgency.
    pub urgency_weight: i64,
}

impl Default for GateConfig {
    fn default() -> GateConfig {
        GateConfig { threshold: THRESHOLD, breath_period: 50, breath_duration: 5, urgency_weight: 0 }
    }
}

/// Who wrote the running variance, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the count of the writer of its name")]
pub struct Provenance {
    pub learner: u64,
    pub forced: u64,
    pub injected: u64,
}

/// The gate's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Its constants.
    pub config: GateConfig,
    variance: i64,
    harm_level: i64,
    provenance: Provenance,
}

impl Gate {
    /// A gate that has seen nothing.
    pub fn new(config: GateConfig) -> Gate {
        Gate { config, variance: VARIANCE_START, harm_level: 0, provenance: Provenance::default() }
    }

    /// The running variance.
    #[doc(alias = "running_variance")]
    pub fn variance(&self) -> i64 {
        self.variance
    }

    /// The harm level, an average of recent harm.
    pub fn harm_level(&self) -> i64 {
        self.harm_level
    }

    /// Who wrote the variance so far.
    pub fn provenance(&self) -> Provenance {
        self.provenance
    }

    /// Takes a measured error in, if there was something to predict and nothing broke the flow of perception.
    pub fn measure(&mut self, surprise: Surprise, discontinuity: bool) {
        if surprise.informative && !discontinuity {
            self.variance = moving_average(self.variance, surprise.error, VARIANCE_RATE);
            self.provenance.learner += 1;
        }
    }

    /// Notes that the error measured next does not come from the learner.
    pub fn note_injection(&mut self) {
        self.provenance.injected += 1;
    }

    /// Pins the variance: a forced arm.
    pub fn force(&mut self, variance: i64) {
        self.variance = variance;
        self.provenance.forced += 1;
    }

    /// Replaces the variance for one look, returning the old one: a spike.
    pub fn inject(&mut self, variance: i64) -> i64 {
        self.provenance.injected += 1;
        std::mem::replace(&mut self.variance, variance)
    }

    /// Puts a variance back after [`Gate::inject`].
    pub fn restore(&mut self, variance: i64) {
        self.variance = variance;
    }

    /// Follows the harm of a tick, in thousandths.
    pub fn feel(&mut self, harm_milli: i32) {
        let harm = i64::from(harm_milli) * ONE / 1_000;
        self.harm_level = moving_average(self.harm_level, harm, ONE / 10);
    }

    /// The threshold at this tick of the episode.
    pub fn effective_threshold(&self, tick: u32) -> i64 {
        let GateConfig { threshold, breath_period, breath_duration, urgency_weight } = self.config;
        let breathing = 0 < breath_period && breath_period - breath_duration <= tick % breath_period;
        let swept = if breathing { threshold * 3 / 4 } else { threshold };
        let urgency = ((urgency_weight * self.harm_level) >> 16).clamp(0, ONE / 2);
        (swept * (ONE - urgency)) >> 16
    }

    /// Whether the gate is open: strictly below the threshold.
    pub fn is_open(&self, tick: u32) -> bool {
        self.variance < self.effective_threshold(tick)
    }

    /// Writes the state.
    pub fn encode(&self, writer: &mut Writer) {
        writer.i64(self.config.threshold);
        for value in [self.variance, self.harm_level] {
            writer.i64(value);
        }
        for count in [self.provenance.learner, self.provenance.forced, self.provenance.injected] {
            writer.u64(count);
        }
    }

    /// Reads the state into a gate with these constants.
    pub fn decode(config: GateConfig, reader: &mut Reader<'_>) -> Result<Gate, DecodeError> {
        let threshold = reader.i64()?;
        let (variance, harm_level) = (reader.i64()?, reader.i64()?);
        let provenance =
            Provenance { learner: reader.u64()?, forced: reader.u64()?, injected: reader.u64()? };
        let config = GateConfig { threshold, ..config };
        Ok(Gate { config, variance, harm_level, provenance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Surprise = Surprise { error: ONE, informative: true };

    #[test]
    fn breath_and_urgency_only_lower_the_threshold() {
        let mut gate = Gate::new(GateConfig { urgency_weight: 4 * ONE, ..GateConfig::default() });
        assert_eq!(gate.effective_threshold(0), 26_214);
        assert_eq!(gate.effective_threshold(44), 26_214);
        assert_eq!(gate.effective_threshold(45), 19_660);
        for harm in [0, 20, 500, 1_000] {
            gate.feel(harm);
            for tick in 0..100 {
                let effective = gate.effective_threshold(tick);
                assert!(effective <= THRESHOLD && THRESHOLD * 3 / 8 <= effective + 1, "{effective}");
            }
        }
    }

    #[test]
    fn a_variance_equal_to_the_threshold_is_not_committed() {
        let mut gate = Gate::new(GateConfig::default());
        gate.restore(THRESHOLD);
        assert!(!gate.is_open(0));
        gate.restore(THRESHOLD - 1);
        assert!(gate.is_open(0));
    }

    #[test]
    fn ticks_without_information_and_discontinuities_change_nothing() {
        let mut gate = Gate::new(GateConfig::default());
        for _ in 0..1_000 {
            gate.measure(Surprise { error: 0, informative: false }, false);
            gate.measure(FULL, true);
        }
        assert_eq!((gate.variance(), gate.provenance().learner), (VARIANCE_START, 0));
        gate.measure(FULL, false);
        assert!(VARIANCE_START < gate.variance());
    }

    #[test]
    fn every_writer_is_counted() {
        let mut gate = Gate::new(GateConfig::default());
        gate.force(66);
        let before = gate.inject(29_491);
        gate.restore(before);
        assert_eq!(gate.provenance(), Provenance { learner: 0, forced: 1, injected: 1 });
    }
}
