//! What `bem ladder` prints: one line for every family, one family rung by rung with a plot, or JSON.

use super::super::fit::{WIDTH, wrapped};
use super::measured::Measurement;
use super::{Agreement, Shown};
use bem_base::fixed::log2_count_floor;
use bem_tables::figures::to_float;
use bem_teacher::ladder::Rung;
use serde_json::{Value, json};

/// One family of `bem ladder --json`.
pub fn to_json(shown: &Shown) -> Value {
    let rung = |(stage, (rung, measured)): (usize, (&Rung, &Option<Measurement>))| {
        json!({
            "stage": stage,
            "band": shown.ladder.band(rung.difficulty),
            "task": rung.tree.to_string(),
            "difficulty": to_float(rung.difficulty),
            "labels": to_float(rung.labels),
            "horizon": rung.horizon,
            "measured": measured.as_ref().and_then(Measurement::median),
            "runs": measured.as_ref().map(|measured| &measured.steps),
            "budget": measured.as_ref().map(|measured| measured.budget),
        })
    };
    let rungs: Vec<Value> = shown.rungs.iter().zip(&shown.measured).enumerate().map(rung).collect();
    let (order, spearman, levels) = match shown.agreement() {
        Agreement::Unmeasured => ("unmeasured", None, None),
        Agreement::Flat => ("flat", None, None),
        Agreement::Ordered { spearman, levels } => ("ordered", Some(to_float(spearman)), Some(levels)),
    };
    json!({
        "family": shown.domain.name(),
        "slope": to_float(shown.fit.slope),
        "intercept": to_float(shown.fit.intercept),
        "r_squared": to_float(shown.fit.r_squared),
        "r_squared_measured": shown.measured_fit().map(to_float),
        "order": order,
        "spearman": spearman,
        "levels": levels,
        "rungs": rungs,
    })
}

/// One line for every family.
pub fn print_overview(shown: &[Shown]) {
    say!("                      estimated       measured (median steps to 0.99)   orders");
    say!("family                rungs      R^2  rungs      R^2 easiest hardest  agree by");
    for family in shown {
        let estimates: Vec<Option<f64>> =
            family.rungs.iter().map(|rung| Some(to_float(rung.difficulty))).collect();
        let medians: Vec<Option<u64>> =
            family.measured.iter().map(|measured| measured.as_ref().and_then(Measurement::median)).collect();
        let logarithms: Vec<Option<f64>> = medians.iter().map(|median| median.map(log2)).collect();
        let is_measured = family.agreement() != Agreement::Unmeasured;
        let steps = |median: Option<&Option<u64>>| match median {
            Some(Some(steps)) => steps.to_string(),
            _ => "-".to_string(),
        };
        say!(
            "{:<20}  {:<8} {:>5.3}  {:<8} {:>5} {:>7} {:>7}  {}",
            family.domain.name(),
            bars(&estimates),
            to_float(family.fit.r_squared),
            if is_measured { bars(&logarithms) } else { String::new() },
            family.measured_fit().map_or(String::new(), |fit| format!("{:.3}", to_float(fit))),
            steps(medians.first()),
            steps(medians.last()),
            in_short(family.agreement()),
        );
    }
    let below = "Bars are logarithms of steps, from a family's easiest rung to its hardest; x is a rung that most runs did \
        not solve within the budget. Orders agree by Spearman's rank correlation over the levels that can be told apart, \
        in parentheses; where no order was measured they are flat. `bem ladder --families NAME` shows every rung of a \
        family.";
    say!("");
    wrapped(below, WIDTH).iter().for_each(|line| say!("{line}"));
}

/// One family, rung by rung.
pub fn print_rungs(shown: &Shown) {
    say!(
        "{}: log2(steps) = {:.2} + {:.2} * stage, R^2 = {:.4}",
        shown.domain.name(),
        to_float(shown.fit.intercept),
        to_float(shown.fit.slope),
        to_float(shown.fit.r_squared)
    );
    say!("  stage band  expected  measured  {}", Axis::header().trim_end());
    for (stage, (rung, measured)) in shown.rungs.iter().zip(&shown.measured).enumerate() {
        let expected = to_float(rung.difficulty).exp2().round();
        let steps = match measured {
            None => "-".to_string(),
            Some(measured) => measured.median().map_or("never".to_string(), |steps| steps.to_string()),
        };
        let band = shown.ladder.band(rung.difficulty);
        let plot = Axis::plot(to_float(rung.difficulty), measured.as_ref());
        say!("  {stage:>5} {band:>4} {expected:>9} {steps:>9}  {}", plot.trim_end());
        say!("        {}", rung.tree);
    }
    let straight = shown.measured_fit().map_or(String::new(), |fit| format!(", R^2 {:.3}", to_float(fit)));
    say!("  o expected, * measured (median), - all runs, x not solved");
    say!("  orders: {}{straight}\n", in_words(shown.agreement()));
}

fn in_words(agreement: Agreement) -> String {
    match agreement {
        Agreement::Unmeasured => "not measured".to_string(),
        Agreement::Flat => "flat: no order was measured".to_string(),
        Agreement::Ordered { spearman, levels } => format!("{:.3} over {levels} levels", to_float(spearman)),
    }
}

/// The same where a column of a table is left for it.
fn in_short(agreement: Agreement) -> String {
    match agreement {
        Agreement::Unmeasured => "-".to_string(),
        Agreement::Flat => "flat".to_string(),
        Agreement::Ordered { spearman, levels } => format!("{:.3} ({levels})", to_float(spearman)),
    }
}

fn log2(steps: u64) -> f64 {
    to_float(log2_count_floor(1 + steps))
}

/// One block for every value, from the lowest to the highest of them; of many values, some that lie as far apart as can be.
fn bars(values: &[Option<f64>]) -> String {
    const SHOWN: usize = 8;
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let known = || values.iter().flatten().copied();
    let (low, high) = (known().fold(f64::MAX, f64::min), known().fold(f64::MIN, f64::max));
    let block = |value: f64| {
        let share = if low < high { (value - low) / (high - low) } else { 0.0 };
        BLOCKS[(share * 7.0).round() as usize]
    };
    let shown = values.len().min(SHOWN);
    let places = (0..shown).map(|place| place * (values.len() - 1) / (shown - 1).max(1));
    places.map(|place| values[place].map_or('x', block)).collect()
}

/// A line of characters that stands for 1 to 2^17 steps, two characters for a doubling.
struct Axis;

impl Axis {
    const WIDTH: usize = 35;

    fn place(logarithm: f64) -> usize {
        ((logarithm * 2.0).round().max(0.0) as usize).min(Axis::WIDTH - 1)
    }

    fn header() -> String {
        let mut line = vec![b' '; Axis::WIDTH];
        for (power, label) in [(0, "1"), (4, "16"), (8, "256"), (12, "4096"), (15, "32768")] {
            line[2 * power..2 * power + label.len()].copy_from_slice(label.as_bytes());
        }
        line.into_iter().map(char::from).collect()
    }

    fn plot(estimate: f64, measured: Option<&Measurement>) -> String {
        let mut line = vec![' '; Axis::WIDTH];
        if let Some(measured) = measured {
            let runs = measured.censored();
            let places = || runs.iter().map(|steps| Axis::place(log2(*steps)));
            if let (Some(first), Some(last)) = (places().min(), places().max()) {
                line[first..=last].fill('-');
            }
            if measured.steps.contains(&None) {
                line[Axis::place(log2(measured.budget))] = 'x';
            }
            if let Some(median) = measured.median() {
                line[Axis::place(log2(median))] = '*';
            }
        }
        line[Axis::place(estimate)] = 'o';
        line.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_climb_from_the_lowest_to_the_highest() {
        assert_eq!(bars(&[Some(1.0), Some(2.0), None, Some(8.0)]), "▁▂x█");
        assert_eq!(bars(&[Some(3.0), Some(3.0)]), "▁▁");
        let many: Vec<Option<f64>> = (0..15).map(|value| Some(f64::from(value))).collect();
        assert_eq!((bars(&many).as_str(), bars(&[]).as_str()), ("▁▂▃▄▅▆▇█", ""));
    }

    #[test]
    fn a_plot_shows_estimate_median_spread_and_unsolved_runs() {
        let measured = Measurement { budget: 65_535, steps: vec![Some(15), Some(255), None] };
        let plot = Axis::plot(4.0, Some(&measured));
        assert_eq!(plot.trim_end(), "        o-------*---------------x");
        assert_eq!(plot.chars().count(), Axis::header().chars().count());
    }
}
