//! `bem solve`: learn one task from scratch and say how well it went.

use super::Answer;
use anyhow::{Context as _, Result, bail};
use bem_base::fixed::Fixed;
use bem_engine::learner::{Settings, Tally};
use bem_engine::solve::{Point, Solution, solve};
use bem_games::catalog;
use bem_games::game::{Game, Setting};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Instant;

/// Learn one task from scratch.
#[derive(Args)]
#[command(after_help = "Example: bem solve parity --param n=16 --seed 7")]
pub struct SolveArguments {
    /// A family by name; `bem games list` shows them.
    task: String,
    /// A parameter of the family as name=value; may be given again.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// All random choices come from this number.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Steps in the world at most; measuring candidates counts.
    #[arg(long, default_value_t = 200_000)]
    budget: u64,
    /// Print one JSON object and nothing else.
    #[arg(long)]
    json: bool,
}

/// A game with the texts it was asked for.
pub struct Chosen {
    /// The game.
    pub game: Arc<dyn Game>,
    /// All settings, for the report.
    pub params: Map<String, Value>,
}

/// Splits `name=value` texts; a text without `=` is an error that names it.
pub fn parse_params(texts: &[String]) -> Result<BTreeMap<String, String>> {
    texts
        .iter()
        .map(|text| match text.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_string(), value.trim().to_string())),
            None => bail!("parameter {text:?} must look like name=value"),
        })
        .collect()
}

/// The game of a family with these parameters; hidden choices come from the seed.
pub fn choose_game(family: &str, texts: &BTreeMap<String, String>, seed: u64) -> Result<Chosen> {
    let family = catalog::family(family)?;
    let settings = catalog::settings(family, texts)?;
    let game = catalog::build(family, &settings, seed)?;
    let words: BTreeMap<&str, &[&str]> = catalog::parameters(family)
        .iter()
        .filter_map(|parameter| match parameter.range {
            bem_games::game::Range::Choice { words } => Some((parameter.name, words)),
            bem_games::game::Range::Number { .. } => None,
        })
        .collect();
    let mut params = Map::new();
    for (name, setting) in settings.iter() {
        let value = match setting {
            Setting::Number(value) => json!(value),
            Setting::Choice(index) => json!(words[name][index]),
        };
        params.insert(name.to_string(), value);
    }
    Ok(Chosen { game, params })
}

/// Runs the command.
pub fn run(arguments: &SolveArguments) -> Result<Answer> {
    let texts = parse_params(&arguments.params)?;
    let chosen = choose_game(&arguments.task, &texts, arguments.seed)?;
    let settings = Settings { budget: arguments.budget, ..Settings::new(arguments.seed) };
    let started = Instant::now();
    let bar = progress_bar(arguments);
    let solution = solve(chosen.game.as_ref(), settings, &mut |tally: &Tally| {
        bar.set_position(tally.steps.min(arguments.budget));
        bar.set_message(format!("{} applied, {} rejected", tally.applied, tally.rejected));
        true
    })
    .context("the world failed")?;
    bar.finish_and_clear();
    let wall_ms = started.elapsed().as_millis() as u64;
    if arguments.json {
        println!("{}", to_json(arguments, &chosen, &solution, wall_ms));
    } else {
        print_summary(arguments, &solution, wall_ms);
    }
    Ok(if solution.is_solved() { Answer::Yes } else { Answer::No })
}

fn progress_bar(arguments: &SolveArguments) -> ProgressBar {
    if arguments.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} steps, {msg}");
    ProgressBar::new(arguments.budget).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A fixed number as a float for display; six decimals are kept.
pub fn to_float(value: Fixed) -> f64 {
    let exact = value.to_raw() as f64 / 4_294_967_296.0;
    (exact * 1e6).round() / 1e6
}

fn units(value: Fixed) -> f64 {
    (to_float(value) * 1e3).round() / 1e6
}

fn to_json(arguments: &SolveArguments, chosen: &Chosen, solution: &Solution, wall_ms: u64) -> Value {
    let learned = &solution.learned;
    json!({
        "task": arguments.task,
        "params": chosen.params,
        "seed": arguments.seed,
        "solved": solution.is_solved(),
        "steps": learned.tally.steps,
        "steps_to_99": solution.steps_to_99,
        "score": solution.score().map(to_float),
        "random": solution.yardstick.map(|yardstick| units(yardstick.random)),
        "optimum": solution.yardstick.map(|yardstick| units(yardstick.optimum)),
        "return_mean": units(solution.evaluation.mean),
        "episodes": learned.tally.episodes,
        "wall_ms": wall_ms,
        "gates": learned.policy.gates(),
        "state_bits": learned.policy.memory_bits(),
        "patches_applied": learned.tally.applied,
        "patches_rejected": learned.tally.rejected,
        "proofs_checked": 0,
        "hypothesis": learned.words,
        "trace_head": learned.chain_head.to_hex(),
    })
}

fn print_summary(arguments: &SolveArguments, solution: &Solution, wall_ms: u64) {
    let learned = &solution.learned;
    let verdict = if solution.is_solved() { "solved" } else { "not solved" };
    println!("{} (seed {}): {verdict}", arguments.task, arguments.seed);
    if let (Some(score), Some(yardstick)) = (solution.score(), solution.yardstick) {
        println!(
            "  score        {:.4}   return {:.3}, random {:.3}, optimum {:.3}",
            to_float(score),
            units(solution.evaluation.mean),
            units(yardstick.random),
            units(yardstick.optimum)
        );
    }
    let to_99 = solution.steps_to_99.map_or("never".to_string(), |steps| steps.to_string());
    println!(
        "  steps        {} in {} episodes, {wall_ms} ms; score 0.99 first reached at step {to_99}",
        learned.tally.steps, learned.tally.episodes
    );
    println!(
        "  circuit      {} gates, {} memory bits, reads {} bits",
        learned.policy.gates(),
        learned.policy.memory_bits(),
        learned.policy.reads().len()
    );
    println!("  hypothesis   {}", learned.words);
    for decision in &solution.decisions {
        println!(
            "  {:>8}  {}  {} ({} gates): {} pairs, mean {:+.3}, at least {:+.3}",
            decision.steps,
            if decision.accepted { "install" } else { "reject " },
            decision.words,
            decision.gates,
            decision.evidence.pairs,
            to_float(decision.evidence.mean),
            to_float(decision.evidence.lower_bound),
        );
    }
    print!("{}", plot(&solution.curve));
    println!("  trace head   {}", learned.chain_head);
}

/// The learning curve as a small plot: each line is one change of the acting policy.
fn plot(curve: &[Point]) -> String {
    let top = curve.iter().map(|point| units(point.mean)).fold(f64::MIN, f64::max);
    let low = curve.iter().map(|point| units(point.mean)).fold(0.0, f64::min);
    let stride = curve.len().div_ceil(12).max(1);
    let mut text = String::new();
    for (position, point) in curve.iter().enumerate() {
        if position % stride != 0 && position + 1 != curve.len() {
            continue;
        }
        let share = (units(point.mean) - low) / (top - low).max(1e-9);
        let bar = "#".repeat((share * 40.0).round() as usize);
        text.push_str(&format!("  {:>8}  {:>9.3} {bar}\n", point.steps, units(point.mean)));
    }
    text
}
