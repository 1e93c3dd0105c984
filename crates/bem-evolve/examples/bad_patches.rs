//! Tries COUNT bad patches of every form and fault and as many good ones; fails if one is judged wrongly.
//!
//! ```text
//! bad_patches [COUNT] [SEED]
//! ```
//!
//! Without arguments it tries 12,000 with seed 1. What is printed is a table: forms down, faults across.

use bem_evolve::battery::{Fault, run};
use bem_evolve::patch::Form;
use std::io::{Error, Write, stdout};

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: u64| match arguments.get(place) {
        Some(text) => text.parse().map_err(|_| Error::other(format!("{text:?} is no whole number"))),
        None => Ok(default),
    };
    let (count, seed) = (number(0, 12_000)?, number(1, 1)?);
    let report = run(seed, count as usize);
    let mut out = stdout().lock();
    let names: Vec<String> = Fault::ALL.iter().map(|fault| format!("{fault:?}")).collect();
    write!(out, "{:<14}", "bad, refused")?;
    names.iter().try_for_each(|name| write!(out, " {name:>16}"))?;
    writeln!(out, " {:>16}", "good, accepted")?;
    for form in Form::ALL {
        write!(out, "{:<14}", format!("{form:?}"))?;
        for (fault, name) in Fault::ALL.iter().zip(&names) {
            let tried = report.tried.get(&(form, *fault)).copied().unwrap_or(0);
            let passed = report.passed.iter().filter(|(of, by, _)| (*of, by) == (form, fault)).count() as u32;
            write!(out, " {:>width$}", tried - passed, width = name.len().max(16))?;
        }
        writeln!(out, " {:>16}", report.accepted.get(&form).copied().unwrap_or(0))?;
    }
    writeln!(out, "counterexamples: {:?}", report.refuted)?;
    if let Some((form, fault, patch)) = report.passed.first() {
        let holes = report.passed.len();
        return Err(Error::other(format!("{holes} bad patches passed, first {form:?} {fault:?}: {patch:?}")));
    }
    if let Some((form, reason)) = report.refused.first() {
        let refused = report.refused.len();
        return Err(Error::other(format!("{refused} good patches were refused, first {form:?}: {reason}")));
    }
    if !report.is_clean() {
        return Err(Error::other("some form of patch was never tried"));
    }
    writeln!(out, "{count} bad patches, none accepted; {count} good patches, all accepted")
}
