//! What plain actions brought in each bucket, by the log: the best action of every bucket, and whether the best actions are
//! better than those that are held.
//!
//! The lowest of many means is often the luckiest, so that what one half of the log chooses is judged by the other half.
//! Must not know how buckets came to be. Clauses: VM-9, VM-16.

use crate::learner::exploration::EXPLAINED_MIN;
use bem_base::environment::Shape;
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_evolve::verify::RETURN_TOLERANCE;
use bem_learn::index::{ArmStatistics, Parameters};
use bem_learn::loss::PayoffRange;
use bem_learn::wide::WideBucket;
use bem_machine::family::Family;
use bem_synth::experience::{Episode, Step};

/// A logged step with its moment.
pub(crate) type Seen<'e> = (u64, &'e Step);

/// Bits of a moment that say which step of its episode it is.
const PLACE_BITS: u32 = 20;

/// When a step was: the serial of its episode and its place in it, in the order of time. The log has gaps, so that counting its
/// steps does not tell.
pub(crate) fn moment(serial: u64, place: usize) -> u64 {
    serial << PLACE_BITS | (place as u64).min((1 << PLACE_BITS) - 1)
}

/// A moment in words.
pub(crate) fn moment_words(moment: u64) -> String {
    let (serial, place) = (moment >> PLACE_BITS, moment & ((1 << PLACE_BITS) - 1));
    if place == 0 { format!("episode {serial}") } else { format!("step {place} of episode {serial}") }
}

/// The logged steps of every bucket that count, oldest first.
pub(crate) fn counted<'e>(family: &Family, episodes: &[&'e Episode]) -> Vec<Vec<Seen<'e>>> {
    let mut buckets = vec![Vec::new(); family.directory().bucket_count()];
    for episode in episodes {
        for (place, step) in episode.steps.iter().enumerate() {
            let (bucket, moment) =
                (usize::from(family.bucket_of(&step.observation)), moment(episode.serial, place));
            if family.since()[bucket] <= moment {
                buckets[bucket].push((moment, step));
            }
        }
    }
    buckets
}

/// The standard errors by which new actions must be better than those that are held. One is enough, because the judge has
/// had no part in the choice.
const GAIN_ERRORS: i128 = 1;
/// The same where the judge is who has chosen: the best of many means is often the luckiest.
const UNJUDGED_ERRORS: i128 = 3;
/// The standard errors by which it must be out of the question that they are worse by more than the tolerance, a share of
/// what the best actions are worth more than chance.
const DOUBT_ERRORS: i128 = 3;

/// The mean loss, in parts of [`FRACTION_BITS`].
fn mean_loss(arm: &ArmStatistics) -> i128 {
    i128::from(arm.loss_sum) / i128::from(arm.visits)
}

/// The squared standard error of the mean loss, in parts of [`FRACTION_BITS`]. The imagined visit tells nothing: its loss
/// might have been any.
fn squared_error(arm: &ArmStatistics) -> i128 {
    let visits = i128::from(arm.visits);
    let mean = mean_loss(arm);
    let variance = i128::from(arm.loss_sq_sum) / visits - ((mean * mean) >> FRACTION_BITS);
    let imagined = i128::from(Fixed::ONE.to_raw()) / 4;
    (variance.max(0) + imagined / visits) / visits
}

/// The standard errors within which it is open whether an action is better than another.
const OPEN_ERRORS: i128 = 2;

/// A way to choose actions by means, one for every bucket, beside those that are held.
type Choose = fn(&Means, &[u16]) -> Vec<u16>;

/// Means of every action in every bucket.
#[derive(Clone, Debug)]
pub(crate) struct Means {
    buckets: Vec<WideBucket>,
}

impl Means {
    /// Those of these logged steps.
    pub(crate) fn of(shape: &Shape, counted: &[Vec<Seen<'_>>]) -> Means {
        let range = reward_range(shape);
        let blank =
            WideBucket::new(&Parameters { change: None, ..Parameters::DEFAULT }, usize::from(shape.actions));
        let bucket = |steps: &Vec<Seen<'_>>| {
            let mut bucket = blank.clone();
            for (_, step) in steps {
                bucket.record(usize::from(step.action), range.exact_loss(i64::from(step.reward)));
            }
            bucket
        };
        Means { buckets: counted.iter().map(bucket).collect() }
    }

    /// Those that the machine itself has counted.
    pub(crate) fn counted_by(buckets: &[WideBucket]) -> Means {
        Means { buckets: buckets.to_vec() }
    }

    /// Steps that were counted.
    pub(crate) fn steps(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.selections_total() as usize).sum()
    }

    /// The action with the lowest mean loss in every bucket; the imagined visit at one half keeps untried ones in the middle.
    pub(crate) fn best_actions(&self) -> Vec<u16> {
        let best = |bucket: &WideBucket| {
            let means = bucket.arms().iter().map(mean_loss).enumerate();
            means.min_by_key(|(action, mean)| (*mean, *action)).map_or(0, |(action, _)| action as u16)
        };
        self.buckets.iter().map(best).collect()
    }

    /// The best action of every bucket in which it is better than the held one by so many standard errors; the held one
    /// elsewhere. Where two actions earn nearly the same, the better one is a matter of luck, and changing them in many
    /// buckets would hide what is gained in one.
    pub(crate) fn clearly_better_actions(&self, held: &[u16], errors: i128) -> Vec<u16> {
        let best = self.best_actions();
        let choose = |(bucket, (best, held)): (&WideBucket, (&u16, &u16))| {
            let [ours, theirs] = [best, held].map(|action| &bucket.arms()[usize::from(*action)]);
            let (gain, error) =
                (mean_loss(theirs) - mean_loss(ours), squared_error(ours) + squared_error(theirs));
            if errors * errors * (error << FRACTION_BITS) < gain * gain { *best } else { *held }
        };
        self.buckets.iter().zip(best.iter().zip(held)).map(choose).collect()
    }

    /// The same by what the machine itself has counted over many more steps than the log holds. Nobody else can judge what these
    /// counts choose, so that they must be surer.
    pub(crate) fn surely_better_actions(&self, held: &[u16]) -> Option<(Vec<u16>, Fixed)> {
        let better = self.clearly_better_actions(held, UNJUDGED_ERRORS);
        let gain = self.mean_gain(&better, held);
        (better != held).then_some((better, gain))
    }

    /// Better actions than those that are held, and how much more they earn as a share of the range of losses, if that is more
    /// than chance and they are surely not worse: the best of every bucket, or else the clearly better ones.
    pub(crate) fn better_actions(
        held: &[u16],
        shape: &Shape,
        counted: &[Vec<Seen<'_>>],
    ) -> Option<(Vec<u16>, Fixed)> {
        let all = Means::of(shape, counted);
        let choices: [Choose; 2] =
            [|means, _| means.best_actions(), |means, held| means.clearly_better_actions(held, GAIN_ERRORS)];
        choices.into_iter().find_map(|choose| {
            let better = choose(&all, held);
            let gain = (better != held).then(|| Means::gain_over(held, choose, shape, counted))??;
            Some((better, gain))
        })
    }

    /// How much more the actions that are chosen this way earn than those that are held, if that is more than chance and they
    /// are surely not worse.
    fn gain_over(held: &[u16], choose: Choose, shape: &Shape, counted: &[Vec<Seen<'_>>]) -> Option<Fixed> {
        let half = |parity: usize| Means::of(shape, &every_other(counted, parity));
        let (even, odd) = (half(0), half(1));
        let judged = |judge: &Means, chooser: &Means| {
            let best = choose(chooser, held);
            (judge.gain(&best, held), judge.worth(&best))
        };
        let ((by_odd, odd_worth), (by_even, even_worth)) = (judged(&odd, &even), judged(&even, &odd));
        let (gain, error) = (by_odd.0 + by_even.0, by_odd.1 + by_even.1);
        let worth = (odd_worth + even_worth).max(0);
        let tolerated = (worth * i128::from(RETURN_TOLERANCE.to_raw())) >> FRACTION_BITS;
        let exceeds = |amount: i128, errors: i128| {
            0 < amount && errors * errors * (error << FRACTION_BITS) < amount * amount
        };
        let steps: usize = counted.iter().map(Vec::len).sum();
        (exceeds(gain, GAIN_ERRORS) && exceeds(gain + tolerated, DOUBT_ERRORS))
            .then(|| Fixed::from_raw((gain / (steps as i128).max(1)) as i64))
    }

    /// How much less these actions lose here than those, by all means, as a share of the range of losses.
    pub(crate) fn mean_gain(&self, actions: &[u16], others: &[u16]) -> Fixed {
        let steps: i128 = self.buckets.iter().map(|bucket| i128::from(bucket.selections_total())).sum();
        Fixed::from_raw((self.gain(actions, others).0 / steps.max(1)) as i64)
    }

    /// Whether it is open that others earn so much more than these actions, over all buckets together, that it matters.
    pub(crate) fn leave_open(&self, actions: &[u16]) -> bool {
        let one = |(bucket, action): (&WideBucket, &u16)| {
            let held = &bucket.arms()[usize::from(*action)];
            let may_gain = |arm: &ArmStatistics| {
                let error = ((squared_error(arm) + squared_error(held)) << FRACTION_BITS).isqrt();
                mean_loss(held) - mean_loss(arm) + OPEN_ERRORS * error
            };
            let others = bucket.arms().iter().enumerate().filter(|(arm, _)| *arm != usize::from(*action));
            let most = others.map(|(_, arm)| may_gain(arm)).max().unwrap_or(0);
            i128::from(bucket.selections_total()) * most.max(0)
        };
        let left: i128 = self.buckets.iter().zip(actions).map(one).sum();
        (self.worth(actions).max(0) * i128::from(EXPLAINED_MIN.to_raw())) >> FRACTION_BITS < left
    }

    /// How much less these actions lose here than the mean of all, over all buckets together.
    fn worth(&self, actions: &[u16]) -> i128 {
        let one = |(bucket, action): (&WideBucket, &u16)| {
            let sum: i128 = bucket.arms().iter().map(mean_loss).sum();
            let mean = sum / bucket.arms().len() as i128;
            i128::from(bucket.selections_total()) * (mean - mean_loss(&bucket.arms()[usize::from(*action)]))
        };
        self.buckets.iter().zip(actions).map(one).sum()
    }

    /// How much less these actions lose here than those, over all buckets together, and the squared error of that; both
    /// grow with the number of steps.
    fn gain(&self, actions: &[u16], others: &[u16]) -> (i128, i128) {
        let compare = |(bucket, (action, other)): (&WideBucket, (&u16, &u16))| {
            let [ours, theirs] = [action, other].map(|action| &bucket.arms()[usize::from(*action)]);
            let steps = i128::from(if action == other { 0 } else { bucket.selections_total() });
            let error = squared_error(ours) + squared_error(theirs);
            (steps * (mean_loss(theirs) - mean_loss(ours)), steps * steps * error)
        };
        let parts = self.buckets.iter().zip(actions.iter().zip(others)).map(compare);
        parts.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    }
}

/// The range that losses are measured in.
pub(crate) fn reward_range(shape: &Shape) -> PayoffRange {
    let (low, high) = (i64::from(shape.reward_min), i64::from(shape.reward_max));
    PayoffRange::new(low, high.max(low + 1)).expect("rewards of 32 bits lie within the span")
}

/// Every other step, from the first or the second on.
fn every_other<'e>(counted: &[Vec<Seen<'e>>], parity: usize) -> Vec<Vec<Seen<'e>>> {
    let of = |steps: &Vec<Seen<'e>>| steps.iter().skip(parity).step_by(2).copied().collect();
    counted.iter().map(of).collect()
}
