//! The figures of acting while learning: what all episodes earned, how regret grew, how much was explored.
//!
//! Regret is taken against the expected return of the best policy, which only the evaluator knows. Clauses: VM-16.

use super::words::to_float;
use bem_base::fixed::Fixed;
use bem_engine::evaluate::Yardstick;
use bem_engine::online::{Online, Sums};
use bem_engine::solve::Solution;
use serde_json::{Value, json};

/// Points of the last decade that the exponent is fitted to.
const POINTS: u32 = 16;
/// Below this many standard errors regret is no number to take a logarithm of.
const ERRORS: f64 = 4.0;

/// The online keys of one run.
pub struct Figures {
    mean: Option<f64>,
    pub score: Option<f64>,
    pub score_last_half: Option<f64>,
    regret: Option<f64>,
    pub regret_exponent: Option<f64>,
    pub explored_last_half: Option<f64>,
    unplayed: u64,
}

impl Figures {
    /// Those of a solution.
    pub fn of(solution: &Solution) -> Figures {
        let online = &solution.online;
        let now = *online.now();
        let late = between(online.at(now.steps / 2), now);
        let score = |sums: &Sums| Some(score(solution.yardstick?, mean(sums)?));
        Figures {
            mean: mean(&now).map(|mean| mean / 1_000.0),
            score: score(&now),
            score_last_half: score(&late),
            regret: solution.yardstick.map(|yardstick| regret(yardstick, &now) / 1_000.0),
            regret_exponent: solution.yardstick.and_then(|yardstick| exponent(yardstick, online)),
            explored_last_half: (0 < late.steps).then(|| late.strayed as f64 / late.steps as f64),
            unplayed: solution.learned.tally.unplayed,
        }
    }

    /// Adds the keys to an object.
    pub fn add_to(&self, object: &mut Value) {
        object["online_mean"] = json!(rounded(self.mean));
        object["online_score"] = json!(rounded(self.score));
        object["online_score_last_half"] = json!(rounded(self.score_last_half));
        object["regret"] = json!(rounded(self.regret));
        object["regret_exponent"] = json!(rounded(self.regret_exponent));
        object["explored_share_last_half"] = json!(rounded(self.explored_last_half));
        object["episodes_unplayed"] = json!(self.unplayed);
    }

    /// What people are told: only what is known.
    pub fn line(&self) -> String {
        let mut parts = Vec::new();
        if let Some(mean) = self.mean {
            parts.push(format!("earned {mean:.3} an episode while learning"));
        }
        if let (Some(score), Some(late)) = (self.score, self.score_last_half) {
            parts.push(format!("score {score:.3}, {late:.3} in the last half of the steps"));
        }
        if let Some(regret) = self.regret {
            let growth =
                self.regret_exponent.map_or(String::new(), |power| format!(", growing as steps^{power:.2}"));
            parts.push(format!("regret {regret:.1}{growth}"));
        }
        if let Some(share) = self.explored_last_half {
            parts.push(format!("{:.1} % of the last half explored", 100.0 * share));
        }
        parts.join("; ")
    }
}

fn rounded(value: Option<f64>) -> Option<f64> {
    value.map(|value| (value * 1e6).round() / 1e6)
}

/// The mean return in milli-units.
fn mean(sums: &Sums) -> Option<f64> {
    (0 < sums.episodes).then(|| sums.earned as f64 / sums.episodes as f64)
}

fn between(from: Sums, to: Sums) -> Sums {
    Sums {
        steps: to.steps - from.steps,
        episodes: to.episodes - from.episodes,
        earned: to.earned - from.earned,
        squares: to.squares - from.squares,
        strayed: to.strayed - from.strayed,
    }
}

fn score(yardstick: Yardstick, mean: f64) -> f64 {
    let (optimum, random) = (to_float(yardstick.optimum), to_float(yardstick.random));
    if yardstick.optimum.minus(yardstick.random) <= Fixed::ZERO {
        1.0
    } else {
        (mean - random) / (optimum - random)
    }
}

/// What the best policy would have earned more in as many episodes, in milli-units.
fn regret(yardstick: Yardstick, sums: &Sums) -> f64 {
    to_float(yardstick.optimum) * sums.episodes as f64 - sums.earned as f64
}

/// How regret grows with steps: the slope of its logarithm over the last decade; none where chance explains it.
fn exponent(yardstick: Yardstick, online: &Online) -> Option<f64> {
    let now = online.now();
    let mean = mean(now)?;
    let variance = (now.squares as f64 / now.episodes as f64 - mean * mean).max(0.0);
    let error = (variance * now.episodes as f64).sqrt();
    if regret(yardstick, now) < ERRORS * error.max(1.0) {
        return None;
    }
    let mut points = Vec::new();
    for place in 0..POINTS {
        let share = 10f64.powf(f64::from(place) / f64::from(POINTS - 1) - 1.0);
        let sums = online.at((now.steps as f64 * share).round() as u64);
        let regret = regret(yardstick, &sums);
        if regret <= 0.0 {
            return None;
        }
        points.push(((sums.steps as f64).ln(), regret.ln()));
    }
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (x, y) = (x / count, y / count);
    let over = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
    let under = points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>();
    (0.0 < under).then(|| over / under)
}
