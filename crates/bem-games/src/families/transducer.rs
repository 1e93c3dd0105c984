//! Emulate a hidden transducer: for every input symbol say its output symbol. Clause: GLE-1.

use crate::draw::Draw;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::planes_for;
use bem_base::prng::Prng;
use std::sync::Arc;

/// The family.
pub struct Transducer;

impl Family for Transducer {
    fn name(&self) -> &'static str {
        "transducer"
    }

    fn about(&self) -> &'static str {
        "See one input symbol per step and answer what a hidden machine with memory puts out for it."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "states",
                about: "States of the hidden machine.",
                range: Range::Number { min: 1, max: 64, default: 4 },
            },
            Parameter {
                name: "inputs",
                about: "How many input symbols there are.",
                range: Range::Number { min: 2, max: 16, default: 2 },
            },
            Parameter {
                name: "outputs",
                about: "How many output symbols there are.",
                range: Range::Number { min: 2, max: 16, default: 2 },
            },
            Parameter {
                name: "horizon",
                about: "Steps of the longest episode.",
                range: Range::Number { min: 1, max: 256, default: 24 },
            },
        ]
    }

    fn build(&self, settings: &Settings, instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let number = |name: &str| settings.number(name) as u32;
        let mut prng = Prng::stream(instance_seed, "transducer");
        let (states, inputs, outputs) = (number("states"), number("inputs"), number("outputs"));
        let table = random_machine(states, inputs, outputs, &mut prng);
        Ok(Arc::new(RuleGame::new(TransducerRules { inputs, outputs, horizon: number("horizon"), table })))
    }
}

/// A random machine all of whose states can be reached: every state but the first hangs on a free edge of an
/// earlier one, and the edges left over go anywhere.
fn random_machine(states: u32, inputs: u32, outputs: u32, prng: &mut Prng) -> Vec<Edge> {
    let mut targets: Vec<Option<u8>> = vec![None; (states * inputs) as usize];
    for state in 1..states {
        let free: Vec<usize> =
            (0..(state * inputs) as usize).filter(|edge| targets[*edge].is_none()).collect();
        targets[free[prng.below(free.len() as u64) as usize]] = Some(state as u8);
    }
    let mut edge = |target: Option<u8>| Edge {
        next: target.unwrap_or_else(|| prng.below(u64::from(states)) as u8),
        output: prng.below(u64::from(outputs)) as u8,
    };
    targets.into_iter().map(&mut edge).collect()
}

/// What the machine does in one state at one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    next: u8,
    output: u8,
}

/// One hidden machine.
pub struct TransducerRules {
    inputs: u32,
    outputs: u32,
    horizon: u32,
    /// Row by row, one row a state.
    table: Vec<Edge>,
}

/// The machine at work.
#[derive(Clone, Copy, Debug)]
pub struct State {
    state: u8,
    input: u32,
    /// Steps after this one.
    left: u32,
}

impl TransducerRules {
    fn edge(&self, state: &State) -> Edge {
        self.table[u32::from(state.state) as usize * self.inputs as usize + state.input as usize]
    }
}

impl Rules for TransducerRules {
    type State = State;

    fn shape(&self) -> Shape {
        let widths = [planes_for(self.inputs as usize)];
        rules::answer_shape(&widths, self.outputs as usize, self.horizon, self.horizon)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        State { state: 0, left: draw.below(self.horizon), input: draw.below(self.inputs) }
    }

    fn observe(&self, state: &State) -> Bits {
        Bits([u64::from(state.input), 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        let edge = self.edge(state);
        let outcome = rules::answer(action == u16::from(edge.output), state.left == 0);
        state.state = edge.next;
        state.input = draw.below(self.inputs);
        state.left = state.left.saturating_sub(1);
        outcome
    }

    fn best(&self, state: &State) -> u16 {
        u16::from(self.edge(state).output)
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_ratio(i64::from(RIGHT) * (i64::from(self.horizon) + 1), 2))
    }

    fn random(&self) -> Value {
        Value::exact(self.optimum().mean.div_count_floor(u64::from(self.outputs)))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_ratio(i64::from(self.horizon) + 1, 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::check_exactly;
    use std::collections::BTreeSet;

    #[test]
    fn enumeration_agrees_with_the_stated_values() {
        let mut prng = Prng::stream(1, "test");
        for (states, inputs, outputs, horizon) in [(1, 2, 2, 2), (2, 2, 2, 3), (3, 2, 3, 2)] {
            let table = random_machine(states, inputs, outputs, &mut prng);
            check_exactly(&RuleGame::new(TransducerRules { inputs, outputs, horizon, table }), 1_000_000)
                .unwrap();
        }
    }

    #[test]
    fn every_state_of_a_random_machine_can_be_reached() {
        let mut prng = Prng::stream(2, "test");
        for states in 1..=64u32 {
            let table = random_machine(states, 2, 2, &mut prng);
            let mut reached = BTreeSet::from([0u8]);
            let mut open = vec![0u8];
            while let Some(state) = open.pop() {
                for edge in &table[usize::from(state) * 2..usize::from(state) * 2 + 2] {
                    if reached.insert(edge.next) {
                        open.push(edge.next);
                    }
                }
            }
            assert_eq!(reached.len(), states as usize);
        }
    }
}
