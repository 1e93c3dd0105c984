//! What people are shown: a question about a change that is in force, and the pages of the history. Clauses: HUM-8, HUM-12.

use super::*;
use serde_json::{Value, json};
use std::time::Duration;

fn token() -> String {
    format!("Bearer {ADMIN}")
}

/// A request that must be taken; its answer.
async fn send(bench: &Bench, method: &Method, path: &str, body: &Value) -> Value {
    let token = token();
    let headers = [HOST, JSON, (header::AUTHORIZATION, token.as_str())];
    let (status, answer) = bench.ask(method, path, &headers, &body.to_string()).await;
    assert!(status.is_success(), "{method} {path} {body}: {status} {answer}");
    serde_json::from_str(&answer).unwrap()
}

/// A decision and its reward: the action that both bits name earns.
async fn pair(bench: &Bench, number: u64) -> String {
    let obs = if number.is_multiple_of(2) { "00" } else { "11" };
    let decided = send(bench, &Method::POST, "/v1/worlds/ads/decide", &json!({ "obs": obs })).await;
    let reward = if decided["action"] == number % 2 { 1_000 } else { 0 };
    let body = json!({ "decision": decided["decision"], "reward": reward });
    send(bench, &Method::POST, "/v1/worlds/ads/reward", &body).await;
    decided["decision"].as_str().unwrap().to_string()
}

/// Waits until no round of learning is under way.
async fn settle(bench: &Bench) {
    while bench.handle.look(|service| service.is_searching()).await.unwrap() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The rules that a question shows, policy by policy.
fn rules_in(html: &str) -> Vec<String> {
    let policies = html.split("<pre class=rules tabindex=0>What it does (").skip(1);
    policies.map(|rules| rules.split("</pre>").next().unwrap().to_string()).collect()
}

#[test]
fn a_change_in_force_is_shown_with_its_rules_and_called_proven_only_where_it_is() {
    let bench = Bench::new(1_000_000);
    run_async(async {
        // Something is forbidden, so that every change is critical; in this mode it takes effect, and people are asked afterwards.
        let world = json!({ "name": "ads", "obs_bits": 2, "actions": 2, "reward_range": [0, 1000],
            "forbidden": [{ "obs": "01", "action": 1 }] });
        send(&bench, &Method::POST, "/v1/worlds", &world).await;
        let control = json!({ "safety_override_mode": "warn" });
        send(&bench, &Method::PUT, "/v1/people/control", &control).await;
        let mut number = 0;
        let leased = loop {
            assert!(number < 20_000, "no change in force is shown with its rules");
            for _ in 0..100 {
                pair(&bench, number).await;
                number += 1;
            }
            settle(&bench).await;
            let open = send(&bench, &Method::GET, "/v1/questions", &Value::Null).await;
            let questions = open["questions"].as_array().unwrap().clone();
            let about = questions.into_iter().rfind(|one| one["context"]["in_force"] == json!(true));
            let Some(about) = about else { continue };
            let path = format!("/v1/questions/{}", about["question"].as_str().unwrap());
            let leased = send(&bench, &Method::POST, &format!("{path}/lease"), &json!({})).await;
            let rules = rules_in(leased["html"].as_str().unwrap());
            if rules.len() == 2 && rules[0] != rules[1] {
                break leased;
            }
            // The policy has changed once more since it was asked, or it does the same in another way.
            let body = json!({ "lease": leased["lease"] });
            send(&bench, &Method::POST, &format!("{path}/skip"), &body).await;
        };
        let html = leased["html"].as_str().unwrap();
        for words in ["<h3>Before</h3>", "<h3>In force now</h3>", "The circuit in force now", "Gate by gate"]
        {
            assert!(html.contains(words), "{words} is missing: {html}");
        }
        let proofs = leased["question"]["context"]["proofs"].as_u64().unwrap();
        let said = match proofs {
            0 => "No proof belongs to this change".to_string(),
            1 => "accepted one proof for this change".to_string(),
            count => format!("accepted {count} proofs for this change"),
        };
        assert!(html.contains(&said), "{said} is missing: {html}");
        let certificates = html.matches("accepted by the checker</li>").count() as u64;
        assert_eq!(certificates, proofs.min(16), "{html}");
    });
}

#[test]
fn the_history_has_pages_and_a_timeline_and_says_what_before_must_be() {
    let bench = Bench::new(1_000_000);
    run_async(async {
        let world = json!({ "name": "ads", "obs_bits": 2, "actions": 2, "reward_range": [0, 1000] });
        send(&bench, &Method::POST, "/v1/worlds", &world).await;
        let mut answers = Vec::new();
        for number in 0..51 {
            let decision = pair(&bench, number).await;
            let body = json!({ "kind": "label_step", "world": "ads", "decision": decision });
            send(&bench, &Method::POST, "/v1/questions", &body).await;
            let leased =
                send(&bench, &Method::POST, "/v1/questions/next", &json!({})).await["leased"].clone();
            let path = format!("/v1/questions/{}/answer", leased["question"]["question"].as_str().unwrap());
            let body = json!({ "lease": leased["lease"], "answer": { "accept": true } });
            let given = send(&bench, &Method::POST, &path, &body).await;
            answers.push(given["answer"].as_str().unwrap().parse::<u64>().unwrap());
        }
        let last = *answers.last().unwrap();
        send(&bench, &Method::POST, &format!("/v1/answers/{last}/undo"), &json!({})).await;
        let token = token();
        let headers = [HOST, JSON, (header::AUTHORIZATION, token.as_str())];
        let page = async |path: &str| bench.ask(&Method::GET, path, &headers, "").await;
        let (status, first) = page("/history").await;
        assert_eq!(status, StatusCode::OK, "{first}");
        let is_listed =
            |page: &str, number: u64| page.contains(&format!("<p><b>Input {number}</b>, question"));
        let shown = |page: &str| answers.iter().filter(|number| is_listed(page, **number)).count();
        assert!(shown(&first) == 50 && !is_listed(&first, answers[0]), "{first}");
        assert!(
            first.contains(&format!("/history?before={}#answers\">Earlier answers", answers[1])),
            "{first}"
        );
        assert!(!first.contains("Latest answers"), "{first}");
        for words in [
            format!("answer with input {last} taken back"),
            format!("<b>Input {last}</b>, answer label_step to question"),
            "Earlier events".to_string(),
        ] {
            assert!(first.contains(&words), "{words} is missing: {first}");
        }
        let (_, second) = page(&format!("/history?before={}", answers[1])).await;
        assert!(shown(&second) == 1 && is_listed(&second, answers[0]), "{second}");
        assert!(second.contains("Latest answers") && !second.contains("Earlier answers"), "{second}");
        assert!(!second.contains(&format!("answer with input {last} taken back")), "{second}");
        for wrong in ["x", "-1", "+1", "01", "", "18446744073709551616"] {
            let (status, body) = page(&format!("/history?before={wrong}")).await;
            let refused: Value = serde_json::from_str(&body).unwrap_or_default();
            assert_eq!(
                (status, &refused["error"]["field"]),
                (StatusCode::BAD_REQUEST, &json!("before")),
                "{body}"
            );
        }
    });
}

#[test]
fn answers_of_a_group_are_hidden_from_the_others_until_all_have_answered() {
    let bench = Bench::new(1_000_000);
    let tokens: Vec<String> = [Role::Annotator, Role::Approver]
        .iter()
        .map(|role| {
            let own = bench.tokens.iter().find(|(of, _)| of == role).unwrap();
            format!("Bearer {}", own.1)
        })
        .collect();
    run_async(async {
        let world = json!({ "name": "ads", "obs_bits": 2, "actions": 2, "reward_range": [0, 1000] });
        send(&bench, &Method::POST, "/v1/worlds", &world).await;
        let decision = pair(&bench, 0).await;
        let asked = json!({ "kind": "label_step", "world": "ads", "decision": decision, "quorum": 2 });
        send(&bench, &Method::POST, "/v1/questions", &asked).await;
        let open = send(&bench, &Method::GET, "/v1/questions", &Value::Null).await;
        let open: Vec<&str> = open["questions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["question"].as_str().unwrap())
            .collect();
        assert_eq!(open.len(), 2);
        let ask = async |person: usize, method: &Method, path: &str, body: &Value| {
            let headers = [HOST, JSON, (header::AUTHORIZATION, tokens[person].as_str())];
            let (status, answer) = bench.ask(method, path, &headers, &body.to_string()).await;
            assert!(status.is_success(), "{method} {path} {body}: {status} {answer}");
            answer
        };
        // What each of the two is told about the first answer, by the interface and by the page.
        let told = async |person: usize| {
            let answers = ask(person, &Method::GET, "/v1/answers", &Value::Null).await;
            let answers: Value = serde_json::from_str(&answers).unwrap();
            let page = ask(person, &Method::GET, "/history", &Value::Null).await;
            let is_hidden = page.contains("hidden until everybody who is asked has answered");
            (answers["answers"].as_array().unwrap().last().unwrap()["said"].clone(), is_hidden)
        };
        for (person, serial) in open.into_iter().enumerate() {
            let path = format!("/v1/questions/{serial}");
            let leased = ask(person, &Method::POST, &format!("{path}/lease"), &json!({})).await;
            let leased: Value = serde_json::from_str(&leased).unwrap();
            let said = json!({ "lease": leased["lease"], "answer": { "accept": true } });
            ask(person, &Method::POST, &format!("{path}/answer"), &said).await;
            let (own, others) = (told(0).await, told(1).await);
            assert_eq!(own.0["accept"], json!(true), "who answered sees it");
            assert_eq!(others.0 == Value::Null, person == 0, "the other one sees it when both have answered");
            assert_eq!((own.1, others.1), (false, person == 0));
        }
    });
}
