//! Gates that are said one by one.

use super::rows::gather;
use bem_prover::graph::{Bit, Graph};
use bem_synth::statement::{Wire, Wiring, World};

/// The action's code as the gates say it, which may be past the last action, and the next memory.
pub(super) fn wiring(
    graph: &mut Graph,
    world: &World,
    (seen, kept): (&[Bit], &[Bit]),
    said: &Wiring,
) -> Option<(Vec<Bit>, Vec<Bit>)> {
    let mut signals = vec![Bit::FALSE, Bit::TRUE];
    signals.extend(gather(seen, &said.seen)?);
    signals.extend_from_slice(kept);
    for Wire { says, of: [first, second] } in &said.gates {
        if graph.is_full() {
            return None;
        }
        let (first, second) = (*signals.get(*first as usize)?, *signals.get(*second as usize)?);
        signals.push(gate(graph, *says, first, second)?);
    }
    let outputs: Option<Vec<Bit>> =
        said.outputs.iter().map(|output| signals.get(*output as usize).copied()).collect();
    let mut code = outputs.filter(|outputs| outputs.len() == world.code_bits() + kept.len())?;
    let next = code.split_off(world.code_bits());
    Some((code, next))
}

/// What a gate says: one row of two signals set, all but one, or two of the four.
fn gate(graph: &mut Graph, says: u8, first: Bit, second: Bit) -> Option<Bit> {
    Some(match says {
        0b0000 => Bit::FALSE,
        0b0001 => graph.and(!first, !second),
        0b0010 => graph.and(first, !second),
        0b0011 => !second,
        0b0100 => graph.and(!first, second),
        0b0101 => !first,
        0b0110 => graph.xor(first, second),
        0b0111 => !graph.and(first, second),
        0b1000..=0b1111 => !gate(graph, 0b1111 - says, first, second)?,
        _ => return None,
    })
}
