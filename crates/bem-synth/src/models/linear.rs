//! Rewards as weighted sums of bits: for every action the weights that fit best, and the action with the highest sum.
//!
//! Where every bit adds its own share to what an action earns, with chance on top, a table would need a row for every
//! combination. Where an answer is right or wrong there is nothing to add up, and this is not asked. Bits are taken up one by one, the one that explains most of what is left first, as long as that is far more
//! than chance; then all weights are fitted again. Means and products are sums of whole numbers, so that nothing is
//! rounded before the weights are. Must not know games. Clauses: SCC-2.

use super::graded::highest;
use crate::function::{add_weighted, build_sum};
use crate::hypothesis::{Stated, build};
use crate::samples::Work;
use crate::statement::{Choice, Number};
use crate::view::{Record, View};
use bem_base::environment::Shape;
use bem_circuit::netlist::{Builder, Op, Signal};

/// Actions, bits that are weighed, and steps of one action that are looked at, at most.
const ACTIONS_MAX: u16 = 16;
const BITS_MAX: usize = 24;
const STEPS_MAX: usize = 16_000;
/// Steps of an action without which nothing is said about it.
const STEPS_MIN: usize = 32;
/// The squared ratio of a weight to its error from which a bit is taken up. The first must be out of the reach of chance among
/// hundreds of idle bits; where one matters others are likely to.
const RATIOS_SQUARED: [i128; 2] = [16, 4];
/// Rounds in which each weight is fitted to what the others leave.
const ROUNDS: usize = 40;
/// Fraction bits of a weight while it is fitted.
const WEIGHT_BITS: u32 = 10;
/// The largest weight of the circuit.
const WEIGHT_MAX: i128 = 127;

/// The weights of one action, in milli-units with [`WEIGHT_BITS`] of fraction.
pub(super) struct Fit {
    pub(super) constant: i128,
    pub(super) weights: Vec<(usize, i128)>,
}

/// Fits weighted sums of bits to what every action earned; none unless some bit matters to some action.
pub fn fit(shape: &Shape, view: &View, work: &mut Work) -> Option<(Stated, u32, String)> {
    if ACTIONS_MAX < shape.actions || view.rewards().len() < 3 {
        return None;
    }
    let fits: Option<Vec<Fit>> =
        (0..shape.actions).map(|action| fit_action(view, action, RATIOS_SQUARED, work)).collect();
    let fits = fits?;
    let weighed: usize = fits.iter().map(|fit| fit.weights.len()).sum();
    let largest = fits.iter().flat_map(|fit| &fit.weights).map(|(_, weight)| weight.abs()).max()?;
    let unit = (largest / WEIGHT_MAX).max(1);
    let lowest = fits.iter().map(Fit::lowest).min()?;
    let choice = Choice::Highest(fits.iter().map(|fit| fit.statement((lowest, unit))).collect());
    let stated = build(shape, None, choice, |builder, row| {
        let numbers: Vec<Vec<Signal>> =
            fits.iter().map(|fit| fit.sum(builder, row, (lowest, unit))).collect();
        highest(builder, shape.actions, numbers)
    })?;
    let words = format!("action of the highest sum of {}, {weighed} weights in all", shape.actions);
    Some((stated, 16 * weighed as u32, words))
}

impl Fit {
    /// The lowest sum that any row can have.
    fn lowest(&self) -> i128 {
        self.constant + self.weights.iter().map(|(_, weight)| (*weight).min(0)).sum::<i128>()
    }

    /// The same sum, said as data.
    fn statement(&self, (lowest, unit): (i128, i128)) -> Number {
        let weight = |(bit, weight): &(usize, i128)| {
            (*bit as u16, 0 <= *weight, ((weight.abs() + unit / 2) / unit) as u64)
        };
        Number::Weighted {
            base: ((self.lowest() - lowest) / unit) as u64,
            weights: self.weights.iter().map(weight).collect(),
        }
    }

    /// The sum above the lowest of all actions, in this unit, lowest bit first.
    fn sum(&self, builder: &mut Builder, row: &[Signal], (lowest, unit): (i128, i128)) -> Vec<Signal> {
        let mut ranks: Vec<Vec<Signal>> = Vec::new();
        add_weighted(&mut ranks, ((self.lowest() - lowest) / unit) as u64, Signal::TRUE);
        for (bit, weight) in &self.weights {
            // A negative weight is a positive one of the inverted bit: what it takes off is in the lowest sum already.
            let counted = builder.gate(Op::Xor, row[*bit], Signal::constant(*weight < 0));
            add_weighted(&mut ranks, ((weight.abs() + unit / 2) / unit) as u64, counted);
        }
        build_sum(builder, ranks)
    }
}

/// Sums over the steps of one action.
struct Sums {
    count: i128,
    rewards: i128,
    /// Rows with this bit set, as words of steps.
    columns: Vec<Vec<u64>>,
    /// Steps with each bit, and what they earned.
    with: Vec<(i128, i128)>,
    /// Steps times the summed squares, less the square of the sum.
    spread: i128,
}

impl Sums {
    fn of(records: &[&Record], width: usize) -> Sums {
        let mut columns = vec![vec![0u64; records.len().div_ceil(64)]; width];
        let mut with = vec![(0, 0); width];
        let (mut rewards, mut squares) = (0, 0);
        for (position, record) in records.iter().enumerate() {
            let reward = i128::from(record.reward);
            (rewards, squares) = (rewards + reward, squares + reward * reward);
            for bit in (0..width).filter(|bit| record.row.get(*bit)) {
                columns[bit][position / 64] |= 1 << (position % 64);
                with[bit] = (with[bit].0 + 1, with[bit].1 + reward);
            }
        }
        let count = records.len() as i128;
        Sums { count, rewards, columns, with, spread: count * squares - rewards * rewards }
    }

    /// How two bits go together, times the squared number of steps.
    fn covariance(&self, one: usize, other: usize) -> i128 {
        let words = self.columns[one].iter().zip(&self.columns[other]);
        let both: u32 = words.map(|(one, other)| (one & other).count_ones()).sum();
        self.count * i128::from(both) - self.with[one].0 * self.with[other].0
    }

    /// How a bit goes with itself: no step has to be looked at for that.
    fn variance(&self, bit: usize) -> i128 {
        self.with[bit].0 * (self.count - self.with[bit].0)
    }

    /// How a bit goes with what is earned, times the squared number of steps.
    fn slope(&self, bit: usize) -> i128 {
        self.count * self.with[bit].1 - self.with[bit].0 * self.rewards
    }
}

/// The weights of one action; the squared ratio of a weight to its error from which the first bit is taken up, and the others.
pub(super) fn fit_action(view: &View, action: u16, ratios: [i128; 2], work: &mut Work) -> Option<Fit> {
    let taken = view.told().rev().filter(|record| record.action == action && !record.screen);
    let records: Vec<&Record> = taken.take(STEPS_MAX).collect();
    let cost = records.len().div_ceil(64) * view.width * BITS_MAX + records.len() * view.width / 4;
    if records.len() < STEPS_MIN || !work.spend(cost as u64) {
        return None;
    }
    let sums = Sums::of(&records, view.width);
    let mut weights: Vec<(usize, i128)> = Vec::new();
    // Covariances of every bit with those that are weighed.
    let mut rows: Vec<Vec<i128>> = Vec::new();
    let slopes: Vec<i128> = (0..view.width).map(|bit| sums.slope(bit)).collect();
    while weights.len() < BITS_MAX {
        let left = |bit: usize| {
            let explained: i128 = weights.iter().zip(&rows).map(|((_, weight), row)| weight * row[bit]).sum();
            slopes[bit] - (explained >> WEIGHT_BITS)
        };
        let explained: i128 = weights.iter().map(|(bit, weight)| weight * slopes[*bit]).sum();
        let unexplained = (sums.spread - (explained >> WEIGHT_BITS)).max(1);
        let fresh = (0..view.width).filter(|bit| weights.iter().all(|(weighed, _)| weighed != bit));
        let gain = |bit: usize| {
            let left = left(bit);
            left * left / sums.variance(bit).max(1)
        };
        let best = fresh.map(|bit| (gain(bit), core::cmp::Reverse(bit))).max();
        let Some((gained, core::cmp::Reverse(bit))) = best else { break };
        let ratio = ratios[usize::from(!weights.is_empty())];
        if gained * sums.count <= ratio * unexplained {
            break;
        }
        rows.push((0..view.width).map(|other| sums.covariance(bit, other)).collect());
        weights.push((bit, 0));
        refit(&mut weights, &rows, &slopes);
    }
    let shares: i128 = weights.iter().map(|(bit, weight)| weight * sums.with[*bit].0).sum();
    Some(Fit { constant: ((sums.rewards << WEIGHT_BITS) - shares) / sums.count, weights })
}

/// Fits each weight in turn to what the others leave, until that changes little.
fn refit(weights: &mut [(usize, i128)], rows: &[Vec<i128>], slopes: &[i128]) {
    for _ in 0..ROUNDS {
        for place in 0..weights.len() {
            let (bit, own) = weights[place];
            let explained: i128 = weights.iter().zip(rows).map(|((_, weight), row)| weight * row[bit]).sum();
            let left = (slopes[bit] << WEIGHT_BITS) - explained;
            weights[place].1 = own + left / rows[place][bit].max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experience::{Episode, Step};
    use crate::policy::Player;
    use bem_base::environment::{Bits, Field};
    use bem_base::prng::Prng;

    #[test]
    fn the_action_of_the_highest_sum_is_found_under_chance_and_coins_are_left_alone() {
        let shape = Shape {
            observation_bits: 14,
            actions: 3,
            horizon: 1,
            reward_min: -1_000,
            reward_max: 2_000,
            return_min: -1_000,
            return_max: 2_000,
            fields: vec![Field { low: 0, width: 14 }],
        };
        let weights: [[i64; 8]; 3] = [
            [90, -40, 0, 10, 70, -80, 20, 30],
            [-60, 50, 40, -90, 10, 60, 0, -20],
            [20, 80, -70, 60, -50, 0, 40, 10],
        ];
        let sum = |word: u64, action: usize| -> i64 {
            weights[action].iter().enumerate().map(|(bit, weight)| weight * (word >> bit & 1) as i64).sum()
        };
        let learned = |is_coin: bool| {
            let mut prng = Prng::stream(6, "linear");
            let episodes: Vec<Episode> = (0..6_000)
                .map(|serial| {
                    let (word, action) = (prng.below(1 << 14), prng.below(3) as u16);
                    let share = if is_coin { 0 } else { sum(word, usize::from(action)) };
                    let reward = (share + prng.below(401) as i64 - 200) as i32;
                    let observation = Bits([word, 0, 0, 0]);
                    let (uniform, propensity) = (true, 21_845);
                    let step =
                        Step { observation, action, reward, done: true, bad: false, uniform, propensity };
                    Episode { serial, steps: vec![step] }
                })
                .collect();
            let view = View::new(&shape, &episodes.iter().collect::<Vec<_>>(), None).unwrap();
            fit(&shape, &view, &mut Work::new(1 << 30))
        };
        assert!(learned(true).is_none());
        let (Stated { policy, .. }, _, words) = learned(false).unwrap();
        let mut player = Player::new(&policy);
        let (mut lost, mut most) = (0, 0);
        for word in 0..1 << 14 {
            let action = usize::from(player.act(&Bits([word, 0, 0, 0])));
            let best = (0..3).map(|action| sum(word, action)).max().unwrap();
            let mean = (0..3).map(|action| sum(word, action)).sum::<i64>() / 3;
            (lost, most) = (lost + best - sum(word, action), most + best - mean);
        }
        assert!(100 * lost < 2 * most, "{lost} of {most}: {words}");
    }
}
