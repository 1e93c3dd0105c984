//! Neither form of the step allocates: a counting allocator watches a warm machine.

#![allow(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a failed unwrap fails the test; an allocator is unsafe to write"
)]

mod support;

use bem_base::prng::Prng;
use bem_machine::boot;
use bem_machine::config::GenesisConfig;
use bem_machine::machine::Machine;
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::route::directory::{Directory, RouteInput};
use bem_machine::step::batched::{LaneSurroundings, Lanes};
use bem_machine::trace::TraceBuffer;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::{Noise, SlicedParity, with_rule};

struct Counting;

thread_local! {
    /// Allocations of this thread: the test harness has threads of its own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator unchanged; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FAMILY: FamilyIndex = FamilyIndex(0);

fn count(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Allocations of a warm machine with this rule and router, see [`with_rule`].
fn check_single(rule: u64, steps: u32) {
    let mut world = Noise::new(1, 8, 4, 20, 1);
    let mut machine = Machine::new(with_rule(GenesisConfig::default(), rule), 1);
    machine.add_family(world.shape.clone()).unwrap();
    machine.install_boot_experts(FAMILY, &boot::experts(4, 16)).unwrap();
    machine.split(FAMILY, 0, &[RouteInput::State(1)]).unwrap();
    let mut play = |steps: u32| {
        for _ in 0..steps {
            if !machine.progress().running {
                world.reset();
                machine.begin(FAMILY, TaskSerial(1)).unwrap();
            }
            let action = machine.act(&world.observation).unwrap();
            machine.learn(&world.step(action)).unwrap();
            machine.trace_mut().drain(|_| ());
        }
    };
    play(1_000);
    assert_eq!(count(|| play(steps)), 0, "single-lane, rule {rule}");
}

/// Allocations of 256 warm lanes over `2^depth` buckets.
fn check_lanes(rule: u64, depth: usize, steps: u32) {
    let world = SlicedParity::new(2, 12, 2, true);
    let mut machine = Machine::new(with_rule(GenesisConfig::default(), rule), 1);
    machine.add_family(world.shape.clone()).unwrap();
    machine.install_boot_experts(FAMILY, &boot::experts(2, 16)).unwrap();
    let inputs: Vec<RouteInput> = (0..12).map(RouteInput::State).collect();
    let directory = Directory::hashed(&inputs, depth, 3).unwrap();
    machine.family_mut(FAMILY).unwrap().reroute(directory);
    let (mut family, mut shared) = (machine.family(FAMILY).unwrap().clone(), machine.shared().clone());
    let mut lanes = Lanes::new(&family, FAMILY, vec![(world, 1)], Prng::quick(1));
    let mut trace = TraceBuffer::new(64);
    let mut play = |steps: u32| {
        for _ in 0..steps {
            let mut around = LaneSurroundings { family: &mut family, shared: &mut shared, trace: &mut trace };
            lanes.step(0, &mut around);
            trace.drain(|_| ());
        }
    };
    play(100);
    assert_eq!(count(|| play(steps)), 0, "256 lanes, depth {depth}, rule {rule}");
}

#[test]
fn a_warm_step_does_not_allocate() {
    assert!(0 < count(|| drop(vec![1u8; 10])), "the allocator counts");
    check_single(0, 50_000);
    for depth in [0, 3, 10] {
        check_lanes(0, depth, 3_000);
    }
}

#[test]
fn no_rule_and_no_router_allocates() {
    for rule in 1..8 {
        check_single(rule, 2_000);
        check_lanes(rule, 3, 50);
    }
}
