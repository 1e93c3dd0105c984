//! Invariants of a bucket: boot, masks, halving, limits, batches, resets.

use super::*;
use crate::index::{IndexRule, PRIOR_LIMIT};

const PLAIN: Parameters = Parameters { change: None, ..Parameters::DEFAULT };

#[test]
fn a_new_bucket_has_one_imagined_visit_an_arm_and_prefers_the_lowest_live_arm() {
    let bucket = Bucket::new(&PLAIN, 0b1010_0100);
    assert_eq!(bucket.choose(), 2);
    assert_eq!(bucket.selections_total(), 0);
    let half = Fixed::HALF.to_raw() as u64;
    for arm in 0..ARMS_MAX {
        let want = ArmStatistics { visits: 1, loss_sum: half, loss_sq_sum: half, prior: 0 };
        assert_eq!(bucket.statistics(arm), want);
    }
}

#[test]
fn a_retired_arm_is_never_chosen_and_the_last_one_stays() {
    let mut bucket = Bucket::new(&PLAIN, 0b111);
    assert!(bucket.retire(&PLAIN, 0));
    for step in 0..5_000u64 {
        let arm = bucket.choose();
        assert_ne!(arm, 0);
        bucket.update(&PLAIN, arm, Loss::from_bit(step % 3 == 0));
    }
    assert!(bucket.retire(&PLAIN, 1));
    assert!(!bucket.retire(&PLAIN, 2));
    assert_eq!(bucket.choose(), 2);
}

#[test]
fn an_admitted_arm_starts_neutral_and_is_tried() {
    let mut bucket = Bucket::new(&PLAIN, 0b11);
    for _ in 0..1_000 {
        let arm = bucket.choose();
        bucket.update(&PLAIN, arm, Loss::ONE);
    }
    bucket.admit(&PLAIN, 5);
    assert_eq!(bucket.choose(), 5);
}

#[test]
fn counts_halve_at_the_limit_with_means_kept_and_sums_never_overflow() {
    let mut bucket = Bucket::new(&PLAIN, u16::MAX);
    let most = BATCH_VISITS_MAX;
    for arm in 0..ARMS_MAX {
        // The largest losses there are, and the largest batch, on top of all a refreshed arm may hold.
        bucket.add_batch(
            arm,
            VISITS_HALVE_AT - 2,
            u64::from(VISITS_HALVE_AT - 2) << 32,
            u64::from(VISITS_HALVE_AT - 2) << 32,
        );
        bucket.add_batch(arm, most, u64::from(most) << 32, u64::from(most) << 32);
    }
    bucket.refresh(&PLAIN);
    for arm in 0..ARMS_MAX {
        let statistics = bucket.statistics(arm);
        assert!(statistics.visits < VISITS_HALVE_AT, "{}", statistics.visits);
        assert!(statistics.loss_sq_sum <= statistics.loss_sum);
        assert!(statistics.loss_sum <= u64::from(statistics.visits) << 32);
        assert!(Fixed::from_ratio(999_999, 1_000_000) < bucket.mean_loss(arm));
    }
}

#[test]
fn single_updates_cross_the_halving_limit() {
    let mut bucket = Bucket::new(&PLAIN, 0b1);
    let start = VISITS_HALVE_AT - 3;
    bucket.add_batch(0, start, u64::from(start) << 31, u64::from(start) << 31);
    bucket.refresh(&PLAIN);
    for step in 0..10u32 {
        bucket.update(&PLAIN, 0, Loss::from_bit(step % 2 == 0));
        assert!(bucket.statistics(0).visits < VISITS_HALVE_AT);
    }
    assert_eq!(bucket.statistics(0).visits, VISITS_HALVE_AT / 2 + 8);
    assert!((bucket.mean_loss(0).to_raw() - Fixed::HALF.to_raw()).abs() < 64);
}

#[test]
fn a_reset_keeps_priors_and_masks_and_forgets_the_rest() {
    let mut bucket = Bucket::new(&PLAIN, 0b1011);
    bucket.adjust_prior(&PLAIN, 1, Fixed::from_int(-3));
    for _ in 0..100 {
        let arm = bucket.choose();
        bucket.update(&PLAIN, arm, Loss::ZERO);
    }
    bucket.reset(&PLAIN);
    assert_eq!(bucket.live(), 0b1011);
    assert_eq!(bucket.prior(1), Fixed::from_int(-3));
    assert_eq!(bucket.selections_total(), 0);
}

#[test]
fn a_wider_range_moves_every_arm_alike_and_keeps_their_order() {
    let mut bucket = Bucket::new(&PLAIN, 0b111);
    for step in 0..3_000u64 {
        let arm = (step % 3) as usize;
        bucket.update(&PLAIN, arm, Loss::from_bit(step / 3 % 4 < arm as u64));
    }
    let before = bucket.clone();
    // The high end rises by the width of the range: a loss of l is one of a half and l half.
    bucket.rescale(&PLAIN, Widening::new(10, 20, 10));
    for arm in 0..3 {
        let (old, new) = (before.mean_loss(arm).to_raw(), bucket.mean_loss(arm).to_raw());
        assert!((new - (1 << 31) - old / 2).abs() <= 2, "{old} {new}");
        let spread = |bucket: &Bucket| {
            let ArmStatistics { visits, loss_sum, loss_sq_sum, .. } = bucket.statistics(arm);
            let (mean, square) = (loss_sum / u64::from(visits), loss_sq_sum / u64::from(visits));
            square as i64 - ((u128::from(mean) * u128::from(mean)) >> 32) as i64
        };
        assert!((4 * spread(&bucket) - spread(&before)).abs() <= 32);
    }
    assert_eq!(bucket.selections_total(), before.selections_total());
}

#[test]
fn an_alarm_resets_the_bucket_and_is_reported() {
    let parameters = Parameters::DEFAULT;
    let mut bucket = Bucket::new(&parameters, 0b1);
    for step in 0..10_000u32 {
        assert_eq!(bucket.update(&parameters, 0, Loss::from_bit(step % 2 == 0)), None);
    }
    let alarm = (0..200).find_map(|_| bucket.update(&parameters, 0, Loss::ONE));
    assert_eq!(alarm, Some(Change::Worse));
    assert_eq!(bucket.selections_total(), 0);
}

#[test]
fn priors_are_held_within_their_bounds() {
    let mut bucket = Bucket::new(&PLAIN, 0b1);
    bucket.adjust_prior(&PLAIN, 0, Fixed::MAX);
    assert_eq!(bucket.prior(0), PLAIN.prior_max);
    bucket.adjust_prior(&PLAIN, 0, Fixed::MIN);
    assert_eq!(bucket.prior(0), PLAIN.prior_min);
    assert!(PLAIN.prior_max < Fixed::from_int(PRIOR_LIMIT));
}

proptest::proptest! {
    #[test]
    fn invariants_hold_under_any_sequence_of_operations(
        seed in 0u64.., rule in 0usize..4, live in 1u16.., steps in 1usize..400
    ) {
        let rule = [IndexRule::UcbV, IndexRule::PriorSubtracted, IndexRule::AsPrinted, IndexRule::Greedy][rule];
        let parameters = Parameters { rule, prior_weight: Fixed::HALF, prior_rate: Fixed::from_ratio(1, 9), ..Parameters::DEFAULT };
        let mut prng = bem_base::prng::Prng::quick(seed);
        let mut bucket = Bucket::new(&parameters, live);
        for _ in 0..steps {
            let arm = prng.below(ARMS_MAX as u64) as usize;
            match prng.below(13) {
                0 => bucket.admit(&parameters, arm),
                1 => { let _ = bucket.retire(&parameters, arm); }
                2 => bucket.adjust_prior(&parameters, arm, Fixed::from_raw(prng.between(-1 << 36, 1 << 36))),
                3 => bucket.discount(&parameters, 1 + prng.below(64) as u32),
                4 => bucket.reset(&parameters),
                5 => {
                    let visits = prng.below(u64::from(BATCH_VISITS_MAX)) as u32;
                    let loss_sum = prng.below((u64::from(visits) << 32) + 1);
                    let loss_sq_sum = prng.below(loss_sum + 1);
                    bucket.add_batch(arm, visits, loss_sum, loss_sq_sum);
                    bucket.refresh(&parameters);
                }
                6 => {
                    let to = 1 + prng.below(1 << 40);
                    let offset = prng.between(-1 << 40, 1 << 40);
                    bucket.rescale(&parameters, Widening::new(1 + prng.below(to), to, offset.into()));
                }
                _ => { let chosen = bucket.choose(); bucket.update(&parameters, chosen, Loss::from_raw(prng.below((1 << 32) + 1))); }
            }
            let best = bucket.choose();
            proptest::prop_assert!(bucket.live() >> best & 1 == 1);
            let lowest = bucket.indices().iter().min().unwrap();
            proptest::prop_assert_eq!(bucket.indices().iter().position(|index| index == lowest), Some(best));
            for arm in 0..ARMS_MAX {
                let statistics = bucket.statistics(arm);
                proptest::prop_assert!(1 <= statistics.visits && statistics.visits < VISITS_HALVE_AT);
                proptest::prop_assert!(statistics.loss_sq_sum <= statistics.loss_sum);
                proptest::prop_assert!(statistics.loss_sum <= u64::from(statistics.visits) << 32);
            }
        }
    }

    #[test]
    fn batches_merge_in_any_order(seed in 0u64.., count in 2usize..6) {
        let mut prng = bem_base::prng::Prng::quick(seed);
        let batches: Vec<Batch> = (0..count).map(|_| {
            let mut batch = Batch::default();
            for _ in 0..50 {
                batch.record(prng.below(16) as usize, Loss::from_raw(prng.below((1 << 32) + 1)));
            }
            batch
        }).collect();
        let merged = |order: &mut dyn Iterator<Item = &Batch>| {
            let mut total = Batch::default();
            order.for_each(|batch| total.merge(batch));
            let mut bucket = Bucket::new(&PLAIN, u16::MAX);
            bucket.apply(&PLAIN, &total);
            bucket
        };
        proptest::prop_assert_eq!(merged(&mut batches.iter()), merged(&mut batches.iter().rev()));
    }
}
