//! Facts in words. Where features are named, a fact is a comparison of a feature (`temp >= 21.5`), and all that is said of one
//! feature is drawn together; otherwise a field of one bit is called by its bit, a wider one by its number among the world's
//! fields.

use crate::facts::{Fact, Number};
use crate::list::Condition;
use crate::reason::Finding;
use bem_base::environment::Field;
use bem_data::{Code, Column, Encoder};

/// What places in a circuit are called.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// Which observation bit each of the first inputs is.
    pub reads: &'a [u16],
    /// The world's fields.
    pub fields: &'a [Field],
    /// What the bits stand for, where features are named.
    pub names: Option<&'a Encoder>,
}

impl Words<'_> {
    /// What an input is called.
    pub fn place(&self, place: usize) -> String {
        let Some(bit) = self.reads.get(place) else {
            return format!("remembered {}", place - self.reads.len());
        };
        if let Some(fact) = self.named(place, true) {
            return format!("({fact})");
        }
        let of = self.fields.iter().position(|field| (field.low..field.low + field.width).contains(bit));
        match of {
            Some(field) if 1 < self.fields[field].width => {
                format!("bit {} of field {field}", bit - self.fields[field].low)
            }
            _ => format!("bit {bit}"),
        }
    }

    /// What an input says where features are named.
    fn named(&self, place: usize, value: bool) -> Option<String> {
        let (names, bit) = (self.names?, usize::from(*self.reads.get(place)?));
        names.column_of(bit).map(|column| names.bit_is(column, bit, value))
    }

    /// The feature that a field of the world is, where features are named.
    fn column(&self, field: usize) -> Option<&Column> {
        let low = self.fields.get(field)?.low;
        self.names?.column_of(usize::from(low)).filter(|column| column.low == low)
    }

    /// The one feature that a fact speaks of, where features are named.
    fn about(&self, fact: &Fact) -> Option<&Column> {
        let of = |place: &usize| self.names?.column_of(usize::from(*self.reads.get(*place)?));
        let places = fact.places();
        let column = of(places.first()?)?;
        places.iter().all(|place| of(place).is_some_and(|other| other.low == column.low)).then_some(column)
    }

    /// Whether the order of two fields means something: with names, where both have the same thresholds.
    pub(crate) fn can_compare(&self, left: usize, right: usize) -> bool {
        match (self.column(left), self.column(right)) {
            (None, None) => true,
            (Some(Column { code: Code::Level(left), .. }), Some(Column { code: Code::Level(right), .. })) => {
                left == right
            }
            _ => false,
        }
    }

    /// An input with its value.
    pub fn value(&self, place: usize, value: bool) -> String {
        if let Some(fact) = self.named(place, value) {
            return fact;
        }
        format!("{} = {}", self.place(place), u8::from(value))
    }

    /// Several inputs: bits of the observation by their numbers, neighbours together, and what is remembered.
    fn places(&self, places: &[usize]) -> String {
        let (seen, kept): (Vec<usize>, Vec<usize>) =
            places.iter().partition(|place| **place < self.reads.len());
        if self.names.is_some() {
            let mut names: Vec<String> = seen.iter().map(|place| self.place(*place)).collect();
            let kept: Vec<usize> = kept.iter().map(|place| place - self.reads.len()).collect();
            names.extend((!kept.is_empty()).then(|| format!("remembered {}", runs(&kept))));
            return names.join(", ");
        }
        let bits: Vec<usize> = seen.iter().map(|place| usize::from(self.reads[*place])).collect();
        let kept: Vec<usize> = kept.iter().map(|place| place - self.reads.len()).collect();
        match (bits.is_empty(), kept.is_empty()) {
            (false, false) => format!("bits {} and remembered {}", runs(&bits), runs(&kept)),
            (true, false) => format!("remembered {}", runs(&kept)),
            _ => format!("bits {}", runs(&bits)),
        }
    }

    /// A condition.
    pub fn condition(&self, condition: &Condition) -> String {
        if let Some(column) = self.about(&condition.fact) {
            return self.said(column, std::slice::from_ref(condition));
        }
        let holds = condition.holds;
        let number = |number: &Number| match self.column(number.field) {
            Some(column) => column.feature.name.clone(),
            None if number.field == self.fields.len() => "steps so far".to_string(),
            None => format!("field {}", number.field),
        };
        match &condition.fact {
            Fact::Bit(place) => self.value(*place, holds),
            Fact::AtLeast(left, value) => {
                let sign = if holds { ">=" } else { "<" };
                format!("{} {sign} {}", number(left), value << left.skipped)
            }
            Fact::Equals(left, value) => {
                format!("{} {} {value}", number(left), if holds { "=" } else { "!=" })
            }
            Fact::Less(left, right) if self.column(left.field).is_some() => {
                let word = if holds { "a lower" } else { "no lower" };
                format!("{} is in {word} range than {}", number(left), number(right))
            }
            Fact::Same(left, right) if self.column(left.field).is_some() => {
                let word = if holds { "the same range" } else { "different ranges" };
                format!("{} and {} are in {word}", number(left), number(right))
            }
            Fact::Less(left, right) => {
                format!("{} {} {}", number(left), if holds { "<" } else { ">=" }, number(right))
            }
            Fact::Same(left, right) => {
                format!("{} {} {}", number(left), if holds { "=" } else { "!=" }, number(right))
            }
            Fact::Odd(places) => {
                let word = if holds { "odd" } else { "even" };
                format!("an {word} number of {} are 1", self.places(places))
            }
            Fact::Count(places, least) if holds && *least == places.len() => {
                format!("all of {} are 1", self.places(places))
            }
            Fact::Count(places, 1) => {
                format!("{} of {} are 1", if holds { "some" } else { "none" }, self.places(places))
            }
            Fact::Count(places, least) => {
                let word = if holds { "at least" } else { "fewer than" };
                format!("{word} {least} of {} are 1", self.places(places))
            }
        }
    }

    /// All conditions of a rule.
    pub fn conditions(&self, conditions: &[Condition]) -> String {
        self.parts(conditions).join(" and ")
    }

    /// What the conditions of a rule say, one after the other; all that is said of one named feature is drawn together.
    pub fn parts(&self, conditions: &[Condition]) -> Vec<String> {
        self.drawn(conditions).into_iter().map(|(words, _)| words).collect()
    }

    /// The same, with whether it holds on an input.
    pub fn held(&self, conditions: &[Condition], input: &[bool]) -> Vec<(String, bool)> {
        let holds = |own: &[&Condition]| own.iter().all(|condition| condition.holds_on(input));
        self.drawn(conditions).into_iter().map(|(words, own)| (words, holds(&own))).collect()
    }

    /// What is said together, with the conditions behind it.
    fn drawn<'c>(&self, conditions: &'c [Condition]) -> Vec<(String, Vec<&'c Condition>)> {
        let mut drawn: Vec<(String, Vec<&Condition>)> = Vec::new();
        let mut known: Vec<u16> = Vec::new();
        for condition in conditions {
            match self.about(&condition.fact) {
                None => drawn.push((self.condition(condition), vec![condition])),
                Some(column) if known.contains(&column.low) => {}
                Some(column) => {
                    known.push(column.low);
                    drawn.push((self.said(column, conditions), self.own(column, conditions)));
                }
            }
        }
        drawn
    }

    /// The conditions that speak of one named feature.
    fn own<'c>(&self, column: &Column, conditions: &'c [Condition]) -> Vec<&'c Condition> {
        let is_own =
            |condition: &&Condition| self.about(&condition.fact).is_some_and(|other| other.low == column.low);
        conditions.iter().filter(is_own).collect()
    }

    /// All that these conditions say about one named feature.
    fn said(&self, column: &Column, conditions: &[Condition]) -> String {
        let own = self.own(column, conditions);
        let fits = |value: &usize| {
            let bit = |place: usize| column.shows(*value, usize::from(self.reads[place] - column.low));
            own.iter().all(|condition| condition.fact.holds(&bit) == condition.holds)
        };
        column.among(&column.values().into_iter().filter(fits).collect::<Vec<_>>())
    }

    /// What decided, or what would have to change: features first, then single inputs, whole fields as numbers.
    pub fn findings(&self, findings: &[Finding]) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut single: Vec<(usize, bool)> = Vec::new();
        for finding in findings {
            match (finding, self.names) {
                (Finding::Feature { column, values }, Some(names)) => {
                    words.push(names.columns()[*column].among(values));
                }
                (Finding::Feature { .. }, None) => {}
                (Finding::Input { place, value }, _) => single.push((*place, *value)),
            }
        }
        words.extend(self.values(&single));
        words
    }

    /// Inputs with their values, whole fields as numbers.
    fn values(&self, inputs: &[(usize, bool)]) -> Vec<String> {
        let mut rest: Vec<(usize, bool)> = inputs.to_vec();
        let mut words = Vec::new();
        for (number, field) in self.fields.iter().enumerate().filter(|(_, field)| 1 < field.width) {
            let bits = field.low..field.low + field.width;
            let is_own = |(place, _): &(usize, bool)| {
                self.names.is_none() && self.reads.get(*place).is_some_and(|bit| bits.contains(bit))
            };
            let own: Vec<(usize, bool)> = rest.iter().copied().filter(is_own).collect();
            if own.len() == usize::from(field.width) && field.width <= 64 {
                let digits = own.iter().enumerate();
                let value = digits.fold(0u64, |sum, (bit, (_, value))| sum | u64::from(*value) << bit);
                words.push(format!("field {number} = {value}"));
                rest.retain(|input| !is_own(input));
            }
        }
        words.extend(rest.iter().map(|(place, value)| self.value(*place, *value)));
        words
    }
}

/// Numbers in rising order, with neighbours drawn together: `0-3, 7`.
fn runs(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => parts.push((*number, *number)),
        }
    }
    let text = |(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    parts.iter().map(text).collect::<Vec<_>>().join(", ")
}
