//! `bem table`: every row of the table of floors, several seeds each, with tabular Q-learning beside it.
//!
//! The rows are tasks with the number of steps an earlier prototype needed; the held-out rows are drawn by a
//! generator from kinds of tasks that the grammar was not written for. Clauses: SCC-8, VM-16.

mod collected;
mod controls;
mod counters;
mod drawn;
mod generated;
mod held_out;
mod machines;
mod online;
mod paid;
mod processes;
mod q_learning;
mod rows;

use self::counters::Counters;
use super::config::ConfigFile;
use super::solve::to_float;
use super::{Answer, usage};
use crate::interrupt;
use crate::task::{GameArguments, TermsArguments};
use anyhow::{Context as _, Result, bail};
use bem_engine::learner::Settings;
use bem_engine::parameters::check_world;
use bem_engine::solve::{Solution, solve};
use bem_games::game::Game;
use bem_games::wrappers::{Scramble, on_terms, scrambled};
use bem_machine::config::GenesisConfig;
use clap::Args;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// Learn every row of the table of floors and compare.
#[derive(Args)]
#[command(after_help = "Example: bem table --seeds 5 --families parity,dyck\n\
    Example: bem table --scramble actions --first-seed 6 --families small_sat\n\
    Example: bem table --no-replay --seeds 1\n\
    Example: bem table --held-out --seeds 3 --budget 60000\n\
    Example: bem table --generated --worlds 3 --salt 2026 --families chain,noise\n\
    Example: bem table --generated --served --worlds 2 --budget 100000\n\
    Example: bem table --controls --seeds 3 --budget 20000")]
pub struct TableArguments {
    /// Runs of every row.
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// The seed of the first run; the others follow.
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// Only rows of these families, separated by commas.
    #[arg(long, value_delimiter = ',')]
    families: Vec<String>,
    /// Only rows whose episodes have more than one step
    #[arg(long, conflicts_with_all = ["controls", "generated"])]
    several_steps: bool,
    /// How the worlds are disguised: none, actions, fields or bits.
    #[arg(long, default_value = "none")]
    scramble: String,
    /// Tasks from the generator instead of the table of floors.
    #[arg(long)]
    held_out: bool,
    /// Instead, controls: coin-flip rewards, and parts of the learner switched off
    #[arg(long, conflicts_with_all = ["held_out", "families"])]
    controls: bool,
    /// Instead, what every row earns while it is learned: 20 times its floor in steps, or 100,000 if that is more
    #[arg(long, conflicts_with_all = ["held_out", "controls"])]
    online: bool,
    /// Instead, what is earned while learning in worlds drawn from a seed, beside Q-learning, PSRL and UCB
    #[arg(long, conflicts_with_all = ["held_out", "controls", "online"])]
    generated: bool,
    /// Drawn worlds of every kind
    #[arg(long, default_value_t = 5, requires = "generated")]
    worlds: u64,
    /// Published beside the result; another salt draws other worlds
    #[arg(long, default_value = "1", requires = "generated")]
    salt: String,
    /// What names the sources under test; without it the program's own digest
    #[arg(long, requires = "generated")]
    sources: Option<String>,
    /// Switch parts of the learner off in turn
    #[arg(long, requires = "generated")]
    ablate: bool,
    /// Beside the learner the same worlds served: rewards up to 1,000 decisions late, 5 % of them lost
    #[arg(long, requires = "generated", conflicts_with = "ablate")]
    served: bool,
    /// Serve them over HTTP on loopback, by a server that learns on a thread of its own
    #[arg(long, requires = "served")]
    http: bool,
    /// Steps that Q-learning gets; zero leaves it out.
    #[arg(long, default_value_t = 40_000)]
    peer_steps: u64,
    /// Steps of one run at most.
    #[arg(long, default_value_t = 200_000)]
    budget: u64,
    #[command(flatten)]
    terms: TermsArguments,
    #[command(flatten)]
    config: ConfigFile,
    /// Print one JSON object and nothing else.
    #[arg(long)]
    json: bool,
}

/// One row: a task, and how many steps it took before.
struct Row {
    name: String,
    floor: Option<u64>,
    build: Box<dyn Fn(u64) -> Result<Arc<dyn Game>>>,
}

impl Row {
    /// A kind of task that is drawn anew for every seed; nobody has learned it before.
    fn drawn(name: &str, build: fn(u64) -> Result<Arc<dyn Game>>) -> Row {
        Row { name: name.to_string(), floor: None, build: Box::new(build) }
    }
}

/// What the runs of one row came to.
struct Summary {
    name: String,
    floor: Option<u64>,
    solved: usize,
    runs: usize,
    steps: Vec<Option<u64>>,
    first: Vec<Option<u64>>,
    scores: Vec<f64>,
    gates: usize,
    words: String,
    wall_ms: u128,
    peer: Option<f64>,
    counters: Counters,
}

/// Runs the command.
pub fn run(arguments: &TableArguments) -> Result<Answer> {
    if arguments.seeds == 0 {
        bail!("--seeds 0: at least one run of every row is needed");
    }
    usage::seeds("--first-seed", arguments.first_seed, arguments.seeds)?;
    if !Scramble::WORDS.contains(&arguments.scramble.as_str()) {
        bail!("--scramble is {:?}; allowed are {}", arguments.scramble, Scramble::WORDS.join(", "));
    }
    let config = arguments.config.load()?;
    if arguments.online {
        return online::run(arguments, &config);
    }
    if arguments.generated {
        return generated::run(arguments, &config);
    }
    if arguments.controls {
        let terms = arguments.terms.check()?;
        return controls::run(arguments.seeds, arguments.budget, &config, terms, arguments.json);
    }
    let rows = rows_of(arguments)?;
    if !arguments.json {
        say!(
            "| task | solved | median steps to 0.99 | all | floor | ratio | worst score | gates | ms a run | Q-learning | hypothesis |"
        );
        say!("|---|---|---|---|---|---|---|---|---|---|---|");
    }
    let mut summaries = Vec::new();
    interrupt::listen();
    for row in &rows {
        let summary = run_row(row, arguments, &config)?;
        if interrupt::is_asked() {
            note!("bem: interrupted after {} of {} rows", summaries.len(), rows.len());
            break;
        }
        if !arguments.json {
            say!("{}", summary.to_line());
        }
        summaries.push(summary);
    }
    Ok(conclude(arguments, &summaries, rows.len()))
}

/// Says what all rows came to: yes if all of them were run, solved, and by one machine alone.
fn conclude(arguments: &TableArguments, summaries: &[Summary], rows: usize) -> Answer {
    let mut counters = Counters::default();
    summaries.iter().for_each(|summary| counters.add(&summary.counters));
    let (solved, runs) = summaries
        .iter()
        .fold((0, 0), |(solved, runs), summary| (solved + summary.solved, runs + summary.runs));
    if arguments.json {
        let rows: Vec<Value> = summaries.iter().map(Summary::to_json).collect();
        let mut object = Map::new();
        object.insert("seeds".to_string(), json!(arguments.seeds));
        object.insert("first_seed".to_string(), json!(arguments.first_seed));
        object.insert("scramble".to_string(), json!(arguments.scramble));
        object.insert("solved".to_string(), json!(solved));
        object.insert("runs".to_string(), json!(runs));
        counters.add_to(&mut object);
        object.insert("rows".to_string(), rows.into());
        say!("{}", Value::Object(object));
    } else {
        say!("\nSolved in {solved} of {runs} runs.");
        counters.to_lines().iter().for_each(|line| say!("{line}"));
    }
    let all = summaries.len() == rows && solved == runs && counters.is_one_machine();
    if all { Answer::Yes } else { Answer::No }
}

/// The rows that are asked for.
fn rows_of(arguments: &TableArguments) -> Result<Vec<Row>> {
    let rows = if arguments.held_out { held_out_rows(arguments) } else { floor_rows(arguments) };
    let wanted = |row: &Row| {
        arguments.families.is_empty()
            || arguments.families.iter().any(|family| row.name.starts_with(family.as_str()))
    };
    let terms = arguments.terms.check()?;
    let deprived = |Row { name, floor, build }: Row| Row {
        name,
        floor,
        build: Box::new(move |seed| Ok(on_terms(build(seed)?, terms))),
    };
    let mut long = Vec::new();
    for row in rows {
        // Asked before anything is late: what is late does not make an episode longer.
        let horizon = || -> Result<u32> { Ok((row.build)(arguments.first_seed)?.shape().horizon) };
        if !arguments.several_steps || 1 < horizon()? {
            long.push(row);
        }
    }
    let (rows, others): (Vec<Row>, Vec<Row>) = long.into_iter().map(deprived).partition(wanted);
    if rows.is_empty() {
        let known: BTreeSet<&str> = others.iter().filter_map(|row| row.name.split(' ').next()).collect();
        let known: Vec<&str> = known.into_iter().collect();
        bail!(
            "--families {}: no row has such a name; they begin with {}",
            arguments.families.join(","),
            known.join(", ")
        );
    }
    Ok(rows)
}

fn floor_rows(arguments: &TableArguments) -> Vec<Row> {
    rows::FLOORS
        .iter()
        .map(|(task, params, floor)| {
            let mut texts: Vec<String> = params.iter().map(|text| (*text).to_string()).collect();
            let name = format!("{task} {}", params.join(" "));
            texts.push(format!("scramble={}", arguments.scramble));
            Row { name, floor: *floor, build: Box::new(move |seed| named_game(task, &texts, seed)) }
        })
        .collect()
}

/// Tasks from the generator, disguised as the rows of the table are.
fn held_out_rows(arguments: &TableArguments) -> Vec<Row> {
    let level = Scramble::WORDS.iter().position(|word| *word == arguments.scramble);
    let level = Scramble::from_index(level.unwrap_or(0));
    let disguised = |Row { name, floor, build }: Row| Row {
        name,
        floor,
        build: Box::new(move |seed| Ok(scrambled(build(seed)?, level, seed))),
    };
    let kinds = [
        drawn::rows(),
        collected::rows(),
        paid::rows(),
        machines::rows(),
        held_out::rows(),
        processes::rows(),
    ];
    kinds.into_iter().flatten().map(disguised).collect()
}

/// The game that `bem solve` would play under this name.
fn named_game(task: &str, params: &[String], seed: u64) -> Result<Arc<dyn Game>> {
    let arguments = GameArguments { task: Some(task.to_string()), params: params.to_vec(), game: None };
    Ok(arguments.open_game(seed)?.1)
}

fn run_row(row: &Row, arguments: &TableArguments, config: &Arc<GenesisConfig>) -> Result<Summary> {
    let started = Instant::now();
    let mut solutions: Vec<Solution> = Vec::new();
    let mut counters = Counters::default();
    for seed in usage::seeds("--first-seed", arguments.first_seed, arguments.seeds)? {
        let game = (row.build)(seed).with_context(|| row.name.clone())?;
        check_world(config, game.shape())
            .with_context(|| format!("{} does not fit the configuration", row.name))?;
        let settings = Settings { seed, budget: arguments.budget, config: Arc::clone(config) };
        let solution = solve(game.as_ref(), settings, &mut |_| !interrupt::is_asked())
            .with_context(|| row.name.clone())?;
        counters.take(&row.name, seed, &solution);
        solutions.push(solution);
    }
    let wall_ms = started.elapsed().as_millis() / u128::from(arguments.seeds);
    let peer = match arguments.peer_steps {
        0 => None,
        steps => {
            let seed = arguments.first_seed;
            Some(q_learning::score((row.build)(seed)?.as_ref(), seed, steps)?)
        }
    };
    let last = &solutions[solutions.len() - 1].learned;
    Ok(Summary {
        name: row.name.clone(),
        floor: row.floor,
        solved: solutions.iter().filter(|solution| solution.is_solved()).count(),
        runs: solutions.len(),
        steps: solutions.iter().map(|solution| solution.steps_to_99).collect(),
        first: solutions.iter().map(|solution| solution.first_to_99).collect(),
        scores: solutions.iter().filter_map(Solution::score).map(to_float).collect(),
        gates: last.agent.policy().gates(),
        words: last.words.clone(),
        wall_ms,
        peer,
        counters,
    })
}

impl Summary {
    /// The middle of the runs; a run that never got there counts as the slowest.
    fn median(&self) -> Option<u64> {
        let mut steps: Vec<u64> = self.steps.iter().map(|steps| steps.unwrap_or(u64::MAX)).collect();
        steps.sort_unstable();
        Some(steps[steps.len() / 2]).filter(|steps| *steps != u64::MAX)
    }

    fn worst(&self) -> f64 {
        self.scores.iter().copied().fold(f64::MAX, f64::min)
    }

    fn ratio(&self) -> Option<f64> {
        Some(self.median()? as f64 / self.floor? as f64)
    }

    fn to_line(&self) -> String {
        let number = |value: Option<u64>| value.map_or("-".to_string(), |value| value.to_string());
        let all: Vec<String> = self.steps.iter().map(|steps| number(*steps)).collect();
        format!(
            "| {} | {}/{} | {} | {} | {} | {} | {:.3} | {} | {} | {} | {} |",
            self.name,
            self.solved,
            self.runs,
            number(self.median()),
            all.join(", "),
            number(self.floor),
            self.ratio().map_or("-".to_string(), |ratio| format!("{ratio:.2}")),
            self.worst(),
            self.gates,
            self.wall_ms,
            self.peer.map_or("-".to_string(), |score| format!("{score:.2}")),
            self.words.chars().take(80).collect::<String>(),
        )
    }

    fn to_json(&self) -> Value {
        let mut row = json!({
            "task": self.name, "solved": self.solved, "runs": self.runs, "median": self.median(),
            "steps_to_99": self.steps, "steps_to_99_first": self.first, "floor": self.floor, "ratio": self.ratio(), "scores": self.scores,
            "gates": self.gates, "hypothesis": self.words, "wall_ms": self.wall_ms as u64, "q_learning": self.peer,
        });
        if let Value::Object(row) = &mut row {
            self.counters.add_to(row);
        }
        row
    }
}
