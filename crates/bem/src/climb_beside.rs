//! A server that nobody asks climbs the ladder: rungs are worlds of its own history, played one after the other.
//!
//! The climber is a client like any other. It makes a world, asks for decisions and rewards them, all of it inputs of the same
//! history; the learner sees observations and rewards, and nothing of the game behind them. One rung is worked on at a time, for
//! so many decisions at most and so many a second; whoever else asks has the server for himself. What was reached is read from
//! the worlds, so that a restart goes on. The pipeline stands beside it, apart from the history (`pipeline_beside.rs`).
//! Clauses: GLE-5, IMG-1; decision D-123.

use crate::beside_thread::BesideThread;
use bem_base::digest::hash_parts;
use bem_base::environment::{EnvironmentError, Outcome};
use bem_base::fixed::Fixed;
use bem_engine::evaluate::Yardstick;
use bem_games::compose::NoPrograms;
use bem_games::game::Game;
use bem_runtime::input::{OWN_NOTE, WorldSpec};
use bem_runtime::limits::HORIZON_MAX;
use bem_runtime::service::Service;
use bem_runtime::world::World;
use bem_serve::core::{Decided, Handle, Message, Seen};
use bem_serve::priority;
use bem_teacher::ladder::{Domain, Ladder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Stages of every family: with all families fewer worlds than half of those that a history may have.
const STAGES: usize = 4;
/// Decisions that a rung gets at most.
const DECISIONS_MAX: u64 = 40_000;
/// Episodes before a rung can be reached.
const EPISODES_MIN: u64 = 512;
/// The score of the newest quarter of episodes, exploration included, at which a rung is reached.
const REACHED: Fixed = Fixed::from_ratio(9, 10);
/// How long nobody must have asked.
const QUIET: Duration = Duration::from_secs(1);
/// How long a question to the server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether a world is a rung: what goes wrong in it goes wrong in a game.
pub fn is_rung(world: &World) -> bool {
    world.spec().is_own()
}

/// One rung as a world.
struct Rung {
    game: Arc<dyn Game>,
    spec: WorldSpec,
}

/// The rungs that can be served, the easiest of all families first.
fn rungs() -> Vec<Rung> {
    let ladders: Vec<(Domain, Ladder)> = Domain::all().map(|domain| (domain, Ladder::new(domain))).collect();
    let mut rungs = Vec::new();
    for stage in 0..STAGES {
        for (domain, ladder) in &ladders {
            let found = ladder.rungs(STAGES);
            let game = found.get(stage).and_then(|rung| rung.tree.build(1, &NoPrograms).ok());
            let spec = game
                .as_ref()
                .map(|game| spec_of(domain.name(), stage, found[stage].tree.to_string(), &**game));
            if let (Some(game), Some(spec)) = (game, spec.filter(|spec| spec.check().is_ok())) {
                rungs.push(Rung { game, spec });
            }
        }
    }
    rungs
}

fn spec_of(family: &str, stage: usize, task: String, game: &dyn Game) -> WorldSpec {
    let shape = game.shape();
    let rewards = (shape.reward_min, shape.reward_max);
    let horizon = shape.horizon.min(HORIZON_MAX + 1);
    WorldSpec {
        name: format!("ladder-{family}-{}", stage + 1),
        shape: WorldSpec::shape_of(
            shape.observation_bits,
            shape.actions,
            horizon,
            rewards,
            shape.fields.clone(),
        ),
        min_propensity: Fixed::ZERO,
        expire_after: horizon.max(64),
        forbidden: game.start().forbidden().to_vec(),
        note: format!("{OWN_NOTE}{task}"),
        floor: None,
    }
}

/// How a rung stands in a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// Nobody has begun it.
    New,
    /// It is worked on; so many episodes are complete.
    Begun(u64),
    /// Nothing is learned in it until a person approves it.
    Waits,
    /// It got all its decisions, and is not reached.
    GivenUp,
    /// It is reached.
    Reached,
}

fn stands(service: &Service, rung: &WorldSpec, yardstick: Yardstick) -> Stands {
    let Ok((index, world)) = service.find(&rung.name) else { return Stands::New };
    if service.is_turned_away(index) {
        return Stands::GivenUp;
    }
    if !service.may_learn(index) && world.is_round_due(0) {
        return Stands::Waits;
    }
    let statistics = world.statistics();
    let curve = &statistics.curve;
    let newest = &curve[curve.len() - curve.len().div_ceil(4)..];
    let count: u64 = newest.iter().map(|point| point.count).sum();
    let sum: i128 = newest.iter().map(|point| point.sum).sum();
    let mean = i64::try_from(sum).ok().filter(|_| 0 < count).map(|sum| Fixed::from_ratio(sum, count as i64));
    let is_good = mean.is_some_and(|mean| REACHED <= yardstick.score(mean));
    match statistics.decisions {
        _ if EPISODES_MIN <= statistics.returns.count && is_good => Stands::Reached,
        decisions if DECISIONS_MAX <= decisions => Stands::GivenUp,
        _ => Stands::Begun(statistics.returns.count),
    }
}

/// Starts a climber that takes at most so many decisions a second.
pub fn start(rate: u32, handle: &Handle) -> BesideThread {
    let (handle, quiet) = (handle.clone(), Quiet::new(handle));
    let pause = Duration::from_secs(1) / rate.max(1);
    BesideThread::start("bem-climb", move |stop| Climber { handle, stop, pause, quiet }.run())
}

struct Climber {
    handle: Handle,
    stop: Arc<AtomicBool>,
    /// Between two decisions.
    pause: Duration,
    quiet: Quiet,
}

/// Whether somebody else has asked the server lately.
pub struct Quiet {
    handle: Handle,
    /// Decisions of others so far, and when that was seen to change.
    others: (u64, Instant),
}

impl Quiet {
    /// Begins to look.
    pub fn new(handle: &Handle) -> Quiet {
        Quiet { handle: handle.clone(), others: (0, Instant::now()) }
    }

    /// Returns when nobody else has asked for a while, or when it is over.
    pub fn wait(&mut self, is_over: impl Fn() -> bool) {
        let gauges = &self.handle.gauges;
        while !is_over() {
            let own = gauges.decisions_own.load(Ordering::Relaxed);
            let others = gauges.decisions.load(Ordering::Relaxed).saturating_sub(own);
            if self.others.0 != others {
                self.others = (others, Instant::now());
            }
            if QUIET <= self.others.1.elapsed() {
                return;
            }
            std::thread::sleep(QUIET / 10);
        }
    }
}

/// Why an episode was not played to its end.
#[derive(Debug)]
enum Break {
    /// The server stops, is busy or refuses.
    Server,
    /// The game does.
    Game,
}

impl From<EnvironmentError> for Break {
    fn from(_: EnvironmentError) -> Break {
        Break::Game
    }
}

impl Climber {
    fn run(mut self) {
        priority::give_way(priority::SAVING);
        for rung in rungs() {
            self.climb(&rung);
            if self.is_over() {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Works on a rung until it is reached or given up.
    fn climb(&mut self, rung: &Rung) {
        let yardstick = Yardstick::of(&*rung.game);
        let mut running = rung.game.start();
        while !self.is_over() {
            let spec = rung.spec.clone();
            let found = self.handle.look_within(PATIENCE, move |service| stands(service, &spec, yardstick));
            let first = match found {
                Some(Stands::New) => {
                    let spec = Box::new(rung.spec.clone());
                    match self.handle.ask_here(|reply| Message::Create(spec, reply)) {
                        Some(Ok(_)) => 0,
                        // It cannot be served, or there are too many worlds: the next one.
                        Some(Err(_)) => return,
                        None => {
                            std::thread::sleep(QUIET);
                            continue;
                        }
                    }
                }
                Some(Stands::Begun(episodes)) => episodes,
                Some(Stands::GivenUp) => return,
                Some(Stands::Reached) => {
                    self.handle.gauges.rungs_reached.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Some(Stands::Waits) | None => {
                    std::thread::sleep(QUIET);
                    continue;
                }
            };
            for episode in first..first + 64 {
                let stop = &self.stop;
                self.quiet.wait(|| stop.load(Ordering::Relaxed));
                match self.play(&rung.spec, &mut *running, episode) {
                    Ok(()) if !self.is_over() => {}
                    Err(Break::Game) => return,
                    _ => break,
                }
            }
        }
    }

    /// Plays one episode; its seed follows from the rung and the number of the episode.
    fn play(
        &mut self,
        spec: &WorldSpec,
        running: &mut dyn bem_base::environment::Environment,
        episode: u64,
    ) -> Result<(), Break> {
        let digest = hash_parts("bem/climb-beside", &[spec.name.as_bytes(), &episode.to_le_bytes()]);
        let seed = digest.as_bytes().iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte));
        running.reset(seed)?;
        let bits = usize::from(spec.shape.observation_bits);
        loop {
            if self.is_over() {
                return Err(Break::Server);
            }
            std::thread::sleep(self.pause);
            let (world, observation) = (spec.name.clone(), Seen::Bits(*running.observation(), bits));
            let name = if spec.shape.horizon == 1 { String::new() } else { format!("climb-{episode}") };
            let decided =
                self.handle.ask_here(|reply| Message::Decide { world, observation, episode: name, reply });
            let Some(Ok(Decided { decision, action, .. })) = decided else { return Err(Break::Server) };
            self.handle.gauges.decisions_own.fetch_add(1, Ordering::Relaxed);
            let Outcome { reward, done, bad } = running.step(action)?;
            let (world, outcome) = (spec.name.clone(), Outcome { reward, done, bad });
            let message =
                |reply| Message::Reward { world, decision, outcome, done: Some(done), seen: None, reply };
            if !matches!(self.handle.ask_here(message), Some(Ok(_))) {
                return Err(Break::Server);
            }
            if done {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_runtime::limits::WORLDS_MAX;
    use std::collections::BTreeSet;

    #[test]
    fn rungs_are_few_enough_have_names_of_their_own_and_begin_with_the_easiest() {
        let rungs = rungs();
        let names: BTreeSet<&str> = rungs.iter().map(|rung| rung.spec.name.as_str()).collect();
        assert_eq!(names.len(), rungs.len());
        assert!(rungs.len() <= WORLDS_MAX / 2, "{}", rungs.len());
        let stages: Vec<&str> = rungs.iter().filter_map(|rung| rung.spec.name.rsplit('-').next()).collect();
        assert!(
            stages.is_sorted() && 20 <= stages.iter().filter(|stage| **stage == "1").count(),
            "{stages:?}"
        );
    }
}
