//! The contexts of the choice in a running learner: what the log asks for becomes patches, decided at once.
//!
//! With every search the contexts that make no difference any more are joined (MERGE), those on which rewards depend are
//! divided (SPLIT, one patch for all divisions between two barriers), and one whose late steps contradict it forgets what
//! came before (RESET). Each is judged like any other patch: its condition is shown, what speaks for it was measured on the
//! log, the decision goes into the chain and to the witness. No step in the world is taken, because such evidence is at
//! hand. Clauses: SCC-2, SCC-8, SCC-13; decisions D-20, D-33.

use crate::bandit::growth::{self, Changed, Growth};
use crate::bandit::{RoutedBandit, Seen, counted};
use crate::gate::{applied_patch, decision, decision_bytes};
use crate::learner::{Learner, Witness};
use bem_base::fixed::Fixed;
use bem_evolve::contexts::Choice;
use bem_evolve::evolution::Record;
use bem_evolve::patch::{Change, ExpectedEffects};
use bem_evolve::propose::Proposal;
use bem_evolve::verify::Improvement;
use bem_synth::policy::Policy;
use bem_synth::propose;

/// Steps of the log that contexts are grown from, at most.
const CONTEXT_STEPS_MAX: usize = 160_000;

impl Learner {
    /// Brings contexts and statistics of the choice up to date with the log.
    pub(crate) fn tend_contexts(&mut self, witness: &mut dyn Witness) {
        for look in [Learner::joins, Learner::divisions, Learner::changes] {
            if let Some(proposal) = look(self) {
                self.decide_contexts(proposal, witness);
            }
        }
        let counted = self.counted();
        if counted.iter().any(|steps| !steps.is_empty()) {
            self.bandit = RoutedBandit::from_counted(&self.shape, self.choice().tree(), &counted);
        }
    }

    /// The logged steps of every context that count.
    fn counted(&self) -> Vec<Vec<Seen<'_>>> {
        let episodes = propose::recent(&self.experience, CONTEXT_STEPS_MAX);
        counted(self.choice(), &episodes, self.tally.steps)
    }

    /// The contexts in force. A world that the machine cannot hold has one.
    fn choice(&self) -> &Choice {
        static WHOLE: std::sync::LazyLock<Choice> = std::sync::LazyLock::new(Choice::new);
        self.machinery.as_ref().map_or(&WHOLE, |machinery| machinery.choice())
    }

    /// What the choice does in every context: what it did so far where it acts, and elsewhere what is best.
    fn acting(&self, bandit: &RoutedBandit) -> Vec<u16> {
        if self.acts_by_choice() && 1 < bandit.contexts() {
            bandit.actions_of(&self.incumbent.policy)
        } else {
            bandit.best_actions()
        }
    }

    /// The choice as a circuit where it acts at once. It goes on as it did until the log shows something better: parts
    /// that were just kept apart have few steps of their own.
    pub(crate) fn frozen_choice(&self) -> Option<Policy> {
        if !self.acts_by_choice() {
            return None;
        }
        let (acting, best) = (self.acting(&self.bandit), self.bandit.best_actions());
        // The log is gone through only if there is something to decide.
        let is_better = best != acting && self.bandit.improves_on(&acting, &self.shape, &self.counted());
        self.bandit.freeze(if is_better { &best } else { &acting })
    }

    fn joins(&self) -> Option<Proposal> {
        let tree = self.choice().tree();
        if tree.count() == 1 {
            return None;
        }
        let counted = self.counted();
        let bandit = RoutedBandit::from_counted(&self.shape, tree, &counted);
        let (actions, best) = (self.acting(&bandit), bandit.best_actions());
        let is_same = |low: usize| actions[low] == actions[low + 1] && best[low] == best[low + 1];
        let after = growth::join(tree, is_same, &counted, self.shape.actions)?;
        let (from, to) = (tree.count(), after.count());
        Some(Proposal {
            change: Change::Join { after, actions },
            improvement: Some(Improvement::Static),
            effects: ExpectedEffects { gates_saved: (from - to) as i32, ..ExpectedEffects::default() },
            words: format!("{from} contexts as {to} that choose the same"),
        })
    }

    fn divisions(&self) -> Option<Proposal> {
        let tree = self.choice().tree();
        let (bits, actions) = (self.shape.observation_bits, self.shape.actions);
        let Growth { after, explained, steps } = growth::divide(tree, self.counted(), bits, actions)?;
        let (from, to) = (tree.count(), after.count());
        Some(Proposal {
            change: Change::Divide { after },
            improvement: Some(Improvement::Logged { lower_bound: explained, steps }),
            effects: ExpectedEffects { novelty: Fixed::ONE, ..ExpectedEffects::default() },
            words: format!(
                "{from} contexts as {to}, which explain at least {explained} of what rewards differ by"
            ),
        })
    }

    fn changes(&self) -> Option<Proposal> {
        let counted = self.counted();
        let bandit = RoutedBandit::from_counted(&self.shape, self.choice().tree(), &counted);
        let (bits, actions) = (self.shape.observation_bits, self.shape.actions);
        let Changed { context, since, loss, steps } = growth::forget(&bandit, &counted, bits, actions)?;
        Some(Proposal {
            change: Change::Forget { context, before: since },
            improvement: Some(Improvement::Logged { lower_bound: loss, steps }),
            effects: ExpectedEffects { return_gain: loss, ..ExpectedEffects::default() },
            words: format!(
                "context {context} before step {since}: another action has been better by {loss} since"
            ),
        })
    }

    /// Decides a change of contexts; everybody is told.
    fn decide_contexts(&mut self, proposal: Proposal, witness: &mut dyn Witness) {
        let steps = self.tally.steps;
        let decided = self.machinery.as_mut().and_then(|machinery| machinery.decide_at_once(proposal, steps));
        let Some(record) = decided else { return };
        self.link("bem/chain/decision", &decision_bytes(&record, None));
        witness.decided(&decision(&record, None), applied_patch(&record));
        self.count(&record);
    }

    fn count(&mut self, record: &Record) {
        if record.is_applied() {
            self.tally.applied += 1;
        } else {
            self.tally.rejected += 1;
        }
    }
}
