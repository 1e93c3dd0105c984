//! The protocol's side: lists what a running server has, and turns each call into one HTTP request.
//!
//! What the server refuses is an answer of the tool, so that whoever called reads why. The token is sent to the server and to
//! nobody else.

use crate::asking;
use crate::offer::{Offer, Target};
use crate::questions::QUESTIONS;
use bem_workers::host::PATIENCE;
use bem_workers::http;
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes of an answer at most.
const ANSWER_MAX: usize = 8 << 20;
/// How much longer than a request on the bus a call may take.
const MARGIN: Duration = Duration::from_secs(10);

/// A server that runs, and the token for it.
#[derive(Clone)]
pub struct Server {
    url: Arc<str>,
    token: Arc<str>,
    offer: Arc<Mutex<Offer>>,
}

impl Server {
    /// A server at this address.
    pub fn new(url: &str, token: &str) -> Server {
        Server { url: url.trim_end_matches('/').into(), token: token.trim().into(), offer: Arc::default() }
    }

    /// One request: the status, and the JSON that came back.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value), String> {
        let body = body.map(Value::to_string);
        let asked = http::Ask {
            method,
            url: &format!("{}{path}", self.url),
            bearer: Some(&self.token),
            headers: &[],
            body: body.as_deref(),
            answer_max: ANSWER_MAX,
            timeout: Duration::from_millis(PATIENCE) + MARGIN,
        };
        let (status, text) =
            http::ask(&asked).map_err(|error| format!("the server cannot be asked: {error:#}"))?;
        let value = serde_json::from_str(&text)
            .map_err(|_| format!("the server answers no JSON (status {status})"))?;
        Ok((status, value))
    }

    /// Looks what the server has.
    pub fn look(&self) -> Result<Offer, String> {
        let (status, listed) = self.ask("GET", "/v1/tools", None)?;
        if status != 200 {
            return Err(refusal(status, &listed));
        }
        let offer = Offer::new(&listed);
        *self.offer.lock().unwrap_or_else(PoisonError::into_inner) = offer.clone();
        Ok(offer)
    }

    fn target(&self, name: &str) -> Result<Option<Target>, String> {
        let known = self.offer.lock().unwrap_or_else(PoisonError::into_inner).target(name).cloned();
        match known {
            Some(target) => Ok(Some(target)),
            None => Ok(self.look()?.target(name).cloned()),
        }
    }

    /// Calls a tool: what came of it, or nothing if there is none of this name.
    fn call(&self, name: &str, arguments: Value) -> Result<Option<CallToolResult>, String> {
        let Some(target) = self.target(name)? else { return Ok(None) };
        let (method, path, body) = match target {
            Target::Question(place) => QUESTIONS[place].request(arguments)?,
            Target::Ask => return Err("the person at the client is asked in another way".to_string()),
            Target::Bus { kind, op } => {
                let mut body = arguments;
                let Some(fields) = body.as_object_mut() else {
                    return Err("the arguments must be an object".to_string());
                };
                if let Some(name) =
                    fields.keys().find(|name| !["resource", "request", "flags"].contains(&name.as_str()))
                {
                    return Err(format!("{name:?} is no field: resource, request, flags"));
                }
                fields.insert("kind".to_string(), json!(kind));
                fields.insert("op".to_string(), json!(op));
                ("POST", "/v1/tools".to_string(), Some(body))
            }
        };
        let (status, answer) = self.ask(method, &path, body.as_ref())?;
        Ok(Some(match answer["status"].as_str() {
            _ if !(200..300).contains(&status) => return Err(refusal(status, &answer)),
            Some("error") => CallToolResult::structured_error(answer),
            _ => CallToolResult::structured(answer),
        }))
    }
}

pub(crate) fn refusal(status: u16, answer: &Value) -> String {
    let message = answer["error"]["message"].as_str().unwrap_or("no reason is given");
    format!("the server refuses ({status}): {message}")
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut about = Implementation::new("bem", env!("CARGO_PKG_VERSION"));
        about.title = Some("BEM, the Boolean Expert Machine".to_string());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(about)
            .with_instructions(
                "Tools named KIND_OPERATION go over the bus of a running BEM server: files, databases, prover and others by \
                 the logical names of its catalog. questions_* are its questions to people: list, lease one, answer it; \
                 questions_ask asks the person here by a form.",
            )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let server = self.clone();
        let looked = tokio::task::spawn_blocking(move || server.look()).await;
        let offer = looked.unwrap_or_else(|error| Err(error.to_string()));
        let offer = offer.map_err(|reason| ErrorData::internal_error(reason, None))?;
        Ok(ListToolsResult::with_all_items(offer.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == asking::NAME {
            return Ok(self.ask_person(request, context).await);
        }
        let (server, name) = (self.clone(), request.name.clone());
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let called = tokio::task::spawn_blocking(move || server.call(&request.name, arguments)).await;
        match called.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(Some(result)) => Ok(result.into()),
            Ok(None) => Err(ErrorData::invalid_params(format!("there is no tool called {name:?}"), None)),
            Err(reason) => Ok(CallToolResult::error(vec![ContentBlock::text(reason)]).into()),
        }
    }
}
