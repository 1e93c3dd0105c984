//! The container of a snapshot: named parts, each under a digest, verified before any byte of them is used.
//!
//! What the parts mean is the engine's business; that they are the bytes that were written, belong to this history and
//! to this point of it, is checked here. `encode(decode(bytes)) == bytes`. Clauses: LOG-4; decision D-19.

use crate::archive::Archived;
use crate::chain::ChainHead;
use crate::entry::Entry;
use crate::error::{LedgerError, StoreError};
use crate::limits::{PART_NAME_MAX, SNAPSHOT_BYTES_MAX, SNAPSHOT_PARTS_MAX};
use crate::log::Log;
use crate::merkle::leaf_hash;
use crate::reader::EntryReader;
use crate::store::Store;
use bem_base::digest::{Digest, hash};
use bem_base::encode::{DecodeError, Reader, Writer};

const MAGIC: &[u8; 8] = b"BEMSNAP1";

/// One named part of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// 1 to 64 of a-z, 0-9 and underscore.
    pub name: String,
    /// The engine's bytes.
    pub bytes: Vec<u8>,
}

/// A snapshot whose every digest has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Whose state.
    pub instance: Digest,
    /// Entries of the log at that moment.
    pub entries: u64,
    /// Chain head over them.
    pub head: ChainHead,
    /// Step at that moment.
    pub step: u64,
    /// The state, names strictly ascending.
    pub parts: Vec<Part>,
}

/// The file name of the snapshot after this many entries.
pub fn snapshot_name(entries: u64) -> String {
    format!("snapshot-{entries:017}.snap")
}

/// The number of entries in a snapshot's name, if it is one.
pub fn snapshot_entries(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("snapshot-")?.strip_suffix(".snap")?;
    let entries = digits.parse().ok()?;
    (snapshot_name(entries) == name).then_some(entries)
}

fn name_is_good(name: &str) -> bool {
    let letters = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    letters && (1..=PART_NAME_MAX).contains(&name.len())
}

impl Snapshot {
    /// The bytes of the file, and the manifest digest that names it.
    pub fn to_bytes(&self) -> (Vec<u8>, Digest) {
        assert!(self.parts.len() <= SNAPSHOT_PARTS_MAX);
        assert!(self.parts.is_sorted_by(|left, right| left.name < right.name));
        let mut writer = Writer::new();
        writer.raw(MAGIC);
        writer.length(self.parts.len());
        writer.u32(0);
        writer.u64(self.entries);
        writer.u64(self.step);
        writer.raw(self.instance.as_bytes());
        writer.raw(self.head.digest().as_bytes());
        for part in &self.parts {
            assert!(name_is_good(&part.name), "a part may not be called {:?}", part.name);
            writer.text(&part.name);
            writer.u64(part.bytes.len() as u64);
            writer.raw(hash(&part.bytes).as_bytes());
        }
        let manifest = hash(writer.as_bytes());
        writer.raw(manifest.as_bytes());
        self.parts.iter().for_each(|part| writer.raw(&part.bytes));
        (writer.into_bytes(), manifest)
    }

    /// Reads a file and checks every digest in it. Returns the manifest digest too.
    pub fn from_bytes(bytes: &[u8]) -> Result<(Snapshot, Digest), DecodeError> {
        let mut reader = Reader::new(bytes);
        let error = reader.error("not a snapshot");
        if reader.raw(8)? != MAGIC {
            return Err(error);
        }
        let count = reader.u32()? as usize;
        let error = reader.error("a reserved field that is not zero, or more than 64 parts");
        if reader.u32()? != 0 || SNAPSHOT_PARTS_MAX < count {
            return Err(error);
        }
        let (entries, step) = (reader.u64()?, reader.u64()?);
        let instance = Digest::decode(&mut reader)?;
        let head = ChainHead::from_digest(Digest::decode(&mut reader)?);
        let mut declared: Vec<(String, u64, Digest)> = Vec::with_capacity(count);
        for _ in 0..count {
            let error = reader.error("a part's name that is not allowed or out of order");
            let name = reader.text()?;
            if !name_is_good(name) || declared.last().is_some_and(|(last, ..)| name <= last.as_str()) {
                return Err(error);
            }
            declared.push((name.to_owned(), reader.u64()?, Digest::decode(&mut reader)?));
        }
        let manifest = hash(&bytes[..reader.position()]);
        let error = reader.error("a manifest that does not have its digest");
        if Digest::decode(&mut reader)? != manifest {
            return Err(error);
        }
        let parts = read_parts(&mut reader, declared)?;
        reader.finish()?;
        Ok((Snapshot { instance, entries, head, step, parts }, manifest))
    }

    /// The bytes of the part with this name.
    pub fn part(&self, name: &str) -> Option<&[u8]> {
        self.parts.iter().find(|part| part.name == name).map(|part| part.bytes.as_slice())
    }
}

fn read_parts(
    reader: &mut Reader<'_>,
    declared: Vec<(String, u64, Digest)>,
) -> Result<Vec<Part>, DecodeError> {
    let mut parts = Vec::with_capacity(declared.len());
    for (name, size, digest) in declared {
        let error = reader.error("a part that does not have its digest");
        let size = usize::try_from(size).map_err(|_| reader.error("a part too large for this machine"))?;
        let bytes = reader.raw(size)?.to_vec();
        if hash(&bytes) != digest {
            return Err(error);
        }
        parts.push(Part { name, bytes });
    }
    Ok(parts)
}

impl<S: Store> Log<S> {
    /// Writes a snapshot of the state at this moment, marks it in the log and commits, then removes the files of all but
    /// the newest `kept`, as the marker says. Returns its file name.
    pub fn write_snapshot(&mut self, step: u64, parts: Vec<Part>, kept: u8) -> Result<String, LedgerError> {
        assert!(0 < kept, "the newest snapshot is kept");
        self.check_running()?;
        let (instance, entries, head) = (self.instance(), self.size(), self.head());
        let (bytes, manifest) = Snapshot { instance, entries, head, step, parts }.to_bytes();
        let name = snapshot_name(entries);
        self.write_aside(&format!("{name}.tmp"), &bytes, &name)?;
        self.append(&Entry::Snapshot { step, manifest, size_bytes: bytes.len() as u64, kept })?;
        self.commit()?;
        self.thin_snapshots(usize::from(kept))?;
        Ok(name)
    }

    /// Writes the snapshot that the last entry marks once more, if these are its parts; false if they are not.
    ///
    /// A damaged newest snapshot is mended so after the state was derived again. Cost: one pass over the log.
    pub fn mend_snapshot(&mut self, step: u64, parts: Vec<Part>) -> Result<bool, LedgerError> {
        self.check_running()?;
        let mut reader = EntryReader::open(self.store_mut())?;
        let (mut head, mut before, mut last) = (ChainHead::start(), ChainHead::start(), Vec::new());
        while let Some(bytes) = reader.next(self.store_mut())? {
            (before, head) = (head, head.link(&leaf_hash(bytes)));
            last.clear();
            last.extend_from_slice(bytes);
        }
        let entries = reader.size().saturating_sub(1);
        let snapshot = Snapshot { instance: self.instance(), entries, head: before, step, parts };
        let (bytes, manifest) = snapshot.to_bytes();
        let is_marked = match Entry::from_bytes(&last) {
            Ok(Entry::Snapshot { step: marked, manifest: named, size_bytes, .. }) => {
                (marked, named, size_bytes) == (step, manifest, bytes.len() as u64)
            }
            _ => false,
        };
        if reader.size() != self.size() || !is_marked {
            return Ok(false);
        }
        let name = snapshot_name(entries);
        self.write_aside(&format!("{name}.tmp"), &bytes, &name)?;
        Ok(true)
    }

    /// Removes all but the newest `kept` snapshot files, which the newest marker allows.
    fn thin_snapshots(&mut self, kept: usize) -> Result<(), LedgerError> {
        let names: Vec<String> =
            self.store_mut().list()?.into_iter().filter(|name| snapshot_entries(name).is_some()).collect();
        for name in &names[..names.len().saturating_sub(kept)] {
            self.store_mut().remove(name)?;
        }
        Ok(())
    }
}

/// Reads one snapshot and checks it against the marker and the chain head that the log has at that point.
///
/// `marker` is the manifest digest of the log's snapshot entry at index `entries`, `head` the chain head before it.
pub fn load_snapshot<S: Store>(
    store: &mut S,
    name: &str,
    marker: &Digest,
    head: ChainHead,
) -> Result<Snapshot, LedgerError> {
    let refused = |reason: String| LedgerError::Snapshot { name: name.to_owned(), reason };
    let bytes = store.read_all(name, SNAPSHOT_BYTES_MAX)?;
    let (snapshot, manifest) = Snapshot::from_bytes(&bytes).map_err(|error| refused(error.to_string()))?;
    if manifest != *marker {
        return Err(refused("it is not the snapshot that the log marks".to_owned()));
    }
    if snapshot.head != head {
        return Err(refused("it was taken on another history".to_owned()));
    }
    if snapshot_name(snapshot.entries) != name {
        return Err(refused("its name does not say where it was taken".to_owned()));
    }
    Ok(snapshot)
}

/// The newest snapshot that can be used, and those that were passed over with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restorable {
    /// The snapshot; none if no marked snapshot is sound.
    pub snapshot: Option<Snapshot>,
    /// Newer ones that cannot be used: name and reason.
    pub rejected: Vec<(String, String)>,
}

/// Finds the newest snapshot that its marker in the log vouches for; a damaged one is passed over for the one before.
///
/// Cost: one pass over the log, because heads are derived and not believed.
pub fn latest_snapshot<S: Store>(store: &mut S) -> Result<Restorable, LedgerError> {
    let mut reader = EntryReader::open(store)?;
    let mut head = ChainHead::start();
    let (mut markers, mut named) = (Vec::new(), false);
    while let Some(bytes) = reader.next(store)? {
        let leaf = leaf_hash(bytes);
        let marked = Entry::from_bytes(bytes);
        let index = reader.position() - 1;
        if let Some(gap) = reader.gap().filter(|gap| gap.end == index) {
            head = gap.head;
        }
        let marked = marked.map_err(|source| LedgerError::Entry { index, source })?;
        if let Entry::Snapshot { manifest, .. } = marked {
            markers.push((index, manifest, head));
        }
        named |= reader.gap().is_some_and(|gap| Archived::of(&marked).is_some_and(|one| one.covers(gap)));
        head = head.link(&leaf);
    }
    if let Some(gap) = reader.gap().filter(|_| !named) {
        return Err(gap.unnamed());
    }
    let mut rejected = Vec::new();
    for (entries, manifest, head) in markers.into_iter().rev() {
        let name = snapshot_name(entries);
        match load_snapshot(store, &name, &manifest, head) {
            Ok(snapshot) => return Ok(Restorable { snapshot: Some(snapshot), rejected }),
            // One that was thinned out is no cause for alarm.
            Err(LedgerError::Store(StoreError::Missing { .. })) => {}
            Err(error) => rejected.push((name, error.to_string())),
        }
    }
    Ok(Restorable { snapshot: None, rejected })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ENTRY_BYTES_MAX;
    use crate::log::LogOptions;
    use crate::store::MemoryStore;
    use crate::testing;

    fn example() -> Snapshot {
        let part = |name: &str, bytes: &[u8]| Part { name: name.to_owned(), bytes: bytes.to_vec() };
        Snapshot {
            instance: hash(b"instance"),
            entries: 12,
            head: ChainHead::from_digest(hash(b"head")),
            step: 99,
            parts: vec![part("bandit", b"statistics"), part("empty", b""), part("state", &[7; 100])],
        }
    }

    #[test]
    fn a_snapshot_comes_back_and_is_written_again_byte_for_byte() {
        let (bytes, manifest) = example().to_bytes();
        let (snapshot, digest) = Snapshot::from_bytes(&bytes).unwrap();
        assert_eq!((&snapshot, digest), (&example(), manifest));
        assert_eq!(snapshot.to_bytes().0, bytes);
        assert_eq!(snapshot.part("bandit"), Some(&b"statistics"[..]));
    }

    #[test]
    fn every_single_bit_flip_every_truncation_and_every_extension_is_found() {
        let (bytes, _) = example().to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Snapshot::from_bytes(&flipped).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(Snapshot::from_bytes(&bytes[..length]).is_err(), "length {length}");
        }
        assert!(Snapshot::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn a_damaged_snapshot_is_passed_over_for_the_one_before() {
        let options = LogOptions { segment_bytes: 1_000, ring_bytes: ENTRY_BYTES_MAX + 4 };
        let mut log =
            Log::create(MemoryStore::new(), testing::signer(), &testing::genesis(1), options).unwrap();
        let mut names = Vec::new();
        for step in 0..3u8 {
            let part = Part { name: "state".to_owned(), bytes: vec![step; 50] };
            names.push(log.write_snapshot(u64::from(step), vec![part], 3).unwrap());
        }
        let mut store = log.into_store();
        let step = |store: &mut MemoryStore| latest_snapshot(store).unwrap().snapshot.map(|found| found.step);
        assert_eq!(step(&mut store), Some(2));
        *store.files.get_mut(&names[2]).unwrap().last_mut().unwrap() ^= 1;
        let found = latest_snapshot(&mut store).unwrap();
        assert_eq!(found.snapshot.map(|found| found.step), Some(1));
        assert_eq!(found.rejected[0].0, names[2]);
        // Whoever has derived the state again can mend it, and only with the bytes that the log marks.
        let (mut log, _) = Log::open(store.clone(), testing::signer(), options).unwrap();
        let part = |byte| Part { name: "state".to_owned(), bytes: vec![byte; 50] };
        assert!(!log.mend_snapshot(2, vec![part(3)]).unwrap());
        assert!(log.mend_snapshot(2, vec![part(2)]).unwrap());
        assert_eq!(step(&mut log.into_store()), Some(2));
        store.files.remove(&names[1]);
        assert_eq!(step(&mut store), Some(0));
        // The newest file in the place of the oldest is not what the log marks there.
        let newest = store.files[&names[2]].clone();
        store.files.insert(names[0].clone(), newest);
        assert_eq!(step(&mut store), None);
    }
}
