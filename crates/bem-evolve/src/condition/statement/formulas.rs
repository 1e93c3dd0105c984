//! What a formula says about a row, in one bit.

use super::numbers::{self, below, constant, count, exceeds, field, weighted, word};
use super::rows::{gather, look_up};
use bem_prover::graph::{Bit, Graph};
use bem_synth::statement::{
    Atom, Branch, Fact, Formula, Index, Join, Literal, Pair, Read, Relation, Rule, Table,
};

/// All literals hold.
pub(super) fn holds(graph: &mut Graph, row: &[Bit], literals: &[Literal]) -> Option<Bit> {
    let each = literals.iter().map(|(bit, value)| {
        let bit = *row.get(usize::from(*bit))?;
        Some(if *value { bit } else { !bit })
    });
    let each: Vec<Bit> = each.collect::<Option<_>>()?;
    Some(graph.all(&each))
}

/// The formula as a bit; none if it does not fit the row.
pub(super) fn formula(graph: &mut Graph, row: &[Bit], said: &Formula) -> Option<Bit> {
    Some(match said {
        Formula::Sum { bits, inverted } => {
            let bits = gather(row, bits)?;
            let sum = graph.odd(&bits);
            if *inverted { !sum } else { sum }
        }
        Formula::Threshold { weights, bound } => threshold(graph, row, weights, *bound)?,
        Formula::Count { atoms, table } => counted(graph, row, atoms, table)?,
        Formula::Rows { bits, rows } => look_up(graph, rows, &gather(row, bits)?, 1)?[0],
        Formula::Rules { rules, otherwise } => first_rule(graph, row, rules, *otherwise)?,
        Formula::Tree(branches) => tree(graph, row, branches, 1)?[0],
        Formula::Pairs { pairs, otherwise } => first_pair(graph, row, pairs, *otherwise)?,
        Formula::Polynomial(terms) => {
            let mut products = Vec::with_capacity(terms.len());
            for term in terms {
                let bits = gather(row, term)?;
                products.push(graph.all(&bits));
            }
            graph.odd(&products)
        }
        Formula::Scan { places, machine, answers, read } => {
            scan(graph, row, places, (*machine, answers), read)?
        }
        Formula::Select { selector, parts } => {
            let selector = word(graph, row, selector)?;
            let parts: Vec<Bit> =
                parts.iter().map(|part| formula(graph, row, part)).collect::<Option<_>>()?;
            select(graph, &selector, &parts)
        }
        Formula::About { facts, inner } => {
            let mut shown = Vec::new();
            for about in facts {
                shown.extend(fact(graph, row, about)?);
            }
            formula(graph, &shown, inner)?
        }
    })
}

/// The weights of all set bits together exceed the bound: a negative weight is a positive one of the inverted bit, with
/// the bound moved by as much.
fn threshold(graph: &mut Graph, row: &[Bit], weights: &[(Index, i32)], bound: i64) -> Option<Bit> {
    let mut lowest = 0i64;
    let mut positive = Vec::with_capacity(weights.len());
    for (index, weight) in weights {
        let bit = *row.get(usize::from(*index))?;
        lowest += i64::from(*weight).min(0);
        positive.push((if *weight < 0 { !bit } else { bit }, u64::from(weight.unsigned_abs())));
    }
    let sum = weighted(graph, 0, &positive);
    Some(match u64::try_from(bound.checked_sub(lowest)?) {
        Err(_) => Bit::TRUE,
        Ok(bound) => exceeds(graph, &sum, bound),
    })
}

/// The entry of the table at the number of atoms that hold.
fn counted(graph: &mut Graph, row: &[Bit], atoms: &[Atom], table: &[bool]) -> Option<Bit> {
    if table.len() != atoms.len() + 1 {
        return None;
    }
    let bit = |index: &Index| row.get(usize::from(*index)).copied();
    let mut bits = Vec::with_capacity(atoms.len());
    for atom in atoms {
        bits.push(match atom {
            Atom::Bit(index, inverted) if *inverted => !bit(index)?,
            Atom::Bit(index, _) => bit(index)?,
            Atom::Pair(Join::Xor, one, other) => graph.xor(bit(one)?, bit(other)?),
            Atom::Pair(Join::And, one, other) => graph.and(bit(one)?, bit(other)?),
        });
    }
    let count = count(graph, &bits);
    let table: Table = table.iter().zip(0..).map(|(label, count)| (count, u64::from(*label))).collect();
    Some(look_up(graph, &table, &count, 1)?[0])
}

fn first_rule(graph: &mut Graph, row: &[Bit], rules: &[Rule], otherwise: bool) -> Option<Bit> {
    let mut answer = Bit::constant(otherwise);
    for rule in rules.iter().rev() {
        let applies = holds(graph, row, &rule.literals)?;
        answer = if rule.label { graph.or(applies, answer) } else { graph.and(answer, !applies) };
    }
    Some(answer)
}

fn first_pair(graph: &mut Graph, row: &[Bit], pairs: &[Pair], otherwise: bool) -> Option<Bit> {
    let mut answer = Bit::constant(otherwise);
    for pair in pairs.iter().rev() {
        let (first, second) = (*row.get(usize::from(pair.first))?, *row.get(usize::from(pair.second))?);
        let differ = graph.xor(first, second);
        let applies = if pair.differ { differ } else { !differ };
        answer = graph.choose(applies, if pair.inverted { !first } else { first }, answer);
    }
    Some(answer)
}

/// A tree in preorder, read from its end: a test finds the trees of both its sides done.
pub(super) fn tree(graph: &mut Graph, row: &[Bit], branches: &[Branch], bits: usize) -> Option<Vec<Bit>> {
    let mut done: Vec<Vec<Bit>> = Vec::new();
    for branch in branches.iter().rev() {
        let answer = match branch {
            Branch::Leaf(answer) => constant(u64::from(*answer), bits),
            Branch::Test(index) => {
                let (clear, set) = (done.pop()?, done.pop()?);
                numbers::choose(graph, *row.get(usize::from(*index))?, &set, &clear)
            }
        };
        done.push(answer);
    }
    let whole = done.pop()?;
    done.is_empty().then_some(whole)
}

/// The bit at the place that a word names; past the last one it is false.
pub(super) fn select(graph: &mut Graph, selector: &[Bit], parts: &[Bit]) -> Bit {
    match selector.split_last() {
        _ if parts.is_empty() => Bit::FALSE,
        None => parts[0],
        Some((highest, rest)) => {
            let border =
                1usize.checked_shl(rest.len() as u32).map_or(parts.len(), |half| half.min(parts.len()));
            let (low, high) = parts.split_at(border);
            let (clear, set) = (select(graph, rest, low), select(graph, rest, high));
            graph.choose(*highest, set, clear)
        }
    }
}

fn scan(
    graph: &mut Graph,
    row: &[Bit],
    places: &[Vec<Index>],
    (machine, answers): (u32, &Table),
    read: &Read,
) -> Option<Bit> {
    let mut state = Bit::FALSE;
    let mut all = Vec::with_capacity(places.len());
    for bits in places {
        let mut key = vec![state];
        key.extend(gather(row, bits)?);
        if 5 < key.len() {
            return None;
        }
        all.push(look_up(graph, answers, &key, 1)?[0]);
        let next: Table = (0..1 << key.len()).map(|key| (key, u64::from(machine >> key & 1))).collect();
        state = look_up(graph, &next, &key, 1)?[0];
    }
    match read {
        Read::At(place) => all.get(usize::from(*place)).copied(),
        Read::Named { field: named, from_end } => {
            if *from_end {
                all.reverse();
            }
            let named = field(row, named)?;
            Some(select(graph, named, &all))
        }
    }
}

fn fact(graph: &mut Graph, row: &[Bit], fact: &Fact) -> Option<Vec<Bit>> {
    Some(vec![match fact {
        Fact::Bit(index) => *row.get(usize::from(*index))?,
        Fact::Ones(counted, least) => {
            let ones = count(graph, field(row, counted)?);
            !below(graph, &ones, &constant(u64::from(*least), 16))
        }
        Fact::Odd(counted) => graph.odd(field(row, counted)?),
        Fact::Fewer(first, second) => {
            let (first, second) = (count(graph, field(row, first)?), count(graph, field(row, second)?));
            below(graph, &first, &second)
        }
        Fact::Related(relation, first, second) => {
            let (first, second) = (field(row, first)?, field(row, second)?);
            related(graph, *relation, first, second)?
        }
        Fact::Below(first, second) => {
            let (first, second) = (word(graph, row, first)?, word(graph, row, second)?);
            below(graph, &first, &second)
        }
        Fact::Bits(made) => return word(graph, row, made),
    }])
}

fn related(graph: &mut Graph, relation: Relation, first: &[Bit], second: &[Bit]) -> Option<Bit> {
    if first.len() != second.len() || 64 < first.len() {
        return None;
    }
    let (inverted, other) = match relation {
        Relation::Below => return Some(below(graph, first, second)),
        Relation::Above => return Some(below(graph, second, first)),
        Relation::Meets => ([false, false], second),
        Relation::Exceeds => ([false, true], second),
        Relation::Lacks => ([true, false], second),
    };
    let turn = |bit: Bit, inverted: bool| if inverted { !bit } else { bit };
    let both: Vec<Bit> = first
        .iter()
        .zip(other)
        .map(|(one, other)| graph.and(turn(*one, inverted[0]), turn(*other, inverted[1])))
        .collect();
    Some(graph.any(&both))
}
