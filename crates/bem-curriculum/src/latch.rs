//! The latch: once committed to an option, hold it until it is completed, closed, endangered or lost.
//!
//! Bistable by default: a rise of the variance never releases. The legacy mode, which re-decides at every look,
//! is kept as the no-hold control. Clause: CUR-2.

use bem_base::encode::{DecodeError, Reader, Writer};

/// Why a held option was let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Release {
    /// It was completed.
    Completion = 0,
    /// The closure operator fired.
    Closure = 1,
    /// Harm was too great.
    Urgency = 2,
    /// It has no target any more.
    TargetLost = 3,
    /// The variance rose: only without hold, and counted as premature.
    Variance = 4,
    /// The episode ended; no release in the proper sense.
    EpisodeEnd = 5,
}

/// Completion at which a hold ends by itself, in thousandths.
pub const RELEASE_THRESHOLD_MILLI: u32 = 750;
/// Harm level above which a hold ends, as a fraction.
pub const URGENCY_RELEASE: i64 = (800 << 16) / 1_000;

/// The latch's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latch {
    /// Hold until released; else re-decide at every look.
    pub bistable: bool,
    held: Option<u8>,
    epoch: u64,
    run_length: u32,
    refractory: u32,
    refused: u64,
    releases: [u64; 6],
}

impl Latch {
    /// An open latch.
    pub fn new(bistable: bool) -> Latch {
        Latch { bistable, held: None, epoch: 0, run_length: 0, refractory: 0, refused: 0, releases: [0; 6] }
    }

    /// The option held, if the latch is on.
    pub fn held(&self) -> Option<u8> {
        self.held
    }

    /// Number of the current or last hold.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Ticks of the current hold.
    pub fn run_length(&self) -> u32 {
        self.run_length
    }

    /// Ticks until the latch may close again.
    pub fn refractory(&self) -> u32 {
        self.refractory
    }

    /// Requests refused while refractory.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// How often it was released for this reason.
    pub fn released(&self, cause: Release) -> u64 {
        self.releases[cause as usize]
    }

    /// A look with the gate open: holds the option, unless refractory. Says whether the latch closed now.
    pub fn elevate(&mut self, option: u8) -> bool {
        if 0 < self.refractory {
            self.refused += 1;
            return false;
        }
        match self.held {
            Some(held) if self.bistable || held == option => false,
            Some(_) => {
                (self.held, self.run_length) = (Some(option), 0);
                self.epoch += 1;
                false
            }
            None => {
                (self.held, self.run_length) = (Some(option), 0);
                self.epoch += 1;
                true
            }
        }
    }

    /// A look with the gate shut: only without hold does that release.
    pub fn variance_rose(&mut self) -> bool {
        !self.bistable && self.release(Release::Variance)
    }

    /// Lets go; says whether anything was held.
    pub fn release(&mut self, cause: Release) -> bool {
        let held = self.held.take().is_some();
        if held {
            self.releases[cause as usize] += 1;
            self.run_length = 0;
        }
        held
    }

    /// Forbids closing for some ticks; overlapping demands take the longer.
    pub fn refract(&mut self, ticks: u32) {
        self.refractory = self.refractory.max(ticks);
    }

    /// One tick passes.
    pub fn tick(&mut self) {
        self.refractory = self.refractory.saturating_sub(1);
        self.run_length += u32::from(self.held.is_some());
    }

    /// A new episode: the latch is open.
    pub fn reset(&mut self) {
        self.release(Release::EpisodeEnd);
        self.refractory = 0;
    }

    /// Writes the state.
    pub fn encode(&self, writer: &mut Writer) {
        writer.bool(self.bistable);
        writer.u8(self.held.map_or(u8::MAX, |option| option));
        for value in [self.epoch, u64::from(self.run_length), u64::from(self.refractory), self.refused] {
            writer.u64(value);
        }
        self.releases.iter().for_each(|count| writer.u64(*count));
    }

    /// Reads the state.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Latch, DecodeError> {
        let mut latch = Latch::new(reader.bool()?);
        latch.held = Some(reader.u8()?).filter(|option| *option != u8::MAX);
        latch.epoch = reader.u64()?;
        (latch.run_length, latch.refractory) = (reader.u64()? as u32, reader.u64()? as u32);
        latch.refused = reader.u64()?;
        for count in &mut latch.releases {
            *count = reader.u64()?;
        }
        Ok(latch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bistable_hold_survives_everything_but_its_four_releases() {
        let mut latch = Latch::new(true);
        assert!(latch.elevate(2));
        for _ in 0..12 {
            assert!(!latch.elevate(1));
            assert!(!latch.variance_rose());
            latch.tick();
        }
        assert_eq!((latch.held(), latch.epoch(), latch.run_length()), (Some(2), 1, 12));
        for cause in [Release::Completion, Release::Closure, Release::Urgency, Release::TargetLost] {
            assert!(latch.release(cause));
            assert!(!latch.release(cause), "nothing is held any more");
            assert_eq!(latch.released(cause), 1);
            latch.elevate(0);
        }
    }

    #[test]
    fn while_refractory_a_request_is_a_counted_no_op() {
        let mut latch = Latch::new(true);
        latch.refract(3);
        latch.refract(2);
        for _ in 0..3 {
            assert!(!latch.elevate(0));
            latch.tick();
        }
        assert_eq!((latch.refused(), latch.held()), (3, None));
        assert!(latch.elevate(0));
    }

    #[test]
    fn without_hold_the_latch_flickers_with_the_variance() {
        let mut latch = Latch::new(false);
        for _ in 0..5 {
            assert!(latch.elevate(1));
            assert!(latch.variance_rose());
        }
        assert_eq!(latch.released(Release::Variance), 5);
        latch.elevate(1);
        latch.elevate(2);
        assert_eq!((latch.held(), latch.epoch()), (Some(2), 7), "another option is another epoch");
    }
}
