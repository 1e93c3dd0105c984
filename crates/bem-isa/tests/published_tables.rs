//! A program of the control core reads what the machine published: the same words, read-only.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::prng::Prng;
use bem_isa::assemble::assemble;
use bem_isa::coprocessor::Host;
use bem_isa::instruction::SegmentBase;
use bem_isa::interpreter::{Core, SegmentStarts};
use bem_isa::memory::{Access, Memory};
use bem_isa::trap::Cause;
use bem_machine::config::GenesisConfig;
use bem_machine::machine::Machine;
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::memory::segment::{Caller, Segment};
use bem_machine::route::directory::RouteInput;

const FAMILY: FamilyIndex = FamilyIndex(0);

/// Finds the lowest index of row `x2` of family 0 and the cost of the expert in that slot. `x3` and `x9` hold where
/// BANDIT and EXPERT start; the arm comes back in `x10`, its index in `x11`, its cost in `x14`.
const BEST_AND_COST: &str = "
    ld x1, [sb_bandit + 16]
    shl x1, x1, 3
    add x1, x1, x3
    shl x5, x2, 10
    add x1, x1, x5
    li x10, 0
    ld x11, [x1 + 0]
    li x6, 1
    li x7, 16
next:
    addi x1, x1, 8
    ld x12, [x1 + 0]
    plt p0, x12, x11
    sel x11, x12, x11, p0
    sel x10, x6, x10, p0
    addi x6, x6, 1
    bne x6, x7, next
    ld x8, [sb_expert + 16]
    shl x8, x8, 3
    add x8, x8, x9
    shl x13, x10, 7
    add x8, x8, x13
    ld x14, [x8 + 16]
";

fn machine() -> Machine {
    let shape = Shape {
        observation_bits: 4,
        actions: 3,
        horizon: 8,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 8_000,
        fields: Vec::new(),
    };
    let mut machine = Machine::new(GenesisConfig::default(), 1);
    machine.add_family(shape).unwrap();
    machine.install_boot_experts(FAMILY, &bem_machine::boot::experts(3, 16)).unwrap();
    for bit in 0..3 {
        machine.split(FAMILY, bit, &[RouteInput::State(bit)]).unwrap();
    }
    let mut prng = Prng::quick(3);
    for _ in 0..400 {
        machine.begin(FAMILY, TaskSerial(1)).unwrap();
        for step in 0..8 {
            let mut seen = Bits::ZERO;
            (0..4).for_each(|bit| seen.set(bit, prng.bit()));
            let action = machine.act(&seen).unwrap();
            let won = seen.get(0) == (action == 1) || prng.below(4) == 0;
            let reward = if won { 1_000 } else { 0 };
            machine.learn(&Outcome { reward, done: step == 7, bad: false }).unwrap();
            machine.trace_mut().drain(|_| ());
        }
    }
    machine.barrier();
    machine
}

/// All words of SHARED, as the core sees them.
fn words(machine: &Machine) -> Vec<u64> {
    let view = machine.shared().view(Caller::Core);
    Segment::ALL.iter().flat_map(|segment| view.segment(*segment).unwrap()).copied().collect()
}

#[test]
fn a_program_finds_the_best_arm_and_its_cost_in_the_published_words_and_cannot_change_them() {
    let machine = machine();
    let map = machine.shared().map().clone();
    let start = |segment| 8 * u64::from(map.base(segment));
    let starts = SegmentStarts::default()
        .with(SegmentBase::Bandit, start(Segment::Bandit))
        .with(SegmentBase::Expert, start(Segment::Expert));
    let family = machine.family(FAMILY).unwrap();
    let mut shared = words(&machine);
    let mut memory = Memory::new(&mut shared, &mut []);
    for segment in [Segment::Bandit, Segment::Expert] {
        memory.allow(map.base(segment) as usize, map.size(segment) as usize, Access::Read);
    }
    let program = assemble(BEST_AND_COST).unwrap();
    let rows = std::iter::once(family.episode_bucket()).chain(family.buckets());
    let mut arms = Vec::new();
    for (row, bucket) in rows.enumerate() {
        let mut core = Core::new(&program, 1, starts);
        core.x[2] = row as u64;
        (core.x[3], core.x[9]) = (start(Segment::Bandit), start(Segment::Expert));
        core.run(&program, &mut memory, &mut Host::new(1), 1_000).unwrap();
        let arm = bucket.choose();
        assert_eq!(core.x[10], arm as u64, "row {row}");
        assert_eq!(core.x[11], i64::from(bucket.indices()[arm]) as u64);
        assert_eq!(core.x[14], u64::from(family.expert(arm).unwrap().cost()));
        arms.push(arm);
    }
    assert_eq!(arms.len(), 5);
    arms.dedup();
    assert!(1 < arms.len(), "rows that all say the same would show nothing");

    let program = assemble("st x2, [sb_bandit + 16]").unwrap();
    let trap = Core::new(&program, 1, starts).run(&program, &mut memory, &mut Host::new(1), 10).unwrap_err();
    assert_eq!(trap.cause, Cause::ReadOnly);
}
