//! Webhooks against a server on loopback that answers by script.

use super::*;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// One request as it came: headers in lower case, and the body.
#[derive(Debug)]
struct Got {
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// A server that answers one request after the other with these heads, and then no more.
fn scripted(answers: &'static [&'static str]) -> (SocketAddr, mpsc::Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(&stream);
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let path = line.split(' ').nth(1).unwrap().to_string();
            let mut headers = Vec::new();
            loop {
                line.clear();
                reader.read_line(&mut line).unwrap();
                let Some((name, value)) = line.trim_end().split_once(": ") else { break };
                headers.push((name.to_ascii_lowercase(), value.to_string()));
            }
            let mut got = Got { path, headers, body: String::new() };
            let length: usize = got.header("content-length").parse().unwrap();
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            got.body = String::from_utf8(body).unwrap();
            (&stream)
                .write_all(format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").as_bytes())
                .unwrap();
            sender.send(got).unwrap();
        }
    });
    (address, receiver)
}

fn hook(address: SocketAddr, events: &[&str]) -> Webhook {
    Webhook {
        url: format!("http://{address}/hook"),
        key: key_of(SECRET).unwrap(),
        events: events.iter().map(|event| event.to_string()).collect(),
        first_wait: Duration::from_millis(10),
    }
}

fn wait_for(gauge: &std::sync::atomic::AtomicU64, count: u64) {
    for _ in 0..3_000 {
        if gauge.load(Ordering::Relaxed) == count {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} instead of {count}", gauge.load(Ordering::Relaxed));
}

#[test]
fn the_signature_is_that_of_the_standards_example() {
    // The example of the Standard Webhooks specification and its libraries.
    let body = r#"{"test": 2432232314}"#;
    let key = key_of(SECRET).unwrap();
    let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
    assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert_eq!(written(1_614_265_330), "2021-02-25T15:02:10Z");
}

#[test]
fn a_message_is_signed_tried_again_and_never_redirected() {
    let redirect = "302 Found\r\nLocation: http://127.0.0.1:1/elsewhere";
    let script: &[&str] = Box::leak(vec!["500 Oh", redirect, "204 No Content", "200 OK"].into_boxed_slice());
    let (address, got) = scripted(script);
    let gauges = Arc::new(Gauges::default());
    let hooks = Webhooks::start(&[hook(address, &["question.created"])], Arc::clone(&gauges)).unwrap();
    hooks.send("patch.decided", &json!({ "world": "nobody asked for this" }));
    hooks.send("question.created", &json!({ "question": "7" }));
    hooks.send("question.created", &json!({ "question": "8" }));
    wait_for(&gauges.webhooks_sent, 2);
    let got: Vec<Got> = got.iter().take(4).collect();
    assert_eq!(gauges.webhooks_retried.load(Ordering::Relaxed), 2);
    assert_eq!(gauges.webhooks_dropped.load(Ordering::Relaxed), 0);
    // Three attempts of the first message have one number and one body; the second has its own.
    let ids: Vec<&str> = got.iter().map(|one| one.header("webhook-id")).collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2] && ids[2] != ids[3], "{ids:?}");
    let key = key_of(SECRET).unwrap();
    for one in &got {
        assert_eq!(one.path, "/hook");
        let seconds = one.header("webhook-timestamp").parse().unwrap();
        let expected = signature(&key, one.header("webhook-id"), seconds, &one.body);
        assert_eq!(one.header("webhook-signature"), expected);
        let body: Value = serde_json::from_str(&one.body).unwrap();
        assert_eq!(body["type"], "question.created");
        assert!(!one.body.contains("MfKQ"), "no secret travels");
    }
    assert!(got[0].body.contains("\"7\"") && got[3].body.contains("\"8\""));
}

#[test]
fn a_target_that_never_answers_or_is_gone_costs_bounded_room_and_nobody_else() {
    let (address, got) = scripted(&["200 OK", "410 Gone"]);
    // A port that nobody listens on.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gauges = Arc::new(Gauges::default());
    let mut slow = hook(closed, &["question.created"]);
    slow.first_wait = Duration::from_secs(60);
    let both = [slow, hook(address, &["question.created"])];
    let hooks = Webhooks::start(&both, Arc::clone(&gauges)).unwrap();
    hooks.send("question.created", &json!({ "question": "1" }));
    assert!(got.recv().unwrap().body.contains("\"1\""));
    wait_for(&gauges.webhooks_sent, 1);
    hooks.send("question.created", &json!({ "question": "2" }));
    wait_for(&gauges.webhooks_dropped, 1);
    // One message of the dead target is under way and two wait; the queue takes what is left, the rest is dropped. The other
    // target said that it is gone, and is not asked again.
    for number in 0..2 * WAITING_MAX {
        hooks.send("question.created", &json!({ "question": number.to_string() }));
    }
    for _ in 0..3_000 {
        if (2 * WAITING_MAX + WAITING_MAX) as u64 <= gauges.webhooks_dropped.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let dropped = gauges.webhooks_dropped.load(Ordering::Relaxed);
    assert!((3 * WAITING_MAX as u64..=3 * WAITING_MAX as u64 + 3).contains(&dropped), "{dropped}");
}

#[test]
fn targets_come_from_a_file_whose_wrong_fields_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), format!("{SECRET}\n")).unwrap();
    std::fs::write(folder.path().join("short"), "whsec_YWJj").unwrap();
    let load_text = |text: &str| {
        std::fs::write(folder.path().join("hooks.toml"), text).unwrap();
        load(&folder.path().join("hooks.toml")).map_err(|error| format!("{error:#}"))
    };
    let row = |more: &str| format!("[[webhook]]\nurl = \"http://127.0.0.1:9000/a\"\n{more}\n");
    let hooks = load_text(&row("secret_file = \"secret\"")).unwrap();
    assert_eq!(hooks[0].events, EVENTS);
    assert!(!format!("{hooks:?}").contains("key"), "what is shown of a target has no key");
    for (text, words) in [
        (row("secret_file = \"short\""), "24 to 64 bytes"),
        (row("secret_file = \"missing\""), "missing"),
        (row("secret_file = \"secret\"\nevents = [\"question.lost\"]"), "question.created"),
        (row("secret_file = \"secret\"\nfirst_wait_ms = 1"), "10 to 60000"),
        (row("secret_file = \"secret\"\nsecrets = 1"), "secrets"),
        ("[[webhook]]\nurl = \"ftp://a\"\nsecret_file = \"secret\"".to_string(), "http://"),
    ] {
        let error = load_text(&text).unwrap_err();
        assert!(error.contains(words) && error.lines().count() == 1, "{error}");
    }
}
