//! Webhooks in the Standard Webhooks format: what happens to questions, answers and patches is sent to targets that a file
//! of configuration names, and to no others.
//!
//! A message is sent when what it tells is durable: one signed POST with a number of its own, tried again with a wait that
//! grows fourfold, never redirected. Every target has a thread and a bounded queue, so that one that is gone costs the others
//! nothing; what finds no room, or no answer in [`ATTEMPTS_MAX`] attempts, is dropped and counted, and what waits is lost when
//! the server stops. A message names questions and says how they moved: neither what they show nor what was answered. Must not
//! know the runtime. Clause: HUM-12; decision D-182.

use crate::core::Gauges;
use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bem_base::calendar::civil;
use bem_workers::http;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::Sha256;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is told, by name.
pub const EVENTS: [&str; 6] = [
    "question.created",
    "question.answered",
    "question.skipped",
    "question.notified",
    "answer.undone",
    "patch.decided",
];
/// Targets at most.
const TARGETS_MAX: usize = 8;
/// Messages of one target that may wait.
pub const WAITING_MAX: usize = 256;
/// How often a message is tried.
pub const ATTEMPTS_MAX: u32 = 6;
/// The wait after the first attempt, if the file says nothing; it grows fourfold.
const FIRST_WAIT: u64 = 2_000;
/// How long one attempt may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes of an answer, of which only the status counts.
const ANSWER_MAX: usize = 1 << 16;
/// Bytes of a secret.
const SECRET_BYTES: core::ops::RangeInclusive<usize> = 24..=64;

/// Where messages go, and with which key they are signed.
#[derive(Clone)]
pub struct Webhook {
    url: String,
    key: Vec<u8>,
    events: Vec<String>,
    first_wait: Duration,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Webhook").field("events", &self.events).finish_non_exhaustive()
    }
}

/// The file as it is written: a list of webhooks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    webhook: Vec<Row>,
}

/// One webhook as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    url: String,
    secret_file: String,
    events: Option<Vec<String>>,
    first_wait_ms: Option<u64>,
}

/// Reads a file of targets; secrets lie in files of their own, beside it unless their path says otherwise.
pub fn load(path: &Path) -> Result<Vec<Webhook>> {
    let named = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(named)?;
    let File { webhook } = toml::from_str(&text).map_err(|error| {
        let line = error.to_string();
        anyhow::anyhow!("{}: {}", named(), line.lines().collect::<Vec<_>>().join(" "))
    })?;
    if TARGETS_MAX < webhook.len() {
        bail!("{}: {} webhooks, at most {TARGETS_MAX} are allowed", named(), webhook.len());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let read = |row: Row| row.read(folder).with_context(named);
    webhook.into_iter().map(read).collect()
}

impl Row {
    fn read(self, folder: &Path) -> Result<Webhook> {
        http::check(&self.url)?;
        let events = self.events.unwrap_or_else(|| EVENTS.map(str::to_string).to_vec());
        if let Some(event) = events.iter().find(|event| !EVENTS.contains(&event.as_str())) {
            bail!("events: {event:?} is unknown: {}", EVENTS.join(", "));
        }
        let first_wait = self.first_wait_ms.unwrap_or(FIRST_WAIT);
        if !(10..=60_000).contains(&first_wait) {
            bail!("first_wait_ms {first_wait} is out of range: 10 to 60000");
        }
        let file = folder.join(&self.secret_file);
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("secret_file {}", file.display()))?;
        let key = key_of(text.trim()).with_context(|| format!("secret_file {}", file.display()))?;
        Ok(Webhook { url: self.url, key, events, first_wait: Duration::from_millis(first_wait) })
    }
}

/// The key of a secret as the format writes it.
fn key_of(secret: &str) -> Result<Vec<u8>> {
    let wrong = "must hold whsec_ and 24 to 64 bytes in base64";
    let key = secret.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok());
    key.filter(|key| SECRET_BYTES.contains(&key.len())).context(wrong)
}

/// The signature of a message.
fn signature(key: &[u8], id: &str, seconds: u64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// A second since 1970 as a date and time.
fn written(seconds: u64) -> String {
    let (year, month, day) = civil((seconds / 86_400) as i64);
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A message on its way: its number, and what it says.
#[derive(Clone)]
struct Sent {
    id: String,
    body: String,
}

/// The targets with their queues.
pub struct Webhooks {
    targets: Vec<(Vec<String>, SyncSender<Sent>)>,
    gauges: Arc<Gauges>,
}

impl Webhooks {
    /// Starts a thread for every target; they end with this.
    pub fn start(hooks: &[Webhook], gauges: Arc<Gauges>) -> Result<Webhooks> {
        let mut targets = Vec::new();
        for hook in hooks {
            let (sender, receiver) = sync_channel(WAITING_MAX);
            let (events, hook, gauges) = (hook.events.clone(), hook.clone(), Arc::clone(&gauges));
            let thread = std::thread::Builder::new().name("bem-webhook".to_string());
            thread.spawn(move || deliver(&hook, &receiver, &gauges)).context("a thread cannot be started")?;
            targets.push((events, sender));
        }
        Ok(Webhooks { targets, gauges })
    }

    /// Whether nobody is told anything.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Sends to whoever wants to hear of it; never waits.
    pub fn send(&self, event: &str, data: &Value) {
        let wanted = |events: &[String]| events.iter().any(|wanted| wanted == event);
        if !self.targets.iter().any(|(events, _)| wanted(events)) {
            return;
        }
        let mut random = [0; 16];
        if getrandom::fill(&mut random).is_err() {
            self.gauges.webhooks_dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let body = json!({ "type": event, "timestamp": written(now()), "data": data }).to_string();
        let message = Sent { id: format!("msg_{id}"), body };
        for (_, queue) in self.targets.iter().filter(|(events, _)| wanted(events)) {
            if queue.try_send(message.clone()).is_err() {
                self.gauges.webhooks_dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// What became of one attempt.
enum Attempt {
    Taken,
    Failed,
    /// The target says that it is gone for good.
    Gone,
}

fn attempt(hook: &Webhook, message: &Sent) -> Attempt {
    let seconds = now();
    let signed = signature(&hook.key, &message.id, seconds, &message.body);
    let seconds = seconds.to_string();
    let headers = [
        ("webhook-id", message.id.as_str()),
        ("webhook-timestamp", seconds.as_str()),
        ("webhook-signature", signed.as_str()),
    ];
    let asked = http::Ask {
        method: "POST",
        url: &hook.url,
        bearer: None,
        headers: &headers,
        body: Some(&message.body),
        answer_max: ANSWER_MAX,
        timeout: TIMEOUT,
    };
    match http::ask(&asked) {
        Ok((200..=299, _)) => Attempt::Taken,
        Ok((410, _)) => Attempt::Gone,
        // A redirect is no success, and nobody follows it.
        Ok(_) | Err(_) => Attempt::Failed,
    }
}

/// Sends what waits, in order, until nobody sends any more.
fn deliver(hook: &Webhook, queue: &Receiver<Sent>, gauges: &Gauges) {
    let mut is_gone = false;
    while let Ok(message) = queue.recv() {
        let (mut tried, mut wait) = (0, hook.first_wait);
        let is_taken = !is_gone
            && loop {
                tried += 1;
                match attempt(hook, &message) {
                    Attempt::Taken => break true,
                    Attempt::Gone => {
                        is_gone = true;
                        break false;
                    }
                    Attempt::Failed if tried == ATTEMPTS_MAX => break false,
                    Attempt::Failed => {
                        gauges.webhooks_retried.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(wait);
                        wait *= 4;
                    }
                }
            };
        let count = if is_taken { &gauges.webhooks_sent } else { &gauges.webhooks_dropped };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
