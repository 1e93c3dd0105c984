//! `bem serve` on a free port, for tests that drive it from outside.

#![allow(dead_code, reason = "every test binary uses a part of this")]

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// The program in a folder, with its keys there.
pub fn bem(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(arguments)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("keys"))
        .output()
        .expect("bem")
}

/// What a program has said.
pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A server that runs; it is killed when it goes out of scope.
pub struct Server {
    pub child: Child,
    /// Host and port.
    pub address: String,
    /// The token of its admin.
    pub token: String,
    /// Reads its output until nobody can write to it any more.
    reader: JoinHandle<()>,
}

/// The command that serves a state folder.
pub fn command(folder: &Path, state: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bem"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--state", state]).args(more);
    command.current_dir(folder).env("XDG_STATE_HOME", folder.join("keys"));
    command
}

impl Server {
    /// Serves a state folder.
    pub fn start(folder: &Path, state: &str, more: &[&str]) -> Server {
        Server::of(command(folder, state, more), &folder.join(state).join("token"))
    }

    /// A server that this command starts, with its token in this file.
    pub fn of(mut command: Command, token: &Path) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a server");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let address = loop {
            let line = lines.next().expect("its address").expect("text");
            if let Some(address) = line.strip_prefix("listening  http://") {
                break address.to_string();
            }
        };
        // The rest of its output is read, so that it never waits for a reader.
        let reader = std::thread::spawn(move || lines.for_each(drop));
        let token = std::fs::read_to_string(token).expect("a token").trim().to_string();
        Server { child, address, token, reader }
    }

    /// Ends it without warning.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Ends it cleanly.
    pub fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What was started in a sandbox ends a moment after the program that made the sandbox, and holds its locks until then.
        for _ in 0..1_000 {
            if self.reader.is_finished() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Server {
    /// A connection with the admin's token.
    pub fn connect(&self) -> Client {
        Client::new(&self.address, &self.token)
    }
}

/// A connection that is kept.
pub struct Client {
    pub stream: TcpStream,
    host: String,
    token: String,
}

impl Client {
    pub fn new(address: &str, token: &str) -> Client {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a setting");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a setting");
        Client { stream, host: address.to_string(), token: token.to_string() }
    }

    pub fn request(&self, method: &str, path: &str, body: &str) -> String {
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{kind}Content-Length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        )
    }

    pub fn ask(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.try_ask(method, path, body).expect("an answer")
    }

    pub fn try_ask(&mut self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = self.request(method, path, &body);
        let (status, body) = self.raw(request.as_bytes())?;
        Some((status, serde_json::from_str(&body).unwrap_or(Value::String(body))))
    }

    pub fn raw(&mut self, request: &[u8]) -> Option<(u16, String)> {
        self.stream.write_all(request).ok()?;
        let (mut bytes, mut chunk) = (Vec::new(), [0; 4_096]);
        loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let status = head[9..12].parse().expect("a status");
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("content-length")
                        .then(|| value.trim().parse().expect("a length"))
                });
                let length: usize = length.unwrap_or(0);
                if end + 4 + length <= bytes.len() {
                    let body = &bytes[end + 4..end + 4 + length];
                    return Some((status, String::from_utf8_lossy(body).into_owned()));
                }
            }
            match self.stream.read(&mut chunk) {
                Ok(0) | Err(_) => return None,
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            }
        }
    }
}
