//! Someone who is given nothing but the accessibility tree of the queue's page answers ten questions of all five kinds rightly:
//! labels, units, deadlines and consequences are on the page. The tree is Chromium's own; the keys that are pressed are those that
//! stand in it. Clause: HUM-12.

mod browser;
mod server;

use browser::{Browser, driver, http};
use serde_json::{Value, json};
use server::Server;
use std::collections::BTreeMap;
use std::process::Command;

/// What a screen reader is told of one thing on the page.
#[derive(Debug)]
struct Node {
    role: String,
    name: String,
    keys: String,
}

/// The accessibility tree, in the order in which it is read.
fn tree(browser: &Browser<'_>) -> Vec<Node> {
    let found = browser.command("Accessibility.getFullAXTree", &json!({}));
    let nodes: Vec<Value> = found["nodes"].as_array().expect("nodes").clone();
    let by_id: BTreeMap<String, &Value> =
        nodes.iter().filter_map(|node| Some((node["nodeId"].as_str()?.to_string(), node))).collect();
    let mut list = Vec::new();
    let mut waiting: Vec<&Value> = nodes.first().into_iter().collect();
    while let Some(node) = waiting.pop() {
        if node["ignored"] != json!(true) {
            let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_string();
            let properties = node["properties"].as_array().into_iter().flatten();
            let keys = properties.into_iter().find(|one| one["name"] == json!("keyshortcuts"));
            list.push(Node {
                role: text(&node["role"]),
                name: text(&node["name"]),
                keys: keys.map(|one| text(&one["value"])).unwrap_or_default(),
            });
        }
        let children = node["childIds"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let children: Vec<&Value> = children.filter_map(|id| by_id.get(id).copied()).collect();
        waiting.extend(children.into_iter().rev());
    }
    list
}

/// A question as it is heard: its title, everything that is said, and the answers with their keys.
struct Heard {
    title: String,
    said: String,
    answers: Vec<(String, String)>,
}

/// Listens to the page; `not` is what was heard before.
fn listen(browser: &Browser<'_>, not: &str) -> Heard {
    browser.question(not);
    let nodes = tree(browser);
    let title = nodes.iter().rfind(|node| node.role == "heading" && node.name.ends_with('?'));
    let title = title.map(|node| node.name.clone()).expect("a heading asks");
    let texts = nodes.iter().filter(|node| node.role == "StaticText").map(|node| node.name.as_str());
    let said = texts.collect::<Vec<_>>().join(" ");
    // The buttons of the answers say what they change, or what they are about.
    let is_answer = |node: &&Node| node.role == "button" && !node.keys.is_empty();
    let tools = ["Skip", "Give back", "Take my last answer back", "Keys"];
    let is_tool = |node: &Node| tools.iter().any(|tool| node.name.ends_with(tool));
    let answers = nodes.iter().filter(is_answer).filter(|node| !is_tool(node));
    Heard { title, said, answers: answers.map(|node| (node.name.clone(), node.keys.clone())).collect() }
}

impl Heard {
    /// What must be in every question: its number, priority and deadline, and of every answer what it changes.
    fn check(&self, units: &[&str], consequences: &[&str]) {
        for words in ["Question", "priority"] {
            assert!(self.said.contains(words), "{words} is not heard: {}", self.said);
        }
        let has_deadline = ["no deadline", "more inputs"].iter().any(|words| self.said.contains(words));
        assert!(has_deadline, "no deadline is heard: {}", self.said);
        for unit in units {
            assert!(self.said.contains(unit), "{unit} is not heard: {}", self.said);
        }
        assert!(2 <= self.answers.len(), "{:?}", self.answers);
        for (name, _) in &self.answers {
            let tells = consequences.iter().any(|words| name.contains(words));
            assert!(tells, "what {name:?} changes is not heard");
        }
    }

    /// The key of the answer with these words.
    fn key(&self, words: &str) -> String {
        let found = self.answers.iter().find(|(name, _)| name.contains(words));
        let (_, key) = found.unwrap_or_else(|| panic!("no answer says {words:?}: {:?}", self.answers));
        if key == "Enter" { "\u{e007}".to_string() } else { key.clone() }
    }
}

/// The number behind a word in what is said.
fn number_after(said: &str, word: &str) -> i64 {
    let rest =
        &said[said.find(word).unwrap_or_else(|| panic!("{word:?} is not heard: {said}")) + word.len()..];
    let digits: String =
        rest.trim_start().chars().take_while(|one| one.is_ascii_digit() || *one == '-').collect();
    digits.parse().unwrap_or_else(|_| panic!("no number behind {word:?}: {said}"))
}

/// Answers the question that is heard as somebody would who knows the rule of the worlds: in `desk` the best action is the number
/// in the first two bits, an episode is good if it earned more than half, `walk` is wanted first. What was answered, in words.
fn answer(browser: &Browser<'_>, heard: &Heard) -> &'static str {
    let changes = ["Changes", "Nothing changes", "Not possible now"];
    if heard.title.starts_with("Was action") {
        heard.check(&["milli-units", "times tried", "mean loss (0 is best)"], &changes);
        let best = number_after(&heard.said, "bit 0") + 2 * number_after(&heard.said, "bit 1");
        let taken = number_after(&heard.title, "Was action");
        let words = match best == taken {
            true => format!("Action {best} was right"),
            false => format!("Action {best} would have been best"),
        };
        browser.press(&heard.key(&words));
        return "step";
    }
    if heard.title.starts_with("How good") {
        heard.check(&["milli-units", "the mean"], &changes);
        let words = if 1_500 < number_after(&heard.said, "steps earned") { "Very good" } else { "Very bad" };
        browser.press(&heard.key(words));
        return "episode";
    }
    if heard.title.starts_with("What should be learned first") {
        heard.check(&["% of the range", "decisions", "bits seen"], &["is wanted"]);
        let mut order: Vec<&(String, String)> = heard.answers.iter().collect();
        order.sort_by_key(|(name, _)| !name.contains("walk"));
        order.iter().for_each(|(_, key)| browser.press(key));
        return "ranking";
    }
    if heard.title.starts_with("Should the limits change") {
        heard.check(&["for every 10,000 steps", "decisions"], &changes);
        browser.press(&heard.key("Let the machine ask by itself"));
        return "configuration";
    }
    assert!(heard.title.contains("May this change of the policy of desk"), "{}", heard.title);
    heard.check(&["of the range", "proofs that the checker accepted"], &["Changes", "stays"]);
    browser.press(&heard.key("Approve: it takes effect"));
    "patch"
}

#[test]
fn ten_questions_are_answered_rightly_from_the_accessibility_tree_alone() {
    let Some(driver) = driver() else {
        println!("left out: chromium and chromedriver are not there (Debian: chromium, chromium-driver)");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "served", &[]);
    let admin = server.token.clone();
    let ask = |method: &str, path: &str, body: Value| {
        let (status, answer) = http(&server.address, method, path, &admin, Some(&body));
        assert!(status < 300, "{path} {body}: {answer}");
        answer
    };
    ask(
        "POST",
        "/v1/worlds",
        json!({ "name": "desk", "obs_bits": 3, "actions": 4, "reward_range": [0, 1000] }),
    );
    let walk =
        json!({ "name": "walk", "obs_bits": 2, "actions": 2, "reward_range": [0, 1000], "horizon": 3 });
    ask("POST", "/v1/worlds", walk);
    ask("PUT", "/v1/people/control", json!({ "safety_override_mode": "whitelist" }));
    let step = |place: u64| {
        let seen: String = (0..3).map(|bit| if ((place * 5) >> bit) & 1 == 1 { '1' } else { '0' }).collect();
        let decided = ask("POST", "/v1/worlds/desk/decide", json!({ "obs": seen }));
        let reward = if decided["action"] == json!((place * 5) & 3) { 1_000 } else { 0 };
        ask("POST", "/v1/worlds/desk/reward", json!({ "decision": decided["decision"], "reward": reward }));
        (decided["decision"].clone(), decided["action"].clone(), (place * 5) & 3)
    };
    // What is right, by question.
    let mut right: BTreeMap<String, Value> = BTreeMap::new();
    // Five steps, two episodes, a ranking and the configuration; then a change that waits.
    for place in 0..5 {
        let (decision, taken, best) = step(place);
        let question =
            json!({ "kind": "label_step", "world": "desk", "decision": decision, "deadline": 50_000 });
        let asked = ask("POST", "/v1/questions", question);
        let is_taken = taken == json!(best);
        let said = json!([is_taken, if is_taken { Value::Null } else { json!(best) }]);
        right.insert(asked["question"].as_str().expect("a number").to_string(), said);
    }
    for (episode, rewards, score) in [("good", [900, 500, 1_000], 1.0), ("bad", [0, 100, 0], 0.0)] {
        let mut first = Value::Null;
        for reward in rewards {
            let decided = ask("POST", "/v1/worlds/walk/decide", json!({ "obs": "01", "episode": episode }));
            ask(
                "POST",
                "/v1/worlds/walk/reward",
                json!({ "decision": decided["decision"], "reward": reward }),
            );
            first = if first.is_null() { decided["decision"].clone() } else { first };
        }
        let question = json!({ "kind": "score_episode", "world": "walk", "decision": first });
        let asked = ask("POST", "/v1/questions", question);
        right.insert(asked["question"].as_str().expect("a number").to_string(), json!(score));
    }
    ask("POST", "/v1/questions", json!({ "kind": "rank_templates" }));
    ask("POST", "/v1/questions", json!({ "kind": "adjust_config", "reason": "a test", "priority": "low" }));
    let made = Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(["token", "add", "grace", "--role", "approver", "--state", "served"])
        .current_dir(folder.path())
        .output()
        .expect("bem");
    let grace = String::from_utf8_lossy(&made.stdout).trim().to_string();
    let profile = tempfile::tempdir().expect("a folder");
    let browser = Browser::open(&driver, profile.path(), &["--window-size=1100,1400"]);
    browser.log_in(&server, &grace);
    let (mut kinds, mut before): (BTreeMap<&str, u32>, String) = (BTreeMap::new(), String::new());
    for _ in 0..9 {
        before = {
            let heard = listen(&browser, &before);
            let asked = browser.question(&before);
            *kinds.entry(answer(&browser, &heard)).or_default() += 1;
            asked
        };
    }
    browser.wait("return document.body.innerText.includes('No question is open for you')");
    for place in 5..6_000 {
        step(place);
        let (_, open) = http(&server.address, "GET", "/v1/questions", &admin, None);
        let list = open["questions"].as_array().expect("a list");
        if list.iter().any(|one| one["kind"] == json!("approve_patch")) {
            break;
        }
    }
    let heard = listen(&browser, &before);
    *kinds.entry(answer(&browser, &heard)).or_default() += 1;
    browser.wait("return document.getElementById('status').textContent.includes('policy of desk')");
    let all = [("configuration", 1), ("episode", 2), ("patch", 1), ("ranking", 1), ("step", 5)];
    assert_eq!(kinds, BTreeMap::from(all));
    // What the server took for the answers is what is right.
    let (_, given) = http(&server.address, "GET", "/v1/answers?limit=100", &admin, None);
    let given = given["answers"].as_array().expect("a list");
    assert_eq!(given.len(), 10);
    for one in given {
        let (said, number) = (&one["said"], one["question"].as_str().expect("a number"));
        match one["kind"].as_str() {
            Some("label_step") => assert_eq!(json!([said["accept"], said["best"]]), right[number], "{one}"),
            Some("score_episode") => assert_eq!(said["score"], right[number], "{one}"),
            Some("rank_templates") => assert_eq!(said["order"], json!([1, 0]), "walk comes first: {one}"),
            Some("adjust_config") => assert_eq!(said["enable_online"], json!(true)),
            _ => assert_eq!(said["decision"], json!("approve")),
        }
    }
}
