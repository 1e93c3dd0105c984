//! Counts that the threads of a service keep for whoever shows them: pages, metrics, the snapshot gate.
//!
//! They are no part of the state. Clauses: IMG-3, LOG-1.

use bem_base::digest::Digest;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::sync::{Mutex, PoisonError};

/// Counts that the page and the metrics show.
#[derive(Debug, Default)]
pub struct Gauges {
    /// Inputs that took effect.
    pub inputs: AtomicU64,
    /// Inputs that the ledger holds under a signed checkpoint.
    pub covered: AtomicU64,
    /// The head under the newest signed checkpoint, with the last input that it covers.
    pub head: Mutex<Option<(u64, Digest)>>,
    /// Groups synced.
    pub groups: AtomicU64,
    /// Microseconds spent in syncs.
    pub sync_micros: AtomicU64,
    /// The longest sync.
    pub sync_max_micros: AtomicU64,
    /// Decisions and rewards that were answered.
    pub decisions: AtomicU64,
    /// See `decisions`.
    pub rewards: AtomicU64,
    /// Rounds that took effect.
    pub rounds: AtomicU64,
    /// Entries of the ledger.
    pub entries: AtomicU64,
    /// Microseconds of deciding, of learning, and of writing the ledger.
    pub act_micros: AtomicU64,
    /// See `act_micros`.
    pub learn_micros: AtomicU64,
    /// See `act_micros`.
    pub ledger_micros: AtomicU64,
    /// The longest time that decisions waited for a state to be taken.
    pub barrier_max_micros: AtomicU64,
    /// The same on the processor: what other work took meanwhile is not in it.
    pub barrier_processor_max_micros: AtomicU64,
    /// The longest time that decisions waited because the ledger lagged behind.
    pub ledger_wait_max_micros: AtomicU64,
    /// Patches that were let in, and patches that were taken back.
    pub patches_applied: AtomicU64,
    /// See `patches_applied`.
    pub patches_taken_back: AtomicU64,
    /// Lower bounds of what patches gain, in thousandths: of those let in less those taken back.
    pub pox_milli: AtomicI64,
    /// Rungs of the ladder that were reached beside serving, since the start.
    pub rungs_reached: AtomicU64,
    /// Decisions that the service asked itself for: of rungs.
    pub decisions_own: AtomicU64,
    /// Units of the pipeline that were worked on beside serving since the start, their steps, and domains that were learned.
    pub pipeline_units: AtomicU64,
    /// See `pipeline_units`.
    pub pipeline_steps: AtomicU64,
    /// See `pipeline_units`.
    pub domains_learned: AtomicU64,
    /// Requests to tools that ended.
    pub tools_ended: AtomicU64,
    /// Requests to tools that found no free slot.
    pub tools_refused: AtomicU64,
    /// Questions to a model for candidates, machines that came of them, and proposals that were refused.
    pub models_asked: AtomicU64,
    /// See `models_asked`.
    pub machines_proposed: AtomicU64,
    /// See `models_asked`.
    pub proposals_refused: AtomicU64,
    /// Messages to webhooks that were taken, attempts that were made again, and messages that were dropped.
    pub webhooks_sent: AtomicU64,
    /// See `webhooks_sent`.
    pub webhooks_retried: AtomicU64,
    /// See `webhooks_sent`.
    pub webhooks_dropped: AtomicU64,
    /// A round of learning failed: its world decides as it does and learns no more until the next start.
    pub learning_failed: AtomicBool,
    /// Something failed that cannot be mended.
    pub failed: AtomicBool,
}

impl Gauges {
    /// The history is signed up to this input.
    pub(super) fn sign(&self, input: u64, head: Digest) {
        *self.head.lock().unwrap_or_else(PoisonError::into_inner) = Some((input, head));
    }

    /// The newest signed head, with the last input that it covers.
    pub fn signed(&self) -> Option<(u64, Digest)> {
        *self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
