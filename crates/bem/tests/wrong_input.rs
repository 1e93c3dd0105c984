//! Wrong input to every command: one line that names what was given, exit code 2, and nothing on standard output.

use std::path::Path;
use std::process::Command;

/// Runs the program in a folder of its own and returns the one line that it must answer with.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(arguments)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .output()
        .expect("the program starts");
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
    assert!(error.starts_with("bem: "), "{arguments:?}: {error}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed something");
    error
}

fn folder_with_wrong_things() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes: Vec<u8> = (0..3_000u32).map(|place| (place * place / 7 + 129) as u8).collect();
    for name in ["garbage", "garbage.json", "garbage.efg", "garbage.nfg"] {
        std::fs::write(folder.path().join(name), &bytes).expect("a file");
    }
    for name in ["folder", "folder.json"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    folder
}

#[test]
fn missing_files_folders_and_garbage_are_refused_by_name_everywhere() {
    let folder = folder_with_wrong_things();
    let commands: &[&[&str]] = &[
        &["verify"],
        &["replay"],
        &["snapshot"],
        &["export"],
        &["explain"],
        &["inspect"],
        &["run", "--resume"],
        &["restore", "--out", "new"],
        &["proof", "request"],
        &["proof", "check"],
        &["witness", "--state", "."],
        &["prove", "sat"],
        &["prove", "check", "--form", "lrat", "other.lrat"],
        &["prove", "equiv", "folder"],
        &["synth"],
        &["asm"],
        &["disasm"],
        &["exec"],
        &["hoare"],
        &["config", "check"],
        &["ladder", "--measured"],
        &["solve", "--game"],
        &["games", "show", "--game"],
    ];
    for command in commands {
        for wrong in ["missing", "folder", "garbage"] {
            let line = refusal(folder.path(), &[command, &[wrong][..]].concat());
            let named = ["missing", "folder", "garbage", "other.lrat"].iter().any(|name| line.contains(name));
            assert!(named, "{command:?} {wrong}: {line}");
        }
    }
    for wrong in ["missing.json", "folder.json", "garbage.json", "garbage.efg", "garbage.nfg"] {
        assert!(refusal(folder.path(), &["solve", "--game", wrong]).contains(wrong));
    }
}

#[test]
fn numbers_out_of_range_and_unknown_names_say_what_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = "it must be a whole number, 0 or more";
    let cases: &[(&[&str], &str)] = &[
        (&["sovle"], "'solve'"),
        (&["games", "lsit"], "'list'"),
        (&["solve", "partiy"], "there is no family called \"partiy\" (did you mean parity?)"),
        (&["run", "--families", "dyk"], "(did you mean dyck?)"),
        (&["ladder", "--families", "bandti"], "(did you mean bandit?)"),
        (&["bench", "step_singel"], "(did you mean step_single?)"),
        (&["solve", "parity", "--sede", "1"], "'--seed'"),
        (&["solve", "parity", "--seed", "-1"], whole),
        (&["solve", "parity", "--budget", "many"], whole),
        (&["solve", "parity", "--budget", "99999999999999999999"], "it must be at most 18446744073709551615"),
        (&["solve", "parity", "--param", "n=-1"], "it must be a whole number from 1 to 64"),
        (
            &["solve", "--env-cmd", "true", "--env-timeout", "0"],
            "--env-timeout 0 is out of range: 1 to 86400",
        ),
        (&["run", "--minutes", "-1"], "--minutes -1 is out of range: 0 to 100000"),
        (&["run", "--minutes", "soon"], "--minutes cannot be \"soon\": it must be a number"),
        (&["run", "--threads", "99999"], "--threads 99999 is out of range: 1 to 1024"),
        (&["run", "--unit-steps", "0"], "--unit-steps 0 is out of range: at least 1"),
        (&["ladder", "--stages", "999"], "allowed is 2 to 256"),
        (
            &["ladder", "--measure", "--seed", "18446744073709551615"],
            "--seed 18446744073709551615 is out of range: 0 to 18446744073709551610",
        ),
        (
            &["table", "--first-seed", "18446744073709551615"],
            "--first-seed 18446744073709551615 is out of range: 0 to 18446744073709551610",
        ),
        (&["table", "--peer-steps", "-1"], whole),
        (&["table", "--scramble", "eggs"], "allowed are none, actions, fields, bits"),
        (&["inspect", "constants", "--from", "-1"], whole),
        (&["exec", "x", "--steps", "-1"], whole),
        (&["curriculum", "run", "--seeds", "one"], whole),
        (&["curriculum", "render", "--arm", "left"], "it must be one of emergent, forced_low"),
        (&["prove"], "a word is missing: one of sat, check, holds, equiv"),
    ];
    for (arguments, wanted) in cases {
        let line = refusal(folder.path(), arguments);
        assert!(line.contains(wanted), "{arguments:?}: {line}");
    }
}
