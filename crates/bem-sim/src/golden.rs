//! The undisturbed history that every disturbed run must end in: the reference model.

use bem_ledger::chain::ChainHead;
use bem_ledger::limits::ENTRY_BYTES_MAX;
use bem_ledger::log::{Log, LogOptions};
use bem_ledger::reader::EntryReader;
use bem_ledger::store::{MemoryStore, Store};
use bem_ledger::testing::{self, Operation, Workload};

/// Small segments, so that rotation happens all the time.
pub const OPTIONS: LogOptions = LogOptions { segment_bytes: 1_200, ring_bytes: ENTRY_BYTES_MAX + 4 };

/// Everything a workload writes when nothing goes wrong.
#[derive(Clone, Debug)]
pub struct Golden {
    /// Seed of the workload.
    pub seed: u64,
    /// Its operations; operation `k` appends entry `k + 1`.
    pub operations: Vec<Operation>,
    /// All entries, genesis first.
    pub entries: Vec<Vec<u8>>,
    /// Chain head after each number of entries.
    pub heads: Vec<ChainHead>,
}

impl Golden {
    /// Runs the workload on a store that never fails.
    pub fn new(seed: u64, operations: usize) -> Golden {
        let mut workload = Workload::new(seed);
        let operations: Vec<Operation> = (0..operations).map(|_| workload.next_operation()).collect();
        let genesis = testing::genesis(seed);
        let mut log = Log::create(MemoryStore::new(), testing::signer(), &genesis, OPTIONS)
            .expect("a store in memory does not fail");
        let mut heads = vec![ChainHead::start(), log.head()];
        for operation in &operations {
            Workload::apply(operation, &mut log).expect("a store in memory does not fail");
            heads.push(log.head());
        }
        log.commit().expect("a store in memory does not fail");
        let entries = read_entries(log.store_mut()).expect("the history was just written");
        Golden { seed, operations, entries, heads }
    }

    /// The first workload from this seed on that has several snapshots and several patches early.
    pub fn rich(seed: u64, operations: usize) -> Golden {
        let rich = |seed: &u64| {
            let mut workload = Workload::new(*seed);
            let (mut snapshots, mut patches) = (0, 0);
            for _ in 0..operations {
                match workload.next_operation() {
                    Operation::Snapshot(..) => snapshots += 1,
                    Operation::Patch(..) => patches += 1,
                    Operation::Append(_) => {}
                }
            }
            2 <= snapshots && operations / 10 <= patches
        };
        Golden::new((seed..).find(rich).expect("one workload in a few is rich"), operations)
    }

    /// Whether to commit after the operation at this position; a fixed schedule, so that runs can be compared.
    pub fn commits_after(position: u64) -> bool {
        position % 5 == 3
    }
}

/// All acknowledged entries of a ledger.
pub fn read_entries<S: Store>(store: &mut S) -> Result<Vec<Vec<u8>>, bem_ledger::LedgerError> {
    let mut reader = EntryReader::open(store)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next(store)? {
        entries.push(entry.to_vec());
    }
    Ok(entries)
}
