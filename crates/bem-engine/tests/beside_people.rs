//! A learner beside a liar is the learner beside nobody, later by the steps of the trials; what is right is let in; and a learner
//! that is saved while people's candidate is tried goes on as if nothing had happened. Clause: HUM-13; decision D-210.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its world has failed")]

use bem_base::digest::Digest;
use bem_base::environment::{Bits, Environment};
use bem_engine::agent::Agent;
use bem_engine::learner::{Decision, Event, Label, Learner, Settings, Tally, Told, Witness};
use bem_evolve::verify::AcceptedPatch;
use bem_games::game::Game;
use bem_games::generated::WorldKind;
use bem_synth::experience::Episode;
use std::sync::Arc;

/// Steps between two labels.
const EVERY: u64 = 50;

/// What was let in and refused, in words, and what was seen last.
#[derive(Default)]
struct Notes {
    let_in: Vec<String>,
    refused: Vec<String>,
    seen: Option<Bits>,
}

impl Witness for Notes {
    fn incumbent_changed(&mut self, agent: &Agent, words: &str, _: &Tally) {
        self.let_in.push(format!("{words} {}", agent.policy().digest()));
    }

    fn decided(&mut self, decision: &Decision, patch: Option<&AcceptedPatch>) {
        let list = if patch.is_some() { &mut self.let_in } else { &mut self.refused };
        list.push(decision.words.clone());
    }

    fn played(&mut self, episode: &Episode, _: u64, _: &Digest) {
        self.seen = episode.steps.first().map(|step| step.observation);
    }

    fn tick(&mut self, _: &Tally) -> bool {
        true
    }
}

/// Whether somebody's labels made a candidate with these words.
fn is_peoples(words: &str) -> bool {
    words.contains("what people call right") || words.contains(" labels")
}

/// A learner, its world, and somebody who labels what is seen: with the right action, or with one beside it.
struct Desk {
    learner: Learner,
    world: Box<dyn Environment + Send>,
    game: Arc<dyn Game>,
    labels: Vec<Label>,
    lie: Option<u16>,
    notes: Notes,
}

impl Desk {
    fn new(seed: u64, lie: Option<u16>) -> Desk {
        Desk::of(WorldKind::Noise, seed, lie)
    }

    fn of(kind: WorldKind, seed: u64, lie: Option<u16>) -> Desk {
        let game = kind.draw(seed);
        let world = game.start();
        let settings = Settings { budget: 60_000, ..Settings::new(seed) };
        let settings = settings.with(|config| config.until_budget = true);
        let learner = Learner::new(world.shape(), settings).unwrap();
        Desk { learner, world, game, labels: Vec::new(), lie, notes: Notes::default() }
    }

    /// One unit; what is seen is labelled now and then.
    fn advance(&mut self) -> Event {
        let event = self.learner.advance(self.world.as_mut(), &mut self.notes).unwrap();
        let is_time = (self.labels.len() as u64 + 1) * EVERY <= self.learner.steps_taken();
        if let (Some(lie), Some(seen)) = (self.lie, self.notes.seen)
            && event == Event::EpisodeEnded
            && is_time
        {
            let mut oracle = self.game.oracle();
            oracle.begin(0);
            let right = (oracle.act(&seen) + lie) % self.world.shape().actions;
            self.labels.push(Label { observation: seen, right, time: 0 });
            self.learner.hear(Told::new(self.labels.iter().copied()));
        }
        event
    }

    /// Works until so many steps of its own are taken.
    fn run(&mut self, steps: u64) {
        while self.learner.tally().steps < steps
            || self.learner.is_measuring()
            || self.learner.is_in_episode()
            || self.learner.is_set_aside()
        {
            self.advance();
        }
    }
}

#[test]
fn a_liar_who_is_always_refused_leaves_the_learner_as_it_would_be_without() {
    let mut refused = 0;
    for seed in [1, 2, 3] {
        let (mut alone, mut lied_to) = (Desk::new(seed, None), Desk::new(seed, Some(1)));
        alone.run(9_000);
        lied_to.run(9_000);
        assert!(!lied_to.notes.let_in.iter().any(|words| is_peoples(words)), "what is worse is let in");
        refused += lied_to.notes.refused.iter().filter(|words| is_peoples(words)).count();
        // Trials cost steps, and no more than a part of all.
        let spent = lied_to.learner.steps_taken() - lied_to.learner.tally().steps;
        assert!(0 < spent && spent < 9_000 / 4, "{spent} (seed {seed})");
        assert_eq!(alone.notes.let_in, lied_to.notes.let_in, "the same is let in (seed {seed})");
        // Counts of the learner's own: episodes, resets, pairs that were not played, work of searches.
        assert_eq!(*alone.learner.tally(), *lied_to.learner.tally(), "seed {seed}");
        let acting = |desk: &Desk| desk.learner.learned().agent.policy().digest();
        assert_eq!(acting(&alone), acting(&lied_to));
        let (told, own) = (lied_to.learner.learned().tally, lied_to.learner.tally());
        assert_eq!((told.steps, told.steps_by_machine), (own.steps + spent, own.steps + spent));
    }
    assert!(3 <= refused, "{refused} trials say nothing");
}

#[test]
fn in_a_chain_episodes_for_people_leave_nothing_behind_but_their_steps() {
    // Labels interrupt trials of the learner's own, and episodes go along them before anything is tried.
    for seed in [5_015, 5_017] {
        let (mut alone, mut lied_to) =
            (Desk::of(WorldKind::Chain, seed, None), Desk::of(WorldKind::Chain, seed, Some(1)));
        alone.run(9_000);
        lied_to.run(9_000);
        let spent = lied_to.learner.steps_taken() - lied_to.learner.tally().steps;
        assert!(0 < spent && spent < 9_000 / 2, "{spent} (seed {seed})");
        assert!(!lied_to.notes.let_in.iter().any(|words| is_peoples(words)), "seed {seed}");
        assert_eq!(alone.notes.let_in, lied_to.notes.let_in, "the same is let in (seed {seed})");
        assert_eq!(*alone.learner.tally(), *lied_to.learner.tally(), "seed {seed}");
    }
}

#[test]
fn a_learner_saved_while_a_copy_goes_along_what_people_said_goes_on_as_if_nothing_had_happened() {
    let mut desk = Desk::of(WorldKind::Chain, 5_017, Some(1));
    let (mut scouted, mut interrupted) = (0, 0);
    while scouted + interrupted < 8 && desk.learner.steps_taken() < 20_000 {
        let was_measuring = desk.learner.is_measuring();
        desk.advance();
        if !desk.learner.is_set_aside() {
            continue;
        }
        interrupted +=
            usize::from(was_measuring && !desk.learner.is_measuring() && !desk.learner.is_in_episode());
        scouted += usize::from(desk.learner.is_in_episode() && !desk.learner.is_measuring());
        let bytes = desk.learner.encode();
        let mut there = desk.game.start();
        let mut restored = Learner::restore(&bytes, there.as_mut()).unwrap();
        assert!(restored.encode() == bytes, "the bytes come back");
        restored.hear(Told::new(desk.labels.iter().copied()));
        let mut here = desk.game.start();
        let mut twin = Learner::restore(&bytes, here.as_mut()).unwrap();
        twin.hear(Told::new(desk.labels.iter().copied()));
        let (mut first, mut second) = (Notes::default(), Notes::default());
        for _ in 0..2_000 {
            twin.advance(here.as_mut(), &mut first).unwrap();
        }
        // Saved once more in between, it does the same.
        for part in 0..4 {
            for _ in 0..500 {
                restored.advance(there.as_mut(), &mut second).unwrap();
            }
            if part < 3 {
                let again = restored.encode();
                there = desk.game.start();
                restored = Learner::restore(&again, there.as_mut()).unwrap();
                restored.hear(Told::new(desk.labels.iter().copied()));
            }
        }
        assert!(twin.encode() == restored.encode(), "both end alike");
    }
    assert!(0 < scouted, "no copy went along what people said");
}

#[test]
fn what_is_right_is_let_in() {
    let mut desk = Desk::new(1, Some(0));
    desk.run(4_000);
    assert!(desk.notes.let_in.iter().any(|words| is_peoples(words)), "{:?}", desk.notes.let_in);
    let mut alone = Desk::new(1, None);
    alone.run(4_000);
    assert_ne!(
        *alone.learner.tally(),
        *desk.learner.tally(),
        "people change what is learned when they are right"
    );
}

#[test]
fn a_learner_saved_while_people_are_measured_goes_on_as_if_nothing_had_happened() {
    let mut desk = Desk::new(2, Some(1));
    let mut saved = 0;
    while saved < 3 && desk.learner.tally().steps < 9_000 {
        let before = desk.notes.refused.len();
        desk.advance();
        let is_place =
            desk.learner.is_measuring() && !desk.learner.is_in_episode() && !desk.labels.is_empty();
        if !is_place || desk.notes.refused.len() != before {
            continue;
        }
        let bytes = desk.learner.encode();
        let mut there = desk.game.start();
        let mut restored = Learner::restore(&bytes, there.as_mut()).unwrap();
        assert!(restored.encode() == bytes, "the bytes come back");
        restored.hear(Told::new(desk.labels.iter().copied()));
        // Between episodes the world is where the next seed brings it.
        let (mut twin, mut here) = (desk.learner.clone(), desk.game.start());
        let (mut first, mut second) = (Notes::default(), Notes::default());
        for _ in 0..3_000 {
            twin.advance(here.as_mut(), &mut first).unwrap();
            restored.advance(there.as_mut(), &mut second).unwrap();
        }
        assert_eq!((&first.let_in, &first.refused), (&second.let_in, &second.refused));
        assert!(twin.encode() == restored.encode(), "both end alike");
        saved += usize::from(first.refused.iter().any(|words| is_peoples(words)));
        let cut = &bytes[..bytes.len() - 1];
        assert!(Learner::restore(cut, desk.game.start().as_mut()).is_err());
    }
    assert!(0 < saved, "nothing was measured for people");
}
