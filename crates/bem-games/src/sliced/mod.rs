//! Bit-sliced games: 256 episodes of one game side by side, one bit of all of them in a [`LaneWord`].
//!
//! A sliced game follows the same rules as its scalar twin in [`crate::families`]. Where both draw from the same
//! random bits they agree lane by lane, which a property test shows for each: a lane's random bits are its
//! column of the planes drawn, taken draw by draw. Must not know learning. Clauses: GLE-1, VM-8, VM-15.

pub mod arithmetic;
pub mod bandit;
pub mod contextual_bandit;
pub mod dyck;
pub mod key_value;
pub mod majority;
pub mod nonstationary_bandit;
pub mod parity;
pub mod parity_stream;
pub mod planes;
pub mod sequence;
pub mod stack_machine;
#[cfg(test)]
pub(crate) mod testing;

use bem_base::environment::Shape;
use bem_base::lanes::{LaneEnvironment, LaneOutcome, LaneWord};
use planes::{PlaneDice, Planes};

/// What one game says about all lanes at once.
pub trait SlicedRules: Send {
    /// Everything that changes during an episode, for all lanes.
    type State: Send;

    /// What may be known before playing.
    fn shape(&self) -> Shape;
    /// A state to begin episodes in.
    fn empty(&self) -> Self::State;
    /// Starts a new episode in the lanes of `mask`.
    fn begin<P: Planes>(&self, state: &mut Self::State, mask: LaneWord, planes: &mut P);
    /// Writes what is seen in every lane.
    fn observe(&self, state: &Self::State, observation: &mut [LaneWord]);
    /// Takes an action in the lanes of `mask`; the outcome is zero elsewhere.
    fn play<P: Planes>(
        &self,
        state: &mut Self::State,
        action: &[LaneWord],
        mask: LaneWord,
        planes: &mut P,
    ) -> LaneOutcome;
}

/// 256 running episodes of one game.
pub struct Sliced<R: SlicedRules, P> {
    rules: R,
    shape: Shape,
    state: R::State,
    source: fn(u64) -> P,
    planes: P,
}

impl<R: SlicedRules> Sliced<R, PlaneDice> {
    /// Episodes with these rules whose chance comes from the seed of the reset.
    pub fn new(rules: R) -> Sliced<R, PlaneDice> {
        Sliced::with_source(rules, PlaneDice::new)
    }
}

impl<R: SlicedRules, P: Planes> Sliced<R, P> {
    /// Episodes with these rules whose chance comes from `source(seed)`.
    pub fn with_source(rules: R, source: fn(u64) -> P) -> Sliced<R, P> {
        let (shape, state) = (rules.shape(), rules.empty());
        Sliced { rules, shape, state, source, planes: source(0) }
    }

    /// Where the chance comes from now.
    pub fn planes(&self) -> &P {
        &self.planes
    }
}

impl<R: SlicedRules, P: Planes> LaneEnvironment for Sliced<R, P> {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64, observation: &mut [LaneWord]) {
        self.planes = (self.source)(seed);
        self.planes.begin_step();
        self.planes.begin_episodes();
        self.rules.begin(&mut self.state, LaneWord::ONES, &mut self.planes);
        self.rules.observe(&self.state, observation);
    }

    fn step(&mut self, action: &[LaneWord], mask: LaneWord, observation: &mut [LaneWord]) -> LaneOutcome {
        self.planes.begin_step();
        let outcome = self.rules.play(&mut self.state, action, mask, &mut self.planes);
        if !outcome.done.is_zero() {
            self.planes.begin_episodes();
            self.rules.begin(&mut self.state, outcome.done, &mut self.planes);
        }
        self.rules.observe(&self.state, observation);
        outcome
    }
}

/// The outcome of answers: paid where `right`, over where `done`.
#[inline]
fn answers(right: LaneWord, done: LaneWord) -> LaneOutcome {
    LaneOutcome { reward: right, done, bad: LaneWord::ZERO }
}
