//! A tabular decision process as JSON.
//!
//! `{"states":n,"actions":m,"horizon":h,"start":[[state,weight],...],
//! "transitions":[[s,a,s2,weight,reward,done],...],"observe":"state"|[[bit,...],...]}`: weights are whole numbers,
//! rewards milli-units. A seventh entry of a transition, if it is there, is the BAD flag. Where observations tell
//! states apart, the optimum comes from dynamic programming over states and steps; where they hide them, from
//! [`super::hidden`]. Clauses: GLE-9, VM-17.

use super::hidden::{self, PolicyGraph};
use super::normal::draw_index;
use super::{ImportError, without_line};
use crate::draw::Draw;
use crate::exact::Expectation;
use crate::game::{Game, Steps, Value};
use crate::rules::{self, RuleGame, Rules, bits_for};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::limits::{ACTIONS_MAX, EPISODE_STEPS_MAX, OBSERVATION_BITS_MAX};
use serde::Deserialize;
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    states: usize,
    actions: usize,
    horizon: u32,
    start: Vec<(usize, u32)>,
    transitions: Vec<Transition>,
    observe: Observe,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Transition {
    Plain((usize, usize, usize, u32, i32, bool)),
    Flagged((usize, usize, usize, u32, i32, bool, bool)),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Observe {
    Name(String),
    Bits(Vec<Vec<u8>>),
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
}

fn within(what: &str, value: usize, low: usize, high: usize) -> Result<usize, ImportError> {
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(ImportError::content(format!("{what} is {value}; allowed is {low} to {high}")))
}

impl File {
    fn check(self) -> Result<Process, ImportError> {
        let states = within("\"states\"", self.states, 1, STATES_MAX)?;
        let actions = within("\"actions\"", self.actions, 1, ACTIONS_MAX)?;
        within("\"horizon\"", self.horizon as usize, 1, EPISODE_STEPS_MAX as usize)?;
        let horizon = self.horizon as usize;
        within("\"states\" times \"actions\"", states * actions, 1, ROWS_MAX)?;
        within("\"states\" times \"horizon\"", states * horizon, 1, POLICY_ENTRIES_MAX)?;
        let work = (states * actions + self.transitions.len()) * horizon;
        within("\"horizon\" times all transitions", work, 1, SOLVE_WORK_MAX)?;
        let mut start = Vec::new();
        for (index, (state, weight)) in self.start.iter().enumerate() {
            let state = within(&format!("the state of \"start\" entry {index}"), *state, 0, states - 1)?;
            start.push((state as u32, *weight));
        }
        check_weights("\"start\"", start.iter().map(|(_, weight)| *weight))?;
        let mut rows = vec![Vec::new(); states * actions];
        for (index, transition) in self.transitions.iter().enumerate() {
            let (from, action, to, weight, reward, done, bad) = match *transition {
                Transition::Plain((from, action, to, weight, reward, done)) => {
                    (from, action, to, weight, reward, done, false)
                }
                Transition::Flagged(all) => all,
            };
            let name = |what: &str| format!("the {what} of transition {index}");
            let from = within(&name("first state"), from, 0, states - 1)?;
            let action = within(&name("action"), action, 0, actions - 1)?;
            let target = within(&name("second state"), to, 0, states - 1)? as u32;
            rows[from * actions + action].push(Branch { target, weight, reward, done, bad });
        }
        let (observations, widths) = self.observe.check(states)?;
        let process = Process { actions, horizon: self.horizon, start, rows, observations, widths };
        process.check_rows()?;
        Ok(process)
    }
}

fn check_weights(what: &str, weights: impl Iterator<Item = u32>) -> Result<(), ImportError> {
    let sum: u64 = weights.map(u64::from).sum();
    if sum == 0 || u64::from(u32::MAX) < sum {
        let text = format!("the weights of {what} sum to {sum}; allowed is 1 to {}", u32::MAX);
        return Err(ImportError::Content(text));
    }
    Ok(())
}

impl Observe {
    fn check(&self, states: usize) -> Result<(Vec<Bits>, Vec<usize>), ImportError> {
        match self {
            Observe::Name(name) if name == "state" => {
                let width = bits_for(states as u64);
                let show = |state| {
                    let mut bits = Bits::ZERO;
                    bits.set_field(0, width, state as u64);
                    bits
                };
                Ok(((0..states).map(show).collect(), vec![width]))
            }
            Observe::Name(name) => {
                let text = format!(
                    "\"observe\" is {name:?}; allowed is \"state\" or a list of bits for every state"
                );
                Err(ImportError::Content(text))
            }
            Observe::Bits(lists) => {
                if lists.len() != states {
                    let text = format!("\"observe\" has {} entries; there are {states} states", lists.len());
                    return Err(ImportError::Content(text));
                }
                let width =
                    within("the number of bits of an observation", lists[0].len(), 0, OBSERVATION_BITS_MAX)?;
                let show = |(state, list): (usize, &Vec<u8>)| {
                    if list.len() != width || list.iter().any(|bit| 1 < *bit) {
                        let text = format!("\"observe\" entry {state} must be {width} zeros and ones");
                        return Err(ImportError::Content(text));
                    }
                    let mut bits = Bits::ZERO;
                    list.iter().enumerate().for_each(|(index, bit)| bits.set(index, *bit == 1));
                    Ok(bits)
                };
                let bits: Result<Vec<Bits>, _> = lists.iter().enumerate().map(show).collect();
                Ok((bits?, vec![1; width]))
            }
        }
    }
}

impl Process {
    /// Every state that an episode can stay in needs a way on for every action.
    fn check_rows(&self) -> Result<(), ImportError> {
        let mut reached: BTreeSet<u32> =
            self.start.iter().filter(|(_, weight)| 0 < *weight).map(|(state, _)| *state).collect();
        let mut open: Vec<u32> = reached.iter().copied().collect();
        while let Some(state) = open.pop() {
            for action in 0..self.actions {
                let row = self.row(state, action);
                if row.is_empty() {
                    let text = format!("state {state} has no transition for action {action}");
                    return Err(ImportError::Content(text));
                }
                check_weights(
                    &format!("state {state} and action {action}"),
                    row.iter().map(|branch| branch.weight),
                )?;
                for branch in row.iter().filter(|branch| !branch.done && 0 < branch.weight) {
                    if reached.insert(branch.target) {
                        open.push(branch.target);
                    }
                }
            }
        }
        Ok(())
    }

    pub fn row(&self, state: u32, action: usize) -> &[Branch] {
        &self.rows[state as usize * self.actions + action]
    }

    fn shows_states(&self) -> bool {
        let different: BTreeSet<&Bits> = self.observations.iter().collect();
        different.len() == self.observations.len()
    }

    fn shape(&self) -> Result<Shape, ImportError> {
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
        Ok(Shape {
            reward_min: low,
            reward_max: high,
            return_min,
            return_max,
            ..rules::answer_shape(&self.widths, self.actions, self.horizon, 1)
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

    /// Backward over the steps; `join` makes one value of those of all actions.
    fn backward(
        &self,
        mut join: impl FnMut(&mut dyn Iterator<Item = Expectation>) -> Expectation,
    ) -> Expectation {
        let mut later = vec![Expectation::ZERO; self.observations.len()];
        for _ in 0..self.horizon {
            let value = |state: usize| {
                join(&mut (0..self.actions).map(|action| self.action_value(state as u32, action, &later)))
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
        let shape = process.shape()?;
        let uniform = |values: &mut dyn Iterator<Item = Expectation>| {
            values.fold(Expectation::ZERO, Expectation::plus).over(process.actions as u64)
        };
        let random = process.backward(uniform).to_value();
        let (policy, optimum) = if process.shows_states() {
            // The best actions come last step first; the table is read from its end.
            let mut best = Vec::new();
            let optimum = process.backward(|values| {
                let (mut chosen, mut most) = (0, values.next().unwrap_or_default());
                for (action, value) in values.enumerate() {
                    if most < value {
                        (chosen, most) = (action as u16 + 1, value);
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
        Ok(Arc::new(RuleGame::new(Walk { process, shape, policy, optimum, random })))
    }
}

enum Policy {
    /// The best action by steps done from the end, then by state.
    ByState(Vec<u16>),
    /// By what was seen and done so far.
    ByHistory(PolicyGraph),
}

struct Walk {
    process: Process,
    shape: Shape,
    policy: Policy,
    optimum: Value,
    random: Value,
}

#[derive(Clone)]
struct State {
    state: u32,
    step: u32,
    /// The node of the policy graph; unused where states are shown.
    history: u32,
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
        State { state, step: 0, history }
    }

    fn observe(&self, state: &State) -> Bits {
        self.process.observations[state.state as usize]
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
        state.state = branch.target;
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

    fn steps(&self) -> Steps {
        let ends_early = self.process.rows.iter().flatten().any(|branch| branch.done);
        if ends_early { Steps::ByPolicy } else { Steps::Drawn(Fixed::from_int(self.process.horizon as i32)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;

    const GRIDWORLD: &str = include_str!("../../../../examples/games/gridworld.json");

    #[test]
    fn the_example_passes_the_kit() {
        conformance::check(&*read(GRIDWORLD).unwrap()).unwrap();
    }

    #[test]
    fn the_optimum_is_the_one_worked_out_by_hand() {
        // Wait for a coin that pays on heads, or take a sure half; two steps.
        let text = r#"{"states":1,"actions":2,"horizon":2,"start":[[0,1]],
            "transitions":[[0,0,0,1,1000,false],[0,0,0,3,0,false],[0,1,0,1,400,true]],"observe":"state"}"#;
        let game = read(text).unwrap();
        conformance::check(&*game).unwrap();
        // Last step: 400 beats 250. First step: 250 + 400 beats 400.
        assert_eq!(game.optimum().mean, Fixed::from_int(650));
        // Random: last 325; first (250 + 325 + 400) / 2.
        assert_eq!(game.random().mean, Fixed::from_ratio(975, 2));
    }

    #[test]
    fn hidden_states_are_solved_by_what_was_seen() {
        // A coin is shown once and asked for two steps later: memory is needed, and pays in full.
        let text = r#"{"states":6,"actions":2,"horizon":3,"start":[[0,1],[1,1]],
            "transitions":[
              [0,0,2,1,0,false],[0,1,2,1,0,false],[1,0,3,1,0,false],[1,1,3,1,0,false],
              [2,0,4,1,0,false],[2,1,4,1,0,false],[3,0,5,1,0,false],[3,1,5,1,0,false],
              [4,0,4,1,1000,true],[4,1,4,1,0,true],[5,0,5,1,0,true],[5,1,5,1,1000,true]],
            "observe":[[0,0],[0,1],[1,0],[1,0],[1,1],[1,1]]}"#;
        let game = read(text).unwrap();
        conformance::check(&*game).unwrap();
        assert_eq!(game.optimum().mean, Fixed::from_int(1000));
        assert_eq!(game.random().mean, Fixed::from_int(500));
    }

    #[test]
    fn what_is_never_shown_cannot_be_used() {
        let text = r#"{"states":2,"actions":2,"horizon":1,"start":[[0,1],[1,3]],
            "transitions":[[0,0,0,1,1000,true],[0,1,0,1,0,true],[1,0,0,1,0,true],[1,1,0,1,1000,true]],
            "observe":[[0],[0]]}"#;
        let game = read(text).unwrap();
        conformance::check(&*game).unwrap();
        assert_eq!(game.optimum().mean, Fixed::from_int(750));
    }

    #[test]
    fn errors_name_the_line_or_the_entry_and_the_bound() {
        let error = |text: &str| read(text).err().unwrap().to_string();
        assert!(
            error("{\"states\":1,\n\"actions\":x}").starts_with("line 2: "),
            "{}",
            error("{\"states\":1,\n\"actions\":x}")
        );
        let process = |states: &str, start: &str, transitions: &str| {
            format!(
                r#"{{"states":{states},"actions":1,"horizon":4,"start":[{start}],"transitions":[{transitions}],"observe":"state"}}"#
            )
        };
        assert_eq!(error(&process("0", "", "")), "\"states\" is 0; allowed is 1 to 65536");
        assert_eq!(
            error(&process("2", "[2,1]", "")),
            "the state of \"start\" entry 0 is 2; allowed is 0 to 1"
        );
        assert_eq!(
            error(&process("2", "[0,0]", "")),
            "the weights of \"start\" sum to 0; allowed is 1 to 4294967295"
        );
        assert_eq!(error(&process("2", "[0,1]", "")), "state 0 has no transition for action 0");
        assert_eq!(
            error(&process("2", "[0,1]", "[0,0,5,1,0,false]")),
            "the second state of transition 0 is 5; allowed is 0 to 1"
        );
        assert_eq!(
            error(&process("1", "[0,1]", "[0,0,0,1,2000000000,false]")),
            "rewards times \"horizon\" reach 8000000000 milli-units; allowed is 2147483647"
        );
        assert!(error(&process("1", "[0,1]", "[0,0,0,1,0]")).starts_with("line 1: "));
    }
}
