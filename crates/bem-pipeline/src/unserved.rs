//! Settings whose lesson failed, as the pool sees them when it settles. Clauses: PIPE-3; decision D-334.

use crate::PipelineError;
use crate::domain::domain_of;
use crate::pipeline::Pipeline;
use crate::pool::{Settled, Unserved};
use bem_base::digest::hash_parts;
use bem_base::fixed::Fixed;
use bem_engine::worlds::{World, Worlds};
use bem_games::game::GameError;

impl Pipeline {
    /// As few experts stay as serve all settings, and settings without one get what serves them.
    pub(crate) fn settle(&mut self) -> Result<(), PipelineError> {
        let unserved = self.unserved()?;
        let Settled { replaced, blocked } = self.pool.settle(unserved)?;
        self.pool_tally.replaced += replaced as u32;
        self.pool_tally.blocked += blocked as u32;
        Ok(())
    }

    /// The settings of the main machine that have no expert.
    fn unserved(&self) -> Result<Vec<Unserved>, PipelineError> {
        let mut unserved = Vec::new();
        for volume in &self.volumes {
            for track in volume.climb.tracks() {
                let domain = domain_of(&track.family).unwrap_or_default();
                for task in track.tasks().iter().filter(|task| self.pool.route(task).is_none()) {
                    let seed = self.unserved_seed(task);
                    let World::Game(game) = volume.distilled.open(task, seed)? else {
                        return Err(GameError::Impossible("a setting without a game".to_string()).into());
                    };
                    let instance = volume.distilled.instance(task, seed);
                    let other = self.specialist_on(task, game.as_ref(), (seed, instance))?.max(Fixed::ZERO);
                    let (task, domain) = (task.clone(), domain.to_string());
                    unserved.push(Unserved { task, domain, game, seed, instance, other });
                }
            }
        }
        Ok(unserved)
    }

    /// The seed of the episodes by which an expert is chosen for a setting without one: none of its lesson, none of the judgement.
    fn unserved_seed(&self, task: &str) -> u64 {
        let place = hash_parts("bem/pipeline/unserved", &[&self.plan.seed.to_le_bytes(), task.as_bytes()]);
        u64::from_le_bytes(place.as_bytes()[..8].try_into().expect("eight of 32 bytes"))
    }
}
