//! The catalog: which files, databases, simulators and tools there are, as tables of numbers with places in SHARED.
//!
//! Logical names, paths and credentials stay with the host; the machine sees identifiers, hashes and flags. The tables have
//! the specification's fields; [`crate::tables`] lays them out for the CATALOG segment. Must not know paths of an operating system. Clauses: TOOL-1, ID-4; decision D-30.

use crate::limits::{ALIASES, DATABASES_MAX, ENVIRONMENTS_MAX, FILES_MAX, KINDS_MAX, NAME_BYTES_MAX};
use crate::operation::Role;
use bem_base::digest::hash_parts;
use bem_base::ids::{ObjectClass, ObjectId};
use bem_base::slots::{SlotError, SlotTable};
use std::collections::BTreeMap;

/// Names of the preset aliases.
pub const ALIAS_NAMES: [&str; 4] = ["DATA_ROOT", "LOG_ROOT", "SNAPSHOT_ROOT", "CONFIG_ROOT"];

/// Flags of a resource.
pub mod flag {
    /// Nothing may be written.
    pub const READ_ONLY: u16 = 1;
    /// Writes may only add at the end.
    pub const APPEND_ONLY: u16 = 2;
    /// What is written is gone when the host stops.
    pub const EPHEMERAL: u16 = 4;
    /// Contents stay out of ledger, snapshots and logs.
    pub const SENSITIVE: u16 = 8;
    /// Contents may be kept in the read cache.
    pub const CACHEABLE: u16 = 16;
    /// Contents stay in the read cache.
    pub const PINNED: u16 = 32;
    /// A database whose statements are transactions.
    pub const TRANSACTIONAL: u16 = 64;

    /// Names as catalogs write them.
    pub const NAMES: [(&str, u16); 7] = [
        ("read_only", READ_ONLY),
        ("append_only", APPEND_ONLY),
        ("ephemeral", EPHEMERAL),
        ("sensitive", SENSITIVE),
        ("cacheable", CACHEABLE),
        ("pinned", PINNED),
        ("transactional", TRANSACTIONAL),
    ];
}

/// What a filesystem node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NodeKind {
    /// A regular file.
    File = 0,
    /// A directory.
    Directory = 1,
    /// A symbolic link.
    Link = 2,
    /// Something else: a device, a pipe, a socket. It is never opened.
    Other = 3,
}

/// A row of FS_NODE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "FS_NODE")]
pub struct FileNode {
    /// Its identifier.
    pub id: ObjectId,
    /// The directory that it is in; none for a root.
    pub parent: Option<ObjectId>,
    /// What it is.
    pub kind: NodeKind,
    /// Names the last part of its path.
    pub hash_name: u64,
    /// Names its logical path.
    pub hash_path: u64,
    /// Which root it belongs to.
    pub backend: u16,
    /// What is allowed.
    pub flags: u16,
}

/// A row of DB_CONN, and of ENV_TASK: the host knows what the handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "DB_CONN")]
#[doc(alias = "ENV_TASK")]
pub struct Connection {
    /// Its identifier.
    pub id: ObjectId,
    /// Which backend serves it.
    pub backend: u16,
    /// What is allowed.
    pub flags: u16,
    /// Opaque: a number that is drawn by the host and says nothing about the connection.
    pub config_handle: u64,
}

/// A row of TOOL_KIND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "TOOL_KIND")]
pub struct ToolKind {
    /// Its identifier.
    pub id: ObjectId,
    /// What it is for.
    pub role_flags: u32,
}

/// An operation that a user's tool declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomOperation {
    /// Its number.
    pub code: u16,
    /// Its name.
    pub name: String,
    /// Whether a repetition is harmless.
    pub idempotent: bool,
}

/// Why something cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// The table is full.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// A name is taken.
    #[error("name {0:?} is used twice")]
    NameTaken(String),
    /// A name has other letters than allowed.
    #[error(
        "name {0:?} is not allowed: 1 to {NAME_BYTES_MAX} letters, digits, dots, dashes, underscores and slashes"
    )]
    BadName(String),
    /// Two resources would have one hash.
    #[error("the hash of {0:?} is that of another path: rename one of them")]
    HashTaken(String),
    /// There is no such alias.
    #[error("alias {0} is out of range: 0 to 7, or DATA_ROOT, LOG_ROOT, SNAPSHOT_ROOT, CONFIG_ROOT")]
    BadAlias(u32),
    /// An alias is taken.
    #[error("alias {0} is given twice")]
    AliasTaken(u32),
}

/// All tables with their slots, and the logical names beside them.
#[derive(Clone, Debug)]
pub struct Catalog {
    file_slots: SlotTable,
    database_slots: SlotTable,
    kind_slots: SlotTable,
    environment_slots: SlotTable,
    files: Vec<FileNode>,
    databases: Vec<Connection>,
    environments: Vec<Connection>,
    kinds: Vec<ToolKind>,
    aliases: [Option<ObjectId>; ALIASES],
    names: BTreeMap<String, ObjectId>,
    named: BTreeMap<ObjectId, String>,
    paths: BTreeMap<u64, ObjectId>,
    operations: BTreeMap<ObjectId, Vec<CustomOperation>>,
}

/// The 64-bit hash of a name or path.
pub fn hash_name(text: &str) -> u64 {
    let digest = hash_parts("bem/fs-name", &[text.as_bytes()]);
    digest.as_bytes().iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// Whether a logical name has only letters that it may have.
pub fn is_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || "._-/".contains(letter);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_letter)
}

impl Default for Catalog {
    fn default() -> Catalog {
        Catalog::new()
    }
}

impl Catalog {
    /// The catalog with the built-in kinds and nothing else.
    pub fn new() -> Catalog {
        let mut catalog = Catalog {
            file_slots: SlotTable::new(ObjectClass::FsNode, FILES_MAX),
            database_slots: SlotTable::new(ObjectClass::DbConn, DATABASES_MAX),
            kind_slots: SlotTable::new(ObjectClass::ToolKind, KINDS_MAX),
            environment_slots: SlotTable::new(ObjectClass::EnvTask, ENVIRONMENTS_MAX),
            files: Vec::new(),
            databases: Vec::new(),
            environments: Vec::new(),
            kinds: Vec::new(),
            aliases: [None; ALIASES],
            names: BTreeMap::new(),
            named: BTreeMap::new(),
            paths: BTreeMap::new(),
            operations: BTreeMap::new(),
        };
        for role in Role::BUILT_IN {
            catalog.add_kind(role.name(), role, Vec::new()).expect("an empty table takes the built-in kinds");
        }
        catalog
    }

    fn check_name(&self, name: &str) -> Result<(), CatalogError> {
        if !is_name(name) {
            return Err(CatalogError::BadName(name.to_string()));
        }
        if self.names.contains_key(name) {
            return Err(CatalogError::NameTaken(name.to_string()));
        }
        Ok(())
    }

    fn name(&mut self, name: &str, id: ObjectId) {
        self.names.insert(name.to_string(), id);
        self.named.insert(id, name.to_string());
    }

    /// Adds a kind of tool.
    pub fn add_kind(
        &mut self,
        name: &str,
        role: Role,
        operations: Vec<CustomOperation>,
    ) -> Result<ObjectId, CatalogError> {
        self.check_name(name)?;
        let (id, _) = self.kind_slots.allocate()?;
        self.kinds.push(ToolKind { id, role_flags: role.bit() });
        self.operations.insert(id, operations);
        self.name(name, id);
        Ok(id)
    }

    /// Adds a filesystem node. `path` is its logical path: the root's name, then its parts.
    pub fn add_file(
        &mut self,
        path: &str,
        parent: Option<ObjectId>,
        kind: NodeKind,
        backend: u16,
        flags: u16,
    ) -> Result<ObjectId, CatalogError> {
        self.check_name(path)?;
        let hash_path = hash_name(path);
        if self.paths.contains_key(&hash_path) {
            return Err(CatalogError::HashTaken(path.to_string()));
        }
        let (id, _) = self.file_slots.allocate()?;
        let base = path.rsplit('/').next().unwrap_or(path);
        self.files.push(FileNode { id, parent, kind, hash_name: hash_name(base), hash_path, backend, flags });
        self.paths.insert(hash_path, id);
        self.name(path, id);
        Ok(id)
    }

    /// Adds a database.
    pub fn add_database(
        &mut self,
        name: &str,
        backend: u16,
        flags: u16,
        config_handle: u64,
    ) -> Result<ObjectId, CatalogError> {
        self.check_name(name)?;
        let (id, _) = self.database_slots.allocate()?;
        self.databases.push(Connection { id, backend, flags, config_handle });
        self.name(name, id);
        Ok(id)
    }

    /// Adds an external simulator.
    pub fn add_environment(
        &mut self,
        name: &str,
        backend: u16,
        flags: u16,
        config_handle: u64,
    ) -> Result<ObjectId, CatalogError> {
        self.check_name(name)?;
        let (id, _) = self.environment_slots.allocate()?;
        self.environments.push(Connection { id, backend, flags, config_handle });
        self.name(name, id);
        Ok(id)
    }

    /// Gives a node a short number.
    pub fn set_alias(&mut self, alias: u32, node: ObjectId) -> Result<(), CatalogError> {
        let place = self.aliases.get_mut(alias as usize).ok_or(CatalogError::BadAlias(alias))?;
        if place.replace(node).is_some() {
            return Err(CatalogError::AliasTaken(alias));
        }
        Ok(())
    }

    /// What is called this: a resource or a kind.
    pub fn find(&self, name: &str) -> Option<ObjectId> {
        self.names.get(name).copied()
    }

    /// What something is called.
    pub fn name_of(&self, id: ObjectId) -> Option<&str> {
        self.named.get(&id).map(String::as_str)
    }

    /// The node of an alias.
    pub fn alias(&self, alias: usize) -> Option<ObjectId> {
        self.aliases.get(alias).copied().flatten()
    }

    /// A filesystem node.
    pub fn file(&self, id: ObjectId) -> Option<&FileNode> {
        self.files.get(self.file_slots.slot(id).ok()? as usize)
    }

    /// A database.
    pub fn database(&self, id: ObjectId) -> Option<&Connection> {
        self.databases.get(self.database_slots.slot(id).ok()? as usize)
    }

    /// An external simulator.
    pub fn environment(&self, id: ObjectId) -> Option<&Connection> {
        self.environments.get(self.environment_slots.slot(id).ok()? as usize)
    }

    /// A kind of tool.
    pub fn kind(&self, id: ObjectId) -> Option<&ToolKind> {
        self.kinds.get(self.kind_slots.slot(id).ok()? as usize)
    }

    /// The role of a kind.
    pub fn role(&self, id: ObjectId) -> Option<Role> {
        let flags = self.kind(id)?.role_flags;
        Role::BUILT_IN.into_iter().chain([Role::Custom]).find(|role| flags & role.bit() != 0)
    }

    /// Operations that a user's kind declares.
    pub fn custom_operations(&self, kind: ObjectId) -> &[CustomOperation] {
        self.operations.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// Whether a request may be tried again after a worker was lost.
    pub fn is_idempotent(&self, kind: ObjectId, code: u16, flags: u16) -> bool {
        match self.role(kind) {
            None => false,
            Some(Role::Custom) => self
                .custom_operations(kind)
                .iter()
                .any(|operation| operation.code == code && operation.idempotent),
            Some(role) => crate::operation::is_idempotent(role, code, flags),
        }
    }

    /// Whether contents of a resource stay out of the ledger.
    pub fn is_sensitive(&self, id: ObjectId) -> bool {
        let flags = match id.class() {
            ObjectClass::FsNode => self.file(id).map(|node| node.flags),
            ObjectClass::DbConn => self.database(id).map(|row| row.flags),
            ObjectClass::EnvTask => self.environment(id).map(|row| row.flags),
            _ => None,
        };
        flags.unwrap_or(0) & flag::SENSITIVE != 0
    }

    /// All nodes.
    pub fn files(&self) -> &[FileNode] {
        &self.files
    }

    /// All databases.
    pub fn databases(&self) -> &[Connection] {
        &self.databases
    }

    /// All simulators.
    pub fn environments(&self) -> &[Connection] {
        &self.environments
    }

    /// All kinds.
    pub fn kinds(&self) -> &[ToolKind] {
        &self.kinds
    }

    /// What the aliases stand for.
    pub fn aliases(&self) -> &[Option<ObjectId>; ALIASES] {
        &self.aliases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_found_by_name_and_by_identifier() {
        let mut catalog = Catalog::new();
        let root = catalog.add_file("config", None, NodeKind::Directory, 0, flag::READ_ONLY).unwrap();
        let file =
            catalog.add_file("config/env.json", Some(root), NodeKind::File, 0, flag::SENSITIVE).unwrap();
        let stock = catalog.add_database("stock", 1, 0, 77).unwrap();
        catalog.set_alias(3, root).unwrap();
        assert_eq!(catalog.find("config/env.json"), Some(file));
        assert_eq!(catalog.name_of(file), Some("config/env.json"));
        assert_eq!(catalog.file(file).unwrap().parent, Some(root));
        assert_eq!(catalog.file(file).unwrap().hash_name, hash_name("env.json"));
        assert_eq!((catalog.alias(3), catalog.alias(0)), (Some(root), None));
        assert!(catalog.is_sensitive(file) && !catalog.is_sensitive(root));
        assert_eq!(catalog.database(stock).unwrap().config_handle, 77);
        assert_eq!(catalog.database(file), None);
        assert_eq!(catalog.role(catalog.find("db").unwrap()), Some(Role::Database));
        assert!(matches!(catalog.add_database("stock", 0, 0, 0), Err(CatalogError::NameTaken(_))));
        assert!(matches!(catalog.add_database("a b", 0, 0, 0), Err(CatalogError::BadName(_))));
        assert!(matches!(catalog.set_alias(3, file), Err(CatalogError::AliasTaken(3))));
        assert!(matches!(catalog.set_alias(8, file), Err(CatalogError::BadAlias(8))));
    }
}
