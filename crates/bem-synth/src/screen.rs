//! The free test: what a policy would have earned on logged steps whose action was drawn with equal chance.
//!
//! Where the action does not change what is seen next this is an unbiased estimate per step; elsewhere it is a
//! hint. It never accepts anything, it only saves rollouts. Clauses: SCC-8.

use crate::experience::{Episode, Step};
use crate::policy::Policy;
use bem_base::environment::Bits;

/// Steps that must speak for a policy before what speaks against its rival counts.
const PROVED_MIN: u64 = 2;
/// Steps that must speak against the rival.
const DISPROVED_MIN: u64 = 4;

/// Bits of a share of successes.
const SHARE_BITS: u32 = 20;

/// Rewards on the uniform steps where the policy agrees with what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Steps on which it agrees and its rival does not.
    pub matched: u64,
    /// Their rewards.
    pub reward_sum: i64,
    /// The sum of squared rewards.
    pub reward_squares: i128,
    /// All uniform steps looked at.
    pub steps: u64,
    /// Uniform steps that earned the highest reward of all.
    pub tops: u64,
    /// Those of them on which the policy disagrees.
    pub missed: u64,
    /// Steps of any kind on which it agrees, its rival does not, and the reward was the highest.
    pub proved: u64,
    /// The same where the reward was lower.
    pub disproved: u64,
}

impl Screen {
    /// Screens two policies against each other on the episodes kept for that: rewards count only where they differ,
    /// because everywhere else they earn the same. `pass` says what is done where something forbidden is wanted.
    pub fn compare(
        candidate: &Policy,
        incumbent: &Policy,
        pass: impl Fn(&Bits, u16) -> u16,
        episodes: &[&Episode],
    ) -> (Screen, Screen) {
        let held: Vec<&Episode> = episodes.iter().copied().filter(|episode| episode.is_screen()).collect();
        let top = held.iter().flat_map(|episode| &episode.steps).map(|step| step.reward).max().unwrap_or(0);
        let (theirs, ours) = (candidate.replay(held.iter().copied()), incumbent.replay(held.iter().copied()));
        let (mut candidate, mut incumbent) = (Screen::default(), Screen::default());
        for (episode, actions) in held.iter().zip(theirs.iter().zip(&ours)) {
            let wanted = actions.0.iter().zip(actions.1);
            for (step, (theirs, ours)) in episode.steps.iter().zip(wanted) {
                let [theirs, ours] = [theirs, ours].map(|action| pass(&step.observation, *action));
                candidate.add(step, theirs, theirs != ours, top);
                incumbent.add(step, ours, theirs != ours, top);
            }
        }
        (candidate, incumbent)
    }

    fn add(&mut self, step: &Step, action: u16, differs: bool, top: i32) {
        if !step.is_told() {
            return;
        }
        if differs && step.action == action {
            self.proved += u64::from(step.reward == top);
            self.disproved += u64::from(step.reward < top);
        }
        if !step.uniform {
            return;
        }
        self.steps += 1;
        self.tops += u64::from(step.reward == top);
        self.missed += u64::from(step.reward == top && step.action != action);
        if differs && step.action == action {
            self.matched += 1;
            self.reward_sum += i64::from(step.reward);
            self.reward_squares += i128::from(step.reward) * i128::from(step.reward);
        }
    }

    /// Whether the mean reward is above another's by one and a half standard errors of the difference, or whether,
    /// where they differ, all that is known speaks for this one and enough against the other.
    pub fn beats(&self, other: &Screen) -> bool {
        if self.disproved == 0 && PROVED_MIN <= self.proved && DISPROVED_MIN <= other.disproved {
            return true;
        }
        let (Some((mine, my_variance)), Some((theirs, their_variance))) = (self.moments(), other.moments())
        else {
            return false;
        };
        let difference = mine - theirs;
        0 < difference && 9 * (my_variance + their_variance) < 4 * difference * difference
    }

    /// Whether, where they differ, this one was seen to earn the highest reward more often than the other by three standard
    /// errors, by steps of any kind: in what is seldom seen, hardly any action was drawn with equal chance.
    pub fn succeeds_more(&self, other: &Screen) -> bool {
        // One imagined success and one failure of each; shares in parts of 2^20.
        let share = |screen: &Screen| {
            let known = i128::from(screen.proved + screen.disproved + 2);
            let share = (i128::from(screen.proved + 1) << SHARE_BITS) / known;
            (share, share * ((1 << SHARE_BITS) - share) / known)
        };
        let ((mine, my_variance), (theirs, their_variance)) = (share(self), share(other));
        let lead = mine - theirs;
        0 < lead && 9 * (my_variance + their_variance) < lead * lead
    }

    /// Whether the mean reward is above another's, by however little.
    pub fn leads(&self, other: &Screen) -> bool {
        self.moments().zip(other.moments()).is_some_and(|((mine, _), (theirs, _))| theirs < mine)
    }

    /// Whether, where they differ, the other was often seen to earn less than could be had, and this one not more often
    /// than not. What the other does is played far more often than what this one would do, so that a screen alone cannot
    /// tell them apart; what explains the other's losses is worth measuring.
    pub fn may_mend(&self, other: &Screen) -> bool {
        other.is_lossy() && self.disproved <= self.proved
    }

    /// The same, but this one not more often than the other: where chance pays, a loss among the few steps that are known says
    /// nothing.
    pub fn may_lose_less(&self, other: &Screen) -> bool {
        let (known, tried) = (other.proved + other.disproved, self.proved + self.disproved);
        // One imagined success.
        other.is_lossy() && self.disproved * known <= other.disproved * (tried + 1)
    }

    /// Whether, where the two differ, it was often seen to earn less than could be had.
    fn is_lossy(&self) -> bool {
        DISPROVED_MIN <= self.disproved && self.proved + self.disproved <= 8 * self.disproved
    }

    /// Whether hardly any action that earned the highest reward differs from the policy's.
    pub fn misses_nothing(&self) -> bool {
        6 <= self.tops && self.missed * 50 <= self.tops
    }

    /// The mean reward per matched step and the variance of that mean, in milli-units.
    fn moments(&self) -> Option<(i128, i128)> {
        if self.matched < 4 {
            return None;
        }
        let count = i128::from(self.matched);
        let sum = i128::from(self.reward_sum);
        // Two imagined steps, one full success and one failure, keep a few equal rewards from looking certain.
        let spread = self.reward_squares - sum * sum / count + 500 * 500;
        Some((sum / count, spread / (count * count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_succeeds_more_often_beyond_chance_is_seen_to_do_so_by_steps_of_any_kind() {
        let seen = |proved, disproved| Screen { proved, disproved, ..Screen::default() };
        assert!(seen(6, 1).succeeds_more(&seen(11, 240)));
        assert!(seen(130, 20).succeeds_more(&seen(1_000, 400)));
        // Few steps, or rates that chance may have made, tell nothing.
        assert!(!seen(1, 0).succeeds_more(&seen(11, 240)) && !seen(2, 0).succeeds_more(&seen(0, 3)));
        assert!(!seen(40, 10).succeeds_more(&seen(750, 250)));
        assert!(!seen(11, 240).succeeds_more(&seen(6, 1)));
    }

    #[test]
    fn what_is_seen_losing_may_be_mended_by_what_is_not_known_to_lose_more_often_than_not() {
        let seen = |proved, disproved| Screen { proved, disproved, ..Screen::default() };
        assert!(seen(1, 1).may_mend(&seen(13, 9)));
        assert!(seen(0, 0).may_mend(&seen(20, 4)));
        // One loss where the other loses nearly always.
        assert!(seen(0, 1).may_lose_less(&seen(34, 410)) && !seen(0, 1).may_mend(&seen(34, 410)));
        assert!(!seen(6, 14).may_lose_less(&seen(20, 27)) && !seen(0, 0).may_lose_less(&seen(0, 3)));
        // Too few losses, hardly any among many, or a candidate that is worse.
        assert!(!seen(0, 0).may_mend(&seen(0, 3)));
        assert!(!seen(0, 0).may_mend(&seen(90, 10)));
        assert!(!seen(6, 14).may_mend(&seen(20, 27)));
    }
}
