//! A world's decisions with their chances and rewards, for estimates of other policies: `GET /v1/worlds/NAME/log`.
//!
//! One JSON object a line, complete episodes in the order in which they were complete, page by page from the signed history: what was
//! handed out once stays as it is. Whoever started the server lends the history; it is read once at a time. Clauses: GLE-9, LOG-4;
//! decision D-255.

use super::{ErrorBody, Paging};
use crate::http::{App, Failure};
use crate::taken::LogLines;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use bem_runtime::input::{WorldIndex, WorldSpec};
use std::sync::Arc;

/// Lines of one page, at most and by default; a page ends with an episode.
pub const LINES_MAX: usize = 10_000;
/// Bytes of one page; the episode that reaches them is the last one.
const BYTES_MAX: usize = 4 << 20;

/// One page.
struct Page {
    text: String,
    lines: usize,
    /// The input with which its last episode was complete.
    after: u64,
    has_more: bool,
}

fn read(app: &App, world: WorldIndex, spec: &WorldSpec, after: u64, limit: usize) -> Result<Page, Failure> {
    let Some(logs) = &app.logs else {
        let message = "this server was started without a way to its log: use bem export --format log";
        return Err(Failure::new(StatusCode::NOT_IMPLEMENTED, "no_log", message));
    };
    let lines = LogLines::new(spec)
        .map_err(|error| Failure::new(StatusCode::CONFLICT, "no_log", error.to_string()).about("name"))?;
    let mut page = Page { text: String::new(), lines: 0, after, has_more: false };
    let told = (logs.0)((world, spec), after, &mut |episode| {
        page.has_more = limit <= page.lines || BYTES_MAX <= page.text.len();
        if !page.has_more {
            lines.write(&episode, &mut page.text);
            (page.lines, page.after) = (page.lines + episode.steps.len(), episode.complete);
        }
        !page.has_more
    });
    // Why it is so is for the server's own folder to say, not for whoever asks.
    let failed = |_| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "no_log", "the history cannot be read");
    told.map_err(failed).map(|()| page)
}

#[utoipa::path(get, path = "/v1/worlds/{name}/log",
    params(("name" = String, Path),
        ("after" = Option<u64>, Query, description = "The header bem-after of the page before"),
        ("limit" = Option<usize>, Query, description = "Lines of the page, 1 to 10,000; it ends with an episode")),
    responses((status = 200, description = "One JSON object a line for every decision of complete episodes: features or obs, action, reward (milli-units), propensity, and episode where an episode has several steps. Header bem-after: what the next page begins after; header link with rel=next where there is more"),
        (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, description = "A feature is called like a column of the log", body = ErrorBody)))]
pub(super) async fn show_log(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Paging,
) -> Result<Response, Failure> {
    if let Some(other) = query.keys().find(|key| *key != "after" && *key != "limit") {
        let other: String = other.chars().take(64).collect();
        return Err(Failure::bad(other.clone(), format!("{other:?} is no field: after and limit are")));
    }
    let after = match query.get("after").map(|text| text.parse::<u64>()) {
        None => 0,
        Some(Ok(after)) => after,
        Some(Err(_)) => return Err(Failure::bad("after", "after must be the number of an input")),
    };
    let limit = match query.get("limit").map(|text| text.parse::<usize>()) {
        None => LINES_MAX,
        Some(Ok(limit)) if (1..=LINES_MAX).contains(&limit) => limit,
        Some(_) => {
            let message = format!("limit must be a whole number from 1 to {LINES_MAX}");
            return Err(Failure::bad("limit", message));
        }
    };
    let wanted = name.clone();
    let found = app
        .handle
        .look(move |service| service.find(&wanted).map(|(index, world)| (index, world.spec().clone())));
    let (world, spec) = found.await??;
    let failed =
        || Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "no_log", "the log could not be read to its end");
    let turn = Arc::clone(&app.log_turn).acquire_owned().await.map_err(|_| failed())?;
    let shared = app.clone();
    let page = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        read(&shared, world, &spec, after, limit)
    });
    let page = page.await.map_err(|_| failed())??;
    let next = page.has_more.then(|| {
        let (after, limit) = (page.after, limit);
        (header::LINK, format!("</v1/worlds/{name}/log?after={after}&limit={limit}>; rel=\"next\""))
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson; charset=utf-8")];
    let after = [("bem-after", page.after.to_string())];
    Ok((kind, after, AppendHeaders(next), page.text).into_response())
}
