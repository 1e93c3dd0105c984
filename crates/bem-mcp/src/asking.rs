//! The person at the client is asked by the server: a question is leased, shown as a form (elicitation), and what was filled in
//! is its answer.
//!
//! Versions of the protocol before 2026-07-28 let the server ask while the call waits; later ones let it answer that input is
//! required, and the client calls again with it. Then the lease is what the client brings back: the server that runs looks whose
//! it is, so that a changed one opens nothing. Who declines gives the question back. Clause: HUM-12; decision D-212.

use crate::form::{self, Form};
use crate::server::{Server, refusal};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ContentBlock, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests, InputRequiredResult,
    ProtocolVersion, ServerRequest,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

/// The tool that asks.
pub const NAME: &str = "questions_ask";
/// What it does, for whoever chooses a tool.
pub const ABOUT: &str = "Ask the person at this client a question of the server's queue by a form, and give the server the answer; \
                         the most pressing question, or the one that is named";
/// The name of the form among what is required.
const FORM: &str = "answer";

/// What a call of it takes.
pub fn schema() -> Value {
    let number = json!({ "type": "string", "pattern": "^[0-9]+$", "description": "the question's number" });
    json!({ "type": "object", "properties": { "question": number }, "additionalProperties": false })
}

/// A question that is leased, by what is needed to answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lease {
    question: String,
    lease: String,
    kind: String,
}

impl Lease {
    fn of(leased: &Value) -> Option<Lease> {
        let text = |value: &Value| value.as_str().map(str::to_string);
        let question = &leased["question"];
        let (lease, kind) = (text(&leased["lease"])?, text(&question["kind"])?);
        Some(Lease { question: text(&question["question"])?, lease, kind })
    }

    /// As the client brings it back.
    fn state(&self) -> String {
        format!("{} {} {}", self.question, self.lease, self.kind)
    }

    /// From what the client brought back.
    fn from_state(state: &str) -> Option<Lease> {
        let is_plain =
            |word: &&str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let words: Vec<&str> = state.split(' ').filter(is_plain).collect();
        let [question, lease, kind] = words[..] else { return None };
        let is_number = !question.is_empty() && question.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| Lease { question: question.into(), lease: lease.into(), kind: kind.into() })
    }
}

impl Server {
    /// Leases a question and draws its form; nothing where none is open for the caller.
    fn draw(&self, arguments: &Value) -> Result<Option<(Lease, Form)>, String> {
        let path = match &arguments["question"] {
            Value::Null => "/v1/questions/next".to_string(),
            Value::String(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("/v1/questions/{number}/lease")
            }
            _ => return Err("question must be the number of a question".to_string()),
        };
        let found = self.post(&path, None)?;
        let leased = if arguments["question"].is_null() { &found["leased"] } else { &found };
        let Some(lease) = Lease::of(leased) else { return Ok(None) };
        let question = &leased["question"];
        let choices = form::choices(question);
        let mut consequences = Vec::new();
        for choice in &choices {
            let path = format!("/v1/questions/{}/preview", lease.question);
            let seen = self.post(&path, Some(&json!({ "answer": choice.answer })));
            consequences.push(match seen {
                Ok(seen) => consequence(&seen["changes"]),
                Err(reason) => format!("not possible now, {reason}"),
            });
        }
        match form::form(question, &choices, &consequences) {
            Ok(form) => Ok(Some((lease, form))),
            Err(reason) => {
                self.give_back(&lease);
                Err(reason)
            }
        }
    }

    fn post(&self, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let (status, answer) = self.ask("POST", path, body)?;
        if (200..300).contains(&status) { Ok(answer) } else { Err(refusal(status, &answer)) }
    }

    /// Gives a leased question back to the queue; where that fails, its lease runs out.
    fn give_back(&self, lease: &Lease) {
        let path = format!("/v1/questions/{}/release", lease.question);
        let _ = self.post(&path, Some(&json!({ "lease": lease.lease })));
    }

    /// What came of a form: its answer is given, or the question given back.
    fn take(&self, lease: &Lease, filled: &ElicitResult) -> Result<Value, String> {
        if filled.action != ElicitationAction::Accept {
            self.give_back(lease);
            return Ok(json!({ "question": lease.question, "answer": null, "given_back": true }));
        }
        let content = filled.content.clone().unwrap_or(Value::Null);
        let path = format!("/v1/questions/{}/answer", lease.question);
        let given = form::answer(&lease.kind, &content)
            .and_then(|answer| self.post(&path, Some(&json!({ "lease": lease.lease, "answer": answer }))));
        if given.is_err() {
            self.give_back(lease);
        }
        given
    }

    /// Asks the person at the client.
    pub(crate) async fn ask_person(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let asked = self.ask_in_turn(request, context).await;
        match asked {
            Ok(response) => response,
            Err(reason) => CallToolResult::error(vec![ContentBlock::text(reason)]).into(),
        }
    }

    async fn ask_in_turn(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, String> {
        if let Some(responses) = &request.input_responses {
            let state = request.request_state.as_deref().and_then(Lease::from_state);
            let lease = state.ok_or("what was asked is unknown: call the tool again without input")?;
            let filled = responses.get(FORM).cloned().ok_or("the form that was asked for is missing")?;
            let filled: ElicitResult =
                serde_json::from_value(filled).map_err(|_| "the form that came back is none".to_string())?;
            return self.finish(lease, filled).await;
        }
        let elicitation = context.client_capabilities().and_then(|able| able.elicitation);
        let shows_forms = elicitation.is_some_and(|able| able.form.is_some() || able.url.is_none());
        if !shows_forms {
            return Err(
                "this client shows no forms (elicitation): use questions_lease and questions_answer".into()
            );
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let server = self.clone();
        let drawn = tokio::task::spawn_blocking(move || server.draw(&arguments)).await;
        let Some((lease, form)) = drawn.unwrap_or_else(|error| Err(error.to_string()))? else {
            let nothing = json!({ "question": null, "answer": null });
            return Ok(CallToolResult::structured(nothing).into());
        };
        let shown = json!({ "mode": "form", "message": form.message, "requestedSchema": form.schema });
        let shown: ElicitRequestParams =
            serde_json::from_value(shown).map_err(|error| format!("the form cannot be shown: {error}"))?;
        let elicited = ElicitRequest::new(shown);
        let calls_again =
            context.protocol_version().is_some_and(|version| ProtocolVersion::V_2026_07_28 <= version);
        if calls_again {
            let requests = InputRequests::from([(FORM.to_string(), InputRequest::Elicitation(elicited))]);
            return Ok(InputRequiredResult::new(Some(requests), Some(lease.state())).into());
        }
        match context.peer.send_request(ServerRequest::ElicitRequest(elicited)).await {
            Ok(ClientResult::ElicitResult(filled)) => self.finish(lease, filled).await,
            other => {
                let server = self.clone();
                let _ = tokio::task::spawn_blocking(move || server.give_back(&lease)).await;
                let why = other.err().map_or("something else".to_string(), |error| error.to_string());
                Err(format!("the client did not show the form: {why}"))
            }
        }
    }

    async fn finish(&self, lease: Lease, filled: ElicitResult) -> Result<CallToolResponse, String> {
        let server = self.clone();
        let taken = tokio::task::spawn_blocking(move || server.take(&lease, &filled)).await;
        let answer = taken.unwrap_or_else(|error| Err(error.to_string()))?;
        Ok(CallToolResult::structured(answer).into())
    }
}

/// What an answer would change, as a sentence.
fn consequence(changes: &Value) -> String {
    let words = changes.as_array().into_iter().flatten().filter_map(|change| change["words"].as_str());
    let words: Vec<&str> = words.take(4).collect();
    if words.is_empty() { "nothing changes".to_string() } else { format!("changes {}", words.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_brings_back_is_a_lease_or_nothing() {
        let leased = json!({ "lease": "7-2", "question": { "question": "7", "kind": "label_step" } });
        let lease = Lease::of(&leased).unwrap();
        assert_eq!(Lease::from_state(&lease.state()), Some(lease));
        for state in [
            "",
            "7",
            "7 7-2",
            "../worlds 7-2 label_step",
            "7 7-2 label_step more",
            "7/8 7-2 label_step",
            " 7-2 label_step",
        ] {
            assert_eq!(Lease::from_state(state), None, "{state:?}");
        }
        assert_eq!(Lease::of(&Value::Null), None);
        assert_eq!(consequence(&json!([])), "nothing changes");
        assert_eq!(consequence(&json!([{ "words": "a" }, { "words": "b" }])), "changes a; b");
    }
}
