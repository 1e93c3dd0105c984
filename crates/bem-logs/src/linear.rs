//! Logistic regression over bits, one for every action, by coordinate descent in integers.
//!
//! The score of an action is a bias and one weight for every bit that is set; the chance of a full reward is its logistic
//! function. Each step is Newton's for one weight with a quadratic penalty. Scores count 1/4,096 of a logit, chances
//! 1/65,536. Must not know what an action stands for.

use std::sync::OnceLock;

/// One logit.
pub const LOGIT: i64 = 4_096;
/// A chance of one.
pub const CERTAIN: i64 = 65_536;
/// Passes over all weights at most.
const PASSES: usize = 60;
/// A pass that moves no weight further than this is the last.
const SETTLED: i64 = 8;
/// A chance is tabulated for scores up to this many logits, in this many steps a logit.
const LOGITS_MAX: i64 = 8;
const STEPS: i64 = 64;

/// The weights of one action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// One for every bit.
    pub bits: Vec<i64>,
    /// For every row.
    pub bias: i64,
}

/// The logistic function of a score.
pub fn chance(score: i64) -> i64 {
    static TABLE: OnceLock<Vec<i64>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        // exp(-1/64) with 32 fractional bits.
        const DECAY: i128 = 4_228_379_926;
        let mut power: i128 = 1 << 32;
        (0..=LOGITS_MAX * STEPS)
            .map(|_| {
                let chance = ((1i128 << 32) * i128::from(CERTAIN) / ((1i128 << 32) + power)) as i64;
                power = (power * DECAY) >> 32;
                chance
            })
            .collect()
    });
    let place = ((score.abs() * STEPS + LOGIT / 2) / LOGIT).min(LOGITS_MAX * STEPS) as usize;
    if score < 0 { CERTAIN - table[place] } else { table[place] }
}

/// Fits the chance of a reward to rows: `columns` has for every bit the rows in which it is set, `targets` for every row its
/// reward between zero and [`CERTAIN`], `counts` how often it counts (zero leaves it out). `penalty` pulls weights to zero.
pub fn fit(columns: &[Vec<u32>], targets: &[i64], counts: &[i64], penalty: i64) -> Weights {
    let mut weights = Weights { bits: vec![0; columns.len()], bias: 0 };
    let rows: Vec<u32> = (0..targets.len() as u32).filter(|row| 0 < counts[*row as usize]).collect();
    if rows.is_empty() {
        return weights;
    }
    // Only rows that count are walked over.
    let kept: Vec<Vec<u32>> = columns
        .iter()
        .map(|column| column.iter().copied().filter(|row| 0 < counts[*row as usize]).collect())
        .collect();
    let mut scores = vec![0i64; targets.len()];
    for _ in 0..PASSES {
        let mut largest = 0;
        for place in 0..=kept.len() {
            let (set, weight, penalty) = match kept.get(place) {
                Some(set) => (set, weights.bits[place], penalty),
                None => (&rows, weights.bias, 0),
            };
            if set.is_empty() {
                continue;
            }
            let (mut slope, mut bend, mut count) = (0i64, 0i64, 0i64);
            for row in set {
                let row = *row as usize;
                let chance = chance(scores[row]);
                slope += counts[row] * (targets[row] - chance);
                bend += counts[row] * (chance * (CERTAIN - chance) / CERTAIN);
                count += counts[row];
            }
            slope -= penalty * weight * (CERTAIN / LOGIT);
            // Where chances are near certain the bend says little; it is never taken for less than this.
            let bend = bend.max(count * CERTAIN / 64) + penalty * CERTAIN;
            let step = (slope * LOGIT / bend).clamp(-LOGIT, LOGIT);
            let limit = 2 * LOGITS_MAX * LOGIT;
            let moved = (weight + step).clamp(-limit, limit);
            let step = moved - weight;
            if step == 0 {
                continue;
            }
            match weights.bits.get_mut(place) {
                Some(weight) => *weight = moved,
                None => weights.bias = moved,
            }
            set.iter().for_each(|row| scores[*row as usize] += step);
            largest = largest.max(step.abs());
        }
        if largest <= SETTLED {
            break;
        }
    }
    weights
}

impl Weights {
    /// The score of every row.
    pub fn scores(&self, columns: &[Vec<u32>], rows: usize) -> Vec<i64> {
        let mut scores = vec![self.bias; rows];
        for (weight, column) in self.bits.iter().zip(columns).filter(|(weight, _)| **weight != 0) {
            column.iter().for_each(|row| scores[*row as usize] += weight);
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    #[test]
    fn the_logistic_function_is_right_at_known_places() {
        assert_eq!(chance(0), CERTAIN / 2);
        // 1 / (1 + exp(-1)) = 0.731058..., of 65,536.
        assert!((chance(LOGIT) - 47_911).abs() <= 1, "{}", chance(LOGIT));
        assert!((chance(-3 * LOGIT) - 3_108).abs() <= 1, "{}", chance(-3 * LOGIT));
        assert!((1..200).all(|step| chance(LOGIT * step / 32) <= chance(LOGIT * (step + 1) / 32)));
    }

    #[test]
    fn known_weights_are_found_again() {
        let mut prng = Prng::stream(1, "linear");
        let truth = [2 * LOGIT, -LOGIT, 0, LOGIT / 2];
        let rows = 40_000;
        let bits: Vec<[bool; 4]> = (0..rows).map(|_| core::array::from_fn(|_| prng.bit())).collect();
        let columns: Vec<Vec<u32>> =
            (0..4).map(|bit| (0..rows as u32).filter(|row| bits[*row as usize][bit]).collect()).collect();
        let score = |row: &[bool; 4]| {
            -LOGIT / 2 + row.iter().zip(truth).map(|(bit, weight)| if *bit { weight } else { 0 }).sum::<i64>()
        };
        let targets: Vec<i64> = bits
            .iter()
            .map(|row| if (prng.below(65_536) as i64) < chance(score(row)) { CERTAIN } else { 0 })
            .collect();
        let weights = fit(&columns, &targets, &vec![1; rows], 1);
        for (got, want) in weights.bits.iter().zip(truth).chain([(&weights.bias, -LOGIT / 2)]) {
            assert!((got - want).abs() < LOGIT / 10, "{weights:?}");
        }
        assert_eq!(fit(&columns, &targets, &vec![0; rows], 1), Weights { bits: vec![0; 4], bias: 0 });
    }
}
