//! The one door to durable bytes: a flat directory of files with every durability step spelled out.
//!
//! The trusted code never touches a file system. The application supplies real files, the simulator a disk that
//! loses, tears and reorders whatever was not synced. The contract is the weakest that POSIX gives: after a crash a
//! write that was not followed by [`Store::sync_file`] may be there, in part, or not; a name that was created,
//! renamed or removed without [`Store::sync_directory`] may be old or new. A rename is atomic.
//! Clauses: LOG-1, SCC-9.

use crate::error::StoreError;
use std::collections::BTreeMap;

/// A flat directory of files.
pub trait Store {
    /// All names, in ascending order.
    fn list(&mut self) -> Result<Vec<String>, StoreError>;
    /// Length of a file in bytes.
    fn length(&mut self, name: &str) -> Result<u64, StoreError>;
    /// Fills the whole buffer from this offset on.
    fn read(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError>;
    /// Makes an empty file, or empties the one that is there.
    fn create(&mut self, name: &str) -> Result<(), StoreError>;
    /// Writes all bytes at this offset, at most at the end of the file. After an error any part of the range may
    /// have been written.
    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StoreError>;
    /// Cuts the file to this length, which is not greater than the present one.
    fn truncate(&mut self, name: &str, length: u64) -> Result<(), StoreError>;
    /// Returns when everything written to the file is durable.
    fn sync_file(&mut self, name: &str) -> Result<(), StoreError>;
    /// Gives a file a new name, in one step; a file of that name is replaced.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), StoreError>;
    /// Removes a name.
    fn remove(&mut self, name: &str) -> Result<(), StoreError>;
    /// Returns when every created, renamed and removed name is durable.
    fn sync_directory(&mut self) -> Result<(), StoreError>;

    /// The whole file, refused if longer than `limit`.
    fn read_all(&mut self, name: &str, limit: u64) -> Result<Vec<u8>, StoreError> {
        let length = self.length(name)?;
        if limit < length {
            let reason = format!("{length} bytes, at most {limit} are allowed");
            return Err(StoreError::Failed { name: name.to_owned(), reason });
        }
        let mut bytes = vec![0; length as usize];
        self.read(name, 0, &mut bytes)?;
        Ok(bytes)
    }
}

impl<S: Store + ?Sized> Store for &mut S {
    fn list(&mut self) -> Result<Vec<String>, StoreError> {
        (**self).list()
    }
    fn length(&mut self, name: &str) -> Result<u64, StoreError> {
        (**self).length(name)
    }
    fn read(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        (**self).read(name, offset, buffer)
    }
    fn create(&mut self, name: &str) -> Result<(), StoreError> {
        (**self).create(name)
    }
    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        (**self).write(name, offset, bytes)
    }
    fn truncate(&mut self, name: &str, length: u64) -> Result<(), StoreError> {
        (**self).truncate(name, length)
    }
    fn sync_file(&mut self, name: &str) -> Result<(), StoreError> {
        (**self).sync_file(name)
    }
    fn rename(&mut self, from: &str, to: &str) -> Result<(), StoreError> {
        (**self).rename(from, to)
    }
    fn remove(&mut self, name: &str) -> Result<(), StoreError> {
        (**self).remove(name)
    }
    fn sync_directory(&mut self) -> Result<(), StoreError> {
        (**self).sync_directory()
    }
}

/// Files in memory, never lost and never durable: for runs that keep nothing, and for tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStore {
    /// Content by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl MemoryStore {
    /// An empty directory.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn file(&mut self, name: &str) -> Result<&mut Vec<u8>, StoreError> {
        self.files.get_mut(name).ok_or_else(|| StoreError::Missing { name: name.to_owned() })
    }
}

impl Store for MemoryStore {
    fn list(&mut self) -> Result<Vec<String>, StoreError> {
        Ok(self.files.keys().cloned().collect())
    }

    fn length(&mut self, name: &str) -> Result<u64, StoreError> {
        Ok(self.file(name)?.len() as u64)
    }

    fn read(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let file = self.file(name)?;
        let (length, wanted) = (file.len() as u64, offset.saturating_add(buffer.len() as u64));
        if length < wanted {
            return Err(StoreError::Short { name: name.to_owned(), length, wanted });
        }
        buffer.copy_from_slice(&file[offset as usize..wanted as usize]);
        Ok(())
    }

    fn create(&mut self, name: &str) -> Result<(), StoreError> {
        self.files.insert(name.to_owned(), Vec::new());
        Ok(())
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let file = self.file(name)?;
        let offset = offset as usize;
        assert!(offset <= file.len(), "{name}: a write at {offset} leaves a hole after {}", file.len());
        file.resize(file.len().max(offset + bytes.len()), 0);
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn truncate(&mut self, name: &str, length: u64) -> Result<(), StoreError> {
        self.file(name)?.truncate(length as usize);
        Ok(())
    }

    fn sync_file(&mut self, name: &str) -> Result<(), StoreError> {
        self.file(name).map(|_| ())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), StoreError> {
        let file = self.files.remove(from).ok_or_else(|| StoreError::Missing { name: from.to_owned() })?;
        self.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), StoreError> {
        self.files.remove(name).map(|_| ()).ok_or_else(|| StoreError::Missing { name: name.to_owned() })
    }

    fn sync_directory(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
