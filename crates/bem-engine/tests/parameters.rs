//! Every parameter matters: for each the table of parameters names a small run, or a part of the machine, and another
//! value with which its outcome is another one. Those of the machine alone are tried in its own room. Clause: MEM-3.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use bem_base::digest::hash;
use bem_base::encode::Writer;
use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::ids::ObjectId;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Gate, Netlist, Op, Signal};
use bem_engine::learner::Settings;
use bem_engine::parameters::{check_world, scheduler, search_settings, teacher_config};
use bem_engine::solve::{solve, solve_world};
use bem_evolve::apply::Tables;
use bem_evolve::condition::Context;
use bem_evolve::patch::PatchKind;
use bem_evolve::patch::{Body, Change, ExpectedEffects};
use bem_evolve::propose::patch;
use bem_evolve::score::{Measured, PoxState};
use bem_evolve::teach::judge_edit;
use bem_evolve::verify::verify;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_learn::loss::Loss;
use bem_learn::schedule::{Activity, Situation};
use bem_machine::config::{GenesisConfig, Reference};
use bem_machine::family::Family;
use bem_synth::experience::{Episode, Experience, Step};
use bem_synth::functions::FunctionClass;
use bem_synth::functions::minimal::Minimal;
use bem_synth::policy::Policy;
use bem_synth::propose::propose;
use bem_synth::samples::{Row, Samples, Work};
use bem_teacher::ladder::Domain;
use bem_teacher::mutate::{TeachEdit, Transformation};
use bem_teacher::teacher::{Report, Teacher};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The head of a learner's chain after a short run, or why there is none.
fn task_head(config: GenesisConfig, task: &str, steps: u64) -> String {
    let game = TaskTree::parse(task).unwrap().build(1, &NoPrograms).unwrap();
    if let Err(error) = check_world(&config, game.shape()) {
        return error.to_string();
    }
    let settings = Settings { seed: 1, budget: steps, config: Arc::new(config) };
    solve(game.as_ref(), settings, &mut |_| true).unwrap().learned.chain_head.to_hex()
}

/// A teacher's tasks and bytes after many reports, some mutations, and an edit that nests deep.
fn teacher_head(config: &GenesisConfig) -> String {
    let domain = Domain::from_name("parity").unwrap();
    let mut teacher = Teacher::new(teacher_config(config, 1, domain), &NoPrograms).unwrap();
    let pox = PoxState::new(config);
    teacher.raise_frontier(domain, 1);
    let mut writer = Writer::new();
    for step in 0..240u64 {
        let (request, task) = teacher.next_task(&NoPrograms).unwrap().unwrap();
        writer.text(&task.tree.to_string());
        let passed = request.band < 3 || step % 3 == 0;
        let regret = Fixed::from_ratio((step % 5) as i64, 5);
        teacher.report(Report { template: task.template, passed, regret, step, learned: None });
        if let Some(edit) = teacher.maybe_mutate(task.template, &NoPrograms)
            && judge_edit(config, &teacher, step, &edit, &pox).is_ok()
        {
            writer.bool(teacher.admit(&edit, &NoPrograms).is_ok());
        }
        teacher.re_estimate();
    }
    let tree = TaskTree::parse("loop{rounds=2}(seq(parity{n=2},mask(parity{n=3})))").unwrap();
    let parent = teacher.templates()[0].id;
    let (transformation, difficulty) = (Transformation::Focus, Fixed::ONE);
    let edit = TeachEdit { parent, transformation, tree, domain, difficulty };
    writer.text(
        &judge_edit(config, &teacher, 1_000, &edit, &pox)
            .map_or_else(|error| error.to_string(), |_| String::new()),
    );
    teacher.encode(&mut writer);
    hash(writer.as_bytes()).to_hex()
}

/// Scores, thresholds and averages over a list of measurements: first all that is good, then all that is bad.
fn score_head(config: &GenesisConfig) -> String {
    let mut pox = PoxState::new(config);
    let mut text = String::new();
    for round in 0..600u64 {
        let sign = if round < 120 { 1 } else { -1 };
        let measured = Measured {
            return_gain: Fixed::from_ratio(sign, 10),
            gates_saved: sign * 3,
            behaviour_is_equal: round % 4 == 0,
            safety_gain: Fixed::from_ratio(sign, 20),
            novelty: Fixed::from_ratio((round % 3) as i64, 2),
        };
        let score = pox.score(&measured);
        let threshold = pox.threshold();
        pox.book(PatchKind::Synthesize, score, threshold <= score, round);
        text.push_str(&format!("{score} {threshold} {}\n", pox.yield_average()));
    }
    text
}

/// What a scheduler chooses in many situations: left alone with poor rewards, and with good ones after a start in which
/// every activity has its turn.
fn schedule_head(config: &GenesisConfig) -> String {
    let mut writer = Writer::new();
    for (turns, least) in [(0, 0), (30, 3)] {
        let mut scheduler = scheduler(config);
        let mut prng = Prng::stream(1, "tests/schedule");
        for unit in 0..400u64 {
            let share = |part: u64| Loss::from_raw(Loss::ONE.to_raw() / 8 * part);
            let features = [Loss::ONE, share(unit % 2 * 8), share(unit % 9), share(unit / 100)];
            let features = &features[..config.situation_size as usize];
            let situation = Situation { features, safety_alarm: false, possible: [true; 3] };
            let chosen = scheduler.choose(&situation);
            let activity = if unit < turns { Activity::ALL[unit as usize % 3] } else { chosen };
            writer.u8(activity as u8);
            let paid = least + prng.below(6 - least) + activity as u64;
            scheduler.learn(&situation, activity, share(paid));
        }
    }
    hash(writer.as_bytes()).to_hex()
}

/// The smallest circuit that is found for rows of a function of three gates over four of fourteen bits, and what a search
/// finds in a log whose rewards come late.
fn search_head(config: &GenesisConfig) -> String {
    let mut prng = Prng::stream(1, "tests/search");
    let rows = (0..110).map(|_| {
        let row = Row::from_observation(&Bits([prng.below(1 << 14), 0, 0, 0]));
        (row, (row.get(2) ^ row.get(9)) && (row.get(4) || row.get(11)))
    });
    let samples = Samples::new(14, vec![Field { low: 0, width: 14 }], rows, 0);
    let mut work = Work::with_queries(1 << 32, search_settings(config).queries);
    let smallest = Minimal.fit(&samples, &mut work).map_or_else(String::new, |function| function.words);
    let found = propose(&late_shape(), &late_log(), &[], None, &search_settings(config)).hypotheses;
    let words: Vec<String> = found.into_iter().map(|hypothesis| hypothesis.words).collect();
    format!("{smallest}; {}", words.join("; "))
}

/// Five steps, nothing to see; the last one pays what the first action was.
fn late_shape() -> Shape {
    Shape {
        observation_bits: 0,
        actions: 2,
        horizon: 5,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 5_000,
        fields: Vec::new(),
    }
}

/// Even draws in that world; what the other steps pay is chance.
fn late_log() -> Experience {
    let mut prng = Prng::stream(1, "tests/late");
    let mut experience = Experience::default();
    for serial in 0..80 {
        let actions: Vec<u16> = (0..5).map(|_| prng.below(2) as u16).collect();
        let step = |(time, action): (usize, &u16)| Step {
            observation: Bits::ZERO,
            action: *action,
            reward: if time == 4 { 1_000 * i32::from(actions[0]) } else { 300 * prng.below(2) as i32 },
            done: time == 4,
            bad: false,
            uniform: true,
            propensity: u16::MAX / 2,
        };
        let steps = actions.iter().enumerate().map(step).collect();
        experience.push(Episode { serial, steps });
    }
    experience
}

/// The third digit of how many of 18 bits are set, counted in this order.
fn digit_of_count(order: &[usize]) -> Netlist {
    let mut builder = Builder::new(BITS);
    let mut count = [Signal::FALSE; 5];
    for place in order {
        let mut carry = Signal::input(*place);
        for digit in &mut count {
            let next = builder.and(*digit, carry);
            *digit = builder.xor(*digit, carry);
            carry = next;
        }
    }
    builder.finish(&[count[2]]).unwrap()
}

/// More bits than are tried one by one.
const BITS: usize = 18;

/// What the condition of a smaller circuit says that counts in another order, which takes conflicts to prove.
fn condition_head(config: &GenesisConfig) -> String {
    let shape = Shape {
        observation_bits: BITS as u16,
        actions: 2,
        horizon: 1,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 1_000,
        fields: Vec::new(),
    };
    let straight = digit_of_count(&(0..BITS).collect::<Vec<_>>());
    // One gate more than it needs.
    let output = straight.outputs()[0];
    let mut gates = straight.gates().to_vec();
    gates.push(Gate { op: Op::And, a: output, b: output });
    let clumsy = Signal::from_index(2 + BITS + gates.len() - 1);
    let clumsy = Netlist::new(BITS, gates, vec![clumsy]).unwrap();
    let policy = Policy::new(clumsy, (0..BITS as u16).collect(), 0, 2).unwrap();
    let mut family = Family::for_world(config, shape).unwrap();
    let parts = Body::from_policy(&policy, family.layout()).to_parts(0);
    let slot = family.install(config, ObjectId::expert(0, 1), parts).unwrap() as u8;
    let circuit = digit_of_count(&(0..BITS).map(|place| place * 7 % BITS).collect::<Vec<_>>());
    let tables = Tables::default();
    let (change, effects) = (Change::Superoptimize { slot, circuit }, ExpectedEffects::default());
    let patch = patch(&tables, Some(&family), 1, 0, change, effects).unwrap();
    let context = Context { config, tables: &tables, family: Some(&family) };
    verify(patch, &context).map_or_else(|error| error.to_string(), |verified| verified.proofs().to_string())
}

/// A wage at every step, or a larger sum that ends it all: best taken at the last step.
const CLOCK: &str = r#"{"states":2,"actions":2,"horizon":4,"start":[[0,1]],
    "transitions":[[0,0,0,1,400,false],[0,1,1,1,1000,false],[1,0,1,1,0,false],[1,1,1,1,0,false]],"observe":"state"}"#;

fn clock_head(config: GenesisConfig) -> String {
    let game = bem_games::import::mdp::read(CLOCK).unwrap();
    let settings = Settings { budget: 4_000, config: Arc::new(config), ..Settings::new(1) };
    let solution = solve(game.as_ref(), settings, &mut |_| true).unwrap();
    solution.learned.chain_head.to_hex()
}

/// One step, nothing to see, two actions: what pays eight times of ten for a while pays twice of ten afterwards.
struct Turning {
    shape: Shape,
    prng: Prng,
    steps: u64,
}

impl Environment for Turning {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn repeats(&self) -> bool {
        false
    }

    fn reset(&mut self, _: u64) -> Result<(), EnvironmentError> {
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &Bits::ZERO
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let is_best = (action == 0) == (self.steps < 2_000);
        self.steps += 1;
        let paid = self.prng.below(10) < if is_best { 8 } else { 2 };
        Ok(Outcome { reward: 1_000 * i32::from(paid), done: true, bad: false })
    }
}

fn change_head(config: GenesisConfig) -> String {
    let shape = Shape { horizon: 1, return_max: 1_000, ..late_shape() };
    let mut world = Turning { shape, prng: Prng::stream(1, "tests/change"), steps: 0 };
    let settings = Settings { budget: 4_000, config: Arc::new(config), ..Settings::new(1) };
    let settings = settings.with(|config| config.until_budget = true);
    solve_world(&mut world, settings, &mut |_| true).unwrap().learned.chain_head.to_hex()
}

fn head(reference: Reference, config: GenesisConfig) -> Option<String> {
    match reference {
        // Tried with the machine alone.
        Reference::Refused | Reference::Map | Reference::Machine => None,
        Reference::Teacher => Some(teacher_head(&config)),
        Reference::Schedule => Some(schedule_head(&config)),
        Reference::Search => Some(search_head(&config)),
        Reference::Score => Some(score_head(&config)),
        Reference::Condition => Some(condition_head(&config)),
        Reference::Clock => Some(clock_head(config)),
        Reference::Change => Some(change_head(config)),
        Reference::Task { task, steps } => Some(task_head(config, task, steps)),
    }
}

#[test]
fn every_parameter_matters() {
    let (mut known, mut idle) = (BTreeMap::new(), Vec::new());
    for trial in GenesisConfig::TRIALS {
        let of = |file: &str| head(trial.reference, GenesisConfig::from_toml(file).unwrap());
        let key = format!("{:?} {}", trial.reference, trial.given);
        let before = known.entry(key).or_insert_with(|| of(&trial.file())).clone();
        if before.is_some() && before == of(&trial.changed_file()) {
            idle.push(trial.name);
        }
    }
    assert_eq!(idle, Vec::<&str>::new(), "these change nothing");
}
