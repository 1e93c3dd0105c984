//! What a soak brought, in figures and a picture, and whether it holds what is promised.

use super::clients::{DECIDERS, PACE, SLOW};
use super::floor::{self, Trial};
use super::{IMAGE_SECONDS_MAX, SECONDS, Sample, Soaked, commit, log_steps};
use crate::root;
use anyhow::{Context, Result, ensure};
use std::sync::atomic::Ordering;

/// The cadence of images by default, in seconds.
const CADENCE: f64 = 900.0;
/// Seconds from the first byte of an image of the default state to the first decision of the server that is restored from it.
const BACK_MAX: f64 = 1.0;
/// Hundredths of decisions that images may bring above 50 ms beyond what bare syncs and waking threads show at the same time.
const WAITING_MAX: f64 = 1.0;
/// Hundredths by which memory, disk and the cost of a step may grow over the second half.
const GROWTH_MAX: f64 = 5.0;
/// Hundredths of a processor that images may cost at the default cadence.
const COST_MAX: f64 = 1.0;

fn get(sample: &Sample, name: &str) -> i64 {
    sample.get(name).copied().unwrap_or(0)
}

fn mean(samples: &[Sample], name: &str) -> f64 {
    samples.iter().map(|sample| get(sample, name) as f64).sum::<f64>() / samples.len().max(1) as f64
}

/// The mean of the first and of the last quarter of the second half, and the growth between them in hundredths.
fn growth(samples: &[Sample], name: &str) -> (f64, f64, f64) {
    let half = &samples[samples.len() / 2..];
    let quarter = (half.len() / 4).max(1);
    let (before, after) = (mean(&half[..quarter], name), mean(&half[half.len() - quarter..], name));
    (before, after, (after - before) * 100.0 / before.max(1.0))
}

/// Microseconds on a processor for an input, between two samples.
fn cost(from: &Sample, to: &Sample, thread: &str) -> f64 {
    let part = |name: &str| (get(to, name) - get(from, name)) as f64;
    part(thread) / part("inputs").max(1.0)
}

/// Seconds in which images were made, from the server's log.
fn windows(log: &str) -> Vec<(u64, u64)> {
    let events = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let images = events.filter(|event| event["event"].as_str() == Some("image"));
    images
        .filter_map(|event| {
            let (end, micros) = (event["time"].as_u64()?, event["micros"].as_u64()?);
            Some((end.saturating_sub(micros / 1_000_000 + 1), end + 1))
        })
        .collect()
}

fn count(log: &str, event: &str) -> usize {
    log.lines().filter(|line| line.contains(&format!("\"event\":\"{event}\""))).count()
}

fn grown(samples: &[Sample], name: &str) -> String {
    let (before, after, growth) = growth(samples, name);
    format!("{:.1} to {:.1} MB, {growth:+.1} %", before / 1e6, after / 1e6)
}

/// Shares above 50 ms while an image was made, and otherwise.
struct Waits {
    /// Seconds with an image in the making.
    seconds: u64,
    /// Decisions: share and slowest, within and otherwise.
    decisions: [(f64, f64); 2],
    /// Bare syncs.
    syncs: [(f64, f64); 2],
    /// Threads that woke up late.
    wakes: [(f64, f64); 2],
}

impl Waits {
    fn of(soaked: &Soaked) -> Waits {
        let windows = windows(&soaked.log);
        let is_within = |at: u64| windows.iter().any(|(from, to)| (*from..=*to).contains(&at));
        let slow = soaked.load.slow.lock().map(|slow| slow.clone()).unwrap_or_default();
        let all = soaked.load.by_second.lock().map(|all| all.clone()).unwrap_or_default();
        let decisions = [true, false].map(|within| {
            let slow: Vec<u64> =
                slow.iter().filter(|(at, _)| is_within(*at) == within).map(|(_, micros)| *micros).collect();
            let count: u64 =
                all.iter().filter(|(at, _)| is_within(**at) == within).map(|(_, count)| count).sum();
            let most = slow.iter().max().copied().unwrap_or(0) as f64 / 1e3;
            (slow.len() as f64 / count.max(1) as f64, most)
        });
        let bare = |of: fn(&Trial) -> u64| {
            [true, false].map(|within| {
                let trials: Vec<Trial> =
                    soaked.floor.iter().filter(|trial| is_within(trial.at) == within).copied().collect();
                floor::slow(&trials, of)
            })
        };
        let seconds = windows.iter().map(|(from, to)| to - from + 1).sum();
        Waits { seconds, decisions, syncs: bare(|trial| trial.sync), wakes: bare(|trial| trial.late) }
    }

    fn words([within, otherwise]: &[(f64, f64); 2]) -> String {
        format!(
            "{:.2} % with an image in the making (longest {:.0} ms), {:.2} % otherwise (longest {:.0} ms)",
            within.0 * 100.0,
            within.1,
            otherwise.0 * 100.0,
            otherwise.1
        )
    }

    /// Hundredths of decisions that images bring above 50 ms beyond what the bare ones show.
    fn added(&self) -> f64 {
        let more = |[within, otherwise]: &[(f64, f64); 2]| (within.0 - otherwise.0) * 100.0;
        more(&self.decisions) - more(&self.syncs).max(0.0) - more(&self.wakes).max(0.0)
    }
}

/// Seconds on a processor that an image takes.
fn an_image(last: &Sample, log: &str) -> f64 {
    get(last, "cpu bem-images") as f64 / 1e6 / count(log, "image").max(1) as f64
}

/// The figures, by name.
fn figures(soaked: &Soaked) -> Result<Vec<(&'static str, String)>> {
    let Soaked { seconds, samples, load, log, audited, back, default, .. } = soaked;
    let waits = Waits::of(soaked);
    let (first, middle) = (&samples[samples.len() / 8], &samples[samples.len() / 2]);
    let last = samples.last().context("no samples")?;
    let steps = load.steps.load(Ordering::Relaxed);
    let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let images = count(log, "image");
    let image = an_image(last, log);
    let both = |thread: &str| {
        format!(
            "{:.1} us in the first half, {:.1} us in the second",
            cost(first, middle, thread),
            cost(middle, last, thread)
        )
    };
    Ok(vec![
        (
            "load",
            format!(
                "{seconds} s, {steps} decisions with their rewards, {:.0} a second",
                steps as f64 / *seconds as f64
            ),
        ),
        (
            "requests to tools; answers of people, taken back",
            format!("{}; {}, {}", of(&load.tools), of(&load.answers), of(&load.undone)),
        ),
        ("memory in the second half", grown(samples, "memory_bytes")),
        ("everything on disk in the second half", grown(samples, "state_bytes")),
        ("ledger in the second half", grown(samples, "ledger_bytes")),
        ("layout of images in the second half", grown(samples, "layout_bytes")),
        ("processor time of the deciding thread, an input", both("cpu bem-decide")),
        ("processor time of the whole server, an input", both("cpu")),
        (
            "images saved, skipped; archives",
            format!("{images}, {}; {}", count(log, "image_skipped"), count(log, "archived")),
        ),
        (
            "processor time of an image",
            format!("{image:.2} s, {:.2} % of one core at the default cadence", image * 100.0 / CADENCE),
        ),
        (
            "longest wait for a state to be taken",
            format!(
                "{:.1} ms, of which {:.1} ms on a processor at most",
                get(last, "barrier_max_micros") as f64 / 1e3,
                get(last, "barrier_processor_max_micros") as f64 / 1e3
            ),
        ),
        (
            "longest wait for the ledger to catch up",
            format!("{:.1} ms", get(last, "ledger_wait_max_micros") as f64 / 1e3),
        ),
        ("longest sync of the inbox", format!("{:.1} ms", get(last, "sync_max_micros") as f64 / 1e3)),
        ("slowest decision, HTTP and sync included", format!("{:.1} ms", of(&load.slowest) as f64 / 1e3)),
        (
            "decisions above 50 ms",
            format!("{}; an image was in the making for {} s", Waits::words(&waits.decisions), waits.seconds),
        ),
        ("bare syncs of 4 KiB above 50 ms, beside it", Waits::words(&waits.syncs)),
        ("bare threads that woke up more than 50 ms late, beside it", Waits::words(&waits.wakes)),
        (
            "what images add to decisions above 50 ms",
            format!("{:.2} % of decisions beyond what the bare ones show at the same time", waits.added()),
        ),
        (
            "patches in force, taken back",
            format!("{}, {}", get(last, "patches_applied"), get(last, "patches_taken_back")),
        ),
        ("audit at the end", audited.lines().next().unwrap_or("").to_string()),
        (
            "the newest image",
            format!(
                "{:.1} MB; restored with its key in {:.2} s, all digests and the history checked; {:.2} s from the start of the server to its first decision",
                back.bytes as f64 / 1e6,
                back.restored.as_secs_f64(),
                back.decided.as_secs_f64()
            ),
        ),
        (
            "the image of the default state (one world, 400 decisions)",
            format!(
                "{:.1} MB; restored in {:.2} s, and {:.2} s from the start of the server to its first decision: {:.2} s together, the \
                 median of five, of which {:.2} s on a processor at most",
                default.bytes as f64 / 1e6,
                default.restored.as_secs_f64(),
                default.decided.as_secs_f64(),
                (default.restored + default.decided).as_secs_f64(),
                default.processor.as_secs_f64()
            ),
        ),
    ])
}

/// Writes the page and the picture; an error where something that is promised does not hold.
pub fn write(soaked: &Soaked) -> Result<()> {
    let samples = &soaked.samples;
    ensure!(8 <= samples.len(), "{} samples are too few", samples.len());
    ensure!(SLOW.as_millis() == 50, "the page says 50 ms");
    let last = samples.last().context("no samples")?;
    let memory = growth(samples, "memory_bytes").2;
    let disk = growth(samples, "state_bytes").2;
    let (first, middle) = (&samples[samples.len() / 8], &samples[samples.len() / 2]);
    let (before, after) = (cost(first, middle, "cpu bem-decide"), cost(middle, last, "cpu bem-decide"));
    let slower = (after - before) * 100.0 / before.max(0.001);
    let (full, steps) = (get(middle, "decisions"), log_steps(soaked.seconds));
    let back = (soaked.default.restored + soaked.default.decided).as_secs_f64();
    let added = Waits::of(soaked).added();
    let held = [
        (
            steps as i64 <= full,
            format!("the learner's log was not full in the middle of the run: {full} of {steps} steps"),
        ),
        (soaked.default.bytes < 30_000_000, "the image of the default state has 30 MB or more".to_string()),
        (
            back < BACK_MAX,
            format!(
                "from the image of the default state to the first decision it takes {back:.2} s, less than {BACK_MAX} is wanted"
            ),
        ),
        (
            added < WAITING_MAX,
            format!(
                "images bring {added:.2} % of decisions above 50 ms beyond what bare syncs and threads show"
            ),
        ),
        (
            memory < GROWTH_MAX,
            format!("memory grew by {memory:.1} % over the second half, less than {GROWTH_MAX} % is wanted"),
        ),
        (
            get(last, "barrier_processor_max_micros") < 50_000,
            "taking a state took 50 ms or more on a processor, while decisions waited".to_string(),
        ),
        (
            get(last, "ledger_wait_max_micros") < 50_000,
            "the ledger kept decisions waiting for 50 ms or more".to_string(),
        ),
        (
            slower < 3.0 * GROWTH_MAX,
            format!("an input costs the deciding thread {slower:.1} % more in the second half"),
        ),
        (
            an_image(last, &soaked.log) * 100.0 / CADENCE <= COST_MAX,
            format!("images at the default cadence cost more than {COST_MAX} % of a processor"),
        ),
        (disk < 2.0 * GROWTH_MAX, format!("the state on disk grew by {disk:.1} % over the second half")),
    ];
    let mut text = format!(
        "# Soak\n\nWritten by `cargo xtask battery soak --scale {}` on commit {}, on two cores shared with other work. One world of four bits \
         and\nfour actions, {DECIDERS} connections that decide and reward every {} ms, one that asks tools (a file, a database), two people who answer and \
         take\nback; an image every {} s, segments of 1 MiB so that they are archived, a learner's log of {} steps (262,144 by default; in a\n\
         short run less, so that it is full before the middle), everything else by default. Processor time is what the system counts for a\n\
         thread: waiting for other work is not in it. Beside the server a thread writes and syncs 4 KiB every 25 ms on the same disk: what it\n\
         takes is the machine's.\n\n",
        soaked.seconds / SECONDS,
        commit()?,
        PACE.as_millis(),
        (soaked.seconds / 12).clamp(5, IMAGE_SECONDS_MAX),
        log_steps(soaked.seconds),
    );
    for (_, words) in held.iter().filter(|(is_so, _)| !is_so) {
        text.push_str(&format!("**Not held:** {words}.\n\n"));
    }
    text.push_str("| figure | value |\n|---|---|\n");
    for (name, value) in figures(soaked)? {
        text.push_str(&format!("| {name} | {value} |\n"));
    }
    text.push_str("\n![memory and disk over time](soak.svg)\n");
    let results = root().join("docs/results");
    std::fs::create_dir_all(&results)?;
    std::fs::write(results.join("soak.md"), &text)?;
    std::fs::write(results.join("soak.svg"), plot(samples))?;
    println!("{text}");
    match held.into_iter().find(|(is_so, _)| !is_so) {
        None => Ok(()),
        Some((_, words)) => anyhow::bail!("{words}"),
    }
}

/// Memory and ledger over time, as lines in one picture.
fn plot(samples: &[Sample]) -> String {
    const NAMES: [(&str, &str, &str); 3] = [
        ("memory_bytes", "#1b6ca8", "memory"),
        ("ledger_bytes", "#c0392b", "ledger"),
        ("layout_bytes", "#2e8b57", "images"),
    ];
    let most = samples
        .iter()
        .flat_map(|sample| NAMES.iter().filter_map(|(name, ..)| sample.get(*name)))
        .copied()
        .max();
    let (most, end) = (
        most.unwrap_or(1).max(1),
        samples.last().and_then(|last| last.get("at")).copied().unwrap_or(1).max(1),
    );
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 260\" font-family=\"sans-serif\" font-size=\"12\">\n",
    );
    svg.push_str("<rect width=\"640\" height=\"260\" fill=\"white\"/><path d=\"M50 20V220H620\" fill=\"none\" stroke=\"black\"/>\n");
    svg.push_str(&format!(
        "<text x=\"4\" y=\"26\">{} MB</text><text x=\"560\" y=\"238\">{end} s</text>\n",
        most / 1_000_000
    ));
    for (place, (name, colour, label)) in NAMES.iter().enumerate() {
        let points: Vec<String> = samples
            .iter()
            .filter_map(|sample| {
                let (at, value) = (sample.get("at")?, sample.get(*name)?);
                Some(format!(
                    "{:.1},{:.1}",
                    50.0 + 570.0 * *at as f64 / end as f64,
                    220.0 - 200.0 * *value as f64 / most as f64
                ))
            })
            .collect();
        svg.push_str(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>\n",
            points.join(" ")
        ));
        svg.push_str(&format!(
            "<text x=\"{}\" y=\"252\" fill=\"{colour}\">{label}</text>\n",
            60 + 90 * place
        ));
    }
    svg.push_str("</svg>\n");
    svg
}
