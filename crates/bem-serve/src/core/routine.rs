//! A routine of the mid-path: a program of the control core that a service runs over its SHARED, at barriers.
//!
//! It runs when the service starts, and again at each barrier at which something that it asked has ended, with the same memory:
//! it finds resources in CATALOG, slots in TOOL_BUS and responses where it wanted them. Each request is an input like one by
//! hand, so that a history is played again without the program. It may only read: such a request goes out before it is
//! durable, and nothing outside changes by it. What it logs is shown and not kept. Must not know HTTP.
//! Clauses: ISA-4, TOOL-2, TOOL-10; decision D-201.

use super::Decider;
use super::tools::Tooling;
use bem_base::ids::ObjectId;
use bem_isa::coprocessor::{Declining, Host as Coprocessors, ToolDescriptor, ToolSlot};
use bem_isa::interpreter::Core;
use bem_isa::program::Program;
use bem_runtime::input::Input;
use bem_runtime::tools::ToolAsk;
use bem_tools::bus::{Completed, Request, key};
use bem_tools::catalog::Catalog;
use bem_tools::error::Refused;
use bem_tools::operation::{Role, by_code, db_flag};
use bem_workers::host::{Host, PATIENCE};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Instructions of one run: a barrier must not be held up.
const INSTRUCTIONS_MAX: u64 = 20_000;
/// Lines of its log that are shown.
const LINES_SHOWN: usize = 16;

/// The program with what it waits for and what came of its last run.
pub struct Routine {
    program: Program,
    /// What it asked and has not been answered.
    asked: BTreeMap<u64, ToolDescriptor>,
    runs: u64,
    executed: u64,
    registers: Vec<u64>,
    trap: Option<String>,
    lines: Vec<Vec<u64>>,
}

impl Routine {
    /// A program that has not run yet.
    pub fn new(program: Program) -> Routine {
        let (asked, registers, lines) = (BTreeMap::new(), Vec::new(), Vec::new());
        Routine { program, asked, runs: 0, executed: 0, registers, trap: None, lines }
    }

    /// What a request of its own wanted.
    pub fn asked(&self, number: u64) -> Option<ToolDescriptor> {
        self.asked.get(&number).copied()
    }

    /// Takes note of what has ended; whether something of its own has.
    fn heard(&mut self, completed: &[Completed]) -> bool {
        let before = self.asked.len();
        for done in completed {
            self.asked.remove(&done.number);
        }
        self.asked.len() < before
    }

    /// What it did, for whoever looks.
    pub fn shown(&self) -> Value {
        let words = |words: &[u64]| words.iter().map(|word| json!(format!("{word:#x}"))).collect::<Vec<_>>();
        let lines = self.lines.iter().rev().take(LINES_SHOWN).rev();
        let lines: Vec<_> = lines.map(|line| words(&line[..line.len().min(LINES_SHOWN)])).collect();
        json!({ "runs": self.runs, "instructions": self.executed, "under_way": self.asked.len(), "trap": self.trap,
            "x": words(&self.registers), "logged": lines })
    }
}

/// Whether a request changes nothing outside. What no tool knows changes nothing either: the bus answers with an error.
fn only_reads(catalog: &Catalog, kind: ObjectId, operation: u16, flags: u16) -> bool {
    match catalog.role(kind) {
        Some(Role::Database) if operation == 0 => flags & db_flag::READ_ONLY != 0,
        Some(Role::Custom) | None => false,
        Some(role) => by_code(role, operation).is_none_or(|operation| !operation.writes),
    }
}

/// The bus as a routine of a service sees it.
struct Slot<'a> {
    host: &'a mut Host,
    /// The number of the next input.
    next: u64,
    issued: Vec<(ToolDescriptor, ToolAsk)>,
}

impl ToolSlot for Slot<'_> {
    fn enqueue(&mut self, asked: &ToolDescriptor, payload: &[u8]) -> Result<u16, Refused> {
        let tool = ObjectId::from_word(asked.tool).map_err(|_| Refused::UnknownKind)?;
        let resource = ObjectId::from_word(asked.resource).map_err(|_| Refused::BadResource)?;
        let catalog = &self.host.catalog().catalog;
        catalog.kind(tool).ok_or(Refused::UnknownKind)?;
        let ToolDescriptor { operation, flags, capacity, .. } = *asked;
        if !only_reads(catalog, tool, operation, flags) {
            return Err(Refused::NotARead);
        }
        if catalog.is_sensitive(resource) {
            return Err(Refused::Sensitive);
        }
        let is_idempotent = catalog.is_idempotent(tool, operation, flags);
        let request = Request {
            operation,
            flags,
            resource,
            payload,
            capacity,
            number: self.next,
            key: key(self.next, payload),
            is_idempotent,
            lease: 0,
            patience: PATIENCE,
        };
        let slot = self.host.enqueue(tool, &request)?;
        self.next += 1;
        let (is_sensitive, task, payload) = (false, 0, payload.to_vec());
        let ask = ToolAsk {
            tool,
            operation,
            flags,
            resource,
            capacity,
            is_idempotent,
            is_sensitive,
            task,
            payload,
        };
        self.issued.push((*asked, ask));
        Ok(slot)
    }
}

impl Decider {
    /// Runs the routine if there is one that has not trapped; `completed` is what has ended at this barrier.
    pub(super) fn run_routine(&mut self, completed: Option<&[Completed]>) {
        let next = self.service.last() + 1;
        let Some(Tooling { host, memory, routine: Some(routine), .. }) = &mut self.tooling else { return };
        let is_due = completed.is_none_or(|completed| routine.heard(completed));
        if !is_due || routine.trap.is_some() {
            return;
        }
        let slot = Slot { host, next, issued: Vec::new() };
        let mut coprocessors = Coprocessors::with_slots(0, Declining::default(), slot);
        let mut core = Core::new(&routine.program, routine.runs, memory.starts());
        let ran = core.run(&routine.program, &mut memory.memory(), &mut coprocessors, INSTRUCTIONS_MAX);
        routine.trap = ran.err().map(|trap| trap.to_string());
        routine.runs += 1;
        routine.executed += core.executed;
        routine.registers = core.x.to_vec();
        routine.lines = coprocessors.log().to_vec();
        let issued = coprocessors.tools.issued;
        for (number, (asked, _)) in (next..).zip(&issued) {
            routine.asked.insert(number, *asked);
        }
        for (number, (_, ask)) in (next..).zip(issued) {
            let (applied, _) = self.apply(Input::ToolAsk(Box::new(ask)), None);
            debug_assert_eq!(applied, number, "nothing came between");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_tools::operation::OPERATIONS;

    #[test]
    fn the_version_in_snapshots_is_that_of_the_layer() {
        assert_eq!(bem_runtime::tools::LAYER, bem_tools::VERSION_WORD);
    }

    #[test]
    fn a_routine_may_ask_for_what_changes_nothing() {
        let mut catalog = Catalog::new();
        let own = catalog.add_kind("own", Role::Custom, Vec::new()).unwrap();
        for operation in OPERATIONS {
            let kind = catalog.find(operation.role.name()).unwrap();
            assert_eq!(
                only_reads(&catalog, kind, operation.code, 0),
                !operation.writes,
                "{}",
                operation.name
            );
        }
        let database = catalog.find("db").unwrap();
        assert!(only_reads(&catalog, database, 0, db_flag::READ_ONLY));
        assert!(only_reads(&catalog, database, 99, 0), "nobody serves it");
        assert!(!only_reads(&catalog, own, 0, 0), "nobody knows what a user's tool does");
    }
}
