//! `bem games`: the families, one in detail, and an episode by hand. Clauses: GLE-1, GLE-2.

mod play;

use super::Answer;
use super::fit::{WIDTH, hanging, wrapped};
use crate::task::{GameArguments, Task};
use bem_games::base_problem::{base_problem, complexity};
use bem_games::catalog;
use bem_games::compose::operator;
use bem_games::game::{Game, Parameter, Range, Value};
use bem_games::playthrough::shape_text;
use clap::{Args, Subcommand};
use serde_json::{Map, json};
use std::sync::Arc;

/// The games BEM can learn from: list them, look at one, play one by hand.
#[derive(Args)]
#[command(after_help = "Example: bem games play dyck --param depth=2 --seed 3\n\
    Example: bem games play 'seq(parity{n=4},copy{length=2})'\n\
    Example: bem games show --game examples/games/kuhn_poker.efg")]
pub struct GamesArguments {
    #[command(subcommand)]
    command: GamesCommand,
}

#[derive(Subcommand)]
enum GamesCommand {
    /// All families with their parameters and ranges
    #[command(after_help = "Example: bem games list --json")]
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// One family in detail: parameters, shape, optimum and the value of random play
    #[command(after_help = "Example: bem games show parity --param n=16 --json\n\
        In JSON, optimum and random are in units as in `bem solve`, ranges of rewards in\n\
        milli-units.")]
    Show {
        #[command(flatten)]
        choice: GameChoice,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Step through episodes by hand
    #[command(after_help = "Example: bem games play key_value --param keys=8 --seed 3\n\
        Example: printf '1\\no\\nO\\n' | bem games play copy")]
    Play {
        #[command(flatten)]
        choice: GameChoice,
        /// Print the episodes as one JSON object at the end; the dialogue goes to standard error
        #[arg(long)]
        json: bool,
    },
}

/// A family, composition or file, its parameters and the seed of its hidden choices.
#[derive(Args)]
pub struct GameChoice {
    #[command(flatten)]
    task: GameArguments,
    /// Seed of hidden choices and episodes
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A game that was chosen on the command line.
pub struct Chosen {
    /// As it was named.
    name: String,
    /// What one does in it.
    about: &'static str,
    /// The parameters that can be set, with their ranges.
    parameters: Vec<Parameter>,
    /// The values they have.
    params: Map<String, serde_json::Value>,
    game: Arc<dyn Game>,
    seed: u64,
}

impl GameChoice {
    fn build(&self) -> anyhow::Result<Chosen> {
        let (Task { name, params, .. }, game) = self.task.open_game(self.seed)?;
        let root = name.split(['(', '{']).next().unwrap_or_default();
        let (about, parameters) = match (catalog::family(root), operator(root)) {
            (Ok(family), _) => (family.about(), catalog::parameters(family)),
            (_, Some(operator)) => (operator.about(), operator.parameters().to_vec()),
            _ => ("A game from a file.", Vec::new()),
        };
        Ok(Chosen { name, about, parameters, params, game, seed: self.seed })
    }
}

/// Runs `bem games`.
pub fn run(arguments: &GamesArguments) -> anyhow::Result<Answer> {
    match &arguments.command {
        GamesCommand::List { json } => list(*json),
        GamesCommand::Show { choice, json } => show(&choice.build()?, *json),
        GamesCommand::Play { choice, json } => play::run(&choice.build()?, *json),
    }
    Ok(Answer::Yes)
}

/// Where the descriptions of families begin.
const COLUMN: usize = 22;
/// A space at which no line is broken.
const TIED: char = '\u{a0}';
/// Parameters with at most so many letters stay on one line.
const TIED_MAX: usize = 48;

fn list(as_json: bool) {
    let families = catalog::families();
    if as_json {
        let entries: Vec<_> = families
            .iter()
            .map(|family| {
                let params = parameters_json(&catalog::parameters(*family));
                json!({ "family": family.name(), "about": family.about(), "params": params })
            })
            .collect();
        say!("{}", json!({ "families": entries }));
        return;
    }
    for family in families {
        for (place, line) in wrapped(family.about(), WIDTH - COLUMN).iter().enumerate() {
            say!("{:<COLUMN$}{line}", if place == 0 { family.name() } else { "" });
        }
        let own = family.parameters().iter().map(parameter_text).collect::<Vec<_>>().join("  ");
        for line in wrapped(&own, WIDTH - COLUMN - 2) {
            say!("{:COLUMN$}  {}", "", line.trim().replace(TIED, " "));
        }
    }
    say!("Every family also takes noise 0..100 [0] and scramble");
    say!("none|actions|fields|bits [none]. Defaults are in brackets.");
}

/// Where what is said of a parameter begins.
const ABOUT: usize = 17;

fn show(chosen: &Chosen, as_json: bool) {
    let game = &*chosen.game;
    let shape = game.shape();
    if as_json {
        let fields: Vec<_> = shape.fields.iter().map(|field| [field.low, field.width]).collect();
        let mut entry = json!({
            "family": chosen.name,
            "about": chosen.about,
            "params": parameters_json(&chosen.parameters),
            "settings": chosen.params,
            "seed": chosen.seed,
            "obs_bits": shape.observation_bits,
            "fields": fields,
            "actions": shape.actions,
            "horizon": shape.horizon,
            "complexity": complexity(shape).to_raw() as f64 / (1u64 << 32) as f64,
            "reward_range": [shape.reward_min, shape.reward_max],
            "return_range": [shape.return_min, shape.return_max],
            "optimum": units(game.optimum()),
            "random": units(game.random()),
            "clauses": ["GLE-1", "GLE-2"],
        });
        // Compositions and files have no record of their own.
        if let Some(problem) = base_problem(&chosen.name) {
            entry["id"] = json!(format!("{:08x}", problem.id.to_word()));
            entry["horizon_bound"] = json!(problem.horizon_bound);
        }
        say!("{entry}");
        return;
    }
    let print = |line: &str, indent: usize| hanging(line, indent).iter().for_each(|line| say!("{line}"));
    print(&format!("{}: {}", chosen.name, chosen.about), 2);
    for parameter in &chosen.parameters {
        let now =
            chosen.params.get(parameter.name).map_or(String::new(), |now| now.to_string().replace('"', ""));
        print(&format!("  {:<14} {now} ({})", parameter.name, allowed_text(parameter)), ABOUT);
        wrapped(parameter.about, WIDTH - ABOUT).iter().for_each(|line| say!("{:ABOUT$}{line}", ""));
    }
    print(&format!("{} (rewards in milli-units)", shape_text(shape)), 2);
    say!(
        "optimum {:.3}, random play {:.3}, seed {}",
        units(game.optimum()),
        units(game.random()),
        chosen.seed
    );
}

/// Expected return in units: 1.0 is a right answer.
fn units(value: Value) -> f64 {
    value.mean.to_raw() as f64 / (1u64 << 32) as f64 / 1_000.0
}

fn parameter_text(parameter: &Parameter) -> String {
    let text = format!("{} {}", parameter.name, range_text(parameter));
    match TIED_MAX < text.chars().count() {
        true => text.replace('|', " | "),
        false => text.replace(' ', &TIED.to_string()),
    }
}

fn allowed_text(parameter: &Parameter) -> String {
    match parameter.range {
        Range::Number { min, max, default } => format!("{min}..{max}, default {default}"),
        Range::Choice { words } => format!("{}, default {}", words.join("|"), words[0]),
    }
}

fn range_text(parameter: &Parameter) -> String {
    match parameter.range {
        Range::Number { min, max, default } => format!("{min}..{max} [{default}]"),
        Range::Choice { words } => format!("{} [{}]", words.join("|"), words[0]),
    }
}

fn parameters_json(parameters: &[Parameter]) -> serde_json::Value {
    let entries = parameters.iter().map(|parameter| {
        let entry = match parameter.range {
            Range::Number { min, max, default } => json!({ "min": min, "max": max, "default": default }),
            Range::Choice { words } => json!({ "choices": words, "default": words[0] }),
        };
        (parameter.name.to_string(), entry)
    });
    entries.collect::<serde_json::Map<_, _>>().into()
}
