//! The page of the history: answers with what each changed, its audit and its checkpoint, people, counters and the control.
//!
//! The audit is the one of `bem verify`, lent by whoever started the server, and one is made at a time. A checkpoint is text that
//! the server has signed and tells no secret. Must not know how anything is learned, nor how a history is audited.
//! Clause: HUM-12; decision D-213.

use super::pages::control_table;
use super::person_of;
use super::view::{self, float, sentence};
use crate::api::Fields;
use crate::http::{App, Failure};
use crate::page::{document, escaped};
use crate::tokens::{Caller, Role};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::{Extension, Json};
use bem_people::control::Control;
use bem_people::kinds::Mode;
use bem_people::payload::Answer;
use bem_runtime::service::Service;
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

/// Answers that the history shows.
const HISTORY_SHOWN: usize = 50;

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

/// The answers with what each changed, the counters, and the control.
pub async fn history_page(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Html<String>, Failure> {
    let (person, role) = (person_of(&caller.token), caller.role);
    let body = app.handle.look(move |service| history(service, person, role)).await?;
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

fn history(service: &Service, person: u32, role: Role) -> String {
    let people = service.people();
    let mut body = "<p id=status role=status aria-live=polite></p><h2>Answers <span class=muted>the latest first</span></h2>".to_string();
    if people.given().is_empty() {
        body.push_str("<p class=muted>Nobody has answered yet.</p>");
    }
    body.push_str("<ol class=timeline>");
    for (number, given) in people.given().iter().rev().take(HISTORY_SHOWN) {
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
    body.push_str("</ol><h2>People</h2><div class=wide tabindex=0 role=region aria-label=\"People\"><table><tr><th class=left scope=col>person<th scope=col>answers<th scope=col>compared<th scope=col>agreed<th scope=col>weight");
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
