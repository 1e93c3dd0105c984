//! Content under its digest: circuits, proofs and snapshots that entries only name. Clause: LOG-2.

use crate::error::StoreError;
use crate::limits::BLOB_BYTES_MAX;
use crate::store::Store;
use bem_base::digest::{Digest, hash};

/// The name of the file that holds the content with this digest.
pub fn blob_name(digest: &Digest) -> String {
    format!("blob-{digest}")
}

/// Stores content under its digest and makes it durable, in a directory that no log writes to yet.
pub fn store_blob<S: Store>(store: &mut S, bytes: &[u8]) -> Result<Digest, StoreError> {
    let digest = hash(bytes);
    let name = blob_name(&digest);
    let aside = format!("{name}.tmp");
    store.create(&aside)?;
    store.write(&aside, 0, bytes)?;
    store.sync_file(&aside)?;
    store.rename(&aside, &name)?;
    store.sync_directory()?;
    Ok(digest)
}

/// Reads the content with this digest and checks it.
pub fn read_blob<S: Store>(store: &mut S, digest: &Digest) -> Result<Vec<u8>, StoreError> {
    let name = blob_name(digest);
    let bytes = store.read_all(&name, BLOB_BYTES_MAX)?;
    if hash(&bytes) != *digest {
        return Err(StoreError::Failed { name, reason: "the content does not have this digest".to_owned() });
    }
    Ok(bytes)
}
