//! What a run uses: every kind of entry, the scheduler, the barrier, the control core, and a teacher that makes templates.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn bem(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bem"));
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command.args(arguments).output().unwrap()
}

fn run(directory: &Path, rest: &[&str]) -> Value {
    let out = directory.display().to_string();
    let mut arguments = vec!["run", "--out", &out, "--json"];
    arguments.extend_from_slice(rest);
    let output = bem(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The audit finds nothing, and a replay gives the same entries.
fn check(directory: &Path) {
    let name = directory.display().to_string();
    let audit: Value = serde_json::from_slice(&bem(&["verify", &name, "--json"]).stdout).unwrap();
    assert_eq!(audit["verdict"], "unanchored", "{audit}");
    let replay = bem(&["replay", &name]);
    assert!(replay.status.success(), "{}", String::from_utf8_lossy(&replay.stdout));
}

/// How many entries of a kind there are, and how many events of a name.
fn count(inspected: &str, word: &str) -> usize {
    inspected.lines().filter(|line| line.split_whitespace().any(|found| found == word)).count()
}

/// The sum of a number over all families.
fn sum(run: &Value, path: &str) -> u64 {
    let families = run["families"].as_array().unwrap();
    families.iter().map(|family| family.pointer(path).and_then(Value::as_u64).unwrap()).sum()
}

#[test]
fn a_small_run_uses_what_the_specification_names() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("run");
    let families = "parity,majority,compare,bandit,nonstationary_bandit";
    let whole = run(&directory, &["--families", families, "--steps", "90000", "--unit-steps", "4000"]);

    // Every kind of entry that a run without tools and people has, step, episode and reset among them.
    let inspected = bem(&["inspect", &directory.display().to_string(), "--count", "1000000"]).stdout;
    let inspected = String::from_utf8(inspected).unwrap();
    for kind in ["genesis", "step_block", "episode", "patch", "reset", "tables", "snapshot", "event", "play"]
    {
        assert!(0 < count(&inspected, kind), "no entry of kind {kind}");
    }
    for name in ["UNIT_BEGIN", "UNIT_END", "PROVEN", "TAUGHT", "LOGGED", "SCHEDULED"] {
        assert!(0 < count(&inspected, name), "no event {name}");
    }
    assert_eq!(count(&inspected, "PROVEN"), 1);

    // A scheduler gave out units of all three kinds, and group advantages moved priors.
    for activity in ["act", "synth", "verify"] {
        assert!(0 < whole["scheduled"][activity].as_u64().unwrap(), "{}", whole["scheduled"]);
    }
    assert!(0 < whole["barriers"].as_u64().unwrap() && 0 < whole["priors_moved"].as_u64().unwrap());

    // Programs of the control core asked for tasks; templates of every origin were practised, and compositions solved.
    assert!(0 < sum(&whole, "/requests"));
    for origin in ["composition", "trace", "counterexample", "mutation"] {
        let (made, practised) = (format!("/teach_edits/{origin}"), format!("/practised_from/{origin}"));
        assert!(0 < sum(&whole, &made) && 0 < sum(&whole, &practised), "{origin}: {whole}");
    }
    let solved = |family: &Value| family["compositions_solved"].as_array().map_or(0, Vec::len);
    assert!(0 < whole["families"].as_array().unwrap().iter().map(solved).sum::<usize>());
    check(&directory);
}

#[test]
fn every_scheduler_completes_a_run() {
    let folder = tempfile::tempdir().unwrap();
    for rule in ["paced", "activities", "linear", "schedules"] {
        let (config, directory) = (folder.path().join(format!("{rule}.toml")), folder.path().join(rule));
        std::fs::write(&config, format!("scheduler = \"{rule}\"\n")).unwrap();
        let config = config.display().to_string();
        let rest = ["--families", "parity,compare", "--stages", "3", "--steps", "15000", "--config", &config];
        let whole = run(&directory, &rest);
        for activity in ["act", "synth", "verify"] {
            assert!(0 < whole["scheduled"][activity].as_u64().unwrap(), "{rule}: {}", whole["scheduled"]);
        }
        let solved = |family: &Value| family["rungs_solved"].as_u64().unwrap();
        assert!(whole["families"].as_array().unwrap().iter().all(|family| 0 < solved(family)), "{rule}");
        check(&directory);
    }
}
