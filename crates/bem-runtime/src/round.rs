//! A round of learning: taken out of the service, worked on elsewhere, and brought back.
//!
//! What comes of it is a function of the episodes that were handed in; when it comes back is for the owner to say, by an input.
//! Clauses: SCC-8, LOG-5; decision D-68.

use crate::input::WorldIndex;
use bem_base::digest::Digest;
use bem_base::encode::Writer;
use bem_engine::chronicle::PatchNote;
use bem_engine::serving::{Round, Searching, Settled};
use bem_machine::turn::Turn;

/// An episode with everything that it brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// Whose turn it was.
    pub turn: Turn,
    /// Its steps.
    pub steps: Vec<Settled>,
}

/// A round to be worked on.
#[derive(Debug)]
pub struct Job {
    /// The world.
    pub world: WorldIndex,
    pub(crate) searching: Box<Searching>,
    pub(crate) episodes: Vec<Complete>,
}

/// A round that was worked on.
#[derive(Debug)]
pub struct Done {
    /// The world.
    pub world: WorldIndex,
    pub(crate) searching: Box<Searching>,
    /// What changed; nothing where it was too early to search.
    pub(crate) round: Option<Box<Round>>,
    /// The searching half as bytes, for snapshots.
    pub(crate) bytes: Vec<u8>,
}

/// What a round brought besides what acts.
#[derive(Clone, Debug)]
pub struct Brought {
    /// What was decided about patches.
    pub patches: Vec<PatchNote>,
    /// The head of the learner's own chain.
    pub chain: Digest,
    /// Steps learned from.
    pub steps: u64,
}

impl Job {
    /// Does the work: takes the episodes in, and searches if enough is new.
    pub fn work(self) -> Done {
        let Job { world, mut searching, episodes } = self;
        episodes.iter().for_each(|episode| searching.take(episode.turn, &episode.steps));
        let round = searching.is_due(0).then(|| Box::new(searching.work()));
        let mut writer = Writer::new();
        searching.encode(&mut writer);
        Done { world, searching, round, bytes: writer.into_bytes() }
    }
}
