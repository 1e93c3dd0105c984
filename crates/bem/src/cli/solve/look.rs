//! A look at a program's world before the first step: where the values of its numbers lie within their declared bounds.
//!
//! A number is cut by places over its bounds. Where a few steps at random show nearly all of its values in a few of its levels, the
//! places are cut anew where the values lie, before anything is learned; they stay from then on, and the run keeps them. These
//! steps are said, bounded, and counted apart from the budget; they keep to what is forbidden. They are no part of the history:
//! the run's folder names them in `look.json`, and from there in report and `evaluation.json`. Nobody looks where a
//! baseline must not be fallen below. Clauses: GLE-9, SCC-8; decision D-317.

use crate::interrupt;
use crate::kept_world::{encoder_of, kept_files};
use crate::task::Outside;
use anyhow::{Context as _, Result};
use bem_base::environment::{Bits, Environment as _, Forbidden};
use bem_base::prng::Prng;
use bem_base::words::quantity;
use bem_games::import::pipe::ROWS_MAX;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Steps after which a world is left alone whose numbers use their levels.
const STEPS_MIN: usize = 64;
/// Steps of a look at most.
pub const STEPS_MAX: usize = ROWS_MAX;

/// The file in the run's folder that says what a look took and changed.
pub const NAME: &str = "look.json";

/// What a look took and changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Steps taken.
    pub steps: u64,
    /// Those of them with an event that must not happen.
    pub bad: u64,
    /// The numbers that are cut where their values lie.
    pub cut: Vec<String>,
}

impl Look {
    /// A line of the summary, where something was changed.
    pub fn lines(&self) -> Vec<String> {
        let cut = self.cut.join(", of ");
        let line = || {
            format!(
                "thresholds of {cut} are cut where values were seen: {} at random before the first step",
                quantity(self.steps as usize, "step")
            )
        };
        if self.cut.is_empty() { Vec::new() } else { vec![line()] }
    }

    /// The look of the run in this folder; where none is kept, nobody looked.
    pub fn kept(directory: &Path) -> Result<Look> {
        let path = directory.join(NAME);
        if !path.exists() {
            return Ok(Look::default());
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Writes it into a run's folder; where nobody looked, there is no file.
    pub fn keep(&self, directory: &Path) -> Result<()> {
        let path = directory.join(NAME);
        let named = || format!("{} cannot be written", path.display());
        if *self == Look::default() {
            return if path.exists() { std::fs::remove_file(&path).with_context(named) } else { Ok(()) };
        }
        let aside = path.with_extension("tmp");
        std::fs::write(&aside, serde_json::to_string(self)? + "\n")
            .and_then(|()| std::fs::rename(&aside, &path))
            .with_context(named)
    }

    /// The keys `steps_before`, `bad_before` and `cut` of a command's JSON.
    pub fn add_to(&self, object: &mut Value) {
        object["steps_before"] = json!(self.steps);
        object["bad_before"] = json!(self.bad);
        object["cut"] = json!(self.cut);
    }

    /// What is said of a kept policy: the steps before the first one, where there were any.
    pub fn told(&self) -> Option<String> {
        (0 < self.steps).then(|| format!("look: {}", self.words()))
    }

    /// What people are told.
    fn words(&self) -> String {
        let steps = quantity(self.steps as usize, "step");
        let bad = match self.bad {
            0 => String::new(),
            bad => format!(" ({bad} of them BAD)"),
        };
        let found = match self.cut.as_slice() {
            [] => "the declared ranges fit".to_string(),
            cut => format!("thresholds of {} are cut where its values lie", cut.join(", of ")),
        };
        format!(
            "{steps} at random before the first one{bad}, to see where numbers lie; not counted in the budget: {found}"
        )
    }
}

/// Looks at a world, and cuts what is crowded anew.
pub fn look(world: &mut Outside, seed: u64, is_quiet: bool) -> Result<Look> {
    let mut looked = Look::default();
    let horizon = world.shape().horizon;
    let is_cut_off = STEPS_MAX < horizon as usize && !world.repeats();
    if is_cut_off || !world.declared().is_some_and(|declared| declared.has_numbers()) {
        return Ok(looked);
    }
    let played = play(world, seed, &mut looked);
    // Ctrl-C may end the program as well. What was seen until then cuts nothing, so that no run depends on the moment.
    if interrupt::is_asked() {
        return Ok(looked);
    }
    played.context("the world failed in the look before the first step")?;
    world.forget_looks();
    let Some(declared) = world.declared() else { return Ok(looked) };
    if let Some(finer) = declared.cut_at(world.rows(), world.shape().actions, horizon) {
        looked.cut = declared.crowded(world.rows()).into_iter().map(str::to_string).collect();
        world.take_encoder(&finer.encoder);
    }
    if !is_quiet {
        note!("bem: {}", looked.words());
    }
    Ok(looked)
}

/// Plays a few episodes at random, to their ends where they cannot come back.
fn play(world: &mut Outside, seed: u64, looked: &mut Look) -> Result<()> {
    let mut random = Prng::stream(seed, "look");
    let mut bad: BTreeSet<(Bits, u16)> = BTreeSet::new();
    while !is_enough(world, looked.steps) {
        world.reset(random.next_u64())?;
        // Where seeds repeat, an episode may be cut off: the next one begins with its own.
        while !(interrupt::is_asked() || world.repeats() && STEPS_MAX <= looked.steps as usize) {
            let seen = *world.observation();
            let left: Vec<u16> = Forbidden::left(world.forbidden(), seen, world.shape().actions).collect();
            let good: Vec<u16> =
                left.iter().copied().filter(|action| !bad.contains(&(seen, *action))).collect();
            let choice = if good.is_empty() { &left } else { &good };
            let action = choice[random.below(choice.len() as u64) as usize];
            let outcome = world.step(action)?;
            looked.steps += 1;
            if outcome.bad {
                looked.bad += 1;
                bad.insert((seen, action));
            }
            if outcome.done {
                break;
            }
        }
    }
    Ok(())
}

/// Whether enough was seen: little where every number uses its levels.
fn is_enough(world: &Outside, steps: u64) -> bool {
    let is_crowded = || world.declared().is_some_and(|declared| !declared.crowded(world.rows()).is_empty());
    let steps = steps as usize;
    interrupt::is_asked() || STEPS_MAX <= steps || STEPS_MIN <= steps && !is_crowded()
}

/// Takes the places of a run over the same features, so that what was learned there fits exactly; false where there are none, or
/// where one is missing that a rule of this world needs.
pub fn take_places(world: &mut Outside, directory: &Path) -> bool {
    let kept = || {
        let (climb, _) = crate::cli::snapshot::newest_climb(directory).ok()?;
        encoder_of(&kept_files(directory, climb.files()).ok()?)
    };
    directory.is_dir() && kept().is_some_and(|encoder| world.take_encoder(&encoder))
}

/// The numbers of which nearly nothing was told apart, in words that say what helps.
pub fn warnings(world: &Outside) -> Vec<String> {
    let blurred = world.declared().map_or_else(Vec::new, |declared| declared.blurred(world.rows()));
    let said = |(name, levels): (&str, String)| {
        format!(
            "values of {name} are hardly told apart: all that were seen last lie where {levels}; declare \"min\" and \"max\" \
             nearer to where they lie"
        )
    };
    blurred.into_iter().map(said).collect()
}
