//! The test without pairs: validity under drift, power, and bytes. Clauses: SCC-8.

use super::*;
use bem_base::prng::Prng;

const UNIT: Earlier = Earlier { low: 0, high: 1_000, mean: 500 };

/// Plays until the test ends or for so many episodes; `pays` gives a return for a side and a number.
fn play(
    ledger: &mut AlphaLedger,
    prng: &mut Prng,
    promise: Fixed,
    most: u32,
    mut pays: impl FnMut(&mut Prng, Side, u32) -> i64,
) -> (Progress, Interleaved) {
    let mut test = ledger.open_interleaved(Account::Trials, UNIT, promise);
    for episode in 0..most {
        let side = Side::of(prng.bit());
        let total = pays(prng, side, episode);
        let played = Played { side, total, since: total, is_bad: false, differs: true };
        let progress = test.observe(ledger, Account::Trials, &played);
        if progress != Progress::Open {
            return (progress, test.evidence());
        }
    }
    (Progress::Open, test.evidence())
}

fn coin(prng: &mut Prng, thousandths: u64) -> i64 {
    if prng.below(1_000) < thousandths { 1_000 } else { 0 }
}

/// What everybody earns in a world that changes slowly between one tenth and nine tenths.
fn drift(episode: u32) -> u64 {
    let place = u64::from(episode % 2_000);
    100 + if place < 1_000 { place * 4 / 5 } else { (2_000 - place) * 4 / 5 }
}

#[test]
fn a_candidate_no_better_is_accepted_less_often_than_promised_while_the_world_drifts() {
    let mut prng = Prng::stream(1, "interleaved null");
    let promise = Fixed::from_ratio(1, 20);
    let (batches, mut fooled) = (200, 0);
    for _ in 0..batches {
        let mut ledger = AlphaLedger::default();
        let is_fooled = (0..8).any(|_| {
            let pays = |prng: &mut Prng, _: Side, episode| coin(prng, drift(episode));
            play(&mut ledger, &mut prng, promise, 2_000, pays).0 == Progress::Better
        });
        fooled += u32::from(is_fooled);
    }
    // The promise is 5 % of batches; 10 of 200.
    assert!(fooled <= 10, "{fooled}");
}

#[test]
fn without_the_coin_drift_would_fool_the_test() {
    // The control: who plays follows the season instead of a coin, and the test accepts what is no better.
    let mut ledger = AlphaLedger::default();
    let mut test = ledger.open_interleaved(Account::Trials, UNIT, Fixed::HALF);
    let mut prng = Prng::stream(2, "interleaved control");
    let accepted = (0..2_000).any(|episode| {
        let side = Side::of(500 < drift(episode));
        let total = coin(&mut prng, drift(episode));
        let played = Played { side, total, since: total, is_bad: false, differs: true };
        test.observe(&mut ledger, Account::Trials, &played) == Progress::Better
    });
    assert!(accepted);
}

#[test]
fn a_gain_of_a_twentieth_is_shown_after_some_thousand_episodes() {
    let mut prng = Prng::stream(3, "interleaved power");
    let promise = Fixed::from_ratio(1, 20);
    let mut episodes: Vec<u32> = (0..60)
        .map(|_| {
            let pays = |prng: &mut Prng, side, _| coin(prng, if side == Side::Candidate { 525 } else { 475 });
            let (progress, evidence) = play(&mut AlphaLedger::default(), &mut prng, promise, 40_000, pays);
            if progress == Progress::Better { evidence.episodes } else { u32::MAX }
        })
        .collect();
    episodes.sort_unstable();
    assert!((1_000..=5_000).contains(&episodes[30]), "{episodes:?}");
    assert!(episodes[48] < u32::MAX, "four of five are shown: {episodes:?}");
    // Returns that vary a fifth as much take far fewer.
    let pays = |prng: &mut Prng, side: Side, _| {
        let noise = prng.between(-170, 170);
        500 + noise + if side == Side::Candidate { 25 } else { -25 }
    };
    let (progress, evidence) = play(&mut AlphaLedger::default(), &mut prng, promise, 40_000, pays);
    assert_eq!(progress, Progress::Better);
    assert!(evidence.episodes < episodes[30] / 2, "{evidence:?}");
}

#[test]
fn a_certain_gain_takes_few_episodes_and_its_bound_lies_below_the_truth() {
    let mut prng = Prng::stream(4, "interleaved sure");
    for _ in 0..100 {
        let pays = |_: &mut Prng, side, _| if side == Side::Candidate { 1_000 } else { 0 };
        let (progress, evidence) = play(&mut AlphaLedger::default(), &mut prng, Fixed::ZERO, 100, pays);
        assert_eq!(progress, Progress::Better);
        assert!(evidence.episodes <= 24, "{evidence:?}");
        assert!(Fixed::ZERO <= evidence.lower_bound && evidence.lower_bound <= Fixed::ONE);
    }
    // Bounds above the true difference are rare: three tenths, measured for long.
    let above = (0..60).filter(|_| {
        let mut ledger = AlphaLedger::default();
        let mut test = ledger.open_interleaved(Account::Trials, UNIT, Fixed::ZERO);
        for _ in 0..600 {
            let side = Side::of(prng.bit());
            let total = coin(&mut prng, if side == Side::Candidate { 550 } else { 450 });
            let played = Played { side, total, since: total, is_bad: false, differs: true };
            test.observe(&mut ledger, Account::Trials, &played);
        }
        Fixed::from_ratio(1, 10) < test.evidence().lower_bound
    });
    assert!(above.count() <= 3);
}

#[test]
fn who_is_worse_or_promises_nothing_is_given_up() {
    let mut prng = Prng::stream(5, "interleaved futile");
    let mut episodes = [0, 0];
    for _ in 0..100 {
        let worse = |prng: &mut Prng, side, _| coin(prng, if side == Side::Candidate { 300 } else { 700 });
        let (progress, evidence) = play(&mut AlphaLedger::default(), &mut prng, Fixed::HALF, 5_000, worse);
        assert_eq!(progress, Progress::Futile);
        episodes[0] += evidence.episodes;
        let equal = |prng: &mut Prng, _, _| coin(prng, 500);
        let (progress, evidence) = play(&mut AlphaLedger::default(), &mut prng, Fixed::ZERO, 20_000, equal);
        assert_ne!(progress, Progress::Open);
        episodes[1] += evidence.episodes;
    }
    assert!(episodes[0] < 100 * 60 && episodes[1] < 100 * 300, "{episodes:?}");
}

#[test]
fn episodes_without_a_difference_are_worth_nothing_and_a_loss_beyond_the_range_costs_an_alpha() {
    let mut ledger = AlphaLedger::default();
    let mut test = ledger.open_interleaved(Account::Trials, UNIT, Fixed::ZERO);
    for episode in 0..200 {
        let played = Played {
            side: Side::of(episode % 2 == 0),
            total: 1_000 * (episode % 2),
            since: 0,
            is_bad: episode % 2 == 0,
            differs: false,
        };
        assert_eq!(test.observe(&mut ledger, Account::Trials, &played), Progress::Open);
    }
    assert!(test.never_differed(200));
    assert_eq!(test.evidence().mean, Fixed::ZERO);
    assert_eq!(ledger.entered(), [1, 0, 0, 0]);
    let ruin = Played { side: Side::Candidate, total: -9_000, since: -9_000, is_bad: false, differs: true };
    test.observe(&mut ledger, Account::Trials, &ruin);
    assert_eq!((ledger.entered(), test.span()), ([2, 0, 0, 0], 10_000));
    let luck = Played { side: Side::Candidate, total: 90_000, since: 90_000, is_bad: false, differs: true };
    test.observe(&mut ledger, Account::Trials, &luck);
    assert_eq!((ledger.entered(), test.span()), ([2, 0, 0, 0], 10_000));
}

#[test]
fn more_bad_than_the_incumbent_is_a_veto_and_equally_bad_is_none() {
    let mut ledger = AlphaLedger::default();
    let mut test = ledger.open_interleaved(Account::Trials, UNIT, Fixed::HALF);
    let bad = |side| Played { side, total: 500, since: 500, is_bad: true, differs: true };
    for _ in 0..8 {
        let sides = [Side::Candidate, Side::Incumbent];
        let progress = sides.map(|side| test.observe(&mut ledger, Account::Trials, &bad(side)));
        assert!(!progress.contains(&Progress::Unsafe));
    }
    let mut test = ledger.open_interleaved(Account::Trials, UNIT, Fixed::HALF);
    let progress: Vec<Progress> =
        (0..3).map(|_| test.observe(&mut ledger, Account::Trials, &bad(Side::Candidate))).collect();
    assert_eq!(progress[2], Progress::Unsafe);
}

#[test]
fn a_test_half_way_comes_back_and_ends_the_same_and_impossible_bytes_are_refused() {
    let mut prng = Prng::stream(6, "interleaved bytes");
    let mut ledger = AlphaLedger::resume([3, 0, 0, 0]);
    let mut test = ledger.open_interleaved(Account::Trials, UNIT, Fixed::from_ratio(1, 9));
    let mut drawn = || Played {
        side: Side::of(prng.bit()),
        total: prng.between(-100, 1_000),
        since: prng.between(-100, 1_000),
        is_bad: prng.below(8) == 0,
        differs: prng.below(4) != 0,
    };
    (0..40).for_each(|_| {
        test.observe(&mut ledger, Account::Trials, &drawn());
        test.pass();
    });
    let mut writer = Writer::new();
    test.encode(&mut writer);
    let bytes = writer.into_bytes();
    let mut copy = InterleavedTest::decode(&mut Reader::new(&bytes)).unwrap();
    assert_eq!(copy, test);
    let mut other = ledger;
    for _ in 0..200 {
        let played = drawn();
        let progress = test.observe(&mut ledger, Account::Trials, &played);
        assert_eq!(copy.observe(&mut other, Account::Trials, &played), progress);
        assert_eq!(copy.evidence(), test.evidence());
    }
    let mut writer = Writer::new();
    test.evidence().encode(&mut writer);
    assert_eq!(Interleaved::decode(&mut Reader::new(writer.as_bytes())), Ok(test.evidence()));
    for cut in 0..bytes.len() {
        assert!(InterleavedTest::decode(&mut Reader::new(&bytes[..cut])).is_err());
    }
    let mut refused = 0;
    for place in 0..bytes.len() {
        let mut malformed = bytes.clone();
        malformed[place] ^= 0x80;
        // What is let in can go on without a panic.
        match InterleavedTest::decode(&mut Reader::new(&malformed)) {
            Ok(mut read) => {
                let mut ledger = ledger;
                (0..4).for_each(|_| {
                    read.observe(&mut ledger, Account::Trials, &drawn());
                });
                read.evidence();
            }
            Err(_) => refused += 1,
        }
    }
    assert!(0 < refused);
}

#[test]
fn the_expected_episodes_are_about_those_that_are_played() {
    let mut prng = Prng::stream(7, "interleaved expected");
    for gain in [100, 200, 400] {
        let mean = Fixed::from_ratio(gain, 1_000);
        let expected = AlphaLedger::default().episodes_expected(mean, Fixed::from_ratio(1, 4)).unwrap();
        let played: u64 = (0..40)
            .map(|_| {
                let chance = |side| if side == Side::Candidate { 500 + gain / 2 } else { 500 - gain / 2 };
                let pays = |prng: &mut Prng, side, _| coin(prng, chance(side) as u64);
                let run = play(&mut AlphaLedger::default(), &mut prng, mean, 40_000, pays);
                u64::from(run.1.episodes) / 40
            })
            .sum();
        assert!(played < 2 * expected && expected < 2 * played, "{gain}: {played} {expected}");
    }
    assert_eq!(AlphaLedger::default().episodes_expected(Fixed::ZERO, Fixed::ONE), None);
}
