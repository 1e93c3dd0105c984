//! A world outside that goes on where a record ends: what is recorded is answered from the record, the rest by the world.
//!
//! A learner that begins again with the same settings asks the same calls, so that nothing that was played before is played
//! again. One with other settings (a larger budget) may ask something else at some point; the world is brought to that
//! point by the actions of the episode, and answers from there on; where an episode cannot be repeated, the one under way is
//! lost. Must not know files or processes. Clauses: LOG-5, GLE-9.

use super::record::{Playback, Record, widen};
use bem_base::environment::{Bits, Environment, EnvironmentError, Forbidden, Late, Outcome, Shape};

/// A record, and the world that goes on after it.
pub struct Continued<'a> {
    world: &'a mut dyn Environment,
    /// None once the world itself answers.
    playback: Option<Playback>,
    /// Seed and actions of the episode that is played from the record.
    episode: Option<(u64, Vec<u16>)>,
    answered: u64,
    /// The shape of the world, as wide as what record and world have paid so far.
    shape: Shape,
    /// What the episode has paid.
    total: i64,
}

impl<'a> Continued<'a> {
    /// Goes through the whole episodes of the record first. The record must be of a world of the same shape.
    pub fn new(world: &'a mut dyn Environment, record: Option<&Record>) -> Continued<'a> {
        let playback = record.map(|record| Playback::new(&record.whole_episodes()));
        let shape = world.shape().clone();
        Continued { world, playback, episode: None, answered: 0, shape, total: 0 }
    }

    /// Steps that the record answered.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// From here on the world answers; it is brought to where the record stands.
    fn go_live(&mut self) -> Result<(), EnvironmentError> {
        self.playback = None;
        if self.episode.is_some() && !self.world.repeats() {
            self.episode = None;
            return Err(EnvironmentError::Lost);
        }
        if let Some((seed, actions)) = self.episode.take() {
            self.world.reset(seed)?;
            for action in actions {
                if self.world.step(action)?.done {
                    let words =
                        "the program does not repeat an episode by its seed: it cannot go on from its record";
                    return Err(EnvironmentError::External(words.to_string()));
                }
            }
        }
        Ok(())
    }
}

impl Environment for Continued<'_> {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn forbidden(&self) -> &[Forbidden] {
        self.world.forbidden()
    }

    fn repeats(&self) -> bool {
        self.world.repeats()
    }

    fn is_awaited(&self) -> bool {
        self.playback.as_ref().map_or_else(|| self.world.is_awaited(), Playback::is_awaited)
    }

    fn late(&self) -> &[Late] {
        match &self.playback {
            Some(playback) => playback.late(),
            None => self.world.late(),
        }
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.total = 0;
        if let Some(playback) = &mut self.playback {
            if !playback.is_over() && playback.reset(seed).is_ok() {
                self.episode = Some((seed, Vec::new()));
                return Ok(());
            }
            self.episode = None;
            self.go_live()?;
        }
        self.world.reset(seed)
    }

    fn observation(&self) -> &Bits {
        match &self.playback {
            Some(playback) => playback.observation(),
            None => self.world.observation(),
        }
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let outcome = self.answer(action)?;
        let (is_awaited, late) = (self.is_awaited(), self.late().to_vec());
        self.total += widen(&mut self.shape, &outcome, is_awaited, &late);
        if outcome.done {
            self.shape.cover_return(self.total);
        }
        Ok(outcome)
    }
}

impl Continued<'_> {
    /// The answer to an action, from the record or from the world.
    fn answer(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        if let Some(playback) = &mut self.playback {
            let answer = playback.step(action);
            if answer == Err(EnvironmentError::Lost) {
                self.episode = None;
                return answer;
            }
            if let Ok(outcome) = answer {
                self.answered += 1;
                if let Some((_, actions)) = &mut self.episode {
                    actions.push(action);
                }
                return Ok(outcome);
            }
            self.go_live()?;
        }
        self.world.step(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::Settings;
    use crate::solve::solve_world;
    use crate::world_file::record::Recorder;
    use bem_games::compose::{NoPrograms, TaskTree};

    /// Counts the steps that are really made.
    struct Counted<'a>(&'a mut dyn Environment, u64);

    impl Environment for Counted<'_> {
        fn shape(&self) -> &Shape {
            self.0.shape()
        }
        fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
            self.0.reset(seed)
        }
        fn observation(&self) -> &Bits {
            self.0.observation()
        }
        fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
            self.1 += 1;
            self.0.step(action)
        }
    }

    /// Learns with a budget after a record; the record afterwards, the head, and the steps that were really made.
    fn learn(budget: u64, record: Option<&Record>) -> (Record, String, u64) {
        let game = TaskTree::parse("dyck{types=2,depth=4,length=8}").unwrap().build(5, &NoPrograms).unwrap();
        let mut world = game.start();
        let mut counted = Counted(world.as_mut(), 0);
        let mut continued = Continued::new(&mut counted, record);
        let mut recorder = Recorder::new(&mut continued);
        let settings = Settings { budget, ..Settings::new(5) };
        let solution = solve_world(&mut recorder, settings, &mut |_| true).unwrap();
        let record = recorder.into_record();
        (record, solution.learned.chain_head.to_hex(), counted.1)
    }

    #[test]
    fn a_record_cut_anywhere_leads_to_the_same_end_without_playing_again_what_it_holds() {
        let (whole, head, steps) = learn(400, None);
        assert!(!whole.is_cut());
        for share in [0, 1, 3, 7, 8] {
            let cut =
                Record::new(whole.shape().clone(), whole.calls()[..whole.calls().len() * share / 8].to_vec());
            let kept = cut.whole_episodes();
            let (again, same, played) = learn(400, Some(&cut));
            assert_eq!((&again, &same), (&whole, &head), "{share} eighths");
            // A step takes eight bytes or more, so that these are all steps of what was cut off.
            let lost = (whole.calls().len() - kept.calls().len()) as u64;
            assert!(played <= lost / 8 && played <= steps, "{played} of {steps} steps after {share} eighths");
        }
    }

    #[test]
    fn with_a_larger_budget_it_ends_as_if_it_had_been_given_at_once() {
        let (short, ..) = learn(150, None);
        let (long, head, steps) = learn(600, None);
        let (again, same, played) = learn(600, Some(&short));
        assert_eq!((again, same), (long, head));
        assert!(played < steps, "{played} of {steps}");
    }

    #[test]
    fn a_damaged_record_ends_where_its_last_whole_episode_ends() {
        let (whole, ..) = learn(200, None);
        for place in (0..whole.calls().len()).step_by(7) {
            let mut calls = whole.calls().to_vec();
            calls[place] ^= 0x5a;
            calls.truncate(place + 40);
            let kept = Record::new(whole.shape().clone(), calls).whole_episodes();
            assert!(kept.calls().len() <= place + 40);
            assert_eq!(kept.whole_episodes(), kept);
            assert!(!kept.is_cut());
        }
    }
}
