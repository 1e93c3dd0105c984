//! The base image: the running program without its debug tables, the libraries that it has mapped, a default configuration and
//! licences.
//!
//! A program that is linked statically needs no libraries and gets none; one that is not brings those that the system gave it, at
//! the places where it found them. Clause: IMG-1; decision D-85.

use anyhow::{Context, Result, bail};
use bem_image::image::{CONFIG_PATH, KEYS_PATH, LOG_PATH, OWNER, STATE_PATH};
use bem_image::layer::{Content, LayerFile, LayerFiles};
use bem_image::model::RunConfig;
use bem_machine::config::GenesisConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const LICENCE: &str = include_str!("../../../../LICENSE");
/// Crates that are linked in; every one of them is in the lock file with its version.
const LOCK: &str = include_str!("../../../../Cargo.lock");
/// The largest program header that is looked at.
const HEADERS_MAX: usize = 256;

/// What a base image is made of.
pub struct Base {
    /// The layers: libraries if there are any, then the program.
    pub layers: Vec<LayerFiles<'static>>,
    /// Libraries that were brought along; none for a program that is linked statically.
    pub libraries: Vec<PathBuf>,
}

fn file(mode: u32, bytes: Vec<u8>) -> LayerFile<'static> {
    LayerFile { mode, owner: 0, content: Content::Bytes(bytes) }
}

/// Packs the running program.
pub fn of_this_program() -> Result<Base> {
    let path = std::fs::read_link("/proc/self/exe").context("the running program is not known")?;
    let bytes = std::fs::read("/proc/self/exe").with_context(|| path.display().to_string())?;
    let program = without_tables(&bytes).with_context(|| path.display().to_string())?;
    let libraries = mapped_libraries(&path)?;
    let mut layers = Vec::new();
    if !libraries.is_empty() {
        layers.push(library_layer(&libraries)?);
    }
    layers.push(program_layer(program));
    Ok(Base { layers, libraries })
}

/// How an image is started: as nobody in particular, with what belongs to no image as volumes.
pub fn run_config() -> RunConfig {
    let volumes = [format!("/{KEYS_PATH}"), format!("/{LOG_PATH}")];
    RunConfig {
        user: format!("{OWNER}:{OWNER}"),
        env: vec![
            "PATH=/usr/bin:/bin".to_string(),
            format!("XDG_STATE_HOME=/{KEYS_PATH}"),
            "HOME=/tmp".to_string(),
        ],
        cmd: vec!["bem-engine".to_string(), "--resume".to_string()],
        working_dir: format!("/{STATE_PATH}"),
        volumes: volumes.into_iter().map(|path| (path, Default::default())).collect::<BTreeMap<_, _>>(),
        stop_signal: "SIGTERM".to_string(),
        labels: BTreeMap::new(),
    }
}

/// The processor as OCI names it.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

fn program_layer(program: Vec<u8>) -> LayerFiles<'static> {
    let own = |mode: u32| LayerFile { mode, owner: OWNER, content: Content::Folder };
    let link = |target: &str| LayerFile { mode: 0o777, owner: 0, content: Content::Link(target.to_string()) };
    let passwd =
        format!("root:x:0:0:root:/:/sbin/nologin\nbem:x:{OWNER}:{OWNER}:BEM:/{STATE_PATH}:/sbin/nologin\n");
    let defaults = GenesisConfig::default().to_toml();
    let mut files = LayerFiles::from([
        ("usr/bin/bem".to_string(), file(0o755, program)),
        ("usr/bin/bem-engine".to_string(), link("bem")),
        (STATE_PATH.to_string(), own(0o700)),
        (LOG_PATH.to_string(), own(0o750)),
        (KEYS_PATH.to_string(), own(0o700)),
        ("tmp".to_string(), LayerFile { mode: 0o1777, owner: 0, content: Content::Folder }),
        (format!("{CONFIG_PATH}/config.toml"), file(0o644, defaults.into_bytes())),
        ("etc/passwd".to_string(), file(0o644, passwd.into_bytes())),
        ("etc/group".to_string(), file(0o644, format!("root:x:0:\nbem:x:{OWNER}:\n").into_bytes())),
        ("etc/hosts".to_string(), file(0o644, b"127.0.0.1 localhost\n::1 localhost\n".to_vec())),
        (
            "etc/nsswitch.conf".to_string(),
            file(0o644, b"passwd: files\ngroup: files\nhosts: files dns\n".to_vec()),
        ),
    ]);
    let notices = "usr/share/doc/bem";
    files.insert(format!("{notices}/LICENSE"), file(0o644, LICENCE.as_bytes().to_vec()));
    files.insert(format!("{notices}/Cargo.lock"), file(0o644, LOCK.as_bytes().to_vec()));
    files
}

fn library_layer(libraries: &[PathBuf]) -> Result<LayerFiles<'static>> {
    let mut files = LayerFiles::new();
    for path in libraries {
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        let inside = path.strip_prefix("/").unwrap_or(path).display().to_string();
        files.insert(inside, file(0o755, bytes));
    }
    Ok(files)
}

/// Shared libraries that this process has mapped, the loader included, under the names that the loader asks for.
fn mapped_libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let maps = std::fs::read_to_string("/proc/self/maps").context("/proc/self/maps")?;
    let mut names = BTreeSet::new();
    for line in maps.lines() {
        let Some(path) = line.split_whitespace().nth(5).filter(|path| path.starts_with('/')) else {
            continue;
        };
        let path = PathBuf::from(path);
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // The loader is asked for by its full path, which the program names.
        if path != program && name.contains(".so") && !name.starts_with("ld-") {
            names.insert(path);
        }
    }
    // A library is mapped under its real name and asked for under its short one: `libm.so.6`, `/lib64/ld-linux-x86-64.so.2`.
    let mut found = BTreeSet::new();
    for path in names {
        found.insert(asked_for(&path));
    }
    if let Some(loader) = interpreter(&std::fs::read("/proc/self/exe").context("the running program")?) {
        found.insert(PathBuf::from(loader));
    }
    Ok(found.into_iter().collect())
}

/// The name in the same folder that ends in one number, if there is such a link: what programs name.
fn asked_for(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Some((stem, numbers)) = name.split_once(".so.") else { return path.to_path_buf() };
    let major = numbers.split('.').next().unwrap_or_default();
    let short = path.with_file_name(format!("{stem}.so.{major}"));
    if short.exists() { short } else { path.to_path_buf() }
}

fn number(bytes: &[u8], at: usize, count: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(count)?)?;
    Some(part.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

/// Program headers of a 64-bit little-endian ELF file: kind, offset, bytes in the file.
fn headers(bytes: &[u8]) -> Option<Vec<(u64, u64, u64)>> {
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (offset, count) = (number(bytes, 32, 8)?, number(bytes, 56, 2)?);
    if HEADERS_MAX < count as usize {
        return None;
    }
    let header = |place: u64| {
        let at = usize::try_from(offset + place * 56).ok()?;
        Some((number(bytes, at, 4)?, number(bytes, at + 8, 8)?, number(bytes, at + 32, 8)?))
    };
    (0..count).map(header).collect()
}

/// The program without what is never loaded: tables of symbols and lines, which are most of the file.
fn without_tables(bytes: &[u8]) -> Result<Vec<u8>> {
    const LOAD: u64 = 1;
    let Some(headers) = headers(bytes) else { bail!("not a 64-bit ELF program") };
    let end = headers.iter().filter(|(kind, ..)| *kind == LOAD).map(|(_, offset, size)| offset + size).max();
    let end = end.and_then(|end| usize::try_from(end).ok()).filter(|end| 64 <= *end && *end <= bytes.len());
    let mut program = bytes[..end.context("no part of the program is loaded")?].to_vec();
    // Without the table of sections nothing points behind the end.
    program[40..48].fill(0);
    program[60..64].fill(0);
    Ok(program)
}

/// The loader that a program asks for.
fn interpreter(bytes: &[u8]) -> Option<String> {
    const INTERPRETER: u64 = 3;
    let (_, offset, size) = headers(bytes)?.into_iter().find(|(kind, ..)| *kind == INTERPRETER)?;
    let (start, end) = (usize::try_from(offset).ok()?, usize::try_from(offset + size).ok()?);
    let text = core::str::from_utf8(bytes.get(start..end)?).ok()?;
    Some(text.trim_end_matches('\0').to_string())
}
