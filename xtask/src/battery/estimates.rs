//! Off-policy estimates on logs whose truth is known: the test of `bem-logs` at its full size, and its figures as a page.

use super::{commit, results};
use crate::output;
use anyhow::{Result, ensure};

/// Runs the test and keeps the table that it prints; it has one size, so that the scale changes nothing.
pub fn estimates(_scale: u64) -> Result<()> {
    let words = ["test", "--release", "--quiet", "--package", "bem-logs", "--test", "coverage", "--"];
    let said = output("cargo", &[&words[..], &["--nocapture", "intervals_cover_the_truth"]].concat())?;
    let table: Vec<&str> = said.lines().filter(|line| line.starts_with('|')).collect();
    ensure!(!table.is_empty(), "the test printed no table");
    let page = format!(
        "# Off-policy estimates, measured\n\nWritten by `cargo xtask battery estimates`, commit {}. Each log has 500 decisions in a \
         world of eight contexts and\nthree actions, drawn anew with its chances of reward, its logging policy (the rarest action has \
         one chance in twenty)\nand the policy that is judged. Asked are 93 % and 1.5.\n\n{}\n",
        commit()?,
        table.join("\n")
    );
    print!("{page}");
    Ok(std::fs::write(results("estimates.md")?, page)?)
}
