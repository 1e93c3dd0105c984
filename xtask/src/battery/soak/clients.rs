//! Everybody who uses the server that is soaked: those who decide and reward, one who asks tools, and scripted people.

use crate::battery::Draw;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Connections that ask for decisions at the same time.
pub const DECIDERS: u64 = 10;
/// Time between two decisions of a connection: the load is the same from the first minute to the last, so that what grows is not
/// what is asked for.
pub const PACE: Duration = Duration::from_millis(5);
/// Decisions that took longer than this are kept with their time.
pub const SLOW: Duration = Duration::from_millis(50);
/// Slow decisions that are kept.
const SLOW_MAX: usize = 100_000;
/// How often a tool is asked, and how often each person answers.
const PAUSE: Duration = Duration::from_millis(500);

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What the clients did.
#[derive(Default)]
pub struct Load {
    /// They end.
    pub stop: AtomicBool,
    /// Decisions with their rewards.
    pub steps: AtomicU64,
    /// Requests to tools that ended well.
    pub tools: AtomicU64,
    /// Answers of people, and answers taken back.
    pub answers: AtomicU64,
    /// See `answers`.
    pub undone: AtomicU64,
    /// The slowest decision, in microseconds.
    pub slowest: AtomicU64,
    /// Slow decisions: when they ended, in seconds since 1970, and the microseconds that they took.
    pub slow: Mutex<Vec<(u64, u64)>>,
    /// Decisions by the second in which they ended.
    pub by_second: Mutex<BTreeMap<u64, u64>>,
    /// A decision that is known for a while, for people to be asked about.
    newest: AtomicU64,
}

impl Load {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn book(&self, took: Duration) {
        let micros = took.as_micros() as u64;
        let at = now();
        self.slowest.fetch_max(micros, Ordering::Relaxed);
        if let Ok(mut by_second) = self.by_second.lock() {
            *by_second.entry(at).or_default() += 1;
        }
        if SLOW < took
            && let Ok(mut slow) = self.slow.lock()
            && slow.len() < SLOW_MAX
        {
            slow.push((at, micros));
        }
    }
}

/// A connection that is kept.
pub struct Client {
    stream: TcpStream,
    address: String,
    token: String,
}

impl Client {
    /// Opens a connection.
    pub fn open(address: &str, token: &str) -> Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(Client { stream, address: address.to_string(), token: token.to_string() })
    }

    /// Asks and waits for the answer.
    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Value)> {
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

    /// The same, where anything but success is an error.
    fn must(&mut self, path: &str, body: &Value) -> Result<Value> {
        let (status, answer) = self.ask("POST", path, &body.to_string())?;
        ensure!(status < 300, "{path} {body}: {status} {answer}");
        Ok(answer)
    }
}

/// Decides and rewards: one action is right for what is seen.
pub fn decide(mut client: Client, number: u64, load: &Load) -> Result<()> {
    let mut draw = Draw(number + 1);
    while !load.is_over() {
        let seen = draw.below(16);
        let began = Instant::now();
        let answer = client.must("/v1/worlds/ads/decide", &json!({ "obs": format!("{seen:04b}") }))?;
        load.book(began.elapsed());
        let reward = if answer["action"].as_u64() == Some(seen % 4) { 1_000 } else { 0 };
        let decision = &answer["decision"];
        client.must("/v1/worlds/ads/reward", &json!({ "decision": decision, "reward": reward }))?;
        load.steps.fetch_add(1, Ordering::Relaxed);
        if let Some(number) = decision.as_str().and_then(|text| text.parse().ok()) {
            load.newest.store(number, Ordering::Relaxed);
        }
        std::thread::sleep(PACE.saturating_sub(began.elapsed()));
    }
    Ok(())
}

/// Reads a file, writes a row, counts the rows.
pub fn use_tools(mut client: Client, load: &Load) -> Result<()> {
    let requests = [
        json!({ "kind": "fs", "op": "read", "resource": "config/env.txt" }),
        json!({ "kind": "db", "op": "query", "resource": "stock", "flags": ["transactional"],
            "request": { "text": "INSERT INTO item (name) VALUES (?1)", "parameters": ["saw"] } }),
        json!({ "kind": "db", "op": "query", "resource": "stock", "request": { "text": "SELECT count(*) FROM item" } }),
    ];
    for request in requests.iter().cycle() {
        if load.is_over() {
            break;
        }
        let answer = client.must("/v1/tools", request)?;
        ensure!(answer["status"] == json!("done"), "{request}: {answer}");
        load.tools.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Asks about the newest decision, answers the most pressing question, and takes every eighth answer back.
pub fn answer(mut client: Client, load: &Load) -> Result<()> {
    while !load.is_over() {
        std::thread::sleep(PAUSE);
        let newest = load.newest.load(Ordering::Relaxed);
        if newest == 0 {
            continue;
        }
        let question = json!({ "kind": "label_step", "world": "ads", "decision": newest.to_string(), "priority": "low" });
        // It may be asked about already, or too many may be open: then there is something to answer.
        client.ask("POST", "/v1/questions", &question.to_string())?;
        let next = client.must("/v1/questions/next", &json!({}))?;
        let leased = &next["leased"];
        if leased.is_null() {
            continue;
        }
        let id = leased["question"]["question"].as_str().context("a question has a number")?;
        let path = format!("/v1/questions/{id}/answer");
        let said = json!({ "lease": leased["lease"], "answer": { "accept": true } });
        let (status, given) = client.ask("POST", &path, &said.to_string())?;
        if status != 200 {
            // What it was about is too old by now.
            let skipped = json!({ "lease": leased["lease"], "reason": "obsolete" });
            client.ask("POST", &format!("/v1/questions/{id}/skip"), &skipped.to_string())?;
            continue;
        }
        let count = load.answers.fetch_add(1, Ordering::Relaxed);
        if count % 8 == 7
            && let Some(answer) = given["answer"].as_str()
        {
            let (status, _) = client.ask("POST", &format!("/v1/answers/{answer}/undo"), "{}")?;
            load.undone.fetch_add(u64::from(status == 200), Ordering::Relaxed);
        }
    }
    Ok(())
}
