//! A lesson in a world outside that its owner holds open: it goes on for as many steps as asked for, as often as asked.
//!
//! The owner stops between two units of work, so that a thousand steps at once and ten times a hundred make the same
//! history. What the world has answered is kept, and at any time the whole can be closed into a [`Solution`] with the
//! record that a replay needs; the session itself goes on. Bytes bring it back in a world of the same shape. Must not know
//! who the world is, files or clocks. Clauses: LOG-4, LOG-5, SCC-8; decisions D-46, D-81.

use crate::agent::Agent;
use crate::evaluate::Evaluation;
use crate::learner::state::RestoreError;
use crate::learner::{Decision, Event, Learned, Learner, Settings, Tally, Witness};
use crate::online::Online;
use crate::solve::Solution;
use crate::suspend::Seen;
use crate::world_file::WorldFile;
use crate::world_file::record::{Record, Recorder};
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Environment, EnvironmentError, Forbidden, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_evolve::verify::AcceptedPatch;
use bem_synth::experience::Episode;

const FORMAT: &str = "bem session 1";
/// Steps that a session may ever take: nobody counts that far, and the owner says when to stop.
pub const BUDGET: u64 = 1 << 47;
/// Why the world of a closed session answers no more; `bem replay` knows these words from runs that were stopped.
const STOPPED: &str = "stopped on request";

/// A learner in a world outside, with everything that was seen of it.
#[derive(Clone, Debug)]
pub struct Session {
    learner: Learner,
    seen: Seen,
    /// The world as it introduced itself, without calls.
    world: Record,
    /// What it was asked and has answered.
    calls: Vec<u8>,
    /// Its shape and what it shows now: ranges widen with what is paid.
    shape: Shape,
    observation: Bits,
}

/// Writes down what happens.
struct Notes<'a>(&'a mut Seen);

impl Witness for Notes<'_> {
    fn incumbent_changed(&mut self, _: &Agent, _: &str, _: &Tally) {}

    fn decided(&mut self, decision: &Decision, patch: Option<&AcceptedPatch>) {
        self.0.decisions.push(decision.clone());
        self.0.chronicle.decided(decision, patch);
    }

    fn played(&mut self, episode: &Episode, strayed: u64, chain: &Digest) {
        self.0.online.book(episode.steps.len() as u64, episode.total(), strayed);
        self.0.chronicle.played(episode, chain, None);
    }

    fn records(&mut self, block: &[bem_machine::trace::Record], _: &Digest) {
        self.0.chronicle.traced(block);
    }

    fn tick(&mut self, _: &Tally) -> bool {
        true
    }
}

/// A world that has been told to stop.
struct Stopped<'a> {
    shape: &'a Shape,
    observation: &'a Bits,
    repeats: bool,
}

impl Environment for Stopped<'_> {
    fn shape(&self) -> &Shape {
        self.shape
    }

    fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
        Err(EnvironmentError::External(STOPPED.to_string()))
    }

    fn observation(&self) -> &Bits {
        self.observation
    }

    fn step(&mut self, _: u16) -> Result<Outcome, EnvironmentError> {
        Err(EnvironmentError::External(STOPPED.to_string()))
    }

    fn repeats(&self) -> bool {
        self.repeats
    }
}

/// The settings of a session: it goes on until its owner stops it.
pub fn settings_of(settings: Settings) -> Settings {
    Settings { budget: BUDGET, ..settings.with(|config| config.until_budget = true) }
}

impl Session {
    /// Begins; a world that the machine cannot hold is refused with the reason.
    pub fn new(world: &mut dyn Environment, settings: Settings) -> Result<Session, EnvironmentError> {
        let mut learner = Learner::new(world.shape(), settings_of(settings))?;
        let mut seen = Seen::nothing();
        let forbidden: Vec<Forbidden> = world.forbidden().to_vec();
        if !learner.obey(&forbidden, &mut Notes(&mut seen)) {
            let reason =
                "what is forbidden cannot be put into force: too many pairs of observation and action";
            return Err(EnvironmentError::External(reason.to_string()));
        }
        let (shape, observation) = (world.shape().clone(), *world.observation());
        let world = Recorder::new(world).into_record();
        Ok(Session { learner, seen, world, calls: Vec::new(), shape, observation })
    }

    /// Works until `goes_on` says no, which is asked after every unit: told where the run stands, and whether an episode
    /// has begun and is not over. After an error the session can go on, with the episode in flight lost.
    pub fn run(
        &mut self,
        world: &mut dyn Environment,
        goes_on: &mut dyn FnMut(&Tally, bool) -> bool,
    ) -> Result<(), EnvironmentError> {
        self.work(world, goes_on, false)
    }

    /// The same, and it also ends before a unit that asks nothing of the world: that one is for [`Session::think`].
    pub fn run_until_thought(
        &mut self,
        world: &mut dyn Environment,
        goes_on: &mut dyn FnMut(&Tally, bool) -> bool,
    ) -> Result<(), EnvironmentError> {
        self.work(world, goes_on, true)
    }

    /// Whether the next unit asks nothing of the world.
    pub fn is_thinking(&self) -> bool {
        self.learner.is_thinking()
    }

    /// Does the next unit if it asks nothing of the world, wherever the world is: its owner may do so beside other work.
    pub fn think(&mut self) {
        if !self.is_thinking() {
            return;
        }
        let repeats = self.world.repeats();
        let mut absent = Stopped { shape: &self.shape, observation: &self.observation, repeats };
        let done = self.learner.advance(&mut absent, &mut Notes(&mut self.seen));
        assert!(done.is_ok(), "a unit that was to ask nothing of the world has asked it");
    }

    fn work(
        &mut self,
        world: &mut dyn Environment,
        goes_on: &mut dyn FnMut(&Tally, bool) -> bool,
        is_thought_left: bool,
    ) -> Result<(), EnvironmentError> {
        let mut recorder = Recorder::new(world);
        let outcome = loop {
            if is_thought_left && self.learner.is_thinking() {
                break Ok(());
            }
            match self.learner.advance(&mut recorder, &mut Notes(&mut self.seen)) {
                Ok(Event::Over) => break Ok(()),
                Ok(_) if !goes_on(self.learner.tally(), self.learner.is_in_episode()) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        (self.shape, self.observation) = (recorder.shape().clone(), *recorder.observation());
        let calls = recorder.into_record().into_calls();
        self.calls.extend_from_slice(&calls);
        outcome
    }

    /// The bytes from which [`Session::restore`] goes on as if nothing had happened.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.text(FORMAT);
        self.shape.encode(&mut writer);
        self.observation.0.iter().for_each(|word| writer.u64(*word));
        writer.bytes(&WorldFile::Record(self.world.clone().with_calls(self.calls.clone())).to_bytes());
        writer.bytes(&self.seen.put_away(&self.learner.encode()));
        writer.into_bytes()
    }

    /// The shape that a world must have for a session to go on in it.
    pub fn shape_in(bytes: &[u8]) -> Result<Shape, DecodeError> {
        Session::head(bytes).map(|(shape, _)| shape)
    }

    fn head(bytes: &[u8]) -> Result<(Shape, Reader<'_>), DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a session, or one of another version");
        if reader.text()? != FORMAT {
            return Err(foreign);
        }
        Ok((Shape::decode(&mut reader)?, reader))
    }

    /// A session that goes on in this world; the episode in flight is played up to where it was.
    pub fn restore(bytes: &[u8], world: &mut dyn Environment) -> Result<Session, RestoreError> {
        let (shape, mut reader) = Session::head(bytes)?;
        if shape != *world.shape() {
            return Err(RestoreError::OtherWorld);
        }
        let mut observation = Bits::ZERO;
        for word in &mut observation.0 {
            *word = reader.u64()?;
        }
        let unknown = reader.error("a session without the record of its world");
        let WorldFile::Record(record) = WorldFile::from_bytes(reader.bytes()?)? else {
            return Err(unknown.into());
        };
        let (seen, learner) = Seen::take_up(reader.bytes()?)?;
        reader.finish()?;
        let learner = Learner::restore(learner, world)?;
        let calls = record.calls().to_vec();
        Ok(Session { learner, seen, world: record.with_calls(Vec::new()), calls, shape, observation })
    }

    /// What was learned so far.
    pub fn learned(&self) -> Learned {
        self.learner.learned()
    }

    /// Where it stands.
    pub fn tally(&self) -> &Tally {
        self.learner.tally()
    }

    /// What was earned meanwhile.
    pub fn online(&self) -> &Online {
        &self.seen.online
    }

    /// All decisions about patches.
    pub fn decisions(&self) -> &[Decision] {
        &self.seen.decisions
    }

    /// How it works.
    pub fn settings(&self) -> &Settings {
        self.learner.settings()
    }

    /// The shape of the world, as wide as what it has paid.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What there is to keep if it ended now: the solution, and the world that a replay plays. A copy of the session is
    /// worked on up to its next question to the world, which is refused; the replay comes to the same end.
    pub fn close(&self) -> (Solution, WorldFile) {
        let mut last = self.clone();
        let repeats = self.world.repeats();
        let (shape, observation) = (&self.shape, &self.observation);
        let mut stopped = Stopped { shape, observation, repeats };
        let mut recorder = Recorder::new(&mut stopped);
        while last
            .learner
            .advance(&mut recorder, &mut Notes(&mut last.seen))
            .is_ok_and(|event| event != Event::Over)
        {}
        let mut calls = self.calls.clone();
        calls.extend_from_slice(recorder.into_record().calls());
        let file = WorldFile::Record(self.world.clone().with_calls(calls));
        let learned = last.learner.learned();
        let Seen { first_to_99, solved_since, curve, decisions, mut chronicle, online, .. } = last.seen;
        chronicle.seal();
        let evaluation = Evaluation { mean: Fixed::ZERO, error: Fixed::ZERO, bad: 0, episodes: 0 };
        let solution = Solution {
            gathered: Vec::new(),
            learned,
            yardstick: None,
            evaluation,
            steps_to_99: solved_since,
            first_to_99,
            curve,
            decisions,
            chronicle,
            online,
            shard: last.learner.into_shard(),
        };
        (solution, file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;
    use bem_evolve::patch::PatchKind;
    use bem_games::catalog;
    use bem_games::game::Game;
    use bem_games::import::pipe::{PipeWorld, Transport};
    use bem_synth::policy::Player;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn game(name: &str) -> Arc<dyn Game> {
        let family = catalog::family(name).unwrap();
        let settings = catalog::settings(family, &BTreeMap::new()).unwrap();
        catalog::build(family, &settings, 1).unwrap()
    }

    fn go_on(session: &mut Session, world: &mut dyn Environment, steps: u64) {
        session.run(world, &mut |tally, _| tally.steps < steps).unwrap();
    }

    #[test]
    fn pieces_and_the_whole_make_one_history_also_across_bytes() {
        for name in ["parity", "safety_grid", "dyck"] {
            let game = game(name);
            let mut world = game.start();
            let mut whole = Session::new(world.as_mut(), Settings::new(3)).unwrap();
            go_on(&mut whole, world.as_mut(), 3_000);
            let mut world = game.start();
            let mut parts = Session::new(world.as_mut(), Settings::new(3)).unwrap();
            for steps in [1, 7, 500, 1_777, 3_000] {
                go_on(&mut parts, world.as_mut(), steps);
                let bytes = parts.encode();
                assert_eq!(Session::shape_in(&bytes).unwrap(), *game.shape());
                world = game.start();
                parts = Session::restore(&bytes, world.as_mut()).unwrap();
                assert_eq!(parts.encode(), bytes);
            }
            assert_eq!(parts.encode(), whole.encode(), "{name}");
        }
    }

    #[test]
    fn what_is_thought_without_the_world_makes_the_same_history() {
        for name in ["parity", "safety_grid", "dyck"] {
            let game = game(name);
            let mut world = game.start();
            let mut whole = Session::new(world.as_mut(), Settings::new(3)).unwrap();
            go_on(&mut whole, world.as_mut(), 3_000);
            let mut world = game.start();
            let mut apart = Session::new(world.as_mut(), Settings::new(3)).unwrap();
            let mut thoughts = 0;
            while apart.tally().steps < 3_000 {
                apart.run_until_thought(world.as_mut(), &mut |tally, _| tally.steps < 3_000).unwrap();
                // What is saved before a thought thinks it after it was brought back.
                if apart.is_thinking() && apart.tally().steps < 3_000 {
                    apart = Session::restore(&apart.encode(), world.as_mut()).unwrap();
                    apart.think();
                    thoughts += 1;
                }
            }
            assert!(1 < thoughts);
            assert_eq!(apart.encode(), whole.encode(), "{name}");
        }
    }

    #[test]
    fn cut_bytes_are_refused_and_panic_nowhere() {
        let game = game("parity");
        let mut world = game.start();
        let mut session = Session::new(world.as_mut(), Settings::new(3)).unwrap();
        go_on(&mut session, world.as_mut(), 300);
        let bytes = session.encode();
        for cut in (0..bytes.len()).step_by(97) {
            assert!(Session::restore(&bytes[..cut], world.as_mut()).is_err(), "{cut}");
        }
    }

    /// A program with three numbers, a choice of 24 and a bit, in which action 2 pays best and is forbidden from 28 degrees on.
    struct Warm {
        prng: Prng,
        temp: u64,
        door: u64,
        step: u32,
        answer: String,
    }

    const WARM: &str = r#"{"hello":1,"actions":3,"horizon":4,"reward_range":[0,1000],
        "features":[{"name":"temp","kind":"number","min":-40,"max":60},{"name":"load","kind":"number","min":0,"max":100},
        {"name":"age","kind":"number","min":0,"max":30},{"name":"hour","kind":"choice","of":24},{"name":"door","kind":"bit"}],
        "forbid":[{"if":{"temp":">= 28"},"action":2}]}"#;

    impl Warm {
        fn open() -> PipeWorld<Warm> {
            let answer = WARM.to_string();
            PipeWorld::open(Warm { prng: Prng::stream(1, "warm"), temp: 0, door: 0, step: 0, answer })
                .unwrap()
        }

        fn look(&mut self) -> String {
            let Warm { prng, .. } = self;
            (self.temp, self.door) = (10 + prng.below(40), prng.below(2));
            let (load, age, hour) = (prng.below(101), prng.below(31), prng.below(24));
            let (temp, door) = (self.temp, self.door);
            format!(r#"{{"temp":{temp},"load":{load},"age":{age},"hour":{hour},"door":{door}}}"#)
        }
    }

    impl Transport for Warm {
        fn send(&mut self, line: &str) -> Result<(), String> {
            let number: u64 = line.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap();
            if line.contains("reset") {
                (self.prng, self.step) = (Prng::stream(number, "warm"), 0);
                self.answer = format!("{{\"obs\":{}}}", self.look());
                return Ok(());
            }
            assert!(self.temp < 28 || number != 2, "the forbidden action was tried");
            let reward = if number == 2 { 1_000 } else { 600 * u64::from(number == self.door) };
            self.step += 1;
            let done = self.step == 4;
            self.answer = format!("{{\"obs\":{},\"reward\":{reward},\"done\":{done}}}", self.look());
            Ok(())
        }

        fn receive(&mut self) -> Result<String, String> {
            Ok(core::mem::take(&mut self.answer))
        }
    }

    #[test]
    fn one_feature_of_many_forbids_an_action_that_is_never_tried() {
        let mut world = Warm::open();
        assert!((1..8).contains(&world.forbidden().len()), "{}", world.forbidden().len());
        let mut session = Session::new(&mut world, Settings::new(3)).unwrap();
        go_on(&mut session, &mut world, 12_000);
        let first = &session.decisions()[0];
        assert!(first.kind == PatchKind::Guard && first.accepted && 0 < first.proofs, "{first:?}");
        assert!(first.words.contains("patterns of observation and action"), "{}", first.words);
        // It comes back from its bytes with what is forbidden, and goes on in such a world.
        let bytes = session.encode();
        let mut other = Warm::open();
        let mut again = Session::restore(&bytes, &mut other).unwrap();
        assert_eq!(again.encode(), bytes);
        go_on(&mut again, &mut other, 12_500);
        // What was learned takes it nearly everywhere where it may, and nowhere else, also where nobody has been.
        let learned = again.learned();
        let encoder = other.encoder().unwrap();
        let (mut taken, mut prng) = (0, Prng::stream(2, "rows"));
        for row in 0..2_000 {
            let temp = row % 101 - 40;
            let (load, age, hour, door) = (prng.below(101), prng.below(31), prng.below(24), prng.below(2));
            let row = format!(r#"{{"temp":{temp},"load":{load},"age":{age},"hour":{hour},"door":{door}}}"#);
            let action = Player::new(learned.agent.policy()).act(&encoder.encode_json(&row).unwrap());
            assert!(temp < 28 || action != 2, "{row}");
            taken += usize::from(action == 2);
        }
        assert!(1_200 < taken, "{taken} of 1,346");
    }

    #[test]
    fn a_closed_session_is_played_again_from_its_record_to_the_same_end() {
        use crate::solve::{Lesson, teach_world};
        use crate::world_file::record::Playback;
        let game = game("safety_grid");
        let mut world = game.start();
        let mut session = Session::new(world.as_mut(), Settings::new(5)).unwrap();
        go_on(&mut session, world.as_mut(), 2_500);
        let (solution, file) = session.close();
        let WorldFile::Record(record) = &file else { panic!("a record") };
        let lesson = Lesson::alone(settings_of(Settings::new(5)));
        let broken = teach_world(&mut Playback::new(record), lesson, &mut |_| true).err().unwrap();
        assert_eq!(broken.error.to_string(), STOPPED);
        let again = broken.kept.unwrap();
        assert_eq!(again.learned.chain_head, solution.learned.chain_head);
        assert_eq!(again.learned.tally, solution.learned.tally);
    }
}
