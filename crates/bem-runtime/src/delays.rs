//! How late rewards come: counts by powers of two, from which follows how long a reward is waited for.
//!
//! A reward that never comes would keep its episode open until its decision is forgotten. Where enough rewards have come, one that
//! has taken longer than 99 in a hundred of them did is not waited for. Clauses: VM-13; decision D-161.

use crate::limits::EXPIRE_AFTER_MAX;
use bem_base::encode::{DecodeError, Reader, Writer};

/// Powers of two up to the largest time that a decision is known for.
const CLASSES: usize = EXPIRE_AFTER_MAX.ilog2() as usize + 2;
/// Rewards that must have come before anything is concluded.
const REWARDS_MIN: u64 = 256;
/// One reward in so many may come later than it is waited for.
const LATER_ONE_IN: u64 = 100;
/// All counts are halved when there are so many, so that the latest say most.
const REWARDS_MAX: u64 = 1 << 16;

/// Rewards by the decisions of their world between their own and their coming.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delays {
    /// How many came after less than 2^n decisions, and not after less than half of that.
    counts: [u64; CLASSES],
}

impl Delays {
    /// A reward came after so many decisions.
    pub(crate) fn note(&mut self, decisions: u64) {
        let class = (u64::BITS - decisions.leading_zeros()) as usize;
        self.counts[class.min(CLASSES - 1)] += 1;
        if REWARDS_MAX <= self.counts.iter().sum() {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
    }

    /// Decisions after which a reward is not waited for; nothing while too few have come.
    pub(crate) fn patience(&self) -> Option<u64> {
        let all: u64 = self.counts.iter().sum();
        if all < REWARDS_MIN {
            return None;
        }
        let mut later = all;
        for (class, count) in self.counts.iter().enumerate() {
            later -= count;
            if LATER_ONE_IN * later <= all {
                return Some(1 << class);
            }
        }
        None
    }

    /// Writes the canonical bytes.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        self.counts.iter().for_each(|count| writer.u64(*count));
    }

    /// Reads canonical bytes back.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Delays, DecodeError> {
        let malformed = reader.error("more rewards than are counted");
        let mut delays = Delays::default();
        for count in &mut delays.counts {
            *count = reader.u64()?;
        }
        if delays.counts.iter().any(|count| REWARDS_MAX <= *count) { Err(malformed) } else { Ok(delays) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_as_long_as_nearly_all_took_and_for_ever_before_enough_came() {
        let mut delays = Delays::default();
        (0..255).for_each(|_| delays.note(3));
        assert_eq!(delays.patience(), None);
        delays.note(3);
        assert_eq!(delays.patience(), Some(4));
        // Two in a hundred come much later.
        (0..6).for_each(|_| delays.note(700));
        assert_eq!(delays.patience(), Some(1_024));
        (0..100_000u64).for_each(|number| delays.note(number % 1_001));
        assert_eq!(delays.patience(), Some(1_024));
        // What came long ago is halved away.
        (0..8 * REWARDS_MAX).for_each(|_| delays.note(0));
        assert_eq!(delays.patience(), Some(1));
        let mut writer = Writer::new();
        delays.encode(&mut writer);
        assert_eq!(Delays::decode(&mut Reader::new(writer.as_bytes())), Ok(delays));
    }
}
