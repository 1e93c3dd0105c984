//! The read cache of files: bounded in bytes, least recently used first out, pinned nodes stay.
//!
//! A cached file counts only while size and time of change are what they were. Clause: TOOL-5.

use bem_base::ids::ObjectId;
use std::collections::BTreeMap;

/// Tells whether a file is still the one that was read.
pub type Stamp = (u64, i64);

/// A file's bytes, with the state in which they were read.
struct Kept {
    bytes: Vec<u8>,
    stamp: Stamp,
    used: u64,
    is_pinned: bool,
}

/// Whole files, by node.
pub struct Cache {
    limit: usize,
    bytes: usize,
    uses: u64,
    kept: BTreeMap<ObjectId, Kept>,
    /// Reads answered from here.
    pub hits: u64,
    /// Reads that were not.
    pub misses: u64,
}

impl Cache {
    /// An empty cache of at most so many bytes.
    pub fn new(limit: usize) -> Cache {
        Cache { limit, bytes: 0, uses: 0, kept: BTreeMap::new(), hits: 0, misses: 0 }
    }

    /// The contents of a node, if they are here and still hold.
    pub fn get(&mut self, node: ObjectId, stamp: Stamp) -> Option<&[u8]> {
        if self.kept.get(&node).is_some_and(|kept| kept.stamp != stamp) {
            self.forget(node);
        }
        self.uses += 1;
        match self.kept.get_mut(&node) {
            Some(kept) => {
                kept.used = self.uses;
                self.hits += 1;
                Some(&kept.bytes)
            }
            None => {
                self.misses += 1;
                None
            }
        }
    }

    /// Keeps contents, if there is room for them.
    pub fn put(&mut self, node: ObjectId, stamp: Stamp, bytes: Vec<u8>, is_pinned: bool) {
        self.forget(node);
        let pinned: usize =
            self.kept.values().filter(|kept| kept.is_pinned).map(|kept| kept.bytes.len()).sum();
        if self.limit < bytes.len() + pinned {
            return;
        }
        while self.limit < self.bytes + bytes.len() {
            let oldest =
                self.kept.iter().filter(|(_, kept)| !kept.is_pinned).min_by_key(|(_, kept)| kept.used);
            let Some((oldest, _)) = oldest else { return };
            self.forget(*oldest);
        }
        self.uses += 1;
        self.bytes += bytes.len();
        self.kept.insert(node, Kept { bytes, stamp, used: self.uses, is_pinned });
    }

    /// What was written is not kept any more.
    pub fn forget(&mut self, node: ObjectId) {
        if let Some(kept) = self.kept.remove(&node) {
            self.bytes -= kept.bytes.len();
        }
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::ids::ObjectClass;

    #[test]
    fn the_least_recently_used_goes_first_and_pinned_ones_stay() {
        let node = |number| ObjectId::new(ObjectClass::FsNode, number);
        let mut cache = Cache::new(100);
        cache.put(node(1), (40, 1), vec![1; 40], true);
        cache.put(node(2), (30, 1), vec![2; 30], false);
        cache.put(node(3), (30, 1), vec![3; 30], false);
        assert!(cache.get(node(2), (30, 1)).is_some());
        cache.put(node(4), (30, 1), vec![4; 30], false);
        assert!(cache.get(node(3), (30, 1)).is_none(), "it was used longest ago");
        assert!(cache.get(node(1), (40, 1)).is_some() && cache.get(node(2), (30, 1)).is_some());
        cache.put(node(5), (61, 1), vec![5; 61], false);
        assert!(cache.get(node(5), (61, 1)).is_none(), "what does not fit beside pinned ones is not kept");
        assert!(cache.get(node(2), (31, 2)).is_none(), "a file that has changed is read again");
        assert!(cache.bytes() <= 100);
    }
}
