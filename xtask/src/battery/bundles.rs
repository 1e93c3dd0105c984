//! Bundles: policies of every family and of the five problems exported, accepted by both checkers, and refused when one
//! thing is changed.

use super::{commit, results, scratch, text};
use crate::{build, run, target};
use anyhow::Result;

/// Mutants of each of seven parts at scale 1; each is asked about as it is and signed anew.
const MUTANTS: u64 = 2_000;

/// Runs the battery of `crates/bem/examples/bundle_mutants.rs`.
pub fn bundles(scale: u64) -> Result<()> {
    let bem = target().join("release/bem").display().to_string();
    let (count, table) = ((MUTANTS * scale).to_string(), scratch("bundles")?.join("table.md"));
    build(&["--example", "bundle_mutants"])?;
    let mutants = target().join("release/examples/bundle_mutants").display().to_string();
    let judged = run(&mutants, &[&bem, &count, text(&table)?]);
    // A page says what was found even where that is too little; nothing is found where a mutant was accepted.
    let Ok(found) = std::fs::read_to_string(table) else { return judged };
    let page = format!(
        "# Bundles and their mutants\n\nWritten by `cargo xtask battery bundles`, commit {}. A mutant differs from the exported \
         bundle in one place; no two are the same. As it is,\nboth checkers refuse it; signed anew with the run's own key it may be accepted only where it \
         still states what is true.\nThe tasks named behind `None:` are those whose bundle carries no statement; docs/formats/bundle.md says when \
         that is so.\nTheir certificates are those of forbidden pairs, if there are any.\n\n{}",
        commit()?,
        found
    );
    std::fs::write(results("bundles.md")?, page)?;
    judged
}
