//! Takes steps of the machine beside a tool bus and says nothing: for counting instructions.
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*counted_step*' bus_count STEPS [idle | full | silent | slow]
//! ```
//!
//! `idle` has a bus without traffic; `full` asks for a tool at every step where all slots are taken, and takes what ended at
//! every barrier; `silent` has workers that take requests and never answer, so that every lease runs out; `slow` steps an
//! external simulator that takes 50 ms a step in a thread of its own. Only [`counted_step`] is counted. Clause: TOOL-12.

use anyhow::{Context as _, Result};
use bem_machine::testing::SingleWorkload;
use bem_tools::bus::{Request, key};
use bem_tools::worker::Port;
use bem_workers::catalog_file::{CatalogFile, Simulator};
use bem_workers::host::{Host, HostOptions};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Steps between two barriers.
const BARRIER: u64 = 64;
const SLOW: &str = "echo '{\"obs_bits\":1}'; while read line; do sleep 0.05; echo '{}'; done";

/// One step of the machine, and nothing of the bus.
#[inline(never)]
fn counted_step(workload: &mut SingleWorkload) {
    black_box(workload.step());
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let steps: u64 =
        words.first().map_or(Ok(1_000), |text| text.parse()).context("a whole number of steps")?;
    let how = words.get(1).map_or("idle", String::as_str);
    let simulator = Simulator { command: SLOW.to_string(), timeout: Duration::from_secs(60) };
    let (catalog, world) = CatalogFile::for_simulator(simulator)?;
    let catalog = Arc::new(catalog);
    let kind = catalog.catalog.find("prover").context("a kind")?;
    let options = HostOptions { has_threads: false, lease: 20, ..HostOptions::default() };
    let mut host = Host::start(Arc::clone(&catalog), &options)?;
    let mut port = match host.bus().channels().iter().find(|channel| channel.kind() == kind) {
        Some(channel) if how == "silent" => Some(Port::open(Arc::clone(channel.mapping()), 9)?),
        _ => None,
    };
    let over = Arc::new(AtomicBool::new(false));
    let outside = (how == "slow").then(|| step_outside(catalog, world, Arc::clone(&over)));
    let asked = |number: u64| Request {
        operation: 0,
        flags: 0,
        resource: kind,
        payload: &[7; 64],
        capacity: 256,
        number,
        key: key(number, &[7; 64]),
        is_idempotent: true,
        lease: 0,
        patience: 0,
    };
    let mut workload = SingleWorkload::new(6);
    for number in 0..steps {
        if how == "full" || how == "silent" {
            let _ = black_box(host.enqueue_unjudged(kind, &asked(number)));
        }
        counted_step(&mut workload);
        if number % BARRIER == 0 {
            // A worker that takes what it finds and keeps it.
            while port.as_mut().is_some_and(|port| port.claim().is_some()) {}
            black_box(host.poll(usize::MAX));
        }
    }
    over.store(true, Ordering::Relaxed);
    outside
        .map(|thread| thread.join().unwrap_or_else(|_| anyhow::bail!("the simulator failed")))
        .transpose()?;
    Ok(())
}

/// Steps a simulator over a bus of its own until it is over.
fn step_outside(
    catalog: Arc<CatalogFile>,
    world: bem_base::ids::ObjectId,
    over: Arc<AtomicBool>,
) -> std::thread::JoinHandle<Result<()>> {
    std::thread::spawn(move || {
        let kind = catalog.catalog.find("env").context("a kind")?;
        let mut host = Host::start(Arc::clone(&catalog), &HostOptions::default())?;
        for number in 1.. {
            if over.load(Ordering::Relaxed) && 2 < number {
                break;
            }
            let asked = Request {
                operation: u16::from(number != 1),
                flags: 0,
                resource: world,
                payload: &[],
                capacity: 4_096,
                number,
                key: key(number, &[]),
                is_idempotent: false,
                lease: 60_000,
                patience: 0,
            };
            let done = host.call(kind, &asked).map_err(|refused| anyhow::anyhow!("{refused}"))?;
            anyhow::ensure!(done.error.is_none(), "step {number}: {:?}", done.error);
        }
        Ok(())
    })
}
