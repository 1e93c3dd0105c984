//! `bem ladder --bandit`: regret of the choice among sixteen templates, for five seeds. Clause: GLE-6.

use super::super::Answer;
use anyhow::Result;
use bem_base::fixed::Fixed;
use bem_tables::figures::to_float;
use bem_teacher::laboratory::{Checkpoint, exponent, template_regret};
use serde_json::{Value, json};

/// Prints it; the answer is whether every exponent is below 0.6.
pub fn print(seed: u64, as_json: bool) -> Result<Answer> {
    let checkpoints = [100, 1_000, 10_000, 100_000, 1_000_000];
    let runs: Vec<(u64, Vec<Checkpoint>)> =
        (0..5).map(|index| seed + index).map(|seed| (seed, template_regret(seed, &checkpoints))).collect();
    let exponents: Vec<Fixed> = runs.iter().map(|(_, points)| exponent(points[2], points[4])).collect();
    let worst = exponents.iter().copied().max().unwrap_or(Fixed::ZERO);
    let good = worst < Fixed::from_ratio(6, 10);
    if as_json {
        let seeds: Vec<Value> = runs
            .iter()
            .zip(&exponents)
            .map(|((seed, points), exponent)| {
                let regret: Vec<Value> =
                    points.iter().map(|point| json!([point.choices, to_float(point.regret)])).collect();
                json!({ "seed": seed, "regret": regret, "exponent": to_float(*exponent) })
            })
            .collect();
        say!("{}", json!({ "templates": 16, "seeds": seeds, "worst_exponent": to_float(worst) }));
    } else {
        say!("pseudo-regret of the choice among 16 templates, in units of meta-reward");
        say!("  seed{}  exponent 10^4..10^6", checkpoints.map(|choices| format!("{choices:>11}")).concat());
        for ((seed, points), exponent) in runs.iter().zip(&exponents) {
            let cells: String =
                points.iter().map(|point| format!("{:>11.2}", to_float(point.regret))).collect();
            say!("  {seed:>4}{cells}  {:.3}", to_float(*exponent));
        }
        say!("  worst exponent {:.3}; below 0.6 is asked for", to_float(worst));
    }
    Ok(if good { Answer::Yes } else { Answer::No })
}
