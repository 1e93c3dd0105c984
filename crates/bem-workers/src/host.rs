//! A bus with its workers: threads for the built-in tools, processes for users' tools, and the socket for whoever else works.
//!
//! Time on this bus is milliseconds since it started. Whoever owns a host enqueues and takes completed requests from one
//! thread; bells wake it. Must not know what answers are for. Clauses: TOOL-2, TOOL-3; decisions D-28, D-71.

use crate::catalog_file::CatalogFile;
use crate::database::Databases;
use crate::files::{self, Files};
use crate::mapping::Shared;
use crate::model::Models;
use crate::people::{Desk, People};
use crate::prover::{self, Prover};
use crate::redact;
use crate::simulator::Simulators;
use crate::socket::{self, Connected, Offer, Workers};
use crate::work;
use anyhow::{Context, Result};
use bem_base::ids::ObjectId;
use bem_tools::bus::{Bus, Completed, Request};
use bem_tools::error::{ErrorCode, Refused};
use bem_tools::layout::{Mapping as _, header};
use bem_tools::operation::Role;
use bem_tools::worker::{Port, Tool};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Milliseconds that a worker may take for one request.
pub const LEASE: u64 = 30_000;
/// Milliseconds that a request may take in all.
pub const PATIENCE: u64 = 120_000;
/// How long a tool's program may take to leave.
const GRACE: Duration = Duration::from_millis(1_000);
/// How often whoever waits looks at leases.
const TICK: Duration = Duration::from_millis(100);

/// What a host starts by itself.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The socket for workers in other processes; none if there shall be none.
    pub socket: Option<PathBuf>,
    /// Whether the built-in tools work in this process.
    pub has_threads: bool,
    /// Whether users' tools are started.
    pub has_commands: bool,
    /// Milliseconds that a worker may take.
    pub lease: u64,
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions { socket: None, has_threads: true, has_commands: true, lease: LEASE }
    }
}

/// A bus with its workers.
pub struct Host {
    bus: Bus<Arc<Shared>>,
    catalog: Arc<CatalogFile>,
    began: Instant,
    lease: u64,
    is_over: Arc<AtomicBool>,
    in_flight: Arc<AtomicU32>,
    connected: Arc<Workers>,
    threads: Vec<JoinHandle<()>>,
    children: Vec<(String, Child)>,
    socket: Option<PathBuf>,
    /// What the prover was asked: its answers count only with evidence for it.
    formulas: BTreeMap<u64, Vec<u8>>,
    /// Whoever keeps the questions to people, once somebody does.
    desk: Arc<OnceLock<Box<dyn Desk>>>,
}

/// The tool of a built-in kind, if this build has one.
pub fn tool(role: Role, catalog: &Arc<CatalogFile>) -> Result<Option<Box<dyn Tool + Send>>> {
    Ok(match role {
        Role::Files => Some(Box::new(Files::open(Arc::clone(catalog))?)),
        Role::Database => Some(Box::new(Databases::new(Arc::clone(catalog)))),
        Role::Prover => Some(Box::new(Prover)),
        Role::Model => Some(Box::new(Models::new(Arc::clone(catalog)))),
        Role::Environment => Some(Box::new(Simulators::new(Arc::clone(catalog)))),
        Role::Custom | Role::People => None,
    })
}

impl Host {
    /// Starts a bus over a catalog.
    pub fn start(catalog: Arc<CatalogFile>, options: &HostOptions) -> Result<Host> {
        files::forget_ephemeral(&catalog)?;
        let bus = Bus::new(&catalog.catalog, |_| Shared::create().map(Arc::new))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let connected = Arc::new(Workers::default());
        let desk = Arc::new(OnceLock::new());
        let mut threads = Vec::new();
        let mappings: BTreeMap<ObjectId, Arc<Shared>> =
            bus.channels().iter().map(|channel| (channel.kind(), Arc::clone(channel.mapping()))).collect();
        if options.has_threads {
            for (number, (kind, mapping)) in (1..).zip(&mappings) {
                let Some(role) = catalog.catalog.role(*kind) else { continue };
                let made: Option<Box<dyn Tool + Send>> = match role {
                    Role::People => Some(Box::new(People::new(Arc::clone(&desk)))),
                    role => tool(role, &catalog)?,
                };
                let Some(mut tool) = made else { continue };
                let mut port = Port::open(Arc::clone(mapping), number)?;
                threads.push(spawn(role.name(), move || work::serve(&mut port, tool.as_mut(), &|| false))?);
            }
        }
        let mut children = Vec::new();
        if let Some(path) = &options.socket {
            let listener = socket::listen(path)?;
            let offer = Arc::new(Offer {
                catalog: Arc::clone(&catalog),
                mappings,
                next: AtomicU32::new(1_000),
                connected: Arc::clone(&connected),
            });
            let over = Arc::clone(&is_over);
            threads.push(spawn("bus", move || socket::serve(&listener, &offer, &over))?);
            if options.has_commands {
                children = start_tools(&catalog, path)?;
            }
        }
        Ok(Host {
            bus,
            catalog,
            began: Instant::now(),
            lease: options.lease,
            is_over,
            in_flight: Arc::new(AtomicU32::new(0)),
            connected,
            threads,
            children,
            socket: options.socket.clone(),
            formulas: BTreeMap::new(),
            desk,
        })
    }

    /// The catalog.
    pub fn catalog(&self) -> &Arc<CatalogFile> {
        &self.catalog
    }

    /// The bus.
    pub fn bus(&self) -> &Bus<Arc<Shared>> {
        &self.bus
    }

    /// Somebody was told that a kind has no room before anything was put on the bus.
    pub fn count_refusal(&mut self, kind: ObjectId) {
        self.bus.count_refusal(kind);
    }

    /// Somebody keeps the questions to people from now on; whoever came first stays.
    pub fn keep_questions(&mut self, desk: Box<dyn Desk>) {
        let _ = self.desk.set(desk);
    }

    /// Workers in other processes, by number.
    pub fn workers(&self) -> Vec<(u32, Connected)> {
        self.connected.list()
    }

    /// Milliseconds since it started.
    pub fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Puts a request on the bus. What the prover answers counts only with evidence.
    pub fn enqueue(&mut self, kind: ObjectId, asked: &Request<'_>) -> Result<u16, Refused> {
        let slot = self.enqueue_unjudged(kind, asked)?;
        if self.catalog.catalog.role(kind) == Some(Role::Prover) {
            self.formulas.insert(asked.number, asked.payload.to_vec());
        }
        Ok(slot)
    }

    /// The same for who judges the prover's answers itself.
    pub fn enqueue_unjudged(&mut self, kind: ObjectId, asked: &Request<'_>) -> Result<u16, Refused> {
        let (now, lease) = (self.now(), if asked.lease == 0 { self.lease } else { asked.lease });
        let payload = redact::question(&self.catalog, kind, asked.payload);
        let slot = self.bus.enqueue(kind, &Request { lease, payload: &payload, ..*asked }, now)?;
        self.in_flight.store(self.bus.in_flight(), Ordering::Relaxed);
        Ok(slot)
    }

    /// Takes at most `max` completed requests, by kind and slot.
    pub fn poll(&mut self, max: usize) -> Vec<Completed> {
        let mut completed = Vec::new();
        let now = self.now();
        self.bus.poll(now, max, &mut completed);
        self.in_flight.store(self.bus.in_flight(), Ordering::Relaxed);
        for done in &mut completed {
            if let Some(formula) = self.formulas.remove(&done.number)
                && done.error.is_none()
                && let Err(code) = prover::accept(&formula, &done.response)
            {
                (done.error, done.response) = (Some(code), Vec::new());
            }
        }
        completed
    }

    /// Puts a request on the bus and waits for its end: for a bus that is used by nobody else.
    pub fn call(&mut self, kind: ObjectId, asked: &Request<'_>) -> Result<Completed, Refused> {
        let mapping = {
            let channel = self.bus.channel(kind).ok_or(Refused::UnknownKind)?;
            Arc::clone(channel.mapping())
        };
        let mut bell = bell_of(&mapping);
        self.enqueue(kind, asked)?;
        loop {
            let found = self.poll(usize::MAX).into_iter().find(|done| done.number == asked.number);
            if let Some(completed) = found {
                return Ok(completed);
            }
            // A tool whose program has ended answers nothing any more; this bus has nobody else.
            if self.has_ended(kind) {
                return Ok(Completed {
                    number: asked.number,
                    kind,
                    operation: asked.operation,
                    flags: asked.flags,
                    resource: asked.resource,
                    slot: 0,
                    generation: 0,
                    error: Some(ErrorCode::UNAVAILABLE),
                    response: b"the tool's program has ended".to_vec(),
                    capacity: asked.capacity,
                    attempts: 0,
                    waited: 0,
                });
            }
            mapping.sleep(header::ANSWER_BELL, header::MACHINE_ASLEEP, bell, TICK);
            bell = bell_of(&mapping);
        }
    }

    /// Whether the program of a user's tool has ended by itself.
    fn has_ended(&mut self, kind: ObjectId) -> bool {
        let name = self.catalog.catalog.name_of(kind);
        let child = self.children.iter_mut().find(|(tool, _)| Some(tool.as_str()) == name);
        child.is_some_and(|(_, child)| matches!(child.try_wait(), Ok(Some(_))))
    }

    /// Calls `notify` from threads of its own whenever answers may have come, or a lease may have run out.
    pub fn watch(&mut self, notify: impl Fn() + Clone + Send + 'static) -> Result<()> {
        for channel in self.bus.channels() {
            let mapping = Arc::clone(channel.mapping());
            let (over, in_flight, notify) =
                (Arc::clone(&self.is_over), Arc::clone(&self.in_flight), notify.clone());
            let watching = spawn("answers", move || {
                let mut bell = bell_of(&mapping);
                while !over.load(Ordering::Relaxed) {
                    mapping.sleep(header::ANSWER_BELL, header::MACHINE_ASLEEP, bell, TICK);
                    let rung = bell_of(&mapping);
                    if rung != bell || 0 < in_flight.load(Ordering::Relaxed) {
                        notify();
                    }
                    bell = rung;
                }
            })?;
            self.threads.push(watching);
        }
        Ok(())
    }
}

fn bell_of(mapping: &Shared) -> u32 {
    mapping.words()[header::ANSWER_BELL].load(Ordering::SeqCst) as u32
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(format!("bem-{name}")).spawn(work).context("a thread cannot be started")
}

/// Starts the workers of users' tools, each in a process group of its own.
fn start_tools(catalog: &CatalogFile, socket: &Path) -> Result<Vec<(String, Child)>> {
    let mut children = Vec::new();
    for tool in &catalog.tools {
        let Some(command) = &tool.command else { continue };
        let child = Command::new("sh")
            .args(["-c", command])
            .current_dir(&catalog.base)
            .env("BEM_BUS", socket)
            .env("BEM_KIND", &tool.name)
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .with_context(|| format!("tool {}: the command {command:?} cannot be started", tool.name))?;
        children.push((tool.name.clone(), child));
    }
    Ok(children)
}

impl Drop for Host {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.bus.stop();
        for channel in self.bus.channels() {
            channel.mapping().wake(header::ANSWER_BELL);
        }
        for (_, child) in &mut self.children {
            // It leaves when the connection closes; what does not is ended, with all that it started.
            let group = rustix::process::Pid::from_raw(child.id() as i32);
            let end = |signal| group.map(|group| rustix::process::kill_process_group(group, signal));
            let _ = end(rustix::process::Signal::TERM);
            for _ in 0..GRACE.as_millis() / 5 {
                if !matches!(child.try_wait(), Ok(None)) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = end(rustix::process::Signal::KILL);
            let _ = child.wait();
        }
        if let Some(path) = &self.socket {
            let _ = std::fs::remove_file(path);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
