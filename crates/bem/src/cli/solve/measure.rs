//! The final evaluation of a frozen policy and the baselines beside it, with progress and a bound.
//!
//! Of a game the evaluation has been made while learning, and the baselines cost milliseconds. A program is somebody's own:
//! its episodes are announced, have a progress of their own, are counted apart from the budget, and `--eval-episodes`
//! bounds them. Clauses: SCC-8, GLE-9.

use crate::interrupt;
use crate::measured::{Compared, Measured};
use anyhow::{Context as _, Result};
use bem_base::environment::Environment;
use bem_engine::agent::Agent;
use bem_engine::evaluate::baselines::{Plan, baselines, evaluate_returns};
use bem_engine::evaluate::{EVALUATION_EPISODES, Evaluation};
use bem_engine::learner::Settings;
use bem_engine::solve::first_agent;
use bem_games::game::Game;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;

/// Steps that the baselines of a game may take in all.
const GAME_STEPS_MAX: u64 = 400_000;
/// Episodes of a program's baselines when nothing else is said.
const PROGRAM_BASELINE_EPISODES: u32 = 200;
/// Steps that the baselines of a program may take in all.
const PROGRAM_STEPS_MAX: u64 = 40_000;

/// The baselines of a game beside what was learned, which plays their episodes as well; none if no episodes are wanted.
pub fn game_baselines(
    game: &dyn Game,
    agent: Option<&Agent>,
    settings: &Settings,
    episodes: Option<u32>,
) -> Option<Compared> {
    let plan = Plan::new(game.shape(), episodes.unwrap_or(EVALUATION_EPISODES), GAME_STEPS_MAX);
    let first = first_agent(game.shape(), settings.clone()).ok()?;
    let (mut world, mut tick) = (game.start(), || !interrupt::is_asked());
    let returns = match agent {
        Some(agent) => {
            let played = evaluate_returns(world.as_mut(), agent, settings.seed, plan.episodes, &mut tick);
            played.ok()?.map_or_else(Vec::new, |(_, returns)| returns)
        }
        None => Vec::new(),
    };
    let found = baselines(world.as_mut(), &first, &returns, settings.seed, &plan, &mut tick);
    Compared::of(&found.ok()??)
}

/// What is measured of a program's policy, and how it is said.
pub struct ProgramMeasure {
    /// Episodes of the policy.
    pub episodes: u32,
    plan: Plan,
    is_quiet: bool,
}

impl ProgramMeasure {
    /// So many episodes at most; `is_quiet` where only JSON is wanted.
    pub fn new(world: &dyn Environment, episodes: Option<u32>, is_quiet: bool) -> ProgramMeasure {
        let baseline = episodes.unwrap_or(PROGRAM_BASELINE_EPISODES);
        let plan = Plan::new(world.shape(), baseline, PROGRAM_STEPS_MAX);
        ProgramMeasure { episodes: episodes.unwrap_or(EVALUATION_EPISODES), plan, is_quiet }
    }

    fn bar(&self, total: u64, what: &'static str) -> ProgressBar {
        if self.is_quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} episodes, {msg}");
        ProgressBar::new(total)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_message(what)
    }

    /// Plays them; none where no episodes are wanted or Ctrl-C cuts it short.
    pub fn run(
        &self,
        world: &mut dyn Environment,
        agent: &Agent,
        settings: &Settings,
    ) -> Result<Option<(Evaluation, Measured)>> {
        if self.episodes == 0 {
            return Ok(None);
        }
        if !self.is_quiet {
            note!(
                "bem: evaluation: {} episodes of the policy, {} of baselines; not counted in the budget",
                self.episodes,
                self.plan.total()
            );
        }
        let failed = "the world failed in the evaluation; --eval-episodes 0 does without";
        let bar = self.bar(u64::from(self.episodes), "evaluating");
        let mut tick = || {
            bar.inc(1);
            !interrupt::is_asked()
        };
        let found = evaluate_returns(world, agent, settings.seed, self.episodes, &mut tick).context(failed);
        bar.finish_and_clear();
        let Some((evaluation, returns)) = found? else { return Ok(None) };
        let Some(mut measured) = Measured::of(&evaluation, None) else { return Ok(None) };
        let first = first_agent(world.shape(), settings.clone()).context("the world does not fit")?;
        let bar = self.bar(self.plan.total(), "baselines");
        let mut tick = || {
            bar.inc(1);
            !interrupt::is_asked()
        };
        let compared =
            baselines(world, &first, &returns, settings.seed, &self.plan, &mut tick).context(failed);
        bar.finish_and_clear();
        measured.baselines = compared?.as_ref().and_then(Compared::of);
        Ok(Some((evaluation, measured)))
    }
}
