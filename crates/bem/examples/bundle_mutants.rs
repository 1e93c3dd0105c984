//! The battery of bundles: policies of every family and of the five problems in `examples/` exported and accepted by both
//! checkers, and mutants of every part of them refused. `cargo xtask battery bundles`.
//!
//! Arguments: the program `bem`, how many mutants of each part, and the page that the result is written to. It fails where a
//! bundle is not accepted by both checkers, where a mutant is accepted that is not true, and where there are fewer mutants
//! than are asked for.

#[path = "../tests/mutants/mod.rs"]
mod mutants;

use bem_games::catalog;
use bem_ledger::checkpoint::Signer;
use mutants::{Count, Court, PARTS, try_part};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Steps of a family: enough for a policy, solved or not.
const BUDGET: &str = "6000";
/// The problems that are programs in `examples/`, with the steps in which each of them is learned.
const PROGRAMS: [(&str, &str); 4] =
    [("inventory", "60000"), ("retry", "200000"), ("thermostat", "200000"), ("clicks", "50000")];
/// How many times as many mutants are made of features, where there are some.
const NAMED: u64 = 6;
/// The parts of which each must have [`LEAST`] mutants; features are some bundles' only.
const ASKED: [&str; 6] = ["circuit", "statement", "certificate", "figures", "provenance", "signature"];
/// Mutants of each of these parts at least, and of all of them together.
const LEAST: u64 = 1_000;
const LEAST_IN_ALL: u64 = 10_000;
/// Tasks that are worked on at the same time.
const THREADS: usize = 2;

/// A task by its name, and the words of `bem solve` for it.
type Task = (String, Vec<String>);

fn tasks() -> Vec<Task> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let budgeted = |words: &[&str], budget: &str| {
        [words, &["--budget", budget]].concat().iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let family = |name: &str| (name.to_string(), budgeted(&[name], BUDGET));
    let families = catalog::families().iter().map(|of| family(of.name()));
    let program = |(name, budget): (&str, &str)| {
        let command = format!("python3 {}", examples.join(format!("{name}_env.py")).display());
        (name.to_string(), budgeted(&["--env-cmd", &command, "--env-timeout", "600"], budget))
    };
    // The table's example names no budget: it is played until it is solved.
    let table = vec!["--game".to_string(), examples.join("games/repair.json").display().to_string()];
    families.chain(PROGRAMS.map(program)).chain([("table".to_string(), table)]).collect()
}

fn exported(bem: &str, folder: &Path, (name, task): &Task) -> Value {
    let run = |words: &[&str]| {
        let output = Command::new(bem).args(words).current_dir(folder).output().expect("bem starts");
        assert!(output.status.code() < Some(2), "{name}: {output:?}");
    };
    let task: Vec<&str> = task.iter().map(String::as_str).collect();
    let kept = ["--out", name, "--key", "key", "--json"];
    run(&[&["solve"], &task[..], &kept].concat());
    let file = format!("{name}.bundle");
    run(&["export", name, "--format", "bundle", "--out", &file, "--key", "key"]);
    let text = std::fs::read_to_string(folder.join(file)).expect("a bundle");
    serde_json::from_str(&text).expect("JSON")
}

/// What came of all mutants, and which tasks were accepted.
#[derive(Default)]
struct Found {
    totals: [Count; PARTS.len()],
    accepted: usize,
    /// Tasks whose bundle has no statement.
    unstated: Vec<String>,
}

/// Tries one task after the other until none is left.
fn work(bem: &str, folder: &Path, tasks: &[Task], next: &AtomicUsize, each: u64, found: &Mutex<Found>) {
    std::fs::create_dir_all(folder).expect("a folder");
    let mut court = Court::new(bem, folder);
    loop {
        let place = next.fetch_add(1, Ordering::Relaxed);
        let Some(task) = tasks.get(place) else { return };
        let bundle = exported(bem, folder, task);
        assert!(court.accept(&(bundle.to_string() + "\n")), "{} is not accepted", task.0);
        let seed = std::fs::read(folder.join("key")).expect("the key");
        let signer = Signer::from_seed(&seed.try_into().expect("32 bytes"));
        // Few tasks name their features: each of them stands for several.
        let is_named = !bundle["body"]["features"].is_null();
        let wanted = |part: &str| if part == "features" && is_named { NAMED * each } else { each };
        let counts =
            PARTS.map(|part| try_part(&mut court, &bundle, part, wanted(part), &signer, place as u64));
        let is_stated = !bundle["body"]["statement"].is_null();
        let mut found = found.lock().expect("nobody stopped");
        for (total, count) in found.totals.iter_mut().zip(counts) {
            total.refused += count.refused;
            total.signed_refused += count.signed_refused;
            total.signed_true += count.signed_true;
        }
        found.accepted += 1;
        if !is_stated {
            found.unstated.push(task.0.clone());
        }
        let refused: u64 = found.totals.iter().map(|total| total.refused + total.signed_refused).sum();
        let stated = if is_stated { ", with a statement" } else { "" };
        println!("{}: accepted by both{stated}; {refused} mutants refused so far", task.0);
    }
}

/// The result as a page.
fn page(found: &Found, tasks: usize) -> String {
    let Found { totals, accepted, unstated } = found;
    let stated = accepted - unstated.len();
    // Threads end their tasks in any order.
    let mut without = unstated.clone();
    without.sort();
    let without = if without.is_empty() { String::new() } else { format!(" None: {}.", without.join(", ")) };
    let mut text = format!(
        "{accepted} of {tasks} bundles were accepted by both checkers, {stated} of them with a statement.{without}\n\n\
         | part | changed, refused by both | signed anew, refused by both | signed anew, accepted by both and true |\n\
         |---|---|---|---|\n"
    );
    for (total, part) in totals.iter().zip(PARTS) {
        let Count { refused, signed_refused, signed_true } = total;
        let _ = writeln!(text, "| {part} | {refused} | {signed_refused} | {signed_true} |");
    }
    let refused: u64 = totals.iter().map(|total| total.refused).sum();
    let again: u64 = totals.iter().map(|total| total.signed_refused).sum();
    let _ = writeln!(text, "| all | {refused} | {again} | |");
    text
}

/// What is asked and was not reached. That every mutant is refused, or still true, was asserted one by one.
fn missing(found: &Found, tasks: usize) -> Vec<String> {
    let of = |part: &str| {
        let place = PARTS.iter().position(|other| *other == part).expect("a part that is tried");
        found.totals[place].refused
    };
    let mut missing: Vec<String> = (ASKED.iter())
        .filter(|part| of(part) < LEAST)
        .map(|part| format!("{} mutants of the {part}; at least {LEAST} are asked for", of(part)))
        .collect();
    let all: u64 = ASKED.iter().map(|part| of(part)).sum();
    if all < LEAST_IN_ALL {
        missing.push(format!("{all} mutants in all; at least {LEAST_IN_ALL} are asked for"));
    }
    if found.accepted < tasks {
        missing.push(format!("{} of {tasks} bundles accepted by both checkers", found.accepted));
    }
    missing
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let [_, bem, count, written] = words.as_slice() else {
        eprintln!("bundle_mutants BEM COUNT PAGE");
        return ExitCode::from(2);
    };
    let count: u64 = count.parse().expect("a count");
    let folder = std::env::temp_dir().join(format!("bem-bundles-{}", std::process::id()));
    let (tasks, next, found) = (tasks(), AtomicUsize::new(0), Mutex::new(Found::default()));
    let each = count.div_ceil(tasks.len() as u64);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (folder, tasks, next, found) = (folder.join(thread.to_string()), &tasks, &next, &found);
            scope.spawn(move || work(bem, &folder, tasks, next, each, found));
        }
    });
    let found = found.into_inner().expect("nobody stopped");
    let text = page(&found, tasks.len());
    print!("{text}");
    std::fs::write(written, text).expect("the page is written");
    let _ = std::fs::remove_dir_all(&folder);
    let missing = missing(&found, tasks.len());
    missing.iter().for_each(|what| eprintln!("not reached: {what}"));
    if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
