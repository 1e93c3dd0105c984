//! SHARED: one flat array of 64-bit words behind checked views.
//!
//! A view knows its caller; a word outside the caller's segments cannot be read or written through it. The fixed
//! places that the step and the world use are named here once. Must not know learning or structure.
//! Clauses: MEM-2, VM-15, D-10.

use super::segment::{Caller, Segment, SegmentMap};
use crate::config::GenesisConfig;
use bem_base::encode::{DecodeError, Reader, Writer};

/// Why an access was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The caller may not read the segment.
    #[error("{caller:?} may not read {}", segment.name())]
    ReadRefused {
        /// Who asked.
        caller: Caller,
        /// For what.
        segment: Segment,
    },
    /// The caller may not write the segment.
    #[error("{caller:?} may not write {}", segment.name())]
    WriteRefused {
        /// Who asked.
        caller: Caller,
        /// For what.
        segment: Segment,
    },
    /// The word lies past the end of the segment.
    #[error("word {offset} is outside {}, which has {size}", segment.name())]
    OutsideSegment {
        /// Which segment.
        segment: Segment,
        /// The offset asked for.
        offset: u32,
        /// How many words it has.
        size: u32,
    },
    /// The address lies past the end of SHARED.
    #[error("address {address} is outside SHARED, which has {size} words")]
    OutsideShared {
        /// The address asked for.
        address: u32,
        /// How many words there are.
        size: u32,
    },
}

/// Words of ENV that the machine and a world exchange in single-lane runs.
pub mod env_word {
    /// The action taken.
    pub const ACTION: u32 = 0;
    /// The reward, in milli-units, as a signed number.
    pub const REWARD: u32 = 1;
    /// One when the episode is over.
    pub const DONE: u32 = 2;
    /// One when the step was BAD.
    pub const BAD: u32 = 3;
    /// The first of four words of observation.
    pub const OBSERVATION: u32 = 4;
}

/// Words of WORK that the machine keeps.
pub mod work_word {
    /// Steps since the start of the machine.
    pub const STEP_GLOBAL: u32 = 0;
    /// The family that plays.
    pub const FAMILY: u32 = 1;
    /// The task instance that plays.
    pub const TASK: u32 = 2;
    /// The context hash of the step.
    pub const CONTEXT_HASH: u32 = 3;
    /// BAD steps since the start of the machine.
    pub const BAD_COUNT: u32 = 4;
    /// Episodes since the start of the machine.
    pub const EPISODES: u32 = 5;
    /// The most comparisons that one search of the Hamming router has taken.
    pub const ROUTE_WORK_MAX: u32 = 6;
    /// The first word that experts may use; everything below belongs to the machine.
    pub const EXPERT_FIRST: u32 = 32;
}

/// Words of TRACE_META.
pub mod trace_word {
    /// Records appended since the start of the machine.
    pub const RECORDS: u32 = 0;
    /// Buffers handed over since the start of the machine.
    pub const SEALED: u32 = 1;
}

/// All words and their map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "SHARED")]
pub struct SharedMemory {
    map: SegmentMap,
    words: Vec<u64>,
}

impl SharedMemory {
    /// Zeros, with the configuration written into CONFIG.
    pub fn new(config: &GenesisConfig) -> SharedMemory {
        let map = SegmentMap::new(config);
        let mut words = vec![0; map.total() as usize];
        let parameters = config.words();
        words[..parameters.len()].copy_from_slice(&parameters);
        SharedMemory { map, words }
    }

    /// Where the segments are.
    pub fn map(&self) -> &SegmentMap {
        &self.map
    }

    /// Read access for this caller.
    #[inline]
    pub fn view(&self, caller: Caller) -> SharedView<'_> {
        SharedView { caller, memory: self }
    }

    /// Read and write access for this caller.
    #[inline(always)]
    pub fn view_mut(&mut self, caller: Caller) -> SharedViewMut<'_> {
        SharedViewMut { caller, memory: self }
    }

    /// All words, for programs of the control core: their own memory holds them to what [`Caller::Core`] may touch.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    #[inline]
    fn locate(&self, segment: Segment, offset: u32) -> Result<usize, MemoryError> {
        let size = self.map.size(segment);
        if size <= offset {
            return Err(MemoryError::OutsideSegment { segment, offset, size });
        }
        Ok((self.map.base(segment) + offset) as usize)
    }

    fn segment_at(&self, address: u32) -> Result<Segment, MemoryError> {
        let size = self.map.total();
        self.map.segment_of(address).ok_or(MemoryError::OutsideShared { address, size })
    }

    /// Writes the canonical bytes: runs of zeros are left out, so that an empty memory is short.
    pub fn encode(&self, writer: &mut Writer) {
        let used = self.words.iter().enumerate().filter(|(_, word)| **word != 0);
        writer.length(used.clone().count());
        for (address, word) in used {
            writer.u32(address as u32);
            writer.u64(*word);
        }
    }

    /// Reads canonical bytes into a memory for this configuration.
    pub fn decode(config: &GenesisConfig, reader: &mut Reader<'_>) -> Result<SharedMemory, DecodeError> {
        let map = SegmentMap::new(config);
        let mut words = vec![0; map.total() as usize];
        let mut next = 0;
        for _ in 0..reader.length(12)? {
            let error = reader.error("words of SHARED out of order or past the end");
            let (address, word) = (reader.u32()?, reader.u64()?);
            if address < next || word == 0 {
                return Err(error);
            }
            *words.get_mut(address as usize).ok_or(error)? = word;
            next = address + 1;
        }
        Ok(SharedMemory { map, words })
    }
}

/// What one caller may read.
#[derive(Clone, Copy)]
pub struct SharedView<'a> {
    caller: Caller,
    memory: &'a SharedMemory,
}

impl<'a> SharedView<'a> {
    /// One word of a segment.
    #[inline]
    pub fn read(&self, segment: Segment, offset: u32) -> Result<u64, MemoryError> {
        if !self.caller.may_read(segment) {
            return Err(MemoryError::ReadRefused { caller: self.caller, segment });
        }
        Ok(self.memory.words[self.memory.locate(segment, offset)?])
    }

    /// All words of a segment.
    pub fn segment(&self, segment: Segment) -> Result<&'a [u64], MemoryError> {
        if !self.caller.may_read(segment) {
            return Err(MemoryError::ReadRefused { caller: self.caller, segment });
        }
        let base = self.memory.map.base(segment) as usize;
        Ok(&self.memory.words[base..base + self.memory.map.size(segment) as usize])
    }

    /// One word by its address.
    #[inline]
    pub fn read_address(&self, address: u32) -> Result<u64, MemoryError> {
        let segment = self.memory.segment_at(address)?;
        self.read(segment, address - self.memory.map.base(segment))
    }
}

/// What one caller may read and write.
pub struct SharedViewMut<'a> {
    caller: Caller,
    memory: &'a mut SharedMemory,
}

impl SharedViewMut<'_> {
    /// One word of a segment.
    #[inline]
    pub fn read(&self, segment: Segment, offset: u32) -> Result<u64, MemoryError> {
        self.memory.view(self.caller).read(segment, offset)
    }

    /// Writes one word of a segment.
    #[inline]
    pub fn write(&mut self, segment: Segment, offset: u32, word: u64) -> Result<(), MemoryError> {
        if !self.caller.may_write(segment) {
            return Err(MemoryError::WriteRefused { caller: self.caller, segment });
        }
        let place = self.memory.locate(segment, offset)?;
        self.memory.words[place] = word;
        Ok(())
    }

    /// All words of a segment, to be written.
    #[inline(always)]
    pub fn segment_mut(&mut self, segment: Segment) -> Result<&mut [u64], MemoryError> {
        if !self.caller.may_write(segment) {
            return Err(MemoryError::WriteRefused { caller: self.caller, segment });
        }
        let base = self.memory.map.base(segment) as usize;
        let size = self.memory.map.size(segment) as usize;
        Ok(&mut self.memory.words[base..base + size])
    }

    /// One word by its address.
    #[inline]
    pub fn read_address(&self, address: u32) -> Result<u64, MemoryError> {
        self.memory.view(self.caller).read_address(address)
    }

    /// Writes one word by its address.
    #[inline]
    pub fn write_address(&mut self, address: u32, word: u64) -> Result<(), MemoryError> {
        let segment = self.memory.segment_at(address)?;
        self.write(segment, address - self.memory.map.base(segment), word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> SharedMemory {
        SharedMemory::new(&GenesisConfig::default())
    }

    #[test]
    fn an_access_outside_the_callers_segments_is_refused_by_name() {
        let mut memory = memory();
        let refused = memory.view_mut(Caller::Expert).write(Segment::Bandit, 0, 1).unwrap_err();
        assert_eq!(refused.to_string(), "Expert may not write BANDIT");
        let refused = memory.view(Caller::Environment).read(Segment::Bandit, 0).unwrap_err();
        assert_eq!(refused.to_string(), "Environment may not read BANDIT");
        let refused = memory.view_mut(Caller::FastPath).write(Segment::Config, 0, 1).unwrap_err();
        assert_eq!(refused.to_string(), "FastPath may not write CONFIG");
    }

    #[test]
    fn every_caller_is_held_to_its_table_by_offset_and_by_address() {
        let mut memory = memory();
        for caller in [Caller::FastPath, Caller::Expert, Caller::Teacher, Caller::Prover, Caller::Tools] {
            for segment in Segment::ALL {
                let address = memory.map().base(segment);
                let may_read = caller.may_read(segment);
                assert_eq!(memory.view(caller).read(segment, 0).is_ok(), may_read);
                assert_eq!(memory.view(caller).read_address(address).is_ok(), may_read);
                assert_eq!(memory.view(caller).segment(segment).is_ok(), may_read);
                let may_write = caller.may_write(segment);
                assert_eq!(memory.view_mut(caller).write(segment, 0, 9).is_ok(), may_write);
                assert_eq!(memory.view_mut(caller).write_address(address, 9).is_ok(), may_write);
                assert_eq!(memory.view_mut(caller).segment_mut(segment).is_ok(), may_write);
            }
        }
    }

    #[test]
    fn a_word_past_its_segment_is_refused_and_never_lands_in_the_next() {
        let mut memory = memory();
        let size = memory.map().size(Segment::Work);
        let refused = memory.view_mut(Caller::FastPath).write(Segment::Work, size, 1).unwrap_err();
        assert_eq!(refused.to_string(), "word 1024 is outside WORK, which has 1024");
        let total = memory.map().total();
        let refused = memory.view(Caller::Boot).read_address(total).unwrap_err();
        assert_eq!(refused, MemoryError::OutsideShared { address: total, size: total });
    }

    #[test]
    fn the_configuration_stands_in_its_segment() {
        let config = GenesisConfig { lanes: 512, ..GenesisConfig::default() };
        let memory = SharedMemory::new(&config);
        let words = memory.view(Caller::FastPath).segment(Segment::Config).unwrap();
        assert_eq!(words[..config.words().len()], config.words()[..]);
        assert_eq!(words[1], 512);
    }

    #[test]
    fn bytes_come_back_and_disorder_is_refused() {
        let config = GenesisConfig::default();
        let mut memory = memory();
        memory.view_mut(Caller::FastPath).write(Segment::Work, 40, 7).unwrap();
        let mut writer = Writer::new();
        memory.encode(&mut writer);
        let mut reader = Reader::new(writer.as_bytes());
        assert_eq!(SharedMemory::decode(&config, &mut reader), Ok(memory));
        let mut twice = Writer::new();
        twice.length(2);
        for _ in 0..2 {
            twice.u32(5);
            twice.u64(1);
        }
        assert!(SharedMemory::decode(&config, &mut Reader::new(twice.as_bytes())).is_err());
    }
}
