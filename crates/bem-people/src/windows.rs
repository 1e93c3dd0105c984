//! How often may be asked: questions in a window of steps, without a clock.
//!
//! A window is 1,024 units (steps or episodes); the rate is granted as a credit that grows with every unit and is bounded by
//! what one window grants, so that quiet times do not add up to a flood. Clause: HUM-10.

use crate::control::RATE_ONE;
use bem_base::encode::{DecodeError, Reader, Writer};

/// Units of a window.
pub const WINDOW: u64 = 1_024;

/// What is left to ask, in parts of [`RATE_ONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    credit: u64,
}

impl Window {
    /// One more unit came by; `rate` questions for every 10,000.
    pub fn pass(&mut self, rate: u16) {
        let most = (u64::from(rate) * WINDOW).max(u64::from(RATE_ONE));
        self.credit = (self.credit + u64::from(rate)).min(most);
    }

    /// Whether one more may be asked.
    pub fn has_room(&self) -> bool {
        u64::from(RATE_ONE) <= self.credit
    }

    /// One was asked.
    pub fn spend(&mut self) {
        self.credit = self.credit.saturating_sub(u64::from(RATE_ONE));
    }

    /// What is left, in parts of [`RATE_ONE`].
    pub fn left(&self) -> u64 {
        self.credit
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.credit);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Window, DecodeError> {
        let malformed = reader.error("more left to ask than any rate grants");
        let credit = reader.u64()?;
        if credit <= u64::from(RATE_ONE) * WINDOW { Ok(Window { credit }) } else { Err(malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_asked_than_the_rate_allows_in_any_window() {
        for rate in [0u16, 1, 100, 5_000, 10_000] {
            let mut window = Window::default();
            let mut asked = Vec::new();
            for step in 0..20_000u64 {
                window.pass(rate);
                // Quiet for a while, then everything would be asked about.
                let wants = 8_000 < step;
                if wants && window.has_room() {
                    window.spend();
                    asked.push(step);
                }
            }
            let allowed =
                |units: u64| units * u64::from(rate) / 10_000 + WINDOW * u64::from(rate) / 10_000 + 1;
            assert!(asked.len() as u64 <= allowed(12_000), "{rate}: {}", asked.len());
            assert_eq!(asked.is_empty(), rate == 0);
        }
    }
}
