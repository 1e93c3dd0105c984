//! Bad patches by the thousand: a small laboratory, good patches of every form, and ways to spoil them.
//!
//! Every spoiled patch is wrong by construction or by an evaluation that shares no code with the conditions, so
//! that an accepted one is a hole. A battery in which nothing is accepted would prove nothing: as many good patches
//! go the same way and must all be accepted. [`run`] takes any number of both. Clauses: SCC-2, SCC-3, SCC-4.

mod laboratory;
mod play;
mod spoil;

pub use laboratory::Laboratory;

use crate::condition::Rejection;
use crate::improvement::Evidence;
use crate::patch::{Change, Form, Patch, PatchKind};
use crate::score::PoxState;
use crate::verify::{EvidenceKind, Improvement, accept, verify};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use std::collections::BTreeMap;

/// How a good patch is spoiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// One gate of the circuit computes something else, or the result of a split is another one.
    Flipped,
    /// A number is past its bound, or a place is named that does not exist.
    BoundExceeded,
    /// It was made against other tables.
    WrongParent,
    /// Its serial was applied before.
    Replayed,
    /// The action's code is no action.
    ActionOutOfRange,
    /// A row of the log, a domain or a sequence is not the one that the circuit was made for.
    WrongLabel,
    /// The statement says something else than the circuit does.
    WrongStatement,
    /// There are more or fewer exceptions among the rows of the log than it says.
    WrongExceptions,
    /// The patch is right, but what speaks for it is of another kind, says that it is worse, or is unsafe.
    NotBetter,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 9] = [
        Fault::Flipped,
        Fault::BoundExceeded,
        Fault::WrongParent,
        Fault::Replayed,
        Fault::ActionOutOfRange,
        Fault::WrongLabel,
        Fault::WrongStatement,
        Fault::WrongExceptions,
        Fault::NotBetter,
    ];
}

/// What speaks for a good patch: evidence of the right kind that it is better.
pub fn good_improvement(change: &Change) -> Improvement {
    match EvidenceKind::of_change(change) {
        EvidenceKind::Rollouts => Improvement::Rollouts(Evidence {
            pairs: 50,
            mean: Fixed::HALF,
            lower_bound: Fixed::from_ratio(1, 4),
            odds: 40,
            bad_excess: 0,
        }),
        EvidenceKind::Statistics if change.kind() == PatchKind::Hold => {
            Improvement::Means { gain: Fixed::from_ratio(1, 4), steps: 1_000 }
        }
        EvidenceKind::Statistics => {
            Improvement::Logged { lower_bound: Fixed::from_ratio(1, 4), steps: 1_000 }
        }
        EvidenceKind::Exact => Improvement::Static,
    }
}

/// Evidence that must not let a patch in: of another kind, of a loss, or of more BAD episodes.
fn bad_improvement(change: &Change, prng: &mut Prng) -> Improvement {
    let worse = Fixed::from_ratio(-3 - prng.below(60) as i64, 128);
    let good = Evidence { pairs: 50, mean: Fixed::HALF, lower_bound: Fixed::HALF, odds: 40, bad_excess: 0 };
    let rollouts = [
        Improvement::Rollouts(Evidence { mean: worse, lower_bound: worse, ..good }),
        Improvement::Rollouts(Evidence { bad_excess: 3 + prng.below(10) as i32, ..good }),
        Improvement::Rollouts(Evidence { pairs: 0, ..good }),
    ];
    match EvidenceKind::of_change(change) {
        EvidenceKind::Rollouts if prng.below(4) != 0 => rollouts[prng.below(3) as usize],
        EvidenceKind::Rollouts if prng.bit() => Improvement::Counted { gain: worse, episodes: 20 },
        EvidenceKind::Rollouts => Improvement::Static,
        EvidenceKind::Statistics if change.kind() == PatchKind::Hold && prng.bit() => {
            Improvement::Means { gain: worse, steps: 1_000 }
        }
        EvidenceKind::Statistics if prng.bit() => Improvement::Logged { lower_bound: worse, steps: 1_000 },
        EvidenceKind::Statistics => Improvement::Static,
        EvidenceKind::Exact if prng.bit() => Improvement::Rollouts(good),
        EvidenceKind::Exact => Improvement::Logged { lower_bound: Fixed::HALF, steps: 1_000 },
    }
}

/// What a battery of bad patches found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bad patches tried, by form and fault.
    pub tried: BTreeMap<(Form, Fault), u32>,
    /// Bad patches that were accepted: each is a hole.
    pub passed: Vec<(Form, Fault, Patch)>,
    /// Counterexamples that a solver or a table found, by condition.
    pub refuted: BTreeMap<&'static str, u32>,
    /// Good patches that were accepted, by form.
    pub accepted: BTreeMap<Form, u32>,
    /// Good patches that were not, with the reason.
    pub refused: Vec<(Form, String)>,
}

impl Report {
    /// Whether no bad patch was accepted and every good one was.
    pub fn is_clean(&self) -> bool {
        self.passed.is_empty() && self.refused.is_empty() && self.accepted.len() == Form::ALL.len()
    }
}

/// Tries this many bad patches of all forms in turn, and as many good ones.
pub fn run(seed: u64, count: usize) -> Report {
    run_approved(seed, count, Fixed::ZERO)
}

/// The same where somebody approves everything, which adds this to every score.
pub fn run_approved(seed: u64, count: usize, approval: Fixed) -> Report {
    let laboratory = Laboratory::new();
    let mut pox = PoxState::new(laboratory.config());
    pox.lend_approval(approval);
    let mut prng = Prng::stream(seed, "bad patches");
    let mut report = Report::default();
    let mut tried = 0;
    while tried < count {
        let form = Form::ALL[tried % Form::ALL.len()];
        let fault = Fault::ALL[prng.below(Fault::ALL.len() as u64) as usize];
        let (patch, improvement) = if fault == Fault::NotBetter {
            let patch = laboratory.good_patch(form, &mut prng);
            let improvement = bad_improvement(&patch.change, &mut prng);
            (patch, improvement)
        } else {
            let Some(patch) = laboratory.bad_patch(form, fault, &mut prng) else { continue };
            let improvement = good_improvement(&patch.change);
            (patch, improvement)
        };
        tried += 1;
        *report.tried.entry((form, fault)).or_default() += 1;
        match verify(patch.clone(), &laboratory.context()) {
            Ok(verified) => {
                // Evidence is all that a right patch lacks, so that novelty must not make up for it.
                if accept(verified, improvement, Fixed::ONE, &pox).is_ok() {
                    report.passed.push((form, fault, patch));
                }
            }
            Err(Rejection::Refuted { condition, .. }) => *report.refuted.entry(condition).or_default() += 1,
            Err(_) => {}
        }
        accept_good(&laboratory, form, &pox, &mut prng, &mut report);
    }
    report
}

/// Sends a good patch of this form the whole way.
fn accept_good(laboratory: &Laboratory, form: Form, pox: &PoxState, prng: &mut Prng, report: &mut Report) {
    let patch = laboratory.good_patch(form, prng);
    let improvement = good_improvement(&patch.change);
    let verified = match verify(patch, &laboratory.context()) {
        Ok(verified) => verified,
        Err(rejection) => return report.refused.push((form, rejection.to_string())),
    };
    match accept(verified, improvement, Fixed::ONE, pox) {
        Ok(_) => *report.accepted.entry(form).or_default() += 1,
        Err(refusal) => report.refused.push((form, refusal.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_thousands_of_bad_patches_none_is_accepted_and_of_as_many_good_ones_all_are() {
        let report = run(1, 2_200);
        assert!(report.passed.is_empty(), "{:?}", report.passed[0]);
        assert!(report.refused.is_empty(), "{:?}", report.refused[0]);
        assert!(report.is_clean());
        // Every form is spoiled in at least four ways, and every way occurs.
        for form in Form::ALL {
            assert!(4 <= report.tried.keys().filter(|(of, _)| *of == form).count(), "{form:?}");
            assert_eq!(report.accepted[&form], 200, "{form:?}");
        }
        for fault in Fault::ALL {
            assert!(report.tried.keys().any(|(_, by)| *by == fault), "{fault:?}");
        }
        // Each condition that clauses or tables decide has caught some, so none of them is idle.
        let conditions =
            ["action range", "agreement on a domain", "domains cover all states", "equivalence", "statement"];
        assert!(
            conditions.iter().all(|condition| report.refuted.contains_key(condition)),
            "{:?}",
            report.refuted
        );
    }

    #[test]
    fn no_approval_lets_a_bad_patch_in() {
        let report = run_approved(2, 600, Fixed::from_int(1_000));
        assert!(report.is_clean(), "{:?} {:?}", report.passed, report.refused);
    }
}
