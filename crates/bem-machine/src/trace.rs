//! What the step writes down: records of sixteen bytes, appended to a buffer that somebody else empties.
//!
//! The step only appends; hashing and storing happen where the buffer is drained. A full buffer refuses the next step
//! rather than lose a record. Step and reward are separate records, because a reward may come later (decision D-18).
//!
//! ```text
//! byte     0      1      2..4    4..6     6..8     8..12       12..16
//! step     1      arm    bucket  family   action   step        cost in work units
//! reward   2      flags  delay   family   arm      step it     reward, signed
//!                        in steps                  belongs to
//! reset    3      way    bucket  family   0        step        0
//! episode  4      arm    0       family   steps    step        return, signed, held at 32 bits
//! block    5      0      blocks  family   0        step        0, followed by ten records of planes
//! ```
//!
//! An arm is a slot of the pool, or one of [`crate::turn::member`]: a plain action, chosen or drawn, the trial seat, a plan.
//! Kind 6 was in use once and is never used again.
//!
//! Must not know ledgers or files. Clauses: VM-13, LOG-1, D-16, D-18.

use bem_base::lanes::LaneWord;
use bem_learn::change::Change;

/// Sixteen bytes, as two little-endian words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record(pub [u64; 2]);

/// The most records one single-lane step appends: step, reward, reset and episode.
pub const RECORDS_PER_STEP: usize = 4;
/// Planes that a block record carries: four of the arm's number and the reward.
pub const PLANES_PER_BLOCK: usize = 5;
/// Records that one block step appends.
pub const RECORDS_PER_BLOCK: usize = 1 + 2 * PLANES_PER_BLOCK;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// A choice was made and acted on.
    Step {
        /// The family that plays.
        family: u16,
        /// Where the statistics are kept.
        bucket: u16,
        /// The member that acted.
        arm: u8,
        /// What it did.
        action: u16,
        /// The step's number, low 32 bits.
        step: u32,
        /// Work units of the expert.
        cost: u32,
    },
    /// The outcome of an earlier step arrived.
    Reward {
        /// The family that plays.
        family: u16,
        /// The slot that is credited.
        arm: u8,
        /// The step it belongs to, low 32 bits.
        step: u32,
        /// In milli-units.
        reward: i32,
        /// The episode is over.
        done: bool,
        /// The step was BAD.
        bad: bool,
        /// Steps since then, held at 65,535.
        delay: u16,
    },
    /// Change detection reset a bucket.
    Reset {
        /// The family.
        family: u16,
        /// The bucket.
        bucket: u16,
        /// Which way the losses moved.
        way: Change,
        /// The step's number, low 32 bits.
        step: u32,
    },
    /// An episode ended.
    Episode {
        /// The family.
        family: u16,
        /// The slot that was chosen for the whole episode; 0 when choices were made step by step.
        arm: u8,
        /// How many steps it took, held at 65,535.
        steps: u16,
        /// The step's number, low 32 bits.
        step: u32,
        /// Sum of rewards, held at 32 bits.
        episode_return: i32,
    },
    /// A block of 256 lanes took a step; the planes follow.
    Block {
        /// The family.
        family: u16,
        /// Which block.
        block: u16,
        /// The block step's number, low 32 bits.
        step: u32,
    },
}

impl TraceEvent {
    /// The sixteen bytes.
    #[inline]
    pub fn to_record(self) -> Record {
        let pack = |kind: u8, byte: u8, a: u16, b: u16, c: u16, d: u32, e: u32| {
            Record([
                u64::from(kind)
                    | u64::from(byte) << 8
                    | u64::from(a) << 16
                    | u64::from(b) << 32
                    | u64::from(c) << 48,
                u64::from(d) | u64::from(e) << 32,
            ])
        };
        match self {
            TraceEvent::Step { family, bucket, arm, action, step, cost } => {
                pack(1, arm, bucket, family, action, step, cost)
            }
            TraceEvent::Reward { family, arm, step, reward, done, bad, delay } => {
                let flags = u8::from(done) | u8::from(bad) << 1;
                pack(2, flags, delay, family, u16::from(arm), step, reward as u32)
            }
            TraceEvent::Reset { family, bucket, way, step } => pack(3, way as u8, bucket, family, 0, step, 0),
            TraceEvent::Episode { family, arm, steps, step, episode_return } => {
                pack(4, arm, 0, family, steps, step, episode_return as u32)
            }
            TraceEvent::Block { family, block, step } => pack(5, 0, block, family, 0, step, 0),
        }
    }

    /// Reads a record; nothing if it is not one.
    pub fn from_record(record: Record) -> Option<TraceEvent> {
        let Record([low, high]) = record;
        let byte = (low >> 8) as u8;
        let (a, b, c) = ((low >> 16) as u16, (low >> 32) as u16, (low >> 48) as u16);
        let (d, e) = (high as u32, (high >> 32) as u32);
        let event = match low as u8 {
            1 => TraceEvent::Step { family: b, bucket: a, arm: byte, action: c, step: d, cost: e },
            2 => TraceEvent::Reward {
                family: b,
                arm: c as u8,
                step: d,
                reward: e as i32,
                done: byte & 1 == 1,
                bad: byte & 2 == 2,
                delay: a,
            },
            3 => {
                let way = if byte == 0 { Change::Worse } else { Change::Better };
                TraceEvent::Reset { family: b, bucket: a, way, step: d }
            }
            4 => TraceEvent::Episode { family: b, arm: byte, steps: c, step: d, episode_return: e as i32 },
            5 => TraceEvent::Block { family: b, block: a, step: d },
            _ => return None,
        };
        // A record has one spelling: what does not come back the same is not a record.
        (event.to_record() == record).then_some(event)
    }
}

/// Records in order, in memory of fixed size.
#[derive(Clone, Debug)]
#[doc(alias = "TRACE")]
pub struct TraceBuffer {
    records: Vec<Record>,
    capacity: usize,
    appended: u64,
}

impl TraceBuffer {
    /// Room for this many records; all memory is taken now.
    pub fn new(capacity: usize) -> TraceBuffer {
        TraceBuffer { records: Vec::with_capacity(capacity), capacity, appended: 0 }
    }

    /// An empty buffer that goes on counting from a saved one.
    pub fn resumed(capacity: usize, appended: u64) -> TraceBuffer {
        TraceBuffer { appended, ..TraceBuffer::new(capacity) }
    }

    /// How many records still fit.
    #[inline]
    pub fn room(&self) -> usize {
        self.capacity - self.records.len()
    }

    /// Appends a record; the caller has made sure that there is room.
    #[inline]
    pub fn append(&mut self, event: TraceEvent) {
        self.push(event.to_record());
    }

    /// Appends what a block of lanes did.
    #[inline]
    pub fn append_block(&mut self, event: TraceEvent, planes: &[LaneWord; PLANES_PER_BLOCK]) {
        assert!(RECORDS_PER_BLOCK <= self.room(), "the trace has no room: drain it first");
        let mut records = [event.to_record(); RECORDS_PER_BLOCK];
        for (pair, LaneWord([a, b, c, d])) in records[1..].chunks_exact_mut(2).zip(planes) {
            pair[0] = Record([*a, *b]);
            pair[1] = Record([*c, *d]);
        }
        self.records.extend_from_slice(&records);
        self.appended += RECORDS_PER_BLOCK as u64;
    }

    #[inline]
    fn push(&mut self, record: Record) {
        assert!(self.records.len() < self.capacity, "the trace has no room: drain it first");
        self.records.push(record);
        self.appended += 1;
    }

    /// The records that wait.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// How many records were ever appended.
    pub fn appended(&self) -> u64 {
        self.appended
    }

    /// Hands all waiting records over and makes room.
    pub fn drain<R>(&mut self, take: impl FnOnce(&[Record]) -> R) -> R {
        let result = take(&self.records);
        self.records.clear();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    #[test]
    fn every_event_comes_back_from_its_record() {
        let mut prng = Prng::stream(1, "trace");
        for _ in 0..10_000 {
            let mut wide = || prng.next_u64();
            let (family, bucket, arm, step) = (wide() as u16, wide() as u16, wide() as u8, wide() as u32);
            let events = [
                TraceEvent::Step { family, bucket, arm, action: wide() as u16, step, cost: wide() as u32 },
                TraceEvent::Reward {
                    family,
                    arm,
                    step,
                    reward: wide() as i32,
                    done: wide() & 1 == 1,
                    bad: wide() & 1 == 1,
                    delay: wide() as u16,
                },
                TraceEvent::Reset { family, bucket, way: Change::Better, step },
                TraceEvent::Episode { family, arm, steps: bucket, step, episode_return: wide() as i32 },
                TraceEvent::Block { family, block: bucket, step },
            ];
            for event in events {
                assert_eq!(TraceEvent::from_record(event.to_record()), Some(event));
            }
            let noise = Record([wide(), wide()]);
            if let Some(event) = TraceEvent::from_record(noise) {
                assert_eq!(event.to_record(), noise);
            }
        }
    }

    #[test]
    fn a_drained_buffer_has_room_again_and_keeps_counting() {
        let mut trace = TraceBuffer::new(2);
        let event = TraceEvent::Block { family: 1, block: 2, step: 3 };
        trace.append(event);
        trace.append(event);
        assert_eq!(trace.room(), 0);
        assert_eq!(trace.drain(|records| records.len()), 2);
        trace.append(event);
        assert_eq!((trace.room(), trace.appended(), trace.records().len()), (1, 3, 1));
    }

    #[test]
    #[should_panic(expected = "the trace has no room")]
    fn a_full_buffer_never_drops_a_record() {
        TraceBuffer::new(0).append(TraceEvent::Block { family: 0, block: 0, step: 0 });
    }
}
