//! Questions to people over the tool bus of a running server, and what its webhooks are told: the binary on a free port, a
//! scripted receiver on loopback. Clauses: HUM-2, HUM-12.

mod server;

use serde_json::{Value, json};
use server::{Client, Server, bem, text};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::time::Duration;

const CATALOG: &str = "[[root]]\nname = \"box\"\nmemory = true\n";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A receiver that takes every message; headers and body of each.
fn receiver() -> (SocketAddr, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (sender, messages) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            let mut reader = BufReader::new(&stream);
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                if line.trim().is_empty() {
                    break;
                }
                let line = line.to_ascii_lowercase();
                length = line
                    .strip_prefix("content-length:")
                    .map_or(length, |text| text.trim().parse().expect("a length"));
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            (&stream).write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("it is sent");
            let body = serde_json::from_slice(&body).expect("JSON");
            if sender.send((head, body)).is_err() {
                return;
            }
        }
    });
    (address, messages)
}

fn call(client: &mut Client, op: &str, request: Value) -> Value {
    let (status, answer) =
        client.ask("POST", "/v1/tools", &json!({ "kind": "people", "op": op, "request": request }));
    assert_eq!(status, 200, "{answer}");
    answer
}

#[test]
fn questions_are_asked_announced_and_looked_up_over_the_bus_and_webhooks_hear_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    let (address, messages) = receiver();
    write("catalog.toml", CATALOG);
    write("secret", SECRET);
    write("hooks.toml", &format!("[[webhook]]\nurl = \"http://{address}/bem\"\nsecret_file = \"secret\"\n"));
    let more = ["--tools", "catalog.toml", "--webhooks", "hooks.toml"];
    let server = Server::start(folder.path(), "served", &more);
    let mut client = server.connect();
    let world = json!({ "name": "desk", "obs_bits": 3, "actions": 4, "reward_range": [0, 1000] });
    assert_eq!(client.ask("POST", "/v1/worlds", &world).0, 201);
    let (_, decided) = client.ask("POST", "/v1/worlds/desk/decide", &json!({ "obs": "010" }));
    let decision = &decided["decision"];

    // ENQUEUE_TASK is what POST /v1/questions does.
    let asked = call(
        &mut client,
        "enqueue_task",
        json!({ "kind": "label_step", "world": "desk", "decision": decision }),
    );
    assert_eq!((&asked["status"], &asked["response"]["question"]), (&json!("done"), &json!("1")), "{asked}");
    let body = json!({ "kind": "label_step", "world": "desk", "decision": decision, "priority": "high" });
    let (status, by_hand) = client.ask("POST", "/v1/questions", &body);
    assert_eq!((status, &by_hand["question"]), (201, &json!("2")), "{by_hand}");
    let listed = call(&mut client, "query_tasks", json!({ "state": "pending" }))["response"].clone();
    assert_eq!(listed["open"], json!(2));
    let questions = listed["questions"].as_array().expect("a list");
    assert_eq!(questions[0]["id"], asked["response"]["id"]);
    assert_eq!(questions[1]["priority"], json!("high"));
    assert!(questions.iter().all(|one| one.get("context").is_none()), "nothing of what is shown: {listed}");
    let rest = call(&mut client, "query_tasks", json!({ "after": "1", "limit": 1 }))["response"].clone();
    assert_eq!(rest["questions"][0]["question"], json!("2"));
    let told = call(&mut client, "notify", json!({ "question": "2", "reason": "somebody waits" }));
    assert_eq!(told["response"], json!({ "question": "2", "open": 2 }), "{told}");

    // What is wrong is said with the field and what is allowed, and changes nothing.
    for (op, request, error, words) in [
        (
            "enqueue_task",
            json!({ "kind": "label_step", "world": "desk" }),
            "NOT_FOUND",
            "decision is unknown",
        ),
        ("enqueue_task", json!({ "kind": "nonsense" }), "BAD_PAYLOAD", "label_step, score_episode"),
        ("enqueue_task", json!({ "kind": "adjust_config" }), "NOT_ALLOWED", "approvers"),
        (
            "enqueue_task",
            json!({ "kind": "approve_patch", "world": "desk" }),
            "BAD_PAYLOAD",
            "asks by itself",
        ),
        ("notify", json!({ "question": "77" }), "NOT_FOUND", "not open"),
        ("query_tasks", json!({ "limit": 0 }), "BAD_PAYLOAD", "1 to 1000"),
    ] {
        let failed = call(&mut client, op, request);
        assert_eq!((&failed["status"], &failed["error"]), (&json!("error"), &json!(error)), "{failed}");
        assert!(failed["detail"].as_str().is_some_and(|detail| detail.contains(words)), "{failed}");
    }
    let (_, open) = client.ask("GET", "/v1/questions", &Value::Null);
    assert_eq!(open["open"], json!(2));
    // The kind says that it is people's, and the same works from a terminal.
    let (_, tools) = client.ask("GET", "/v1/tools", &Value::Null);
    let kind = tools["kinds"].as_array().expect("kinds").iter().find(|kind| kind["name"] == "people");
    assert_eq!(kind.expect("the kind")["role_flags"], json!(64));
    let url = format!("http://{}", server.address);
    let called = bem(
        folder.path(),
        &["tools", "call", "people", "query_tasks", "-", "{}", "--url", &url, "--token-file", "served/token"],
    );
    assert!(called.status.success() && text(&called).contains("\"open\":2"), "{}", text(&called));

    // Without a server nobody keeps questions.
    let private = bem(
        folder.path(),
        &["tools", "call", "people", "query_tasks", "-", "{}", "--catalog", "catalog.toml"],
    );
    assert!(text(&private).contains("nobody keeps questions here"), "{}", text(&private));

    // The webhooks were told in order, signed, and nothing of what a question shows.
    let (status, leased) = client.ask("POST", "/v1/questions/2/lease", &Value::Null);
    assert_eq!(status, 200, "{leased}");
    let body = json!({ "lease": leased["lease"], "answer": { "accept": true } });
    let (status, given) = client.ask("POST", "/v1/questions/2/answer", &body);
    assert_eq!(status, 200, "{given}");
    let undo = format!("/v1/answers/{}/undo", given["answer"].as_str().expect("a number"));
    assert_eq!(client.ask("POST", &undo, &Value::Null).0, 200);
    let expected =
        ["question.created", "question.created", "question.notified", "question.answered", "answer.undone"];
    let mut events = Vec::new();
    while events.len() < expected.len() {
        let (head, body) = messages.recv_timeout(Duration::from_secs(60)).expect("a message");
        for header in ["webhook-id: msg_", "webhook-timestamp: ", "webhook-signature: v1,"] {
            assert!(head.contains(header), "{head}");
        }
        assert!(body["data"].get("context").is_none() && body["timestamp"].is_string(), "{body}");
        let event = body["type"].as_str().expect("text").to_string();
        if event != "patch.decided" {
            events.push(event);
        }
    }
    assert_eq!(events, expected);
    let (_, metrics) = client.ask("GET", "/metrics", &Value::Null);
    assert!(metrics.as_str().is_some_and(|text| text.contains("bem_webhooks_sent")));
    server.stop();
    for words in [["verify", "served"], ["replay", "served"]] {
        let done = bem(folder.path(), &words);
        assert!(done.status.success() || text(&done).starts_with("unanchored"), "{}", text(&done));
    }
    let ledger = std::fs::read_dir(folder.path().join("served/ledger")).expect("a ledger");
    for file in ledger.flatten().filter(|file| file.path().is_file()) {
        let bytes = std::fs::read(file.path()).expect("a file");
        let needle = SECRET.trim_start_matches("whsec_").as_bytes();
        assert!(!bytes.windows(needle.len()).any(|window| window == needle), "the secret is in the ledger");
    }
    // A wrong file loses nothing and is one line.
    write("hooks.toml", "[[webhook]]\nurl = \"http://127.0.0.1:1/\"\nsecret_file = \"nothing\"\n");
    let refused = bem(folder.path(), &["serve", "--state", "served", "--webhooks", "hooks.toml"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(
        text(&refused).contains("secret_file") && text(&refused).trim().lines().count() == 1,
        "{}",
        text(&refused)
    );
}
