//! Layers: files packed as a gzipped tar whose bytes follow from their content alone, and unpacked with every name checked.
//!
//! Entries are sorted, have no time and a fixed owner; identical files give identical bytes, wherever they were packed. What is
//! unpacked may hold folders, plain files and links inside the image and nothing else. Must not know what the files mean.
//! Clauses: IMG-2, IMG-6; decision D-85.

use crate::ImageError;
use crate::limits::{BLOB_BYTES_MAX, LAYER_BYTES_MAX, LAYER_FILES_MAX, PATH_BYTES_MAX};
use bem_base::digest::Digest;
use bem_ledger::store::Store;
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// Bytes that are read or written at once.
const CHUNK: usize = 1 << 16;

/// What stands under a name of a layer.
pub enum Content<'c> {
    /// A folder.
    Folder,
    /// A file whose bytes are at hand.
    Bytes(Vec<u8>),
    /// A file of so many bytes that are read when they are packed.
    Stream(u64, Box<dyn Read + 'c>),
    /// A symbolic link.
    Link(String),
}

/// One file of a layer.
pub struct LayerFile<'c> {
    /// Who may do what, as in `chmod`.
    pub mode: u32,
    /// Whose it is, user and group alike.
    pub owner: u32,
    /// What it is.
    pub content: Content<'c>,
}

/// The files of a layer by their path, without a leading slash.
pub type LayerFiles<'c> = BTreeMap<String, LayerFile<'c>>;

/// A layer that was packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Digest of the stored bytes.
    pub digest: Digest,
    /// The stored bytes.
    pub size: u64,
    /// Digest of the plain archive.
    pub diff_id: Digest,
}

/// Adds the folders above every file that are not there.
pub fn with_folders(mut files: LayerFiles<'_>) -> LayerFiles<'_> {
    let mut above: Vec<String> = Vec::new();
    for path in files.keys() {
        above.extend(path.match_indices('/').map(|(place, _)| path[..place].to_string()));
    }
    for path in above {
        files.entry(path).or_insert(LayerFile { mode: 0o755, owner: 0, content: Content::Folder });
    }
    files
}

/// Hashes and counts what passes through.
pub struct Counted<W> {
    inner: W,
    hasher: Sha256,
    bytes: u64,
}

impl<W> Counted<W> {
    /// Around a reader or a writer.
    pub fn new(inner: W) -> Counted<W> {
        Counted { inner, hasher: Sha256::new(), bytes: 0 }
    }

    /// What is inside, the digest of what passed, and how many bytes that were.
    pub fn finish(self) -> (W, Digest, u64) {
        (self.inner, Digest::from_bytes(self.hasher.finalize().into()), self.bytes)
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
}

/// A file of a store that is written from its start.
pub struct StoreWriter<'s, S> {
    store: &'s mut S,
    name: String,
    offset: u64,
    waiting: Vec<u8>,
}

impl<'s, S: Store> StoreWriter<'s, S> {
    /// Makes the file.
    pub fn create(store: &'s mut S, name: &str) -> Result<StoreWriter<'s, S>, ImageError> {
        store.create(name)?;
        Ok(StoreWriter { store, name: name.to_string(), offset: 0, waiting: Vec::with_capacity(CHUNK) })
    }
}

impl<S: Store> Write for StoreWriter<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if CHUNK <= self.waiting.len() {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let written = self.store.write(&self.name, self.offset, &self.waiting);
        written.map_err(std::io::Error::other)?;
        self.offset += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

/// A file of a store that is read from its start, at most so many bytes.
pub struct StoreReader<'s, S> {
    store: &'s mut S,
    name: String,
    offset: u64,
    length: u64,
}

impl<'s, S: Store> StoreReader<'s, S> {
    /// Opens a file.
    pub fn open(store: &'s mut S, name: &str) -> Result<StoreReader<'s, S>, ImageError> {
        let length = store.length(name)?;
        Ok(StoreReader { store, name: name.to_string(), offset: 0, length })
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl<S: Store> Read for StoreReader<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = usize::try_from(self.length - self.offset).unwrap_or(usize::MAX);
        let count = left.min(buffer.len()).min(CHUNK);
        if 0 < count {
            let read = self.store.read(&self.name, self.offset, &mut buffer[..count]);
            read.map_err(std::io::Error::other)?;
            self.offset += count as u64;
        }
        Ok(count)
    }
}

fn failed(what: &str) -> impl Fn(std::io::Error) -> ImageError {
    let what = what.to_string();
    move |error| ImageError::Pack { what: what.clone(), reason: error.to_string() }
}

/// Packs files into a writer; the digest of the plain archive.
fn pack_into<W: Write>(files: LayerFiles<'_>, output: W) -> Result<(W, Digest), ImageError> {
    // The header of gzip has a time, a name and a system: all are left out.
    let gzip = GzBuilder::new().mtime(0).operating_system(255).write(output, Compression::new(6));
    let mut archive = tar::Builder::new(Counted::new(gzip));
    archive.mode(tar::HeaderMode::Deterministic);
    for (path, file) in files {
        append(&mut archive, &path, file).map_err(failed(&path))?;
    }
    let (gzip, diff_id, _) = archive.into_inner().map_err(failed("the layer"))?.finish();
    Ok((gzip.finish().map_err(failed("the layer"))?, diff_id))
}

fn append<W: Write>(archive: &mut tar::Builder<W>, path: &str, file: LayerFile<'_>) -> std::io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_mode(file.mode);
    header.set_uid(u64::from(file.owner));
    header.set_gid(u64::from(file.owner));
    header.set_mtime(0);
    header.set_size(0);
    match file.content {
        Content::Folder => {
            header.set_entry_type(tar::EntryType::Directory);
            archive.append_data(&mut header, format!("{path}/"), std::io::empty())
        }
        Content::Link(target) => {
            header.set_entry_type(tar::EntryType::Symlink);
            archive.append_link(&mut header, path, target)
        }
        Content::Bytes(bytes) => {
            header.set_entry_type(tar::EntryType::Regular);
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, path, &bytes[..])
        }
        Content::Stream(size, from) => {
            header.set_entry_type(tar::EntryType::Regular);
            header.set_size(size);
            let mut from = Counted::new(from.take(size));
            archive.append_data(&mut header, path, &mut from)?;
            let (_, _, found) = from.finish();
            match found == size {
                true => Ok(()),
                false => Err(std::io::Error::other(format!("{found} bytes, {size} were announced"))),
            }
        }
    }
}

/// Packs files into a file of the store, which is not synced yet.
pub fn pack<S: Store>(store: &mut S, name: &str, files: LayerFiles<'_>) -> Result<Packed, ImageError> {
    let writer = Counted::new(StoreWriter::create(store, name)?);
    let (mut writer, diff_id) = pack_into(with_folders(files), writer)?;
    writer.flush().map_err(failed(name))?;
    let (_, digest, size) = writer.finish();
    Ok(Packed { digest, size, diff_id })
}

/// What is told of every entry of a layer: its path, what it is, its bytes.
pub trait Taker {
    /// Takes a folder.
    fn folder(&mut self, path: &str) -> Result<(), String>;
    /// Takes a file with its mode.
    fn file(&mut self, path: &str, mode: u32, content: &mut dyn Read) -> Result<(), String>;
    /// Takes a link.
    fn link(&mut self, path: &str, target: &str) -> Result<(), String>;
}

/// Takes nothing.
pub struct Nothing;

impl Taker for Nothing {
    fn folder(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }
    fn file(&mut self, _: &str, _: u32, content: &mut dyn Read) -> Result<(), String> {
        std::io::copy(content, &mut std::io::sink()).map(drop).map_err(|error| error.to_string())
    }
    fn link(&mut self, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Whether a path stays inside: no leading slash, no `..`, no empty part, plain letters.
pub fn is_inside(path: &str) -> bool {
    let parts = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    parts
        && path.len() <= PATH_BYTES_MAX
        && path.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'\\')
}

/// Unpacks a layer, gzipped or plain, and returns the digests and sizes of both forms. Everything is read to its end before the
/// digests are known: what was taken counts only if they are the right ones.
pub fn unpack(stored: &mut dyn Read, is_gzipped: bool, taker: &mut dyn Taker) -> Result<Packed, ImageError> {
    let mut stored = Counted::new(stored.take(BLOB_BYTES_MAX));
    let diff_id = match is_gzipped {
        true => {
            let mut decoder = GzDecoder::new(&mut stored);
            unpack_plain(&mut decoder, taker)?
        }
        false => unpack_plain(&mut stored, taker)?,
    };
    // What stands behind the archive belongs to the digest as well, and nothing may.
    let behind = std::io::copy(&mut stored, &mut std::io::sink()).map_err(failed("the layer"))?;
    if is_gzipped && 0 < behind {
        return Err(ImageError::damaged("the layer", format!("{behind} bytes behind its end")));
    }
    let (_, digest, size) = stored.finish();
    Ok(Packed { digest, size, diff_id })
}

fn unpack_plain(plain: &mut dyn Read, taker: &mut dyn Taker) -> Result<Digest, ImageError> {
    let mut plain = Counted::new(plain.take(LAYER_BYTES_MAX));
    let mut archive = tar::Archive::new(&mut plain);
    let entries = archive.entries().map_err(failed("the layer"))?;
    for (count, entry) in entries.enumerate() {
        if LAYER_FILES_MAX <= count {
            return Err(ImageError::damaged("the layer", format!("more than {LAYER_FILES_MAX} files")));
        }
        let mut entry = entry.map_err(failed("the layer"))?;
        let path = entry.path_bytes().into_owned();
        let path = String::from_utf8_lossy(&path).trim_end_matches('/').trim_start_matches("./").to_string();
        if path == "." || path.is_empty() {
            continue;
        }
        if !is_inside(&path) {
            return Err(ImageError::damaged("the layer", format!("{path:?} leads out of the image")));
        }
        let mode = entry.header().mode().map_err(failed(&path))?;
        let taken = match entry.header().entry_type() {
            tar::EntryType::Directory => taker.folder(&path),
            tar::EntryType::Regular | tar::EntryType::Continuous => taker.file(&path, mode, &mut entry),
            tar::EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                taker.link(&path, &String::from_utf8_lossy(&target))
            }
            other => Err(format!("an entry of kind {other:?}, which no image of ours has")),
        };
        taken.map_err(|reason| ImageError::damaged(path, reason))?;
    }
    std::io::copy(&mut plain, &mut std::io::sink()).map_err(failed("the layer"))?;
    Ok(plain.finish().1)
}
