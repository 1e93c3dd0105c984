//! Segments that are archived: removed here because an image holds them, and named by an entry of the chain.
//!
//! The first segment, with genesis and the tables at the start, stays for ever. What goes is a run of segments behind it; the entry
//! names their range, a saved state from which an audit and a replay go on, and the image that holds them. The entry is
//! acknowledged before the first file goes. A gap that no entry names is a broken history. Clauses: LOG-1, LOG-2, IMG-6; decision D-89.

use crate::entry::{Entry, Table, event_code};
use crate::error::LedgerError;
use crate::log::{Log, blob_name, read_blob};
use crate::reader::Gap;
use crate::segment::{Frame, SegmentReader, list_segments, segment_name};
use crate::snapshot::snapshot_entries;
use crate::store::Store;
use bem_base::digest::Digest;
use std::collections::BTreeSet;

/// What an entry about archived segments says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    /// The first entry that is archived.
    pub first: u64,
    /// The first entry behind them.
    pub end: u64,
    /// The state at this entry, a blob.
    pub state: Digest,
    /// The image that holds what is archived.
    pub image: String,
}

impl Archived {
    /// What this entry says, if it is such a one.
    pub fn of(entry: &Entry) -> Option<Archived> {
        let Entry::Event { code: event_code::ARCHIVED, values, payload, .. } = entry else { return None };
        let [first, end] = values[..] else { return None };
        let (first, end) = (u64::try_from(first).ok()?, u64::try_from(end).ok()?);
        let state = Digest::from_bytes(payload.get(..32)?.try_into().ok()?);
        let image = core::str::from_utf8(payload.get(32..)?).ok()?.to_string();
        (first < end).then_some(Archived { first, end, state, image })
    }

    /// The entry that says this.
    pub fn entry(&self, step: u64) -> Entry {
        let values = vec![self.first as i64, self.end as i64];
        let payload = [self.state.as_bytes(), self.image.as_bytes()].concat();
        Entry::Event { step, code: event_code::ARCHIVED, values, payload }
    }

    /// Whether these entries are among those that are archived. Files go in order, so that a removal that was cut off leaves the
    /// first of them gone and not the last.
    pub fn covers(&self, gap: Gap) -> bool {
        self.first == gap.first && gap.end <= self.end
    }
}

/// Blobs that an entry names.
fn named(entry: &Entry) -> Vec<Digest> {
    match entry {
        Entry::Genesis(genesis) => vec![genesis.configuration],
        Entry::Patch(patch) => {
            let shown = patch.certificates.iter().flat_map(|one| [one.cnf, one.proof]);
            core::iter::once(patch.payload).chain(shown).collect()
        }
        Entry::ToolCall(call) => vec![call.request_digest, call.response_digest],
        Entry::HumanTask(task) => vec![task.context, task.answer],
        Entry::Tables { edits, .. } => {
            edits.iter().filter(|edit| edit.table == Table::Program).map(|edit| edit.leaf).collect()
        }
        _ => Vec::new(),
    }
}

/// What a segment holds.
struct Walked {
    /// The entry behind its last one.
    end: u64,
    /// Blobs that its entries name.
    blobs: BTreeSet<Digest>,
    /// States that were saved with earlier archives.
    states: BTreeSet<Digest>,
}

fn walk<S: Store>(store: &mut S, number: u32) -> Result<Walked, LedgerError> {
    let mut reader = SegmentReader::open(store, number)?;
    let mut next = reader.header().frontier.size();
    let (mut blobs, mut states) = (BTreeSet::new(), BTreeSet::new());
    loop {
        match reader.next(store)? {
            Frame::Entry(bytes) => {
                let entry = Entry::from_bytes(bytes);
                let entry = entry.map_err(|source| LedgerError::Entry { index: next, source })?;
                blobs.extend(named(&entry));
                states.extend(Archived::of(&entry).map(|archived| archived.state));
                next += 1;
            }
            Frame::End => return Ok(Walked { end: next, blobs, states }),
            Frame::Torn(reason) => return Err(LedgerError::broken(next, reason)),
        }
    }
}

impl<S: Store> Log<S> {
    /// Removes the segments that lie before `limit` and before every snapshot that is kept; nothing where there are none. `state`
    /// is everything that an audit and a replay need to go on from here; `image` holds all entries before `limit`.
    pub fn archive(
        &mut self,
        step: u64,
        limit: u64,
        state: &[u8],
        image: &str,
    ) -> Result<Option<Archived>, LedgerError> {
        self.commit()?;
        let segments = list_segments(self.store_mut())?;
        let kept = self.store_mut().list()?.iter().filter_map(|name| snapshot_entries(name)).min();
        let limit = kept.map_or(0, |kept| kept.min(limit));
        let mut goes = Vec::new();
        let mut end = 0;
        for pair in segments.windows(2).filter(|pair| 0 < pair[0]) {
            let behind = SegmentReader::open(self.store_mut(), pair[1])?.header().frontier.size();
            if limit < behind {
                break;
            }
            goes.push(pair[0]);
            end = behind;
        }
        if goes.is_empty() {
            return Ok(None);
        }
        let Walked { end: first, blobs: mut needed, .. } = walk(self.store_mut(), 0)?;
        let archived = Archived { first, end, state: self.put_blob(state)?, image: image.to_string() };
        // What a replay goes on from is read back before anything goes.
        read_blob(self.store_mut(), &archived.state)?;
        self.append(&archived.entry(step))?;
        self.commit()?;
        let mut unneeded = BTreeSet::new();
        for number in segments.into_iter().filter(|number| 0 < *number) {
            let Walked { blobs, states, .. } = walk(self.store_mut(), number)?;
            // Behind a longer gap nobody goes on from an earlier state.
            unneeded.extend(states);
            if goes.contains(&number) { unneeded.extend(blobs) } else { needed.extend(blobs) }
        }
        needed.insert(archived.state);
        for number in goes {
            self.store_mut().remove(&segment_name(number))?;
            // One after the other, also after a loss of power: what is left is a history whose first part is gone.
            self.store_mut().sync_directory()?;
        }
        for digest in unneeded.difference(&needed).filter(|digest| **digest != Digest::default()) {
            self.forget_blob(digest);
            // An entry may name a blob that another entry's archive has removed already.
            let _ = self.store_mut().remove(&blob_name(digest));
        }
        self.store_mut().sync_directory()?;
        Ok(Some(archived))
    }
}
