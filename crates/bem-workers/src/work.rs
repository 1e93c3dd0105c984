//! A worker's loop: serve what waits, sleep when nothing does, leave when the bus ends.
//!
//! Clause: TOOL-3.

use crate::mapping::Shared;
use bem_tools::layout::header;
use bem_tools::worker::{Port, Tool, serve_one};
use std::sync::Arc;
use std::time::Duration;

/// How long a worker sleeps at most before it looks whether the bus is still there.
const PATIENCE: Duration = Duration::from_millis(500);
/// Requests after which a busy worker looks, too.
const BUSY: u32 = 1_024;

/// Serves until the bus ends, or `is_alone` says that nobody is left to serve.
pub fn serve(port: &mut Port<Arc<Shared>>, tool: &mut dyn Tool, is_alone: &dyn Fn() -> bool) {
    let mut served = 0;
    while !port.is_over() {
        let bell = port.bell();
        if serve_one(port, tool) {
            served += 1;
            // Looking whether the bus is there costs system calls: not for every request.
            if served < BUSY {
                continue;
            }
            served = 0;
        } else {
            let mapping = Arc::clone(port.mapping());
            mapping.sleep(header::REQUEST_BELL, header::WORKERS_ASLEEP, bell, PATIENCE);
            if port.bell() != bell {
                continue;
            }
        }
        if is_alone() {
            return;
        }
    }
}
