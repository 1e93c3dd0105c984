//! The proof that stands before every rollout: a candidate becomes a SYNTH patch, and its condition is shown.
//!
//! The world is a family of its own, so that every bound of the machine applies. What a candidate
//! claims to explain are those logged steps that earned the most there is and in which it would have done the same.
//! A candidate whose condition is not shown is never played. Clauses: SCC-2, SCC-3, SCC-4; decisions D-21, D-35.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, OBSERVATION_WORDS, Shape};
use bem_base::fixed::Fixed;
use bem_base::limits::STATE_BITS_MAX;
use bem_evolve::apply::{Tables, TablesError};
use bem_evolve::condition::{BadPair, Context, Rejection, SafetyDemand};
use bem_evolve::improvement::Evidence;
use bem_evolve::patch::{Change, Example, ExampleStep, ExpectedEffects, Patch};
use bem_evolve::propose::patch;
use bem_evolve::score::PoxState;
use bem_evolve::verify::{AcceptedPatch, Improvement, Refusal, Verified, accept, verify};
use bem_machine::config::GenesisConfig;
use bem_machine::family::{Family, FamilyError};
use bem_synth::experience::Episode;
use bem_synth::policy::Policy;
use std::collections::BTreeSet;

/// Different BAD pairs that a candidate is tried against, at most.
const BAD_PAIRS_MAX: usize = 256;
/// Logged steps that one candidate claims to explain, at most: more would prove the same again.
const CLAIMED_STEPS_MAX: usize = 128;

/// What candidates for one world are judged against, beside the family as it is.
#[derive(Clone, Debug)]
pub struct Verification {
    config: GenesisConfig,
    pox: PoxState,
    reward_max: i32,
}

/// A patch whose condition was shown, with the BAD pairs it was shown against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    verified: Verified,
    bad: Vec<BadPair>,
}

impl Shown {
    /// The patch with what was shown.
    pub fn verified(&self) -> &Verified {
        &self.verified
    }

    /// Writes what it takes to show it again.
    pub fn encode(&self, writer: &mut Writer) {
        self.verified.patch().encode(writer);
        writer.length(self.bad.len());
        for pair in &self.bad {
            pair.observation.0.iter().for_each(|word| writer.u64(*word));
            writer.u16(pair.action);
        }
    }
}

impl Verification {
    /// For worlds of this shape; refused if the machine cannot hold such a world at all.
    pub fn new(shape: &Shape) -> Result<Verification, FamilyError> {
        let defaults = GenesisConfig::default();
        let config = GenesisConfig {
            state_bits: STATE_BITS_MAX as u32,
            reward_min: shape.reward_min.min(defaults.reward_min),
            reward_max: shape.reward_max.max(defaults.reward_max),
            // The sequential test has its own error bound; the score only has to be above nothing.
            improvement_threshold: defaults.improvement_threshold_min,
            ..defaults
        };
        let pox = PoxState::new(&config);
        Family::new(&config, shape.clone())?;
        Ok(Verification { config, pox, reward_max: shape.reward_max })
    }

    /// The bounds of the machine.
    pub fn config(&self) -> &GenesisConfig {
        &self.config
    }

    /// Shows the condition of a candidate: bounds, action range, write set, forms, and what it claims to explain.
    ///
    /// Where BAD steps were logged, the safety tag is tried first; a candidate that cannot have it comes without,
    /// and the measured veto alone protects.
    pub fn check(
        &self,
        family: &Family,
        serial: u64,
        policy: &Policy,
        episodes: &[&Episode],
    ) -> Result<Shown, Rejection> {
        let tables = Tables::new(vec![family.clone()]);
        let examples = self.claims(policy, episodes);
        let bad = bad_pairs(episodes);
        let attempt = |safe| {
            let change = Change::Synthesize { policy: policy.clone(), safe, examples: examples.clone() };
            let patch = patch(&tables, serial, 0, change, ExpectedEffects::default())?;
            self.show(&tables, patch, bad.clone())
        };
        match attempt(!bad.is_empty()) {
            Err(Rejection::Refuted { condition: "BAD avoidance", .. }) => attempt(false),
            other => other,
        }
    }

    /// Shows the condition of a patch against this table of BAD pairs.
    fn show(&self, tables: &Tables, patch: Patch, bad: Vec<BadPair>) -> Result<Shown, Rejection> {
        let context = Context { config: &self.config, tables, bad: &bad, safety: SafetyDemand::Optional };
        Ok(Shown { verified: verify(patch, &context)?, bad })
    }

    /// Reads a patch that was shown before, and shows it again: a stored word is no proof.
    pub fn decode(&self, family: &Family, reader: &mut Reader<'_>) -> Result<Shown, DecodeError> {
        let start = reader.clone();
        let patch = Patch::decode(reader)?;
        let count = reader.length(8 * OBSERVATION_WORDS + 2)?;
        if BAD_PAIRS_MAX < count {
            return Err(start.error("more BAD pairs than are ever looked at"));
        }
        let mut bad = Vec::with_capacity(count);
        for _ in 0..count {
            let mut observation = Bits::ZERO;
            for word in &mut observation.0 {
                *word = reader.u64()?;
            }
            bad.push(BadPair { observation, action: reader.u16()? });
        }
        let tables = Tables::new(vec![family.clone()]);
        self.show(&tables, patch, bad).map_err(|_| start.error("a patch whose condition does not hold"))
    }

    /// Lets a candidate through on what was measured; nothing else makes an incumbent of it.
    pub fn accept(&self, shown: Shown, evidence: Evidence) -> Result<AcceptedPatch, Refusal> {
        accept(shown.verified, Improvement::Rollouts(evidence), Fixed::ONE, &self.pox)
    }

    /// The family after an accepted patch; nothing else changes one.
    pub fn apply(&self, family: &Family, accepted: AcceptedPatch) -> Result<Family, TablesError> {
        let mut tables = Tables::new(vec![family.clone()]);
        tables.apply(&self.config, accepted)?;
        tables.family(0).cloned()
    }

    /// The newest steps that earned the most there is, and in which the policy would have done what was done.
    fn claims(&self, policy: &Policy, episodes: &[&Episode]) -> Vec<Example> {
        let mut room = CLAIMED_STEPS_MAX;
        let mut examples = Vec::new();
        for episode in episodes.iter().rev() {
            if room == 0 {
                break;
            }
            let actions = policy.replay([*episode]).swap_remove(0);
            let claimed = episode.steps.iter().zip(actions).map(|(step, action)| ExampleStep {
                observation: step.observation,
                wanted: (step.reward == self.reward_max && step.action == action).then_some(action),
            });
            // Without memory every step stands for itself; with it, a step needs all that came before.
            let mut steps: Vec<ExampleStep> = if policy.memory_bits() == 0 {
                claimed.filter(|step| step.wanted.is_some()).take(room).collect()
            } else {
                claimed.take(room).collect()
            };
            while steps.last().is_some_and(|step| step.wanted.is_none()) {
                steps.pop();
            }
            room -= steps.len();
            if policy.memory_bits() == 0 {
                examples.extend(steps.into_iter().map(|step| Example { steps: vec![step] }));
            } else if !steps.is_empty() {
                examples.push(Example { steps });
            }
        }
        examples
    }
}

/// The newest different observations and actions that were BAD.
fn bad_pairs(episodes: &[&Episode]) -> Vec<BadPair> {
    let steps = episodes.iter().rev().flat_map(|episode| &episode.steps).filter(|step| step.bad);
    let mut pairs = BTreeSet::new();
    for step in steps {
        if BAD_PAIRS_MAX <= pairs.len() {
            break;
        }
        pairs.insert(BadPair { observation: step.observation, action: step.action });
    }
    pairs.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::environment::Field;
    use bem_circuit::netlist::{Builder, Netlist, Signal};
    use bem_synth::experience::Step;

    fn shape() -> Shape {
        Shape {
            observation_bits: 4,
            actions: 3,
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
            fields: vec![Field { low: 0, width: 4 }],
        }
    }

    /// Sixteen one-step episodes in which action 1 was right where bit 2 is set, and action 0 elsewhere.
    fn episodes() -> Vec<Episode> {
        let episode = |seen: u64| {
            let mut observation = Bits::ZERO;
            observation.set_field(0, 4, seen);
            let action = (seen >> 2 & 1) as u16;
            let step = Step {
                observation,
                action,
                reward: 1_000,
                done: true,
                bad: false,
                uniform: true,
                propensity: 0,
            };
            Episode { serial: seen, steps: vec![step] }
        };
        (0..16).map(episode).collect()
    }

    fn empty(verification: &Verification) -> Family {
        Family::new(verification.config(), shape()).unwrap()
    }

    #[test]
    fn a_candidate_that_explains_the_log_is_proven_with_all_its_claims() {
        let verification = Verification::new(&shape()).unwrap();
        let action = [Signal::input(2), Signal::FALSE];
        let policy = Policy::close(Builder::new(4), 4, 3, &action, &[]).unwrap();
        let episodes = episodes();
        let log: Vec<&Episode> = episodes.iter().collect();
        assert_eq!(verification.claims(&policy, &log).len(), 16);
        let verified = verification.check(&empty(&verification), 1, &policy, &log).unwrap();
        assert!(1 <= verified.verified().proofs());
    }

    #[test]
    fn the_safety_tag_is_given_to_those_who_avoid_what_was_bad() {
        let verification = Verification::new(&shape()).unwrap();
        let mut episodes = episodes();
        episodes.iter_mut().for_each(|episode| {
            let step = &mut episode.steps[0];
            (step.action, step.reward, step.bad) = (2, 0, true);
        });
        let log: Vec<&Episode> = episodes.iter().collect();
        let tag = |action| {
            let verified =
                verification.check(&empty(&verification), 1, &Policy::constant(3, action), &log).unwrap();
            matches!(verified.verified().patch().change, Change::Synthesize { safe: true, .. })
        };
        assert_eq!([0, 1, 2].map(tag), [true, true, false]);
    }

    #[test]
    fn a_candidate_with_an_action_that_is_none_is_never_played() {
        let verification = Verification::new(&shape()).unwrap();
        let circuit = Netlist::new(1, Vec::new(), vec![Signal::input(0), Signal::input(0)]).unwrap();
        let policy = Policy::new(circuit, vec![0], 0, 3).unwrap();
        let rejection = verification.check(&empty(&verification), 1, &policy, &[]).unwrap_err();
        assert!(matches!(rejection, Rejection::Refuted { condition: "action range", .. }), "{rejection}");
    }
}
