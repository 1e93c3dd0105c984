//! Softmax over the cached indices: draws an arm with chance proportional to `exp(-index / temperature)`.
//!
//! With a temperature that falls as visits grow it settles; at a fixed one it never does, and is kept as a
//! control. Integers only: exponentials have 32 fractional bits. Clauses: VM-9, D-5.

use crate::bucket::Bucket;
use crate::index::INDEX_FRACTION_BITS;
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_base::prng::Prng;

/// How warm the draw is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "T_bandit")]
pub enum Temperature {
    /// The same for ever: a control with linear regret.
    Fixed(Fixed),
    /// This, divided by the square root of one more than the bucket's choices.
    Falling(Fixed),
}

impl Temperature {
    /// The temperature after this many choices, at least one unit in the last place.
    pub fn after(self, selections_total: u64) -> Fixed {
        let value = match self {
            Temperature::Fixed(value) => value,
            Temperature::Falling(start) => {
                let root = (u128::from(selections_total + 1) << 64).isqrt();
                Fixed::from_raw((((start.to_raw() as u128) << 32) / root) as i64)
            }
        };
        value.max(Fixed::from_raw(1))
    }
}

/// Draws an arm among the candidates, one bit each; masked arms have no chance.
///
/// If no candidate lives, all live arms are candidates.
pub fn choose(bucket: &Bucket, temperature: Temperature, candidates: u16, prng: &mut Prng) -> usize {
    let temperature = temperature.after(bucket.selections_total());
    let candidates = if candidates & bucket.live() == 0 { bucket.live() } else { candidates & bucket.live() };
    let least = bucket.indices()[bucket.choose_among(candidates)];
    let mut weights = [0u64; ARMS_MAX];
    for (arm, (weight, index)) in weights.iter_mut().zip(bucket.indices()).enumerate() {
        if candidates >> arm & 1 == 1 {
            *weight = weight_q32(index.abs_diff(least), temperature);
        }
    }
    let mut draw = prng.below(weights.iter().sum());
    for (arm, weight) in weights.iter().enumerate() {
        if draw < *weight {
            return arm;
        }
        draw -= weight;
    }
    unreachable!("the draw is below the sum of all weights");
}

/// Draws so many arms, each as [`choose`] does, and takes the best of them by index: `k_small` of decision D-5.
pub fn choose_best_of(
    bucket: &Bucket,
    (temperature, count): (Temperature, u32),
    candidates: u16,
    prng: &mut Prng,
) -> usize {
    let draws = (0..count.max(1)).map(|_| choose(bucket, temperature, candidates, prng));
    draws.min_by_key(|arm| (bucket.indices()[*arm], *arm)).expect("at least one is drawn")
}

/// The weight of an arm whose index lies so far above the lowest, at this temperature: at most 2^32.
pub(crate) fn weight_q32(above: u32, temperature: Fixed) -> u64 {
    let above = u64::from(above) << (32 - INDEX_FRACTION_BITS);
    exp_negative_q32((u128::from(above) << 32) / temperature.to_raw() as u128)
}

/// `exp(-value)` for a value that is not negative, both with 32 fractional bits; relative error below 2^-20.
fn exp_negative_q32(value_q32: u128) -> u64 {
    /// 1 / ln 2 with 32 fractional bits.
    const LOG2_E_Q32: u128 = 6_196_328_019;
    let exponent = (value_q32.min(64 << 32) * LOG2_E_Q32) >> 32;
    let whole = (exponent >> 32).min(63) as u32;
    let fraction = exponent as u64 & 0xFFFF_FFFF;
    half_to_the(fraction) >> whole
}

/// `2^-fraction` for a fraction below one, both with 32 fractional bits: eight terms of the series.
fn half_to_the(fraction: u64) -> u64 {
    // (ln 2)^k / k! with 32 fractional bits, highest power first; Horner with alternating signs.
    const TERMS: [u64; 8] =
        [65_510, 661_577, 5_726_720, 41_309_550, 238_388_332, 1_031_764_991, 2_977_044_472, 1 << 32];
    let mut sum = 0u64;
    for term in TERMS {
        sum = term - ((sum * fraction) >> 32);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Parameters;
    use crate::loss::Loss;

    #[test]
    fn exponentials_match_a_table_of_true_values() {
        // exp(-x) * 2^32 from a 50-digit table.
        for (numerator, denominator, want) in [
            (0u128, 1, 4_294_967_296u64),
            (1, 10, 3_886_247_120),
            (1, 2, 2_605_029_348),
            (1, 1, 1_580_030_169),
            (5, 1, 28_939_262),
            (20, 1, 8),
            (1 << 30, 1, 0),
        ] {
            let got = exp_negative_q32((numerator << 32) / denominator);
            assert!(got.abs_diff(want) <= 2 + (want >> 20), "{numerator}/{denominator}: {got} {want}");
        }
    }

    #[test]
    fn a_falling_temperature_falls_with_the_root_of_visits() {
        let temperature = Temperature::Falling(Fixed::ONE);
        assert_eq!(temperature.after(0), Fixed::ONE);
        assert_eq!(temperature.after(3), Fixed::HALF);
        assert_eq!(Temperature::Fixed(Fixed::HALF).after(1 << 40), Fixed::HALF);
    }

    #[test]
    fn cold_draws_take_the_best_arm_and_warm_ones_spread() {
        let parameters = Parameters { change: None, ..Parameters::DEFAULT };
        let mut bucket = Bucket::new(&parameters, 0b0111);
        for arm in [0, 1, 2].repeat(500) {
            bucket.update(&parameters, arm, Loss::from_bit(arm != 0));
        }
        let mut prng = Prng::quick(5);
        let mut count = |temperature| {
            let mut counts = [0u32; ARMS_MAX];
            (0..3_000).for_each(|_| counts[choose(&bucket, temperature, u16::MAX, &mut prng)] += 1);
            counts
        };
        let cold = count(Temperature::Fixed(Fixed::from_ratio(1, 100)));
        assert_eq!(cold[0], 3_000);
        let warm = count(Temperature::Fixed(Fixed::from_int(1_000)));
        assert!(warm[..3].iter().all(|count| (900..1_100).contains(count)), "{warm:?}");
        assert_eq!(warm[3..].iter().sum::<u32>(), 0);
        let warm = Temperature::Fixed(Fixed::from_int(1_000));
        assert!((0..100).all(|_| [1, 2].contains(&choose(&bucket, warm, 0b1110, &mut prng))));
    }
}
