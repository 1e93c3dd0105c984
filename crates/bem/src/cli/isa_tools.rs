//! `bem exec --tools`: a program of the control core with a tool bus, barrier by barrier.
//!
//! The program runs to its end, as a routine of the mid-path does; then the barrier takes completed requests in slot order,
//! writes their responses where they were wanted, and the program runs again with the same memory. WORK tells it where the
//! catalog, the mirror of the bus and ENV are. Clauses: ISA-4, TOOL-2; decision D-75.

use super::isa_record::{Record, Teaching};
use anyhow::{Result, anyhow};
use bem_base::ids::ObjectId;
use bem_isa::coprocessor::{Host as Coprocessors, ToolDescriptor, ToolSlot};
use bem_isa::interpreter::Core;
use bem_isa::program::Program;
use bem_isa::tool_memory::ToolMemory;
use bem_isa::trap::Trap;
use bem_machine::config::GenesisConfig;
use bem_prover::Budget;
use bem_tools::bus::{Request, key};
use bem_tools::error::Refused;
use bem_tools::limits::COMPLETIONS_MAX;
use bem_workers::catalog_file::CatalogFile;
use bem_workers::host::{Host, HostOptions, PATIENCE};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

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
    let mut seen = ToolMemory::new(&GenesisConfig::default(), &catalog.catalog)?;
    let host = Host::start(catalog, &HostOptions { has_commands: false, ..HostOptions::default() })?;
    let slot = BusSlot { host, number: 0, asked: BTreeMap::new() };
    let mut coprocessors = Coprocessors::with_slots(Budget::DEFAULT.conflicts, Teaching::new(seed), slot);
    for tick in 1.. {
        let mut core = Core::new(program, seed, seen.starts());
        let trap = core.run(program, &mut seen.memory(), &mut coprocessors, steps).err();
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
        let BusSlot { host, asked, .. } = &mut coprocessors.tools;
        seen.barrier(host.bus(), &completed, |number| asked.get(&number).copied());
        for done in &completed {
            asked.remove(&done.number);
        }
    }
    unreachable!("the loop ends by returning")
}
