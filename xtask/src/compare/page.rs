//! What two builds left behind, judged and written down: docs/results/one-machine.md has the table of floors,
//! docs/results/one-machine-runs.md the runs and the instructions of a step.

use super::rank::{Steps, median, slower_by_chance};
use super::{RUN_STAGES, kept};
use crate::root;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The geometric mean of the rows' ratios at most.
const MEAN_MAX: f64 = 1.15;
/// The ratio of a row's medians at most, unless chance explains it.
const ROW_MAX: f64 = 1.5;
/// Chance explains what comes more often than this.
const LEVEL: f64 = 0.01;
/// Instructions of a step, new by old, at most.
const INSTRUCTIONS_MAX: f64 = 1.05;
/// Rows whose first arrival is luck: they count from where they stay.
const LOTTERIES: [&str; 2] = ["bandit", "auction"];

/// The text so far, and what does not hold.
#[derive(Default)]
struct Page {
    text: String,
    broken: Vec<String>,
}

/// Writes a page for each part that both builds have played, and fails where a criterion does not hold; the page says so too.
pub fn write(old: &Path, new: &Path) -> Result<()> {
    let has_tables = !kept(old, "table-")?.is_empty() && !kept(new, "table-")?.is_empty();
    let mut broken = Vec::new();
    if has_tables {
        let mut page = Page::begin("One machine: before and after", old, new)?;
        tables(&mut page, old, new)?;
        broken.append(&mut page.save("one-machine.md")?);
    }
    let mut page = Page::begin("One machine: runs and instructions, before and after", old, new)?;
    let start = page.text.len();
    runs(&mut page, old, new)?;
    instructions(&mut page, old, new)?;
    if start < page.text.len() {
        broken.append(&mut page.save("one-machine-runs.md")?);
    }
    match broken.is_empty() {
        true => Ok(()),
        false => bail!("{}", broken.join("\n")),
    }
}

impl Page {
    /// The head: which builds were compared.
    fn begin(title: &str, old: &Path, new: &Path) -> Result<Page> {
        let commit = |folder: &Path| -> Result<String> {
            let text = std::fs::read_to_string(folder.join("commit"));
            Ok(text.with_context(|| format!("{} was not measured", folder.display()))?.trim().to_string())
        };
        let mut page = Page::default();
        let text = &mut page.text;
        writeln!(text, "# {title}\n")?;
        writeln!(
            text,
            "Written by `cargo xtask compare page` from what `cargo xtask compare measure` found with the builds"
        )?;
        writeln!(text, "{} (two brains) and {} (one machine). Do not edit.", commit(old)?, commit(new)?)?;
        Ok(page)
    }

    /// Writes the page and says what does not hold.
    fn save(self, name: &str) -> Result<Vec<String>> {
        let path = root().join("docs/results").join(name);
        std::fs::write(&path, &self.text)?;
        println!("{}", path.display());
        Ok(self.broken)
    }
}

/// Steps to 0.99 of every row, over the seeds that are there: the first arrival, or with `is_lasting` from where lotteries stay.
/// Builds that knew one definition only meant the first arrival.
fn rows(folder: &Path, seeds: &[u64], is_lasting: bool) -> Result<BTreeMap<String, Steps>> {
    let mut rows: BTreeMap<String, Steps> = BTreeMap::new();
    for (seed, table) in kept(folder, "table-")? {
        if !seeds.contains(&seed) {
            continue;
        }
        for row in table["rows"].as_array().context("a table has rows")? {
            let task = row["task"].as_str().context("a row has a task")?;
            let family = task.split(' ').next().unwrap_or_default();
            let is_first =
                !(is_lasting && LOTTERIES.contains(&family)) && row["steps_to_99_first"].is_array();
            let key = if is_first { "steps_to_99_first" } else { "steps_to_99" };
            let steps = row[key].as_array().with_context(|| format!("{task} has no {key}"))?;
            rows.entry(task.to_string()).or_default().extend(steps.iter().map(Value::as_u64));
        }
    }
    Ok(rows)
}

/// Whether a folder's tables tell the first arrival from the one that lasts.
fn knows_lasting(folder: &Path) -> Result<bool> {
    let tables = kept(folder, "table-")?;
    Ok(tables.iter().all(|(_, table)| table["rows"][0]["steps_to_99_first"].is_array()))
}

fn tables(page: &mut Page, old: &Path, new: &Path) -> Result<()> {
    let numbers = |folder: &Path| -> Result<Vec<u64>> {
        Ok(kept(folder, "table-")?.into_iter().map(|(seed, _)| seed).collect())
    };
    let known = numbers(new)?;
    let seeds: Vec<u64> = numbers(old)?.into_iter().filter(|seed| known.contains(seed)).collect();
    ensure!(!seeds.is_empty(), "no seed was played by both builds");
    let is_lasting = knows_lasting(old)? && knows_lasting(new)?;
    let (before, after) = (rows(old, &seeds, is_lasting)?, rows(new, &seeds, is_lasting)?);
    let (mut logs, mut unsolved) = (Vec::new(), (0, 0));
    let mut lines = String::new();
    for (task, one) in &before {
        let other = after.get(task).with_context(|| format!("{task} is missing in the new build"))?;
        let (was, is) = (median(one), median(other));
        let ratio = is / was;
        let chance = slower_by_chance(one, other);
        unsolved.0 += one.iter().filter(|steps| steps.is_none()).count();
        unsolved.1 += other.iter().filter(|steps| steps.is_none()).count();
        if ROW_MAX < ratio && chance < LEVEL {
            page.broken.push(format!("{task}: {ratio:.2} times the steps, p {chance:.4}"));
        }
        logs.push(ratio.ln());
        writeln!(lines, "| {task} | {was} | {is} | {ratio:.2} | {chance:.3} |")?;
    }
    let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    if mean.is_nan() || MEAN_MAX < mean {
        page.broken.push(format!("geometric mean {mean:.3}, above {MEAN_MAX}"));
    }
    let text = &mut page.text;
    writeln!(text, "\n## Steps to 0.99\n")?;
    writeln!(
        text,
        "`bem table --seeds 1 --first-seed S`, S from {} to {}, {} runs of every row; the first evaluation at 0.99{}.",
        seeds[0],
        seeds[seeds.len() - 1],
        seeds.len(),
        if is_lasting { ", and for bandit and auction the first from which on none was lower" } else { "" }
    )?;
    writeln!(
        text,
        "A row of bandit or auction may get there by luck. p is the chance of ranks that speak as much for the"
    )?;
    writeln!(
        text,
        "new build being slower if both are alike (Mann and Whitney, one-sided). Without 0.99: {} runs before, {} now.\n",
        unsolved.0, unsolved.1
    )?;
    writeln!(
        text,
        "**Geometric mean of the ratios of medians: {mean:.3}** (at most {MEAN_MAX}); a row fails above {ROW_MAX} with p below {LEVEL}.\n"
    )?;
    writeln!(text, "| task | median before | median now | ratio | p |\n|---|---|---|---|---|")?;
    text.push_str(&lines);
    Ok(())
}

/// Rungs of every family that a run has solved.
fn rungs(report: &Value) -> Result<BTreeMap<String, u64>> {
    let families = report["families"].as_array().context("a run has families")?;
    let rungs = |one: &Value| Some((one["family"].as_str()?.to_string(), one["rungs_solved"].as_u64()?));
    families.iter().map(|one| rungs(one).context("a family has rungs")).collect()
}

fn runs(page: &mut Page, old: &Path, new: &Path) -> Result<()> {
    let mut lines = String::new();
    for entry in std::fs::read_dir(old)? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        let Some(steps) = name.strip_prefix("run-").and_then(|rest| rest.strip_suffix("-1.json")) else {
            continue;
        };
        let start = format!("run-{steps}-");
        let after: BTreeMap<u64, Value> = kept(new, &start)?.into_iter().collect();
        for (seed, before) in kept(old, &start)? {
            let Some(after) = after.get(&seed) else { continue };
            let (was, is) = (rungs(&before)?, rungs(after)?);
            let (sum, now) = (was.values().sum::<u64>(), is.values().sum::<u64>());
            let differ: Vec<String> = was
                .iter()
                .filter(|(family, rungs)| is.get(*family) != Some(rungs))
                .map(|(family, rungs)| format!("{family} {rungs} to {}", is.get(family).unwrap_or(&0)))
                .collect();
            if now < sum {
                page.broken.push(format!("default run, seed {seed}: {now} rungs, {sum} before"));
            }
            let count = |name: &str| after[name].as_u64().with_context(|| format!("a run says {name}"));
            let (all, own) = (count("steps")?, count("steps_by_machine")?);
            let (changes, patched) = (count("acting_changes")?, count("acting_changes_patched")?);
            if all != own || changes != patched {
                page.broken.push(format!(
                    "default run, seed {seed}: {own} of {all} steps, {patched} of {changes} changes"
                ));
            }
            writeln!(
                lines,
                "| {steps} | {seed} | {sum} | {now} | {} | {own} of {all} | {patched} of {changes} |",
                differ.join(", ")
            )?;
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let text = &mut page.text;
    writeln!(
        text,
        "\n## All families at equal steps\n\n`bem run --steps N --seed S --stages {RUN_STAGES}`: the ladder of that"
    )?;
    writeln!(text, "many stages has the same rungs in both builds.\n")?;
    writeln!(
        text,
        "| steps | seed | rungs before | rungs now | families that differ | steps that the machine chose | changes of what acts with a patch |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|")?;
    text.push_str(&lines);
    Ok(())
}

fn instructions(page: &mut Page, old: &Path, new: &Path) -> Result<()> {
    let read = |folder: &Path| -> Result<Option<Value>> {
        let path = folder.join("count.json");
        match path.exists() {
            true => Ok(Some(serde_json::from_str(&std::fs::read_to_string(path)?)?)),
            false => Ok(None),
        }
    };
    let (Some(before), Some(after)) = (read(old)?, read(new)?) else { return Ok(()) };
    let text = &mut page.text;
    writeln!(
        text,
        "\n## Instructions of a step\n\nCounted by callgrind with the same example program of bem-machine, `step_count`; a step of"
    )?;
    writeln!(text, "256 lanes is one. At most {INSTRUCTIONS_MAX} times as many.\n")?;
    writeln!(text, "| step | before | now | ratio |\n|---|---|---|---|")?;
    for name in ["step_single", "step_batched", "step_batched_few_buckets"] {
        let number = |value: &Value| value[name].as_f64().with_context(|| format!("no count of {name}"));
        let (was, is) = (number(&before)?, number(&after)?);
        if was * INSTRUCTIONS_MAX < is {
            page.broken.push(format!("{name}: {:.3} times the instructions", is / was));
        }
        writeln!(text, "| `{name}` | {was:.1} | {is:.1} | {:.3} |", is / was)?;
    }
    Ok(())
}
