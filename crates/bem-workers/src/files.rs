//! TOOL_FS: files below the roots of the catalog, and nothing else.
//!
//! Every root is a directory handle that cannot be left: `..`, absolute paths and links that lead outside are refused by the
//! operating system while the path is walked. Only regular files are opened, without waiting for devices or pipes. What is
//! replaced is written aside and renamed. Must not know who asks. Clauses: TOOL-4, TOOL-5.

use crate::cache::Cache;
use crate::catalog_file::{CatalogFile, Place};
use anyhow::{Context, Result};
use bem_base::ids::{ObjectClass, ObjectId};
use bem_tools::catalog::{NodeKind, flag, hash_name};
use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::limits::PAYLOAD_MAX;
use bem_tools::operation::{Role, by_code, fs_flag};
use bem_tools::payload::{Fields, read_range};
use bem_tools::worker::{Failure, Job, Tool};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Entries that a list has at most.
pub(crate) const LIST_MAX: i64 = 4_096;
/// Directories that a recursive list looks into at most.
const FOLDERS_MAX: usize = 1_024;
/// Bytes of all files in memory.
const MEMORY_MAX: usize = 64 << 20;
/// Bytes of the largest file that is cached.
const CACHED_MAX: u64 = PAYLOAD_MAX as u64;

/// Where a root keeps its files.
enum Backend {
    Folder(Dir),
    Memory(BTreeMap<PathBuf, Vec<u8>>),
}

/// The tool.
pub struct Files {
    catalog: Arc<CatalogFile>,
    backends: Vec<Backend>,
    cache: Cache,
}

/// Removes what ephemeral files have left from the time before: nothing of them outlives whoever hosts the tools.
pub fn forget_ephemeral(catalog: &CatalogFile) -> Result<()> {
    let is_ephemeral =
        |id: ObjectId| catalog.catalog.file(id).is_some_and(|node| node.flags & flag::EPHEMERAL != 0);
    for (_, (root, path)) in catalog.nodes.iter().filter(|(id, _)| is_ephemeral(**id)) {
        let root = &catalog.roots[*root];
        let Place::Folder(folder) = &root.place else { continue };
        let named = || format!("ephemeral file {}/{}", root.name, path.display());
        let directory = Dir::open_ambient_dir(folder, ambient_authority()).with_context(named)?;
        match directory.remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(named),
            _ => {}
        }
    }
    Ok(())
}

impl Files {
    /// Opens the roots.
    pub fn open(catalog: Arc<CatalogFile>) -> Result<Files> {
        let mut backends = Vec::new();
        for root in &catalog.roots {
            backends.push(match &root.place {
                Place::Memory => Backend::Memory(BTreeMap::new()),
                Place::Folder(path) => {
                    let opened = Dir::open_ambient_dir(path, ambient_authority());
                    Backend::Folder(
                        opened.with_context(|| format!("root {}: {}", root.name, path.display()))?,
                    )
                }
            });
        }
        let cache = Cache::new(catalog.cache_bytes);
        Ok(Files { catalog, backends, cache })
    }

    /// Reads that the cache answered, and that it did not.
    pub fn cache_counts(&self) -> (u64, u64) {
        (self.cache.hits, self.cache.misses)
    }
}

fn refused(error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => ErrorCode::NOT_FOUND.into(),
        // cap-std says this of paths that lead outside.
        ErrorKind::PermissionDenied => {
            Failure::new(ErrorCode::NOT_ALLOWED, "the path leads out of its root, or is not permitted")
        }
        // ELOOP of a link that must not be followed, ENXIO of a pipe or a device.
        _ if matches!(error.raw_os_error(), Some(40 | 6)) => ErrorCode::NOT_A_FILE.into(),
        kind => Failure::new(ErrorCode::INPUT_OUTPUT, kind.to_string()),
    }
}

/// Opens a regular file; never waits for a pipe, never opens a device.
fn open(directory: &Dir, path: &Path, options: &mut OpenOptions) -> Result<(File, Metadata), Failure> {
    // What is not there may be made; what is there must be a file before it is opened, and after.
    if let Ok(about) = directory.metadata(path)
        && !about.is_file()
    {
        return Err(ErrorCode::NOT_A_FILE.into());
    }
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = directory.open_with(path, options.custom_flags(nonblock)).map_err(|error| refused(&error))?;
    let about = file.metadata().map_err(|error| refused(&error))?;
    if !about.is_file() {
        return Err(ErrorCode::NOT_A_FILE.into());
    }
    Ok((file, about))
}

fn read_at(file: &File, offset: u64, length: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    let file = file.try_clone().map_err(|error| refused(&error))?.into_std();
    while filled < length {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(refused(&error)),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn kind_of(about: &Metadata) -> NodeKind {
    match about.file_type() {
        kind if kind.is_file() => NodeKind::File,
        kind if kind.is_dir() => NodeKind::Directory,
        kind if kind.is_symlink() => NodeKind::Link,
        _ => NodeKind::Other,
    }
}

/// Seconds since 1970 when it was changed last.
fn changed(about: &Metadata) -> i64 {
    about.mtime()
}

/// Whether a name fits a pattern of letters, `*` and `?`.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // The place of the last star, and how far it reached.
    let (mut at, mut of, mut star) = (0, 0, None);
    while of < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, of));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[of] => (at, of) = (at + 1, of + 1),
            _ => match star {
                Some((place, reached)) => {
                    star = Some((place, reached + 1));
                    (at, of) = (place + 1, reached + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

impl Tool for Files {
    fn run(&mut self, job: &Job) -> Result<Vec<u8>, Failure> {
        let operation = by_code(Role::Files, job.operation).ok_or(ErrorCode::UNKNOWN_OPERATION)?;
        let id = job.resource.ok_or(ErrorCode::UNKNOWN_RESOURCE)?;
        if id.class() != ObjectClass::FsNode {
            return Err(ErrorCode::WRONG_RESOURCE.into());
        }
        let catalog = Arc::clone(&self.catalog);
        let (root, path) = catalog.nodes.get(&id).ok_or(ErrorCode::UNKNOWN_RESOURCE)?;
        let flags = catalog.catalog.file(id).map_or(flag::READ_ONLY, |node| node.flags);
        let fields = Fields::read(operation, &job.payload)?;
        let item = match operation.name {
            "stat" => self.stat(*root, path, flags),
            "read" => self.read(id, *root, path, flags, &fields, job),
            "write" => self.write(id, *root, path, flags, &fields, job.flags),
            "list" => self.list(*root, path, &fields),
            _ => Err(ErrorCode::UNKNOWN_OPERATION.into()),
        };
        item.map(|item| item.to_bytes())
    }
}

impl Files {
    fn stat(&self, root: usize, path: &Path, flags: u16) -> Result<Item, Failure> {
        let (size, time, kind) = match &self.backends[root] {
            Backend::Folder(directory) => {
                let about = if path.as_os_str().is_empty() {
                    directory.dir_metadata()
                } else {
                    directory.metadata(path)
                };
                let about = about.map_err(|error| refused(&error))?;
                (about.len(), changed(&about), kind_of(&about))
            }
            Backend::Memory(_) if path.as_os_str().is_empty() => (0, 0, NodeKind::Directory),
            Backend::Memory(files) => {
                let bytes = files.get(path).ok_or(ErrorCode::NOT_FOUND)?;
                (bytes.len() as u64, 0, NodeKind::File)
            }
        };
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        Ok(Item::fields([
            (0, Item::Int(size)),
            (1, Item::Int(time)),
            (2, Item::Int(kind as i64)),
            (3, Item::Int(i64::from(flags))),
        ]))
    }

    fn read(
        &mut self,
        id: ObjectId,
        root: usize,
        path: &Path,
        flags: u16,
        fields: &Fields<'_>,
        job: &Job,
    ) -> Result<Item, Failure> {
        let (offset, length) = read_range(fields)?;
        let is_cached = flags & (flag::CACHEABLE | flag::PINNED) != 0;
        let (bytes, size) = match &self.backends[root] {
            Backend::Memory(files) => {
                let bytes = files.get(path).ok_or(ErrorCode::NOT_FOUND)?;
                (part(bytes, offset, length), bytes.len() as u64)
            }
            Backend::Folder(directory) => {
                let (file, about) = open(directory, path, OpenOptions::new().read(true))?;
                let stamp =
                    (about.len(), about.mtime().wrapping_mul(1_000_000_000).wrapping_add(about.mtime_nsec()));
                if is_cached && about.len() <= CACHED_MAX {
                    if self.cache.get(id, stamp).is_none() {
                        let whole = read_at(&file, 0, about.len() as usize)?;
                        self.cache.put(id, stamp, whole.clone(), flags & flag::PINNED != 0);
                        (part(&whole, offset, length), about.len())
                    } else {
                        self.cache.hits -= 1;
                        (part(self.cache.get(id, stamp).unwrap_or_default(), offset, length), about.len())
                    }
                } else {
                    let left = about.len().saturating_sub(offset).min(length as u64) as usize;
                    (read_at(&file, offset, left)?, about.len())
                }
            }
        };
        let asked_for_more = fields.get(1).is_some() && bytes.len() < length;
        if asked_for_more && job.flags & fs_flag::PARTIAL == 0 {
            let words =
                format!("the file ends after {size} bytes: say the flag partial to get what is there");
            return Err(Failure::new(ErrorCode::TOO_LONG, words));
        }
        // Head of the map, of the bytes and of the size.
        if (job.capacity as usize) < bytes.len() + 20 {
            return Err(ErrorCode::TOO_LONG.into());
        }
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        Ok(Item::fields([(0, Item::Bytes(bytes)), (1, Item::Int(size))]))
    }

    fn write(
        &mut self,
        id: ObjectId,
        root: usize,
        path: &Path,
        flags: u16,
        fields: &Fields<'_>,
        asked: u16,
    ) -> Result<Item, Failure> {
        let is_append = asked & fs_flag::APPEND != 0;
        if flags & flag::READ_ONLY != 0 || path.as_os_str().is_empty() {
            return Err(Failure::new(ErrorCode::NOT_ALLOWED, "the resource is read-only"));
        }
        if flags & flag::APPEND_ONLY != 0 && !is_append {
            return Err(Failure::new(
                ErrorCode::NOT_ALLOWED,
                "the resource is append-only: say the flag append",
            ));
        }
        let data = fields.bytes(1)?;
        let offset = match fields.get(0) {
            None => None,
            Some(_) => Some(fields.int(0, 0..=1 << 40, 0)? as u64),
        };
        if is_append && offset.is_some() {
            return Err(Failure::new(ErrorCode::BAD_PAYLOAD, "an append has no offset"));
        }
        self.cache.forget(id);
        match &mut self.backends[root] {
            Backend::Memory(files) => write_memory(files, path, offset, is_append, data)?,
            Backend::Folder(directory) => write_file(directory, path, offset, is_append, data)?,
        }
        Ok(Item::fields([(0, Item::Int(data.len() as i64))]))
    }

    fn list(&self, root: usize, path: &Path, fields: &Fields<'_>) -> Result<Item, Failure> {
        let (is_recursive, pattern) = (fields.flag(0)?, fields.text(1)?.unwrap_or("*"));
        let limit = fields.int(2, 1..=LIST_MAX, 256)? as usize;
        let mut children: Vec<(PathBuf, NodeKind)> = Vec::new();
        match &self.backends[root] {
            Backend::Memory(files) => {
                children.extend(files.keys().map(|path| (path.clone(), NodeKind::File)));
            }
            Backend::Folder(directory) => {
                let mut waiting = vec![path.to_path_buf()];
                let mut folders = 0;
                while let Some(folder) = waiting.pop() {
                    folders += 1;
                    if FOLDERS_MAX < folders || LIST_MAX as usize * 4 < children.len() {
                        break;
                    }
                    let opened = if folder.as_os_str().is_empty() {
                        directory.try_clone()
                    } else {
                        directory.open_dir(&folder)
                    };
                    let opened = opened.map_err(|error| match error.raw_os_error() {
                        Some(20) => ErrorCode::NOT_A_DIRECTORY.into(),
                        _ => refused(&error),
                    })?;
                    for entry in opened.entries().map_err(|error| refused(&error))?.flatten() {
                        let Ok(about) = entry.metadata() else { continue };
                        let place = folder.join(entry.file_name());
                        if is_recursive && about.is_dir() {
                            waiting.push(place.clone());
                        }
                        children.push((place, kind_of(&about)));
                    }
                }
            }
        }
        children.retain(|(path, _)| {
            path.file_name().is_some_and(|name| fits(pattern.as_bytes(), name.as_encoded_bytes()))
        });
        children.sort_by(|one, other| one.0.cmp(&other.0));
        let is_truncated = limit < children.len();
        children.truncate(limit);
        let root_name = &self.catalog.roots[root].name;
        let entry = |(path, kind): &(PathBuf, NodeKind)| {
            let logical = format!("{root_name}/{}", path.display());
            let id = self.catalog.catalog.find(&logical).map_or(0, |id| i64::from(id.to_word()));
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            // A hash is 64 bits: it travels as the whole number with the same bits.
            Item::List(vec![Item::Int(id), Item::Int(hash_name(&name) as i64), Item::Int(*kind as i64)])
        };
        let entries = children.iter().map(entry).collect();
        Ok(Item::fields([(0, Item::List(entries)), (1, Item::Bool(is_truncated))]))
    }
}

fn part(bytes: &[u8], offset: u64, length: usize) -> Vec<u8> {
    let first = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    bytes[first..first.saturating_add(length).min(bytes.len())].to_vec()
}

fn write_memory(
    files: &mut BTreeMap<PathBuf, Vec<u8>>,
    path: &Path,
    offset: Option<u64>,
    is_append: bool,
    data: &[u8],
) -> Result<(), Failure> {
    let total: usize = files.values().map(Vec::len).sum();
    let end = offset.unwrap_or(0) as usize + data.len();
    if MEMORY_MAX < total + end {
        return Err(Failure::new(ErrorCode::WRITE_FAILED, "the memory of this root is full"));
    }
    let bytes = files.entry(path.to_path_buf()).or_default();
    match offset {
        _ if is_append => bytes.extend_from_slice(data),
        None => *bytes = data.to_vec(),
        Some(offset) => {
            bytes.resize(bytes.len().max(end), 0);
            bytes[offset as usize..end].copy_from_slice(data);
        }
    }
    Ok(())
}

fn write_file(
    directory: &Dir,
    path: &Path,
    offset: Option<u64>,
    is_append: bool,
    data: &[u8],
) -> Result<(), Failure> {
    let fails = |error: std::io::Error| refused(&error);
    if is_append {
        let (mut file, _) = open(directory, path, OpenOptions::new().append(true).create(true))?;
        return file.write_all(data).map_err(fails);
    }
    if let Some(offset) = offset {
        let (file, _) = open(directory, path, OpenOptions::new().write(true).create(true).truncate(false))?;
        return file.into_std().write_all_at(data, offset).map_err(fails);
    }
    if let Ok(about) = directory.symlink_metadata(path)
        && !about.is_file()
    {
        return Err(ErrorCode::NOT_A_FILE.into());
    }
    let mut aside = path.as_os_str().to_os_string();
    aside.push(".bem-aside");
    let aside = PathBuf::from(aside);
    let written = open(directory, &aside, OpenOptions::new().write(true).create(true).truncate(true))
        .and_then(|(mut file, _)| file.write_all(data).and_then(|()| file.sync_all()).map_err(fails));
    written?;
    directory.rename(&aside, directory, path).map_err(fails)
}

#[cfg(test)]
mod tests;
