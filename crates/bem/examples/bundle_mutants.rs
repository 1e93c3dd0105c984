//! The battery of bundles: policies of every family exported and accepted by both checkers, and mutants of every part of
//! them refused. `cargo xtask battery bundles`.
//!
//! Arguments: the program `bem`, and how many mutants of each part.

#[path = "../tests/mutants/mod.rs"]
mod mutants;

use bem_games::catalog;
use bem_ledger::checkpoint::Signer;
use mutants::{Count, Court, PARTS, try_part};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Steps of every task: enough for a policy, solved or not.
const BUDGET: &str = "6000";

fn exported(bem: &str, folder: &Path, family: &str) -> Value {
    let run = |words: &[&str]| {
        let output = Command::new(bem).args(words).current_dir(folder).output().expect("bem starts");
        assert!(output.status.code() < Some(2), "{family}: {output:?}");
    };
    run(&["solve", family, "--budget", BUDGET, "--out", family, "--key", "key", "--json"]);
    let file = format!("{family}.bundle");
    run(&["export", family, "--format", "bundle", "--out", &file, "--key", "key"]);
    let text = std::fs::read_to_string(folder.join(file)).expect("a bundle");
    serde_json::from_str(&text).expect("JSON")
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let [_, bem, count] = words.as_slice() else {
        eprintln!("bundle_mutants BEM COUNT");
        return ExitCode::from(2);
    };
    let count: u64 = count.parse().expect("a count");
    let folder = std::env::temp_dir().join(format!("bem-bundles-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut court = Court::new(bem, &folder);
    let families: Vec<&str> = catalog::families().iter().map(|family| family.name()).collect();
    let mut totals = [Count::default(); PARTS.len()];
    let each = count.div_ceil(families.len() as u64);
    for (place, family) in families.iter().enumerate() {
        let bundle = exported(bem, &folder, family);
        assert!(court.accept(&(bundle.to_string() + "\n")), "{family} is not accepted");
        let seed = std::fs::read(folder.join("key")).expect("the key");
        let signer = Signer::from_seed(&seed.try_into().expect("32 bytes"));
        for (total, part) in totals.iter_mut().zip(PARTS) {
            let found = try_part(&mut court, &bundle, part, each, &signer, place as u64);
            total.refused += found.refused;
            total.signed_refused += found.signed_refused;
            total.signed_true += found.signed_true;
        }
        let stated = if bundle["body"]["statement"].is_null() { "" } else { ", with a statement" };
        let refused: u64 = totals.iter().map(|total| total.refused + total.signed_refused).sum();
        println!("{family}: accepted by both{stated}; {refused} mutants refused so far");
    }
    for (total, part) in totals.iter().zip(PARTS) {
        println!(
            "{part}: {} refused by both; signed anew {} refused by both, {} accepted by both and true",
            total.refused, total.signed_refused, total.signed_true
        );
    }
    let _ = std::fs::remove_dir_all(&folder);
    ExitCode::SUCCESS
}
