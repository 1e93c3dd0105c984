//! What others propose: machines from outside, which are tried through the gate like everything else.
//!
//! Offers are lent by the owner, who keeps and saves them; of them the learner saves how many it has heard of and looked at. A
//! machine that the log speaks against is dropped for free, one that it cannot speak for yet is looked at again with the next
//! search, and one that it speaks for waits beside what was searched for: it takes no place from that, and is let in by its
//! condition and by measurement alone. Without offers nothing here happens. Must not know who proposes.
//! Clauses: SCC-2, TOOL-8; decision D-130.

use super::hearing::earned_more;
use super::search::Screened;
use super::{Event, Learner, Phase};
use bem_base::digest::{Digest, hash_parts};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_base::fixed::Fixed;
use bem_synth::experience::Episode;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::library::Machine;
use std::collections::VecDeque;

/// Machines that are kept for a world; the oldest go first.
pub const OFFERS_MAX: usize = 32;
/// Offers that one search may submit.
const SUBMITTED_MAX: usize = 2;
/// Offers that nobody counts up to.
const COUNT_MAX: u64 = 1 << 32;

/// What was proposed for a world, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// How many there ever were.
    count: u64,
    machines: VecDeque<Machine>,
}

impl Offers {
    /// How many there ever were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// One more; one that is there already is no news.
    pub fn push(&mut self, machine: Machine) {
        if self.machines.contains(&machine) {
            return;
        }
        if self.machines.len() == OFFERS_MAX {
            self.machines.pop_front();
        }
        self.machines.push_back(machine);
        self.count += 1;
    }

    /// Names them.
    fn digest(&self) -> Digest {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        hash_parts("bem/offers", &[writer.as_bytes()])
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.count);
        writer.length(self.machines.len());
        self.machines.iter().for_each(|machine| machine.encode(writer));
    }

    /// Reads canonical bytes back, for worlds of this shape.
    pub fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<Offers, DecodeError> {
        let malformed = reader.error("machines that nobody can have proposed for this world");
        let (count, length) = (reader.u64()?, reader.length(8)?);
        if OFFERS_MAX < length || count < length as u64 || COUNT_MAX <= count || length == 0 {
            return Err(malformed);
        }
        let machines =
            (0..length).map(|_| Machine::decode(reader)).collect::<Result<VecDeque<_>, DecodeError>>()?;
        if machines.iter().all(|machine| machine.fits(shape)) {
            Ok(Offers { count, machines })
        } else {
            Err(malformed)
        }
    }
}

/// What was offered, as far as it was lent.
#[derive(Clone, Debug, Default)]
pub(super) struct Offered {
    offers: Offers,
    /// How many there were when they last were news, and when they were last looked at.
    heard: u64,
    looked: u64,
}

impl Offered {
    /// How many were looked at.
    pub(super) fn looked(&self) -> u64 {
        self.looked
    }

    /// Whether there is something to look at.
    pub(super) fn is_due(&self) -> bool {
        self.looked < self.offers.count
    }

    /// Everything is looked at.
    pub(super) fn look(&mut self) {
        self.looked = self.looked.max(self.offers.count);
    }

    /// Whether anything was ever offered.
    pub(super) fn is_used(&self) -> bool {
        0 < self.heard
    }

    /// Writes what must outlive the offers themselves; nothing where nothing was offered.
    pub(super) fn encode(&self, writer: &mut Writer) {
        if self.is_used() {
            writer.u64(self.heard);
            writer.u64(self.looked);
        }
    }

    /// Reads it back; the owner lends the offers again.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Offered, DecodeError> {
        if reader.remaining() == 0 {
            return Ok(Offered::default());
        }
        let malformed = reader.error("offers that nobody can have made");
        let (heard, looked) = (reader.u64()?, reader.u64()?);
        if heard == 0 || COUNT_MAX <= heard || heard < looked {
            return Err(malformed);
        }
        Ok(Offered { offers: Offers::default(), heard, looked })
    }
}

impl Learner {
    /// Is lent everything that others propose for its world.
    pub fn offer(&mut self, offers: Offers) {
        if self.offered.heard < offers.count {
            self.offered.heard = offers.count;
            self.history.link("bem/chain/offered", offers.digest().as_bytes());
        }
        self.offered.offers = offers;
    }

    /// Looks at what is new between two searches; what is worth it is decided like what was brought along.
    pub(super) fn look_at_offered(&mut self) -> Event {
        self.offered.look();
        if self.settings.config.synthesis && !self.explains_all() {
            self.propose_offered();
        }
        self.phase = Phase::Judge;
        Event::Searched
    }

    /// Submits what was offered, as far as it is worth measuring.
    pub(super) fn propose_offered(&mut self) {
        let machines = self.offered.offers.machines.iter().filter(|machine| machine.fits(&self.shape));
        // That it explains the log is for the log to say.
        let built = machines.filter_map(|machine| machine.instantiate(&self.shape));
        let candidates: Vec<Hypothesis> = built.map(|built| Hypothesis { exact: false, ..built }).collect();
        let mut worth: Vec<Hypothesis> = Vec::new();
        let recent = self.recent();
        for candidate in candidates {
            let is_known = worth.iter().any(|known| known.policy == candidate.policy);
            if worth.len() < SUBMITTED_MAX && !is_known && self.is_worth_a_try(&candidate, &recent) {
                worth.push(candidate);
            }
        }
        if !worth.is_empty() {
            self.make_room();
        }
        worth.into_iter().for_each(|candidate| self.submit_one(candidate, Fixed::ZERO));
    }

    /// Whether the log speaks for a machine that was offered: nothing that it speaks against is ever played.
    fn is_worth_a_try(&self, candidate: &Hypothesis, recent: &[&Episode]) -> bool {
        let policy = &candidate.policy;
        let is_timed = self.settings.config.stationary && 0 < policy.counts_steps();
        let is_early = self.candidates.tested_at(policy).is_some_and(|steps| self.tally.steps < 4 * steps);
        if is_timed || is_early || self.candidates.is_waiting(policy) {
            return false;
        }
        match self.screen(candidate) {
            Screened::Promises(_) | Screened::Leads | Screened::Undecided => true,
            Screened::Refuted => {
                1 < self.shape.horizon
                    && *policy != **self.machinery.frozen()
                    && earned_more(policy, self.machinery.frozen(), recent)
            }
        }
    }
}
