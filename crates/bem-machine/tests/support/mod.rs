//! Small worlds and random experts for the tests of the step. Games live elsewhere: the machine must not know them.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "every test file uses another part, and a failed unwrap fails the test"
)]

use bem_base::environment::{Bits, Field, Outcome, Shape};
use bem_base::lanes::{LaneEnvironment, LaneOutcome, LaneWord};
use bem_base::limits::LANES;
use bem_base::prng::Prng;
use bem_circuit::testing::random_netlist;
use bem_machine::config::{ChoiceRule, GenesisConfig, RouterKind};
use bem_machine::expert::{
    ExpertParts, IntegerMode, IntegerOutput, OutputUse, Profile, ReadSpec, RoutingMetadata, SharedField,
    WriteSpec,
};
use bem_machine::layout::StateLayout;
use bem_machine::memory::segment::{Segment, SegmentMap};

/// A world with random observations whose reward and BAD flag are fixed functions of observation and action.
#[derive(Clone)]
pub struct Noise {
    pub shape: Shape,
    pub observation: Bits,
    prng: Prng,
    left: u32,
    horizon: u32,
    bad_in_32: u64,
}

impl Noise {
    pub fn new(seed: u64, observation_bits: u16, actions: u16, horizon: u32, bad_in_32: u64) -> Noise {
        let shape = Shape {
            observation_bits,
            actions,
            horizon,
            reward_min: -500,
            reward_max: 1_000,
            return_min: -500 * i64::from(horizon),
            return_max: 1_000 * i64::from(horizon),
            fields: (0..observation_bits).map(|low| Field { low, width: 1 }).collect(),
        };
        let prng = Prng::stream(seed, "tests/noise");
        Noise { shape, observation: Bits::ZERO, prng, left: 0, horizon, bad_in_32 }
    }

    pub fn reset(&mut self) {
        self.left = 1 + self.prng.below(u64::from(self.horizon)) as u32;
        self.look();
    }

    fn look(&mut self) {
        self.observation = Bits::ZERO;
        for bit in 0..usize::from(self.shape.observation_bits) {
            self.observation.set(bit, self.prng.bit());
        }
    }

    pub fn step(&mut self, action: u16) -> Outcome {
        assert!(action < self.shape.actions, "action {action}");
        let parity = self.observation.0[0].count_ones() as u16 % 2;
        let reward = match (action + parity) % 3 {
            0 => self.shape.reward_max,
            1 => self.prng.between(-500, 1_000) as i32,
            _ => self.shape.reward_min,
        };
        let bad = action == 1 && self.prng.below(32) < self.bad_in_32;
        self.left -= 1;
        self.look();
        Outcome { reward, done: self.left == 0, bad }
    }
}

/// A random expert that fits the layout: reads anything, writes action bits and, if sticky, memory; sometimes with a
/// lane mask, sometimes with SHARED words.
pub fn random_expert(
    prng: &mut Prng,
    config: &GenesisConfig,
    layout: &StateLayout,
    sticky: bool,
    shared: bool,
) -> ExpertParts {
    let memory: Vec<u16> = layout.memory().take(6).map(|bit| bit as u16).collect();
    let readable: Vec<u16> =
        (0..layout.memory().start as u16).chain(memory.iter().copied().filter(|_| sticky)).collect();
    let state_bits: Vec<u16> =
        (0..1 + prng.below(8)).map(|_| readable[prng.below(readable.len() as u64) as usize]).collect();
    let mut read = ReadSpec { state_bits, shared: Vec::new() };
    let map = SegmentMap::new(config);
    let words: Vec<u32> = (0..3).map(|word| map.base(Segment::Work) + 40 + word).collect();
    let mut outputs: Vec<OutputUse> = layout.action().map(|bit| OutputUse::State(bit as u16)).collect();
    if sticky {
        outputs.extend(memory.iter().map(|bit| OutputUse::State(*bit)));
    }
    if prng.below(3) == 0 {
        outputs.push(OutputUse::Mask);
    }
    let mut integers = Vec::new();
    if shared {
        read.shared.push(SharedField { address: words[prng.below(3) as usize], low: 2, width: 3 });
        outputs.extend([OutputUse::Count, OutputUse::Count]);
        for mode in [IntegerMode::Assign, IntegerMode::Accumulate] {
            let weights = vec![prng.between(-5, 5) as i32, prng.between(-5, 5) as i32];
            let address = words[prng.below(3) as usize];
            integers.push(IntegerOutput { address, mode, constant: prng.between(-3, 3), weights });
        }
    }
    let gates = 1 + prng.below(40) as usize;
    let circuit = random_netlist(prng, read.inputs(), gates, outputs.len());
    ExpertParts {
        read,
        write: WriteSpec { outputs, integers },
        circuit,
        profile: Profile { sticky },
        routing: RoutingMetadata {
            priority: prng.below(3) as u8,
            descriptor: prng.bit().then(|| Bits(core::array::from_fn(|_| prng.next_u64()))),
            ..RoutingMetadata::default()
        },
    }
}

/// Every rule and router of the configuration, by number.
pub fn with_rule(config: GenesisConfig, number: u64) -> GenesisConfig {
    let rules = [ChoiceRule::UcbV, ChoiceRule::Softmax, ChoiceRule::AsPrinted, ChoiceRule::TsallisInf];
    let choice_rule = rules[(number % 4) as usize];
    match number / 4 % 2 {
        0 => GenesisConfig { choice_rule, ..config },
        _ => GenesisConfig {
            choice_rule,
            router: RouterKind::Hamming,
            candidates_max: 1 + (number / 8 % 4) as u32,
            feature_bits: [64, 100, 128, 256][(number / 8 % 4) as usize],
            search_degree_max: 4,
            ..config
        },
    }
}

/// A bit-sliced world: each lane sees random bits, wins if its action is the parity of some of them, and now and then
/// ends its episode or steps into something BAD. Every lane is a function of its own bits alone.
#[derive(Clone)]
pub struct SlicedParity {
    pub shape: Shape,
    prng: Prng,
    with_bad: bool,
}

impl SlicedParity {
    pub fn new(seed: u64, observation_bits: u16, actions: u16, with_bad: bool) -> SlicedParity {
        let shape = Shape {
            observation_bits,
            actions,
            horizon: 1_000,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000_000,
            fields: (0..observation_bits).map(|low| Field { low, width: 1 }).collect(),
        };
        SlicedParity { shape, prng: Prng::stream(seed, "tests/sliced"), with_bad }
    }

    fn plane(&mut self) -> LaneWord {
        LaneWord(core::array::from_fn(|_| self.prng.next_u64()))
    }
}

impl LaneEnvironment for SlicedParity {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64, observation: &mut [LaneWord]) {
        self.prng = Prng::stream(seed, "tests/sliced");
        for plane in observation {
            *plane = self.plane();
        }
    }

    fn step(&mut self, action: &[LaneWord], mask: LaneWord, observation: &mut [LaneWord]) -> LaneOutcome {
        let parity = observation.iter().take(3).fold(LaneWord::ZERO, |sum, plane| sum ^ *plane);
        let lucky = self.plane() & self.plane();
        let reward = (!(parity ^ action[0]) | lucky) & mask;
        let bad = if self.with_bad {
            action[0] & self.plane() & self.plane() & self.plane() & mask
        } else {
            LaneWord::ZERO
        };
        let done = self.plane() & self.plane() & mask;
        for plane in observation.iter_mut() {
            let new = self.plane();
            *plane = plane.replace(new, mask);
        }
        LaneOutcome { reward, done, bad }
    }
}

/// One lane of some planes as observation bits.
pub fn lane_bits(planes: &[LaneWord], lane: usize) -> Bits {
    assert!(lane < LANES);
    let mut bits = Bits::ZERO;
    for (bit, plane) in planes.iter().enumerate() {
        bits.set(bit, plane.get(lane));
    }
    bits
}
