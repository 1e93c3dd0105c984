//! Choices that wait for their reward: a bounded ring, one for each lane.
//!
//! A reward may come steps after the choice it belongs to, out of order, or once for a whole episode. The ring
//! keeps the choices in order of their steps and never drops one: when it is full the caller must settle first.
//! Nothing is allocated after it was made. Clauses: VM-13, D-12.

use bem_base::encode::{DecodeError, Reader, Writer};

/// A choice whose loss is not known yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(alias = "last_choice")]
pub struct PendingChoice {
    /// The step of the choice; rises from one choice to the next.
    pub step: u64,
    /// The family it was made for.
    pub family: u32,
    /// The bucket it was made in.
    pub bucket: u16,
    /// The arm that was chosen.
    pub arm: u8,
}

/// The ring has no room: a reward must be settled before the next choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{capacity} choices wait for their rewards already")]
pub struct PendingFull {
    /// How many choices the ring holds.
    pub capacity: usize,
}

/// Pending choices in order of their steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRing {
    slots: Box<[PendingChoice]>,
    /// One flag a slot: settled out of order, to be skipped when the head gets there.
    settled: Box<[bool]>,
    head: usize,
    length: usize,
    waiting: usize,
}

impl PendingRing {
    /// An empty ring for at most `capacity` choices, which must be positive.
    pub fn new(capacity: usize) -> PendingRing {
        assert!(0 < capacity);
        PendingRing {
            slots: vec![PendingChoice::default(); capacity].into(),
            settled: vec![false; capacity].into(),
            head: 0,
            length: 0,
            waiting: 0,
        }
    }

    /// Choices that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds a choice; its step must be later than all before.
    pub fn push(&mut self, choice: PendingChoice) -> Result<(), PendingFull> {
        if self.length == self.slots.len() {
            return Err(PendingFull { capacity: self.slots.len() });
        }
        assert!(self.length == 0 || self.slots[self.position(self.length - 1)].step < choice.step);
        let position = self.position(self.length);
        self.slots[position] = choice;
        self.settled[position] = false;
        self.length += 1;
        self.waiting += 1;
        Ok(())
    }

    /// Takes out the choice made at this step, if it waits. Work: the logarithm of what the ring holds, and
    /// each slot is released once.
    pub fn settle(&mut self, step: u64) -> Option<PendingChoice> {
        let (mut low, mut high) = (0, self.length);
        while low < high {
            let middle = (low + high) / 2;
            if self.slots[self.position(middle)].step < step { low = middle + 1 } else { high = middle }
        }
        let position = self.position(low);
        if low == self.length || self.slots[position].step != step || self.settled[position] {
            return None;
        }
        self.settled[position] = true;
        self.waiting -= 1;
        let choice = self.slots[position];
        self.release();
        Some(choice)
    }

    /// Takes out the earliest choice: for an episode's return, credited to all that wait.
    pub fn settle_first(&mut self) -> Option<PendingChoice> {
        (0 < self.length).then(|| self.slots[self.head].step).and_then(|step| self.settle(step))
    }

    /// Writes the choices that wait, for a snapshot.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.slots.len());
        writer.length(self.waiting);
        let waiting =
            (0..self.length).map(|offset| self.position(offset)).filter(|slot| !self.settled[*slot]);
        for choice in waiting.map(|position| self.slots[position]) {
            writer.u64(choice.step);
            writer.u32(choice.family);
            writer.u16(choice.bucket);
            writer.u8(choice.arm);
        }
    }

    /// Reads choices back into a ring of this capacity; another capacity or steps out of order are refused.
    pub fn decode(reader: &mut Reader<'_>, capacity: usize) -> Result<PendingRing, DecodeError> {
        let start = reader.clone();
        if reader.u32()? as usize != capacity {
            return Err(start.error("a ring of another capacity"));
        }
        let waiting = reader.u32()? as usize;
        if capacity < waiting {
            return Err(start.error("a ring that holds more than its capacity"));
        }
        let mut ring = PendingRing::new(capacity);
        let mut last = None;
        for _ in 0..waiting {
            let (step, family, bucket, arm) = (reader.u64()?, reader.u32()?, reader.u16()?, reader.u8()?);
            if last.is_some_and(|last| step <= last) {
                return Err(reader.error("pending choices out of order"));
            }
            last = Some(step);
            let pushed = ring.push(PendingChoice { step, family, bucket, arm });
            assert_eq!(pushed, Ok(()), "no more choices than the capacity");
        }
        Ok(ring)
    }

    fn position(&self, offset: usize) -> usize {
        (self.head + offset) % self.slots.len()
    }

    fn release(&mut self) {
        while 0 < self.length && self.settled[self.head] {
            self.head = self.position(1);
            self.length -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn choice(step: u64) -> PendingChoice {
        PendingChoice { step, family: 3, bucket: (step % 7) as u16, arm: (step % 16) as u8 }
    }

    #[test]
    fn a_full_ring_refuses_and_says_how_much_it_holds() {
        let mut ring = PendingRing::new(2);
        assert_eq!(ring.push(choice(1)), Ok(()));
        assert_eq!(ring.push(choice(5)), Ok(()));
        assert_eq!(ring.push(choice(6)), Err(PendingFull { capacity: 2 }));
        // A choice settled behind one that waits frees its slot only once the first is settled too.
        assert_eq!(ring.settle(5), Some(choice(5)));
        assert!(ring.push(choice(6)).is_err());
        assert_eq!(ring.settle_first(), Some(choice(1)));
        assert_eq!(ring.push(choice(6)), Ok(()));
        assert_eq!(ring.waiting(), 1);
    }

    #[test]
    fn a_reward_is_credited_once() {
        let mut ring = PendingRing::new(4);
        ring.push(choice(9)).unwrap();
        assert_eq!(ring.settle(8), None);
        assert_eq!(ring.settle(9), Some(choice(9)));
        assert_eq!(ring.settle(9), None);
        assert_eq!(ring.settle_first(), None);
    }

    proptest::proptest! {
        #[test]
        fn the_ring_agrees_with_an_ordered_map(seed in 0u64.., capacity in 1usize..20) {
            let mut prng = bem_base::prng::Prng::quick(seed);
            let mut ring = PendingRing::new(capacity);
            let mut model = BTreeMap::new();
            let mut step = 0;
            for _ in 0..300 {
                step += 1 + prng.below(3);
                if prng.bit() && ring.push(choice(step)).is_ok() {
                    model.insert(step, choice(step));
                }
                if prng.bit() {
                    let asked = step.saturating_sub(prng.below(30));
                    proptest::prop_assert_eq!(ring.settle(asked), model.remove(&asked));
                }
                if prng.below(8) == 0 {
                    proptest::prop_assert_eq!(ring.settle_first(), model.pop_first().map(|(_, choice)| choice));
                }
                proptest::prop_assert_eq!(ring.waiting(), model.len());
            }
            // A saved ring holds the same choices, though its free slots may lie elsewhere.
            let mut writer = Writer::new();
            ring.encode(&mut writer);
            let bytes = writer.into_bytes();
            let mut copy = PendingRing::decode(&mut Reader::new(&bytes), capacity).unwrap();
            while let Some(choice) = ring.settle_first() {
                proptest::prop_assert_eq!(copy.settle_first(), Some(choice));
            }
            proptest::prop_assert_eq!(copy.settle_first(), None);
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = PendingRing::decode(&mut Reader::new(&bytes), 4);
            let mut prefixed = vec![4, 0, 0, 0, 2, 0, 0, 0];
            prefixed.extend(bytes);
            let _ = PendingRing::decode(&mut Reader::new(&prefixed), 4);
        }
    }
}
