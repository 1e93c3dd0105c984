//! The commitment curriculum as a user meets it: verdicts, exit codes, the same manifest for the same seeds.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn curriculum(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bem")).arg("curriculum").args(arguments).output().unwrap()
}

#[test]
fn three_seeds_pass_and_give_the_same_manifest_twice() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let first = curriculum(&["run", "--seeds", "42,43,44", "--json", "--out", &out]);
    assert_eq!(first.status.code(), Some(0));
    let again = curriculum(&["run", "--seeds", "42,43,44", "--json"]);
    assert!(first.stdout == again.stdout, "the manifests differ");
    let manifest: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(manifest["outcome"], "pass");
    assert_eq!(manifest["criteria"].as_array().unwrap().len(), 5);
    assert_eq!(manifest["contrast"], "requires only the committed state");
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("gate 0.40") && page.contains("forced_high"));
}

#[test]
fn starved_controls_and_the_pilot_have_commands_of_their_own() {
    assert_eq!(curriculum(&["starve", "--seeds", "42"]).status.code(), Some(0));
    assert_eq!(curriculum(&["pilot", "--seeds", "42"]).status.code(), Some(0));
    let drifting = curriculum(&["probe-env", "--seeds", "42", "--hazards", "8", "--drift", "600"]);
    assert!(String::from_utf8(drifting.stdout).unwrap().contains("ESCALATE"));
    let frames = String::from_utf8(curriculum(&["render", "--ticks", "2"]).stdout).unwrap();
    assert!(frames.contains("latch") && frames.contains('@'));
}

#[test]
fn ctrl_c_ends_after_the_seed_under_way_and_keeps_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("cut");
    let seeds: Vec<String> = (42..242).map(|seed| seed.to_string()).collect();
    let child = Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(["curriculum", "run", "--json", "--seeds", &seeds.join(","), "--out"])
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Long before two hundred seeds are done, and long after it has begun to listen.
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("bem: interrupted after "), "{output:?}");
    let manifest: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |key: &str| manifest[key].as_array().unwrap().len();
    assert!(0 < count("seeds") && count("seeds") + count("seeds_not_run") == 200, "{manifest}");
    let kept = std::fs::read_to_string(out.join("manifest.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&kept).unwrap(), manifest);
}

#[test]
fn wrong_set_ups_are_refused_in_one_line() {
    for (arguments, wanted) in [
        (&["run", "--waypoints", "0"][..], "waypoints cannot be 0"),
        (&["render", "--arm", "other"], "arm cannot be other"),
        (&["probe-env", "--interval", "0"], "drift interval cannot be 0"),
    ] {
        let output = curriculum(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(wanted) && message.lines().count() == 1, "{message}");
    }
}
