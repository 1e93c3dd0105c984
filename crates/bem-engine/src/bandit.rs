//! The routed choice over plain actions: a tree of tested context bits with action statistics at its leaves.
//!
//! It starts as one leaf (decision D-33). A bit enters only where the log shows, by a test that knows how many
//! bits it looked at, that the reward of some action depends on it. Statistics then choose by UCB-V; frozen,
//! the tree compiles into a circuit of its best actions. Must not know which game it plays.
//! Clauses: VM-9, VM-10, VM-16; decisions D-1 to D-4, D-33.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Shape};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_circuit::netlist::{Builder, Signal};
use bem_learn::index::{self, ArmStatistics, Parameters};
use bem_learn::loss::{Loss, PayoffRange};
use bem_learn::ucb_v::estimate;
use bem_synth::experience::{Episode, Step};
use bem_synth::policy::{Policy, action_bits};

/// Leaves at most.
const LEAVES_MAX: usize = 256;
/// Bits of the observation that are tested at most.
const BITS_MAX: usize = 64;

/// Bits up to which pairs are tested, and the latest steps they are tested on.
const PAIR_BITS_MAX: usize = 16;
const PAIR_STEPS_MAX: usize = 20_000;

/// What the actions brought in one context.
#[derive(Clone, Debug)]
struct Leaf {
    arms: Vec<ArmStatistics>,
    total: u64,
}

impl Leaf {
    fn new(actions: u16) -> Leaf {
        let half = Fixed::HALF.to_raw() as u64;
        let arm = ArmStatistics { visits: 1, loss_sum: half, loss_sq_sum: half / 2, prior: 0 };
        Leaf { arms: vec![arm; usize::from(actions)], total: 0 }
    }

    fn record(&mut self, action: u16, loss: Loss) {
        let arm = &mut self.arms[usize::from(action)];
        arm.visits += 1;
        arm.loss_sum += loss.to_raw();
        arm.loss_sq_sum += loss.squared_raw();
        self.total += 1;
    }

    fn choose(&self, parameters: &Parameters) -> u16 {
        let ln_total = Fixed::ln_count_floor(self.total + 1).to_raw() as u64;
        let indices =
            self.arms.iter().map(|arm| index::index_of(parameters, &estimate(arm, ln_total), arm.prior));
        indices.enumerate().min_by_key(|(action, index)| (*index, *action)).expect("worlds have actions").0
            as u16
    }

    fn decode(actions: u16, reader: &mut Reader<'_>) -> Result<Leaf, DecodeError> {
        let wild = reader.error("statistics that no play can have left");
        let mut leaf = Leaf::new(actions);
        leaf.total = reader.u64()?;
        for arm in &mut leaf.arms {
            (arm.visits, arm.loss_sum, arm.loss_sq_sum) = (reader.u32()?, reader.u64()?, reader.u64()?);
            let most = u64::from(arm.visits) << FRACTION_BITS;
            if arm.visits == 0 || most < arm.loss_sum || arm.loss_sum < arm.loss_sq_sum {
                return Err(wild);
            }
        }
        if leaf.total < 1 << 48 { Ok(leaf) } else { Err(wild) }
    }

    /// The action with the lowest mean loss; the imagined visit at one half keeps untried ones in the middle.
    fn best(&self) -> u16 {
        let mean = |arm: &ArmStatistics| (arm.loss_sum / u64::from(arm.visits)) as i64;
        let means = self.arms.iter().map(mean).enumerate();
        means.min_by_key(|(action, mean)| (*mean, *action)).expect("worlds have actions").0 as u16
    }
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(Leaf),
    Split { bit: usize, low: usize, high: usize },
}

/// A tree of contexts over the observation bits.
#[derive(Clone, Debug)]
pub struct RoutedBandit {
    nodes: Vec<Node>,
    parameters: Parameters,
    range: PayoffRange,
    actions: u16,
    observation_bits: usize,
}

impl RoutedBandit {
    /// One context, nothing known.
    pub fn new(shape: &Shape) -> RoutedBandit {
        let (low, high) = (i64::from(shape.reward_min), i64::from(shape.reward_max));
        RoutedBandit {
            nodes: vec![Node::Leaf(Leaf::new(shape.actions))],
            parameters: Parameters { change: None, ..Parameters::DEFAULT },
            range: PayoffRange::new(low, high.max(low + 1)).expect("rewards of 32 bits lie within the span"),
            actions: shape.actions,
            observation_bits: usize::from(shape.observation_bits),
        }
    }

    /// Grown anew from the log: contexts that its tests accept, with their statistics.
    ///
    /// First come bits that tell something everywhere, each tested over all contexts at once; a bit that tells something
    /// in many contexts shows sooner that way than in any one of them. Then every context may be split by itself.
    #[doc(alias = "SPLIT")]
    pub fn grow(shape: &Shape, episodes: &[&Episode]) -> RoutedBandit {
        let mut bandit = RoutedBandit::new(shape);
        let steps: Vec<&Step> = episodes.iter().flat_map(|episode| &episode.steps).collect();
        let bits = bandit.observation_bits.min(BITS_MAX);
        let mut pending = vec![(0usize, steps)];
        for bit in shared_bits(&pending[0].1, bits, bandit.actions) {
            pending = pending.into_iter().flat_map(|(node, steps)| bandit.split(node, bit, steps)).collect();
        }
        let mut leaves = pending.len();
        while let Some((node, steps)) = pending.pop() {
            let split = if leaves < LEAVES_MAX {
                telling_bit(&steps, bits, bandit.actions)
                    .or_else(|| telling_pair(&steps, bits, bandit.actions))
            } else {
                None
            };
            match split {
                Some(bit) => {
                    leaves += 1;
                    pending.extend(bandit.split(node, bit, steps));
                }
                None => {
                    let range = bandit.range;
                    let Node::Leaf(leaf) = &mut bandit.nodes[node] else { continue };
                    for step in steps {
                        leaf.record(step.action, range.loss(i64::from(step.reward)));
                    }
                }
            }
        }
        bandit
    }

    /// Splits a leaf; its two halves with their steps.
    fn split<'e>(&mut self, node: usize, bit: usize, steps: Vec<&'e Step>) -> [(usize, Vec<&'e Step>); 2] {
        let (high, low): (Vec<&Step>, Vec<&Step>) =
            steps.into_iter().partition(|step| step.observation.get(bit));
        let first = self.nodes.len();
        self.nodes[node] = Node::Split { bit, low: first, high: first + 1 };
        self.nodes.extend([Node::Leaf(Leaf::new(self.actions)), Node::Leaf(Leaf::new(self.actions))]);
        [(first, low), (first + 1, high)]
    }

    fn leaf(&self, observation: &Bits) -> usize {
        let mut node = 0;
        while let Node::Split { bit, low, high } = &self.nodes[node] {
            node = if observation.get(*bit) { *high } else { *low };
        }
        node
    }

    /// The action whose loss could plausibly be lowest here.
    pub fn choose(&self, observation: &Bits) -> u16 {
        match &self.nodes[self.leaf(observation)] {
            Node::Leaf(leaf) => leaf.choose(&self.parameters),
            Node::Split { .. } => unreachable!("a walk ends at a leaf"),
        }
    }

    /// Books one reward.
    pub fn record(&mut self, observation: &Bits, action: u16, reward: i32) {
        let place = self.leaf(observation);
        let loss = self.range.loss(i64::from(reward));
        if let Node::Leaf(leaf) = &mut self.nodes[place] {
            leaf.record(action, loss);
        }
    }

    /// Writes the tree and its statistics; the rest follows from the shape.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.nodes.len());
        for node in &self.nodes {
            match node {
                Node::Leaf(leaf) => {
                    writer.u8(0);
                    writer.u64(leaf.total);
                    for arm in &leaf.arms {
                        writer.u32(arm.visits);
                        writer.u64(arm.loss_sum);
                        writer.u64(arm.loss_sq_sum);
                    }
                }
                Node::Split { bit, low, high } => {
                    writer.u8(1);
                    writer.u16(*bit as u16);
                    writer.length(*low);
                    writer.length(*high);
                }
            }
        }
    }

    /// Reads canonical bytes back and checks that they are a tree over the bits of this shape.
    pub fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<RoutedBandit, DecodeError> {
        let wild = reader.error("contexts that are no tree over the observation");
        let mut bandit = RoutedBandit::new(shape);
        let count = reader.length(9)?;
        if count == 0 || 2 * LEAVES_MAX <= count {
            return Err(wild);
        }
        // A child comes after its parent and has one parent only, so that every walk ends.
        let mut has_parent = vec![false; count];
        bandit.nodes.clear();
        for place in 0..count {
            bandit.nodes.push(match reader.u8()? {
                0 => Node::Leaf(Leaf::decode(bandit.actions, reader)?),
                1 => {
                    let bit = usize::from(reader.u16()?);
                    let (low, high) = (reader.u32()? as usize, reader.u32()? as usize);
                    for child in [low, high] {
                        if child <= place
                            || count <= child
                            || core::mem::replace(&mut has_parent[child], true)
                        {
                            return Err(wild);
                        }
                    }
                    if bandit.observation_bits <= bit {
                        return Err(wild);
                    }
                    Node::Split { bit, low, high }
                }
                _ => return Err(wild),
            });
        }
        if has_parent[1..].iter().all(|has| *has) { Ok(bandit) } else { Err(wild) }
    }

    /// How many contexts there are.
    pub fn contexts(&self) -> usize {
        self.nodes.iter().filter(|node| matches!(node, Node::Leaf(_))).count()
    }

    /// The best action of every context as one circuit.
    pub fn freeze(&self) -> Option<Policy> {
        let mut builder = Builder::new(self.observation_bits);
        let action = self.build(&mut builder, 0);
        Policy::close(builder, self.observation_bits, self.actions, &action, &[]).ok()
    }

    fn build(&self, builder: &mut Builder, node: usize) -> Vec<Signal> {
        match &self.nodes[node] {
            Node::Leaf(leaf) => {
                let best = leaf.best();
                (0..action_bits(self.actions)).map(|bit| Signal::constant(best >> bit & 1 == 1)).collect()
            }
            Node::Split { bit, low, high } => {
                let (low, high) = (self.build(builder, *low), self.build(builder, *high));
                let pairs = low.iter().zip(&high);
                pairs.map(|(low, high)| builder.mux(Signal::input(*bit), *high, *low)).collect()
            }
        }
    }
}

/// Sums of one action on one side of a bit.
#[derive(Clone, Copy, Default)]
struct Cell {
    count: i64,
    sum: i64,
    squares: i128,
}

impl Cell {
    fn add(&mut self, reward: i32) {
        self.count += 1;
        self.sum += i64::from(reward);
        self.squares += i128::from(reward).pow(2);
    }

    /// The rest, and a part with this count and sum. Squares are not told apart: the pooled variance needs only all.
    fn parted(&self, count: i64, sum: i64) -> (Cell, Cell) {
        let rest = Cell { count: self.count - count, sum: self.sum - sum, squares: self.squares };
        (rest, Cell { count, sum, squares: 0 })
    }

    fn plus(&self, other: &Cell) -> Cell {
        let (count, sum) = (self.count + other.count, self.sum + other.sum);
        Cell { count, sum, squares: self.squares + other.squares }
    }
}

/// Bits on which rewards depend, tested one after the other over all contexts that the earlier ones make.
fn shared_bits(steps: &[&Step], bits: usize, actions: u16) -> Vec<usize> {
    let actions = usize::from(actions);
    let mut chosen: Vec<usize> = Vec::new();
    // The context of a step and its action as one number.
    let mut places: Vec<usize> = steps.iter().map(|step| usize::from(step.action)).collect();
    while bits != 0 && 2 << chosen.len() <= LEAVES_MAX {
        let contexts = 1 << chosen.len();
        let mut wholes = vec![Cell::default(); contexts * actions];
        let mut halves = vec![(0i64, 0i64); contexts * actions * bits];
        for (step, place) in steps.iter().zip(&places) {
            wholes[*place].add(step.reward);
            let mut word = step.observation.0[0] & (u64::MAX >> (64 - bits));
            while word != 0 {
                let half = &mut halves[place * bits + word.trailing_zeros() as usize];
                *half = (half.0 + 1, half.1 + i64::from(step.reward));
                word &= word - 1;
            }
        }
        let surplus = |bit: usize| {
            let halves = wholes.iter().enumerate().map(|(place, whole)| (whole, halves[place * bits + bit]));
            surplus_of(halves.map(|(whole, (count, sum))| whole.parted(count, sum)), bits)
        };
        let free = (0..bits).filter(|bit| !chosen.contains(bit));
        let best = free.map(|bit| (surplus(bit), bit)).max_by_key(|(surplus, bit)| (*surplus, bits - bit));
        let Some((_, bit)) = best.filter(|(surplus, _)| 0 < *surplus) else { break };
        for (step, place) in steps.iter().zip(&mut places) {
            *place += usize::from(step.observation.get(bit)) * contexts * actions;
        }
        chosen.push(bit);
    }
    chosen
}

/// How far the squared differences of the parts exceed what chance brings, for as many bits as were tried.
fn surplus_of(parts: impl Iterator<Item = (Cell, Cell)>, bits: usize) -> i128 {
    const SCALE: i128 = 1 << 10;
    let (mut evidence, mut tested, mut mean) = (0i128, 0i128, 0i128);
    for (low, high) in parts.filter(|(low, high)| 4 <= low.count && 4 <= high.count) {
        let count = i128::from(low.count + high.count);
        tested += 1;
        // With both counts fixed, the mean of a squared difference is a little above one.
        mean += SCALE * count / (count - 1);
        evidence += squared_difference(&low, &high, SCALE);
    }
    let deviation = (2 * tested * SCALE * SCALE).unsigned_abs().isqrt() as i128;
    let margin = SCALE * (6 + 2 * i128::from(bits.max(1).ilog2()));
    evidence - mean - 3 * deviation - margin
}

/// The bit on which rewards depend most, if the dependence is beyond chance for as many bits as were tried.
///
/// For every action the two means are compared in units of their standard error; the squares add up to about
/// one per action when the bit tells nothing.
fn telling_bit(steps: &[&Step], bits: usize, actions: u16) -> Option<usize> {
    const SCALE: i128 = 1 << 10;
    if steps.len() < 8 * usize::from(actions).min(16) {
        return None;
    }
    let mut best: Option<(i128, usize)> = None;
    for bit in 0..bits {
        let mut cells = vec![[Cell::default(); 2]; usize::from(actions)];
        for step in steps {
            let cell = &mut cells[usize::from(step.action)][usize::from(step.observation.get(bit))];
            cell.add(step.reward);
        }
        let mut evidence = 0i128;
        let mut tested = 0i128;
        for [low, high] in cells.iter().filter(|[low, high]| 3 <= low.count && 3 <= high.count) {
            tested += 1;
            evidence += squared_difference(low, high, SCALE);
        }
        if tested == 0 {
            continue;
        }
        // A chi-square of `tested` degrees exceeds mean + 4 deviations + a margin for the bits tried rarely.
        let deviation = (2 * tested * SCALE * SCALE).unsigned_abs().isqrt() as i128;
        let margin = SCALE * (6 + 2 * i128::from((bits.max(1)).ilog2()));
        let surplus = evidence - tested * SCALE - 3 * deviation - margin;
        if 0 < surplus && best.is_none_or(|held| held.0 < surplus) {
            best = Some((surplus, bit));
        }
    }
    best.map(|(_, bit)| bit)
}

/// The first of two bits on which rewards depend together, where neither tells anything alone.
fn telling_pair(steps: &[&Step], bits: usize, actions: u16) -> Option<usize> {
    const SCALE: i128 = 1 << 10;
    if PAIR_BITS_MAX < bits || steps.len() < 16 * usize::from(actions).min(16) {
        return None;
    }
    let latest = &steps[steps.len().saturating_sub(PAIR_STEPS_MAX)..];
    let mut best: Option<(i128, usize)> = None;
    for first in 0..bits {
        for second in first + 1..bits {
            let mut cells = vec![[Cell::default(); 4]; usize::from(actions)];
            for step in latest {
                let seen = &step.observation;
                let group = usize::from(seen.get(first)) + 2 * usize::from(seen.get(second));
                cells[usize::from(step.action)][group].add(step.reward);
            }
            let (mut evidence, mut tested) = (0i128, 0i128);
            for [a, b, c, d] in cells.iter().filter(|cells| cells.iter().all(|cell| 3 <= cell.count)) {
                tested += 1;
                // Neither bit alone: only the two diagonals are compared.
                evidence += squared_difference(&a.plus(d), &b.plus(c), SCALE);
            }
            if tested == 0 {
                continue;
            }
            let deviation = (2 * tested * SCALE * SCALE).unsigned_abs().isqrt() as i128;
            let margin = SCALE * (6 + 4 * i128::from(bits.ilog2()));
            let surplus = evidence - tested * SCALE - 3 * deviation - margin;
            if 0 < surplus && best.is_none_or(|held| held.0 < surplus) {
                best = Some((surplus, first));
            }
        }
    }
    best.map(|(_, bit)| bit)
}

/// The squared difference of two means over its variance, times `scale`.
fn squared_difference(low: &Cell, high: &Cell, scale: i128) -> i128 {
    let (low_count, high_count) = (i128::from(low.count), i128::from(high.count));
    // Both means over the common denominator; the pooled variance has one milli-unit squared added, so that
    // rewards without any spread do not divide by zero.
    let difference = i128::from(high.sum) * low_count - i128::from(low.sum) * high_count;
    let count = low_count + high_count;
    let sum = i128::from(low.sum + high.sum);
    let pooled = (low.squares + high.squares) * count - sum * sum;
    let variance = pooled / (count * count) + 1;
    // difference^2 / (n0 n1)^2 / (variance (1/n0 + 1/n1)) = difference^2 / (n0 n1 variance count)
    difference * difference / (low_count * high_count * count).max(1) * scale / variance
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::environment::Field;
    use bem_base::prng::Prng;

    fn shape() -> Shape {
        Shape {
            observation_bits: 8,
            actions: 4,
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
            fields: vec![Field { low: 0, width: 8 }],
        }
    }

    /// Uniform play where bits 2 and 5 decide which action pays more often.
    fn log(count: u64, paying: impl Fn(&Bits) -> Option<u16>) -> Vec<Episode> {
        let mut prng = Prng::stream(3, "bandit");
        (0..count)
            .map(|serial| {
                let observation = Bits([prng.below(256), 0, 0, 0]);
                let action = prng.below(4) as u16;
                let chance = if paying(&observation) == Some(action) { 80 } else { 40 };
                let reward = if prng.below(100) < chance { 1_000 } else { 0 };
                let step = Step {
                    observation,
                    action,
                    reward,
                    done: true,
                    bad: false,
                    uniform: true,
                    propensity: 16_383,
                };
                Episode { serial, steps: vec![step] }
            })
            .collect()
    }

    #[test]
    fn the_bits_that_matter_are_found_and_no_others() {
        let paying = |bits: &Bits| Some(u16::from(bits.get(2)) + 2 * u16::from(bits.get(5)));
        let episodes = log(3_000, paying);
        let bandit = RoutedBandit::grow(&shape(), &episodes.iter().collect::<Vec<_>>());
        assert_eq!(bandit.contexts(), 4);
        let policy = bandit.freeze().unwrap();
        assert_eq!(policy.reads(), [2, 5]);
        let mut player = bem_synth::policy::Player::new(&policy);
        for value in 0..256 {
            let bits = Bits([value, 0, 0, 0]);
            assert_eq!(Some(player.act(&bits)), paying(&bits));
        }
    }

    #[test]
    fn contexts_come_back_from_their_bytes_and_no_damage_makes_a_walk_endless() {
        let paying = |bits: &Bits| Some(u16::from(bits.get(2)) + 2 * u16::from(bits.get(5)));
        let episodes = log(3_000, paying);
        let bandit = RoutedBandit::grow(&shape(), &episodes.iter().collect::<Vec<_>>());
        let bytes_of = |bandit: &RoutedBandit| {
            let mut writer = Writer::new();
            bandit.encode(&mut writer);
            writer.into_bytes()
        };
        let bytes = bytes_of(&bandit);
        let copy = RoutedBandit::decode(&shape(), &mut Reader::new(&bytes)).unwrap();
        assert_eq!(bytes_of(&copy), bytes);
        assert_eq!(copy.freeze(), bandit.freeze());
        for cut in 0..bytes.len() {
            assert!(RoutedBandit::decode(&shape(), &mut Reader::new(&bytes[..cut])).is_err());
        }
        for position in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[position] ^= 0x55;
            if let Ok(mut other) = RoutedBandit::decode(&shape(), &mut Reader::new(&damaged)) {
                let _ = (other.choose(&Bits::ZERO), other.freeze());
                other.record(&Bits::ZERO, 1, 500);
            }
        }
    }

    #[test]
    fn six_bits_that_matter_a_little_are_found_together() {
        // Which of four actions pays is drawn for each of 64 contexts, so that a single bit tells hardly anything.
        let mut prng = Prng::stream(5, "six bits");
        let best: Vec<u16> = (0..64).map(|_| prng.below(4) as u16).collect();
        let episodes = log(12_000, |bits| Some(best[(bits.0[0] & 63) as usize]));
        let bandit = RoutedBandit::grow(&shape(), &episodes.iter().collect::<Vec<_>>());
        let policy = bandit.freeze().unwrap();
        let mut player = bem_synth::policy::Player::new(&policy);
        let right =
            (0..256).filter(|value| player.act(&Bits([*value, 0, 0, 0])) == best[(value & 63) as usize]);
        assert!(250 <= right.count());
    }

    #[test]
    fn two_bits_that_matter_only_together_are_found() {
        let paying = |bits: &Bits| Some(u16::from(bits.get(1) ^ bits.get(6)));
        let episodes = log(4_000, paying);
        let bandit = RoutedBandit::grow(&shape(), &episodes.iter().collect::<Vec<_>>());
        assert_eq!(bandit.freeze().unwrap().reads(), [1, 6]);
    }

    #[test]
    fn without_dependence_there_is_one_context() {
        let episodes = log(3_000, |_| None);
        let bandit = RoutedBandit::grow(&shape(), &episodes.iter().collect::<Vec<_>>());
        assert_eq!(bandit.contexts(), 1);
    }

    #[test]
    fn choices_settle_on_the_best_action() {
        let mut bandit = RoutedBandit::new(&shape());
        let mut prng = Prng::stream(9, "settle");
        let mut last = 0;
        for round in 0..4_000 {
            let action = bandit.choose(&Bits::ZERO);
            let chance = if action == 3 { 60 } else { 40 };
            bandit.record(&Bits::ZERO, action, if prng.below(100) < chance { 1_000 } else { 0 });
            last += u32::from(3_000 <= round && action == 3);
        }
        assert!(900 < last, "{last}");
    }
}
