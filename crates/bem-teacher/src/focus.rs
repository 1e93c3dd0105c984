//! A template that makes one situation more frequent: what a counterexample asks the teacher for.
//!
//! A counterexample says in which situation, seen as observation bits, an expert was wrong. Among the neighbours of a
//! template (ranges cut, numbers a little smaller or larger), the one in which random play meets that situation most
//! often becomes a proposal. Nothing is assumed about what the bits mean: the candidates are played. Must not know
//! circuits. Clauses: GLE-7, GLE-10.

use crate::mutate::{TeachEdit, Transformation};
use crate::template::{Template, TemplateId, domain_of, draw, structural_difficulty};
use bem_base::environment::{Bits, Field};
use bem_base::prng::{Prng, mix};
use bem_games::compose::{Programs, TaskTree};
use bem_games::game::GameError;
use std::collections::BTreeMap;

/// Steps that each candidate is played for.
const STEPS: u32 = 4_096;
/// Episodes of these at most.
const EPISODES_MAX: u64 = 256;
/// Candidates that are played at most.
const CANDIDATES_MAX: usize = 32;

/// The neighbour of this template in which random play meets the situation most often, if that is at least half
/// again as often as now. At most [`CANDIDATES_MAX`] times [`STEPS`] steps are played.
pub fn focus(template: &Template, situation: &Bits, programs: &dyn Programs) -> Option<TeachEdit> {
    let often = |tree: &TaskTree| meetings(tree, template.id, situation, programs).unwrap_or(0);
    let now = often(&template.tree);
    let mut best: Option<(u64, TaskTree)> = None;
    let layout = |tree: &TaskTree| layout(tree, template.id, programs).ok();
    let like_now = layout(&template.tree)?;
    for Neighbour { tree, is_cut } in neighbours(&template.tree).into_iter().take(CANDIDATES_MAX) {
        // Where the bits are laid out in another way, the same bits are another situation.
        if !is_cut && layout(&tree).as_ref() != Some(&like_now) {
            continue;
        }
        let count = often(&tree);
        // The first of equally good ones stays.
        if best.as_ref().is_none_or(|(most, _)| *most < count) {
            best = Some((count, tree));
        }
    }
    let (_, tree) = best.filter(|(most, _)| now + now / 2 < *most)?;
    let difficulty = structural_difficulty(&tree, programs).ok()?;
    let domain = domain_of(&tree)?;
    Some(TeachEdit { parent: template.id, transformation: Transformation::Focus, tree, domain, difficulty })
}

/// The fields and actions of one instance.
fn layout(tree: &TaskTree, id: TemplateId, programs: &dyn Programs) -> Result<(Vec<Field>, u16), GameError> {
    let game = draw(tree, id, 0)?.build(0, programs)?;
    Ok((game.shape().fields.clone(), game.shape().actions))
}

/// How often uniform play meets the situation within a fixed number of steps.
fn meetings(
    tree: &TaskTree,
    id: TemplateId,
    situation: &Bits,
    programs: &dyn Programs,
) -> Result<u64, GameError> {
    let mut prng = Prng::stream(0, "focus");
    let (mut count, mut steps) = (0, 0);
    for episode in 0..EPISODES_MAX {
        if steps == STEPS {
            break;
        }
        let seed = mix(episode);
        let game = draw(tree, id, seed)?.build(seed, programs)?;
        let (mut world, actions) = (game.start(), u64::from(game.shape().actions));
        // A program of the user's that fails is a game in which nothing is met.
        let mut goes_on = world.reset(seed).is_ok();
        while goes_on && steps < STEPS {
            count += u64::from(world.observation() == situation);
            steps += 1;
            goes_on = world.step(prng.below(actions) as u16).is_ok_and(|outcome| !outcome.done);
        }
    }
    Ok(count)
}

/// The tree with one setting changed: every range cut to its ends, its middle and its halves, every number halved,
/// doubled, one smaller and one larger. What cannot be played is found out by playing.
fn neighbours(tree: &TaskTree) -> Vec<Neighbour> {
    let mut trees = Vec::new();
    for place in 0..tree.size() {
        for (name, text) in &settings_at(tree, place) {
            let is_cut = range(text).is_some();
            for text in neighbours_of_setting(text) {
                let changed = with_setting(tree, place, name, &text);
                trees.extend(changed.map(|tree| Neighbour { tree, is_cut }));
            }
        }
    }
    trees
}

/// A tree that differs in one setting.
struct Neighbour {
    tree: TaskTree,
    /// A range became smaller, so that all its instances are instances of the old one.
    is_cut: bool,
}

fn neighbours_of_setting(text: &str) -> Vec<String> {
    if let Some((low, high)) = range(text) {
        let middle = low + (high - low) / 2;
        let cuts = [(high, high), (low, low), (middle, middle), (middle + 1, high), (low, middle)];
        let cut =
            |(low, high): (i64, i64)| if low == high { low.to_string() } else { format!("{low}..{high}") };
        return cuts.into_iter().map(cut).filter(|cut| cut != text).collect();
    }
    let Ok(number) = text.parse::<i64>() else { return Vec::new() };
    let near = [number / 2, number - 1, number + 1, number.saturating_mul(2)];
    near.into_iter().filter(|near| *near != number).map(|near| near.to_string()).collect()
}

fn range(text: &str) -> Option<(i64, i64)> {
    let (low, high) = text.split_once("..")?;
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    (low < high).then_some((low, high))
}

/// The settings of the node at this place, counted leaves first.
fn settings_at(tree: &TaskTree, place: usize) -> BTreeMap<String, String> {
    let (mut seen, mut found) = (0, BTreeMap::new());
    let walked = tree.map(&mut |node| {
        if seen == place {
            found = node.settings().clone();
        }
        seen += 1;
        Ok(node)
    });
    debug_assert!(walked.is_ok());
    found
}

fn with_setting(tree: &TaskTree, place: usize, name: &str, text: &str) -> Option<TaskTree> {
    let mut seen = 0;
    tree.map(&mut |node| {
        let here = seen == place;
        seen += 1;
        if !here {
            return Ok(node);
        }
        let mut settings = node.settings().clone();
        settings.insert(name.to_string(), text.to_string());
        Ok(node.with_settings(settings))
    })
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::Domain;
    use crate::teacher::{Teacher, TeacherConfig};
    use bem_games::compose::NoPrograms;

    fn admitted(text: &str) -> (Teacher, TemplateId) {
        let domain = domain_of(&TaskTree::parse(text).unwrap()).unwrap();
        let mut teacher = Teacher::empty(TeacherConfig { domains: vec![domain], ..TeacherConfig::new(1) });
        let id = teacher.admit_tree(TaskTree::parse(text).unwrap(), &NoPrograms).unwrap();
        (teacher, id)
    }

    fn bits(ones: &[usize]) -> Bits {
        let mut bits = Bits::ZERO;
        ones.iter().for_each(|index| bits.set(*index, true));
        bits
    }

    #[test]
    fn a_situation_of_long_strings_asks_for_long_strings() {
        let (mut teacher, id) = admitted("parity{n=1..3}");
        // Bit 2 is set in strings of three bits only; one in eight of those looks like this.
        let situation = bits(&[2]);
        let edit = teacher.focus_on(id, &situation, &NoPrograms).expect("it can be made more frequent");
        assert_eq!(edit.transformation, Transformation::Focus);
        let often = |tree: &TaskTree| meetings(tree, id, &situation, &NoPrograms).unwrap();
        let before = often(&teacher.templates()[id.0 as usize].tree);
        assert!(2 * before <= often(&edit.tree), "{before} and {}", often(&edit.tree));
        assert_eq!(edit.tree.to_string(), "parity{n=3}");
        let child = teacher.admit(&edit, &NoPrograms).unwrap();
        assert_eq!(teacher.templates()[child.0 as usize].domain, Domain::from_name("parity").unwrap());
    }

    #[test]
    fn without_ranges_a_number_is_changed() {
        let text = "key_value{keys=2,values=2,writes=1,distractors=8}";
        let (teacher, id) = admitted(text);
        // A question is rare among so many distractors.
        let asked = |seed: u64| {
            let tree = TaskTree::parse("key_value{keys=2,values=2,writes=1,distractors=0}").unwrap();
            let mut world = tree.build(seed, &NoPrograms).unwrap().start();
            world.reset(seed).unwrap();
            world.step(0).unwrap();
            *world.observation()
        };
        let edit = teacher.focus_on(id, &asked(1), &NoPrograms).expect("more often");
        assert!(edit.tree.name() == "key_value" && edit.tree.settings()["keys"] == "2", "{}", edit.tree);
        let often = |tree: &TaskTree| meetings(tree, id, &asked(1), &NoPrograms).unwrap();
        assert!(often(&TaskTree::parse(text).unwrap()) * 3 / 2 < often(&edit.tree));
    }

    #[test]
    fn what_never_happens_cannot_be_made_frequent() {
        let (teacher, id) = admitted("parity{n=1..6}");
        assert_eq!(teacher.focus_on(id, &bits(&[40]), &NoPrograms), None);
    }

    #[test]
    fn ranges_inside_a_composition_are_cut_where_it_helps() {
        let (teacher, id) = admitted("seq(parity{n=1..3},compare{bits=2})");
        let tree = |n: &str| TaskTree::parse(&format!("seq(parity{{n={n}}},compare{{bits=2}})")).unwrap();
        let first = |seed: u64| {
            let mut world = tree("3").build(seed, &NoPrograms).unwrap().start();
            world.reset(seed).unwrap();
            *world.observation()
        };
        let met = |n: &str, situation: &Bits| meetings(&tree(n), id, situation, &NoPrograms).unwrap();
        let situation = (0..100).map(first).find(|it| met("1..2", it) == 0 && 0 < met("3", it)).unwrap();
        let edit = teacher.focus_on(id, &situation, &NoPrograms).expect("more often");
        assert_eq!(edit.tree, tree("3"));
    }
}
