//! Choices that wait for their reward: a ring, because a reward may come many steps later (decision D-12).
//!
//! The latest choice waits beside the ring and enters it only when another follows, so that rewards that come at once
//! never touch it. Step numbers in the ring are consecutive, so a late reward finds its choice by subtraction. Must
//! not know what a choice is worth. Clauses: VM-13.

use super::StepNumber;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_learn::tsallis_inf::Chance;
use std::collections::VecDeque;

/// A choice on record: enough to credit it whenever its reward comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "last_choice")]
pub struct Choice {
    /// When it was made.
    pub step: StepNumber,
    /// Where its statistics are kept.
    pub bucket: u16,
    /// The member: an expert's slot, or one of [`crate::turn::member`].
    pub arm: u8,
    /// What was done.
    pub action: u16,
    /// Counts the experts that the slot has held: a reward for a gone expert is not credited to its successor.
    pub generation: u32,
    /// Made for the whole episode: single rewards are not credited to it.
    pub sticky: bool,
    /// The chance it had when it was drawn.
    pub chance: Chance,
}

impl Choice {
    /// The chance that it had, if it was drawn.
    #[inline]
    pub fn drawn_with(&self) -> Option<Chance> {
        (self.chance != Chance::CERTAIN).then_some(self.chance)
    }
}

/// The ring. Invariants: entries are of consecutive steps; settled ones at the front are gone; the latest choice
/// follows the last entry, if there are entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRing {
    latest: Option<Choice>,
    entries: VecDeque<(Choice, bool)>,
    capacity: usize,
}

impl PendingRing {
    /// Room for this many choices; all memory is taken now.
    pub fn new(capacity: usize) -> PendingRing {
        PendingRing { latest: None, entries: VecDeque::with_capacity(capacity), capacity }
    }

    /// Whether another choice fits.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.entries.len() < self.capacity
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.latest.is_none() && self.entries.is_empty()
    }

    /// Puts the choice of the next step on record.
    #[inline]
    pub fn push(&mut self, choice: Choice) {
        if self.latest.is_some() || !self.entries.is_empty() {
            self.retain_latest();
        }
        self.latest = Some(choice);
    }

    /// The latest choice, or its settled place, joins the ring: others may still wait before it.
    #[cold]
    fn retain_latest(&mut self) {
        assert!(self.has_room(), "the caller checks for room");
        match (self.latest.take(), self.entries.back()) {
            (Some(latest), _) => self.entries.push_back((latest, false)),
            (None, Some((last, _))) => {
                let step = StepNumber(last.step.0 + 1);
                self.entries.push_back((Choice { step, ..*last }, true));
            }
            (None, None) => {}
        }
    }

    /// The choice of this step, if it still waits; it waits no longer.
    #[inline]
    pub fn settle(&mut self, step: StepNumber) -> Option<Choice> {
        if self.latest.is_some_and(|latest| latest.step == step) {
            return self.latest.take();
        }
        self.settle_late(step)
    }

    #[cold]
    fn settle_late(&mut self, step: StepNumber) -> Option<Choice> {
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

    /// The choices that wait and the settled ones between them, oldest first.
    pub fn choices(&self) -> impl DoubleEndedIterator<Item = &Choice> {
        self.entries.iter().map(|(choice, _)| choice).chain(&self.latest)
    }

    /// Forgets everything that waits.
    pub fn clear(&mut self) {
        self.latest = None;
        self.entries.clear();
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.bool(self.latest.is_some());
        let latest = self.latest.iter().map(|latest| (latest, false));
        let entries = self.entries.iter().map(|(choice, settled)| (choice, *settled));
        writer.length(self.entries.len());
        for (choice, settled) in entries.chain(latest) {
            writer.u64(choice.step.0);
            writer.u16(choice.bucket);
            writer.u8(choice.arm);
            writer.u16(choice.action);
            writer.u32(choice.generation);
            writer.bool(choice.sticky);
            choice.chance.encode(writer);
            writer.bool(settled);
        }
    }

    /// Reads canonical bytes into a ring of this capacity.
    pub fn decode(capacity: usize, reader: &mut Reader<'_>) -> Result<PendingRing, DecodeError> {
        let start = reader.clone();
        let disorder = || start.error("pending choices out of order");
        let mut ring = PendingRing::new(capacity);
        let has_latest = reader.bool()?;
        let count = reader.length(23)?;
        for place in 0..count + usize::from(has_latest) {
            let choice = Choice {
                step: StepNumber(reader.u64()?),
                bucket: reader.u16()?,
                arm: reader.u8()?,
                action: reader.u16()?,
                generation: reader.u32()?,
                sticky: reader.bool()?,
                chance: Chance::decode(reader)?,
            };
            let settled = reader.bool()?;
            let follows =
                ring.entries.back().is_none_or(|(last, _)| last.step.0.checked_add(1) == Some(choice.step.0));
            if !follows || settled && (place == 0 || place == count) {
                return Err(disorder());
            }
            if place == count {
                ring.latest = Some(choice);
            } else if ring.has_room() {
                ring.entries.push_back((choice, settled));
            } else {
                return Err(disorder());
            }
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
        Choice {
            step: StepNumber(step),
            bucket: step as u16,
            arm: 3,
            action: 5,
            generation: 1,
            sticky: false,
            chance: Chance::CERTAIN,
        }
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
