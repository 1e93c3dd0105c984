//! The directory router: a linear signature of declared bits, and an extendible directory over its low bits.
//!
//! Bit j of the signature is the parity of a set of declared bits, so it is the same sum over GF(2) whether computed
//! for one lane or for 256 at once. A family starts with one bucket; a split adds one signature bit to one bucket
//! and leaves all others as they are. Must not know statistics. Clauses: VM-6, D-11, D-33.

use super::signature::{SignatureCircuit, SignatureTable};
use super::{Candidates, RouteView, Router};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::limits::{ARMS_MAX, BUCKETS_MAX, STATE_BITS_MAX};
use bem_base::prng::mix;

/// Signature bits that a directory can look at.
pub const DEPTH_MAX: usize = BUCKETS_MAX.ilog2() as usize;
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
    #[error("a directory looks at no more than {DEPTH_MAX} signature bits")]
    TooDeep,
    /// A split needs at least one bit, and a directory cannot declare more than it can hold.
    #[error("{count} bits to split by: 1 to {DECLARED_MAX} may be declared")]
    Inputs {
        /// Bits given.
        count: usize,
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

/// The routing descriptor of one family. Invariants: every directory entry names a bucket; the entries of a bucket
/// agree on exactly the signature bits that the bucket depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "ROUTE_DESC")]
pub struct Directory {
    inputs: Vec<RouteInput>,
    /// One column per declared bit: which signature bits it takes part in.
    columns: Vec<u64>,
    depth: usize,
    entries: Vec<u16>,
    /// For every bucket, the signature bits it depends on.
    depends_on: Vec<u64>,
    buckets_max: usize,
}

impl Directory {
    /// One bucket for everything: the family alone decides.
    pub fn new(buckets_max: usize) -> Directory {
        assert!((1..=BUCKETS_MAX).contains(&buckets_max), "{buckets_max} buckets");
        Directory {
            inputs: Vec::new(),
            columns: Vec::new(),
            depth: 0,
            entries: vec![0],
            depends_on: vec![0],
            buckets_max,
        }
    }

    /// `2^depth` buckets by a hash of the declared bits: the first seed's `k_t mod B`, with fixed odd columns.
    pub fn hashed(inputs: &[RouteInput], depth: usize, salt: u64) -> Result<Directory, DirectoryError> {
        if DEPTH_MAX < depth {
            return Err(DirectoryError::TooDeep);
        }
        if inputs.is_empty() || DECLARED_MAX < inputs.len() {
            return Err(DirectoryError::Inputs { count: inputs.len() });
        }
        check_inputs(inputs)?;
        let low = (1u64 << depth) - 1;
        Ok(Directory {
            inputs: inputs.to_vec(),
            columns: (0..inputs.len() as u64).map(|index| mix(salt ^ mix(index + 1)) & low).collect(),
            depth,
            entries: (0..1 << depth).collect(),
            depends_on: vec![low; 1 << depth],
            buckets_max: BUCKETS_MAX,
        })
    }

    /// Splits one bucket by the parity of some bits: where it is odd, a new bucket takes over. Its index is returned.
    ///
    /// The other buckets keep their meaning and their index.
    #[doc(alias = "SPLIT")]
    pub fn split(&mut self, bucket: u16, by: &[RouteInput]) -> Result<u16, DirectoryError> {
        let count = self.depends_on.len();
        if count <= usize::from(bucket) {
            return Err(DirectoryError::UnknownBucket { bucket, count });
        }
        if self.buckets_max <= count {
            return Err(DirectoryError::Full { maximum: self.buckets_max });
        }
        check_inputs(by)?;
        let mut by = by.to_vec();
        by.sort_unstable();
        by.dedup();
        let known: Vec<Option<usize>> =
            by.iter().map(|input| self.inputs.iter().position(|have| have == input)).collect();
        let fresh = known.iter().filter(|place| place.is_none()).count();
        if by.is_empty() || DECLARED_MAX < self.inputs.len() + fresh {
            return Err(DirectoryError::Inputs { count: by.len() });
        }
        let same = |position: &usize| {
            let takes_part = |index: usize| self.columns[index] >> position & 1 == 1;
            (0..self.inputs.len()).all(|index| takes_part(index) == known.contains(&Some(index)))
                && fresh == 0
        };
        let position = (0..self.depth).find(same).unwrap_or(self.depth);
        if DEPTH_MAX <= position {
            return Err(DirectoryError::TooDeep);
        }
        if self.depends_on[usize::from(bucket)] >> position & 1 == 1 {
            return Err(DirectoryError::AlreadySplit { bucket });
        }
        if position == self.depth {
            for (input, place) in by.into_iter().zip(known) {
                let index = place.unwrap_or_else(|| {
                    self.inputs.push(input);
                    self.columns.push(0);
                    self.inputs.len() - 1
                });
                self.columns[index] |= 1 << position;
            }
            self.depth += 1;
            self.entries.extend_from_within(..);
        }
        let child = count as u16;
        for (signature, entry) in self.entries.iter_mut().enumerate() {
            if *entry == bucket && signature >> position & 1 == 1 {
                *entry = child;
            }
        }
        self.depends_on[usize::from(bucket)] |= 1 << position;
        self.depends_on.push(self.depends_on[usize::from(bucket)]);
        Ok(child)
    }

    /// How many buckets there are.
    pub fn bucket_count(&self) -> usize {
        self.depends_on.len()
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

    /// The directory itself: a bucket for every value of the low signature bits.
    pub fn entries(&self) -> &[u16] {
        &self.entries
    }

    /// The signature bits that a bucket depends on, and their values: the bucket is this subcube of signatures.
    pub fn subcube(&self, bucket: u16) -> (u64, u64) {
        let depends_on = self.depends_on[usize::from(bucket)];
        let first =
            self.entries.iter().position(|entry| *entry == bucket).expect("every bucket has an entry");
        (depends_on, first as u64 & depends_on)
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

    /// The bucket of a signature.
    #[inline]
    pub fn bucket(&self, signature: u64) -> u16 {
        self.entries[signature as usize & (self.entries.len() - 1)]
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.inputs.len());
        for (input, column) in self.inputs.iter().zip(&self.columns) {
            match input {
                RouteInput::State(bit) => {
                    writer.u8(0);
                    writer.u32(u32::from(*bit));
                    writer.u8(0);
                }
                RouteInput::Shared { address, bit } => {
                    writer.u8(1);
                    writer.u32(*address);
                    writer.u8(*bit);
                }
            }
            writer.u64(*column);
        }
        writer.u8(self.depth as u8);
        self.entries.iter().for_each(|entry| writer.u16(*entry));
        writer.length(self.depends_on.len());
        self.depends_on.iter().for_each(|bits| writer.u64(*bits));
        writer.u32(self.buckets_max as u32);
    }

    /// Reads canonical bytes and checks the invariants.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Directory, DecodeError> {
        let start = reader.clone();
        let (mut inputs, mut columns) = (Vec::new(), Vec::new());
        for _ in 0..reader.length(14)? {
            let unknown = reader.error("an unknown routing input");
            inputs.push(match (reader.u8()?, reader.u32()?, reader.u8()?) {
                (0, bit, 0) if bit < STATE_BITS_MAX as u32 => RouteInput::State(bit as u16),
                (1, address, bit) if bit < 64 => RouteInput::Shared { address, bit },
                _ => return Err(unknown),
            });
            columns.push(reader.u64()?);
        }
        let depth = usize::from(reader.u8()?);
        if DEPTH_MAX < depth || DECLARED_MAX < inputs.len() {
            return Err(start.error("a directory past its bounds"));
        }
        let entries = (0..1usize << depth).map(|_| reader.u16()).collect::<Result<Vec<_>, _>>()?;
        let depends_on = (0..reader.length(8)?).map(|_| reader.u64()).collect::<Result<Vec<_>, _>>()?;
        let buckets_max = reader.u32()? as usize;
        let directory = Directory { inputs, columns, depth, entries, depends_on, buckets_max };
        if directory.is_consistent() { Ok(directory) } else { Err(start.error("an inconsistent directory")) }
    }

    fn is_consistent(&self) -> bool {
        let low = (1u64 << self.depth) - 1;
        let count = self.depends_on.len();
        let mut patterns: Vec<Option<u64>> = vec![None; count];
        let entries_agree = self.entries.iter().enumerate().all(|(signature, entry)| {
            let Some(depends_on) = self.depends_on.get(usize::from(*entry)) else { return false };
            let pattern = signature as u64 & depends_on;
            *patterns[usize::from(*entry)].get_or_insert(pattern) == pattern
        });
        // Each bucket fills the whole subcube of its pattern, so the sizes must add up.
        let sizes: u64 =
            self.depends_on.iter().map(|bits| 1u64 << (self.depth as u32 - (bits & low).count_ones())).sum();
        entries_agree
            && patterns.iter().all(Option::is_some)
            && self.depends_on.iter().chain(&self.columns).all(|bits| bits & !low == 0)
            && sizes == self.entries.len() as u64
            && count <= self.buckets_max
            && self.buckets_max <= BUCKETS_MAX
            && (1..self.inputs.len()).all(|index| !self.inputs[..index].contains(&self.inputs[index]))
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
        candidates.work = self.inputs.len() as u32 + 1;
    }

    fn work_max(&self) -> u32 {
        DECLARED_MAX as u32 + 1
    }
}

#[cfg(test)]
mod tests;
