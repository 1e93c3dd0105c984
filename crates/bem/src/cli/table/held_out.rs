//! Tasks that no class was written for, drawn anew for every seed: hidden subsets, random truth tables, rules and
//! circuits, random machines and processes, and compositions of two families.

use super::{Row, named_game};
use anyhow::Result;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_games::draw::Draw;
use bem_games::game::{Game, Steps, Value};
use bem_games::import::{self, Format, Seat};
use bem_games::rules::{self, RIGHT, RuleGame, Rules};
use serde_json::json;
use std::sync::Arc;

/// All kinds.
pub fn rows() -> Vec<Row> {
    let named = |task: &'static str, params: &'static [&'static str]| {
        let texts: Vec<String> = params.iter().map(|text| (*text).to_string()).collect();
        Row {
            name: format!("{task} {}", params.join(" ")).trim_end().to_string(),
            floor: None,
            build: Box::new(move |seed| named_game(task, &texts, seed)),
        }
    };
    let drawn = |name: &str, build: fn(u64) -> Result<Arc<dyn Game>>| Row {
        name: name.to_string(),
        floor: None,
        build: Box::new(build),
    };
    vec![
        named("parity", &["n=48", "relevant=13"]),
        named("majority", &["n=32", "relevant=11"]),
        drawn("truth table of 6 bits", |seed| truth_table(seed, 6)),
        drawn("truth table of 8 bits", |seed| truth_table(seed, 8)),
        drawn("4 conjunctions of 3 literals, 16 bits", |seed| function(seed, 16, conjunctions)),
        drawn("list of 6 rules with 2 literals, 16 bits", |seed| function(seed, 16, rule_list)),
        drawn("circuit of 8 gates, 10 bits", |seed| function(seed, 10, |prng, bits| circuit(prng, bits, 8))),
        drawn("circuit of 20 gates, 8 bits", |seed| function(seed, 8, |prng, bits| circuit(prng, bits, 20))),
        drawn("threshold of weights 1 to 5, 12 bits", |seed| function(seed, 12, threshold)),
        named("transducer", &["states=12", "inputs=2", "outputs=2", "horizon=24"]),
        named("transducer", &["states=16", "inputs=2", "outputs=2", "horizon=24"]),
        drawn("process of 12 states, 3 actions", |seed| process(seed, 12, 3, 12)),
        drawn("process of 32 states, 4 actions", |seed| process(seed, 32, 4, 16)),
        drawn("seq of two", |seed| composed(seed, "seq", STREAMS)),
        drawn("interleave of two", |seed| composed(seed, "interleave", STREAMS)),
        drawn("branch of two", |seed| composed(seed, "branch", STREAMS)),
        drawn("par of two", |seed| composed(seed, "par", WORDS)),
        drawn("repeat of one", |seed| composed(seed, "repeat", STREAMS)),
        drawn("loop of one", |seed| composed(seed, "loop", STREAMS)),
        drawn("nest of one", |seed| composed(seed, "nest", WORDS)),
        drawn("mask of one", |seed| composed(seed, "mask", WORDS)),
    ]
}

/// Parts of compositions that ask once about a whole word.
const WORDS: &[&str] = &[
    "parity{n=6}",
    "majority{n=7}",
    "compare{bits=4}",
    "popcount{n=4}",
    "distance{n=5,cap=3}",
    "add{bits=2,form=word}",
];
/// Parts of any kind.
const STREAMS: &[&str] = &[
    "parity{n=6}",
    "majority{n=7}",
    "compare{bits=4}",
    "copy{length=4}",
    "reverse{length=4}",
    "parity_stream{n=6}",
    "stack_machine{depth=3,horizon=12}",
    "add{bits=4,form=serial}",
];

/// An operator over parts that are drawn; with one part if it takes one.
fn composed(seed: u64, operator: &str, parts: &[&'static str]) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, operator);
    let mut draw = || parts[prng.below(parts.len() as u64) as usize];
    let two = matches!(operator, "seq" | "interleave" | "branch" | "par");
    let task =
        if two { format!("{operator}({},{})", draw(), draw()) } else { format!("{operator}({})", draw()) };
    named_game(&task, &[], seed)
}

/// A Boolean function of a word.
type Truth = Box<dyn Fn(u64) -> bool + Send + Sync>;

/// One step: a random word is seen, and one of two actions is right by a function that was drawn.
struct FunctionRules {
    bits: usize,
    truth: Truth,
}

/// A function of this many bits, drawn until neither answer is right far more often.
fn function(seed: u64, bits: usize, draw: fn(&mut Prng, usize) -> Truth) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/function");
    loop {
        let truth = draw(&mut prng, bits);
        let ones = (0..512).filter(|_| truth(prng.below(1 << bits))).count();
        if (154..=358).contains(&ones) {
            return Ok(Arc::new(RuleGame::new(FunctionRules { bits, truth })));
        }
    }
}

/// Some literals: a mask of bits and their values.
fn literals(prng: &mut Prng, bits: usize, count: u32) -> (u64, u64) {
    let mut mask = 0u64;
    while mask.count_ones() < count {
        mask |= 1 << prng.below(bits as u64);
    }
    (mask, prng.next_u64() & mask)
}

fn conjunctions(prng: &mut Prng, bits: usize) -> Truth {
    let terms: Vec<(u64, u64)> = (0..4).map(|_| literals(prng, bits, 3)).collect();
    Box::new(move |word| terms.iter().any(|(mask, value)| word & mask == *value))
}

fn rule_list(prng: &mut Prng, bits: usize) -> Truth {
    let rules: Vec<((u64, u64), bool)> = (0..6).map(|_| (literals(prng, bits, 2), prng.bit())).collect();
    let otherwise = prng.bit();
    Box::new(move |word| {
        let first = rules.iter().find(|((mask, value), _)| word & mask == *value);
        first.map_or(otherwise, |(_, label)| *label)
    })
}

fn circuit(prng: &mut Prng, bits: usize, gates: usize) -> Truth {
    // A gate is two earlier signals and a table of four bits.
    let gates: Vec<(u64, u64, u64)> = (0..gates)
        .map(|gate| {
            let signals = (bits + gate) as u64;
            (prng.below(signals), prng.below(signals), 1 + prng.below(14))
        })
        .collect();
    Box::new(move |word| {
        let mut signals = word;
        for (place, (first, second, table)) in gates.iter().enumerate() {
            let row = (signals >> first & 1) | (signals >> second & 1) << 1;
            signals |= (table >> row & 1) << (bits + place);
        }
        signals >> (bits + gates.len() - 1) & 1 == 1
    })
}

fn threshold(prng: &mut Prng, bits: usize) -> Truth {
    let weights: Vec<i64> =
        (0..bits).map(|_| (1 + prng.below(5) as i64) * if prng.bit() { 1 } else { -1 }).collect();
    let middle = weights.iter().sum::<i64>();
    Box::new(move |word| {
        let sum: i64 =
            weights.iter().enumerate().map(|(bit, weight)| weight * (word >> bit & 1) as i64).sum();
        middle < 2 * sum
    })
}

impl Rules for FunctionRules {
    type State = u64;

    fn shape(&self) -> Shape {
        rules::answer_shape(&[self.bits], 2, 1, 1)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> u64 {
        draw.bits(self.bits as u32)
    }

    fn observe(&self, state: &u64) -> Bits {
        let mut observation = Bits::ZERO;
        observation.set_field(0, self.bits, *state);
        observation
    }

    fn play<D: Draw>(&self, state: &mut u64, action: u16, _draw: &mut D) -> Outcome {
        rules::answer(action == self.best(state), true)
    }

    fn best(&self, state: &u64) -> u16 {
        u16::from((self.truth)(*state))
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT))
    }

    fn random(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT / 2))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::ONE)
    }
}

/// One step, the observation is the row, one of two actions is right by a coin per row.
fn truth_table(seed: u64, bits: usize) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/truth");
    let table: Vec<bool> = (0..1u64 << bits).map(|_| prng.bit()).collect();
    Ok(Arc::new(RuleGame::new(FunctionRules { bits, truth: Box::new(move |word| table[word as usize]) })))
}

/// A random process: every state and action has two successors by chance; few pairs are rewarded.
fn process(seed: u64, states: u64, actions: u64, horizon: u64) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/process");
    let mut transitions = Vec::new();
    for state in 0..states {
        for action in 0..actions {
            let reward = if prng.below(8) == 0 { 1_000 } else { 0 };
            let (often, rarely) = (prng.below(states), prng.below(states));
            transitions.push(json!([state, action, often, 4, reward, false]));
            if rarely != often {
                transitions.push(json!([state, action, rarely, 1, reward, false]));
            }
        }
    }
    let table = json!({"states": states, "actions": actions, "horizon": horizon, "start": [[0, 1]],
        "transitions": transitions, "observe": "state"});
    Ok(import::read(Format::Table, &table.to_string(), &Seat::default())?)
}
