//! The same drawn worlds, served: decisions are asked for now, each reward comes up to a thousand decisions later, and one in
//! twenty never comes.
//!
//! A player asks at a door: that of the runtime itself, where a round takes effect before the next decision, or one that is
//! opened elsewhere, such as that of a server over HTTP, which learns on a thread of its own. What is scored is what the world
//! paid, whether the service was told or not. Must not know networks or threads. Clauses: VM-13, VM-16; decision D-110.

mod within;

pub use within::open as open_within;

use super::Played;
use crate::Edges;
use crate::beside::Beside;
use anyhow::Result;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::prng::Prng;
use bem_games::game::Game;
use bem_machine::config::GenesisConfig;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A reward comes at most this many decisions after its own.
const DELAY_MAX: u64 = 1_000;
/// One in so many rewards never comes.
const LOST_ONE_IN: u64 = 20;
/// Decisions after which a reward is too late.
pub const EXPIRE_AFTER: u32 = 2_048;
/// The name of the world.
pub const WORLD: &str = "drawn";

/// Where decisions are asked for and rewards are handed in.
pub trait Door {
    /// The number of the decision, and what is to be done.
    fn decide(&mut self, seen: &Bits, episode: &str) -> Result<(u64, u16)>;
    /// A reward, which is refused if it comes too late.
    fn reward(&mut self, decision: u64, outcome: Outcome) -> Result<()>;
}

/// Plays a world through a door.
pub type PlayAt<'a> = &'a mut dyn FnMut(&mut dyn Door) -> Result<Played>;

/// Serves a world of a shape, with a seed, while something plays at its door.
pub type OpenDoor = fn(&Shape, u64, &Arc<GenesisConfig>, PlayAt<'_>) -> Result<Played>;

/// A door, and the rewards that are on their way to it.
struct Served<'a> {
    door: &'a mut dyn Door,
    decisions: u64,
    /// By the decision before which they come.
    coming: BTreeMap<u64, Vec<(u64, Outcome)>>,
    luck: Prng,
}

impl Served<'_> {
    /// Asks for a decision; rewards that come before it are handed in first.
    fn decide(&mut self, seen: &Bits, episode: &str) -> Result<(u64, u16)> {
        let later = self.coming.split_off(&(self.decisions + 1));
        for (decision, outcome) in core::mem::replace(&mut self.coming, later).into_values().flatten() {
            self.door.reward(decision, outcome)?;
        }
        self.decisions += 1;
        self.door.decide(seen, episode)
    }

    /// A reward is on its way, or lost.
    fn pay(&mut self, decision: u64, outcome: Outcome) {
        let delay = self.luck.below(DELAY_MAX + 1);
        if self.luck.below(LOST_ONE_IN) != 0 {
            self.coming.entry(self.decisions + delay).or_default().push((decision, outcome));
        }
    }
}

/// Serves a world for so many steps.
pub(super) fn serve(
    game: &Arc<dyn Game>,
    seed: u64,
    steps: u64,
    config: &Arc<GenesisConfig>,
    open: OpenDoor,
    edges: &Edges,
) -> Result<Played> {
    open(game.shape(), seed, config, &mut |door| play(game, seed, steps, door, edges))
}

/// Plays a world through a door.
fn play(game: &Arc<dyn Game>, seed: u64, steps: u64, door: &mut dyn Door, edges: &Edges) -> Result<Played> {
    let started = (edges.cpu_seconds)();
    let luck = Prng::stream(seed, "table/generated/served");
    let mut served = Served { door, decisions: 0, coming: BTreeMap::new(), luck };
    let beside = Beside::new(Arc::clone(game));
    let mut world = beside.start();
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
    Played::of(&beside, (edges.cpu_seconds)() - started)
}
