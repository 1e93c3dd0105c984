//! The five answers, and how payloads are read: maps with small keys, key 0 the version.
//!
//! A field that is missing, out of range or unknown is named. Contexts are in [`context`]. Must not know what an answer
//! does. Clause: HUM-4.

pub mod context;

use crate::cbor::{Item, decode, encode};
use crate::control::DELTA_MAX;
use crate::kinds::{Decision, Mode, QuestionKind};
use crate::{ANSWER_BYTES_MAX, RANKED_MAX};
use bem_base::fixed::Fixed;

/// The version of all payloads.
pub const VERSION: i64 = 1;

/// Why a payload is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PayloadError {
    /// The field that is wrong.
    pub field: &'static str,
    /// What is wrong with it, and what is allowed.
    pub reason: String,
}

pub(crate) fn refuse<T>(field: &'static str, reason: impl Into<String>) -> Result<T, PayloadError> {
    Err(PayloadError { field, reason: reason.into() })
}

/// The fields of a payload that is being read.
pub(crate) struct Fields(Vec<(u64, Item)>);

impl Fields {
    /// Reads a map whose version is known.
    pub(crate) fn read(bytes: &[u8], bytes_max: usize) -> Result<Fields, PayloadError> {
        if bytes_max < bytes.len() {
            return refuse("payload", format!("the payload has {} bytes: at most {bytes_max}", bytes.len()));
        }
        let Some(Item::Map(fields)) = decode(bytes) else {
            return refuse("payload", "the payload is no map in deterministic CBOR");
        };
        let mut fields = Fields(fields);
        fields.int(0, "version", VERSION..=VERSION)?;
        Ok(fields)
    }

    pub(crate) fn take(&mut self, key: u64) -> Option<Item> {
        let place = self.0.iter().position(|(known, _)| *known == key)?;
        Some(self.0.remove(place).1).filter(|item| *item != Item::Null)
    }

    pub(crate) fn maybe_int(
        &mut self,
        key: u64,
        name: &'static str,
        range: core::ops::RangeInclusive<i64>,
    ) -> Result<Option<i64>, PayloadError> {
        match self.take(key) {
            None => Ok(None),
            Some(Item::Int(value)) if range.contains(&value) => Ok(Some(value)),
            Some(Item::Int(value)) => {
                refuse(name, format!("{name} {value} is out of range: {} to {}", range.start(), range.end()))
            }
            Some(_) => refuse(name, format!("{name} must be a whole number")),
        }
    }

    pub(crate) fn int(
        &mut self,
        key: u64,
        name: &'static str,
        range: core::ops::RangeInclusive<i64>,
    ) -> Result<i64, PayloadError> {
        match self.maybe_int(key, name, range)? {
            Some(value) => Ok(value),
            None => refuse(name, format!("{name} is missing")),
        }
    }

    pub(crate) fn fixed(
        &mut self,
        key: u64,
        name: &'static str,
        low: Fixed,
        high: Fixed,
    ) -> Result<Fixed, PayloadError> {
        match self.take(key) {
            Some(Item::Int(raw)) if low.to_raw() <= raw && raw <= high.to_raw() => Ok(Fixed::from_raw(raw)),
            Some(Item::Int(raw)) => {
                refuse(name, format!("{name} {} is out of range: {low} to {high}", Fixed::from_raw(raw)))
            }
            Some(_) => refuse(name, format!("{name} must be a fixed-point number")),
            None => refuse(name, format!("{name} is missing")),
        }
    }

    pub(crate) fn text(&mut self, key: u64, name: &'static str) -> Result<String, PayloadError> {
        match self.take(key) {
            Some(Item::Text(text)) => Ok(text),
            _ => refuse(name, format!("{name} must be text")),
        }
    }

    pub(crate) fn list(
        &mut self,
        key: u64,
        name: &'static str,
        count_max: usize,
    ) -> Result<Vec<Item>, PayloadError> {
        match self.take(key) {
            Some(Item::List(items)) if items.len() <= count_max => Ok(items),
            Some(Item::List(items)) => {
                refuse(name, format!("{name} has {} items: at most {count_max}", items.len()))
            }
            _ => refuse(name, format!("{name} must be a list")),
        }
    }

    pub(crate) fn ints(
        &mut self,
        key: u64,
        name: &'static str,
        count_max: usize,
        range: core::ops::RangeInclusive<i64>,
    ) -> Result<Vec<i64>, PayloadError> {
        let items = self.list(key, name, count_max)?;
        let int = |item: Item| match item {
            Item::Int(value) if range.contains(&value) => Ok(value),
            _ => refuse(
                name,
                format!("{name} must hold whole numbers from {} to {}", range.start(), range.end()),
            ),
        };
        items.into_iter().map(int).collect()
    }

    pub(crate) fn finish(self) -> Result<(), PayloadError> {
        match self.0.first() {
            None => Ok(()),
            Some((key, _)) => refuse("payload", format!("field {key} is unknown")),
        }
    }
}

/// A field that may be empty is null, not left out: there is one spelling.
pub(crate) fn one_spelling(is_same: bool) -> Result<(), PayloadError> {
    if is_same { Ok(()) } else { refuse("payload", "a field is left out: what is empty must be null") }
}

pub(crate) fn ints(values: impl IntoIterator<Item = i64>) -> Item {
    Item::List(values.into_iter().map(Item::Int).collect())
}

pub(crate) fn map(fields: Vec<Item>) -> Vec<u8> {
    encode(&Item::Map((0..).zip([Item::Int(VERSION)].into_iter().chain(fields)).collect()))
}

/// What a person says about one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_ANS_STEP")]
pub struct StepAnswer {
    /// The action was right.
    pub accept: bool,
    /// The action that would have been best, if one is named.
    pub best: Option<u16>,
    /// How good the decision was, from zero to one.
    pub score: Fixed,
    /// A category of remarks.
    pub comment: u16,
}

/// What a person says about one episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_ANS_EPISODE")]
pub struct EpisodeAnswer {
    /// How good it was, from zero to one.
    pub score: Fixed,
    /// 0 must not be learned from, 1 may, 2 serves the curriculum only.
    #[doc(alias = "keep_flag")]
    pub keep: u8,
    /// What stands out: 1 its safety ([`TAG_SAFETY`]), 2 its quality, 4 its novelty.
    #[doc(alias = "tag_bits")]
    pub tags: u32,
}

/// An episode was not safe: changes in its world are critical while the answer stands.
pub const TAG_SAFETY: u32 = 1;

/// What a person says about one patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_ANS_PATCH")]
pub struct PatchAnswer {
    /// The decision.
    pub decision: Decision,
    /// What is risky about it.
    pub risks: u32,
    /// How much the approval counts, from zero to one.
    pub weight: Fixed,
}

/// What a person says about what should be learned first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_ANS_TEMPLATES")]
pub struct TemplatesAnswer {
    /// Places in the question's list, the most wanted first; a permutation of all.
    pub order: Vec<u8>,
    /// Scores from zero to one in the order of the question's list; may be left out.
    pub scores: Vec<Fixed>,
}

/// What a person says about the control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(alias = "HINL_ANS_CONFIG")]
pub struct ConfigAnswer {
    /// Another value, or none.
    pub enable_online: Option<bool>,
    /// Another value, or none.
    pub safety_override_mode: Option<Mode>,
    /// What is added to the confidence and to the four weights, in the order of the control.
    pub deltas: [Fixed; 5],
}

/// An answer of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Of [`QuestionKind::LabelStep`].
    Step(StepAnswer),
    /// Of [`QuestionKind::ScoreEpisode`].
    Episode(EpisodeAnswer),
    /// Of [`QuestionKind::ApprovePatch`].
    Patch(PatchAnswer),
    /// Of [`QuestionKind::RankTemplates`].
    Templates(TemplatesAnswer),
    /// Of [`QuestionKind::AdjustConfig`].
    Config(ConfigAnswer),
}

const DELTAS: [&str; 5] = [
    "min_conf_auto_delta",
    "weight_bandit_delta",
    "weight_grpo_delta",
    "weight_teacher_delta",
    "weight_pox_delta",
];

impl Answer {
    /// The kind of question that it answers.
    pub const fn kind(&self) -> QuestionKind {
        match self {
            Answer::Step(_) => QuestionKind::LabelStep,
            Answer::Episode(_) => QuestionKind::ScoreEpisode,
            Answer::Patch(_) => QuestionKind::ApprovePatch,
            Answer::Templates(_) => QuestionKind::RankTemplates,
            Answer::Config(_) => QuestionKind::AdjustConfig,
        }
    }

    /// The decision about a patch; undecided for every other kind.
    pub const fn decision(&self) -> Decision {
        match self {
            Answer::Patch(answer) => answer.decision,
            _ => Decision::Undecided,
        }
    }

    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let int = |value: i64| Item::Int(value);
        let fixed = |value: Fixed| Item::Int(value.to_raw());
        let maybe = |value: Option<i64>| value.map_or(Item::Null, Item::Int);
        match self {
            Answer::Step(answer) => map(vec![
                int(i64::from(answer.accept)),
                maybe(answer.best.map(i64::from)),
                fixed(answer.score),
                int(i64::from(answer.comment)),
            ]),
            Answer::Episode(answer) => {
                map(vec![fixed(answer.score), int(i64::from(answer.keep)), int(i64::from(answer.tags))])
            }
            Answer::Patch(answer) => {
                map(vec![int(answer.decision as i64), int(i64::from(answer.risks)), fixed(answer.weight)])
            }
            Answer::Templates(answer) => map(vec![
                ints(answer.order.iter().map(|place| i64::from(*place))),
                ints(answer.scores.iter().map(|score| score.to_raw())),
            ]),
            Answer::Config(answer) => {
                let mut fields = vec![
                    maybe(answer.enable_online.map(i64::from)),
                    maybe(answer.safety_override_mode.map(|mode| mode as i64)),
                ];
                fields.extend(answer.deltas.into_iter().map(fixed));
                map(fields)
            }
        }
    }

    /// Reads the answer to a question of this kind.
    pub fn from_bytes(kind: QuestionKind, bytes: &[u8]) -> Result<Answer, PayloadError> {
        let mut fields = Fields::read(bytes, ANSWER_BYTES_MAX)?;
        let (zero, one) = (Fixed::ZERO, Fixed::ONE);
        let answer = match kind {
            QuestionKind::LabelStep => Answer::Step(StepAnswer {
                accept: fields.int(1, "accept", 0..=1)? == 1,
                best: fields.maybe_int(2, "best", 0..=1_023)?.map(|best| best as u16),
                score: fields.fixed(3, "score", zero, one)?,
                comment: fields.int(4, "comment", 0..=i64::from(u16::MAX))? as u16,
            }),
            QuestionKind::ScoreEpisode => Answer::Episode(EpisodeAnswer {
                score: fields.fixed(1, "score", zero, one)?,
                keep: fields.int(2, "keep", 0..=2)? as u8,
                tags: fields.int(3, "tags", 0..=i64::from(u32::MAX))? as u32,
            }),
            QuestionKind::ApprovePatch => {
                let decision = fields.int(1, "decision", 1..=3)? as u8;
                Answer::Patch(PatchAnswer {
                    decision: Decision::from_number(decision).unwrap_or(Decision::Undecided),
                    risks: fields.int(2, "risks", 0..=i64::from(u32::MAX))? as u32,
                    weight: fields.fixed(3, "weight", zero, one)?,
                })
            }
            QuestionKind::RankTemplates => {
                let order = fields.ints(1, "order", RANKED_MAX, 0..=RANKED_MAX as i64 - 1)?;
                let scores = fields.ints(2, "scores", RANKED_MAX, 0..=one.to_raw())?;
                let mut sorted = order.clone();
                sorted.sort_unstable();
                if order.is_empty() || !sorted.iter().copied().eq(0..order.len() as i64) {
                    return refuse("order", "order must name every place from 0 on exactly once");
                }
                if !scores.is_empty() && scores.len() != order.len() {
                    return refuse("scores", format!("scores must be left out or be {}", order.len()));
                }
                Answer::Templates(TemplatesAnswer {
                    order: order.into_iter().map(|place| place as u8).collect(),
                    scores: scores.into_iter().map(Fixed::from_raw).collect(),
                })
            }
            QuestionKind::AdjustConfig => {
                let enable_online = fields.maybe_int(1, "enable_online", 0..=1)?.map(|value| value == 1);
                let mode = fields.maybe_int(2, "safety_override_mode", 0..=3)?;
                let mut deltas = [Fixed::ZERO; 5];
                for (place, delta) in deltas.iter_mut().enumerate() {
                    *delta = fields.fixed(3 + place as u64, DELTAS[place], DELTA_MAX.negated(), DELTA_MAX)?;
                }
                let safety_override_mode = mode.and_then(|mode| Mode::from_number(mode as u8));
                Answer::Config(ConfigAnswer { enable_online, safety_override_mode, deltas })
            }
        };
        fields.finish()?;
        one_spelling(answer.to_bytes() == bytes)?;
        Ok(answer)
    }

    /// The category by which answers to one question are compared, below 16.
    pub fn category(&self) -> u8 {
        let fifth = |score: Fixed| (score.to_raw() / (Fixed::ONE.to_raw() / 4 + 1)) as u8;
        match self {
            Answer::Step(StepAnswer { best: Some(best), .. }) => 1 + (best % 15) as u8,
            Answer::Step(answer) => u8::from(!answer.accept) * 15,
            Answer::Episode(answer) => 4 * answer.keep + fifth(answer.score),
            Answer::Patch(answer) => answer.decision as u8,
            Answer::Templates(answer) => answer.order.first().copied().unwrap_or(0) % 16,
            Answer::Config(answer) => {
                let mode = answer.safety_override_mode.map_or(0, |mode| 1 + mode as u8);
                mode + if answer.enable_online == Some(true) { 8 } else { 0 }
            }
        }
    }
}

#[cfg(test)]
mod tests;
