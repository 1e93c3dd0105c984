//! Side by side is the same as one after the other: random policies in games of every kind, bit for bit.

use super::lanes::{LanePlayer, LaneWorlds};
use super::scalar::{evaluate_within, play};
use super::tally::Tally;
use super::*;
use crate::agent::{Actor, Agent};
use crate::seeds::{Domain, Seeds};
use bem_base::environment::{Environment, EnvironmentError, Shape};
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Signal};
use bem_circuit::testing::{random_dense_netlist, random_netlist};
use bem_games::compose::{NoPrograms, TaskTree};
use bem_machine::held::Adaptation;
use bem_synth::policy::action_bits;
use std::sync::Arc;

/// One step and many, answers and graded rewards, noise, BAD flags, memory, wide observations, compositions.
const TASKS: [&str; 19] = [
    "parity{n=64}",
    "majority{n=9,noise=20}",
    "small_sat",
    "signaling{states=4}",
    "bandit{arms=2,gap=1}",
    "contextual_bandit{context_bits=3,noise_bits=40,arms=6}",
    "nonstationary_bandit{arms=3,segment=20}",
    "nonstationary_bandit{arms=2,segment=1000}",
    "auction{bits=4,opponents=2,price=first}",
    "safety_grid{size=5,bad=6}",
    "matrix_game{horizon=9}",
    "dyck{types=2,depth=4,length=24}",
    "copy{length=6}",
    "key_value{keys=4,values=4}",
    "stack_machine",
    "parity_stream{n=100}",
    "rulegrid{steps=12}",
    "seq(auction{bits=2},dyck{length=8})",
    "par(safety_grid{size=3,bad=2,scramble=bits},parity_stream{n=6})",
];

fn game(text: &str) -> Arc<dyn Game> {
    TaskTree::parse(text).unwrap().build(3, &NoPrograms).unwrap()
}

/// A policy drawn by lot, with about this many gates.
fn random_policy(prng: &mut Prng, shape: &Shape, gates: usize, memory: usize) -> Policy {
    let seen = usize::from(shape.observation_bits);
    let (inputs, bits) = (seen + memory, action_bits(shape.actions));
    let outputs = bits + memory;
    let circuit = if gates < outputs || inputs < 2 {
        random_netlist(prng, inputs, gates, outputs)
    } else {
        random_dense_netlist(prng, inputs, gates, outputs)
    };
    let mut builder = Builder::new(inputs);
    let signals: Vec<Signal> = (0..inputs).map(Signal::input).collect();
    let outputs = builder.embed(&circuit, &signals);
    Policy::close(builder, seen, shape.actions, &outputs[..bits], &outputs[bits..]).unwrap()
}

/// The comparison of [`Judge::compare`], one episode after the other.
fn compare_one_by_one(
    world: &mut dyn Environment,
    policies: [&Policy; 2],
    run_seed: u64,
    (yardstick, doubt): (Yardstick, Fixed),
) -> Result<Fixed, EnvironmentError> {
    let agents = policies.map(|policy| Agent::circuit(policy.clone()));
    let [mut one, mut other] = agents.each_ref().map(Actor::new);
    let mut seeds = Seeds::new(run_seed, Domain::Evaluation);
    let mut tally = Tally::new(Extent::of(&policies, world.shape().horizon, doubt));
    loop {
        let seed = seeds.next_seed();
        let (before, after) = (play(world, &mut one, seed)?, play(world, &mut other, seed)?);
        tally.add_pair([&before, &after]);
        if let Some(difference) = tally.difference(yardstick) {
            return Ok(difference);
        }
    }
}

#[test]
fn side_by_side_is_the_same_as_one_after_the_other_in_games_of_every_kind() {
    let (mut bad, mut longest, mut largest) = (0, 0, 0);
    for text in TASKS {
        let game = game(text);
        let mut prng = Prng::stream(1, text);
        let (mut judge, mut world, mut oracle) = (Judge::new(game.as_ref()), game.start(), game.oracle());
        let yardstick = judge.yardstick();
        let mut last: Option<Policy> = None;
        for (gates, memory) in [(0, 0), (0, 3), (3, 0), (40, 1), (120, 12), (300, 0), (500, 5)] {
            let policy = random_policy(&mut prng, game.shape(), gates, memory);
            let agent = Agent::circuit(policy.clone());
            // The run's seed changes in between, so that what is known of the oracle is used and forgotten.
            let run_seed = (gates / 100) as u64;
            let doubt = game.optimum().standard_error;
            let extent = Extent::of(&[&policy], game.shape().horizon, doubt);
            let (world, known) = (world.as_mut(), Some(yardstick));
            let alone = evaluate_within(extent, world, &agent, run_seed, known, Some(oracle.as_mut()));
            let alone = alone.unwrap();
            assert_eq!(judge.evaluate(&agent, run_seed), Ok(alone), "{text}, {gates} gates, {memory} bits");
            if let Some(last) = &last {
                let held = (yardstick, doubt);
                let alone = compare_one_by_one(world, [last, &policy], run_seed, held);
                assert_eq!(judge.compare([last, &policy], run_seed), alone, "{text}, {gates} gates");
            }
            (bad, longest) = (alone.bad.max(bad), alone.episodes.max(longest));
            largest = policy.gates().max(largest);
            last = Some(policy);
        }
    }
    // The games were worth comparing.
    assert!(0 < bad && 1_000 < longest && 400 < largest, "{bad} bad, {longest} episodes, {largest} gates");
}

#[test]
fn an_agent_that_adapts_is_evaluated_with_what_it_learns_in_an_episode() {
    let game = game("nonstationary_bandit{arms=2,gap=50,segment=64}");
    let agent = Agent::adapting(Policy::constant(2, 1), Adaptation::Index, game.shape());
    assert!(agent.adapts());
    let (mut judge, mut world, mut oracle) = (Judge::new(game.as_ref()), game.start(), game.oracle());
    let alone = evaluate(world.as_mut(), &agent, 5, Some(judge.yardstick()), Some(oracle.as_mut())).unwrap();
    assert_eq!(judge.evaluate(&agent, 5), Ok(alone));
    let frozen = judge.evaluate(&Agent::circuit(agent.policy().clone()), 5).unwrap();
    assert!(frozen.mean < alone.mean, "{frozen:?}, {alone:?}");
}

#[test]
fn any_number_of_episodes_fits_the_lanes_and_keeps_the_order_of_its_seeds() {
    let game = game("safety_grid{size=4}");
    let policy = random_policy(&mut Prng::stream(2, "lanes"), game.shape(), 30, 2);
    let agent = Agent::circuit(policy.clone());
    let (mut actor, mut world) = (Actor::new(&agent), game.start());
    let (mut worlds, mut player) = (LaneWorlds::new(game.as_ref()), LanePlayer::new(&policy));
    let mut together = Vec::new();
    for count in [1, 2, 63, 64, 65, 255, 256, 257, 700, 0] {
        let seeds: Vec<u64> = (0..count).map(|place| 1_000 * count + place).collect();
        let mut play_alone = |seed: &u64| play(world.as_mut(), &mut actor, *seed).unwrap();
        let alone: Vec<Played> = seeds.iter().map(&mut play_alone).collect();
        worlds.play(&mut player, &seeds, &mut together).unwrap();
        assert_eq!(together, alone, "{count} episodes");
    }
}

#[test]
fn an_action_that_does_not_exist_is_an_error_in_lanes_too() {
    let game = game("parity{n=4}");
    let policy = Policy::constant(8, 5);
    let mut judge = Judge::new(game.as_ref());
    let expected = Err(EnvironmentError::ActionOutOfRange { action: 5, last: 1 });
    assert_eq!(judge.evaluate(&Agent::circuit(policy), 1), expected);
    let other = judge.evaluate(&Agent::circuit(Policy::constant(2, 1)), 1).unwrap();
    assert_eq!(other.episodes, 1_000);
}

#[test]
fn two_policies_are_told_apart_by_the_episodes_that_both_play() {
    let game = game("bandit{arms=2,gap=20}");
    let mut judge = Judge::new(game.as_ref());
    let [one, other] = [0, 1].map(|action| Policy::constant(2, action));
    let mut gain = |policies| judge.compare(policies, 1).unwrap();
    assert_eq!(gain([&one, &one]), Fixed::ZERO);
    let (there, back) = (gain([&one, &other]), gain([&other, &one]));
    assert!(judge.yardstick().tolerated() < there.max(back) && there.plus(back) == Fixed::ZERO);
}

#[test]
fn doubt_is_left_where_errors_reach_beyond_the_tolerance() {
    let yardstick = Yardstick { optimum: Fixed::from_int(6_400), random: Fixed::ZERO };
    let of = |mean, error| {
        let (mean, error) = (Fixed::from_int(mean), Fixed::from_int(error));
        Evaluation { mean, error, bad: 0, episodes: 1_000 }
    };
    assert!(!leaves_doubt(&of(500, 0), &of(400, 0), yardstick));
    assert!(leaves_doubt(&of(500, 0), &of(399, 0), yardstick));
    assert!(leaves_doubt(&of(500, 20), &of(500, 20), yardstick));
    assert!(!leaves_doubt(&of(500, 20), &of(520, 20), yardstick));
}
