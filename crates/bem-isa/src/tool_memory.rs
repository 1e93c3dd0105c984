//! SHARED beside a tool bus: the catalog, the mirror of the slots, and where a program of the control core finds them.
//!
//! `bem exec --tools` and a service with tools use the same: CATALOG is written when the bus starts, TOOL_BUS at every barrier
//! from the bus's own tables, and only through the view of the tools. A program reads both and writes neither; what it may touch
//! is what the table of callers says of the control core. Responses go where their descriptor wanted them, at the barrier.
//!
//! ```text
//! WORK   0 address of CATALOG   1 address of TOOL_BUS   2 address of ENV   3 version of the layer
//!        4 requests that have ended   5 of them with an error   6 enqueues without a free slot or buffer   7 barriers
//! ```
//!
//! Must not know workers, files or clocks. Clauses: TOOL-1, TOOL-2, TOOL-11, ISA-4, MEM-2; decisions D-75, D-200.

use crate::coprocessor::ToolDescriptor;
use crate::instruction::SegmentBase;
use crate::interpreter::SegmentStarts;
use crate::memory::{Access, Memory, PAGE_WORDS, STATE_START};
use bem_machine::config::GenesisConfig;
use bem_machine::memory::segment::{Caller, Segment};
use bem_machine::memory::shared::SharedMemory;
use bem_tools::bus::{Bus, Completed};
use bem_tools::catalog::Catalog;
use bem_tools::layout::{Mapping, REQUEST_WORDS};
use bem_tools::limits::SLOTS;
use bem_tools::mirror::{self, Mirrored};
use bem_tools::tables::Tables;

/// Words of STATE that a program beside a bus has.
const STATE_WORDS: usize = 4 * 1_024;
/// Segments whose addresses stand in WORK.
const SHOWN: [Segment; 3] = [Segment::Catalog, Segment::ToolBus, Segment::Env];

/// Words of WORK behind the addresses.
mod work {
    pub const VERSION: u32 = 3;
    pub const ENDED: u32 = 4;
    pub const FAILED: u32 = 5;
    pub const BACK_PRESSURE: u32 = 6;
    pub const BARRIERS: u32 = 7;
}

/// Why SHARED cannot hold what a bus has to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The segment is too small.
    #[error("{} needs {needed} words and has {room}: raise its parameter", segment.name())]
    Words {
        /// Which.
        segment: Segment,
        /// What is needed.
        needed: usize,
        /// What there is.
        room: u32,
    },
    /// Permissions are given by pages.
    #[error("{} does not begin at a multiple of {PAGE_WORDS} words: change the size of a segment before it", segment.name())]
    Border {
        /// Which.
        segment: Segment,
    },
}

/// SHARED and STATE of whoever has a bus.
#[derive(Clone, Debug)]
pub struct ToolMemory {
    shared: SharedMemory,
    state: Vec<u64>,
}

impl ToolMemory {
    /// The catalog is in its place; nothing was asked yet.
    pub fn new(config: &GenesisConfig, catalog: &Catalog) -> Result<ToolMemory, NoRoom> {
        let mut shared = SharedMemory::new(config);
        let map = shared.map().clone();
        let is_crooked = |segment: &Segment| !(map.base(*segment) as usize).is_multiple_of(PAGE_WORDS);
        if let Some(segment) = Segment::ALL.into_iter().find(is_crooked) {
            return Err(NoRoom::Border { segment });
        }
        let rows = catalog.words(map.size(Segment::Catalog) as usize);
        let slots = catalog.kinds().len() * SLOTS * REQUEST_WORDS;
        for (segment, needed) in [(Segment::Catalog, rows.len()), (Segment::ToolBus, slots)] {
            let room = map.size(segment);
            if (room as usize) < needed {
                return Err(NoRoom::Words { segment, needed, room });
            }
        }
        if let Ok(words) = shared.view_mut(Caller::Tools).segment_mut(Segment::Catalog) {
            words[..rows.len()].copy_from_slice(&rows);
        }
        let mut memory = ToolMemory { shared, state: vec![0; STATE_WORDS] };
        for (word, segment) in (0..).zip(SHOWN) {
            memory.write_work(word, 8 * u64::from(map.base(segment)));
        }
        memory.write_work(work::VERSION, bem_tools::VERSION_WORD);
        Ok(memory)
    }

    fn write_work(&mut self, word: u32, value: u64) {
        let written = self.shared.view_mut(Caller::Core).write(Segment::Work, word, value);
        debug_assert!(written.is_ok(), "WORK has 64 words at least");
    }

    /// SHARED, for whoever may look.
    pub fn shared(&self) -> &SharedMemory {
        &self.shared
    }

    /// Where a program's segments begin.
    pub fn starts(&self) -> SegmentStarts {
        let address = |segment: Segment| 8 * u64::from(self.shared.map().base(segment));
        SegmentStarts::default()
            .with(SegmentBase::State, STATE_START)
            .with(SegmentBase::Work, address(Segment::Work))
            .with(SegmentBase::Env, address(Segment::Env))
    }

    /// What a program sees: SHARED as far as the control core may touch it, and STATE.
    pub fn memory(&mut self) -> Memory<'_> {
        let map = self.shared.map().clone();
        let mut memory = Memory::new(self.shared.words_mut(), &mut self.state);
        for segment in Segment::ALL {
            let access = match (Caller::Core.may_write(segment), Caller::Core.may_read(segment)) {
                (true, _) => Access::Write,
                (false, true) => Access::Read,
                (false, false) => Access::None,
            };
            memory.allow(map.base(segment) as usize, map.size(segment) as usize, access);
        }
        memory.allow_state(Access::Write);
        memory
    }

    /// A barrier, at which these requests ended: the mirror is written anew, responses go where they were wanted by a program
    /// (`asked` says which requests are one's), and WORK counts.
    pub fn barrier<M: Mapping>(
        &mut self,
        bus: &Bus<M>,
        completed: &[Completed],
        asked: impl Fn(u64) -> Option<ToolDescriptor>,
    ) {
        if let Ok(words) = self.shared.view_mut(Caller::Tools).segment_mut(Segment::ToolBus) {
            bus.mirror(words);
            for done in completed {
                let place = bus.channels().iter().position(|channel| channel.kind() == done.kind);
                let pointers = asked(done.number).map_or((0, 0), |asked| (asked.input, asked.output));
                place.into_iter().for_each(|place| mirror::write_end(words, place, done, pointers));
            }
        }
        for done in completed {
            if let Some(asked) = asked(done.number) {
                self.write_response(&asked, &done.response);
            }
        }
        let counts = || bus.channels().iter().map(|channel| channel.counts());
        for (word, count) in [
            (work::ENDED, counts().map(|counts| counts.done + counts.failed).sum()),
            (work::FAILED, counts().map(|counts| counts.failed).sum()),
            (work::BACK_PRESSURE, counts().map(|counts| counts.back_pressure).sum()),
            (work::BARRIERS, self.barriers() + 1),
        ] {
            self.write_work(word, count);
        }
    }

    fn barriers(&self) -> u64 {
        self.shared.view(Caller::Core).read(Segment::Work, work::BARRIERS).unwrap_or(0)
    }

    /// The buffer was looked at when the request went out; it is looked at again, by the rights of the control core.
    fn write_response(&mut self, asked: &ToolDescriptor, response: &[u8]) {
        let mut memory = self.memory();
        let room = u64::from(asked.capacity).div_ceil(8);
        for (place, bytes) in (0..room).zip(response.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            let stored = memory.store(asked.output + 8 * place, u64::from_le_bytes(eight));
            debug_assert!(stored.is_ok(), "rights do not change");
        }
    }

    /// The slots that TOOL_BUS shows: under way, or ended at the last barrier.
    pub fn slots(&self) -> Vec<Mirrored> {
        let segment = self.shared.view(Caller::Core).segment(Segment::ToolBus);
        mirror::slots(segment.unwrap_or_default())
    }

    /// The tables that CATALOG shows.
    pub fn tables(&self) -> Option<Tables> {
        Tables::read(self.shared.view(Caller::Core).segment(Segment::Catalog).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trap::Cause;
    use bem_base::ids::ObjectId;
    use bem_tools::bus::{Request, key};
    use bem_tools::catalog::NodeKind;
    use bem_tools::layout::private;
    use bem_tools::word::{AtomicU64, Status};
    use bem_tools::worker::{Failure, Job, Port, Tool, serve_one};
    use std::sync::Arc;

    struct Repeats;

    impl Tool for Repeats {
        fn run(&mut self, job: &Job) -> Result<Vec<u8>, Failure> {
            Ok(job.payload.clone())
        }
    }

    fn catalog() -> Catalog {
        let mut catalog = Catalog::new();
        catalog.add_file("config", None, NodeKind::Directory, 0, 1).unwrap();
        catalog
    }

    type Memory64 = Arc<Vec<AtomicU64>>;

    fn request(number: u64, resource: ObjectId) -> Request<'static> {
        let payload = b"0123456789";
        Request {
            operation: 1,
            flags: 0,
            resource,
            payload,
            capacity: 16,
            number,
            key: key(number, payload),
            is_idempotent: true,
            lease: 10,
            patience: 0,
        }
    }

    #[test]
    fn a_program_reads_catalog_and_slots_and_writes_neither() {
        let catalog = catalog();
        let mut memory = ToolMemory::new(&GenesisConfig::default(), &catalog).unwrap();
        assert_eq!(memory.tables().unwrap().files, catalog.files());
        let (work, map) = (memory.starts().get(SegmentBase::Work), memory.shared().map().clone());
        let mut seen = memory.memory();
        let places: Vec<u64> = (0..3).map(|word| seen.load(work + 8 * word).unwrap()).collect();
        assert_eq!(places, SHOWN.map(|segment| 8 * u64::from(map.base(segment))));
        assert_eq!(seen.load(work + 24), Ok(bem_tools::VERSION_WORD));
        assert_eq!(seen.load(places[0] + 8), Ok(1), "one node");
        for place in [places[0], places[1], 0] {
            assert_eq!(seen.store(place, 9), Err(Cause::ReadOnly), "catalog, slots and configuration");
        }
        assert_eq!(seen.store(places[2], 9), Ok(()));
    }

    #[test]
    fn a_barrier_shows_slots_and_puts_responses_where_they_were_wanted() {
        let catalog = catalog();
        let mut memory = ToolMemory::new(&GenesisConfig::default(), &catalog).unwrap();
        let made: Result<Bus<Memory64>, ()> = Bus::new(&catalog, |_| Ok(Arc::new(private())));
        let mut bus = made.unwrap();
        let (files, root) = (catalog.find("fs").unwrap(), catalog.find("config").unwrap());
        let output = memory.starts().get(SegmentBase::Env) + 64;
        let asked = ToolDescriptor {
            tool: files.to_word(),
            operation: 1,
            flags: 0,
            resource: root.to_word(),
            input: output,
            output,
            capacity: 16,
        };
        let of_program = |number: u64| (number == 7).then_some(asked);
        for number in [7, 8] {
            bus.enqueue(files, &request(number, root), 0).unwrap();
        }
        memory.barrier(&bus, &[], of_program);
        assert!(memory.slots().iter().all(|slot| slot.status == Status::Pending), "{:?}", memory.slots());
        let mut port = Port::open(Arc::clone(bus.channels()[0].mapping()), 1).unwrap();
        while serve_one(&mut port, &mut Repeats) {}
        let mut completed = Vec::new();
        bus.poll(1, 10, &mut completed);
        memory.barrier(&bus, &completed, of_program);
        let slots = memory.slots();
        let shown: Vec<_> = slots.iter().map(|slot| (slot.number, slot.status, slot.used)).collect();
        assert_eq!(shown, [(7, Status::Done, 10), (8, Status::Done, 10)]);
        let seen = memory.memory();
        let words = [seen.load(output).unwrap(), seen.load(output + 8).unwrap()];
        assert_eq!(words, [u64::from_le_bytes(*b"01234567"), u64::from_le_bytes(*b"89\0\0\0\0\0\0")]);
        let work = memory.starts().get(SegmentBase::Work);
        let seen = memory.memory();
        let counted: Vec<u64> = (4..8).map(|word| seen.load(work + 8 * word).unwrap()).collect();
        assert_eq!(counted, [2, 0, 0, 2]);
    }

    #[test]
    fn a_configuration_without_room_is_refused_by_name() {
        let small = GenesisConfig { words_tool_bus: 64, ..GenesisConfig::default() };
        let refused = ToolMemory::new(&small, &catalog()).unwrap_err().to_string();
        assert_eq!(refused, "TOOL_BUS needs 3072 words and has 64: raise its parameter");
        let crooked = GenesisConfig { words_trace_meta: 100, ..GenesisConfig::default() };
        let refused = ToolMemory::new(&crooked, &catalog()).unwrap_err();
        assert_eq!(refused, NoRoom::Border { segment: Segment::Expert });
    }
}
