//! A family that stands for a world: plain actions, what is held, the guard and the trial seat.
//!
//! A plain action is the boot expert ACTION with an operand. Every bucket keeps statistics of all of them, on the range of
//! the world's rewards; a step counts for the action that was taken, whoever chose it. How they are chosen and booked is in
//! [`super::plain`]. Must not know the log: statistics that are counted from it are handed in. Clauses: VM-9, VM-16, D-41, D-42.

use super::{Family, FamilyError, Seat, checked_expert};
use crate::config::GenesisConfig;
use crate::expert::ExpertParts;
use crate::guard::Guard;
use crate::held::{Adaptation, Held};
use crate::route::directory::{Directory, RouteInput};
use bem_base::environment::{Bits, Shape};
use bem_base::fixed::Fixed;
use bem_base::ids::ObjectId;
use bem_base::prng::Prng;
use bem_circuit::compile::Evaluator;
use bem_learn::index::Parameters;
use bem_learn::loss::PayoffRange;
use bem_learn::wide::{Advice, WideBucket};

/// Pairs that are remembered to have been BAD.
pub const SUSPECTS_MAX: usize = 4_096;
/// One draw in so many does not leave them out.
const SUSPECTS_ONE_IN: u64 = 8;

/// The range that rewards of worlds of this shape are compared on.
pub(super) fn reward_range(shape: &Shape) -> PayoffRange {
    let (low, high) = (i64::from(shape.reward_min), i64::from(shape.reward_max));
    PayoffRange::new(low, high.max(low + 1)).expect("rewards of 32 bits lie within the span")
}

impl Family {
    /// A family that stands for a world of this shape: plain actions are held, and NOOP alone is in its pool.
    pub fn for_world(config: &GenesisConfig, shape: Shape) -> Result<Family, FamilyError> {
        let mut family = Family::new(config, shape)?;
        family.held = Held::at_boot(&family.shape);
        family.directory = Directory::deep(config.buckets as usize);
        family.forget_plain();
        Ok(family)
    }

    /// Whether it stands for a world and chooses among plain actions.
    #[inline]
    pub fn is_world(&self) -> bool {
        !self.held.actions.is_empty()
    }

    /// What acts when nothing is explored.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// The actions that are masked.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// For every bucket the moment from which on it counts, a number that rises with time.
    pub fn since(&self) -> &[u64] {
        &self.since
    }

    /// What plain actions brought, bucket by bucket.
    pub fn plain(&self) -> &[WideBucket] {
        &self.statistics.plain
    }

    /// The bucket of an observation.
    pub fn bucket_of(&self, observation: &Bits) -> u16 {
        let width = self.layout.observation().len();
        self.directory.bucket(self.signatures.signature(observation, |input| match input {
            RouteInput::State(bit) => usize::from(bit) < width && observation.get(usize::from(bit)),
            RouteInput::Shared { .. } => false,
        }))
    }

    /// The range of rewards that plain actions are compared on.
    pub fn reward_range(&self) -> PayoffRange {
        reward_range(&self.shape)
    }

    /// The parameters of the index over plain actions: changes are looked for by the owner.
    pub(super) fn plain_parameters(&self) -> Parameters {
        Parameters { change: None, ..self.parameters }
    }

    pub(super) fn unknown_bucket(&self) -> WideBucket {
        let parameters = self.plain_parameters();
        match self.statistics.imagined.as_slice() {
            [] => WideBucket::new(&parameters, usize::from(self.shape.actions)),
            losses => WideBucket::imagining(&parameters, losses),
        }
    }

    /// Another task in worlds of the same shape begins. Experts, contexts, what is held and the guard stay, which only patches
    /// change. What plain actions brought on the whole is what is imagined of them from now on; from which moment on buckets
    /// count is forgotten, because there is another log.
    pub(crate) fn begin_task(&mut self) {
        let parameters = self.plain_parameters();
        let actions = usize::from(self.shape.actions);
        self.statistics.imagined = WideBucket::mean_losses(&parameters, actions, &self.statistics.plain);
        self.forget_plain();
        self.since.iter_mut().for_each(|step| *step = 0);
        self.statistics.suspects.clear();
        self.revision += 1;
        self.vacate();
    }

    /// What people said of a plain action where this is seen, added or taken back; whether it fits.
    pub(crate) fn advise(
        &mut self,
        observation: &Bits,
        action: u16,
        advice: &Advice,
        adds: bool,
        index: Option<i32>,
    ) -> bool {
        let (bucket, parameters) = (self.bucket_of(observation), self.plain_parameters());
        let Some(statistics) = self.statistics.plain.get_mut(usize::from(bucket)) else { return false };
        statistics.advise(&parameters, usize::from(action), advice, adds, index)
    }

    /// What plain actions would look like where this is seen, if people said this.
    pub fn advised(&self, observation: &Bits, said: &[(u16, Advice)]) -> WideBucket {
        let parameters = self.plain_parameters();
        let mut bucket = self.statistics.plain[usize::from(self.bucket_of(observation))].clone();
        for (action, advice) in said {
            bucket.advise(&parameters, usize::from(*action), advice, true, None);
        }
        bucket
    }

    /// Forgets everything that people said.
    pub(crate) fn clear_advice(&mut self) {
        let parameters = self.plain_parameters();
        self.statistics.plain.iter_mut().for_each(|bucket| bucket.clear_advice(&parameters));
    }

    /// Remembers whether a pair was BAD when it was tried. Cost: a search among at most [`SUSPECTS_MAX`] pairs.
    #[inline]
    pub(crate) fn suspect(&mut self, observation: &Bits, action: u16, is_bad: bool) {
        let suspects = &mut self.statistics.suspects;
        if is_bad && suspects.len() < SUSPECTS_MAX {
            suspects.insert((*observation, action));
        } else if !is_bad && !suspects.is_empty() {
            suspects.remove(&(*observation, action));
        }
    }

    /// Pairs that are drawn more seldom or not at all: those that are suspected, and rules of the guard.
    pub fn barred(&self) -> u64 {
        (self.statistics.suspects.len() + self.guard.rules().len()) as u64
    }

    /// An action drawn with equal chance from those that are not forbidden, and how many it was drawn from. What was BAD when
    /// it was last tried is left out of most draws, where something else is left: it is tried again, but seldom.
    pub(crate) fn draw(&self, observation: &Bits, prng: &mut Prng) -> (u16, u16) {
        let actions = self.shape.actions;
        let mut suspected = self.statistics.suspects.range((*observation, 0)..=(*observation, u16::MAX));
        if suspected.next().is_none() || prng.below(SUSPECTS_ONE_IN) == 0 {
            return self.guard.draw(observation, actions, prng);
        }
        let is_free = |action: &u16| {
            self.guard.pass(observation, *action) == *action
                && !self.statistics.suspects.contains(&(*observation, *action))
        };
        let free: Vec<u16> = (0..actions).filter(is_free).collect();
        match free.len() {
            0 => self.guard.draw(observation, actions, prng),
            count => (free[prng.below(count as u64) as usize], count as u16),
        }
    }

    /// The chance with which [`Family::draw`] draws this action.
    pub fn draw_chance(&self, observation: &Bits, action: u16) -> Fixed {
        let is_allowed = |action: &u16| self.guard.pass(observation, *action) == *action;
        let is_free =
            |action: &u16| is_allowed(action) && !self.statistics.suspects.contains(&(*observation, *action));
        let count = |is: &dyn Fn(&u16) -> bool| (0..self.shape.actions).filter(is).count() as i64;
        let share = |is: &dyn Fn(&u16) -> bool, parts: i64, of: i64| match is(&action) {
            true => Fixed::from_ratio(parts, of * count(is).max(1)),
            false => Fixed::ZERO,
        };
        let suspects = self.statistics.suspects.range((*observation, 0)..=(*observation, u16::MAX)).count();
        if suspects == 0 || count(&is_free) == 0 {
            return share(&is_allowed, 1, 1);
        }
        let one_in = SUSPECTS_ONE_IN as i64;
        share(&is_allowed, 1, one_in).plus(share(&is_free, one_in - 1, one_in))
    }

    /// Something else acts from now on when nothing is explored.
    pub(crate) fn hold(&mut self, held: Held) -> Result<(), FamilyError> {
        let refuse = |what| Err(FamilyError::Held { what });
        let Held { member, actions, rule } = &held;
        if member.is_some_and(|slot| self.expert(usize::from(slot)).is_none()) {
            return refuse("an empty slot cannot be held");
        }
        let exist = actions.iter().all(|action| *action < self.shape.actions);
        if actions.len() != self.directory.bucket_count() || !exist {
            return refuse("every bucket holds one action that exists");
        }
        if *rule != Adaptation::Fixed && actions.len() != 1 {
            return refuse("plain actions adapt where there is one bucket");
        }
        self.revision += 1;
        self.held = held;
        Ok(())
    }

    /// An expert of the pool acts from now on, or plain actions where none is named.
    pub(crate) fn hold_member(&mut self, member: Option<u8>) -> Result<(), FamilyError> {
        self.hold(Held { member, ..self.held.clone() })
    }

    /// Rules are masked at the output of every turn from now on.
    pub(crate) fn guard_with(&mut self, guard: Guard) {
        self.revision += 1;
        self.guard = guard;
    }

    /// What came before this moment no longer counts in the bucket.
    pub(crate) fn forget(&mut self, bucket: u16, moment: u64) -> Result<(), FamilyError> {
        let refused = FamilyError::Held { what: "a bucket forgets what came before a later moment" };
        let since =
            self.since.get_mut(usize::from(bucket)).filter(|since| **since < moment).ok_or(refused)?;
        *since = moment;
        self.revision += 1;
        Ok(())
    }

    /// The two halves of a bucket that was split: both hold and count what the whole did.
    pub(super) fn divide_world(&mut self, bucket: u16) {
        if !self.is_world() {
            return;
        }
        let bucket = usize::from(bucket);
        self.since.push(self.since[bucket]);
        self.divide_plain(bucket);
        self.held.actions.push(self.held.actions[bucket]);
        // What tells contexts apart ends adapting to none.
        self.held.rule = Adaptation::Fixed;
    }

    /// Two buckets that became one: it counts from where both did.
    pub(super) fn join_world(&mut self, low: usize, high: usize) {
        if !self.is_world() {
            return;
        }
        self.since[low] = self.since[low].max(self.since[high]);
        self.since.remove(high);
        self.join_plain(high);
        self.held.actions.remove(high);
    }

    /// Seats a circuit that is measured; it can be named and is chosen by nobody.
    pub fn try_on(&mut self, config: &GenesisConfig, parts: ExpertParts) -> Result<(), FamilyError> {
        self.check_writes(&parts)?;
        let expert = checked_expert(config, ObjectId::expert(0, 0), parts)?;
        let evaluator = Evaluator::new(expert.placed());
        self.seat = Some(Box::new(Seat { expert, evaluator }));
        self.measure();
        Ok(())
    }

    /// Whether somebody sits in the trial seat.
    pub fn is_seat_taken(&self) -> bool {
        self.seat.is_some()
    }

    /// Empties the trial seat.
    pub fn vacate(&mut self) {
        self.seat = None;
        self.measure();
    }
}
