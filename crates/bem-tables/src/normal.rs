//! Draws in floating point for peers that draw from a posterior. They prove nothing, so floats are fine here.
//!
//! Must not know who plays. Clause: VM-16.

use bem_base::prng::Prng;

const LAYERS: usize = 128;
/// Right edge of the lowest layer, and the area of each, for 128 layers (Marsaglia and Tsang).
const EDGE: f64 = 3.442_619_855_899;
const AREA: f64 = 9.912_563_035_262_17e-3;

/// Normal, Gamma and Beta draws: the ziggurat, then the squeeze of Marsaglia and Tsang.
pub struct Normal {
    prng: Prng,
    edges: [f64; LAYERS + 1],
}

impl Normal {
    /// Draws from this generator.
    pub fn new(prng: Prng) -> Normal {
        let mut edges = [0.0; LAYERS + 1];
        edges[0] = AREA / density(EDGE);
        edges[1] = EDGE;
        for layer in 2..LAYERS {
            edges[layer] = (-2.0 * (AREA / edges[layer - 1] + density(edges[layer - 1])).ln()).sqrt();
        }
        Normal { prng, edges }
    }

    /// Uniform above zero and below one.
    pub fn uniform(&mut self) -> f64 {
        ((self.prng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Mean zero, variance one.
    pub fn normal(&mut self) -> f64 {
        loop {
            let bits = self.prng.next_u64();
            let layer = bits as usize % LAYERS;
            let signed = ((bits >> 11) as f64 + 0.5) / (1u64 << 52) as f64 - 1.0;
            let x = signed * self.edges[layer];
            if x.abs() < self.edges[layer + 1] {
                return x;
            }
            if layer == 0 {
                let tail = self.tail();
                return if signed < 0.0 { -tail } else { tail };
            }
            let (low, high) = (density(self.edges[layer]), density(self.edges[layer + 1]));
            if low + self.uniform() * (high - low) < density(x) {
                return x;
            }
        }
    }

    fn tail(&mut self) -> f64 {
        loop {
            let x = -self.uniform().ln() / EDGE;
            let y = -self.uniform().ln();
            if x * x < 2.0 * y {
                return EDGE + x;
            }
        }
    }

    /// Shape at least one.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v <= 0.0 {
                continue;
            }
            let u = self.uniform();
            if u < 1.0 - 0.0331 * x.powi(4) || u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
                return d * v;
            }
        }
    }

    /// Between zero and one; both shapes at least one.
    pub fn beta(&mut self, a: f64, b: f64) -> f64 {
        let x = self.gamma(a);
        x / (x + self.gamma(b))
    }
}

/// The normal density without its constant.
fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of many draws.
    fn moments(mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let count = 200_000;
        let draws: Vec<f64> = (0..count).map(|_| draw()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(count);
        (mean, draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(count))
    }

    #[test]
    fn normal_draws_have_mean_zero_variance_one_and_the_right_tails() {
        let mut draws = Normal::new(Prng::quick(1));
        let (mean, variance) = moments(|| draws.normal());
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.015, "{mean} {variance}");
        let beyond_two = (0..200_000).filter(|_| 2.0 < draws.normal()).count();
        assert!((4_300..4_800).contains(&beyond_two), "{beyond_two}");
    }

    #[test]
    fn beta_draws_have_the_moments_of_the_distribution() {
        let mut draws = Normal::new(Prng::quick(2));
        for (a, b) in [(1.0, 1.0), (3.0, 5.0), (400.0, 600.0)] {
            let (mean, variance) = moments(|| draws.beta(a, b));
            let want = a / (a + b);
            let want_variance = want * (1.0 - want) / (a + b + 1.0);
            assert!((mean - want).abs() < 0.005, "{a} {b} {mean}");
            assert!((variance / want_variance - 1.0).abs() < 0.03, "{a} {b} {variance}");
        }
    }
}
