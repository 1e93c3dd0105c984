//! Where the incumbent keeps failing, and where the log contradicts it: situations that a teacher should show more often.
//!
//! Among logged episodes that the incumbent played, or would have played the same way, those below the declared maximum
//! have failed; each names the last of its worst steps, and the observation that is named most often is the
//! counterexample. The rows of the log that a SYNTH patch carries are what verification holds a circuit against; one of them
//! in which it does something else is a contradiction. Both are derived from the log when they are asked for, so that nothing is kept. Must not know what the bits
//! mean. Clauses: GLE-10, SCC-13.

use crate::learner::Learner;
use crate::learner::claim::contradicted;
use bem_base::environment::Bits;
use bem_synth::experience::Episode;
use bem_synth::propose;
use core::cmp::Reverse;
use std::collections::BTreeMap;

/// The newest steps of the log that are looked at.
const STEPS_MAX: usize = 16_384;

impl Learner {
    /// The observation at which the incumbent's failed episodes lose most often; none if none has failed. Ties go to the
    /// lowest bits.
    pub(super) fn counterexample(&self) -> Option<Bits> {
        let mut named: BTreeMap<Bits, u32> = BTreeMap::new();
        for episode in propose::recent(&self.experience, STEPS_MAX) {
            if episode.total() < self.shape.return_max
                && self.is_held_play(episode)
                && let Some(situation) = worst(episode)
            {
                *named.entry(situation).or_default() += 1;
            }
        }
        named.into_iter().max_by_key(|(situation, count)| (*count, Reverse(*situation))).map(|(bits, _)| bits)
    }
}

impl Learner {
    /// The observation of a logged row in which the circuit that acts does something else than the row wants, the one that is
    /// contradicted most often; none where plain actions act. Ties go to the lowest bits.
    pub(super) fn contradiction(&self) -> Option<Bits> {
        if !self.acts_by_proof() {
            return None;
        }
        contradicted(self.machinery.frozen(), &propose::recent(&self.experience, STEPS_MAX))
    }
}

/// What was seen at the last of the steps that paid least.
fn worst(episode: &Episode) -> Option<Bits> {
    let steps = episode.steps.iter().enumerate();
    steps.max_by_key(|(time, step)| (Reverse(step.reward), *time)).map(|(_, step)| step.observation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_synth::experience::Step;

    #[test]
    fn the_last_of_the_worst_steps_is_named() {
        let step = |seen: u64, reward: i32| Step {
            observation: Bits([seen, 0, 0, 0]),
            action: 0,
            reward,
            done: false,
            bad: false,
            uniform: false,
            propensity: u16::MAX,
        };
        let episode = |rewards: &[i32]| Episode {
            serial: 1,
            steps: (1..).zip(rewards).map(|(seen, reward)| step(seen, *reward)).collect(),
        };
        assert_eq!(worst(&episode(&[0, 0, 5])), Some(Bits([2, 0, 0, 0])));
        assert_eq!(worst(&episode(&[0, -3, 0])), Some(Bits([2, 0, 0, 0])));
        assert_eq!(worst(&episode(&[])), None);
    }
}
