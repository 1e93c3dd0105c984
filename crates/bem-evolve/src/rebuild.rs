//! What a patch had to prove, worked out again by somebody who has the history and not the machine.
//!
//! A [`Twin`] follows the structure that the patches of a history amount to, from the boot structure on. For every patch it
//! states the condition anew, by the same code that states it when the patch is verified, but without a solver's answer:
//! what is settled by trying every case is tried again, and of the rest it says which clauses a proof must be about. A patch
//! that does not fit the structure before it is refused, so that a history with a patch missing does not go through.
//! Must not know the ledger: which digest stands where is for the caller. Clauses: SCC-3, SCC-4, LOG-3.

use crate::apply::{Live, Tables, TablesError, edit_of, routing_digest};
use crate::condition::{Context, Finding, Rejection};
use crate::patch::{Patch, PatchKind};
use crate::verify::{Verified, show, verify};
use bem_base::digest::{Digest, hash, hash_parts};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_base::limits::ARMS_MAX;
use bem_machine::config::GenesisConfig;
use bem_machine::family::Family;
use bem_machine::machine::{Machine, MachineError, Undo};
use bem_machine::memory::context::FamilyIndex;
use bem_synth::policy::Policy;

/// Slots of EXPERT that one family has: a slot of its pool each, then its directory, then what is held with plain actions and
/// guard.
pub const EXPERT_SLOTS: usize = ARMS_MAX + 2;

/// What follows from a patch in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restated {
    /// Digests of the clauses (DIMACS text) that must be proven to have no model, in order.
    pub formulas: Vec<Digest>,
    /// Conditions that were settled without clauses, and were so again.
    pub checks: u64,
}

/// What a family holds, guard included, as one policy; nothing where it depends on more than what is seen and remembered.
pub fn frozen(family: &Family) -> Option<Policy> {
    let frozen = family.freeze()?;
    Policy::new(frozen.circuit, frozen.reads, frozen.memory_bits, family.shape().actions)
}

/// The structure of a machine, as the patches so far have left it. It plays nothing.
#[derive(Clone, Debug)]
pub struct Twin {
    tables: Tables,
    machine: Machine,
    /// The family that patches are about, the machine's last.
    index: FamilyIndex,
    /// The latest patch that can be taken back.
    latest: Option<(PatchKind, Undo)>,
}

impl Twin {
    /// The structure that a learner begins with in worlds of this shape.
    pub fn boot(config: GenesisConfig, shape: &Shape) -> Result<Twin, MachineError> {
        let machine = Machine::new(config, 0);
        let mut twin = Twin { tables: Tables::default(), machine, index: FamilyIndex(0), latest: None };
        twin.begin(shape)?;
        Ok(twin)
    }

    /// The structure of a machine between two tasks.
    pub fn of(live: &Live) -> Result<Twin, DecodeError> {
        let mut writer = Writer::new();
        live.encode(&mut writer);
        let machine: Machine = Machine::decode(&mut Reader::new(writer.as_bytes()))?;
        let index = FamilyIndex((machine.family_count() as u16).saturating_sub(1));
        Ok(Twin { tables: Tables::default(), machine, index, latest: None })
    }

    /// A task in worlds of this shape begins: a family is taken up as the learner's machine does it.
    pub fn begin(&mut self, shape: &Shape) -> Result<(), MachineError> {
        self.index = self.machine.take_up(shape)?;
        (self.tables, self.latest) = (Tables::default(), None);
        Ok(())
    }

    fn family(&self) -> &Family {
        self.machine.family(self.index).expect("a family is taken up with every task")
    }

    /// The shape of the worlds.
    pub fn shape(&self) -> &Shape {
        self.family().shape()
    }

    /// What acts frozen, as one circuit.
    pub fn frozen(&self) -> Option<Policy> {
        frozen(self.family())
    }

    /// States the condition of a patch against the structure as it is.
    pub fn restate(&self, patch: &Patch) -> Result<Restated, Rejection> {
        self.tables.check_current(patch, Some(self.family()))?;
        restate(self.machine.config(), &self.tables, Some(self.family()), patch)
    }

    /// Shows the condition of a patch against the structure as it is, as a learner does.
    pub fn verify(&self, patch: Patch) -> Result<Verified, Rejection> {
        let (config, tables) = (self.machine.config(), &self.tables);
        verify(patch, &Context { config, tables, family: Some(self.family()) })
    }

    /// The patch is in force from here on.
    pub fn follow(&mut self, patch: &Patch) -> Result<(), TablesError> {
        let edit = edit_of(&patch.change, self.family()).ok_or(MachineError::NotApplicable)?;
        if let Some(undo) = self.machine.edit(self.index, edit)? {
            self.latest = Some((patch.kind(), undo));
        }
        self.tables.note_applied(patch);
        Ok(())
    }

    /// The latest patch is taken back; false if there is none of this kind.
    pub fn take_back(&mut self, kind: PatchKind) -> Result<bool, TablesError> {
        match self.latest.take_if(|(latest, _)| *latest == kind) {
            None => Ok(false),
            Some((_, undo)) => Ok(self.machine.undo(undo).map(|()| true)?),
        }
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.machine.encode(writer);
        self.tables.encode(writer);
        writer.u16(self.index.0);
        writer.bool(self.latest.is_some());
        if let Some((kind, undo)) = &self.latest {
            writer.u8(*kind as u8);
            undo.encode(writer);
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Twin, DecodeError> {
        let machine: Machine = Machine::decode(reader)?;
        let tables = Tables::decode(machine.config(), reader)?;
        let malformed = reader.error("a structure without its family, or a patch of unknown kind");
        let index = FamilyIndex(reader.u16()?);
        if machine.family(index).is_err() {
            return Err(malformed);
        }
        let latest = match reader.bool()? {
            false => None,
            true => {
                let kind = *PatchKind::ALL.get(usize::from(reader.u8()?)).ok_or(malformed)?;
                Some((kind, Undo::decode(machine.config(), reader)?))
            }
        };
        Ok(Twin { tables, machine, index, latest })
    }

    /// What EXPERT holds of this family: a digest for every slot, zero where nothing is.
    pub fn leaves(&self) -> [Digest; EXPERT_SLOTS] {
        let mut leaves = [Digest::default(); EXPERT_SLOTS];
        let family = self.family();
        for (slot, expert) in family.occupied() {
            let mut writer = Writer::new();
            expert.encode(&mut writer);
            leaves[slot] = hash_parts("bem/expert", &[writer.as_bytes()]);
        }
        let mut writer = Writer::new();
        family.directory().encode(&mut writer);
        leaves[ARMS_MAX] = hash_parts("bem/directory", &[writer.as_bytes()]);
        let held = [family.held().member.unwrap_or(u8::MAX)];
        leaves[ARMS_MAX + 1] = hash_parts("bem/held", &[&held, routing_digest(family).as_bytes()]);
        leaves
    }
}

/// States the condition of a new template. Whether a teacher has it already is for whoever knows its templates.
pub fn restate_template(config: &GenesisConfig, patch: &Patch) -> Result<Restated, Rejection> {
    restate(config, &Tables::default(), None, patch)
}

fn restate(
    config: &GenesisConfig,
    tables: &Tables,
    family: Option<&Family>,
    patch: &Patch,
) -> Result<Restated, Rejection> {
    // Without conflicts to spend nothing is solved.
    let config = GenesisConfig { verify_conflicts_max: 0, ..config.clone() };
    let (findings, _) = show(patch, &Context { config: &config, tables, family })?;
    let mut restated = Restated::default();
    for finding in &findings {
        match finding {
            Finding::Stated { formula, .. } | Finding::Proven { formula, .. } => {
                restated.formulas.push(hash(formula.to_dimacs().as_bytes()));
            }
            Finding::Exhausted { .. } | Finding::Compared { .. } => restated.checks += 1,
        }
    }
    Ok(restated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::battery::Laboratory;
    use crate::patch::{Change, ExpectedEffects, Form};
    use crate::propose::patch;
    use bem_base::prng::Prng;

    #[test]
    fn of_every_form_the_clauses_are_stated_again_as_they_were_proven() {
        let laboratory = Laboratory::new();
        let mut prng = Prng::stream(1, "restated");
        let (mut formulas, mut checks) = (0, 0);
        for form in Form::ALL {
            for _ in 0..8 {
                let patch = laboratory.good_patch(form, &mut prng);
                let verified = verify(patch.clone(), &laboratory.context()).unwrap();
                let again =
                    restate(laboratory.config(), laboratory.tables(), Some(laboratory.family()), &patch)
                        .unwrap();
                let proven = verified.findings().iter().filter_map(Finding::proof);
                let proven: Vec<Digest> =
                    proven.map(|(formula, _)| hash(formula.to_dimacs().as_bytes())).collect();
                assert_eq!(again.formulas, proven, "{form:?}");
                assert_eq!(again.formulas.len() + again.checks as usize, verified.findings().len());
                formulas += again.formulas.len();
                checks += again.checks;
            }
        }
        assert!(30 < formulas && 50 < checks, "{formulas} formulas, {checks} checks");
    }

    #[test]
    fn a_patch_is_never_verified_without_conflicts_to_spend() {
        let laboratory = Laboratory::new();
        let config = GenesisConfig { verify_conflicts_max: 0, ..laboratory.config().clone() };
        let patch = laboratory.good_patch(Form::Synthesize, &mut Prng::stream(1, "none"));
        let context = Context { config: &config, ..laboratory.context() };
        assert!(matches!(verify(patch, &context), Err(Rejection::Undecided { .. })));
    }

    #[test]
    fn a_patch_is_taken_back_together_with_the_smaller_circuit_that_came_of_it() {
        let laboratory = Laboratory::new();
        let shape = laboratory.family().shape().clone();
        let mut twin = Twin::boot(laboratory.config().clone(), &shape).unwrap();
        let mut prng = Prng::stream(1, "taken back");
        let made = |twin: &Twin, serial: u64, change: Change| {
            patch(&twin.tables, Some(twin.family()), serial, 0, change, ExpectedEffects::default()).unwrap()
        };
        let mut synthesize = |twin: &mut Twin, serial: u64| {
            let change = laboratory.synthesized(&mut prng);
            let patch = made(twin, serial, change);
            twin.follow(&patch).unwrap();
            twin.leaves()
        };
        let boot = twin.leaves();
        let first = synthesize(&mut twin, 101);
        let second = synthesize(&mut twin, 102);
        let slot = twin.family().held().member.unwrap();
        let circuit =
            crate::propose::shrink(twin.family().expert(usize::from(slot)).unwrap().placed().circuit());
        let smaller = made(&twin, 103, Change::Superoptimize { slot, circuit });
        twin.follow(&smaller).unwrap();
        let held =
            made(&twin, 104, Change::Hold { actions: vec![2], rule: bem_machine::held::Adaptation::Fixed });
        assert!(boot != first && first != second && second != twin.leaves());
        assert_eq!(twin.take_back(PatchKind::Retire), Ok(false));
        assert_eq!(twin.take_back(PatchKind::Synthesize), Ok(true));
        assert_eq!(twin.leaves(), first);
        assert_eq!(twin.take_back(PatchKind::Synthesize), Ok(false));
        // Plain actions that are held again are another structure, and a patch made for another one does not fit.
        twin.follow(&held).unwrap();
        assert_ne!(twin.leaves(), first);
        assert!(twin.restate(&smaller).is_err());
    }
}
