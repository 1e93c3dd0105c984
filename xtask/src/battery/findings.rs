//! The tests of docs/findings.md against the program in which new users found what they keep mended: each must fail there, with
//! the words that the page gives, and pass here, or it shows nothing. The earlier program takes the place of this one in a mount namespace that ends with the test,
//! so that nothing has to be put back.

use super::{commit, results, text};
use crate::conformance::{self, Finding};
use crate::{output, root, target};
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The commit that new users tried.
const TRIED: &str = "a69abf8";
/// Seconds for one test; one that waits longer for what never comes has failed.
const SECONDS: &str = "300";
/// Letters of a failure that a table shows.
const SHOWN: usize = 110;

/// Runs every test of every finding against both programs and writes docs/results/findings.md.
pub fn findings(_scale: u64) -> Result<()> {
    let here = target().join("release/bem");
    let (before, tests) = (earlier_program()?, compiled_tests()?);
    let rows = conformance::findings(&std::fs::read_to_string(root().join("docs/findings.md"))?)?;
    let (mut table, mut silent) = (String::new(), Vec::new());
    for Finding { finding, test: name, words } in &rows {
        let executable = tests.get(name).with_context(|| format!("{name} is no compiled test"))?;
        if let Some(said) = failure(&here, &here, executable, name)? {
            bail!("{name} fails with the program of this commit: {}", reason(&said));
        }
        let said = failure(&before, &here, executable, name)?;
        let met = said.as_deref().map_or("**passes**".to_string(), reason);
        println!("{name}: {met}");
        let number = finding.split('.').next().unwrap_or_default();
        writeln!(table, "| {number} | `{name}` | {met} |")?;
        if !said.is_some_and(|said| is_told(&said, words)) {
            silent.push(format!("{name} ({met}) does not fail with {words:?}"));
        }
    }
    let page = format!(
        "# What new users found, tried again\n\nWritten by `cargo xtask battery findings`, commit {}. The tests that \
         [findings.md](../findings.md) names, run with the program of\ncommit {TRIED} in the place of this one: every one of \
         them must fail there, with the words that the page gives. With the\nprogram of this commit all of them pass.\n\n\
         | finding | test | fails at {TRIED} with |\n|---|---|---|\n{table}",
        commit()?
    );
    std::fs::write(results("findings.md")?, page)?;
    ensure!(silent.is_empty(), "with the program of {TRIED}:\n{}", silent.join("\n"));
    Ok(())
}

/// The program of the commit that was tried, built from the history of this repository.
fn earlier_program() -> Result<PathBuf> {
    let folder = target().join("battery").join(TRIED);
    let program = folder.join("target/release/bem");
    if program.exists() {
        return Ok(program);
    }
    std::fs::create_dir_all(&folder)?;
    let archive = folder.with_extension("tar");
    output("git", &["archive", "--output", text(&archive)?, TRIED])?;
    output("tar", &["-xf", text(&archive)?, "-C", text(&folder)?])?;
    let built = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--bin", "bem"])
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .current_dir(&folder)
        .status()?;
    ensure!(built.success(), "the program of {TRIED} cannot be built");
    Ok(program)
}

/// The compiled test that holds each test of `crates/bem`.
fn compiled_tests() -> Result<BTreeMap<String, PathBuf>> {
    let words = ["test", "--release", "--workspace", "--no-run", "--message-format", "json", "--quiet"];
    let mut tests = BTreeMap::new();
    for line in output("cargo", &words)?.lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        let source = message["target"]["src_path"].as_str().unwrap_or_default();
        let Some(executable) = message["executable"].as_str() else { continue };
        if !source.contains("crates/bem/tests/") {
            continue;
        }
        for test in output(executable, &["--list", "--format", "terse"])?.lines() {
            let name = test.trim_end_matches(": test").rsplit("::").next().unwrap_or_default();
            tests.insert(name.to_string(), PathBuf::from(executable));
        }
    }
    Ok(tests)
}

/// Runs one test with a program in the place of another; what it said if it failed.
fn failure(program: &Path, place: &Path, executable: &Path, name: &str) -> Result<Option<String>> {
    let script = r#"mount --bind "$0" "$1" && shift && exec "$@""#;
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .args([program, place])
        .args(["timeout", SECONDS])
        .arg(executable)
        .args(["--include-ignored", "--test-threads", "1", name])
        // Where cargo runs the tests of this package.
        .current_dir(root().join("crates/bem"))
        .env("CARGO_MANIFEST_DIR", root().join("crates/bem"))
        .output()
        .context("unshare could not be started")?;
    let said = String::from_utf8_lossy(&ran.stdout).to_string() + &String::from_utf8_lossy(&ran.stderr);
    if said.contains("mount: ") {
        bail!("the program cannot be put in another's place: {said}");
    }
    let is_one = said.contains("running 1 test");
    match ran.status.code() {
        Some(0) if is_one => Ok(None),
        Some(0) => bail!("{name} is not one test: {said}"),
        Some(124) => Ok(Some(format!("nothing within {SECONDS} s"))),
        _ if is_one => Ok(Some(said)),
        code => bail!("{name} did not run ({code:?}): {said}"),
    }
}

/// What a test said from its panic on; all of it where it did not panic.
fn panicked(said: &str) -> &str {
    said.find("panicked at").map_or(said, |place| &said[place..])
}

/// What a command says of words that it does not know: a test that fails with it has not come to what it is about, unless the
/// finding is that these words were missing.
const SET_UP: [&str; 2] = ["unexpected argument", "unrecognized subcommand"];

/// Whether a failure is the one that a finding tells: it says these words, and was not stopped before it came to them.
fn is_told(said: &str, words: &str) -> bool {
    let said = panicked(said);
    said.contains(words) && !SET_UP.iter().any(|unknown| said.contains(unknown) && !words.contains(unknown))
}

/// What a test that failed said first, in one line of a table.
fn reason(said: &str) -> String {
    let mut lines = said.lines().skip_while(|line| !line.contains("panicked at"));
    lines.next();
    let tells = |line: &&str| !line.trim().is_empty() && line.trim() != "stack backtrace:";
    let line = lines.find(tells).or_else(|| said.lines().last()).unwrap_or_default();
    let line = line.replace(&root().display().to_string(), ".");
    let line: String = line.trim().chars().map(|letter| if letter == '|' { '/' } else { letter }).collect();
    let cut: String = line.chars().take(SHOWN).collect();
    format!("`{}`{}", cut.replace('`', "'"), if cut.len() < line.len() { " ..." } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_by_what_follows_the_place_of_the_panic() {
        let said = "running 1 test\n\nthread 'a' panicked at crates/bem/tests/a.rs:1:2:\nno such | option\nnote: run with\n";
        assert_eq!(reason(said), "`no such / option`");
        assert_eq!(reason("running 1 test\nkilled"), "`killed`");
        // A panic without words is told by where it happened, not by the title of what follows.
        let said = "thread 'a' panicked at a.rs:1:2:\n\nstack backtrace:\n   0: a::fails\n";
        assert_eq!(reason(said), "`0: a::fails`");
    }

    #[test]
    fn a_failure_in_setting_up_is_not_the_failure_that_was_found() {
        let said =
            |words: &str| format!("running 1 test\nsteps\nthread 'a' panicked at a.rs:1:2:\n{words}\n");
        assert!(is_told(&said("the world was stepped 51000 times"), "the world was stepped"));
        assert!(!is_told(&said("something else"), "the world was stepped"));
        assert!(!is_told(&said("something else"), "steps"), "what it printed before is not its failure");
        assert!(!is_told(&said("nothing kept: unexpected argument '--out'"), "nothing kept"));
        assert!(is_told(&said("unexpected argument '--resume' found"), "unexpected argument '--resume'"));
        assert!(!is_told(&said("unrecognized subcommand 'init'"), "unexpected argument"));
    }
}
