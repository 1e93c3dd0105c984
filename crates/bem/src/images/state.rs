//! What of a state folder goes into an image: the acknowledged ledger, the salt of its key, files that the history names, its
//! configuration, and the pipeline beside it. Everything else stays out: keys, tokens, inboxes, metrics, logs, what tools and people brought as files.
//!
//! The folder may be served meanwhile: what is read is the ledger up to one signed checkpoint. Clauses: IMG-2, IMG-6; decision D-85.

use super::beside::PipelineView;
use super::secrets::Secrets;
use super::{format, migrate};
use crate::cli::serve::is_service;
use crate::file_store::FileStore;
use anyhow::{Context, Result, bail};
use bem_base::digest::{Digest, hash};
use bem_engine::journal::RunConditions;
use bem_image::image::{CONFIG_PATH, Facts, OWNER, STATE_PATH};
use bem_image::layer::{Content, LayerFile, LayerFiles};
use bem_ledger::audit::{AuditReport, AuditVerdict, audit};
use bem_ledger::entry::{Entry, event_code};
use bem_ledger::log::CHECKPOINT_NAME;
use bem_ledger::reader::EntryReader;
use bem_ledger::recover::read_checkpoint;
use bem_ledger::store::Store;
use bem_ledger::view::{Committed, committed};
use bem_runtime::conditions::ServiceConditions;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Entries at the start of a history among which it says where it was restored from.
const ORIGIN_WITHIN: u64 = 8;

/// A state folder at one signed checkpoint.
pub struct StateView {
    state: PathBuf,
    ledger: PathBuf,
    committed: Committed,
    is_service: bool,
    config: Option<String>,
    artefacts: Vec<(String, Vec<u8>)>,
    origin: Option<Digest>,
    version: u32,
    pipeline: Option<PipelineView>,
}

/// The history that this one was restored from without a key, if it was.
pub fn origin_of<S: Store>(store: &mut S) -> Result<Option<Digest>> {
    let mut reader = EntryReader::open(store)?;
    while reader.position() < ORIGIN_WITHIN {
        let Some(bytes) = reader.next(store)? else { break };
        if let Ok(Entry::Event { code: event_code::RESTORED, payload, .. }) = Entry::from_bytes(bytes) {
            let text = String::from_utf8_lossy(&payload).into_owned();
            let named = text.split_once("history ").and_then(|(_, head)| head.get(..64));
            return Ok(named.and_then(Digest::from_hex));
        }
    }
    Ok(None)
}

/// Audits a ledger by what its kind of history means. While it is written, a file may go between two looks: what is broken is
/// looked at again if the history has gone on meanwhile.
pub fn audit_ledger(store: &mut FileStore) -> Result<AuditReport> {
    loop {
        let before = read_checkpoint(store)?.checkpoint.size;
        let report = match is_service(store) {
            true => audit(store, None, &mut ServiceConditions::new())?,
            false => audit(store, None, &mut RunConditions::new())?,
        };
        let is_broken = matches!(report.verdict, AuditVerdict::Broken { .. });
        if !is_broken || read_checkpoint(store)?.checkpoint.size == before {
            return Ok(report);
        }
    }
}

impl StateView {
    /// Looks at a folder; with `is_audited` the whole history is audited first.
    pub fn read(state: &Path, is_audited: bool) -> Result<StateView> {
        migrate::refuse_unsettled(state)?;
        let ledger = state.join("ledger");
        if !ledger.join(CHECKPOINT_NAME).exists() {
            bail!("{} holds no state: there is no ledger/checkpoint in it", state.display());
        }
        let version = format::read(state)?;
        format::check(version, &state.display().to_string())?;
        let mut store = FileStore::open(&ledger).with_context(|| ledger.display().to_string())?;
        let is_service = is_service(&mut store);
        let mut artefacts = Vec::new();
        if is_audited || !is_service {
            let report = audit_ledger(&mut store)?;
            if let AuditVerdict::Broken { entry, reason } = &report.verdict {
                bail!("{} is broken at entry {entry}: {reason}; no image is made of it", state.display());
            }
            artefacts = named_files(state, &report)?;
        }
        let committed = committed(&mut store)?;
        let config = match is_service {
            true => Some(bem_runtime::history::configuration(&mut store)?.parameters.to_toml()),
            false => None,
        };
        let origin = origin_of(&mut store)?;
        let pipeline = PipelineView::read(state, is_audited)?;
        Ok(StateView {
            state: state.to_path_buf(),
            ledger,
            committed,
            is_service,
            config,
            artefacts,
            origin,
            version,
            pipeline,
        })
    }

    /// Whether it is a server's.
    pub fn is_service(&self) -> bool {
        self.is_service
    }

    /// What the image says of it.
    pub fn facts(&self, gate: &str) -> Facts {
        Facts {
            kind: if self.is_service { "service" } else { "run" }.to_string(),
            format: self.version,
            code: env!("CARGO_PKG_VERSION").to_string(),
            gate: gate.to_string(),
            checkpoint: self.committed.signed.to_text(),
            origin: self.origin,
        }
    }

    /// The files of the layer. A secret among them ends the packing.
    pub fn files<'v>(&'v self, secrets: &'v Secrets) -> Result<LayerFiles<'v>> {
        let mut files = LayerFiles::new();
        let own = |mode: u32, content: Content<'v>| LayerFile { mode, owner: OWNER, content };
        let bytes = |bytes: Vec<u8>| -> Result<Content<'v>> {
            match secrets.find(&bytes) {
                Some(name) => bail!("the state holds the secret of {name}, which no image may have"),
                None => Ok(Content::Bytes(bytes)),
            }
        };
        for folder in [STATE_PATH.to_string(), format!("{STATE_PATH}/ledger")] {
            files.insert(folder, own(0o700, Content::Folder));
        }
        let checkpoint = self.committed.signed.to_text().into_bytes();
        files.insert(format!("{STATE_PATH}/ledger/{CHECKPOINT_NAME}"), own(0o600, bytes(checkpoint)?));
        for (name, length) in &self.committed.files {
            let file = File::open(self.ledger.join(name)).with_context(|| name.clone())?;
            let content = Content::Stream(*length, Box::new(secrets.watch(file)));
            files.insert(format!("{STATE_PATH}/ledger/{name}"), own(0o600, content));
        }
        if 1 < self.version {
            files.insert(
                format!("{STATE_PATH}/{}", format::NAME),
                own(0o600, bytes(format::text(self.version).into_bytes())?),
            );
        }
        if let Ok(salt) = std::fs::read(self.state.join("key-salt")) {
            files.insert(format!("{STATE_PATH}/key-salt"), own(0o600, bytes(salt)?));
        }
        for (name, content) in &self.artefacts {
            files.insert(format!("{STATE_PATH}/{name}"), own(0o600, bytes(content.clone())?));
        }
        if let Some(pipeline) = &self.pipeline {
            pipeline.add(&mut files, secrets)?;
        }
        if let Some(config) = &self.config {
            files.insert(
                format!("{CONFIG_PATH}/config.toml"),
                own(0o644, bytes(config.clone().into_bytes())?),
            );
        }
        Ok(files)
    }

    /// Whether this history goes on from one with this checkpoint: false where the two have parted.
    pub fn extends(&self, facts: &Facts) -> Result<bool> {
        let theirs = facts.signed()?.checkpoint;
        let ours = self.committed.signed.checkpoint;
        if ours.instance != theirs.instance || ours.size < theirs.size {
            return Ok(true);
        }
        let mut store = FileStore::open(&self.ledger)?;
        Ok(head_at(&mut store, theirs.size)?.is_none_or(|head| head == theirs.head.digest()))
    }
}

/// The chain head after so many entries; nothing where those entries are archived.
fn head_at(store: &mut FileStore, size: u64) -> Result<Option<Digest>> {
    for number in bem_ledger::segment::list_segments(store)?.into_iter().rev() {
        let mut reader = bem_ledger::segment::SegmentReader::open(store, number)?;
        if size < reader.header().frontier.size() {
            continue;
        }
        let (mut head, mut at) = (reader.header().head, reader.header().frontier.size());
        while at < size {
            match reader.next(store)? {
                bem_ledger::segment::Frame::Entry(entry) => {
                    head = head.link(&bem_ledger::merkle::leaf_hash(entry))
                }
                _ => return Ok(None),
            }
            at += 1;
        }
        return Ok(Some(head.digest()));
    }
    Ok(None)
}

/// Files beside the ledger that the history names, as it names them.
fn named_files(state: &Path, report: &AuditReport) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for (name, digest) in &report.artefacts {
        let bytes =
            std::fs::read(state.join(name)).with_context(|| format!("{name}, which the history names"))?;
        if hash(&bytes) != *digest {
            bail!("{name} is not the file that the history names; no image is made of it");
        }
        files.push((name.clone(), bytes));
    }
    Ok(files)
}
