//! A real folder behind an OCI layout: the same steps as the ledger's store, over names with folders in them.
//!
//! One process at a time may write; a lock file sees to that, which other programs pass over. Clause: IMG-2.

use bem_ledger::StoreError;
use bem_ledger::store::Store;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const LOCK_NAME: &str = ".lock";
const BLOBS: &str = "blobs/sha256";

/// The folder of a layout.
pub struct LayoutFolder {
    root: PathBuf,
    /// The file that was used last.
    open: Option<(String, File)>,
    lock: Option<File>,
}

fn failed(name: &str, error: &std::io::Error) -> StoreError {
    let name = name.to_owned();
    match error.kind() {
        ErrorKind::NotFound => StoreError::Missing { name },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full { name },
        _ => StoreError::Failed { name, reason: error.to_string() },
    }
}

impl LayoutFolder {
    /// Opens a folder for reading.
    pub fn open(root: &Path) -> Result<LayoutFolder, StoreError> {
        std::fs::metadata(root).map_err(|error| failed(&root.display().to_string(), &error))?;
        Ok(LayoutFolder { root: root.to_path_buf(), open: None, lock: None })
    }

    /// Opens a folder for writing, making it if need be, and locks it against other writers.
    pub fn open_locked(root: &Path) -> Result<LayoutFolder, StoreError> {
        let said = root.display().to_string();
        std::fs::create_dir_all(root.join(BLOBS)).map_err(|error| failed(&said, &error))?;
        let mut folder = LayoutFolder::open(root)?;
        let options = OpenOptions::new().write(true).create(true).truncate(false).clone();
        let lock = options.open(root.join(LOCK_NAME)).map_err(|error| failed(LOCK_NAME, &error))?;
        match lock.try_lock() {
            Ok(()) => folder.lock = Some(lock),
            Err(TryLockError::WouldBlock) => {
                let reason = "another process is writing this layout".to_owned();
                return Err(StoreError::Failed { name: said, reason });
            }
            Err(TryLockError::Error(error)) => return Err(failed(LOCK_NAME, &error)),
        }
        // The names of the folders are durable before anything in them is promised.
        folder.sync_directory()?;
        Ok(folder)
    }

    /// Where it lies.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, name: &str) -> PathBuf {
        let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
        assert!(name.split('/').all(is_plain), "{name:?} would leave the layout");
        self.root.join(name)
    }

    fn file(&mut self, name: &str) -> Result<&File, StoreError> {
        if self.open.as_ref().is_none_or(|(open, _)| open != name) {
            let file = OpenOptions::new().read(true).write(self.lock.is_some()).open(self.path(name));
            self.open = Some((name.to_owned(), file.map_err(|error| failed(name, &error))?));
        }
        Ok(&self.open.as_ref().expect("it was opened").1)
    }

    fn forget(&mut self, name: &str) {
        self.open.take_if(|(open, _)| open == name);
    }
}

/// Names of the plain files in a folder.
fn names_in(folder: &Path, before: &str) -> Result<Vec<String>, StoreError> {
    let error = |error| failed(".", &error);
    let entries = match std::fs::read_dir(folder) {
        Err(missing) if missing.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(error)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(error)?;
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
            && entry.file_type().map_err(error)?.is_file()
        {
            names.push(format!("{before}{name}"));
        }
    }
    Ok(names)
}

impl Store for LayoutFolder {
    fn list(&mut self) -> Result<Vec<String>, StoreError> {
        let mut names = names_in(&self.root, "")?;
        names.extend(names_in(&self.root.join(BLOBS), "blobs/sha256/")?);
        names.sort_unstable();
        Ok(names)
    }

    fn length(&mut self, name: &str) -> Result<u64, StoreError> {
        Ok(self.file(name)?.metadata().map_err(|error| failed(name, &error))?.len())
    }

    fn read(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let wanted = offset.saturating_add(buffer.len() as u64);
        match self.file(name)?.read_exact_at(buffer, offset) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                let length = self.length(name)?;
                Err(StoreError::Short { name: name.to_owned(), length, wanted })
            }
            other => other.map_err(|error| failed(name, &error)),
        }
    }

    fn create(&mut self, name: &str) -> Result<(), StoreError> {
        self.forget(name);
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(true).clone();
        let file = options.open(self.path(name)).map_err(|error| failed(name, &error))?;
        self.open = Some((name.to_owned(), file));
        Ok(())
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.file(name)?.write_all_at(bytes, offset).map_err(|error| failed(name, &error))
    }

    fn truncate(&mut self, name: &str, length: u64) -> Result<(), StoreError> {
        self.file(name)?.set_len(length).map_err(|error| failed(name, &error))
    }

    fn sync_file(&mut self, name: &str) -> Result<(), StoreError> {
        self.file(name)?.sync_data().map_err(|error| failed(name, &error))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), StoreError> {
        self.forget(from);
        self.forget(to);
        std::fs::rename(self.path(from), self.path(to)).map_err(|error| failed(from, &error))
    }

    fn remove(&mut self, name: &str) -> Result<(), StoreError> {
        self.forget(name);
        std::fs::remove_file(self.path(name)).map_err(|error| failed(name, &error))
    }

    fn sync_directory(&mut self) -> Result<(), StoreError> {
        for folder in [self.root.join(BLOBS), self.root.join("blobs"), self.root.clone()] {
            let synced = File::open(&folder).and_then(|folder| folder.sync_all());
            synced.map_err(|error| failed(".", &error))?;
        }
        Ok(())
    }
}
