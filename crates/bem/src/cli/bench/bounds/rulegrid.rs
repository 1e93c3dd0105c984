//! The part of `bem bench bounds` about `rulegrid`: what weighted sums of the bits that are seen can earn, and what is learned.
//!
//! A rung is scored by a reference that a player can follow, so no bound on the world excuses a lower score. A bound on what the
//! grammar can say might. Here sums are fitted with knowledge that no learner has: the return of every action at every decision,
//! by playing the same episode again. A sum that is found is a lower estimate of the best there is and no proof of an upper bound.
//! Beside it stand sums over pairs of bits, the grammar's own fit to drawn steps, and the learner. Clauses: GLE-1, GLE-5.

mod sums;

use anyhow::{Context as _, Result};
use bem_base::environment::{Bits, Environment};
use bem_base::fixed::FRACTION_BITS;
use bem_base::prng::{Prng, mix};
use bem_engine::learner::Settings;
use bem_engine::solve::solve;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_games::game::{Game, Oracle};
use bem_synth::experience::{Episode, Step};
use bem_synth::models::linear;
use bem_synth::policy::{Player, Policy};
use bem_synth::samples::Work;
use bem_synth::view::View;
use bem_teacher::ladder::{Domain, Ladder, MEASURED_STAGES};
use serde_json::{Value, json};
use std::sync::Arc;
use sums::{ACTIONS, Class, Decision, Pace, Sums, seen};

/// Weights of one action that a hypothesis has at most, as in `crates/bem-synth/src/models/linear.rs`, and those that are kept before.
const WEIGHTS: [usize; 2] = [48, 24];
/// Drawn steps that the grammar's own fit is given: a quarter of what a search looks at, and all of it.
const DRAWN_STEPS: [usize; 2] = [16_000, 64_000];
/// The seeds of the learner, and the score that solves a rung.
const SEEDS: [u64; 3] = [1, 2, 3];
const SOLVED: f64 = 0.99;
/// Where episodes for fitting begin, and those that scores are taken from; each fit takes others.
const TEST_SEEDS: u64 = 1 << 40;
const LOG_SEEDS: u64 = 1 << 41;

/// How much is played.
struct Extent {
    /// Decisions of one fit.
    decisions: usize,
    /// Steps behind one score.
    test_steps: u64,
    /// Steps of the learner.
    budget: u64,
}

const EXTENT: Extent = Extent { decisions: 150_000, test_steps: 300_000, budget: 60_000 };

/// Who plays an episode.
enum Who<'a> {
    Drawn,
    Reference,
    Fixed(u16),
    Sums(&'a Sums),
    Circuit(&'a Policy),
}

/// A score with its standard error: 0 is random play, 1 is the reference.
#[derive(Clone, Copy)]
struct Score {
    mean: f64,
    error: f64,
}

impl Score {
    fn shown(self) -> String {
        format!("{:.3} +- {:.3}", self.mean, self.error)
    }

    fn json(self) -> Value {
        json!({ "score": self.mean, "error": self.error })
    }

    /// Whether it is 0.99 at least, by two standard errors.
    fn is_solved(self) -> bool {
        SOLVED <= self.mean - 2.0 * self.error
    }
}

/// A setting that is played.
struct Ground {
    game: Arc<dyn Game>,
    world: Box<dyn Environment + Send>,
    oracle: Box<dyn Oracle>,
    /// Bits of an observation.
    bits: usize,
    /// The next seed of an episode for fitting.
    next_seed: u64,
    /// Returns of random play and of the reference in the episodes that scores are taken from.
    ends: [Vec<f64>; 2],
}

impl Ground {
    fn new(task: &str, test_steps: u64) -> Result<Ground> {
        let game = TaskTree::parse(task)?.build(1, &NoPrograms)?;
        let bits = usize::from(game.shape().observation_bits);
        let (world, oracle) = (game.start(), game.oracle());
        let mut ground = Ground { game, world, oracle, bits, next_seed: 0, ends: [Vec::new(), Vec::new()] };
        let episodes = (test_steps / u64::from(ground.game.shape().horizon)).max(1_000);
        ground.ends = [ground.returns(&Who::Drawn, episodes)?, ground.returns(&Who::Reference, episodes)?];
        Ok(ground)
    }

    /// Plays one episode, of which the first actions are given, and shows every step; what came from the last given action on.
    fn play(
        &mut self,
        who: &Who<'_>,
        seed: u64,
        given: &[u16],
        mut show: impl FnMut(&Bits, u16, i32, bool),
    ) -> Result<i64> {
        self.world.reset(seed)?;
        self.oracle.begin(seed);
        let mut prng = Prng::quick(mix(seed));
        let mut player = if let Who::Circuit(policy) = who { Some(Player::new(policy)) } else { None };
        let (mut total, mut time) = (0, 0);
        loop {
            let observation = *self.world.observation();
            let action = match (given.get(time), who) {
                (Some(action), _) => *action,
                (None, Who::Drawn) => prng.below(ACTIONS as u64) as u16,
                (None, Who::Reference) => self.oracle.act(&observation),
                (None, Who::Fixed(action)) => *action,
                (None, Who::Sums(sums)) => sums.act(&seen(&observation, self.bits)),
                (None, Who::Circuit(_)) => player.as_mut().map_or(0, |player| player.act(&observation)),
            };
            let outcome = self.world.step(action)?;
            self.oracle.see(action, &outcome);
            show(&observation, action, outcome.reward, outcome.done);
            time += 1;
            total += if given.len() <= time { i64::from(outcome.reward) } else { 0 };
            if outcome.done {
                return Ok(total);
            }
        }
    }

    /// Returns in the episodes that scores are taken from.
    fn returns(&mut self, who: &Who<'_>, episodes: u64) -> Result<Vec<f64>> {
        let total = |episode| self.play(who, TEST_SEEDS + episode, &[], |_, _, _, _| {});
        (0..episodes).map(total).map(|total| Ok(total? as f64)).collect()
    }

    /// How far somebody comes from random play to the reference, in the same episodes as both.
    fn score(&mut self, who: &Who<'_>) -> Result<Score> {
        let own = self.returns(who, self.ends[0].len() as u64)?;
        let [drawn, reference] = &self.ends;
        let count = own.len() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
        let span = mean(reference) - mean(drawn);
        let score = (mean(&own) - mean(drawn)) / span;
        let astray = own.iter().zip(drawn.iter().zip(reference));
        let astray = astray.map(|(own, (drawn, best))| (own - drawn - score * (best - drawn)).powi(2));
        let error = (astray.sum::<f64>() / (count * (count - 1.0))).sqrt() / span;
        Ok(Score { mean: score, error })
    }

    /// Decisions of somebody who plays fresh episodes, and what every action brings if another one plays on.
    fn decisions(&mut self, who: &Who<'_>, after: &Who<'_>, count: usize) -> Result<Vec<Decision>> {
        let mut decisions = Vec::with_capacity(count);
        while decisions.len() < count {
            let seed = self.next_seed;
            self.next_seed += 1;
            let mut steps = Vec::new();
            self.play(who, seed, &[], |observation, action, _, _| steps.push((*observation, action)))?;
            let mut given = Vec::new();
            for (observation, action) in steps {
                let mut worths = [0.0; ACTIONS];
                for (choice, worth) in worths.iter_mut().enumerate() {
                    given.push(choice as u16);
                    *worth = self.play(after, seed, &given, |_, _, _, _| {})? as f64;
                    given.pop();
                }
                given.push(action);
                decisions.push(Decision { seen: seen(&observation, self.bits), worths });
            }
        }
        Ok(decisions)
    }

    /// Decisions of these sums and a few of random play; the sums play on.
    fn own_decisions(&mut self, sums: &Sums, count: usize) -> Result<Vec<Decision>> {
        let mut decisions = self.decisions(&Who::Sums(sums), &Who::Sums(sums), count * 3 / 4)?;
        decisions.extend(self.decisions(&Who::Drawn, &Who::Sums(sums), count / 4)?);
        Ok(decisions)
    }

    /// The best sums found: over all bits with any weights, and such as a hypothesis of the grammar has.
    fn fit_sums(&mut self, count: usize) -> Result<[Sums; 2]> {
        let mut sums = Sums::new(Class::Bits, self.bits);
        let mut decisions = self.decisions(&Who::Drawn, &Who::Reference, count / 2)?;
        decisions.extend(self.decisions(&Who::Reference, &Who::Reference, count / 2)?);
        sums.fit(&decisions, Pace { passes: 6, temperature: 0.3, step: 0.05 });
        let pace = Pace { passes: 6, temperature: 0.15, step: 0.03 };
        for _ in 0..2 {
            let decisions = self.own_decisions(&sums, count)?;
            sums.fit(&decisions, pace);
        }
        let free = sums.clone();
        for most in WEIGHTS {
            let decisions = self.own_decisions(&sums, count)?;
            sums.keep(most, &decisions);
            sums.fit(&decisions, pace);
        }
        Ok([free, sums.whole()])
    }

    /// The same with a weight for every pair of bits besides, from sums of bits on.
    fn fit_pairs(&mut self, sums: &Sums, count: usize) -> Result<Sums> {
        let mut decisions = self.own_decisions(sums, count)?;
        decisions.extend(self.decisions(&Who::Reference, &Who::Sums(sums), count / 2)?);
        let mut pairs = sums.with_pairs();
        pairs.fit(&decisions, Pace { passes: 5, temperature: 0.2, step: 0.01 });
        Ok(pairs)
    }

    /// What the grammar's own fit of sums makes of so many drawn steps; none where it sees nothing.
    fn fit_log(&mut self, steps: usize) -> Result<Option<Policy>> {
        let (mut episodes, mut played) = (Vec::new(), 0);
        while played < steps {
            let serial = episodes.len() as u64;
            let mut steps = Vec::new();
            self.play(&Who::Drawn, LOG_SEEDS + serial, &[], |observation, action, reward, done| {
                let propensity = u16::MAX / ACTIONS as u16;
                let observation = *observation;
                steps.push(Step { observation, action, reward, done, bad: false, uniform: true, propensity });
            })?;
            played += steps.len();
            episodes.push(Episode { serial, steps });
        }
        let shape = self.game.shape();
        let view = View::new(shape, &episodes.iter().collect::<Vec<_>>(), None).context("rows that fit")?;
        let found = linear::fit(shape, &view, &mut Work::new(1 << 40));
        Ok(found.map(|(stated, _, _)| stated.policy))
    }
}

/// What is known of one rung.
struct Row {
    task: String,
    /// The best of those who always do the same.
    fixed: Score,
    /// The grammar's own fit to drawn steps.
    drawn: Vec<Score>,
    /// Sums such as the grammar has, with any weights over all bits, and over pairs of bits.
    grammar: Score,
    free: Score,
    pairs: Score,
    /// The learner's scores, seed by seed.
    learned: Vec<f64>,
}

impl Row {
    fn of(task: &str, extent: &Extent) -> Result<Row> {
        let mut ground = Ground::new(task, extent.test_steps)?;
        let mut fixed = ground.score(&Who::Fixed(0))?;
        for action in 1..ACTIONS as u16 {
            let score = ground.score(&Who::Fixed(action))?;
            fixed = if fixed.mean < score.mean { score } else { fixed };
        }
        let mut drawn = Vec::new();
        for steps in DRAWN_STEPS {
            let policy = ground.fit_log(steps)?;
            drawn.push(policy.map_or(Ok(fixed), |policy| ground.score(&Who::Circuit(&policy)))?);
        }
        let [free, grammar] = ground.fit_sums(extent.decisions)?;
        let pairs = ground.fit_pairs(&free, extent.decisions)?;
        let [grammar, free, pairs] = [&grammar, &free, &pairs].map(|sums| ground.score(&Who::Sums(sums)));
        let learned = SEEDS.iter().map(|seed| learn(task, *seed, extent.budget)).collect::<Result<_>>()?;
        let task = task.to_string();
        Ok(Row { task, fixed, drawn, grammar: grammar?, free: free?, pairs: pairs?, learned })
    }

    /// What keeps the learner from 0.99, as far as this page can tell.
    fn missing(&self) -> &'static str {
        match () {
            () if self.learned.iter().all(|score| SOLVED <= *score) => "nothing",
            () if self.grammar.is_solved() => "the learner",
            () if self.free.is_solved() => "the learner, and weights in a sum",
            () if self.pairs.is_solved() => "what a sum can say",
            () => "not known",
        }
    }

    fn json(&self) -> Value {
        json!({
            "task": self.task, "fixed": self.fixed.json(), "sum": self.grammar.json(), "any_sum": self.free.json(),
            "pairs": self.pairs.json(), "learned": self.learned, "missing": self.missing(),
            "drawn": self.drawn.iter().map(|score| score.json()).collect::<Vec<_>>(),
        })
    }
}

/// The score that the learner comes to by itself, as `bem solve` has it.
fn learn(task: &str, seed: u64, budget: u64) -> Result<f64> {
    let game = TaskTree::parse(task)?.build(seed, &NoPrograms)?;
    let settings = Settings { budget, ..Settings::new(seed) };
    let solution = solve(game.as_ref(), settings, &mut |_| true)?;
    let score = solution.score().context("a score")?;
    Ok(score.to_raw() as f64 / (1u64 << FRACTION_BITS) as f64)
}

/// The rungs that `bem run` climbs.
pub(super) struct Rows(Vec<Row>);

impl Rows {
    pub(super) fn measure() -> Result<Rows> {
        let ladder = Ladder::new(Domain::from_name("rulegrid").context("the family rulegrid")?);
        let rungs = ladder.rungs(MEASURED_STAGES).into_iter().map(|rung| rung.tree.to_string());
        Ok(Rows(rungs.map(|task| Row::of(&task, &EXTENT)).collect::<Result<_>>()?))
    }

    pub(super) fn json(&self) -> Vec<Value> {
        self.0.iter().map(Row::json).collect()
    }

    /// Prints the part of the page.
    pub(super) fn print(&self) {
        let [few, all] = DRAWN_STEPS.map(|steps| format!("{},000", steps / 1_000));
        let [_, weights] = WEIGHTS;
        say!("\n### What weighted sums can earn there\n");
        say!(
            "The reference is a policy that a player can follow, so that nothing about the world excuses a rung that stays open. What \
             the grammar can say might. Its hypotheses for such rewards are sums: for every action up to {weights} bits of what is seen, \
             each with a whole weight up to 127, and the action of the highest sum is taken (`crates/bem-synth/src/models/linear.rs`). \
             The columns are scores from 0, random play, to 1, the reference, over about {},000 steps of episodes that nothing was \
             fitted to, with standard errors. *Best sum* is the best such sum that was found by somebody who is told at {},000 decisions \
             a round what every action would bring; *any sum* has all bits and any weights; *pairs* has a weight for every pair of bits \
             besides. These are lower estimates of the best there is: they show what can be said, and never that nothing more can. *Fit \
             to drawn steps* is the grammar's own fit to {few} and {all} steps of random play, by the reward of the step alone. \
             *Learner* is `bem solve TASK --budget {}` with seeds 1 to 3. The last column says what keeps the learner from {SOLVED}: \
             where the best sum is above that by two standard errors, it is not the grammar.\n",
            EXTENT.test_steps / 1_000,
            EXTENT.decisions / 1_000,
            EXTENT.budget
        );
        say!(
            "| rung | best action alone | fit to {few} drawn steps | to {all} | best sum | any sum | pairs | learner | missing |"
        );
        say!("|---|---|---|---|---|---|---|---|---|");
        for row in &self.0 {
            let learned: Vec<String> = row.learned.iter().map(|score| format!("{score:.3}")).collect();
            let scores =
                [row.fixed, row.drawn[0], row.drawn[1], row.grammar, row.free, row.pairs].map(Score::shown);
            say!("| `{}` | {} | {} | {} |", row.task, scores.join(" | "), learned.join(", "), row.missing());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The control: no action alone is anywhere near.
    #[test]
    fn sums_of_bits_such_as_the_grammar_has_solve_a_rung_with_a_waypoint_in_reach() {
        let mut ground = Ground::new("rulegrid{band=0,steps=1}", 60_000).unwrap();
        let [_, grammar] = ground.fit_sums(40_000).unwrap();
        let score = ground.score(&Who::Sums(&grammar)).unwrap();
        assert!(score.is_solved(), "{}", score.shown());
        for action in 0..ACTIONS as u16 {
            let fixed = ground.score(&Who::Fixed(action)).unwrap();
            assert!(fixed.mean + 2.0 * fixed.error < 0.2, "{}", fixed.shown());
        }
        let same = ground.score(&Who::Reference).unwrap();
        assert!((same.mean - 1.0).abs() < 1e-9 && same.error < 1e-9, "{}", same.shown());
    }
}
