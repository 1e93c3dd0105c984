//! The bounds of the bus. Clauses: TOOL-2, TOOL-12.

/// Requests of one kind that may be under way (Q of the specification).
pub const SLOTS: usize = 64;
/// Bytes that an enqueue may copy on the fast path, and the size of a small window.
#[doc(alias = "tool_payload_fast_max")]
pub const PAYLOAD_FAST_MAX: usize = 4_096;
/// Bytes of the largest request or response, and the size of a large window.
pub const PAYLOAD_MAX: usize = 1 << 20;
/// Small windows of one kind: a request and a response for every slot, and as many again for renewed leases.
pub const WINDOWS_SMALL: usize = 4 * SLOTS;
/// Large windows of one kind.
pub const WINDOWS_LARGE: usize = 16;
/// Completed requests that one barrier takes.
#[doc(alias = "tool_completions_max")]
pub const COMPLETIONS_MAX: usize = 64;
/// How often a request is tried before it is given up.
pub const ATTEMPTS_MAX: u32 = 5;
/// Filesystem nodes (F).
pub const FILES_MAX: u32 = 4_096;
/// Names for frequent nodes (A).
pub const ALIASES: usize = 8;
/// Database connections (D).
pub const DATABASES_MAX: u32 = 64;
/// Tool kinds (T).
pub const KINDS_MAX: u32 = 32;
/// External simulators.
pub const ENVIRONMENTS_MAX: u32 = 64;
/// Bytes of a logical name.
pub const NAME_BYTES_MAX: usize = 128;
/// How deep items of a payload may be nested.
pub const DEPTH_MAX: usize = 8;
/// Items of one payload.
pub const ITEMS_MAX: usize = 1 << 16;

const _: () = assert!(SLOTS <= 64, "busy slots are one word");
const _: () = assert!(PAYLOAD_FAST_MAX < PAYLOAD_MAX && PAYLOAD_MAX.is_multiple_of(8));
const _: () = assert!(2 * SLOTS <= WINDOWS_SMALL, "every slot can have two small windows");
