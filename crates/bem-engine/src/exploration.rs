//! When an episode is played for knowledge, and when for what it earns: exploration that fades by itself.
//!
//! Exploring episodes are allowed while fewer were played than a quota: so many for every action, twice those before the last
//! gain that was shown, and the root of actions times steps, so that the search for structure is never starved and the share
//! of exploration still vanishes. Before acting is shown to earn more than exploring, every allowed episode explores;
//! afterwards every other one. Must not know what an exploring episode does. Clauses: VM-16, SCC-8; decision D-50.

use crate::codec::{decode_option, encode_option};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_machine::config::GenesisConfig;

/// Actions that the quota counts at most.
const ACTIONS_MAX: u64 = 64;
/// Returns are compared in this many parts of their range.
const PARTS: i128 = 1 << 12;
/// Episodes that a mean is made of before all are halved.
const EPISODES_MAX: i128 = 1 << 20;
/// What the log says about contexts counts as a gain if it explains at least this part of what rewards differ by.
pub(crate) const EXPLAINED_MIN: Fixed = Fixed::from_ratio(1, 100);

/// How episodes are divided between exploring and acting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exploration {
    /// Exploring episodes so far.
    explored: u64,
    /// How many there had been at the last gain that was shown.
    at_gain: u64,
    exploring: Returns,
    /// Of what acts now.
    acting: Returns,
    /// What the best play may earn by the counts, in parts of the range of returns; none where nothing can be said.
    hoped: Option<i64>,
}

/// Count, sum and sum of squares of returns, in parts of their range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Returns {
    count: i128,
    sum: i128,
    squares: i128,
}

impl Returns {
    fn book(&mut self, part: i128) {
        *self = Returns { count: self.count + 1, sum: self.sum + part, squares: self.squares + part * part };
        if EPISODES_MAX <= self.count {
            *self = Returns { count: self.count / 2, sum: self.sum / 2, squares: self.squares / 2 };
        }
    }

    /// The sum of squared distances from the mean.
    fn spread(&self) -> i128 {
        self.squares - self.sum * self.sum / self.count.max(1)
    }

    fn encode(&self, writer: &mut Writer) {
        [self.count, self.sum, self.squares].iter().for_each(|number| writer.u64(*number as u64));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Returns, DecodeError> {
        let wild = reader.error("returns that nobody can have earned");
        let (count, sum, squares) =
            (i128::from(reader.u64()?), i128::from(reader.u64()?), i128::from(reader.u64()?));
        let returns = Returns { count, sum, squares };
        let fits = count < EPISODES_MAX && sum <= count * PARTS && squares <= sum * PARTS;
        if fits && 0 <= returns.spread() { Ok(returns) } else { Err(wild) }
    }
}

/// A return in parts of its range.
fn part_of(shape: &Shape, total: i64) -> i128 {
    let (low, high) = (i128::from(shape.return_min), i128::from(shape.return_max));
    (i128::from(total).clamp(low, high) - low) * PARTS / (high - low).max(1)
}

impl Exploration {
    /// Whether the next episode explores.
    pub(crate) fn is_next(&self, shape: &Shape, config: &GenesisConfig, steps: u64, prng: &mut Prng) -> bool {
        // With nothing to see and one step there is nothing to explain: the index explores by itself.
        if shape.observation_bits == 0 && shape.horizon == 1
            || self.quota(shape, config, steps) <= self.explored
        {
            return false;
        }
        self.may_gain() || !self.is_shown_better() || prng.below(2) == 0
    }

    /// Whether the counts leave open that much more can be earned than what acts does.
    fn may_gain(&self) -> bool {
        let Some(hoped) = self.hoped else { return false };
        let count = self.acting.count.max(1);
        self.acting.sum + PARTS / 100 * count < i128::from(hoped) * count
    }

    /// The counts have grown: what the best play may earn by them, in milli-units.
    pub(crate) fn hope(&mut self, shape: &Shape, optimistic: Option<i64>) {
        self.hoped = optimistic.map(|total| part_of(shape, total) as i64);
    }

    /// Exploring episodes that are allowed after this many steps.
    fn quota(&self, shape: &Shape, config: &GenesisConfig, steps: u64) -> u64 {
        let actions = u64::from(shape.actions).min(ACTIONS_MAX);
        let root = if config.exploration_root { actions.saturating_mul(steps).isqrt() } else { 0 };
        u64::from(config.exploration_episodes) * actions + 2 * self.at_gain + root
    }

    /// Whether what acts has been shown to earn more than exploring: by a difference of means that chance explains in one of
    /// twenty runs, however often it is looked at.
    fn is_shown_better(&self) -> bool {
        let (acting, exploring) = (&self.acting, &self.exploring);
        let count = acting.count + exploring.count;
        if acting.count < 2 || exploring.count < 2 {
            return false;
        }
        let difference = acting.sum * exploring.count - exploring.sum * acting.count;
        let variance = (acting.spread() + exploring.spread()) / (count - 2) + 1;
        let looks = acting.count as u64;
        let surprise = i128::from(Fixed::ln_count_floor(20 * looks * looks).to_raw() >> 24) + 1;
        // m_a - m_e > sqrt(2 V ln(20 k^2) (1 / n_a + 1 / n_e)), times both counts; the logarithm has 8 fractional bits.
        0 < difference
            && ((2 * variance * surprise * count * acting.count) >> 8) * exploring.count
                < difference * difference
    }

    /// Books an episode of this return that was played to explore, or by what acts.
    pub(crate) fn book(&mut self, shape: &Shape, is_exploring: bool, total: i64) {
        let part = part_of(shape, total);
        self.explored += u64::from(is_exploring);
        if is_exploring { &mut self.exploring } else { &mut self.acting }.book(part);
    }

    /// Something else acts from now on.
    pub(crate) fn hand_over(&mut self) {
        self.acting = Returns::default();
    }

    /// A gain was shown.
    pub(crate) fn note_gain(&mut self) {
        self.at_gain = self.explored;
    }

    /// The world has changed: what was explored before says less.
    pub(crate) fn reopen(&mut self) {
        self.at_gain = self.explored;
        self.exploring = Returns::default();
        self.acting = Returns::default();
    }

    /// Writes the canonical bytes.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.u64(self.explored);
        writer.u64(self.at_gain);
        self.exploring.encode(writer);
        self.acting.encode(writer);
        encode_option(writer, self.hoped.as_ref(), |hoped, writer| writer.i64(*hoped));
    }

    /// Reads canonical bytes back.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Exploration, DecodeError> {
        let wild = reader.error("exploring episodes that no run can have played");
        let (explored, at_gain) = (reader.u64()?, reader.u64()?);
        if 1 << 48 <= explored || explored < at_gain {
            return Err(wild);
        }
        let (exploring, acting) = (Returns::decode(reader)?, Returns::decode(reader)?);
        let hoped = decode_option(reader, Reader::i64)?;
        if hoped.is_some_and(|hoped| !(0..=PARTS as i64).contains(&hoped)) {
            return Err(wild);
        }
        Ok(Exploration { explored, at_gain, exploring, acting, hoped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(actions: u16) -> Shape {
        Shape {
            observation_bits: 4,
            actions,
            fields: Vec::new(),
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
        }
    }

    /// Episodes played to explore in each tenth of a run in which acting earns `acted` of 1,000 and exploring `explored`.
    fn shares(actions: u16, steps: u64, acted: u64, explored: u64) -> Vec<u64> {
        let (shape, config) = (shape(actions), GenesisConfig::default());
        let mut exploration = Exploration::default();
        let mut prng = Prng::stream(1, "exploration");
        let mut tenths = vec![0; 10];
        for step in 0..steps {
            let explores = exploration.is_next(&shape, &config, step, &mut prng);
            let chance = if explores { explored } else { acted };
            let total = if prng.below(1_000) < chance { 1_000 } else { 0 };
            exploration.book(&shape, explores, total);
            tenths[(10 * step / steps) as usize] += u64::from(explores);
        }
        tenths
    }

    #[test]
    fn exploration_fades_to_a_root_and_is_halved_once_acting_is_better() {
        let tenths = shares(4, 100_000, 900, 500);
        assert!(400 < tenths[0] && tenths[0] < 2_000, "{tenths:?}");
        // Two thousandths of the last half, and never nothing.
        let late: u64 = tenths[5..].iter().sum();
        assert!((50..=500).contains(&late), "{tenths:?}");
        let same = shares(4, 4_000, 500, 500);
        assert!(tenths[0] <= 2 * same.iter().sum::<u64>());
    }

    #[test]
    fn a_shown_gain_reopens_the_quota() {
        let (shape, config) = (shape(2), GenesisConfig::default());
        let mut exploration = Exploration::default();
        (0..10_000).for_each(|_| exploration.book(&shape, true, 0));
        let quota = exploration.quota(&shape, &config, 10_000);
        assert!(quota < 10_000);
        exploration.note_gain();
        assert_eq!(exploration.quota(&shape, &config, 10_000), quota + 20_000);
    }

    #[test]
    fn bytes_come_back_and_wild_ones_are_refused() {
        let mut exploration = Exploration::default();
        (0..50).for_each(|turn| exploration.book(&shape(3), turn % 3 == 0, 10 * turn));
        exploration.note_gain();
        let mut writer = Writer::new();
        exploration.encode(&mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(Exploration::decode(&mut Reader::new(&bytes)), Ok(exploration));
        (0..bytes.len())
            .for_each(|cut| assert!(Exploration::decode(&mut Reader::new(&bytes[..cut])).is_err()));
        let mut wild = bytes;
        wild[7] = 1;
        assert!(Exploration::decode(&mut Reader::new(&wild)).is_err());
    }
}
