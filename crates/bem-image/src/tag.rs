//! Names of images: `bem-core:0.0.1` for the base, `bem-brain:YYYYMMDD-HHMM[-N]` for a state, `bem-brain:stable` for a promoted one.
//!
//! The time of a snapshot stands in its tag and nowhere else, so that identical states have identical digests. Must not know a
//! clock. Clauses: IMG-2, IMG-6; decision D-85.

use crate::limits::TAG_BYTES_MAX;
use bem_base::calendar::{civil, days};

/// The name of base images.
pub const BASE_NAME: &str = "bem-core";
/// The version of the base image that this program builds.
pub const BASE_VERSION: &str = "0.0.1";
/// The name of state images.
pub const BRAIN_NAME: &str = "bem-brain";
/// The tag of what was promoted.
pub const STABLE: &str = "stable";

/// A minute in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minute {
    /// Days since 1970.
    pub day: i64,
    /// Minutes of that day.
    pub minute: u32,
}

impl Minute {
    /// The minute in which this second since 1970 lies.
    pub fn of(seconds: u64) -> Minute {
        let day = (seconds / 86_400) as i64;
        Minute { day, minute: (seconds % 86_400 / 60) as u32 }
    }

    /// The number of the week; weeks begin on Monday.
    pub fn week(&self) -> i64 {
        // The first day of 1970 was a Thursday.
        (self.day + 3).div_euclid(7)
    }

    /// `YYYYMMDD-HHMM`.
    pub fn text(&self) -> String {
        let (year, month, day) = civil(self.day);
        format!("{year:04}{month:02}{day:02}-{:02}{:02}", self.minute / 60, self.minute % 60)
    }

    /// Reads `YYYYMMDD-HHMM`, with `-N` behind it or not.
    pub fn parse(text: &str) -> Option<Minute> {
        let text = match text.len() {
            13 => text,
            _ => {
                let (front, number) = text.split_at_checked(13)?;
                let digits = number.strip_prefix('-')?;
                let is_number =
                    digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.starts_with('0');
                if digits.is_empty() || 4 < digits.len() || !is_number {
                    return None;
                }
                front
            }
        };
        let digits = |range: core::ops::Range<usize>| -> Option<i64> {
            let part = text.get(range)?;
            part.bytes().all(|digit| digit.is_ascii_digit()).then(|| part.parse().ok()).flatten()
        };
        let (year, month, day) = (digits(0..4)?, digits(4..6)?, digits(6..8)?);
        let (hour, minute) = (digits(9..11)?, digits(11..13)?);
        let found = Minute { day: days(year, month, day), minute: (hour * 60 + minute) as u32 };
        (text.get(..13)? == found.text() && hour < 24 && minute < 60).then_some(found)
    }
}

/// The tag of a snapshot, the `count`-th of its minute.
pub fn brain_tag(minute: Minute, count: u32) -> String {
    match count {
        0 => format!("{BRAIN_NAME}:{}", minute.text()),
        _ => format!("{BRAIN_NAME}:{}-{count}", minute.text()),
    }
}

/// When the snapshot of this tag was taken; nothing for other tags.
pub fn taken_at(tag: &str) -> Option<Minute> {
    Minute::parse(tag.strip_prefix(BRAIN_NAME)?.strip_prefix(':')?)
}

/// Whether something may be a tag: letters, digits and `.-_:+@`, beginning with a letter or digit.
pub fn is_tag(text: &str) -> bool {
    let letters = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'+' | b'@'));
    letters
        && text.len() <= TAG_BYTES_MAX
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_say_the_minute_and_come_back() {
        assert_eq!(brain_tag(Minute::of(0), 0), "bem-brain:19700101-0000");
        assert_eq!(brain_tag(Minute::of(1_794_825_239), 2), "bem-brain:20261116-1033-2");
        for second in (0..8_000_000_000u64).step_by(7_777_777) {
            let minute = Minute::of(second);
            assert_eq!(taken_at(&brain_tag(minute, 0)), Some(minute));
            assert_eq!(taken_at(&brain_tag(minute, 31)), Some(minute));
        }
        for wrong in [
            "20261316-1033",
            "20260230-1033",
            "20261116-2433",
            "20261116-103",
            "20261116-1033-",
            "20261116-1033-0",
        ] {
            assert_eq!(Minute::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn weeks_begin_on_monday() {
        let week = |text: &str| Minute::parse(text).map(|minute| minute.week());
        assert_eq!(week("20261116-0000"), week("20261122-2359"));
        assert_ne!(week("20261115-2359"), week("20261116-0000"));
    }
}
