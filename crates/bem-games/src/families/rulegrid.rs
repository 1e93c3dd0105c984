//! Walk a grid from waypoint to waypoint, past hazards that drift.
//!
//! The five bands are the difficulties of the commitment curriculum. The grid is too large for an exact optimum:
//! what is stated is the mean return of the best policy known here, which walks the shortest way around the
//! hazards, with its standard error; random play is measured the same way. Clauses: GLE-1, CUR-3.

use crate::game::{Family, Game, GameError, Oracle, Parameter, Range, Settings, Steps, Value};
use crate::rulegrid::config::{DIFFICULTY_MAX, GridConfig};
use crate::rulegrid::view::View;
use crate::rulegrid::world::{ACTIONS, Cell, DoneCause, World};
use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::{Prng, mix};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// The family `rulegrid`.
pub struct RuleGrid;

/// Episodes behind each stated value.
const MEASURED_EPISODES: u64 = 500;

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
                range: Range::Number { min: 1, max: 200, default: 200 },
            },
        ];
        PARAMETERS
    }

    fn build(&self, settings: &Settings, instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let mut config = GridConfig::of_difficulty(settings.number("band") as usize);
        config.steps = settings.number("steps") as u32;
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
        Ok(Arc::new(Grid { config, shape, instance_seed, optimum: OnceLock::new(), random: OnceLock::new() }))
    }
}

struct Grid {
    config: GridConfig,
    shape: Shape,
    instance_seed: u64,
    optimum: OnceLock<Value>,
    random: OnceLock<Value>,
}

/// Episodes differ by their own seed and by the instance's.
fn world_seed(instance_seed: u64, seed: u64) -> u64 {
    mix(instance_seed ^ mix(seed))
}

impl Grid {
    /// Mean return and standard error of a policy.
    fn measure(&self, mut policy: impl FnMut(&World) -> u16) -> Value {
        let mut world = World::new(self.config.clone());
        let (mut sum, mut squares) = (0i128, 0i128);
        for episode in 0..MEASURED_EPISODES {
            world.reset(world_seed(self.instance_seed, mix(!episode)), 0);
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
        let count = i128::from(MEASURED_EPISODES);
        // Variance of the mean, with 32 fractional bits, so that its root has 16.
        let variance = ((squares * count - sum * sum) << 32) / (count * count * (count - 1));
        let error = (variance.unsigned_abs().isqrt() << 16) as i64;
        Value {
            mean: Fixed::from_ratio(sum as i64, MEASURED_EPISODES as i64),
            standard_error: Fixed::from_raw(error),
        }
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
        *self.optimum.get_or_init(|| self.measure(shortest_way))
    }

    fn random(&self) -> Value {
        let mut prng = Prng::stream(self.instance_seed, "rulegrid/random");
        *self.random.get_or_init(|| self.measure(|_| prng.below(u64::from(ACTIONS)) as u16))
    }

    fn steps(&self) -> Steps {
        Steps::ByPolicy
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        let world = World::new(self.config.clone());
        Box::new(Walker { world, instance_seed: self.instance_seed })
    }
}

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
        shortest_way(&self.world)
    }

    fn see(&mut self, action: u16, _outcome: &Outcome) {
        self.world.step(action);
    }
}

/// The first move of a shortest way to the pending waypoint that avoids hazards; breadth first.
fn shortest_way(world: &World) -> u16 {
    let Some(target) = world.pending() else { return 4 };
    let size = world.config().size as usize;
    let index = |cell: Cell| cell.y as usize * size + cell.x as usize;
    let mut seen = vec![false; size * size];
    let mut queue = VecDeque::new();
    seen[index(world.agent())] = true;
    for action in 0..4 {
        queue.push_back((world.agent().moved(action), action));
    }
    while let Some((cell, first)) = queue.pop_front() {
        if world.is_wall(cell) || seen[index(cell)] || world.hazards().contains(&cell) {
            continue;
        }
        seen[index(cell)] = true;
        if cell == target {
            return first;
        }
        for action in 0..4 {
            queue.push_back((cell.moved(action), first));
        }
    }
    4
}
