//! Graded rewards: for every action a number that says how much it earns here, and the action with the highest one.
//!
//! Where rewards have more than two levels, what earns the highest of all tells nothing about rows in which nobody can
//! earn it. Two ways to write a reward as bits are tried. Its value above the lowest, in units of what all differences
//! are multiples of, suits what is added up or read off a field. One bit per level, set if at least that much is earned,
//! suits rules of which one goes before the other. Each bit is a function of the row like any other; a circuit
//! compares. Must not know games. Clauses: SCC-2.

use crate::function::Function;
use crate::functions::{self, Found};
use crate::hypothesis::{Stated, build};
use crate::policy::action_bits;
use crate::samples::{Samples, Work, latest};
use crate::statement::{Choice, Number};
use crate::view::{Record, View};
use bem_base::environment::Shape;
use bem_circuit::netlist::{Builder, Signal};

/// Actions at most.
const ACTIONS_MAX: u16 = 32;
/// Levels at most, for one bit each.
const LEVELS_MAX: usize = 16;
/// Bits of a value at most.
const VALUE_BITS_MAX: u32 = 10;

/// How a reward is written as bits.
enum Coding {
    /// The reward above the lowest in units of the greatest common divisor, lowest bit first.
    Value { lowest: i64, unit: i64, bits: u32 },
    /// One bit per level above the lowest: at least this much.
    Levels(Vec<i32>),
}

impl Coding {
    /// The ways to write these rewards, ascending and at least two of them, that are not too long.
    fn all_of(rewards: &[i32]) -> Vec<Coding> {
        let lowest = i64::from(rewards[0]);
        let above = || rewards[1..].iter().map(|reward| i64::from(*reward) - lowest);
        let unit = above().fold(0, greatest_common_divisor);
        let bits = above().next_back().map_or(0, |most| (most / unit).ilog2() + 1);
        let value = (bits <= VALUE_BITS_MAX).then_some(Coding::Value { lowest, unit, bits });
        let levels = (rewards.len() <= LEVELS_MAX).then(|| Coding::Levels(rewards[1..].to_vec()));
        value.into_iter().chain(levels).collect()
    }

    fn len(&self) -> usize {
        match self {
            Coding::Value { bits, .. } => *bits as usize,
            Coding::Levels(levels) => levels.len(),
        }
    }

    fn bit(&self, reward: i32, place: usize) -> bool {
        match self {
            Coding::Value { lowest, unit, .. } => ((i64::from(reward) - lowest) / unit) >> place & 1 == 1,
            Coding::Levels(levels) => levels[place] <= reward,
        }
    }

    fn words(&self) -> &'static str {
        match self {
            Coding::Value { .. } => "value",
            Coding::Levels(_) => "level",
        }
    }
}

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Fits what every action earns where there are more than two levels of it.
pub fn fit(shape: &Shape, view: &View, work: &mut Work) -> Option<(Stated, u32, String)> {
    let rewards: Vec<i32> = view.rewards().into_iter().collect();
    if rewards.len() < 3 || ACTIONS_MAX < shape.actions {
        return None;
    }
    Coding::all_of(&rewards).iter().find_map(|coding| fit_coded(shape, view, coding, work))
}

fn fit_coded(shape: &Shape, view: &View, coding: &Coding, work: &mut Work) -> Option<(Stated, u32, String)> {
    let mut sibling: Option<Found> = None;
    let mut grades: Vec<Vec<Function>> = Vec::new();
    for action in 0..shape.actions {
        let mut grade = Vec::new();
        for place in 0..coding.len() {
            let found = fit_bit(view, action, (coding, place), sibling.as_ref(), work)?;
            grade.push(found.function.clone());
            sibling = Some(found);
        }
        grades.push(grade);
    }
    let length = grades.iter().flatten().map(|function| function.description_length).sum();
    let digits = |grade: &Vec<Function>| {
        Number::Digits(grade.iter().map(|function| function.statement.clone()).collect())
    };
    let choice = Choice::Highest(grades.iter().map(digits).collect());
    let stated = build(shape, None, choice, |builder, row| {
        let number = |grade: &Vec<Function>| grade.iter().map(|bit| bit.embed(builder, row)).collect();
        let numbers = grades.iter().map(number).collect();
        highest(builder, shape.actions, numbers)
    })?;
    let longest = grades.iter().flatten().max_by_key(|function| function.description_length)?;
    let words = format!(
        "action of the highest {} of {}, each of {} bits [{}, ...]",
        coding.words(),
        shape.actions,
        coding.len(),
        longest.words
    );
    Some((stated, length, words))
}

/// One bit of what one action earns, if it also holds where it was not fitted.
fn fit_bit(
    view: &View,
    action: u16,
    (coding, place): (&Coding, usize),
    sibling: Option<&Found>,
    work: &mut Work,
) -> Option<Found> {
    let samples = |screen: bool| {
        let taken = view.balanced(|record| record.action == action && record.screen == screen);
        let label = |record: &Record| (record.row, coding.bit(record.reward, place));
        Samples::new(view.width, view.groups.clone(), latest(taken.map(label)), 0)
    };
    let found = functions::fit_like(&samples(false), sibling, work)?;
    found.function.holds_up(&samples(true), 0).then_some(found)
}

/// The code of the action with the highest number, the lowest of those that tie. Levels compare as numbers do: whoever
/// reaches a higher one reaches all below it.
pub(super) fn highest(builder: &mut Builder, actions: u16, numbers: Vec<Vec<Signal>>) -> Vec<Signal> {
    let code = |action: u16, bit: usize| Signal::constant(action >> bit & 1 == 1);
    let mut chosen: Vec<Signal> = (0..action_bits(actions)).map(|bit| code(0, bit)).collect();
    let width = numbers.iter().map(Vec::len).max().unwrap_or(0);
    let mut best: Option<Vec<Signal>> = None;
    for (action, mut number) in (0..actions).zip(numbers) {
        number.resize(width, Signal::FALSE);
        let Some(held) = &mut best else {
            best = Some(number);
            continue;
        };
        let is_more = exceeds(builder, &number, held);
        held.iter_mut().zip(&number).for_each(|(old, new)| *old = builder.mux(is_more, *new, *old));
        for (bit, signal) in chosen.iter_mut().enumerate() {
            *signal = builder.mux(is_more, code(action, bit), *signal);
        }
    }
    chosen
}

/// Whether the first binary number, lowest bit first, is the larger one.
fn exceeds(builder: &mut Builder, first: &[Signal], second: &[Signal]) -> Signal {
    first.iter().zip(second).fold(Signal::FALSE, |below, (first, second)| {
        let differs = builder.xor(*first, *second);
        builder.mux(differs, *first, below)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experience::{Episode, Step};
    use crate::policy::Player;
    use bem_base::environment::{Bits, Field};
    use bem_base::prng::Prng;

    fn shape(widths: &[u16], actions: u16) -> Shape {
        let mut low = 0;
        let mut field = |width: &u16| {
            let field = Field { low, width: *width };
            low += width;
            field
        };
        let fields = widths.iter().map(&mut field).collect();
        Shape {
            observation_bits: low,
            actions,
            horizon: 1,
            reward_min: -1_000,
            reward_max: 1_000,
            return_min: -1_000,
            return_max: 1_000,
            fields,
        }
    }

    /// Learns from uniform play and counts rows in which less is earned than could be.
    fn losses(shape: &Shape, steps: u64, earns: impl Fn(u64, u16) -> i32) -> Option<usize> {
        let mut prng = Prng::stream(4, "graded");
        let mut draw = || prng.below(1 << shape.observation_bits);
        let episodes: Vec<Episode> = (0..steps)
            .map(|serial| {
                let (word, action) = (draw(), (draw() % u64::from(shape.actions)) as u16);
                let step = Step {
                    observation: Bits([word, 0, 0, 0]),
                    action,
                    reward: earns(word, action),
                    done: true,
                    bad: false,
                    uniform: true,
                    propensity: 16_383,
                };
                Episode { serial, steps: vec![step] }
            })
            .collect();
        let view = View::new(shape, &episodes.iter().collect::<Vec<_>>(), None).unwrap();
        let (Stated { policy, .. }, _, _) = fit(shape, &view, &mut Work::new(1 << 30))?;
        let mut player = Player::new(&policy);
        let lost = |word: &u64| {
            let action = player.act(&Bits([*word, 0, 0, 0]));
            let best = (0..shape.actions).map(|action| earns(*word, action)).max();
            Some(earns(*word, action)) < best
        };
        Some((0..1 << shape.observation_bits).filter(lost).count())
    }

    #[test]
    fn the_largest_of_four_fields_is_taken() {
        let value = |word: u64, action: u16| 140 * (word >> (3 * action) & 7) as i32;
        assert_eq!(losses(&shape(&[3, 3, 3, 3], 4), 400, value), Some(0));
    }

    #[test]
    fn rules_of_which_one_goes_before_the_other_are_told_by_level() {
        let earns = |word: u64, action: u16| {
            let at = |plane: u16| word >> (4 * plane + action) & 1 == 1;
            match () {
                () if action == 3 => 0,
                () if at(0) => 1_000,
                () if at(1) => 310,
                () if at(2) => -207,
                () => 0,
            }
        };
        assert_eq!(losses(&shape(&[1; 12], 4), 2_000, earns), Some(0));
    }

    #[test]
    fn a_price_is_as_high_as_the_other_pays() {
        let earns =
            |word: u64, action: u16| if u64::from(action) <= word { 60 * i32::from(action) } else { 0 };
        assert_eq!(losses(&shape(&[4], 16), 4_000, earns), Some(0));
    }

    #[test]
    fn two_levels_and_coins_are_left_to_others() {
        assert_eq!(losses(&shape(&[4], 2), 400, |word, action| (word >> action & 1) as i32), None);
        let coin = |word: u64, action: u16| (word.wrapping_mul(0x9E37_79B9) >> (7 + action) & 3) as i32;
        assert_eq!(losses(&shape(&[16], 2), 300, coin), None);
    }
}
