//! Well-known bandit rules in floating point, for comparison only: UCB1, Thompson sampling and IMED.

use bem_base::prng::Prng;
use bem_learn::change::Change;
use bem_learn::loss::Loss;
use bem_learn::rule::Player;
use bem_tables::normal::Normal;

/// Visits and lost visits of one arm with losses of zero or one.
#[derive(Clone, Copy, Default)]
struct Arm {
    visits: f64,
    lost: f64,
}

/// Which peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Mean less `sqrt(2 ln t / n)`.
    Ucb1,
    /// A draw from each arm's Beta posterior, uniform prior.
    Thompson,
    /// Least `n * KL(mean, best mean) + ln n`.
    Imed,
}

/// A peer with its state.
pub struct PeerPlayer {
    peer: Peer,
    arms: Vec<Arm>,
    steps: f64,
    draws: Normal,
}

impl PeerPlayer {
    /// A fresh player over this many arms.
    pub fn new(peer: Peer, arms: usize, prng: Prng) -> PeerPlayer {
        PeerPlayer { peer, arms: vec![Arm::default(); arms], steps: 0.0, draws: Normal::new(prng) }
    }

    fn lowest(&mut self, score: impl Fn(&Arm, &mut Normal) -> f64) -> usize {
        let mut best = (f64::INFINITY, 0);
        for (position, arm) in self.arms.iter().enumerate() {
            let score = score(arm, &mut self.draws);
            if score < best.0 {
                best = (score, position);
            }
        }
        best.1
    }
}

impl Player for PeerPlayer {
    fn choose(&mut self) -> usize {
        if self.peer == Peer::Thompson {
            return self.lowest(|arm, draws| draws.beta(1.0 + arm.lost, 1.0 + arm.visits - arm.lost));
        }
        // The other two look at every arm once before they compare.
        if let Some(unseen) = self.arms.iter().position(|arm| arm.visits == 0.0) {
            return unseen;
        }
        if self.peer == Peer::Ucb1 {
            let doubled = 2.0 * self.steps.ln();
            return self.lowest(|arm, _| arm.lost / arm.visits - (doubled / arm.visits).sqrt());
        }
        let least = self.arms.iter().map(|arm| arm.lost / arm.visits).fold(f64::INFINITY, f64::min);
        self.lowest(|arm, _| arm.visits * divergence(arm.lost / arm.visits, least) + arm.visits.ln())
    }

    fn learn(&mut self, arm: usize, loss: Loss) -> Option<Change> {
        self.steps += 1.0;
        self.arms[arm].visits += 1.0;
        self.arms[arm].lost += f64::from(u8::from(loss == Loss::ONE));
        None
    }
}

/// Kullback-Leibler divergence between two Bernoulli distributions.
pub fn divergence(p: f64, q: f64) -> f64 {
    let term = |a: f64, b: f64| if a <= 0.0 { 0.0 } else { a * (a / b.max(1e-12)).ln() };
    term(p, q) + term(1.0 - p, 1.0 - q)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divergence_is_zero_only_for_equal_chances() {
        assert_eq!(divergence(0.3, 0.3), 0.0);
        assert!((divergence(0.5, 0.4) - 0.020_410_997).abs() < 1e-9);
        assert!(divergence(0.0, 0.5).is_finite());
    }
}
