//! `bem serve --pipeline`: phases beside a service, a domain that comes in over HTTP, kills in between, one history, images.
//! Clauses: PIPE-1, PIPE-2, IMG-1, IMG-4.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its server has failed")]

mod server;

use serde_json::{Value, json};
use server::{Server, bem, text};
use std::path::Path;
use std::time::Duration;

/// A pipeline of one small domain that a server is to go on with.
fn begin(folder: &Path, state: &str) {
    let out = format!("{state}/pipeline");
    let plan = ["--domains", "games", "--stages", "2", "--unit-steps", "300", "--mixed-rounds", "1"];
    let begun =
        bem(folder, &[&["pipeline", "run", "--json", "--units", "0", "--out", &out], &plan[..]].concat());
    assert!(begun.status.success(), "{}", text(&begun));
}

fn serve(folder: &Path, state: &str) -> Server {
    Server::start(folder, state, &["--pipeline", "1000000", "--image-every", "never"])
}

/// Asks how the pipeline stands until it stands so.
fn wait(server: &Server, what: &str, stands: impl Fn(&Value) -> bool) -> Value {
    let mut client = server.connect();
    for _ in 0..12_000 {
        let (status, shown) = client.ask("GET", "/v1/domains", &Value::Null);
        assert_eq!((status, &shown["error"]), (200, &Value::Null), "{shown}");
        if stands(&shown) {
            return shown;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{what} did not come");
}

fn is_learned(shown: &Value, name: &str) -> bool {
    let domains = shown["domains"].as_array().unwrap();
    domains.iter().any(|domain| domain["name"] == name && domain["state"] == "learned")
}

fn newest_volume(shown: &Value) -> u64 {
    shown["volumes"].as_array().unwrap().iter().filter_map(Value::as_u64).max().unwrap_or(0)
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn audit(folder: &Path, pipeline: &str) -> Value {
    let audited = bem(folder, &["verify", pipeline, "--json"]);
    let audit: Value =
        serde_json::from_slice(&audited.stdout).unwrap_or_else(|_| panic!("{}", text(&audited)));
    assert_eq!(audit["verdict"], "unanchored", "{audit}");
    audit
}

#[test]
fn a_server_works_through_phases_takes_in_a_domain_survives_kills_and_has_the_history_of_the_foreground() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    begin(folder, "served");
    let server = serve(folder, "served");
    wait(&server, "the first unit", |shown| 0 < shown["units"].as_u64().unwrap());
    server.kill();
    let server = serve(folder, "served");
    let shown = wait(&server, "the end of phase 2", |shown| is_learned(shown, "games"));
    assert!(shown["domains"][0]["score"].as_f64().is_some_and(|score| 0.9 < score), "{shown}");
    let mut client = server.connect();
    let (status, refused) = client.ask("POST", "/v1/domains", &json!({ "name": "chess" }));
    assert_eq!((status, &refused["error"]["field"]), (400, &json!("name")), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("aggregation, stack"), "{refused}");
    assert_eq!(client.ask("POST", "/v1/domains", &json!({ "name": "games" })).0, 409);
    assert_eq!(client.ask("POST", "/v1/domains", &json!({ "nam": "stack" })).0, 400);
    let (status, taken) = client.ask("POST", "/v1/domains", &json!({ "name": "stack" }));
    assert_eq!((status, &taken["waiting"]), (202, &json!(["stack"])), "{taken}");
    assert!(!taken["allowed"].as_array().unwrap().contains(&json!("stack")), "{taken}");
    // What was acknowledged is there after a kill, and another one in the middle of its work costs nothing.
    server.kill();
    let server = serve(folder, "served");
    let before = wait(&server, "a specialist", |shown| shown["domains"][1]["name"] == "stack");
    assert_eq!(before["phase"], 4);
    server.kill();
    let server = serve(folder, "served");
    let shown =
        wait(&server, "the late domain", |shown| is_learned(shown, "stack") && is_learned(shown, "games"));
    // Without end: the next volume begins with what the two before it have.
    let volume = newest_volume(&shown);
    wait(&server, "a new volume", |shown| volume < newest_volume(shown) && shown["phase"] == 4);
    let (_, metrics) = server.connect().ask("GET", "/metrics", &Value::Null);
    let units = metrics.as_str().unwrap().lines().find_map(|line| line.strip_prefix("bem_pipeline_units "));
    assert!(units.is_some_and(|units| 0 < units.parse::<u64>().unwrap()), "{metrics}");
    // It may be audited while it runs.
    audit(folder, "served/pipeline");
    server.stop();
    let pipeline = folder.join("served/pipeline");
    let report: Value =
        serde_json::from_slice(&std::fs::read(pipeline.join("pipeline.json")).unwrap()).unwrap();
    let audited = audit(folder, "served/pipeline");
    assert!(audited["machines"]["specialists/stack"]["entries"].as_u64().is_some(), "{audited}");
    // What is kept is bounded: answers of one round, and the volumes of two generations.
    assert!(entries(&pipeline.join("units")).len() <= 8, "{:?}", entries(&pipeline.join("units")));
    assert!(entries(&pipeline.join("main")).len() <= 3, "{:?}", entries(&pipeline.join("main")));
    assert!(report["kept_least"].as_f64().is_none_or(|least| 0.98 <= least), "{report}");
    // The same plan in the foreground, undisturbed: domain by domain as they came in, it has the same history.
    std::fs::create_dir(folder.join("again")).unwrap();
    std::fs::copy(pipeline.join("plan.json"), folder.join("again/plan.json")).unwrap();
    let units = report["units"].as_u64().unwrap().to_string();
    let again = bem(folder, &["pipeline", "run", "--json", "--resume", "again", "--units", &units]);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap_or_else(|_| panic!("{}", text(&again)));
    assert_eq!(again["trace_head"], report["trace_head"]);
}

#[test]
fn an_image_holds_the_pipeline_and_a_restored_server_goes_on_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    begin(folder, "served");
    let server = serve(folder, "served");
    wait(&server, "the end of phase 2", |shown| is_learned(shown, "games"));
    // While it works: what is packed is whole, whatever the pipeline writes meanwhile.
    let saved = bem(folder, &["image", "snapshot", "--state", "served", "--layout", "images"]);
    assert!(saved.status.success(), "{}", text(&saved));
    server.stop();
    let listed = bem(folder, &["image", "list", "--layout", "images", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let tag = listed["images"][0]["tag"].as_str().unwrap().to_string();
    for (out, keyed) in [("another", false), ("same", true)] {
        let key = folder.join("keys/bem/key");
        let key = ["--key", key.to_str().unwrap()];
        let arguments = ["image", "restore", &tag, "--layout", "images", "--out", out];
        let arguments = if keyed { [&arguments[..], &key[..]].concat() } else { arguments.to_vec() };
        let restored = bem(folder, &arguments);
        assert!(restored.status.success(), "{}", text(&restored));
        let machines = audit(folder, &format!("{out}/pipeline"))["machines"].clone();
        let machines = machines.as_object().expect("machines by name");
        // How many volumes there have been is the pipeline's own pace.
        let main = machines.iter().find(|(name, _)| name.starts_with("main/"));
        assert!(main.is_some_and(|(_, main)| main["entries"].as_u64().is_some()), "{machines:?}");
        let server = serve(folder, out);
        let shown = wait(&server, "the pipeline", |shown| is_learned(shown, "games"));
        let (units, volume) = (shown["units"].as_u64().unwrap(), newest_volume(&shown));
        assert!(0 < units);
        wait(&server, "more units", |shown| {
            units < shown["units"].as_u64().unwrap() && volume < newest_volume(shown)
        });
        server.stop();
        audit(folder, &format!("{out}/pipeline"));
    }
}

#[test]
fn a_server_without_a_pipeline_says_so_and_wrong_options_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "served", &[]);
    let mut client = server.connect();
    for (method, body) in [("GET", Value::Null), ("POST", json!({ "name": "stack" }))] {
        let (status, refused) = client.ask(method, "/v1/domains", &body);
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("no_pipeline")), "{refused}");
    }
    server.stop();
    for (arguments, word) in [
        (["--pipeline", "0"].as_slice(), "1..=1000000"),
        (&["--domains", "stack"], "--pipeline"),
        (&["--pipeline", "10", "--domains", "chess"], "aggregation"),
    ] {
        let refused = bem(
            folder.path(),
            &[&["serve", "--listen", "127.0.0.1:0", "--state", "served"], arguments].concat(),
        );
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert!(text(&refused).contains(word), "{}", text(&refused));
    }
}
