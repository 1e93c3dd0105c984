//! Observations that can occur: what the named features let the inputs of a circuit be.
//!
//! A number is one step of its thresholds and a choice one of its words, so that not every assignment of their bits is an
//! observation. The same holds of what memory keeps of earlier steps: before there was such a step its bits are 0. Single bits,
//! other memory, and what is seen where features have no names are free. Whatever is drawn, tried or proven is so within
//! these. Must not know policies.

use crate::Words;
use crate::facts::Fact;
use crate::list::{Condition, Rule};
use crate::meaning::Meaning;
use crate::topic::Topic;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Signal};
use bem_data::values::runs;

/// Values of a feature that the circuit cannot tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// What the feature's inputs are then, in the order of its places.
    pub bits: Vec<bool>,
    /// The values, rising.
    pub values: Vec<usize>,
}

/// A topic of which the circuit reads something, such as a named feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// What it is.
    pub topic: Topic,
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
    /// Inputs that are about one thing.
    Feature(Feature),
}

/// The observations that can occur, with what may be remembered, over the inputs that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observations {
    units: Vec<Unit>,
    /// The inputs that tell whether at least so many steps were taken.
    begun: Vec<(usize, usize)>,
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
    pub(crate) fn holds(&self, fact: &Fact) -> Vec<bool> {
        let bit = |class: &Class, place: usize| {
            let own = self.places.iter().position(|other| *other == place);
            own.is_some_and(|own| class.bits[own])
        };
        self.classes.iter().map(|class| fact.holds(&|place| bit(class, place))).collect()
    }

    /// Whether it rules some assignments of its inputs out.
    fn excludes(&self) -> bool {
        32 <= self.places.len() || self.classes.len() < 1 << self.places.len()
    }

    /// The class in which all inputs are 0, as they are before there was anything to keep.
    fn empty(&self) -> Option<usize> {
        self.classes.iter().position(|class| !class.bits.contains(&true))
    }

    /// Whether its classes are all that set one input after the other, and whether they are all that set one at most.
    fn is_unary(&self) -> (bool, bool) {
        let ones = |class: &Class| class.bits.iter().filter(|bit| **bit).count();
        let is_step = |class: &Class| class.bits.iter().skip(ones(class)).all(|bit| !bit);
        let varies = |place: &usize| {
            let set = self.classes.iter().filter(|class| class.bits[*place]).count();
            0 < set && set < self.classes.len()
        };
        let steps = (0..self.places.len()).filter(varies).count() + 1;
        let words = self.places.len() + usize::from(self.empty().is_some());
        (
            self.classes.len() == steps && self.classes.iter().all(is_step),
            self.classes.len() == words && self.classes.iter().all(|class| ones(class) <= 1),
        )
    }

    /// The circuit of "these inputs show a value".
    fn valid(&self, builder: &mut Builder) -> Signal {
        let signals: Vec<Signal> = self.places.iter().map(|place| builder.input(*place)).collect();
        if !self.excludes() {
            return Signal::TRUE;
        }
        let mut parts = Vec::new();
        match self.is_unary() {
            (true, _) => {
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
            (false, true) => {
                let mut some = Signal::FALSE;
                for signal in &signals {
                    let both = builder.and(some, *signal);
                    parts.push(builder.not(both));
                    some = builder.or(some, *signal);
                }
                if self.empty().is_none() {
                    parts.push(some);
                }
            }
            (false, false) => {
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
    /// What it is about, where that has a name.
    pub fn topic(&self) -> Option<Topic> {
        match self {
            Unit::Free(_) => None,
            Unit::Feature(feature) => Some(feature.topic),
        }
    }

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
        let units = support.iter().map(|place| Unit::Free(*place)).collect();
        Observations { units, begun: Vec::new() }
    }

    /// What the topics of these inputs allow.
    pub fn new(words: &Words<'_>, support: &[usize]) -> Observations {
        let mut units: Vec<Unit> = Vec::new();
        let mut loose: Vec<Topic> = Vec::new();
        for place in support {
            let topic = words.topic(*place).filter(|topic| !words.is_bit(*topic) && !loose.contains(topic));
            let Some(topic) = topic else {
                units.push(Unit::Free(*place));
                continue;
            };
            let is_known = |unit: &Unit| matches!(unit, Unit::Feature(feature) if feature.topic == topic);
            if units.iter().any(is_known) {
                continue;
            }
            let mut places: Vec<usize> =
                support.iter().filter(|place| words.topic(**place) == Some(topic)).copied().collect();
            if let Topic::Begun = topic {
                places.sort_by_key(|place| match words.places[*place] {
                    Meaning::Begun(steps) => steps,
                    _ => 0,
                });
            }
            let values = words.values(topic);
            let mut classes: Vec<Class> = Vec::new();
            for value in &values {
                let bits: Vec<bool> = places.iter().map(|place| words.shows(topic, *value, *place)).collect();
                match classes.iter_mut().find(|class| class.bits == bits) {
                    Some(class) => class.values.push(*value),
                    None => classes.push(Class { bits, values: vec![*value] }),
                }
            }
            let feature = Feature { topic, places, classes, is_number: words.is_number(topic), values };
            if 0 < topic.back() && feature.empty().is_none() {
                // Before there was such a step its bits are 0, which no value shows.
                loose.push(topic);
                units.push(Unit::Free(*place));
                continue;
            }
            units.push(Unit::Feature(feature));
        }
        let begun = support.iter().filter_map(|place| match words.places[*place] {
            Meaning::Begun(steps) => Some((steps, *place)),
            _ => None,
        });
        Observations { begun: begun.collect(), units }
    }

    /// The input that must be 1 for this unit to be anything but 0, where there is one: of what was seen two steps ago there
    /// is nothing as long as there was no step at all.
    fn needed(&self, unit: &Unit) -> Option<usize> {
        let Unit::Feature(feature) = unit else { return None };
        let early = self.begun.iter().filter(|(steps, _)| *steps <= feature.topic.back());
        early.max_by_key(|(steps, _)| *steps).map(|(_, place)| *place)
    }

    /// For every unit that memory holds of an earlier step, its inputs, and the input that is 1 once there was such a step.
    pub fn dependent(&self) -> Vec<(Vec<usize>, usize)> {
        let of = |unit: &Unit| self.needed(unit).map(|needed| (unit.places(), needed));
        self.units.iter().filter_map(of).collect()
    }

    /// Whether these inputs can occur.
    pub fn can_occur(&self, input: &[bool]) -> bool {
        let states: Option<Vec<usize>> = self.units.iter().map(|unit| unit.state(input)).collect();
        states.is_some_and(|states| {
            let mut settled = states.clone();
            self.settle(&mut settled);
            settled == states
        })
    }

    /// Makes what every unit is possible: nothing is kept of a step that there was not.
    pub fn settle(&self, states: &mut [usize]) {
        for (place, unit) in self.units.iter().enumerate() {
            let Some(needed) = self.needed(unit) else { continue };
            let is_begun = self.units.iter().zip(states.iter()).any(|(unit, state)| {
                unit.places().contains(&needed) && unit.inputs(*state).contains(&(needed, true))
            });
            if let (Unit::Feature(feature), false) = (unit, is_begun) {
                states[place] = feature.empty().unwrap_or(0);
            }
        }
    }

    /// What changes as one, in order.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Whether something is ruled out, or named features group inputs.
    pub fn has_features(&self) -> bool {
        let is_named = |topic: &Topic| matches!(topic, Topic::Column { .. });
        !self.begun.is_empty()
            || self.features().any(|feature| feature.excludes() || is_named(&feature.topic))
    }

    fn features(&self) -> impl Iterator<Item = &Feature> {
        self.units.iter().filter_map(|unit| match unit {
            Unit::Feature(feature) => Some(feature),
            Unit::Free(_) => None,
        })
    }

    /// How many there are, as far as that can be counted.
    pub fn count(&self) -> u64 {
        let product = |count: &dyn Fn(&Unit) -> usize| {
            self.units.iter().fold(1, |all: u64, unit| all.saturating_mul(count(unit) as u64))
        };
        let steps = self.features().find(|feature| feature.topic == Topic::Begun);
        let Some(steps) = steps else { return product(&Unit::count) };
        let within = |class: &Class| {
            let is_begun = |needed: usize| {
                let place = steps.places.iter().position(|place| *place == needed);
                place.is_some_and(|place| class.bits[place])
            };
            product(&|unit| match (unit, self.needed(unit)) {
                (Unit::Feature(feature), _) if feature.topic == Topic::Begun => 1,
                (_, Some(needed)) if !is_begun(needed) => 1,
                _ => unit.count(),
            })
        };
        steps.classes.iter().fold(0, |all: u64, class| all.saturating_add(within(class)))
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
    pub fn valid(&self, builder: &mut Builder) -> Signal {
        let mut parts: Vec<Signal> = self.features().map(|feature| feature.valid(builder)).collect();
        for (places, needed) in self.dependent() {
            let signals: Vec<Signal> = places.iter().map(|place| builder.input(*place)).collect();
            let (some, begun) = (builder.or_all(&signals), builder.input(needed));
            let early = builder.and_not(some, begun);
            parts.push(builder.not(early));
        }
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
