//! TOOL_LLM: a language model behind the common chat-completions API.
//!
//! One request, one bounded answer; a server that is busy or fails is tried again with growing pauses. The key is read when it
//! is used and stands in no message. What a model says is text and nothing more. Clauses: TOOL-8; decision D-30.

use crate::catalog_file::{CatalogFile, Model};
use crate::http;
use bem_base::ids::ObjectId;
use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::operation::{Role, by_code};
use bem_tools::payload::Fields;
use bem_tools::worker::{Failure, Job, Tool};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How often a server is asked at most.
const ATTEMPTS: u32 = 3;
/// The first pause; it doubles.
const PAUSE: Duration = Duration::from_millis(200);
/// Bytes of an answer at most.
const ANSWER_MAX: usize = 1 << 20;
/// Messages of one request at most.
const MESSAGES_MAX: usize = 64;

/// The tool.
pub struct Models {
    catalog: Arc<CatalogFile>,
}

impl Models {
    /// A tool over the models of the catalog.
    pub fn new(catalog: Arc<CatalogFile>) -> Models {
        Models { catalog }
    }

    fn model(&self, id: Option<ObjectId>) -> Result<&Model, Failure> {
        let known = id.and_then(|id| self.catalog.models.get(&id));
        known.ok_or_else(|| ErrorCode::UNKNOWN_RESOURCE.into())
    }
}

/// Messages as the API wants them: each is a list of role and text.
fn messages(items: &[Item]) -> Result<Vec<Value>, Failure> {
    let bad = || {
        Failure::new(
            ErrorCode::BAD_PAYLOAD,
            "messages must be lists of role (system, user, assistant) and text",
        )
    };
    if items.is_empty() || MESSAGES_MAX < items.len() {
        return Err(bad());
    }
    let message = |item: &Item| match item.list().unwrap_or_default() {
        [role, text] => {
            let role =
                role.text().filter(|role| ["system", "user", "assistant"].contains(role)).ok_or_else(bad)?;
            Ok(json!({ "role": role, "content": text.text().ok_or_else(bad)? }))
        }
        _ => Err(bad()),
    };
    items.iter().map(message).collect()
}

impl Tool for Models {
    fn run(&mut self, job: &Job) -> Result<Vec<u8>, Failure> {
        let operation = by_code(Role::Model, job.operation).ok_or(ErrorCode::UNKNOWN_OPERATION)?;
        let model = self.model(job.resource)?;
        let fields = Fields::read(operation, &job.payload)?;
        let tokens = fields.int(1, 1..=i64::from(model.tokens_max), i64::from(model.tokens_max))?;
        let mut body = json!({ "model": model.model, "messages": messages(fields.list(0)?)?, "max_tokens": tokens, "temperature": 0 });
        if fields.get(2).is_some() {
            body["seed"] = json!(fields.int(2, 0..=i64::MAX, 0)?);
        }
        let unavailable = |words: String| Failure::new(ErrorCode::UNAVAILABLE, words);
        let key = model
            .key
            .as_ref()
            .map(|key| key.read())
            .transpose()
            .map_err(|error| unavailable(error.to_string()))?;
        let body = body.to_string();
        let asked = http::Ask {
            method: "POST",
            url: &format!("{}/chat/completions", model.url.trim_end_matches('/')),
            bearer: key.as_deref(),
            headers: &[],
            body: Some(&body),
            answer_max: ANSWER_MAX,
            timeout: Duration::from_secs(model.timeout_s),
        };
        let mut last = String::new();
        for attempt in 1..=ATTEMPTS {
            match http::ask(&asked) {
                Ok((200, text)) => return read(&text, attempt),
                // Busy or broken: another try may help. Anything else is what it says.
                Ok((status @ (429 | 500..), _)) => {
                    last = format!("the model's server answers with status {status}")
                }
                Ok((status, _)) => {
                    return Err(unavailable(format!("the model's server refuses with status {status}")));
                }
                Err(error) => last = format!("the model's server cannot be asked: {error:#}"),
            }
            if attempt < ATTEMPTS {
                std::thread::sleep(PAUSE * 2u32.pow(attempt - 1));
            }
        }
        Err(unavailable(last))
    }
}

fn read(text: &str, attempt: u32) -> Result<Vec<u8>, Failure> {
    let wrong = || {
        Failure::new(
            ErrorCode::BAD_RESPONSE,
            "the model's server answers something else than a chat completion",
        )
    };
    let answer: Value = serde_json::from_str(text).map_err(|_| wrong())?;
    let said = answer["choices"][0]["message"]["content"].as_str().ok_or_else(wrong)?;
    let tokens = answer["usage"]["completion_tokens"].as_i64().unwrap_or(0);
    let model = answer["model"].as_str().unwrap_or_default();
    Ok(Item::fields([
        (0, Item::Text(said.to_string())),
        (1, Item::Int(tokens)),
        (2, Item::Text(model.to_string())),
        (3, Item::Int(i64::from(attempt))),
    ])
    .to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_tools::bus::{Channel, Request, key};
    use bem_tools::word::AtomicU64;
    use bem_tools::worker::{Port, serve_one};
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    /// A server that plays a script, one answer a connection; what it was asked.
    fn scripted(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            answers
                .into_iter()
                .map(|answer| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut asked = vec![0; 65_536];
                    let mut length = 0;
                    while !String::from_utf8_lossy(&asked[..length]).contains("\"temperature\":0}") {
                        length += stream.read(&mut asked[length..]).unwrap();
                    }
                    let _ = stream.write_all(answer.as_bytes());
                    String::from_utf8_lossy(&asked[..length]).into_owned()
                })
                .collect()
        });
        (url, thread)
    }

    fn http(status: u16, body: &str) -> String {
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    fn chat(url: &str) -> Result<Item, (ErrorCode, String)> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "sk-CANARY\n").unwrap();
        let text = format!(
            "[[model]]\nname = \"m\"\nurl = \"{url}\"\nmodel = \"tiny\"\nkey_file = \"key\"\ntokens_max = 50\ntimeout_s = 5\n"
        );
        let catalog = Arc::new(CatalogFile::parse("c", text, folder.path().to_path_buf(), None).unwrap());
        let kind = catalog.catalog.find("llm").unwrap();
        let memory: Arc<Vec<AtomicU64>> = Arc::new(bem_tools::layout::private());
        let mut channel = Channel::new(kind, Arc::clone(&memory));
        let said = Item::List(vec![Item::Text("user".into()), Item::Text("hello".into())]);
        let payload = Item::fields([(0, Item::List(vec![said]))]).to_bytes();
        let resource = catalog.catalog.find("m").unwrap();
        let request = Request {
            operation: 0,
            flags: 0,
            resource,
            payload: &payload,
            capacity: 4_096,
            number: 1,
            key: key(1, &payload),
            is_idempotent: true,
            lease: 100,
            patience: 0,
        };
        channel.enqueue(&request, 0).unwrap();
        serve_one(&mut Port::open(memory, 1).unwrap(), &mut Models::new(catalog));
        let mut done = Vec::new();
        channel.poll(1, 1, &mut done);
        match done[0].error {
            None => Ok(Item::from_bytes(&done[0].response).unwrap()),
            Some(code) => Err((code, String::from_utf8_lossy(&done[0].response).into_owned())),
        }
    }

    const GOOD: &str =
        r#"{"model":"tiny-1","choices":[{"message":{"content":"hi"}}],"usage":{"completion_tokens":3}}"#;

    #[test]
    fn a_busy_server_is_asked_again_and_the_key_is_in_no_message() {
        let (url, server) = scripted(vec![http(429, "{}"), http(503, "sk-CANARY"), http(200, GOOD)]);
        let answer = chat(&url).unwrap();
        assert_eq!((answer.field(0), answer.field(3)), (Some(&Item::Text("hi".into())), Some(&Item::Int(3))));
        let asked = server.join().unwrap();
        assert!(
            asked[0].contains("Bearer sk-CANARY") && asked[0].contains("\"max_tokens\":50"),
            "{}",
            asked[0]
        );
        let (url, _server) = scripted(vec![http(401, "sk-CANARY is wrong")]);
        let (code, words) = chat(&url).unwrap_err();
        assert_eq!((code, words.contains("CANARY")), (ErrorCode::UNAVAILABLE, false), "{words}");
    }

    #[test]
    fn answers_out_of_form_and_huge_ones_are_errors() {
        for (answer, expected) in [
            (http(200, "not json"), ErrorCode::BAD_RESPONSE),
            (http(200, r#"{"choices":[]}"#), ErrorCode::BAD_RESPONSE),
            (
                http(200, &format!(r#"{{"choices":[{{"message":{{"content":"{}"}}}}]}}"#, "x".repeat(9_000))),
                ErrorCode::TOO_LONG,
            ),
        ] {
            let (url, _server) = scripted(vec![answer]);
            assert_eq!(chat(&url).unwrap_err().0, expected);
        }
        let bomb = format!("HTTP/1.1 200 X\r\nContent-Length: {}\r\n\r\n", 1u64 << 40);
        let (url, _server) = scripted(vec![bomb.clone(), bomb.clone(), bomb]);
        assert_eq!(chat(&url).unwrap_err().0, ErrorCode::UNAVAILABLE);
    }
}
