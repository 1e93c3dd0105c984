//! From the rules of a game to the game itself.
//!
//! A family writes [`Rules`]: how an episode begins, what is seen, what an action brings, which action is best.
//! Everything else is the same for all and lives here: refusing bad actions and steps after the end, the running
//! world, the oracle. Must not know any family. Clauses: GLE-1, VM-15, VM-17.

use crate::draw::{Dice, Draw};
use crate::game::{Game, Oracle, Steps, Value};
use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Forbidden, Outcome, Shape};
use bem_base::lanes::LaneEnvironment;
use std::sync::Arc;

/// Reward of a right answer, in milli-units.
pub const RIGHT: i32 = 1_000;

/// What one family says about a game with its hidden choices made.
pub trait Rules: Send + Sync + 'static {
    /// Everything that changes during an episode.
    type State: Clone + Send;

    /// What may be known before playing.
    fn shape(&self) -> Shape;
    /// A new episode.
    fn begin<D: Draw>(&self, draw: &mut D) -> Self::State;
    /// What is seen in this state.
    fn observe(&self, state: &Self::State) -> Bits;
    /// Takes an action, which is within range; the episode is not over.
    fn play<D: Draw>(&self, state: &mut Self::State, action: u16, draw: &mut D) -> Outcome;
    /// The best action in this state; the lowest one where it does not matter.
    fn best(&self, state: &Self::State) -> u16;
    /// Whether it makes a difference in this state which action is taken, if best play follows.
    fn matters(&self, _state: &Self::State) -> bool {
        true
    }
    /// The expected return of the best policy.
    fn optimum(&self) -> Value;
    /// The expected return of choosing every action with equal chance.
    fn random(&self) -> Value;
    /// How long an episode is.
    fn steps(&self) -> Steps;
    /// What must never be done, in rising order; optimum and random play keep to it.
    fn forbidden(&self) -> &[Forbidden] {
        &[]
    }
    /// 256 episodes side by side, for rules that also have a bit-sliced form.
    fn start_sliced(&self) -> Option<Box<dyn LaneEnvironment + Send>> {
        None
    }
}

/// A shape for games that pay [`RIGHT`] or nothing: bit groups of these widths, in this order, and at most
/// `answers` rewarded steps.
pub fn answer_shape(widths: &[usize], actions: usize, horizon: u32, answers: u32) -> Shape {
    let mut fields = Vec::new();
    let mut low = 0;
    for &width in widths.iter().filter(|width| 0 < **width) {
        fields.push(Field { low: low as u16, width: width as u16 });
        low += width;
    }
    Shape {
        observation_bits: low as u16,
        actions: actions as u16,
        horizon,
        reward_min: 0,
        reward_max: RIGHT,
        return_min: 0,
        return_max: i64::from(answers) * i64::from(RIGHT),
        fields,
    }
}

/// The outcome of an answer: [`RIGHT`] or nothing.
#[inline]
pub fn answer(right: bool, done: bool) -> Outcome {
    Outcome { reward: if right { RIGHT } else { 0 }, done, bad: false }
}

/// The outcome of a step that asks for nothing.
#[inline]
pub fn pass(done: bool) -> Outcome {
    answer(false, done)
}

/// The bits needed to write every number below `count`.
pub const fn bits_for(count: u64) -> usize {
    assert!(0 < count);
    (u64::BITS - (count - 1).leading_zeros()) as usize
}

/// A game made of rules.
pub struct RuleGame<R> {
    table: Arc<Table<R>>,
}

/// What all episodes of a game share.
struct Table<R> {
    rules: R,
    shape: Shape,
}

impl<R: Rules> RuleGame<R> {
    /// The game with these rules.
    pub fn new(rules: R) -> RuleGame<R> {
        let shape = rules.shape();
        RuleGame { table: Arc::new(Table { rules, shape }) }
    }

    /// Its rules.
    pub fn rules(&self) -> &R {
        &self.table.rules
    }

    /// A running world whose draws come from `source(seed)`.
    pub fn start_with<D: Draw>(&self, source: fn(u64) -> D) -> Running<R, D> {
        Running {
            table: Arc::clone(&self.table),
            source,
            draw: source(0),
            state: None,
            observation: Bits::ZERO,
        }
    }
}

impl<R: Rules> Game for RuleGame<R> {
    fn shape(&self) -> &Shape {
        &self.table.shape
    }

    fn start(&self) -> Box<dyn Environment + Send> {
        Box::new(self.start_with(Dice::new))
    }

    fn start_sliced(&self) -> Option<Box<dyn LaneEnvironment + Send>> {
        self.table.rules.start_sliced()
    }

    fn optimum(&self) -> Value {
        self.table.rules.optimum()
    }

    fn random(&self) -> Value {
        self.table.rules.random()
    }

    fn steps(&self) -> Steps {
        self.table.rules.steps()
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        Box::new(Clairvoyant { shadow: self.start_with(Dice::new) })
    }
}

/// One running episode of a game made of rules.
pub struct Running<R: Rules, D> {
    table: Arc<Table<R>>,
    source: fn(u64) -> D,
    draw: D,
    /// None when no episode is under way.
    state: Option<R::State>,
    observation: Bits,
}

impl<R: Rules, D: Draw> Environment for Running<R, D> {
    fn shape(&self) -> &Shape {
        &self.table.shape
    }

    fn forbidden(&self) -> &[Forbidden] {
        self.table.rules.forbidden()
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.draw = (self.source)(seed);
        self.draw.begin();
        let state = self.table.rules.begin(&mut self.draw);
        self.observation = self.table.rules.observe(&state);
        self.state = Some(state);
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let Some(state) = &mut self.state else {
            return Err(EnvironmentError::EpisodeOver);
        };
        if self.table.shape.actions <= action {
            return Err(EnvironmentError::ActionOutOfRange { action, last: self.table.shape.actions - 1 });
        }
        self.draw.begin();
        let outcome = self.table.rules.play(state, action, &mut self.draw);
        if outcome.done {
            self.state = None;
            self.observation = Bits::ZERO;
        } else {
            self.observation = self.table.rules.observe(state);
        }
        Ok(outcome)
    }
}

/// Plays a copy of the episode beside the real one and looks into its state.
struct Clairvoyant<R: Rules> {
    shadow: Running<R, Dice>,
}

impl<R: Rules> Oracle for Clairvoyant<R> {
    fn begin(&mut self, seed: u64) {
        self.shadow.reset(seed).expect("games made of rules always reset");
    }

    fn act(&mut self, _observation: &Bits) -> u16 {
        let state = self.shadow.state.as_ref().expect("an oracle is asked during an episode");
        self.shadow.table.rules.best(state)
    }

    fn matters(&mut self) -> bool {
        self.shadow.state.as_ref().is_some_and(|state| self.shadow.table.rules.matters(state))
    }

    fn see(&mut self, action: u16, _outcome: &Outcome) {
        self.shadow.step(action).expect("the shadow follows the real episode");
    }
}
