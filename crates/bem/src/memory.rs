//! How a process that runs for weeks gives memory back: blocks as large as a state are the system's own, not cut from a heap.
//!
//! A state is encoded after every round of learning and for every snapshot. The allocator of the GNU C library keeps blocks of that
//! size in its heaps once it has seen a few, each thread in another one, so that memory grows by one state after the other. With a
//! fixed limit such a block is mapped for itself and goes back when it is freed. Other C libraries do so anyway. Decision D-122.

/// Blocks of this size or more are mapped for themselves.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: i32 = 1 << 20;

/// To be called once, before the first thread is started.
pub fn give_large_blocks_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "a setting of the C library's allocator, which has no safe name")]
    // SAFETY: mallopt takes two numbers, and no other thread allocates yet.
    let is_set = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) } == 1;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    debug_assert!(is_set, "the C library refuses the limit");
}
