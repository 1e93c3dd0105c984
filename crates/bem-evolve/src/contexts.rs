//! Contexts: a tree of tested observation bits whose leaves a choice over plain actions keeps apart.
//!
//! It starts as one context (decision D-33). SPLIT divides contexts further, MERGE takes divisions back that make no
//! difference, RESET lets a context forget what came before a step; all of them are patches. The tree is kept in one
//! form, parents before children and the lower side first, so that equal trees have equal bytes. Must not know what the
//! actions brought. Clauses: SCC-2, VM-9; decision D-33.

use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Bits;
use bem_base::limits::OBSERVATION_BITS_MAX;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_synth::statement::Branch;

/// Contexts at most.
pub const CONTEXTS_MAX: usize = 256;

/// One place of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    /// A context, by its number.
    Context(u16),
    /// A tested bit: the side where it is zero comes next, the other one at `high`.
    Test { bit: u16, high: u16 },
}

/// A tree of contexts. Invariants: no bit is tested twice on the way to a context, so that every context can be reached;
/// contexts are numbered in order, the lower side of every test first; there are at most [`CONTEXTS_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextTree {
    nodes: Vec<Node>,
    count: u16,
}

impl Default for ContextTree {
    fn default() -> ContextTree {
        ContextTree::whole()
    }
}

impl ContextTree {
    /// One context for everything.
    pub fn whole() -> ContextTree {
        ContextTree { nodes: vec![Node::Context(0)], count: 1 }
    }

    /// The tree with these places, parents before children and the lower side first: a tested bit, or none for a context.
    /// Nothing if that is no tree, tests a bit twice on one way, or has too many contexts.
    pub fn from_places(places: &[Option<u16>]) -> Option<ContextTree> {
        let mut tree = ContextTree { nodes: Vec::with_capacity(places.len()), count: 0 };
        // Tests whose upper side is still to come, each with all bits on the way to it.
        let mut open: Vec<(usize, Bits)> = Vec::new();
        let mut tested = Bits::ZERO;
        let mut is_complete = false;
        for place in places {
            if is_complete {
                return None;
            }
            match place {
                Some(bit) => {
                    let index = usize::from(*bit);
                    if OBSERVATION_BITS_MAX <= index || tested.get(index) {
                        return None;
                    }
                    tested.set(index, true);
                    open.push((tree.nodes.len(), tested));
                    tree.nodes.push(Node::Test { bit: *bit, high: 0 });
                }
                None => {
                    if CONTEXTS_MAX <= usize::from(tree.count) {
                        return None;
                    }
                    tree.nodes.push(Node::Context(tree.count));
                    tree.count += 1;
                    match open.pop() {
                        Some((test, bits)) => {
                            let next = tree.nodes.len() as u16;
                            if let Node::Test { high, .. } = &mut tree.nodes[test] {
                                *high = next;
                            }
                            tested = bits;
                        }
                        None => is_complete = true,
                    }
                }
            }
        }
        is_complete.then_some(tree)
    }

    /// The tree whose contexts are reached by these tests and values. Nothing if they do not make up a tree.
    pub fn from_paths(mut paths: Vec<Vec<(u16, bool)>>) -> Option<ContextTree> {
        paths.sort_by(|one, other| one.iter().map(|test| test.1).cmp(other.iter().map(|test| test.1)));
        let mut places = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            // Tests up to the one that tells this way from the one before are there already.
            let known = match index.checked_sub(1) {
                Some(before) => {
                    1 + path.iter().zip(&paths[before]).take_while(|(one, other)| one == other).count()
                }
                None => 0,
            };
            places.extend(path.get(known..)?.iter().map(|(bit, _)| Some(*bit)));
            places.push(None);
        }
        ContextTree::from_places(&places).filter(|tree| tree.paths() == paths)
    }

    /// For every context the tests on the way to it, and their values.
    pub fn paths(&self) -> Vec<Vec<(u16, bool)>> {
        let mut paths = Vec::with_capacity(self.count());
        let mut ways = vec![(0usize, Vec::new())];
        while let Some((place, way)) = ways.pop() {
            match self.nodes[place] {
                Node::Context(_) => paths.push(way),
                Node::Test { bit, high } => {
                    let side = |value| [&way[..], &[(bit, value)]].concat();
                    ways.extend([(usize::from(high), side(true)), (place + 1, side(false))]);
                }
            }
        }
        paths
    }

    /// Its places, as [`ContextTree::from_places`] takes them.
    pub fn places(&self) -> Vec<Option<u16>> {
        let place = |node: &Node| match node {
            Node::Context(_) => None,
            Node::Test { bit, .. } => Some(*bit),
        };
        self.nodes.iter().map(place).collect()
    }

    /// How many contexts there are.
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// The context of an observation. Cost: one look per tested bit.
    #[inline]
    pub fn context(&self, observation: &Bits) -> usize {
        let mut place = 0;
        loop {
            match self.nodes[place] {
                Node::Context(context) => return usize::from(context),
                Node::Test { bit, high } if observation.get(usize::from(bit)) => place = usize::from(high),
                Node::Test { .. } => place += 1,
            }
        }
    }

    /// The bits that are tested anywhere, rising.
    pub fn bits(&self) -> Vec<u16> {
        let mut bits: Vec<u16> = self.places().into_iter().flatten().collect();
        bits.sort_unstable();
        bits.dedup();
        bits
    }

    /// For each context here, the context of the coarser tree that it lies in; nothing if some test of the coarser tree is
    /// not made here in the same place.
    pub fn origins(&self, coarser: &ContextTree) -> Option<Vec<usize>> {
        let mut origins = Vec::with_capacity(self.count());
        let mut pairs = vec![(0usize, 0usize)];
        while let Some((here, there)) = pairs.pop() {
            match (self.nodes[here], coarser.nodes[there]) {
                (Node::Context(_), Node::Context(context)) => origins.push(usize::from(context)),
                (Node::Test { high, .. }, Node::Context(_)) => {
                    pairs.extend([(usize::from(high), there), (here + 1, there)]);
                }
                (Node::Test { bit, high }, Node::Test { bit: other, high: far }) if bit == other => {
                    pairs.extend([(usize::from(high), usize::from(far)), (here + 1, there + 1)]);
                }
                _ => return None,
            }
        }
        Some(origins)
    }

    /// Pairs of contexts that only one test tells apart, with the bit of that test, in order.
    pub fn siblings(&self) -> Vec<(usize, u16)> {
        let pair = |place: usize| match self.nodes.get(place..place + 3)? {
            [Node::Test { bit, .. }, Node::Context(low), Node::Context(_)] => Some((usize::from(*low), *bit)),
            _ => None,
        };
        (0..self.nodes.len()).filter_map(pair).collect()
    }

    /// The tree without the tests that tell these contexts from the next one.
    pub fn joined(&self, lower_sides: &[usize]) -> ContextTree {
        let mut places = Vec::with_capacity(self.nodes.len());
        let mut place = 0;
        while let Some(node) = self.nodes.get(place) {
            let is_joined = matches!(
                self.nodes.get(place..place + 3),
                Some([Node::Test { .. }, Node::Context(low), Node::Context(_)])
                    if lower_sides.contains(&usize::from(*low))
            );
            match node {
                Node::Test { .. } if is_joined => {
                    places.push(None);
                    place += 3;
                }
                Node::Test { bit, .. } => {
                    places.push(Some(*bit));
                    place += 1;
                }
                Node::Context(_) => {
                    places.push(None);
                    place += 1;
                }
            }
        }
        ContextTree::from_places(&places).expect("taking tests out of a tree leaves a tree")
    }

    /// The circuit that takes the action of the context: inputs are [`ContextTree::bits`], outputs the action's bits.
    pub fn freeze(&self, actions: &[u16], action_bits: usize) -> Netlist {
        assert!(actions.len() == self.count(), "every context has an action");
        let bits = self.bits();
        let mut builder = Builder::new(bits.len());
        // From the last place to the first, so that both sides of a test are built before it.
        let mut built: Vec<Vec<Signal>> = vec![Vec::new(); self.nodes.len()];
        for place in (0..self.nodes.len()).rev() {
            built[place] = match self.nodes[place] {
                Node::Context(context) => {
                    let action = actions[usize::from(context)];
                    (0..action_bits).map(|bit| Signal::constant(action >> bit & 1 == 1)).collect()
                }
                Node::Test { bit, high } => {
                    let input = bits.binary_search(&bit).expect("every tested bit is listed");
                    let sides = built[usize::from(high)].iter().zip(&built[place + 1]);
                    sides.map(|(high, low)| builder.mux(Signal::input(input), *high, *low)).collect()
                }
            };
        }
        builder.finish(&built[0]).expect("256 contexts are within the bounds of a circuit")
    }

    /// The same as data: what [`ContextTree::freeze`] says.
    pub fn branches(&self, actions: &[u16]) -> Vec<Branch> {
        let branch = |node: &Node| match node {
            Node::Context(context) => Branch::Leaf(actions[usize::from(*context)]),
            Node::Test { bit, .. } => Branch::Test(*bit),
        };
        self.nodes.iter().map(branch).collect()
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.nodes.len());
        self.places().into_iter().for_each(|place| writer.u16(place.unwrap_or(u16::MAX)));
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<ContextTree, DecodeError> {
        let wild = reader.error("contexts that are no tree over the observation");
        let count = reader.length(2)?;
        if 2 * CONTEXTS_MAX <= count {
            return Err(wild);
        }
        let place = |reader: &mut Reader<'_>| Ok(Some(reader.u16()?).filter(|bit| *bit != u16::MAX));
        let places = (0..count).map(|_| place(reader)).collect::<Result<Vec<_>, DecodeError>>()?;
        ContextTree::from_places(&places).ok_or(wild)
    }
}

/// The contexts of one family's choice, and from which step on each of them counts. Invariant: a step for every context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    tree: ContextTree,
    since: Vec<u64>,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice::new()
    }
}

impl Choice {
    /// One context that counts from the start.
    pub fn new() -> Choice {
        Choice { tree: ContextTree::whole(), since: vec![0] }
    }

    /// The contexts.
    pub fn tree(&self) -> &ContextTree {
        &self.tree
    }

    /// For every context the step from which on it counts.
    pub fn since(&self) -> &[u64] {
        &self.since
    }

    /// The same with contexts divided; each part counts from where the whole did. Nothing if these are not its parts.
    pub fn divided(&self, after: &ContextTree) -> Option<Choice> {
        let origins = after.origins(&self.tree)?;
        let since = origins.into_iter().map(|origin| self.since[origin]).collect();
        (self.tree.count() < after.count()).then(|| Choice { tree: after.clone(), since })
    }

    /// The same with contexts joined; a whole counts from where all its parts do. Nothing if these are not the wholes.
    pub fn joined(&self, after: &ContextTree) -> Option<Choice> {
        let origins = self.tree.origins(after)?;
        let mut since = vec![0; after.count()];
        for (part, whole) in origins.into_iter().enumerate() {
            since[whole] = self.since[part].max(since[whole]);
        }
        (after.count() < self.tree.count()).then(|| Choice { tree: after.clone(), since })
    }

    /// The same with a context that forgets what came before a later step. Nothing if there is no such context or the step
    /// is not later.
    pub fn forgetting(&self, context: u16, step: u64) -> Option<Choice> {
        let mut choice = self.clone();
        let since = choice.since.get_mut(usize::from(context)).filter(|since| **since < step)?;
        *since = step;
        Some(choice)
    }

    /// The digest that a patch about it must name.
    pub(crate) fn digest(&self) -> Digest {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        digest::hash_parts("bem/structure/contexts", &[writer.as_bytes()])
    }

    /// Writes the canonical bytes.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        self.tree.encode(writer);
        self.since.iter().for_each(|step| writer.u64(*step));
    }

    /// Reads canonical bytes back.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Choice, DecodeError> {
        let tree = ContextTree::decode(reader)?;
        let since = (0..tree.count()).map(|_| reader.u64()).collect::<Result<_, DecodeError>>()?;
        Ok(Choice { tree, since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bit 3, and above it bit 1.
    fn tree() -> ContextTree {
        ContextTree::from_places(&[Some(3), None, Some(1), None, None]).unwrap()
    }

    #[test]
    fn every_observation_has_one_context_and_every_context_can_be_reached() {
        let tree = tree();
        let context = |seen: u64| tree.context(&Bits([seen, 0, 0, 0]));
        assert_eq!([0b0000, 0b0010, 0b1000, 0b1010].map(context), [0, 0, 1, 2]);
        assert_eq!((tree.count(), tree.bits()), (3, vec![1, 3]));
        let mut paths = tree.paths();
        assert_eq!(paths, [vec![(3, false)], vec![(3, true), (1, false)], vec![(3, true), (1, true)]]);
        paths.reverse();
        assert_eq!(ContextTree::from_paths(paths.clone()), Some(tree.clone()));
        paths.pop();
        assert_eq!(ContextTree::from_paths(paths), None);
        for broken in [
            &[][..],
            &[Some(1)],
            &[None, None],
            &[Some(1), Some(1), None, None, None],
            &[Some(999), None, None],
        ] {
            assert_eq!(ContextTree::from_places(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn parts_know_their_whole_and_joining_undoes_dividing() {
        let (whole, fine) = (ContextTree::whole(), tree());
        let coarse = ContextTree::from_places(&[Some(3), None, None]).unwrap();
        assert_eq!(fine.origins(&whole), Some(vec![0, 0, 0]));
        assert_eq!(fine.origins(&coarse), Some(vec![0, 1, 1]));
        assert_eq!(coarse.origins(&fine), None);
        assert_eq!(fine.siblings(), [(1, 1)]);
        assert_eq!(fine.joined(&[1]), coarse);
        assert_eq!(fine.joined(&[0]), fine);
        let choice =
            Choice::new().divided(&coarse).unwrap().forgetting(1, 7).unwrap().divided(&fine).unwrap();
        assert_eq!(choice.since(), [0, 7, 7]);
        assert_eq!(choice.joined(&whole).unwrap().since(), [7]);
        assert_eq!(
            (choice.divided(&whole), choice.joined(&fine), choice.forgetting(1, 7)),
            (None, None, None)
        );
    }

    #[test]
    fn the_frozen_circuit_takes_the_action_of_the_context() {
        let (tree, actions) = (tree(), [2, 0, 3]);
        let circuit = tree.freeze(&actions, 2);
        for seen in 0..16u64 {
            let inputs: Vec<bool> = tree.bits().iter().map(|bit| seen >> bit & 1 == 1).collect();
            let outputs = circuit.evaluate(&inputs);
            let action = u16::from(outputs[0]) + 2 * u16::from(outputs[1]);
            assert_eq!(action, actions[tree.context(&Bits([seen, 0, 0, 0]))]);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_are_a_tree_with_one_spelling(bytes in proptest::collection::vec(0u8..8, 0..64)) {
            let mut writer = Writer::new();
            writer.length(bytes.len());
            bytes.iter().for_each(|byte| writer.u16(if *byte < 5 { u16::MAX } else { u16::from(*byte) }));
            if let Ok(tree) = ContextTree::decode(&mut Reader::new(writer.as_bytes())) {
                let mut again = Writer::new();
                tree.encode(&mut again);
                prop_assert_eq!(again.as_bytes(), writer.as_bytes());
                prop_assert!(tree.context(&Bits::ZERO) < tree.count());
            }
        }
    }
}
