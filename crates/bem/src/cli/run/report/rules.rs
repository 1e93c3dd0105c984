//! A learned policy as rules, for the report.

use super::{Curves, escaped};
use crate::cli::explain::text;
use crate::kept_world::{encoder_of, kept_files, worlds_of};
use bem_base::environment::Field;
use bem_data::Encoder;
use bem_engine::climb::{Climb, Climbed};
use bem_engine::worlds::World;
use bem_explain::{Explanation, Words, explain, state_diagram};
use std::fmt::Write;

/// Lines of rules that are shown at once.
const SHOWN_LINES: usize = 24;

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
        Some(World::Outside(world) | World::Stated(world, _)) => world.shape().fields.clone(),
        None => Vec::new(),
    }
}

/// What was learned for a task, as rules.
pub fn explanation(climb: &Climb, curves: &Curves, climbed: &Climbed) -> Explanation {
    explain(&climbed.policy, &fields(climb, curves, &climbed.task), names(climb, curves).as_ref())
}

/// The rules of what was learned for a task; many of them are folded away.
pub fn rules(page: &mut String, climb: &Climb, curves: &Curves, climbed: &Climbed, whole: &Explanation) {
    let fields = fields(climb, curves, &climbed.task);
    let names = names(climb, curves);
    let words = Words { reads: climbed.policy.reads(), fields: &fields, names: names.as_ref() };
    let diagram = state_diagram(&climbed.policy, &fields, names.as_ref());
    let text = text(whole, diagram.as_ref(), &words, &|action| format!("action {action}"));
    let exact = if whole.is_exact() { "exact" } else { "a summary" };
    let text = escaped(&text);
    // What it does is shown at once if it is short; what becomes of its memory is folded away with the rest.
    let count = |text: &str| text.lines().count();
    let (shown, folded) = match text.split_once("\n\n") {
        _ if count(&text) <= SHOWN_LINES => (text.as_str(), ""),
        Some((action, rest)) if count(action) <= SHOWN_LINES => (action, rest),
        _ => ("", text.as_str()),
    };
    let _ = write!(page, "<h3>The policy as rules: {exact}</h3>");
    if !shown.is_empty() {
        let _ = write!(page, "<pre class=rules>{shown}</pre>");
    }
    if !folded.is_empty() {
        let more = if shown.is_empty() { "all" } else { "memory," };
        let _ = write!(
            page,
            "<details><summary>{more} {} lines</summary><pre class=rules>{folded}</pre></details>",
            count(folded)
        );
    }
}
