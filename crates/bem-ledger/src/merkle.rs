//! RFC 6962 trees: a frontier that only grows, a full tree whose leaves can change, and proofs.
//!
//! The frontier serves the log (memory logarithmic in its length), the full tree serves the tables and whoever makes
//! proofs. Both give the same root as the definition in the RFC, which a test computes by recursion.
//! Clauses: LOG-2, LOG-3; decision D-17.

use bem_base::digest::{Digest, hash, hash_pair, hash_prefixed};

/// Hash of a leaf: the data behind a zero byte.
pub fn leaf_hash(data: &[u8]) -> Digest {
    hash_prefixed(0, data)
}

/// Hash of an inner node: both children behind a one byte.
pub fn node_hash(left: &Digest, right: &Digest) -> Digest {
    hash_pair(1, left, right)
}

/// The root of no leaves.
pub fn empty_root() -> Digest {
    hash(b"")
}

/// The roots of the complete subtrees of the leaves so far, largest first: enough to append and to give the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    peaks: Vec<Digest>,
}

impl Frontier {
    /// No leaves.
    pub fn new() -> Frontier {
        Frontier::default()
    }

    /// A frontier read from disk; the number of peaks must fit the size.
    pub fn from_peaks(size: u64, peaks: Vec<Digest>) -> Option<Frontier> {
        (peaks.len() == size.count_ones() as usize).then_some(Frontier { size, peaks })
    }

    /// Number of leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Roots of the complete subtrees, largest first.
    pub fn peaks(&self) -> &[Digest] {
        &self.peaks
    }

    /// Appends a leaf. Cost: one node on average.
    pub fn push(&mut self, leaf: Digest) {
        let mut node = leaf;
        for _ in 0..self.size.trailing_ones() {
            let left = self.peaks.pop().expect("one peak per one bit of the size");
            node = node_hash(&left, &node);
        }
        self.peaks.push(node);
        self.size += 1;
    }

    /// The root. Cost: one node per peak.
    pub fn root(&self) -> Digest {
        let mut peaks = self.peaks.iter().rev();
        match peaks.next() {
            None => empty_root(),
            Some(last) => peaks.fold(*last, |node, peak| node_hash(peak, &node)),
        }
    }
}

/// A whole tree in memory. Invariant: level `k` holds the hashes of all ranges of `2^k` leaves, where a node without a
/// right neighbour is carried up unchanged, which is the same as the RFC's definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    levels: Vec<Vec<Digest>>,
}

impl Tree {
    /// No leaves.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// A tree over these leaf hashes.
    pub fn from_leaves(leaves: Vec<Digest>) -> Tree {
        let mut levels = Vec::new();
        let mut level = leaves;
        while 1 < level.len() {
            let next = level.chunks(2).map(parent).collect();
            levels.push(core::mem::replace(&mut level, next));
        }
        if !level.is_empty() {
            levels.push(level);
        }
        Tree { levels }
    }

    /// Number of leaves.
    pub fn size(&self) -> u64 {
        self.levels.first().map_or(0, |leaves| leaves.len() as u64)
    }

    /// The root.
    pub fn root(&self) -> Digest {
        self.levels.last().map_or_else(empty_root, |top| top[0])
    }

    /// Changes a leaf, or appends one at the end. Cost: one node per level.
    pub fn set(&mut self, index: u64, leaf: Digest) {
        assert!(index <= self.size());
        let mut index = usize::try_from(index).expect("a tree in memory has indices that fit");
        let mut node = leaf;
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let nodes = &mut self.levels[level];
            if index == nodes.len() {
                nodes.push(node);
            } else {
                nodes[index] = node;
            }
            if nodes.len() == 1 {
                break;
            }
            let left = index & !1;
            node = parent(&nodes[left..nodes.len().min(left + 2)]);
            index /= 2;
        }
    }

    /// Root of the first `size` leaves.
    pub fn root_at(&self, size: u64) -> Digest {
        if size == 0 { empty_root() } else { self.range(0, size) }
    }

    /// Shows that leaf `index` is among the first `size`: siblings from the leaf up.
    pub fn prove_inclusion(&self, index: u64, size: u64) -> Vec<Digest> {
        assert!(index < size && size <= self.size());
        let mut proof = Vec::new();
        let (mut low, mut high) = (0, size);
        // From the root down; the RFC wants the order from the leaf up.
        while 1 < high - low {
            let middle = low + split(high - low);
            if index < middle {
                proof.push(self.range(middle, high));
                high = middle;
            } else {
                proof.push(self.range(low, middle));
                low = middle;
            }
        }
        proof.reverse();
        proof
    }

    /// Shows that the first `old` leaves are a prefix of the first `new`.
    pub fn prove_consistency(&self, old: u64, new: u64) -> Vec<Digest> {
        assert!(old <= new && new <= self.size());
        let mut proof = Vec::new();
        if old == 0 || old == new {
            return proof;
        }
        let (mut low, mut high, mut whole) = (0, new, true);
        while high != old {
            let middle = low + split(high - low);
            if old <= middle {
                proof.push(self.range(middle, high));
                high = middle;
            } else {
                proof.push(self.range(low, middle));
                low = middle;
                whole = false;
            }
        }
        if !whole {
            proof.push(self.range(low, high));
        }
        proof.reverse();
        proof
    }

    /// Root of leaves `low..high`, where the range is one that occurs in the RFC's recursion.
    fn range(&self, low: u64, high: u64) -> Digest {
        let size = high - low;
        if size.is_power_of_two() {
            let level = size.trailing_zeros() as usize;
            return self.levels[level][(low >> level) as usize];
        }
        let middle = low + split(size);
        node_hash(&self.range(low, middle), &self.range(middle, high))
    }
}

/// Largest power of two below `size`.
fn split(size: u64) -> u64 {
    assert!(1 < size);
    1 << (63 - (size - 1).leading_zeros())
}

fn parent(pair: &[Digest]) -> Digest {
    match pair {
        [left, right] => node_hash(left, right),
        [alone] => *alone,
        _ => unreachable!("chunks of one or two"),
    }
}

/// Checks a proof that `leaf` stands at `index` of the tree with this size and root.
pub fn verify_inclusion(leaf: &Digest, index: u64, size: u64, root: &Digest, proof: &[Digest]) -> bool {
    if size <= index {
        return false;
    }
    // RFC 9162, 2.1.3.2.
    let (mut position, mut last) = (index, size - 1);
    let mut node = *leaf;
    for sibling in proof {
        if last == 0 {
            return false;
        }
        if position & 1 == 1 || position == last {
            node = node_hash(sibling, &node);
            while position & 1 == 0 && position != 0 {
                position >>= 1;
                last >>= 1;
            }
        } else {
            node = node_hash(&node, sibling);
        }
        position >>= 1;
        last >>= 1;
    }
    last == 0 && node == *root
}

/// Checks a proof that the tree of size `old` is the beginning of the tree of size `new`.
pub fn verify_consistency(
    old: u64,
    new: u64,
    old_root: &Digest,
    new_root: &Digest,
    proof: &[Digest],
) -> bool {
    if new < old {
        return false;
    }
    if old == 0 {
        return proof.is_empty() && *old_root == empty_root();
    }
    if old == new {
        return proof.is_empty() && old_root == new_root;
    }
    // RFC 9162, 2.1.4.2. A complete old tree is its own first node and is not sent.
    let (first, rest) = match (old.is_power_of_two(), proof) {
        (true, rest) => (*old_root, rest),
        (false, [first, rest @ ..]) => (*first, rest),
        (false, []) => return false,
    };
    let shift = (old - 1).trailing_ones();
    let (mut position, mut last) = ((old - 1) >> shift, (new - 1) >> shift);
    let (mut old_node, mut new_node) = (first, first);
    for sibling in rest {
        if last == 0 {
            return false;
        }
        if position & 1 == 1 || position == last {
            old_node = node_hash(sibling, &old_node);
            new_node = node_hash(sibling, &new_node);
            while position & 1 == 0 && position != 0 {
                position >>= 1;
                last >>= 1;
            }
        } else {
            new_node = node_hash(&new_node, sibling);
        }
        position >>= 1;
        last >>= 1;
    }
    last == 0 && old_node == *old_root && new_node == *new_root
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(count: u64) -> Vec<Digest> {
        (0..count).map(|index| leaf_hash(&index.to_le_bytes())).collect()
    }

    /// The definition of RFC 6962, 2.1, word for word.
    fn root_by_definition(leaves: &[Digest]) -> Digest {
        match leaves {
            [] => empty_root(),
            [leaf] => *leaf,
            _ => {
                let middle = split(leaves.len() as u64) as usize;
                node_hash(&root_by_definition(&leaves[..middle]), &root_by_definition(&leaves[middle..]))
            }
        }
    }

    #[test]
    fn known_roots_of_the_certificate_transparency_test_data() {
        let data: [&[u8]; 3] = [b"", b"\x00", b"\x10"];
        let mut frontier = Frontier::new();
        assert_eq!(
            frontier.root().to_hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        let want = [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        ];
        for (leaf, want) in data.iter().zip(want) {
            frontier.push(leaf_hash(leaf));
            assert_eq!(frontier.root().to_hex(), want);
        }
    }

    #[test]
    fn frontier_and_tree_agree_with_the_definition_at_every_size() {
        let all = leaves(130);
        let (mut frontier, mut tree) = (Frontier::new(), Tree::new());
        for size in 0..=all.len() {
            let want = root_by_definition(&all[..size]);
            assert_eq!(frontier.root(), want, "frontier at {size}");
            assert_eq!(tree.root(), want, "tree at {size}");
            assert_eq!(Tree::from_leaves(all[..size].to_vec()), tree, "rebuilt at {size}");
            if size < all.len() {
                frontier.push(all[size]);
                tree.set(size as u64, all[size]);
            }
        }
        for size in 0..=130 {
            assert_eq!(tree.root_at(size), root_by_definition(&all[..size as usize]));
        }
    }

    #[test]
    fn a_changed_leaf_gives_the_root_of_a_tree_built_anew() {
        let mut all = leaves(77);
        let mut tree = Tree::from_leaves(all.clone());
        let mut prng = bem_base::prng::Prng::stream(1, "merkle");
        for round in 0..500u64 {
            let index = prng.below(77);
            all[index as usize] = leaf_hash(&round.to_be_bytes());
            tree.set(index, all[index as usize]);
            assert_eq!(tree.root(), root_by_definition(&all), "round {round}");
        }
    }

    #[test]
    fn every_inclusion_proof_up_to_65_leaves_holds_and_no_other_place_does() {
        let tree = Tree::from_leaves(leaves(65));
        for size in 1..=65 {
            let root = tree.root_at(size);
            for index in 0..size {
                let leaf = leaf_hash(&index.to_le_bytes());
                let proof = tree.prove_inclusion(index, size);
                assert!(verify_inclusion(&leaf, index, size, &root, &proof), "{index} of {size}");
                assert!(!verify_inclusion(&leaf, index + 1, size, &root, &proof));
                assert!(!verify_inclusion(&leaf, index, size, &tree.root_at(size - 1), &proof));
                let mut longer = proof.clone();
                longer.push(root);
                assert!(!verify_inclusion(&leaf, index, size, &root, &longer));
                if let [.., _] = proof.as_slice() {
                    assert!(!verify_inclusion(&leaf, index, size, &root, &proof[1..]));
                }
            }
        }
    }

    #[test]
    fn every_consistency_proof_up_to_65_leaves_holds_and_damaged_ones_do_not() {
        let tree = Tree::from_leaves(leaves(65));
        for new in 0..=65 {
            for old in 0..=new {
                let proof = tree.prove_consistency(old, new);
                let (old_root, new_root) = (tree.root_at(old), tree.root_at(new));
                assert!(verify_consistency(old, new, &old_root, &new_root, &proof), "{old} to {new}");
                for position in 0..proof.len() {
                    let mut damaged = proof.clone();
                    damaged[position] = leaf_hash(b"damage");
                    assert!(!verify_consistency(old, new, &old_root, &new_root, &damaged));
                }
                if 0 < old && old < new {
                    assert!(!verify_consistency(old, new, &new_root, &new_root, &proof));
                    assert!(!verify_consistency(old, new, &old_root, &old_root, &proof));
                    assert!(!verify_consistency(new, old, &new_root, &old_root, &proof));
                }
            }
        }
    }
}
