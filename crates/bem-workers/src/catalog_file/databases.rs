//! Databases of a catalog: a file of SQLite, or a PostgreSQL server whose password lies elsewhere.
//!
//! A password in the catalog is refused, so that the file can be shown and passed to workers. Clauses: TOOL-1, TOOL-6;
//! decisions D-30, D-117.

use super::{CatalogFile, File, Secret, Source, handle, in_range};
use anyhow::Result;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Spanned;

/// Virtual machine steps of one statement by default, and at most.
const STEPS_DEFAULT: u64 = 1_000_000;
/// See [`STEPS_DEFAULT`].
const STEPS_MAX: u64 = 1_000_000_000;
/// Milliseconds of one statement of a server by default, and at most.
const TIMEOUT_DEFAULT: u64 = 2_000;
/// See [`TIMEOUT_DEFAULT`].
const TIMEOUT_MAX: u64 = 8_000;

const FLAGS: [&str; 3] = ["read_only", "sensitive", "transactional"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DatabaseEntry {
    name: Spanned<String>,
    sqlite: Option<Spanned<PathBuf>>,
    postgres: Option<Spanned<String>>,
    password_env: Option<String>,
    password_file: Option<PathBuf>,
    #[serde(default)]
    flags: Vec<Spanned<String>>,
    steps_max: Option<Spanned<u64>>,
    timeout_ms: Option<Spanned<u64>>,
    #[serde(default)]
    operations: BTreeMap<String, String>,
}

/// A PostgreSQL server.
#[derive(Clone, Debug)]
pub struct PostgresServer {
    /// Host, port, user and database; no password.
    pub config: tokio_postgres::Config,
    /// Where the password is, if one is needed.
    pub password: Option<Secret>,
    /// Milliseconds that a statement may take.
    pub timeout_ms: u64,
}

/// Where a database is.
#[derive(Clone, Debug)]
pub enum Backend {
    /// In a file.
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Steps that a statement may take.
        steps_max: u64,
    },
    /// On a server.
    Postgres(Box<PostgresServer>),
}

/// A database.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its logical name.
    pub name: String,
    /// Where it is.
    pub backend: Backend,
    /// What is allowed.
    pub flags: u16,
    /// Statements by name.
    pub operations: BTreeMap<String, String>,
}

impl Database {
    /// Where it is, for whoever keeps the catalog.
    pub fn place(&self) -> String {
        match &self.backend {
            Backend::Sqlite { path, .. } => format!("sqlite {}", path.display()),
            Backend::Postgres(server) => {
                let name = server.config.get_dbname().or(server.config.get_user()).unwrap_or_default();
                format!("postgres {name}")
            }
        }
    }
}

impl CatalogFile {
    pub(super) fn add_databases(&mut self, source: &Source<'_>, file: &File) -> Result<()> {
        for (place, entry) in file.database.iter().enumerate() {
            let span = entry.name.span();
            let name = entry.name.get_ref().clone();
            let (number, backend) = match (&entry.sqlite, &entry.postgres) {
                (Some(path), None) => (0, self.sqlite(source, entry, path)?),
                (None, Some(words)) => (1, self.postgres(source, entry, words)?),
                _ => {
                    let reason = format!(
                        "database {name:?} needs one of sqlite = \"FILE\" and postgres = \"host=... user=... dbname=...\""
                    );
                    return Err(source.at(span, reason));
                }
            };
            let flags = source.flags(&entry.flags, &FLAGS)?;
            let added = self.catalog.add_database(&name, number, flags, handle(&name, place));
            let id = source.added(span, added)?;
            let operations = entry.operations.clone();
            self.databases.insert(id, Database { name, backend, flags, operations });
        }
        Ok(())
    }

    fn sqlite(&self, source: &Source<'_>, entry: &DatabaseEntry, path: &Spanned<PathBuf>) -> Result<Backend> {
        let span = path.span();
        let path = self.base.join(path.get_ref());
        if !path.is_file() {
            return Err(source.at(span, format!("sqlite {} is no file", path.display())));
        }
        if let Some(given) = &entry.timeout_ms {
            return Err(
                source.at(given.span(), "timeout_ms is for postgres: steps_max bounds a statement of sqlite")
            );
        }
        if entry.password_env.is_some() || entry.password_file.is_some() {
            return Err(source.at(span, "a file of sqlite has no password"));
        }
        let steps_max =
            in_range(source, entry.steps_max.as_ref(), "steps_max", 1..=STEPS_MAX, STEPS_DEFAULT)?;
        Ok(Backend::Sqlite { path, steps_max })
    }

    fn postgres(
        &self,
        source: &Source<'_>,
        entry: &DatabaseEntry,
        words: &Spanned<String>,
    ) -> Result<Backend> {
        let span = words.span();
        // What is wrong is not repeated: a password may stand where it should not.
        let form = "postgres must be \"host=HOST_OR_FOLDER port=5432 user=NAME dbname=NAME\"";
        let config: tokio_postgres::Config =
            words.get_ref().parse().map_err(|_| source.at(span.clone(), form))?;
        if config.get_password().is_some() {
            let reason = "a password has no place in the catalog: name password_env or password_file";
            return Err(source.at(span, reason));
        }
        if config.get_hosts().len() != 1 || config.get_user().is_none() {
            return Err(source.at(span, form));
        }
        if let Some(given) = &entry.steps_max {
            return Err(
                source.at(given.span(), "steps_max is for sqlite: timeout_ms bounds a statement of postgres")
            );
        }
        let timeout_ms =
            in_range(source, entry.timeout_ms.as_ref(), "timeout_ms", 1..=TIMEOUT_MAX, TIMEOUT_DEFAULT)?;
        let password =
            self.secret(source, &span, entry.password_env.as_ref(), entry.password_file.as_ref())?;
        Ok(Backend::Postgres(Box::new(PostgresServer { config, password, timeout_ms })))
    }
}
