//! A choice among arms of which one at a time is the best, and which one that is changes now and then.
//!
//! Two levels of loss, the best arm's and the others', and how long an arm stays the best are fitted to logged pulls.
//! The rule then keeps one log-weight per arm: the evidence that this arm is the best one now. No arm may fall farther
//! behind than the chance of a change allows, so that a change is found in the time its evidence takes and no longer.
//! Must not know what an arm stands for. Clauses: VM-9, VM-11; decision D-4.

use crate::loss::Loss;
use bem_base::fixed::Fixed;

/// One logged pull: the arm and what it lost.
pub type Pull = (u16, Loss);

/// The two levels, and how far an arm may fall behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The best arm's mean loss.
    pub best: Fixed,
    /// The other arms' mean loss.
    pub other: Fixed,
    /// The largest lead of one log-weight over another.
    pub lead_max: Fixed,
}

/// Rounds of fitting.
const ROUNDS: usize = 8;
/// A lead from which on an arm counts as the best one while fitting: odds of twenty to one.
const CLEAR_LEAD: Fixed = Fixed::from_int(3);
/// Pulls of a level that are needed to believe its mean.
const PULLS_MIN: u64 = 200;
/// Levels closer than this are not told apart.
const GAP_MIN: Fixed = Fixed::from_ratio(1, 50);
/// Levels stay this far from certainty, so that one pull never proves anything.
const MARGIN: Fixed = Fixed::from_ratio(1, 64);

impl Levels {
    /// Fits sequences of pulls, each with changes of its own; none where no change shows or the levels do not differ.
    pub fn fit(arms: usize, sequences: &[Vec<Pull>]) -> Option<Levels> {
        let pulls: u64 = sequences.iter().map(|sequence| sequence.len() as u64).sum();
        if arms < 2 || pulls < 2 * PULLS_MIN {
            return None;
        }
        let sum: u128 = sequences.iter().flatten().map(|(_, loss)| u128::from(loss.to_raw())).sum();
        let mean = Fixed::from_raw((sum / u128::from(pulls)) as i64);
        let tenth = Fixed::from_ratio(1, 10);
        let mut levels = Levels::within(mean.minus(tenth), mean.plus(tenth), Fixed::from_int(8))?;
        let mut changes = 0;
        for _ in 0..ROUNDS {
            let mut census = Census { best: Sum::default(), others: vec![Sum::default(); arms], changes: 0 };
            sequences.iter().for_each(|sequence| census.add(levels, arms, sequence));
            let best = census.best.mean()?;
            let other = census.others.iter().filter_map(Sum::mean).min()?;
            changes = census.changes;
            if other.minus(best) < GAP_MIN {
                return None;
            }
            levels = Levels::within(best, other, lead(arms, best, other, pulls / (changes + 1)))?;
        }
        (0 < changes).then_some(levels)
    }

    fn within(best: Fixed, other: Fixed, lead_max: Fixed) -> Option<Levels> {
        let (low, high) = (MARGIN, Fixed::ONE.minus(MARGIN));
        let levels = Levels { best: best.clamp(low, high), other: other.clamp(low, high), lead_max };
        (levels.best < levels.other).then_some(levels)
    }
}

/// How far apart log-weights get: the logarithm of what the evidence of one stay is worth, shared by the other arms.
fn lead(arms: usize, best: Fixed, other: Fixed, stay: u64) -> Fixed {
    let gap = other.minus(best);
    // The divergence of two close chances is about twice the squared gap.
    let divergence = gap.mul_floor(gap).mul_int(2);
    let evidence = (i128::from(divergence.to_raw()) * i128::from(stay) * (arms as i128 - 1)) >> 32;
    Fixed::ln_count_floor(evidence.clamp(20, 1 << 40) as u64)
}

/// A sum of losses.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    losses: u64,
}

impl Sum {
    fn add(&mut self, loss: Loss) {
        self.count += 1;
        self.losses += loss.to_raw();
    }

    fn mean(&self) -> Option<Fixed> {
        (PULLS_MIN <= self.count).then(|| Fixed::from_raw((self.losses / self.count) as i64))
    }
}

/// Pulls sorted by whether their arm was clearly the best one.
struct Census {
    best: Sum,
    others: Vec<Sum>,
    changes: u64,
}

impl Census {
    fn add(&mut self, levels: Levels, arms: usize, sequence: &[Pull]) {
        let mut filter = Switching::new(levels, arms);
        let mut held = None;
        for (arm, loss) in sequence {
            filter.update(usize::from(*arm), *loss);
            let Some(best) = filter.clear_best() else { continue };
            if held != Some(best) {
                self.changes += u64::from(held.is_some());
                held = Some(best);
            }
            let sum =
                if best == usize::from(*arm) { &mut self.best } else { &mut self.others[usize::from(*arm)] };
            sum.add(*loss);
        }
    }
}

/// The rule at work: evidence per arm. Choosing and learning take time in the number of arms.
#[derive(Clone, Debug)]
pub struct Switching {
    lead_max: i64,
    /// What a full loss and a full gain add to the log-weight of the arm pulled.
    on_loss: i64,
    on_gain: i64,
    weights: Vec<i64>,
}

impl Switching {
    /// Nothing known about any arm.
    pub fn new(levels: Levels, arms: usize) -> Switching {
        // Logarithms of chances as counts out of 2^32.
        let ln = |chance: Fixed| Fixed::ln_count_floor(chance.to_raw().max(1) as u64).to_raw();
        let rest = |chance: Fixed| Fixed::ONE.minus(chance);
        Switching {
            lead_max: levels.lead_max.to_raw(),
            on_loss: ln(levels.best) - ln(levels.other),
            on_gain: ln(rest(levels.best)) - ln(rest(levels.other)),
            weights: vec![0; arms],
        }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.weights.fill(0);
    }

    /// The arm with the most evidence; the lowest of equals.
    #[inline]
    pub fn choose(&self) -> usize {
        let mut best = 0;
        for (arm, weight) in self.weights.iter().enumerate() {
            if self.weights[best] < *weight {
                best = arm;
            }
        }
        best
    }

    /// Learns from one pull.
    #[inline]
    pub fn update(&mut self, arm: usize, loss: Loss) {
        let loss = loss.to_raw() as i64;
        let gain = Fixed::ONE.to_raw() - loss;
        let evidence =
            (i128::from(self.on_loss) * i128::from(loss) + i128::from(self.on_gain) * i128::from(gain)) >> 32;
        self.weights[arm] += evidence as i64;
        let top = self.weights.iter().copied().max().unwrap_or(0);
        // Only differences matter; the leader stays at zero so that nothing can overflow.
        for weight in &mut self.weights {
            *weight = (*weight - top).max(-self.lead_max);
        }
    }

    /// The arm that leads all others clearly, if one does.
    fn clear_best(&self) -> Option<usize> {
        let best = self.choose();
        let behind =
            |(arm, weight): (usize, &i64)| arm == best || *weight + CLEAR_LEAD.to_raw() <= self.weights[best];
        self.weights.iter().enumerate().all(behind).then_some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    /// Arms of which one at a time wins six times of ten and the others four, changed every `segment` pulls.
    struct Arms {
        best: usize,
        time: u64,
        segment: u64,
        prng: Prng,
    }

    impl Arms {
        fn new(seed: u64, segment: u64) -> Arms {
            Arms { best: 0, time: 0, segment, prng: Prng::stream(seed, "switching/arms") }
        }

        fn pull(&mut self, arm: usize) -> Loss {
            let chance = if arm == self.best { 60 } else { 40 };
            let loss = if self.prng.below(100) < chance { Loss::ZERO } else { Loss::ONE };
            self.time += 1;
            if self.time.is_multiple_of(self.segment) {
                self.best = (self.best + 1 + self.prng.below(3) as usize) % 4;
            }
            loss
        }
    }

    fn uniform_log(seed: u64, segment: u64) -> Vec<Pull> {
        let mut arms = Arms::new(seed, segment);
        let mut prng = Prng::stream(seed, "switching/log");
        let mut pull = || {
            let arm = prng.below(4) as u16;
            (arm, arms.pull(usize::from(arm)))
        };
        (0..64_000).map(|_| pull()).collect()
    }

    #[test]
    fn levels_are_found_in_uniform_pulls() {
        let levels = Levels::fit(4, &[uniform_log(1, 16_000)]).unwrap();
        let near = |value: Fixed, percent: i64| {
            (value.to_raw() - Fixed::from_ratio(percent, 100).to_raw()).abs()
                < Fixed::from_ratio(2, 100).to_raw()
        };
        assert!(near(levels.best, 40) && near(levels.other, 60), "{levels:?}");
        // One arm for ever, or all alike: nothing changes.
        assert_eq!(Levels::fit(4, &[uniform_log(2, 1 << 40)]), None);
        let same = uniform_log(3, 1 << 40).into_iter().filter(|(arm, _)| *arm != 0).collect();
        assert_eq!(Levels::fit(4, &[same]), None);
    }

    #[test]
    fn a_change_costs_little_more_than_the_evidence_for_it_takes() {
        let levels = Levels::fit(4, &[uniform_log(1, 16_000)]).unwrap();
        let mut wrong = 0;
        for seed in 0..40 {
            let mut arms = Arms::new(100 + seed, 16_000);
            let mut rule = Switching::new(levels, 4);
            for _ in 0..64_000 {
                let arm = rule.choose();
                wrong += u32::from(arm != arms.best);
                let loss = arms.pull(arm);
                rule.update(arm, loss);
            }
        }
        // One percent of what can be gained over uniform pulls is 480 wrong ones in an episode of 64,000.
        assert!(wrong / 40 < 480, "{}", wrong / 40);
    }
}
