//! The five contexts: what a person is shown with a question, whole enough to be judged from it alone.
//!
//! The fields of the specification come first; what is needed to draw the question follows. Must not know how it is drawn.
//! Clause: HUM-4.

use super::{Fields, PayloadError, ints, map, one_spelling, refuse};
use crate::cbor::Item;
use crate::control::Control;
use crate::kinds::QuestionKind;
use crate::{CONTEXT_BYTES_MAX, RANKED_MAX};
use bem_base::encode::{Reader, Writer};
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;

/// Actions that are shown of a step.
pub const CANDIDATES_MAX: usize = 16;
/// Steps that are shown of an episode, the first ones.
pub const STEPS_SHOWN_MAX: usize = 48;
/// Bytes of a text in a context.
pub const WORDS_BYTES_MAX: usize = 2_048;

/// One action that might have been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The action.
    pub action: u16,
    /// How often it was tried in this context.
    pub visits: u32,
    /// What it cost on average, from zero (best) to one.
    pub mean_loss: Fixed,
    /// Its optimistic loss: the lowest is chosen.
    pub index: Fixed,
}

/// A step of an episode that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownStep {
    /// What was seen.
    pub observation: Bits,
    /// What was done.
    pub action: u16,
    /// What it brought, in milli-units.
    pub reward: i32,
    /// Whether it was BAD.
    pub bad: bool,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_CTX_STEP")]
pub struct StepContext {
    /// The world.
    pub task: u16,
    /// The context that the observation falls into.
    pub context_hash: u64,
    /// What might have been done, the best index first.
    pub candidates: Vec<Candidate>,
    /// What was done.
    pub chosen: u16,
    /// What it brought, if that has come.
    pub reward: Option<i32>,
    /// The step of its episode.
    pub step_index: u32,
    /// The first decision of its episode.
    pub episode: u64,
    /// The decision.
    pub decision: u64,
    /// What was seen.
    pub observation: Bits,
    /// Whether it was BAD.
    pub bad: bool,
    /// Why it is asked: 1 close candidates, 2 BAD, 4 a rare context, 8 somebody asked.
    pub cause: u8,
}

/// One episode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_CTX_EPISODE")]
pub struct EpisodeContext {
    /// Its first decision.
    pub episode: u64,
    /// The world.
    pub task: u16,
    /// Its steps.
    pub length: u32,
    /// What it earned, in milli-units.
    pub return_env: i64,
    /// What it counts for.
    pub return_shaped: i64,
    /// What it earned less than the mean, in milli-units.
    pub regret: i64,
    /// 1 BAD, 2 among the worst, 4 among the best, 8 somebody asked.
    pub flags: u32,
    /// Its first steps.
    pub steps: Vec<ShownStep>,
}

/// One change of the acting policy that waits, or took effect and is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_CTX_PATCH")]
pub struct PatchContext {
    /// The first eight bytes of the change's digest.
    pub patch: u64,
    /// The kind of its last patch, by stored number.
    pub kind: u8,
    /// Its score.
    pub pox_score: Fixed,
    /// What it gains in return, safety, cost and novelty, as measured: the lower bound of the gain in return, and by how many
    /// gates the circuit is smaller. Safety and novelty are not measured of a change and stay at zero.
    pub deltas: [Fixed; 4],
    /// 1 touches BAD contexts, 2 forbidden actions, 4 exploration, 8 near the threshold, 16 every change is asked about, 32 a template
    /// that the machine takes up by itself, 64 somebody called an episode unsafe.
    pub risks: u32,
    /// The world.
    pub task: u16,
    /// The changes in words, line by line.
    pub words: String,
    /// The policy in force and the one proposed, by the first eight bytes of their digests.
    pub policies: [u64; 2],
    /// Proofs that the checker accepted.
    pub proofs: u32,
    /// Whether it is in force already.
    pub in_force: bool,
    /// What an approval must add to its score; zero where it reaches the threshold by itself.
    pub missing: Fixed,
}

/// One thing that could be learned first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// The world.
    pub template: u16,
    /// Its name.
    pub name: String,
    /// Decisions so far.
    pub usage: u64,
    /// Mean return as a share of the range of returns.
    pub pass_rate: Fixed,
    /// Bits that are seen, as a measure of how hard it is.
    pub difficulty: u16,
}

/// What could be learned first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_CTX_TEMPLATES")]
pub struct TemplatesContext {
    /// All of them.
    pub templates: Vec<Ranked>,
}

/// The control, and what speaks for changing it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_CTX_CONFIG")]
pub struct ConfigContext {
    /// As it is.
    pub control: Control,
    /// Decisions, BAD outcomes, and questions that were dropped.
    pub safety: [u64; 3],
    /// Patches let in, turned down and waiting.
    pub patches: [u64; 3],
    /// Why it is asked.
    pub words: String,
}

/// A context of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// Of [`QuestionKind::LabelStep`].
    Step(StepContext),
    /// Of [`QuestionKind::ScoreEpisode`].
    Episode(EpisodeContext),
    /// Of [`QuestionKind::ApprovePatch`].
    Patch(PatchContext),
    /// Of [`QuestionKind::RankTemplates`].
    Templates(TemplatesContext),
    /// Of [`QuestionKind::AdjustConfig`].
    Config(ConfigContext),
}

fn words_of(observation: &Bits) -> Item {
    ints(observation.0.iter().map(|word| *word as i64))
}

fn bits_of(items: &[i64], name: &'static str) -> Result<Bits, PayloadError> {
    match items {
        [a, b, c, d] => Ok(Bits([*a as u64, *b as u64, *c as u64, *d as u64])),
        _ => refuse(name, format!("{name} must be four words")),
    }
}

const ANY: core::ops::RangeInclusive<i64> = i64::MIN..=i64::MAX;

fn row(item: Item, name: &'static str, width: usize) -> Result<Vec<i64>, PayloadError> {
    let Item::List(items) = item else { return refuse(name, format!("{name} must hold lists")) };
    let numbers: Option<Vec<i64>> =
        items.iter().map(|item| if let Item::Int(value) = item { Some(*value) } else { None }).collect();
    match numbers.filter(|numbers| numbers.len() == width) {
        Some(numbers) => Ok(numbers),
        None => refuse(name, format!("{name} must hold lists of {width} whole numbers")),
    }
}

fn narrow<T: TryFrom<i64>>(value: i64, name: &'static str) -> Result<T, PayloadError> {
    T::try_from(value).or_else(|_| refuse(name, format!("{name} {value} is out of range")))
}

impl Context {
    /// The kind of question that it is shown with.
    pub const fn kind(&self) -> QuestionKind {
        match self {
            Context::Step(_) => QuestionKind::LabelStep,
            Context::Episode(_) => QuestionKind::ScoreEpisode,
            Context::Patch(_) => QuestionKind::ApprovePatch,
            Context::Templates(_) => QuestionKind::RankTemplates,
            Context::Config(_) => QuestionKind::AdjustConfig,
        }
    }

    /// What it is about.
    pub fn target(&self) -> u64 {
        match self {
            Context::Step(context) => context.decision,
            Context::Episode(context) => context.episode,
            Context::Patch(context) => context.patch,
            Context::Templates(_) | Context::Config(_) => 0,
        }
    }

    /// The world that it is about, if it is about one.
    pub fn world(&self) -> Option<u16> {
        match self {
            Context::Step(context) => Some(context.task),
            Context::Episode(context) => Some(context.task),
            Context::Patch(context) => Some(context.task),
            Context::Templates(_) | Context::Config(_) => None,
        }
    }

    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let int = |value: i64| Item::Int(value);
        match self {
            Context::Step(step) => {
                let candidate = |one: &Candidate| {
                    ints([
                        i64::from(one.action),
                        i64::from(one.visits),
                        one.mean_loss.to_raw(),
                        one.index.to_raw(),
                    ])
                };
                map(vec![
                    int(i64::from(step.task)),
                    int(step.context_hash as i64),
                    Item::List(step.candidates.iter().map(candidate).collect()),
                    int(i64::from(step.chosen)),
                    step.reward.map_or(Item::Null, |reward| int(i64::from(reward))),
                    int(i64::from(step.step_index)),
                    int(step.episode as i64),
                    int(step.decision as i64),
                    words_of(&step.observation),
                    int(i64::from(step.bad)),
                    int(i64::from(step.cause)),
                ])
            }
            Context::Episode(episode) => {
                let step = |step: &ShownStep| {
                    let words = step.observation.0.iter().map(|word| *word as i64);
                    ints(words.chain([i64::from(step.action), i64::from(step.reward), i64::from(step.bad)]))
                };
                map(vec![
                    int(episode.episode as i64),
                    int(i64::from(episode.task)),
                    int(i64::from(episode.length)),
                    int(episode.return_env),
                    int(episode.return_shaped),
                    int(episode.regret),
                    int(i64::from(episode.flags)),
                    Item::List(episode.steps.iter().map(step).collect()),
                ])
            }
            Context::Patch(patch) => {
                let mut fields = vec![
                    int(patch.patch as i64),
                    int(i64::from(patch.kind)),
                    int(patch.pox_score.to_raw()),
                    ints(patch.deltas.iter().map(|delta| delta.to_raw())),
                    int(i64::from(patch.risks)),
                    int(i64::from(patch.task)),
                    Item::Text(patch.words.clone()),
                    ints(patch.policies.iter().map(|policy| *policy as i64)),
                    int(i64::from(patch.proofs)),
                    int(i64::from(patch.in_force)),
                ];
                // Contexts of before this field have none.
                fields.extend((Fixed::ZERO < patch.missing).then(|| int(patch.missing.to_raw())));
                map(fields)
            }
            Context::Templates(context) => map(vec![
                Item::List(context.templates.iter().map(|one| Item::Text(one.name.clone())).collect()),
                Item::List(
                    context
                        .templates
                        .iter()
                        .map(|one| {
                            ints([
                                i64::from(one.template),
                                one.usage as i64,
                                one.pass_rate.to_raw(),
                                i64::from(one.difficulty),
                            ])
                        })
                        .collect(),
                ),
            ]),
            Context::Config(context) => {
                let mut writer = Writer::new();
                context.control.encode(&mut writer);
                map(vec![
                    ints(writer.as_bytes().iter().map(|byte| i64::from(*byte))),
                    ints(context.safety.iter().map(|count| *count as i64)),
                    ints(context.patches.iter().map(|count| *count as i64)),
                    Item::Text(context.words.clone()),
                ])
            }
        }
    }

    /// Reads the context of a question of this kind.
    pub fn from_bytes(kind: QuestionKind, bytes: &[u8]) -> Result<Context, PayloadError> {
        let mut fields = Fields::read(bytes, CONTEXT_BYTES_MAX)?;
        let context = match kind {
            QuestionKind::LabelStep => Context::Step(read_step(&mut fields)?),
            QuestionKind::ScoreEpisode => Context::Episode(read_episode(&mut fields)?),
            QuestionKind::ApprovePatch => Context::Patch(read_patch(&mut fields)?),
            QuestionKind::RankTemplates => Context::Templates(read_templates(&mut fields)?),
            QuestionKind::AdjustConfig => Context::Config(read_config(&mut fields)?),
        };
        fields.finish()?;
        one_spelling(context.to_bytes() == bytes)?;
        Ok(context)
    }
}

fn read_step(fields: &mut Fields) -> Result<StepContext, PayloadError> {
    let task = fields.int(1, "task_id", 0..=i64::from(u16::MAX))? as u16;
    let context_hash = fields.int(2, "context_hash", ANY)? as u64;
    let rows = fields.list(3, "candidates", CANDIDATES_MAX)?;
    let candidate = |item: Item| -> Result<Candidate, PayloadError> {
        let row = row(item, "candidates", 4)?;
        Ok(Candidate {
            action: narrow(row[0], "candidates")?,
            visits: narrow(row[1], "candidates")?,
            mean_loss: Fixed::from_raw(row[2]),
            index: Fixed::from_raw(row[3]),
        })
    };
    Ok(StepContext {
        task,
        context_hash,
        candidates: rows.into_iter().map(candidate).collect::<Result<_, _>>()?,
        chosen: fields.int(4, "chosen_id", 0..=1_023)? as u16,
        reward: fields
            .maybe_int(5, "reward_observed", i64::from(i32::MIN)..=i64::from(i32::MAX))?
            .map(|reward| reward as i32),
        step_index: fields.int(6, "step_index", 0..=i64::from(u32::MAX))? as u32,
        episode: fields.int(7, "episode_id", 0..=i64::MAX)? as u64,
        decision: fields.int(8, "decision", 0..=i64::MAX)? as u64,
        observation: bits_of(&fields.ints(9, "observation", 4, ANY)?, "observation")?,
        bad: fields.int(10, "bad", 0..=1)? == 1,
        cause: fields.int(11, "cause", 0..=255)? as u8,
    })
}

fn read_episode(fields: &mut Fields) -> Result<EpisodeContext, PayloadError> {
    let step = |item: Item| -> Result<ShownStep, PayloadError> {
        let row = row(item, "steps", 7)?;
        Ok(ShownStep {
            observation: bits_of(&row[..4], "steps")?,
            action: narrow(row[4], "steps")?,
            reward: narrow(row[5], "steps")?,
            bad: row[6] == 1,
        })
    };
    Ok(EpisodeContext {
        episode: fields.int(1, "episode_id", 0..=i64::MAX)? as u64,
        task: fields.int(2, "task_id", 0..=i64::from(u16::MAX))? as u16,
        length: fields.int(3, "length", 0..=i64::from(u32::MAX))? as u32,
        return_env: fields.int(4, "return_env", ANY)?,
        return_shaped: fields.int(5, "return_shaped", ANY)?,
        regret: fields.int(6, "regret_est", ANY)?,
        flags: fields.int(7, "flags", 0..=i64::from(u32::MAX))? as u32,
        steps: fields.list(8, "steps", STEPS_SHOWN_MAX)?.into_iter().map(step).collect::<Result<_, _>>()?,
    })
}

fn read_patch(fields: &mut Fields) -> Result<PatchContext, PayloadError> {
    let patch = fields.int(1, "patch_id", ANY)? as u64;
    let kind = fields.int(2, "patch_kind", 0..=255)? as u8;
    let pox_score = Fixed::from_raw(fields.int(3, "pox_score", ANY)?);
    let deltas = fields.ints(4, "deltas", 4, ANY)?;
    let [r, s, c, i] = deltas[..] else { return refuse("deltas", "deltas must be four numbers") };
    let risks = fields.int(5, "risk_flags", 0..=i64::from(u32::MAX))? as u32;
    let task = fields.int(6, "task_id", 0..=i64::from(u16::MAX))? as u16;
    let words = fields.text(7, "words")?;
    let policies = fields.ints(8, "policies", 2, ANY)?;
    let [before, after] = policies[..] else { return refuse("policies", "policies must be two numbers") };
    Ok(PatchContext {
        patch,
        kind,
        pox_score,
        deltas: [r, s, c, i].map(Fixed::from_raw),
        risks,
        task,
        words,
        policies: [before as u64, after as u64],
        proofs: fields.int(9, "proofs", 0..=i64::from(u32::MAX))? as u32,
        in_force: fields.int(10, "in_force", 0..=1)? == 1,
        missing: Fixed::from_raw(fields.maybe_int(11, "missing", 1..=i64::MAX)?.unwrap_or(0)),
    })
}

fn read_templates(fields: &mut Fields) -> Result<TemplatesContext, PayloadError> {
    let names = fields.list(1, "template_ids", RANKED_MAX)?;
    let rows = fields.list(2, "stats", RANKED_MAX)?;
    if names.len() != rows.len() || names.is_empty() {
        return refuse("stats", "every template has its own statistics");
    }
    let one = |(name, item): (Item, Item)| -> Result<Ranked, PayloadError> {
        let Item::Text(name) = name else { return refuse("template_ids", "template_ids must be text") };
        let row = row(item, "stats", 4)?;
        Ok(Ranked {
            template: narrow(row[0], "stats")?,
            name,
            usage: row[1] as u64,
            pass_rate: Fixed::from_raw(row[2]),
            difficulty: narrow(row[3], "stats")?,
        })
    };
    Ok(TemplatesContext { templates: names.into_iter().zip(rows).map(one).collect::<Result<_, _>>()? })
}

fn read_config(fields: &mut Fields) -> Result<ConfigContext, PayloadError> {
    let bytes: Vec<u8> = fields.ints(1, "control", 64, 0..=255)?.into_iter().map(|byte| byte as u8).collect();
    let mut reader = Reader::new(&bytes);
    let control = match Control::decode(&mut reader) {
        Ok(control) if reader.remaining() == 0 => control,
        _ => return refuse("control", "control is none that is in range"),
    };
    let counts = |items: Vec<i64>, name| match items[..] {
        [a, b, c] => Ok([a as u64, b as u64, c as u64]),
        _ => refuse(name, format!("{name} must be three counts")),
    };
    let safety = counts(fields.ints(2, "safety", 3, 0..=i64::MAX)?, "safety")?;
    let patches = counts(fields.ints(3, "patches", 3, 0..=i64::MAX)?, "patches")?;
    Ok(ConfigContext { control, safety, patches, words: fields.text(4, "words")? })
}
