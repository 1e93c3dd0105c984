//! HINL_CONTROL and HINL_STATS: what may be asked, how much answers count, and what was asked so far.
//!
//! Every field has a range; a change that leaves it is held at the bound. What loosens safety is told apart from what does
//! not. Must not know questions. Clauses: HUM-1, HUM-9; decisions D-29, D-79.

use crate::OPEN_MAX;
use crate::kinds::Mode;
use crate::payload::ConfigAnswer;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;

/// The largest weight.
pub const WEIGHT_MAX: Fixed = Fixed::from_int(4);
/// How far one answer may move a weight or the confidence.
pub const DELTA_MAX: Fixed = Fixed::HALF;
/// Rates are parts of this many.
pub const RATE_ONE: u16 = 10_000;

/// What may be asked, and how much answers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_CONTROL")]
pub struct Control {
    /// Whether the machine asks by itself.
    pub enable_online: bool,
    /// Questions about steps for every 10,000 steps.
    pub max_online_step_rate: u16,
    /// Questions about episodes for every 10,000 episodes.
    pub max_online_episode_rate: u16,
    /// Questions that may be open, 0 to 256.
    pub max_pending_tasks: u16,
    /// How far changes of the acting policy need people.
    pub safety_override_mode: Mode,
    /// A step is asked about where the best action leads by less than this, as a share of the range of losses.
    pub min_confidence_for_auto: Fixed,
    /// Visits that one label counts for.
    pub human_weight_bandit: Fixed,
    /// The share of a person's score in the return of an episode, at most one.
    pub human_weight_grpo: Fixed,
    /// How far one ranking moves what is learned first.
    pub human_weight_teacher: Fixed,
    /// What an approval adds to a patch's score.
    pub human_weight_pox: Fixed,
}

impl Default for Control {
    fn default() -> Control {
        Control {
            enable_online: false,
            max_online_step_rate: 100,
            max_online_episode_rate: 100,
            max_pending_tasks: 64,
            safety_override_mode: Mode::Off,
            min_confidence_for_auto: Fixed::from_ratio(1, 20),
            human_weight_bandit: Fixed::ONE,
            human_weight_grpo: Fixed::HALF,
            human_weight_teacher: Fixed::ONE,
            human_weight_pox: Fixed::from_ratio(1, 10),
        }
    }
}

impl Control {
    /// The name of the first field that is out of range, with the range.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let rates = [
            ("max_online_step_rate", self.max_online_step_rate),
            ("max_online_episode_rate", self.max_online_episode_rate),
        ];
        for (name, rate) in rates {
            if RATE_ONE < rate {
                return Err((name, format!("{name} {rate} is out of range: 0 to {RATE_ONE}")));
            }
        }
        if OPEN_MAX < usize::from(self.max_pending_tasks) {
            let found = self.max_pending_tasks;
            return Err((
                "max_pending_tasks",
                format!("max_pending_tasks {found} is out of range: 0 to {OPEN_MAX}"),
            ));
        }
        for ((name, value), most) in self.fixed().into_iter().zip(Control::most()) {
            if value < Fixed::ZERO || most < value {
                return Err((name, format!("{name} {value} is out of range: 0 to {most}")));
            }
        }
        Ok(())
    }

    /// The fields that are no counts, by name.
    pub fn fixed(&self) -> [(&'static str, Fixed); 5] {
        [
            ("min_confidence_for_auto", self.min_confidence_for_auto),
            ("human_weight_bandit", self.human_weight_bandit),
            ("human_weight_grpo", self.human_weight_grpo),
            ("human_weight_teacher", self.human_weight_teacher),
            ("human_weight_pox", self.human_weight_pox),
        ]
    }

    fn fixed_mut(&mut self) -> [&mut Fixed; 5] {
        [
            &mut self.min_confidence_for_auto,
            &mut self.human_weight_bandit,
            &mut self.human_weight_grpo,
            &mut self.human_weight_teacher,
            &mut self.human_weight_pox,
        ]
    }

    const fn most() -> [Fixed; 5] {
        [Fixed::ONE, WEIGHT_MAX, Fixed::ONE, WEIGHT_MAX, Fixed::ONE]
    }

    /// What an answer makes of it: every change within its range.
    #[must_use]
    pub fn changed_by(&self, answer: &ConfigAnswer) -> Control {
        let mut changed = *self;
        changed.enable_online = answer.enable_online.unwrap_or(self.enable_online);
        changed.safety_override_mode = answer.safety_override_mode.unwrap_or(self.safety_override_mode);
        for ((field, delta), most) in changed.fixed_mut().into_iter().zip(answer.deltas).zip(Control::most())
        {
            *field = field.plus_saturating(delta).clamp(Fixed::ZERO, most);
        }
        changed
    }

    /// Whether going over to another control loosens safety: fewer approvals, or an approval that counts for more.
    pub fn is_loosened_by(&self, other: &Control) -> bool {
        other.safety_override_mode < self.safety_override_mode
            || self.human_weight_pox < other.human_weight_pox
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.bool(self.enable_online);
        [self.max_online_step_rate, self.max_online_episode_rate, self.max_pending_tasks]
            .into_iter()
            .for_each(|count| writer.u16(count));
        writer.u8(self.safety_override_mode as u8);
        self.fixed().into_iter().for_each(|(_, value)| writer.i64(value.to_raw()));
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Control, DecodeError> {
        let malformed = reader.error("a control of people's questions that is out of range");
        let mut control = Control { enable_online: reader.bool()?, ..Control::default() };
        control.max_online_step_rate = reader.u16()?;
        control.max_online_episode_rate = reader.u16()?;
        control.max_pending_tasks = reader.u16()?;
        control.safety_override_mode = Mode::decode(reader)?;
        for field in control.fixed_mut() {
            *field = Fixed::from_raw(reader.i64()?);
        }
        if control.check().is_ok() { Ok(control) } else { Err(malformed) }
    }
}

/// What was asked and answered so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(alias = "HINL_STATS")]
pub struct Counters {
    /// Questions asked.
    pub total_tasks_created: u64,
    /// Questions answered.
    pub total_tasks_completed: u64,
    /// Questions that will not be answered.
    pub total_tasks_skipped: u64,
    /// Labels of steps that took effect.
    pub total_step_feedback_used: u64,
    /// Scores of episodes that took effect.
    pub total_episode_feedback_used: u64,
    /// Decisions about patches that took effect.
    pub total_patch_feedback_used: u64,
    /// Rankings that took effect.
    pub total_template_feedback_used: u64,
    /// Changes of the control that took effect.
    pub total_config_feedback_used: u64,
    /// Questions that found no room.
    pub total_tasks_dropped: u64,
    /// Questions that the rate did not allow.
    pub total_tasks_rate_limited: u64,
    /// Answers that were taken back.
    pub total_answers_undone: u64,
    /// The number of the last question, for its identifier.
    pub last_task_id_seq: u32,
}

impl Counters {
    /// All of them, by name.
    pub fn named(&self) -> [(&'static str, u64); 12] {
        [
            ("total_tasks_created", self.total_tasks_created),
            ("total_tasks_completed", self.total_tasks_completed),
            ("total_tasks_skipped", self.total_tasks_skipped),
            ("total_step_feedback_used", self.total_step_feedback_used),
            ("total_episode_feedback_used", self.total_episode_feedback_used),
            ("total_patch_feedback_used", self.total_patch_feedback_used),
            ("total_template_feedback_used", self.total_template_feedback_used),
            ("total_config_feedback_used", self.total_config_feedback_used),
            ("total_tasks_dropped", self.total_tasks_dropped),
            ("total_tasks_rate_limited", self.total_tasks_rate_limited),
            ("total_answers_undone", self.total_answers_undone),
            ("last_task_id_seq", u64::from(self.last_task_id_seq)),
        ]
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.named().into_iter().for_each(|(_, count)| writer.u64(count));
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Counters, DecodeError> {
        let malformed = reader.error("a number of questions beyond 32 bits");
        let mut next = || reader.u64();
        Ok(Counters {
            total_tasks_created: next()?,
            total_tasks_completed: next()?,
            total_tasks_skipped: next()?,
            total_step_feedback_used: next()?,
            total_episode_feedback_used: next()?,
            total_patch_feedback_used: next()?,
            total_template_feedback_used: next()?,
            total_config_feedback_used: next()?,
            total_tasks_dropped: next()?,
            total_tasks_rate_limited: next()?,
            total_answers_undone: next()?,
            last_task_id_seq: u32::try_from(next()?).map_err(|_| malformed)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_move_fields_within_their_ranges_and_loosening_is_told_apart() {
        let control = Control { safety_override_mode: Mode::RequireApproval, ..Control::default() };
        let answer = ConfigAnswer {
            enable_online: Some(true),
            safety_override_mode: Some(Mode::Warn),
            deltas: [DELTA_MAX, DELTA_MAX, DELTA_MAX, DELTA_MAX, DELTA_MAX.negated()],
        };
        let changed = control.changed_by(&answer);
        assert!(changed.enable_online && changed.check().is_ok());
        assert_eq!(changed.human_weight_pox, Fixed::ZERO);
        assert_eq!(changed.human_weight_grpo, Fixed::ONE);
        // A weaker mode loosens safety, and so does an approval that adds more; the way back tightens it.
        let weaker = Control { safety_override_mode: Mode::Warn, ..control };
        let heavier = Control { human_weight_pox: Fixed::ONE, ..control };
        for looser in [weaker, heavier] {
            assert!(control.is_loosened_by(&looser) && !looser.is_loosened_by(&control), "{looser:?}");
        }
        let mut writer = Writer::new();
        changed.encode(&mut writer);
        assert_eq!(Control::decode(&mut Reader::new(writer.as_bytes())), Ok(changed));
        let malformed = Control { max_pending_tasks: 257, ..control };
        assert_eq!(malformed.check().map_err(|(field, _)| field), Err("max_pending_tasks"));
    }
}
