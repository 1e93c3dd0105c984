//! Databases in a file of SQLite.
//!
//! An authorizer decides what a statement may do before it runs, a progress handler stops it when it takes too many steps. A
//! transaction writes its key into a table of its own and finds it there when it is tried again, so that its effect happens
//! once. Clauses: TOOL-6, TOOL-9; decision D-73.

use super::{Collected, Engine, Rows, Shaped, answer, check_count, places};
use bem_tools::catalog::flag;
use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::worker::Failure;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{
    Connection, OpenFlags, OptionalExtension as _, Statement, StatementStatus, TransactionBehavior,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Steps between two looks at the bound.
const STEPS_PER_LOOK: i32 = 100;
/// Bytes of text or bytes in a database, and of a statement.
const LENGTH_MAX: i32 = 1 << 20;
/// How long another process may hold the database.
const BUSY: Duration = Duration::from_secs(2);
/// Keys of transactions that have happened.
const KEYS: &str =
    "CREATE TABLE IF NOT EXISTS bem_tool_keys (key BLOB PRIMARY KEY, response BLOB NOT NULL) WITHOUT ROWID";
/// Tables with their columns.
const META: &str = "SELECT m.name, p.name, p.type FROM sqlite_schema m, pragma_table_info(m.name) p \
    WHERE m.type IN ('table', 'view') AND m.name <> 'bem_tool_keys' ORDER BY m.name, p.cid";

/// What a statement may do; the authorizer reads it.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq)]
enum Allowed {
    Read = 0,
    Write = 1,
    /// The tool's own statements.
    Own = 2,
}

/// A file that is open.
pub struct Sqlite {
    connection: Connection,
    allowed: Arc<AtomicU8>,
    left: Arc<AtomicU64>,
    steps_max: u64,
}

impl Sqlite {
    /// Opens a file with bounds on what its statements may do.
    pub fn open(path: &Path, steps_max: u64, flags: u16) -> Result<Sqlite, Failure> {
        let is_fixed = flags & flag::READ_ONLY != 0;
        let access =
            if is_fixed { OpenFlags::SQLITE_OPEN_READ_ONLY } else { OpenFlags::SQLITE_OPEN_READ_WRITE };
        let opened = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX);
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
        prepared.map_err(failure)?;
        Ok(Sqlite { connection, allowed, left, steps_max })
    }

    fn allow(&self, allowed: Allowed) {
        self.allowed.store(allowed as u8, Ordering::Relaxed);
        self.left.store(self.steps_max.next_multiple_of(STEPS_PER_LOOK as u64), Ordering::Relaxed);
    }
}

impl Engine for Sqlite {
    fn run(&mut self, shape: &Shaped, may_write: bool) -> Result<Rows, Failure> {
        self.allow(if may_write { Allowed::Write } else { Allowed::Read });
        run(&self.connection, shape)
    }

    fn once(&mut self, shape: &Shaped, key: &[u8; 32], began: Instant) -> Result<Vec<u8>, Failure> {
        self.allow(Allowed::Own);
        let (allowed, left, steps_max) = (Arc::clone(&self.allowed), Arc::clone(&self.left), self.steps_max);
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
        transaction.execute(KEYS, []).map_err(failure)?;
        let key = key.as_slice();
        let known: Option<Vec<u8>> = transaction
            .query_row("SELECT response FROM bem_tool_keys WHERE key = ?1", [key], |row| row.get(0))
            .optional()
            .map_err(failure)?;
        if let Some(response) = known {
            return Ok(response);
        }
        allowed.store(Allowed::Write as u8, Ordering::Relaxed);
        left.store(steps_max, Ordering::Relaxed);
        let rows = run(&transaction, shape);
        allowed.store(Allowed::Own as u8, Ordering::Relaxed);
        left.store(steps_max, Ordering::Relaxed);
        let response = answer(rows?, began.elapsed(), None).to_bytes();
        transaction
            .execute("INSERT INTO bem_tool_keys (key, response) VALUES (?1, ?2)", (key, &response))
            .map_err(failure)?;
        transaction.commit().map_err(failure)?;
        Ok(response)
    }

    fn prepare(&mut self, text: &str, may_write: bool) -> Result<(i64, i64), Failure> {
        self.allow(if may_write { Allowed::Write } else { Allowed::Read });
        let statement = self.connection.prepare(text).map_err(failure)?;
        Ok((statement.parameter_count() as i64, statement.column_count() as i64))
    }

    fn meta(&mut self) -> Result<Rows, Failure> {
        self.allow(Allowed::Own);
        let shape = Shaped {
            text: META.to_string(),
            parameters: Vec::new(),
            limit: super::ROWS_MAX as usize,
            offset: 0,
            wanted: Vec::new(),
            capacity: usize::MAX,
        };
        run(&self.connection, &shape)
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

fn failure(error: rusqlite::Error) -> Failure {
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

fn parameter(item: &Item) -> Value {
    match item {
        Item::Bool(value) => Value::Integer(i64::from(*value)),
        Item::Int(value) => Value::Integer(*value),
        Item::Text(text) => Value::Text(text.clone()),
        Item::Bytes(bytes) => Value::Blob(bytes.clone()),
        Item::Null | Item::List(_) | Item::Map(_) => Value::Null,
    }
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
    let mut statement = connection.prepare(&shape.text).map_err(failure)?;
    check_count(statement.parameter_count(), shape.parameters.len())?;
    let names: Vec<String> = statement.column_names().map(str::to_string).collect();
    let places = places(&names, &shape.wanted)?;
    for (place, item) in shape.parameters.iter().enumerate() {
        statement.raw_bind_parameter(place + 1, ToSqlOutput::Owned(parameter(item))).map_err(failure)?;
    }
    let before = connection.total_changes();
    let Collected { rows, is_truncated, .. } = collect(&mut statement, shape, &places)?;
    let cost = i64::from(statement.get_status(StatementStatus::VmStep));
    let changed = connection.total_changes().saturating_sub(before) as i64;
    let columns = places.iter().map(|place| names[*place].clone()).collect();
    Ok(Rows { columns, rows, changed, cost, is_truncated })
}

fn collect(statement: &mut Statement<'_>, shape: &Shaped, places: &[usize]) -> Result<Collected, Failure> {
    // A statement without columns is stepped to its end all the same.
    let mut rows = statement.raw_query();
    let mut collected = Collected::new();
    while let Some(row) = rows.next().map_err(failure)? {
        let values = || {
            let values = places.iter().map(|place| row.get_ref(*place).map(show));
            values.collect::<Result<Vec<_>, _>>().map_err(failure)
        };
        if !collected.take(shape, values)? {
            break;
        }
    }
    Ok(collected)
}
