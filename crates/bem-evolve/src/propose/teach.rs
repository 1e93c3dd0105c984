//! TEACH_EDIT: a template that the teacher's mutations or a counterexample suggest.
//!
//! The teacher makes the trees; here they become changes that wait like all others (decision D-24). Clause: GLE-10.

use super::Proposal;
use crate::patch::{Change, ExpectedEffects, TREE_BYTES_MAX};
use crate::verify::Improvement;
use bem_base::fixed::Fixed;
use bem_teacher::mutate::TeachEdit;

/// The proposal of one edit; none if its text is longer than a patch may carry.
pub fn propose_teach_edit(edit: &TeachEdit) -> Option<Proposal> {
    let tree = edit.tree.to_string();
    (tree.len() <= TREE_BYTES_MAX).then(|| Proposal {
        words: format!("template {}, from template {}", tree, edit.parent.0),
        change: Change::TeachEdit { template: edit.parent.0, tree, difficulty: edit.difficulty },
        improvement: Some(Improvement::Static),
        effects: ExpectedEffects { novelty: Fixed::ONE, ..ExpectedEffects::default() },
    })
}
