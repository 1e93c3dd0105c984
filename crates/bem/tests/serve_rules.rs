//! Rules of one's own in a served world, and circuits that it begins with: never done what is forbidden, BAD by what is seen, any
//! width, thresholds that fit or are named. The binary is asked over loopback. Clauses: VM-13, VM-17, GLE-9, LOG-5; decisions D-226,
//! D-227.

mod server;

use serde_json::{Value, json};
use server::{Client, Server, bem, text};
use std::path::Path;
use std::process::Command;

fn oven() -> Value {
    json!({
        "name": "oven", "actions": 3, "reward_range": [0, 1000], "horizon": 4,
        "features": [
            { "name": "temp", "kind": "number", "min": 0, "max": 10 },
            { "name": "door", "kind": "bit" },
        ],
        "bad_if": [{ "if": { "temp": "> 8.3" } }, { "if": { "door": 1 }, "action": 1 }],
        "forbid": [{ "if": { "temp": ">= 7.2" }, "action": 2 }],
    })
}

/// A few random bits from a number.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (number ^ (number >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

fn refused(client: &mut Client, world: &Value, field: &str, wanted: &str) {
    let (status, answer) = client.ask("POST", "/v1/worlds", world);
    assert_eq!((status, &answer["error"]["field"]), (400, &json!(field)), "{answer}");
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(message.contains(wanted), "{message}");
}

#[test]
fn wrong_rules_are_refused_by_field_and_name_what_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "served", &[]);
    let mut client = server.connect();
    let with = |name: &str, value: Value| {
        let mut world = oven();
        world[name] = value;
        world
    };
    let mut bits = json!({ "name": "plain", "obs_bits": 2, "actions": 2, "reward_range": [0, 1] });
    bits["forbid"] = json!([{ "if": {}, "action": 1 }]);
    refused(&mut client, &bits, "forbid", "forbid needs features");
    let always = json!([{ "if": { "door": 1 } }]);
    refused(
        &mut client,
        &with("forbid", always),
        "forbid",
        "rule 0: \"action\" is missing; it must be 0 to 2",
    );
    let all = json!([{ "if": { "door": 1 }, "action": [0, 1, 2] }]);
    refused(&mut client, &with("forbid", all), "forbid", "every action is forbidden for some observation");
    refused(&mut client, &with("forbid", json!("never")), "forbid", "forbid must be a list");
    let unknown = json!([{ "if": { "heat": "> 1" } }]);
    refused(&mut client, &with("bad_if", unknown), "bad_if", "\"heat\" is no feature; there are temp, door");
    let words = json!([{ "if": { "temp": "hot" } }]);
    refused(&mut client, &with("bad_if", words), "bad_if", "a number takes");
    refused(&mut client, &with("actions", json!(0)), "actions", "out of range");
    // A rule over one of eight numbers is no more than one over one of two; ragged ranges of all of them are too many patterns.
    let many: Vec<Value> = (0..8)
        .map(|place| json!({ "name": format!("n{place}"), "kind": "number", "min": 0, "max": 15 }))
        .collect();
    let mut wide = with("features", json!(many));
    (wide["name"], wide["bad_if"]) = (json!("wide"), json!([]));
    let ranges: Vec<(String, Value)> =
        (0..8).map(|place| (format!("n{place}"), json!(">= 1.5 and < 14.5"))).collect();
    wide["forbid"] = json!([{ "if": Value::Object(ranges.into_iter().collect()), "action": 1 }]);
    refused(&mut client, &wide, "forbid", "takes more than 4096 patterns of bits");
    wide["forbid"] = json!([{ "if": { "n0": ">= 1" }, "action": 1 }]);
    assert_eq!(client.ask("POST", "/v1/worlds", &wide).0, 201);
    let (_, made) = client.ask("GET", "/v1/worlds/wide", &Value::Null);
    let pairs = made["forbidden"].as_array().expect("a list");
    assert!(
        pairs.len() <= 4
            && pairs.iter().all(|pair| pair["obs"].as_str().is_some_and(|obs| obs.ends_with('-')))
    );
    // What is shown may be declared again.
    (wide["name"], wide["forbidden"], wide["forbid"]) =
        (json!("again"), made["forbidden"].clone(), json!([]));
    assert_eq!(client.ask("POST", "/v1/worlds", &wide).0, 201);
    // A pair that is named and one that follows from a rule leave nothing together.
    let mut both = with("forbid", json!([{ "if": { "door": 1 }, "action": [0, 1] }]));
    both["bad_if"] = json!([]);
    both["forbidden"] = json!([{ "obs": { "temp": 3, "door": 1 }, "action": 2 }]);
    refused(&mut client, &both, "forbidden", "leaves no action");
    assert_eq!(client.ask("GET", "/v1/worlds/oven", &Value::Null).0, 404);
    // A rule whose floor is forbidden somewhere.
    refused(&mut client, &with("floor", json!({ "action": 2, "risk": 0.1 })), "floor", "forbidden somewhere");
}

/// What a client of the oven keeps: tenths of a degree, and what was BAD.
struct Oven {
    client: Client,
    bad: u64,
    /// A reward that was found to be BAD after it was said.
    late: Option<Value>,
}

fn seen(temp: u64, door: u64) -> Value {
    json!({ "temp": format!("{}.{}", temp / 10, temp % 10), "door": door })
}

impl Oven {
    fn decide(&mut self, episode: u64, temp: u64, door: u64) -> (Value, u64) {
        let body = json!({ "obs": seen(temp, door), "episode": format!("e{episode}") });
        let (status, answer) = self.client.ask("POST", "/v1/worlds/oven/decide", &body);
        assert_eq!(status, 200, "{answer}");
        let action = answer["action"].as_u64().expect("an action");
        let is_forbidden = 72 <= temp && action == 2 || door == 1 && action == 1;
        assert!(!is_forbidden, "{temp} {door}: {action}");
        (answer["decision"].clone(), action)
    }

    fn reward(&mut self, body: &Value, counted: bool) {
        let answer = self.client.ask("POST", "/v1/worlds/oven/reward", body);
        assert_eq!((answer.0, &answer.1["counted"]), (200, &json!(counted)), "{body}: {}", answer.1);
    }

    /// Four steps, or two where the episode ends early. Rewards come at once, or all in the end and in reverse.
    fn play(&mut self, episode: u64) {
        let (mut temp, mut door) = (mixed(episode) % 80, mixed(episode + 9) % 2);
        let steps = if episode.is_multiple_of(5) { 2 } else { 4 };
        let mut waiting = Vec::new();
        for step in 0..steps {
            let (decision, action) = self.decide(episode, temp, door);
            temp = if action == 0 { temp.saturating_sub(20) } else { (temp + 11 * action).min(100) };
            door = mixed(episode * 8 + step) % 2;
            let is_bad = 83 < temp;
            self.bad += u64::from(is_bad);
            let mut body = json!({ "decision": decision, "reward": 300 * action });
            if step + 1 == steps {
                // Nobody asks after the last step: what was seen then comes with its reward.
                body["obs"] = seen(temp, door);
                body["done"] = json!(true);
            } else if is_bad && self.late.is_none() && !episode.is_multiple_of(2) {
                self.late = Some(body.clone());
            }
            waiting.push(body);
            if !episode.is_multiple_of(2) {
                waiting.drain(..).for_each(|body| self.reward(&body, true));
            }
        }
        waiting.iter().rev().for_each(|body| self.reward(body, true));
    }
}

#[test]
fn what_is_forbidden_is_never_done_and_what_is_seen_makes_a_step_bad_also_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "served", &[]);
    let mut client = server.connect();
    assert_eq!(client.ask("POST", "/v1/worlds", &oven()).0, 201);
    assert_eq!(client.ask("POST", "/v1/worlds", &oven()).0, 200);
    let mut other = oven();
    other["forbid"][0]["if"]["temp"] = json!(">= 7.3");
    assert_eq!(client.ask("POST", "/v1/worlds", &other).0, 409);
    let mut player = Oven { client, bad: 0, late: None };
    (0..240).for_each(|episode| player.play(episode));
    // The same outcome again is known, though it was found to be BAD since; a wrong observation is refused.
    let late = player.late.clone().expect("a step that was BAD by the next observation");
    player.reward(&late, false);
    let mut wrong = late;
    wrong["obs"] = json!({ "temp": 11, "door": 0 });
    let (status, answer) = player.client.ask("POST", "/v1/worlds/oven/reward", &wrong);
    assert_eq!((status, &answer["error"]["field"]), (400, &json!("obs")), "{answer}");
    let (_, world) = player.client.ask("GET", "/v1/worlds/oven", &Value::Null);
    assert!(20 < player.bad && world["statistics"]["bad"] == json!(player.bad), "{}: {world}", player.bad);
    assert_eq!((&world["bad_if"], &world["forbid"]), (&oven()["bad_if"], &oven()["forbid"]));
    assert_eq!(world["features"][0]["name"], "temp", "{world}");
    let pairs = world["forbidden"].as_array().expect("a list").len();
    // Rules of bad_if that name actions forbid them as well.
    assert!(world["forbidden"].as_array().is_some_and(|pairs| pairs.iter().any(|pair| pair["action"] == 1)));
    server.stop();
    let server = Server::start(folder.path(), "served", &[]);
    player.client = server.connect();
    assert_eq!(player.client.ask("POST", "/v1/worlds", &oven()).0, 200);
    (240..300).for_each(|episode| player.play(episode));
    let (_, world) = player.client.ask("GET", "/v1/worlds/oven", &Value::Null);
    assert_eq!(world["statistics"]["bad"], json!(player.bad), "{world}");
    let (_, program) = player.client.ask("GET", "/v1/worlds/oven/export?format=python", &Value::Null);
    let program = program.as_str().expect("a program");
    assert!(program.contains(&format!("never takes {pairs} forbidden patterns")), "{program}");
    std::fs::write(folder.path().join("policy.py"), program).expect("a file");
    let all = "import policy\nfor temp in range(101):\n    for door in (0, 1):\n        own = policy.Policy()\n        \
        act = policy.decide_features(own, {'temp': temp / 10, 'door': door})\n        \
        assert not (temp >= 72 and act == 2) and not (door and act == 1), (temp, door, act)";
    let checked =
        Command::new("python3").args(["-c", all]).current_dir(folder.path()).output().expect("python3");
    assert!(checked.status.success(), "{}", text(&checked));
    server.stop();
    played_again(folder.path());
}

/// The history of the state is played again to the same end, and its audit finds nothing.
fn played_again(folder: &Path) {
    let replayed = bem(folder, &["replay", "served"]);
    assert!(replayed.status.success(), "{}", text(&replayed));
    assert!(text(&bem(folder, &["verify", "served"])).starts_with("unanchored: "));
}

/// A circuit over twenty bits that nobody finds in a few hundred rows: the sum of the products of neighbours.
fn products() -> String {
    let names: Vec<String> = (0..20).map(|bit| format!("observation_{bit}")).collect();
    let mut text = format!(".model products\n.inputs {}\n.outputs action_0\n", names.join(" "));
    for pair in 0..10 {
        text += &format!(".names observation_{} observation_{} p{pair}\n11 1\n", 2 * pair, 2 * pair + 1);
    }
    for pair in 1..10 {
        let (before, sum) =
            (if pair == 1 { "p0".to_string() } else { format!("s{}", pair - 1) }, format!("s{pair}"));
        text +=
            &format!(".names {before} p{pair} {}\n10 1\n01 1\n", if pair == 9 { "action_0" } else { &sum });
    }
    text + ".end\n"
}

#[test]
fn a_circuit_of_twenty_inputs_begins_a_served_world_and_its_proof_is_checked_again() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("wide.blif"), products()).expect("a file");
    let server = Server::start(folder.path(), "served", &["--start-from", "wide=wide.blif"]);
    let mut client = server.connect();
    let narrow = json!({ "name": "wide", "obs_bits": 19, "actions": 2, "reward_range": [0, 1000] });
    refused(&mut client, &narrow, "start_from", "it reads bit 19 and this world shows 19 bits");
    let world = json!({ "name": "wide", "obs_bits": 20, "actions": 2, "reward_range": [0, 1000] });
    assert_eq!(client.ask("POST", "/v1/worlds", &world).0, 201);
    let mut earned = 0;
    for number in 0..900u64 {
        let seen = mixed(number + 77) & 0xF_FFFF;
        let obs: String = (0..20).map(|bit| if seen >> bit & 1 == 1 { '1' } else { '0' }).collect();
        let best = (seen & seen >> 1 & 0x5_5555).count_ones() & 1;
        let (_, answer) = client.ask("POST", "/v1/worlds/wide/decide", &json!({ "obs": obs }));
        let reward = if answer["action"] == json!(best) { 1_000 } else { 0 };
        earned += if 700 <= number { reward } else { 0 };
        let body = json!({ "decision": answer["decision"], "reward": reward });
        assert_eq!(client.ask("POST", "/v1/worlds/wide/reward", &body).0, 200);
    }
    let (_, shown) = client.ask("GET", "/v1/worlds/wide", &Value::Null);
    let circuit = &shown["circuit"];
    assert_eq!(circuit["reads"].as_array().map(Vec::len), Some(20), "{shown}");
    assert!(circuit["words"].as_str().is_some_and(|words| words.contains("started from")), "{circuit}");
    assert!(180_000 <= earned, "{earned}: {circuit}");
    server.stop();
    played_again(folder.path());
}

#[test]
fn thresholds_of_a_circuit_are_taken_over_exactly_or_named_with_their_feature() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, values) in
        [("round", &["1", "3", "4", "5", "7", "9"][..]), ("odd", &["0.11", "4.311", "4.322", "9.7"])]
    {
        let row = |number: u64| {
            let temp = values[mixed(number) as usize % values.len()];
            let action = mixed(number + 5) % 2;
            let is_hot = 4.315 < temp.parse::<f64>().expect("a number");
            format!("{temp},{action},{},0.5\n", u8::from((action == 1) == is_hot))
        };
        let log = "temp,act,paid,chance\n".to_string() + &(0..1_200).map(row).collect::<String>();
        std::fs::write(folder.path().join(format!("{name}.csv")), log).expect("a log");
        let roles = ["--action", "act", "--reward", "paid", "--propensity", "chance"];
        let (log, out) = (format!("{name}.csv"), format!("{name}.policy"));
        let learned = bem(folder.path(), &[&["learn", &log, "--out", &out][..], &roles].concat());
        assert!(learned.status.success(), "{}", text(&learned));
    }
    let starts = ["--start-from", "round=round.policy", "--start-from", "odd=odd.policy"];
    let server = Server::start(folder.path(), "served", &starts);
    let mut client = server.connect();
    let world = |name: &str| {
        json!({ "name": name, "actions": 2, "reward_range": [0, 1000],
            "features": [{ "name": "temp", "kind": "number", "min": 0, "max": 10 }] })
    };
    let (status, answer) = client.ask("POST", "/v1/worlds", &world("odd"));
    assert_eq!((status, &answer["error"]["field"]), (400, &json!("start_from")), "{answer}");
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("it compares \"temp\" with 4.32, and this world compares it with 0.05, "),
        "{message}"
    );
    assert_eq!(client.ask("GET", "/v1/worlds/odd", &Value::Null).0, 404);
    assert_eq!(client.ask("POST", "/v1/worlds", &world("round")).0, 201);
    // With a rule that compares with the same number, this world tells what the circuit asks.
    let mut ruled = world("odd");
    ruled["bad_if"] = json!([{ "if": { "temp": ">= 4.32" }, "action": 0 }]);
    let (status, answer) = client.ask("POST", "/v1/worlds", &ruled);
    assert_eq!(status, 201, "{answer}");
    let mut earned = 0;
    for number in 0..600u64 {
        let temp = mixed(number + 3) % 11;
        let body = json!({ "obs": { "temp": temp } });
        let (_, answer) = client.ask("POST", "/v1/worlds/round/decide", &body);
        let reward = if answer["action"] == json!(u64::from(5 <= temp)) { 1_000 } else { 0 };
        earned += if 400 <= number { reward } else { 0 };
        let body = json!({ "decision": answer["decision"], "reward": reward });
        assert_eq!(client.ask("POST", "/v1/worlds/round/reward", &body).0, 200);
    }
    assert!(180_000 <= earned, "{earned}");
    server.stop();
    played_again(folder.path());
}
