//! From a candidate to a SYNTH patch: what it claims to explain, and what it must avoid.
//!
//! The world is a family of its own, so that every bound of the machine applies. What a candidate claims to explain are
//! those logged steps that earned the most there is and in which it would have done the same. Where BAD steps were logged
//! it claims the safety tag, unless it is seen at once that it cannot have it. A candidate whose condition is not shown
//! is never played. Clauses: SCC-2, SCC-3, SCC-4; decisions D-21, D-35.

use bem_base::environment::Shape;
use bem_base::fixed::Fixed;
use bem_evolve::condition::BadPair;
use bem_evolve::patch::{Change, Example, ExampleStep, ExpectedEffects};
use bem_evolve::propose::Proposal;
use bem_synth::experience::Episode;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::policy::{Player, Policy};
use std::collections::BTreeSet;

/// Different BAD pairs that a candidate is tried against, at most.
const BAD_PAIRS_MAX: usize = 256;
/// Logged steps that one candidate claims to explain, at most: more would prove the same again.
const CLAIMED_STEPS_MAX: usize = 128;

/// A candidate as a proposal; `tagged` asks for the safety tag where there is something to avoid.
pub fn proposal(
    shape: &Shape,
    candidate: &Hypothesis,
    episodes: &[&Episode],
    bad: &[BadPair],
    tagged: bool,
) -> Proposal {
    let policy = candidate.policy.clone();
    let safe = tagged && !bad.is_empty() && avoids(&policy, bad);
    let examples = claims(shape.reward_max, &policy, episodes);
    Proposal {
        change: Change::Synthesize { policy, safe, examples },
        improvement: None,
        effects: ExpectedEffects { novelty: Fixed::ONE, ..ExpectedEffects::default() },
        words: candidate.words.clone(),
    }
}

/// Whether the policy takes no BAD action at the start of an episode; whether it never does is for the proof to say.
fn avoids(policy: &Policy, bad: &[BadPair]) -> bool {
    bad.iter().all(|pair| Player::new(policy).act(&pair.observation) != pair.action)
}

/// The newest steps that earned the most there is, and in which the policy would have done what was done.
fn claims(reward_max: i32, policy: &Policy, episodes: &[&Episode]) -> Vec<Example> {
    let mut room = CLAIMED_STEPS_MAX;
    let mut examples = Vec::new();
    for episode in episodes.iter().rev() {
        if room == 0 {
            break;
        }
        let actions = policy.replay([*episode]).swap_remove(0);
        let claimed = episode.steps.iter().zip(actions).map(|(step, action)| ExampleStep {
            observation: step.observation,
            wanted: (step.reward == reward_max && step.action == action).then_some(action),
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

/// The newest different observations and actions that were BAD.
pub fn bad_pairs(episodes: &[&Episode]) -> Vec<BadPair> {
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
    use crate::parameters::check_world;
    use bem_base::digest::Digest;
    use bem_base::environment::{Bits, Field};
    use bem_circuit::netlist::{Builder, Netlist, Signal};
    use bem_evolve::condition::SafetyDemand;
    use bem_evolve::evolution::{Advance, Evolution, Surroundings, Verdict};
    use bem_evolve::verify::Verified;
    use bem_machine::config::GenesisConfig;
    use bem_machine::family::Family;
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

    #[test]
    fn every_reward_that_a_world_from_outside_may_pay_fits_a_machine() {
        use bem_games::import::REWARD_MAX;
        let paying = |reward: i32| Shape { reward_min: -reward, reward_max: reward, ..shape() };
        let fits = |reward: i32| check_world(&GenesisConfig::default(), &paying(reward)).is_ok();
        assert!(fits(REWARD_MAX) && !fits(REWARD_MAX + 1));
    }

    fn hypothesis(policy: Policy) -> Hypothesis {
        let (words, provenance) = ("a test".to_string(), Digest::default());
        let (description_length, exact, foreseen, machine) = (1, true, None, None);
        Hypothesis { policy, words, description_length, exact, foreseen, provenance, machine }
    }

    /// Submits a candidate and shows its condition, or says why not.
    fn show(policy: Policy, log: &[&Episode], tagged: bool) -> Result<Verified, String> {
        let config = GenesisConfig::default();
        let mut evolution = Evolution::new(config.clone(), vec![Family::new(&config, shape()).unwrap()]);
        let bad = bad_pairs(log);
        evolution.submit(0, proposal(&shape(), &hypothesis(policy), log, &bad, tagged)).unwrap();
        let surroundings = Surroundings { bad: &bad, safety: SafetyDemand::Optional, step: 0, span: None };
        match evolution.advance(&surroundings) {
            Advance::Measuring => Ok(evolution.trial().unwrap().clone()),
            Advance::Decided(record) => match record.verdict {
                Verdict::Refused { reason, .. } => Err(reason),
                other => panic!("{other:?}"),
            },
            Advance::Idle => panic!("a patch waits"),
        }
    }

    #[test]
    fn a_candidate_that_explains_the_log_is_proven_with_all_its_claims() {
        let action = [Signal::input(2), Signal::FALSE];
        let policy = Policy::close(Builder::new(4), 4, 3, &action, &[]).unwrap();
        let episodes = episodes();
        let log: Vec<&Episode> = episodes.iter().collect();
        assert_eq!(claims(1_000, &policy, &log).len(), 16);
        assert!(1 <= show(policy, &log, true).unwrap().proofs());
    }

    #[test]
    fn the_safety_tag_is_given_to_those_who_avoid_what_was_bad() {
        let mut episodes = episodes();
        episodes.iter_mut().for_each(|episode| {
            let step = &mut episode.steps[0];
            (step.action, step.reward, step.bad) = (2, 0, true);
        });
        let log: Vec<&Episode> = episodes.iter().collect();
        let tag = |action, tagged| {
            let verified = show(Policy::constant(3, action), &log, tagged).unwrap();
            matches!(verified.patch().change, Change::Synthesize { safe: true, .. })
        };
        assert_eq!([0, 1, 2].map(|action| tag(action, true)), [true, true, false]);
        assert!(!tag(0, false));
    }

    #[test]
    fn a_candidate_with_an_action_that_is_none_is_never_played() {
        let circuit = Netlist::new(1, Vec::new(), vec![Signal::input(0), Signal::input(0)]).unwrap();
        let policy = Policy::new(circuit, vec![0], 0, 3).unwrap();
        let rejection = show(policy, &[], true).unwrap_err();
        assert!(rejection.starts_with("action range fails"), "{rejection}");
    }
}
