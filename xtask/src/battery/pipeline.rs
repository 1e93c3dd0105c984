//! The pipeline at length: transfer to twice the size, distillation beside its ablations, Ray with a node that is lost.

use super::{Draw, commit, results};
use crate::{built_bem, output, run, target};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Ten families at twice the size, five seeds for every unit of scale.
pub fn transfer(scale: u64) -> Result<()> {
    let seeds = format!("BEM_TRANSFER_SEEDS={}", 5 * scale);
    let test =
        ["cargo", "test", "--release", "--package", "bem-engine", "--test", "transfer", "--", "--nocapture"];
    run("env", &[&[seeds.as_str()][..], &test[..]].concat())
}

/// Seeds for every unit of scale.
const SEEDS: u64 = 3;
/// Samples of a bootstrap.
const SAMPLES: usize = 2_000;
/// What of the page is written by other hands begins here.
const OTHERS: &str = "## Transfer to twice the size";
/// The pipeline as it is, and its ablations. From scratch is learned once: it is the same for all three.
const WAYS: [(&str, &[&str]); 3] =
    [("whole", &["--compare"]), ("unmasked", &["--no-masking"]), ("alone", &["--no-distillation"])];

/// Seven domains and a late one, as it is and without masking and without distillation; every line that is asked for is judged, and
/// the page is written before anything fails. `BEM_PIPELINE_PLAN` has words for another plan, separated by spaces.
pub fn pipeline(scale: u64) -> Result<()> {
    let (bem, commit) = (built_bem()?, commit()?);
    let said = std::env::var("BEM_PIPELINE_PLAN").unwrap_or_default();
    let plan: Vec<&str> = said.split_whitespace().collect();
    let name = format!("pipeline {commit} {}", plan.join(" "));
    let folder = target().join("battery").join(name.trim().replace([' ', ','], "-"));
    std::fs::create_dir_all(&folder)?;
    let mut runs: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for seed in 1..=SEEDS * scale {
        for (way, words) in WAYS {
            let out = folder.join(format!("{way}-{seed}"));
            let said = one_run(&bem, &out, seed, &[&plan[..], words].concat())?;
            println!("{way}, seed {seed}: done");
            runs.entry(way).or_default().push(said);
        }
    }
    let (text, missed) = page(&commit, &plan, &runs)?;
    let path = results("pipeline.md")?;
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let others = before.find(OTHERS).map_or("", |place| &before[place..]);
    std::fs::write(&path, format!("{text}\n{others}"))?;
    print!("{text}");
    ensure!(missed.is_empty(), "not reached: {}", missed.join("; "));
    Ok(())
}

/// What a run says: one that is over is read, one that was cut off goes on.
fn one_run(bem: &str, out: &Path, seed: u64, words: &[&str]) -> Result<Value> {
    let report = out.join("pipeline.json");
    let read = || -> Option<Value> { serde_json::from_str(&std::fs::read_to_string(&report).ok()?).ok() };
    if let Some(said) = read().filter(|said| said["judged"] == true && said["finished"] == true) {
        return Ok(said);
    }
    let (out, seed) = (out.display().to_string(), seed.to_string());
    let words = match Path::new(&out).join("plan.json").exists() {
        true => vec!["pipeline", "run", "--json", "--resume", &out],
        false => [&["pipeline", "run", "--json", "--seed", &seed, "--out", &out], words].concat(),
    };
    let said: Value = serde_json::from_str(&output(bem, &words)?).context("one JSON object")?;
    ensure!(said["finished"] == true, "{out} was cut off");
    Ok(said)
}

/// A setting of a run.
struct Setting<'r> {
    seed: u64,
    row: &'r Value,
    /// Steps that all tries at it may take.
    steps_max: Option<f64>,
}

fn settings<'r>(runs: &'r [Value]) -> Vec<Setting<'r>> {
    let of = |run: &'r Value| {
        let seed = run["seed"].as_u64().unwrap_or(0);
        let rows = run["settings"].as_array().into_iter().flatten();
        let steps_max = run["setting_steps_max"].as_f64();
        rows.map(move |row| Setting { seed, row, steps_max }).collect::<Vec<_>>()
    };
    runs.iter().flat_map(of).collect()
}

impl Setting<'_> {
    fn key(&self) -> (u64, String) {
        (self.seed, self.row["task"].as_str().unwrap_or_default().to_string())
    }

    fn is_unseen(&self) -> bool {
        self.row["unseen"] == true
    }

    /// Steps until 0.99, or all where it was not reached; all that may be taken where nobody has tried it.
    fn steps(&self, who: &str) -> Option<f64> {
        let reached = &self.row[format!("{who}_steps_to_99")];
        reached.as_f64().or_else(|| self.row[format!("{who}_steps")].as_f64()).or(self.steps_max)
    }
}

/// A page under way: its lines, and what was asked and not reached.
#[derive(Default)]
struct Verdicts {
    lines: String,
    missed: Vec<String>,
}

impl Verdicts {
    fn say(&mut self, asked: &str, found: &str, is_reached: bool) {
        let verdict = if is_reached { "reached" } else { "**not reached**" };
        self.lines.push_str(&format!("| {asked} | {found} | {verdict} |\n"));
        if !is_reached {
            self.missed.push(asked.to_string());
        }
    }
}

fn page(commit: &str, plan: &[&str], runs: &BTreeMap<&str, Vec<Value>>) -> Result<(String, Vec<String>)> {
    let whole = &runs["whole"];
    let rows = settings(whole);
    ensure!(!rows.is_empty(), "a pipeline without settings");
    let mut verdicts = Verdicts::default();
    judge_shares(&mut verdicts, &rows);
    judge_steps(&mut verdicts, &rows);
    let count = |run: &Value, name: &str| run[name].as_u64().unwrap_or(0);
    let pools: Vec<String> = whole
        .iter()
        .map(|run| {
            let [own, circuits, machines] =
                ["experts", "specialists_experts", "specialists_machines"].map(|name| count(run, name));
            let taught = count(run, "experts_where_taught");
            format!(
                "{own} for {machines} machines, which act as {circuits} circuits; on settings of specialists {taught} of {own}"
            )
        })
        .collect();
    // Experts of the pool are machines, rules and agents, and so is what is counted of the specialists.
    let is_smaller = whole.iter().all(|run| count(run, "experts") < count(run, "specialists_machines"));
    verdicts.say("a pool smaller than the specialists' together, every seed", &pools.join(", "), is_smaller);
    judge_kept(&mut verdicts, whole, &rows);
    let is_late = |setting: &&Setting<'_>| {
        let run = whole.iter().find(|run| run["seed"].as_u64() == Some(setting.seed));
        let late = run.and_then(|run| run["late"].as_array());
        late.is_some_and(|late| late.contains(&setting.row["domain"]))
    };
    let late: Vec<f64> = rows.iter().filter(is_late).map(share).collect();
    let least = late.iter().copied().fold(f64::INFINITY, f64::min);
    verdicts.say(
        "a late domain is learned: 0.99 of its specialist",
        &format!("{least:.3} at least, {} settings", late.len()),
        0.99 <= least && least.is_finite(),
    );
    let sum = |name: &str| whole.iter().map(|run| count(run, name)).sum::<u64>();
    let mut text = format!(
        "# What the pipeline has reached\n\nWritten by `cargo xtask battery pipeline`, commit {commit}: `bem pipeline run {}--compare`, \
         {} seeds, {} settings, of which {} were seen by no specialist.\nWhat is kept is what the expert earns that the pool routes a setting \
         to, on seeds that nobody has seen, against the specialist in the same episodes;\na setting without an expert earns nothing. For unseen \
         settings the learner from scratch stands in for the specialist. Steps are those until\nthe score was 0.99, tries that failed included, \
         and all steps where it was not reached. Intervals are 95 %, by drawing settings again.\n\n| what was asked | measured | |\n|---|---|---|\n",
        plan.iter().map(|word| format!("{word} ")).collect::<String>(),
        whole.len(),
        rows.len(),
        rows.iter().filter(|row| row.is_unseen()).count(),
    );
    text.push_str(&verdicts.lines);
    writeln!(
        text,
        "\nOf these settings an expert acts under other names than its own in {}, and {} have an expert although their lesson failed.",
        sum("renamed"),
        sum("without_lesson")
    )?;
    write_ablations(&mut text, &rows, runs)?;
    write_rows(&mut text, &rows)?;
    Ok((text, verdicts.missed))
}

/// The share of its specialist's score that a setting keeps; nothing where there is nobody to compare with and no expert.
fn share(setting: &Setting<'_>) -> f64 {
    setting.row["share"].as_f64().or_else(|| setting.row["main"].as_f64()).unwrap_or(0.0)
}

fn judge_shares(verdicts: &mut Verdicts, rows: &[Setting<'_>]) {
    for (is_unseen, words) in [(false, "settings of specialists"), (true, "unseen settings")] {
        let shares: Vec<f64> = rows.iter().filter(|row| row.is_unseen() == is_unseen).map(share).collect();
        let enough = shares.iter().filter(|share| 0.99 <= **share).count();
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let (mean, low, high) = interval(&shares, |drawn| drawn.iter().sum::<f64>() / drawn.len() as f64);
        verdicts.say(
            &format!("the main machine keeps at least 0.99 of each specialist's score, {words}"),
            &format!(
                "{enough} of {} do, {least:.3} at least; mean {mean:.3} ({low:.3} to {high:.3})",
                shares.len()
            ),
            enough == shares.len(),
        );
    }
}

/// What every setting keeps of what it had when mixed learning first began with it, both on the same fresh seeds; a setting whose
/// expert came later is not held against anything. What the pipeline itself holds while it goes on is said beside it.
fn judge_kept(verdicts: &mut Verdicts, whole: &[Value], rows: &[Setting<'_>]) {
    let kept = |setting: &Setting<'_>| {
        let (had, has) = (setting.row["had"].as_f64()?, setting.row["main"].as_f64().unwrap_or(0.0));
        (0.0 < had).then(|| has / had)
    };
    let shares: Vec<f64> = rows.iter().filter_map(kept).collect();
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let within = whole.iter().filter_map(|run| run["kept_least"].as_f64()).fold(f64::INFINITY, f64::min);
    verdicts.say(
        "from the first mixed learning on no domain falls below 0.98 of what it had, while a late domain comes in too",
        &format!(
            "{least:.3} at least on fresh seeds, {} settings; {within:.3} after any round, on the seeds that experts are chosen by",
            shares.len()
        ),
        0.98 <= least && least.is_finite() && 0.98 <= within,
    );
}

fn judge_steps(verdicts: &mut Verdicts, rows: &[Setting<'_>]) {
    type Wanted = fn(&Setting<'_>) -> bool;
    let all: [(&str, Wanted); 3] = [
        ("all settings", |_| true),
        ("settings of specialists", |row| !row.is_unseen()),
        ("unseen settings", |row| row.is_unseen()),
    ];
    for (words, is_wanted) in all {
        let own = rows.iter().filter(|row| is_wanted(row));
        let pairs: Vec<(f64, f64)> =
            own.filter_map(|row| Some((row.steps("main")?, row.steps("scratch")?))).collect();
        let (found, low, high) = interval(&pairs, ratio);
        verdicts.say(
            &format!("at most 0.25 of the steps from scratch, {words}"),
            &format!(
                "{found:.3} ({low:.3} to {high:.3}) over {} pairs; median of pairs {:.3}",
                pairs.len(),
                median(&pairs)
            ),
            found <= 0.25,
        );
    }
}

fn ratio(pairs: &[(f64, f64)]) -> f64 {
    let (one, other) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    one / other
}

fn median(pairs: &[(f64, f64)]) -> f64 {
    let mut ratios: Vec<f64> = pairs.iter().map(|(one, other)| one / other.max(1.0)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A figure with its interval: the middle 95 % of what it is for as many that are drawn again.
fn interval<T: Copy>(all: &[T], figure: impl Fn(&[T]) -> f64) -> (f64, f64, f64) {
    if all.is_empty() {
        return (f64::NAN, f64::NAN, f64::NAN);
    }
    let mut draw = Draw::new();
    let mut sample = || {
        let drawn: Vec<T> = all.iter().map(|_| all[draw.below(all.len() as u64) as usize]).collect();
        figure(&drawn)
    };
    let mut figures: Vec<f64> = (0..SAMPLES).map(|_| sample()).collect();
    figures.sort_unstable_by(f64::total_cmp);
    (figure(all), figures[SAMPLES / 40], figures[SAMPLES - 1 - SAMPLES / 40])
}

/// Each ablation against the whole, setting by setting.
fn write_ablations(
    text: &mut String,
    whole: &[Setting<'_>],
    runs: &BTreeMap<&str, Vec<Value>>,
) -> Result<()> {
    writeln!(
        text,
        "\n## Ablations\n\nSteps are those without it for one with it, setting by setting; what is kept is held against the same specialists.\n\n\
         | without | steps, all settings | settings of specialists | unseen | settings with 0.99 kept: without, with | experts: without, with |\n\
         |---|---|---|---|---|---|"
    )?;
    let known: BTreeMap<(u64, String), &Setting<'_>> = whole.iter().map(|row| (row.key(), row)).collect();
    let sum = |way: &str| runs[way].iter().filter_map(|run| run["experts"].as_u64()).sum::<u64>();
    for (way, words) in [("unmasked", "masking"), ("alone", "distillation")] {
        let rows = settings(&runs[way]);
        let pairs: Vec<(&Setting<'_>, &Setting<'_>)> =
            rows.iter().filter_map(|row| Some((row, *known.get(&row.key())?))).collect();
        let steps = |is_wanted: &dyn Fn(&Setting<'_>) -> bool| {
            let own = pairs.iter().filter(|(_, whole)| is_wanted(whole));
            let pairs: Vec<(f64, f64)> = own
                .filter_map(|(without, with)| Some((without.steps("main")?, with.steps("main")?)))
                .collect();
            let (found, low, high) = interval(&pairs, ratio);
            format!("{found:.2} ({low:.2} to {high:.2})")
        };
        let is_kept = |row: &Setting<'_>, whole: &Setting<'_>| {
            let had = whole.row["specialist"].as_f64().unwrap_or(1.0);
            row.row["main"].as_f64().is_some_and(|main| 0.99 * had <= main)
        };
        let without = pairs.iter().filter(|(row, whole)| is_kept(row, whole)).count();
        let with = pairs.iter().filter(|(_, whole)| is_kept(whole, whole)).count();
        writeln!(
            text,
            "| {words} | {} | {} | {} | {without}, {with} of {} | {}, {} |",
            steps(&|_| true),
            steps(&|row| !row.is_unseen()),
            steps(&|row: &Setting<'_>| row.is_unseen()),
            pairs.len(),
            sum(way),
            sum("whole"),
        )?;
    }
    Ok(())
}

/// Every setting: the worst seed of what is kept, the sums of steps.
fn write_rows(text: &mut String, rows: &[Setting<'_>]) -> Result<()> {
    writeln!(
        text,
        "\n## Settings\n\nA star marks what no specialist has seen; scores are those of the worst seed, steps the sums over seeds.\n\n\
         | setting | seeds | specialist | main | lesson | steps | from scratch |\n|---|---|---|---|---|---|---|"
    )?;
    let mut tasks: Vec<&str> = Vec::new();
    for row in rows {
        let task = row.row["task"].as_str().unwrap_or_default();
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    for task in tasks {
        let own: Vec<&Setting<'_>> = rows.iter().filter(|row| row.row["task"] == task).collect();
        let Some(worst) = own.iter().min_by(|one, other| share(one).total_cmp(&share(other))) else {
            continue;
        };
        let score =
            |name: &str| worst.row[name].as_f64().map_or("-".to_string(), |score| format!("{score:.3}"));
        let steps = |who: &str| own.iter().filter_map(|row| row.steps(who)).sum::<f64>();
        writeln!(
            text,
            "| {}`{task}` | {} | {} | {} | {} | {} | {} |",
            if worst.is_unseen() { "* " } else { "" },
            own.len(),
            score("specialist"),
            score("main"),
            score("lesson"),
            steps("main"),
            steps("scratch"),
        )?;
    }
    Ok(())
}

/// Two raylets on this machine, one of which is removed in the middle: the head is that of threads. The environment that
/// `BEM_PYTHON` names must have the packages bem and ray.
pub fn ray(_: u64) -> Result<()> {
    let python = std::env::var("BEM_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let bem = built_bem()?;
    run(&python, &["bench/ray_lost_node.py", "--bem", &bem])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(task: &str, unseen: bool, main: f64, steps: [Option<u64>; 2]) -> Value {
        json!({ "domain": "games", "task": task, "unseen": unseen, "specialist": 1.0, "main": main, "share": main, "lesson": 1.0,
            "had": 1.0, "main_steps": 900, "main_steps_to_99": steps[0], "scratch_steps": 1_000, "scratch_steps_to_99": steps[1] })
    }

    fn runs(main: f64, experts: u64) -> BTreeMap<&'static str, Vec<Value>> {
        let run = |seed: u64| {
            json!({ "seed": seed, "late": ["games"], "experts": experts, "experts_where_taught": 1, "renamed": 3,
                "without_lesson": 2, "specialists_experts": 4, "specialists_machines": 3, "setting_steps_max": 5_000,
                "kept_least": 1.0, "settings": [
                    row("a", false, 1.0, [Some(100), Some(1_000)]), row("b", true, main, [Some(100), Some(1_000)])] })
        };
        ["whole", "unmasked", "alone"].map(|way| (way, vec![run(1), run(2)])).into()
    }

    #[test]
    fn every_asked_line_has_a_verdict_and_what_is_missed_is_named() {
        let (text, missed) = page("abc", &[], &runs(1.0, 2)).unwrap();
        assert!(missed.is_empty(), "{missed:?}");
        assert_eq!(text.matches("| reached |").count(), 8, "{text}");
        assert!(
            text.contains("2 for 3 machines, which act as 4 circuits; on settings of specialists 1 of 2")
        );
        assert!(text.contains("other names than its own in 6, and 4 have an expert"), "{text}");
        assert!(text.contains("| masking | 1.00 (1.00 to 1.00)") && text.contains("| distillation |"));
        // A lesson that went well is nothing where the pool has no expert; a pool as large is not smaller.
        let (text, missed) = page("abc", &[], &runs(0.0, 3)).unwrap();
        assert_eq!(missed.len(), 4, "{missed:?}");
        assert!(
            text.contains("0.000 at least on fresh seeds") && text.contains("3 for 3 machines"),
            "{text}"
        );
        assert!(text.contains("0 of 2 do, 0.000 at least"), "{text}");
    }

    #[test]
    fn what_was_not_reached_counts_with_all_its_steps() {
        let rows = [row("a", false, 1.0, [None, Some(500)]), row("a", false, 1.0, [Some(10), None])];
        let steps = |row: &Value| {
            let setting = Setting { seed: 1, row, steps_max: Some(5_000.0) };
            (setting.steps("main").unwrap(), setting.steps("scratch").unwrap())
        };
        assert_eq!(rows.iter().map(steps).collect::<Vec<_>>(), [(900.0, 500.0), (10.0, 1_000.0)]);
        // What nobody has tried counts with all that may be taken.
        let untried = json!({ "task": "a" });
        assert_eq!(Setting { seed: 1, row: &untried, steps_max: Some(5_000.0) }.steps("main"), Some(5_000.0));
        let (found, low, high) = interval(&[(1.0, 4.0), (1.0, 2.0)], ratio);
        assert!(low <= found && found <= high && low == 0.25 && high == 0.5);
    }
}
