//! Facts that rules are made of: bits, memory, numbers in fields, their order, counts and parities.
//!
//! A fact speaks of inputs of the policy's circuit by their place: first the observation bits that it reads, then its
//! memory. Which facts are offered is a guess from looking at the circuit; that a list of rules is right is shown by the
//! prover afterwards. Every fact is also a circuit.

use crate::Words;
use crate::meaning::Meaning;
use crate::observations::{Observations, Unit};
use crate::topic::Topic;
use bem_base::environment::Field;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_synth::policy::action_bits;
use std::collections::{BTreeMap, BTreeSet};

/// A group of neighbouring observation bits as a number, as far as the policy reads it: its highest bits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    /// The inputs, lowest bit first.
    pub places: Vec<usize>,
    /// Which field of the world it is; one beyond the last is the policy's own clock, two beyond it an action.
    pub field: usize,
    /// How many steps ago; 0 is now.
    pub back: usize,
    /// Bits below the first that the policy does not read.
    pub skipped: usize,
}

/// Something that holds or does not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// This input is 1.
    Bit(usize),
    /// The number is at least this, in the unit of its lowest bit that is read.
    AtLeast(Number, u64),
    /// The number is this.
    Equals(Number, u64),
    /// The first number is below the second.
    Less(Number, Number),
    /// Both numbers are equal.
    Same(Number, Number),
    /// An odd number of these inputs are 1.
    Odd(Vec<usize>),
    /// At least so many of these inputs are 1.
    Count(Vec<usize>, usize),
}

/// Fields with at most this many bits are looked at value by value.
const NUMBER_BITS_MAX: usize = 10;
/// How often borders are looked for, each time beside 64 assignments of all else.
const BORDER_LOOKS: usize = 8;
/// Borders of one field that are offered.
const BORDERS_MAX: usize = 24;
/// Up to so many words of a choice are asked for one by one.
const WORDS_MAX: u64 = 32;
/// Fields that are compared with each other.
const COMPARED_MAX: usize = 6;
/// Inputs between which symmetry is looked for.
const SYMMETRIC_MAX: usize = 64;
/// So many inputs are named one by one.
const FEW: usize = 4;

impl Fact {
    /// The fact as a signal.
    pub fn build(&self, builder: &mut Builder) -> Signal {
        match self {
            Fact::Bit(place) => builder.input(*place),
            Fact::AtLeast(number, value) => at_least(builder, &number.places, *value),
            Fact::Equals(number, value) => {
                let bits: Vec<Signal> = (number.places.iter().enumerate())
                    .map(|(bit, place)| {
                        let signal = builder.input(*place);
                        if value >> bit & 1 == 1 { signal } else { builder.not(signal) }
                    })
                    .collect();
                builder.and_all(&bits)
            }
            Fact::Less(left, right) => compare(builder, left, right).0,
            Fact::Same(left, right) => compare(builder, left, right).1,
            Fact::Odd(places) => {
                let bits: Vec<Signal> = places.iter().map(|place| builder.input(*place)).collect();
                builder.xor_all(&bits)
            }
            Fact::Count(places, least) => count(builder, places, *least),
        }
    }

    /// Whether it holds where the inputs are these.
    pub fn holds(&self, bit: &dyn Fn(usize) -> bool) -> bool {
        let value = |number: &Number| {
            let places = number.places.iter().enumerate();
            places.fold(0u64, |sum, (digit, place)| sum | u64::from(bit(*place)) << digit)
        };
        let ones = |places: &[usize]| places.iter().filter(|place| bit(**place)).count();
        match self {
            Fact::Bit(place) => bit(*place),
            Fact::AtLeast(number, least) => *least <= value(number),
            Fact::Equals(number, wanted) => value(number) == *wanted,
            Fact::Less(left, right) => value(left) < value(right),
            Fact::Same(left, right) => value(left) == value(right),
            Fact::Odd(places) => ones(places) % 2 == 1,
            Fact::Count(places, least) => *least <= ones(places),
        }
    }

    /// The inputs that it speaks of.
    pub fn places(&self) -> Vec<usize> {
        match self {
            Fact::Bit(place) => vec![*place],
            Fact::AtLeast(number, _) | Fact::Equals(number, _) => number.places.clone(),
            Fact::Less(left, right) | Fact::Same(left, right) => {
                left.places.iter().chain(&right.places).copied().collect()
            }
            Fact::Odd(places) | Fact::Count(places, _) => places.clone(),
        }
    }

    /// How hard it is to read; among facts that say the same the plainest is taken.
    pub fn weight(&self) -> usize {
        match self {
            Fact::Bit(_) => 0,
            Fact::AtLeast(..) | Fact::Equals(..) => 1,
            Fact::Less(..) | Fact::Same(..) => 2,
            Fact::Count(..) => 3,
            Fact::Odd(_) => 4,
        }
    }
}

/// Whether the number is at least the constant, from the lowest bit up.
fn at_least(builder: &mut Builder, places: &[usize], value: u64) -> Signal {
    places.iter().enumerate().fold(Signal::TRUE, |so_far, (bit, place)| {
        let signal = builder.input(*place);
        if value >> bit & 1 == 1 { builder.and(signal, so_far) } else { builder.or(signal, so_far) }
    })
}

/// Whether the first is below the second, and whether both are equal.
fn compare(builder: &mut Builder, left: &Number, right: &Number) -> (Signal, Signal) {
    let (mut less, mut same) = (Signal::FALSE, Signal::TRUE);
    for (a, b) in left.places.iter().zip(&right.places) {
        let (a, b) = (builder.input(*a), builder.input(*b));
        let differ = builder.xor(a, b);
        less = builder.mux(differ, b, less);
        same = builder.and_not(same, differ);
    }
    (less, same)
}

/// Whether at least so many inputs are 1: a counter in unary.
fn count(builder: &mut Builder, places: &[usize], least: usize) -> Signal {
    let mut at_least = vec![Signal::FALSE; least + 1];
    at_least[0] = Signal::TRUE;
    for place in places {
        let bit = builder.input(*place);
        for number in (1..=least).rev() {
            let more = builder.and(at_least[number - 1], bit);
            at_least[number] = builder.or(at_least[number], more);
        }
    }
    at_least[least]
}

/// The facts that rules about this circuit may use; `words` says what its inputs are.
pub fn facts(words: &Words<'_>, target: &Netlist) -> Vec<Fact> {
    let support = target.support();
    let observations = Observations::new(words, &support);
    // Only inputs that may be anything by themselves are counted or added up.
    let free = observations.free_places();
    let mut all: BTreeSet<Fact> = support.iter().map(|place| Fact::Bit(*place)).collect();
    let mut probe = Probe::new(target, observations);
    let numbers = numbers(words, &support);
    for number in &numbers {
        let borders = probe.borders(number);
        let top = (1u64 << number.places.len()) - 1;
        for value in &borders {
            all.insert(Fact::AtLeast(number.clone(), *value));
            if number.skipped == 0 && (*value == top || borders.contains(&(value + 1))) {
                all.insert(Fact::Equals(number.clone(), *value));
            }
        }
        if number.skipped == 0 && borders.contains(&1) {
            all.insert(Fact::Equals(number.clone(), 0));
        }
        // A choice is asked for word by word.
        let topic = words.topic(number.places[0]).filter(|topic| !words.is_number(*topic));
        if topic.is_some() && top < WORDS_MAX {
            all.extend((0..=top).map(|value| Fact::Equals(number.clone(), value)));
        }
    }
    let whole: Vec<&Number> =
        numbers.iter().filter(|number| number.skipped == 0).take(COMPARED_MAX).collect();
    for (place, left) in whole.iter().enumerate() {
        for right in &whole[place + 1..] {
            if left.places.len() != right.places.len() || !words.can_compare(left, right) {
                continue;
            }
            all.insert(Fact::Less((*left).clone(), (*right).clone()));
            all.insert(Fact::Less((*right).clone(), (*left).clone()));
            all.insert(Fact::Same((*left).clone(), (*right).clone()));
        }
    }
    all.extend(probe.sums(&free).into_iter().map(Fact::Odd));
    for class in probe.symmetric(&free) {
        // Of a few inputs, "all" and "none" are said by the inputs themselves.
        let all_or_none = [1, class.len()];
        let said = |least: &usize| FEW < class.len() || !all_or_none.contains(least);
        all.extend((1..=class.len()).filter(said).map(|least| Fact::Count(class.clone(), least)));
    }
    all.into_iter().collect()
}

/// What is a number to the circuit: whatever has a name and several inputs, and fields, now and some steps ago.
fn numbers(words: &Words<'_>, support: &[usize]) -> Vec<Number> {
    let place_of = |wanted: Meaning| support.iter().copied().find(|place| words.places[*place] == wanted);
    let backs: BTreeSet<usize> = support.iter().map(|place| words.places[*place].back()).collect();
    let mut found = Vec::new();
    for back in backs {
        found.extend(words.fields.iter().enumerate().filter_map(|(field, Field { low, width })| {
            let seen: Vec<Option<usize>> =
                (*low..low + width).map(|bit| place_of(Meaning::Seen { bit, back })).collect();
            let has_name = seen.iter().flatten().any(|place| words.topic(*place).is_some());
            number(seen, field, back, has_name)
        }));
        if 0 < back {
            let digits = (0..action_bits(words.actions)).map(|digit| Meaning::Acted { digit, back });
            found.extend(number(digits.map(place_of).collect(), words.fields.len() + 1, back, true));
        }
    }
    let digits = words.values(Topic::Clock).len().next_power_of_two().ilog2() as usize;
    let digits = (0..digits).map(|digit| place_of(Meaning::Clock(digit)));
    found.extend(number(digits.collect(), words.fields.len(), 0, true));
    found
}

/// These bits as a number. What has a name is compared by whichever of its bits are read, because its words say what that
/// means; of others the circuit must read at least the two highest, and no bit below one that it does not read.
fn number(places: Vec<Option<usize>>, field: usize, back: usize, has_name: bool) -> Option<Number> {
    let skipped = places.iter().position(Option::is_some)?;
    let (places, skipped): (Vec<usize>, usize) = match has_name {
        true => (places.into_iter().flatten().collect(), 0),
        false => (places[skipped..].iter().copied().collect::<Option<_>>()?, skipped),
    };
    let fits = 2 <= places.len() && places.len() <= NUMBER_BITS_MAX;
    fits.then_some(Number { places, field, back, skipped })
}

/// Looks at a circuit on inputs by chance, as far as they can occur.
struct Probe<'a> {
    circuit: &'a Netlist,
    observations: Observations,
    prng: Prng,
    values: Vec<u64>,
    outputs: Vec<u64>,
}

impl<'a> Probe<'a> {
    fn new(circuit: &'a Netlist, observations: Observations) -> Probe<'a> {
        let prng = Prng::stream(1, "explain/probe");
        Probe { circuit, observations, prng, values: Vec::new(), outputs: Vec::new() }
    }

    fn random(&mut self) -> Vec<u64> {
        let mut inputs: Vec<u64> = (0..self.circuit.inputs()).map(|_| self.prng.next_u64()).collect();
        for unit in self.observations.units().iter().filter(|unit| matches!(unit, Unit::Feature(_))) {
            unit.places().iter().for_each(|place| inputs[*place] = 0);
            for lane in 0..64 {
                let drawn = unit.drawn(&mut self.prng);
                unit.inputs(drawn).iter().for_each(|(place, bit)| inputs[*place] |= u64::from(*bit) << lane);
            }
        }
        inputs
    }

    fn run(&mut self, inputs: &[u64]) -> Vec<u64> {
        self.circuit.evaluate_words(inputs, &mut self.values, &mut self.outputs);
        self.outputs.clone()
    }

    /// Values of a number at which the circuit's answer changes, those at which it does so most often.
    fn borders(&mut self, number: &Number) -> BTreeSet<u64> {
        let mut changes: BTreeMap<u64, u32> = BTreeMap::new();
        for _ in 0..BORDER_LOOKS {
            let base = self.random();
            let mut before: Option<Vec<u64>> = None;
            for value in 0..1u64 << number.places.len() {
                let mut inputs = base.clone();
                for (bit, place) in number.places.iter().enumerate() {
                    inputs[*place] = if value >> bit & 1 == 1 { u64::MAX } else { 0 };
                }
                let now = self.run(&inputs);
                if let Some(before) = &before {
                    let differs = before.iter().zip(&now).fold(0, |all, (a, b)| all | (a ^ b));
                    *changes.entry(value).or_default() += differs.count_ones();
                }
                before = Some(now);
            }
        }
        let mut changes: Vec<(u64, u32)> = changes.into_iter().filter(|(_, lanes)| 0 < *lanes).collect();
        changes.sort_by_key(|(value, lanes)| (std::cmp::Reverse(*lanes), *value));
        changes.into_iter().take(BORDERS_MAX).map(|(value, _)| value).collect()
    }

    /// The outputs that look like sums over GF(2): which inputs they add.
    fn sums(&mut self, support: &[usize]) -> Vec<Vec<usize>> {
        let zero = vec![0; self.circuit.inputs()];
        let at_zero = self.run(&zero);
        let mut adds = vec![Vec::new(); at_zero.len()];
        for place in support {
            let mut one = zero.clone();
            one[*place] = u64::MAX;
            for (output, value) in self.run(&one).into_iter().enumerate() {
                if value != at_zero[output] {
                    adds[output].push(*place);
                }
            }
        }
        let inputs = self.random();
        let answers = self.run(&inputs);
        let sum = |places: &Vec<usize>| places.iter().fold(0, |sum, place| sum ^ inputs[*place]);
        let fits = |(output, places): (usize, &Vec<usize>)| {
            2 <= places.len() && sum(places) ^ at_zero[output] == answers[output]
        };
        let kept = adds.iter().enumerate().filter(|(output, places)| fits((*output, places)));
        kept.map(|(_, places)| places.clone()).collect()
    }

    /// Sets of at least three inputs that may change places without a change of the answer, as far as can be seen.
    fn symmetric(&mut self, support: &[usize]) -> Vec<Vec<usize>> {
        let mut classes: Vec<Vec<usize>> = Vec::new();
        for place in support.iter().take(SYMMETRIC_MAX) {
            let inputs = self.random();
            let own = self.run(&inputs);
            let mut home = None;
            for (number, class) in classes.iter().enumerate() {
                let mut swapped = inputs.clone();
                swapped.swap(*place, class[0]);
                if self.run(&swapped) == own {
                    home = Some(number);
                    break;
                }
            }
            match home {
                Some(number) => classes[number].push(*place),
                None => classes.push(vec![*place]),
            }
        }
        classes.retain(|class| 3 <= class.len());
        classes
    }
}
