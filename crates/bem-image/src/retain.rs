//! What a layout keeps: the newest snapshot of each of the last N days and M weeks, and everything that was ever promoted.
//!
//! The index without what goes is published first, then blobs that nothing reaches are removed; cut off anywhere, everything that
//! a tag needs is there. Clause: IMG-6; decision D-88.

use crate::ImageError;
use crate::layout::{Layout, blob_name, digest_of, read_digest};
use crate::model::Listed;
use crate::statement::promotions;
use crate::tag::taken_at;
use bem_base::digest::Digest;
use bem_ledger::store::Store;
use std::collections::BTreeSet;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Days with a snapshot, the newest first, of which one each is kept.
    pub daily: usize,
    /// Weeks with a snapshot, the newest first, of which one each is kept.
    pub weekly: usize,
}

/// What pruning did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Tags that went, in order.
    pub tags: Vec<String>,
    /// Blobs that went.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The newest tags of the last `count` periods.
fn newest_of(tags: &[(i64, String)], count: usize) -> BTreeSet<String> {
    let mut kept = BTreeSet::new();
    let mut periods = BTreeSet::new();
    // The newest stand last.
    for (period, tag) in tags.iter().rev() {
        if periods.len() == count {
            break;
        }
        if periods.insert(*period) {
            kept.insert(tag.clone());
        }
    }
    kept
}

/// Which snapshot tags go, of these; `is_promoted` says which digests stay whatever their age.
pub fn to_remove(
    listed: &[Listed],
    retention: Retention,
    is_promoted: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let mut snapshots: Vec<_> = listed
        .iter()
        .filter_map(|entry| {
            let tag = entry.tag()?;
            // Of one minute the tag with the greater number is the newer one.
            Some((taken_at(tag)?, tag.len(), tag.to_string(), entry.digest.clone()))
        })
        .collect();
    snapshots.sort();
    let by = |period: fn(&crate::tag::Minute) -> i64| -> Vec<(i64, String)> {
        snapshots.iter().map(|(minute, _, tag, _)| (period(minute), tag.clone())).collect()
    };
    let mut kept = newest_of(&by(|minute| minute.day), retention.daily);
    kept.extend(newest_of(&by(crate::tag::Minute::week), retention.weekly));
    // The newest of all always stays: a layout without a state is no backup.
    kept.extend(snapshots.last().map(|(_, _, tag, _)| tag.clone()));
    let goes =
        snapshots.into_iter().filter(|(_, _, tag, digest)| !kept.contains(tag) && !is_promoted(digest));
    goes.map(|(_, _, tag, _)| tag).collect()
}

/// Removes what is not kept.
pub fn prune<S: Store>(layout: &mut Layout<S>, retention: Retention) -> Result<Pruned, ImageError> {
    let promoted: BTreeSet<String> =
        promotions(layout)?.into_iter().map(|statement| statement.digest).collect();
    let goes = to_remove(&layout.index().manifests, retention, |digest| promoted.contains(digest));
    let mut index = layout.index().clone();
    index.manifests.retain(|entry| entry.tag().is_none_or(|tag| !goes.contains(tag)));
    // A signature stays as long as what it is about.
    let images: BTreeSet<String> = index.manifests.iter().map(|entry| entry.digest.clone()).collect();
    let mut orphans = BTreeSet::new();
    for entry in &index.manifests {
        let subject = layout.read(entry)?.manifest.subject;
        if subject.is_some_and(|subject| !images.contains(&subject.digest)) {
            orphans.insert(entry.digest.clone());
        }
    }
    index.manifests.retain(|entry| !orphans.contains(&entry.digest));
    if index.manifests.len() != layout.index().manifests.len() {
        layout.publish(index)?;
    }
    let (blobs, bytes) = collect(layout)?;
    Ok(Pruned { tags: goes.into_iter().collect(), blobs, bytes })
}

/// Every blob that something in the index needs.
pub fn reachable<S: Store>(layout: &mut Layout<S>) -> Result<BTreeSet<Digest>, ImageError> {
    let mut reached = BTreeSet::new();
    for entry in layout.index().manifests.clone() {
        let Some(digest) = read_digest(&entry.digest) else { continue };
        let found = layout.read(&entry)?;
        reached.insert(digest);
        reached.insert(digest_of(&found.manifest.config)?);
        for layer in &found.manifest.layers {
            reached.insert(digest_of(layer)?);
        }
    }
    Ok(reached)
}

/// Removes blobs that nothing reaches; how many, and their bytes. If anything of the index cannot be read, nothing is removed.
fn collect<S: Store>(layout: &mut Layout<S>) -> Result<(u64, u64), ImageError> {
    let needed: BTreeSet<String> = reachable(layout)?.iter().map(blob_name).collect();
    let store = layout.store_mut();
    let (mut blobs, mut bytes) = (0, 0);
    for name in store.list()? {
        let is_leftover = name.starts_with("blobs/") && !needed.contains(&name) || name.ends_with(".tmp");
        if is_leftover {
            bytes += store.length(&name)?;
            blobs += 1;
            store.remove(&name)?;
        }
    }
    store.sync_directory()?;
    Ok((blobs, bytes))
}
