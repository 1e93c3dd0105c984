//! Ctrl-C: the first one asks the work to stop where nothing is lost, the second one leaves at once.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// The exit code of a process that was interrupted, as shells know it.
const INTERRUPTED: i32 = 130;

/// Listens from now on. Called once by a command that looks at [`is_asked`] while it works.
pub fn listen() {
    let handler = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    };
    // Without a handler Ctrl-C ends the process as it always does: that costs the clean stop, not the work.
    let _ = ctrlc::set_handler(handler);
}

/// Whether the user asked to stop.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
