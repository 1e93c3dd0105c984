//! The tool bus of a service: requests go out when they are durable, answers come in at the barrier.
//!
//! A request is an input first; only when its group is synced does a worker see it, so that every effect has a line in the
//! history. At each barrier at most [`COMPLETIONS_MAX`] ended requests are taken in slot order and become inputs; whoever asked
//! is answered when that is synced. After a restart requests that were under way go out again under their old keys, or, where
//! a repetition is not harmless, end with their outcome unknown. SHARED shows catalog and slots, written at the barrier. Must not
//! know HTTP. Clauses: TOOL-1, TOOL-2, TOOL-9, TOOL-10; decisions D-28, D-72, D-73, D-200.

use super::advising::Advisor;
use super::proving::Proving;
use super::routine::Routine;
use super::{Decider, Handle, Message, Reply};
use crate::people::tasks::AtDesk;
use anyhow::{Context as _, Result};
use bem_isa::program::Program;
use bem_isa::tool_memory::ToolMemory;
use bem_machine::config::GenesisConfig;
use bem_runtime::input::Input;
use bem_runtime::service::{Refusal, RefusalKind};
use bem_runtime::tools::{OUTCOME_UNKNOWN, ToolAsk, ToolDone, keyed_hash};
use bem_tools::bus::{Completed, Request, key};
use bem_tools::error::ErrorCode;
use bem_tools::limits::{COMPLETIONS_MAX, SLOTS};
use bem_workers::host::{Host, PATIENCE};
use bem_workers::redact;
use bem_workers::resolve::Named;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

/// What a request by hand is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Its number in the history.
    pub request: u64,
    /// The error, if it failed.
    pub error: Option<ErrorCode>,
    /// The response.
    pub response: Vec<u8>,
    /// How often it was tried.
    pub attempts: u32,
    /// Milliseconds from enqueue to the barrier.
    pub waited: u64,
}

/// A bus and who uses it besides people.
pub struct ToolParts {
    /// The bus with its workers.
    pub host: Host,
    /// Whoever is asked for candidates, if anybody is.
    pub advisor: Option<Advisor>,
    /// A program of the control core that runs at barriers, if there is one.
    pub routine: Option<Program>,
}

/// The bus of a service with whoever waits for it.
pub struct Tooling {
    pub(super) host: Host,
    /// The service's SHARED: the catalog, and the slots as they were at the last barrier.
    pub(super) memory: ToolMemory,
    /// What runs over it, if anything does.
    pub(super) routine: Option<Routine>,
    waiting: BTreeMap<u64, Reply<Answered>>,
    /// Requests that are durable, or will be with the group, and not on the bus yet; with their true payloads.
    outgoing: VecDeque<(u64, ToolAsk, Vec<u8>)>,
    volume: PathBuf,
    secret: [u8; 32],
    /// Questions of the learning half, which are no inputs.
    proving: Proving,
    /// Whoever is asked for candidates, if anybody is.
    pub(super) advisor: Option<Advisor>,
}

/// What a question to a model shares with sensitive files is not written down (D-137).
fn redacted(host: &Host, named: Named) -> Named {
    let payload = redact::question(host.catalog(), named.kind, &named.payload).into_owned();
    Named { payload, ..named }
}

impl Tooling {
    /// A bus over the volume for contents that stay out of the history; its key lies beside them.
    pub fn new(
        parts: ToolParts,
        parameters: &GenesisConfig,
        state: &Path,
        handle: &Handle,
    ) -> Result<Tooling> {
        let ToolParts { mut host, advisor, routine } = parts;
        let memory = ToolMemory::new(parameters, &host.catalog().catalog)?;
        let routine = routine.map(Routine::new);
        let volume = state.join("sensitive");
        let secret = volume_key(&volume)?;
        host.keep_questions(Box::new(AtDesk(handle.clone())));
        let wake = handle.queue.clone();
        // A full queue means that the barrier comes by itself.
        host.watch(move || drop(wake.try_send(Message::ToolsReady)))?;
        let (waiting, outgoing, proving) = (BTreeMap::new(), VecDeque::new(), Proving::default());
        Ok(Tooling { host, memory, routine, waiting, outgoing, volume, secret, proving, advisor })
    }

    /// The bus.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// SHARED.
    pub fn memory(&self) -> &ToolMemory {
        &self.memory
    }

    /// The program that runs at barriers.
    pub fn routine(&self) -> Option<&Routine> {
        self.routine.as_ref()
    }

    /// Whether a kind has room for one more.
    fn has_room(&self, named: &Named) -> bool {
        let waiting = self.outgoing.iter().filter(|(_, ask, _)| ask.tool == named.kind).count();
        let in_flight = self.host.bus().channels().iter().find(|channel| channel.kind() == named.kind);
        in_flight.is_some_and(|channel| channel.in_flight() as usize + waiting < SLOTS)
    }

    /// Puts contents aside; what stands for them in the history.
    fn withhold(&self, name: &str, contents: &[u8]) -> Result<Vec<u8>> {
        let path = self.volume.join(name);
        let mut file = std::fs::File::create(&path).with_context(|| path.display().to_string())?;
        std::io::Write::write_all(&mut file, contents)
            .and_then(|()| file.sync_all())
            .with_context(|| path.display().to_string())?;
        Ok(keyed_hash(&self.secret, contents).as_bytes().to_vec())
    }
}

/// The key of a volume; made with it.
fn volume_key(volume: &Path) -> Result<[u8; 32]> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    let named = || volume.display().to_string();
    if !volume.exists() {
        std::fs::DirBuilder::new().mode(0o700).create(volume).with_context(named)?;
    }
    let path = volume.join("key");
    if let Ok(bytes) = std::fs::read(&path) {
        let damaged = || format!("{} is no key: 32 bytes", path.display());
        return bytes.try_into().ok().with_context(damaged);
    }
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .with_context(named)?;
    std::io::Write::write_all(&mut file, &secret).and_then(|()| file.sync_all()).with_context(named)?;
    Ok(secret)
}

impl Decider {
    /// A question of the learning half goes out at once: nothing outside changes by it.
    pub(super) fn prove(&mut self, payload: &[u8], reply: mpsc::Sender<Vec<u8>>) {
        if let Some(Tooling { host, proving, .. }) = &mut self.tooling {
            proving.ask(host, payload, reply);
        }
    }

    /// A request by hand: it becomes an input, and is answered when it has ended.
    pub(super) fn ask_tool(&mut self, named: Named, reply: Reply<Answered>) {
        match self.accept(named, 0) {
            Ok(number) => {
                if let Some(tooling) = &mut self.tooling {
                    tooling.waiting.insert(number, reply);
                }
            }
            Err(refusal) => self.answer(reply, Err(refusal)),
        }
    }

    /// Makes an input of a request, for the task at work or by hand; its number.
    pub(super) fn accept(&mut self, named: Named, task: u64) -> Result<u64, Refusal> {
        let refuse = |kind, code, message: &str| {
            Err(Refusal { kind, field: "kind", code, message: message.to_string() })
        };
        let Some(tooling) = &mut self.tooling else {
            return refuse(
                RefusalKind::Missing,
                "no_tools",
                "this server has no tools: start it with --tools CATALOG.toml",
            );
        };
        if !tooling.has_room(&named) {
            tooling.host.count_refusal(named.kind);
            self.gauges.tools_refused.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            return refuse(RefusalKind::Busy, "busy", "all slots of this kind are taken: come back later");
        }
        let named = redacted(&tooling.host, named);
        let catalog = &tooling.host.catalog().catalog;
        let is_sensitive = catalog.is_sensitive(named.resource);
        let number = self.service.last() + 1;
        let shown = match is_sensitive {
            false => named.payload.clone(),
            true => match tooling.withhold(&format!("{number}.request"), &named.payload) {
                Ok(shown) => shown,
                Err(_) => {
                    return refuse(
                        RefusalKind::Full,
                        "volume",
                        "the volume of sensitive contents cannot be written",
                    );
                }
            },
        };
        let ask = ToolAsk {
            tool: named.kind,
            operation: named.code,
            flags: named.flags,
            resource: named.resource,
            capacity: bem_tools::limits::PAYLOAD_MAX as u32,
            is_idempotent: catalog.is_idempotent(named.kind, named.code, named.flags),
            is_sensitive,
            task,
            payload: shown,
        };
        let (applied, _) = self.apply(Input::ToolAsk(Box::new(ask.clone())), None);
        debug_assert_eq!(applied, number, "nothing came between");
        if let Some(tooling) = &mut self.tooling {
            tooling.outgoing.push_back((number, ask, named.payload));
        }
        Ok(number)
    }

    /// Requests of before the start: out again under their keys, or ended.
    pub(super) fn resume_tools(&mut self) {
        let Some(tooling) = &mut self.tooling else { return };
        let catalog = tooling.host.catalog();
        let mut lost = Vec::new();
        for (number, ask) in self.service.tools().in_flight() {
            let payload = match ask.is_sensitive {
                false => Some(ask.payload.clone()),
                true => std::fs::read(tooling.volume.join(format!("{number}.request"))).ok(),
            };
            match payload {
                _ if !ask.is_idempotent => lost.push((*number, OUTCOME_UNKNOWN)),
                _ if catalog.catalog.kind(ask.tool).is_none() => {
                    lost.push((*number, ErrorCode::UNKNOWN_KIND.0))
                }
                None => lost.push((*number, ErrorCode::UNAVAILABLE.0)),
                Some(payload) => tooling.outgoing.push_back((*number, ask.clone(), payload)),
            }
        }
        for (request, error) in lost {
            let done = ToolDone { request, slot: 0, generation: 0, error, attempts: 0, response: Vec::new() };
            self.apply(Input::ToolDone(Box::new(done)), None);
        }
    }

    /// What is durable goes onto the bus.
    pub(super) fn send_tools(&mut self) {
        let Some(tooling) = &mut self.tooling else { return };
        while let Some((number, ask, payload)) = tooling.outgoing.pop_front() {
            let asked = Request {
                operation: ask.operation,
                flags: ask.flags,
                resource: ask.resource,
                payload: &payload,
                capacity: ask.capacity,
                number,
                key: key(number, &payload),
                is_idempotent: ask.is_idempotent,
                lease: 0,
                patience: PATIENCE,
            };
            if tooling.host.enqueue(ask.tool, &asked).is_err() {
                // No buffer just now: the next barrier tries again.
                tooling.outgoing.push_front((number, ask, payload));
                return;
            }
        }
    }

    /// The barrier: ended requests become inputs, in slot order.
    pub(super) fn take_tools(&mut self) {
        let Some(tooling) = &mut self.tooling else { return };
        let completed = tooling.host.poll(COMPLETIONS_MAX);
        let Tooling { host, memory, routine, .. } = tooling;
        memory.barrier(host.bus(), &completed, |number| routine.as_ref()?.asked(number));
        for done in &completed {
            let taken = self.tooling.as_mut().is_some_and(|tooling| tooling.proving.end(done));
            if !taken {
                self.end_tool(done.clone());
            }
        }
        if !completed.is_empty() {
            self.run_routine(Some(&completed));
        }
    }

    fn end_tool(&mut self, completed: Completed) {
        let Completed { number, slot, generation, error, response, attempts, waited, .. } = completed;
        let known = self.service.tools().in_flight().get(&number);
        let known = known.map(|ask| (ask.is_sensitive, ask.task));
        let (Some((is_sensitive, task)), Some(tooling)) = (known, &mut self.tooling) else { return };
        let (shown, error) = match is_sensitive {
            false => (response.clone(), error),
            true => match tooling.withhold(&format!("{number}.response"), &response) {
                Ok(shown) => (shown, error),
                Err(_) => (Vec::new(), Some(ErrorCode::WRITE_FAILED)),
            },
        };
        let reply = tooling.waiting.remove(&number);
        let code = error.map_or(0, |error| error.0);
        let done = ToolDone { request: number, slot, generation, error: code, attempts, response: shown };
        self.apply(Input::ToolDone(Box::new(done)), None);
        self.gauges.tools_ended.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if 0 < task {
            self.take_advice(number, task, error.is_none().then_some(&response));
        }
        if let Some(reply) = reply {
            self.answer(reply, Ok(Answered { request: number, error, response, attempts, waited }));
        }
    }
}
