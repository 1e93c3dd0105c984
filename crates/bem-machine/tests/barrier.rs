//! What a barrier does between episodes: priors from group advantages, and the tables in SHARED.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Outcome};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_learn::group_advantage::{EpisodeOutcome, GroupParameters, update};
use bem_machine::config::GenesisConfig;
use bem_machine::machine::Machine;
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::memory::segment::{Caller, Segment};
use bem_machine::memory::tables::{PublishedTables, expert_word};
use bem_machine::route::directory::RouteInput;
use bem_machine::trace::TraceEvent;
use support::{Noise, random_expert};

const FAMILY: FamilyIndex = FamilyIndex(0);

fn machine(config: GenesisConfig, world: &Noise, experts: usize, sticky: bool) -> Machine {
    let mut prng = Prng::stream(1, "tests/barrier");
    let mut machine = Machine::new(config.clone(), 1);
    machine.add_family(world.shape.clone()).unwrap();
    let layout = machine.family(FAMILY).unwrap().layout().clone();
    for index in 0..experts {
        let parts = random_expert(&mut prng, &config, &layout, sticky && index % 2 == 1, false);
        machine.install(FAMILY, parts).unwrap();
    }
    machine
}

/// Plays one episode and returns its task, its first bucket, its normalised payoff and the arms it used.
fn play(machine: &mut Machine, world: &mut Noise, task: u64) -> EpisodeOutcome {
    world.reset();
    machine.begin(FAMILY, TaskSerial(task)).unwrap();
    let first_bucket = world.observation.get(0);
    let mut total = 0;
    loop {
        let action = machine.act(&world.observation).unwrap();
        let outcome = world.step(action);
        total += i64::from(outcome.reward);
        machine.learn(&outcome).unwrap();
        if outcome.done {
            break;
        }
    }
    let arms = machine.trace_mut().drain(|records| {
        let arm = |record| match TraceEvent::from_record(record) {
            Some(TraceEvent::Step { arm, .. }) => Some(u32::from(arm)),
            _ => None,
        };
        records.iter().filter_map(|record| arm(*record)).collect()
    });
    let loss = machine.family(FAMILY).unwrap().payoff().episode_loss(total);
    let payoff = Fixed::from_raw((1 << 32) - loss.to_raw() as i64);
    EpisodeOutcome { task, first_bucket: u32::from(first_bucket), payoff, arms }
}

#[test]
fn priors_move_by_the_mean_advantage_within_task_and_first_bucket() {
    for sticky in [false, true] {
        let config = GenesisConfig { state_bits: 128, group_period: 40, ..GenesisConfig::default() };
        let mut world = Noise::new(5, 6, 4, 12, 0);
        let mut machine = machine(config, &world, 6, sticky);
        machine.split(FAMILY, 0, &[RouteInput::State(0)]).unwrap();
        let episodes: Vec<EpisodeOutcome> =
            (0..40).map(|episode| play(&mut machine, &mut world, episode % 3)).collect();
        assert!(machine.is_barrier_due());
        let parameters = GroupParameters {
            rate: Fixed::from_ratio(1, 10),
            spread_min: Fixed::from_ratio(1, 1_000),
            size_max: 8,
        };
        let want: Vec<_> = update(&parameters, &episodes)
            .into_iter()
            .filter(|change| change.change != Fixed::ZERO)
            .map(|change| (FAMILY, change))
            .collect();
        assert!(want.iter().any(|(_, change)| Fixed::ZERO < change.change));
        let before = machine.family(FAMILY).unwrap().clone();
        let moved = machine.barrier();
        assert_eq!(moved, want);
        assert!(!machine.is_barrier_due());
        let family = machine.family(FAMILY).unwrap();
        for slot in 0..7 {
            let bucket = |family: &bem_machine::family::Family| match family.is_sticky(slot) {
                true => family.episode_bucket().prior(slot),
                false => family.buckets()[1].prior(slot),
            };
            let sum: i64 = moved
                .iter()
                .filter(|(_, change)| change.arm as usize == slot)
                .map(|(_, change)| change.change.to_raw())
                .sum();
            // A prior has 24 fractional bits, and each of the three tasks may round once.
            let got = bucket(family).to_raw() - bucket(&before).to_raw();
            assert!(got.abs_diff(sum) <= 3 << 8, "slot {slot}: {got} {sum}");
        }
        assert!(machine.barrier().is_empty(), "episodes count once");
    }
}

#[test]
fn episodes_survive_a_snapshot_and_those_of_another_pool_say_nothing() {
    let config = GenesisConfig { state_bits: 128, group_period: 16, ..GenesisConfig::default() };
    let mut world = Noise::new(6, 6, 4, 12, 0);
    let mut original = machine(config.clone(), &world, 5, false);
    (0..10).for_each(|_| drop(play(&mut original, &mut world, 1)));
    let mut writer = Writer::new();
    original.encode(&mut writer);
    let mut copy: Machine = Machine::decode(&mut Reader::new(writer.as_bytes())).unwrap();
    let mut changed = original.clone();
    let layout = changed.family(FAMILY).unwrap().layout().clone();
    changed.install(FAMILY, random_expert(&mut Prng::quick(9), &config, &layout, false, false)).unwrap();
    let moved = original.barrier();
    assert!(!moved.is_empty());
    assert_eq!(copy.barrier(), moved);
    assert!(changed.barrier().is_empty());
}

fn check_tables(machine: &Machine) {
    let tables = PublishedTables::new(machine.shared().view(Caller::Core)).unwrap();
    for index in 0..machine.family_count() {
        let family = machine.family(FamilyIndex(index as u16)).unwrap();
        assert_eq!(tables.bucket(index, None).unwrap(), family.episode_bucket().words());
        for (place, bucket) in family.buckets().iter().enumerate() {
            assert_eq!(tables.bucket(index, Some(place as u16)).unwrap(), bucket.words(), "bucket {place}");
        }
        assert_eq!(tables.bucket(index, Some(family.buckets().len() as u16)), None);
        let directory = family.directory();
        for signature in 0..2 * directory.entries().len() as u64 {
            assert_eq!(tables.bucket_of(index, signature), Some(directory.bucket(signature)));
        }
        let declared = tables.declared(index).unwrap();
        assert!(declared.iter().map(|(input, _)| input).eq(directory.inputs()));
        for slot in 0..16 {
            let row = tables.expert(index, slot).unwrap();
            let Some(expert) = family.expert(slot) else {
                assert!(row.iter().all(|word| *word == 0));
                continue;
            };
            assert_eq!(row[expert_word::ID], u64::from(expert.id().to_word()));
            assert_eq!(row[expert_word::FLAGS] & 3, 1 | u64::from(expert.profile().sticky) << 1);
            assert_eq!(row[expert_word::COST], u64::from(expert.cost()));
            assert_eq!(row[expert_word::GATES], expert.placed().circuit().gates().len() as u64);
        }
    }
    assert_eq!(tables.bucket(machine.family_count(), None), None);
}

#[test]
fn the_words_of_bandit_route_meta_and_expert_equal_the_tables_after_a_barrier() {
    let config = GenesisConfig { state_bits: 128, ..GenesisConfig::default() };
    let mut world = Noise::new(7, 6, 4, 12, 0);
    let mut machine = machine(config, &world, 7, true);
    let other = machine.add_family(Noise::new(8, 3, 2, 5, 0).shape).unwrap();
    machine.install_boot_experts(other, &bem_machine::boot::experts(2, 16)).unwrap();
    for bit in 0..5 {
        machine.split(FAMILY, 0, &[RouteInput::State(bit), RouteInput::State(bit + 1)]).unwrap();
    }
    machine.split(FAMILY, 1, &[RouteInput::Shared { address: 7, bit: 3 }]).unwrap();
    for round in 0..5 {
        (0..20).for_each(|_| drop(play(&mut machine, &mut world, round)));
        machine.barrier();
        check_tables(&machine);
        let tables = PublishedTables::new(machine.shared().view(Caller::Core)).unwrap();
        assert_eq!(tables.step(), machine.steps().0);
    }
    // A word that somebody changed is put right at the next barrier, and changes nothing that is learned.
    let family = machine.family(FAMILY).unwrap().clone();
    machine.shared_mut().view_mut(Caller::Core).write(Segment::Bandit, 64 + 16, 9_999).unwrap();
    assert_eq!(machine.family(FAMILY).unwrap().buckets(), family.buckets());
    machine.publish();
    check_tables(&machine);
    assert!(PublishedTables::new(machine.shared().view(Caller::Environment)).is_err());
}

#[test]
fn a_family_that_does_not_fit_is_listed_with_nothing_and_damaged_contents_never_panic() {
    let config = GenesisConfig { words_bandit: 64 + 3 * 128, words_expert: 64, ..GenesisConfig::default() };
    let world = Noise::new(9, 6, 4, 12, 0);
    let mut machine = machine(config, &world, 2, false);
    machine.split(FAMILY, 0, &[RouteInput::State(0)]).unwrap();
    machine.barrier();
    let tables = PublishedTables::new(machine.shared().view(Caller::Core)).unwrap();
    assert!(tables.bucket(0, Some(1)).is_some());
    assert_eq!(tables.expert(0, 0), None);
    machine.split(FAMILY, 0, &[RouteInput::State(1)]).unwrap();
    machine.barrier();
    let tables = PublishedTables::new(machine.shared().view(Caller::Core)).unwrap();
    assert_eq!(tables.bucket(0, None), None);
    assert!(tables.bucket_of(0, 3).is_some());
    let mut prng = Prng::quick(4);
    for _ in 0..2_000 {
        let mut damaged = machine.shared().clone();
        for segment in [Segment::Bandit, Segment::RouteMeta, Segment::Expert] {
            let word = prng.below(70) as u32 % damaged.map().size(segment);
            let value = if prng.bit() { prng.next_u64() } else { prng.below(600) };
            damaged.view_mut(Caller::Boot).write(segment, word, value).unwrap();
        }
        let tables = PublishedTables::new(damaged.view(Caller::Core)).unwrap();
        let _ = (tables.bucket(0, Some(2)), tables.expert(0, 3), tables.declared(0));
        let _ = tables.bucket_of(0, prng.next_u64());
    }
}

#[test]
fn the_barrier_lets_groups_speak_for_the_better_expert() {
    // Two experts that always act alike but for the action: the world pays action 1 only.
    let config = GenesisConfig { group_period: 16, ..GenesisConfig::default() };
    let world = Noise::new(1, 1, 2, 4, 0);
    let mut machine = Machine::new(config, 3);
    machine.add_family(world.shape.clone()).unwrap();
    machine.install_boot_experts(FAMILY, &bem_machine::boot::experts(2, 16)[..3]).unwrap();
    let mut used = [false; 16];
    for _ in 0..12 {
        for task in 0..16 {
            machine.begin(FAMILY, TaskSerial(task % 2)).unwrap();
            let action = machine.act(&Bits::ZERO).unwrap();
            let reward = if action == 1 { 1_000 } else { -500 };
            machine.learn(&Outcome { reward, done: true, bad: false }).unwrap();
            machine.trace_mut().drain(|records| {
                for record in records {
                    if let Some(TraceEvent::Step { arm, action, .. }) = TraceEvent::from_record(*record) {
                        used[usize::from(arm)] |= action == 1;
                    }
                }
            });
        }
        machine.barrier();
    }
    let bucket = &machine.family(FAMILY).unwrap().buckets()[0];
    let (good, bad): (Vec<usize>, Vec<usize>) =
        (0..16).filter(|arm| bucket.live() >> arm & 1 == 1).partition(|arm| used[*arm]);
    let best = |arms: &[usize]| arms.iter().map(|arm| bucket.prior(*arm)).max().unwrap();
    assert!(best(&bad) < best(&good), "{good:?} {bad:?}");
}
