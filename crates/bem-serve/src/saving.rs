//! Snapshots that somebody asks for, and what the metrics need to know: the edges of the deciding thread for the image agent.
//!
//! Nothing waits for a snapshot but who asks: the state is taken between two groups of inputs when no round is under way, and
//! put together and written by the thread of the ledger. Clauses: IMG-3, LOG-4; decision D-89.

use crate::core::{Gauges, Handle, Message};
use anyhow::Result;
use bem_ledger::archive::Archived;
use bem_ledger::limits::SNAPSHOT_BYTES_MAX;
use bem_ledger::log::Log;
use bem_ledger::snapshot::{Part, Snapshot};
use bem_ledger::store::Store;
use bem_runtime::book::{Book, Derived, Line};
use bem_runtime::frozen::Frozen;
use bem_runtime::history::{self, SERVICE_PART, SNAPSHOTS_KEPT};
use bem_runtime::service::{Refusal, Service};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A snapshot that is asked for.
pub struct Saving {
    /// Entries before this are in an image, which is named: their segments are archived behind the snapshot.
    pub archive: Option<(u64, String)>,
    /// Told when it is done: the archived range, if something was archived.
    pub reply: mpsc::Sender<Option<Archived>>,
}

impl Handle {
    /// Looks at what is served, from a thread of its own; nothing if no answer comes in this time.
    pub fn look_within<T: Send + 'static>(
        &self,
        patience: Duration,
        look: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = mpsc::channel();
        let look = move |service: &Service| {
            let _ = reply.send(look(service));
        };
        self.send(Message::Look(Box::new(look))).ok()?;
        answer.recv_timeout(patience).ok()
    }

    /// Asks, from a thread of its own, and waits for the answer; nothing if the service is busy or stops.
    pub fn ask_here<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> Message,
    ) -> Option<Result<T, Refusal>> {
        let (reply, answer) = oneshot::channel();
        self.send(message(reply)).ok()?;
        answer.blocking_recv().ok()
    }

    /// Saves a snapshot and archives what an image holds; nothing if that is not done in this time.
    pub fn save_within(
        &self,
        patience: Duration,
        archive: Option<(u64, String)>,
    ) -> Option<Option<Archived>> {
        let (reply, answer) = mpsc::channel();
        self.send(Message::Save(Box::new(Saving { archive, reply }))).ok()?;
        answer.recv_timeout(patience).ok()
    }
}

fn service_part(parts: &[Part]) -> Option<Vec<u8>> {
    parts.iter().find(|part| part.name == SERVICE_PART).map(|part| part.bytes.clone())
}

/// The snapshot of this name, read back, holds what was to be saved: else nothing may be archived behind it.
fn is_read_back<S: Store>(log: &mut Log<S>, name: &str, service: &[u8]) -> Result<bool> {
    let bytes = log.store_mut().read_all(name, SNAPSHOT_BYTES_MAX)?;
    let found = Snapshot::from_bytes(&bytes).ok();
    Ok(found.is_some_and(|(snapshot, _)| snapshot.part(SERVICE_PART) == Some(service)))
}

/// Writes a snapshot; what an image holds is archived behind it, once the snapshot was read back whole.
pub(crate) fn save_and_archive<S: Store>(
    log: &mut Log<S>,
    book: &Book,
    step: u64,
    frozen: Frozen,
    saving: Option<Box<Saving>>,
) -> Result<()> {
    let archive = saving.as_ref().and_then(|saving| saving.archive.clone());
    let parts = history::parts_of(frozen);
    let service = archive.as_ref().and_then(|_| service_part(&parts));
    let name = log.write_snapshot(step, parts, SNAPSHOTS_KEPT)?;
    let mut archived = None;
    if let (Some((limit, image)), Some(service)) = (archive, service)
        && is_read_back(log, &name, &service)?
    {
        archived = log.archive(step, limit, &history::base_from(service, book).to_bytes(), &image)?;
    }
    if let Some(saving) = saving {
        // Whoever asked may have lost patience.
        let _ = saving.reply.send(archived);
    }
    Ok(())
}

/// Counts what was decided about patches, for the metrics.
pub(crate) fn count_patches(line: &Line, gauges: &Gauges) {
    let patches = match &line.derived {
        Derived::Opened(_, patches) => patches,
        Derived::Published(published) => &published.patches,
        _ => return,
    };
    for patch in patches.iter().filter(|patch| patch.accepted || patch.rolled_back) {
        let (count, sign) = match patch.rolled_back {
            true => (&gauges.patches_taken_back, -1),
            false => (&gauges.patches_applied, 1),
        };
        count.fetch_add(1, Ordering::Relaxed);
        let milli = ((i128::from(patch.score) * 1_000) >> 32).clamp(-1_000_000_000, 1_000_000_000) as i64;
        gauges.pox_milli.fetch_add(sign * milli, Ordering::Relaxed);
    }
}
