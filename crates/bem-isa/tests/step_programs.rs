//! STEP_FAST and BANDIT_UPDATE_STEP against the native machine: the same actions, records, statistics and context
//! after every step, so the same trace head. Clauses: ISA-5, VM-13.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::digest::{Digest, hash_parts};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_circuit::testing::random_netlist;
use bem_isa::programs::{ProgramMachine, StepError, Unsupported};
use bem_machine::boot::experts;
use bem_machine::config::{ChoiceRule, GenesisConfig};
use bem_machine::expert::{ExpertParts, OutputUse, Profile, ReadSpec, RoutingMetadata, WriteSpec};
use bem_machine::machine::Machine;
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::memory::shared::work_word;
use bem_machine::route::directory::{Directory, RouteInput};
use bem_machine::trace::{Record, TraceEvent};
use std::collections::BTreeMap;

const FAMILY: FamilyIndex = FamilyIndex(0);

/// A world made for this test.
trait World {
    fn shape(&self) -> Shape;
    fn begin(&mut self, prng: &mut Prng);
    fn observation(&self) -> Bits;
    fn step(&mut self, action: u16, prng: &mut Prng) -> Outcome;
}

fn shape(observation_bits: u16, actions: u16, horizon: u32, reward_min: i32) -> Shape {
    Shape {
        observation_bits,
        actions,
        horizon,
        reward_min,
        reward_max: 1_000,
        return_min: i64::from(reward_min) * i64::from(horizon),
        return_max: 1_000 * i64::from(horizon),
        fields: Vec::new(),
    }
}

fn bits(value: u64) -> Bits {
    Bits([value, 0, 0, 0])
}

/// Four arms, nothing to see; the arms trade places every 5,000 pulls.
struct Bernoulli {
    pulls: u64,
}

impl World for Bernoulli {
    fn shape(&self) -> Shape {
        shape(0, 4, 1, 0)
    }
    fn begin(&mut self, _prng: &mut Prng) {}
    fn observation(&self) -> Bits {
        Bits::ZERO
    }
    fn step(&mut self, action: u16, prng: &mut Prng) -> Outcome {
        self.pulls += 1;
        let rank = (u64::from(action) + self.pulls / 5_000) % 4;
        Outcome { reward: if prng.below(10) < 2 + 2 * rank { 1_000 } else { 0 }, done: true, bad: false }
    }
}

/// Ten bits, of which three decide; graded and negative rewards, and a combination that must not happen.
struct Contextual {
    seen: u64,
    left: u32,
}

impl World for Contextual {
    fn shape(&self) -> Shape {
        shape(70, 5, 8, -500)
    }
    fn begin(&mut self, prng: &mut Prng) {
        (self.seen, self.left) = (prng.below(1 << 10), 1 + prng.below(8) as u32);
    }
    fn observation(&self) -> Bits {
        Bits([self.seen, self.seen & 0x3F, 0, 0])
    }
    fn step(&mut self, action: u16, prng: &mut Prng) -> Outcome {
        let right = (self.seen & 0b1001001).count_ones() as u16;
        let reward = if action == right { 1_000 } else { prng.between(-500, 400) as i32 };
        let bad = action == 4 && self.seen & 7 == 7;
        self.seen = prng.below(1 << 10);
        self.left -= 1;
        Outcome { reward, done: self.left == 0, bad }
    }
}

/// Two bits are shown once; after a silence they must be said again. Experts that remember are needed.
struct Memory {
    secret: u64,
    clock: u32,
}

impl World for Memory {
    fn shape(&self) -> Shape {
        shape(3, 4, 4, 0)
    }
    fn begin(&mut self, prng: &mut Prng) {
        (self.secret, self.clock) = (prng.below(4), 0);
    }
    fn observation(&self) -> Bits {
        bits(match self.clock {
            0 => self.secret,
            3 => 0b100,
            _ => 0,
        })
    }
    fn step(&mut self, action: u16, _prng: &mut Prng) -> Outcome {
        self.clock += 1;
        let done = self.clock == 4;
        let said = done && u64::from(action) == self.secret;
        Outcome { reward: if said { 1_000 } else { 0 }, done, bad: false }
    }
}

/// A random circuit from observation and memory to the action, or with memory to memory too.
fn random_expert(machine: &Machine, prng: &mut Prng, sticky: bool) -> ExpertParts {
    let layout = machine.family(FAMILY).unwrap().layout();
    let memory: Vec<u16> = layout.memory().take(4).map(|bit| bit as u16).collect();
    let first = layout.memory().start as u16;
    let state_bits: Vec<u16> =
        if sticky { (0..first).chain(memory.clone()).collect() } else { (0..first).collect() };
    let mut outputs: Vec<OutputUse> = layout.action().map(|bit| OutputUse::State(bit as u16)).collect();
    if sticky {
        outputs.extend(memory.into_iter().map(OutputUse::State));
    }
    if prng.below(3) == 0 {
        outputs.push(OutputUse::Mask);
    }
    ExpertParts {
        circuit: random_netlist(prng, state_bits.len(), 30 + prng.clone().below(90) as usize, outputs.len()),
        read: ReadSpec { state_bits, shared: Vec::new() },
        write: WriteSpec { outputs, integers: Vec::new() },
        profile: Profile { sticky },
        routing: RoutingMetadata::default(),
    }
}

/// A machine with boot experts, random experts, and a directory of `2^depth` buckets split once more.
fn machine(world: &dyn World, config: GenesisConfig, random: usize, sticky: usize, depth: usize) -> Machine {
    let mut machine = Machine::new(config, 1);
    let shape = world.shape();
    let (actions, observation_bits) = (shape.actions, shape.observation_bits);
    machine.add_family(shape).unwrap();
    let room = 14 - random - sticky;
    machine.install_boot_experts(FAMILY, &experts(actions, room)).unwrap();
    let mut prng = Prng::stream(3, "test/experts");
    for expert in 0..random + sticky {
        let parts = random_expert(&machine, &mut prng, random <= expert);
        machine.install(FAMILY, parts).unwrap();
    }
    if 0 < depth {
        let inputs: Vec<RouteInput> = (0..observation_bits).map(RouteInput::State).collect();
        let directory = Directory::hashed(&inputs, depth, 9).unwrap();
        machine.family_mut(FAMILY).unwrap().reroute(directory);
        machine.split(FAMILY, 1, &[RouteInput::State(0), RouteInput::State(observation_bits)]).unwrap();
    }
    machine
}

/// Chains drained records to a head and counts their kinds.
#[derive(Default)]
struct Chain {
    head: Digest,
    kinds: BTreeMap<u8, u64>,
    resets: u64,
    bad: u64,
    /// Episodes that an expert was chosen for as a whole.
    sticky: u64,
}

impl Chain {
    fn take(&mut self, records: &[Record]) {
        let bytes: Vec<u8> = records.iter().flat_map(|record| record.0).flat_map(u64::to_le_bytes).collect();
        self.head = hash_parts("test/trace", &[self.head.as_bytes(), &bytes]);
        for record in records {
            *self.kinds.entry(record.0[0] as u8).or_default() += 1;
            match TraceEvent::from_record(*record).unwrap() {
                TraceEvent::Reset { .. } => self.resets += 1,
                TraceEvent::Reward { bad: true, .. } => self.bad += 1,
                TraceEvent::Episode { arm: 1.., .. } => self.sticky += 1,
                _ => {}
            }
        }
    }
}

/// All statistics and published words are the same.
fn compare(native: &Machine, programs: &ProgramMachine) {
    let family = native.family(FAMILY).unwrap();
    assert_eq!(programs.bucket(None), family.episode_bucket().words());
    for (index, bucket) in family.buckets().iter().enumerate() {
        assert_eq!(programs.bucket(Some(index as u16)), bucket.words(), "bucket {index}");
    }
    let view = native.shared().view(bem_machine::memory::segment::Caller::FastPath);
    let work = view.segment(bem_machine::memory::segment::Segment::Work).unwrap();
    for (name, word) in [
        ("STEP_GLOBAL", work_word::STEP_GLOBAL),
        ("CONTEXT_HASH", work_word::CONTEXT_HASH),
        ("BAD_COUNT", work_word::BAD_COUNT),
        ("EPISODES", work_word::EPISODES),
    ] {
        assert_eq!(programs.work_word(name), Some(work[word as usize]), "{name}");
    }
}

/// Plays both side by side; returns what the trace held.
fn differential(mut world: impl World, mut native: Machine, steps: u64) -> Chain {
    let config = native.config().clone();
    let mut programs = ProgramMachine::new(&config, native.family(FAMILY).unwrap(), FAMILY).unwrap();
    let mut prng = Prng::stream(5, "test/world");
    let (mut native_chain, mut program_chain) = (Chain::default(), Chain::default());
    let mut done = true;
    for step in 0..steps {
        if done {
            world.begin(&mut prng);
            native.begin(FAMILY, TaskSerial(1)).unwrap();
            programs.begin().unwrap();
        }
        let observation = world.observation();
        let action = native.act(&observation).unwrap();
        assert_eq!(programs.act(&observation), Ok(action), "step {step}");
        let outcome = world.step(action, &mut prng);
        native.learn(&outcome).unwrap();
        programs.learn(&outcome).unwrap();
        assert_eq!(programs.context_hash(), native.lane().context_hash(), "step {step}");
        done = outcome.done;
        if step % 499 == 0 || step + 1 == steps {
            compare(&native, &programs);
            native.trace_mut().drain(|records| native_chain.take(records));
            programs.drain(|records| program_chain.take(records));
            assert_eq!(program_chain.head, native_chain.head, "trace head after step {step}");
        }
    }
    assert_eq!(program_chain.kinds, native_chain.kinds);
    program_chain
}

#[test]
fn a_changing_bandit_has_the_same_trace_head_over_100_000_steps() {
    let world = Bernoulli { pulls: 0 };
    let native = machine(&world, GenesisConfig::default(), 0, 0, 0);
    let chain = differential(world, native, 100_000);
    assert!(0 < chain.resets, "the change of arms was noticed");
}

#[test]
fn a_contextual_world_with_bad_steps_has_the_same_trace_head_over_100_000_steps() {
    let world = Contextual { seen: 0, left: 0 };
    let config = GenesisConfig {
        cost_penalty: Fixed::from_ratio(1, 10),
        expert_prior_rate: Fixed::from_ratio(1, 256),
        context_window: 3,
        ..GenesisConfig::default()
    };
    let native = machine(&world, config, 6, 0, 3);
    let chain = differential(world, native, 100_000);
    assert_eq!(chain.kinds.get(&1), Some(&100_000));
    assert!(0 < chain.bad, "some step was BAD, so the scale was widened");
}

#[test]
fn a_world_that_needs_memory_has_the_same_trace_head_over_100_000_steps() {
    let world = Memory { secret: 0, clock: 0 };
    let native = machine(&world, GenesisConfig::default(), 2, 4, 2);
    let chain = differential(world, native, 100_000);
    assert_eq!(chain.kinds.get(&4), Some(&25_000));
    assert!(1_000 < chain.sticky && chain.sticky < 25_000, "both ways of choosing: {}", chain.sticky);
}

#[test]
fn a_full_trace_refuses_the_step_and_changes_nothing() {
    let world = Bernoulli { pulls: 0 };
    let native = machine(&world, GenesisConfig::default(), 0, 0, 0);
    let mut programs = ProgramMachine::new(native.config(), native.family(FAMILY).unwrap(), FAMILY).unwrap();
    let outcome = Outcome { reward: 0, done: true, bad: false };
    let refused = loop {
        programs.begin().unwrap();
        if let Err(error) = programs.act(&Bits::ZERO).and_then(|_| programs.learn(&outcome)) {
            break error;
        }
    };
    assert_eq!(refused, StepError::TraceFull);
    assert_eq!(programs.work_word("NO_SUCH_WORD"), None);
    let step = programs.work_word("STEP_GLOBAL");
    assert_eq!(programs.act(&Bits::ZERO), Err(StepError::TraceFull));
    assert_eq!(programs.work_word("STEP_GLOBAL"), step);
    assert!(4_000 < programs.drain(<[Record]>::len));
    assert!(programs.act(&Bits::ZERO).is_ok());
}

#[test]
fn what_the_programs_do_not_cover_is_refused_by_name() {
    let world = Bernoulli { pulls: 0 };
    let config = GenesisConfig { choice_rule: ChoiceRule::Softmax, ..GenesisConfig::default() };
    let native = machine(&world, config, 0, 0, 0);
    let refused = ProgramMachine::new(native.config(), native.family(FAMILY).unwrap(), FAMILY);
    assert_eq!(refused.err(), Some(Unsupported::Rule));
    let mut native = machine(&world, GenesisConfig::default(), 0, 0, 0);
    native.split(FAMILY, 0, &[RouteInput::Shared { address: 0, bit: 0 }]).unwrap();
    let refused = ProgramMachine::new(native.config(), native.family(FAMILY).unwrap(), FAMILY);
    assert_eq!(refused.err(), Some(Unsupported::Routing));
}
