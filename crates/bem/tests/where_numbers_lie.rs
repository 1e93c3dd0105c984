//! Numbers whose declared bounds are far wider than what is seen of them: a look before the first step cuts them where their
//! values lie, and the run keeps the places. Clauses: GLE-9, LOG-5; decision D-317.

#[allow(dead_code, reason = "the run is kept by the test itself")]
mod support;

use serde_json::Value;
use std::path::Path;
use std::process::Output;
use support::{bem, text};

/// Learns the press, with its actions counted in a file of this folder.
fn press(folder: &Path, arguments: &[&str]) -> Output {
    let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worlds/press.py");
    let world = format!("python3 {} actions.log", world.display());
    bem(folder, &[&["solve", "--env-cmd", &world], arguments].concat())
}

fn told(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one object")
}

/// Actions that the world has taken.
fn taken(folder: &Path) -> u64 {
    std::fs::read_to_string(folder.join("actions.log")).expect("a log").lines().count() as u64
}

#[test]
fn a_rule_between_two_places_of_the_declared_grid_is_learned() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in ["1", "2", "3"] {
        let found = told(&press(folder.path(), &["--budget", "20000", "--seed", seed, "--json"]));
        let earned = found["return_mean"].as_f64().expect("a return");
        assert!(0.99 <= earned, "seed {seed}: {found}");
    }
}

#[test]
fn where_nobody_may_look_the_declared_grid_stays_and_a_warning_says_what_helps() {
    // The control: a baseline must not be fallen below, so that nothing is played before the first step.
    let folder = tempfile::tempdir().expect("a folder");
    let kept = ["--baseline", "1", "--conservative", "0.5", "--budget", "20000"];
    let shown = press(folder.path(), &kept);
    let said = text(&shown.stderr);
    assert!(
        said.contains("values of pressure are hardly told apart: ") && said.contains("\"max\" nearer"),
        "{said}"
    );
    assert!(!said.contains("at random before the first one"), "{said}");
    let found = told(&press(folder.path(), &[&kept[..], &["--json"]].concat()));
    assert_eq!(found["steps_before"], 0);
    assert!(found["return_mean"].as_f64().expect("a return") < 0.9, "{found}");
}

#[test]
fn a_look_is_announced_bounded_and_counted_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let shown = press(folder, &["--budget", "300", "--eval-episodes", "0"]);
    let said = text(&shown.stderr);
    assert!(
        said.contains("512 steps at random before the first one") && said.contains("not counted"),
        "{said}"
    );
    let summary = text(&shown.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        summary.contains("thresholds of pressure are cut where values were seen: 512 steps"),
        "{summary}"
    );
    std::fs::remove_file(folder.join("actions.log")).expect("a log");
    let found = told(&press(folder, &["--budget", "300", "--eval-episodes", "0", "--json"]));
    let steps = |what: &str| found[what].as_u64().expect("a count");
    assert_eq!((steps("steps_before"), steps("steps_before") + steps("steps")), (512, taken(folder)));
}

#[test]
fn places_are_kept_for_replay_resume_and_a_later_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let arguments = |budget, out| ["--eval-episodes", "0", "--json", "--budget", budget, "--out", out];
    let short = told(&press(folder, &arguments("300", "short")));
    let whole = told(&press(folder, &arguments("900", "whole")));
    assert_eq!(short["steps"], 300);
    for command in ["verify", "replay"] {
        let checked = bem(folder, &[command, "short"]);
        assert!(checked.status.success(), "{command}: {checked:?}");
    }
    // Nobody looks again: the same places, and the same history as if the steps had been given at once.
    let before = taken(folder);
    let resumed =
        bem(folder, &["solve", "--resume", "short", "--budget", "900", "--eval-episodes", "0", "--json"]);
    let resumed = told(&resumed);
    assert_eq!((&resumed["trace_head"], &resumed["steps"]), (&whole["trace_head"], &whole["steps"]));
    assert_eq!(resumed["steps_before"], 0);
    assert_eq!(taken(folder) - before, whole["steps"].as_u64().expect("steps") - 300);
    // Another seed that starts from the run takes over its places, and with them its policy as it is.
    let again = ["--start-from", "whole", "--seed", "9", "--budget", "300", "--eval-episodes", "0"];
    let later = press(folder, &again);
    assert!(later.status.code() < Some(2), "{later:?}");
    let said = text(&later.stderr);
    assert!(said.contains("starts from whole: ") && !said.contains("nearest"), "{said}");
}
