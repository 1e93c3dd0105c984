//! One-step tasks for the held-out rows: a random word is seen, and one action is right by a function that was drawn.

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
pub fn rows() -> Vec<Row> {
    vec![
        Row::drawn("truth table of 6 bits", |seed| truth_table(seed, 6, 2)),
        Row::drawn("truth table of 8 bits", |seed| truth_table(seed, 8, 2)),
        Row::drawn("truth table of 5 bits, 4 actions", |seed| truth_table(seed, 5, 4)),
        Row::drawn("truth table of 6 bits, 8 actions", |seed| truth_table(seed, 6, 8)),
        Row::drawn("hidden truth table of 4 of 24 bits", |seed| hidden(seed, 24, 4, any_table)),
        Row::drawn("hidden truth table of 6 of 24 bits", |seed| hidden(seed, 24, 6, any_table)),
        Row::drawn("hidden truth table of 8 of 24 bits", |seed| hidden(seed, 24, 8, any_table)),
        Row::drawn("hidden threshold over 9 of 24 bits", |seed| hidden(seed, 24, 9, count_at_least)),
        Row::drawn("hidden count modulo 3 over 8 of 20 bits", |seed| {
            hidden(seed, 20, 8, |_, _| count_modulo(3))
        }),
        Row::drawn("hidden count modulo 5 over 9 of 20 bits", |seed| {
            hidden(seed, 20, 9, |_, _| count_modulo(5))
        }),
        Row::drawn("hidden xor of 4 ands, 20 bits", |seed| hidden(seed, 20, 8, |_, _| xor_of_ands())),
        Row::drawn("hidden order of two words of 5, 20 bits", |seed| hidden(seed, 20, 10, |_, _| order())),
        Row::drawn("4 conjunctions of 3 literals, 16 bits", |seed| function(seed, 16, conjunctions)),
        Row::drawn("6 conjunctions of 2 to 5 literals, 20 bits", |seed| {
            function(seed, 20, many_conjunctions)
        }),
        Row::drawn("list of 6 rules with 2 literals, 16 bits", |seed| function(seed, 16, rule_list)),
        Row::drawn("list of 8 rules with 1 to 4 literals, 16 bits", |seed| {
            function(seed, 16, longer_rule_list)
        }),
        Row::drawn("tree of depth 4, 16 bits", |seed| function(seed, 16, |prng, bits| tree(prng, bits, 4))),
        Row::drawn("tree of depth 6, 16 bits", |seed| function(seed, 16, |prng, bits| tree(prng, bits, 6))),
        Row::drawn("circuit of 8 gates, 10 bits", |seed| {
            function(seed, 10, |prng, bits| circuit(prng, bits, 8))
        }),
        Row::drawn("circuit of 20 gates, 8 bits", |seed| {
            function(seed, 8, |prng, bits| circuit(prng, bits, 20))
        }),
        Row::drawn("weights 1 to 5, 12 bits", |seed| {
            function(seed, 12, |prng, bits| weighted(prng, bits, 5))
        }),
        Row::drawn("weights 1 to 9, 16 bits", |seed| {
            function(seed, 16, |prng, bits| weighted(prng, bits, 9))
        }),
    ]
}

/// The right action for every word.
type Truth = Box<dyn Fn(u64) -> bool + Send + Sync>;

/// One step: a random word is seen, and one action is right by a function that was drawn.
pub struct FunctionRules {
    /// The widths of the fields that the word is shown as.
    pub widths: Vec<usize>,
    /// Actions are below this.
    pub actions: usize,
    /// The right action for a word.
    pub right: Box<dyn Fn(u64) -> u16 + Send + Sync>,
}

impl FunctionRules {
    fn bits(&self) -> usize {
        self.widths.iter().sum()
    }
}

/// A function of this many bits, drawn until neither answer is right far more often.
fn function(seed: u64, bits: usize, draw: fn(&mut Prng, usize) -> Truth) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/function");
    loop {
        let truth = draw(&mut prng, bits);
        let ones = (0..512).filter(|_| truth(prng.below(1 << bits))).count();
        if (154..=358).contains(&ones) {
            let right = Box::new(move |word| u16::from(truth(word)));
            return Ok(Arc::new(RuleGame::new(FunctionRules { widths: vec![bits], actions: 2, right })));
        }
    }
}

/// A function of a few bits that lie anywhere in a longer word, some of them inverted.
fn hidden(
    seed: u64,
    bits: usize,
    relevant: usize,
    draw: fn(&mut Prng, usize) -> Truth,
) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/hidden");
    let mut places: Vec<usize> = (0..bits).collect();
    prng.shuffle(&mut places);
    places.truncate(relevant);
    let inverted = prng.below(1 << relevant);
    loop {
        let truth = draw(&mut prng, relevant);
        let ones = (0..512).filter(|_| truth(prng.below(1 << relevant))).count();
        if (102..=410).contains(&ones) {
            let right = Box::new(move |word: u64| {
                let shown = places.iter().rev().fold(0, |shown, place| shown << 1 | word >> place & 1);
                u16::from(truth(shown ^ inverted))
            });
            return Ok(Arc::new(RuleGame::new(FunctionRules { widths: vec![bits], actions: 2, right })));
        }
    }
}

/// One action is right by a draw per row.
fn truth_table(seed: u64, bits: usize, actions: usize) -> Result<Arc<dyn Game>> {
    let mut prng = Prng::stream(seed, "table/truth");
    let table: Vec<u16> = (0..1u64 << bits).map(|_| prng.below(actions as u64) as u16).collect();
    let right = Box::new(move |word| table[word as usize]);
    Ok(Arc::new(RuleGame::new(FunctionRules { widths: vec![bits], actions, right })))
}

fn any_table(prng: &mut Prng, bits: usize) -> Truth {
    let table: Vec<bool> = (0..1u64 << bits).map(|_| prng.bit()).collect();
    Box::new(move |word| table[word as usize])
}

fn count_at_least(prng: &mut Prng, bits: usize) -> Truth {
    let bound = prng.between(3, bits as i64 - 3) as u32;
    Box::new(move |word| bound <= word.count_ones())
}

fn count_modulo(modulus: u32) -> Truth {
    Box::new(move |word| word.count_ones().is_multiple_of(modulus))
}

fn xor_of_ands() -> Truth {
    Box::new(|word| (word & word >> 1 & 0x55).count_ones() % 2 == 1)
}

fn order() -> Truth {
    Box::new(|word| word & 31 < word >> 5)
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

fn many_conjunctions(prng: &mut Prng, bits: usize) -> Truth {
    let mut term = || {
        let count = prng.between(2, 5) as u32;
        literals(prng, bits, count)
    };
    let terms: Vec<(u64, u64)> = (0..6).map(|_| term()).collect();
    Box::new(move |word| terms.iter().any(|(mask, value)| word & mask == *value))
}

fn rule_list(prng: &mut Prng, bits: usize) -> Truth {
    let rules = (0..6).map(|_| (literals(prng, bits, 2), prng.bit())).collect();
    first_rule(rules, prng.bit())
}

fn longer_rule_list(prng: &mut Prng, bits: usize) -> Truth {
    let mut rule = || {
        let count = prng.between(1, 4) as u32;
        (literals(prng, bits, count), prng.bit())
    };
    let rules = (0..8).map(|_| rule()).collect();
    first_rule(rules, prng.bit())
}

/// The label of the first rule that holds.
fn first_rule(rules: Vec<((u64, u64), bool)>, otherwise: bool) -> Truth {
    Box::new(move |word| {
        let first = rules.iter().find(|((mask, value), _)| word & mask == *value);
        first.map_or(otherwise, |(_, label)| *label)
    })
}

/// A full tree: every inner node asks for a bit that was drawn, every leaf has a label that was drawn.
fn tree(prng: &mut Prng, bits: usize, depth: usize) -> Truth {
    let asked: Vec<u64> = (0..1 << depth).map(|_| prng.below(bits as u64)).collect();
    let labels = prng.next_u64();
    Box::new(move |word| {
        let node = (0..depth).fold(1usize, |node, _| node << 1 | (word >> asked[node] & 1) as usize);
        labels >> (node - (1 << depth)) & 1 == 1
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

fn weighted(prng: &mut Prng, bits: usize, weight_max: u64) -> Truth {
    let weights: Vec<i64> =
        (0..bits).map(|_| (1 + prng.below(weight_max) as i64) * if prng.bit() { 1 } else { -1 }).collect();
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
        rules::answer_shape(&self.widths, self.actions, 1, 1)
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> u64 {
        draw.bits(self.bits() as u32)
    }

    fn observe(&self, state: &u64) -> Bits {
        let mut observation = Bits::ZERO;
        observation.set_field(0, self.bits(), *state);
        observation
    }

    fn play<D: Draw>(&self, state: &mut u64, action: u16, _draw: &mut D) -> Outcome {
        rules::answer(action == self.best(state), true)
    }

    fn best(&self, state: &u64) -> u16 {
        (self.right)(*state)
    }

    fn optimum(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT))
    }

    fn random(&self) -> Value {
        Value::exact(Fixed::from_int(RIGHT).div_count_floor(self.actions as u64))
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::ONE)
    }
}
