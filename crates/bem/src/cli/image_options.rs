//! What `bem serve` is told about images and logs, and the thread that follows it. Clauses: IMG-1, IMG-3.

use crate::event_log::EventLog;
use crate::images::agent::{Agent, AgentOptions};
use crate::places::Places;
use bem_image::gate::GateLimits;
use bem_image::retain::Retention;
use bem_ledger::limits::ENTRY_BYTES_MAX;
use bem_ledger::log::LogOptions;
use bem_serve::core::Handle;
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a stop waits for an image in the making: a service of the system has a minute to end.
const STOP_WAIT: Duration = Duration::from_secs(15);

/// How a server saves itself.
#[derive(Args, Clone, Debug)]
pub struct ImageOptions {
    /// The OCI layout that images of the state go to [default: DIR/images]
    #[arg(long, value_name = "DIR")]
    layout: Option<PathBuf>,
    /// Time between two images: seconds (90s), minutes (15m), hours (2h), or never
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = parse_time)]
    image_every: Every,
    /// Days of which the newest image stays
    #[arg(long, default_value_t = 7, value_name = "N")]
    daily: usize,
    /// Weeks of which the newest image stays
    #[arg(long, default_value_t = 8, value_name = "M")]
    weekly: usize,
    /// Steps and inputs that may wait to be verified while an image is saved
    #[arg(long, default_value_t = GateLimits::default().backlog_max, value_name = "N")]
    gate_backlog: i64,
    /// The lowest trend of returns with which an image is saved, in thousandths of their range
    #[arg(long, default_value_t = GateLimits::default().score_trend_min, value_name = "N", allow_negative_numbers = true)]
    gate_score_trend: i64,
    /// The folder of its log [default: DIR/log, and /var/log/bem for /var/lib/bem]
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
    /// Bytes of a segment of the ledger.
    #[arg(long, hide = true, value_name = "N")]
    segment_bytes: Option<u64>,
}

/// Time between two images; none for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every(Option<Duration>);

fn parse_time(text: &str) -> Result<Every, String> {
    if text == "never" {
        return Ok(Every(None));
    }
    let wrong = || format!("{text:?} is no time: 90s, 15m, 2h or never");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    match count.checked_mul(seconds) {
        Some(total) if (1..=31_536_000).contains(&total) => Ok(Every(Some(Duration::from_secs(total)))),
        _ => Err(format!("{text:?} is not between one second and a year")),
    }
}

/// An agent at work.
pub struct AgentThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl AgentThread {
    /// Asks it to stop and waits until it has. An image that takes longer is given up with the process, as by a kill: nothing that
    /// a tag names is lost by that.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        let began = Instant::now();
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && began.elapsed() < STOP_WAIT
        {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl ImageOptions {
    /// Sizes of the ledger.
    pub fn log_options(&self) -> LogOptions {
        let default = LogOptions::default();
        let segment_bytes =
            self.segment_bytes.unwrap_or(default.segment_bytes).max(ENTRY_BYTES_MAX as u64 / 16);
        LogOptions { segment_bytes, ..default }
    }

    /// Where images of this state go.
    pub fn layout(&self, state: &Path) -> PathBuf {
        self.layout.clone().unwrap_or_else(|| state.join("images"))
    }

    /// Starts the agent of a server.
    pub fn start(&self, state: &Path, secrets: Vec<PathBuf>, handle: &Handle) -> AgentThread {
        let stop = Arc::new(AtomicBool::new(false));
        let own = Places::of(state).logs;
        let log = match self.logs.as_deref().map_or_else(|| EventLog::open(&own), EventLog::open) {
            Ok(log) => Some(log),
            Err(error) => {
                note!("bem: no log: {error:#}");
                EventLog::open(&own).ok()
            }
        };
        let every = self.image_every.0;
        let options = AgentOptions {
            state: state.to_path_buf(),
            layout: self.layout(state),
            every,
            limits: GateLimits {
                backlog_max: self.gate_backlog,
                score_trend_min: self.gate_score_trend,
                ..GateLimits::default()
            },
            retention: Retention { daily: self.daily, weekly: self.weekly },
            // Trends and violations are looked for over the time between two images, at least a minute.
            window: every.unwrap_or(Duration::from_secs(900)).max(Duration::from_secs(60)),
            secrets,
        };
        let asked = Arc::clone(&stop);
        let handle = handle.clone();
        let work = move || {
            if let Some(log) = log {
                Agent::new(options, handle, log).run(|| asked.load(Ordering::Relaxed));
            }
        };
        let thread = std::thread::Builder::new().name("bem-images".to_string()).spawn(work).ok();
        AgentThread { stop, thread }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_wrong_ones_said() {
        assert_eq!(parse_time("15m"), Ok(Every(Some(Duration::from_secs(900)))));
        assert_eq!(parse_time("2h"), Ok(Every(Some(Duration::from_secs(7_200)))));
        assert_eq!(parse_time("never"), Ok(Every(None)));
        for wrong in ["", "15", "m", "0s", "-1s", "9999999h", "1d"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
