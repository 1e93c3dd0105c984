//! The way to a bus for workers in other processes: a Unix socket that passes the mapping of one kind.
//!
//! The socket's file is for its owner only, and whoever connects must have the owner's user number. A worker says its kind and
//! version in one line of JSON and gets one line back, with the mapping's file beside it and what it needs to know of the
//! catalog. A worker may then say what it is held to; the connection stays open while it lives. Clause: TOOL-3; decisions D-28,
//! D-203.

use crate::catalog_file::{CatalogFile, Found};
use crate::mapping::Shared;
use anyhow::{Context, Result, anyhow, bail};
use bem_base::ids::ObjectId;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest line.
const LINE_MAX: u64 = 4 << 20;
/// The longest report of a worker.
const REPORT_MAX: u64 = 4_096;
/// How long a worker may take to introduce itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a worker says first.
#[derive(Serialize, Deserialize)]
struct Hello {
    kind: String,
    version: String,
}

/// What it is answered.
#[derive(Serialize, Deserialize)]
struct Welcome {
    ok: bool,
    #[serde(default)]
    error: String,
    #[serde(default)]
    worker: u32,
    #[serde(default)]
    operations: BTreeMap<String, u16>,
    #[serde(default)]
    catalog: String,
    #[serde(default)]
    base: PathBuf,
    #[serde(default)]
    found: Vec<Found>,
}

/// What a worker says about itself when it begins.
#[derive(Serialize, Deserialize)]
struct Report {
    sandbox: String,
}

/// A worker in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Its kind.
    pub kind: ObjectId,
    /// What it says that it is held to; nothing where it says nothing.
    pub sandbox: Option<String>,
}

/// Workers in other processes, by number.
#[derive(Debug, Default)]
pub struct Workers(Mutex<BTreeMap<u32, Connected>>);

impl Workers {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Connected>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everybody who is connected now.
    pub fn list(&self) -> Vec<(u32, Connected)> {
        self.all().iter().map(|(number, worker)| (*number, worker.clone())).collect()
    }
}

/// What the socket gives away.
pub struct Offer {
    /// The catalog.
    pub catalog: Arc<CatalogFile>,
    /// The mappings by kind.
    pub mappings: BTreeMap<ObjectId, Arc<Shared>>,
    /// The next worker's number.
    pub next: AtomicU32,
    /// Workers that are connected.
    pub connected: Arc<Workers>,
}

/// Listens on a new socket; a file that is left from before is removed.
pub fn listen(path: &Path) -> Result<UnixListener> {
    let named = || format!("the socket {}", path.display());
    if path.exists() {
        if UnixStream::connect(path).is_ok() {
            bail!("{} is in use", named());
        }
        std::fs::remove_file(path).with_context(named)?;
    }
    // Nobody else may connect between the two calls: the file is made in a folder of the owner's.
    let listener = UnixListener::bind(path).with_context(named)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).with_context(named)?;
    Ok(listener)
}

/// Answers workers until it is asked to stop.
pub fn serve(listener: &UnixListener, offer: &Arc<Offer>, is_over: &AtomicBool) {
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    while !is_over.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let offer = Arc::clone(offer);
        std::thread::spawn(move || {
            let _ = welcome(&stream, &offer);
        });
    }
}

fn welcome(stream: &UnixStream, offer: &Offer) -> Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid != rustix::process::getuid() {
        bail!("another user's worker");
    }
    let refuse = |reason: String| -> Result<()> {
        let line = format!("{}\n", json!({ "ok": false, "error": reason }));
        (&mut &*stream).write_all(line.as_bytes())?;
        Ok(())
    };
    let mut line = String::new();
    BufReader::new(stream.take(4_096)).read_line(&mut line)?;
    let Ok(hello) = serde_json::from_str::<Hello>(&line) else {
        return refuse("say {\"kind\":\"KIND\",\"version\":\"0.0.1\"} first".to_string());
    };
    if hello.version != bem_tools::VERSION_TEXT {
        return refuse(format!("version {:?} is not served: {} is", hello.version, bem_tools::VERSION_TEXT));
    }
    let catalog = &offer.catalog;
    let kind = catalog.catalog.find(&hello.kind).and_then(|kind| Some((kind, offer.mappings.get(&kind)?)));
    let Some((kind, mapping)) = kind else {
        let known: Vec<&str> =
            offer.mappings.keys().filter_map(|kind| catalog.catalog.name_of(*kind)).collect();
        return refuse(format!("kind {:?} is unknown: known are {}", hello.kind, known.join(", ")));
    };
    let (operations, number) =
        (catalog.catalog.custom_operations(kind).iter(), offer.next.fetch_add(1, Ordering::Relaxed));
    let answer = Welcome {
        ok: true,
        error: String::new(),
        worker: number,
        operations: operations.map(|operation| (operation.name.clone(), operation.code)).collect(),
        catalog: catalog.text.clone(),
        base: catalog.base.clone(),
        found: catalog.found.clone(),
    };
    let line = format!("{}\n", serde_json::to_string(&answer)?);
    let files = [mapping.file()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let sent =
        rustix::net::sendmsg(stream, &[IoSlice::new(line.as_bytes())], &mut control, SendFlags::NOSIGNAL)?;
    (&mut &*stream).write_all(&line.as_bytes()[sent..])?;
    // It lives as long as the connection.
    offer.connected.all().insert(number, Connected { kind, sandbox: None });
    // Whatever goes wrong from here on, it is gone afterwards.
    let _ = stream.set_read_timeout(None);
    let mut line = String::new();
    let said = BufReader::new(stream.take(REPORT_MAX)).read_line(&mut line);
    if let (Ok(_), Ok(report)) = (said, serde_json::from_str::<Report>(&line))
        && let Some(worker) = offer.connected.all().get_mut(&number)
    {
        worker.sandbox = Some(report.sandbox);
    }
    let mut rest = [0; 64];
    while matches!((&mut &*stream).read(&mut rest), Ok(count) if 0 < count) {}
    offer.connected.all().remove(&number);
    Ok(())
}

/// A worker says what it is held to.
pub fn report(stream: &UnixStream, sandbox: &str) -> Result<()> {
    let line = serde_json::to_string(&Report { sandbox: sandbox.to_string() })?;
    (&mut &*stream).write_all(format!("{line}\n").as_bytes()).context("the bus has closed the connection")
}

/// What a worker in another process has been given.
pub struct Joined {
    /// The mapping.
    pub mapping: Arc<Shared>,
    /// Its number.
    pub worker: u32,
    /// The catalog.
    pub catalog: Arc<CatalogFile>,
    /// The connection; when it closes, the bus is gone.
    pub stream: UnixStream,
}

/// Joins a bus as a worker of this kind.
pub fn join(path: &Path, kind: &str) -> Result<Joined> {
    let stream = UnixStream::connect(path).with_context(|| format!("the bus {}", path.display()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let hello = Hello { kind: kind.to_string(), version: bem_tools::VERSION_TEXT.to_string() };
    (&mut &stream).write_all(format!("{}\n", serde_json::to_string(&hello)?).as_bytes())?;
    let mut bytes = Vec::new();
    let mut file = None;
    while !bytes.ends_with(b"\n") {
        let mut part = [0; 65_536];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            stream.as_fd(),
            &mut [IoSliceMut::new(&mut part)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
        .context("the bus does not answer")?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                file = files.into_iter().next().or(file);
            }
        }
        if received.bytes == 0 || LINE_MAX < bytes.len() as u64 {
            bail!("the bus has closed the connection");
        }
        bytes.extend_from_slice(&part[..received.bytes]);
    }
    let welcome: Welcome = serde_json::from_slice(&bytes).context("the bus answers something else")?;
    if !welcome.ok {
        bail!("the bus refuses: {}", welcome.error);
    }
    let mapping = Shared::open(file.ok_or_else(|| anyhow!("the bus has passed no mapping"))?)?;
    let catalog =
        CatalogFile::parse("the catalog of the bus", welcome.catalog, welcome.base, Some(welcome.found))?;
    stream.set_read_timeout(None)?;
    Ok(Joined { mapping: Arc::new(mapping), worker: welcome.worker, catalog: Arc::new(catalog), stream })
}

/// Whether the other side of a connection is gone.
pub fn is_closed(stream: &UnixStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let read = (&mut &*stream).read(&mut [0; 16]);
    matches!(read, Ok(0)) || matches!(read, Err(error) if error.kind() != std::io::ErrorKind::WouldBlock)
}
