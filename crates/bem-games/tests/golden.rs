//! Every family has a playthrough in `golden/playthroughs`, and plays it again to the letter.
//!
//! `BEM_GOLDEN=renew cargo test --release -p bem-games --test golden` writes the files anew; the commit says why.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_games::catalog;
use bem_games::playthrough::playthrough;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/playthroughs")
}

#[allow(clippy::disallowed_methods, reason = "renewal must be asked for from outside, and only in this test")]
fn renewal_is_asked_for() -> bool {
    std::env::var("BEM_GOLDEN").is_ok_and(|value| value == "renew")
}

fn family_text(name: &str) -> String {
    let family = catalog::family(name).unwrap();
    let mut text = format!("{name}: {}\n", family.about());
    for (heading, params) in [("as it comes", vec![]), ("scrambled", vec![("scramble", "bits")])] {
        let texts: BTreeMap<String, String> =
            params.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let settings = catalog::settings(family, &texts).unwrap();
        let game = catalog::build(family, &settings, 7).unwrap();
        text.push_str(&playthrough(&format!("\n== {heading}"), &*game, &[1, 2]).unwrap());
    }
    text
}

#[test]
fn every_family_plays_its_golden_playthrough() {
    let mut wrong = Vec::new();
    for family in catalog::families() {
        let path = directory().join(format!("{}.txt", family.name()));
        let text = family_text(family.name());
        if renewal_is_asked_for() {
            std::fs::write(&path, text).unwrap();
        } else if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
            wrong.push(family.name());
        }
    }
    assert!(wrong.is_empty(), "playthroughs are missing or differ: {wrong:?}");
}

#[test]
fn no_golden_playthrough_is_left_over_from_a_family_that_is_gone() {
    let names: BTreeSet<&str> = catalog::families().iter().map(|family| family.name()).collect();
    for entry in std::fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_string();
            assert!(names.contains(stem.as_str()), "{} belongs to no family", path.display());
        }
    }
}
