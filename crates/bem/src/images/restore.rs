//! From an image to a state folder that goes on: with its key as the same history, without it as a new one that names the old head.
//!
//! Everything is checked before anything is believed: digests of all layers, promotion and signatures, the format, the whole
//! history in it, and those of the pipeline beside it. The folder is made beside its place and renamed when it is whole. Clauses: IMG-4, LOG-4; decisions D-86, D-87.

use super::registry::{Source, fetch, open_archive};
use super::state::audit_ledger;
use super::{beside, format, migrate, open_layout, serials, stable_tag};
use crate::cli::run::history::{History, whole_units};
use crate::cli::serve::{is_service, public_key};
use crate::cli::snapshot::newest_climb;
use crate::file_store::FileStore;
use crate::pipeline_beside::FOLDER;
use crate::{kept_world, keys};
use anyhow::{Context, Result, bail};
use bem_base::digest::Digest;
use bem_image::image::{Facts, STATE_PATH, find_whole};
use bem_image::layer::{Nothing, Taker};
use bem_image::layout::{Found, spell};
use bem_image::statement::{check_promoted, promotions, signatures};
use bem_ledger::audit::AuditVerdict;
use bem_ledger::log::LogOptions;
use bem_ledger::whole::read_whole;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How an image is restored.
pub struct Restoring<'r> {
    /// Where it comes from.
    pub source: Source,
    /// The folder to be made.
    pub out: &'r Path,
    /// The key of its history.
    pub key: Option<&'r Path>,
    /// The public key that must have signed or promoted it.
    pub signer: Option<Digest>,
    /// The registry is asked without TLS.
    pub plain_http: bool,
}

/// What was restored.
pub struct Restored {
    /// The image.
    pub digest: Digest,
    /// What it says.
    pub facts: Facts,
    /// The head of the history that goes on.
    pub head: Digest,
    /// The head of the old history, where a new one was begun.
    pub origin: Option<Digest>,
    /// Keys that signed or promoted it.
    pub signers: Vec<String>,
}

/// A folder that is removed unless it is kept.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Restores an image.
pub fn restore(restoring: &Restoring<'_>) -> Result<Restored> {
    let out = restoring.out;
    if out.exists() {
        bail!("{} is there already: name another folder with --out", out.display());
    }
    let name = out.file_name().with_context(|| format!("{} is no folder to be made", out.display()))?;
    let beside = out.with_file_name(format!(".{}.restoring", name.to_string_lossy()));
    let _ = std::fs::remove_dir_all(&beside);
    std::fs::create_dir_all(&beside).with_context(|| beside.display().to_string())?;
    let beside = Beside(beside);
    let (folder, reference) = bring(restoring, &beside.0)?;
    let mut layout = open_layout(&folder)?;
    let (entry, found, facts) = find_whole(&mut layout, &reference)?;
    format::check(facts.format, &reference)?;
    let is_stable = entry.tag() == Some(&stable_tag()) || reference.ends_with(":stable");
    let signers = check_statements(&mut layout, restoring, &found, is_stable)?;
    let part = beside.0.join("state");
    let mut taker = FolderTaker { root: part.clone() };
    let last = found.manifest.layers.len().checked_sub(1).context("an image without layers")?;
    for place in 0..last {
        layout.unpack_layer(&found, place, &mut Nothing)?;
    }
    layout.unpack_layer(&found, last, &mut taker)?;
    check_history(&part, &facts)?;
    let (head, origin) = match restoring.key {
        Some(key) => {
            let ledger = part.join("ledger");
            let mut store = FileStore::open(&ledger)?;
            keys::for_known_run(Some(key), &part, &public_key(&mut store)?)?;
            beside::check_key(&part, key)?;
            (facts.signed()?.checkpoint.head.digest(), None)
        }
        None => {
            let old = part.clone();
            let new = beside.0.join("continued");
            let head = continue_without_key(&old, &new).with_context(|| {
                format!(
                    "{reference} cannot go on under a new key; if an older learner wrote it, restore it with --key and then \
                     bem image migrate --state {}",
                    out.display()
                )
            })?;
            std::fs::remove_dir_all(&old)?;
            std::fs::rename(&new, &old)?;
            (head, Some(facts.signed()?.checkpoint.head.digest()))
        }
    };
    sync_all(&part)?;
    std::fs::rename(&part, out).with_context(|| out.display().to_string())?;
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(parent)
        .and_then(|parent| parent.sync_all())
        .with_context(|| parent.display().to_string())?;
    Ok(Restored { digest: found.digest, facts, head, origin, signers })
}

/// The layout in which the image lies, and its name there.
fn bring(restoring: &Restoring<'_>, beside: &Path) -> Result<(PathBuf, String)> {
    match &restoring.source {
        Source::Layout(folder, reference) => Ok((folder.clone(), reference.clone())),
        Source::Archive(path) => open_archive(path, beside),
        Source::Registry(reference) => {
            let folder = beside.join("fetched");
            let tag = fetch(reference, restoring.plain_http, &folder)?;
            fetch_statements(reference, restoring.plain_http, &folder, &tag)?;
            Ok((folder, tag))
        }
    }
}

/// Brings signatures and promotions of an image along, where the registry has them.
pub fn fetch_statements(reference: &str, plain_http: bool, folder: &Path, tag: &str) -> Result<()> {
    let digest = open_layout(folder)?.resolve(tag)?.digest.clone();
    let name =
        reference.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).map_or(reference, |(name, _)| name);
    let digest = bem_image::layout::read_digest(&digest).context("no digest of SHA-256")?;
    let signature = bem_image::statement::signature_tag(&digest);
    for wanted in [signature, "promotion".to_string()] {
        let to = format!(
            "oci:{}:{}",
            folder.display(),
            if wanted == "promotion" { "promotion-0" } else { &wanted }
        );
        // An image that nobody signed has no such tag; that it needs one is for the caller to say.
        let _ = super::registry::copy(&format!("{name}:{wanted}"), &to, plain_http, "src");
    }
    Ok(())
}

/// Promotion and signatures; the keys behind them.
fn check_statements(
    layout: &mut bem_image::layout::Layout<FileStore>,
    restoring: &Restoring<'_>,
    found: &Found,
    is_stable: bool,
) -> Result<Vec<String>> {
    let about = spell(&found.digest);
    let mut signers: Vec<String> = Vec::new();
    if is_stable {
        let promoted = check_promoted(layout, &stable_tag(), &found.digest, |key| {
            serials::seen(key).unwrap_or(u64::MAX)
        })?;
        serials::remember(&promoted.key, promoted.serial.unwrap_or(0))?;
    }
    let all = promotions(layout)?.into_iter().chain(signatures(layout)?);
    signers.extend(all.filter(|statement| statement.digest == about).map(|statement| statement.key));
    signers.sort();
    signers.dedup();
    if let Some(wanted) = restoring.signer
        && !signers.contains(&wanted.to_hex())
    {
        bail!("{about} is not signed by {wanted}: --signer wants that");
    }
    Ok(signers)
}

/// Writes what a state layer holds below `/var/lib/bem`; the rest is left out.
struct FolderTaker {
    root: PathBuf,
}

impl FolderTaker {
    fn place(&self, path: &str) -> Option<PathBuf> {
        match path.strip_prefix(STATE_PATH)? {
            "" => Some(self.root.clone()),
            rest => Some(self.root.join(rest.strip_prefix('/')?)),
        }
    }
}

impl Taker for FolderTaker {
    fn folder(&mut self, path: &str) -> Result<(), String> {
        match self.place(path) {
            Some(place) => std::fs::create_dir_all(place).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    fn file(&mut self, path: &str, _: u32, content: &mut dyn Read) -> Result<(), String> {
        let Some(place) = self.place(path) else {
            return std::io::copy(content, &mut std::io::sink()).map(drop).map_err(|error| error.to_string());
        };
        let mut write = || -> std::io::Result<()> {
            if let Some(above) = place.parent() {
                std::fs::create_dir_all(above)?;
            }
            std::io::copy(content, &mut std::fs::File::create(&place)?).map(drop)
        };
        write().map_err(|error| error.to_string())
    }

    fn link(&mut self, path: &str, _: &str) -> Result<(), String> {
        match self.place(path) {
            Some(_) => Err("a link among the state".to_string()),
            None => Ok(()),
        }
    }
}

/// The unpacked history must be the one that the manifest names, and must stand up to an audit.
fn check_history(part: &Path, facts: &Facts) -> Result<()> {
    let ledger = part.join("ledger");
    let checkpoint = std::fs::read(ledger.join("checkpoint")).context("the image holds no ledger")?;
    if checkpoint != facts.checkpoint.as_bytes() {
        bail!("the ledger in the image does not end where the manifest says");
    }
    let version = format::read(part)?;
    if version != facts.format {
        bail!("the state has format {version}, and the manifest says {}", facts.format);
    }
    let mut store = FileStore::open(&ledger)?;
    if let AuditVerdict::Broken { entry, reason } = audit_ledger(&mut store)?.verdict {
        bail!("the history in the image is broken at entry {entry}: {reason}");
    }
    beside::check(part).context("the pipeline in the image")
}

/// An image's state beside its layout, for as long as it is looked at.
fn unpacked(layout: &mut bem_image::layout::Layout<FileStore>, found: &Found) -> Result<Beside> {
    let beside = Beside(layout.store_mut().directory().join(".audit"));
    let _ = std::fs::remove_dir_all(&beside.0);
    let last = found.manifest.layers.len().checked_sub(1).context("an image without layers")?;
    layout.unpack_layer(found, last, &mut FolderTaker { root: beside.0.clone() })?;
    Ok(beside)
}

/// Unpacks an image's state, audits its history and removes it again.
pub fn audit_image(
    layout: &mut bem_image::layout::Layout<FileStore>,
    found: &Found,
    facts: &Facts,
) -> Result<()> {
    format::check(facts.format, &spell(&found.digest))?;
    check_history(&unpacked(layout, found)?.0, facts)
}

/// Unpacks an image's state, reads every entry and everything that lies beside them, and removes it again. What entries mean is for
/// the audit.
pub fn read_back(
    layout: &mut bem_image::layout::Layout<FileStore>,
    found: &Found,
    facts: &Facts,
) -> Result<()> {
    let state = unpacked(layout, found)?;
    let ledger = state.0.join("ledger");
    let signed = read_whole(&mut FileStore::open(&ledger)?).context("the state is not whole")?;
    beside::read_back(&state.0).context("the pipeline beside the state")?;
    match signed.to_text() == facts.checkpoint {
        true => Ok(()),
        false => bail!("the ledger in the image does not end where the manifest says"),
    }
}

/// Begins a new history in `new` that goes on from the one in `old` and names its head; the head of the new one.
pub fn continue_without_key(old: &Path, new: &Path) -> Result<Digest> {
    let ledger = old.join("ledger");
    let mut store = FileStore::open(&ledger).with_context(|| ledger.display().to_string())?;
    let code = env!("CARGO_PKG_VERSION");
    std::fs::create_dir_all(new)?;
    let head = if is_service(&mut store) {
        let signer = keys::for_new_run(None, new)?;
        let target = FileStore::open_locked(&new.join("ledger"))?;
        let opened =
            bem_runtime::history::continued(&mut store, target, signer, code, LogOptions::default())?;
        opened.log.head().digest()
    } else {
        let (climb, snapshot) = newest_climb(old)?;
        let files = kept_world::kept_files(old, climb.files())?;
        let origin = Some(bem_ledger::recover::read_checkpoint(&mut store)?.checkpoint.head.digest());
        let mut history = History::create_with(new, &climb, &files, None, origin, LogOptions::default())?;
        history.save(&climb, whole_units(&mut store, &snapshot)?)?
    };
    migrate::raise(new)?;
    let (files, machines) = beside::parts(old);
    for machine in machines {
        continue_without_key(&old.join(&machine), &new.join(&machine)).with_context(|| machine.clone())?;
    }
    for file in files {
        std::fs::create_dir_all(new.join(FOLDER))?;
        std::fs::copy(old.join(&file), new.join(&file)).with_context(|| file.clone())?;
    }
    Ok(head)
}

/// Goes on with a state where it lies: with its key as it is, without it as a new history that names the old head, which is
/// returned with the new one. The old ledger is kept beside as `ledger-origin`. Cut off anywhere, the next call goes on.
pub fn resume_in_place(state: &Path, key: Option<&Path>) -> Result<Option<(Digest, Digest)>> {
    migrate::settle(state)?;
    for machine in beside::parts(state).1 {
        resume_in_place(&state.join(machine), key)?;
    }
    let (ledger, new) = (state.join("ledger"), state.join("restored.tmp"));
    if ledger.is_dir() {
        let mut store = FileStore::open(&ledger)?;
        let signer = public_key(&mut store).and_then(|known| keys::for_known_run(key, state, &known));
        if signer.is_ok() || key.is_some() {
            return signer.map(|_| None);
        }
        let _ = std::fs::remove_dir_all(&new);
        format::check(format::read(state)?, &state.display().to_string())?;
        continue_without_key(state, &new)?;
        sync_all(&new)?;
        let _ = std::fs::remove_dir_all(state.join("ledger-origin"));
        std::fs::rename(&ledger, state.join("ledger-origin"))?;
    }
    for name in ["inbox-0", "inbox-1"] {
        // What was acknowledged and is in no image belongs to the old history.
        let _ = std::fs::remove_file(state.join(name));
    }
    if new.join("key-salt").exists() {
        std::fs::rename(new.join("key-salt"), state.join("key-salt"))?;
    }
    std::fs::rename(new.join("ledger"), &ledger).context("the restored history is not whole")?;
    let _ = std::fs::remove_dir_all(&new);
    migrate::raise(state)?;
    let mut store = FileStore::open(&ledger)?;
    let origin = super::state::origin_of(&mut store)?.context("the restored history names no origin")?;
    Ok(Some((origin, bem_ledger::recover::read_checkpoint(&mut store)?.checkpoint.head.digest())))
}

/// Makes a folder and everything in it durable.
fn sync_all(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => sync_all(&path)?,
            false => std::fs::File::open(&path)?.sync_all()?,
        }
    }
    Ok(std::fs::File::open(folder)?.sync_all()?)
}
