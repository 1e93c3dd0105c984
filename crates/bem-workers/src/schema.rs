//! JSON schemas of requests, for programs that ask the bus without knowing it: what `POST /v1/tools` takes beside kind and op.
//!
//! They say no more than the decoders check, and nothing of paths or credentials. Must not know who reads them.
//! Clauses: TOOL-1, TOOL-11, TOOL-13.

use crate::catalog_file::CatalogFile;
use crate::resolve;
use bem_base::ids::ObjectId;
use bem_tools::limits::PAYLOAD_MAX;
use bem_tools::operation::{self, Operation, Role};
use serde_json::{Map, Value, json};

/// Names of resources that a schema lists; with more of them it says only that there must be one.
const NAMES_MAX: usize = 128;

/// What the request of an operation of this kind looks like; nothing for an operation that it does not have.
pub fn of(file: &CatalogFile, kind: ObjectId, op: &str) -> Option<Value> {
    let role = file.catalog.role(kind)?;
    let request = match role {
        Role::Custom => {
            file.catalog.custom_operations(kind).iter().find(|known| known.name == op)?;
            json!({ "description": "what the tool takes: whole numbers, text, lists, objects; fractions as text" })
        }
        role => of_fields(operation::by_name(role, op)?),
    };
    let mut fields = Map::new();
    fields.insert("request".to_string(), request);
    let mut required = Vec::new();
    // A model is a resource too, though every class would be taken.
    if role.resource().is_some() || role == Role::Model {
        let names = resolve::resources(file, role);
        let resource = match names.len() {
            1..=NAMES_MAX => json!({ "type": "string", "enum": names }),
            _ => json!({ "type": "string", "description": "a logical name of the catalog" }),
        };
        fields.insert("resource".to_string(), resource);
        required.push("resource");
    }
    let flags = resolve::flags_of(role);
    if !flags.is_empty() {
        fields.insert("flags".to_string(), json!({ "type": "array", "items": { "enum": flags } }));
    }
    if operation::by_name(role, op).is_some_and(|operation| !needed(operation).is_empty()) {
        required.push("request");
    }
    Some(
        json!({ "type": "object", "properties": fields, "required": required, "additionalProperties": false }),
    )
}

/// The fields of a built-in operation.
fn of_fields(operation: &Operation) -> Value {
    let fields: Map<String, Value> = operation
        .request
        .iter()
        .map(|(_, name)| ((*name).to_string(), field(operation, name).unwrap_or_else(|| json!({}))))
        .collect();
    json!({ "type": "object", "properties": fields, "required": needed(operation), "additionalProperties": false })
}

/// Fields that must be there.
fn needed(operation: &Operation) -> &'static [&'static str] {
    match (operation.role, operation.name) {
        (Role::Files, "write") => &["data"],
        (Role::Database, "prepare") => &["text"],
        (Role::Database, "fetch") => &["result"],
        (Role::Prover, "unsat") => &["dimacs"],
        (Role::Model, "chat") => &["messages"],
        (Role::People, "enqueue_task") => &["kind"],
        (Role::People, "notify") => &["question"],
        _ => &[],
    }
}

/// What one field may be.
fn field(operation: &Operation, name: &str) -> Option<Value> {
    let whole = |least: i64, most: i64| json!({ "type": "integer", "minimum": least, "maximum": most });
    let text = |words: &str| json!({ "type": "string", "description": words });
    Some(match (operation.role, name) {
        (Role::Files, "data") => json!({
            "description": "text, or bytes as hexadecimal digits",
            "oneOf": [{ "type": "string" }, {
                "type": "object", "properties": { "hex": { "type": "string", "pattern": "^([0-9a-fA-F]{2})*$" } },
                "required": ["hex"], "additionalProperties": false,
            }],
        }),
        (Role::Files, "length") => whole(0, PAYLOAD_MAX as i64),
        (Role::Files, "recursive") => json!({ "type": "boolean" }),
        (Role::Files, "pattern") => text("names that are listed; * stands for any letters, ? for one"),
        (Role::Files, "limit") => whole(1, crate::files::LIST_MAX),
        (Role::Database, "limit") => whole(1, crate::database::ROWS_MAX),
        (Role::Files, "offset") => whole(0, 1 << 40),
        (Role::Database, "offset") => whole(0, i64::MAX),
        (Role::Database, "text") => text("one SQL statement; values are parameters, never pasted"),
        (Role::Database, "prepared" | "result") => whole(1, i64::MAX),
        (Role::Database, "operation") => text("a statement that the catalog names"),
        (Role::Database, "parameters") => json!({
            "type": "array", "description": "?1, ?2 and so on in SQLite, $1, $2 in PostgreSQL",
            "items": { "type": ["integer", "string", "boolean", "null", "object"] },
        }),
        (Role::Database, "columns") => json!({ "type": "array", "items": { "type": "string" } }),
        (Role::Prover, "dimacs") => text("a formula in DIMACS"),
        (Role::Prover, "conflicts") => whole(1, crate::prover::CONFLICTS_MAX),
        (Role::Model, "messages") => json!({
            "type": "array", "minItems": 1, "description": "pairs of role (system, user, assistant) and text",
            "items": { "type": "array", "minItems": 2, "maxItems": 2, "items": { "type": "string" } },
        }),
        (Role::Model, "tokens") => whole(1, 32_768),
        (Role::Model, "seed") => whole(0, i64::MAX),
        (Role::People, "kind") => {
            json!({ "enum": ["label_step", "score_episode", "rank_templates"] })
        }
        (Role::People, "world") => text("the world that it is about, by name"),
        (Role::People, "decision") => text("the number of the decision that it is about"),
        (Role::People, "worlds") => json!({ "type": "array", "items": { "type": "string" } }),
        (Role::People, "priority") => json!({ "enum": ["low", "normal", "high", "critical"] }),
        (Role::People, "deadline") => whole(0, 1 << 40),
        (Role::People, "quorum") => whole(1, 9),
        (Role::People, "reason") => text("what people are told"),
        (Role::People, "question" | "after") => text("the number of a question"),
        (Role::People, "state") => json!({ "enum": ["open", "pending", "in_progress"] }),
        (Role::People, "limit") => whole(1, 1_000),
        (Role::Environment, "line") => text("one line, as programs of --env-cmd read it"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_tools::operation::OPERATIONS;

    #[test]
    fn every_field_of_every_operation_has_a_schema_and_what_is_needed_is_a_field() {
        for operation in OPERATIONS {
            for (_, name) in operation.request {
                assert!(field(operation, name).is_some(), "{:?} {} {name}", operation.role, operation.name);
            }
            let is_field = |name: &&&str| operation.request.iter().any(|(_, known)| known == *name);
            assert!(needed(operation).iter().all(|name| is_field(&name)));
        }
    }

    #[test]
    fn a_schema_names_resources_flags_and_what_users_declare() {
        let text = "[[root]]\nname = \"box\"\nmemory = true\n[[tool]]\nname = \"w\"\noperations = [{ name = \"go\" }]\n";
        let file = CatalogFile::parse("t", text.to_string(), std::env::temp_dir(), None).unwrap();
        let kind = |name: &str| file.catalog.find(name).unwrap();
        let read = of(&file, kind("fs"), "read").unwrap();
        assert_eq!(read["properties"]["resource"]["enum"], json!(["box"]));
        assert_eq!(read["properties"]["flags"]["items"]["enum"], json!(["partial", "append"]));
        assert_eq!(read["required"], json!(["resource"]));
        let write = of(&file, kind("fs"), "write").unwrap();
        assert_eq!(write["properties"]["request"]["required"], json!(["data"]));
        let own = of(&file, kind("w"), "go").unwrap();
        assert_eq!(own["required"], json!([]));
        assert_eq!(of(&file, kind("w"), "stop"), None);
        assert_eq!(of(&file, kind("fs"), "remove"), None);
    }
}
