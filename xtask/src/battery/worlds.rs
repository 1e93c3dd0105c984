//! Worlds drawn from the commit and a published salt, beside peers: `bem table --generated` plays them and prints aggregates.
//!
//! Whoever changes the learner cannot know the worlds before committing: the commit, and what differs from it, name the seeds.

use crate::{built_bem, output, run};
use anyhow::{Context as _, Result, bail};

/// Worlds of each kind for every unit of scale.
const WORLDS: u64 = 12;

/// Draws twelve worlds of each kind for every unit of scale.
pub fn worlds(scale: u64) -> Result<()> {
    play(WORLDS * scale, "1", &[])
}

/// `cargo xtask battery worlds [--count N] [--salt S]`, and further words for `bem table`.
pub fn with_words(words: &[&str]) -> Result<()> {
    let (mut count, mut salt, mut rest) = (WORLDS, "1", Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--count" => {
                let value = words.next().context("--count needs a number")?;
                count = value.parse().with_context(|| format!("--count {value}: not a whole number"))?;
            }
            "--salt" => salt = words.next().context("--salt needs a word")?,
            "--json" | "--ablate" | "--served" => rest.push(*word),
            "--budget" | "--families" => rest.extend([*word, words.next().context("a value is missing")?]),
            other => bail!(
                "{other:?} is not known here; allowed are --count, --salt, --budget, --families, --ablate, --served and --json"
            ),
        }
    }
    play(count, salt, &rest)
}

fn play(count: u64, salt: &str, rest: &[&str]) -> Result<()> {
    let commit = output("git", &["rev-parse", "HEAD"])?.trim().to_string();
    let changed = output("git", &["diff", "HEAD", "--", "crates"])?;
    // What is not committed is told apart by its length and a sum: it is no release that such a run speaks for.
    let sum = changed.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let sources = if changed.is_empty() { commit } else { format!("{commit}+{sum:x}") };
    let count = count.to_string();
    let words = ["table", "--generated", "--worlds", &count, "--salt", salt, "--sources", &sources];
    run(&built_bem()?, &[&words[..], rest].concat())
}
