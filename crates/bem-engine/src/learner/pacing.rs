//! What the next unit of work is spent on: a [`Scheduler`] gives out units of three kinds, and the paced order is one of its
//! rules.
//!
//! ACT plays steps, SYNTH searches once, VERIFY decides what waits with all its rollouts. By the paced rule ACT lasts until the
//! next search is due, a search follows, and VERIFY decides everything that it found. By the other rules ACT is a block of
//! steps and VERIFY decides the head of the queue; what makes no sense is not among their choices: no search before the log has
//! grown by an eighth, no deciding where nothing waits, and nothing else while the queue is full. Where BAD is on the rise
//! nothing but acting is allowed, whatever the rule ([`Safety`]); the paced rule waits for an incumbent to compare with.
//!
//! A unit pays half of one, and half of what it gained less what it cost. Gained: one for a patch put into force, a quarter
//! for a patch that waits now, for acting an eighth of the mean return over its range. Cost: its steps over those of a
//! unit of acting; a search takes no step and costs an eighth. When a patch is put into force, the search that found it is
//! paid as well. Without costs a scheduler learns to act for ever, because acting always pays a little and searching
//! nearly never. Work is counted in units and steps, never in time.
//! Clauses: SCC-10, SCC-11, SCC-15; decision D-26.

use crate::learner::safety::Safety;
use crate::learner::{Event, Learner, Phase, Witness};
use crate::parameters;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_evolve::patch::PatchKind;
use bem_learn::loss::{Loss, Widening};
use bem_learn::schedule::{Activity, Scheduler, Situation};
use bem_machine::config::GenesisConfig;

/// What the linear scheduler looks at: a constant, whether patches wait, how new the log is, and the yield of late.
const FEATURES: usize = 4;
/// Steps of an ACT unit: at least these, and one in this many of those taken so far. As many must be new for a search.
const ACT_STEPS_MIN: u64 = 16;
const ACT_STEPS_SHARE: u64 = 8;
/// What a search costs, which takes no step: an eighth of a unit of acting.
const SEARCH_COST: u64 = Loss::ONE.to_raw() / 8;

/// Returns of one unit that are counted.
const RETURNS_MAX: u32 = 1 << 24;

/// Steps of an ACT unit that begins now.
fn act_steps(steps: u64) -> u64 {
    (steps / ACT_STEPS_SHARE).max(ACT_STEPS_MIN)
}

/// Where patches of the pool stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Patches {
    applied: u32,
    rolled_back: u32,
    waiting: u32,
}

/// A scheduler and the unit it has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Workload {
    scheduler: Scheduler,
    /// How many of the features the scheduler looks at.
    situation_size: usize,
    /// The rise of BAD that is an alarm.
    bad_rate_max: Fixed,
    /// The unit that runs, and what was seen when it was chosen; none before the first.
    unit: Option<(Activity, [Loss; FEATURES])>,
    /// Steps taken when it began.
    began_at: u64,
    /// An ACT unit ends at this step.
    act_until: u64,
    /// Steps taken when the log was last searched.
    searched_at: u64,
    /// What was seen when a search found what waits, until it is paid for it.
    unpaid: Option<[Loss; FEATURES]>,
    /// Where patches stood when the unit began.
    patches: Patches,
    /// Patches that the unit has decided.
    decided: u32,
    /// Returns of the unit, each as a share of its range, and how many.
    returns: (u64, u32),
    safety: Safety,
    /// Units that have ended, and how often the safety override chose.
    scheduled: Scheduled,
}

/// What a scheduler has given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// Units of ACT, SYNTH and VERIFY that have ended.
    pub units: [u64; 3],
    /// Units that the safety override chose.
    pub alarms: u64,
}

impl Workload {
    /// The workload that the configuration asks for.
    pub(super) fn new(config: &GenesisConfig) -> Workload {
        let scheduler = parameters::scheduler(config);
        Workload {
            scheduler,
            situation_size: config.situation_size as usize,
            bad_rate_max: config.bad_rate_max,
            unit: None,
            began_at: 0,
            act_until: 0,
            searched_at: 0,
            unpaid: None,
            patches: Patches::default(),
            decided: 0,
            returns: (0, 0),
            safety: Safety::default(),
            scheduled: Scheduled::default(),
        }
    }

    /// Whether the paced rule gives units out.
    pub(super) fn is_paced(&self) -> bool {
        self.scheduler == Scheduler::Paced
    }

    /// The step at which the unit that acts ends; by the paced rule not before the next search is due.
    pub(super) fn act_until(&self, next_search: u64) -> u64 {
        if self.is_paced() { self.act_until.max(next_search) } else { self.act_until }
    }

    /// Whether the unit has decided as many patches as it may; by the paced rule it decides all that wait.
    pub(super) fn is_enough(&self, patches_max: u32) -> bool {
        !self.is_paced() && patches_max <= self.decided
    }

    /// What was given out so far.
    pub(super) fn scheduled(&self) -> Scheduled {
        self.scheduled
    }

    /// Ends the unit that ran and begins another.
    fn turn_to(&mut self, activity: Activity, features: [Loss; FEATURES], steps: u64, patches: Patches) {
        self.unit = Some((activity, features));
        (self.began_at, self.patches) = (steps, patches);
        (self.decided, self.returns) = (0, (0, 0));
    }

    /// The unit has decided a patch.
    pub(super) fn count_decision(&mut self) {
        self.decided += 1;
    }

    /// Whether BAD is on the rise.
    pub(super) fn is_alarmed(&self) -> bool {
        self.safety.is_alarmed()
    }

    /// Books whether an episode of the incumbent was BAD.
    pub(super) fn book_safety(&mut self, is_bad: bool) {
        self.safety.book(is_bad);
    }

    /// Books the return of an episode as a share of its range.
    pub(super) fn book_return(&mut self, total: i64, (low, high): (i64, i64)) {
        let (gained, span) = (i128::from(total.clamp(low, high) - low), i128::from((high - low).max(1)));
        let share = ((gained << FRACTION_BITS) / span) as u64;
        // A unit of a service may last for ever; its mean needs no more than this.
        if self.returns.1 < RETURNS_MAX {
            self.returns = (self.returns.0 + share, self.returns.1 + 1);
        }
    }

    /// Returns are shares of a wider range from now on.
    pub(super) fn cover(&mut self, widening: Widening) {
        let (sum, count) = self.returns;
        self.returns.0 = widening.apply(sum, u64::from(count) << FRACTION_BITS);
    }

    /// Ends the unit that ran: the scheduler learns what it has paid.
    fn finish_unit(&mut self, steps: u64, patches: Patches) {
        let was_alarmed = self.safety.is_alarmed();
        let is_applied = self.patches.applied < patches.applied;
        let is_found = self.patches.waiting < patches.waiting;
        if is_applied || self.patches.rolled_back < patches.rolled_back {
            self.safety.begin_anew();
        }
        let Some((activity, features)) = self.unit.take() else { return };
        self.scheduled.units[activity as usize] += 1;
        self.scheduled.alarms += u64::from(was_alarmed);
        let one = Loss::ONE.to_raw();
        let gain = if is_applied {
            one
        } else if activity == Activity::Synthesize && is_found {
            one / 4
        } else if activity == Activity::Act && 0 < self.returns.1 {
            self.returns.0 / u64::from(self.returns.1) / 8
        } else {
            0
        };
        let span = act_steps(self.began_at);
        let cost = match activity {
            Activity::Synthesize => SEARCH_COST,
            _ => (one / span).saturating_mul(steps.saturating_sub(self.began_at).min(span)),
        };
        let paid = Loss::from_raw((one + gain - cost) / 2);
        let seen = ..self.situation_size;
        let situation =
            Situation { features: &features[seen], safety_alarm: was_alarmed, possible: [true; 3] };
        self.scheduler.learn(&situation, activity, paid);
        match activity {
            Activity::Synthesize if is_found => self.unpaid = Some(features),
            Activity::Verify if is_applied => {
                if let Some(features) = self.unpaid.take() {
                    let situation = Situation { features: &features[seen], ..situation };
                    self.scheduler.credit(&situation, Activity::Synthesize, Loss::ONE);
                }
            }
            _ => {}
        }
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        self.scheduler.encode(writer);
        writer.u8(self.unit.map_or(u8::MAX, |(activity, _)| activity as u8));
        let features = self.unit.map_or([Loss::ZERO; FEATURES], |(_, features)| features);
        features.iter().for_each(|feature| writer.u64(feature.to_raw()));
        writer.u64(self.began_at);
        writer.u64(self.act_until);
        writer.u64(self.searched_at);
        writer.bool(self.unpaid.is_some());
        self.unpaid.iter().flatten().for_each(|feature| writer.u64(feature.to_raw()));
        let Patches { applied, rolled_back, waiting } = self.patches;
        [applied, rolled_back, waiting].into_iter().for_each(|count| writer.u32(count));
        writer.u32(self.decided);
        writer.u64(self.returns.0);
        writer.u32(self.returns.1);
        self.safety.encode(writer);
        self.scheduled.units.iter().for_each(|count| writer.u64(*count));
        writer.u64(self.scheduled.alarms);
    }

    /// Reads canonical bytes into a fresh workload of the same pacing.
    pub(super) fn restore(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let malformed = reader.error("a unit of work that no scheduler can have chosen");
        self.scheduler.restore(reader)?;
        let number = usize::from(reader.u8()?);
        let features = decode_features(reader)?;
        self.unit = match number {
            255 if features == [Loss::ZERO; FEATURES] => None,
            number => Some((*Activity::ALL.get(number).ok_or(malformed.clone())?, features)),
        };
        (self.began_at, self.act_until, self.searched_at) = (reader.u64()?, reader.u64()?, reader.u64()?);
        self.unpaid = if reader.bool()? { Some(decode_features(reader)?) } else { None };
        self.patches = Patches { applied: reader.u32()?, rolled_back: reader.u32()?, waiting: reader.u32()? };
        self.decided = reader.u32()?;
        self.returns = (reader.u64()?, reader.u32()?);
        self.safety = Safety::decode(reader)?;
        for count in &mut self.scheduled.units {
            *count = reader.u64()?;
        }
        self.scheduled.alarms = reader.u64()?;
        let counts = self.scheduled.units.into_iter().chain([self.scheduled.alarms]);
        let fits = self.act_until < 1 << 48
            && self.began_at < 1 << 48
            && self.searched_at < 1 << 48
            && self.returns.0 <= u64::from(self.returns.1) << FRACTION_BITS
            && self.returns.1 <= RETURNS_MAX
            && self.decided < 1 << 31;
        let fits = fits && counts.into_iter().all(|count| count < 1 << 48);
        if fits { Ok(()) } else { Err(malformed) }
    }
}

fn decode_features(reader: &mut Reader<'_>) -> Result<[Loss; FEATURES], DecodeError> {
    let malformed = reader.error("a feature above one");
    let mut features = [Loss::ZERO; FEATURES];
    for feature in &mut features {
        let raw = reader.u64()?;
        if Loss::ONE.to_raw() < raw {
            return Err(malformed);
        }
        *feature = Loss::from_raw(raw);
    }
    Ok(features)
}

impl Learner {
    /// Where patches of the pool stand.
    fn patches(&self) -> Patches {
        let evolution = self.machinery.evolution();
        // Contexts come and go with every search; they are no reason to search.
        let applied = |kind: PatchKind| evolution.pox().record(kind).applied;
        Patches {
            applied: [PatchKind::Synthesize, PatchKind::Superoptimize, PatchKind::Macro]
                .map(applied)
                .iter()
                .sum(),
            rolled_back: self.tally.rolled_back,
            waiting: evolution.backlog() as u32,
        }
    }

    /// Ends the unit that ran and begins the one that the scheduler chooses.
    pub(super) fn next_unit(&mut self, witness: &mut dyn Witness) -> Event {
        let (steps, patches) = (self.tally.steps, self.patches());
        self.workload.finish_unit(steps, patches);
        let is_over = self.is_spent() || self.is_done();
        if is_over && (!self.workload.is_paced() || self.workload.is_alarmed()) {
            // Contexts grow when the log is searched; what acts at the end should know all of it.
            if !self.workload.is_alarmed() {
                self.tend_contexts(witness);
            }
            self.end_round();
            return Event::RoundEnded;
        }
        match self.choose_unit(steps, patches) {
            Activity::Act => {
                self.workload.act_until = steps + act_steps(steps);
                Event::RoundEnded
            }
            Activity::Synthesize => {
                self.workload.searched_at = steps;
                self.search(witness)
            }
            Activity::Verify => {
                self.candidates.open_round();
                self.phase = Phase::Judge;
                Event::RoundEnded
            }
        }
    }

    /// Asks the scheduler, and begins the unit that it names.
    fn choose_unit(&mut self, steps: u64, patches: Patches) -> Activity {
        let evolution = self.machinery.evolution();
        let (backlog, capacity) = (evolution.backlog(), evolution.config().patches_pending_max as usize);
        let yield_share = Loss::from_fixed(evolution.pox().yield_average());
        let workload = &mut self.workload;
        let fresh = steps - workload.searched_at.min(steps);
        let newness = Loss::from_raw((fresh << 32) / steps.max(1));
        let features = [Loss::ONE, Loss::from_bit(0 < backlog), newness, yield_share.unwrap_or(Loss::ZERO)];
        let is_paced = workload.is_paced();
        let safety_alarm = workload.safety.begin_unit(workload.bad_rate_max, is_paced);
        // The paced rule is asked when its unit of acting is over: a search is due.
        let is_fresh = is_paced || act_steps(steps) <= fresh && self.settings.config.synthesis;
        let possible = [true, is_fresh, 0 < backlog];
        let seen = &features[..workload.situation_size];
        let situation = Situation { features: seen, safety_alarm, possible };
        // Where BAD is on the rise no patch is put into force, whatever waits.
        let is_full = capacity <= backlog && !safety_alarm && !is_paced;
        let activity = if is_full { Activity::Verify } else { workload.scheduler.choose(&situation) };
        workload.turn_to(activity, features, steps, patches);
        activity
    }

    /// After a search: whether what it found is decided at once, as the paced rule says. The unit of VERIFY begins then.
    pub(super) fn verifies_at_once(&mut self) -> bool {
        if !self.workload.is_paced() {
            return false;
        }
        let (steps, patches) = (self.tally.steps, self.patches());
        self.workload.finish_unit(steps, patches);
        let situation = Situation { features: &[], safety_alarm: false, possible: [true, false, true] };
        let activity = self.workload.scheduler.choose(&situation);
        self.workload.turn_to(activity, [Loss::ZERO; FEATURES], steps, patches);
        activity == Activity::Verify
    }

    /// By the paced rule a unit of ACT begins with the first episode after everything was decided.
    pub(super) fn resume_acting(&mut self) {
        let is_acting = matches!(self.workload.unit, Some((Activity::Act, _)));
        if self.workload.is_paced() && !is_acting {
            let (steps, patches) = (self.tally.steps, self.patches());
            self.workload.finish_unit(steps, patches);
            self.workload.turn_to(Activity::Act, [Loss::ZERO; FEATURES], steps, patches);
        }
    }
}
