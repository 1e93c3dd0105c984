//! What is taken away from a served world: its policy with where it comes from, and the log of its decisions, from the folder and over
//! HTTP. Clauses: GLE-9, LOG-4; decisions D-255, D-256.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its world has failed")]

mod server;

use bem_base::environment::{Bits, Outcome};
use bem_base::prng::Prng;
use bem_ledger::checkpoint::Signer;
use bem_ledger::log::{Log, LogOptions};
use bem_ledger::store::MemoryStore;
use bem_runtime::book::Line;
use bem_runtime::history::{self, LogSink, Player};
use bem_runtime::input::{Input, WorldIndex};
use bem_runtime::service::{Effect, ServiceConfig};
use serde_json::{Value, json};
use server::{Client, Server, bem, text};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A server without threads and clocks, so that what it decides is the same every time.
struct InProcess {
    log: Log<MemoryStore>,
    player: Player,
    /// Inputs until the round that is under way takes effect.
    lag: u32,
}

impl InProcess {
    fn new(worlds: &[&str]) -> InProcess {
        let config = ServiceConfig { seed: 11, parameters: Arc::default() };
        let signer = Signer::from_seed(&[5; 32]);
        let opened =
            history::create(MemoryStore::new(), signer, "test", config, LogOptions::default()).unwrap();
        let mut served = InProcess { log: opened.log, player: opened.player, lag: 0 };
        for world in worlds {
            let spec = bem_serve::api::read_world(world.as_bytes()).unwrap_or_else(|_| panic!("{world}"));
            let input = served.player.service.create(spec).unwrap().unwrap();
            served.take(input);
        }
        served
    }

    fn take(&mut self, input: Input) {
        self.player.take(&mut LogSink(&mut self.log), input).unwrap();
    }

    /// Asks for a decision: its number and the action.
    fn decide(&mut self, world: WorldIndex, seen: u64, episode: &str) -> (u64, u16) {
        let service = &mut self.player.service;
        let input = service.ask(world, Bits([seen, 0, 0, 0]), episode).unwrap();
        let effect = service.apply(&input, None).unwrap();
        let Effect::Decided(_, choice) = &effect else { panic!("a decision") };
        let (number, action) = (service.last(), choice.action);
        let (line, _) = Line::of(input, effect, service);
        self.player.book.take(&mut LogSink(&mut self.log), &line).unwrap();
        (number, action)
    }

    fn reward(&mut self, world: WorldIndex, number: u64, outcome: Outcome) {
        let input = self.player.service.reward(world, number, outcome).unwrap().unwrap();
        self.take(input);
        let searching = self.player.service.worlds().find(|(_, world)| world.is_searching());
        match searching.map(|(world, _)| world) {
            Some(world) if self.lag == 0 => self.take(Input::Publish { world }),
            Some(_) => self.lag -= 1,
            None => {
                if let Some(input) = self.player.service.due_round() {
                    self.take(input);
                    self.lag = 7;
                }
            }
        }
    }

    /// The folder of a server that has come so far.
    fn save(mut self, folder: &Path) {
        self.player.book.close_block(&mut LogSink(&mut self.log)).unwrap();
        self.log.commit().unwrap();
        let ledger = folder.join("ledger");
        std::fs::create_dir_all(&ledger).unwrap();
        for (name, bytes) in &self.log.into_store().files {
            std::fs::write(ledger.join(name), bytes).unwrap();
        }
    }
}

/// What an action brings on average where a context is seen, in milli-units: the best one is that of the context.
fn worth(context: u64, action: u16) -> i32 {
    match (u64::from(action) + 4 - context) % 4 {
        0 => 800,
        1 => 500,
        _ => 200,
    }
}

/// The circuit that does what the lowest two bits say, one step off where `off` is set.
fn circuit(off: bool) -> String {
    let low = if off { "0 1" } else { "1 1" };
    format!(
        ".model rule\n.inputs observation_0 observation_1\n.outputs action_0 action_1\n\
         .names observation_0 action_0\n{low}\n.names observation_1 action_1\n1 1\n.end\n"
    )
}

fn evaluated(folder: &Path, arguments: &[&str]) -> Value {
    let roles = ["--action", "action", "--reward", "reward", "--propensity", "propensity", "--json"];
    let output = bem(folder, &[&["evaluate"], arguments, &roles[..]].concat());
    serde_json::from_str(&text(&output)).unwrap_or_else(|_| panic!("{}", text(&output)))
}

fn holds(estimate: &Value, truth: f64) {
    for name in ["ips", "snips", "dr"] {
        let found = &estimate[name];
        // Of episodes there is no doubly robust estimate.
        if name == "dr" && found.is_null() {
            continue;
        }
        let (low, high) = (found["interval95"][0].as_f64(), found["interval95"][1].as_f64());
        let (low, high) = (low.unwrap_or(f64::NAN), high.unwrap_or(f64::NAN));
        assert!(low <= truth && truth <= high, "{name}: {truth} in {estimate}");
        assert!(high - low < 0.5 * truth, "{name} says little: {estimate}");
    }
}

#[test]
fn a_served_log_gives_intervals_that_hold_the_true_value_of_a_policy() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = InProcess::new(&[
        r#"{"name":"ads","obs_bits":2,"actions":4,"reward_range":[0,1000],"min_propensity":0.05}"#,
        r#"{"name":"visits","obs_bits":2,"actions":4,"reward_range":[0,1000],"horizon":2,"min_propensity":0.05}"#,
    ]);
    let mut chance = Prng::stream(7, "clients");
    let mut lost = 0;
    for number in 0..4_000u64 {
        for (world, steps) in [(WorldIndex(0), 1), (WorldIndex(1), 2)] {
            for step in 0..steps {
                let context = chance.below(4);
                let episode = if steps == 1 { String::new() } else { format!("user {}", number % 7) };
                let (decision, action) = served.decide(world, context, &episode);
                let is_paid = chance.below(1_000) < worth(context, action) as u64;
                let reward = if is_paid { 1_000 } else { 0 };
                let outcome = Outcome { reward, done: step + 1 == steps, bad: false };
                // One in twenty never comes.
                match chance.below(20) {
                    0 => lost += u64::from(steps == 1),
                    _ => served.reward(world, decision, outcome),
                }
            }
        }
    }
    assert!(served.player.service.worlds().all(|(_, world)| 0 < world.statistics().applied));
    served.save(&folder.path().join("srv"));
    std::fs::write(folder.path().join("best.blif"), circuit(false)).unwrap();
    std::fs::write(folder.path().join("off.blif"), circuit(true)).unwrap();
    let exported =
        bem(folder.path(), &["export", "srv", "--expert", "ads", "--format", "log", "--out", "ads.jsonl"]);
    assert!(exported.status.success(), "{}", text(&exported));
    assert!(
        text(&exported).contains(&format!("{} decisions of world ads", 4_000 - lost)),
        "{}",
        text(&exported)
    );
    let lines = std::fs::read_to_string(folder.path().join("ads.jsonl")).unwrap();
    assert_eq!(lines.lines().count() as u64, 4_000 - lost);
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let names: Vec<&String> = first.as_object().unwrap().keys().collect();
    assert_eq!(names, ["action", "obs", "propensity", "reward"]);
    // The best policy earns 0.8; one that is a step off or a step back in turn earns the mean of 0.5 and 0.2.
    holds(&evaluated(folder.path(), &["best.blif", "--log", "ads.jsonl"]), 800.0);
    holds(&evaluated(folder.path(), &["off.blif", "--log", "ads.jsonl"]), 350.0);
    // So does what is served: its worth follows from its own circuit, which bem explain reads the same way.
    let own = evaluated(folder.path(), &["srv", "--expert", "ads", "--log", "ads.jsonl"]);
    holds(&own, 800.0);
    // Episodes of several steps, from standard output.
    let exported = bem(folder.path(), &["export", "srv", "--expert", "visits", "--format", "log"]);
    std::fs::write(folder.path().join("visits.jsonl"), &exported.stdout).unwrap();
    let estimate = evaluated(folder.path(), &["best.blif", "--log", "visits.jsonl", "--episode", "episode"]);
    assert!(3_000 < estimate["rows"].as_u64().unwrap(), "{estimate}");
    holds(&estimate, 1_600.0);
    // A circuit is learned from it, bit by bit, and judged by it.
    let learned = bem(
        folder.path(),
        &[
            "learn",
            "ads.jsonl",
            "--action",
            "action",
            "--reward",
            "reward",
            "--propensity",
            "propensity",
            "--out",
            "ads.policy",
        ],
    );
    assert!(learned.status.success(), "{}", text(&learned));
    let rules = text(&bem(folder.path(), &["explain", "ads.policy"]));
    assert!(rules.contains("obs bit 0"), "{rules}");
    let estimate = evaluated(folder.path(), &["ads.policy", "--log", "ads.jsonl"]);
    assert!(estimate["warnings"][0].as_str().unwrap().contains("learned from this very log"), "{estimate}");
    // A world begins with it as well.
    let server = Server::start(folder.path(), "new", &["--start-from", "ads=ads.jsonl"]);
    let world = json!({ "name": "ads", "obs_bits": 2, "actions": 4, "reward_range": [0, 1000] });
    assert_eq!(server.connect().ask("POST", "/v1/worlds", &world).0, 201);
}

#[test]
fn a_servers_folder_is_explained_and_exported_in_the_words_of_its_worlds() {
    let folder = tempfile::tempdir().unwrap();
    let shop = r#"{"name":"shop","features":[{"name":"temp","kind":"number","min":0,"max":100},{"name":"door","kind":"bit"}],
        "actions":2,"reward_range":[0,1000],"min_propensity":0.02}"#;
    let ads = r#"{"name":"ads","obs_bits":2,"actions":4,"reward_range":[0,1000]}"#;
    let play = |served: &mut InProcess, decisions: u64| {
        let mut chance = Prng::stream(9, "clients");
        let (index, world) = served.player.service.find("shop").unwrap();
        let encoder = bem_data::Declared::encoder_of(&world.spec().note).unwrap();
        let bits = usize::from(world.spec().shape.observation_bits);
        for _ in 0..decisions {
            let (temp, door) = (chance.below(100), chance.below(2));
            let seen = encoder.encode_json(&format!("{{\"temp\":{temp},\"door\":{door}}}")).unwrap();
            assert!(bits <= 64, "what is seen fits a word");
            let (decision, action) = served.decide(index, seen.0[0], "");
            let is_right = (action == 1) == (60 <= temp && door == 1);
            let outcome = Outcome { reward: if is_right { 1_000 } else { 0 }, done: true, bad: false };
            served.reward(index, decision, outcome);
        }
    };
    let mut served = InProcess::new(&[shop]);
    play(&mut served, 3_000);
    assert!(0 < served.player.service.find("shop").unwrap().1.statistics().applied);
    served.save(&folder.path().join("one"));
    let explained = bem(folder.path(), &["explain", "one"]);
    let said = text(&explained);
    assert!(explained.status.success(), "{said}");
    for wanted in
        ["BEM policy shop", "temp", "door", "history: ", "measured: mean return 0.", "baselines: random play"]
    {
        assert!(said.contains(wanted), "{wanted} is missing: {said}");
    }
    for unwanted in ["another version", "TaskFamily", "field 0", "bit 8"] {
        assert!(!said.contains(unwanted), "{unwanted}: {said}");
    }
    let why = bem(folder.path(), &["explain", "one", "--obs", "temp=90,door=1", "--json"]);
    let why: Value = serde_json::from_str(&text(&why)).unwrap_or_else(|_| panic!("{}", text(&why)));
    assert_eq!((&why["expert"], &why["why"]["action"]), (&json!("shop"), &json!(1)), "{why}");
    let exported = bem(folder.path(), &["export", "one", "--format", "c", "--out", "shop.h"]);
    assert!(exported.status.success(), "{}", text(&exported));
    let program = std::fs::read_to_string(folder.path().join("shop.h")).unwrap();
    assert!(program.contains("bem_decide_features") && program.contains("// history: "), "{program}");
    let grid = program.lines().find(|line| line.contains("feature temp")).unwrap();
    assert!(grid.contains("0.5 to 100 by 0.5") && grid.len() < 120, "{grid}");
    let mut tested = Command::new("sh");
    tested.args(["-c", "cc -std=c99 shop_test.c -o shop_test && ./shop_test"]);
    let tested = tested.current_dir(folder.path()).output().unwrap();
    assert!(tested.status.success(), "{}", text(&tested));
    let net = text(&bem(folder.path(), &["export", "one", "--format", "blif"]));
    assert!(net.contains("# BEM policy shop") && net.contains(".model shop\n"), "{net}");
    // A bundle is of a run: the refusal is one line and says what can be done.
    let refused = bem(folder.path(), &["export", "one", "--format", "bundle"]);
    let said = text(&refused);
    assert_eq!((refused.status.code(), said.trim_end().lines().count()), (Some(2), 1), "{said}");
    assert!(
        said.contains("is a server's") && said.contains("--format c") && said.contains("bem verify one"),
        "{said}"
    );
    // Of several worlds one must be named.
    let mut served = InProcess::new(&[ads, shop]);
    play(&mut served, 200);
    served.save(&folder.path().join("two"));
    for command in [
        &["explain", "two"][..],
        &["evaluate", "two", "--log", "x.jsonl"],
        &["export", "two", "--format", "log"],
    ] {
        let refused = bem(folder.path(), command);
        assert_eq!(refused.status.code(), Some(2), "{command:?}");
        let wanted = "the server has several worlds: name one with --expert, ads, shop";
        assert!(text(&refused).contains(wanted), "{command:?}: {}", text(&refused));
    }
    let listed = text(&bem(folder.path(), &["export", "two"]));
    assert!(
        listed.contains("ads") && listed.contains("shop") && listed.contains("200 decisions"),
        "{listed}"
    );
    let refused = text(&bem(folder.path(), &["explain", "two", "--expert", "none"]));
    assert!(refused.contains("there is no world \"none\" in this server; there are ads, shop"), "{refused}");
    let chosen = text(&bem(folder.path(), &["explain", "two", "--expert", "ads"]));
    assert!(chosen.contains("BEM policy ads") && chosen.contains("measured: nothing"), "{chosen}");
    // A log is a server's.
    std::fs::create_dir_all(folder.path().join("empty")).unwrap();
    assert_eq!(bem(folder.path(), &["export", "empty", "--format", "log"]).status.code(), Some(2));
}

#[test]
fn a_server_of_an_older_learner_is_explained_by_its_patches_and_its_log_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/state-1-learner-6/served-ledger");
    std::fs::create_dir_all(folder.path().join("old/ledger")).unwrap();
    for file in std::fs::read_dir(old).unwrap().map(Result::unwrap) {
        std::fs::copy(file.path(), folder.path().join("old/ledger").join(file.file_name())).unwrap();
    }
    let said = text(&bem(folder.path(), &["explain", "old", "--expert", "ads"]));
    assert!(said.contains("BEM policy ads") && said.contains("another version of bem"), "{said}");
    let log = bem(folder.path(), &["export", "old", "--format", "log"]);
    let first: Value = serde_json::from_str(text(&log).lines().next().unwrap()).unwrap();
    assert_eq!(first["obs"].as_str().unwrap().len(), 2, "{first}");
    assert!(0.0 < first["propensity"].as_f64().unwrap() && 100 < text(&log).lines().count(), "{first}");
}

/// Status, head and body of a request.
fn looked(client: &mut Client, path: &str) -> (u16, String, String) {
    use std::io::{Read as _, Write as _};
    let request = client.request("GET", path, "");
    client.stream.write_all(request.as_bytes()).unwrap();
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4_096]);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |text| text.parse().unwrap());
            if end + 4 + length <= bytes.len() {
                let body = String::from_utf8_lossy(&bytes[end + 4..end + 4 + length]).into_owned();
                return (head[9..12].parse().unwrap(), head, body);
            }
        }
        let count = client.stream.read(&mut chunk).unwrap();
        assert!(0 < count, "the connection ended");
        bytes.extend_from_slice(&chunk[..count]);
    }
}

#[test]
fn a_program_takes_the_log_and_the_policy_of_a_world_away_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "served", &[]);
    let mut client = server.connect();
    let world = json!({ "name": "ads", "obs_bits": 2, "actions": 4, "reward_range": [0, 1000], "min_propensity": 0.05 });
    assert_eq!(client.ask("POST", "/v1/worlds", &world).0, 201);
    let mut chance = Prng::stream(13, "clients");
    let mut told = Vec::new();
    for _ in 0..1_500 {
        let context = chance.below(4);
        let obs: String = (0..2).map(|bit| if context >> bit & 1 == 1 { '1' } else { '0' }).collect();
        let (_, answer) = client.ask("POST", "/v1/worlds/ads/decide", &json!({ "obs": obs }));
        let action = answer["action"].as_u64().unwrap();
        let is_paid = chance.below(1_000) < worth(context, action as u16) as u64;
        let reward = if is_paid { 1_000 } else { 0 };
        let body = json!({ "decision": answer["decision"], "reward": reward });
        assert_eq!(client.ask("POST", "/v1/worlds/ads/reward", &body).0, 200);
        told.push((obs, action, reward, answer["propensity"].as_f64().unwrap()));
    }
    // The ledger follows within a second or so.
    let mut pages = String::new();
    let (mut path, mut asked) = ("/v1/worlds/ads/log?limit=400".to_string(), 0);
    for _ in 0..100 {
        let (status, head, body) = looked(&mut client, &path);
        assert_eq!(status, 200, "{body}");
        assert!(head.contains("content-type: application/x-ndjson"), "{head}");
        asked += 1;
        pages.push_str(&body);
        let after = head.lines().find_map(|line| line.strip_prefix("bem-after: ")).unwrap();
        path = format!("/v1/worlds/ads/log?after={after}&limit=400");
        let has_more = head.contains("rel=\"next\"");
        assert!(!has_more || body.lines().count() == 400, "{head}");
        if pages.lines().count() == told.len() {
            break;
        }
        if !has_more {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
    assert!(4 <= asked, "{asked}");
    for (line, (obs, action, reward, propensity)) in pages.lines().zip(&told) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&line["obs"], &line["action"], &line["reward"]),
            (&json!(obs), &json!(action), &json!(reward))
        );
        let off = (line["propensity"].as_f64().unwrap() - propensity).abs();
        assert!(off < 1e-9 && 0.05 - 1e-9 <= *propensity, "{line} {propensity}");
    }
    assert_eq!(pages.lines().count(), told.len());
    // The folder says the same, also while the server runs, and a policy is judged by it.
    let exported = bem(folder.path(), &["export", "served", "--format", "log"]);
    assert_eq!(String::from_utf8_lossy(&exported.stdout), pages);
    std::fs::write(folder.path().join("log.jsonl"), &pages).unwrap();
    std::fs::write(folder.path().join("best.blif"), circuit(false)).unwrap();
    let estimate = evaluated(folder.path(), &["best.blif", "--log", "log.jsonl"]);
    assert_eq!(estimate["supported"], json!(true), "{estimate}");
    // When rounds take effect depends on the clock here, so that the interval is given some room.
    let (low, high) = (estimate["ips"]["interval95"][0].as_f64(), estimate["ips"]["interval95"][1].as_f64());
    let room = (high.unwrap() - low.unwrap()) / 2.0;
    assert!(low.unwrap() - room <= 800.0 && 800.0 <= high.unwrap() + room, "{estimate}");
    for (path, field) in [
        ("log?limit=0", "limit"),
        ("log?limit=10001", "limit"),
        ("log?after=x", "after"),
        ("log?from=1", "from"),
    ] {
        let (status, answer) = client.ask("GET", &format!("/v1/worlds/ads/{path}"), &Value::Null);
        assert_eq!((status, &answer["error"]["field"]), (400, &json!(field)), "{path}: {answer}");
    }
    assert_eq!(client.ask("GET", "/v1/worlds/none/log", &Value::Null).0, 404);
    // A program says where it comes from, and its self-test passes.
    let mut head_line = String::new();
    for (part, wanted) in
        [("program", "policy.h"), ("test", "policy_test.c"), ("vectors", "policy_vectors.txt")]
    {
        let (status, head, body) =
            looked(&mut client, &format!("/v1/worlds/ads/export?format=c&part={part}"));
        assert!(status == 200 && head.contains(&format!("filename=\"{wanted}\"")), "{head}");
        if part == "program" {
            for line in ["// BEM policy ads", "// history: ", "// circuit: ", "// measured: mean return 0."] {
                assert!(body.contains(line), "{line} is missing: {body}");
            }
            head_line = body.lines().find(|line| line.contains("history: ")).unwrap().to_string();
        }
        std::fs::write(folder.path().join(wanted), body).unwrap();
    }
    assert!(head_line.contains("up to input ") && 80 < head_line.len(), "{head_line}");
    let mut compiled = Command::new("sh");
    compiled.args(["-c", "cc -std=c99 policy_test.c -o policy_test && ./policy_test"]);
    let compiled = compiled.current_dir(folder.path()).output().unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled));
    let (status, _, net) = looked(&mut client, "/v1/worlds/ads/export?format=blif");
    assert!(status == 200 && net.contains("# measured: ") && net.contains("observation_0"), "{net}");
    for (query, field) in
        [("format=c&part=x", "part"), ("format=blif&part=test", "part"), ("format=x", "format")]
    {
        let (status, answer) = client.ask("GET", &format!("/v1/worlds/ads/export?{query}"), &Value::Null);
        assert_eq!((status, &answer["error"]["field"]), (400, &json!(field)), "{query}: {answer}");
    }
    server.stop();
}
