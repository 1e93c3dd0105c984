//! A long run: a server under load with a world, tools, people and images, whose memory, disk and cost of a step are watched.
//! Figures and a plot go to `docs/results/soak.md`. Clauses: IMG-3, LOG-5.

mod clients;
mod report;

use super::scratch;
use crate::{output, run, target};
use anyhow::{Context, Result, ensure};
use clients::{Client, Load};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Seconds of load at scale 1; an hour at scale 60.
const SECONDS: u64 = 60;
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// Time between two images; shorter in a short run, so that there are some.
const IMAGE_SECONDS_MAX: u64 = 300;

/// Figures at one moment, by name.
type Sample = BTreeMap<String, i64>;

/// What a run brought.
struct Soaked {
    seconds: u64,
    samples: Vec<Sample>,
    load: Arc<Load>,
    /// The server's own log.
    log: String,
    /// What `bem verify` said at the end.
    audited: String,
    /// The newest image, brought back.
    back: Back,
}

/// An image that was restored and decides.
struct Back {
    /// Bytes of its layers, those of the base included.
    bytes: u64,
    /// From the first byte to the folder, everything checked.
    restored: Duration,
    /// From the start of the server to its first decision.
    decided: Duration,
}

/// A server under load for a minute x N.
pub fn soak(scale: u64) -> Result<()> {
    let folder = scratch("soak")?;
    let seconds = SECONDS * scale;
    let every = format!("{}s", (seconds / 12).clamp(5, IMAGE_SECONDS_MAX));
    // Segments small enough to be archived several times in the time at hand.
    let words = ["--key", "S-key", "--image-every", &every, "--segment-bytes", "1048576"];
    let living = Living::start(&folder, &words)?;
    let samples = watch(&folder, living.served.id(), seconds);
    let load = living.stop()?;
    let audited = bem(&folder, &["verify", "S"]).output()?;
    let audited = String::from_utf8_lossy(&audited.stdout).into_owned();
    let log = std::fs::read_to_string(folder.join("S/log/bem.log"))?;
    let back = bring_back(&folder)?;
    report::write(&Soaked { seconds, samples, load, log, audited, back })
}

/// Restores the newest image elsewhere and asks it for a decision.
fn bring_back(folder: &Path) -> Result<Back> {
    let listed = bem(folder, &["image", "list", "--layout", "S/images", "--json"]).output()?;
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).context("no list of images")?;
    let images = listed["images"].as_array().cloned().unwrap_or_default();
    let newest = images.iter().rfind(|image| image["kind"] == "service").context("no image was saved")?;
    let tag = newest["tag"].as_str().context("an image without a tag")?;
    let began = Instant::now();
    let words = ["image", "restore", tag, "--layout", "S/images", "--out", "B", "--key", "S-key"];
    ensure!(bem(folder, &words).stdout(Stdio::null()).status()?.success(), "{tag} is not restored");
    let restored = began.elapsed();
    let began = Instant::now();
    let words = ["serve", "--listen", "127.0.0.1:0", "--state", "B", "--key", "S-key"];
    let mut served = bem(folder, &words).stdout(Stdio::piped()).spawn()?;
    let decided = first_decision(folder, &mut served).map(|()| began.elapsed());
    run("kill", &["-TERM", &served.id().to_string()])?;
    served.wait()?;
    Ok(Back { bytes: newest["bytes"].as_u64().unwrap_or(0), restored, decided: decided? })
}

fn first_decision(folder: &Path, served: &mut Child) -> Result<()> {
    let mut address = String::new();
    BufReader::new(served.stdout.take().context("no output")?).read_line(&mut address)?;
    let address = address.trim().strip_prefix("listening  http://").context("no address")?;
    let admin = std::fs::read_to_string(folder.join("B/token"))?.trim().to_string();
    let answer = Client::open(address, &admin)?.ask("POST", "/v1/worlds/ads/decide", r#"{"obs":"0101"}"#)?;
    ensure!(answer.0 == 200, "no decision: {}", answer.1);
    Ok(())
}

fn bem(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(target().join("release/bem"));
    command.args(words).current_dir(folder).env("XDG_STATE_HOME", folder.join("keys"));
    command.stdin(Stdio::null());
    command
}

/// A file and a database as tools.
fn make_tools(folder: &Path) -> Result<()> {
    std::fs::create_dir(folder.join("config"))?;
    std::fs::write(folder.join("config/env.txt"), "gain=3\n")?;
    let make = "import sqlite3; b = sqlite3.connect('stock.db'); \
                b.execute('CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)'); b.commit()";
    let made = Command::new("python3").args(["-c", make]).current_dir(folder).status()?;
    ensure!(made.success(), "the database is not made");
    let catalog = "[[root]]\nname = \"config\"\npath = \"config\"\nalias = \"CONFIG_ROOT\"\n\
                   [[file]]\nroot = \"config\"\npath = \"env.txt\"\n\
                   [[database]]\nname = \"stock\"\nsqlite = \"stock.db\"\n";
    Ok(std::fs::write(folder.join("catalog.toml"), catalog)?)
}

/// A server with a world and tools, and everybody who uses it.
pub struct Living {
    served: Child,
    /// What it says; open as long as it lives.
    said: BufReader<ChildStdout>,
    load: Arc<Load>,
    clients: Vec<std::thread::JoinHandle<Result<()>>>,
}

impl Drop for Living {
    fn drop(&mut self) {
        let _ = self.served.kill();
        let _ = self.served.wait();
    }
}

impl Living {
    /// Starts a server in the folder `S`, and the clients.
    pub fn start(folder: &Path, more: &[&str]) -> Result<Living> {
        make_tools(folder)?;
        let usual = ["serve", "--listen", "127.0.0.1:0", "--state", "S", "--tools", "catalog.toml"];
        let mut served = bem(folder, &[&usual[..], more].concat()).stdout(Stdio::piped()).spawn()?;
        let said = BufReader::new(served.stdout.take().context("no output")?);
        let mut living = Living { served, said, load: Arc::new(Load::default()), clients: Vec::new() };
        let mut address = String::new();
        living.said.read_line(&mut address)?;
        let address = address.trim().strip_prefix("listening  http://").context("no address")?.to_string();
        let admin = std::fs::read_to_string(folder.join("S/token"))?.trim().to_string();
        let world = r#"{"name":"ads","obs_bits":4,"actions":4,"reward_range":[0,1000]}"#;
        let made = Client::open(&address, &admin)?.ask("POST", "/v1/worlds", world)?;
        ensure!(made.0 == 201, "the world is not made: {}", made.1);
        for number in 0..clients::DECIDERS {
            living.join(&address, &admin, move |client, load| clients::decide(client, number, load))?;
        }
        living.join(&address, &admin, clients::use_tools)?;
        for name in ["ada", "ben"] {
            let token =
                bem(folder, &["token", "add", name, "--role", "annotator", "--state", "S"]).output()?;
            ensure!(token.status.success(), "no token for {name}");
            let token = String::from_utf8_lossy(&token.stdout).trim().to_string();
            living.join(&address, &token, clients::answer)?;
        }
        Ok(living)
    }

    fn join(
        &mut self,
        address: &str,
        token: &str,
        work: impl FnOnce(Client, &Load) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let (client, load) = (Client::open(address, token)?, Arc::clone(&self.load));
        self.clients.push(std::thread::spawn(move || work(client, &load)));
        Ok(())
    }

    /// Ends the clients and then the server; what the clients did.
    pub fn stop(mut self) -> Result<Arc<Load>> {
        self.load.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            client.join().map_err(|_| anyhow::anyhow!("a client has died"))??;
        }
        run("kill", &["-TERM", &self.served.id().to_string()])?;
        ensure!(self.served.wait()?.success(), "the server did not end well");
        Ok(Arc::clone(&self.load))
    }
}

fn watch(folder: &Path, process: u32, seconds: u64) -> Vec<Sample> {
    let began = Instant::now();
    let mut samples = Vec::new();
    while began.elapsed() < Duration::from_secs(seconds) {
        std::thread::sleep(SAMPLE_EVERY);
        let Some(mut figures) = read_metrics(&folder.join("S/metrics")) else { continue };
        figures.insert("at".to_string(), began.elapsed().as_secs() as i64);
        for (name, part) in [("layout_bytes", "images"), ("log_bytes", "log"), ("state_bytes", "")] {
            figures.insert(name.to_string(), bytes_below(&folder.join("S").join(part)) as i64);
        }
        figures.extend(processor_time(process));
        samples.push(figures);
    }
    samples
}

/// Microseconds on a processor by the name of the thread, as the system counts them: waiting is not in them.
fn processor_time(process: u32) -> Sample {
    let mut sum = Sample::new();
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for task in tasks {
        let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let nanoseconds = read("schedstat").split(' ').next().and_then(|text| text.parse::<i64>().ok());
        let micros = nanoseconds.unwrap_or(0) / 1_000;
        let name = read("comm").trim().to_string();
        *sum.entry(format!("cpu {name}")).or_default() += micros;
        *sum.entry("cpu".to_string()).or_default() += micros;
    }
    sum
}

fn read_metrics(path: &Path) -> Option<Sample> {
    let text = std::fs::read_to_string(path).ok()?;
    let figures = text.lines().skip(1).filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_string(), value.parse().ok()?))
    });
    Some(figures.collect())
}

/// Bytes of all files below a folder; one that goes meanwhile counts nothing.
fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

/// The commit that is measured; with a mark where files differ from it.
fn commit() -> Result<String> {
    let changed =
        output("git", &["status", "--porcelain", "--untracked-files=no", "--", "crates", "Cargo.lock"])?;
    let commit = output("git", &["rev-parse", "--short", "HEAD"])?;
    Ok(format!("{}{}", commit.trim(), if changed.trim().is_empty() { "" } else { " with changes" }))
}
