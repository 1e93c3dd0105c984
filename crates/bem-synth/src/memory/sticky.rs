//! A flag that rises when something happens that never happened in one class of episodes, and stays up.
//!
//! Over another structure: the pairs of observation and shown bits that occurred in episodes of one class are
//! the safe ones; any other pair raises the flag. Balanced or not, accepted or not is of this kind.

use super::codec::StructureKind;
use super::{Device, resize};
use crate::function::build_table;
use crate::statement::Memory;
use bem_base::encode::Writer;
use bem_circuit::netlist::{Builder, Signal};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A structure with a flag over it.
#[derive(Clone, Debug)]
pub struct Sticky {
    /// The structure below.
    pub inner: Arc<dyn Device>,
    /// For every pair seen (observation bits lowest) whether it raises the flag.
    pub raises: BTreeMap<u64, bool>,
}

impl Device for Sticky {
    fn statement(&self) -> Memory {
        let raises = self.raises.iter().map(|(key, raises)| (*key, u64::from(*raises))).collect();
        Memory::Sticky { inner: Box::new(self.inner.statement()), raises }
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(StructureKind::Sticky as u8);
        self.inner.encode(writer);
        writer.length(self.raises.len());
        for (key, raises) in &self.raises {
            writer.u64(*key);
            writer.bool(*raises);
        }
    }

    fn resized(&self, cells: usize) -> Option<Arc<dyn Device>> {
        Some(Arc::new(Sticky { inner: resize(&self.inner, cells), raises: self.raises.clone() }))
    }

    fn words(&self) -> String {
        let safe = self.raises.values().filter(|raises| !**raises).count();
        format!("{} with a flag for leaving {safe} safe pairs", self.inner.words())
    }

    fn description_length(&self) -> u32 {
        self.inner.description_length() + 4 + self.raises.len() as u32
    }

    fn memory_bits(&self) -> usize {
        self.inner.memory_bits() + 1
    }

    fn shows(&self) -> Vec<usize> {
        let mut groups = self.inner.shows();
        groups.push(1);
        groups
    }

    fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        memory: &[Signal],
    ) -> (Vec<Signal>, Vec<Signal>) {
        let (flag, below) = memory.split_last().expect("the flag is the last memory bit");
        let (mut shown, mut next) = self.inner.build(builder, observation, below);
        let mut key = observation.to_vec();
        key.extend_from_slice(&shown);
        let raised = build_table(builder, &key, &self.raises);
        let now = builder.or(*flag, raised);
        shown.push(now);
        next.push(now);
        (shown, next)
    }
}
