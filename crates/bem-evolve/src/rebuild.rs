//! What a patch had to prove, worked out again by somebody who has the history and not the machine.
//!
//! A [`Twin`] follows the structure that the patches of a history amount to, from the boot structure on. For every patch it
//! states the condition anew, by the same code that states it when the patch is verified, but without a solver's answer:
//! what is settled by trying every case is tried again, and of the rest it says which clauses a proof must be about. A patch
//! that does not fit the structure before it is refused, so that a history with a patch missing does not go through.
//! Must not know the ledger: which digest stands where is for the caller. Clauses: SCC-3, SCC-4, LOG-3.

use crate::apply::{Receipt, Tables, TablesError};
use crate::condition::{Context, Finding, Rejection, SafetyDemand};
use crate::grounds::Grounds;
use crate::patch::{Patch, PatchKind, Subject};
use crate::verify::{EvidenceKind, show};
use bem_base::digest::{Digest, hash, hash_parts};
use bem_base::encode::Writer;
use bem_base::environment::Shape;
use bem_base::limits::ARMS_MAX;
use bem_machine::config::GenesisConfig;
use bem_machine::family::{Family, FamilyError};

/// Slots of EXPERT that one family has: a slot of its pool each, then its directory, then its contexts.
pub const EXPERT_SLOTS: usize = ARMS_MAX + 2;

/// What follows from a patch in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restated {
    /// Digests of the clauses (DIMACS text) that must be proven to have no model, in order.
    pub formulas: Vec<Digest>,
    /// Conditions that were settled without clauses, and were so again.
    pub checks: u64,
}

/// The structure of one family, as the patches so far have left it. It has no statistics and plays nothing.
#[derive(Clone, Debug)]
pub struct Twin {
    config: GenesisConfig,
    tables: Tables,
    /// The latest patch that can be taken back.
    latest: Option<Receipt>,
}

impl Twin {
    /// The structure that a learner begins with in worlds of this shape.
    pub fn boot(config: GenesisConfig, shape: Shape) -> Result<Twin, FamilyError> {
        let tables = Tables::new(vec![Family::new(&config, shape)?]);
        Ok(Twin { config, tables, latest: None })
    }

    /// The shape of the worlds.
    pub fn shape(&self) -> Option<&Shape> {
        self.tables.family(0).ok().map(Family::shape)
    }

    /// States the condition of a patch against the structure as it is.
    pub fn restate(&self, patch: &Patch, grounds: &Grounds) -> Result<Restated, Rejection> {
        self.tables.check_current(patch)?;
        restate(&self.config, &self.tables, patch, grounds)
    }

    /// The patch is in force from here on.
    pub fn follow(&mut self, patch: &Patch) -> Result<(), TablesError> {
        let receipt = self.tables.follow(&self.config, patch)?;
        let subject = patch.change.subject();
        if EvidenceKind::of_change(&patch.change) != EvidenceKind::Exact && subject == Subject::Pool {
            self.latest = Some(receipt);
        } else if let Some(latest) = self.latest.as_mut().filter(|_| patch.kind() == PatchKind::Superoptimize)
        {
            // A smaller circuit of the same behaviour is taken back together with the patch before it.
            latest.carry_over(self.tables.parent(Subject::Pool, patch.family)?);
        }
        Ok(())
    }

    /// The latest patch is taken back; false if there is none of this kind.
    pub fn take_back(&mut self, kind: PatchKind) -> Result<bool, TablesError> {
        match self.latest.take_if(|latest| latest.kind() == kind) {
            None => Ok(false),
            Some(latest) => self.tables.take_back(latest).map(|()| true),
        }
    }

    /// What EXPERT holds of this family: a digest for every slot, zero where nothing is.
    pub fn leaves(&self) -> [Digest; EXPERT_SLOTS] {
        let mut leaves = [Digest::default(); EXPERT_SLOTS];
        let Ok(family) = self.tables.family(0) else { return leaves };
        for (slot, expert) in family.occupied() {
            let mut writer = Writer::new();
            expert.encode(&mut writer);
            leaves[slot] = hash_parts("bem/expert", &[writer.as_bytes()]);
        }
        let mut writer = Writer::new();
        family.directory().encode(&mut writer);
        leaves[ARMS_MAX] = hash_parts("bem/directory", &[writer.as_bytes()]);
        leaves[ARMS_MAX + 1] = self.tables.parent(Subject::Choice, 0).unwrap_or_default();
        leaves
    }
}

/// States the condition of a new template. Whether a teacher has it already is for whoever knows its templates.
pub fn restate_template(config: &GenesisConfig, patch: &Patch) -> Result<Restated, Rejection> {
    let grounds = Grounds { shape: None, bad: Vec::new(), safety: SafetyDemand::Optional };
    restate(config, &Tables::new(Vec::new()), patch, &grounds)
}

fn restate(
    config: &GenesisConfig,
    tables: &Tables,
    patch: &Patch,
    grounds: &Grounds,
) -> Result<Restated, Rejection> {
    // Without conflicts to spend nothing is solved.
    let config = GenesisConfig { verify_conflicts_max: 0, ..config.clone() };
    let Grounds { bad, safety, .. } = grounds;
    let (findings, _) = show(patch, &Context { config: &config, tables, bad, safety: *safety })?;
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
    use crate::patch::{ExpectedEffects, Form};
    use crate::propose::patch;
    use crate::verify::verify;
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
                    restate(laboratory.config(), laboratory.tables(), &patch, verified.grounds()).unwrap();
                let proven = verified.findings().iter().filter_map(Finding::proof);
                let proven: Vec<Digest> =
                    proven.map(|(formula, _)| hash(formula.to_dimacs().as_bytes())).collect();
                assert_eq!(again.formulas, proven, "{form:?}");
                assert_eq!(again.formulas.len() + again.checks as usize, verified.findings().len());
                formulas += again.formulas.len();
                checks += again.checks;
            }
        }
        assert!(50 < formulas && 50 < checks, "{formulas} formulas, {checks} checks");
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
    fn without_the_bad_pairs_other_clauses_are_stated() {
        let laboratory = Laboratory::new();
        let patch = laboratory.good_patch(Form::Synthesize, &mut Prng::stream(1, "bad"));
        let verified = verify(patch.clone(), &laboratory.context()).unwrap();
        let (config, tables) = (laboratory.config(), laboratory.tables());
        let honest = restate(config, tables, &patch, verified.grounds()).unwrap();
        let nothing = Grounds { bad: Vec::new(), safety: SafetyDemand::Optional, shape: None };
        assert_ne!(restate(config, tables, &patch, &nothing).unwrap().formulas, honest.formulas);
    }
    #[test]
    fn a_patch_is_taken_back_together_with_the_smaller_circuit_that_came_of_it() {
        let laboratory = Laboratory::new();
        let (config, tables) = (laboratory.config().clone(), laboratory.tables().clone());
        let mut twin = Twin { config, tables, latest: None };
        let mut prng = Prng::stream(1, "taken back");
        let mut follow = |twin: &mut Twin, serial: u64, form: Form| {
            let change = laboratory.good_patch(form, &mut prng).change;
            let made = patch(&twin.tables, serial, 0, change, ExpectedEffects::default()).unwrap();
            twin.follow(&made).unwrap();
            twin.leaves()
        };
        let first = follow(&mut twin, 101, Form::Synthesize);
        let second = follow(&mut twin, 102, Form::Synthesize);
        let smaller = follow(&mut twin, 103, Form::Superoptimize);
        let divided = follow(&mut twin, 104, Form::Divide);
        assert!(first != second && second != smaller && smaller != divided);
        assert_eq!(twin.take_back(PatchKind::Retire), Ok(false));
        assert_eq!(twin.take_back(PatchKind::Synthesize), Ok(true));
        let mut wanted = first;
        wanted[ARMS_MAX + 1] = divided[ARMS_MAX + 1];
        assert_eq!(twin.leaves(), wanted);
        assert_eq!(twin.take_back(PatchKind::Synthesize), Ok(false));
    }
}
