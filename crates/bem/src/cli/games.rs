//! `bem games`: the families, one in detail, and an episode by hand. Clauses: GLE-1, GLE-2.

mod play;

use super::Answer;
use anyhow::{Context, bail};
use bem_games::base_problem::{base_problem, complexity};
use bem_games::catalog;
use bem_games::game::{Family, Game, Parameter, Range, Setting, Settings, Value};
use bem_games::playthrough::shape_text;
use clap::{Args, Subcommand};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The games BEM can learn from: list them, look at one, play one by hand.
#[derive(Args)]
#[command(after_help = "Example: bem games play dyck --param depth=2 --seed 3")]
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
        In JSON, optimum and random are in units as in `bem solve`, ranges of rewards in milli-units.")]
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

/// A family, its parameters and the seed of its hidden choices.
#[derive(Args)]
pub struct GameChoice {
    /// Name of the family
    family: String,
    /// Parameter of the family, such as n=16; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Seed of hidden choices and episodes
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A game that was chosen on the command line.
pub struct Chosen {
    family: &'static dyn Family,
    settings: Settings,
    game: Arc<dyn Game>,
    seed: u64,
}

impl GameChoice {
    fn build(&self) -> anyhow::Result<Chosen> {
        let family = catalog::family(&self.family)?;
        let named = || format!("family {}", self.family);
        let settings = catalog::settings(family, &parse_params(&self.params)?).with_context(named)?;
        let game = catalog::build(family, &settings, self.seed).with_context(named)?;
        Ok(Chosen { family, settings, game, seed: self.seed })
    }
}

/// Reads `NAME=VALUE` texts; a name may come only once.
pub fn parse_params(params: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for param in params {
        let Some((name, value)) = param.split_once('=') else {
            bail!("--param {param:?} must have the form NAME=VALUE");
        };
        if texts.insert(name.trim().to_string(), value.trim().to_string()).is_some() {
            bail!("parameter {name} is given twice");
        }
    }
    Ok(texts)
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
        println!("{}", json!({ "families": entries }));
        return;
    }
    for family in families {
        println!("{:<21} {}", family.name(), family.about());
        let own: Vec<String> = family.parameters().iter().map(parameter_text).collect();
        println!("{:<21}   {}", "", own.join("  "));
    }
    println!("Every family also takes noise 0..100 [0] and scramble none|actions|fields|bits [none].");
}

fn show(chosen: &Chosen, as_json: bool) {
    let (family, game) = (chosen.family, &*chosen.game);
    let shape = game.shape();
    let parameters = catalog::parameters(family);
    if as_json {
        let problem = base_problem(family.name()).expect("a family of the catalog has a record");
        let fields: Vec<_> = shape.fields.iter().map(|field| [field.low, field.width]).collect();
        let entry = json!({
            "family": family.name(),
            "id": format!("{:08x}", problem.id.to_word()),
            "about": family.about(),
            "params": parameters_json(&parameters),
            "settings": settings_json(&parameters, &chosen.settings),
            "seed": chosen.seed,
            "obs_bits": shape.observation_bits,
            "fields": fields,
            "actions": shape.actions,
            "horizon": shape.horizon,
            "horizon_bound": problem.horizon_bound,
            "complexity": complexity(shape).to_raw() as f64 / (1u64 << 32) as f64,
            "reward_range": [shape.reward_min, shape.reward_max],
            "return_range": [shape.return_min, shape.return_max],
            "optimum": units(game.optimum()),
            "random": units(game.random()),
            "clauses": ["GLE-1", "GLE-2"],
        });
        println!("{entry}");
        return;
    }
    println!("{}: {}", family.name(), family.about());
    for parameter in &parameters {
        let now = setting_json(parameter, &chosen.settings).to_string().replace('"', "");
        println!("  {:<14} {:<10} {:<26} {}", parameter.name, now, range_text(parameter), parameter.about);
    }
    println!("{} (rewards in milli-units)", shape_text(shape));
    println!(
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
    format!("{} {}", parameter.name, range_text(parameter))
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

fn settings_json(parameters: &[Parameter], settings: &Settings) -> serde_json::Value {
    let entries =
        parameters.iter().map(|parameter| (parameter.name.to_string(), setting_json(parameter, settings)));
    entries.collect::<serde_json::Map<_, _>>().into()
}

fn setting_json(parameter: &Parameter, settings: &Settings) -> serde_json::Value {
    let found = settings.iter().find(|(name, _)| *name == parameter.name).map(|(_, setting)| setting);
    match (found, parameter.range) {
        (Some(Setting::Number(value)), _) => json!(value),
        (Some(Setting::Choice(index)), Range::Choice { words }) => json!(words[index]),
        _ => serde_json::Value::Null,
    }
}
