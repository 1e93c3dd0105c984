//! Where signing keys are kept: outside the run, readable by their owner only.
//!
//! Whoever holds the key of a run can sign another history of it, so the key must not travel with the run's folder, its
//! snapshots or its exports. By default a key lies in the user's state directory under the name of its public half; with
//! `--key FILE` it lies where the user says. Decisions D-17, D-30.

use anyhow::{Context, Result, bail};
use bem_base::digest::Digest;
use bem_ledger::checkpoint::Signer;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const SECRET_BYTES: usize = 32;

/// The folder of keys: `$XDG_STATE_HOME/bem/keys`, else `~/.local/state/bem/keys`.
fn folder() -> Result<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let state = state.or_else(|| home().map(|home| home.join(".local/state")));
    state
        .map(|state| state.join("bem/keys"))
        .context("no place for the signing key: HOME is not set; name a key file with --key FILE")
}

fn kept_under(public_key: &[u8; 32]) -> Result<PathBuf> {
    Ok(folder()?.join(format!("{}.key", Digest::from_bytes(*public_key))))
}

/// A key for a new run: that of the file if one is named, made there if it does not exist; else a new one.
pub fn for_new_run(file: Option<&Path>) -> Result<Signer> {
    if let Some(path) = file.filter(|path| path.exists()) {
        return read(path);
    }
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret).context("no randomness for a signing key")?;
    let signer = Signer::from_seed(&secret);
    match file {
        Some(path) => write(path, &secret)?,
        None => {
            let advice = "the signing key cannot be kept; name a file for it with --key FILE";
            let path = kept_under(&signer.public_key())?;
            let parent = folder()?;
            std::fs::create_dir_all(&parent)
                .with_context(|| parent.display().to_string())
                .and_then(|()| write(&path, &secret))
                .context(advice)?;
        }
    }
    Ok(signer)
}

/// The key of a run that goes on.
pub fn for_known_run(file: Option<&Path>, public_key: &[u8; 32]) -> Result<Signer> {
    let path = match file {
        Some(path) => path.to_path_buf(),
        None => kept_under(public_key)?,
    };
    if file.is_none() && !path.exists() {
        bail!(
            "the signing key of this run is not here ({}): name its file with --key FILE, or go on under a new key \
             with bem snapshot and bem restore",
            path.display()
        );
    }
    let signer = read(&path)?;
    if signer.public_key() != *public_key {
        bail!("{} holds the key of another run", path.display());
    }
    Ok(signer)
}

fn read(path: &Path) -> Result<Signer> {
    if path.is_dir() {
        bail!("{} is a folder; the file of a key is needed", path.display());
    }
    refuse_shared(path)?;
    let secret = std::fs::read(path).with_context(|| path.display().to_string())?;
    let secret: [u8; SECRET_BYTES] = secret.try_into().ok().with_context(|| {
        format!("{} is no signing key: it must have {SECRET_BYTES} bytes", path.display())
    })?;
    Ok(Signer::from_seed(&secret))
}

/// A key that others may read is no key any more.
fn refuse_shared(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path).with_context(|| path.display().to_string())?.permissions().mode();
        if mode & 0o077 != 0 {
            bail!("{} may be read by others (mode {:o}): chmod 600 it", path.display(), mode & 0o777);
        }
    }
    Ok(())
}

fn write(path: &Path, secret: &[u8]) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).with_context(|| format!("{} cannot be made", path.display()))?;
    file.write_all(secret).and_then(|()| file.sync_all()).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_made_once_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let made = for_new_run(Some(&path)).unwrap().public_key();
        assert_eq!(for_new_run(Some(&path)).unwrap().public_key(), made);
        assert_eq!(for_known_run(Some(&path), &made).unwrap().public_key(), made);
        let error = for_known_run(Some(&path), &[0; 32]).unwrap_err().to_string();
        assert!(error.ends_with("holds the key of another run"), "{error}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
            let error = for_new_run(Some(&path)).unwrap_err().to_string();
            assert!(error.contains("may be read by others (mode 640)"), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_no_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write(&path, b"short").unwrap();
        let error = for_new_run(Some(&path)).unwrap_err().to_string();
        assert!(error.ends_with("is no signing key: it must have 32 bytes"), "{error}");
    }
}
