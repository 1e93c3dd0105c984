//! Beyond what people said: what to try where nobody said anything, in an episode that goes along their words.
//!
//! A word can only be asked for where somebody has been. An episode that follows what was said comes to the first observation
//! about which nothing was said; there it tries what was never tried, and after that what led to what was found last. Both are
//! read off the log. Such episodes belong to the copy that tries people's candidates, and leave with it. Must not know labels.
//! Clause: HUM-13; decision D-217.

use bem_base::environment::Bits;
use bem_synth::experience::{Episode, Step};
use std::collections::BTreeMap;

/// Where actions led, by what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trails {
    actions: u16,
    /// Observations in the order in which they were found.
    found: BTreeMap<Bits, u32>,
    /// For every observation and action: the number of the latest found observation that it led to; none if it was not tried.
    led: BTreeMap<Bits, Vec<Option<u32>>>,
}

impl Trails {
    /// As these episodes show it.
    pub(super) fn of<'a>(episodes: impl Iterator<Item = &'a Episode>, actions: u16) -> Trails {
        let mut trails = Trails { actions, found: BTreeMap::new(), led: BTreeMap::new() };
        for episode in episodes {
            let after = |place: usize| episode.steps.get(place + 1).map(|next| next.observation);
            for (place, step) in episode.steps.iter().enumerate() {
                trails.note(step, after(place));
            }
        }
        trails
    }

    fn number(&mut self, observation: Bits) -> u32 {
        let count = self.found.len() as u32;
        *self.found.entry(observation).or_insert(count)
    }

    /// A step led here; the last one of an episode leads nowhere that is seen.
    pub(super) fn note(&mut self, step: &Step, after: Option<Bits>) {
        let own = self.number(step.observation);
        let to = after.map_or(own, |after| self.number(after));
        let actions = usize::from(self.actions);
        let tried = self.led.entry(step.observation).or_insert_with(|| vec![None; actions]);
        let best = &mut tried[usize::from(step.action)];
        *best = Some(best.map_or(to, |best| best.max(to)));
    }

    /// How many observations were found.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// What to try where this is seen; nothing where it never was.
    pub(super) fn onward(&self, observation: &Bits) -> Option<u16> {
        let tried = self.led.get(observation)?;
        let untried = tried.iter().position(Option::is_none);
        let latest = || (0..tried.len()).rev().max_by_key(|action| tried[*action]);
        untried.or_else(latest).map(|action| action as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(places: &[(u64, u16)]) -> Episode {
        let step = |(place, action): &(u64, u16)| Step {
            observation: Bits([*place, 0, 0, 0]),
            action: *action,
            reward: 0,
            done: false,
            bad: false,
            uniform: true,
            propensity: u16::MAX,
        };
        Episode { serial: 1, steps: places.iter().map(step).collect() }
    }

    #[test]
    fn what_was_never_tried_comes_first_and_then_what_led_to_what_was_found_last() {
        let onward = |walks: &[&[(u64, u16)]], place: u64| {
            let episodes: Vec<Episode> = walks.iter().map(|places| walk(places)).collect();
            Trails::of(episodes.iter(), 3).onward(&Bits([place, 0, 0, 0]))
        };
        assert_eq!(onward(&[&[(0, 0), (0, 1)]], 0), Some(2), "nobody tried it");
        assert_eq!(onward(&[&[(0, 0), (0, 1)]], 7), None, "nobody was there");
        // Two leads on to a place that was found later than the start.
        assert_eq!(onward(&[&[(0, 0), (0, 1), (0, 2), (5, 0), (0, 0)]], 0), Some(2));
        // Of equals the first.
        assert_eq!(onward(&[&[(0, 0), (0, 1), (0, 2), (0, 0)]], 0), Some(0));
    }
}
