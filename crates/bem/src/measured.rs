//! What was measured of a policy: its mean return with a 95 % interval, and the same of simple policies for comparison.
//!
//! Numbers are whole millionths of a unit of reward, so that a file of them has one spelling and can be signed. Every
//! figure says over how many episodes it was taken. Clauses: SCC-8, GLE-9.

use bem_base::fixed::Fixed;
use bem_base::words::quantity;
use bem_engine::evaluate::baselines::{self, Baselines};
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
    /// By how much the policy earns more than each of them in the episodes that both played; none in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gains: Option<GainFigures>,
}

/// The policy's return less that of a baseline, episode by episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GainFigures {
    /// Over random play.
    pub random: Figure,
    /// Over the best fixed action.
    pub best_fixed: Figure,
    /// Over the policy in force before anything was learned.
    pub first: Figure,
}

/// What a difference says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GainShown {
    /// The policy earns more.
    More,
    /// It earns less.
    Less,
    /// The interval holds zero.
    Open,
}

/// The policy beside the best of its baselines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BesideBaseline {
    /// What that baseline is called.
    pub name: String,
    /// By how much the policy earns more, over which episodes; where episodes were not paired, by two means.
    pub gain: Figure,
    /// Whether it is from the same episodes.
    pub is_paired: bool,
    /// What follows.
    pub verdict: GainShown,
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

    /// This one less another one from other episodes: an interval that is certainly wide enough, from end to end.
    fn less(&self, other: &Figure) -> Figure {
        let ends = |figure: &Figure| figure.interval95.unwrap_or((figure.mean, figure.mean));
        let ((low, high), (other_low, other_high)) = (ends(self), ends(other));
        let episodes = self.episodes.min(other.episodes);
        Figure {
            mean: self.mean - other.mean,
            interval95: Some((low - other_high, high - other_low)),
            episodes,
            bad: 0,
        }
    }

    /// What a difference says: something only where its interval does not hold zero.
    fn verdict(&self) -> GainShown {
        match self.interval95.unwrap_or((self.mean, self.mean)) {
            (low, _) if 0 < low => GainShown::More,
            (_, high) if high < 0 => GainShown::Less,
            _ => GainShown::Open,
        }
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

    /// The policy beside the best of its baselines; none where there are none.
    pub fn standing(&self) -> Option<BesideBaseline> {
        let compared = self.baselines.as_ref()?;
        let rows = compared.rows().into_iter().enumerate();
        let (place, (name, best)) = rows.max_by_key(|(_, (_, figure))| figure.mean)?;
        let paired = compared.gains.map(|gains| [gains.random, gains.best_fixed, gains.first][place]);
        let gain = paired.unwrap_or_else(|| self.policy.less(&best));
        Some(BesideBaseline { name, gain, is_paired: paired.is_some(), verdict: gain.verdict() })
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
            gains: baselines.gains.as_ref().and_then(GainFigures::of),
        })
    }

    fn to_json(self) -> Value {
        let Compared { random, best_fixed, best_fixed_action, first, gains } = self;
        json!({
            "gain": gains.map_or(Value::Null, |gains| gains.to_json()),
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

impl GainFigures {
    fn of(gains: &baselines::Gains) -> Option<GainFigures> {
        Some(GainFigures {
            random: Figure::of(&gains.random)?,
            best_fixed: Figure::of(&gains.best_fixed)?,
            first: Figure::of(&gains.first)?,
        })
    }

    fn to_json(self) -> Value {
        let gain = |figure: Figure| {
            let (mean, episodes) = (units(figure.mean), figure.episodes);
            json!({ "mean": mean, "interval95": figure.interval(), "episodes": episodes })
        };
        json!({ "random": gain(self.random), "best_fixed": gain(self.best_fixed), "first": gain(self.first) })
    }
}

impl BesideBaseline {
    /// The difference with what follows from it, in a sentence.
    pub fn text(&self) -> String {
        let BesideBaseline { name, gain, is_paired, verdict } = self;
        let (figure, episodes) = (gain.text(), quantity(gain.episodes, "episode"));
        let how = match is_paired {
            true => format!("95 % interval of the difference in the same {episodes}"),
            false => "by the two intervals, whose episodes are not paired".to_string(),
        };
        let verdict = match verdict {
            GainShown::More => "it earns more",
            GainShown::Less => "it earns less: use the baseline instead",
            GainShown::Open => "no difference is shown",
        };
        format!("{figure} over the best baseline, {name} ({how}): {verdict}")
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
    fn the_best_baseline_is_judged_by_the_paired_difference_and_without_one_by_the_intervals() {
        assert_eq!(figure(1_250_000, 12_000).text(), "1.250 ± 0.012");
        let judged = |half: i64, gain: Option<Figure>| {
            let baseline = figure(900_000, half);
            let random = figure(100_000, half);
            let gains = gain.map(|gain| GainFigures { random: gain, best_fixed: gain, first: gain });
            let compared =
                Compared { random, best_fixed: baseline, best_fixed_action: 2, first: random, gains };
            let policy = figure(1_000_000, half);
            let measured = Measured { policy, optimum: None, random: None, baselines: Some(compared) };
            measured.standing().expect("there are baselines")
        };
        assert_eq!(judged(10_000, None).verdict, GainShown::More);
        assert_eq!(judged(60_000, None).verdict, GainShown::Open);
        let paired = judged(60_000, Some(figure(100_000, 20_000)));
        assert_eq!(
            paired.text(),
            "0.100 ± 0.020 over the best baseline, best fixed action (2) (95 % interval of the difference in the same 100 \
             episodes): it earns more"
        );
        assert_eq!(judged(10_000, Some(figure(-30_000, 20_000))).verdict, GainShown::Less);
        assert_eq!(judged(10_000, Some(figure(30_000, 40_000))).verdict, GainShown::Open);
        // A file of an older build says nothing of differences, and is written as it was read.
        let old = json!({ "random": random_figure(), "best_fixed": random_figure(), "best_fixed_action": 0,
            "first": random_figure() });
        let read: Compared = serde_json::from_value(old.clone()).expect("an older file");
        assert_eq!((read.gains, serde_json::to_value(read).expect("figures")), (None, old));
    }

    fn random_figure() -> Value {
        json!({ "mean": 1, "interval95": [0, 2], "episodes": 3, "bad": 0 })
    }
}
