//! What was earned last, shown beside the observation where states are hidden.
//!
//! Who plays is told every reward, and the best play by everything seen and done counts it as seen. A policy reads
//! observations alone, so that a reward that tells hidden states apart has to be among them. Clause: GLE-9.

use super::Process;
use bem_base::environment::Bits;
use bem_base::limits::OBSERVATION_BITS_MAX;
use std::collections::{BTreeMap, BTreeSet};

/// Bits that say what was earned last, at most.
const BITS_MAX: usize = 6;

/// The classes of rewards that are shown, in a field of their own behind the observation.
pub(super) struct Earned {
    classes: BTreeMap<i32, u64>,
    place: usize,
    width: usize,
}

impl Earned {
    /// Nothing is shown where states are, nor where the same action in states that look the same always earns the same.
    /// Zero stands for the start of an episode; with more rewards than fit, neighbours share a class.
    pub fn of(process: &Process) -> Earned {
        let mut earned = Earned { classes: BTreeMap::new(), place: process.widths.iter().sum(), width: 0 };
        let mut by_sight: BTreeMap<(Bits, usize), BTreeSet<i32>> = BTreeMap::new();
        for (row, branches) in process.rows.iter().enumerate() {
            let sight = (process.observations[row / process.actions], row % process.actions);
            // What ends the episode tells nothing that could still be used.
            let on = branches.iter().filter(|branch| !branch.done && 0 < branch.weight);
            by_sight.entry(sight).or_default().extend(on.map(|branch| branch.reward));
        }
        if process.shows_states() || by_sight.values().all(|rewards| rewards.len() <= 1) {
            return earned;
        }
        let rewards: BTreeSet<i32> = by_sight.into_values().flatten().collect();
        let most = (1 << BITS_MAX) - 1;
        let width = (usize::BITS - rewards.len().min(most).leading_zeros()) as usize;
        if OBSERVATION_BITS_MAX < earned.place + width {
            return earned;
        }
        let class = |rank: usize| 1 + if rewards.len() <= most { rank } else { rank * most / rewards.len() };
        earned.classes =
            rewards.iter().enumerate().map(|(rank, reward)| (*reward, class(rank) as u64)).collect();
        earned.width = width;
        earned
    }

    /// The width of the field; zero where nothing is shown.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The class of a reward.
    pub fn class(&self, reward: i32) -> u64 {
        self.classes.get(&reward).copied().unwrap_or(0)
    }

    /// The observation with the class of what was earned last.
    pub fn show(&self, seen: &Bits, class: u64) -> Bits {
        let mut seen = *seen;
        if 0 < self.width {
            seen.set_field(self.place, self.width, class);
        }
        seen
    }
}
