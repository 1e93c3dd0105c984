//! What tests of the guide and of READMEs share: the shell blocks of a page, and a shell that runs them.

use std::path::Path;
use std::process::{Command, Output};

/// Runs lines of a shell in a folder, with `bem` in the path; the first that fails ends it.
pub fn shell(folder: &Path, script: &str) -> Output {
    let bem = Path::new(env!("CARGO_BIN_EXE_bem")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new("sh")
        .args(["-e", "-c", script])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", bem.display()))
        .env("XDG_STATE_HOME", folder.join("state"))
        .output()
        .expect("a shell")
}

/// The shell blocks of a page, in order.
pub fn commands(page: &str) -> String {
    let mut script = String::new();
    let mut is_inside = false;
    for line in page.lines() {
        match line {
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            _ if is_inside => script += &format!("{line}\n"),
            _ => {}
        }
    }
    script
}
