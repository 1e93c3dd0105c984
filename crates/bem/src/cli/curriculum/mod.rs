//! `bem curriculum`: the phased commitment protocol as commands. Clauses: CUR-4 to CUR-8, CUR-10.
//!
//! Exit codes of `run`: 0 pass, 1 fail, 2 bad input, 3 commitment not elicited, 4 gate miscalibrated, 5 a starved
//! control did not abort, 6 the pilot says nothing. Ctrl-C ends every command after the seed under way: what there is
//! is judged, written and shown, and the code is 1, because fewer seeds than asked for are no pass.

mod manifest;
mod render;
mod report;

use super::Answer;
use crate::interrupt;
use anyhow::{Context, bail};
use bem_curriculum::agent::AgentConfig;
use bem_curriculum::experiment::{
    self, Arm, Criterion, Outcome, PilotResult, SEEDS_MIN, SeedResult, Trained,
};
use bem_curriculum::fraction::to_milli;
use bem_curriculum::protocol::{ProtocolConfig, Run, WarmupEnd};
use bem_games::rulegrid::config::GridConfig;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The phased commitment protocol: learn to commit on an easy grid, ratchet up, evaluate against controls.
#[derive(Args)]
#[command(after_help = "Example: bem curriculum run --seeds 42,43,44 --out commitment\n\
    Example: bem curriculum render --seed 42\n\n\
    Ctrl-C ends after the seed under way, keeps what there is and exits with code 1.")]
pub struct CurriculumArguments {
    #[command(subcommand)]
    command: CurriculumCommand,
}

#[derive(Subcommand)]
enum CurriculumCommand {
    /// The whole experiment: phases, arms, starved controls, pilot, five criteria.
    #[command(after_help = "Example: bem curriculum run --seeds 42,43,44 --out commitment")]
    Run(RunArguments),
    /// Only the starved controls: each must abort.
    #[command(after_help = "Example: bem curriculum starve --seeds 42,43,44")]
    Starve(SeedArguments),
    /// Only the delayed-reward pilot on trained agents.
    #[command(after_help = "Example: bem curriculum pilot --seeds 42,43,44")]
    Pilot(SeedArguments),
    /// Where the gate fails: an easy grid with drifting hazards, at both thresholds.
    #[command(after_help = "Example: bem curriculum probe-env --hazards 3 --drift 300 --interval 1")]
    ProbeEnv(ProbeArguments),
    /// Watch a trained agent on the grid, tick by tick.
    #[command(after_help = "Example: bem curriculum render --seed 42 --arm no_hold --delay")]
    Render(render::RenderArguments),
}

/// Arguments of `bem curriculum run`.
#[derive(Args)]
struct RunArguments {
    #[command(flatten)]
    seeds: SeedArguments,
    /// Write manifest.json and report.html here
    #[arg(long)]
    out: Option<PathBuf>,
    /// Waypoints of the easy grid, for trying what a wrong set-up does
    #[arg(long)]
    waypoints: Option<u32>,
}

#[derive(Args)]
struct SeedArguments {
    /// Seeds, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "42,43,44")]
    seeds: Vec<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ProbeArguments {
    #[command(flatten)]
    seeds: SeedArguments,
    /// Hazards on the easy grid
    #[arg(long, default_value_t = 3)]
    hazards: u32,
    /// Chance that a hazard drifts, in thousandths
    #[arg(long, default_value_t = 300)]
    drift: u32,
    /// Ticks between drifts
    #[arg(long, default_value_t = 1)]
    interval: u32,
}

/// `bem curriculum`
pub fn run(arguments: &CurriculumArguments) -> anyhow::Result<Answer> {
    match &arguments.command {
        CurriculumCommand::Run(arguments) => run_all(arguments),
        CurriculumCommand::Starve(arguments) => starve(arguments),
        CurriculumCommand::Pilot(arguments) => pilot(arguments),
        CurriculumCommand::ProbeEnv(arguments) => probe(arguments),
        CurriculumCommand::Render(arguments) => render::run(arguments),
    }
}

fn check_seeds(seeds: &[u64]) -> anyhow::Result<()> {
    if seeds.is_empty() || 1_000 < seeds.len() {
        bail!("--seeds has {} entries: give 1 to 1000 whole numbers separated by commas", seeds.len());
    }
    Ok(())
}

fn run_all(arguments: &RunArguments) -> anyhow::Result<Answer> {
    let seeds = &arguments.seeds.seeds;
    check_seeds(seeds)?;
    let mut config = ProtocolConfig::default();
    if let Some(waypoints) = arguments.waypoints {
        config.easy_grid.waypoints = waypoints;
    }
    config.check()?;
    let progress = super::bench::progress_bar(seeds.len() as u64, arguments.seeds.json);
    let mut results = Vec::new();
    interrupt::listen();
    for seed in seeds {
        if interrupt::is_asked() {
            break;
        }
        progress.set_message(format!("seed {seed}"));
        results.push(experiment::run_seed(&config, *seed)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let is_cut = is_cut(results.len(), seeds);
    if results.is_empty() {
        return Ok(Answer::No);
    }
    let (outcome, criteria) = experiment::judge(&results);
    if seeds.len() < SEEDS_MIN {
        note!(
            "bem: {} of at least {SEEDS_MIN} seeds: a run with so few cannot pass, because AC1 asks for their median; give for \
             example --seeds 42,43,44",
            seeds.len()
        );
    }
    let mut manifest = manifest::manifest(&config, &results, outcome, &criteria);
    if is_cut {
        manifest["seeds_not_run"] = serde_json::json!(seeds[results.len()..]);
    }
    if let Some(directory) = &arguments.out {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{} cannot be made", directory.display()))?;
        let write = |name: &str, text: String| {
            let path = directory.join(name);
            std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
        };
        write("manifest.json", serde_json::to_string_pretty(&manifest)? + "\n")?;
        write("report.html", report::html(&results, outcome, &criteria))?;
    }
    if arguments.seeds.json {
        say!("{manifest}");
    } else {
        for (result, trained) in &results {
            print_seed(result, *trained);
        }
        print_criteria(&criteria, outcome);
        let plain: Vec<SeedResult> = results.into_iter().map(|(result, _)| result).collect();
        say!("emergent against forced: the behaviour {}", experiment::contrast(&plain));
        if let Some(directory) = &arguments.out {
            say!("wrote {}", directory.join("report.html").display());
        }
    }
    Ok(if is_cut { Answer::No } else { Answer::Code(outcome.exit_code()) })
}

/// Whether Ctrl-C left seeds out; if so, it is said.
fn is_cut(done: usize, seeds: &[u64]) -> bool {
    if done < seeds.len() {
        note!("bem: interrupted after {done} of {} seeds", seeds.len());
    }
    done < seeds.len()
}

/// A curve as a line of blocks: full is one.
fn sparkline(values: &[i64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    values.iter().map(|value| BLOCKS[(to_milli(*value) * 8 / 1_000).clamp(0, 7) as usize]).collect()
}

fn print_seed(result: &SeedResult, trained: Trained) {
    say!("seed {}", result.seed);
    let warmup = &result.warmup;
    say!("  P0 {:<10} variance {}", warmup_word(warmup.end), sparkline(&warmup.variance_curve));
    for probe in &warmup.probes {
        say!(
            "     probe at {:>3}: variance {:.3} (window {:.3}), competence {:.2}, committed {:>3}{}",
            probe.episode,
            milli(to_milli(probe.variance)),
            milli(to_milli(probe.variance_window_max)),
            milli(probe.competence_milli),
            probe.committed_mean,
            if probe.passed { ", passed" } else { "" }
        );
    }
    if let Some(phase) = &result.consolidate {
        let steps: Vec<String> =
            result.ladder().iter().map(|step| format!("{}@{}", step.difficulty, step.episode)).collect();
        say!(
            "  P1 {:?} after {} episodes; difficulty@episode {}",
            phase.end,
            phase.episodes,
            steps.join(" ")
        );
    }
    if trained == Trained::Ready {
        say!("  P2 arm             committed  length  hold  premature  closures  contacts");
        for arm in &result.arms {
            say!(
                "     {:<16} {:>8} {:>7}  {:.2} {:>10} {:>9} {:>9}",
                arm.arm.name(),
                arm.committed_median,
                arm.length_median,
                milli(arm.hold_rate_milli),
                arm.premature_releases,
                arm.closures_automatic + arm.closures_explicit,
                arm.contacts_mean
            );
        }
        print_pilot(&result.pilot);
    }
    for control in &result.starved {
        let end =
            control.aborted_at.map_or("did not abort".into(), |episode| format!("aborted at {episode}"));
        say!("  starved {:<22} {end}, variance {:.3}", control.control, milli(control.variance_milli));
    }
}

fn print_pilot(pilot: &[PilotResult]) {
    say!("  delayed reward     opened  paid  broken  success  window  persistence");
    for arm in pilot {
        say!(
            "     {:<16} {:>5} {:>5} {:>7}     {:.2} {:>7.1} {:>12.2}",
            arm.arm.name(),
            arm.opened,
            arm.paid,
            arm.broken,
            milli(arm.success_milli),
            milli(arm.window_mean_milli),
            milli(arm.persistence_milli)
        );
    }
}

fn print_criteria(criteria: &[Criterion], outcome: Outcome) {
    for criterion in criteria {
        let verdict = if criterion.passed { "PASS" } else { "FAIL" };
        say!("{verdict}  {:<40} {}", criterion.name, criterion.value);
        say!("      bar: {}", criterion.bar);
    }
    say!("outcome: {outcome:?}");
}

fn warmup_word(end: WarmupEnd) -> String {
    match end {
        WarmupEnd::Converged => "converged".into(),
        WarmupEnd::NotElicited { episode } => format!("commitment not elicited at {episode}"),
        WarmupEnd::NotStable { failed } => format!("not stable ({failed})"),
    }
}

fn milli(value: i64) -> f64 {
    value as f64 / 1_000.0
}

fn starve(arguments: &SeedArguments) -> anyhow::Result<Answer> {
    check_seeds(&arguments.seeds)?;
    let mut all = true;
    let (mut rows, mut done) = (Vec::new(), 0);
    interrupt::listen();
    for seed in arguments.seeds.iter().take_while(|_| !interrupt::is_asked()) {
        done += 1;
        for control in experiment::starve(&ProtocolConfig::default(), *seed)? {
            all &= control.as_required || control.control.starts_with("S4");
            if !arguments.json {
                let end = control
                    .aborted_at
                    .map_or("did not abort".into(), |episode| format!("aborted at {episode}"));
                say!(
                    "seed {seed}  {:<22} {end}, variance {:.3}",
                    control.control,
                    milli(control.variance_milli)
                );
            }
            rows.push(serde_json::json!({ "seed": seed, "control": control }));
        }
    }
    if arguments.json {
        say!("{}", serde_json::json!({ "controls": rows, "all_abort": all }));
    }
    let is_cut = is_cut(done, &arguments.seeds);
    Ok(match (all, is_cut) {
        (false, _) => Answer::Code(Outcome::StarvedControlFailed.exit_code()),
        (true, true) => Answer::No,
        (true, false) => Answer::Yes,
    })
}

/// Trains a seed, or says why that failed.
pub fn trained(seed: u64) -> anyhow::Result<Run> {
    let mut run = Run::new(ProtocolConfig::default(), AgentConfig::default(), seed)?;
    match experiment::train(&mut run) {
        (_, _, Trained::Ready) => Ok(run),
        (warmup, _, _) => bail!("seed {seed} does not commit: {}", warmup_word(warmup.end)),
    }
}

fn pilot(arguments: &SeedArguments) -> anyhow::Result<Answer> {
    check_seeds(&arguments.seeds)?;
    let mut rows = Vec::new();
    let mut better = 0;
    interrupt::listen();
    for seed in arguments.seeds.iter().take_while(|_| !interrupt::is_asked()) {
        let results = experiment::pilot(&trained(*seed)?, 30);
        let success = |arm: Arm| {
            results.iter().find(|result| result.arm == arm).map_or(0, |result| result.success_milli)
        };
        better += usize::from(success(Arm::NoHold) + 200 <= success(Arm::Emergent));
        if !arguments.json {
            say!("seed {seed}");
            print_pilot(&results);
        }
        rows.push(serde_json::json!({ "seed": seed, "arms": results }));
    }
    if arguments.json {
        say!("{}", serde_json::json!({ "seeds": rows, "hold_better_by_0.20": better }));
    }
    let is_cut = is_cut(rows.len(), &arguments.seeds);
    Ok(if !is_cut && 2 * arguments.seeds.len() <= 3 * better { Answer::Yes } else { Answer::No })
}

fn probe(arguments: &ProbeArguments) -> anyhow::Result<Answer> {
    check_seeds(&arguments.seeds.seeds)?;
    let easy = GridConfig::of_difficulty(0);
    let easy_grid =
        GridConfig { hazards: arguments.hazards, drift: (arguments.interval, arguments.drift), ..easy };
    let config = ProtocolConfig { easy_grid, ..ProtocolConfig::default() };
    let mut rows = Vec::new();
    interrupt::listen();
    for seed in arguments.seeds.seeds.iter().take_while(|_| !interrupt::is_asked()) {
        let mut run = Run::new(config.clone(), AgentConfig::default(), *seed)?;
        let (_, _, end) = experiment::train(&mut run);
        let word = match (end, run.threshold_step_used()) {
            (Trained::Escalate, _) => "ESCALATE",
            (_, true) => "CONVERGED@0.45",
            (_, false) => "CONVERGED@0.40",
        };
        if !arguments.seeds.json {
            say!("seed {seed}  {word}");
        }
        rows.push(serde_json::json!({ "seed": seed, "verdict": word }));
    }
    if arguments.seeds.json {
        say!("{}", serde_json::json!({ "probes": rows }));
    }
    Ok(if is_cut(rows.len(), &arguments.seeds.seeds) { Answer::No } else { Answer::Yes })
}
