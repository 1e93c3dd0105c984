//! The door: connections, who may come in, and how much of it.
//!
//! Every route is registered with the role it needs ([`Route`]); one guard stands before all of them and looks, in this order,
//! at Host, at Origin and Sec-Fetch-Site, at who calls, at the role, at the CSRF header of sessions that write, at the rate and
//! at the type of the body. Wrong tokens are counted by where they come from ([`crate::attempts`]). Nothing is reached without it but `/healthz`, `/readyz` and the way to log in. Later layers register their
//! routes here too. Clauses: GLE-9; decision D-70; threat T9.

use crate::attempts::{Attempts, Peer};
use crate::core::{Busy, Handle};
use crate::tokens::{Caller, Doorkeeper, Role, hash_of};
use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::MethodRouter;
use bem_base::digest::Digest;
use bem_runtime::service::{Refusal, RefusalKind};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The largest body.
pub const BODY_BYTES_MAX: usize = 512 << 10;
/// Connections at once.
const CONNECTIONS_MAX: usize = 1_024;
/// How long a connection may be idle, or the head of a request take.
const HEAD_PATIENCE: Duration = Duration::from_secs(60);
/// How long a body may take; the environment may say fewer milliseconds.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// See [`BODY_PATIENCE`].
const BODY_PATIENCE_WORD: &str = "BEM_SERVE_BODY_MS";
/// The cookie of a session.
pub const COOKIE: &str = "bem_session";
/// What writes with a cookie must show.
pub const CSRF: HeaderName = HeaderName::from_static("x-csrf-token");

/// What handlers get: one count of references, however much they share.
#[derive(Clone)]
pub struct App(Arc<Shared>);

impl App {
    /// Shares this.
    pub fn new(shared: Shared) -> App {
        App(Arc::new(shared))
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// Everything that handlers share.
pub struct Shared {
    /// The way to the service.
    pub handle: Handle,
    /// Who may come in.
    pub keeper: Arc<Mutex<Doorkeeper>>,
    /// Hosts that may be named.
    pub hosts: Vec<String>,
    /// Whether browsers come through a proxy with TLS.
    pub is_proxied: bool,
    /// What was counted.
    pub metrics: crate::metrics::Metrics,
    /// Requests a second of one token.
    pub rate: u32,
    /// How long a lease of a question lasts.
    pub lease: Duration,
    /// What each token has left.
    pub buckets: Mutex<BTreeMap<Digest, (f64, Instant)>>,
    /// Wrong tokens by where they came from.
    pub attempts: Mutex<Attempts>,
    /// Policies that were explained.
    pub explaining: crate::explain::Explaining,
    /// When the service started.
    pub started: Instant,
    /// The folder of its state.
    pub state: PathBuf,
    /// How its history is audited, if whoever started it has said so; and whether that is under way.
    pub auditing: Option<crate::Auditing>,
    /// See `auditing`.
    pub is_audited: AtomicBool,
    /// How the logs of its worlds are read, if whoever started it has said so; and the turn of whoever reads one.
    pub logs: Option<crate::LogReading>,
    /// See `logs`.
    pub log_turn: Arc<tokio::sync::Semaphore>,
    /// The pipeline that works beside it, if one does.
    pub domains: Option<crate::domains::Domains>,
}

/// A route with the role that it needs; none where anybody may come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, as the router writes it.
    pub path: &'static str,
    /// The role.
    pub role: Option<Role>,
}

/// A route with what answers it.
pub type Registered = (Route, MethodRouter<App>);

/// Registers a route.
pub fn route(
    method: Method,
    path: &'static str,
    role: Option<Role>,
    answers: MethodRouter<App>,
) -> Registered {
    (Route { method, path, role }, answers)
}

/// A route that does nothing.
pub fn empty() -> Registered {
    route(Method::GET, "/empty", None, axum::routing::get(|| async { "{}" }))
}

/// An error as clients see it.
#[derive(Debug)]
pub struct Failure {
    status: StatusCode,
    code: &'static str,
    message: String,
    field: Option<String>,
    /// Seconds after which it is worth another try.
    retry_after: Option<u64>,
}

impl Failure {
    /// An error of this status.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Failure {
        Failure { status, code, message: message.into(), field: None, retry_after: None }
    }

    /// The same, about a field.
    #[must_use]
    pub fn about(mut self, field: impl Into<String>) -> Failure {
        self.field = Some(field.into());
        self
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What it says to people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The request itself is wrong.
    pub fn bad(field: impl Into<String>, message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "bad_request", message).about(field)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let status = match refusal.kind {
            RefusalKind::Bad => StatusCode::BAD_REQUEST,
            RefusalKind::Missing => StatusCode::NOT_FOUND,
            RefusalKind::Conflict => StatusCode::CONFLICT,
            RefusalKind::Full => StatusCode::INSUFFICIENT_STORAGE,
            RefusalKind::Busy => StatusCode::TOO_MANY_REQUESTS,
            RefusalKind::Forbidden => StatusCode::FORBIDDEN,
        };
        let retry_after = (refusal.kind == RefusalKind::Busy).then_some(1);
        let failure = Failure::new(status, refusal.code, refusal.message).about(refusal.field);
        Failure { retry_after, ..failure }
    }
}

impl From<Busy> for Failure {
    fn from(busy: Busy) -> Failure {
        match busy {
            Busy::Full => Failure {
                retry_after: Some(1),
                ..Failure::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "busy",
                    "too many requests wait: come back later",
                )
            },
            Busy::Stopping => Failure::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the service stops"),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message, "field": self.field } });
        let mut response = (self.status, axum::Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The whole application over these routes; the routes alone, for whoever tests that none is open.
pub fn application(app: &App, routes: Vec<Registered>) -> (Router, Vec<Route>) {
    let mut table = Vec::new();
    let mut router = Router::new();
    for (route, answers) in routes {
        let guard = Guard { app: app.clone(), role: route.role, path: route.path };
        router = router.route(route.path, answers.layer(middleware::from_fn_with_state(guard, stand_guard)));
        table.push(route);
    }
    let guard = Guard { app: app.clone(), role: Some(Role::Viewer), path: "" };
    let unknown = || async { Failure::new(StatusCode::NOT_FOUND, "unknown_path", "there is nothing here") };
    let wrong_method = || async {
        Failure::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", "this path takes other methods")
    };
    let router = router
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn_with_state(guard, look_at_host))
        .with_state(app.clone());
    (router, table)
}

/// What the guard of one route knows.
#[derive(Clone)]
struct Guard {
    app: App,
    role: Option<Role>,
    path: &'static str,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The one value of a header; nothing if it is missing, an error if there are several or it is no text.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Failure> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    let wrong = || {
        Failure::new(
            StatusCode::BAD_REQUEST,
            "bad_header",
            format!("the header {name} must be one line of text"),
        )
    };
    match (first, values.next()) {
        (_, Some(_)) => Err(wrong()),
        (None, None) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| wrong()),
    }
}

/// Host and origin are looked at before anything else, for every path.
async fn look_at_host(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let checked = check_host(&guard.app, request.headers());
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    };
    let headers = response.headers_mut();
    let policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn check_host(app: &App, headers: &HeaderMap) -> Result<(), Failure> {
    let refuse = |code, message: &str| Err(Failure::new(StatusCode::FORBIDDEN, code, message));
    let host = only(headers, &header::HOST)?;
    if !host.is_some_and(|host| app.hosts.iter().any(|known| known == host)) {
        return refuse("wrong_host", "the Host header names another server");
    }
    if let Some(origin) = only(headers, &header::ORIGIN)? {
        let scheme = if app.is_proxied { "https" } else { "http" };
        if host.is_none_or(|host| origin != format!("{scheme}://{host}")) {
            return refuse("wrong_origin", "the request comes from another site");
        }
    }
    let site = only(headers, &HeaderName::from_static("sec-fetch-site"))?;
    if site.is_some_and(|site| site != "same-origin" && site != "none") {
        return refuse("wrong_origin", "the request comes from another site");
    }
    Ok(())
}

/// The session that a request shows, if it does.
pub fn session_of(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    cookies.split(';').find_map(|cookie| cookie.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

async fn stand_guard(State(guard): State<Guard>, mut request: Request<Body>, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let response = match admit(&guard, &request) {
        // Somebody with a browser is asked for the token instead.
        Err(failure) if failure.status == StatusCode::UNAUTHORIZED && is_browsing(&request) => {
            Redirect::to("/login").into_response()
        }
        Err(failure) => failure.into_response(),
        Ok(caller) => {
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            match read_body(request).await {
                Ok(request) => next.run(request).await,
                Err(failure) => failure.into_response(),
            }
        }
    };
    guard.app.metrics.count(&method, guard.path, response.status(), began.elapsed());
    response
}

/// The request with its whole body, which is bounded in bytes and time.
async fn read_body(request: Request<Body>) -> Result<Request<Body>, Failure> {
    let large = || {
        let message = format!("the body has more than {BODY_BYTES_MAX} bytes");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    };
    if (BODY_BYTES_MAX as u64) < length_of(request.headers()) {
        return Err(large());
    }
    let (parts, body) = request.into_parts();
    match tokio::time::timeout(body_patience(), axum::body::to_bytes(body, BODY_BYTES_MAX)).await {
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
        Ok(Err(_)) => Err(large()),
        Err(_) => Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body has not come in time")),
    }
}

/// How long a body may take.
fn body_patience() -> Duration {
    static PATIENCE: OnceLock<Duration> = OnceLock::new();
    *PATIENCE.get_or_init(|| {
        let said = std::env::var(BODY_PATIENCE_WORD).ok().and_then(|text| text.parse().ok());
        said.map_or(BODY_PATIENCE, Duration::from_millis).min(BODY_PATIENCE)
    })
}

/// Whether a browser asks for a page and shows no token.
fn is_browsing(request: &Request<Body>) -> bool {
    let headers = request.headers();
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    request.method() == Method::GET
        && accepts.contains("text/html")
        && !headers.contains_key(header::AUTHORIZATION)
}

/// Who calls, if the call is allowed.
fn admit(guard: &Guard, request: &Request<Body>) -> Result<Option<Caller>, Failure> {
    let headers = request.headers();
    let is_write = !matches!(*request.method(), Method::GET | Method::HEAD);
    let has_body = headers.contains_key(header::CONTENT_TYPE)
        || 0 < length_of(headers)
        || headers.contains_key(header::TRANSFER_ENCODING);
    if is_write && has_body {
        let kind = only(headers, &header::CONTENT_TYPE)?.unwrap_or_default();
        if kind.split(';').next().map(str::trim) != Some("application/json") {
            let message = "the body must be application/json";
            return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "wrong_type", message));
        }
    }
    let Some(role) = guard.role else { return Ok(None) };
    let caller = recognise(&guard.app, peer_of(&guard.app, request), headers)?;
    if caller.role < role {
        let message = format!("this needs the role {}, the token has {}", role.name(), caller.role.name());
        return Err(Failure::new(StatusCode::FORBIDDEN, "forbidden", message));
    }
    if let Some(csrf) = caller.csrf.as_ref().filter(|_| is_write) {
        let is_shown = only(headers, &CSRF)?.is_some_and(|shown| shown == csrf);
        let is_same_origin = headers.contains_key(header::ORIGIN);
        if !is_shown || !is_same_origin {
            let message = "writes with a session need the header x-csrf-token and the same origin";
            return Err(Failure::new(StatusCode::FORBIDDEN, "csrf", message));
        }
    }
    spend(&guard.app, caller.token)?;
    Ok(Some(caller))
}

fn length_of(headers: &HeaderMap) -> u64 {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// Where a request comes from. Behind a proxy that is what the proxy has written last: what stands before it came from outside.
pub fn peer_of<B>(app: &App, request: &Request<B>) -> Peer {
    let forwarded = || {
        let lines = request.headers().get_all("x-forwarded-for");
        let last = lines.iter().next_back()?.to_str().ok()?.rsplit(',').next()?.trim();
        last.parse::<IpAddr>().ok().map(Peer::new)
    };
    let connected = || request.extensions().get::<Peer>().copied();
    let nobody = Peer::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    app.is_proxied.then(forwarded).flatten().or_else(connected).unwrap_or(nobody)
}

/// Looks at a token, if so many wrong ones have not come from there that it is not looked at.
pub fn attempt<T>(
    app: &App,
    peer: Peer,
    token: &str,
    look: impl FnOnce(&mut Doorkeeper, Digest) -> Option<T>,
) -> Result<Option<T>, Failure> {
    let (now, digest) = (Instant::now(), hash_of(token));
    if let Err(wait) = lock(&app.attempts).may_try(peer, &digest, now) {
        let message = "too many wrong tokens came from this address: come back later";
        let failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "too_many_attempts", message);
        return Err(Failure { retry_after: Some(wait.as_secs_f64().ceil().max(1.0) as u64), ..failure });
    }
    let found = look(&mut lock(&app.keeper), digest);
    lock(&app.attempts).tried(peer, digest, found.is_some(), now);
    Ok(found)
}

fn recognise(app: &App, peer: Peer, headers: &HeaderMap) -> Result<Caller, Failure> {
    let caller = match only(headers, &header::AUTHORIZATION)? {
        // What is no bearer token is an empty one, which nobody has.
        Some(shown) => {
            attempt(app, peer, shown.strip_prefix("Bearer ").unwrap_or_default(), Doorkeeper::by_token)?
        }
        None => {
            let keeper = lock(&app.keeper);
            session_of(headers).and_then(|session| keeper.by_session(session, Instant::now()))
        }
    };
    let message = "a valid token is needed: Authorization: Bearer TOKEN";
    caller.ok_or_else(|| Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", message))
}

/// Takes one from what the token has left.
fn spend(app: &App, token: Digest) -> Result<(), Failure> {
    let (now, rate) = (Instant::now(), f64::from(app.rate));
    let mut buckets = lock(&app.buckets);
    let (left, at) = buckets.entry(token).or_insert((rate, now));
    *left = (*left + rate * now.duration_since(*at).as_secs_f64()).min(rate);
    *at = now;
    if *left < 1.0 {
        let failure = Failure::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_fast",
            format!("at most {rate} requests a second"),
        );
        return Err(Failure { retry_after: Some(1), ..failure });
    }
    *left -= 1.0;
    Ok(())
}

/// Serves until it is asked to stop; open requests are finished.
pub async fn serve(listener: TcpListener, router: Router, should_stop: impl Fn() -> bool) -> Result<()> {
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = looks.tick() => {
                if should_stop() {
                    break;
                }
                continue;
            }
        };
        // A connection that broke before it was taken is nobody's fault; with too many open files it is tried again.
        let Ok((stream, address)) = accepted else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else { continue };
        let _ = stream.set_nodelay(true);
        let (service, peer) = (TowerToHyperService::new(router.clone()), Peer::new(address.ip()));
        let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer);
            hyper::service::Service::call(&service, request)
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_PATIENCE)
            .max_headers(64)
            .max_buf_size(64 << 10);
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            let _ = connection.await;
            drop(permit);
        });
    }
    drop(listener);
    tokio::time::timeout(Duration::from_secs(10), graceful.shutdown()).await.ok();
    Ok(())
}

/// Listens on this address.
pub async fn listen(address: std::net::SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{address} cannot be listened on"))
}
