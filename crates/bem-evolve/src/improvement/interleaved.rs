//! Measured improvement in a world that cannot be repeated: a sequential test on episodes that are interleaved at random.
//!
//! Before every episode a fair coin s says who plays: the candidate on +1, the incumbent on -1. With a baseline c made of
//! *earlier* returns and w the larger distance from c to an end of the range of returns, x = s (R - c) / w lies between -1
//! and 1, and its expectation is the true difference of the two over 2 w, whatever the world has become meanwhile: the coin
//! is all that is random about who plays. R is what was paid from the first step on at which the two differ: until then both
//! see and earn the same. An episode in which they never differ has x = 0. Eight bettors wager shares of 1/256 to 1/2 on x; under "no better on average" the
//! mean of their wealth is a supermartingale, so that it reaches one over alpha with a chance of at most alpha, however often
//! one looks and however the world drifts. The same bettors wager against the candidate, which tells when to give it up, and
//! on x less a bound, which tells by how much it is better at least. A gain beyond the range counts as the whole range; a
//! loss beyond it opens another test. Must not know what a policy is. Clauses: SCC-8; decisions D-23, D-60.

use super::{Account, AlphaLedger, Progress};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;

/// Shares of the wealth that are wagered, in parts of 256.
const SHARES: [i64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Fractional bits of a wealth.
const WEALTH_BITS: u32 = 32;
/// No wealth counts for more than this.
const WEALTH_MAX: u128 = 1 << 80;
/// Means of x that are ruled out one by one, in parts of 128; the second is the one that decides.
const SHIFTS: [i64; 9] = [-1, 0, 1, 2, 4, 8, 16, 32, 64];
/// The place of zero among them.
const DECIDING: usize = 1;
/// Bettors against the candidate end a test when they have shown it worse with this chance of error.
const FUTILITY_ODDS: u128 = 20;
/// Episodes of one test at most.
pub const EPISODES_MAX: u32 = 1 << 18;
/// Differing episodes before anything but a bet ends a test.
const PATIENCE: u32 = 16;
/// Differing episodes after which a candidate that promises nothing must be one standard error above zero.
const FAINT: u32 = 256;
/// The baseline at the start weighs as much as this many episodes.
const BASELINE_EPISODES: i128 = 2;
/// Returns beyond this many milli-units are taken as if they were this large.
const RETURN_MAX: i64 = 1 << 40;

/// Who plays an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The candidate: s = +1.
    Candidate,
    /// The incumbent: s = -1.
    Incumbent,
}

impl Side {
    /// The side that a fair coin shows.
    pub fn of(coin: bool) -> Side {
        if coin { Side::Candidate } else { Side::Incumbent }
    }

    fn sign(self) -> i128 {
        if self == Side::Candidate { 1 } else { -1 }
    }
}

/// One episode of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// Who played it.
    pub side: Side,
    /// The sum of its rewards.
    pub total: i64,
    /// The sum of its rewards from the first step on at which the two differ.
    pub since: i64,
    /// Whether something happened that must not.
    pub is_bad: bool,
    /// Whether the other would have done something else at some step.
    pub differs: bool,
}

/// What is known of the returns before a test begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// The smallest return that is expected.
    pub low: i64,
    /// The largest.
    pub high: i64,
    /// The mean of earlier returns.
    pub mean: i64,
}

impl Earlier {
    fn bounded(self) -> Earlier {
        let bound = |value: i64| value.clamp(-RETURN_MAX, RETURN_MAX);
        let low = bound(self.low).min(RETURN_MAX - 1);
        let high = bound(self.high).max(low + 1);
        Earlier { low, high, mean: self.mean.clamp(low, high) }
    }
}

/// What was measured, for the trace and the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interleaved {
    /// Episodes played, by both together.
    pub episodes: u32,
    /// Episodes in which the two differ.
    pub differing: u32,
    /// The mean difference over the range of returns.
    pub mean: Fixed,
    /// The mean difference is above this, at the level of the test.
    pub lower_bound: Fixed,
    /// The error probability granted to this test is one over this.
    pub odds: u128,
    /// Differing episodes with BAD: the candidate's, the incumbent's.
    pub bad: [u32; 2],
}

impl Interleaved {
    /// Whether it did what must not happen more often than chance explains: the test's own veto.
    pub fn is_unsafe(&self) -> bool {
        is_unsafe(self.bad, self.episodes)
    }

    /// Differing episodes with BAD: the candidate's less the incumbent's.
    pub fn bad_excess(&self) -> i32 {
        let [candidate, incumbent] = self.bad.map(i64::from);
        (candidate - incumbent).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u32(self.episodes);
        writer.u32(self.differing);
        writer.i64(self.mean.to_raw());
        writer.i64(self.lower_bound.to_raw());
        writer.u64(self.odds as u64);
        self.bad.iter().for_each(|count| writer.u32(*count));
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Interleaved, DecodeError> {
        Ok(Interleaved {
            episodes: reader.u32()?,
            differing: reader.u32()?,
            mean: Fixed::from_raw(reader.i64()?),
            lower_bound: Fixed::from_raw(reader.i64()?),
            odds: u128::from(reader.u64()?),
            bad: [reader.u32()?, reader.u32()?],
        })
    }
}

/// Three BAD episodes more than the incumbent's, more than the luck of the coin explains, and more than one in two hundred.
fn is_unsafe(bad: [u32; 2], episodes: u32) -> bool {
    let [candidate, incumbent] = bad.map(i64::from);
    let excess = candidate - incumbent;
    3 <= excess && 3 * (candidate + incumbent) <= excess * excess && i64::from(episodes) < 200 * excess
}

/// What one side has played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    episodes: u32,
    bad: u32,
    sum: i128,
}

type Wealth = [u128; SHARES.len()];

const STAKE: Wealth = [1 << WEALTH_BITS; SHARES.len()];

/// One candidate's test. Invariant: nothing that it wagers on an episode depends on that episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterleavedTest {
    odds: u128,
    /// The mean difference over the range of returns that the candidate's own model predicts; zero when it has none.
    promise: Fixed,
    earlier: Earlier,
    /// One for every mean that may be ruled out.
    wealth: [Wealth; SHIFTS.len()],
    mirrored: Wealth,
    /// Which means have been ruled out so far.
    excluded: [bool; SHIFTS.len()],
    sides: [Tally; 2],
    differing: u32,
    /// Episodes that somebody else played, because both would have done the same.
    passed: u32,
    /// Returns of differing episodes, which the baseline is made of.
    returns: i128,
    /// The sum of s (R - c).
    contrast: i128,
    /// Sums of x and of its square, with 24 fractional bits of x.
    sum: i64,
    squares: i128,
}

impl AlphaLedger {
    /// Opens the test of a candidate that plays interleaved with the incumbent; both kinds of test share one ledger. What it
    /// promises decides how long episodes that show nothing are endured; what it takes to be accepted is the same.
    pub fn open_interleaved(
        &mut self,
        account: Account,
        earlier: Earlier,
        promise: Fixed,
    ) -> InterleavedTest {
        let promise = promise.clamp(Fixed::ZERO, Fixed::ONE);
        InterleavedTest {
            odds: self.enter(account),
            promise,
            earlier: earlier.bounded(),
            wealth: [STAKE; SHIFTS.len()],
            mirrored: STAKE,
            excluded: [false; SHIFTS.len()],
            sides: [Tally::default(); 2],
            differing: 0,
            passed: 0,
            returns: 0,
            contrast: 0,
            sum: 0,
            squares: 0,
        }
    }

    /// About how many episodes the next interleaved test takes to show a mean difference (over the range of returns) where
    /// returns vary by this much; none if there is nothing to be shown.
    pub fn episodes_expected(&self, mean: Fixed, variance: Fixed) -> Option<u64> {
        if mean <= Fixed::ZERO {
            return None;
        }
        let number = self.entered[Account::Trials as usize].saturating_add(1);
        let needed = u64::try_from(SHARES.len() as u128 * AlphaLedger::odds(Account::Trials, number));
        let needed = i128::from(Fixed::ln_count_floor(needed.unwrap_or(u64::MAX)).to_raw());
        let (mean, variance) = (i128::from(mean.to_raw()), i128::from(variance.to_raw().max(0)));
        // 8 variance ln(8 / alpha) / mean^2, and at least what the largest share takes when every episode is won.
        let episodes = needed.saturating_mul(8 * variance) / (mean * mean).max(1);
        let least = (needed * 10) >> (WEALTH_BITS + 2);
        Some(episodes.max(least) as u64)
    }
}

impl InterleavedTest {
    /// Books one episode. If its loss is beyond the range, another test begins with the wider range and the next alpha.
    pub fn observe(&mut self, ledger: &mut AlphaLedger, account: Account, played: &Played) -> Progress {
        let since = played.since.clamp(-RETURN_MAX, RETURN_MAX);
        let (baseline, reach) = self.baseline();
        let distance = played.side.sign() * (i128::from(since) - baseline);
        if played.differs && distance < -reach {
            self.reopen(ledger, account, since);
        }
        self.book(played, since)
    }

    /// Books an episode that somebody else played, because both would have done the same.
    pub fn pass(&mut self) -> Progress {
        self.passed = self.passed.saturating_add(1);
        self.wager(Fixed::ZERO);
        self.progress()
    }

    /// Begins again with a range that holds this return. What was BAD is not forgotten, and neither is the baseline.
    fn reopen(&mut self, ledger: &mut AlphaLedger, account: Account, since: i64) {
        let (mean, _) = self.baseline();
        let Earlier { low, high, .. } = self.earlier;
        let earlier = Earlier { low: low.min(since), high: high.max(since), mean: mean as i64 };
        let widened = Fixed::from_ratio(high - low, earlier.high - earlier.low);
        let fresh = ledger.open_interleaved(account, earlier, self.promise.mul_floor(widened));
        *self = InterleavedTest { sides: self.sides, passed: self.passed, ..fresh };
    }

    fn book(&mut self, played: &Played, since: i64) -> Progress {
        let (baseline, reach) = self.baseline();
        let distance = if played.differs { played.side.sign() * (i128::from(since) - baseline) } else { 0 };
        let x = Fixed::from_ratio(distance.clamp(-reach, reach) as i64, reach as i64);
        self.wager(x);
        let side = &mut self.sides[usize::from(played.side == Side::Incumbent)];
        side.episodes += 1;
        side.sum += i128::from(played.total.clamp(-RETURN_MAX, RETURN_MAX));
        if played.differs {
            side.bad += u32::from(played.is_bad);
            self.differing += 1;
            self.returns += i128::from(since);
            self.contrast += distance;
            self.sum += x.to_raw() >> 8;
            self.squares += i128::from(x.to_raw() >> 8).pow(2);
        }
        self.progress()
    }

    /// All bettors wager on x.
    fn wager(&mut self, x: Fixed) {
        for (place, shift) in SHIFTS.into_iter().enumerate() {
            let shift = Fixed::from_ratio(shift, 128);
            // The excess over the bound, scaled so that it cannot lose more than everything.
            let excess = x.minus(shift).div_floor(Fixed::ONE.plus(shift));
            bet(&mut self.wealth[place], excess);
            self.excluded[place] |= has_won(&self.wealth[place], self.odds);
        }
        bet(&mut self.mirrored, x.negated());
    }

    /// The mean of earlier returns of episodes in which the two differ, and the larger distance from it to an end of the
    /// range.
    fn baseline(&self) -> (i128, i128) {
        let Earlier { low, high, mean } = self.earlier;
        let (low, high) = (i128::from(low), i128::from(high));
        let count = BASELINE_EPISODES + i128::from(self.differing);
        let mean = (self.returns + BASELINE_EPISODES * i128::from(mean)).div_euclid(count).clamp(low, high);
        (mean, (mean - low).max(high - mean))
    }

    fn progress(&self) -> Progress {
        let (episodes, bad) = (self.episodes(), self.sides.map(|side| side.bad));
        if is_unsafe(bad, episodes) {
            return Progress::Unsafe;
        }
        if self.excluded[DECIDING] {
            return Progress::Better;
        }
        let sum = i128::from(self.sum);
        let is_worse = has_won(&self.mirrored, FUTILITY_ODDS);
        let is_promised = Fixed::ZERO < self.promise;
        // One standard error below zero, or less than one above it after long.
        let is_hopeless = sum < 0 && self.squares <= sum * sum;
        let is_faint = FAINT <= self.differing && (sum <= 0 || sum * sum < self.squares);
        let is_given_up = match is_promised {
            true => self.breaks_promise(),
            false => is_hopeless || is_faint,
        };
        let is_long = EPISODES_MAX <= episodes;
        if is_worse || is_long || PATIENCE <= self.differing && is_given_up {
            Progress::Futile
        } else {
            Progress::Open
        }
    }

    /// Whether the mean of x lies two standard errors below half of what was promised. The promise is over the range, so that
    /// x promises at least half of it.
    fn breaks_promise(&self) -> bool {
        let episodes = i128::from(self.episodes());
        let sum = i128::from(self.sum);
        let short = episodes * i128::from(self.promise.to_raw() >> 10) - sum;
        0 < short && 4 * (self.squares * episodes - sum * sum) < episodes * short * short
    }

    /// Episodes booked.
    pub fn episodes(&self) -> u32 {
        self.sides[0].episodes.saturating_add(self.sides[1].episodes).saturating_add(self.passed)
    }

    /// Whether at least this many episodes were played and none made a difference.
    pub fn never_differed(&self, episodes: usize) -> bool {
        self.differing == 0 && episodes <= self.episodes() as usize
    }

    /// The width of the range of returns.
    pub fn span(&self) -> i64 {
        self.earlier.high - self.earlier.low
    }

    /// Mean returns of the candidate and of the incumbent, in milli-units; none of a side that has not played.
    pub fn means(&self) -> [Option<i64>; 2] {
        self.sides
            .map(|side| (0 < side.episodes).then(|| side.sum.div_euclid(i128::from(side.episodes)) as i64))
    }

    /// What was measured so far.
    pub fn evidence(&self) -> Interleaved {
        let episodes = i128::from(self.episodes()).max(1);
        let (contrast, span) = (2 * self.contrast, i128::from(self.span()));
        let mean = ((contrast << WEALTH_BITS) / (episodes * span)) as i64;
        // A bound below zero is only known to half of what the shift says, where the baseline lies at an end of the range.
        let bounds = SHIFTS.map(|shift| Fixed::from_ratio(shift.min(2 * shift), 128));
        let excluded = bounds.into_iter().zip(self.excluded).filter(|(_, is_excluded)| *is_excluded);
        Interleaved {
            episodes: self.episodes(),
            differing: self.differing,
            mean: Fixed::from_raw(mean).clamp(Fixed::ONE.negated(), Fixed::ONE),
            lower_bound: excluded.map(|(bound, _)| bound).max().unwrap_or(Fixed::ONE.negated()),
            odds: self.odds,
            bad: self.sides.map(|side| side.bad),
        }
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        wide(writer, self.odds);
        writer.i64(self.promise.to_raw());
        let Earlier { low, high, mean } = self.earlier;
        [low, high, mean].iter().for_each(|value| writer.i64(*value));
        self.wealth.iter().chain([&self.mirrored]).flatten().for_each(|wealth| wide(writer, *wealth));
        self.excluded.iter().for_each(|is_excluded| writer.bool(*is_excluded));
        for side in &self.sides {
            writer.u32(side.episodes);
            writer.u32(side.bad);
            wide(writer, side.sum as u128);
        }
        writer.u32(self.differing);
        writer.u32(self.passed);
        wide(writer, self.returns as u128);
        wide(writer, self.contrast as u128);
        writer.i64(self.sum);
        wide(writer, self.squares as u128);
    }

    /// Reads canonical bytes back; a test that cannot have been played is refused.
    pub fn decode(reader: &mut Reader<'_>) -> Result<InterleavedTest, DecodeError> {
        let impossible = reader.error("an interleaved test that cannot have been played");
        let odds = read_wide(reader)?;
        let promise = Fixed::from_raw(reader.i64()?);
        let earlier = Earlier { low: reader.i64()?, high: reader.i64()?, mean: reader.i64()? };
        let mut wealth = [STAKE; SHIFTS.len() + 1];
        for place in wealth.iter_mut().flatten() {
            *place = read_wide(reader)?;
        }
        let mut excluded = [false; SHIFTS.len()];
        for place in &mut excluded {
            *place = reader.bool()?;
        }
        let mut sides = [Tally::default(); 2];
        for side in &mut sides {
            *side = Tally { episodes: reader.u32()?, bad: reader.u32()?, sum: read_wide(reader)? as i128 };
        }
        let (differing, passed) = (reader.u32()?, reader.u32()?);
        let (returns, contrast) = (read_wide(reader)? as i128, read_wide(reader)? as i128);
        let (sum, squares) = (reader.i64()?, read_wide(reader)? as i128);
        let [mirrored, wealth @ ..] = {
            wealth.rotate_right(1);
            wealth
        };
        let test = InterleavedTest {
            odds,
            promise,
            earlier,
            wealth,
            mirrored,
            excluded,
            sides,
            differing,
            passed,
            returns,
            contrast,
            sum,
            squares,
        };
        if test.is_possible() { Ok(test) } else { Err(impossible) }
    }

    fn is_possible(&self) -> bool {
        let Earlier { low, high, mean } = self.earlier;
        let range = -RETURN_MAX..=RETURN_MAX;
        let in_order = low < high && (low..=high).contains(&mean) && range.contains(&low);
        let rich = |wealth: &Wealth| wealth.iter().all(|wealth| *wealth <= WEALTH_MAX);
        let counts = |side: &Tally| {
            let most = i128::from(RETURN_MAX) * i128::from(side.episodes);
            side.episodes <= EPISODES_MAX && side.bad <= side.episodes && (-most..=most).contains(&side.sum)
        };
        let (differing, reach) = (i128::from(self.differing), 2 * i128::from(RETURN_MAX));
        let within = |value: i128, most: i128| (-most * differing..=most * differing).contains(&value);
        // The j-th test of a ledger of 32 bits has odds below 2^72.
        let odds = 0 < self.odds && self.odds < 1 << 72;
        odds && (Fixed::ZERO..=Fixed::ONE).contains(&self.promise)
            && in_order
            && range.contains(&high)
            && self.wealth.iter().chain([&self.mirrored]).all(rich)
            && self.sides.iter().all(counts)
            && self.passed <= EPISODES_MAX
            && i128::from(self.episodes()) >= differing
            && within(self.returns, i128::from(RETURN_MAX))
            && within(self.contrast, reach)
            && within(i128::from(self.sum), 1 << 24)
            && 0 <= self.squares
            && within(self.squares, 1 << 48)
    }
}

fn wide(writer: &mut Writer, value: u128) {
    writer.u64(value as u64);
    writer.u64((value >> 64) as u64);
}

fn read_wide(reader: &mut Reader<'_>) -> Result<u128, DecodeError> {
    Ok(u128::from(reader.u64()?) | u128::from(reader.u64()?) << 64)
}

/// Multiplies each wealth by one plus its share of x, rounded down, which only helps the null.
fn bet(wealth: &mut Wealth, x: Fixed) {
    for (wealth, share) in wealth.iter_mut().zip(SHARES) {
        let factor = (256i128 << WEALTH_BITS) + i128::from(share) * i128::from(x.to_raw());
        *wealth = ((*wealth * factor.max(0) as u128) >> (WEALTH_BITS + 8)).min(WEALTH_MAX);
    }
}

fn has_won(wealth: &Wealth, odds: u128) -> bool {
    (SHARES.len() as u128 * odds) << WEALTH_BITS <= wealth.iter().sum()
}

#[cfg(test)]
mod tests;
