//! From a patch to an accepted patch: the only way, in two steps.
//!
//! [`verify`] shows the condition of the patch's kind and hands back a [`Verified`]; [`accept`] adds measured
//! improvement and hands back an [`AcceptedPatch`]. Both types have private fields and no other constructor, so
//! that whoever holds one knows that the checker, and then the improvement gate, has agreed. A human approval
//! cannot build either: where somebody may add to a score, what is missing without it is written on the patch, which must not
//! act before somebody has. Clauses: SCC-3, SCC-4, SCC-8, HUM-8; decision D-181; invariant 4 of the architecture.

use crate::apply::TablesError;
use crate::condition::{self, Context, Finding, Rejection, circuits, misfit};
use crate::improvement::Evidence;
use crate::improvement::interleaved::Interleaved;
use crate::patch::{Change, Patch, PatchKind, Subject};
use crate::score::{Measured, PoxState};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_base::fixed::Fixed;
use bem_prover::solver::Why;
use bem_teacher::template::measure;
use std::collections::BTreeSet;

/// A patch whose condition was shown. Nothing outside this file can build one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    patch: Patch,
    shape: Option<Shape>,
    findings: Vec<Finding>,
    gates_saved: i64,
}

impl Verified {
    /// The patch.
    pub fn patch(&self) -> &Patch {
        &self.patch
    }

    /// The world that its condition was shown for; none for a template.
    pub fn shape(&self) -> Option<&Shape> {
        self.shape.as_ref()
    }

    /// What was shown, with the proofs.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Proofs that the checker accepted.
    pub fn proofs(&self) -> usize {
        self.findings.iter().filter(|finding| finding.proof().is_some()).count()
    }

    /// Gates of the experts that go less gates of those that come.
    pub fn gates_saved(&self) -> i64 {
        self.gates_saved
    }
}

/// A patch that is proven and measured. Nothing outside this file can build one.
///
/// ```compile_fail,E0451
/// # use bem_evolve::verify::{AcceptedPatch, Improvement, Verified};
/// # use bem_base::fixed::Fixed;
/// fn forge(verified: Verified) -> AcceptedPatch {
///     AcceptedPatch { verified, improvement: Improvement::Static, score: Fixed::ONE, missing: Fixed::ZERO }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedPatch {
    verified: Verified,
    improvement: Improvement,
    score: Fixed,
    missing: Fixed,
}

impl AcceptedPatch {
    /// The patch.
    pub fn patch(&self) -> &Patch {
        &self.verified.patch
    }

    /// What was shown and measured before.
    pub fn verified(&self) -> &Verified {
        &self.verified
    }

    /// What was measured.
    pub fn improvement(&self) -> &Improvement {
        &self.improvement
    }

    /// Its score, without what an approval adds.
    pub fn score(&self) -> Fixed {
        self.score
    }

    /// What an approval must add to its score before it may act; zero where it reaches the threshold by itself.
    pub fn missing(&self) -> Fixed {
        self.missing
    }
}

/// What speaks for a patch, besides its proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Improvement {
    /// Paired rollouts on fresh seeds.
    Rollouts(Evidence),
    /// A lower bound from logged steps. For SPLIT: of the share of the rewards' variance that the new buckets explain. For
    /// RESET: of what is lost by trusting what came before. For GUARD: of how much more often forbidden actions are BAD
    /// than what is done instead.
    Logged {
        /// The bound.
        lower_bound: Fixed,
        /// Logged steps it rests on.
        steps: u32,
    },
    /// For a plan whose gain pairs cannot show within the budget: counts of all logged steps are sure of it, and they
    /// predicted what the acting policy earned.
    Counted {
        /// The gain in return that the counts promise, over the range of returns.
        gain: Fixed,
        /// Episodes of the acting policy whose returns the counts predicted.
        episodes: u32,
    },
    /// For plain actions: their mean payoff in the log is higher, over the range of losses; with several buckets, chosen by
    /// one half of the log and judged by the other.
    Means {
        /// The gain.
        gain: Fixed,
        /// Logged steps it rests on.
        steps: u32,
    },
    /// Nothing is measured: behaviour is proven unchanged, or no return is at stake.
    Static,
    /// Episodes interleaved at random, in a world that cannot be repeated.
    Interleaved(Interleaved),
}

impl Improvement {
    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Improvement::Rollouts(evidence) => {
                writer.u8(0);
                evidence.encode(writer);
            }
            Improvement::Logged { lower_bound, steps } => {
                writer.u8(1);
                writer.i64(lower_bound.to_raw());
                writer.u32(*steps);
            }
            Improvement::Static => writer.u8(2),
            Improvement::Counted { gain, episodes } => {
                writer.u8(3);
                writer.i64(gain.to_raw());
                writer.u32(*episodes);
            }
            Improvement::Means { gain, steps } => {
                writer.u8(4);
                writer.i64(gain.to_raw());
                writer.u32(*steps);
            }
            Improvement::Interleaved(evidence) => {
                writer.u8(5);
                evidence.encode(writer);
            }
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Improvement, DecodeError> {
        let unknown = reader.error("an unknown kind of evidence");
        Ok(match reader.u8()? {
            0 => Improvement::Rollouts(Evidence::decode(reader)?),
            1 => Improvement::Logged { lower_bound: Fixed::from_raw(reader.i64()?), steps: reader.u32()? },
            2 => Improvement::Static,
            3 => Improvement::Counted { gain: Fixed::from_raw(reader.i64()?), episodes: reader.u32()? },
            4 => Improvement::Means { gain: Fixed::from_raw(reader.i64()?), steps: reader.u32()? },
            5 => Improvement::Interleaved(Interleaved::decode(reader)?),
            _ => return Err(unknown),
        })
    }
}

/// The kind of evidence that the proposers of a kind of patch bring. A plan may also be accepted on counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceKind {
    /// Paired rollouts in the world, or interleaved episodes where it cannot be repeated; they cost steps.
    Rollouts,
    /// A lower bound from the log or the machine's own statistics; costs nothing.
    Statistics,
    /// The proof itself: fewer gates at equal behaviour, or no return at stake.
    Exact,
}

impl EvidenceKind {
    /// What a patch of this kind is measured by.
    pub const fn of(kind: PatchKind) -> EvidenceKind {
        match kind {
            PatchKind::Synthesize | PatchKind::Merge | PatchKind::Macro => EvidenceKind::Rollouts,
            PatchKind::Split | PatchKind::Reset | PatchKind::Hold | PatchKind::Guard => {
                EvidenceKind::Statistics
            }
            PatchKind::Retire | PatchKind::Superoptimize | PatchKind::TeachEdit => EvidenceKind::Exact,
        }
    }

    /// What this very patch is measured by: joined contexts are proven to change nothing.
    pub fn of_change(change: &Change) -> EvidenceKind {
        match change {
            Change::Join { .. } => EvidenceKind::Exact,
            other => EvidenceKind::of(other.kind()),
        }
    }
}

/// Why a verified patch is not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// This kind needs another kind of evidence.
    #[error("a {kind:?} patch cannot be accepted on this kind of evidence")]
    WrongEvidence {
        /// The kind.
        kind: PatchKind,
    },
    /// It may be worse by more than the tolerance.
    #[error("the return may fall: the lower bound of the gain is {lower_bound}")]
    MayBeWorse {
        /// The lower confidence bound.
        lower_bound: Fixed,
    },
    /// More BAD episodes than the incumbent.
    #[error("{excess} more BAD episodes than the incumbent")]
    Unsafe {
        /// How many more.
        excess: i32,
    },
    /// The score is below the threshold.
    #[error("score {score} is below the threshold {threshold} (D)")]
    BelowThreshold {
        /// The score.
        score: Fixed,
        /// The threshold.
        threshold: Fixed,
    },
}

/// A lower bound of the gain may lie this far below zero for patches that make the machine smaller: 1/64.
pub const RETURN_TOLERANCE: Fixed = Fixed::from_raw(Fixed::ONE.to_raw() / 64);

/// Shows the condition of a patch against what there is now.
#[doc(alias = "VC")]
pub fn verify(patch: Patch, context: &Context<'_>) -> Result<Verified, Rejection> {
    context.tables.check_current(&patch, context.family).map_err(|error| match error {
        TablesError::Replayed { serial, last } => Rejection::Replayed { serial, last },
        TablesError::Obsolete { .. } => Rejection::Obsolete,
        other => Rejection::Tables(other),
    })?;
    let (findings, gates_saved) = show(&patch, context)?;
    // What was only stated was not shown.
    for finding in &findings {
        if let Finding::Stated { condition, .. } = finding {
            return Err(Rejection::Undecided { condition, why: Why::Budget });
        }
    }
    let family = context.family.filter(|_| patch.change.subject() != Subject::Templates);
    let shape = family.map(|family| family.shape().clone());
    Ok(Verified { patch, shape, findings, gates_saved })
}

pub(crate) fn show(patch: &Patch, context: &Context<'_>) -> Result<(Vec<Finding>, i64), Rejection> {
    if let Change::TeachEdit { tree, difficulty, .. } = &patch.change {
        return Ok((vec![check_template(context, tree, *difficulty)?], 0));
    }
    let family = context.family.ok_or(TablesError::NoFamily { serial: patch.serial })?;
    let gates_of = |slot: u8| {
        circuits::occupant(family, slot).map(|expert| expert.placed().circuit().gates().len() as i64)
    };
    Ok(match &patch.change {
        Change::Retire { slot } => {
            let gates = gates_of(*slot)?;
            if family.held().member == Some(*slot) {
                return Err(misfit("the expert that is held cannot go"));
            }
            (vec![Finding::Compared { condition: "slot in range, and not held" }], gates)
        }
        Change::Split { .. } | Change::Join { .. } | Change::Reset { .. } | Change::Hold { .. } => {
            return condition::routing::check(context, family, &patch.change);
        }
        Change::Guard { rules } => (condition::guard::check(context, family, rules)?, 0),
        Change::Merge { members, body } => {
            let findings = circuits::check_merged(context, family, members, body)?;
            let slots: BTreeSet<u8> = members.iter().map(|member| member.slot).collect();
            let old = slots.into_iter().map(gates_of).sum::<Result<i64, _>>()?;
            (findings, old - body.circuit.gates().len() as i64)
        }
        Change::Superoptimize { slot, circuit } => {
            let findings = circuits::check_superoptimized(context, family, *slot, circuit)?;
            (findings, gates_of(*slot)? - circuit.gates().len() as i64)
        }
        Change::Play { sequence, policy, examples } => {
            let findings = condition::play::check(context, family, sequence, policy, examples)?;
            let slots: BTreeSet<u8> = sequence.iter().copied().collect();
            // What acts from now on is the one expert in place of those that it stands for.
            let old = slots.into_iter().map(gates_of).sum::<Result<i64, _>>()?;
            (findings, old - policy.gates() as i64)
        }
        Change::Synthesize { policy, statement, examples, exceptions } => {
            let claims = condition::synthesize::Claims { statement, examples, exceptions: *exceptions };
            let findings = condition::synthesize::check(context, family, policy, &claims)?;
            (findings, -(policy.gates() as i64))
        }
        Change::TeachEdit { .. } => unreachable!("templates were dealt with above"),
    })
}

/// TEACH_EDIT: the tree can be built, and levels, nodes, steps and difficulty are within bounds and as declared.
///
/// Not promised: that the task can be learned, or that it is worth learning; the teacher's statistics will say.
fn check_template(context: &Context<'_>, tree: &str, difficulty: Fixed) -> Result<Finding, Rejection> {
    let measure = measure(tree).map_err(|error| misfit(format!("the template cannot be built: {error}")))?;
    let config = context.config;
    let bounds = [
        ("levels", measure.depth as u64, config.tree_depth_max, "Depth_op_tree_max"),
        ("nodes", measure.size as u64, config.tree_nodes_max, "Size_op_tree_max"),
        ("steps", u64::from(measure.horizon), config.episode_steps_max, "H_episode_max"),
    ];
    for (what, found, bound, parameter) in bounds {
        if u64::from(bound) < found {
            return Err(misfit(format!("{found} {what} exceed the bound of {bound} ({parameter})")));
        }
    }
    if measure.difficulty != difficulty {
        return Err(misfit("the declared difficulty is not the one that follows from the tree"));
    }
    if context.tables.templates().iter().any(|known| known == tree) {
        return Err(misfit("the template exists already"));
    }
    Ok(Finding::Compared { condition: "bounds of the template" })
}

/// Lets a verified patch through the improvement gate.
#[doc(alias = "PoX")]
pub fn accept(
    verified: Verified,
    improvement: Improvement,
    novelty: Fixed,
    pox: &PoxState,
) -> Result<AcceptedPatch, Refusal> {
    let change = &verified.patch.change;
    let (return_gain, safety_gain) = judge(change, &improvement)?;
    let measured = Measured {
        return_gain,
        gates_saved: verified.gates_saved,
        behaviour_is_equal: matches!(
            change,
            Change::Superoptimize { .. } | Change::Join { .. } | Change::Retire { .. }
        ) || is_measured_equal(change, &improvement),
        safety_gain,
        novelty,
    };
    let (score, threshold) = (pox.score(&measured), pox.threshold());
    // Plain actions follow the log, and a guard follows what was BAD: neither competes with what experts gain.
    let is_free = matches!(change, Change::Hold { .. } | Change::Guard { .. } | Change::Retire { .. });
    let missing = if is_free { Fixed::ZERO } else { threshold.minus(score).max(Fixed::ZERO) };
    // People add to what is measured to be no worse, and to nothing else.
    let addable = if is_no_worse(&improvement) { pox.approval() } else { Fixed::ZERO };
    if addable < missing {
        return Err(Refusal::BelowThreshold { score, threshold });
    }
    Ok(AcceptedPatch { verified, improvement, score, missing })
}

/// Whether the measured lower bound of the gain is at least zero.
fn is_no_worse(improvement: &Improvement) -> bool {
    let bound = match improvement {
        Improvement::Rollouts(evidence) => evidence.lower_bound,
        Improvement::Interleaved(evidence) => evidence.lower_bound,
        Improvement::Logged { lower_bound, .. } => *lower_bound,
        Improvement::Counted { gain, .. } | Improvement::Means { gain, .. } => *gain,
        Improvement::Static => Fixed::ZERO,
    };
    Fixed::ZERO <= bound
}

/// Whether an expert that stands for others did just as well as they in every rollout; then it may live by the gates it
/// saves.
fn is_measured_equal(change: &Change, improvement: &Improvement) -> bool {
    let is_equal = match improvement {
        Improvement::Rollouts(evidence) => evidence.mean == Fixed::ZERO && evidence.bad_excess == 0,
        Improvement::Interleaved(evidence) => evidence.differing == 0,
        _ => false,
    };
    matches!(change, Change::Merge { .. } | Change::Play { .. }) && is_equal
}

/// The gain in return and in safety that the evidence shows, if it is the right kind for the patch.
fn judge(change: &Change, improvement: &Improvement) -> Result<(Fixed, Fixed), Refusal> {
    let kind = change.kind();
    match (change, improvement) {
        (
            Change::Synthesize { .. } | Change::Merge { .. } | Change::Play { .. },
            Improvement::Rollouts(evidence),
        ) => {
            if evidence.is_unsafe() {
                return Err(Refusal::Unsafe { excess: evidence.bad_excess });
            }
            let adds = matches!(change, Change::Synthesize { .. });
            let floor = if adds { Fixed::ZERO } else { RETURN_TOLERANCE.negated() };
            if evidence.pairs == 0 || evidence.lower_bound < floor {
                return Err(Refusal::MayBeWorse { lower_bound: evidence.lower_bound });
            }
            // An excess that the veto lets pass is within chance and counts as none.
            let fewer = Fixed::from_ratio(-i64::from(evidence.bad_excess.min(0)), i64::from(evidence.pairs));
            // A bound below zero that the tolerance allows is no gain, and no loss either.
            Ok((evidence.lower_bound.max(Fixed::ZERO), fewer))
        }
        (
            Change::Synthesize { .. } | Change::Merge { .. } | Change::Play { .. },
            Improvement::Interleaved(evidence),
        ) => {
            if evidence.is_unsafe() {
                return Err(Refusal::Unsafe { excess: evidence.bad_excess() });
            }
            let adds = matches!(change, Change::Synthesize { .. });
            let floor = if adds { Fixed::ZERO } else { RETURN_TOLERANCE.negated() };
            if evidence.episodes == 0 || evidence.lower_bound < floor {
                return Err(Refusal::MayBeWorse { lower_bound: evidence.lower_bound });
            }
            let fewer = i64::from(-evidence.bad_excess().min(0));
            let fewer = Fixed::from_ratio(fewer, i64::from(evidence.episodes));
            Ok((evidence.lower_bound.max(Fixed::ZERO), fewer))
        }
        (
            Change::Split { .. } | Change::Reset { .. } | Change::Guard { .. },
            Improvement::Logged { lower_bound, .. },
        ) => {
            if *lower_bound <= Fixed::ZERO {
                return Err(Refusal::MayBeWorse { lower_bound: *lower_bound });
            }
            Ok((*lower_bound, Fixed::ZERO))
        }
        (Change::Synthesize { .. }, Improvement::Counted { gain, episodes }) => {
            if *gain <= Fixed::ZERO || *episodes == 0 {
                return Err(Refusal::MayBeWorse { lower_bound: *gain });
            }
            Ok((*gain, Fixed::ZERO))
        }
        (Change::Hold { .. }, Improvement::Means { gain, .. }) => {
            if *gain < Fixed::ZERO {
                return Err(Refusal::MayBeWorse { lower_bound: *gain });
            }
            Ok((*gain, Fixed::ZERO))
        }
        (_, Improvement::Static) if EvidenceKind::of_change(change) == EvidenceKind::Exact => {
            Ok((Fixed::ZERO, Fixed::ZERO))
        }
        _ => Err(Refusal::WrongEvidence { kind }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::battery::{Fault, Laboratory};
    use crate::patch::{ExpectedEffects, Form};
    use crate::propose::patch;
    use bem_base::prng::Prng;
    use bem_circuit::netlist::{Builder, Signal};
    use bem_synth::policy::Policy;
    use bem_synth::statement::Statement;

    fn evidence(lower_bound: Fixed, bad_excess: i32) -> Evidence {
        Evidence { pairs: 100, mean: Fixed::HALF, lower_bound, odds: 40, bad_excess }
    }

    fn verified(form: Form) -> Verified {
        let laboratory = Laboratory::new();
        let patch = laboratory.good_patch(form, &mut Prng::stream(1, "verified"));
        verify(patch, &laboratory.context()).unwrap()
    }

    #[test]
    fn a_proof_is_no_improvement_and_an_improvement_must_be_of_the_right_kind() {
        let pox = PoxState::new(Laboratory::new().config());
        let measured = Improvement::Rollouts(evidence(Fixed::HALF, 0));
        let logged = Improvement::Logged { lower_bound: Fixed::HALF, steps: 100 };
        let counted = Improvement::Counted { gain: Fixed::HALF, episodes: 10 };
        let means = Improvement::Means { gain: Fixed::HALF, steps: 100 };
        let interleaved = Improvement::Interleaved(Interleaved {
            episodes: 200,
            differing: 100,
            mean: Fixed::HALF,
            lower_bound: Fixed::HALF,
            odds: 40,
            bad: [0, 0],
        });
        for form in Form::ALL {
            let passes = |improvement| accept(verified(form), improvement, Fixed::ONE, &pox).is_ok();
            let wanted = EvidenceKind::of_change(&verified(form).patch.change);
            let is_hold = form == Form::Hold;
            assert_eq!(passes(measured), wanted == EvidenceKind::Rollouts, "{form:?}");
            assert_eq!(passes(interleaved), wanted == EvidenceKind::Rollouts, "{form:?}");
            assert_eq!(passes(logged), wanted == EvidenceKind::Statistics && !is_hold, "{form:?}");
            assert_eq!(passes(means), is_hold, "{form:?}");
            assert_eq!(passes(counted), form == Form::Synthesize, "{form:?}");
            assert_eq!(passes(Improvement::Static), wanted == EvidenceKind::Exact, "{form:?}");
        }
    }

    #[test]
    fn what_may_be_worse_or_is_bad_more_often_is_refused() {
        let pox = PoxState::new(Laboratory::new().config());
        let refusal = |form, evidence| {
            accept(verified(form), Improvement::Rollouts(evidence), Fixed::ONE, &pox).unwrap_err()
        };
        let worse = evidence(Fixed::from_ratio(-1, 128), 0);
        assert!(matches!(refusal(Form::Synthesize, worse), Refusal::MayBeWorse { .. }));
        let much_worse = evidence(Fixed::from_ratio(-1, 32), 0);
        assert!(matches!(refusal(Form::Merge, much_worse), Refusal::MayBeWorse { .. }));
        let bad = evidence(Fixed::HALF, 3);
        assert_eq!(refusal(Form::Synthesize, bad), Refusal::Unsafe { excess: 3 });
        let interleaved = |lower_bound, bad| {
            let measured =
                Interleaved { episodes: 200, differing: 100, mean: Fixed::HALF, lower_bound, odds: 40, bad };
            accept(verified(Form::Synthesize), Improvement::Interleaved(measured), Fixed::ONE, &pox)
                .unwrap_err()
        };
        assert!(matches!(interleaved(Fixed::from_ratio(-1, 64), [0, 0]), Refusal::MayBeWorse { .. }));
        assert_eq!(interleaved(Fixed::HALF, [4, 0]), Refusal::Unsafe { excess: 4 });
        let nothing = Improvement::Rollouts(evidence(Fixed::ZERO, 0));
        let refused = accept(verified(Form::Synthesize), nothing, Fixed::ZERO, &pox).unwrap_err();
        assert!(matches!(refused, Refusal::BelowThreshold { .. }));
    }

    /// A policy for the laboratory whose action's bits are these two functions of all inputs.
    fn laboratory_policy(build: impl Fn(&mut Builder) -> [Signal; 2]) -> Policy {
        let mut builder = Builder::new(6);
        let action = build(&mut builder);
        let circuit = builder.finish(&action).unwrap();
        Policy::new(circuit, (0..6).collect(), 0, 3).unwrap()
    }

    fn rejection(policy: Policy) -> Rejection {
        let laboratory = Laboratory::new();
        let (statement, examples) = (Statement::constant(0), Vec::new());
        let change = Change::Synthesize { policy, statement, examples, exceptions: 0 };
        let patch =
            patch(laboratory.tables(), Some(laboratory.family()), 99, 0, change, ExpectedEffects::default())
                .unwrap();
        verify(patch, &laboratory.context()).unwrap_err()
    }

    #[test]
    fn the_counterexample_to_the_action_range_shows_the_action_that_is_none() {
        let policy = laboratory_policy(|builder| {
            let both = builder.and_all(&[Signal::input(0), Signal::input(3), Signal::input(5)]);
            [both, both]
        });
        let Rejection::Refuted { condition: "action range", counterexample } = rejection(policy.clone())
        else {
            panic!("the code 3 is no action");
        };
        assert_eq!(policy.circuit().evaluate(&counterexample), [true, true]);
    }

    #[test]
    fn proofs_of_a_verified_patch_are_accepted_again_and_belong_to_their_formula() {
        let shown = [Form::Synthesize, Form::Guard, Form::Merge].map(verified);
        assert!(
            shown.iter().all(|verified| 1 <= verified.proofs()),
            "each of them proves something by clauses"
        );
        let findings = shown.iter().flat_map(Verified::findings);
        let proofs: Vec<_> = findings.filter_map(Finding::proof).collect();
        for (place, (formula, certificate)) in proofs.iter().enumerate() {
            assert!(certificate.check(formula).is_ok());
            let other = proofs[(place + 1) % proofs.len()].0;
            assert!(certificate.check(other).is_err());
        }
    }

    #[test]
    fn an_approval_adds_to_what_is_no_worse_and_lets_nothing_else_in() {
        let threshold = Fixed::from_ratio(9, 10);
        let config = Laboratory::new().config().clone();
        let config = bem_machine::config::GenesisConfig {
            improvement_threshold: threshold,
            improvement_threshold_min: threshold,
            improvement_threshold_max: threshold,
            ..config
        };
        let mut pox = PoxState::new(&config);
        let small = Fixed::from_ratio(1, 4);
        let measured = |bound| Improvement::Rollouts(evidence(bound, 0));
        let judged =
            |pox: &PoxState, form, improvement| accept(verified(form), improvement, Fixed::ZERO, pox);
        // Better, and not by enough: refused, unless people may add what is missing.
        let refused = judged(&pox, Form::Synthesize, measured(small)).unwrap_err();
        assert!(matches!(refused, Refusal::BelowThreshold { .. }));
        pox.lend_approval(Fixed::ONE);
        let accepted = judged(&pox, Form::Synthesize, measured(small)).unwrap();
        assert_eq!(accepted.score().plus(accepted.missing()), threshold);
        assert!(Fixed::ZERO < accepted.missing());
        pox.lend_approval(accepted.missing().minus(Fixed::from_raw(1)));
        assert!(judged(&pox, Form::Synthesize, measured(small)).is_err(), "too little to be added");
        // With all that anybody can add: what may be worse is refused, and so is what is BAD or measured by the wrong evidence.
        pox.lend_approval(Fixed::from_int(1_000));
        let below = Fixed::from_ratio(-1, 128);
        let refused = judged(&pox, Form::Synthesize, measured(below)).unwrap_err();
        assert!(matches!(refused, Refusal::MayBeWorse { .. }));
        let refused = judged(&pox, Form::Merge, measured(below)).unwrap_err();
        assert!(matches!(refused, Refusal::BelowThreshold { .. }), "within the tolerance, and below zero");
        let refused = judged(&pox, Form::Synthesize, Improvement::Rollouts(evidence(small, 9))).unwrap_err();
        assert!(matches!(refused, Refusal::Unsafe { .. }));
        let refused = judged(&pox, Form::Synthesize, Improvement::Static).unwrap_err();
        assert!(matches!(refused, Refusal::WrongEvidence { .. }));
        // A patch whose condition does not hold never comes so far: nothing of it can be accepted.
        let laboratory = Laboratory::new();
        let mut prng = Prng::stream(1, "unproven");
        let unproven = laboratory.bad_patch(Form::Synthesize, Fault::WrongStatement, &mut prng).unwrap();
        assert!(verify(unproven, &laboratory.context()).is_err());
        // What needs nobody's word says so.
        let enough = accept(verified(Form::Synthesize), measured(Fixed::ONE), Fixed::ONE, &pox).unwrap();
        assert_eq!(enough.missing(), Fixed::ZERO);
    }
}
