//! `bem bench people_page`: how long it takes from an answer to the next question, in a server with a long history.
//!
//! The history has 10^5 answered questions and 10^6 entries. Then one person works through the queue over HTTP, with the two
//! requests that the page makes for a key, each durable before it is answered; what a browser takes to draw is not in it. The
//! memory of the process is read before the history, after it, and after the work. Clause: HUM-12.

use crate::cli::bench::serve::{Connection, in_scratch, serve_opened};
use crate::cli::bench::{Benchmark, Measurement};
use crate::file_store::FileStore;
use anyhow::{Context as _, Result, bail, ensure};
use bem_base::environment::{Bits, Outcome};
use bem_base::fixed::Fixed;
use bem_ledger::checkpoint::Signer;
use bem_ledger::log::LogOptions;
use bem_people::kinds::{Priority, QuestionKind};
use bem_people::payload::{Answer, StepAnswer};
use bem_runtime::history::{self, LogSink, Opened};
use bem_runtime::input::{Input, WorldIndex, WorldSpec};
use bem_runtime::people::input::Ask;
use bem_runtime::service::{Service, ServiceConfig};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The benchmark of this file.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "people_page",
    area: "people_page",
    about: "from an answer to the next question, 95th percentile, with 10^5 questions and 10^6 entries behind",
    run: || in_scratch("people-page", measure),
}];

/// Questions that were answered before.
const QUESTIONS: u64 = 100_000;
/// Entries of the ledger at least.
const ENTRIES: u64 = 1_000_000;
/// How often each was leased and given back before it was answered.
const LEASES: u64 = 4;
/// Decisions that are asked about.
const DECISIONS: u64 = 64;
/// Questions that are answered over HTTP.
const ASKED: usize = 500;
/// Who answered before.
const PERSON: u32 = 7;
/// What people have time for between a key and the next question, in milliseconds.
const LIMIT: f64 = 100.0;

/// A service that is driven without threads.
struct Past {
    opened: Opened<FileStore>,
}

impl Past {
    fn service(&self) -> &Service {
        &self.opened.player.service
    }

    /// Lets an input take effect; its number.
    fn take(&mut self, input: Input) -> Result<u64> {
        let Opened { log, player, .. } = &mut self.opened;
        player.take(&mut LogSink(log), input)?;
        Ok(player.service.last())
    }

    /// A world with some decisions that can be asked about.
    fn begin(&mut self) -> Result<Vec<u64>> {
        let shape = WorldSpec::shape_of(4, 4, 1, (0, 1_000), Vec::new());
        let spec = WorldSpec {
            name: "desk".to_string(),
            shape,
            min_propensity: Fixed::ZERO,
            expire_after: 60_000,
            forbidden: Vec::new(),
            note: String::new(),
            floor: None,
        };
        let created = self.opened.player.service.create(spec)?.context("the world is new")?;
        self.take(created)?;
        let mut decisions = Vec::new();
        for seen in 0..DECISIONS {
            let asked = self.service().ask(WorldIndex(0), Bits([seen % 16, 0, 0, 0]), "")?;
            let decision = self.take(asked)?;
            let outcome = Outcome { reward: 500, done: true, bad: false };
            let rewarded = self.service().reward(WorldIndex(0), decision, outcome)?;
            self.take(rewarded.context("the reward is new")?)?;
            decisions.push(decision);
        }
        Ok(decisions)
    }

    /// One question from its asking to its answer.
    fn answer_one(&mut self, decision: u64, place: u64) -> Result<()> {
        let ask = Ask {
            kind: QuestionKind::LabelStep,
            world: 0,
            target: decision,
            worlds: Vec::new(),
            priority: Priority::Normal,
            patience: 0,
            quorum: 1,
            person: PERSON,
            words: String::new(),
        };
        let asked = self.service().ask_people(ask)?;
        self.take(asked)?;
        let serial = self.service().people().table().last();
        for lease in 1..=LEASES {
            let leased = self.service().lease(serial, PERSON, true)?.context("nobody has it")?;
            self.take(leased)?;
            if lease < LEASES {
                let released = self.service().release(serial, lease as u32, PERSON)?;
                self.take(released)?;
            }
        }
        let score = if place.is_multiple_of(2) { Fixed::ONE } else { Fixed::ZERO };
        let said = StepAnswer { accept: place.is_multiple_of(2), best: None, score, comment: 0 };
        let answer = Answer::Step(said).to_bytes();
        let answered = self.service().answer(serial, LEASES as u32, PERSON, answer)?;
        self.take(answered.context("it is new")?)?;
        Ok(())
    }
}

/// Megabytes of memory that the process holds now.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1_024.0
}

fn ask(connection: &mut Connection, path: &str, body: &Value) -> Result<Value> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, text) = connection.ask("POST", path, &body)?;
    if 300 <= status {
        bail!("{path}: {status} {text}");
    }
    Ok(serde_json::from_str(&text)?)
}

/// Works through questions as the page does; milliseconds from each answer to the next question, sorted.
fn work(address: SocketAddr, decisions: &[u64]) -> Result<Vec<f64>> {
    let mut connection = Connection::open(address)?;
    let put = |connection: &mut Connection, place: usize| {
        let decision = decisions[place % decisions.len()].to_string();
        let question = json!({ "kind": "label_step", "world": "desk", "decision": decision });
        ask(connection, "/v1/questions", &question).map(drop)
    };
    (0..32).try_for_each(|place| put(&mut connection, place))?;
    let mut next = ask(&mut connection, "/v1/questions/next", &Value::Null)?;
    let mut took = Vec::new();
    for place in 0..ASKED {
        let leased = &next["leased"];
        let id = leased["question"]["question"].as_str().context("a question")?;
        let path = format!("/v1/questions/{id}/answer");
        let body = json!({ "lease": leased["lease"], "answer": { "accept": place % 2 == 0 } });
        let began = Instant::now();
        ask(&mut connection, &path, &body)?;
        next = ask(&mut connection, "/v1/questions/next", &Value::Null)?;
        took.push(began.elapsed().as_secs_f64() * 1_000.0);
        put(&mut connection, place)?;
    }
    took.sort_by(f64::total_cmp);
    Ok(took)
}

fn measure(folder: &Path) -> Result<Measurement> {
    let before = resident();
    let store = FileStore::open_locked(&folder.join("ledger"))?;
    let config = ServiceConfig { seed: 1, parameters: Arc::default() };
    let signer = Signer::from_seed(&[7; 32]);
    let opened = history::create(store, signer, "bench", config, LogOptions::default())?;
    let mut past = Past { opened };
    let decisions = past.begin()?;
    let mut early = 0.0;
    for place in 0..QUESTIONS {
        past.answer_one(decisions[(place % DECISIONS) as usize], place)?;
        if place + 1 == QUESTIONS / 10 {
            early = resident();
        }
    }
    let Opened { log, player, .. } = &mut past.opened;
    player.book.close_block(&mut LogSink(log))?;
    log.commit()?;
    let (entries, after) = (log.size(), resident());
    ensure!(ENTRIES <= entries, "{entries} entries instead of {ENTRIES}");
    let took = serve_opened(past.opened, folder, |address| work(address, &decisions))?;
    let quantile = |share: f64| took[((took.len() as f64 * share) as usize).min(took.len() - 1)];
    let floor = "what people have time for";
    Ok(Measurement::new("people_page", quantile(0.95), "ms", LIMIT, floor)
        .with("median_ms", quantile(0.5))
        .with("longest_ms", quantile(1.0))
        .with("questions", QUESTIONS as f64)
        .with("entries", entries as f64)
        .with("memory_before_mb", before)
        .with("memory_after_a_tenth_mb", early)
        .with("memory_after_history_mb", after)
        .with("memory_at_the_end_mb", resident()))
}
