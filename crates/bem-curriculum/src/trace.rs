//! What the protocol did, entry by entry, in the ledger's own form and hash chain.
//!
//! A reader of the trace can see every phase, probe, hold, closure and threshold step, and that nobody but the
//! learner wrote the running variance on the emergent arm. Clauses: CUR-4, CUR-5, CUR-7.

use bem_base::digest::Digest;
use bem_ledger::chain::ChainHead;
use bem_ledger::entry::{Entry, event_code};
use bem_ledger::merkle::leaf_hash;

/// A chain of events with the entries themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    head: ChainHead,
    entries: Vec<Entry>,
    step: u64,
}

impl Default for Trace {
    fn default() -> Trace {
        Trace { head: ChainHead::start(), entries: Vec::new(), step: 0 }
    }
}

impl Trace {
    /// Advances the step number that later entries carry.
    pub fn tick(&mut self) {
        self.step += 1;
    }

    /// Appends an event.
    pub fn event(&mut self, code: u16, values: &[i64], text: &str) {
        let entry = Entry::Event { step: self.step, code, values: values.to_vec(), payload: text.into() };
        self.head = self.head.link(&leaf_hash(&entry.to_bytes()));
        self.entries.push(entry);
    }

    /// A phase begins or ends.
    pub fn phase(&mut self, name: &str, values: &[i64]) {
        self.event(event_code::PHASE, values, name);
    }

    /// The digest that stands for everything so far.
    pub fn head(&self) -> Digest {
        self.head.digest()
    }

    /// All entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many entries have this code.
    pub fn count(&self, wanted: u16) -> usize {
        self.entries
            .iter()
            .filter(|entry| matches!(entry, Entry::Event { code, .. } if *code == wanted))
            .count()
    }

    /// Continues a trace that was saved as its head, length and step.
    pub fn resumed(head: Digest, step: u64) -> Trace {
        Trace { head: ChainHead::from_digest(head), entries: Vec::new(), step }
    }

    /// The number of ticks so far.
    pub fn step(&self) -> u64 {
        self.step
    }
}
