//! Searching: when it happens, what it looks at, and which of its candidates are worth measuring.
//!
//! A search grows the contexts of the plain choice again and asks the grammar for hypotheses. A candidate that logged
//! steps speak against is dropped for free. Clauses: SCC-1, SCC-8; decisions D-33 to D-35.

use crate::bandit::RoutedBandit;
use crate::learner::{Event, Incumbent, Learner, Phase, Witness};
use bem_synth::hypothesis::Hypothesis;
use bem_synth::models::control::Model;
use bem_synth::propose;
use bem_synth::screen::Screen;
use std::sync::Arc;

/// Steps of the log that contexts are grown from, at most.
const CONTEXT_STEPS_MAX: usize = 64_000;
/// From this many steps on a plan is believed although its model has gaps.
const PLAN_STEPS_MIN: u64 = 20_000;

impl Learner {
    /// Grows the contexts again, and searches for candidates unless everything is explained.
    pub(crate) fn search(&mut self, witness: &mut dyn Witness) -> Event {
        self.settle(witness);
        // What explains everything needs no search until something contradicts it.
        if !self.settings.synthesis || self.explains_all() {
            return self.pause();
        }
        self.tested_before = Some(self.tested.len() as u64);
        self.propose();
        self.phase = Phase::Judge;
        Event::Searched
    }

    /// Ends a round: the next search comes after a while.
    pub(crate) fn pause(&mut self) -> Event {
        // A search costs more on more data, so that later ones are farther apart.
        let share = if self.tally.steps < 4_000 { 4 } else { 2 };
        let pause = (self.tally.steps / share).max(16);
        // Where a circuit acts and searching keeps bringing nothing new, it happens less and less often.
        self.next_search = self.tally.steps + pause * self.fruitless.clamp(1, 8);
        self.end_round();
        Event::RoundEnded
    }

    /// Regrows the contexts from the log; where the choice itself acts, its new best actions act from now on.
    fn settle(&mut self, witness: &mut dyn Witness) {
        let episodes = propose::recent(&self.experience, CONTEXT_STEPS_MAX);
        if !episodes.is_empty() {
            self.bandit = RoutedBandit::grow(&self.shape, &episodes);
        }
        let Some(policy) = self.bandit.freeze() else { return };
        if self.incumbent.is_choice && policy != *self.incumbent.policy {
            self.link("bem/chain/choice", policy.digest().as_bytes());
            let adapted = self.agent().adapts();
            let (policy, words) = (Arc::new(policy), self.choice_words());
            self.incumbent = Incumbent { policy, words, is_choice: true, machine: None };
            // An agent that learns anew in every episode is the same whatever it begins with.
            if !(adapted && self.agent().adapts() && self.announced) {
                self.announced = true;
                witness.incumbent_changed(&self.agent(), &self.incumbent.words, &self.tally);
            }
        }
    }

    fn choice_words(&self) -> String {
        format!("best action in each of {} contexts", self.bandit.contexts())
    }

    /// Fills the list of candidates from the log.
    fn propose(&mut self) {
        let proposal = propose::propose(&self.shape, &self.experience, &self.settings.search);
        self.curious = proposal.curious.map(Arc::new);
        self.waiting = proposal.hypotheses.into();
        if !self.incumbent.is_choice
            && let Some(policy) = self.bandit.freeze()
        {
            self.waiting.push_back(Hypothesis {
                policy,
                words: self.choice_words(),
                description_length: u32::MAX,
                exact: false,
                foreseen: None,
                provenance: self.experience.digest(),
                machine: None,
            });
        }
    }

    /// Whether the incumbent is a circuit that would have given every answer ever seen to be right.
    fn explains_all(&self) -> bool {
        if self.incumbent.is_choice {
            return false;
        }
        let episodes = propose::recent(&self.experience, self.settings.search.steps_max);
        let steps = || episodes.iter().flat_map(|episode| &episode.steps);
        let top = steps().map(|step| step.reward).max().unwrap_or(0);
        let wanted = self.incumbent.policy.replay(episodes.iter().copied());
        // An action of its own choice that earned less than another did for the same observation is a doubt.
        let agreed = steps().zip(wanted.iter().flatten());
        top == self.shape.reward_max
            && agreed.into_iter().all(|(step, action)| step.reward < top || step.action == *action)
    }

    /// Whether logged steps leave a chance that the candidate is better than the incumbent.
    pub(crate) fn passes_screen(&self, candidate: &Hypothesis) -> bool {
        if candidate.policy == *self.incumbent.policy {
            return false;
        }
        let episodes = propose::recent(&self.experience, self.settings.search.steps_max);
        if let Some(foreseen) = candidate.foreseen {
            let Some(model) = Model::new(&self.shape, &episodes) else { return false };
            let margin = (self.shape.return_max - self.shape.return_min) / 1_000;
            let complete = candidate.exact || PLAN_STEPS_MIN < self.tally.steps;
            return complete && model.value_of(&self.incumbent.policy) + margin < foreseen;
        }
        let (theirs, ours) = Screen::compare(&candidate.policy, &self.incumbent.policy, &episodes);
        theirs.beats(&ours) || candidate.exact && theirs.misses_nothing() && theirs.missed < ours.missed + 1
    }
}
