//! What tests of commands over one solved task share: the program in a folder of its own, and a run `kept` in it.

#![allow(dead_code, reason = "every test binary uses a part of this")]

use std::path::Path;
use std::process::{Command, Output};

/// The program in this folder, with keys that go away with it.
pub fn bem(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(arguments)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .output()
        .expect("the program starts")
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with a run `kept` over one task, whether or not it was solved.
pub fn solved(task: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let output = bem(folder.path(), &[&["solve"], task, &["--out", "kept", "--json"]].concat());
    assert!(output.status.code() < Some(2), "{output:?}");
    folder
}
