//! Searching: what it looks at when it is due ([`super::candidates`], [`super::pacing`] say when), and which of its candidates are worth measuring.
//!
//! A search tends the buckets of plain actions and asks the grammar for hypotheses. A candidate that logged
//! steps speak against is dropped for free. Clauses: SCC-2, SCC-8; decisions D-33 to D-35.

use crate::learner::gate::SPAN_EPISODES;
use crate::learner::{Event, Learner, Phase, Witness};
use crate::parameters::search_settings;
use bem_base::environment::{Bits, Forbidden};
use bem_base::fixed::Fixed;
use bem_machine::route::directory::TreePlace;
use bem_synth::experience::Episode;
use bem_synth::hypothesis::{Hypothesis, Stated};
use bem_synth::models::control;
use bem_synth::policy::Policy;
use bem_synth::propose;
use bem_synth::screen::Screen;
use bem_synth::statement::{Branch, Choice, Statement};

/// What the log says about a candidate before anything is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Screened {
    /// It is worth measuring; the gain that it promises, zero where it promises none.
    Promises(Fixed),
    /// Nothing speaks against it, and not enough for it.
    Undecided,
    /// What is logged speaks for it, and chance may have done so: it is worth measuring where there is nobody else.
    Leads,
    /// Something speaks against it, or it was measured too recently.
    Refuted,
}

impl Learner {
    /// Tends the contexts, and searches for candidates unless everything is explained.
    pub(super) fn search(&mut self, witness: &mut dyn Witness) -> Event {
        // Whoever acted until now is what the counts are checked with.
        let is_borne_out = self.settings.config.synthesis && self.is_borne_out();
        self.tend_contexts(witness);
        self.tend_guard(witness);
        // What explains everything needs no search until something contradicts it.
        self.offered.look();
        let is_searched = self.settings.config.synthesis && !self.explains_all();
        if is_searched {
            self.propose(is_borne_out, witness);
        }
        // Structure may be improved where there is nothing to be searched for.
        let is_improved = self.settings.config.synthesis && self.submit_structure();
        if !is_searched && !is_improved {
            return self.pause();
        }
        // A scheduler says when patches are decided; by the paced rule it is now.
        if self.verifies_at_once() {
            self.candidates.open_round();
            self.phase = Phase::Judge;
        }
        Event::Searched
    }

    /// The latest episodes, as many as a search looks at.
    pub(super) fn recent(&self) -> Vec<&Episode> {
        propose::recent(&self.experience, self.settings.config.search_steps_max as usize)
    }

    /// Ends a round: the next search comes after a while.
    pub(super) fn pause(&mut self) -> Event {
        self.candidates.pause(self.tally.steps, self.tally.work);
        self.end_round();
        Event::RoundEnded
    }

    /// Whether the choice itself acts, and may go on by itself.
    pub(super) fn acts_by_choice(&self) -> bool {
        self.acts_plainly() && self.pays_at_once()
    }

    /// Whether what an action brings at once is all there is to choose by: in worlds of one step, and as long as the
    /// choice keeps no contexts apart. Elsewhere the best action in every context may be the worst in the long run, so
    /// that a new choice is measured against what acts like any other candidate.
    fn pays_at_once(&self) -> bool {
        self.shape.horizon == 1 || self.contexts() == 1
    }

    pub(super) fn choice_words(&self) -> String {
        format!("best action in each of {} contexts", self.contexts())
    }

    /// Searches the log for candidates and makes patches of those worth it.
    fn propose(&mut self, is_borne_out: bool, witness: &mut dyn Witness) {
        // By the paced rule people's candidates are measured by themselves.
        if !self.workload.is_paced() {
            self.propose_told();
        }
        self.propose_offered();
        let rules = self.machinery.family().guard().rules().iter();
        let forbidden: Vec<Forbidden> =
            rules.map(|rule| Forbidden { seen: rule.seen, action: rule.forbidden }).collect();
        let settings = search_settings(&self.settings.config);
        let known = self.exploration.explorer();
        let proposal = propose::propose(&self.shape, &self.experience, &forbidden, known, &settings);
        self.tally.work = self.tally.work.saturating_add(proposal.work);
        let credit = proposal.credit.as_ref();
        self.exploration.settle(credit.is_some_and(|credit| credit.is_settled(self.machinery.frozen())));
        self.exploration.adopt(proposal.explorer);
        if self.settings.config.exploration_hope {
            self.look_ahead();
        }
        let mut candidates = proposal.hypotheses;
        candidates.extend(self.candidates.take_undecided());
        // Where plain actions act and may go on by themselves, better ones are held without pairs.
        if !((self.acts_plainly() || self.standing.incumbent().by_counts) && self.pays_at_once())
            && let Some(Stated { policy, statement }) = self.frozen_choice()
        {
            candidates.push(Hypothesis {
                policy,
                statement: Some(statement),
                words: self.choice_words(),
                description_length: u32::MAX,
                exact: false,
                predicted: None,
                provenance: self.experience.digest(),
                machine: None,
            });
        }
        if is_borne_out
            && self.bears_out_what_is_hidden()
            && let Some(plan) = self.take_small_plan(&mut candidates)
        {
            self.follow_counts(plan, witness);
        }
        self.submit(candidates, true);
    }

    /// The best action of every bucket as one circuit, and what it says.
    fn frozen_choice(&self) -> Option<Stated> {
        let (family, actions) = (self.machinery.family(), self.best_actions());
        let frozen = family.freeze_actions(&actions)?;
        let policy = Policy::new(frozen.circuit, frozen.reads, frozen.memory_bits, self.shape.actions)?;
        let branch = |place: TreePlace| match place {
            TreePlace::Bit(bit) => Branch::Test(bit),
            TreePlace::Bucket(bucket) => Branch::Leaf(actions[usize::from(bucket)]),
        };
        let branches = family.directory().places()?.into_iter().map(branch).collect();
        Some(Stated { policy, statement: Statement::of(Choice::Tree(branches)) })
    }

    /// Whether the incumbent is a circuit that would have given every answer ever seen to be right.
    pub(super) fn explains_all(&self) -> bool {
        if !self.acts_by_proof() {
            return false;
        }
        let episodes = self.recent();
        // Where actions change what follows, the highest reward now may not be the best there is.
        if self.exploration.explorer().is_some()
            || control::PlannedControl::is_possible(&self.shape, &episodes)
        {
            return false;
        }
        let steps = || episodes.iter().flat_map(|episode| &episode.steps);
        let top = steps().map(|step| step.reward).max().unwrap_or(0);
        // Where rewards are graded, what earns the highest says nothing about rows in which it cannot be earned.
        let second = steps().map(|step| step.reward).filter(|reward| *reward < top).max().unwrap_or(top);
        if steps().any(|step| step.reward < second) {
            return false;
        }
        let wanted = self.machinery.frozen().replay(episodes.iter().copied());
        // An action of its own choice that earned less than another did for the same observation is a doubt.
        let agreed = steps().zip(wanted.iter().flatten());
        top == self.shape.reward_max
            && agreed.into_iter().all(|(step, action)| step.reward < top || step.action == *action)
    }

    /// What the log says about a candidate.
    pub(super) fn screen(&self, candidate: &Hypothesis) -> Screened {
        let tested = self.candidates.tested_at(&candidate.policy);
        if candidate.policy == **self.machinery.frozen() {
            return Screened::Refuted;
        }
        // What reads its own actions was held against the log where it was found; replayed here, it would see others'.
        if candidate.predicted.is_some() && candidate.exact {
            return if tested.is_none() { Screened::Promises(Fixed::ZERO) } else { Screened::Refuted };
        }
        if candidate.predicted.is_some() {
            return self.promised_gain(candidate, tested).map_or(Screened::Refuted, Screened::Promises);
        }
        // What chance turned down may come again when four times as much is known.
        if tested.is_some_and(|steps| self.tally.steps < 4 * steps) {
            return Screened::Refuted;
        }
        let episodes = self.recent();
        let guard = self.machinery.family().guard();
        let pass = |seen: &Bits, action: u16| guard.pass(seen, action);
        let (theirs, ours) = Screen::compare(&candidate.policy, self.machinery.frozen(), pass, &episodes);
        let explains = theirs.misses_nothing() && theirs.missed < ours.missed + 1 || theirs.may_mend(&ours);
        // With one step a pair costs nothing where both do the same: what may mend the other's losses is worth it.
        let may_mend = || theirs.may_mend(&ours) || pays_or_not(&episodes) && theirs.may_lose_less(&ours);
        let mends = self.shape.horizon == 1 && self.repeats() && may_mend();
        if theirs.beats(&ours) || theirs.succeeds_more(&ours) || candidate.exact && explains || mends {
            Screened::Promises(Fixed::ZERO)
        } else if self.shape.horizon == 1 && candidate.exact && theirs.disproved == 0 {
            // With more steps a screen is a hint, and a table that repeats what was seen is not refuted by it.
            Screened::Undecided
        } else if tested.is_none() && self.repeats() && theirs.leads(&ours) {
            // Where what acts is what people call right, and they may have been wrong, what leads by the log is measured at
            // once: with one step a pair costs nothing where both do the same.
            if self.shape.horizon == 1 && self.acts_as_told() {
                Screened::Promises(Fixed::ZERO)
            } else {
                Screened::Leads
            }
        } else {
            Screened::Refuted
        }
    }

    /// The gain that a plan promises by what was counted, as a part of the range of returns; none where it is too early.
    fn promised_gain(&self, plan: &Hypothesis, tested: Option<u64>) -> Option<Fixed> {
        // A plan that chance turned down may come again when twice as much is known.
        // Before the range of returns is known, a test would take far too many pairs.
        let is_early = tested.is_some_and(|steps| self.tally.steps < 2 * steps);
        if is_early || self.experience.episode_count() < SPAN_EPISODES {
            return None;
        }
        // Where states are too many to be counted, only measuring can tell.
        let Some(comparison) = self.predicted(&plan.policy) else { return Some(Fixed::ZERO) };
        let gain = comparison
            .ripe_gain()
            .or_else(|| self.doubted_gain(&comparison))
            .or_else(|| self.known_gain(&comparison))?;
        let span = self.seen_span();
        Some(Fixed::from_ratio(gain.clamp(0, span), span))
    }
}

/// Whether steps pay one of two rewards: then the lower one says that the answer was wrong.
fn pays_or_not(episodes: &[&Episode]) -> bool {
    let rewards = || episodes.iter().flat_map(|episode| &episode.steps).map(|step| step.reward);
    let (Some(low), Some(high)) = (rewards().min(), rewards().max()) else { return false };
    rewards().all(|reward| reward == low || reward == high)
}
