//! Buckets and plain actions in a running learner: what the log asks for becomes patches, decided at once.
//!
//! With every search the buckets that make no difference any more are joined (MERGE), those on which rewards depend are
//! divided (SPLIT, one patch for all divisions between two barriers), one whose late steps contradict it forgets what came
//! before (RESET), and where plain actions act, better ones are held (HOLD). Each is judged like any other patch: its
//! condition is shown, what speaks for it was measured on the log, the decision goes into the chain and to the witness. No
//! step in the world is taken, because such evidence is at hand. Clauses: SCC-2, SCC-8, SCC-13; decisions D-20, D-41, D-44.

pub(super) mod growth;
pub(super) mod means;

use self::growth::{Changed, Growth};
use self::means::{Means, Seen, counted, moment_words};
use crate::learner::drift::Alarm;
use crate::learner::{Learner, Witness};
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_evolve::improvement::Account;
use bem_evolve::patch::{Change, ExpectedEffects};
use bem_evolve::propose::Proposal;
use bem_evolve::verify::Improvement;
use bem_learn::switching::{Levels, Pull};
use bem_learn::tsallis_inf::Chance;
use bem_machine::family::Counted;
use bem_machine::held::{Adaptation, has_time_to_adapt};
use bem_synth::experience::{Episode, Step};
use bem_synth::propose;

/// Steps of the log that contexts are grown from, at most.
const CONTEXT_STEPS_MAX: usize = 160_000;
/// Levels that are closer than this to those in force are no news: parts of the range of losses, and of a log-weight.
const LEVEL_NEWS: Fixed = Fixed::from_ratio(1, 1_024);
const LEAD_NEWS: Fixed = Fixed::from_ratio(1, 8);

impl Learner {
    /// Brings buckets, statistics and plain actions up to date with the log.
    pub(super) fn tend_contexts(&mut self, witness: &mut dyn Witness) {
        let mut is_changed = false;
        while let Some(alarm) = self.drift.take(self.contexts() as u16) {
            is_changed |= self.decide_at_once(reset(&alarm), witness);
        }
        let joined = self.joins();
        is_changed |= joined.is_some_and(|proposal| self.decide_at_once(proposal, witness));
        // An adversary must not be able to make a rule forget that holds against it.
        let forgets = self.settings.config.alarms && !self.machinery.family().weighs_by_chance();
        let looks: [fn(&Learner, u128) -> Option<Proposal>; 2] = [Learner::divisions, Learner::changes];
        for look in looks.into_iter().take(if forgets { 2 } else { 1 }) {
            let odds = self.machinery.enter_test(Account::Contexts);
            let found = look(self, odds);
            is_changed |= found.is_some_and(|proposal| self.decide_at_once(proposal, witness));
        }
        // The machine counts every step as long as its buckets stay; a log that has forgotten steps knows less.
        self.count_anew(is_changed);
        let looks: [fn(&Learner) -> Option<Proposal>; 2] = [Learner::plain_again, Learner::better_actions];
        for look in looks {
            if let Some(proposal) = look(self) {
                self.decide_at_once(proposal, witness);
            }
        }
    }

    /// The statistics of plain actions become those of the log, if that is due or the log holds every step that was counted.
    pub(super) fn count_anew(&mut self, is_due: bool) {
        let counted = self.counted();
        let logged: usize = counted.iter().map(Vec::len).sum();
        let family = self.machinery.family();
        // Sums that are weighed by chances are more exact than the log.
        let knows_more = family.weighs_by_chance() || logged < Means::counted_by(family.plain()).steps();
        if logged == 0 || knows_more && !is_due {
            return;
        }
        let steps = |steps: &Vec<Seen<'_>>| steps.iter().map(|(_, step)| counted_step(step)).collect();
        let counted: Vec<Vec<Counted>> = counted.iter().map(steps).collect();
        self.machinery.count_anew(&counted);
    }

    /// The logged steps of every bucket that count.
    fn counted(&self) -> Vec<Vec<Seen<'_>>> {
        let episodes = propose::recent(&self.experience, CONTEXT_STEPS_MAX);
        counted(self.machinery.family(), &episodes)
    }

    /// How many buckets there are.
    pub(super) fn contexts(&self) -> usize {
        self.machinery.family().directory().bucket_count()
    }

    /// The best action of every bucket, by the log.
    pub(super) fn best_actions(&self) -> Vec<u16> {
        Means::of(&self.shape, &self.counted()).best_actions()
    }

    fn joins(&self) -> Option<Proposal> {
        let family = self.machinery.family();
        let directory = family.directory();
        if directory.bucket_count() == 1 {
            return None;
        }
        let counted = self.counted();
        let (held, best) = (&family.held().actions, Means::of(&self.shape, &counted).best_actions());
        let is_same = |one: u16, other: u16| {
            let [one, other] = [one, other].map(usize::from);
            held[one] == held[other] && best[one] == best[other]
        };
        let idle = growth::idle_divisions(directory, is_same, &counted, self.shape.actions);
        let (mut after, mut pairs) = (directory.clone(), Vec::new());
        // From the highest number down, so that joining one pair leaves the numbers of the others as they are.
        let mut idle: Vec<(u16, u16)> =
            idle.into_iter().map(|(one, other)| (one.min(other), one.max(other))).collect();
        idle.sort_unstable_by_key(|(_, high)| core::cmp::Reverse(*high));
        for (low, high) in idle {
            if after.join(low, high).is_ok() {
                pairs.push((low, high));
            }
        }
        let (from, to) = (directory.bucket_count(), after.bucket_count());
        (!pairs.is_empty()).then(|| Proposal {
            change: Change::Join { pairs, after },
            improvement: Some(Improvement::Static),
            effects: ExpectedEffects { gates_saved: (from - to) as i32, ..ExpectedEffects::default() },
            words: format!("join {from} contexts into {to} that choose the same"),
        })
    }

    fn divisions(&self, odds: u128) -> Option<Proposal> {
        let directory = self.machinery.family().directory();
        let (bits, actions) = (self.shape.observation_bits, self.shape.actions);
        let Growth { cuts, after, explained, steps } =
            growth::divide(directory, self.counted(), (bits, actions), odds)?;
        let (from, to) = (directory.bucket_count(), after.bucket_count());
        Some(Proposal {
            change: Change::Split { cuts, after },
            improvement: Some(Improvement::Logged { lower_bound: explained, steps }),
            effects: ExpectedEffects { novelty: Fixed::ONE, ..ExpectedEffects::default() },
            words: format!(
                "split {from} contexts into {to} (explains at least {explained} of the reward's variance)"
            ),
        })
    }

    fn changes(&self, odds: u128) -> Option<Proposal> {
        let Changed { bucket, since, loss, steps } = growth::forget(&self.shape, &self.counted(), odds)?;
        Some(Proposal {
            change: Change::Reset { bucket, before: since },
            improvement: Some(Improvement::Logged { lower_bound: loss, steps }),
            effects: ExpectedEffects { return_gain: loss, ..ExpectedEffects::default() },
            words: format!(
                "forget context {bucket} before {}: another action has been better by {loss} since",
                moment_words(since)
            ),
        })
    }

    /// What acts, as plain actions: where it does one thing in every context and the counts leave open that something else earns
    /// more in some of them, the index goes on learning there, which it does where plain actions act.
    fn plain_again(&self) -> Option<Proposal> {
        if self.acts_plainly() || self.shape.horizon != 1 || self.contexts() == 1 {
            return None;
        }
        let means = Means::counted_by(self.machinery.family().plain());
        let actions = self.acting_by_context()?;
        means.leave_open(&actions).then(|| self.hold(actions, Adaptation::Fixed, Fixed::ZERO, means.steps()))
    }

    /// What acts does in every context, where that is one and the same for everything that was seen in it.
    fn acting_by_context(&self) -> Option<Vec<u16>> {
        let family = self.machinery.family();
        let episodes = propose::recent(&self.experience, CONTEXT_STEPS_MAX);
        let acted = self.machinery.frozen().replay(episodes.iter().copied());
        let mut actions = vec![None; self.contexts()];
        for (episode, acted) in episodes.iter().zip(&acted) {
            for (step, action) in episode.steps.iter().zip(acted) {
                let bucket = usize::from(family.bucket_of(&step.observation));
                if actions[bucket].get_or_insert(*action) != action {
                    return None;
                }
            }
        }
        actions.into_iter().collect()
    }

    /// Whether plain actions act in several contexts and the counts leave open that others earn more.
    pub(in crate::learner) fn leaves_open(&self) -> bool {
        let family = self.machinery.family();
        let is_asked = self.acts_by_choice() && 1 < self.contexts();
        is_asked && Means::counted_by(family.plain()).leave_open(&family.held().actions)
    }

    /// Better plain actions, or another rule to adapt by, where plain actions act.
    fn better_actions(&self) -> Option<Proposal> {
        if !self.acts_by_choice() {
            return None;
        }
        let held = self.machinery.family().held();
        let counted = self.counted();
        let steps: usize = counted.iter().map(Vec::len).sum();
        let rule = self.rule_by_log();
        if is_news(held.rule, rule) {
            return Some(self.hold(held.actions.clone(), rule, Fixed::ZERO, steps));
        }
        // What adapts within every episode begins all of them alike.
        if rule != Adaptation::Fixed {
            return None;
        }
        // Where the log has forgotten steps, or was never kept, there is what the machine counted itself.
        let own = Means::counted_by(self.machinery.family().plain());
        let is_own = steps < own.steps();
        let means = if is_own { own } else { Means::of(&self.shape, &counted) };
        let steps = means.steps();
        if steps == 0 {
            return None;
        }
        // The best of one bucket is followed at once; with several, parts that were just divided have few steps of their
        // own, and what was held goes on until the log shows something better.
        let (better, gain) = match held.actions.len() {
            1 => {
                let best = means.best_actions();
                let gain = means.mean_gain(&best, &held.actions);
                (best, gain)
            }
            _ => {
                let by_log = Means::better_actions(&held.actions, &self.shape, &counted);
                by_log.or_else(|| means.surely_better_actions(&held.actions).filter(|_| is_own))?
            }
        };
        (better != held.actions).then(|| self.hold(better, rule, gain, steps))
    }

    fn hold(&self, actions: Vec<u16>, rule: Adaptation, gain: Fixed, steps: usize) -> Proposal {
        let words = match rule {
            Adaptation::Fixed => format!("hold the best action of each of {} contexts", actions.len()),
            Adaptation::Index => "adapt within episodes by the index".to_string(),
            Adaptation::Switching(_) => "adapt within episodes to changes of the best action".to_string(),
        };
        Proposal {
            change: Change::Hold { actions, rule },
            improvement: Some(Improvement::Means { gain: gain.max(Fixed::ZERO), steps: steps as u32 }),
            effects: ExpectedEffects { return_gain: gain, ..ExpectedEffects::default() },
            words,
        }
    }

    /// The rule by which plain actions should adapt within an episode, by what the log says about changes.
    fn rule_by_log(&self) -> Adaptation {
        if self.contexts() != 1 || !has_time_to_adapt(&self.shape) {
            return Adaptation::Fixed;
        }
        let range = means::reward_range(&self.shape);
        let pulls = |episode: &Episode| -> Vec<Pull> {
            let pull = |step: &Step| (step.action, range.exact_loss(i64::from(step.reward)));
            episode.steps.iter().map(pull).collect()
        };
        let sequences: Vec<Vec<Pull>> = self.experience.episodes().map(pulls).collect();
        match Levels::fit(usize::from(self.shape.actions), &sequences) {
            Some(levels) => Adaptation::Switching(levels),
            None if usize::from(self.shape.actions) <= ARMS_MAX => Adaptation::Index,
            None => Adaptation::Fixed,
        }
    }
}

/// A logged step as the machine counts it. Certain is what was done with the highest chance that the log can say.
fn counted_step(step: &Step) -> Counted {
    let chance = (step.is_told() && step.propensity != u16::MAX).then_some(step.propensity);
    let chance = chance.map(|chance| Chance::from_raw(u32::from(chance) << 16 | u32::from(chance)));
    Counted { action: step.action, reward: step.reward, chance }
}

/// A context whose world has changed forgets what came before.
fn reset(alarm: &Alarm) -> Proposal {
    let Alarm { bucket, since, moved, rewards } = *alarm;
    Proposal {
        change: Change::Reset { bucket, before: since },
        improvement: Some(Improvement::Logged { lower_bound: moved, steps: rewards }),
        effects: ExpectedEffects { return_gain: moved, ..ExpectedEffects::default() },
        words: format!(
            "forget context {bucket} before {}: what an action earns there has moved by at least {moved}",
            moment_words(since)
        ),
    }
}

/// Whether a rule differs from the one in force by more than the log's own noise.
fn is_news(held: Adaptation, found: Adaptation) -> bool {
    match (held, found) {
        (Adaptation::Switching(held), Adaptation::Switching(found)) => {
            let apart = |one: Fixed, other: Fixed| one.minus(other).max(other.minus(one));
            LEVEL_NEWS < apart(held.best, found.best)
                || LEVEL_NEWS < apart(held.other, found.other)
                || LEAD_NEWS < apart(held.lead_max, found.lead_max)
        }
        (held, found) => held != found,
    }
}

#[cfg(test)]
mod tests;
