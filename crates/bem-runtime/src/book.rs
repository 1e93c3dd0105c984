//! Which entries of the ledger follow from inputs: blocks of them, what was answered, and what changed.
//!
//! A block of inputs is one entry; the decisions that follow from it are another. What changes structure ends its block: the
//! tables of a new world, the patches of a round with their proofs, what acts from then on. Must not know whether entries are
//! written or compared: that is the [`Sink`]'s. Clauses: LOG-1, LOG-3, SCC-4; decisions D-16, D-67.

use crate::input::{Input, WorldIndex, WorldSpec, decode_all};
use crate::limits::BLOCK_INPUTS_MAX;
use crate::people::Note;
use crate::people::entries::{self, Earlier};
use crate::round::{Brought, Job};
use crate::service::{Effect, Service, ServiceConfig};
use bem_base::digest::{Digest, hash};
use bem_base::encode::Writer;
use bem_base::environment::Shape;
use bem_base::ids::{ObjectClass, ObjectId};
use bem_engine::chronicle::PatchNote;
pub use bem_engine::journal::entries::Sink;
use bem_engine::journal::entries::{Place, StoredPatch};
use bem_engine::offer::Policy;
use bem_engine::serving::{Choice, settings_of};
use bem_evolve::rebuild::{EXPERT_SLOTS, Twin};
use bem_ledger::LedgerError;
use bem_ledger::entry::{Entry, InputSource, PatchStatus, Table, TableEdit, ToolCall, event_code};
use bem_ledger::tables::Tables;
use bem_machine::config::GenesisConfig;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What follows from one input, for the ledger.
#[derive(Clone, Debug)]
pub enum Derived {
    /// Nothing but what later inputs show.
    Nothing,
    /// A decision.
    Decided(Choice),
    /// A new world, with the patches before its first step.
    Opened(WorldIndex, Vec<PatchNote>),
    /// A world is gone.
    Forgotten(WorldIndex),
    /// A round took effect.
    Published(Box<Published>),
    /// A request to a tool moved on.
    Tool(Box<ToolCall>),
}

/// What a round brought.
#[derive(Clone, Debug)]
pub struct Published {
    /// In which world.
    pub world: WorldIndex,
    /// What was decided about patches.
    pub patches: Vec<PatchNote>,
    /// The head of the learner's own chain.
    pub chain: Digest,
    /// Names what acts from now on.
    pub acting: Digest,
    /// What that is, in words.
    pub words: String,
    /// Steps learned from.
    pub steps: u64,
}

impl Published {
    /// What a round brought to a world as it is now.
    pub(crate) fn of(world: WorldIndex, brought: Brought, service: &Service) -> Published {
        let served = service.world(world).map(|world| &world.acting);
        Published {
            world,
            patches: brought.patches,
            chain: brought.chain,
            acting: served.map_or_else(Digest::default, |acting| acting.digest()),
            words: served.map_or_else(String::new, |acting| acting.in_force().words),
            steps: brought.steps,
        }
    }
}

/// An input with what follows from it.
#[derive(Clone, Debug)]
pub struct Line {
    /// The input.
    pub input: Input,
    /// What follows.
    pub derived: Derived,
    /// What it did to questions.
    pub people: Vec<Note>,
}

impl Line {
    /// What follows from an input that took effect, and the round that is to be worked on if one began.
    pub fn of(input: Input, effect: Effect, service: &Service) -> (Line, Option<Box<Job>>) {
        let mut job = None;
        let derived = match effect {
            Effect::Rewarded | Effect::People | Effect::Proposed | Effect::Published(_, None) => {
                Derived::Nothing
            }
            Effect::Decided(_, choice) => Derived::Decided(choice),
            Effect::Opened(world, notes) => Derived::Opened(world, notes),
            Effect::Forgotten(world) => Derived::Forgotten(world),
            Effect::Tool(call) => Derived::Tool(call),
            Effect::Began(begun) => {
                job = Some(begun);
                Derived::Nothing
            }
            Effect::Published(world, Some(round)) => {
                Derived::Published(Box::new(Published::of(world, round, service)))
            }
        };
        (Line { input, derived, people: service.moved().to_vec() }, job)
    }
}

/// What the entries of a service so far amount to: tables, worlds, counts.
#[derive(Clone, Debug)]
pub struct Book {
    pub(crate) config: ServiceConfig,
    pub(crate) tables: Tables,
    pub(crate) experts: BTreeMap<u32, Digest>,
    pub(crate) thresholds: BTreeMap<u32, Digest>,
    pub(crate) twins: BTreeMap<u16, Twin>,
    /// Worlds that there ever were.
    pub(crate) worlds: u16,
    /// The serial of the last patch.
    pub(crate) serial: u64,
    /// The number of the last input in a block that is closed.
    pub(crate) last: u64,
    block: Writer,
    answers: Writer,
    inputs: u64,
    decided: u64,
    /// What the inputs of the block did to questions.
    people: Vec<Note>,
    /// Structures before the latest patches of every world, which people may take back.
    pub(crate) earlier: Earlier,
    /// The worlds that are served, as they were declared.
    pub(crate) specs: BTreeMap<u16, WorldSpec>,
}

impl Book {
    /// Before the first entry.
    pub fn new(config: ServiceConfig) -> Book {
        Book {
            config,
            tables: Tables::new(),
            experts: BTreeMap::new(),
            thresholds: BTreeMap::new(),
            twins: BTreeMap::new(),
            worlds: 0,
            serial: 0,
            last: 0,
            block: Writer::new(),
            answers: Writer::new(),
            inputs: 0,
            decided: 0,
            people: Vec::new(),
            earlier: Earlier::default(),
            specs: BTreeMap::new(),
        }
    }

    fn parameters(&self) -> &Arc<GenesisConfig> {
        &self.config.parameters
    }

    /// The tables that a service begins with: parameters, and the configuration that genesis names.
    pub fn boot(&mut self, sink: &mut dyn Sink) -> Result<(), LedgerError> {
        let words = self.parameters().words();
        let work = words.iter().zip(0..).map(|(word, slot)| TableEdit {
            table: Table::Work,
            slot,
            leaf: hash(&word.to_le_bytes()),
        });
        let mut edits: Vec<TableEdit> = work.collect();
        edits.push(TableEdit { table: Table::Program, slot: 0, leaf: hash(&self.config.to_bytes()) });
        self.set_all(&edits);
        sink.append(&Entry::Tables { step: 0, edits, roots: self.tables.roots() })
    }

    pub(crate) fn set_all(&mut self, edits: &[TableEdit]) {
        for edit in edits {
            self.tables.set(edit);
            match edit.table {
                Table::Expert if edit.leaf == Digest::default() => drop(self.experts.remove(&edit.slot)),
                Table::Expert => drop(self.experts.insert(edit.slot, edit.leaf)),
                Table::Work => drop(self.thresholds.insert(edit.slot, edit.leaf)),
                Table::Teach | Table::Program => {}
            }
        }
    }

    /// What must change in EXPERT so that a world has these leaves there.
    pub(crate) fn expert_edits(&self, world: WorldIndex, leaves: &[Digest; EXPERT_SLOTS]) -> Vec<TableEdit> {
        let first = u32::from(world.0) * EXPERT_SLOTS as u32;
        let held = |slot: u32| self.experts.get(&slot).copied().unwrap_or_default();
        let edits = (first..).zip(leaves).filter(|(slot, leaf)| held(*slot) != **leaf);
        edits.map(|(slot, leaf)| TableEdit { table: Table::Expert, slot, leaf: *leaf }).collect()
    }

    /// The structure that a world begins with.
    fn boot_twin(&self, shape: &Shape) -> Result<Twin, String> {
        let settings = settings_of(self.parameters(), 0);
        let twin = Twin::boot(GenesisConfig::clone(&settings.config), shape);
        twin.map_err(|error| format!("no machine can hold the world: {error}"))
    }

    /// The circuit that the patches of a world have brought about; nothing where there were none.
    pub(crate) fn policy_in_force(&self, world: u16) -> Option<Policy> {
        let twin = self.twins.get(&world)?;
        let boot = self.boot_twin(twin.shape()).ok()?;
        (boot.leaves() != twin.leaves()).then(|| twin.frozen()).flatten()
    }

    /// A world is there: what must change in EXPERT.
    pub(crate) fn open_world(&mut self, spec: &WorldSpec) -> Result<Vec<TableEdit>, String> {
        let world = WorldIndex(self.worlds);
        let twin = self.boot_twin(&spec.shape)?;
        let edits = self.expert_edits(world, &twin.leaves());
        self.twins.insert(world.0, twin);
        self.specs.insert(world.0, spec.clone());
        self.worlds += 1;
        Ok(edits)
    }

    /// A world is gone: what must change in EXPERT.
    pub(crate) fn forget_world(&mut self, world: WorldIndex) -> Vec<TableEdit> {
        self.twins.remove(&world.0);
        self.specs.remove(&world.0);
        self.earlier.forget(world);
        self.expert_edits(world, &[Digest::default(); EXPERT_SLOTS])
    }

    /// Takes the next line; entries are made when a block is full or ends.
    pub fn take(&mut self, sink: &mut dyn Sink, line: &Line) -> Result<(), LedgerError> {
        line.input.encode(&mut self.block);
        self.inputs += 1;
        if let Derived::Decided(choice) = &line.derived {
            self.decided += 1;
            self.answers.u16(choice.action);
            self.answers.u16(choice.odds.to_raw());
            self.answers.u32(u32::try_from(choice.propensity.to_raw()).unwrap_or(u32::MAX));
        }
        self.people.extend(line.people.iter().cloned());
        if line.input.ends_block() || BLOCK_INPUTS_MAX as u64 <= self.inputs {
            self.close_block(sink)?;
        }
        let step = self.last;
        match &line.derived {
            Derived::Nothing | Derived::Decided(_) => Ok(()),
            Derived::Opened(world, notes) => {
                let Input::World(spec) = &line.input else { return Ok(()) };
                let edits = self.open_world(spec).expect("the service has opened it");
                self.change_tables(sink, step, edits)?;
                notes.iter().try_for_each(|note| self.patch(sink, *world, note))
            }
            Derived::Forgotten(world) => {
                let edits = self.forget_world(*world);
                self.change_tables(sink, step, edits)
            }
            Derived::Published(published) => self.publish(sink, published),
            Derived::Tool(call) => {
                let contents = match &line.input {
                    Input::ToolAsk(ask) => &ask.payload,
                    Input::ToolDone(done) => &done.response,
                    _ => return Ok(()),
                };
                if !contents.is_empty() {
                    sink.put_blob(contents)?;
                }
                sink.append(&Entry::ToolCall(call.clone()))
            }
        }
    }

    /// Makes entries of what waits.
    pub fn close_block(&mut self, sink: &mut dyn Sink) -> Result<(), LedgerError> {
        if self.inputs == 0 {
            return Ok(());
        }
        let payload = core::mem::take(&mut self.block).into_bytes();
        let answers = core::mem::take(&mut self.answers).into_bytes();
        let first = self.last + 1;
        self.last += core::mem::take(&mut self.inputs);
        let decided = core::mem::take(&mut self.decided);
        sink.append(&Entry::Input { step: first, source: InputSource::Environment, payload })?;
        if 0 < decided {
            let (step, values) = (self.last, vec![decided as i64]);
            sink.append(&Entry::Event { step, code: event_code::SERVED, values, payload: answers })?;
        }
        for note in core::mem::take(&mut self.people) {
            match note {
                Note::Published(published) => self.publish(sink, &published)?,
                other => entries::append(sink, &other)?,
            }
        }
        Ok(())
    }

    pub(crate) fn change_tables(
        &mut self,
        sink: &mut dyn Sink,
        step: u64,
        edits: Vec<TableEdit>,
    ) -> Result<(), LedgerError> {
        self.set_all(&edits);
        sink.append(&Entry::Tables { step, edits, roots: self.tables.roots() })
    }

    fn publish(&mut self, sink: &mut dyn Sink, published: &Published) -> Result<(), LedgerError> {
        let Published { world, patches, chain, acting, words, steps } = published;
        patches.iter().try_for_each(|note| self.patch(sink, *world, note))?;
        let applied = patches.iter().filter(|note| note.accepted).count() as i64;
        let mut payload = Writer::new();
        payload.raw(chain.as_bytes());
        payload.raw(acting.as_bytes());
        payload.text(words);
        sink.append(&Entry::Event {
            step: self.last,
            code: event_code::PUBLISHED,
            values: vec![i64::from(world.0), *steps as i64, applied, patches.len() as i64 - applied],
            payload: payload.into_bytes(),
        })
    }

    fn patch(&mut self, sink: &mut dyn Sink, world: WorldIndex, note: &PatchNote) -> Result<(), LedgerError> {
        let stored = StoredPatch::store(sink, note)?;
        self.serial += 1;
        let roots_before = self.tables.roots();
        let leaves = self.twins.get_mut(&world.0).and_then(|twin| self.earlier.follow(world, twin, note));
        let edits = leaves.map_or_else(Vec::new, |leaves| self.expert_edits(world, &leaves));
        self.set_all(&edits);
        sink.append(&stored.at(Place {
            serial: self.serial,
            target: target_of(world),
            roots_before,
            roots_after: self.tables.roots(),
            edits,
        }))?;
        self.threshold(sink, world, note)
    }

    /// The score that the next patch must reach moves with every decision; where it did, WORK says so.
    fn threshold(
        &mut self,
        sink: &mut dyn Sink,
        world: WorldIndex,
        note: &PatchNote,
    ) -> Result<(), LedgerError> {
        let slot = self.parameters().words().len() as u32 + u32::from(world.0);
        let leaf = hash(&note.threshold.to_le_bytes());
        if self.thresholds.get(&slot) == Some(&leaf) {
            return Ok(());
        }
        self.change_tables(sink, note.step, vec![TableEdit { table: Table::Work, slot, leaf }])
    }

    /// Takes in an entry that is recorded before the place where the service goes on: it was written by a book, and is
    /// audited elsewhere.
    pub(crate) fn follow(
        &mut self,
        entry: &Entry,
        read: &mut dyn FnMut(&Digest) -> Result<Vec<u8>, LedgerError>,
    ) -> Result<(), LedgerError> {
        let unreadable = |reason: String| LedgerError::NotALedger(format!("a service's history: {reason}"));
        match entry {
            Entry::Tables { edits, .. } => self.set_all(edits),
            Entry::Input { payload, .. } => {
                let inputs = decode_all(payload).map_err(|error| unreadable(error.to_string()))?;
                self.last += inputs.len() as u64;
                for input in inputs {
                    match input {
                        Input::World(spec) => drop(self.open_world(&spec).map_err(unreadable)?),
                        Input::Forget { world } => drop(self.forget_world(world)),
                        _ => {}
                    }
                }
            }
            Entry::Patch(patch) => {
                self.serial = patch.serial;
                self.set_all(&patch.edits);
                let world = world_of(patch.target).unwrap_or(WorldIndex(u16::MAX));
                let Some(twin) = self.twins.get_mut(&world.0) else { return Ok(()) };
                let failed = |error: &dyn core::fmt::Display| unreadable(format!("a patch: {error}"));
                match patch.status {
                    PatchStatus::Applied => {
                        self.earlier.keep(world, twin);
                        let bytes = read(&patch.payload)?;
                        let payload = bem_engine::payload::Payload::from_bytes(&bytes);
                        let accepted = payload.map_err(|error| failed(&error))?.accepted;
                        let (patch, _) = accepted.ok_or_else(|| failed(&"its payload is empty"))?;
                        twin.follow(&patch).map_err(|error| failed(&error))?;
                    }
                    PatchStatus::RolledBack => {
                        let kind = bem_evolve::patch::PatchKind::ALL[patch.kind as usize];
                        self.earlier.take_back(world, twin, kind).map_err(|error| failed(&error))?;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The name of a world in a patch.
pub(crate) fn target_of(world: WorldIndex) -> ObjectId {
    ObjectId::sharded(ObjectClass::TaskFamily, 0, world.0)
}

/// The world that a patch is about.
pub(crate) fn world_of(target: ObjectId) -> Option<WorldIndex> {
    (0..crate::limits::WORLDS_MAX as u16).map(WorldIndex).find(|world| target_of(*world) == target)
}
