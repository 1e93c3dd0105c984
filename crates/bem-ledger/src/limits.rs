//! Every maximum of the ledger. What comes from disk is checked against these before anything is reserved.

/// Bytes of one entry.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;
/// Bytes of one step or reward record.
pub const STEP_RECORD_BYTES: usize = 16;
/// Records in one step block.
pub const STEP_RECORDS_MAX: usize = 32_768;
/// Bytes of the code version in genesis.
pub const CODE_TEXT_MAX: usize = 256;
/// Certificates of one patch.
pub const CERTIFICATES_MAX: usize = 64;
/// Table edits in one entry.
pub const EDITS_MAX: usize = 16_384;
/// Slots of one table.
pub const TABLE_SLOTS_MAX: u32 = 1 << 20;
/// Values of one event.
pub const EVENT_VALUES_MAX: usize = 16;
/// Bytes of a segment before the next one is begun, by default.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;
/// Bytes of entries held in memory until they are written, by default.
pub const RING_BYTES_DEFAULT: usize = 4 << 20;
/// Bytes of a checkpoint file, cosignatures included.
pub const CHECKPOINT_BYTES_MAX: usize = 1 << 16;
/// Parts of a snapshot.
pub const SNAPSHOT_PARTS_MAX: usize = 64;
/// Letters of a part's name.
pub const PART_NAME_MAX: usize = 64;
/// Bytes of a snapshot's parts together.
pub const SNAPSHOT_BYTES_MAX: u64 = 1 << 32;
/// Bytes of one blob.
pub const BLOB_BYTES_MAX: u64 = 1 << 32;

// The largest entry, with its length, must fit the ring, or back-pressure could never end.
const _: () = assert!(ENTRY_BYTES_MAX + 4 <= RING_BYTES_DEFAULT);
const _: () = assert!((RING_BYTES_DEFAULT as u64) < SEGMENT_BYTES_DEFAULT);
// A block of records, and the edits of a patch, must fit one entry.
const _: () = assert!(STEP_RECORDS_MAX * STEP_RECORD_BYTES < ENTRY_BYTES_MAX);
const _: () = assert!(crate::play::PLAY_BYTES_MAX + 64 < ENTRY_BYTES_MAX);
const _: () = assert!(EDITS_MAX * 37 + CERTIFICATES_MAX * 65 + 512 < ENTRY_BYTES_MAX);

/// Every limit with its name, for `bem inspect constants`.
pub const ALL: [(&str, u64); 15] = [
    ("ledger.entry_bytes_max", ENTRY_BYTES_MAX as u64),
    ("ledger.step_record_bytes", STEP_RECORD_BYTES as u64),
    ("ledger.step_records_max", STEP_RECORDS_MAX as u64),
    ("ledger.play_bytes_max", crate::play::PLAY_BYTES_MAX as u64),
    ("ledger.code_text_max", CODE_TEXT_MAX as u64),
    ("ledger.certificates_max", CERTIFICATES_MAX as u64),
    ("ledger.edits_max", EDITS_MAX as u64),
    ("ledger.table_slots_max", TABLE_SLOTS_MAX as u64),
    ("ledger.event_values_max", EVENT_VALUES_MAX as u64),
    ("ledger.segment_bytes_default", SEGMENT_BYTES_DEFAULT),
    ("ledger.ring_bytes_default", RING_BYTES_DEFAULT as u64),
    ("ledger.checkpoint_bytes_max", CHECKPOINT_BYTES_MAX as u64),
    ("ledger.snapshot_parts_max", SNAPSHOT_PARTS_MAX as u64),
    ("ledger.snapshot_bytes_max", SNAPSHOT_BYTES_MAX),
    ("ledger.blob_bytes_max", BLOB_BYTES_MAX),
];
