//! `cargo run --release -p bem-sim -- SEED` repeats one run; the other words are the parts of the battery.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people and for the battery")]

#[allow(dead_code, reason = "the simulator uses a part of it")]
#[path = "../../bem/src/file_store.rs"]
mod file_store;
mod worker;

use bem_base::prng::Prng;
use bem_engine::journal::RunConditions;
use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::checkpoint::Signer;
use bem_ledger::store::MemoryStore;
use bem_sim::bus::{Totals, run_bus};
use bem_sim::cases::cases;
use bem_sim::counters::Counters;
use bem_sim::disk::Disk;
use bem_sim::engine::{EngineGolden, run_engine};
use bem_sim::fuzz::{TARGETS, Target, fuzz};
use bem_sim::golden::Golden;
use bem_sim::removal::removal;
use bem_sim::restore::{Restored, restore_points};
use bem_sim::run::{Script, run, run_undisturbed, run_with_lie};
use bem_sim::spoiled;
use bem_sim::store::{Mutant, Plan, SimStore};
use bem_sim::tamper::tamper;
use std::process::ExitCode;

const HELP: &str = "\
bem-sim SEED                     repeat one run: random crashes and failures
bem-sim random FIRST COUNT       so many runs from this seed on
bem-sim power-loss IMAGES        a power loss at every operation of the disk, at least so many images in sum
bem-sim lies FIRST COUNT         disks that drop, misplace or rot what they were given
bem-sim mutants COUNT            one sync left out: every mutant must be noticed within so many runs
bem-sim engine FIRST COUNT       a small climb of the engine on the simulated disk, with random crashes and failures
bem-sim restore COUNT SEED       learners put away at random points, which must go on bit for bit
bem-sim spoiled COUNT SEED       patches of real histories spoiled, so many of each kind: all must be refused
bem-sim bus FIRST COUNT          the tool bus beside its model, with slow, dead, late, lying and double workers
bem-sim tamper OLD NEW COUNT     what somebody without the key can do to a run of which OLD is an earlier copy
bem-sim removal DIR KEY STRIDE   what the ledger in DIR names removed, and histories forged with the key in the file KEY
bem-sim work DIR SEED COUNT      a real process on real files; one line per acknowledgement
bem-sim head SEED COUNT          the head of the undisturbed workload
bem-sim cases SEED COUNT         proofs and checkpoints, honest and damaged: this implementation's answer, then JSON
bem-sim fuzz NAME|all COUNT SEED damaged inputs for a decoder, from its good ones and the corpus in fuzz/corpus
bem-sim flip DIR STRIDE          every STRIDE-th bit of every file of the ledger in DIR turned over: all must be found";

/// The workload of all simulated runs.
const WORKLOAD_SEED: u64 = 1;
const WORKLOAD_OPERATIONS: usize = 60;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match answer(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("bem-sim: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word:?} is not a whole number\n{HELP}"))
}

fn answer(words: &[&str]) -> Result<(), String> {
    match words {
        ["random", first, count] => random(number(first)?, number(count)?),
        ["power-loss", images] => power_loss(number(images)?),
        ["lies", first, count] => lies(number(first)?, number(count)?),
        ["mutants", count] => mutants(number(count)?),
        ["work", directory, seed, count] => worker::work(directory, number(seed)?, number(count)?),
        ["cases", seed, count] => {
            for case in cases(number(seed)?, number(count)?, number(count)?) {
                println!("{} {}", if case.holds { "yes" } else { "no" }, case.line);
            }
            Ok(())
        }
        ["fuzz", name, count, seed] => fuzz_targets(name, number(count)?, number(seed)?),
        ["engine", first, count] => engine(number(first)?, number(count)?),
        ["restore", count, seed] => {
            let Restored { points, in_episode, with_patch, learners } =
                restore_points(number(count)?, number(seed)?)?;
            println!(
                "{points} restore points on {learners} learners, {in_episode} in the middle of an episode, \
                 {with_patch} with a proven patch not yet applied: all went on bit for bit"
            );
            Ok(())
        }
        ["bus", first, count] => bus(number(first)?, number(count)?),
        ["spoiled", count, seed] => spoiled(number(count)?, number(seed)?),
        ["tamper", old, new, count] => {
            let counts = tamper(&load(old)?, &load(new)?, number(count)?, 1)?;
            counts.iter().for_each(|(name, count)| println!("{name:<16} {count} tried, all found"));
            Ok(())
        }
        ["removal", directory, key, stride] => {
            let seed = std::fs::read(key).map_err(|error| format!("{key}: {error}"))?;
            let seed = <[u8; 32]>::try_from(seed).map_err(|_| format!("{key} is no key of 32 bytes"))?;
            let refused =
                removal(&load(directory)?, &Signer::from_seed(&seed), number(stride)?.max(1) as usize)?;
            refused.iter().for_each(|(name, count)| println!("{name:<34} {count} tried, all refused"));
            Ok(())
        }
        ["flip", directory, stride] => flip(directory, number(stride)?.max(1)),
        ["head", seed, count] => {
            println!(
                "{}",
                Golden::new(number(seed)?, number(count)? as usize)
                    .heads
                    .last()
                    .map_or_else(String::new, |head| head.digest().to_hex())
            );
            Ok(())
        }
        [seed] if seed.parse::<u64>().is_ok() => random(number(seed)?, 1),
        _ => Err(format!("one of these:\n{HELP}")),
    }
}

fn golden() -> Golden {
    Golden::rich(WORKLOAD_SEED, WORKLOAD_OPERATIONS)
}

fn random(first: u64, count: u64) -> Result<(), String> {
    let golden = golden();
    let mut counters = Counters::default();
    for seed in first..first + count {
        run(&golden, seed, Script::Random, None, &mut counters).map_err(|reason| {
            format!("seed {seed}: {reason}\nrepeat with: cargo run --release -p bem-sim -- {seed}")
        })?;
    }
    print!("{count} runs, no promise broken\n{counters}");
    Ok(())
}

fn engine(first: u64, count: u64) -> Result<(), String> {
    let golden = EngineGolden::new();
    let mut counters = Counters::default();
    for seed in first..first + count {
        run_engine(&golden, seed, &mut counters).map_err(|reason| {
            format!("seed {seed}: {reason}\nrepeat with: cargo run --release -p bem-sim -- engine {seed} 1")
        })?;
    }
    print!("{count} climbs, no promise broken\n{counters}");
    Ok(())
}

fn bus(first: u64, count: u64) -> Result<(), String> {
    let mut totals = Totals::default();
    for seed in first..first + count {
        run_bus(seed, None, &mut totals).map_err(|reason| {
            format!("seed {seed}: {reason}\nrepeat with: cargo run --release -p bem-sim -- bus {seed} 1")
        })?;
    }
    println!("{count} schedules of the bus, everywhere as its model says: {totals}");
    Ok(())
}

fn spoiled(count: u64, seed: u64) -> Result<(), String> {
    let report = spoiled::run(seed, count, usize::MAX)?;
    for (kind, refused) in &report.refused {
        let turned_down = report.turned_down.get(kind).copied().unwrap_or_default();
        println!(
            "{:<12} {refused} spoiled, all refused by the audit; {turned_down} wrong in themselves, all turned down by the verifier",
            format!("{kind:?}")
        );
    }
    println!("{} audits of honest histories, all accepted", report.accepted);
    for (what, specimens) in &report.specimens {
        println!("  {specimens} of {what}");
    }
    for (mistake, proofs) in &report.noticed {
        println!("a checker with the mistake {mistake:?} would have accepted {proofs} of the spoiled proofs");
    }
    match report.noticed.iter().find(|(_, proofs)| *proofs == 0) {
        None => Ok(()),
        Some((mistake, _)) => Err(format!("the mistake {mistake:?} would not have been noticed")),
    }
}

fn power_loss(images: u64) -> Result<(), String> {
    let golden = golden();
    let store = SimStore::new(Disk::new(), Plan::default(), Prng::stream(0, "count"));
    run_undisturbed(&golden, store.clone());
    let operations = store.happened().operations;
    let salts = images.div_ceil(operations);
    let mut counters = Counters::default();
    for index in 0..operations {
        for salt in 0..salts {
            run(&golden, index * 1_000_003 + salt, Script::CrashAt(index), None, &mut counters)
                .map_err(|reason| format!("operation {index}, salt {salt}: {reason}"))?;
        }
    }
    let images = operations * salts;
    print!("{images} first crashes: {operations} operations x {salts}, no promise broken\n{counters}");
    Ok(())
}

fn lies(first: u64, count: u64) -> Result<(), String> {
    let golden = golden();
    let mut counters = Counters::default();
    for seed in first..first + count {
        run_with_lie(&golden, seed, &mut counters).map_err(|reason| format!("seed {seed}: {reason}"))?;
    }
    let Counters { lies, lies_found, lies_harmless, .. } = counters;
    println!("{lies} lies: {lies_found} found, {lies_harmless} about bytes that did not matter");
    Ok(())
}

fn mutants(count: u64) -> Result<(), String> {
    let golden = golden();
    for mutant in Mutant::ALL {
        let mut counters = Counters::default();
        let found = (0..count).find_map(|seed| {
            run(&golden, seed, Script::Random, Some(mutant), &mut counters).err().map(|reason| (seed, reason))
        });
        let (seed, reason) = found.ok_or_else(|| format!("{mutant:?} was not noticed in {count} runs"))?;
        println!("{mutant:?}: noticed by seed {seed}: {reason}");
    }
    Ok(())
}

/// Fuzzes one decoder or all, one after the other; what breaks one is kept as a file.
fn fuzz_targets(name: &str, count: u64, seed: u64) -> Result<(), String> {
    let chosen: Vec<&Target> = TARGETS.iter().filter(|target| [target.name, "all"].contains(&name)).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        return Err(format!("there is no decoder called {name:?}; known are {}", known.join(", ")));
    }
    for target in chosen {
        let corpus = std::fs::read_dir(format!("fuzz/corpus/{}", target.name)).into_iter().flatten();
        let corpus = corpus.filter_map(|entry| std::fs::read(entry.ok()?.path()).ok()).collect();
        match fuzz(target, corpus, count, seed) {
            Ok(outcome) => println!(
                "{:<18} {} executions, {} accepted, {} inputs in the pool, peak memory {} MiB",
                target.name,
                outcome.executions,
                outcome.accepted,
                outcome.pool,
                peak_memory_mebibytes()
            ),
            Err(input) => {
                let file = format!("broken-{}-{seed}.bin", target.name);
                std::fs::write(&file, input).map_err(|error| format!("{file}: {error}"))?;
                return Err(format!("{} breaks on the bytes kept in {file}", target.name));
            }
        }
    }
    let peak = peak_memory_mebibytes();
    if MEMORY_MEBIBYTES_MAX < peak {
        return Err(format!("{peak} MiB were needed; {MEMORY_MEBIBYTES_MAX} are allowed"));
    }
    Ok(())
}

/// Decoders of small inputs have no business with more.
const MEMORY_MEBIBYTES_MAX: u64 = 256;

/// The most memory this process ever held, as Linux counts it; zero elsewhere.
fn peak_memory_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1_024
}

/// All files of a ledger's directory.
fn load(directory: &str) -> Result<MemoryStore, String> {
    let mut store = MemoryStore::new();
    for entry in std::fs::read_dir(directory).map_err(|error| format!("{directory}: {error}"))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if name != "lock" {
            store.files.insert(name, std::fs::read(&path).map_err(|error| error.to_string())?);
        }
    }
    Ok(store)
}

/// Turns over every `stride`-th bit of a ledger, one at a time, and asks the audit that `bem verify` asks.
fn flip(directory: &str, stride: u64) -> Result<(), String> {
    let mut store = load(directory)?;
    let verdict =
        |store: &mut MemoryStore| audit(store, None, &mut RunConditions::new()).map(|report| report.verdict);
    let sound = |store: &mut MemoryStore| verdict(store) == Ok(AuditVerdict::Unanchored);
    if !sound(&mut store) {
        return Err(format!("{directory} is not sound to begin with: {:?}", verdict(&mut store)));
    }
    let names: Vec<(String, usize)> =
        store.files.iter().map(|(name, content)| (name.clone(), content.len())).collect();
    let (mut flips, mut missed) = (0u64, 0u64);
    for (name, length) in names {
        for bit in (0..length as u64 * 8).step_by(stride as usize) {
            let (byte, mask) = ((bit / 8) as usize, 1 << (bit % 8));
            let content = store.files.get_mut(&name).ok_or("a file went missing")?;
            content[byte] ^= mask;
            let found = matches!(verdict(&mut store), Ok(AuditVerdict::Broken { .. }));
            if !found {
                missed += 1;
                println!("missed: {name}, bit {bit}");
            }
            store.files.get_mut(&name).ok_or("a file went missing")?[byte] ^= mask;
            flips += 1;
        }
    }
    if !sound(&mut store) {
        return Err("the ledger is not sound after all flips were undone".to_owned());
    }
    println!("{flips} flips, {missed} missed");
    if missed == 0 { Ok(()) } else { Err(format!("{missed} flips were missed")) }
}
