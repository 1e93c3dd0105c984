//! What is explained: a policy with what its world calls things, and how an observation is read from what a person writes.
//!
//! The terminal, the report and the served page ask here, so that an observation is written in one way everywhere: as bits,
//! as `fieldN=VALUE` and `bitN=VALUE`, or as `NAME=VALUE` where features have names; what is remembered as bits or by name
//! ([`crate::remembered`]). Must not know runs, files or services.
//! Clauses: GLE-9.

use crate::examples::met;
use crate::observations::Observations;
use crate::reason::finding;
use crate::{
    Explanation, Finding, Meaning, Reason, StateDiagram, Topic, Words, explain_as, reason, state_diagram,
};
use bem_base::environment::{Bits, Field};
use bem_data::{Column, Encoder};
use bem_synth::policy::Policy;
use std::collections::{BTreeMap, BTreeSet};

/// A policy, and what its world calls things.
#[derive(Clone, Copy, Debug)]
pub struct Explainable<'a> {
    /// What it does.
    pub policy: &'a Policy,
    /// Bits that its world shows.
    pub observation_bits: usize,
    /// How its world groups them.
    pub fields: &'a [Field],
    /// How named features become bits, where they are named.
    pub names: Option<&'a Encoder>,
    /// What the actions are called; empty where they have numbers only.
    pub actions: &'a [String],
    /// No episode of its world takes more steps, where that is known.
    pub horizon: Option<u32>,
}

/// What is wrong with a question, and about which field of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskError {
    /// `obs` or `memory`.
    pub field: &'static str,
    /// What is wrong and what is allowed; follows the name of the field.
    pub message: String,
}

impl std::fmt::Display for AskError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.field, self.message)
    }
}

impl std::error::Error for AskError {}

pub(crate) fn refused(message: String) -> AskError {
    AskError { field: "obs", message }
}

/// A name with its value.
pub type NamedValue<'t> = (&'t str, &'t str);

/// What somebody says that is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenObservation<'t> {
    /// Zeros and ones, or `NAME=VALUE,...`.
    Text(&'t str),
    /// Names with their values.
    Named(Vec<(&'t str, &'t str)>),
}

impl<'a> Explainable<'a> {
    /// How facts about it are said.
    pub fn words(&self) -> Words<'a> {
        let words = Words::of(self.policy, self.fields, self.names);
        Words { action_names: self.actions, horizon: self.horizon, ..words }
    }

    /// What an action is called.
    pub fn action(&self, action: u16) -> String {
        self.actions.get(usize::from(action)).map_or_else(|| format!("action {action}"), String::clone)
    }

    /// The whole of it as rules.
    pub fn explain(&self) -> Explanation {
        self.explain_met(&[])
    }

    /// The whole of it as rules; where they are only a summary, one of what these episodes lead to, each a sequence of
    /// observations.
    pub fn explain_met(&self, episodes: &[Vec<Bits>]) -> Explanation {
        explain_as(self.policy, &self.words(), &met(self, episodes))
    }

    /// Its state diagram, where it has memory, few states and few inputs.
    pub fn diagram(&self) -> Option<StateDiagram> {
        state_diagram(self.policy, &self.words())
    }

    /// Why it acts as it does on this input; every question to the prover may take so many conflicts.
    pub fn reason(&self, input: &[bool], conflicts: u32) -> Reason {
        reason::reason_within(self.policy, &self.words(), input, conflicts)
    }

    /// The inputs of the circuit for an observation and what is remembered, as bits or by name; what of that is not given is
    /// as at the start of an episode. What is remembered may be named beside what is seen too.
    pub fn input(&self, seen: &GivenObservation<'_>, memory: Option<&str>) -> Result<Vec<bool>, AskError> {
        let words = self.words();
        let (facts, bits) = match seen {
            GivenObservation::Text(text) if !text.contains('=') => (Vec::new(), self.bits(text)?),
            GivenObservation::Text(text) => {
                let pairs = text.split(',').map(pair).collect::<Result<Vec<_>, _>>()?;
                self.observation(&words, &pairs)?
            }
            GivenObservation::Named(pairs) => self.observation(&words, pairs)?,
        };
        let mut input: Vec<bool> =
            self.policy.reads().iter().map(|bit| bits.get(usize::from(*bit))).collect();
        input.extend(self.given_memory(&words, facts, memory)?);
        Ok(input)
    }

    /// What is remembered, from facts beside the observation and from what is given for itself.
    fn given_memory<'t>(
        &self,
        words: &Words<'_>,
        mut facts: Vec<(&'t str, &'t str)>,
        memory: Option<&'t str>,
    ) -> Result<Vec<bool>, AskError> {
        let field = if memory.is_some() { "memory" } else { "obs" };
        let count = self.policy.memory_bits();
        match memory {
            None => {}
            Some(text) if text.contains('=') => {
                let more = text.split(',').map(pair).collect::<Result<Vec<_>, _>>();
                facts.extend(more.map_err(|error| AskError { field, ..error })?);
            }
            Some(_) if !facts.is_empty() => {
                let message = "is given twice: as bits, and by name beside the observation".to_string();
                return Err(AskError { field, message });
            }
            Some(text) if text.len() == count && text.bytes().all(|digit| matches!(digit, b'0' | b'1')) => {
                return Ok(text.bytes().map(|digit| digit == b'1').collect());
            }
            Some(text) => {
                let names = match count {
                    0 => String::new(),
                    _ => format!(", or NAME=VALUE,... of {}", self.remembered_names(words)),
                };
                let message = format!("{text:?} must be {count} zeros and ones{names}");
                return Err(AskError { field, message });
            }
        }
        self.memory_with(words, &facts).map_err(|error| AskError { field, ..error })
    }

    /// What is said of memory, and the observation.
    fn observation<'t>(
        &self,
        words: &Words<'_>,
        pairs: &[(&'t str, &'t str)],
    ) -> Result<(Vec<NamedValue<'t>>, Bits), AskError> {
        let is_kept = |(name, _): &(&str, &str)| self.is_remembered(words, name);
        let (facts, seen): (Vec<_>, Vec<_>) = pairs.iter().copied().partition(is_kept);
        let bits = match self.names {
            Some(encoder) => named(encoder, &seen, &self.remembered_names(words))?,
            None => self.numbered(&seen)?,
        };
        Ok((facts, bits))
    }

    /// An observation as zeros and ones.
    fn bits(&self, text: &str) -> Result<Bits, AskError> {
        let width = self.observation_bits;
        let bits = Bits::from_text(text).filter(|_| text.len() == width).ok_or_else(|| {
            let names = self.names.map_or_else(
                || "fieldN=VALUE,...".to_string(),
                |encoder| format!("a value for each feature: {}", all_allowed(encoder)),
            );
            refused(format!("{text:?} must be {width} zeros and ones, or {names}"))
        })?;
        let is_shown = |column: &&Column, value: usize| {
            let low = usize::from(column.low);
            (0..usize::from(column.width)).all(|bit| column.shows(value, bit) == bits.get(low + bit))
        };
        let columns = self.names.map_or(&[][..], Encoder::columns);
        let impossible =
            columns.iter().find(|column| !column.values().into_iter().any(|value| is_shown(column, value)));
        match impossible {
            None => Ok(bits),
            Some(column) => {
                let name = &column.feature.name;
                Err(refused(format!("{text:?} cannot occur: no value of {name} has these bits")))
            }
        }
    }

    /// An observation of fields and bits by their numbers; all others are 0.
    fn numbered(&self, pairs: &[(&str, &str)]) -> Result<Bits, AskError> {
        let mut seen = Bits::ZERO;
        for (name, value) in pairs {
            let pair = format!("{name}={value}");
            let value: u64 =
                value.parse().map_err(|_| refused(format!("{pair:?}: the value must be a whole number")))?;
            let number = |prefix: &str| name.strip_prefix(prefix).and_then(|rest| rest.parse::<usize>().ok());
            let (low, bits) = match (number("field"), number("bit")) {
                (Some(field), _) if field < self.fields.len() => {
                    let field = self.fields[field];
                    (usize::from(field.low), usize::from(field.width))
                }
                (None, Some(bit)) if bit < self.observation_bits => (bit, 1),
                _ => {
                    return Err(refused(format!(
                        "{name:?} is unknown: there are field0 to field{} and bit0 to bit{}",
                        self.fields.len().saturating_sub(1),
                        self.observation_bits.saturating_sub(1)
                    )));
                }
            };
            if bits < 64 && 1 << bits <= value {
                return Err(refused(format!("{pair:?}: the value must be at most {}", (1u64 << bits) - 1)));
            }
            seen.set_field(low, bits.min(64), value);
        }
        Ok(seen)
    }

    /// What is seen in an input, as far as the policy reads it, in words.
    pub fn seen(&self, input: &[bool]) -> String {
        let words = self.said(input, 0..self.policy.reads().len());
        if words.is_empty() { "anything".to_string() } else { words }
    }

    /// What these inputs are, in words.
    fn said(&self, input: &[bool], places: std::ops::Range<usize>) -> String {
        let (words, support) = (self.words(), places.collect::<Vec<usize>>());
        let mut observations = Observations::new(&words, &support);
        if observations.units().iter().any(|unit| unit.state(input).is_none()) {
            observations = Observations::free(&support);
        }
        let found = observations.units().iter().filter_map(|unit| {
            let state = unit.state(input)?;
            Some(finding(unit, &BTreeSet::from([state])))
        });
        let found: Vec<Finding> = found.collect();
        // Nothing was seen or done before the first step.
        let steps = found.iter().find_map(|finding| match finding {
            Finding::Group { topic: Topic::Begun | Topic::Clock, values } => values.last().copied(),
            _ => None,
        });
        let was_there = |finding: &Finding| match (finding, steps) {
            (Finding::Group { topic, .. }, Some(steps)) => topic.back() <= steps,
            _ => true,
        };
        let found: Vec<Finding> = found.into_iter().filter(was_there).collect();
        words.findings(&found).join(" and ")
    }

    /// What a content of memory says: in words where every bit of it has a meaning, else as its bits.
    pub fn memory(&self, memory: &[bool]) -> String {
        let observed = self.policy.reads().len();
        let has_words = !self.words().places[observed..].iter().any(|it| matches!(it, Meaning::Kept(_)));
        let input: Vec<bool> = vec![false; observed].into_iter().chain(memory.iter().copied()).collect();
        match has_words && !memory.is_empty() {
            true => self.said(&input, observed..input.len()),
            false => format!("remembered {}", digits(memory)),
        }
    }

    /// What is remembered in an input: the state of the diagram, or the bits; nothing without memory.
    pub fn remembered(&self, input: &[bool], diagram: Option<&StateDiagram>) -> Option<String> {
        let memory = &input[self.policy.reads().len()..];
        let state =
            diagram.and_then(|diagram| diagram.states.iter().position(|state| state.memory == memory));
        match (memory.is_empty(), state) {
            (true, _) => None,
            (false, Some(state)) => Some(format!("in S{state}")),
            (false, None) => Some(match self.memory(memory) {
                words if words.starts_with("remembered ") => format!("with {} remembered", digits(memory)),
                words => words,
            }),
        }
    }
}

/// Bits as zeros and ones.
pub fn digits(bits: &[bool]) -> String {
    bits.iter().map(|bit| if *bit { '1' } else { '0' }).collect()
}

fn pair(text: &str) -> Result<(&str, &str), AskError> {
    let (name, value) = text.split_once('=').ok_or_else(|| refused(format!("{text:?} has no value")))?;
    Ok((name.trim(), value.trim()))
}

/// Every feature with what it takes.
fn all_allowed(encoder: &Encoder) -> String {
    let of = |column: &Column| format!("{} ({})", column.feature.name, column.feature.allowed());
    encoder.columns().iter().map(of).collect::<Vec<_>>().join(", ")
}

/// An observation of named features, each with its value; `remembered` names what else there is.
fn named(encoder: &Encoder, pairs: &[(&str, &str)], remembered: &str) -> Result<Bits, AskError> {
    let mut values = BTreeMap::new();
    for (name, value) in pairs {
        if !encoder.columns().iter().any(|column| column.feature.name == *name) {
            let known: Vec<&str> =
                encoder.columns().iter().map(|column| column.feature.name.as_str()).collect();
            let kept = match remembered {
                "" => String::new(),
                names => format!("; remembered are {names}"),
            };
            return Err(refused(format!("{name:?} is no feature: there are {}{kept}", known.join(", "))));
        }
        values.insert(*name, *value);
    }
    encoder.encode(|name| values.get(name).copied()).map_err(|error| refused(error.to_string()))
}
