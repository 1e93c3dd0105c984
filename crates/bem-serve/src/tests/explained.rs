//! Why the policy in force acts as it does: the route for programs, and the part of a world's page. Clause: GLE-9.

use super::*;
use serde_json::{Value, json};

const HOUSE: &str = r#"{"name":"house","features":[{"name":"temp","kind":"number","min":-40,"max":60},
    {"name":"mode","kind":"choice","of":["off","o'n"]},{"name":"door","kind":"bit"}],"actions":3,"reward_range":[-100,100]}"#;

/// Status and text of a look as the admin.
async fn look(bench: &Bench, path: &str) -> (StatusCode, String) {
    let token = format!("Bearer {ADMIN}");
    bench.ask(&Method::GET, path, &[HOST, (header::AUTHORIZATION, token.as_str())], "").await
}

async fn look_json(bench: &Bench, path: &str) -> (StatusCode, Value) {
    let (status, body) = look(bench, path).await;
    (status, serde_json::from_str(&body).unwrap_or_else(|_| panic!("{path}: {body}")))
}

async fn create(bench: &Bench, world: &str) {
    let token = format!("Bearer {ADMIN}");
    let headers = [HOST, JSON, (header::AUTHORIZATION, token.as_str())];
    let (status, body) = bench.ask(&Method::POST, "/v1/worlds", &headers, world).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
}

#[test]
fn a_program_asks_why_and_a_wrong_question_is_told_what_is_allowed() {
    let bench = Bench::new(1_000_000);
    run_async(async {
        create(&bench, HOUSE).await;
        create(
            &bench,
            r#"{"name":"plain","obs_bits":4,"actions":2,"reward_range":[0,1],"fields":[[0,3],[3,1]]}"#,
        )
        .await;
        let inputs = bench.handle.gauges.inputs.load(Ordering::Relaxed);
        let (status, whole) = look_json(&bench, "/v1/worlds/plain/explain").await;
        assert_eq!(
            (status, &whole["exact"], &whole["action"]["otherwise"]),
            (StatusCode::OK, &json!(true), &json!(0))
        );
        assert_eq!(whole["states"], Value::Null, "{whole}");
        for path in [
            "/v1/worlds/house/explain?obs=temp%3D21.5,mode%3Do'n,door%3D1",
            "/v1/worlds/plain/explain?obs=0101",
            "/v1/worlds/plain/explain?obs=field0%3D5,bit3%3D1&memory=",
        ] {
            let (status, why) = look_json(&bench, path).await;
            assert_eq!(
                (status, &why["action"], &why["remembered"]),
                (StatusCode::OK, &json!(0), &json!("")),
                "{why}"
            );
            assert_eq!(why["why"]["nearest"], json!({ "never": true }), "{why}");
            assert_eq!(why["rules"], json!([{ "rule": 1, "conditions": [], "applies": true }]), "{why}");
        }
        for (path, field, wanted) in [
            ("plain/explain?obs=01", "obs", "must be 4 zeros and ones, or fieldN=VALUE"),
            ("plain/explain?obs=bit9%3D1", "obs", "there are field0 to field1 and bit0 to bit3"),
            ("plain/explain?obs=field0%3D9", "obs", "the value must be at most 7"),
            ("plain/explain?obs=0101&memory=1", "memory", "must be 0 zeros and ones"),
            ("plain/explain?memory=1", "obs", "obs is missing"),
            ("plain/explain?observation=0101", "observation", "is no field: obs and memory are"),
            ("house/explain?obs=temp%3D99,mode%3Doff,door%3D1", "obs", "it must be a number from -40 to 60"),
            ("house/explain?obs=temp%3D9,mode%3Dup,door%3D1", "obs", "it must be one of off, o'n"),
            (
                "house/explain?obs=temp%3D9,mode%3Doff",
                "obs",
                "\"door\" is missing; it must be 0, 1, true or false",
            ),
            ("house/explain?obs=heat%3D9", "obs", "there are temp, mode, door"),
            ("house/explain?obs=1", "obs", "door (0, 1, true or false)"),
        ] {
            let (status, answer) = look_json(&bench, &format!("/v1/worlds/{path}")).await;
            assert_eq!(
                (status, &answer["error"]["field"]),
                (StatusCode::BAD_REQUEST, &json!(field)),
                "{path}: {answer}"
            );
            assert!(answer["error"]["message"].as_str().unwrap().contains(wanted), "{path}: {answer}");
        }
        assert_eq!(look(&bench, "/v1/worlds/none/explain").await.0, StatusCode::NOT_FOUND);
        assert_eq!(
            bench.handle.gauges.inputs.load(Ordering::Relaxed),
            inputs,
            "nothing of it is in the history"
        );
    });
}

#[test]
fn the_page_of_a_world_has_a_form_that_asks_why() {
    let bench = Bench::new(1_000_000);
    run_async(async {
        create(&bench, HOUSE).await;
        let (status, page) = look(&bench, "/worlds/house").await;
        assert_eq!(status, StatusCode::OK, "{page}");
        for words in [
            "<input name=\"obs.temp\" inputmode=decimal required title=\"a number from -40 to 60\"",
            "<option value=\"o&#39;n\">o&#39;n",
            "<select name=\"obs.door\">",
            "<h3 id=reasons>Why this action</h3>",
            "action=\"/worlds/house#why\"",
        ] {
            assert!(page.contains(words), "{words} is missing: {page}");
        }
        assert!(!page.contains("id=why>"), "nobody has asked: {page}");
        let asked = "/worlds/house?obs.temp=21.5&obs.mode=o'n&obs.door=1";
        let (_, page) = look(&bench, asked).await;
        assert!(page.contains("id=why>") && page.contains("Action 0, whatever is seen"), "{page}");
        assert!(
            page.contains("value=\"21.5\"") && page.contains("<option value=\"o&#39;n\" selected>"),
            "{page}"
        );
        let (status, page) = look(&bench, "/worlds/house?obs.temp=%3Cb%3E&obs.mode=off&obs.door=1").await;
        let wanted = "role=alert>obs &quot;temp&quot; is &quot;&lt;b&gt;&quot;; it must be a number from -40 to 60</p>";
        assert!(status == StatusCode::OK && page.contains(wanted), "{page}");
    });
}

#[test]
fn a_policy_that_remembers_is_drawn_and_asked_by_its_states() {
    use bem_circuit::netlist::Builder;
    use bem_synth::policy::Policy;
    // It does what bit 0 was in the step before.
    let builder = Builder::new(2);
    let (action, next) = ([builder.input(1)], [builder.input(0)]);
    let policy = Policy::close(builder, 1, 2, &action, &next).unwrap();
    let world = br#"{"name":"echo","obs_bits":1,"actions":2,"reward_range":[0,1],"horizon":4}"#;
    let explained = explain::Explained::new(policy, api::read_world(world).unwrap(), &[]);
    let page = explained.with_form(&BTreeMap::from([("memory".to_string(), "1".to_string())]));
    for words in [
        "<svg class=states",
        "<title>S0 to S1\n",
        "Action 1 because bit 0 (1 step ago) = 1",
        "No observation would change it, with what is remembered now",
        "<option value=0>S0<option value=1 selected>S1",
    ] {
        assert!(page.contains(words), "{words} is missing: {page}");
    }
}
