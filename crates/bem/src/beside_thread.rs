//! A thread that works beside a server until it is asked to stop. Must not know what it works on. Clause: IMG-1.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Somebody at work beside a server.
pub struct BesideThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BesideThread {
    /// Starts work that ends soon after its flag is raised.
    pub fn start(name: &str, work: impl FnOnce(Arc<AtomicBool>) + Send + 'static) -> BesideThread {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name(name.to_string());
        BesideThread { stop, thread: thread.spawn(move || work(flag)).ok() }
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}
