//! What programs ask over HTTP: worlds, decisions, outcomes, events, and the document that describes them.
//!
//! Bodies are read field by field, so that an error names the field, what it is and what is allowed. Floats are made here, for
//! JSON, and nowhere else. Clauses: VM-13, LOG-1.

mod export;
pub(crate) mod happened;
mod log;
mod new_world;

pub use new_world::{read_beside, read_world};

use crate::core::{Decided, Message, PatchLine, Seen};
use crate::http::{App, BODY_BYTES_MAX, COOKIE, Failure, Registered, attempt, peer_of, route, session_of};
use crate::page;
use crate::tokens::Role;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use bem_base::environment::{Bits, Forbidden, Outcome};
use bem_base::plain::plain;
use bem_data::Declared;
use bem_engine::agent::Agent;
use bem_runtime::input::WorldSpec;
use bem_runtime::statistics::{Moments, Statistics};
use bem_runtime::world::World;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
use utoipa::{OpenApi, ToSchema};

/// Worlds of one page of a list, at most and by default.
pub const PAGE_MAX: usize = 100;

/// Every route of the decision service, with the role that it needs.
pub fn routes() -> Vec<Registered> {
    use Role::{Admin, Annotator, Viewer};
    let (read, write) = (Method::GET, Method::POST);
    let mut routes = vec![
        route(read.clone(), "/healthz", None, get(healthz)),
        route(read.clone(), "/readyz", None, get(readyz)),
        route(write.clone(), "/login", None, post(login)),
        route(read.clone(), "/login", None, get(page::login_page)),
        route(read.clone(), "/style.css", None, get(page::style)),
        route(read.clone(), "/app.js", None, get(page::script)),
        route(write.clone(), "/logout", Some(Viewer), post(logout)),
        route(read.clone(), "/metrics", Some(Viewer), get(metrics)),
        route(read.clone(), "/openapi.json", Some(Viewer), get(openapi)),
        route(read.clone(), "/v1/worlds", Some(Viewer), get(list_worlds)),
        route(write.clone(), "/v1/worlds", Some(Admin), post(create_world)),
        route(read.clone(), "/v1/worlds/{name}", Some(Viewer), get(show_world)),
        route(Method::DELETE, "/v1/worlds/{name}", Some(Admin), delete(forget_world)),
        route(write.clone(), "/v1/worlds/{name}/decide", Some(Annotator), post(decide)),
        route(write, "/v1/worlds/{name}/reward", Some(Annotator), post(reward)),
        route(read.clone(), "/v1/worlds/{name}/export", Some(Viewer), get(export::export)),
        route(read.clone(), "/v1/worlds/{name}/log", Some(Viewer), get(log::show_log)),
        route(read.clone(), "/v1/worlds/{name}/explain", Some(Viewer), get(crate::explain::explain)),
        route(read.clone(), "/v1/patches", Some(Viewer), get(happened::list_patches)),
        route(read.clone(), "/v1/history", Some(Viewer), get(happened::show_history)),
        route(read.clone(), "/v1/events", Some(Viewer), get(happened::events)),
        route(read.clone(), "/", Some(Viewer), get(page::worlds_page)),
        route(read, "/worlds/{name}", Some(Viewer), get(page::world_page)),
    ];
    routes.extend(crate::people::routes());
    routes
}

/// The document that describes the service, made from its handlers.
#[derive(OpenApi)]
#[openapi(
    info(title = "BEM decision service", description = "Decisions now, rewards later."),
    paths(
        healthz,
        readyz,
        login,
        logout,
        metrics,
        list_worlds,
        create_world,
        show_world,
        forget_world,
        decide,
        reward,
        export::export,
        log::show_log,
        crate::explain::explain,
        happened::list_patches,
        happened::show_history,
        happened::events,
        crate::people::list,
        crate::people::ask,
        crate::people::next,
        crate::people::lease,
        crate::people::answer,
        crate::people::skip,
        crate::people::release,
        crate::people::preview,
        crate::people::answers,
        crate::people::undo,
        crate::people::statistics,
        crate::people::set_control,
        crate::people::history::verify,
        crate::people::history::checkpoint,
        crate::tools::list,
        crate::tools::call,
        crate::domains::show,
        crate::domains::take_in,
        openapi
    ),
    components(schemas(ErrorBody, NewWorld, DecideRequest, DecideAnswer, RewardRequest))
)]
pub struct Document;

/// Every error has this form.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it stands in the document only")]
pub(crate) struct ErrorBody {
    /// `code`, `message` and `field`.
    error: BTreeMap<String, String>,
}

/// A new world.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it stands in the document only")]
struct NewWorld {
    name: String,
    /// Bits of an observation, 0 to 256; left out where features are named.
    obs_bits: Option<u16>,
    /// Named features in place of bits.
    features: Option<Vec<Value>>,
    actions: u16,
    /// Smallest and largest reward, in milli-units.
    reward_range: [i32; 2],
    /// Smallest and largest sum of the rewards of an episode; the horizon times the range of a reward by default.
    return_range: Option<[i64; 2]>,
    /// Bits that belong together: first bit and width.
    fields: Option<Vec<[u16; 2]>>,
    /// Steps of an episode; 1 by default.
    horizon: Option<u32>,
    /// The chance that every allowed action has at least; 0 by default.
    min_propensity: Option<f64>,
    /// Decisions after which a reward is too late.
    expire_after: Option<u32>,
    /// What must never be done: observation, of whose text a dash leaves a bit free, and action.
    forbidden: Option<Vec<Value>>,
    /// What is BAD, by rules over features: what is seen after a step, or before it where actions are named.
    bad_if: Option<Vec<Value>>,
    /// What must never be done, by rules over features and actions.
    forbid: Option<Vec<Value>>,
    /// An action that is known to do, and the part of its return that may be risked while it learns.
    floor: Option<Value>,
}

/// A decision that is asked for.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it stands in the document only")]
struct DecideRequest {
    /// Zeros and ones, or named values.
    obs: Value,
    /// The name of the episode, where the horizon is above 1.
    episode: Option<String>,
}

/// A decision.
#[derive(ToSchema, serde::Serialize)]
struct DecideAnswer {
    decision: String,
    action: u16,
    propensity: f64,
    expert: String,
    step: u64,
}

/// What a decision brought.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it stands in the document only")]
struct RewardRequest {
    decision: String,
    /// In milli-units.
    reward: i32,
    done: Option<bool>,
    bad: Option<bool>,
    /// What is seen after the step, as in decide; `bad_if` looks at it.
    obs: Option<Value>,
}

/// The fields of a body.
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a body.
    pub fn read(bytes: &[u8]) -> Result<Fields, Failure> {
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            Ok(_) => Err(Failure::new(StatusCode::BAD_REQUEST, "bad_json", "the body must be a JSON object")),
            Err(error) => Err(Failure::new(
                StatusCode::BAD_REQUEST,
                "bad_json",
                format!("the body is no JSON: {error}"),
            )),
        }
    }

    /// Takes a field out; nothing where it is missing or null.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// A field that must be text.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Failure::bad(name, format!("{name} must be text"))),
        }
    }

    /// A field that must be there.
    pub fn must<T>(name: &str, value: Option<T>) -> Result<T, Failure> {
        value.ok_or_else(|| Failure::bad(name, format!("{name} is missing")))
    }

    /// A field that must be a whole number.
    pub fn whole(&mut self, name: &str) -> Result<Option<i64>, Failure> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_i64().map(Some).ok_or_else(|| Failure::bad(name, format!("{name} must be a whole number")))
    }

    /// A whole number in the range of its type.
    pub fn number<T: TryFrom<i64>>(&mut self, name: &str) -> Result<Option<T>, Failure> {
        let Some(value) = self.whole(name)? else { return Ok(None) };
        let malformed = || Failure::bad(name, format!("{name} {value} is out of range"));
        T::try_from(value).map(Some).map_err(|_| malformed())
    }

    /// A field that must be true or false.
    pub fn flag(&mut self, name: &str) -> Result<Option<bool>, Failure> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(Failure::bad(name, format!("{name} must be true or false"))),
        }
    }

    /// A field that must be a list.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, Failure> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(Failure::bad(name, format!("{name} must be a list"))),
        }
    }

    /// Refuses fields that are left.
    pub fn finish(self, allowed: &str) -> Result<(), Failure> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => {
                let shown: String = name.chars().take(64).collect();
                Err(Failure::bad(shown.clone(), format!("{shown:?} is no field: {allowed}")))
            }
        }
    }
}

#[utoipa::path(get, path = "/healthz", responses((status = 200, description = "It works"), (status = 503, description = "It does not")))]
async fn healthz(State(app): State<App>) -> Response {
    let gauges = &app.handle.gauges;
    let ok = !gauges.failed.load(std::sync::atomic::Ordering::Relaxed);
    let step = gauges.inputs.load(std::sync::atomic::Ordering::Relaxed);
    let status = if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let learns = !gauges.learning_failed.load(std::sync::atomic::Ordering::Relaxed);
    let body = json!({ "ok": ok, "version": env!("CARGO_PKG_VERSION"), "step": step, "learning": learns });
    (status, Json(body)).into_response()
}

#[utoipa::path(get, path = "/readyz", responses((status = 200, description = "A request that comes now is taken"),
    (status = 503, description = "It would not be: the queue is full, or the service stops")))]
async fn readyz(State(app): State<App>) -> Response {
    let is_ready = app.handle.is_ready();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({ "ready": is_ready }))).into_response()
}

#[utoipa::path(post, path = "/login", responses((status = 200, description = "A session in a cookie"), (status = 401, body = ErrorBody),
    (status = 429, description = "Too many wrong tokens came from this address", body = ErrorBody)))]
async fn login(State(app): State<App>, request: Request) -> Result<Response, Failure> {
    let peer = peer_of(&app, &request);
    let body = axum::body::to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let mut fields = Fields::read(&body.unwrap_or_default())?;
    let token = Fields::must("token", fields.text("token")?)?;
    fields.finish("token")?;
    let failed =
        |_| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", "no session can be made");
    let session = attempt(&app, peer, &token, |keeper, _| {
        keeper.log_in(&token, Instant::now()).map_err(failed).transpose()
    })?;
    let Some((secret, csrf)) = session.transpose()? else {
        return Err(
            Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", "the token is not known").about("token")
        );
    };
    let secure = if app.is_proxied { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Strict{secure}");
    Ok(([(header::SET_COOKIE, cookie)], Json(json!({ "csrf": csrf }))).into_response())
}

#[utoipa::path(post, path = "/logout", responses((status = 200, description = "The session is over")))]
async fn logout(State(app): State<App>, headers: HeaderMap) -> Response {
    if let Some(session) = session_of(&headers) {
        app.keeper.lock().unwrap_or_else(std::sync::PoisonError::into_inner).log_out(session);
    }
    let cookie = format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    ([(header::SET_COOKIE, cookie)], Json(json!({}))).into_response()
}

#[utoipa::path(get, path = "/metrics", responses((status = 200, description = "OpenMetrics text")))]
async fn metrics(State(app): State<App>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.text(&app.handle)).into_response()
}

#[utoipa::path(get, path = "/openapi.json", responses((status = 200, description = "This document")))]
async fn openapi() -> Response {
    let text = Document::openapi().to_json().unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The parts of a query that page a list.
pub type Paging = Query<BTreeMap<String, String>>;

pub(crate) fn limit_of(query: &BTreeMap<String, String>) -> Result<usize, Failure> {
    let Some(text) = query.get("limit") else { return Ok(PAGE_MAX) };
    let limit = text.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit));
    limit.ok_or_else(|| Failure::bad("limit", format!("limit must be a whole number from 1 to {PAGE_MAX}")))
}

#[utoipa::path(get, path = "/v1/worlds", params(("after" = Option<String>, Query), ("limit" = Option<usize>, Query)),
    responses((status = 200, description = "The worlds, by name"), (status = 401, body = ErrorBody)))]
async fn list_worlds(State(app): State<App>, Query(query): Paging) -> Result<Json<Value>, Failure> {
    let limit = limit_of(&query)?;
    let after = query.get("after").cloned().unwrap_or_default();
    let worlds = app.handle.look(move |service| {
        let later = service.worlds().filter(|(_, world)| after < world.spec().name);
        later.take(limit).map(|(_, world)| summary(world)).collect::<Vec<Value>>()
    });
    let worlds = worlds.await?;
    let next = worlds.last().filter(|_| worlds.len() == limit).map(|world| world["world"].clone());
    Ok(Json(json!({ "worlds": worlds, "after": next })))
}

#[utoipa::path(post, path = "/v1/worlds", request_body = NewWorld,
    responses((status = 201, description = "It is there now"), (status = 200, description = "It was there already"),
        (status = 400, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn create_world(State(app): State<App>, body: Bytes) -> Result<Response, Failure> {
    let mut spec = read_world(&body)?;
    let name = spec.name.clone();
    let asked = name.clone();
    let known =
        app.handle.look(move |service| service.find(&asked).ok().map(|(_, world)| world.spec().clone()));
    if let Some(known) = known.await? {
        spec = read_beside(&body, &known)?;
    }
    let is_new = app.handle.ask(|reply| Message::Create(Box::new(spec), reply)).await??;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(json!({ "world": name }))).into_response())
}

/// What is seen, as the client says it.
fn read_seen(obs: Value) -> Result<Seen, Failure> {
    match obs {
        Value::String(text) => {
            let bits = Bits::from_text(&text);
            let wrong = || Failure::bad("obs", "obs must be text of at most 256 zeros and ones");
            Ok(Seen::Bits(bits.ok_or_else(wrong)?, text.len()))
        }
        Value::Object(values) => Ok(Seen::Named(values)),
        _ => {
            let message = "obs must be text of zeros and ones, or an object of named values";
            Err(Failure::bad("obs", message))
        }
    }
}

#[utoipa::path(post, path = "/v1/worlds/{name}/decide", params(("name" = String, Path)), request_body = DecideRequest,
    responses((status = 200, body = DecideAnswer), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 429, body = ErrorBody)))]
async fn decide(
    State(app): State<App>,
    Path(world): Path<String>,
    body: Bytes,
) -> Result<Json<DecideAnswer>, Failure> {
    let mut fields = Fields::read(&body)?;
    let seen = read_seen(Fields::must("obs", fields.take("obs"))?)?;
    let episode = fields.text("episode")?.unwrap_or_default();
    fields.finish("obs and episode are")?;
    let asked = app.handle.ask(|reply| Message::Decide { world, observation: seen, episode, reply });
    let Decided { decision, action, propensity, expert } = asked.await??;
    let propensity = propensity as f64 / (1u64 << 32) as f64;
    Ok(Json(DecideAnswer { decision: decision.to_string(), action, propensity, expert, step: decision }))
}

#[utoipa::path(post, path = "/v1/worlds/{name}/reward", params(("name" = String, Path)), request_body = RewardRequest,
    responses((status = 200, description = "It counts, once"), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 429, body = ErrorBody)))]
async fn reward(
    State(app): State<App>,
    Path(world): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Failure> {
    let mut fields = Fields::read(&body)?;
    let text = Fields::must("decision", fields.text("decision")?)?;
    let unknown = || {
        let message = "decision is none that was made here: give back what decide answered";
        Failure::new(StatusCode::NOT_FOUND, "unknown_decision", message).about("decision")
    };
    let decision: u64 =
        text.parse().ok().filter(|number: &u64| number.to_string() == text).ok_or_else(unknown)?;
    let reward = Fields::must("reward", fields.number("reward")?)?;
    let (done, bad) = (fields.flag("done")?, fields.flag("bad")?.unwrap_or(false));
    let seen = fields.take("obs").map(read_seen).transpose()?;
    fields.finish("decision, reward, done, bad and obs are")?;
    let outcome = Outcome { reward, done: false, bad };
    let asked = app.handle.ask(|reply| Message::Reward { world, decision, outcome, done, seen, reply });
    let counted = asked.await??;
    Ok(Json(json!({ "decision": text, "counted": counted })))
}

#[utoipa::path(delete, path = "/v1/worlds/{name}", params(("name" = String, Path)),
    responses((status = 200, description = "It is forgotten; its history stays"), (status = 404, body = ErrorBody)))]
async fn forget_world(State(app): State<App>, Path(name): Path<String>) -> Result<Json<Value>, Failure> {
    let world = name.clone();
    app.handle.ask(|reply| Message::Forget(world, reply)).await??;
    Ok(Json(json!({ "forgotten": name })))
}

/// A mean with its 95 % interval; nothing where there are no values.
pub fn interval(moments: &Moments) -> Option<(f64, f64)> {
    let count = moments.count as f64;
    if moments.count == 0 {
        return None;
    }
    let mean = moments.sum as f64 / count;
    let variance = (moments.squares as f64 / count - mean * mean).max(0.0);
    Some((mean, 1.96 * (variance / count).sqrt()))
}

fn moments_json(moments: &Moments) -> Value {
    match interval(moments) {
        None => Value::Null,
        Some((mean, half)) => {
            json!({ "mean": mean, "interval95": [mean - half, mean + half], "episodes": moments.count })
        }
    }
}

/// One line about a world.
fn summary(world: &World) -> Value {
    let spec = world.spec();
    json!({
        "world": spec.name,
        "obs_bits": spec.shape.observation_bits,
        "actions": spec.shape.actions,
        "horizon": spec.shape.horizon,
        "decisions": world.statistics().decisions,
        "online_mean": interval(&world.statistics().returns).map(|(mean, _)| mean),
    })
}

/// Everything that is shown of a world, taken out of the service at once.
pub struct Shown {
    /// What it is.
    pub spec: WorldSpec,
    /// What it earned.
    pub statistics: Statistics,
    /// What acts.
    pub agent: Agent,
    /// What that is, in words.
    pub words: String,
    /// Contexts of plain actions.
    pub contexts: usize,
    /// Episodes that are open.
    pub open: usize,
    /// The latest patches.
    pub patches: Vec<PatchLine>,
}

/// Takes out what is shown of a world.
pub async fn shown(app: &App, name: String) -> Result<Shown, Failure> {
    let found = app.handle.look(move |service| {
        service.find(&name).map(|(_, world)| {
            let force = world.acting().in_force();
            let own = world.patched().iter().rev().map(|patched| PatchLine::of(&name, patched));
            Shown {
                spec: world.spec().clone(),
                statistics: world.statistics().clone(),
                agent: force.agent,
                words: force.words,
                contexts: force.contexts,
                open: world.open_episodes(),
                patches: own.collect(),
            }
        })
    });
    Ok(found.await??)
}

/// What a world declares about itself, as JSON.
struct Said {
    features: Value,
    bad_if: Value,
    forbid: Value,
}

fn said(spec: &WorldSpec) -> Said {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    match Declared::from_json(&spec.note, spec.shape.actions) {
        Ok(declared) => Said {
            features: read(&declared.encoder.to_json()),
            bad_if: declared.bad_if().map(read).collect(),
            forbid: declared.forbid().map(read).collect(),
        },
        Err(_) => Said { features: Value::Null, bad_if: json!([]), forbid: json!([]) },
    }
}

/// A forbidden pair, as it may be declared.
fn pair_json(pair: &Forbidden, spec: &WorldSpec) -> Value {
    let obs = pair.seen.to_text(usize::from(spec.shape.observation_bits));
    json!({ "obs": obs, "action": pair.action })
}

#[utoipa::path(get, path = "/v1/worlds/{name}", params(("name" = String, Path)),
    responses((status = 200, description = "Shape, statistics, circuit in force, patches"), (status = 404, body = ErrorBody)))]
async fn show_world(State(app): State<App>, Path(name): Path<String>) -> Result<Json<Value>, Failure> {
    let shown = shown(&app, name).await?;
    let (shape, statistics) = (&shown.spec.shape, &shown.statistics);
    let policy = shown.agent.policy();
    let best = statistics.best_fixed();
    let said = said(&shown.spec);
    Ok(Json(json!({
        "world": shown.spec.name,
        "obs_bits": shape.observation_bits,
        "actions": shape.actions,
        "horizon": shape.horizon,
        "reward_range": [shape.reward_min, shape.reward_max],
        "return_range": [shape.return_min, shape.return_max],
        "fields": shape.fields.iter().map(|field| [field.low, field.width]).collect::<Vec<_>>(),
        "min_propensity": shown.spec.min_propensity.to_raw() as f64 / (1u64 << 32) as f64,
        "expire_after": shown.spec.expire_after,
        "features": said.features, "bad_if": said.bad_if, "forbid": said.forbid,
        "forbidden": shown.spec.forbidden.iter().map(|pair| pair_json(pair, &shown.spec)).collect::<Vec<_>>(),
        "floor": shown.spec.floor.map(|floor| json!({ "action": floor.action, "risk": f64::from(floor.risk) / 1_000.0 })),
        "statistics": {
            "decisions": statistics.decisions, "rewards": statistics.rewards, "lost": statistics.lost, "open": shown.open,
            "bad": statistics.bad, "drawn": statistics.drawn, "episodes": statistics.returns.count, "rounds": statistics.rounds,
        },
        "online_mean": interval(&statistics.returns).map(|(mean, _)| mean),
        "online": moments_json(&statistics.returns),
        "baselines": {
            "random": moments_json(&statistics.random),
            "best_fixed": best.map(|(action, moments)| json!({ "action": action, "value": moments_json(&moments) })),
        },
        "circuit": {
            "words": plain(&shown.words), "gates": policy.gates(), "memory_bits": policy.memory_bits(),
            "reads": policy.reads(), "contexts": shown.contexts, "digest": policy.digest().to_hex(),
        },
        "patches_applied": statistics.applied,
        "patches_rejected": statistics.rejected,
        "proofs_checked": statistics.proofs,
        "patches": shown.patches,
    })))
}
