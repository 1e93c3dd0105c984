//! The files beside the segments: snapshots that their markers name, and content under its digest.
//!
//! The newest marker says how many snapshots are kept from it on; each of these must be there. A file that an older marker
//! names may be gone, but if it is there it must be the one. Clauses: LOG-2, LOG-4.

use super::{Auditor, Marker};
use crate::error::{LedgerError, StoreError};
use crate::log::read_blob;
use crate::snapshot::{load_snapshot, snapshot_entries, snapshot_name};
use crate::store::Store;
use bem_base::digest::Digest;

impl<S: Store> Auditor<'_, S> {
    /// Every snapshot that is kept is there, and every snapshot file in the acknowledged history is marked.
    pub(super) fn check_snapshots(&mut self) -> Result<(), LedgerError> {
        for name in self.store.list()? {
            let entries = snapshot_entries(&name).filter(|entries| *entries < self.frontier.size());
            if let Some(entries) = entries.filter(|entries| !self.markers.contains_key(entries)) {
                return Err(LedgerError::broken(entries, format!("{name} is not marked in the log")));
            }
        }
        let kept = self.markers.last_key_value().map_or(0, |(_, newest)| usize::from(newest.kept));
        let markers = core::mem::take(&mut self.markers);
        for (place, (entries, marker)) in markers.iter().rev().enumerate() {
            self.check_snapshot(*entries, marker, place < kept)?;
        }
        Ok(())
    }

    fn check_snapshot(&mut self, entries: u64, marker: &Marker, is_kept: bool) -> Result<(), LedgerError> {
        let name = snapshot_name(entries);
        let broken = |reason: String| LedgerError::broken(entries, reason);
        match self.store.length(&name) {
            Err(StoreError::Missing { .. }) if is_kept => {
                return Err(broken(format!("{name} is missing, and the history says that it is kept")));
            }
            Err(StoreError::Missing { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
            Ok(size_bytes) if size_bytes != marker.size_bytes => {
                let reason = format!("{name} has {size_bytes} bytes, its marker says {}", marker.size_bytes);
                return Err(broken(reason));
            }
            Ok(_) => {}
        }
        load_snapshot(self.store, &name, &marker.manifest, marker.head)
            .map_err(|error| broken(error.to_string()))?;
        self.sizes.snapshots += marker.size_bytes;
        self.snapshots += 1;
        Ok(())
    }

    /// Every blob has the digest that it is named by, whether or not an entry names it.
    pub(super) fn check_blobs(&mut self) -> Result<(), LedgerError> {
        for name in self.store.list()? {
            let Some(hexadecimal) = name.strip_prefix("blob-").filter(|rest| !rest.ends_with(".tmp")) else {
                continue;
            };
            let digest = Digest::from_hex(hexadecimal)
                .ok_or_else(|| self.broken(format!("{name} is not named by a digest")))?;
            let content = read_blob(self.store, &digest).map_err(|error| self.broken(error.to_string()))?;
            self.sizes.blobs += content.len() as u64;
            self.blobs += 1;
        }
        Ok(())
    }
}
