//! From a candidate to a SYNTH patch: what it claims to explain.
//!
//! The world is a family of its own, so that every bound of the machine applies. What a candidate claims to explain are
//! those logged steps that earned the most there is and in which it would have done the same. A candidate whose condition
//! is not shown is never played. Clauses: SCC-2, SCC-3, SCC-4; decisions D-21, D-35.

use bem_base::environment::Shape;
use bem_base::fixed::Fixed;
use bem_evolve::patch::{Change, Example, ExampleStep, ExpectedEffects};
use bem_evolve::propose::Proposal;
use bem_synth::experience::Episode;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::policy::Policy;

/// Logged steps that one candidate claims to explain, at most: more would prove the same again.
const CLAIMED_STEPS_MAX: usize = 128;

/// A candidate as a proposal.
pub fn proposal(shape: &Shape, candidate: &Hypothesis, episodes: &[&Episode]) -> Proposal {
    let policy = candidate.policy.clone();
    let examples = claims(shape.reward_max, &policy, episodes);
    Proposal {
        change: Change::Synthesize { policy, safe: false, examples },
        improvement: None,
        effects: ExpectedEffects { novelty: Fixed::ONE, ..ExpectedEffects::default() },
        words: candidate.words.clone(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::check_world;
    use bem_base::digest::Digest;
    use bem_base::environment::{Bits, Field};
    use bem_circuit::netlist::{Builder, Netlist, Signal};
    use bem_evolve::apply::Tables;
    use bem_evolve::condition::{Context, SafetyDemand};
    use bem_evolve::propose::patch;
    use bem_evolve::verify::{Verified, verify};
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

    /// Shows the condition of a candidate, or says why not.
    fn show(policy: Policy, log: &[&Episode]) -> Result<Verified, String> {
        let config = GenesisConfig::default();
        let family = Family::for_world(&config, shape()).unwrap();
        let (tables, safety) = (Tables::default(), SafetyDemand::Optional);
        let Proposal { change, effects, .. } = proposal(&shape(), &hypothesis(policy), log);
        let patch = patch(&tables, Some(&family), 1, 0, change, effects).unwrap();
        let context = Context { config: &config, tables: &tables, family: Some(&family), bad: &[], safety };
        verify(patch, &context).map_err(|rejection| rejection.to_string())
    }

    #[test]
    fn a_candidate_that_explains_the_log_is_proven_with_all_its_claims() {
        let action = [Signal::input(2), Signal::FALSE];
        let policy = Policy::close(Builder::new(4), 4, 3, &action, &[]).unwrap();
        let episodes = episodes();
        let log: Vec<&Episode> = episodes.iter().collect();
        assert_eq!(claims(1_000, &policy, &log).len(), 16);
        assert!(1 <= show(policy, &log).unwrap().proofs());
    }

    #[test]
    fn a_candidate_with_an_action_that_is_none_is_never_played() {
        let circuit = Netlist::new(1, Vec::new(), vec![Signal::input(0), Signal::input(0)]).unwrap();
        let policy = Policy::new(circuit, vec![0], 0, 3).unwrap();
        let rejection = show(policy, &[]).unwrap_err();
        assert!(rejection.starts_with("action range fails"), "{rejection}");
    }
}
