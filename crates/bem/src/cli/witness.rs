//! `bem witness`: keeps the last checkpoint of every log it sees, under its own key, and refuses other pasts.
//!
//! Run it as another user or on another machine: it protects only if the log's owner cannot write its state.

use super::{Answer, ledger_directory, proof};
use crate::file_store::FileStore;
use crate::files;
use anyhow::{Context, bail};
use bem_base::digest::Digest;
use bem_ledger::LedgerError;
use bem_ledger::checkpoint::{Signer, verifier_key};
use bem_ledger::entry::Entry;
use bem_ledger::reader::EntryReader;
use bem_ledger::recover::read_checkpoint;
use bem_ledger::witness::{Witness, WitnessRequest};
use clap::Args;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Sign a run's newest checkpoint, if it extends the last one signed.
#[derive(Args)]
#[command(after_help = "Example: bem witness runs/first --state ~/.bem-witness > kept-elsewhere.txt\n\
    Later:   bem verify runs/first --checkpoint kept-elsewhere.txt\n\n\
    For a log on another machine:\n\
    there:   bem proof request DIR --old N > request.txt\n\
    here:    bem witness --request request.txt --log-key HEX --state DIR\n\
    The key is pinned at first contact.")]
pub struct WitnessArguments {
    /// The run whose newest checkpoint is to be signed
    #[arg(required_unless_present = "request")]
    directory: Option<PathBuf>,
    /// The witness's own directory: its key and what it has signed
    #[arg(long, value_name = "DIR")]
    state: PathBuf,
    /// The name the witness signs with
    #[arg(long, default_value = "bem.witness/local")]
    name: String,
    /// A request made by `bem proof request`, instead of a directory
    #[arg(long, value_name = "FILE", conflicts_with = "directory", requires = "log_key")]
    request: Option<PathBuf>,
    /// The log's public key, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    log_key: Option<String>,
}

/// Signs or refuses.
pub fn run(arguments: &WitnessArguments) -> anyhow::Result<Answer> {
    let name = &arguments.name;
    if name.is_empty() || name.contains(['+', ' ']) || name.contains(char::is_control) {
        bail!(
            "the witness's name {name:?} must not be empty and must not hold spaces, plus or control signs"
        );
    }
    let state = &arguments.state;
    let store = FileStore::open_locked(state).with_context(|| state.display().to_string())?;
    let signer = load_or_make_key(&state.join("witness.key"))?;
    let public_key = signer.public_key();
    let mut witness = Witness::new(store, name.clone(), signer);
    let (request, log_key) = match (&arguments.directory, &arguments.request) {
        (Some(directory), _) => from_directory(&mut witness, directory)?,
        (None, Some(file)) => {
            let bytes = files::read_bytes(file)?;
            let key = arguments.log_key.as_deref().and_then(Digest::from_hex);
            let key = key.context("--log-key must be 64 lower-case hexadecimal digits")?;
            (WitnessRequest::parse(&bytes)?, *key.as_bytes())
        }
        (None, None) => bail!("a run directory or --request FILE is needed"),
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).context("the clock is before 1970")?;
    match witness.cosign(&request, &log_key, now.as_secs()) {
        Ok(signed) => {
            say_text!("{}", signed.to_text());
            note!("signed as {}", verifier_key(name, &public_key));
            Ok(Answer::Yes)
        }
        Err(error @ (LedgerError::Refused(_) | LedgerError::Checkpoint(_))) => {
            note!("bem: {error}");
            Ok(Answer::No)
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes the request out of the run's own files, from the size this witness signed last.
fn from_directory(
    witness: &mut Witness<FileStore>,
    directory: &Path,
) -> anyhow::Result<(WitnessRequest, [u8; 32])> {
    let mut ledger = ledger_directory::open(directory)?;
    let instance = read_checkpoint(&mut ledger)?.checkpoint.instance;
    let old = witness.state(&instance)?.map_or(0, |state| state.checkpoint.checkpoint.size);
    let size = read_checkpoint(&mut ledger)?.checkpoint.size;
    // A log that shrank cannot prove anything; the witness then refuses by the sizes alone.
    let request = proof::request(&mut ledger, old.min(size))?;
    let mut reader = EntryReader::open(&mut ledger)?;
    let genesis = reader.next(&mut ledger)?.context("the ledger has no entries")?;
    match Entry::from_bytes(genesis)? {
        Entry::Genesis(genesis) => Ok((request, genesis.public_key)),
        _ => bail!("the first entry is not genesis: run `bem verify`"),
    }
}

/// Reads the secret seed of a key, or makes a new one that only its owner can read.
pub fn load_or_make_key(path: &Path) -> anyhow::Result<Signer> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let place = || path.display().to_string();
    if path.exists() {
        let text = std::fs::read_to_string(path).with_context(place)?;
        let seed = Digest::from_hex(text.trim()).with_context(|| format!("{}: not a key", place()))?;
        return Ok(Signer::from_seed(seed.as_bytes()));
    }
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
    let aside = path.with_extension("key.new");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&aside)
        .with_context(place)?;
    writeln!(file, "{}", Digest::from_bytes(seed)).and_then(|()| file.sync_all()).with_context(place)?;
    std::fs::rename(&aside, path).with_context(place)?;
    if let Some(directory) = path.parent() {
        std::fs::File::open(directory).and_then(|directory| directory.sync_all()).with_context(place)?;
    }
    Ok(Signer::from_seed(&seed))
}
