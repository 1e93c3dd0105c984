//! What the log says about contexts: where rewards depend on a bit, where they no longer do, and where they have changed.
//!
//! A bit enters only where the log shows, by a test that knows how many bits it looked at, that the reward of some action
//! depends on it. First come bits that tell something everywhere, each tested over all contexts at once; a bit that tells
//! something in many contexts shows sooner that way than in any one of them. Then every context is looked at by itself.
//! What comes out of it is proposed only if the parts also differ in which action pays more: a bit that tells how much there
//! is to get, and not how to get it, is no reason to keep contexts apart. Nothing is changed here: what is found becomes a
//! patch. Clauses: SCC-13, VM-16; decision D-33.

use super::means::{Means, Seen, reward_range};
use bem_base::environment::Shape;
use bem_base::fixed::Fixed;
use bem_evolve::doubt::doubt;
use bem_machine::route::directory::{Directory, RouteInput};
use bem_synth::surprise::{needed, surprise};

/// Buckets at most.
const CONTEXTS_MAX: usize = 256;
/// Sums that one look over all buckets at once may keep: buckets times actions times bits.
const SUMS_MAX: usize = 1 << 22;
/// Bits up to which pairs are tested, and the latest steps they are tested on.
const PAIR_BITS_MAX: usize = 16;
const PAIR_STEPS_MAX: usize = 20_000;
/// Squared differences are kept in these parts of one.
const SCALE: i128 = 1 << 10;
/// The newest steps of a context that count as late: one in this many; and how many there must be.
const LATE_ONE_IN: usize = 4;
const LATE_MIN: usize = 256;

/// Divisions that the log asks for.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    /// The buckets to divide, one after the other, and the bit that divides each.
    pub(crate) cuts: Vec<(u16, Vec<RouteInput>)>,
    /// The directory afterwards.
    pub(crate) after: Directory,
    /// A lower bound of the share of the rewards' variance that the new parts explain together with the action.
    pub(crate) explained: Fixed,
    /// Logged steps it rests on.
    pub(crate) steps: u32,
}

/// A bucket on its way.
struct Open<'e> {
    /// The bucket that it is a part of.
    origin: usize,
    /// Its number in the directory that grows.
    bucket: u16,
    steps: Vec<Seen<'e>>,
}

/// The directory as it grows, with the divisions so far.
struct Growing {
    after: Directory,
    cuts: Vec<(u16, Vec<RouteInput>)>,
}

impl Growing {
    /// Whether the bucket lies on one side of this bit.
    fn tests(&self, bucket: u16, bit: u16) -> bool {
        let depends_on = self.after.subcube(bucket).depends_on;
        (0..self.after.depth()).any(|position| {
            depends_on >> position & 1 == 1 && self.after.parity(position).eq([RouteInput::State(bit)])
        })
    }

    /// The two halves; a bit that was tested before, or is one too many, divides nothing.
    fn split<'e>(&mut self, open: Open<'e>, bit: u16) -> Vec<Open<'e>> {
        let by = vec![RouteInput::State(bit)];
        let Ok(child) = self.after.split(open.bucket, &by) else { return vec![open] };
        let Open { origin, bucket, steps } = open;
        self.cuts.push((bucket, by));
        let (high, low): (Vec<Seen<'e>>, Vec<Seen<'e>>) =
            steps.into_iter().partition(|(_, step)| step.observation.get(usize::from(bit)));
        vec![Open { origin, bucket, steps: low }, Open { origin, bucket: child, steps: high }]
    }
}

/// The buckets divided further, where rewards depend on what tells the parts apart.
#[doc(alias = "SPLIT")]
pub(crate) fn divide(
    directory: &Directory,
    counted: Vec<Vec<Seen<'_>>>,
    (observation_bits, actions): (u16, u16),
    odds: u128,
) -> Option<Growth> {
    let bits = usize::from(observation_bits);
    let steps: usize = counted.iter().map(Vec::len).sum();
    let mut growing = Growing { after: directory.clone(), cuts: Vec::new() };
    let open_of = |(origin, steps)| Open { origin, bucket: origin as u16, steps };
    let mut open: Vec<Open<'_>> = counted.into_iter().enumerate().map(open_of).collect();
    while let Some(bit) = shared_bit(&growing, &open, (bits, actions), odds) {
        let before = growing.cuts.len();
        open = open.into_iter().flat_map(|leaf| growing.split(leaf, bit)).collect();
        if growing.cuts.len() == before {
            break;
        }
    }
    let mut done = Vec::new();
    while let Some(leaf) = open.pop() {
        // Every bucket there is now may be looked at by itself.
        let odds = odds.saturating_mul(growing.after.bucket_count() as u128);
        let look = || {
            telling_bit(&leaf.steps, bits, actions, odds)
                .or_else(|| telling_pair(&leaf.steps, bits, actions, odds))
        };
        let is_full = CONTEXTS_MAX <= growing.after.bucket_count();
        match (!is_full).then(look).flatten() {
            Some(bit) => {
                let mut halves = growing.split(leaf, bit);
                if halves.len() == 1 {
                    done.append(&mut halves);
                } else {
                    open.append(&mut halves);
                }
            }
            None => done.push(leaf),
        }
    }
    let Growing { after, cuts } = growing;
    if cuts.is_empty() {
        return None;
    }
    // Evidence is what is explained in units of the variance that is left, of which every step has one.
    let surplus = interaction(&done, directory.bucket_count(), usize::from(actions)) / SCALE;
    let surplus = surplus.min(1 << 40) as i64;
    (0 < surplus).then(|| Growth {
        explained: Fixed::from_ratio(surplus, surplus + steps as i64),
        steps: steps as u32,
        cuts,
        after,
    })
}

/// How far parts of a context differ in which action pays more, beyond what chance brings: what is left of the mean of every
/// part and action when what the part and what the action explain alone is taken off.
fn interaction(parts: &[Open<'_>], origins: usize, actions: usize) -> i128 {
    let (mut evidence, mut freedom) = (0i128, 0i128);
    for origin in 0..origins {
        let parts: Vec<&Open<'_>> = parts.iter().filter(|part| part.origin == origin).collect();
        if parts.len() < 2 {
            continue;
        }
        let cells_of = |part: &&Open<'_>| {
            let mut cells = vec![Cell::default(); actions];
            part.steps.iter().for_each(|(_, step)| cells[usize::from(step.action)].add(step.reward));
            cells
        };
        let (found, free) = interaction_within(&parts.iter().map(cells_of).collect::<Vec<_>>());
        (evidence, freedom) = (evidence + found, freedom + free);
    }
    let deviation = (2 * freedom * SCALE * SCALE).unsigned_abs().isqrt() as i128;
    evidence - freedom * SCALE - 3 * deviation - 6 * SCALE
}

/// The same for the parts of one context: evidence, and its mean under chance.
fn interaction_within(parts: &[Vec<Cell>]) -> (i128, i128) {
    const FRACTION: u32 = 16;
    let total = |count: i64, sum: i128| if count == 0 { 0 } else { sum / i128::from(count) };
    let scaled = |cell: &Cell| i128::from(cell.sum) << FRACTION;
    let actions = parts[0].len();
    let (mut by_action, mut by_part) = (vec![0i128; actions], vec![0i128; parts.len()]);
    // Each in turn explains what the other leaves; three rounds are enough where actions are drawn nearly evenly.
    for _ in 0..3 {
        for (effect, cells) in by_part.iter_mut().zip(parts) {
            let left = cells
                .iter()
                .zip(&by_action)
                .map(|(cell, other)| scaled(cell) - i128::from(cell.count) * other);
            *effect = total(cells.iter().map(|cell| cell.count).sum(), left.sum());
        }
        for (action, effect) in by_action.iter_mut().enumerate() {
            let column = || parts.iter().map(|cells| &cells[action]);
            let left =
                column().zip(&by_part).map(|(cell, other)| scaled(cell) - i128::from(cell.count) * other);
            *effect = total(column().map(|cell| cell.count).sum(), left.sum());
        }
    }
    let known = |cells: &'_ [Cell]| -> Vec<(usize, Cell)> {
        cells.iter().copied().enumerate().filter(|(_, cell)| 3 <= cell.count).collect()
    };
    // How far rewards of one part and action are spread, and over how many steps that is known.
    let spread = |cells: &[Cell]| {
        let squares = |cell: &Cell| cell.squares - i128::from(cell.sum).pow(2) / i128::from(cell.count);
        let known = known(cells);
        let count: i128 = known.iter().map(|(_, cell)| i128::from(cell.count) - 1).sum();
        (known.iter().map(|(_, cell)| squares(cell)).sum::<i128>(), count)
    };
    let all = parts.iter().map(|cells| spread(cells));
    let (squares, count) = all.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    let common = squares / count.max(1);
    let (mut evidence, mut tested, mut known_parts) = (0i128, 0i128, 0i128);
    let mut is_tried = vec![false; actions];
    for (cells, part) in parts.iter().zip(&by_part) {
        // A part in which nothing varies is measured by the others: it takes over what the fit leaves of their chance.
        let (squares, count) = spread(cells);
        let variance = (squares / count.max(1)).max(common) + 1;
        let known = known(cells);
        for (action, cell) in &known {
            let left = (scaled(cell) / i128::from(cell.count) - part - by_action[*action]) >> (FRACTION / 2);
            evidence += ((i128::from(cell.count) * left * left) >> FRACTION) * SCALE / variance;
            is_tried[*action] = true;
        }
        tested += known.len() as i128;
        known_parts += i128::from(!known.is_empty());
    }
    let tried = is_tried.iter().filter(|tried| **tried).count() as i128;
    (evidence, (tested - known_parts - tried + 1).max(0))
}

/// Pairs of sides that choose the same, as the caller knows, and of whose division the log no longer shows any trace.
#[doc(alias = "MERGE")]
pub(crate) fn idle_divisions(
    directory: &Directory,
    is_same: impl Fn(u16, u16) -> bool,
    counted: &[Vec<Seen<'_>>],
    actions: u16,
) -> Vec<(u16, u16)> {
    let is_idle = |(even, odd): &(u16, u16)| {
        is_same(*even, *odd)
            && !tells_anything(&counted[usize::from(*even)], &counted[usize::from(*odd)], actions)
    };
    directory.siblings().into_iter().filter(is_idle).collect()
}

/// Whether rewards of the two sides differ by more than chance does on average.
fn tells_anything(low: &[Seen<'_>], high: &[Seen<'_>], actions: u16) -> bool {
    let mut cells = vec![[Cell::default(); 2]; usize::from(actions)];
    for (side, steps) in [low, high].into_iter().enumerate() {
        steps.iter().for_each(|(_, step)| cells[usize::from(step.action)][side].add(step.reward));
    }
    let (mut evidence, mut tested) = (0i128, 0i128);
    for [low, high] in cells.iter().filter(|[low, high]| 3 <= low.count && 3 <= high.count) {
        tested += 1;
        evidence += squared_difference(low, high, SCALE);
    }
    // Where too little was seen of a side, nothing speaks against the test that once divided it.
    tested == 0 || tested * SCALE < evidence
}

/// A bucket whose late steps say that another action is the best one now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    /// The bucket.
    pub(crate) bucket: u16,
    /// The moment of the first late step.
    pub(crate) since: u64,
    /// A lower bound of what the choice loses by trusting all of its steps.
    pub(crate) loss: Fixed,
    /// Late steps that it rests on.
    pub(crate) steps: u32,
}

/// The context that loses most by trusting what came before its late steps.
///
/// Only steps whose action was drawn with equal chance are compared, unless there is nothing to see: whoever acts with more
/// knowledge than the context would make actions look better or worse than they are.
#[doc(alias = "RESET")]
pub(crate) fn forget(shape: &Shape, counted: &[Vec<Seen<'_>>], odds: u128) -> Option<Changed> {
    let (observation_bits, actions, range) = (shape.observation_bits, shape.actions, reward_range(shape));
    let best_actions = Means::of(shape, counted).best_actions();
    let odds = odds.saturating_mul(counted.len() as u128 * u128::from(actions));
    let changed = counted.iter().zip(best_actions).enumerate().filter_map(|(context, (seen, trusted))| {
        let late = &seen[seen.len() - seen.len() / LATE_ONE_IN..];
        let (since, _) = *late.first().filter(|_| LATE_MIN <= late.len())?;
        let mut sums = vec![(0u32, 0i64); usize::from(actions)];
        for (_, step) in late.iter().filter(|(_, step)| step.uniform || observation_bits == 0) {
            let (count, sum) = &mut sums[usize::from(step.action)];
            *count += 1;
            *sum += range.exact_loss(i64::from(step.reward)).to_raw() as i64;
        }
        let mean = |action: usize| Fixed::from_raw(sums[action].1 / i64::from(sums[action].0.max(1)));
        let sure = |action: usize| doubt(sums[action].0, odds);
        let tried = (0..sums.len()).filter(|action| 0 < sums[*action].0);
        let best = tried.min_by_key(|action| (mean(*action).plus(sure(*action)), *action))?;
        let trusted = usize::from(trusted);
        let loss = mean(trusted).minus(sure(trusted)).minus(mean(best)).minus(sure(best));
        let steps = late.len() as u32;
        (0 < sums[trusted].0 && Fixed::ZERO < loss).then_some(Changed {
            bucket: context as u16,
            since,
            loss,
            steps,
        })
    });
    changed.max_by_key(|changed| (changed.loss, core::cmp::Reverse(changed.bucket)))
}

/// Sums of one action on one side of a bit.
#[derive(Clone, Copy, Default)]
struct Cell {
    count: i64,
    sum: i64,
    squares: i128,
}

impl Cell {
    fn add(&mut self, reward: i32) {
        self.count += 1;
        self.sum += i64::from(reward);
        self.squares += i128::from(reward).pow(2);
    }

    /// The rest, and a part with this count and sum. Squares are not told apart: the pooled variance needs only all.
    fn parted(&self, count: i64, sum: i64) -> (Cell, Cell) {
        let rest = Cell { count: self.count - count, sum: self.sum - sum, squares: self.squares };
        (rest, Cell { count, sum, squares: 0 })
    }

    fn plus(&self, other: &Cell) -> Cell {
        let (count, sum) = (self.count + other.count, self.sum + other.sum);
        Cell { count, sum, squares: self.squares + other.squares }
    }
}

/// The bit on which rewards depend most over all contexts at once, beyond chance.
fn shared_bit(
    growing: &Growing,
    open: &[Open<'_>],
    (bits, actions): (usize, u16),
    odds: u128,
) -> Option<u16> {
    let actions = usize::from(actions);
    let bits = bits.min(SUMS_MAX / (open.len() * actions));
    if bits == 0 || CONTEXTS_MAX < 2 * open.len() {
        return None;
    }
    let mut wholes = vec![Cell::default(); open.len() * actions];
    let mut halves = vec![(0i64, 0i64); open.len() * actions * bits];
    for (context, leaf) in open.iter().enumerate() {
        for (_, step) in &leaf.steps {
            let place = context * actions + usize::from(step.action);
            wholes[place].add(step.reward);
            for (first, word) in (0..bits).step_by(64).zip(step.observation.0) {
                let mut word = word & (u64::MAX >> (64 - (bits - first).min(64)));
                while word != 0 {
                    let half = &mut halves[place * bits + first + word.trailing_zeros() as usize];
                    *half = (half.0 + 1, half.1 + i64::from(step.reward));
                    word &= word - 1;
                }
            }
        }
    }
    let surprise = |bit: usize| {
        let halves = wholes.iter().enumerate().map(|(place, whole)| (whole, halves[place * bits + bit]));
        surprise_of(halves.map(|(whole, (count, sum))| whole.parted(count, sum)), 4)
    };
    // A bit that is tested on the way to every context divides none.
    let free = (0..bits).filter(|bit| open.iter().any(|leaf| !growing.tests(leaf.bucket, *bit as u16)));
    let best =
        free.map(|bit| (surprise(bit), bit)).max_by_key(|(surprise, bit)| (rank(*surprise), bits - bit));
    best.filter(|(surprise, _)| needed(odds, bits) < *surprise).map(|(_, bit)| bit as u16)
}

/// What bits are compared by: what differs by less than this is rounding, which depends on the unit of rewards.
fn rank(surprise: Fixed) -> i64 {
    surprise.to_raw() >> 24
}

/// How surprising the squared differences of parts are, those aside of which one side has few steps.
fn surprise_of(parts: impl Iterator<Item = (Cell, Cell)>, count_min: i64) -> Fixed {
    let (mut evidence, mut tested, mut excess) = (0i128, 0i128, 0i128);
    for (low, high) in parts.filter(|(low, high)| count_min <= low.count && count_min <= high.count) {
        let count = i128::from(low.count + high.count);
        tested += 1;
        // With both counts fixed, the mean of a squared difference is a little above one.
        excess += SCALE * count / (count - 1) - SCALE;
        evidence += squared_difference(&low, &high, SCALE);
    }
    if tested == 0 { Fixed::ZERO } else { surprise(evidence - excess, SCALE, tested) }
}

/// The bit on which rewards depend most, if the dependence is beyond chance for as many bits as were tried.
///
/// For every action the two means are compared in units of their standard error; the squares add up to about
/// one per action when the bit tells nothing.
fn telling_bit(steps: &[Seen<'_>], bits: usize, actions: u16, odds: u128) -> Option<u16> {
    if steps.len() < 8 * usize::from(actions).min(16) {
        return None;
    }
    let surprise = |bit: usize| {
        let mut cells = vec![(Cell::default(), Cell::default()); usize::from(actions)];
        for (_, step) in steps {
            let (low, high) = &mut cells[usize::from(step.action)];
            if step.observation.get(bit) { high } else { low }.add(step.reward);
        }
        surprise_of(cells.into_iter(), 3)
    };
    let best =
        (0..bits).map(|bit| (surprise(bit), bit)).max_by_key(|(surprise, bit)| (rank(*surprise), bits - bit));
    best.filter(|(surprise, _)| needed(odds, bits) < *surprise).map(|(_, bit)| bit as u16)
}

/// The first of two bits on which rewards depend together, where neither tells anything alone.
fn telling_pair(steps: &[Seen<'_>], bits: usize, actions: u16, odds: u128) -> Option<u16> {
    if PAIR_BITS_MAX < bits || steps.len() < 16 * usize::from(actions).min(16) {
        return None;
    }
    let latest = &steps[steps.len().saturating_sub(PAIR_STEPS_MAX)..];
    let surprise = |first: usize, second: usize| {
        let mut cells = vec![[Cell::default(); 4]; usize::from(actions)];
        for (_, step) in latest {
            let seen = &step.observation;
            let group = usize::from(seen.get(first)) + 2 * usize::from(seen.get(second));
            cells[usize::from(step.action)][group].add(step.reward);
        }
        let known = cells.iter().filter(|cells| cells.iter().all(|cell| 3 <= cell.count));
        // Neither bit alone: only the two diagonals are compared.
        surprise_of(known.map(|[a, b, c, d]| (a.plus(d), b.plus(c))), 3)
    };
    let pairs = (0..bits).flat_map(|first| (first + 1..bits).map(move |second| (first, second)));
    let best = pairs
        .map(|(first, second)| (surprise(first, second), first))
        .max_by_key(|(surprise, first)| (rank(*surprise), bits - first));
    best.filter(|(surprise, _)| needed(odds, bits * bits) < *surprise).map(|(_, bit)| bit as u16)
}

/// The squared difference of two means over its variance, times `scale`.
fn squared_difference(low: &Cell, high: &Cell, scale: i128) -> i128 {
    let (low_count, high_count) = (i128::from(low.count), i128::from(high.count));
    // Both means over the common denominator; the pooled variance has one milli-unit squared added, so that
    // rewards without any spread do not divide by zero.
    let difference = i128::from(high.sum) * low_count - i128::from(low.sum) * high_count;
    let count = low_count + high_count;
    let sum = i128::from(low.sum + high.sum);
    let pooled = (low.squares + high.squares) * count - sum * sum;
    let variance = pooled / (count * count) + 1;
    // difference^2 / (n0 n1)^2 / (variance (1/n0 + 1/n1)) = difference^2 / (n0 n1 variance count)
    difference * difference / (low_count * high_count * count).max(1) * scale / variance
}
