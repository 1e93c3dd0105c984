//! The regret laboratory: rules play against arms whose means are known here and nowhere else.
//!
//! Regret is pseudo-regret against the best fixed arm (the best of each segment when the world changes), read
//! at checkpoints. For losses fixed in advance it is the realised regret against the best arm in hindsight.
//! Everything depends on the setting and the seed alone. Clauses: VM-16, SCC-10, D-4, D-26.

use crate::bucket::Bucket;
use crate::index::Parameters;
use crate::loss::Loss;
use crate::rule::Player;
use crate::schedule::{Activity, Scheduler, Situation};
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_base::prng::Prng;

/// How losses come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// Bernoulli losses; the best arm, at a random place, is better by the gap.
    Stochastic,
    /// As stochastic, but the best place moves this many times, at even distances.
    Changing {
        /// Moves of the best place.
        change_points: u32,
    },
    /// Losses fixed in advance by simulating the default index: the arm it would take loses one, others nothing.
    Adversarial,
}

/// One experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How losses come about.
    pub world: World,
    /// Number of arms, from 2 to 16.
    pub arms: usize,
    /// Mean loss of the best arm.
    pub best_mean: Fixed,
    /// How much worse every other arm is.
    pub gap: Fixed,
}

impl Setting {
    /// Sixteen arms, best mean 0.4, gap 0.1: the setting of the stated bounds.
    pub const REFERENCE: Setting = Setting {
        world: World::Stochastic,
        arms: ARMS_MAX,
        best_mean: Fixed::from_ratio(4, 10),
        gap: Fixed::from_ratio(1, 10),
    };

    /// The live arms, one bit each.
    pub fn live(&self) -> u16 {
        assert!(2 <= self.arms && self.arms <= ARMS_MAX);
        u16::MAX >> (ARMS_MAX - self.arms)
    }
}

/// What one run showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Regret at each checkpoint.
    pub regret: Vec<Fixed>,
    /// Alarms the rule raised.
    pub alarms: u32,
}

/// Lets a player play to the last checkpoint (in rising order) and returns its regret at each.
pub fn play(setting: &Setting, seed: u64, player: &mut impl Player, checkpoints: &[u64]) -> Outcome {
    assert!(!checkpoints.is_empty() && checkpoints.is_sorted());
    match setting.world {
        World::Stochastic => play_segments(setting, 1, seed, player, checkpoints),
        World::Changing { change_points } => {
            play_segments(setting, u64::from(change_points) + 1, seed, player, checkpoints)
        }
        World::Adversarial => play_adversary(setting, player, checkpoints),
    }
}

fn play_segments(
    setting: &Setting,
    segments: u64,
    seed: u64,
    player: &mut impl Player,
    checkpoints: &[u64],
) -> Outcome {
    let steps = checkpoints[checkpoints.len() - 1];
    let mut prng = Prng::stream(seed, "laboratory");
    let mut best = prng.below(setting.arms as u64) as usize;
    let mut segment = 0;
    let mut worse_choices = 0i64;
    let mut outcome = Outcome { regret: Vec::with_capacity(checkpoints.len()), alarms: 0 };
    let (good, bad) = (threshold(setting.best_mean), threshold(setting.best_mean.plus(setting.gap)));
    for step in 0..steps {
        if segment < step * segments / steps {
            segment += 1;
            best = (best + 1 + prng.below(setting.arms as u64 - 1) as usize) % setting.arms;
        }
        let arm = player.choose();
        worse_choices += i64::from(arm != best);
        let lost = prng.next_u64() < if arm == best { good } else { bad };
        outcome.alarms += u32::from(player.learn(arm, Loss::from_bit(lost)).is_some());
        if checkpoints[outcome.regret.len()] == step + 1 {
            outcome.regret.push(setting.gap.mul_int(worse_choices));
        }
    }
    outcome
}

fn play_adversary(setting: &Setting, player: &mut impl Player, checkpoints: &[u64]) -> Outcome {
    let parameters = Parameters { change: None, ..Parameters::DEFAULT };
    let mut simulated = Bucket::new(&parameters, setting.live());
    let mut lost_by_arm = [0i64; ARMS_MAX];
    let mut lost = 0i64;
    let mut outcome = Outcome { regret: Vec::with_capacity(checkpoints.len()), alarms: 0 };
    for step in 0..checkpoints[checkpoints.len() - 1] {
        let hit = simulated.choose();
        simulated.update(&parameters, hit, Loss::ONE);
        lost_by_arm[hit] += 1;
        let arm = player.choose();
        lost += i64::from(arm == hit);
        outcome.alarms += u32::from(player.learn(arm, Loss::from_bit(arm == hit)).is_some());
        if checkpoints[outcome.regret.len()] == step + 1 {
            let least = lost_by_arm[..setting.arms].iter().min().copied().unwrap_or(0);
            outcome.regret.push(Fixed::ONE.mul_int(lost - least));
        }
    }
    outcome
}

/// The mean reward of a scheduler where synthesis pays only through the verification that follows it.
///
/// Acting pays one with chance 0.3; verifying pays one if something was synthesised since it last did; synthesis
/// pays nothing. The best schedule alternates the last two and gets one half a unit. Features: a constant, and
/// whether something waits.
pub fn play_schedule(scheduler: &mut Scheduler, seed: u64, units: u64) -> Fixed {
    let mut paid = 0i64;
    play_units(scheduler, seed, units, |_, pays| paid += i64::from(pays));
    Fixed::from_ratio(paid, units as i64)
}

/// The pseudo-regret of a scheduler in the same world against the best fixed schedule, at each checkpoint (in rising
/// order): one half for every unit, less what the unit paid in expectation.
pub fn schedule_regret(scheduler: &mut Scheduler, seed: u64, checkpoints: &[u64]) -> Vec<Fixed> {
    let units = checkpoints.last().copied().unwrap_or(0);
    let (mut unit, mut tenths) = (0u64, 0i64);
    let mut regret = Vec::with_capacity(checkpoints.len());
    play_units(scheduler, seed, units, |activity, pays| {
        let expected = if activity == Activity::Act { 3 } else { 10 * i64::from(pays) };
        tenths += 5 - expected;
        unit += 1;
        if checkpoints[regret.len()] == unit {
            regret.push(Fixed::from_ratio(tenths, 10));
        }
    });
    regret
}

fn play_units(scheduler: &mut Scheduler, seed: u64, units: u64, mut seen: impl FnMut(Activity, bool)) {
    let mut prng = Prng::stream(seed, "laboratory/schedule");
    let mut backlog = false;
    for _ in 0..units {
        let features = [Loss::ONE, Loss::from_bit(backlog)];
        let situation = Situation { features: &features, safety_alarm: false, possible: [true; 3] };
        let activity = scheduler.choose(&situation);
        let pays = match activity {
            Activity::Act => prng.below(10) < 3,
            Activity::Synthesize => false,
            Activity::Verify => backlog,
        };
        backlog = match activity {
            Activity::Act => backlog,
            Activity::Synthesize => true,
            Activity::Verify => false,
        };
        seen(activity, pays);
        scheduler.learn(&situation, activity, Loss::from_bit(pays));
    }
}

/// A chance as a threshold below which a 64-bit draw counts.
fn threshold(chance: Fixed) -> u64 {
    let loss = Loss::from_fixed(chance).expect("means lie between zero and one");
    ((u128::from(loss.to_raw())) << 32).min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests;
