//! Watching the latest change of a pool: pairs against what was held before, or episodes interleaved with it where a world
//! cannot be repeated, until it is taken back or stays.
//!
//! Clauses: SCC-9, SCC-14.

use super::{Basis, Evolution, Guard, PoxReading, Record, Verdict, difference};
use crate::apply::Live;
use crate::improvement::interleaved::{Earlier, InterleavedTest, Played};
use crate::improvement::{Account, Progress};
use crate::patch::PatchKind;
use crate::queue::PatchStatus;
use crate::rollout::Rollout;
use crate::watch::{Contradiction, Watch};
use bem_base::fixed::Fixed;
use bem_machine::machine::Undo;

/// Pairs after which a watch ends and the patch stays.
pub const WATCH_PAIRS_MAX: u32 = 64;

/// An applied patch that may still be taken back.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) serial: u64,
    pub(super) kind: PatchKind,
    pub(super) undo: Undo,
    pub(super) words: String,
    pub(super) watch: Watch,
    /// The test of a world that cannot be repeated, once it has begun: what was there before is its candidate.
    pub(super) interleaved: Option<InterleavedTest>,
}

impl Evolution {
    /// The applied patch that may still be taken back.
    pub fn watched(&self) -> Option<u64> {
        self.watched.as_ref().map(|watched| watched.serial)
    }

    /// What it takes to take it back.
    pub fn watched_undo(&self) -> Option<&Undo> {
        self.watched.as_ref().map(|watched| &watched.undo)
    }

    /// What was measured of the applied patch that may still be taken back. Others may have been put into force since: a
    /// proven one leaves what is watched as it is.
    pub fn watched_guard(&self) -> Option<&Guard> {
        let serial = self.watched()?;
        self.guards.iter().find(|guard| guard.serial == serial)
    }

    /// Books a pair of the watch. A record comes when the patch is taken back; a watch that is long enough ends.
    pub fn book_watch(
        &mut self,
        machine: &mut Live,
        new: &Rollout,
        old: &Rollout,
        step: u64,
    ) -> Option<Record> {
        let watched = self.watched.as_mut()?;
        let serial = watched.serial;
        let guard = self.guards.iter_mut().find(|guard| guard.serial == serial)?;
        let contradiction = watched.watch.observe(difference(new, old, guard.span));
        if guard.basis == Basis::Watch {
            guard.observe(old.total, new.total);
        }
        if let Some(reason) = contradiction {
            return self.take_back(machine, reason, step);
        }
        if WATCH_PAIRS_MAX <= watched.watch.pairs() {
            self.watched = None;
        }
        None
    }

    /// Books an episode of the watch that a coin has given to what was there before (the test's candidate) or to what is
    /// there now. A record comes when the patch is taken back; a watch that is long enough ends.
    pub fn book_watch_episode(
        &mut self,
        machine: &mut Live,
        played: &Played,
        earlier: Earlier,
        step: u64,
    ) -> Option<Record> {
        let watched = self.watched.as_mut()?;
        let alpha = &mut self.alpha;
        let mut test = watched
            .interleaved
            .take()
            .unwrap_or_else(|| alpha.open_interleaved(Account::Watches, earlier, Fixed::ZERO));
        let progress = test.observe(alpha, Account::Watches, played);
        let evidence = test.evidence();
        watched.interleaved = Some(test);
        if progress == Progress::Better {
            let reason = Contradiction { pairs: evidence.episodes, mean_loss: evidence.mean };
            return self.take_back(machine, reason, step);
        }
        if progress != Progress::Open || 4 * WATCH_PAIRS_MAX <= evidence.episodes {
            self.watched = None;
        }
        None
    }

    /// Takes the latest patch back. Where something stands in the way, the patch simply stays.
    fn take_back(&mut self, machine: &mut Live, reason: Contradiction, step: u64) -> Option<Record> {
        let Watched { serial, kind, undo, words, .. } = *self.watched.take()?;
        machine.undo(undo).ok()?;
        let guard = self.guards.iter_mut().find(|guard| guard.serial == serial)?;
        guard.rolled_back = true;
        let family = guard.family;
        self.pox.book_rolled_back(kind);
        self.mark(serial, PatchStatus::RolledBack);
        let pox = PoxReading::of(&self.pox, kind);
        let verdict = Verdict::RolledBack { reason };
        Some(Record { serial, kind, family, step, words, verdict, pox })
    }
}
