//! The conformance kit and the golden playthroughs over every operator.
//!
//! `BEM_GOLDEN=renew cargo test --release -p bem-games --test compose` writes the files anew; the commit says why.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_games::compose::{NoPrograms, TaskTree, operators};
use bem_games::conformance::check;
use bem_games::game::Game;
use bem_games::playthrough::playthrough;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// At least one composition for every operator; the first of each is its golden playthrough.
const COMPOSITIONS: &[&str] = &[
    "seq(compare{bits=3},add{bits=4})",
    "par(compare{bits=3},add{bits=4})",
    "nest{depth=3}(matrix_game{game=prisoners_dilemma,opponent=tit_for_tat,horizon=3})",
    "mask{percent=25,bits=3}(add{bits=4})",
    "interleave(add{bits=4},matrix_game{horizon=3})",
    "repeat{times=3}(sorting{keys=3})",
    "branch{percent=30}(dyck{depth=2,length=6},auction{bits=2})",
    "loop{rounds=4}(safety_grid{size=3,bad=1})",
    "seq(parity{n=4},majority{n=5})",
    "seq(auction{bits=2},popcount{n=4})",
    "par(key_value,safety_grid{size=3,bad=1})",
    "nest{depth=4}(compare{bits=2})",
    "mask{percent=50,bits=0}(safety_grid{size=3,bad=1})",
    "interleave(stack_machine,copy{length=3})",
    "repeat{times=5}(signaling{states=3,noise=20,role=both})",
    "loop{rounds=3}(transducer)",
    "branch(bandit{arms=3},contextual_bandit)",
    "seq(par(compare{bits=2},add{bits=3}),mask{percent=10,bits=1}(loop{rounds=3}(distance{n=3})))",
    "interleave(nest{depth=2}(add{bits=3}),branch(compare{bits=2},repeat{times=2}(auction{bits=2})))",
    "repeat{times=2}(parity{n=6,noise=10,scramble=bits})",
];

fn build(text: &str) -> Arc<dyn Game> {
    TaskTree::parse(text).unwrap().build(7, &NoPrograms).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_composition_passes_the_kit() {
    for text in COMPOSITIONS {
        check(&*build(text)).unwrap_or_else(|breach| panic!("{text}: {breach}"));
    }
}

#[allow(clippy::disallowed_methods, reason = "renewal must be asked for from outside, and only in this test")]
fn renewal_is_asked_for() -> bool {
    std::env::var("BEM_GOLDEN").is_ok_and(|value| value == "renew")
}

#[test]
fn every_operator_plays_its_golden_playthrough() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/compositions");
    let mut wrong = Vec::new();
    for operator in operators() {
        let name = operator.name();
        let of_this = |text: &&&str| TaskTree::parse(text).unwrap().name() == name;
        let composition =
            COMPOSITIONS.iter().find(of_this).unwrap_or_else(|| panic!("{name} has no composition"));
        let about = operator.about();
        let title = format!("{name}: {about}\n\n== {composition}");
        let text = playthrough(&title, &*build(composition), &[1, 2]).unwrap();
        let path = directory.join(format!("{name}.txt"));
        if renewal_is_asked_for() {
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(&path, text).unwrap();
        } else if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "playthroughs are missing or differ: {wrong:?}");
    let names: BTreeSet<String> =
        operators().iter().map(|operator| format!("{}.txt", operator.name())).collect();
    let files: BTreeSet<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, files);
}
