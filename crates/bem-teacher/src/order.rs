//! Whether an order was measured: do groups of measurements differ at all, and how many of them can be told apart?
//!
//! Both tests look at ranks only, so that a run that never got there may simply count as the largest, and both draw or
//! try permutations instead of trusting a limit law. By the rule of [`Verdict::of`] an estimated order is
//! compared with a measured one only where there is one. Must not know estimates. Clauses: GLE-5.

use bem_base::prng::Prng;

/// Rungs that do not differ at this level, in percent, have no order.
pub const SIGNIFICANCE_PERCENT: u64 = 1;
/// Levels that must be told apart, or the measurement only says where a border is.
pub const LEVELS_MIN: usize = 3;
/// Permutations drawn for [`chance_that_equal`].
const PERMUTATIONS: u64 = 9_999;
/// Two groups are told apart when fewer than one in twenty splits of their measurements are as uneven.
const SPLITS_PER_HUNDRED: u64 = 5;
/// Measurements of a group at most, so that all splits of two groups can be tried.
pub const GROUP_MAX: usize = 10;

/// What may be said about the order of some groups of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The groups differ and fall into so many levels.
    Ordered {
        /// Levels that can be told apart.
        levels: usize,
    },
    /// The groups cannot be told apart, or fall into two levels only.
    Flat,
}

impl Verdict {
    /// Judges groups of one to [`GROUP_MAX`] measurements each.
    pub fn of(groups: &[Vec<u64>]) -> Verdict {
        let (extreme, of) = chance_that_equal(groups);
        let levels = levels(groups);
        let differ = 100 * extreme <= SIGNIFICANCE_PERCENT * of;
        if differ && LEVELS_MIN <= levels { Verdict::Ordered { levels } } else { Verdict::Flat }
    }
}

/// The upper median: with half of the runs censored, a group counts as censored.
pub fn median(group: &[u64]) -> u64 {
    let mut sorted = group.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// The chance that groups of one kind differ as much as these, as (permutations as extreme, all permutations): the
/// Kruskal-Wallis statistic under permutations drawn from a fixed stream.
#[doc(alias = "Kruskal-Wallis")]
pub fn chance_that_equal(groups: &[Vec<u64>]) -> (u64, u64) {
    let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
    assert!(sizes.iter().all(|size| (1..=GROUP_MAX).contains(size)));
    let mut ranks = doubled_ranks(&groups.concat());
    let seen = unevenness(&ranks, &sizes);
    let mut prng = Prng::stream(0, "order/permutations");
    let mut extreme = 1;
    for _ in 0..PERMUTATIONS {
        prng.shuffle(&mut ranks);
        extreme += u64::from(seen <= unevenness(&ranks, &sizes));
    }
    (extreme, PERMUTATIONS + 1)
}

/// The sum over groups of (sum of ranks)^2 / size, times a number that every size divides.
fn unevenness(ranks: &[u64], sizes: &[usize]) -> u128 {
    const DIVISIBLE: u128 = 2_520;
    let mut rest = ranks;
    let mut total = 0;
    for size in sizes {
        let (group, others) = rest.split_at(*size);
        let sum = u128::from(group.iter().sum::<u64>());
        total += sum * sum * (DIVISIBLE / *size as u128);
        rest = others;
    }
    total
}

/// Twice the rank of every value, so that shared ranks stay whole.
fn doubled_ranks(values: &[u64]) -> Vec<u64> {
    let rank = |value: &u64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        (2 * below + equal + 1) as u64
    };
    values.iter().map(rank).collect()
}

/// How many levels the groups fall into: the longest climb over their medians in which each group can be told from
/// the one before.
pub fn levels(groups: &[Vec<u64>]) -> usize {
    let mut order: Vec<&Vec<u64>> = groups.iter().collect();
    order.sort_by_key(|group| median(group));
    let mut climbs: Vec<usize> = Vec::new();
    for (place, group) in order.iter().enumerate() {
        let before = (0..place).filter(|lower| are_told_apart(order[*lower], group));
        climbs.push(1 + before.map(|lower| climbs[lower]).max().unwrap_or(0));
    }
    climbs.into_iter().max().unwrap_or(0)
}

/// The exact rank-sum test over all splits of both groups together.
#[doc(alias = "Mann-Whitney")]
fn are_told_apart(left: &[u64], right: &[u64]) -> bool {
    let ranks = doubled_ranks(&[left, right].concat());
    let total: u64 = ranks.iter().sum();
    // How far the sum of one side is from its share, times the number of all.
    let distance = |sum: u64| (sum * ranks.len() as u64).abs_diff(total * left.len() as u64);
    let seen = distance(ranks[..left.len()].iter().sum());
    let (mut extreme, mut all) = (0, 0);
    for split in 0..1u32 << ranks.len() {
        if split.count_ones() as usize == left.len() {
            let chosen = ranks.iter().enumerate().filter(|(place, _)| split >> place & 1 == 1);
            extreme += u64::from(seen <= distance(chosen.map(|(_, rank)| rank).sum()));
            all += 1;
        }
    }
    100 * extreme < SPLITS_PER_HUNDRED * all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_far_apart_are_ordered_and_equal_ones_are_flat() {
        let steps = |start: u64| (0..5).map(|index| start + index).collect::<Vec<u64>>();
        assert_eq!(Verdict::of(&[steps(10), steps(20), steps(30)]), Verdict::Ordered { levels: 3 });
        assert_eq!(Verdict::of(&[steps(10), steps(10), steps(10), steps(10)]), Verdict::Flat);
        // One run that never got there does not hide the levels above it.
        let outlier = vec![20, 21, 22, 23, 99];
        assert_eq!(levels(&[steps(10), outlier, steps(30), steps(40)]), 3);
        // A border alone is no order.
        assert_eq!(Verdict::of(&[vec![0; 5], vec![0; 5], vec![9; 5], vec![9; 5]]), Verdict::Flat);
    }

    #[test]
    fn the_tests_agree_with_published_small_samples() {
        // Five against five without overlap: 2 of 252 splits; four against four: 2 of 70; three: 2 of 20 is too many.
        assert!(are_told_apart(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]));
        assert!(are_told_apart(&[1, 2, 3, 4], &[6, 7, 8, 9]));
        assert!(!are_told_apart(&[1, 2, 3], &[6, 7, 8]));
        // U = 3 of 25: p = 0.056 in the tables.
        assert!(!are_told_apart(&[1, 2, 3, 5, 9], &[4, 6, 7, 8, 10]));
        // Three groups of three without overlap are the most uneven of 1,680 arrangements, six of which are so.
        let (extreme, of) = chance_that_equal(&[vec![1, 2, 3], vec![4, 5, 6], vec![7, 8, 9]]);
        assert!((10..80).contains(&extreme) && of == 10_000, "{extreme}");
    }

    #[test]
    fn random_groups_are_rarely_called_ordered() {
        let mut prng = Prng::stream(1, "null");
        let mut ordered = 0;
        for _ in 0..100 {
            let groups: Vec<Vec<u64>> = (0..4).map(|_| (0..5).map(|_| prng.below(1_000)).collect()).collect();
            ordered += u32::from(Verdict::of(&groups) != Verdict::Flat);
        }
        assert!(ordered <= 3, "{ordered}");
    }
}
