//! Rounds of learning in a served world: when one begins, what it takes along, and what it brings into force.
//!
//! Must not know threads: who works on a round is for the caller. Clauses: VM-13, SCC-8; decisions D-68, D-78.

use super::{Patched, World};
use crate::frozen::Shared;
use crate::input::WorldIndex;
use crate::limits::PATCHES_SHOWN_MAX;
use crate::people::oversight::{Judged, Oversight, Publishing, REJECTED};
use crate::people::standing::{HeldRound, Previous, SINCE_MAX};
use crate::round::{Brought, Done, Job};
use bem_base::encode::Reader;
use bem_base::fixed::Fixed;
use bem_engine::chronicle::PatchNote;
use bem_engine::learner::Offers;
use bem_engine::payload::Payload;
use bem_engine::serving::{Round, Searching};

impl World {
    /// Whether a round should begin, if others have proposed so much: enough is complete, and none is under way.
    pub fn is_round_due(&self, offered: u64) -> bool {
        let Some(searching) = &self.searching else { return false };
        // What waits for an approval is not searched past; what was turned down is not proposed again at once.
        if self.standing.held.is_some() || self.statistics.returns.count < self.standing.rests_until {
            return false;
        }
        let is_many = crate::limits::WAITING_MAX <= self.waiting.len();
        let has_news = searching.has_news(self.standing.called_right())
            || searching.has_offers(offered) && !searching.is_measuring();
        let is_due = searching.is_due(self.waiting_steps) || has_news;
        !self.waiting.is_empty() && (is_many || is_due)
    }

    /// Whether a round is under way.
    pub fn is_searching(&self) -> bool {
        self.searching.is_none()
    }

    /// A round begins: everything complete is handed in. `approval` is what an approval may add to a score, where people oversee
    /// changes.
    pub(crate) fn begin_round(
        &mut self,
        world: WorldIndex,
        offers: Offers,
        approval: Option<Fixed>,
    ) -> Option<Job> {
        let searching = self.searching.take()?;
        self.waiting_steps = 0;
        let episodes = core::mem::take(&mut self.waiting);
        let keeps = self.standing.take_keeps();
        if let Some(previous) = &mut self.standing.previous {
            previous.since.extend(episodes.iter().cloned());
            if SINCE_MAX < previous.since.len() || !keeps.is_empty() {
                self.standing.previous = None;
            }
        }
        let told = self.standing.told();
        // Whoever may be asked may turn down what waits, so that what was before is wanted.
        let (wants_before, approval) = (approval.is_some(), approval.unwrap_or(Fixed::ZERO));
        Some(Job { world, searching, episodes, keeps, told, offers, wants_before, approval })
    }

    /// A round comes back: what it changes takes effect, waits, or is turned down.
    pub(crate) fn publish(&mut self, done: Done, number: u64, oversight: &Oversight<'_>) -> Publishing {
        for (place, serial) in &done.serials {
            if let Some(recent) = self.standing.by_place(*place) {
                recent.serial = Some(*serial);
            }
        }
        let Some(round) = done.round else {
            (self.searching, self.searching_bytes) = (Some(done.searching), done.bytes);
            return Publishing::Nothing;
        };
        let is_applied = round.patches.iter().any(|note| note.accepted);
        if round.is_searched {
            self.standing.stalled = if is_applied { 0 } else { self.standing.stalled.saturating_add(1) };
        }
        match oversight.judge(self, &round) {
            Judged::TurnDown => {
                let mut reader = Reader::new(&done.before);
                match Searching::decode(&self.spec.shape, &mut reader) {
                    Ok(searching) => {
                        let brought =
                            self.discard(*round, Box::new(searching), done.before, REJECTED, number);
                        Publishing::Brought(brought, None)
                    }
                    Err(_) => Publishing::Nothing,
                }
            }
            Judged::Hold(context) => {
                (self.searching, self.searching_bytes) = (Some(done.searching), done.bytes);
                let held = HeldRound { question: 0, round, before: done.before };
                self.standing.held = Some(Box::new(held));
                // It is decided; what waits is a person's word.
                self.acting.forgo();
                Publishing::Held(context)
            }
            Judged::Let(context) => {
                (self.searching, self.searching_bytes) = (Some(done.searching), done.bytes);
                let before = (!done.before.is_empty()).then_some(done.before);
                Publishing::Brought(self.put_into_force(*round, before, number), context)
            }
        }
    }

    /// A round takes effect; what was decided about patches.
    pub(crate) fn put_into_force(&mut self, round: Round, before: Option<Shared>, number: u64) -> Brought {
        let Round { acting, patches, chain, steps, is_searched, .. } = round;
        if patches.iter().any(|note| note.accepted || note.rolled_back) {
            let place = self.statistics.returns.count;
            self.standing.previous = before.map(|before| {
                let (acting, patches) = (self.acting.clone(), patches.clone());
                Box::new(Previous { acting, before, patches, chain, place, since: Vec::new() })
            });
        }
        self.acting.replace(acting);
        // What came while the round was worked on is not in it.
        for episode in &self.waiting {
            self.acting.settle(episode.begun, &episode.steps);
        }
        self.say_again();
        self.statistics.rounds += u64::from(is_searched);
        self.count_patches(&patches, number);
        Brought { patches, chain, steps }
    }

    pub(crate) fn count_patches(&mut self, notes: &[PatchNote], number: u64) {
        for note in notes {
            let (words, reason) = match Payload::from_bytes(&note.payload) {
                Ok(payload) => (payload.words, payload.reason),
                Err(_) => (String::new(), String::new()),
            };
            let (kind, accepted, proofs) = (note.kind, note.accepted, note.proofs.len() as u32);
            self.patched.push_back(Patched { number, kind, accepted, words, reason, proofs });
            if PATCHES_SHOWN_MAX < self.patched.len() {
                self.patched.pop_front();
            }
            self.statistics.applied += u64::from(note.accepted);
            self.statistics.rejected += u64::from(!note.accepted);
            self.statistics.proofs += note.proofs.len() as u64;
        }
    }
}
