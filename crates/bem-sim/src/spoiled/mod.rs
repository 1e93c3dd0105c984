//! Patches of real histories, spoiled one at a time by somebody who has the key: the audit behind `bem verify` must refuse
//! every one of them, and accept the honest ones.
//!
//! A forged history is written anew as a whole, so that chain, tree, table roots and signature fit; only what the patch
//! *means* can give it away. Where the patch is wrong in itself, the verifier that a learner asks must turn it down too. What
//! counts as wrong is decided by readings of their own ([`plain`], `spoil.rs`). Clauses: SCC-3, SCC-4, LOG-2.

pub mod plain;
mod specimens;
mod spoil;

use crate::removal::{History, write};
use bem_base::prng::Prng;
use bem_engine::journal::RunConditions;
use bem_ledger::audit::{AuditVerdict, Conditions, audit};
use bem_ledger::testing::signer;
use plain::Leniency;
use specimens::{Specimen, name_of, specimens};
use std::collections::BTreeMap;

/// What is spoiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpoiledPart {
    /// The statement says something else than the circuit does.
    Statement,
    /// The rows of the log, or how many of them are exceptions.
    Rows,
    /// The rules of a guard.
    Guard,
    /// The formula that a certificate is about; where it has no model, with a proof of that.
    Cnf,
    /// The proof.
    Certificate,
    /// What the tables hold after the patch.
    Leaf,
}

impl SpoiledPart {
    /// All of them.
    pub const ALL: [SpoiledPart; 6] = [
        SpoiledPart::Statement,
        SpoiledPart::Rows,
        SpoiledPart::Guard,
        SpoiledPart::Cnf,
        SpoiledPart::Certificate,
        SpoiledPart::Leaf,
    ];
}

/// What a battery of spoiled histories found; nothing in it was accepted that must not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Spoiled patches that the audit refused, by kind.
    pub refused: BTreeMap<SpoiledPart, u64>,
    /// Those of them that are wrong in themselves, and that the verifier turned down as well.
    pub turned_down: BTreeMap<SpoiledPart, u64>,
    /// Honest histories that were accepted.
    pub accepted: u64,
    /// Patches in force that were spoiled, by what they are.
    pub specimens: BTreeMap<String, u64>,
    /// Spoiled proofs that a checker with this mistake would accept.
    pub noticed: Vec<(Leniency, u64)>,
}

/// An honest history is audited with every so many spoiled ones.
const HONEST_EVERY: u64 = 8;
/// Draws without a patch that can be spoiled before a battery gives up.
const DRAWS_MAX: u64 = 10_000;

/// Spoils `count` patches of each kind, from the histories of so many tasks; the first that is accepted is an error.
pub fn run(seed: u64, count: u64, tasks: usize) -> Result<Report, String> {
    let specimens = specimens(tasks)?;
    let mut report =
        Report { noticed: Leniency::ALL.map(|mistake| (mistake, 0)).to_vec(), ..Report::default() };
    for specimen in &specimens {
        *report.specimens.entry(name_of(&specimen.patch().0.change)).or_default() += 1;
        accept(specimen, &mut report)?;
    }
    for kind in SpoiledPart::ALL {
        let mut prng = Prng::stream(seed, &format!("spoiled/{kind:?}"));
        for number in 0..count {
            refuse(&specimens, kind, &mut prng, &mut report)
                .map_err(|reason| format!("number {number}: {reason}"))?;
            if number % HONEST_EVERY == 0 {
                accept(&specimens[prng.below(specimens.len() as u64) as usize], &mut report)?;
            }
        }
    }
    Ok(report)
}

/// Spoils one patch of some specimen and has it refused.
fn refuse(
    specimens: &[Specimen],
    kind: SpoiledPart,
    prng: &mut Prng,
    report: &mut Report,
) -> Result<(), String> {
    let mut draw = || {
        let specimen = &specimens[prng.below(specimens.len() as u64) as usize];
        Some((specimen, specimen.spoil(kind, prng)?))
    };
    let drawn = (0..DRAWS_MAX).find_map(|_| draw());
    let (specimen, spoiled) = drawn.ok_or_else(|| format!("no patch could be spoiled: {kind:?}"))?;
    let what = name_of(&specimen.patch().0.change);
    if let Some(patch) = spoiled.patch {
        if specimen.twin.verify(patch.clone()).is_ok() {
            return Err(format!("{kind:?} of {what}: the verifier accepts {patch:?}"));
        }
        *report.turned_down.entry(kind).or_default() += 1;
    }
    if !is_broken(&spoiled.history, &mut RunConditions::new())? {
        return Err(format!("{kind:?} of {what}: the audit accepts {:?}", spoiled.history.entries.last()));
    }
    if let Some((cnf, steps)) = &spoiled.proof {
        for (mistake, count) in &mut report.noticed {
            *count += u64::from(plain::accepts(cnf, steps, Some(*mistake)));
        }
    }
    *report.refused.entry(kind).or_default() += 1;
    Ok(())
}

fn accept(specimen: &Specimen, report: &mut Report) -> Result<(), String> {
    if is_broken(&specimen.history, &mut RunConditions::new())? {
        return Err(format!("an honest {} is refused", name_of(&specimen.patch().0.change)));
    }
    report.accepted += 1;
    Ok(())
}

/// Writes the history with the key and audits it.
fn is_broken(history: &History, conditions: &mut dyn Conditions) -> Result<bool, String> {
    let mut store = write(history, &signer())?;
    let report = audit(&mut store, None, conditions).map_err(|error| error.to_string())?;
    Ok(matches!(report.verdict, AuditVerdict::Broken { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::digest::Digest;
    use bem_ledger::audit::Rebuilt;
    use bem_ledger::entry::Entry;

    #[test]
    fn of_spoiled_patches_of_every_kind_none_is_accepted_and_every_honest_one_is() {
        let report = run(1, 400, 4).unwrap();
        for kind in SpoiledPart::ALL {
            assert_eq!(report.refused[&kind], 400, "{report:?}");
        }
        assert!(300 <= report.accepted && 3 < report.specimens.len(), "{report:?}");
        // A checker with any one of these mistakes would have let some of the proofs pass.
        for (mistake, count) in &report.noticed {
            assert!(0 < *count, "{mistake:?}: {report:?}");
        }
    }

    /// An audit that takes the certificates' word for what had to be proven.
    struct Blind;

    impl Conditions for Blind {
        fn rebuild(
            &mut self,
            entry: &Entry,
            _: &mut dyn FnMut(&Digest) -> Result<Vec<u8>, String>,
        ) -> Result<Rebuilt, String> {
            let Entry::Patch(patch) = entry else { return Ok(Rebuilt::default()) };
            let formulas = patch.certificates.iter().map(|certificate| certificate.cnf).collect();
            Ok(Rebuilt { formulas, checks: 0 })
        }
    }

    #[test]
    fn an_audit_that_does_not_rebuild_conditions_would_accept_what_is_spoiled() {
        let specimens = specimens(3).unwrap();
        let mut prng = Prng::stream(1, "blind");
        for kind in [SpoiledPart::Statement, SpoiledPart::Rows, SpoiledPart::Guard, SpoiledPart::Leaf] {
            let spoiled = (0..DRAWS_MAX)
                .find_map(|_| specimens[prng.below(specimens.len() as u64) as usize].spoil(kind, &mut prng));
            assert!(!is_broken(&spoiled.unwrap().history, &mut Blind).unwrap(), "{kind:?}");
        }
    }
}
