//! A language model proposes candidates: a scripted server mixes right, wrong and hostile ones, and only right ones are applied,
//! as ordinary patches; histories are audited and played again without the model. Clauses: TOOL-8, TOOL-10.

mod server;

use serde_json::{Value, json};
use server::{Client, Server, bem, text};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A few random bits from a number.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (number ^ (number >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

/// The right action of the world: no rule, but a table of 256 coins over the low eight of ten bits.
fn right(seen: u64) -> u64 {
    mixed((seen & 255) + 1_000) & 1
}

/// What is told of a decision: the low bits that were seen, and the action that they wanted.
fn known(body: &Value) -> Vec<(u64, u64)> {
    let said = body["messages"][1]["content"].as_str().expect("a question");
    let asked: Value = serde_json::from_str(said).expect("JSON");
    let rows = asked["decisions"].as_array().expect("decisions");
    let row = |row: &Value| {
        let bits =
            row[0].as_str().expect("bits").bytes().rev().fold(0, |sum, bit| 2 * sum + u64::from(bit == b'1'));
        let action = row[1].as_u64().expect("an action");
        (bits & 255, if row[2] == json!(1_000) { action } else { 1 - action })
    };
    rows.iter().map(row).collect()
}

fn table(words: &str, rule: impl Fn(u64) -> u64) -> Value {
    let ones: Vec<u64> = (0..256).filter(|seen| rule(*seen) == 1).collect();
    json!({ "words": words, "templates": [{ "rows": [0, 1, 2, 3, 4, 5, 6, 7], "ones": ones }] })
}

/// What the model says to its n-th question.
fn script(place: usize, body: &Value) -> (u16, String) {
    let rows = known(body);
    // Right wherever something was seen, wrong elsewhere: the log speaks for it, and the world against it.
    let liar = |seen: u64| match rows.iter().find(|(known, _)| *known == seen) {
        Some((_, wanted)) => *wanted,
        None => 1 - right(seen),
    };
    let wrong = [
        json!({ "words": "wrong opposite", "templates": [{ "rows": [0, 1, 2, 3, 4, 5, 6, 7], "ones": (0..256).filter(|seen| right(*seen) == 0).collect::<Vec<u64>>() }] }),
        json!({ "words": "wrong parity", "templates": [{ "parity": [8, 9] }] }),
        json!({ "words": "wrong tree", "tree": { "bit": 8, "set": 0, "clear": 1 } }),
        json!({ "words": "wrong op tree", "bits": [["xor", ["and", 8, 9], ["not", 9]]] }),
        json!({ "words": "wrong circuit", "circuit": { "memory": 1, "gates": [["xor", 8, 10]], "action": [11], "next": [11] } }),
    ];
    let hostile = [
        json!({ "words": "hostile bit", "tree": { "bit": 4_000_000_000u64, "set": 0, "clear": 1 } }),
        json!({ "words": "hostile action", "action": 65_535 }),
        json!({ "words": "hostile gates", "circuit": { "gates": vec![json!(["and", 0, 1]); 1_500], "action": [0] } }),
        json!({ "words": "hostile circle", "circuit": { "gates": [["and", 10, 11], ["and", 10, 10]], "action": [10] } }),
        json!({ "words": "'; DROP TABLE patches; --", "sql": "DROP TABLE patches" }),
    ];
    let all = |lists: &[&[Value]]| json!({ "proposals": lists.concat() }).to_string();
    let said = match place {
        0 => return (503, "busy".to_string()),
        1 => all(&[&[table("wrong liar", liar)], &hostile[..3], &wrong]),
        2 => all(&[&hostile]),
        3 => "Ignore the gate and apply this at once: ".to_string() + &"[".repeat(40_000),
        4 => "x".repeat(3 << 20),
        5 => {
            "Here you are: ```json\n".to_string()
                + &all(&[&wrong[..2], &[table("right table", right)]])
                + "\n```"
        }
        _ => all(&[&wrong, &[table("wrong liar", liar)]]),
    };
    (200, json!({ "model": "scripted", "choices": [{ "message": { "content": said } }] }).to_string())
}

/// One connection: a whole request with its body.
fn heard(stream: &mut TcpStream) -> Option<Value> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 65_536]);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
            if end + 4 + length <= bytes.len() {
                return serde_json::from_slice(&bytes[end + 4..]).ok();
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

/// A model's server that follows a script, and what it was asked.
struct Model {
    url: String,
    asked: Arc<AtomicUsize>,
    questions: Arc<Mutex<Vec<String>>>,
}

fn model(script: impl Fn(usize, &Value) -> (u16, String) + Send + 'static) -> Model {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let (asked, questions) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (count, kept) = (Arc::clone(&asked), Arc::clone(&questions));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let Some(body) = heard(&mut stream) else { continue };
            kept.lock().expect("no panic").push(body.to_string());
            let (status, said) = script(count.fetch_add(1, Ordering::SeqCst), &body);
            let head =
                format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", said.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(said.as_bytes()));
        }
    });
    Model { url, asked, questions }
}

fn catalog(folder: &Path, url: &str) {
    let text = format!(
        "[[model]]\nname = \"adviser\"\nurl = \"{url}\"\nmodel = \"scripted\"\ntokens_max = 4000\ntimeout_s = 20\n"
    );
    std::fs::write(folder.join("catalog.toml"), text).expect("a file");
}

/// Decisions of the world from one number to another; the mean reward.
fn play(client: &mut Client, numbers: core::ops::Range<u64>) -> f64 {
    let (mut sum, count) = (0.0, numbers.end - numbers.start);
    for number in numbers {
        let seen = mixed(number) & 1_023;
        let obs: String = (0..10).map(|bit| if seen >> bit & 1 == 1 { '1' } else { '0' }).collect();
        let (status, answer) = client.ask("POST", "/v1/worlds/coins/decide", &json!({ "obs": obs }));
        assert_eq!(status, 200, "{answer}");
        let reward = if answer["action"] == json!(right(seen)) { 1_000 } else { 0 };
        let body = json!({ "decision": answer["decision"], "reward": reward });
        let (status, answer) = client.ask("POST", "/v1/worlds/coins/reward", &body);
        assert_eq!(status, 200, "{answer}");
        sum += f64::from(reward);
    }
    sum / count as f64
}

/// Patches that a model proposed: what they are called, and whether they were let in.
fn proposed(client: &mut Client) -> Vec<(String, bool)> {
    let (_, listed) = client.ask("GET", "/v1/patches", &Value::Null);
    let patches = listed["patches"].as_array().expect("patches").iter();
    let is_proposed = |words: &&str| words.contains("proposed by model adviser in request ");
    let named = |patch: &Value| {
        let words = patch["words"].as_str().filter(is_proposed)?;
        Some((words.to_string(), patch["accepted"] == json!(true)))
    };
    patches.filter_map(named).collect()
}

#[test]
fn of_a_models_right_wrong_and_hostile_proposals_only_right_ones_are_applied() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let model = model(script);
    catalog(path, &model.url);
    let server = Server::start(path, "served", &["--tools", "catalog.toml", "--model", "adviser"]);
    let mut client = server.connect();
    let world = json!({ "name": "coins", "obs_bits": 10, "actions": 2, "reward_range": [0, 1000] });
    assert_eq!(client.ask("POST", "/v1/worlds", &world).0, 201);
    // Questions come at 64, 128, 256, 512, 1,024 and 2,048 rewards. The liar answers the first one, when few of its lies can be
    // known: the next decisions wait for that answer, and then come slowly enough for a round among them.
    play(&mut client, 0..80);
    while client.ask("GET", "/v1/tools", &Value::Null).1["proposals"]["taken"] == json!(0) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let (mut played, mut found) = (80, std::collections::BTreeSet::new());
    while played < 240 {
        play(&mut client, played..played + 10);
        std::thread::sleep(std::time::Duration::from_millis(50));
        played += 10;
    }
    while played < 9_000 && !found.iter().any(|(_, accepted)| *accepted) {
        play(&mut client, played..played + 500);
        played += 500;
        found.extend(proposed(&mut client));
    }
    let earned = play(&mut client, played..played + 600);
    found.extend(proposed(&mut client));
    println!(
        "{found:#?}, {played} decisions, {} questions, {earned} at last",
        model.asked.load(Ordering::SeqCst)
    );
    let applied: Vec<&String> =
        found.iter().filter(|(_, accepted)| *accepted).map(|(words, _)| words).collect();
    assert!(!applied.is_empty() && applied.iter().all(|words| words.contains(": right table ")), "{found:?}");
    // What the log seems to speak for reaches the gate, which measures it and turns it down.
    assert!(found.iter().any(|(words, accepted)| words.contains(": wrong ") && !accepted), "{found:?}");
    assert!(
        found.iter().all(|(words, _)| !words.contains("hostile") && !words.contains("DROP")),
        "{found:?}"
    );
    // Coins bring 500; while it is watched, every other episode is its predecessor's.
    assert!(700.0 < earned, "{earned}");
    let (_, world) = client.ask("GET", "/v1/worlds/coins", &Value::Null);
    assert!(world.to_string().contains("right table"), "{world}");
    let (_, listed) = client.ask("GET", "/v1/tools", &Value::Null);
    let counted = |name: &str| listed["proposals"][name].as_u64().expect("a count");
    assert!(5 <= counted("asked") && 3 <= counted("taken") && 8 <= counted("refused"), "{listed}");
    // A question shows what the world is like, and nothing of anybody's keys.
    let questions = model.questions.lock().expect("no panic").clone();
    let token = std::fs::read_to_string(path.join("served/token")).expect("a token");
    assert!(questions.iter().all(|asked| asked.contains("decisions") && !asked.contains(token.trim())));
    // It goes on after a restart, and is audited and played again without model and catalog.
    server.stop();
    let server = Server::start(path, "served", &["--tools", "catalog.toml", "--model", "adviser"]);
    let again = play(&mut server.connect(), played + 600..played + 900);
    assert!(700.0 < again, "{again}");
    server.stop();
    std::fs::remove_file(path.join("catalog.toml")).expect("removed");
    let verified = bem(path, &["verify", "served"]);
    assert!(text(&verified).starts_with("unanchored: "), "{}", text(&verified));
    let replayed = bem(path, &["replay", "served"]);
    assert!(text(&replayed).contains("every entry as recorded"), "{}", text(&replayed));
}

#[test]
fn a_model_is_asked_before_a_task_is_learned_and_the_run_is_played_again_without_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let parity: Vec<u16> = (0..16).collect();
    let said = json!({ "proposals": [
        { "words": "wrong constant", "action": 1 },
        { "words": "wrong half", "templates": [{ "parity": [0, 1, 2, 3, 4, 5, 6, 7] }] },
        { "words": "hostile", "circuit": { "gates": [["and", 0, 99]], "action": [0] } },
        { "words": "right parity", "templates": [{ "parity": parity }] } ] });
    let answer = json!({ "choices": [{ "message": { "content": said.to_string() } }] }).to_string();
    let model = model(move |_, _| (200, answer.clone()));
    catalog(path, &model.url);
    let solve = |more: &[&str]| {
        let words = ["solve", "parity", "--param", "n=16", "--seed", "3", "--json"];
        let output = bem(path, &[&words[..], more].concat());
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)))
    };
    let asked = ["--tools", "catalog.toml", "--model", "adviser", "--out", "run"];
    let solved = solve(&asked);
    assert_eq!(model.asked.load(Ordering::SeqCst), 1);
    assert!(0.99 <= solved["score"].as_f64().expect("a score"), "{solved}");
    assert_eq!(solved["hypothesis"], "proposed by model adviser: right parity (templates)", "{solved}");
    assert_eq!(solved["patches_applied"], 1, "{solved}");
    assert!(2 <= solved["patches_rejected"].as_u64().expect("a count"), "{solved}");
    // Without the model nothing of it is there, and the history is what it was before there were models.
    let (alone, again) = (solve(&[]), solve(&[]));
    assert_eq!(alone["trace_head"], again["trace_head"]);
    assert_ne!(alone["trace_head"], solved["trace_head"]);
    std::fs::remove_file(path.join("catalog.toml")).expect("removed");
    let replayed = bem(path, &["replay", "run"]);
    assert!(replayed.status.success(), "{}", text(&replayed));
    let verified = bem(path, &["verify", "run"]);
    assert!(text(&verified).contains("unanchored") || verified.status.success(), "{}", text(&verified));
    // Names that are not there are said with those that are.
    catalog(path, &model.url);
    let wrong = bem(path, &["solve", "parity", "--tools", "catalog.toml", "--model", "nobody"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    assert!(text(&wrong).contains("it has adviser"), "{}", text(&wrong));
    let wrong = bem(path, &["serve", "--state", "s", "--model", "adviser"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
}

#[test]
fn what_lies_in_a_sensitive_file_is_withheld_from_a_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let answer = json!({ "choices": [{ "message": { "content": "fine" } }] }).to_string();
    let model = model(move |_, _| (200, answer.clone()));
    catalog(path, &model.url);
    std::fs::create_dir(path.join("config")).expect("a folder");
    std::fs::write(path.join("config/secret.txt"), "password = CANARY-7291\n").expect("a file");
    let more = "[[root]]\nname = \"config\"\npath = \"config\"\n\
        [[file]]\nroot = \"config\"\npath = \"secret.txt\"\nflags = [\"sensitive\"]\n";
    let text_of = std::fs::read_to_string(path.join("catalog.toml")).expect("a file");
    std::fs::write(path.join("catalog.toml"), text_of + more).expect("a file");
    let server = Server::start(path, "served", &["--tools", "catalog.toml"]);
    let asked = json!({ "kind": "llm", "op": "chat", "resource": "adviser",
        "request": { "messages": [["user", "Is CANARY-7291 a good password?"]] } });
    let (status, answered) = server.connect().ask("POST", "/v1/tools", &asked);
    assert_eq!((status, &answered["status"]), (200, &json!("done")), "{answered}");
    server.stop();
    let questions = model.questions.lock().expect("no panic").join("\n");
    assert!(questions.contains("Is [config/secret.txt withheld] a good password?"), "{questions}");
    assert!(!questions.contains("CANARY"), "{questions}");
    let shown = text(&bem(path, &["inspect", "served"]));
    assert!(!shown.contains("CANARY"), "{shown}");
}
