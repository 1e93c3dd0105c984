//! `bem bench serve`: decide and reward over loopback with keep-alive, beside a handler that does nothing, in the same run.
//!
//! The server learns while it is asked. Clients are threads with blocking sockets in this process, so that they take their share
//! of the same cores. What is acknowledged is synced: the time of one sync is shown beside.

use super::{Benchmark, Measurement};
use crate::cli::Answer;
use crate::file_store::FileStore;
use anyhow::{Context, Result, bail};
use bem_ledger::checkpoint::Signer;
use bem_ledger::log::LogOptions;
use bem_runtime::history;
use bem_runtime::service::ServiceConfig;
use bem_serve::ServeOptions;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Connections of the load.
const CLIENTS: usize = 48;
/// How long each part lasts.
const LASTS: Duration = Duration::from_secs(5);
/// A token for the bench alone.
const TOKEN: &str = "bench-bench-bench-bench-bench-bench";

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
    bytes_per_decision: f64,
    rounds: u64,
}

/// A connection that is kept.
struct Connection {
    stream: TcpStream,
    host: String,
    buffer: Vec<u8>,
}

impl Connection {
    fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).context("the server cannot be reached")?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, host: address.to_string(), buffer: Vec::new() })
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n{kind}Content-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.write_all(request.as_bytes())?;
        self.buffer.clear();
        let mut chunk = [0; 4_096];
        loop {
            if let Some(answer) = whole(&self.buffer) {
                return Ok(answer);
            }
            let count = self.stream.read(&mut chunk)?;
            if count == 0 {
                bail!("the server has closed the connection");
            }
            self.buffer.extend_from_slice(&chunk[..count]);
        }
    }
}

/// Status and body, if the whole answer is there.
fn whole(bytes: &[u8]) -> Option<(u16, String)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let status = head.get(9..12)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    let body = bytes.get(end + 4..end + 4 + length)?;
    Some((status, String::from_utf8_lossy(body).into_owned()))
}

/// Asks from many connections at once until the time is over; each call of `once` is one unit and returns how long each of its
/// requests took.
fn load(
    address: SocketAddr,
    once: impl Fn(&mut Connection, u64) -> Result<Vec<f64>> + Send + Sync + 'static,
) -> Result<(Load, f64)> {
    let once = Arc::new(once);
    let began = Instant::now();
    let clients: Vec<_> = (0..CLIENTS as u64)
        .map(|client| {
            let once = Arc::clone(&once);
            std::thread::spawn(move || -> Result<(u64, u64, Vec<f64>)> {
                let mut connection = Connection::open(address)?;
                let (mut count, mut late, mut took) = (0, 0, Vec::new());
                while began.elapsed() < LASTS {
                    took.extend(once(&mut connection, client + 1_000 * count)?);
                    count += 1;
                    late += u64::from(LASTS * 9 / 10 < began.elapsed());
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

fn measure() -> Result<Report> {
    let folder = std::env::temp_dir().join(format!("bem-bench-serve-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = measure_in(&folder);
    let _ = std::fs::remove_dir_all(&folder);
    measured
}

fn measure_in(folder: &std::path::Path) -> Result<Report> {
    let store = FileStore::open_locked(&folder.join("ledger"))?;
    let config = ServiceConfig { seed: 1, parameters: Arc::default() };
    let opened = history::create(store, Signer::from_seed(&[7; 32]), "bench", config, LogOptions::default())?;
    let options = ServeOptions {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        state: folder.to_path_buf(),
        admin: TOKEN.to_string(),
        hosts: Vec::new(),
        behind_proxy: false,
        rate: u32::MAX,
        has_empty: true,
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
    let measured = address.recv().context("the server has not started").and_then(ask_all);
    stop.store(true, Ordering::Relaxed);
    let stopped = server.join().map_err(|_| anyhow::anyhow!("the server has died"))?;
    let (pairs, late, empty, gauges) = measured?;
    stopped?;
    let bytes: u64 = std::fs::read_dir(folder.join("ledger"))?
        .flatten()
        .filter(|file| file.file_name().to_string_lossy().starts_with("segment"))
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum();
    let read =
        |name: &str| gauges.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    let groups = read("bem_groups").unwrap_or(1.0).max(1.0);
    Ok(Report {
        bytes_per_decision: bytes as f64 / pairs.count.max(1) as f64,
        sync_ms: read("bem_sync_micros").unwrap_or(0.0) / 1_000.0 / groups,
        rounds: read("bem_rounds").unwrap_or(0.0) as u64,
        pairs,
        late,
        empty,
    })
}

fn ask_all(address: SocketAddr) -> Result<(Load, f64, Load, String)> {
    let mut connection = Connection::open(address)?;
    let world = r#"{"name":"bench","obs_bits":10,"actions":4,"reward_range":[0,1000]}"#;
    let (status, answer) = connection.ask("POST", "/v1/worlds", world)?;
    if status != 201 {
        bail!("no world: {status} {answer}");
    }
    let (empty, _) = load(address, |connection, _| {
        let began = Instant::now();
        connection.ask("GET", "/empty", "")?;
        Ok(vec![began.elapsed().as_secs_f64() * 1_000.0])
    })?;
    let (pairs, late) = load(address, |connection, number| {
        let seen = bem_base::prng::mix(number) & 1_023;
        let began = Instant::now();
        let body = format!("{{\"obs\":\"{seen:010b}\"}}");
        let (status, answer) = connection.ask("POST", "/v1/worlds/bench/decide", &body)?;
        let decided = began.elapsed().as_secs_f64() * 1_000.0;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        let (Some(decision), Some(action)) = (answer["decision"].as_str(), answer["action"].as_u64()) else {
            bail!("no decision: {status} {answer}");
        };
        let reward = if action == seen & 3 { 1_000 } else { 0 };
        let body = format!("{{\"decision\":\"{decision}\",\"reward\":{reward}}}");
        let began = Instant::now();
        let (status, answer) = connection.ask("POST", "/v1/worlds/bench/reward", &body)?;
        if status != 200 {
            bail!("no reward: {status} {answer}");
        }
        Ok(vec![decided, began.elapsed().as_secs_f64() * 1_000.0])
    })?;
    // A connection that was idle for long may be closed by now.
    let (_, gauges) = Connection::open(address)?.ask("GET", "/metrics", "")?;
    Ok((pairs, late, empty, gauges))
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
    let Report { pairs, late, empty, sync_ms, bytes_per_decision, rounds } = &report;
    if json {
        say!(
            "{}",
            serde_json::json!({
                "machine": super::measure::machine(), "clients": CLIENTS, "pairs_per_second": pairs.rate(),
                "p50_ms": pairs.quantile(0.5), "p99_ms": pairs.quantile(0.99), "late_pairs_per_second": late,
                "empty_per_second": empty.rate(), "empty_p50_ms": empty.quantile(0.5), "empty_p99_ms": empty.quantile(0.99),
                "sync_ms": sync_ms, "ledger_bytes_per_decision": bytes_per_decision, "rounds": rounds,
            })
        );
        return Ok(Answer::Yes);
    }
    say!("{}", super::measure::machine());
    say!("{CLIENTS} connections with keep-alive, {} s each; the clients share the cores", LASTS.as_secs());
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
    say!("  one sync        {sync_ms:>9.2} ms on average; an answer waits for one");
    say!("  ledger          {bytes_per_decision:>9.1} bytes for a decision with its reward");
    say!("  learning        {rounds:>9} rounds took effect meanwhile");
    Ok(Answer::Yes)
}
