//! Does what follows depend on it? Chi-square tests of homogeneity, summed over all situations.
//!
//! Two questions: whether the successor depends on the action at all, and how much of the past the present
//! observation leaves out. Both compare rows of counts; a surplus beyond what chance brings is the answer.

use crate::experience::Episode;
use bem_base::environment::Bits;
use std::collections::BTreeMap;

/// History that is tried at most.
pub const HISTORY_MAX: usize = 2;
/// A row or column with fewer counts says too little.
const COUNT_MIN: i64 = 6;
/// Fractional bits of a statistic.
const SCALE_BITS: u32 = 10;
/// Situations at most; more are not worth comparing.
const SITUATIONS_MAX: usize = 1 << 16;

/// The end of the episode, or what is seen next.
type Sight<'e> = Option<&'e Bits>;

/// What a step brings: what is seen next, and the reward.
type Brought<'e> = (Sight<'e>, i32);

/// Own actions and what was seen before them, the latest first.
type Past<'e> = Vec<(u16, &'e Bits)>;

/// Everything a step is compared under: what is seen, the action, the past, and whether what follows is known.
type Situation<'e> = (Bits, u16, Past<'e>, bool);

/// Tables of counts: per situation, per row of it, per outcome.
type Tables<S, R, O> = BTreeMap<S, BTreeMap<R, BTreeMap<O, i64>>>;

/// A sum of chi-squares, its degrees of freedom, and the mean it has by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Evidence {
    squares: i128,
    degrees: i128,
    mean: i128,
}

impl Evidence {
    /// Whether the surplus is beyond six deviations, a margin for few degrees, and a share of the mean: many small
    /// counts stray more than the formula says, and a weak dependence can wait for more of them.
    fn is_beyond_chance(&self) -> bool {
        let deviation = ((2 * self.degrees) << (2 * SCALE_BITS)).unsigned_abs().isqrt() as i128;
        let chance = self.mean + self.mean / 8 + 6 * deviation + (12 << SCALE_BITS);
        0 < self.degrees && chance < self.squares
    }

    /// Adds one table; rows and columns with few counts are left out or put together.
    fn add<R: Ord, O: Ord + Copy>(&mut self, rows: &BTreeMap<R, BTreeMap<O, i64>>) {
        let sum = |row: &BTreeMap<O, i64>| row.values().sum::<i64>();
        let kept: Vec<&BTreeMap<O, i64>> = rows.values().filter(|row| COUNT_MIN <= sum(row)).collect();
        if kept.len() < 2 {
            return;
        }
        let mut columns: BTreeMap<O, i64> = BTreeMap::new();
        for row in &kept {
            row.iter().for_each(|(outcome, count)| *columns.entry(*outcome).or_default() += count);
        }
        let total: i64 = columns.values().sum();
        let frequent: Vec<(O, i64)> = columns.into_iter().filter(|(_, count)| COUNT_MIN <= *count).collect();
        let rare = total - frequent.iter().map(|(_, count)| count).sum::<i64>();
        let categories = frequent.len() + usize::from(COUNT_MIN <= rare);
        if categories < 2 {
            return;
        }
        for row in &kept {
            let row_sum = sum(row);
            let mut rest = row_sum;
            for (outcome, column) in &frequent {
                let seen = row.get(outcome).copied().unwrap_or(0);
                rest -= seen;
                self.add_cell(seen, row_sum, *column, total);
            }
            if COUNT_MIN <= rare {
                self.add_cell(rest, row_sum, rare, total);
            }
        }
        let degrees = ((kept.len() - 1) * (categories - 1)) as i128;
        self.degrees += degrees;
        // With fixed margins the mean is a little above the degrees.
        self.mean += (degrees << SCALE_BITS) * i128::from(total) / i128::from(total - 1);
    }

    /// (seen - expected)^2 / expected, with expected = row * column / total.
    fn add_cell(&mut self, seen: i64, row: i64, column: i64, total: i64) {
        let (row, column, total) = (i128::from(row), i128::from(column), i128::from(total));
        let difference = i128::from(seen) * total - row * column;
        self.squares += ((difference * difference) << SCALE_BITS) / (row * column * total);
    }
}

/// What came after a step: the next sight, and whether it is known. When an episode only ran out of steps it is not.
fn after<'e>(horizon: u32, episode: &'e Episode, time: usize) -> (Sight<'e>, bool) {
    let next = episode.steps.get(time + 1).map(|next| &next.observation);
    (next, next.is_some() || time + 1 < horizon as usize)
}

/// Whether what follows depends on the action: what is seen next or whether the episode ends, or what the step after
/// brings. Only actions drawn with equal chance count: others may depend on what the observation does not show.
pub fn is_controlled(horizon: u32, episodes: &[&Episode]) -> bool {
    let mut next_sights: Tables<Bits, u16, Sight<'_>> = BTreeMap::new();
    let mut next_outcomes: Tables<Situation<'_>, u16, Brought<'_>> = BTreeMap::new();
    for episode in episodes {
        for (time, step) in episode.steps.iter().enumerate().filter(|(_, step)| step.uniform) {
            if SITUATIONS_MAX < next_sights.len().max(next_outcomes.len()) {
                return false;
            }
            let (next, known) = after(horizon, episode, time);
            if known {
                let rows = next_sights.entry(step.observation).or_default();
                *rows.entry(step.action).or_default().entry(next).or_default() += 1;
            }
            if let Some(then) = episode.steps.get(time + 1).filter(|then| then.is_told()) {
                let (sight, known) = after(horizon, episode, time + 1);
                let past = vec![(0, &step.observation)];
                let situation = (then.observation, then.action, past, known);
                let rows = next_outcomes.entry(situation).or_default();
                *rows.entry(step.action).or_default().entry((sight, then.reward)).or_default() += 1;
            }
        }
    }
    let (mut sights, mut outcomes) = (Evidence::default(), Evidence::default());
    next_sights.values().for_each(|rows| sights.add(rows));
    next_outcomes.values().for_each(|rows| outcomes.add(rows));
    sights.is_beyond_chance() || outcomes.is_beyond_chance()
}

/// The shortest history, in steps back, beyond which the past tells nothing more about what follows.
pub fn needed_history(horizon: u32, episodes: &[&Episode]) -> usize {
    let mut history = 0;
    while history < HISTORY_MAX && depends_on_more(horizon, episodes, history) {
        history += 1;
    }
    history
}

/// Whether one more step back changes the chances of what follows, given this many steps back and the action.
fn depends_on_more(horizon: u32, episodes: &[&Episode], history: usize) -> bool {
    let mut tables: Tables<Situation<'_>, (u16, &Bits), Brought<'_>> = BTreeMap::new();
    for episode in episodes {
        let later = episode.steps.iter().enumerate().skip(history + 1);
        for (time, step) in later.filter(|(_, step)| step.is_told()) {
            if SITUATIONS_MAX < tables.len() {
                return false;
            }
            let back = |steps: usize| {
                let earlier = &episode.steps[time - steps];
                (earlier.action, &earlier.observation)
            };
            let past: Past<'_> = (1..=history).map(back).collect();
            let (next, known) = after(horizon, episode, time);
            let rows = tables.entry((step.observation, step.action, past, known)).or_default();
            *rows.entry(back(history + 1)).or_default().entry((next, step.reward)).or_default() += 1;
        }
    }
    let mut evidence = Evidence::default();
    tables.values().for_each(|rows| evidence.add(rows));
    evidence.is_beyond_chance()
}
