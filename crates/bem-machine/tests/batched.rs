//! 256 lanes at a time against the reference, bit for bit, in all three regimes.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use bem_base::encode::Writer;
use bem_base::lanes::LaneWord;
use bem_base::limits::LANES;
use bem_base::prng::Prng;
use bem_machine::config::GenesisConfig;
use bem_machine::family::Family;
use bem_machine::machine::Machine;
use bem_machine::memory::context::FamilyIndex;
use bem_machine::memory::shared::SharedMemory;
use bem_machine::route::Router;
use bem_machine::route::directory::{Directory, RouteInput};
use bem_machine::step::batched::{LaneSurroundings, Lanes};
use bem_machine::step::scalar::ReferenceBlock;
use bem_machine::trace::{RECORDS_PER_BLOCK, TraceBuffer, TraceEvent};
use support::{SlicedParity, random_expert, with_rule};

const FAMILY: FamilyIndex = FamilyIndex(0);

/// What a case is about.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    /// Splits of a family that starts with one bucket, or the depth of a hashed directory.
    routing: Result<u64, usize>,
    sticky: bool,
    shared: bool,
    with_bad: bool,
    cost: bool,
    /// Which rule and router, see [`with_rule`].
    rule: u64,
}

fn family(case: Case, world: &SlicedParity) -> (Family, SharedMemory) {
    let mut prng = Prng::stream(case.seed, "tests/batched");
    let cost_penalty = bem_base::fixed::Fixed::from_ratio(i64::from(case.cost), 4);
    let config = GenesisConfig { state_bits: 128, cost_penalty, ..GenesisConfig::default() };
    let config = with_rule(config, case.rule);
    let mut machine = Machine::new(config.clone(), case.seed);
    machine.add_family(world.shape.clone()).unwrap();
    let layout = machine.family(FAMILY).unwrap().layout().clone();
    for index in 0..3 + prng.below(12) {
        let (sticky, shared) = (case.sticky && index % 3 == 1, case.shared && index % 2 == 0);
        machine.install(FAMILY, random_expert(&mut prng, &config, &layout, sticky, shared)).unwrap();
    }
    let bits = u64::from(world.shape.observation_bits);
    match case.routing {
        Ok(splits) => {
            for _ in 0..splits {
                let buckets = machine.family(FAMILY).unwrap().buckets().len() as u64;
                let by = [RouteInput::State(prng.below(bits) as u16)];
                let _ = machine.split(FAMILY, prng.below(buckets) as u16, &by);
            }
        }
        Err(depth) => {
            let inputs: Vec<RouteInput> = (0..bits as u16).map(RouteInput::State).collect();
            let directory = Directory::hashed(&inputs, depth, case.seed).unwrap();
            machine.family_mut(FAMILY).unwrap().reroute(directory);
        }
    }
    (machine.family(FAMILY).unwrap().clone(), machine.shared().clone())
}

/// The arm and the reward of every lane, from the trace alone.
fn recorded(trace: &mut TraceBuffer) -> Vec<(usize, bool)> {
    trace.drain(|records| {
        assert_eq!(records.len(), RECORDS_PER_BLOCK);
        assert!(matches!(TraceEvent::from_record(records[0]), Some(TraceEvent::Block { block: 0, .. })));
        let planes: Vec<LaneWord> = records[1..]
            .chunks_exact(2)
            .map(|pair| LaneWord([pair[0].0[0], pair[0].0[1], pair[1].0[0], pair[1].0[1]]))
            .collect();
        let arm = |lane| (0..4).fold(0, |arm, bit| arm | usize::from(planes[bit].get(lane)) << bit);
        (0..LANES).map(|lane| (arm(lane), planes[4].get(lane))).collect()
    })
}

/// Everything that a family has learned, samplers included.
fn family_bytes(family: &Family) -> Vec<u8> {
    let mut writer = Writer::new();
    family.encode(&mut writer);
    writer.into_bytes()
}

fn check(case: Case, steps: usize) {
    let mut prng = Prng::stream(case.seed, "tests/batched/shape");
    let (bits, actions) = (4 + prng.below(9) as u16, 2 + prng.below(7) as u16);
    let world = SlicedParity::new(case.seed, bits, actions, case.with_bad);
    let (mut family, mut shared) = family(case, &world);
    let mut reference =
        ReferenceBlock::new(family.clone(), shared.clone(), world.clone(), 77, Prng::quick(case.seed));
    let mut lanes = Lanes::new(&family, FAMILY, vec![(world, 77)], Prng::quick(case.seed));
    let mut trace = TraceBuffer::new(64);
    for step in 0..steps {
        let mut around = LaneSurroundings { family: &mut family, shared: &mut shared, trace: &mut trace };
        lanes.step(0, &mut around);
        let want = reference.step();
        assert_eq!(recorded(&mut trace), want, "step {step} of {case:?}");
        for (lane, scalar) in reference.lanes.iter().enumerate() {
            let first = family.layout().observation().end;
            for bit in first..scalar.state.len() {
                assert_eq!(
                    lanes.planes(0)[bit].get(lane),
                    scalar.state[bit],
                    "step {step} bit {bit} of {case:?}"
                );
            }
        }
    }
    assert!(lanes.schedule().plan() == reference.schedule.plan(), "{case:?}");
    lanes.flush(&mut family);
    reference.schedule.flush(&mut reference.family);
    assert_eq!(family.buckets(), reference.family.buckets());
    assert_eq!(family.episode_bucket(), reference.family.episode_bucket());
    assert_eq!(shared, reference.shared);
    assert_eq!(family_bytes(&family), family_bytes(&reference.family), "{case:?}");
    assert!(lanes.route_work_max() <= family.router().work_max());
    assert_eq!(0 < lanes.route_work_max(), case.rule / 4 % 2 == 1, "{case:?}");
    let visits: u64 = family.buckets().iter().map(|bucket| bucket.selections_total()).sum();
    assert!(0 < visits + family.episode_bucket().selections_total());
}

#[test]
fn all_regimes_agree_with_the_reference() {
    // 48 cases of 100 steps of 256 lanes: 1.2 million lane-steps.
    for seed in 0..48 {
        let routing = match seed % 6 {
            0 => Ok(0),
            1 => Ok(4),
            2 => Ok(15),
            3 => Ok(40),
            4 => Err(6),
            _ => Err(10),
        };
        let case = Case {
            seed,
            routing,
            sticky: seed % 4 == 1,
            shared: seed % 5 == 2,
            with_bad: seed % 7 == 3,
            cost: seed % 8 == 5,
            rule: 0,
        };
        check(case, 100);
    }
}

#[test]
fn every_rule_and_router_agrees_with_the_reference() {
    for rule in 1..32 {
        let case = Case {
            seed: 200 + rule,
            routing: if rule % 3 == 0 { Err(7) } else { Ok(rule % 6) },
            sticky: rule % 2 == 1,
            shared: rule % 5 == 2,
            with_bad: rule % 7 == 3,
            cost: rule % 3 == 1,
            rule,
        };
        check(case, 30);
    }
}

#[test]
fn a_long_run_with_growing_bookings_agrees_with_the_reference() {
    let base =
        Case { seed: 100, routing: Ok(3), sticky: true, shared: false, with_bad: true, cost: false, rule: 0 };
    check(base, 1_500);
    check(Case { seed: 101, routing: Err(10), sticky: false, with_bad: false, ..base }, 1_000);
    check(Case { seed: 102, routing: Err(5), sticky: true, ..base }, 1_000);
}

#[test]
fn lanes_learn_and_do_not_all_try_the_same_arm() {
    // Parity of three bits: the pool holds both answers for every bucket; after splits the right one is found.
    let world = SlicedParity::new(7, 6, 2, false);
    let mut machine = Machine::new(GenesisConfig::default(), 1);
    machine.add_family(world.shape.clone()).unwrap();
    machine.install_boot_experts(FAMILY, &bem_machine::boot::experts(2, 16)).unwrap();
    let parity = [0, 1, 2].map(RouteInput::State);
    machine.split(FAMILY, 0, &parity).unwrap();
    let (mut family, mut shared) = (machine.family(FAMILY).unwrap().clone(), machine.shared().clone());
    // Without the counter in slot 4: it is sticky, and this test is about choices step by step.
    family.retire(4).unwrap();
    let mut lanes = Lanes::new(&family, FAMILY, vec![(world.clone(), 1), (world, 2)], Prng::quick(1));
    let mut trace = TraceBuffer::new(64);
    let mut wins = 0;
    for step in 0..4_000 {
        let mut around = LaneSurroundings { family: &mut family, shared: &mut shared, trace: &mut trace };
        let outcome = lanes.step(step % 2, &mut around);
        trace.drain(|_| ());
        if 3_000 <= step {
            wins += outcome.reward.count_ones();
        }
    }
    assert!(250_000 < wins, "{wins} of 256000");
}
