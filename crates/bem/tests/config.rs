//! The configuration as a user meets it: shown, checked, given to a run, kept by it, and refused in one line.
//! Clauses: MEM-3, LOG-5.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn bem(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(arguments)
        .env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = bem(arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// The one line with which a command refuses.
fn refusal(arguments: &[&str]) -> String {
    let output = bem(arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed something");
    error
}

fn file(folder: &Path, name: &str, lines: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, lines).unwrap();
    path.display().to_string()
}

/// What a run would take and never use is refused before it begins; the control is the same file with the other router.
#[test]
fn a_router_that_no_run_asks_is_refused_and_the_line_says_what_to_use() {
    let folder = tempfile::tempdir().unwrap();
    let searched = file(folder.path(), "searched.toml", "router = \"hamming\"\n");
    let listed = file(folder.path(), "listed.toml", "router = \"directory\"\n");
    let out = folder.path().join("run").display().to_string();
    for words in [
        &["solve", "parity", "--budget", "100", "--config", &searched][..],
        &["run", "--steps", "100", "--families", "parity", "--out", &out, "--config", &searched],
        &["config", "check", &searched],
    ] {
        let line = refusal(words);
        assert!(line.contains("router cannot be \"hamming\" in a run"), "{line}");
        assert!(line.contains("use router = \"directory\""), "{line}");
    }
    assert!(!Path::new(&out).exists());
    assert!(bem(&["config", "check", &listed]).status.success());
}

#[test]
fn a_file_reaches_the_run_and_the_run_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let plain = file(folder.path(), "plain.toml", "# a choice by statistics alone\nsynthesis = false\n");
    let solve = |more: &[&str]| json(&[&["solve", "parity", "--budget", "3000", "--json"], more].concat());
    let (usual, changed) = (solve(&[]), solve(&["--config", &plain]));
    assert_eq!((&usual["solved"], &changed["solved"]), (&Value::from(true), &Value::from(false)));
    assert_eq!((&changed["gates"], &changed["proofs_checked"]), (&Value::from(0), &Value::from(0)));
    let shown = json(&["config", "show", "--config", &plain, "--json"]);
    let parameter = |name: &str| {
        let all = shown["parameters"].as_array().unwrap();
        all.iter().find(|parameter| parameter["name"] == name).unwrap().clone()
    };
    assert_eq!(
        (&parameter("synthesis")["value"], &parameter("synthesis")["default"]),
        (&false.into(), &true.into())
    );
    assert_eq!(parameter("band_thresholds")["value"][1], 0.125);

    // The run keeps it: going on and playing again need no file, and another one is refused.
    let out = folder.path().join("run").display().to_string();
    let begun = ["run", "--families", "parity", "--threads", "1", "--json", "--steps", "500", "--out", &out];
    let first = json(&[&begun[..], &["--config", &plain]].concat());
    let usual = folder.path().join("usual").display().to_string();
    let other = json(&[&begun[..9], &[&usual]].concat());
    assert_ne!(first["trace_head"], other["trace_head"]);
    let resume = ["run", "--resume", &out, "--steps", "30000", "--threads", "1", "--json"];
    let again = file(folder.path(), "again.toml", "synthesis = false\nsearch_steps_max = 64_000\n");
    let further = json(&[&resume[..], &["--config", &again]].concat());
    assert!(first["steps"].as_u64() < further["steps"].as_u64());
    let line = refusal(&[&resume[..], &["--config", &file(folder.path(), "other.toml", "")]].concat());
    assert!(line.contains("synthesis is false in this run and true in the file"), "{line}");
    let replay = bem(&["replay", &out]);
    assert!(
        replay.status.success() && text(&replay.stdout).contains(further["trace_head"].as_str().unwrap())
    );
    assert!(bem(&["verify", &out]).status.success());
}

#[test]
fn a_wrong_file_is_one_line_with_file_line_key_value_and_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("# mine\n\nlanse = 1\n", "line 3: there is no parameter \"lanse\""),
        (
            "buckets = \"many\"\n",
            "line 1: buckets cannot be \"many\": it must be a whole number from 1 to 1024",
        ),
        (
            "guard = true\nexpert_slots = 99\n",
            "line 2: expert_slots cannot be 99: it must be a whole number from 2 to 16",
        ),
        (
            "prior_max = 0.5\nprior_min = 1\n",
            "line 2: prior_min cannot be 1.0: it must be a decimal from -64 to 0",
        ),
        ("a = [", "line 1: "),
    ];
    for (number, (lines, wanted)) in cases.iter().enumerate() {
        let name = file(folder.path(), &format!("{number}.toml"), lines);
        let commands: [&[&str]; 5] = [
            &["config", "show", "--config"],
            &["config", "check"],
            &["solve", "parity", "--config"],
            &["run", "--steps", "10", "--config"],
            &["table", "--seeds", "1", "--config"],
        ];
        for command in commands {
            let line = refusal(&[command, &[&name]].concat());
            assert!(line.contains(&name) && line.contains(wanted), "{command:?}: {line}");
        }
    }
    // A world that the configuration has no room for is refused by name as well.
    let short = file(folder.path(), "short.toml", "episode_steps_max = 4\n");
    let line = refusal(&["solve", "dyck", "--config", &short]);
    assert!(line.contains("dyck") && line.contains("does not fit the configuration"), "{line}");
}

#[test]
fn the_golden_reference_of_all_parameters_is_current() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md"));
    let wanted = text(&bem(&["config", "show", "--markdown"]).stdout);
    if std::env::var("BEM_GOLDEN").is_ok_and(|value| value == "renew") {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == wanted, "cargo xtask golden renews docs/config.md");
}
