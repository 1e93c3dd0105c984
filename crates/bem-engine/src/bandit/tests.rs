//! Contexts from small logs, their statistics and their bytes.

use super::growth::{Growth, divide, forget, join};
use super::*;
use bem_base::environment::Field;
use bem_base::prng::Prng;

fn shape() -> Shape {
    Shape {
        observation_bits: 8,
        actions: 4,
        horizon: 1,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 1_000,
        fields: vec![Field { low: 0, width: 8 }],
    }
}

/// Uniform play where the observation decides which action pays more often.
fn log(count: u64, paying: impl Fn(&Bits) -> Option<u16>) -> Vec<Episode> {
    drawn_log(3, count, paying)
}

fn drawn_log(seed: u64, count: u64, paying: impl Fn(&Bits) -> Option<u16>) -> Vec<Episode> {
    let mut prng = Prng::stream(seed, "bandit");
    (0..count)
        .map(|serial| {
            let observation = Bits([prng.below(256), 0, 0, 0]);
            let action = prng.below(4) as u16;
            let chance = if paying(&observation) == Some(action) { 80 } else { 40 };
            let reward = if prng.below(100) < chance { 1_000 } else { 0 };
            let step = Step {
                observation,
                action,
                reward,
                done: true,
                bad: false,
                uniform: true,
                propensity: 16_383,
            };
            Episode { serial, steps: vec![step] }
        })
        .collect()
}

/// The contexts that a log asks for, beginning with these.
fn divided(choice: &Choice, log: &[&Episode]) -> Option<Growth> {
    divide(choice.tree(), counted(choice, log, log.len() as u64), shape().observation_bits, shape().actions)
}

/// These contexts with the statistics of a log.
fn filled(choice: &Choice, log: &[&Episode]) -> RoutedBandit {
    RoutedBandit::from_counted(&shape(), choice.tree(), &counted(choice, log, log.len() as u64))
}

/// With the contexts that a log asks for, and its statistics.
fn grown(episodes: &[Episode]) -> RoutedBandit {
    let log: Vec<&Episode> = episodes.iter().collect();
    let mut choice = Choice::new();
    if let Some(growth) = divided(&choice, &log) {
        assert!(Fixed::ZERO < growth.explained && growth.explained < Fixed::ONE);
        assert_eq!(growth.steps as usize, log.len());
        choice = choice.divided(&growth.after).unwrap();
    }
    filled(&choice, &log)
}

fn frozen(bandit: &RoutedBandit) -> Policy {
    bandit.freeze(&bandit.best_actions()).unwrap()
}

#[test]
fn contexts_grow_where_they_are_and_what_is_explained_is_not_divided_again() {
    let paying = |bits: &Bits| Some(u16::from(bits.get(2)) + 2 * u16::from(bits.get(5)));
    let episodes = log(3_000, paying);
    let log: Vec<&Episode> = episodes.iter().collect();
    let by_five = Choice::new().divided(&ContextTree::from_places(&[Some(5), None, None]).unwrap()).unwrap();
    let after = divided(&by_five, &log).unwrap().after;
    assert_eq!(after.places(), [Some(5), Some(2), None, None, Some(2), None, None]);
    assert!(divided(&by_five.divided(&after).unwrap(), &log).is_none());
}

#[test]
fn sides_that_choose_the_same_and_tell_nothing_are_joined_and_others_are_not() {
    // Bit 5 matters; bit 7 does not, and was tested all the same.
    let episodes = log(3_000, |bits| Some(u16::from(bits.get(5))));
    let log: Vec<&Episode> = episodes.iter().collect();
    let idle = ContextTree::from_places(&[Some(5), Some(7), None, None, Some(7), None, None]).unwrap();
    let choice = Choice::new().divided(&idle).unwrap();
    let joined = |choice: &Choice| {
        let chosen = filled(choice, &log).best_actions();
        let is_same = |low: usize| chosen[low] == chosen[low + 1];
        join(choice.tree(), is_same, &counted(choice, &log, log.len() as u64), shape().actions)
    };
    let mut choice = choice;
    while let Some(after) = joined(&choice) {
        choice = choice.joined(&after).unwrap();
    }
    assert!(choice.tree().count() < 4);
    assert_eq!(choice.tree().context(&Bits::ZERO), 0);
    assert_ne!(choice.tree().context(&Bits([1 << 5, 0, 0, 0])), 0);
}

#[test]
fn a_context_forgets_when_another_action_has_become_the_best() {
    // First action 1 pays, of late action 2.
    let (mut old, new) = (log(3_000, |_| Some(1)), log(1_500, |_| Some(2)));
    let unchanged: Vec<&Episode> = old.iter().collect();
    let choice = Choice::new();
    let look = |log: &[&Episode], choice: &Choice| {
        let now = log.len() as u64;
        let bandit = filled(choice, log);
        let found = forget(&bandit, &counted(choice, log, now), shape().observation_bits, shape().actions);
        (found, bandit.best_actions())
    };
    assert!(look(&unchanged, &choice).0.is_none());
    old.extend(new);
    let log: Vec<&Episode> = old.iter().collect();
    let (found, best) = look(&log, &choice);
    let changed = found.unwrap();
    assert_eq!((changed.context, best), (0, vec![1]));
    assert!(3_000 <= changed.since && changed.since < 4_500 && Fixed::ZERO < changed.loss);
    let (found, best) = look(&log, &choice.forgetting(0, changed.since).unwrap());
    assert!(found.is_none() && best == [2]);
}

#[test]
fn the_luckiest_actions_do_not_replace_what_acts_and_better_ones_do() {
    let parts = Choice::new().divided(&ContextTree::from_places(&[Some(5), None, None]).unwrap()).unwrap();
    let is_better = |seed: u64, count: u64, paying: fn(&Bits) -> Option<u16>| {
        let episodes = drawn_log(seed, count, paying);
        let log: Vec<&Episode> = episodes.iter().collect();
        let bandit = filled(&parts, &log);
        let acting = bandit.actions_of(&Policy::constant(4, 3));
        assert_eq!(acting, [3, 3]);
        // By chance some other action has the lowest mean almost always.
        let is_lucky = bandit.best_actions() != acting;
        (is_lucky, bandit.improves_on(&acting, &shape(), &counted(&parts, &log, count)))
    };
    let null: Vec<(bool, bool)> = (0..100)
        .flat_map(|seed| [60, 200, 600, 2_000].map(|count| is_better(seed, count, |_| None)))
        .collect();
    let lucky = null.iter().filter(|(is_lucky, _)| *is_lucky).count();
    let replaced = null.iter().filter(|(_, is_better)| *is_better).count();
    assert!(350 < lucky && replaced < 8, "{lucky} {replaced}");
    // Where bit 5 is set action 1 pays; on the other side nothing is better than what acts.
    let paying = |bits: &Bits| Some(if bits.get(5) { 1 } else { 3 });
    assert!((0..100).all(|seed| is_better(seed, 1_000, paying).1));
}

#[test]
fn the_bits_that_matter_are_found_and_no_others() {
    let paying = |bits: &Bits| Some(u16::from(bits.get(2)) + 2 * u16::from(bits.get(5)));
    let episodes = log(3_000, paying);
    let bandit = grown(&episodes);
    assert_eq!(bandit.contexts(), 4);
    let policy = frozen(&bandit);
    assert_eq!(policy.reads(), [2, 5]);
    let mut player = bem_synth::policy::Player::new(&policy);
    for value in 0..256 {
        let bits = Bits([value, 0, 0, 0]);
        assert_eq!(Some(player.act(&bits)), paying(&bits));
    }
}

#[test]
fn contexts_come_back_from_their_bytes_and_no_damage_makes_a_walk_endless() {
    let paying = |bits: &Bits| Some(u16::from(bits.get(2)) + 2 * u16::from(bits.get(5)));
    let episodes = log(3_000, paying);
    let bandit = grown(&episodes);
    let bytes_of = |bandit: &RoutedBandit| {
        let mut writer = Writer::new();
        bandit.encode(&mut writer);
        writer.into_bytes()
    };
    let bytes = bytes_of(&bandit);
    let copy = RoutedBandit::decode(&shape(), &mut Reader::new(&bytes)).unwrap();
    assert_eq!(bytes_of(&copy), bytes);
    assert_eq!(frozen(&copy), frozen(&bandit));
    for cut in 0..bytes.len() {
        assert!(RoutedBandit::decode(&shape(), &mut Reader::new(&bytes[..cut])).is_err());
    }
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x55;
        if let Ok(mut other) = RoutedBandit::decode(&shape(), &mut Reader::new(&damaged)) {
            let _ = (other.choose(&Bits::ZERO), frozen(&other));
            other.record(&Bits::ZERO, 1, 500);
        }
    }
}

#[test]
fn six_bits_that_matter_a_little_are_found_together() {
    // Which of four actions pays is drawn for each of 64 contexts, so that a single bit tells hardly anything.
    let mut prng = Prng::stream(5, "six bits");
    let best: Vec<u16> = (0..64).map(|_| prng.below(4) as u16).collect();
    let episodes = log(12_000, |bits| Some(best[(bits.0[0] & 63) as usize]));
    let bandit = grown(&episodes);
    let policy = frozen(&bandit);
    let mut player = bem_synth::policy::Player::new(&policy);
    let right = (0..256).filter(|value| player.act(&Bits([*value, 0, 0, 0])) == best[(value & 63) as usize]);
    assert!(250 <= right.count());
}

#[test]
fn two_bits_that_matter_only_together_are_found() {
    let paying = |bits: &Bits| Some(u16::from(bits.get(1) ^ bits.get(6)));
    let episodes = log(4_000, paying);
    let bandit = grown(&episodes);
    assert_eq!(frozen(&bandit).reads(), [1, 6]);
}

#[test]
fn without_dependence_there_is_one_context() {
    let episodes = log(3_000, |_| None);
    let bandit = grown(&episodes);
    assert_eq!(bandit.contexts(), 1);
}

#[test]
fn choices_settle_on_the_best_action() {
    let mut bandit = RoutedBandit::new(&shape());
    let mut prng = Prng::stream(9, "settle");
    let mut last = 0;
    for round in 0..4_000 {
        let action = bandit.choose(&Bits::ZERO);
        let chance = if action == 3 { 60 } else { 40 };
        bandit.record(&Bits::ZERO, action, if prng.below(100) < chance { 1_000 } else { 0 });
        last += u32::from(3_000 <= round && action == 3);
    }
    assert!(900 < last, "{last}");
}

#[test]
fn a_bit_that_tells_how_much_there_is_and_not_how_to_get_it_divides_nothing() {
    let mut episodes = log(3_000, |_| None);
    for step in episodes.iter_mut().flat_map(|episode| &mut episode.steps) {
        step.reward = if step.observation.get(3) { step.reward } else { 0 };
    }
    assert_eq!(grown(&episodes).contexts(), 1);
    // With an action that pays more on one side alone, it does.
    for step in episodes.iter_mut().flat_map(|episode| &mut episode.steps) {
        step.reward = if step.observation.get(3) && step.action == 2 { 1_000 } else { step.reward };
    }
    assert!(1 < grown(&episodes).contexts());
}
