//! Models of a log: the chance of every logged action, the reward of every action, and what each action gains in every row.
//!
//! A model says nothing of rows that it was fitted to: parts of the rows are left out in turn, case by case.
//! Clauses: GLE-9, SCC-2.

use crate::cases::{Cases, FOLDS};
use crate::design::Design;
use crate::linear::{self, CERTAIN, Weights};
use crate::log::{Log, Outcome};
use crate::support::Support;
use bem_base::fixed::Fixed;

/// The penalty of reward models and of models of the logging policy.
const MODEL_PENALTY: i64 = 4;
/// The smallest chance that a model of the logging policy may say.
const MODELLED_MIN: Fixed = Fixed::from_ratio(1, 100);

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
    let mut all = vec![MODELLED_MIN; log.rows.len()];
    let rest_of_log: Vec<u32> = (0..log.rows.len() as u32).collect();
    for fold in 0..FOLDS {
        let (_, rest) = cases.fold(order, fold);
        let models: Vec<Weights> = (0..log.actions.len() as u16)
            .map(|action| {
                let mut counts = vec![0; log.rows.len()];
                rest.iter().for_each(|row| counts[*row as usize] = 1);
                let target = |outcome: &Outcome| if outcome.action == action { CERTAIN } else { 0 };
                let targets: Vec<i64> = log.outcomes.iter().map(target).collect();
                linear::fit(&design.columns, &targets, &counts, MODEL_PENALTY)
            })
            .collect();
        let in_rest: std::collections::BTreeSet<u32> = rest.iter().copied().collect();
        for row in rest_of_log.iter().filter(|row| !in_rest.contains(row)) {
            let chance = |weights: &Weights| linear::chance(score(weights, design, *row)).max(1);
            let total: i64 = models.iter().map(chance).sum();
            let own = chance(&models[usize::from(log.outcomes[*row as usize].action)]);
            all[*row as usize] = Fixed::from_ratio(own, total.max(1)).max(MODELLED_MIN);
        }
    }
    let warning = "the log has no propensities: they are modelled from the features, which is right only if nothing else \
                   moved the choice";
    (all, vec![warning.to_string()])
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
