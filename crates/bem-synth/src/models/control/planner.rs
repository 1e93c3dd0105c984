//! What planning offers: the best circuit by what is known, and whether it is worth measuring already.
//!
//! Measuring costs rollouts, and a small improvement later costs more of them than a large one now. So a plan is ripe
//! when what it gains on the acting policy is large against what it may still miss: the mean, over drawn chances, of
//! the best value less the plan's own.

use super::analogy;
use super::chance::{Dynamics, VALUE_BITS};
use super::coding::gain_of_past;
use super::compile::compile;
use super::counts::{Lens, Model};
use super::dependence::{is_controlled, needed_history};
use super::depth::telling_history;
use super::explore::Explorer;
use super::grain::Grain;
use super::memory_search::find_memory;
use super::plan::{Attitude, Plan, evaluate_uniform};
use super::value::{Answers, to_milli, value_of};
use crate::experience::Episode;
use crate::hypothesis::Stated;
use crate::policy::Policy;
use crate::samples::Work;
use bem_base::environment::Shape;
use bem_base::prng::Prng;
use std::sync::Arc;

/// Draws that say what a plan may miss.
const DRAWS: i64 = 12;
/// Of these draws, so many must say the same for a plan to be sure.
const SURE_DRAWS: i64 = 10;
/// Steps in the log up to which a plan is ripe only when it gains this many times what it may miss. A first install that
/// comes too early leaves much to gain, and each gain takes rollouts to show.
const GAIN_FACTORS: [(usize, i64); 2] = [(4_096, 160), (usize::MAX, 8)];
/// Steps after which a plan need not wait any more for what was never tried.
const PATIENCE: usize = 20_000;
/// A plan that rests on the past may come to one that was never seen in one of so many episodes; in parts of this unit.
const ASTRAY_ONE_IN: i64 = 16;
const ASTRAY_UNIT: i64 = 1 << 12;
/// A circuit without a clock is taken when it loses at most this share of what planning gains.
const CLOCK_SHARE: i64 = 1_000;

/// A plan as a circuit, and what explores further.
#[derive(Clone, Debug)]
pub struct PlannedControl {
    /// The circuit and what it says; none when the plan is too large.
    pub stated: Option<Stated>,
    /// The return that the counted model predicts, in milli-units.
    pub predicted: i64,
    /// What it is, in words.
    pub words: String,
    /// States of the model.
    pub states: usize,
    /// What plays for knowledge.
    pub explorer: Explorer,
}

impl PlannedControl {
    /// Whether there is anything to plan: actions change what follows, and observations are few enough to count.
    pub fn is_possible(shape: &Shape, episodes: &[&Episode]) -> bool {
        let grain = Grain::of(shape, episodes);
        1 < shape.horizon
            && grain.through(episodes, |seen| is_controlled(shape.horizon, seen))
            && Model::of(shape, Lens::default(), grain, episodes).is_some()
    }

    /// Plans in the counted model; none where actions do not change what is seen next, or states are too many.
    ///
    /// Where it must be stationary, it is the best that does not look at the clock, whatever that loses. What plays for knowledge
    /// may know more than the log, which forgets: a pair that was tried often, and seldom of late, would else be judged by a few
    /// lucky tries.
    pub fn of(
        shape: &Shape,
        episodes: &[&Episode],
        known: Option<&Explorer>,
        is_stationary: bool,
        work: &mut Work,
    ) -> Option<PlannedControl> {
        if !PlannedControl::is_possible(shape, episodes) {
            return None;
        }
        let (lens, grain) = what_tells(shape, episodes, work);
        let model = counted(shape, lens, grain, episodes)?;
        let model = known.and_then(|known| known.knows_more_than(&model)).cloned().unwrap_or(model);
        Some(PlannedControl::at(shape, model, episodes, is_stationary))
    }

    /// The best plan in a model of these episodes.
    fn at(shape: &Shape, model: Model, episodes: &[&Episode], is_stationary: bool) -> PlannedControl {
        let dynamics = Dynamics::expected(&model);
        let plan = match model.is_crowded() {
            true => analogy::plan(&model, &dynamics, shape.horizon, 0),
            false => Plan::best(&dynamics, shape.horizon, attitude(&model, episodes)),
        };
        let values = plan.evaluate(&dynamics);
        let best = dynamics.from_start(|state| values[state]);
        let random = evaluate_uniform(&dynamics, shape.horizon);
        let gap = (best - dynamics.from_start(|state| random[state])).max(0);
        let (stationary, plain_value) = plan.stationary(&dynamics);
        let plain = compile(shape, &model, &dynamics, &stationary, false);
        let tolerance = gap / (CLOCK_SHARE * i64::from(shape.horizon));
        let timed = if !is_stationary && plain_value + gap / CLOCK_SHARE < best {
            compile(shape, &model, &dynamics, &plan.steadied(&dynamics, tolerance), true)
        } else {
            None
        };
        let kind = match &timed {
            Some(_) => "plan by steps left",
            None => "plan",
        };
        let predicted = to_milli(if timed.is_some() { best } else { plain_value });
        let past = match model.lens() {
            Lens::Past(0) => String::new(),
            Lens::Past(steps) => format!(" and {steps} steps back"),
            Lens::Recalled(recall) => format!(" and {} states of what was", recall.states()),
        };
        let words = format!("{kind} over {} observations{past}", model.observations().len());
        let states = model.keys().len();
        let explorer = Explorer::new(shape, model);
        PlannedControl { stated: timed.or(plain), predicted, words, states, explorer }
    }
}

/// How to plan: with caution where hardly any pair of state and action was tried often.
fn attitude(model: &Model, episodes: &[&Episode]) -> Attitude<'static> {
    if !model.is_thin() {
        return Attitude::Careful;
    }
    let totals = || episodes.iter().map(|episode| episode.total());
    let span = totals().max().unwrap_or(0).saturating_sub(totals().min().unwrap_or(0));
    Attitude::Cautious { doubt: span / 2 }
}

/// The log counted through a lens, or through one that looks less far back where states are too many.
fn counted(shape: &Shape, lens: Lens, grain: Grain, episodes: &[&Episode]) -> Option<Model> {
    let shorter = match &lens {
        Lens::Past(0) => None,
        Lens::Past(history) => Some(Lens::Past(history - 1)),
        Lens::Recalled(_) => Some(Lens::default()),
    };
    Model::of(shape, lens, grain, episodes).or_else(|| counted(shape, shorter?, grain, episodes))
}

/// What of the past is part of the state, and how finely numbers are told apart beside it.
///
/// What is hidden is looked for with few levels, which are soon known well enough. Levels that were left out may themselves
/// look hidden, because the step before tells them: where what was played can tell more levels apart, and nothing is hidden
/// beside those, nothing is.
fn what_tells(shape: &Shape, episodes: &[&Episode], work: &mut Work) -> (Lens, Grain) {
    let (coarse, fine) = (Grain::coarsest(shape), Grain::of(shape, episodes));
    let lens = coarse.through(episodes, |seen| needed_lens(shape, seen, work));
    let mut is_open =
        || fine != coarse && fine.through(episodes, |seen| needed_lens(shape, seen, work)) == Lens::default();
    if lens == Lens::default() || is_open() { (Lens::default(), fine) } else { (lens, coarse) }
}

/// What of the past the log shows to matter: the last few steps, or what a machine recalls if that tells more.
fn needed_lens(shape: &Shape, episodes: &[&Episode], work: &mut Work) -> Lens {
    let history = needed_history(shape.horizon, episodes);
    let past = if history == 0 { Some(0) } else { gain_of_past(shape, episodes, history) };
    match find_memory(shape, episodes, work) {
        Some((recall, gain)) if past.is_none_or(|past| past < gain) => Lens::Recalled(Arc::new(recall)),
        // Where observations are many, what the past tells may not be worth what has to be learned anew with it.
        _ if past.is_none() => Lens::Past(telling_history(shape, episodes, history)),
        _ => Lens::Past(history),
    }
}

/// What a candidate promises beyond the acting policy, by what was counted.
#[derive(Clone, Debug)]
pub struct PlanComparison<'p> {
    candidate: &'p Policy,
    acting: &'p Policy,
    model: Model,
    horizon: u32,
    return_max: i64,
    /// Steps of the log.
    steps: usize,
    /// What the model predicts for both, with the value bits of a plan; of the acting policy nothing where its memory
    /// takes too many forms.
    value: i64,
    held: Option<i64>,
    seed: u64,
}

impl<'p> PlanComparison<'p> {
    /// Counts the log as an explorer does, who may know more of what the log has forgotten; none where states are too many, or
    /// where the model cannot follow the candidate.
    pub fn of(
        shape: &Shape,
        known: &Explorer,
        episodes: &[&Episode],
        candidate: &'p Policy,
        acting: &'p Policy,
    ) -> Option<PlanComparison<'p>> {
        let model = Model::of(shape, known.lens().clone(), known.grain(), episodes)?;
        let model = known.knows_more_than(&model).cloned().unwrap_or(model);
        let dynamics = Dynamics::expected(&model);
        let value = value_of(candidate, &model, &dynamics)?;
        let held = value_of(acting, &model, &dynamics);
        let steps = episodes.iter().map(|episode| episode.steps.len()).sum();
        let (horizon, return_max, seed) = (shape.horizon, shape.return_max, episodes.len() as u64);
        Some(PlanComparison { candidate, acting, model, horizon, return_max, steps, value, held, seed })
    }

    /// What the candidate gains, in milli-units; none where the model cannot follow the acting policy.
    pub fn gain(&self) -> Option<i64> {
        self.held.map(|held| to_milli(self.value - held))
    }

    /// What the model predicts for the acting policy, in milli-units.
    pub fn held(&self) -> Option<i64> {
        self.held.map(to_milli)
    }

    /// Whether the candidate leads where nothing was counted, in more than a few episodes. A draw knows only what was seen, and a
    /// past that was never seen has no row in a plan. How often that happens is estimated as by Good and Turing: as often
    /// as the candidate comes to a past that was seen once. Where the observation alone is the state, another one is hardly news.
    fn leads_astray(&self) -> bool {
        if *self.model.lens() == Lens::default() {
            return false;
        }
        let mut seen_once = Dynamics::expected(&self.model);
        let actions = seen_once.actions;
        for (state, edges) in self.model.edges().iter().enumerate() {
            let is_once = edges.iter().map(|edge| edge.count).sum::<i64>() < 2;
            let reward = if is_once { ASTRAY_UNIT << VALUE_BITS } else { 0 };
            seen_once.rows[state * actions..][..actions].iter_mut().for_each(|row| row.reward = reward);
        }
        let often = value_of(self.candidate, &self.model, &seen_once).map_or(i64::MAX, to_milli);
        ASTRAY_UNIT < ASTRAY_ONE_IN.saturating_mul(often)
    }

    /// The gain in milli-units, once that is so much that measuring it should come now. An acting policy that the model
    /// cannot follow is measured without a promise.
    pub fn ripe_gain(&self) -> Option<i64> {
        let Some(held) = self.held else { return Some(0) };
        let gain = self.value - held;
        let mut prng = Prng::stream(self.seed, "synth/prospect");
        let (mut missed, mut candidate) = (0, Answers::new(self.candidate));
        // While the log is short, what was never tried may be worth everything.
        let attitude = match self.steps < PATIENCE {
            true => Attitude::Curious { known_at: 1, ceiling: self.return_max },
            false => Attitude::Careful,
        };
        for _ in 0..DRAWS {
            let drawn = Dynamics::drawn_widely(&self.model, 2, &mut prng);
            let plan = Plan::best(&drawn, self.horizon, attitude);
            let best = drawn.from_start(|state| plan.values[state]);
            missed += (best - candidate.value(&self.model, &drawn).unwrap_or(0)).max(0);
        }
        let factor =
            GAIN_FACTORS.iter().find(|(most, _)| self.steps <= *most).map_or(8, |(_, factor)| *factor);
        (0 < gain && factor * missed <= DRAWS * gain).then_some(to_milli(gain))
    }

    /// Whether the candidate is better in nearly all chances that the counts leave open, and stays where enough was counted.
    pub fn is_sure(&self) -> bool {
        if self.leads_astray() {
            return false;
        }
        let mut prng = Prng::stream(self.seed, "synth/outlook");
        let (mut candidate, mut acting) = (Answers::new(self.candidate), Answers::new(self.acting));
        let mut is_better = |prng: &mut Prng| {
            let drawn = Dynamics::drawn(&self.model, prng);
            let worth = (candidate.value(&self.model, &drawn), acting.value(&self.model, &drawn));
            matches!(worth, (Some(new), Some(old)) if old < new)
        };
        SURE_DRAWS <= (0..DRAWS).filter(|_| is_better(&mut prng)).count() as i64
    }
}
