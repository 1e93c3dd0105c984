//! Observations that can occur: what the named features let the inputs of a circuit be.
//!
//! A number is one step of its thresholds and a choice one of its words, so that not every assignment of their bits is an
//! observation. Single bits, memory, and all inputs where features have no names are free. Whatever is drawn, tried or
//! proven about named features is so within these. Must not know policies or words.

use crate::facts::Fact;
use crate::list::{Condition, Rule};
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Signal};
use bem_data::values::runs;
use bem_data::{Code, Encoder};

/// Values of a feature that the circuit cannot tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// What the feature's inputs are then, in the order of its places.
    pub bits: Vec<bool>,
    /// The values, rising.
    pub values: Vec<usize>,
}

/// A named feature of which the circuit reads something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Which column of the encoder it is.
    pub column: usize,
    /// Its inputs.
    pub places: Vec<usize>,
    /// What can be seen of it, by the smallest value of each.
    pub classes: Vec<Class>,
    /// Whether neighbouring values are neighbours in meaning.
    pub is_number: bool,
    values: Vec<usize>,
}

/// What changes as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// An input that may be anything.
    Free(usize),
    /// A named feature.
    Feature(Feature),
}

/// The observations that can occur, with what may be remembered, over the inputs that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observations {
    units: Vec<Unit>,
}

impl Feature {
    /// All values, rising.
    pub fn values(&self) -> &[usize] {
        &self.values
    }

    /// The class of a value.
    pub fn class_of(&self, value: usize) -> usize {
        let holds = |class: &Class| class.values.contains(&value);
        self.classes.iter().position(holds).expect("every value is in a class")
    }

    /// The class that these inputs show; nothing where no value does.
    pub fn shown(&self, input: &[bool]) -> Option<usize> {
        let is_shown =
            |class: &Class| self.places.iter().zip(&class.bits).all(|(place, bit)| input[*place] == *bit);
        self.classes.iter().position(is_shown)
    }

    /// Whether the fact speaks of this feature alone.
    fn is_about(&self, fact: &Fact) -> bool {
        fact.places().iter().all(|place| self.places.contains(place))
    }

    /// The classes in which a fact about this feature holds.
    fn holds(&self, fact: &Fact) -> Vec<bool> {
        let bit = |class: &Class, place: usize| {
            let own = self.places.iter().position(|other| *other == place);
            own.is_some_and(|own| class.bits[own])
        };
        self.classes.iter().map(|class| fact.holds(&|place| bit(class, place))).collect()
    }

    /// The circuit of "these inputs show a value".
    fn valid(&self, builder: &mut Builder, code: &Code) -> Signal {
        let signals: Vec<Signal> = self.places.iter().map(|place| builder.input(*place)).collect();
        let is_whole = self.places.len() < 32 && self.classes.len() == 1 << self.places.len();
        if is_whole {
            return Signal::TRUE;
        }
        let mut parts = Vec::new();
        match code {
            Code::Steps(_) => {
                for (place, signal) in signals.iter().enumerate() {
                    // A threshold that is always reached, or never.
                    let set = self.classes.iter().filter(|class| class.bits[place]).count();
                    if set == self.classes.len() {
                        parts.push(*signal);
                    } else if set == 0 {
                        parts.push(builder.not(*signal));
                    }
                    if let Some(next) = signals.get(place + 1) {
                        let skips = builder.and_not(*next, *signal);
                        parts.push(builder.not(skips));
                    }
                }
            }
            Code::Words(_) => {
                let mut some = Signal::FALSE;
                for signal in &signals {
                    let both = builder.and(some, *signal);
                    parts.push(builder.not(both));
                    some = builder.or(some, *signal);
                }
                if self.classes.iter().all(|class| class.bits.contains(&true)) {
                    parts.push(some);
                }
            }
            _ => {
                let mut shown = Vec::with_capacity(self.classes.len());
                for class in &self.classes {
                    let bits: Vec<Signal> = (signals.iter().zip(&class.bits))
                        .map(|(signal, bit)| if *bit { *signal } else { builder.not(*signal) })
                        .collect();
                    shown.push(builder.and_all(&bits));
                }
                parts.push(builder.or_all(&shown));
            }
        }
        builder.and_all(&parts)
    }
}

impl Unit {
    /// How many things it can be.
    pub fn count(&self) -> usize {
        match self {
            Unit::Free(_) => 2,
            Unit::Feature(feature) => feature.classes.len(),
        }
    }

    /// Its inputs, with what they are then.
    pub fn inputs(&self, state: usize) -> Vec<(usize, bool)> {
        match self {
            Unit::Free(place) => vec![(*place, state == 1)],
            Unit::Feature(feature) => {
                let bits = &feature.classes[state].bits;
                feature.places.iter().copied().zip(bits.iter().copied()).collect()
            }
        }
    }

    /// What it is in an assignment of all inputs; nothing where that cannot occur.
    pub fn state(&self, input: &[bool]) -> Option<usize> {
        match self {
            Unit::Free(place) => Some(usize::from(input[*place])),
            Unit::Feature(feature) => feature.shown(input),
        }
    }

    /// Its inputs.
    pub fn places(&self) -> Vec<usize> {
        match self {
            Unit::Free(place) => vec![*place],
            Unit::Feature(feature) => feature.places.clone(),
        }
    }

    /// One of the things that it can be, every value as likely as any other.
    pub fn drawn(&self, prng: &mut Prng) -> usize {
        match self {
            Unit::Free(_) => usize::from(prng.bit()),
            Unit::Feature(feature) => {
                let values = feature.values();
                feature.class_of(values[prng.below(values.len() as u64) as usize])
            }
        }
    }
}

impl Observations {
    /// Any assignment of these inputs.
    pub fn free(support: &[usize]) -> Observations {
        Observations { units: support.iter().map(|place| Unit::Free(*place)).collect() }
    }

    /// What the features behind these inputs allow. `reads` says which observation bit each of the first inputs is.
    pub fn new(reads: &[u16], names: Option<&Encoder>, support: &[usize]) -> Observations {
        let Some(names) = names else { return Observations::free(support) };
        let mut units: Vec<Unit> = Vec::new();
        for place in support {
            let bit = reads.get(*place).copied();
            let is_of = |bit: u16, low: u16, width: u16| (low..low + width).contains(&bit);
            let column = bit.and_then(|bit| {
                names.columns().iter().position(|column| is_of(bit, column.low, column.width))
            });
            let Some(column) = column.filter(|column| names.columns()[*column].code != Code::Bit) else {
                units.push(Unit::Free(*place));
                continue;
            };
            let is_known = |unit: &Unit| matches!(unit, Unit::Feature(feature) if feature.column == column);
            if units.iter().any(is_known) {
                continue;
            }
            let of = &names.columns()[column];
            let own = |place: &&usize| reads.get(**place).is_some_and(|bit| is_of(*bit, of.low, of.width));
            let places: Vec<usize> = support.iter().filter(own).copied().collect();
            let mut classes: Vec<Class> = Vec::new();
            let values = of.values();
            for value in &values {
                let shows = |place: &usize| of.shows(*value, usize::from(reads[*place] - of.low));
                let bits: Vec<bool> = places.iter().map(shows).collect();
                match classes.iter_mut().find(|class| class.bits == bits) {
                    Some(class) => class.values.push(*value),
                    None => classes.push(Class { bits, values: vec![*value] }),
                }
            }
            units.push(Unit::Feature(Feature { column, places, classes, is_number: of.is_number(), values }));
        }
        Observations { units }
    }

    /// What changes as one, in order.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Whether named features rule some assignments out, or group inputs.
    pub fn has_features(&self) -> bool {
        self.features().next().is_some()
    }

    fn features(&self) -> impl Iterator<Item = &Feature> {
        self.units.iter().filter_map(|unit| match unit {
            Unit::Feature(feature) => Some(feature),
            Unit::Free(_) => None,
        })
    }

    /// How many there are, as far as that can be counted.
    pub fn count(&self) -> u64 {
        self.units.iter().fold(1, |count: u64, unit| count.saturating_mul(unit.count() as u64))
    }

    /// The inputs that are free.
    pub fn free_places(&self) -> Vec<usize> {
        let free = |unit: &Unit| match unit {
            Unit::Free(place) => Some(*place),
            Unit::Feature(_) => None,
        };
        self.units.iter().filter_map(free).collect()
    }

    /// The circuit of "this can occur".
    pub fn valid(&self, builder: &mut Builder, names: Option<&Encoder>) -> Signal {
        let Some(names) = names else { return Signal::TRUE };
        let parts: Vec<Signal> = (self.features())
            .map(|feature| feature.valid(builder, &names.columns()[feature.column].code))
            .collect();
        builder.and_all(&parts)
    }

    /// Into how many ranges a fact about one number falls; a fact that is more than one comparison is hard to read.
    pub fn ranges(&self, fact: &Fact) -> usize {
        let about = self.features().find(|feature| feature.is_number && feature.is_about(fact));
        let Some(feature) = about else { return 1 };
        let holds = feature.holds(fact);
        let mut chosen: Vec<usize> = (feature.classes.iter().zip(holds))
            .filter(|(_, holds)| *holds)
            .flat_map(|(class, _)| class.values.iter().copied())
            .collect();
        chosen.sort_unstable();
        runs(feature.values(), &chosen).len()
    }

    /// The rule without what always holds; nothing where it can never apply.
    pub fn tidied(&self, mut rule: Rule) -> Option<Rule> {
        for feature in self.features() {
            let own = |condition: &&Condition| feature.is_about(&condition.fact);
            let mut left = vec![true; feature.classes.len()];
            for condition in rule.when.iter().filter(own) {
                let holds = feature.holds(&condition.fact);
                left.iter_mut().zip(holds).for_each(|(left, holds)| *left &= holds == condition.holds);
            }
            if !left.contains(&true) {
                return None;
            }
            if !left.contains(&false) {
                rule.when.retain(|condition| !feature.is_about(&condition.fact));
            }
        }
        Some(rule)
    }
}
