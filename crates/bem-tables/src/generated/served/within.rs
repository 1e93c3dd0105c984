//! The door of the runtime itself: inputs in the order in which a server would take them, and a round that is due takes effect
//! before the next decision.

use super::{Door, EXPIRE_AFTER, PlayAt, WORLD};
use crate::generated::Played;
use anyhow::{Context as _, Result, anyhow, bail};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_machine::config::GenesisConfig;
use bem_runtime::input::{Input, WorldIndex, WorldSpec};
use bem_runtime::service::{Effect, Refusal, Service, ServiceConfig};
use std::sync::Arc;

/// A service with one world.
struct Within {
    service: Service,
    world: WorldIndex,
}

fn refused(refusal: Refusal) -> anyhow::Error {
    anyhow!("{}: {}", refusal.field, refusal.message)
}

fn apply(service: &mut Service, input: &Input) -> Result<Effect> {
    service.apply(input, None).map_err(|reason| anyhow!("{reason}"))
}

/// A new service with a world of this shape, while something plays it.
pub fn open(shape: &Shape, seed: u64, config: &Arc<GenesisConfig>, play: PlayAt<'_>) -> Result<Played> {
    let mut service = Service::new(ServiceConfig { seed, parameters: Arc::clone(config) });
    // What a client can say: widths, bounds of a reward and of a return, as `bem solve` is told them.
    let spec = WorldSpec {
        name: WORLD.to_string(),
        shape: shape.clone(),
        min_propensity: Fixed::ZERO,
        expire_after: EXPIRE_AFTER,
        forbidden: Vec::new(),
        note: String::new(),
        floor: None,
    };
    let input = service.create(spec).map_err(refused)?.context("the world is new")?;
    let Effect::Opened(world, _) = apply(&mut service, &input)? else { bail!("a world is opened") };
    play(&mut Within { service, world })
}

impl Door for Within {
    fn decide(&mut self, seen: &Bits, episode: &str) -> Result<(u64, u16)> {
        if let Some(input) = self.service.due_round() {
            let Effect::Began(job) = apply(&mut self.service, &input)? else { bail!("a round begins") };
            let publish = Input::Publish { world: self.world };
            self.service.apply(&publish, Some(job.work())).map_err(|reason| anyhow!("{reason}"))?;
        }
        let input = self.service.ask(self.world, *seen, episode).map_err(refused)?;
        let Effect::Decided(_, choice) = apply(&mut self.service, &input)? else { bail!("it decides") };
        Ok((self.service.last(), choice.action))
    }

    fn reward(&mut self, decision: u64, outcome: Outcome) -> Result<()> {
        // What came too late is refused, as a server would.
        if let Ok(Some(input)) = self.service.reward(self.world, decision, outcome) {
            apply(&mut self.service, &input)?;
        }
        Ok(())
    }
}
