//! What has happened, for programs: patches, the history, and events as they come.
//!
//! Lists begin with the latest and go on with `after`; a page ends with a step, never within one. Clauses: LOG-1.

use super::{ErrorBody, Paging, limit_of};
use crate::core::PatchLine;
use crate::http::{App, Failure};
use axum::Json;
use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use bem_people::kinds::QuestionKind;
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
    let next = happened.last().filter(|_| limit <= happened.len()).map(|one| one.step);
    let happened: Vec<Value> = happened.iter().map(TimelineEntry::json).collect();
    let gauges = &app.handle.gauges;
    let read = |gauge: &std::sync::atomic::AtomicU64| gauge.load(std::sync::atomic::Ordering::Relaxed);
    Ok(Json(json!({
        "step": read(&gauges.inputs), "covered": read(&gauges.covered), "entries": read(&gauges.entries),
        "groups": read(&gauges.groups), "rounds": read(&gauges.rounds), "happened": happened, "after": next,
    })))
}

/// What happened with one step of the history.
pub(crate) struct TimelineEntry {
    /// The number of the input.
    pub(crate) step: u64,
    /// What happened.
    pub(crate) what: TimelineEvent,
}

/// See [`TimelineEntry`].
pub(crate) enum TimelineEvent {
    /// A patch was decided about.
    Patch(PatchLine),
    /// A person answered.
    Answer {
        /// The question.
        question: u64,
        /// Its kind.
        kind: QuestionKind,
        /// The input with which the answer was taken back, if it was.
        undone: Option<u64>,
    },
    /// A person took this answer back.
    TakenBack(u64),
}

impl TimelineEntry {
    fn json(&self) -> Value {
        let step = self.step;
        match &self.what {
            TimelineEvent::Patch(line) => json!({ "step": step, "what": "patch", "patch": line }),
            TimelineEvent::Answer { question, kind, undone } => {
                let answer = json!({ "question": question, "kind": kind.name(), "undone": undone });
                json!({ "step": step, "what": "answer", "answer": answer })
            }
            TimelineEvent::TakenBack(answer) => {
                json!({ "step": step, "what": "taken_back", "taken_back": answer })
            }
        }
    }
}

/// Decisions about patches, answers of people and answers taken back before a step, the latest first; what came with one step
/// stays together.
pub(crate) fn happened(service: &Service, before: u64, limit: usize) -> Vec<TimelineEntry> {
    let patches = PatchLine::latest(service, before, limit).into_iter();
    let mut all: Vec<TimelineEntry> =
        patches.map(|line| TimelineEntry { step: line.step, what: TimelineEvent::Patch(line) }).collect();
    let given = service.people().given();
    all.extend(given.range(..before).rev().take(limit).map(|(step, given)| {
        let undone = (0 < given.undone).then_some(given.undone);
        let what = TimelineEvent::Answer { question: given.question, kind: given.kind, undone };
        TimelineEntry { step: *step, what }
    }));
    let undone = given.iter().filter(|(_, given)| (1..before).contains(&given.undone));
    all.extend(undone.map(|(answer, given)| TimelineEntry {
        step: given.undone,
        what: TimelineEvent::TakenBack(*answer),
    }));
    all.sort_by_key(|one| core::cmp::Reverse(one.step));
    let last = all.get(limit.saturating_sub(1)).map_or(0, |one| one.step);
    all.retain(|one| last <= one.step);
    all
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
