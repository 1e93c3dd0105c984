//! What a search proposes, and what it may cost. Clauses: SCC-2.

use super::*;
use crate::experience::Step;
use bem_base::environment::Field;
use bem_base::prng::Prng;

/// Uniform play in a world of two bits and two actions, six steps an episode; `right` sees the own last action.
fn play(episodes: u64, right: impl Fn(u64, u16) -> u16) -> Experience {
    let mut prng = Prng::stream(8, "propose");
    let mut experience = Experience::default();
    for serial in 0..episodes {
        let (mut steps, mut last) = (Vec::new(), 0);
        for time in 0..6 {
            let (word, action) = (prng.below(4), prng.below(2) as u16);
            steps.push(Step {
                observation: Bits([word, 0, 0, 0]),
                action,
                reward: if action == right(word, last) { 1_000 } else { 0 },
                done: time == 5,
                bad: false,
                uniform: true,
                propensity: 32_767,
            });
            last = action;
        }
        experience.push(Episode { serial, steps });
    }
    experience
}

fn shape() -> Shape {
    Shape {
        observation_bits: 2,
        actions: 2,
        horizon: 6,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 6_000,
        fields: (0..2).map(|low| Field { low, width: 1 }).collect(),
    }
}

#[test]
fn what_depends_on_the_own_last_action_is_explained_with_it() {
    let right = |word: u64, last: u16| if word & 1 == 1 { 1 - last } else { last };
    let experience = play(60, right);
    let found = propose(&shape(), &experience, &[], None, &Settings::default()).hypotheses;
    let best = found.iter().find(|hypothesis| hypothesis.exact).expect("something explains it");
    assert!(best.words.ends_with("the own last action"), "{}", best.words);
    let mut player = Player::new(&best.policy);
    let mut last = 0;
    for word in [0, 1, 2, 3, 3, 0, 1, 1] {
        let action = player.act(&Bits([word, 0, 0, 0]));
        assert_eq!(action, right(word, last));
        last = action;
    }
}

#[test]
fn what_was_seen_some_steps_ago_is_kept_for_as_long() {
    let seen = std::cell::RefCell::new(Vec::new());
    let experience = play(120, |word, _| {
        let mut seen = seen.borrow_mut();
        seen.push((word & 1) as u16);
        // The first steps of an episode pay nothing whatever is done.
        if (seen.len() - 1) % 6 < 4 { 2 } else { seen[seen.len() - 5] }
    });
    let found = propose(&shape(), &experience, &[], None, &Settings::default()).hypotheses;
    let best = found.iter().find(|hypothesis| hypothesis.exact).expect("something explains it");
    assert!(best.words.contains("4 steps ago"), "{}", best.words);
}

#[test]
fn a_machine_that_moves_by_the_answers_is_followed() {
    // Two states; the right answer is the state, and answering 1 to a set bit changes it.
    let mut prng = Prng::stream(11, "propose/follow");
    let mut experience = Experience::default();
    let moved = |state: u16, word: u64, action: u16| state ^ (word as u16 & action);
    for serial in 0..120 {
        let mut state = 0;
        let steps = (0..12).map(|time| {
            let (word, action) = (prng.below(2), prng.below(2) as u16);
            let reward = if action == state { 1_000 } else { 0 };
            state = moved(state, word, action);
            let observation = Bits([word, 0, 0, 0]);
            let (uniform, propensity) = (true, 32_767);
            Step { observation, action, reward, done: time == 11, bad: false, uniform, propensity }
        });
        experience.push(Episode { serial, steps: steps.collect() });
    }
    let shape = Shape {
        observation_bits: 1,
        horizon: 12,
        return_max: 12_000,
        fields: vec![Field { low: 0, width: 1 }],
        ..shape()
    };
    let found = propose(&shape, &experience, &[], None, &Settings::default()).hypotheses;
    let best = found.iter().find(|hypothesis| hypothesis.exact).expect("something explains it");
    let (mut player, mut state) = (Player::new(&best.policy), 0);
    for word in [0, 1, 1, 0, 1, 1, 1, 0] {
        let action = player.act(&Bits([word, 0, 0, 0]));
        assert_eq!(action, state, "{}", best.words);
        state = moved(state, word, action);
    }
}

#[test]
fn no_search_takes_more_work_than_three_times_what_it_is_given_however_wide_and_noisy_the_log_is() {
    let mut prng = Prng::stream(12, "propose/wide");
    let mut experience = Experience::default();
    for serial in 0..150 {
        let steps = (0..12).map(|time| Step {
            observation: Bits(core::array::from_fn(|_| prng.next_u64())),
            action: prng.below(2) as u16,
            reward: prng.below(1_001) as i32,
            done: time == 11,
            bad: false,
            uniform: true,
            propensity: 32_767,
        });
        experience.push(Episode { serial, steps: steps.collect() });
    }
    let fields = (0..256).map(|low| Field { low, width: 1 }).collect();
    let shape = Shape { observation_bits: 256, horizon: 12, return_max: 12_000, fields, ..shape() };
    for work in [10_000, 1_000_000, 20_000_000] {
        let settings = Settings { work, ..Settings::default() };
        let proposal = propose(&shape, &experience, &[], None, &settings);
        assert!(proposal.work <= 3 * work + RECALL_WORK, "{} of {work}", proposal.work);
    }
}

#[test]
fn the_same_experience_gives_the_same_proposal_and_names_it() {
    let experience = play(60, |word, _| (word >> 1) as u16);
    let run = || propose(&shape(), &experience, &[], None, &Settings::default()).hypotheses;
    let digests = |list: Vec<Hypothesis>| -> Vec<(Digest, Digest)> {
        list.iter().map(|hypothesis| (hypothesis.policy.digest(), hypothesis.provenance)).collect()
    };
    let first = digests(run());
    assert!(first.iter().all(|(_, provenance)| *provenance == experience.digest()) && !first.is_empty());
    assert_eq!(first, digests(run()));
}

#[test]
fn coins_are_told_from_rules_by_their_beginnings() {
    let ruled = play(200, |word, _| (word >> 1) as u16);
    assert!(!by_chance(&ruled.episodes().collect::<Vec<_>>()));
    let mut prng = Prng::stream(9, "coins");
    let coins: Vec<u16> = (0..4_096).map(|_| prng.below(2) as u16).collect();
    let next = std::cell::Cell::new(0);
    let tossed = play(200, |_, _| {
        next.set(next.get() + 1);
        coins[next.get() % coins.len()]
    });
    assert!(by_chance(&tossed.episodes().collect::<Vec<_>>()));
}
