//! What a whole statement says: the action's code and the next memory, for every observation and every content.

use super::formulas::{formula, tree};
use super::memories::{in_range, increment, memory};
use super::numbers::{below, choose, constant, weighted};
use super::rows::{gather, look_up};
use super::wirings::wiring;
use bem_prover::graph::{Bit, Graph};
use bem_synth::statement::{Choice, Index, Number, Plan, Statement, World};

/// The action's code and the next memory.
type Step = (Vec<Bit>, Vec<Bit>);

/// The statement as signals; none if it does not fit the world.
pub(super) fn statement(
    graph: &mut Graph,
    world: &World,
    (seen, kept): (&[Bit], &[Bit]),
    said: &Statement,
) -> Option<Step> {
    if kept.len() != said.memory_bits(world) || seen.len() != world.observation_bits {
        return None;
    }
    Some(match said {
        Statement::Acts { memory: structure, choice: said } => {
            let (shown, next) = match structure {
                Some(structure) => memory(graph, seen, kept, structure)?,
                None => (Vec::new(), Vec::new()),
            };
            let code = act(graph, world, &[seen, &shown].concat(), said)?;
            (in_range(graph, world.actions, code), next)
        }
        Statement::Machine { seen: counts, rows, .. } => {
            let key = [kept, &gather(seen, counts)?].concat();
            let mut code = look_up(graph, rows, &key, world.code_bits() + kept.len())?;
            let next = code.split_off(world.code_bits());
            (in_range(graph, world.actions, code), next)
        }
        Statement::Plan(said) => plan(graph, world, (seen, kept), said)?,
        Statement::Gates(said) => {
            let (code, next) = wiring(graph, world, (seen, kept), said)?;
            (in_range(graph, world.actions, code), next)
        }
        Statement::Through { bits, echo, inner } => {
            let shown = world.through(bits.len(), *echo);
            let (own, last) = kept.split_at(inner.memory_bits(&shown));
            let bit = |(bit, inverted): &(Index, bool)| {
                let bit = *seen.get(usize::from(*bit))?;
                Some(if *inverted { !bit } else { bit })
            };
            let mut seen: Vec<Bit> = bits.iter().map(bit).collect::<Option<_>>()?;
            seen.extend_from_slice(last);
            let (code, mut next) = statement(graph, &shown, (&seen, own), inner)?;
            if *echo {
                next.extend_from_slice(&code);
            }
            (code, next)
        }
    })
}

/// The action's code as the row says, which may be past the last action.
fn act(graph: &mut Graph, world: &World, row: &[Bit], said: &Choice) -> Option<Vec<Bit>> {
    let bits = world.code_bits();
    let code = |action: u16| constant(u64::from(action), bits);
    Some(match said {
        Choice::Bits(formulas) if formulas.len() == bits => {
            formulas.iter().map(|said| formula(graph, row, said)).collect::<Option<_>>()?
        }
        Choice::Bits(_) => return None,
        Choice::FirstOf { models, otherwise } => {
            let mut chosen = code(*otherwise);
            for (action, model) in models.iter().rev() {
                let holds = formula(graph, row, model)?;
                chosen = choose(graph, holds, &code(*action), &chosen);
            }
            chosen
        }
        Choice::FirstThatPays { model, order } => {
            let (last, asked) = order.split_last()?;
            let mut chosen = code(*last);
            for action in asked.iter().rev() {
                if graph.is_full() {
                    return None;
                }
                let pays = formula(graph, &[row, &code(*action)].concat(), model)?;
                chosen = choose(graph, pays, &code(*action), &chosen);
            }
            chosen
        }
        Choice::Highest(numbers) => {
            let (first, rest) = numbers.split_first()?;
            let (mut best, mut chosen) = (number(graph, row, first)?, code(0));
            for (action, other) in (1..).zip(rest) {
                let mut other = number(graph, row, other)?;
                let width = best.len().max(other.len());
                best.resize(width, Bit::FALSE);
                other.resize(width, Bit::FALSE);
                let is_more = below(graph, &best, &other);
                best = choose(graph, is_more, &other, &best);
                chosen = choose(graph, is_more, &code(action), &chosen);
            }
            chosen
        }
        Choice::Rows { bits: key, rows } => look_up(graph, rows, &gather(row, key)?, bits)?,
        Choice::Tree(branches) => tree(graph, row, branches, bits)?,
    })
}

fn number(graph: &mut Graph, row: &[Bit], said: &Number) -> Option<Vec<Bit>> {
    match said {
        Number::Digits(formulas) if formulas.len() <= 64 => {
            formulas.iter().map(|said| formula(graph, row, said)).collect()
        }
        Number::Digits(_) => None,
        Number::Weighted { base, weights } => {
            let mut most = *base;
            let mut bits = Vec::with_capacity(weights.len());
            for (index, value, weight) in weights {
                let bit = *row.get(usize::from(*index))?;
                bits.push((if *value { bit } else { !bit }, *weight));
                most = most.checked_add(*weight)?;
            }
            Some(weighted(graph, *base, &bits))
        }
    }
}

fn plan(graph: &mut Graph, world: &World, (seen, kept): (&[Bit], &[Bit]), said: &Plan) -> Option<Step> {
    let seen = gather(seen, &said.seen)?;
    let code = look_up(graph, &said.rows, &[kept, &seen].concat(), world.code_bits())?;
    let (clock, rest) = kept.split_at(usize::from(said.clock_bits));
    let (recalled, past) = rest.split_at(usize::from(said.recall_bits));
    let mut next = increment(graph, clock, Bit::TRUE);
    if !recalled.is_empty() {
        let key = [recalled, &code, &seen].concat();
        next.extend(look_up(graph, &said.recalls, &key, recalled.len())?);
    }
    if !past.is_empty() {
        next.push(Bit::TRUE);
        next.extend_from_slice(&code);
        next.extend_from_slice(&seen);
        next.extend_from_slice(past.get(..past.len() - said.step_bits(world))?);
    }
    Some((in_range(graph, world.actions, code), next))
}
