//! MERGE of experts: those that are right in different places become one that knows the places itself.
//!
//! The merged circuit is put together from its members and then searched for by CEGIS, as small as the budget finds it. No
//! proposer of a run asks for one: pools hold one expert that acts. Clause: SCC-7.

use super::shrink;
use crate::patch::Body;
use bem_circuit::netlist::{Op, Signal};
use bem_circuit::simplify::Simplifier;

/// Bits of STATE and the values they have in some place.
type Cube = Vec<(u16, bool)>;

/// One expert that does what the first does where the bit is false and what the second does where it is true.
pub fn merge_by_bit(first: &Body, second: &Body, bit: u16) -> Option<Body> {
    merge_cubes(&[(first.clone(), vec![(bit, false)]), (second.clone(), vec![(bit, true)])])
}

/// One expert that does what each member does in its cube; cubes are disjoint and cover everything.
fn merge_cubes(members: &[(Body, Cube)]) -> Option<Body> {
    let (first, _) = members.first()?;
    let alike = |body: &Body| (&body.writes, body.sticky) == (&first.writes, first.sticky);
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
    })
}
