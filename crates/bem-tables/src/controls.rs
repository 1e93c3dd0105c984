//! Controls: rewards that mean nothing must teach nothing, and a part that is switched off must be missed exactly
//! where it is needed. Must not know how a control is shown.

use crate::NamedGame;
use crate::figures::to_float;
use anyhow::{Context as _, Result};
use bem_engine::learner::{EvidenceBasis, Settings};
use bem_engine::solve::{Solution, solve};
use bem_games::wrappers::{Terms, on_terms};
use bem_machine::config::GenesisConfig;
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

/// Holds and counted plans of a run whose rewards are coins, for each decade of its steps: no test has let them in, so that alpha
/// does not bound them, and they have this limit of their own.
const UNTESTED_A_DECADE_MAX: f64 = 4.0;
/// A task that needs what is switched off stays below this score.
const MISSED: f64 = 0.9;

/// One control and how it went.
#[derive(Clone, Debug)]
pub struct Control {
    /// What was tried.
    pub name: String,
    /// What came of it, in words.
    pub result: String,
    /// Whether that is what must come of it.
    pub is_ok: bool,
}

/// Runs all controls, `seeds` times each, with this many steps a run; `show` is told of each when it is done.
pub fn run(
    seeds: u64,
    budget: u64,
    config: &Arc<GenesisConfig>,
    terms: Terms,
    named_game: NamedGame,
    show: &mut dyn FnMut(&Control),
) -> Result<Vec<Control>> {
    let settings = |seed| Settings { seed, budget, config: Arc::clone(config) };
    let learn = |task, more: &[&str], settings| learn(task, more, settings, terms, named_game);
    let mut controls: Vec<Control> = Vec::new();
    let mut add = |name: String, result: String, is_ok: bool| {
        let control = Control { name, result, is_ok };
        show(&control);
        controls.push(control);
    };
    let mut all = Coins::default();
    for (place, task) in COINS.into_iter().enumerate() {
        let mut coins = Coins::default();
        for seed in 1..=seeds {
            // Other seeds in every world: coins look alike whatever they stand for.
            let solution = learn(task, &["noise=100"], settings(seed + 1_000 * place as u64))?;
            coins.take(&solution);
            all.take(&solution);
        }
        // What is tested is judged over all worlds: the share of error is one for a whole run.
        add(format!("coins in {}", words(task)), coins.words(), coins.follows_means_slowly());
    }
    let is_within = all.tested() as f64 <= all.alpha();
    add("coins in all worlds".to_string(), all.words(), is_within && all.follows_means_slowly());
    for ablation in &ABLATIONS {
        let tasks = |list: &'static [Task], needed: bool| list.iter().map(move |task| (*task, needed));
        for (task, needed) in tasks(ablation.needed_by, true).chain(tasks(ablation.not_needed_by, false)) {
            let score = learn(task, &[], settings(1).with(ablation.switch))?.score().map_or(0.0, to_float);
            let is_ok = if needed { score < MISSED } else { MISSED <= score };
            let role = if needed { "must fail" } else { "must not" };
            add(
                format!("without {}: {} ({role})", ablation.name, words(task)),
                format!("score {score:.3}"),
                is_ok,
            );
        }
    }
    Ok(controls)
}

/// What was let in where rewards are coins.
#[derive(Default)]
struct Coins {
    runs: u64,
    /// Patches in force, by the number of the evidence they rest on.
    accepted: [u64; EvidenceBasis::ALL.len()],
    /// Trials that pairs have decided.
    trials: u64,
    /// The most for one run and decade of its steps, of what follows means or counts without a test.
    untested_most: f64,
}

impl Coins {
    fn take(&mut self, solution: &Solution) {
        self.runs += 1;
        let mut untested = 0;
        for decision in &solution.decisions {
            let is_untested = [EvidenceBasis::Means, EvidenceBasis::Counted].contains(&decision.basis);
            self.accepted[decision.basis as usize] += u64::from(decision.accepted);
            let is_trial = [EvidenceBasis::Rollouts, EvidenceBasis::Interleaved].contains(&decision.basis);
            self.trials += u64::from(is_trial);
            untested += u64::from(decision.accepted && is_untested);
        }
        let decades = (solution.learned.tally.steps.max(10) as f64).log10();
        self.untested_most = self.untested_most.max(untested as f64 / decades);
    }

    fn of(&self, basis: EvidenceBasis) -> u64 {
        self.accepted[basis as usize]
    }

    /// Acceptances that rest on episodes played, paired or interleaved.
    fn measured(&self) -> u64 {
        self.of(EvidenceBasis::Rollouts) + self.of(EvidenceBasis::Interleaved)
    }

    /// Acceptances that a test has let in: under coins each of them is an error.
    fn tested(&self) -> u64 {
        self.measured() + self.of(EvidenceBasis::Logged)
    }

    /// The share of error of all runs: what is tested in one run may go wrong with a chance of one in twenty.
    fn alpha(&self) -> f64 {
        self.runs as f64 / 20.0
    }

    /// Plain actions and counted plans follow the log without a test; they may change with its decades.
    fn follows_means_slowly(&self) -> bool {
        self.untested_most <= UNTESTED_A_DECADE_MAX
    }

    fn words(&self) -> String {
        format!(
            "{} runs: {} on rollouts of {} trials, {} on the log, alpha at most {:.1}; {} holds, {} counted plans, at most {:.1} a \
             run and decade of steps, where {UNTESTED_A_DECADE_MAX:.1} are allowed because no test bounds them",
            self.runs,
            self.measured(),
            self.trials,
            self.of(EvidenceBasis::Logged),
            self.alpha(),
            self.of(EvidenceBasis::Means),
            self.of(EvidenceBasis::Counted),
            self.untested_most
        )
    }
}

fn words((family, params): Task) -> String {
    format!("{family} {}", params.join(" ")).trim_end().to_string()
}

fn learn(
    (family, params): Task,
    more: &[&str],
    settings: Settings,
    terms: Terms,
    named_game: NamedGame,
) -> Result<Solution> {
    let texts: Vec<String> = params.iter().chain(more).map(|text| (*text).to_string()).collect();
    let game = on_terms(named_game(family, &texts, settings.seed)?, terms);
    solve(game.as_ref(), settings, &mut |_| true).with_context(|| words((family, params)))
}
