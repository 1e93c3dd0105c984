//! Reading files that a user names: whatever is wrong is said in one line that begins with the name.

use anyhow::{Context as _, Result, anyhow, bail};
use std::io::ErrorKind;
use std::path::Path;

/// The bytes of a file.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let name = path.display();
    if path.is_dir() {
        bail!("{name} is a folder; a file is needed");
    }
    match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(anyhow!("{name} does not exist")),
        other => other.with_context(|| format!("{name} cannot be read")),
    }
}

/// The text of a file.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read_bytes(path)?).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        anyhow!("{} is not text: byte {place} is not UTF-8", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_is_said_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let says = |name: &str| read_text(&folder.path().join(name)).unwrap_err().to_string();
        assert!(says("nothing").ends_with("nothing does not exist"));
        assert!(says("").ends_with(" is a folder; a file is needed"));
        std::fs::write(folder.path().join("bytes"), b"ab\xFF").unwrap();
        assert!(says("bytes").ends_with("bytes is not text: byte 2 is not UTF-8"));
        std::fs::write(folder.path().join("text"), "fine").unwrap();
        assert_eq!(read_text(&folder.path().join("text")).unwrap(), "fine");
    }
}
