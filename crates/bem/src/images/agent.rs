//! The snapshot agent of a server: writes the metrics file, and saves images when they are due and the gate is open.
//!
//! A thread of its own: it asks the deciding thread for a look and for a snapshot, and does everything else beside. An image is due
//! by the clock, and after a patch was let in, a rung was reached or a domain was learned. What is skipped says why; ten skips in a row are an alarm. Segments that a verified
//! image holds are archived with the next snapshot. Clauses: IMG-3, IMG-6; decisions D-87, D-89.

use super::secrets::Secrets;
use super::{now, open_layout_locked};
use crate::climb_beside::is_rung;
use crate::event_log::EventLog;
use crate::file_store::FileStore;
use anyhow::Result;
use bem_image::gate::{Figures, GateLimits, figure, judge};
use bem_image::retain::{Retention, prune};
use bem_runtime::service::Service;
use bem_serve::core::{Gauges, Handle};
use bem_serve::priority;
use serde_json::json;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often the metrics are written.
const METRICS_EVERY: Duration = Duration::from_secs(5);
/// How often the agent looks whether it is asked to stop.
const TICK: Duration = Duration::from_millis(200);
/// After an event an image is due when the last one is this old.
const EVENT_PAUSE: Duration = Duration::from_secs(60);
/// How long a snapshot may wait for a round that is under way.
const SAVE_PATIENCE: Duration = Duration::from_secs(120);
/// Skips in a row that raise an alarm.
const SKIPS_ALARM: u64 = 10;

/// What the agent is told.
pub struct AgentOptions {
    /// The state folder.
    pub state: PathBuf,
    /// Where images go.
    pub layout: PathBuf,
    /// Time between two images; none to write metrics only.
    pub every: Option<Duration>,
    /// What the figures must be.
    pub limits: GateLimits,
    /// What is kept.
    pub retention: Retention,
    /// The window of safety violations and trends.
    pub window: Duration,
    /// Files of keys and tokens.
    pub secrets: Vec<PathBuf>,
}

/// Counts at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: u64,
    bad: u64,
    pox_milli: i64,
}

/// What a look at the service brings.
#[derive(Clone, Debug, Default)]
struct Seen {
    inputs: u64,
    worlds: u64,
    rungs: u64,
    bad: u64,
    waiting: u64,
    decisions: u64,
    score_milli: i64,
    score_trend: i64,
    regret_milli: i64,
}

/// Episodes of a quarter of the curve before there is a trend.
const TREND_EPISODES: u64 = 1_024;

fn milli(part: i128, whole: i128) -> i64 {
    match whole {
        0 => 0,
        _ => i64::try_from(part * 1_000 / whole).unwrap_or(i64::MAX),
    }
}

/// Sums up what is served.
fn look(service: &Service) -> Seen {
    let mut seen = Seen { inputs: service.last(), score_trend: i64::MAX, ..Seen::default() };
    for (_, world) in service.worlds() {
        let (statistics, shape) = (world.statistics(), &world.spec().shape);
        // What goes wrong on a rung of the ladder goes wrong in a game: it says nothing about what is served.
        if is_rung(world) {
            seen.rungs += 1;
            seen.waiting += world.waiting_steps();
            continue;
        }
        seen.worlds += 1;
        seen.bad += statistics.bad;
        seen.decisions += statistics.decisions;
        seen.waiting += world.waiting_steps();
        let range = i128::from(shape.return_max) - i128::from(shape.return_min);
        let mean_of = |points: &[bem_runtime::statistics::Moments]| {
            let count: u64 = points.iter().map(|point| point.count).sum();
            let sum: i128 = points.iter().map(|point| point.sum).sum();
            (0 < count).then(|| sum / i128::from(count))
        };
        // The newest quarter of the curve against the quarter before it. While a world is new, exploring moves its returns more
        // than anything that a gate should stop for: a short curve has no trend.
        let curve = &statistics.curve;
        let quarter = curve.len() / 4;
        let (older, newer) =
            (&curve[curve.len() - 2 * quarter..curve.len() - quarter], &curve[curve.len() - quarter..]);
        let is_long = TREND_EPISODES <= newer.iter().map(|point| point.count).sum::<u64>();
        let trend = match (mean_of(older), mean_of(newer)) {
            (Some(older), Some(newer)) if is_long => milli(newer - older, range),
            _ => 0,
        };
        seen.score_trend = seen.score_trend.min(trend);
        if let Some(mean) = mean_of(curve) {
            seen.score_milli += milli(mean - i128::from(shape.return_min), range);
        }
        if let Some((_, best)) = statistics.best_fixed() {
            let best = best.sum * i128::from(statistics.returns.count) / i128::from(best.count.max(1));
            seen.regret_milli +=
                i64::try_from((best - statistics.returns.sum).max(0)).unwrap_or(i64::MAX / 2);
        }
    }
    seen.score_milli /= seen.worlds.max(1) as i64;
    if seen.worlds == 0 {
        seen.score_trend = 0;
    }
    seen
}

/// The agent.
pub struct Agent {
    options: AgentOptions,
    handle: Handle,
    log: EventLog,
    window: VecDeque<Sample>,
    last_violation: u64,
    skips: u64,
    /// Whether the ledger held when it was looked at last.
    ledger_verified: bool,
    /// What the newest image holds: entries and digest; archived with the next snapshot.
    imaged: Option<(u64, String)>,
    /// Patches let in, rungs reached and domains learned when an image was due for them last.
    events_seen: u64,
    last_image: Instant,
    /// Microseconds spent on images, those that were skipped included.
    image_micros: u64,
}

impl Agent {
    /// An agent that has done nothing yet; a violation that an earlier process saw is not forgotten.
    pub fn new(options: AgentOptions, handle: Handle, log: EventLog) -> Agent {
        let before = std::fs::read(options.state.join("metrics")).ok();
        let before = before.and_then(|bytes| Figures::parse(&bytes).ok()).unwrap_or_default();
        let last_violation = before.get("last_violation").and_then(|at| u64::try_from(at).ok()).unwrap_or(0);
        Agent {
            options,
            handle,
            log,
            window: VecDeque::new(),
            last_violation,
            skips: 0,
            ledger_verified: false,
            imaged: None,
            events_seen: 0,
            last_image: Instant::now(),
            image_micros: 0,
        }
    }

    /// Works until it is asked to stop.
    pub fn run(mut self, should_stop: impl Fn() -> bool) {
        priority::give_way(priority::SAVING);
        self.log.say(
            "info",
            "started",
            json!({ "state": self.options.state, "layout": self.options.layout }),
        );
        self.check_ledger();
        let mut measured: Option<Instant> = None;
        while !should_stop() {
            if measured.is_none_or(|at| METRICS_EVERY <= at.elapsed()) {
                self.measure();
                measured = Some(Instant::now());
            }
            if self.is_due() {
                self.last_image = Instant::now();
                self.cycle();
                self.image_micros += self.last_image.elapsed().as_micros() as u64;
            }
            std::thread::sleep(TICK);
        }
        self.measure();
        self.log.say(
            "info",
            "stopped",
            json!({ "inputs": self.handle.gauges.inputs.load(Ordering::Relaxed) }),
        );
    }

    fn is_due(&mut self) -> bool {
        let Some(every) = self.options.every else { return false };
        if every <= self.last_image.elapsed() {
            return true;
        }
        let gauges = &self.handle.gauges;
        let events = [&gauges.patches_applied, &gauges.rungs_reached, &gauges.domains_learned];
        let events: u64 = events.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        let is_event = self.events_seen < events && EVENT_PAUSE.min(every) <= self.last_image.elapsed();
        if is_event {
            self.events_seen = events;
        }
        is_event
    }

    /// Chain, tree and signature of what is acknowledged.
    fn check_ledger(&mut self) {
        let verified = verify_tail(&self.options.state.join("ledger"));
        self.ledger_verified = verified.is_ok();
        if let Err(error) = verified {
            self.log.say("error", "ledger", json!({ "reason": format!("{error:#}") }));
        }
    }

    /// Writes the metrics file. Where the service does not answer, the old file stays and grows stale.
    fn measure(&mut self) {
        let Some(seen) = self.handle.look_within(Duration::from_secs(2), look) else { return };
        let gauges = &self.handle.gauges;
        let at = now();
        let pox_milli = gauges.pox_milli.load(Ordering::Relaxed);
        let last = self.window.back().copied().unwrap_or(Sample { at, bad: seen.bad, pox_milli });
        if last.bad < seen.bad {
            self.last_violation = at;
        }
        self.window.push_back(Sample { at, bad: seen.bad, pox_milli });
        let begin = at.saturating_sub(self.options.window.as_secs());
        while self.window.len() > 1 && self.window[1].at <= begin {
            self.window.pop_front();
        }
        let first = self.window.front().copied().unwrap_or_default();
        let counted = seen.bad.saturating_sub(first.bad);
        let violations = counted.max(u64::from(begin < self.last_violation));
        let covered = gauges.covered.load(Ordering::Relaxed);
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let ledger_bytes = tree_bytes(&self.options.state.join("ledger"));
        let read = |gauge: fn(&Gauges) -> u64| whole(gauge(gauges));
        let figures = [
            (figure::TIME, whole(at)),
            (figure::VIOLATIONS, whole(violations)),
            (figure::BACKLOG, whole(seen.waiting + seen.inputs.saturating_sub(covered))),
            (figure::SCORE_TREND, seen.score_trend),
            (figure::POX_TREND, pox_milli - first.pox_milli),
            (figure::LEDGER, i64::from(self.ledger_verified)),
            ("last_violation", whole(self.last_violation)),
            ("window_seconds", whole(self.options.window.as_secs())),
            ("inputs", whole(seen.inputs)),
            ("worlds", whole(seen.worlds)),
            ("rungs", whole(seen.rungs)),
            ("rungs_reached", read(|gauges| gauges.rungs_reached.load(Ordering::Relaxed))),
            ("domains_learned", read(|gauges| gauges.domains_learned.load(Ordering::Relaxed))),
            ("pipeline_units", read(|gauges| gauges.pipeline_units.load(Ordering::Relaxed))),
            ("pipeline_bytes", whole(tree_bytes(&self.options.state.join(crate::pipeline_beside::FOLDER)))),
            ("decisions", whole(seen.decisions)),
            ("score_milli", seen.score_milli),
            ("regret_milli", seen.regret_milli),
            ("pox_milli", pox_milli),
            ("patches_applied", read(|gauges| gauges.patches_applied.load(Ordering::Relaxed))),
            ("patches_taken_back", read(|gauges| gauges.patches_taken_back.load(Ordering::Relaxed))),
            ("ledger_bytes", whole(ledger_bytes)),
            ("ledger_entries", read(|gauges| gauges.entries.load(Ordering::Relaxed))),
            ("act_micros", read(|gauges| gauges.act_micros.load(Ordering::Relaxed))),
            ("learn_micros", read(|gauges| gauges.learn_micros.load(Ordering::Relaxed))),
            ("ledger_micros", read(|gauges| gauges.ledger_micros.load(Ordering::Relaxed))),
            ("sync_micros", read(|gauges| gauges.sync_micros.load(Ordering::Relaxed))),
            ("image_micros", whole(self.image_micros)),
            ("barrier_max_micros", read(|gauges| gauges.barrier_max_micros.load(Ordering::Relaxed))),
            (
                "barrier_processor_max_micros",
                read(|gauges| gauges.barrier_processor_max_micros.load(Ordering::Relaxed)),
            ),
            ("ledger_wait_max_micros", read(|gauges| gauges.ledger_wait_max_micros.load(Ordering::Relaxed))),
            ("sync_max_micros", read(|gauges| gauges.sync_max_micros.load(Ordering::Relaxed))),
            ("snapshots_skipped", whole(self.skips)),
            ("memory_bytes", whole(resident_bytes())),
        ];
        let figures = Figures(figures.map(|(name, value)| (name.to_string(), value)).into());
        if let Err(error) = write_aside(&self.options.state.join("metrics"), figures.to_text().as_bytes()) {
            self.log.say("error", "metrics", json!({ "reason": error.to_string() }));
        }
    }

    /// One image: a snapshot at a barrier, the gate, the image, what is old goes.
    fn cycle(&mut self) {
        let began = Instant::now();
        match self.handle.save_within(SAVE_PATIENCE, self.imaged.clone()) {
            Some(Some(archived)) => self.log.say(
                "info",
                "archived",
                json!({ "first": archived.first, "end": archived.end, "image": archived.image }),
            ),
            Some(None) => {}
            None => self.log.say("warn", "snapshot_late", json!({ "seconds": SAVE_PATIENCE.as_secs() })),
        }
        self.check_ledger();
        self.measure();
        let path = self.options.state.join("metrics");
        let file = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()));
        let reasons = judge(file.as_deref().map_err(Clone::clone), now(), &self.options.limits);
        if !reasons.is_empty() {
            self.skip(&reasons);
            return;
        }
        match self.take() {
            Ok((tag, digest, entries, forks)) => {
                self.skips = 0;
                self.imaged = Some((entries, digest.clone()));
                let micros = began.elapsed().as_micros() as u64;
                self.log.say(
                    "info",
                    "image",
                    json!({ "tag": tag, "digest": digest, "entries": entries, "micros": micros, "forks": forks }),
                );
                if !forks.is_empty() {
                    self.log.say("alarm", "fork", json!({ "tag": tag, "forks": forks }));
                    let forks = forks.join(", ");
                    crate::cli::remark(format_args!(
                        "bem: alarm: {tag} does not go on from {forks}: a fork\n"
                    ));
                }
            }
            Err(error) => self.skip(&[format!("{error:#}")]),
        }
    }

    fn skip(&mut self, reasons: &[String]) {
        self.skips += 1;
        self.log.say("warn", "image_skipped", json!({ "reasons": reasons, "in_a_row": self.skips }));
        if self.skips.is_multiple_of(SKIPS_ALARM) {
            self.log.say("alarm", "no_images", json!({ "skipped": self.skips, "reasons": reasons }));
            let reasons = reasons.join("; ");
            crate::cli::remark(format_args!(
                "bem: alarm: {} images in a row were skipped: {reasons}\n",
                self.skips
            ));
        }
    }

    fn take(&mut self) -> Result<(String, String, u64, Vec<String>)> {
        let more: Vec<&Path> = self.options.secrets.iter().map(PathBuf::as_path).collect();
        let secrets = Secrets::of(&self.options.state, &more)?;
        let mut layout = open_layout_locked(&self.options.layout)?;
        let taken = super::snapshot(&mut layout, &self.options.state, "open", &secrets, false)?;
        let entries = taken.facts.signed()?.checkpoint.size;
        let pruned = prune(&mut layout, self.options.retention)?;
        if !pruned.tags.is_empty() {
            self.log.say("info", "pruned", json!({ "tags": pruned.tags, "bytes": pruned.bytes }));
        }
        Ok((taken.tag, taken.manifest.digest, entries, taken.forks))
    }
}

/// The newest segment must lead to the checkpoint, and the checkpoint must have the signature of the key in genesis.
fn verify_tail(ledger: &Path) -> Result<()> {
    let mut store = FileStore::open(ledger)?;
    let key = crate::cli::serve::public_key(&mut store)?;
    let committed = bem_ledger::view::committed(&mut store)?;
    Ok(committed.signed.verify(&key)?)
}

/// Bytes of all files in a folder and below it; none where it is not there.
fn tree_bytes(folder: &Path) -> u64 {
    let below = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => tree_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(below).sum()
}

/// Memory of this process; zero where the system does not say.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1_024
}

/// Replaces a small file in one step; it is not synced, because it is written again in seconds.
fn write_aside(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let aside = path.with_extension("tmp");
    std::fs::write(&aside, bytes)?;
    std::fs::rename(&aside, path)
}
