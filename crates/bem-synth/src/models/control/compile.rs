//! A plan as a circuit: a table over the observation, beside it what its lens and its clock need to remember.
//!
//! Only rows that the plan can come to are in the table; all others are free, which makes it small.

use super::chance::Dynamics;
use super::counts::{BEFORE_START, Lens, Model};
use super::plan::Plan;
use crate::function::{build_word_table, choice_bits};
use crate::hypothesis::Stated;
use crate::policy::{Policy, action_bits};
use crate::statement::{self, Statement};
use bem_base::environment::{Bits, Shape};
use bem_circuit::netlist::{Builder, Signal};
use std::collections::{BTreeMap, BTreeSet};

/// Rows of the table at most.
const ROWS_MAX: usize = 4_096;
/// States that all get a row, whether the plan comes to them or not; more where pairs of state and action are many and
/// what follows them is hardly known.
const ROWS_FREE: usize = 1_024;

/// The circuit of a plan; none when it is too large. With a clock it counts steps and follows the plan for every number
/// of steps left; without, it does what is best with the most steps left.
pub fn compile(
    shape: &Shape,
    model: &Model,
    dynamics: &Dynamics,
    plan: &Plan,
    with_clock: bool,
) -> Option<Stated> {
    let layout = Layout::new(shape, model, with_clock)?;
    let mut table = BTreeMap::new();
    let horizon = shape.horizon as usize;
    if with_clock {
        if horizon != plan.actions.len() {
            return None;
        }
        for (time, states) in reached(model, dynamics, plan, horizon).iter().enumerate() {
            for state in states {
                let action = plan.action(*state, horizon - time);
                table.insert(layout.key(model, *state, time), u64::from(action));
            }
            if ROWS_MAX < table.len() {
                return None;
            }
        }
    } else {
        // Where chance may lead past what was counted, a row is good to have; where there is no room for all, those that
        // the plan comes to must do.
        let act = |state: u32| (layout.key(model, state, 0), u64::from(plan.action(state, horizon)));
        let rows_free = if model.is_crowded() { ROWS_MAX } else { ROWS_FREE };
        if model.keys().len() <= rows_free
            && let whole = (0..model.keys().len() as u32).map(act).collect()
            && let Some(stated) = layout.close(shape, model, whole)
        {
            return Some(stated);
        }
        table = reached(model, dynamics, plan, horizon).into_iter().flatten().map(act).collect();
        if ROWS_MAX < table.len() {
            return None;
        }
    }
    layout.close(shape, model, table)
}

/// States that the plan can be in at each time.
fn reached(model: &Model, dynamics: &Dynamics, plan: &Plan, horizon: usize) -> Vec<BTreeSet<u32>> {
    let mut now: BTreeSet<u32> = model.starts().keys().copied().collect();
    let mut all = Vec::with_capacity(horizon);
    for time in 0..horizon {
        let next = now.iter().flat_map(|state| {
            let action = plan.action(*state, horizon - time);
            dynamics.of(*state as usize)[usize::from(action)].next.iter().map(|(next, _)| *next)
        });
        let next = next.collect();
        all.push(core::mem::replace(&mut now, next));
    }
    all
}

/// Where the parts of a table key lie: the bits in which observations differ, the clock, and what is recalled, or for
/// every step back whether there was one, its observation and its action.
struct Layout {
    observation_bits: usize,
    telling: Vec<usize>,
    clock_bits: usize,
    code_bits: usize,
    history: usize,
    recall_bits: usize,
}

impl Layout {
    fn new(shape: &Shape, model: &Model, with_clock: bool) -> Option<Layout> {
        let observation_bits = usize::from(shape.observation_bits);
        let ones = |bit: usize| model.observations().iter().filter(|seen| seen.get(bit)).count();
        let tells = |bit: &usize| (1..model.observations().len()).contains(&ones(*bit));
        let layout = Layout {
            observation_bits,
            telling: (0..observation_bits).filter(tells).collect(),
            clock_bits: if with_clock { shape.horizon.next_power_of_two().ilog2() as usize } else { 0 },
            code_bits: action_bits(shape.actions),
            history: if let Lens::Past(history) = model.lens() { *history } else { 0 },
            recall_bits: match model.lens() {
                Lens::Past(_) => 0,
                Lens::Recalled(recall) => choice_bits(recall.states()) as usize,
            },
        };
        layout.fits_words().then_some(layout)
    }

    /// Whether the keys of both tables are numbers of 63 bits: that of the plan, and that of what is recalled next.
    fn fits_words(&self) -> bool {
        let transition_bits = self.recall_bits + self.code_bits + self.telling.len();
        self.key_bits() <= 63 && (self.recall_bits == 0 || transition_bits <= 63)
    }

    /// Bits of one remembered step.
    fn step_bits(&self) -> usize {
        1 + self.code_bits + self.telling.len()
    }

    fn memory_bits(&self) -> usize {
        self.clock_bits + self.recall_bits + self.history * self.step_bits()
    }

    fn key_bits(&self) -> usize {
        self.memory_bits() + self.telling.len()
    }

    fn gather(&self, observation: &Bits) -> u64 {
        let bits = self.telling.iter().enumerate();
        bits.fold(0, |word, (place, bit)| word | u64::from(observation.get(*bit)) << place)
    }

    /// Lowest the clock, then what is recalled or the steps back, on top the observation.
    fn key(&self, model: &Model, state: u32, time: usize) -> u64 {
        let parts = &model.keys()[state as usize];
        let mut key = if self.clock_bits == 0 { 0 } else { time as u64 };
        let mut place = self.clock_bits;
        if 0 < self.recall_bits {
            return key
                | u64::from(parts[1]) << place
                | self.gather(model.observation(state)) << (place + self.recall_bits);
        }
        for step in parts[1..].chunks(2) {
            if step[0] != BEFORE_START {
                let seen = self.gather(&model.observations()[step[1] as usize]);
                key |= (1 | u64::from(step[0]) << 1 | seen << (1 + self.code_bits)) << place;
            }
            place += self.step_bits();
        }
        key | self.gather(model.observation(state)) << place
    }

    /// What is recalled next, for all that was ever done: keys are what is recalled, the action, and the observation.
    fn transitions(&self, model: &Model) -> BTreeMap<u64, u64> {
        let Lens::Recalled(recall) = model.lens() else { return BTreeMap::new() };
        let mut table = BTreeMap::new();
        for (state, row) in model.edges().iter().enumerate() {
            let (recalled, seen) = (model.keys()[state][1], model.observation(state as u32));
            for action in (0..model.actions()).filter(|action| 0 < row[usize::from(*action)].count) {
                let key = u64::from(recalled) | u64::from(action) << self.recall_bits;
                let key = key | self.gather(seen) << (self.recall_bits + self.code_bits);
                table.insert(key, u64::from(recall.after(recalled, seen, action)));
            }
        }
        table
    }

    fn close(&self, shape: &Shape, model: &Model, table: BTreeMap<u64, u64>) -> Option<Stated> {
        let memory_bits = self.memory_bits();
        let mut builder = Builder::new(self.observation_bits + memory_bits);
        let memory: Vec<Signal> =
            (0..memory_bits).map(|place| Signal::input(self.observation_bits + place)).collect();
        let seen: Vec<Signal> = self.telling.iter().map(|bit| Signal::input(*bit)).collect();
        let key: Vec<Signal> = memory.iter().chain(&seen).copied().collect();
        let action = build_word_table(&mut builder, &key, &table, self.code_bits);
        let recalls = self.transitions(model);
        let mut carry = Signal::TRUE;
        let mut next = Vec::new();
        for digit in &memory[..self.clock_bits] {
            next.push(builder.xor(*digit, carry));
            carry = builder.and(carry, *digit);
        }
        if 0 < self.recall_bits {
            let key: Vec<Signal> =
                memory[self.clock_bits..].iter().chain(&action).chain(&seen).copied().collect();
            next.extend(build_word_table(&mut builder, &key, &recalls, self.recall_bits));
        }
        if 0 < self.history {
            next.push(Signal::TRUE);
            next.extend_from_slice(&action);
            next.extend_from_slice(&seen);
            next.extend_from_slice(&memory[self.clock_bits..memory_bits - self.step_bits()]);
        }
        let policy = Policy::close(builder, self.observation_bits, shape.actions, &action, &next).ok()?;
        let statement = Statement::Plan(statement::Plan {
            seen: self.telling.iter().map(|bit| *bit as u16).collect(),
            clock_bits: self.clock_bits as u8,
            recall_bits: self.recall_bits as u8,
            history: self.history as u8,
            rows: table,
            recalls,
        });
        Some(Stated { policy, statement })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_wider_than_a_word() {
        let fits = |telling: usize, recall_bits: usize, code_bits: usize| {
            let (observation_bits, telling) = (telling, (0..telling).collect());
            let (clock_bits, history) = (0, 0);
            Layout { observation_bits, telling, clock_bits, code_bits, history, recall_bits }.fits_words()
        };
        assert!(fits(63, 0, 10) && !fits(64, 0, 1));
        // What is recalled next depends on the action too.
        assert!(fits(57, 5, 1) && !fits(57, 5, 2));
    }
}
