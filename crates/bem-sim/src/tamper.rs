//! What somebody with the files, but without the key, can do to a ledger: each of it must be found.
//!
//! `old` is a copy of the same run from an earlier time, so that rollbacks are made of honest parts. With a checkpoint kept
//! outside everything is found; without one only a rollback as a whole is not, and then the verdict is `unanchored`.
//! Clauses: LOG-2, LOG-4; threats T1 to T5.

use bem_base::prng::Prng;
use bem_engine::journal::RunConditions;
use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::checkpoint::SignedCheckpoint;
use bem_ledger::segment::{SegmentHeader, segment_number};
use bem_ledger::store::MemoryStore;

/// The manipulations, by name, and whether they can be seen without a checkpoint from outside.
pub const MANIPULATIONS: [(&str, bool); 8] = [
    ("truncation", true),
    ("reorder", true),
    ("drop", true),
    ("splice", true),
    ("old snapshot", true),
    ("old segments", true),
    ("old checkpoint", false),
    ("rollback", false),
];

/// One manipulated copy; nothing if it cannot be done to this ledger.
fn manipulate(name: &str, old: &MemoryStore, new: &MemoryStore, prng: &mut Prng) -> Option<MemoryStore> {
    let mut store = new.clone();
    match name {
        "truncation" => {
            let names: Vec<String> = store
                .files
                .iter()
                .filter(|(_, content)| !content.is_empty())
                .map(|(name, _)| name.clone())
                .collect();
            let content = store.files.get_mut(&names[prng.below(names.len() as u64) as usize])?;
            content.truncate(prng.below(content.len() as u64) as usize);
        }
        "reorder" | "drop" | "splice" => {
            let (file, frames) = frames(new, prng)?;
            let place = prng.below(frames.len() as u64 - 1) as usize;
            let (first, second) = (frames[place].clone(), frames[place + 1].clone());
            let content = store.files.get_mut(&file)?;
            match name {
                "reorder" => {
                    let swapped = [&content[second.clone()], &content[first.clone()]].concat();
                    content.splice(first.start..second.end, swapped);
                }
                "drop" => drop(content.drain(first)),
                _ => {
                    let copy = content[first.clone()].to_vec();
                    content.splice(second, copy);
                }
            }
        }
        "old snapshot" => {
            let newest = |store: &MemoryStore| {
                let names = store.files.keys().filter(|name| name.ends_with(".snap"));
                names.max().cloned()
            };
            let content = old.files.get(&newest(old)?)?.clone();
            store.files.insert(newest(new)?, content);
        }
        "old segments" => {
            store.files.retain(|name, _| segment_number(name).is_none());
            let segments = old.files.iter().filter(|(name, _)| segment_number(name).is_some());
            store.files.extend(segments.map(|(name, content)| (name.clone(), content.clone())));
        }
        "old checkpoint" => {
            // Snapshots that the old history does not mark would give it away, and so would those missing that it keeps.
            store.files.retain(|name, _| !name.ends_with(".snap"));
            let snapshots = old.files.iter().filter(|(name, _)| name.ends_with(".snap"));
            store.files.extend(snapshots.map(|(name, content)| (name.clone(), content.clone())));
            store.files.insert("checkpoint".to_owned(), old.files.get("checkpoint")?.clone());
        }
        _ => store = old.clone(),
    }
    (store != *new).then_some(store)
}

/// A segment with at least two entries, and where its frames lie.
fn frames(store: &MemoryStore, prng: &mut Prng) -> Option<(String, Vec<std::ops::Range<usize>>)> {
    let names: Vec<&String> = store.files.keys().filter(|name| segment_number(name).is_some()).collect();
    let name = names[prng.below(names.len() as u64) as usize];
    let content = store.files.get(name)?;
    let (_, mut start) = SegmentHeader::decode(content).ok()?;
    let mut frames = Vec::new();
    while let Some(length) = content.get(start..start + 4) {
        let end = start + 4 + u32::from_le_bytes(length.try_into().ok()?) as usize;
        frames.push(start..end);
        start = end;
    }
    (2 <= frames.len()).then(|| (name.clone(), frames))
}

/// Tries every manipulation so many times; returns how often each could be done.
pub fn tamper(
    old: &MemoryStore,
    new: &MemoryStore,
    count: u64,
    seed: u64,
) -> Result<Vec<(&'static str, u64)>, String> {
    let mut prng = Prng::stream(seed, "tamper");
    let anchor = new.files.get("checkpoint").ok_or("the run has no checkpoint")?.clone();
    let anchor = SignedCheckpoint::parse(&anchor).map_err(|error| error.to_string())?;
    let verdict = |store: &MemoryStore, anchor: Option<&SignedCheckpoint>| {
        let report = audit(&mut store.clone(), anchor, &mut RunConditions::new());
        report.map(|report| report.verdict).map_err(|error| error.to_string())
    };
    if verdict(new, Some(&anchor))? != AuditVerdict::Ok || verdict(old, None)? != AuditVerdict::Unanchored {
        return Err("the runs are not sound to begin with".to_owned());
    }
    let mut counts = Vec::new();
    for (name, is_seen_alone) in MANIPULATIONS {
        let mut done = 0;
        // Some of them can be done in one way only.
        let tries = if ["truncation", "reorder", "drop", "splice"].contains(&name) { count } else { 1 };
        for _ in 0..tries {
            let Some(store) = manipulate(name, old, new, &mut prng) else { continue };
            let (anchored, alone) = (verdict(&store, Some(&anchor))?, verdict(&store, None)?);
            let found = matches!(anchored, AuditVerdict::Broken { .. });
            let fits = if is_seen_alone {
                matches!(alone, AuditVerdict::Broken { .. })
            } else {
                alone == AuditVerdict::Unanchored
            };
            if !found || !fits {
                return Err(format!("{name}: {anchored:?} with a checkpoint, {alone:?} without"));
            }
            done += 1;
        }
        if done == 0 {
            return Err(format!("{name} could not be tried on these runs"));
        }
        counts.push((name, done));
    }
    Ok(counts)
}
