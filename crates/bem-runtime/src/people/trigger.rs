//! When the machine asks by itself: after outcomes, complete episodes and rounds, within the rates that the control allows.
//!
//! Nothing here happens while a decision is made: it is looked at what came of it. A context is asked about once at a time.
//! Questions that find no room, or that the rate does not allow, are counted. Clauses: HUM-10; decision D-79.

use super::ask::{episode_context, step_context};
use super::oversight::Publishing;
use super::standing::HELD_BACK_MAX;
use crate::input::WorldIndex;
use crate::round::Brought;
use crate::service::Service;
use crate::world::World;
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_learn::wide::WideBucket;
use bem_people::kinds::{Mode, Priority, QuestionKind, Skip};
use bem_people::payload::context::{Context, PatchContext};
use bem_people::table::Request;

/// Two actions that the index can hardly tell apart.
const CAUSE_CLOSE: u8 = 1;
/// Something BAD happened.
const CAUSE_BAD: u8 = 2;
/// A context that was seldom seen.
const CAUSE_RARE: u8 = 4;
/// Choices below which a context is rare.
const RARE_BELOW: u64 = 32;
/// Inputs after which a question about a step, an episode, a patch or anything else is skipped.
const STEP_PATIENCE: u64 = 50_000;
const PATCH_PATIENCE: u64 = 200_000;
/// Episodes before returns are compared with their mean.
const EPISODES_MIN: u64 = 32;
/// Rounds in a row without a change after which people are asked what to learn first.
const STALLED_ROUNDS: u32 = 3;
/// BAD outcomes with which an alarm begins.
const ALARM_BAD: u64 = 8;

impl Service {
    /// Looks at an outcome that was booked: of which decision, and whether it is BAD. `episodes` were complete before it.
    pub(crate) fn watch_outcome(
        &mut self,
        index: WorldIndex,
        (decision, bad): (u64, bool),
        episodes: u64,
        number: u64,
    ) {
        self.defer_overdue(index, number);
        self.maybe_ask_template(index, number);
        if !self.people.control.enable_online {
            return;
        }
        let rate = self.people.control.max_online_step_rate;
        self.people.windows[0].pass(rate);
        // An outcome is booked at every step and a question is rare: what costs least is looked at first.
        if self.people.windows[0].has_room() {
            self.maybe_ask_step(index, decision, number);
        } else {
            self.people.counters.total_tasks_rate_limited += u64::from(bad);
        }
        let complete = self.world(index).map_or(0, |world| world.statistics().returns.count);
        if episodes < complete {
            let rate = self.people.control.max_online_episode_rate;
            self.people.windows[1].pass(rate);
            self.maybe_ask_episode(index, number);
        }
        if bad {
            self.maybe_alarm(index, number);
        }
    }

    #[doc(alias = "HINL_MAYBE_CREATE_STEP_TASK")]
    fn maybe_ask_step(&mut self, index: WorldIndex, decision: u64, number: u64) {
        let Some(world) = self.world(index) else { return };
        // A context is asked about once at a time.
        if self.people.table.asks_about_all(index.0, world.acting().contexts() as u64) {
            return;
        }
        let Some((step, ..)) = world.decision(decision) else { return };
        let (observation, bad) = (step.observation, step.outcome.is_some_and(|outcome| outcome.bad));
        let (context, bucket) = world.acting().context(&observation);
        if self.people.table.asks_about(index.0, u64::from(context)) {
            return;
        }
        let (gap, rarity) = certainty(world, bucket, &observation);
        let mut cause = 0;
        if gap < self.people.control.min_confidence_for_auto {
            cause |= CAUSE_CLOSE;
        }
        cause |= if bad { CAUSE_BAD } else { 0 };
        cause |= if rarity { CAUSE_RARE } else { 0 };
        if cause == 0 {
            return;
        }
        let Some(shown) = step_context(world, index.0, decision, cause) else { return };
        let priority = match (bad, rarity) {
            (true, _) => Priority::High,
            (_, true) => Priority::Low,
            _ => Priority::Normal,
        };
        // The smaller the gap, the greater the doubt.
        let doubt = u32::MAX - (gap.to_raw().clamp(0, i64::from(u32::MAX)) as u32);
        // One that finds no place is counted, and uses up what the rate allows.
        self.ask_itself(Context::Step(shown), priority, doubt, number + STEP_PATIENCE, number);
        self.people.windows[0].spend();
    }

    #[doc(alias = "HINL_MAYBE_CREATE_EPISODE_TASK")]
    fn maybe_ask_episode(&mut self, index: WorldIndex, number: u64) {
        let Some(world) = self.world(index) else { return };
        if world.spec().shape.horizon == 1 {
            return;
        }
        let Some(recent) = world.standing().recent.back() else { return };
        let returns = &world.statistics().returns;
        let mut flags = u32::from(recent.bad);
        if EPISODES_MIN <= returns.count {
            let count = i128::from(returns.count);
            let mean = returns.sum / count;
            let variance = (returns.squares / count - mean * mean).max(0) as u128;
            let far = 2 * variance.isqrt() as i128;
            let away = i128::from(recent.total) - mean;
            flags |= if away < -far.max(1) { 2 } else { 0 };
            flags |= if far.max(1) < away { 4 } else { 0 };
        }
        if flags == 0 {
            return;
        }
        if !self.people.windows[1].has_room() {
            self.people.counters.total_tasks_rate_limited += 1;
            return;
        }
        let shown = episode_context(world, index.0, recent, flags);
        let priority = if recent.bad { Priority::High } else { Priority::Normal };
        let asked = self.ask_itself(Context::Episode(shown), priority, flags, number + STEP_PATIENCE, number);
        if asked.is_some() {
            self.people.windows[1].spend();
        }
    }

    /// Something BAD has happened for the eighth, sixteenth, thirty-second time: should changes be overseen?
    fn maybe_alarm(&mut self, index: WorldIndex, number: u64) {
        let Some(world) = self.world(index) else { return };
        let bad = world.statistics().bad;
        let is_strict = Mode::RequireApproval <= self.people.control.safety_override_mode;
        if is_strict || bad < ALARM_BAD || !bad.is_power_of_two() || self.has_open(QuestionKind::AdjustConfig)
        {
            return;
        }
        let words = format!(
            "{bad} BAD outcomes in world {}: should changes wait for an approval?",
            world.spec().name
        );
        let context = self.config_context(&words);
        self.ask_itself(context, Priority::Critical, 0, number + PATCH_PATIENCE, number);
    }

    fn has_open(&self, kind: QuestionKind) -> bool {
        self.people.table.open().any(|question| question.kind == kind)
    }

    pub(crate) fn ask_itself(
        &mut self,
        context: Context,
        priority: Priority,
        doubt: u32,
        deadline: u64,
        number: u64,
    ) -> Option<u64> {
        let request = Request {
            kind: context.kind(),
            target: context.target(),
            priority,
            context: context.to_bytes(),
            deadline,
            flags: 0,
            doubt,
            group: 0,
            barred: 0,
        };
        self.enqueue(request, number)
    }

    /// A round came back: asks about what it changes, if that is asked about; what takes effect.
    pub(crate) fn watch_round(
        &mut self,
        index: WorldIndex,
        publishing: Publishing,
        number: u64,
    ) -> Option<Brought> {
        let brought = match publishing {
            Publishing::Nothing => None,
            Publishing::Brought(brought, shown) => {
                if let Some(shown) = shown {
                    self.ask_about_patch(*shown, number);
                }
                Some(brought)
            }
            Publishing::Held(shown) => {
                let asked = self.ask_about_patch(*shown, number);
                let world = self.world_mut(index)?;
                match (asked, world.standing.held.as_mut()) {
                    (Some(question), Some(held)) => {
                        held.question = question;
                        None
                    }
                    // Nobody can be asked: without an approval it does not take effect.
                    _ => world.turn_down("deferred: no question could be asked", number),
                }
            }
        };
        let stalled = self.world(index).map_or(0, |world| world.standing().stalled);
        if self.people.control.enable_online
            && 0 < stalled
            && stalled.is_multiple_of(STALLED_ROUNDS)
            && !self.has_open(QuestionKind::RankTemplates)
            && let Ok(context) = self.templates_context(&[])
        {
            self.ask_itself(context, Priority::Low, 0, number + PATCH_PATIENCE, number);
        }
        brought
    }

    #[doc(alias = "HINL_MAYBE_CREATE_PATCH_TASK")]
    fn ask_about_patch(&mut self, shown: PatchContext, number: u64) -> Option<u64> {
        let priority = if shown.in_force { Priority::High } else { Priority::Critical };
        self.ask_itself(Context::Patch(shown), priority, u32::MAX, number + PATCH_PATIENCE, number)
    }

    /// A change that too much waits behind is deferred.
    fn defer_overdue(&mut self, index: WorldIndex, number: u64) {
        let Some(world) = self.world(index) else { return };
        if world.waiting.len() < HELD_BACK_MAX {
            return;
        }
        if let Some(question) = world.standing().held().map(|held| held.question) {
            self.skip_question(question, Skip::Obsolete, number);
        }
    }
}

/// By how much the best action leads where this is seen, as a share of the range of losses; and whether the context is rare.
fn certainty(world: &World, bucket: &WideBucket, observation: &Bits) -> (Fixed, bool) {
    let (mut first, mut second) = (i32::MAX, i32::MAX);
    for action in 0..world.spec().shape.actions {
        if world.acting().is_forbidden(observation, action) {
            continue;
        }
        let index = bucket.index(usize::from(action));
        if index < first {
            (first, second) = (index, first);
        } else if index < second {
            second = index;
        }
    }
    let gap = i64::from(second) - i64::from(first);
    (Fixed::from_raw(gap << 4), bucket.selections_total() < RARE_BELOW)
}
