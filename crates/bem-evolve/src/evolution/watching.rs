//! Watching the latest change of a pool: pairs against what was there before, until it is taken back or stays.
//!
//! Clauses: SCC-9, SCC-14.

use super::{Basis, Duel, Evolution, Guard, PoxReading, Record, Verdict, difference};
use crate::apply::Receipt;
use crate::patch::PatchKind;
use crate::queue::PatchStatus;
use crate::rollout::{Performer, Rollout};
use crate::watch::Watch;
use bem_learn::bucket::Bucket;
use bem_machine::family::Family;

/// Pairs after which a watch ends and the patch stays.
pub const WATCH_PAIRS_MAX: u32 = 64;
/// Choices after a RESET before its effect can be seen.
const RESET_GRACE: u64 = 64;

/// An applied patch that may still be taken back.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) receipt: Receipt,
    pub(super) words: String,
    pub(super) watch: Watch,
}

impl Evolution {
    /// The applied patch that may still be taken back.
    pub fn watched(&self) -> Option<u64> {
        self.watched.as_ref().map(|watched| watched.receipt.serial())
    }

    /// What was measured of the applied patch that may still be taken back. Others may have been put into force since: a
    /// proven one leaves what is watched as it is.
    pub fn watched_guard(&self) -> Option<&Guard> {
        let serial = self.watched()?;
        self.guards.iter().find(|guard| guard.serial == serial)
    }

    /// The two whose rollouts tell whether the latest change keeps its promise; none if there is nothing to watch now.
    pub fn watch_duel(&self) -> Option<Duel> {
        let watched = self.watched.as_ref()?;
        let before = watched.receipt.family_before()?;
        let now = self.tables.family(watched.receipt.family()).ok()?;
        let forgotten = |bucket: &Bucket| bucket.selections_total() < RESET_GRACE;
        if watched.receipt.kind() == PatchKind::Reset && now.buckets().iter().any(forgotten) {
            return None;
        }
        let frozen = |family: &Family| Performer::frozen(&self.config, family);
        Some(Duel { new: frozen(now), old: frozen(before) })
    }

    /// Books a pair of the watch. A record comes when the patch is taken back; a watch that is long enough ends.
    pub fn book_watch(&mut self, new: &Rollout, old: &Rollout, step: u64) -> Option<Record> {
        let watched = self.watched.as_mut()?;
        let serial = watched.receipt.serial();
        let guard = self.guards.iter_mut().find(|guard| guard.serial == serial)?;
        let contradiction = watched.watch.observe(difference(new, old, guard.span));
        if guard.basis == Basis::Watch {
            guard.observe(old.total(), new.total());
        }
        if let Some(reason) = contradiction {
            guard.rolled_back = true;
            let Watched { receipt, words, .. } = *self.watched.take()?;
            let (kind, family) = (receipt.kind(), receipt.family());
            // Nothing has changed since, so that this cannot fail; if it did, the patch would simply stay.
            self.tables.roll_back(receipt, reason).ok()?;
            self.pox.book_rolled_back(kind);
            self.mark(serial, PatchStatus::RolledBack);
            let pox = PoxReading::of(&self.pox, kind);
            let verdict = Verdict::RolledBack { reason };
            return Some(Record { serial, kind, family, step, words, verdict, pox });
        }
        if WATCH_PAIRS_MAX <= watched.watch.pairs() {
            self.watched = None;
        }
        None
    }
}
