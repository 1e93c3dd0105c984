//! Canonical bytes of memory structures, for libraries and snapshots.
//!
//! Every structure writes itself; this file reads all of them back and refuses what the grammar could not have
//! made, so that a decoded structure can be built like any other. Must not know games. Clauses: LOG-1, LOG-5.

use super::Device;
use super::after::After;
use super::both::Both;
use super::condition::Condition;
use super::counter::Counter;
use super::delay::Delay;
use super::echo::Echo;
use super::flag::{Latch, Toggle};
use super::queue::Queue;
use super::registers::Registers;
use super::search::{CELLS_MAX, TAPE_CELLS_MAX};
use super::stack::Stack;
use super::sticky::Sticky;
use super::sticky_search::KEY_BITS_MAX;
use super::tape::Tape;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Field;
use bem_base::limits::STATE_BITS_MAX;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The first byte of every structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StructureKind {
    /// A bit that flips.
    Toggle = 0,
    /// A bit that is set and cleared.
    Latch = 1,
    /// A counter with ends.
    Counter = 2,
    /// A delay line.
    Delay = 3,
    /// A stack.
    Stack = 4,
    /// A queue.
    Queue = 5,
    /// A register file.
    Registers = 6,
    /// A tape.
    Tape = 7,
    /// A flag over another structure.
    Sticky = 8,
    /// Two structures side by side.
    Both = 9,
    /// A shift register.
    Echo = 10,
    /// A structure looked at after the step.
    After = 11,
}

/// Binary digits of a counter at most.
const COUNTER_BITS_MAX: usize = 32;
/// Bits of a register's address at most.
pub(super) const ADDRESS_BITS_MAX: u16 = 8;
/// Steps of a delay line or shift register at most.
const DELAY_MAX: usize = 64;

/// A condition that may be missing.
pub fn encode_option(writer: &mut Writer, condition: Option<&Condition>) {
    writer.bool(condition.is_some());
    if let Some(condition) = condition {
        condition.encode(writer);
    }
}

/// Fields behind their count.
pub fn encode_fields(writer: &mut Writer, fields: &[Field]) {
    writer.length(fields.len());
    for field in fields {
        writer.u16(field.low);
        writer.u16(field.width);
    }
}

/// Fields of an observation of this width, at most `count_max` of them.
pub fn decode_fields(
    reader: &mut Reader<'_>,
    observation_bits: u16,
    count_max: usize,
) -> Result<Vec<Field>, DecodeError> {
    let malformed = reader.error("a field that is not observed");
    let count = reader.length(4)?;
    let fields = (0..count)
        .map(|_| Ok(Field { low: reader.u16()?, width: reader.u16()? }))
        .collect::<Result<Vec<_>, DecodeError>>()?;
    let inside = |field: &Field| {
        0 < field.width && u32::from(field.low) + u32::from(field.width) <= u32::from(observation_bits)
    };
    if count_max < count || !fields.iter().all(inside) {
        return Err(malformed);
    }
    Ok(fields)
}

/// Structures around what they are made of.
const DEPTH_MAX: u8 = 8;

/// Reads a structure over observations of this width.
pub fn decode(reader: &mut Reader<'_>, observation_bits: u16) -> Result<Arc<dyn Device>, DecodeError> {
    let start = reader.clone();
    let device = Decoder { reader, observation_bits }.device(DEPTH_MAX)?;
    if STATE_BITS_MAX < device.memory_bits() {
        return Err(start.error("a structure with more memory than a machine has"));
    }
    Ok(device)
}

/// A reader that knows how wide observations are.
struct Decoder<'r, 'b> {
    reader: &'r mut Reader<'b>,
    observation_bits: u16,
}

impl Decoder<'_, '_> {
    /// A structure with at most this many others around what it is made of.
    fn device(&mut self, depth: u8) -> Result<Arc<dyn Device>, DecodeError> {
        let unknown = self.reader.error("an unknown memory structure");
        Ok(match self.reader.u8()? {
            0 => Arc::new(Toggle { condition: self.condition()? }),
            1 => Arc::new(Latch { set: self.condition()?, clear: self.option()? }),
            2 => Arc::new(Counter {
                up: self.condition()?,
                down: self.option()?,
                bits: self.count(1, COUNTER_BITS_MAX)?,
                digits: self.reader.bool()?,
            }),
            3 => Arc::new(Delay { fields: self.partition()?, length: self.count(1, DELAY_MAX)? }),
            4 => Arc::new(Stack {
                push: self.condition()?,
                pop: self.condition()?,
                field: decode_fields(self.reader, self.observation_bits, 1)?.pop(),
                cells: self.count(1, CELLS_MAX)?,
            }),
            5 => Arc::new(Queue {
                push: self.condition()?,
                pop: self.condition()?,
                field: self.field()?,
                cells: self.count(1, CELLS_MAX)?,
            }),
            6 => Arc::new(self.registers()?),
            7 => Arc::new(self.tape()?),
            8 if depth == DEPTH_MAX => Arc::new(self.sticky()?),
            9 if 2 <= depth => {
                Arc::new(Both { first: self.device(depth - 1)?, second: self.device(depth - 1)? })
            }
            10 => Arc::new(Echo { field: self.field()?, length: self.count(1, DELAY_MAX)? }),
            11 if 1 <= depth => Arc::new(After { inner: self.device(0)? }),
            _ => return Err(unknown),
        })
    }

    fn condition(&mut self) -> Result<Condition, DecodeError> {
        Condition::decode(self.reader, self.observation_bits)
    }

    fn option(&mut self) -> Result<Option<Condition>, DecodeError> {
        if self.reader.bool()? { self.condition().map(Some) } else { Ok(None) }
    }

    fn field(&mut self) -> Result<Field, DecodeError> {
        let missing = self.reader.error("a structure without its field");
        decode_fields(self.reader, self.observation_bits, 1)?.pop().ok_or(missing)
    }

    fn count(&mut self, min: usize, max: usize) -> Result<usize, DecodeError> {
        let malformed = self.reader.error("a size outside the grammar");
        let count = self.reader.u32()? as usize;
        if (min..=max).contains(&count) { Ok(count) } else { Err(malformed) }
    }

    /// Fields that cover the whole observation, one after the other.
    fn partition(&mut self) -> Result<Vec<Field>, DecodeError> {
        let malformed = self.reader.error("fields that do not cover the observation");
        let fields = decode_fields(self.reader, self.observation_bits, usize::from(self.observation_bits))?;
        let width: usize = fields.iter().map(|field| usize::from(field.width)).sum();
        if width == usize::from(self.observation_bits) { Ok(fields) } else { Err(malformed) }
    }

    fn registers(&mut self) -> Result<Registers, DecodeError> {
        let malformed = self.reader.error("registers outside the grammar");
        let write = self.condition()?;
        let fields = decode_fields(self.reader, self.observation_bits, 2)?;
        let delayed = self.reader.bool()?;
        match fields[..] {
            [address, data] if address.width <= ADDRESS_BITS_MAX => {
                Ok(Registers { write, address, data, delayed })
            }
            _ => Err(malformed),
        }
    }

    fn tape(&mut self) -> Result<Tape, DecodeError> {
        let malformed = self.reader.error("a tape whose cells are no power of two");
        let (write, read) = (self.condition()?, self.condition()?);
        let (field, cells) = (self.field()?, self.count(1, TAPE_CELLS_MAX)?);
        if cells.is_power_of_two() { Ok(Tape { write, read, field, cells }) } else { Err(malformed) }
    }

    fn sticky(&mut self) -> Result<Sticky, DecodeError> {
        let malformed = self.reader.error("a table of pairs outside the grammar");
        let inner = self.device(0)?;
        let key_bits = usize::from(self.observation_bits) + inner.shows().iter().sum::<usize>();
        let mut raises = BTreeMap::new();
        for _ in 0..self.reader.length(9)? {
            let (key, value) = (self.reader.u64()?, self.reader.bool()?);
            // Ascending keys only: a table has one spelling.
            let ascending = raises.last_key_value().is_none_or(|(last, _)| *last < key);
            if KEY_BITS_MAX < key_bits || key >> key_bits != 0 || !ascending {
                return Err(malformed);
            }
            raises.insert(key, value);
        }
        Ok(Sticky { inner, raises })
    }
}
