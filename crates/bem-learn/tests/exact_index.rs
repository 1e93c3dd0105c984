//! The cached argmin against arithmetic that is exact, or wide enough that its own error (below 2^-54) could
//! not be seen in an index of 28 fractional bits. No floats: 128-bit integers and 256-bit products.
//! Clauses: VM-9, D-7.

use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_base::prng::Prng;
use bem_learn::bucket::Bucket;
use bem_learn::index::{ArmStatistics, INDEX_FRACTION_BITS, INDEX_LIMIT, Parameters};
use bem_learn::loss::Loss;

/// The 256-bit product of two 128-bit numbers, high half first.
fn product(a: u128, b: u128) -> (u128, u128) {
    let split = |value: u128| (value >> 64, value & u128::from(u64::MAX));
    let ((a_high, a_low), (b_high, b_low)) = (split(a), split(b));
    let low = a_low * b_low;
    let (middle, carry) = (a_high * b_low).overflowing_add(a_low * b_high);
    let (low, low_carry) = low.overflowing_add(middle << 64);
    let high = a_high * b_high + (middle >> 64) + (u128::from(carry) << 64) + u128::from(low_carry);
    (high, low)
}

/// ln(count) with 64 fractional bits: the logarithm to base 2 bit by bit on a mantissa of 127 bits.
fn ln_q64(count: u64) -> u128 {
    /// ln 2 with 127 fractional bits.
    const LN_2_Q127: u128 = 0x58B9_0BFB_E8E7_BCD5_E4F1_D9CC_01F9_7B57;
    let whole = count.ilog2();
    let mut mantissa_q126 = u128::from(count) << (126 - whole);
    let mut log2_q64 = u128::from(whole) << 64;
    for bit in (0..64).rev() {
        mantissa_q126 = product(mantissa_q126, mantissa_q126).0 << 2;
        if 1 << 127 <= mantissa_q126 {
            mantissa_q126 >>= 1;
            log2_q64 |= 1 << bit;
        }
    }
    let (high, low) = product(log2_q64, LN_2_Q127);
    high << 1 | low >> 127
}

/// The UCB-V index with 60 fractional bits, held at the limits of a cached index.
fn index_q60(parameters: &Parameters, arm: &ArmStatistics, ln_q64: u128) -> i128 {
    let visits = u128::from(arm.visits);
    let loss_sum = u128::from(arm.loss_sum);
    let mean_q60 = (loss_sum << 28) / visits;

    // n Q - L^2 with 64 fractional bits, exact; over n^2 in two divisions it has 128.
    let spread = ((visits * u128::from(arm.loss_sq_sum)) << 32).saturating_sub(loss_sum * loss_sum);
    let square = visits * visits;
    let variance_q128 = ((spread / square) << 64) + ((spread % square) << 64) / square;
    let (high, low) = product(variance_q128 / visits, 2 * ln_q64);
    let root_q60 = (high << 56 | low >> 72).isqrt();
    let range_q60 = ((3 * ln_q64) >> 4) / visits;

    let shrink_min_q62 = (1u128 << 123).isqrt() as i128;
    let shrink_q62 =
        ((1i128 << 62) + (i128::from(arm.prior) << (62 - 24 - 2))).clamp(shrink_min_q62, 1 << 62);
    let weight_q94 = shrink_q62 * i128::from(parameters.exploration.to_raw());
    let (high, low) = product(root_q60 + range_q60, weight_q94 as u128);
    let bonus_q60 = high << 34 | low >> 94;
    let limit = i128::from(INDEX_LIMIT) << (60 - INDEX_FRACTION_BITS);
    (mean_q60 as i128 - bonus_q60 as i128).clamp(-limit, limit)
}

/// The lowest position with the lowest exact index.
fn exact_choice(parameters: &Parameters, bucket: &Bucket) -> usize {
    let ln = ln_q64(1 + bucket.selections_total());
    let index = |arm: &usize| index_q60(parameters, &bucket.statistics(*arm), ln);
    (0..ARMS_MAX).filter(|arm| bucket.live() >> arm & 1 == 1).min_by_key(index).expect("an arm lives")
}

fn with_exploration(numerator: i64, denominator: i64) -> Parameters {
    Parameters { exploration: Fixed::from_ratio(numerator, denominator), change: None, ..Parameters::DEFAULT }
}

/// A loss with the given mean in percent: all or nothing, or anywhere around it.
fn draw(prng: &mut Prng, percent: u64, continuous: bool) -> Loss {
    if continuous {
        let width = percent.min(100 - percent) << 32;
        Loss::from_raw(((percent << 32) - width + prng.below(2 * width + 1)) / 100)
    } else {
        Loss::from_bit(prng.below(100) < percent)
    }
}

/// Decisions on the way of a learning bucket, where the indices lie close together because the rule makes them.
fn disagreements_on_trajectories(decisions_each: u64) -> (u64, u64) {
    let (mut decisions, mut disagreements) = (0, 0);
    let settings = [(1, 4, 5, false), (3, 8, 10, false), (1, 1, 5, false), (3, 8, 5, true), (1, 2, 30, true)];
    for (seed, (numerator, denominator, gap, continuous)) in settings.into_iter().enumerate() {
        let parameters = with_exploration(numerator, denominator);
        let mut prng = Prng::stream(seed as u64, "exact/trajectory");
        let mut bucket = Bucket::new(&parameters, u16::MAX);
        for _ in 0..decisions_each {
            bucket.refresh(&parameters);
            let arm = bucket.choose();
            decisions += 1;
            disagreements += u64::from(arm != exact_choice(&parameters, &bucket));
            let percent = if arm == 9 { 40 } else { 40 + gap };
            bucket.record(arm, draw(&mut prng, percent, continuous));
        }
    }
    (decisions, disagreements)
}

/// States of all sizes up to 2^29 visits an arm, with priors, masks and any spread.
fn disagreements_on_random_states(states: u64) -> u64 {
    let mut prng = Prng::stream(1, "exact/random");
    let mut disagreements = 0;
    for _ in 0..states {
        let parameters = with_exploration(1 + prng.below(16) as i64, 16);
        let mut bucket = Bucket::new(&parameters, 1 + prng.below(u64::from(u16::MAX)) as u16);
        let size = 1 + prng.below(29);
        // Means close together, so that the bonus decides as often as the mean.
        let centre = prng.below(1 << 32);
        let width = 1 + (centre.min((1 << 32) - centre) >> prng.below(20));
        for arm in 0..ARMS_MAX {
            let visits = 1 + prng.below(1 << size) as u32;
            let mean = centre - (width - 1) / 2 + prng.below(width);
            let loss_sum = (u128::from(mean) * u128::from(visits)) as u64;
            let loss_sq_least = ((u128::from(mean) * u128::from(loss_sum)) >> 32) as u64;
            let loss_sq_sum = loss_sq_least + prng.below(loss_sum - loss_sq_least + 1);
            bucket.add_batch(arm, visits, loss_sum, loss_sq_sum);
            if prng.below(4) == 0 {
                bucket.adjust_prior(&parameters, arm, Fixed::from_raw(prng.between(-2 << 32, 2 << 32)));
            }
        }
        bucket.refresh(&parameters);
        disagreements += u64::from(bucket.choose() != exact_choice(&parameters, &bucket));
    }
    disagreements
}

#[test]
fn the_reference_logarithm_agrees_with_published_digits() {
    // ln 10 = 2.302585092994045684017991454684364207601101488628772976...
    assert!(ln_q64(10).abs_diff(42_475_197_918_399_869_019) <= 64);
    assert_eq!(ln_q64(1), 0);
}

#[test]
fn argmin_agrees_with_exact_arithmetic_in_99999_of_100000_decisions() {
    let (on_trajectories, disagreements) = disagreements_on_trajectories(100_000);
    let random = 500_000;
    let disagreements = disagreements + disagreements_on_random_states(random);
    let decisions = on_trajectories + random;
    assert_eq!(decisions, 1_000_000);
    assert!(disagreements * 100_000 <= decisions, "{disagreements} of {decisions}");
}
