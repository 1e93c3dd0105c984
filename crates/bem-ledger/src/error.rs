//! Why the ledger refused or stopped. One enum for the crate; every variant names what and where.

use bem_base::encode::DecodeError;

/// What went wrong in the store underneath.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file is not there.
    #[error("{name}: no such file")]
    Missing {
        /// The file.
        name: String,
    },
    /// The file is there already.
    #[error("{name}: exists already")]
    Exists {
        /// The file.
        name: String,
    },
    /// The file ends before the bytes asked for.
    #[error("{name}: ends at byte {length}, bytes up to {wanted} were asked for")]
    Short {
        /// The file.
        name: String,
        /// Its length.
        length: u64,
        /// Where the read should have ended.
        wanted: u64,
    },
    /// No room left.
    #[error("{name}: the disk is full")]
    Full {
        /// The file.
        name: String,
    },
    /// Anything else the system said.
    #[error("{name}: {reason}")]
    Failed {
        /// The file, or `.` for the directory.
        name: String,
        /// The system's words.
        reason: String,
    },
}

/// Why the ledger refused or stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log stopped after a failed fsync or an unclear rename: what is on disk is not known any more.
    #[error("the log has stopped ({reason}): open it again to recover")]
    Stopped {
        /// The first failure.
        reason: String,
    },
    /// An entry is larger than the limit.
    #[error("an entry of {size} bytes: at most {limit} are allowed")]
    EntryTooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// An entry cannot be read.
    #[error("entry {index} cannot be read: {source}")]
    Entry {
        /// Position in the log.
        index: u64,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// A file cannot be read.
    #[error("{name} cannot be read: {source}")]
    File {
        /// The file.
        name: String,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// A checkpoint or one of its signatures does not hold.
    #[error("checkpoint: {0}")]
    Checkpoint(String),
    /// Stored things contradict each other.
    #[error("broken at entry {entry}, because {reason}")]
    Broken {
        /// The entry at or before which it shows.
        entry: u64,
        /// What does not fit.
        reason: String,
    },
    /// There is no ledger here.
    #[error("no ledger here: {0}")]
    NotALedger(String),
    /// A snapshot cannot be used.
    #[error("snapshot {name}: {reason}")]
    Snapshot {
        /// The file.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A witness refuses to sign.
    #[error("the witness refuses: {0}")]
    Refused(String),
    /// A history that is played again differs from the one recorded.
    #[error("replay differs at entry {entry}: {reason}")]
    Diverged {
        /// The first entry that differs.
        entry: u64,
        /// How.
        reason: String,
    },
}

impl LedgerError {
    pub(crate) fn broken(entry: u64, reason: impl Into<String>) -> LedgerError {
        LedgerError::Broken { entry, reason: reason.into() }
    }
}
