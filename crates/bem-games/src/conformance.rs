//! The kit that every game must pass: families, composed games and imported ones.
//!
//! It plays through the public contract only, with fixed seeds, so that a breach repeats. Where a game is small
//! enough, [`crate::enumerate`] judges its stated values exactly; here they are judged by play, within six
//! standard errors. Must not know any family. Clauses: GLE-1, VM-15, VM-17.

use crate::enumerate::{Exact, exact_values};
use crate::game::{Game, Oracle, Steps, Value};
use crate::rules::{RuleGame, Rules};
use bem_base::environment::{Bits, Environment, EnvironmentError, Forbidden, Outcome, Shape};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_base::limits::{ACTIONS_MAX, EPISODE_STEPS_MAX, OBSERVATION_BITS_MAX};
use bem_base::prng::Prng;

/// What a game did that it must not do, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Breach(String);

fn breach<T>(text: String) -> Result<T, Breach> {
    Err(Breach(text))
}

fn ensure(holds: bool, text: impl FnOnce() -> String) -> Result<(), Breach> {
    if holds { Ok(()) } else { breach(text()) }
}

/// Everything that can be checked by playing.
pub fn check(game: &dyn Game) -> Result<(), Breach> {
    check_shape(game.shape())?;
    check_refusals(game)?;
    for seed in [1, 2, 3, u64::MAX] {
        check_repeats(game, seed)?;
    }
    let (optimum, random) = (game.optimum(), game.random());
    ensure(random.mean <= optimum.mean, || {
        format!("random value {} is above the optimum {}", random.mean, optimum.mean)
    })?;
    let episodes = (2_000_000 / u64::from(game.shape().horizon)).clamp(32, 2_000);
    check_value(game, &mut OraclePolicy(game.oracle()), optimum, episodes, "the oracle")?;
    let forbidden = game.start().forbidden().to_vec();
    let mut chooser = RandomPolicy(Prng::stream(5, "conformance"), game.shape().actions, forbidden);
    check_value(game, &mut chooser, random, episodes, "random play")
}

/// Bounds, order and cover of the shape.
pub fn check_shape(shape: &Shape) -> Result<(), Breach> {
    let bits = usize::from(shape.observation_bits);
    ensure(bits <= OBSERVATION_BITS_MAX, || format!("{bits} observation bits"))?;
    ensure((1..=ACTIONS_MAX).contains(&usize::from(shape.actions)), || format!("{} actions", shape.actions))?;
    ensure((1..=EPISODE_STEPS_MAX).contains(&shape.horizon), || format!("horizon {}", shape.horizon))?;
    ensure(shape.reward_min <= shape.reward_max, || "empty range of rewards".to_string())?;
    ensure(shape.return_min <= shape.return_max, || "empty range of returns".to_string())?;
    let mut low = 0;
    for field in &shape.fields {
        ensure(field.low == low && 0 < field.width, || {
            format!("field {field:?} does not start at bit {low}")
        })?;
        low += field.width;
    }
    ensure(low == shape.observation_bits, || format!("fields end at bit {low} of {bits}"))
}

fn check_refusals(game: &dyn Game) -> Result<(), Breach> {
    let mut world = game.start();
    ensure(world.step(0) == Err(EnvironmentError::EpisodeOver), || {
        "a step before the first reset".to_string()
    })?;
    reset(&mut *world, 9)?;
    let before = *world.observation();
    for action in [game.shape().actions, u16::MAX] {
        let want = Err(EnvironmentError::ActionOutOfRange { action, last: game.shape().actions - 1 });
        let got = world.step(action);
        ensure(got == want, || format!("action {action} was not refused: {got:?}"))?;
    }
    ensure(*world.observation() == before, || "a refused action changed the observation".to_string())?;
    while !step(&mut *world, 0)?.done {}
    ensure(world.step(0) == Err(EnvironmentError::EpisodeOver), || "a step after the end".to_string())?;
    reset(&mut *world, 9)?;
    ensure(*world.observation() == before, || "a second reset shows something else".to_string())
}

/// Plays one seed twice, in a new world and in a used one, with the same random actions.
fn check_repeats(game: &dyn Game, seed: u64) -> Result<(), Breach> {
    let play = |world: &mut dyn Environment| -> Result<Vec<(Bits, Outcome)>, Breach> {
        let mut chooser = RandomPolicy(Prng::stream(seed, "repeat"), game.shape().actions, Vec::new());
        let mut seen = Vec::new();
        run(world, &mut chooser, seed, |observation, _, outcome| seen.push((*observation, *outcome)))?;
        Ok(seen)
    };
    let mut world = game.start();
    let first = play(&mut *world)?;
    let other_seed = seed.wrapping_add(1);
    run(
        &mut *world,
        &mut RandomPolicy(Prng::stream(8, "other"), game.shape().actions, Vec::new()),
        other_seed,
        |_, _, _| {},
    )?;
    ensure(first == play(&mut *world)?, || format!("seed {seed} in a used world plays differently"))?;
    ensure(first == play(&mut *game.start())?, || format!("seed {seed} in a new world plays differently"))
}

/// Chooses actions for the kit.
trait Policy {
    fn begin(&mut self, _seed: u64) {}
    fn act(&mut self, observation: &Bits) -> u16;
    fn see(&mut self, _action: u16, _outcome: &Outcome) {}
}

struct RandomPolicy(Prng, u16, Vec<Forbidden>);

impl Policy for RandomPolicy {
    fn act(&mut self, observation: &Bits) -> u16 {
        let RandomPolicy(prng, actions, forbidden) = self;
        if forbidden.is_empty() {
            return prng.below(u64::from(*actions)) as u16;
        }
        let allowed: Vec<u16> = Forbidden::left(forbidden, *observation, *actions).collect();
        allowed[prng.below(allowed.len() as u64) as usize]
    }
}

struct OraclePolicy(Box<dyn Oracle>);

impl Policy for OraclePolicy {
    fn begin(&mut self, seed: u64) {
        self.0.begin(seed);
    }

    fn act(&mut self, observation: &Bits) -> u16 {
        self.0.act(observation)
    }

    fn see(&mut self, action: u16, outcome: &Outcome) {
        self.0.see(action, outcome);
    }
}

fn reset(world: &mut dyn Environment, seed: u64) -> Result<(), Breach> {
    world.reset(seed).or_else(|error| breach(format!("reset with seed {seed}: {error}")))
}

fn step(world: &mut dyn Environment, action: u16) -> Result<Outcome, Breach> {
    world.step(action).or_else(|error| breach(format!("action {action}: {error}")))
}

/// Plays one episode, checks ranges, horizon and unused bits, and gives return and length.
fn run(
    world: &mut dyn Environment,
    policy: &mut dyn Policy,
    seed: u64,
    mut watch: impl FnMut(&Bits, u16, &Outcome),
) -> Result<(i64, u32), Breach> {
    reset(world, seed)?;
    policy.begin(seed);
    let shape = world.shape().clone();
    let (mut sum, mut length) = (0, 0);
    loop {
        let observation = *world.observation();
        ensure(unused_bits_are_zero(&observation, usize::from(shape.observation_bits)), || {
            format!("seed {seed}, step {length}: a bit past the declared width is set")
        })?;
        let action = policy.act(&observation);
        let outcome = step(world, action)?;
        policy.see(action, &outcome);
        watch(&observation, action, &outcome);
        ensure((shape.reward_min..=shape.reward_max).contains(&outcome.reward), || {
            format!("seed {seed}, step {length}: reward {} is out of range", outcome.reward)
        })?;
        sum += i64::from(outcome.reward);
        length += 1;
        ensure(length <= shape.horizon, || format!("seed {seed}: longer than the horizon"))?;
        if outcome.done {
            break;
        }
    }
    ensure((shape.return_min..=shape.return_max).contains(&sum), || {
        format!("seed {seed}: return {sum} is out of range")
    })?;
    Ok((sum, length))
}

fn unused_bits_are_zero(observation: &Bits, width: usize) -> bool {
    observation.0.iter().enumerate().all(|(index, word)| {
        let used = width.saturating_sub(64 * index).min(64) as u32;
        word.checked_shr(used).unwrap_or(0) == 0
    })
}

/// Compares the mean return over many episodes with the stated value, and the mean length where it is stated.
fn check_value(
    game: &dyn Game,
    policy: &mut dyn Policy,
    value: Value,
    episodes: u64,
    who: &str,
) -> Result<(), Breach> {
    let mut world = game.start();
    let mut returns = Sample::default();
    let mut lengths = Sample::default();
    for episode in 0..episodes {
        let seed = Prng::stream(episode, "conformance/episode").next_u64();
        let (sum, length) = run(&mut *world, policy, seed, |_, _, _| {})?;
        returns.add(i128::from(sum));
        lengths.add(i128::from(length));
    }
    ensure(returns.fits(value), || {
        let got = returns.mean();
        format!("{who} reaches {got} over {episodes} episodes, stated is {}", value.mean)
    })?;
    match game.steps() {
        Steps::Drawn(mean) => ensure(lengths.fits(Value::exact(mean)), || {
            format!("episodes of {who} take {} steps, stated are {mean}", lengths.mean())
        }),
        Steps::ByPolicy => Ok(()),
    }
}

/// Sums over sampled returns, from which mean and error are computed.
#[derive(Default)]
struct Sample {
    count: i128,
    sum: i128,
    squares: i128,
}

impl Sample {
    fn add(&mut self, value: i128) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean(&self) -> Fixed {
        Fixed::from_raw(((self.sum << FRACTION_BITS).div_euclid(self.count)) as i64)
    }

    /// Within six standard errors of the stated mean; exactly equal where nothing varies.
    fn fits(&self, value: Value) -> bool {
        let apart =
            ((self.sum << FRACTION_BITS) - self.count * i128::from(value.mean.to_raw())).unsigned_abs();
        let stated_error = (self.count * i128::from(value.standard_error.to_raw())) as u128;
        // Six standard errors of the sum: 36 * count * variance, and count * variance = squares - sum^2 / count.
        let spread = 36 * (self.squares - self.sum * self.sum / self.count);
        let allowed = (spread.unsigned_abs() << 40).isqrt() << (FRACTION_BITS - 20);
        // One unit in the last place per episode: stated values are rounded down.
        apart <= allowed + 6 * stated_error + 8 * self.count as u128
    }
}

/// For games made of rules: enumeration over all draws, histories and actions agrees with the stated values.
///
/// The stated optimum must equal what the best policy over histories gets, so none beats it.
pub fn check_exactly<R: Rules>(game: &RuleGame<R>, work_max: u64) -> Result<Exact, Breach> {
    let Some(exact) = exact_values(game.rules(), work_max) else {
        return breach(format!("the game is too large to enumerate with {work_max} plays"));
    };
    let equal = |stated: Fixed, found: Fixed| stated.to_raw().abs_diff(found.to_raw()) <= 64;
    let (optimum, random) = (exact.optimum.to_fixed_floor(), exact.random.to_fixed_floor());
    ensure(equal(game.optimum().mean, optimum), || {
        format!("enumeration finds the optimum {optimum}, stated is {}", game.optimum().mean)
    })?;
    ensure(equal(game.random().mean, random), || {
        format!("enumeration finds the random value {random}, stated is {}", game.random().mean)
    })?;
    if let Steps::Drawn(mean) = game.steps() {
        let steps = exact.steps.to_fixed_floor();
        ensure(equal(mean, steps), || format!("enumeration finds {steps} steps, stated are {mean}"))?;
    }
    Ok(exact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::parity::ParityRules;
    use bem_base::environment::Field;

    /// What is wrong with a game; `Nothing` shows that the frame around it is sound.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Flaw {
        Nothing,
        Optimum,
        Random,
        Steps,
        Gap,
        Reward,
        Return,
        Horizon,
        ActionTaken,
        StepAfterEnd,
        Seed,
        StrayBit,
    }

    struct Flawed {
        inner: RuleGame<ParityRules>,
        shape: Shape,
        flaw: Flaw,
    }

    fn flawed(flaw: Flaw) -> Flawed {
        let inner = RuleGame::new(ParityRules { bits: 3, mask: 7 });
        let mut shape = inner.shape().clone();
        match flaw {
            Flaw::Gap => shape.fields = vec![Field { low: 0, width: 1 }, Field { low: 2, width: 1 }],
            Flaw::Return => shape.return_max = 999,
            _ => {}
        }
        Flawed { inner, shape, flaw }
    }

    impl Game for Flawed {
        fn shape(&self) -> &Shape {
            &self.shape
        }

        fn start(&self) -> Box<dyn Environment + Send> {
            Box::new(FlawedEpisode {
                inner: self.inner.start(),
                shape: self.shape.clone(),
                flaw: self.flaw,
                observation: Bits::ZERO,
                resets: 0,
                extra: 0,
            })
        }

        fn optimum(&self) -> Value {
            Value::exact(Fixed::from_int(if self.flaw == Flaw::Optimum { 999 } else { 1_000 }))
        }

        fn random(&self) -> Value {
            Value::exact(Fixed::from_int(if self.flaw == Flaw::Random { 420 } else { 500 }))
        }

        fn steps(&self) -> Steps {
            Steps::Drawn(Fixed::from_int(if self.flaw == Flaw::Steps { 2 } else { 1 }))
        }

        fn oracle(&self) -> Box<dyn Oracle> {
            self.inner.oracle()
        }
    }

    struct FlawedEpisode {
        inner: Box<dyn Environment + Send>,
        shape: Shape,
        flaw: Flaw,
        observation: Bits,
        resets: u64,
        extra: u32,
    }

    impl Environment for FlawedEpisode {
        fn shape(&self) -> &Shape {
            &self.shape
        }

        fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
            self.resets += 1;
            self.extra = 0;
            let drift = if self.flaw == Flaw::Seed { self.resets } else { 0 };
            self.inner.reset(seed.wrapping_add(drift))?;
            self.observation = *self.inner.observation();
            self.observation.set(3, self.flaw == Flaw::StrayBit);
            Ok(())
        }

        fn observation(&self) -> &Bits {
            &self.observation
        }

        fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
            if self.flaw == Flaw::ActionTaken && 1 < action {
                return self.inner.step(0);
            }
            if self.flaw == Flaw::Horizon && self.extra == 0 && action < 2 && 0 < self.resets {
                self.extra += 1;
                return Ok(Outcome { reward: 0, done: false, bad: false });
            }
            match self.inner.step(action) {
                Err(EnvironmentError::EpisodeOver) if self.flaw == Flaw::StepAfterEnd && 0 < self.resets => {
                    Ok(Outcome { reward: 0, done: true, bad: false })
                }
                Ok(outcome) if self.flaw == Flaw::Reward => {
                    Ok(Outcome { reward: outcome.reward + 1, ..outcome })
                }
                other => other,
            }
        }
    }

    #[test]
    fn the_kit_finds_every_flaw_and_nothing_where_there_is_none() {
        check(&flawed(Flaw::Nothing)).unwrap();
        for (flaw, want) in [
            (Flaw::Optimum, "the oracle reaches 1000.000000"),
            (Flaw::Random, "random play reaches"),
            (Flaw::Steps, "steps, stated are 2.000000"),
            (Flaw::Gap, "does not start at bit 1"),
            (Flaw::Reward, "reward 1001 is out of range"),
            (Flaw::Return, "return 1000 is out of range"),
            (Flaw::Horizon, "longer than the horizon"),
            (Flaw::ActionTaken, "action 2 was not refused"),
            (Flaw::StepAfterEnd, "a step after the end"),
            (Flaw::Seed, "shows something else"),
            (Flaw::StrayBit, "a bit past the declared width is set"),
        ] {
            let breach = check(&flawed(flaw)).expect_err("a flaw must be found");
            assert!(breach.to_string().contains(want), "{flaw:?}: {breach}");
        }
    }
}
