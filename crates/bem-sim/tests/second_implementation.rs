//! Proofs, checkpoints and whole ledgers judged by `python/tlog_verify.py`, which shares no code with the ledger.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use bem_ledger::limits::ENTRY_BYTES_MAX;
use bem_ledger::log::{Log, LogOptions};
use bem_ledger::store::MemoryStore;
use bem_ledger::testing::{self, Workload};
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/tlog_verify.py");

fn python(arguments: &[&str]) -> String {
    let output = Command::new("python3").arg(SCRIPT).args(arguments).output();
    let output = output.expect("python3 is needed: run `cargo xtask test`");
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[test]
fn both_implementations_agree_on_every_honest_and_every_damaged_case() {
    let cases = bem_sim::cases::cases(1, 1_000, 60);
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines: String = cases.iter().map(|case| format!("{}\n", case.line)).collect();
    std::fs::write(file.path(), lines).unwrap();
    let answers = python(&["cases", file.path().to_str().unwrap()]);
    assert_eq!(answers.lines().count(), cases.len(), "{answers}");
    for (case, answer) in cases.iter().zip(answers.lines()) {
        assert_eq!(answer == "yes", case.holds, "{}", case.line);
    }
    let accepted = cases.iter().filter(|case| case.holds).count();
    assert!(2_060 <= accepted && 1_800 <= cases.len() - accepted, "{accepted} of {}", cases.len());
}

#[test]
fn the_other_implementation_derives_the_same_root_and_head_from_the_raw_files() {
    let options = LogOptions { segment_bytes: 4_000, ring_bytes: ENTRY_BYTES_MAX + 4 };
    let mut log = Log::create(MemoryStore::new(), testing::signer(), &testing::genesis(1), options).unwrap();
    let mut workload = Workload::new(1);
    for _ in 0..300 {
        Workload::apply(&workload.next_operation(), &mut log).unwrap();
    }
    log.commit().unwrap();
    let (root, head) = (log.root(), log.head().digest());
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in &log.into_store().files {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    let path = directory.path().to_str().unwrap();
    let want = format!(
        "{{\"verdict\": \"unanchored\", \"entries\": 301, \"root\": \"{root}\", \"head\": \"{head}\"}}\n"
    );
    assert_eq!(python(&["ledger", path]), want);
    let segment = directory.path().join("segment-00000003.log");
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    assert!(python(&["ledger", path]).starts_with("{\"verdict\": \"broken\""));
}
