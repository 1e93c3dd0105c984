//! Reward models: for every action a function that says whether it earns the highest reward here.
//!
//! This learns where several actions are right at once, which no single right answer describes. The policy is
//! the first action whose model says yes. Must not know games.

use crate::function::Function;
use crate::functions::{self, Found};
use crate::hypothesis::{Stated, build};
use crate::memory::Device;
use crate::policy::action_bits;
use crate::samples::{Samples, Work, latest};
use crate::statement::Choice;
use crate::view::View;
use bem_base::environment::Shape;
use bem_circuit::netlist::{Builder, Signal};

/// The last action that may fail while none was understood.
const GIVE_UP_AFTER: u16 = 1;
/// Actions at most.
const ACTIONS_MAX: u16 = 32;

/// Fits one model per action; none unless a quarter of the actions, and at least two, have one.
pub fn fit(
    shape: &Shape,
    view: &View,
    device: Option<&dyn Device>,
    tolerance_percent: usize,
    work: &mut Work,
) -> Option<(Stated, u32, String)> {
    if ACTIONS_MAX < shape.actions {
        return None;
    }
    let top = view.top();
    let mut models: Vec<(u16, Function)> = Vec::new();
    let mut sibling: Option<Found> = None;
    let mut counts: Vec<(usize, u16)> = Vec::new();
    for action in 0..shape.actions {
        let labelled = |screen: bool| {
            let taken = view.balanced(move |record| record.action == action && record.screen == screen);
            latest(taken.map(move |record| (record.row, record.reward == top)))
        };
        let (labelled, kept): (Vec<_>, Vec<_>) = (labelled(false).collect(), labelled(true).collect());
        let right = labelled.iter().filter(|(_, label)| *label).count();
        counts.push((right * 1_000 / labelled.len().max(1), action));
        let samples = |list, tolerance| Samples::new(view.width, view.groups.clone(), list, tolerance);
        let (samples, kept) = (samples(labelled, tolerance_percent), samples(kept, 0));
        // Where several actions are right, the policy can do without those that are not understood yet.
        // A model that always says no is nothing to act by.
        if let Some(found) = functions::fit_like(&samples, sibling.as_ref(), work)
            && found.function.circuit.outputs() != [Signal::FALSE]
            && found.function.holds_up(&kept, 2 * tolerance_percent)
        {
            models.push((action, found.function.clone()));
            sibling = Some(found);
        }
        // When the first few are not understood, there is not enough to go on yet.
        if models.is_empty() && GIVE_UP_AFTER <= action {
            return None;
        }
    }
    if models.len() < 2 || 4 * models.len() < usize::from(shape.actions) {
        return None;
    }
    let (_, fallback) =
        counts.iter().copied().max_by_key(|(rate, action)| (*rate, core::cmp::Reverse(*action)))?;
    let length = models.iter().map(|(_, model)| model.description_length).sum();
    let said = |(action, model): &(u16, Function)| (*action, model.statement.clone());
    let choice = Choice::FirstOf { models: models.iter().map(said).collect(), otherwise: fallback };
    let stated = build(shape, device, choice, |builder, row| {
        first_right(builder, row, shape.actions, &models, fallback)
    })?;
    let known = models.len();
    let words = format!("first action of {known} whose reward model says yes [{}, ...]", models[0].1.words);
    Some((stated, length, words))
}

/// The lowest action whose model says yes; else the fallback.
fn first_right(
    builder: &mut Builder,
    row: &[Signal],
    actions: u16,
    models: &[(u16, Function)],
    fallback: u16,
) -> Vec<Signal> {
    let code = |action: u16, bit: usize| Signal::constant(action >> bit & 1 == 1);
    let bits = action_bits(actions);
    let mut chosen: Vec<Signal> = (0..bits).map(|bit| code(fallback, bit)).collect();
    for (action, model) in models.iter().rev() {
        let yes = model.embed(builder, row);
        for (bit, signal) in chosen.iter_mut().enumerate() {
            *signal = builder.mux(yes, code(*action, bit), *signal);
        }
    }
    chosen
}
