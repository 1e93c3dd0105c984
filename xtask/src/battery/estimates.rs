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
         one chance in twenty)\nand the policy that is judged. Asked are 93 % and 1.5.\n\nLogs are drawn until 1,000 of them are found to support the policy. \
         Of the others no value is told, so that their\nintervals are not judged: the last column counts them, one number for all \
         estimates of a table, and the shares beside\nit are those of the values that are told. The tests fail from one in a hundred \
         on, and with episodes from one in twenty.\n\n{decisions}\n\nThe same of 1,000 logged episodes of three \
         steps, in a world of four states and two actions, of which the logging policy\ntakes the rarer one with three chances in \
         ten at least; the truth is worked out backward.\n\n{episodes}\n",
        commit()?
    );
    print!("{page}");
    Ok(std::fs::write(results("estimates.md")?, page)?)
}
