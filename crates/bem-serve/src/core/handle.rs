//! The way to the deciding thread, for handlers: messages that are taken or refused at once, and answers to wait for.
//!
//! Must not know how anything is decided. Clauses: VM-13, LOG-1.

use super::{Gauges, Message, QUEUE_MAX, Reply, STOP_WAIT, Threads, Tooling, spawn};
use crate::webhooks::Webhooks;
use anyhow::Result;
use bem_runtime::input::Input;
use bem_runtime::service::{Refusal, Service};
use bem_workers::catalog_file::CatalogFile;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{broadcast, mpsc as queue, oneshot};

/// The way to the deciding thread.
#[derive(Clone)]
pub struct Handle {
    pub(super) queue: queue::Sender<Message>,
    /// Counts.
    pub gauges: Arc<Gauges>,
    /// What happens, for whoever listens.
    pub events: broadcast::Sender<String>,
    /// Whoever is told what happens to questions and patches.
    pub(crate) hooks: Arc<Webhooks>,
    /// The catalog of tools, if there is one.
    pub tools: Option<Arc<CatalogFile>>,
}

/// Why a message was not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Busy {
    /// Too many wait.
    Full,
    /// The service stops.
    Stopping,
}

impl Handle {
    /// Asks; the answer comes when it is durable.
    pub async fn ask<T>(
        &self,
        message: impl FnOnce(Reply<T>) -> Message,
    ) -> Result<Result<T, Refusal>, Busy> {
        let (reply, answer) = oneshot::channel();
        self.send(message(reply))?;
        answer.await.map_err(|_| Busy::Stopping)
    }

    /// Checks and lets take effect; the answer comes when it is durable.
    pub async fn act(
        &self,
        check: impl FnOnce(&Service) -> Result<Option<Input>, Refusal> + Send + 'static,
        view: impl FnOnce(&Service, Option<u64>) -> serde_json::Value + Send + 'static,
    ) -> Result<Result<serde_json::Value, Refusal>, Busy> {
        self.ask(|reply| Message::Act { check: Box::new(check), view: Box::new(view), reply }).await
    }

    /// Looks at what is served.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let (reply, answer) = oneshot::channel();
        let look = move |service: &Service| {
            let _ = reply.send(look(service));
        };
        self.send(Message::Look(Box::new(look)))?;
        answer.await.map_err(|_| Busy::Stopping)
    }

    /// Looks at the tools.
    pub async fn look_tools<T: Send + 'static>(
        &self,
        look: impl FnOnce(Option<&Tooling>) -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let (reply, answer) = oneshot::channel();
        let look = move |tooling: Option<&Tooling>| {
            let _ = reply.send(look(tooling));
        };
        self.send(Message::LookTools(Box::new(look)))?;
        answer.await.map_err(|_| Busy::Stopping)
    }

    pub(crate) fn send(&self, message: Message) -> Result<(), Busy> {
        if self.gauges.failed.load(Ordering::Relaxed) {
            return Err(Busy::Stopping);
        }
        self.queue.try_send(message).map_err(|error| match error {
            queue::error::TrySendError::Full(_) => Busy::Full,
            queue::error::TrySendError::Closed(_) => Busy::Stopping,
        })
    }

    /// Whether a request that comes now would be taken.
    pub fn is_ready(&self) -> bool {
        !self.gauges.failed.load(Ordering::Relaxed) && !self.queue.is_closed() && 0 < self.queue.capacity()
    }

    /// The same for a thread that may wait for room.
    pub(crate) fn send_waiting(&self, message: Message) -> Result<(), Busy> {
        self.queue.blocking_send(message).map_err(|_| Busy::Stopping)
    }

    /// Tells whoever listens, and the webhooks.
    pub(crate) fn tell(&self, event: &str, data: &serde_json::Value) {
        if 0 < self.events.receiver_count() {
            let _ = self.events.send(serde_json::json!({ "event": event, "data": data }).to_string());
        }
        self.hooks.send(event, data);
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        QUEUE_MAX - self.queue.capacity()
    }

    /// Asks the threads to stop; returns when they have.
    pub fn stop(&self, threads: Threads) -> Result<()> {
        // The queue may be full; then the threads are busy, not stuck.
        let _ = self.queue.blocking_send(Message::Stop);
        // A round that takes too long is given up: the next start works on it again.
        let queue = self.queue.clone();
        let patience = spawn("patience", move || {
            std::thread::sleep(STOP_WAIT);
            let _ = queue.blocking_send(Message::Stop);
        });
        drop(patience);
        threads.join()
    }
}
