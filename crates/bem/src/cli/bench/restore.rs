//! `bem bench restore`: how long it takes from an image to the first decision of the server that goes on with it, and how large the
//! image is.
//!
//! The state is the default one: a new server, one world, some decisions. Restore and server are processes of this program, started
//! one after the other as an operator does; every digest is checked and the whole history audited, as always. What is compared
//! with is what was asked for: one second and 30 megabytes. Clauses: IMG-4, IMG-6.

use super::serve::{Connection, TOKEN, in_scratch};
use super::{Benchmark, Measurement};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// The benchmark of this file.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "restore",
    area: "restore",
    about: "from an image of the default state to the first decision, least of five; and the size of the image",
    run: || in_scratch("restore", measure),
}];

/// Seconds that were asked for.
const SECONDS_MAX: f64 = 1.0;
/// Megabytes that were asked for.
const MEGABYTES_MAX: f64 = 30.0;
/// Times that the image is restored.
const TRIALS: usize = 5;
/// Decisions before the image is saved.
const DECISIONS: usize = 100;

fn program(folder: &Path, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("this program's own file")?);
    command.args(arguments).current_dir(folder).env("XDG_STATE_HOME", folder.join("keys"));
    Ok(command)
}

fn run(folder: &Path, arguments: &[&str]) -> Result<Value> {
    let output = program(folder, arguments)?.output()?;
    if !output.status.success() {
        bail!("bem {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
}

/// A server that runs; it is ended when it goes out of scope.
struct Served {
    child: Child,
    address: SocketAddr,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    fn start(folder: &Path, state: &str) -> Result<Served> {
        let listen = ["serve", "--listen", "127.0.0.1:0", "--state", state];
        let rest = ["--token-file", "token", "--image-every", "never"];
        let mut child =
            program(folder, &[&listen[..], &rest[..]].concat())?.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("its output")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("listening  http://")?.parse().ok());
        // The rest of its output is read, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Served { child, address: address.context("the server has not started")? })
    }
}

fn ask(connection: &mut Connection, path: &str, body: &Value) -> Result<Value> {
    let (status, text) = connection.ask("POST", path, &body.to_string())?;
    if 300 <= status {
        bail!("{path}: {status} {text}");
    }
    Ok(serde_json::from_str(&text)?)
}

fn decide(connection: &mut Connection) -> Result<Value> {
    ask(connection, "/v1/worlds/ads/decide", &json!({ "obs": "0101" }))
}

/// Saves the image of a server that has decided a little; its tag and its bytes.
fn save(folder: &Path) -> Result<(String, f64)> {
    let served = Served::start(folder, "first")?;
    let mut connection = Connection::open(served.address)?;
    let world = json!({ "name": "ads", "obs_bits": 4, "actions": 4, "reward_range": [0, 1_000] });
    ask(&mut connection, "/v1/worlds", &world)?;
    for _ in 0..DECISIONS {
        let decided = decide(&mut connection)?;
        let outcome = json!({ "decision": decided["decision"], "reward": 1_000 });
        ask(&mut connection, "/v1/worlds/ads/reward", &outcome)?;
    }
    // The gate wants metrics that are written every five seconds; it is not what is measured here.
    run(folder, &["image", "snapshot", "--state", "first", "--layout", "images", "--force", "--json"])?;
    let listed = run(folder, &["image", "list", "--layout", "images", "--json"])?;
    let image = &listed["images"][0];
    let tag = image["tag"].as_str().context("an image")?.to_string();
    Ok((tag, image["bytes"].as_f64().context("its bytes")?))
}

/// Seconds of the restore alone, and until the first decision.
fn restore(folder: &Path, tag: &str, trial: usize) -> Result<(f64, f64)> {
    let (out, began) = (format!("restored-{trial}"), Instant::now());
    run(folder, &["image", "restore", tag, "--layout", "images", "--out", &out])?;
    let restored = began.elapsed().as_secs_f64();
    let served = Served::start(folder, &out)?;
    decide(&mut Connection::open(served.address)?)?;
    Ok((restored, began.elapsed().as_secs_f64()))
}

fn measure(folder: &Path) -> Result<Measurement> {
    std::fs::write(folder.join("token"), TOKEN)?;
    std::fs::set_permissions(folder.join("token"), Permissions::from_mode(0o600))?;
    let (tag, bytes) = save(folder)?;
    let mut took = (0..TRIALS).map(|trial| restore(folder, &tag, trial)).collect::<Result<Vec<_>>>()?;
    took.sort_by(|one, other| one.1.total_cmp(&other.1));
    let megabytes = bytes / 1e6;
    Ok(Measurement::new("restore", took[0].1, "s", SECONDS_MAX, "what may pass until the first decision")
        .with("median_s", took[TRIALS / 2].1)
        .with("restore_alone_s", took[0].0)
        .with("image_mb", megabytes)
        .with("image_mb_allowed", MEGABYTES_MAX))
}
