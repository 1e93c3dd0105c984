//! The grammar of memory: structures that turn the past into bits a function may read, one file each.
//!
//! A structure is a piece of sequential circuit with learned control: given the observation and its own memory
//! bits it says what it shows now and what it keeps. There is one definition, the circuit; what it shows on
//! logged episodes comes from running that circuit. Must not know actions or rewards. Clauses: SCC-1.

pub mod codec;
pub mod condition;
pub mod counter;
pub mod delay;
pub mod flag;
pub mod queue;
pub mod registers;
pub mod search;
pub mod stack;
pub mod sticky;
pub mod tape;

use bem_base::encode::Writer;
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use std::sync::Arc;

/// A memory structure with all choices made.
pub trait Device: core::fmt::Debug + Send + Sync {
    /// What it is, in words.
    fn words(&self) -> String;
    /// Bits to say which one of its kind it is.
    fn description_length(&self) -> u32;
    /// Bits it keeps.
    fn memory_bits(&self) -> usize;
    /// Widths of the groups of bits it shows.
    fn shows(&self) -> Vec<usize>;
    /// The same structure with room for this many values; structures without a size stay as they are.
    fn resized(&self, cells: usize) -> Arc<dyn Device>;
    /// Writes its canonical bytes: the kind, then its choices. [`codec::decode`] reads them back.
    fn encode(&self, writer: &mut Writer);
    /// The signals it shows now and its next memory.
    fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>);
}

/// The structure as a circuit of its own: what it shows, then its next memory.
pub fn compile(device: &dyn Device, observation_bits: usize) -> Option<Netlist> {
    let mut builder = Builder::new(observation_bits + device.memory_bits());
    let observation: Vec<Signal> = (0..observation_bits).map(Signal::input).collect();
    let memory: Vec<Signal> =
        (0..device.memory_bits()).map(|place| Signal::input(observation_bits + place)).collect();
    let (mut outputs, next) = device.build(&mut builder, &observation, &memory);
    outputs.extend(next);
    builder.finish(&outputs).ok()
}

/// The groups of a row: the observation's fields, then the structure's.
pub fn row_groups(fields: &[Field], observation_bits: usize, device: Option<&dyn Device>) -> Vec<Field> {
    let mut groups = fields.to_vec();
    let mut low = observation_bits as u16;
    for width in device.map(Device::shows).unwrap_or_default() {
        groups.push(Field { low, width: width as u16 });
        low += width as u16;
    }
    groups
}
