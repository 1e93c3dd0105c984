//! Templates: trees whose settings may be ranges, and how a seed turns one into a task.
//!
//! In a template a setting may be a range such as `n=4..8`. [`Template::instantiate`] draws every range with a
//! generator that depends on the template's number and the seed alone, so that a task is a pure function of both.
//! Clauses: GLE-3, GLE-4.

use crate::difficulty::{estimate, needs};
use crate::ladder::{Domain, Ladder};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_games::compose::{NoPrograms, NodeKind, Programs, TaskTree};
use bem_games::game::{Game, GameError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of a template; numbers are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[doc(alias = "id_t")]
pub struct TemplateId(pub u32);

/// What has been seen of a template so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateStatistics {
    /// Tasks made from it that have been played.
    pub usage: u64,
    /// Moving average of passes.
    pub pass_rate: Fixed,
    /// Moving average of how far play fell short, from zero to one.
    pub regret: Fixed,
    /// The step of the last report.
    pub last_update: u64,
    /// Moving average of the logarithm of the steps that it took to learn one, base two; none before the first.
    pub learned: Option<Fixed>,
}

impl TemplateStatistics {
    /// Nothing known: half passes, half the regret.
    pub const NEUTRAL: TemplateStatistics = TemplateStatistics {
        usage: 0,
        pass_rate: Fixed::HALF,
        regret: Fixed::HALF,
        last_update: 0,
        learned: None,
    };

    /// From one for a template never used toward zero.
    pub fn novelty(&self) -> Fixed {
        Fixed::from_int(8).div_count_floor(8 + self.usage)
    }
}

/// A recipe for tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its number.
    pub id: TemplateId,
    /// The domain it belongs to.
    pub domain: Domain,
    /// The tree; settings of leaves and operators may be ranges.
    pub tree: TaskTree,
    /// Estimated from structure when it was made.
    pub difficulty_structural: Fixed,
    /// The estimate after what play has shown.
    pub difficulty: Fixed,
    /// What has been seen.
    pub statistics: TemplateStatistics,
}

/// A task ready to be played.
#[doc(alias = "TEACH_INSTANTIATE")]
pub struct Task {
    /// The template it was made from.
    pub template: TemplateId,
    /// Its domain.
    pub domain: Domain,
    /// The tree with all ranges drawn.
    pub tree: TaskTree,
    /// The seed of its hidden choices.
    pub seed: u64,
    /// The game.
    pub game: Arc<dyn Game>,
    /// Its difficulty by its own structure.
    pub difficulty: Fixed,
    /// The band that this difficulty is in.
    pub band: u8,
}

impl Template {
    /// The task for this seed: the same for the same template and seed, whatever happened before.
    pub fn instantiate(
        &self,
        ladder: &Ladder,
        seed: u64,
        programs: &dyn Programs,
    ) -> Result<Task, GameError> {
        let tree = draw(&self.tree, self.id, seed)?;
        let game = tree.build(seed, programs)?;
        let difficulty = estimate(game.shape(), needs(&tree)?);
        let band = ladder.band(difficulty);
        Ok(Task { template: self.id, domain: self.domain, tree, seed, game, difficulty, band })
    }
}

/// The tree with every range drawn.
pub(crate) fn draw(tree: &TaskTree, id: TemplateId, seed: u64) -> Result<TaskTree, GameError> {
    let mut prng = Prng::stream(seed, &format!("template {}", id.0));
    tree.map(&mut |node| {
        let mut settings = BTreeMap::new();
        for (name, text) in node.settings() {
            settings.insert(name.clone(), draw_setting(name, text, &mut prng)?);
        }
        Ok(node.with_settings(settings))
    })
}

fn draw_setting(name: &str, text: &str, prng: &mut Prng) -> Result<String, GameError> {
    let Some((low, high)) = text.split_once("..") else {
        return Ok(text.to_string());
    };
    match (low.parse::<i64>(), high.parse::<i64>()) {
        (Ok(low), Ok(high)) if low <= high => Ok(prng.between(low, high).to_string()),
        _ => Err(GameError::Impossible(format!("{name}={text} is no range: it must look like 4..8"))),
    }
}

/// The domain of a tree: that of its first leaf.
pub fn domain_of(tree: &TaskTree) -> Option<Domain> {
    match tree.kind() {
        NodeKind::LeafBase => Domain::from_name(tree.name()),
        _ => tree.parts().first().and_then(domain_of),
    }
}

/// The difficulty of a tree whose ranges are taken in the middle.
pub fn structural_difficulty(tree: &TaskTree, programs: &dyn Programs) -> Result<Fixed, GameError> {
    let middle = tree.map(&mut |node| {
        let middle = |text: &str| match text.split_once("..") {
            Some((low, high)) => match (low.parse::<i64>(), high.parse::<i64>()) {
                (Ok(low), Ok(high)) => (low + (high - low) / 2).to_string(),
                _ => text.to_string(),
            },
            None => text.to_string(),
        };
        let settings = node.settings().iter().map(|(name, text)| (name.clone(), middle(text))).collect();
        Ok(node.with_settings(settings))
    })?;
    let game = middle.build(0, programs)?;
    Ok(estimate(game.shape(), needs(&middle)?))
}

/// What bounds and the ladder need to know about a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Its levels.
    pub depth: usize,
    /// Its nodes.
    pub size: usize,
    /// The longest episode over both ends of every range.
    pub horizon: u32,
    /// Its difficulty by structure.
    pub difficulty: Fixed,
}

/// Measures a tree given as text; trees with programs of their own are refused.
pub fn measure(text: &str) -> Result<Measure, GameError> {
    let tree = TaskTree::parse(text)?;
    let mut horizon = 0;
    for upper in [false, true] {
        let end = tree.map(&mut |node| {
            let settings = node.settings().iter().map(|(name, text)| {
                let end = match text.split_once("..") {
                    Some((low, high)) => {
                        if upper {
                            high
                        } else {
                            low
                        }
                    }
                    None => text,
                };
                (name.clone(), end.to_string())
            });
            Ok(node.with_settings(settings.collect()))
        })?;
        horizon = horizon.max(end.build(0, &NoPrograms)?.shape().horizon);
    }
    let difficulty = structural_difficulty(&tree, &NoPrograms)?;
    Ok(Measure { depth: tree.depth(), size: tree.size(), horizon, difficulty })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        let tree = TaskTree::parse(text).unwrap();
        let difficulty = structural_difficulty(&tree, &NoPrograms).unwrap();
        Template {
            id: TemplateId(3),
            domain: domain_of(&tree).unwrap(),
            difficulty_structural: difficulty,
            difficulty,
            statistics: TemplateStatistics::NEUTRAL,
            tree,
        }
    }

    #[test]
    fn a_task_is_a_pure_function_of_template_and_seed() {
        let template = template("seq(parity{n=4..12},repeat{times=1..5}(compare{bits=2..6}))");
        let ladder = Ladder::new(template.domain);
        let make = |seed| template.instantiate(&ladder, seed, &NoPrograms).unwrap();
        for seed in 0..20 {
            let (first, second) = (make(seed), make(seed));
            assert_eq!(first.tree, second.tree);
            assert_eq!(first.difficulty, second.difficulty);
            assert_eq!(first.game.shape(), second.game.shape());
        }
        let different: std::collections::BTreeSet<String> =
            (0..20).map(|seed| make(seed).tree.to_string()).collect();
        assert!(10 < different.len(), "{different:?}");
    }

    #[test]
    fn ranges_that_are_none_are_refused() {
        let ladder = Ladder::new(Domain(0));
        let mut broken = template("parity{n=4}");
        for text in ["parity{n=8..4}", "parity{n=a..b}", "parity{n=..}", "parity{n=60..70}"] {
            broken.tree = TaskTree::parse(text).unwrap();
            let failed = (0..8).any(|seed| broken.instantiate(&ladder, seed, &NoPrograms).is_err());
            assert!(failed, "{text}");
        }
    }

    #[test]
    fn a_measure_takes_the_longest_of_both_ends() {
        let measure = measure("repeat{times=2..5}(compare{bits=2..6})").unwrap();
        assert_eq!((measure.depth, measure.size, measure.horizon), (2, 2, 5));
        assert!(super::measure("parity{n=8..4000}").is_err());
        assert!(super::measure("nonsense(").is_err());
    }
}
