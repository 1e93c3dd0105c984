//! What a soak brought, in figures and a picture, and whether it holds what is promised.

use super::clients::{DECIDERS, PACE, SLOW};
use super::{IMAGE_SECONDS_MAX, SECONDS, Sample, Soaked, commit};
use crate::root;
use anyhow::{Context, Result, ensure};
use std::sync::atomic::Ordering;

/// The cadence of images by default, in seconds.
const CADENCE: f64 = 900.0;
/// Steps that the learner's log holds by default: before it is full, memory must grow.
const LOG_STEPS: i64 = 262_144;
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

/// Slow decisions while an image was made and otherwise, each by the second.
fn slow(soaked: &Soaked) -> String {
    let windows = windows(&soaked.log);
    let is_within = |at: u64| windows.iter().any(|(from, to)| (*from..=*to).contains(&at));
    let slow = soaked.load.slow.lock().map(|slow| slow.clone()).unwrap_or_default();
    let (within, outside): (Vec<_>, Vec<_>) = slow.into_iter().partition(|(at, _)| is_within(*at));
    let seconds: u64 = windows.iter().map(|(from, to)| to - from + 1).sum();
    let most = |list: &[(u64, u64)]| list.iter().map(|(_, micros)| *micros).max().unwrap_or(0) / 1_000;
    let rate = |list: &[(u64, u64)], seconds: u64| list.len() as f64 / seconds.max(1) as f64;
    format!(
        "{} in {seconds} s with an image in the making ({:.2} a second, slowest {} ms), {} in the other {} s ({:.2} a second, slowest {} ms)",
        within.len(),
        rate(&within, seconds),
        most(&within),
        outside.len(),
        soaked.seconds.saturating_sub(seconds),
        rate(&outside, soaked.seconds.saturating_sub(seconds)),
        most(&outside)
    )
}

/// Seconds on a processor that an image takes.
fn an_image(last: &Sample, log: &str) -> f64 {
    get(last, "cpu bem-images") as f64 / 1e6 / count(log, "image").max(1) as f64
}

/// The figures, by name.
fn figures(soaked: &Soaked) -> Result<Vec<(&'static str, String)>> {
    let Soaked { seconds, samples, load, log, audited, back } = soaked;
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
        ("decisions above 50 ms", slow(soaked)),
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
    let full = get(middle, "decisions");
    let held = [
        (
            LOG_STEPS <= full,
            format!("the learner's log was not full in the middle of the run: {full} of {LOG_STEPS} steps"),
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
         take\nback; an image every {} s, segments of 1 MiB so that they are archived, everything else by default. Processor time is what the\n\
         system counts for a thread: waiting for other work is not in it.\n\n",
        soaked.seconds / SECONDS,
        commit()?,
        PACE.as_millis(),
        (soaked.seconds / 12).clamp(5, IMAGE_SECONDS_MAX),
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
