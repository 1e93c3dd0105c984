//! The records of the built-in families are told apart by their identifiers. Clause: GLE-2.

use bem_base::ids::ObjectId;
use bem_games::base_problem::base_problems;
use std::collections::BTreeSet;

#[test]
fn no_two_families_share_an_identifier_a_class_or_a_name() {
    let problems = base_problems();
    let identifiers: BTreeSet<ObjectId> = problems.iter().map(|problem| problem.id).collect();
    let classes: BTreeSet<_> = problems.iter().map(|problem| problem.class).collect();
    let names: BTreeSet<&str> = problems.iter().map(|problem| problem.family.name()).collect();
    assert_eq!(
        (identifiers.len(), classes.len(), names.len()),
        (problems.len(), problems.len(), problems.len())
    );
    for problem in &problems {
        assert!(0 < problem.horizon_bound, "{} has no horizon", problem.family.name());
        assert!(!problem.parameters.is_empty(), "{} has no parameters", problem.family.name());
    }
}
