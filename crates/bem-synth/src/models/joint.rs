//! One reward model for all actions: the action's code is one more field of the row.
//!
//! Where whether an action pays depends on what its code has in common with what is seen, one function over both says
//! more from fewer steps than a function per action. The policy asks it for one action after the other, those first
//! that pay in most of the rows seen, and takes the first that pays. Must not know games.

use crate::function::Function;
use crate::functions::relation::Relation;
use crate::functions::{FunctionClass, is_short};
use crate::hypothesis::{Stated, build};
use crate::memory::Device;
use crate::policy::action_bits;
use crate::samples::{ROW_BITS_MAX, ROWS_FITTED_MAX, Row, Samples, Work};
use crate::statement::Choice;
use crate::view::View;
use bem_base::environment::{Field, Shape};
use bem_base::limits::CIRCUIT_GATES_MAX;
use bem_circuit::netlist::{Builder, Signal};

/// Actions at most.
const ACTIONS_MAX: u16 = 1_024;
/// It may spend one part in as many of the work that is left.
const SHARE: u64 = 8;
/// Rows by which the order of the actions is decided.
const ROWS_RANKED: usize = 512;
/// How often every row seen is settled, each time by other actions.
const ROUNDS: usize = 3;

/// Fits one function of row and action code that says whether the action earns the highest reward here.
pub fn fit(
    shape: &Shape,
    view: &View,
    device: Option<&dyn Device>,
    work: &mut Work,
) -> Option<(Stated, u32, String)> {
    let code_bits = action_bits(shape.actions);
    let width = view.width + code_bits;
    if code_bits < 2 || ACTIONS_MAX < shape.actions || ROW_BITS_MAX < width + 2 {
        return None;
    }
    let mut groups = view.groups.clone();
    groups.push(Field { low: view.width as u16, width: code_bits as u16 });
    let top = view.top();
    let fitting = || view.balanced(|record| !record.screen).take(ROWS_FITTED_MAX);
    let labelled = fitting().map(|record| {
        let mut row = record.row;
        (0..code_bits).for_each(|bit| row.set(view.width + bit, record.action >> bit & 1 == 1));
        (row, record.reward == top)
    });
    let samples = Samples::new(width, groups, labelled, 0);
    let mut share = work.share(SHARE);
    let model = Relation.fit(&samples, &mut share);
    work.spend(work.left() / SHARE - share.left());
    let model = model?;
    if !is_short(model.description_length, samples.observations) {
        return None;
    }
    let rows: Vec<Row> = fitting().take(ROWS_RANKED).map(|record| record.row).collect();
    let mut order = ranked(&model, &rows, view.width, shape.actions, work)?;
    // The circuit asks for one action after the other; where that is too much, the last ones are left out.
    while 1 < order.len() {
        let choice = Choice::FirstThatPays { model: model.statement.clone(), order: order.clone() };
        let stated = build(shape, device, choice, |builder, row| {
            first_that_pays(builder, row, &model, &order, code_bits)
        });
        if let Some(stated) = stated {
            let words = format!("first of {} actions that pays by {}", order.len(), model.words);
            return Some((stated, model.description_length, words));
        }
        order.truncate(order.len() * 3 / 4);
    }
    None
}

/// Actions in the order of how many rows each settles that none before it did. Rows never seen need more than
/// those seen, so that every row is settled several times where it can be.
fn ranked(model: &Function, rows: &[Row], width: usize, actions: u16, work: &mut Work) -> Option<Vec<u16>> {
    let words = rows.len().div_ceil(64);
    let gates = model.circuit.gates().len() + width;
    if !work.spend((usize::from(actions) * words * gates) as u64) {
        return None;
    }
    let mut inputs = vec![vec![0u64; model.circuit.inputs()]; words];
    for (position, row) in rows.iter().enumerate() {
        for index in (0..width).filter(|index| row.get(*index)) {
            inputs[position / 64][index] |= 1 << (position % 64);
        }
    }
    let (mut values, mut outputs) = (Vec::new(), Vec::new());
    let mut pays: Vec<Vec<u64>> = Vec::new();
    for action in 0..actions {
        let mut settled = Vec::with_capacity(words);
        for inputs in &mut inputs {
            for (bit, input) in inputs[width..].iter_mut().enumerate() {
                *input = if action >> bit & 1 == 1 { u64::MAX } else { 0 };
            }
            model.circuit.evaluate_words(inputs, &mut values, &mut outputs);
            settled.push(outputs[0]);
        }
        pays.push(settled);
    }
    let mut all = vec![u64::MAX; words];
    if let Some(last) = all.last_mut()
        && !rows.len().is_multiple_of(64)
    {
        *last = (1 << (rows.len() % 64)) - 1;
    }
    let mut order = Vec::new();
    for _ in 0..ROUNDS {
        let mut open = all.clone();
        loop {
            let gain = |action: &u16| -> u32 {
                let words = pays[usize::from(*action)].iter().zip(&open);
                words.map(|(pays, open)| (pays & open).count_ones()).sum()
            };
            let fresh = (0..actions).filter(|action| !order.contains(action));
            let Some(best) = fresh.max_by_key(|action| (gain(action), core::cmp::Reverse(*action))) else {
                return Some(order);
            };
            if gain(&best) == 0 {
                break;
            }
            order.push(best);
            open.iter_mut().zip(&pays[usize::from(best)]).for_each(|(open, pays)| *open &= !pays);
        }
    }
    Some(order)
}

fn first_that_pays(
    builder: &mut Builder,
    row: &[Signal],
    model: &Function,
    order: &[u16],
    code_bits: usize,
) -> Vec<Signal> {
    let code = |action: u16| (0..code_bits).map(move |bit| Signal::constant(action >> bit & 1 == 1));
    // The last one needs no question: nothing is left to try.
    let mut chosen: Vec<Signal> = order.last().map_or_else(Vec::new, |last| code(*last).collect());
    for action in order.iter().rev().skip(1) {
        // What is already too large is refused as a whole later; building on would only cost time.
        if CIRCUIT_GATES_MAX < builder.gate_count() / 2 {
            break;
        }
        let mut inputs = row.to_vec();
        inputs.extend(code(*action));
        let pays = model.embed(builder, &inputs);
        chosen =
            chosen.iter().zip(code(*action)).map(|(signal, code)| builder.mux(pays, code, *signal)).collect();
    }
    chosen
}
