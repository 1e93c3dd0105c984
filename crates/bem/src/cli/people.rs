//! `bem people`: the queue of questions from a terminal, by the same requests that the page makes.
//!
//! It talks to a running server over plain HTTP on loopback; what is beyond needs a proxy with TLS and another client.
//! Must not know how anything is learned. Clauses: HUM-12; decision D-76.

use super::Answer;
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of an answer.
const ANSWER_MAX: u64 = 8 << 20;

/// The questions of a running server: list, answer, take back, statistics.
#[derive(Args)]
#[command(after_help = "Example: bem people list\n\
    Example: bem people answer 3 '{\"accept\":false,\"best\":2}'\n\
    Example: bem people undo 4711\n\
    The page /queue of the server does the same.")]
pub struct PeopleArguments {
    #[command(subcommand)]
    action: PeopleAction,
    /// The server
    #[arg(long, global = true, default_value = "http://127.0.0.1:7420", value_name = "URL")]
    url: String,
    /// The file of the token to show [default: ./bem-state/token]
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum PeopleAction {
    /// Show the questions that are open.
    #[command(after_help = "Example: bem people list --json")]
    List,
    /// Answer a question; --preview says what that would change, and --skip skips it.
    #[command(after_help = "Example: bem people answer 3 '{\"decision\":\"approve\"}'\n\
        label_step: {\"accept\":true} or {\"accept\":false,\"best\":ACTION}\n\
        score_episode: {\"score\":0.75,\"keep\":\"keep\"} (or discard, curriculum)\n\
        approve_patch: {\"decision\":\"approve\"} (or reject, defer)\n\
        rank_templates: {\"order\":[\"WORLD\",...]}, the most wanted first\n\
        adjust_config: {\"safety_override_mode\":\"warn\"}, {\"enable_online\":true}")]
    Answer {
        /// The question
        question: u64,
        /// The answer as JSON; left out with --skip
        #[arg(required_unless_present = "skip")]
        answer: Option<String>,
        /// Only say what it would change
        #[arg(long)]
        preview: bool,
        /// Skip it: declined, obsolete or withdrawn
        #[arg(long, value_name = "REASON", conflicts_with_all = ["preview", "answer"])]
        skip: Option<String>,
    },
    /// Take an answer back, by the number that answering printed.
    #[command(after_help = "Example: bem people undo 4711")]
    Undo {
        /// The answer
        answer: u64,
    },
    /// Show control, counters, agreement and people.
    #[command(after_help = "Example: bem people stats --json")]
    Stats,
    /// Set fields of the control, as its admin.
    #[command(after_help = "Example: bem people control enable_online=true max_online_step_rate=200\n\
        Example: bem people control safety_override_mode=require_approval")]
    Control {
        /// FIELD=VALUE, as bem people stats shows them
        #[arg(required = true, value_name = "FIELD=VALUE")]
        fields: Vec<String>,
    },
}

/// `bem people`
pub fn run(arguments: &PeopleArguments) -> Result<Answer> {
    let client = Client::new(arguments)?;
    let show = |value: &Value, text: &dyn Fn(&Value)| {
        if arguments.json {
            say!("{value}");
        } else {
            text(value);
        }
    };
    match &arguments.action {
        PeopleAction::List => {
            let listed = client.ask("GET", "/v1/questions?limit=100", None)?;
            show(&listed, &list);
        }
        PeopleAction::Answer { question, answer, preview, skip } => {
            if let Some(reason) = skip {
                let lease = client.lease(*question)?;
                let body = json!({ "lease": lease, "reason": reason });
                let skipped = client.ask("POST", &format!("/v1/questions/{question}/skip"), Some(&body))?;
                show(&skipped, &|_| say!("question {question} is skipped"));
                return Ok(Answer::Yes);
            }
            let text = answer.as_deref().unwrap_or_default();
            let said: Value =
                serde_json::from_str(text).with_context(|| format!("the answer {text:?} is no JSON"))?;
            if *preview {
                let path = format!("/v1/questions/{question}/preview");
                let seen = client.ask("POST", &path, Some(&json!({ "answer": said })))?;
                show(&seen, &|seen| changes(seen, "would change"));
                return Ok(Answer::Yes);
            }
            let body = json!({ "lease": client.lease(*question)?, "answer": said });
            let given = client.ask("POST", &format!("/v1/questions/{question}/answer"), Some(&body))?;
            show(&given, &|given| match given["answer"].as_str() {
                Some(number) => {
                    say!("answer {number} to question {question} (bem people undo {number} takes it back)");
                    changes(given, "changed");
                }
                None => {
                    say!("question {question} waits for {}", given["waits_for"].as_str().unwrap_or("others"))
                }
            });
        }
        PeopleAction::Undo { answer } => {
            let back = client.ask("POST", &format!("/v1/answers/{answer}/undo"), None)?;
            show(&back, &|back| {
                say!("answer {answer} is taken back");
                let seen = json!({ "changes": back["taken_back"] });
                changes(&seen, "changed");
            });
        }
        PeopleAction::Stats => {
            let people = client.ask("GET", "/v1/people", None)?;
            show(&people, &stats);
        }
        PeopleAction::Control { fields } => {
            let mut control = json!({});
            for field in fields {
                let (name, value) =
                    field.split_once('=').with_context(|| format!("{field:?} is no FIELD=VALUE"))?;
                control[name] = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
            }
            let set = client.ask("PUT", "/v1/people/control", Some(&control))?;
            show(&set, &|set| rows(set, ""));
        }
    }
    Ok(Answer::Yes)
}

fn list(listed: &Value) {
    let questions = listed["questions"].as_array().cloned().unwrap_or_default();
    if questions.is_empty() {
        say!("no question is open");
        return;
    }
    say!("{:>8}  {:<14}  {:<8}  {:<11}  {:<9}  about", "question", "kind", "priority", "status", "needs");
    for question in &questions {
        let text = |name: &str| question[name].as_str().unwrap_or_default().to_string();
        let about = &question["context"];
        let world = about["world"].as_str().unwrap_or_default();
        let words = match question["kind"].as_str() {
            Some("label_step") => {
                format!("{world}: obs {}, took action {}", text_of(&about["obs"]), about["chosen"])
            }
            Some("score_episode") => {
                format!("{world}: {} steps, return {}", about["length"], about["return"])
            }
            Some("approve_patch") => format!("{world}: {}", text_of(&about["words"]).replace('\n', "; ")),
            Some("rank_templates") => {
                let worlds = about["worlds"].as_array().cloned().unwrap_or_default();
                worlds.iter().map(|one| text_of(&one["world"])).collect::<Vec<_>>().join(", ")
            }
            _ => text_of(&about["reason"]),
        };
        say!(
            "{:>8}  {:<14}  {:<8}  {:<11}  {:<9}  {words}",
            text("question"),
            text("kind"),
            text("priority"),
            text("status"),
            text("needs")
        );
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

fn changes(seen: &Value, verb: &str) {
    let list = seen["changes"].as_array().cloned().unwrap_or_default();
    if list.is_empty() {
        say!("  nothing {verb}");
    }
    for change in &list {
        say!("  {verb}: {}", text_of(&change["words"]));
    }
}

fn stats(people: &Value) {
    rows(&people["statistics"], "");
    say!("  {:<30} {}", "open", people["open"]);
    rows(&people["control"], "");
    for (kind, alpha) in people["agreement"].as_object().into_iter().flatten() {
        if !alpha.is_null() {
            say!("  {:<30} {alpha}", format!("agreement, {kind}"));
        }
    }
    for person in people["people"].as_array().into_iter().flatten() {
        let you = if person["you"] == json!(true) { " (you)" } else { "" };
        let who = format!("person {}{you}", text_of(&person["person"]));
        say!("  {who:<30} {} answers, weight {}", person["answers"], person["weight"]);
    }
}

fn rows(object: &Value, indent: &str) {
    for (name, value) in object.as_object().into_iter().flatten() {
        say!("  {indent}{name:<30} {}", text_of(value));
    }
}

/// Requests to one server.
struct Client {
    address: String,
    token: String,
}

impl Client {
    fn new(arguments: &PeopleArguments) -> Result<Client> {
        let url = arguments.url.trim_end_matches('/');
        let Some(address) = url.strip_prefix("http://").filter(|address| !address.contains('/')) else {
            bail!("--url {url:?} is not allowed: http://HOST:PORT");
        };
        let address = if address.contains(':') { address.to_string() } else { format!("{address}:80") };
        let file = arguments.token_file.clone().unwrap_or_else(|| PathBuf::from("./bem-state/token"));
        let token = std::fs::read_to_string(&file).with_context(|| {
            format!("{} cannot be read: --token-file names the file of a token", file.display())
        })?;
        Ok(Client { address, token: token.trim().to_string() })
    }

    fn lease(&self, question: u64) -> Result<String> {
        let leased = self.ask("POST", &format!("/v1/questions/{question}/lease"), None)?;
        Ok(leased["lease"].as_str().unwrap_or_default().to_string())
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let unreachable = || format!("no server answers at {}: bem serve starts one", self.address);
        let mut stream = TcpStream::connect(&self.address).with_context(unreachable)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let body = body.map(Value::to_string);
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n",
            self.address, self.token
        );
        match &body {
            Some(body) => {
                head += &format!(
                    "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
            }
            None => head += "Content-Length: 0\r\n\r\n",
        }
        stream.write_all(head.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(ANSWER_MAX).read_to_end(&mut answer).context("the server does not answer")?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").context("the server answers no HTTP")?;
        let status: u16 = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let value: Value = serde_json::from_str(body.trim()).unwrap_or(Value::Null);
        if !(200..300).contains(&status) {
            let message =
                value["error"]["message"].as_str().map_or_else(|| format!("status {status}"), str::to_string);
            bail!("the server refuses: {message}");
        }
        Ok(value)
    }
}
