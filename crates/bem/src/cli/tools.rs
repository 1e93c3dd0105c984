//! `bem tools` and `bem worker`: the catalog, one request by hand, and a worker in a process of its own.
//!
//! Without `--url` a request goes over a private bus that lives as long as the command. Clauses: TOOL-1, TOOL-3.

use super::Answer;
use crate::interrupt;
use anyhow::{Context as _, Result, anyhow, bail};
use bem_base::ids::ObjectId;
use bem_tools::bus::{Request, key};
use bem_tools::limits::PAYLOAD_MAX;
use bem_tools::operation::Role;
use bem_tools::worker::Port;
use bem_workers::catalog_file::{CatalogFile, Place};
use bem_workers::host::{Host, HostOptions, PATIENCE};
use bem_workers::{http, json, resolve, sandbox, socket, work};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The resource catalog: check it, show it, one request by hand.
#[derive(Args)]
#[command(after_help = "Example: bem tools check catalog.toml\n\
    Example: bem tools call fs read config/env.json --catalog catalog.toml")]
pub struct ToolsArguments {
    #[command(subcommand)]
    action: ToolsAction,
}

#[derive(Subcommand)]
enum ToolsAction {
    /// Read a catalog and say what is wrong with it, by file and line.
    #[command(after_help = "Example: bem tools check catalog.toml")]
    Check {
        /// The catalog
        #[arg(value_name = "CATALOG.toml")]
        catalog: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Kinds, resources, requests under way, latencies, errors and back-pressure.
    #[command(after_help = "Example: bem tools list --url http://127.0.0.1:7420\n\
        Example: bem tools list --catalog catalog.toml")]
    List {
        #[command(flatten)]
        place: Where,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// One request: KIND OP RESOURCE, and its fields as JSON.
    #[command(
        after_help = "Example: bem tools call fs read config/env.json '{\"length\":100}' --flag partial\n\
        Example: bem tools call db query stock '{\"text\":\"SELECT 1\"}' \\\n           \
        --url http://127.0.0.1:7420"
    )]
    Call {
        /// fs, db, prover, llm, env, or a tool of the catalog
        kind: String,
        /// The operation; a wrong one is answered with those that there are
        op: String,
        /// The resource's logical name; - for none
        resource: String,
        /// The request's fields
        #[arg(value_name = "JSON")]
        request: Option<String>,
        /// partial or append (fs), transactional or read_only (db); may be given again
        #[arg(long, value_name = "FLAG")]
        flag: Vec<String>,
        #[command(flatten)]
        place: Where,
    },
}

/// Which bus.
#[derive(Args)]
struct Where {
    /// A running server; without it the bus is private
    #[arg(long, value_name = "URL", conflicts_with = "catalog")]
    url: Option<String>,
    /// The file of a token for the server
    #[arg(long, value_name = "FILE", default_value = "./bem-state/token")]
    token_file: PathBuf,
    /// The catalog of a private bus
    #[arg(long, value_name = "CATALOG.toml", default_value = "catalog.toml")]
    catalog: PathBuf,
}

/// A worker of a running bus, in a process of its own.
#[derive(Args)]
#[command(after_help = "Example: bem worker --bus bem-state/bus.sock --kind db\n\
    It can reach what its kind needs and nothing else (Landlock), says so, and\n\
    leaves when the bus does. Where that cannot be fully enforced it does not start.")]
pub struct WorkerArguments {
    /// The bus's socket
    #[arg(long, value_name = "SOCKET")]
    bus: PathBuf,
    /// fs, db, prover, llm or env
    #[arg(long)]
    kind: String,
    /// Work without Landlock, where the kernel has none
    #[arg(long)]
    no_sandbox: bool,
}

/// `bem tools`
pub fn run(arguments: &ToolsArguments) -> Result<Answer> {
    match &arguments.action {
        ToolsAction::Check { catalog, json } => check(catalog, *json),
        ToolsAction::List { place, json } => list(place, *json),
        ToolsAction::Call { kind, op, resource, request, flag, place } => {
            let request = match request {
                None => Value::Null,
                Some(text) => {
                    serde_json::from_str(text).with_context(|| format!("the request {text:?} is no JSON"))?
                }
            };
            match &place.url {
                Some(url) => call_server(
                    url,
                    place,
                    &json!({ "kind": kind, "op": op, "resource": resource, "request": request, "flags": flag }),
                ),
                None => call_private(&place.catalog, kind, op, resource, &request, flag),
            }
        }
    }
}

fn check(path: &Path, is_json: bool) -> Result<Answer> {
    let file = CatalogFile::load(path)?;
    if is_json {
        say!("{}", resolve::described(&file));
    } else {
        print_catalog(&file);
    }
    Ok(Answer::Yes)
}

fn print_catalog(file: &CatalogFile) {
    let catalog = &file.catalog;
    let name = |id: ObjectId| catalog.name_of(id).unwrap_or_default();
    say!("kinds");
    for kind in catalog.kinds() {
        say!("  {:<12} {}", name(kind.id), resolve::operations_of(file, kind.id).join(", "));
    }
    say!("files          {}", catalog.files().len());
    for root in &file.roots {
        let place = match &root.place {
            Place::Folder(path) => path.display().to_string(),
            Place::Memory => "memory".to_string(),
        };
        say!("  {:<12} {place} {}", root.name, resolve::flag_names(root.flags).join(" "));
    }
    say!("databases      {}", catalog.databases().len());
    for database in file.databases.values() {
        let (place, flags) = (database.place(), resolve::flag_names(database.flags));
        say!("  {:<12} {place} {}", database.name, flags.join(" "));
    }
    for (id, simulator) in &file.simulators {
        say!("environment    {}: {}", name(*id), simulator.command);
    }
    for model in file.models.values() {
        say!("model          {}: {} at {}", model.name, model.model, model.url);
    }
}

fn list(place: &Where, is_json: bool) -> Result<Answer> {
    let Some(url) = &place.url else { return check(&place.catalog, is_json) };
    let (status, text) = ask_server(url, place, "/v1/tools", None)?;
    let listed: Value = serde_json::from_str(&text).context("the server answers something else")?;
    if status != 200 {
        bail!("the server refuses: {}", listed["error"]["message"].as_str().unwrap_or(&text));
    }
    if is_json {
        say!("{listed}");
        return Ok(Answer::Yes);
    }
    say!(
        "{:<12} {:>9} {:>9} {:>9} {:>7} {:>8} {:>9} {:>9}",
        "kind",
        "asked",
        "done",
        "failed",
        "flight",
        "refused",
        "mean ms",
        "max ms"
    );
    for kind in listed["kinds"].as_array().into_iter().flatten() {
        let number = |name: &str| kind[name].as_u64().unwrap_or(0);
        say!(
            "{:<12} {:>9} {:>9} {:>9} {:>7} {:>8} {:>9} {:>9}",
            kind["name"].as_str().unwrap_or_default(),
            number("enqueued"),
            number("done"),
            number("failed"),
            number("in_flight"),
            number("back_pressure"),
            number("waited_mean_ms"),
            number("waited_max_ms")
        );
    }
    for worker in listed["workers"].as_array().into_iter().flatten() {
        let text = |name: &str| worker[name].as_str().unwrap_or("says nothing").to_string();
        say!("{:<12} {} {}: {}", "worker", worker["worker"], text("kind"), text("sandbox"));
    }
    for part in ["files", "databases", "environments"] {
        for resource in listed[part].as_array().into_iter().flatten() {
            say!("{part:<12} {}", resource["name"].as_str().unwrap_or_default());
        }
    }
    Ok(Answer::Yes)
}

fn ask_server(url: &str, place: &Where, path: &str, body: Option<&str>) -> Result<(u16, String)> {
    let token =
        std::fs::read_to_string(&place.token_file).with_context(|| place.token_file.display().to_string())?;
    http::ask(&http::Ask {
        method: if body.is_some() { "POST" } else { "GET" },
        url: &format!("{}{path}", url.trim_end_matches('/')),
        bearer: Some(token.trim()),
        headers: &[],
        body,
        answer_max: 8 << 20,
        timeout: Duration::from_millis(PATIENCE + 10_000),
    })
}

fn call_server(url: &str, place: &Where, body: &Value) -> Result<Answer> {
    let (status, text) = ask_server(url, place, "/v1/tools", Some(&body.to_string()))?;
    let answer: Value = serde_json::from_str(&text).context("the server answers something else")?;
    if status != 200 {
        bail!("the server refuses: {}", answer["error"]["message"].as_str().unwrap_or(&text));
    }
    say!("{answer}");
    Ok(if answer["status"] == "done" { Answer::Yes } else { Answer::No })
}

fn call_private(
    path: &Path,
    kind: &str,
    op: &str,
    resource: &str,
    request: &Value,
    flags: &[String],
) -> Result<Answer> {
    let file = Arc::new(CatalogFile::load(path)?);
    let named = resolve::resolve(&file, kind, op, resource, request, flags)?;
    let folder = PrivateFolder::make()?;
    let has_tools = file.tools.iter().any(|tool| tool.command.is_some() && tool.kind == named.kind);
    let options =
        HostOptions { socket: has_tools.then(|| folder.0.join("bus.sock")), ..HostOptions::default() };
    let mut host = Host::start(Arc::clone(&file), &options)?;
    let asked = Request {
        operation: named.code,
        flags: named.flags,
        resource: named.resource,
        payload: &named.payload,
        capacity: PAYLOAD_MAX as u32,
        number: 1,
        key: key(1, &named.payload),
        is_idempotent: file.catalog.is_idempotent(named.kind, named.code, named.flags),
        lease: 0,
        patience: PATIENCE,
    };
    let done = host.call(named.kind, &asked).map_err(|refused| anyhow!("{refused}"))?;
    say!("{}", resolve::answer(done.error, &done.response, named.operation, done.attempts, done.waited));
    Ok(if done.error.is_none() { Answer::Yes } else { Answer::No })
}

/// A folder that only this process's user sees, gone with it.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    fn make() -> Result<PrivateFolder> {
        use std::os::unix::fs::DirBuilderExt as _;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| anyhow!("no random numbers: {error}"))?;
        let path = std::env::temp_dir().join(format!("bem-bus-{}", json::to_hex(&random)));
        std::fs::DirBuilder::new().mode(0o700).create(&path).with_context(|| path.display().to_string())?;
        Ok(PrivateFolder(path))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `bem worker`
pub fn worker(arguments: &WorkerArguments) -> Result<Answer> {
    let joined = socket::join(&arguments.bus, &arguments.kind)?;
    let catalog = &joined.catalog;
    let kind = catalog.catalog.find(&arguments.kind).and_then(|kind| catalog.catalog.role(kind));
    let unserved = || anyhow!("kind {:?} is no built-in tool: its own program works for it", arguments.kind);
    let role = kind.filter(|role| *role != Role::Custom).ok_or_else(unserved)?;
    let tool = bem_workers::host::tool(role, catalog)?;
    let mut tool =
        tool.ok_or_else(|| anyhow!("there is no tool of kind {:?} in this build", arguments.kind))?;
    let sandbox = match arguments.no_sandbox {
        true => "no sandbox: --no-sandbox".to_string(),
        false => sandbox::enter(role, catalog)?.to_string(),
    };
    socket::report(&joined.stream, &sandbox)?;
    let mut port = Port::open(Arc::clone(&joined.mapping), joined.worker)?;
    interrupt::listen();
    let bus = arguments.bus.display();
    note!("bem: worker {} of kind {} at {bus}: {sandbox}", joined.worker, arguments.kind);
    work::serve(&mut port, tool.as_mut(), &|| interrupt::is_asked() || socket::is_closed(&joined.stream));
    Ok(Answer::Yes)
}
