//! Whether answers help, and whether a liar does harm: `bem bench people` and `bem bench people_bad` as a page.

use super::{commit, results};
use crate::built_bem;
use anyhow::{Context as _, Result, ensure};
use std::process::Command;

/// Measures both, writes docs/results/annotators.md and fails where something asked for is missed.
pub fn annotators(_scale: u64) -> Result<()> {
    let bem = built_bem()?;
    let (helps, is_enough) = said(&bem, "people")?;
    let (harms, is_harmless) = said(&bem, "people_bad")?;
    let page = format!(
        "# Whether answers help, and whether a liar does harm\n\nWritten by `cargo xtask battery annotators`, commit {}; \
         [people.md](people.md) says what follows from it.\n\n## Helps\n\n{helps}\n## Harms\n\n{harms}",
        commit()?
    );
    std::fs::write(results("annotators.md")?, page)?;
    ensure!(is_enough && is_harmless, "helps enough: {is_enough}; is harmless: {is_harmless}");
    Ok(())
}

/// What a benchmark prints, and whether it reaches what is asked.
fn said(bem: &str, benchmark: &str) -> Result<(String, bool)> {
    println!("$ bem bench {benchmark}");
    let ran = Command::new(bem).args(["bench", benchmark]).output()?;
    ensure!(ran.status.code() < Some(2), "{}", String::from_utf8_lossy(&ran.stderr));
    Ok((String::from_utf8(ran.stdout).context("output that is not text")?, ran.status.success()))
}
