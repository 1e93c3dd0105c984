//! The same drawn worlds, served: decisions are asked for now, each reward comes up to a thousand decisions later, and one in
//! twenty never comes.
//!
//! The inputs go to the runtime in the order in which a server would take them; a round takes effect before the next decision.
//! What is scored is what the world paid, whether the service was told or not. Clauses: VM-13, VM-16; decision D-110.

use super::{Played, beside, cpu_seconds};
use anyhow::{Context as _, Result, anyhow, bail};
use bem_base::environment::{Bits, Environment as _, Outcome};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_games::game::Game;
use bem_machine::config::GenesisConfig;
use bem_runtime::input::{Input, WorldIndex, WorldSpec};
use bem_runtime::service::{Effect, Refusal, Service, ServiceConfig};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A reward comes at most this many decisions after its own.
const DELAY_MAX: u64 = 1_000;
/// One in so many rewards never comes.
const LOST_ONE_IN: u64 = 20;
/// Decisions after which a reward is too late.
const EXPIRE_AFTER: u32 = 2_048;

/// A service with one world, and the rewards that are on their way to it.
struct Served {
    service: Service,
    world: WorldIndex,
    decisions: u64,
    /// By the decision before which they come.
    coming: BTreeMap<u64, Vec<(u64, Outcome)>>,
    luck: Prng,
}

fn refused(refusal: Refusal) -> anyhow::Error {
    anyhow!("{}: {}", refusal.field, refusal.message)
}

impl Served {
    fn open(game: &dyn Game, seed: u64, config: &Arc<GenesisConfig>) -> Result<Served> {
        let mut service = Service::new(ServiceConfig { seed, parameters: Arc::clone(config) });
        // What a client can say: widths, bounds of a reward and of a return, as `bem solve` is told them.
        let shape = game.shape().clone();
        let spec = WorldSpec {
            name: "drawn".to_string(),
            shape,
            min_propensity: Fixed::ZERO,
            expire_after: EXPIRE_AFTER,
            forbidden: Vec::new(),
            note: String::new(),
            floor: None,
        };
        let input = service.create(spec).map_err(refused)?.context("the world is new")?;
        let Effect::Opened(world, _) = apply(&mut service, &input)? else { bail!("a world is opened") };
        let luck = Prng::stream(seed, "table/generated/served");
        Ok(Served { service, world, decisions: 0, coming: BTreeMap::new(), luck })
    }

    /// Asks for a decision; rewards that come before it are handed in first, and a round that is due is worked on.
    fn decide(&mut self, seen: &Bits, episode: &str) -> Result<(u64, u16)> {
        let later = self.coming.split_off(&(self.decisions + 1));
        for (decision, outcome) in core::mem::replace(&mut self.coming, later).into_values().flatten() {
            // What came too late is refused, as a server would.
            if let Ok(Some(input)) = self.service.reward(self.world, decision, outcome) {
                apply(&mut self.service, &input)?;
            }
        }
        if let Some(input) = self.service.due_round() {
            let Effect::Began(job) = apply(&mut self.service, &input)? else { bail!("a round begins") };
            let publish = Input::Publish { world: self.world };
            self.service.apply(&publish, Some(job.work())).map_err(|reason| anyhow!("{reason}"))?;
        }
        let input = self.service.ask(self.world, *seen, episode).map_err(refused)?;
        let Effect::Decided(_, choice) = apply(&mut self.service, &input)? else { bail!("it decides") };
        self.decisions += 1;
        Ok((self.service.last(), choice.action))
    }

    /// A reward is on its way, or lost.
    fn pay(&mut self, decision: u64, outcome: Outcome) {
        let delay = self.luck.below(DELAY_MAX + 1);
        if self.luck.below(LOST_ONE_IN) != 0 {
            self.coming.entry(self.decisions + delay).or_default().push((decision, outcome));
        }
    }
}

fn apply(service: &mut Service, input: &Input) -> Result<Effect> {
    service.apply(input, None).map_err(|reason| anyhow!("{reason}"))
}

/// Serves a world for so many steps.
pub fn serve(game: &dyn Game, seed: u64, steps: u64, config: &Arc<GenesisConfig>) -> Result<Played> {
    let started = cpu_seconds();
    let mut served = Served::open(game, seed, config)?;
    let mut world = beside(game, steps);
    let mut seeds = Prng::stream(seed, "table/generated/episodes");
    let horizon = game.shape().horizon;
    let (mut taken, mut episodes) = (0, 0u64);
    while taken < steps {
        world.reset(seeds.next_u64() >> 2)?;
        let name = if 1 < horizon { format!("episode-{episodes}") } else { String::new() };
        episodes += 1;
        loop {
            let (decision, action) = served.decide(world.observation(), &name)?;
            let outcome = world.step(action)?;
            served.pay(decision, outcome);
            taken += 1;
            if outcome.done {
                break;
            }
        }
    }
    Ok(Played::of(&world, cpu_seconds() - started))
}
