//! `bem table`: every row of the table of floors, several seeds each, with tabular Q-learning beside it.
//!
//! The experiments are those of `bem_tables`; here are their arguments, what is printed of them and the answer. Clauses: SCC-8,
//! VM-16.

mod controls;
mod generated;
mod online;
mod over_http;

use super::bench::cpu_seconds;
use super::config::ConfigFile;
use super::{Answer, usage};
use crate::interrupt;
use crate::task::{GameArguments, TermsArguments};
use anyhow::{Result, bail};
use bem_games::game::Game;
use bem_games::wrappers::Scramble;
use bem_tables::Edges;
use bem_tables::table::{Row, Runs, Summary, Total, Wanted, rows};
use clap::Args;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What the experiments are lent.
const EDGES: Edges = Edges { named_game, is_asked: interrupt::is_asked, cpu_seconds, wall };

/// What is not played in drawn worlds. An option of theirs conflicts with each, besides requiring `generated`: a requirement
/// that conflicts with what is given is not asked for.
const UNDRAWN: [&str; 3] = ["held_out", "controls", "online"];

/// Steps that Q-learning gets when nothing else is said.
const PEER_STEPS: u64 = 40_000;

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
    #[arg(long, conflicts_with_all = ["held_out", "families", "first_seed", "scramble"])]
    controls: bool,
    /// Instead, what every row earns while it is learned: 20 times its floor in steps, or 100,000 if that is more
    #[arg(long, conflicts_with_all = ["held_out", "controls", "budget"])]
    online: bool,
    /// Instead, what is earned while learning in worlds drawn from a seed, beside Q-learning, PSRL and UCB
    #[arg(long, conflicts_with_all = UNDRAWN,
        conflicts_with_all = ["seeds", "first_seed", "scramble", "peer_steps", "no_replay", "delay_rewards"])]
    generated: bool,
    /// Drawn worlds of every kind
    #[arg(long, default_value_t = 5, requires = "generated", conflicts_with_all = UNDRAWN)]
    worlds: u64,
    /// Published beside the result; another salt draws other worlds
    #[arg(long, default_value = "1", requires = "generated", conflicts_with_all = UNDRAWN)]
    salt: String,
    /// What names the sources under test; without it the program's own digest
    #[arg(long, requires = "generated", conflicts_with_all = UNDRAWN)]
    sources: Option<String>,
    /// Switch parts of the learner off in turn
    #[arg(long, requires = "generated", conflicts_with_all = UNDRAWN)]
    ablate: bool,
    /// Beside the learner the same worlds served: rewards up to 1,000 decisions late, 5 % of them lost
    #[arg(long, requires = "generated", conflicts_with = "ablate", conflicts_with_all = UNDRAWN)]
    served: bool,
    /// Serve them over HTTP on loopback, by a server that learns on a thread of its own
    #[arg(long, requires = "served", conflicts_with = "ablate", conflicts_with_all = UNDRAWN)]
    http: bool,
    /// Steps that Q-learning gets; zero leaves it out [default: 40000]
    #[arg(long)]
    peer_steps: Option<u64>,
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

/// Runs the command.
pub fn run(arguments: &TableArguments) -> Result<Answer> {
    if arguments.seeds == 0 {
        bail!("--seeds 0: at least one run of every row is needed");
    }
    let seeds = usage::seeds("--first-seed", arguments.first_seed, arguments.seeds)?;
    if !Scramble::WORDS.contains(&arguments.scramble.as_str()) {
        bail!("--scramble is {:?}; allowed are {}", arguments.scramble, Scramble::WORDS.join(", "));
    }
    refuse_peers(arguments)?;
    let config = arguments.config.load()?;
    if arguments.online {
        return online::run(arguments, &config);
    }
    if arguments.generated {
        return generated::run(arguments, &config);
    }
    if arguments.controls {
        return controls::run(arguments, &config);
    }
    let rows = rows_of(arguments)?;
    if !arguments.json {
        say!(
            "| task | solved | median steps to 0.99 | all | floor | ratio | worst score | gates | ms a run | Q-learning | hypothesis |"
        );
        say!("|---|---|---|---|---|---|---|---|---|---|---|");
    }
    let peer_steps = arguments.peer_steps.unwrap_or(PEER_STEPS);
    let runs = Runs { seeds, budget: arguments.budget, peer_steps, config };
    let mut summaries = Vec::new();
    interrupt::listen();
    for row in &rows {
        let summary = runs.of(row, &EDGES)?;
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

/// Where no Q-learning is played, none can be asked for; that there be none can.
fn refuse_peers(arguments: &TableArguments) -> Result<()> {
    let alone = [("--online", arguments.online), ("--controls", arguments.controls)];
    let alone = alone.into_iter().find(|(_, is_given)| *is_given);
    if let (Some((option, _)), Some(steps @ 1..)) = (alone, arguments.peer_steps) {
        bail!("--peer-steps {steps} has no effect on {option}: no Q-learning is played beside it");
    }
    Ok(())
}

/// Says what all rows came to: yes if all of them were run, solved, and by one machine alone.
fn conclude(arguments: &TableArguments, summaries: &[Summary], rows: usize) -> Answer {
    let Total { solved, runs, counters } = Total::of(summaries);
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
    let wanted = Wanted {
        held_out: arguments.held_out,
        several_steps: arguments.several_steps.then_some(arguments.first_seed),
        scramble: &arguments.scramble,
        terms: arguments.terms.check()?,
    };
    let is_named = |row: &Row| {
        arguments.families.is_empty()
            || arguments.families.iter().any(|family| row.name.starts_with(family.as_str()))
    };
    let (rows, others): (Vec<Row>, Vec<Row>) = rows(wanted, named_game)?.into_iter().partition(is_named);
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

/// The game that `bem solve` would play under this name.
fn named_game(task: &str, params: &[String], seed: u64) -> Result<Arc<dyn Game>> {
    let arguments = GameArguments { task: Some(task.to_string()), params: params.to_vec(), game: None };
    Ok(arguments.open_game(seed)?.1)
}

/// The time on the wall since it was first asked for.
fn wall() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
