//! Conditions of patches go to TOOL_PROVER: the learning thread asks, the deciding thread owns the bus.
//!
//! What comes back is judged by the learning thread itself: a proof counts when the checker accepts it, and where there is no
//! answer the question is answered in the process. Such a question changes nothing outside and is no input; what it showed
//! enters the history with the patch, as the digest of its formula and the certificate. Clauses: TOOL-8, SCC-5; decision D-118.

use super::Message;
use bem_prover::outside::{Outside, Said};
use bem_prover::{Budget, Cnf};
use bem_tools::bus::{Completed, Request, key};
use bem_tools::limits::PAYLOAD_MAX;
use bem_tools::operation::Role;
use bem_workers::host::{Host, PATIENCE};
use bem_workers::prover;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::mpsc as queue;

/// Numbers of these requests begin here: inputs never come so far.
const FIRST: u64 = 1 << 63;

/// The deciding thread's side.
#[derive(Default)]
pub(super) struct Proving {
    asked: u64,
    waiting: BTreeMap<u64, mpsc::Sender<Vec<u8>>>,
}

impl Proving {
    /// Puts a question on the bus; whoever asked is told by silence if there is no room.
    pub(super) fn ask(&mut self, host: &mut Host, payload: &[u8], reply: mpsc::Sender<Vec<u8>>) {
        let Some(kind) = host.catalog().catalog.find(Role::Prover.name()) else { return };
        self.asked += 1;
        let number = FIRST + self.asked;
        let asked = Request {
            operation: 0,
            flags: 0,
            resource: kind,
            payload,
            capacity: PAYLOAD_MAX as u32,
            number,
            key: key(number, payload),
            is_idempotent: true,
            lease: 0,
            patience: PATIENCE,
        };
        if host.enqueue_unjudged(kind, &asked).is_ok() {
            self.waiting.insert(number, reply);
        }
    }

    /// Whether this was the end of such a question; then whoever asked has it.
    pub(super) fn end(&mut self, done: &Completed) -> bool {
        if let Some(reply) = self.waiting.remove(&done.number)
            && done.error.is_none()
        {
            let _ = reply.send(done.response.clone());
        }
        FIRST <= done.number
    }
}

/// The learning thread's side.
pub(super) struct Bus(pub(super) queue::Sender<Message>);

impl Outside for Bus {
    fn ask(&mut self, cnf: &Cnf, budget: Budget) -> Option<Said> {
        let payload = prover::question(cnf, budget)?;
        let (reply, answer) = mpsc::channel();
        self.0.blocking_send(Message::Prove(payload, reply)).ok()?;
        let response = answer.recv_timeout(Duration::from_millis(PATIENCE)).ok()?;
        prover::said(&response)
    }
}
