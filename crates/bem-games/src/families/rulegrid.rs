//! Walk a grid from waypoint to waypoint, past hazards that drift.
//!
//! The five bands are the difficulties of the commitment curriculum. The grid is too large for an exact optimum:
//! what is stated is the mean return of the best policy known here that sees what a player sees
//! ([`crate::rulegrid::reference`]), with its standard error; random play is measured the same way. Both are the same for all
//! instances, are measured over about as many ticks whatever the length of an episode, and once in a process. Clauses: GLE-1,
//! CUR-3.

use crate::game::{Family, Game, GameError, Oracle, Parameter, Range, Settings, Steps, Value};
use crate::rulegrid::config::{DIFFICULTY_MAX, GridConfig};
use crate::rulegrid::reference;
use crate::rulegrid::view::View;
use crate::rulegrid::world::{ACTIONS, DoneCause, World};
use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::{Prng, mix};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// The family `rulegrid`.
pub struct RuleGrid;

/// Ticks behind each stated value, and episodes at least.
const MEASURED_TICKS: u64 = 1 << 17;
const MEASURED_EPISODES_MIN: u64 = 1_000;
/// Ticks of an episode at most.
const STEPS_MAX: i64 = 200;

/// Resources of a grid at most.
const RESOURCES_MAX: i64 = 24;

/// What a value depends on: band, ticks of an episode, resources, and whether it is that of random play.
type Measured = (usize, u32, u32, bool);

/// Values of the reference and of random play, once somebody has asked.
static VALUES: Mutex<BTreeMap<Measured, Arc<OnceLock<Value>>>> = Mutex::new(BTreeMap::new());

impl Family for RuleGrid {
    fn name(&self) -> &'static str {
        "rulegrid"
    }

    fn about(&self) -> &'static str {
        "Visit waypoints in order on a grid with drifting hazards."
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter {
                name: "band",
                about: "difficulty, from the easy grid to the target of the curriculum",
                range: Range::Number { min: 0, max: DIFFICULTY_MAX as i64, default: 0 },
            },
            Parameter {
                name: "steps",
                about: "ticks of an episode",
                range: Range::Number { min: 1, max: STEPS_MAX, default: STEPS_MAX },
            },
            Parameter {
                name: "resources",
                about: "resources on the grid; 0: as many as the band has",
                range: Range::Number { min: 0, max: RESOURCES_MAX, default: 0 },
            },
        ];
        PARAMETERS
    }

    fn build(&self, settings: &Settings, instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let band = settings.number("band") as usize;
        let mut config = GridConfig::of_difficulty(band);
        config.steps = settings.number("steps") as u32;
        if 0 < settings.number("resources") {
            config.resources = settings.number("resources") as u32;
        }
        config.check().map_err(|error| GameError::Impossible(error.to_string()))?;
        let (visit, completion) = config.waypoint_rewards;
        let reward_max = visit.max(completion) + config.resource_benefit;
        let steps = i64::from(config.steps);
        let fields = View::fields();
        let shape = Shape {
            observation_bits: fields.iter().map(|field| field.width).sum(),
            actions: ACTIONS,
            horizon: config.steps,
            reward_min: -config.hazard_harm,
            reward_max,
            return_min: -i64::from(config.hazard_harm) * steps,
            return_max: i64::from(reward_max) * steps,
            fields,
        };
        Ok(Arc::new(Grid { band, config, shape, instance_seed }))
    }
}

/// One game of the family: the band, the grid it makes, and the seed of its hidden choices.
struct Grid {
    band: usize,
    config: GridConfig,
    shape: Shape,
    instance_seed: u64,
}

/// Episodes differ by their own seed and by the instance's.
fn world_seed(instance_seed: u64, seed: u64) -> u64 {
    mix(instance_seed ^ mix(seed))
}

impl Grid {
    /// Where the value of a policy is kept: that of the reference, or that of random play.
    fn kept(&self, is_random: bool) -> Arc<OnceLock<Value>> {
        let measured = (self.band, self.config.steps, self.config.resources, is_random);
        let mut values = VALUES.lock().expect("nobody panics while the values are held");
        Arc::clone(values.entry(measured).or_default())
    }

    /// Mean return and standard error of a policy, over episodes that no instance has for its own.
    fn measure(&self, mut policy: impl FnMut(&World) -> u16) -> Value {
        let mut world = World::new(self.config.clone());
        let (mut sum, mut squares) = (0i128, 0i128);
        let episodes = (MEASURED_TICKS / u64::from(self.config.steps)).max(MEASURED_EPISODES_MIN);
        for episode in 0..episodes {
            world.reset(mix(!episode), 0);
            let mut total = 0i128;
            loop {
                let action = policy(&world);
                let tick = world.step(action);
                total += i128::from(tick.reward);
                if tick.done != DoneCause::Running {
                    break;
                }
            }
            sum += total;
            squares += total * total;
        }
        let count = i128::from(episodes);
        // Variance of the mean, with 32 fractional bits, so that its root has 16.
        let variance = ((squares * count - sum * sum) << 32) / (count * count * (count - 1));
        let error = (variance.unsigned_abs().isqrt() << 16) as i64;
        Value { mean: Fixed::from_ratio(sum as i64, episodes as i64), standard_error: Fixed::from_raw(error) }
    }
}

impl Game for Grid {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn start(&self) -> Box<dyn Environment + Send> {
        Box::new(Running {
            world: World::new(self.config.clone()),
            shape: self.shape.clone(),
            instance_seed: self.instance_seed,
            observation: Bits::ZERO,
            over: true,
        })
    }

    fn optimum(&self) -> Value {
        *self.kept(false).get_or_init(|| self.measure(reference::act))
    }

    fn random(&self) -> Value {
        let mut prng = Prng::stream(0, "rulegrid/random");
        *self.kept(true).get_or_init(|| self.measure(|_| prng.below(u64::from(ACTIONS)) as u16))
    }

    fn steps(&self) -> Steps {
        Steps::ByPolicy
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        let world = World::new(self.config.clone());
        Box::new(Walker { world, instance_seed: self.instance_seed })
    }
}

/// The running world: the grid as it is now, and what is seen of it.
struct Running {
    world: World,
    shape: Shape,
    instance_seed: u64,
    observation: Bits,
    over: bool,
}

impl Environment for Running {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.world.reset(world_seed(self.instance_seed, seed), 0);
        self.observation = View::of(&self.world).to_bits();
        self.over = false;
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        if self.over {
            return Err(EnvironmentError::EpisodeOver);
        }
        if ACTIONS <= action {
            return Err(EnvironmentError::ActionOutOfRange { action, last: ACTIONS - 1 });
        }
        let tick = self.world.step(action);
        self.observation = View::of(&self.world).to_bits();
        self.over = tick.done != DoneCause::Running;
        Ok(Outcome { reward: tick.reward, done: self.over, bad: tick.harm != 0 })
    }
}

/// Plays a world of its own in step with the one that is watched.
struct Walker {
    world: World,
    instance_seed: u64,
}

impl Oracle for Walker {
    fn begin(&mut self, seed: u64) {
        self.world.reset(world_seed(self.instance_seed, seed), 0);
    }

    fn act(&mut self, _observation: &Bits) -> u16 {
        reference::act(&self.world)
    }

    fn see(&mut self, action: u16, _outcome: &Outcome) {
        self.world.step(action);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::{NoPrograms, TaskTree};

    fn built(text: &str, seed: u64) -> Arc<dyn Game> {
        TaskTree::parse(text).unwrap().build(seed, &NoPrograms).unwrap()
    }

    fn grid(band: usize, steps: u32) -> Arc<dyn Game> {
        built(&format!("rulegrid{{band={band},steps={steps}}}"), 1)
    }

    /// Mean return over other episodes than those behind the stated value, as the raw number of a [`Fixed`].
    fn mean_of(band: usize, steps: u32, episodes: u64, mut act: impl FnMut(&World) -> u16) -> i64 {
        let config = GridConfig { steps, ..GridConfig::of_difficulty(band) };
        let mut world = World::new(config);
        let total = (0..episodes).map(|episode| {
            world.reset(mix(episode ^ 0x5EED << 40), 0);
            let mut total = 0;
            loop {
                let tick = world.step(act(&world.clone()));
                total += i64::from(tick.reward);
                if tick.done != DoneCause::Running {
                    break total;
                }
            }
        });
        (total.sum::<i64>() << 32) / i64::try_from(episodes).unwrap()
    }

    fn raw(value: Value) -> (i64, i64) {
        (value.mean.to_raw(), value.standard_error.to_raw())
    }

    #[test]
    fn stated_values_are_known_to_a_few_percent_and_hold_on_other_episodes() {
        for (band, steps) in [(0, 1), (2, 2), (4, 4)] {
            let game = grid(band, steps);
            let ((best, error), (random, _)) = (raw(game.optimum()), raw(game.random()));
            assert!(random < best && 100 * error < 3 * (best - random), "{band}/{steps}: {best} +- {error}");
            let again = mean_of(band, steps, 30_000 / u64::from(steps), reference::act);
            assert!((again - best).abs() < 10 * error, "{band}/{steps}: {again}, {best} +- {error}");
        }
    }

    #[test]
    fn all_instances_have_the_same_values() {
        let of = |seed| {
            let game = built("rulegrid{band=1,steps=3}", seed);
            (game.optimum(), game.random())
        };
        assert_eq!(of(1), of(2));
    }

    /// The control: whoever walks in the direction of the waypoint and leaves resources where they lie earns less.
    #[test]
    fn the_reference_takes_resources_on_its_way_and_earns_more_than_who_does_not() {
        for (band, steps) in [(0, 2), (3, 1), (4, 6), (4, 40)] {
            let plain = |world: &World| match View::of(world).direction {
                (1, _) => 3,
                (-1, _) => 2,
                (_, 1) => 1,
                (_, -1) => 0,
                _ => 4,
            };
            let episodes = 20_000 / u64::from(steps);
            let (best, other) =
                (mean_of(band, steps, episodes, reference::act), mean_of(band, steps, episodes, plain));
            assert!(other < best, "{band}/{steps}: {other} against {best}");
        }
    }
}
