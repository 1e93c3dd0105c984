//! `bem run --world`: a user's parametrised world is measured, ordered, climbed, and kept like a run over families.
//! Clauses: GLE-5, GLE-9.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn bem(state: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(arguments)
        .env("XDG_STATE_HOME", state)
        .current_dir(root())
        .output()
        .expect("bem starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_string()
}

#[test]
fn a_users_world_is_measured_ordered_climbed_and_audited() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let out = out.to_str().unwrap();
    let world = ["run", "--world", "examples/worlds/lock.toml", "--steps", "60000", "--unit-steps", "4000"];
    let output = bem(folder.path(), &[&world[..], &["--out", out, "--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ladder = &report["ladder"];
    let settings = ladder["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 12);
    let medians: Vec<u64> = settings.iter().map(|row| row["median"].as_u64().unwrap_or(u64::MAX)).collect();
    assert!(medians.is_sorted(), "{medians:?}");
    assert!(0.8 <= ladder["rank_correlation"].as_f64().unwrap(), "{ladder}");
    let family = &report["families"][0];
    assert_eq!((family["family"].as_str(), family["rungs"].as_u64()), (Some("lock"), Some(5)), "{family}");
    assert_eq!(family["rungs_solved"], 5, "{family}");
    for words in
        [&["verify", out][..], &["replay", out], &["export", out, "--expert", "lock/4", "--format", "c"]]
    {
        let output = bem(folder.path(), words);
        assert!(output.status.success(), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn games_of_a_world_are_climbed_with_the_same_history_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bits.toml");
    let declared =
        "name = 'bits'\ngame = 'majority{n={n},noise={noise}}'\n[grid]\nn = [3, 5]\nnoise = [0, 5]\n";
    std::fs::write(&file, declared).unwrap();
    let heads: Vec<String> = ["1", "3"]
        .iter()
        .map(|threads| {
            let out = folder.path().join(format!("run-{threads}"));
            let words = ["run", "--world", file.to_str().unwrap(), "--stages", "3", "--steps", "20000"];
            let rest = ["--threads", threads, "--out", out.to_str().unwrap(), "--json"];
            let output = bem(folder.path(), &[&words[..], &rest].concat());
            assert!(output.status.success(), "{}", text(&output.stderr));
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["families"][0]["rungs_solved"], 3, "{report}");
            report["trace_head"].as_str().unwrap().to_string()
        })
        .collect();
    assert_eq!(heads[0], heads[1]);
}

/// A table of so many states, in each of which one of two actions pays, by a pattern.
fn table(states: usize) -> String {
    let start: Vec<String> = (0..states).map(|state| format!("[{state}, 1]")).collect();
    let pays = |state: usize| (state.count_ones() as usize + state / 3) % 2;
    let move_of = |state: usize, action: usize| {
        format!("[{state}, {action}, {state}, 1, {}, true]", if action == pays(state) { 1_000 } else { 0 })
    };
    let moves: Vec<String> =
        (0..states).flat_map(|state| (0..2).map(move |action| move_of(state, action))).collect();
    format!(
        "{{\"states\": {states}, \"actions\": 2, \"horizon\": 1, \"start\": [{}], \"transitions\": [{}], \"observe\": \"state\"}}",
        start.join(", "),
        moves.join(", ")
    )
}

#[test]
fn a_world_of_files_is_ordered_climbed_and_played_again_without_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [2, 8, 32];
    for states in sizes {
        std::fs::write(folder.path().join(format!("table-{states}.json")), table(states)).unwrap();
    }
    let file = folder.path().join("tables.toml");
    std::fs::write(&file, "name = 'tables'\nfile = 'table-{n}.json'\n[grid]\nn = [32, 2, 8]\n").unwrap();
    let out = folder.path().join("run");
    let out = out.to_str().unwrap();
    let words = ["run", "--world", file.to_str().unwrap(), "--stages", "3", "--steps", "40000"];
    let rest = ["--unit-steps", "8000", "--out", out, "--json"];
    let output = bem(folder.path(), &[&words[..], &rest].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let settings = report["ladder"]["settings"].as_array().unwrap();
    // Larger tables take longer; that rows are in the order of their steps holds by construction.
    let order: Vec<&str> = settings.iter().map(|row| row["params"]["n"].as_str().unwrap()).collect();
    assert_eq!(order, ["2", "8", "32"], "{report}");
    assert!(0.8 <= report["ladder"]["rank_correlation"].as_f64().unwrap(), "{report}");
    assert_eq!(report["families"][0]["rungs_solved"], 3, "{report}");
    // The tables are kept with the run.
    for states in sizes {
        std::fs::remove_file(folder.path().join(format!("table-{states}.json"))).unwrap();
    }
    for words in [["verify", out], ["replay", out]] {
        let output = bem(folder.path(), &words);
        assert!(output.status.success(), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn a_wrong_world_is_one_line_that_names_the_file_and_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.toml");
    for (declared, words) in [
        ("name = 'w'\ngame = 'parity{n={n}}'\n", "either [grid]"),
        ("name = 'w'\ngame = 'parity{n={n}}'\n[grid]\nn = [4, 400]\n", "must be a whole number from 1 to 64"),
        ("name = 'w'\ncommand = 'true {n}'\n[grid]\nn = [4, 400]\n", "the program has ended"),
        (
            "name = 'w'\ncommand = 'python3 examples/count_env.py # {n}'\n[grid]\nn = [4, 400]\n",
            "says no \"optimum\"",
        ),
        ("name = 'w'\nfile = 'no-{n}.json'\n[grid]\nn = [4, 400]\n", "no-4.json"),
    ] {
        std::fs::write(&file, declared).unwrap();
        let output = bem(folder.path(), &["run", "--world", file.to_str().unwrap()]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("w.toml") && said.contains(words), "{words}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
}
