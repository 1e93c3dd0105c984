//! What was measured of a policy: its mean return with a 95 % interval, and the same of simple policies for comparison.
//!
//! Numbers are whole millionths of a unit of reward, so that a file of them has one spelling and can be signed. Every
//! figure says over how many episodes it was taken. Clauses: SCC-8, GLE-9.

use bem_base::fixed::Fixed;
use bem_engine::evaluate::baselines::Baselines;
use bem_engine::evaluate::{Evaluation, Yardstick};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The mean return of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// Mean return.
    pub mean: i64,
    /// Its 95 % interval; none with fewer than two episodes.
    pub interval95: Option<(i64, i64)>,
    /// Episodes played.
    pub episodes: u32,
    /// Episodes in which something happened that must not.
    pub bad: u32,
}

/// A policy beside simple ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The policy.
    pub policy: Figure,
    /// What the best policy earns, where it is known.
    pub optimum: Option<i64>,
    /// What random play earns, where it is known exactly.
    pub random: Option<i64>,
    /// Simple policies in the same episodes, where they were played.
    pub baselines: Option<Compared>,
}

/// Simple policies in the first of the same episodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// Every action with equal chance.
    pub random: Figure,
    /// Always the same action.
    pub best_fixed: Figure,
    /// Which action that is.
    pub best_fixed_action: u16,
    /// The policy in force before anything was learned.
    pub first: Figure,
}

/// Millionths of a unit of a number of milli-units, rounded to the nearest.
pub fn millionths(milli: Fixed) -> i64 {
    ((i128::from(milli.to_raw()) * 1_000 + (1 << 31)) >> 32) as i64
}

/// Millionths as units.
pub fn units(millionths: i64) -> f64 {
    millionths as f64 / 1e6
}

impl Figure {
    /// Of an evaluation; none where nothing was played.
    pub fn of(evaluation: &Evaluation) -> Option<Figure> {
        let Evaluation { mean, bad, episodes, .. } = *evaluation;
        let interval95 = evaluation.interval95().map(|(low, high)| (millionths(low), millionths(high)));
        (0 < episodes).then(|| Figure { mean: millionths(mean), interval95, episodes, bad })
    }

    /// The mean with half the width of its interval, for people.
    pub fn text(&self) -> String {
        let mean = units(self.mean);
        match self.interval95 {
            Some((low, high)) => format!("{mean:.3} ± {:.3}", units(high - low) / 2.0),
            None => format!("{mean:.3}"),
        }
    }

    /// The interval as `[low, high]`.
    pub fn interval(&self) -> Value {
        self.interval95.map_or(Value::Null, |(low, high)| json!([units(low), units(high)]))
    }

    /// Whether this one's interval lies wholly above the other's.
    pub fn is_above(&self, other: &Figure) -> bool {
        let low = self.interval95.map_or(self.mean, |(low, _)| low);
        other.interval95.map_or(other.mean, |(_, high)| high) < low
    }
}

impl Measured {
    /// Of a final evaluation; none where there was none.
    pub fn of(evaluation: &Evaluation, yardstick: Option<Yardstick>) -> Option<Measured> {
        Figure::of(evaluation).map(|policy| Measured {
            policy,
            optimum: yardstick.map(|yardstick| millionths(yardstick.optimum)),
            random: yardstick.map(|yardstick| millionths(yardstick.random)),
            baselines: None,
        })
    }

    /// The keys `interval95`, `evaluation_episodes` and `baselines` of a command's JSON.
    pub fn add_to(measured: Option<&Measured>, object: &mut Value) {
        object["interval95"] = measured.map_or(Value::Null, |measured| measured.policy.interval());
        object["evaluation_episodes"] = json!(measured.map_or(0, |measured| measured.policy.episodes));
        let compared = measured.and_then(|measured| measured.baselines.as_ref());
        object["baselines"] = compared.map_or(Value::Null, |compared| compared.to_json());
    }
}

impl Compared {
    /// Of baselines that were played; none where the caller wanted none.
    pub fn of(baselines: &Baselines) -> Option<Compared> {
        Some(Compared {
            random: Figure::of(&baselines.random)?,
            best_fixed: Figure::of(&baselines.best_fixed)?,
            best_fixed_action: baselines.best_action,
            first: Figure::of(&baselines.first)?,
        })
    }

    fn to_json(self) -> Value {
        let Compared { random, best_fixed, best_fixed_action, first } = self;
        json!({
            "random": units(random.mean), "best_fixed": units(best_fixed.mean), "first": units(first.mean),
            "best_fixed_action": best_fixed_action, "episodes": random.episodes,
            "interval95": {
                "random": random.interval(), "best_fixed": best_fixed.interval(), "first": first.interval(),
            },
        })
    }

    /// The figures with their names, in the order in which they are shown.
    pub fn rows(&self) -> [(String, Figure); 3] {
        [
            ("random play".to_string(), self.random),
            (format!("best fixed action ({})", self.best_fixed_action), self.best_fixed),
            ("policy before learning".to_string(), self.first),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(mean: i64, half: i64) -> Figure {
        Figure { mean, interval95: Some((mean - half, mean + half)), episodes: 100, bad: 0 }
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_millionth() {
        assert_eq!(millionths(Fixed::from_int(1_000)), 1_000_000);
        assert_eq!(millionths(Fixed::from_ratio(1, 3)), 333);
        assert_eq!(millionths(Fixed::from_ratio(-2, 3)), -667);
    }

    #[test]
    fn one_is_above_another_where_their_intervals_are_apart() {
        assert!(figure(1_000_000, 10_000).is_above(&figure(900_000, 10_000)));
        assert!(!figure(1_000_000, 60_000).is_above(&figure(900_000, 60_000)));
        assert_eq!(figure(1_250_000, 12_000).text(), "1.250 ± 0.012");
    }
}
