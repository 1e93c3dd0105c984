//! The catalog's file: TOML with logical names, roots, databases, simulators, models and users' tools.
//!
//! What is wrong is said with file, line and what is allowed. Folders are looked through once, when the bus starts; workers in
//! other processes are given what was found, so that identifiers mean the same everywhere. Credentials are named, by a variable
//! of the environment or a file, and read where they are used; they are never part of this. Clauses: TOOL-1; decision D-30.

mod databases;

pub use databases::{Backend, Database, PostgresServer};

use anyhow::{Context, Result, anyhow};
use bem_base::digest::hash_parts;
use bem_base::ids::ObjectId;
use bem_tools::catalog::{ALIAS_NAMES, Catalog, CatalogError, CustomOperation, NodeKind, flag, is_name};
use bem_tools::operation::Role;
use databases::DatabaseEntry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// Files that are found in one root at most.
const INDEX_MAX: usize = 1_024;
/// How deep a root is looked through.
const INDEX_DEPTH_MAX: usize = 8;
/// The largest catalog file.
const BYTES_MAX: u64 = 1 << 20;
/// Bytes of the read cache by default.
const CACHE_BYTES: usize = 1 << 20;
/// The file as it is written, each word with its place for error messages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Option<Spanned<String>>,
    cache_bytes: Option<Spanned<u64>>,
    #[serde(default)]
    root: Vec<RootEntry>,
    #[serde(default)]
    file: Vec<FileEntry>,
    #[serde(default)]
    database: Vec<DatabaseEntry>,
    #[serde(default)]
    environment: Vec<EnvironmentEntry>,
    #[serde(default)]
    model: Vec<ModelEntry>,
    #[serde(default)]
    tool: Vec<ToolEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RootEntry {
    name: Spanned<String>,
    path: Option<Spanned<PathBuf>>,
    #[serde(default)]
    memory: bool,
    alias: Option<Spanned<toml::Value>>,
    #[serde(default)]
    flags: Vec<Spanned<String>>,
    index: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    root: Spanned<String>,
    path: Spanned<String>,
    #[serde(default)]
    flags: Vec<Spanned<String>>,
    #[serde(default)]
    directory: bool,
    alias: Option<Spanned<toml::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvironmentEntry {
    name: Spanned<String>,
    command: String,
    timeout_s: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelEntry {
    name: Spanned<String>,
    url: Spanned<String>,
    model: String,
    key_env: Option<String>,
    key_file: Option<PathBuf>,
    tokens_max: Option<Spanned<u32>>,
    timeout_s: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolEntry {
    name: Spanned<String>,
    command: Option<String>,
    #[serde(default)]
    operations: Vec<Spanned<OperationEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationEntry {
    name: String,
    #[serde(default)]
    idempotent: bool,
}

/// Where a root is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A folder of the host.
    Folder(PathBuf),
    /// In the memory of the worker.
    Memory,
}

/// A root of files.
#[derive(Clone, Debug)]
pub struct Root {
    /// Its logical name.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// What is allowed.
    pub flags: u16,
}

/// A secret that is read where it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// In a variable of the environment.
    Variable(String),
    /// In a file.
    File(PathBuf),
}

impl Secret {
    /// The file that it is in, if it is in one.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Secret::Variable(_) => None,
            Secret::File(path) => Some(path.clone()),
        }
    }

    /// Reads it; the message of a failure does not hold it.
    pub fn read(&self) -> Result<String> {
        match self {
            Secret::Variable(name) => std::env::var(name)
                .map_err(|_| anyhow!("the credential's variable {name} is not in the environment")),
            Secret::File(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|_| anyhow!("the credential's file {} cannot be read", path.display()))?;
                Ok(text.trim_end().to_string())
            }
        }
    }
}

/// A simulator in another program.
#[derive(Clone, Debug)]
pub struct Simulator {
    /// The command.
    pub command: String,
    /// How long one line may take.
    pub timeout: Duration,
}

/// A language model behind the common chat API.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its logical name.
    pub name: String,
    /// Where the API is.
    pub url: String,
    /// Which model.
    pub model: String,
    /// The key, where one is needed.
    pub key: Option<Secret>,
    /// Tokens of an answer at most.
    pub tokens_max: u32,
    /// Seconds for one answer.
    pub timeout_s: u64,
}

/// A user's tool.
#[derive(Clone, Debug)]
pub struct UserTool {
    /// Its kind.
    pub kind: ObjectId,
    /// The kind's name.
    pub name: String,
    /// The worker's command; none if somebody else starts it.
    pub command: Option<String>,
}

/// What was found in a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The root's place in the file.
    pub root: usize,
    /// The path in it.
    pub path: String,
    /// 0 file, 1 directory.
    pub kind: u8,
}

/// A catalog with what its identifiers stand for.
#[derive(Clone, Debug)]
pub struct CatalogFile {
    /// The tables.
    pub catalog: Catalog,
    /// Roots by backend number.
    pub roots: Vec<Root>,
    /// Which root and path a node is.
    pub nodes: BTreeMap<ObjectId, (usize, PathBuf)>,
    /// Databases by identifier.
    pub databases: BTreeMap<ObjectId, Database>,
    /// Simulators by identifier.
    pub simulators: BTreeMap<ObjectId, Simulator>,
    /// Models by the identifier under which requests name them.
    pub models: BTreeMap<ObjectId, Model>,
    /// Users' tools.
    pub tools: Vec<UserTool>,
    /// Bytes of the read cache.
    pub cache_bytes: usize,
    /// What was found in roots, for workers elsewhere.
    pub found: Vec<Found>,
    /// The text, for workers elsewhere.
    pub text: String,
    /// The folder that paths begin at.
    pub base: PathBuf,
}

/// Says file and line of what is wrong.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn at(&self, span: core::ops::Range<usize>, reason: impl core::fmt::Display) -> anyhow::Error {
        let before = &self.text[..span.start.min(self.text.len())];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        anyhow!("{}:{line}: {reason}", self.name)
    }

    fn flags(&self, names: &[Spanned<String>], allowed: &[&str]) -> Result<u16> {
        let mut flags = 0;
        for name in names {
            let known =
                flag::NAMES.iter().find(|(known, _)| known == name.get_ref() && allowed.contains(known));
            let Some((_, bit)) = known else {
                let reason =
                    format!("flag {:?} is unknown here: known are {}", name.get_ref(), allowed.join(", "));
                return Err(self.at(name.span(), reason));
            };
            flags |= bit;
        }
        Ok(flags)
    }

    fn added<T>(&self, span: core::ops::Range<usize>, added: Result<T, CatalogError>) -> Result<T> {
        added.map_err(|error| self.at(span, error))
    }

    fn alias(&self, catalog: &mut Catalog, alias: Option<&Spanned<toml::Value>>, id: ObjectId) -> Result<()> {
        let Some(alias) = alias else { return Ok(()) };
        let number = match alias.get_ref() {
            toml::Value::Integer(number) => u32::try_from(*number).ok(),
            toml::Value::String(name) => {
                ALIAS_NAMES.iter().position(|known| known == name).map(|place| place as u32)
            }
            _ => None,
        };
        let number = number.unwrap_or(u32::MAX);
        if number == u32::MAX {
            let reason =
                format!("alias {} is unknown: 0 to 7, or {}", alias.get_ref(), ALIAS_NAMES.join(", "));
            return Err(self.at(alias.span(), reason));
        }
        self.added(alias.span(), catalog.set_alias(number, id))
    }
}

/// Whether a path stays below where it begins: names only, none of them special.
pub fn is_plain(path: &Path) -> bool {
    let mut components = path.components().peekable();
    components.peek().is_some() && components.all(|component| matches!(component, Component::Normal(_)))
}

const FILE_FLAGS: [&str; 6] = ["read_only", "append_only", "ephemeral", "sensitive", "cacheable", "pinned"];

impl CatalogFile {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<CatalogFile> {
        let name = path.display().to_string();
        let size = std::fs::metadata(path).with_context(|| name.clone())?.len();
        if BYTES_MAX < size {
            return Err(anyhow!("{name}: the file has {size} bytes; at most {BYTES_MAX} are allowed"));
        }
        let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
        let base = path.parent().filter(|base| !base.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let base = std::fs::canonicalize(base).with_context(|| name.clone())?;
        CatalogFile::parse(&name, text, base, None)
    }

    /// Checks a text. `found` is what was found in roots before; without it they are looked through.
    pub fn parse(name: &str, text: String, base: PathBuf, found: Option<Vec<Found>>) -> Result<CatalogFile> {
        let source = Source { name, text: &text };
        let file: File = toml::from_str(&text).map_err(|error| {
            let reason = error.message().to_string();
            source.at(error.span().unwrap_or(0..0), reason)
        })?;
        if let Some(version) = &file.version
            && version.get_ref() != bem_tools::VERSION_TEXT
        {
            let reason =
                format!("version {:?} is not served: {:?} is", version.get_ref(), bem_tools::VERSION_TEXT);
            return Err(source.at(version.span(), reason));
        }
        let cache_bytes = match &file.cache_bytes {
            None => CACHE_BYTES,
            Some(bytes) if *bytes.get_ref() <= 1 << 30 => *bytes.get_ref() as usize,
            Some(bytes) => {
                let reason = format!("cache_bytes {} is out of range: 0 to {}", bytes.get_ref(), 1 << 30);
                return Err(source.at(bytes.span(), reason));
            }
        };
        let mut made = CatalogFile {
            catalog: Catalog::new(),
            roots: Vec::new(),
            nodes: BTreeMap::new(),
            databases: BTreeMap::new(),
            simulators: BTreeMap::new(),
            models: BTreeMap::new(),
            tools: Vec::new(),
            cache_bytes,
            found: Vec::new(),
            text: String::new(),
            base,
        };
        made.add_roots(&source, &file)?;
        made.add_files(&source, &file, found)?;
        made.add_databases(&source, &file)?;
        made.add_programs(&source, &file)?;
        made.text = text;
        Ok(made)
    }

    fn add_roots(&mut self, source: &Source<'_>, file: &File) -> Result<()> {
        for entry in &file.root {
            let span = entry.name.span();
            let name = entry.name.get_ref().clone();
            let place = match (&entry.path, entry.memory) {
                (Some(path), false) => {
                    let folder = self.base.join(path.get_ref());
                    if !folder.is_dir() {
                        return Err(source.at(path.span(), format!("path {} is no folder", folder.display())));
                    }
                    Place::Folder(folder)
                }
                (None, true) => Place::Memory,
                _ => {
                    let reason = format!("root {name:?} needs one of path = \"FOLDER\" and memory = true");
                    return Err(source.at(span, reason));
                }
            };
            if name.contains('/') {
                return Err(source.at(span, format!("name {name:?} of a root must have no slash")));
            }
            let flags = source.flags(&entry.flags, &FILE_FLAGS)?;
            let backend = self.roots.len() as u16;
            let added = self.catalog.add_file(&name, None, NodeKind::Directory, backend, flags);
            let id = source.added(span, added)?;
            source.alias(&mut self.catalog, entry.alias.as_ref(), id)?;
            self.nodes.insert(id, (self.roots.len(), PathBuf::new()));
            self.roots.push(Root { name, place, flags });
        }
        Ok(())
    }

    fn add_files(&mut self, source: &Source<'_>, file: &File, found: Option<Vec<Found>>) -> Result<()> {
        for entry in &file.file {
            let Some(root) = self.roots.iter().position(|root| root.name == *entry.root.get_ref()) else {
                let known: Vec<&str> = self.roots.iter().map(|root| root.name.as_str()).collect();
                let reason =
                    format!("root {:?} is unknown: known are {}", entry.root.get_ref(), known.join(", "));
                return Err(source.at(entry.root.span(), reason));
            };
            let path = entry.path.get_ref();
            if !is_plain(Path::new(path)) {
                let reason =
                    format!("path {path:?} is not allowed: names with slashes between them, without ..");
                return Err(source.at(entry.path.span(), reason));
            }
            let flags = self.roots[root].flags | source.flags(&entry.flags, &FILE_FLAGS)?;
            let kind = if entry.directory { NodeKind::Directory } else { NodeKind::File };
            let added = self.add_node(root, path, kind, flags);
            let id = source.added(entry.path.span(), added)?;
            source.alias(&mut self.catalog, entry.alias.as_ref(), id)?;
        }
        self.found = match found {
            Some(found) => found,
            None => self.index(file),
        };
        for Found { root, path, kind } in self.found.clone() {
            let kind = if kind == 1 { NodeKind::Directory } else { NodeKind::File };
            let Some(flags) = self.roots.get(root).map(|root| root.flags) else { continue };
            let name = format!("{}/{path}", self.roots[root].name);
            if self.catalog.find(&name).is_none() && is_name(&name) && is_plain(Path::new(&path)) {
                // A full table leaves the rest to LIST, which names them by hash.
                let _ = self.add_node(root, &path, kind, flags);
            }
        }
        Ok(())
    }

    fn add_node(
        &mut self,
        root: usize,
        path: &str,
        kind: NodeKind,
        flags: u16,
    ) -> Result<ObjectId, CatalogError> {
        let root_name = &self.roots[root].name;
        let parent = match path.rsplit_once('/') {
            Some((parent, _)) => self.catalog.find(&format!("{root_name}/{parent}")),
            None => None,
        };
        let parent = parent.or_else(|| self.catalog.find(root_name));
        let name = format!("{root_name}/{path}");
        let id = self.catalog.add_file(&name, parent, kind, root as u16, flags)?;
        self.nodes.insert(id, (root, PathBuf::from(path)));
        Ok(id)
    }

    /// Looks through the roots, in order of names; links are not followed.
    fn index(&self, file: &File) -> Vec<Found> {
        let mut found = Vec::new();
        for (root, entry) in file.root.iter().enumerate() {
            let Place::Folder(folder) = &self.roots[root].place else { continue };
            if entry.index == Some(false) {
                continue;
            }
            let mut waiting = vec![(String::new(), 0)];
            let first = found.len();
            while let Some((path, depth)) = waiting.pop() {
                let Ok(entries) = std::fs::read_dir(folder.join(&path)) else { continue };
                let mut names: Vec<(String, bool)> = entries
                    .flatten()
                    .filter_map(|entry| {
                        let kind = entry.file_type().ok().filter(|kind| kind.is_file() || kind.is_dir())?;
                        Some((entry.file_name().into_string().ok()?, kind.is_dir()))
                    })
                    .collect();
                names.sort();
                for (name, is_folder) in names {
                    let path = if path.is_empty() { name } else { format!("{path}/{name}") };
                    if found.len() - first == INDEX_MAX {
                        break;
                    }
                    found.push(Found { root, path: path.clone(), kind: u8::from(is_folder) });
                    if is_folder && depth < INDEX_DEPTH_MAX {
                        waiting.push((path, depth + 1));
                    }
                }
            }
        }
        found
    }

    fn secret(
        &self,
        source: &Source<'_>,
        span: &core::ops::Range<usize>,
        variable: Option<&String>,
        file: Option<&PathBuf>,
    ) -> Result<Option<Secret>> {
        match (variable, file) {
            (None, None) => Ok(None),
            (Some(variable), None) => Ok(Some(Secret::Variable(variable.clone()))),
            (None, Some(file)) => Ok(Some(Secret::File(self.base.join(file)))),
            (Some(_), Some(_)) => {
                Err(source.at(span.clone(), "a credential comes from a variable or a file, not both"))
            }
        }
    }

    fn add_programs(&mut self, source: &Source<'_>, file: &File) -> Result<()> {
        for (place, entry) in file.environment.iter().enumerate() {
            let name = entry.name.get_ref();
            let timeout_s = in_range(source, entry.timeout_s.as_ref(), "timeout_s", 1..=86_400, 10)?;
            let added = self.catalog.add_environment(name, 0, 0, handle(name, place));
            let id = source.added(entry.name.span(), added)?;
            let timeout = Duration::from_secs(timeout_s);
            self.simulators.insert(id, Simulator { command: entry.command.clone(), timeout });
        }
        for (place, entry) in file.model.iter().enumerate() {
            let span = entry.name.span();
            let name = entry.name.get_ref().clone();
            let url = entry.url.get_ref().clone();
            if !url.starts_with("http://") {
                let reason = format!(
                    "url {url:?} is not allowed: http://HOST:PORT/..., with TLS by a proxy on this machine"
                );
                return Err(source.at(entry.url.span(), reason));
            }
            let key = self.secret(source, &span, entry.key_env.as_ref(), entry.key_file.as_ref())?;
            let tokens = entry.tokens_max.as_ref().map(|value| (value.span(), u64::from(*value.get_ref())));
            let tokens_max = match tokens {
                None => 1_024,
                Some((_, tokens @ 1..=32_768)) => tokens as u32,
                Some((span, tokens)) => {
                    return Err(source.at(span, format!("tokens_max {tokens} is out of range: 1 to 32768")));
                }
            };
            let timeout_s = in_range(source, entry.timeout_s.as_ref(), "timeout_s", 1..=3_600, 60)?;
            // A model is named by an identifier of the simulators' class: the specification has none for models.
            let added = self.catalog.add_environment(&name, 1, 0, handle(&name, 1_000 + place));
            let id = source.added(span, added)?;
            let model = Model { name, url, model: entry.model.clone(), key, tokens_max, timeout_s };
            self.models.insert(id, model);
        }
        for entry in &file.tool {
            let name = entry.name.get_ref().clone();
            let mut operations = Vec::new();
            for (code, operation) in entry.operations.iter().enumerate() {
                let OperationEntry { name, idempotent } = operation.get_ref();
                if !is_name(name) || operations.iter().any(|known: &CustomOperation| known.name == *name) {
                    return Err(
                        source.at(operation.span(), format!("operation {name:?} is no name, or used twice"))
                    );
                }
                operations.push(CustomOperation {
                    code: code as u16,
                    name: name.clone(),
                    idempotent: *idempotent,
                });
            }
            if operations.is_empty() {
                let reason =
                    format!("tool {name:?} needs operations = [{{ name = \"...\", idempotent = true }}]");
                return Err(source.at(entry.name.span(), reason));
            }
            let kind =
                source.added(entry.name.span(), self.catalog.add_kind(&name, Role::Custom, operations))?;
            self.tools.push(UserTool { kind, name, command: entry.command.clone() });
        }
        Ok(())
    }

    /// A catalog with one simulator and nothing else; its identifier.
    pub fn for_simulator(simulator: Simulator) -> Result<(CatalogFile, ObjectId)> {
        let mut made = CatalogFile::parse("the simulator", String::new(), PathBuf::new(), Some(Vec::new()))?;
        let id = made.catalog.add_environment("simulator", 0, 0, handle("simulator", 0))?;
        made.simulators.insert(id, simulator);
        Ok((made, id))
    }
}

fn in_range(
    source: &Source<'_>,
    value: Option<&Spanned<u64>>,
    name: &str,
    range: core::ops::RangeInclusive<u64>,
    default: u64,
) -> Result<u64> {
    match value {
        None => Ok(default),
        Some(value) if range.contains(value.get_ref()) => Ok(*value.get_ref()),
        Some(value) => {
            let reason =
                format!("{name} {} is out of range: {} to {}", value.get_ref(), range.start(), range.end());
            Err(source.at(value.span(), reason))
        }
    }
}

/// A handle that says nothing about the connection but is the same for the same place and name.
fn handle(name: &str, place: usize) -> u64 {
    let digest = hash_parts("bem/config-handle", &[name.as_bytes(), &(place as u64).to_le_bytes()]);
    digest.as_bytes().iter().take(8).fold(0, |handle, byte| handle << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests;
