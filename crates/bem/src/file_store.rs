//! Real files behind a [`Store`], of a ledger or of the layout of images: every durability step is one system call.
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
/// Bytes of a large file that are made durable at once: whoever else syncs on this disk waits for no more than these.
const PIECE_BYTES: usize = 1 << 20;

/// What a directory is for.
#[derive(Debug)]
pub struct Purpose {
    /// What it holds, in words.
    what: &'static str,
    /// The file that keeps other writers away.
    lock: &'static str,
    /// Folders below it that hold files too.
    folders: &'static [&'static str],
}

/// The files of a ledger.
pub const LEDGER: Purpose = Purpose { what: "ledger", lock: "lock", folders: &[] };
/// An OCI layout; other programs pass over its lock.
pub const LAYOUT: Purpose = Purpose { what: "layout", lock: ".lock", folders: &["blobs/sha256"] };

/// A state folder, for as long as its format changes.
pub const STATE: Purpose =
    Purpose { what: "state folder", lock: "lock", folders: &["ledger", "ledger-next", "ledger-origin"] };

/// The folder of a pipeline, for as long as somebody works on it.
pub const PIPELINE: Purpose = Purpose { what: "pipeline", lock: "lock", folders: &["units"] };

/// A directory of real files.
#[derive(Debug)]
pub struct FileStore {
    purpose: &'static Purpose,
    directory: PathBuf,
    open: VecDeque<OpenFile>,
    /// Held as long as the store may write.
    lock: Option<File>,
}

/// A file that is kept at hand.
#[derive(Debug)]
struct OpenFile {
    name: String,
    file: File,
    /// Bytes written since it was made durable.
    unsynced: usize,
}

impl FileStore {
    /// Opens the directory of a ledger for reading.
    pub fn open(directory: &Path) -> Result<FileStore, StoreError> {
        FileStore::open_for(&LEDGER, directory)
    }

    /// Opens the directory of a ledger for writing, making it if need be, and locks it against other writers.
    pub fn open_locked(directory: &Path) -> Result<FileStore, StoreError> {
        FileStore::open_locked_for(&LEDGER, directory)
    }

    /// Opens a directory for reading.
    pub fn open_for(purpose: &'static Purpose, directory: &Path) -> Result<FileStore, StoreError> {
        let is_directory = std::fs::metadata(directory).map_err(|error| failed(".", &error))?.is_dir();
        if !is_directory {
            let reason = format!("{} is not a directory", directory.display());
            return Err(StoreError::Failed { name: ".".to_owned(), reason });
        }
        Ok(FileStore { purpose, directory: directory.to_path_buf(), open: VecDeque::new(), lock: None })
    }

    /// Opens a directory for writing, making it if need be, and locks it against other writers.
    pub fn open_locked_for(purpose: &'static Purpose, directory: &Path) -> Result<FileStore, StoreError> {
        let Purpose { what, lock: name, folders } = purpose;
        for folder in [""].iter().chain(*folders) {
            std::fs::create_dir_all(directory.join(folder)).map_err(|error| failed(".", &error))?;
        }
        // Names of new directories must be durable before anything in them is promised.
        if let Some(parent) = directory.parent().filter(|parent| parent.is_dir()) {
            sync(parent)?;
        }
        let mut store = FileStore::open_for(purpose, directory)?;
        if !folders.is_empty() {
            store.sync_directory()?;
        }
        let options = OpenOptions::new().write(true).create(true).truncate(false).clone();
        let lock = options.open(directory.join(name)).map_err(|error| failed(name, &error))?;
        match lock.try_lock() {
            Ok(()) => store.lock = Some(lock),
            Err(TryLockError::WouldBlock) => {
                let reason = format!("another process is writing this {what}");
                return Err(StoreError::Failed { name: (*name).to_owned(), reason });
            }
            Err(TryLockError::Error(error)) => return Err(failed(name, &error)),
        }
        Ok(store)
    }

    /// Where it lies.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self, name: &str) -> PathBuf {
        let (folder, last) = name.rsplit_once('/').unwrap_or(("", name));
        let is_ours = folder.is_empty() || self.purpose.folders.contains(&folder);
        assert!(is_ours && !last.starts_with('.'), "{name:?} would leave the directory");
        self.directory.join(name)
    }

    /// The open file of this name.
    fn opened(&mut self, name: &str) -> Result<&mut OpenFile, StoreError> {
        let position = match self.open.iter().position(|open| open.name == name) {
            Some(position) => position,
            None => {
                let path = self.path(name);
                let file = OpenOptions::new().read(true).write(self.lock.is_some()).open(path);
                self.keep(name, file.map_err(|error| failed(name, &error))?);
                0
            }
        };
        Ok(&mut self.open[position])
    }

    fn file(&mut self, name: &str) -> Result<&File, StoreError> {
        Ok(&self.opened(name)?.file)
    }

    fn keep(&mut self, name: &str, file: File) {
        self.forget(name);
        self.open.truncate(OPEN_FILES_MAX - 1);
        self.open.push_front(OpenFile { name: name.to_owned(), file, unsynced: 0 });
    }

    fn forget(&mut self, name: &str) {
        self.open.retain(|open| open.name != name);
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

/// The entries of a directory are durable.
fn sync(directory: &Path) -> Result<(), StoreError> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| failed(".", &error))
}

impl Store for FileStore {
    fn list(&mut self) -> Result<Vec<String>, StoreError> {
        let error = |error| failed(".", &error);
        let Purpose { lock, folders, .. } = self.purpose;
        let mut names = Vec::new();
        for folder in [""].iter().chain(*folders) {
            let entries = match std::fs::read_dir(self.directory.join(folder)) {
                Err(missing) if missing.kind() == ErrorKind::NotFound && !folder.is_empty() => continue,
                entries => entries.map_err(error)?,
            };
            for entry in entries {
                let entry = entry.map_err(error)?;
                // A name that is not text is nobody's of ours; where there are folders, they are no files.
                if let Ok(name) = entry.file_name().into_string()
                    && name != *lock
                    && !name.starts_with('.')
                    && (folders.is_empty() || entry.file_type().map_err(error)?.is_file())
                {
                    names.push(if folder.is_empty() { name } else { format!("{folder}/{name}") });
                }
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
        let open = self.opened(name)?;
        let mut offset = offset;
        for piece in bytes.chunks(PIECE_BYTES) {
            open.file.write_all_at(piece, offset).map_err(|error| failed(name, &error))?;
            offset += piece.len() as u64;
            open.unsynced += piece.len();
            if PIECE_BYTES <= open.unsynced {
                open.file.sync_data().map_err(|error| failed(name, &error))?;
                open.unsynced = 0;
            }
        }
        Ok(())
    }

    fn truncate(&mut self, name: &str, length: u64) -> Result<(), StoreError> {
        self.file(name)?.set_len(length).map_err(|error| failed(name, &error))
    }

    fn sync_file(&mut self, name: &str) -> Result<(), StoreError> {
        // The length is part of what must survive, and fdatasync keeps it.
        let open = self.opened(name)?;
        open.unsynced = 0;
        open.file.sync_data().map_err(|error| failed(name, &error))
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
        for folder in self.purpose.folders {
            for below in Path::new(folder).ancestors().filter(|below| !below.as_os_str().is_empty()) {
                sync(&self.directory.join(below))?;
            }
        }
        sync(&self.directory)
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
