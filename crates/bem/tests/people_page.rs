//! People's pages in a real browser: log in, answer all five kinds by keyboard, skip, take back, approve a patch and see it applied, an
//! annotator who is refused an approver's question, an approval of what nobody has proven, a lease that runs out, two people at
//! once, keys of one's own, earlier pages of the history, dark and narrow; axe-core looks at every page. Chromium is driven over WebDriver; where it is not there, the test says
//! so. Clause: HUM-12.

mod browser;
mod server;

use browser::{Browser, driver, http, http_text};
use serde_json::{Value, json};
use server::Server;
use std::path::Path;
use std::process::Command;

/// Keeps a picture, and holds the page against the rules of axe-core.
fn look(browser: &Browser<'_>, name: &str) {
    browser.screenshot(name);
    browser.audit(name);
}

fn token(folder: &Path, name: &str, role: &str) -> String {
    let made = Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(["token", "add", name, "--role", role, "--state", "served"])
        .current_dir(folder)
        .output()
        .expect("bem");
    String::from_utf8_lossy(&made.stdout).trim().to_string()
}

/// Decisions and their rewards: the best action is the number in the first two bits.
fn play(server: &Server, admin: &str, world: &str, steps: u32) -> Vec<String> {
    let mut decisions = Vec::new();
    for step in 0..steps {
        let seen: String = (0..3).map(|bit| if (step * 7 / 3) >> bit & 1 == 1 { '1' } else { '0' }).collect();
        let (_, decided) = http(
            &server.address,
            "POST",
            &format!("/v1/worlds/{world}/decide"),
            admin,
            Some(&json!({ "obs": seen })),
        );
        let best = (step * 7 / 3) & 3;
        let reward = if decided["action"] == json!(best) { 1_000 } else { 0 };
        let body = json!({ "decision": decided["decision"], "reward": reward });
        http(&server.address, "POST", &format!("/v1/worlds/{world}/reward"), admin, Some(&body));
        decisions.push(decided["decision"].as_str().expect("a decision").to_string());
    }
    decisions
}

#[test]
fn people_work_through_the_queue_in_a_real_browser() {
    let Some(driver) = driver() else {
        println!("left out: chromium and chromedriver are not there (Debian: chromium, chromium-driver)");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "served", &[]);
    let admin =
        std::fs::read_to_string(folder.path().join("served/token")).expect("a token").trim().to_string();
    let (ada, grace) = (token(folder.path(), "ada", "annotator"), token(folder.path(), "grace", "approver"));
    let ask = |method: &str, path: &str, body: Value| {
        let (status, answer) = http(&server.address, method, path, &admin, Some(&body));
        assert!(status < 300, "{path} {body}: {answer}");
        answer
    };
    for world in ["desk", "lamp"] {
        ask(
            "POST",
            "/v1/worlds",
            json!({ "name": world, "obs_bits": 3, "actions": 4, "reward_range": [0, 1000] }),
        );
    }
    ask(
        "POST",
        "/v1/worlds",
        json!({ "name": "walk", "obs_bits": 2, "actions": 2, "reward_range": [0, 1000], "horizon": 3 }),
    );
    ask("PUT", "/v1/people/control", json!({ "safety_override_mode": "whitelist" }));
    let decisions = play(&server, &admin, "desk", 12);
    for decision in &decisions[..3] {
        ask("POST", "/v1/questions", json!({ "kind": "label_step", "world": "desk", "decision": decision }));
    }
    let mut first = String::new();
    for reward in [0, 500, 1_000] {
        let decided = ask("POST", "/v1/worlds/walk/decide", json!({ "obs": "01", "episode": "e" }));
        ask("POST", "/v1/worlds/walk/reward", json!({ "decision": decided["decision"], "reward": reward }));
        if first.is_empty() {
            first = decided["decision"].as_str().expect("a decision").to_string();
        }
    }
    ask("POST", "/v1/questions", json!({ "kind": "score_episode", "world": "walk", "decision": first }));
    ask("POST", "/v1/questions", json!({ "kind": "rank_templates" }));
    ask("POST", "/v1/questions", json!({ "kind": "adjust_config", "reason": "a test", "priority": "low" }));

    // An annotator answers by keyboard: three steps, an episode, a ranking; the rest is not for her.
    let profile = tempfile::tempdir().expect("a folder");
    let browser = Browser::open(&driver, profile.path(), &["--window-size=1100,1400"]);
    browser.go(&format!("http://{}/login", server.address));
    look(&browser, "login");
    browser.log_in(&server, &ada);
    let mut asked = browser.question("");
    look(&browser, "step");
    assert!(asked.contains("Was action"), "{asked}");
    browser.press("\u{e007}");
    let second = browser.question(&asked);
    browser.wait("return document.getElementById('status').textContent.includes('Answered question')");
    browser.press("u");
    browser.wait("return document.getElementById('status').textContent.includes('is taken back')");
    asked = second;
    browser.press("1");
    asked = browser.question(&asked);
    browser.press("s");
    browser.wait("return document.getElementById('status').textContent.includes('is skipped')");
    asked = browser.question(&asked);
    assert!(asked.contains("How good was this episode"), "{asked}");
    look(&browser, "episode");
    browser.press("4");
    asked = browser.question(&asked);
    assert!(asked.contains("What should be learned first"), "{asked}");
    look(&browser, "ranking");
    browser.press("3");
    browser.press("1");
    browser.press("2");
    browser.wait("return document.body.innerText.includes('No question is open for you')");
    browser.press("?");
    browser.wait("return document.getElementById('help').open");
    look(&browser, "help");
    let (_, people) = http(&server.address, "GET", "/v1/people", &admin, None);
    let used = |name: &str| people["statistics"][name].as_u64().expect("a count");
    assert_eq!(used("total_step_feedback_used"), 2);
    assert_eq!(used("total_answers_undone"), 1);
    assert_eq!(used("total_episode_feedback_used"), 1);
    assert_eq!(used("total_template_feedback_used"), 1);
    assert_eq!(used("total_tasks_skipped"), 1);
    browser.go(&format!("http://{}/history", server.address));
    browser.wait("return document.body.innerText.includes('taken back with input')");
    look(&browser, "history");

    // An approver answers the configuration, and a change that waits; narrow and dark.
    let profile = tempfile::tempdir().expect("a folder");
    let narrow = Browser::open(
        &driver,
        profile.path(),
        &["--window-size=420,900", "--force-dark-mode", "--blink-settings=preferredColorScheme=0"],
    );
    narrow.log_in(&server, &grace);
    asked = narrow.question("");
    assert!(asked.contains("Should the limits change"), "{asked}");
    look(&narrow, "config-dark-narrow");
    let wide = narrow.run("return document.documentElement.scrollWidth <= window.innerWidth");
    assert_eq!(wide, json!(true), "the page is wider than the window");
    narrow.press("e");
    narrow.wait("return document.body.innerText.includes('No question is open for you')");
    let mut waits = Value::Null;
    for _ in 0..60 {
        play(&server, &admin, "desk", 100);
        let (_, open) = http(&server.address, "GET", "/v1/questions", &admin, None);
        let all = open["questions"].as_array().expect("a list").clone();
        waits = all.into_iter().find(|one| one["kind"] == json!("approve_patch")).unwrap_or(Value::Null);
        if waits != Value::Null {
            break;
        }
    }
    let applied = |server: &Server| {
        let (_, world) = http(&server.address, "GET", "/v1/worlds/desk", &admin, None);
        world["patches_applied"].as_u64().expect("a count")
    };
    assert_ne!(waits, Value::Null, "nothing was learned in 6,000 steps");
    let before = applied(&server);
    asked = narrow.question("");
    assert!(asked.contains("May this change of the policy of desk take effect"), "{asked}");
    look(&narrow, "patch-dark-narrow");
    // An annotator may not approve it.
    let id = waits["question"].as_str().expect("a question");
    let (status, refused) = http(&server.address, "POST", &format!("/v1/questions/{id}/lease"), &ada, None);
    assert_eq!((status, refused["error"]["code"].clone()), (403, json!("needs_approver")));
    // What nobody has proven cannot be put up for approval, and an approval is no answer to another question.
    let put_up = narrow.run(
        "return fetch('/v1/questions', { method: 'POST', headers: { 'Content-Type': 'application/json', \
         'x-csrf-token': document.querySelector('meta[name=csrf]').content }, \
         body: JSON.stringify({ kind: 'approve_patch', world: 'lamp' }) }).then(async (answer) => \
         answer.status + ' ' + (await answer.json()).error.message)",
    );
    let refused = "400 a change that waits asks by itself: see the open questions";
    assert_eq!(put_up, json!(refused), "an unproven patch is refused");
    assert_eq!(before, applied(&server));
    narrow.press("a");
    narrow.wait("return document.getElementById('status').textContent.includes('policy of desk')");
    assert!(before < applied(&server), "an approved patch is in force");
    narrow.go(&format!("http://{}/patches", server.address));
    narrow.wait("return document.body.innerText.includes('split')");
    look(&narrow, "patches-dark-narrow");
    for (page, name) in [("", "worlds"), ("worlds/desk", "world"), ("history", "history"), ("tools", "tools")]
    {
        narrow.go(&format!("http://{}/{page}", server.address));
        look(&narrow, &format!("{name}-dark-narrow"));
        let wide = narrow.run("return document.documentElement.scrollWidth <= window.innerWidth");
        assert_eq!(wide, json!(true), "{name} is wider than the window");
    }
}

#[test]
fn the_history_is_verified_on_its_page_and_its_checkpoint_is_handed_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "served", &[]);
    let viewer = token(folder.path(), "eve", "viewer");
    let body = json!({ "name": "desk", "obs_bits": 3, "actions": 4, "reward_range": [0, 1000] });
    http(&server.address, "POST", "/v1/worlds", &server.token, Some(&body));
    play(&server, &server.token, "desk", 40);
    let verify = |body: Value| http(&server.address, "POST", "/v1/history/verify", &viewer, Some(&body));
    let kept = || http_text(&server.address, "/v1/history/checkpoint", &viewer);
    // A checkpoint is signed now and then: until it covers what was played.
    let mut checkpoint = kept();
    for _ in 0..300 {
        if checkpoint.lines().nth(1).and_then(|line| line.parse::<u64>().ok()).is_some_and(|size| 10 < size) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        checkpoint = kept();
    }
    let (status, report) = verify(json!({}));
    assert_eq!((status, &report["verdict"]), (200, &json!("unanchored")), "{report}");
    play(&server, &server.token, "desk", 40);
    let (status, report) = verify(json!({ "checkpoint": checkpoint }));
    assert_eq!((status, &report["verdict"]), (200, &json!("ok")), "{report}");
    assert!(0 < report["anchored_entries"].as_u64().expect("a count"));
    let (status, refused) = verify(json!({ "checkpoint": "nothing of the kind" }));
    assert_eq!((status, &refused["error"]["field"]), (400, &json!("checkpoint")), "{refused}");
    // A checkpoint of another history: this one does not go on from it.
    let other = tempfile::tempdir().expect("a folder");
    let elsewhere = Server::start(other.path(), "served", &[]);
    http(&elsewhere.address, "POST", "/v1/worlds", &elsewhere.token, Some(&body));
    play(&elsewhere, &elsewhere.token, "desk", 40);
    let mut foreign = http_text(&elsewhere.address, "/v1/history/checkpoint", &elsewhere.token);
    for _ in 0..300 {
        if foreign.lines().nth(1).and_then(|line| line.parse::<u64>().ok()).is_some_and(|size| 10 < size) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        foreign = http_text(&elsewhere.address, "/v1/history/checkpoint", &elsewhere.token);
    }
    let (_, report) = verify(json!({ "checkpoint": foreign }));
    assert_eq!(report["verdict"], json!("broken"), "{report}");
    let Some(driver) = driver() else { return };
    let profile = tempfile::tempdir().expect("a folder");
    let browser = Browser::open(&driver, profile.path(), &["--window-size=900,1200"]);
    browser.log_in(&server, &viewer);
    browser.go(&format!("http://{}/history", server.address));
    browser.wait("return !!document.querySelector('form[data-verify] button')");
    browser.run("document.querySelector('form[data-verify] button').click()");
    browser.wait("return document.getElementById('verdict').textContent.includes('entries fit together')");
    let link = browser.run("return document.querySelector('a[download]').getAttribute('href')");
    assert_eq!(link, json!("/v1/history/checkpoint"));
    look(&browser, "history-verified");
    browser.go(&format!("http://{}/", server.address));
    browser.wait("return document.body.innerText.includes('Time per activity')");
    look(&browser, "dashboard");
}

/// A server with four questions, and two people who may answer them.
struct Desk {
    server: Server,
    admin: String,
    tokens: [String; 2],
    _folder: tempfile::TempDir,
}

fn desk(words: &[&str]) -> Desk {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "served", words);
    let admin = server.token.clone();
    let tokens = ["ada", "bob"].map(|name| token(folder.path(), name, "annotator"));
    let ask = |path: &str, body: Value| {
        let (status, answer) = http(&server.address, "POST", path, &admin, Some(&body));
        assert!(status < 300, "{path} {body}: {answer}");
    };
    ask("/v1/worlds", json!({ "name": "desk", "obs_bits": 3, "actions": 4, "reward_range": [0, 1000] }));
    for decision in play(&server, &admin, "desk", 4) {
        ask("/v1/questions", json!({ "kind": "label_step", "world": "desk", "decision": decision }));
    }
    Desk { server, admin, tokens, _folder: folder }
}

#[test]
fn two_people_work_at_once_and_a_lease_that_runs_out_is_said() {
    let Some(driver) = driver() else {
        println!("left out: chromium and chromedriver are not there (Debian: chromium, chromium-driver)");
        return;
    };
    // With the usual lease, so that it does not run out while the second browser starts.
    let (long, short) = (desk(&[]), desk(&["--lease", "2"]));
    let profiles = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let browsers =
        profiles.each_ref().map(|profile| Browser::open(&driver, profile.path(), &["--window-size=900,900"]));
    let number = |browser: &Browser<'_>| {
        let line = browser
            .wait("const h = document.querySelector('#question h2'); return h && h.nextSibling.textContent");
        line.as_str().expect("text").split(' ').nth(1).expect("a number").to_string()
    };
    let numbers = [0, 1].map(|place: usize| {
        browsers[place].log_in(&long.server, &long.tokens[place]);
        number(&browsers[place])
    });
    assert_ne!(numbers[0], numbers[1], "two people work on two questions");
    let Desk { server, tokens, admin, .. } = &short;
    browsers[0].log_in(server, &tokens[0]);
    let first = number(&browsers[0]);
    // Nobody presses anything until the lease has run out: the question waits again.
    let is_free = |id: &str| {
        let (_, open) = http(&server.address, "GET", "/v1/questions?state=pending", admin, None);
        open["questions"].as_array().expect("a list").iter().any(|one| one["question"] == json!(id))
    };
    while !is_free(&first) {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    browsers[0].press("\u{e007}");
    browsers[0].wait("return document.getElementById('status').textContent.includes('lease has run out')");
    look(&browsers[0], "lease-lost");
    let (_, people) = http(&server.address, "GET", "/v1/people", admin, None);
    assert_eq!(
        people["statistics"]["total_tasks_completed"],
        json!(0),
        "an answer that is too late counts for nothing"
    );
    // The page has taken the question again, and now it counts. On a slow machine the lease may run out once more before.
    let is_counted = || {
        let (_, people) = http(&server.address, "GET", "/v1/people", admin, None);
        people["statistics"]["total_tasks_completed"] == json!(1)
    };
    let mut tries = 0;
    while !is_counted() {
        tries += 1;
        assert!(tries < 40, "no answer counts");
        number(&browsers[0]);
        browsers[0].press("\u{e007}");
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
}

/// Types a key into a field of the form of the keys, and asks for it to be kept.
fn put_key(browser: &Browser<'_>, field: &str, key: &str) {
    browser.run(&format!("document.querySelector({}).focus()", json!(field)));
    browser.press(key);
    browser.run("document.getElementById('save-keys').click()");
}

#[test]
fn a_key_of_ones_own_answers_and_one_that_would_mean_two_things_is_refused() {
    let Some(driver) = driver() else {
        println!("left out: chromium and chromedriver are not there (Debian: chromium, chromium-driver)");
        return;
    };
    let Desk { server, admin, tokens, .. } = &desk(&[]);
    let profile = tempfile::tempdir().expect("a folder");
    let browser = Browser::open(&driver, profile.path(), &["--window-size=900,1200"]);
    browser.log_in(server, &tokens[0]);
    browser.question("");
    let answered = || {
        let (_, people) = http(&server.address, "GET", "/v1/people", admin, None);
        people["statistics"]["total_tasks_completed"].as_u64().expect("a count")
    };
    // The answer that is usually given by Enter.
    let (own, skip) = ("#answer-keys input[data-usual=Enter]", "#key-skip");
    let said = "return document.getElementById('keys-said').textContent";
    browser.press("?");
    browser.wait("return document.getElementById('help').open");
    for (field, key) in [(own, "s"), (skip, "1"), (skip, "x")] {
        // The key of skipping, one of an answer on the page, and one of an answer to another kind of question.
        put_key(&browser, field, key);
        let refused = browser.wait(said);
        assert!(refused.as_str().is_some_and(|text| text.contains("would mean two things")), "{refused}");
        assert_eq!(browser.run("return document.getElementById('help').open"), json!(true));
        browser.run("document.getElementById('close-help').click()");
        browser.press("?");
        browser.wait("return document.getElementById('help').open");
        assert_eq!(browser.run(said), json!(""), "what was refused is forgotten");
    }
    look(&browser, "keys");
    put_key(&browser, own, "j");
    browser.wait("return !document.getElementById('help').open");
    let shown = "const b = document.querySelector('#question button[data-usual=Enter]'); \
         return b && [b.querySelector('kbd').textContent, b.getAttribute('aria-keyshortcuts')]";
    assert_eq!(browser.wait(shown), json!(["j", "j"]));
    // The usual key means nothing now, and keys of one's own outlive the page.
    browser.press("\u{e007}");
    browser.go(&format!("http://{}/queue", server.address));
    let mut asked = browser.question("");
    assert_eq!(browser.wait(shown), json!(["j", "j"]));
    assert_eq!(answered(), 0, "Enter was given away");
    browser.press("j");
    asked = browser.question(&asked);
    browser.wait("return document.getElementById('status').textContent.includes('Answered question')");
    assert_eq!(answered(), 1, "{asked}");
    // Everything as usual again.
    browser.press("?");
    browser.wait("return document.getElementById('help').open");
    browser
        .run("document.getElementById('usual-keys').click(); document.getElementById('close-help').click()");
    assert_eq!(browser.wait(shown), json!(["Enter", "Enter"]));
    browser.press("\u{e007}");
    browser.question(&asked);
    assert_eq!(answered(), 2);
}

#[test]
fn earlier_pages_of_the_history_are_reached_by_their_links() {
    let Some(driver) = driver() else {
        println!("left out: chromium and chromedriver are not there (Debian: chromium, chromium-driver)");
        return;
    };
    let Desk { server, admin, tokens, .. } = &desk(&[]);
    let ask = |path: &str, token: &str, body: Value| {
        let (status, answer) = http(&server.address, "POST", path, token, Some(&body));
        assert!(status < 300, "{path} {body}: {answer}");
        answer
    };
    // Four questions wait at the desk, and 52 more are asked: more answers than a page has.
    for _ in 0..52 {
        let decision = play(server, admin, "desk", 1).remove(0);
        let body = json!({ "kind": "label_step", "world": "desk", "decision": decision });
        ask("/v1/questions", admin, body);
        let leased = &ask("/v1/questions/next", &tokens[0], json!({}))["leased"];
        let question = leased["question"]["question"].as_str().expect("a question");
        let body = json!({ "lease": leased["lease"], "answer": { "accept": true } });
        ask(&format!("/v1/questions/{question}/answer"), &tokens[0], body);
    }
    let (_, all) = http(&server.address, "GET", "/v1/answers", admin, None);
    let all = all["answers"].as_array().expect("a list").clone();
    assert_eq!(all.len(), 52);
    let oldest = format!("Input {}", all[51]["answer"].as_str().expect("a number"));
    let profile = tempfile::tempdir().expect("a folder");
    let browser = Browser::open(&driver, profile.path(), &["--window-size=900,1200"]);
    browser.log_in(server, &tokens[0]);
    browser.go(&format!("http://{}/history", server.address));
    let listed = "return [...document.querySelectorAll('ol[aria-labelledby=answers] > li > p > b')].map((b) => b.textContent)";
    browser.wait("return !!document.querySelector('nav[aria-label=\"Pages of answers\"] a')");
    let first = browser.run(listed);
    assert_eq!(first.as_array().map(Vec::len), Some(50), "{first}");
    assert!(!first.as_array().expect("a list").contains(&json!(oldest)), "{first}");
    look(&browser, "history-first");
    let earlier = browser.run(
        "const a = document.querySelector('nav[aria-label=\"Pages of answers\"] a'); return [a.textContent, a.href]",
    );
    assert_eq!(earlier[0], json!("Earlier answers"));
    browser.go(earlier[1].as_str().expect("an address"));
    let second = browser.run(listed);
    assert_eq!(second.as_array().map(Vec::len), Some(2), "{second}");
    assert_eq!(second[1], json!(oldest), "{second}");
    look(&browser, "history-second");
    let latest = browser.run("return [...document.querySelectorAll('nav[aria-label=\"Pages of answers\"] a')].map((a) => a.textContent)");
    assert_eq!(latest, json!(["Latest answers"]), "there is nothing before");
}

/// Two approvers say the same about the configuration, so that it holds even where it loosens safety.
fn configure(server: &Server, admin: &str, approvers: &[String; 2], answer: &Value) {
    let ask = |token: &str, path: &str, body: Value| {
        let (status, said) = http(&server.address, "POST", path, token, Some(&body));
        assert!(status < 300, "{path} {body}: {said}");
        said
    };
    ask(admin, "/v1/questions", json!({ "kind": "adjust_config" }));
    let (_, open) = http(&server.address, "GET", "/v1/questions", admin, None);
    let mut open = open["questions"].as_array().expect("a list").iter();
    let asked = open.find(|one| one["kind"] == json!("adjust_config")).expect("a question");
    let path = format!("/v1/questions/{}", asked["question"].as_str().expect("a number"));
    for approver in approvers {
        let leased = ask(approver, &format!("{path}/lease"), json!({}));
        let said = json!({ "lease": leased["lease"], "answer": answer });
        ask(approver, &format!("{path}/answer"), said);
    }
}

#[test]
fn an_approval_of_what_is_not_shown_to_be_good_enough_is_refused_on_the_page() {
    let Some(driver) = driver() else {
        println!("left out: chromium and chromedriver are not there (Debian: chromium, chromium-driver)");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    // Hardly any change reaches this threshold by itself.
    let config =
        "improvement_threshold = 0.9\nimprovement_threshold_min = 0.9\nimprovement_threshold_max = 0.9\n";
    std::fs::write(folder.path().join("strict.toml"), config).expect("a file");
    let server = Server::start(folder.path(), "served", &["--config", "strict.toml"]);
    let admin = server.token.clone();
    let approvers = ["grace", "hopper"].map(|name| token(folder.path(), name, "approver"));
    let put = |control: Value| {
        let (status, said) = http(&server.address, "PUT", "/v1/people/control", &admin, Some(&control));
        assert!(status < 300, "{control}: {said}");
    };
    put(json!({ "safety_override_mode": "require_approval" }));
    let world = json!({ "name": "desk", "obs_bits": 3, "actions": 4, "reward_range": [0, 1000] });
    assert_eq!(http(&server.address, "POST", "/v1/worlds", &admin, Some(&world)).0, 201);
    (0..2).for_each(|_| configure(&server, &admin, &approvers, &json!({ "weight_pox_delta": 0.5 })));
    let is_short = |one: &Value| one["context"]["missing"].as_f64().is_some_and(|missing| 0.0 < missing);
    let waits = (0..60).any(|_| {
        play(&server, &admin, "desk", 100);
        let (_, open) = http(&server.address, "GET", "/v1/questions", &admin, None);
        open["questions"].as_array().expect("a list").iter().any(is_short)
    });
    assert!(waits, "nothing was learned in 6,000 steps that is short of the threshold");
    // From now on an approval adds nothing, so that this change stays short of the threshold.
    put(json!({ "human_weight_pox": 0.0 }));
    let applied = || {
        let (_, world) = http(&server.address, "GET", "/v1/worlds/desk", &admin, None);
        world["patches_applied"].as_u64().expect("a count")
    };
    let before = applied();
    let profile = tempfile::tempdir().expect("a folder");
    let browser = Browser::open(&driver, profile.path(), &["--window-size=900,1100"]);
    browser.log_in(&server, &approvers[0]);
    let asked = browser.question("");
    assert!(asked.contains("May this change of the policy of desk take effect"), "{asked}");
    browser.press("a");
    browser.wait("return document.getElementById('status').textContent.includes('is missing')");
    look(&browser, "approval-refused");
    assert_eq!(applied(), before, "what is not good enough is not in force");
    // It can still be rejected.
    browser.press("x");
    browser.wait("return document.getElementById('status').textContent.includes('Answered question')");
    assert_eq!(applied(), before);
}
