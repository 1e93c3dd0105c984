//! Play for knowledge: before every episode chances are drawn from what the counts leave open, and the best plan in
//! the draw is followed. What could still be best is tried, what is known to be bad is not.
//!
//! Pairs that were hardly tried count as the best there is; how often a pair must be tried before it is believed is
//! drawn too. Where pairs are too many to try them all, that would be a walk through everything: there most plans are
//! those that analogies make best, with some hope for what was tried seldom. Within an episode the plan stays; in a state
//! with a pair that the plan wanted as unknown and that this episode has tried already, the next unknown one follows.
//!
//! Where something is hidden, the plan knows what telling evidence is worth only once it is recalled, and it is recalled only
//! once it was seen to tell: so in some episodes one action is repeated for a while.

use super::analogy;
use super::chance::{Dynamics, VALUE_BITS};
use super::counts::{Edge, Lens, Model};
use super::grain::Grain;
use super::plan::{Attitude, Plan};
use crate::experience::{Episode, Step};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Shape};
use bem_base::prng::Prng;

/// Numbers that planning may touch per step of experience gained since the last plan.
const WORK_PER_STEP: usize = 8_000;
/// Drawing one chance takes as long as touching this many numbers.
const DRAWING: usize = 24;
/// Plans that are worked out for one: what may be earned, what surely is, and the one that is followed.
const PLANS: usize = 3;
/// Of so many plans one looks for what is not known although hardly anything is left to be found.
const CURIOUS_ONE_IN: u64 = 8;
/// Parts of the counts that a draw believes, each with the same chance.
const PARTS: [i64; 4] = [1, 1, 4, 16];
/// In so many of sixteen plans analogies stand in for tries where pairs are too many.
const ANALOGOUS: u64 = 14;
/// Parts of the range of rewards that may be hoped for where nothing was tried, each with the same chance.
const HOPES: [i64; 4] = [0, 1, 4, 16];
/// The whole range in these parts.
const HOPE_PARTS: i64 = 64;
/// Returns lie within plus or minus this, in milli-units.
const RETURN_MAX: i64 = 1 << 40;
/// Steps back that are searched for tries within the episode.
const LOOK_BACK: usize = 256;

/// Of so many episodes in worlds that hide something, one repeats an action.
const REPEAT_ONE_IN: u64 = 2;
/// Repetitions of an action at most.
const REPEATS_MAX: u64 = 8;

/// One action, repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RepeatedAction {
    action: u16,
    /// The steps of the episode from the one to before the other.
    begin: u32,
    end: u32,
}

/// A model that grows, and the plan for the present episode.
#[derive(Clone, Debug)]
pub struct Explorer {
    model: Model,
    return_max: i64,
    plan: Option<Plan>,
    known_at: i64,
    /// Steps learned since the plan was made.
    fresh: usize,
    full: bool,
    /// What the present episode repeats.
    repeated: Option<RepeatedAction>,
}

impl Explorer {
    /// Knows what these episodes showed; none when there are too many states.
    pub fn of(shape: &Shape, lens: Lens, episodes: &[&Episode]) -> Option<Explorer> {
        Some(Explorer::new(shape, Model::of(shape, lens, Grain::FULL, episodes)?))
    }

    /// Knows what was counted.
    pub fn new(shape: &Shape, model: Model) -> Explorer {
        let return_max = shape.return_max;
        Explorer { model, return_max, plan: None, known_at: 1, fresh: 0, full: false, repeated: None }
    }

    /// Whether it was made for worlds of this shape.
    pub fn fits(&self, shape: &Shape) -> bool {
        let (actions, horizon) = (self.model.actions(), self.model.horizon());
        (actions, horizon, self.return_max) == (shape.actions, shape.horizon, shape.return_max)
    }

    /// Worlds pay beyond their range, and this is the wider one: what was counted stays, and where more may be earned than
    /// was thought the next plan is made anew.
    pub fn cover(&mut self, shape: &Shape) {
        if self.return_max != shape.return_max {
            (self.return_max, self.plan) = (shape.return_max, None);
        }
    }

    /// How much of the past it counts as the state.
    pub fn lens(&self) -> &Lens {
        self.model.lens()
    }

    /// How finely it looks.
    pub fn grain(&self) -> Grain {
        self.model.grain()
    }

    /// Whether there were too many states to go on counting.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// What it has counted, where that is the same as in this model and more: a log forgets what an explorer has counted.
    pub fn knows_more_than(&self, model: &Model) -> Option<&Model> {
        let is_same = (self.lens(), self.grain()) == (model.lens(), model.grain());
        (!self.full && is_same && model.tries() < self.model.tries()).then_some(&self.model)
    }

    /// Counts one more episode.
    pub fn learn(&mut self, episode: &Episode) {
        self.full |= !self.model.add(episode);
        self.fresh += episode.steps.len();
    }

    /// An episode that it has counted must not be learned from, or may be again.
    pub fn keep(&mut self, episode: &Episode, is_kept: bool) {
        if self.full {
            return;
        }
        match is_kept {
            true => self.full |= !self.model.add(episode),
            false => self.model.take_out(episode),
        }
    }

    /// What the best play may earn by the counts, in milli-units, where what was tried seldom is hoped to bring the most
    /// there is. After `steps` steps of a world in which chance plays, a pair is known once it was tried as often as their
    /// logarithm, or twice with the same outcome; where all outcomes agree, one try is enough. Before that one try more is
    /// imagined, which brings the most there is. None where states are too many
    /// to be counted, or most of them were met only once: there everything is new for ever.
    pub fn optimistic_return(&self, steps: u64) -> Option<i64> {
        let edges = self.model.edges();
        let is_met_once = |edges: &&Vec<Edge>| edges.iter().map(|edge| edge.count).sum::<i64>() < 2;
        if self.full || self.model.is_crowded() || edges.len() < 2 * edges.iter().filter(is_met_once).count()
        {
            return None;
        }
        let is_certain = edges.iter().flatten().all(|edge| edge.outcomes.len() < 2);
        let known_at = if is_certain { 1 } else { 4 + i64::from(steps.max(1).ilog2()) };
        let mut dynamics = Dynamics::expected(&self.model);
        for (row, edge) in dynamics.rows.iter_mut().zip(edges.iter().flatten()) {
            if 2 <= edge.count && edge.outcomes.len() == 1 {
                row.tries = row.tries.max(known_at);
            }
        }
        let attitude = Attitude::Hopeful { known_at, ceiling: self.return_max };
        let plan = Plan::best(&dynamics, self.model.horizon(), attitude);
        Some(dynamics.from_start(|state| plan.values[state]) >> VALUE_BITS)
    }

    /// Makes the plan of the next episode, if enough was learned to pay for it; returns lie within a range of this width.
    pub fn prepare(&mut self, span: i64, prng: &mut Prng) {
        if self.full {
            return;
        }
        self.repeated = self.draw_repeated(prng);
        let sweeps = (self.model.horizon() as usize).min(super::plan::STEPS_MAX);
        let size: usize = self.model.edges().iter().flatten().map(|edge| 1 + edge.outcomes.len()).sum();
        if self.plan.is_some() && self.fresh * WORK_PER_STEP < PLANS * size * (sweeps + DRAWING) {
            return;
        }
        self.fresh = 0;
        // Where hardly anything is left to be found, chances are drawn from the counts as they are: what is played for
        // knowledge then earns what is known. Where something is hidden, counts leave open more than they show.
        let is_open = *self.model.lens() == Lens::default();
        if is_open && prng.below(CURIOUS_ONE_IN) != 0 && self.is_known(span) {
            let dynamics = Dynamics::drawn(&self.model, prng);
            self.known_at = 0;
            self.plan = Some(Plan::best(&dynamics, self.model.horizon(), Attitude::Careful));
            return;
        }
        // Else what is wanted in the end is the best plan, not the best play until then: what is a little worse by the counts
        // is looked at more often than its chance to be the best.
        let part = PARTS[prng.below(PARTS.len() as u64) as usize];
        let dynamics = Dynamics::drawn_widely(&self.model, part, prng);
        if self.model.is_crowded() && prng.below(16) < ANALOGOUS {
            let share = HOPES[prng.below(HOPES.len() as u64) as usize];
            let hope = self.model.reward_span() * share / HOPE_PARTS;
            self.known_at = 0;
            self.plan = Some(analogy::plan(&self.model, &dynamics, self.model.horizon(), hope));
            return;
        }
        // One half of the plans believes a single try and goes far; the others look ever closer.
        self.known_at = 1 << prng.below(32).leading_zeros().saturating_sub(59).min(4);
        let ceiling = self.return_max;
        let attitude = match prng.bit() {
            true => Attitude::Curious { known_at: self.known_at, ceiling },
            // What was tried in vain is hoped for less: the plan itself says what is tried next.
            false => {
                Attitude::Hopeful { known_at: core::mem::replace(&mut self.known_at, 1).max(2), ceiling }
            }
        };
        self.plan = Some(Plan::best(&dynamics, self.model.horizon(), attitude));
    }

    /// Whether the counts leave open a hundredth of the range of returns at most.
    fn is_known(&self, span: i64) -> bool {
        let steps: i64 = self.model.edges().iter().flatten().map(|edge| edge.count).sum();
        self.optimistic_return(steps as u64).is_some_and(|optimistic| self.is_close(span, optimistic))
    }

    /// Whether the most that may be earned is at most a hundredth of the range of returns above what the counts promise.
    pub fn is_close(&self, span: i64, optimistic: i64) -> bool {
        let dynamics = Dynamics::expected(&self.model);
        let plan = Plan::best(&dynamics, self.model.horizon(), Attitude::Careful);
        let careful = dynamics.from_start(|state| plan.values[state]) >> VALUE_BITS;
        optimistic - careful <= span / 100
    }

    /// What the next episode repeats: from its start, where the least is known, as often as from any other step.
    fn draw_repeated(&self, prng: &mut Prng) -> Option<RepeatedAction> {
        if *self.model.lens() == Lens::default() || prng.below(REPEAT_ONE_IN) != 0 {
            return None;
        }
        let horizon = self.model.horizon();
        let begin = if prng.below(2) == 0 { 0 } else { prng.below(u64::from(horizon.max(1))) as u32 };
        let end = begin.saturating_add(1 + prng.below(REPEATS_MAX) as u32).min(horizon);
        Some(RepeatedAction { action: prng.below(u64::from(self.model.actions())) as u16, begin, end })
    }

    /// The action after these steps of the episode; none where nothing is known.
    pub fn act(&self, past: &[Step], observation: &Bits) -> Option<u16> {
        let plan = self.plan.as_ref().filter(|_| !self.full)?;
        if let Some(repeated) = &self.repeated
            && (repeated.begin..repeated.end).contains(&(past.len() as u32))
        {
            return Some(repeated.action);
        }
        let state = self.model.find(past, observation)?;
        let left = (self.model.horizon() as usize).saturating_sub(past.len());
        // States that came after the plan was made have no row in it.
        let wanted = plan
            .actions
            .last()
            .filter(|row| (state as usize) < row.len())
            .map(|_| plan.action(state, left))?;
        let edges = &self.model.edges()[state as usize];
        if self.known_at <= edges[usize::from(wanted)].count {
            return Some(wanted);
        }
        let recent = &past[past.len().saturating_sub(LOOK_BACK)..];
        let tries = |action: u16| {
            let same = |step: &&Step| step.observation == *observation && step.action == action;
            edges[usize::from(action)].count + recent.iter().filter(same).count() as i64
        };
        (0..self.model.actions()).min_by_key(|action| (tries(*action), *action))
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.model.encode(writer);
        writer.i64(self.return_max);
        writer.i64(self.known_at);
        writer.u64(self.fresh as u64);
        writer.bool(self.full);
        writer.bool(self.repeated.is_some());
        if let Some(RepeatedAction { action, begin, end }) = self.repeated {
            writer.u16(action);
            writer.u32(begin);
            writer.u32(end);
        }
        let rows: &[Vec<u16>] = self.plan.as_ref().map_or(&[], |plan| &plan.actions);
        writer.length(rows.len());
        for row in rows {
            writer.length(row.len());
            row.iter().for_each(|action| writer.u16(*action));
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Explorer, DecodeError> {
        let model = Model::decode(reader)?;
        let (return_max, known_at) = (reader.i64()?, reader.i64()?);
        let fresh = reader.u64()?;
        let full = reader.bool()?;
        let mut repeated = None;
        if reader.bool()? {
            let (action, begin, end) = (reader.u16()?, reader.u32()?, reader.u32()?);
            if model.actions() <= action || end < begin || model.horizon() < end {
                return Err(reader.error("a repeated action out of bounds"));
            }
            repeated = Some(RepeatedAction { action, begin, end });
        }
        let mut actions: Vec<Vec<u16>> = Vec::new();
        for _ in 0..reader.length(4)? {
            let row = (0..reader.length(2)?).map(|_| reader.u16()).collect::<Result<Vec<u16>, _>>()?;
            let fits = row.len() <= model.keys().len() && row.iter().all(|action| *action < model.actions());
            if !fits || actions.first().is_some_and(|first| first.len() != row.len()) {
                return Err(reader.error("a plan that does not fit its model"));
            }
            actions.push(row);
        }
        if RETURN_MAX < return_max.abs() || 1 << 32 < fresh || super::plan::STEPS_MAX < actions.len() {
            return Err(reader.error("an explorer out of bounds"));
        }
        let plan = (!actions.is_empty()).then_some(Plan { actions, values: Vec::new(), direct: Vec::new() });
        Ok(Explorer { model, return_max, plan, known_at, fresh: fresh as usize, full, repeated })
    }
}
