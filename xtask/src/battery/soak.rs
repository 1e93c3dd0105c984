//! A long run: a server under load with images, whose memory, disk and cost of a step are watched. Figures and a plot go to
//! `docs/results/soak.md`. Clauses: IMG-3, LOG-5.

use super::scratch;
use crate::{output, root, target};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Connections that ask at the same time.
const CLIENTS: u64 = 12;
/// Seconds of load at scale 1; an hour at scale 60.
const SECONDS: u64 = 60;
const SAMPLE_EVERY: Duration = Duration::from_secs(2);

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server under load for a minute x N.
pub fn soak(scale: u64) -> Result<()> {
    let folder = scratch("soak")?;
    let seconds = SECONDS * scale;
    // Segments small enough to be archived several times in the time at hand, and an image every 15 s at least four times.
    let every = format!("{}s", (seconds / 12).clamp(5, 900));
    let words = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--state",
        "S",
        "--image-every",
        &every,
        "--segment-bytes",
        "1048576",
    ];
    let mut child = Command::new(target().join("release/bem"))
        .args(words)
        .current_dir(&folder)
        .env("XDG_STATE_HOME", folder.join("keys"))
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let served = Served(child);
    let address = lines.next().context("no address")??;
    let address = address.strip_prefix("listening  http://").context("no address")?.to_string();
    let token = std::fs::read_to_string(folder.join("S/token"))?.trim().to_string();
    let mut client = Client::open(&address, &token)?;
    let world = r#"{"name":"ads","obs_bits":4,"actions":4,"reward_range":[0,1000],"expire_after":2000}"#;
    ensure!(client.ask("POST", "/v1/worlds", world)?.0 == 201, "the world is not made");
    let (stop, steps, slowest) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (address, token) = (address.clone(), token.clone());
            let (stop, steps, slowest) = (Arc::clone(&stop), Arc::clone(&steps), Arc::clone(&slowest));
            std::thread::spawn(move || load(&address, &token, number, &stop, &steps, &slowest))
        })
        .collect();
    let began = Instant::now();
    let mut samples = Vec::new();
    while began.elapsed() < Duration::from_secs(seconds) {
        std::thread::sleep(SAMPLE_EVERY);
        if let Some(mut figures) = read_metrics(&folder.join("S/metrics")) {
            figures.insert("at".to_string(), began.elapsed().as_secs() as i64);
            figures.insert("layout_bytes".to_string(), bytes_below(&folder.join("S/images"))? as i64);
            samples.push(figures);
        }
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().map_err(|_| anyhow::anyhow!("a client has died"))??;
    }
    let pid = served.0.id().to_string();
    crate::run("kill", &["-TERM", &pid])?;
    drop(lines);
    let mut served = served;
    served.0.wait()?;
    let audited = output(
        &target().join("release/bem").display().to_string(),
        &["verify", &folder.join("S").display().to_string()],
    )?;
    write_report(
        &folder,
        &samples,
        steps.load(Ordering::Relaxed),
        seconds,
        slowest.load(Ordering::Relaxed),
        &audited,
    )
}

/// A connection that is kept.
struct Client {
    stream: TcpStream,
    address: String,
    token: String,
}

impl Client {
    fn open(address: &str, token: &str) -> Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Client { stream, address: address.to_string(), token: token.to_string() })
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, serde_json::Value)> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        self.stream.write_all(request.as_bytes())?;
        let (mut bytes, mut chunk) = (Vec::new(), [0; 4_096]);
        loop {
            let count = self.stream.read(&mut chunk)?;
            ensure!(0 < count, "the server has hung up");
            bytes.extend_from_slice(&chunk[..count]);
            let text = String::from_utf8_lossy(&bytes);
            let Some((head, rest)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if length.unwrap_or(0) <= rest.len() {
                return Ok((head[9..12].parse()?, serde_json::from_str(rest).unwrap_or_default()));
            }
        }
    }
}

fn load(
    address: &str,
    token: &str,
    number: u64,
    stop: &AtomicBool,
    steps: &AtomicU64,
    slowest: &AtomicU64,
) -> Result<()> {
    let mut client = Client::open(address, token)?;
    let mut draw = super::Draw(number + 1);
    while !stop.load(Ordering::Relaxed) {
        let seen = draw.below(16);
        let began = Instant::now();
        let (status, answer) =
            client.ask("POST", "/v1/worlds/ads/decide", &format!("{{\"obs\":\"{seen:04b}\"}}"))?;
        slowest.fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        ensure!(status == 200, "{status} {answer}");
        let reward = if answer["action"].as_u64() == Some(seen % 4) { 1_000 } else { 0 };
        let outcome = format!("{{\"decision\":{},\"reward\":{reward}}}", answer["decision"]);
        let (status, answer) = client.ask("POST", "/v1/worlds/ads/reward", &outcome)?;
        ensure!(status == 200, "{status} {answer}");
        steps.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn read_metrics(path: &Path) -> Option<BTreeMap<String, i64>> {
    let text = std::fs::read_to_string(path).ok()?;
    let figures = text.lines().skip(1).filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_string(), value.parse().ok()?))
    });
    Some(figures.collect())
}

fn bytes_below(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { bytes_below(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}

fn mean(samples: &[BTreeMap<String, i64>], name: &str) -> i64 {
    let values: Vec<i64> = samples.iter().filter_map(|sample| sample.get(name).copied()).collect();
    values.iter().sum::<i64>() / (values.len().max(1) as i64)
}

fn write_report(
    folder: &Path,
    samples: &[BTreeMap<String, i64>],
    steps: u64,
    seconds: u64,
    slowest: u64,
    audited: &str,
) -> Result<()> {
    ensure!(16 <= samples.len(), "{} samples are too few", samples.len());
    let half = &samples[samples.len() / 2..];
    let quarter = half.len() / 4;
    let (early, late) = (&half[..quarter.max(1)], &half[half.len() - quarter.max(1)..]);
    let grown = |name: &str| {
        let (before, after) = (mean(early, name), mean(late, name));
        (before, after, (after - before) as f64 * 100.0 / before.max(1) as f64)
    };
    let last = samples.last().context("no samples")?;
    let get = |name: &str| last.get(name).copied().unwrap_or(0);
    // Microseconds of the deciding thread for an input, over two stretches of the run.
    let cost = |from: &BTreeMap<String, i64>, to: &BTreeMap<String, i64>| {
        let part = |name: &str| to.get(name).copied().unwrap_or(0) - from.get(name).copied().unwrap_or(0);
        part("act_micros") as f64 / part("inputs").max(1) as f64
    };
    let middle = &samples[samples.len() / 2];
    let log = std::fs::read_to_string(folder.join("S/log/bem.log"))?;
    let count =
        |event: &str| log.lines().filter(|line| line.contains(&format!("\"event\":\"{event}\""))).count();
    let commit = output("git", &["rev-parse", "--short", "HEAD"])?;
    let (memory, ledger, layout) = (grown("memory_bytes"), grown("ledger_bytes"), grown("layout_bytes"));
    let mut text = format!(
        "# Soak\n\nWritten by `cargo xtask battery soak --scale {}` on commit {}, two cores shared with other work. One world of four bits and\n\
         four actions, {CLIENTS} connections, segments of 1 MiB so that they are archived, decisions known\n\
         for 2,000 more, so that the state has its full size early; everything else by default.\n\n\
         | figure | value |\n|---|---|\n",
        seconds / SECONDS,
        commit.trim()
    );
    for (name, value) in [
        (
            "load",
            format!(
                "{seconds} s, {steps} decisions with their rewards, {:.0} a second",
                steps as f64 / seconds as f64
            ),
        ),
        ("memory in the second half", format!("{} to {} bytes, {:+.1} %", memory.0, memory.1, memory.2)),
        (
            "ledger on disk in the second half",
            format!("{} to {} bytes, {:+.1} %", ledger.0, ledger.1, ledger.2),
        ),
        (
            "layout of images in the second half",
            format!("{} to {} bytes, {:+.1} %", layout.0, layout.1, layout.2),
        ),
        (
            "deciding thread, an input",
            format!(
                "{:.1} us in the first half, {:.1} us in the second (syncs included)",
                cost(&samples[0], middle),
                cost(middle, last)
            ),
        ),
        (
            "images saved, skipped; archives",
            format!("{}, {}; {}", count("image"), count("image_skipped"), count("archived")),
        ),
        ("longest wait for a state to be encoded", format!("{} us", get("barrier_max_micros"))),
        ("slowest decision, HTTP and sync included", format!("{slowest} us")),
        (
            "patches in force, taken back",
            format!("{}, {}", get("patches_applied"), get("patches_taken_back")),
        ),
        ("audit at the end", audited.lines().next().unwrap_or("").to_string()),
    ] {
        text.push_str(&format!("| {name} | {value} |\n"));
    }
    text.push_str("\n![memory and disk over time](soak.svg)\n");
    let results = root().join("docs/results");
    std::fs::create_dir_all(&results)?;
    std::fs::write(results.join("soak.md"), &text)?;
    std::fs::write(results.join("soak.svg"), plot(samples))?;
    println!("{text}");
    ensure!(memory.2 < 5.0, "memory grew by {:.1} % over the second half", memory.2);
    Ok(())
}

/// Memory and ledger over time, as lines in one picture.
fn plot(samples: &[BTreeMap<String, i64>]) -> String {
    const NAMES: [(&str, &str, &str); 3] = [
        ("memory_bytes", "#1b6ca8", "memory"),
        ("ledger_bytes", "#c0392b", "ledger"),
        ("layout_bytes", "#2e8b57", "images"),
    ];
    let most = samples
        .iter()
        .flat_map(|sample| NAMES.iter().filter_map(|(name, ..)| sample.get(*name)))
        .copied()
        .max();
    let (most, end) = (
        most.unwrap_or(1).max(1),
        samples.last().and_then(|last| last.get("at")).copied().unwrap_or(1).max(1),
    );
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 260\" font-family=\"sans-serif\" font-size=\"12\">\n",
    );
    svg.push_str("<rect width=\"640\" height=\"260\" fill=\"white\"/><path d=\"M50 20V220H620\" fill=\"none\" stroke=\"black\"/>\n");
    svg.push_str(&format!(
        "<text x=\"4\" y=\"26\">{} MB</text><text x=\"560\" y=\"238\">{end} s</text>\n",
        most / 1_000_000
    ));
    for (place, (name, colour, label)) in NAMES.iter().enumerate() {
        let points: Vec<String> = samples
            .iter()
            .filter_map(|sample| {
                let (at, value) = (sample.get("at")?, sample.get(*name)?);
                Some(format!(
                    "{:.1},{:.1}",
                    50.0 + 570.0 * *at as f64 / end as f64,
                    220.0 - 200.0 * *value as f64 / most as f64
                ))
            })
            .collect();
        svg.push_str(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>\n",
            points.join(" ")
        ));
        svg.push_str(&format!(
            "<text x=\"{}\" y=\"252\" fill=\"{colour}\">{label}</text>\n",
            60 + 90 * place
        ));
    }
    svg.push_str("</svg>\n");
    svg
}
