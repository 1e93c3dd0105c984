//! Facts in words. Where features are named, a fact is a comparison of a feature (`temp >= 21.5`); otherwise a field of one
//! bit is called by its bit, a wider one by its number among the world's fields.

use crate::facts::{Fact, Number};
use crate::list::Condition;
use bem_base::environment::Field;
use bem_data::{Code, Column, Decimal, Encoder};

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
        if let Some(column) = self.names.and_then(|names| names.column_of(usize::from(*bit))) {
            return match self.named(place, true) {
                Some(fact) => format!("({fact})"),
                None => format!("bit {} of {}", bit - column.low, column.feature.name),
            };
        }
        let of = self.fields.iter().position(|field| (field.low..field.low + field.width).contains(bit));
        match of {
            Some(field) if 1 < self.fields[field].width => {
                format!("bit {} of field {field}", bit - self.fields[field].low)
            }
            _ => format!("bit {bit}"),
        }
    }

    /// What an input says where features are named and it says something alone.
    fn named(&self, place: usize, value: bool) -> Option<String> {
        let (names, bit) = (self.names?, *self.reads.get(place)?);
        let column = names.column_of(usize::from(bit))?;
        // The highest bit of a binary field says which half the value is in.
        if matches!(column.code, Code::Level(_) | Code::Index) && bit + 1 == column.low + column.width {
            return Some(names.level_reaches(column, 1 << (column.width - 1), value));
        }
        names.fact(usize::from(bit), value)
    }

    /// The feature that a field of the world is, where features are named.
    fn column(&self, field: usize) -> Option<(&Encoder, &Column)> {
        let names = self.names?;
        let low = self.fields.get(field)?.low;
        names.column_of(usize::from(low)).filter(|column| column.low == low).map(|column| (names, column))
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
        let holds = condition.holds;
        let number = |number: &Number| match self.column(number.field) {
            Some((_, column)) => column.feature.name.clone(),
            None if number.field == self.fields.len() => "steps so far".to_string(),
            None => format!("field {}", number.field),
        };
        match &condition.fact {
            Fact::Bit(place) => self.value(*place, holds),
            Fact::AtLeast(left, value) if self.column(left.field).is_some() => {
                let (names, column) = self.column(left.field).expect("it was there a moment ago");
                names.level_reaches(column, value << left.skipped, holds)
            }
            Fact::Equals(left, value) if self.column(left.field).is_some() => {
                let (names, column) = self.column(left.field).expect("it was there a moment ago");
                names.level_is(column, *value, holds)
            }
            Fact::AtLeast(left, value) => {
                let sign = if holds { ">=" } else { "<" };
                format!("{} {sign} {}", number(left), value << left.skipped)
            }
            Fact::Equals(left, value) => {
                format!("{} {} {value}", number(left), if holds { "=" } else { "!=" })
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

    /// All conditions of a rule; several comparisons of one named number are drawn together.
    pub fn conditions(&self, conditions: &[Condition]) -> String {
        let mut words: Vec<String> = Vec::new();
        let mut drawn: Vec<u16> = Vec::new();
        for condition in conditions {
            let Some((column, _)) = self.comparison(condition) else {
                words.push(self.condition(condition));
                continue;
            };
            if drawn.contains(&column.low) {
                continue;
            }
            drawn.push(column.low);
            words.push(self.bounds(column, conditions));
        }
        // What always holds for values that there are says nothing, unless nothing else is said.
        if words.iter().any(|word| !word.ends_with(" is anything")) {
            words.retain(|word| !word.ends_with(" is anything"));
        }
        words.join(" and ")
    }

    /// The named number that a condition compares, and with what.
    fn comparison(&self, condition: &Condition) -> Option<(&Column, Decimal)> {
        let Fact::Bit(place) = condition.fact else { return None };
        let bit = usize::from(*self.reads.get(place)?);
        let column = self.names?.column_of(bit)?;
        match &column.code {
            Code::Steps(thresholds) => Some((column, thresholds[bit - usize::from(column.low)])),
            _ => None,
        }
    }

    /// All that these conditions say about one named number.
    fn bounds(&self, column: &Column, conditions: &[Condition]) -> String {
        let all = || {
            conditions.iter().filter_map(|condition| {
                let (of, threshold) = self.comparison(condition)?;
                (of.low == column.low).then_some((threshold, condition.holds))
            })
        };
        let low = all().filter(|(_, holds)| *holds).map(|(threshold, _)| threshold).max();
        let high = all().filter(|(_, holds)| !holds).map(|(threshold, _)| threshold).min();
        let name = &column.feature.name;
        match (low, high) {
            (Some(low), Some(high)) => format!("{low} <= {name} < {high}"),
            (Some(low), None) => format!("{name} >= {low}"),
            (None, Some(high)) => format!("{name} < {high}"),
            (None, None) => String::new(),
        }
    }

    /// Inputs with their values, whole fields as numbers.
    pub fn values(&self, places: &[usize], input: &[bool]) -> Vec<String> {
        let mut rest: Vec<usize> = places.to_vec();
        let mut words = Vec::new();
        for (number, field) in self.fields.iter().enumerate().filter(|(_, field)| 1 < field.width) {
            let bits = field.low..field.low + field.width;
            let own: Vec<usize> = rest
                .iter()
                .copied()
                .filter(|place| self.reads.get(*place).is_some_and(|bit| bits.contains(bit)))
                .collect();
            if own.len() == usize::from(field.width) && field.width <= 64 {
                let value = own
                    .iter()
                    .enumerate()
                    .fold(0u64, |sum, (bit, place)| sum | u64::from(input[*place]) << bit);
                words.push(match self.column(number) {
                    Some((names, column)) => names.level_is(column, value, true),
                    None => format!("field {number} = {value}"),
                });
                rest.retain(|place| !own.contains(place));
            }
        }
        words.extend(rest.iter().map(|place| self.value(*place, input[*place])));
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
