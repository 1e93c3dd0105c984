//! A learned policy as rules, for the report: the rules themselves, what it remembers as a diagram, and why it acts as it does
//! on a few observations of its world. The words and drawings are those of `bem-explain`. Clauses: GLE-9, SCC-14.

use super::{Curves, escaped};
use crate::cli::snapshot::newest_climb;
use crate::kept_world::{encoder_of, kept_files, worlds_from};
use bem_base::environment::{Bits, Environment, EnvironmentError, Field};
use bem_data::Encoder;
use bem_engine::climb::{Climb, Climbed};
use bem_engine::seeds::{Domain, Seeds};
use bem_engine::world_file::WorldFile;
use bem_engine::worlds::World;
use bem_explain::examples::examples;
use bem_explain::{Explainable, Explanation, StateDiagram, html, text};
use bem_synth::policy::{Player, Policy};
use std::fmt::Write;
use std::path::Path;

/// Lines of rules that are shown at once.
const SHOWN_LINES: usize = 24;
/// Steps of episodes whose observations may be examples, and what a summary of a policy is about.
const STEPS_MAX: usize = 4_096;
/// Episodes that are played where none were recorded.
const EPISODES: usize = 32;

/// A policy with all that is shown of it.
pub struct PolicyPart<'a> {
    policy: &'a Policy,
    observation_bits: usize,
    fields: Vec<Field>,
    names: Option<Encoder>,
    horizon: Option<u32>,
    /// Episodes of its world, each as what was seen.
    seen: Vec<Vec<Bits>>,
    /// What it does.
    pub whole: Explanation,
    diagram: Option<StateDiagram>,
}

impl<'a> PolicyPart<'a> {
    /// What was learned for a task; without groups of bits and observations where its world cannot be opened any more.
    pub fn new(climb: &Climb, curves: &Curves, climbed: &'a Climbed) -> PolicyPart<'a> {
        let files = kept_files(curves.directory(), climb.files()).ok();
        let names = files.as_deref().and_then(encoder_of);
        let mut seen = files.as_deref().map_or_else(Vec::new, recorded);
        let world = files
            .and_then(|files| worlds_from(files).ok())
            .and_then(|worlds| worlds.open(&climbed.task, climb.config().seed).ok());
        let shape = world.as_ref().map(|world| match world {
            World::Game(game) => game.shape().clone(),
            World::Outside(world) | World::Stated(world, _) => world.shape().clone(),
        });
        if let (Some(World::Game(game)), true) = (&world, seen.is_empty()) {
            seen = played(game.start().as_mut(), &climbed.policy, climb.config().seed).unwrap_or_default();
        }
        let last = climbed.policy.reads().last().map_or(0, |bit| usize::from(*bit) + 1);
        let bits = shape.as_ref().map_or(last, |shape| usize::from(shape.observation_bits));
        let horizon = shape.as_ref().map(|shape| shape.horizon);
        let fields = shape.map_or_else(Vec::new, |shape| shape.fields);
        let subject = Explainable {
            policy: &climbed.policy,
            observation_bits: bits,
            fields: &fields,
            names: names.as_ref(),
            actions: &[],
            horizon,
        };
        let (whole, diagram) = (subject.explain_met(&seen), subject.diagram());
        let policy = &climbed.policy;
        PolicyPart { policy, observation_bits: bits, fields, names, horizon, seen, whole, diagram }
    }

    fn subject(&self) -> Explainable<'_> {
        Explainable {
            policy: self.policy,
            observation_bits: self.observation_bits,
            fields: &self.fields,
            names: self.names.as_ref(),
            actions: &[],
            horizon: self.horizon,
        }
    }

    /// The rules; many of them are folded away.
    pub fn rules(&self, page: &mut String) {
        let text = text::policy(&self.subject(), &self.whole, self.diagram.as_ref());
        let exact = if self.whole.is_exact() { "exact" } else { "a summary" };
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

    /// What it remembers, and why it acts as it does.
    pub fn reasons(&self, page: &mut String) {
        let subject = self.subject();
        page.push_str(&html::states(&subject, &self.whole, self.diagram.as_ref()));
        let source = match self.seen.is_empty() {
            true => "drawn from those that can occur",
            false => "each was seen in an episode of this world",
        };
        let examples = examples(&subject, &self.whole.action, &self.seen);
        page.push_str(&html::reasons(&subject, self.diagram.as_ref(), &examples, source));
    }
}

/// The latest episodes of the world of a run, as they were recorded; none where there is no such run, or its world is a game.
pub fn recorded_in(directory: &Path) -> Vec<Vec<Bits>> {
    if !directory.is_dir() {
        return Vec::new();
    }
    let climb = newest_climb(directory).ok().map(|(climb, _)| climb);
    let files = climb.and_then(|climb| kept_files(directory, climb.files()).ok());
    files.as_deref().map_or_else(Vec::new, recorded)
}

/// The latest episodes of a world outside, as they were recorded; none where the world is a game.
fn recorded(files: &[Vec<u8>]) -> Vec<Vec<Bits>> {
    let file = files.first().and_then(|bytes| WorldFile::from_bytes(bytes).ok());
    let Some(WorldFile::Record(record)) = file.as_ref().and_then(WorldFile::world) else { return Vec::new() };
    let mut steps = 0;
    let mut latest: Vec<Vec<Bits>> = (record.episodes().iter().rev())
        .take_while(|episode| {
            let is_first = steps == 0;
            steps += episode.steps.len();
            is_first || steps <= STEPS_MAX
        })
        .map(|episode| episode.steps.iter().map(|step| step.observation).collect())
        .collect();
    latest.reverse();
    latest
}

/// What the policy sees in a few evaluation episodes.
fn played(
    world: &mut dyn Environment,
    policy: &Policy,
    run_seed: u64,
) -> Result<Vec<Vec<Bits>>, EnvironmentError> {
    let mut seeds = Seeds::new(run_seed, Domain::Evaluation);
    let mut player = Player::new(policy);
    let (mut episodes, mut steps) = (Vec::new(), 0);
    while episodes.len() < EPISODES && steps < STEPS_MAX {
        world.reset(seeds.next_seed())?;
        player.begin();
        let mut seen = Vec::new();
        loop {
            seen.push(*world.observation());
            steps += 1;
            if world.step(player.act(world.observation()))?.done {
                break;
            }
        }
        episodes.push(seen);
    }
    Ok(episodes)
}
