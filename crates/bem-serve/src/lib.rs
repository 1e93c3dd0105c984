//! The decision service over HTTP: the threads around the runtime, the door, the pages, what is counted.
//!
//! [`core`] owns the runtime, [`inbox`] acknowledges, [`http`] lets in, [`api`] answers programs and [`page`] people. Later layers
//! register their routes with [`http::route`] and their inputs with the runtime. This crate sees the clock, files, threads and
//! floats; nothing of them reaches the runtime. Clauses: VM-13, LOG-1, IMG-1; decisions D-67 to D-70.

pub mod api;
pub mod attempts;
pub mod core;
pub mod declarations;
pub mod domains;
pub mod explain;
pub mod http;
pub mod inbox;
pub mod metrics;
pub mod page;
pub mod people;
pub mod priority;
pub mod proposals;
pub mod saving;
pub mod taken;
pub mod tokens;
pub mod tools;
pub mod webhooks;

use crate::core::{Handle, Threads, ToolParts};
use crate::http::{App, Route, Shared};
use crate::metrics::Metrics;
use crate::tokens::Doorkeeper;
use anyhow::{Context, Result, bail};
use bem_ledger::store::Store;
use bem_runtime::history::Opened;
use bem_runtime::history::played::LoggedEpisode;
use bem_runtime::input::{WorldIndex, WorldSpec};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// What new worlds begin with, by what they are.
#[derive(Clone)]
pub struct Starting(pub Arc<core::Starts>);

impl std::fmt::Debug for Starting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Starting")
    }
}

/// An audit of a server's own history: its report as JSON, held against a checkpoint from outside if there is one. An error says
/// what is wrong with that.
#[derive(Clone)]
pub struct Auditing(pub Arc<Audit>);

/// See [`Auditing`].
pub type Audit = dyn Fn(Option<&str>) -> Result<serde_json::Value, String> + Send + Sync;

impl std::fmt::Debug for Auditing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Auditing")
    }
}

/// A world's log in a server's own history: its complete episodes behind an input, until no more are wanted. An error says why it cannot be
/// read.
#[derive(Clone)]
pub struct LogReading(pub Arc<ReadLog>);

/// See [`LogReading`].
pub type ReadLog = dyn Fn((WorldIndex, &WorldSpec), u64, &mut dyn FnMut(LoggedEpisode) -> bool) -> Result<(), String>
    + Send
    + Sync;

impl std::fmt::Debug for LogReading {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("LogReading")
    }
}

/// How a service is reached.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The folder of its state.
    pub state: PathBuf,
    /// The admin's token.
    pub admin: String,
    /// Names under which a proxy reaches it; without one only loopback may be named.
    pub hosts: Vec<String>,
    /// Whether a proxy with TLS stands before it.
    pub behind_proxy: bool,
    /// Requests a second of one token.
    pub rate: u32,
    /// A route that does nothing, for load generators to compare with.
    pub has_empty: bool,
    /// What new worlds begin with, if something was named.
    pub starts: Option<Starting>,
    /// How long a lease of a question lasts.
    pub lease: Duration,
    /// Who is told what happens to questions and patches.
    pub webhooks: Vec<webhooks::Webhook>,
    /// How its history is audited, where pages may ask for it.
    pub auditing: Option<Auditing>,
    /// How the logs of its worlds are read, where programs may ask for them.
    pub logs: Option<LogReading>,
    /// The pipeline that works beside it, if one does.
    pub domains: Option<domains::Domains>,
}

/// Refuses an address beyond loopback unless a proxy stands before it.
pub fn check_address(listen: SocketAddr, behind_proxy: bool) -> Result<()> {
    if !listen.ip().is_loopback() && !behind_proxy {
        bail!(
            "--listen {listen} is beyond loopback: tokens would travel in the clear; put a proxy with TLS before it and say --behind-proxy"
        );
    }
    Ok(())
}

/// Everything that handlers share, for a service that was started.
pub fn app(handle: Handle, options: &ServeOptions, bound: SocketAddr) -> Result<App> {
    let port = bound.port();
    let mut hosts = options.hosts.clone();
    if bound.ip().is_loopback() {
        hosts.extend([
            format!("{bound}"),
            format!("localhost:{port}"),
            format!("127.0.0.1:{port}"),
            format!("[::1]:{port}"),
        ]);
    }
    Ok(App::new(Shared {
        handle,
        keeper: Arc::new(Mutex::new(Doorkeeper::new(&options.state, &options.admin)?)),
        hosts,
        is_proxied: options.behind_proxy,
        metrics: Metrics::default(),
        rate: options.rate,
        lease: options.lease,
        buckets: Mutex::new(BTreeMap::new()),
        attempts: Mutex::default(),
        explaining: explain::Explaining::default(),
        started: Instant::now(),
        state: options.state.clone(),
        auditing: options.auditing.clone(),
        logs: options.logs.clone(),
        log_turn: Arc::new(Semaphore::new(1)),
        domains: options.domains.clone(),
        is_audited: AtomicBool::new(false),
    }))
}

/// Starts the threads of a history that was opened.
pub fn start<S: Store + Send + 'static>(
    opened: Opened<S>,
    options: &ServeOptions,
    bus: Option<ToolParts>,
) -> Result<(Handle, Threads)> {
    let starts = options.starts.clone().map(|starts| starts.0);
    core::start(opened, &options.state, starts, (bus, &options.webhooks))
}

/// Serves until it is asked to stop, then stops cleanly. `on_ready` is told the address when requests are taken, and the way
/// to the threads.
pub fn run<S: Store + Send + 'static>(
    opened: Opened<S>,
    options: &ServeOptions,
    bus: Option<ToolParts>,
    should_stop: impl Fn() -> bool,
    on_ready: impl FnOnce(SocketAddr, &Handle),
) -> Result<()> {
    check_address(options.listen, options.behind_proxy)?;
    let (handle, threads) = start(opened, options, bus)?;
    // One core decides, one learns when nobody asks: the door takes half of what there is.
    let workers = std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    let runtime = runtime.context("the threads of the server cannot be started")?;
    let served = runtime.block_on(async {
        let listener = http::listen(options.listen).await?;
        let bound = listener.local_addr().context("the address is not known")?;
        let app = app(handle.clone(), options, bound)?;
        let mut routes = all_routes();
        routes.extend(options.has_empty.then(http::empty));
        let (router, _) = http::application(&app, routes);
        let keeper = Arc::clone(&app.keeper);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                // A file that cannot be read leaves those tokens in force that were read last.
                let _ = keeper.lock().unwrap_or_else(PoisonError::into_inner).refresh();
            }
        });
        tokio::spawn(people::watch_leases(handle.clone(), options.lease));
        on_ready(bound, &handle);
        let is_failed = || handle.gauges.failed.load(std::sync::atomic::Ordering::Relaxed);
        http::serve(listener, router, || should_stop() || is_failed() || threads.is_over()).await
    });
    // Streams of events end with the server; nothing else is under way.
    runtime.shutdown_timeout(Duration::from_secs(1));
    let stopped = handle.stop(threads);
    served.and(stopped)
}

/// The routes of all layers.
fn all_routes() -> Vec<http::Registered> {
    let mut routes = api::routes();
    routes.extend(tools::routes());
    routes.extend(domains::routes());
    routes
}

/// The routes of the service with the roles they need.
pub fn table() -> Vec<Route> {
    all_routes().into_iter().map(|(route, _)| route).collect()
}

#[cfg(test)]
mod tests;
