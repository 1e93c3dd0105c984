//! `bem ladder`: how the tasks of every family grow from trivial to hard, how straight that line is, and whether
//! measured difficulty agrees. Clauses: GLE-5, GLE-6.

mod measured;

use super::Answer;
use super::solve::to_float;
use anyhow::{Result, anyhow, bail};
use bem_base::fixed::Fixed;
use bem_engine::learner::Settings;
use bem_engine::solve::solve;
use bem_games::compose::NoPrograms;
use bem_teacher::fit::{Line, spearman};
use bem_teacher::laboratory::{Checkpoint, exponent, template_regret};
use bem_teacher::ladder::{Domain, Ladder, Rung, STAGES_MAX};
use clap::Args;
use measured::Measurements;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The difficulty ladder.
#[derive(Args)]
#[command(after_help = "Example: bem ladder --families parity,dyck --stages 6\n\
    Example: bem ladder --families copy --measure --budget 20000\n\
    Example: bem ladder --bandit\n\
    FILE of --measured holds what `bem solve --json` prints, one object per line; the median over seeds counts.")]
pub struct LadderArguments {
    /// Families to show, separated by commas; all without this
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    families: Vec<String>,
    /// Stages of every ladder, 2 to 256
    #[arg(long, default_value_t = 8)]
    stages: usize,
    /// A file with measurements
    #[arg(long, value_name = "FILE", conflicts_with = "measure")]
    measured: Option<PathBuf>,
    /// Measure now: learn every rung and count the steps to a score of 0.99
    #[arg(long)]
    measure: bool,
    /// Steps that --measure may spend on one rung
    #[arg(long, default_value_t = 20_000)]
    budget: u64,
    /// Seed of --measure and --bandit
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Instead, print the regret of the choice among templates
    #[arg(long)]
    bandit: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// One family's ladder with its fits.
struct Shown<'a> {
    domain: Domain,
    ladder: &'a Ladder,
    rungs: Vec<&'a Rung>,
    fit: Line,
    measured: Vec<Option<u64>>,
}

impl Shown<'_> {
    /// Agreement of the two orders over the rungs that were measured, if there are at least three.
    fn agreement(&self) -> Option<Fixed> {
        let both: Vec<(Fixed, Fixed)> = self
            .rungs
            .iter()
            .zip(&self.measured)
            .filter_map(|(rung, steps)| {
                Some((rung.difficulty, Fixed::from_int((*steps)?.min(1 << 30) as i32)))
            })
            .collect();
        let (estimated, measured): (Vec<Fixed>, Vec<Fixed>) = both.into_iter().unzip();
        (3 <= estimated.len()).then(|| spearman(&estimated, &measured))
    }
}

/// Runs the command.
pub fn run(arguments: &LadderArguments) -> Result<Answer> {
    if arguments.bandit {
        return bandit(arguments);
    }
    if !(2..=STAGES_MAX).contains(&arguments.stages) {
        bail!("--stages is {}; allowed is 2 to {STAGES_MAX}", arguments.stages);
    }
    let domains = domains(&arguments.families)?;
    let file = arguments.measured.as_deref().map(Measurements::read).transpose()?;
    let ladders: Vec<Ladder> = domains.iter().map(|domain| Ladder::new(*domain)).collect();
    let mut shown = Vec::new();
    for (domain, ladder) in domains.into_iter().zip(&ladders) {
        let rungs = ladder.rungs(arguments.stages);
        let mut measured = Vec::new();
        for rung in &rungs {
            measured.push(match &file {
                Some(file) => file.median_steps(&rung.tree),
                None if arguments.measure => learn(rung, arguments)?,
                None => None,
            });
        }
        let fit = ladder.fit(arguments.stages);
        shown.push(Shown { domain, ladder, rungs, fit, measured });
    }
    if arguments.json {
        let families: Vec<Value> = shown.iter().map(to_json).collect();
        println!("{}", json!({ "stages": arguments.stages, "families": families }));
    } else {
        shown.iter().for_each(print);
    }
    Ok(Answer::Yes)
}

fn domains(names: &[String]) -> Result<Vec<Domain>> {
    if names.is_empty() {
        return Ok(Domain::all().collect());
    }
    let known = || Domain::all().map(Domain::name).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        Domain::from_name(name)
            .ok_or_else(|| anyhow!("there is no family called {name:?}; known are {}", known()))
    };
    names.iter().map(find).collect()
}

/// Steps until the learner first scored 0.99 on this rung; none if the budget ended before.
fn learn(rung: &Rung, arguments: &LadderArguments) -> Result<Option<u64>> {
    let game = rung.tree.build(arguments.seed, &NoPrograms)?;
    let settings = Settings { budget: arguments.budget, ..Settings::new(arguments.seed) };
    Ok(solve(game.as_ref(), settings, &mut |_| true)?.steps_to_99)
}

fn to_json(shown: &Shown<'_>) -> Value {
    let rungs: Vec<Value> = shown
        .rungs
        .iter()
        .zip(&shown.measured)
        .enumerate()
        .map(|(stage, (rung, measured))| {
            json!({
                "stage": stage,
                "band": shown.ladder.band(rung.difficulty),
                "task": rung.tree.to_string(),
                "difficulty": to_float(rung.difficulty),
                "policy_bits": to_float(rung.policy_bits),
                "horizon": rung.horizon,
                "measured": measured,
            })
        })
        .collect();
    json!({
        "family": shown.domain.name(),
        "slope": to_float(shown.fit.slope),
        "intercept": to_float(shown.fit.intercept),
        "r_squared": to_float(shown.fit.r_squared),
        "spearman": shown.agreement().map(to_float),
        "rungs": rungs,
    })
}

fn print(shown: &Shown<'_>) {
    println!(
        "{}: difficulty = {:.2} + {:.2} * stage, R^2 = {:.4}",
        shown.domain.name(),
        to_float(shown.fit.intercept),
        to_float(shown.fit.slope),
        to_float(shown.fit.r_squared)
    );
    println!("  stage band difficulty   measured  task");
    for (stage, (rung, measured)) in shown.rungs.iter().zip(&shown.measured).enumerate() {
        let steps = measured.map_or("-".to_string(), |steps| steps.to_string());
        let band = shown.ladder.band(rung.difficulty);
        println!("  {stage:>5} {band:>4} {:>10.2} {steps:>10}  {}", to_float(rung.difficulty), rung.tree);
    }
    if let Some(agreement) = shown.agreement() {
        println!("  order of estimate and measurement agree by {:.3} (Spearman)", to_float(agreement));
    }
    println!();
}

/// Regret of the choice among sixteen templates, for five seeds.
fn bandit(arguments: &LadderArguments) -> Result<Answer> {
    let checkpoints = [100, 1_000, 10_000, 100_000, 1_000_000];
    let runs: Vec<(u64, Vec<Checkpoint>)> = (0..5)
        .map(|index| arguments.seed + index)
        .map(|seed| (seed, template_regret(seed, &checkpoints)))
        .collect();
    let exponents: Vec<Fixed> = runs.iter().map(|(_, points)| exponent(points[2], points[4])).collect();
    let worst = exponents.iter().copied().max().unwrap_or(Fixed::ZERO);
    let good = worst < Fixed::from_ratio(6, 10);
    if arguments.json {
        let seeds: Vec<Value> = runs
            .iter()
            .zip(&exponents)
            .map(|((seed, points), exponent)| {
                let regret: Vec<Value> =
                    points.iter().map(|point| json!([point.choices, to_float(point.regret)])).collect();
                json!({ "seed": seed, "regret": regret, "exponent": to_float(*exponent) })
            })
            .collect();
        println!("{}", json!({ "templates": 16, "seeds": seeds, "worst_exponent": to_float(worst) }));
    } else {
        println!("pseudo-regret of the choice among 16 templates, in units of meta-reward");
        println!(
            "  seed{}  exponent 10^4..10^6",
            checkpoints.map(|choices| format!("{choices:>11}")).concat()
        );
        for ((seed, points), exponent) in runs.iter().zip(&exponents) {
            let cells: String =
                points.iter().map(|point| format!("{:>11.2}", to_float(point.regret))).collect();
            println!("  {seed:>4}{cells}  {:.3}", to_float(*exponent));
        }
        println!("  worst exponent {:.3}; below 0.6 is asked for", to_float(worst));
    }
    Ok(if good { Answer::Yes } else { Answer::No })
}
