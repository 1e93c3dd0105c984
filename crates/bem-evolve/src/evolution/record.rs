//! What became of a patch, and what was measured around it: data for the ledger and the report.
//!
//! Clauses: SCC-12, SCC-14.

use crate::condition::Finding;
use crate::patch::PatchKind;
use crate::score::PoxState;
use crate::verify::{AcceptedPatch, Improvement, RETURN_TOLERANCE};
use crate::watch::Contradiction;
use bem_base::digest::Digest;
use bem_base::encode::Writer;
use bem_base::fixed::Fixed;

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In force.
    Applied {
        /// The patch with its proofs, what spoke for it, and its score.
        accepted: Box<AcceptedPatch>,
        /// The structure before and after.
        structure: (Digest, Digest),
    },
    /// Turned down, and why.
    Refused {
        /// By the condition or by the gate, in words.
        reason: String,
        /// What was measured, if it came to that.
        improvement: Option<Improvement>,
    },
    /// In force for a while, and taken back.
    RolledBack {
        /// What contradicted it.
        reason: Contradiction,
    },
}

/// Where the improvement state stood after a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoxReading {
    /// The score that a patch must reach.
    pub threshold: Fixed,
    /// Moving average of scores.
    pub score_average: Fixed,
    /// Moving average of the share that is applied.
    pub yield_average: Fixed,
    /// How far the proposer of this kind is trusted.
    pub trust: Fixed,
}

impl PoxReading {
    pub(super) fn of(pox: &PoxState, kind: PatchKind) -> PoxReading {
        PoxReading {
            threshold: pox.threshold(),
            score_average: pox.score_average(),
            yield_average: pox.yield_average(),
            trust: pox.record(kind).trust(),
        }
    }
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The patch.
    pub serial: u64,
    /// Its kind.
    pub kind: PatchKind,
    /// The family it is about.
    pub family: u16,
    /// When, in steps of the run.
    pub step: u64,
    /// What it is, for people.
    pub words: String,
    /// What was decided.
    pub verdict: Verdict,
    /// Where the improvement state stood after it.
    pub pox: PoxReading,
}

impl Record {
    /// Whether it is in force now.
    pub fn is_applied(&self) -> bool {
        matches!(self.verdict, Verdict::Applied { .. })
    }

    /// What spoke for it, or what was measured before it was turned down.
    pub fn improvement(&self) -> Option<&Improvement> {
        match &self.verdict {
            Verdict::Applied { accepted, .. } => Some(accepted.improvement()),
            Verdict::Refused { improvement, .. } => improvement.as_ref(),
            Verdict::RolledBack { .. } => None,
        }
    }

    /// Writes canonical bytes, for the chain of what happened.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.serial);
        writer.u8(self.kind as u8);
        writer.u16(self.family);
        writer.u64(self.step);
        writer.text(&self.words);
        match &self.verdict {
            Verdict::Applied { accepted, structure } => {
                writer.u8(0);
                accepted.improvement().encode(writer);
                writer.i64(accepted.score().to_raw());
                // A proof is bound by the formula that it shows to have no model.
                let findings = accepted.verified().findings().iter();
                let formulas =
                    findings.filter_map(Finding::proof).map(|(_, certificate)| certificate.formula);
                formulas.for_each(|formula| writer.raw(formula.as_bytes()));
                writer.raw(structure.0.as_bytes());
                writer.raw(structure.1.as_bytes());
            }
            Verdict::Refused { reason, improvement } => {
                writer.u8(1);
                writer.text(reason);
                writer.bool(improvement.is_some());
                improvement.iter().for_each(|improvement| improvement.encode(writer));
            }
            Verdict::RolledBack { reason } => {
                writer.u8(2);
                writer.u32(reason.pairs);
                writer.i64(reason.mean_loss.to_raw());
            }
        }
        let PoxReading { threshold, score_average, yield_average, trust } = self.pox;
        for value in [threshold, score_average, yield_average, trust] {
            writer.i64(value.to_raw());
        }
    }
}

/// What the comparison of before and after rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Basis {
    /// Behaviour is proven unchanged, or no return is at stake.
    Proven = 0,
    /// The rollouts of the gate.
    Gate = 1,
    /// Pairs played after the patch was applied.
    Watch = 2,
}

impl Basis {
    /// All of them, in order of their numbers.
    pub const ALL: [Basis; 3] = [Basis::Proven, Basis::Gate, Basis::Watch];
}

/// The regression guard of one applied patch: mean return without and with it, on the same seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The patch.
    pub serial: u64,
    /// Its kind.
    pub kind: PatchKind,
    /// The family.
    pub family: u16,
    /// What the comparison rests on.
    pub basis: Basis,
    /// Pairs played.
    pub pairs: u32,
    /// Mean return without it, in milli-units.
    pub return_before: Fixed,
    /// Mean return with it, in milli-units.
    pub return_after: Fixed,
    /// The range of returns, in milli-units.
    pub span: i64,
    /// Whether it was taken back.
    pub rolled_back: bool,
}

impl Guard {
    /// A patch may lower the mean return by this share of its range and not more.
    pub const TOLERANCE: Fixed = RETURN_TOLERANCE;
    /// Returns beyond this many milli-units are taken into the means as if they were this large.
    pub const RETURN_MAX: i64 = 1 << 30;

    /// Whether the measured return fell by no more than the tolerance, or the patch is gone.
    pub fn holds(&self) -> bool {
        let allowed = Guard::TOLERANCE.mul_int(self.span.clamp(1, Guard::RETURN_MAX));
        self.rolled_back || self.return_before.minus(self.return_after) <= allowed
    }

    /// Takes the means of episodes that were interleaved: those of the candidate and of the incumbent.
    pub(super) fn take_means(&mut self, episodes: u32, [after, before]: [Option<i64>; 2], span: i64) {
        let mean = |value: Option<i64>| {
            let value = value.unwrap_or(0).clamp(-Guard::RETURN_MAX, Guard::RETURN_MAX);
            Fixed::from_int(value as i32)
        };
        (self.pairs, self.span) = (episodes, span);
        (self.return_before, self.return_after) = (mean(before), mean(after));
    }

    /// Takes the returns of one more pair into the means.
    pub(super) fn observe(&mut self, before: i64, after: i64) {
        self.pairs += 1;
        let mean = |old: Fixed, value: i64| {
            let value = Fixed::from_int(value.clamp(-Guard::RETURN_MAX, Guard::RETURN_MAX) as i32);
            old.plus(value.minus(old).div_count_floor(u64::from(self.pairs)))
        };
        (self.return_before, self.return_after) =
            (mean(self.return_before, before), mean(self.return_after, after));
    }
}
