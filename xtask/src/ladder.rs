//! The ladder by measured steps: which rungs lie on a line, and whether they still do on seeds that nobody has seen.
//!
//! `cargo xtask ladder choose FILE...` takes what `bem ladder --stages 14 --measure --save FILE` wrote and writes
//! crates/bem-teacher/src/chosen.rs; families that are not in it keep their rungs. `cargo xtask battery ladder` measures the
//! chosen rungs with seeds that the commit names and writes docs/results/ladder.md. Clauses: GLE-5.

use crate::{output, root};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// Rungs of a ladder that is chosen, at most and at least.
const STAGES: [usize; 2] = [5, 4];
/// Rungs that a choice is made among, at most.
const CANDIDATES: &str = "14";
/// Shares of half-samples that differ by less are alike: the wider choice is taken, and the longer one.
const ALIKE: f64 = 0.05;
/// Neighbours differ at least by this, in logarithms to the base 2.
const GAP: f64 = 0.25;
/// What the issue of fresh seeds must show: the share of the variance, the families that must reach it, and the correlation.
const FRESH: f64 = 0.95;
const FAMILIES: usize = 24;
const SPEARMAN: f64 = 0.9;
/// Families without steps to be counted: the one's agent learns anew in every episode, the other's rungs are open.
const UNMEASURED: [&str; 2] = ["nonstationary_bandit", "rulegrid"];

/// Runs the chore.
pub fn ladder(words: &[&str]) -> Result<()> {
    match words {
        ["choose", files @ ..] if !files.is_empty() => choose(files),
        _ => bail!(
            "cargo xtask ladder choose FILE...: files that `bem ladder --stages 14 --measure --save FILE` wrote"
        ),
    }
}

/// What `bem ladder` says, as JSON.
fn said(words: &[&str]) -> Result<Value> {
    let program = crate::built_bem()?;
    Ok(serde_json::from_str(&output(&program, &[&["ladder", "--json"], words].concat())?)?)
}

/// A rung with the logarithm of its median steps, and of the medians of all halves of its runs.
struct Rung<'v> {
    task: &'v str,
    steps: f64,
    halves: Vec<f64>,
}

/// All choices of half of so many runs, as masks; the larger half of an odd number.
fn halves(runs: usize) -> impl Iterator<Item = u32> {
    (0u32..1 << runs.min(16)).filter(move |mask| mask.count_ones() as usize == runs.min(16).div_ceil(2))
}

/// The logarithm of the median.
fn median(mut runs: Vec<u64>) -> Result<f64> {
    runs.sort_unstable();
    let median = runs.get(runs.len() / 2).context("a measurement has runs")?;
    Ok((1.0 + *median as f64).log2())
}

/// The rungs of a family that were measured, in the order of the estimate.
fn rungs(family: &Value) -> Result<Vec<Rung<'_>>> {
    let rungs = family["rungs"].as_array().context("a family has rungs")?;
    let measured = rungs.iter().filter(|rung| rung["runs"].is_array());
    measured
        .map(|rung| {
            let budget = rung["budget"].as_u64().context("a measurement has a budget")?;
            let runs = rung["runs"].as_array().context("a measurement has runs")?;
            let runs: Vec<u64> = runs.iter().map(|run| run.as_u64().unwrap_or(budget)).collect();
            let half = |mask: u32| {
                let of = runs.iter().enumerate().filter(|(place, _)| mask >> place & 1 == 1);
                median(of.map(|(_, run)| *run).collect())
            };
            Ok(Rung {
                task: rung["task"].as_str().context("a rung has a task")?,
                halves: halves(runs.len()).map(half).collect::<Result<Vec<f64>>>()?,
                steps: median(runs)?,
            })
        })
        .collect()
}

/// The share of the variance that a line over the stages explains.
fn straightness(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let (mean_x, mean_y) = ((count - 1.0) / 2.0, values.iter().sum::<f64>() / count);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (stage, value) in values.iter().enumerate() {
        let (x, y) = (stage as f64 - mean_x, value - mean_y);
        (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
    }
    if yy == 0.0 { 0.0 } else { xy * xy / (xx * yy) }
}

/// Rungs that are chosen: the share of half-samples by which they are straight, how wide they are, and where they are.
type Choice = (f64, f64, Vec<usize>);

/// The choice that is most often straight on half of the runs: what fresh seeds will say of it is as uncertain as that. None where
/// steps do not rise that often.
fn choice(rungs: &[Rung<'_>]) -> Option<Choice> {
    let found: Vec<Choice> = STAGES.iter().filter_map(|stages| best_choice(rungs, *stages)).collect();
    let most = found.iter().map(|choice| choice.0).fold(0.0, f64::max);
    found.into_iter().find(|choice| most - ALIKE < choice.0)
}

/// The choice of so many rungs that is most often straight; among those that are as good as alike the widest.
fn best_choice(rungs: &[Rung<'_>], stages: usize) -> Option<Choice> {
    let mut all: Vec<Choice> = Vec::new();
    for mask in (0u32..1 << rungs.len()).filter(|mask| mask.count_ones() as usize == stages) {
        let places: Vec<usize> = (0..rungs.len()).filter(|place| mask >> place & 1 == 1).collect();
        let values: Vec<f64> = places.iter().map(|place| rungs[*place].steps).collect();
        if values.windows(2).any(|pair| pair[1] - pair[0] < GAP) {
            continue;
        }
        let samples = places.iter().map(|place| rungs[*place].halves.len()).min().unwrap_or(0);
        let half = |half: usize| places.iter().map(|place| rungs[*place].halves[half]).collect::<Vec<f64>>();
        let straight = (0..samples).filter(|sample| FRESH <= straightness(&half(*sample))).count();
        all.push((straight as f64 / samples.max(1) as f64, values[stages - 1] - values[0], places));
    }
    let most = all.iter().map(|choice| choice.0).fold(0.0, f64::max);
    let alike = all.into_iter().filter(|choice| most - ALIKE < choice.0);
    alike.max_by(|one, other| one.1.total_cmp(&other.1))
}

fn choose(files: &[&str]) -> Result<()> {
    let mut all = String::new();
    for file in files {
        all += &std::fs::read_to_string(file).with_context(|| format!("{file} cannot be read"))?;
    }
    let pooled = std::env::temp_dir().join(format!("bem-ladder-{}.jsonl", std::process::id()));
    std::fs::write(&pooled, all)?;
    let known = said(&["--stages", "5"])?;
    let said =
        said(&["--stages", CANDIDATES, "--measured", pooled.to_str().context("a temporary name is text")?])?;
    std::fs::remove_file(&pooled)?;
    let mut text = String::from(
        "//! Rungs whose measured steps lie on a line, written by `cargo xtask ladder choose`. Do not edit. Clauses: GLE-5.\n\n\
         /// The chosen rungs of a family, from the easiest to the hardest; nothing where none were measured.\n\
         pub fn chosen(family: &str) -> &'static [&'static str] {\n    match family {\n",
    );
    for family in said["families"].as_array().context("there are families")? {
        let (name, rungs) = (family["family"].as_str().context("a family has a name")?, rungs(family)?);
        if UNMEASURED.contains(&name) {
            continue;
        }
        let tasks: Vec<&str> = match choice(&rungs) {
            Some((share, _, places)) => {
                let values: Vec<f64> = places.iter().map(|place| rungs[*place].steps).collect();
                let (count, fit) = (places.len(), straightness(&values));
                println!(
                    "{name}: {count} rungs, R^2 {fit:.3}, straight on {:.0} % of half-samples",
                    100.0 * share
                );
                places.iter().map(|place| rungs[*place].task).collect()
            }
            None => {
                println!("{name}: no choice among {} measured rungs, it keeps its own", rungs.len());
                let own =
                    known["families"].as_array().into_iter().flatten().find(|own| own["family"] == name);
                let own = own.and_then(|own| own["rungs"].as_array()).context("a family has rungs")?;
                own.iter().filter_map(|rung| rung["task"].as_str()).collect()
            }
        };
        writeln!(text, "        {name:?} => &[")?;
        for task in tasks {
            writeln!(text, "            {task:?},")?;
        }
        writeln!(text, "        ],")?;
    }
    text += "        _ => &[],\n    }\n}\n";
    std::fs::write(root().join("crates/bem-teacher/src/chosen.rs"), text)?;
    crate::run("cargo", &["fmt", "--all"])
}

/// Measures the chosen rungs with this many seeds from one that the commit names, and writes the page.
pub fn measure(seeds: u64, commit: &str, page: &Path) -> Result<()> {
    let digits: String = commit.chars().filter(char::is_ascii_hexdigit).take(7).collect();
    let first = 1_000 + u64::from_str_radix(&digits, 16)? % 1_000_000;
    let known = said(&["--stages", "5"])?;
    let names: Vec<&str> = known["families"]
        .as_array()
        .context("there are families")?
        .iter()
        .filter_map(|family| family["family"].as_str())
        .filter(|name| !UNMEASURED.contains(name))
        .collect();
    let (names, seeds, seed) = (names.join(","), seeds.to_string(), first.to_string());
    let words = ["--families", &names, "--stages", "5", "--measure", "--seeds", &seeds, "--seed", &seed];
    let measured = said(&words)?;
    let mut text = format!(
        "# How straight the ladder is\n\nWritten by `cargo xtask battery ladder` at commit {commit}: {seeds} seeds from {seed} on, which the commit\n\
         names and no choice of rungs has seen. Steps are medians to a score of 0.99; the line goes through their logarithms over\n\
         the stages. Not measured are {}.\n\n| family | median steps of every rung | R^2 | Spearman |\n|---|---|---|---|\n",
        UNMEASURED.join(" and ")
    );
    let (mut straight, mut ordered, mut count) = (0, 0, 0);
    for family in measured["families"].as_array().context("there are families")? {
        let rungs = rungs(family)?;
        let values: Vec<f64> = rungs.iter().map(|rung| rung.steps).collect();
        let (fit, order) = (straightness(&values), spearman(&values));
        let steps: Vec<String> = values.iter().map(|value| format!("{:.0}", value.exp2() - 1.0)).collect();
        let name = family["family"].as_str().unwrap_or_default();
        writeln!(text, "| {name} | {} | {fit:.3} | {order:.3} |", steps.join(", "))?;
        straight += usize::from(FRESH <= fit);
        ordered += usize::from(SPEARMAN <= order);
        count += 1;
    }
    writeln!(
        text,
        "\n{straight} of {count} families reach {FRESH} (asked: {FAMILIES} of all 27), {ordered} a rank correlation of {SPEARMAN}."
    )?;
    std::fs::write(page, &text)?;
    print!("{text}");
    ensure!(FAMILIES <= straight && ordered == count, "the ladder is not as straight as it should be");
    Ok(())
}

/// Spearman's rank correlation between stages and values; equal values share the mean of their ranks.
fn spearman(values: &[f64]) -> f64 {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        below + (equal - 1.0) / 2.0
    };
    let ranks: Vec<f64> = values.iter().map(rank).collect();
    let mean = (values.len() as f64 - 1.0) / 2.0;
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (stage, rank) in ranks.iter().enumerate() {
        let (x, y) = (stage as f64 - mean, rank - mean);
        (xy, xx, yy) = (xy + x * y, xx + x * x, yy + y * y);
    }
    if yy == 0.0 { 0.0 } else { xy / (xx * yy).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_straight_choice_is_taken_and_ties_share_their_ranks() {
        let rung = |steps| Rung { task: "t", steps, halves: vec![steps; 3] };
        let steps = [1.0, 1.1, 2.0, 3.9, 3.0, 4.0, 5.0];
        let rungs: Vec<Rung<'_>> = steps.into_iter().map(rung).collect();
        assert_eq!(choice(&rungs).map(|choice| choice.2), Some(vec![0, 2, 4, 5, 6]));
        assert!(choice(&rungs[..2]).is_none());
        // A rung whose runs are far apart is left out.
        let mut uncertain = rungs;
        uncertain[4].halves = vec![1.0, 3.0, 5.0];
        assert!(choice(&uncertain).is_some_and(|choice| !choice.2.contains(&4)));
        assert_eq!((halves(4).count(), halves(5).count(), halves(1).count()), (6, 10, 1));
        assert!(straightness(&[0.0, 1.0, 2.0]) > 0.999 && straightness(&[0.0, 5.0, 0.0]) < 0.001);
        assert!((spearman(&[1.0, 2.0, 3.0]) - 1.0).abs() < 1e-9 && spearman(&[3.0, 2.0, 1.0]) < -0.999);
        assert!((spearman(&[1.0, 1.0, 2.0]) - 0.866).abs() < 0.001);
    }
}
