//! `bem bench bounds`: what can be reached where a stated optimum is more than anybody who plays can earn.
//!
//! The optimum of `nonstationary_bandit` is that of a clairvoyant. Beside it stand two who play: a Bayes filter that knows the
//! number of arms, the gap and how often the best arm changes, and one that is told every change besides; both pull the arm that is
//! most likely the best. A learner knows none of this. Of `rulegrid` the page has the stated values with their errors, and what
//! weighted sums of the bits that are seen can earn. `cargo xtask results bounds` writes it as docs/results/bounds.md. Clauses:
//! GLE-1, GLE-5.

mod rulegrid;

use super::{Benchmark, Measurement, measure};
use crate::cli::Answer;
use anyhow::Result;
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_engine::evaluate::Yardstick;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_games::families::nonstationary_bandit::SEGMENTS;
use serde_json::json;

/// The benchmark of this file.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "bounds",
    area: "bounds",
    about: "score of a Bayes filter on the rung of nonstationary_bandit that it just cannot solve",
    run: || {
        let row = row(8, 20)?;
        Ok(Measurement::new("bounds", row.filter, "score", row.told, "one that is told every change"))
    },
}];

/// Settings that are asked about.
const ARMS: [u16; 5] = [2, 3, 4, 6, 8];
const GAPS: [u16; 7] = [100, 80, 60, 50, 40, 30, 20];
/// Episodes behind each score; each has 64,000 steps.
const EPISODES: u64 = 16;
/// Bands and lengths of the grid.
const BANDS: u32 = 5;
const STEPS: [u32; 9] = [1, 2, 3, 4, 6, 8, 16, 32, 200];

/// Scores of one setting, with the standard error of the first.
struct Row {
    arms: u16,
    gap: u16,
    filter: f64,
    error: f64,
    told: f64,
}

/// How likely each arm is the best.
struct Filter {
    chances: Vec<f64>,
    /// How much more likely the best arm pays, and how much more likely it does not, than another.
    paid: f64,
    unpaid: f64,
    hazard: f64,
}

impl Filter {
    fn new(arms: u16, gap: u16, segment: u32) -> Filter {
        let (best, other) = ((100.0 + f64::from(gap)) / 200.0, (100.0 - f64::from(gap)) / 200.0);
        // Where the others never pay, one payment says it all.
        let (paid, unpaid) = (best / other.max(1e-12), (1.0 - best) / (1.0 - other));
        let chances = vec![1.0 / f64::from(arms); usize::from(arms)];
        Filter { chances, paid, unpaid, hazard: 1.0 / f64::from(segment) }
    }

    fn act(&self) -> usize {
        let better =
            |best: usize, arm: usize| if self.chances[best] < self.chances[arm] { arm } else { best };
        (1..self.chances.len()).fold(0, better)
    }

    fn see(&mut self, arm: usize, paid: bool) {
        self.chances[arm] *= if paid { self.paid } else { self.unpaid };
        let sum: f64 = self.chances.iter().sum();
        if sum <= f64::MIN_POSITIVE {
            let even = 1.0 / self.chances.len() as f64;
            self.chances.fill(even);
        } else {
            self.chances.iter_mut().for_each(|chance| *chance /= sum);
        }
    }

    /// Another arm becomes the best with this chance, each of them as likely.
    fn change(&mut self, chance: f64) {
        let others = (self.chances.len() - 1) as f64;
        for held in &mut self.chances {
            *held = (1.0 - chance) * *held + chance * (1.0 - *held) / others;
        }
    }
}

/// Milli-units as units.
fn units(value: Fixed) -> f64 {
    value.to_raw() as f64 / (1u64 << FRACTION_BITS) as f64 / 1e3
}

fn row(arms: u16, gap: u16) -> Result<Row> {
    let task = format!("nonstationary_bandit{{arms={arms},gap={gap}}}");
    let game = TaskTree::parse(&task)?.build(1, &NoPrograms)?;
    let segment = game.shape().horizon / SEGMENTS;
    let yardstick = Yardstick::of(game.as_ref());
    let (optimum, random) = (units(yardstick.optimum), units(yardstick.random));
    let (mut world, mut oracle) = (game.start(), game.oracle());
    // What the clairvoyant earns in the same episodes: their luck is taken out.
    let mut best = Vec::new();
    for episode in 0..EPISODES {
        world.reset(episode)?;
        oracle.begin(episode);
        let mut total = 0i64;
        loop {
            let action = oracle.act(world.observation());
            let outcome = world.step(action)?;
            oracle.see(action, &outcome);
            total += i64::from(outcome.reward);
            if outcome.done {
                break;
            }
        }
        best.push(total);
    }
    let mut play = |is_told: bool| -> Result<Vec<f64>> {
        let mut scores = Vec::new();
        for (episode, best) in best.iter().enumerate() {
            world.reset(episode as u64)?;
            let mut filter = Filter::new(arms, gap, segment);
            let (mut total, mut time) = (0i64, 0u32);
            loop {
                let arm = filter.act();
                let outcome = world.step(arm as u16)?;
                total += i64::from(outcome.reward);
                time += 1;
                filter.see(arm, 0 < outcome.reward);
                match is_told {
                    false => filter.change(filter.hazard),
                    true if time.is_multiple_of(segment) => filter.change(1.0),
                    true => {}
                }
                if outcome.done {
                    break;
                }
            }
            scores.push(1.0 + (total - best) as f64 / 1e3 / (optimum - random));
        }
        Ok(scores)
    };
    let mean = |scores: &[f64]| scores.iter().sum::<f64>() / scores.len() as f64;
    let (alone, told) = (play(false)?, play(true)?);
    let filter = mean(&alone);
    let spread: f64 = alone.iter().map(|score| (score - filter).powi(2)).sum();
    let count = alone.len() as f64;
    Ok(Row { arms, gap, filter, error: (spread / (count * (count - 1.0))).sqrt(), told: mean(&told) })
}

/// Prints the page, or one JSON object.
pub fn report(json: bool) -> Result<Answer> {
    let mut rows = Vec::new();
    for arms in ARMS {
        for gap in GAPS {
            rows.push(row(arms, gap)?);
        }
    }
    if json {
        let of = |row: &Row| json!({ "arms": row.arms, "gap": row.gap, "filter": row.filter, "error": row.error, "told": row.told });
        let rows: Vec<_> = rows.iter().map(of).collect();
        let sums = rulegrid::Rows::measure()?.json();
        say!("{}", json!({ "machine": measure::machine(), "nonstationary_bandit": rows, "rulegrid": sums }));
        return Ok(Answer::Yes);
    }
    say!("## nonstationary_bandit\n");
    say!(
        "The stated optimum pulls the best arm from the first step of every segment on: nobody who plays does. The filter knows arms, gap \
         and how often the best arm changes, the other one is told every change besides; both pull the arm that is most likely the best. Scores \
         over {EPISODES} episodes of 64,000 steps, with the standard error of the first. Where the filter stays below 0.99, a learner that \
         knows none of this cannot be asked for 0.99.\n"
    );
    say!("| arms | gap | filter | told every change |");
    say!("|---|---|---|---|");
    for row in &rows {
        say!("| {} | {} | {:.4} +- {:.4} | {:.4} |", row.arms, row.gap, row.filter, row.error, row.told);
    }
    say!("\n## rulegrid\n");
    say!(
        "What is stated is measured: the reference (`crates/bem-games/src/rulegrid/reference.rs`) sees what a player sees, over about \
         131,000 ticks. Mean returns with their standard errors.\n"
    );
    say!("| band | steps | reference | random play |");
    say!("|---|---|---|---|");
    for band in 0..BANDS {
        for steps in STEPS {
            let task = format!("rulegrid{{band={band},steps={steps}}}");
            let game = TaskTree::parse(&task)?.build(1, &NoPrograms)?;
            let shown = |value: bem_games::game::Value| {
                format!("{:.4} +- {:.4}", units(value.mean), units(value.standard_error))
            };
            say!("| {band} | {steps} | {} | {} |", shown(game.optimum()), shown(game.random()));
        }
    }
    rulegrid::Rows::measure()?.print();
    Ok(Answer::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound of the rung that ended the ladder, and the control: with a gap of 30 percent the same filter is above.
    #[test]
    fn a_filter_that_knows_everything_but_the_changes_cannot_solve_eight_arms_with_a_gap_of_twenty() {
        let hard = row(8, 20).unwrap();
        assert!(hard.filter + 2.0 * hard.error < 0.992 && hard.filter < hard.told, "{}", hard.filter);
        let solvable = row(6, 30).unwrap();
        assert!(0.99 < solvable.filter, "{}", solvable.filter);
    }
}
