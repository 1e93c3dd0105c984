//! Facts in words. Where features are named, a fact is a comparison of a feature (`temp >= 21.5`), and all that is said of one
//! feature is drawn together; otherwise a field of one bit is called by its bit, a wider one by its number among the world's
//! fields. What memory holds of earlier steps is said by the same names (`temp (2 steps ago) >= 21.5`), and a number of steps
//! as `steps so far`.

use crate::facts::{Fact, Number};
use crate::list::{Condition, RuleList};
use crate::meaning::{self, Meaning};
use crate::observations::Observations;
use crate::reason::Finding;
use crate::topic::Topic;
use bem_base::environment::Field;
use bem_circuit::netlist::Builder;
use bem_data::{Code, Column, Encoder};
use bem_synth::policy::{Policy, action_bits};

/// What places in a circuit are called.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    /// What every input is: first the observation bits that are read, then memory.
    pub places: Vec<Meaning>,
    /// The world's fields.
    pub fields: &'a [Field],
    /// What the bits stand for, where features are named.
    pub names: Option<&'a Encoder>,
    /// How many actions there are.
    pub actions: u16,
    /// What they are called; empty where they have numbers only.
    pub action_names: &'a [String],
    /// No episode takes more steps, where that is known.
    pub horizon: Option<u32>,
    /// For every column the values that matter; empty where all of them do.
    pub limits: Vec<Vec<usize>>,
    /// Whether memory may hold codes beyond the last action, which stand for action 0.
    pub holds_codes_beyond: bool,
}

impl<'a> Words<'a> {
    /// The words of a policy, with all that can be told of its memory.
    pub fn of(policy: &Policy, fields: &'a [Field], names: Option<&'a Encoder>) -> Words<'a> {
        let places = meaning::meanings(policy);
        let is_full = usize::from(policy.actions()) == 1 << action_bits(policy.actions());
        let holds_actions = places.iter().any(|place| matches!(place, Meaning::Acted { .. }));
        let mut words =
            Words { places, holds_codes_beyond: false, ..Words::seen(&[], fields, names, policy.actions()) };
        if holds_actions && !is_full {
            let all: Vec<usize> = (0..words.places.len()).collect();
            let valid = |builder: &mut Builder| Observations::new(&words, &all).valid(builder);
            let is_shown = meaning::remembers_actions_only(policy, &words.places, valid);
            words.holds_codes_beyond = !is_shown;
        }
        words
    }

    /// The words of a policy over bits alone: nothing is ruled out, so that what is shown holds for every input.
    pub fn of_bits(policy: &Policy, fields: &'a [Field]) -> Words<'a> {
        Words { places: meaning::plain(policy), ..Words::seen(&[], fields, None, policy.actions()) }
    }

    /// The words of a circuit without memory over these observation bits.
    pub fn seen(reads: &[u16], fields: &'a [Field], names: Option<&'a Encoder>, actions: u16) -> Words<'a> {
        let places = reads.iter().map(|bit| Meaning::Seen { bit: *bit, back: 0 }).collect();
        Words {
            places,
            fields,
            names,
            actions,
            action_names: &[],
            horizon: None,
            limits: Vec::new(),
            holds_codes_beyond: true,
        }
    }

    /// The words for a list: of a summary, those that tell apart what was met.
    pub fn for_list(&self, list: &RuleList) -> Words<'a> {
        Words { limits: list.met_values.clone(), ..self.clone() }
    }

    /// What an input is called.
    pub fn place(&self, place: usize) -> String {
        if let Some(fact) = self.named(place, true) {
            return format!("({fact})");
        }
        match self.places[place] {
            Meaning::Seen { bit, back } => {
                let has = |field: &Field| (field.low..field.low + field.width).contains(&bit);
                let name = match self.fields.iter().position(has) {
                    Some(field) if 1 < self.fields[field].width => {
                        format!("bit {} of field {field}", bit - self.fields[field].low)
                    }
                    _ => format!("bit {bit}"),
                };
                name + &ago(back)
            }
            Meaning::Kept(bit) => format!("remembered {bit}"),
            other => format!("{other:?}"),
        }
    }

    /// What an input says where it is about something that has a name.
    fn named(&self, place: usize, value: bool) -> Option<String> {
        let topic = self.topic(place)?;
        let shows = |of: &usize| self.shows(topic, *of, place) == value;
        Some(self.among(topic, &self.values(topic).into_iter().filter(shows).collect::<Vec<_>>()))
    }

    /// The feature that a field of the world is, where features are named.
    fn column(&self, field: usize) -> Option<&Column> {
        let low = self.fields.get(field)?.low;
        self.names?.column_of(usize::from(low)).filter(|column| column.low == low)
    }

    /// The one thing with a name that a fact speaks of.
    fn about(&self, fact: &Fact) -> Option<Topic> {
        let places = fact.places();
        let topic = self.topic(*places.first()?)?;
        places.iter().all(|place| self.topic(*place) == Some(topic)).then_some(topic)
    }

    /// Whether the order of two numbers means something: two fields of one observation, or one field at two times; with
    /// names, where both have the same thresholds.
    pub(crate) fn can_compare(&self, left: &Number, right: &Number) -> bool {
        let is_field = |number: &Number| number.field < self.fields.len() || number.back == 0;
        if !(is_field(left) && is_field(right)) || left.back != right.back && left.field != right.field {
            return false;
        }
        match (self.column(left.field), self.column(right.field)) {
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
        let (mut bits, mut kept, mut named) = (Vec::new(), Vec::new(), Vec::new());
        for place in places {
            match self.places[*place] {
                _ if self.topic(*place).is_some() => named.push(self.place(*place)),
                Meaning::Seen { bit, back: 0 } => bits.push(usize::from(bit)),
                Meaning::Kept(bit) => kept.push(bit),
                _ => named.push(self.place(*place)),
            }
        }
        let bits = (!bits.is_empty()).then(|| format!("bits {}", runs(&bits)));
        let kept = (!kept.is_empty()).then(|| format!("remembered {}", runs(&kept)));
        let parts: Vec<String> = named.into_iter().chain(bits).chain(kept).collect();
        match parts.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => parts.concat(),
        }
    }

    /// A condition.
    pub fn condition(&self, condition: &Condition) -> String {
        if let Some(topic) = self.about(&condition.fact) {
            return self.said(topic, std::slice::from_ref(condition));
        }
        let holds = condition.holds;
        let number = |number: &Number| match self.column(number.field) {
            Some(column) => column.feature.name.clone() + &ago(number.back),
            None if number.field == self.fields.len() => "steps so far".to_string(),
            None => format!("field {}{}", number.field, ago(number.back)),
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
        let mut known: Vec<Topic> = Vec::new();
        for condition in conditions {
            match self.about(&condition.fact) {
                None => drawn.push((self.condition(condition), vec![condition])),
                Some(topic) if known.contains(&topic) => {}
                Some(topic) => {
                    known.push(topic);
                    drawn.push((self.said(topic, conditions), self.own(topic, conditions)));
                }
            }
        }
        drawn
    }

    /// The conditions that speak of one thing with a name.
    fn own<'c>(&self, topic: Topic, conditions: &'c [Condition]) -> Vec<&'c Condition> {
        let is_own = |condition: &&Condition| self.about(&condition.fact) == Some(topic);
        conditions.iter().filter(is_own).collect()
    }

    /// All that these conditions say about it.
    fn said(&self, topic: Topic, conditions: &[Condition]) -> String {
        let own = self.own(topic, conditions);
        let fits = |value: &usize| {
            let bit = |place: usize| self.shows(topic, *value, place);
            own.iter().all(|condition| condition.fact.holds(&bit) == condition.holds)
        };
        self.among(topic, &self.values(topic).into_iter().filter(fits).collect::<Vec<_>>())
    }

    /// What decided, or what would have to change: features first, then single inputs, whole fields as numbers.
    pub fn findings(&self, findings: &[Finding]) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut single: Vec<(usize, bool)> = Vec::new();
        for finding in findings {
            match finding {
                Finding::Group { topic, values } => words.push(self.among(*topic, values)),
                Finding::Input { place, value } => single.push((*place, *value)),
            }
        }
        words.extend(self.inputs(&single));
        words
    }

    /// Inputs with their values, whole fields as numbers.
    fn inputs(&self, inputs: &[(usize, bool)]) -> Vec<String> {
        let mut rest: Vec<(usize, bool)> = inputs.to_vec();
        let mut words = Vec::new();
        let ages = 0..=self.places.iter().map(Meaning::back).max().unwrap_or(0);
        for (age, (number, field)) in
            ages.flat_map(|age| self.fields.iter().enumerate().map(move |it| (age, it)))
        {
            let bits = field.low..field.low + field.width;
            let is_own = |(place, _): &(usize, bool)| {
                let is_of = |bit: &u16| self.names.is_none() && bits.contains(bit);
                matches!(&self.places[*place], Meaning::Seen { bit, back } if *back == age && is_of(bit))
            };
            let mut own: Vec<(usize, bool)> = rest.iter().copied().filter(is_own).collect();
            own.sort_by_key(|(place, _)| self.places[*place].seen_bit());
            if 1 < field.width && own.len() == usize::from(field.width) && field.width <= 64 {
                let digits = own.iter().enumerate();
                let value = digits.fold(0u64, |sum, (bit, (_, value))| sum | u64::from(*value) << bit);
                words.push(format!("field {number}{} = {value}", ago(age)));
                rest.retain(|input| !is_own(input));
            }
        }
        words.extend(rest.iter().map(|(place, value)| self.value(*place, *value)));
        words
    }
}

/// How long ago, behind a name.
pub(crate) fn ago(back: usize) -> String {
    match back {
        0 => String::new(),
        1 => " (1 step ago)".to_string(),
        steps => format!(" ({steps} steps ago)"),
    }
}

/// Numbers in rising order, with neighbours drawn together: `0-3, 7`.
pub(crate) fn runs(numbers: &[usize]) -> String {
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
