//! What the entries of a run must have followed from: the tables at the start, and of every patch in force its condition.
//!
//! This is the part of an audit that knows what a run is. From the configuration that genesis names, and the payloads of
//! patches, it works out the boot tables, the clauses that a patch's certificates must be about, what EXPERT holds after
//! it, and which serial and which unit come next; checks without clauses are made again. It plays nothing: that what was
//! played led to these patches is for a replay to show. Clauses: SCC-3, SCC-4, LOG-2, LOG-3.

use super::book::{Book, place_of};
use super::entries::Kept;
use crate::climb::practice::shown;
use crate::climb::{Climb, Unit, UnitBegin};
use crate::payload::Payload;
use crate::worlds::Catalog;
use bem_base::digest::{Digest, hash};
use bem_base::encode::Reader;
use bem_base::environment::Shape;
use bem_base::ids::{ObjectClass, ObjectId};
use bem_evolve::patch::{Change, Patch, PatchKind};
use bem_evolve::rebuild::{Restated, restate_template};
use bem_isa::program::Program;
use bem_ledger::audit::{Conditions, Rebuilt};
use bem_ledger::entry::{Entry, PatchEvent, PatchStatus, Proven, Table, TableEdit, UnitEnd, event_code};
use bem_machine::config::GenesisConfig;
use bem_synth::policy::Policy;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Reads a blob of the run.
type Read<'a> = dyn FnMut(&Digest) -> Result<Vec<u8>, String> + 'a;

/// What a run's history says so far, for an audit of the rest.
#[derive(Debug, Default)]
pub struct RunConditions {
    /// The climb at its start; none for a history of something else, or of another version, which may hold no units.
    climb: Option<Climb>,
    /// Why there is none.
    refusal: String,
    book: Book,
    is_booted: bool,
    /// The conditions of the programs that say what is practised were shown.
    is_proven: bool,
    unit: Option<Unit>,
    /// What the next entry must do to EXPERT.
    due: Vec<TableEdit>,
    /// Units that each family has begun.
    begun: BTreeMap<usize, u32>,
    /// Templates of each family, by digest.
    templates: BTreeMap<usize, BTreeSet<Digest>>,
}

impl Conditions for RunConditions {
    fn rebuild(&mut self, entry: &Entry, read: &mut Read<'_>) -> Result<Rebuilt, String> {
        let due = core::mem::take(&mut self.due);
        if !due.is_empty() && !matches!(entry, Entry::Tables { edits, .. } if *edits == due) {
            return Err("EXPERT does not show the family that the unit goes on with".to_string());
        }
        let restated = match entry {
            Entry::Genesis(genesis) => {
                let configuration = read(&genesis.configuration).map_err(|why| format!("CFG: {why}"))?;
                match Climb::restore(&configuration) {
                    Ok(climb) => self.climb = Some(climb),
                    Err(error) => self.refusal = error.to_string(),
                }
                Restated::default()
            }
            Entry::Tables { edits, .. } => {
                self.take_tables(entry, edits, !due.is_empty())?;
                Restated::default()
            }
            Entry::Event { code: event_code::UNIT_BEGIN, values, payload, .. } => {
                self.begin(values, payload)?;
                Restated::default()
            }
            Entry::Event { code: event_code::UNIT_END, values, payload, .. } => {
                self.end(values, payload, read)?;
                Restated::default()
            }
            Entry::Event { code: event_code::PROVEN, payload, .. } => self.take_programs(payload, read)?,
            Entry::Event { code: event_code::TAUGHT, .. } if self.climb.is_some() && !self.is_proven => {
                return Err("a program ran whose conditions were not shown".to_string());
            }
            Entry::Patch(patch) => self.take_patch(patch, read)?,
            _ => Restated::default(),
        };
        Ok(Rebuilt { formulas: restated.formulas, checks: restated.checks })
    }
}

impl RunConditions {
    /// For a history from genesis on.
    pub fn new() -> RunConditions {
        RunConditions::default()
    }

    /// The parameters in force.
    fn parameters(&self) -> Arc<GenesisConfig> {
        self.climb.as_ref().map_or_else(Arc::default, |climb| Arc::clone(&climb.config().parameters))
    }

    /// The conditions of the program that chooses, stated again from its bytes.
    fn take_programs(&mut self, payload: &[u8], read: &mut Read<'_>) -> Result<Restated, String> {
        let proven =
            Proven::from_bytes(payload).map_err(|error| format!("the proof of a program: {error}"))?;
        let [_, choose, _] = proven.programs[..] else {
            return Err("a run has three programs".to_string());
        };
        let bytes = read(&choose).map_err(|why| format!("a program: {why}"))?;
        let program = Program::from_bytes(&bytes).map_err(|error| format!("a program: {error}"))?;
        let shown = shown(&program).ok_or("a program whose conditions do not hold")?;
        self.is_proven = true;
        let formulas = shown.iter().map(|(formula, _)| hash(formula)).collect();
        Ok(Restated { formulas, checks: 0 })
    }

    fn take_tables(&mut self, entry: &Entry, edits: &[TableEdit], is_due: bool) -> Result<(), String> {
        let Some(climb) = &self.climb else { return Ok(()) };
        if !self.is_booted {
            self.is_booted = true;
            let mut kept = Kept::default();
            self.book.boot(&mut kept, climb).map_err(|error| error.to_string())?;
            for (place, track) in climb.tracks().iter().enumerate() {
                let known = (0..track.templates()).filter_map(|index| track.template(index));
                self.templates.insert(place, known.map(|text| hash(text.as_bytes())).collect());
                self.begun.insert(place, track.next().map_or(0, |unit| unit.number));
            }
            return match kept.0.as_ref() == Some(entry) {
                true => Ok(()),
                false => Err("the tables at the start do not follow from the configuration".to_string()),
            };
        }
        if !is_due && edits.iter().any(|edit| edit.table == Table::Expert) {
            return Err("EXPERT changes without a patch".to_string());
        }
        let track = self.unit.as_ref().map(|unit| unit.track);
        let taught = edits.iter().filter(|edit| edit.table == Table::Teach);
        match track {
            Some(track) => self.templates.entry(track).or_default().extend(taught.map(|edit| edit.leaf)),
            None if 0 < taught.count() => return Err("TEACH changes outside a unit".to_string()),
            None => {}
        }
        self.book.set_all(edits);
        Ok(())
    }

    fn begin(&mut self, values: &[i64], payload: &[u8]) -> Result<(), String> {
        let refused = || format!("a unit in a history whose configuration is no run's: {}", self.refusal);
        let climb = self.climb.as_ref().ok_or_else(refused)?;
        let UnitBegin { unit, shape } =
            UnitBegin::from_bytes(payload).map_err(|error| format!("the unit: {error}"))?;
        if self.unit.is_some() {
            return Err("a unit begins in another".to_string());
        }
        if climb.tracks().len() <= unit.track || place_of(&unit) != *values {
            return Err("the unit is not the one that its numbers say".to_string());
        }
        let next = self.begun.entry(unit.track).or_default();
        if *next != unit.number {
            return Err(format!("unit {} of family {}, where {next} comes next", unit.number, unit.track));
        }
        *next += 1;
        check_shape(climb, &unit, &shape)?;
        let begun = self.book.begin_world(unit.track, &climb.config().parameters, &shape);
        self.due = begun.map_err(|error| format!("no machine can hold the world of the unit: {error}"))?;
        self.unit = Some(unit);
        Ok(())
    }

    /// What acts at the end is there, it is what the patches have left, and it has as many gates as is said.
    fn end(&mut self, values: &[i64], payload: &[u8], read: &mut Read<'_>) -> Result<(), String> {
        let unit = self.unit.take().ok_or("a unit ends that has not begun")?;
        let end = UnitEnd::from_bytes(payload).map_err(|error| format!("the end of a unit: {error}"))?;
        let bytes = read(&end.circuit).map_err(|why| format!("the circuit of a unit: {why}"))?;
        let circuit = Policy::decode(&mut Reader::new(&bytes));
        let circuit = circuit.map_err(|error| format!("the circuit of a unit: {error}"))?;
        let gates = circuit.gates();
        let twin = self.book.twins.get(&unit.track).ok_or("a family without a machine")?;
        if twin.frozen() != Some(circuit) {
            return Err("the circuit of a unit is not what its patches have put into force".to_string());
        }
        let place = place_of(&unit);
        if values.get(..place.len()) != Some(&place[..])
            || values.get(place.len() + 2) != Some(&(gates as i64))
        {
            return Err("the end of the unit does not fit its begin or its circuit".to_string());
        }
        Ok(())
    }

    fn take_patch(&mut self, event: &PatchEvent, read: &mut Read<'_>) -> Result<Restated, String> {
        let unit = self.unit.clone().ok_or("a patch outside a unit")?;
        if event.serial != self.book.serial + 1 {
            return Err(format!("patch {} follows patch {}", event.serial, self.book.serial));
        }
        if event.target != ObjectId::sharded(ObjectClass::TaskFamily, 0, unit.track as u16) {
            return Err("the patch is about another family than its unit".to_string());
        }
        let kind = PatchKind::ALL[event.kind as usize];
        let (restated, edits) = match event.status {
            PatchStatus::Applied => {
                let bytes = read(&event.payload).map_err(|why| format!("the patch: {why}"))?;
                match kind {
                    PatchKind::TeachEdit => self.take_template(&unit, &bytes)?,
                    _ => self.take_structure(event, &unit, &bytes)?,
                }
            }
            PatchStatus::RolledBack => {
                let twin = self.book.twins.get_mut(&unit.track).ok_or("a family without a machine")?;
                if !twin.take_back(kind).map_err(|error| error.to_string())? {
                    return Err("a patch is taken back that is not the latest in force".to_string());
                }
                let leaves = twin.leaves();
                (Restated::default(), self.book.expert_edits(unit.track, &leaves))
            }
            PatchStatus::Rejected => (Restated::default(), Vec::new()),
            PatchStatus::Pending | PatchStatus::Verified => {
                return Err("a run writes down decisions, not what waits".to_string());
            }
        };
        if event.edits != edits {
            return Err("the tables after the patch do not follow from it".to_string());
        }
        self.book.set_all(&edits);
        self.book.serial = event.serial;
        Ok(restated)
    }

    /// A patch of structure: its condition against what the patches before have left.
    fn take_structure(
        &mut self,
        event: &PatchEvent,
        unit: &Unit,
        bytes: &[u8],
    ) -> Result<(Restated, Vec<TableEdit>), String> {
        let payload = Payload::from_bytes(bytes).map_err(|error| format!("the patch: {error}"))?;
        let (patch, shape) = payload.accepted.ok_or("a patch in force whose payload holds none")?;
        if patch.kind() as u8 != event.kind as u8 || payload.evidence.lower_bound.to_raw() != event.score {
            return Err("the entry says another kind or score than the patch".to_string());
        }
        let twin = self.book.twins.get_mut(&unit.track).ok_or("a family without a machine")?;
        if !is_of_same_world(twin.shape(), &shape) {
            return Err("the patch was made for another world than its unit's".to_string());
        }
        let restated = twin.restate(&patch);
        let restated = restated.map_err(|error| format!("the condition of the patch: {error}"))?;
        twin.follow(&patch).map_err(|error| format!("the patch: {error}"))?;
        let leaves = twin.leaves();
        Ok((restated, self.book.expert_edits(unit.track, &leaves)))
    }

    /// A new template: its bounds, that it is new, and that TEACH holds its text.
    fn take_template(&mut self, unit: &Unit, bytes: &[u8]) -> Result<(Restated, Vec<TableEdit>), String> {
        let mut reader = Reader::new(bytes);
        let patch = Patch::decode(&mut reader).and_then(|patch| reader.finish().map(|()| patch));
        let patch = patch.map_err(|error| format!("the patch: {error}"))?;
        let Change::TeachEdit { tree, .. } = &patch.change else {
            return Err("the entry says another kind than the patch".to_string());
        };
        let leaf = hash(tree.as_bytes());
        if !self.templates.entry(unit.track).or_default().insert(leaf) {
            return Err("a template is taken up that the family has already".to_string());
        }
        let restated = restate_template(&self.parameters(), &patch);
        let restated = restated.map_err(|error| format!("the condition of the patch: {error}"))?;
        Ok((restated, vec![TableEdit { table: Table::Teach, slot: self.book.teach_slots, leaf }]))
    }
}

/// The world of a task of the catalog has the shape that the unit says.
fn check_shape(climb: &Climb, unit: &Unit, shape: &Shape) -> Result<(), String> {
    if !climb.files().is_empty() {
        return Ok(());
    }
    let game = Catalog.game(&unit.task, climb.assign(unit).seed);
    let game = game.map_err(|error| format!("the task of the unit: {error}"))?;
    match game.shape() == shape {
        true => Ok(()),
        false => Err("the unit was worked on in another world than its task's".to_string()),
    }
}

/// Whether two shapes differ in their ranges at most: what is paid beyond them widens them (D-62), before a patch or after it.
fn is_of_same_world(unit: &Shape, patch: &Shape) -> bool {
    let (mut one, mut other) = (unit.clone(), patch.clone());
    one.cover(patch);
    other.cover(unit);
    one == other
}
