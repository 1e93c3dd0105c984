//! The decision service from outside: the binary on a free port, asked over loopback, killed, started again, audited and played
//! again. Clauses: VM-13, LOG-1, LOG-4, LOG-5, IMG-1.

mod guide;
mod server;

use guide::{commands, needed, shell};
use serde_json::{Value, json};
use server::{Client, Server, bem, text};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A server over the folder `served`.
fn serve(folder: &Path) -> Server {
    Server::start(folder, "served", &[])
}

const ADS: &str = r#"{"name":"ads","obs_bits":4,"actions":4,"reward_range":[0,1000]}"#;

fn ads() -> Value {
    serde_json::from_str(ADS).expect("JSON")
}

/// A few random bits from a number.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (number ^ (number >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

/// Plays the contextual bandit of four contexts; the mean reward of the last thousand decisions.
fn play(client: &mut Client, decisions: u64, delay: usize) -> f64 {
    let (mut waiting, mut late) = (Vec::new(), Vec::new());
    for number in 0..decisions {
        let seen = mixed(number) & 15;
        let obs: String = (0..4).map(|bit| if seen >> bit & 1 == 1 { '1' } else { '0' }).collect();
        let (status, answer) = client.ask("POST", "/v1/worlds/ads/decide", &json!({ "obs": obs }));
        assert_eq!(status, 200, "{answer}");
        assert!(
            answer["propensity"].as_f64().is_some_and(|chance| 0.0 < chance && chance <= 1.0),
            "{answer}"
        );
        let is_best = answer["action"] == json!(seen & 3);
        let reward = if mixed(number + 77_777) % 100 < if is_best { 80 } else { 20 } { 1_000 } else { 0 };
        late.push(f64::from(reward));
        waiting.push((answer["decision"].clone(), reward));
        while delay < waiting.len() {
            let place = mixed(number + 99) as usize % waiting.len();
            let (decision, reward) = waiting.swap_remove(place);
            let body = json!({ "decision": decision, "reward": reward });
            let (status, answer) = client.ask("POST", "/v1/worlds/ads/reward", &body);
            assert_eq!(status, 200, "{answer}");
        }
    }
    let last = &late[late.len().saturating_sub(1_000)..];
    last.iter().sum::<f64>() / last.len() as f64
}

#[test]
fn a_bandit_is_learned_over_http_by_patches_and_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path());
    let mut client = server.connect();
    assert_eq!(client.ask("POST", "/v1/worlds", &ads()), (201, json!({ "world": "ads" })));
    assert_eq!(client.ask("POST", "/v1/worlds", &ads()).0, 200);
    let mut other = ads();
    other["actions"] = json!(5);
    assert_eq!(client.ask("POST", "/v1/worlds", &other).0, 409);
    let earned = play(&mut client, 4_000, 20);
    // Drawing earns 350, the best 800.
    assert!(700.0 < earned, "{earned}");
    let (_, world) = client.ask("GET", "/v1/worlds/ads", &Value::Null);
    assert!(2 <= world["patches_applied"].as_u64().expect("a number"), "{world}");
    assert_eq!(world["circuit"]["contexts"], json!(4), "{world}");
    let random = world["baselines"]["random"]["mean"].as_f64().expect("a mean");
    assert!(random < world["online_mean"].as_f64().expect("a mean"), "{world}");
    let (status, program) = client.ask("GET", "/v1/worlds/ads/export?format=c", &Value::Null);
    assert!(status == 200 && program.as_str().is_some_and(|text| text.contains("bem_decide")), "{program}");
    // Why it does what it does: the rules that were gone through, and what would change it.
    let (status, why) = client.ask("GET", "/v1/worlds/ads/explain?obs=0110", &Value::Null);
    assert_eq!((status, &why["circuit"]), (200, &world["circuit"]["digest"]), "{why}");
    assert!(!why["why"]["because"].as_array().expect("facts").is_empty(), "{why}");
    assert_ne!(why["why"]["nearest"]["action"], why["action"], "{why}");
    let deciding = why["rules"].as_array().and_then(|rules| rules.last()).expect("a rule");
    assert_eq!(deciding["applies"], json!(true), "{why}");
    // The audit works while it runs.
    let verified = bem(folder.path(), &["verify", "served", "--json"]);
    let report: Value = serde_json::from_str(&text(&verified)).expect("JSON");
    assert_eq!(report["verdict"], json!("unanchored"), "{report}");
    // A decision before the restart takes its reward after it.
    let (_, answer) = client.ask("POST", "/v1/worlds/ads/decide", &json!({ "obs": "0000" }));
    server.stop();
    let server = serve(folder.path());
    let mut client = server.connect();
    let body = json!({ "decision": answer["decision"], "reward": 1000 });
    assert_eq!(client.ask("POST", "/v1/worlds/ads/reward", &body).0, 200);
    let (_, again) = client.ask("GET", "/v1/worlds/ads", &Value::Null);
    assert_eq!(again["circuit"]["digest"], world["circuit"]["digest"]);
    assert!(world["statistics"]["decisions"].as_u64() < again["statistics"]["decisions"].as_u64());
    play(&mut client, 200, 0);
    server.stop();
    let verified = bem(folder.path(), &["verify", "served"]);
    assert!(text(&verified).starts_with("unanchored: "), "{}", text(&verified));
    let replayed = bem(folder.path(), &["replay", "served"]);
    assert!(
        replayed.status.success() && text(&replayed).contains("every entry as recorded"),
        "{}",
        text(&replayed)
    );
}

#[test]
fn patches_of_a_service_are_verified_through_the_prover_on_its_bus() {
    let folder = tempfile::tempdir().expect("a folder");
    let catalog = "[[root]]\nname = \"box\"\nmemory = true\n";
    std::fs::write(folder.path().join("catalog.toml"), catalog).expect("a file");
    let server = Server::start(folder.path(), "served", &["--tools", "catalog.toml"]);
    let mut client = server.connect();
    // Circuits are searched for where episodes have more than one step.
    let world =
        json!({ "name": "odd", "obs_bits": 6, "actions": 2, "reward_range": [0, 1000], "horizon": 2 });
    assert_eq!(client.ask("POST", "/v1/worlds", &world).0, 201);
    let prover = |client: &mut Client| {
        let (_, tools) = client.ask("GET", "/v1/tools", &Value::Null);
        let kinds = tools["kinds"].as_array().expect("kinds").iter();
        kinds.clone().find(|kind| kind["name"] == "prover").expect("the prover").clone()
    };
    for number in 0..6_000 {
        if number % 200 == 199 && 0 < prover(&mut client)["done"].as_u64().expect("a count") {
            break;
        }
        let seen = mixed(number) & 63;
        let obs: String = (0..6).map(|bit| if seen >> bit & 1 == 1 { '1' } else { '0' }).collect();
        let asked = json!({ "obs": obs, "episode": (number / 2).to_string() });
        let (_, answer) = client.ask("POST", "/v1/worlds/odd/decide", &asked);
        let is_right = answer["action"].as_u64() == Some(u64::from((seen & 15).count_ones() & 1));
        let reward = if is_right { 1_000 } else { 0 };
        let body = json!({ "decision": answer["decision"], "reward": reward, "done": number % 2 == 1 });
        assert_eq!(client.ask("POST", "/v1/worlds/odd/reward", &body).0, 200);
    }
    let counted = prover(&mut client);
    assert!(0 < counted["done"].as_u64().expect("a count"), "a condition went over the bus: {counted}");
    assert_eq!(counted["failed"], json!(0), "{counted}");
    server.stop();
    let verified = bem(folder.path(), &["verify", "served"]);
    assert!(text(&verified).starts_with("unanchored: "), "{}", text(&verified));
    // Without a bus the same proofs are found again.
    let replayed = bem(folder.path(), &["replay", "served"]);
    assert!(text(&replayed).contains("every entry as recorded"), "{}", text(&replayed));
}

#[test]
fn rewards_that_come_twice_late_or_wrong_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path());
    let mut client = server.connect();
    let mut world = ads();
    world["expire_after"] = json!(10);
    assert_eq!(client.ask("POST", "/v1/worlds", &world).0, 201);
    let decide = |client: &mut Client| {
        let (status, answer) = client.ask("POST", "/v1/worlds/ads/decide", &json!({ "obs": "0110" }));
        assert_eq!(status, 200, "{answer}");
        answer["decision"].clone()
    };
    let first = decide(&mut client);
    let reward = |client: &mut Client, decision: &Value, reward: i64| {
        client.ask("POST", "/v1/worlds/ads/reward", &json!({ "decision": decision, "reward": reward }))
    };
    assert_eq!(reward(&mut client, &first, 1_000).1["counted"], json!(true));
    assert_eq!(reward(&mut client, &first, 1_000), (200, json!({ "decision": first, "counted": false })));
    let (status, answer) = reward(&mut client, &first, 0);
    assert_eq!((status, &answer["error"]["field"]), (409, &json!("reward")), "{answer}");
    let (status, answer) = reward(&mut client, &json!("12345"), 0);
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("unknown_decision")), "{answer}");
    assert_eq!(reward(&mut client, &json!("+1"), 0).0, 404);
    let second = decide(&mut client);
    (0..11).for_each(|_| drop(decide(&mut client)));
    assert_eq!(reward(&mut client, &second, 0).0, 404);
    assert_eq!(client.ask("DELETE", "/v1/worlds/ads", &Value::Null).0, 200);
    assert_eq!(client.ask("GET", "/v1/worlds/ads", &Value::Null).0, 404);
    server.stop();
    assert!(bem(folder.path(), &["verify", "served"]).status.success());
}

#[test]
fn nothing_acknowledged_is_lost_or_counted_twice_when_it_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let kills: u64 = std::env::var("BEM_SERVE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(4);
    // What was acknowledged, as the clients know it: rewards by decision. Decisions are known for a while, then only counted.
    const KNOWN: u64 = 50_000;
    let mut acknowledged: BTreeMap<u64, i64> = BTreeMap::new();
    let mut asked = 0;
    for kill in 0..kills {
        let server = serve(folder.path());
        let mut client = server.connect();
        let status = client.ask("POST", "/v1/worlds", &ads()).0;
        assert_eq!(status, if kill == 0 { 201 } else { 200 });
        // Every reward of before is known: the same again is 200 and does not count, another value is refused.
        for (decision, reward) in acknowledged.iter().rev().take(40) {
            let body = json!({ "decision": decision.to_string(), "reward": reward });
            let (status, answer) = client.ask("POST", "/v1/worlds/ads/reward", &body);
            assert_eq!((status, &answer["counted"]), (200, &json!(false)), "kill {kill}: {answer}");
        }
        let (_, world) = client.ask("GET", "/v1/worlds/ads", &Value::Null);
        let counted = world["statistics"]["rewards"].as_u64().expect("a number");
        // A request whose answer was cut off may have counted; one for every client and kill at most.
        assert!(
            (acknowledged.len() as u64..=acknowledged.len() as u64 + 4 * kill).contains(&counted),
            "{world}"
        );
        let clients: Vec<_> = (0..4u64)
            .map(|number| {
                let mut client = server.connect();
                let start = asked + number * 1_000_000;
                std::thread::spawn(move || {
                    let mut acknowledged = Vec::new();
                    for number in start.. {
                        let obs: String =
                            (0..4).map(|bit| if mixed(number) >> bit & 1 == 1 { '1' } else { '0' }).collect();
                        let body = json!({ "obs": obs });
                        let Some((200, answer)) = client.try_ask("POST", "/v1/worlds/ads/decide", &body)
                        else {
                            break;
                        };
                        let reward = (mixed(number) % 1_001) as i64;
                        let body = json!({ "decision": answer["decision"], "reward": reward });
                        let Some((200, _)) = client.try_ask("POST", "/v1/worlds/ads/reward", &body) else {
                            break;
                        };
                        let decision = answer["decision"].as_str().expect("text");
                        acknowledged.push((decision.parse::<u64>().expect("a number"), reward));
                    }
                    acknowledged
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300 + 217 * (kill % 7)));
        server.kill();
        asked += 10_000;
        for client in clients {
            for (decision, reward) in client.join().expect("a client") {
                assert_eq!(acknowledged.insert(decision, reward), None, "a decision was given twice");
            }
        }
    }
    assert!(50 < acknowledged.len(), "{}", acknowledged.len());
    let server = serve(folder.path());
    let mut client = server.connect();
    let last = *acknowledged.keys().next_back().expect("something was acknowledged");
    for (decision, reward) in acknowledged.range(last.saturating_sub(KNOWN)..) {
        let body = json!({ "decision": decision.to_string(), "reward": reward });
        let (status, answer) = client.ask("POST", "/v1/worlds/ads/reward", &body);
        assert_eq!((status, &answer["counted"]), (200, &json!(false)), "{answer}");
    }
    server.stop();
    println!("{kills} kills, {} rewards acknowledged", acknowledged.len());
    let verified = bem(folder.path(), &["verify", "served"]);
    assert!(text(&verified).starts_with("unanchored: "), "{}", text(&verified));
    let replayed = bem(folder.path(), &["replay", "served"]);
    assert!(replayed.status.success(), "{}", text(&replayed));
}

/// Connections at once that ask malformed requests.
const STRANGERS: usize = 16;

/// Kilobytes that a server holds in memory.
fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    line.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// What is answered to these bytes on a connection of their own. A server that waits for more is told that there is none.
fn stranger(server: &Server, bytes: &[u8]) -> Option<(u16, String)> {
    let mut client = server.connect();
    client.stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a setting");
    if let Some(answer) = client.raw(bytes) {
        return Some(answer);
    }
    let _ = client.stream.shutdown(std::net::Shutdown::Write);
    client.stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a setting");
    let mut rest = Vec::new();
    let _ = client.stream.read_to_end(&mut rest);
    let status = rest.get(9..12).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    status.map(|status| (status, String::from_utf8_lossy(&rest).into_owned()))
}

#[test]
fn malformed_requests_are_refused_and_the_server_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path());
    let mut client = server.connect();
    assert_eq!(client.ask("POST", "/v1/worlds", &ads()).0, 201);
    let cases = [
        ("/v1/worlds", r#"{"name":"x"}"#, "actions"),
        ("/v1/worlds", r#"{"name":"../x","obs_bits":1,"actions":2,"reward_range":[0,1]}"#, "name"),
        ("/v1/worlds", r#"{"name":"x","obs_bits":300,"actions":2,"reward_range":[0,1]}"#, "obs_bits"),
        ("/v1/worlds", r#"{"name":"x","obs_bits":2,"actions":2,"reward_range":[1,0]}"#, "reward_range"),
        ("/v1/worlds", r#"{"name":"x","obs_bits":2,"actions":2,"reward_range":[0,1],"wrong":1}"#, "wrong"),
        ("/v1/worlds/ads/decide", r#"{"obs":"01"}"#, "obs"),
        ("/v1/worlds/ads/decide", r#"{"obs":"01x1"}"#, "obs"),
        ("/v1/worlds/ads/decide", r#"{"obs":"0101","episode":"a"}"#, "episode"),
        ("/v1/worlds/ads/decide", r#"{"obs":{"a":1}}"#, "obs"),
        ("/v1/worlds/ads/reward", r#"{"decision":"1"}"#, "reward"),
        ("/v1/worlds/ads/reward", r#"{"decision":"1","reward":0.5}"#, "reward"),
        ("/v1/worlds/ads/reward", r#"{"decision":"1","reward":99999999999}"#, "reward"),
        ("/v1/worlds/ads/reward", r#"{"decision":1,"reward":1}"#, "decision"),
    ];
    for (path, body, field) in cases {
        let (status, answer) = client.raw(client.request("POST", path, body).as_bytes()).expect("an answer");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!((status, &answer["error"]["field"]), (400, &json!(field)), "{body}: {answer}");
    }
    // Bytes at random, cut off and doubled: answered with 4xx or dropped, and nothing grows.
    let wholes = [
        ("POST", "/v1/worlds/ads/decide", r#"{"obs":"0101"}"#),
        ("POST", "/v1/worlds/ads/reward", r#"{"decision":"1","reward":500,"done":true}"#),
        ("POST", "/v1/worlds", r#"{"name":"x","obs_bits":300,"actions":2,"reward_range":[0,1]}"#),
        ("POST", "/login", r#"{"token":"nobody"}"#),
        ("POST", "/v1/questions", r#"{"kind":"step","world":"ads"}"#),
        ("GET", "/v1/history?limit=3&after=7", ""),
        ("DELETE", "/v1/worlds/nothing", ""),
    ]
    .map(|(method, path, body)| client.request(method, path, body).into_bytes());
    let rounds: u64 =
        std::env::var("BEM_SERVE_MALFORMED").ok().and_then(|count| count.parse().ok()).unwrap_or(2_000);
    let (refused, dropped) = (AtomicU64::new(0), AtomicU64::new(0));
    let ask = |number: u64| {
        let mut bytes = wholes[mixed(number * 3) as usize % wholes.len()].clone();
        for change in 0..=mixed(number) % 4 {
            let place = mixed(number * 5 + change) as usize % bytes.len();
            bytes[place] = mixed(number * 7 + change) as u8;
        }
        match stranger(&server, &bytes) {
            // A changed byte may make another request that is right, such as a world of 200 bits.
            Some((200 | 201, _)) => {}
            Some((status, body)) => {
                assert!((400..500).contains(&status), "{status} {body}");
                refused.fetch_add(1, Ordering::Relaxed);
            }
            None => drop(dropped.fetch_add(1, Ordering::Relaxed)),
        }
    };
    // Most of the time is spent waiting: many ask at once.
    let ask_all = |numbers: std::ops::Range<u64>| {
        std::thread::scope(|scope| {
            let strangers = (0..STRANGERS).map(|first| numbers.clone().skip(first).step_by(STRANGERS));
            strangers.for_each(|numbers| drop(scope.spawn(move || numbers.for_each(ask))));
        });
    };
    ask_all(0..rounds / 10);
    let early = resident(&server);
    ask_all(rounds / 10..rounds);
    let (refused, dropped) = (refused.into_inner(), dropped.into_inner());
    assert!(rounds / 4 < refused, "{refused} refused, {dropped} dropped");
    // The first connection may have been closed meanwhile, because it was idle.
    assert_eq!(server.connect().ask("POST", "/v1/worlds/ads/decide", &json!({ "obs": "0101" })).0, 200);
    let late = resident(&server);
    assert!(late < early + 32_000, "{early} kB after a tenth, {late} kB at the end");
    println!(
        "{rounds} requests: {refused} refused, {dropped} dropped; {early} kB after a tenth, {late} kB at the end"
    );
    server.stop();
}

#[test]
fn a_world_begins_with_what_a_log_knows_and_a_log_of_another_shape_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let row = |number: u64| {
        let (seen, action) = (mixed(number) & 15, mixed(number + 5) & 3);
        let obs: String = (0..4).map(|bit| if seen >> bit & 1 == 1 { '1' } else { '0' }).collect();
        let reward = if action == seen & 3 { 1_000 } else { 0 };
        json!({ "obs": obs, "action": action, "reward": reward, "propensity": 0.25 }).to_string() + "\n"
    };
    std::fs::write(folder.path().join("log.jsonl"), (0..800).map(row).collect::<String>()).expect("a log");
    let refused = bem(folder.path(), &["serve", "--state", "served", "--start-from", "ads"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("--start-from ads: must be WORLD=PATH"), "{}", text(&refused));
    let server = Server::start(folder.path(), "served", &["--start-from", "ads=log.jsonl"]);
    let mut client = server.connect();
    let narrow = json!({ "name": "ads", "obs_bits": 3, "actions": 4, "reward_range": [0, 1000] });
    let (status, answer) = client.ask("POST", "/v1/worlds", &narrow);
    assert_eq!((status, &answer["error"]["field"]), (400, &json!("start_from")), "{answer}");
    assert_eq!(client.ask("GET", "/v1/worlds/ads", &Value::Null).0, 404);
    assert_eq!(client.ask("POST", "/v1/worlds", &ads()).0, 201);
    // What explains the log is measured at once, and soon in force: nobody begins by drawing for long.
    let (mut candidates, mut earned) = (0, 0);
    for number in 0..600u64 {
        let seen = mixed(number + 9_000) & 15;
        let obs: String = (0..4).map(|bit| if seen >> bit & 1 == 1 { '1' } else { '0' }).collect();
        let (_, answer) = client.ask("POST", "/v1/worlds/ads/decide", &json!({ "obs": obs }));
        let reward = if answer["action"] == json!(seen & 3) { 1_000 } else { 0 };
        candidates += u64::from(answer["expert"] == "candidate");
        earned += if 400 <= number { reward } else { 0 };
        let body = json!({ "decision": answer["decision"], "reward": reward });
        assert_eq!(client.ask("POST", "/v1/worlds/ads/reward", &body).0, 200);
    }
    assert!(0 < candidates && 170_000 <= earned, "{candidates} by candidates, {earned} earned");
    server.stop();
    let replayed = bem(folder.path(), &["replay", "served"]);
    assert!(replayed.status.success(), "{}", text(&replayed));
    assert!(text(&bem(folder.path(), &["verify", "served"])).starts_with("unanchored: "));
    // A world that is there goes on with what it knows.
    let server = Server::start(folder.path(), "served", &["--start-from", "ads=log.jsonl"]);
    assert_eq!(server.connect().ask("POST", "/v1/worlds", &ads()).0, 200);
}

#[test]
fn an_address_beyond_loopback_and_a_second_server_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = bem(folder.path(), &["serve", "--listen", "0.0.0.0:0", "--state", "served"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("beyond loopback"), "{}", text(&refused));
    let _server = serve(folder.path());
    let refused = bem(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--state", "served"]);
    assert!(text(&refused).contains("another process is writing this ledger"), "{}", text(&refused));
}

#[test]
fn the_page_of_the_guide_on_the_service_runs_from_its_first_to_its_last_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/guide/service.md")).expect("the page");
    let folder = tempfile::tempdir().expect("a folder");
    for (file, name) in [("python/bem_client.py", "bem_client.py"), ("examples/service.sh", "service.sh")] {
        std::fs::copy(root.join(file), folder.path().join(name)).expect("a client");
    }
    // A port that is free now stands in for the one of the page.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let script = commands(&page).replace("127.0.0.1:7420", &free.to_string());
    assert!(8 <= script.matches("bem ").count() + script.matches("curl ").count(), "{script}");
    // Whatever fails, the server ends: else its output would stay open.
    let script = format!("trap 'kill $server 2>/dev/null || true' EXIT\n{script}");
    let followed = shell(folder.path(), &needed(&page), &script);
    assert!(followed.status.success(), "{}", text(&followed));
    let said = text(&followed);
    assert!(said.contains("patches in force") && said.contains("every entry as recorded"), "{said}");
}

#[test]
fn the_page_of_the_guide_on_people_runs_from_its_first_to_its_last_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/guide/people.md")).expect("the page");
    let folder = tempfile::tempdir().expect("a folder");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let script = commands(&page).replace("127.0.0.1:7420", &free.to_string());
    // Commands of the page go to the usual port; here another one is free.
    let script = script.replace("bem people ", &format!("bem people --url http://{free} "));
    assert!(12 <= script.matches("bem ").count(), "{script}");
    let script = format!("trap 'kill $server 2>/dev/null || true' EXIT\n{script}");
    let followed = shell(folder.path(), &needed(&page), &script);
    assert!(followed.status.success(), "{}", text(&followed));
    let said = text(&followed);
    for wanted in [
        "would change: visits of action",
        "is taken back",
        "waits for a second approver",
        "every entry as recorded",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(said.contains("safety_override_mode           warn"), "{said}");
}
