//! The canonical bytes of a directory.
//!
//! Clauses: LOG-4.

use super::{DECLARED_MAX, DEPTH_MAX, Directory, Limits, RouteInput, Subcube, TABLE_DEPTH_MAX};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::limits::{BUCKETS_MAX, STATE_BITS_MAX};

impl Directory {
    /// Writes the canonical bytes; table and tree follow from them.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.inputs.len());
        for (input, column) in self.inputs.iter().zip(&self.columns) {
            match input {
                RouteInput::State(bit) => {
                    writer.u8(0);
                    writer.u32(u32::from(*bit));
                    writer.u8(0);
                }
                RouteInput::Shared { address, bit } => {
                    writer.u8(1);
                    writer.u32(*address);
                    writer.u8(*bit);
                }
            }
            writer.u64(*column);
        }
        writer.u8(self.depth as u8);
        writer.length(self.subcubes.len());
        for subcube in &self.subcubes {
            writer.u64(subcube.depends_on);
            writer.u64(subcube.pattern);
        }
        writer.u32(self.limits.buckets as u32);
        writer.u8(self.limits.depth as u8);
    }

    /// Reads canonical bytes and checks the invariants.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Directory, DecodeError> {
        let start = reader.clone();
        let (mut inputs, mut columns) = (Vec::new(), Vec::new());
        for _ in 0..reader.length(14)? {
            let unknown = reader.error("an unknown routing input");
            inputs.push(match (reader.u8()?, reader.u32()?, reader.u8()?) {
                (0, bit, 0) if bit < STATE_BITS_MAX as u32 => RouteInput::State(bit as u16),
                (1, address, bit) if bit < 64 => RouteInput::Shared { address, bit },
                _ => return Err(unknown),
            });
            columns.push(reader.u64()?);
        }
        let depth = usize::from(reader.u8()?);
        let count = reader.length(16)?;
        if DEPTH_MAX < depth || DECLARED_MAX < inputs.len() || BUCKETS_MAX < count {
            return Err(start.error("a directory past its bounds"));
        }
        let subcubes = (0..count)
            .map(|_| Ok(Subcube { depends_on: reader.u64()?, pattern: reader.u64()? }))
            .collect::<Result<Vec<_>, DecodeError>>()?;
        let limits = Limits { buckets: reader.u32()? as usize, depth: usize::from(reader.u8()?) };
        let inconsistent = start.error("an inconsistent directory");
        let low = if depth == DEPTH_MAX { u64::MAX } else { (1u64 << depth) - 1 };
        let is_sound = subcubes
            .iter()
            .all(|subcube| subcube.depends_on & !low == 0 && subcube.pattern & !subcube.depends_on == 0)
            && columns.iter().all(|column| column & !low == 0)
            && (count..=BUCKETS_MAX).contains(&limits.buckets)
            && depth <= limits.depth
            && [TABLE_DEPTH_MAX, DEPTH_MAX].contains(&limits.depth)
            && (1..inputs.len()).all(|index| !inputs[..index].contains(&inputs[index]));
        if !is_sound {
            return Err(inconsistent);
        }
        Directory::derive(inputs, columns, depth, subcubes, limits).ok_or(inconsistent)
    }
}
