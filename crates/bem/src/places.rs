//! Where the files of a server lie: as a service of the system in `/var/lib/bem`, `/var/log/bem` and `/etc/bem`, else all below the
//! folder of its state. Clause: IMG-1; decision D-233.

use anyhow::{Result, bail};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The state of a service of the system.
pub const STATE: &str = "/var/lib/bem";

/// Where logs go and settings come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The folder of the log.
    pub logs: PathBuf,
    /// The folder of what its owner has set: `config.toml`, `catalog.toml`.
    pub settings: PathBuf,
}

impl Places {
    /// The places that belong to this folder of a state.
    pub fn of(state: &Path) -> Places {
        match state == Path::new(STATE) {
            true => Places { logs: PathBuf::from("/var/log/bem"), settings: PathBuf::from("/etc/bem") },
            false => Places { logs: state.join("log"), settings: state.join("etc") },
        }
    }

    /// The parameters of a new state, if its owner has set them.
    pub fn config(&self) -> Option<PathBuf> {
        Some(self.settings.join("config.toml")).filter(|path| path.is_file())
    }

    /// The catalog of tools, if its owner has set one.
    pub fn catalog(&self) -> Option<PathBuf> {
        Some(self.settings.join("catalog.toml")).filter(|path| path.is_file())
    }
}

/// A service of the system runs as a user of its own: files that root makes are nobody else's.
pub fn refuse_root(state: &Path) -> Result<()> {
    let user = std::fs::metadata("/proc/self").map_or(u32::MAX, |process| process.uid());
    if user == 0 && state == Path::new(STATE) {
        bail!(
            "{STATE} is not served as root: run it as the user bem, as deploy/bem.service does, or name another --state DIR"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_of_the_system_has_the_folders_of_the_system_and_others_their_own() {
        let system = Places::of(Path::new("/var/lib/bem"));
        assert_eq!(
            (system.logs.to_str(), system.settings.to_str()),
            (Some("/var/log/bem"), Some("/etc/bem"))
        );
        let folder = tempfile::tempdir().unwrap();
        let own = Places::of(folder.path());
        assert_eq!((own.logs.clone(), own.config(), own.catalog()), (folder.path().join("log"), None, None));
        std::fs::create_dir(folder.path().join("etc")).unwrap();
        std::fs::write(folder.path().join("etc/config.toml"), "").unwrap();
        assert_eq!(own.config(), Some(folder.path().join("etc/config.toml")));
    }
}
