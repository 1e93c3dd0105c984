//! What one tick brings: what is perceived, how an episode ends, and what only the evaluator counts.
//!
//! Clause: CUR-3.

/// What happened in a tick, as the agent perceives it; the strongest wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Event {
    /// Nothing to note.
    #[default]
    None = 0,
    /// Stepped on a hazard or a contaminated cell.
    Hazard = 1,
    /// Took a resource of the first kind.
    Consume0 = 2,
    /// Took a resource of the second kind.
    Consume1 = 3,
    /// Reached a waypoint that was not the last.
    Waypoint = 4,
    /// Reached the last waypoint.
    SequenceComplete = 5,
    /// Began to wait for a delayed reward.
    DelayOpen = 6,
    /// Left the band before the reward was paid.
    DelayBroken = 7,
    /// Waited long enough for a waypoint that was not the last.
    DelayPaidWaypoint = 8,
    /// Waited long enough for the last waypoint.
    DelayPaidComplete = 9,
}

impl Event {
    /// Whether waypoints or rewards changed in a way that no model of motion could predict.
    pub fn is_discontinuity(self) -> bool {
        Event::Consume0 <= self
    }

    /// How complete the held behaviour is, in thousandths, judged from this event alone.
    pub fn completion_milli(self) -> u32 {
        match self {
            Event::SequenceComplete => 900,
            Event::DelayPaidWaypoint | Event::DelayPaidComplete => 800,
            Event::Waypoint => 500,
            _ => 0,
        }
    }
}

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoneCause {
    /// It goes on.
    Running,
    /// Health is used up.
    HealthDepleted,
    /// All ticks are played.
    StepLimit,
}

/// Counts over one episode, for the evaluator; the agent never sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the count of what its name says")]
pub struct GridCounts {
    pub contacts: u32,
    pub misses: u32,
    pub out_of_order: u32,
    pub sequences: u32,
    pub delays_opened: u32,
    pub delays_paid: u32,
    pub delays_broken: u32,
    pub ticks_waited: u32,
    pub distractors_taken: u32,
    pub counter_evidence_events: u32,
    pub ticks_both_cues: u32,
    pub spawns_skipped: u32,
    pub within_band_ticks: u32,
}

/// What one tick brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// In thousandths.
    pub reward: i32,
    /// The harm part of it, as a positive number.
    pub harm: i32,
    /// What was perceived.
    pub event: Event,
    /// Whether and why the episode ended.
    pub done: DoneCause,
}
