//! The version of a state folder's format: checked before anything else is read, raised by a migration that can be cut off.
//!
//! Version 1 is what folders without the file have; 2 adds the file itself and histories that begin at a saved state (restored
//! without a key, or with archived segments). Clause: IMG-5; decision D-88.

use anyhow::{Context, Result, bail};
use std::io::Write as _;
use std::path::Path;

/// The file.
pub const NAME: &str = "format";
/// The version that this program writes.
pub const CURRENT: u32 = 2;
/// The oldest version that can be migrated.
pub const OLDEST: u32 = 1;
const WORDS: &str = "bem state ";

/// The content of the file.
pub fn text(version: u32) -> String {
    format!("{WORDS}{version}\n")
}

/// The version of a folder.
pub fn read(state: &Path) -> Result<u32> {
    let path = state.join(NAME);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(OLDEST),
        other => other.with_context(|| path.display().to_string())?,
    };
    let version =
        text.strip_prefix(WORDS).and_then(|rest| rest.strip_suffix('\n')).and_then(|rest| rest.parse().ok());
    version.with_context(|| format!("{} does not say \"{WORDS}\" and a number", path.display()))
}

/// Refuses a folder that this program cannot read; says what to do.
pub fn check(version: u32, what: &str) -> Result<()> {
    if CURRENT < version {
        bail!(
            "{what} has state format {version}, and this program knows {OLDEST} to {CURRENT}: use a newer bem"
        );
    }
    if version < OLDEST {
        bail!(
            "{what} has state format {version}, older than {OLDEST}, and cannot be migrated: begin anew with what it learned, \
             by bem solve TASK --start-from {what}"
        );
    }
    Ok(())
}

/// Brings a folder to the present format; the version that it had. The file is written aside, synced and renamed, so that a
/// migration that is cut off has either happened or not.
pub fn migrate(state: &Path) -> Result<u32> {
    let before = read(state)?;
    check(before, &state.display().to_string())?;
    if before < CURRENT {
        let (aside, place) = (state.join("format.tmp"), state.join(NAME));
        let failed = || place.display().to_string();
        let mut file = std::fs::File::create(&aside).with_context(failed)?;
        file.write_all(text(CURRENT).as_bytes()).and_then(|()| file.sync_all()).with_context(failed)?;
        std::fs::rename(&aside, &place).with_context(failed)?;
        std::fs::File::open(state).and_then(|folder| folder.sync_all()).with_context(failed)?;
    }
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_folders_are_migrated_newer_ones_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), 1);
        assert_eq!(migrate(folder.path()).unwrap(), 1);
        assert_eq!(migrate(folder.path()).unwrap(), CURRENT);
        assert_eq!(std::fs::read_to_string(folder.path().join(NAME)).unwrap(), "bem state 2\n");
        let says = |text: &str| {
            std::fs::write(folder.path().join(NAME), text).unwrap();
            migrate(folder.path()).unwrap_err().to_string()
        };
        assert!(
            says("bem state 3\n").contains("state format 3, and this program knows 1 to 2: use a newer bem")
        );
        assert!(says("bem state 0\n").contains("--start-from"));
        assert!(says("something").contains("does not say"));
    }
}
