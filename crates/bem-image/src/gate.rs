//! Whether a state may become an image: figures from the metrics file against limits, every reason said.
//!
//! The metrics file is text of one figure a line. A file that is missing, cannot be read, is too old or lacks a figure closes the
//! gate: silence is no evidence of health. Must not know a clock: now is an argument. Clause: IMG-3; decision D-87.

use crate::limits::METRICS_BYTES_MAX;
use std::collections::BTreeMap;

/// The first line of a metrics file.
const MAGIC: &str = "bem metrics 1";

/// Names of the figures that the gate reads.
pub mod figure {
    /// When it was written, in seconds since 1970.
    pub const TIME: &str = "time";
    /// BAD outcomes in the window.
    pub const VIOLATIONS: &str = "safety_violations_window";
    /// Steps that wait to be learned from and verified, and inputs that no signed checkpoint covers.
    pub const BACKLOG: &str = "verification_backlog";
    /// Mean return of the newer half of the recent episodes less that of the older half, in thousandths of the range of returns;
    /// of several worlds the lowest.
    pub const SCORE_TREND: &str = "score_trend_milli";
    /// Patches that were let in less those that were taken back, in the window.
    pub const POX_TREND: &str = "pox_trend";
    /// Whether chain, tree and signature of the ledger hold: 1 if they do.
    pub const LEDGER: &str = "ledger_verified";
}

/// Figures by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures(pub BTreeMap<String, i64>);

impl Figures {
    /// The text of the file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{MAGIC}\n");
        for (name, value) in &self.0 {
            text.push_str(&format!("{name} {value}\n"));
        }
        text
    }

    /// Reads a file.
    pub fn parse(bytes: &[u8]) -> Result<Figures, String> {
        if METRICS_BYTES_MAX < bytes.len() {
            return Err(format!("{} bytes, at most {METRICS_BYTES_MAX}", bytes.len()));
        }
        let text = core::str::from_utf8(bytes).map_err(|_| "it is not text".to_string())?;
        let mut lines = text.lines();
        if lines.next() != Some(MAGIC) {
            return Err(format!("its first line is not \"{MAGIC}\""));
        }
        let mut figures = BTreeMap::new();
        for line in lines {
            let parsed = line.split_once(' ').and_then(|(name, value)| Some((name, value.parse().ok()?)));
            let (name, value) = parsed.ok_or_else(|| format!("{line:?} is no name and whole number"))?;
            if figures.insert(name.to_string(), value).is_some() {
                return Err(format!("{name} stands there twice"));
            }
        }
        Ok(Figures(figures))
    }

    /// A figure.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }
}

/// What the figures must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// BAD outcomes in the window, at most.
    pub violations_max: i64,
    /// Backlog, at most.
    pub backlog_max: i64,
    /// Score trend, at least.
    pub score_trend_min: i64,
    /// Improvement trend, at least.
    pub pox_trend_min: i64,
    /// Seconds after which metrics are too old.
    pub stale_seconds: i64,
}

impl Default for GateLimits {
    fn default() -> GateLimits {
        GateLimits {
            violations_max: 0,
            backlog_max: 1 << 20,
            score_trend_min: -200,
            pox_trend_min: 0,
            stale_seconds: 120,
        }
    }
}

/// Reasons why the gate is closed; open if there are none. `file` is the metrics file, or why it cannot be read.
pub fn judge(file: Result<&[u8], String>, now: u64, limits: &GateLimits) -> Vec<String> {
    let bytes = match file {
        Ok(bytes) => bytes,
        Err(reason) => return vec![format!("metrics are missing: {reason}")],
    };
    let figures = match Figures::parse(bytes) {
        Ok(figures) => figures,
        Err(reason) => return vec![format!("metrics cannot be read: {reason}")],
    };
    let mut reasons = Vec::new();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let mut check = |name: &str, is_good: &dyn Fn(i64) -> bool, wanted: String| match figures.get(name) {
        None => reasons.push(format!("metrics do not say {name}")),
        Some(value) if is_good(value) => {}
        Some(value) => reasons.push(format!("{name} is {value}, {wanted}")),
    };
    let stale = limits.stale_seconds;
    // A time in the future is as useless as one long past.
    check(
        figure::TIME,
        &|time| (now.saturating_sub(stale)..=now.saturating_add(stale)).contains(&time),
        format!("not within {stale} seconds of {now}: metrics are stale"),
    );
    check(
        figure::VIOLATIONS,
        &|found| found <= limits.violations_max,
        format!("at most {}", limits.violations_max),
    );
    check(figure::BACKLOG, &|found| found <= limits.backlog_max, format!("at most {}", limits.backlog_max));
    check(
        figure::SCORE_TREND,
        &|found| limits.score_trend_min <= found,
        format!("at least {}", limits.score_trend_min),
    );
    check(
        figure::POX_TREND,
        &|found| limits.pox_trend_min <= found,
        format!("at least {}", limits.pox_trend_min),
    );
    check(figure::LEDGER, &|found| found == 1, "must be 1".to_string());
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Figures {
        let figures = [
            (figure::TIME, 1_000),
            (figure::VIOLATIONS, 0),
            (figure::BACKLOG, 5),
            (figure::SCORE_TREND, -3),
            (figure::POX_TREND, 1),
            (figure::LEDGER, 1),
        ];
        Figures(figures.map(|(name, value)| (name.to_string(), value)).into())
    }

    #[test]
    fn healthy_figures_open_the_gate_and_come_back_from_their_text() {
        let text = good().to_text();
        assert_eq!(Figures::parse(text.as_bytes()), Ok(good()));
        assert_eq!(judge(Ok(text.as_bytes()), 1_050, &GateLimits::default()), Vec::<String>::new());
    }

    #[test]
    fn every_figure_can_close_the_gate_and_says_why() {
        let limits = GateLimits::default();
        let closed = |name: &str, value: i64| {
            let mut figures = good();
            figures.0.insert(name.to_string(), value);
            let reasons = judge(Ok(figures.to_text().as_bytes()), 1_050, &limits);
            assert_eq!(reasons.len(), 1, "{reasons:?}");
            assert!(reasons[0].starts_with(&format!("{name} is {value}, ")), "{reasons:?}");
        };
        closed(figure::VIOLATIONS, 1);
        closed(figure::BACKLOG, limits.backlog_max + 1);
        closed(figure::SCORE_TREND, limits.score_trend_min - 1);
        closed(figure::POX_TREND, limits.pox_trend_min - 1);
        closed(figure::LEDGER, 0);
        closed(figure::TIME, 800);
        closed(figure::TIME, 1_200);
    }

    #[test]
    fn missing_stale_and_unreadable_metrics_close_the_gate() {
        let limits = GateLimits::default();
        let says = |file: Result<&[u8], String>, words: &str| {
            let reasons = judge(file, 1_050, &limits);
            assert!(reasons.iter().any(|reason| reason.contains(words)), "{reasons:?}");
        };
        says(Err("no such file".to_string()), "metrics are missing: no such file");
        says(Ok(b"bem metrics 2\n"), "its first line is not");
        says(Ok(b"bem metrics 1\ntime x\n"), "is no name and whole number");
        says(Ok(b"bem metrics 1\ntime 1\ntime 2\n"), "stands there twice");
        for name in good().0.keys() {
            let mut figures = good();
            figures.0.remove(name);
            says(Ok(figures.to_text().as_bytes()), &format!("do not say {name}"));
        }
    }
}
