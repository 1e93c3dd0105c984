//! Whole numbers as bits, the lowest first: sums, comparisons, words made of words.
//!
//! Sums are *defined* by full adders, three bits of a rank at a time in the order given. That is the schoolbook form, and
//! the one in which circuits are built: a sum in another form would take a solver exponential time to tell equal.

use bem_base::environment::Field;
use bem_prover::graph::{Bit, Graph};
use bem_synth::statement::{Making, Word};

/// The bits of a field.
pub(super) fn field<'r>(row: &'r [Bit], field: &Field) -> Option<&'r [Bit]> {
    row.get(usize::from(field.low)..usize::from(field.low) + usize::from(field.width))
}

/// So many of the lowest bits of a constant.
pub(super) fn constant(number: u64, bits: usize) -> Vec<Bit> {
    (0..bits).map(|place| Bit::constant(place < 64 && number >> place & 1 == 1)).collect()
}

/// The sum of bits that count one, two, four and so on, by their ranks.
pub(super) fn sum(graph: &mut Graph, mut ranks: Vec<Vec<Bit>>) -> Vec<Bit> {
    let mut digits = Vec::new();
    while digits.len() < ranks.len() {
        let rank = digits.len();
        let mut open: std::collections::VecDeque<Bit> = core::mem::take(&mut ranks[rank]).into();
        let mut carries = Vec::new();
        while 1 < open.len() {
            let third = if 2 < open.len() { open.remove(2) } else { None };
            let [Some(a), Some(b)] = [open.pop_front(), open.pop_front()] else { break };
            let half = graph.xor(a, b);
            let (digit, carry) = match third {
                // Where the first two differ the third decides, else they do.
                Some(c) => (graph.xor(half, c), graph.choose(half, c, a)),
                None => (half, graph.and(a, b)),
            };
            open.push_back(digit);
            carries.push(carry);
        }
        if !carries.is_empty() {
            ranks.resize(ranks.len().max(rank + 2), Vec::new());
            ranks[rank + 1].extend(carries);
        }
        digits.push(open.pop_front().unwrap_or(Bit::FALSE));
    }
    digits
}

/// How many of the bits are set.
pub(super) fn count(graph: &mut Graph, bits: &[Bit]) -> Vec<Bit> {
    sum(graph, vec![bits.to_vec()])
}

/// The sum of the weights of those bits that are set, and of a constant.
pub(super) fn weighted(graph: &mut Graph, base: u64, weights: &[(Bit, u64)]) -> Vec<Bit> {
    let mut ranks: Vec<Vec<Bit>> = Vec::new();
    for (bit, weight) in [(Bit::TRUE, base)].iter().chain(weights) {
        for rank in (0..64).filter(|rank| weight >> rank & 1 == 1) {
            ranks.resize(ranks.len().max(rank + 1), Vec::new());
            ranks[rank].push(*bit);
        }
    }
    sum(graph, ranks)
}

/// Whether a number exceeds a constant: from the lowest bit up, a set bit decides where the constant's is clear, a clear one
/// where it is set.
pub(super) fn exceeds(graph: &mut Graph, number: &[Bit], bound: u64) -> Bit {
    if number.len() < 64 && bound >> number.len() != 0 {
        return Bit::FALSE;
    }
    number.iter().enumerate().fold(Bit::FALSE, |decided, (place, bit)| {
        if place < 64 && bound >> place & 1 == 1 { graph.and(*bit, decided) } else { graph.or(*bit, decided) }
    })
}

/// Whether the first number is the smaller one; missing bits are zero.
pub(super) fn below(graph: &mut Graph, first: &[Bit], second: &[Bit]) -> Bit {
    let bit = |number: &[Bit], place: usize| number.get(place).copied().unwrap_or(Bit::FALSE);
    (0..first.len().max(second.len())).fold(Bit::FALSE, |decided, place| {
        let (one, other) = (bit(first, place), bit(second, place));
        let differ = graph.xor(one, other);
        graph.choose(differ, other, decided)
    })
}

/// The difference of two numbers of one width, and last whether it is below zero.
fn difference(graph: &mut Graph, first: &[Bit], second: &[Bit]) -> Vec<Bit> {
    let (mut digits, mut borrow) = (Vec::new(), Bit::FALSE);
    for (one, other) in first.iter().zip(second) {
        let half = graph.xor(*one, *other);
        digits.push(graph.xor(half, borrow));
        // Where the two differ the second decides, else what was borrowed before.
        borrow = graph.choose(half, *other, borrow);
    }
    digits.push(borrow);
    digits
}

/// One number or the other, bit by bit.
pub(super) fn choose(graph: &mut Graph, which: Bit, then: &[Bit], otherwise: &[Bit]) -> Vec<Bit> {
    then.iter().zip(otherwise).map(|(then, otherwise)| graph.choose(which, *then, *otherwise)).collect()
}

/// The bits of a word.
pub(super) fn word(graph: &mut Graph, row: &[Bit], word: &Word) -> Option<Vec<Bit>> {
    Some(match word {
        Word::Plain(plain) if 64 < plain.width => return None,
        Word::Plain(plain) => field(row, plain)?.to_vec(),
        Word::Ones(counted) => count(graph, field(row, counted)?),
        Word::Made(making, fields) => {
            let words: Vec<&[Bit]> = fields.iter().map(|made| field(row, made)).collect::<Option<_>>()?;
            make(graph, *making, &words)?
        }
    })
}

fn make(graph: &mut Graph, making: Making, words: &[&[Bit]]) -> Option<Vec<Bit>> {
    let (first, rest) = words.split_first()?;
    let width = first.len();
    let fits = rest.iter().all(|word| word.len() == width) && !rest.is_empty();
    if !fits || making.takes_two() && rest.len() != 1 || 64 < 2 * width {
        return None;
    }
    Some(match making {
        Making::Sum => {
            let rank = |rank: usize| words.iter().map(|word| word[rank]).collect();
            let mut digits = sum(graph, (0..width).map(rank).collect());
            digits.resize(width + words.len().next_power_of_two().ilog2() as usize, Bit::FALSE);
            digits
        }
        Making::Product => {
            let mut ranks = vec![Vec::new(); 2 * width];
            for (place, one) in first.iter().enumerate() {
                for (rank, other) in rest[0].iter().enumerate() {
                    ranks[place + rank].push(graph.and(*one, *other));
                }
            }
            let mut digits = sum(graph, ranks);
            digits.resize(2 * width, Bit::FALSE);
            digits
        }
        Making::Difference => difference(graph, first, rest[0]),
        Making::Reverse => difference(graph, rest[0], first),
        Making::Distance => {
            let (forward, backward) = (difference(graph, first, rest[0]), difference(graph, rest[0], first));
            choose(graph, forward[width], &backward[..width], &forward[..width])
        }
        Making::Smaller | Making::Larger => rest.iter().fold(first.to_vec(), |held, other| {
            let below = difference(graph, &held, other)[width];
            let is_kept = if making == Making::Smaller { below } else { !below };
            choose(graph, is_kept, &held, other)
        }),
    })
}
