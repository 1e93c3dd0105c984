//! Chromium driven over WebDriver by plain HTTP, for tests of pages.

#![allow(dead_code, reason = "every test binary uses a part of this")]

use crate::server::Server;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often something is looked for before it counts as missing.
const LOOKS: u32 = 300;

/// The program that drives browsers; it is killed when it goes out of scope.
pub struct Driver {
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
pub fn driver() -> Option<Driver> {
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

/// The text of a page or file.
pub fn http_text(address: &str, path: &str, token: &str) -> String {
    ask(address, "GET", path, token, None).1
}

pub fn http(address: &str, method: &str, path: &str, token: &str, body: Option<&Value>) -> (u16, Value) {
    let (status, text) = ask(address, method, path, token, body);
    (status, serde_json::from_str(text.trim()).unwrap_or(Value::Null))
}

fn ask(address: &str, method: &str, path: &str, token: &str, body: Option<&Value>) -> (u16, String) {
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
    (status, body.to_string())
}

/// Whether head and body of an answer are there.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    length.is_some_and(|length: usize| end + 4 + length <= answer.len())
}

/// One browser.
pub struct Browser<'d> {
    driver: &'d Driver,
    session: String,
}

impl<'d> Browser<'d> {
    pub fn open(driver: &'d Driver, profile: &Path, more: &[&str]) -> Browser<'d> {
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

    pub fn go(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// A command of Chromium's own protocol.
    pub fn command(&self, name: &str, parameters: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// Looks until a script says something other than false and null.
    pub fn wait(&self, script: &str) -> Value {
        for _ in 0..LOOKS {
            let found = self.run(script);
            if found != Value::Null && found != json!(false) && found != json!("") {
                return found;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("never: {script}; the page says {}", self.run("return document.body.innerText"));
    }

    pub fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
            })
            .collect();
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
    }

    pub fn log_in(&self, server: &Server, token: &str) {
        self.go(&format!("http://{}/login", server.address));
        self.wait("return !!document.getElementById('token')");
        self.run("document.getElementById('token').focus()");
        self.press(token.trim());
        self.press("\u{e007}");
        self.wait("return location.pathname === '/'");
        self.go(&format!("http://{}/queue", server.address));
    }

    /// The title of the question, once it is another one.
    pub fn question(&self, not: &str) -> String {
        let found = self.wait(&format!(
            "const h = document.querySelector('#question h2'); return h && h.textContent + '|' + h.nextSibling.textContent !== {0} && h.textContent + '|' + h.nextSibling.textContent",
            json!(not)
        ));
        found.as_str().expect("text").to_string()
    }

    /// Holds the page against the rules of axe-core, if it is installed.
    pub fn audit(&self, name: &str) {
        let Some(rules) = axe() else { return };
        self.run(&rules);
        let found = self.run(
            "return axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map((one) => \
             one.id + ': ' + one.help + ': ' + one.nodes.map((node) => node.target.join(' ')).join(', ')))",
        );
        assert_eq!(found, json!([]), "axe-core finds something on {name}");
    }

    /// Keeps a picture of the page as `NAME.png`.
    pub fn screenshot(&self, name: &str) {
        let (_, answer) =
            http(&self.driver.address, "GET", &format!("/session/{}/screenshot", self.session), "", None);
        let text = answer["value"].as_str().unwrap_or_default();
        let folder = pictures();
        std::fs::create_dir_all(&folder).expect("a folder for pictures");
        std::fs::write(folder.join(format!("{name}.png")), decode_base64(text)).expect("a picture is kept");
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        let _ = http(&self.driver.address, "DELETE", &format!("/session/{}", self.session), "", None);
    }
}

/// Where pictures are kept: the folder that `BEM_SHOTS` names, otherwise `screenshots` beside what cargo builds.
fn pictures() -> PathBuf {
    let beside = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
    std::env::var_os("BEM_SHOTS").map_or_else(beside, PathBuf::from)
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

/// axe-core as `cargo xtask tools` installs it.
fn axe() -> Option<String> {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("tools/axe");
    let rules = std::fs::read_to_string(tools.join("node_modules/axe-core/axe.min.js"));
    if rules.is_err() {
        println!("left out: axe-core is not there (cargo xtask tools)");
    }
    rules.ok()
}
