//! `bem pipeline run`: one history for threads, processes and processes that are killed; interrupted and gone on with; audited.

use bem_engine::journal::{Replay, climb_of};
use bem_engine::world_file::WorldFile;
use bem_ledger::log::read_blob;
use bem_ledger::snapshot::latest_snapshot;
use bem_ledger::store::MemoryStore;
use bem_synth::experience::Episode;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Two small domains, and one that comes in late.
const PLAN: [&str; 10] = [
    "--domains",
    "memory",
    "--late",
    "stack",
    "--stages",
    "2",
    "--unit-steps",
    "2000",
    "--mixed-rounds",
    "1",
];

fn bem(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bem"));
    command.current_dir(directory).args(arguments).env("XDG_STATE_HOME", directory.join("state"));
    command
}

fn json(command: &mut Command) -> Value {
    let output = command.output().expect("bem runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// The same plan with this engine, in this folder.
fn run(directory: &Path, out: &str, more: &[&str]) -> Value {
    let arguments = [&["pipeline", "run", "--json", "--key", "key", "--out", out], &PLAN[..], more].concat();
    json(&mut bem(directory, &arguments))
}

/// Processes that work on units for this process.
fn workers_of(parent: u32) -> Vec<i32> {
    let children =
        std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    let mut all: Vec<i32> = children.split_whitespace().filter_map(|child| child.parse().ok()).collect();
    // Threads start children too.
    for entry in std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path().join("children")).unwrap_or_default();
        all.extend(text.split_whitespace().filter_map(|child| child.parse::<i32>().ok()));
    }
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn threads_processes_and_killed_processes_make_one_history_that_an_audit_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let one = run(folder.path(), "one", &["--workers", "1"]);
    let head = &one["trace_head"];
    assert_eq!(one["finished"], true);
    assert_eq!(run(folder.path(), "two", &["--workers", "2"])["trace_head"], *head);
    // Workers are killed while they work: their units are worked on again.
    let arguments = [
        &[
            "pipeline",
            "run",
            "--json",
            "--key",
            "key",
            "--out",
            "killed",
            "--engine",
            "processes",
            "--workers",
            "2",
        ],
        &PLAN[..],
    ]
    .concat();
    let mut child =
        bem(folder.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut killed = 0;
    while child.try_wait().unwrap().is_none() {
        if killed < 4
            && let Some(worker) = workers_of(child.id()).first()
        {
            let status = Command::new("kill").args(["-9", &worker.to_string()]).status().unwrap();
            killed += usize::from(status.success());
        }
        std::thread::sleep(std::time::Duration::from_millis(120));
    }
    let output = child.wait_with_output().unwrap();
    let survived: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(survived["trace_head"], *head);
    assert_eq!(survived["heads"], one["heads"]);
    assert!(0 < killed, "a worker was killed");
    let audit = json(&mut bem(folder.path(), &["verify", "killed", "--json"]));
    assert_eq!(audit["verdict"], "unanchored");
    assert!(3 <= audit["machines"].as_object().unwrap().len());
    let replayed = bem(folder.path(), &["replay", "killed/main/1"]).output().unwrap();
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));
}

/// The ledger in a folder.
fn ledger(folder: &Path) -> MemoryStore {
    let mut store = MemoryStore::new();
    for entry in std::fs::read_dir(folder.join("ledger")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        store.files.insert(name, std::fs::read(entry.path()).unwrap());
    }
    store
}

#[test]
fn the_episodes_that_are_handed_on_are_those_that_a_specialists_ledger_says_when_it_is_played_again() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ["--domains", "memory", "--stages", "2", "--unit-steps", "2000", "--mixed-rounds", "1"];
    json(&mut bem(folder.path(), &[&["pipeline", "run", "--json", "--out", "p"], &plan[..]].concat()));
    // What the main machine began with: it came in the answers of the specialist's units.
    let mut main = ledger(&folder.path().join("p/main/1"));
    let climb = climb_of(&latest_snapshot(&mut main).unwrap().snapshot.unwrap()).unwrap();
    let file = read_blob(&mut main, &climb.files()[0]).unwrap();
    let WorldFile::Distilled(distilled) = WorldFile::from_bytes(&file).unwrap() else {
        panic!("a volume's file is what was distilled");
    };
    // What the ledger alone says: every unit is played again, and agrees with every entry.
    let mut replay = Replay::open(ledger(&folder.path().join("p/specialists/memory"))).unwrap();
    let mut played: BTreeMap<String, Vec<(u64, Episode)>> = BTreeMap::new();
    loop {
        let before = replay.climb().clone();
        let Some(unit) = replay.advance().unwrap() else { break };
        let again = before.assign(&unit).gathering().work(&mut || true).unwrap().unwrap();
        let episodes = again.solution.gathered.into_iter().map(|episode| (again.seed, episode));
        played.entry(unit.task).or_default().extend(episodes);
    }
    assert!(2 <= distilled.tasks.len());
    for (task, taught) in &distilled.tasks {
        let mut returns: Vec<i64> = played[task].iter().map(|(_, episode)| episode.total()).collect();
        returns.sort_unstable();
        let middle = returns[returns.len() / 2];
        let good: Vec<_> =
            played[task].iter().filter(|(_, episode)| middle <= episode.total()).cloned().collect();
        assert!(!good.is_empty() && taught.episodes == good, "{task}");
    }
}

#[test]
fn a_pipeline_that_is_cut_off_after_any_unit_goes_on_to_the_same_history() {
    let folder = tempfile::tempdir().unwrap();
    let whole = run(folder.path(), "whole", &[]);
    let mut last = run(folder.path(), "cut", &["--units", "3"]);
    assert_eq!(last["finished"], false);
    for round in 0..100 {
        let units = if round < 3 { "5" } else { "1000" };
        last = json(&mut bem(
            folder.path(),
            &["pipeline", "run", "--json", "--key", "key", "--resume", "cut", "--units", units],
        ));
        if last["finished"] == true {
            break;
        }
    }
    assert_eq!(last["trace_head"], whole["trace_head"]);
    assert_eq!(json(&mut bem(folder.path(), &["verify", "cut", "--json"]))["verdict"], "unanchored");
    // A domain that is named later comes in without a loss elsewhere.
    let more = json(&mut bem(
        folder.path(),
        &["pipeline", "run", "--json", "--key", "key", "--resume", "cut", "--domains", "games"],
    ));
    assert_eq!(more["domains"].as_array().unwrap().len(), 3);
    assert!(0.98 <= more["kept_least"].as_f64().unwrap(), "{more}");
}

#[test]
fn what_is_wrong_with_a_plan_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = |arguments: &[&str], word: &str| {
        let output = bem(folder.path(), &[&["pipeline", "run"], arguments].concat()).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(words.contains(word) && words.lines().count() == 1, "{words}");
    };
    wrong(&["--domains", "chess"], "aggregation");
    wrong(&["--domains", "stack,stack"], "twice");
    wrong(&["--stages", "1"], "2 to");
    wrong(&["--workers", "0"], "1 to 1024");
    wrong(&["--address", "here"], "--engine ray");
    wrong(&["--resume", "nowhere"], "plan.json");
}
