//! The ladder by measured steps: which rungs lie on a line, and whether they still do on seeds that nobody has seen.
//!
//! `cargo xtask ladder choose FILE...` takes what `bem ladder --tried --measure --save FILE` wrote, pools the runs of every task,
//! and writes crates/bem-teacher/src/chosen.rs; families that are not in it keep their rungs. `cargo xtask battery ladder` measures
//! the chosen rungs with seeds that the commit names and writes docs/results/ladder.md. `cargo xtask ladder page` renews the two
//! tables of docs/ladder.md, which show the measurement that is shipped. Clauses: GLE-5.

use crate::{built_bem, output, root};
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Rungs of a ladder that is chosen, at most and at least.
const STAGES: [usize; 2] = [5, 4];
/// Runs that `bem ladder --measure` takes at once, at most.
const BLOCK: u64 = 10;
/// Families are measured by so many processes.
const PROCESSES: usize = 2;
/// Shares of half-samples that differ by less are alike: the wider choice is taken, and the longer one.
const ALIKE: f64 = 0.05;
/// Neighbours differ at least by this, in logarithms to the base 2.
const GAP: f64 = 0.25;
/// What the issue of fresh seeds must show: the share of the variance, the families that must reach it, and the correlation.
const FRESH: f64 = 0.95;
const FAMILIES: usize = 24;
const SPEARMAN: f64 = 0.9;
/// A family without steps to be counted: most of its rungs are open, and a run on one of them takes minutes.
const UNMEASURED: [&str; 1] = ["rulegrid"];
/// Why, as the page says it.
const UNMEASURED_WHY: &str = "with `resources` as a dial its runs are solved or not by luck, and no upper bound is known that shows \
     whether its open rungs can be learned (D-331, [decisions](../decisions.md))";

/// Runs the chore.
pub fn ladder(words: &[&str]) -> Result<()> {
    match words {
        ["choose", files @ ..] if !files.is_empty() => choose(files),
        ["page"] => page(&built_bem()?),
        _ => bail!(
            "cargo xtask ladder choose FILE..., with files that `bem ladder --tried --measure --save FILE` wrote, or \
             cargo xtask ladder page"
        ),
    }
}

/// The lines above the two tables of docs/ladder.md.
const OF_FAMILIES: &str = "| family | rungs | R^2 | easiest | hardest | levels | Spearman |";
const OF_RUNGS: &str = "| task | expected steps | measured: median | all runs |";

/// Renews the two tables of docs/ladder.md from what `bem ladder` shows of the measurement that is shipped.
fn page(program: &str) -> Result<()> {
    let path = root().join("docs/ladder.md");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let text = replaced(&text, OF_FAMILIES, &table_of_families(&said(program, &["--stages", "8"])?)?)?;
    let text = replaced(&text, OF_RUNGS, &table_of_rungs(&said(program, &[])?)?)?;
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}

/// A page with the rows of one of its tables replaced, which begins with these lines.
fn replaced(page: &str, head: &str, rows: &str) -> Result<String> {
    let begin = page.find(head).with_context(|| format!("docs/ladder.md has no table {head}"))?;
    let end = page[begin..].find("\n\n").map_or(page.len(), |length| begin + length + 1);
    let rule = format!("|{}", "---|".repeat(head.matches(" | ").count() + 1));
    Ok(format!("{}{head}\n{rule}\n{rows}{}", &page[..begin], &page[end..]))
}

/// A number with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if 0 < place && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The median steps of a rung.
fn median_of(rung: &Value) -> String {
    match rung["measured"].as_u64() {
        Some(steps) => grouped(steps),
        None if rung["runs"].is_null() => "-".to_string(),
        None => "unsolved".to_string(),
    }
}

fn table_of_families(families: &[Value]) -> Result<String> {
    let mut text = String::new();
    for family in families {
        let rungs = family["rungs"].as_array().context("a family has rungs")?;
        let (name, fit) = (name_of(family)?, family["r_squared"].as_f64().context("a family has a fit")?);
        let is_measured = rungs.iter().all(|rung| !rung["runs"].is_null());
        let ends = [rungs.first(), rungs.last()].map(|rung| match rung {
            Some(rung) if is_measured => median_of(rung),
            _ => "-".to_string(),
        });
        let levels = family["levels"].as_u64().map_or("-".to_string(), |levels| levels.to_string());
        let spearman = match family["spearman"].as_f64() {
            Some(spearman) => format!("{spearman:.3}"),
            None if is_measured => "flat".to_string(),
            None => "not measured".to_string(),
        };
        let [easiest, hardest] = ends;
        let count = rungs.len();
        writeln!(text, "| {name} | {count} | {fit:.3} | {easiest} | {hardest} | {levels} | {spearman} |")?;
    }
    Ok(text)
}

fn table_of_rungs(families: &[Value]) -> Result<String> {
    let mut text = String::new();
    for rung in families.iter().filter_map(|family| family["rungs"].as_array()).flatten() {
        let task = rung["task"].as_str().context("a rung has a task")?;
        let expected = rung["difficulty"].as_f64().context("a rung has a difficulty")?.exp2().round() as u64;
        let run = |run: &Value| run.as_u64().map_or("-".to_string(), |steps| steps.to_string());
        let runs: Vec<String> = rung["runs"].as_array().into_iter().flatten().map(run).collect();
        let runs = if runs.is_empty() { "-".to_string() } else { runs.join(", ") };
        writeln!(text, "| `{task}` | {} | {} | {runs} |", grouped(expected), median_of(rung))?;
    }
    Ok(text)
}

/// What `bem ladder` says of all families, as JSON.
fn said(program: &str, words: &[&str]) -> Result<Vec<Value>> {
    let said: Value = serde_json::from_str(&output(program, &[&["ladder", "--json"], words].concat())?)?;
    Ok(said["families"].as_array().context("there are families")?.clone())
}

/// The name of a family.
fn name_of(family: &Value) -> Result<&str> {
    family["family"].as_str().context("a family has a name")
}

/// The rungs of a family, as tasks.
fn tasks_of(family: &Value) -> Result<Vec<&str>> {
    let rungs = family["rungs"].as_array().context("a family has rungs")?;
    rungs.iter().map(|rung| rung["task"].as_str().context("a rung has a task")).collect()
}

/// Steps of all runs of every task.
type Runs = BTreeMap<String, Vec<u64>>;

/// The steps of some runs, where one that did not get there counts as its budget.
fn steps_of(runs: &Value, budget: &Value) -> Result<Vec<u64>> {
    let budget = budget.as_u64().context("a measurement has a budget")?;
    let runs = runs.as_array().context("a measurement has runs")?;
    Ok(runs.iter().map(|run| run.as_u64().unwrap_or(budget)).collect())
}

/// Adds what the lines of a file say, whose tasks are named as `bem ladder` names them: settings in the order of their names.
fn pool(text: &str, all: &mut Runs) -> Result<()> {
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let row: Value = serde_json::from_str(line).with_context(|| format!("{line} is no measurement"))?;
        let settings = row["params"].as_object().context("a measurement has settings")?;
        let settings: BTreeMap<&String, &str> =
            settings.iter().map(|(name, value)| (name, value.as_str().unwrap_or_default())).collect();
        let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut task = row["task"].as_str().context("a measurement has a task")?.to_string();
        if !settings.is_empty() {
            task += &format!("{{{}}}", settings.join(","));
        }
        all.entry(task).or_default().extend(steps_of(&row["steps_to_99"], &row["budget"])?);
    }
    Ok(())
}

/// A rung with the logarithm of its median steps, and of the medians of all halves of its runs.
struct Rung<'t> {
    task: &'t str,
    steps: f64,
    halves: Vec<f64>,
}

impl<'t> Rung<'t> {
    fn new(task: &'t str, runs: &[u64]) -> Result<Rung<'t>> {
        let half = |mask: u32| {
            let of = runs.iter().enumerate().filter(|(place, _)| mask >> place & 1 == 1);
            median(of.map(|(_, run)| *run).collect())
        };
        let halves = halves(runs.len()).map(half).collect::<Result<Vec<f64>>>()?;
        Ok(Rung { task, halves, steps: median(runs.to_vec())? })
    }
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

/// Rungs that are chosen: the share of half-samples by which they are straight, how wide they are, how straight by all runs, and
/// where they are.
type Choice = (f64, f64, f64, Vec<usize>);

/// The choice that is most often straight on half of the runs: what fresh seeds will say of it is as uncertain as that. None where
/// steps do not rise that often.
fn choice(rungs: &[Rung<'_>]) -> Option<Choice> {
    let found: Vec<Choice> = STAGES.iter().filter_map(|stages| best_choice(rungs, *stages)).collect();
    let most = found.iter().map(|choice| choice.0).fold(0.0, f64::max);
    found.into_iter().find(|choice| most - ALIKE < choice.0)
}

/// The choice of so many rungs that is most often straight; among those that are as good as alike the widest, and of these the
/// straightest by all runs.
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
        let (share, wide) = (straight as f64 / samples.max(1) as f64, values[stages - 1] - values[0]);
        all.push((share, wide, straightness(&values), places));
    }
    let most = all.iter().map(|choice| choice.0).fold(0.0, f64::max);
    let alike = all.into_iter().filter(|choice| most - ALIKE < choice.0);
    // The last of equals is what is found: backwards, that is the first.
    alike.rev().max_by(|one, other| one.1.total_cmp(&other.1).then(one.2.total_cmp(&other.2)))
}

fn choose(files: &[&str]) -> Result<()> {
    let mut runs = Runs::new();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| format!("{file} cannot be read"))?;
        pool(&text, &mut runs)?;
    }
    let program = crate::built_bem()?;
    let (known, tried) = (said(&program, &["--stages", "5"])?, said(&program, &["--tried"])?);
    let mut text = String::from(
        "//! Rungs whose measured steps lie on a line, written by `cargo xtask ladder choose`. Do not edit. Clauses: GLE-5.\n\n\
         /// The chosen rungs of a family, from the easiest to the hardest; nothing where none were measured.\n\
         pub fn chosen(family: &str) -> &'static [&'static str] {\n    match family {\n",
    );
    for (tried, own) in tried.iter().zip(&known) {
        let name = name_of(tried)?;
        if UNMEASURED.contains(&name) {
            continue;
        }
        let measured = tasks_of(tried)?.into_iter().filter_map(|task| Some((task, runs.get(task)?)));
        let rungs: Vec<Rung<'_>> =
            measured.map(|(task, runs)| Rung::new(task, runs)).collect::<Result<_>>()?;
        writeln!(text, "        {name:?} => &[")?;
        for task in chosen_of(name, &rungs, tasks_of(own)?) {
            writeln!(text, "            {task:?},")?;
        }
        writeln!(text, "        ],")?;
    }
    text += "        _ => &[],\n    }\n}\n";
    std::fs::write(root().join("crates/bem-teacher/src/chosen.rs"), text)?;
    crate::run("cargo", &["fmt", "--all"])
}

/// The tasks that are chosen among these rungs, or those that a family has: where nothing of it was measured, or nothing rises.
fn chosen_of<'t>(name: &str, rungs: &[Rung<'t>], own: Vec<&'t str>) -> Vec<&'t str> {
    let Some((share, _, fit, places)) = choice(rungs) else {
        println!("{name}: no choice among {} measured rungs, it keeps its own", rungs.len());
        return own;
    };
    let (count, share) = (places.len(), 100.0 * share);
    println!("{name}: {count} rungs, R^2 {fit:.3}, straight on {share:.0} % of half-samples");
    places.iter().map(|place| rungs[*place].task).collect()
}

/// Runs of the rungs of these families with so many seeds from this one on, in blocks as large as the program takes.
fn measured(program: &str, names: &[&str], seeds: u64, first: u64) -> Result<Runs> {
    let mut all = Runs::new();
    let names = names.join(",");
    for begun in (0..seeds).step_by(BLOCK as usize) {
        let (count, seed) = ((seeds - begun).min(BLOCK).to_string(), (first + begun).to_string());
        let words = ["--families", &names, "--stages", "5", "--measure", "--seeds", &count, "--seed", &seed];
        for family in said(program, &words)? {
            for rung in family["rungs"].as_array().context("a family has rungs")? {
                let task = rung["task"].as_str().context("a rung has a task")?;
                let steps = steps_of(&rung["runs"], &rung["budget"])?;
                all.entry(task.to_string()).or_default().extend(steps);
            }
        }
    }
    Ok(all)
}

/// Measures the chosen rungs with this many seeds from one that the commit names, and writes the page.
pub fn measure(seeds: u64, commit: &str, page: &Path) -> Result<()> {
    let digits: String = commit.chars().filter(char::is_ascii_hexdigit).take(7).collect();
    let first = 1_000 + u64::from_str_radix(&digits, 16)? % 1_000_000;
    let program = crate::built_bem()?;
    let known = said(&program, &["--stages", "5"])?;
    let names: Vec<&str> = known.iter().map(name_of).collect::<Result<_>>()?;
    let names: Vec<&str> = names.into_iter().filter(|name| !UNMEASURED.contains(name)).collect();
    let shares: Vec<Vec<&str>> =
        (0..PROCESSES).map(|share| names.iter().copied().skip(share).step_by(PROCESSES).collect()).collect();
    let runs = std::thread::scope(|scope| {
        let started: Vec<_> =
            shares.iter().map(|share| scope.spawn(|| measured(&program, share, seeds, first))).collect();
        let mut runs = Runs::new();
        for thread in started {
            runs.extend(thread.join().map_err(|_| anyhow!("a measurement broke off"))??);
        }
        Ok::<Runs, anyhow::Error>(runs)
    })?;
    let mut text = format!(
        "# How straight the ladder is\n\nWritten by `cargo xtask battery ladder` at commit {commit}: {seeds} seeds from {first} on, which the commit\n\
         names and no choice of rungs has seen. Steps are medians to a score of 0.99; the line goes through their logarithms over\n\
         the stages. nonstationary_bandit learns anew in every episode: its steps are the length of the first, after which it is judged,\n\
         so that its row is straight and ordered by construction and says nothing of learning.\n\n\
         | family | median steps of every rung | R^2 | Spearman |\n|---|---|---|---|\n"
    );
    let (mut straight, mut ordered) = (0, 0);
    for family in known.iter().filter(|family| name_of(family).is_ok_and(|name| names.contains(&name))) {
        let steps = tasks_of(family)?.into_iter().map(|task| runs.get(task).cloned().unwrap_or_default());
        let values: Vec<f64> = steps.map(median).collect::<Result<_>>()?;
        let (fit, order) = (straightness(&values), spearman(&values));
        let steps: Vec<String> = values.iter().map(|value| format!("{:.0}", value.exp2() - 1.0)).collect();
        writeln!(text, "| {} | {} | {fit:.3} | {order:.3} |", name_of(family)?, steps.join(", "))?;
        straight += usize::from(FRESH <= fit);
        ordered += usize::from(SPEARMAN <= order);
    }
    let said = verdict(straight, ordered, known.len());
    writeln!(text, "\n{said}")?;
    std::fs::write(page, &text)?;
    print!("{text}");
    // What is not measured cannot be reached by the learner: it is said, and does not fail the battery for ever.
    ensure!(
        FAMILIES <= straight && ordered == names.len(),
        "the ladder is not as straight as it should be: {said}"
    );
    Ok(())
}

/// What was found beside what is asked: of all families, those included that are not measured.
fn verdict(straight: usize, ordered: usize, all: usize) -> String {
    let missing = match UNMEASURED[..] {
        [] => String::new(),
        _ => format!("; {} is not measured: {UNMEASURED_WHY}", UNMEASURED.join(", ")),
    };
    format!(
        "R^2 of {FRESH}: {straight} of {all} families (asked: {FAMILIES}). Rank correlation of {SPEARMAN}: {ordered} of {all} (asked: all \
         {all}){missing}."
    )
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
        assert_eq!(choice(&rungs).map(|choice| choice.3), Some(vec![0, 2, 4, 5, 6]));
        assert!(choice(&rungs[..2]).is_none());
        // A rung whose runs are far apart is left out.
        let mut uncertain = rungs;
        uncertain[4].halves = vec![1.0, 3.0, 5.0];
        assert!(choice(&uncertain).is_some_and(|choice| !choice.3.contains(&4)));
        assert_eq!((halves(4).count(), halves(5).count(), halves(1).count()), (6, 10, 1));
        assert!(straightness(&[0.0, 1.0, 2.0]) > 0.999 && straightness(&[0.0, 5.0, 0.0]) < 0.001);
        assert!((spearman(&[1.0, 2.0, 3.0]) - 1.0).abs() < 1e-9 && spearman(&[3.0, 2.0, 1.0]) < -0.999);
        assert!((spearman(&[1.0, 1.0, 2.0]) - 0.866).abs() < 0.001);
    }

    #[test]
    fn the_verdict_counts_all_families_and_names_those_that_are_not_measured() {
        let said = verdict(25, 26, 27);
        assert!(said.contains("25 of 27 families (asked: 24)"), "{said}");
        assert!(
            said.contains("26 of 27 (asked: all 27); rulegrid is not measured: ") && said.contains("D-331"),
            "{said}"
        );
    }

    #[test]
    fn runs_of_a_task_are_pooled_over_files() {
        let line = |settings: &str, steps: &str| {
            format!(r#"{{"budget":90,"task":"add","params":{{{settings}}},"steps_to_99":[{steps}]}}"#)
        };
        let mut runs = Runs::new();
        let two = [line(r#""form":"word","bits":"2""#, "5,null"), line("", "7")].join("\n");
        pool(&two, &mut runs).unwrap();
        pool(&line(r#""bits":"2","form":"word""#, "6"), &mut runs).unwrap();
        assert_eq!((&runs["add{bits=2,form=word}"], &runs["add"]), (&vec![5, 90, 6], &vec![7]));
        assert!(pool("oops", &mut runs).is_err());
    }
}
