//! Eight people at once over HTTP: closed tabs, double answers, leases that run out, and a server that is killed. Every answer
//! counts once or is refused, none that was acknowledged is lost, and the history plays again. Clauses: HUM-3, LOG-1.

mod server;

use serde_json::{Value, json};
use server::{Client, Server, bem, text};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// People who work at the same time.
const PEOPLE: u64 = 8;
/// Seconds that a lease lasts here.
const LEASE: &str = "1";

fn size(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A few random numbers: which of them comes when depends on the threads anyway.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Where the server is now; it moves with every start.
struct Place {
    address: Mutex<String>,
    is_over: AtomicBool,
}

impl Place {
    fn address(&self) -> String {
        self.address.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A person who comes back after every end of the server.
struct Worker {
    place: Arc<Place>,
    token: String,
    client: Option<Client>,
}

impl Worker {
    /// Asks until there is an answer; nothing when all is over.
    fn ask(&mut self, path: &str, body: &Value) -> Option<(u16, Value)> {
        while !self.place.is_over.load(Ordering::Relaxed) {
            if self.client.is_none() {
                let address = self.place.address();
                let is_there = std::net::TcpStream::connect(&address).is_ok();
                self.client = is_there.then(|| Client::new(&address, &self.token));
            }
            let answer = self.client.as_mut().and_then(|client| client.try_ask("POST", path, body));
            match answer {
                Some((429 | 503, _)) => std::thread::sleep(Duration::from_millis(20)),
                Some(answer) => return Some(answer),
                None => {
                    self.client = None;
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        None
    }
}

/// What one person was told.
#[derive(Default)]
struct Told {
    /// Questions by the number of the answer that was acknowledged.
    answers: BTreeMap<String, String>,
    skipped: u64,
    refused: u64,
}

fn work(worker: &mut Worker, draw: &mut Draw) -> Told {
    let mut told = Told::default();
    while let Some((status, next)) = worker.ask("/v1/questions/next", &Value::Null) {
        assert_eq!(status, 200, "{next}");
        let leased = &next["leased"];
        let Some(id) = leased["question"]["question"].as_str() else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let path = |what: &str| format!("/v1/questions/{id}/{what}");
        let answer = json!({ "lease": leased["lease"], "answer": { "accept": draw.below(2) == 0 } });
        match draw.below(10) {
            // The tab is closed: the question is given to others when the lease has run out. The same person would get it
            // again at once, and comes back later.
            0 => std::thread::sleep(Duration::from_millis(1_200)),
            1 => match worker.ask(&path("skip"), &json!({ "lease": leased["lease"] })) {
                Some((200, _)) => told.skipped += 1,
                Some(_) => told.refused += 1,
                None => break,
            },
            kind => {
                if kind == 2 {
                    // Too late, as a rule.
                    std::thread::sleep(Duration::from_millis(2_200));
                }
                let Some((status, given)) = worker.ask(&path("answer"), &answer) else { break };
                if status != 200 {
                    assert!(status == 404 || status == 409, "{status} {given}");
                    told.refused += 1;
                    continue;
                }
                let number = given["answer"].as_str().expect("a number").to_string();
                told.answers.insert(number.clone(), id.to_string());
                if 7 < kind {
                    // The same again is the same answer; another one is refused.
                    let Some((status, again)) = worker.ask(&path("answer"), &answer) else { break };
                    assert_eq!((status, again["answer"].as_str()), (200, Some(number.as_str())), "{again}");
                    let other =
                        json!({ "lease": leased["lease"], "answer": { "accept": false, "score": 0.25 } });
                    let Some((status, other)) = worker.ask(&path("answer"), &other) else { break };
                    assert_eq!(status, 409, "{other}");
                }
            }
        }
    }
    told
}

/// Asks questions until there were so many, with as many ends of the server as wanted in between.
fn drive(folder: &Path, place: &Place, questions: u64, kills: u64, begun: &AtomicU64) -> Server {
    let start = || Server::start(folder, "served", &["--lease", LEASE]);
    let mut server = start();
    *place.address.lock().unwrap_or_else(PoisonError::into_inner) = server.address.clone();
    let mut client = server.connect();
    let world = json!({ "name": "desk", "obs_bits": 3, "actions": 4, "reward_range": [0, 1000] });
    assert_eq!(client.ask("POST", "/v1/worlds", &world).0, 201);
    let (mut asked, mut killed) = (0, 0);
    while asked < questions {
        if killed * questions < kills * asked {
            killed += 1;
            server.kill();
            server = start();
            *place.address.lock().unwrap_or_else(PoisonError::into_inner) = server.address.clone();
            client = server.connect();
        }
        let seen = format!("{:03b}", asked % 8);
        let (_, decided) = client.ask("POST", "/v1/worlds/desk/decide", &json!({ "obs": seen }));
        let body = json!({ "decision": decided["decision"], "reward": asked % 2 * 1_000 });
        assert_eq!(client.ask("POST", "/v1/worlds/desk/reward", &body).0, 200);
        let body = json!({ "kind": "label_step", "world": "desk", "decision": decided["decision"] });
        match client.ask("POST", "/v1/questions", &body) {
            (201, _) => asked += 1,
            // Too many are open: people are slower than the machine.
            (429, _) => std::thread::sleep(Duration::from_millis(5)),
            (status, answer) => panic!("{status} {answer}"),
        }
        begun.store(asked, Ordering::Relaxed);
    }
    server
}

#[test]
fn eight_people_and_a_server_that_is_killed_lose_no_answer_and_count_none_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let (questions, kills) = (size("BEM_PEOPLE_QUESTIONS", 150), size("BEM_PEOPLE_KILLS", 3));
    // Tokens are made beside a folder that the first server makes.
    Server::start(folder.path(), "served", &[]).stop();
    let token = |number: u64| {
        let name = format!("person-{number}");
        let made = bem(folder.path(), &["token", "add", &name, "--role", "annotator", "--state", "served"]);
        text(&made).trim().to_string()
    };
    let tokens: Vec<String> = (0..PEOPLE).map(token).collect();
    let place = Arc::new(Place { address: Mutex::new(String::new()), is_over: AtomicBool::new(false) });
    let people: Vec<_> = (1..)
        .zip(tokens)
        .map(|(seed, token)| {
            let mut worker = Worker { place: Arc::clone(&place), token, client: None };
            std::thread::spawn(move || {
                work(&mut worker, &mut Draw(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15)))
            })
        })
        .collect();
    let begun = AtomicU64::new(0);
    let server = drive(folder.path(), &place, questions, kills, &begun);
    let mut client = server.connect();
    // Everything that is open is worked on, or skipped.
    for _ in 0..6_000 {
        let (_, open) = client.ask("GET", "/v1/questions?limit=1", &Value::Null);
        if open["open"] == json!(0) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    place.is_over.store(true, Ordering::Relaxed);
    let told: Vec<Told> = people.into_iter().map(|person| person.join().expect("a person")).collect();
    let acknowledged: usize = told.iter().map(|told| told.answers.len()).sum();
    let mut answered: BTreeMap<&str, &str> = BTreeMap::new();
    for (answer, question) in told.iter().flat_map(|told| &told.answers) {
        assert_eq!(answered.insert(question, answer), None, "question {question} was answered twice");
    }
    let (_, people) = client.ask("GET", "/v1/people", &Value::Null);
    let counted = |name: &str| people["statistics"][name].as_u64().expect("a count");
    assert_eq!(counted("total_tasks_completed"), acknowledged as u64, "{people}");
    assert_eq!(counted("total_tasks_created"), questions);
    assert_eq!(
        counted("total_tasks_created"),
        counted("total_tasks_completed") + counted("total_tasks_skipped")
    );
    // Nothing acknowledged is lost: what the server still shows of answers is what people were told.
    let (_, latest) = client.ask("GET", "/v1/answers?limit=100", &Value::Null);
    for given in latest["answers"].as_array().expect("a list") {
        let question = given["question"].as_str().expect("a number");
        assert_eq!(answered.get(question).copied(), given["answer"].as_str(), "{given}");
    }
    let refused: u64 = told.iter().map(|told| told.refused).sum();
    println!("{questions} questions, {kills} kills: {acknowledged} answers, {refused} refused");
    server.stop();
    let verified = bem(folder.path(), &["verify", "served"]);
    assert!(text(&verified).starts_with("unanchored: "), "{}", text(&verified));
    let replayed = bem(folder.path(), &["replay", "served"]);
    assert!(replayed.status.success(), "{}", text(&replayed));
}
