//! The tree that names a composition, its bounds, and how it becomes a game.
//!
//! The text form is the canonical one: `seq(parity{n=4},repeat{times=3}(compare{bits=2}))`. A leaf is a family
//! with settings, or `isa{fragment=NAME}` for a program of the control core, which [`Programs`] provides.
//! Clauses: GLE-3.

use super::operator::{self, Operator};
use super::parse;
use crate::catalog;
use crate::game::{Game, GameError, Settings};
use bem_base::prng::mix;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Levels of a tree, the root included.
#[doc(alias = "Depth_op_tree_max")]
pub const TREE_DEPTH_MAX: usize = 8;
/// Nodes of a tree.
#[doc(alias = "Size_op_tree_max")]
pub const TREE_NODES_MAX: usize = 32;

/// The kinds of nodes. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[doc(alias = "op_type")]
pub enum NodeKind {
    /// A family with settings.
    LeafBase = 0,
    /// A program of the control core.
    LeafIsa = 1,
    /// See [`super::seq`].
    Seq = 2,
    /// See [`super::par`].
    Par = 3,
    /// See [`super::nest`].
    Nest = 4,
    /// See [`super::mask`].
    Mask = 5,
    /// See [`super::interleave`].
    Interleave = 6,
    /// See [`super::repeat`].
    Repeat = 7,
    /// See [`super::branch`].
    Branch = 8,
    /// See [`super::looped`].
    Loop = 9,
}

impl NodeKind {
    const OPERATORS: [NodeKind; 8] = [
        NodeKind::Seq,
        NodeKind::Par,
        NodeKind::Nest,
        NodeKind::Mask,
        NodeKind::Interleave,
        NodeKind::Repeat,
        NodeKind::Branch,
        NodeKind::Loop,
    ];

    /// The kind called `name` in the text form; any name that is no operator is a family's.
    pub fn from_name(name: &str) -> NodeKind {
        match operator::operators().iter().position(|operator| operator.name() == name) {
            Some(index) => NodeKind::OPERATORS[index],
            None if name == ISA => NodeKind::LeafIsa,
            None => NodeKind::LeafBase,
        }
    }
}

/// The name of leaves that are programs.
const ISA: &str = "isa";

/// Provides the games behind `isa` leaves; the control core implements this.
#[doc(alias = "LEAF_ISA")]
pub trait Programs {
    /// The game that runs the program called `fragment` with these settings.
    fn build(
        &self,
        fragment: &str,
        settings: &BTreeMap<String, String>,
        instance_seed: u64,
    ) -> Result<Arc<dyn Game>, GameError>;
}

/// No programs at all: every `isa` leaf is refused.
pub struct NoPrograms;

impl Programs for NoPrograms {
    fn build(
        &self,
        fragment: &str,
        _settings: &BTreeMap<String, String>,
        _instance_seed: u64,
    ) -> Result<Arc<dyn Game>, GameError> {
        Err(GameError::Impossible(format!("there is no program called {fragment:?}: none are loaded here")))
    }
}

/// A composition: a leaf, or an operator over one or two trees.
///
/// Invariant: at most [`TREE_DEPTH_MAX`] levels and [`TREE_NODES_MAX`] nodes, and every operator has the parts it
/// needs. Settings are texts; they are checked when the game is built.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[doc(alias = "op_tree")]
pub struct TaskTree {
    name: String,
    settings: BTreeMap<String, String>,
    parts: Vec<TaskTree>,
}

impl TaskTree {
    /// Reads the text form.
    pub fn parse(text: &str) -> Result<TaskTree, GameError> {
        parse::parse(text)
    }

    /// A leaf: a family, or `isa`.
    pub fn leaf(name: &str, settings: BTreeMap<String, String>) -> Result<TaskTree, GameError> {
        TaskTree::node(name, settings, Vec::new())
    }

    /// A node over parts; the bounds are checked.
    pub fn node(
        name: &str,
        settings: BTreeMap<String, String>,
        parts: Vec<TaskTree>,
    ) -> Result<TaskTree, GameError> {
        let refuse = |text: String| Err(GameError::Impossible(text));
        let arity = operator::operator(name).map_or(0, Operator::arity);
        if parts.len() != arity {
            let takes = if arity == 0 {
                "is no operator and takes no parts".to_string()
            } else {
                format!("takes {arity} parts")
            };
            return refuse(format!("{name} {takes}; {} were given", parts.len()));
        }
        let tree = TaskTree { name: name.to_string(), settings, parts };
        if TREE_DEPTH_MAX < tree.depth() {
            return refuse(format!(
                "the tree has {} levels; at most {TREE_DEPTH_MAX} are allowed",
                tree.depth()
            ));
        }
        if TREE_NODES_MAX < tree.size() {
            return refuse(format!(
                "the tree has {} nodes; at most {TREE_NODES_MAX} are allowed",
                tree.size()
            ));
        }
        Ok(tree)
    }

    /// What kind of node the root is.
    pub fn kind(&self) -> NodeKind {
        NodeKind::from_name(&self.name)
    }

    /// The name of the operator or the family at the root.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The settings of the root.
    pub fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// The same root with other settings.
    #[must_use]
    pub fn with_settings(&self, settings: BTreeMap<String, String>) -> TaskTree {
        TaskTree { settings, ..self.clone() }
    }

    /// The parts of the root.
    pub fn parts(&self) -> &[TaskTree] {
        &self.parts
    }

    /// Levels, the root included.
    pub fn depth(&self) -> usize {
        1 + self.parts.iter().map(TaskTree::depth).max().unwrap_or(0)
    }

    /// Nodes.
    pub fn size(&self) -> usize {
        1 + self.parts.iter().map(TaskTree::size).sum::<usize>()
    }

    /// The same tree with every node, leaves first, replaced by what `change` makes of it.
    pub fn map(
        &self,
        change: &mut dyn FnMut(TaskTree) -> Result<TaskTree, GameError>,
    ) -> Result<TaskTree, GameError> {
        let parts: Result<Vec<_>, _> = self.parts.iter().map(|part| part.map(change)).collect();
        change(TaskTree::node(&self.name, self.settings.clone(), parts?)?)
    }

    /// The game. Hidden choices of every part come from `instance_seed`.
    pub fn build(&self, instance_seed: u64, programs: &dyn Programs) -> Result<Arc<dyn Game>, GameError> {
        match operator::operator(&self.name) {
            None if self.name == ISA => {
                let mut settings = self.settings.clone();
                let fragment = settings.remove("fragment").ok_or_else(|| {
                    GameError::Impossible("isa needs the name of a program: isa{fragment=NAME}".to_string())
                })?;
                programs.build(&fragment, &settings, instance_seed)
            }
            None => {
                let family = catalog::family(&self.name)?;
                catalog::build(family, &catalog::settings(family, &self.settings)?, instance_seed)
            }
            Some(operator) => {
                let settings = Settings::parse(operator.parameters(), &self.settings)?;
                let seeds = (0..).map(|index| mix(instance_seed ^ mix(index + 1)));
                let parts: Result<Vec<_>, _> =
                    self.parts.iter().zip(seeds).map(|(part, seed)| part.build(seed, programs)).collect();
                operator.build(parts?, &settings)
            }
        }
    }
}

impl fmt::Display for TaskTree {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        if !self.settings.is_empty() {
            let texts: Vec<String> =
                self.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            write!(formatter, "{{{}}}", texts.join(","))?;
        }
        if !self.parts.is_empty() {
            let texts: Vec<String> = self.parts.iter().map(TaskTree::to_string).collect();
            write!(formatter, "({})", texts.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::families::testing;
    use std::fmt::Write;

    fn build(text: &str) -> Arc<dyn Game> {
        TaskTree::parse(text).unwrap().build(1, &NoPrograms).unwrap()
    }

    /// The conformance kit, and stated values against play.
    pub fn check(text: &str) {
        testing::check_values(&*build(text), 40);
    }

    /// One episode of the oracle as text: observation, action, reward.
    pub fn play(text: &str, seed: u64) -> String {
        let game = build(text);
        let (mut world, mut oracle) = (game.start(), game.oracle());
        world.reset(seed).unwrap();
        oracle.begin(seed);
        let mut lines = String::new();
        loop {
            let mut shown = Vec::new();
            for field in &game.shape().fields {
                let bits =
                    (field.low..field.low + field.width).map(|index| world.observation().get(index.into()));
                shown.push(bits.map(|bit| if bit { '1' } else { '0' }).collect::<String>());
            }
            let action = oracle.act(world.observation());
            let outcome = world.step(action).unwrap();
            oracle.see(action, &outcome);
            let end = if outcome.done { " done" } else { "" };
            writeln!(lines, "{} -> {action}: {}{end}", shown.join(" "), outcome.reward).unwrap();
            if outcome.done {
                return lines;
            }
        }
    }

    #[test]
    fn every_kind_has_a_number_and_a_name() {
        let numbers: Vec<u8> =
            ["parity", "isa", "seq", "par", "nest", "mask", "interleave", "repeat", "branch", "loop"]
                .map(|name| NodeKind::from_name(name) as u8)
                .to_vec();
        assert_eq!(numbers, (0..10).collect::<Vec<u8>>());
    }

    #[test]
    fn compositions_of_compositions_keep_their_values() {
        check("seq(par(compare{bits=2},add{bits=3}),mask{percent=10,bits=1}(loop{rounds=3}(distance{n=3})))");
        check(
            "interleave(nest{depth=2}(add{bits=3}),branch(compare{bits=2},repeat{times=2}(auction{bits=2})))",
        );
    }

    #[test]
    fn bounds_of_the_machine_are_named() {
        let error =
            |text: &str| TaskTree::parse(text).unwrap().build(1, &NoPrograms).err().unwrap().to_string();
        assert_eq!(
            error("par(auction{bits=6},auction{bits=5})"),
            "par would have 2048 actions; at most 1024 are allowed"
        );
        assert_eq!(
            error("seq(compare{bits=63},par(compare{bits=63},compare{bits=63}))"),
            "seq would have 381 observation bits; at most 256 are allowed"
        );
        let long = "repeat{times=64}(repeat{times=64}(repeat{times=64}(compare)))";
        assert_eq!(error(long), "repeat would have 262144 steps in an episode; at most 65536 are allowed");
        assert_eq!(
            error("seq(compare,isa{fragment=counter})"),
            "there is no program called \"counter\": none are loaded here"
        );
    }

    #[test]
    fn programs_are_leaves_like_any_other() {
        struct Fake;
        impl Programs for Fake {
            fn build(
                &self,
                fragment: &str,
                settings: &BTreeMap<String, String>,
                instance_seed: u64,
            ) -> Result<Arc<dyn Game>, GameError> {
                assert_eq!((fragment, settings["bits"].as_str()), ("less", "2"));
                TaskTree::parse("compare{bits=2}").unwrap().build(instance_seed, &NoPrograms)
            }
        }
        let tree = TaskTree::parse("repeat{times=2}(isa{fragment=less,bits=2})").unwrap();
        assert_eq!(tree.parts()[0].kind(), NodeKind::LeafIsa);
        let game = tree.build(1, &Fake).unwrap();
        assert_eq!(testing::play_oracle(&*game, 10), 2_000);
    }
}
