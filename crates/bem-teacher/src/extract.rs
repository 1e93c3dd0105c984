//! Templates out of the trace: what the same machine solved twice becomes one template with parameter slots.
//!
//! Two tasks of one form that differ in numbers become a range for each number that differs. Two tasks of different families
//! become a sequence. Both are proposals like every other: they become TEACH_EDIT patches and are judged before they are
//! admitted. Must not know circuits. Clauses: GLE-7, GLE-10.

use bem_games::compose::TaskTree;
use bem_games::game::GameError;
use std::collections::BTreeMap;

/// One template whose ranges hold both tasks; none where their forms differ, or where they are the same.
pub fn common(one: &TaskTree, other: &TaskTree) -> Option<TaskTree> {
    let merged = merge(one, other)?;
    (merged != *one && merged != *other).then_some(merged)
}

fn merge(one: &TaskTree, other: &TaskTree) -> Option<TaskTree> {
    let is_alike = one.name() == other.name() && one.parts().len() == other.parts().len();
    if !is_alike || !one.settings().keys().eq(other.settings().keys()) {
        return None;
    }
    let mut settings = BTreeMap::new();
    for (name, text) in one.settings() {
        settings.insert(name.clone(), slot(text, &other.settings()[name])?);
    }
    let parts: Option<Vec<TaskTree>> =
        one.parts().iter().zip(other.parts()).map(|(one, other)| merge(one, other)).collect();
    match parts? {
        parts if parts.is_empty() => Some(one.with_settings(settings)),
        parts => TaskTree::node(one.name(), settings, parts).ok(),
    }
}

/// The value of a setting that two tasks share, or the range that holds both.
fn slot(one: &str, other: &str) -> Option<String> {
    if one == other {
        return Some(one.to_string());
    }
    let ends = |text: &str| -> Option<(i64, i64)> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        Some((low.parse().ok()?, high.parse().ok()?))
    };
    let (one, other) = (ends(one)?, ends(other)?);
    Some(format!("{}..{}", one.0.min(other.0), one.1.max(other.1)))
}

/// One task after the other.
pub fn sequence(first: &TaskTree, second: &TaskTree) -> Result<TaskTree, GameError> {
    TaskTree::node("seq", BTreeMap::new(), vec![first.clone(), second.clone()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> TaskTree {
        TaskTree::parse(text).unwrap()
    }

    #[test]
    fn what_differs_becomes_a_slot_and_other_forms_have_nothing_in_common() {
        let of = |one: &str, other: &str| common(&tree(one), &tree(other)).map(|tree| tree.to_string());
        assert_eq!(
            of("parity{n=9,relevant=3}", "parity{n=6,relevant=3}").unwrap(),
            "parity{n=6..9,relevant=3}"
        );
        assert_eq!(of("parity{n=4..8}", "parity{n=12}").unwrap(), "parity{n=4..12}");
        assert_eq!(
            of("loop{rounds=2}(compare{bits=2})", "loop{rounds=3}(compare{bits=2})").unwrap(),
            "loop{rounds=2..3}(compare{bits=2})"
        );
        assert_eq!(of("parity{n=6}", "parity{n=6}"), None);
        assert_eq!(of("parity{n=6}", "majority{n=6}"), None);
        assert_eq!(of("parity{n=6}", "parity{n=6,noise=1}"), None);
        assert_eq!(of("loop(compare)", "loop(parity)"), None);
    }

    #[test]
    fn a_sequence_belongs_to_the_family_of_its_first_task() {
        let tree = sequence(&tree("parity{n=2}"), &tree("dyck")).unwrap();
        assert_eq!(tree.to_string(), "seq(parity{n=2},dyck)");
        assert_eq!(crate::template::domain_of(&tree).map(|domain| domain.name()), Some("parity"));
    }
}
