//! `bem bench serve_long`: a million decisions with their rewards over HTTP, tenth by tenth: latency, processor time, memory and
//! bytes of the ledger; then the folder is audited and played again. Clauses: VM-13, LOG-1, LOG-5.

use super::serve::{self, Connection, Cost};
use super::{Benchmark, Measurement};
use crate::cli::Answer;
use crate::file_store::FileStore;
use anyhow::{Result, bail};
use bem_ledger::recover::read_checkpoint;
use bem_runtime::history;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;

/// Decisions of the report and of the benchmark, unless the environment says otherwise.
const DECISIONS: u64 = 1_000_000;
const DECISIONS_SHORT: u64 = 50_000;
const DECISIONS_WORD: &str = "BEM_SERVE_DECISIONS";
/// Connections that ask.
const CONNECTIONS: u64 = 48;
/// Parts of the run that are compared.
const PARTS: u64 = 10;

/// The benchmark of this area.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "serve_long",
    area: "serve_long",
    about: "processor time of a server for a pair in the last tenth of a long run, beside that of the second",
    run,
}];

/// One part of the run.
struct Part {
    pairs: u64,
    p50_ms: f64,
    p99_ms: f64,
    cost: Vec<Cost>,
    resident_kb: u64,
}

impl Part {
    /// Processor time for each pair that does not search: what a client waits for.
    fn acting_us(&self) -> f64 {
        self.cost.iter().filter(|cost| cost.thread != "bem-learn").map(|cost| cost.cpu_us).sum()
    }

    fn to_json(&self) -> Value {
        let cost =
            |name: &str| self.cost.iter().find(|cost| cost.thread == name).map_or(0.0, |cost| cost.cpu_us);
        json!({
            "pairs": self.pairs, "p50_ms": self.p50_ms, "p99_ms": self.p99_ms, "acting_us": self.acting_us(),
            "decide_us": cost("bem-decide"), "door_us": cost("bem-door"), "ledger_us": cost("bem-ledger"),
            "learn_us": cost("bem-learn"), "resident_kb": self.resident_kb,
        })
    }
}

/// Everything that was measured.
struct Long {
    parts: Vec<Part>,
    bytes: u64,
    /// Whether the replay gives every entry as recorded.
    head: String,
}

/// Resident memory of this process, as far as the system tells.
pub(super) fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn decisions(usual: u64) -> Result<u64> {
    let Ok(text) = std::env::var(DECISIONS_WORD) else { return Ok(usual) };
    match text.parse() {
        Ok(count) if (1_000..=100_000_000).contains(&count) => Ok(count),
        _ => bail!("{DECISIONS_WORD} is {text:?}; a whole number from 1000 to 100000000 is allowed"),
    }
}

fn ask(address: SocketAddr, decisions: u64) -> Result<Vec<Part>> {
    serve::make_world(&mut Connection::open(address)?)?;
    let opened: Result<Vec<_>> = (0..CONNECTIONS).map(|_| Connection::open(address)).collect();
    let (mut connections, mut number, mut parts) = (opened?, 0, Vec::new());
    for _ in 0..PARTS {
        let (before, mut pairs, mut took) = (serve::threads(), 0, Vec::new());
        while pairs < decisions / PARTS {
            pairs += serve::ask_pairs(&mut connections, 1_000 * number, &mut took)?;
            number += 1;
        }
        took.sort_by(f64::total_cmp);
        let quantile = |share: f64| took[((took.len() as f64 * share) as usize).min(took.len() - 1)];
        let (p50_ms, p99_ms) = (quantile(0.5), quantile(0.99));
        let cost = serve::costs(&before, pairs);
        parts.push(Part { pairs, p50_ms, p99_ms, cost, resident_kb: resident_kb() });
    }
    Ok(parts)
}

fn measure_in(folder: &Path, decisions: u64) -> Result<Long> {
    let parts = serve::serve_while(folder, serve::service_config(), |address| ask(address, decisions))?;
    let bytes = serve::ledger_bytes(folder)?;
    let mut store = FileStore::open_locked(&folder.join("ledger"))?;
    let head = read_checkpoint(&mut store)?.checkpoint.head.digest().to_string();
    // An error here is a replay that differs from what is recorded.
    history::replay(&mut store, None, &mut |_, _| {})?;
    Ok(Long { parts, bytes, head })
}

fn measure(usual: u64) -> Result<Long> {
    let decisions = decisions(usual)?;
    serve::in_scratch("serve-long", |folder| measure_in(folder, decisions))
}

fn run() -> Result<Measurement> {
    let long = measure(DECISIONS_SHORT)?;
    let (second, last) = (&long.parts[1], &long.parts[PARTS as usize - 1]);
    let name = "the same in the second tenth";
    Ok(Measurement::new("serve_long", last.acting_us(), "us", second.acting_us(), name))
}

/// Prints every tenth.
pub fn report(json: bool) -> Result<Answer> {
    let Long { parts, bytes, head } = measure(DECISIONS)?;
    let pairs: u64 = parts.iter().map(|part| part.pairs).sum();
    let each = bytes as f64 / pairs.max(1) as f64;
    let (second, last) = (&parts[1], &parts[PARTS as usize - 1]);
    let ratio = last.acting_us() / second.acting_us().max(f64::MIN_POSITIVE);
    if json {
        let parts: Vec<Value> = parts.iter().map(Part::to_json).collect();
        say!(
            "{}",
            json!({ "decisions": pairs, "ledger_bytes_per_decision": each, "acting_ratio": ratio, "head": head,
                "replay": "same", "parts": parts })
        );
        return Ok(Answer::Yes);
    }
    say!(
        "| decisions | p50 ms | p99 ms | decide, door and ledger us a pair | learn us a pair | resident MB |"
    );
    say!("|---|---|---|---|---|---|");
    let mut sum = 0;
    for part in &parts {
        sum += part.pairs;
        let learn = part.cost.iter().find(|cost| cost.thread == "bem-learn").map_or(0.0, |cost| cost.cpu_us);
        say!(
            "| {sum} | {:.2} | {:.2} | {:.1} | {learn:.1} | {} |",
            part.p50_ms,
            part.p99_ms,
            part.acting_us(),
            part.resident_kb / 1_024
        );
    }
    say!("\n{each:.1} bytes of ledger for a decision with its reward.");
    say!("Processor time for a pair in the last tenth: {ratio:.2} of the second's.");
    say!("Played again: every entry as recorded, head {head}.");
    Ok(Answer::Yes)
}
