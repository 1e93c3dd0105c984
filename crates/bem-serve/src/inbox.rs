//! The file that acknowledges: inputs lie here, synced, until the ledger holds them.
//!
//! A commit of the ledger takes several syncs, a group of inputs one. After a crash whatever is here and not in the ledger takes
//! effect again, in the same order; a frame that was cut off was never acknowledged. The file is filled with zeros when it is
//! made, so that a sync need not write its length. There are two: while one is written, the ledger catches up with the other,
//! which then begins anew. Their bytes are bound to one history. Must not know what inputs are. Clauses: LOG-1, SCC-9; decision D-69.
//!
//! ```text
//! header   "BEMINBX1", instance (32)
//! frame    length u32, first number u64, count u32, check (16), payload
//! ```

use anyhow::{Context, Result, bail};
use bem_base::digest::{Digest, hash_parts};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"BEMINBX1";
const HEADER: u64 = 40;
const FRAME: usize = 32;
/// Bytes of a new file; it begins anew above this.
const ROOM: u64 = 16 << 20;
/// A file larger than this is none of ours.
const BYTES_MAX: u64 = 1 << 30;
/// The largest payload of a frame.
const PAYLOAD_MAX: usize = 64 << 20;

/// Both files.
#[derive(Debug)]
pub struct Inbox {
    files: [InboxFile; 2],
    active: usize,
}

/// One of them.
#[derive(Debug)]
struct InboxFile {
    path: PathBuf,
    file: File,
    instance: Digest,
    /// Where the next frame goes.
    end: u64,
    /// The number of the last input in it; zero if there is none.
    last: u64,
}

/// A group of inputs that was acknowledged.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// The number of its first input.
    pub first: u64,
    /// How many there are.
    pub count: u32,
    /// Their bytes.
    pub payload: Vec<u8>,
}

fn check(instance: &Digest, head: &[u8], payload: &[u8]) -> [u8; 16] {
    let digest = hash_parts("bem/inbox", &[instance.as_bytes(), head, payload]);
    let mut check = [0; 16];
    check.copy_from_slice(&digest.as_bytes()[..16]);
    check
}

fn head(first: u64, count: u32, length: usize) -> [u8; 16] {
    let mut head = [0; 16];
    head[..4].copy_from_slice(&(length as u32).to_le_bytes());
    head[4..12].copy_from_slice(&first.to_le_bytes());
    head[12..].copy_from_slice(&count.to_le_bytes());
    head
}

impl Inbox {
    /// Opens the inbox of a history in this folder, or makes one, and reads the groups that were acknowledged and may not be in
    /// the ledger, in order.
    pub fn open(folder: &Path, instance: Digest) -> Result<(Inbox, Vec<Frame>)> {
        let (one, mut frames) = InboxFile::open(&folder.join("inbox-0"), instance)?;
        let (other, more) = InboxFile::open(&folder.join("inbox-1"), instance)?;
        frames.extend(more);
        frames.sort_by_key(|frame| frame.first);
        let active = usize::from(one.last < other.last);
        Ok((Inbox { files: [one, other], active }, frames))
    }

    /// Writes a group; it is acknowledged when [`Inbox::sync`] has returned.
    pub fn append(&mut self, first: u64, count: u32, payload: &[u8]) -> Result<()> {
        self.files[self.active].append(first, count, payload)
    }

    /// Returns when everything written is durable. After an error nothing may be acknowledged any more.
    pub fn sync(&mut self) -> Result<()> {
        self.files[self.active].sync()
    }

    /// Changes to the other file if this one is full and the ledger holds what is in the other: all inputs up to `covered`.
    pub fn turn(&mut self, covered: u64) -> Result<()> {
        let other = 1 - self.active;
        if self.files[self.active].end < ROOM - (1 << 20) || covered < self.files[other].last {
            return Ok(());
        }
        self.files[other].rewind()?;
        self.active = other;
        Ok(())
    }

    /// Begins anew: the ledger holds everything that is here.
    pub fn rewind(&mut self) -> Result<()> {
        self.files.iter_mut().try_for_each(InboxFile::rewind)
    }
}

impl InboxFile {
    fn open(path: &Path, instance: Digest) -> Result<(InboxFile, Vec<Frame>)> {
        let name = || path.display().to_string();
        if !path.exists() {
            make(path, &instance).with_context(name)?;
        }
        let file = OpenOptions::new().read(true).write(true).open(path).with_context(name)?;
        let length = file.metadata().with_context(name)?.len();
        if BYTES_MAX < length {
            bail!("{}: {length} bytes, at most {BYTES_MAX} are allowed", path.display());
        }
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, 0).with_context(name)?;
        if bytes.len() < HEADER as usize || &bytes[..8] != MAGIC || &bytes[8..40] != instance.as_bytes() {
            bail!("{} is the inbox of another history", path.display());
        }
        let (frames, end) = read_frames(&bytes, &instance);
        let last = frames.last().map_or(0, |frame| frame.first + u64::from(frame.count) - 1);
        Ok((InboxFile { path: path.to_path_buf(), file, instance, end: end as u64, last }, frames))
    }

    fn append(&mut self, first: u64, count: u32, payload: &[u8]) -> Result<()> {
        let head = head(first, count, payload.len());
        let mut frame = Vec::with_capacity(FRAME + payload.len());
        frame.extend_from_slice(&head);
        frame.extend_from_slice(&check(&self.instance, &head, payload));
        frame.extend_from_slice(payload);
        self.file.write_all_at(&frame, self.end).with_context(|| self.path.display().to_string())?;
        self.end += frame.len() as u64;
        self.last = first + u64::from(count) - 1;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data().with_context(|| self.path.display().to_string())
    }

    fn rewind(&mut self) -> Result<()> {
        // What was written before must not be taken for what comes after it: the first frame is made invalid.
        self.file.write_all_at(&[0; FRAME], HEADER).with_context(|| self.path.display().to_string())?;
        self.sync()?;
        (self.end, self.last) = (HEADER, 0);
        Ok(())
    }
}

fn make(path: &Path, instance: &Digest) -> Result<()> {
    let aside = path.with_extension("tmp");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let file = options.open(&aside)?;
    file.write_all_at(&vec![0; ROOM as usize], 0)?;
    file.write_all_at(MAGIC, 0)?;
    file.write_all_at(instance.as_bytes(), 8)?;
    file.sync_all()?;
    std::fs::rename(&aside, path)?;
    let folder = path.parent().context("an inbox lies in a folder")?;
    Ok(File::open(folder)?.sync_all()?)
}

/// The frames from the start on, as long as they fit together, and where they end.
fn read_frames(bytes: &[u8], instance: &Digest) -> (Vec<Frame>, usize) {
    let (mut frames, mut place): (Vec<Frame>, usize) = (Vec::new(), HEADER as usize);
    while let Some(frame) = bytes.get(place..place + FRAME) {
        let number = |range: core::ops::Range<usize>| {
            frame[range].iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let (length, first, count) = (number(0..4) as usize, number(4..12), number(12..16) as u32);
        let Some(payload) = bytes.get(place + FRAME..(place + FRAME).saturating_add(length)) else { break };
        let is_sound =
            0 < count && length <= PAYLOAD_MAX && frame[16..] == check(instance, &frame[..16], payload);
        let is_next = frames.last().is_none_or(|last| last.first + u64::from(last.count) == first);
        if !is_sound || !is_next {
            break;
        }
        frames.push(Frame { first, count, payload: payload.to_vec() });
        place += FRAME + length;
    }
    (frames, place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::digest::hash;

    #[test]
    fn groups_come_back_until_the_first_that_was_cut_off_and_old_ones_do_not_return() {
        let folder = tempfile::tempdir().unwrap();
        let (path, instance) = (folder.path(), hash(b"instance"));
        let (mut inbox, frames) = Inbox::open(path, instance).unwrap();
        assert!(frames.is_empty());
        (0..5u64).for_each(|group| inbox.append(1 + 3 * group, 3, &[group as u8; 70]).unwrap());
        inbox.sync().unwrap();
        let (mut inbox, frames) = Inbox::open(path, instance).unwrap();
        assert_eq!(frames.len(), 5);
        assert_eq!(frames[4], Frame { first: 13, count: 3, payload: vec![4; 70] });
        // Begun anew, with shorter groups: nothing of before comes back.
        inbox.rewind().unwrap();
        assert!(Inbox::open(path, instance).unwrap().1.is_empty());
        inbox.append(16, 1, &[9; 70]).unwrap();
        assert_eq!(Inbox::open(path, instance).unwrap().1.len(), 1);
        // Every single bit of the first frame counts.
        let whole = std::fs::read(path.join("inbox-0")).unwrap();
        for bit in 0..8 * (FRAME + 70) {
            let mut damaged = whole.clone();
            damaged[HEADER as usize + bit / 8] ^= 1 << (bit % 8);
            assert!(read_frames(&damaged, &instance).0.is_empty(), "bit {bit}");
        }
        // While the ledger lags behind, the other file is not touched; then it takes over.
        let (mut inbox, _) = Inbox::open(path, instance).unwrap();
        let mut number = 17;
        for round in 0..3 {
            for _ in 0..16 {
                inbox.append(number, 1, &vec![round; 1 << 20]).unwrap();
                number += 1;
            }
            // What was written to the other file before ends sixteen inputs ago.
            let active = inbox.active;
            if 0 < round {
                inbox.turn(number - 18).unwrap();
                assert_eq!(inbox.active, active);
            }
            inbox.turn(number - 17).unwrap();
            assert_eq!(inbox.active, 1 - active);
        }
        let frames = Inbox::open(path, instance).unwrap().1;
        assert_eq!(frames.last().map(|frame| frame.first), Some(number - 1));
        let error = Inbox::open(path, hash(b"other")).unwrap_err().to_string();
        assert!(error.ends_with("is the inbox of another history"), "{error}");
    }
}
