//! MERGE: experts that are right in different places become one that knows the places itself.
//!
//! Places are cubes: the sides of a bit within one bucket, or whole buckets after splits. The merged circuit is put
//! together from its members and then searched for by CEGIS, as small as the budget finds it. Clause: SCC-7.

use super::{Proposal, shrink};
use crate::condition::circuits::body_of;
use crate::localize::{TracedEpisode, best_division};
use crate::patch::{Body, Change, ExpectedEffects, MEMBERS_MAX, Member};
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_circuit::netlist::{Op, Signal};
use bem_circuit::simplify::Simplifier;
use bem_machine::family::{Family, STEP_BY_STEP};
use bem_machine::route::directory::{Directory, RouteInput};

/// Visits, the imagined one included, before an arm may stand for its bucket.
const VISITS_MIN: u32 = 17;

/// Bits of STATE and the values they have in some place.
type Cube = Vec<(u16, bool)>;

/// The best experts of all buckets as one; if routing looks at nothing yet, those of the two sides of a bit.
///
/// The first changes nothing that is done and helps only where it saves gates; the second gains return.
pub fn propose_merge(family: &Family, episodes: &[TracedEpisode]) -> Option<Proposal> {
    let (members, return_gain) = match family.directory().bucket_count() {
        1 => sides(family, episodes)?,
        _ => (buckets(family)?, Fixed::ZERO),
    };
    let merged: Vec<(Body, Cube)> = members
        .iter()
        .map(|member| Some((body_of(family.expert(usize::from(member.slot))?).ok()?, member.domain.clone())))
        .collect::<Option<_>>()?;
    let body = merge_cubes(&merged)?;
    let slots: Vec<String> = members.iter().map(|member| member.slot.to_string()).collect();
    let words = format!("slots {} as one of {} gates", slots.join(", "), body.circuit.gates().len());
    let gates: usize = merged.iter().map(|(body, _)| body.circuit.gates().len()).sum();
    let gates_saved = gates as i32 - body.circuit.gates().len() as i32;
    let effects = ExpectedEffects { return_gain, gates_saved, ..ExpectedEffects::default() };
    Some(Proposal { change: Change::Merge { members, body }, improvement: None, effects, words })
}

/// The experts that are best on the two sides of the bit that divides the only bucket best.
fn sides(family: &Family, episodes: &[TracedEpisode]) -> Option<(Vec<Member>, Fixed)> {
    let division = best_division(episodes, 0, family.shape().observation_bits)?;
    let (low, high) = division.slots;
    let member = |slot, value| Member { slot, domain: vec![(division.bit, value)] };
    Some((vec![member(low, false), member(high, true)], division.gain))
}

/// The best expert of every bucket, where buckets are cubes and at least two experts are named.
fn buckets(family: &Family) -> Option<Vec<Member>> {
    let cubes = cubes(family.directory())?;
    if MEMBERS_MAX < cubes.len() {
        return None;
    }
    let members: Vec<Member> = cubes
        .into_iter()
        .zip(family.buckets())
        .map(|(domain, bucket)| {
            let tried = |arm: &usize| {
                *arm != STEP_BY_STEP
                    && bucket.live() >> arm & 1 == 1
                    && VISITS_MIN <= bucket.statistics(*arm).visits
            };
            let best = (0..ARMS_MAX).filter(tried).min_by_key(|arm| (bucket.mean_loss(*arm), *arm))?;
            Some(Member { slot: best as u8, domain })
        })
        .collect::<Option<_>>()?;
    members.iter().any(|member| member.slot != members[0].slot).then_some(members)
}

/// For every bucket the bits that lead to it; none if a signature bit is a sum of several bits.
fn cubes(directory: &Directory) -> Option<Vec<Cube>> {
    let bit_of = |position: usize| {
        let takes_part =
            |input: &&RouteInput| directory.signature(|known| known == **input) >> position & 1 == 1;
        let mut inputs = directory.inputs().iter().filter(takes_part);
        match (inputs.next(), inputs.next()) {
            (Some(RouteInput::State(bit)), None) => Some(*bit),
            _ => None,
        }
    };
    let bits: Vec<u16> = (0..directory.depth()).map(bit_of).collect::<Option<_>>()?;
    let cube = |bucket: u16| {
        let (mask, value) = directory.subcube(bucket);
        let positions = (0..bits.len()).filter(|position| mask >> position & 1 == 1);
        positions.map(|position| (bits[position], value >> position & 1 == 1)).collect()
    };
    Some((0..directory.bucket_count() as u16).map(cube).collect())
}

/// One expert that does what the first does where the bit is false and what the second does where it is true.
pub fn merge_by_bit(first: &Body, second: &Body, bit: u16) -> Option<Body> {
    merge_cubes(&[(first.clone(), vec![(bit, false)]), (second.clone(), vec![(bit, true)])])
}

/// One expert that does what each member does in its cube; cubes are disjoint and cover everything.
fn merge_cubes(members: &[(Body, Cube)]) -> Option<Body> {
    let (first, _) = members.first()?;
    let alike =
        |body: &Body| (&body.writes, body.sticky, body.safe) == (&first.writes, first.sticky, first.safe);
    if !members.iter().all(|(body, _)| alike(body)) {
        return None;
    }
    let mut reads: Vec<u16> = members
        .iter()
        .flat_map(|(body, cube)| body.reads.iter().copied().chain(cube.iter().map(|(bit, _)| *bit)))
        .collect();
    reads.sort_unstable();
    reads.dedup();
    let place = |bit: &u16| Signal::input(reads.binary_search(bit).expect("every bit is in the union"));
    let mut simplifier = Simplifier::new(reads.len());
    let mut outputs: Vec<Signal> = Vec::new();
    for (body, cube) in members {
        let here = simplifier.embed(&body.circuit, &body.reads.iter().map(place).collect::<Vec<_>>());
        if outputs.is_empty() {
            // Where no other member is at home, the first one is.
            outputs = here;
            continue;
        }
        let mut inside = Signal::TRUE;
        for (bit, value) in cube {
            inside = simplifier.gate(if *value { Op::And } else { Op::AndNot }, inside, place(bit));
        }
        for (output, here) in outputs.iter_mut().zip(here) {
            // old ^ inside & (old ^ here)
            let differ = simplifier.gate(Op::Xor, *output, here);
            let moved = simplifier.gate(Op::And, inside, differ);
            *output = simplifier.gate(Op::Xor, *output, moved);
        }
    }
    let (circuit, support) = shrink(&simplifier.finish(&outputs).ok()?).compact();
    Some(Body {
        reads: support.into_iter().map(|place| reads[place]).collect(),
        writes: first.writes.clone(),
        circuit,
        sticky: first.sticky,
        safe: first.safe,
    })
}
