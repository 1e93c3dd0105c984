//! Plans that gain too little to be shown by pairs within what is left of the budget.
//!
//! Pairs show a large gain soon and a small one hardly ever: four times the pairs for half the gain. A plan is more than a
//! guess, though: it is made of counts. Where the counts are sure of its gain, and have predicted what the acting policy
//! really earned (counts of a world that hides something would predict too much), it is put into force by a patch like any
//! other, whose evidence is of a named weaker kind. The first candidate that wins its pairs replaces it. What can be shown
//! by pairs goes through the gate. Clauses: SCC-2, SCC-8; decision D-44.

use crate::learner::claim::proposal;
use crate::learner::standing::spread;
use crate::learner::{Learner, Witness};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_evolve::verify::Improvement;
use bem_synth::experience::Episode;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::models::control::{Lens, PlanComparison};
use bem_synth::policy::Policy;

/// Pairs may take this many steps even while hardly any were taken.
const MEASURING_STEPS: u64 = 8_192;
/// The latest episodes that say how long one is and how much returns vary.
const RECENT_EPISODES: usize = 256;
/// The part of the range of returns that counts may promise where something is hidden.
const HIDDEN_SHARE: i64 = 16;
/// The part of the range of returns that a plan must gain to be measured as soon as everything is known.
const KNOWN_GAIN: i64 = 16;
/// Episodes of the acting policy that the model must have predicted, at least.
const OWN_EPISODES: u64 = 8;

impl Learner {
    /// What a plan promises beyond the acting policy, by everything that was counted.
    pub(super) fn predicted<'p>(&'p self, plan: &'p Policy) -> Option<PlanComparison<'p>> {
        let all: Vec<&Episode> = self.experience.episodes().collect();
        let explorer = self.exploration.explorer()?;
        PlanComparison::of(&self.shape, explorer, &all, plan, self.machinery.frozen())
    }

    /// Takes a plan out of the candidates that should act by counts alone: showing its gain would take too many steps, or
    /// the plan itself is not yet what it could be while something much worse acts.
    pub(super) fn take_small_plan(&self, candidates: &mut Vec<Hypothesis>) -> Option<Hypothesis> {
        let place = candidates.iter().position(|candidate| candidate.predicted.is_some())?;
        let policy = &candidates[place].policy;
        let tested = self.candidates.tested_at(policy);
        let is_timed = self.settings.config.stationary && 0 < policy.counts_steps();
        if is_timed
            || *policy == **self.machinery.frozen()
            || tested.is_some_and(|steps| self.tally.steps < 2 * steps)
        {
            return None;
        }
        let comparison = self.predicted(policy)?;
        let gain = comparison.gain().filter(|gain| 0 < *gain)?;
        let is_late = MEASURING_STEPS <= self.tally.steps;
        let is_ripe = || comparison.ripe_gain().or_else(|| self.known_gain(&comparison)).is_some();
        let is_measured = self.is_affordable(gain) && (!is_late || is_ripe());
        (!is_measured && self.may_act_unmeasured(gain)).then(|| candidates.remove(place))
    }

    /// Whether counts may be believed that promise this gain, in milli-units. Where something is hidden, whoever acted
    /// while the log was made may have known more than the counts show, so that they promise what knowing less would not
    /// bring: there they may only lead on in small steps, and each must be borne out before the next.
    fn may_act_unmeasured(&self, gain: i64) -> bool {
        let is_open = self.exploration.explorer().is_some_and(|explorer| *explorer.lens() == Lens::default());
        self.standing.believes_counts(self.tally.steps)
            && (is_open || gain <= self.seen_span() / HIDDEN_SHARE)
    }

    /// The gain of a plan that counts promise and may not be believed for, where pairs can soon tell: there is nothing to
    /// wait for.
    pub(super) fn doubted_gain(&self, comparison: &PlanComparison<'_>) -> Option<i64> {
        let is_late = MEASURING_STEPS <= self.tally.steps;
        comparison
            .gain()
            .filter(|gain| is_late && !self.may_act_unmeasured(*gain) && self.is_affordable(*gain))
    }

    /// The gain of a plan where the counts leave hardly anything open: there is nothing to wait for.
    pub(super) fn known_gain(&self, comparison: &PlanComparison<'_>) -> Option<i64> {
        let least = (self.shape.return_max - self.shape.return_min) / KNOWN_GAIN;
        comparison.gain().filter(|gain| self.exploration.is_known() && least < *gain)
    }

    /// Puts the plan into force, if the counts are sure of its gain.
    pub(super) fn follow_counts(&mut self, plan: Hypothesis, witness: &mut dyn Witness) {
        let gain = {
            let Some(comparison) = self.predicted(&plan.policy) else { return };
            match comparison.gain() {
                Some(gain) if self.may_act_unmeasured(gain) && comparison.is_sure() => gain,
                _ => return,
            }
        };
        self.make_room();
        let (span, alarm) = (self.seen_span(), self.new_alarm_by_counts());
        let gain = Fixed::from_ratio(gain.clamp(0, span), span);
        let episodes = self.standing.realised().episodes().min(u64::from(u32::MAX)) as u32;
        let Some(mut proposal) = proposal(&plan, &self.recent()) else { return };
        proposal.words = format!("{}, by counts", plan.words);
        proposal.improvement = Some(Improvement::Counted { gain, episodes });
        if !self.decide_at_once(proposal, witness) {
            return;
        }
        self.standing.follow(plan, self.tally.steps, alarm);
        self.hand_over(witness);
    }

    /// Whether pairs would show a gain of this many milli-units before half of the budget that is left is gone, and within
    /// as many steps as were taken so far.
    fn is_affordable(&self, gain: i64) -> bool {
        let span = self.seen_span();
        let (mut episodes, mut steps, mut sum, mut squares) = (0i128, 0u64, 0i128, 0i128);
        for episode in self.experience.episodes().rev().take(RECENT_EPISODES) {
            let total = i128::from(episode.total());
            (episodes, steps) = (episodes + 1, steps + episode.steps.len() as u64);
            (sum, squares) = (sum + total, squares.saturating_add(total * total));
        }
        // The difference of two returns varies twice as much as one.
        let variance = spread(squares, episodes, sum) / (episodes * episodes).max(1);
        let returns = if self.repeats() { 2 } else { 1 };
        let share = variance.saturating_mul(returns << FRACTION_BITS) / (i128::from(span) * i128::from(span));
        let variance = Fixed::from_raw(share.min(i128::from(Fixed::ONE.to_raw())) as i64);
        let mean = Fixed::from_ratio(gain.clamp(0, span), span);
        let evolution = self.machinery.evolution();
        let played = match self.repeats() {
            true => evolution.pairs_expected(mean, variance).map(|pairs| pairs.saturating_mul(2)),
            false => evolution.episodes_expected(mean, variance),
        };
        let Some(played) = played else { return false };
        let cost = played.saturating_mul(steps) / (episodes as u64).max(1);
        let left = self.settings.budget.saturating_sub(self.steps_taken()) / 2;
        cost <= left.min(self.tally.steps.max(MEASURING_STEPS))
    }

    /// Whether the acting policy earned what the counts predict for it.
    pub(super) fn is_borne_out(&self) -> bool {
        let (realised, acting) = (self.standing.realised(), self.machinery.frozen());
        let predicted = (OWN_EPISODES <= realised.episodes()).then(|| self.predicted(acting)?.held());
        predicted.flatten().is_some_and(|predicted| realised.bears_out(predicted, self.seen_span()))
    }

    /// Whether counts through the present lens, where it is one for something hidden, predict what the acting policy earned.
    /// A search may bring a lens that shows less than the one before: what acts by more than it shows would seem worth less
    /// than it is.
    pub(super) fn bears_out_what_is_hidden(&self) -> bool {
        let is_open = |lens: &Lens| *lens == Lens::default();
        self.exploration.explorer().is_none_or(|explorer| is_open(explorer.lens())) || self.is_borne_out()
    }
}
