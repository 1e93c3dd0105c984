//! Secrets that must not enter an image: what is packed is searched for them, byte for byte, while it is read.
//!
//! Keys and tokens lie in files that are never packed; this finds one that got into the state by another way, such as a token as
//! the name of a world. Clause: IMG-6; decision D-30.

use anyhow::Result;
use std::io::Read;
use std::path::Path;

/// A text shorter than this says too little to be looked for.
const BYTES_MIN: usize = 8;

/// What must not be found, with the name of where it came from.
#[derive(Clone, Default)]
pub struct Secrets(Vec<(String, Vec<u8>)>);

impl Secrets {
    /// The secrets that belong to a state folder: its admin's token, and these files of keys and tokens, as they are and as text.
    pub fn of(state: &Path, more: &[&Path]) -> Result<Secrets> {
        let mut secrets = Secrets::default();
        let token = state.join("token");
        for path in [&token as &Path].iter().chain(more).filter(|path| path.is_file()) {
            if let Ok(bytes) = std::fs::read(path) {
                secrets.add(&path.display().to_string(), &bytes);
            }
        }
        Ok(secrets)
    }

    fn add(&mut self, name: &str, bytes: &[u8]) {
        let trimmed = bytes.trim_ascii();
        let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        for needle in [bytes.to_vec(), trimmed.to_vec(), hexadecimal.into_bytes()] {
            if BYTES_MIN <= needle.len() && !self.0.iter().any(|(_, known)| *known == needle) {
                self.0.push((name.to_string(), needle));
            }
        }
    }

    /// Whose secret is among these bytes.
    pub fn find(&self, bytes: &[u8]) -> Option<&str> {
        let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        self.0.iter().find(|(_, needle)| holds(needle)).map(|(name, _)| name.as_str())
    }

    /// A reader that fails when a secret passes.
    pub fn watch<R: Read>(&self, reader: R) -> Watched<'_, R> {
        let longest = self.0.iter().map(|(_, needle)| needle.len()).max().unwrap_or(0);
        Watched { secrets: self, reader, tail: Vec::new(), longest }
    }
}

/// A reader that fails when a secret passes.
pub struct Watched<'s, R> {
    secrets: &'s Secrets,
    reader: R,
    /// The last bytes that passed, for a secret that two reads share.
    tail: Vec<u8>,
    longest: usize,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        if self.longest == 0 {
            return Ok(count);
        }
        self.tail.extend_from_slice(&buffer[..count]);
        if let Some(name) = self.secrets.find(&self.tail) {
            return Err(std::io::Error::other(format!(
                "it holds the secret of {name}, which no image may have"
            )));
        }
        let keep = self.tail.len().min(self.longest - 1);
        self.tail.drain(..self.tail.len() - keep);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_wherever_reads_cut_it() {
        let mut secrets = Secrets::default();
        secrets.add("token", b"s3cret-token\n");
        let mut text = vec![b'x'; 300];
        text[150..162].copy_from_slice(b"s3cret-token");
        for size in 1..20 {
            let mut reader = secrets.watch(&text[..]);
            let mut buffer = vec![0; size];
            let found = loop {
                match reader.read(&mut buffer) {
                    Ok(0) => break false,
                    Ok(_) => {}
                    Err(error) => break error.to_string().contains("the secret of token"),
                }
            };
            assert!(found, "reads of {size}");
        }
        text[155] = b'?';
        assert_eq!(std::io::copy(&mut secrets.watch(&text[..]), &mut std::io::sink()).ok(), Some(300));
    }
}
