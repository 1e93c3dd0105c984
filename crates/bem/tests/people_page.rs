//! People's pages in a real browser: log in, answer by keyboard, skip, take back, approve a patch and see it applied, an annotator
//! who is refused an approver's question, dark and narrow. Chromium is driven over WebDriver by plain HTTP; where it is not there,
//! the test says so. Clause: HUM-12.

mod server;

use serde_json::{Value, json};
use server::Server;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often something is looked for before it counts as missing.
const LOOKS: u32 = 300;

/// The program that drives browsers; it is killed when it goes out of scope.
struct Driver {
    child: Child,
    address: String,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A driver, or nothing where there is no browser.
fn driver() -> Option<Driver> {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("chromedriver") || !has("chromium") {
        return None;
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let child = Command::new("chromedriver")
        .arg(format!("--port={}", free.port()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a driver");
    let driver = Driver { child, address: free.to_string() };
    for _ in 0..LOOKS {
        if TcpStream::connect(free).is_ok() {
            return Some(driver);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    None
}

fn http(address: &str, method: &str, path: &str, token: &str, body: Option<&Value>) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a setting");
    let body = body.map(Value::to_string).unwrap_or_default();
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{kind}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("it is sent");
    // A driver keeps its connections: the head says how long the body is.
    let (mut answer, mut chunk) = (Vec::new(), [0; 65_536]);
    while !is_whole(&answer) {
        match stream.read(&mut chunk).expect("an answer") {
            0 => break,
            count => answer.extend_from_slice(&chunk[..count]),
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head[9..12].parse().expect("a status");
    (status, serde_json::from_str(body.trim()).unwrap_or(Value::Null))
}

/// Whether head and body of an answer are there.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    length.is_some_and(|length: usize| end + 4 + length <= answer.len())
}

/// One browser.
struct Browser<'d> {
    driver: &'d Driver,
    session: String,
}

impl<'d> Browser<'d> {
    fn open(driver: &'d Driver, profile: &Path, more: &[&str]) -> Browser<'d> {
        let mut arguments = vec![
            "--headless=new".to_string(),
            "--no-sandbox".to_string(),
            "--disable-gpu".to_string(),
            "--disable-quic".to_string(),
            "--no-first-run".to_string(),
            "--disable-background-networking".to_string(),
            "--disable-component-update".to_string(),
            "--disable-sync".to_string(),
            format!("--user-data-dir={}", profile.display()),
        ];
        arguments.extend(more.iter().map(|one| one.to_string()));
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": arguments, "binary": "/usr/bin/chromium" },
        } } });
        let (status, answer) = http(&driver.address, "POST", "/session", "", Some(&wanted));
        assert_eq!(status, 200, "{answer}");
        let session = answer["value"]["sessionId"].as_str().expect("a session").to_string();
        Browser { driver, session }
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let path = format!("/session/{}{path}", self.session);
        let (status, answer) = http(&self.driver.address, "POST", &path, "", Some(body));
        assert_eq!(status, 200, "{path} {body}: {answer}");
        answer["value"].clone()
    }

    fn go(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Looks until a script says something other than false and null.
    fn wait(&self, script: &str) -> Value {
        for _ in 0..LOOKS {
            let found = self.run(script);
            if found != Value::Null && found != json!(false) && found != json!("") {
                return found;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("never: {script}; the page says {}", self.run("return document.body.innerText"));
    }

    fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
            })
            .collect();
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
    }

    fn log_in(&self, server: &Server, token: &str) {
        self.go(&format!("http://{}/login", server.address));
        self.wait("return !!document.getElementById('token')");
        self.run("document.getElementById('token').focus()");
        self.press(token.trim());
        self.press("\u{e007}");
        self.wait("return location.pathname === '/'");
        self.go(&format!("http://{}/queue", server.address));
    }

    /// The title of the question, once it is another one.
    fn question(&self, not: &str) -> String {
        let found = self.wait(&format!(
            "const h = document.querySelector('#question h2'); return h && h.textContent + '|' + h.nextSibling.textContent !== {0} && h.textContent + '|' + h.nextSibling.textContent",
            json!(not)
        ));
        found.as_str().expect("text").to_string()
    }

    fn screenshot(&self, path: &Path) {
        let (_, answer) =
            http(&self.driver.address, "GET", &format!("/session/{}/screenshot", self.session), "", None);
        let text = answer["value"].as_str().unwrap_or_default();
        let _ = std::fs::write(path, decode_base64(text));
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        let _ = http(&self.driver.address, "DELETE", &format!("/session/{}", self.session), "", None);
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for six in text.bytes().filter_map(value) {
        bits = bits << 6 | u32::from(six);
        count += 6;
        if 8 <= count {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
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
    let shots = std::env::var_os("BEM_SHOTS").map(std::path::PathBuf::from);
    let shoot = |browser: &Browser<'_>, name: &str| {
        if let Some(shots) = &shots {
            browser.screenshot(&shots.join(format!("{name}.png")));
        }
    };
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
    browser.log_in(&server, &ada);
    let mut asked = browser.question("");
    shoot(&browser, "step");
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
    shoot(&browser, "episode");
    browser.press("4");
    asked = browser.question(&asked);
    assert!(asked.contains("What should be learned first"), "{asked}");
    shoot(&browser, "ranking");
    browser.press("3");
    browser.press("1");
    browser.press("2");
    browser.wait("return document.body.innerText.includes('No question is open for you')");
    browser.press("?");
    browser.wait("return document.getElementById('help').open");
    shoot(&browser, "help");
    let (_, people) = http(&server.address, "GET", "/v1/people", &admin, None);
    let used = |name: &str| people["statistics"][name].as_u64().expect("a count");
    assert_eq!(used("total_step_feedback_used"), 2);
    assert_eq!(used("total_answers_undone"), 1);
    assert_eq!(used("total_episode_feedback_used"), 1);
    assert_eq!(used("total_template_feedback_used"), 1);
    assert_eq!(used("total_tasks_skipped"), 1);
    browser.go(&format!("http://{}/history", server.address));
    browser.wait("return document.body.innerText.includes('taken back with input')");
    shoot(&browser, "history");

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
    shoot(&narrow, "config-dark-narrow");
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
    shoot(&narrow, "patch-dark-narrow");
    // An annotator may not approve it.
    let id = waits["question"].as_str().expect("a question");
    let (status, refused) = http(&server.address, "POST", &format!("/v1/questions/{id}/lease"), &ada, None);
    assert_eq!((status, refused["error"]["code"].clone()), (403, json!("needs_approver")));
    narrow.press("a");
    narrow.wait("return document.getElementById('status').textContent.includes('policy of desk')");
    assert!(before < applied(&server), "an approved patch is in force");
    narrow.go(&format!("http://{}/patches", server.address));
    narrow.wait("return document.body.innerText.includes('split')");
    shoot(&narrow, "patches-dark-narrow");
}
