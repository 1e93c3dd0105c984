//! What several seeds say together: means with confidence intervals, and how fast something grows.

use bem_base::prng::Prng;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Resamples of a bootstrap.
const RESAMPLES: usize = 2_000;

/// Plays all seeds on all cores; results are in seed order, so they are the same on any machine.
pub fn over_seeds<T: Send>(seeds: u64, play: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(0);
    let results = Mutex::new((0..seeds).map(|_| None).collect::<Vec<Option<T>>>());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seeds <= seed {
                        return;
                    }
                    let result = play(seed);
                    results.lock().expect("no thread panics while it holds the lock")[seed as usize] =
                        Some(result);
                }
            });
        }
    });
    let results = results.into_inner().expect("all threads have ended well");
    results.into_iter().map(|result| result.expect("every seed was played")).collect()
}

/// The mean, and half the width of its 95 % confidence interval.
pub fn mean_with_half_width(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, 1.96 * (spread / count).sqrt())
}

/// The exponent with which the mean over runs grows: the slope of its logarithm over that of the steps, with the 95 %
/// interval by bootstrap over runs. One is linear, zero is flat. Each run has one value for each number of steps.
pub fn growth_exponent(steps: &[u64], runs: &[Vec<f64>]) -> [f64; 3] {
    let middle = slope(steps, runs.iter());
    let mut prng = Prng::stream(0, "bench/bootstrap");
    let mut resampled: Vec<f64> = (0..RESAMPLES)
        .map(|_| slope(steps, (0..runs.len()).map(|_| &runs[prng.below(runs.len() as u64) as usize])))
        .collect();
    resampled.sort_by(f64::total_cmp);
    [middle, resampled[RESAMPLES / 40], resampled[RESAMPLES - 1 - RESAMPLES / 40]]
}

/// Least squares over the logarithms; sums below one count as one.
fn slope<'a>(steps: &[u64], runs: impl Iterator<Item = &'a Vec<f64>>) -> f64 {
    let mut sums = vec![0.0; steps.len()];
    for run in runs {
        sums.iter_mut().zip(run).for_each(|(sum, value)| *sum += value);
    }
    let points: Vec<(f64, f64)> =
        steps.iter().zip(&sums).map(|(steps, sum)| ((*steps as f64).ln(), sum.max(1.0).ln())).collect();
    let count = points.len() as f64;
    let (x_mean, y_mean) =
        points.iter().fold((0.0, 0.0), |mean, (x, y)| (mean.0 + x / count, mean.1 + y / count));
    let (above, below) = points.iter().fold((0.0, 0.0), |sums, (x, y)| {
        (sums.0 + (x - x_mean) * (y - y_mean), sums.1 + (x - x_mean).powi(2))
    });
    above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_growth_has_exponent_one_a_root_one_half_and_none_zero() {
        let [linear, low, high] = growth_exponent(&[10, 100], &[vec![100.0, 1_000.0], vec![200.0, 2_000.0]]);
        assert!((linear - 1.0).abs() < 1e-9 && low <= linear && linear <= high);
        let root = growth_exponent(&[100, 400, 1_600], &[vec![10.0, 20.0, 40.0]])[0];
        assert!((root - 0.5).abs() < 1e-9, "{root}");
        assert_eq!(growth_exponent(&[10, 100], &[vec![50.0, 50.0]])[0], 0.0);
    }

    #[test]
    fn seeds_come_back_in_order_and_their_mean_has_an_interval() {
        let values: Vec<f64> = over_seeds(20, |seed| seed as f64);
        assert!(values.is_sorted() && values.len() == 20);
        let (mean, half_width) = mean_with_half_width(&values);
        assert!((mean - 9.5).abs() < 1e-9 && (2.5..2.7).contains(&half_width), "{mean} {half_width}");
    }
}
