//! Arms without bound: the tournament, what was seen, advice, halving, wider ranges.

use super::*;
use bem_base::prng::Prng;

const PLAIN: Parameters = Parameters { change: None, ..Parameters::DEFAULT };

#[test]
fn the_winner_is_the_lowest_index_and_bytes_come_back() {
    let mut prng = Prng::stream(1, "wide");
    for arms in [1, 2, 3, 16, 17, 100, 1_024] {
        let mut bucket = WideBucket::new(&PLAIN, arms);
        for step in 0..2_000u64 {
            let arm = if prng.bit() { bucket.choose() } else { prng.below(arms as u64) as usize };
            bucket.update(&PLAIN, arm, Loss::from_raw(prng.below(1 << 32)));
            let ranks = bucket.index.iter().enumerate().map(|(arm, index)| (*index, arm));
            assert_eq!(ranks.min().unwrap().1, bucket.choose());
            if step % 500 == 0 {
                let mut writer = Writer::new();
                bucket.encode(&mut writer);
                let read = WideBucket::decode(&PLAIN, arms, &mut Reader::new(writer.as_bytes()));
                assert_eq!(read.as_ref(), Ok(&bucket));
            }
        }
    }
}

#[test]
fn what_promises_hardly_more_than_what_stands_is_followed_in_few_choices() {
    // Three arms of which the last is worse; what stands is the first. Losses of a half now and then.
    let after = |choices: u64, best: u64, worst: u64| {
        let mut prng = Prng::stream(3, "wide");
        let mut bucket = WideBucket::new(&PLAIN, 3);
        for choice in 0..choices {
            let arm = (choice % 3) as usize;
            let often = [500, best, worst][arm];
            let loss = if prng.below(1_000) < often { 1 << 31 } else { 0 };
            bucket.update(&PLAIN, arm, Loss::from_raw(loss));
        }
        bucket.followed_one_in(0)
    };
    assert_eq!(after(30, 500, 900), 1, "little is known");
    assert_eq!(after(6_000, 500, 900), SMALL_HOPE_ONE_IN, "arms that are equal");
    assert_eq!(after(15_000, 500, 900), SMALL_HOPE_ONE_IN_LATE, "they were tried often");
    assert_eq!(after(6_000, 300, 900), 1, "one that is clearly better");
    assert_eq!(after(150_000, 480, 900), 1, "one that is hardly better, and was seen to be");
    // What brings the same every time says so soon, and nobody hopes for a small part of the range.
    assert_eq!([30, 6_000].map(|choices| after(choices, 1_000, 1_000)), [1, SMALL_HOPE_ONE_IN]);
}

#[test]
fn a_range_that_is_far_too_wide_costs_hardly_more_than_the_right_one() {
    // Four arms of which the first is better; losses as they are, or in the middle of a range that is 200 times as wide.
    let others = |width: u64| {
        let mut prng = Prng::stream(5, "wide");
        let mut bucket = WideBucket::new(&PLAIN, 4);
        let mut others = 0;
        for _ in 0..20_000 {
            let arm = bucket.choose();
            let often = if arm == 0 { 400 } else { 600 };
            let part = if prng.below(1_000) < often { WHOLE / width } else { 0 };
            bucket.update(&PLAIN, arm, Loss::from_raw(WHOLE / 2 - WHOLE / width / 2 + part));
            others += u32::from(arm != 0);
        }
        others
    };
    let (right, wide) = (others(1), others(200));
    assert!(right < 600 && wide < 2 * right, "{right} choices of others, {wide} where the range is too wide");
}

#[test]
fn the_losses_seen_are_part_of_the_bytes_while_they_span_little() {
    let mut bucket = WideBucket::new(&PLAIN, 3);
    let encoded = |bucket: &WideBucket| {
        let mut writer = Writer::new();
        bucket.encode(&mut writer);
        writer.into_bytes()
    };
    let back = |bytes: &[u8]| WideBucket::decode(&PLAIN, 3, &mut Reader::new(bytes));
    assert_eq!(back(&encoded(&bucket)).unwrap(), bucket);
    let plain = encoded(&bucket).len();
    for (step, loss) in [WHOLE / 2, WHOLE / 2 + 1_000, WHOLE / 2 - 1_000].into_iter().enumerate() {
        bucket.update(&PLAIN, step, Loss::from_raw(loss));
        assert_eq!((back(&encoded(&bucket)).unwrap(), encoded(&bucket).len()), (bucket.clone(), plain + 16));
    }
    assert_eq!(bucket.range().to_raw(), 4_000);
    let mut crossed = encoded(&bucket);
    crossed[10..26].rotate_left(8);
    assert!(back(&crossed).is_err(), "the lowest loss is above the highest");
    bucket.update(&PLAIN, 0, Loss::from_raw(0));
    assert_eq!((back(&encoded(&bucket)).unwrap(), encoded(&bucket).len()), (bucket.clone(), plain));
    assert_eq!(bucket.range(), Fixed::ONE);
}

#[test]
fn cached_indices_lose_nothing_against_a_rule_that_renews_them_all() {
    // Two hundred arms, the best 0.2 below the rest: pulls of all others over ten thousand choices.
    let pulls = |renew: bool| {
        let mut prng = Prng::stream(2, "wide");
        let mut bucket = WideBucket::new(&PLAIN, 200);
        let mut wasted = 0u32;
        for _ in 0..60_000 {
            let arm = bucket.choose();
            let lost = prng.below(10) < if arm == 77 { 3 } else { 5 };
            bucket.update(&PLAIN, arm, Loss::from_bit(lost));
            if renew {
                bucket.refresh(&PLAIN);
            }
            wasted += u32::from(arm != 77);
        }
        wasted
    };
    let (cached, renewed) = (pulls(false), pulls(true));
    assert!(cached <= renewed + renewed / 10, "{cached} against {renewed}");
}

#[test]
fn what_people_say_counts_in_fractions_and_is_taken_back_bit_for_bit() {
    let mut prng = Prng::stream(3, "wide");
    for arms in [2, 16, 100] {
        let mut bucket = WideBucket::new(&PLAIN, arms);
        (0..200).for_each(|_| {
            bucket.update(&PLAIN, prng.below(arms as u64) as usize, Loss::from_raw(prng.below(1 << 32)))
        });
        let before = bucket.clone();
        let good = Advice::of(3 << 30, Loss::from_raw(0));
        let arm = arms - 1;
        let index = bucket.index(arm);
        assert!(bucket.advise(&PLAIN, arm, &good, true, None));
        assert!(bucket.index(arm) < index, "good words make an arm look better");
        assert_eq!(bucket.advice()[arm].visits, 3 << 30);
        let mut writer = Writer::new();
        bucket.encode(&mut writer);
        assert_eq!(
            WideBucket::decode(&PLAIN, arms, &mut Reader::new(writer.as_bytes())).as_ref(),
            Ok(&bucket)
        );
        assert!(bucket.advise(&PLAIN, arm, &good, false, Some(index)));
        assert_eq!(bucket, before);
        assert!(!bucket.advise(&PLAIN, arm, &good, false, None), "more than was said cannot be taken back");
        assert_eq!(bucket, before);
    }
    // Praise lowers the mean as observed visits would, and blame raises it.
    let mut bucket = WideBucket::new(&PLAIN, 3);
    bucket.update(&PLAIN, 1, Loss::from_raw(1 << 31));
    let index = bucket.index(1);
    bucket.advise(&PLAIN, 1, &Advice::of(1 << 32, Loss::ONE), true, None);
    assert!(index < bucket.index(1));
    bucket.advise(&PLAIN, 1, &Advice::of(5 << 32, Loss::from_raw(0)), true, None);
    assert!(bucket.index(1) < index);
}

#[test]
fn counts_are_halved_before_they_overflow() {
    let mut bucket = WideBucket::new(&PLAIN, 3);
    bucket.arms[1] =
        ArmStatistics { visits: VISITS_HALVE_AT - 1, loss_sum: 1 << 40, loss_sq_sum: 1 << 39, prior: 0 };
    bucket.update(&PLAIN, 1, Loss::ONE);
    assert_eq!(bucket.arms()[1].visits, VISITS_HALVE_AT / 2);
}
