//! A learner saved and restored anywhere: nothing of its history may change. Clauses: LOG-4, LOG-5.

use super::*;
use crate::agent::Agent;
use crate::learner::{Decision, Event, Settings, Witness};
use bem_base::digest;
use bem_base::prng::Prng;
use bem_evolve::verify::AcceptedPatch;
use bem_games::catalog;
use bem_games::game::Game;
use bem_machine::config::{ChoiceRule, SchedulerKind, Word};
use bem_machine::turn::Turn;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Writes down what it is told, so that two histories can be compared.
#[derive(Default)]
struct Notes(Vec<String>);

impl Witness for Notes {
    fn incumbent_changed(&mut self, agent: &Agent, words: &str, tally: &Tally) {
        self.0.push(format!("{words} {:?} {tally:?}", agent.policy().digest()));
    }

    fn decided(&mut self, decision: &Decision, patch: Option<&AcceptedPatch>) {
        self.0.push(format!("{decision:?} {patch:?}"));
    }

    fn tick(&mut self, _: &Tally) -> bool {
        true
    }
}

const WORLDS: [(&str, &[(&str, &str)]); 5] = [
    ("parity", &[("n", "8")]),
    ("dyck", &[("types", "1"), ("depth", "2"), ("length", "8")]),
    ("safety_grid", &[]),
    ("matrix_game", &[("game", "prisoners_dilemma"), ("opponent", "tit_for_tat"), ("horizon", "5")]),
    ("contextual_bandit", &[("context_bits", "2"), ("noise_bits", "2"), ("arms", "3")]),
];

fn game((family, params): (&str, &[(&str, &str)])) -> Arc<dyn Game> {
    let texts: BTreeMap<String, String> =
        params.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let family = catalog::family(family).unwrap();
    catalog::build(family, &catalog::settings(family, &texts).unwrap(), 3).unwrap()
}

/// Every scheduler has its seeds; four is paced.
fn settings(seed: u64) -> Settings {
    let scheduler = SchedulerKind::ALL[seed as usize % 4];
    Settings { budget: 1_500, ..Settings::new(seed) }.with(|config| config.scheduler = scheduler)
}

fn advance(learner: &mut Learner, world: &mut dyn Environment, units: usize) -> Vec<String> {
    let mut notes = Notes::default();
    for _ in 0..units {
        if learner.advance(world, &mut notes).unwrap() == Event::Over {
            break;
        }
    }
    notes.0
}

/// Where a learner stands, so that a test can say which places it has saved at.
fn place(learner: &Learner) -> &'static str {
    match (&learner.phase, &learner.flight) {
        (Phase::Measure(gate), None) if gate.half_seed().is_some() => "between the halves of a pair",
        (Phase::Measure(_), None) => "shown and not applied, between pairs",
        (Phase::Measure(gate), Some(_)) if gate.half_seed().is_some() => "in the incumbent's half of a pair",
        (Phase::Measure(_), Some(_)) => "in the candidate's half of a pair",
        (Phase::Collect, Some(flight)) if flight.steps.is_empty() => "at the start of an episode",
        (Phase::Collect, Some(_)) => "in the middle of an episode",
        (Phase::Judge, _) => "with candidates waiting",
        _ => "elsewhere",
    }
}

/// Saves after some units, restores in another world of the same game, and goes on with both.
fn check_restored(world: usize, seed: u64, units: usize, onward: usize) -> &'static str {
    check_restored_with(world, settings(seed), units, onward)
}

fn check_restored_with(world: usize, settings: Settings, units: usize, onward: usize) -> &'static str {
    let game = game(WORLDS[world]);
    let (mut here, mut there) = (game.start(), game.start());
    let mut learner = Learner::new(here.shape(), settings).unwrap();
    advance(&mut learner, here.as_mut(), units);
    let place = place(&learner);
    let bytes = learner.encode();
    let mut restored = Learner::restore(&bytes, there.as_mut()).unwrap();
    assert!(restored.encode() == bytes, "the bytes come back: {place}");
    let told = advance(&mut learner, here.as_mut(), onward);
    assert_eq!(advance(&mut restored, there.as_mut(), onward), told, "{place}");
    assert!(restored.encode() == learner.encode(), "both end alike: {place}");
    place
}

#[test]
fn a_learner_saved_anywhere_goes_on_as_if_nothing_had_happened() {
    let mut prng = Prng::stream(5, "restore points");
    let mut places = BTreeSet::new();
    for point in 0..50 {
        let units = prng.below(2_600) as usize;
        places.insert(check_restored(point % WORLDS.len(), 1 + prng.below(4), units, 400));
    }
    // Some places are passed rarely; each is looked for.
    for (world, units) in telling_places() {
        places.insert(check_restored(world, 4, units, 200));
    }
    assert_eq!(places.len(), 8, "{places:?}");
}

#[test]
fn a_learner_with_any_choice_rule_is_saved_and_each_has_a_history_of_its_own() {
    let mut heads = BTreeSet::new();
    for rule in ChoiceRule::ALL.iter().copied() {
        let settings = || settings(4).with(|config| config.choice_rule = rule);
        for units in [7, 300, 900] {
            check_restored_with(4, settings(), units, 400);
        }
        let game = game(WORLDS[4]);
        let mut world = game.start();
        let mut learner = Learner::new(world.shape(), settings()).unwrap();
        advance(&mut learner, world.as_mut(), 3_000);
        heads.insert(*learner.history.head().as_bytes());
    }
    assert_eq!(heads.len(), ChoiceRule::ALL.len());
}

#[test]
fn the_same_game_in_another_form_is_another_world() {
    let (parity, dyck) = (game(WORLDS[0]), game(WORLDS[1]));
    let learner = Learner::new(parity.shape(), settings(1)).unwrap();
    let refused = Learner::restore(&learner.encode(), dyck.start().as_mut()).unwrap_err();
    assert_eq!(refused, RestoreError::OtherWorld);
}

#[test]
fn a_world_that_does_not_repeat_itself_is_noticed() {
    let game = game(WORLDS[1]);
    let mut world = game.start();
    let mut learner = Learner::new(world.shape(), settings(4)).unwrap();
    let is_midway = |learner: &Learner| {
        learner.flight.as_ref().is_some_and(|flight| flight.turn == Turn::SEAT && 3 < flight.steps.len())
    };
    while !is_midway(&learner) {
        advance(&mut learner, world.as_mut(), 1);
    }
    let flight = learner.flight.as_mut().unwrap();
    flight.steps[2].action ^= 1;
    let refused = Learner::restore(&learner.encode(), game.start().as_mut()).unwrap_err();
    assert_eq!(refused, RestoreError::Diverged { step: 2 });
}

/// For every world, after how many units each place is reached first.
fn telling_places() -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (world, known) in WORLDS.into_iter().enumerate() {
        let mut running = game(known).start();
        let mut learner = Learner::new(running.shape(), settings(4)).unwrap();
        let mut seen = BTreeSet::new();
        for units in 0..2_000 {
            if seen.insert(place(&learner)) {
                found.push((world, units));
            }
            advance(&mut learner, running.as_mut(), 1);
        }
    }
    found
}

/// Bytes of learners at telling places.
fn saved() -> Vec<(usize, Vec<u8>)> {
    let save = |(world, units): (usize, usize)| {
        let mut running = game(WORLDS[world]).start();
        let mut learner = Learner::new(running.shape(), settings(4)).unwrap();
        advance(&mut learner, running.as_mut(), units);
        (world, learner.encode())
    };
    telling_places().into_iter().map(save).collect()
}

#[test]
fn no_prefix_of_a_learner_is_a_learner() {
    for (world, bytes) in saved().into_iter().step_by(3) {
        let mut running = game(WORLDS[world]).start();
        let cuts = (0..bytes.len()).step_by(1 + bytes.len() / 400);
        for cut in cuts.chain([bytes.len() - 1]) {
            assert!(Learner::restore(&bytes[..cut], running.as_mut()).is_err(), "cut at {cut}");
        }
    }
}

#[test]
fn damaged_bytes_are_refused_or_give_a_learner_that_runs() {
    let mut prng = Prng::stream(9, "damage");
    let (mut refused, mut ran) = (0, 0);
    for (world, bytes) in saved() {
        let mut running = game(WORLDS[world]).start();
        for _ in 0..40 {
            let mut damaged = bytes.clone();
            // Most of the bytes are the log; damage near the start reaches everything else.
            let reach = if prng.bit() { damaged.len().min(2_000) } else { damaged.len() };
            for _ in 0..1 + prng.below(3) {
                damaged[prng.below(reach as u64) as usize] = prng.next_u64() as u8;
            }
            match Learner::restore(&damaged, running.as_mut()) {
                Ok(mut learner) => {
                    ran += 1;
                    let mut notes = Notes::default();
                    // A forged learner may want what its world refuses; it may not panic.
                    (0..150).try_for_each(|_| learner.advance(running.as_mut(), &mut notes).map(drop)).ok();
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(20 < refused && 20 < ran, "{refused} refused, {ran} ran");
}

proptest! {
    #[test]
    fn noise_is_no_learner(noise in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Learner::restore(&noise, game(WORLDS[0]).start().as_mut()).is_err());
    }
}

#[test]
fn the_history_does_not_depend_on_how_often_it_is_saved() {
    let game = game(WORLDS[1]);
    let mut world = game.start();
    let mut whole = Learner::new(world.shape(), settings(4)).unwrap();
    let expected = whole.run(world.as_mut(), &mut Notes::default()).unwrap().chain_head;
    let mut learner = Learner::new(world.shape(), settings(4)).unwrap();
    while !matches!(learner.phase, Phase::Over) {
        advance(&mut learner, world.as_mut(), 97);
        let bytes = learner.encode();
        world = game.start();
        learner = Learner::restore(&bytes, world.as_mut()).unwrap();
    }
    assert_eq!(learner.learned().chain_head, expected);
    assert_ne!(expected, digest::hash(b""));
}
