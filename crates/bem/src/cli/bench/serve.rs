//! `bem bench serve`: decide and reward over loopback with keep-alive, beside a handler that does nothing, in the same run.
//!
//! The server learns while it is asked. Few threads with many blocking connections each make the load, in this process, so that
//! they take little of the same cores. What is acknowledged is synced: syncs, processor time and changes of the running thread
//! are counted for each pair, because they say more than times on a machine that is busy with other things.

use super::{Benchmark, Measurement};
use crate::cli::Answer;
use crate::file_store::FileStore;
use anyhow::{Context, Result, bail};
use bem_ledger::checkpoint::Signer;
use bem_ledger::log::LogOptions;
use bem_runtime::history::{self, Opened};
use bem_runtime::service::ServiceConfig;
use bem_serve::ServeOptions;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Threads that make the load, and connections of each.
const THREADS: usize = 2;
const CONNECTIONS: usize = 24;
/// How long each part lasts.
const LASTS: Duration = Duration::from_secs(5);
/// A token for the bench alone.
pub const TOKEN: &str = "bench-bench-bench-bench-bench-bench";

/// The benchmark of this area.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "serve",
    area: "serve",
    about: "decide and reward pairs a second over HTTP, beside an empty handler",
    run,
}];

/// What a load brought.
struct Load {
    count: u64,
    seconds: f64,
    /// Sorted, in milliseconds.
    latencies: Vec<f64>,
}

impl Load {
    fn rate(&self) -> f64 {
        self.count as f64 / self.seconds
    }

    fn quantile(&self, share: f64) -> f64 {
        let place = (self.latencies.len() as f64 * share) as usize;
        self.latencies.get(place.min(self.latencies.len().saturating_sub(1))).copied().unwrap_or(0.0)
    }
}

/// Everything that was measured.
struct Report {
    pairs: Load,
    /// Of the pairs, those of the last tenth of the time.
    late: f64,
    empty: Load,
    sync_ms: f64,
    syncs_per_pair: f64,
    bytes_per_decision: f64,
    rounds: u64,
    cost: Vec<Cost>,
}

/// What a thread of the server took for one pair.
pub(super) struct Cost {
    pub(super) thread: String,
    pub(super) cpu_us: f64,
    /// How often it gave the processor up, or lost it.
    pub(super) switches: f64,
}

/// Processor time in nanoseconds and changes of every thread of the server so far, by name.
pub(super) fn threads() -> BTreeMap<String, (u64, u64)> {
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let name = read("comm").trim().to_string();
        let shown = match name.as_str() {
            "bem-decide" | "bem-ledger" | "bem-learn" => name,
            "tokio-rt-worker" => "bem-door".to_string(),
            _ => continue,
        };
        let cpu = read("schedstat").split(' ').next().and_then(|word| word.parse::<u64>().ok());
        let status = read("status");
        let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
        let switches = switches.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        let sum = found.entry(shown).or_default();
        *sum = (sum.0 + cpu.unwrap_or(0), sum.1 + switches.sum::<u64>());
    }
    found
}

/// What every thread took for each of so many pairs since an earlier look.
pub(super) fn costs(before: &BTreeMap<String, (u64, u64)>, pairs: u64) -> Vec<Cost> {
    let each = |count: u64| count as f64 / pairs.max(1) as f64;
    let cost = |(thread, (cpu, switches)): (String, (u64, u64))| {
        let (cpu_before, switches_before) = before.get(&thread).copied().unwrap_or_default();
        Cost {
            thread,
            cpu_us: each(cpu.saturating_sub(cpu_before)) / 1_000.0,
            switches: each(switches.saturating_sub(switches_before)),
        }
    };
    threads().into_iter().map(cost).collect()
}

/// A connection that is kept, with at most one request under way.
pub struct Connection {
    stream: TcpStream,
    host: String,
    request: String,
    buffer: Vec<u8>,
    sent: Instant,
}

impl Connection {
    /// Connects to a server.
    pub fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).context("the server cannot be reached")?;
        stream.set_nodelay(true)?;
        let (request, buffer) = (String::new(), Vec::new());
        Ok(Connection { stream, host: address.to_string(), request, buffer, sent: Instant::now() })
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        self.request.clear();
        write!(
            self.request,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n{kind}Content-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        )?;
        self.sent = Instant::now();
        Ok(self.stream.write_all(self.request.as_bytes())?)
    }

    /// Status and body of the answer, and how many milliseconds it took.
    fn receive(&mut self) -> Result<(u16, &str, f64)> {
        self.buffer.clear();
        let mut chunk = [0; 4_096];
        let (status, body) = loop {
            let count = self.stream.read(&mut chunk)?;
            if count == 0 {
                bail!("the server has closed the connection");
            }
            self.buffer.extend_from_slice(&chunk[..count]);
            if let Some(found) = whole(&self.buffer) {
                break found;
            }
        };
        let took = self.sent.elapsed().as_secs_f64() * 1_000.0;
        Ok((status, std::str::from_utf8(&self.buffer[body])?, took))
    }

    /// Asks and waits for the answer: its status and body.
    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        self.send(method, path, body)?;
        let (status, body, _) = self.receive()?;
        Ok((status, body.to_string()))
    }
}

/// Status, and where the body lies, if the whole answer is there.
fn whole(bytes: &[u8]) -> Option<(u16, std::ops::Range<usize>)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let status = head.get(9..12)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    let body = end + 4..end + 4 + length;
    (body.end <= bytes.len()).then_some((status, body))
}

/// The text behind a key of a flat JSON object, up to the next quote, comma or brace.
fn field<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let rest = json.split_once(key)?.1.trim_start_matches(['"', ':']);
    rest.split(['"', ',', '}']).next()
}

/// Asks from many connections at once until the time is over: `once` sends on all of a thread's connections, reads all answers,
/// and returns how many units that were; it notes how long each request took.
fn load(
    address: SocketAddr,
    once: impl Fn(&mut [Connection], u64, &mut Vec<f64>) -> Result<u64> + Send + Sync + 'static,
) -> Result<(Load, f64)> {
    let once = Arc::new(once);
    let began = Instant::now();
    let clients: Vec<_> = (0..THREADS as u64)
        .map(|client| {
            let once = Arc::clone(&once);
            std::thread::spawn(move || -> Result<(u64, u64, Vec<f64>)> {
                let opened: Result<Vec<_>> = (0..CONNECTIONS).map(|_| Connection::open(address)).collect();
                let mut connections = opened?;
                let (mut count, mut late, mut took) = (0, 0, Vec::new());
                while began.elapsed() < LASTS {
                    let units = once(&mut connections, client + 1_000 * count, &mut took)?;
                    count += units;
                    late += if LASTS * 9 / 10 < began.elapsed() { units } else { 0 };
                }
                Ok((count, late, took))
            })
        })
        .collect();
    let (mut count, mut late, mut latencies) = (0, 0, Vec::new());
    for client in clients {
        let (one, last, took) = client.join().map_err(|_| anyhow::anyhow!("a client has died"))??;
        count += one;
        late += last;
        latencies.extend(took);
    }
    latencies.sort_by(f64::total_cmp);
    let late = late as f64 / (LASTS / 10).as_secs_f64();
    Ok((Load { count, seconds: began.elapsed().as_secs_f64(), latencies }, late))
}

/// Does something in a folder that is gone afterwards.
pub fn in_scratch<T>(name: &str, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let folder = std::env::temp_dir().join(format!("bem-bench-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let brought = work(&folder);
    let _ = std::fs::remove_dir_all(&folder);
    brought
}

fn measure() -> Result<Report> {
    in_scratch("serve", measure_in)
}

/// What the benchmarks serve with.
pub(super) fn service_config() -> ServiceConfig {
    ServiceConfig { seed: 1, parameters: Arc::default() }
}

/// Serves a new state in a folder while something asks it; what that brought, when the server has stopped cleanly.
pub fn serve_while<T>(
    folder: &Path,
    config: ServiceConfig,
    asks: impl FnOnce(SocketAddr) -> Result<T>,
) -> Result<T> {
    let store = FileStore::open_locked(&folder.join("ledger"))?;
    let opened = history::create(store, Signer::from_seed(&[7; 32]), "bench", config, LogOptions::default())?;
    serve_opened(opened, folder, asks)
}

/// The same for a history that was opened.
pub(super) fn serve_opened<T>(
    opened: Opened<FileStore>,
    folder: &Path,
    asks: impl FnOnce(SocketAddr) -> Result<T>,
) -> Result<T> {
    let options = ServeOptions {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        state: folder.to_path_buf(),
        admin: TOKEN.to_string(),
        hosts: Vec::new(),
        behind_proxy: false,
        rate: u32::MAX,
        has_empty: true,
        starts: None,
        lease: bem_serve::people::LEASE_LASTS,
        webhooks: Vec::new(),
        auditing: None,
        logs: None,
        domains: None,
    };
    let (ready, address) = std::sync::mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let server = std::thread::spawn(move || {
        let should_stop = move || asked.load(Ordering::Relaxed);
        bem_serve::run(opened, &options, None, should_stop, |address, _| {
            let _ = ready.send(address);
        })
    });
    let brought = address.recv().context("the server has not started").and_then(asks);
    stop.store(true, Ordering::Relaxed);
    let stopped = server.join().map_err(|_| anyhow::anyhow!("the server has died"))?;
    let brought = brought?;
    stopped?;
    Ok(brought)
}

/// Bytes of the ledger's segments in a folder.
pub(super) fn ledger_bytes(folder: &Path) -> Result<u64> {
    let files = std::fs::read_dir(folder.join("ledger"))?.flatten();
    let segments = files.filter(|file| file.file_name().to_string_lossy().starts_with("segment"));
    Ok(segments.filter_map(|file| Some(file.metadata().ok()?.len())).sum())
}

fn measure_in(folder: &Path) -> Result<Report> {
    let Measured { pairs, late, empty, gauges, cost } = serve_while(folder, service_config(), ask_all)?;
    let read =
        |name: &str| gauges.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    let groups = read("bem_groups").unwrap_or(1.0).max(1.0);
    Ok(Report {
        bytes_per_decision: ledger_bytes(folder)? as f64 / pairs.count.max(1) as f64,
        sync_ms: read("bem_sync_micros").unwrap_or(0.0) / 1_000.0 / groups,
        syncs_per_pair: groups / pairs.count.max(1) as f64,
        rounds: read("bem_rounds").unwrap_or(0.0) as u64,
        pairs,
        late,
        empty,
        cost,
    })
}

/// What the load has measured.
struct Measured {
    pairs: Load,
    late: f64,
    empty: Load,
    gauges: String,
    cost: Vec<Cost>,
}

fn ask_all(address: SocketAddr) -> Result<Measured> {
    let mut connection = Connection::open(address)?;
    make_world(&mut connection)?;
    let (empty, _) = load(address, |connections, _, took| {
        connections.iter_mut().try_for_each(|connection| connection.send("GET", "/empty", ""))?;
        for connection in connections.iter_mut() {
            took.push(connection.receive()?.2);
        }
        Ok(connections.len() as u64)
    })?;
    let before = threads();
    let (pairs, late) = load(address, ask_pairs)?;
    let cost = costs(&before, pairs.count);
    // A connection that was idle for long may be closed by now.
    let (_, gauges) = Connection::open(address)?.ask("GET", "/metrics", "")?;
    Ok(Measured { pairs, late, empty, gauges, cost })
}

/// Makes the world that pairs are asked about.
pub(super) fn make_world(connection: &mut Connection) -> Result<()> {
    let world = r#"{"name":"bench","obs_bits":10,"actions":4,"reward_range":[0,1000]}"#;
    match connection.ask("POST", "/v1/worlds", world)? {
        (201, _) => Ok(()),
        (status, answer) => bail!("no world: {status} {answer}"),
    }
}

/// One pair on every connection: all decide, then all are rewarded.
pub(super) fn ask_pairs(connections: &mut [Connection], number: u64, took: &mut Vec<f64>) -> Result<u64> {
    let seen = |place: u64| bem_base::prng::mix(number + (place << 40)) & 1_023;
    for (place, connection) in (0..).zip(connections.iter_mut()) {
        let body = format!("{{\"obs\":\"{:010b}\"}}", seen(place));
        connection.send("POST", "/v1/worlds/bench/decide", &body)?;
    }
    let mut bodies = Vec::with_capacity(connections.len());
    for (place, connection) in (0..).zip(connections.iter_mut()) {
        let (status, answer, ms) = connection.receive()?;
        let (decision, action) = (field(answer, "\"decision\""), field(answer, "\"action\""));
        let (Some(decision), Some(action)) = (decision, action) else {
            bail!("no decision: {status} {answer}");
        };
        let is_right = action.parse() == Ok(seen(place) & 3);
        let reward = if is_right { 1_000 } else { 0 };
        bodies.push(format!("{{\"decision\":\"{decision}\",\"reward\":{reward}}}"));
        took.push(ms);
    }
    for (connection, body) in connections.iter_mut().zip(&bodies) {
        connection.send("POST", "/v1/worlds/bench/reward", body)?;
    }
    for connection in connections.iter_mut() {
        let (status, answer, ms) = connection.receive()?;
        if status != 200 {
            bail!("no reward: {status} {answer}");
        }
        took.push(ms);
    }
    Ok(connections.len() as u64)
}

fn run() -> Result<Measurement> {
    let report = measure()?;
    let floor = report.empty.rate() / 2.0;
    let rate = report.pairs.rate();
    let measured = Measurement::new("serve", rate, "pairs/s", floor, "half the requests of an empty handler");
    Ok(measured.with("p99_ms", report.pairs.quantile(0.99)).with("sync_ms", report.sync_ms))
}

/// Prints everything that was measured.
pub fn report(json: bool) -> Result<Answer> {
    let report = measure()?;
    let Report { pairs, late, empty, sync_ms, syncs_per_pair, bytes_per_decision, rounds, cost } = &report;
    if json {
        say!(
            "{}",
            serde_json::json!({
                "machine": super::measure::machine(), "clients": THREADS * CONNECTIONS, "pairs_per_second": pairs.rate(),
                "p50_ms": pairs.quantile(0.5), "p99_ms": pairs.quantile(0.99), "late_pairs_per_second": late,
                "empty_per_second": empty.rate(), "empty_p50_ms": empty.quantile(0.5), "empty_p99_ms": empty.quantile(0.99),
                "threads": cost.iter().map(|cost| serde_json::json!({
                    "thread": cost.thread, "cpu_us_per_pair": cost.cpu_us, "switches_per_pair": cost.switches,
                })).collect::<Vec<_>>(),
                "sync_ms": sync_ms, "syncs_per_pair": syncs_per_pair, "ledger_bytes_per_decision": bytes_per_decision, "rounds": rounds,
            })
        );
        return Ok(Answer::Yes);
    }
    say!("{}", super::measure::machine());
    let connections = THREADS * CONNECTIONS;
    say!(
        "{connections} connections with keep-alive, {} s each; the clients share the cores",
        LASTS.as_secs()
    );
    say!(
        "  empty handler   {:>9.0} requests/s   p50 {:.2} ms, p99 {:.2} ms",
        empty.rate(),
        empty.quantile(0.5),
        empty.quantile(0.99)
    );
    say!(
        "  decide, reward  {:>9.0} pairs/s      p50 {:.2} ms, p99 {:.2} ms a request",
        pairs.rate(),
        pairs.quantile(0.5),
        pairs.quantile(0.99)
    );
    say!("  last tenth      {late:>9.0} pairs/s");
    say!(
        "  one sync        {sync_ms:>9.2} ms on average, {syncs_per_pair:.2} for each pair; an answer waits for one"
    );
    for Cost { thread, cpu_us, switches } in cost {
        say!("  {thread:<15} {cpu_us:>9.1} us of processor and {switches:.2} switches for each pair");
    }
    say!("  ledger          {bytes_per_decision:>9.1} bytes for a decision with its reward");
    say!("  learning        {rounds:>9} rounds took effect meanwhile");
    Ok(Answer::Yes)
}
