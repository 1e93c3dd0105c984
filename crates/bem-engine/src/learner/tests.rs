//! When a run ends by itself, and how far apart its searches are. Clauses: SCC-15, VM-16.

use super::*;
use bem_base::environment::Field;

/// One step an episode that pays nothing or one unit.
fn shape() -> Shape {
    Shape {
        observation_bits: 4,
        actions: 2,
        horizon: 1,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 1_000,
        fields: vec![Field { low: 0, width: 4 }],
    }
}

/// A learner whose incumbent had these returns, oldest first, in episodes of its own.
fn after(returns: impl IntoIterator<Item = i64>) -> Learner {
    let mut learner = Learner::new(&shape(), Settings::new(1)).unwrap();
    for total in returns {
        learner.realised.book(total);
        learner.streak = if total == learner.shape.return_max { learner.streak + 1 } else { 0 };
    }
    learner
}

/// So many episodes that fall short by this much, and then a streak at the maximum.
fn failures_and_streak(failures: usize, loss: i64, streak: usize) -> Learner {
    after(vec![1_000 - loss; failures].into_iter().chain(vec![1_000; streak]))
}

#[test]
fn who_never_failed_is_perfect_after_four_hundred_episodes_at_the_maximum() {
    assert!(!after(vec![1_000; 399]).is_done());
    assert!(after(vec![1_000; 400]).is_done());
    assert!(!after(vec![1_000; 4_000].into_iter().chain([999])).is_done());
}

#[test]
fn who_failed_must_go_eight_times_as_long_as_between_two_failures() {
    // Half of the first two hundred episodes failed, and then one in five and one in six of all: 8 * 500 <= 400 * 100.
    let mixed = (0..200).map(|episode| 1_000 * i64::from(episode % 2 == 0));
    assert!(!after(mixed.clone().chain(vec![1_000; 399])).is_done());
    assert!(after(mixed.chain(vec![1_000; 400])).is_done());
    // Nine in 409 are enough, eight in 408 are not: a gap of 51 episodes, and 400 are fewer than eight times that.
    assert!(failures_and_streak(9, 1_000, 400).is_done());
    assert!(!failures_and_streak(8, 1_000, 400).is_done());
    // What happened once may be rare: no streak outgrows a gap that it is a part of.
    for streak in [400, 4_000, 40_000] {
        assert!(!failures_and_streak(1, 1_000, streak).is_done(), "{streak}");
    }
}

#[test]
fn a_small_loss_counts_for_as_much_as_it_costs() {
    assert!(failures_and_streak(40, 500, 400).is_done());
    assert!(failures_and_streak(20, 1_000, 400).is_done());
    assert!(!failures_and_streak(20, 100, 400).is_done());
}

#[test]
fn a_new_incumbent_has_to_earn_its_own_streak_and_is_not_blamed_for_others() {
    let mut learner = failures_and_streak(1, 1_000, 400);
    assert!(!learner.is_done());
    let incumbent = learner.incumbent.clone();
    learner.hand_over(incumbent);
    assert!(learner.is_done(), "the rollouts of its gate are its streak, and it has failed in none");
}

#[test]
fn without_a_gain_a_run_ends_after_a_long_quiet() {
    let ends = |steps: u64, last_gain: u64| {
        let mut learner = after([]);
        (learner.tally.steps, learner.last_gain) = (steps, last_gain);
        learner.is_done()
    };
    assert!(!ends(QUIET_MIN, 0));
    assert!(ends(QUIET_MIN + 1, 0));
    // Who took long for the last gain may take long for the next one.
    assert!(!ends(5 * 50_000, 50_000));
    assert!(ends(5 * 50_000 + 1, 50_000));
}

#[test]
fn the_next_search_waits_until_steps_have_paid_for_those_before() {
    let next = |steps: u64, work: u64, fruitless: u64| {
        let mut learner = after([]);
        (learner.tally.steps, learner.tally.work, learner.fruitless) = (steps, work, fruitless);
        assert_eq!(learner.pause(), Event::RoundEnded);
        learner.next_search
    };
    assert_eq!(next(1_000, 0, 0), 1_250);
    assert_eq!(next(8_000, 0, 0), 12_000);
    assert_eq!(next(1_000, 5_000_000_000, 0), 5_000);
    assert_eq!(next(1_000, 0, 3), 1_750);
}
