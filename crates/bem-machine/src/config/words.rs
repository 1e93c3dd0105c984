//! Parameters that are one of a few words. Their order is their number in the encoding.
//!
//! Must not know how a word is acted on. Clauses: VM-6, VM-7, VM-10, SCC-11; decision D-26.

use super::value::Word;

/// How a bucket chooses among its arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceRule {
    /// Smallest optimistic loss, with the variance in the bonus.
    UcbV,
    /// Random, with a temperature that falls with the visits.
    Softmax,
    /// The formula as the specification prints it: a control, its regret is linear.
    AsPrinted,
    /// Random, by importance-weighted sums of its own: holds against adversaries.
    TsallisInf,
}

impl Word for ChoiceRule {
    const ALL: &'static [ChoiceRule] =
        &[ChoiceRule::UcbV, ChoiceRule::Softmax, ChoiceRule::AsPrinted, ChoiceRule::TsallisInf];

    fn name(self) -> &'static str {
        match self {
            ChoiceRule::UcbV => "ucb_v",
            ChoiceRule::Softmax => "softmax",
            ChoiceRule::AsPrinted => "as_printed",
            ChoiceRule::TsallisInf => "tsallis_inf",
        }
    }
}

/// How a step finds its candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterKind {
    /// An extendible directory over a linear signature.
    Directory,
    /// The nearest descriptors by Hamming distance.
    Hamming,
}

impl Word for RouterKind {
    const ALL: &'static [RouterKind] = &[RouterKind::Directory, RouterKind::Hamming];

    fn name(self) -> &'static str {
        match self {
            RouterKind::Directory => "directory",
            RouterKind::Hamming => "hamming",
        }
    }
}

/// How time is divided among acting, synthesising and verifying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerKind {
    /// None: play, search, decide all that waits, and again, with growing pauses between searches.
    Paced,
    /// A bandit over the three activities.
    Activities,
    /// The contextual linear scheduler.
    #[doc(alias = "Algorithm D")]
    Linear,
    /// A bandit over fixed cyclic schedules, each played for a block of units.
    Schedules,
}

impl Word for SchedulerKind {
    const ALL: &'static [SchedulerKind] =
        &[SchedulerKind::Paced, SchedulerKind::Activities, SchedulerKind::Linear, SchedulerKind::Schedules];

    fn name(self) -> &'static str {
        match self {
            SchedulerKind::Paced => "paced",
            SchedulerKind::Activities => "activities",
            SchedulerKind::Linear => "linear",
            SchedulerKind::Schedules => "schedules",
        }
    }
}
