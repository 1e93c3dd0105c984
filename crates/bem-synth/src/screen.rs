//! The free test: what a policy would have earned on logged steps whose action was drawn with equal chance.
//!
//! Where the action does not change what is seen next this is an unbiased estimate per step; elsewhere it is a
//! hint. It never accepts anything, it only saves rollouts. Clauses: SCC-8.

use crate::experience::Episode;
use crate::policy::Policy;

/// Rewards on the uniform steps where the policy agrees with what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Steps on which it agrees.
    pub matched: u64,
    /// Their rewards.
    pub reward_sum: i64,
    /// The sum of squared rewards.
    pub reward_squares: i128,
    /// All uniform steps looked at.
    pub steps: u64,
}

impl Screen {
    /// Screens a policy on the episodes kept for that.
    pub fn of(policy: &Policy, episodes: &[&Episode]) -> Screen {
        let held: Vec<&Episode> = episodes.iter().copied().filter(|episode| episode.is_screen()).collect();
        let actions = policy.replay(held.iter().copied());
        let mut screen = Screen::default();
        for (episode, actions) in held.iter().zip(&actions) {
            screen.add(episode, actions);
        }
        screen
    }

    /// Books one episode and what the policy would have done in it.
    pub fn add(&mut self, episode: &Episode, actions: &[u16]) {
        for (step, action) in episode.steps.iter().zip(actions).filter(|(step, _)| step.uniform) {
            self.steps += 1;
            if step.action == *action {
                self.matched += 1;
                self.reward_sum += i64::from(step.reward);
                self.reward_squares += i128::from(step.reward) * i128::from(step.reward);
            }
        }
    }

    /// The mean reward per matched step, in milli-units times 1,000; none without a match.
    pub fn mean(&self) -> Option<i64> {
        (0 < self.matched).then(|| self.reward_sum * 1_000 / self.matched as i64)
    }
}
