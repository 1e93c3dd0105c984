//! The pipeline beside a service, in images: its plan, its state, and the acknowledged part of every machine's history.
//!
//! It may be worked on meanwhile. The state is read first and the plan last: histories are written before the state that relies on
//! them, so that what is packed has at least what the state needs, and what a history has more is compared when it is worked on
//! again. Answers of units stay out: they are worked on again. Clauses: IMG-2, PIPE-2, LOG-4; decision D-239.

use super::secrets::Secrets;
use super::state::audit_ledger;
use crate::cli::pipeline::{PLAN, engine, machine_folders};
use crate::cli::serve::public_key;
use crate::file_store::FileStore;
use crate::keys;
use crate::pipeline_beside::FOLDER;
use anyhow::{Context, Result, bail};
use bem_image::image::{OWNER, STATE_PATH};
use bem_image::layer::{Content, LayerFile, LayerFiles};
use bem_ledger::audit::AuditVerdict;
use bem_ledger::log::CHECKPOINT_NAME;
use bem_ledger::view::{Committed, committed};
use bem_ledger::whole::read_whole;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The pipeline of a state folder, if there is one.
pub struct PipelineView {
    /// Files with what they hold, named from the state folder on.
    files: Vec<(String, Vec<u8>)>,
    /// Histories of machines, their folders named from the state folder on.
    machines: Vec<(String, PathBuf, Committed)>,
}

fn named(state: &Path, path: &Path) -> String {
    path.strip_prefix(state).unwrap_or(path).display().to_string()
}

impl PipelineView {
    /// Looks at it; with `is_audited` all histories are audited first.
    pub fn read(state: &Path, is_audited: bool) -> Result<Option<PipelineView>> {
        let folder = state.join(FOLDER);
        if !folder.join(PLAN).exists() {
            return Ok(None);
        }
        let mut view = PipelineView { files: Vec::new(), machines: Vec::new() };
        let mut add = |path: PathBuf, is_needed: bool| -> Result<()> {
            match std::fs::read(&path) {
                Ok(bytes) => view.files.push((named(state, &path), bytes)),
                Err(error) if !is_needed && error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| path.display().to_string()),
            }
            Ok(())
        };
        add(folder.join(engine::STATE), false)?;
        let machines = machine_folders(&folder);
        for machine in &machines {
            add(machine.join("key-salt"), false)?;
        }
        for machine in
            machines.into_iter().filter(|machine| machine.join("ledger").join(CHECKPOINT_NAME).exists())
        {
            let ledger = machine.join("ledger");
            let mut store = FileStore::open(&ledger).with_context(|| ledger.display().to_string())?;
            if is_audited {
                check_ledger(&mut store, &machine)?;
            }
            view.machines.push((named(state, &machine), ledger, committed(&mut store)?));
        }
        let plan = std::fs::read(folder.join(PLAN)).context(PLAN)?;
        view.files.push((named(state, &folder.join(PLAN)), plan));
        Ok(Some(view))
    }

    /// Adds it to a layer.
    pub fn add<'v>(&'v self, files: &mut LayerFiles<'v>, secrets: &'v Secrets) -> Result<()> {
        let own = |mode: u32, content: Content<'v>| LayerFile { mode, owner: OWNER, content };
        let held = self.files.iter().map(|(name, _)| name.clone());
        let ledgers = self.machines.iter().map(|(machine, _, _)| format!("{machine}/ledger/checkpoint"));
        for name in held.chain(ledgers) {
            for (at, _) in name.match_indices('/') {
                files.insert(format!("{STATE_PATH}/{}", &name[..at]), own(0o700, Content::Folder));
            }
        }
        let whole = |bytes: &[u8]| match secrets.find(bytes) {
            Some(name) => bail!("the pipeline holds the secret of {name}, which no image may have"),
            None => Ok(own(0o600, Content::Bytes(bytes.to_vec()))),
        };
        for (name, bytes) in &self.files {
            files.insert(format!("{STATE_PATH}/{name}"), whole(bytes)?);
        }
        for (machine, ledger, committed) in &self.machines {
            let checkpoint = committed.signed.to_text();
            let place = format!("{STATE_PATH}/{machine}/ledger");
            files.insert(format!("{place}/{CHECKPOINT_NAME}"), whole(checkpoint.as_bytes())?);
            for (name, length) in &committed.files {
                let file = File::open(ledger.join(name)).with_context(|| name.clone())?;
                let content = Content::Stream(*length, Box::new(secrets.watch(file)));
                files.insert(format!("{place}/{name}"), own(0o600, content));
            }
        }
        Ok(())
    }
}

fn check_ledger(store: &mut FileStore, machine: &Path) -> Result<()> {
    match audit_ledger(store)?.verdict {
        AuditVerdict::Broken { entry, reason } => {
            bail!("{} is broken at entry {entry}: {reason}", machine.display())
        }
        _ => Ok(()),
    }
}

/// An unpacked pipeline must be one that can be gone on with, and its histories must stand up to an audit.
pub fn check(state: &Path) -> Result<()> {
    let folder = state.join(FOLDER);
    if !folder.exists() {
        return Ok(());
    }
    engine::check(&folder)?;
    for machine in machine_folders(&folder) {
        check_ledger(&mut FileStore::open(&machine.join("ledger"))?, &machine)?;
    }
    Ok(())
}

/// Every entry of an unpacked pipeline's histories, and everything that lies beside them, must be whole.
pub fn read_back(state: &Path) -> Result<()> {
    for machine in machine_folders(&state.join(FOLDER)) {
        let mut store = FileStore::open(&machine.join("ledger"))?;
        read_whole(&mut store).with_context(|| format!("{} is not whole", named(state, &machine)))?;
    }
    Ok(())
}

/// The key must be that of all histories.
pub fn check_key(state: &Path, key: &Path) -> Result<()> {
    for machine in machine_folders(&state.join(FOLDER)) {
        let mut store = FileStore::open(&machine.join("ledger"))?;
        let known = public_key(&mut store)?;
        keys::for_known_run(Some(key), &machine, &known).with_context(|| named(state, &machine))?;
    }
    Ok(())
}

/// Files of a pipeline and folders of its machines, named from the state folder on.
pub fn parts(state: &Path) -> (Vec<String>, Vec<String>) {
    let folder = state.join(FOLDER);
    let files = [PLAN, engine::STATE].map(|name| folder.join(name));
    let files = files.iter().filter(|path| path.exists()).map(|path| named(state, path)).collect();
    (files, machine_folders(&folder).iter().map(|machine| named(state, machine)).collect())
}
