//! Models of a log: the chance of every logged action, the reward of every action, and what each action gains in every row.
//!
//! A model says nothing of rows that it was fitted to: parts of the rows are left out in turn, case by case.
//! Clauses: GLE-9, SCC-2.

use crate::cases::{Cases, FOLDS};
use crate::cuts::{self, Gains};
use crate::design::Design;
use crate::linear::{self, CERTAIN, Weights};
use crate::log::{Log, Outcome};
use crate::support::Support;
use bem_base::fixed::Fixed;

/// The penalty of reward models and of models of the logging policy.
const MODEL_PENALTY: i64 = 4;
/// The smallest chance that a model of the logging policy may say.
const MODELLED_MIN: Fixed = Fixed::from_ratio(1, 100);
/// Models of the logging policy that are tried: weights of bits, and trees of at most so many parts.
const LOGGERS: [Option<usize>; 3] = [None, Some(8), Some(32)];

/// The chance of every logged action: the log's own, or a model of it that has not seen the row.
pub(crate) fn propensities(
    log: &Log,
    design: &Design,
    cases: &Cases,
    order: &[u32],
) -> (Vec<Fixed>, Vec<String>) {
    if log.is_labelled || log.outcomes.iter().all(|outcome| outcome.propensity.is_some()) {
        let known = log.outcomes.iter().map(|outcome| outcome.propensity.unwrap_or(Fixed::ONE));
        return (known.collect(), Vec::new());
    }
    let tried = LOGGERS.map(|leaves| modelled(log, design, cases, order, leaves));
    let (_, all) = tried.into_iter().min_by_key(|(error, _)| *error).expect("there are models");
    let warning = "the log has no propensities: they are modelled from the features, which is right only if nothing else \
                   moved the choice";
    (all, vec![warning.to_string()])
}

/// The chance of every logged action by one kind of model, each by a model that has not seen the row, and how wrong these were: the
/// sum of squares of what was said of every action and what came of it.
fn modelled(
    log: &Log,
    design: &Design,
    cases: &Cases,
    order: &[u32],
    leaves: Option<usize>,
) -> (i128, Vec<Fixed>) {
    let mut all = vec![MODELLED_MIN; log.rows.len()];
    let mut error = 0;
    for fold in 0..FOLDS {
        let (_, rest) = cases.fold(order, fold);
        let logger = logger(log, design, &rest, leaves);
        let in_rest: std::collections::BTreeSet<u32> = rest.iter().copied().collect();
        for row in (0..log.rows.len() as u32).filter(|row| !in_rest.contains(row)) {
            let (shares, taken) = (logger(row), usize::from(log.outcomes[row as usize].action));
            let total = shares.iter().sum::<i64>().max(1);
            all[row as usize] = Fixed::from_ratio(shares[taken], total).max(MODELLED_MIN);
            for (action, share) in shares.iter().enumerate() {
                let said = i128::from(share * CERTAIN / total);
                let came = if action == taken { i128::from(CERTAIN) } else { 0 };
                error += (said - came) * (said - came);
            }
        }
    }
    (error, all)
}

/// Shares of a row's chances, one for every action.
type Logger<'l> = Box<dyn Fn(u32) -> Vec<i64> + 'l>;

/// A model of who wrote the log, from these rows: weights of bits, or what was done how often in each part of the rows.
fn logger<'l>(log: &'l Log, design: &'l Design, rest: &[u32], leaves: Option<usize>) -> Logger<'l> {
    let Some(leaves) = leaves else {
        let mut counts = vec![0; log.rows.len()];
        rest.iter().for_each(|row| counts[*row as usize] = 1);
        let models: Vec<Weights> = (0..log.actions.len() as u16)
            .map(|action| {
                let target = |outcome: &Outcome| if outcome.action == action { CERTAIN } else { 0 };
                let targets: Vec<i64> = log.outcomes.iter().map(target).collect();
                linear::fit(&design.columns, &targets, &counts, MODEL_PENALTY)
            })
            .collect();
        let chance = move |weights: &Weights, row| linear::chance(score(weights, design, row)).max(1);
        return Box::new(move |row| models.iter().map(|weights| chance(weights, row)).collect());
    };
    let parts = cuts::cut(log, rest, Gains::Taken(&log.outcomes), leaves);
    // Half a row of every action everywhere, so that nothing is impossible.
    let mut counts = vec![vec![1; log.actions.len()]; parts.parts.len()];
    for row in rest {
        counts[parts.leaf(&log.rows[*row as usize])][usize::from(log.outcomes[*row as usize].action)] += 2;
    }
    Box::new(move |row| counts[parts.leaf(&log.rows[row as usize])].clone())
}

fn score(weights: &Weights, design: &Design, row: u32) -> i64 {
    let bits = &design.rows[row as usize];
    let set = weights.bits.iter().enumerate().filter(|(bit, weight)| **weight != 0 && bits.get(*bit));
    weights.bias + set.map(|(_, weight)| weight).sum::<i64>()
}

/// A model of the reward of every action, from these rows.
pub(crate) fn reward_models(log: &Log, design: &Design, rows: &[u32]) -> Vec<Weights> {
    (0..log.actions.len() as u16)
        .map(|action| {
            let mut counts = vec![0; log.rows.len()];
            for row in rows.iter().filter(|row| log.outcomes[**row as usize].action == action) {
                counts[*row as usize] = 1;
            }
            linear::fit(&design.columns, &targets(log), &counts, MODEL_PENALTY)
        })
        .collect()
}

/// Rewards on the scale of chances.
pub(crate) fn targets(log: &Log) -> Vec<i64> {
    let (low, high) = log.reward_range();
    let range = i128::from(high.minus(low).to_raw()).max(1);
    let target =
        |reward: Fixed| (i128::from(reward.minus(low).to_raw()) * i128::from(CERTAIN) / range) as i64;
    log.outcomes.iter().map(|outcome| target(outcome.reward)).collect()
}

pub(crate) fn predicted(log: &Log, models: &[Weights], design: &Design, row: u32, action: u16) -> Fixed {
    let (low, high) = log.reward_range();
    let chance = linear::chance(score(&models[usize::from(action)], design, row));
    let above = i128::from(high.minus(low).to_raw()) * i128::from(chance) / i128::from(CERTAIN);
    low.plus(Fixed::from_raw(above as i64))
}

/// The gain of every action in every row, with 16 fractional bits.
pub(crate) struct Scores {
    pub(crate) gains: Vec<i64>,
    pub(crate) actions: usize,
}

impl Scores {
    /// The gains of these rows. Of what the log never did in a case nothing better is believed than the least that it ever brought.
    pub(crate) fn new(
        log: &Log,
        design: &Design,
        cases: &Cases,
        members: &[u32],
        propensities: &[Fixed],
        support: &Support,
    ) -> Scores {
        let actions = log.actions.len();
        let mut gains = vec![0i64; log.rows.len() * actions];
        if log.is_labelled {
            for (row, outcome) in log.outcomes.iter().enumerate() {
                gains[row * actions + usize::from(outcome.action)] = 1 << 16;
            }
            return Scores { gains, actions };
        }
        let least = log.reward_range().0.to_raw() >> 16;
        for fold in 0..FOLDS {
            let (held, rest) = cases.fold(members, fold);
            let models = reward_models(log, design, &rest);
            for row in held {
                let outcome = log.outcomes[row as usize];
                for action in 0..actions {
                    if support.is_never(row, action as u16) {
                        gains[row as usize * actions + action] = least;
                        continue;
                    }
                    let mut gain = i128::from(predicted(log, &models, design, row, action as u16).to_raw());
                    if action == usize::from(outcome.action) {
                        let error = i128::from(outcome.reward.to_raw()) - gain;
                        gain += (error << 32) / i128::from(propensities[row as usize].to_raw()).max(1);
                    }
                    gains[row as usize * actions + action] = (gain >> 16).clamp(-(1 << 50), 1 << 50) as i64;
                }
            }
        }
        Scores { gains, actions }
    }

    pub(crate) fn gain(&self, row: u32, action: u16) -> i64 {
        self.gains[row as usize * self.actions + usize::from(action)]
    }

    pub(crate) fn best_fixed(&self, rows: &[u32]) -> u16 {
        let total = |action: u16| rows.iter().map(|row| i128::from(self.gain(*row, action))).sum::<i128>();
        (0..self.actions as u16).rev().max_by_key(|action| total(*action)).unwrap_or(0)
    }
}
