//! GRPO-lite: which arms were used in episodes that went better than others of the same kind?
//!
//! Episodes with the same task and the same starting bucket form a group; an episode's advantage is its return
//! less the group's mean, over the group's spread. The mean advantage of the episodes that used an arm moves that
//! arm's prior. Must not know what arms, tasks or returns stand for. Clauses: VM-12, D-2.

use bem_base::fixed::Fixed;
use std::collections::BTreeMap;

/// Advantages are held within plus or minus this, so that one lucky episode in a tight group is no verdict.
pub const ADVANTAGE_LIMIT: Fixed = Fixed::from_int(16);

/// How strongly groups move priors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupParameters {
    /// Prior moved per unit of mean advantage.
    #[doc(alias = "eta_grpo")]
    pub rate: Fixed,
    /// The least spread that is divided by; must be positive.
    #[doc(alias = "epsilon")]
    pub spread_min: Fixed,
    /// Episodes that are compared with each other at most; must be positive. Larger groups are cut, oldest first.
    #[doc(alias = "G")]
    pub size_max: usize,
}

/// One finished episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpisodeOutcome {
    /// The task it belongs to.
    pub task: u64,
    /// The bucket of its first context.
    pub first_bucket: u32,
    /// Its return.
    pub payoff: Fixed,
    /// The arms used in it; a repeated arm counts once.
    pub arms: Vec<u32>,
}

/// A movement of one arm's prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorChange {
    /// The task the arm was used in.
    pub task: u64,
    /// The arm.
    pub arm: u32,
    /// What to add to its prior; the bucket holds it within its bounds.
    pub change: Fixed,
}

/// What the episodes say about every arm's prior, in order of task and arm.
///
/// A group of one says nothing: its only episode has advantage zero.
#[doc(alias = "GRPO_LITE_UPDATE")]
pub fn update(parameters: &GroupParameters, episodes: &[EpisodeOutcome]) -> Vec<PriorChange> {
    let mut groups: BTreeMap<(u64, u32), Vec<&EpisodeOutcome>> = BTreeMap::new();
    for episode in episodes {
        groups.entry((episode.task, episode.first_bucket)).or_default().push(episode);
    }
    let mut by_arm: BTreeMap<(u64, u32), (Fixed, u64)> = BTreeMap::new();
    let cut = groups
        .iter()
        .flat_map(|((task, _), group)| group.chunks(parameters.size_max).map(move |chunk| (*task, chunk)));
    for (task, group) in cut {
        let payoffs: Vec<Fixed> = group.iter().map(|episode| episode.payoff).collect();
        for (episode, advantage) in group.iter().zip(advantages(&payoffs, parameters.spread_min)) {
            let mut arms = episode.arms.clone();
            arms.sort_unstable();
            arms.dedup();
            for arm in arms {
                let (sum, count) = by_arm.entry((task, arm)).or_insert((Fixed::ZERO, 0));
                *sum = sum.plus_saturating(advantage);
                *count += 1;
            }
        }
    }
    let change = |sum: Fixed, count| parameters.rate.mul_floor(sum.div_count_floor(count));
    by_arm
        .into_iter()
        .map(|((task, arm), (sum, count))| PriorChange { task, arm, change: change(sum, count) })
        .collect()
}

/// Each payoff less the mean, over the standard deviation but at least `spread_min`, held within the limit.
pub fn advantages(payoffs: &[Fixed], spread_min: Fixed) -> Vec<Fixed> {
    assert!(Fixed::ZERO < spread_min);
    let count = payoffs.len().max(1) as i128;
    let mean = payoffs.iter().map(|payoff| i128::from(payoff.to_raw())).sum::<i128>().div_euclid(count);
    let centred: Vec<i128> = payoffs.iter().map(|payoff| i128::from(payoff.to_raw()) - mean).collect();
    // A centred payoff has at most 65 bits; dropping the low 12 keeps the squares of 2^22 episodes in range.
    let squares: u128 = centred.iter().map(|value| (value.unsigned_abs() >> 12).pow(2)).sum();
    let spread = (((squares / count as u128).isqrt() << 12) as i128).max(i128::from(spread_min.to_raw()));
    let limit = i128::from(ADVANTAGE_LIMIT.to_raw());
    let advantage = |value: &i128| (value << 32).div_euclid(spread).clamp(-limit, limit);
    centred.iter().map(|value| Fixed::from_raw(advantage(value) as i64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: GroupParameters = GroupParameters {
        rate: Fixed::from_ratio(1, 10),
        spread_min: Fixed::from_ratio(1, 1_000),
        size_max: 64,
    };

    fn episode(task: u64, first_bucket: u32, payoff: i32, arms: &[u32]) -> EpisodeOutcome {
        EpisodeOutcome { task, first_bucket, payoff: Fixed::from_int(payoff), arms: arms.to_vec() }
    }

    #[test]
    fn advantages_of_two_episodes_are_plus_and_minus_one() {
        let got = advantages(&[Fixed::from_int(3), Fixed::from_int(1)], PARAMETERS.spread_min);
        assert_eq!(got, [Fixed::ONE, Fixed::ONE.negated()]);
    }

    #[test]
    fn arms_of_better_episodes_gain_and_groups_are_judged_apart() {
        // Task 1 pays more from bucket 7 whatever is done; only the comparison inside a bucket counts.
        let episodes = [
            episode(1, 0, 2, &[4, 4]),
            episode(1, 0, 0, &[5]),
            episode(1, 7, 100, &[5]),
            episode(1, 7, 102, &[4]),
            episode(2, 0, 9, &[4]),
        ];
        let changes = update(&PARAMETERS, &episodes);
        let tenth = PARAMETERS.rate;
        let wanted = [(1, 4, tenth), (1, 5, tenth.negated()), (2, 4, Fixed::ZERO)];
        let wanted = wanted.map(|(task, arm, change)| PriorChange { task, arm, change });
        // Rounding toward negative infinity may cost one unit.
        assert_eq!(changes.len(), wanted.len());
        for (got, want) in changes.iter().zip(wanted) {
            assert_eq!((got.task, got.arm), (want.task, want.arm));
            assert!((got.change.to_raw() - want.change.to_raw()).abs() <= 1, "{got:?} {want:?}");
        }
    }

    #[test]
    fn a_group_larger_than_its_size_is_cut_in_order() {
        // Compared with all others the last two are average; compared with each other they are not.
        let episodes =
            [episode(1, 0, 0, &[0]), episode(1, 0, 10, &[1]), episode(1, 0, 4, &[2]), episode(1, 0, 6, &[3])];
        let changes = update(&GroupParameters { size_max: 2, ..PARAMETERS }, &episodes);
        let signs: Vec<i64> = changes.iter().map(|change| change.change.to_raw().signum()).collect();
        assert_eq!(signs, [-1, 1, -1, 1]);
        assert!(changes[0].change.to_raw().abs_diff(changes[2].change.to_raw()) <= 1, "{changes:?}");
    }

    #[test]
    fn equal_returns_divide_by_epsilon_and_move_nothing() {
        let episodes = [episode(1, 0, 5, &[0]), episode(1, 0, 5, &[1])];
        assert!(update(&PARAMETERS, &episodes).iter().all(|change| change.change == Fixed::ZERO));
    }

    proptest::proptest! {
        #[test]
        fn advantages_are_bounded_and_keep_the_order_of_payoffs(raws in proptest::collection::vec(proptest::num::i64::ANY, 1..40)) {
            let payoffs: Vec<Fixed> = raws.iter().map(|raw| Fixed::from_raw(*raw)).collect();
            let got = advantages(&payoffs, PARAMETERS.spread_min);
            for (left, right) in (0..raws.len()).zip(1..raws.len()) {
                proptest::prop_assert!(got[left].to_raw().abs() <= ADVANTAGE_LIMIT.to_raw());
                let (low, high) = if payoffs[left] <= payoffs[right] { (left, right) } else { (right, left) };
                proptest::prop_assert!(got[low] <= got[high]);
            }
        }

        #[test]
        fn the_order_of_episodes_does_not_matter(seed in 0u64..) {
            let mut prng = bem_base::prng::Prng::quick(seed);
            let mut episodes: Vec<EpisodeOutcome> = (0..30)
                .map(|_| episode(prng.below(3), prng.below(2) as u32, prng.between(-9, 9) as i32, &[prng.below(4) as u32, prng.below(4) as u32]))
                .collect();
            let before = update(&PARAMETERS, &episodes);
            prng.shuffle(&mut episodes);
            proptest::prop_assert_eq!(before, update(&PARAMETERS, &episodes));
        }
    }
}
