//! What a terminal of 80 columns shows: helps, `bem doctor`, messages and results fit it. A message that goes to a file or
//! to a program stays one line. Must not know how lines are broken. Clauses: GLE-9, LOG-4.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use support::{bem, solved, text};

const WIDTH: usize = 80;
/// Runs a command whose output goes to a terminal of its own.
const TERMINAL: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/// Every line fits, but for words that are longer than a line by themselves.
fn fits(what: &str, shown: &str) {
    assert!(!shown.trim().is_empty(), "{what} says nothing");
    for line in shown.lines() {
        let letters = line.chars().count();
        let longest = line.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
        assert!(letters <= WIDTH || WIDTH - 24 < longest, "{what}: {letters} columns: {line}");
    }
}

/// What a terminal shows of a command.
fn on_terminal(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("python3")
        .args(["-c", TERMINAL, env!("CARGO_BIN_EXE_bem")])
        .args(arguments)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .stdin(Stdio::null())
        .output()
        .expect("python3");
    assert!(output.stderr.is_empty(), "{output:?}");
    // A progress bar is wiped out before anything else is written.
    let shown = text(&output.stdout).replace('\r', "");
    let left = |line: &str| line.rsplit("\u{1b}[2K").next().unwrap_or_default().to_string() + "\n";
    shown.lines().map(left).collect()
}

/// The names below `Commands:` in a help text.
fn subcommands(help: &str) -> Vec<String> {
    let below =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names =
        below.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_string).collect()
}

#[test]
fn every_help_fits() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut waiting: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = 0;
    while let Some(path) = waiting.pop() {
        let mut words: Vec<&str> = path.iter().map(String::as_str).collect();
        words.push("--help");
        let help = text(&bem(folder.path(), &words).stdout);
        fits(&words.join(" "), &help);
        waiting.extend(subcommands(&help).into_iter().map(|name| [&path[..], &[name]].concat()));
        seen += 1;
    }
    assert!(50 < seen, "{seen} helps");
}

#[test]
fn doctor_fits_whether_it_finds_something_or_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = text(&bem(folder.path(), &["doctor"]).stdout);
    let nothing = Command::new(env!("CARGO_BIN_EXE_bem"))
        .arg("doctor")
        .env("PATH", "/nowhere")
        .output()
        .expect("the program starts");
    fits("doctor", &found);
    fits("doctor without anything", &text(&nothing.stdout));
}

#[test]
fn messages_fit_a_terminal_and_are_one_line_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("log.csv"), "a,b,c\n1,2,3\n2,3,4\n").expect("a file");
    std::fs::write(folder.join("dead.py"), "import sys; sys.exit(3)\n").expect("a file");
    let cases: &[&[&str]] = &[
        &["solve", "partiy"],
        &["solve", "parity", "--param", "n=100000"],
        &["solve", "parity", "--seed", "-1"],
        &["solve", "--env-cmd", "python3 dead.py", "--budget", "10"],
        &["solve", "parity", "--delay-rewards", "9", "--baseline", "x"],
        &["solve", "--resume", "nowhere-to-be-found"],
        &["run", "--minutes", "1", "--steps", "10"],
        &["learn", "log.csv", "--action", "shown", "--reward", "click"],
        &["learn", "log.csv", "--label", "c"],
        &["evaluate", "nothing.policy", "--log", "log.csv", "--action", "a", "--reward", "b"],
        &["export", "nowhere-to-be-found", "--format", "c"],
        &["verify", "nowhere-to-be-found"],
        &["serve", "--listen", "0.0.0.0:0", "--state", "served"],
        &["table", "--sedes", "3"],
    ];
    let mut wide = 0;
    for words in cases {
        let piped = bem(folder, words);
        let line = text(&piped.stderr);
        assert_eq!(piped.status.code(), Some(2), "{words:?}: {piped:?}");
        assert_eq!(line.lines().count(), 1, "{words:?}: {line}");
        wide += usize::from(WIDTH < line.trim_end().chars().count());
        let shown = on_terminal(folder, words);
        fits(&words.join(" "), &shown);
        // The same words, on as many lines as they need.
        let joined: Vec<&str> = shown.split_whitespace().collect();
        assert_eq!(joined, line.split_whitespace().collect::<Vec<_>>(), "{words:?}");
    }
    assert!(5 <= wide, "{wide} messages need more than one line");
}

#[test]
fn results_fit() {
    let task = "seq(parity{n=3},contextual_bandit{context_bits=2,arms=3,noise_bits=1})";
    let folder = solved(&[task, "--budget", "1500"]);
    let folder = folder.path();
    for words in [
        &["solve", task, "--budget", "1500"][..],
        &["solve", "bandit", "--budget", "3000"],
        &["explain", "kept"],
        &["verify", "kept"],
        &["replay", "kept"],
    ] {
        let output = bem(folder, words);
        assert!(output.status.code() < Some(2), "{words:?}: {output:?}");
        let said = text(&output.stdout);
        fits(&words.join(" "), &said);
        for wrong in [" 1 memory bits", " 1 episodes"] {
            assert!(!said.contains(wrong), "{wrong}: {said}");
        }
    }
    let shown = on_terminal(folder, &["solve", "parity", "--param", "n=4"]);
    fits("solve on a terminal", &shown);
}

/// Every line fits as it stands, digests and names included.
fn fits_wholly(what: &str, shown: &str) {
    assert!(!shown.trim().is_empty(), "{what} says nothing");
    for line in shown.lines() {
        let letters = line.chars().count();
        assert!(letters <= WIDTH, "{what}: {letters} columns: {line}");
    }
}

#[test]
fn lists_and_records_fit() {
    let folder = solved(&["contextual_bandit", "--budget", "1500"]);
    let folder = folder.path();
    std::fs::create_dir(folder.join("a_folder_for_what_is_made_of_policies")).expect("a folder");
    for words in [
        &["games", "list"][..],
        &["games", "show", "matrix_game"],
        &["games", "show", "contextual_bandit", "--param", "context_bits=8"],
        &["games", "show", "key_value"],
        &["config", "show"],
        &["ladder"],
        &["ladder", "--stages", "40"],
        &["ladder", "--families", "parity,matrix_game,next_token,rulegrid"],
        &["inspect", "kept", "--count", "500"],
        &["inspect", "constants"],
        &["snapshot", "kept", "--out", "a_snapshot_of_what_was_learned_so_far"],
        &["restore", "a_snapshot_of_what_was_learned_so_far", "--out", "learned_so_far_and_restored"],
        &["export", "kept", "--format", "c", "--out", "a_folder_for_what_is_made_of_policies/reorder.h"],
        &[
            "export",
            "kept",
            "--format",
            "python",
            "--out",
            "a_folder_for_what_is_made_of_policies/reorder.py",
        ],
    ] {
        let output = bem(folder, words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        fits_wholly(&words.join(" "), &text(&output.stdout));
    }
    // What is folded for people is the same file.
    std::fs::write(folder.join("shown.toml"), bem(folder, &["config", "show"]).stdout).expect("a file");
    let checked = bem(folder, &["config", "check", "shown.toml"]);
    std::fs::write(folder.join("empty.toml"), "").expect("a file");
    assert_eq!(text(&checked.stdout), text(&bem(folder, &["config", "check", "empty.toml"]).stdout));
}
