//! The circular queue of patches and where each of them stands.
//!
//! A slot is free again when its patch is decided. A patch that finds no free slot is turned away and counted,
//! because a loss that nobody sees is the worst kind. Must not know what a patch does. Clause: SCC-1.

use crate::patch::Patch;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};

/// Where a patch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PatchStatus {
    /// Proposed.
    Pending = 0,
    /// Its condition was proven.
    Verified = 1,
    /// Refuted, undecided, obsolete or not worth it.
    Rejected = 2,
    /// In force.
    Applied = 3,
    /// Taken back because what it promised did not come.
    RolledBack = 4,
}

impl PatchStatus {
    /// All of them, in order of their numbers.
    pub const ALL: [PatchStatus; 5] = [
        PatchStatus::Pending,
        PatchStatus::Verified,
        PatchStatus::Rejected,
        PatchStatus::Applied,
        PatchStatus::RolledBack,
    ];

    /// Whether the patch still waits for something.
    pub const fn is_open(self) -> bool {
        matches!(self, PatchStatus::Pending | PatchStatus::Verified)
    }

    /// Whether the one may follow the other.
    pub const fn may_become(self, next: PatchStatus) -> bool {
        matches!(
            (self, next),
            (PatchStatus::Pending, PatchStatus::Verified | PatchStatus::Rejected)
                | (PatchStatus::Verified, PatchStatus::Applied | PatchStatus::Rejected)
                | (PatchStatus::Applied, PatchStatus::RolledBack)
        )
    }
}

/// Why the queue did not do what it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// Every slot holds an open patch.
    #[error("all {capacity} slots hold open patches (K_patch_queue_max): patch {serial} is turned away")]
    Full {
        /// Slots there are.
        capacity: usize,
        /// The patch turned away.
        serial: u64,
    },
    /// The serial was used before.
    #[error("patch {serial} is not new: serials up to {last} were used")]
    Replayed {
        /// The serial given.
        serial: u64,
        /// The highest one used.
        last: u64,
    },
    /// No such patch is in the queue.
    #[error("patch {serial} is not in the queue")]
    Unknown {
        /// The serial asked for.
        serial: u64,
    },
    /// The status cannot follow.
    #[error("patch {serial} is {from:?} and cannot become {to:?}")]
    Transition {
        /// Which patch.
        serial: u64,
        /// Its status.
        from: PatchStatus,
        /// The status asked for.
        to: PatchStatus,
    },
}

/// What has happened in a queue, ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Patches taken in.
    pub submitted: u64,
    /// Patches turned away because the queue was full.
    pub overflowed: u64,
    /// Patches turned away because their serial was used before.
    pub replayed: u64,
    /// Patches rejected because the tables had changed.
    pub obsolete: u64,
}

/// The queue. Invariants: at most `capacity` slots; serials rise with every patch taken in.
#[derive(Clone, Debug)]
#[doc(alias = "PATCH_QUEUE")]
pub struct PatchQueue {
    capacity: usize,
    slots: Vec<(Patch, PatchStatus)>,
    cursor: usize,
    last_serial: Option<u64>,
    counts: QueueCounts,
}

impl PatchQueue {
    /// An empty queue with this many slots.
    pub fn new(capacity: usize) -> PatchQueue {
        assert!(0 < capacity);
        PatchQueue {
            capacity,
            slots: Vec::new(),
            cursor: 0,
            last_serial: None,
            counts: QueueCounts::default(),
        }
    }

    /// Takes a patch in as PENDING. A decided patch makes room, the one decided longest ago in ring order first.
    pub fn submit(&mut self, patch: Patch) -> Result<(), QueueError> {
        let serial = patch.serial;
        if let Some(last) = self.last_serial.filter(|last| serial <= *last) {
            self.counts.replayed += 1;
            return Err(QueueError::Replayed { serial, last });
        }
        let place = if self.slots.len() < self.capacity {
            self.slots.len()
        } else {
            let places = (0..self.capacity).map(|offset| (self.cursor + offset) % self.capacity);
            let mut closed = places.filter(|place| !self.slots[*place].1.is_open());
            match closed.next() {
                Some(place) => place,
                None => {
                    self.counts.overflowed += 1;
                    return Err(QueueError::Full { capacity: self.capacity, serial });
                }
            }
        };
        let entry = (patch, PatchStatus::Pending);
        if place == self.slots.len() {
            self.slots.push(entry);
        } else {
            self.slots[place] = entry;
        }
        self.cursor = (place + 1) % self.capacity;
        self.last_serial = Some(serial);
        self.counts.submitted += 1;
        Ok(())
    }

    /// The PENDING patch with the lowest serial.
    pub fn next_pending(&self) -> Option<&Patch> {
        let pending = self.slots.iter().filter(|(_, status)| *status == PatchStatus::Pending);
        pending.map(|(patch, _)| patch).min_by_key(|patch| patch.serial)
    }

    /// A patch that is still in the queue.
    pub fn get(&self, serial: u64) -> Option<&Patch> {
        self.slots.iter().find(|(patch, _)| patch.serial == serial).map(|(patch, _)| patch)
    }

    /// Where a patch stands, if it is still in the queue.
    pub fn status(&self, serial: u64) -> Option<PatchStatus> {
        self.slots.iter().find(|(patch, _)| patch.serial == serial).map(|(_, status)| *status)
    }

    /// Moves a patch on, along the transitions there are.
    pub fn advance(&mut self, serial: u64, to: PatchStatus) -> Result<(), QueueError> {
        let entry = self.slots.iter_mut().find(|(patch, _)| patch.serial == serial);
        let (_, status) = entry.ok_or(QueueError::Unknown { serial })?;
        if !status.may_become(to) {
            return Err(QueueError::Transition { serial, from: *status, to });
        }
        *status = to;
        Ok(())
    }

    /// Rejects every open patch that was made against something else than what there is now; returns their serials.
    pub fn reject_obsolete(&mut self, parent: impl Fn(&Patch) -> Option<Digest>) -> Vec<u64> {
        let mut serials = Vec::new();
        for (patch, status) in &mut self.slots {
            if status.is_open() && parent(patch) != Some(patch.parent) {
                *status = PatchStatus::Rejected;
                serials.push(patch.serial);
            }
        }
        serials.sort_unstable();
        self.counts.obsolete += serials.len() as u64;
        serials
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.slots.len());
        for (patch, status) in &self.slots {
            patch.encode(writer);
            writer.u8(*status as u8);
        }
        writer.u32(self.cursor as u32);
        writer.bool(self.last_serial.is_some());
        writer.u64(self.last_serial.unwrap_or(0));
        let QueueCounts { submitted, overflowed, replayed, obsolete } = self.counts;
        [submitted, overflowed, replayed, obsolete].into_iter().for_each(|count| writer.u64(count));
    }

    /// Reads the canonical bytes of a queue with this many slots.
    pub fn decode(capacity: usize, reader: &mut Reader<'_>) -> Result<PatchQueue, DecodeError> {
        let malformed = reader.error("a queue that cannot have come about");
        let mut queue = PatchQueue::new(capacity);
        let count = reader.length(44)?;
        for _ in 0..count {
            let patch = Patch::decode(reader)?;
            let status = *PatchStatus::ALL.get(usize::from(reader.u8()?)).ok_or(malformed.clone())?;
            queue.slots.push((patch, status));
        }
        queue.cursor = reader.u32()? as usize;
        let (any, last) = (reader.bool()?, reader.u64()?);
        queue.last_serial = any.then_some(last);
        queue.counts = QueueCounts {
            submitted: reader.u64()?,
            overflowed: reader.u64()?,
            replayed: reader.u64()?,
            obsolete: reader.u64()?,
        };
        let known = |(patch, _): &(Patch, PatchStatus)| any && patch.serial <= last;
        let fits = count <= capacity && queue.cursor < capacity && (any || last == 0);
        if fits && queue.slots.iter().all(known) { Ok(queue) } else { Err(malformed) }
    }

    /// Patches that wait for something.
    pub fn backlog(&self) -> usize {
        self.slots.iter().filter(|(_, status)| status.is_open()).count()
    }

    /// What has happened so far.
    pub fn counts(&self) -> QueueCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::{Change, ExpectedEffects};

    fn patch(serial: u64, parent: &str) -> Patch {
        Patch {
            serial,
            family: 0,
            parent: bem_base::digest::hash(parent.as_bytes()),
            change: Change::Retire { slot: 1 },
            effects: ExpectedEffects::default(),
        }
    }

    #[test]
    fn a_full_queue_turns_away_and_counts_and_decided_patches_make_room() {
        let mut queue = PatchQueue::new(3);
        (1..=3).for_each(|serial| queue.submit(patch(serial, "a")).unwrap());
        assert_eq!(queue.submit(patch(4, "a")), Err(QueueError::Full { capacity: 3, serial: 4 }));
        assert_eq!(queue.counts().overflowed, 1);
        queue.advance(2, PatchStatus::Rejected).unwrap();
        queue.submit(patch(4, "a")).unwrap();
        assert_eq!(queue.status(2), None);
        assert_eq!((queue.status(4), queue.backlog()), (Some(PatchStatus::Pending), 3));
        assert_eq!(queue.next_pending().unwrap().serial, 1);
    }

    #[test]
    fn a_serial_is_never_taken_twice() {
        let mut queue = PatchQueue::new(2);
        queue.submit(patch(5, "a")).unwrap();
        for serial in [5, 4, 0] {
            assert_eq!(queue.submit(patch(serial, "a")), Err(QueueError::Replayed { serial, last: 5 }));
        }
        assert_eq!(queue.counts().replayed, 3);
    }

    #[test]
    fn patches_against_older_tables_are_rejected() {
        let mut queue = PatchQueue::new(4);
        queue.submit(patch(1, "old")).unwrap();
        queue.submit(patch(2, "new")).unwrap();
        let now = bem_base::digest::hash(b"new");
        assert_eq!(queue.reject_obsolete(|_| Some(now)), [1]);
        assert_eq!(queue.status(1), Some(PatchStatus::Rejected));
        assert_eq!(queue.status(2), Some(PatchStatus::Pending));
        assert_eq!(queue.counts().obsolete, 1);
    }

    #[test]
    fn a_queue_comes_back_from_its_bytes_and_goes_on_the_same() {
        let mut queue = PatchQueue::new(3);
        (1..=3).for_each(|serial| queue.submit(patch(serial, "a")).unwrap());
        queue.advance(2, PatchStatus::Rejected).unwrap();
        queue.submit(patch(7, "b")).unwrap();
        let mut writer = Writer::new();
        queue.encode(&mut writer);
        let mut reader = Reader::new(writer.as_bytes());
        let mut copy = PatchQueue::decode(3, &mut reader).unwrap();
        assert_eq!(reader.finish(), Ok(()));
        for serial in [7, 8] {
            assert_eq!(copy.submit(patch(serial, "a")), queue.submit(patch(serial, "a")));
        }
        assert_eq!((copy.counts(), copy.backlog()), (queue.counts(), queue.backlog()));
        assert!(PatchQueue::decode(2, &mut Reader::new(writer.as_bytes())).is_err());
    }

    #[test]
    fn only_the_written_transitions_exist() {
        use PatchStatus::*;
        let all = PatchStatus::ALL;
        let mut pairs = Vec::new();
        for from in all {
            pairs.extend(all.into_iter().filter(|to| from.may_become(*to)).map(|to| (from, to)));
        }
        let written = [(Pending, Verified), (Pending, Rejected), (Verified, Rejected), (Verified, Applied)];
        assert_eq!(pairs.len(), 5);
        assert!(written.iter().all(|pair| pairs.contains(pair)) && pairs.contains(&(Applied, RolledBack)));
    }
}
