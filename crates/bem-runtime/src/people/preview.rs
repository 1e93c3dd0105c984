//! What an answer would change, number by number: the preview of an answer, and the record of one that is applied.
//!
//! Must not change anything. Clauses: HUM-5 to HUM-9; decisions D-76, D-79.

use super::change::{Change, What};
use super::standing::Recent;
use super::templates::is_template;
use crate::input::WorldIndex;
use crate::service::Service;
use crate::world::World;
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_learn::group_advantage::{EpisodeOutcome, GroupParameters, update};
use bem_learn::index::PRIOR_FRACTION_BITS;
use bem_learn::loss::Loss;
use bem_learn::wide::{Advice, WideBucket};
use bem_people::control::Control;
use bem_people::kinds::Decision;
use bem_people::payload::context::{Context, EpisodeContext, PatchContext, StepContext, TemplatesContext};
use bem_people::payload::{Answer, EpisodeAnswer, PatchAnswer, StepAnswer, TemplatesAnswer};
use bem_people::table::Person;

/// How far group advantages move priors for people's scores.
const GROUPS: GroupParameters =
    GroupParameters { rate: Fixed::ONE, spread_min: Fixed::from_ratio(1, 64), size_max: 64 };
/// The range of priors of worlds.
const TEMPLATE_PRIOR_MAX: Fixed = Fixed::from_int(64);

impl Service {
    /// What an answer would change.
    pub(crate) fn changes_of(&self, answer: &Answer, context: &Context, person: Person) -> Vec<Change> {
        let world = context.world().and_then(|index| self.world(WorldIndex(index)));
        match (answer, context, world) {
            (Answer::Step(answer), Context::Step(shown), Some(world)) => {
                let said = self.advice_of(answer, shown, person);
                let after = world.acting().advised(&shown.observation, &said);
                let (place, before) = world.acting().context(&shown.observation);
                let actions: Vec<u16> = said.iter().map(|(action, _)| *action).collect();
                bucket_changes((shown.task, u32::from(place)), before, &after, &actions)
            }
            (Answer::Episode(answer), Context::Episode(shown), Some(world)) => {
                let priors = self.priors_of(world, answer, shown);
                let mut changes = self.episode_changes(world, answer, shown);
                if let Some((seen, priors)) = priors {
                    let after = world.acting().advised(&seen, &priors);
                    let (place, before) = world.acting().context(&seen);
                    let actions: Vec<u16> = priors.iter().map(|(action, _)| *action).collect();
                    changes.extend(bucket_changes((shown.task, u32::from(place)), before, &after, &actions));
                }
                changes
            }
            (Answer::Patch(answer), Context::Patch(shown), _) => self.patch_changes(answer, shown),
            (Answer::Templates(answer), Context::Templates(shown), _) => self.template_changes(answer, shown),
            (Answer::Config(answer), ..) => {
                let control = &self.people.control;
                control_changes(control, &control.changed_by(answer))
            }
            _ => Vec::new(),
        }
    }

    /// What a label says of the actions it names: losses that count for the weight of labels and of who answers.
    pub(crate) fn advice_of(
        &self,
        answer: &StepAnswer,
        shown: &StepContext,
        person: Person,
    ) -> Vec<(u16, Advice)> {
        let control = &self.people.control;
        // Who is not known weighs one half, which counts in full.
        let weight = control.human_weight_bandit.mul_floor(self.people.groups.weight(person).mul_int(2));
        let weight = weight.to_raw().max(0) as u64;
        let loss = Loss::from_raw(Fixed::ONE.minus(answer.score).to_raw().clamp(0, 1 << 32) as u64);
        let best = answer.best.filter(|best| *best != shown.chosen);
        let mut said = Vec::new();
        if !answer.accept || best.is_none() {
            said.push((shown.chosen, Advice::of(weight, loss)));
        }
        said.extend(best.map(|best| (best, Advice::of(weight, Loss::from_raw(0)))));
        said
    }

    /// How a score moves the priors of the actions of its episode: the difference that it makes to the group of episodes that
    /// began alike.
    pub(crate) fn priors_of(
        &self,
        world: &World,
        answer: &EpisodeAnswer,
        shown: &EpisodeContext,
    ) -> Option<(Bits, Vec<(u16, Advice)>)> {
        let scored = world.standing().episode(shown.episode)?;
        let (place, _) = world.acting().context(&scored.seen);
        let outcomes = |of_scored: Option<Fixed>| -> Vec<EpisodeOutcome> {
            let alike =
                world.standing().recent.iter().filter(|other| world.acting().context(&other.seen).0 == place);
            let outcome = |other: &Recent| {
                let score = if other.place == scored.place { of_scored } else { other.score };
                EpisodeOutcome {
                    task: 0,
                    first_bucket: u32::from(place),
                    payoff: self.blended(world, other.total, score),
                    arms: other.arms.iter().map(|arm| u32::from(*arm)).collect(),
                }
            };
            alike.map(outcome).collect()
        };
        let (before, after) =
            (update(&GROUPS, &outcomes(scored.score)), update(&GROUPS, &outcomes(Some(answer.score))));
        let mut priors = Vec::new();
        for (old, new) in before.iter().zip(&after) {
            let moved = new.change.minus(old.change).clamp(Fixed::from_int(-8), Fixed::from_int(8));
            let prior = (moved.to_raw() >> (32 - PRIOR_FRACTION_BITS)) as i32;
            if prior != 0 {
                priors.push((old.arm as u16, Advice { prior, ..Advice::default() }));
            }
        }
        Some((scored.seen, priors))
    }

    /// What an episode counts for: its return as a share of the range, blended with what somebody thinks of it.
    fn blended(&self, world: &World, total: i64, score: Option<Fixed>) -> Fixed {
        let shape = &world.spec().shape;
        let span = (shape.return_max - shape.return_min).max(1);
        let share = (i128::from(total - shape.return_min) << 32) / i128::from(span);
        let share = Fixed::from_raw(share.clamp(0, 1 << 32) as i64);
        let Some(score) = score else { return share };
        let weight = self.people.control.human_weight_grpo.clamp(Fixed::ZERO, Fixed::ONE);
        Fixed::ONE.minus(weight).mul_floor(share).plus(weight.mul_floor(score))
    }

    fn episode_changes(&self, world: &World, answer: &EpisodeAnswer, shown: &EpisodeContext) -> Vec<Change> {
        let Some(recent) = world.standing().episode(shown.episode) else { return Vec::new() };
        let change = |what, before: i64, after: i64| Change {
            what,
            world: shown.task,
            place: 0,
            action: 0,
            before,
            after,
        };
        let returns =
            [recent.score, Some(answer.score)].map(|score| self.blended(world, recent.total, score).to_raw());
        let both = [
            change(What::Return, returns[0], returns[1]),
            change(What::Keep, i64::from(recent.keep), i64::from(answer.keep)),
        ];
        both.into_iter().filter(|change| change.before != change.after).collect()
    }

    fn patch_changes(&self, answer: &PatchAnswer, shown: &PatchContext) -> Vec<Change> {
        if is_template(shown) {
            return self.template_change(answer.decision, shown);
        }
        let change = |what, before: i64, after: i64| Change {
            what,
            world: shown.task,
            place: 0,
            action: 0,
            before,
            after,
        };
        let [now, proposed] = shown.policies.map(|policy| policy as i64);
        let policy = match (shown.in_force, answer.decision) {
            (false, Decision::Approve) => change(What::Policy, now, proposed),
            (true, Decision::Reject) => change(What::Policy, proposed, now),
            (true, _) => change(What::Policy, proposed, proposed),
            (false, _) => change(What::Policy, now, now),
        };
        let added = match answer.decision {
            Decision::Approve => self.people.control.human_weight_pox.mul_floor(answer.weight),
            _ => Fixed::ZERO,
        };
        let score = shown.pox_score;
        vec![policy, change(What::Score, score.to_raw(), score.plus_saturating(added).to_raw())]
    }

    fn template_changes(&self, answer: &TemplatesAnswer, shown: &TemplatesContext) -> Vec<Change> {
        let count = shown.templates.len() as i64;
        let mut changes = Vec::new();
        for (rank, place) in answer.order.iter().enumerate() {
            let Some(template) = shown.templates.get(usize::from(*place)) else { continue };
            // From one for the first to minus one for the last; a score of its own counts as much.
            let wish = Fixed::from_ratio(count - 1 - 2 * rank as i64, (count - 1).max(1));
            let wish = match answer.scores.get(usize::from(*place)) {
                Some(score) => {
                    Fixed::from_raw((wish.to_raw() + 2 * score.to_raw() - Fixed::ONE.to_raw()) / 2)
                }
                None => wish,
            };
            let before = self.people.prior(template.template);
            let moved = self.people.control.human_weight_teacher.mul_floor(wish);
            let after = before.plus_saturating(moved).clamp(TEMPLATE_PRIOR_MAX.negated(), TEMPLATE_PRIOR_MAX);
            let (before, after) = (before.to_raw(), after.to_raw());
            changes.push(Change {
                what: What::Template,
                world: template.template,
                place: 0,
                action: 0,
                before,
                after,
            });
        }
        changes
    }
}

/// What is different between two states of one context, for these actions.
pub(crate) fn bucket_changes(
    (world, place): (u16, u32),
    before: &WideBucket,
    after: &WideBucket,
    actions: &[u16],
) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut push = |what, action, before: i64, after: i64| {
        if before != after {
            changes.push(Change { what, world, place, action, before, after });
        }
    };
    let advice = |bucket: &WideBucket, action: u16| {
        bucket.advice().get(usize::from(action)).copied().unwrap_or_default()
    };
    for action in actions {
        let (old, new) = (advice(before, *action), advice(after, *action));
        push(What::Visits, *action, old.visits as i64, new.visits as i64);
        push(What::LossSum, *action, old.loss_sum as i64, new.loss_sum as i64);
        push(What::LossSquares, *action, old.loss_sq_sum as i64, new.loss_sq_sum as i64);
        let prior = |prior: i32| i64::from(prior) << (32 - PRIOR_FRACTION_BITS);
        push(What::Prior, *action, prior(old.prior), prior(new.prior));
        let index = |bucket: &WideBucket| i64::from(bucket.index(usize::from(*action))) << 4;
        push(What::Index, *action, index(before), index(after));
    }
    push(What::Choice, 0, before.choose() as i64, after.choose() as i64);
    changes
}

/// What is different between two controls, field by field.
pub(crate) fn control_changes(before: &Control, after: &Control) -> Vec<Change> {
    let words = |control: &Control| -> Vec<i64> {
        let mut words = vec![
            i64::from(control.enable_online),
            i64::from(control.max_online_step_rate),
            i64::from(control.max_online_episode_rate),
            i64::from(control.max_pending_tasks),
            control.safety_override_mode as i64,
        ];
        words.extend(control.fixed().into_iter().map(|(_, value)| value.to_raw()));
        words
    };
    let pairs = (0..).zip(words(before).into_iter().zip(words(after)));
    let changed = pairs.filter(|(_, (before, after))| before != after);
    changed
        .map(|(place, (before, after))| Change {
            what: What::Control,
            world: 0,
            place,
            action: 0,
            before,
            after,
        })
        .collect()
}
