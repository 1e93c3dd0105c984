//! Domains: which families they have, and which settings nobody has learned. Clauses: PIPE-1.

use bem_games::compose::TaskTree;
use bem_pipeline::domain::{DOMAINS, domain_of, families_of, unseen};
use bem_teacher::ladder;
use std::collections::BTreeSet;

#[test]
fn every_family_of_the_specification_has_one_domain_and_exists() {
    let families: Vec<&str> = DOMAINS.iter().flat_map(|(_, families)| families.iter().copied()).collect();
    assert_eq!(families.iter().collect::<BTreeSet<_>>().len(), families.len());
    for family in families {
        assert!(ladder::Domain::from_name(family).is_some(), "{family}");
        assert!(families_of(domain_of(family).unwrap()).unwrap().contains(&family));
    }
}

#[test]
fn unknown_domains_are_named_with_those_that_there_are() {
    let error = families_of("chess").unwrap_err().to_string();
    assert!(error.contains("chess") && error.contains("aggregation"), "{error}");
}

#[test]
fn unseen_settings_are_new_and_no_harder_than_what_was_solved() {
    for family in ["parity", "key_value", "compare"] {
        let ladder = ladder::Ladder::new(ladder::Domain::from_name(family).unwrap());
        let solved: Vec<String> = ladder.rungs(5).iter().map(|rung| rung.tree.to_string()).take(4).collect();
        let unseen = unseen(family, &solved);
        assert!(!unseen.is_empty() && unseen.len() <= 2, "{family}: {unseen:?}");
        assert!(unseen.iter().all(|(task, of)| !solved.contains(task)
            && TaskTree::parse(task).is_ok()
            && solved.contains(of)));
    }
}
