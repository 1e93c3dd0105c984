//! The workload that the step is measured with: parity worlds and a pool of random circuits of 64 gates.
//!
//! For benchmarks and instruction counts here and in the application. Nothing that learns may use it.
//! Clauses: VM-14.

use crate::config::GenesisConfig;
use crate::expert::{ExpertParts, OutputUse, Profile, ReadSpec, RoutingMetadata, WriteSpec};
use crate::machine::{Machine, TRACE_RECORDS};
use crate::memory::context::{FamilyIndex, TaskSerial};
use crate::route::directory::{Directory, RouteInput};
use crate::step::batched::{LaneSurroundings, Lanes};
use crate::trace::{RECORDS_PER_BLOCK, RECORDS_PER_STEP};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::lanes::{LaneEnvironment, LaneOutcome, LaneWord};
use bem_base::prng::Prng;
use bem_circuit::testing::random_dense_netlist;

/// Observation bits of the workload's worlds.
const OBSERVATION_BITS: u16 = 16;
/// Steps of one episode.
const EPISODE_STEPS: u32 = 16;
/// The only family.
const FAMILY: FamilyIndex = FamilyIndex(0);

fn shape() -> Shape {
    Shape {
        observation_bits: OBSERVATION_BITS,
        actions: 256,
        horizon: EPISODE_STEPS,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 1_000 * i64::from(EPISODE_STEPS),
        fields: Vec::new(),
    }
}

/// A machine with this many experts of 64 gates, 16 inputs and 8 outputs, routed to `2^depth` buckets.
fn machine(experts: usize, depth: usize) -> Machine {
    let mut machine = Machine::new(GenesisConfig::default(), 1);
    let family = machine.add_family(shape()).expect("the workload fits the defaults");
    let mut prng = Prng::stream(1, "workload");
    let layout = machine.family(family).expect("just added").layout().clone();
    for _ in 0..experts {
        let parts = ExpertParts {
            read: ReadSpec { state_bits: (0..OBSERVATION_BITS).collect(), shared: Vec::new() },
            write: WriteSpec {
                outputs: layout.action().map(|bit| OutputUse::State(bit as u16)).collect(),
                integers: Vec::new(),
            },
            circuit: random_dense_netlist(&mut prng, usize::from(OBSERVATION_BITS), 64, 8),
            profile: Profile::default(),
            routing: RoutingMetadata::default(),
        };
        machine.install(family, parts).expect("the pool has room");
    }
    let inputs: Vec<RouteInput> = (0..OBSERVATION_BITS).map(RouteInput::State).collect();
    let directory = Directory::hashed(&inputs, depth, 9).expect("sixteen bits and a depth of at most ten");
    let family = machine.family_mut(family).expect("just added");
    family.reroute(directory);
    family.retire(0).expect("other experts live");
    machine
}

/// One lane in a world that rewards the parity of what is seen.
pub struct SingleWorkload {
    machine: Machine,
    observation: Bits,
    random: u64,
    left: u32,
}

impl SingleWorkload {
    /// Fifteen experts behind NOOP, `2^depth` buckets.
    pub fn new(depth: usize) -> SingleWorkload {
        let mut workload = SingleWorkload {
            machine: machine(15, depth),
            observation: Bits::ZERO,
            random: 0x9E37_79B9_7F4A_7C15,
            left: 0,
        };
        workload.look();
        workload
    }

    #[inline]
    fn look(&mut self) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.observation.0[0] = self.random & 0xFFFF;
    }

    /// The world alone: what remains when the machine does nothing.
    #[inline]
    pub fn step_world(&mut self, action: u16) -> Outcome {
        let won = (self.observation.0[0].count_ones() as u16 ^ action) & 1 == 0;
        self.look();
        self.left -= 1;
        Outcome { reward: if won { 1_000 } else { 0 }, done: self.left == 0, bad: false }
    }

    /// Begins an episode where one is due, and makes room in the trace.
    #[inline]
    pub fn prepare(&mut self) {
        if self.left == 0 {
            self.left = EPISODE_STEPS;
            self.machine.begin(FAMILY, TaskSerial(1)).expect("the family exists");
        }
        if self.machine.trace().room() < 2 * RECORDS_PER_STEP {
            self.machine.trace_mut().drain(|_| ());
        }
    }

    /// One whole step: choice, circuit, world, trace records and learning.
    #[inline]
    pub fn step(&mut self) -> Outcome {
        self.prepare();
        let action = self.machine.act(&self.observation).expect("an episode runs and the trace has room");
        let outcome = self.step_world(action);
        self.machine.learn(&outcome).expect("an episode runs and the trace has room");
        outcome
    }

    /// The machine, to look at.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// The same world over 256 lanes: random bits from sixteen sliced generators, an episode every sixteen steps.
pub struct ParityLanes {
    shape: Shape,
    random: [LaneWord; 4],
    clock: u32,
}

impl ParityLanes {
    /// A world to be reset.
    pub fn new() -> ParityLanes {
        ParityLanes { shape: shape(), random: [LaneWord::ZERO; 4], clock: 0 }
    }

    /// 256 random bits: four xorshift generators side by side.
    #[inline]
    fn draw(&mut self) -> LaneWord {
        // xoshiro256+ on each of the four words.
        let [a, b, _, d] = self.random.map(|word| word.0);
        let sum = core::array::from_fn(|word| a[word].wrapping_add(d[word]));
        let shifted = LaneWord(b.map(|word| word << 17));
        self.random[2] ^= self.random[0];
        self.random[3] ^= self.random[1];
        self.random[1] ^= self.random[2];
        self.random[0] ^= self.random[3];
        self.random[2] ^= shifted;
        self.random[3] = LaneWord(self.random[3].0.map(|word| word.rotate_left(45)));
        LaneWord(sum)
    }
}

impl Default for ParityLanes {
    fn default() -> ParityLanes {
        ParityLanes::new()
    }
}

impl LaneEnvironment for ParityLanes {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64, observation: &mut [LaneWord]) {
        let mut prng = Prng::stream(seed, "workload/lanes");
        self.random = core::array::from_fn(|_| LaneWord(core::array::from_fn(|_| prng.next_u64())));
        self.clock = 0;
        for plane in observation {
            *plane = self.draw();
        }
    }

    #[inline]
    fn step(&mut self, action: &[LaneWord], mask: LaneWord, observation: &mut [LaneWord]) -> LaneOutcome {
        let parity = observation.iter().fold(LaneWord::ZERO, |sum, plane| sum ^ *plane);
        let reward = !(parity ^ action[0]) & mask;
        self.clock += 1;
        let done = LaneWord::splat(self.clock.is_multiple_of(EPISODE_STEPS)) & mask;
        for plane in observation.iter_mut() {
            let new = self.draw();
            *plane = plane.replace(new, mask);
        }
        LaneOutcome { reward, done, bad: LaneWord::ZERO }
    }
}

/// Lanes in that world.
pub struct LaneWorkload {
    machine: Machine,
    lanes: Lanes<ParityLanes>,
    next: usize,
}

impl LaneWorkload {
    /// `blocks` blocks, `experts` experts of 64 gates and `2^depth` buckets.
    pub fn new(experts: usize, depth: usize, blocks: u64) -> LaneWorkload {
        let machine = machine(experts, depth);
        let worlds = (0..blocks).map(|seed| (ParityLanes::new(), seed)).collect();
        let prng = machine.prng().fork("lanes");
        let lanes = Lanes::new(machine.family(FAMILY).expect("just added"), FAMILY, worlds, prng);
        LaneWorkload { machine, lanes, next: 0 }
    }

    /// One step of 256 lanes: routing, circuits, world, trace records and learning.
    pub fn step(&mut self) -> LaneOutcome {
        let block = self.next;
        self.next = (block + 1) % self.lanes.block_count();
        let (family, shared, trace) = self.machine.parts(FAMILY).expect("the family exists");
        if trace.room() < RECORDS_PER_BLOCK {
            trace.drain(|_| ());
        }
        self.lanes.step(block, &mut LaneSurroundings { family, shared, trace })
    }
}

const _: () = assert!(RECORDS_PER_BLOCK <= TRACE_RECORDS);
