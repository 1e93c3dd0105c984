//! How what acts stands: what is known of it, what it earned, what it replaced, and whether it keeps its promise.
//!
//! The structure itself is the machine's; this is the record beside it. Must not know the log, candidates that wait or the
//! machine. Clauses: SCC-9, SCC-14, SCC-15.

use super::watch::Alarm;
use crate::codec::{decode_hypothesis, decode_option, encode_hypothesis, encode_option};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::library::Machine;

/// Episodes in a row at the declared maximum that end a run.
const PERFECT_STREAK: u32 = 400;
/// After failures, a streak must be this many times as long as it usually goes between two of them.
const STREAK_FAILURES: i128 = 16;
/// Steps without any gain that end a run, at least.
const QUIET_MIN: u64 = 120_000;
/// Steps that an incumbent must have stood before its pool is changed: until then it may soon be replaced, and its patch may
/// be taken back, which only the latest can be.
const SETTLED_STEPS: u64 = 8_192;
/// The version of a learner's bytes from which on it is said when a plan that acted by counts was last taken back.
const SAYS_MISLED: u32 = 10;

/// What is known of what acts, beside the structure itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Incumbent {
    /// What it is, in words.
    pub(crate) words: String,
    /// It is a plan that acts by counts: pairs have not shown that it is better.
    pub(crate) by_counts: bool,
    /// The abstract machine behind it, if it can be built for other sizes.
    pub(crate) machine: Option<Machine>,
}

impl Incumbent {
    /// Of the plain action that a family holds at boot.
    pub(crate) fn at_boot() -> Incumbent {
        Incumbent { words: "always 0".to_string(), ..Incumbent::default() }
    }

    /// Writes the canonical bytes.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.text(&self.words);
        writer.bool(self.by_counts);
        encode_option(writer, self.machine.as_ref(), Machine::encode);
    }

    /// Reads canonical bytes back.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Incumbent, DecodeError> {
        Ok(Incumbent {
            words: reader.text()?.to_string(),
            by_counts: reader.bool()?,
            machine: decode_option(reader, Machine::decode)?,
        })
    }
}

/// How what acts stands.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    incumbent: Incumbent,
    /// What the incumbent earned since it acts.
    realised: Realised,
    /// Episodes of the incumbent in a row at the declared maximum.
    streak: u32,
    /// The step of the last gain.
    last_gain: u64,
    /// The step at which a plan that acted by counts was last taken back.
    misled_at: u64,
    /// The incumbent before and the candidate that replaced it, while its patch may be taken back.
    previous: Option<(Incumbent, Hypothesis)>,
    /// Compares what comes with what was promised, while somebody watches.
    alarm: Option<Alarm>,
}

impl Standing {
    /// At the start of a unit.
    pub(super) fn new(incumbent: Incumbent) -> Standing {
        let realised = Realised::default();
        Standing { incumbent, realised, streak: 0, last_gain: 0, misled_at: 0, previous: None, alarm: None }
    }

    /// What is known of what acts.
    pub(super) fn incumbent(&self) -> &Incumbent {
        &self.incumbent
    }

    /// What is known of what acts, for the next unit.
    pub(super) fn into_incumbent(self) -> Incumbent {
        self.incumbent
    }

    /// What acts is called something else from now on.
    pub(super) fn rename(&mut self, words: String) {
        self.incumbent.words = words;
    }

    /// What it earned in episodes of its own.
    pub(super) fn realised(&self) -> Realised {
        self.realised
    }

    /// Books an episode that the incumbent alone has played for experience.
    pub(super) fn book(&mut self, shape: &Shape, total: i64) {
        self.realised.book(total);
        self.streak = if total == shape.return_max { self.streak + 1 } else { 0 };
    }

    /// Books an episode that the incumbent has played against another.
    pub(super) fn book_rollout(&mut self, total: i64) {
        self.realised.book(total);
    }

    /// The range of returns has become wider. Where they may be larger than was declared, a streak at that maximum says nothing.
    pub(super) fn cover(&mut self, before: &Shape, shape: &Shape) {
        if before.return_max < shape.return_max {
            self.streak = 0;
        }
    }

    /// Other plain actions act from now on. Their patch is the latest, so that the one before it can no longer be taken back.
    pub(super) fn hold(&mut self, words: String, steps: u64) {
        self.hand_over(Incumbent { words, ..Incumbent::default() });
        (self.previous, self.alarm) = (None, None);
        self.last_gain = steps;
    }

    /// Somebody else acts from now on; who did.
    fn hand_over(&mut self, incumbent: Incumbent) -> Incumbent {
        self.realised = Realised::default();
        core::mem::replace(&mut self.incumbent, incumbent)
    }

    /// A candidate that won its test acts from now on; so many of its episodes in a row were at the maximum.
    pub(super) fn install(&mut self, candidate: Hypothesis, streak: u32, steps: u64, alarm: Alarm) {
        let (words, machine) = (candidate.words.clone(), candidate.machine.clone());
        let before = self.hand_over(Incumbent { words, by_counts: false, machine });
        (self.streak, self.last_gain) = (streak, steps);
        (self.previous, self.alarm) = (Some((before, candidate)), Some(alarm));
    }

    /// A plan acts from now on by what was counted.
    pub(super) fn follow(&mut self, plan: Hypothesis, steps: u64, alarm: Alarm) {
        let words = format!("{}, by counts", plan.words);
        let before = self.hand_over(Incumbent { words, by_counts: true, machine: None });
        (self.streak, self.last_gain) = (0, steps);
        (self.previous, self.alarm) = (Some((before, plan)), Some(alarm));
    }

    /// Whether counts may be believed without pairs: where they misled, twice as many steps must have been counted since.
    pub(super) fn believes_counts(&self, steps: u64) -> bool {
        2 * self.misled_at <= steps
    }

    /// The incumbent before acts again; who had replaced it.
    pub(super) fn fall_back(&mut self, steps: u64) -> Option<Hypothesis> {
        (self.streak, self.last_gain) = (0, steps);
        if self.incumbent.by_counts {
            self.misled_at = steps;
        }
        let (before, candidate) = self.previous.take()?;
        self.hand_over(before);
        Some(candidate)
    }

    /// The candidate whose patch may be taken back.
    pub(super) fn replaced_by(&self) -> Option<&Hypothesis> {
        self.previous.as_ref().map(|(_, candidate)| candidate)
    }

    /// The world has changed under it: what it earned and what it was promised to earn were of another one. It is not the patch
    /// that has failed, so that there is nothing to take back.
    pub(super) fn outlive(&mut self, steps: u64) {
        (self.realised, self.streak, self.last_gain) = (Realised::default(), 0, steps);
        self.alarm = None;
    }

    /// Compares a return of the incumbent with what was promised; an alarm is raised once.
    pub(super) fn is_alarmed_by(&mut self, total: i64, span: i64) -> bool {
        let is_alarmed = self.alarm.as_mut().is_some_and(|alarm| alarm.observe(total, span));
        if is_alarmed {
            self.alarm = None;
        }
        is_alarmed
    }

    /// Whether it has stood for so long that its pool may be changed.
    pub(super) fn is_settled(&self, steps: u64) -> bool {
        self.last_gain + SETTLED_STEPS <= steps
    }

    /// Whether there is nothing left to gain: what acts is perfect, or nothing has been gained for long.
    pub(super) fn is_final(&self, shape: &Shape, steps: u64) -> bool {
        self.is_perfect(shape) || QUIET_MIN.max(4 * self.last_gain) < steps - self.last_gain
    }

    /// Whether what acts has reached the declared maximum for so long that no luck explains it. What was seen to fall short
    /// at times may do so again: it must have gone many times as long as it usually goes between two failures.
    fn is_perfect(&self, shape: &Shape) -> bool {
        let streak = i128::from(self.streak);
        let (lost, staked) = self.realised.lost(shape);
        PERFECT_STREAK <= self.streak && (lost == 0 || STREAK_FAILURES * staked <= streak * lost)
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        self.incumbent.encode(writer);
        self.realised.encode(writer);
        writer.u32(self.streak);
        writer.u64(self.last_gain);
        writer.u64(self.misled_at);
        encode_option(writer, self.previous.as_ref(), |(incumbent, candidate), writer| {
            incumbent.encode(writer);
            encode_hypothesis(candidate, writer);
        });
        encode_option(writer, self.alarm.as_ref(), Alarm::encode);
    }

    /// Reads canonical bytes of this version back, of a learner that has taken so many steps in worlds of this shape.
    pub(super) fn decode(
        shape: &Shape,
        steps: u64,
        version: u32,
        reader: &mut Reader<'_>,
    ) -> Result<Standing, DecodeError> {
        let incumbent = Incumbent::decode(reader)?;
        let realised = Realised::decode(shape, reader)?;
        let malformed = reader.error("a gain that is still to come, or a streak that no run can have seen");
        let (streak, last_gain, misled_at) =
            (reader.u32()?, reader.u64()?, if SAYS_MISLED <= version { reader.u64()? } else { 0 });
        if steps < last_gain.max(misled_at) || 1 << 31 <= streak {
            return Err(malformed);
        }
        let previous = decode_option(reader, |reader| {
            Ok((Incumbent::decode(reader)?, decode_hypothesis(shape, reader)?))
        })?;
        let alarm = decode_option(reader, |reader| Alarm::decode(shape, reader))?;
        Ok(Standing { incumbent, realised, streak, last_gain, misled_at, previous, alarm })
    }
}

/// What the incumbent earned in episodes of its own, since it acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Realised {
    episodes: u64,
    /// Milli-units.
    sum: i128,
    squares: i128,
}

impl Realised {
    /// How many episodes.
    pub(super) fn episodes(&self) -> u64 {
        self.episodes
    }

    /// What they brought on average, in milli-units; none where there were none.
    pub(super) fn mean(&self) -> Option<i64> {
        (0 < self.episodes).then(|| (self.sum / i128::from(self.episodes)) as i64)
    }

    fn book(&mut self, total: i64) {
        let total = i128::from(total);
        (self.episodes, self.sum, self.squares) =
            (self.episodes + 1, self.sum + total, self.squares.saturating_add(total * total));
    }

    /// How far all episodes together fell short of the declared maximum, and how far they could have.
    fn lost(&self, shape: &Shape) -> (i128, i128) {
        let episodes = i128::from(self.episodes);
        let span = i128::from(shape.return_max) - i128::from(shape.return_min);
        (i128::from(shape.return_max) * episodes - self.sum, span * episodes)
    }

    /// Whether the mean is the one that was predicted: within three standard errors, and half a hundredth of the range for
    /// what is left of drawing and rounding.
    pub(super) fn bears_out(&self, predicted: i64, span: i64) -> bool {
        let count = i128::from(self.episodes);
        let error = self.sum - i128::from(predicted) * count;
        let slack = i128::from(span / 200) * count;
        let variance = (spread(self.squares, count, self.sum) / count.max(1)).saturating_mul(9);
        error.saturating_mul(error) <= variance.saturating_add(slack.saturating_mul(slack))
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u64(self.episodes);
        for wide in [self.sum, self.squares] {
            writer.u64(wide as u64);
            writer.i64((wide >> 64) as i64);
        }
    }

    /// Reads canonical bytes back; sums that so many returns cannot have are refused.
    fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<Realised, DecodeError> {
        let malformed = reader.error("returns that no episodes can have brought");
        let episodes = reader.u64()?;
        let mut wide = || Ok(i128::from(reader.u64()?) | i128::from(reader.i64()?) << 64);
        let (sum, squares) = (wide()?, wide()?);
        let largest = i128::from(shape.return_min.unsigned_abs().max(shape.return_max.unsigned_abs()));
        let count = i128::from(episodes);
        let fits = episodes < 1 << 48
            && sum.unsigned_abs() <= (largest * count).unsigned_abs()
            && (0..=(largest * largest).saturating_mul(count)).contains(&squares);
        if fits { Ok(Realised { episodes, sum, squares }) } else { Err(malformed) }
    }
}

/// The squared number of episodes times the variance of their returns. Returns may be as large as numbers go.
pub(super) fn spread(squares: i128, episodes: i128, sum: i128) -> i128 {
    squares.saturating_mul(episodes).saturating_sub(sum.saturating_mul(sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::digest::Digest;
    use bem_base::environment::Field;
    use bem_synth::policy::Policy;

    /// One step an episode that pays nothing or one unit.
    fn shape() -> Shape {
        Shape {
            observation_bits: 4,
            actions: 2,
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
            fields: vec![Field { low: 0, width: 4 }],
        }
    }

    /// An incumbent that had these returns, oldest first, in episodes of its own.
    fn after(returns: impl IntoIterator<Item = i64>) -> Standing {
        let mut standing = Standing::new(Incumbent::at_boot());
        returns.into_iter().for_each(|total| standing.book(&shape(), total));
        standing
    }

    fn is_final(standing: &Standing) -> bool {
        standing.is_final(&shape(), 1)
    }

    /// So many episodes that fall short by this much, and then a streak at the maximum.
    fn failures_and_streak(failures: usize, loss: i64, streak: usize) -> Standing {
        after(vec![1_000 - loss; failures].into_iter().chain(vec![1_000; streak]))
    }

    #[test]
    fn who_never_failed_is_perfect_after_four_hundred_episodes_at_the_maximum() {
        assert!(!is_final(&after(vec![1_000; 399])));
        assert!(is_final(&after(vec![1_000; 400])));
        assert!(!is_final(&after(vec![1_000; 4_000].into_iter().chain([999]))));
    }

    #[test]
    fn a_streak_counts_for_as_long_as_no_larger_return_is_known() {
        let mut standing = after(vec![1_000; 400]);
        standing.cover(&shape(), &Shape { return_min: -1_000, ..shape() });
        assert!(is_final(&standing));
        standing.cover(&shape(), &Shape { return_max: 2_000, ..shape() });
        assert!(!is_final(&standing));
        assert_eq!(standing.realised().mean(), Some(1_000));
    }

    #[test]
    fn who_failed_must_go_sixteen_times_as_long_as_between_two_failures() {
        // Half of the first two hundred episodes failed, and then one in five and one in six of all: 16 * 600 <= 400 * 100.
        let mixed = (0..200).map(|episode| 1_000 * i64::from(episode % 2 == 0));
        assert!(!is_final(&after(mixed.clone().chain(vec![1_000; 399]))));
        assert!(is_final(&after(mixed.chain(vec![1_000; 400]))));
        // 17 in 417 are enough, 16 in 416 are not: a gap of 26 episodes, and 400 are fewer than sixteen times that.
        assert!(is_final(&failures_and_streak(17, 1_000, 400)));
        assert!(!is_final(&failures_and_streak(16, 1_000, 400)));
        // What happened once may be rare: no streak outgrows a gap that it is a part of.
        for streak in [400, 4_000, 40_000] {
            assert!(!is_final(&failures_and_streak(1, 1_000, streak)), "{streak}");
        }
    }

    #[test]
    fn a_small_loss_counts_for_as_much_as_it_costs() {
        assert!(is_final(&failures_and_streak(40, 500, 400)));
        assert!(is_final(&failures_and_streak(20, 1_000, 400)));
        assert!(!is_final(&failures_and_streak(20, 100, 400)));
    }

    #[test]
    fn a_new_incumbent_has_to_earn_its_own_streak_and_is_not_blamed_for_others() {
        let mut standing = failures_and_streak(1, 1_000, 400);
        assert!(!is_final(&standing));
        let incumbent = standing.incumbent().clone();
        standing.hand_over(incumbent);
        assert!(is_final(&standing), "the rollouts of its gate are its streak, and it has failed in none");
    }

    #[test]
    fn counts_that_misled_are_not_believed_before_twice_as_many_steps() {
        let plan = || Hypothesis {
            policy: Policy::constant(2, 1),
            statement: None,
            words: "plan".to_string(),
            description_length: 1,
            exact: false,
            predicted: Some(1_000),
            provenance: Digest::default(),
            machine: None,
        };
        let mut standing = after([600, 800]);
        let promised = standing.realised().mean();
        assert_eq!(promised, Some(700), "what was earned before is what the plan has promised");
        standing.follow(plan(), 1_000, Alarm::new(promised));
        let mut short = (0..).take(400);
        assert!(short.any(|_| standing.is_alarmed_by(100, 1_000)), "it earns less than that");
        assert_eq!(standing.fall_back(1_500).map(|plan| plan.words), Some("plan".to_string()));
        assert_eq!(standing.incumbent().words, "always 0");
        assert!(!standing.believes_counts(2_999) && standing.believes_counts(3_000));
        // A candidate that had won its pairs is another matter.
        standing.install(plan(), 0, 4_000, Alarm::new(None));
        standing.fall_back(4_500);
        assert!(standing.believes_counts(4_500));
    }

    #[test]
    fn without_a_gain_a_run_ends_after_a_long_quiet() {
        let ends = |steps: u64, last_gain: u64| {
            let standing = Standing { last_gain, ..after([]) };
            standing.is_final(&shape(), steps)
        };
        assert!(!ends(QUIET_MIN, 0));
        assert!(ends(QUIET_MIN + 1, 0));
        // Who took long for the last gain may take long for the next one.
        assert!(!ends(5 * 50_000, 50_000));
        assert!(ends(5 * 50_000 + 1, 50_000));
    }
}
