//! From names to numbers and back: what a request by hand means, and how its answer is shown.
//!
//! What is unknown is answered with what there is. Clauses: TOOL-1, TOOL-11.

use crate::catalog_file::CatalogFile;
use crate::{json, redact, schema};
use anyhow::{Result, anyhow, bail};
use bem_base::ids::{ObjectClass, ObjectId};
use bem_tools::catalog::{Connection, flag};
use bem_tools::error::ErrorCode;
use bem_tools::operation::{self, Operation, Role, db_flag, fs_flag};
use serde_json::{Map, Value, json};

/// A request as it was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The kind.
    pub kind: ObjectId,
    /// The built-in operation, if it is one.
    pub operation: Option<&'static Operation>,
    /// The operation's number.
    pub code: u16,
    /// The resource.
    pub resource: ObjectId,
    /// The flags.
    pub flags: u16,
    /// The payload.
    pub payload: Vec<u8>,
}

/// Flags of requests by kind.
const FLAGS: [(Role, &str, u16); 4] = [
    (Role::Files, "partial", fs_flag::PARTIAL),
    (Role::Files, "append", fs_flag::APPEND),
    (Role::Database, "transactional", db_flag::TRANSACTIONAL),
    (Role::Database, "read_only", db_flag::READ_ONLY),
];

/// Names of an iterator, or the word none.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}

/// Finds what a request names.
pub fn resolve(
    file: &CatalogFile,
    kind: &str,
    op: &str,
    resource: &str,
    request: &Value,
    flags: &[String],
) -> Result<Named> {
    let catalog = &file.catalog;
    let id = catalog.find(kind).filter(|id| id.class() == ObjectClass::ToolKind);
    let known = || catalog.kinds().iter().filter_map(|kind| catalog.name_of(kind.id));
    let id = id.ok_or_else(|| anyhow!("kind {kind:?} is unknown: known are {}", listed(known())))?;
    let role = catalog.role(id).unwrap_or(Role::Custom);
    let (operation, code) = match role {
        Role::Custom => {
            let found = catalog.custom_operations(id).iter().find(|known| known.name == op);
            (None, found.map(|found| found.code))
        }
        role => {
            let found = operation::by_name(role, op);
            (found, found.map(|found| found.code))
        }
    };
    let Some(code) = code else {
        bail!("{kind} has no operation {op:?}: known are {}", operations_of(file, id).join(", "));
    };
    let resource = match resource {
        // A tool without a resource is its own.
        "-" if role.resource().is_none() => id,
        name => {
            let found = catalog.find(name);
            let fits = |found: &ObjectId| role.resource().is_none_or(|class| found.class() == class);
            found.filter(fits).ok_or_else(|| {
                let fitting =
                    names(file).into_iter().filter(|(id, _)| fits(id)).map(|(_, name)| name).take(20);
                anyhow!("resource {name:?} is unknown to {kind}: known are {}", listed(fitting))
            })?
        }
    };
    let mut bits = 0;
    for name in flags {
        let known = FLAGS.iter().find(|(of, known, _)| *of == role && known == name);
        let Some((_, _, bit)) = known else {
            let known = flags_of(role);
            bail!("flag {name:?} is unknown to {kind}: known are {}", listed(known.into_iter()));
        };
        bits |= bit;
    }
    let payload = json::to_payload(operation, request)?;
    let payload = redact::question(file, id, &payload).into_owned();
    Ok(Named { kind: id, operation, code, resource, flags: bits, payload })
}

/// Names of the resources that a role works on.
pub fn resources(file: &CatalogFile, role: Role) -> Vec<&str> {
    let fits = |id: &ObjectId| match role {
        Role::Model => file.models.contains_key(id),
        Role::Environment => file.simulators.contains_key(id),
        role => role.resource().is_none_or(|class| id.class() == class),
    };
    names(file).into_iter().filter(|(id, _)| fits(id)).map(|(_, name)| name).collect()
}

/// Names of the flags that requests of a role take.
pub fn flags_of(role: Role) -> Vec<&'static str> {
    FLAGS.iter().filter(|(of, ..)| *of == role).map(|(_, name, _)| *name).collect()
}

/// Every resource with its name.
fn names(file: &CatalogFile) -> Vec<(ObjectId, &str)> {
    let catalog = &file.catalog;
    let files = catalog.files().iter().map(|node| node.id);
    let rows = catalog.databases().iter().chain(catalog.environments()).map(|row| row.id);
    files.chain(rows).filter_map(|id| Some((id, catalog.name_of(id)?))).collect()
}

/// The names of a kind's operations.
pub fn operations_of(file: &CatalogFile, kind: ObjectId) -> Vec<String> {
    match file.catalog.role(kind) {
        Some(Role::Custom) | None => {
            file.catalog.custom_operations(kind).iter().map(|operation| operation.name.clone()).collect()
        }
        Some(role) => operation::names(role).map(str::to_string).collect(),
    }
}

/// The names of a resource's flags.
pub fn flag_names(flags: u16) -> Vec<&'static str> {
    flag::NAMES.iter().filter(|(_, bit)| flags & bit != 0).map(|(name, _)| *name).collect()
}

/// The catalog without paths and credentials.
pub fn described(file: &CatalogFile) -> Value {
    let catalog = &file.catalog;
    let name = |id: ObjectId| catalog.name_of(id).unwrap_or_default().to_string();
    let kinds: Vec<Value> = catalog
        .kinds()
        .iter()
        .map(|kind| {
            let operations = operations_of(file, kind.id);
            let schema = |op: &String| Some((op.clone(), schema::of(file, kind.id, op)?));
            let schemas: Map<String, Value> = operations.iter().filter_map(schema).collect();
            json!({
                "name": name(kind.id), "id": kind.id.to_word(), "role_flags": kind.role_flags,
                "operations": operations, "schemas": schemas,
            })
        })
        .collect();
    let nodes: Vec<Value> = catalog
        .files()
        .iter()
        .map(|node| {
            let flags = flag_names(node.flags);
            json!({ "name": name(node.id), "id": node.id.to_word(), "kind": node.kind as u8, "flags": flags })
        })
        .collect();
    let row = |row: &Connection| json!({ "name": name(row.id), "id": row.id.to_word(), "flags": flag_names(row.flags) });
    json!({
        "version": bem_tools::VERSION_TEXT,
        "kinds": kinds,
        "files": nodes,
        "databases": catalog.databases().iter().map(row).collect::<Vec<_>>(),
        "environments": catalog.environments().iter().map(row).collect::<Vec<_>>(),
    })
}

/// A completed request for people and programs.
pub fn answer(
    error: Option<ErrorCode>,
    response: &[u8],
    operation: Option<&Operation>,
    attempts: u32,
    waited: u64,
) -> Value {
    match error {
        None => json!({
            "status": "done", "response": json::from_payload(operation, response),
            "attempts": attempts, "ms": waited,
        }),
        Some(code) => json!({
            "status": "error", "code": code.0, "error": code.name(), "message": code.words(),
            "detail": String::from_utf8_lossy(response), "attempts": attempts, "ms": waited,
        }),
    }
}
