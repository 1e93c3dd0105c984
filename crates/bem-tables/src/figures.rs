//! The figures of acting while learning: what all episodes earned, how regret grew, how much was explored.
//!
//! Regret is taken against best play on the same seeds ([`crate::beside`]), or against its expected return where nobody can
//! play best: in worlds outside, and where a seed does not come back. Clauses: VM-16; decision D-267.

use crate::losses::{Losses, Lost};
use bem_base::fixed::Fixed;
use bem_engine::evaluate::Yardstick;
use bem_engine::online::{Online, Sums};
use bem_engine::solve::Solution;
use serde_json::{Value, json};

/// Points of the last decade that the exponent is fitted to.
const POINTS: u32 = 16;
/// Below this many standard errors regret is no number to take a logarithm of.
const ERRORS: f64 = 4.0;

/// A fixed number as a float for display; six decimals are kept.
pub fn to_float(value: Fixed) -> f64 {
    let exact = value.to_raw() as f64 / 4_294_967_296.0;
    (exact * 1e6).round() / 1e6
}

/// The online keys of one run.
pub struct Figures {
    mean: Option<f64>,
    score: Option<f64>,
    score_last_half: Option<f64>,
    regret: Option<f64>,
    regret_exponent: Option<f64>,
    explored_last_half: Option<f64>,
    unplayed: u64,
}

impl Figures {
    /// Those of a solution, with what best play on the same seeds earned more where that is known.
    pub fn of(solution: &Solution, losses: Option<&Losses>) -> Figures {
        let online = &solution.online;
        let now = *online.now();
        let half = online.at(now.steps / 2);
        let late = now.steps - half.steps;
        let regret = solution.yardstick.map(|yardstick| Regret { yardstick, online, losses });
        Figures {
            mean: (0 < now.episodes).then(|| now.earned as f64 / now.episodes as f64 / 1_000.0),
            score: regret.as_ref().and_then(|regret| regret.score_since(0)),
            score_last_half: regret.as_ref().and_then(|regret| regret.score_since(now.steps / 2)),
            regret: regret.as_ref().map(|regret| regret.now().lost as f64 / 1_000.0),
            regret_exponent: regret.as_ref().and_then(Regret::exponent),
            explored_last_half: (0 < late).then(|| (now.strayed - half.strayed) as f64 / late as f64),
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

/// What was lost, and against what.
struct Regret<'a> {
    yardstick: Yardstick,
    online: &'a Online,
    /// Against best play on the same seeds, where it was played.
    losses: Option<&'a Losses>,
}

impl Regret<'_> {
    fn expected(&self, sums: &Sums) -> Lost {
        Lost::expected(to_float(self.yardstick.optimum), sums)
    }

    fn now(&self) -> Lost {
        self.losses.map_or_else(|| self.expected(self.online.now()), |losses| *losses.now())
    }

    fn at(&self, steps: u64) -> Lost {
        self.losses.map_or_else(|| self.expected(&self.online.at(steps)), |losses| losses.at(steps))
    }

    /// What was earned after this step, on the scale on which random play is 0 and best play 1.
    fn score_since(&self, steps: u64) -> Option<f64> {
        let worth = to_float(self.yardstick.optimum.minus(self.yardstick.random));
        self.now().score_since(&self.at(steps), worth)
    }

    /// How it grows with steps: the slope of its logarithm over the last decade; none where chance explains it.
    fn exponent(&self) -> Option<f64> {
        let now = self.now();
        if (now.lost as f64) < ERRORS * now.error().max(1.0) {
            return None;
        }
        let mut points = Vec::new();
        for place in 0..POINTS {
            let share = 10f64.powf(f64::from(place) / f64::from(POINTS - 1) - 1.0);
            let then = self.at((now.steps as f64 * share).round() as u64);
            if then.lost <= 0 {
                return None;
            }
            points.push(((then.steps as f64).ln(), (then.lost as f64).ln()));
        }
        let count = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        let (x, y) = (x / count, y / count);
        let over = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
        let under = points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>();
        (0.0 < under).then(|| over / under)
    }
}
