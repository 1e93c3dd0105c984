//! The threads of a service, from outside: whether they live, and what they ended with.

use anyhow::Result;
use std::thread::JoinHandle;

/// The threads behind a handle.
pub struct Threads {
    pub(super) decide: JoinHandle<Result<()>>,
    pub(super) ledger: JoinHandle<Result<()>>,
    pub(super) learn: JoinHandle<()>,
}

impl Threads {
    /// Waits until all have ended, and says what went wrong.
    pub(super) fn join(self) -> Result<()> {
        let gone = || anyhow::anyhow!("a thread of the service has died");
        let decided = self.decide.join().map_err(|_| gone())?;
        let written = self.ledger.join().map_err(|_| gone())?;
        if self.learn.is_finished() {
            self.learn.join().map_err(|_| gone())?;
        }
        decided.and(written)
    }

    /// Whether one of them has ended by itself.
    pub fn is_over(&self) -> bool {
        self.decide.is_finished() || self.ledger.is_finished() || self.learn.is_finished()
    }
}
