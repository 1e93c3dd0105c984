//! The directory router: a linear signature of declared bits, and a decision tree over it whose leaves are the buckets.
//!
//! Bit j of the signature is the parity of a set of declared bits, so it is the same sum over GF(2) whether computed
//! for one lane or for 256 at once. A family starts with one bucket; a split adds one signature bit to one bucket
//! and leaves all others as they are; a join takes such a division back. A bucket is a subcube of signatures. Up to
//! [`TABLE_DEPTH_MAX`] signature bits a table over all signatures is derived from the subcubes, and compiled lanes use
//! it; beyond, the tree is walked. Must not know statistics. Clauses: VM-6, D-11, D-41.

mod codec;
mod tree;

use self::tree::Node;
pub use self::tree::TreePlace;
use super::signature::{SignatureCircuit, SignatureTable};
use super::{Candidates, RouteView, Router};
use bem_base::limits::{ARMS_MAX, BUCKETS_MAX, STATE_BITS_MAX};
use bem_base::prng::mix;

/// Signature bits up to which a table over all signatures is kept.
pub const TABLE_DEPTH_MAX: usize = BUCKETS_MAX.ilog2() as usize;
/// Signature bits that a directory can look at: as many as a word has.
pub const DEPTH_MAX: usize = 64;
/// Bits that a descriptor may declare.
pub const DECLARED_MAX: usize = 256;

/// A bit that routing may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteInput {
    /// A bit of STATE.
    State(u16),
    /// A bit of a SHARED word, the same for every lane.
    Shared {
        /// The word.
        address: u32,
        /// The bit.
        bit: u8,
    },
}

/// Why a directory refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// No such bucket.
    #[error("bucket {bucket} is out of range: the directory has {count}")]
    UnknownBucket {
        /// The bucket asked for.
        bucket: u16,
        /// Buckets there are.
        count: usize,
    },
    /// The bucket already depends on this bit.
    #[error("bucket {bucket} is already split by this bit")]
    AlreadySplit {
        /// The bucket asked for.
        bucket: u16,
    },
    /// All buckets are in use.
    #[error("all {maximum} buckets are in use (B)")]
    Full {
        /// Buckets there may be.
        maximum: usize,
    },
    /// All signature bits are in use.
    #[error("this directory looks at no more than {maximum} signature bits")]
    TooDeep {
        /// Signature bits there may be.
        maximum: usize,
    },
    /// A split needs at least one bit, and a directory cannot declare more than it can hold.
    #[error("{count} bits to split by: 1 to {DECLARED_MAX} may be declared")]
    Inputs {
        /// Bits given.
        count: usize,
    },
    /// Only buckets that one signature bit tells apart can be joined.
    #[error("buckets {one} and {other} are not the two sides of one test")]
    NotSiblings {
        /// The one.
        one: u16,
        /// The other.
        other: u16,
    },
    /// A bit that STATE does not have.
    #[error("state bit {bit} is out of range: STATE has {STATE_BITS_MAX}")]
    StateBit {
        /// The bit named.
        bit: u16,
    },
}

fn check_inputs(inputs: &[RouteInput]) -> Result<(), DirectoryError> {
    for input in inputs {
        if let RouteInput::State(bit) = *input
            && STATE_BITS_MAX <= usize::from(bit)
        {
            return Err(DirectoryError::StateBit { bit });
        }
    }
    Ok(())
}

/// The signatures of one bucket: those that have these values in the bits that it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subcube {
    /// The signature bits that the bucket depends on.
    pub depends_on: u64,
    /// Their values; all other bits are zero.
    pub pattern: u64,
}

/// How far a directory may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    buckets: usize,
    /// Signature bits: [`TABLE_DEPTH_MAX`] where lanes must find a table, else [`DEPTH_MAX`].
    depth: usize,
}

/// The routing descriptor of one family. Invariants: the subcubes of the buckets are the leaves of a decision tree over
/// signature bits; table and tree are derived from them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "ROUTE_DESC")]
pub struct Directory {
    inputs: Vec<RouteInput>,
    /// One column per declared bit: which signature bits it takes part in.
    columns: Vec<u64>,
    depth: usize,
    subcubes: Vec<Subcube>,
    limits: Limits,
    /// Derived: a bucket for every value of the signature bits; empty where there are too many of them.
    entries: Vec<u16>,
    /// Derived: the decision tree, parents before children, the even side first.
    nodes: Vec<Node>,
}

impl Directory {
    /// One bucket for everything: the family alone decides. It never grows beyond what a table holds.
    pub fn new(buckets_max: usize) -> Directory {
        Directory::whole(Limits { buckets: buckets_max, depth: TABLE_DEPTH_MAX })
    }

    /// One bucket for everything, which may grow beyond what a table holds: for one lane at a time.
    pub fn deep(buckets_max: usize) -> Directory {
        Directory::whole(Limits { buckets: buckets_max, depth: DEPTH_MAX })
    }

    fn whole(limits: Limits) -> Directory {
        assert!((1..=BUCKETS_MAX).contains(&limits.buckets), "{} buckets", limits.buckets);
        let whole = vec![Subcube { depends_on: 0, pattern: 0 }];
        Directory::derive(Vec::new(), Vec::new(), 0, whole, limits).expect("one leaf is a tree")
    }

    /// `2^depth` buckets by a hash of the declared bits: the first seed's `k_t mod B`, with fixed odd columns.
    pub fn hashed(inputs: &[RouteInput], depth: usize, salt: u64) -> Result<Directory, DirectoryError> {
        if TABLE_DEPTH_MAX < depth {
            return Err(DirectoryError::TooDeep { maximum: TABLE_DEPTH_MAX });
        }
        if inputs.is_empty() || DECLARED_MAX < inputs.len() {
            return Err(DirectoryError::Inputs { count: inputs.len() });
        }
        check_inputs(inputs)?;
        let low = (1u64 << depth) - 1;
        let columns = (0..inputs.len() as u64).map(|index| mix(salt ^ mix(index + 1)) & low).collect();
        let subcubes = (0..1 << depth).map(|pattern| Subcube { depends_on: low, pattern }).collect();
        let limits = Limits { buckets: BUCKETS_MAX, depth: TABLE_DEPTH_MAX };
        let directory = Directory::derive(inputs.to_vec(), columns, depth, subcubes, limits);
        Ok(directory.expect("all signatures are the leaves of a full tree"))
    }

    /// A directory with these buckets; nothing if they are not the leaves of a decision tree.
    fn derive(
        inputs: Vec<RouteInput>,
        columns: Vec<u64>,
        depth: usize,
        subcubes: Vec<Subcube>,
        limits: Limits,
    ) -> Option<Directory> {
        let nodes = tree::nodes_of(&subcubes)?;
        let mut entries = Vec::new();
        if depth <= TABLE_DEPTH_MAX {
            entries = (0..1u64 << depth).map(|signature| tree::walk(&nodes, signature)).collect();
        }
        Some(Directory { inputs, columns, depth, subcubes, limits, entries, nodes })
    }

    /// The signature bit that is the parity of exactly these declared bits, if there is one.
    fn position_of(&self, by: &[RouteInput]) -> Option<usize> {
        let is_it = |position: &usize| {
            let members = self.inputs.iter().zip(&self.columns);
            let members = members.filter(|(_, column)| **column >> position & 1 == 1);
            let mut count = 0;
            members.inspect(|_| count += 1).all(|(input, _)| by.contains(input)) && count == by.len()
        };
        (0..self.depth).find(is_it)
    }

    /// Splits one bucket by the parity of some bits: where it is odd, a new bucket takes over. Its index is returned.
    ///
    /// The other buckets keep their meaning and their index.
    #[doc(alias = "SPLIT")]
    pub fn split(&mut self, bucket: u16, by: &[RouteInput]) -> Result<u16, DirectoryError> {
        let count = self.subcubes.len();
        if count <= usize::from(bucket) {
            return Err(DirectoryError::UnknownBucket { bucket, count });
        }
        if self.limits.buckets <= count {
            return Err(DirectoryError::Full { maximum: self.limits.buckets });
        }
        check_inputs(by)?;
        let mut by = by.to_vec();
        by.sort_unstable();
        by.dedup();
        let fresh = by.iter().filter(|input| !self.inputs.contains(input)).count();
        if by.is_empty() || DECLARED_MAX < self.inputs.len() + fresh {
            return Err(DirectoryError::Inputs { count: by.len() });
        }
        let position = self.position_of(&by).unwrap_or(self.depth);
        if self.limits.depth <= position {
            return Err(DirectoryError::TooDeep { maximum: self.limits.depth });
        }
        let Subcube { depends_on, pattern } = self.subcubes[usize::from(bucket)];
        if depends_on >> position & 1 == 1 {
            return Err(DirectoryError::AlreadySplit { bucket });
        }
        let mut after = self.clone();
        if position == self.depth {
            for input in by {
                let known = after.inputs.iter().position(|have| *have == input);
                let index = known.unwrap_or_else(|| {
                    after.inputs.push(input);
                    after.columns.push(0);
                    after.inputs.len() - 1
                });
                after.columns[index] |= 1 << position;
            }
            after.depth += 1;
        }
        let depends_on = depends_on | 1 << position;
        after.subcubes[usize::from(bucket)] = Subcube { depends_on, pattern };
        after.subcubes.push(Subcube { depends_on, pattern: pattern | 1 << position });
        *self = after.derived().expect("a divided leaf leaves a tree");
        Ok(count as u16)
    }

    /// Joins two buckets that one signature bit tells apart; the whole has the lower index, and those above the higher one
    /// move down by one. Signature bits that no bucket depends on any more go.
    #[doc(alias = "MERGE")]
    pub fn join(&mut self, one: u16, other: u16) -> Result<(), DirectoryError> {
        let count = self.subcubes.len();
        for bucket in [one, other] {
            if count <= usize::from(bucket) {
                return Err(DirectoryError::UnknownBucket { bucket, count });
            }
        }
        let (low, high) = (usize::from(one.min(other)), usize::from(one.max(other)));
        let (first, second) = (self.subcubes[low], self.subcubes[high]);
        let apart = first.pattern ^ second.pattern;
        let apart_error = DirectoryError::NotSiblings { one, other };
        if first.depends_on != second.depends_on || !apart.is_power_of_two() {
            return Err(apart_error);
        }
        let mut after = self.clone();
        after.subcubes[low] =
            Subcube { depends_on: first.depends_on & !apart, pattern: first.pattern & !apart };
        after.subcubes.remove(high);
        after.drop_idle_bits();
        *self = after.derived().ok_or(apart_error)?;
        Ok(())
    }

    /// Takes out the signature bits that no bucket depends on, and the declared bits that then take part in none.
    fn drop_idle_bits(&mut self) {
        let used = self.subcubes.iter().fold(0, |used, subcube| used | subcube.depends_on);
        let squeeze = |bits: u64| {
            let kept = (0..DEPTH_MAX).filter(|bit| used >> bit & 1 == 1);
            kept.enumerate().fold(0, |sum, (place, bit)| sum | (bits >> bit & 1) << place)
        };
        self.depth = used.count_ones() as usize;
        for subcube in &mut self.subcubes {
            *subcube = Subcube { depends_on: squeeze(subcube.depends_on), pattern: squeeze(subcube.pattern) };
        }
        let kept = self.inputs.iter().zip(&self.columns);
        let kept = kept.map(|(input, column)| (*input, squeeze(*column))).filter(|(_, column)| *column != 0);
        (self.inputs, self.columns) = kept.unzip();
    }

    /// The same with table and tree derived again; nothing if there is no such tree.
    fn derived(self) -> Option<Directory> {
        let Directory { inputs, columns, depth, subcubes, limits, .. } = self;
        Directory::derive(inputs, columns, depth, subcubes, limits)
    }

    /// How many buckets there are.
    pub fn bucket_count(&self) -> usize {
        self.subcubes.len()
    }

    /// How many buckets there may be.
    pub fn buckets_max(&self) -> usize {
        self.limits.buckets
    }

    /// How many signature bits are looked at.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The declared bits.
    pub fn inputs(&self) -> &[RouteInput] {
        &self.inputs
    }

    /// For every declared bit, the signature bits it takes part in.
    pub fn columns(&self) -> &[u64] {
        &self.columns
    }

    /// The declared bits whose parity this signature bit is.
    pub fn parity(&self, position: usize) -> impl Iterator<Item = RouteInput> {
        let members = self.inputs.iter().zip(&self.columns);
        members.filter(move |(_, column)| **column >> position & 1 == 1).map(|(input, _)| *input)
    }

    /// A bucket for every value of the signature; empty beyond [`TABLE_DEPTH_MAX`] signature bits.
    pub fn entries(&self) -> &[u16] {
        &self.entries
    }

    /// The signature bits that a bucket depends on, and their values: the bucket is this subcube of signatures.
    pub fn subcube(&self, bucket: u16) -> Subcube {
        self.subcubes[usize::from(bucket)]
    }

    /// The signature of one lane: the exclusive or of the columns of the declared bits that are set.
    #[inline]
    #[doc(alias = "SIG")]
    pub fn signature(&self, mut is_set: impl FnMut(RouteInput) -> bool) -> u64 {
        self.inputs.iter().zip(&self.columns).fold(0, |signature, (input, column)| {
            signature ^ column & u64::from(is_set(*input)).wrapping_neg()
        })
    }

    /// The same signatures by tables: one look per byte of the lowest `width` state bits, the rest bit by bit.
    pub fn tabulate(&self, width: usize) -> SignatureTable {
        SignatureTable::new(&self.inputs, &self.columns, width)
    }

    /// The same signatures for 256 lanes at once, as compiled code.
    pub fn compile(&self) -> SignatureCircuit {
        SignatureCircuit::new(&self.inputs, &self.columns)
    }

    /// The bucket of a signature. Cost: one load, or one look per tested bit where there is no table.
    #[inline]
    pub fn bucket(&self, signature: u64) -> u16 {
        if self.entries.is_empty() {
            return tree::walk(&self.nodes, signature);
        }
        self.entries[signature as usize & (self.entries.len() - 1)]
    }
}

impl Router for Directory {
    fn query(&self, view: &impl RouteView, candidates: &mut Candidates) {
        *candidates = Candidates::EMPTY;
        let signature = self.signature(|input| match input {
            RouteInput::State(bit) => view.state_bit(bit),
            RouteInput::Shared { address, bit } => view.shared_bit(address, bit),
        });
        candidates.bucket = self.bucket(signature);
        for arm in 0..ARMS_MAX as u32 {
            candidates.push(arm);
        }
        candidates.work = (self.inputs.len() + self.walk_max()) as u32;
    }

    fn work_max(&self) -> u32 {
        (DECLARED_MAX + DEPTH_MAX) as u32
    }
}

impl Directory {
    /// Looks that finding a bucket takes at most.
    fn walk_max(&self) -> usize {
        if self.entries.is_empty() { self.depth } else { 1 }
    }
}

#[cfg(test)]
mod tests;
