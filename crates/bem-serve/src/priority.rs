//! Who gives way to whom: threads that nobody waits for leave the processor to the one that decides.
//!
//! On Linux the priority is a thread's own. Where it cannot be lowered everything works as before, only not as promptly.
//! Clauses: VM-13, IMG-3; decision D-121.

/// How far learning stands back.
pub const LEARNING: i32 = 2;
/// How far saving images stands back.
pub const SAVING: i32 = 5;

/// Microseconds that the calling thread was on a processor; zero where the system does not say.
pub fn processor_micros() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0) / 1_000
}

/// The calling thread stands back this far from now on.
pub fn give_way(by: i32) {
    let _ = rustix::process::nice(by);
}
