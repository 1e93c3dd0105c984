//! A real process on real files, made to be killed.
//!
//! It opens or creates the ledger, carries the workload on from where the ledger ends, and tells the outside, line by
//! line, what it is about to do (`op`) and what it has acknowledged (`ack`). The outside alone decides what was promised:
//! an acknowledgement counts when the other process has read it.

use crate::file_store::FileStore;
use bem_ledger::log::{Log, LogOptions};
use bem_ledger::store::Store;
use bem_ledger::testing::{self, Workload};
use bem_ledger::{LedgerError, StoreError};
use bem_sim::golden::{Golden, OPTIONS};
use std::io::Write as _;

/// Says each operation on standard output before it is done, so that a killer can choose its moment.
struct Announcing {
    store: FileStore,
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    // A reader that is gone must not stop the writer: it will be killed anyway.
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

impl Announcing {
    fn announce(&self, operation: &str, name: &str) {
        let kind = name.split(['-', '.']).next().unwrap_or_default();
        say(&format!("op {operation} {kind}"));
    }
}

impl Store for Announcing {
    fn list(&mut self) -> Result<Vec<String>, StoreError> {
        self.store.list()
    }
    fn length(&mut self, name: &str) -> Result<u64, StoreError> {
        self.store.length(name)
    }
    fn read(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        self.store.read(name, offset, buffer)
    }
    fn create(&mut self, name: &str) -> Result<(), StoreError> {
        self.announce("create", name);
        self.store.create(name)
    }
    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.announce("write", name);
        self.store.write(name, offset, bytes)
    }
    fn truncate(&mut self, name: &str, length: u64) -> Result<(), StoreError> {
        self.announce("truncate", name);
        self.store.truncate(name, length)
    }
    fn sync_file(&mut self, name: &str) -> Result<(), StoreError> {
        self.announce("sync", name);
        self.store.sync_file(name)
    }
    fn rename(&mut self, from: &str, to: &str) -> Result<(), StoreError> {
        self.announce("rename", to);
        self.store.rename(from, to)
    }
    fn remove(&mut self, name: &str) -> Result<(), StoreError> {
        self.announce("remove", name);
        self.store.remove(name)
    }
    fn sync_directory(&mut self) -> Result<(), StoreError> {
        self.announce("sync", "directory");
        self.store.sync_directory()
    }
}

/// Works to the end of the workload, or to the end of this process.
pub fn work(directory: &str, seed: u64, count: u64) -> Result<(), String> {
    work_on(directory, seed, count).map_err(|error| error.to_string())
}

fn work_on(directory: &str, seed: u64, count: u64) -> Result<(), LedgerError> {
    say("phase recovery");
    let open = || -> Result<Announcing, LedgerError> {
        Ok(Announcing { store: FileStore::open_locked(std::path::Path::new(directory))? })
    };
    let options = LogOptions { ring_bytes: LogOptions::default().ring_bytes, ..OPTIONS };
    let mut log = match Log::open(open()?, testing::signer(), options) {
        Ok((log, _)) => log,
        Err(LedgerError::NotALedger(_)) => {
            Log::create(open()?, testing::signer(), &testing::genesis(seed), options)?
        }
        Err(error) => return Err(error),
    };
    say(&format!("recovered {}", log.size()));
    let mut workload = Workload::at(seed, log.size() - 1);
    while log.size() <= count {
        let position = log.size() - 1;
        let operation = workload.next_operation();
        say(&format!("phase {}", operation.name()));
        Workload::apply(&operation, &mut log)?;
        if Golden::commits_after(position) {
            log.commit()?;
        }
        say(&format!("ack {}", log.acknowledged()));
    }
    log.commit()?;
    say(&format!("ack {}", log.acknowledged()));
    say(&format!("done {}", log.head().digest()));
    Ok(())
}
