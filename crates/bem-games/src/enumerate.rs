//! Exact values of small games, by trying every draw and every action.
//!
//! A policy may use everything it has seen: the search runs over histories of observations, rewards and BAD
//! flags, and keeps for each history the weighted states it may be in. What it finds is what no policy can beat.
//! Must not look at [`Rules::best`] or at stated values: it is there to judge them. Clause: GLE-1.

use crate::draw::{Chance, Draw};
use crate::rules::Rules;
use bem_base::environment::{Bits, Outcome};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use std::collections::BTreeMap;

/// A fraction in lowest terms with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    numerator: i128,
    denominator: i128,
}

impl Fraction {
    /// Zero.
    pub const ZERO: Fraction = Fraction { numerator: 0, denominator: 1 };
    /// One.
    pub const ONE: Fraction = Fraction { numerator: 1, denominator: 1 };

    /// `numerator / denominator`; the denominator must be positive.
    pub fn new(numerator: i128, denominator: i128) -> Fraction {
        assert!(0 < denominator);
        let divisor = greatest_common_divisor(numerator.unsigned_abs(), denominator.unsigned_abs()) as i128;
        Fraction { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    /// The sum; games small enough to enumerate stay far within 127 bits, and a breach panics.
    #[must_use]
    pub fn plus(self, other: Fraction) -> Fraction {
        let shared =
            greatest_common_divisor(self.denominator.unsigned_abs(), other.denominator.unsigned_abs());
        let scale = other.denominator / shared as i128;
        let rest = self.denominator / shared as i128;
        Fraction::new(self.numerator * scale + other.numerator * rest, self.denominator * scale)
    }

    /// The product.
    #[must_use]
    pub fn times(self, other: Fraction) -> Fraction {
        let left = Fraction::new(self.numerator, other.denominator);
        let right = Fraction::new(other.numerator, self.denominator);
        Fraction::new(left.numerator * right.numerator, left.denominator * right.denominator)
    }

    /// Whether this is less than the other.
    pub fn is_less(self, other: Fraction) -> bool {
        let negative = Fraction { numerator: -other.numerator, ..other };
        self.plus(negative).numerator < 0
    }

    /// The number, rounded down at the 32nd fractional bit.
    pub fn to_fixed_floor(self) -> Fixed {
        let whole = self.numerator.div_euclid(self.denominator);
        let rest = self.numerator.rem_euclid(self.denominator);
        // Dropping low bits of a long denominator keeps the shift within range; the error is far below a bit.
        let excess = (127 - self.denominator.leading_zeros()).saturating_sub(90);
        let fraction = ((rest >> excess) << FRACTION_BITS) / (self.denominator >> excess);
        Fixed::from_raw(((whole << FRACTION_BITS) + fraction) as i64)
    }
}

fn greatest_common_divisor(mut first: u128, mut second: u128) -> u128 {
    while second != 0 {
        (first, second) = (second, first % second);
    }
    first.max(1)
}

/// Exact values of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    /// The expected return of the best policy over histories.
    pub optimum: Fraction,
    /// The expected return of choosing every action with equal chance.
    pub random: Fraction,
    /// The expected steps of an episode under random choice.
    pub steps: Fraction,
}

/// The exact values, or nothing when more than `work_max` plays would have to be tried.
pub fn exact_values<R: Rules>(rules: &R, work_max: u64) -> Option<Exact> {
    let mut search = TreeWalk { rules, actions: rules.shape().actions, work_left: work_max };
    let mut histories: Histories<Bits, R::State> = BTreeMap::new();
    let mut script = Script::default();
    loop {
        let state = rules.begin(&mut script);
        search.work_left = search.work_left.checked_sub(1)?;
        let weight = script.weight();
        histories.entry(rules.observe(&state)).or_default().push(Weighted { weight, state });
        if !script.advance() {
            break;
        }
    }
    let mut total = NOTHING;
    for states in histories.into_values() {
        total = total.plus(search.value(&states)?);
    }
    Some(total)
}

struct Weighted<S> {
    weight: Fraction,
    state: S,
}

/// The states one may be in, by what was seen.
type Histories<Seen, S> = BTreeMap<Seen, Vec<Weighted<S>>>;

const NOTHING: Exact = Exact { optimum: Fraction::ZERO, random: Fraction::ZERO, steps: Fraction::ZERO };

impl Exact {
    fn plus(self, other: Exact) -> Exact {
        Exact {
            optimum: self.optimum.plus(other.optimum),
            random: self.random.plus(other.random),
            steps: self.steps.plus(other.steps),
        }
    }
}

struct TreeWalk<'a, R> {
    rules: &'a R,
    actions: u16,
    work_left: u64,
}

impl<R: Rules> TreeWalk<'_, R> {
    /// Values of what follows one history, weighted by the chance of that history.
    fn value(&mut self, states: &[Weighted<R::State>]) -> Option<Exact> {
        let mut best: Option<Fraction> = None;
        let mut mean = NOTHING;
        let share = Fraction::new(1, i128::from(self.actions));
        for action in 0..self.actions {
            let after = self.value_of_action(states, action)?;
            if best.is_none_or(|best| best.is_less(after.optimum)) {
                best = Some(after.optimum);
            }
            mean.random = mean.random.plus(after.random.times(share));
            mean.steps = mean.steps.plus(after.steps.times(share));
        }
        Some(Exact { optimum: best.expect("every world has an action"), ..mean })
    }

    fn value_of_action(&mut self, states: &[Weighted<R::State>], action: u16) -> Option<Exact> {
        let mut histories: Histories<(Bits, i32, bool), R::State> = BTreeMap::new();
        let mut total = NOTHING;
        for before in states {
            let mut script = Script::default();
            loop {
                self.work_left = self.work_left.checked_sub(1)?;
                let mut state = before.state.clone();
                let Outcome { reward, done, bad } = self.rules.play(&mut state, action, &mut script);
                let weight = before.weight.times(script.weight());
                let gain = weight.times(Fraction::new(i128::from(reward), 1));
                total = total.plus(Exact { optimum: gain, random: gain, steps: weight });
                if !done {
                    let seen = (self.rules.observe(&state), reward, bad);
                    histories.entry(seen).or_default().push(Weighted { weight, state });
                }
                if !script.advance() {
                    break;
                }
            }
        }
        for states in histories.into_values() {
            total = total.plus(self.value(&states)?);
        }
        Some(total)
    }
}

/// A source of draws that goes through all outcomes in turn.
#[derive(Default)]
struct Script {
    choices: Vec<Choice>,
    next: usize,
}

/// One branching on the path that is tried: which way was taken, of how many.
struct Choice {
    taken: u64,
    count: u64,
    /// For an uneven choice between false (0) and true (1): the units of true.
    chance: Option<Chance>,
}

impl Script {
    fn take(&mut self, count: u64, chance: Option<Chance>) -> u64 {
        if self.next == self.choices.len() {
            self.choices.push(Choice { taken: 0, count, chance });
        }
        self.next += 1;
        self.choices[self.next - 1].taken
    }

    /// The chance of the outcomes taken.
    fn weight(&self) -> Fraction {
        self.choices.iter().fold(Fraction::ONE, |weight, choice| {
            weight.times(match choice.chance {
                None => Fraction::new(1, i128::from(choice.count)),
                Some(chance) => {
                    let whole = 1 << Chance::BITS;
                    let units = i128::from(chance.units());
                    Fraction::new(if choice.taken == 1 { units } else { whole - units }, whole)
                }
            })
        })
    }

    /// Goes to the next outcome; false when all were taken.
    fn advance(&mut self) -> bool {
        self.next = 0;
        while let Some(last) = self.choices.last_mut() {
            if last.taken + 1 < last.count {
                last.taken += 1;
                return true;
            }
            self.choices.pop();
        }
        false
    }
}

impl Draw for Script {
    fn bits(&mut self, count: u32) -> u64 {
        assert!(count < 32, "a game with {count} free bits is not small");
        self.take(1 << count, None)
    }

    fn pick(&mut self, bound: u32, accept: impl Fn(u32) -> bool) -> u32 {
        let accepted = || (0..bound).filter(|number| accept(*number));
        let place = self.take(accepted().count() as u64, None);
        accepted().nth(place as usize).expect("a number is accepted")
    }

    fn chance(&mut self, chance: Chance) -> bool {
        self.take(2, Some(chance)) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::{Steps, Value};
    use crate::rules::{answer, answer_shape, pass};
    use bem_base::environment::Shape;

    /// A hidden coin with three faces is shown for one step, then asked for: only memory answers it. The third face
    /// looks like the second.
    struct Remember;

    impl Rules for Remember {
        /// The face, and whether it is asked for.
        type State = (u32, bool);

        fn shape(&self) -> Shape {
            answer_shape(&[1], 3, 2, 1)
        }

        fn begin<D: Draw>(&self, draw: &mut D) -> (u32, bool) {
            (draw.below(3), false)
        }

        fn observe(&self, (face, asked): &(u32, bool)) -> Bits {
            Bits([u64::from(!asked && 0 < *face), 0, 0, 0])
        }

        fn play<D: Draw>(&self, (face, asked): &mut (u32, bool), action: u16, _draw: &mut D) -> Outcome {
            if *asked {
                return answer(u32::from(action) == *face, true);
            }
            *asked = true;
            pass(false)
        }

        fn best(&self, (face, _): &(u32, bool)) -> u16 {
            *face as u16
        }

        fn optimum(&self) -> Value {
            Value::exact(Fixed::from_int(1_000))
        }

        fn random(&self) -> Value {
            Value::exact(Fixed::from_ratio(1_000, 3))
        }

        fn steps(&self) -> Steps {
            Steps::Drawn(Fixed::from_int(2))
        }
    }

    #[test]
    fn policies_remember_but_do_not_see_what_is_hidden() {
        let exact = exact_values(&Remember, 1_000).unwrap();
        // One face is known for sure; of the two that look alike, either guess is right half of the time.
        assert_eq!(exact.optimum, Fraction::new(2_000, 3));
        assert_eq!(exact.random, Fraction::new(1_000, 3));
        assert_eq!(exact.steps, Fraction::new(2, 1));
    }

    #[test]
    fn an_optimum_that_only_a_clairvoyant_reaches_is_found_out() {
        let game = crate::rules::RuleGame::new(Remember);
        let breach = crate::conformance::check_exactly(&game, 1_000).unwrap_err();
        assert_eq!(breach.to_string(), "enumeration finds the optimum 666.666666, stated is 1000.000000");
    }

    #[test]
    fn work_is_bounded() {
        assert_eq!(exact_values(&Remember, 5), None);
    }

    #[test]
    fn fractions_add_multiply_and_compare_exactly() {
        let third = Fraction::new(1, 3);
        assert_eq!(third.plus(Fraction::new(1, 6)), Fraction::new(1, 2));
        assert_eq!(third.times(Fraction::new(-3, 4)), Fraction::new(-1, 4));
        assert!(Fraction::new(-1, 2).is_less(third) && !third.is_less(third));
        assert_eq!(Fraction::new(-1, 3).to_fixed_floor(), Fixed::from_ratio(-1, 3));
        assert_eq!(Fraction::new(1 << 100, 3 << 100).to_fixed_floor(), Fixed::from_ratio(1, 3));
        let long = Fraction::new((1 << 120) / 3, 1 << 120);
        assert!(Fixed::from_ratio(1, 3).minus(long.to_fixed_floor()) <= Fixed::from_raw(1));
    }
}
