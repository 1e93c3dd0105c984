//! What a learner earned while it learned: returns of all episodes, and how often it strayed from what it held.
//!
//! Kept as a curve whose points lie a sixty-fourth apart, so that halves and decades of a run can be told afterwards and its
//! size grows with the logarithm of the steps. Nothing here reaches the learner. Clauses: VM-16; decision D-50.

use bem_base::encode::{DecodeError, Reader, Writer};

/// Points are this part of the steps apart.
const APART: u64 = 64;
/// More points than a curve of any length has.
const POINTS_MAX: usize = 4_096;

/// Sums over all episodes up to some step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Steps taken.
    pub steps: u64,
    /// Episodes played to their end.
    pub episodes: u64,
    /// Their returns, in milli-units.
    pub earned: i128,
    /// The squares of their returns.
    pub squares: i128,
    /// Steps whose action was not what the frozen machine would have done.
    pub strayed: u64,
}

/// The sums as they grew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Online {
    points: Vec<Sums>,
    now: Sums,
}

impl Online {
    /// Books an episode: its steps, its return, and how many of its steps strayed.
    pub(crate) fn book(&mut self, steps: u64, total: i64, strayed: u64) {
        let total = i128::from(total);
        self.now = Sums {
            steps: self.now.steps + steps,
            episodes: self.now.episodes + 1,
            earned: self.now.earned + total,
            squares: self.now.squares.saturating_add(total * total),
            strayed: self.now.strayed + strayed,
        };
        let last = self.points.last().map_or(0, |point| point.steps);
        if last + last / APART < self.now.steps && self.points.len() < POINTS_MAX {
            self.points.push(self.now);
        }
    }

    /// The sums at the end.
    pub fn now(&self) -> &Sums {
        &self.now
    }

    /// The sums on the way, a sixty-fourth apart.
    pub fn points(&self) -> &[Sums] {
        &self.points
    }

    /// The sums at the last point that is not after this step; nothing before the first.
    pub fn at(&self, steps: u64) -> Sums {
        let count = self.points.partition_point(|point| point.steps <= steps);
        count.checked_sub(1).map_or_else(Sums::default, |last| self.points[last])
    }

    /// Writes the canonical bytes.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.length(self.points.len());
        self.points.iter().chain([&self.now]).for_each(|sums| sums.encode(writer));
    }

    /// Reads canonical bytes back.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Online, DecodeError> {
        let malformed = reader.error("a curve of returns that no run can have");
        let count = reader.length(56)?;
        let points = (0..count).map(|_| Sums::decode(reader)).collect::<Result<Vec<_>, _>>()?;
        let now = Sums::decode(reader)?;
        let grows = points.windows(2).all(|pair| pair[0].steps < pair[1].steps);
        let ends = points.last().is_none_or(|last| last.steps <= now.steps);
        if grows && ends && count <= POINTS_MAX { Ok(Online { points, now }) } else { Err(malformed) }
    }
}

impl Sums {
    fn encode(&self, writer: &mut Writer) {
        [self.steps, self.episodes, self.strayed].iter().for_each(|count| writer.u64(*count));
        for wide in [self.earned, self.squares] {
            writer.u64(wide as u64);
            writer.i64((wide >> 64) as i64);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Sums, DecodeError> {
        let (steps, episodes, strayed) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let mut wide = || Ok(i128::from(reader.u64()?) | i128::from(reader.i64()?) << 64);
        let (earned, squares) = (wide()?, wide()?);
        Ok(Sums { steps, episodes, earned, squares, strayed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_told_to_a_sixty_fourth_and_points_stay_few() {
        let mut online = Online::default();
        for episode in 0..100_000u64 {
            online.book(10, 3, u64::from(episode % 4 == 0));
        }
        let (half, now) = (online.at(500_000), online.now());
        assert!((490_000..=500_000).contains(&half.steps), "{half:?}");
        assert_eq!((half.earned, now.earned), (3 * i128::from(half.episodes), 300_000));
        assert_eq!((now.strayed, now.squares), (25_000, 900_000));
        assert!(online.points.len() < 1_000, "{}", online.points.len());
        assert_eq!(online.at(5), Sums::default());
        let mut writer = Writer::new();
        online.encode(&mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(Online::decode(&mut Reader::new(&bytes)), Ok(online));
        assert!(Online::decode(&mut Reader::new(&bytes[..bytes.len() - 1])).is_err());
    }
}
