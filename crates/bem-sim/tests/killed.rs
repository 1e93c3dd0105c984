//! A real process on real files, killed at many of its operations; the battery does this a thousand times.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use bem_sim::golden::Golden;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const OPERATIONS: usize = 40;

/// Runs the worker until it announces its n-th operation, and returns all lines it got out.
fn work(directory: &str, kill_at: Option<usize>) -> Vec<String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bem-sim"))
        .args(["work", directory, "11", &OPERATIONS.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut lines, mut announced) = (Vec::new(), 0);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        announced += usize::from(line.starts_with("op "));
        lines.push(line);
        if Some(announced) == kill_at {
            child.kill().unwrap();
            break;
        }
    }
    child.wait().unwrap();
    lines
}

fn last_number(lines: &[String], word: &str) -> Option<u64> {
    lines.iter().rev().find_map(|line| line.strip_prefix(word)?.trim().parse().ok())
}

#[test]
fn a_killed_process_keeps_what_it_acknowledged_and_ends_with_the_undisturbed_head() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().to_str().unwrap();
    let mut promised = 0;
    for kill_at in (1..20).chain([25, 31, 38, 47, 55]) {
        let lines = work(directory, Some(kill_at));
        let recovered = last_number(&lines, "recovered ");
        assert!(
            recovered.is_none_or(|size| promised <= size),
            "{promised} acknowledged, {recovered:?} there"
        );
        promised = promised.max(last_number(&lines, "ack ").unwrap_or(0)).max(recovered.unwrap_or(0));
    }
    let lines = work(directory, None);
    let head = Golden::new(11, OPERATIONS).heads.last().unwrap().digest();
    assert_eq!(lines.last(), Some(&format!("done {head}")));
}
