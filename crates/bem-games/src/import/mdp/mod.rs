//! A tabular decision process as JSON.
//!
//! `{"states":n,"actions":m,"horizon":h,"start":[[state,weight],...],
//! "transitions":[[s,a,s2,weight,reward,done],...],"observe":"state"|[[bit,...],...]}`: weights are whole numbers,
//! rewards milli-units. `"observe"` may also be an object of named values for every state, with `"features"` that say what they
//! are, and then rules over them: `"bad_if"` and `"forbid"` ([`bem_data::declared`]). A seventh entry of a transition, if it is there, is the BAD flag. Where observations tell
//! states apart, the optimum comes from dynamic programming over states and steps; where they hide them, from
//! [`super::hidden`], and what was earned last is shown as well if it tells something ([`earned`]). Clauses: GLE-9, VM-17.

mod earned;
mod file;

use self::earned::Earned;
use self::file::File;
use super::hidden::{self, PolicyGraph};
use super::normal::draw_index;
use super::{ImportError, without_line};
use crate::draw::Draw;
use crate::exact::Expectation;
use crate::game::{Game, Steps, Value};
use crate::rules::{self, RuleGame, Rules};
use bem_base::environment::{Bits, Forbidden, Outcome, Shape};
use bem_base::fixed::Fixed;
use std::collections::BTreeSet;
use std::sync::Arc;

/// States of one process.
pub const STATES_MAX: usize = 1 << 16;
/// States times actions.
pub const ROWS_MAX: usize = 1 << 20;
/// States times steps: the size of the table that holds the best actions.
pub const POLICY_ENTRIES_MAX: usize = 1 << 24;
/// Steps times rows and transitions: the work of finding the optimum.
pub const SOLVE_WORK_MAX: usize = 1 << 28;

/// Reads a process.
pub fn read(text: &str) -> Result<Arc<dyn Game>, ImportError> {
    let file: File =
        serde_json::from_str(text).map_err(|error| ImportError::line(error.line(), without_line(&error)))?;
    let process = file.check()?;
    Process::build(process)
}

/// How named features become bits, where the file names them.
pub fn encoder(text: &str) -> Option<bem_data::Encoder> {
    serde_json::from_str::<File>(text).ok()?.encoder()
}

/// What one transition brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Branch {
    pub target: u32,
    pub weight: u32,
    pub reward: i32,
    pub done: bool,
    pub bad: bool,
}

/// A process whose numbers are all in range.
pub(super) struct Process {
    pub actions: usize,
    pub horizon: u32,
    pub start: Vec<(u32, u32)>,
    /// Branches at `state * actions + action`; empty for states that no episode stays in.
    pub rows: Vec<Vec<Branch>>,
    pub observations: Vec<Bits>,
    widths: Vec<usize>,
    /// What must never be done, in rising order.
    forbidden: Vec<Forbidden>,
}

impl Process {
    pub fn row(&self, state: u32, action: usize) -> &[Branch] {
        &self.rows[state as usize * self.actions + action]
    }

    fn is_allowed(&self, state: usize, action: usize) -> bool {
        !Forbidden::forbids(&self.forbidden, self.observations[state], action as u16)
    }

    fn shows_states(&self) -> bool {
        let different: BTreeSet<&Bits> = self.observations.iter().collect();
        different.len() == self.observations.len()
    }

    fn shape(&self, earned: &Earned) -> Result<Shape, ImportError> {
        let rewards = || self.rows.iter().flatten().map(|branch| branch.reward);
        let (low, high) = (rewards().min().unwrap_or(0), rewards().max().unwrap_or(0));
        let horizon = i64::from(self.horizon);
        let ends = |reward: i32| (i64::from(reward), i64::from(reward) * horizon);
        let may_end = self.rows.iter().flatten().any(|branch| branch.done);
        let first = |(once, always): (i64, i64)| if may_end { once.min(always) } else { always };
        let last = |(once, always): (i64, i64)| if may_end { once.max(always) } else { always };
        let (return_min, return_max) = (first(ends(low)), last(ends(high)));
        let largest = return_min.abs().max(return_max.abs());
        if i64::from(i32::MAX) < largest {
            return Err(ImportError::content(format!(
                "rewards times \"horizon\" reach {largest} milli-units; allowed is {}",
                i32::MAX
            )));
        }
        let widths: Vec<usize> = self.widths.iter().copied().chain([earned.width()]).collect();
        Ok(Shape {
            reward_min: low,
            reward_max: high,
            return_min,
            return_max,
            ..rules::answer_shape(&widths, self.actions, self.horizon, 1)
        })
    }

    /// The value of an action when the values of the next step are known.
    fn action_value(&self, state: u32, action: usize, later: &[Expectation]) -> Expectation {
        let row = self.row(state, action);
        let sum = row.iter().map(|branch| u64::from(branch.weight)).sum::<u64>();
        if sum == 0 {
            return Expectation::ZERO;
        }
        let value = |branch: &Branch| {
            let rest = if branch.done { Expectation::ZERO } else { later[branch.target as usize] };
            Expectation::from_int(i64::from(branch.reward)).plus(rest).share(u64::from(branch.weight), sum)
        };
        row.iter().map(value).fold(Expectation::ZERO, Expectation::plus)
    }

    /// Backward over the steps; `join` makes one value of those of all actions that are allowed.
    fn backward(
        &self,
        mut join: impl FnMut(&mut dyn Iterator<Item = (u16, Expectation)>) -> Expectation,
    ) -> Expectation {
        let mut later = vec![Expectation::ZERO; self.observations.len()];
        for _ in 0..self.horizon {
            let value = |state: usize| {
                let allowed = (0..self.actions).filter(|action| self.is_allowed(state, *action));
                let value = |action: usize| (action as u16, self.action_value(state as u32, action, &later));
                join(&mut allowed.map(value))
            };
            later = (0..later.len()).map(value).collect();
        }
        self.start_value(&later)
    }

    fn start_value(&self, values: &[Expectation]) -> Expectation {
        let sum = self.start.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let weighed =
            self.start.iter().map(|(state, weight)| values[*state as usize].share(u64::from(*weight), sum));
        weighed.fold(Expectation::ZERO, Expectation::plus)
    }

    fn build(process: Process) -> Result<Arc<dyn Game>, ImportError> {
        let earned = Earned::of(&process);
        let shape = process.shape(&earned)?;
        let uniform = |values: &mut dyn Iterator<Item = (u16, Expectation)>| {
            let (mut sum, mut count) = (Expectation::ZERO, 0);
            for (_, value) in values {
                (sum, count) = (sum.plus(value), count + 1);
            }
            sum.over(count)
        };
        let random = process.backward(uniform).to_value();
        let (policy, optimum) = if process.shows_states() {
            // The best actions come last step first; the table is read from its end.
            let mut best = Vec::new();
            let optimum = process.backward(|values| {
                let (mut chosen, mut most) = values.next().unwrap_or_default();
                for (action, value) in values {
                    if most < value {
                        (chosen, most) = (action, value);
                    }
                }
                best.push(chosen);
                most
            });
            (Policy::ByState(best), optimum.to_value())
        } else {
            let (graph, optimum) = hidden::solve(&process)?;
            (Policy::ByHistory(graph), optimum.to_value())
        };
        Ok(Arc::new(RuleGame::new(Walk { process, earned, shape, policy, optimum, random })))
    }
}

/// The best policy, by which the oracle plays.
enum Policy {
    /// The best action by steps done from the end, then by state.
    ByState(Vec<u16>),
    /// By what was seen and done so far.
    ByHistory(PolicyGraph),
}

/// The process as a game: its best policy and what that and random play earn.
struct Walk {
    process: Process,
    earned: Earned,
    shape: Shape,
    policy: Policy,
    optimum: Value,
    random: Value,
}

/// Where the process is, and what a policy with memory knows of the way there.
#[derive(Clone)]
struct State {
    state: u32,
    step: u32,
    /// The node of the policy graph; unused where states are shown.
    history: u32,
    /// The class of what was earned last.
    earned: u64,
}

impl Rules for Walk {
    type State = State;

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let weights: Vec<u32> = self.process.start.iter().map(|(_, weight)| *weight).collect();
        let state = self.process.start[draw_index(&weights, draw)].0;
        let history = match &self.policy {
            Policy::ByState(_) => 0,
            Policy::ByHistory(graph) => graph.begin(&self.process.observations[state as usize]),
        };
        State { state, step: 0, history, earned: 0 }
    }

    fn observe(&self, state: &State) -> Bits {
        self.earned.show(&self.process.observations[state.state as usize], state.earned)
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        let row = self.process.row(state.state, usize::from(action));
        let mut left = draw.below(row.iter().map(|branch| branch.weight).sum());
        let mut index = 0;
        while row[index].weight <= left {
            left -= row[index].weight;
            index += 1;
        }
        let branch = row[index];
        (state.state, state.earned) = (branch.target, self.earned.class(branch.reward));
        state.step += 1;
        let done = branch.done || state.step == self.process.horizon;
        if let (Policy::ByHistory(graph), false) = (&self.policy, done) {
            let seen = self.process.observations[branch.target as usize];
            state.history = graph.next(state.history, action, &seen, branch.reward, branch.bad);
        }
        Outcome { reward: branch.reward, done, bad: branch.bad }
    }

    fn best(&self, state: &State) -> u16 {
        match &self.policy {
            Policy::ByHistory(graph) => graph.action(state.history),
            Policy::ByState(best) => {
                let states = self.process.observations.len();
                let from_end = (self.process.horizon - 1 - state.step) as usize;
                best[from_end * states + state.state as usize]
            }
        }
    }

    fn optimum(&self) -> Value {
        self.optimum
    }

    fn random(&self) -> Value {
        self.random
    }

    fn forbidden(&self) -> &[Forbidden] {
        &self.process.forbidden
    }

    fn steps(&self) -> Steps {
        let ends_early = self.process.rows.iter().flatten().any(|branch| branch.done);
        if ends_early { Steps::ByPolicy } else { Steps::Drawn(Fixed::from_int(self.process.horizon as i32)) }
    }
}

#[cfg(test)]
mod tests;
