//! When a structure does something: a conjunction of at most two literals of the observation.
//!
//! Natural conditions come from narrow fields: a single bit, or one value of a field of two. Conditions that
//! cannot be told apart on what was seen are one. Must not know what a bit means.

use crate::experience::Episode;
use crate::function::choice_bits;
use crate::transfer::Moves;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Shape};
use bem_circuit::netlist::{Builder, Op, Signal};
use std::collections::{BTreeMap, BTreeSet};

/// Observations looked at when conditions are told apart.
const SEEN_MAX: usize = 512;

/// Literals of a condition at most.
const LITERALS_MAX: usize = 2;

/// A conjunction of literals; without any it always holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// Observation bits and the values they must have.
    pub literals: Vec<(u16, bool)>,
    observation_bits: u16,
}

impl Condition {
    /// The conjunction of these literals over observations of this width.
    pub fn new(literals: Vec<(u16, bool)>, observation_bits: u16) -> Condition {
        Condition { literals, observation_bits }
    }

    /// The same condition on another observation.
    pub fn moved(&self, moves: &Moves) -> Option<Condition> {
        let literals = self.literals.iter().map(|(bit, value)| Some((moves.bit(*bit)?, *value)));
        Some(Condition::new(literals.collect::<Option<_>>()?, moves.observation_bits))
    }

    /// Whether it holds.
    pub fn holds(&self, observation: &Bits) -> bool {
        self.literals.iter().all(|(bit, value)| observation.get(usize::from(*bit)) == *value)
    }

    /// Its circuit.
    pub fn build(&self, builder: &mut Builder, observation: &[Signal]) -> Signal {
        let literals: Vec<Signal> = self
            .literals
            .iter()
            .map(|(bit, value)| {
                builder.gate(Op::Xor, observation[usize::from(*bit)], Signal::constant(!*value))
            })
            .collect();
        builder.and_all(&literals)
    }

    /// Bits to say it.
    pub fn description_length(&self) -> u32 {
        2 + self.literals.len() as u32 * (1 + choice_bits(usize::from(self.observation_bits)))
    }

    /// Writes the literals; the width belongs to the world.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.literals.len());
        for (bit, value) in &self.literals {
            writer.u16(*bit);
            writer.bool(*value);
        }
    }

    /// Reads literals back; every bit must be one of the observation's.
    pub fn decode(reader: &mut Reader<'_>, observation_bits: u16) -> Result<Condition, DecodeError> {
        let malformed = reader.error("a condition on bits that are not observed");
        let count = reader.length(3)?;
        let literals = (0..count)
            .map(|_| Ok((reader.u16()?, reader.bool()?)))
            .collect::<Result<Vec<_>, DecodeError>>()?;
        let known = literals.iter().all(|(bit, _)| *bit < observation_bits);
        if LITERALS_MAX < count || !known {
            return Err(malformed);
        }
        Ok(Condition::new(literals, observation_bits))
    }

    /// In words, such as `3 and not 5`.
    pub fn words(&self) -> String {
        if self.literals.is_empty() {
            return "always".to_string();
        }
        let literal = |(bit, value): &(u16, bool)| format!("{}{bit}", if *value { "" } else { "not " });
        self.literals.iter().map(literal).collect::<Vec<_>>().join(" and ")
    }
}

/// Distinct conditions over what was seen, the simplest of each kind, shortest first.
pub fn conditions(shape: &Shape, episodes: &[&Episode]) -> Vec<Condition> {
    let width = shape.observation_bits;
    let mut seen: BTreeSet<Bits> = BTreeSet::new();
    for step in episodes.iter().flat_map(|episode| &episode.steps) {
        if SEEN_MAX <= seen.len() {
            break;
        }
        seen.insert(step.observation);
    }
    let narrow: Vec<u16> = shape
        .fields
        .iter()
        .filter(|field| field.width <= 2)
        .flat_map(|field| field.low..field.low + field.width)
        .collect();
    let mut candidates = Vec::new();
    for bit in &narrow {
        candidates.extend([true, false].map(|value| vec![(*bit, value)]));
    }
    // Two literals of one field, or of any two bits where there are few.
    for (position, first) in narrow.iter().enumerate() {
        for second in &narrow[position + 1..] {
            let together = shape.fields.iter().any(|field| {
                let range = field.low..field.low + field.width;
                range.contains(first) && range.contains(second)
            });
            if together || narrow.len() <= 5 {
                for (one, other) in [(true, true), (true, false), (false, true), (false, false)] {
                    candidates.push(vec![(*first, one), (*second, other)]);
                }
            }
        }
    }
    let mut distinct: BTreeMap<Vec<bool>, Condition> = BTreeMap::new();
    let mut order = Vec::new();
    for literals in candidates {
        let condition = Condition::new(literals, width);
        let truth: Vec<bool> = seen.iter().map(|observation| condition.holds(observation)).collect();
        if truth.iter().all(|value| *value) || !truth.contains(&true) || distinct.contains_key(&truth) {
            continue;
        }
        order.push(truth.clone());
        distinct.insert(truth, condition);
    }
    order.iter().map(|truth| distinct[truth].clone()).collect()
}
