//! What the entries of a service's history must be, worked out again without its learner: for `bem verify`.
//!
//! Numbers of inputs go on without gaps, tables follow from worlds and patches, and the condition of every patch is stated
//! again against the structure that the patches before it have left. That decisions follow from inputs is for a replay to show.
//! Clauses: LOG-2, LOG-3, SCC-3, SCC-4; decision D-48.

use crate::base::{BaseState, is_anew, restored_state};
use crate::book::{Book, world_of};
use crate::input::{Input, decode_all};
use crate::people::entries::Lifecycle;
use crate::service::ServiceConfig;
use crate::tools::Tools;
use bem_base::digest::Digest;
use bem_base::encode::Writer;
use bem_engine::journal::entries::Kept;
use bem_engine::payload::Payload;
use bem_evolve::patch::PatchKind;
use bem_evolve::rebuild::Restated;
use bem_ledger::archive::Archived;
use bem_ledger::audit::{Conditions, Rebuilt};
use bem_ledger::entry::{Entry, PatchEvent, PatchStatus, Table, TableEdit, ToolCall, event_code};
use std::collections::VecDeque;

/// Reads a blob of the history by its digest.
type Read<'r> = dyn FnMut(&Digest) -> Result<Vec<u8>, String> + 'r;

/// States again what a service's patches had to prove.
#[derive(Default)]
pub struct ServiceConditions {
    book: Option<Book>,
    is_booted: bool,
    /// Changes of tables that must come next.
    due: VecDeque<Vec<TableEdit>>,
    /// Decisions of the last block of inputs that are not answered yet.
    unanswered: u64,
    /// The lifecycle of questions.
    questions: Lifecycle,
    /// Requests to tools.
    tools: Tools,
    /// What must be said of them next.
    calls: VecDeque<ToolCall>,
}

impl Conditions for ServiceConditions {
    fn rebuild(&mut self, entry: &Entry, read: &mut Read<'_>) -> Result<Rebuilt, String> {
        let is_answer = matches!(entry, Entry::Event { code: event_code::SERVED, .. });
        if 0 < self.unanswered && !is_answer {
            return Err("decisions were asked for and not answered".to_string());
        }
        let restated = match entry {
            Entry::Genesis(genesis) => {
                let bytes = read(&genesis.configuration).map_err(|why| format!("CFG: {why}"))?;
                let config = ServiceConfig::from_bytes(&bytes).map_err(|error| format!("CFG: {error}"))?;
                self.book = Some(Book::new(config));
                Restated::default()
            }
            Entry::Tables { edits, .. } => self.take_tables(entry, edits)?,
            Entry::Input { step, payload, .. } => self.take_inputs(*step, payload)?,
            Entry::Event { code: event_code::SERVED, values, payload, .. } => {
                let answered = core::mem::take(&mut self.unanswered);
                if values[..] != [answered as i64] || payload.len() as u64 != 8 * answered {
                    return Err("the answers are not those of the inputs before".to_string());
                }
                Restated::default()
            }
            Entry::Patch(patch) => self.take_patch(patch, read)?,
            Entry::Event { code: event_code::RESTORED, .. } => self.take_restored(entry, read)?,
            Entry::Event { code: event_code::ARCHIVED, .. } => self.take_archived(entry, read)?,
            Entry::ToolCall(call) => self.take_call(call)?,
            Entry::Event { code: event_code::PUBLISHED | event_code::ARTEFACT, .. }
            | Entry::Snapshot { .. } => Restated::default(),
            Entry::HumanTask(task) => {
                self.questions.take(task)?;
                Restated::default()
            }
            Entry::Event { code: event_code::PEOPLE, values, payload, .. } => {
                self.questions.take_change(values, payload)?;
                Restated::default()
            }
            _ => return Err("an entry that no service writes".to_string()),
        };
        Ok(Rebuilt { formulas: restated.formulas, checks: restated.checks })
    }

    fn resume(&mut self, state: &[u8]) -> Result<Vec<TableEdit>, String> {
        let config = self.book()?.config.clone();
        let book = self.take_up(state, config)?;
        let edits = book.table_edits();
        (self.book, self.unanswered) = (Some(book), 0);
        self.due.clear();
        Ok(edits)
    }
}

impl ServiceConditions {
    /// For a history from genesis on.
    pub fn new() -> ServiceConditions {
        ServiceConditions::default()
    }

    fn book(&mut self) -> Result<&mut Book, String> {
        self.book.as_mut().ok_or_else(|| "an entry before genesis".to_string())
    }

    /// Goes on from a saved state: the book of it, and what tools and people had under way there.
    fn take_up(&mut self, state: &[u8], config: ServiceConfig) -> Result<Book, String> {
        let wrong = |error: &dyn core::fmt::Display| format!("the saved state: {error}");
        let state = BaseState::from_bytes(state).map_err(|error| wrong(&error))?;
        let service = state.service().map_err(|error| wrong(&error))?;
        self.tools = service.tools().clone();
        self.questions = Lifecycle::after(&service.people);
        self.calls.clear();
        let mut book = state.book(config).map_err(|error| wrong(&error))?;
        book.specs = service.specs();
        match state.worlds.is_none_or(|worlds| worlds == book.specs) {
            true => Ok(book),
            false => Err("the saved state names other worlds than it holds".to_string()),
        }
    }

    /// A history that begins with a saved state: its tables come next. That the state is what the old history amounted to, the old
    /// history shows.
    fn take_restored(&mut self, entry: &Entry, read: &mut Read<'_>) -> Result<Restated, String> {
        let book = self.book()?;
        if book.last != 0 || book.worlds != 0 || !self.is_booted {
            return Err("a history is restored in its middle".to_string());
        }
        // One that begins anew takes no state along: what was carried over is among its inputs.
        if is_anew(entry) {
            return Ok(Restated::default());
        }
        let state = restored_state(entry).ok_or("a restored state that is not named")?;
        let bytes = read(&state).map_err(|why| format!("the saved state: {why}"))?;
        let config = self.book()?.config.clone();
        let book = self.take_up(&bytes, config)?;
        self.due.extend(book.edits_in_parts());
        self.book = Some(book);
        Ok(Restated::default())
    }

    /// Segments are archived: the state that is saved with that must be what the entries before amount to.
    fn take_archived(&mut self, entry: &Entry, read: &mut Read<'_>) -> Result<Restated, String> {
        let archived = Archived::of(entry).ok_or("an entry about an archive that cannot be read")?;
        let bytes = read(&archived.state).map_err(|why| format!("the saved state: {why}"))?;
        let state = BaseState::from_bytes(&bytes).map_err(|error| format!("the saved state: {error}"))?;
        let mut writer = Writer::new();
        let book = self.book()?;
        book.encode_state(&mut writer);
        let is_named = state.worlds.as_ref().is_none_or(|worlds| *worlds == book.specs);
        match is_named && writer.as_bytes() == state.book {
            true => Ok(Restated { formulas: Vec::new(), checks: 1 }),
            false => Err("the saved state is not what the entries before it amount to".to_string()),
        }
    }

    fn take_tables(&mut self, entry: &Entry, edits: &[TableEdit]) -> Result<Restated, String> {
        if !core::mem::replace(&mut self.is_booted, true) {
            let mut kept = Kept::default();
            self.book()?.boot(&mut kept).map_err(|error| error.to_string())?;
            return match kept.0.as_ref() == Some(entry) {
                true => Ok(Restated::default()),
                false => Err("the tables at the start do not follow from the configuration".to_string()),
            };
        }
        match self.due.pop_front() {
            Some(due) if due != edits => {
                return Err("EXPERT does not show the worlds that are served".to_string());
            }
            None if edits.iter().any(|edit| edit.table != Table::Work) => {
                return Err("tables change without a world or a patch".to_string());
            }
            _ => {}
        }
        self.book()?.set_all(edits);
        Ok(Restated::default())
    }

    fn take_inputs(&mut self, step: u64, payload: &[u8]) -> Result<Restated, String> {
        if !self.due.is_empty() {
            return Err("EXPERT does not show the worlds that are served".to_string());
        }
        if !self.calls.is_empty() {
            return Err("a request to a tool has no entry".to_string());
        }
        let inputs = decode_all(payload).map_err(|error| format!("inputs: {error}"))?;
        let book = self.book.as_mut().ok_or_else(|| "an entry before genesis".to_string())?;
        if step != book.last + 1 || inputs.is_empty() {
            return Err(format!("inputs go on at {step}, where {} comes next", book.last + 1));
        }
        book.last += inputs.len() as u64;
        let (mut due, mut asked) = (Vec::new(), 0);
        for (number, input) in (step..).zip(&inputs) {
            match input {
                Input::ToolAsk(ask) => self.calls.push_back(self.tools.ask(number, ask)?),
                Input::ToolDone(done) => self.calls.push_back(self.tools.end(number, done)?),
                Input::World(spec) => due.push(book.open_world(spec)?),
                Input::Forget { world } => due.push(book.forget_world(*world)),
                Input::Decide { .. } => asked += 1,
                Input::Propose(proposed) if number <= proposed.request => {
                    return Err(format!(
                        "input {number} proposes what request {} had not brought",
                        proposed.request
                    ));
                }
                _ => {}
            }
        }
        self.due.extend(due);
        self.unanswered = asked;
        Ok(Restated::default())
    }

    /// An entry about a request says what the input before it says.
    fn take_call(&mut self, call: &ToolCall) -> Result<Restated, String> {
        match self.calls.pop_front() {
            Some(due) if due == *call => Ok(Restated::default()),
            _ => Err("an entry about a tool that no input before it says".to_string()),
        }
    }

    fn take_patch(&mut self, event: &PatchEvent, read: &mut Read<'_>) -> Result<Restated, String> {
        if !self.due.is_empty() {
            return Err("EXPERT does not show the worlds that are served".to_string());
        }
        let book = self.book()?;
        if event.serial != book.serial + 1 {
            return Err(format!("patch {} follows patch {}", event.serial, book.serial));
        }
        let world = world_of(event.target).ok_or("the patch is about no world")?;
        let twin = book.twins.get_mut(&world.0).ok_or("a patch in a world that is not served")?;
        let kind = PatchKind::ALL[event.kind as usize];
        let restated = match event.status {
            PatchStatus::Applied => {
                let bytes = read(&event.payload).map_err(|why| format!("the patch: {why}"))?;
                let payload = Payload::from_bytes(&bytes).map_err(|error| format!("the patch: {error}"))?;
                let (patch, shape) = payload.accepted.ok_or("a patch in force whose payload holds none")?;
                if patch.kind() as u8 != event.kind as u8
                    || payload.evidence.lower_bound.to_raw() != event.score
                {
                    return Err("the entry says another kind or score than the patch".to_string());
                }
                if *twin.shape() != shape {
                    return Err("the patch was made for another world".to_string());
                }
                book.earlier.keep(world, twin);
                let restated = twin.restate(&patch);
                let restated = restated.map_err(|error| format!("the condition of the patch: {error}"))?;
                twin.follow(&patch).map_err(|error| format!("the patch: {error}"))?;
                restated
            }
            PatchStatus::RolledBack => {
                if !book.earlier.take_back(world, twin, kind).map_err(|error| error.to_string())? {
                    return Err("a patch is taken back that is not the latest in force".to_string());
                }
                Restated::default()
            }
            PatchStatus::Rejected => Restated::default(),
            PatchStatus::Pending | PatchStatus::Verified => {
                return Err("a service writes down decisions, not what waits".to_string());
            }
        };
        let edits = match event.status {
            PatchStatus::Rejected => Vec::new(),
            _ => {
                let leaves = twin.leaves();
                book.expert_edits(world, &leaves)
            }
        };
        if event.edits != edits {
            return Err("the tables after the patch do not follow from it".to_string());
        }
        book.set_all(&edits);
        book.serial = event.serial;
        Ok(restated)
    }
}
