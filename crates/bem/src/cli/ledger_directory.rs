//! Finding the ledger of a run, for every command that reads one.

use crate::file_store::FileStore;
use crate::images::migrate::refuse_unsettled;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// The ledger's directory: `DIR/ledger` of a run, or `DIR` itself if it is one.
pub fn locate(directory: &Path) -> anyhow::Result<PathBuf> {
    if directory.is_file() {
        bail!("{} is a file; the folder of a run is needed", directory.display());
    }
    if !directory.is_dir() {
        bail!("{} does not exist", directory.display());
    }
    refuse_unsettled(directory)?;
    let inside = directory.join("ledger");
    if inside.is_dir() {
        return Ok(inside);
    }
    if directory.join("checkpoint").exists() || directory.join("segment-00000000.log").exists() {
        return Ok(directory.to_path_buf());
    }
    bail!("{}: neither a run nor a ledger (no ledger/ and no checkpoint in it)", directory.display())
}

/// Opens the ledger of a run for reading.
pub fn open(directory: &Path) -> anyhow::Result<FileStore> {
    let path = locate(directory)?;
    FileStore::open(&path).with_context(|| path.display().to_string())
}
