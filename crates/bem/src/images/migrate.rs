//! A state folder is brought to the present format; where its learner cannot go on, a new history begins from what the old one says.
//!
//! A folder whose history goes on keeps it: only files whose form has changed are written anew. Where the history was written by a
//! learner that this program does not have, worlds, circuits and logs are carried over into a new ledger (`history/renewed.rs`), and the
//! old one stays as `ledger-origin`. Everything takes effect in one step and is finished by whoever opens the folder next.
//! Clause: IMG-5; decisions D-230, D-231.

use super::format;
use crate::cli::serve::is_service;
use crate::cli::snapshot::newest_climb;
use crate::file_store::{FileStore, STATE};
use crate::keys;
use anyhow::{Context, Result, bail};
use bem_base::digest::Digest;
use bem_base::words::quantity;
use bem_image::migration::{
    LEDGER, LEDGER_NEXT, LEDGER_ORIGIN, MANIFEST, Migration, commit, finish, stage, waiting,
};
use bem_ledger::log::LogOptions;
use bem_ledger::recover::read_checkpoint;
use bem_runtime::history::renewed::{Carried, renewed};
use bem_runtime::history::{self, HistoryError};
use bem_runtime::input::{Input, decode_all};
use bem_serve::inbox::Inbox;
use bem_serve::tokens;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const SALT: &str = "key-salt";
const INBOXES: [&str; 2] = ["inbox-0", "inbox-1"];

/// What became of a folder.
pub enum Migrated {
    /// It was as it should be.
    Nothing,
    /// The same history goes on, in the present format.
    Kept,
    /// A new history begins.
    Anew(Box<Anew>),
}

/// A history that begins from what an older one says.
pub struct Anew {
    /// The head of the old one.
    pub origin: Digest,
    /// The head of the new one.
    pub head: Digest,
    /// Why the old one does not go on.
    pub reason: String,
    /// What was carried over of every world.
    pub carried: Vec<Carried>,
}

impl Anew {
    /// One line about it.
    pub fn words(&self, state: &Path) -> String {
        let known: Vec<&Carried> = self.carried.iter().filter(|one| !one.name.is_empty()).collect();
        let circuits = known.iter().filter(|one| one.has_circuit).count();
        let episodes: usize = known.iter().map(|one| one.episodes).sum();
        let lost = match self.carried.len() - known.len() {
            0 => String::new(),
            lost => {
                format!(", {} declared in archived segments must be created again", quantity(lost, "world"))
            }
        };
        format!(
            "{}: its history does not go on with this program's learner ({}); a new one begins with {}, {} to be tried first and \
             {}{lost}; it names head {}, and the old one is kept as {LEDGER_ORIGIN}",
            state.display(),
            self.reason,
            quantity(known.len(), "world"),
            quantity(circuits, "circuit"),
            quantity(episodes, "episode"),
            self.origin
        )
    }
}

/// Finishes a migration of this folder that was decided and cut off. Whoever opens a folder calls this first.
pub fn settle(state: &Path) -> Result<()> {
    if state.join(MANIFEST).exists() {
        let said = || state.display().to_string();
        finish(&mut FileStore::open_locked_for(&STATE, state).with_context(said)?).with_context(said)?;
        tidy(state);
    }
    Ok(())
}

/// Whoever only reads a folder does not finish what was decided.
pub fn refuse_unsettled(state: &Path) -> Result<()> {
    match state.join(MANIFEST).exists() {
        true => bail!(
            "{0} is in the middle of a migration: bem image migrate --state {0} finishes it",
            state.display()
        ),
        false => Ok(()),
    }
}

/// Folders that are empty go.
fn tidy(state: &Path) {
    let _ = std::fs::remove_file(state.join(LEDGER_NEXT).join("lock"));
    for folder in [LEDGER_NEXT, LEDGER_ORIGIN] {
        // One that is not empty stays.
        let _ = std::fs::remove_dir(state.join(folder));
    }
}

/// Whether the history of a folder goes on with this program's learner: why not, if it does not. A run that does not is refused: it
/// begins anew by other means.
pub fn obstacle(state: &Path) -> Result<Option<String>> {
    let ledger = state.join(LEDGER);
    let mut store = FileStore::open(&ledger).with_context(|| ledger.display().to_string())?;
    if is_service(&mut store) {
        return match history::goes_on(&mut store) {
            Ok(()) => Ok(None),
            Err(error @ (HistoryError::State { .. } | HistoryError::Input { .. })) => {
                Ok(Some(error.to_string()))
            }
            Err(HistoryError::Ledger(error @ bem_ledger::LedgerError::Diverged { .. })) => {
                Ok(Some(error.to_string()))
            }
            Err(other) => Err(other.into()),
        };
    }
    match newest_climb(state) {
        Ok(_) => Ok(None),
        Err(error) => bail!(
            "{0} cannot go on with this program's learner ({error:#}): begin anew with what it learned, by \
             bem solve TASK --start-from {0}",
            state.display()
        ),
    }
}

/// Brings a folder whose history goes on to the present format; the version that it had. A folder without a ledger gets the mark.
pub fn raise(state: &Path) -> Result<u32> {
    settle(state)?;
    let before = format::read(state)?;
    format::check(before, &state.display().to_string())?;
    if before < format::CURRENT {
        let mut store = open(state)?;
        let files = stage_files(state, &mut store)?;
        let migration =
            Migration { from: before, to: format::CURRENT, files, gone: Vec::new(), has_ledger: false };
        commit(&mut store, &migration)?;
        tidy(state);
    } else if state.join(LEDGER_NEXT).exists() {
        // A migration that was cut off behind its last step, or before it was decided.
        let _locked = open(state)?;
        tidy(state);
    }
    Ok(before)
}

/// Migrates a folder that nobody writes; `key` signs the new history if one must begin.
pub fn migrate(state: &Path, key: Option<&Path>, obstacle: Option<String>) -> Result<Migrated> {
    let Some(reason) = obstacle else {
        return Ok(match raise(state)? {
            format::CURRENT => Migrated::Nothing,
            _ => Migrated::Kept,
        });
    };
    let ledger = state.join(LEDGER);
    let mut old = FileStore::open(&ledger)?;
    let before = format::read(state)?;
    let signed = read_checkpoint(&mut old)?.checkpoint;
    let late = acknowledged(state, signed.instance)?;
    let mut store = open(state)?;
    let next = state.join(LEDGER_NEXT);
    let signer = keys::for_new_run(key, &next)?;
    let mut files = Vec::new();
    if key.is_none() {
        let salt = std::fs::read(next.join(SALT)).with_context(|| next.display().to_string())?;
        std::fs::remove_file(next.join(SALT))?;
        stage(&mut store, SALT, &salt)?;
        files.push(SALT.to_string());
    }
    let target = FileStore::open_locked(&next)?;
    let code = env!("CARGO_PKG_VERSION");
    let (opened, carried) = renewed(&mut old, &late, target, signer, code, LogOptions::default())
        .with_context(|| format!("{} is older than what can be migrated", state.display()))?;
    let head = opened.log.head().digest();
    drop(opened);
    files.extend(stage_files(state, &mut store)?);
    let gone = INBOXES.map(str::to_string).to_vec();
    let migration = Migration { from: before, to: format::CURRENT, files, gone, has_ledger: true };
    commit(&mut store, &migration)?;
    tidy(state);
    Ok(Migrated::Anew(Box::new(Anew { origin: signed.head.digest(), head, reason, carried })))
}

/// The folder, with what an undecided migration left removed.
fn open(state: &Path) -> Result<FileStore> {
    let said = || state.display().to_string();
    let mut store = FileStore::open_locked_for(&STATE, state).with_context(said)?;
    finish(&mut store).with_context(said)?;
    Ok(store)
}

/// Lets the files wait whose form has changed, the mark of the format last; their names.
fn stage_files(state: &Path, store: &mut FileStore) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let path = state.join(tokens::TOKENS_NAME);
    if let Ok(bytes) = std::fs::read(&path)
        && let Some(newer) = tokens::upgraded(&bytes).with_context(|| path.display().to_string())?
    {
        stage(store, tokens::TOKENS_NAME, &newer)?;
        let waits = state.join(waiting(tokens::TOKENS_NAME));
        std::fs::set_permissions(&waits, std::fs::Permissions::from_mode(0o600))?;
        files.push(tokens::TOKENS_NAME.to_string());
    }
    stage(store, format::NAME, format::text(format::CURRENT).as_bytes())?;
    files.push(format::NAME.to_string());
    Ok(files)
}

/// Inputs that were acknowledged and may not be in the ledger, with their numbers.
fn acknowledged(state: &Path, instance: Digest) -> Result<Vec<(u64, Input)>> {
    if INBOXES.iter().any(|name| !state.join(name).exists()) {
        return Ok(Vec::new());
    }
    let (_, frames) = Inbox::open(state, instance)?;
    let mut inputs = Vec::new();
    for frame in frames {
        inputs.extend((frame.first..).zip(decode_all(&frame.payload)?));
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_folders_are_raised_newer_ones_refused() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        let old = r#"[{"name":"shop","role":"annotator","hash":"00"}]"#;
        std::fs::write(state.join(tokens::TOKENS_NAME), old).unwrap();
        assert_eq!(format::read(state).unwrap(), 1);
        assert_eq!(raise(state).unwrap(), 1);
        assert_eq!(raise(state).unwrap(), format::CURRENT);
        assert_eq!(std::fs::read_to_string(state.join(format::NAME)).unwrap(), "bem state 3\n");
        let tokens = tokens::read(state).unwrap();
        assert_eq!((tokens.len(), tokens[0].name.as_str()), (1, "shop"));
        let mut names: Vec<String> = std::fs::read_dir(state)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["format", "ledger", "lock", "tokens.json"]);
        // Cut off before it tidied up: the next one does.
        std::fs::create_dir(state.join(LEDGER_NEXT)).unwrap();
        std::fs::write(state.join(LEDGER_NEXT).join("lock"), "").unwrap();
        assert_eq!(raise(state).unwrap(), format::CURRENT);
        assert!(!state.join(LEDGER_NEXT).exists());
        let says = |text: &str| {
            std::fs::write(state.join(format::NAME), text).unwrap();
            raise(state).unwrap_err().to_string()
        };
        assert!(
            says("bem state 4\n").contains("state format 4, and this program knows 1 to 3: use a newer bem")
        );
        assert!(says("bem state 0\n").contains("--start-from"));
        assert!(says("something").contains("does not say"));
    }
}
