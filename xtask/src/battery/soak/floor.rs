//! What this machine takes for nothing: a bare sync of a few bytes on the same disk, and a thread that wants to wake up, beside the
//! server. What decisions take beyond that is the server's.

use super::clients::{Load, SLOW, now};
use anyhow::Result;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time between two trials.
const PAUSE: Duration = Duration::from_millis(25);
const BYTES: usize = 4_096;

/// One trial: when it ended in seconds since 1970, microseconds of the sync, microseconds by which the thread woke up late.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    pub at: u64,
    pub sync: u64,
    pub late: u64,
}

/// Writes and syncs a file that is as long as it will ever be, as the server's inbox is, until the load is over.
pub fn measure(folder: &Path, load: &Load) -> Result<Vec<Trial>> {
    let file = std::fs::File::create(folder.join("floor"))?;
    file.write_all_at(&[0; BYTES], 0)?;
    file.sync_all()?;
    let mut trials = Vec::new();
    while !load.stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        std::thread::sleep(PAUSE);
        let late = began.elapsed().saturating_sub(PAUSE).as_micros() as u64;
        let began = Instant::now();
        file.write_all_at(&[trials.len() as u8; BYTES], 0)?;
        file.sync_data()?;
        trials.push(Trial { at: now(), sync: began.elapsed().as_micros() as u64, late });
    }
    Ok(trials)
}

/// Trials above 50 ms as a share of all, and the longest in milliseconds.
pub fn slow(trials: &[Trial], of: fn(&Trial) -> u64) -> (f64, f64) {
    let limit = SLOW.as_micros() as u64;
    let count = trials.iter().filter(|trial| limit < of(trial)).count();
    let most = trials.iter().map(of).max().unwrap_or(0);
    (count as f64 / trials.len().max(1) as f64, most as f64 / 1e3)
}
