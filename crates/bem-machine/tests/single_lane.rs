//! The fast single-lane step against the reference, bit for bit, and what its owner may rely on.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Outcome};
use bem_base::prng::Prng;
use bem_machine::config::{ChoiceRule, GenesisConfig, RouterKind};
use bem_machine::machine::{Machine, MachineError, Mode, Open};
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::memory::segment::{Caller, Segment};
use bem_machine::memory::shared::work_word;
use bem_machine::route::Router;
use bem_machine::route::directory::RouteInput;
use bem_machine::step::StepNumber;
use bem_machine::step::scalar::ReferenceMachine;
use bem_machine::trace::TraceEvent;
use bem_machine::turn::Turn;
use support::{Noise, random_expert, with_rule};

const FAMILY: FamilyIndex = FamilyIndex(0);

/// A machine with a random pool and a few splits, for worlds like this one.
fn random_machine(seed: u64, world: &Noise, sticky: bool, shared: bool, rule: u64) -> Machine {
    let mut prng = Prng::stream(seed, "tests/machine");
    let config = with_rule(GenesisConfig { state_bits: 128, ..GenesisConfig::default() }, rule);
    let mut machine = Machine::new(config.clone(), seed);
    assert_eq!(machine.add_family(world.shape.clone()), Ok(FAMILY));
    let layout = machine.family(FAMILY).unwrap().layout().clone();
    for index in 0..2 + prng.below(12) {
        let parts =
            random_expert(&mut prng, &config, &layout, sticky && index % 3 == 2, shared && index % 2 == 1);
        machine.install(FAMILY, parts).unwrap();
    }
    for _ in 0..prng.below(6) {
        let buckets = machine.family(FAMILY).unwrap().buckets().len() as u64;
        let bit = prng.below(u64::from(world.shape.observation_bits)) as u16;
        let _ = machine.split(FAMILY, prng.below(buckets) as u16, &[RouteInput::State(bit)]);
    }
    if prng.bit() {
        machine.retire(FAMILY, 1).unwrap();
    }
    machine
}

fn events(machine: &mut Machine) -> Vec<TraceEvent> {
    machine
        .trace_mut()
        .drain(|records| records.iter().map(|record| TraceEvent::from_record(*record).unwrap()).collect())
}

fn check_against_reference(seed: u64, sticky: bool, shared: bool, bad_in_32: u64, steps: u32, rule: u64) {
    let mut prng = Prng::stream(seed, "tests/shape");
    let (bits, actions) = (1 + prng.below(12) as u16, 1 + prng.below(9) as u16);
    let mut world = Noise::new(seed, bits, actions, 1 + prng.below(20) as u32, bad_in_32);
    let mut machine = random_machine(seed, &world, sticky, shared, rule);
    let mut reference = ReferenceMachine::new(
        machine.family(FAMILY).unwrap().clone(),
        machine.shared().clone(),
        machine.prng().clone(),
    );
    let mut taken = 0;
    while taken < steps {
        world.reset();
        machine.begin(FAMILY, TaskSerial(u64::from(taken))).unwrap();
        reference.begin();
        loop {
            let action = machine.act(&world.observation).unwrap();
            assert_eq!(action, reference.act(&world.observation));
            let outcome = world.step(action);
            machine.learn(&outcome).unwrap();
            reference.learn(&outcome);
            taken += 1;
            if outcome.done {
                break;
            }
        }
        let state: Vec<bool> =
            machine.lane().planes()[..reference.lane.state.len()].iter().map(|plane| plane.get(0)).collect();
        assert_eq!(state, reference.lane.state);
        assert_eq!(events(&mut machine), core::mem::take(&mut reference.events));
    }
    let family = machine.family(FAMILY).unwrap();
    assert_eq!(family.buckets(), reference.family.buckets());
    assert_eq!(family.episode_bucket(), reference.family.episode_bucket());
    let words = |memory: &bem_machine::memory::shared::SharedMemory| {
        memory.view(Caller::Expert).segment(Segment::Work).unwrap()[32..].to_vec()
    };
    assert_eq!(words(machine.shared()), words(&reference.shared));
}

#[test]
fn every_step_agrees_with_the_reference() {
    for seed in 0..60 {
        check_against_reference(
            seed,
            seed % 2 == 1,
            seed % 3 == 1,
            if seed % 5 == 4 { 1 } else { 0 },
            10_000,
            0,
        );
    }
}

#[test]
fn every_rule_and_router_agrees_with_the_reference_step_by_step() {
    for rule in 1..32 {
        check_against_reference(rule, rule % 2 == 1, rule % 3 == 1, u64::from(rule % 5 == 4), 2_000, rule);
    }
}

#[test]
fn the_hamming_search_stays_within_its_bounds_and_narrows_the_choice() {
    let config = GenesisConfig {
        router: RouterKind::Hamming,
        candidates_max: 2,
        search_depth_max: 4,
        search_degree_max: 4,
        ..GenesisConfig::default()
    };
    let mut world = Noise::new(3, 6, 4, 9, 0);
    let mut machine = Machine::new(config, 3);
    machine.add_family(world.shape.clone()).unwrap();
    machine.install_boot_experts(FAMILY, &bem_machine::boot::experts(4, 16)).unwrap();
    let router = machine.family(FAMILY).unwrap().router();
    let (most, search) = (router.work_max(), router.search.unwrap());
    let (count, capacity) = (search.count() as u64, search.capacity() as u64);
    assert!(3 < count && capacity == 16 && u64::from(most) >= capacity);
    play(&mut machine, &mut world, 500);
    let word = |word| machine.shared().view(Caller::FastPath).read(Segment::Work, word).unwrap();
    // Every descriptor is compared once, and there are never more than rounds times degree.
    assert_eq!(word(work_word::ROUTE_WORK_MAX), count);
    // Without features that differ, the two nearest are the same two in every step; no other arm was ever tried.
    let world_of_one = Noise::new(4, 1, 4, 9, 0);
    let mut narrow = Machine::new(machine.config().clone(), 4);
    narrow.add_family(world_of_one.shape.clone()).unwrap();
    narrow.install_boot_experts(FAMILY, &bem_machine::boot::experts(4, 16)).unwrap();
    let outcome = Outcome { reward: -500, done: false, bad: false };
    narrow.begin(FAMILY, TaskSerial(1)).unwrap();
    for _ in 0..200 {
        narrow.act(&Bits::ZERO).unwrap();
        narrow.learn(&outcome).unwrap();
        narrow.trace_mut().drain(|_| ());
    }
    let bucket = &narrow.family(FAMILY).unwrap().buckets()[0];
    assert_eq!((0..16).filter(|arm| 1 < bucket.statistics(*arm).visits).count(), 2);
}

#[test]
fn tsallis_inf_holds_where_the_default_is_led_astray() {
    // The world pays whatever the machine has shown least; it knows the rule, but not the register.
    let run = |choice_rule| {
        let config = GenesisConfig { choice_rule, ..GenesisConfig::default() };
        let mut machine = Machine::new(config.clone(), 5);
        let world = Noise::new(1, 1, 2, 9, 0);
        machine.add_family(world.shape.clone()).unwrap();
        machine.install_boot_experts(FAMILY, &bem_machine::boot::experts(2, 16)[..3]).unwrap();
        // A copy with another seed plays along: an index rule chooses the same as the machine, a draw does not.
        let mut rival = Machine::new(config, 6);
        rival.add_family(world.shape.clone()).unwrap();
        rival.install_boot_experts(FAMILY, &bem_machine::boot::experts(2, 16)[..3]).unwrap();
        machine.begin(FAMILY, TaskSerial(1)).unwrap();
        rival.begin(FAMILY, TaskSerial(1)).unwrap();
        let mut won = 0;
        for _ in 0..4_000 {
            let expected = rival.act(&Bits::ZERO).unwrap();
            let action = machine.act(&Bits::ZERO).unwrap();
            let reward = if action == expected { -500 } else { 1_000 };
            won += i64::from(action != expected);
            machine.learn(&Outcome { reward, done: false, bad: false }).unwrap();
            rival.learn(&Outcome { reward, done: false, bad: false }).unwrap();
            machine.trace_mut().drain(|_| ());
            rival.trace_mut().drain(|_| ());
        }
        won
    };
    assert_eq!(run(ChoiceRule::UcbV), 0);
    assert!(1_000 < run(ChoiceRule::TsallisInf));
}

fn play(machine: &mut Machine, world: &mut Noise, steps: u32) -> Vec<u16> {
    let mut actions = Vec::new();
    while actions.len() < steps as usize {
        if !machine.progress().running {
            world.reset();
            machine.begin(FAMILY, TaskSerial(7)).unwrap();
        }
        let action = machine.act(&world.observation).unwrap();
        let outcome = world.step(action);
        machine.learn(&outcome).unwrap();
        machine.trace_mut().drain(|_| ());
        actions.push(action);
    }
    actions
}

fn bytes(machine: &Machine) -> Vec<u8> {
    let mut writer = Writer::new();
    machine.encode(&mut writer);
    writer.into_bytes()
}

#[test]
fn a_saved_machine_continues_bit_for_bit_even_in_the_middle_of_an_episode() {
    for seed in 0..12 {
        let mut world = Noise::new(seed, 8, 5, 9, 1);
        let mut machine = random_machine(seed, &world, true, true, seed);
        play(&mut machine, &mut world, 503);
        let saved = bytes(&machine);
        let mut reader = Reader::new(&saved);
        let mut copy: Machine = Machine::decode(&mut reader).unwrap();
        reader.finish().unwrap();
        assert_eq!(bytes(&copy), saved);
        let mut other_world = world.clone();
        assert_eq!(play(&mut machine, &mut world, 1_000), play(&mut copy, &mut other_world, 1_000));
        assert_eq!(bytes(&machine), bytes(&copy));
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let mut world = Noise::new(3, 6, 3, 9, 0);
    let mut machine = random_machine(3, &world, true, true, 0);
    play(&mut machine, &mut world, 100);
    let saved = bytes(&machine);
    let mut prng = Prng::stream(1, "tests/damage");
    for _ in 0..2_000 {
        let mut damaged = saved.clone();
        for _ in 0..1 + prng.below(3) {
            let place = prng.below(damaged.len() as u64) as usize;
            damaged[place] ^= 1 << prng.below(8);
        }
        damaged.truncate(1 + prng.below(2 * damaged.len() as u64) as usize);
        if let Ok(decoded) = Machine::<Open>::decode(&mut Reader::new(&damaged)) {
            bytes(&decoded);
        }
    }
}

#[test]
fn a_frozen_copy_learns_nothing_and_leaves_the_original_alone() {
    let mut world = Noise::new(5, 6, 4, 12, 0);
    let mut machine = random_machine(5, &world, true, false, 0);
    play(&mut machine, &mut world, 2_000);
    while machine.progress().running {
        play(&mut machine, &mut world, 1);
    }
    let before = bytes(&machine);
    let mut frozen = machine.frozen();
    assert_eq!(frozen.mode(), Mode::Frozen);
    let buckets = frozen.family(FAMILY).unwrap().buckets().to_vec();
    play(&mut frozen, &mut world, 2_000);
    assert_eq!(frozen.family(FAMILY).unwrap().buckets(), buckets);
    assert!(frozen.trace().records().is_empty());
    assert_eq!(bytes(&machine), before);
    let mut copy: Machine = Machine::decode(&mut Reader::new(&bytes(&frozen))).unwrap();
    let mut other_world = world.clone();
    assert_eq!(play(&mut frozen, &mut world, 200), play(&mut copy, &mut other_world, 200));
}

#[test]
fn late_rewards_are_credited_to_the_choice_they_belong_to() {
    let mut world = Noise::new(9, 4, 3, 1_000, 0);
    let mut late = random_machine(9, &world, false, false, 0);
    let visits = |machine: &Machine| -> u64 {
        machine.family(FAMILY).unwrap().buckets().iter().map(|bucket| bucket.selections_total()).sum()
    };
    let visits_before = visits(&late);
    world.reset();
    let mut outcomes = Vec::new();
    late.begin(FAMILY, TaskSerial(1)).unwrap();
    for _ in 0..40 {
        let step = late.steps();
        let action = late.act(&world.observation).unwrap();
        outcomes.push((step, world.observation, action, world.step(action)));
    }
    // The same rewards arrive in another order, and every one finds its step.
    for (step, _, _, outcome) in outcomes.iter().rev() {
        late.learn_late(*step, outcome).unwrap();
    }
    assert_eq!(late.learn_late(outcomes[3].0, &outcomes[3].3), Err(MachineError::NotPending { step: 3 }));
    let credited: Vec<TraceEvent> =
        events(&mut late).into_iter().filter(|event| matches!(event, TraceEvent::Reward { .. })).collect();
    assert_eq!(credited.len(), outcomes.len());
    for (event, (step, _, _, outcome)) in credited.iter().zip(outcomes.iter().rev()) {
        let TraceEvent::Reward { step: recorded, reward, delay, .. } = *event else { panic!("{event:?}") };
        assert_eq!((StepNumber(u64::from(recorded)), reward), (*step, outcome.reward));
        assert_eq!(u64::from(delay), 39 - step.0);
    }
    assert_eq!(visits(&late) - visits_before, 40, "every choice is credited once");
}

#[test]
fn the_owner_is_told_what_is_wrong() {
    let world = Noise::new(1, 4, 2, 5, 0);
    let mut machine = random_machine(1, &world, false, false, 0);
    let outcome = Outcome { reward: 0, done: false, bad: false };
    assert_eq!(machine.act(&Bits::ZERO), Err(MachineError::NoEpisode));
    assert_eq!(machine.learn(&outcome), Err(MachineError::NoEpisode));
    let unknown = machine.begin(FamilyIndex(4), TaskSerial(0)).unwrap_err();
    assert_eq!(unknown.to_string(), "family 4 is out of range: there are 1");
    machine.begin(FAMILY, TaskSerial(0)).unwrap();
    let mut last = Ok(());
    for _ in 0..5_000 {
        last = machine.act(&Bits::ZERO).and_then(|_| machine.learn(&outcome));
        if last.is_err() {
            break;
        }
    }
    assert_eq!(last, Err(MachineError::TraceFull));
    machine.trace_mut().drain(|_| ());
    machine.act(&Bits::ZERO).unwrap();
    machine.learn(&outcome).unwrap();
}

#[test]
fn the_softmax_rule_draws_from_the_machines_own_stream() {
    let config = GenesisConfig { choice_rule: ChoiceRule::Softmax, ..GenesisConfig::default() };
    let run = |seed: u64| {
        let mut world = Noise::new(2, 4, 3, 8, 0);
        let mut machine = Machine::new(config.clone(), seed);
        machine.add_family(world.shape.clone()).unwrap();
        machine.install_boot_experts(FAMILY, &bem_machine::boot::experts(3, 16)).unwrap();
        play(&mut machine, &mut world, 300)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_named_expert_acts_at_every_step_and_is_credited() {
    for sticky in [false, true] {
        let mut world = Noise::new(3, 6, 4, 9, 0);
        let mut machine = random_machine(3, &world, sticky, false, 0);
        let slot = machine
            .family(FAMILY)
            .unwrap()
            .occupied()
            .map(|(slot, _)| slot)
            .find(|slot| *slot != 0 && machine.family(FAMILY).unwrap().is_sticky(*slot) == sticky)
            .unwrap();
        world.reset();
        machine.begin_turn(FAMILY, TaskSerial(1), Turn::member(slot as u8)).unwrap();
        loop {
            let action = machine.act(&world.observation).unwrap();
            let outcome = world.step(action);
            machine.learn(&outcome).unwrap();
            if outcome.done {
                break;
            }
        }
        let told = events(&mut machine);
        assert!(told.iter().all(|event| match event {
            TraceEvent::Step { arm, .. } => usize::from(*arm) == slot,
            _ => true,
        }));
        let family = machine.family(FAMILY).unwrap();
        let seen = |bucket: &bem_learn::bucket::Bucket| u64::from(bucket.statistics(slot).visits);
        let (visits, imagined) = if sticky {
            (seen(family.episode_bucket()), 1)
        } else {
            (family.buckets().iter().map(seen).sum(), family.buckets().len() as u64)
        };
        assert!(imagined < visits, "the expert's own episode is credited to it");
    }
    let world = Noise::new(3, 6, 4, 9, 0);
    let mut machine = random_machine(3, &world, false, false, 0);
    assert!(machine.begin_turn(FAMILY, TaskSerial(0), Turn::member(15)).is_err());
    assert_eq!(machine.begin_turn(FAMILY, TaskSerial(0), Turn::SEAT), Err(MachineError::NobodySeated));
}
