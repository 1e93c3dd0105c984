//! Worlds that are drawn from a seed, to measure what a learner earns where credit is hard to give.
//!
//! Five kinds: a first action whose consequence comes much later among distractions, small differences between delayed
//! rewards, tables that are shown once and asked about by number, long chains with one distant reward, and rewards whose noise
//! is many times the gap between actions. A world says its optimum and what random play earns, for the evaluator alone. Nobody
//! is meant to look at single worlds: results are aggregates. Must not know learning. Clauses: GLE-1, GLE-9, VM-16.

mod chain;
mod consequence;
mod noise;
mod table;

use crate::game::Game;
use crate::rules::RuleGame;
use bem_base::prng::Prng;
use std::sync::Arc;

/// A kind of drawn worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorldKind {
    /// The first action decides what is paid up to 100 steps later, among up to 100 distracting bits and random rewards.
    Consequence,
    /// The first action decides whether 1 or 0.9 is paid up to 50 steps later.
    Difference,
    /// Up to 64 bits are shown once; later one of them is asked for by its number.
    Table,
    /// A chain of up to 50 places with one reward at its end.
    Chain,
    /// One step; the standard deviation of rewards is up to ten times the gap between actions.
    Noise,
}

impl WorldKind {
    /// All kinds, in the order of reports.
    pub const ALL: [WorldKind; 5] =
        [WorldKind::Consequence, WorldKind::Difference, WorldKind::Table, WorldKind::Chain, WorldKind::Noise];

    /// Its name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            WorldKind::Consequence => "consequence",
            WorldKind::Difference => "difference",
            WorldKind::Table => "table",
            WorldKind::Chain => "chain",
            WorldKind::Noise => "noise",
        }
    }

    /// What it is about, in a few words.
    pub const fn about(self) -> &'static str {
        match self {
            WorldKind::Consequence => "a first action decides what is paid much later, among distractions",
            WorldKind::Difference => "delayed rewards that differ by a tenth",
            WorldKind::Table => "a table shown once and asked about later by number",
            WorldKind::Chain => "a long chain with one reward at its end",
            WorldKind::Noise => "noise up to ten times the gap between actions",
        }
    }

    /// The world of this kind that belongs to a seed.
    pub fn draw(self, seed: u64) -> Arc<dyn Game> {
        let mut prng = Prng::stream(seed, self.name());
        match self {
            WorldKind::Consequence => Arc::new(RuleGame::new(consequence::Consequence::draw(&mut prng))),
            WorldKind::Difference => {
                Arc::new(RuleGame::new(consequence::Consequence::draw_difference(&mut prng)))
            }
            WorldKind::Table => Arc::new(RuleGame::new(table::ShownTable::draw(&mut prng))),
            WorldKind::Chain => Arc::new(RuleGame::new(chain::Chain::draw(&mut prng))),
            WorldKind::Noise => Arc::new(RuleGame::new(noise::Noise::draw(&mut prng))),
        }
    }
}

/// One of these, every one equally likely.
fn one_of<T: Copy>(prng: &mut Prng, choices: &[T]) -> T {
    choices[prng.below(choices.len() as u64) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;

    #[test]
    fn drawn_worlds_of_every_kind_keep_the_contract_and_their_stated_values() {
        for kind in WorldKind::ALL {
            for seed in 0..12 {
                let game = kind.draw(seed);
                let verdict = conformance::check(game.as_ref());
                assert_eq!(verdict, Ok(()), "{} {seed}", kind.name());
                assert!(game.random().mean < game.optimum().mean, "{} {seed}", kind.name());
            }
        }
    }

    #[test]
    fn a_world_is_a_function_of_its_kind_and_seed_and_seeds_differ() {
        for kind in WorldKind::ALL {
            let shapes: Vec<_> = (0..8).map(|seed| kind.draw(seed).shape().clone()).collect();
            let again: Vec<_> = (0..8).map(|seed| kind.draw(seed).shape().clone()).collect();
            assert_eq!(shapes, again);
            assert!(shapes.iter().any(|shape| *shape != shapes[0]), "{}", kind.name());
        }
    }
}
