//! What the entries of a climb's ledger amount to, and which entries a unit of work makes.
//!
//! The tables EXPERT, TEACH, WORK and CFG are kept as the entries leave them, so that every entry carries their roots.
//! Must not know whether entries are written or compared: that is the [`Sink`]'s. Clauses: LOG-1, LOG-3, SCC-4;
//! decision D-308.

use super::entries::{Place, Sink, StoredPatch, structure_after};
use crate::chronicle::{Chronicle, EpisodeNote, Happening, PatchNote, ResetNote, StepSample};
use crate::climb::practice::Programs;
use crate::climb::{Climb, Purpose, Track, Unit, UnitBegin, UnitResult};
use crate::learner::{Barriers, Scheduled};
use crate::payload::Payload;
use bem_base::digest::{Digest, hash, hash_parts};
use bem_base::encode::Writer;
use bem_base::environment::Shape;
use bem_base::ids::{ObjectClass, ObjectId};
use bem_evolve::patch::{Change, Patch};
use bem_evolve::rebuild::{EXPERT_SLOTS, Twin};
use bem_ledger::LedgerError;
use bem_ledger::entry::{
    Entry, PatchEvent, PatchKind, PatchStatus, Proven, ResetCause, StepBlock, Table, TableEdit, UnitEnd,
    event_code,
};
use bem_ledger::log::read_blob;
use bem_ledger::reader::EntryReader;
use bem_ledger::store::Store;
use bem_ledger::tables::Tables;
use bem_machine::config::GenesisConfig;
use bem_machine::machine::MachineError;
use core::ops::Range;
use std::collections::BTreeMap;

/// What the entries of a climb so far amount to: tables and counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    pub(super) tables: Tables,
    /// Patches so far.
    pub(super) serial: u64,
    /// Units so far.
    pub(super) units: u64,
    /// Slots of TEACH in use.
    pub(super) teach_slots: u32,
    /// Templates of each family's teacher that TEACH holds.
    templates: BTreeMap<usize, usize>,
    /// What stands in each slot of EXPERT that is taken.
    experts: BTreeMap<u32, Digest>,
    /// What stands in each slot of WORK after the parameters: the score that a family's next patch must reach.
    thresholds: BTreeMap<u32, Digest>,
    /// Words of the configuration in force: the slots of WORK before the thresholds.
    parameters: u32,
    /// The structure of each family's part of the machine.
    pub(super) twins: BTreeMap<usize, Twin>,
    /// Happenings of a unit that has begun and not ended, as far as they are written; nothing between two units.
    pub(super) open: Option<u64>,
}

/// The unit that happenings are of.
#[derive(Clone, Copy, Debug)]
pub struct UnderWay<'a> {
    /// The unit.
    pub unit: &'a Unit,
    /// The seed of its instance.
    pub seed: u64,
    /// The shape of its worlds.
    pub shape: &'a Shape,
}

impl Book {
    /// Derives the state from the first `count` entries; the climb stands at the same point.
    pub(super) fn read<S: Store>(store: &mut S, count: u64, climb: &Climb) -> Result<Book, LedgerError> {
        let templates = climb.tracks().iter().map(Track::templates).enumerate().collect();
        let parameters = climb.config().parameters.words().len() as u32;
        let twins = twins_of(climb);
        let mut book = Book { templates, parameters, twins, ..Book::default() };
        entries_of(store, 0..count, |_, entry| {
            book.take(&entry);
            Ok(())
        })?;
        Ok(book)
    }

    /// An entry of a unit that the climb has taken in, or of none.
    fn take(&mut self, entry: &Entry) {
        match entry {
            Entry::Patch(patch) => {
                self.set_all(&patch.edits);
                self.serial = patch.serial;
            }
            Entry::Tables { edits, .. } => self.set_all(edits),
            Entry::Event { code: event_code::UNIT_END, .. } => self.units += 1,
            _ => {}
        }
    }

    /// The same after the entries of a unit that goes on, from its begin on.
    pub(super) fn with_unit<S: Store>(
        mut self,
        store: &mut S,
        entries: Range<u64>,
        climb: &Climb,
    ) -> Result<Book, LedgerError> {
        let mut patches = Vec::new();
        let mut track = 0;
        entries_of(store, entries, |index, entry| {
            let broken = |reason: String| LedgerError::Broken { entry: index, reason };
            match &entry {
                Entry::Event { code: event_code::UNIT_BEGIN, payload, .. } => {
                    let begin = UnitBegin::from_bytes(payload).map_err(|error| broken(error.to_string()))?;
                    track = begin.unit.track;
                    let begun = self.begin_world(track, &climb.config().parameters, &begin.shape);
                    begun.map_err(|error| broken(error.to_string()))?;
                    self.open = Some(0);
                }
                Entry::Patch(patch) => patches.push((index, patch.kind, patch.status, patch.payload)),
                _ => {}
            }
            self.take(&entry);
            self.open = self.open.map(|written| written + u64::from(is_happening(&entry)));
            Ok(())
        })?;
        for (index, kind, status, payload) in patches {
            let broken = |reason: String| LedgerError::Broken { entry: index, reason };
            let twin =
                self.twins.get_mut(&track).ok_or_else(|| broken("a patch outside a unit".to_string()))?;
            follow(store, twin, (kind, status, &payload)).map_err(broken)?;
        }
        Ok(self)
    }

    pub(super) fn set_all(&mut self, edits: &[TableEdit]) {
        for edit in edits {
            self.tables.set(edit);
            match edit.table {
                Table::Teach => self.teach_slots = self.teach_slots.max(edit.slot + 1),
                Table::Expert if edit.leaf == Digest::default() => drop(self.experts.remove(&edit.slot)),
                Table::Expert => drop(self.experts.insert(edit.slot, edit.leaf)),
                Table::Work => drop(self.thresholds.insert(edit.slot, edit.leaf)),
                Table::Program => {}
            }
        }
    }

    /// Templates that the family's teacher has and TEACH has not.
    fn new_templates(&mut self, track: usize, climb: &Climb) -> Vec<Digest> {
        let family = &climb.tracks()[track];
        let known = self.templates.insert(track, family.templates()).unwrap_or(0);
        let tasks = (known..family.templates()).filter_map(|index| family.template(index));
        tasks.map(|task| hash(task.as_bytes())).collect()
    }

    /// Templates in the next slots of TEACH.
    fn teach_edits(&self, leaves: &[Digest]) -> Vec<TableEdit> {
        let edit = |(leaf, slot): (&Digest, u32)| TableEdit { table: Table::Teach, slot, leaf: *leaf };
        leaves.iter().zip(self.teach_slots..).map(edit).collect()
    }

    /// What must change in EXPERT so that a family has these leaves there.
    pub(super) fn expert_edits(&self, track: usize, leaves: &[Digest; EXPERT_SLOTS]) -> Vec<TableEdit> {
        let first = (track * EXPERT_SLOTS) as u32;
        let held = |slot: u32| self.experts.get(&slot).copied().unwrap_or_default();
        let edits = (first..).zip(leaves).filter(|(slot, leaf)| held(*slot) != **leaf);
        edits.map(|(slot, leaf)| TableEdit { table: Table::Expert, slot, leaf: *leaf }).collect()
    }

    /// A unit begins in worlds of this shape: what must change in EXPERT so that it shows the family that is taken up.
    pub(super) fn begin_world(
        &mut self,
        track: usize,
        config: &GenesisConfig,
        shape: &Shape,
    ) -> Result<Vec<TableEdit>, MachineError> {
        match self.twins.get_mut(&track) {
            Some(twin) => twin.begin(shape)?,
            None => drop(self.twins.insert(track, Twin::boot(config.clone(), shape)?)),
        }
        Ok(self.expert_edits(track, &self.twins[&track].leaves()))
    }

    /// The tables a climb begins with: parameters, tasks and what it is played from, and the machine that it brings along.
    pub(super) fn boot(&mut self, sink: &mut impl Sink, climb: &Climb) -> Result<(), LedgerError> {
        let mut edits = Vec::new();
        for (place, track) in climb.tracks().iter().enumerate() {
            for (stage, task) in track.tasks().iter().enumerate() {
                let slot = (place * bem_teacher::ladder::STAGES_MAX + stage) as u32;
                edits.push(TableEdit { table: Table::Teach, slot, leaf: hash(task.as_bytes()) });
            }
        }
        let words = climb.config().parameters.words();
        self.parameters = words.len() as u32;
        edits.extend(words.iter().zip(0..).map(|(word, slot)| TableEdit {
            table: Table::Work,
            slot,
            leaf: hash(&word.to_le_bytes()),
        }));
        // What the history is played from, frozen: the configuration that genesis names, and the files of worlds.
        let frozen = core::iter::once(hash(&climb.snapshot())).chain(climb.files().iter().copied());
        edits.extend(frozen.zip(0..).map(|(leaf, slot)| TableEdit { table: Table::Program, slot, leaf }));
        self.set_all(&edits);
        self.twins = twins_of(climb);
        for (track, twin) in self.twins.clone() {
            let brought = self.expert_edits(track, &twin.leaves());
            self.set_all(&brought);
            edits.extend(brought);
        }
        // A climb that comes from elsewhere brings its teachers along.
        for track in 0..climb.tracks().len() {
            let new = self.new_templates(track, climb);
            let brought = self.teach_edits(&new);
            self.set_all(&brought);
            edits.extend(brought);
        }
        edits.sort_by_key(|edit| (edit.table, edit.slot));
        sink.append(&Entry::Tables { step: climb.steps(), edits, roots: self.tables.roots() })
    }

    /// The programs of the control core that say what is practised, with the proof of the one that chooses. They are written
    /// once, before the first unit; a run over one task has none.
    pub(super) fn programs(&mut self, sink: &mut impl Sink, climb: &Climb) -> Result<(), LedgerError> {
        if climb.config().stages == 1 {
            return Ok(());
        }
        let known = Programs::get();
        let mut programs = Vec::new();
        for bytes in known.bytes() {
            programs.push(sink.put_blob(&bytes)?);
        }
        let mut certificates = Vec::new();
        for (formula, proof) in known.proofs() {
            certificates.push((sink.put_blob(formula)?, sink.put_blob(proof)?));
        }
        let (step, values) = (climb.steps(), vec![certificates.len() as i64]);
        let payload = Proven { programs, certificates }.to_bytes();
        sink.append(&Entry::Event { step, code: event_code::PROVEN, values, payload })
    }

    /// What a program of the control core asked for, if the unit answers it.
    fn asked(
        sink: &mut impl Sink,
        (unit, seed): (&Unit, u64),
        climb: &Climb,
        step: u64,
    ) -> Result<(), LedgerError> {
        let Some(asked) = climb.tracks()[unit.track].latest_asked() else { return Ok(()) };
        let template = asked.template.unwrap_or(u64::MAX);
        let values = [asked.place, asked.band, asked.context, seed, template].map(|word| word as i64);
        let payload = unit.task.clone().into_bytes();
        sink.append(&Entry::Event { step, code: event_code::TAUGHT, values: values.to_vec(), payload })?;
        let (values, payload) =
            (vec![asked.executed as i64], asked.line.iter().flat_map(|word| word.to_le_bytes()));
        let payload = payload.collect();
        sink.append(&Entry::Event { step, code: event_code::LOGGED, values, payload })
    }

    /// Begins a unit, if it has not begun; `step` is where.
    fn begin(
        &mut self,
        sink: &mut impl Sink,
        UnderWay { unit, seed, shape }: UnderWay<'_>,
        climb: &Climb,
        step: u64,
    ) -> Result<(), LedgerError> {
        if self.open.is_some() {
            return Ok(());
        }
        sink.append(&Entry::Event {
            step,
            code: event_code::UNIT_BEGIN,
            values: place_of(unit).to_vec(),
            payload: UnitBegin { unit: unit.clone(), shape: shape.clone() }.to_bytes(),
        })?;
        let begun = self.begin_world(unit.track, &climb.config().parameters, shape);
        let edits = begun.expect("the learner has begun with this world");
        if !edits.is_empty() {
            self.set_all(&edits);
            sink.append(&Entry::Tables { step, edits, roots: self.tables.roots() })?;
        }
        Book::asked(sink, (unit, seed), climb, step)?;
        self.open = Some(0);
        Ok(())
    }

    /// What has happened in a unit and is not written yet; `step` is where the unit begins.
    pub(super) fn so_far(
        &mut self,
        sink: &mut impl Sink,
        under_way: UnderWay<'_>,
        chronicle: &Chronicle,
        (climb, step): (&Climb, u64),
    ) -> Result<(), LedgerError> {
        self.begin(sink, under_way, climb, step)?;
        assert_eq!(self.open, Some(chronicle.written()), "what is written is what the chronicle says");
        for happening in chronicle.unwritten() {
            self.happening(sink, (under_way.unit, under_way.seed), happening)?;
        }
        self.open = Some(chronicle.written() + chronicle.unwritten().len() as u64);
        Ok(())
    }

    fn happening(
        &mut self,
        sink: &mut impl Sink,
        (unit, seed): (&Unit, u64),
        happening: &Happening,
    ) -> Result<(), LedgerError> {
        match happening {
            Happening::Play(block) => sink.append(&Entry::Play(block.clone())),
            Happening::Patch(note) => self.patch(sink, unit.track, note),
            Happening::Steps(StepSample { first_step, records }) => {
                let (first_step, records) = (*first_step, records.clone());
                let experience = Vec::new();
                sink.append(&Entry::StepBlock(StepBlock { first_step, records, experience }))
            }
            Happening::Episode(note) => sink.append(&episode(note, task_id(unit, seed))),
            Happening::Reset(ResetNote { step, bucket, rose }) => {
                let cause = if *rose { ResetCause::LossRose } else { ResetCause::LossFell };
                sink.append(&reset(unit.track, *step, *bucket, cause))
            }
        }
    }

    /// Everything of one unit that is not written yet. The climb has taken it in already.
    pub(super) fn unit(
        &mut self,
        sink: &mut impl Sink,
        result: &UnitResult,
        climb: &Climb,
    ) -> Result<(), LedgerError> {
        let (unit, solution) = (&result.unit, &result.solution);
        let taken = solution.learned.tally.steps;
        let place = place_of(unit);
        let under_way = UnderWay { unit, seed: result.seed, shape: result.shape() };
        self.so_far(sink, under_way, &solution.chronicle, (climb, climb.steps() - taken))?;
        self.templates_of(sink, unit.track, climb)?;
        let Scheduled { units, alarms } = solution.learned.scheduled;
        let Barriers { passed, moved } = solution.learned.barriers;
        let values = units.into_iter().chain([alarms, passed, moved]).map(|count| count as i64).collect();
        let payload = Vec::new();
        sink.append(&Entry::Event { step: climb.steps(), code: event_code::SCHEDULED, values, payload })?;
        let policy = solution.learned.agent.policy();
        let mut circuit = Writer::new();
        policy.encode(&mut circuit);
        let circuit = sink.put_blob(circuit.as_bytes())?;
        let score = solution.score().map_or(0, |score| score.to_raw());
        let outcome = [i64::from(solution.is_solved()), score, policy.gates() as i64, taken as i64];
        let (chain, words) = (solution.learned.chain_head, solution.learned.words.clone());
        (self.units, self.open) = (self.units + 1, None);
        sink.append(&Entry::Event {
            step: climb.steps(),
            code: event_code::UNIT_END,
            values: [&place[..], &outcome[..]].concat(),
            payload: UnitEnd { circuit, chain, words }.to_bytes(),
        })
    }

    /// New templates: those that a new teacher begins with and a rung at once, those that edits brought as a patch each.
    fn templates_of(&mut self, sink: &mut impl Sink, track: usize, climb: &Climb) -> Result<(), LedgerError> {
        let (new, step) = (self.new_templates(track, climb), climb.steps());
        let taught = climb.tracks()[track].latest_edits();
        // A rung that a unit makes a template of may come after one that an edit brought.
        let is_by_edit = |leaf: &Digest| taught.iter().any(|edit| hash(edit.tree.as_bytes()) == *leaf);
        let (by_patch, at_once): (Vec<Digest>, Vec<Digest>) = new.into_iter().partition(is_by_edit);
        let edits = self.teach_edits(&at_once);
        if !edits.is_empty() {
            self.set_all(&edits);
            sink.append(&Entry::Tables { step, edits, roots: self.tables.roots() })?;
        }
        for (leaf, taught) in by_patch.iter().zip(taught) {
            let (payload, roots_before) = (sink.put_blob(&taught.patch)?, self.tables.roots());
            self.serial += 1;
            let edits = self.teach_edits(&[*leaf]);
            self.set_all(&edits);
            sink.append(&Entry::Patch(Box::new(PatchEvent {
                serial: self.serial,
                step,
                kind: PatchKind::TeachEdit,
                status: PatchStatus::Applied,
                target: ObjectId::sharded(ObjectClass::TaskFamily, 0, track as u16),
                score: 0,
                payload,
                certificates: Vec::new(),
                roots_before,
                roots_after: self.tables.roots(),
                edits,
            })))?;
        }
        Ok(())
    }

    fn patch(&mut self, sink: &mut impl Sink, track: usize, note: &PatchNote) -> Result<(), LedgerError> {
        let stored = StoredPatch::store(sink, note)?;
        self.serial += 1;
        let roots_before = self.tables.roots();
        let twin = self.twins.get_mut(&track).expect("a family is taken up when its unit begins");
        let edits = match structure_after(twin, note) {
            Some(leaves) => self.expert_edits(track, &leaves),
            None => Vec::new(),
        };
        self.set_all(&edits);
        sink.append(&stored.at(Place {
            serial: self.serial,
            target: ObjectId::sharded(ObjectClass::TaskFamily, 0, track as u16),
            roots_before,
            roots_after: self.tables.roots(),
            edits,
        }))?;
        // A RESET patch in force begins the statistics of its context again.
        if let Some((Patch { change: Change::Reset { bucket, .. }, .. }, _)) = note.accepted() {
            sink.append(&reset(track, note.step, bucket, ResetCause::Commanded))?;
        }
        self.threshold(sink, track, note)
    }

    /// The score that the next patch must reach moves with every decision; where it did, WORK says so.
    fn threshold(&mut self, sink: &mut impl Sink, track: usize, note: &PatchNote) -> Result<(), LedgerError> {
        let slot = self.parameters + track as u32;
        let leaf = hash(&note.threshold.to_le_bytes());
        if self.thresholds.get(&slot) == Some(&leaf) {
            return Ok(());
        }
        let edits = vec![TableEdit { table: Table::Work, slot, leaf }];
        self.set_all(&edits);
        sink.append(&Entry::Tables { step: note.step, edits, roots: self.tables.roots() })
    }
}

/// The stable number of a task: its text and the seed of its instance, hashed.
pub fn task_id(unit: &Unit, seed: u64) -> u64 {
    let digest = hash_parts("bem/task", &[unit.task.as_bytes(), &seed.to_le_bytes()]);
    u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("eight of 32 bytes"))
}

fn episode(note: &EpisodeNote, task: u64) -> Entry {
    let EpisodeNote { serial: episode, step, length, total: total_return, regret } = *note;
    Entry::Episode { episode, task, step, length, total_return, regret, discarded: false }
}

fn reset(track: usize, step: u64, bucket: u16, cause: ResetCause) -> Entry {
    let family = ObjectId::sharded(ObjectClass::TaskFamily, 0, track as u16);
    Entry::Reset { step, family, bucket: u32::from(bucket), cause }
}

/// Family, place in its chain, purpose, and which rung and try or which template.
pub(super) fn place_of(unit: &Unit) -> [i64; 5] {
    let (purpose, which, attempt) = match unit.purpose {
        Purpose::Rung { stage, attempt } => (0, stage as i64, i64::from(attempt)),
        Purpose::Replay { template } => (1, i64::from(template.0), 0),
        Purpose::Practice { template } => (2, i64::from(template.0), 0),
    };
    [unit.track as i64, i64::from(unit.number), purpose, which, attempt]
}

/// Goes through some of the entries of a ledger.
pub(super) fn entries_of<S: Store>(
    store: &mut S,
    entries: Range<u64>,
    mut take: impl FnMut(u64, Entry) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    let mut reader = EntryReader::open(store)?;
    while reader.position() < entries.end {
        let index = reader.position();
        let Some(bytes) = reader.next(store)? else { break };
        if entries.start <= index {
            let entry = Entry::from_bytes(bytes).map_err(|source| LedgerError::Entry { index, source })?;
            take(index, entry)?;
        }
    }
    Ok(())
}

/// Whether an entry of a unit under way is a happening, and not what follows from one.
pub(super) fn is_happening(entry: &Entry) -> bool {
    match entry {
        Entry::Play(_) | Entry::StepBlock(_) | Entry::Episode { .. } | Entry::Patch(_) => true,
        Entry::Reset { cause, .. } => *cause != ResetCause::Commanded,
        _ => false,
    }
}

/// A decision that is recorded, and what it makes of the structure before it.
fn follow<S: Store>(
    store: &mut S,
    twin: &mut Twin,
    (kind, status, payload): (PatchKind, PatchStatus, &Digest),
) -> Result<(), String> {
    match status {
        PatchStatus::Applied => {
            let bytes = read_blob(store, payload).map_err(|error| format!("the patch: {error}"))?;
            let payload = Payload::from_bytes(&bytes).map_err(|error| format!("the patch: {error}"))?;
            let (patch, _) = payload.accepted.ok_or("a patch in force whose payload holds none")?;
            twin.follow(&patch).map_err(|error| format!("the patch: {error}"))
        }
        PatchStatus::RolledBack => {
            let kind = bem_evolve::patch::PatchKind::ALL[kind as usize];
            match twin.take_back(kind).map_err(|error| error.to_string())? {
                true => Ok(()),
                false => Err("a patch is taken back that is not the latest in force".to_string()),
            }
        }
        PatchStatus::Pending | PatchStatus::Verified | PatchStatus::Rejected => Ok(()),
    }
}

/// The structures that a climb brings along.
fn twins_of(climb: &Climb) -> BTreeMap<usize, Twin> {
    let shards = climb.tracks().iter().enumerate().filter_map(|(place, track)| Some((place, track.shard()?)));
    shards
        .map(|(place, shard)| (place, Twin::of(shard.machine()).expect("a machine reads its own bytes")))
        .collect()
}
