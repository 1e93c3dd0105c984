//! Measured improvement: a sequential test on paired rollouts that may be looked at after every pair.
//!
//! Candidate and incumbent play the same fresh seed; the difference of their returns over the range that returns were seen
//! in lies between -1 and 1. Whoever opens the test knows that range: a gain beyond it counts as the whole range, and a
//! loss beyond it opens another test, so that what is promised holds for losses no larger than any seen before. Four
//! bettors wager fixed shares on it: under "no better on average" the mean of their wealth is a supermartingale, so it
//! reaches `1/alpha` with a chance of at most alpha, however often one looks. The alphas of all candidates ever tested in
//! a family add up to 1/20, because the ledger of tests is never reset. Reported is a lower confidence bound, not the
//! mean. Must not know what a policy is.
//! Where a world cannot be repeated there are no pairs: [`interleaved`]. Clauses: SCC-8; decision D-23.

pub mod interleaved;

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;

/// What chances of error are granted for. The numbers are places in the ledger and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Account {
    /// Candidates that play pairs.
    Trials = 0,
    /// Patches in force that are played against what was there before.
    Watches = 1,
    /// Looks at the log for contexts that differ or have changed.
    Contexts = 2,
    /// Looks at the log for actions that are BAD.
    Guard = 3,
}

/// One account of all chances of error in one task: every test is entered before it is made, and the j-th of an account is
/// granted one over `share * j * (j + 1)`, so that each account spends at most one over its share however many tests there
/// are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlphaLedger {
    entered: [u32; AlphaLedger::ACCOUNTS],
}

impl AlphaLedger {
    /// How many accounts there are.
    pub const ACCOUNTS: usize = 4;
    /// One over the most that each account may spend.
    const SHARES: [u64; AlphaLedger::ACCOUNTS] = [20, 20, 80, 80];

    /// A ledger with this many tests in each account.
    pub const fn resume(entered: [u32; AlphaLedger::ACCOUNTS]) -> AlphaLedger {
        AlphaLedger { entered }
    }

    /// Tests so far, account by account.
    pub const fn entered(&self) -> [u32; AlphaLedger::ACCOUNTS] {
        self.entered
    }

    /// Enters a test; the chance of error that it is granted is one over this.
    pub fn enter(&mut self, account: Account) -> u128 {
        let entered = &mut self.entered[account as usize];
        *entered = entered.saturating_add(1);
        AlphaLedger::odds(account, *entered)
    }

    fn odds(account: Account, number: u32) -> u128 {
        u128::from(AlphaLedger::SHARES[account as usize]) * u128::from(number) * (u128::from(number) + 1)
    }

    /// The sum of all chances of error that an account has granted so far: `(1 - 1 / (j + 1)) / share` after j tests.
    pub fn spent(&self, account: Account) -> Fixed {
        let (entered, share) =
            (i64::from(self.entered[account as usize]), AlphaLedger::SHARES[account as usize]);
        Fixed::from_ratio(entered, (entered + 1) * share as i64)
    }

    /// Opens the test of the next candidate.
    pub fn open(&mut self, account: Account) -> ImprovementTest {
        ImprovementTest::new(self.enter(account))
    }

    /// Opens the test of a candidate that promises this mean difference: it is given up only when what was measured
    /// contradicts the promise. What it takes to be accepted is the same.
    pub fn open_with_promise(&mut self, promise: Fixed) -> ImprovementTest {
        ImprovementTest { promise, ..self.open(Account::Trials) }
    }

    /// Opens another test of a candidate whose first one weighed losses by too small a range. What the candidate did that
    /// must not happen is not forgotten; a lead over the incumbent in that is.
    pub fn reopen(&mut self, before: &ImprovementTest, promise: Fixed) -> ImprovementTest {
        ImprovementTest { bad_excess: before.bad_excess.max(0), ..self.open_with_promise(promise) }
    }

    /// About how many pairs the next test takes to show a mean difference with this variance; none if no wager pays.
    ///
    /// A wager of a share w grows its logarithm by about `w * mean - w^2 * (variance + mean^2) / 2` a pair.
    pub fn pairs_expected(&self, mean: Fixed, variance: Fixed) -> Option<u64> {
        let odds =
            AlphaLedger::odds(Account::Trials, self.entered[Account::Trials as usize].saturating_add(1));
        let needed = u64::try_from(WAGERS.len() as u128 * odds).unwrap_or(u64::MAX);
        let needed = Fixed::ln_count_floor(needed);
        let square = i128::from(variance.plus(mean.mul_floor(mean)).to_raw());
        let growth = |share: i64| {
            let share = i128::from(share);
            32 * share * i128::from(mean.to_raw()) - share * share * square
        };
        let best = WAGERS.into_iter().map(growth).max().filter(|growth| 0 < *growth)?;
        Some((512 * i128::from(needed.to_raw()) / best) as u64)
    }
}

/// What to do after a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The question is open: play another pair.
    Open,
    /// The candidate is better, at the level it was given.
    Better,
    /// It is not worth going on.
    Futile,
    /// It does what must not happen more often than the incumbent.
    Unsafe,
}

/// What was measured, for the trace and the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "PoX")]
pub struct Evidence {
    /// Pairs played.
    pub pairs: u32,
    /// The mean difference over the range of returns.
    pub mean: Fixed,
    /// The mean difference is above this, at the level of the test.
    pub lower_bound: Fixed,
    /// The error probability granted to this test is one over this.
    pub odds: u128,
    /// Episodes with BAD: the candidate's less the incumbent's.
    pub bad_excess: i32,
}

impl Evidence {
    /// Whether it did what must not happen more often than chance explains: the test's own veto.
    pub fn is_unsafe(&self) -> bool {
        3 <= self.bad_excess && i64::from(self.pairs) < 100 * i64::from(self.bad_excess)
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u32(self.pairs);
        writer.i64(self.mean.to_raw());
        writer.i64(self.lower_bound.to_raw());
        writer.u64(self.odds as u64);
        writer.i32(self.bad_excess);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Evidence, DecodeError> {
        Ok(Evidence {
            pairs: reader.u32()?,
            mean: Fixed::from_raw(reader.i64()?),
            lower_bound: Fixed::from_raw(reader.i64()?),
            odds: u128::from(reader.u64()?),
            bad_excess: reader.i32()?,
        })
    }
}

/// Shares of the wealth that are wagered, in sixteenths.
const WAGERS: [i64; 4] = [2, 4, 8, 15];
/// Fractional bits of a wealth.
const WEALTH_BITS: u32 = 32;
/// Pairs with a difference at most.
const UNEQUAL_MAX: i64 = 2_000;
/// Pairs at most: what has not differed by then differs too rarely to matter.
const PAIRS_MAX: i64 = 6_000;
/// More BAD episodes than any candidate has time for.
const BAD_EXCESS_MAX: i32 = 1 << 30;
/// Where lower bounds are looked for: multiples of 1/128.
const BOUND_STEPS: i64 = 128;

/// One candidate's test.
#[derive(Clone, Debug)]
pub struct ImprovementTest {
    odds: u128,
    /// The mean difference that the candidate's own model predicts; zero when it has none.
    promise: Fixed,
    wealth: [u128; WAGERS.len()],
    differences: Vec<Fixed>,
    sum: i64,
    squares: i128,
    unequal: i64,
    bad_excess: i32,
}

impl ImprovementTest {
    fn new(odds: u128) -> ImprovementTest {
        let wealth = [1 << WEALTH_BITS; WAGERS.len()];
        ImprovementTest {
            odds,
            promise: Fixed::ZERO,
            wealth,
            differences: Vec::new(),
            sum: 0,
            squares: 0,
            unequal: 0,
            bad_excess: 0,
        }
    }

    /// Books one pair; `difference` is the candidate's return less the incumbent's over their range.
    pub fn observe(&mut self, difference: Fixed, bad_candidate: bool, bad_incumbent: bool) -> Progress {
        assert!(difference.to_raw().abs() <= Fixed::ONE.to_raw(), "differences stay within the range");
        bet(&mut self.wealth, difference);
        self.differences.push(difference);
        self.unequal += i64::from(difference != Fixed::ZERO);
        self.sum += difference.to_raw() >> 8;
        self.squares += i128::from(difference.to_raw() >> 8).pow(2);
        self.bad_excess += i32::from(bad_candidate) - i32::from(bad_incumbent);
        self.progress()
    }

    fn progress(&self) -> Progress {
        let pairs = self.differences.len() as i64;
        if 3 <= self.bad_excess && pairs < 100 * i64::from(self.bad_excess) {
            return Progress::Unsafe;
        }
        if has_won(&self.wealth, self.odds) {
            return Progress::Better;
        }
        // Pairs without a difference say nothing against the candidate, so patience counts the others.
        let hopeless = if Fixed::ZERO < self.promise {
            16 <= self.unequal && self.breaks_promise()
        } else {
            (16 <= self.unequal && self.sum < 0) || (32 <= self.unequal && self.sum <= 0)
        };
        // Less than one standard error above zero after many pairs: sum^2 < n * variance = squares - sum^2 / n.
        let sum = i128::from(self.sum);
        let faint = self.promise == Fixed::ZERO
            && 200 <= self.unequal
            && sum * sum * i128::from(pairs) < (self.squares * i128::from(pairs) - sum * sum);
        let long = PAIRS_MAX <= pairs || UNEQUAL_MAX <= self.unequal;
        if hopeless || faint || long { Progress::Futile } else { Progress::Open }
    }

    /// Pairs played.
    pub fn pairs(&self) -> u32 {
        self.differences.len() as u32
    }

    /// The mean difference that the candidate promises; zero when it promises none.
    pub fn promise(&self) -> Fixed {
        self.promise
    }

    /// Whether the mean lies two standard errors below half of what was promised:
    /// `4 * variance < n * (half - mean)^2`, both sides times n^2.
    fn breaks_promise(&self) -> bool {
        let pairs = self.differences.len() as i128;
        let sum = i128::from(self.sum);
        let short = pairs * i128::from(self.promise.to_raw() >> 9) - sum;
        0 < short && 4 * (self.squares * pairs - sum * sum) < pairs * short * short
    }

    /// Whether at least this many pairs were played and none made a difference.
    pub fn never_differed(&self, pairs: usize) -> bool {
        self.unequal == 0 && pairs <= self.differences.len()
    }

    /// Writes what was observed; the rest follows from it.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.odds as u64);
        writer.u64((self.odds >> 64) as u64);
        writer.i64(self.promise.to_raw());
        writer.i32(self.bad_excess);
        writer.length(self.differences.len());
        self.differences.iter().for_each(|difference| writer.i64(difference.to_raw()));
    }

    /// Reads canonical bytes back and observes the same again.
    pub fn decode(reader: &mut Reader<'_>) -> Result<ImprovementTest, DecodeError> {
        let malformed = reader.error("a test that cannot have been played");
        let odds = u128::from(reader.u64()?) | u128::from(reader.u64()?) << 64;
        let promise = Fixed::from_raw(reader.i64()?);
        let bad_excess = reader.i32()?;
        let count = reader.length(8)?;
        // The j-th test of a ledger of 32 bits has odds below 2^72; more pairs than the maximum end a test.
        let pairs_max = PAIRS_MAX as usize;
        if odds == 0 || 1 << 72 <= odds || pairs_max < count {
            return Err(malformed);
        }
        // An excess may come from tests before this one, a lead may not.
        if BAD_EXCESS_MAX < bad_excess || i64::from(bad_excess) < -(count as i64) {
            return Err(malformed);
        }
        if promise < Fixed::ZERO || Fixed::ONE < promise {
            return Err(malformed);
        }
        let mut test = ImprovementTest { promise, ..ImprovementTest::new(odds) };
        for _ in 0..count {
            let difference = Fixed::from_raw(reader.i64()?);
            if Fixed::ONE < difference || difference < Fixed::ONE.negated() {
                return Err(malformed);
            }
            test.observe(difference, false, false);
        }
        test.bad_excess = bad_excess;
        Ok(test)
    }

    /// What was measured so far.
    pub fn evidence(&self) -> Evidence {
        let pairs = self.differences.len();
        let mean = if pairs == 0 { 0 } else { (self.sum << 8) / pairs as i64 };
        Evidence {
            pairs: pairs as u32,
            mean: Fixed::from_raw(mean),
            lower_bound: self.lower_bound(),
            odds: self.odds,
            bad_excess: self.bad_excess,
        }
    }

    /// The largest multiple of 1/128 that the same wagers rule out as the mean; -1 if none is.
    fn lower_bound(&self) -> Fixed {
        let excluded = |step: i64| {
            let bound = Fixed::from_ratio(step, BOUND_STEPS);
            // The excess over the bound, scaled so that it cannot lose more than everything.
            let scale = Fixed::ONE.plus(bound);
            if scale == Fixed::ZERO {
                return true;
            }
            let mut wealth = [1u128 << WEALTH_BITS; WAGERS.len()];
            self.differences.iter().any(|difference| {
                let excess = difference.minus(bound).div_floor(scale);
                bet(&mut wealth, excess);
                has_won(&wealth, self.odds)
            })
        };
        // What rules out a mean rules out every lower one, so halving finds the border.
        let (mut low, mut high) = (-BOUND_STEPS, BOUND_STEPS);
        while low + 1 < high {
            let middle = (low + high).div_euclid(2);
            if excluded(middle) { low = middle } else { high = middle }
        }
        Fixed::from_ratio(low, BOUND_STEPS)
    }
}

/// Multiplies each wealth by one plus its share of the difference, rounded down, which only helps the null.
fn bet(wealth: &mut [u128; WAGERS.len()], difference: Fixed) {
    for (wealth, share) in wealth.iter_mut().zip(WAGERS) {
        let factor = (16i128 << WEALTH_BITS) + i128::from(share) * i128::from(difference.to_raw());
        *wealth = ((*wealth * factor.max(0) as u128) >> (WEALTH_BITS + 4)).min(1 << 80);
    }
}

fn has_won(wealth: &[u128; WAGERS.len()], odds: u128) -> bool {
    (WAGERS.len() as u128 * odds) << WEALTH_BITS <= wealth.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    /// Plays pairs until the test ends; the candidate wins or loses a pair by chance.
    fn run(ledger: &mut AlphaLedger, prng: &mut Prng, win: u64, lose: u64) -> (Progress, Evidence) {
        play(ledger.open(Account::Trials), prng, win, lose)
    }

    fn play(mut test: ImprovementTest, prng: &mut Prng, win: u64, lose: u64) -> (Progress, Evidence) {
        loop {
            let draw = prng.below(100);
            let difference = match draw {
                _ if draw < win => Fixed::ONE,
                _ if draw < win + lose => Fixed::ONE.negated(),
                _ => Fixed::ZERO,
            };
            let progress = test.observe(difference, false, false);
            if progress != Progress::Open {
                return (progress, test.evidence());
            }
        }
    }

    #[test]
    fn a_candidate_no_better_is_accepted_less_often_than_promised() {
        let mut prng = Prng::stream(1, "null");
        let batches = 300;
        let fooled = (0..batches).filter(|_| {
            let mut ledger = AlphaLedger::default();
            (0..20).any(|_| run(&mut ledger, &mut prng, 25, 25).0 == Progress::Better)
        });
        // The promise is 5 % of batches; 15 of 300.
        let fooled = fooled.count();
        assert!(fooled <= 15, "{fooled}");
    }

    #[test]
    fn a_perfect_answer_against_a_coin_takes_few_pairs() {
        let mut prng = Prng::stream(2, "perfect");
        let mut pairs = Vec::new();
        for _ in 0..100 {
            let (progress, evidence) = run(&mut AlphaLedger::default(), &mut prng, 50, 0);
            assert_eq!(progress, Progress::Better);
            assert!(Fixed::ZERO < evidence.lower_bound.plus(Fixed::from_raw(1)));
            pairs.push(evidence.pairs);
        }
        pairs.sort_unstable();
        assert!(pairs[50] <= 20, "{}", pairs[50]);
    }

    #[test]
    fn the_lower_bound_lies_below_the_true_mean() {
        let mut prng = Prng::stream(3, "bound");
        let above = (0..200).filter(|_| {
            let (_, evidence) = run(&mut AlphaLedger::default(), &mut prng, 40, 10);
            Fixed::from_ratio(30, 100) < evidence.lower_bound
        });
        assert!(above.count() <= 5);
    }

    #[test]
    fn more_bad_than_the_incumbent_is_a_veto() {
        let mut test = AlphaLedger::default().open(Account::Trials);
        let outcomes: Vec<Progress> = (0..3).map(|_| test.observe(Fixed::ONE, true, false)).collect();
        assert_eq!(outcomes[2], Progress::Unsafe);
    }

    #[test]
    fn a_test_half_way_comes_back_and_ends_the_same() {
        let mut prng = Prng::stream(6, "half way");
        let mut test = AlphaLedger::resume([3, 0, 0, 0]).open_with_promise(Fixed::from_ratio(1, 9));
        for _ in 0..9 {
            test.observe(Fixed::from_ratio(prng.between(-7, 8), 8), prng.bit(), prng.bit());
        }
        let mut writer = Writer::new();
        test.encode(&mut writer);
        let bytes = writer.into_bytes();
        let mut copy = ImprovementTest::decode(&mut Reader::new(&bytes)).unwrap();
        for _ in 0..40 {
            let difference = Fixed::from_ratio(prng.between(-7, 8), 8);
            assert_eq!(copy.observe(difference, true, true), test.observe(difference, true, true));
            assert_eq!(copy.evidence(), test.evidence());
        }
        for cut in 0..bytes.len() {
            assert!(ImprovementTest::decode(&mut Reader::new(&bytes[..cut])).is_err());
        }
    }

    #[test]
    fn a_promise_buys_patience_and_nothing_else() {
        let mut prng = Prng::stream(5, "promise");
        // One win more in twenty pairs than losses: after thirty pairs the sum is often below zero.
        let mut accepted = [0, 0];
        let mut fooled = 0;
        for _ in 0..100 {
            let promises = [Fixed::ZERO, Fixed::from_ratio(1, 20)];
            for (accepted, promise) in accepted.iter_mut().zip(promises) {
                let test = AlphaLedger::default().open_with_promise(promise);
                *accepted += u32::from(play(test, &mut prng, 15, 10).0 == Progress::Better);
            }
            let test = AlphaLedger::default().open_with_promise(promises[1]);
            fooled += u32::from(play(test, &mut prng, 12, 12).0 == Progress::Better);
        }
        assert!(accepted[0] + 10 < accepted[1], "{accepted:?}");
        assert!(fooled <= 5, "{fooled}");
    }

    #[test]
    fn the_expected_pairs_are_about_those_that_are_played() {
        let mut prng = Prng::stream(9, "expected");
        for (win, lose) in [(40, 0), (60, 20), (40, 25), (33, 22)] {
            // Differences are 1, 0 or -1: the mean square is the chance of a difference.
            let mean = Fixed::from_ratio(win as i64 - lose as i64, 100);
            let variance = Fixed::from_ratio((win + lose) as i64, 100).minus(mean.mul_floor(mean));
            let expected = AlphaLedger::default().pairs_expected(mean, variance).unwrap();
            let runs: Vec<Evidence> = (0..60)
                .map(|_| AlphaLedger::default().open_with_promise(mean))
                .map(|test| play(test, &mut prng, win, lose).1)
                .collect();
            let played = runs.iter().map(|evidence| u64::from(evidence.pairs)).sum::<u64>() / 60;
            assert!(played < 2 * expected && expected < 2 * played, "{win}, {lose}: {played} {expected}");
        }
        assert_eq!(AlphaLedger::default().pairs_expected(Fixed::ZERO, Fixed::ONE), None);
    }

    #[test]
    fn evidence_comes_back_from_its_bytes() {
        let (_, evidence) = run(&mut AlphaLedger::default(), &mut Prng::stream(4, "bytes"), 50, 0);
        let mut writer = Writer::new();
        evidence.encode(&mut writer);
        assert_eq!(Evidence::decode(&mut Reader::new(writer.as_bytes())), Ok(evidence));
    }
}
