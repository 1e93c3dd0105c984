//! The conditions of patches about a family's buckets: SPLIT, MERGE of buckets, RESET, and HOLD.
//!
//! SPLIT promises: every new bucket is a part of one old bucket, for every value of the declared bits, so that nothing that
//! was kept apart is mixed; every bucket can be reached; only bits that can be seen are looked at; what is held stays the
//! same. MERGE promises: what is held is the same function before and after. RESET promises: the bucket exists and forgets
//! nothing twice. HOLD promises: every bucket holds one action that exists. Not promised: that the parts differ in anything
//! that matters, or that what is held is good; that is what the log was asked. Clauses: SCC-2, SCC-3, VM-6; decision D-21.

use super::{Context, Finding, Rejection, budget, misfit, prove_same};
use crate::apply::edit_of;
use crate::patch::Change;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_machine::family::Family;
use bem_machine::machine::edited;
use bem_machine::route::directory::{Directory, RouteInput};

/// Bits of a bucket's number.
const BUCKET_BITS: usize = 11;

/// Shows all of the condition; also how many buckets are saved.
pub fn check(
    context: &Context<'_>,
    family: &Family,
    change: &Change,
) -> Result<(Vec<Finding>, i64), Rejection> {
    let edit = edit_of(change, family).ok_or_else(|| misfit("the change does not apply to this family"))?;
    let after = edited(context.config, family, edit)?;
    let saved = family.directory().bucket_count() as i64 - after.directory().bucket_count() as i64;
    let findings = match change {
        Change::Split { after: said, .. } => {
            check_said(&after, said)?;
            check_seen(family, said)?;
            vec![check_reachable(said)?, check_refinement(context, family, &after)?]
        }
        Change::Join { after: said, .. } => {
            check_said(&after, said)?;
            vec![check_same(context, family, &after)?]
        }
        _ => vec![Finding::Compared { condition: "buckets and actions exist" }],
    };
    Ok((findings, saved))
}

fn check_said(after: &Family, said: &Directory) -> Result<(), Rejection> {
    if after.directory() == said {
        Ok(())
    } else {
        Err(misfit("the change leads to another directory than it says"))
    }
}

fn check_seen(family: &Family, after: &Directory) -> Result<(), Rejection> {
    let seen = family.shape().observation_bits;
    let is_seen = |input: &RouteInput| matches!(input, RouteInput::State(bit) if *bit < seen);
    match after.inputs().iter().find(|input| !is_seen(input)) {
        Some(input) => Err(misfit(format!("{input:?} cannot be seen: there are {seen} bits"))),
        None => Ok(()),
    }
}

/// For every observation: the old bucket is the one that the new bucket is a part of.
fn check_refinement(context: &Context<'_>, before: &Family, after: &Family) -> Result<Finding, Rejection> {
    let (old, new) = (before.directory(), after.directory());
    let count = old.bucket_count() as u16;
    // A part is numbered after the wholes, and what it is a part of is seen from any of its signatures.
    let whole_of = |part: u16| {
        let pattern = new.subcube(part).pattern;
        let is_set = |input: RouteInput| witness(new, pattern).contains(&input);
        old.bucket(old.signature(is_set))
    };
    let wholes: Vec<u16> = (0..new.bucket_count() as u16).map(whole_of).collect();
    let codes: Vec<u16> = (0..count).collect();
    prove_equal(context, "parts of the old buckets", (old, &codes), (new, &wholes), BUCKET_BITS)
}

/// Declared bits whose signature is this one.
fn witness(directory: &Directory, signature: u64) -> Vec<RouteInput> {
    // Gauss: a basis of the signatures that the declared bits make, each with the bits that it is made of.
    let mut basis: Vec<(u64, Vec<usize>)> = Vec::new();
    for (place, column) in directory.columns().iter().enumerate() {
        let (mut rest, mut made) = (*column, vec![place]);
        for (known, of) in &basis {
            if rest ^ known < rest {
                rest ^= known;
                made.extend(of);
            }
        }
        if rest != 0 {
            basis.push((rest, made));
            basis.sort_by_key(|(known, _)| core::cmp::Reverse(*known));
        }
    }
    let (mut rest, mut made): (u64, Vec<usize>) = (signature, Vec::new());
    for (known, of) in &basis {
        if rest ^ known < rest {
            rest ^= known;
            made.extend(of);
        }
    }
    // A bit that is named twice is not set.
    let is_odd = |place: &usize| made.iter().filter(|named| *named == place).count() % 2 == 1;
    (0..directory.inputs().len()).filter(is_odd).map(|place| directory.inputs()[place]).collect()
}

/// The tests are independent of each other, so that every combination of their results occurs.
fn check_reachable(after: &Directory) -> Result<Finding, Rejection> {
    let reached = |bucket: u16| {
        let subcube = after.subcube(bucket);
        let set = witness(after, subcube.pattern);
        let signature = after.signature(|input| set.contains(&input));
        after.bucket(signature) == bucket
    };
    match (0..after.bucket_count() as u16).find(|bucket| !reached(*bucket)) {
        Some(bucket) => {
            Err(misfit(format!("bucket {bucket} may not be reachable: its tests depend on each other")))
        }
        None => Ok(Finding::Compared { condition: "every bucket can be reached" }),
    }
}

/// What plain actions do is the same function before and after.
fn check_same(context: &Context<'_>, before: &Family, after: &Family) -> Result<Finding, Rejection> {
    let (old, new) =
        ((before.directory(), &before.held().actions[..]), (after.directory(), &after.held().actions[..]));
    prove_equal(context, "the same plain actions", old, new, before.layout().action().len())
}

/// Two directories give the same codes for every value of the bits that either declares.
fn prove_equal(
    context: &Context<'_>,
    condition: &'static str,
    (old, old_codes): (&Directory, &[u16]),
    (new, new_codes): (&Directory, &[u16]),
    width: usize,
) -> Result<Finding, Rejection> {
    let mut declared = [old.inputs(), new.inputs()].concat();
    declared.sort_unstable();
    declared.dedup();
    let circuit = |directory: &Directory, codes: &[u16]| -> Option<Netlist> {
        let frozen = directory.freeze(codes, width)?.ok()?;
        let mut builder = Builder::new(declared.len());
        let place = |input: &RouteInput| declared.binary_search(input).ok().map(Signal::input);
        let inputs: Vec<Signal> = directory.inputs().iter().map(place).collect::<Option<_>>()?;
        let outputs = builder.embed(&frozen, &inputs);
        builder.finish(&outputs).ok()
    };
    let frozen = circuit(old, old_codes).zip(circuit(new, new_codes));
    let (old, new) = frozen.ok_or_else(|| misfit("routing that is no circuit of what is seen"))?;
    prove_same(condition, &old, &new, budget(context.config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::battery::Laboratory;

    fn state(bit: u16) -> RouteInput {
        RouteInput::State(bit)
    }

    /// What the condition says of a split of the laboratory's directory, which bit 3 divides, by these cuts.
    fn split(cuts: Vec<(u16, Vec<RouteInput>)>) -> Result<(Vec<Finding>, i64), String> {
        let laboratory = Laboratory::new();
        let mut after = laboratory.family().directory().clone();
        for (bucket, by) in &cuts {
            let _ = after.split(*bucket, by);
        }
        let change = Change::Split { cuts, after };
        check(&laboratory.context(), laboratory.family(), &change).map_err(|error| error.to_string())
    }

    #[test]
    fn parts_of_old_buckets_are_shown_and_tests_that_depend_on_each_other_are_refused() {
        let (findings, saved) = split(vec![(0, vec![state(1)]), (2, vec![state(4), state(5)])]).unwrap();
        assert_eq!((findings.len(), saved), (2, -2));
        // The parity of two bits that were both tested says nothing new: one of its sides is empty.
        let dependent = vec![(0, vec![state(1)]), (0, vec![state(1), state(3)])];
        assert!(split(dependent).unwrap_err().contains("depend on each other"));
        assert!(split(vec![(0, vec![state(7)])]).unwrap_err().contains("cannot be seen"));
        assert!(split(vec![(9, vec![state(1)])]).is_err());
    }

    #[test]
    fn buckets_are_joined_where_they_hold_the_same() {
        let laboratory = Laboratory::new();
        let mut after = laboratory.family().directory().clone();
        after.join(0, 1).unwrap();
        let join = Change::Join { pairs: vec![(0, 1)], after };
        let shown = check(&laboratory.context(), laboratory.family(), &join);
        assert!(matches!(shown, Ok((_, 1))));
        // With different actions held the machine itself refuses.
        let apart = bem_machine::machine::Edit::Hold {
            actions: vec![0, 1],
            rule: bem_machine::held::Adaptation::Fixed,
        };
        let family = edited(laboratory.config(), laboratory.family(), apart).unwrap();
        assert!(check(&laboratory.context(), &family, &join).is_err());
    }

    #[test]
    fn a_witness_has_the_signature_that_was_asked_for() {
        let mut directory = Directory::deep(64);
        for (bucket, by) in [(0, vec![0, 1]), (0, vec![1, 2]), (1, vec![2, 3]), (0, vec![0, 3, 5])] {
            directory.split(bucket, &by.into_iter().map(state).collect::<Vec<_>>()).unwrap();
        }
        for signature in 0..1 << directory.depth() {
            let set = witness(&directory, signature);
            let found = directory.signature(|input| set.contains(&input));
            // The first three parities are independent, and the fourth of all of them.
            assert_eq!(found, signature);
        }
    }
}
