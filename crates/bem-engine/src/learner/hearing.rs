//! What people said, and what a learner does about it: it tries what they call right, and proposes what follows from it.
//!
//! Labels are lent by the owner, who keeps and saves them; of them the learner saves how many it had looked at. What labels
//! suggest is measured by itself, between the learner's own searches (`apart`): until something of it was let in, nothing that
//! people say changes what the learner draws, counts, searches or holds. Afterwards half of the exploring episodes follow what
//! is called right where something was said, as long as nothing BAD was ever seen and no counted model explores by itself.
//! Whoever was refused is looked at again when twice as much is new. Without labels nothing here happens, and no random number
//! is drawn. Must not know who said what. Clauses: HUM-5, HUM-13; decisions D-126, D-184, D-210, D-216, D-217.

use super::act::is_exploring;
use super::apart::Apart;
use super::gate::Contest;
use super::scouting::Trails;
use super::state::RestoreError;
use super::{Event, Learner, Phase, Witness};
use crate::codec::{decode_option, encode_option};
use crate::parameters::search_settings;
use bem_base::digest::Digest;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::Shape;
use bem_base::fixed::Fixed;
use bem_machine::turn::Turn;
use bem_synth::experience::Episode;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::policy::Policy;
use bem_synth::told::{TOLD_MAX, Told, news_needed};

/// Of so many exploring episodes one follows what people said.
pub(super) const ADVISED_ONE_IN: u64 = 2;
/// Candidates by labels that one search may submit.
const SUBMITTED_MAX: usize = 2;
/// Labels that must speak for a candidate of more than one step that was never seen to earn more, where no copy can try it.
const TRUSTED_MIN: usize = 6;
/// How often what must be new is doubled, at most.
const DOUBLED_MAX: u32 = 16;
/// Stands in the bytes beside how many labels were looked at: what was measured for people follows.
const MEASURED: u64 = 1 << 63;

/// What was said, as far as it was lent.
#[derive(Clone, Debug, Default)]
pub(super) struct Hearing {
    told: Told,
    /// What `told` was when it last was something else than before; none before anything was said.
    heard: Option<Digest>,
    /// Labels at the last search.
    looked: u64,
    /// Nothing BAD was seen, so that what is called right may be tried.
    is_safe: bool,
    /// What was measured for people.
    pub(super) apart: Apart,
}

impl Hearing {
    /// Everything that is in force now; whether that is something else than before.
    fn listen(&mut self, told: Told, is_safe: bool) -> bool {
        let heard = (!told.is_empty()).then(|| told.digest());
        let is_new = self.heard != heard;
        (self.told, self.heard, self.is_safe) = (told, heard, is_safe);
        is_new
    }

    /// What was said.
    pub(super) fn told(&self) -> &Told {
        &self.told
    }

    /// Whether an episode may follow what was said: where an episode is one step, a candidate tells as much.
    pub(super) fn may_follow(&self, shape: &Shape) -> bool {
        1 < shape.horizon && self.is_safe && self.apart.has_won() && !self.told.is_empty()
    }

    /// Something BAD was seen: nobody's word is followed any more.
    pub(super) fn beware(&mut self) {
        self.is_safe = false;
    }

    /// Whether nothing BAD was seen.
    pub(super) fn is_safe(&self) -> bool {
        self.is_safe
    }

    /// Whether so many labels are enough news for another look, and so many steps have paid for it.
    pub(super) fn is_news(&self, labels: usize, horizon: u32, steps: u64) -> bool {
        let needed = news_needed(self.looked as usize) << self.apart.refused().min(DOUBLED_MAX);
        self.looked as usize + needed <= labels && self.apart.is_paid_for(horizon, steps)
    }

    /// What is counted as news: labels, and where an episode has several steps labels of new observations more than others.
    fn weight(&self, horizon: u32) -> usize {
        if 1 < horizon { self.told.weight() } else { self.told.len() }
    }

    /// Whether enough is new for another look.
    pub(super) fn is_due(&self, horizon: u32, steps: u64) -> bool {
        self.is_news(self.weight(horizon), horizon, steps)
    }

    /// What was said is looked at.
    pub(super) fn look(&mut self, horizon: u32) {
        self.looked = self.weight(horizon) as u64;
    }

    /// Writes what must outlive the labels themselves: how many were looked at, which were heard, and what was measured for them.
    /// Nothing where nobody said anything and nothing follows.
    pub(super) fn encode(&self, is_followed: bool, writer: &mut Writer) {
        let is_measured = self.apart.is_used();
        if is_followed || 0 < self.looked || self.heard.is_some() || is_measured {
            writer.u64(self.looked | if is_measured { MEASURED } else { 0 });
            encode_option(writer, self.heard.as_ref(), |digest, writer| writer.raw(digest.as_bytes()));
            if is_measured {
                self.apart.encode(writer);
            }
        }
    }

    /// Reads it back; the owner lends the labels again. A learner of this shape may be in it, unless this is one itself.
    pub(super) fn decode(shape: Option<&Shape>, reader: &mut Reader<'_>) -> Result<Hearing, RestoreError> {
        if reader.remaining() == 0 {
            return Ok(Hearing::default());
        }
        let impossible = reader.error("labels that nobody can have given");
        let marked = reader.u64()?;
        let (looked, is_measured) = (marked & !MEASURED, marked & MEASURED != 0);
        let heard = decode_option(reader, Digest::decode)?;
        let apart = match (is_measured, shape) {
            (false, _) => Apart::default(),
            (true, Some(shape)) => Apart::decode(shape, reader)?,
            (true, None) => return Err(impossible.into()),
        };
        let is_empty = looked == 0 && heard.is_none() && !is_measured;
        if (4 * TOLD_MAX as u64) < looked || is_empty && reader.remaining() == 0 {
            return Err(impossible.into());
        }
        Ok(Hearing { looked, heard, apart, ..Hearing::default() })
    }
}

impl Learner {
    /// Takes an episode out of the log and of what was counted; none where the log has it no more.
    pub(super) fn take_out(&mut self, serial: u64) -> Option<Episode> {
        let episode = self.experience.take_out(serial)?;
        self.exploration.keep(&episode, false);
        Some(episode)
    }

    /// Puts an episode back where it was, if there still is room for it.
    pub(super) fn put_back(&mut self, episode: Episode) {
        if self.experience.put_back(episode.clone()) {
            self.exploration.keep(&episode, true);
        }
    }

    /// Hears everything that people said and that is in force; what was said before and is not in it was taken back.
    pub fn hear(&mut self, told: Told) {
        let is_bad = |episode: &Episode| episode.steps.iter().any(|step| step.bad);
        let is_safe = !self.experience.episodes().any(is_bad);
        let digest = told.digest();
        if self.hearing.listen(told, is_safe) {
            self.history.link("bem/chain/told", digest.as_bytes());
        }
    }

    /// The same for a half that keeps no log and is told by its owner whether anything BAD was seen.
    pub(super) fn hear_apart(&mut self, told: Told, is_safe: bool) {
        self.hearing.listen(told, is_safe);
    }

    /// Whether the exploring episode that begins follows what people said.
    pub(super) fn is_advised(&mut self) -> bool {
        self.hearing.may_follow(&self.shape)
            && self.exploration.explorer().is_none()
            && self.machinery.prng_mut().below(ADVISED_ONE_IN) == 0
    }

    /// Nobody's word is followed once something BAD was seen.
    pub(super) fn look_out(&mut self, turn: Turn, episode: &Episode) {
        if is_exploring(turn) && episode.steps.iter().any(|step| step.bad) {
            self.hearing.beware();
            if turn == Turn::ADVISED {
                self.hearing.apart.meet_bad();
            }
        }
    }

    /// Looks at what people said between two searches: what it suggests is measured by itself, so that the learner's own searches,
    /// tests and draws are those that it would have made without.
    pub(super) fn look_at_told(&mut self, witness: &mut dyn Witness) -> Event {
        self.hearing.look(self.walked());
        let worth = self.worth_hearing();
        let scouts = self.may_scout() && self.settings.config.synthesis && self.is_trusted();
        if !worth.is_empty() || scouts {
            self.begin_apart(worth, scouts, witness);
        }
        Event::Searched
    }

    /// Looks at what people said with a search, where a scheduler says when patches are decided.
    pub(super) fn propose_told(&mut self) {
        self.hearing.look(self.walked());
        let worth = self.worth_hearing();
        if !worth.is_empty() {
            self.make_room();
        }
        worth.into_iter().for_each(|candidate| self.submit_one(candidate, Fixed::ZERO));
    }

    /// What labels suggest, as far as it is worth measuring.
    pub(super) fn worth_hearing(&self) -> Vec<Hypothesis> {
        let told = &self.hearing.told;
        if told.is_empty() || !self.settings.config.synthesis || !self.is_trusted() {
            return Vec::new();
        }
        let settings = search_settings(&self.settings.config);
        let recent = self.recent();
        let suggested = told.propose(&self.shape, (&recent, self.machinery.frozen()), &settings);
        let worth = suggested.into_iter().filter(|candidate| self.is_worth_hearing(candidate, &recent));
        self.gone_along(&recent).into_iter().chain(worth).take(SUBMITTED_MAX).collect()
    }

    /// What people call right, and beyond it what led on, if an episode of a copy that went along it earned more than what acts.
    fn gone_along(&self, recent: &[&Episode]) -> Option<Hypothesis> {
        if !self.hearing.apart.is_running() {
            return None;
        }
        let (trails, frozen) =
            (Trails::of(self.experience.episodes(), self.shape.actions), self.machinery.frozen());
        let found = self.hearing.told.completed(&self.shape, recent, |seen| trails.onward(seen))?;
        let is_worth = found.policy != **frozen
            && self.candidates.tested_at(&found.policy).is_none()
            && bad_steps(&found.policy, recent) <= bad_steps(frozen, recent);
        (is_worth && earned_more(&found.policy, frozen, recent)).then_some(found)
    }

    /// Whether labels agree with what acts about as often as chance would: who contradicts nearly everything that was measured
    /// is not listened to. In worlds of several steps what acts before anything was found may be wrong everywhere.
    fn is_trusted(&self) -> bool {
        let told = &self.hearing.told;
        let is_most =
            || told.len() <= 2 * usize::from(self.shape.actions) * (1 + told.agreed(self.machinery.frozen()));
        1 < self.walked() || is_most()
    }

    /// Whether what acts may be there because of people: something of theirs was let in, and it does what they call right in at
    /// least half of what they said. A word that nothing came of changes nothing about how the log is searched.
    pub(super) fn acts_as_told(&self) -> bool {
        let told = &self.hearing.told;
        let has_won = self.hearing.apart.has_won();
        has_won && !told.is_empty() && told.len() <= 2 * told.agreed(self.machinery.frozen())
    }

    /// Whether labels speak for a candidate, and the log does not show that it meets something BAD more often. Where a copy can
    /// play by itself, that it earns more is for a short trial to say; where an episode has many steps and it cannot, the
    /// candidate was seen to earn more or much was said for it.
    fn is_worth_hearing(&self, candidate: &Hypothesis, recent: &[&Episode]) -> bool {
        let (policy, frozen) = (&candidate.policy, self.machinery.frozen());
        let is_timed = self.settings.config.stationary && 0 < policy.counts_steps();
        // What chance turned down may come again when four times as much is known.
        let is_early = self.candidates.tested_at(policy).is_some_and(|steps| self.tally.steps < 4 * steps);
        if is_timed || is_early || *policy == **frozen || self.candidates.is_waiting(policy) {
            return false;
        }
        let (wins, losses) = self.hearing.told.compare(policy, frozen);
        if wins < 2 || wins <= 2 * losses || bad_steps(frozen, recent) < bad_steps(policy, recent) {
            return false;
        }
        let is_trusted = TRUSTED_MIN <= wins && 8 * losses <= wins;
        self.shape.horizon == 1
            || 1 < self.walked()
            || earned_more(policy, frozen, recent)
            || is_trusted && self.is_short(candidate)
    }

    /// Whether a candidate says much less than its labels do.
    fn is_short(&self, candidate: &Hypothesis) -> bool {
        bem_synth::functions::is_short(candidate.description_length, self.hearing.told.len())
    }

    /// Steps of an episode that a copy can play by itself; one where worlds do not repeat themselves, and somebody else's episodes
    /// are all that there is.
    pub(super) fn walked(&self) -> u32 {
        if self.repeats() { self.shape.horizon } else { 1 }
    }

    /// Whether what people said is looked at in the middle of a trial of the learner's own: between two pairs, and only where a
    /// copy can take the trial's place and leave it as it was.
    pub(super) fn interrupts_trial(&self) -> bool {
        let Phase::Measure(gate) = &self.phase else { return false };
        let is_between = gate.contest() == Contest::Trial && gate.half_seed().is_none();
        let is_own = is_between && !self.hearing.apart.is_running() && self.repeats();
        let is_due = self.hearing.is_due(self.walked(), self.tally.steps);
        is_own && is_due && self.workload.is_paced() && !self.is_spent()
    }
}

/// Steps of the log that were BAD and in which a policy would have done what was done.
fn bad_steps(policy: &Policy, episodes: &[&Episode]) -> usize {
    let is_bad = |episode: &&&Episode| episode.steps.iter().any(|step| step.bad);
    let bad: Vec<&Episode> = episodes.iter().filter(is_bad).copied().collect();
    let wanted = policy.replay(bad.iter().copied());
    let steps = bad.iter().zip(&wanted).flat_map(|(episode, wanted)| episode.steps.iter().zip(wanted));
    steps.filter(|(step, wanted)| step.bad && step.action == **wanted).count()
}

/// Whether the episodes of the log that a policy would have played just so brought more than those of another.
pub(super) fn earned_more(policy: &Policy, other: &Policy, episodes: &[&Episode]) -> bool {
    let mean = |policy: &Policy| {
        let wanted = policy.replay(episodes.iter().copied());
        let (mut count, mut sum) = (0i128, 0i128);
        for (episode, wanted) in episodes.iter().zip(&wanted) {
            if episode.steps.iter().map(|step| step.action).eq(wanted.iter().copied()) {
                (count, sum) = (count + 1, sum + i128::from(episode.total()));
            }
        }
        (0 < count).then(|| sum * 1_024 / count)
    };
    match (mean(policy), mean(other)) {
        (Some(mine), Some(theirs)) => theirs < mine,
        (Some(_), None) => true,
        (None, _) => false,
    }
}
