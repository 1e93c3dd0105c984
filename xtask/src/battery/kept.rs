//! Pieces of a battery that `bem` answers in JSON, kept beside the build: an interrupted battery goes on where it was.
//!
//! A piece is one command. Two run at a time. What a folder is named by must be all that changes a result.

use crate::{output, root, target};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Processes at a time.
const PROCESSES: usize = 2;

/// One command of `bem`, and the name under which its answer is kept.
pub struct Piece {
    pub name: String,
    pub words: Vec<String>,
}

impl Piece {
    pub fn new(name: &str, words: &[&str]) -> Piece {
        Piece { name: name.to_string(), words: words.iter().map(ToString::to_string).collect() }
    }
}

/// What is not committed of the crates, told apart by a sum: other sources have other results. Nothing where all is committed.
pub fn changes() -> Result<Option<String>> {
    let changed = output("git", &["diff", "HEAD", "--", "crates"])?;
    let sum = changed.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    Ok((!changed.is_empty()).then(|| format!("{sum:x}")))
}

/// The folder of this name, in which pieces are kept.
pub fn folder(name: &str) -> Result<PathBuf> {
    let folder = target().join("battery").join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// Runs the pieces that are not kept yet, two at a time; those that failed, and why.
pub fn run_pieces(bem: &str, folder: &Path, pieces: &[Piece]) -> Vec<String> {
    let (waiting, failed) = (Mutex::new(pieces.iter()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let piece = waiting.lock().ok().and_then(|mut pieces| pieces.next());
            let Some(Piece { name, words }) = piece else { return };
            let page = file(folder, name);
            let ran = if page.exists() { Ok(()) } else { keep(bem, words, &page) };
            match ran {
                Ok(()) => println!("{name}: done"),
                // The other pieces go on: what they bring is worth having.
                Err(error) => {
                    failed.lock().iter_mut().for_each(|list| list.push(format!("{name}: {error:#}")))
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(work);
        }
    });
    failed.into_inner().unwrap_or_default()
}

/// What was kept of a piece; nothing where it was not run.
pub fn kept(folder: &Path, name: &str) -> Result<Option<Value>> {
    let page = file(folder, name);
    if !page.exists() {
        return Ok(None);
    }
    let said = std::fs::read_to_string(&page)?;
    Ok(Some(serde_json::from_str(&said).with_context(|| page.display().to_string())?))
}

/// Runs a command and keeps what it says, whether its answer is yes or no: what was missed is a result.
fn keep(bem: &str, words: &[String], page: &Path) -> Result<()> {
    let output = Command::new(bem)
        .args(words)
        .current_dir(root())
        .output()
        .with_context(|| format!("{bem} could not be started"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !matches!(output.status.code(), Some(0 | 1)) || said.contains("bem: interrupted") {
        bail!("`bem {}` ended with {}: {}", words.join(" "), output.status, said.trim());
    }
    let table: Value = serde_json::from_slice(&output.stdout).context("a table that is not JSON")?;
    let aside = page.with_extension("tmp");
    std::fs::write(&aside, table.to_string())?;
    Ok(std::fs::rename(aside, page)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_that_is_kept_is_not_run_again_and_one_that_fails_does_not_stop_the_others() {
        let name = format!("pieces-{}", std::process::id());
        let folder = folder(&name).expect("a folder");
        // A shell stands for the program; each run leaves a line.
        let piece = |name: &str, answer: &str, code: u8| {
            let line = format!("echo x >> '{}'; {answer}; exit {code}", folder.join(name).display());
            Piece::new(name, &["-c", &line])
        };
        let pieces = [
            piece("yes", "echo '{\"rows\": 1}'", 0),
            piece("broken", "echo oops", 0),
            piece("stopped", "echo '{}'; echo 'bem: interrupted' >&2", 1),
            piece("crashed", "echo '{}'", 2),
            piece("no", "echo '{\"rows\": 2}'", 1),
        ];
        let mut failed = Vec::new();
        for _ in 0..2 {
            failed = run_pieces("sh", &folder, &pieces);
        }
        failed.sort();
        let runs = |name: &str| std::fs::read_to_string(folder.join(name)).expect("lines").lines().count();
        let of = |name: &str| kept(&folder, name).expect("JSON").map(|said| said["rows"].clone());
        assert_eq!(["yes", "no", "broken", "stopped", "crashed"].map(runs), [1, 1, 2, 2, 2]);
        assert_eq!(
            (of("yes"), of("no"), of("broken"), of("stopped")),
            (Some(1.into()), Some(2.into()), None, None)
        );
        assert_eq!(failed.len(), 3, "{failed:?}");
        assert!(failed[0].starts_with("broken: ") && failed[2].starts_with("stopped: "), "{failed:?}");
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}
