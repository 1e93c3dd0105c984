//! What was lost against best play, as it grew: a curve whose points lie where those of what was earned lie.
//!
//! Must not know who plays best. Clauses: VM-16; decision D-267.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_engine::online::Sums;

/// Points are this part of the steps apart, as those of `bem_engine::online` are.
const APART: u64 = 64;
/// More points than a curve of any length has.
const POINTS_MAX: usize = 4_096;
/// Bytes of one point.
const POINT_BYTES: usize = 48;

/// Sums over all episodes up to some step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Steps taken.
    pub steps: u64,
    /// Episodes played to their end.
    pub episodes: u64,
    /// What best play earns more in them, in milli-units.
    pub lost: i128,
    /// The squares of that, episode by episode.
    squares: i128,
}

impl Lost {
    /// Against what best play earns on average, where it was not played on the same seeds.
    pub fn expected(optimum: f64, sums: &Sums) -> Lost {
        let (episodes, earned) = (sums.episodes as f64, sums.earned as f64);
        let squares = optimum * (optimum * episodes - 2.0 * earned) + sums.squares as f64;
        Lost {
            steps: sums.steps,
            episodes: sums.episodes,
            lost: (optimum * episodes - earned).round() as i128,
            squares: squares.round() as i128,
        }
    }

    /// What an episode has lost since then in the mean.
    pub fn mean_since(&self, before: &Lost) -> Option<f64> {
        let episodes = self.episodes.saturating_sub(before.episodes);
        (0 < episodes).then(|| (self.lost - before.lost) as f64 / episodes as f64)
    }

    /// What was earned since then on the scale on which random play is 0 and best play, worth so much more, is 1.
    pub fn score_since(&self, before: &Lost, worth: f64) -> Option<f64> {
        let mean = self.mean_since(before)?;
        Some(if worth <= 0.0 { 1.0 } else { 1.0 - mean / worth })
    }

    /// The standard error of what was lost in all.
    pub fn error(&self) -> f64 {
        let episodes = self.episodes.max(1) as f64;
        let mean = self.lost as f64 / episodes;
        let variance = (self.squares as f64 / episodes - mean * mean).max(0.0);
        (variance * episodes).sqrt()
    }

    fn encode(&self, writer: &mut Writer) {
        [self.steps, self.episodes].iter().for_each(|count| writer.u64(*count));
        for wide in [self.lost, self.squares] {
            writer.u64(wide as u64);
            writer.i64((wide >> 64) as i64);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Lost, DecodeError> {
        let (steps, episodes) = (reader.u64()?, reader.u64()?);
        let mut wide = || Ok(i128::from(reader.u64()?) | i128::from(reader.i64()?) << 64);
        Ok(Lost { steps, episodes, lost: wide()?, squares: wide()? })
    }
}

/// The sums as they grew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    points: Vec<Lost>,
    now: Lost,
    /// Steps that best play has taken.
    best_steps: u64,
}

impl Losses {
    /// Books an episode of so many steps, what best play earns more on its seed, and the steps that this took to find out.
    pub fn book(&mut self, steps: u64, lost: i64, best_steps: u64) {
        let lost = i128::from(lost);
        self.now = Lost {
            steps: self.now.steps + steps,
            episodes: self.now.episodes + 1,
            lost: self.now.lost + lost,
            squares: self.now.squares.saturating_add(lost * lost),
        };
        self.best_steps += best_steps;
        let last = self.points.last().map_or(0, |point| point.steps);
        if last + last / APART < self.now.steps && self.points.len() < POINTS_MAX {
            self.points.push(self.now);
        }
    }

    /// The sums at the end.
    pub fn now(&self) -> &Lost {
        &self.now
    }

    /// The sums at the last point that is not after this step; nothing before the first.
    pub fn at(&self, steps: u64) -> Lost {
        let count = self.points.partition_point(|point| point.steps <= steps);
        count.checked_sub(1).map_or_else(Lost::default, |last| self.points[last])
    }

    /// The step from which on the score over everything so far stays at least this; none if it is below at the end. Best play is
    /// worth so much more than random play.
    pub fn steady_from(&self, least: f64, worth: f64) -> Option<u64> {
        let score = |lost: &Lost| lost.score_since(&Lost::default(), worth);
        let is_below = |lost: &Lost| score(lost).is_none_or(|score| score < least);
        if is_below(&self.now) {
            return None;
        }
        let first = self.points.iter().rposition(is_below).map_or(0, |place| place + 1);
        Some(self.points.get(first).unwrap_or(&self.now).steps)
    }

    /// Steps that best play has taken.
    pub fn best_steps(&self) -> u64 {
        self.best_steps
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.points.len());
        self.points.iter().chain([&self.now]).for_each(|lost| lost.encode(writer));
        writer.u64(self.best_steps);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Losses, DecodeError> {
        let malformed = reader.error("a curve of losses that no run can have");
        let count = reader.length(POINT_BYTES)?;
        let points = (0..count).map(|_| Lost::decode(reader)).collect::<Result<Vec<_>, _>>()?;
        let (now, best_steps) = (Lost::decode(reader)?, reader.u64()?);
        let grows = points.windows(2).all(|pair| pair[0].steps < pair[1].steps);
        let ends = points.last().is_none_or(|last| last.steps <= now.steps);
        if grows && ends && count <= POINTS_MAX {
            Ok(Losses { points, now, best_steps })
        } else {
            Err(malformed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_told_to_a_sixty_fourth_and_bytes_come_back() {
        let mut losses = Losses::default();
        for episode in 0..100_000i64 {
            losses.book(10, if episode < 50_000 { 40 } else { -2 }, 10);
        }
        let (half, now) = (losses.at(500_000), *losses.now());
        assert!((490_000..=500_000).contains(&half.steps), "{half:?}");
        assert_eq!((half.lost, now.lost), (40 * i128::from(half.episodes), 1_900_000));
        let late = now.score_since(&half, 40.0).expect("half of the episodes");
        assert!((1.0..1.05).contains(&late), "{late}");
        assert!((now.error() - 21.0 * 100_000f64.sqrt()).abs() < 1e-3, "{}", now.error());
        assert!(losses.points.len() < 1_000, "{}", losses.points.len());
        let mut writer = Writer::new();
        losses.encode(&mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(Losses::decode(&mut Reader::new(&bytes)), Ok(losses));
        assert!(Losses::decode(&mut Reader::new(&bytes[..bytes.len() - 1])).is_err());
    }

    #[test]
    fn where_best_play_is_known_by_its_mean_alone_the_error_is_that_of_the_returns() {
        // Half of the episodes earn 1,000, half nothing; the best ones earn 750 in the mean.
        let sums = Sums { steps: 400, episodes: 400, earned: 200_000, squares: 200_000_000, strayed: 0 };
        let lost = Lost::expected(750.0, &sums);
        assert_eq!((lost.lost, lost.mean_since(&Lost::default())), (100_000, Some(250.0)));
        assert!((lost.error() - 500.0 * 20.0).abs() < 1e-6, "{}", lost.error());
        assert_eq!(lost.score_since(&Lost::default(), 500.0), Some(0.5));
        assert_eq!(Lost::default().score_since(&Lost::default(), 500.0), None);
    }
}
