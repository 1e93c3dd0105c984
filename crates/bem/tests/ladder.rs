//! `bem ladder` from outside: the fit of every family, files of measurements, and the regret over templates.
//! Clauses: GLE-5, GLE-6.

use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

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
    let answer = json(&["--stages", "8"]);
    let families = answer["families"].as_array().expect("a list");
    assert!(26 <= families.len());
    for family in families {
        assert!(0.98 <= family["r_squared"].as_f64().expect("a fit"), "{}", family["family"]);
        let rungs = family["rungs"].as_array().map_or(0, Vec::len);
        assert!((5..=8).contains(&rungs), "{}: {rungs}", family["family"]);
    }
}

/// The rungs that `bem run` climbs were chosen by the measurement that is shipped; `cargo xtask battery ladder` measures them
/// with seeds that no choice has seen.
#[test]
fn measured_steps_lie_on_a_line_over_the_stages_that_are_climbed() {
    let answer = json(&[]);
    let families = answer["families"].as_array().expect("a list");
    let fit = |family: &Value| family["r_squared_measured"].as_f64();
    let straight = families.iter().filter(|family| fit(family).is_some_and(|fit| 0.95 <= fit)).count();
    assert!(24 <= straight, "{straight} of {} families", families.len());
}

#[test]
fn the_rungs_that_are_climbed_were_chosen_among_those_that_were_tried() {
    let tasks = |arguments: &[&str]| {
        let answer = json(arguments);
        let rungs = answer["families"][0]["rungs"].as_array().expect("a list").clone();
        rungs.iter().map(|rung| rung["task"].as_str().expect("a task").to_string()).collect::<Vec<_>>()
    };
    for family in ["key_value", "compare", "add"] {
        let (tried, climbed) = (tasks(&["--families", family, "--tried"]), tasks(&["--families", family]));
        assert!(climbed.len() < tried.len() && climbed.iter().all(|task| tried.contains(task)), "{tried:?}");
    }
    let output = ladder(&["--tried", "--stages", "4"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// The measurement that is shipped was made with the learner; the estimate is computed anew. A change of the estimate
/// that spoils the order, or makes a rung that nobody measured, fails here: then measure again as docs/ladder.md says.
#[test]
fn the_order_of_the_estimate_is_the_measured_one_wherever_one_was_measured() {
    let answer = json(&["--stages", "8"]);
    let mut ordered = 0;
    for family in answer["families"].as_array().expect("a list") {
        let name = family["family"].as_str().expect("a name");
        match family["order"].as_str().expect("a verdict") {
            "ordered" => {
                let spearman = family["spearman"].as_f64().expect("a correlation");
                assert!(0.9 <= spearman, "{name}: {spearman}");
                for rung in family["rungs"].as_array().expect("a list") {
                    let runs = rung["runs"].as_array().map_or(0, Vec::len);
                    assert!(5 <= runs, "{} has {runs} measured runs", rung["task"]);
                }
                ordered += 1;
            }
            // The agent of the first learns anew in every episode; nobody solves the second within its budget.
            verdict => assert!(["nonstationary_bandit", "rulegrid"].contains(&name), "{name} is {verdict}"),
        }
    }
    assert!(25 <= ordered, "{ordered}");
}

#[test]
fn measurements_are_laid_beside_the_estimate() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("measured.jsonl");
    let rungs = json(&["--families", "parity_stream", "--stages", "4"])["families"][0]["rungs"].clone();
    let mut text = String::new();
    for (index, rung) in rungs.as_array().expect("a list").iter().enumerate() {
        let task = rung["task"].as_str().expect("a task");
        let n = task.trim_start_matches("parity_stream{n=").trim_end_matches('}');
        for run in 0..5 {
            let steps = 10 * index + 5 + run;
            let line = format!(r#"{{"task":"parity_stream","params":{{"n":{n}}},"steps_to_99":{steps}}}"#);
            text.push_str(&line);
            text.push('\n');
        }
    }
    std::fs::write(&path, &text).expect("a file");
    let file = path.display().to_string();
    let answer = json(&["--families", "parity_stream", "--stages", "4", "--measured", &file]);
    let family = &answer["families"][0];
    assert_eq!((&family["spearman"], &family["levels"]), (&Value::from(1.0), &Value::from(4)));
    assert_eq!(family["rungs"][2]["measured"], 27);
    let output = ladder(&["--families", "parity_stream", "--stages", "4", "--measured", &file]);
    let shown = String::from_utf8(output.stdout).expect("text");
    assert!(shown.contains("orders: 1.000 over 4 levels"), "{shown}");
    std::fs::write(&path, format!("{text}oops\n")).expect("a file");
    let output = ladder(&["--measured", &file]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).expect("text");
    assert!(message.contains("line 21 is nothing that"), "{message}");
}

#[test]
fn measuring_learns_every_rung_and_saves_what_it_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("measured.jsonl").display().to_string();
    let few = ["--families", "signaling", "--stages", "3"];
    let short = ["--measure", "--seeds", "2", "--budget", "400", "--save", &file];
    let now = json(&[&few[..], &short[..]].concat());
    let rungs = now["families"][0]["rungs"].as_array().expect("a list").clone();
    let measured = |rung: usize| rungs[rung]["measured"].as_u64();
    assert!(measured(0).is_some_and(|steps| steps < 400) && measured(2).is_none(), "{rungs:?}");
    let later = json(&[&few[..], &["--measured", &file]].concat());
    assert_eq!(now["families"], later["families"]);
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("measured.jsonl");
    let file = path.display().to_string();
    let families = ["--families", "parity,dyck,sorting", "--stages", "8", "--json"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_bem"))
        .args([&["ladder", "--measure", "--save", &file], &families[..]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bem starts");
    while std::fs::read_to_string(&path).map_or(0, |text| text.lines().count()) < 2 {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill starts").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("bem: interrupted after ") && said.contains(" of 22 rungs"), "{said}");
    let shown: Value = serde_json::from_slice(&output.stdout).expect("exactly one JSON object");
    assert_eq!(shown["families"], json(&[&families[..4], &["--measured", &file]].concat())["families"]);
}

#[test]
fn bad_arguments_name_what_is_allowed() {
    for (arguments, message) in [
        (&["--stages", "1"][..], "--stages is 1; allowed is 2 to 256"),
        (&["--measure", "--seeds", "11"], "--seeds is 11; allowed is 1 to 10"),
        (&["--families", "chess"], "there is no family called \"chess\"; known are parity"),
    ] {
        let output = ladder(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(message), "{output:?}");
    }
}

#[test]
fn the_choice_among_templates_has_small_regret() {
    let answer = json(&["--bandit"]);
    assert!(answer["worst_exponent"].as_f64().expect("a number") < 0.6, "{answer}");
}
