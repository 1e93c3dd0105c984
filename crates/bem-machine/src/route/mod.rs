//! Routing: from what is seen to where statistics are kept and which experts stand for choice.
//!
//! Two routers behind one interface: [`directory::Directory`], the default, and [`hamming::HammingIndex`], the
//! bounded nearest-neighbour search of the second seed, which also serves synthesis when it proposes pool members.
//! A family asks both through [`FamilyRouter`].
//! Must not know what an expert computes. Clauses: VM-6, VM-7, D-11, D-33.

pub mod directory;
pub mod hamming;
pub mod signature;

use self::directory::Directory;
use self::hamming::HammingIndex;
use bem_base::environment::Bits;
use bem_base::limits::ARMS_MAX;

/// The most candidates a query returns.
#[doc(alias = "k_large")]
pub const CANDIDATES_MAX: usize = 64;

/// What a router is asked with: one lane's view of STATE and SHARED.
pub trait RouteView {
    /// A bit of STATE.
    fn state_bit(&self, bit: u16) -> bool;
    /// A bit of a SHARED word.
    fn shared_bit(&self, address: u32, bit: u8) -> bool;
    /// All observation bits: what features are made of.
    fn observation(&self) -> Bits;
}

/// What a router answers, and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// Where the statistics of this context are kept.
    pub bucket: u16,
    members: [u32; CANDIDATES_MAX],
    count: usize,
    /// Words, probes and comparisons of the query: bounded by the configuration, whatever was learned.
    pub work: u32,
}

impl Candidates {
    /// No candidates.
    pub const EMPTY: Candidates = Candidates { bucket: 0, members: [0; CANDIDATES_MAX], count: 0, work: 0 };

    /// The candidates in order of preference.
    pub fn members(&self) -> &[u32] {
        &self.members[..self.count]
    }

    /// The candidates as slots of a pool, one bit each.
    pub fn arms(&self) -> u16 {
        let slots = self.members().iter().filter(|member| **member < ARMS_MAX as u32);
        slots.fold(0, |arms, slot| arms | 1 << slot)
    }

    /// Adds a candidate; past the maximum nothing happens.
    pub(crate) fn push(&mut self, member: u32) {
        if self.count < CANDIDATES_MAX {
            self.members[self.count] = member;
            self.count += 1;
        }
    }
}

/// Finds the bucket and the candidates of one step, without allocation and with bounded work.
pub trait Router {
    /// Answers into `candidates`, which is overwritten.
    fn query(&self, view: &impl RouteView, candidates: &mut Candidates);
    /// No query costs more work than this.
    fn work_max(&self) -> u32;
}

/// The router of a family: the directory names the bucket; a Hamming index, if there is one, the candidates.
#[derive(Clone, Copy, Debug)]
pub struct FamilyRouter<'a> {
    /// Where statistics are kept.
    pub directory: &'a Directory,
    /// Which experts are near, when the configuration asks for it.
    pub search: Option<&'a HammingIndex>,
}

impl Router for FamilyRouter<'_> {
    fn query(&self, view: &impl RouteView, candidates: &mut Candidates) {
        self.directory.query(view, candidates);
        if let Some(search) = self.search {
            let (bucket, work) = (candidates.bucket, candidates.work);
            search.query(view, candidates);
            candidates.bucket = bucket;
            candidates.work += work;
        }
    }

    fn work_max(&self) -> u32 {
        self.directory.work_max() + self.search.map_or(0, Router::work_max)
    }
}
