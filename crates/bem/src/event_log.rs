//! What a server says about itself, as one JSON object a line, in files that are turned over before they grow too large.
//!
//! Must not hold secrets, observations or rewards: it names files, tags, counts and reasons. Clause: IMG-1.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Bytes after which a file is turned over.
const BYTES_MAX: u64 = 8 << 20;
/// Files that are kept besides the one that is written.
const KEPT: u32 = 7;

/// The log of a server.
pub struct EventLog {
    folder: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl EventLog {
    /// Opens `bem.log` in a folder, which is made if need be.
    pub fn open(folder: &Path) -> Result<EventLog> {
        EventLog::open_with(folder, BYTES_MAX)
    }

    fn open_with(folder: &Path, bytes_max: u64) -> Result<EventLog> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let path = folder.join("bem.log");
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.with_context(|| path.display().to_string())?;
        let bytes = file.metadata().with_context(|| path.display().to_string())?.len();
        Ok(EventLog { folder: folder.to_path_buf(), file, bytes, bytes_max })
    }

    /// Writes a line. That a log cannot be written is no reason to stop serving.
    pub fn say(&mut self, level: &str, event: &str, fields: Value) {
        let mut line = json!({ "time": crate::images::now(), "level": level, "event": event });
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields);
        }
        let text = format!("{line}\n");
        if self.bytes_max < self.bytes + text.len() as u64 {
            let _ = self.turn();
        }
        if self.file.write_all(text.as_bytes()).is_ok() {
            self.bytes += text.len() as u64;
        }
    }

    fn turn(&mut self) -> Result<()> {
        let name = |number: u32| self.folder.join(format!("bem.log.{number}"));
        for number in (1..KEPT).rev() {
            let _ = std::fs::rename(name(number), name(number + 1));
        }
        std::fs::rename(self.folder.join("bem.log"), name(1))?;
        *self = EventLog::open_with(&self.folder, self.bytes_max)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_turned_over_and_stays_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = EventLog::open_with(folder.path(), 500).unwrap();
        for number in 0..200 {
            log.say("info", "tested", json!({ "number": number }));
        }
        let files: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len() as u32, KEPT + 1);
        assert!(files.iter().all(|path| std::fs::metadata(path).unwrap().len() <= 500));
        let newest = std::fs::read_to_string(folder.path().join("bem.log")).unwrap();
        let last: Value = serde_json::from_str(newest.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&last["event"], &last["number"], &last["level"]),
            (&json!("tested"), &json!(199), &json!("info"))
        );
    }
}
