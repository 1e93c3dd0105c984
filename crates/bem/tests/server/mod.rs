//! `bem serve` on a free port, for tests that drive it from outside.

#![allow(dead_code, reason = "every test binary uses a part of this")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server that runs; it is killed when it goes out of scope.
pub struct Server {
    pub child: Child,
    /// Host and port.
    pub address: String,
    /// The token of its admin.
    pub token: String,
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
        std::thread::spawn(move || lines.for_each(drop));
        let token = std::fs::read_to_string(token).expect("a token").trim().to_string();
        Server { child, address, token }
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
    }
}
