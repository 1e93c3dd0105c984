//! A floor under what is earned while it is learned: whatever is tried is paid from what was gained.
//!
//! An episode that is not the baseline's may begin only where everything earned so far would reach the floor even if the
//! episode brought the least that is possible. The floor is as many times the baseline's mean return, less the part of it that
//! may be risked, as there were episodes. The mean is taken from above: an empirical Bernstein bound over the baseline's own
//! episodes, looked at ever more rarely, with error chances that add up to one in twenty. In all other episodes the baseline
//! acts, lent to the machine like a plan. Clauses: VM-16, SCC-8; decision D-90.

use crate::codec::stays_in_range;
use crate::start::Baseline;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Shape};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_machine::turn::Plan;
use bem_synth::experience::Step;
use bem_synth::policy::PolicyState;

/// The chance that the baseline's mean is ever above its bound is one in this many.
const ERROR_ONE_IN: u64 = 20;
/// Looks are this part of the baseline's episodes apart.
const LOOKS_APART: u64 = 8;
/// Bounds have this many bits below a milli-unit.
const BITS: u32 = 8;
/// More episodes or milli-units than any run has.
const COUNT_MAX: u64 = 1 << 48;

/// What was earned, and what may be risked of it.
#[derive(Clone, Debug)]
pub(super) struct Floor {
    baseline: Baseline,
    /// Episodes of everybody, and the sum of their returns in milli-units.
    episodes: u64,
    earned: i128,
    own: Own,
    /// The baseline at work, and how many steps of the episode it has seen.
    state: PolicyState,
    seen: usize,
}

/// What the baseline earned by itself. Deviations are from its first return, so that what never changes has no variance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Own {
    episodes: u64,
    first: i64,
    sum: i128,
    squares: i128,
    looks: u64,
    next_look: u64,
    /// The mean is at most this, in parts of a milli-unit; nothing before the first look.
    mean_max: Option<i128>,
}

impl Own {
    fn book(&mut self, total: i64, range: i64) {
        if self.episodes == 0 {
            self.first = total;
        }
        let apart = i128::from(total) - i128::from(self.first);
        self.episodes += 1;
        self.sum += apart;
        self.squares = self.squares.saturating_add(apart * apart);
        if self.next_look <= self.episodes && 2 <= self.episodes {
            self.looks += 1;
            self.next_look = self.episodes + self.episodes / LOOKS_APART + 1;
            self.mean_max = Some(self.bound(range));
        }
    }

    /// The mean is at most this, save for the chance of error of this look.
    fn bound(&self, range: i64) -> i128 {
        let count = i128::from(self.episodes);
        let mean = (self.sum << BITS).div_euclid(count) + 1;
        let deviation = self.sum.div_euclid(count);
        let variance = (self.squares.div_euclid(count - 1) + 1)
            .saturating_sub((deviation.abs() - 1).max(0).pow(2).saturating_mul(count) / (count - 1));
        let variance = if self.squares == 0 { 0 } else { variance.max(0) };
        // The error chances of all looks add up to one in twenty.
        let one_in = 2 * ERROR_ONE_IN * self.looks * (self.looks + 1);
        let log = i128::from(Fixed::ln_count_floor(one_in).to_raw()) + 2;
        let square = ((2 * variance).saturating_mul(log) / count) >> (FRACTION_BITS - 2 * BITS);
        let spread = (square.max(0) as u128).isqrt() as i128 + 1;
        let rare = (7 * i128::from(range).saturating_mul(log) / (3 * (count - 1))) >> (FRACTION_BITS - BITS);
        (i128::from(self.first) << BITS) + mean + spread + rare + 1
    }
}

impl Floor {
    /// Before anything is earned.
    pub(super) fn new(baseline: Baseline) -> Floor {
        let state = PolicyState::new(&baseline.policy);
        Floor { baseline, episodes: 0, earned: 0, own: Own::default(), state, seen: 0 }
    }

    /// Whether an episode may begin that is not the baseline's, while so many others of that kind are under way.
    pub(super) fn affords(&self, shape: &Shape, open: u64) -> bool {
        let Some(mean_max) = self.own.mean_max else { return false };
        let mean_max = mean_max.min(i128::from(shape.return_max) << BITS);
        let risked = mean_max.abs() * i128::from(self.baseline.risk) / 1_000;
        let trying = i128::from(open) + 1;
        let least = self.earned + trying * i128::from(shape.return_min);
        (i128::from(self.episodes) + trying) * (mean_max - risked) <= least << BITS
    }

    /// Books an episode of this return, of the baseline or of somebody else.
    pub(super) fn book(&mut self, shape: &Shape, is_baseline: bool, total: i64) {
        self.episodes += 1;
        self.earned += i128::from(total);
        if is_baseline {
            self.own.book(total, shape.return_max.saturating_sub(shape.return_min));
        }
    }

    /// What the baseline does for what is seen, with these steps of the episode behind it.
    pub(super) fn follow(&mut self, past: &[Step], observation: &Bits) -> Advice {
        let Floor { baseline, state, seen, .. } = self;
        if *seen != past.len() || past.is_empty() {
            state.begin();
            for step in past {
                state.act(&baseline.policy, &step.observation);
            }
        }
        *seen = past.len() + 1;
        Advice(state.act(&baseline.policy, observation))
    }

    /// The same in one of many episodes, which lies behind in these steps.
    pub(super) fn follow_anew(&mut self, past: &[Step], observation: &Bits) -> Advice {
        self.seen = usize::MAX;
        self.follow(past, observation)
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        self.baseline.encode(writer);
        let Own { episodes, first, sum, squares, looks, next_look, mean_max } = &self.own;
        [self.episodes, *episodes, *looks, *next_look].into_iter().for_each(|count| writer.u64(count));
        writer.i64(*first);
        writer.bool(mean_max.is_some());
        for wide in [self.earned, *sum, *squares].into_iter().chain(*mean_max) {
            writer.u64(wide as u64);
            writer.i64((wide >> 64) as i64);
        }
    }

    /// Reads canonical bytes back, for worlds of this shape.
    pub(super) fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<Floor, DecodeError> {
        let malformed = reader.error("a floor that no run can have");
        let baseline = Baseline::decode(reader)?;
        if !baseline.fits(shape) || !stays_in_range(&baseline.policy) {
            return Err(malformed);
        }
        let mut count = || reader.u64();
        let (episodes, own, looks, next_look) = (count()?, count()?, count()?, count()?);
        let first = reader.i64()?;
        let is_bounded = reader.bool()?;
        let mut wide = || Ok(i128::from(reader.u64()?) | i128::from(reader.i64()?) << 64);
        let (earned, sum, squares) = (wide()?, wide()?, wide()?);
        let mean_max = if is_bounded { Some(wide()?) } else { None };
        let is_far = |sum: i128| 1 << 80 < sum.abs();
        let is_malformed = COUNT_MAX <= episodes
            || episodes < own
            || own < looks
            || COUNT_MAX <= next_look
            || is_far(first.into())
            || [earned, sum].into_iter().any(is_far)
            || mean_max.is_some_and(is_far)
            || squares < 0;
        if is_malformed {
            return Err(malformed);
        }
        let own = Own { episodes: own, first, sum, squares, looks, next_look, mean_max };
        Ok(Floor { episodes, earned, own, ..Floor::new(baseline) })
    }
}

/// What the baseline does at one step, as the machine asks for it.
pub(super) struct Advice(u16);

impl Plan for Advice {
    fn advise(&self, _: &Bits) -> Option<u16> {
        Some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;
    use bem_synth::policy::Policy;

    fn shape(low: i64, high: i64) -> Shape {
        Shape {
            observation_bits: 4,
            actions: 2,
            fields: Vec::new(),
            horizon: 1,
            reward_min: low as i32,
            reward_max: high as i32,
            return_min: low,
            return_max: high,
        }
    }

    fn floor(risk: u16) -> Floor {
        Floor::new(Baseline { policy: Policy::constant(2, 1), risk })
    }

    /// Plays episodes: the baseline's pay by chance, all others the least; what was earned, and how many were others'.
    fn play(seed: u64, episodes: u64, shape: &Shape, pay: impl Fn(u64) -> i64) -> (i64, u64) {
        let (mut floor, mut prng) = (floor(50), Prng::stream(seed, "floor"));
        let (mut earned, mut others) = (0, 0);
        for _ in 0..episodes {
            let is_other = floor.affords(shape, 0);
            let total = if is_other { shape.return_min } else { pay(prng.below(1_000)) };
            floor.book(shape, !is_other, total);
            earned += total;
            others += u64::from(is_other);
        }
        (earned, others)
    }

    #[test]
    fn what_is_tried_is_paid_from_what_may_be_risked() {
        // The baseline earns 600 on average, by chance; the worst that can be tried brings nothing.
        let shape = shape(0, 1_000);
        let mut lost = 0;
        for seed in 0..100 {
            let (earned, others) = play(seed, 40_000, &shape, |draw| 1_000 * i64::from(draw < 600));
            assert!(others < 2_100, "{others}");
            assert!(400 < others, "{others}");
            lost += u32::from(earned * 100 < 95 * 600 * 40_000);
        }
        assert!(lost <= 5, "{lost} of 100 runs fell below the floor");
    }

    #[test]
    fn a_baseline_that_costs_may_cost_a_twentieth_more() {
        // What never changes is known after the range has been outweighed: 7 * 2,000 * ln(...) / (3 n) < 20.
        let shape = shape(-2_000, 0);
        let (earned, others) = play(1, 40_000, &shape, |_| -400);
        assert!(-40_000 * 420 <= earned, "{earned}");
        // One try costs 1,600 more, and 20 may be risked in an episode.
        assert!((300..=500).contains(&others), "{others}");
    }

    #[test]
    fn nothing_is_tried_before_the_baseline_is_known_and_open_episodes_count_as_lost() {
        let shape = shape(0, 1_000);
        let mut floor = floor(500);
        assert!(!floor.affords(&shape, 0));
        (0..1_000).for_each(|_| floor.book(&shape, true, 1_000));
        assert!(floor.affords(&shape, 0));
        assert!(floor.affords(&shape, 800));
        assert!(!floor.affords(&shape, 1_100));
    }

    #[test]
    fn the_baseline_remembers_within_an_episode_and_after_a_restart() {
        use bem_circuit::netlist::{Builder, Signal};
        // It does what it saw one step before.
        let policy = Policy::close(Builder::new(5), 4, 2, &[Signal::input(4)], &[Signal::input(0)]).unwrap();
        let step = |bit: u64| Step {
            observation: Bits([bit, 0, 0, 0]),
            action: 0,
            reward: 0,
            done: false,
            bad: false,
            uniform: false,
            propensity: u16::MAX,
        };
        let (mut kept, past) = (Floor::new(Baseline { policy, risk: 50 }), [step(1), step(0), step(1)]);
        let mut writer = Writer::new();
        (0..100).for_each(|turn| kept.book(&shape(0, 1_000), turn % 2 == 0, 10 * turn));
        kept.encode(&mut writer);
        let bytes = writer.into_bytes();
        for cut in 0..bytes.len() {
            assert!(Floor::decode(&shape(0, 1_000), &mut Reader::new(&bytes[..cut])).is_err());
        }
        for place in 0..=past.len() {
            let observation = Bits([1, 0, 0, 0]);
            let mut read = Floor::decode(&shape(0, 1_000), &mut Reader::new(&bytes)).unwrap();
            let wanted = place.checked_sub(1).is_some_and(|last| past[last].observation.get(0));
            assert_eq!(read.follow(&past[..place], &observation).0, u16::from(wanted));
            let seen = past.get(place).map_or(observation, |step| step.observation);
            assert_eq!(kept.follow(&past[..place], &seen).0, u16::from(wanted));
            assert_eq!(read.own, kept.own);
        }
    }
}
