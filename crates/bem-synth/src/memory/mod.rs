//! The grammar of memory: structures that turn the past into bits a function may read, one file each.
//!
//! A structure is a piece of sequential circuit with learned control: given the observation and its own memory
//! bits it says what it shows now and what it keeps. There is one definition, the circuit; what it shows on
//! logged episodes comes from running that circuit. Must not know actions or rewards. Clauses: SCC-2.

pub mod after;
pub mod both;
pub mod codec;
pub mod condition;
pub mod counter;
pub mod delay;
pub mod echo;
pub mod flag;
pub mod queue;
pub mod registers;
pub mod search;
pub mod stack;
pub mod sticky;
pub mod sticky_search;
pub mod tape;

use crate::statement::Memory;
use crate::transfer::Moves;
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
    /// The same structure with room for this many values; none for structures without a size.
    fn resized(&self, _cells: usize) -> Option<Arc<dyn Device>> {
        None
    }
    /// The same structure over another observation; none where what it looks at has no counterpart there.
    fn moved(&self, _moves: &Moves) -> Option<Arc<dyn Device>> {
        None
    }
    /// What it keeps and shows, said as data.
    fn statement(&self) -> Memory;
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

/// The structure with room for this many values; one without a size stays as it is.
pub fn resize(device: &Arc<dyn Device>, cells: usize) -> Arc<dyn Device> {
    device.resized(cells).unwrap_or_else(|| device.clone())
}

/// The signals of one field of the observation.
fn field_signals(observation: &[Signal], field: Field) -> &[Signal] {
    &observation[usize::from(field.low)..usize::from(field.low + field.width)]
}

/// A structure ready to be run over logged episodes.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// From observation and memory to what had to be computed for showing, then the next memory.
    pub circuit: Netlist,
    /// Where each shown bit is.
    pub shows: Vec<Shown>,
    /// How many outputs come before the next memory.
    pub computed: usize,
}

/// Where a shown bit is: tapes show many bits of their memory as they are, and need no output for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// An input of the circuit.
    Input(usize),
    /// An output of the circuit.
    Output(usize),
}

/// The structure as a circuit of its own; none if a bound is exceeded.
pub fn compile(device: &dyn Device, observation_bits: usize) -> Option<Compiled> {
    let inputs = observation_bits + device.memory_bits();
    let mut builder = Builder::new(inputs);
    let signals: Vec<Signal> = (0..inputs).map(Signal::input).collect();
    let (observation, memory) = signals.split_at(observation_bits);
    let (shown, next) = device.build(&mut builder, observation, memory);
    let mut outputs: Vec<Signal> = Vec::new();
    let shows = shown
        .iter()
        .map(|signal| match signals.binary_search(signal) {
            Ok(index) => Shown::Input(index),
            Err(_) => {
                outputs.push(*signal);
                Shown::Output(outputs.len() - 1)
            }
        })
        .collect();
    let computed = outputs.len();
    outputs.extend(next);
    Some(Compiled { circuit: builder.finish(&outputs).ok()?, shows, computed })
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
