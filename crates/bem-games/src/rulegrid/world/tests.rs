//! The grid tick by tick, on stages set by hand.

use super::waypoints::graded_credit;
use super::*;
use crate::rulegrid::config::{CounterEvidence, Credit, Delay, DualCue, Metric, Tolerance};
use crate::rulegrid::view::View;

fn world(config: GridConfig, seed: u64) -> World {
    assert_eq!(config.check(), Ok(()));
    let mut world = World::new(config);
    world.reset(seed, 0);
    world
}

/// Puts the agent next to nothing but the waypoints given.
fn staged(waypoints: &[(i32, i32)], agent: (i32, i32), config: GridConfig) -> World {
    let mut world = world(config, 1);
    world.hazards.clear();
    world.resources.clear();
    world.waypoints = waypoints.iter().map(|(x, y)| Cell { x: *x, y: *y }).collect();
    world.agent = Cell { x: agent.0, y: agent.1 };
    world
}

fn exact() -> GridConfig {
    GridConfig { tolerance: None, ..GridConfig::of_difficulty(0) }
}

#[test]
fn features_that_are_off_leave_every_stream_untouched() {
    let off = GridConfig::of_difficulty(4);
    let zero_band = |cells| {
        let tolerance = off.tolerance.map(|tolerance| Tolerance { cells, fraction_milli: 0, ..tolerance });
        GridConfig { tolerance, ..off.clone() }
    };
    let pairs = [
        (off.clone(), GridConfig { counter_evidence: None, dual_cue: None, delay: None, ..off.clone() }),
        (GridConfig { tolerance: None, ..off.clone() }, zero_band(None)),
        (zero_band(Some(0)), zero_band(None)),
        (off.clone(), GridConfig { resource_weights: (1, 1), introduction: (0, u64::MAX), ..off.clone() }),
    ];
    for (left, right) in pairs {
        let (mut a, mut b) = (world(left, 9), world(right, 9));
        let mut moves = Prng::stream(2, "moves");
        for _ in 0..300 {
            let action = moves.below(5) as u16;
            assert_eq!(a.step(action), b.step(action));
            assert_eq!(
                (a.agent, &a.hazards, &a.resources, &a.waypoints),
                (b.agent, &b.hazards, &b.resources, &b.waypoints)
            );
            assert_eq!((&a.layout, &a.dynamics), (&b.layout, &b.dynamics));
        }
    }
}

#[test]
fn the_band_decides_what_counts_as_there() {
    let with_band = |cells| {
        let tolerance = Tolerance {
            fraction_milli: 0,
            cells: Some(cells),
            metric: Metric::Chebyshev,
            credit: Credit::Hard,
        };
        GridConfig { tolerance: Some(tolerance), ..exact() }
    };
    let mut near = staged(&[(5, 5), (8, 8)], (2, 5), with_band(2));
    assert_eq!(near.step(3).event, Event::Waypoint);
    let mut far = staged(&[(5, 5), (8, 8)], (2, 5), exact());
    assert_eq!(far.step(3).event, Event::None);
}

#[test]
fn graded_credit_falls_with_distance_as_the_exponential_does() {
    assert_eq!(graded_credit(0, 1_000), 1_000);
    assert_eq!([1, 2, 3].map(|distance| graded_credit(distance, 1_000)), [367, 135, 49]);
    assert_eq!(graded_credit(1, 2_000), 606);
}

#[test]
fn a_later_waypoint_is_not_erased_by_walking_over_it() {
    let mut world = staged(&[(5, 5), (4, 2)], (3, 2), exact());
    assert_eq!(world.step(3).event, Event::None);
    assert_eq!(world.counts.out_of_order, 1);
    for action in [1, 1, 1] {
        world.step(action);
    }
    assert_eq!(world.step(3).event, Event::Waypoint);
    for action in [2, 0, 0] {
        world.step(action);
    }
    assert_eq!(world.step(0).event, Event::SequenceComplete);
}

#[test]
fn validity_falls_to_its_floor_only_while_a_sequence_runs_and_comes_back() {
    let evidence = CounterEvidence {
        interval: 1,
        chance_milli: 1_000,
        step_milli: 300,
        floor_milli: 200,
        ..Default::default()
    };
    let config = GridConfig { counter_evidence: Some(evidence), timeout: 100, ..exact() };
    let mut world = staged(&[(5, 5), (8, 8)], (4, 5), config);
    world.step(4);
    world.step(4);
    assert_eq!(world.validity_milli, 1_000, "nothing is in progress yet");
    assert_eq!(world.step(3).event, Event::Waypoint);
    let levels: Vec<u32> = (0..4)
        .map(|_| {
            world.step(4);
            world.validity_milli
        })
        .collect();
    assert_eq!(levels, [400, 200, 200, 200]);
    let events = world.counts.counter_evidence_events;
    world.step(4);
    assert_eq!(world.counts.counter_evidence_events, events, "at the floor nothing more is counted");
    world.agent = Cell { x: 8, y: 7 };
    assert_eq!(world.step(1).reward, 160, "the reward uses the validity before it comes back");
    assert_eq!(world.validity_milli, 1_000);
}

#[test]
fn taking_a_cue_too_early_makes_the_episode_invalid() {
    let cue = DualCue { tags: (0, 1), active_ticks_min: 10, replace: false };
    let config = GridConfig { dual_cue: Some(cue), resource_weights: (1, 1), ..exact() };
    let mut world = staged(&[(8, 8)], (3, 3), config);
    world.resources = vec![(Cell { x: 5, y: 3 }, 0), (Cell { x: 7, y: 3 }, 1)];
    world.step(3);
    assert_eq!((world.counts.ticks_both_cues, world.is_valid()), (1, true));
    world.step(3);
    assert!(!world.is_valid());
}

#[test]
fn a_kind_appears_on_the_first_reset_after_its_step() {
    let config = GridConfig { resource_weights: (1, 1), introduction: (5, 50), resources: 4, ..exact() };
    let mut world = World::new(config);
    let mut kinds = |global_step| {
        world.reset(3, global_step);
        let mut kinds: Vec<u8> = world.resources.iter().map(|(_, kind)| *kind).collect();
        kinds.sort_unstable();
        kinds
    };
    assert_eq!(kinds(4), [0u8; 0]);
    assert_eq!(kinds(5), [0, 0, 0, 0]);
    assert_eq!(kinds(49), [0, 0, 0, 0], "crossing in mid-episode has no effect");
    assert_eq!(kinds(50), [0, 0, 1, 1]);
}

#[test]
fn a_delay_pays_once_after_its_ticks_and_leaving_forfeits_it() {
    let tolerance =
        Tolerance { fraction_milli: 0, cells: Some(1), metric: Metric::Chebyshev, credit: Credit::Hard };
    let config = GridConfig {
        delay: Some(Delay { ticks: 3, distractor: false }),
        tolerance: Some(tolerance),
        timeout: 2,
        ..exact()
    };
    let mut patient = staged(&[(5, 5), (8, 8)], (3, 5), config.clone());
    assert_eq!(patient.step(3).event, Event::DelayOpen);
    let events: Vec<Event> = (0..3).map(|_| patient.step(4).event).collect();
    assert_eq!(events, [Event::None, Event::None, Event::DelayPaidWaypoint]);
    assert_eq!((patient.counts.delays_paid, patient.counts.misses), (1, 0), "the timer stood still");
    let mut hasty = staged(&[(5, 5), (8, 8)], (3, 5), config);
    hasty.step(3);
    assert_eq!(hasty.step(2).event, Event::DelayBroken);
    assert_eq!((hasty.counts.delays_broken, hasty.next, hasty.in_progress), (1, 0, false));
}

#[test]
fn all_features_work_in_one_episode() {
    let config = GridConfig {
        counter_evidence: Some(CounterEvidence { interval: 5, ..Default::default() }),
        dual_cue: Some(DualCue { tags: (0, 1), active_ticks_min: 10, replace: true }),
        resource_weights: (1, 1),
        resources: 4,
        timeout: 200,
        waypoints: 6,
        ..GridConfig::of_difficulty(0)
    };
    let mut world = world(config, 5);
    for _ in 0..200 {
        let target = world.pending().unwrap_or(world.agent);
        let action = if target.x != world.agent.x {
            if target.x < world.agent.x { 2 } else { 3 }
        } else if target.y < world.agent.y {
            0
        } else {
            1
        };
        // Dawdle, so that targets stay due long enough to degrade.
        world.step(if world.steps.is_multiple_of(3) { action } else { 4 });
    }
    assert!(0 < world.counts.within_band_ticks && 0 < world.counts.counter_evidence_events);
    assert!(10 <= world.counts.ticks_both_cues);
}

#[test]
fn the_view_does_not_tell_later_waypoints_apart_nor_show_what_is_behind_it() {
    let mut plain = staged(&[(5, 5), (6, 4), (4, 3)], (5, 3), exact());
    let mut relabelled = staged(&[(5, 5), (4, 3), (6, 4)], (5, 3), exact());
    (relabelled.since_pending, relabelled.validity_milli, relabelled.in_progress) = (7, 400, true);
    for action in [0, 3, 2, 1, 4] {
        assert_eq!(View::of(&plain), View::of(&relabelled));
        plain.step(action);
        relabelled.step(action);
    }
    let (seen, due) = (View::of(&plain), staged(&[(6, 4), (5, 5), (4, 3)], (5, 3), exact()));
    assert_ne!(seen.planes, View::of(&due).planes, "which waypoint is due can be seen");
}

#[test]
fn death_is_reported_before_the_step_limit() {
    let mut world = staged(&[(8, 8)], (3, 3), GridConfig { steps: 1, hazard_harm: 2_000, ..exact() });
    world.hazards = vec![Cell { x: 4, y: 3 }];
    assert_eq!(world.step(3).done, DoneCause::HealthDepleted);
}
