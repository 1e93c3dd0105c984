//! Real files behind the ledger's [`Store`]: every durability step is one system call.
//!
//! Writes go to their offset (`pwrite`), so a write that failed half-way is simply done again at the same place.
//! One process at a time may write a directory; a lock file sees to that. The simulator runs its real-process
//! crashes over this very file.

use bem_ledger::StoreError;
use bem_ledger::store::Store;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Open files kept at hand; the segment being written is nearly always the newest of them.
const OPEN_FILES_MAX: usize = 4;
const LOCK_NAME: &str = "lock";

/// A directory of real files.
#[derive(Debug)]
pub struct FileStore {
    directory: PathBuf,
    open: VecDeque<(String, File)>,
    /// Held as long as the store may write.
    lock: Option<File>,
}

impl FileStore {
    /// Opens a directory for reading.
    pub fn open(directory: &Path) -> Result<FileStore, StoreError> {
        let is_directory = std::fs::metadata(directory).map_err(|error| failed(".", &error))?.is_dir();
        if !is_directory {
            let reason = format!("{} is not a directory", directory.display());
            return Err(StoreError::Failed { name: ".".to_owned(), reason });
        }
        Ok(FileStore { directory: directory.to_path_buf(), open: VecDeque::new(), lock: None })
    }

    /// Opens a directory for writing, making it if need be, and locks it against other writers.
    pub fn open_locked(directory: &Path) -> Result<FileStore, StoreError> {
        std::fs::create_dir_all(directory).map_err(|error| failed(".", &error))?;
        if let Some(parent) = directory.parent().filter(|parent| parent.is_dir()) {
            // The new directory's own name must be durable before anything in it is promised.
            let synced = File::open(parent).and_then(|parent| parent.sync_all());
            synced.map_err(|error| failed(".", &error))?;
        }
        let mut store = FileStore::open(directory)?;
        let options = OpenOptions::new().write(true).create(true).truncate(false).clone();
        let lock = options.open(store.path(LOCK_NAME)).map_err(|error| failed(LOCK_NAME, &error))?;
        match lock.try_lock() {
            Ok(()) => store.lock = Some(lock),
            Err(TryLockError::WouldBlock) => {
                let reason = "another process is writing this ledger".to_owned();
                return Err(StoreError::Failed { name: LOCK_NAME.to_owned(), reason });
            }
            Err(TryLockError::Error(error)) => return Err(failed(LOCK_NAME, &error)),
        }
        Ok(store)
    }

    fn path(&self, name: &str) -> PathBuf {
        assert!(!name.contains('/') && !name.starts_with('.'), "{name:?} would leave the directory");
        self.directory.join(name)
    }

    /// The open file of this name.
    fn file(&mut self, name: &str) -> Result<&File, StoreError> {
        if let Some(position) = self.open.iter().position(|(open, _)| open == name) {
            return Ok(&self.open[position].1);
        }
        let path = self.path(name);
        let file = OpenOptions::new().read(true).write(self.lock.is_some()).open(path);
        self.keep(name, file.map_err(|error| failed(name, &error))?);
        Ok(&self.open[0].1)
    }

    fn keep(&mut self, name: &str, file: File) {
        self.forget(name);
        self.open.truncate(OPEN_FILES_MAX - 1);
        self.open.push_front((name.to_owned(), file));
    }

    fn forget(&mut self, name: &str) {
        self.open.retain(|(open, _)| open != name);
    }
}

fn failed(name: &str, error: &std::io::Error) -> StoreError {
    let name = name.to_owned();
    match error.kind() {
        ErrorKind::NotFound => StoreError::Missing { name },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full { name },
        _ => StoreError::Failed { name, reason: error.to_string() },
    }
}

impl Store for FileStore {
    fn list(&mut self) -> Result<Vec<String>, StoreError> {
        let error = |error| failed(".", &error);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(error)? {
            // A name that is not text is nobody's of ours.
            if let Ok(name) = entry.map_err(error)?.file_name().into_string()
                && name != LOCK_NAME
                && !name.starts_with('.')
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn length(&mut self, name: &str) -> Result<u64, StoreError> {
        let metadata = self.file(name)?.metadata().map_err(|error| failed(name, &error))?;
        Ok(metadata.len())
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
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(true).clone();
        let file = options.open(self.path(name)).map_err(|error| failed(name, &error))?;
        self.keep(name, file);
        Ok(())
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.file(name)?.write_all_at(bytes, offset).map_err(|error| failed(name, &error))
    }

    fn truncate(&mut self, name: &str, length: u64) -> Result<(), StoreError> {
        self.file(name)?.set_len(length).map_err(|error| failed(name, &error))
    }

    fn sync_file(&mut self, name: &str) -> Result<(), StoreError> {
        // The length is part of what must survive, and fdatasync keeps it.
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
        let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| failed(".", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_files_do_what_files_in_memory_do() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut real = FileStore::open_locked(directory.path()).expect("a new directory opens");
        let mut model = bem_ledger::store::MemoryStore::new();
        let stores: [&mut dyn Store; 2] = [&mut real, &mut model];
        let answers = stores.map(|store| {
            let mut answers = vec![format!("{:?}", store.length("a"))];
            let mut buffer = [0; 4];
            let mut note = |answer: String| answers.push(answer);
            note(format!("{:?}", store.create("a")));
            note(format!("{:?}", store.write("a", 0, b"abcdef")));
            note(format!("{:?}", store.write("a", 2, b"XY")));
            note(format!("{:?}", store.read("a", 1, &mut buffer)));
            note(format!("{buffer:?}"));
            note(format!("{:?}", store.truncate("a", 3)));
            note(format!("{:?}", store.read("a", 1, &mut buffer)));
            note(format!("{:?}", store.sync_file("a")));
            note(format!("{:?}", store.create("b")));
            note(format!("{:?}", store.rename("a", "b")));
            note(format!("{:?}", store.read_all("b", 10)));
            note(format!("{:?}", store.read_all("b", 2)));
            note(format!("{:?}", store.remove("a")));
            note(format!("{:?}", store.list()));
            note(format!("{:?}", store.sync_directory()));
            answers
        });
        assert_eq!(answers[0], answers[1]);
    }

    #[test]
    fn a_second_writer_is_refused_and_a_reader_is_not() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let first = FileStore::open_locked(directory.path()).expect("a new directory opens");
        let error = FileStore::open_locked(directory.path()).expect_err("the lock is held");
        assert_eq!(error.to_string(), "lock: another process is writing this ledger");
        assert!(FileStore::open(directory.path()).is_ok());
        drop(first);
        assert!(FileStore::open_locked(directory.path()).is_ok());
    }
}
