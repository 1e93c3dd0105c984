//! The parts of a learner as bytes, each checked against the shape of the world when it is read.
//!
//! Clauses: LOG-4, LOG-5.

use crate::learner::Settings;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_circuit::netlist::{Builder, Netlist, Op, Signal};
use bem_machine::config::GenesisConfig;
use bem_prover::equivalence::check_equivalence;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::library::Machine;
use bem_synth::policy::{Policy, action_bits};
use bem_synth::statement::Statement;
use std::sync::Arc;

/// Writes how many there are, and each of them.
pub(crate) fn encode_list<'a, T: 'a>(
    writer: &mut Writer,
    items: impl ExactSizeIterator<Item = &'a T>,
    encode: impl Fn(&T, &mut Writer),
) {
    writer.length(items.len());
    items.for_each(|item| encode(item, writer));
}

/// Reads a list; every item takes at least one byte.
pub(crate) fn decode_list<'r, T>(
    reader: &mut Reader<'r>,
    decode: impl Fn(&mut Reader<'r>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    (0..reader.length(1)?).map(|_| decode(reader)).collect()
}

/// Writes whether there is one, and it.
pub(crate) fn encode_option<T>(writer: &mut Writer, item: Option<&T>, encode: impl Fn(&T, &mut Writer)) {
    writer.bool(item.is_some());
    if let Some(item) = item {
        encode(item, writer);
    }
}

/// Reads one, if there is one.
pub(crate) fn decode_option<'r, T>(
    reader: &mut Reader<'r>,
    decode: impl Fn(&mut Reader<'r>) -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    Ok(if reader.bool()? { Some(decode(reader)?) } else { None })
}

/// Writes all settings.
pub(crate) fn encode_settings(settings: &Settings, writer: &mut Writer) {
    let Settings { seed, budget, config } = settings;
    writer.u64(*seed);
    writer.u64(*budget);
    config.encode(writer);
}

/// Reads settings back.
pub(crate) fn decode_settings(reader: &mut Reader<'_>) -> Result<Settings, DecodeError> {
    Ok(Settings {
        seed: reader.u64()?,
        budget: reader.u64()?,
        config: Arc::new(GenesisConfig::decode(reader)?),
    })
}

/// Writes a candidate.
pub(crate) fn encode_hypothesis(hypothesis: &Hypothesis, writer: &mut Writer) {
    hypothesis.policy.encode(writer);
    encode_option(writer, hypothesis.statement.as_ref(), Statement::encode);
    writer.text(&hypothesis.words);
    writer.u32(hypothesis.description_length);
    writer.bool(hypothesis.exact);
    encode_option(writer, hypothesis.predicted.as_ref(), |predicted, writer| writer.i64(*predicted));
    writer.raw(hypothesis.provenance.as_bytes());
    encode_option(writer, hypothesis.machine.as_ref(), Machine::encode);
}

/// Reads a candidate for worlds of this shape.
pub(crate) fn decode_hypothesis(shape: &Shape, reader: &mut Reader<'_>) -> Result<Hypothesis, DecodeError> {
    Ok(Hypothesis {
        policy: decode_policy(shape, reader)?,
        statement: decode_option(reader, Statement::decode)?,
        words: reader.text()?.to_string(),
        description_length: reader.u32()?,
        exact: reader.bool()?,
        predicted: decode_option(reader, Reader::i64)?,
        provenance: Digest::decode(reader)?,
        machine: decode_option(reader, Machine::decode)?,
    })
}

/// A policy over the bits and actions of this shape.
pub(crate) fn decode_policy(shape: &Shape, reader: &mut Reader<'_>) -> Result<Policy, DecodeError> {
    let foreign = reader.error("a policy for another world");
    let policy = Policy::decode(reader)?;
    let known = policy.reads().iter().all(|bit| *bit < shape.observation_bits);
    if known && policy.actions() == shape.actions { Ok(policy) } else { Err(foreign) }
}

/// Whether no input makes the circuit say an action that is none: asked of a policy that will act without being shown
/// or measured again. Cost: a proof, unless every code is an action.
pub(crate) fn stays_in_range(policy: &Policy) -> bool {
    if usize::from(policy.actions()).is_power_of_two() {
        return true;
    }
    let circuit = policy.circuit();
    let mut builder = Builder::new(circuit.inputs());
    let inputs: Vec<Signal> = (0..circuit.inputs()).map(Signal::input).collect();
    let outputs = builder.embed(circuit, &inputs);
    // Whether the code exceeds the last action, from the lowest bit up.
    let last = policy.actions() - 1;
    let mut exceeds = Signal::FALSE;
    for (place, bit) in outputs[..action_bits(policy.actions())].iter().enumerate() {
        let op = if last >> place & 1 == 1 { Op::And } else { Op::Or };
        exceeds = builder.gate(op, *bit, exceeds);
    }
    let never = Netlist::new(circuit.inputs(), Vec::new(), vec![Signal::FALSE]);
    let (Ok(question), Ok(never)) = (builder.finish(&[exceeds]), never) else { return false };
    check_equivalence(&question, &never).is_equal()
}
