//! `bem games` from outside: exit codes, JSON keys, and one clear line for bad input.

use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn bem(arguments: &[&str], typed: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bem starts");
    child.stdin.take().expect("a pipe").write_all(typed.as_bytes()).expect("bem reads");
    child.wait_with_output().expect("bem ends")
}

fn json(arguments: &[&str], typed: &str) -> Value {
    let output = bem(arguments, typed);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("exactly one JSON object")
}

#[test]
fn every_family_of_the_contract_is_listed_and_shown() {
    let contract = "parity parity_stream majority popcount dyck stack_machine key_value associative_recall bandit \
        contextual_bandit nonstationary_bandit matrix_game signaling auction small_sat safety_grid compare add \
        subtract sorting distance next_token transducer copy reverse permute";
    let list = json(&["games", "list", "--json"], "");
    let listed: Vec<&str> = list["families"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| entry["family"].as_str())
        .collect();
    for family in contract.split_whitespace() {
        assert!(listed.contains(&family), "{family} is not listed");
    }
    for family in listed {
        let shown = json(&["games", "show", family, "--json"], "");
        for key in
            ["obs_bits", "actions", "horizon", "reward_range", "optimum", "random", "clauses", "params"]
        {
            assert!(!shown[key].is_null(), "{family} does not say {key}");
        }
        assert!(shown["random"].as_f64() <= shown["optimum"].as_f64(), "{shown}");
        assert_eq!(bem(&["games", "show", family], "").status.code(), Some(0));
    }
}

#[test]
fn an_episode_can_be_played_through_a_pipe_and_read_as_json() {
    let played = json(&["games", "play", "parity", "--param", "n=4", "--seed", "9", "--json"], "o\n");
    assert_eq!(played["episodes"][0]["return"], 1_000);
    assert_eq!(played["episodes"][0]["finished"], true);
    assert_eq!(played["episodes"][0]["steps"][0]["obs"].as_str().expect("bits").len(), 4);
    let text = bem(&["games", "play", "parity"], "1\n");
    assert!(String::from_utf8_lossy(&text.stdout).contains("over after 1 step"), "{text:?}");
}

#[test]
fn bad_input_gets_one_clear_line_and_exit_code_two() {
    for (arguments, want) in [
        (vec!["games", "show", "chess"], "there is no family called \"chess\""),
        (vec!["games", "show", "parity", "--param", "m=3"], "there is no parameter called \"m\""),
        (vec!["games", "play", "parity", "--param", "n=65"], "must be a whole number from 1 to 64"),
        (vec!["games", "show", "parity", "--param", "n"], "must have the form NAME=VALUE"),
        (vec!["games", "show", "parity", "--param", "n=1", "--param", "n=2"], "parameter n is given twice"),
        (vec!["games", "show", "majority", "--param", "n=3", "--param", "threshold=4"], "is never reached"),
    ] {
        let output = bem(&arguments, "");
        let line = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.contains(want), "{line}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_reader_that_goes_away_changes_neither_the_answer_nor_the_exit_code() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(["games", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bem starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("bem ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()), "{output:?}");
}
