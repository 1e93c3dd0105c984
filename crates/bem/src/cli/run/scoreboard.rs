//! What a run shows while it goes on and when it ends.

use crate::cli::solve::to_float;
use bem_base::digest::Digest;
use bem_engine::climb::{Climb, Climbed, Track, Unit, UnitResult};
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
        let style = ProgressStyle::with_template("{spinner} {bar:30} {pos}/{len} rungs  {elapsed}  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        bar.set_position(climb.tracks().iter().map(|track| track.solved() as u64).sum());
        Live { bar }
    }

    /// A unit begins.
    pub fn begin(&self, unit: &Unit) {
        self.bar.set_message(unit.task.clone());
    }

    /// A unit was taken in.
    pub fn unit(&self, result: &UnitResult, climb: &Climb) {
        let solution = &result.solution;
        let score = solution.score().map_or(0.0, to_float);
        let verdict = if solution.is_solved() { "solved" } else { "not yet" };
        let steps = solution.steps_to_99.unwrap_or(solution.learned.tally.steps);
        self.bar.println(format!(
            "  {verdict}  {:<58} score {score:>6.3}  {steps:>7} steps  {:>4} gates  {}",
            shortened(&result.unit.task, 58),
            solution.learned.agent.policy().gates(),
            shortened(&solution.learned.words, 48)
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
pub fn standing(track: &Track) -> String {
    if track.is_at_top() {
        return "top".to_string();
    }
    let tries: Vec<&Climbed> =
        track.climbed.iter().filter(|climbed| climbed.stage == track.solved()).collect();
    let Some(closest) = tries.iter().max_by_key(|climbed| climbed.score) else {
        return if track.climbed.is_empty() { "no time" } else { "time ran out" }.to_string();
    };
    let what = if track.is_stuck() { "stuck" } else { "time ran out" };
    let limit = match closest {
        climbed if to_float(climbed.score) < 0.05 => "no better than random",
        climbed if climbed.applied == 0 => "no circuit explains what was seen",
        climbed if climbed.budget <= climbed.steps => "steps used up",
        _ => "nothing better was found",
    };
    let count = tries.len();
    let tries = if count == 1 { "1 try".to_string() } else { format!("{count} tries") };
    format!("{what} at rung {}: {:.3} in {tries}, {limit}", track.solved() + 1, to_float(closest.score))
}

/// Family, band reached, score, steps, circuit size, proofs.
pub fn table(climb: &Climb) -> String {
    let mut text = format!(
        "\n{:<22} {:>6} {:>7} {:>9} {:>6} {:>7} {:>7}  {}\n",
        "family", "rungs", "score", "steps", "gates", "memory", "proofs", "standing"
    );
    for track in climb.tracks() {
        let Some(climbed) = best(track) else {
            let _ = writeln!(text, "{:<22} {:>6}", track.family, format!("0/{}", track.stages()));
            continue;
        };
        let _ = writeln!(
            text,
            "{:<22} {:>6} {:>7.3} {:>9} {:>6} {:>7} {:>7}  {}",
            track.family,
            format!("{}/{}", track.solved(), track.stages()),
            to_float(climbed.score),
            climbed.steps_to_99.unwrap_or(climbed.steps),
            climbed.policy.gates(),
            climbed.policy.memory_bits(),
            track.climbed.iter().map(|climbed| climbed.proofs).sum::<u32>(),
            standing(track)
        );
    }
    let tops = climb.tracks().iter().filter(|track| track.is_at_top()).count();
    let _ = writeln!(
        text,
        "\n{tops} of {} at the top of {} ladder, {} steps in all\n",
        families(climb.tracks().len()),
        if climb.tracks().len() == 1 { "its" } else { "their" },
        climb.steps()
    );
    text
}

/// So many families, in words.
pub fn families(count: usize) -> String {
    if count == 1 { "1 family".to_string() } else { format!("{count} families") }
}

/// The same for scripts.
pub fn to_json(climb: &Climb, head: &Digest, directory: &Path) -> Value {
    let rung = |climbed: &Climbed| {
        json!({
            "task": climbed.task, "stage": climbed.stage, "attempt": climbed.attempt,
            "solved": climbed.solved, "reused": climbed.reused, "budget": climbed.budget, "score": to_float(climbed.score), "steps": climbed.steps,
            "steps_to_99": climbed.steps_to_99, "gates": climbed.policy.gates(),
            "state_bits": climbed.policy.memory_bits(), "patches_applied": climbed.applied,
            "patches_rejected": climbed.rejected, "proofs_checked": climbed.proofs,
            "hypothesis": climbed.words, "trace_head": climbed.head.to_hex(),
        })
    };
    let families: Vec<Value> = climb
        .tracks()
        .iter()
        .map(|track| {
            json!({
                "family": track.family, "rungs_solved": track.solved(), "rungs": track.stages(),
                "standing": standing(track), "steps": track.steps(), "practised": track.practised.len(),
                "practised_solved": track.practised.iter().filter(|practised| practised.solved).count(),
                "templates": track.templates(), "teach_edits": teach_edits(track), "trace_head": track.head().to_hex(), "climbed": track.climbed.iter().map(rung).collect::<Vec<_>>(),
            })
        })
        .collect();
    let acting = climb.acting();
    json!({
        "seed": climb.config().seed, "steps": climb.steps(), "steps_by_machine": acting.steps_by_machine,
        "acting_changes": acting.changes, "acting_changes_patched": acting.changes_patched, "trace_head": climb.head().to_hex(),
        "ledger_head": head.to_hex(), "out": directory.display().to_string(), "families": families,
    })
}

/// Templates that came through TEACH_EDIT patches: by mutation, and for a counterexample.
fn teach_edits(track: &Track) -> Value {
    let edits = || track.practised.iter().flat_map(|practised| &practised.edits);
    let asked = edits().filter(|edit| edit.situation.is_some()).count();
    json!({ "mutation": edits().count() - asked, "counterexample": asked })
}
