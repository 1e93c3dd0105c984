//! Logged steps as rows: the observation, and what a memory structure would have shown beside it.
//!
//! The structure's own circuit is run over the logged episodes, 64 at a time. Must not know games.

use crate::experience::Episode;
use crate::memory::{self, Device};
use crate::samples::{ROW_BITS_MAX, Row};
use bem_base::environment::{Field, Shape};

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
    /// Whether its episode is kept for screening.
    pub screen: bool,
    /// Whether the action was drawn with equal chance.
    pub uniform: bool,
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
            records.extend(episode.steps.iter().map(|step| Record {
                row: Row::from_observation(&step.observation),
                action: step.action,
                reward: step.reward,
                episode: position as u32,
                screen,
                uniform: step.uniform,
            }));
        }
        let mut view = View { width, groups, actions: shape.actions, records };
        if let Some(device) = device {
            view.show(episodes, device, observation_bits, shown)?;
        }
        Some(view)
    }

    fn show(&mut self, episodes: &[&Episode], device: &dyn Device, low: usize, shown: usize) -> Option<()> {
        let circuit = memory::compile(device, low)?;
        let mut first = 0;
        let (mut values, mut outputs) = (Vec::new(), Vec::new());
        for block in episodes.chunks(64) {
            let starts: Vec<usize> = block
                .iter()
                .map(|episode| {
                    let start = first;
                    first += episode.steps.len();
                    start
                })
                .collect();
            let longest = block.iter().map(|episode| episode.steps.len()).max().unwrap_or(0);
            let mut inputs = vec![0u64; circuit.inputs()];
            for time in 0..longest {
                inputs[..low].fill(0);
                for (lane, episode) in block.iter().enumerate() {
                    let Some(step) = episode.steps.get(time) else { continue };
                    for (index, input) in inputs[..low].iter_mut().enumerate() {
                        *input |= u64::from(step.observation.get(index)) << lane;
                    }
                }
                circuit.evaluate_words(&inputs, &mut values, &mut outputs);
                for (lane, episode) in
                    block.iter().enumerate().filter(|(_, episode)| time < episode.steps.len())
                {
                    debug_assert!(time < episode.steps.len());
                    let row = &mut self.records[starts[lane] + time].row;
                    for (place, word) in outputs[..shown].iter().enumerate() {
                        row.set(low + place, word >> lane & 1 == 1);
                    }
                }
                inputs[low..].copy_from_slice(&outputs[shown..]);
            }
        }
        Some(())
    }

    /// The highest reward of any step.
    pub fn top(&self) -> i32 {
        self.records.iter().map(|record| record.reward).max().unwrap_or(0)
    }
}
