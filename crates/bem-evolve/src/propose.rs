//! Proposers: from statistics and the log to changes worth trying.
//!
//! Each looks at one family and hands back at most one change; whether it is right is for the condition to say and
//! whether it helps is for the gate. SYNTH is proposed by `bem-synth`, TEACH_EDIT by the teacher's mutations.
//! Clauses: SCC-2, SCC-7, SCC-13.

use crate::apply::{Tables, TablesError};
use crate::condition::circuits::{body_of, compose};
use crate::localize::{LocalizeOptions, TracedEpisode, best_division, blame, frequent_pairs, localize};
use crate::patch::{Body, Change, ExpectedEffects, Member, Patch};
use crate::verify::Improvement;
use bem_base::fixed::Fixed;
use bem_circuit::netlist::{Netlist, Signal};
use bem_circuit::simplify::{Simplifier, simplify};
use bem_machine::family::{Family, STEP_BY_STEP};
use bem_machine::route::directory::RouteInput;
use bem_prover::equivalence::EquivalenceOptions;
use bem_prover::{Budget, CircuitOracle, Synthesis, SynthesisOptions, synthesize};
use std::collections::BTreeMap;

/// A pair of experts must follow each other this often before they become a macro.
const SEQUENCE_COUNT_MIN: u32 = 32;
/// Visits of an expert before it may be found bad.
const RETIRE_VISITS_MIN: u64 = 256;
/// How much worse than the best an expert must be everywhere to be retired.
const RETIRE_MARGIN: Fixed = Fixed::from_raw(Fixed::ONE.to_raw() / 4);
/// Circuits within these sizes are also searched for exactly.
const EXACT_INPUTS_MAX: usize = 6;
/// See [`EXACT_INPUTS_MAX`].
const EXACT_GATES_MAX: usize = 8;

/// Makes a patch of a change, against what there is now.
pub fn patch(
    tables: &Tables,
    serial: u64,
    family: u16,
    change: Change,
    effects: ExpectedEffects,
) -> Result<Patch, TablesError> {
    let parent = tables.parent(change.kind(), family)?;
    Ok(Patch { serial, family, parent, change, effects })
}

/// SPLIT: the bucket that is blamed most, by the bit that the log says divides it best; with the logged evidence.
pub fn propose_split(family: &Family, episodes: &[TracedEpisode]) -> Option<(Change, Improvement)> {
    let suspects = localize(episodes, LocalizeOptions::default());
    let ((bucket, _), _) = *blame(episodes, &suspects).first()?;
    let division = best_division(episodes, bucket, family.shape().observation_bits)?;
    let by = vec![RouteInput::State(division.bit)];
    let mut after = family.directory().clone();
    after.split(bucket, &by).ok()?;
    let improvement = Improvement::Logged { lower_bound: division.gain, steps: division.steps };
    Some((Change::Split { bucket, by, after }, improvement))
}

/// MERGE: the two experts that are best on the two sides of a bit become one that looks at the bit itself.
pub fn propose_merge(family: &Family, episodes: &[TracedEpisode], bucket: u16) -> Option<Change> {
    let division = best_division(episodes, bucket, family.shape().observation_bits)?;
    let (first, second) = division.slots;
    let body = |slot: u8| body_of(family.expert(usize::from(slot))?).ok();
    let body = merge_by_bit(&body(first)?, &body(second)?, division.bit)?;
    let members = vec![
        Member { slot: first, domain: vec![(division.bit, false)] },
        Member { slot: second, domain: vec![(division.bit, true)] },
    ];
    Some(Change::Merge { members, body })
}

/// One expert that does what the first does where the bit is false and what the second does where it is true.
pub fn merge_by_bit(first: &Body, second: &Body, bit: u16) -> Option<Body> {
    if first.writes != second.writes || first.sticky != second.sticky {
        return None;
    }
    let mut reads: Vec<u16> = [&first.reads[..], &second.reads, &[bit]].concat();
    reads.sort_unstable();
    reads.dedup();
    let place = |bit: &u16| Signal::input(reads.binary_search(bit).expect("every bit is in the union"));
    let mut simplifier = Simplifier::new(reads.len());
    let low = simplifier.embed(&first.circuit, &first.reads.iter().map(place).collect::<Vec<_>>());
    let high = simplifier.embed(&second.circuit, &second.reads.iter().map(place).collect::<Vec<_>>());
    let outputs: Vec<Signal> = low
        .into_iter()
        .zip(high)
        .map(|(low, high)| {
            // low ^ bit & (low ^ high)
            let differ = simplifier.gate(bem_circuit::netlist::Op::Xor, low, high);
            let moved = simplifier.gate(bem_circuit::netlist::Op::And, place(&bit), differ);
            simplifier.gate(bem_circuit::netlist::Op::Xor, low, moved)
        })
        .collect();
    let (circuit, support) = shrink(&simplifier.finish(&outputs).ok()?).compact();
    Some(Body {
        reads: support.into_iter().map(|place| reads[place]).collect(),
        writes: first.writes.clone(),
        circuit,
        sticky: first.sticky,
        safe: first.safe && second.safe,
    })
}

/// MACRO: the pair of experts that follow each other most often.
pub fn propose_macro(family: &Family, episodes: &[TracedEpisode]) -> Option<Change> {
    let pairs = frequent_pairs(episodes).into_iter();
    let mut frequent = pairs.filter(|((first, second), count)| {
        SEQUENCE_COUNT_MIN <= *count
            && first != second
            && [*first, *second].iter().all(|slot| usize::from(*slot) != STEP_BY_STEP)
    });
    frequent.find_map(|((first, second), _)| {
        let body = |slot: u8| body_of(family.expert(usize::from(slot))?).ok();
        let body = compose(&[body(first)?, body(second)?]).ok()?;
        Some(Change::Macro { sequence: vec![first, second], body })
    })
}

/// SUPEROPT: the expert that acts most often among those that can be made smaller.
pub fn propose_superoptimized(family: &Family, episodes: &[TracedEpisode]) -> Option<Change> {
    let mut uses: BTreeMap<u8, u32> = BTreeMap::new();
    episodes.iter().flatten().for_each(|step| *uses.entry(step.slot).or_default() += 1);
    let mut hot: Vec<(u8, u32)> = uses.into_iter().collect();
    hot.sort_by_key(|(slot, count)| (std::cmp::Reverse(*count), *slot));
    hot.into_iter().filter(|(slot, _)| usize::from(*slot) != STEP_BY_STEP).find_map(|(slot, _)| {
        let old = family.expert(usize::from(slot))?.placed().circuit();
        let circuit = shrink(old);
        (circuit.gates().len() < old.gates().len()).then_some(Change::Superoptimize { slot, circuit })
    })
}

/// A circuit of the same meaning with no more gates: simplified, and if it is small, searched for exactly.
pub fn shrink(circuit: &Netlist) -> Netlist {
    let simple = simplify(circuit);
    let best = if simple.gates().len() <= circuit.gates().len() { simple } else { circuit.clone() };
    let (compact, support) = best.compact();
    let gates = compact.gates().len();
    if EXACT_INPUTS_MAX < compact.inputs() || !(2..=EXACT_GATES_MAX).contains(&gates) {
        return best;
    }
    let oracle = CircuitOracle::new(compact, EquivalenceOptions::default());
    let options = SynthesisOptions { gates_max: gates - 1, budget: Budget::conflicts(20_000) };
    let Synthesis::Found { circuit: found, .. } = synthesize(&oracle, options, &mut |_| {}) else {
        return best;
    };
    let mut builder = bem_circuit::netlist::Builder::new(circuit.inputs());
    let inputs: Vec<Signal> = support.into_iter().map(Signal::input).collect();
    let outputs = builder.embed(&found, &inputs);
    let exact = builder.finish(&outputs).expect("a smaller circuit is within the bounds of the larger");
    if exact.gates().len() < best.gates().len() { exact } else { best }
}

/// RETIRE: an expert that was tried often and is far from the best in every bucket where it was tried.
pub fn propose_retire(family: &Family) -> Option<Change> {
    let candidates = family.occupied().filter(|(slot, _)| *slot != STEP_BY_STEP && !family.is_sticky(*slot));
    let mut hopeless = candidates.map(|(slot, _)| slot).filter(|slot| {
        let (mut visits, mut worse_everywhere) = (0u64, true);
        for bucket in family.buckets().iter().filter(|bucket| bucket.live() >> slot & 1 == 1) {
            let own = u64::from(bucket.statistics(*slot).visits);
            visits += own;
            let arms =
                (0..16).filter(|arm| bucket.live() >> arm & 1 == 1 && 0 < bucket.statistics(*arm).visits);
            let best = arms.map(|arm| bucket.mean_loss(arm)).min();
            worse_everywhere &=
                own == 0 || best.is_some_and(|best| best.plus(RETIRE_MARGIN) < bucket.mean_loss(*slot));
        }
        RETIRE_VISITS_MIN <= visits && worse_everywhere
    });
    hopeless.next().map(|slot| Change::Retire { slot: slot as u8 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::battery::Laboratory;
    use crate::localize::TracedStep;
    use crate::patch::PatchKind;
    use crate::verify::verify;
    use bem_base::environment::Bits;
    use bem_base::prng::Prng;

    /// Steps in which slot 1 is right where bit 2 is false and slot 2 where it is true.
    fn log() -> Vec<TracedEpisode> {
        let mut prng = Prng::stream(1, "log");
        let mut episode = Vec::new();
        for time in 0..1_200 {
            let mut observation = Bits::ZERO;
            observation.set_field(0, 6, prng.below(64));
            let slot = 1 + (time % 2) as u8;
            let right = observation.get(2) == (slot == 2);
            let loss = if right { Fixed::ZERO } else { Fixed::ONE };
            episode.push(TracedStep { bucket: 0, slot, loss, observation });
        }
        vec![episode]
    }

    #[test]
    fn what_is_proposed_from_a_log_passes_its_condition() {
        let laboratory = Laboratory::new();
        let (tables, family) = (laboratory.tables(), laboratory.family());
        let (split, improvement) = propose_split(family, &log()).unwrap();
        assert!(matches!(&split, Change::Split { by, .. } if *by == [RouteInput::State(2)]));
        assert!(matches!(improvement, Improvement::Logged { lower_bound, .. } if Fixed::ZERO < lower_bound));
        let merge = propose_merge(family, &log(), 0).unwrap();
        let sequence = propose_macro(family, &log()).unwrap();
        let smaller = propose_superoptimized(
            family,
            &[log()[0].iter().map(|step| TracedStep { slot: 3, ..*step }).collect()],
        );
        let smaller = smaller.unwrap();
        for (change, kind) in [
            (split, PatchKind::Split),
            (merge, PatchKind::Merge),
            (sequence, PatchKind::Macro),
            (smaller, PatchKind::Superoptimize),
        ] {
            let patch = patch(tables, 100, 0, change, ExpectedEffects::default()).unwrap();
            assert_eq!(patch.kind(), kind);
            verify(patch, &laboratory.context()).unwrap();
        }
    }

    #[test]
    fn only_an_expert_that_is_bad_everywhere_is_retired() {
        use bem_base::environment::Outcome;
        let laboratory = Laboratory::new();
        let mut family = laboratory.family().clone();
        assert_eq!(propose_retire(&family), None);
        let outcome = |reward| Outcome { reward, done: true, bad: false };
        for _ in 0..300 {
            family.credit(0, 1, &outcome(1_000));
            family.credit(0, 2, &outcome(0));
        }
        assert_eq!(propose_retire(&family), Some(Change::Retire { slot: 2 }));
    }
}
