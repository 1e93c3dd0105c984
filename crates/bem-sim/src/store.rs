//! The simulated disk as a ledger store, with faults at chosen operations.
//!
//! Operations that change something are counted; a plan says at which of them the machine crashes, which of them
//! fails, or which of them the disk lies about. A mutant leaves out one kind of sync: the battery must notice.

use crate::disk::Disk;
use bem_base::prng::Prng;
use bem_ledger::StoreError;
use bem_ledger::segment::segment_number;
use bem_ledger::store::Store;
use std::cell::RefCell;
use std::rc::Rc;

/// An error that is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The disk is full; a part of the bytes may have been written.
    Full,
    /// The device failed; a part of the bytes may have been written.
    Device,
}

/// An error that is not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// The write is dropped.
    Lost,
    /// The write lands elsewhere.
    Misdirected,
    /// A bit of some stored file turns over.
    Rot,
}

/// A sync that is left out. The names say what it would have made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The segment before a checkpoint covers it.
    SegmentBeforeCheckpoint,
    /// The segment before the next one is begun.
    SegmentBeforeNext,
    /// The checkpoint before it is renamed.
    CheckpointFile,
    /// A blob before it is renamed.
    BlobFile,
    /// A snapshot before it is renamed.
    SnapshotFile,
    /// Names of segments, blobs and snapshots before the checkpoint that needs them.
    NamesBeforeCheckpoint,
    /// The checkpoint's own name.
    CheckpointName,
}

impl Mutant {
    /// Every mutant.
    pub const ALL: [Mutant; 7] = [
        Mutant::SegmentBeforeCheckpoint,
        Mutant::SegmentBeforeNext,
        Mutant::CheckpointFile,
        Mutant::BlobFile,
        Mutant::SnapshotFile,
        Mutant::NamesBeforeCheckpoint,
        Mutant::CheckpointName,
    ];
}

/// What goes wrong, at which of the operations that change something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// The machine or the process dies at this operation.
    pub crash_at: Option<u64>,
    /// This operation fails, and if the flag is set every later one of its kind.
    pub fail_at: Option<(u64, Failure, bool)>,
    /// The disk lies about this operation.
    pub lie_at: Option<(u64, Lie)>,
    /// One kind of sync does nothing, always.
    pub mutant: Option<Mutant>,
}

/// What happened, for the harness.
#[derive(Clone, Copy, Debug, Default)]
pub struct Happened {
    /// Operations that change something so far.
    pub operations: u64,
    /// The crash came.
    pub crashed: bool,
    /// Failures reported.
    pub failures: u64,
    /// Failures of a sync among them.
    pub sync_failures: u64,
    /// Lies told.
    pub lies: u64,
}

/// The disk, what is planned to happen to it, and what has happened.
#[derive(Debug)]
struct Inner {
    disk: Disk,
    plan: Plan,
    happened: Happened,
    prng: Prng,
    /// A segment sync whose reason is not known yet, for the mutants that tell two reasons apart.
    postponed: Option<String>,
    renamed_checkpoint: bool,
}

/// A store over a simulated disk. Clones share the disk, so that the harness keeps it when the log is dropped.
#[derive(Clone, Debug)]
pub struct SimStore {
    inner: Rc<RefCell<Inner>>,
}

fn crash_error(name: &str) -> StoreError {
    StoreError::Failed { name: name.to_owned(), reason: "the machine has crashed".to_owned() }
}

impl SimStore {
    /// A store over this disk, with this plan.
    pub fn new(disk: Disk, plan: Plan, prng: Prng) -> SimStore {
        let happened = Happened::default();
        let inner = Inner { disk, plan, happened, prng, postponed: None, renamed_checkpoint: false };
        SimStore { inner: Rc::new(RefCell::new(inner)) }
    }

    /// What has happened so far.
    pub fn happened(&self) -> Happened {
        self.inner.borrow().happened
    }

    /// A copy of the disk as it is now.
    pub fn disk(&self) -> Disk {
        self.inner.borrow().disk.clone()
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> Result<T, StoreError>) -> Result<T, StoreError> {
        work(&mut self.inner.borrow_mut())
    }
}

impl Inner {
    /// Counts one operation and says what the plan has for it.
    fn begin(&mut self, name: &str) -> Result<Option<Failure>, StoreError> {
        if self.happened.crashed {
            return Err(crash_error(name));
        }
        let index = self.happened.operations;
        self.happened.operations += 1;
        if self.plan.crash_at == Some(index) {
            self.happened.crashed = true;
        }
        let failure = match self.plan.fail_at {
            Some((at, failure, forever)) if index == at || forever && at < index => Some(failure),
            _ => None,
        };
        self.happened.failures += u64::from(failure.is_some());
        Ok(failure)
    }

    /// After the operation has had its effect: the crash, if it is due.
    fn end(&mut self, name: &str) -> Result<(), StoreError> {
        if self.happened.crashed { Err(crash_error(name)) } else { Ok(()) }
    }

    fn require(&self, name: &str) -> Result<(), StoreError> {
        match self.disk.content(name) {
            Some(_) => Ok(()),
            None => Err(StoreError::Missing { name: name.to_owned() }),
        }
    }

    /// Carries out or drops a segment sync, now that the next operation shows what it was for.
    fn settle(&mut self, next_is_new_segment: bool) {
        let Some(name) = self.postponed.take() else { return };
        let dropped =
            if next_is_new_segment { Mutant::SegmentBeforeNext } else { Mutant::SegmentBeforeCheckpoint };
        if self.plan.mutant != Some(dropped) && self.disk.content(&name).is_some() {
            self.disk.sync_file(&name);
        }
    }

    fn lie(&mut self, index: u64, name: &str) {
        let Some((at, lie)) = self.plan.lie_at else { return };
        if at != index {
            return;
        }
        let told = match lie {
            Lie::Lost => self.disk.forget_last_write(name, None),
            Lie::Misdirected => {
                let distance = 512 * (1 + self.prng.below(4) as usize);
                self.disk.forget_last_write(name, Some(distance))
            }
            Lie::Rot => {
                let names = self.disk.names();
                let victim = names[self.prng.below(names.len() as u64) as usize].clone();
                self.disk.rot(&victim, &mut self.prng)
            }
        };
        self.happened.lies += u64::from(told);
    }
}

impl Store for SimStore {
    fn list(&mut self) -> Result<Vec<String>, StoreError> {
        self.with(|inner| inner.end(".").map(|()| inner.disk.names()))
    }

    fn length(&mut self, name: &str) -> Result<u64, StoreError> {
        self.with(|inner| {
            inner.end(name)?;
            inner.require(name)?;
            Ok(inner.disk.content(name).map_or(0, |content| content.len() as u64))
        })
    }

    fn read(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        self.with(|inner| {
            inner.end(name)?;
            inner.require(name)?;
            let content = inner.disk.content(name).unwrap_or_default();
            let (length, wanted) = (content.len() as u64, offset.saturating_add(buffer.len() as u64));
            if length < wanted {
                return Err(StoreError::Short { name: name.to_owned(), length, wanted });
            }
            buffer.copy_from_slice(&content[offset as usize..wanted as usize]);
            Ok(())
        })
    }

    fn create(&mut self, name: &str) -> Result<(), StoreError> {
        self.with(|inner| {
            inner.settle(segment_number(name).is_some());
            inner.renamed_checkpoint = false;
            if let Some(failure) = inner.begin(name)? {
                return Err(reported(failure, name));
            }
            inner.disk.create(name);
            inner.end(name)
        })
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.with(|inner| {
            inner.settle(false);
            inner.require(name)?;
            let index = inner.happened.operations;
            if let Some(failure) = inner.begin(name)? {
                let written = inner.prng.below(bytes.len() as u64 + 1) as usize;
                inner.disk.write(name, offset, &bytes[..written]);
                return Err(reported(failure, name));
            }
            inner.disk.write(name, offset, bytes);
            inner.lie(index, name);
            inner.end(name)
        })
    }

    fn truncate(&mut self, name: &str, length: u64) -> Result<(), StoreError> {
        self.with(|inner| {
            inner.settle(false);
            inner.require(name)?;
            if let Some(failure) = inner.begin(name)? {
                return Err(reported(failure, name));
            }
            inner.disk.truncate(name, length);
            inner.end(name)
        })
    }

    fn sync_file(&mut self, name: &str) -> Result<(), StoreError> {
        self.with(|inner| {
            inner.settle(false);
            inner.require(name)?;
            if inner.begin(name)?.is_some() {
                inner.happened.sync_failures += 1;
                inner.disk.fail_file_sync(name);
                return Err(reported(Failure::Device, name));
            }
            // A crash during the sync: nothing is promised, and what was pending stays so.
            inner.end(name)?;
            let dropped = match name.split(['-', '.']).next() {
                Some("checkpoint") => Some(Mutant::CheckpointFile),
                Some("blob") => Some(Mutant::BlobFile),
                Some("snapshot") => Some(Mutant::SnapshotFile),
                _ => None,
            };
            if segment_number(name).is_some() && inner.plan.mutant.is_some() {
                inner.postponed = Some(name.to_owned());
            } else if dropped.is_none() || dropped != inner.plan.mutant {
                inner.disk.sync_file(name);
            }
            Ok(())
        })
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), StoreError> {
        self.with(|inner| {
            inner.settle(false);
            inner.require(from)?;
            if let Some(failure) = inner.begin(from)? {
                return Err(reported(failure, from));
            }
            inner.disk.rename(from, to);
            inner.renamed_checkpoint = to == "checkpoint";
            inner.end(from)
        })
    }

    fn remove(&mut self, name: &str) -> Result<(), StoreError> {
        self.with(|inner| {
            inner.settle(false);
            inner.require(name)?;
            if let Some(failure) = inner.begin(name)? {
                return Err(reported(failure, name));
            }
            inner.disk.remove(name);
            inner.end(name)
        })
    }

    fn sync_directory(&mut self) -> Result<(), StoreError> {
        self.with(|inner| {
            inner.settle(false);
            if inner.begin(".")?.is_some() {
                inner.happened.sync_failures += 1;
                inner.disk.fail_directory_sync();
                return Err(reported(Failure::Device, "."));
            }
            inner.end(".")?;
            let dropped =
                if inner.renamed_checkpoint { Mutant::CheckpointName } else { Mutant::NamesBeforeCheckpoint };
            inner.renamed_checkpoint = false;
            if inner.plan.mutant != Some(dropped) {
                inner.disk.sync_directory();
            }
            Ok(())
        })
    }
}

fn reported(failure: Failure, name: &str) -> StoreError {
    let name = name.to_owned();
    match failure {
        Failure::Full => StoreError::Full { name },
        Failure::Device => StoreError::Failed { name, reason: "input/output error".to_owned() },
    }
}
