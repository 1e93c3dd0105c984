//! New templates from old ones: four small changes, each checked before it is proposed.
//!
//! A mutation is a proposal, not an insertion: it becomes a TEACH_EDIT patch that waits like any other (D-24). The
//! chance of a mutation falls with the number of selections. Clauses: GLE-7.

use crate::ladder::{Domain, Ladder};
use crate::template::{Template, TemplateId, domain_of, structural_difficulty};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_base::prng::Prng;
use bem_games::compose::{NodeKind, Programs, TaskTree, operator};
use bem_games::game::{GameError, Range};
use std::collections::BTreeMap;

/// What a mutation does to a tree. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Transformation {
    /// Puts a MASK around a subtree.
    Mask = 0,
    /// Makes a SEQ of a leaf and another one.
    LeafToSeq = 1,
    /// Raises the bound of a REPEAT, LOOP or NEST.
    LargerBound = 2,
    /// Interleaves another base problem.
    Interleave = 3,
    /// Makes one situation more frequent: no mutation by chance, but what a counterexample asks for.
    Focus = 4,
    /// Puts a task of another family behind it: what a program of the control core asks for.
    Compose = 5,
    /// Makes slots of the numbers in which two tasks differ that one machine has solved.
    Extract = 6,
    /// Makes the situation more frequent in which verification found a circuit to contradict the log.
    Contradict = 7,
}

impl Transformation {
    /// Those that are drawn.
    pub const ALL: [Transformation; 4] = [
        Transformation::Mask,
        Transformation::LeafToSeq,
        Transformation::LargerBound,
        Transformation::Interleave,
    ];
}

/// A template that wants to be admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "TEACH_EDIT")]
pub struct TeachEdit {
    /// The template it came from.
    pub parent: TemplateId,
    /// What was done.
    pub transformation: Transformation,
    /// The new tree.
    pub tree: TaskTree,
    /// Its domain.
    pub domain: Domain,
    /// Its difficulty by structure.
    pub difficulty: Fixed,
}

/// How often mutations happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutationRate {
    /// At the start, this many selections...
    #[doc(alias = "p_mut")]
    pub numerator: u64,
    /// ...of this many mutate.
    pub denominator: u64,
    /// After this many selections the rate is half of what it was at the start, then a third, and so on.
    pub half_life: u64,
}

impl MutationRate {
    /// One in twenty at first, half of that after a thousand selections.
    pub const DEFAULT: MutationRate = MutationRate { numerator: 1, denominator: 20, half_life: 1_000 };

    /// This chance, from zero to one, as a ratio in lowest terms.
    pub fn from_chance(chance: Fixed, half_life: u64) -> MutationRate {
        let raw = chance.clamp(Fixed::ZERO, Fixed::ONE).to_raw() as u64;
        let shift = raw.trailing_zeros().min(FRACTION_BITS);
        MutationRate { numerator: raw >> shift, denominator: 1 << (FRACTION_BITS - shift), half_life }
    }

    /// Whether this selection mutates.
    pub fn draw(&self, selections: u64, prng: &mut Prng) -> bool {
        let slower = 1 + selections / self.half_life;
        prng.below(self.denominator.saturating_mul(slower)) < self.numerator
    }
}

/// One mutation of this template; none if the one that was drawn does not fit the bounds or is deeper than asked for.
pub fn mutate(
    template: &Template,
    ladders: &[Ladder],
    depth_max: usize,
    prng: &mut Prng,
    programs: &dyn Programs,
) -> Option<TeachEdit> {
    let transformation = Transformation::ALL[prng.below(4) as usize];
    let tree = transform(&template.tree, transformation, ladders, prng).ok()??;
    if depth_max < tree.depth() {
        return None;
    }
    let domain = domain_of(&tree)?;
    let difficulty = structural_difficulty(&tree, programs).ok()?;
    Some(TeachEdit { parent: template.id, transformation, tree, domain, difficulty })
}

fn transform(
    tree: &TaskTree,
    transformation: Transformation,
    ladders: &[Ladder],
    prng: &mut Prng,
) -> Result<Option<TaskTree>, GameError> {
    match transformation {
        Transformation::Mask => {
            let settings = texts(&[("percent", 5 * (1 + prng.below(4))), ("bits", 1 + prng.below(4))]);
            let place = prng.below(tree.size() as u64) as usize;
            change_one(tree, place, |_| true, |node| TaskTree::node("mask", settings.clone(), vec![node]))
        }
        Transformation::LeafToSeq => {
            let other = easy_leaf(ladders, prng);
            let leaf = |node: &TaskTree| node.kind() == NodeKind::LeafBase;
            let place = prng.below(count(tree, leaf) as u64) as usize;
            change_one(tree, place, leaf, |node| {
                TaskTree::node("seq", BTreeMap::new(), vec![node, other.clone()])
            })
        }
        Transformation::LargerBound => {
            let loops = |node: &TaskTree| bound_name(node.kind()).is_some();
            let places = count(tree, loops);
            if places == 0 {
                return Ok(None);
            }
            change_one(tree, prng.below(places as u64) as usize, loops, raise_bound)
        }
        // Nothing of this is drawn: somebody has to name a situation, a partner or two tasks.
        Transformation::Focus
        | Transformation::Compose
        | Transformation::Extract
        | Transformation::Contradict => Ok(None),
        Transformation::Interleave => {
            let parts = vec![tree.clone(), easy_leaf(ladders, prng)];
            TaskTree::node("interleave", BTreeMap::new(), parts).map(Some)
        }
    }
}

fn texts(pairs: &[(&str, u64)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// A task from the lower half of some domain's ladder.
fn easy_leaf(ladders: &[Ladder], prng: &mut Prng) -> TaskTree {
    let ladder = &ladders[prng.below(ladders.len() as u64) as usize];
    let rungs = ladder.rungs(8);
    rungs[prng.below(rungs.len() as u64 / 2) as usize].tree.clone()
}

fn count(tree: &TaskTree, wanted: impl Fn(&TaskTree) -> bool + Copy) -> usize {
    usize::from(wanted(tree)) + tree.parts().iter().map(|part| count(part, wanted)).sum::<usize>()
}

/// Changes the node at this place among those that are wanted, counted leaves first.
fn change_one(
    tree: &TaskTree,
    place: usize,
    wanted: impl Fn(&TaskTree) -> bool,
    change: impl Fn(TaskTree) -> Result<TaskTree, GameError>,
) -> Result<Option<TaskTree>, GameError> {
    let mut seen = 0;
    let changed = tree.map(&mut |node| {
        let here = wanted(&node);
        seen += usize::from(here);
        if here && seen == place + 1 { change(node) } else { Ok(node) }
    })?;
    Ok((changed != *tree).then_some(changed))
}

fn bound_name(kind: NodeKind) -> Option<&'static str> {
    match kind {
        NodeKind::Repeat => Some("times"),
        NodeKind::Loop => Some("rounds"),
        NodeKind::Nest => Some("depth"),
        _ => None,
    }
}

/// One more round or level; at the end of its range nothing changes.
fn raise_bound(node: TaskTree) -> Result<TaskTree, GameError> {
    let name = bound_name(node.kind()).expect("only loops are raised");
    let parameters = operator(node.name()).map_or(&[][..], |operator| operator.parameters());
    let parameter = parameters.iter().find(|parameter| parameter.name == name);
    let Some(Range::Number { max, default, .. }) = parameter.map(|parameter| parameter.range) else {
        return Ok(node);
    };
    let now = node.settings().get(name).map_or(Some(default), |text| text.parse().ok());
    let mut settings = node.settings().clone();
    if let Some(now) = now.filter(|now| *now < max) {
        settings.insert(name.to_string(), (now + 1).to_string());
    }
    Ok(node.with_settings(settings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::TemplateStatistics;
    use bem_games::compose::NoPrograms;
    use bem_games::compose::tree::{TREE_DEPTH_MAX, TREE_NODES_MAX};

    fn template(tree: TaskTree) -> Template {
        Template {
            id: TemplateId(0),
            domain: domain_of(&tree).unwrap(),
            difficulty_structural: Fixed::ZERO,
            difficulty: Fixed::ZERO,
            statistics: TemplateStatistics::NEUTRAL,
            tree,
        }
    }

    #[test]
    fn generations_of_children_stay_within_the_bounds_and_can_be_played() {
        let ladders: Vec<Ladder> = [0, 3, 16].map(|index| Ladder::new(Domain(index))).into();
        let mut prng = Prng::stream(1, "generations");
        let mut seen = [0; 4];
        for start in ["parity{n=3..6}", "loop{rounds=3}(compare{bits=2})"] {
            let mut parent = template(TaskTree::parse(start).unwrap());
            for _ in 0..400 {
                let Some(edit) = mutate(&parent, &ladders, TREE_DEPTH_MAX, &mut prng, &NoPrograms) else {
                    continue;
                };
                seen[edit.transformation as usize] += 1;
                assert!(edit.tree.depth() <= TREE_DEPTH_MAX && edit.tree.size() <= TREE_NODES_MAX);
                assert!(Fixed::ZERO < edit.difficulty);
                assert_ne!(edit.tree, parent.tree);
                let child = template(edit.tree);
                child.instantiate(&ladders[0], 1, &NoPrograms).unwrap();
                // Start over now and then, or every line would soon end at the bounds.
                parent = if prng.below(4) == 0 { template(TaskTree::parse(start).unwrap()) } else { child };
            }
        }
        assert!(seen.iter().all(|count| 10 < *count), "{seen:?}");
    }

    #[test]
    fn bounds_rise_by_one_and_stop_at_the_end() {
        let raised = |text: &str| raise_bound(TaskTree::parse(text).unwrap()).unwrap().to_string();
        assert_eq!(raised("loop(compare)"), "loop{rounds=5}(compare)");
        assert_eq!(raised("repeat{times=64}(compare)"), "repeat{times=64}(compare)");
    }

    #[test]
    fn mutations_become_rarer() {
        let mut prng = Prng::stream(1, "rate");
        let rate = MutationRate { numerator: 1, denominator: 10, half_life: 100 };
        assert_eq!(MutationRate::from_chance(Fixed::from_ratio(1, 4), 100).denominator, 4);
        let mut count = |selections| (0..20_000).filter(|_| rate.draw(selections, &mut prng)).count();
        let (early, late) = (count(0), count(1_000));
        assert!((1_800..2_200).contains(&early) && (120..250).contains(&late), "{early} {late}");
    }
}
