//! The condition of SPLIT: the two halves are the old bucket and nothing else.
//!
//! Promised, for every value of the declared bits: what was not routed to the bucket goes where it went before;
//! what was, goes to the bucket where the parity of the dividing bits is even and to the new bucket where it is
//! odd; and both halves can be reached. The dividing bits exist. Not promised: that the halves differ in anything
//! that matters; that is what the log was asked and what statistics will show. Clauses: SCC-2, SCC-3, VM-6.

use super::{Context, Finding, Rejection, budget, misfit, prove};
use bem_checker::Cnf;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_machine::family::{Family, FamilyError};
use bem_machine::memory::segment::{Caller, SegmentMap};
use bem_machine::route::directory::{Directory, DirectoryError, RouteInput};
use bem_prover::encode::{encode_circuit, fresh_inputs, require_any};
use bem_synth::function::build_word_table;
use std::collections::BTreeMap;

/// Bits of a bucket's number; the new bucket's included.
const BUCKET_BITS: usize = 11;

/// Shows all of the condition.
pub fn check(
    context: &Context<'_>,
    family: &Family,
    bucket: u16,
    by: &[RouteInput],
    after: &Directory,
) -> Result<Vec<Finding>, Rejection> {
    let before = family.directory();
    let count = before.bucket_count();
    if count <= usize::from(bucket) {
        return Err(FamilyError::from(DirectoryError::UnknownBucket { bucket, count }).into());
    }
    if after.bucket_count() != count + 1 {
        return Err(misfit(format!("{} buckets after a split of {count}", after.bucket_count())));
    }
    check_declared(context, family, by)?;
    let (circuit, inputs) = refinement(before, after, bucket, by)?;
    let mut base = Cnf::new(0);
    let wires = fresh_inputs(&mut base, inputs);
    let outputs = encode_circuit(&mut base, &circuit, &wires);
    let budget = budget(context.config);
    let mut negation = Cnf::new(base.variables());
    require_any(&mut negation, &outputs[..1]);
    let refines = prove("halves of the bucket", &base, &negation, inputs, budget)?;
    // Each half must be reachable: with the demand to be in it, the base must still have a model.
    let mut findings = vec![Finding::Compared { condition: "declared bits" }, refines];
    for half in &outputs[1..] {
        let mut reached = base.clone();
        require_any(&mut reached, &[*half]);
        findings.push(prove("a half that can be reached", &reached, &negation, inputs, budget)?);
    }
    Ok(findings)
}

fn check_declared(context: &Context<'_>, family: &Family, by: &[RouteInput]) -> Result<(), Rejection> {
    if by.is_empty() {
        return Err(misfit("a split needs at least one bit"));
    }
    let map = SegmentMap::new(context.config);
    for input in by {
        let exists = match input {
            RouteInput::State(bit) => usize::from(*bit) < family.layout().state_bits(),
            RouteInput::Shared { address, bit } => {
                *bit < 64 && map.segment_of(*address).is_some_and(|segment| Caller::Expert.may_read(segment))
            }
        };
        if !exists {
            return Err(misfit(format!("{input:?} is no bit that routing may depend on")));
        }
    }
    Ok(())
}

/// A circuit over all declared bits: is routing wrong here, are we in the even half, are we in the odd half.
fn refinement(
    before: &Directory,
    after: &Directory,
    bucket: u16,
    by: &[RouteInput],
) -> Result<(Netlist, usize), Rejection> {
    let mut declared: Vec<RouteInput> = [before.inputs(), after.inputs(), by].concat();
    declared.sort_unstable();
    declared.dedup();
    let mut builder = Builder::new(declared.len());
    let old = route(&mut builder, before, &declared);
    let new = route(&mut builder, after, &declared);
    let odd = parity(&mut builder, &declared, |input| by.contains(&input));
    let ours = is_bucket(&mut builder, &old, bucket);
    let child = before.bucket_count() as u16;
    // Where routing should lead: only our bucket's odd half moves.
    let moved = builder.and(ours, odd);
    let differences: Vec<Signal> = (0..BUCKET_BITS)
        .map(|bit| {
            let wanted = builder.mux(moved, Signal::constant(child >> bit & 1 == 1), old[bit]);
            builder.xor(wanted, new[bit])
        })
        .collect();
    let wrong = builder.or_all(&differences);
    let even = builder.and_not(ours, odd);
    let circuit = builder.finish(&[wrong, even, moved]).map_err(|error| misfit(error.to_string()))?;
    Ok((circuit, declared.len()))
}

/// The number of the bucket, lowest bit first.
fn route(builder: &mut Builder, directory: &Directory, declared: &[RouteInput]) -> Vec<Signal> {
    let signature: Vec<Signal> = (0..directory.depth())
        .map(|position| {
            parity(builder, declared, |input| {
                directory.signature(|known| known == input) >> position & 1 == 1
            })
        })
        .collect();
    let entries = directory.entries().iter().enumerate();
    let table: BTreeMap<u64, u64> =
        entries.map(|(signature, bucket)| (signature as u64, u64::from(*bucket))).collect();
    build_word_table(builder, &signature, &table, BUCKET_BITS)
}

fn parity(builder: &mut Builder, declared: &[RouteInput], takes_part: impl Fn(RouteInput) -> bool) -> Signal {
    let places = (0..declared.len()).filter(|place| takes_part(declared[*place]));
    let signals: Vec<Signal> = places.map(Signal::input).collect();
    builder.xor_all(&signals)
}

fn is_bucket(builder: &mut Builder, bits: &[Signal], bucket: u16) -> Signal {
    let agree: Vec<Signal> = bits
        .iter()
        .enumerate()
        .map(|(place, bit)| if bucket >> place & 1 == 1 { *bit } else { builder.not(*bit) })
        .collect();
    builder.and_all(&agree)
}
