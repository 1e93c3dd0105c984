//! Tools over HTTP: what is connected, one request by hand, and the page that shows both.
//!
//! Names become numbers here; the answer comes when it is in the history. Clauses: TOOL-1, TOOL-10, TOOL-11.

use crate::core::{Answered, Message, Routine, Tooling};
use crate::http::{App, Failure, Registered, route};
use crate::page::{document, escaped};
use crate::tokens::Role;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::Html;
use axum::routing::{get, post};
use bem_base::ids::ObjectId;
use bem_machine::memory::segment::{Caller, Segment};
use bem_tools::error::ErrorCode;
use bem_tools::mirror::Mirrored;
use bem_tools::word::Status;
use bem_workers::resolve;
use bem_workers::socket::Connected;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The routes of the tools, with the role that each needs.
pub fn routes() -> Vec<Registered> {
    vec![
        route(Method::GET, "/v1/tools", Some(Role::Viewer), get(list)),
        route(Method::POST, "/v1/tools", Some(Role::Admin), post(call)),
        route(Method::GET, "/tools", Some(Role::Viewer), get(page)),
    ]
}

/// What is connected, and what was counted of it.
fn describe(tooling: Option<&Tooling>) -> Value {
    let Some(tooling) = tooling else {
        return json!({ "kinds": [], "files": [], "databases": [], "environments": [] });
    };
    let host = tooling.host();
    let file = host.catalog();
    let mut described = resolve::described(file);
    for (kind, channel) in described["kinds"].as_array_mut().into_iter().flatten().zip(host.bus().channels())
    {
        let counts = channel.counts();
        let ended = (counts.done + counts.failed).max(1);
        kind["enqueued"] = json!(counts.enqueued);
        kind["done"] = json!(counts.done);
        kind["failed"] = json!(counts.failed);
        kind["in_flight"] = json!(channel.in_flight());
        kind["back_pressure"] = json!(counts.back_pressure);
        kind["leases_lost"] = json!(counts.leases_lost);
        kind["bad_answers"] = json!(counts.bad_answers);
        kind["waited_mean_ms"] = json!(counts.waited_sum / ended);
        kind["waited_max_ms"] = json!(counts.waited_max);
    }
    let workers = host.workers();
    described["workers_connected"] = json!(workers.len());
    let worker = |(number, worker): &(u32, Connected)| json!({ "worker": number, "kind": file.catalog.name_of(worker.kind), "sandbox": worker.sandbox });
    described["workers"] = workers.iter().map(worker).collect();
    let name = |word: u32| ObjectId::from_word(word).ok().and_then(|id| file.catalog.name_of(id));
    let slot = |slot: &Mirrored| {
        let error = (slot.status == Status::Error).then(|| ErrorCode(slot.error).name());
        json!({ "kind": name(slot.kind), "slot": slot.slot, "op": slot.operation, "resource": name(slot.resource),
            "number": slot.number, "status": format!("{:?}", slot.status).to_lowercase(), "error": error,
            "generation": slot.generation, "bytes_in": slot.length, "bytes_out": slot.used })
    };
    described["slots"] = tooling.memory().slots().iter().map(slot).collect();
    described["shared"] = shared(tooling);
    described["routine"] = tooling.routine().map_or(Value::Null, Routine::shown);
    described
}

/// How many rows SHARED's CATALOG holds, which aliases are set, and what WORK counts.
fn shared(tooling: &Tooling) -> Value {
    let Some(tables) = tooling.memory().tables() else { return Value::Null };
    let catalog = &tooling.host().catalog().catalog;
    let aliases: Vec<_> =
        tables.aliases.iter().map(|alias| alias.and_then(|id| catalog.name_of(id))).collect();
    let work = tooling.memory().shared().view(Caller::Core);
    let word = |word: u32| work.read(Segment::Work, word).unwrap_or(0);
    json!({ "version": tables.version, "fs_nodes": tables.files.len(), "fs_nodes_left_out": tables.left_out, "fs_aliases": aliases,
        "db_conns": tables.databases.len(), "tool_kinds": tables.kinds.len(), "env_tasks": tables.environments.len(),
        "ended": word(4), "failed": word(5), "back_pressure": word(6), "barriers": word(7) })
}

async fn described(app: &App) -> Result<Value, Failure> {
    let mut described = app.handle.look_tools(describe).await?;
    let gauges = &app.handle.gauges;
    let count = |gauge: &std::sync::atomic::AtomicU64| gauge.load(std::sync::atomic::Ordering::Relaxed);
    described["proposals"] = json!({ "asked": count(&gauges.models_asked),
        "taken": count(&gauges.machines_proposed), "refused": count(&gauges.proposals_refused) });
    Ok(described)
}

#[utoipa::path(get, path = "/v1/tools", responses((status = 200, description = "What is connected, and what was counted of it")))]
pub(crate) async fn list(State(app): State<App>) -> Result<Json<Value>, Failure> {
    described(&app).await.map(Json)
}

#[utoipa::path(post, path = "/v1/tools", responses((status = 200, description = "How the request ended, with its response"),
    (status = 400, description = "Something in it is unknown"), (status = 404, description = "There are no tools"),
    (status = 429, description = "All slots of the kind are taken")))]
pub(crate) async fn call(State(app): State<App>, body: Bytes) -> Result<Json<Value>, Failure> {
    let bad_json = |message: String| Failure::new(StatusCode::BAD_REQUEST, "bad_json", message);
    let value: Value =
        serde_json::from_slice(&body).map_err(|error| bad_json(format!("the body is no JSON: {error}")))?;
    let Value::Object(fields) = &value else {
        return Err(bad_json("the body must be a JSON object".to_string()));
    };
    let known = ["kind", "op", "resource", "request", "flags"];
    if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        let shown: String = name.chars().take(64).collect();
        return Err(Failure::bad(shown.clone(), format!("{shown:?} is no field: {}", known.join(", "))));
    }
    let text = |name: &str| {
        let missing = || Failure::bad(name, format!("{name} must be text"));
        fields.get(name).and_then(Value::as_str).ok_or_else(missing)
    };
    let flags: Vec<String> = match fields.get("flags") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(flags)) => {
            flags.iter().filter_map(|flag| flag.as_str().map(str::to_string)).collect()
        }
        Some(_) => return Err(Failure::bad("flags", "flags must be a list of names")),
    };
    let request = fields.get("request").cloned().unwrap_or(Value::Null);
    let Some(file) = &app.handle.tools else {
        let message = "this server has no tools: start it with --tools CATALOG.toml";
        return Err(Failure::new(StatusCode::NOT_FOUND, "no_tools", message));
    };
    let (kind, op) = (text("kind")?, text("op")?);
    let resource = fields.get("resource").and_then(Value::as_str).unwrap_or("-");
    let named = resolve::resolve(file, kind, op, resource, &request, &flags)
        .map_err(|error| Failure::bad("request", error.to_string()))?;
    let operation = named.operation;
    let answered: Answered = app.handle.ask(|reply| Message::Tool(Box::new(named), reply)).await??;
    let mut answer =
        resolve::answer(answered.error, &answered.response, operation, answered.attempts, answered.waited);
    answer["number"] = json!(answered.request);
    Ok(Json(answer))
}

/// The slots of the bus that are not empty, as SHARED's TOOL_BUS shows them.
fn slots_shown(listed: &Value) -> String {
    let slots = listed["slots"].as_array().map_or(&[][..], Vec::as_slice);
    if slots.is_empty() {
        return String::new();
    }
    let mut table = String::from(
        "<h2>Slots</h2><div class=wide tabindex=0 role=region aria-label=\"Slots\"><table><tr><th class=left>kind<th>slot<th>request<th class=left>resource<th class=left>status<th>generation",
    );
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    for slot in slots {
        let number = |name: &str| slot[name].as_u64().unwrap_or(0);
        let _ = write!(
            table,
            "<tr><td class=left>{}<td>{}<td>{}<td class=left>{}<td class=left>{} {}<td>{}",
            text(&slot["kind"]),
            number("slot"),
            number("number"),
            text(&slot["resource"]),
            text(&slot["status"]),
            text(&slot["error"]),
            number("generation")
        );
    }
    table + "</table></div>"
}

/// Kinds, resources, and what was counted.
async fn page(State(app): State<App>) -> Result<Html<String>, Failure> {
    let listed = described(&app).await?;
    let mut body = String::from("<p><a href=\"/\">all worlds</a></p><h1>Tools</h1>");
    if app.handle.tools.is_none() {
        body.push_str("<p>This server has no tools: start it with <code>--tools CATALOG.toml</code>.</p>");
    }
    body.push_str(
        "<div class=wide tabindex=0 role=region aria-label=\"Kinds\"><table><tr><th class=left>kind<th>asked<th>done<th>failed<th>under way<th>back-pressure<th>mean ms<th>longest ms<th class=left>operations",
    );
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    for kind in listed["kinds"].as_array().into_iter().flatten() {
        let number = |name: &str| kind[name].as_u64().unwrap_or(0);
        let names = kind["operations"].as_array().into_iter().flatten().map(text);
        let _ = write!(
            body,
            "<tr><td class=left>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td class=\"left long\">{}",
            text(&kind["name"]),
            number("enqueued"),
            number("done"),
            number("failed"),
            number("in_flight"),
            number("back_pressure"),
            number("waited_mean_ms"),
            number("waited_max_ms"),
            names.collect::<Vec<_>>().join(", ")
        );
    }
    body.push_str("</table></div>");
    body.push_str(&slots_shown(&listed));
    for (part, title) in
        [("files", "Files"), ("databases", "Databases"), ("environments", "Simulators and models")]
    {
        let rows = listed[part].as_array().map_or(&[][..], Vec::as_slice);
        if rows.is_empty() {
            continue;
        }
        let _ = write!(body, "<h2>{title}</h2><ul>");
        for row in rows.iter().take(200) {
            let flags = row["flags"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
            let _ = write!(body, "<li><code>{}</code> {}", text(&row["name"]), flags.join(" "));
        }
        body.push_str("</ul>");
    }
    Ok(document("BEM: tools", &body, None))
}
