//! One world that is served: decisions are asked for now, outcomes come later or never, and nothing can be played twice.
//!
//! Two halves share what was learned. [`Acting`] decides: what it does is a function of what was published, of the outcomes
//! that came since, and of the number of the decision, from which its randomness is drawn. [`Searching`] gets complete
//! episodes in order, searches, proves and decides patches on evidence that needs no pairs, and publishes another acting
//! half. Whoever owns both says when that takes effect. Every action comes from the machine's own choice function.
//! A candidate is measured by the interleaved test: the contest that an episode was begun in goes with it (`contest.rs`).
//! Must not know who asks, threads, clocks, files. Clauses: VM-13, VM-16, SCC-8, LOG-5; D-41, D-44, D-67, D-68, D-110 to D-113.

mod cautious;
mod contest;
mod still;
mod turns;

pub use contest::Begun;
use contest::{UnderWay, take_into};
use still::{Notes, Still};
use turns::Turns;

pub use super::act::is_exploring;

use super::act::{EpisodePlan, MIXED, MIXED_OF, UNIFORM_STEPS, step_taken};
use super::exploration::ACTING_ONE_IN;
use super::hearing::ADVISED_ONE_IN;
use super::state::RestoreError;
use super::unpaired::Repetition;
use super::{Learner, Offers, Phase, Settings};
use crate::agent::Agent;
use crate::chronicle::PatchNote;
use crate::codec::{decode_option, encode_option};
use crate::start::{Baseline, Start};
use bem_base::digest::Digest;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, EnvironmentError, Forbidden, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_learn::wide::{Advice, WideBucket};
use bem_machine::config::GenesisConfig;
use bem_machine::held::Adaptation;
use bem_machine::machine::PastStep;
use bem_machine::turn::{Actor, Drawn, Odds, Turn};
use bem_synth::experience::{Episode, Experience, Step};
use bem_synth::policy::Policy;
use bem_synth::told::Told;
use cautious::Cautious;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Steps that a served world may ever take: nobody counts that far.
pub(super) const BUDGET: u64 = 1 << 47;
/// What the weights of turns add up to.
const WEIGHTS: u64 = 1_280;
/// The largest chance that every action may be promised; more would leave nothing to choose.
pub const FLOOR_MAX: Fixed = Fixed::from_ratio(1, 2);
/// While a contest is open or somebody plans, a round begins when so many steps wait, and one part in so many of all steps besides.
const CONTEST_STEPS: u64 = 16;
const CONTEST_SHARE: u64 = 64;
/// Episodes that people may take out of what is learned from; the oldest are forgotten.
const ASIDE_MAX: usize = 256;

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is to be done.
    pub action: u16,
    /// How chance took part in it.
    pub odds: Odds,
    /// The chance that this action had: at the start of an episode over everything that is random about the decision, later
    /// given whose turn the episode is.
    pub propensity: Fixed,
}

/// A step that was decided, with what it brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// What was seen.
    pub observation: Bits,
    /// What was done.
    pub action: u16,
    /// How chance took part in it.
    pub odds: Odds,
    /// What it brought.
    pub outcome: Outcome,
    /// Whether its reward came; else it is what the reward was taken for.
    pub is_told: bool,
}

/// What acts, for whoever shows it.
#[derive(Clone, Debug)]
pub struct InForce {
    /// What acts when nothing is explored.
    pub agent: Agent,
    /// What it is, in words.
    pub words: String,
    /// How many contexts plain actions are chosen in.
    pub contexts: usize,
}

/// The settings of a served world: it acts for ever.
pub fn settings_of(config: &GenesisConfig, seed: u64) -> Settings {
    let config = GenesisConfig { until_budget: true, ..config.clone() };
    Settings { seed, budget: BUDGET, config: Arc::new(config) }
}

/// The half that decides.
#[derive(Clone, Debug)]
pub struct Acting {
    /// What was published, without its log.
    learner: Learner,
    /// The chance that every allowed action has at least.
    floor: Fixed,
    /// Steps asked for, episodes begun, and how many of these explore.
    steps: u64,
    episodes: u64,
    explored: u64,
    /// What must not be fallen below, if anything.
    cautious: Option<Cautious>,
    /// Who plays the open contest, and how far.
    under_way: UnderWay,
}

impl Acting {
    /// Falls below what an action earns by no more than this many thousandths of it while it learns.
    #[must_use]
    pub fn with_baseline(mut self, action: u16, risk: u16) -> Acting {
        let baseline = Baseline { policy: Policy::constant(self.learner.shape.actions, action), risk };
        self.cautious =
            Some(baseline).filter(|baseline| baseline.fits(&self.learner.shape)).map(Cautious::new);
        self
    }

    /// Books what an episode earned that is complete, once.
    pub fn earn(&mut self, begun: Begun, first: &Bits, total: i64) {
        if self.learner.is_measured(begun, first) {
            self.under_way.book(begun.contest);
        }
        if let Some(cautious) = &mut self.cautious {
            cautious.book(&self.learner.shape, begun.turn, total);
        }
    }

    /// How likely each turn is for an episode that begins now with what is seen, out of [`WEIGHTS`].
    fn turns(&self, observation: &Bits) -> Turns {
        let learner = &self.learner;
        if self.cautious.as_ref().is_some_and(|cautious| !cautious.affords(&learner.shape)) {
            return Turns::of(&[(Turn::BASELINE, WEIGHTS)]);
        }
        if let Some(turns) = learner.contest_turns(observation).filter(|_| self.has_room()) {
            return Turns::of(&turns.map(|turn| (turn, WEIGHTS / 2)));
        }
        if self.steps < UNIFORM_STEPS {
            return Turns::of(&[(Turn::DRAW, WEIGHTS)]);
        }
        let rule = learner.machinery.family().held().acting_rule();
        let adapts = rule != Adaptation::Fixed;
        let (shape, config) = (&learner.shape, &learner.settings.config);
        let explores = !adapts && learner.exploration.allows(shape, config, self.episodes, self.explored);
        let plain = learner.acts_plainly();
        let is_index = plain && learner.exploration.explorer().is_none() && !adapts;
        let mut turns = Turns::of(&[]);
        let exploring = if explores { WEIGHTS - WEIGHTS / ACTING_ONE_IN } else { 0 };
        if explores {
            let has_plan = config.exploration_plans && learner.exploration.explorer().is_some();
            let is_advised = learner.hearing.may_follow(shape) && !has_plan;
            let advised = if is_advised { exploring / ADVISED_ONE_IN } else { 0 };
            turns.push(Turn::ADVISED, advised);
            let exploring = exploring - advised;
            let planned =
                if has_plan { exploring - exploring / learner.exploration.drawn_one_in() } else { 0 };
            let mixed = (exploring - planned) / MIXED_OF * MIXED;
            turns.push(learner.exploration.plan_turn(), planned);
            turns.push(if plain { Turn::INDEX } else { Turn::PERTURBED }, mixed);
            turns.push(Turn::DRAW, exploring - planned - mixed);
        }
        let acting = WEIGHTS - exploring;
        let index = if is_index { acting - acting / learner.held_one_in() } else { 0 };
        turns.push(Turn::INDEX, index);
        turns.push(Turn::HELD, acting - index);
        turns
    }

    /// Whether another episode of the open contest may begin: what is known of it already says how many may be under way.
    fn has_room(&self) -> bool {
        self.under_way.has_room(self.learner.contest())
    }

    /// A turn in which every allowed action has the chance that was promised.
    fn with_floor(&self, turn: Turn) -> Turn {
        let wanted = i128::from(self.floor.to_raw()) * i128::from(self.learner.shape.actions);
        if wanted <= 0 {
            return turn;
        }
        let one_in = (i128::from(Fixed::ONE.to_raw()) / wanted).min(255) as u8;
        let drawn = match (turn.drawn, one_in) {
            (Drawn::Always, _) | (_, 0 | 1) => Drawn::Always,
            (Drawn::Never, one_in) => Drawn::OneIn(one_in),
            (Drawn::OneIn(count), one_in) => Drawn::OneIn(count.min(one_in)),
        };
        Turn { drawn, ..turn }
    }

    /// The random register of one decision.
    fn register(&self, number: u64) -> Prng {
        Prng::quick(self.learner.settings.seed ^ bem_base::prng::mix(number))
    }

    /// Decides for what is seen at the start of an episode: whose turn the episode is, and its first action.
    pub fn begin(&mut self, number: u64, observation: &Bits) -> (Begun, Choice) {
        let turns = self.turns(observation);
        let mut register = self.register(number);
        let mut place = register.below(WEIGHTS);
        let turn = turns.list().iter().find_map(|(turn, weight)| match place < *weight {
            true => Some(*turn),
            false => {
                place -= weight;
                None
            }
        });
        let turn = turn.expect("the weights add up");
        let choice = self.choose(register, turn, turns.list(), &[], observation);
        self.episodes += 1;
        if let Some(cautious) = &mut self.cautious {
            cautious.begin(turn);
        }
        let contest = self.learner.contest().filter(|_| turn != Turn::BASELINE && self.has_room());
        let is_measured = contest.is_some() && self.learner.contest_turns(observation).is_some();
        self.explored += u64::from(!is_measured && is_exploring(turn));
        if is_measured {
            self.under_way.begin(contest);
        }
        (Begun { turn, contest, reign: Some(self.learner.tally.acting_changes) }, choice)
    }

    /// Decides for what is seen in an episode that began like this, with these steps behind it.
    pub fn go_on(&mut self, number: u64, begun: Begun, past: &[PastStep], observation: &Bits) -> Choice {
        let turn = begun.turn_now(self.learner.contest());
        let register = self.register(number);
        self.choose(register, turn, &[(turn, WEIGHTS)], past, observation)
    }

    fn choose(
        &mut self,
        register: Prng,
        turn: Turn,
        turns: &[(Turn, u64)],
        past: &[PastStep],
        observation: &Bits,
    ) -> Choice {
        let lent = (self.with_floor(turn), turn == Turn::ADVISED);
        let (action, odds) = self.act(register, lent, past, observation);
        let propensity = self.propensity(turns, past, observation, action);
        self.steps += 1;
        Choice { action, odds, propensity }
    }

    fn act(
        &mut self,
        register: Prng,
        (turn, is_advised): (Turn, bool),
        past: &[PastStep],
        observation: &Bits,
    ) -> (u16, Odds) {
        let looked_at = if turn.actor.is_lent() { past } else { &[] };
        let log: Vec<Step> = looked_at.iter().map(remembered).collect();
        *self.learner.machinery.prng_mut() = register;
        if let Some(cautious) = self.cautious.as_mut().filter(|_| turn == Turn::BASELINE) {
            let advice = cautious.follow(&log, observation);
            return self.learner.machinery.act_apart(turn, past, observation, &advice);
        }
        let told = is_advised.then(|| self.learner.hearing.told());
        let plan =
            EpisodePlan { explorer: self.learner.exploration.explorer(), past: &log, told, trails: None };
        self.learner.machinery.act_apart(turn, past, observation, &plan)
    }

    /// The chance of this action over these turns.
    fn propensity(
        &mut self,
        turns: &[(Turn, u64)],
        past: &[PastStep],
        observation: &Bits,
        action: u16,
    ) -> Fixed {
        let drawn = self.learner.machinery.family().draw_chance(observation, action);
        let mut sum = Fixed::ZERO;
        for (turn, weight) in turns {
            let (is_advised, turn) = (*turn == Turn::ADVISED, self.with_floor(*turn));
            let share = match turn.drawn {
                Drawn::Always => Fixed::ONE,
                Drawn::Never => Fixed::ZERO,
                Drawn::OneIn(count) => Fixed::from_ratio(1, i64::from(count)),
            };
            let mut chance = share.mul_floor(drawn);
            if turn.drawn != Drawn::Always {
                let bare = Turn { drawn: Drawn::Never, ..turn };
                let wanted = self.wanted((bare, is_advised), past, observation, (action, drawn));
                chance = chance.plus(Fixed::ONE.minus(share).mul_floor(wanted));
            }
            sum = sum.plus(chance.mul_floor(Fixed::from_ratio(*weight as i64, WEIGHTS as i64)));
        }
        sum
    }

    /// The chance with which whoever proposes in this turn wants the action; `drawn` is its chance where actions are drawn.
    fn wanted(
        &mut self,
        lent: (Turn, bool),
        past: &[PastStep],
        observation: &Bits,
        (action, drawn): (u16, Fixed),
    ) -> Fixed {
        let family = self.learner.machinery.family();
        if lent.0.actor == Actor::Index
            && self.learner.acts_plainly()
            && let Some(chance) = family.plain_chance(observation, action)
        {
            return chance;
        }
        let (proposed, odds) = self.act(Prng::quick(0), lent, past, observation);
        // A plan that has nothing to say lets an action be drawn.
        match odds.drawn_from() {
            Some(_) => drawn,
            None if proposed == action => Fixed::ONE,
            None => Fixed::ZERO,
        }
    }

    /// Takes in what an episode brought that is complete.
    pub fn settle(&mut self, begun: Begun, steps: &[Settled]) {
        for step in steps {
            self.learner.machinery.book_apart(&step.observation, (step.action, step.odds), &step.outcome);
        }
        let total = steps.iter().map(|step| i64::from(step.outcome.reward)).sum();
        let first = steps.first().map_or(Bits::ZERO, |step| step.observation);
        let begun = self.learner.seen_now(begun);
        let is_past = begun.is_past(self.learner.tally.acting_changes);
        if !is_past && !is_exploring(begun.turn) && !self.learner.is_measured(begun, &first) {
            self.learner.exploration.book(&self.learner.shape, false, total);
        }
    }

    /// Hears everything that people said and that is in force. An exploring episode may follow it, unless something BAD was
    /// ever seen.
    pub fn hear(&mut self, told: Told, is_safe: bool) {
        self.learner.hear_apart(told, is_safe);
    }

    /// Adds what people said of an action where this is seen, or takes it back; whether it fits. The measured statistics, on
    /// which patches rest, are left alone: the index alone hears it.
    pub fn advise(&mut self, seen: (&Bits, u16), advice: &Advice, adds: bool, index: Option<i32>) -> bool {
        self.learner.machinery.advise(seen, advice, adds, index)
    }

    /// Forgets everything that people said.
    pub fn clear_advice(&mut self) {
        self.learner.machinery.clear_advice();
    }

    /// The number of the context that an observation falls into, and what plain actions brought there.
    pub fn context(&self, observation: &Bits) -> (u16, &WideBucket) {
        let family = self.learner.machinery.family();
        let bucket = family.bucket_of(observation);
        (bucket, &family.plain()[usize::from(bucket)])
    }

    /// How many contexts are told apart.
    pub fn contexts(&self) -> usize {
        self.learner.contexts()
    }

    /// What plain actions would look like in a context with this advice.
    pub fn advised(&self, observation: &Bits, said: &[(u16, Advice)]) -> WideBucket {
        self.learner.machinery.family().advised(observation, said)
    }

    /// What becomes of an action where this is seen: itself, unless it is forbidden.
    pub fn is_forbidden(&self, observation: &Bits, action: u16) -> bool {
        self.learner.machinery.family().guard().pass(observation, action) != action
    }

    /// What acts when nothing is explored.
    pub fn in_force(&self) -> InForce {
        InForce {
            agent: self.learner.agent(),
            words: self.learner.standing.incumbent().words.clone(),
            contexts: self.learner.contexts(),
        }
    }

    /// Names what acts when nothing is explored.
    pub fn digest(&self) -> Digest {
        self.learner.machinery.acting_digest()
    }

    /// The name of whoever chose in this turn.
    pub fn chooser(&self, begun: Begun, choice: &Choice) -> String {
        match (choice.odds.drawn_from(), begun.turn_now(self.learner.contest()).actor) {
            (Some(_), _) => "drawn".to_string(),
            (None, Actor::Baseline) => "baseline".to_string(),
            (None, Actor::Plan) => "plan".to_string(),
            (None, Actor::Seat) => "candidate".to_string(),
            (None, Actor::Index) if self.learner.acts_plainly() => "index".to_string(),
            (None, _) => match self.learner.machinery.held_slot() {
                Some(slot) => format!("expert-{slot}"),
                None => "plain".to_string(),
            },
        }
    }

    /// Episodes begun to explore.
    pub fn explored(&self) -> u64 {
        self.explored
    }

    /// Gives the open contest up, if there is one: whoever was held acts alone.
    pub fn forgo(&mut self) {
        self.learner.forgo();
    }

    /// Another acting half takes effect; what was asked for so far goes on counting.
    pub fn replace(&mut self, published: Acting) {
        let (steps, episodes, explored) = (self.steps, self.episodes, self.explored);
        let (cautious, under_way) = (self.cautious.take(), self.under_way);
        *self = Acting { steps, episodes, explored, cautious, under_way, ..published };
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        [self.steps, self.episodes, self.explored].into_iter().for_each(|count| writer.u64(count));
        writer.i64(self.floor.to_raw());
        writer.bytes(&self.learner.encode());
        encode_option(writer, self.cautious.as_ref(), Cautious::encode);
        self.under_way.encode(writer);
    }

    /// Reads canonical bytes back, for a world of this shape.
    pub fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<Acting, RestoreError> {
        let malformed = reader.error("counts that nobody can have asked for");
        let (steps, episodes, explored) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let floor = Fixed::from_raw(reader.i64()?);
        if steps < episodes || episodes < explored || BUDGET <= steps || !is_floor(floor) {
            return Err(malformed.into());
        }
        let learner = Learner::restore_served(reader.bytes()?, &mut Still(shape.clone()))?;
        let cautious = decode_option(reader, |reader| Cautious::decode(shape, reader))?;
        let under_way = UnderWay::decode(reader)?;
        Ok(Acting { learner, floor, steps, episodes, explored, cautious, under_way })
    }
}

/// Whether every action may be promised this chance.
pub fn is_floor(floor: Fixed) -> bool {
    Fixed::ZERO <= floor && floor <= FLOOR_MAX
}

/// A step that lies behind, for a plan.
fn remembered(step: &PastStep) -> Step {
    let outcome = step.outcome.unwrap_or(Outcome { reward: 0, done: false, bad: false });
    step_taken(step.observation, step.action, outcome, Odds::CERTAIN)
}

/// The half that learns.
#[derive(Clone, Debug)]
pub struct Searching {
    learner: Learner,
    floor: Fixed,
    /// Episodes that people have taken out of what is learned from, by serial.
    aside: BTreeMap<u64, Episode>,
    /// What was decided since the last round was published; nothing between rounds.
    notes: Notes,
}

/// What a round of learning brought.
#[derive(Clone, Debug)]
pub struct Round {
    /// Decides from now on.
    pub acting: Acting,
    /// What was decided about patches, in order.
    pub patches: Vec<PatchNote>,
    /// The head of the chain over everything that was learned from and decided.
    pub chain: Digest,
    /// Steps learned from so far.
    pub steps: u64,
    /// Whether the log was searched or something was decided; else it brings another plan, and nothing more.
    pub is_searched: bool,
    /// What an approval must add to the score of a patch in it before it may take effect; zero where it needs none.
    pub missing: Fixed,
}

impl Searching {
    /// A world that nobody has asked about yet, with what must never be done in it. The first round puts that into force.
    pub fn open(
        shape: &Shape,
        settings: Settings,
        floor: Fixed,
        forbidden: &[Forbidden],
    ) -> Result<(Searching, Round), EnvironmentError> {
        let mut learner = Learner::new(shape, settings)?;
        learner.tally.repetition = Repetition::Denied;
        let mut notes = Notes::default();
        if !learner.obey(forbidden, &mut notes) {
            let reason = "forbidden: too many pairs of observation and action, or no action is left for some";
            return Err(EnvironmentError::External(reason.to_string()));
        }
        let mut searching = Searching { learner, floor, aside: BTreeMap::new(), notes };
        let round = searching.publish();
        Ok((searching, round))
    }

    /// Begins with what others have learned or played, before the first episode: machines are tried by the first round, episodes are
    /// experience and prove nothing. The baseline of a start is not looked at: a served world has its floor.
    pub fn begin_with(&mut self, start: Start) {
        let still = Learner::new(&self.learner.shape, self.learner.settings.clone());
        let learner = still.map(|still| core::mem::replace(&mut self.learner, still));
        if let Ok(learner) = learner {
            self.learner = learner.with_library(start.machines).with_experience(start.episodes);
        }
    }

    /// Whether somebody waits to be tried before everything else.
    fn is_beginning(&self) -> bool {
        matches!(self.learner.phase, Phase::Start) && !self.learner.library.is_empty()
    }

    /// Takes in an episode that is complete; the serial under which it is known from now on.
    pub fn take(&mut self, begun: Begun, steps: &[Settled]) -> u64 {
        // Whoever was set aside while people's candidate is tried sees what happens all the same; what is played for the trial
        // is experience.
        let first = steps.first().map_or(Bits::ZERO, |step| step.observation);
        let is_measured = self.learner.is_measured(begun, &first);
        if let Some(before) = self.learner.hearing.apart.before_mut() {
            let turn = if is_measured { Turn::SEAT } else { begun.turn };
            take_into(before, Begun { turn, ..begun }, steps, &mut ());
        }
        take_into(&mut self.learner, begun, steps, &mut self.notes)
    }

    /// People say whether an episode may be learned from: it is taken out of the log, or put back where it was.
    pub fn keep(&mut self, serial: u64, is_kept: bool) {
        match is_kept {
            true => {
                if let Some(episode) = self.aside.remove(&serial) {
                    if let Some(before) = self.learner.hearing.apart.before_mut() {
                        before.put_back(episode.clone());
                    }
                    self.learner.put_back(episode);
                }
            }
            false => {
                if ASIDE_MAX <= self.aside.len() {
                    self.aside.pop_first();
                }
                if let Some(before) = self.learner.hearing.apart.before_mut() {
                    before.take_out(serial);
                }
                self.aside.extend(self.learner.take_out(serial).map(|episode| (serial, episode)));
            }
        }
    }

    /// Hears everything that people said and that is in force: labels make candidates, which are measured like all others.
    pub fn hear(&mut self, told: Told) {
        self.learner.hear(told);
    }

    /// People may approve what this round lets in, which adds at most this to a score.
    pub fn lend_approval(&mut self, approval: Fixed) {
        self.learner.machinery.lend_approval(approval);
    }

    /// Is lent everything that others propose: what the log speaks for is measured like everything else.
    pub fn offer(&mut self, offers: Offers) {
        self.learner.offer(offers);
    }

    /// Whether so many offers are news.
    pub fn has_offers(&self, count: u64) -> bool {
        self.learner.offered.looked() < count
    }

    /// Whether a round should begin when so many steps wait to be taken in: a search is due, a contest may be decided, or another
    /// plan should be drawn.
    pub fn is_due(&self, waiting: u64) -> bool {
        let (learner, steps) = (&self.learner, self.learner.tally.steps);
        let is_open = learner.contest().is_some();
        let is_followed = is_open || learner.exploration.explorer().is_some();
        let is_enough = is_followed && CONTEST_STEPS + steps / CONTEST_SHARE <= waiting;
        is_enough || self.is_beginning() || !is_open && self.next_due() <= steps + waiting
    }

    /// Whether so many labels are enough news for another round.
    pub fn has_news(&self, labels: usize) -> bool {
        !self.is_measuring() && self.learner.hearing.is_news(labels, 1, self.learner.tally.steps)
    }

    /// Steps after which the next search is due.
    pub fn next_due(&self) -> u64 {
        self.learner.candidates.next_search()
    }

    /// Whether there is something to be worked on or to be published: a search is due, a contest was decided, or there is somebody
    /// who plans.
    pub fn has_work(&self) -> bool {
        self.may_search() || self.learner.exploration.explorer().is_some()
    }

    /// Whether a search is due, or something was decided.
    fn may_search(&self) -> bool {
        let (is_open, is_over) = (self.learner.contest().is_some(), self.learner.is_measuring());
        self.has_decided()
            || self.is_beginning()
            || !is_open
                && (is_over
                    || self.learner.hearing.is_due(1, self.learner.tally.steps)
                    || self.learner.offered.is_due()
                    || self.next_due() <= self.learner.tally.steps)
    }

    /// Whether something was decided that is not published yet.
    pub fn has_decided(&self) -> bool {
        matches!(self.learner.phase, Phase::Judge) || !self.notes.is_empty()
    }

    /// Whether a contest is open.
    pub fn is_measuring(&self) -> bool {
        self.learner.contest().is_some()
    }

    /// Gives the open contest up, if there is one.
    pub fn forgo(&mut self) {
        self.learner.forgo();
    }

    /// Searches, proves and decides; bounded by the configuration's budgets of work.
    pub fn work(&mut self) -> Round {
        let is_searched = self.may_search();
        // A rollback never waits for anybody, so that nothing that would have to wait comes with it.
        if self.notes.has_rollback() {
            self.lend_approval(Fixed::ZERO);
        }
        self.learner.search_served(&mut self.notes);
        if self.learner.exploration.is_hope_old() {
            self.learner.look_ahead();
        }
        Round { is_searched, ..self.publish() }
    }

    fn publish(&mut self) -> Round {
        let notes = core::mem::take(&mut self.notes);
        let learner = &mut self.learner;
        learner.notice_acting();
        // What acts needs no log, and nobody who was set aside.
        let experience = core::mem::replace(&mut learner.experience, Experience::new(1));
        let mut before = None;
        learner.hearing.apart.swap(&mut before);
        let mut acting = learner.clone();
        learner.hearing.apart.swap(&mut before);
        learner.experience = experience;
        // One plan serves until the next round.
        let mut register = Prng::quick(learner.settings.seed ^ bem_base::prng::mix(learner.tally.steps));
        let (exploration, shape) = (&mut acting.exploration, &learner.shape);
        while exploration.explorer().is_some() && !exploration.prepare(shape, &mut register) {}
        let floor = self.floor;
        let (steps, episodes, explored, under_way) = (0, 0, 0, UnderWay::default());
        let acting = Acting { learner: acting, floor, steps, episodes, explored, cautious: None, under_way };
        let (chain, steps) = (*learner.history.head(), learner.tally.steps);
        let (patches, missing) = (notes.patches(), notes.missing());
        Round { acting, patches, chain, steps, is_searched: true, missing }
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.i64(self.floor.to_raw());
        writer.bytes(&self.learner.encode());
        writer.length(self.aside.len());
        self.aside.values().for_each(|episode| episode.encode(writer));
    }

    /// Reads canonical bytes back, for a world of this shape.
    pub fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<Searching, RestoreError> {
        let malformed = reader.error("a chance that nobody can be promised");
        let floor = Fixed::from_raw(reader.i64()?);
        if !is_floor(floor) {
            return Err(malformed.into());
        }
        let learner = Learner::restore_served(reader.bytes()?, &mut Still(shape.clone()))?;
        let mut aside = BTreeMap::new();
        for _ in 0..reader.length(12)? {
            let episode = Episode::decode(reader)?;
            aside.insert(episode.serial, episode);
        }
        if ASIDE_MAX < aside.len() {
            return Err(malformed.into());
        }
        Ok(Searching { learner, floor, aside, notes: Notes::default() })
    }
}

#[cfg(test)]
mod tests;
