//! ENQUEUE_TASK, NOTIFY and QUERY_TASKS: what others may do with questions, over HTTP and over the tool bus alike.
//!
//! `POST /v1/questions` is ENQUEUE_TASK. On the bus the same operations are served by [`AtDesk`], which asks the deciding
//! thread and answers when what was asked is durable. A tool is a person of its own number and asks nothing that is for
//! approvers to ask. What NOTIFY says goes to whoever listens to events and to the webhooks; it changes nothing.
//! Clause: HUM-2; decisions D-76, D-180.

use super::{number_of, view};
use crate::api::Fields;
use crate::core::{Handle, Message};
use crate::http::Failure;
use axum::http::StatusCode;
use bem_base::digest::hash_parts;
use bem_people::kinds::{Priority, QuestionKind, Status};
use bem_people::table::{Person, Question};
use bem_runtime::input::Input;
use bem_runtime::people::input::{Ask, WORDS_BYTES_MAX};
use bem_runtime::service::{Refusal, RefusalKind, Service};
use bem_tools::error::ErrorCode;
use bem_tools::operation::Operation;
use bem_tools::worker;
use bem_workers::people::Desk;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Questions of one answer to QUERY_TASKS.
const TASKS_MAX: usize = 1_000;

/// A question that somebody outside wants to be asked, as it was named.
#[doc(alias = "HINL_ENQUEUE_REQ")]
pub(crate) struct Asked {
    pub(crate) kind: QuestionKind,
    world: Option<String>,
    decision: u64,
    worlds: Vec<String>,
    priority: Priority,
    patience: u64,
    quorum: u8,
    words: String,
}

impl Asked {
    /// Reads a JSON object.
    pub(crate) fn read(body: &[u8]) -> Result<Asked, Failure> {
        let mut fields = Fields::read(body)?;
        let name = Fields::must("kind", fields.text("kind")?)?;
        let kind = QuestionKind::from_name(&name).ok_or_else(|| {
            Failure::bad("kind", format!("kind {name:?} is unknown: {}", QuestionKind::names()))
        })?;
        let world = fields.text("world")?;
        let decision = match fields.text("decision")? {
            None => 0,
            Some(text) => number_of(&text, "decision")?,
        };
        let worlds = fields.list("worlds")?.unwrap_or_default();
        let named = |value: Value| value.as_str().map(str::to_string);
        let worlds: Option<Vec<String>> = worlds.into_iter().map(named).collect();
        let worlds = worlds.ok_or_else(|| Failure::bad("worlds", "worlds must be a list of names"))?;
        let priority = match fields.text("priority")? {
            None => Priority::Normal,
            Some(name) => Priority::from_name(&name).ok_or_else(|| {
                Failure::bad("priority", format!("priority is unknown: {}", Priority::names()))
            })?,
        };
        let patience = fields.number("deadline")?.unwrap_or(0);
        let quorum = fields.number("quorum")?.unwrap_or(1);
        let words = fields.text("reason")?.unwrap_or_default();
        fields.finish("kind, world, decision, worlds, priority, deadline, quorum and reason are")?;
        Ok(Asked { kind, world, decision, worlds, priority, patience, quorum, words })
    }

    /// Refuses, or makes an input of it.
    pub(crate) fn check(self, service: &Service, person: Person) -> Result<Option<Input>, Refusal> {
        let Asked { kind, world, decision: target, worlds, priority, patience, quorum, words } = self;
        let place = |name: &str| service.find(name).map(|(index, _)| index.0);
        let world = match (&world, kind) {
            (Some(name), _) => place(name)?,
            (None, QuestionKind::LabelStep | QuestionKind::ScoreEpisode) => {
                let message = "world is missing: questions about steps and episodes name one".to_string();
                return Err(Refusal { kind: RefusalKind::Bad, field: "world", code: "bad_field", message });
            }
            (None, _) => 0,
        };
        let worlds = worlds.iter().map(|name| place(name)).collect::<Result<Vec<u16>, Refusal>>()?;
        let ask = Ask { kind, world, target, worlds, priority, patience, quorum, person, words };
        service.ask_people(ask).map(Some)
    }
}

/// The questions that the last input asked.
pub(crate) fn asked(service: &Service) -> Value {
    let asked: Vec<&Question> = service.moved().iter().filter_map(view::created).collect();
    let serials: Vec<String> = asked.iter().map(|question| question.serial.to_string()).collect();
    let id = asked.first().map(|question| format!("{:08x}", question.id.to_word()));
    json!({ "question": serials.first(), "id": id, "questions": serials })
}

/// What is told of a question to whoever is no person of it: neither what it shows nor what was answered.
pub(crate) fn task(question: &Question) -> Value {
    json!({
        "question": question.serial.to_string(),
        "id": format!("{:08x}", question.id.to_word()),
        "kind": question.kind.name(),
        "target_kind": question.kind.target().name(),
        "target": question.target.to_string(),
        "priority": question.priority.name(),
        "status": question.status.name(),
        "created_step": question.created,
        "deadline_step": if question.deadline == 0 { Value::Null } else { json!(question.deadline) },
    })
}

/// The state that a list is narrowed to.
pub(crate) fn state_of(name: Option<&str>) -> Result<Option<Status>, Failure> {
    match name {
        None | Some("open") => Ok(None),
        Some("pending") => Ok(Some(Status::Pending)),
        Some("in_progress") => Ok(Some(Status::InProgress)),
        Some(_) => Err(Failure::bad("state", "state must be open, pending or in_progress")),
    }
}

/// The open questions of a state after this one, by number, and how many there are in all.
pub(crate) fn open(
    service: &Service,
    state: Option<Status>,
    after: u64,
    limit: usize,
) -> (Vec<&Question>, usize) {
    let open = service.people().table().open();
    let mut open: Vec<&Question> = open.filter(|one| state.is_none_or(|state| one.status == state)).collect();
    open.sort_by_key(|question| question.serial);
    let count = open.len();
    open.retain(|question| after < question.serial);
    open.truncate(limit);
    (open, count)
}

/// Serves the questions of a service over its tool bus.
pub(crate) struct AtDesk(pub(crate) Handle);

impl AtDesk {
    fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> Message,
    ) -> Result<T, worker::Failure> {
        let stops = || worker::Failure::new(ErrorCode::UNAVAILABLE, "the service stops");
        let (reply, answer) = oneshot::channel();
        self.0.send_waiting(message(reply)).map_err(|_| stops())?;
        answer.blocking_recv().map_err(|_| stops())?.map_err(refused)
    }

    fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> Result<T, worker::Failure> {
        self.ask(|reply| {
            Message::Look(Box::new(move |service: &Service| drop(reply.send(Ok(look(service))))))
        })
    }

    fn enqueue(&self, request: &Value) -> Result<Value, worker::Failure> {
        let asked_for = Asked::read(request.to_string().as_bytes())?;
        if asked_for.kind == QuestionKind::AdjustConfig {
            let words = "questions about the configuration are asked by approvers and admins, not by tools";
            return Err(worker::Failure::new(ErrorCode::NOT_ALLOWED, words));
        }
        let check = move |service: &Service| asked_for.check(service, tools_number());
        let view = |service: &Service, _: Option<u64>| asked(service);
        self.ask(|reply| Message::Act { check: Box::new(check), view: Box::new(view), reply })
    }

    fn notify(&self, request: &Value) -> Result<Value, worker::Failure> {
        let mut fields = Fields::read(request.to_string().as_bytes())?;
        let serial = number_of(&Fields::must("question", fields.text("question")?)?, "question")?;
        let reason = fields.text("reason")?.unwrap_or_default();
        fields.finish("question and reason are")?;
        if WORDS_BYTES_MAX < reason.len() {
            return Err(
                Failure::bad("reason", format!("reason has more than {WORDS_BYTES_MAX} bytes")).into()
            );
        }
        let found = self.look(move |service| {
            let table = service.people().table();
            table.get(serial).map(|question| (task(question), table.open().count()))
        })?;
        let gone = "the question is not open: it was answered, skipped, or never asked";
        let (mut task, open) = found.ok_or_else(|| worker::Failure::new(ErrorCode::NOT_FOUND, gone))?;
        task["reason"] = json!(reason);
        self.0.tell("question.notified", &task);
        Ok(json!({ "question": task["question"], "open": open }))
    }

    fn query(&self, request: &Value) -> Result<Value, worker::Failure> {
        let mut fields = Fields::read(request.to_string().as_bytes())?;
        let state = state_of(fields.text("state")?.as_deref())?;
        let after = fields.text("after")?.map_or(Ok(0), |text| number_of(&text, "after"))?;
        let limit = fields.whole("limit")?.unwrap_or(TASKS_MAX as i64);
        fields.finish("state, after and limit are")?;
        let limit = usize::try_from(limit).ok().filter(|limit| (1..=TASKS_MAX).contains(limit));
        let out = || Failure::bad("limit", format!("limit must be a whole number from 1 to {TASKS_MAX}"));
        let limit = limit.ok_or_else(out)?;
        self.look(move |service| {
            let (questions, count) = open(service, state, after, limit);
            let last = questions.last().filter(|_| questions.len() == limit);
            let after = last.map(|question| question.serial.to_string());
            json!({ "questions": questions.into_iter().map(task).collect::<Vec<_>>(), "open": count, "after": after })
        })
    }
}

impl Desk for AtDesk {
    fn serve(&self, operation: &Operation, request: &Value) -> Result<Value, worker::Failure> {
        match operation.name {
            "enqueue_task" => self.enqueue(request),
            "notify" => self.notify(request),
            "query_tasks" => self.query(request),
            _ => Err(ErrorCode::UNKNOWN_OPERATION.into()),
        }
    }
}

/// The number under which tools ask.
fn tools_number() -> Person {
    super::person_of(&hash_parts("bem/person-of-the-bus", &[]))
}

fn refused(refusal: Refusal) -> worker::Failure {
    let code = match refusal.kind {
        RefusalKind::Bad => ErrorCode::BAD_PAYLOAD,
        RefusalKind::Missing => ErrorCode::NOT_FOUND,
        RefusalKind::Conflict | RefusalKind::Forbidden => ErrorCode::NOT_ALLOWED,
        RefusalKind::Full | RefusalKind::Busy => ErrorCode::UNAVAILABLE,
    };
    worker::Failure::new(code, refusal.message)
}

impl From<Failure> for worker::Failure {
    fn from(failure: Failure) -> worker::Failure {
        let code = match failure.status() {
            StatusCode::NOT_FOUND => ErrorCode::NOT_FOUND,
            _ => ErrorCode::BAD_PAYLOAD,
        };
        worker::Failure::new(code, failure.message())
    }
}
