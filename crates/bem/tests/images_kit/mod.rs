//! What tests of images share: a server that is driven over loopback, the program, and other programs that must be there.

#![allow(dead_code, reason = "every test binary uses a part of this")]

#[path = "../server/mod.rs"]
mod server;

pub use server::Server;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

impl Server {
    /// Asks; status and body.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a setting");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head[9..12].parse().expect("a status"), serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// Makes the world `ads`: two bits, three actions.
    pub fn make_world(&self) {
        let world = json!({ "name": "ads", "obs_bits": 2, "actions": 3, "reward_range": [0, 1000] });
        assert!(self.ask("POST", "/v1/worlds", &world).0 < 300);
    }

    /// Asks for decisions and rewards them; the actions that were chosen. What is seen follows from the number alone.
    pub fn drive(&self, numbers: std::ops::Range<u64>, is_bad: bool) -> Vec<u64> {
        numbers
            .map(|number| {
                let seen = number * 7 % 4;
                let (status, answer) =
                    self.ask("POST", "/v1/worlds/ads/decide", &json!({ "obs": format!("{seen:02b}") }));
                assert_eq!(status, 200, "{answer}");
                let action = answer["action"].as_u64().expect("an action");
                let reward = if action == seen % 3 { 1_000 } else { 0 };
                let outcome = json!({ "decision": answer["decision"], "reward": reward, "bad": is_bad });
                assert_eq!(self.ask("POST", "/v1/worlds/ads/reward", &outcome).0, 200);
                action
            })
            .collect()
    }
}

/// Runs the program in a folder.
pub fn bem(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(arguments)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("keys"))
        .output()
        .expect("the program")
}

/// Everything that was printed.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs the program and reads its one JSON object; it must succeed.
pub fn bem_json(folder: &Path, arguments: &[&str]) -> Value {
    let output = bem(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)))
}

/// These programs must be there: a test that cannot be run is not passed.
pub fn need(programs: &[&str]) {
    for program in programs {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        let is_there = found.is_ok_and(|found| found.status.success());
        assert!(is_there, "not run: {program} is missing (cargo xtask tools installs it)");
    }
}

/// Runs a tool in a folder; it must succeed.
pub fn tool(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(folder).output().expect("a tool");
    assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output));
    text(&output)
}

/// The head of a folder's history, from an audit.
pub fn head(folder: &Path, state: &str) -> String {
    bem_json(folder, &["verify", state, "--json"])["head"].as_str().expect("a head").to_string()
}

/// A folder with a server's state of some decisions, stopped, and the file of its key.
pub fn lived(folder: &Path, decisions: u64) {
    let server = Server::start(folder, "S", &["--key", "key"]);
    server.make_world();
    server.drive(0..decisions, false);
    server.stop();
}

/// Saves an image whatever the gate says; its tag.
pub fn save(folder: &Path, state: &str, layout: &str) -> String {
    let taken =
        bem_json(folder, &["image", "snapshot", "--state", state, "--layout", layout, "--force", "--json"]);
    taken["tag"].as_str().expect("a tag").to_string()
}
