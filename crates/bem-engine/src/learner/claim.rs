//! From a candidate to a SYNTH patch: what it claims to explain.
//!
//! The world is a family of its own, so that every bound of the machine applies. A patch carries what its circuit says
//! about itself, rows of the log that were chosen without a look at the circuit, and in how many of them it does
//! something else. A candidate whose condition is not shown is never played. Clauses: SCC-2, SCC-3, SCC-4; decisions D-21,
//! D-35, D-45.

use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_evolve::patch::{Change, Example, ExampleStep, ExpectedEffects};
use bem_evolve::propose::Proposal;
use bem_synth::experience::Episode;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::policy::{Player, Policy};
use core::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Rows of the log that one patch carries, at most.
const ROWS_MAX: usize = 4_096;

/// A candidate as a proposal; none for a candidate that says nothing about itself.
pub(super) fn proposal(candidate: &Hypothesis, episodes: &[&Episode]) -> Option<Proposal> {
    let (policy, statement) = (candidate.policy.clone(), candidate.statement.clone()?);
    let examples = rows(&policy, episodes);
    let exceptions = exceptions(&policy, &examples);
    Some(Proposal {
        change: Change::Synthesize { policy, statement, examples, exceptions },
        improvement: None,
        effects: ExpectedEffects { novelty: Fixed::ONE, ..ExpectedEffects::default() },
        words: candidate.words.clone(),
    })
}

/// The rows of the log that a circuit is held against.
fn rows(policy: &Policy, episodes: &[&Episode]) -> Vec<Example> {
    if policy.memory_bits() == 0 { best_actions(episodes) } else { best_steps(episodes) }
}

/// The observation of the rows in which the policy does something else, that of most of them; ties go to the lowest bits.
pub(super) fn contradicted(policy: &Policy, episodes: &[&Episode]) -> Option<Bits> {
    let mut named: BTreeMap<Bits, u32> = BTreeMap::new();
    each_exception(policy, &rows(policy, episodes), |step| *named.entry(step.observation).or_default() += 1);
    named.into_iter().max_by_key(|(seen, count)| (*count, Reverse(*seen))).map(|(seen, _)| seen)
}

/// For policies without memory: the newest different observations, each with the action that earned most on average when
/// actions were drawn with equal chance, the lowest of equals. Where all that was tried earned the same, and less than
/// the most that any step did, the log speaks for no action.
fn best_actions(episodes: &[&Episode]) -> Vec<Example> {
    let top = episodes.iter().flat_map(|episode| &episode.steps).map(|step| i64::from(step.reward)).max();
    let mut drawn: BTreeMap<Bits, BTreeMap<u16, (i64, i64)>> = BTreeMap::new();
    let steps = episodes.iter().rev().flat_map(|episode| episode.steps.iter().rev());
    for step in steps.filter(|step| step.uniform) {
        let known = drawn.len();
        match drawn.entry(step.observation) {
            Entry::Vacant(_) if ROWS_MAX <= known => continue,
            entry => {
                let (sum, count) = entry.or_default().entry(step.action).or_default();
                (*sum, *count) = (*sum + i64::from(step.reward), *count + 1);
            }
        }
    }
    let best = |(observation, actions): (Bits, BTreeMap<u16, (i64, i64)>)| {
        let leads = |(sum, count): (i64, i64), (held, steps): (i64, i64)| {
            i128::from(held) * i128::from(count) < i128::from(sum) * i128::from(steps)
        };
        let mut earned = actions.iter();
        let first = earned.next()?;
        let best = earned.fold(first, |held, other| if leads(*other.1, *held.1) { other } else { held });
        let tells = actions.values().any(|other| leads(*best.1, *other))
            || Some(best.1.0) == top.map(|top| top * best.1.1);
        tells.then_some(ExampleStep { observation, wanted: Some(*best.0) })
    };
    let steps: Vec<ExampleStep> = drawn.into_iter().filter_map(best).collect();
    if steps.is_empty() { Vec::new() } else { vec![Example { steps }] }
}

/// For policies with memory: the newest episodes from their start on; wanted is what was drawn with equal chance and earned
/// the most that any step did.
fn best_steps(episodes: &[&Episode]) -> Vec<Example> {
    let mut room = ROWS_MAX;
    let mut examples = Vec::new();
    let top = episodes.iter().flat_map(|episode| &episode.steps).map(|step| step.reward).max();
    for episode in episodes.iter().rev() {
        let mut steps: Vec<ExampleStep> = episode
            .steps
            .iter()
            .take(room)
            .map(|step| ExampleStep {
                observation: step.observation,
                wanted: (step.uniform && Some(step.reward) == top).then_some(step.action),
            })
            .collect();
        while steps.last().is_some_and(|step| step.wanted.is_none()) {
            steps.pop();
        }
        room -= steps.len();
        if !steps.is_empty() {
            examples.push(Example { steps });
        }
        if room == 0 {
            break;
        }
    }
    examples
}

/// In how many rows the policy does something else.
fn exceptions(policy: &Policy, examples: &[Example]) -> u32 {
    let mut exceptions = 0;
    each_exception(policy, examples, |_| exceptions += 1);
    exceptions
}

fn each_exception(policy: &Policy, examples: &[Example], mut found: impl FnMut(&ExampleStep)) {
    let mut player = Player::new(policy);
    for example in examples {
        player.begin();
        for step in &example.steps {
            let action = player.act(&step.observation);
            if step.wanted.is_some_and(|wanted| wanted != action) {
                found(step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::check_world;
    use bem_base::digest::Digest;
    use bem_base::environment::{Bits, Field, Shape};
    use bem_circuit::netlist::{Builder, Netlist, Signal};
    use bem_evolve::apply::Tables;
    use bem_evolve::condition::Context;
    use bem_evolve::propose::patch;
    use bem_evolve::verify::{Verified, verify};
    use bem_machine::config::GenesisConfig;
    use bem_machine::family::Family;
    use bem_synth::experience::Step;
    use bem_synth::statement::{Choice, Formula, Statement};

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

    fn hypothesis(policy: Policy, statement: Statement) -> Hypothesis {
        let statement = Some(statement);
        let (words, provenance) = ("a test".to_string(), Digest::default());
        let (description_length, exact, predicted, machine) = (1, true, None, None);
        Hypothesis { policy, statement, words, description_length, exact, predicted, provenance, machine }
    }

    /// Shows the condition of a candidate, or says why not.
    fn show(policy: Policy, statement: Statement, log: &[&Episode]) -> Result<Verified, String> {
        let config = GenesisConfig::default();
        let family = Family::for_world(&config, shape()).unwrap();
        let tables = Tables::default();
        let Proposal { change, effects, .. } = proposal(&hypothesis(policy, statement), log).unwrap();
        let patch = patch(&tables, Some(&family), 1, 0, change, effects).unwrap();
        let context = Context { config: &config, tables: &tables, family: Some(&family) };
        verify(patch, &context).map_err(|rejection| rejection.to_string())
    }

    #[test]
    fn a_candidate_that_explains_the_log_is_proven_with_all_its_claims() {
        let action = [Signal::input(2), Signal::FALSE];
        let policy = Policy::close(Builder::new(4), 4, 3, &action, &[]).unwrap();
        let episodes = episodes();
        let log: Vec<&Episode> = episodes.iter().collect();
        assert_eq!(best_actions(&log)[0].steps.len(), 16);
        let formulas = vec![Formula::literal(2, false), Formula::constant(false)];
        let said = Statement::of(Choice::Bits(formulas));
        let verified = show(policy.clone(), said, &log).unwrap();
        assert!(1 <= verified.proofs());
        let Change::Synthesize { exceptions, .. } = &verified.patch().change else { panic!("another kind") };
        assert_eq!(*exceptions, 0);
        // The same circuit under another statement is not what it says.
        let wrong = Statement::of(Choice::Bits(vec![Formula::literal(1, false), Formula::constant(false)]));
        let refusal = show(policy, wrong, &log).unwrap_err();
        assert!(refusal.starts_with("statement fails"), "{refusal}");
    }

    #[test]
    fn rows_are_those_of_the_log_whatever_the_candidate_does() {
        let episodes = episodes();
        let log: Vec<&Episode> = episodes.iter().collect();
        let verified = show(Policy::constant(3, 0), Statement::constant(0), &log).unwrap();
        let Change::Synthesize { exceptions, examples, .. } = &verified.patch().change else {
            panic!("another kind")
        };
        // Action 1 was right in half of the rows, and action 0 is always taken.
        assert_eq!((examples[0].steps.len(), *exceptions), (16, 8));
    }

    #[test]
    fn the_row_that_contradicts_a_circuit_is_named_and_none_where_none_does() {
        let episodes = episodes();
        let log: Vec<&Episode> = episodes.iter().collect();
        assert_eq!(contradicted(&Policy::constant(3, 0), &log), Some(Bits([4, 0, 0, 0])));
        let action = [Signal::input(2), Signal::FALSE];
        let right = Policy::close(Builder::new(4), 4, 3, &action, &[]).unwrap();
        assert_eq!(contradicted(&right, &log), None);
    }

    #[test]
    fn a_candidate_with_an_action_that_is_none_is_never_played() {
        let circuit = Netlist::new(1, Vec::new(), vec![Signal::input(0), Signal::input(0)]).unwrap();
        let policy = Policy::new(circuit, vec![0], 0, 3).unwrap();
        let rejection = show(policy, Statement::constant(0), &[]).unwrap_err();
        assert!(rejection.starts_with("action range fails"), "{rejection}");
    }
}
