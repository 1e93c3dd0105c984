//! A game beside which best play is played on the seeds of its own episodes: luck that both have in common is not counted as
//! skill.
//!
//! What an episode loses is what best play earns on its seed less what it earned. In expectation that is the regret, and where
//! chance pays both alike nothing is left of it. Whoever plays sees the world alone, and the evaluator the game as it was.
//! Clauses: VM-16; decisions D-97, D-267.

use crate::losses::Losses;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Environment, EnvironmentError, Forbidden, Late, Outcome, Shape};
use bem_base::lanes::LaneEnvironment;
use bem_engine::online::Online;
use bem_games::game::{Game, Oracle, Steps, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Episodes that wait for best play at most.
const WAITING_MAX: usize = 256;
/// Steps of best play at most; beyond, what it earns on average has to do.
const BEST_STEPS_MAX: u64 = 100_000_000;
/// The first words of a lesson that was put away with its losses.
const FORMAT: &str = "bem lesson beside best play 1";

/// A game as a learner plays it, and what was lost in it.
pub struct Beside {
    game: Arc<dyn Game>,
    book: Arc<Mutex<Book>>,
}

impl Beside {
    /// Nothing was played yet.
    pub fn new(game: Arc<dyn Game>) -> Beside {
        Beside::after(game, Losses::default())
    }

    /// After what was lost before.
    pub fn after(game: Arc<dyn Game>, losses: Losses) -> Beside {
        let book = Book { game: Arc::clone(&game), waiting: Vec::new(), best: None, losses };
        Beside { game, book: Arc::new(Mutex::new(book)) }
    }

    /// What was lost so far.
    pub fn losses(&self) -> Result<Losses, EnvironmentError> {
        let mut book = open(&self.book);
        book.settle()?;
        Ok(book.losses.clone())
    }

    /// What was lost in the episodes of this curve; none unless best play was played beside each of them.
    pub fn losses_of(&self, online: &Online) -> Result<Option<Losses>, EnvironmentError> {
        let losses = self.losses()?;
        let (lost, earned) = (losses.now(), online.now());
        let is_whole = (lost.episodes, lost.steps) == (earned.episodes, earned.steps);
        Ok(is_whole.then_some(losses))
    }
}

impl Game for Beside {
    fn shape(&self) -> &Shape {
        self.game.shape()
    }

    fn start(&self) -> Box<dyn Environment + Send> {
        Box::new(Watched {
            world: self.game.start(),
            book: Arc::clone(&self.book),
            episode: Ended { seed: 0, steps: 0, earned: 0 },
        })
    }

    fn start_sliced(&self) -> Option<Box<dyn LaneEnvironment + Send>> {
        self.game.start_sliced()
    }

    fn optimum(&self) -> Value {
        self.game.optimum()
    }

    fn random(&self) -> Value {
        self.game.random()
    }

    fn steps(&self) -> Steps {
        self.game.steps()
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        self.game.oracle()
    }

    /// What an evaluator plays is none of the learner's episodes.
    fn without_terms(&self) -> Option<&dyn Game> {
        Some(plain(self.game.as_ref()))
    }
}

/// The game as an evaluator plays it.
fn plain(game: &dyn Game) -> &dyn Game {
    game.without_terms().unwrap_or(game)
}

fn open(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An episode of the learner.
#[derive(Clone, Copy, Debug)]
struct Ended {
    seed: u64,
    steps: u64,
    earned: i64,
}

/// Episodes that ended, and what they lost.
struct Book {
    game: Arc<dyn Game>,
    /// Episodes beside which best play has not been played yet.
    waiting: Vec<Ended>,
    /// The last seed that best play has played, and what it earned: pairs share a seed.
    best: Option<(u64, i64)>,
    losses: Losses,
}

impl Book {
    fn take(&mut self, ended: Ended) -> Result<(), EnvironmentError> {
        if BEST_STEPS_MAX < self.losses.best_steps() {
            return Ok(());
        }
        self.waiting.push(ended);
        if self.waiting.len() < WAITING_MAX { Ok(()) } else { self.settle() }
    }

    /// Plays best beside all episodes that wait.
    fn settle(&mut self) -> Result<(), EnvironmentError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let game = plain(self.game.as_ref());
        let (mut twin, mut oracle) = (game.start(), game.oracle());
        for Ended { seed, steps, earned } in self.waiting.drain(..) {
            let (total, taken) = match self.best {
                Some((known, total)) if known == seed => (total, 0),
                _ => play_best(twin.as_mut(), oracle.as_mut(), seed)?,
            };
            self.best = Some((seed, total));
            self.losses.book(steps, total - earned, taken);
        }
        Ok(())
    }
}

/// What best play earns on this seed, and in how many steps.
fn play_best(
    twin: &mut dyn Environment,
    oracle: &mut dyn Oracle,
    seed: u64,
) -> Result<(i64, u64), EnvironmentError> {
    twin.reset(seed)?;
    oracle.begin(seed);
    let (mut total, mut taken) = (0, 0);
    loop {
        let action = oracle.act(twin.observation());
        let outcome = twin.step(action)?;
        oracle.see(action, &outcome);
        (total, taken) = (total + i64::from(outcome.reward), taken + 1);
        if outcome.done {
            return Ok((total, taken));
        }
    }
}

/// A running world whose episodes are written down when they end. Where seeds do not come back, nobody can play beside it.
struct Watched {
    world: Box<dyn Environment + Send>,
    book: Arc<Mutex<Book>>,
    episode: Ended,
}

impl Environment for Watched {
    fn shape(&self) -> &Shape {
        self.world.shape()
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.episode = Ended { seed, steps: 0, earned: 0 };
        self.world.reset(seed)
    }

    fn observation(&self) -> &Bits {
        self.world.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let outcome = self.world.step(action)?;
        let late: i64 = self.world.late().iter().map(|late| i64::from(late.reward)).sum();
        self.episode.steps += 1;
        self.episode.earned += i64::from(outcome.reward) + late;
        if outcome.done && self.world.repeats() {
            open(&self.book).take(self.episode)?;
        }
        Ok(outcome)
    }

    fn forbidden(&self) -> &[Forbidden] {
        self.world.forbidden()
    }

    fn repeats(&self) -> bool {
        self.world.repeats()
    }

    fn is_awaited(&self) -> bool {
        self.world.is_awaited()
    }

    fn late(&self) -> &[Late] {
        self.world.late()
    }
}

/// A lesson that is put away, with what was lost in it so far.
pub fn with_losses(lesson: &[u8], losses: &Losses) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.text(FORMAT);
    writer.bytes(lesson);
    losses.encode(&mut writer);
    writer.into_bytes()
}

/// The bytes of a lesson that was put away, and what was lost in it. Of one that was put away alone nothing is known to be
/// lost.
pub fn without_losses(bytes: Vec<u8>) -> (Vec<u8>, Losses) {
    let read = |bytes: &[u8]| -> Result<(Vec<u8>, Losses), DecodeError> {
        let mut reader = Reader::new(bytes);
        let alone = reader.error("a lesson without losses");
        if reader.text()? != FORMAT {
            return Err(alone);
        }
        let lesson = reader.bytes()?.to_vec();
        let losses = Losses::decode(&mut reader)?;
        reader.finish()?;
        Ok((lesson, losses))
    };
    read(&bytes).unwrap_or((bytes, Losses::default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::Lost;
    use bem_base::prng::Prng;
    use bem_engine::learner::Settings;
    use bem_engine::solve::solve;
    use bem_games::families::bandit::{BanditRules, Pay};
    use bem_games::generated::WorldKind;
    use bem_games::rules::RuleGame;
    use bem_games::wrappers::{Terms, on_terms};

    /// What 4,000 episodes lose in a world of noise, by actions drawn evenly or by best play, as a part of what there is to
    /// lose.
    fn scores(is_best: bool) -> (f64, f64) {
        let game = WorldKind::Noise.draw(3);
        let milli = |value: Value| value.mean.to_raw() as f64 / f64::from(2.0f32).powi(32);
        let worth = milli(game.optimum()) - milli(game.random());
        let beside = Beside::new(Arc::clone(&game));
        let mut world = beside.start();
        let (mut oracle, mut seeds, mut prng) = (game.oracle(), Prng::quick(1), Prng::quick(2));
        for _ in 0..4_000 {
            let seed = seeds.next_u64() >> 2;
            world.reset(seed).expect("it begins");
            oracle.begin(seed);
            let best = oracle.act(world.observation());
            let drawn = prng.below(u64::from(world.shape().actions)) as u16;
            world.step(if is_best { best } else { drawn }).expect("it goes on");
        }
        let losses = beside.losses().expect("best play is played");
        let score = |before: Lost| losses.now().score_since(&before, worth);
        let (all, late) = (score(Lost::default()), score(losses.at(2_000)));
        (all.expect("episodes"), late.expect("half of the steps were taken"))
    }

    #[test]
    fn best_play_scores_one_whatever_its_luck_and_random_play_about_zero() {
        assert_eq!(scores(true), (1.0, 1.0));
        let (score, last_half) = scores(false);
        assert!(score.abs() < 0.1 && last_half.abs() < 0.1, "{score} {last_half}");
    }

    #[test]
    fn rewards_that_come_late_are_counted_with_their_episode() {
        let beside =
            Beside::new(on_terms(WorldKind::Difference.draw(3), Terms { unrepeated: false, delay: 2 }));
        let (mut world, mut oracle) = (beside.start(), beside.oracle());
        for seed in 0..20 {
            world.reset(seed).expect("it begins");
            oracle.begin(seed);
            loop {
                let action = oracle.act(world.observation());
                let outcome = world.step(action).expect("it goes on");
                oracle.see(action, &outcome);
                if outcome.done {
                    break;
                }
            }
        }
        let losses = beside.losses().expect("best play is played");
        assert!(20 < losses.now().steps, "an episode of one step has nothing to wait for");
        assert_eq!((losses.now().episodes, losses.now().lost), (20, 0));
    }

    #[test]
    fn a_learner_does_what_it_does_alone_and_every_episode_is_accounted_for() {
        let bandit = || -> Arc<dyn Game> {
            Arc::new(RuleGame::new(BanditRules { arms: 4, best: 2, pay: Pay::with_gap(20) }))
        };
        let settings =
            Settings { budget: 3_000, ..Settings::new(5) }.with(|config| config.until_budget = true);
        let alone = solve(bandit().as_ref(), settings.clone(), &mut |_| true).expect("it is learned");
        let beside = Beside::new(bandit());
        let watched = solve(&beside, settings.clone(), &mut |_| true).expect("it is learned");
        assert_eq!(watched.learned.chain_head, alone.learned.chain_head);
        assert_eq!((watched.evaluation, &watched.online), (alone.evaluation, &alone.online));
        let losses = beside.losses_of(&watched.online).expect("best play is played").expect("every episode");
        // On one seed the best arm pays whenever another one does: no episode gains.
        assert!(0 < losses.now().lost && losses.now().error() < losses.now().lost as f64, "{losses:?}");
        for (terms, is_known) in
            [(Terms { unrepeated: true, delay: 0 }, false), (Terms { unrepeated: false, delay: 3 }, true)]
        {
            let beside = Beside::new(on_terms(bandit(), terms));
            let watched = solve(&beside, settings.clone(), &mut |_| true).expect("it is learned");
            let losses = beside.losses_of(&watched.online).expect("best play is played");
            assert_eq!(losses.is_some(), is_known, "{terms:?}");
        }
    }

    #[test]
    fn a_lesson_comes_back_with_its_losses_or_without() {
        let mut losses = Losses::default();
        losses.book(3, 500, 4);
        assert_eq!(without_losses(with_losses(b"lesson", &losses)), (b"lesson".to_vec(), losses.clone()));
        assert_eq!(without_losses(b"lesson".to_vec()), (b"lesson".to_vec(), Losses::default()));
        let mut torn = with_losses(b"lesson", &losses);
        torn.pop();
        assert_eq!(without_losses(torn.clone()), (torn, Losses::default()));
    }
}
