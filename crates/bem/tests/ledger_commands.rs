//! `bem verify`, `proof`, `witness` and `inspect` as a user runs them, on ledgers written by the library.

use bem_ledger::entry::Entry;
use bem_ledger::limits::ENTRY_BYTES_MAX;
use bem_ledger::log::{Log, LogOptions, store_blob};
use bem_ledger::store::MemoryStore;
use bem_ledger::testing::{self, Operation, Workload};
use std::path::{Path, PathBuf};
use std::process::Command;

const OPTIONS: LogOptions = LogOptions { segment_bytes: 2_000, ring_bytes: ENTRY_BYTES_MAX + 4 };

fn write_ledger(directory: &Path, seed: u64, operations: u64) {
    let mut store = MemoryStore::new();
    store_blob(&mut store, testing::CONFIGURATION).unwrap();
    let mut log = Log::create(store, testing::signer(), &testing::genesis(seed), OPTIONS).unwrap();
    let mut workload = Workload::new(seed);
    for _ in 0..operations {
        // A history that is no run's has no patches: nobody could say what they had to prove.
        let operation = match workload.next_operation() {
            Operation::Patch(_, Entry::Patch(patch)) => {
                let (step, edits, roots) = (patch.step, patch.edits.clone(), patch.roots_after);
                Operation::Append(Entry::Tables { step, edits, roots })
            }
            other => other,
        };
        Workload::apply(&operation, &mut log).unwrap();
    }
    log.commit().unwrap();
    let _ = std::fs::remove_dir_all(directory.join("ledger"));
    std::fs::create_dir_all(directory.join("ledger")).unwrap();
    for (name, content) in log.into_store().files {
        std::fs::write(directory.join("ledger").join(name), content).unwrap();
    }
}

/// Exit code, standard output and standard error.
fn bem(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bem")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn verdict(arguments: &[&str]) -> (i32, serde_json::Value) {
    let (code, output, error) = bem(&[&["verify", "--json"], arguments].concat());
    (code, serde_json::from_str(&output).unwrap_or_else(|_| panic!("{output}{error}")))
}

#[test]
fn a_run_is_unanchored_alone_ok_with_a_witness_and_broken_when_rolled_back() {
    let scratch = tempfile::tempdir().unwrap();
    let (run, state) = (scratch.path().join("run"), scratch.path().join("witness"));
    write_ledger(&run, 1, 40);
    let (code, report) = verdict(&[text(&run)]);
    assert_eq!((code, &report["verdict"]), (0, &"unanchored".into()));
    assert_eq!(report["entries"], 41);

    let (code, signed, _) = bem(&["witness", text(&run), "--state", text(&state)]);
    assert_eq!(code, 0);
    let kept = scratch.path().join("kept.txt");
    std::fs::write(&kept, signed).unwrap();
    let (code, report) = verdict(&[text(&run), "--checkpoint", text(&kept)]);
    assert_eq!((code, &report["verdict"], &report["anchored_entries"]), (0, &"ok".into(), &41.into()));

    write_ledger(&run, 1, 60);
    let (_, report) = verdict(&[text(&run), "--checkpoint", text(&kept)]);
    assert_eq!((&report["verdict"], &report["entries"]), (&"ok".into(), &61.into()));
    assert_eq!(bem(&["witness", text(&run), "--state", text(&state)]).0, 0);

    write_ledger(&run, 1, 30);
    let (code, report) = verdict(&[text(&run), "--checkpoint", text(&kept)]);
    assert_eq!((code, &report["verdict"], &report["entry"]), (1, &"broken".into(), &31.into()));
    let (code, _, error) = bem(&["witness", text(&run), "--state", text(&state)]);
    assert_eq!(code, 1);
    assert!(error.contains("a rollback: 61 entries were signed, 31 are offered"), "{error}");
}

#[test]
fn a_flipped_bit_is_named_with_its_entry() {
    let scratch = tempfile::tempdir().unwrap();
    write_ledger(scratch.path(), 2, 40);
    let segment = scratch.path().join("ledger/segment-00000001.log");
    let mut bytes = std::fs::read(&segment).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 4;
    std::fs::write(&segment, bytes).unwrap();
    let (code, output, _) = bem(&["verify", text(scratch.path())]);
    assert_eq!(code, 1);
    assert!(output.starts_with("broken at entry "), "{output}");
}

#[test]
fn proofs_hold_and_changed_ones_do_not() {
    let scratch = tempfile::tempdir().unwrap();
    write_ledger(scratch.path(), 3, 40);
    let file: PathBuf = scratch.path().join("proof.json");
    for arguments in [
        &["proof", "inclusion", text(scratch.path()), "--entry", "17"][..],
        &["proof", "consistency", text(scratch.path()), "--old", "11", "--new", "29"],
    ] {
        let (code, proof, _) = bem(arguments);
        assert_eq!(code, 0);
        std::fs::write(&file, &proof).unwrap();
        assert_eq!(bem(&["proof", "check", text(&file)]), (0, "the proof holds\n".into(), String::new()));
        std::fs::write(&file, proof.replacen("\"proof\":[\"", "\"proof\":[\"0000", 1)).unwrap();
        assert_eq!(bem(&["proof", "check", text(&file)]).0, 2);
        let mut changed: serde_json::Value = serde_json::from_str(&proof).unwrap();
        changed["proof"][0] = "00".repeat(32).into();
        std::fs::write(&file, changed.to_string()).unwrap();
        assert_eq!(bem(&["proof", "check", text(&file)]).0, 1);
    }
    let (code, _, error) = bem(&["proof", "inclusion", text(scratch.path()), "--entry", "41"]);
    assert_eq!((code, error.as_str()), (2, "bem: entry 41 is out of range: allowed is 0 to 40\n"));
}

#[test]
fn inspect_reads_runs_and_files_and_says_what_it_does_not_know() {
    let scratch = tempfile::tempdir().unwrap();
    write_ledger(scratch.path(), 4, 60);
    let (code, output, _) = bem(&["inspect", text(scratch.path()), "--count", "3"]);
    // An entry that goes on in a further line is indented there.
    let entries = output.lines().filter(|line| !line.starts_with("            ")).count();
    assert_eq!((code, entries), (0, 4), "{output}");
    let ledger = scratch.path().join("ledger");
    for (prefix, words) in
        [("snapshot", "snapshot "), ("segment", "segment "), ("checkpoint", "checkpoint of")]
    {
        let names = std::fs::read_dir(&ledger).unwrap().map(|entry| entry.unwrap().path());
        let path =
            names.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix));
        let (code, output, _) = bem(&["inspect", text(&path.unwrap())]);
        assert!(code == 0 && output.starts_with(words), "{output}");
    }
    let stranger = scratch.path().join("stranger");
    std::fs::write(&stranger, "hello").unwrap();
    let (code, _, error) = bem(&["inspect", text(&stranger)]);
    assert!(code == 2 && error.contains("not a snapshot, segment or checkpoint"), "{error}");
}

#[test]
fn a_directory_that_is_no_run_is_an_error_of_one_line() {
    let scratch = tempfile::tempdir().unwrap();
    let (code, _, error) = bem(&["verify", text(scratch.path())]);
    assert_eq!((code, error.lines().count()), (2, 1));
    assert!(error.contains("neither a run nor a ledger"), "{error}");
    assert_eq!(bem(&["verify", "/no/such/place"]).0, 2);
}
