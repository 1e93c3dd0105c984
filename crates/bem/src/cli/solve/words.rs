//! What `bem solve` says: one JSON object, or a summary that fits 80 columns.

use super::look::Look;
use crate::cli::fit::{WIDTH, wrapped};
use crate::learned::ADAPTING;
use crate::measured::Measured;
use bem_base::fixed::Fixed;
use bem_base::plain::plain;
use bem_base::words::quantity;
use bem_engine::learner::guarding::USER_RULES_OUT;
use bem_engine::learner::{Decision, EvidenceBasis, Repetition, Shortfall, Tally};
use bem_engine::solve::{Point, Solution};
use bem_evolve::improvement::Evidence;
use bem_explain::counts_steps;
use bem_tables::figures::{Figures, to_float};
use bem_tables::losses::Losses;
use serde_json::{Map, Value, json};

fn units(value: Fixed) -> f64 {
    (to_float(value) * 1e3).round() / 1e6
}

/// What a run brought, and how it compares.
#[derive(Clone, Copy)]
pub struct Told<'a> {
    pub solution: &'a Solution,
    /// The final evaluation with its baselines; none where nothing was evaluated.
    pub measured: Option<&'a Measured>,
    /// What best play on the same seeds earned more, where it was played.
    pub losses: Option<&'a Losses>,
    /// What was seen before the first step.
    pub looked: &'a Look,
    pub wall_ms: u64,
}

impl Told<'_> {
    fn is_evaluated(&self) -> bool {
        0 < self.solution.evaluation.episodes
    }

    /// The final score, if it was evaluated and can be told.
    pub fn score(&self) -> Option<Fixed> {
        self.solution.score().filter(|_| self.is_evaluated())
    }

    /// Whether the final score is high enough.
    pub fn is_solved(&self) -> bool {
        self.is_evaluated() && self.solution.is_solved()
    }

    fn figures(&self) -> Figures {
        Figures::of(self.solution, self.losses)
    }
}

/// The keys of `bem solve --json`.
pub fn to_json(seed: u64, task: (&str, Map<String, Value>), told: &Told<'_>) -> Value {
    let Told { solution, measured, wall_ms, .. } = *told;
    let learned = &solution.learned;
    let mut object = json!({
        "task": task.0,
        "params": task.1,
        "seed": seed,
        "solved": told.is_solved(),
        "steps": learned.tally.steps,
        "steps_to_99": solution.steps_to_99,
        "score": told.score().map(to_float),
        "random": solution.yardstick.map(|yardstick| units(yardstick.random)),
        "optimum": solution.yardstick.map(|yardstick| units(yardstick.optimum)),
        "return_mean": told.is_evaluated().then(|| units(solution.evaluation.mean)),
        "episodes": learned.tally.episodes,
        "wall_ms": wall_ms,
        "gates": learned.agent.policy().gates(),
        "state_bits": learned.agent.policy().memory_bits(),
        "counts_steps": 0 < counts_steps(learned.agent.policy()),
        "patches_applied": learned.tally.applied,
        "patches_rejected": learned.tally.rejected,
        "patches_undecided": undecided(solution),
        "proofs_checked": learned.tally.proofs,
        "steps_since_high_score": learned.steps_since_high_score,
        "replay": learned.tally.repetition == Repetition::Claimed,
        "resets": learned.tally.resets,
        "episodes_abandoned": learned.tally.abandoned,
        "rewards_late": learned.tally.late,
        "rewards_expired": learned.tally.expired,
        "range_widened": learned.tally.widened,
        "changes_noticed": learned.tally.changed,
        "episodes_left_to_baseline": learned.tally.left,
        "shortfall": learned.shortfall.map(|short| json!({
            "contexts": short.contexts,
            "compared": short.compared,
            "mean": units(short.mean),
        })),
        "steps_by_machine": learned.tally.steps_by_machine,
        "acting_changes": learned.tally.acting_changes,
        "acting_changes_patched": learned.tally.acting_changes_patched,
        "hypothesis": learned.words,
        "trace_head": learned.chain_head.to_hex(),
    });
    told.looked.add_to(&mut object);
    Measured::add_to(measured, &mut object);
    told.figures().add_to(&mut object);
    object
}

/// Patches whose condition was neither shown nor refuted within its budget of conflicts; none of them was let in.
fn undecided(solution: &Solution) -> usize {
    solution.decisions.iter().filter(|decision| decision.is_undecided()).count()
}

/// A line of the summary: a name, and text that goes on below itself.
fn line(name: &str, text: &str) {
    const INDENT: usize = 15;
    let lines = wrapped(text, WIDTH - INDENT);
    for (place, part) in lines.iter().enumerate() {
        say!("  {:<13}{part}", if place == 0 { name } else { "" });
    }
}

/// The summary on a terminal.
pub fn print_summary(name: &str, seed: u64, told: &Told<'_>) {
    let Told { solution, measured, looked, wall_ms, .. } = *told;
    let learned = &solution.learned;
    let verdict = match (told.score(), solution.yardstick) {
        (None, None) => "learned; the optimum is unknown",
        (None, Some(_)) => "learned; nothing was evaluated",
        (Some(_), _) if told.is_solved() => "solved",
        (Some(_), _) => "not solved",
    };
    wrapped(&format!("{name} (seed {seed}): {verdict}"), WIDTH).iter().for_each(|line| say!("{line}"));
    print_returns(solution, measured);
    let to_99 = match (solution.steps_to_99, told.score()) {
        (Some(steps), _) => format!("; score 0.99 from step {steps} on"),
        (None, Some(_)) => "; score 0.99 not reached".to_string(),
        // A world outside has returns, not scores, and what was not evaluated has neither.
        (None, None) => String::new(),
    };
    let (steps, episodes) = (learned.tally.steps, learned.tally.episodes);
    let taken = match steps == episodes {
        true => format!("{steps}, each an episode"),
        false => format!("{steps} in {}", quantity(episodes, "episode")),
    };
    line("steps", &format!("{taken}, {wall_ms} ms{to_99}"));
    line("online", &told.figures().line());
    looked.lines().iter().chain(&terms(&learned.tally)).for_each(|text| line("world", text));
    if let Some(Shortfall { contexts, compared, mean }) = learned.shortfall {
        line("unexplained", &unexplained(contexts, compared, units(mean)));
    }
    let policy = learned.agent.policy();
    let (gates, bits, reads) = (policy.gates(), policy.memory_bits(), policy.reads().len());
    line("circuit", &circuit_words(gates, bits, reads));
    line("hypothesis", &plain(&learned.words));
    if 0 < counts_steps(policy) {
        line("warning", COUNTING);
    }
    if learned.agent.adapts() {
        line("warning", ADAPTING);
    }
    solution.decisions.iter().for_each(print_decision);
    if let Some(since) = learned.steps_since_high_score {
        line("evolution", &saturation(since, steps));
    }
    say_text!("{}", plot(&solution.curve));
    if told.score().is_some() && !told.is_solved() {
        line("what helps", advice(solution));
    }
    say!("  trace head   {}", learned.chain_head);
}

/// How saturated the search for structure was at the end of so many steps, in words.
pub fn saturation(since: u64, steps: u64) -> String {
    match since < steps {
        true => format!("the newest patch whose score stood out is {since} of {steps} steps old"),
        false => format!("no score of a patch has stood out in {steps} steps"),
    }
}

/// The size of a circuit in words.
pub fn circuit_words(gates: usize, memory: usize, reads: usize) -> String {
    let (gates, memory) = (quantity(gates, "gate"), quantity(memory, "memory bit"));
    format!("{gates}, {memory}, reads {}", quantity(reads, "bit"))
}

/// What the model cannot represent, in words.
pub fn unexplained(contexts: u32, compared: u32, mean: f64) -> String {
    format!(
        "earned {mean:.3} less a step than was predicted in {contexts} of {}: something that matters is neither read nor \
         remembered by what acts, or the world has changed",
        quantity(compared, "context")
    )
}

/// What a run found out about its world that the world had not said, or that costs something: a line each.
pub fn terms(tally: &Tally) -> Vec<String> {
    let mut lines = Vec::new();
    match tally.repetition {
        Repetition::Claimed => {}
        Repetition::Denied => lines.push("cannot be repeated: candidates were measured without pairs".to_string()),
        Repetition::Refuted => lines.push(
            "does not repeat an episode by its seed, although it claims to: pairs are void, candidates were measured without \
             them"
                .to_string(),
        ),
    }
    let counted = |count: u64, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {many}")),
    };
    let (abandoned, expired) = (tally.abandoned, tally.expired);
    lines.extend(counted(
        abandoned,
        "episode was cut off: it could not be brought back",
        "episodes were cut off: they could not be brought back",
    ));
    lines.extend(counted(
        expired,
        "reward never came and counts as nothing",
        "rewards never came and count as nothing",
    ));
    lines.extend(counted(
        tally.left,
        "episode was left to the baseline: there was nothing to pay for a try",
        "episodes were left to the baseline: there was nothing to pay for a try",
    ));
    if 0 < tally.widened {
        lines.push("paid beyond the range that it had said: the range was widened".to_string());
    }
    lines.extend(counted(
        tally.changed,
        "change was noticed: what was seen before it was forgotten, and exploration was opened again",
        "changes were noticed: what was seen before them was forgotten, and exploration was opened again",
    ));
    lines
}

/// What is said of a policy with a clock.
pub const COUNTING: &str = "the policy counts steps since the start of an episode: it is made for episodes that end, not \
    for a world without end";

/// The return with its interval, and the baselines below it.
fn print_returns(solution: &Solution, measured: Option<&Measured>) {
    let Some(measured) = measured else {
        line("return", "not measured (--eval-episodes 0)");
        return;
    };
    let figure = &measured.policy;
    let episodes = figure.episodes;
    line(
        "return",
        &format!("{} (95 % interval, {}, policy frozen)", figure.text(), quantity(episodes, "episode")),
    );
    if 0 < figure.bad {
        line("", &format!("{} of these episodes had an event that must not happen", figure.bad));
    }
    if let Some(compared) = &measured.baselines {
        for (place, (name, figure)) in compared.rows().into_iter().enumerate() {
            let label = if place == 0 { "baselines" } else { "" };
            line(label, &format!("{:<17} {name}", figure.text()));
        }
    }
    if let Some(standing) = measured.standing() {
        line("gain", &standing.text());
    }
    match (solution.score(), solution.yardstick) {
        (Some(score), Some(yardstick)) => line(
            "score",
            &format!(
                "{:.4}: 0 is random play ({:.3}), 1 the optimum ({:.3})",
                to_float(score),
                units(yardstick.random),
                units(yardstick.optimum)
            ),
        ),
        _ => line("optimum", "unknown: compare the return with the baselines"),
    }
}

fn print_decision(decision: &Decision) {
    let Evidence { pairs, mean, lower_bound, .. } = decision.evidence;
    let speaks = match decision.words.ends_with(USER_RULES_OUT) {
        true => "proven; declared by the user, no evidence needed".to_string(),
        false => support(decision.basis, decision.accepted, pairs, to_float(mean), to_float(lower_bound)),
    };
    let words = plain(&decision.words);
    let is_sized = decision.gates == 0 || words.contains(" gate");
    let text = format!(
        "{words}{}: {}",
        if is_sized { String::new() } else { format!(" ({})", quantity(decision.gates, "gate")) },
        if speaks.is_empty() { &decision.reason } else { &speaks },
    );
    let verdict = if decision.accepted { "install" } else { "reject" };
    for (place, part) in wrapped(&text, WIDTH - 21).iter().enumerate() {
        match place {
            0 => say!("  {:>8}  {verdict:<7}  {part}", decision.steps),
            _ => say!("{:21}{part}", ""),
        }
    }
}

/// What speaks for a patch, or against it, in words; nothing where none of it was looked at.
pub fn support(basis: EvidenceBasis, accepted: bool, pairs: u32, mean: f64, lower_bound: f64) -> String {
    match (pairs, accepted, basis) {
        (1.., _, EvidenceBasis::Interleaved) => {
            let played = quantity(pairs, "interleaved episode");
            format!("{played}, mean gain {mean:+.3}, at least {lower_bound:+.3}")
        }
        (1.., ..) => {
            let played = quantity(pairs, "pair");
            format!("{played} of episodes, mean gain {mean:+.3}, at least {lower_bound:+.3}")
        }
        // How much the log says is in the words of the patch, because it is another measure for every kind.
        (0, true, EvidenceBasis::Counted) => "its predicted returns were earned".to_string(),
        (0, true, EvidenceBasis::Proof) => "proven, no action changes".to_string(),
        (0, true, EvidenceBasis::Given) => "nothing is measured".to_string(),
        // What earned most so far is followed where it was better in the log, with or without a bound.
        (0, true, EvidenceBasis::Means) => "its mean in the log is higher".to_string(),
        (0, true, _) if 0.0 < lower_bound => "lower bound from logged steps".to_string(),
        (0, true, _) => "no action changes".to_string(),
        (0, false, _) => String::new(),
    }
}

/// What may bring more, by what the run showed.
fn advice(solution: &Solution) -> &'static str {
    let steps = solution.learned.tally.steps;
    let is_cut = solution.decisions.iter().any(|decision| decision.reason.contains("no budget is left"));
    // The last point is the final evaluation, not a change.
    let changes = solution.curve.split_last().map_or(&[][..], |(_, changes)| changes);
    let is_gaining = changes.last().is_some_and(|point| steps / 2 < point.steps);
    if is_cut || is_gaining {
        "it was still getting better when the budget ended: try a larger --budget"
    } else if solution.learned.tally.applied == 0 {
        "nothing was found that plays better than a choice by what is seen: fields that group the observation bits, rewards \
         nearer to the action, shorter episodes or a larger --budget may help"
    } else {
        "nothing better was found for long: what the observation hides would have to be shown, or remembered by a structure \
         of docs/grammar.md"
    }
}

/// The learning curve as a small plot: each line is one change of the acting policy.
fn plot(curve: &[Point]) -> String {
    // The final evaluation is the last change's once more where nothing has changed since.
    let curve = match curve {
        [rest @ .., change, last] if change == last => &curve[..=rest.len()],
        _ => curve,
    };
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
