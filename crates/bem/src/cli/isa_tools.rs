//! `bem exec --tools`: a program of the control core with a tool bus, barrier by barrier.
//!
//! The program runs to its end, as a routine of the mid-path does; then the barrier takes completed requests in slot order,
//! writes their responses where they were wanted, and the program runs again with the same memory. WORK tells it where the
//! catalog, the mirror of the bus and ENV are. Clauses: ISA-4, TOOL-2; decision D-75.

use super::isa_record::{Record, Teaching};
use anyhow::{Result, anyhow};
use bem_base::ids::ObjectId;
use bem_isa::coprocessor::{Host as Coprocessors, ToolDescriptor, ToolSlot};
use bem_isa::instruction::SegmentBase;
use bem_isa::interpreter::{Core, SegmentStarts};
use bem_isa::memory::{Memory, STATE_START};
use bem_isa::program::Program;
use bem_isa::trap::Trap;
use bem_machine::config::GenesisConfig;
use bem_machine::memory::segment::{Segment, SegmentMap};
use bem_prover::Budget;
use bem_tools::bus::{Completed, Request, key};
use bem_tools::error::Refused;
use bem_tools::limits::COMPLETIONS_MAX;
use bem_tools::mirror;
use bem_workers::catalog_file::CatalogFile;
use bem_workers::host::{Host, HostOptions, PATIENCE};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Words of WORK: where the catalog, the mirror of the bus and ENV are; then the version of the layer.
const WORK: [Segment; 3] = [Segment::Catalog, Segment::ToolBus, Segment::Env];

/// The bus behind the control core's slot.
struct BusSlot {
    host: Host,
    number: u64,
    asked: BTreeMap<u64, ToolDescriptor>,
}

impl ToolSlot for BusSlot {
    fn enqueue(&mut self, asked: &ToolDescriptor, payload: &[u8]) -> Result<u16, Refused> {
        let kind = ObjectId::from_word(asked.tool).map_err(|_| Refused::UnknownKind)?;
        let resource = ObjectId::from_word(asked.resource).map_err(|_| Refused::BadResource)?;
        let number = self.number + 1;
        let catalog = Arc::clone(self.host.catalog());
        let slot = self.host.enqueue(
            kind,
            &Request {
                operation: asked.operation,
                flags: asked.flags,
                resource,
                payload,
                capacity: asked.capacity,
                number,
                key: key(number, payload),
                is_idempotent: catalog.catalog.is_idempotent(kind, asked.operation, asked.flags),
                lease: 0,
                patience: PATIENCE,
            },
        )?;
        self.number = number;
        self.asked.insert(number, *asked);
        Ok(slot)
    }
}

/// Runs a program until it ends with nothing under way, or traps.
pub fn run(
    program: &Program,
    catalog: &Path,
    seed: u64,
    steps: u64,
    ticks: u32,
    record: &mut Record,
) -> Result<(Core, Option<Trap>, Teaching)> {
    let catalog = Arc::new(CatalogFile::load(catalog)?);
    let map = SegmentMap::new(&GenesisConfig::default());
    let (mut shared, mut state) = (vec![0u64; map.total() as usize], vec![0; 4 * 1_024]);
    let (first, room) = (map.base(Segment::Catalog) as usize, map.size(Segment::Catalog) as usize);
    let words = catalog.catalog.words(room);
    shared[first..first + words.len()].copy_from_slice(&words);
    let work = map.base(Segment::Work) as usize;
    for (place, segment) in WORK.into_iter().enumerate() {
        shared[work + place] = 8 * u64::from(map.base(segment));
    }
    shared[work + WORK.len()] = bem_tools::VERSION_WORD;
    let starts = SegmentStarts::default()
        .with(SegmentBase::State, STATE_START)
        .with(SegmentBase::Work, 8 * u64::from(map.base(Segment::Work)))
        .with(SegmentBase::Env, 8 * u64::from(map.base(Segment::Env)));
    let host = Host::start(catalog, &HostOptions { has_commands: false, ..HostOptions::default() })?;
    let slot = BusSlot { host, number: 0, asked: BTreeMap::new() };
    let mut coprocessors = Coprocessors::with_slots(Budget::DEFAULT.conflicts, Teaching::new(seed), slot);
    for tick in 1.. {
        let mut core = Core::new(program, seed, starts);
        let mut memory = Memory::open(&mut shared, &mut state);
        let trap = core.run(program, &mut memory, &mut coprocessors, steps).err();
        record.write(coprocessors.log(), &coprocessors.teacher)?;
        if trap.is_some() || coprocessors.tools.asked.is_empty() {
            return Ok((core, trap, coprocessors.teacher));
        }
        if ticks <= tick {
            return Err(anyhow!("requests are under way after {ticks} runs of the program (--ticks)"));
        }
        let mut completed = Vec::new();
        while completed.is_empty() {
            completed = coprocessors.tools.host.poll(COMPLETIONS_MAX);
            if completed.is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let (first, room) = (map.base(Segment::ToolBus) as usize, map.size(Segment::ToolBus) as usize);
        let bus = first..first + room;
        coprocessors.tools.host.bus().mirror(&mut shared[bus.clone()]);
        for done in &completed {
            take(&mut coprocessors.tools, &mut shared, &bus, done);
        }
    }
    unreachable!("the loop ends by returning")
}

/// Writes a response where it was wanted, and its slot in the mirror.
fn take(slot: &mut BusSlot, shared: &mut [u64], bus: &Range<usize>, done: &Completed) {
    let Some(asked) = slot.asked.remove(&done.number) else { return };
    let place = slot.host.bus().channels().iter().position(|channel| channel.kind() == done.kind);
    if let (Some(place), Some(words)) = (place, shared.get_mut(bus.clone())) {
        mirror::write_end(words, place, done, (asked.input, asked.output));
    }
    // The buffer was looked at when the request went out; STATE and everything else is not written from outside.
    let place = (asked.output / 8) as usize;
    let Some(room) = shared.get_mut(place..place + (asked.capacity as usize).div_ceil(8)) else { return };
    for (word, bytes) in room.iter_mut().zip(done.response.chunks(8)) {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(eight);
    }
}
