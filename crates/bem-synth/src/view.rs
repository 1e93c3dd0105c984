//! Logged steps as rows: the observation, and what a memory structure would have shown beside it.
//!
//! The structure's own circuit is run over the logged episodes, 64 at a time. Must not know games.

use crate::experience::Episode;
use crate::memory::{self, Compiled, Device, Shown};
use crate::samples::{ROW_BITS_MAX, Row};
use bem_base::environment::{Field, Forbidden, Pattern, Shape};
use std::collections::BTreeSet;

/// One logged step in the eyes of a function.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Observation, then what the structure shows.
    pub row: Row,
    /// What was done.
    pub action: u16,
    /// What it brought.
    pub reward: i32,
    /// Position of its episode among those viewed.
    pub episode: u32,
    /// Steps of its episode before it.
    pub time: u32,
    /// Whether its episode is kept for screening.
    pub screen: bool,
    /// Whether the action was drawn with equal chance.
    pub uniform: bool,
    /// Whether the reward came.
    pub is_told: bool,
}

/// All records under one memory structure.
#[derive(Clone, Debug)]
pub struct View {
    /// Bits of a row.
    pub width: usize,
    /// Groups of the row's bits.
    pub groups: Vec<Field>,
    /// Actions are below this.
    pub actions: u16,
    /// The records, episode by episode.
    pub records: Vec<Record>,
}

impl View {
    /// Rows for these episodes; none when the structure shows more than fits a row.
    pub fn new(shape: &Shape, episodes: &[&Episode], device: Option<&dyn Device>) -> Option<View> {
        let observation_bits = usize::from(shape.observation_bits);
        let groups = memory::row_groups(&shape.fields, observation_bits, device);
        let shown: usize = device.map(|device| device.shows().iter().sum()).unwrap_or(0);
        let width = observation_bits + shown;
        if ROW_BITS_MAX < width + 2 {
            return None;
        }
        let mut records = Vec::new();
        for (position, episode) in episodes.iter().enumerate() {
            let screen = episode.is_screen();
            records.extend(episode.steps.iter().zip(0..).map(|(step, time)| Record {
                row: Row::from_observation(&step.observation),
                action: step.action,
                reward: step.reward,
                episode: position as u32,
                time,
                screen,
                uniform: step.uniform,
                is_told: step.is_told(),
            }));
        }
        let mut view = View { width, groups, actions: shape.actions, records };
        if let Some(device) = device {
            view.show(episodes, device, observation_bits, shown)?;
        }
        Some(view)
    }

    /// With one more record for every step that saw what an action is forbidden for: as if it had been taken there and had brought
    /// the least. The log cannot show what is never tried, and what is done in its place wants to be chosen.
    pub fn forbidding(mut self, forbidden: &[Forbidden]) -> View {
        let least = self.told().map(|record| record.reward).min().unwrap_or(0);
        let imagined = |record: &Record, action: u16| Record { action, reward: least, ..*record };
        let of = |record: &Record| {
            let masked = Pattern::covering(forbidden, record.row.to_observation(), |pair| pair.seen);
            let masked: BTreeSet<u16> = masked.map(|pair| pair.action).collect();
            masked.into_iter().map(|action| imagined(record, action)).collect::<Vec<_>>()
        };
        let records: Vec<Record> = self.told().flat_map(of).collect();
        self.records.extend(records);
        self
    }

    /// Word operations that a view with this structure takes: laying the episodes side by side, and running it over them.
    pub fn cost(shape: &Shape, episodes: &[&Episode], device: &dyn Device) -> u64 {
        let steps: usize = episodes.iter().map(|episode| episode.steps.len()).sum();
        let longest = |block: &[&Episode]| block.iter().map(|episode| episode.steps.len()).max().unwrap_or(0);
        let words: usize = episodes.chunks(64).map(longest).sum();
        let bits = usize::from(shape.observation_bits);
        let shown: usize = device.shows().iter().sum();
        (steps * (bits + shown) + words * (8 * device.memory_bits() + bits)) as u64
    }

    fn show(&mut self, episodes: &[&Episode], device: &dyn Device, low: usize, shown: usize) -> Option<()> {
        let compiled = memory::compile(device, low)?;
        let mut starts = Vec::with_capacity(episodes.len());
        let mut first = 0;
        for episode in episodes {
            starts.push(first);
            first += episode.steps.len();
        }
        let records = &mut self.records;
        debug_assert_eq!(compiled.shows.len(), shown);
        Planes::new(low, episodes).run(&compiled, |block, time, words| {
            let lanes = episodes[block * 64..].iter().take(64).enumerate();
            for (lane, _) in lanes.filter(|(_, episode)| time < episode.steps.len()) {
                let row = &mut records[starts[block * 64 + lane] + time].row;
                for (place, word) in words.iter().enumerate() {
                    row.set(low + place, word >> lane & 1 == 1);
                }
            }
        });
        Some(())
    }

    /// The records whose reward came.
    pub fn told(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.records.iter().filter(|record| record.is_told)
    }

    /// The records of these whose reward came, latest first: those that were drawn and those that were chosen in turns, as long
    /// as there are both. What acts takes an action only where it seems right, so that its own steps alone say little about
    /// where it is wrong.
    pub fn balanced<'v>(
        &'v self,
        of: impl Fn(&Record) -> bool + Copy + 'v,
    ) -> impl Iterator<Item = &'v Record> {
        let steps = |uniform| {
            self.told().rev().filter(move |record| record.uniform == uniform).filter(move |record| of(record))
        };
        let (mut next, mut other) = (steps(true), steps(false));
        core::iter::from_fn(move || {
            core::mem::swap(&mut next, &mut other);
            other.next().or_else(|| next.next())
        })
    }

    /// The rewards that steps brought, each of them once.
    pub fn rewards(&self) -> BTreeSet<i32> {
        self.told().map(|record| record.reward).collect()
    }

    /// The highest reward of any step.
    pub fn top(&self) -> i32 {
        self.told().map(|record| record.reward).max().unwrap_or(0)
    }
}

/// The observations of many episodes, 64 of them side by side: one word per bit and time.
#[derive(Clone, Debug)]
pub struct Planes {
    observation_bits: usize,
    /// Per block of 64 episodes, per time, the bits.
    blocks: Vec<Vec<Vec<u64>>>,
}

impl Planes {
    /// Lays the episodes side by side.
    pub fn new(observation_bits: usize, episodes: &[&Episode]) -> Planes {
        let lay = |block: &[&Episode]| {
            let longest = block.iter().map(|episode| episode.steps.len()).max().unwrap_or(0);
            let mut times = vec![vec![0u64; observation_bits]; longest];
            for (lane, episode) in block.iter().enumerate() {
                for (time, step) in episode.steps.iter().enumerate() {
                    for (index, word) in times[time].iter_mut().enumerate() {
                        *word |= u64::from(step.observation.get(index)) << lane;
                    }
                }
            }
            times
        };
        Planes { observation_bits, blocks: episodes.chunks(64).map(lay).collect() }
    }

    /// Bits of an observation.
    pub fn observation_bits(&self) -> usize {
        self.observation_bits
    }

    /// How many words of time there are, for counting work.
    pub fn words(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// Runs a structure over all episodes, its memory zero at the start of each. What it shows is handed to `see` with
    /// block and time.
    pub fn run(&self, compiled: &Compiled, mut see: impl FnMut(usize, usize, &[u64])) {
        let circuit = &compiled.circuit;
        let (mut values, mut outputs) = (Vec::new(), Vec::new());
        let mut shown = vec![0; compiled.shows.len()];
        for (block, times) in self.blocks.iter().enumerate() {
            let mut inputs = vec![0u64; circuit.inputs()];
            for (time, bits) in times.iter().enumerate() {
                inputs[..self.observation_bits].copy_from_slice(bits);
                circuit.evaluate_words(&inputs, &mut values, &mut outputs);
                for (word, place) in shown.iter_mut().zip(&compiled.shows) {
                    *word = match place {
                        Shown::Input(index) => inputs[*index],
                        Shown::Output(index) => outputs[*index],
                    };
                }
                see(block, time, &shown);
                inputs[self.observation_bits..].copy_from_slice(&outputs[compiled.computed..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experience::Step;
    use bem_base::environment::Bits;

    /// Steps of one episode each: what is seen, the action, whether it was drawn, and what it brought.
    fn view(steps: &[(u64, u16, bool, i32)]) -> View {
        let shape = Shape {
            observation_bits: 4,
            actions: 3,
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
            fields: Vec::new(),
        };
        let episode = |(serial, step): (u64, &(u64, u16, bool, i32))| {
            let (word, action, uniform, reward) = *step;
            let observation = Bits([word, 0, 0, 0]);
            let (done, bad, propensity) = (true, false, u16::MAX);
            let step = Step { observation, action, reward, done, bad, uniform, propensity };
            Episode { serial, steps: vec![step] }
        };
        let episodes: Vec<Episode> = (0..).zip(steps).map(episode).collect();
        View::new(&shape, &episodes.iter().collect::<Vec<_>>(), None).expect("four bits fit a row")
    }

    #[test]
    fn drawn_and_chosen_steps_come_in_turns_latest_first_as_long_as_there_are_both() {
        let drawn = [true, true, false, false, false, false, true];
        let steps: Vec<_> = (0..).zip(drawn).map(|(word, uniform)| (word, 1, uniform, 0)).collect();
        let view = view(&[&steps[..], &[(9, 2, true, 0)]].concat());
        let order = view.balanced(|record| record.action == 1).map(|record| record.row.0[0]);
        assert_eq!(order.collect::<Vec<_>>(), [6, 5, 1, 4, 0, 3, 2]);
    }

    #[test]
    fn what_is_forbidden_is_as_if_it_had_brought_the_least_wherever_it_was_seen() {
        let seen = Pattern::new(Bits([1, 0, 0, 0]), Bits([1, 0, 0, 0]));
        let forbidden = [Forbidden { seen, action: 2 }];
        let steps = [(4, 2, true, 1_000), (5, 0, true, 600), (7, 1, false, 200)];
        let view = view(&steps).forbidding(&forbidden);
        let of = |action: u16| {
            let taken = view.records.iter().filter(move |record| record.action == action);
            taken.map(|record| (record.row.0[0], record.reward)).collect::<Vec<_>>()
        };
        assert_eq!(of(2), [(4, 1_000), (5, 200), (7, 200)]);
        assert_eq!((of(0), of(1)), (vec![(5, 600)], vec![(7, 200)]));
    }
}
