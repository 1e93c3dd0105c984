//! Acting: one episode in flight, step by step, and what is remembered of it.
//!
//! The learner says whose turn an episode is; the machine chooses every action of it. An episode in flight is its seed and
//! the actions so far: where a world repeats itself, this is all that has to be saved. How an action was chosen is
//! written beside it, because a log without it could not be weighed. A reward that comes late is entered at its own step.
//! Clauses: SCC-2, VM-13, VM-16; decisions D-18, D-34, D-41, D-61.

use super::contexts::means::{moment, reward_range};
use super::exploration::widening_of;
use super::scouting::Trails;
use super::{Event, Learner, Phase, Witness};
use bem_base::encode::Writer;
use bem_base::environment::{Bits, Environment, EnvironmentError, Late, Outcome, Shape};
use bem_machine::held::Adaptation;
use bem_machine::memory::context::TaskSerial;
use bem_machine::turn::{Actor, Drawn, Odds, Plan, Turn};
use bem_synth::experience::{Episode, Step};
use bem_synth::models::control::Explorer;
use bem_synth::told::Told;

/// At first all actions are drawn with equal chance, so that the first labels favour none.
pub(super) const UNIFORM_STEPS: u64 = 160;

/// Of so many exploring episodes without a plan, so many follow an expert with drawn steps in between.
pub(super) const MIXED_OF: u64 = 8;
pub(super) const MIXED: u64 = 3;

/// Where plain actions go on learning by their rule, one in so many acting episodes shows what is held; fewer where the rule
/// holds against adversaries, because what is held does not.
const HELD_ONE_IN: u64 = 4;
const HELD_ONE_IN_WEIGHED: u64 = 64;

/// An episode that has begun and is not over.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) seed: u64,
    pub(super) turn: Turn,
    pub(super) steps: Vec<Step>,
    /// Steps whose reward is still to come, ascending.
    pub(super) awaited: Vec<u32>,
    /// It is played for experience while a candidate is measured: for what is seen both would do the same, or there is more to
    /// find than the candidate gains.
    pub(super) is_aside: bool,
}

impl Flight {
    /// Before the first step.
    pub(super) fn new(seed: u64, turn: Turn) -> Flight {
        Flight { seed, turn, steps: Vec::new(), awaited: Vec::new(), is_aside: false }
    }

    /// Enters a reward that comes late; the outcome of its step and how many steps ago that was taken. Nothing where the step
    /// does not wait for one.
    pub(super) fn settle(&mut self, late: Late) -> Option<(u64, Outcome)> {
        let place = self.awaited.binary_search(&late.step).ok()?;
        self.awaited.remove(place);
        let steps_ago = (self.steps.len() as u64).checked_sub(1 + u64::from(late.step))?;
        let step = self.steps.get_mut(late.step as usize)?;
        step.reward = late.reward;
        Some((steps_ago, Outcome { reward: step.reward, done: false, bad: step.bad }))
    }

    /// The reward of this step never comes: what stands in its place is no reward of nothing.
    fn give_up(&mut self, step: u32) {
        if let Some(step) = self.steps.get_mut(step as usize) {
            step.propensity = Step::UNTOLD;
        }
    }
}

/// The explorer's plan for the episode, as the machine asks it.
pub(super) struct EpisodePlan<'a> {
    pub(super) explorer: Option<&'a Explorer>,
    pub(super) past: &'a [Step],
    /// What people said, if the episode follows it.
    pub(super) told: Option<&'a Told>,
    /// Where actions led so far, if the episode goes beyond what people said.
    pub(super) trails: Option<&'a Trails>,
}

impl Plan for EpisodePlan<'_> {
    fn advise(&self, observation: &Bits) -> Option<u16> {
        let said = self.told.and_then(|told| told.verdict(observation));
        let onward = || self.trails.and_then(|trails| trails.onward(observation));
        said.or_else(onward).or_else(|| self.explorer?.act(self.past, observation))
    }
}

/// A step for the log.
pub(super) fn step_taken(observation: Bits, action: u16, outcome: Outcome, odds: Odds) -> Step {
    let Outcome { reward, done, bad } = outcome;
    let drawn_from = odds.drawn_from();
    let propensity = match (drawn_from, odds.chance()) {
        (Some(actions), _) => u16::MAX / actions,
        // The least chance there is stands for something else.
        (None, Some(chance)) => ((chance.to_raw() >> 16) as u16).max(Step::UNTOLD + 1),
        (None, None) => u16::MAX,
    };
    Step { observation, action, reward, done, bad, uniform: drawn_from.is_some(), propensity }
}

/// Whether an episode of this turn is played for knowledge.
pub fn is_exploring(turn: Turn) -> bool {
    ![Turn::HELD, Turn::INDEX, Turn::BASELINE].contains(&turn)
}

impl Learner {
    /// Begins the next episode for experience, or does the search that is due.
    pub(super) fn collect(
        &mut self,
        world: &mut dyn Environment,
        witness: &mut dyn Witness,
    ) -> Result<Event, EnvironmentError> {
        self.resume_acting();
        let until = self.workload.act_until(self.candidates.next_search());
        if self.hearing.apart.is_running() {
            return self.scout(world);
        }
        let is_due = self.hearing.is_due(self.walked(), self.tally.steps);
        if self.workload.is_paced() && is_due && !self.is_spent() {
            return Ok(self.look_at_told(witness));
        }
        if until <= self.tally.steps || self.is_spent() || self.is_done() {
            return Ok(self.next_unit(witness));
        }
        let turn = if self.affords_a_try() { self.next_turn() } else { Turn::BASELINE };
        let seed = self.play_seeds.next_seed();
        self.begin(world, seed, turn)
    }

    /// Whether an episode may begin that is not the baseline's.
    pub(super) fn affords_a_try(&self) -> bool {
        self.floor.as_ref().is_none_or(|floor| floor.affords(&self.shape, 0))
    }

    /// Whose turn the next episode for experience is.
    pub(super) fn next_turn(&mut self) -> Turn {
        if self.workload.is_alarmed() {
            return Turn::HELD;
        }
        if self.exploration.is_hope_old() {
            self.look_ahead();
        }
        // What adapts within an episode explores by itself, once there are draws to learn from.
        let is_first = self.tally.steps < UNIFORM_STEPS;
        let adapts = self.machinery.family().held().acting_rule() != Adaptation::Fixed;
        let (episodes, prng) = (self.tally.episodes, self.machinery.prng_mut());
        let explores = is_first
            || !adapts && self.exploration.is_next(&self.shape, &self.settings.config, episodes, prng);
        if explores { self.exploring_turn() } else { self.acting_turn() }
    }

    /// Works out what the best play may earn by the counts as they are.
    pub(super) fn look_ahead(&mut self) {
        let (span, drawn) = (self.seen_span(), self.drawn_mean());
        self.exploration.look_ahead(&self.shape, (span, drawn), self.tally.steps);
    }

    /// What episodes earned in which every action was drawn, on average, in milli-units.
    fn drawn_mean(&self) -> Option<i64> {
        let is_drawn = |episode: &&Episode| episode.steps.iter().all(|step| step.uniform);
        let (mut sum, mut count) = (0i128, 0i128);
        for episode in self.experience.episodes().filter(is_drawn) {
            (sum, count) = (sum + i128::from(episode.total()), count + 1);
        }
        (0 < count).then(|| sum.div_euclid(count) as i64)
    }

    /// Whose turn an episode for knowledge is.
    pub(super) fn exploring_turn(&mut self) -> Turn {
        if self.tally.steps < UNIFORM_STEPS {
            return Turn::DRAW;
        }
        let is_advised = self.is_advised();
        let has_plans = self.settings.config.exploration_plans;
        if has_plans && self.exploration.prepare(&self.shape, self.machinery.prng_mut()) && !is_advised {
            return self.exploration.plan_turn();
        }
        if is_advised {
            return Turn::ADVISED;
        }
        // An expert acts with drawn steps in between, so that what follows from its actions is seen too.
        let is_mixed = self.machinery.prng_mut().below(MIXED_OF) < MIXED;
        match (is_mixed, self.acts_plainly()) {
            (false, _) => Turn::DRAW,
            (true, true) => Turn::INDEX,
            (true, false) => Turn::PERTURBED,
        }
    }

    /// Whose turn an episode is that is played for what it earns.
    fn acting_turn(&mut self) -> Turn {
        // Plain actions go on learning by their index where an action's own reward is all there is to choose by; what is
        // held shows now and then what it earns.
        let rule = self.machinery.family().held().acting_rule();
        let is_index =
            self.acts_plainly() && self.exploration.explorer().is_none() && rule == Adaptation::Fixed;
        let one_in = self.held_one_in();
        if is_index && self.machinery.prng_mut().below(one_in) != 0 { Turn::INDEX } else { Turn::HELD }
    }

    /// Of so many acting episodes of plain actions one shows what is held.
    pub(super) fn held_one_in(&self) -> u64 {
        if self.machinery.family().weighs_by_chance() { HELD_ONE_IN_WEIGHED } else { HELD_ONE_IN }
    }

    /// Begins an episode.
    pub(super) fn begin(
        &mut self,
        world: &mut dyn Environment,
        seed: u64,
        turn: Turn,
    ) -> Result<Event, EnvironmentError> {
        self.reset(world, seed)?;
        self.take_off(seed, turn);
        Ok(Event::EpisodeBegan)
    }

    /// Brings the world to the start of an episode.
    pub(super) fn reset(&mut self, world: &mut dyn Environment, seed: u64) -> Result<(), EnvironmentError> {
        self.tally.resets += 1;
        world.reset(seed)
    }

    /// The machine begins the episode that the world has begun.
    pub(super) fn take_off(&mut self, seed: u64, turn: Turn) {
        // Every episode of a unit is one of the same task, which the unit's seed names.
        self.machinery.begin(TaskSerial(self.settings.seed), turn);
        self.flight = Some(Flight::new(seed, turn));
    }

    /// Whether this can be the turn of an episode now.
    pub(super) fn may_play(&self, turn: Turn) -> bool {
        match turn.actor {
            Actor::Baseline => self.floor.is_some() && turn == Turn::BASELINE,
            Actor::Plan if turn == Turn::ADVISED => true,
            Actor::Plan => {
                self.exploration.explorer().is_some() && [Turn::PLAN, Turn::STEADY].contains(&turn)
            }
            Actor::Index => turn == Turn::INDEX,
            Actor::Held => [Turn::HELD, Turn::DRAW, Turn::PERTURBED].contains(&turn),
            Actor::Member(_) | Actor::Plain => self.machinery.turn_before() == Some(turn),
            Actor::Seat => turn == Turn::SEAT,
        }
    }

    /// Takes one step of the episode in flight.
    pub(super) fn step(
        &mut self,
        world: &mut dyn Environment,
        witness: &mut dyn Witness,
    ) -> Result<Event, EnvironmentError> {
        self.make_room_to_wait();
        let observation = *world.observation();
        self.find_trails(observation);
        let flight = self.flight.as_mut().expect("the caller has looked");
        let told = (flight.turn == Turn::ADVISED).then(|| self.hearing.told());
        let trails = told.and_then(|_| self.hearing.apart.trails());
        let plan = EpisodePlan { explorer: self.exploration.explorer(), past: &flight.steps, told, trails };
        let action = match (&mut self.floor, flight.turn == Turn::BASELINE) {
            (Some(floor), true) => {
                self.machinery.act(&observation, &floor.follow(&flight.steps, &observation))
            }
            _ => self.machinery.act(&observation, &plan),
        };
        let odds = self.machinery.odds();
        let outcome = match world.step(action) {
            Err(EnvironmentError::Lost) => {
                self.tally.steps += 1;
                return Ok(self.abandon());
            }
            answer => answer?,
        };
        self.tally.steps += 1;
        flight.steps.push(step_taken(observation, action, outcome, odds));
        // What comes late is credited first: the last outcome ends the episode.
        for late in world.late() {
            if let Some((steps_ago, outcome)) = flight.settle(*late) {
                self.tally.late += 1;
                self.machinery.learn_late(steps_ago, &outcome);
            }
        }
        let is_beyond = world.shape().ranges() != self.shape.ranges();
        if is_beyond {
            self.machinery.cover(world.shape());
        }
        if world.is_awaited() {
            flight.awaited.push(flight.steps.len() as u32 - 1);
            self.machinery.defer(&outcome);
        } else {
            self.machinery.learn(&outcome);
        }
        if is_beyond {
            self.cover(world.shape());
        }
        if self.machinery.has_block() {
            self.seal(witness);
        }
        if !outcome.done {
            return Ok(Event::Stepped);
        }
        if let Some(mut flight) = self.flight.take() {
            core::mem::take(&mut flight.awaited).into_iter().for_each(|step| {
                self.tally.expired += 1;
                flight.give_up(step);
            });
            let Flight { seed, turn, steps, is_aside, .. } = flight;
            self.hearing.apart.forget_trails();
            self.tally.episodes += 1;
            let serial = self.history.count();
            let episode = Episode { serial, steps };
            if let Some(floor) = &mut self.floor {
                floor.book(&self.shape, turn == Turn::BASELINE, episode.total());
            }
            if turn == Turn::BASELINE {
                self.tally.left += 1;
                self.remember(turn, episode, witness);
            } else if is_aside {
                self.gather(turn, episode, witness);
                self.pass_unpaired(witness);
            } else {
                self.finish((seed, turn), episode, witness);
            }
        }
        Ok(Event::EpisodeEnded)
    }

    /// The world has paid beyond the range that it had said, and the machine is on the wider one: what else is measured in parts
    /// of the range is brought onto it, too, and nothing is forgotten.
    fn cover(&mut self, shape: &Shape) {
        self.tally.widened += 1;
        let before = self.shape.clone();
        self.shape.cover(shape);
        self.drift.rescale(reward_range(&before).widening_to(&reward_range(&self.shape)));
        self.standing.cover(&before, &self.shape);
        self.exploration.cover(&before, &self.shape);
        self.workload.cover(widening_of(&before, &self.shape));
    }

    /// As many choices wait for their reward as can: the oldest is given up, and what it earned counts as nothing.
    fn make_room_to_wait(&mut self) {
        let Some(flight) = self.flight.as_mut() else { return };
        while !self.machinery.has_room_to_wait() && !flight.awaited.is_empty() {
            let oldest = Late { step: flight.awaited[0], reward: 0 };
            self.tally.expired += 1;
            if let Some((steps_ago, outcome)) = flight.settle(oldest) {
                self.machinery.learn_late(steps_ago, &outcome);
            }
            flight.give_up(oldest.step);
        }
    }

    /// Puts an episode to the use it was played for.
    pub(super) fn finish(&mut self, (seed, turn): (u64, Turn), episode: Episode, witness: &mut dyn Witness) {
        if matches!(self.phase, Phase::Measure(_)) {
            return self.take_rollout(seed, turn, episode, witness);
        }
        let is_alarmed = turn == Turn::HELD && self.is_alarmed_by(episode.total());
        let changed = self.changed_since(turn, &episode, is_alarmed);
        self.gather(turn, episode, witness);
        match changed {
            Some(since) => self.meet_change(since),
            None if is_alarmed => self.open_watch_contest(),
            None => {}
        }
    }

    /// Takes in an episode that was played for experience.
    pub(super) fn gather(&mut self, turn: Turn, episode: Episode, witness: &mut dyn Witness) {
        let total = episode.total();
        let is_held = turn == Turn::HELD;
        self.exploration.book(&self.shape, is_exploring(turn), total);
        self.workload.book_return(total, (self.shape.return_min, self.shape.return_max));
        if is_held {
            self.workload.book_safety(episode.steps.iter().any(|step| step.bad));
        }
        self.remember(turn, episode, witness);
        if is_held {
            self.standing.book(&self.shape, total);
        }
    }

    /// Holds what an action earned against its mean, where that is all there is to choose by. A change brings the next look
    /// at the log forward.
    fn follow_drift(&mut self, episode: &Episode) {
        let family = self.machinery.family();
        let held = family.held();
        // An adversary must not be able to make a rule forget that holds against it.
        let is_followed = self.shape.horizon == 1 && !family.weighs_by_chance() && self.acts_plainly();
        if !self.settings.config.alarms || !is_followed || held.acting_rule() != Adaptation::Fixed {
            return;
        }
        let range = reward_range(&self.shape);
        for step in &episode.steps {
            let (bucket, action) = (family.bucket_of(&step.observation), step.action);
            let plain = &family.plain()[usize::from(bucket)];
            // The index may have gone over to what is not held yet.
            let acts = held.actions[usize::from(bucket)] == action || plain.choose() == usize::from(action);
            let arm = &plain.arms()[usize::from(action)];
            let loss = range.exact_loss(i64::from(step.reward)).to_raw() as i64;
            let buckets = family.directory().bucket_count() as u16;
            let (place, told) = ((bucket, action), (loss, arm, plain.range()));
            if self.drift.observe(place, buckets, acts, told, moment(episode.serial, 0)) {
                self.candidates.hurry(self.tally.steps);
            }
        }
    }

    /// Whether what is held did, or would have done, what was done.
    pub(super) fn is_held_play(&self, episode: &Episode) -> bool {
        let acted = episode.steps.iter().map(|step| step.action);
        self.machinery.frozen().replay([episode])[0].iter().copied().eq(acted)
    }

    /// Steps of an episode whose action is not what the frozen machine would have done. What adapts within an episode would
    /// have seen other rewards, so that all steps of other turns count.
    fn strayed(&self, turn: Turn, episode: &Episode) -> u64 {
        let is_fixed = self.machinery.family().held().acting_rule() == Adaptation::Fixed;
        match turn == Turn::HELD {
            true => 0,
            false if !is_fixed => episode.steps.len() as u64,
            false => {
                let wanted = &self.machinery.frozen().replay([episode])[0];
                episode.steps.iter().zip(wanted).filter(|(step, action)| step.action != **action).count()
                    as u64
            }
        }
    }

    /// Closes a block of records: its digest goes into the chain, and the witness gets it.
    pub(super) fn seal(&mut self, witness: &mut dyn Witness) {
        let records = self.machinery.take_records();
        if records.is_empty() {
            return;
        }
        let mut writer = Writer::new();
        records.iter().flat_map(|record| record.0).for_each(|word| writer.u64(word));
        self.history.link("bem/chain/records", writer.as_bytes());
        witness.records(&records, self.history.head());
    }

    /// Puts an episode into the log and its digest into the chain.
    pub(super) fn remember(&mut self, turn: Turn, episode: Episode, witness: &mut dyn Witness) {
        let strayed = self.strayed(turn, &episode);
        let mut writer = Writer::new();
        episode.encode(&mut writer);
        self.history.link("bem/chain/episode", writer.as_bytes());
        witness.played(&episode, strayed, self.history.head());
        self.follow_drift(&episode);
        self.look_out(turn, &episode);
        self.exploration.learn(&episode);
        self.experience.push(episode);
    }
}

const _: () = assert!(matches!(Turn::DRAW.drawn, Drawn::Always));
