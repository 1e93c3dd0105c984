//! The version of a state folder's format: checked before anything else is read.
//!
//! Version 1 is what folders without the file have. 2 adds the file itself and histories that begin at a saved state (restored
//! without a key, or with archived segments). 3 names the worlds of a saved state beside it, so that a program whose learner cannot
//! read the state knows them, and gives the list of tokens a version. How a folder is brought from one to the next is for `migrate`. Clause: IMG-5; decisions D-88, D-230.

use anyhow::{Context, Result, bail};
use std::path::Path;

/// The file.
pub const NAME: &str = "format";
/// The version that this program writes.
pub const CURRENT: u32 = 3;
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
             by bem solve TASK --start-from {what} or bem serve --start-from WORLD={what}"
        );
    }
    Ok(())
}
