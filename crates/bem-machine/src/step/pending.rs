//! Choices that wait for their reward: a ring, because a reward may come many steps later (decision D-12).
//!
//! Step numbers in the ring are consecutive, so a late reward finds its choice by subtraction. Must not know what a
//! choice is worth. Clauses: VM-13.

use super::StepNumber;
use bem_base::encode::{DecodeError, Reader, Writer};
use std::collections::VecDeque;

/// A choice on record: enough to credit it whenever its reward comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "last_choice")]
pub struct Choice {
    /// When it was made.
    pub step: StepNumber,
    /// Where its statistics are kept.
    pub bucket: u16,
    /// The expert's slot.
    pub arm: u8,
    /// Counts the experts that the slot has held: a reward for a gone expert is not credited to its successor.
    pub generation: u32,
    /// Made for the whole episode: single rewards are not credited to it.
    pub sticky: bool,
}

/// The ring. Invariant: entries are of consecutive steps; settled ones at the front are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRing {
    entries: VecDeque<(Choice, bool)>,
    capacity: usize,
}

impl PendingRing {
    /// Room for this many choices; all memory is taken now.
    pub fn new(capacity: usize) -> PendingRing {
        PendingRing { entries: VecDeque::with_capacity(capacity), capacity }
    }

    /// Whether another choice fits.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.entries.len() < self.capacity
    }

    /// How many choices are in the ring, settled or not.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Puts the choice of the next step on record.
    #[inline]
    pub fn push(&mut self, choice: Choice) {
        assert!(self.has_room(), "the caller checks for room");
        debug_assert!(self.entries.back().is_none_or(|(last, _)| last.step.0 + 1 == choice.step.0));
        self.entries.push_back((choice, false));
    }

    /// The choice of this step, if it still waits; it waits no longer.
    #[inline]
    pub fn settle(&mut self, step: StepNumber) -> Option<Choice> {
        let (front, _) = self.entries.front()?;
        let place = usize::try_from(step.0.checked_sub(front.step.0)?).ok()?;
        let (choice, settled) = self.entries.get_mut(place)?;
        if core::mem::replace(settled, true) {
            return None;
        }
        let choice = *choice;
        while self.entries.front().is_some_and(|(_, settled)| *settled) {
            self.entries.pop_front();
        }
        Some(choice)
    }

    /// The choices in the ring, oldest first.
    pub fn choices(&self) -> impl DoubleEndedIterator<Item = &Choice> {
        self.entries.iter().map(|(choice, _)| choice)
    }

    /// Forgets everything that waits.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.entries.len());
        for (choice, settled) in &self.entries {
            writer.u64(choice.step.0);
            writer.u16(choice.bucket);
            writer.u8(choice.arm);
            writer.u32(choice.generation);
            writer.bool(choice.sticky);
            writer.bool(*settled);
        }
    }

    /// Reads canonical bytes into a ring of this capacity.
    pub fn decode(capacity: usize, reader: &mut Reader<'_>) -> Result<PendingRing, DecodeError> {
        let start = reader.clone();
        let mut ring = PendingRing::new(capacity);
        for place in 0..reader.length(17)? {
            let choice = Choice {
                step: StepNumber(reader.u64()?),
                bucket: reader.u16()?,
                arm: reader.u8()?,
                generation: reader.u32()?,
                sticky: reader.bool()?,
            };
            let settled = reader.bool()?;
            let consecutive =
                ring.entries.back().is_none_or(|(last, _)| last.step.0.checked_add(1) == Some(choice.step.0));
            if !consecutive || !ring.has_room() || settled && place == 0 {
                return Err(start.error("pending choices out of order"));
            }
            ring.entries.push_back((choice, settled));
        }
        Ok(ring)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;
    use std::collections::BTreeMap;

    fn choice(step: u64) -> Choice {
        Choice { step: StepNumber(step), bucket: step as u16, arm: 3, generation: 1, sticky: false }
    }

    #[test]
    fn every_choice_is_settled_once_whatever_the_order() {
        let mut prng = Prng::stream(1, "pending");
        let mut ring = PendingRing::new(32);
        let mut model = BTreeMap::new();
        let mut next = 0;
        for _ in 0..50_000 {
            if ring.has_room() && prng.bit() {
                ring.push(choice(next));
                model.insert(next, choice(next));
                next += 1;
            } else {
                let step = prng.below(next + 2);
                assert_eq!(ring.settle(StepNumber(step)), model.remove(&step));
            }
            if prng.below(1_000) == 0 {
                let mut writer = Writer::new();
                ring.encode(&mut writer);
                assert_eq!(PendingRing::decode(32, &mut Reader::new(writer.as_bytes())).as_ref(), Ok(&ring));
            }
        }
    }
}
