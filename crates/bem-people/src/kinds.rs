//! The enumerations of the layer, with the numbers that are stored.
//!
//! Must not know tables or payloads. Clause: HUM-1.

use bem_base::encode::{DecodeError, Reader};

macro_rules! stored {
    ($(#[$meta:meta])* $name:ident, $what:literal, { $($(#[$doc:meta])* $variant:ident = $number:literal $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant = $number),+ }

        impl $name {
            /// Every value, in order of the stored numbers.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The name that people and programs use.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// The value of this name.
            pub fn from_name(name: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|value| value.name() == name)
            }

            /// The value of this stored number.
            pub fn from_number(number: u8) -> Option<$name> {
                $name::ALL.iter().copied().find(|value| *value as u8 == number)
            }

            /// The names that are allowed, for messages.
            pub fn names() -> String {
                $name::ALL.iter().map(|value| value.name()).collect::<Vec<_>>().join(", ")
            }

            /// Reads a stored number.
            pub fn decode(reader: &mut Reader<'_>) -> Result<$name, DecodeError> {
                let error = reader.error(concat!("an unknown ", $what));
                $name::from_number(reader.u8()?).ok_or(error)
            }
        }
    };
}

stored! {
    /// What a question is about.
    #[doc(alias = "HINL_TARGET_KIND")]
    TargetKind, "target of a question", {
        /// One decision.
        Step = 0 "step",
        /// One episode.
        Episode = 1 "episode",
        /// One patch.
        Patch = 2 "patch",
        /// Templates: in a service, the worlds that are learned.
        Template = 3 "template",
        /// The configuration of this layer.
        Config = 4 "config",
    }
}

stored! {
    /// What is asked.
    #[doc(alias = "HINL_KIND")]
    QuestionKind, "kind of question", {
        /// Was the action right, and which would have been best?
        LabelStep = 0 "label_step",
        /// How good was the episode, and may it be learned from?
        ScoreEpisode = 1 "score_episode",
        /// May a patch that is proven and measured take effect?
        ApprovePatch = 2 "approve_patch",
        /// What should be learned first?
        RankTemplates = 3 "rank_templates",
        /// Should the limits of this layer change?
        AdjustConfig = 4 "adjust_config",
    }
}

impl QuestionKind {
    /// What a question of this kind is about.
    pub const fn target(self) -> TargetKind {
        match self {
            QuestionKind::LabelStep => TargetKind::Step,
            QuestionKind::ScoreEpisode => TargetKind::Episode,
            QuestionKind::ApprovePatch => TargetKind::Patch,
            QuestionKind::RankTemplates => TargetKind::Template,
            QuestionKind::AdjustConfig => TargetKind::Config,
        }
    }

    /// Whether only approvers may answer.
    pub const fn needs_approver(self) -> bool {
        matches!(self, QuestionKind::ApprovePatch | QuestionKind::AdjustConfig)
    }
}

stored! {
    /// Where a question stands.
    #[doc(alias = "HINL_STATUS")]
    Status, "status of a question", {
        /// The place is free.
        Empty = 0 "empty",
        /// Nobody works on it.
        Pending = 1 "pending",
        /// Somebody has leased it.
        InProgress = 2 "in_progress",
        /// Answered.
        Done = 3 "done",
        /// It will not be answered.
        Skipped = 4 "skipped",
    }
}

stored! {
    /// How much an answer matters.
    #[doc(alias = "HINL_PRIORITY")]
    Priority, "priority", {
        /// When there is nothing else.
        Low = 0 "low",
        /// As usual.
        Normal = 1 "normal",
        /// Before others.
        High = 2 "high",
        /// Before everything.
        Critical = 3 "critical",
    }
}

stored! {
    /// What was decided about a patch.
    #[doc(alias = "HINL_DECISION_PATCH")]
    Decision, "decision about a patch", {
        /// Nothing yet.
        Undecided = 0 "undecided",
        /// It may take effect.
        Approve = 1 "approve",
        /// It must not, now and later.
        Reject = 2 "reject",
        /// Not now.
        Defer = 3 "defer",
    }
}

stored! {
    /// How far changes of the acting policy need people.
    #[doc(alias = "safety_override_mode")]
    Mode, "oversight mode", {
        /// Not at all.
        Off = 0 "off",
        /// Changes take effect, and people are asked about the critical ones.
        Warn = 1 "warn",
        /// Critical changes wait for an approval.
        RequireApproval = 2 "require_approval",
        /// All changes wait for an approval.
        Whitelist = 3 "whitelist",
    }
}

stored! {
    /// Why a question will not be answered.
    Skip, "reason to skip", {
        /// It is not skipped.
        None = 0 "none",
        /// Its deadline passed.
        Deadline = 1 "deadline",
        /// A person declined it.
        Declined = 2 "declined",
        /// What it is about is gone.
        Obsolete = 3 "obsolete",
        /// The machine was told not to ask any more.
        Withdrawn = 4 "withdrawn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_come_back() {
        for kind in QuestionKind::ALL {
            assert_eq!(QuestionKind::from_number(*kind as u8), Some(*kind));
            assert_eq!(QuestionKind::from_name(kind.name()), Some(*kind));
            assert_eq!(kind.target() as u8, *kind as u8);
        }
        assert_eq!(QuestionKind::from_number(5), None);
        assert_eq!(Mode::names(), "off, warn, require_approval, whitelist");
        assert_eq!(Status::ALL.len(), 5);
        assert_eq!(Priority::ALL.len(), 4);
    }
}
