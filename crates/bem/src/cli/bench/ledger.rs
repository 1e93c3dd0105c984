//! What the ledger costs: entries a second to disk, and its share of a step.

use super::{Benchmark, Measurement, minimum_nanoseconds};
use crate::file_store::FileStore;
use bem_base::digest::hash;
use bem_ledger::chain::ChainHead;
use bem_ledger::checkpoint::Signer;
use bem_ledger::entry::{Entry, Genesis, step_block_bytes};
use bem_ledger::log::{Log, LogOptions};
use bem_ledger::merkle::{Frontier, leaf_hash};
use std::hint::black_box;
use std::time::Instant;

/// The benchmarks of this file.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "ledger_append",
        area: "ledger",
        about: "small entries hashed, chained, written and acknowledged on disk",
        run: ledger_append,
    },
    Benchmark {
        name: "ledger_overhead",
        area: "ledger",
        about: "sealing a 16-byte record into chain and tree, as a share of a step",
        run: ledger_overhead,
    },
];

/// Entries that are timed together; short, because the machine may be busy with something else.
const ENTRIES_PER_TRIAL: u32 = 10_000;
/// Entries that one commit covers.
const ENTRIES_PER_COMMIT: u32 = 1_000_000;
const COMMITS: u32 = 3;

fn ledger_append() -> anyhow::Result<Measurement> {
    let directory = std::env::temp_dir().join(format!("bem-bench-ledger-{}", std::process::id()));
    let measured = append_trials(&directory);
    // The directory is this benchmark's own; what remains of it is of no use to anybody.
    let _ = std::fs::remove_dir_all(&directory);
    let (append, commit) = measured?;
    let best = 1e9 / (append + commit / f64::from(ENTRIES_PER_COMMIT));
    // A leaf of one block, a link of two and a node of two: five compressions are the least an entry can cost.
    let blocks = [7; 5 * 64 - 9];
    let floor = 1e9
        / minimum_nanoseconds(400, 200, || {
            black_box(hash(black_box(&blocks)));
        });
    Ok(Measurement::new("ledger_append", best, "entries/s", floor, "five SHA-256 compressions an entry")
        .with("append_nanoseconds", append)
        .with("commit_nanoseconds", commit))
}

/// Nanoseconds of an append and of a commit, each the least of many.
fn append_trials(directory: &std::path::Path) -> anyhow::Result<(f64, f64)> {
    let signer = Signer::from_seed(&[1; 32]);
    let genesis = Genesis {
        instance: hash(b"bench"),
        configuration: hash(b"bench"),
        code: "bench".to_owned(),
        public_key: signer.public_key(),
    };
    let store = FileStore::open_locked(directory)?;
    let mut log = Log::create(store, signer, &genesis, LogOptions::default())?;
    let entry = Entry::Event { step: 1, code: 1, values: vec![1], payload: Vec::new() }.to_bytes();
    let (mut trial, mut commit) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..COMMITS {
        for _ in 0..ENTRIES_PER_COMMIT / ENTRIES_PER_TRIAL {
            let start = Instant::now();
            for _ in 0..ENTRIES_PER_TRIAL {
                log.append_bytes(black_box(&entry))?;
            }
            log.offload()?;
            trial = trial.min(start.elapsed().as_secs_f64());
        }
        let start = Instant::now();
        log.commit()?;
        commit = commit.min(start.elapsed().as_secs_f64());
    }
    Ok((trial * 1e9 / f64::from(ENTRIES_PER_TRIAL), commit * 1e9))
}

/// Records in a block of the default size.
const RECORDS: usize = 4_096;

fn ledger_overhead() -> anyhow::Result<Measurement> {
    let records = vec![7u8; RECORDS * 16];
    let (mut head, mut frontier) = (ChainHead::start(), Frontier::new());
    let seal = minimum_nanoseconds(200, 4, || {
        let entry = step_block_bytes(1, black_box(&records), &[]);
        let leaf = leaf_hash(&entry);
        head = head.link(&leaf);
        frontier.push(leaf);
    });
    black_box((head, frontier.root()));
    let per_record = seal / RECORDS as f64;
    let step = super::registry().into_iter().find(|benchmark| benchmark.name == "step_single");
    let (step, step_name) = match step {
        Some(benchmark) => ((benchmark.run)()?.value, "step_single"),
        None => (STEP_GOAL_NANOSECONDS, "the goal of a single-lane step, 80 ns"),
    };
    let share = per_record / step;
    Ok(Measurement::new("ledger_overhead", share, "of a step", 0.25, &format!("a quarter of {step_name}"))
        .with("nanoseconds_per_record", per_record)
        .with("step_nanoseconds", step))
}

/// What a single-lane step should cost at most; used while the step has no benchmark of its own.
const STEP_GOAL_NANOSECONDS: f64 = 80.0;
