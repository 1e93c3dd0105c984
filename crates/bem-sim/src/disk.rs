//! A disk that keeps the two truths apart: what programs see, and what would survive a power loss.
//!
//! Every write, truncation and change of a name stays pending until it is synced. A power loss keeps everything synced
//! and an arbitrary part of the rest: some changes and not others, out of order, writes torn at sectors, holes filled
//! with zeros. Only a rename is all or nothing. A process that is merely killed loses nothing: what it wrote is still
//! seen, and still pending.

use bem_base::prng::Prng;
use std::collections::BTreeMap;

const SECTOR_BYTES: usize = 512;

/// A change of a file's content that has not been synced.
#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

/// A change of names that has not been synced.
#[derive(Clone, Debug)]
enum NameChange {
    Link { name: String, file: u64 },
    Unlink { name: String },
    Rename { from: String, to: String, file: u64 },
}

#[derive(Clone, Debug, Default)]
struct SimFile {
    durable: Vec<u8>,
    seen: Vec<u8>,
    pending: Vec<Change>,
}

/// How much of what was pending a power loss kept, for the published counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossReport {
    /// Changes that were lost.
    pub lost: u64,
    /// Changes that were kept although they were never synced.
    pub kept: u64,
    /// Writes of which some sectors were kept and some lost.
    pub torn: u64,
    /// Files whose changes were kept in another order.
    pub reordered: u64,
    /// Names that went back to what they were.
    pub names_lost: u64,
}

/// Files and names, seen and durable.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    files: BTreeMap<u64, SimFile>,
    names: BTreeMap<String, u64>,
    names_durable: BTreeMap<String, u64>,
    names_pending: Vec<NameChange>,
    next_file: u64,
}

impl Disk {
    /// An empty disk.
    pub fn new() -> Disk {
        Disk::default()
    }

    /// All names that are seen.
    pub fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    /// The content that is seen under a name.
    pub fn content(&self, name: &str) -> Option<&[u8]> {
        Some(&self.files[self.names.get(name)?].seen)
    }

    /// Makes an empty file or empties the one there.
    pub fn create(&mut self, name: &str) {
        if let Some(&file) = self.names.get(name) {
            self.change(file, Change::Truncate { length: 0 });
            return;
        }
        let file = self.next_file;
        self.next_file += 1;
        self.files.insert(file, SimFile::default());
        self.names.insert(name.to_owned(), file);
        self.names_pending.push(NameChange::Link { name: name.to_owned(), file });
    }

    /// Writes; the file must be there.
    pub fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) {
        let change = Change::Write { offset: offset as usize, bytes: bytes.to_vec() };
        self.change(self.names[name], change);
    }

    /// Cuts a file; it must be there.
    pub fn truncate(&mut self, name: &str, length: u64) {
        self.change(self.names[name], Change::Truncate { length: length as usize });
    }

    fn change(&mut self, file: u64, change: Change) {
        let file = self.files.get_mut(&file).expect("names lead to files");
        apply(&mut file.seen, &change);
        file.pending.push(change);
    }

    /// Gives a file another name; it must be there.
    pub fn rename(&mut self, from: &str, to: &str) {
        let file = self.names.remove(from).expect("the caller has looked");
        self.names.insert(to.to_owned(), file);
        self.names_pending.push(NameChange::Rename { from: from.to_owned(), to: to.to_owned(), file });
    }

    /// Removes a name.
    pub fn remove(&mut self, name: &str) {
        self.names.remove(name);
        self.names_pending.push(NameChange::Unlink { name: name.to_owned() });
    }

    /// Makes a file's content durable.
    pub fn sync_file(&mut self, name: &str) {
        let file = self.files.get_mut(&self.names[name]).expect("names lead to files");
        for change in file.pending.drain(..) {
            apply(&mut file.durable, &change);
        }
    }

    /// Makes all names durable.
    pub fn sync_directory(&mut self) {
        for change in self.names_pending.drain(..) {
            apply_name(&mut self.names_durable, &change);
        }
    }

    /// A sync that failed: the changes are still seen, will never be written, and a later sync will not say so.
    pub fn fail_file_sync(&mut self, name: &str) {
        self.files.get_mut(&self.names[name]).expect("names lead to files").pending.clear();
    }

    /// A directory sync that failed, in the same way.
    pub fn fail_directory_sync(&mut self) {
        self.names_pending.clear();
    }

    /// A write that the disk took and threw away, or put elsewhere, without a word. Returns whether anything changed.
    pub fn forget_last_write(&mut self, name: &str, misplace_by: Option<usize>) -> bool {
        let file = self.files.get_mut(&self.names[name]).expect("names lead to files");
        let Some(position) = file.pending.iter().rposition(|change| matches!(change, Change::Write { .. }))
        else {
            return false;
        };
        let Change::Write { offset, bytes } = file.pending.remove(position) else { return false };
        if let Some(distance) = misplace_by {
            let offset = offset.saturating_sub(distance);
            file.pending.insert(position, Change::Write { offset, bytes });
        }
        file.seen.clone_from(&file.durable);
        for change in &file.pending {
            apply(&mut file.seen, change);
        }
        true
    }

    /// One bit of what is stored under a name turns over.
    pub fn rot(&mut self, name: &str, prng: &mut Prng) -> bool {
        let file = self.files.get_mut(&self.names[name]).expect("names lead to files");
        if file.durable.is_empty() {
            return false;
        }
        let bit = prng.below(file.durable.len() as u64 * 8) as usize;
        file.durable[bit / 8] ^= 1 << (bit % 8);
        if let Some(byte) = file.seen.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
        true
    }

    /// The power fails. What was pending is kept or lost as the random stream says; afterwards all is durable.
    pub fn lose_power(&mut self, prng: &mut Prng) -> LossReport {
        let mut report = LossReport::default();
        // Sometimes everything pending is lost, sometimes all is kept, mostly a part.
        let kept_of_four = prng.below(5);
        for change in core::mem::take(&mut self.names_pending) {
            if prng.below(4) < kept_of_four {
                report.kept += 1;
                apply_name(&mut self.names_durable, &change);
            } else {
                report.names_lost += 1;
            }
        }
        self.names = self.names_durable.clone();
        let linked: Vec<u64> = self.names.values().copied().collect();
        self.files.retain(|file, _| linked.contains(file));
        for file in self.files.values_mut() {
            file.lose_power(prng, kept_of_four, &mut report);
        }
        report
    }
}

impl SimFile {
    fn lose_power(&mut self, prng: &mut Prng, kept_of_four: u64, report: &mut LossReport) {
        let mut pending = core::mem::take(&mut self.pending);
        if 1 < pending.len() && prng.below(3) == 0 {
            prng.shuffle(&mut pending);
            report.reordered += 1;
        }
        for change in pending {
            match change {
                Change::Write { offset, bytes } if prng.below(3) == 0 => {
                    let mut sectors_kept = 0;
                    let mut start = 0;
                    while start < bytes.len() {
                        let to_border = SECTOR_BYTES - (offset + start) % SECTOR_BYTES;
                        let end = bytes.len().min(start + to_border);
                        if prng.bit() {
                            let bytes = bytes[start..end].to_vec();
                            apply(&mut self.durable, &Change::Write { offset: offset + start, bytes });
                            sectors_kept += end - start;
                        }
                        start = end;
                    }
                    let torn = 0 < sectors_kept && sectors_kept < bytes.len();
                    report.torn += u64::from(torn);
                    report.lost += u64::from(sectors_kept == 0);
                }
                change if prng.below(4) < kept_of_four => {
                    apply(&mut self.durable, &change);
                    report.kept += 1;
                }
                _ => report.lost += 1,
            }
        }
        self.seen.clone_from(&self.durable);
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes } => {
            content.resize(content.len().max(offset + bytes.len()), 0);
            content[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        Change::Truncate { length } => content.truncate(*length),
    }
}

fn apply_name(names: &mut BTreeMap<String, u64>, change: &NameChange) {
    match change {
        NameChange::Link { name, file } => {
            names.insert(name.clone(), *file);
        }
        NameChange::Unlink { name } => {
            names.remove(name);
        }
        NameChange::Rename { from, to, file } => {
            names.remove(from);
            names.insert(to.clone(), *file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synced_content_under_a_synced_name_survives_every_power_loss() {
        for seed in 0..200 {
            let mut disk = Disk::new();
            disk.create("kept");
            disk.write("kept", 0, b"promised");
            disk.sync_file("kept");
            disk.sync_directory();
            disk.write("kept", 8, &[7; 2_000]);
            disk.create("other");
            disk.lose_power(&mut Prng::stream(seed, "loss"));
            assert_eq!(&disk.content("kept").expect("the name was synced")[..8], b"promised");
        }
    }

    #[test]
    fn each_missing_sync_loses_something_for_some_seed() {
        let lost = |sync_file: bool, sync_directory: bool| {
            (0..200).any(|seed| {
                let mut disk = Disk::new();
                disk.create("file");
                disk.write("file", 0, b"content");
                if sync_file {
                    disk.sync_file("file");
                }
                if sync_directory {
                    disk.sync_directory();
                }
                disk.lose_power(&mut Prng::stream(seed, "loss"));
                disk.content("file") != Some(b"content")
            })
        };
        assert!(lost(false, true));
        assert!(lost(true, false));
        assert!(!lost(true, true));
    }

    #[test]
    fn a_failed_sync_is_seen_as_written_and_is_gone_after_the_power() {
        let mut disk = Disk::new();
        disk.create("file");
        disk.sync_directory();
        disk.write("file", 0, b"content");
        disk.fail_file_sync("file");
        disk.sync_file("file");
        assert_eq!(disk.content("file"), Some(&b"content"[..]));
        disk.lose_power(&mut Prng::stream(1, "loss"));
        assert_eq!(disk.content("file"), Some(&b""[..]));
    }
}
