//! The page of the history: answers with what each changed, a timeline of what happened, its audit and its checkpoint, people,
//! counters and the control.
//!
//! Both lists begin with the latest and go on before an input, with links that need no script.
//! The audit is the one of `bem verify`, lent by whoever started the server, and one is made at a time. A checkpoint is text that
//! the server has signed and tells no secret. Must not know how anything is learned, nor how a history is audited.
//! Clause: HUM-12; decision D-213.

use super::pages::control_table;
use super::person_of;
use super::view::{self, float, sentence};
use crate::api::happened::{TimelineEvent, happened};
use crate::api::{Fields, Paging};
use crate::http::{App, Failure};
use crate::page::{document, escaped};
use crate::tokens::{Caller, Role};
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::{Extension, Json};
use bem_people::control::Control;
use bem_people::kinds::Mode;
use bem_people::payload::Answer;
use bem_runtime::service::Service;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

/// Answers on one page of the history.
const HISTORY_SHOWN: usize = 50;
/// Lines of the timeline on one page of the history. What came with one input stays together, so that there may be a few more.
const TIMELINE_SHOWN: usize = 50;

#[utoipa::path(post, path = "/v1/history/verify", responses((status = 200, description = "The verdict of the audit: ok, unanchored or broken"),
    (status = 400, description = "The checkpoint is none"), (status = 429, description = "Another audit is under way")))]
pub(crate) async fn verify(State(app): State<App>, body: Bytes) -> Result<Json<Value>, Failure> {
    let mut fields = Fields::read(&body)?;
    let checkpoint = fields.text("checkpoint")?;
    fields.finish("checkpoint is")?;
    let has_checkpoint = checkpoint.is_some();
    let Some(auditing) = app.auditing.clone() else {
        let message = "this server was started without an audit: use bem verify";
        return Err(Failure::new(StatusCode::NOT_IMPLEMENTED, "no_audit", message));
    };
    if app.is_audited.swap(true, Ordering::AcqRel) {
        return Err(Failure::new(StatusCode::TOO_MANY_REQUESTS, "busy", "another audit is under way"));
    }
    let audited = tokio::task::spawn_blocking(move || (auditing.0)(checkpoint.as_deref())).await;
    app.is_audited.store(false, Ordering::Release);
    match audited {
        Ok(Ok(report)) => Ok(Json(report)),
        Ok(Err(reason)) if has_checkpoint => Err(Failure::bad("checkpoint", reason)),
        _ => Err(Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "no_audit",
            "the audit could not be finished",
        )),
    }
}

#[utoipa::path(get, path = "/v1/history/checkpoint", responses((status = 200, description = "The newest signed checkpoint, as text"),
    (status = 404, description = "Nothing is signed yet")))]
pub(crate) async fn checkpoint(State(app): State<App>) -> Result<Response, Failure> {
    let missing = || Failure::new(StatusCode::NOT_FOUND, "no_checkpoint", "nothing is signed yet");
    let path = app.state.join("ledger").join("checkpoint");
    let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
    let text = read.ok().and_then(Result::ok).ok_or_else(missing)?;
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"bem-checkpoint.txt\""),
    ];
    Ok((headers, text).into_response())
}

/// The input before which a page of the history begins; without one it begins with the latest.
fn before_of(query: &BTreeMap<String, String>) -> Result<Option<u64>, Failure> {
    let Some(text) = query.get("before") else { return Ok(None) };
    let number = text.parse().ok().filter(|number: &u64| number.to_string() == *text);
    let wrong =
        || Failure::bad("before", "before must be the number of an input, without sign or leading zeros");
    number.map(Some).ok_or_else(wrong)
}

/// The answers with what each changed, what happened, the counters, and the control.
pub async fn history_page(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Query(query): Paging,
) -> Result<Html<String>, Failure> {
    let before = before_of(&query)?;
    let (person, role) = (person_of(&caller.token), caller.role);
    let body = app.handle.look(move |service| history(service, person, role, before)).await?;
    let gauges = &app.handle.gauges;
    let facts = format!(
        "<h1>History</h1><ul class=facts><li><b>{}</b>inputs in the history</li><li><b>{}</b>of them under a signed checkpoint</li></ul>\
         <form data-verify class=tools><button>Verify the history</button> <label>against a checkpoint that you kept <input type=file name=checkpoint></label> \
         <a href=\"/v1/history/checkpoint\" download>Download the signed checkpoint</a></form>\
         <p id=verdict role=status aria-live=polite class=muted>Nobody has verified the history on this page yet.</p>\
         <p class=muted>A checkpoint that is kept elsewhere excludes that the history was rolled back since. On the server \
         <code>bem verify DIR</code> does the same, and <code>bem replay DIR</code> plays it again.</p>",
        gauges.inputs.load(Ordering::Relaxed),
        gauges.covered.load(Ordering::Relaxed)
    );
    Ok(document("BEM: history", &(facts + &body), Some(&caller.csrf.unwrap_or_default())))
}

/// Links to earlier and to the latest lines of a list: `last` is the last line that is shown, where there are earlier ones.
fn pages_of(body: &mut String, list: &str, id: &str, before: Option<u64>, last: Option<u64>) {
    let earlier = last.map(|last| format!("<a href=\"/history?before={last}#{id}\">Earlier {list}</a>"));
    let latest = before.map(|_| format!("<a href=\"/history#{id}\">Latest {list}</a>"));
    let links: Vec<String> = earlier.into_iter().chain(latest).collect();
    if !links.is_empty() {
        let _ = write!(body, "<nav class=pages aria-label=\"Pages of {list}\">{}</nav>", links.join(" "));
    }
}

/// What a list begins with, in words.
fn begins(before: Option<u64>) -> String {
    before.map_or_else(
        || "the latest first".to_string(),
        |before| format!("before input {before}, the latest first"),
    )
}

/// What happened, by input: patches, answers, and answers that were taken back.
fn timeline(body: &mut String, service: &Service, before: Option<u64>) {
    let all = happened(service, before.unwrap_or(u64::MAX), TIMELINE_SHOWN);
    let _ = write!(
        body,
        "<h2 id=timeline>Timeline <span class=muted>what happened in the ledger, {}</span></h2>",
        begins(before)
    );
    if all.is_empty() {
        body.push_str("<p class=muted>No patch was decided about and nobody has answered.</p>");
    }
    body.push_str("<ol class=timeline aria-labelledby=timeline>");
    for one in &all {
        let words = match &one.what {
            TimelineEvent::Patch(line) => {
                let verdict = if line.accepted { "in force" } else { "not in force" };
                format!(
                    "patch {} of {}, {verdict}: {}",
                    line.kind,
                    escaped(&line.world),
                    escaped(&line.words)
                )
            }
            TimelineEvent::Answer { question, kind, undone } => {
                let undone = undone.map_or_else(String::new, |at| format!(", taken back with input {at}"));
                format!("answer {} to question {question}{undone}", kind.name())
            }
            TimelineEvent::TakenBack(answer) => format!("answer with input {answer} taken back"),
        };
        let _ = write!(body, "<li><b>Input {}</b>, {words}</li>", one.step);
    }
    body.push_str("</ol>");
    let last = all.last().filter(|_| TIMELINE_SHOWN <= all.len()).map(|one| one.step);
    pages_of(body, "events", "timeline", before, last);
    let after = before.map_or_else(String::new, |before| format!("&amp;after={before}"));
    let _ = write!(
        body,
        "<p class=muted>For programs: <a href=\"/v1/history?limit={TIMELINE_SHOWN}{after}\">the same as JSON</a>.</p>"
    );
}

fn history(service: &Service, person: u32, role: Role, before: Option<u64>) -> String {
    let people = service.people();
    let mut body = format!(
        "<p id=status role=status aria-live=polite></p><h2 id=answers>Answers <span class=muted>{}</span></h2>",
        begins(before)
    );
    let mut earlier = people.given().range(..before.unwrap_or(u64::MAX)).rev();
    if people.given().is_empty() {
        body.push_str("<p class=muted>Nobody has answered yet.</p>");
    } else if earlier.clone().next().is_none() {
        body.push_str("<p class=muted>No earlier answer is kept here; the ledger has them all.</p>");
    }
    body.push_str("<ol class=timeline aria-labelledby=answers>");
    let mut last = None;
    for (number, given) in earlier.by_ref().take(HISTORY_SHOWN) {
        last = Some(*number);
        let who = if given.person == person { "you".to_string() } else { format!("{:08x}", given.person) };
        let said = view::visible(service, *number, given, person);
        let said = said.map_or_else(
            || "hidden until everybody who is asked has answered".to_string(),
            |answer| said_words(&answer),
        );
        let may = given.person == person || Role::Approver <= role;
        let undo = match (given.undone, may) {
            (0, true) => format!("<button type=button data-undo={number}>Take answer {number} back</button>"),
            (0, false) => String::new(),
            (at, _) => format!("<span class=muted>taken back with input {at}</span>"),
        };
        let _ = write!(
            body,
            "<li><p><b>Input {number}</b>, question {}, {} by {who}: {} {undo}</p><ul>",
            given.question,
            given.kind.name(),
            escaped(&said)
        );
        for change in &given.changes {
            let _ = write!(body, "<li>{}</li>", escaped(&sentence(service, change)));
        }
        body.push_str("</ul></li>");
    }
    body.push_str("</ol>");
    pages_of(&mut body, "answers", "answers", before, last.filter(|_| earlier.next().is_some()));
    timeline(&mut body, service, before);
    body.push_str("<h2>People</h2><div class=wide tabindex=0 role=region aria-label=\"People\"><table><tr><th class=left scope=col>person<th scope=col>answers<th scope=col>compared<th scope=col>agreed<th scope=col>weight");
    for (known, record) in people.groups().people() {
        let who = if *known == person { "you".to_string() } else { format!("{known:08x}") };
        let _ = write!(
            body,
            "<tr><th class=left scope=row>{who}<td>{}<td>{}<td>{}<td>{:.2}",
            record.answers,
            record.compared,
            record.agreed,
            float(record.weight())
        );
    }
    body.push_str("</table></div><h2>Counters</h2><div class=wide tabindex=0 role=region aria-label=\"Counters\"><table><tr><th class=left scope=col>counter<th scope=col>value");
    for (name, count) in people.counters().named() {
        let _ = write!(body, "<tr><th class=left scope=row>{name}<td>{count}");
    }
    body.push_str("</table></div><h2>Control</h2>");
    if role == Role::Admin {
        control_form(&mut body, people.control());
    } else {
        control_table(&mut body, people.control());
    }
    body
}

/// The control as a form of the admin's.
fn control_form(body: &mut String, control: &Control) {
    body.push_str("<form data-control class=control>");
    let checked = if control.enable_online { " checked" } else { "" };
    let _ = write!(
        body,
        "<p><label><input type=checkbox name=enable_online{checked}> the machine asks by itself (enable_online)</label></p>"
    );
    let counts = [
        ("max_online_step_rate", "questions for every 10,000 steps", control.max_online_step_rate, 10_000),
        (
            "max_online_episode_rate",
            "questions for every 10,000 episodes",
            control.max_online_episode_rate,
            10_000,
        ),
        ("max_pending_tasks", "questions open at once", control.max_pending_tasks, 256),
    ];
    for (name, words, value, most) in counts {
        let _ = write!(
            body,
            "<p><label>{words} ({name}) <input type=number name={name} min=0 max={most} value={value}></label></p>"
        );
    }
    body.push_str(
        "<p><label>changes of the policy (safety_override_mode) <select name=safety_override_mode>",
    );
    for mode in Mode::ALL {
        let chosen = if *mode == control.safety_override_mode { " selected" } else { "" };
        let _ = write!(body, "<option{chosen}>{}</option>", mode.name());
    }
    body.push_str("</select></label></p>");
    for (name, value) in control.fixed() {
        let _ = write!(
            body,
            "<p><label>{name} <input type=number name={name} min=0 max=4 step=0.01 value={:.2}></label></p>",
            float(value)
        );
    }
    body.push_str("<p><button>Put into force</button> <span class=muted>Loosening safety needs two approvers: ask a configuration question.</span></p></form>");
}

fn said_words(answer: &Answer) -> String {
    match answer {
        Answer::Step(said) => match (said.accept, said.best) {
            (true, _) => "it was right".to_string(),
            (false, None) => "it was wrong".to_string(),
            (false, Some(best)) => format!("action {best} would have been best"),
        },
        Answer::Episode(said) => {
            let keep = ["not to be learned from", "learned from", "for the curriculum"]
                [usize::from(said.keep.min(2))];
            format!("score {:.2}, {keep}", float(said.score))
        }
        Answer::Patch(said) => said.decision.name().to_string(),
        Answer::Templates(said) => format!("order {:?}", said.order),
        Answer::Config(said) => match (said.safety_override_mode, said.enable_online) {
            (Some(mode), _) => format!("mode {}", mode.name()),
            (None, Some(online)) => format!("online {online}"),
            (None, None) => "other weights, or no change".to_string(),
        },
    }
}
