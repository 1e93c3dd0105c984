//! A round of learning: taken out of the service, worked on elsewhere, and brought back.
//!
//! What comes of it is a function of the episodes that were handed in; when it comes back is for the owner to say, by an input.
//! Clauses: SCC-8, LOG-5; decision D-68.

use crate::frozen::Shared;
use crate::input::WorldIndex;
use bem_base::digest::Digest;
use bem_base::encode::Writer;
use bem_base::fixed::Fixed;
use bem_engine::chronicle::PatchNote;
use bem_engine::learner::{Offers, Told};
use bem_engine::serving::{Begun, Round, Searching, Settled};
use std::sync::Arc;

/// An episode with everything that it brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// How it began.
    pub begun: Begun,
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
    /// What others propose.
    pub(crate) offers: Offers,
    /// Whether the searching half is wanted as it was before it searched.
    pub(crate) wants_before: bool,
    /// What an approval may add to the score of a patch.
    pub(crate) approval: Fixed,
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
    pub(crate) bytes: Shared,
    /// The searching half before it searched, as bytes, if that was wanted and something was let in; else nothing.
    pub(crate) before: Shared,
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
    /// Does the work: takes the episodes in, searches if enough is new, and decides what can be decided.
    pub fn work(self) -> Done {
        let Job { world, mut searching, episodes, keeps, told, offers, wants_before, approval } = self;
        searching.lend_approval(approval);
        keeps.iter().for_each(|(serial, is_kept)| searching.keep(*serial, *is_kept));
        // Episodes may decide a contest: what would be without that is what was before it, with the same episodes.
        let apart = (wants_before && searching.is_measuring()).then(|| searching.clone());
        let serials = take_all(&mut searching, &episodes);
        searching.hear(told.clone());
        searching.offer(offers.clone());
        let has_work = searching.has_work();
        let before = match apart.filter(|_| searching.has_decided()) {
            Some(mut apart) => {
                apart.forgo();
                take_all(&mut apart, &episodes);
                apart.hear(told);
                apart.offer(offers);
                bytes_of(&apart)
            }
            None if has_work && wants_before => bytes_of(&searching),
            None => Shared::default(),
        };
        let round = has_work.then(|| Box::new(searching.work()));
        searching.lend_approval(Fixed::ZERO);
        let bytes = bytes_of(&searching);
        Done { world, searching, round, bytes, before, serials }
    }
}

/// Takes episodes in; their places with their serials.
fn take_all(searching: &mut Searching, episodes: &[Complete]) -> Vec<(u64, u64)> {
    let take = |episode: &Complete| (episode.place, searching.take(episode.begun, &episode.steps));
    episodes.iter().map(take).collect()
}

pub(crate) fn bytes_of(searching: &Searching) -> Shared {
    let mut writer = Writer::new();
    searching.encode(&mut writer);
    Arc::new(writer.into_bytes())
}
