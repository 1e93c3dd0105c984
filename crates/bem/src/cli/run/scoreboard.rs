//! What a run shows while it goes on and when it ends.

use super::report::{Curves, Unexplained};
use crate::cli::fit::{WIDTH, wrapped};
use crate::cli::solve::saturation;
use crate::measured::{Measured, units};
use bem_base::digest::Digest;
use bem_base::words::quantity;
use bem_engine::climb::{Climb, Climbed, Practised, Track, Unit, UnitResult};
use bem_explain::counts_steps;
use bem_tables::figures::to_float;
use bem_teacher::mutate::Transformation;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Progress on a terminal; nothing when piped.
pub struct Live {
    bar: ProgressBar,
}

impl Live {
    /// A bar over all rungs.
    pub fn new(visible: bool, climb: &Climb) -> Live {
        let rungs: usize = climb.tracks().iter().map(Track::stages).sum();
        let bar = if visible { ProgressBar::new(rungs as u64) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{spinner} {bar:20} {pos}/{len} rungs  {elapsed}  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        bar.set_position(climb.tracks().iter().map(|track| track.solved() as u64).sum());
        Live { bar }
    }

    /// A unit begins.
    pub fn begin(&self, unit: &Unit) {
        self.bar.set_message(shortened(&unit.task, 34));
    }

    /// A unit was taken in.
    pub fn unit(&self, result: &UnitResult, climb: &Climb) {
        let solution = &result.solution;
        let verdict = if solution.is_solved() { "solved" } else { "not yet" };
        let steps = solution.steps_to_99.unwrap_or(solution.learned.tally.steps);
        let score =
            solution.score().map_or("      ".to_string(), |score| format!("{:>6.3}", to_float(score)));
        self.bar.println(format!(
            "  {verdict:<7}  {:<34} {score} {steps:>7} steps {:>5} gates",
            shortened(&result.unit.task, 34),
            solution.learned.agent.policy().gates(),
        ));
        self.bar.set_position(climb.tracks().iter().map(|track| track.solved() as u64).sum());
    }

    /// The bar goes away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The first letters of a text, with a mark where it was cut.
pub fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_string();
    }
    text.chars().take(letters - 1).chain(['…']).collect()
}

/// The highest rung solved, or the last one tried.
pub fn best(track: &Track) -> Option<&Climbed> {
    track.climbed.iter().rev().find(|climbed| climbed.solved).or(track.climbed.last())
}

/// Why a family is not at the top: which rung, how far it came there, and what is in the way.
pub fn standing(track: &Track, curves: &Curves) -> String {
    if track.is_at_top() {
        return "top".to_string();
    }
    let tries: Vec<&Climbed> =
        track.climbed.iter().filter(|climbed| climbed.stage == track.solved()).collect();
    let Some(closest) = tries.iter().max_by_key(|climbed| climbed.score) else {
        return if track.climbed.is_empty() { "no time" } else { "time ran out" }.to_string();
    };
    let curve = curves.of(closest);
    if curve.is_some_and(|curve| curve.optimum.is_none()) {
        let measured = curve.and_then(|curve| curve.measured.as_ref());
        let figure = measured.map_or("not measured".to_string(), |measured| measured.policy.text());
        return format!("return {figure}, optimum unknown");
    }
    let limit = match closest {
        climbed if to_float(climbed.score) < 0.05 => "no better than random",
        climbed if climbed.applied == 0 => "no circuit explains what was seen",
        climbed if climbed.budget <= climbed.steps => "budget used up",
        _ => "nothing better was found",
    };
    let score = to_float(closest.score);
    if track.stages() == 1 {
        return format!("not solved: score {score:.3}, {limit}");
    }
    let what = if track.is_stuck() { "stuck" } else { "time ran out" };
    let tries = quantity(tries.len(), "try");
    format!("{what} at rung {}: {score:.3} in {tries}, {limit}", track.solved() + 1)
}

/// Family, rungs, score, steps, circuit size, proofs; what is in the way stands below.
pub fn table(climb: &Climb, curves: &Curves) -> String {
    let mut text = format!(
        "\n{:<21} {:>5} {:>6} {:>16} {:>8} {:>6} {:>6}\n",
        "family", "rungs", "score", "return", "steps", "gates", "proofs"
    );
    for track in climb.tracks() {
        let rungs = format!("{}/{}", track.solved(), track.stages());
        let family = shortened(&track.family, 21);
        let Some(climbed) = best(track) else {
            let _ = writeln!(text, "{family:<21} {rungs:>5}");
            continue;
        };
        let curve = curves.of(climbed);
        let is_known = curve.is_none_or(|curve| curve.optimum.is_some());
        let score = if is_known { format!("{:.3}", to_float(climbed.score)) } else { "-".to_string() };
        let measured = curve.and_then(|curve| curve.measured.as_ref());
        let _ = writeln!(
            text,
            "{family:<21} {rungs:>5} {score:>6} {:>16} {:>8} {:>6} {:>6}",
            measured.map_or(String::new(), |measured| measured.policy.text()),
            climbed.steps_to_99.unwrap_or(climbed.steps),
            climbed.policy.gates(),
            track.climbed.iter().map(|climbed| climbed.proofs).sum::<u32>(),
        );
        let stands = (!track.is_at_top()).then(|| standing(track, curves));
        let unexplained = curve.and_then(|curve| curve.unexplained.as_ref().map(Unexplained::text));
        for line in [stands, saturated(track, curves), unexplained]
            .iter()
            .flatten()
            .flat_map(|said| wrapped(said, WIDTH - 4))
        {
            let _ = writeln!(text, "    {line}");
        }
    }
    if 1 < climb.config().stages {
        let tops = climb.tracks().iter().filter(|track| track.is_at_top()).count();
        let (families, steps) = (quantity(climb.tracks().len(), "family"), climb.steps());
        let ladder = if climb.tracks().len() == 1 { "its ladder" } else { "their ladders" };
        let _ = writeln!(text, "\n{tops} of {families} at the top of {ladder}, {steps} steps in all");
        text.push_str(&practised(climb));
        let moved: usize = climb.tracks().iter().map(Track::re_estimated).sum();
        if 0 < moved {
            let _ = writeln!(
                text,
                "difficulty of {} re-estimated from what came of them",
                quantity(moved, "template")
            );
        }
    }
    text.push('\n');
    text
}

/// Whether a family that is not at the top still found something in its latest try.
fn saturated(track: &Track, curves: &Curves) -> Option<String> {
    let latest = track.climbed.last().filter(|_| !track.is_at_top())?;
    let since = curves.of(latest)?.steps_since_high_score?;
    Some(format!("in the latest try {}", saturation(since, latest.steps)))
}

/// What was practised beside the rungs, and the first composition across families that was solved.
fn practised(climb: &Climb) -> String {
    let all = || climb.tracks().iter().flat_map(|track| &track.practised);
    if all().next().is_none() {
        return String::new();
    }
    let mut across = all().filter(|practised| practised.solved && practised.is_across_families());
    let (units, first) = (quantity(all().count(), "task"), across.next());
    let mut text = format!("{units} of practice");
    if let Some(first) = first {
        let count = quantity(1 + across.count(), "composition");
        let _ = write!(text, "; {count} across families solved, the first {}", first.task);
    }
    let lines = wrapped(&text, WIDTH);
    lines.iter().fold(String::new(), |text, line| text + line + "\n")
}

/// The same for scripts.
pub fn to_json(climb: &Climb, curves: &Curves, head: &Digest, directory: &Path) -> Value {
    let rung = |track: &Track, climbed: &Climbed| {
        let curve = curves.of(climbed);
        let measured = curve.and_then(|curve| curve.measured.as_ref());
        let is_known = curve.is_none_or(|curve| curve.optimum.is_some());
        let mut object = json!({
            "task": climbed.task, "stage": climbed.stage, "attempt": climbed.attempt,
            "solved": climbed.solved, "reused": climbed.reused, "budget": climbed.budget, "score": is_known.then(|| to_float(climbed.score)), "steps": climbed.steps,
            "steps_to_99": climbed.steps_to_99, "gates": climbed.policy.gates(),
            "state_bits": climbed.policy.memory_bits(), "patches_applied": climbed.applied,
            "patches_rejected": climbed.rejected, "proofs_checked": climbed.proofs,
            "steps_since_high_score": curve.and_then(|curve| curve.steps_since_high_score),
            "hypothesis": climbed.words, "trace_head": climbed.head.to_hex(),
            "return_mean": measured.map(|measured| units(measured.policy.mean)),
            "counts_steps": 0 < counts_steps(&climbed.policy),
        });
        Measured::add_to(measured, &mut object);
        object["difficulty"] = difficulty(track, climbed);
        object
    };
    let families: Vec<Value> = climb
        .tracks()
        .iter()
        .map(|track| {
            json!({
                "family": track.family, "rungs_solved": track.solved(), "rungs": track.stages(),
                "standing": standing(track, curves), "steps": track.steps(), "practised": track.practised.len(),
                "practised_solved": track.practised.iter().filter(|practised| practised.solved).count(),
                "templates": track.templates(), "teach_edits": by_origin(|kind| track.edited_by(kind)),
                "practised_from": by_origin(|kind| track.practised_by(kind)), "requests": track.requests(),
                "re_estimated": track.re_estimated(),
                "compositions_solved": compositions(track), "trace_head": track.head().to_hex(), "climbed": track.climbed.iter().map(|climbed| rung(track, climbed)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let acting = climb.acting();
    json!({
        "seed": climb.config().seed, "steps": climb.steps(), "steps_by_machine": acting.steps_by_machine,
        "acting_changes": acting.changes, "acting_changes_patched": acting.changes_patched, "trace_head": climb.head().to_hex(),
        "scheduled": {
            "act": acting.scheduled.units[0], "synth": acting.scheduled.units[1], "verify": acting.scheduled.units[2],
            "safety_alarms": acting.scheduled.alarms,
        },
        "barriers": acting.barriers.passed, "priors_moved": acting.barriers.moved,
        "ledger_head": head.to_hex(), "out": directory.display().to_string(), "families": families,
    })
}

/// The difficulty of a rung as the logarithm of steps, base two: by its structure, and re-estimated while the run goes on. Nothing
/// where no teacher knows the task.
fn difficulty(track: &Track, climbed: &Climbed) -> Value {
    let known = track.difficulty_of(&climbed.task);
    known.map_or(Value::Null, |known| {
        let [estimated, re_estimated] = known.map(to_float);
        json!({ "estimated": estimated, "re_estimated": re_estimated })
    })
}

/// Templates that came through TEACH_EDIT patches, or units that practised them: by mutation, for a counterexample, by
/// composition with another family, and out of the trace.
fn by_origin(count: impl Fn(Transformation) -> usize) -> Value {
    let mutation: usize = Transformation::ALL.into_iter().map(&count).sum();
    json!({
        "mutation": mutation, "counterexample": count(Transformation::Focus),
        "contradiction": count(Transformation::Contradict),
        "composition": count(Transformation::Compose), "trace": count(Transformation::Extract),
    })
}

/// Compositions across families that were solved, with the steps that they took.
fn compositions(track: &Track) -> Vec<Value> {
    let solved = |practised: &&Practised| practised.solved && practised.is_across_families();
    let shown = |practised: &Practised| json!({ "task": practised.task, "steps": practised.steps });
    track.practised.iter().filter(solved).map(shown).collect()
}
