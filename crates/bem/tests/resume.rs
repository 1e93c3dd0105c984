//! Runs over one task that are killed, interrupted or given more budget: they go on, and end as if nothing had happened.
//! Clauses: LOG-4, LOG-5.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bem"));
    command.args(arguments).current_dir(folder).env("XDG_STATE_HOME", folder.join("state"));
    command
}

fn bem(folder: &Path, arguments: &[&str]) -> Output {
    program(folder, arguments).output().expect("the program starts")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
}

fn inventory() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/inventory_env.py");
    format!("python3 {}", path.display())
}

/// The same shop with its stock as four bits, which the program that new users tried can learn as well.
fn shop() -> String {
    format!("python3 {}/tests/worlds/shop.py", env!("CARGO_MANIFEST_DIR"))
}

/// How many steps the world of [`shop`] was asked for since it was started last.
fn asked(folder: &Path) -> u64 {
    std::fs::read_to_string(folder.join("asked")).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A task as it is begun, to be killed or interrupted when it is far enough. False if it ended before.
fn until(mut child: Child, is_far: impl Fn() -> bool, signal: &str) -> bool {
    loop {
        if child.try_wait().expect("it can be asked").is_some() {
            return false;
        }
        if is_far() {
            let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
            assert!(sent.expect("kill starts").success());
            child.wait().expect("it ends");
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    program(folder, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

fn bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |about| about.len())
}

/// A busy machine may leave a program without an answer for long.
const PATIENT: [&str; 2] = ["--env-timeout", "600"];

/// What two runs say, but for the time they took.
fn same(left: &Value, right: &Value) -> bool {
    let without = |value: &Value| {
        let mut value = value.clone();
        for key in ["wall_ms", "task", "params"] {
            value[key] = Value::Null;
        }
        value
    };
    without(left) == without(right)
}

#[test]
fn a_program_that_is_learned_goes_on_after_kill_9_without_asking_again_what_it_has_answered() {
    let folder = folder();
    let folder = folder.path();
    let command = shop();
    let task = [&["solve", "--env-cmd", &command, "--budget", "20000", "--json"][..], &PATIENT].concat();
    let whole = json(&bem(folder, &task));
    let answers = folder.join("cut/answers.bin");
    std::fs::remove_file(folder.join("asked")).expect("steps of the whole run");
    let child = start(folder, &[&task[..], &["--out", "cut"]].concat());
    let is_far = || 15_000 < asked(folder);
    assert!(until(child, is_far, "-KILL"), "it was learned before it could be killed");
    assert!(1_000 < bytes(&answers), "kill -9 after 15000 steps: nothing of them is kept");
    // What was being written when the process died, and once more before it is through with what it knows.
    let mut torn = std::fs::read(&answers).expect("answers");
    torn.truncate(torn.len() - 3);
    std::fs::write(&answers, &torn).expect("a file");
    let child = start(folder, &["solve", "--resume", "cut", "--json", "--env-timeout", "600"]);
    until(child, || bytes(&folder.join("cut/answers.tmp")) == 0 && answers.exists(), "-KILL");
    let resumed = json(&bem(folder, &["solve", "--resume", "cut", "--json", "--env-timeout", "600"]));
    assert!(same(&whole, &resumed), "{whole} and {resumed}");
    assert!(!answers.exists());
    assert!(bem(folder, &["verify", "cut"]).status.success());
    let replay = bem(folder, &["replay", "cut"]);
    assert!(replay.status.success(), "{replay:?}");
    let again = bem(folder, &["solve", "--resume", "cut"]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stderr).contains("is finished"), "{again:?}");
}

#[test]
fn a_program_that_ctrl_c_stops_goes_on_by_either_command() {
    let folder = folder();
    let folder = folder.path();
    let command = shop();
    let task = [&["solve", "--env-cmd", &command, "--budget", "20000", "--json"][..], &PATIENT].concat();
    let whole = json(&bem(folder, &task));
    for (name, resume) in [("one", "run"), ("two", "solve")] {
        std::fs::remove_file(folder.join("asked")).expect("steps of the run before");
        let child = start(folder, &[&task[..], &["--out", name]].concat());
        let is_far = || 15_000 < asked(folder);
        assert!(until(child, is_far, "-INT"), "it was learned before it could be stopped");
        assert!(bem(folder, &["verify", name]).status.success());
        let resumed = bem(folder, &[resume, "--resume", name, "--json"]);
        assert!(resumed.status.success(), "{resumed:?}");
        let resumed = json(&resumed);
        assert!(
            same(&whole, &resumed),
            "bem {resume} --resume did not learn to the end: {whole} and {resumed}"
        );
        // What was kept at the stop is kept still.
        assert!(bem(folder, &["verify", &format!("{name}/before-1")]).status.success());
    }
}

#[test]
fn a_game_goes_on_after_kill_9_from_where_its_learner_was_put_away() {
    let folder = folder();
    let folder = folder.path();
    let task = ["solve", "sorting", "--param", "keys=4", "--budget", "45000", "--json"];
    let whole = json(&bem(folder, &[&task[..], &["--out", "whole"]].concat()));
    let ledger = folder.join("cut/ledger");
    let child = start(folder, &[&task[..], &["--out", "cut"]].concat());
    let snapshots = || {
        let files = std::fs::read_dir(&ledger).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|end| end == "snap")).count()
    };
    assert!(until(child, || 2 <= snapshots(), "-KILL"), "it was learned before it could be killed");
    assert!(bem(folder, &["verify", "cut"]).status.success());
    let resumed = json(&bem(folder, &["solve", "--resume", "cut", "--json"]));
    assert!(same(&whole, &resumed), "{whole} and {resumed}");
    assert!(bem(folder, &["verify", "cut"]).status.success());
    assert!(bem(folder, &["replay", "cut"]).status.success());
}

#[test]
fn what_a_run_began_with_is_kept_for_those_who_go_on() {
    let folder = folder();
    let folder = folder.path();
    let command = inventory();
    let first = ["solve", "--env-cmd", &command, "--budget", "3000", "--out", "first", "--json"];
    assert!(bem(folder, &first).status.success());
    let task = ["solve", "--env-cmd", &command, "--seed", "2", "--start-from", "first", "--json"];
    let whole = |budget| json(&bem(folder, &[&task[..], &["--budget", budget]].concat()));
    let (short, long) = (whole("8000"), whole("12000"));
    let answers = folder.join("cut/answers.bin");
    let child = start(folder, &[&task[..], &["--budget", "8000", "--out", "cut"]].concat());
    assert!(until(child, || 0 < bytes(&answers), "-KILL"), "it was learned before it could be killed");
    std::fs::remove_dir_all(folder.join("first")).expect("a folder");
    let resumed = json(&bem(folder, &["solve", "--resume", "cut", "--json"]));
    assert!(same(&short, &resumed), "{short} and {resumed}");
    assert!(bem(folder, &["replay", "cut"]).status.success());
    let resumed = json(&bem(folder, &["solve", "--resume", "cut", "--budget", "12000", "--json"]));
    assert!(same(&long, &resumed), "{long} and {resumed}");
    assert!(bem(folder, &["replay", "cut"]).status.success());
    let refused = bem(folder, &["solve", "--resume", "cut", "--start-from", "cut"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
fn more_budget_ends_as_if_it_had_been_given_at_once() {
    let folder = folder();
    let folder = folder.path();
    let command = shop();
    for (name, task) in [
        ("program", vec!["--env-cmd", command.as_str(), "--env-timeout", "600"]),
        ("game", vec!["sorting", "--param", "keys=4"]),
    ] {
        let solve = |budget: &'static str, rest: &[&str]| {
            bem(folder, &[&["solve"], &task[..], &["--budget", budget, "--json"], rest].concat())
        };
        let long = json(&solve("6000", &[]));
        assert!(solve("2000", &["--out", name]).status.code() < Some(2));
        let less = bem(folder, &["solve", "--resume", name, "--budget", "1000"]);
        assert_eq!(less.status.code(), Some(2), "{less:?}");
        assert!(String::from_utf8_lossy(&less.stderr).contains("is less than the 2000"), "{less:?}");
        let more = bem(folder, &["solve", "--resume", name, "--budget", "6000", "--json"]);
        assert!(same(&long, &json(&more)), "{name}: {long} and {more:?}");
        for run in [name.to_string(), format!("{name}/before-1")] {
            assert!(bem(folder, &["verify", &run]).status.success(), "{run}");
        }
    }
}

#[test]
fn a_program_with_another_world_cannot_go_on() {
    let folder = folder();
    let folder = folder.path();
    assert!(bem(folder, &["init", "."]).status.success());
    let words = [
        "solve",
        "--env-cmd",
        "python3 world.py",
        "--budget",
        "300",
        "--eval-episodes",
        "0",
        "--out",
        "kept",
    ];
    assert!(bem(folder, &words).status.success());
    let world = std::fs::read_to_string(folder.join("world.py")).expect("the world");
    std::fs::write(folder.join("world.py"), world.replace("STEPS = 30", "STEPS = 20")).expect("a file");
    let other = bem(folder, &["solve", "--resume", "kept", "--budget", "900"]);
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    assert!(String::from_utf8_lossy(&other.stderr).contains("says another world"), "{other:?}");
    assert!(bem(folder, &["verify", "kept"]).status.success());
    let seed = bem(folder, &["solve", "--resume", "kept", "--seed", "3"]);
    assert!(String::from_utf8_lossy(&seed.stderr).contains("--seed has no effect on --resume"), "{seed:?}");
}

/// A world of three steps that no seed brings back. Every process of it writes down how many steps it was asked for.
const UNREPEATED: &str = r#"
import json, os, sys
def say(message): print(json.dumps(message), flush=True)
say({"hello": 1, "obs_bits": 2, "actions": 2, "horizon": 3, "reward_range": [0, 1000], "replay": False})
steps = 0
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        left, seen = 3, os.urandom(1)[0] % 4
        say({"obs": f"{seen:02b}"})
    else:
        steps += 1
        open(f"asked-{os.getpid()}", "w").write(str(steps))
        right = message["act"] == (seen in (1, 2))
        left, seen = left - 1, os.urandom(1)[0] % 4
        say({"obs": f"{seen:02b}", "reward": 1000 if right else 0, "done": left == 0, "bad": False})
"#;

/// The files in which processes of a world count. One that was killed with its run may still be writing.
fn counts(folder: &Path) -> BTreeSet<PathBuf> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("an entry").path());
    files.filter(|path| path.to_string_lossy().contains("/asked-")).collect()
}

/// Steps that processes were asked for which had not counted before.
fn asked_since(folder: &Path, before: &BTreeSet<PathBuf>) -> u64 {
    let steps =
        |path: &PathBuf| -> u64 { std::fs::read_to_string(path).expect("a file").parse().expect("a number") };
    counts(folder).difference(before).map(steps).sum()
}

#[test]
fn a_world_that_cannot_be_repeated_is_kept_goes_on_and_is_played_again() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("world.py"), UNREPEATED).expect("a file");
    let task =
        ["solve", "--env-cmd", "python3 world.py", "--online", "--budget", "9000", "--eval-episodes", "0"];
    let task = [&task[..], &PATIENT, &["--json", "--out", "cut"]].concat();
    let answers = folder.join("cut/answers.bin");
    assert!(
        until(start(folder, &task), || 20_000 < bytes(&answers), "-KILL"),
        "it was learned before it could be killed"
    );
    let mut known = 0;
    for budget in [9_000, 12_000] {
        let (before, text) = (counts(folder), budget.to_string());
        assert!(!before.is_empty(), "nobody was asked");
        let words = ["solve", "--resume", "cut", "--json", "--eval-episodes", "0", "--budget", &text];
        let said = json(&bem(folder, &[&words[..], &PATIENT].concat()));
        assert_eq!(said["replay"], false, "{said}");
        let number = |key: &str| said[key].as_u64().unwrap_or_else(|| panic!("{key}: {said}"));
        // Nothing is looked at without being played.
        assert_eq!((number("episodes_unplayed"), number("resets")), (0, number("episodes")), "{said}");
        assert!((budget..budget + 3).contains(&number("steps")) && 0 < number("patches_applied"), "{said}");
        // It is asked only for what it had not answered yet: a thousand steps at least before it was killed.
        let (taken, asked) = (number("steps"), asked_since(folder, &before));
        let is_rest = if known == 0 { 0 < asked && asked < 8_000 } else { asked == taken - known };
        assert!(is_rest, "{asked} of {taken}");
        known = taken;
        let before = counts(folder);
        assert!(bem(folder, &["verify", "cut"]).status.success());
        let replay = bem(folder, &["replay", "cut"]);
        let text = String::from_utf8_lossy(&replay.stdout).to_string();
        assert!(replay.status.success() && text.contains(&format!(" {taken} steps")), "{replay:?}");
        assert_eq!(counts(folder), before, "what is played again asks nobody");
    }
}
