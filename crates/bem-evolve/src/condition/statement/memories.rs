//! What a memory structure shows and keeps.

use super::formulas::{holds, select};
use super::numbers::{choose, exceeds, field};
use super::rows::look_up;
use bem_prover::graph::{Bit, Graph};
use bem_synth::statement::{Literal, Memory};

/// What is shown, and the next memory.
type Step = (Vec<Bit>, Vec<Bit>);

/// One step of a structure; none if it does not fit the observation.
pub(super) fn memory(graph: &mut Graph, seen: &[Bit], kept: &[Bit], said: &Memory) -> Option<Step> {
    if kept.len() != said.bits(seen.len()) {
        return None;
    }
    Some(match said {
        Memory::Toggle(condition) => {
            let flips = holds(graph, seen, condition)?;
            let after = graph.xor(kept[0], flips);
            (vec![kept[0], after], vec![after])
        }
        Memory::Latch { set, clear } => {
            let (set, clear) = (holds(graph, seen, set)?, when(graph, seen, clear)?);
            let stays = graph.and(kept[0], !clear);
            (vec![kept[0]], vec![graph.or(set, stays)])
        }
        Memory::Counter { up, down, digits, .. } => counter(graph, seen, kept, (up, down), *digits)?,
        Memory::Delay(_) => {
            let older = kept.get(..kept.len().checked_sub(seen.len())?)?;
            (kept.to_vec(), [seen, older].concat())
        }
        Memory::Echo(echoed, _) => {
            let value = field(seen, echoed)?;
            let (newer, oldest) = kept.split_at(kept.len().checked_sub(value.len())?);
            (oldest.to_vec(), [value, newer].concat())
        }
        Memory::Stack { push, pop, field: pushed, .. } => {
            let (push, pop) = (holds(graph, seen, push)?, holds(graph, seen, pop)?);
            let mut value = vec![Bit::TRUE];
            if let Some(pushed) = pushed {
                value.extend_from_slice(field(seen, pushed)?);
            }
            let width = value.len();
            // All cells after a push, after a pop, and as they were.
            let pushed = [&value, kept].concat();
            let popped = [kept, &vec![Bit::FALSE; width]].concat();
            let rest = choose(graph, pop, popped.get(width..)?, kept);
            (kept.get(..width)?.to_vec(), choose(graph, push, &pushed, &rest))
        }
        Memory::Queue { push, pop, field: pushed, .. } => {
            let (push, pop) = (holds(graph, seen, push)?, holds(graph, seen, pop)?);
            let value = [&[Bit::TRUE], field(seen, pushed)?].concat();
            let width = value.len();
            let popped = [kept, &vec![Bit::FALSE; width]].concat();
            let moved = choose(graph, pop, popped.get(width..)?, kept);
            let marks: Vec<Bit> = moved.iter().step_by(width).copied().collect();
            let mut next = Vec::with_capacity(moved.len());
            for (cell, free) in moved.chunks(width).zip(free_cells(graph, &marks)) {
                let taken = graph.and(push, free);
                next.extend(choose(graph, taken, &value, cell));
            }
            (kept.get(..width)?.to_vec(), next)
        }
        Memory::Registers { write, address, data, delayed } => {
            let (now, data) = (field(seen, address)?, field(seen, data)?);
            let write = holds(graph, seen, write)?;
            let (cells, last) = kept.split_at(data.len() << now.len());
            let named = if *delayed { last } else { now };
            let mut next = Vec::with_capacity(kept.len());
            for (place, cell) in cells.chunks(data.len().max(1)).enumerate() {
                let is_named = spells(graph, named, place);
                let taken = graph.and(write, is_named);
                next.extend(choose(graph, taken, data, cell));
            }
            let column =
                |bit: usize| cells.iter().skip(bit).step_by(data.len()).copied().collect::<Vec<Bit>>();
            let shown = (0..data.len()).map(|bit| select(graph, now, &column(bit))).collect();
            if *delayed {
                next.extend_from_slice(now);
            }
            (shown, next)
        }
        Memory::Tape { write, read, field: written, cell_bits } => {
            let value = field(seen, written)?;
            let (write, read) = (holds(graph, seen, write)?, holds(graph, seen, read)?);
            let (used, rest) = kept.split_at(1 << cell_bits);
            let (values, counter) = rest.split_at(value.len() << cell_bits);
            let (mut next, mut next_values) = (Vec::new(), values.to_vec());
            for (place, free) in free_cells(graph, used).into_iter().enumerate() {
                let taken = graph.and(write, free);
                next.push(graph.or(used[place], taken));
                for (bit, value) in value.iter().enumerate() {
                    let cell = &mut next_values[(bit << cell_bits) + place];
                    *cell = graph.choose(taken, *value, *cell);
                }
            }
            next.extend(next_values);
            next.extend(increment(graph, counter, read));
            ([counter, values].concat(), next)
        }
        Memory::Sticky { inner, raises } => {
            let (flag, below) = kept.split_last()?;
            let (mut shown, mut next) = memory(graph, seen, below, inner)?;
            let raised = look_up(graph, raises, &[seen, &shown].concat(), 1)?[0];
            let now = graph.or(*flag, raised);
            shown.push(now);
            next.push(now);
            (shown, next)
        }
        Memory::Both(first, second) => {
            let (own, other) = kept.split_at(first.bits(seen.len()));
            let (one, two) = (memory(graph, seen, own, first)?, memory(graph, seen, other, second)?);
            ([one.0, two.0].concat(), [one.1, two.1].concat())
        }
        Memory::After(inner) => {
            let (_, next) = memory(graph, seen, kept, inner)?;
            let (shown, _) = memory(graph, seen, &next, inner)?;
            (shown, next)
        }
    })
}

/// A condition that may be missing, and then never holds.
fn when(graph: &mut Graph, seen: &[Bit], condition: &Option<Vec<Literal>>) -> Option<Bit> {
    match condition {
        Some(literals) => holds(graph, seen, literals),
        None => Some(Bit::FALSE),
    }
}

/// The number plus one where a bit is set, within its own width.
pub(super) fn increment(graph: &mut Graph, digits: &[Bit], mut carry: Bit) -> Vec<Bit> {
    let mut next = Vec::with_capacity(digits.len());
    for digit in digits {
        next.push(graph.xor(*digit, carry));
        carry = graph.and(*digit, carry);
    }
    next
}

/// Up where that condition holds and the number is not the last one, else down where the other holds and it is not zero.
fn counter(
    graph: &mut Graph,
    seen: &[Bit],
    now: &[Bit],
    (up, down): (&[Literal], &Option<Vec<Literal>>),
    shows_digits: bool,
) -> Option<Step> {
    let (up, down) = (holds(graph, seen, up)?, when(graph, seen, down)?);
    let is_last = graph.all(now);
    let is_zero = !graph.any(now);
    let rises = graph.and(up, !is_last);
    let falls = graph.all(&[down, !up, !is_zero]);
    // To go down by one is to go up by one with every digit turned over.
    let turned: Vec<Bit> = now.iter().map(|digit| !*digit).collect();
    let (risen, fallen) = (increment(graph, now, rises), increment(graph, &turned, falls));
    let fallen: Vec<Bit> = fallen.iter().map(|digit| !*digit).collect();
    let next = choose(graph, falls, &fallen, &risen);
    let shown = if shows_digits { [&[is_zero], now].concat() } else { vec![is_zero] };
    Some((shown, next))
}

/// Which cells have no mark and follow one that has, or are the first.
fn free_cells(graph: &mut Graph, marks: &[Bit]) -> Vec<Bit> {
    (0..marks.len())
        .map(|place| {
            let before = if place == 0 { Bit::TRUE } else { marks[place - 1] };
            graph.and(before, !marks[place])
        })
        .collect()
}

/// Whether the bits spell this number.
fn spells(graph: &mut Graph, bits: &[Bit], number: usize) -> Bit {
    let each: Vec<Bit> = bits
        .iter()
        .enumerate()
        .map(|(place, bit)| if number >> place & 1 == 1 { *bit } else { !*bit })
        .collect();
    graph.all(&each)
}

/// Codes past the last action become zero.
pub(super) fn in_range(graph: &mut Graph, actions: u16, code: Vec<Bit>) -> Vec<Bit> {
    let exceeds = exceeds(graph, &code, u64::from(actions.saturating_sub(1)));
    code.into_iter().map(|bit| graph.and(bit, !exceeds)).collect()
}
