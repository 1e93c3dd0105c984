//! TOOL_DB on SQLite: statements with bound parameters, bounded in steps, rows and bytes.
//!
//! An authorizer decides what a statement may do before it runs, a progress handler stops it when it takes too many steps.
//! Parameters are bound, never pasted. A transaction writes its key into a table of its own and finds it there when it is
//! tried again, so that its effect happens once. Whole numbers, text and bytes travel as they are, real numbers as decimal
//! text. Must not know who asks. Clauses: TOOL-6, TOOL-9.

use crate::catalog_file::{CatalogFile, Database};
use anyhow::Result;
use bem_base::ids::{ObjectClass, ObjectId};
use bem_tools::catalog::flag;
use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::operation::{Role, by_code, db_flag};
use bem_tools::payload::Fields;
use bem_tools::worker::{Failure, Job, Tool};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{
    Connection, OpenFlags, OptionalExtension as _, Statement, StatementStatus, TransactionBehavior,
};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Rows of one answer at most.
const ROWS_MAX: i64 = 10_000;
/// Rows without a limit.
const ROWS_DEFAULT: i64 = 256;
/// Steps between two looks at the bound.
const STEPS_PER_LOOK: i32 = 100;
/// Statements that are kept prepared.
const PREPARED_MAX: usize = 256;
/// Results that are kept for FETCH.
const RESULTS_MAX: usize = 16;
/// Bytes of text or bytes in a database, and of a statement.
const LENGTH_MAX: i32 = 1 << 20;
/// How long another process may hold the database.
const BUSY: Duration = Duration::from_secs(2);
/// Keys of transactions that have happened.
const KEYS: &str =
    "CREATE TABLE IF NOT EXISTS bem_tool_keys (key BLOB PRIMARY KEY, response BLOB NOT NULL) WITHOUT ROWID";

/// What a statement may do; the authorizer reads it.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq)]
enum Allowed {
    Read = 0,
    Write = 1,
    /// The tool's own statements.
    Own = 2,
}

struct Open {
    connection: Connection,
    allowed: Arc<AtomicU8>,
    left: Arc<AtomicU64>,
}

impl Open {
    fn new(database: &Database) -> Result<Open, Failure> {
        let is_fixed = database.flags & flag::READ_ONLY != 0;
        let access =
            if is_fixed { OpenFlags::SQLITE_OPEN_READ_ONLY } else { OpenFlags::SQLITE_OPEN_READ_WRITE };
        let opened = Connection::open_with_flags(&database.path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        let mut connection =
            opened.map_err(|_| Failure::new(ErrorCode::UNAVAILABLE, "the database cannot be opened"))?;
        let (allowed, left) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicU64::new(0)));
        let rule = Arc::clone(&allowed);
        let authorize =
            move |context: AuthContext<'_>| authorize(&context.action, rule.load(Ordering::Relaxed));
        let bound = Arc::clone(&left);
        let is_spent = move || {
            let steps = STEPS_PER_LOOK as u64;
            bound.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(steps)).is_err()
        };
        let prepared = connection
            .authorizer(Some(authorize))
            .and_then(|()| connection.progress_handler(STEPS_PER_LOOK, Some(is_spent)))
            .and_then(|()| connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LENGTH_MAX).map(drop))
            .and_then(|()| connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, LENGTH_MAX).map(drop))
            .and_then(|()| connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map(drop))
            .and_then(|()| connection.busy_timeout(BUSY));
        prepared.map_err(|error| failure(&error))?;
        Ok(Open { connection, allowed, left })
    }

    fn allow(&self, allowed: Allowed, steps: u64) {
        self.allowed.store(allowed as u8, Ordering::Relaxed);
        self.left.store(steps.next_multiple_of(STEPS_PER_LOOK as u64), Ordering::Relaxed);
    }
}

fn authorize(action: &AuthAction<'_>, allowed: u8) -> Authorization {
    if allowed == Allowed::Own as u8 {
        return Authorization::Allow;
    }
    let is_ours = |table: &str| table.eq_ignore_ascii_case("bem_tool_keys");
    let is_read = match action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Read { table_name, .. } => !is_ours(table_name),
        AuthAction::Function { function_name } => !function_name.eq_ignore_ascii_case("load_extension"),
        _ => false,
    };
    let is_write = match action {
        AuthAction::Insert { table_name } | AuthAction::Delete { table_name } => !is_ours(table_name),
        AuthAction::Update { table_name, .. } => !is_ours(table_name),
        _ => false,
    };
    if is_read || is_write && allowed == Allowed::Write as u8 {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

fn failure(error: &rusqlite::Error) -> Failure {
    let code = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::OperationInterrupted) => ErrorCode::TOO_EXPENSIVE,
        Some(rusqlite::ErrorCode::AuthorizationForStatementDenied | rusqlite::ErrorCode::ReadOnly) => {
            ErrorCode::NOT_ALLOWED
        }
        Some(
            rusqlite::ErrorCode::DatabaseBusy
            | rusqlite::ErrorCode::CannotOpen
            | rusqlite::ErrorCode::NotADatabase,
        ) => ErrorCode::UNAVAILABLE,
        _ => ErrorCode::BAD_QUERY,
    };
    Failure::new(code, error.to_string())
}

/// The rows of an answer.
struct Rows {
    columns: Vec<String>,
    rows: Vec<Item>,
    changed: i64,
    steps: i64,
    is_truncated: bool,
}

/// The tool.
pub struct Databases {
    catalog: Arc<CatalogFile>,
    open: BTreeMap<ObjectId, Open>,
    prepared: BTreeMap<i64, (ObjectId, String)>,
    next: i64,
    results: VecDeque<(i64, ObjectId, String, Vec<Value>)>,
}

impl Databases {
    /// A tool over the databases of the catalog; each is opened when it is first asked.
    pub fn new(catalog: Arc<CatalogFile>) -> Databases {
        Databases {
            catalog,
            open: BTreeMap::new(),
            prepared: BTreeMap::new(),
            next: 1,
            results: VecDeque::new(),
        }
    }

    /// Opens all of them now, before the process gives up what it needs for that.
    pub fn open_all(&mut self) -> Result<()> {
        let ids: Vec<ObjectId> = self.catalog.databases.keys().copied().collect();
        for id in ids {
            let opened = self.ready(id).map(drop);
            opened.map_err(|failure| anyhow::anyhow!("{}: {}", failure.code.words(), failure.words))?;
        }
        Ok(())
    }

    fn ready(&mut self, id: ObjectId) -> Result<(&mut Open, Database), Failure> {
        let database = self.catalog.databases.get(&id).ok_or(ErrorCode::UNKNOWN_RESOURCE)?.clone();
        let open = match self.open.entry(id) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => place.insert(Open::new(&database)?),
        };
        Ok((open, database))
    }
}

impl Tool for Databases {
    fn run(&mut self, job: &Job) -> Result<Vec<u8>, Failure> {
        let operation = by_code(Role::Database, job.operation).ok_or(ErrorCode::UNKNOWN_OPERATION)?;
        let id = job.resource.ok_or(ErrorCode::UNKNOWN_RESOURCE)?;
        if id.class() != ObjectClass::DbConn {
            return Err(ErrorCode::WRONG_RESOURCE.into());
        }
        let fields = Fields::read(operation, &job.payload)?;
        let item = match operation.name {
            "query" => return self.query(id, &fields, job),
            "prepare" => self.prepare(id, &fields),
            "fetch" => self.fetch(id, &fields),
            "meta" => self.meta(id),
            _ => Err(ErrorCode::UNKNOWN_OPERATION.into()),
        };
        item.map(|item| item.to_bytes())
    }
}

impl Databases {
    /// The statement: text, a prepared one, or one that the catalog names.
    fn statement(&self, id: ObjectId, fields: &Fields<'_>) -> Result<String, Failure> {
        let bad = |words: String| Failure::new(ErrorCode::BAD_PAYLOAD, words);
        let (text, name) = (fields.text(0)?, fields.text(2)?);
        match (text, fields.get(1), name) {
            (Some(text), None, None) => Ok(text.to_string()),
            (None, Some(_), None) => {
                let number = fields.int(1, 1..=i64::MAX, 0)?;
                let known = self.prepared.get(&number).filter(|(owner, _)| *owner == id);
                let lost =
                    || Failure::new(ErrorCode::NOT_FOUND, "this statement is not prepared: prepare it again");
                known.map(|(_, text)| text.clone()).ok_or_else(lost)
            }
            (None, None, Some(name)) => {
                let operations = self.catalog.databases.get(&id).map(|database| &database.operations);
                let known = operations.and_then(|known| known.get(name));
                known.cloned().ok_or_else(|| {
                    let names: Vec<&str> =
                        operations.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                    bad(format!("operation {name:?} is not in the catalog: known are {}", names.join(", ")))
                })
            }
            _ => Err(bad("one of text, prepared and operation is needed".to_string())),
        }
    }

    fn query(&mut self, id: ObjectId, fields: &Fields<'_>, job: &Job) -> Result<Vec<u8>, Failure> {
        let text = self.statement(id, fields)?;
        let parameters = fields.list(3)?.iter().map(parameter).collect::<Result<Vec<_>, Failure>>()?;
        let limit = fields.int(4, 1..=ROWS_MAX, ROWS_DEFAULT)? as usize;
        let offset = fields.int(6, 0..=i64::MAX, 0)? as usize;
        let wanted: Vec<String> = fields
            .list(5)?
            .iter()
            .map(|item| item.text().map(str::to_string))
            .collect::<Option<_>>()
            .ok_or_else(|| Failure::new(ErrorCode::BAD_PAYLOAD, "columns must be a list of names"))?;
        let capacity = job.capacity as usize;
        let began = Instant::now();
        let shape = Shaped { text, parameters, limit, offset, wanted, capacity };
        let (open, database) = self.ready(id)?;
        let is_fixed = database.flags & flag::READ_ONLY != 0 || job.flags & db_flag::READ_ONLY != 0;
        let is_once = !is_fixed
            && (job.flags & db_flag::TRANSACTIONAL != 0 || database.flags & flag::TRANSACTIONAL != 0);
        let allowed = if is_fixed { Allowed::Read } else { Allowed::Write };
        if is_once {
            return once(open, &database, &shape, job, began);
        }
        open.allow(allowed, database.steps_max);
        let rows = run(&open.connection, &shape)?;
        let result = (rows.is_truncated && is_fixed).then(|| {
            self.next += 1;
            // FETCH runs the same statement again, further on.
            self.results.truncate(RESULTS_MAX - 1);
            self.results.push_front((self.next, id, shape.text.clone(), shape.parameters.clone()));
            self.next
        });
        Ok(answer(&rows, began.elapsed(), result).to_bytes())
    }

    fn prepare(&mut self, id: ObjectId, fields: &Fields<'_>) -> Result<Item, Failure> {
        let text = fields
            .text(0)?
            .ok_or_else(|| Failure::new(ErrorCode::BAD_PAYLOAD, "text is missing"))?
            .to_string();
        let (open, database) = self.ready(id)?;
        let allowed = if database.flags & flag::READ_ONLY != 0 { Allowed::Read } else { Allowed::Write };
        open.allow(allowed, database.steps_max);
        let statement = open.connection.prepare(&text).map_err(|error| failure(&error))?;
        let (parameters, columns) = (statement.parameter_count() as i64, statement.column_count() as i64);
        drop(statement);
        if PREPARED_MAX <= self.prepared.len() {
            self.prepared.pop_first();
        }
        self.next += 1;
        self.prepared.insert(self.next, (id, text));
        Ok(Item::fields([(0, Item::Int(self.next)), (1, Item::Int(parameters)), (2, Item::Int(columns))]))
    }

    fn fetch(&mut self, id: ObjectId, fields: &Fields<'_>) -> Result<Item, Failure> {
        let number = fields.int(0, 1..=i64::MAX, 0)?;
        let (offset, limit) =
            (fields.int(1, 0..=i64::MAX, 0)? as usize, fields.int(2, 1..=ROWS_MAX, ROWS_DEFAULT)? as usize);
        let known = self.results.iter().find(|(known, owner, ..)| *known == number && *owner == id);
        let lost = || Failure::new(ErrorCode::NOT_FOUND, "this result is not kept any more: ask again");
        let (_, _, text, parameters) = known.ok_or_else(lost)?;
        let (text, parameters) = (text.clone(), parameters.clone());
        let shape = Shaped { text, parameters, limit, offset, wanted: Vec::new(), capacity: usize::MAX };
        let (open, database) = self.ready(id)?;
        open.allow(Allowed::Read, database.steps_max);
        let began = Instant::now();
        let rows = run(&open.connection, &shape)?;
        Ok(answer(&rows, began.elapsed(), Some(number)))
    }

    fn meta(&mut self, id: ObjectId) -> Result<Item, Failure> {
        let (open, database) = self.ready(id)?;
        open.allow(Allowed::Own, database.steps_max);
        let shape = Shaped {
            text: "SELECT m.name, p.name, p.type FROM sqlite_schema m, pragma_table_info(m.name) p \
                   WHERE m.type IN ('table', 'view') AND m.name <> 'bem_tool_keys' ORDER BY m.name, p.cid"
                .to_string(),
            parameters: Vec::new(),
            limit: ROWS_MAX as usize,
            offset: 0,
            wanted: Vec::new(),
            capacity: usize::MAX,
        };
        let rows = run(&open.connection, &shape)?;
        Ok(Item::fields([(0, Item::List(rows.rows))]))
    }
}

/// A statement with how its result shall look.
struct Shaped {
    text: String,
    parameters: Vec<Value>,
    limit: usize,
    offset: usize,
    wanted: Vec<String>,
    capacity: usize,
}

fn parameter(item: &Item) -> Result<Value, Failure> {
    Ok(match item {
        Item::Null => Value::Null,
        Item::Bool(value) => Value::Integer(i64::from(*value)),
        Item::Int(value) => Value::Integer(*value),
        Item::Text(text) => Value::Text(text.clone()),
        Item::Bytes(bytes) => Value::Blob(bytes.clone()),
        Item::List(_) | Item::Map(_) => {
            return Err(Failure::new(
                ErrorCode::BAD_PAYLOAD,
                "a parameter must be a number, text, bytes or null",
            ));
        }
    })
}

fn show(value: ValueRef<'_>) -> Item {
    match value {
        ValueRef::Null => Item::Null,
        ValueRef::Integer(value) => Item::Int(value),
        // The shortest decimal text that reads back as the same number.
        ValueRef::Real(value) => Item::Text(format!("{value:?}")),
        ValueRef::Text(text) => Item::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Item::Bytes(bytes.to_vec()),
    }
}

fn run(connection: &Connection, shape: &Shaped) -> Result<Rows, Failure> {
    let fails = |error: rusqlite::Error| failure(&error);
    let mut statement = connection.prepare(&shape.text).map_err(fails)?;
    if statement.parameter_count() != shape.parameters.len() {
        let words = format!(
            "the statement has {} parameters, {} were given",
            statement.parameter_count(),
            shape.parameters.len()
        );
        return Err(Failure::new(ErrorCode::BAD_PAYLOAD, words));
    }
    let names: Vec<String> = statement.column_names().map(str::to_string).collect();
    let places: Vec<usize> = match shape.wanted.as_slice() {
        [] => (0..names.len()).collect(),
        wanted => wanted
            .iter()
            .map(|name| {
                let unknown = || {
                    let words = format!("column {name:?} is unknown: known are {}", names.join(", "));
                    Failure::new(ErrorCode::BAD_PAYLOAD, words)
                };
                names.iter().position(|known| known == name).ok_or_else(unknown)
            })
            .collect::<Result<_, _>>()?,
    };
    for (place, value) in shape.parameters.iter().enumerate() {
        statement.raw_bind_parameter(place + 1, ToSqlOutput::Owned(value.clone())).map_err(fails)?;
    }
    let before = connection.total_changes();
    let (rows, is_truncated) = collect(&mut statement, shape, &places)?;
    let steps = i64::from(statement.get_status(StatementStatus::VmStep));
    let changed = connection.total_changes().saturating_sub(before) as i64;
    let columns = places.iter().map(|place| names[*place].clone()).collect();
    Ok(Rows { columns, rows, changed, steps, is_truncated })
}

fn collect(
    statement: &mut Statement<'_>,
    shape: &Shaped,
    places: &[usize],
) -> Result<(Vec<Item>, bool), Failure> {
    let fails = |error: rusqlite::Error| failure(&error);
    // A statement without columns is stepped to its end all the same.
    let mut rows = statement.raw_query();
    let (mut found, mut bytes, mut number) = (Vec::new(), 256, 0usize);
    while let Some(row) = rows.next().map_err(fails)? {
        number += 1;
        if number <= shape.offset {
            continue;
        }
        if found.len() == shape.limit {
            return Ok((found, true));
        }
        let values = places.iter().map(|place| row.get_ref(*place).map(show)).collect::<Result<Vec<_>, _>>();
        let values = Item::List(values.map_err(fails)?);
        bytes += values.to_bytes().len();
        if shape.capacity < bytes {
            return Ok((found, true));
        }
        found.push(values);
    }
    Ok((found, false))
}

fn answer(rows: &Rows, took: Duration, result: Option<i64>) -> Item {
    let columns = rows.columns.iter().map(|name| Item::Text(name.clone())).collect();
    let mut fields = vec![
        (0, Item::List(columns)),
        (1, Item::List(rows.rows.clone())),
        (2, Item::Int(rows.rows.len() as i64)),
        (3, Item::Int(rows.changed)),
        (4, Item::Int(took.as_micros() as i64)),
        (5, Item::Int(rows.steps)),
        (7, Item::Bool(rows.is_truncated)),
    ];
    fields.extend(result.map(|result| (6, Item::Int(result))));
    Item::fields(fields)
}

/// Runs a statement in a transaction whose effect happens once for its key.
fn once(
    open: &mut Open,
    database: &Database,
    shape: &Shaped,
    job: &Job,
    began: Instant,
) -> Result<Vec<u8>, Failure> {
    let fails = |error: rusqlite::Error| failure(&error);
    open.allow(Allowed::Own, database.steps_max);
    let (allowed, left) = (Arc::clone(&open.allowed), Arc::clone(&open.left));
    let transaction =
        open.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fails)?;
    transaction.execute(KEYS, []).map_err(fails)?;
    let key = job.key.as_bytes().as_slice();
    let known: Option<Vec<u8>> = transaction
        .query_row("SELECT response FROM bem_tool_keys WHERE key = ?1", [key], |row| row.get(0))
        .optional()
        .map_err(fails)?;
    if let Some(response) = known {
        return Ok(response);
    }
    allowed.store(Allowed::Write as u8, Ordering::Relaxed);
    left.store(database.steps_max, Ordering::Relaxed);
    let rows = run(&transaction, shape);
    allowed.store(Allowed::Own as u8, Ordering::Relaxed);
    left.store(database.steps_max, Ordering::Relaxed);
    let response = answer(&rows?, began.elapsed(), None).to_bytes();
    transaction
        .execute("INSERT INTO bem_tool_keys (key, response) VALUES (?1, ?2)", (key, &response))
        .map_err(fails)?;
    transaction.commit().map_err(fails)?;
    Ok(response)
}

#[cfg(test)]
mod tests;
