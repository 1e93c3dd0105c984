//! What a service tells while it works: events, readiness, pages of lists, figures on its page. Clauses: VM-13, LOG-1.

use super::*;
use crate::core::{Message, QUEUE_MAX};
use std::time::Duration;
use tokio_stream::StreamExt as _;

/// Makes a world of two bits and two actions.
async fn make(bench: &Bench, headers: &[(HeaderName, &str)], name: &str) {
    let world = serde_json::json!({ "name": name, "obs_bits": 2, "actions": 2, "reward_range": [0, 1000] });
    let (status, answer) = bench.ask(&Method::POST, "/v1/worlds", headers, &world.to_string()).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
}

fn token() -> String {
    format!("Bearer {ADMIN}")
}

/// A pair in which the action that the first bit names earns.
async fn pair(bench: &Bench, headers: &[(HeaderName, &str)], world: &str, number: u64) {
    let obs = if number.is_multiple_of(2) { "00" } else { "11" };
    let body = format!(r#"{{"obs":"{obs}"}}"#);
    let (status, answer) =
        bench.ask(&Method::POST, &format!("/v1/worlds/{world}/decide"), headers, &body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let reward = if answer["action"] == number % 2 { 1_000 } else { 0 };
    let body = serde_json::json!({ "decision": answer["decision"], "reward": reward }).to_string();
    let (status, answer) =
        bench.ask(&Method::POST, &format!("/v1/worlds/{world}/reward"), headers, &body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}

#[test]
fn whoever_listens_is_told_of_every_decision_and_step() {
    let (bench, token) = (Bench::new(1_000_000), token());
    run_async(async {
        let headers = [HOST, JSON, (header::AUTHORIZATION, token.as_str())];
        make(&bench, &headers, "ads").await;
        let request = Request::builder().uri("/v1/events");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        let response = bench.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let mut frames = response.into_body().into_data_stream();
        pair(&bench, &headers, "ads", 0).await;
        pair(&bench, &headers, "ads", 1).await;
        let mut seen = String::new();
        while seen.matches(r#""event":"decision""#).count() < 2 || !seen.contains(r#""event":"step""#) {
            let frame = tokio::time::timeout(Duration::from_secs(60), frames.next()).await;
            seen.push_str(&String::from_utf8_lossy(&frame.expect("an event comes").unwrap().unwrap()));
        }
        assert!(seen.contains(r#""world":"ads""#), "{seen}");
    });
}

#[test]
fn a_full_queue_is_told_to_come_back_and_readiness_says_so() {
    let (bench, token) = (Bench::new(1_000_000), token());
    run_async(async {
        let headers = [HOST, JSON, (header::AUTHORIZATION, token.as_str())];
        assert_eq!(bench.ask(&Method::GET, "/readyz", &[HOST], "").await.0, StatusCode::OK);
        // The deciding thread is kept busy until the queue is full.
        let (release, held) = std::sync::mpsc::channel::<()>();
        let hold = move |_: &bem_runtime::service::Service| {
            let _ = held.recv();
        };
        bench.handle.send(Message::Look(Box::new(hold))).unwrap();
        let nothing = || Message::Look(Box::new(|_: &bem_runtime::service::Service| {}));
        // It may take some of them before it is kept busy.
        let taken = (0..8 * QUEUE_MAX).take_while(|_| bench.handle.send(nothing()).is_ok()).count();
        assert!((QUEUE_MAX - 1..8 * QUEUE_MAX).contains(&taken), "{taken}");
        assert_eq!(bench.ask(&Method::GET, "/readyz", &[HOST], "").await.0, StatusCode::SERVICE_UNAVAILABLE);
        let request = Request::builder().uri("/v1/worlds");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        let response = bench.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        drop(release);
        while bench.ask(&Method::GET, "/readyz", &[HOST], "").await.0 != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(bench.ask(&Method::GET, "/v1/worlds", &headers, "").await.0, StatusCode::OK);
    });
}

#[test]
fn patches_and_history_are_paged_and_the_page_has_figures_with_intervals() {
    let (bench, token) = (Bench::new(1_000_000), token());
    run_async(async {
        let headers = [HOST, JSON, (header::AUTHORIZATION, token.as_str())];
        // What is learned in a round is decided with one step; two worlds have rounds of their own.
        make(&bench, &headers, "ads").await;
        make(&bench, &headers, "offers").await;
        let list = async |path: &str| -> serde_json::Value {
            let (status, body) = bench.ask(&Method::GET, path, &headers, "").await;
            assert_eq!(status, StatusCode::OK, "{path}: {body}");
            serde_json::from_str(&body).unwrap()
        };
        let mut number = 0;
        // Several patches may be decided with one step, and stay on one page.
        let steps = |list: &serde_json::Value| -> std::collections::BTreeSet<u64> {
            list["patches"].as_array().unwrap().iter().filter_map(|line| line["step"].as_u64()).collect()
        };
        while steps(&list("/v1/patches").await).len() < 2 {
            assert!(number < 20_000, "nothing is learned");
            for _ in 0..100 {
                pair(&bench, &headers, "ads", number).await;
                pair(&bench, &headers, "offers", number).await;
                number += 1;
            }
        }
        for (path, key) in [("/v1/patches", "patches"), ("/v1/history", "happened")] {
            let first = list(&format!("{path}?limit=1")).await;
            let step = first[key][0]["step"].as_u64().unwrap();
            assert_eq!(first["after"].as_u64(), Some(step));
            assert!(first[key].as_array().unwrap().iter().all(|one| one["step"] == step), "{first}");
            let next = list(&format!("{path}?limit=1&after={step}")).await;
            assert!(next[key][0]["step"].as_u64().unwrap() < step, "{next}");
            let (status, body) = bench.ask(&Method::GET, &format!("{path}?after=x"), &headers, "").await;
            assert!(status == StatusCode::BAD_REQUEST && body.contains("after"), "{status} {body}");
        }
        let (_, page) = bench.ask(&Method::GET, "/", &headers, "").await;
        for words in ["online return", "random", "best fixed", " ± ", "a second", "the latest first", "<td>"]
        {
            assert!(page.contains(words), "{words} is missing: {page}");
        }
        let (_, metrics) = bench.ask(&Method::GET, "/metrics", &headers, "").await;
        assert!(metrics.contains("bem_decisions") && metrics.trim_end().ends_with("# EOF"), "{metrics}");
    });
}

/// A world as a version with another grid opened it: numbers in so many levels, the rest as it is read today.
fn opened_with(body: &str, levels: usize) -> bem_runtime::input::WorldSpec {
    let mut spec = api::read_world(body.as_bytes()).unwrap_or_else(|_| panic!("a world"));
    let today = bem_data::Declared::from_json(&spec.note, spec.shape.actions).unwrap();
    let features = today.encoder.columns().iter().map(|column| column.feature.clone()).collect::<Vec<_>>();
    let list = today.forbid().collect::<Vec<_>>().join(",");
    let rules = bem_data::Rule::list("forbid", &format!("[{list}]"), &features, spec.shape.actions).unwrap();
    let code = bem_data::NumberCode::Binary;
    let encoder = bem_data::Encoder::for_world(features, code, levels, &rules).unwrap();
    let older = bem_data::Declared::new(encoder, Vec::new(), rules, spec.shape.actions).unwrap();
    spec.shape.observation_bits = older.encoder.bits() as u16;
    spec.shape.fields = older.encoder.fields();
    (spec.note, spec.forbidden) = (older.to_json(), older.forbidden);
    spec
}

#[test]
fn the_same_world_is_there_already_however_the_version_that_opened_it_cut_its_numbers() {
    let (bench, token) = (Bench::new(1_000_000), token());
    run_async(async {
        let headers = [HOST, JSON, (header::AUTHORIZATION, token.as_str())];
        let body = r#"{"name":"house","features":[{"name":"temp","kind":"number","min":-40,"max":60},{"name":"door","kind":"bit"}],
            "actions":3,"reward_range":[-100,100],"forbid":[{"if":{"temp":">= 28.25"},"action":2}]}"#;
        let older = opened_with(body, 16);
        assert_ne!(older, api::read_world(body.as_bytes()).unwrap_or_else(|_| panic!("a world")));
        let opened = bench.handle.ask(|reply| Message::Create(Box::new(older), reply)).await;
        assert!(opened.is_ok_and(|is_new| is_new.is_ok_and(|is_new| is_new)));
        let (status, answer) = bench.ask(&Method::POST, "/v1/worlds", &headers, body).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        // What differs by more than the grid is another world still.
        for (said, other) in
            [("28.25", "28.5"), ("\"max\":60", "\"max\":70"), ("door", "gate"), ("100]", "101]")]
        {
            let changed = body.replace(said, other);
            let (status, answer) = bench.ask(&Method::POST, "/v1/worlds", &headers, &changed).await;
            assert_eq!(status, StatusCode::CONFLICT, "{other}: {answer}");
        }
    });
}
