//! Random state machines for the held-out rows, some of which move by what was answered.

use crate::NamedGame;
use crate::table::Row;
use anyhow::Result;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_games::draw::Draw;
use bem_games::game::{Game, Steps, Value};
use bem_games::rules::{self, RIGHT, RuleGame, Rules};
use std::sync::Arc;

/// One row a kind, each drawn anew for every seed.
pub fn rows(named_game: NamedGame) -> Vec<Row> {
    vec![
        Row::drawn("machine of 2 to 8 states", move |seed| machine(named_game, seed, 2, 8)),
        Row::drawn("machine of 9 to 16 states", move |seed| machine(named_game, seed, 9, 16)),
        Row::drawn("machine of 3 states that follows the answer", |seed| follower(seed, 3)),
        Row::drawn("machine of 6 states that follows the answer", |seed| follower(seed, 6)),
    ]
}

/// A machine whose inputs, outputs and horizon are drawn as well.
fn machine(named_game: NamedGame, seed: u64, states_min: i64, states_max: i64) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/machine");
    let parameters = [
        format!("states={}", prng.between(states_min, states_max)),
        format!("inputs={}", prng.between(2, 4)),
        format!("outputs={}", prng.between(2, 4)),
        format!("horizon={}", prng.between(8, 48)),
    ];
    named_game("transducer", &parameters, seed)
}

/// A machine that answers one input with one output, and whose next state depends on what was answered instead.
fn follower(seed: u64, states: u64) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/follower");
    let (inputs, outputs) = (2, prng.between(2, 3) as u64);
    let table = (0..states * inputs)
        .map(|_| {
            let next = (0..outputs).map(|_| prng.below(states) as usize).collect();
            (prng.below(outputs) as u16, next)
        })
        .collect();
    Ok(Arc::new(RuleGame::new(FollowerRules { inputs: inputs as u32, outputs: outputs as u32, table })))
}

/// Steps of an episode.
const STEPS: u32 = 16;

struct FollowerRules {
    inputs: u32,
    outputs: u32,
    /// For every state and input the right answer, and the next state by what is answered.
    table: Vec<(u16, Vec<usize>)>,
}

#[derive(Clone)]
struct Following {
    state: usize,
    input: u32,
    left: u32,
}

impl FollowerRules {
    fn entry(&self, state: &Following) -> &(u16, Vec<usize>) {
        &self.table[state.state * self.inputs as usize + state.input as usize]
    }
}

impl Rules for FollowerRules {
    type State = Following;

    fn shape(&self) -> Shape {
        rules::answer_shape(&[1], self.outputs as usize, STEPS, STEPS)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> Following {
        Following { state: 0, input: draw.below(self.inputs), left: STEPS - 1 }
    }

    fn observe(&self, state: &Following) -> Bits {
        Bits([u64::from(state.input), 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut Following, action: u16, draw: &mut D) -> Outcome {
        let (right, next) = self.entry(state);
        let outcome = rules::answer(action == *right, state.left == 0);
        *state = Following {
            state: next[usize::from(action)],
            input: draw.below(self.inputs),
            left: state.left.saturating_sub(1),
        };
        outcome
    }

    fn best(&self, state: &Following) -> u16 {
        self.entry(state).0
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT * STEPS as i32))
    }

    fn random(&self) -> Value {
        Value::exact(self.optimum().mean.div_count_floor(u64::from(self.outputs)))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_int(STEPS as i32))
    }
}
