//! Where signing keys are kept: outside the run, readable by their owner only.
//!
//! Whoever holds the key of a run can sign another history of it, so the key must not travel with the run's folder, its
//! snapshots or its exports. By default a user has one secret in the state directory; the key of a run is derived from
//! it and from a salt that lies in the run's folder and says nothing without the secret. With `--key FILE` the key lies
//! where the user says. Decisions D-17, D-30, D-38.

use anyhow::{Context, Result, bail};
use bem_base::digest::{Digest, hash_parts};
use bem_ledger::checkpoint::Signer;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const SECRET_BYTES: usize = 32;
/// The file in a run's folder that, with the user's secret, makes the run's key.
const SALT: &str = "key-salt";

/// The folder of secrets: `$XDG_STATE_HOME/bem`, else `~/.local/state/bem`.
pub fn folder() -> Result<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let state = state.or_else(|| home().map(|home| home.join(".local/state")));
    state
        .map(|state| state.join("bem"))
        .context("no place for the signing key: HOME is not set; name a key file with --key FILE")
}

/// Where earlier versions kept one key for every run, under the name of its public half.
fn kept_under(public_key: &[u8; 32]) -> Result<PathBuf> {
    Ok(folder()?.join("keys").join(format!("{}.key", Digest::from_bytes(*public_key))))
}

fn random_secret() -> Result<[u8; SECRET_BYTES]> {
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret).context("no randomness for a signing key")?;
    Ok(secret)
}

/// The user's secret, made if it is not there. Two runs that start at once make one: whoever comes second reads it.
fn user_secret() -> Result<[u8; SECRET_BYTES]> {
    let advice = "the signing key cannot be kept; name a file for it with --key FILE";
    let folder = folder()?;
    let path = folder.join("key");
    if !path.exists() {
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string()).context(advice)?;
        // Written aside and linked, so that nobody reads half of it.
        let aside = folder.join(format!("key-{}", Digest::from_bytes(random_secret()?)));
        write(&aside, &random_secret()?).context(advice)?;
        let linked = std::fs::hard_link(&aside, &path);
        let _ = std::fs::remove_file(&aside);
        if !path.exists() {
            linked.with_context(|| path.display().to_string()).context(advice)?;
        }
    }
    read_secret(&path)
}

fn derived(secret: &[u8; SECRET_BYTES], salt: &[u8]) -> Signer {
    Signer::from_seed(hash_parts("bem/run-key", &[secret, salt]).as_bytes())
}

/// A key for a new run in this folder: that of the file if one is named, made there if it does not exist; else one of the
/// user's.
pub fn for_new_run(file: Option<&Path>, directory: &Path) -> Result<Signer> {
    match file {
        Some(path) if path.exists() => read(path),
        Some(path) => {
            let secret = random_secret()?;
            write(path, &secret)?;
            Ok(Signer::from_seed(&secret))
        }
        None => {
            let (secret, salt) = (user_secret()?, random_secret()?);
            let path = directory.join(SALT);
            std::fs::create_dir_all(directory)
                .and_then(|()| std::fs::write(&path, salt))
                .with_context(|| format!("{} cannot be written", path.display()))?;
            Ok(derived(&secret, &salt))
        }
    }
}

/// The key that signs statements about images: that of the file if one is named, made there if it does not exist; else the user's.
pub fn for_images(file: Option<&Path>) -> Result<Signer> {
    match file {
        Some(path) if path.exists() => read(path),
        Some(path) => {
            write(path, &random_secret()?)?;
            read(path)
        }
        None => Ok(derived(&user_secret()?, b"bem images")),
    }
}

/// The file of the user's secret, whether or not it is there.
pub fn secret_path() -> Result<PathBuf> {
    Ok(folder()?.join("key"))
}

/// The key of a run that goes on.
pub fn for_known_run(file: Option<&Path>, directory: &Path, public_key: &[u8; 32]) -> Result<Signer> {
    let fits = |signer: &Signer| signer.public_key() == *public_key;
    if let Some(path) = file {
        let mut signer = read(path)?;
        // The file may be a user's secret, from which the salt in the folder makes the key.
        if !fits(&signer)
            && let Ok(salt) = std::fs::read(directory.join(SALT))
        {
            signer = derived(&read_secret(path)?, &salt);
        }
        return if fits(&signer) {
            Ok(signer)
        } else {
            bail!("{} holds the key of another run", path.display())
        };
    }
    let secret = folder()?.join("key");
    if let Ok(salt) = std::fs::read(directory.join(SALT))
        && secret.exists()
    {
        let signer = derived(&read_secret(&secret)?, &salt);
        if fits(&signer) {
            return Ok(signer);
        }
    }
    let path = kept_under(public_key)?;
    if path.exists() {
        let signer = read(&path)?;
        return if fits(&signer) {
            Ok(signer)
        } else {
            bail!("{} holds the key of another run", path.display())
        };
    }
    bail!(
        "the signing key of this run is not here ({} and the run's {SALT}): name its file with --key FILE, or go on under a \
         new key with bem snapshot and bem restore",
        secret.display()
    )
}

fn read(path: &Path) -> Result<Signer> {
    Ok(Signer::from_seed(&read_secret(path)?))
}

fn read_secret(path: &Path) -> Result<[u8; SECRET_BYTES]> {
    if path.is_dir() {
        bail!("{} is a folder; the file of a key is needed", path.display());
    }
    refuse_shared(path)?;
    let secret = std::fs::read(path).with_context(|| path.display().to_string())?;
    secret
        .try_into()
        .ok()
        .with_context(|| format!("{} is no signing key: it must have {SECRET_BYTES} bytes", path.display()))
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
        let made = for_new_run(Some(&path), folder.path()).unwrap().public_key();
        assert_eq!(for_new_run(Some(&path), folder.path()).unwrap().public_key(), made);
        assert_eq!(for_known_run(Some(&path), folder.path(), &made).unwrap().public_key(), made);
        let error = for_known_run(Some(&path), folder.path(), &[0; 32]).unwrap_err().to_string();
        assert!(error.ends_with("holds the key of another run"), "{error}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
            let error = for_new_run(Some(&path), folder.path()).unwrap_err().to_string();
            assert!(error.contains("may be read by others (mode 640)"), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_no_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write(&path, b"short").unwrap();
        let error = for_new_run(Some(&path), folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("is no signing key: it must have 32 bytes"), "{error}");
    }
}
