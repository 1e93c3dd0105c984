//! What a world earned while it was served, and what simple policies would have: counts and sums, exact and bounded.
//!
//! Random play and fixed actions are judged by decisions that were drawn with equal chance, at the start of an episode.
//! Must not know how anything is shown. Clause: GLE-9.

use crate::limits::CURVE_POINTS_MAX;
use bem_base::encode::{DecodeError, Reader, Writer};

/// A number of values, their sum and the sum of their squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: i128,
    /// The sum of their squares.
    pub squares: i128,
}

impl Moments {
    /// Adds a value.
    pub fn book(&mut self, value: i64) {
        let wide = i128::from(value);
        self.count += 1;
        self.sum += wide;
        self.squares = self.squares.saturating_add(wide * wide);
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u64(self.count);
        for wide in [self.sum, self.squares] {
            writer.u64(wide as u64);
            writer.i64((wide >> 64) as i64);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Moments, DecodeError> {
        let count = reader.u64()?;
        let mut wide = || Ok(i128::from(reader.u64()?) | i128::from(reader.i64()?) << 64);
        Ok(Moments { count, sum: wide()?, squares: wide()? })
    }
}

/// What a world earned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Decisions asked for.
    pub decisions: u64,
    /// Rewards that came.
    pub rewards: u64,
    /// Decisions whose reward never came.
    pub lost: u64,
    /// BAD outcomes.
    pub bad: u64,
    /// Decisions that were drawn.
    pub drawn: u64,
    /// Returns of complete episodes.
    pub returns: Moments,
    /// Returns of episodes in which every action was drawn.
    pub random: Moments,
    /// Rewards of drawn decisions, by action.
    pub by_action: Vec<Moments>,
    /// Mean returns of equal numbers of episodes, oldest first.
    pub curve: Vec<Moments>,
    /// Episodes of one point of the curve.
    pub curve_step: u64,
    /// Patches put into force, turned down and taken back.
    pub applied: u64,
    /// See `applied`.
    pub rejected: u64,
    /// Rounds in which was searched.
    pub rounds: u64,
    /// Proofs that the checker accepted.
    pub proofs: u64,
}

impl Statistics {
    /// Nothing has happened yet in a world of so many actions.
    pub fn new(actions: u16) -> Statistics {
        Statistics {
            by_action: vec![Moments::default(); usize::from(actions)],
            curve_step: 16,
            ..Statistics::default()
        }
    }

    /// Books an episode.
    pub fn book_return(&mut self, total: i64, is_random: bool) {
        self.returns.book(total);
        if is_random {
            self.random.book(total);
        }
        match self.curve.last_mut().filter(|last| last.count < self.curve_step) {
            Some(last) => last.book(total),
            None => {
                if self.curve.len() == CURVE_POINTS_MAX {
                    self.thin_curve();
                }
                let mut point = Moments::default();
                point.book(total);
                self.curve.push(point);
            }
        }
    }

    /// Two points become one.
    fn thin_curve(&mut self) {
        let joined = self.curve.chunks(2).map(|pair| {
            pair.iter().fold(Moments::default(), |sum, point| Moments {
                count: sum.count + point.count,
                sum: sum.sum + point.sum,
                squares: sum.squares.saturating_add(point.squares),
            })
        });
        self.curve = joined.collect();
        self.curve_step *= 2;
    }

    /// The fixed action that earned most where it was drawn, with what it earned; at least 16 tries.
    pub fn best_fixed(&self) -> Option<(u16, Moments)> {
        let tried = (0u16..).zip(&self.by_action).filter(|(_, moments)| 16 <= moments.count);
        // Means are compared without dividing; the lowest action wins a tie.
        tried.map(|(action, moments)| (action, *moments)).reduce(|best, next| {
            let (ours, theirs) =
                (next.1.sum * i128::from(best.1.count), best.1.sum * i128::from(next.1.count));
            if theirs < ours { next } else { best }
        })
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        let Statistics { decisions, rewards, lost, bad, drawn, curve_step, .. } = *self;
        let Statistics { applied, rejected, rounds, proofs, .. } = *self;
        [decisions, rewards, lost, bad, drawn, curve_step, applied, rejected, rounds, proofs]
            .into_iter()
            .for_each(|count| writer.u64(count));
        self.returns.encode(writer);
        self.random.encode(writer);
        for moments in [&self.by_action, &self.curve] {
            writer.length(moments.len());
            moments.iter().for_each(|moments| moments.encode(writer));
        }
    }

    /// Reads canonical bytes back, for a world of so many actions.
    pub fn decode(actions: u16, reader: &mut Reader<'_>) -> Result<Statistics, DecodeError> {
        let malformed = reader.error("statistics of another world");
        let mut counts = [0; 10];
        for count in &mut counts {
            *count = reader.u64()?;
        }
        let [decisions, rewards, lost, bad, drawn, curve_step, applied, rejected, rounds, proofs] = counts;
        let (returns, random) = (Moments::decode(reader)?, Moments::decode(reader)?);
        let mut lists = [Vec::new(), Vec::new()];
        for list in &mut lists {
            *list = (0..reader.length(40)?).map(|_| Moments::decode(reader)).collect::<Result<_, _>>()?;
        }
        let [by_action, curve] = lists;
        if by_action.len() != usize::from(actions) || CURVE_POINTS_MAX < curve.len() || curve_step == 0 {
            return Err(malformed);
        }
        Ok(Statistics {
            decisions,
            rewards,
            lost,
            bad,
            drawn,
            returns,
            random,
            by_action,
            curve,
            curve_step,
            applied,
            rejected,
            rounds,
            proofs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_is_bounded_and_keeps_its_sum() {
        let mut statistics = Statistics::new(2);
        (0..100_000).for_each(|value| statistics.book_return(value % 7, value % 2 == 0));
        assert!(statistics.curve.len() <= CURVE_POINTS_MAX);
        let sum: i128 = statistics.curve.iter().map(|point| point.sum).sum();
        assert_eq!(sum, statistics.returns.sum);
        assert_eq!(statistics.random.count, 50_000);
        let mut writer = Writer::new();
        statistics.encode(&mut writer);
        assert_eq!(Statistics::decode(2, &mut Reader::new(writer.as_bytes())), Ok(statistics));
    }
}
