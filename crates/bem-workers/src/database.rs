//! TOOL_DB: statements with bound parameters, bounded in cost, rows and bytes, on SQLite or PostgreSQL.
//!
//! This is what both have in common: what a request says, statements by number and by name, results that are fetched further,
//! and how an answer looks. [`sqlite`] and [`postgres`] run statements. Parameters are bound, never pasted. Whole numbers,
//! text, bytes and truth values travel as they are, real numbers as decimal text. The number of a prepared statement or of a
//! result names what it says, so that it means the same to every worker, or nothing. Must not know who asks.
//! Clauses: TOOL-6, TOOL-9; decisions D-73, D-117.

mod postgres;
mod sqlite;

use crate::catalog_file::{Backend, CatalogFile, Database};
use bem_base::digest::hash_parts;
use bem_base::ids::{ObjectClass, ObjectId};
use bem_tools::catalog::flag;
use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::operation::{Role, by_code, db_flag};
use bem_tools::payload::Fields;
use bem_tools::worker::{Failure, Job, Tool};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows of one answer at most.
pub(crate) const ROWS_MAX: i64 = 10_000;
/// Rows without a limit.
const ROWS_DEFAULT: i64 = 256;
/// Statements that are kept prepared.
const PREPARED_MAX: usize = 256;
/// Results that are kept for FETCH.
const RESULTS_MAX: usize = 16;

/// A statement with how its result shall look.
struct Shaped {
    text: String,
    parameters: Vec<Item>,
    limit: usize,
    offset: usize,
    wanted: Vec<String>,
    capacity: usize,
}

/// The rows of an answer.
struct Rows {
    columns: Vec<String>,
    rows: Vec<Item>,
    changed: i64,
    /// What it cost: steps of SQLite's virtual machine, or the cost that PostgreSQL's planner names.
    cost: i64,
    is_truncated: bool,
}

/// A database that is open.
trait Engine: Send {
    /// Runs a statement that may only read, or may change rows.
    fn run(&mut self, shape: &Shaped, may_write: bool) -> Result<Rows, Failure>;
    /// Runs a statement in a transaction whose effect happens once for its key; the bytes of its answer, now or before.
    fn once(&mut self, shape: &Shaped, key: &[u8; 32], began: Instant) -> Result<Vec<u8>, Failure>;
    /// How many parameters and columns a statement has.
    fn prepare(&mut self, text: &str, may_write: bool) -> Result<(i64, i64), Failure>;
    /// Tables with their columns and types.
    fn meta(&mut self) -> Result<Rows, Failure>;
}

fn open(database: &Database) -> Result<Box<dyn Engine>, Failure> {
    Ok(match &database.backend {
        Backend::Sqlite { path, steps_max } => {
            Box::new(sqlite::Sqlite::open(path, *steps_max, database.flags)?)
        }
        Backend::Postgres(server) => Box::new(postgres::Postgres::open(server)?),
    })
}

/// A statement of the catalog: its text, its parameters, and who may use it.
struct Known {
    number: i64,
    owner: ObjectId,
    text: String,
    parameters: Vec<Item>,
    wanted: Vec<String>,
}

/// The number of what is kept: of a statement's text, or with what was asked of its result.
fn number_of(owner: ObjectId, text: &str, asked: &[u8]) -> i64 {
    let digest = hash_parts("bem/tools/statement", &[&owner.to_word().to_le_bytes(), text.as_bytes(), asked]);
    let first: [u8; 8] = core::array::from_fn(|place| digest.as_bytes()[place]);
    (i64::from_le_bytes(first) & i64::MAX).max(1)
}

/// Puts something in front of what is kept, in place of itself or of the oldest.
fn keep(kept: &mut VecDeque<Known>, most: usize, known: Known) {
    kept.retain(|other| other.number != known.number);
    kept.truncate(most - 1);
    kept.push_front(known);
}

/// The tool.
pub struct Databases {
    catalog: Arc<CatalogFile>,
    open: BTreeMap<ObjectId, Box<dyn Engine>>,
    prepared: VecDeque<Known>,
    results: VecDeque<Known>,
}

impl Databases {
    /// A tool over the databases of the catalog; each is opened when it is first asked.
    pub fn new(catalog: Arc<CatalogFile>) -> Databases {
        Databases { catalog, open: BTreeMap::new(), prepared: VecDeque::new(), results: VecDeque::new() }
    }

    fn ready(&mut self, id: ObjectId) -> Result<&mut dyn Engine, Failure> {
        let database = self.catalog.databases.get(&id).ok_or(ErrorCode::UNKNOWN_RESOURCE)?;
        Ok(match self.open.entry(id) {
            Entry::Occupied(open) => open.into_mut().as_mut(),
            Entry::Vacant(place) => place.insert(open(database)?).as_mut(),
        })
    }

    fn flags(&self, id: ObjectId) -> u16 {
        self.catalog.databases.get(&id).map_or(0, |database| database.flags)
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
            "fetch" => self.fetch(id, &fields, job.capacity as usize),
            "meta" => self.ready(id)?.meta().map(|found| Item::fields([(0, Item::List(found.rows))])),
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
                let known = self.prepared.iter().find(|known| known.number == number && known.owner == id);
                let lost =
                    || Failure::new(ErrorCode::NOT_FOUND, "this statement is not prepared: prepare it again");
                known.map(|known| known.text.clone()).ok_or_else(lost)
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
        let parameters = fields.list(3)?.to_vec();
        if parameters.iter().any(|item| matches!(item, Item::List(_) | Item::Map(_))) {
            let words = "a parameter must be a number, text, bytes or null";
            return Err(Failure::new(ErrorCode::BAD_PAYLOAD, words));
        }
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
        let flags = self.flags(id);
        let is_fixed = flags & flag::READ_ONLY != 0 || job.flags & db_flag::READ_ONLY != 0;
        let is_once =
            !is_fixed && (job.flags & db_flag::TRANSACTIONAL != 0 || flags & flag::TRANSACTIONAL != 0);
        let open = self.ready(id)?;
        if is_once {
            return open.once(&shape, job.key.as_bytes(), began);
        }
        let rows = open.run(&shape, !is_fixed)?;
        let result = (rows.is_truncated && is_fixed).then(|| {
            // FETCH runs the same statement again, further on.
            let Shaped { text, parameters, wanted, .. } = shape;
            let columns = wanted.iter().cloned().map(Item::Text).collect();
            let asked = Item::List(vec![Item::List(parameters.clone()), Item::List(columns)]).to_bytes();
            let number = number_of(id, &text, &asked);
            keep(&mut self.results, RESULTS_MAX, Known { number, owner: id, text, parameters, wanted });
            number
        });
        Ok(answer(rows, began.elapsed(), result).to_bytes())
    }

    fn prepare(&mut self, id: ObjectId, fields: &Fields<'_>) -> Result<Item, Failure> {
        let text = fields
            .text(0)?
            .ok_or_else(|| Failure::new(ErrorCode::BAD_PAYLOAD, "text is missing"))?
            .to_string();
        let may_write = self.flags(id) & flag::READ_ONLY == 0;
        let (parameters, columns) = self.ready(id)?.prepare(&text, may_write)?;
        let number = number_of(id, &text, &[]);
        let known = Known { number, owner: id, text, parameters: Vec::new(), wanted: Vec::new() };
        keep(&mut self.prepared, PREPARED_MAX, known);
        Ok(Item::fields([(0, Item::Int(number)), (1, Item::Int(parameters)), (2, Item::Int(columns))]))
    }

    fn fetch(&mut self, id: ObjectId, fields: &Fields<'_>, capacity: usize) -> Result<Item, Failure> {
        let number = fields.int(0, 1..=i64::MAX, 0)?;
        let (offset, limit) =
            (fields.int(1, 0..=i64::MAX, 0)? as usize, fields.int(2, 1..=ROWS_MAX, ROWS_DEFAULT)? as usize);
        let known = self.results.iter().find(|known| known.number == number && known.owner == id);
        let lost = || Failure::new(ErrorCode::NOT_FOUND, "this result is not kept any more: ask again");
        let Known { text, parameters, wanted, .. } = known.ok_or_else(lost)?;
        let (text, parameters, wanted) = (text.clone(), parameters.clone(), wanted.clone());
        let shape = Shaped { text, parameters, limit, offset, wanted, capacity };
        let began = Instant::now();
        let rows = self.ready(id)?.run(&shape, false)?;
        Ok(answer(rows, began.elapsed(), Some(number)))
    }
}

/// Which columns of a result are wanted, by place.
fn places(names: &[String], wanted: &[String]) -> Result<Vec<usize>, Failure> {
    if wanted.is_empty() {
        return Ok((0..names.len()).collect());
    }
    let place = |name: &String| {
        let unknown = || {
            let words = format!("column {name:?} is unknown: known are {}", names.join(", "));
            Failure::new(ErrorCode::BAD_PAYLOAD, words)
        };
        names.iter().position(|known| known == name).ok_or_else(unknown)
    };
    wanted.iter().map(place).collect()
}

/// A statement must be given as many values as it has parameters.
fn check_count(has: usize, given: usize) -> Result<(), Failure> {
    if has == given {
        return Ok(());
    }
    let words = format!("the statement has {has} parameters, {given} were given");
    Err(Failure::new(ErrorCode::BAD_PAYLOAD, words))
}

/// Rows of an answer as they come, until there are enough of them, or of their bytes.
struct Collected {
    rows: Vec<Item>,
    bytes: usize,
    seen: usize,
    is_truncated: bool,
}

impl Collected {
    fn new() -> Collected {
        Collected { rows: Vec::new(), bytes: 256, seen: 0, is_truncated: false }
    }

    /// Takes the next row; false if no further one is wanted.
    fn take(
        &mut self,
        shape: &Shaped,
        row: impl FnOnce() -> Result<Vec<Item>, Failure>,
    ) -> Result<bool, Failure> {
        self.seen += 1;
        if self.seen <= shape.offset {
            return Ok(true);
        }
        if self.rows.len() < shape.limit {
            let row = Item::List(row()?);
            self.bytes = self.bytes.saturating_add(row.to_bytes().len());
            if self.bytes <= shape.capacity {
                self.rows.push(row);
                return Ok(true);
            }
        }
        self.is_truncated = true;
        Ok(false)
    }
}

fn answer(rows: Rows, took: Duration, result: Option<i64>) -> Item {
    let columns = rows.columns.into_iter().map(Item::Text).collect();
    let count = rows.rows.len() as i64;
    let mut fields = vec![
        (0, Item::List(columns)),
        (1, Item::List(rows.rows)),
        (2, Item::Int(count)),
        (3, Item::Int(rows.changed)),
        (4, Item::Int(took.as_micros() as i64)),
        (5, Item::Int(rows.cost)),
        (7, Item::Bool(rows.is_truncated)),
    ];
    fields.extend(result.map(|result| (6, Item::Int(result))));
    Item::fields(fields)
}

#[cfg(test)]
mod tests;
