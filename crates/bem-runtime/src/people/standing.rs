//! What people have to do with one world: labels in force, its latest episodes, and changes of its policy that wait or can be
//! taken back.
//!
//! Labels are kept as they were said, and put again into whatever half acts; so nothing of them is lost when contexts
//! change, and each can be taken out again. A round that waits for an approval is kept whole, with the searching half as it was
//! before, so that turning it down leaves no trace of it. Must not know who asks, nor the ledger.
//! Clauses: HUM-5, HUM-6, HUM-8; decisions D-76, D-78.

use super::change::{Label, UNKNOWN};
use super::oversight::short;
use crate::frozen::{Frozen, Shared};
use crate::round::{Brought, Complete};
use crate::world::{World, decode_complete, encode_complete};
use bem_base::digest::Digest;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Shape};
use bem_base::fixed::Fixed;
use bem_engine::chronicle::PatchNote;
use bem_engine::learner::{Label as Said, Told};
use bem_engine::serving::{Acting, Round, Searching};
use bem_engine::state::RestoreError;
use bem_people::payload::context::{PatchContext, STEPS_SHOWN_MAX, ShownStep};
use std::collections::{BTreeMap, VecDeque};

/// Labels of one world that are in force; the oldest give way.
pub const LABELS_MAX: usize = 4_096;
/// Episodes of one world that people may be asked about.
pub const RECENT_MAX: usize = 64;
/// Older episodes of one world that somebody has said something about, which can be taken back.
pub const TOUCHED_MAX: usize = 256;
/// Episodes after a change of the policy for which it can be taken back.
pub const SINCE_MAX: usize = 8_192;
/// Complete episodes that may wait behind a change that waits for an approval.
pub const HELD_BACK_MAX: usize = 8_192;
/// Actions of an episode that are told apart.
const ARMS_MAX: usize = 16;

/// An episode that people may be asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// Which complete episode of its world it was.
    pub place: u64,
    /// Its first decision.
    pub first: u64,
    /// What was seen first.
    pub seen: Bits,
    /// The actions taken, each once, in order.
    pub arms: Vec<u16>,
    /// What it earned.
    pub total: i64,
    /// Its steps.
    pub length: u32,
    /// Something BAD happened.
    pub bad: bool,
    /// Its first steps.
    pub steps: Vec<ShownStep>,
    /// 0 nobody learns from it, 1 as usual, 2 the curriculum only.
    pub keep: u8,
    /// What somebody thinks of it.
    pub score: Option<Fixed>,
    /// Its serial in the learner's log, once it was handed in.
    pub serial: Option<u64>,
}

impl Recent {
    /// Whether somebody has said something about it that is in force.
    fn is_touched(&self) -> bool {
        self.keep != 1 || self.score.is_some()
    }
}

/// A round whose change of the policy waits for an approval.
#[derive(Debug)]
pub struct HeldRound {
    /// The question.
    pub question: u64,
    /// What it would put into force.
    pub round: Box<Round>,
    /// The searching half before it searched.
    pub(crate) before: Shared,
}

/// What was in force before the latest change.
#[derive(Debug)]
pub(crate) struct Previous {
    pub(crate) acting: Acting,
    pub(crate) before: Shared,
    pub(crate) patches: Vec<PatchNote>,
    pub(crate) chain: Digest,
    /// Complete episodes when it took effect.
    pub(crate) place: u64,
    /// Episodes that were handed in since.
    pub(crate) since: Vec<Complete>,
}

/// What people have to do with a world.
#[derive(Debug, Default)]
pub struct Standing {
    /// Labels in force, oldest first.
    pub(crate) labels: Vec<Label>,
    /// The latest complete episodes, oldest first.
    pub(crate) recent: VecDeque<Recent>,
    /// Whether episodes may be learned from that were handed in; said with the next round.
    pub(crate) keeps: BTreeMap<u64, bool>,
    /// Episodes that were taken out before they were handed in, by place.
    pub(crate) aside: BTreeMap<u64, Complete>,
    pub(crate) held: Option<Box<HeldRound>>,
    pub(crate) previous: Option<Box<Previous>>,
    /// No round begins before so many episodes are complete: a change was turned down.
    pub(crate) rests_until: u64,
    /// Rounds in a row that put nothing into force.
    pub(crate) stalled: u32,
}

impl Standing {
    /// The change that waits for an approval.
    pub fn held(&self) -> Option<&HeldRound> {
        self.held.as_deref()
    }

    /// Labels in force.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Labels that call an action right: what was said of it is good rather than bad.
    fn right(&self) -> impl Iterator<Item = &Label> {
        self.labels
            .iter()
            .filter(|label| 2 * u128::from(label.advice.loss_sum) < u128::from(label.advice.visits))
    }

    /// How many labels call an action right.
    pub(crate) fn called_right(&self) -> usize {
        self.right().count()
    }

    /// What people call right, for the learner.
    pub(crate) fn told(&self) -> Told {
        Told::new(self.right().map(|label| Said {
            observation: label.observation,
            right: label.action,
            time: label.time,
        }))
    }

    /// What acted before a change that took effect, and what was decided about its patches: as long as it is the latest change
    /// and can be taken back.
    pub fn replaced_by(&self, shown: &PatchContext) -> Option<(&Acting, &[PatchNote])> {
        let previous = self.previous.as_deref()?;
        let is_this = shown.in_force && short(&previous.acting.digest()) == shown.policies[0];
        is_this.then_some((&previous.acting, previous.patches.as_slice()))
    }

    /// Whether the latest change of the policy can be taken back.
    pub fn can_be_taken_back(&self) -> bool {
        self.previous.is_some()
    }

    /// Remembers a complete episode.
    pub(crate) fn remember(&mut self, first: u64, episode: &Complete) {
        let steps = &episode.steps;
        let Some(seen) = steps.first().map(|step| step.observation) else { return };
        let mut arms: Vec<u16> = Vec::new();
        for step in steps.iter().take(STEPS_SHOWN_MAX) {
            if arms.len() < ARMS_MAX && !arms.contains(&step.action) {
                arms.push(step.action);
            }
        }
        let shown = steps.iter().take(STEPS_SHOWN_MAX).map(|step| ShownStep {
            observation: step.observation,
            action: step.action,
            reward: step.outcome.reward,
            bad: step.outcome.bad,
        });
        self.recent.push_back(Recent {
            place: episode.place,
            first,
            seen,
            arms,
            total: steps.iter().map(|step| i64::from(step.outcome.reward)).sum(),
            length: steps.len() as u32,
            bad: steps.iter().any(|step| step.outcome.bad),
            steps: shown.collect(),
            keep: 1,
            score: None,
            serial: None,
        });
        self.forget_oldest(false, RECENT_MAX);
        self.forget_oldest(true, TOUCHED_MAX);
    }

    /// Keeps so many of the episodes that somebody has said something about, or of the others: the oldest are forgotten.
    fn forget_oldest(&mut self, is_touched: bool, most: usize) {
        let is_one = |recent: &Recent| recent.is_touched() == is_touched;
        let count = self.recent.iter().filter(|recent| is_one(recent)).count();
        for _ in most..count {
            if let Some(oldest) = self.recent.iter().position(is_one) {
                self.recent.remove(oldest);
            }
        }
    }

    /// An episode by its first decision, or by any decision in it where an episode is one step.
    pub fn episode(&self, first: u64) -> Option<&Recent> {
        self.recent.iter().find(|recent| recent.first == first)
    }

    pub(crate) fn by_place(&mut self, place: u64) -> Option<&mut Recent> {
        self.recent.iter_mut().find(|recent| recent.place == place)
    }

    /// What is said about episodes with the round that begins now.
    pub(crate) fn take_keeps(&mut self) -> Vec<(u64, bool)> {
        let serials: BTreeMap<u64, u64> =
            self.recent.iter().filter_map(|recent| Some((recent.place, recent.serial?))).collect();
        let known: Vec<u64> =
            self.keeps.keys().copied().filter(|place| serials.contains_key(place)).collect();
        known.into_iter().filter_map(|place| Some((serials[&place], self.keeps.remove(&place)?))).collect()
    }

    pub(crate) fn encode(&self, frozen: &mut Frozen) {
        let writer = &mut frozen.writer;
        writer.length(self.labels.len());
        self.labels.iter().for_each(|label| label.encode(writer));
        writer.length(self.recent.len());
        for recent in &self.recent {
            writer.u64(recent.place);
            writer.u64(recent.first);
            recent.seen.0.iter().for_each(|word| writer.u64(*word));
            writer.length(recent.arms.len());
            recent.arms.iter().for_each(|arm| writer.u16(*arm));
            writer.i64(recent.total);
            writer.u32(recent.length);
            writer.bool(recent.bad);
            writer.length(recent.steps.len());
            for step in &recent.steps {
                step.observation.0.iter().for_each(|word| writer.u64(*word));
                writer.u16(step.action);
                writer.i32(step.reward);
                writer.bool(step.bad);
            }
            writer.u8(recent.keep);
            writer.i64(recent.score.map_or(-1, Fixed::to_raw));
            writer.i64(recent.serial.map_or(-1, |serial| serial as i64));
        }
        writer.length(self.keeps.len());
        for (place, is_kept) in &self.keeps {
            writer.u64(*place);
            writer.bool(*is_kept);
        }
        writer.length(self.aside.len());
        self.aside.values().for_each(|episode| encode_complete(episode, writer));
        writer.u64(self.rests_until);
        writer.u32(self.stalled);
        writer.bool(self.held.is_some());
        if let Some(held) = &self.held {
            writer.u64(held.question);
            let Round { acting, patches, chain, steps, .. } = &*held.round;
            acting.encode(writer);
            encode_notes(patches, writer);
            writer.raw(chain.as_bytes());
            writer.u64(*steps);
            frozen.share(&held.before);
        }
        frozen.writer.bool(self.previous.is_some());
        if let Some(previous) = &self.previous {
            previous.acting.encode(&mut frozen.writer);
            frozen.share(&previous.before);
            let writer = &mut frozen.writer;
            encode_notes(&previous.patches, writer);
            writer.raw(previous.chain.as_bytes());
            writer.u64(previous.place);
            writer.length(previous.since.len());
            previous.since.iter().for_each(|episode| encode_complete(episode, writer));
        }
    }

    pub(crate) fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<Standing, RestoreError> {
        let malformed = reader.error("what people said cannot be");
        let mut standing = Standing::default();
        for _ in 0..reader.length(84)? {
            let label = Label::decode(reader)?;
            if shape.actions <= label.action || LABELS_MAX <= standing.labels.len() {
                return Err(malformed.into());
            }
            standing.labels.push(label);
        }
        for _ in 0..reader.length(80)? {
            let recent = decode_recent(reader)?;
            if RECENT_MAX + TOUCHED_MAX <= standing.recent.len()
                || recent.arms.iter().any(|arm| shape.actions <= *arm)
            {
                return Err(malformed.into());
            }
            standing.recent.push_back(recent);
        }
        for _ in 0..reader.length(9)? {
            standing.keeps.insert(reader.u64()?, reader.bool()?);
        }
        for _ in 0..reader.length(8)? {
            let episode = decode_complete(shape, reader)?;
            standing.aside.insert(episode.place, episode);
        }
        standing.rests_until = reader.u64()?;
        standing.stalled = reader.u32()?;
        if reader.bool()? {
            let question = reader.u64()?;
            let acting = Acting::decode(shape, reader)?;
            let patches = decode_notes(reader)?;
            let (chain, steps) = (Digest::decode(reader)?, reader.u64()?);
            // What was missing stands in the question.
            let missing = Fixed::ZERO;
            let round = Box::new(Round { acting, patches, chain, steps, is_searched: true, missing });
            let before = Shared::new(reader.bytes()?.to_vec());
            standing.held = Some(Box::new(HeldRound { question, round, before }));
        }
        if reader.bool()? {
            let acting = Acting::decode(shape, reader)?;
            let before = Shared::new(reader.bytes()?.to_vec());
            let patches = decode_notes(reader)?;
            let (chain, place) = (Digest::decode(reader)?, reader.u64()?);
            let count = reader.length(8)?;
            let since = (0..count).map(|_| decode_complete(shape, reader)).collect::<Result<_, _>>()?;
            standing.previous = Some(Box::new(Previous { acting, before, patches, chain, place, since }));
        }
        Ok(standing)
    }
}

fn decode_recent(reader: &mut Reader<'_>) -> Result<Recent, RestoreError> {
    let (place, first) = (reader.u64()?, reader.u64()?);
    let seen = Bits([reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?]);
    let arms = (0..reader.length(2)?).map(|_| reader.u16()).collect::<Result<_, _>>()?;
    let (total, length, bad) = (reader.i64()?, reader.u32()?, reader.bool()?);
    let mut steps = Vec::new();
    for _ in 0..reader.length(39)? {
        let observation = Bits([reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?]);
        let (action, reward) = (reader.u16()?, reader.i32()?);
        steps.push(ShownStep { observation, action, reward, bad: reader.bool()? });
    }
    let keep = reader.u8()?;
    let score = Some(reader.i64()?).filter(|score| 0 <= *score).map(Fixed::from_raw);
    let serial = Some(reader.i64()?).filter(|serial| 0 <= *serial).map(|serial| serial as u64);
    Ok(Recent { place, first, seen, arms, total, length, bad, steps, keep, score, serial })
}

fn encode_notes(notes: &[PatchNote], writer: &mut Writer) {
    writer.length(notes.len());
    notes.iter().for_each(|note| note.encode(writer));
}

fn decode_notes(reader: &mut Reader<'_>) -> Result<Vec<PatchNote>, RestoreError> {
    Ok((0..reader.length(30)?).map(|_| PatchNote::decode(reader)).collect::<Result<_, _>>()?)
}

impl World {
    /// The half that acts hears what people call right; where anything BAD has happened, it does not follow it.
    pub(crate) fn tell(&mut self) {
        self.acting.hear(self.standing.told(), self.statistics.bad == 0);
    }

    /// Adds labels to those in force and to the half that acts.
    pub(crate) fn say(&mut self, labels: Vec<Label>) {
        for label in labels {
            if LABELS_MAX <= self.standing.labels.len() {
                let oldest = self.standing.labels.remove(0);
                self.acting.advise((&oldest.observation, oldest.action), &oldest.advice, false, None);
            }
            if self.acting.advise((&label.observation, label.action), &label.advice, true, None) {
                self.standing.labels.push(label);
            }
        }
        self.tell();
    }

    /// Takes the labels of one answer back, the latest first; how many there were.
    pub(crate) fn unsay(&mut self, answer: u64) -> usize {
        let mut taken = 0;
        for place in (0..self.standing.labels.len()).rev() {
            let label = self.standing.labels[place];
            if label.answer != answer {
                continue;
            }
            self.standing.labels.remove(place);
            let (context, bucket) = self.acting.context(&label.observation);
            let is_same = |other: &Label| {
                other.action == label.action && self.acting.context(&other.observation).0 == context
            };
            // The last one to be taken back puts back the index of before, if nothing was booked since.
            let (booked, other) = (bucket.selections_total(), self.standing.labels.iter().position(is_same));
            let index = match other {
                Some(other) => {
                    if label.before != UNKNOWN {
                        self.standing.labels[other].before = label.before;
                    }
                    None
                }
                None => (booked == label.before.0).then_some(label.before.1),
            };
            self.acting.advise((&label.observation, label.action), &label.advice, false, index);
            taken += 1;
        }
        self.tell();
        taken
    }

    /// Everything that people said is said again to the half that acts.
    pub(crate) fn say_again(&mut self) {
        self.acting.clear_advice();
        for label in &self.standing.labels {
            self.acting.advise((&label.observation, label.action), &label.advice, true, None);
        }
        self.tell();
    }

    /// Whether an episode may be learned from.
    pub(crate) fn keep_episode(&mut self, place: u64, keep: u8) {
        let is_kept = keep == 1;
        if let Some(recent) = self.standing.by_place(place) {
            recent.keep = keep;
        }
        let waits = self.waiting.iter().position(|episode| episode.place == place);
        if is_kept {
            if let Some(episode) = self.standing.aside.remove(&place) {
                let at = self.waiting.partition_point(|other| other.place < place);
                self.waiting_steps += episode.steps.len() as u64;
                self.waiting.insert(at, episode);
                return;
            }
        } else if let Some(at) = waits {
            let episode = self.waiting.remove(at);
            self.waiting_steps -= episode.steps.len() as u64;
            self.standing.aside.insert(place, episode);
            while TOUCHED_MAX < self.standing.aside.len() {
                self.standing.aside.pop_first();
            }
            return;
        }
        if waits.is_none() {
            self.standing.keeps.insert(place, is_kept);
            while TOUCHED_MAX < self.standing.keeps.len() {
                self.standing.keeps.pop_first();
            }
        }
    }

    /// No round begins for a while.
    pub(crate) fn rest(&mut self) {
        let complete = self.statistics.returns.count;
        self.standing.rests_until = complete + (complete / 4).max(64);
    }

    /// The change that waits takes effect.
    pub(crate) fn approve(&mut self, number: u64) -> Option<Brought> {
        let HeldRound { round, before, .. } = *self.standing.held.take()?;
        Some(self.put_into_force(*round, Some(before), number))
    }

    /// The change that waits is turned down: the searching half is as it was before, and rests for a while.
    pub(crate) fn turn_down(&mut self, reason: &str, number: u64) -> Option<Brought> {
        let HeldRound { round, before, .. } = *self.standing.held.take()?;
        let mut reader = Reader::new(&before);
        let searching = Searching::decode(&self.spec.shape, &mut reader).ok()?;
        Some(self.discard(*round, Box::new(searching), before, reason, number))
    }

    /// A round that must not take effect.
    pub(crate) fn discard(
        &mut self,
        round: Round,
        searching: Box<Searching>,
        before: Shared,
        reason: &str,
        number: u64,
    ) -> Brought {
        (self.searching, self.searching_bytes) = (Some(searching), before);
        self.acting.forgo();
        self.rest();
        let down = |note: &PatchNote| if note.accepted { note.turned_down(reason) } else { note.clone() };
        let patches: Vec<PatchNote> = round.patches.iter().map(down).collect();
        self.count_patches(&patches, number);
        Brought { patches, chain: round.chain, steps: round.steps }
    }

    /// The latest change of the policy is taken back; nothing where that is not possible any more, or not now.
    pub(crate) fn take_back(&mut self, reason: &str, number: u64) -> Option<Brought> {
        if self.searching.is_none() || self.standing.held.is_some() {
            return None;
        }
        let previous = *self.standing.previous.take()?;
        let mut reader = Reader::new(&previous.before);
        let searching = Searching::decode(&self.spec.shape, &mut reader).ok()?;
        (self.searching, self.searching_bytes) = (Some(Box::new(searching)), previous.before);
        // What was learned from since is handed in again.
        for recent in self.standing.recent.iter_mut().filter(|recent| previous.place < recent.place) {
            recent.serial = None;
        }
        let later = core::mem::take(&mut self.waiting);
        let mut episodes: Vec<Complete> = previous.since;
        episodes.extend(later);
        self.waiting_steps = episodes.iter().map(|episode| episode.steps.len() as u64).sum();
        self.waiting = episodes;
        self.acting.replace(previous.acting);
        self.acting.forgo();
        for episode in self.waiting.iter().filter(|episode| previous.place < episode.place) {
            self.acting.settle(episode.begun, &episode.steps);
        }
        self.say_again();
        self.rest();
        let accepted = previous.patches.iter().rev().filter(|note| note.accepted);
        let patches: Vec<PatchNote> = accepted.map(|note| note.taken_back(reason)).collect();
        self.count_patches(&patches, number);
        Some(Brought { patches, chain: previous.chain, steps: 0 })
    }
}
