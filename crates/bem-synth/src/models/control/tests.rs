//! Small worlds played here, with known best plans.

use super::chance::Dynamics;
use super::counts::{Lens, Model};
use super::dependence::{is_controlled, needed_history};
use super::explore::Explorer;
use super::grain::Grain;
use super::memory_search::find_memory;
use super::planner::{PlanComparison, PlannedControl};
use super::value::{to_milli, value_of};
use crate::experience::{Episode, Step};
use crate::policy::{Player, Policy};
use crate::samples::Work;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Field, Shape};
use bem_base::prng::Prng;

/// A world as one function: state, action and a draw give the next state and the reward; no next state is an end.
struct World {
    shape: Shape,
    start: u64,
    rule: fn(u64, u16, &mut Prng) -> (Option<u64>, i32),
    see: fn(u64) -> u64,
}

/// Work enough for all worlds here.
fn means() -> Work {
    Work::new(1 << 30)
}

fn shape(bits: u16, actions: u16, horizon: u32, rewards: (i32, i32)) -> Shape {
    Shape {
        observation_bits: bits,
        actions,
        horizon,
        reward_min: rewards.0,
        reward_max: rewards.1,
        return_min: i64::from(horizon) * i64::from(rewards.0),
        return_max: i64::from(horizon) * i64::from(rewards.1),
        fields: vec![Field { low: 0, width: bits }],
    }
}

impl World {
    fn play(
        &self,
        serial: u64,
        prng: &mut Prng,
        mut choose: impl FnMut(&[Step], &Bits) -> Option<u16>,
    ) -> Episode {
        let mut state = self.start;
        let mut steps: Vec<Step> = Vec::new();
        for time in 0..self.shape.horizon {
            let observation = Bits([(self.see)(state), 0, 0, 0]);
            let wanted = choose(&steps, &observation);
            let action = wanted.unwrap_or_else(|| prng.below(u64::from(self.shape.actions)) as u16);
            let (next, reward) = (self.rule)(state, action, prng);
            let done = next.is_none() || time + 1 == self.shape.horizon;
            let (uniform, bad, propensity) = (wanted.is_none(), false, 0);
            steps.push(Step { observation, action, reward, done, bad, uniform, propensity });
            match next {
                Some(next) => state = next,
                None => break,
            }
        }
        Episode { serial, steps }
    }

    fn log(&self, episodes: u64) -> Vec<Episode> {
        let mut prng = Prng::stream(7, "control/log");
        (0..episodes).map(|serial| self.play(serial, &mut prng, |_, _| None)).collect()
    }

    /// The mean return of a circuit, in milli-units.
    fn mean(&self, policy: &Policy) -> i64 {
        let mut prng = Prng::stream(8, "control/mean");
        let mut player = Player::new(policy);
        let total: i64 = (0..2_000)
            .map(|serial| {
                player.begin();
                self.play(serial, &mut prng, |_, seen| Some(player.act(seen))).total()
            })
            .sum();
        total / 2_000
    }
}

/// Eight cells in a row: to the right lies the reward, to the left a small one at once.
fn corridor() -> World {
    World {
        shape: shape(3, 2, 12, (0, 1_000)),
        start: 2,
        rule: |place, action, _| {
            let next = if action == 1 { (place + 1).min(7) } else { place.saturating_sub(1) };
            (Some(next), if next == 7 { 1_000 } else { i32::from(action == 0) * 20 })
        },
        see: |place| place,
    }
}

/// One state; one action pays a little, the other nothing but a chance of a seat that pays much from the next step on.
/// The chance is worth taking only while there are steps left.
fn investment() -> World {
    World {
        shape: shape(1, 2, 6, (0, 1_000)),
        start: 0,
        rule: |state, action, prng| match (state, action) {
            (0, 0) => (Some(0), 400),
            (0, _) => (Some(u64::from(prng.below(4) == 0)), 0),
            _ => (Some(1), 1_000),
        },
        see: |state| state,
    }
}

/// The first observation says which of two actions pays at the second step, where everything looks the same.
fn remembered() -> World {
    World {
        shape: shape(2, 2, 2, (0, 1_000)),
        start: 0,
        rule: |state, action, _| match state {
            0 => (Some(1 + u64::from(action)), 0),
            kind => (None, if u64::from(action) == kind - 1 { 0 } else { 1_000 }),
        },
        see: |state| state.min(1),
    }
}

#[test]
fn a_plan_gives_up_small_rewards_for_a_large_one() {
    let world = corridor();
    let log = world.log(300);
    let episodes: Vec<&Episode> = log.iter().collect();
    let planned = PlannedControl::of(&world.shape, &episodes, None, false, &mut means()).unwrap();
    let policy = planned.stated.unwrap().policy;
    assert_eq!(world.mean(&policy), 8_000);
    assert_eq!(planned.predicted, 8_000);
    let zero = Policy::constant(2, 0);
    let known = Explorer::of(&world.shape, Lens::default(), &episodes).unwrap();
    let comparison = PlanComparison::of(&world.shape, &known, &episodes, &policy, &zero).unwrap();
    let gain = comparison.ripe_gain().unwrap();
    assert!(comparison.is_sure());
    assert_eq!(gain, 8_000 - 12 * 20);
    let same = PlanComparison::of(&world.shape, &known, &episodes, &policy, &policy).unwrap();
    assert_eq!((same.ripe_gain(), same.is_sure()), (None, false));
}

#[test]
fn where_the_past_is_the_state_a_plan_is_sure_only_where_it_has_been() {
    // A walk round many places, by one or, where the other action is taken, also by two of them; one action pays in each place.
    let world = World {
        shape: shape(5, 2, 12, (0, 1_000)),
        start: 0,
        rule: |place, action, prng| {
            let next = place + 1 + (prng.below(2) & u64::from(action));
            (Some(next % 32), 1_000 * i32::from(u64::from(action) == place % 2))
        },
        see: |place| place,
    };
    let is_sure = |count| {
        let log = world.log(count);
        let episodes: Vec<&Episode> = log.iter().collect();
        let planned = PlannedControl::of(&world.shape, &episodes, None, false, &mut means()).unwrap();
        let (policy, zero) = (planned.stated.unwrap().policy, Policy::constant(2, 0));
        [0, 2].map(|back| {
            let known = Explorer::of(&world.shape, Lens::Past(back), &episodes).unwrap();
            PlanComparison::of(&world.shape, &known, &episodes, &policy, &zero).unwrap().is_sure()
        })
    };
    // The same plan, looked at with nothing but the place and with what was seen and done two steps back.
    assert_eq!(is_sure(60), [true, false]);
    assert_eq!(is_sure(4_000), [true, true]);
}

#[test]
fn a_number_is_told_apart_as_finely_as_was_played() {
    // A place on a line of 256 that drifts; one action leads up, one down, and the middle pays.
    let world = World {
        shape: shape(8, 2, 24, (0, 1_000)),
        start: 40,
        rule: |place, action, prng| {
            let moved =
                if action == 1 { place + prng.below(16) } else { place.saturating_sub(prng.below(16)) };
            (Some(moved.min(255)), 1_000 * i32::from((120..136).contains(&place)))
        },
        see: |place| place,
    };
    let looked_at = |count| {
        let log = world.log(count);
        let episodes: Vec<&Episode> = log.iter().collect();
        let grain = Grain::of(&world.shape, &episodes);
        let model = Model::of(&world.shape, Lens::default(), grain, &episodes).unwrap();
        let mut writer = Writer::new();
        model.encode(&mut writer);
        let bytes = writer.into_bytes();
        let (mut again, back) = (Writer::new(), Model::decode(&mut Reader::new(&bytes)).unwrap());
        back.encode(&mut again);
        assert_eq!((back.grain(), again.into_bytes()), (grain, bytes));
        let planned = PlannedControl::of(&world.shape, &episodes, None, true, &mut means()).unwrap();
        assert!(1 << 10 < world.mean(&planned.stated.unwrap().policy));
        grain.look(&Bits([u64::MAX, 0, 0, 0])).0[0] & 0xff
    };
    assert_eq!((looked_at(100), looked_at(4_000)), (0b1111_1000, 0b1111_1111));
    // A field of few bits is looked at whole, however little was played.
    let log = world.log(4);
    let narrow =
        Shape { fields: vec![Field { low: 0, width: 5 }, Field { low: 5, width: 3 }], ..world.shape.clone() };
    assert!(Grain::of(&narrow, &log.iter().collect::<Vec<_>>()).is_full());
}

/// Forty places in a row, seen as numbers of six bits: a step to the right, to the left or none, by chance, and only the last pays.
fn row_of_places() -> World {
    World {
        shape: shape(6, 2, 60, (0, 1_000)),
        start: 30,
        rule: |place, action, prng| {
            let by = if prng.below(4) == 0 { 0 } else { 1 };
            let moved = if action == 1 { place + by } else { place.saturating_sub(by) };
            (Some(moved.min(39)), 1_000 * i32::from(place == 39))
        },
        see: |place| place,
    }
}

/// With one bit less the step before tells which of two places it is. That is no memory, once both can be told apart.
#[test]
fn levels_that_were_left_out_are_not_taken_for_something_hidden() {
    let world = row_of_places();
    let log = world.log(2_000);
    let episodes: Vec<&Episode> = log.iter().collect();
    let coarse = Grain::coarsest(&world.shape);
    assert!(!coarse.is_full() && Grain::of(&world.shape, &episodes).is_full());
    assert!(0 < coarse.through(&episodes, |seen| needed_history(world.shape.horizon, seen)));
    let planned = PlannedControl::of(&world.shape, &episodes, None, false, &mut means()).unwrap();
    assert_eq!((planned.explorer.lens(), planned.explorer.grain()), (&Lens::default(), Grain::FULL));
}

/// What must not be learned from is counted no more, and counted as before when it may be learned from again.
#[test]
fn an_episode_that_is_taken_out_of_what_was_counted_leaves_no_trace_in_it() {
    let world = row_of_places();
    let log = world.log(20);
    let episodes: Vec<&Episode> = log.iter().collect();
    let mut explorer = Explorer::of(&world.shape, Lens::default(), &episodes).unwrap();
    let bytes = |explorer: &Explorer| {
        let mut writer = Writer::new();
        explorer.encode(&mut writer);
        writer.into_bytes()
    };
    let before = bytes(&explorer);
    let others = Model::of(&world.shape, Lens::default(), Grain::FULL, &episodes[..19]).unwrap();
    assert!(explorer.knows_more_than(&others).is_some());
    explorer.keep(episodes[19], false);
    assert!(bytes(&explorer) != before && explorer.knows_more_than(&others).is_none());
    explorer.keep(episodes[19], true);
    assert!(bytes(&explorer) == before);
}

/// A log that has forgotten nearly everything says little, and who has counted all of it says the same as before.
#[test]
fn what_an_explorer_has_counted_is_planned_with_when_the_log_has_forgotten_it() {
    let world = corridor();
    let log = world.log(300);
    let all: Vec<&Episode> = log.iter().collect();
    let known = Explorer::of(&world.shape, Lens::default(), &all).unwrap();
    let planned = |few: &[&Episode], known| {
        PlannedControl::of(&world.shape, few, known, false, &mut means()).map(|plan| plan.predicted)
    };
    // What is left of the log are episodes that never came to the end.
    let few = &all.iter().copied().filter(|episode| episode.total() < 1_000).take(40).collect::<Vec<_>>()[..];
    assert_eq!(planned(few, Some(&known)), Some(8_000));
    assert!(planned(few, None).is_some_and(|predicted| predicted < 8_000));
    let policy = Policy::constant(2, 1);
    let forgotten = Explorer::of(&world.shape, Lens::default(), few).unwrap();
    let promised =
        |known: &Explorer| PlanComparison::of(&world.shape, known, few, &policy, &policy).unwrap().held();
    assert_ne!(promised(&known), promised(&forgotten));
}

#[test]
fn a_plan_with_time_to_spare_does_not_put_it_off() {
    // More steps than a circuit has a clock for; with so many left, staying and going are worth the same.
    let world = World {
        shape: shape(3, 2, 300, (0, 1_000)),
        start: 0,
        rule: |place, action, _| match place + u64::from(action) {
            5 => (None, 1_000),
            next => (Some(next), 0),
        },
        see: |place| place,
    };
    let log = world.log(40);
    let planned =
        PlannedControl::of(&world.shape, &log.iter().collect::<Vec<_>>(), None, false, &mut means()).unwrap();
    assert_eq!(world.mean(&planned.stated.unwrap().policy), 1_000);
    assert_eq!(planned.predicted, 1_000);
}

#[test]
fn a_plan_counts_the_steps_that_are_left() {
    let world = investment();
    let log = world.log(2_000);
    let planned =
        PlannedControl::of(&world.shape, &log.iter().collect::<Vec<_>>(), None, false, &mut means()).unwrap();
    let policy = planned.stated.unwrap().policy;
    assert!(planned.words.starts_with("plan by steps left"), "{}", planned.words);
    // With n steps left, investing is worth (1000 (n - 1) + 3 V(n - 1)) / 4 against 400 + V(n - 1).
    let mut best = 0;
    for left in 1..=6 {
        best = i64::max((1_000 * (left - 1) + 3 * best) / 4, 400 + best);
    }
    let mean = world.mean(&policy);
    assert!((mean - best).abs() < 80, "{mean} {best}");
    assert!(world.mean(&Policy::constant(2, 1)) + 100 < mean);
}

#[test]
fn own_actions_are_remembered_where_the_observation_hides_them() {
    let world = remembered();
    let log = world.log(400);
    let episodes: Vec<&Episode> = log.iter().collect();
    let planned = PlannedControl::of(&world.shape, &episodes, None, false, &mut means()).unwrap();
    let policy = planned.stated.unwrap().policy;
    assert_eq!(world.mean(&policy), 1_000);
    assert_eq!(planned.predicted, 1_000);
    let model = Model::of(&world.shape, Lens::Past(1), Grain::FULL, &episodes).unwrap();
    assert_eq!(value_of(&policy, &model, &Dynamics::expected(&model)).map(to_milli), Some(1_000));
}

#[test]
fn a_process_without_hidden_parts_needs_no_history_and_one_with_needs_some() {
    let open = investment();
    let log = open.log(3_000);
    assert_eq!(needed_history(6, &log.iter().collect::<Vec<_>>()), 0);
    let hidden = remembered();
    let log = hidden.log(100);
    let episodes: Vec<&Episode> = log.iter().collect();
    assert!(is_controlled(2, &episodes));
    assert_eq!(needed_history(2, &episodes), 1);
}

#[test]
fn what_comes_by_itself_is_not_controlled() {
    let world = World {
        shape: shape(2, 2, 16, (0, 1_000)),
        start: 0,
        rule: |state, action, prng| (Some(prng.below(4)), 1_000 * i32::from(u64::from(action) == state & 1)),
        see: |state| state,
    };
    let log = world.log(500);
    assert!(!is_controlled(16, &log.iter().collect::<Vec<_>>()));
}

#[test]
fn curiosity_walks_a_long_corridor_that_chance_never_would() {
    // Thirty cells, every step to the left leads back to the first; a random walk needs 2^29 episodes.
    let world = World {
        shape: shape(5, 2, 40, (0, 1_000)),
        start: 0,
        rule: |place, action, _| match (place, action) {
            (29, 1) => (None, 1_000),
            (_, 1) => (Some(place + 1), 0),
            _ => (Some(0), 0),
        },
        see: |place| place,
    };
    let mut prng = Prng::stream(3, "control/curious");
    let log = world.log(20);
    let mut explorer = Explorer::of(&world.shape, Lens::default(), &log.iter().collect::<Vec<_>>()).unwrap();
    let found = (20..200).find(|serial| {
        explorer.prepare(1_000, &mut prng);
        let mut draw = prng.clone();
        let episode = world.play(*serial, &mut prng, |past, seen| {
            explorer.act(past, seen).or_else(|| Some(draw.below(2) as u16))
        });
        explorer.learn(&episode);
        0 < episode.total()
    });
    assert!(found.is_some_and(|serial| serial < 150), "{found:?}");
}

#[test]
fn an_explorer_comes_back_from_its_bytes_and_damage_is_no_panic() {
    let world = corridor();
    let log = world.log(40);
    let mut prng = Prng::stream(4, "control/bytes");
    let lens = Lens::Past(1);
    let mut explorer = Explorer::of(&world.shape, lens, &log.iter().collect::<Vec<_>>()).unwrap();
    explorer.prepare(1_000, &mut prng);
    let mut writer = Writer::new();
    explorer.encode(&mut writer);
    let bytes = writer.into_bytes();
    let mut again = Explorer::decode(&mut Reader::new(&bytes)).unwrap();
    let mut writer = Writer::new();
    again.encode(&mut writer);
    assert!(writer.as_bytes() == bytes);
    for episode in world.log(60).iter().skip(40) {
        let mut draws = [prng.clone(), prng.clone()];
        for (explorer, draw) in [&mut explorer, &mut again].into_iter().zip(&mut draws) {
            explorer.learn(episode);
            explorer.prepare(1_000, draw);
        }
        let past = &episode.steps[..4];
        let seen = &episode.steps[4].observation;
        assert_eq!(explorer.act(past, seen), again.act(past, seen));
        prng = draws[0].clone();
    }
    for _ in 0..4_000 {
        let mut damaged = bytes.clone();
        let place = prng.below(bytes.len() as u64) as usize;
        damaged[place] ^= 1 << prng.below(8);
        damaged.truncate(prng.below(2 * bytes.len() as u64) as usize);
        if let Ok(mut other) = Explorer::decode(&mut Reader::new(&damaged)) {
            other.prepare(1_000, &mut prng);
            other.act(&[], &Bits::ZERO);
        }
    }
}

/// A cue at the start, a corridor of four cells that all look alike, and a fork that pays on the side of the cue.
fn fork() -> World {
    World {
        shape: shape(2, 3, 12, (0, 1_000)),
        start: 100,
        rule: |state, action, prng| match (state, action) {
            // The cue is drawn on the way out of the first room and shown in the second.
            (100, _) => (Some(10 * prng.below(2)), 0),
            (state, 0) => (Some(state / 10 * 10 + (state % 10 + 1).min(5)), 0),
            (state, side) if state % 10 == 5 => (None, 1_000 * i32::from(u64::from(side) == 1 + state / 10)),
            (state, _) => (Some(state), 0),
        },
        see: |state| match (state, state % 10) {
            (100, _) | (_, 1..=4) => 0,
            (_, 5) => 3,
            (cue, _) => 1 + cue / 10,
        },
    }
}

#[test]
fn a_cue_is_recalled_until_it_is_asked_for() {
    let world = fork();
    let log = world.log(1_500);
    let episodes: Vec<&Episode> = log.iter().collect();
    let planned = PlannedControl::of(&world.shape, &episodes, None, false, &mut means()).unwrap();
    let policy = planned.stated.unwrap().policy;
    assert!(planned.words.ends_with("states of what was"), "{}", planned.words);
    assert!(990 <= world.mean(&policy), "{}: {}", planned.words, world.mean(&policy));
}

#[test]
fn a_switch_that_nobody_sees_is_followed() {
    // One action turns a lamp on or off, another pays if it is on and turns it off.
    let world = World {
        shape: shape(1, 3, 12, (-1_000, 1_000)),
        start: 0,
        rule: |lamp, action, _| match (lamp, action) {
            (lamp, 0) => (Some(1 - lamp), 0),
            (lamp, 1) => (Some(0), if lamp == 1 { 1_000 } else { -1_000 }),
            (lamp, _) => (Some(lamp), 0),
        },
        see: |_| 0,
    };
    let log = world.log(400);
    let planned =
        PlannedControl::of(&world.shape, &log.iter().collect::<Vec<_>>(), None, false, &mut means()).unwrap();
    assert_eq!(world.mean(&planned.stated.unwrap().policy), 6_000, "{}", planned.words);
}

#[test]
fn evidence_that_adds_up_is_tallied() {
    // Behind which of two doors the prize lies is drawn by the first listening, and four of five times heard right.
    let world = World {
        shape: shape(2, 4, 16, (-1_000, 1_000)),
        start: 0,
        rule: |state, action, prng| {
            let side = if state == 0 { prng.below(2) } else { (state - 1) / 2 };
            let heard = if prng.below(5) == 0 { 1 - side } else { side };
            match action {
                0 | 1 => (Some(1 + 2 * side + heard), -20),
                door => (None, if u64::from(door) == 2 + side { 1_000 } else { -1_000 }),
            }
        },
        see: |state| if state == 0 { 0 } else { 1 + (state - 1) % 2 },
    };
    let log = world.log(6_000);
    let episodes: Vec<&Episode> = log.iter().collect();
    let (recall, _) = find_memory(&world.shape, &episodes, &mut means()).unwrap();
    let after =
        |heard: &[u64]| heard.iter().fold(0, |state, side| recall.after(state, &Bits([*side, 0, 0, 0]), 0));
    // What is heard once for either side is as if nothing was heard.
    assert!([after(&[1, 2]), after(&[2, 1]), after(&[1, 1, 2, 2])].iter().all(|state| *state == after(&[])));
    assert!(after(&[1, 1, 2]) == after(&[1]) && after(&[1]) != after(&[1, 1]) && after(&[1]) != after(&[2]));
    let planned = PlannedControl::of(&world.shape, &episodes, None, false, &mut means()).unwrap();
    // Listening once brings 580, until one side is two ahead 823.
    let mean = world.mean(&planned.stated.unwrap().policy);
    assert!(800 < mean, "{mean} by {}", planned.words);
}

#[test]
fn what_an_action_brought_is_tallied_a_step_later() {
    // Two arms, one of which pays in this episode, four of five times; the other pays one of five times.
    let world = World {
        shape: shape(2, 2, 10, (0, 1_000)),
        start: 0,
        rule: |state, action, prng| {
            let good = if state == 0 { prng.below(2) } else { (state - 1) / 2 };
            let is_paid = (u64::from(action) == good) == (prng.below(5) != 0);
            (Some(1 + 2 * good + u64::from(is_paid)), 1_000 * i32::from(is_paid))
        },
        see: |state| if state == 0 { 0 } else { 1 + (state - 1) % 2 },
    };
    let log = world.log(2_000);
    let planned =
        PlannedControl::of(&world.shape, &log.iter().collect::<Vec<_>>(), None, false, &mut means()).unwrap();
    // Staying with what paid last brings 6,600, the best there is 7,214.
    let mean = world.mean(&planned.stated.unwrap().policy);
    assert!(7_050 < mean, "{mean} by {}", planned.words);
}

#[test]
fn where_nothing_is_hidden_nothing_is_recalled() {
    for world in [corridor(), investment()] {
        let log = world.log(1_500);
        assert!(find_memory(&world.shape, &log.iter().collect::<Vec<_>>(), &mut means()).is_none());
    }
    // A walk by chance in a ring with rewards by chance: the past tells nothing.
    let world = World {
        shape: shape(2, 2, 16, (0, 1_000)),
        start: 0,
        rule: |place, action, prng| {
            (Some((place + prng.below(2) + u64::from(action)) % 4), 1_000 * prng.below(2) as i32)
        },
        see: |place| place,
    };
    for episodes in [50, 500, 2_000] {
        let log = world.log(episodes);
        assert!(find_memory(&world.shape, &log.iter().collect::<Vec<_>>(), &mut means()).is_none());
    }
}

#[test]
fn a_lens_that_recalls_comes_back_from_its_bytes_and_damage_is_no_panic() {
    let world = fork();
    let log = world.log(800);
    let episodes: Vec<&Episode> = log.iter().collect();
    let (recall, _) = find_memory(&world.shape, &episodes, &mut means()).unwrap();
    let lens = Lens::Recalled(std::sync::Arc::new(recall));
    let mut explorer = Explorer::of(&world.shape, lens, &episodes[..50]).unwrap();
    let bytes = |explorer: &Explorer| {
        let mut writer = Writer::new();
        explorer.encode(&mut writer);
        writer.into_bytes()
    };
    let whole = bytes(&explorer);
    let again = Explorer::decode(&mut Reader::new(&whole)).unwrap();
    assert!(bytes(&again) == whole && again.lens() == explorer.lens());
    let mut prng = Prng::stream(5, "control/recall");
    for _ in 0..16 {
        explorer.prepare(1_000, &mut prng);
        let prepared = bytes(&explorer);
        let mut reader = Reader::new(&prepared);
        assert!(bytes(&Explorer::decode(&mut reader).unwrap()) == prepared && reader.finish().is_ok());
    }
    let whole = bytes(&explorer);
    for _ in 0..4_000 {
        let mut damaged = whole.clone();
        let place = prng.below(whole.len().min(400) as u64) as usize;
        damaged[place] ^= 1 << prng.below(8);
        if let Ok(mut other) = Explorer::decode(&mut Reader::new(&damaged)) {
            other.prepare(1_000, &mut prng);
            other.act(&log[0].steps, &Bits::ZERO);
        }
    }
}
