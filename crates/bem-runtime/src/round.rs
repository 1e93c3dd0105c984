//! A round of learning: taken out of the service, worked on elsewhere, and brought back.
//!
//! What comes of it is a function of the episodes that were handed in; when it comes back is for the owner to say, by an input.
//! Clauses: SCC-8, LOG-5; decision D-68.

use crate::input::WorldIndex;
use bem_base::digest::Digest;
use bem_base::encode::Writer;
use bem_engine::chronicle::PatchNote;
use bem_engine::learner::Told;
use bem_engine::serving::{Round, Searching, Settled};
use bem_machine::turn::Turn;

/// An episode with everything that it brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// Whose turn it was.
    pub turn: Turn,
    /// Its steps.
    pub steps: Vec<Settled>,
    /// Which complete episode of its world it is.
    pub place: u64,
}

/// A round to be worked on.
#[derive(Debug)]
pub struct Job {
    /// The world.
    pub world: WorldIndex,
    pub(crate) searching: Box<Searching>,
    pub(crate) episodes: Vec<Complete>,
    /// Episodes that may be learned from again, or not any more, by serial.
    pub(crate) keeps: Vec<(u64, bool)>,
    /// What people call right.
    pub(crate) told: Told,
    /// Whether the searching half is wanted as it was before it searched.
    pub(crate) wants_before: bool,
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
    /// The searching half before it searched, as bytes, if that was wanted and something was let in.
    pub(crate) before: Vec<u8>,
    /// Places of the episodes that were handed in, with their serials.
    pub(crate) serials: Vec<(u64, u64)>,
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
        let Job { world, mut searching, episodes, keeps, told, wants_before } = self;
        keeps.iter().for_each(|(serial, is_kept)| searching.keep(*serial, *is_kept));
        let mut take = |episode: &Complete| (episode.place, searching.take(episode.turn, &episode.steps));
        let serials = episodes.iter().map(&mut take).collect();
        searching.hear(told);
        let is_due = searching.is_due(0);
        let before = if is_due && wants_before { bytes_of(&searching) } else { Vec::new() };
        let round = is_due.then(|| Box::new(searching.work()));
        let bytes = bytes_of(&searching);
        Done { world, searching, round, bytes, before, serials }
    }
}

fn bytes_of(searching: &Searching) -> Vec<u8> {
    let mut writer = Writer::new();
    searching.encode(&mut writer);
    writer.into_bytes()
}
