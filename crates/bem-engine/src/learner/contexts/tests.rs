//! Buckets from small logs, and what they choose.

use super::growth::{Growth, divide, forget, idle_divisions};
use super::means::{Means, counted};
use bem_base::environment::{Bits, Field, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_machine::config::GenesisConfig;
use bem_machine::family::Family;
use bem_machine::held::Adaptation;
use bem_machine::machine::{Edit, edited};
use bem_machine::route::directory::RouteInput;
use bem_synth::experience::{Episode, Step};
use bem_synth::policy::{Player, Policy};

/// The chance of error that a look is granted here, as one in this many.
const ODDS: u128 = 1_000;

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

fn whole() -> Family {
    Family::for_world(&GenesisConfig::default(), shape()).unwrap()
}

fn with(family: &Family, edit: Edit) -> Family {
    edited(&GenesisConfig::default(), family, edit).unwrap()
}

/// One bucket after the other divided by single bits.
fn cut(family: &Family, cuts: &[(u16, u16)]) -> Family {
    let cuts = cuts.iter().map(|(bucket, bit)| (*bucket, vec![RouteInput::State(*bit)])).collect();
    with(family, Edit::Split { cuts })
}

/// The divisions that a log asks for.
fn divided(family: &Family, log: &[&Episode]) -> Option<Growth> {
    let steps = counted(family, log);
    divide(family.directory(), steps, (shape().observation_bits, shape().actions), ODDS)
}

fn means(family: &Family, log: &[&Episode]) -> Means {
    Means::of(&shape(), &counted(family, log))
}

/// With the buckets that a log asks for.
fn grown(episodes: &[Episode]) -> Family {
    let log: Vec<&Episode> = episodes.iter().collect();
    let family = whole();
    let Some(growth) = divided(&family, &log) else { return family };
    assert!(Fixed::ZERO < growth.explained && growth.explained < Fixed::ONE);
    assert_eq!(growth.steps as usize, log.len());
    let after = with(&family, Edit::Split { cuts: growth.cuts });
    assert_eq!(*after.directory(), growth.after);
    after
}

/// The best action of every bucket by the log, as one circuit.
fn frozen(family: &Family, episodes: &[Episode]) -> Policy {
    let log: Vec<&Episode> = episodes.iter().collect();
    let actions = means(family, &log).best_actions();
    let held = with(family, Edit::Hold { actions, rule: Adaptation::Fixed });
    let circuit = held.freeze().unwrap();
    Policy::new(circuit.circuit, circuit.reads, 0, 4).unwrap()
}

/// The bits that routing looks at, rising.
fn bits(family: &Family) -> Vec<u16> {
    let bit = |input: &RouteInput| if let RouteInput::State(bit) = input { *bit } else { u16::MAX };
    let mut bits: Vec<u16> = family.directory().inputs().iter().map(bit).collect();
    bits.sort_unstable();
    bits
}

#[test]
fn contexts_grow_where_they_are_and_what_is_explained_is_not_divided_again() {
    let paying = |bits: &Bits| Some(u16::from(bits.get(2)) + 2 * u16::from(bits.get(5)));
    let episodes = log(3_000, paying);
    let log: Vec<&Episode> = episodes.iter().collect();
    let by_five = cut(&whole(), &[(0, 5)]);
    let growth = divided(&by_five, &log).unwrap();
    assert_eq!(growth.cuts, [(0, vec![RouteInput::State(2)]), (1, vec![RouteInput::State(2)])]);
    let after = with(&by_five, Edit::Split { cuts: growth.cuts });
    assert!(divided(&after, &log).is_none());
}

#[test]
fn sides_that_choose_the_same_and_tell_nothing_are_joined_and_others_are_not() {
    // Bit 5 matters; bit 7 does not, and was tested all the same.
    let episodes = log(3_000, |bits| Some(u16::from(bits.get(5))));
    let log: Vec<&Episode> = episodes.iter().collect();
    let mut family = cut(&whole(), &[(0, 5), (0, 7), (1, 7)]);
    loop {
        let steps = counted(&family, &log);
        let chosen = Means::of(&shape(), &steps).best_actions();
        let is_same = |one: u16, other: u16| chosen[usize::from(one)] == chosen[usize::from(other)];
        let idle = idle_divisions(family.directory(), is_same, &steps, shape().actions);
        let Some(pair) = idle.first() else { break };
        family = with(&family, Edit::Join { pairs: vec![*pair] });
    }
    assert!(family.directory().bucket_count() < 4);
    assert_ne!(family.bucket_of(&Bits::ZERO), family.bucket_of(&Bits([1 << 5, 0, 0, 0])));
}

#[test]
fn a_context_forgets_when_another_action_has_become_the_best() {
    // First action 1 pays, of late action 2.
    let (mut old, new) = (log(3_000, |_| Some(1)), log(1_500, |_| Some(2)));
    let unchanged: Vec<&Episode> = old.iter().collect();
    let look = |log: &[&Episode], family: &Family| {
        let steps = counted(family, log);
        (forget(&shape(), &steps, ODDS), Means::of(&shape(), &steps).best_actions())
    };
    assert!(look(&unchanged, &whole()).0.is_none());
    old.extend((3_000..).zip(new).map(|(serial, episode)| Episode { serial, ..episode }));
    let log: Vec<&Episode> = old.iter().collect();
    let (found, best) = look(&log, &whole());
    let changed = found.unwrap();
    assert_eq!((changed.bucket, best), (0, vec![1]));
    let since = changed.since >> 20;
    assert!((3_000..4_500).contains(&since) && Fixed::ZERO < changed.loss);
    let forgetting = with(&whole(), Edit::Forget { bucket: 0, moment: changed.since });
    let (found, best) = look(&log, &forgetting);
    assert!(found.is_none() && best == [2]);
}

#[test]
fn the_luckiest_actions_do_not_replace_what_acts_and_better_ones_do() {
    let parts = cut(&whole(), &[(0, 5)]);
    let is_better = |seed: u64, count: u64, paying: fn(&Bits) -> Option<u16>| {
        let episodes = drawn_log(seed, count, paying);
        let log: Vec<&Episode> = episodes.iter().collect();
        let held = [3, 3];
        // By chance some other action has the lowest mean almost always.
        let is_lucky = means(&parts, &log).best_actions() != held;
        (is_lucky, Means::better_actions(&held, &shape(), &counted(&parts, &log)).is_some())
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
fn what_the_counts_leave_open_shrinks_with_them_and_grows_with_what_is_missed() {
    // Of two contexts each has an action that pays twice as often; by few steps anything is open, by many only what is held
    // against them.
    let leave_open = |count: u64, actions: [u16; 2]| {
        let episodes = log(count, |observation| Some(u16::from(observation.get(3))));
        let family = cut(&whole(), &[(0, 3)]);
        means(&family, &episodes.iter().collect::<Vec<_>>()).leave_open(&actions)
    };
    assert!(leave_open(100, [0, 1]));
    assert!(!leave_open(20_000, [0, 1]));
    assert!(leave_open(20_000, [0, 2]) && leave_open(20_000, [3, 1]));
}

#[test]
fn the_bits_that_matter_are_found_and_no_others() {
    let paying = |bits: &Bits| Some(u16::from(bits.get(2)) + 2 * u16::from(bits.get(5)));
    let episodes = log(3_000, paying);
    let family = grown(&episodes);
    assert_eq!(family.directory().bucket_count(), 4);
    let policy = frozen(&family, &episodes);
    assert_eq!(policy.reads(), [2, 5]);
    let mut player = Player::new(&policy);
    for value in 0..256 {
        let bits = Bits([value, 0, 0, 0]);
        assert_eq!(Some(player.act(&bits)), paying(&bits));
    }
}

#[test]
fn six_bits_that_matter_a_little_are_found_together() {
    // Which of four actions pays is drawn for each of 64 contexts, so that a single bit tells hardly anything.
    let mut prng = Prng::stream(5, "six bits");
    let best: Vec<u16> = (0..64).map(|_| prng.below(4) as u16).collect();
    let episodes = log(12_000, |bits| Some(best[(bits.0[0] & 63) as usize]));
    let policy = frozen(&grown(&episodes), &episodes);
    let mut player = Player::new(&policy);
    let right = (0..256).filter(|value| player.act(&Bits([*value, 0, 0, 0])) == best[(value & 63) as usize]);
    assert!(250 <= right.count());
}

#[test]
fn two_bits_that_matter_only_together_are_found() {
    let paying = |bits: &Bits| Some(u16::from(bits.get(1) ^ bits.get(6)));
    let episodes = log(4_000, paying);
    assert_eq!(bits(&grown(&episodes)), [1, 6]);
}

#[test]
fn without_dependence_there_is_one_context() {
    let episodes = log(3_000, |_| None);
    assert_eq!(grown(&episodes).directory().bucket_count(), 1);
}

#[test]
fn a_bit_that_tells_how_much_there_is_and_not_how_to_get_it_divides_nothing() {
    let mut episodes = log(3_000, |_| None);
    for step in episodes.iter_mut().flat_map(|episode| &mut episode.steps) {
        step.reward = if step.observation.get(3) { step.reward } else { 0 };
    }
    assert_eq!(grown(&episodes).directory().bucket_count(), 1);
    // With an action that pays more on one side alone, it does.
    for step in episodes.iter_mut().flat_map(|episode| &mut episode.steps) {
        step.reward = if step.observation.get(3) && step.action == 2 { 1_000 } else { step.reward };
    }
    assert!(1 < grown(&episodes).directory().bucket_count());
}

#[test]
fn a_bit_past_the_first_word_divides_too() {
    let wide = Shape { observation_bits: 200, fields: Vec::new(), ..shape() };
    let mut episodes = log(3_000, |bits| Some(u16::from(bits.get(5))));
    for step in episodes.iter_mut().flat_map(|episode| &mut episode.steps) {
        let seen = step.observation.get(5);
        step.observation.set(5, false);
        step.observation.set(170, seen);
    }
    let log: Vec<&Episode> = episodes.iter().collect();
    let family = Family::for_world(&GenesisConfig::default(), wide.clone()).unwrap();
    let growth = divide(family.directory(), counted(&family, &log), (200, 4), ODDS).unwrap();
    assert_eq!(growth.cuts, [(0, vec![RouteInput::State(170)])]);
}
