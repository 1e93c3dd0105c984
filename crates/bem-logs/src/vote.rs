//! Weighted votes of bits for actions, with small whole weights, and their circuit.
//!
//! Every action has a bias and a weight for every bit; the action with the largest sum wins, the lowest of equals. The
//! circuit adds the weights of the set bits in full adders and compares the sums. Must not know how weights were found.

use crate::linear::Weights;
use bem_base::environment::Bits;
use bem_circuit::netlist::{Builder, Op, Signal};
use bem_synth::function::{add_weighted, build_sum};
use bem_synth::policy::{Policy, action_bits};

/// What is left out is said in parts of a rounded weight.
const PARTS: i64 = 16;

/// Votes with whole weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Votes {
    /// For every action the weight of every bit.
    pub weights: Vec<Vec<i64>>,
    /// For every action what it has before any bit votes.
    pub bias: Vec<i64>,
}

impl Votes {
    /// Votes whose circuit takes at most so many gates: the smallest weights are left out as long as it does not. They are left
    /// out in small parts, because weights of one rounded size are many, and all of them together would be too many.
    pub fn within(gates_max: usize, actions: &[Weights], largest: i64) -> Votes {
        let mut drop = PARTS / 2;
        loop {
            let votes = Votes::quantised(actions, largest, drop);
            if votes.cost() <= gates_max || largest * PARTS < drop {
                return votes;
            }
            drop += 1;
        }
    }

    /// About how many gates the circuit takes.
    fn cost(&self) -> usize {
        let ones: u32 = self.weights.iter().flatten().map(|weight| weight.unsigned_abs().count_ones()).sum();
        5 * ones as usize + self.bias.len() * 60
    }

    /// Weights scaled down so that nearly all of them are at most `largest` in size, and rounded; those that were below so many
    /// sixteenths of one before that are left out.
    fn quantised(actions: &[Weights], largest: i64, drop: i64) -> Votes {
        let bits = actions.first().map_or(0, |weights| weights.bits.len());
        let count = actions.len().max(1) as i64;
        // What is added to a bit's weight for every action alike changes nothing: the mean is taken away.
        let mean = |bit: usize| actions.iter().map(|weights| weights.bits[bit]).sum::<i64>() / count;
        let means: Vec<i64> = (0..bits).map(mean).collect();
        let bias_mean = actions.iter().map(|weights| weights.bias).sum::<i64>() / count;
        let centred = |weights: &Weights| -> Vec<i64> {
            weights.bits.iter().zip(&means).map(|(weight, mean)| weight - mean).collect()
        };
        let centred: Vec<Vec<i64>> = actions.iter().map(centred).collect();
        let mut sizes: Vec<i64> =
            centred.iter().flatten().map(|weight| weight.abs()).filter(|size| 0 < *size).collect();
        sizes.sort_unstable();
        let unit = sizes.get(sizes.len() * 98 / 100).or(sizes.last()).copied().unwrap_or(1).max(1);
        let round = |value: i64| (2 * value * largest + value.signum() * unit) / (2 * unit);
        let weight = |value: &i64| {
            let is_left_out = value.abs().min(unit) * largest * PARTS < drop * unit;
            if is_left_out { 0 } else { round(*value).clamp(-largest, largest) }
        };
        let weights = centred.iter().map(|row| row.iter().map(weight).collect()).collect();
        let bias = actions.iter().map(|weights| round(weights.bias - bias_mean)).collect();
        Votes { weights, bias }.shifted()
    }

    /// The same votes with as small weights as a shift of every bit's weights allows: the middle one becomes zero.
    fn shifted(mut self) -> Votes {
        for bit in 0..self.weights.first().map_or(0, Vec::len) {
            let mut of_bit: Vec<i64> = self.weights.iter().map(|weights| weights[bit]).collect();
            of_bit.sort_unstable();
            let middle = of_bit[of_bit.len() / 2];
            self.weights.iter_mut().for_each(|weights| weights[bit] -= middle);
        }
        self
    }

    /// The action for a row.
    pub fn choose(&self, row: &Bits) -> u16 {
        let sum = |action: usize| {
            let weights = self.weights[action].iter().enumerate();
            self.bias[action]
                + weights.filter(|(bit, _)| row.get(*bit)).map(|(_, weight)| weight).sum::<i64>()
        };
        (0..self.bias.len()).rev().max_by_key(|action| sum(*action)).unwrap_or(0) as u16
    }

    /// The actions for all rows; `columns` has for every bit the rows in which it is set.
    pub fn choose_all(&self, columns: &[Vec<u32>], rows: usize) -> Vec<u16> {
        let mut best = vec![(i64::MIN, 0u16); rows];
        for (action, weights) in self.weights.iter().enumerate() {
            let mut sums = vec![self.bias[action]; rows];
            for (weight, column) in weights.iter().zip(columns).filter(|(weight, _)| **weight != 0) {
                column.iter().for_each(|row| sums[*row as usize] += weight);
            }
            for (best, sum) in best.iter_mut().zip(sums) {
                if best.0 < sum {
                    *best = (sum, action as u16);
                }
            }
        }
        best.into_iter().map(|(_, action)| action).collect()
    }

    /// The circuit; nothing where it would break the bounds of one.
    pub fn policy(&self, observation_bits: usize) -> Option<Policy> {
        let mut builder = Builder::new(observation_bits);
        let winner = self.build(&mut builder);
        Policy::close(builder, observation_bits, self.bias.len() as u16, &winner, &[]).ok()
    }

    /// The bits of the action.
    pub fn build(&self, builder: &mut Builder) -> Vec<Signal> {
        let actions = self.bias.len() as u16;
        let code = action_bits(actions);
        // A negative weight of a bit is a positive one of its complement, and less to start from.
        let start = |action: usize| {
            self.bias[action] + self.weights[action].iter().filter(|weight| **weight < 0).sum::<i64>()
        };
        let lowest = (0..self.bias.len()).map(start).min().unwrap_or(0);
        let mut best: Option<(Vec<Signal>, Vec<Signal>)> = None;
        for action in 0..self.bias.len() {
            let mut ranks = Vec::new();
            for (bit, weight) in self.weights[action].iter().enumerate().filter(|(_, weight)| **weight != 0) {
                let input = builder.input(bit);
                let signal = if *weight < 0 { builder.not(input) } else { input };
                add_weighted(&mut ranks, weight.unsigned_abs(), signal);
            }
            add_weighted(&mut ranks, start(action).abs_diff(lowest), Signal::TRUE);
            let sum = build_sum(builder, ranks);
            let name: Vec<Signal> = (0..code).map(|bit| Signal::constant(action >> bit & 1 == 1)).collect();
            best = Some(match best {
                None => (sum, name),
                Some((top, winner)) => {
                    let wins = greater(builder, &sum, &top);
                    let pick = |builder: &mut Builder, new: &[Signal], old: &[Signal]| -> Vec<Signal> {
                        let width = new.len().max(old.len());
                        let at = |signals: &[Signal], place: usize| {
                            signals.get(place).copied().unwrap_or(Signal::FALSE)
                        };
                        (0..width).map(|place| builder.mux(wins, at(new, place), at(old, place))).collect()
                    };
                    let winner = pick(builder, &name, &winner);
                    // Nobody looks at the last sum.
                    let top = if action + 1 == self.bias.len() { top } else { pick(builder, &sum, &top) };
                    (top, winner)
                }
            });
        }
        best.map_or(Vec::new(), |(_, winner)| winner)
    }
}

/// Whether the first number exceeds the second, lowest bits first.
fn greater(builder: &mut Builder, left: &[Signal], right: &[Signal]) -> Signal {
    let at = |signals: &[Signal], place: usize| signals.get(place).copied().unwrap_or(Signal::FALSE);
    let mut exceeds = Signal::FALSE;
    for place in 0..left.len().max(right.len()) {
        let (a, b) = (at(left, place), at(right, place));
        let differs = builder.gate(Op::Xor, a, b);
        exceeds = builder.mux(differs, a, exceeds);
    }
    exceeds
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;
    use bem_synth::policy::Player;

    #[test]
    fn votes_that_cost_too_much_are_cut_no_further_than_they_must_be() {
        let mut prng = Prng::stream(2, "votes");
        let mut weights = || {
            // Many small ones and few large ones, as fitted weights are.
            let mut weight = || prng.between(-90, 90) * prng.between(0, 90) / 90;
            Weights { bits: (0..200).map(|_| weight()).collect(), bias: 0 }
        };
        let actions: Vec<Weights> = (0..10).map(|_| weights()).collect();
        for largest in [3, 7, 15] {
            let most = Votes::within(usize::MAX, &actions, largest).cost() * 3 / 4;
            let cut = Votes::within(most, &actions, largest).cost();
            assert!((most * 9 / 10..=most).contains(&cut), "{largest}: {cut} of {most}");
        }
        assert_eq!(Votes::within(0, &actions, 3).cost(), 600, "nothing is left but the sums themselves");
    }

    #[test]
    fn the_circuit_of_votes_chooses_what_the_sums_say() {
        let mut prng = Prng::stream(1, "votes");
        for actions in 2..=5usize {
            for _ in 0..20 {
                let mut weights = || (0..9).map(|_| prng.between(-7, 7)).collect::<Vec<i64>>();
                let weights: Vec<Vec<i64>> = (0..actions).map(|_| weights()).collect();
                let votes = Votes { weights, bias: (0..actions).map(|_| prng.between(-9, 9)).collect() };
                let policy = votes.policy(9).unwrap();
                let mut player = Player::new(&policy);
                let rows: Vec<Bits> = (0..512).map(|row| Bits([row, 0, 0, 0])).collect();
                let columns: Vec<Vec<u32>> =
                    (0..9).map(|bit| (0..512).filter(|row| rows[*row as usize].get(bit)).collect()).collect();
                let all = votes.choose_all(&columns, 512);
                for (row, bits) in rows.iter().enumerate() {
                    assert_eq!(player.act(bits), votes.choose(bits));
                    assert_eq!(all[row], votes.choose(bits));
                }
                assert_eq!(votes.clone().shifted().choose_all(&columns, 512), all);
            }
        }
    }
}
