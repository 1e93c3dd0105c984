//! Other ways to look at the same log: bits in groups that nobody declared, or the learner's own last action beside
//! what is seen.
//!
//! A lens makes a world of another shape out of a log and turns a policy for that world back into one for this. Groups
//! come from statistics alone: bits that rise and fall together, bits that the same other bits hold still, or pairs whose
//! equality goes with the right action. Must not know games. Clauses: SCC-2, GLE-2.

use crate::experience::Episode;
use crate::policy::{Policy, action_bits};
use crate::samples::{Row, Samples};
use crate::statement::Statement;
use bem_base::environment::{Bits, Field, Shape};
use bem_base::limits::OBSERVATION_BITS_MAX;
use bem_circuit::netlist::{Builder, Op, Signal};

/// Observations looked at, the latest ones.
const SEEN_MAX: usize = 4_096;
/// Observations before their statistics are believed.
const SEEN_MIN: usize = 64;
/// Bits of an observation for which groups are sought.
const BITS_MAX: usize = 64;

/// One way to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lens {
    /// For every bit seen through the lens: which bit it is, and whether it is inverted.
    bits: Vec<(u16, bool)>,
    fields: Vec<Field>,
    /// The last action's code follows as one more field; zero at the start.
    echo: bool,
    words: &'static str,
}

impl Lens {
    /// Groups of bits where none are declared; none when the statistics show none.
    pub fn grouped(shape: &Shape, episodes: &[&Episode]) -> Option<Lens> {
        let width = usize::from(shape.observation_bits);
        let declared = shape.fields.iter().any(|field| 1 < field.width);
        if declared || !(3..=BITS_MAX).contains(&width) {
            return None;
        }
        let steps = episodes.iter().rev().flat_map(|episode| &episode.steps);
        let seen: Vec<u64> = steps.take(SEEN_MAX).map(|step| step.observation.0[0]).collect();
        if seen.len() < SEEN_MIN {
            return None;
        }
        let statistics = Statistics::new(width, &seen);
        // In a stream almost everything goes together; what tells bits apart there is what holds them still.
        let groups = match shape.horizon {
            1 => statistics.groups(|one, other| statistics.move_together(one, other)),
            _ => statistics.groups(|one, other| statistics.are_held_by_the_same(one, other)),
        };
        let telling = groups.len() < width && (shape.horizon == 1 || 1 < groups.len());
        if !telling {
            return None;
        }
        let mut bits = Vec::new();
        let mut fields = Vec::new();
        for group in &groups {
            fields.push(Field { low: bits.len() as u16, width: group.len() as u16 });
            let first = group[0];
            let inverted = |bit: usize| shape.horizon == 1 && statistics.move_apart(first, bit);
            bits.extend(group.iter().map(|bit| (*bit as u16, inverted(*bit))));
        }
        // A bit of a wide group may also mean something by itself: such bits are shown twice.
        if 1 < shape.horizon {
            for bit in groups.iter().filter(|group| 2 < group.len()).flatten() {
                fields.push(Field { low: bits.len() as u16, width: 1 });
                bits.push((*bit as u16, false));
            }
        }
        Some(Lens { bits, fields, echo: false, words: "grouped bits" })
    }

    /// Two words side by side where no groups are declared, in worlds of one step: bits that go together two and two,
    /// or whose equality goes with the answer. None when there are not two such pairs.
    pub fn paired(shape: &Shape, episodes: &[&Episode]) -> Option<Lens> {
        let width = usize::from(shape.observation_bits);
        let declared = shape.fields.iter().any(|field| 1 < field.width) && 1 < shape.fields.len();
        if declared || 1 < shape.horizon || !(4..=BITS_MAX).contains(&width) {
            return None;
        }
        let seen: Vec<u64> =
            episodes.iter().rev().take(SEEN_MAX).map(|episode| episode.steps[0].observation.0[0]).collect();
        if seen.len() < SEEN_MIN {
            return None;
        }
        let statistics = Statistics::new(width, &seen);
        let groups = statistics.groups(|one, other| statistics.move_together(one, other));
        let mut pairs: Vec<(usize, usize, bool)> = groups
            .iter()
            .filter(|group| group.len() == 2)
            .map(|group| (group[0], group[1], statistics.move_apart(group[0], group[1])))
            .collect();
        if pairs.len() < 2 {
            pairs = pairs_by_answer(shape, episodes);
        }
        if pairs.len() < 2 {
            return None;
        }
        let mut bits: Vec<(u16, bool)> = pairs.iter().map(|(first, _, _)| (*first as u16, false)).collect();
        bits.extend(pairs.iter().map(|(_, second, inverted)| (*second as u16, *inverted)));
        let half = pairs.len() as u16;
        let mut fields = vec![Field { low: 0, width: half }, Field { low: half, width: half }];
        let rest = (0..width).filter(|bit| bits.iter().all(|(taken, _)| usize::from(*taken) != *bit));
        for bit in rest.collect::<Vec<_>>() {
            fields.push(Field { low: bits.len() as u16, width: 1 });
            bits.push((bit as u16, false));
        }
        Some(Lens { bits, fields, echo: false, words: "paired bits" })
    }

    /// The own last action beside the observation; none where there is no room for it.
    pub fn own_action(shape: &Shape) -> Option<Lens> {
        let room = usize::from(shape.observation_bits) + action_bits(shape.actions) <= OBSERVATION_BITS_MAX;
        let bits = (0..shape.observation_bits).map(|bit| (bit, false)).collect();
        let lens = Lens { bits, fields: shape.fields.clone(), echo: true, words: "the own last action" };
        (room && 1 < shape.actions && 1 < shape.horizon).then_some(lens)
    }

    /// Whether the own last action is seen through it.
    pub fn shows_actions(&self) -> bool {
        self.echo
    }

    /// What is seen through it, in words.
    pub fn words(&self) -> &'static str {
        self.words
    }

    /// The world's shape through the lens.
    pub fn shape(&self, shape: &Shape) -> Shape {
        let observation_bits = self.bits.len() as u16;
        let mut seen = Shape { fields: self.fields.clone(), observation_bits, ..shape.clone() };
        if self.echo {
            let width = action_bits(shape.actions) as u16;
            seen.fields.push(Field { low: seen.observation_bits, width });
            seen.observation_bits += width;
        }
        seen
    }

    /// An episode through the lens.
    pub fn see(&self, episode: &Episode) -> Episode {
        let mut last = 0u16;
        let steps = episode.steps.iter().map(|step| {
            let mut observation = Bits::ZERO;
            for (place, (bit, inverted)) in self.bits.iter().enumerate() {
                observation.set(place, step.observation.get(usize::from(*bit)) ^ inverted);
            }
            if self.echo {
                // Codes have at most ten bits.
                (0..10)
                    .filter(|bit| last >> bit & 1 == 1)
                    .for_each(|bit| observation.set(self.bits.len() + bit, true));
                last = step.action;
            }
            crate::experience::Step { observation, ..*step }
        });
        Episode { serial: episode.serial, steps: steps.collect() }
    }

    /// What a statement about the world through the lens says about the world itself.
    pub fn state(&self, inner: Statement) -> Statement {
        Statement::Through { bits: self.bits.clone(), echo: self.echo, inner: Box::new(inner) }
    }

    /// The policy for the world itself that does what this one does through the lens; none if a bound is exceeded.
    pub fn restore(&self, shape: &Shape, policy: &Policy) -> Option<Policy> {
        let observation_bits = usize::from(shape.observation_bits);
        let code_bits = action_bits(shape.actions);
        let echo_bits = if self.echo { code_bits } else { 0 };
        let memory_bits = policy.memory_bits() + echo_bits;
        let mut builder = Builder::new(observation_bits + memory_bits);
        let memory: Vec<Signal> =
            (0..memory_bits).map(|place| Signal::input(observation_bits + place)).collect();
        let mut inputs = Vec::new();
        for index in policy.reads().iter().map(|index| usize::from(*index)) {
            inputs.push(match self.bits.get(index) {
                Some((bit, inverted)) => {
                    builder.gate(Op::Xor, Signal::input(usize::from(*bit)), Signal::constant(*inverted))
                }
                None => memory[policy.memory_bits() + index - self.bits.len()],
            });
        }
        inputs.extend_from_slice(&memory[..policy.memory_bits()]);
        let outputs = builder.embed(policy.circuit(), &inputs);
        let (action, next) = outputs.split_at(code_bits);
        let mut next = next.to_vec();
        next.extend_from_slice(&action[..echo_bits]);
        Policy::close(builder, observation_bits, shape.actions, action, &next).ok()
    }
}

/// Disjoint pairs of bits whose equality goes with some bit of the right action, the strongest first, each with whether
/// it goes the other way than the first pair.
fn pairs_by_answer(shape: &Shape, episodes: &[&Episode]) -> Vec<(usize, usize, bool)> {
    let width = usize::from(shape.observation_bits);
    let steps = || episodes.iter().rev().take(SEEN_MAX).map(|episode| &episode.steps[0]);
    let top = steps().map(|step| step.reward).max().unwrap_or(0);
    let labelled = |bit: usize| {
        let right = steps().filter(|step| step.reward == top);
        let rows = right.map(|step| (Row::from_observation(&step.observation), step.action >> bit & 1 == 1));
        Samples::new(width, shape.fields.clone(), rows, 0)
    };
    let measured: Vec<Samples> = (0..action_bits(shape.actions)).map(labelled).collect();
    let mut ties: Vec<(i64, usize, usize, usize)> = Vec::new();
    for (bit, samples) in measured.iter().enumerate() {
        let positive = samples.labels.iter().filter(|label| **label).count() as i64;
        let size = samples.len() as i64;
        for first in 0..width {
            for second in first + 1..width {
                let tie = tie(samples, first, second);
                // Four standard deviations.
                if 16 * positive * (size - positive) < tie * tie * size {
                    ties.push((-tie.abs(), first, second, bit));
                }
            }
        }
    }
    ties.sort_unstable();
    let mut pairs: Vec<(usize, usize, bool)> = Vec::new();
    let Some((_, one, other, strongest)) = ties.first().copied() else { return pairs };
    let sign = tie(&measured[strongest], one, other).signum();
    for (_, first, second, bit) in ties {
        let taken = |bit: usize| pairs.iter().any(|(first, second, _)| *first == bit || *second == bit);
        if bit == strongest && !taken(first) && !taken(second) {
            pairs.push((first, second, tie(&measured[bit], first, second).signum() != sign));
        }
    }
    pairs
}

/// How far the equality of two bits goes with the label: twice the surplus of rows over what their shares would give.
fn tie(samples: &Samples, first: usize, second: usize) -> i64 {
    let (mut equal, mut both, mut positive) = (0i64, 0i64, 0i64);
    for (word, label) in samples.label_words().iter().enumerate() {
        let same = !(samples.column(first)[word] ^ samples.column(second)[word]) & samples.mask(word);
        equal += i64::from(same.count_ones());
        both += i64::from((same & label).count_ones());
        positive += i64::from(label.count_ones());
    }
    2 * (both - equal * positive / (samples.len() as i64).max(1))
}

/// How the bits of what was seen go together.
struct Statistics {
    width: usize,
    count: usize,
    /// For two bits: in how many observations they agree.
    agree: Vec<Vec<usize>>,
    /// For a bit and another one's value: whether the value was seen, and the bit had only one value then.
    held: Vec<Vec<[bool; 2]>>,
}

impl Statistics {
    fn new(width: usize, seen: &[u64]) -> Statistics {
        let mut agree = vec![vec![0; width]; width];
        // Which values of the bit were seen, as a mask.
        let mut values = vec![vec![[0u8; 2]; width]; width];
        for word in seen {
            for bit in 0..width {
                let value = word >> bit & 1;
                for other in 0..width {
                    let beside = word >> other & 1;
                    agree[bit][other] += usize::from(value == beside);
                    values[bit][other][beside as usize] |= 1 << value;
                }
            }
        }
        let held = values
            .iter()
            .map(|row| row.iter().map(|masks| masks.map(|mask| mask == 1 || mask == 2)).collect())
            .collect();
        Statistics { width, count: seen.len(), agree, held }
    }

    /// Whether the two agree far more or far less often than by chance.
    fn move_together(&self, one: usize, other: usize) -> bool {
        let surplus = (2 * self.agree[one][other]).abs_diff(self.count);
        // Five standard deviations, with few pairs to test.
        25 * self.count < surplus * surplus && surplus < self.count
    }

    /// Whether they agree less often than they differ, beyond chance.
    fn move_apart(&self, one: usize, other: usize) -> bool {
        self.move_together(one, other) && 2 * self.agree[one][other] < self.count
    }

    /// Whether the same values of the same other bits leave both only one value.
    fn are_held_by_the_same(&self, one: usize, other: usize) -> bool {
        let third = |bit: &usize| *bit != one && *bit != other;
        (0..self.width).filter(third).all(|bit| self.held[one][bit] == self.held[other][bit])
            && self.held[one][other] == self.held[other][one]
    }

    /// Groups in which all bits are alike, by their lowest bits.
    fn groups(&self, alike: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for bit in 0..self.width {
            match groups.iter_mut().find(|group| group.iter().all(|other| alike(*other, bit))) {
                Some(group) => group.push(bit),
                None => groups.push(vec![bit]),
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experience::Step;
    use crate::policy::Player;
    use bem_base::prng::Prng;

    fn step(word: u64, action: u16) -> Step {
        let observation = Bits([word, 0, 0, 0]);
        Step { observation, action, reward: 0, done: false, bad: false, uniform: true, propensity: 0 }
    }

    fn shape(observation_bits: u16, actions: u16) -> Shape {
        Shape {
            observation_bits,
            actions,
            horizon: 8,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 8_000,
            fields: (0..observation_bits).map(|low| Field { low, width: 1 }).collect(),
        }
    }

    #[test]
    fn bits_that_rise_together_and_bits_held_by_the_same_are_groups() {
        let mut prng = Prng::stream(4, "lens");
        // Each draw has its own share of ones; the odd bits are inverted.
        let leaning: Vec<Step> = (0..600)
            .map(|_| {
                let share = prng.below(11);
                step(
                    (0..10).fold(0, |word, bit| {
                        word | u64::from((prng.below(10) < share) ^ (bit % 2 == 1)) << bit
                    }),
                    0,
                )
            })
            .collect();
        let log = Episode { serial: 1, steps: leaning };
        let lens = Lens::grouped(&Shape { horizon: 1, ..shape(10, 2) }, &[&log]).unwrap();
        assert_eq!(lens.fields, [Field { low: 0, width: 10 }]);
        assert!(lens.bits.iter().all(|(bit, inverted)| *inverted == (bit % 2 == 1)));
        // Bit 2 says whether bits 0 and 3 mean something; bits 1, 4 and 5 always do.
        let guarded: Vec<Step> = (0..600)
            .map(|_| {
                let word = prng.below(64);
                step(if word >> 2 & 1 == 1 { word } else { word & !9 }, 0)
            })
            .collect();
        let log = Episode { serial: 1, steps: guarded };
        let lens = Lens::grouped(&shape(6, 2), &[&log]).unwrap();
        assert_eq!(lens.bits, [0, 3, 1, 4, 5, 2, 1, 4, 5].map(|bit| (bit, false)));
        assert_eq!(lens.fields.iter().map(|field| field.width).collect::<Vec<_>>(), [2, 3, 1, 1, 1, 1]);
    }

    #[test]
    fn two_words_are_found_by_the_answers_to_their_distance() {
        let mut prng = Prng::stream(6, "lens/paired");
        let (firsts, seconds) = ([3, 0, 9, 5, 7], [1, 8, 2, 4, 6]);
        let world = Shape { horizon: 1, ..shape(10, 4) };
        let log: Vec<Episode> = (0..1_600)
            .map(|serial| {
                let (word, action) = (prng.below(1 << 10), prng.below(4) as u16);
                let bit = |place: usize| word >> place & 1;
                // The second pair is inverted.
                let apart: u64 =
                    (0..5).map(|pair| bit(firsts[pair]) ^ bit(seconds[pair]) ^ u64::from(pair == 1)).sum();
                let reward = if u64::from(action) == apart.min(3) { 1_000 } else { 0 };
                Episode { serial, steps: vec![Step { reward, done: true, ..step(word, action) }] }
            })
            .collect();
        let lens = Lens::paired(&world, &log.iter().collect::<Vec<_>>()).unwrap();
        let place = |bit: usize| lens.bits.iter().position(|(held, _)| usize::from(*held) == bit).unwrap();
        let inverted: Vec<bool> = (0..5)
            .map(|pair| {
                let (first, second) = (place(firsts[pair]), place(seconds[pair]));
                assert_eq!(first.abs_diff(second), 5, "{:?}", lens.bits);
                lens.bits[first].1 ^ lens.bits[second].1
            })
            .collect();
        let apart = inverted.iter().filter(|inverted| **inverted).count();
        assert_eq!(apart.min(5 - apart), 1, "one pair has another polarity than the rest");
    }

    #[test]
    fn a_policy_through_a_lens_does_the_same_in_the_world() {
        let world = shape(3, 3);
        let lens = Lens::own_action(&world).unwrap();
        let seen = lens.shape(&world);
        // The action after the last one, or the first when bit 1 is set.
        let mut builder = Builder::new(5);
        let (low, high) = (Signal::input(3), Signal::input(4));
        let none = builder.gate(Op::Nor, low, high);
        let (first, second) =
            (builder.and_not(none, Signal::input(1)), builder.and_not(low, Signal::input(1)));
        let policy = Policy::close(builder, 5, 3, &[first, second], &[]).unwrap();
        let restored = lens.restore(&world, &policy).unwrap();
        assert_eq!((seen.observation_bits, restored.memory_bits()), (5, 2));
        let mut player = Player::new(&restored);
        let acted: Vec<u16> = [0, 4, 0, 0, 2, 0].map(|word| player.act(&Bits([word, 0, 0, 0]))).to_vec();
        assert_eq!(acted, [1, 2, 0, 1, 0, 1]);
        let steps = acted.iter().map(|action| step(0, *action)).collect();
        let through = lens.see(&Episode { serial: 1, steps });
        let echoed: Vec<u64> = through.steps.iter().map(|step| step.observation.0[0] >> 3).collect();
        assert_eq!(echoed, [0, 1, 2, 0, 1, 0]);
    }
}
