//! Databases on a PostgreSQL server.
//!
//! Every request is one transaction with a time limit that the server keeps and another one here, and one statement that reads
//! or changes rows: its first word is checked, the server refuses a second statement, and in a reading transaction any write.
//! Values go as parameters of the extended protocol. At most [`BYTES_MAX`] are read of the server's answer to a request. A
//! transaction that shall happen once claims its key first, so that two workers never do it both; what the connection lost is
//! found by the key. The password is read when the database is first asked, stays in this process's memory, and is in no
//! message. What else the database lets this user do is for its grants to say. Clauses: TOOL-6, TOOL-9; decision D-117.

mod bounded;
mod values;

use super::{Collected, Engine, Rows, Shaped, answer, check_count, places};
use crate::catalog_file::PostgresServer;
use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::worker::Failure;
use bounded::{Budget, Stream};
use std::error::Error as _;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, NoTls, Transaction};
use tokio_stream::StreamExt as _;
use values::{Bound, show};

/// Bytes that are read of a server's answer to one request.
pub const BYTES_MAX: u64 = 16 << 20;
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much later than the server the limit is kept here.
const MARGIN: Duration = Duration::from_secs(2);
/// Rows that are asked for at once.
const ROWS_AT_ONCE: i32 = 256;
/// Keys of transactions that have happened.
const KEYS: &str =
    "CREATE TABLE IF NOT EXISTS public.bem_tool_keys (key BYTEA PRIMARY KEY, response BYTEA NOT NULL)";
/// Tables with their columns, as far as this user may see them.
const META: &str = "SELECT table_schema || '.' || table_name, column_name::text, data_type::text \
    FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema') \
    AND table_name <> 'bem_tool_keys' ORDER BY table_schema, table_name, ordinal_position";

/// A server with the connection to it, if there is one.
pub struct Postgres {
    runtime: Runtime,
    config: Config,
    timeout: Duration,
    budget: Budget,
    client: Option<Client>,
    has_keys: bool,
}

/// Why a transaction failed.
enum Trouble {
    /// The statement, or what it asks for.
    Refused(Failure),
    /// The connection, or the time for it.
    Lost(&'static str),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        Trouble::Refused(failure)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        let Some(said) = error.as_db_error() else {
            // A value that cannot be sent is the request's fault; anything else is the connection's.
            return match error.source().is_some_and(|source| source.to_string() == values::ZERO) {
                true => Failure::new(ErrorCode::BAD_PAYLOAD, values::ZERO).into(),
                false => Trouble::Lost("the connection to the database was lost"),
            };
        };
        let code = match said.code() {
            state if *state == SqlState::QUERY_CANCELED => ErrorCode::TOO_EXPENSIVE,
            state if *state == SqlState::READ_ONLY_SQL_TRANSACTION => ErrorCode::NOT_ALLOWED,
            state if *state == SqlState::INSUFFICIENT_PRIVILEGE => ErrorCode::NOT_ALLOWED,
            state if *state == SqlState::ADMIN_SHUTDOWN || *state == SqlState::CRASH_SHUTDOWN => {
                return Trouble::Lost("the database is shutting down");
            }
            _ => ErrorCode::BAD_QUERY,
        };
        Failure::new(code, said.message()).into()
    }
}

fn unavailable(words: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::UNAVAILABLE, words)
}

impl Postgres {
    /// Finds the server and the password; the connection is made when it is needed.
    pub fn open(server: &PostgresServer) -> Result<Postgres, Failure> {
        let broken = |error: std::io::Error| unavailable(error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
        let mut config = server.config.clone();
        if let Some(secret) = &server.password {
            config.password(secret.read().map_err(|error| unavailable(error.to_string()))?);
        }
        let timeout = Duration::from_millis(server.timeout_ms);
        Ok(Postgres { runtime, config, timeout, budget: Budget::default(), client: None, has_keys: false })
    }

    fn connect(&mut self) -> Result<(), Trouble> {
        if self.client.as_ref().is_some_and(|client| !client.is_closed()) {
            return Ok(());
        }
        let Postgres { runtime, config, budget, .. } = self;
        budget.fill(BYTES_MAX);
        let connected = runtime.block_on(async {
            let opening = async {
                let stream =
                    Stream::open(config, budget.clone()).await.map_err(|_| "the database is not reached")?;
                // What the server says here may name the user, never the password; it is not repeated.
                config.connect_raw(stream, NoTls).await.map_err(|_| "the database refuses the connection")
            };
            tokio::time::timeout(PATIENCE, opening).await.unwrap_or(Err("the database does not answer"))
        });
        let (client, connection) = connected.map_err(Trouble::Lost)?;
        // It is driven whenever a request waits for it.
        runtime.spawn(async move { drop(connection.await) });
        (self.client, self.has_keys) = (Some(client), false);
        Ok(())
    }

    /// Runs something in a transaction of its own: nothing of one request is left for the next.
    fn transact<T>(
        &mut self,
        may_write: bool,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.connect()?;
        let Postgres { runtime, client: Some(client), budget, timeout, .. } = self else {
            return Err(Trouble::Lost("there is no connection"));
        };
        budget.fill(BYTES_MAX);
        let (limit, reset) = (
            format!("SET LOCAL statement_timeout = {}", timeout.as_millis()),
            "RESET ALL; SET SESSION AUTHORIZATION DEFAULT",
        );
        let done = runtime.block_on(async {
            let all = async {
                client.batch_execute(reset).await?;
                let transaction = client.build_transaction().read_only(!may_write).start().await?;
                transaction.batch_execute(&limit).await?;
                let done = work(&transaction).await?;
                transaction.commit().await?;
                Ok::<T, Trouble>(done)
            };
            // The limit of the server counts for each of a few statements.
            let whole = *timeout * 3 + MARGIN;
            tokio::time::timeout(whole, all)
                .await
                .unwrap_or(Err(Trouble::Lost("the database does not answer")))
        });
        if budget.is_spent() {
            self.client = None;
            return Err(Failure::new(ErrorCode::TOO_LONG, "the rows have more bytes than are read").into());
        }
        if matches!(&done, Err(Trouble::Lost(_))) {
            self.client = None;
        }
        done
    }

    fn make_keys(&mut self) -> Result<(), Trouble> {
        if self.has_keys {
            return Ok(());
        }
        let make =
            |engine: &mut Postgres| engine.transact(true, async |it| Ok(it.batch_execute(KEYS).await?));
        // Two workers that make it at once disturb each other; the second time it is there.
        make(self).or_else(|_| make(self))?;
        self.has_keys = true;
        Ok(())
    }
}

impl Engine for Postgres {
    fn run(&mut self, shape: &Shaped, may_write: bool) -> Result<Rows, Failure> {
        check_words(&shape.text, may_write)?;
        let done = self.transact(may_write, async |it| run(it, shape).await);
        done.map_err(|trouble| match trouble {
            Trouble::Refused(failure) => failure,
            Trouble::Lost(words) if may_write => Failure::new(ErrorCode::OUTCOME_UNKNOWN, words),
            Trouble::Lost(words) => unavailable(words),
        })
    }

    fn once(&mut self, shape: &Shaped, key: &[u8; 32], began: Instant) -> Result<Vec<u8>, Failure> {
        check_words(&shape.text, true)?;
        let attempt = |engine: &mut Postgres| {
            engine.make_keys()?;
            engine.transact(true, async |it| once(it, shape, key, began).await)
        };
        // A lost connection leaves open whether it happened: the key says it.
        let done = match attempt(self) {
            Err(Trouble::Lost(_)) => attempt(self),
            done => done,
        };
        done.map_err(|trouble| match trouble {
            Trouble::Refused(failure) => failure,
            Trouble::Lost(words) => Failure::new(ErrorCode::OUTCOME_UNKNOWN, words),
        })
    }

    fn prepare(&mut self, text: &str, may_write: bool) -> Result<(i64, i64), Failure> {
        check_words(text, may_write)?;
        let done = self.transact(false, async |it| {
            let statement = it.prepare(text).await?;
            Ok((statement.params().len() as i64, statement.columns().len() as i64))
        });
        done.map_err(plain)
    }

    fn meta(&mut self) -> Result<Rows, Failure> {
        let shape = Shaped {
            text: META.to_string(),
            parameters: Vec::new(),
            limit: super::ROWS_MAX as usize,
            offset: 0,
            wanted: Vec::new(),
            capacity: usize::MAX,
        };
        self.transact(false, async |it| run(it, &shape).await).map_err(plain)
    }
}

fn plain(trouble: Trouble) -> Failure {
    match trouble {
        Trouble::Refused(failure) => failure,
        Trouble::Lost(words) => unavailable(words),
    }
}

/// Only statements that read or change rows are let through, as with SQLite; and none that names the table of keys.
fn check_words(text: &str, may_write: bool) -> Result<(), Failure> {
    let mut rest = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '(');
    loop {
        let after = if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else {
            break;
        };
        rest = after.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '(');
    }
    let word: String =
        rest.chars().take_while(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase();
    let is_read = ["select", "with", "values", "table"].contains(&word.as_str());
    let is_write = ["insert", "update", "delete", "merge"].contains(&word.as_str());
    let is_allowed = is_read || is_write && may_write;
    if !is_allowed {
        let words =
            if is_write { "the statement must not write" } else { "the statement must read or change rows" };
        return Err(Failure::new(ErrorCode::NOT_ALLOWED, words));
    }
    let small = text.to_ascii_lowercase();
    if small.contains("bem_tool_keys") || small.contains("u&\"") {
        return Err(Failure::new(ErrorCode::NOT_ALLOWED, "the table of keys is the tool's own"));
    }
    Ok(())
}

async fn run(transaction: &Transaction<'_>, shape: &Shaped) -> Result<Rows, Trouble> {
    let statement = transaction.prepare(&shape.text).await?;
    check_count(statement.params().len(), shape.parameters.len())?;
    let names: Vec<String> = statement.columns().iter().map(|column| column.name().to_string()).collect();
    let places = places(&names, &shape.wanted)?;
    for place in &places {
        let column = &statement.columns()[*place];
        if !values::is_known(column.type_()) {
            let (name, kind) = (column.name(), column.type_());
            let words = format!("column {name:?} is of type {kind}: write {name}::text");
            return Err(Failure::new(ErrorCode::BAD_QUERY, words).into());
        }
    }
    let bound: Vec<Bound<'_>> = shape.parameters.iter().map(Bound).collect();
    let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
    let (cost, does_change) = explain(transaction, &shape.text, &bound).await?;
    let portal = transaction.bind(&statement, &bound).await?;
    let mut collected = Collected::new();
    let mut changed = 0;
    // A change runs to its end at the first look; its rows are taken all at once, to be counted.
    let at_once = if does_change { 0 } else { ROWS_AT_ONCE };
    loop {
        let mut stream = std::pin::pin!(transaction.query_portal_raw(&portal, at_once).await?);
        let (mut rows, mut wants_more) = (0, true);
        while let Some(row) = stream.next().await {
            let row = row?;
            rows += 1;
            let values =
                || places.iter().map(|place| show(&row, *place)).collect::<Result<Vec<Item>, Failure>>();
            wants_more = wants_more && collected.take(shape, values)?;
        }
        if does_change {
            changed = stream.rows_affected().unwrap_or(0) as i64;
        }
        if at_once == 0 || rows < at_once || !wants_more {
            break;
        }
    }
    let columns = places.iter().map(|place| names[*place].clone()).collect();
    Ok(Rows { columns, rows: collected.rows, changed, cost, is_truncated: collected.is_truncated })
}

/// What the planner thinks it costs, in whole units, and whether it changes rows.
async fn explain(
    transaction: &Transaction<'_>,
    text: &str,
    bound: &[&(dyn ToSql + Sync)],
) -> Result<(i64, bool), Trouble> {
    let row = transaction.query_one(&format!("EXPLAIN (FORMAT JSON) {text}"), bound).await?;
    let said: &str = values::text(&row, 0);
    let plan: serde_json::Value = serde_json::from_str(said).unwrap_or_default();
    let plan = &plan[0]["Plan"];
    let cost = plan["Total Cost"].as_f64().unwrap_or(0.0).clamp(0.0, 1e15).ceil() as i64;
    Ok((cost, changes(plan)))
}

/// Whether some part of a plan changes rows: a statement after WITH may, too.
fn changes(plan: &serde_json::Value) -> bool {
    plan["Node Type"] == "ModifyTable" || plan["Plans"].as_array().into_iter().flatten().any(changes)
}

async fn once(
    transaction: &Transaction<'_>,
    shape: &Shaped,
    key: &[u8; 32],
    began: Instant,
) -> Result<Vec<u8>, Trouble> {
    let key = key.as_slice();
    let claim =
        "INSERT INTO public.bem_tool_keys (key, response) VALUES ($1, '') ON CONFLICT (key) DO NOTHING";
    // Whoever has the key and is not done is waited for here, within the time limit.
    if transaction.execute(claim, &[&key]).await? == 0 {
        let known = "SELECT response FROM public.bem_tool_keys WHERE key = $1";
        return Ok(transaction.query_one(known, &[&key]).await?.get(0));
    }
    let rows = run(transaction, shape).await?;
    let response = answer(rows, began.elapsed(), None).to_bytes();
    let keep = "UPDATE public.bem_tool_keys SET response = $2 WHERE key = $1";
    transaction.execute(keep, &[&key, &response]).await?;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_statements_that_read_or_change_rows_are_let_through() {
        let check = |text: &str, reads: bool, writes: bool| {
            assert_eq!(check_words(text, false).is_ok(), reads, "{text}");
            assert_eq!(check_words(text, true).is_ok(), writes, "{text}");
        };
        check("SELECT 1", true, true);
        check(" -- why\n /* and */ (select 1)", true, true);
        check("WITH a AS (SELECT 1) TABLE a", true, true);
        check("insert into t values (1)", false, true);
        check("COPY t TO PROGRAM 'sh'", false, false);
        check("SET statement_timeout = 0", false, false);
        check("COMMIT", false, false);
        check("", false, false);
        check("/* never closed", false, false);
        check("SELECT * FROM Bem_Tool_Keys", false, false);
        check("SELECT * FROM U&\"bem\\005ftool_keys\"", false, false);
    }
}
