//! A whole ledger with one file changed: recovery and audit answer, and neither panics nor takes it for the original.
#![no_main]

use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::limits::ENTRY_BYTES_MAX;
use bem_ledger::log::{Log, LogOptions};
use bem_ledger::store::MemoryStore;
use bem_ledger::testing::{self, Workload};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const OPTIONS: LogOptions = LogOptions { segment_bytes: 1_000, ring_bytes: ENTRY_BYTES_MAX + 4 };

static LEDGER: LazyLock<MemoryStore> = LazyLock::new(|| {
    let mut log = Log::create(MemoryStore::new(), testing::signer(), &testing::genesis(1), OPTIONS)
        .expect("a store in memory does not fail");
    let mut workload = Workload::new(1);
    for _ in 0..12 {
        Workload::apply(&workload.next_operation(), &mut log).expect("a store in memory does not fail");
    }
    log.commit().expect("a store in memory does not fail");
    log.into_store()
});

fuzz_target!(|data: &[u8]| {
    let [file, high, low, replacement @ ..] = data else { return };
    let mut store = LEDGER.clone();
    let name = store.files.keys().nth(usize::from(*file) % store.files.len()).expect("there are files").clone();
    let content = store.files.get_mut(&name).expect("the name was just read");
    let start = usize::from(u16::from_be_bytes([*high, *low])) % (content.len() + 1);
    let end = content.len().min(start + replacement.len());
    content.splice(start..end, replacement.iter().copied());
    let changed = store != *LEDGER;
    let verdict = audit(&mut store, None, &mut testing::AsCertified).expect("a store in memory can be read").verdict;
    // Bytes after the last acknowledged entry are not vouched for, and recovery drops them.
    let appended = start == LEDGER.files[&name].len() && name.starts_with("segment");
    if changed && !appended {
        assert!(matches!(verdict, AuditVerdict::Broken { .. }), "{name} at {start}");
    }
    let _ = Log::open(store, testing::signer(), OPTIONS);
});
