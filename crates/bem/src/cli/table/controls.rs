//! Controls: rewards that mean nothing must teach nothing, and a part that is switched off must be missed exactly
//! where it is needed.

use super::named_game;
use crate::cli::Answer;
use crate::cli::solve::to_float;
use anyhow::{Context as _, Result};
use bem_engine::learner::Settings;
use bem_engine::solve::{Solution, solve};
use bem_machine::config::GenesisConfig;
use serde_json::{Value, json};
use std::sync::Arc;

/// A family and its parameters.
type Task = (&'static str, &'static [&'static str]);

/// Worlds of every kind; all their rewards are replaced by coins.
const COINS: [Task; 8] = [
    ("parity", &["n=8"]),
    ("majority", &["n=5"]),
    ("popcount", &["n=4"]),
    ("compare", &["bits=4"]),
    ("copy", &["length=4"]),
    ("transducer", &["states=2", "inputs=2", "outputs=2", "horizon=8"]),
    ("add", &["bits=4", "form=serial"]),
    ("parity_stream", &["n=6"]),
];

/// What is switched off, which tasks need it, and which do not.
struct Ablation {
    name: &'static str,
    switch: fn(&mut GenesisConfig),
    needed_by: &'static [Task],
    not_needed_by: &'static [Task],
}

const ABLATIONS: [Ablation; 3] = [
    Ablation {
        name: "synthesis",
        switch: |config| config.synthesis = false,
        needed_by: &[
            ("parity", &["n=16"]),
            ("majority", &["n=15"]),
            ("key_value", &[]),
            ("dyck", &[]),
            ("copy", &["length=8"]),
        ],
        not_needed_by: &[("bandit", &["arms=2", "gap=40"]), ("signaling", &["states=4", "noise=0"])],
    },
    Ablation {
        name: "experience",
        switch: |config| config.experience_steps = 0,
        needed_by: &[
            ("parity", &["n=16"]),
            ("majority", &["n=15"]),
            ("key_value", &[]),
            ("copy", &["length=8"]),
        ],
        not_needed_by: &[("bandit", &["arms=2", "gap=40"])],
    },
    Ablation {
        name: "memory structures",
        switch: |config| config.memory_structures = false,
        needed_by: &[
            ("copy", &["length=8"]),
            ("stack_machine", &["depth=4"]),
            ("parity_stream", &["n=12"]),
            ("dyck", &["types=1", "depth=4", "length=16"]),
            ("key_value", &[]),
        ],
        not_needed_by: &[("parity", &["n=16"]), ("majority", &["n=15"]), ("compare", &["bits=8"])],
    },
];

/// A task that needs what is switched off stays below this score.
const MISSED: f64 = 0.9;

/// Runs all controls, `seeds` times each, with this many steps a run.
pub fn run(seeds: u64, budget: u64, config: &Arc<GenesisConfig>, as_json: bool) -> Result<Answer> {
    let settings = |seed| Settings { seed, budget, config: Arc::clone(config) };
    let mut lines: Vec<(String, String, bool)> = Vec::new();
    let mut say = |line: (String, String, bool)| {
        if !as_json {
            say!("{:<4} {:<58} {}", if line.2 { "ok" } else { "FAIL" }, line.0, line.1);
        }
        lines.push(line);
    };
    for task in COINS {
        let mut applied = 0;
        for seed in 1..=seeds {
            applied += learn(task, &["noise=100"], settings(seed))?.learned.tally.applied;
        }
        say((
            format!("coins in {}", words(task)),
            format!("{applied} patches in {seeds} runs"),
            applied == 0,
        ));
    }
    for ablation in &ABLATIONS {
        let tasks = |list: &'static [Task], needed: bool| list.iter().map(move |task| (*task, needed));
        for (task, needed) in tasks(ablation.needed_by, true).chain(tasks(ablation.not_needed_by, false)) {
            let score = learn(task, &[], settings(1).with(ablation.switch))?.score().map_or(0.0, to_float);
            let ok = if needed { score < MISSED } else { MISSED <= score };
            let role = if needed { "must fail" } else { "must not" };
            say((
                format!("without {}: {} ({role})", ablation.name, words(task)),
                format!("score {score:.3}"),
                ok,
            ));
        }
    }
    let all = lines.iter().all(|(_, _, ok)| *ok);
    if as_json {
        let list: Vec<Value> = lines
            .iter()
            .map(|(what, result, ok)| json!({"control": what, "result": result, "ok": ok}))
            .collect();
        say!("{}", json!({ "seeds": seeds, "budget": budget, "controls": list }));
    }
    Ok(if all { Answer::Yes } else { Answer::No })
}

fn words((family, params): Task) -> String {
    format!("{family} {}", params.join(" ")).trim_end().to_string()
}

fn learn((family, params): Task, more: &[&str], settings: Settings) -> Result<Solution> {
    let texts: Vec<String> = params.iter().chain(more).map(|text| (*text).to_string()).collect();
    let game = named_game(family, &texts, settings.seed)?;
    solve(game.as_ref(), settings, &mut |_| true).with_context(|| words((family, params)))
}
