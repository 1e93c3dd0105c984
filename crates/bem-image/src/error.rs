//! Why an image was refused or could not be written. One enum for the crate; messages name the file or field.

use bem_ledger::{LedgerError, StoreError};

/// Why an image was refused or could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A signature or a checkpoint does not hold.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The folder is no layout, or one of a version that is not known.
    #[error("no OCI layout: {0}")]
    NotALayout(String),
    /// What is stored is not what its digest, its size or its form say.
    #[error("{name}: {reason}")]
    Damaged {
        /// The file.
        name: String,
        /// What does not fit.
        reason: String,
    },
    /// There is no image of this name.
    #[error("there is no image {0}; bem image list shows what there is")]
    Missing(String),
    /// What was asked for is not allowed.
    #[error("{0}")]
    Refused(String),
    /// Packing or unpacking failed.
    #[error("{what}: {reason}")]
    Pack {
        /// The file that was packed or unpacked.
        what: String,
        /// Why.
        reason: String,
    },
}

impl ImageError {
    /// What is stored does not fit.
    pub(crate) fn damaged(name: impl Into<String>, reason: impl Into<String>) -> ImageError {
        ImageError::Damaged { name: name.into(), reason: reason.into() }
    }
}
