//! Chances in place of counts: as counted, or drawn from what the counts leave open.
//!
//! A draw gives every counted outcome a random weight around its count, so that what was seen often hardly moves
//! and what was seen twice moves much. Plans in draws differ exactly where more knowledge could matter: they serve
//! exploration, and their spread says what the best plan may still miss.

use super::counts::{CUT, END, Edge, Model};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;

/// Fractional bits of a value in milli-units.
pub const VALUE_BITS: u32 = 12;
/// Fractional bits of a chance.
pub const CHANCE_BITS: u32 = 24;

/// What one action does in one state.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// How often it was tried.
    pub tries: i64,
    /// The mean reward, with [`VALUE_BITS`].
    pub reward: i64,
    /// Successors and their chances, with [`CHANCE_BITS`]; what is missing to one ends the episode.
    pub next: Vec<(u32, i64)>,
}

impl Row {
    fn new(edge: &Edge, weight: &mut dyn FnMut(i64) -> i64) -> Row {
        if edge.count == 0 {
            return Row::default();
        }
        let (mut whole, mut known, mut reward) = (0i128, 0i128, 0i128);
        let mut next: Vec<(u32, i128)> = Vec::new();
        for ((successor, earned), count) in &edge.outcomes {
            let weight = i128::from(weight(*count));
            whole += weight;
            reward += weight * i128::from(*earned);
            if *successor == CUT {
                continue;
            }
            known += weight;
            match next.last_mut() {
                Some(last) if last.0 == *successor => last.1 += weight,
                _ if *successor == END => {}
                _ => next.push((*successor, weight)),
            }
        }
        let chance = |weight: i128| ((weight << CHANCE_BITS) / known.max(1)) as i64;
        Row {
            tries: edge.count,
            reward: ((reward << VALUE_BITS) / whole.max(1)) as i64,
            next: next.into_iter().map(|(successor, weight)| (successor, chance(weight))).collect(),
        }
    }

    /// The mean of reward and what lies ahead.
    pub fn value(&self, ahead: &[i64]) -> i64 {
        let sum: i128 = self
            .next
            .iter()
            .map(|(next, chance)| i128::from(ahead[*next as usize]) * i128::from(*chance))
            .sum();
        self.reward + (sum >> CHANCE_BITS) as i64
    }
}

/// A model with chances: the rows of all states, actions in order.
#[derive(Clone, Debug)]
pub struct Dynamics {
    /// Rows at `state * actions + action`.
    pub rows: Vec<Row>,
    /// Actions are below this.
    pub actions: usize,
    /// First states and their chances, with [`CHANCE_BITS`].
    pub starts: Vec<(u32, i64)>,
}

impl Dynamics {
    /// Chances as counted.
    pub fn expected(model: &Model) -> Dynamics {
        Dynamics::with(model, &mut |count| count)
    }

    /// Chances drawn around the counts.
    pub fn drawn(model: &Model, prng: &mut Prng) -> Dynamics {
        Dynamics::drawn_widely(model, 1, prng)
    }

    /// Chances drawn as if only this part of what was counted had been: what is still open is rather seen as too much.
    pub fn drawn_widely(model: &Model, part: i64, prng: &mut Prng) -> Dynamics {
        Dynamics::with(model, &mut |count| gamma((count + part - 1) / part, prng))
    }

    fn with(model: &Model, weight: &mut dyn FnMut(i64) -> i64) -> Dynamics {
        let total: i64 = model.starts().values().sum();
        let share = |count: i64| ((i128::from(count) << CHANCE_BITS) / i128::from(total.max(1))) as i64;
        Dynamics {
            rows: model.edges().iter().flatten().map(|edge| Row::new(edge, weight)).collect(),
            actions: usize::from(model.actions()),
            starts: model.starts().iter().map(|(state, count)| (*state, share(*count))).collect(),
        }
    }

    /// How many states there are.
    pub fn states(&self) -> usize {
        self.rows.len() / self.actions.max(1)
    }

    /// The rows of one state.
    pub fn of(&self, state: usize) -> &[Row] {
        &self.rows[state * self.actions..][..self.actions]
    }

    /// How many numbers one sweep over all rows touches.
    pub fn size(&self) -> usize {
        self.rows.iter().map(|row| 1 + row.next.len()).sum()
    }

    /// The mean over first states of a value, in milli-units with [`VALUE_BITS`].
    pub fn from_start(&self, value: impl Fn(usize) -> i64) -> i64 {
        let sum: i128 = self
            .starts
            .iter()
            .map(|(state, chance)| i128::from(value(*state as usize)) * i128::from(*chance))
            .sum();
        (sum >> CHANCE_BITS) as i64
    }
}

/// Fractional bits of a drawn weight.
const WEIGHT_BITS: u32 = 16;
/// Counts from here on are drawn by a sum of uniform numbers instead of logarithms.
const MANY: i64 = 8;

/// A weight with the mean and the spread of a gamma variable of this count.
fn gamma(count: i64, prng: &mut Prng) -> i64 {
    if count < MANY {
        // The sum of `count` exponential variables: minus the logarithms of uniform numbers.
        let whole = Fixed::ln_count_floor(u64::from(u32::MAX)).to_raw();
        let one =
            |prng: &mut Prng| whole - Fixed::ln_count_floor(1 + prng.below(u64::from(u32::MAX))).to_raw();
        let sum: i64 = (0..count).map(|_| one(prng)).sum();
        return (sum >> (32 - WEIGHT_BITS)).max(1);
    }
    // Twelve uniform numbers less six have variance one; count + sqrt(count) * normal.
    let normal = (0..12).map(|_| prng.below(1 << WEIGHT_BITS) as i64).sum::<i64>() - (6 << WEIGHT_BITS);
    let root = ((count as u64) << 16).isqrt() as i64;
    ((count << WEIGHT_BITS) + ((root * normal) >> 8)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_weights_have_mean_and_variance_of_their_count() {
        let mut prng = Prng::stream(1, "gamma");
        for count in [1, 2, 5, 8, 40, 300] {
            let draws: Vec<i64> = (0..4_000).map(|_| gamma(count, &mut prng)).collect();
            let mean = draws.iter().sum::<i64>() / 4_000;
            let squares: i128 = draws.iter().map(|draw| i128::from(draw - mean).pow(2)).sum();
            let variance = (squares / 4_000) >> WEIGHT_BITS;
            let wanted = count << WEIGHT_BITS;
            assert!((mean - wanted).abs() * 10 < wanted, "{count}: {mean}");
            assert!((variance as i64 - wanted).abs() * 6 < wanted, "{count}: {variance}");
        }
    }
}
