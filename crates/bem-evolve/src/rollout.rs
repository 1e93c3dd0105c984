//! Rollouts: what one of two players earned in an episode that both played, or would have played.
//!
//! Must not know which world was played, or how. Clauses: SCC-8.

/// One episode of one player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// The sum of rewards.
    pub total: i64,
    /// Whether something happened that must not.
    pub is_bad: bool,
    /// Steps that were taken; none if nothing was played, because it could not have differed.
    pub steps: u32,
}
