//! A learned policy as rules, for the report.

use super::{Curves, escaped};
use crate::cli::explain::text;
use crate::kept_world::{encoder_of, kept_files, worlds_of};
use bem_base::environment::Field;
use bem_data::Encoder;
use bem_engine::climb::{Climb, Climbed};
use bem_engine::worlds::World;
use bem_explain::{Words, explain, state_diagram};
use std::fmt::Write;

/// How named features of the run's world become bits, where they are named.
fn names(climb: &Climb, curves: &Curves) -> Option<Encoder> {
    encoder_of(&kept_files(curves.directory(), climb.files()).ok()?)
}

/// How the world of a task groups its bits; nothing where it cannot be opened any more.
fn fields(climb: &Climb, curves: &Curves, task: &str) -> Vec<Field> {
    let world = worlds_of(curves.directory(), climb.files())
        .ok()
        .and_then(|worlds| worlds.open(task, climb.config().seed).ok());
    match world {
        Some(World::Game(game)) => game.shape().fields.clone(),
        Some(World::Outside(world)) => world.shape().fields.clone(),
        None => Vec::new(),
    }
}

/// The rules of what was learned for a task.
pub fn rules(page: &mut String, climb: &Climb, curves: &Curves, climbed: &Climbed) {
    let fields = fields(climb, curves, &climbed.task);
    let names = names(climb, curves);
    let words = Words { reads: climbed.policy.reads(), fields: &fields, names: names.as_ref() };
    let whole = explain(&climbed.policy, &fields);
    let diagram = state_diagram(&climbed.policy, &fields);
    let _ = write!(
        page,
        "<details><summary>the policy for {} as rules: {}</summary><pre class=rules>{}</pre></details>",
        escaped(&climbed.task),
        if whole.is_exact() { "exact" } else { "a summary" },
        escaped(&text(&whole, diagram.as_ref(), &words, &|action| format!("action {action}")))
    );
}
