//! People over HTTP: questions are listed, leased, answered, skipped and given back; answers are previewed and taken back.
//!
//! The same operations serve programs, the terminal and the pages. A person is known to the ledger by an opaque number made
//! from the hash of their token. Leases last ten minutes by the host's clock, if nobody says otherwise; that one has run out is
//! an input.
//! Clauses: HUM-2, HUM-3, HUM-4, HUM-12; decisions D-29, D-70, D-76.

pub mod difference;
pub mod history;
pub mod keys;
pub mod pages;
pub mod tasks;
pub mod view;

use crate::api::{Fields, Paging, limit_of};
use crate::core::Handle;
use crate::http::{App, Failure, Registered, route};
use crate::tokens::{Caller, Role};
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Extension, Json};
use bem_base::digest::{Digest, hash_parts};
use bem_base::fixed::Fixed;
use bem_people::kinds::{Mode, QuestionKind, Skip};
use bem_people::table::{Person, skip_reason};
use bem_runtime::service::{Refusal, Service};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tasks::Asked;

/// How long a lease lasts where nobody says otherwise.
pub const LEASE_LASTS: Duration = Duration::from_secs(600);
/// How often leases are looked at.
const LEASE_LOOK: Duration = Duration::from_secs(1);

/// The routes of this layer.
pub fn routes() -> Vec<Registered> {
    use Role::{Admin, Annotator, Viewer};
    let (read, write) = (Method::GET, Method::POST);
    vec![
        route(read.clone(), "/v1/questions", Some(Viewer), get(list)),
        route(write.clone(), "/v1/questions", Some(Annotator), post(ask)),
        route(write.clone(), "/v1/questions/next", Some(Annotator), post(next)),
        route(write.clone(), "/v1/questions/{id}/lease", Some(Annotator), post(lease)),
        route(write.clone(), "/v1/questions/{id}/answer", Some(Annotator), post(answer)),
        route(write.clone(), "/v1/questions/{id}/skip", Some(Annotator), post(skip)),
        route(write.clone(), "/v1/questions/{id}/release", Some(Annotator), post(release)),
        route(write.clone(), "/v1/questions/{id}/preview", Some(Annotator), post(preview)),
        route(read.clone(), "/v1/answers", Some(Viewer), get(answers)),
        route(write, "/v1/answers/{id}/undo", Some(Annotator), post(undo)),
        route(read.clone(), "/v1/people", Some(Viewer), get(statistics)),
        route(Method::PUT, "/v1/people/control", Some(Admin), put(set_control)),
        route(read.clone(), "/queue", Some(Viewer), get(pages::queue_page)),
        route(read.clone(), "/patches", Some(Viewer), get(pages::patches_page)),
        route(read.clone(), "/history", Some(Viewer), get(history::history_page)),
        route(Method::POST, "/v1/history/verify", Some(Viewer), post(history::verify)),
        route(read.clone(), "/v1/history/checkpoint", Some(Viewer), get(history::checkpoint)),
        route(read, "/queue.js", None, get(pages::script)),
    ]
}

/// The opaque number of whoever shows this token.
pub fn person_of(token: &Digest) -> Person {
    let digest = hash_parts("bem/person", &[token.as_bytes()]);
    let number = digest.as_bytes().iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte));
    number.max(1)
}

fn is_approver(caller: &Caller) -> bool {
    Role::Approver <= caller.role
}

/// A number in a path.
fn number_of(text: &str, field: &'static str) -> Result<u64, Failure> {
    let unknown = || {
        Failure::new(StatusCode::NOT_FOUND, "unknown_id", format!("{field} is no number that was given here"))
            .about(field)
    };
    text.parse().ok().filter(|number: &u64| number.to_string() == text).ok_or_else(unknown)
}

/// A lease is named by its question and how often that was leased.
fn lease_name(question: u64, generation: u32) -> String {
    format!("{question}-{generation}")
}

fn generation_of(fields: &mut Fields, question: u64) -> Result<u32, Failure> {
    let lease = Fields::must("lease", fields.text("lease")?)?;
    let lost = || {
        let message = "lease is none of this question: lease it first";
        Failure::new(StatusCode::CONFLICT, "lease_lost", message).about("lease")
    };
    let (named, generation) = lease.split_once('-').ok_or_else(lost)?;
    if named != question.to_string() {
        return Err(lost());
    }
    generation.parse().map_err(|_| lost())
}

/// What is said about a question by who holds its lease.
struct Leased {
    serial: u64,
    fields: Fields,
    generation: u32,
    person: Person,
}

impl Leased {
    fn read(id: &str, body: &[u8], caller: &Caller) -> Result<Leased, Failure> {
        let serial = number_of(id, "question")?;
        let mut fields = Fields::read(body)?;
        let generation = generation_of(&mut fields, serial)?;
        Ok(Leased { serial, fields, generation, person: person_of(&caller.token) })
    }
}

#[utoipa::path(get, path = "/v1/questions",
    params(("state" = Option<String>, Query), ("after" = Option<String>, Query), ("limit" = Option<usize>, Query)),
    responses((status = 200, description = "The questions that are open, the most pressing first")))]
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Query(query): Paging,
) -> Result<Json<Value>, Failure> {
    let limit = limit_of(&query)?;
    let state = tasks::state_of(query.get("state").map(String::as_str))?;
    let after = match query.get("after") {
        None => 0,
        Some(after) => number_of(after, "after")?,
    };
    let person = person_of(&caller.token);
    let page = app.handle.look(move |service| {
        let table = service.people().table();
        let (open, count) = tasks::open(service, state, after, limit);
        let questions: Vec<Value> =
            open.into_iter().map(|question| view::question(service, question, person)).collect();
        let queue: Vec<String> = table.queue(person, true).iter().map(|one| one.serial.to_string()).collect();
        (questions, count, queue)
    });
    let (questions, count, queue) = page.await?;
    let next = questions.last().filter(|_| questions.len() == limit).map(|last| last["question"].clone());
    Ok(Json(json!({ "questions": questions, "open": count, "order": queue, "after": next })))
}

#[utoipa::path(post, path = "/v1/questions", responses((status = 201, description = "It is asked"),
    (status = 400, description = "A field is wrong"), (status = 404, description = "What it is about is not there"),
    (status = 429, description = "Too many questions are open")))]
pub(crate) async fn ask(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Response, Failure> {
    let asked = Asked::read(&body)?;
    if asked.kind == QuestionKind::AdjustConfig && !is_approver(&caller) {
        let message = "questions about the configuration are asked by approvers and admins";
        return Err(Failure::new(StatusCode::FORBIDDEN, "needs_approver", message).about("kind"));
    }
    let person = person_of(&caller.token);
    let check = move |service: &Service| asked.check(service, person);
    let view = move |service: &Service, _: Option<u64>| tasks::asked(service);
    let asked = app.handle.act(check, view).await??;
    Ok((StatusCode::CREATED, Json(asked)).into_response())
}

#[utoipa::path(post, path = "/v1/questions/next", responses((status = 200, description = "The most pressing question for the caller, leased; null if there is none")))]
pub(crate) async fn next(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Failure> {
    let (person, approves) = (person_of(&caller.token), is_approver(&caller));
    let first = move |service: &Service| {
        let queue = service.people().table().queue(person, approves);
        let free = |serial: &u64| service.lease(*serial, person, approves).is_ok();
        queue.iter().map(|question| question.serial).find(free)
    };
    let check = move |service: &Service| match first(service) {
        Some(serial) => service.lease(serial, person, approves),
        None => Ok(None),
    };
    let lasts = app.lease;
    let view = move |service: &Service, _: Option<u64>| {
        let people = service.people();
        let mine =
            people.table().open().filter(|question| question.owner == person).max_by_key(|one| one.updated);
        let done = people.groups().people().get(&person).map_or(0, |record| record.answers);
        let open = people.table().queue(person, approves).len();
        let leased = mine.map(|question| leased(service, question.serial, person, lasts));
        json!({ "leased": leased, "open": open, "answered_by_you": done, "budget": people.budget() })
    };
    Ok(Json(app.handle.act(check, view).await??))
}

fn leased(service: &Service, serial: u64, person: Person, lasts: Duration) -> Value {
    match service.people().table().get(serial) {
        None => Value::Null,
        Some(question) => json!({
            "lease": lease_name(serial, question.generation),
            "lasts_seconds": lasts.as_secs(),
            "question": view::question(service, question, person),
            "html": pages::draw(service, question),
        }),
    }
}

#[utoipa::path(post, path = "/v1/questions/{id}/lease", params(("id" = String, Path)),
    responses((status = 200, description = "A lease, of ten minutes unless the server says otherwise"), (status = 403, description = "Only approvers"),
        (status = 404, description = "It is not open"), (status = 409, description = "Somebody else works on it")))]
pub(crate) async fn lease(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Failure> {
    let serial = number_of(&id, "question")?;
    let (person, approves) = (person_of(&caller.token), is_approver(&caller));
    let check = move |service: &Service| service.lease(serial, person, approves);
    let lasts = app.lease;
    let view = move |service: &Service, _: Option<u64>| leased(service, serial, person, lasts);
    Ok(Json(app.handle.act(check, view).await??))
}

#[utoipa::path(post, path = "/v1/questions/{id}/answer", params(("id" = String, Path)),
    responses((status = 200, description = "It took effect, once"), (status = 400, description = "A field is wrong; the question stays open"),
        (status = 404, description = "It is not open"), (status = 409, description = "The lease is lost, or there is another answer")))]
pub(crate) async fn answer(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Failure> {
    let Leased { serial, mut fields, generation, person } = Leased::read(&id, &body, &caller)?;
    let said = Fields::must("answer", fields.take("answer"))?;
    fields.finish("lease and answer are")?;
    let check = move |service: &Service| {
        let bytes = view::read_answer(service, serial, person, &said)?.to_bytes();
        service.answer(serial, generation, person, bytes)
    };
    let view = move |service: &Service, _: Option<u64>| match service.given_by(serial, person) {
        Some((number, given)) => view::given(service, number, given, person),
        // What loosens safety waits for a second person.
        None => json!({ "question": serial.to_string(), "answer": null, "waits_for": "a second approver" }),
    };
    Ok(Json(app.handle.act(check, view).await??))
}

#[utoipa::path(post, path = "/v1/questions/{id}/skip", params(("id" = String, Path)),
    responses((status = 200, description = "Nobody will answer it"), (status = 409, description = "The lease is lost")))]
pub(crate) async fn skip(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Failure> {
    let Leased { serial, mut fields, generation, person } = Leased::read(&id, &body, &caller)?;
    let reason = match fields.text("reason")? {
        None => Skip::Declined,
        Some(name) => skip_reason(&name)
            .ok_or_else(|| Failure::bad("reason", "reason must be declined, obsolete or withdrawn"))?,
    };
    fields.finish("lease and reason are")?;
    let check = move |service: &Service| service.skip(serial, generation, person, reason).map(Some);
    let view = move |_: &Service, _: Option<u64>| json!({ "question": serial.to_string(), "skipped": reason.name() });
    Ok(Json(app.handle.act(check, view).await??))
}

#[utoipa::path(post, path = "/v1/questions/{id}/release", params(("id" = String, Path)),
    responses((status = 200, description = "It waits again"), (status = 409, description = "The lease is lost")))]
pub(crate) async fn release(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Failure> {
    let Leased { serial, fields, generation, person } = Leased::read(&id, &body, &caller)?;
    fields.finish("lease is")?;
    let check = move |service: &Service| service.release(serial, generation, person).map(Some);
    let view = move |_: &Service, _: Option<u64>| json!({ "question": serial.to_string(), "released": true });
    Ok(Json(app.handle.act(check, view).await??))
}

#[utoipa::path(post, path = "/v1/questions/{id}/preview", params(("id" = String, Path)),
    responses((status = 200, description = "What the answer would change"), (status = 400, description = "A field is wrong")))]
pub(crate) async fn preview(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Failure> {
    let serial = number_of(&id, "question")?;
    let mut fields = Fields::read(&body)?;
    let said = Fields::must("answer", fields.take("answer"))?;
    fields.finish("answer is")?;
    let person = person_of(&caller.token);
    let seen = app.handle.look(move |service| {
        let bytes = view::read_answer(service, serial, person, &said)?.to_bytes();
        let changes = service.preview(serial, &bytes, person)?;
        Ok::<Value, Refusal>(
            json!({ "question": serial.to_string(), "changes": view::changes(service, &changes) }),
        )
    });
    Ok(Json(seen.await??))
}

#[utoipa::path(get, path = "/v1/answers", params(("after" = Option<String>, Query), ("limit" = Option<usize>, Query)),
    responses((status = 200, description = "The latest answers with what each changed, the latest first")))]
pub(crate) async fn answers(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Query(query): Paging,
) -> Result<Json<Value>, Failure> {
    let person = person_of(&caller.token);
    let limit = limit_of(&query)?;
    let before = match query.get("after") {
        None => u64::MAX,
        Some(after) => number_of(after, "after")?,
    };
    let page = app.handle.look(move |service| {
        let given = service.people().given().range(..before).rev().take(limit);
        given.map(|(number, given)| view::given(service, *number, given, person)).collect::<Vec<Value>>()
    });
    let answers = page.await?;
    let next = answers.last().filter(|_| answers.len() == limit).map(|last| last["answer"].clone());
    Ok(Json(json!({ "answers": answers, "after": next })))
}

#[utoipa::path(post, path = "/v1/answers/{id}/undo", params(("id" = String, Path)),
    responses((status = 200, description = "It is taken back"), (status = 403, description = "It is somebody else's"),
        (status = 404, description = "It is unknown, or too old"), (status = 409, description = "It cannot be taken back any more")))]
pub(crate) async fn undo(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Failure> {
    let number = number_of(&id, "answer")?;
    let (person, approves) = (person_of(&caller.token), is_approver(&caller));
    let check = move |service: &Service| service.undo(number, person, approves);
    let view = move |service: &Service, _: Option<u64>| match service.people().given().get(&number) {
        Some(given) => {
            let mut seen = view::given(service, number, given, person);
            seen["taken_back"] = view::undone(service);
            seen
        }
        None => Value::Null,
    };
    Ok(Json(app.handle.act(check, view).await??))
}

#[utoipa::path(get, path = "/v1/people", responses((status = 200, description = "Control, counters, agreement and people")))]
pub(crate) async fn statistics(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Failure> {
    let person = person_of(&caller.token);
    Ok(Json(app.handle.look(move |service| view::people(service, person)).await?))
}

#[utoipa::path(put, path = "/v1/people/control", responses((status = 200, description = "The control in force"),
    (status = 400, description = "A field is out of range"), (status = 409, description = "It would loosen safety")))]
pub(crate) async fn set_control(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Json<Value>, Failure> {
    let mut fields = Fields::read(&body)?;
    let online = fields.flag("enable_online")?;
    let rates: [Option<u16>; 3] = [
        fields.number("max_online_step_rate")?,
        fields.number("max_online_episode_rate")?,
        fields.number("max_pending_tasks")?,
    ];
    let mode = match fields.text("safety_override_mode")? {
        None => None,
        Some(name) => Some(Mode::from_name(&name).ok_or_else(|| {
            Failure::bad(
                "safety_override_mode",
                format!("safety_override_mode is unknown: {}", Mode::names()),
            )
        })?),
    };
    let names = [
        "min_confidence_for_auto",
        "human_weight_bandit",
        "human_weight_grpo",
        "human_weight_teacher",
        "human_weight_pox",
    ];
    let mut weights = [None; 5];
    for (weight, name) in weights.iter_mut().zip(names) {
        *weight = fields.take(name).map(|value| view::fixed(&value, name)).transpose()?;
    }
    fields.finish("the fields of the control are")?;
    let person = person_of(&caller.token);
    let check = move |service: &Service| {
        let mut control = *service.people().control();
        control.enable_online = online.unwrap_or(control.enable_online);
        control.max_online_step_rate = rates[0].unwrap_or(control.max_online_step_rate);
        control.max_online_episode_rate = rates[1].unwrap_or(control.max_online_episode_rate);
        control.max_pending_tasks = rates[2].unwrap_or(control.max_pending_tasks);
        control.safety_override_mode = mode.unwrap_or(control.safety_override_mode);
        let set = |weight: Option<Fixed>, known: Fixed| weight.unwrap_or(known);
        control.min_confidence_for_auto = set(weights[0], control.min_confidence_for_auto);
        control.human_weight_bandit = set(weights[1], control.human_weight_bandit);
        control.human_weight_grpo = set(weights[2], control.human_weight_grpo);
        control.human_weight_teacher = set(weights[3], control.human_weight_teacher);
        control.human_weight_pox = set(weights[4], control.human_weight_pox);
        service.set_control(control, person)
    };
    let view = |service: &Service, _: Option<u64>| view::control(service.people().control());
    Ok(Json(app.handle.act(check, view).await??))
}

/// Watches leases until the service stops: one that is older than leases last is given back.
pub async fn watch_leases(handle: Handle, lasts: Duration) {
    let mut seen: BTreeMap<(u64, u32), Instant> = BTreeMap::new();
    loop {
        tokio::time::sleep(LEASE_LOOK.min(lasts)).await;
        let leased = handle.look(|service| -> Vec<(u64, u32)> {
            let open = service.people().table().open();
            open.filter(|question| question.owner != 0).map(|one| (one.serial, one.generation)).collect()
        });
        let Ok(leased) = leased.await else { return };
        let now = Instant::now();
        seen.retain(|lease, _| leased.contains(lease));
        for (serial, generation) in leased {
            let since = *seen.entry((serial, generation)).or_insert(now);
            if lasts <= now.duration_since(since) {
                let check = move |service: &Service| Ok(service.expire_lease(serial, generation));
                let expired = handle.act(check, |_: &Service, _: Option<u64>| Value::Null);
                if expired.await.is_err() {
                    return;
                }
            }
        }
    }
}
