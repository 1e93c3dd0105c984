//! Numbers whose declared bounds are far wider than what is seen of them: a look before the first step cuts them where their
//! values lie, and the run keeps the places. Clauses: GLE-9, LOG-5; decision D-317.

mod support;

use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::{bem, text};

/// The press with these options, whose actions are counted in a file of the folder in which it is learned.
fn command(options: &str) -> String {
    let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worlds/press.py");
    format!("python3 {} actions.log {options}", world.display())
}

/// Learns the press with these options.
fn press_with(folder: &Path, options: &str, arguments: &[&str]) -> Output {
    bem(folder, &[&["solve", "--env-cmd", &command(options)], arguments].concat())
}

/// Learns the press.
fn press(folder: &Path, arguments: &[&str]) -> Output {
    press_with(folder, "", arguments)
}

/// What a short run says that nobody evaluates.
fn short(folder: &Path, options: &str, budget: &str, arguments: &[&str]) -> Value {
    let words = [&["--budget", budget, "--eval-episodes", "0", "--json"], arguments].concat();
    told(&press_with(folder, options, &words))
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
    assert_eq!((&resumed["steps_before"], &resumed["cut"]), (&json!(512), &json!(["pressure"])));
    assert_eq!(taken(folder) - before, whole["steps"].as_u64().expect("steps") - 300);
    // Another seed that starts from the run takes over its places, and with them its policy as it is.
    let again = ["--start-from", "whole", "--seed", "9", "--budget", "300", "--eval-episodes", "0"];
    let later = press(folder, &again);
    assert!(later.status.code() < Some(2), "{later:?}");
    let said = text(&later.stderr);
    assert!(said.contains("starts from whole: ") && !said.contains("nearest"), "{said}");
}

#[test]
fn places_of_a_run_are_not_taken_where_they_lack_the_threshold_of_a_new_rule() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // Places at every 0.2: 5029.2 and 5029.3 share a level, of which the rule that comes later forbids a half.
    let bounds = "--bounds 5000 5040";
    let old = short(folder, bounds, "300", &["--out", "old"]);
    assert_eq!((&old["steps_before"], &old["cut"]), (&json!(64), &json!([])));
    let again = short(folder, bounds, "300", &["--start-from", "old", "--seed", "9"]);
    assert_eq!(again["steps_before"], 0, "the control: the same rule takes the places over");
    let stricter = format!("{bounds} --forbid 5029.3");
    let now = short(folder, &stricter, "3000", &["--start-from", "old", "--seed", "9"]);
    assert_eq!(now["steps_before"], 64, "a look follows where the places cannot be taken");
}

#[test]
fn what_a_look_took_is_kept_with_the_run_and_what_was_paid_in_it_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let about = |told: &Value| ["steps_before", "bad_before", "cut"].map(|key| told[key].clone());
    // Below 5030 all that is seen lies in one level: what was BAD there once is not tried again.
    let options = "--bad --pays 2000";
    let first = short(folder, options, "300", &["--out", "kept"]);
    assert_eq!(about(&first), [json!(512), json!(1), json!(["pressure"])]);
    // The learner finds out by itself what is paid beyond the range, so that the run begins as its program says.
    assert!(0 < first["range_widened"].as_u64().expect("a count"), "{first}");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    let figures: Value = serde_json::from_str(&read("kept/evaluation.json")).expect("JSON");
    assert_eq!(figures["policies"][0]["before"], json!({ "steps": 512, "bad": 1, "cut": ["pressure"] }));
    let said = "look: 512 steps at random before the first one (1 of them BAD)";
    assert!(read("kept/report.html").contains(said));
    let explained = bem(folder, &["explain", "kept", "--json"]);
    let explained: Value = serde_json::from_slice(&explained.stdout).expect("one object");
    let lines = explained["provenance"].as_array().expect("lines");
    assert!(lines.iter().any(|line| line.as_str().is_some_and(|line| line.starts_with(said))), "{lines:?}");
    let bundled = bem(folder, &["export", "kept", "--format", "bundle", "--out", "kept.bundle"]);
    assert!(bundled.status.success(), "{bundled:?}");
    assert!(read("kept.bundle").contains(r#"\"before\":{\"bad\":1,\"cut\":[\"pressure\"],\"steps\":512}"#));
    for words in [["check", "kept.bundle"], ["verify", "kept"]] {
        let checked = bem(folder, &words);
        assert!(checked.status.success(), "{words:?}: {checked:?}");
    }
    // Who goes on with the run is told the same, and the run before keeps it.
    let resumed =
        bem(folder, &["solve", "--resume", "kept", "--budget", "600", "--eval-episodes", "0", "--json"]);
    assert_eq!(about(&told(&resumed)), about(&first));
    assert_eq!(read("kept/look.json"), read("kept/before-1/look.json"));
}

#[test]
fn episodes_of_several_steps_are_cut_off_where_they_come_back_and_played_to_their_end_where_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (options, steps) in [("--horizon 5", 512), ("--horizon 5 --no-replay", 515)] {
        let found = short(folder, options, "300", &[]);
        assert_eq!(
            (&found["steps_before"], &found["cut"]),
            (&json!(steps), &json!(["pressure"])),
            "{options}"
        );
        let counted = steps + found["steps"].as_u64().expect("a count");
        assert_eq!(taken(folder), counted, "{options}");
        std::fs::remove_file(folder.join("actions.log")).expect("a log");
    }
    // An episode that can neither come back nor end soon is not begun without the learner.
    let long = short(folder, "--horizon 600 --no-replay", "600", &[]);
    assert_eq!((&long["steps_before"], &long["cut"]), (&json!(0), &json!([])));
}

#[test]
fn a_look_never_does_what_is_forbidden() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for options in ["", "--horizon 5", "--horizon 5 --no-replay"] {
        let found = short(folder, options, "300", &[]);
        let steps = found["steps_before"].as_u64().expect("a count") as usize;
        let log = std::fs::read_to_string(folder.join("actions.log")).expect("a log");
        let step = |line: &str| {
            let (pressure, action) = line.split_once(' ').expect("a pressure and an action");
            (pressure.parse::<f64>().expect("a number"), action.to_string())
        };
        let (hot, mild): (Vec<_>, Vec<_>) =
            log.lines().take(steps).map(step).partition(|(pressure, _)| 5_030.0 <= *pressure);
        // The control: where it is allowed, both are tried alike.
        let second = mild.iter().filter(|(_, action)| action == "1").count();
        assert!(
            (mild.len() / 3..mild.len() * 2 / 3).contains(&second),
            "{options}: {second} of {}",
            mild.len()
        );
        assert!(50 < hot.len() && hot.iter().all(|(_, action)| action == "1"), "{options}");
        std::fs::remove_file(folder.join("actions.log")).expect("a log");
    }
}

#[test]
fn ctrl_c_in_a_look_ends_it_before_anything_is_learned_or_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let world = command("--seconds 0.05 --horizon 600");
    let child = Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(["solve", "--env-cmd", &world, "--out", "cut", "--json"])
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let played = || std::fs::read_to_string(folder.join("actions.log")).map_or(0, |log| log.lines().count());
    for _ in 0..6_000 {
        if 3 <= played() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill starts").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("interrupted before the first step"), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let steps = played();
    assert!((3..512).contains(&steps), "{steps}");
    assert_eq!((&found["interrupted"], &found["steps"]), (&json!(true), &json!(0)));
    assert_eq!((&found["steps_before"], &found["cut"]), (&json!(steps), &json!([])));
    assert!(!folder.join("cut").exists());
}
