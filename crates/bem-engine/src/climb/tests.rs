//! What a climb promises: order does not matter, snapshots continue, the library is used, practice never ends.

use super::*;
use crate::shard::Shard;
use bem_base::fixed::Fixed;
use bem_games::compose::TaskTree;
use bem_machine::memory::context::FamilyIndex;

fn config(seed: u64, families: &[&str]) -> ClimbConfig {
    let families = families.iter().map(|name| name.to_string()).collect();
    ClimbConfig { seed, stages: 3, unit_steps: 5_000, families, parameters: Arc::default() }
}

fn climb() -> Climb {
    Climb::new(config(3, &["parity", "majority", "parity_stream"])).unwrap()
}

/// One thread, in order: the history that every other way must lead to.
fn in_order(climb: &mut Climb, units: usize) -> Vec<String> {
    let mut tasks = Vec::new();
    for _ in 0..units {
        let unit = climb.next(&BTreeSet::new()).unwrap();
        let result = climb.work(&unit, &mut || true).unwrap().unwrap();
        tasks.push(unit.task.clone());
        climb.take(&result);
    }
    tasks
}

/// So many units under way, the latest finished first, taken in turn until the limit is reached. Returns the units that were
/// worked on.
fn out_of_order(climb: &mut Climb, at_once: usize, steps_max: u64) -> usize {
    let mut turns = Turns::in_order(climb, steps_max);
    let mut under_way: Vec<Assignment> = Vec::new();
    let mut worked = 0;
    while climb.steps() < steps_max {
        while under_way.len() < at_once
            && let Some(assignment) = turns.begin(climb)
        {
            under_way.push(assignment);
        }
        let assignment = under_way.pop().expect("what the climb waits for is always begun");
        turns.finish(assignment.work(&mut || true).unwrap().unwrap());
        worked += 1;
        while climb.steps() < steps_max
            && let Some(result) = turns.next(climb)
        {
            climb.take(&result);
        }
    }
    worked
}

#[test]
fn units_worked_on_out_of_order_are_taken_in_order() {
    let mut straight = climb();
    in_order(&mut straight, 14);
    for at_once in [1, 2, 3, 7] {
        let mut crooked = climb();
        let worked = out_of_order(&mut crooked, at_once, straight.steps());
        assert!(crooked == straight, "{at_once} at once");
        assert_eq!((crooked.steps(), crooked.head()), (straight.steps(), straight.head()));
        // One at a time nothing is worked on in vain.
        assert!(14 <= worked && (1 < at_once || worked == 14), "{worked} with {at_once} at once");
    }
}

/// The first unit of the first family stays under way: the others go on as far as the limit lets them, and what they did is
/// taken in the order of the climb once it is finished.
#[test]
fn behind_one_long_unit_other_families_go_on_and_nothing_that_counts_is_done_twice() {
    let mut straight = climb();
    let steps_max = {
        in_order(&mut straight, 14);
        straight.steps()
    };
    let mut crooked = climb();
    let mut turns = Turns::in_order(&crooked, steps_max);
    let long = turns.begin(&crooked).unwrap();
    let mut begun = BTreeSet::new();
    while let Some(assignment) = turns.begin(&crooked) {
        assert!(begun.insert((assignment.unit.track, assignment.unit.number)), "begun twice");
        assert!(begun.len() < 64, "what lies beyond the limit is not begun");
        turns.finish(assignment.work(&mut || true).unwrap().unwrap());
        assert!(turns.next(&crooked).is_none(), "the long one comes first");
    }
    let each = |track: usize| begun.iter().filter(|(place, _)| *place == track).count();
    assert!(1 < each(1) && 1 < each(2), "{begun:?}");
    turns.finish(long.work(&mut || true).unwrap().unwrap());
    let mut taken = 0;
    loop {
        while crooked.steps() < steps_max
            && let Some(result) = turns.next(&crooked)
        {
            crooked.take(&result);
            taken += 1;
        }
        if steps_max <= crooked.steps() {
            break;
        }
        let assignment = turns.begin(&crooked).expect("the limit is not reached");
        turns.finish(assignment.work(&mut || true).unwrap().unwrap());
    }
    assert!(crooked == straight && taken == 14);
}

#[test]
fn a_snapshot_continues_as_if_nothing_had_happened() {
    let mut whole = climb();
    for units in [0, 1, 8, 12] {
        in_order(&mut whole, units);
        let bytes = whole.snapshot();
        let resumed = Climb::restore(&bytes).unwrap();
        assert!(resumed == whole && resumed.snapshot() == bytes);
    }
    let bytes = whole.snapshot();
    let mut resumed = Climb::restore(&bytes).unwrap();
    assert_eq!(in_order(&mut whole, 6), in_order(&mut resumed, 6));
    assert_eq!(resumed.head(), whole.head());
    assert!(resumed.snapshot() == whole.snapshot());
    for length in (0..bytes.len()).step_by(7.max(bytes.len() / 300)) {
        assert!(Climb::restore(&bytes[..length]).is_err());
    }
}

/// What an earlier rung lends is measured for thousands of steps before the log is searched again; a structure that a short log
/// shows must be found in the longer one too.
#[test]
fn a_longer_log_hides_no_structure_that_a_short_one_shows() {
    let mut climb =
        Climb::new(ClimbConfig { stages: 6, unit_steps: 10_000, ..config(2, &["permute"]) }).unwrap();
    assert_eq!(in_order(&mut climb, 2), ["permute{length=1}", "permute{length=4}"]);
    assert_ne!(in_order(&mut climb, 1), ["permute{length=4}"]);
}

#[test]
fn damaged_snapshots_are_refused_or_have_one_spelling() {
    let mut climb = climb();
    in_order(&mut climb, 12);
    let bytes = climb.snapshot();
    let mut prng = bem_base::prng::Prng::stream(1, "damage");
    for _ in 0..1_000 {
        let mut damaged = bytes.clone();
        let place = prng.below(bytes.len() as u64) as usize;
        damaged[place] ^= 1 << prng.below(8);
        if let Ok(other) = Climb::restore(&damaged) {
            assert!(
                other.snapshot() == damaged,
                "byte {place} of {}: {:?}",
                bytes.len(),
                other.snapshot().iter().zip(&damaged).position(|(a, b)| a != b)
            );
        }
    }
}

#[test]
fn a_stopped_unit_leaves_nothing_behind() {
    let climb = climb();
    let unit = climb.next(&BTreeSet::new()).unwrap();
    assert!(climb.work(&unit, &mut || false).unwrap().is_none());
}

#[test]
fn a_rung_that_resists_is_tried_again_with_four_times_the_steps_and_then_left() {
    let rungs = vec![vec!["popcount{n=60}".to_string()]];
    let config = ClimbConfig { unit_steps: 10, ..config(1, &["popcount"]) };
    let mut climb = Climb::with_rungs(config, rungs).unwrap();
    let mut budgets = Vec::new();
    while climb.is_climbing() {
        budgets.push(climb.next(&BTreeSet::new()).unwrap().budget);
        in_order(&mut climb, 1);
    }
    assert_eq!(budgets, [10, 40, 160, 640]);
    assert!(climb.tracks()[0].is_stuck());
    assert!(matches!(climb.next(&BTreeSet::new()).unwrap().purpose, Purpose::Practice { .. }));
}

#[test]
fn a_climb_that_passes_over_what_resists_goes_on_with_the_next_rung_and_says_so_in_its_bytes() {
    let rungs = || vec![vec!["popcount{n=60}".to_string(), "popcount{n=1}".to_string()]];
    let config = ClimbConfig { unit_steps: 10, ..config(1, &["popcount"]) };
    let stays = Climb::with_rungs(config.clone(), rungs()).unwrap();
    let mut climb = Climb::with_rungs(config, rungs()).unwrap().passing_over(2);
    assert_eq!(climb.snapshot().len(), stays.snapshot().len() + 4);
    let mut rungs = Vec::new();
    while climb.is_climbing() {
        let unit = climb.next(&BTreeSet::new()).unwrap();
        if let Purpose::Rung { stage, attempt } = unit.purpose {
            rungs.push((stage, attempt, unit.task.clone()));
        }
        in_order(&mut climb, 1);
        let restored = Climb::restore(&climb.snapshot()).unwrap();
        assert!(restored == climb && restored.snapshot() == climb.snapshot());
    }
    let tried: Vec<(usize, u32)> = rungs.iter().map(|(stage, attempt, _)| (*stage, *attempt)).collect();
    assert!(tried.starts_with(&[(0, 0), (0, 1), (1, 0)]), "{tried:?}");
    assert!(climb.tracks()[0].is_at_top());
}

#[test]
fn whoever_has_taken_the_least_work_goes_first_and_practice_goes_last() {
    let mut climb = climb();
    let mut last = None;
    for _ in 0..16 {
        let key = climb.next(&BTreeSet::new()).unwrap().key();
        assert!(last.is_none_or(|last| last < key), "{last:?} {key:?}");
        last = Some(key);
        in_order(&mut climb, 1);
    }
    assert!(!climb.is_climbing());
}

#[test]
fn after_the_top_the_teacher_replays_bands_and_makes_templates_of_its_own() {
    let config = ClimbConfig { unit_steps: 1_000, ..config(5, &["reverse"]) };
    let rungs = vec![["length=2", "length=3"].map(|task| format!("reverse{{{task}}}")).to_vec()];
    let mut climb = Climb::with_rungs(config, rungs).unwrap();
    let tasks = in_order(&mut climb, 90);
    let track = &climb.tracks()[0];
    assert!(track.is_at_top());
    assert!(70 < track.practised.len());
    // Every template beyond the first eight came in through a TEACH_EDIT patch.
    assert!(8 < track.templates(), "no template was made by mutation");
    let composed = tasks.iter().filter(|task| !task.starts_with("reverse{")).count();
    assert!(0 < composed, "{tasks:?}");
    assert!(tasks.iter().all(|task| TaskTree::parse(task).is_ok()));
}

#[test]
fn what_keeps_failing_asks_the_teacher_for_tasks_that_show_it_more_often() {
    // Too few steps for what the teachers ask for.
    let families = ["parity_stream", "copy", "reverse"];
    let first = ["parity_stream{n=2}", "copy{length=1}", "reverse{length=1}"];
    let config = ClimbConfig { unit_steps: 48, ..config(4, &families) };
    let rungs = first.map(|task| vec![task.to_string()]).to_vec();
    let mut climb = Climb::with_rungs(config, rungs).unwrap();
    in_order(&mut climb, 60);
    let mut asked = 0;
    for track in climb.tracks() {
        // Each edit was judged as a patch and admitted; a task that was solved asks for nothing.
        let templates: Vec<String> =
            (0..track.templates()).filter_map(|index| track.template(index)).collect();
        for practised in &track.practised {
            assert!(practised.edits.iter().all(|edit| templates.contains(&edit.tree)));
            let of_practised = practised.edits.iter().filter(|edit| edit.situation.is_some()).count();
            assert!(of_practised == 0 || !practised.solved);
            asked += of_practised;
        }
    }
    assert!(0 < asked, "nothing was asked for");
    assert!(Climb::restore(&climb.snapshot()).unwrap() == climb);
}

/// The low rung is learned; on the high one the first thing installed is the same machine, and nothing is left to gain.
fn check_zero_shot(family: &str, low: &str, high: &str) {
    let rungs = vec![[low, high].map(|task| format!("{family}{{{task}}}")).to_vec()];
    let config = ClimbConfig { unit_steps: 40_000, ..config(11, &[family]) };
    let mut climb = Climb::with_rungs(config, rungs).unwrap();
    in_order(&mut climb, 1);
    let mut climb = Climb::restore(&climb.snapshot()).unwrap();
    let unit = climb.next(&BTreeSet::new()).unwrap();
    assert_eq!(
        unit.purpose,
        Purpose::Rung { stage: 1, attempt: 0 },
        "{family}: {}",
        climb.tracks()[0].climbed[0].words
    );
    let result = climb.work(&unit, &mut || true).unwrap().unwrap();
    let first = &result.solution.decisions[0];
    assert!(
        first.accepted && result.reused,
        "{family}: {} of {}",
        first.words,
        result.solution.learned.words
    );
    let score = result.solution.score().unwrap();
    assert_eq!(score, Fixed::ONE, "{family}: {}", first.words);
    climb.take(&result);
    assert!(climb.tracks()[0].is_at_top() && climb.tracks()[0].climbed[1].reused);
}

#[test]
fn what_was_learned_on_a_low_rung_is_tried_first_on_the_next_and_has_the_score_one() {
    check_zero_shot("parity_stream", "n=6", "n=60");
    check_zero_shot("dyck", "types=1,depth=2,length=8", "types=1,depth=16,length=64");
    check_zero_shot("add", "bits=3,form=serial", "bits=32,form=serial");
    check_zero_shot("reverse", "length=3", "length=24");
    check_zero_shot("stack_machine", "depth=3,horizon=12", "depth=24,horizon=64");
}

#[test]
fn another_familys_machine_is_borrowed_where_a_rung_resists() {
    // Serial addition learns its carry; subtraction looks the same and cannot use it, yet is offered it.
    let rungs = vec![
        vec!["add{bits=3,form=serial}".to_string(), "add{bits=4,form=serial}".to_string()],
        vec!["subtract{bits=1,form=serial}".to_string(), "subtract{bits=2,form=serial}".to_string()],
    ];
    let config = ClimbConfig { unit_steps: 4_000, ..config(2, &["add", "subtract"]) };
    let mut climb = Climb::with_rungs(config, rungs).unwrap();
    in_order(&mut climb, 4);
    let lent = climb.lent_to(1);
    assert!(!lent.is_empty() && lent.iter().all(|machine| climb.tracks[0].lent().contains(machine)));
    let unit = Unit {
        number: 2,
        purpose: Purpose::Rung { stage: 1, attempt: 1 },
        ..climb.tracks[1].next().unwrap()
    };
    assert!(unit.borrows() && !climb.assign(&unit).borrowed.is_empty());
}

#[test]
fn what_a_unit_holds_acts_from_the_first_step_of_the_next_unit_of_the_same_shape() {
    let mut climb = {
        let config = ClimbConfig { stages: 2, ..config(3, &["twice"]) };
        Climb::with_rungs(config, vec![vec!["majority{n=5}".to_string(), "majority{n=5}".to_string()]])
            .unwrap()
    };
    in_order(&mut climb, 1);
    let shard = climb.tracks()[0].shard().unwrap().clone();
    let family = |shard: &Shard| shard.machine().family(FamilyIndex(0)).unwrap().clone();
    assert!(family(&shard).held().member().is_some());
    in_order(&mut climb, 1);
    let [first, second] = &climb.tracks()[0].climbed[..] else { panic!("two tries") };
    assert!(first.solved && second.solved && Some(0) < first.steps_to_99);
    // The same circuit, without a search or a patch, and the machine counts on.
    assert_eq!((second.steps_to_99, second.applied, &second.policy), (Some(0), 0, &first.policy));
    let after = climb.tracks()[0].shard().unwrap();
    assert_eq!(after.machine().steps().0, first.steps + second.steps);
    assert_eq!(family(after).held(), family(&shard).held());
}

#[test]
fn unknown_and_repeated_families_are_named() {
    let error = Climb::new(config(1, &["chess"])).unwrap_err();
    assert!(error.to_string().starts_with("there is no ladder for \"chess\"; known are"), "{error}");
    let error = Climb::new(config(1, &["parity", "parity"])).unwrap_err();
    assert_eq!(error.to_string(), "family \"parity\" is named twice");
}

#[test]
fn a_unit_that_is_put_away_again_and_again_brings_the_same() {
    for task in ["parity_stream{n=12}", "sorting{keys=4,key_bits=2}"] {
        let climb = Climb::single("task", task, &Settings { budget: 2_500, ..Settings::new(2) });
        let unit = climb.next(&BTreeSet::new()).unwrap();
        let whole = climb.work(&unit, &mut || true).unwrap().unwrap();
        let (mut bytes, mut stops) = (None::<Vec<u8>>, 0);
        let pieced = loop {
            let mut looks = 0;
            let mut go_on = || {
                looks += 1;
                looks < 4
            };
            match climb.assign(&unit).go_on(bytes.as_deref(), &mut go_on).unwrap() {
                Worked::Done(result) => break result,
                Worked::PutAway(next) => {
                    stops += 1;
                    bytes = Some(next);
                }
            }
        };
        assert!(2 < stops, "{stops}");
        assert_eq!(pieced.solution.learned.chain_head, whole.solution.learned.chain_head);
        assert_eq!(pieced.solution.chronicle, whole.solution.chronicle);
        assert_eq!(pieced.solution.curve, whole.solution.curve);
        assert_eq!(pieced.solution.score(), whole.solution.score());
        assert_eq!(pieced.solution.decisions, whole.solution.decisions);
        // What cannot be read is worked out anew.
        let anew = climb.assign(&unit).go_on(Some(b"nonsense"), &mut || true).unwrap();
        let Worked::Done(anew) = anew else { panic!("nobody asked to stop") };
        assert_eq!(anew.solution.chronicle, whole.solution.chronicle);
    }
}
