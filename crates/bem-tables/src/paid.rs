//! One-step tasks for the held-out rows in which actions earn more or less instead of being right or wrong: a random word is
//! seen, and every action pays what a drawn rule says.

use crate::table::Row;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_games::draw::Draw;
use bem_games::game::{Steps, Value};
use bem_games::rules::{RuleGame, Rules, answer_shape};
use std::sync::Arc;

/// What an action pays for a word, in milli-units from 0 to 1000.
type Pay = Box<dyn Fn(u64, u16) -> i32 + Send + Sync>;

/// A rule with the widths of its fields and the number of its actions.
struct PayRule {
    name: &'static str,
    widths: &'static [usize],
    actions: usize,
    /// What chance adds or takes away, at most.
    chance: i32,
    draw: fn(&mut Prng) -> Pay,
}

/// All rows; what a kind leaves open is drawn anew for every seed.
pub fn rows() -> Vec<Row> {
    let row = |kind: PayRule| Row {
        name: kind.name.to_string(),
        floor: None,
        build: Box::new(move |seed| {
            let pay = (kind.draw)(&mut Prng::stream(seed, "table/paid"));
            let (widths, actions, chance) = (kind.widths.to_vec(), kind.actions, kind.chance);
            Ok(Arc::new(RuleGame::new(PaidRules { widths, actions, chance, pay })))
        }),
    };
    kinds().into_iter().map(row).collect()
}

fn kinds() -> Vec<PayRule> {
    let exact = |name, widths, actions, draw| PayRule { name, widths, actions, chance: 0, draw };
    let noisy = |name, widths, actions, draw| PayRule { name, widths, actions, chance: 150, draw };
    vec![
        exact("paid: largest of four words", &[3, 3, 3, 3], 4, |_| {
            Box::new(|word, action| 140 * field(word, 3 * action, 3))
        }),
        exact("paid: largest of three long words", &[5, 5, 5], 3, |_| {
            Box::new(|word, action| 32 * field(word, 5 * action, 5))
        }),
        exact("paid: quality less price", &[3, 3, 3, 3], 2, |_| {
            Box::new(|word, action| 500 + 60 * (field(word, 6 * action, 3) - field(word, 6 * action + 3, 3)))
        }),
        exact("paid: as high as the other pays", &[4], 16, |_| {
            Box::new(|word, action| {
                let price = i32::from(action);
                if price <= field(word, 0, 4) { 60 * price } else { 0 }
            })
        }),
        exact("paid: three rules in order around one place", &[4, 4, 4], 5, |_| {
            Box::new(|word, action| match [0, 4, 8].map(|plane| field(word, plane + action, 1) == 1) {
                _ if action == 4 => 200,
                [true, _, _] => 1_000,
                [_, true, _] => 470,
                [_, _, true] => 0,
                _ => 200,
            })
        }),
        exact("paid: nearness of two words", &[5, 5], 4, |_| {
            Box::new(|word, action| {
                let moved = field(word, 0, 5) + [-8, -2, 2, 8][usize::from(action)];
                1_000 - 20 * (moved - field(word, 5, 5)).abs()
            })
        }),
        exact("paid: drawn weights of 8 bits, 3 actions", &[8], 3, |prng| weighted(prng, 8, 3)),
        noisy("paid: drawn weights of 8 bits, 4 actions, by chance", &[8], 4, |prng| weighted(prng, 8, 4)),
        noisy("paid: drawn weights of 16 bits, 3 actions, by chance", &[16], 3, |prng| weighted(prng, 16, 3)),
    ]
}

fn field(word: u64, low: u16, width: u16) -> i32 {
    (word >> low & ((1 << width) - 1)) as i32
}

/// Every bit adds its own drawn share to what an action pays.
fn weighted(prng: &mut Prng, bits: usize, actions: usize) -> Pay {
    let most = 600 / bits as u64;
    let mut weights = || -> Vec<i32> { (0..bits).map(|_| prng.below(most + 1) as i32).collect() };
    let weights: Vec<Vec<i32>> = (0..actions).map(|_| weights()).collect();
    Box::new(move |word, action| {
        let shares = weights[usize::from(action)].iter().zip(0..);
        200 + shares.map(|(weight, bit)| weight * field(word, bit, 1)).sum::<i32>()
    })
}

/// One step: a random word is seen, and every action pays.
struct PaidRules {
    widths: Vec<usize>,
    actions: usize,
    chance: i32,
    pay: Pay,
}

impl PaidRules {
    fn bits(&self) -> usize {
        self.widths.iter().sum()
    }

    /// The mean over all words of what this makes of the pays.
    fn mean(&self, of: impl Fn(&[i32]) -> i64) -> Value {
        let pays = |word: u64| -> Vec<i32> {
            (0..self.actions as u16).map(|action| (self.pay)(word, action)).collect()
        };
        let sum: i64 = (0..1u64 << self.bits()).map(|word| of(&pays(word))).sum();
        Value::exact(Fixed::from_ratio(sum, (1 << self.bits()) * self.actions as i64))
    }
}

impl Rules for PaidRules {
    type State = u64;

    fn shape(&self) -> Shape {
        let chance = self.chance;
        let shape = answer_shape(&self.widths, self.actions, 1, 1);
        let (low, high) = (shape.reward_min - chance, shape.reward_max + chance);
        Shape {
            reward_min: low,
            reward_max: high,
            return_min: i64::from(low),
            return_max: i64::from(high),
            ..shape
        }
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> u64 {
        u64::from(draw.below(1 << self.bits()))
    }

    fn observe(&self, state: &u64) -> Bits {
        Bits([*state, 0, 0, 0])
    }

    fn play<D: Draw>(&self, state: &mut u64, action: u16, draw: &mut D) -> Outcome {
        let luck = draw.below(2 * self.chance as u32 + 1) as i32 - self.chance;
        Outcome { reward: (self.pay)(*state, action) + luck, done: true, bad: false }
    }

    fn best(&self, state: &u64) -> u16 {
        let pays =
            (0..self.actions as u16).map(|action| ((self.pay)(*state, action), core::cmp::Reverse(action)));
        pays.max().map_or(0, |(_, core::cmp::Reverse(action))| action)
    }

    fn optimum(&self) -> Value {
        let most = |pays: &[i32]| i64::from(pays.iter().copied().max().unwrap_or(0)) * pays.len() as i64;
        self.mean(most)
    }

    fn random(&self) -> Value {
        self.mean(|pays| pays.iter().map(|pay| i64::from(*pay)).sum())
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::ONE)
    }
}
