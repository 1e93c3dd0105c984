//! What every family can be wrapped in: noisy rewards, scrambled codes, seeds that promise nothing, rewards that come late.
//!
//! Noise replaces rewards; scrambling renames actions and moves observation bits, so that nothing learned can
//! rest on how a family happens to number things. Optimum and random value stay exact. Must not know any family.
//! Clauses: GLE-1, GLE-2.

use crate::draw::{Dice, Draw};
use crate::game::{Game, GameError, Oracle, Steps, Value};
use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Late, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::LaneEnvironment;
use bem_base::prng::{Prng, mix};
use std::sync::Arc;

/// How much of a game's coding is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scramble {
    /// Nothing.
    None,
    /// Action codes are permuted; with two actions the answer may be flipped.
    Actions,
    /// Also the order of the fields; the bits inside a field stay together and in order.
    Fields,
    /// Also every observation bit moves and may be flipped; each is a field of its own.
    Bits,
}

impl Scramble {
    /// The words on the command line, in the order of the variants.
    pub const WORDS: &'static [&'static str] = &["none", "actions", "fields", "bits"];

    /// The level with this index of [`Scramble::WORDS`].
    pub fn from_index(index: usize) -> Scramble {
        [Scramble::None, Scramble::Actions, Scramble::Fields, Scramble::Bits][index]
    }
}

/// The same game where `percent` of all rewards are replaced by the smallest or the largest one, by a fair coin.
///
/// The replaced rewards add their mean for every step. That is exact when chance alone decides how many steps
/// there are, or when the mean is zero; other games are refused.
pub fn with_noise(game: Arc<dyn Game>, percent: u32) -> Result<Arc<dyn Game>, GameError> {
    assert!(percent <= 100);
    if percent == 0 {
        return Ok(game);
    }
    let shape = game.shape();
    let both = i64::from(shape.reward_min) + i64::from(shape.reward_max);
    let added = match game.steps() {
        Steps::Drawn(mean) => mean.mul_int(both).div_count_floor(2),
        Steps::ByPolicy if both == 0 => Fixed::ZERO,
        Steps::ByPolicy => {
            let why = "noise cannot be added: the actions decide how long an episode is";
            return Err(GameError::Impossible(why.to_string()));
        }
    };
    let ends = |reward: i32| {
        let (once, always) = (i64::from(reward), i64::from(reward) * i64::from(shape.horizon));
        (once.min(always), once.max(always))
    };
    let shape =
        Shape { return_min: ends(shape.reward_min).0, return_max: ends(shape.reward_max).1, ..shape.clone() };
    Ok(Arc::new(Noisy { game, shape, percent, added }))
}

struct Noisy {
    game: Arc<dyn Game>,
    shape: Shape,
    percent: u32,
    /// Expected return of an episode all of whose rewards are replaced.
    added: Fixed,
}

impl Noisy {
    fn blend(&self, value: Value) -> Value {
        // Long episodes times a hundred would not fit in 64 bits.
        let weigh = |kept: Fixed, replaced: Fixed| {
            let sum = i128::from(kept.to_raw()) * i128::from(100 - self.percent)
                + i128::from(replaced.to_raw()) * i128::from(self.percent);
            Fixed::from_raw(sum.div_euclid(100) as i64)
        };
        Value {
            mean: weigh(value.mean, self.added),
            standard_error: weigh(value.standard_error, Fixed::ZERO),
        }
    }
}

impl Game for Noisy {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn start(&self) -> Box<dyn Environment + Send> {
        Box::new(NoisyEpisode {
            inner: self.game.start(),
            shape: self.shape.clone(),
            percent: self.percent,
            dice: Dice::new(0),
        })
    }

    fn optimum(&self) -> Value {
        self.blend(self.game.optimum())
    }

    fn random(&self) -> Value {
        self.blend(self.game.random())
    }

    fn steps(&self) -> Steps {
        self.game.steps()
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        self.game.oracle()
    }
}

struct NoisyEpisode {
    inner: Box<dyn Environment + Send>,
    shape: Shape,
    percent: u32,
    dice: Dice,
}

impl Environment for NoisyEpisode {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        // The noise must not share draws with the game, whose generator starts from the seed itself.
        self.dice = Dice::new(mix(!seed));
        self.inner.reset(seed)
    }

    fn observation(&self) -> &Bits {
        self.inner.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let outcome = self.inner.step(action)?;
        let draw = self.dice.below(200);
        let reward = if 2 * self.percent <= draw {
            outcome.reward
        } else if draw.is_multiple_of(2) {
            self.shape.reward_min
        } else {
            self.shape.reward_max
        };
        Ok(Outcome { reward, ..outcome })
    }
}

/// The same game in another coding, chosen by `secret`.
pub fn scrambled(game: Arc<dyn Game>, level: Scramble, secret: u64) -> Arc<dyn Game> {
    if level == Scramble::None {
        return game;
    }
    let code = Code::draw(game.shape(), level, secret);
    let shape = Shape { fields: code.fields.clone(), ..game.shape().clone() };
    Arc::new(Scrambled { game, shape, code: Arc::new(code) })
}

/// How outer actions and bits map to inner ones.
struct Code {
    /// Inner action of each outer action.
    inner_action: Vec<u16>,
    /// Outer action of each inner action.
    outer_action: Vec<u16>,
    /// Inner bit shown at each outer place.
    inner_bit: Vec<u16>,
    /// Outer bits that show the opposite.
    flips: Bits,
    fields: Vec<Field>,
}

impl Code {
    fn draw(shape: &Shape, level: Scramble, secret: u64) -> Code {
        let mut prng = Prng::stream(secret, "scramble");
        let mut inner_action: Vec<u16> = (0..shape.actions).collect();
        prng.shuffle(&mut inner_action);
        let mut outer_action = vec![0; inner_action.len()];
        for (outer, &inner) in inner_action.iter().enumerate() {
            outer_action[usize::from(inner)] = outer as u16;
        }
        let mut order = shape.fields.clone();
        if level == Scramble::Fields {
            prng.shuffle(&mut order);
        }
        let mut inner_bit: Vec<u16> =
            order.iter().flat_map(|field| field.low..field.low + field.width).collect();
        let mut fields = Vec::new();
        let mut low = 0;
        for field in order {
            fields.push(Field { low, width: field.width });
            low += field.width;
        }
        let mut flips = Bits::ZERO;
        if level == Scramble::Bits {
            prng.shuffle(&mut inner_bit);
            fields = (0..shape.observation_bits).map(|low| Field { low, width: 1 }).collect();
            for place in 0..inner_bit.len() {
                flips.set(place, prng.bit());
            }
        }
        Code { inner_action, outer_action, inner_bit, flips, fields }
    }

    fn encode(&self, inner: &Bits) -> Bits {
        let mut outer = self.flips;
        for (place, &bit) in self.inner_bit.iter().enumerate() {
            outer.set(place, self.flips.get(place) ^ inner.get(usize::from(bit)));
        }
        outer
    }

    fn decode(&self, outer: &Bits) -> Bits {
        let mut inner = Bits::ZERO;
        for (place, &bit) in self.inner_bit.iter().enumerate() {
            inner.set(usize::from(bit), self.flips.get(place) ^ outer.get(place));
        }
        inner
    }
}

struct Scrambled {
    game: Arc<dyn Game>,
    shape: Shape,
    code: Arc<Code>,
}

impl Game for Scrambled {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn start(&self) -> Box<dyn Environment + Send> {
        Box::new(ScrambledEpisode {
            inner: self.game.start(),
            shape: self.shape.clone(),
            code: Arc::clone(&self.code),
            observation: Bits::ZERO,
        })
    }

    fn optimum(&self) -> Value {
        self.game.optimum()
    }

    fn random(&self) -> Value {
        self.game.random()
    }

    fn steps(&self) -> Steps {
        self.game.steps()
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        Box::new(ScrambledOracle { inner: self.game.oracle(), code: Arc::clone(&self.code) })
    }
}

struct ScrambledEpisode {
    inner: Box<dyn Environment + Send>,
    shape: Shape,
    code: Arc<Code>,
    observation: Bits,
}

impl Environment for ScrambledEpisode {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.inner.reset(seed)?;
        self.observation = self.code.encode(self.inner.observation());
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let Some(&inner) = self.code.inner_action.get(usize::from(action)) else {
            return Err(EnvironmentError::ActionOutOfRange { action, last: self.shape.actions - 1 });
        };
        let outcome = self.inner.step(inner)?;
        self.observation = self.code.encode(self.inner.observation());
        Ok(outcome)
    }
}

struct ScrambledOracle {
    inner: Box<dyn Oracle>,
    code: Arc<Code>,
}

impl Oracle for ScrambledOracle {
    fn begin(&mut self, seed: u64) {
        self.inner.begin(seed);
    }

    fn act(&mut self, observation: &Bits) -> u16 {
        let inner = self.inner.act(&self.code.decode(observation));
        self.code.outer_action[usize::from(inner)]
    }

    fn see(&mut self, action: u16, outcome: &Outcome) {
        self.inner.see(self.code.inner_action[usize::from(action)], outcome);
    }
}

/// How a world treats its player, beyond its rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The world says that a seed brings nothing back, and nothing comes back: the same seed means another episode.
    pub unrepeated: bool,
    /// A reward comes so many steps after its own; what is still due comes with the last step.
    pub delay: u32,
}

/// The same game on these terms. They concern who plays it step by step: what is optimal and what is evaluated in lanes stay
/// as they are, since every episode pays in all what it paid before.
pub fn on_terms(game: Arc<dyn Game>, terms: Terms) -> Arc<dyn Game> {
    if terms == Terms::default() { game } else { Arc::new(OnTerms { game, terms }) }
}

struct OnTerms {
    game: Arc<dyn Game>,
    terms: Terms,
}

impl Game for OnTerms {
    fn shape(&self) -> &Shape {
        self.game.shape()
    }

    fn start(&self) -> Box<dyn Environment + Send> {
        Box::new(TermsEpisode {
            inner: self.game.start(),
            terms: self.terms,
            resets: 0,
            rewards: Vec::new(),
            is_awaited: false,
            late: Vec::new(),
        })
    }

    fn start_sliced(&self) -> Option<Box<dyn LaneEnvironment + Send>> {
        self.game.start_sliced()
    }

    fn without_terms(&self) -> Option<&dyn Game> {
        Some(self.game.as_ref())
    }

    fn optimum(&self) -> Value {
        self.game.optimum()
    }

    fn random(&self) -> Value {
        self.game.random()
    }

    fn steps(&self) -> Steps {
        self.game.steps()
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        self.game.oracle()
    }
}

struct TermsEpisode {
    inner: Box<dyn Environment + Send>,
    terms: Terms,
    resets: u64,
    /// All rewards of the episode so far.
    rewards: Vec<i32>,
    is_awaited: bool,
    late: Vec<Late>,
}

impl Environment for TermsEpisode {
    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.rewards.clear();
        self.late.clear();
        self.is_awaited = false;
        self.resets += 1;
        let seed = if self.terms.unrepeated { mix(seed ^ mix(self.resets)) } else { seed };
        self.inner.reset(seed)
    }

    fn observation(&self) -> &Bits {
        self.inner.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let outcome = self.inner.step(action)?;
        if self.terms.delay == 0 {
            return Ok(outcome);
        }
        self.late.clear();
        let place = self.rewards.len();
        self.rewards.push(outcome.reward);
        let delay = self.terms.delay as usize;
        let first = place.saturating_sub(delay);
        let is_due = |step: usize| outcome.done || delay <= place && step == first;
        let due = (first..place).filter(|step| is_due(*step));
        self.late.extend(due.map(|step| Late { step: step as u32, reward: self.rewards[step] }));
        self.is_awaited = !outcome.done;
        Ok(Outcome { reward: if outcome.done { outcome.reward } else { 0 }, ..outcome })
    }

    fn repeats(&self) -> bool {
        !self.terms.unrepeated
    }

    fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    fn late(&self) -> &[Late] {
        &self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::key_value::KeyValueRules;
    use crate::families::parity::ParityRules;
    use crate::rules::RuleGame;
    use std::collections::BTreeSet;

    fn store() -> Arc<dyn Game> {
        Arc::new(RuleGame::new(KeyValueRules { keys: 8, values: 4, writes: 4, distractors: 4 }))
    }

    #[test]
    fn noise_moves_both_values_toward_the_mean_of_the_replacements() {
        // A mean of 7 steps at 500 each replaces a fifth of 2500 and of 625.
        let noisy = with_noise(store(), 20).unwrap();
        assert_eq!(noisy.optimum(), Value::exact(Fixed::from_int(2_700)));
        assert_eq!(noisy.random(), Value::exact(Fixed::from_int(1_200)));
        let pure = with_noise(store(), 100).unwrap();
        assert_eq!(pure.optimum(), pure.random());
    }

    #[test]
    fn noise_is_refused_where_the_length_depends_on_actions_and_rewards_do_not_cancel() {
        struct Elastic(Arc<dyn Game>);
        impl Game for Elastic {
            fn shape(&self) -> &Shape {
                self.0.shape()
            }
            fn start(&self) -> Box<dyn Environment + Send> {
                self.0.start()
            }
            fn optimum(&self) -> Value {
                self.0.optimum()
            }
            fn random(&self) -> Value {
                self.0.random()
            }
            fn steps(&self) -> Steps {
                Steps::ByPolicy
            }
            fn oracle(&self) -> Box<dyn Oracle> {
                self.0.oracle()
            }
        }
        assert!(with_noise(Arc::new(Elastic(store())), 1).is_err());
        assert!(with_noise(Arc::new(Elastic(store())), 0).is_ok());
    }

    #[test]
    fn codes_come_back_and_fields_stay_together() {
        let shape = store().shape().clone();
        for level in [Scramble::Actions, Scramble::Fields, Scramble::Bits] {
            let code = Code::draw(&shape, level, 3);
            for value in 0..1u64 << shape.observation_bits {
                let inner = Bits([value, 0, 0, 0]);
                assert_eq!(code.decode(&code.encode(&inner)), inner, "{level:?}");
            }
            let actions: BTreeSet<u16> = code.inner_action.iter().copied().collect();
            assert_eq!(actions, (0..shape.actions).collect());
        }
        let fields = Code::draw(&shape, Scramble::Fields, 3);
        for field in &fields.fields {
            let inner = &fields.inner_bit[usize::from(field.low)..usize::from(field.low + field.width)];
            let first = Field { low: inner[0], width: field.width };
            assert!(shape.fields.contains(&first), "{field:?} shows {inner:?}");
            assert!(inner.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        }
    }

    /// Plays an episode with these draws: observations, all rewards step by step, and how late each came.
    fn played(world: &mut dyn Environment, seed: u64) -> (Vec<Bits>, Vec<i32>, Vec<usize>) {
        let mut draws = Prng::stream(seed, "terms");
        let (mut seen, mut rewards, mut delays) = (Vec::new(), Vec::new(), Vec::new());
        world.reset(seed).unwrap();
        loop {
            seen.push(*world.observation());
            let action = draws.below(u64::from(world.shape().actions)) as u16;
            let outcome = world.step(action).unwrap();
            let place = rewards.len();
            rewards.push(if world.is_awaited() { i32::MIN } else { outcome.reward });
            for late in world.late() {
                assert_eq!(rewards[late.step as usize], i32::MIN, "nothing is paid twice");
                rewards[late.step as usize] = late.reward;
                delays.push(place - late.step as usize);
            }
            if outcome.done {
                return (seen, rewards, delays);
            }
        }
    }

    #[test]
    fn late_rewards_are_those_of_the_game_each_once_and_after_as_many_steps() {
        let game = store();
        for delay in [1, 2, 5, 50] {
            let late = on_terms(store(), Terms { delay, ..Terms::default() });
            for seed in 0..20 {
                let (seen, rewards, _) = played(game.start().as_mut(), seed);
                let (seen_late, rewards_late, delays) = played(late.start().as_mut(), seed);
                assert_eq!((seen, &rewards), (seen_late, &rewards_late), "{delay}");
                // All but the last come late, and those at the end of the episode sooner than the others.
                assert_eq!(delays.len(), rewards.len() - 1);
                assert!(delays.iter().all(|steps| (1..=delay as usize).contains(steps)), "{delays:?}");
            }
        }
    }

    #[test]
    fn a_seed_that_promises_nothing_brings_another_episode() {
        let game = on_terms(store(), Terms { unrepeated: true, ..Terms::default() });
        let mut world = game.start();
        assert!(!world.repeats() && store().start().repeats());
        let episodes: BTreeSet<Vec<Bits>> = (0..20).map(|_| played(world.as_mut(), 7).0).collect();
        assert!(15 < episodes.len());
    }

    #[test]
    fn secrets_differ_and_some_flip_the_answer() {
        let parity = || -> Arc<dyn Game> { Arc::new(RuleGame::new(ParityRules { bits: 8, mask: 0xFF })) };
        let first_answers: BTreeSet<u16> = (0..20)
            .map(|secret| {
                let game = scrambled(parity(), Scramble::Actions, secret);
                let (mut world, mut oracle) = (game.start(), game.oracle());
                world.reset(1).unwrap();
                oracle.begin(1);
                oracle.act(world.observation())
            })
            .collect();
        assert_eq!(first_answers, BTreeSet::from([0, 1]));
        let order = |secret| Code::draw(store().shape(), Scramble::Bits, secret).inner_bit;
        assert_ne!(order(1), order(2));
        assert_eq!(order(1), order(1));
    }
}
