//! SHARED's CATALOG: the tables as words, with aliases first, so that a program loads an alias from a fixed place.
//!
//! ```text
//! 0 version   1 nodes   2 databases   3 kinds   4 simulators   5 nodes left out   8..16 aliases, 0 for none   16 the tables
//! kind: id 32 | role_flags 32                    database and simulator: id 32 | backend 16 | flags 16, handle
//! node: id 32 | parent 32, name, path, kind 8 | zero 24 | backend 16 | flags 16
//! ```
//!
//! Kinds come first, then databases, simulators and nodes; a row's place is its slot. Nodes that find no room are left out, the
//! last first, and counted: a folder can have more files than the segment has words. Must not know the host's side of anything.
//! Clauses: TOOL-1, ID-4; decision D-200.

use crate::catalog::{Catalog, Connection, FileNode, NodeKind, ToolKind};
use crate::limits::ALIASES;
use bem_base::ids::ObjectId;

/// Words before the first row.
const HEAD_WORDS: usize = 16;
/// The first alias.
const ALIASES_AT: usize = 8;
/// Words of a node.
const NODE_WORDS: usize = 4;

/// The tables as they stand in SHARED.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// The version of the layer.
    pub version: u64,
    /// FS_ALIAS.
    pub aliases: [Option<ObjectId>; ALIASES],
    /// TOOL_KIND.
    pub kinds: Vec<ToolKind>,
    /// DB_CONN.
    pub databases: Vec<Connection>,
    /// ENV_TASK.
    pub environments: Vec<Connection>,
    /// FS_NODE.
    pub files: Vec<FileNode>,
    /// Nodes that found no room.
    pub left_out: u64,
}

fn word(id: Option<ObjectId>) -> u64 {
    id.map_or(0, |id| u64::from(id.to_word()))
}

impl Catalog {
    /// The tables as words of the CATALOG segment, at most `room` of them as far as nodes are concerned.
    pub fn words(&self, room: usize) -> Vec<u64> {
        let mut words = vec![0; HEAD_WORDS];
        words[0] = crate::VERSION_WORD;
        for (place, count) in
            [(2, self.databases().len()), (3, self.kinds().len()), (4, self.environments().len())]
        {
            words[place] = count as u64;
        }
        for (place, alias) in self.aliases().iter().enumerate() {
            words[ALIASES_AT + place] = word(*alias);
        }
        words.extend(self.kinds().iter().map(|kind| word(Some(kind.id)) | u64::from(kind.role_flags) << 32));
        for row in self.databases().iter().chain(self.environments()) {
            let first = word(Some(row.id)) | u64::from(row.backend) << 32 | u64::from(row.flags) << 48;
            words.extend([first, row.config_handle]);
        }
        let fitting = (room.saturating_sub(words.len()) / NODE_WORDS).min(self.files().len());
        words[1] = fitting as u64;
        words[5] = (self.files().len() - fitting) as u64;
        for node in &self.files()[..fitting] {
            let first = word(Some(node.id)) | word(node.parent) << 32;
            let last = node.kind as u64 | u64::from(node.backend) << 32 | u64::from(node.flags) << 48;
            words.extend([first, node.hash_name, node.hash_path, last]);
        }
        words
    }
}

fn id(word: u64) -> Option<ObjectId> {
    ObjectId::from_word(word as u32).ok()
}

fn connection(row: &[u64]) -> Option<Connection> {
    let (backend, flags) = ((row[0] >> 32) as u16, (row[0] >> 48) as u16);
    Some(Connection { id: id(row[0])?, backend, flags, config_handle: row[1] })
}

fn node(row: &[u64]) -> Option<FileNode> {
    let kind = match row[3] as u8 {
        0 => NodeKind::File,
        1 => NodeKind::Directory,
        2 => NodeKind::Link,
        _ => NodeKind::Other,
    };
    let parent = match row[0] >> 32 {
        0 => None,
        parent => Some(id(parent)?),
    };
    let (backend, flags) = ((row[3] >> 32) as u16, (row[3] >> 48) as u16);
    Some(FileNode { id: id(row[0])?, parent, kind, hash_name: row[1], hash_path: row[2], backend, flags })
}

impl Tables {
    /// Reads the segment; nothing where it holds no tables.
    pub fn read(segment: &[u64]) -> Option<Tables> {
        let (head, mut rest) = segment.split_at_checked(HEAD_WORDS)?;
        let mut rows = |count: u64, width: usize| {
            let length = usize::try_from(count).ok()?.checked_mul(width)?;
            let (rows, behind) = rest.split_at_checked(length)?;
            rest = behind;
            Some(rows.chunks_exact(width))
        };
        let kinds = rows(head[3], 1)?
            .map(|row| Some(ToolKind { id: id(row[0])?, role_flags: (row[0] >> 32) as u32 }))
            .collect::<Option<_>>()?;
        let databases = rows(head[2], 2)?.map(connection).collect::<Option<_>>()?;
        let environments = rows(head[4], 2)?.map(connection).collect::<Option<_>>()?;
        let files = rows(head[1], NODE_WORDS)?.map(node).collect::<Option<_>>()?;
        let mut aliases = [None; ALIASES];
        for (alias, word) in aliases.iter_mut().zip(&head[ALIASES_AT..]) {
            *alias = if *word == 0 { None } else { Some(id(*word)?) };
        }
        Some(Tables { version: head[0], aliases, kinds, databases, environments, files, left_out: head[5] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{flag, hash_name};

    fn catalog() -> Catalog {
        let mut catalog = Catalog::new();
        let root = catalog.add_file("config", None, NodeKind::Directory, 9, flag::READ_ONLY).unwrap();
        catalog.add_file("config/a", Some(root), NodeKind::File, 9, flag::SENSITIVE).unwrap();
        catalog.add_database("stock", 3, flag::TRANSACTIONAL, 77).unwrap();
        catalog.add_environment("count", 4, 0, 78).unwrap();
        catalog.set_alias(3, root).unwrap();
        catalog
    }

    #[test]
    fn the_segment_has_aliases_at_fixed_places_and_every_row() {
        let catalog = catalog();
        let words = catalog.words(1_000);
        let (root, file) = (catalog.find("config").unwrap(), catalog.find("config/a").unwrap());
        assert_eq!(words[8 + 3], u64::from(root.to_word()));
        assert_eq!(words[1..5], [2, 1, 6, 1]);
        let last = &words[words.len() - 4..];
        assert_eq!(last[0], u64::from(file.to_word()) | u64::from(root.to_word()) << 32);
        assert_eq!(last[1..3], [hash_name("a"), hash_name("config/a")]);
        assert_eq!(last[3], 9 << 32 | u64::from(flag::SENSITIVE) << 48);
    }

    #[test]
    fn every_field_of_every_table_comes_back_from_the_segment() {
        let catalog = catalog();
        let mut words = catalog.words(1_000);
        words.resize(words.len() + 50, 0);
        let tables = Tables::read(&words).unwrap();
        assert_eq!((tables.version, tables.aliases), (crate::VERSION_WORD, *catalog.aliases()));
        assert_eq!((tables.kinds.as_slice(), tables.files.as_slice()), (catalog.kinds(), catalog.files()));
        assert_eq!(tables.databases, catalog.databases());
        assert_eq!(tables.environments, catalog.environments());
        assert_eq!(tables.left_out, 0);
        // Where there is no room for all nodes the first ones are there, and the others are counted.
        let cut = Tables::read(&catalog.words(words.len() - 51)).unwrap();
        assert_eq!((cut.files.as_slice(), cut.left_out), (&catalog.files()[..1], 1));
        assert_eq!((cut.databases, cut.kinds), (tables.databases, tables.kinds));
        // Words that are no tables are none.
        assert_eq!(Tables::read(&words[..10]), None);
        words[1] = u64::MAX;
        assert_eq!(Tables::read(&words), None);
        let mut damaged = catalog.words(1_000);
        damaged[16] ^= 1;
        assert_eq!(Tables::read(&damaged), None);
    }
}
