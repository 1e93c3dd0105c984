//! Machines that models propose, as inputs, and those that wait for the rounds of their worlds.
//!
//! A proposal names the request to the model that it came from, whose question and answer are in the history as every
//! request's are; what is said there was read by whoever spoke to the model, and stands here as canonical machines, so that a
//! replay needs neither the model nor a reader of its words. Must not know models. Clauses: TOOL-8, TOOL-10; decision D-130.

use crate::input::WorldIndex;
use crate::service::Service;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_engine::learner::Offers;
use bem_engine::offer::Machine;
use std::collections::BTreeMap;

/// Machines of one proposal at most.
pub const MACHINES_MAX: usize = 8;

/// What a model proposed in one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// For which world.
    pub world: WorldIndex,
    /// The request that was answered with it.
    pub request: u64,
    /// The machines, in the order in which they were said.
    pub machines: Vec<Machine>,
}

impl Proposed {
    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u16(self.world.0);
        writer.u64(self.request);
        writer.length(self.machines.len());
        self.machines.iter().for_each(|machine| machine.encode(writer));
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Proposed, DecodeError> {
        let malformed = reader.error("a proposal without machines, or with too many");
        let (world, request, length) = (WorldIndex(reader.u16()?), reader.u64()?, reader.length(8)?);
        if !(1..=MACHINES_MAX).contains(&length) {
            return Err(malformed);
        }
        let machines = (0..length).map(|_| Machine::decode(reader)).collect::<Result<_, _>>()?;
        Ok(Proposed { world, request, machines })
    }
}

/// Writes what waits; nothing where nothing does.
pub(crate) fn encode(offers: &BTreeMap<u16, Offers>, writer: &mut Writer) {
    if offers.is_empty() {
        return;
    }
    writer.length(offers.len());
    for (world, offers) in offers {
        writer.u16(*world);
        offers.encode(writer);
    }
}

/// Reads back what waits in the worlds of a service.
pub(crate) fn decode(
    service: &Service,
    reader: &mut Reader<'_>,
) -> Result<BTreeMap<u16, Offers>, DecodeError> {
    let malformed = reader.error("proposals for worlds that are not served, or out of order");
    let mut offers: BTreeMap<u16, Offers> = BTreeMap::new();
    for _ in 0..reader.length(18)? {
        let place = reader.u16()?;
        let world = service.world(WorldIndex(place)).ok_or(malformed.clone())?;
        if offers.last_key_value().is_some_and(|(last, _)| place <= *last) {
            return Err(malformed);
        }
        offers.insert(place, Offers::decode(&world.spec().shape, reader)?);
    }
    if offers.is_empty() { Err(malformed) } else { Ok(offers) }
}
