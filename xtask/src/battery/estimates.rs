//! Off-policy estimates on logs whose truth is known: the tests of `bem-logs` at their full size, and its figures as a page.

use super::{commit, results};
use crate::output;
use anyhow::{Result, ensure};

/// The table that a test of `bem-logs` prints.
fn table(file: &str, name: &str) -> Result<String> {
    let words = ["test", "--release", "--quiet", "--package", "bem-logs", "--test", file, "--"];
    let said = output("cargo", &[&words[..], &["--nocapture", name]].concat())?;
    let table: Vec<&str> = said.lines().filter(|line| line.starts_with('|')).collect();
    ensure!(!table.is_empty(), "{name} printed no table");
    Ok(table.join("\n"))
}

/// Runs the tests and keeps the tables that they print; they have one size, so that the scale changes nothing.
pub fn estimates(_scale: u64) -> Result<()> {
    let decisions = table("coverage", "intervals_cover_the_truth")?;
    let episodes = table("coverage_episodes", "intervals_of_episodes_cover_the_truth")?;
    let page = format!(
        "# Off-policy estimates, measured\n\nWritten by `cargo xtask battery estimates`, commit {}. Each log has 500 decisions in a \
         world of eight contexts and\nthree actions, drawn anew with its chances of reward, its logging policy (the rarest action has \
         one chance in twenty)\nand the policy that is judged. Asked are 93 % and 1.5. Logs that are found not to support the policy are \
         left out, as no\nvalue is told of them: fewer than one in a hundred, and of episodes one in twenty.\n\n{decisions}\n\nThe same of 1,000 logged episodes of three \
         steps, in a world of four states and two actions, of which the logging policy\ntakes the rarer one with three chances in \
         ten at least; the truth is worked out backward.\n\n{episodes}\n",
        commit()?
    );
    print!("{page}");
    Ok(std::fs::write(results("estimates.md")?, page)?)
}
