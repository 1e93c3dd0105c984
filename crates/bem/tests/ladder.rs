//! `bem ladder` from outside: the fit of every family, files of measurements, and the regret over templates.
//! Clauses: GLE-5, GLE-6.

use serde_json::Value;
use std::process::{Command, Output};

fn ladder(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bem")).arg("ladder").args(arguments).output().expect("bem starts")
}

fn json(arguments: &[&str]) -> Value {
    let output = ladder(&[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("exactly one JSON object")
}

#[test]
fn every_family_climbs_in_a_straight_line() {
    let answer = json(&[]);
    let families = answer["families"].as_array().expect("a list");
    assert!(26 <= families.len());
    for family in families {
        assert!(0.98 <= family["r_squared"].as_f64().expect("a fit"), "{}", family["family"]);
        assert_eq!(family["rungs"].as_array().map(Vec::len), Some(8));
    }
}

#[test]
fn measurements_are_laid_beside_the_estimate() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("measured.jsonl");
    let rungs = json(&["--families", "parity", "--stages", "4"])["families"][0]["rungs"].clone();
    let mut text = String::new();
    for (index, rung) in rungs.as_array().expect("a list").iter().enumerate() {
        let task = rung["task"].as_str().expect("a task");
        let n = task.trim_start_matches("parity{n=").trim_end_matches('}');
        text.push_str(&format!(
            "{{\"task\":\"parity\",\"params\":{{\"n\":{n}}},\"steps_to_99\":{}}}\n",
            10 * index + 5
        ));
    }
    std::fs::write(&path, &text).expect("a file");
    let file = path.display().to_string();
    let answer = json(&["--families", "parity", "--stages", "4", "--measured", &file]);
    assert_eq!(answer["families"][0]["spearman"], 1.0);
    assert_eq!(answer["families"][0]["rungs"][2]["measured"], 25);
    std::fs::write(&path, format!("{text}oops\n")).expect("a file");
    let output = ladder(&["--measured", &file]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).expect("text");
    assert!(message.contains("line 5 is no result of `bem solve --json`"), "{message}");
}

#[test]
fn bad_arguments_name_what_is_allowed() {
    for (arguments, message) in [
        (["--stages", "1"], "--stages is 1; allowed is 2 to 256"),
        (["--families", "chess"], "there is no family called \"chess\"; known are parity"),
    ] {
        let output = ladder(&arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(message), "{output:?}");
    }
}

#[test]
fn the_choice_among_templates_has_small_regret() {
    let answer = json(&["--bandit"]);
    assert!(answer["worst_exponent"].as_f64().expect("a number") < 0.6, "{answer}");
}
