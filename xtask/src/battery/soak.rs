//! A long run: a server under load with a world, tools, people and images, whose memory, disk and cost of a step are watched.
//! Figures and a plot go to `docs/results/soak.md`. Clauses: IMG-3, LOG-5.

mod clients;
mod floor;
mod report;

use super::scratch;
use crate::{output, run, target};
use anyhow::{Context, Result, ensure};
use clients::{Client, Load};
use floor::Trial;
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
/// Decisions a second that a slow machine makes at least.
const DECISIONS_A_SECOND: u64 = 300;
/// Steps that the learner's log holds by default.
const LOG_STEPS_MAX: u64 = 262_144;
/// The world that is served.
const WORLD: &str = r#"{"name":"ads","obs_bits":4,"actions":4,"reward_range":[0,1000]}"#;

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
    /// What the machine takes for nothing.
    floor: Vec<Trial>,
    /// The newest image, brought back.
    back: Back,
    /// An image of a server that has decided a few hundred times, everything by default, brought back.
    default: Back,
}

/// An image that was restored and decides.
struct Back {
    /// Bytes of its layers, those of the base included.
    bytes: u64,
    /// From the first byte to the folder, everything checked.
    restored: Duration,
    /// From the start of the server to its first decision.
    decided: Duration,
    /// On a processor, of both, the end of the server included.
    processor: Duration,
}

/// A server under load for a minute x N.
pub fn soak(scale: u64) -> Result<()> {
    let folder = scratch("soak")?;
    let seconds = SECONDS * scale;
    let every = format!("{}s", (seconds / 12).clamp(5, IMAGE_SECONDS_MAX));
    let default = default_state(&folder)?;
    std::fs::write(folder.join("soak.toml"), format!("experience_steps = {}\n", log_steps(seconds)))?;
    // Segments small enough to be archived several times in the time at hand.
    let words =
        ["--key", "S-key", "--image-every", &every, "--segment-bytes", "1048576", "--config", "soak.toml"];
    let living = Living::start(&folder, &words)?;
    let (load, place) = (Arc::clone(&living.load), folder.clone());
    let floor = std::thread::spawn(move || floor::measure(&place, &load));
    let samples = watch(&folder, living.served.id(), seconds);
    let load = living.stop()?;
    let floor = floor.join().map_err(|_| anyhow::anyhow!("the floor has died"))??;
    let audited = bem(&folder, &["verify", "S"]).output()?;
    let audited = String::from_utf8_lossy(&audited.stdout).into_owned();
    let log = std::fs::read_to_string(folder.join("S/log/bem.log"))?;
    let back = bring_back(&folder)?;
    report::write(&Soaked { seconds, samples, load, log, audited, floor, back, default })
}

/// Steps that the learner's log holds in a run of this length: before it is full memory must grow, so that in a short run it is
/// smaller than by default and full before the middle.
fn log_steps(seconds: u64) -> u64 {
    (seconds * DECISIONS_A_SECOND / 2).clamp(4_096, LOG_STEPS_MAX)
}

/// A server with everything by default that decides a few hundred times and is saved; its image, brought back five times. The
/// median counts.
fn default_state(folder: &Path) -> Result<Back> {
    let folder = folder.join("default");
    std::fs::create_dir(&folder)?;
    let words =
        ["serve", "--listen", "127.0.0.1:0", "--state", "S", "--key", "S-key", "--image-every", "never"];
    let mut served = bem(&folder, &words).stdout(Stdio::piped()).spawn()?;
    let driven = drive(&folder, &mut served);
    run("kill", &["-TERM", &served.id().to_string()])?;
    served.wait()?;
    driven?;
    let words = ["image", "snapshot", "--state", "S", "--layout", "S/images", "--force"];
    ensure!(bem(&folder, &words).stdout(Stdio::null()).status()?.success(), "the default state is not saved");
    let mut backs = (0..5).map(|_| bring_back(&folder)).collect::<Result<Vec<Back>>>()?;
    backs.sort_by_key(|back| back.restored + back.decided);
    Ok(backs.swap_remove(2))
}

/// Makes the world and lets it decide a few hundred times.
fn drive(folder: &Path, served: &mut Child) -> Result<()> {
    let mut address = String::new();
    BufReader::new(served.stdout.take().context("no output")?).read_line(&mut address)?;
    let address = address.trim().strip_prefix("listening  http://").context("no address")?;
    let admin = std::fs::read_to_string(folder.join("S/token"))?.trim().to_string();
    let mut client = Client::open(address, &admin)?;
    client.ask("POST", "/v1/worlds", WORLD)?;
    for number in 0..400u64 {
        let seen = number * 7 % 16;
        let (_, answer) =
            client.ask("POST", "/v1/worlds/ads/decide", &format!(r#"{{"obs":"{seen:04b}"}}"#))?;
        let reward = if answer["action"].as_u64() == Some(seen % 4) { 1_000 } else { 0 };
        let body = format!(r#"{{"decision":{},"reward":{reward}}}"#, answer["decision"]);
        let (status, answer) = client.ask("POST", "/v1/worlds/ads/reward", &body)?;
        ensure!(status == 200, "{answer}");
    }
    Ok(())
}

/// Restores the newest image elsewhere and asks it for a decision.
fn bring_back(folder: &Path) -> Result<Back> {
    let listed = bem(folder, &["image", "list", "--layout", "S/images", "--json"]).output()?;
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).context("no list of images")?;
    let images = listed["images"].as_array().cloned().unwrap_or_default();
    let newest = images.iter().rfind(|image| image["kind"] == "service").context("no image was saved")?;
    let tag = newest["tag"].as_str().context("an image without a tag")?;
    let _ = std::fs::remove_dir_all(folder.join("B"));
    let before = children_time();
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
    let processor = children_time().saturating_sub(before);
    Ok(Back { bytes: newest["bytes"].as_u64().unwrap_or(0), restored, decided: decided?, processor })
}

/// Time on a processor of all processes that this one started and waited for, as the system counts it, in hundredths of a second.
fn children_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold anything, there are the state and numbers, of which the 13th and 14th are the
    // children's.
    let fields: Vec<u64> = stat
        .rsplit(')')
        .next()
        .into_iter()
        .flat_map(str::split_whitespace)
        .skip(1)
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    let ticks = fields.get(12).copied().unwrap_or(0) + fields.get(13).copied().unwrap_or(0);
    Duration::from_millis(10 * ticks)
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
        let made = Client::open(&address, &admin)?.ask("POST", "/v1/worlds", WORLD)?;
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
