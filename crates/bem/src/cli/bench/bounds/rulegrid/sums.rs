//! Sums of weights, one for each action, and the action of the highest: fitted to what every action would bring.
//!
//! Who acts draws an action by the exponentials of its sums; the gradient of the return that is expected goes into the weights,
//! with steps that become smaller where much was learned, and the draw becomes a choice while it cools down. Must not know what
//! the bits are. Clause: GLE-1.

use bem_base::environment::Bits;

/// Actions.
pub(super) const ACTIONS: usize = 5;
/// Milli-units that a worth is measured in.
const UNIT: f64 = 200.0;
/// The largest whole weight.
const WEIGHT_MAX: f64 = 127.0;

/// What a sum has weights for, besides a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Bits that are set.
    Bits,
    /// Bits, and pairs of bits that are set together.
    Pairs,
}

/// What is seen: the places of the bits that are set, and of the constant, ascending.
pub(super) fn seen(observation: &Bits, bits: usize) -> Vec<u16> {
    (0..=bits).filter(|bit| *bit == bits || observation.get(*bit)).map(|bit| bit as u16).collect()
}

/// One decision: what was seen, and what each action would bring.
pub(super) struct Decision {
    pub(super) seen: Vec<u16>,
    pub(super) worths: [f64; ACTIONS],
}

/// How a fit goes on: passes over the decisions, how evenly actions are drawn in the first, and the size of a step.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) passes: u32,
    pub(super) temperature: f64,
    pub(super) step: f64,
}

/// A sum for each action.
#[derive(Clone)]
pub(super) struct Sums {
    class: Class,
    /// Bits and the constant.
    width: usize,
    weights: Vec<[f64; ACTIONS]>,
    /// Weights that may differ from zero.
    open: Vec<[bool; ACTIONS]>,
}

impl Sums {
    pub(super) fn new(class: Class, bits: usize) -> Sums {
        let width = bits + 1;
        let size = if class == Class::Pairs { width + width * width } else { width };
        Sums { class, width, weights: vec![[0.0; ACTIONS]; size], open: vec![[true; ACTIONS]; size] }
    }

    /// The same sums, with a weight of zero for every pair.
    pub(super) fn with_pairs(&self) -> Sums {
        let mut pairs = Sums::new(Class::Pairs, self.width - 1);
        pairs.weights[..self.width].copy_from_slice(&self.weights[..self.width]);
        pairs
    }

    /// Where the weights stand that count for what is seen.
    fn places(&self, seen: &[u16], places: &mut Vec<usize>) {
        places.clear();
        places.extend(seen.iter().map(|bit| usize::from(*bit)));
        if self.class == Class::Pairs {
            for (place, one) in seen.iter().enumerate() {
                let row = self.width + usize::from(*one) * self.width;
                places.extend(seen[place + 1..].iter().map(|other| row + usize::from(*other)));
            }
        }
    }

    fn sums(&self, places: &[usize]) -> [f64; ACTIONS] {
        let mut sums = [0.0; ACTIONS];
        for place in places {
            sums.iter_mut().zip(self.weights[*place]).for_each(|(sum, weight)| *sum += weight);
        }
        sums
    }

    /// The action of the highest sum, the first of those that tie.
    pub(super) fn act(&self, seen: &[u16]) -> u16 {
        let mut places = Vec::new();
        self.places(seen, &mut places);
        let sums = self.sums(&places);
        (1..ACTIONS).fold(0, |best, action| if sums[best] < sums[action] { action } else { best }) as u16
    }

    /// Moves the weights toward what earns more at these decisions.
    pub(super) fn fit(&mut self, decisions: &[Decision], pace: Pace) {
        let mut squares = vec![[1e-6; ACTIONS]; self.weights.len()];
        let mut places = Vec::new();
        for pass in 0..pace.passes {
            let cooled = 1.0 - 0.9 * f64::from(pass) / f64::from(pace.passes);
            let temperature = pace.temperature * cooled;
            for decision in decisions {
                self.places(&decision.seen, &mut places);
                let gradient = gradient(self.sums(&places), &decision.worths, temperature);
                for place in &places {
                    for action in (0..ACTIONS).filter(|action| self.open[*place][*action]) {
                        let (slope, square) = (gradient[action], &mut squares[*place][action]);
                        *square += slope * slope;
                        self.weights[*place][action] += pace.step * slope / square.sqrt();
                    }
                }
            }
        }
    }

    /// Keeps so many weights of every action: those by which its sum differs most over these decisions. The constant stays.
    pub(super) fn keep(&mut self, most: usize, decisions: &[Decision]) {
        let mut shares = vec![0.0; self.width];
        for bit in decisions.iter().flat_map(|decision| &decision.seen) {
            shares[usize::from(*bit)] += 1.0 / decisions.len() as f64;
        }
        let constant = self.width - 1;
        for action in 0..ACTIONS {
            let telling = |bit: usize| {
                self.weights[bit][action].abs() * (shares[bit] * (1.0 - shares[bit])).max(0.0).sqrt()
            };
            let mut bits: Vec<usize> = (0..constant).collect();
            bits.sort_by(|one, other| telling(*other).total_cmp(&telling(*one)));
            for bit in bits.into_iter().skip(most) {
                (self.weights[bit][action], self.open[bit][action]) = (0.0, false);
            }
        }
    }

    /// The same with whole weights up to 127.
    pub(super) fn whole(mut self) -> Sums {
        let bits = self.weights.iter().take(self.width - 1).flatten();
        let largest = bits.fold(f64::MIN_POSITIVE, |largest, weight| largest.max(weight.abs()));
        let round = |weight: &mut f64| *weight = (*weight / largest * WEIGHT_MAX).round();
        self.weights.iter_mut().flatten().for_each(round);
        self
    }
}

/// How the expected return of a draw by these sums grows with each of them.
fn gradient(sums: [f64; ACTIONS], worths: &[f64; ACTIONS], temperature: f64) -> [f64; ACTIONS] {
    let highest = sums.iter().copied().fold(f64::MIN, f64::max);
    let powers = sums.map(|sum| ((sum - highest) / temperature).exp());
    let all: f64 = powers.iter().sum();
    let chances = powers.map(|power| power / all);
    let expected: f64 = chances.iter().zip(worths).map(|(chance, worth)| chance * worth / UNIT).sum();
    core::array::from_fn(|action| chances[action] * (worths[action] / UNIT - expected) / temperature)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exclusive or is what no sum of bits says: one decision of four is lost, and none over pairs.
    #[test]
    fn a_sum_finds_what_a_sum_can_say_and_pairs_what_it_cannot() {
        let decisions = |right: fn(bool, bool) -> bool| -> Vec<Decision> {
            let cases = (0..4_000).map(|case| (case % 2 == 1, case / 2 % 2 == 1));
            let of = |(one, other): (bool, bool)| {
                let bits = Bits([u64::from(one) | u64::from(other) << 1, 0, 0, 0]);
                let mut worths = [-200.0; ACTIONS];
                worths[usize::from(right(one, other))] = 200.0;
                Decision { seen: seen(&bits, 2), worths }
            };
            cases.map(of).collect()
        };
        let missed = |class: Class, right: fn(bool, bool) -> bool| {
            let (decisions, mut sums) = (decisions(right), Sums::new(class, 2));
            sums.fit(&decisions, Pace { passes: 6, temperature: 0.3, step: 0.05 });
            let sums = if class == Class::Bits { sums.whole() } else { sums };
            let is_missed =
                |decision: &&Decision| decision.worths[usize::from(sums.act(&decision.seen))] < 0.0;
            decisions.iter().filter(is_missed).count()
        };
        assert_eq!(missed(Class::Bits, |one, other| one && !other), 0);
        assert!(1_000 <= missed(Class::Bits, |one, other| one != other));
        assert_eq!(missed(Class::Pairs, |one, other| one != other), 0);
    }
}
