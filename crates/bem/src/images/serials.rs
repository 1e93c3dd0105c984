//! The highest serial of a promotion that this user has seen, by key: kept with the user's keys, so that an older `stable` is
//! noticed whatever folder or registry it comes from. Clause: IMG-4; decision D-87.

use crate::keys;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

fn path() -> Result<PathBuf> {
    Ok(keys::folder()?.join("promotions.json"))
}

fn read() -> Result<BTreeMap<String, u64>> {
    let path = path()?;
    match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        other => {
            let bytes = other.with_context(|| path.display().to_string())?;
            serde_json::from_slice(&bytes).with_context(|| format!("{} cannot be read", path.display()))
        }
    }
}

/// The highest serial that was seen of this key; zero if none was.
pub fn seen(key: &str) -> Result<u64> {
    Ok(read()?.get(key).copied().unwrap_or(0))
}

/// Remembers a serial.
pub fn remember(key: &str, serial: u64) -> Result<()> {
    let mut known = read()?;
    if known.get(key).copied().unwrap_or(0) < serial {
        known.insert(key.to_string(), serial);
        let path = path()?;
        let folder = keys::folder()?;
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let aside = path.with_extension("tmp");
        std::fs::write(&aside, serde_json::to_vec(&known)?).with_context(|| aside.display().to_string())?;
        std::fs::rename(&aside, &path).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
