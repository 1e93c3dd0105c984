//! Medians and the rank test of two samples.

/// Steps of the runs of a row; nothing for one that never got there, which counts as the slowest.
pub type Steps = Vec<Option<u64>>;

/// The upper of the two middle values, at least one step.
pub fn median(steps: &Steps) -> f64 {
    let mut sorted: Vec<u64> = steps.iter().map(|steps| steps.unwrap_or(u64::MAX)).collect();
    sorted.sort_unstable();
    match sorted.get(sorted.len() / 2) {
        Some(&u64::MAX) | None => f64::INFINITY,
        Some(steps) => (*steps).max(1) as f64,
    }
}

/// The chance of samples that speak as much for `new` being slower if both are of one kind: the rank sum of Mann and Whitney
/// as a normal variable, with the correction for ties, one-sided.
pub fn slower_by_chance(old: &Steps, new: &Steps) -> f64 {
    let value = |steps: &Option<u64>| steps.unwrap_or(u64::MAX);
    let (n, m) = (old.len() as f64, new.len() as f64);
    let above: f64 = new
        .iter()
        .flat_map(|new| old.iter().map(move |old| (value(new), value(old))))
        .map(|(new, old)| f64::from(u8::from(old < new)) + 0.5 * f64::from(u8::from(old == new)))
        .sum();
    let mut all: Vec<u64> = old.iter().chain(new).map(value).collect();
    all.sort_unstable();
    let ties: f64 = all
        .chunk_by(|one, other| one == other)
        .map(|tie| (tie.len() as f64).powi(3) - tie.len() as f64)
        .sum();
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    tail((above - n * m / 2.0 - 0.5) / variance.sqrt())
}

/// The chance of a standard normal variable above `z`, by Simpson's rule.
fn tail(z: f64) -> f64 {
    const PARTS: u32 = 2_000;
    let (from, to) = (z.clamp(-9.0, 9.0), 9.0);
    let width = (to - from) / f64::from(PARTS);
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let inner: f64 = (1..PARTS)
        .map(|part| (if part % 2 == 0 { 2.0 } else { 4.0 }) * density(from + f64::from(part) * width))
        .sum();
    (density(from) + inner + density(to)) * width / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(values: &[u64]) -> Steps {
        values.iter().map(|value| Some(*value)).collect()
    }

    #[test]
    fn the_tail_of_the_normal_distribution_is_the_known_one() {
        for (z, chance) in [(0.0, 0.5), (1.0, 0.158_655), (2.326_348, 0.01), (-1.0, 0.841_345)] {
            assert!((tail(z) - chance).abs() < 1e-5, "{z}");
        }
    }

    #[test]
    fn samples_that_differ_are_told_apart_and_equal_ones_are_not() {
        let low = steps(&(1..=20).collect::<Vec<_>>());
        let high = steps(&(15..=34).collect::<Vec<_>>());
        assert!(slower_by_chance(&low, &high) < 0.0001);
        assert!(0.99 < slower_by_chance(&high, &low));
        assert!(0.4 < slower_by_chance(&low, &low));
        // Scipy: mannwhitneyu([3, 5, 5, 8], [5, 6, 9, 11], alternative="less", method="asymptotic").
        let chance = slower_by_chance(&steps(&[3, 5, 5, 8]), &steps(&[5, 6, 9, 11]));
        assert!((chance - 0.091_575).abs() < 1e-4, "{chance}");
    }

    #[test]
    fn who_never_got_there_is_slowest() {
        assert_eq!(median(&vec![Some(4), None, Some(0)]), 4.0);
        assert_eq!(median(&vec![Some(4), None, None]), f64::INFINITY);
        assert_eq!(median(&steps(&[0, 0])), 1.0);
        assert!(slower_by_chance(&steps(&[1; 20]), &vec![None; 20]) < 1e-6);
    }
}
