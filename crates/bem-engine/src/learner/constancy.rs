//! Whether what acts goes on earning what it earned: where it does not, the world has changed.
//!
//! Where plain actions act in worlds of one step, every context is followed by itself (`drift`). Elsewhere this compares whole
//! returns: those of what acts, which must not fall, and those of episodes that are drawn throughout, which must not rise, because
//! a rise says that something idle has become better. Each is held against its own mean since something else began to act: sums
//! of what falls short of it, cut at zero, at two scales of change, as in `drift`. The watch of a patch compares with what was
//! promised and may find that the patch is bad; here it is the same policy that earned more before, so that no patch is to blame.
//! Then everything that was learned from the log is in doubt. Episodes from before the change are forgotten, what was turned down
//! may come again, the log is searched at once and explored for as at the start. What acts stays until something better is found:
//! where it is still right, nothing is lost.
//!
//! Every mean is one more test; their errors are shared like those of watches, the n-th with one part in n squared, so that all
//! false alarms together stay few, however long a run is. What is drawn is held against draws from the same actions: pairs that are
//! suspected to be BAD are drawn more seldom, which changes what draws earn, so that its mean begins anew with each of them.
//! Returns that hang together over many episodes raise alarms that nothing explains; every alarm of a run makes the next one rarer.
//! Clauses: VM-16, SCC-13; decisions D-307, D-314.

use crate::learner::Learner;
use crate::learner::drift::Drift;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_machine::held::Adaptation;
use bem_machine::turn::Turn;
use bem_synth::experience::Episode;

/// Returns that make a mean before anything is held against it.
const EPISODES_MIN: u64 = 64;
/// The logarithm of how rarely chance alone raises an alarm while a mean is young.
const RARELY: i128 = 16;
/// The logarithm of how much rarer every alarm makes the next one.
const RARER: u64 = 4;
/// After so many returns the chance has fallen to a quarter, and from there on with the square of their number.
const YOUNG_EPISODES: u64 = 1 << 12;
/// What is forgiven at every episode, in quarters of the standard deviation: slow changes, and large ones at once.
const FORGIVEN: [i128; 2] = [1, 3];
/// Changes below one part in so many of the range of returns are not looked for.
const FORGIVEN_MIN: i128 = 64;
/// Sums and counts that no run reaches.
const COUNT_MAX: u64 = 1 << 48;
const WIDE_MAX: i128 = 1 << 120;

/// What falls short of a mean, and since which episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shortage {
    sum: i128,
    since: u64,
}

/// A mean and what is held against it. Returns that must not rise are booked with their sign turned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Footing {
    count: u64,
    sum: i128,
    squares: i128,
    shortages: [Shortage; 2],
}

/// How often something was found before: means that were begun, and alarms that were raised.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    begun: u64,
    alarms: u64,
}

/// What a return says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symptom {
    /// Nothing unusual.
    Usual,
    /// Half as much falls short as raises an alarm.
    Falling(u64),
    /// The world has changed since this episode.
    Changed(u64),
}

impl Footing {
    /// Takes in the return of an episode; returns differ by a range.
    fn observe(&mut self, total: i64, range: i64, serial: u64, before: Before) -> Symptom {
        let finding = if EPISODES_MIN <= self.count {
            self.compare(i128::from(total), i128::from(range.max(1)), serial, before)
        } else {
            Symptom::Usual
        };
        let total = i128::from(total);
        self.count += 1;
        self.sum = (self.sum + total).clamp(-WIDE_MAX, WIDE_MAX);
        self.squares = self.squares.saturating_add(total * total).min(WIDE_MAX);
        finding
    }

    fn compare(&mut self, total: i128, range: i128, serial: u64, before: Before) -> Symptom {
        let count = i128::from(self.count);
        let mean = self.sum.div_euclid(count);
        // As if one more return had differed by the whole range: what was all alike so far need not stay so.
        let variance = (self.squares / count - mean * mean).max(0) + range * range / count;
        let deviation = variance.unsigned_abs().isqrt() as i128;
        // The mean itself is known to a standard error; twice that is forgiven besides.
        let unsure = 2 * deviation / (self.count.isqrt() as i128).max(1);
        // Twice the natural logarithms, nearly.
        let logs = (1 + self.count / YOUNG_EPISODES).ilog2() + (1 + before.begun).ilog2();
        let rarely = RARELY + i128::from(RARER * before.alarms.min(COUNT_MAX)) + i128::from(logs) * 7 / 5;
        let mut finding = Symptom::Usual;
        for (shortage, quarters) in self.shortages.iter_mut().zip(FORGIVEN) {
            let forgiven = (quarters * deviation / 4 + unsure).max(range / FORGIVEN_MIN).max(1);
            // The chance of a sum beyond h is about e^(-2 h forgiven / variance), and a little more where returns are skewed.
            let threshold = rarely * variance / (2 * forgiven) + rarely * range / 4;
            if shortage.sum == 0 {
                shortage.since = serial;
            }
            shortage.sum = (shortage.sum + mean - total - forgiven).max(0);
            if threshold < shortage.sum {
                finding = Symptom::Changed(shortage.since);
            } else if threshold < 2 * shortage.sum && finding == Symptom::Usual {
                finding = Symptom::Falling(shortage.since);
            }
        }
        finding
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u64(self.count);
        let sums = self.shortages.iter().map(|shortage| shortage.sum);
        for wide in [self.sum, self.squares].into_iter().chain(sums) {
            writer.u64(wide as u64);
            writer.i64((wide >> 64) as i64);
        }
        self.shortages.iter().for_each(|shortage| writer.u64(shortage.since));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Footing, DecodeError> {
        let malformed = reader.error("returns that no episodes can have brought");
        let count = reader.u64()?;
        let mut wide = || Ok(i128::from(reader.u64()?) | i128::from(reader.i64()?) << 64);
        let (sum, squares, short) = (wide()?, wide()?, [wide()?, wide()?]);
        let since = [reader.u64()?, reader.u64()?];
        let is_possible = |sum: &i128| (0..=WIDE_MAX).contains(sum);
        let fits = count < COUNT_MAX
            && is_possible(&sum.saturating_abs())
            && is_possible(&squares)
            && short.iter().all(is_possible)
            && since.iter().all(|since| *since < COUNT_MAX);
        let shortage = |scale: usize| Shortage { sum: short[scale], since: since[scale] };
        let shortages = [shortage(0), shortage(1)];
        if fits { Ok(Footing { count, sum, squares, shortages }) } else { Err(malformed) }
    }
}

/// What acts and what is drawn, in a world that may change.
#[derive(Clone, Debug, Default)]
pub(super) struct Constancy {
    acting: Footing,
    drawn: Footing,
    /// Means that were begun so far.
    begun: u64,
    /// Pairs that are drawn more seldom or not at all, as long as this mean of draws has been taken.
    barred: u64,
    /// The least and the largest return so far; nothing before the first.
    seen: Option<(i64, i64)>,
}

impl Constancy {
    /// Something else acts from now on, or in another world.
    pub(super) fn begin_anew(&mut self) {
        if 0 < self.acting.count + self.drawn.count {
            let (begun, barred, seen) = (self.begun + 1, self.barred, self.seen);
            *self = Constancy { begun, barred, seen, ..Constancy::default() };
        }
    }

    /// So many pairs are drawn more seldom or not at all from now on. Whether that is as it was.
    fn draws_as_before(&mut self, barred: u64) -> bool {
        if self.barred == barred {
            return true;
        }
        // A mean against which nothing was held was no test.
        self.begun += u64::from(EPISODES_MIN <= self.drawn.count);
        (self.drawn, self.barred) = (Footing::default(), barred);
        false
    }

    /// Takes in a return of what acts, or of an episode that was drawn throughout. Returns differ by this much at least, and so
    /// many alarms were raised before.
    fn observe(&mut self, is_drawn: bool, total: i64, least: i64, serial: u64, alarms: u64) -> Symptom {
        let before = Before { begun: self.begun, alarms };
        let (low, high) = self.seen.unwrap_or((total, total));
        let (low, high) = (low.min(total), high.max(total));
        self.seen = Some((low, high));
        let range = high.saturating_sub(low).max(least);
        match is_drawn {
            true => self.drawn.observe(total.saturating_neg(), range, serial, before),
            false => self.acting.observe(total, range, serial, before),
        }
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        self.acting.encode(writer);
        self.drawn.encode(writer);
        writer.u64(self.begun);
        writer.u64(self.barred);
        let (low, high) = self.seen.unwrap_or((0, -1));
        writer.i64(low);
        writer.i64(high);
    }

    /// Reads canonical bytes back, which may not say yet from how many pairs is drawn.
    pub(super) fn decode(says_barred: bool, reader: &mut Reader<'_>) -> Result<Constancy, DecodeError> {
        let (acting, drawn) = (Footing::decode(reader)?, Footing::decode(reader)?);
        let malformed = reader.error("more means than any run can have begun, or none of any return");
        let begun = reader.u64()?;
        let barred = if says_barred { reader.u64()? } else { 0 };
        let (low, high) = (reader.i64()?, reader.i64()?);
        let seen = (low <= high).then_some((low, high));
        let is_said = seen.is_some() || (low, high) == (0, -1) && acting.count + drawn.count == 0;
        let fits = begun < COUNT_MAX && barred < COUNT_MAX && is_said;
        if fits { Ok(Constancy { acting, drawn, begun, barred, seen }) } else { Err(malformed) }
    }
}

impl Learner {
    /// Holds the return of an episode against what was earned like this before; since which episode the world has changed, if it
    /// has. Where the watch has raised its alarm too, half the evidence is enough: it is not the patch that has failed.
    pub(super) fn changed_since(&mut self, turn: Turn, episode: &Episode, is_alarmed: bool) -> Option<u64> {
        let family = self.machinery.family();
        // Drift follows plain actions where their own reward is all there is, and an adversary must not make a rule forget.
        let is_drift = self.shape.horizon == 1 && self.acts_plainly();
        let is_fixed = family.held().acting_rule() == Adaptation::Fixed && !family.weighs_by_chance();
        if !self.settings.config.alarms || is_drift || !is_fixed {
            return None;
        }
        let is_told = episode.steps.iter().all(|step| step.is_told());
        if !is_told || ![Turn::HELD, Turn::DRAW].contains(&turn) {
            return None;
        }
        let least = i64::from(self.shape.reward_max) - i64::from(self.shape.reward_min);
        let is_drawn = turn == Turn::DRAW;
        // An episode in which something was suspected for the first time was drawn partly as before.
        if is_drawn && !self.constancy.draws_as_before(family.barred()) {
            return None;
        }
        let alarms = self.tally.changed;
        match self.constancy.observe(is_drawn, episode.total(), least, episode.serial, alarms) {
            Symptom::Changed(since) => Some(since),
            Symptom::Falling(since) if is_alarmed => Some(since),
            _ => None,
        }
    }

    /// The world has changed with this episode: what was seen before says nothing about it, nor does what followed from that.
    pub(super) fn meet_change(&mut self, since: u64) {
        self.history.link("bem/chain/changed", &since.to_le_bytes());
        self.tally.changed += 1;
        self.experience.forget_before(since);
        self.count_anew(true);
        self.candidates.forget();
        self.candidates.hurry(self.tally.steps);
        self.exploration.reopen_widely();
        self.standing.outlive(self.tally.steps);
        self.constancy.begin_anew();
        self.drift = Drift::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    /// Returns of 1,000 or nothing with these chances in percent in turn; the episode of the first alarm and since when.
    fn first_alarm(seed: u64, is_drawn: bool, chances: &[(u64, u64)]) -> Option<(u64, u64)> {
        let (mut constancy, mut prng) = (Constancy::default(), Prng::stream(seed, "constancy"));
        let mut serial = 0;
        for (percent, episodes) in chances {
            for _ in 0..*episodes {
                serial += 1;
                let total = 1_000 * i64::from(prng.below(100) < *percent);
                if let Symptom::Changed(since) = constancy.observe(is_drawn, total, 1_000, serial, 0) {
                    return Some((serial, since));
                }
            }
        }
        None
    }

    #[test]
    fn what_acts_and_earns_less_is_noticed_and_so_is_what_is_drawn_and_earns_more() {
        for seed in 0..20 {
            let (noticed, since) = first_alarm(seed, false, &[(100, 5_000), (0, 50)]).unwrap();
            assert!(noticed <= 5_010 && since == 5_001, "{noticed} {since}");
            let (noticed, since) = first_alarm(seed, false, &[(80, 4_000), (50, 1_000)]).unwrap();
            assert!((4_001..4_300).contains(&noticed) && 3_800 <= since, "{noticed} {since}");
            let (noticed, since) = first_alarm(seed, true, &[(30, 1_000), (60, 1_000)]).unwrap();
            assert!((1_001..1_300).contains(&noticed) && 800 <= since, "{noticed} {since}");
        }
        assert_eq!(first_alarm(1, false, &[(50, 1_000), (90, 1_000)]), None);
        assert_eq!(first_alarm(1, true, &[(50, 1_000), (10, 1_000)]), None);
    }

    #[test]
    fn where_nothing_changes_false_alarms_are_rare_however_rarely_something_is_lost() {
        for percent in [1, 10, 50, 90, 99] {
            for is_drawn in [false, true] {
                let alarmed =
                    (0..20).filter(|seed| first_alarm(*seed, is_drawn, &[(percent, 50_000)]).is_some());
                let alarmed = alarmed.count();
                assert_eq!(alarmed, 0, "{alarmed} of 20 runs of 50,000 episodes at {percent} percent");
            }
        }
    }

    #[test]
    fn draws_from_fewer_actions_are_held_against_a_mean_of_their_own() {
        let alarms = |follows: bool| {
            let (mut constancy, mut prng) = (Constancy::default(), Prng::stream(5, "constancy"));
            let alarmed = |serial: &u64| {
                // Every 200 episodes one more pair of ten is left out, so that draws earn more and more.
                let barred = serial / 200;
                if follows && !constancy.draws_as_before(barred) {
                    return false;
                }
                let total = 1_000 * i64::from(prng.below(10) < barred);
                matches!(constancy.observe(true, total, 1_000, *serial, 0), Symptom::Changed(_))
            };
            (0..2_000).filter(alarmed).count()
        };
        assert_eq!(alarms(true), 0);
        assert!(0 < alarms(false), "such draws do earn more and more");
    }

    #[test]
    fn returns_that_hang_together_raise_few_alarms() {
        let alarms = |is_rarer: bool| {
            let (mut constancy, mut prng) = (Constancy::default(), Prng::stream(6, "constancy"));
            let (mut percent, mut alarms) = (70, 0);
            for serial in 0..100_000 {
                if prng.below(200) == 0 {
                    percent = 100 - percent;
                }
                let total = 1_000 * i64::from(prng.below(100) < percent);
                let before = if is_rarer { alarms } else { 0 };
                if let Symptom::Changed(_) = constancy.observe(false, total, 1_000, serial, before) {
                    alarms += 1;
                    constancy.begin_anew();
                }
            }
            alarms
        };
        let (rarer, always) = (alarms(true), alarms(false));
        assert!(2 * rarer < always, "{rarer} of {always}");
    }

    #[test]
    fn bytes_come_back_and_malformed_ones_are_refused() {
        let mut constancy = Constancy::default();
        (0..200).for_each(|serial| {
            constancy.observe(serial % 3 == 0, 10 * (serial % 7) as i64 - 40, 5, serial, 0);
        });
        constancy.begin_anew();
        (200..400).for_each(|serial| {
            constancy.observe(serial % 3 == 0, -20 * (serial % 5) as i64, 5, serial, 0);
        });
        for constancy in [constancy, Constancy::default()] {
            let mut writer = Writer::new();
            constancy.encode(&mut writer);
            let bytes = writer.into_bytes();
            let mut again = Writer::new();
            Constancy::decode(true, &mut Reader::new(&bytes)).unwrap().encode(&mut again);
            assert_eq!(again.into_bytes(), bytes);
            (0..bytes.len())
                .for_each(|cut| assert!(Constancy::decode(true, &mut Reader::new(&bytes[..cut])).is_err()));
        }
    }
}
