//! TEACH_EDIT from the teacher's side: an edit becomes a patch, its condition is shown, and only then may it be admitted.
//!
//! Whoever keeps a teacher calls [`judge_edit`] with what [`Teacher::maybe_mutate`] or a counterexample suggests, and admits
//! the edit with the accepted patch in hand. Clauses: SCC-2, GLE-7, GLE-10; decision D-24.

use crate::apply::{Tables, TablesError};
use crate::condition::{Context, Rejection};
use crate::propose::{Proposal, patch, propose_teach_edit};
use crate::score::PoxState;
use crate::verify::{AcceptedPatch, Improvement, Refusal, accept, verify};
use bem_machine::config::GenesisConfig;
use bem_teacher::mutate::TeachEdit;
use bem_teacher::teacher::Teacher;

/// Why an edit is not let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditRefusal {
    /// Its text is longer than a patch may carry.
    #[error("the template's text is too long")]
    TooLong,
    /// The tables refused.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// Its condition does not hold.
    #[error(transparent)]
    Condition(#[from] Rejection),
    /// The gate refused.
    #[error(transparent)]
    Gate(#[from] Refusal),
}

/// Shows the condition of an edit against the templates that the teacher has, and lets it through the gate.
///
/// Nothing is admitted here: [`Teacher::admit`] is called by whoever gets the accepted patch.
pub fn judge_edit(
    config: &GenesisConfig,
    teacher: &Teacher,
    serial: u64,
    edit: &TeachEdit,
    pox: &PoxState,
) -> Result<AcceptedPatch, EditRefusal> {
    let known = teacher.templates().iter().map(|template| template.tree.to_string()).collect();
    let tables = Tables::default().with_templates(known);
    let Proposal { change, effects, .. } = propose_teach_edit(edit).ok_or(EditRefusal::TooLong)?;
    let patch = patch(&tables, None, serial, 0, change, effects)?;
    let context = Context { config, tables: &tables, family: None };
    Ok(accept(verify(patch, &context)?, Improvement::Static, effects.novelty, pox)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::PatchKind;
    use bem_games::compose::NoPrograms;
    use bem_teacher::ladder::Domain;
    use bem_teacher::mutate::MutationRate;
    use bem_teacher::teacher::TeacherConfig;

    #[test]
    fn mutations_become_templates_through_patches_and_never_twice() {
        let config = GenesisConfig::default();
        let pox = PoxState::new(&config);
        let always = MutationRate { numerator: 1, denominator: 1, half_life: u64::MAX };
        let settings =
            TeacherConfig { domains: vec![Domain(0), Domain(3)], mutation: always, ..TeacherConfig::new(5) };
        let mut teacher = Teacher::new(settings, &NoPrograms).unwrap();
        let boot = teacher.templates().len();
        let mut admitted = 0;
        for serial in 1..=60 {
            let id = teacher.templates()[serial % teacher.templates().len()].id;
            let Some(edit) = teacher.maybe_mutate(id, &NoPrograms) else { continue };
            let Ok(accepted) = judge_edit(&config, &teacher, serial as u64, &edit, &pox) else { continue };
            assert_eq!(accepted.patch().kind(), PatchKind::TeachEdit);
            if teacher.admit(&edit, &NoPrograms).is_ok() {
                admitted += 1;
                let again = judge_edit(&config, &teacher, 100, &edit, &pox).unwrap_err();
                assert!(again.to_string().contains("exists already"), "{again}");
            }
        }
        assert!(10 < admitted, "{admitted}");
        assert_eq!(teacher.templates().len(), boot + admitted);
    }

    #[test]
    fn an_edit_beyond_the_bounds_is_refused_by_name() {
        let config = GenesisConfig { tree_nodes_max: 1, ..GenesisConfig::default() };
        let settings = TeacherConfig {
            domains: vec![Domain(0)],
            mutation: MutationRate { numerator: 1, denominator: 1, half_life: u64::MAX },
            ..TeacherConfig::new(5)
        };
        let mut teacher = Teacher::new(settings, &NoPrograms).unwrap();
        let id = teacher.templates()[0].id;
        let edit = (0..50).find_map(|_| teacher.maybe_mutate(id, &NoPrograms)).unwrap();
        let refused = judge_edit(&config, &teacher, 1, &edit, &PoxState::new(&config)).unwrap_err();
        assert!(refused.to_string().contains("Size_op_tree_max"), "{refused}");
    }
}
