//! The table of floors: every row learned with several seeds, with tabular Q-learning beside it.
//!
//! The rows are tasks with the number of steps an earlier prototype needed; the held-out rows are drawn by a
//! generator from kinds of tasks that the grammar was not written for. Must not know how rows are asked for or shown.
//! Clauses: SCC-8, VM-16.

use crate::counters::Counters;
use crate::figures::to_float;
use crate::{
    Edges, NamedGame, collected, drawn, held_out, machines, paid, processes, q_learning, rows as floors,
};
use anyhow::{Context as _, Result};
use bem_engine::learner::Settings;
use bem_engine::parameters::check_world;
use bem_engine::solve::{Solution, solve};
use bem_games::game::Game;
use bem_games::wrappers::{Scramble, Terms, on_terms, scrambled};
use bem_machine::config::GenesisConfig;
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Arc;

/// One row: a task, and how many steps it took before.
pub struct Row {
    /// What it is called.
    pub name: String,
    pub(crate) floor: Option<u64>,
    pub(crate) build: Box<dyn Fn(u64) -> Result<Arc<dyn Game>>>,
}

impl Row {
    /// A kind of task that is drawn anew for every seed; nobody has learned it before.
    pub(crate) fn drawn(name: &str, build: impl Fn(u64) -> Result<Arc<dyn Game>> + 'static) -> Row {
        Row { name: name.to_string(), floor: None, build: Box::new(build) }
    }
}

/// Which rows are wanted, and on what terms.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Tasks from the generator instead of the table of floors.
    pub held_out: bool,
    /// Only rows whose episodes have more than one step, by the world of this seed.
    pub several_steps: Option<u64>,
    /// How the worlds are disguised, in one of the words of [`Scramble::WORDS`].
    pub scramble: &'a str,
    /// How they treat their player.
    pub terms: Terms,
}

/// The rows that are wanted.
pub fn rows(wanted: Wanted<'_>, named_game: NamedGame) -> Result<Vec<Row>> {
    let rows = if wanted.held_out {
        held_out_rows(wanted.scramble, named_game)
    } else {
        floor_rows(wanted.scramble, named_game)
    };
    let terms = wanted.terms;
    let deprived = |Row { name, floor, build }: Row| Row {
        name,
        floor,
        build: Box::new(move |seed| Ok(on_terms(build(seed)?, terms))),
    };
    let mut long = Vec::new();
    for row in rows {
        // Asked before anything is late: what is late does not make an episode longer.
        let is_long = match wanted.several_steps {
            Some(seed) => 1 < (row.build)(seed)?.shape().horizon,
            None => true,
        };
        if is_long {
            long.push(row);
        }
    }
    Ok(long.into_iter().map(deprived).collect())
}

fn floor_rows(scramble: &str, named_game: NamedGame) -> Vec<Row> {
    floors::FLOORS
        .iter()
        .map(|(task, params, floor)| {
            let mut texts: Vec<String> = params.iter().map(|text| (*text).to_string()).collect();
            let name = format!("{task} {}", params.join(" "));
            texts.push(format!("scramble={scramble}"));
            Row { name, floor: *floor, build: Box::new(move |seed| named_game(task, &texts, seed)) }
        })
        .collect()
}

/// Tasks from the generator, disguised as the rows of the table are.
fn held_out_rows(scramble: &str, named_game: NamedGame) -> Vec<Row> {
    let level = Scramble::WORDS.iter().position(|word| *word == scramble);
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
        machines::rows(named_game),
        held_out::rows(named_game),
        processes::rows(),
    ];
    kinds.into_iter().flatten().map(disguised).collect()
}

/// The runs that every row gets.
pub struct Runs {
    /// One run a seed; at least one.
    pub seeds: Range<u64>,
    /// Steps of one run at most.
    pub budget: u64,
    /// Steps that Q-learning gets; zero leaves it out.
    pub peer_steps: u64,
    /// The frozen parameters.
    pub config: Arc<GenesisConfig>,
}

impl Runs {
    /// Learns a row with every seed.
    pub fn of(&self, row: &Row, edges: &Edges) -> Result<Summary> {
        let started = (edges.wall)();
        let mut solutions: Vec<Solution> = Vec::new();
        let mut counters = Counters::default();
        for seed in self.seeds.clone() {
            let game = (row.build)(seed).with_context(|| row.name.clone())?;
            check_world(&self.config, game.shape())
                .with_context(|| format!("{} does not fit the configuration", row.name))?;
            let settings = Settings { seed, budget: self.budget, config: Arc::clone(&self.config) };
            let solution = solve(game.as_ref(), settings, &mut |_| !(edges.is_asked)())
                .with_context(|| row.name.clone())?;
            counters.take(&row.name, seed, &solution);
            solutions.push(solution);
        }
        let wall_ms = ((edges.wall)() - started).as_millis() / u128::from(self.seeds.end - self.seeds.start);
        let peer = match self.peer_steps {
            0 => None,
            steps => {
                let seed = self.seeds.start;
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
}

/// What the runs of one row came to.
pub struct Summary {
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

    /// The cells of its line, in the order of the columns of the table.
    pub fn to_line(&self) -> String {
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

    /// The same as an object, with the counts of the machine.
    pub fn to_json(&self) -> Value {
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

/// What all rows came to.
pub struct Total {
    /// Runs that ended with a solution.
    pub solved: usize,
    /// All runs.
    pub runs: usize,
    /// The counts of the machines behind them.
    pub counters: Counters,
}

impl Total {
    /// Over these rows.
    pub fn of(summaries: &[Summary]) -> Total {
        let mut total = Total { solved: 0, runs: 0, counters: Counters::default() };
        for summary in summaries {
            total.counters.add(&summary.counters);
            total.solved += summary.solved;
            total.runs += summary.runs;
        }
        total
    }
}
