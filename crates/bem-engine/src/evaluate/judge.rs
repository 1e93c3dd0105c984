//! The evaluator of one game, for all policies that a run wants to know about.
//!
//! Policies play 256 episodes side by side; an agent that adapts within an episode plays one after the other. Between
//! two looks at what is known there are as many episodes either way (a thousand, fewer where they are very long), with the same seeds, and all sums are sums of
//! integers: the numbers are the same bit for bit. What the oracle earns in an episode is asked once and kept, at most
//! for the episodes that [`EVALUATION_STEPS_MAX`](super::EVALUATION_STEPS_MAX) allows. Clauses: SCC-8, GLE-1.

use super::lanes::{LanePlayer, LaneWorlds};
use super::scalar::{evaluate_within, play_oracle};
use super::tally::Tally;
use super::{Evaluation, Extent, Played, Yardstick, look_of};
use crate::agent::Agent;
use crate::seeds::{Domain, Seeds};
use bem_base::environment::{Environment, EnvironmentError};
use bem_base::fixed::Fixed;
use bem_games::game::{Game, Oracle};
use bem_synth::policy::Policy;

/// What evaluates: worlds of its own, what there is to gain in them, and who plays them best.
pub struct Judge<'g> {
    yardstick: Yardstick,
    /// The standard error of the stated optimum.
    doubt: Fixed,
    horizon: u32,
    lanes: LaneWorlds<'g>,
    best: Best,
}

impl<'g> Judge<'g> {
    /// Asks the game for its optimum and for random play.
    pub fn new(game: &'g dyn Game) -> Judge<'g> {
        Judge {
            yardstick: Yardstick::of(game),
            doubt: game.optimum().standard_error,
            horizon: game.shape().horizon,
            lanes: LaneWorlds::new(game),
            best: Best::new(game),
        }
    }

    /// What the optimum and random play are worth.
    pub fn yardstick(&self) -> Yardstick {
        self.yardstick
    }

    /// Evaluates an agent, like [`super::evaluate`] with the game's yardstick and oracle, and with the same result where the optimum
    /// is exact.
    pub fn evaluate(&mut self, agent: &Agent, run_seed: u64) -> Result<Evaluation, EnvironmentError> {
        let extent = Extent::of(&[agent.policy()], self.horizon, self.doubt);
        let yardstick = Some(self.yardstick);
        if agent.adapts() {
            let Best { world, oracle, .. } = &mut self.best;
            return evaluate_within(
                extent,
                world.as_mut(),
                agent,
                run_seed,
                yardstick,
                Some(oracle.as_mut()),
            );
        }
        let mut batches = Batches::new(run_seed, self.horizon);
        let mut player = LanePlayer::new(agent.policy());
        let (mut tally, mut played) = (Tally::new(extent), Vec::new());
        self.best.turn_to(run_seed);
        loop {
            let first = batches.advance();
            self.lanes.play(&mut player, &batches.seeds, &mut played)?;
            self.best.reach(first, &batches.seeds)?;
            for (played, best) in played.iter().zip(&self.best.returns[first..]) {
                tally.add(played, Some(*best));
            }
            if tally.is_enough(yardstick) {
                return Ok(tally.evaluation(yardstick));
            }
        }
    }

    /// How much more one policy earns than another in the same episodes, on average: as many as it takes to know whether
    /// it earns less by more than the tolerance. What both owe to luck cancels out.
    pub fn compare(&mut self, policies: [&Policy; 2], run_seed: u64) -> Result<Fixed, EnvironmentError> {
        let mut batches = Batches::new(run_seed, self.horizon);
        let [mut one, mut other] = policies.map(LanePlayer::new);
        let [mut before, mut after]: [Vec<Played>; 2] = Default::default();
        let mut tally = Tally::new(Extent::of(&policies, self.horizon, self.doubt));
        loop {
            batches.advance();
            self.lanes.play(&mut one, &batches.seeds, &mut before)?;
            self.lanes.play(&mut other, &batches.seeds, &mut after)?;
            before.iter().zip(&after).for_each(|(before, after)| tally.add_pair([before, after]));
            if let Some(difference) = tally.difference(self.yardstick) {
                return Ok(difference);
            }
        }
    }
}

/// The seeds of an evaluation, as many at a time as lie between two looks.
struct Batches {
    source: Seeds,
    seeds: Vec<u64>,
    look: u32,
    next: usize,
}

impl Batches {
    fn new(run_seed: u64, horizon: u32) -> Batches {
        let source = Seeds::new(run_seed, Domain::Evaluation);
        Batches { source, seeds: Vec::new(), look: look_of(horizon), next: 0 }
    }

    /// Goes on to the next of them; returns the number of the first.
    fn advance(&mut self) -> usize {
        self.seeds.clear();
        self.seeds.extend((0..self.look).map(|_| self.source.next_seed()));
        let first = self.next;
        self.next += self.seeds.len();
        first
    }
}

/// What the oracle earns in the episodes of one run's evaluations, as far as it has played them.
struct Best {
    world: Box<dyn Environment + Send>,
    oracle: Box<dyn Oracle>,
    run_seed: u64,
    returns: Vec<i64>,
}

impl Best {
    fn new(game: &dyn Game) -> Best {
        Best { world: game.start(), oracle: game.oracle(), run_seed: 0, returns: Vec::new() }
    }

    /// Forgets the episodes of another run.
    fn turn_to(&mut self, run_seed: u64) {
        if self.run_seed != run_seed {
            self.returns.clear();
        }
        self.run_seed = run_seed;
    }

    /// Plays what has not been played of these episodes, the first of which has this number.
    fn reach(&mut self, first: usize, seeds: &[u64]) -> Result<(), EnvironmentError> {
        let known = self.returns.len() - first;
        for seed in seeds.iter().skip(known) {
            self.returns.push(play_oracle(self.world.as_mut(), self.oracle.as_mut(), *seed)?);
        }
        Ok(())
    }
}
