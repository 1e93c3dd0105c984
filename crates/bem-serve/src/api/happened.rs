//! What has happened, for programs: patches, the history, and events as they come.
//!
//! Lists begin with the latest and go on with `after`; a page ends with a step, never within one. Clauses: LOG-1.

use super::{ErrorBody, Paging, limit_of};
use crate::core::PatchLine;
use crate::http::{App, Failure};
use axum::Json;
use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use bem_runtime::service::Service;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::BroadcastStream;

/// Lists that begin with the latest go on after a step toward earlier ones.
fn before_of(query: &BTreeMap<String, String>) -> Result<u64, Failure> {
    let Some(text) = query.get("after") else { return Ok(u64::MAX) };
    text.parse().map_err(|_| Failure::bad("after", "after must be the number of a step"))
}

#[utoipa::path(get, path = "/v1/patches", params(("after" = Option<u64>, Query), ("limit" = Option<usize>, Query)),
    responses((status = 200, description = "What changed, the latest first"), (status = 400, body = ErrorBody)))]
pub(super) async fn list_patches(
    State(app): State<App>,
    Query(query): Paging,
) -> Result<Json<Value>, Failure> {
    let (before, limit) = (before_of(&query)?, limit_of(&query)?);
    let patches = app.handle.look(move |service| PatchLine::latest(service, before, limit)).await?;
    let next = patches.last().filter(|_| limit <= patches.len()).map(|line| line.step);
    Ok(Json(json!({ "patches": patches, "after": next })))
}

#[utoipa::path(get, path = "/v1/history", params(("after" = Option<u64>, Query), ("limit" = Option<usize>, Query)),
    responses((status = 200, description = "How far the history has come, and what happened in it, the latest first"),
        (status = 400, body = ErrorBody)))]
pub(super) async fn show_history(
    State(app): State<App>,
    Query(query): Paging,
) -> Result<Json<Value>, Failure> {
    let (before, limit) = (before_of(&query)?, limit_of(&query)?);
    let happened = app.handle.look(move |service| happened(service, before, limit)).await?;
    let next = happened.last().filter(|_| limit <= happened.len()).map(|one| one["step"].clone());
    let gauges = &app.handle.gauges;
    let read = |gauge: &std::sync::atomic::AtomicU64| gauge.load(std::sync::atomic::Ordering::Relaxed);
    Ok(Json(json!({
        "step": read(&gauges.inputs), "covered": read(&gauges.covered), "entries": read(&gauges.entries),
        "groups": read(&gauges.groups), "rounds": read(&gauges.rounds), "happened": happened, "after": next,
    })))
}

/// Decisions about patches and answers of people before a step, the latest first; what came with one step stays together.
fn happened(service: &Service, before: u64, limit: usize) -> Vec<Value> {
    let patches = PatchLine::latest(service, before, limit).into_iter();
    let mut all: Vec<(u64, Value)> = patches
        .map(|line| (line.step, json!({ "step": line.step, "what": "patch", "patch": line })))
        .collect();
    let answers = service.people().given().range(..before).rev().take(limit);
    all.extend(answers.map(|(step, given)| {
        let (question, kind) = (given.question, given.kind.name());
        let answer = json!({ "question": question, "kind": kind, "undone": (0 < given.undone).then_some(given.undone) });
        (*step, json!({ "step": step, "what": "answer", "answer": answer }))
    }));
    all.sort_by_key(|(step, _)| core::cmp::Reverse(*step));
    let last = all.get(limit.saturating_sub(1)).map_or(0, |(step, _)| *step);
    all.into_iter().filter(|(step, _)| last <= *step).map(|(_, value)| value).collect()
}

#[utoipa::path(get, path = "/v1/events", responses((status = 200, description = "Server-sent events: steps, decisions, patches and questions")))]
pub(super) async fn events(
    State(app): State<App>,
) -> Sse<impl tokio_stream::Stream<Item = Result<Event, Infallible>>> {
    // Whoever is too slow misses some; what it gets is in order.
    let stream = BroadcastStream::new(app.handle.events.subscribe())
        .filter_map(|event| event.ok())
        .map(|text| Ok(Event::default().data(text)));
    Sse::new(stream).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
}
