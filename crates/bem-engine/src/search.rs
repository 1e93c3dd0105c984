//! Searching: when it happens, what it looks at, and which of its candidates are worth measuring.
//!
//! A search tends the contexts of the plain choice and asks the grammar for hypotheses. A candidate that logged
//! steps speak against is dropped for free. Clauses: SCC-2, SCC-8; decisions D-33 to D-35.

use crate::gate::SPAN_EPISODES;
use crate::learner::{Announced, Event, Incumbent, Learner, Phase, Witness};
use bem_base::fixed::Fixed;
use bem_synth::hypothesis::{Hypothesis, Stated};
use bem_synth::models::control;
use bem_synth::propose;
use bem_synth::screen::Screen;
use std::sync::Arc;

/// Word operations of searching that every step of experience pays for: where searching brings nothing, it takes no
/// more time than in proportion to what was seen.
const WORK_PER_STEP: u64 = 1_000_000;

impl Learner {
    /// Tends the contexts, and searches for candidates unless everything is explained.
    pub(crate) fn search(&mut self, witness: &mut dyn Witness) -> Event {
        // Whoever acted until now is what the counts are checked with.
        let is_borne_out = self.settings.synthesis && self.is_borne_out();
        self.settle(witness);
        // What explains everything needs no search until something contradicts it.
        let is_searched = self.settings.synthesis && !self.explains_all();
        if is_searched {
            self.propose(is_borne_out, witness);
        }
        // Structure may be improved where there is nothing to be searched for.
        let is_improved = self.settings.synthesis && self.submit_structure();
        if !is_searched && !is_improved {
            return self.pause();
        }
        // A scheduler says when patches are decided; paced, it is now.
        if self.workload.is_none() {
            self.tested_before = Some(self.tested.len() as u64);
            self.phase = Phase::Judge;
        }
        Event::Searched
    }

    /// Ends a round: the next search comes after a while.
    pub(crate) fn pause(&mut self) -> Event {
        // A search costs more on more data, so that later ones are farther apart.
        let share = if self.tally.steps < 4_000 { 4 } else { 2 };
        let pause = (self.tally.steps / share).max(16);
        // Where a circuit acts and searching keeps bringing nothing new, it happens less and less often.
        let next = self.tally.steps + pause * self.fruitless.clamp(1, 8);
        self.next_search = next.max(self.tally.work / WORK_PER_STEP);
        self.end_round();
        Event::RoundEnded
    }

    /// Tends the contexts; where the choice itself acts and may go on by itself, its new best actions act from now on.
    pub(crate) fn settle(&mut self, witness: &mut dyn Witness) {
        self.tend_contexts(witness);
        let Some(policy) = self.frozen_choice() else { return };
        let changed = policy != *self.incumbent.policy;
        if changed {
            self.link("bem/chain/choice", policy.digest().as_bytes());
            let (policy, words) = (Arc::new(policy), self.choice_words());
            self.hand_over(Incumbent { policy, words, is_choice: true, looks_ahead: false, machine: None });
        } else if self.announced != Announced::Nothing {
            // The same choice may be made with fewer contexts, or with more of them.
            self.incumbent.words = self.choice_words();
        }
        let agent = self.agent();
        // An agent that learns anew in every episode is the same whatever it begins with; what it knows of changes is
        // news once.
        let news = match (agent.adapts(), agent.levels()) {
            (true, Some(_)) => self.announced != Announced::Levels,
            (true, None) => changed && self.announced == Announced::Nothing,
            _ => changed,
        };
        if news {
            self.announced = match agent.levels() {
                Some(_) => Announced::Levels,
                None => Announced::Choice,
            };
            witness.incumbent_changed(&agent, &self.incumbent.words, &self.tally);
        }
    }

    /// Whether the choice itself acts, and may go on by itself.
    pub(crate) fn acts_by_choice(&self) -> bool {
        self.incumbent.is_choice && !self.incumbent.looks_ahead && self.pays_at_once()
    }

    /// Whether what an action brings at once is all there is to choose by: in worlds of one step, and as long as the
    /// choice keeps no contexts apart. Elsewhere the best action in every context may be the worst in the long run, so
    /// that a new choice is measured against what acts like any other candidate.
    fn pays_at_once(&self) -> bool {
        self.shape.horizon == 1 || self.bandit.contexts() == 1
    }

    fn choice_words(&self) -> String {
        format!("best action in each of {} contexts", self.bandit.contexts())
    }

    /// Searches the log for candidates and makes patches of those worth it.
    fn propose(&mut self, is_borne_out: bool, witness: &mut dyn Witness) {
        let proposal = propose::propose(&self.shape, &self.experience, &self.settings.search);
        self.tally.work = self.tally.work.saturating_add(proposal.work);
        self.explorer = proposal.explorer;
        let mut candidates = proposal.hypotheses;
        if !(self.incumbent.is_choice && self.pays_at_once())
            && let Some(Stated { policy, statement }) = self.bandit.freeze_stated(&self.bandit.best_actions())
        {
            candidates.push(Hypothesis {
                policy,
                statement: Some(statement),
                words: self.choice_words(),
                description_length: u32::MAX,
                exact: false,
                foreseen: None,
                provenance: self.experience.digest(),
                machine: None,
            });
        }
        if is_borne_out
            && self.bears_out_what_is_hidden()
            && let Some(plan) = self.take_small_plan(&mut candidates)
        {
            self.look_ahead(plan, witness);
        }
        self.submit(candidates, true);
    }

    /// Whether the incumbent is a circuit that would have given every answer ever seen to be right.
    fn explains_all(&self) -> bool {
        if self.incumbent.is_choice {
            return false;
        }
        let episodes = propose::recent(&self.experience, self.settings.search.steps_max);
        // Where actions change what follows, the highest reward now may not be the best there is.
        if self.explorer.is_some() || control::Prospect::is_possible(&self.shape, &episodes) {
            return false;
        }
        let steps = || episodes.iter().flat_map(|episode| &episode.steps);
        let top = steps().map(|step| step.reward).max().unwrap_or(0);
        // Where rewards are graded, what earns the highest says nothing about rows in which it cannot be earned.
        let second = steps().map(|step| step.reward).filter(|reward| *reward < top).max().unwrap_or(top);
        if steps().any(|step| step.reward < second) {
            return false;
        }
        let wanted = self.incumbent.policy.replay(episodes.iter().copied());
        // An action of its own choice that earned less than another did for the same observation is a doubt.
        let agreed = steps().zip(wanted.iter().flatten());
        top == self.shape.reward_max
            && agreed.into_iter().all(|(step, action)| step.reward < top || step.action == *action)
    }

    /// Whether a candidate is worth rollouts, and the mean difference that it promises; zero where it promises none.
    pub(crate) fn passes_screen(&self, candidate: &Hypothesis) -> Option<Fixed> {
        let tested = self.tested.get(&candidate.policy.digest());
        if candidate.policy == *self.incumbent.policy {
            return None;
        }
        // What reads its own actions was held against the log where it was found; replayed here, it would see others'.
        if candidate.foreseen.is_some() && candidate.exact {
            return tested.is_none().then_some(Fixed::ZERO);
        }
        if candidate.foreseen.is_some() {
            // A plan that chance turned down may come again when twice as much is known.
            // Before the range of returns is known, a test would take far too many pairs.
            let is_early = tested.is_some_and(|steps| self.tally.steps < 2 * steps);
            if is_early || self.experience.episode_count() < SPAN_EPISODES {
                return None;
            }
            // Where states are too many to be counted, only measuring can tell.
            let Some(outlook) = self.outlook(&candidate.policy) else { return Some(Fixed::ZERO) };
            let gain = outlook.ripe_gain().or_else(|| self.doubted_gain(&outlook))?;
            let span = self.seen_span();
            return Some(Fixed::from_ratio(gain.clamp(0, span), span));
        }
        if tested.is_some() {
            return None;
        }
        let episodes = propose::recent(&self.experience, self.settings.search.steps_max);
        let (theirs, ours) = Screen::compare(&candidate.policy, &self.incumbent.policy, &episodes);
        let explains = theirs.misses_nothing() && theirs.missed < ours.missed + 1 || theirs.may_mend(&ours);
        let convinces = theirs.beats(&ours) || candidate.exact && explains;
        convinces.then_some(Fixed::ZERO)
    }
}
