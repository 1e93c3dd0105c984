//! The tool bus: what an enqueue costs, and how often a request goes to another process and back.

use super::{Benchmark, Measurement, minimum_nanoseconds};
use anyhow::{Context as _, Result};
use bem_tools::bus::{Channel, Completed, Request, key};
use bem_tools::error::Refused;
use bem_tools::layout::{Mapping as _, WINDOWS_AT};
use bem_tools::limits::{PAYLOAD_FAST_MAX, SLOTS};
use bem_tools::word::Ordering;
use bem_tools::worker::{Failure, Job, Port, Tool, serve_one};
use bem_workers::catalog_file::CatalogFile;
use bem_workers::host::{Host, HostOptions};
use bem_workers::mapping::Shared;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Benchmarks of this area.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "tool_enqueue",
        area: "tools",
        about: "median time to put a request on the bus",
        run: enqueue,
    },
    Benchmark {
        name: "tool_round_trip",
        area: "tools",
        about: "requests a second to a worker in another process, one after the other",
        run: round_trip,
    },
];

/// Batches of an enqueue benchmark.
const BATCHES: usize = 2_000;
/// Requests of a round-trip benchmark.
const ROUNDS: u32 = 5_000;

/// A worker's tool that does nothing, so that the bus alone is timed.
struct Nothing;

impl Tool for Nothing {
    fn run(&mut self, _job: &Job) -> Result<Vec<u8>, Failure> {
        Ok(Vec::new())
    }
}

fn asked(catalog: &CatalogFile, payload: &'static [u8]) -> Result<Request<'static>> {
    Ok(Request {
        operation: 0,
        flags: 0,
        resource: catalog.catalog.find("memory").context("a root")?,
        payload,
        capacity: 256,
        number: 1,
        key: key(1, payload),
        is_idempotent: true,
        lease: 10_000,
        patience: 0,
    })
}

fn catalog() -> Result<CatalogFile> {
    let text = "[[root]]\nname = \"memory\"\nmemory = true\n".to_string();
    CatalogFile::parse("bench", text, std::env::temp_dir(), None)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn enqueue() -> Result<Measurement> {
    let catalog = catalog()?;
    let kind = catalog.catalog.find("fs").context("a kind")?;
    let shared = Arc::new(Shared::create()?);
    let mut channel = Channel::new(kind, Arc::clone(&shared));
    let mut port = Port::open(Arc::clone(&shared), 1)?;
    let request = asked(&catalog, &[7; 64])?;
    let (mut times, mut full, mut done) = (Vec::new(), Vec::new(), Vec::<Completed>::new());
    for batch in 0..BATCHES as u64 {
        let began = Instant::now();
        for _ in 0..SLOTS {
            let _ = black_box(channel.enqueue(&request, batch));
        }
        times.push(began.elapsed().as_nanos() as f64 / SLOTS as f64);
        let began = Instant::now();
        for _ in 0..SLOTS {
            assert_eq!(black_box(channel.enqueue(&request, batch)), Err(Refused::NoSlot));
        }
        full.push(began.elapsed().as_nanos() as f64 / SLOTS as f64);
        while serve_one(&mut port, &mut Nothing) {}
        done.clear();
        channel.poll(batch, SLOTS, &mut done);
        assert_eq!(done.len(), SLOTS, "every request has ended");
    }
    let words = shared.words();
    let floor = minimum_nanoseconds(20, 10_000, || {
        for word in &words[WINDOWS_AT..WINDOWS_AT + 24] {
            word.store(black_box(7), Ordering::Relaxed);
        }
    });
    let longest = PAYLOAD_FAST_MAX as f64;
    Ok(Measurement::new(
        "tool_enqueue",
        median(times),
        "ns",
        floor,
        "24 stores: descriptor, side entry and payload",
    )
    .with("on a full bus", median(full))
    .with("bytes at most", longest))
}

fn round_trip() -> Result<Measurement> {
    let folder = std::env::temp_dir().join(format!("bem-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = measure_round_trips(&folder);
    std::fs::remove_dir_all(&folder)?;
    let (bus, p99) = measured?;
    let echo = echo()?;
    Ok(Measurement::new(
        "tool_round_trip",
        bus,
        "requests/s",
        echo,
        "an echo over a Unix socket to another process",
    )
    .with("p99 us", p99))
}

fn measure_round_trips(folder: &std::path::Path) -> Result<(f64, f64)> {
    let catalog = Arc::new(catalog()?);
    let kind = catalog.catalog.find("fs").context("a kind")?;
    let socket = folder.join("bus.sock");
    let options = HostOptions { socket: Some(socket.clone()), has_threads: false, ..HostOptions::default() };
    let mut host = Host::start(Arc::clone(&catalog), &options)?;
    let mut worker = Command::new(std::env::current_exe()?)
        .args(["worker", "--kind", "fs", "--no-sandbox", "--bus"])
        .arg(&socket)
        .stderr(Stdio::null())
        .spawn()?;
    let mut request = asked(&catalog, &[])?;
    // The first answer shows that the worker is there.
    let first = host.call(kind, &request).map_err(|refused| anyhow::anyhow!("{refused}"))?;
    anyhow::ensure!(first.error.is_none(), "the worker fails: {:?}", first.error);
    let mut times = Vec::new();
    let began = Instant::now();
    for number in 2..2 + u64::from(ROUNDS) {
        request.number = number;
        let one = Instant::now();
        black_box(host.call(kind, &request).map_err(|refused| anyhow::anyhow!("{refused}"))?);
        times.push(one.elapsed());
    }
    let rate = f64::from(ROUNDS) / began.elapsed().as_secs_f64();
    drop(host);
    worker.wait()?;
    times.sort();
    Ok((rate, times[times.len() * 99 / 100].as_nanos() as f64 / 1e3))
}

/// Echoes a second of `cat` at the other end of a socket.
fn echo() -> Result<f64> {
    let (mut ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(Duration::from_secs(10)))?;
    let input: OwnedFd = theirs.try_clone()?.into();
    let mut child =
        Command::new("cat").stdin(Stdio::from(input)).stdout(Stdio::from(OwnedFd::from(theirs))).spawn()?;
    let mut bytes = [7; 64];
    let began = Instant::now();
    for _ in 0..ROUNDS {
        ours.write_all(&bytes)?;
        ours.read_exact(&mut bytes)?;
    }
    let rate = f64::from(ROUNDS) / began.elapsed().as_secs_f64();
    drop(ours);
    child.wait()?;
    Ok(rate)
}
