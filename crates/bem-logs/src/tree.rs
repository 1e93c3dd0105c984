//! Decision trees over bits that maximise the expected gain: every row has a gain for every action.
//!
//! A split is chosen by how much of the gains' variance it explains; with labels that is Gini's rule. The tree grows at the
//! leaf that promises most, so that its first splits are the best small tree, and a size is chosen on held-out rows.

use bem_base::environment::Bits;
use bem_circuit::netlist::{Builder, Signal};
use bem_synth::policy::action_bits;

/// Rows of a leaf at least.
const LEAF_ROWS_MIN: usize = 2;

/// A node; splits come in the order in which they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    /// What is done if this is a leaf.
    action: u16,
    /// The split, if there is one: its number, its bit, and where it goes on without and with the bit.
    split: Option<(usize, u16, usize, usize)>,
}

/// A tree that can be cut to any number of leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    nodes: Vec<Node>,
    splits: usize,
}

/// A leaf that may be split further.
struct Leaf {
    node: usize,
    rows: Vec<u32>,
    /// What the best split explains, and its bit.
    best: Option<(i128, u16)>,
}

/// Grows a tree with at most so many leaves. `gains` has for every row one number for every action.
pub fn grow(rows: &[Bits], members: &[u32], gains: &[i64], actions: usize, leaves_max: usize) -> Tree {
    let width = rows.iter().fold(Bits::ZERO, |mut all, row| {
        all.0.iter_mut().zip(row.0).for_each(|(word, bits)| *word |= bits);
        all
    });
    let bits: Vec<u16> =
        (0..width.0.len() * 64).filter(|bit| width.get(*bit)).map(|bit| bit as u16).collect();
    let grower = Grower { rows, gains, actions, bits };
    let mut tree = Tree { nodes: vec![grower.leaf(members)], splits: 0 };
    let mut open = vec![Leaf { node: 0, rows: members.to_vec(), best: grower.best(members) }];
    while tree.splits + 1 < leaves_max {
        let promise = |leaf: &Leaf| leaf.best.map_or(0, |(explained, _)| explained);
        let Some(place) = (0..open.len()).rev().max_by_key(|place| promise(&open[*place])) else { break };
        if promise(&open[place]) <= 0 {
            break;
        }
        let leaf = open.swap_remove(place);
        let Some((_, bit)) = leaf.best else { break };
        let (with, without): (Vec<u32>, Vec<u32>) =
            leaf.rows.iter().partition(|row| rows[**row as usize].get(usize::from(bit)));
        let first = tree.nodes.len();
        tree.nodes[leaf.node].split = Some((tree.splits, bit, first, first + 1));
        tree.splits += 1;
        for members in [without, with] {
            tree.nodes.push(grower.leaf(&members));
            open.push(Leaf { node: tree.nodes.len() - 1, best: grower.best(&members), rows: members });
        }
    }
    tree
}

struct Grower<'a> {
    rows: &'a [Bits],
    gains: &'a [i64],
    actions: usize,
    bits: Vec<u16>,
}

impl Grower<'_> {
    fn gain(&self, row: u32) -> &[i64] {
        &self.gains[row as usize * self.actions..][..self.actions]
    }

    fn sums(&self, members: &[u32]) -> Vec<i64> {
        let mut sums = vec![0; self.actions];
        for row in members {
            sums.iter_mut().zip(self.gain(*row)).for_each(|(sum, gain)| *sum += gain);
        }
        sums
    }

    fn leaf(&self, members: &[u32]) -> Node {
        let sums = self.sums(members);
        let action = (0..self.actions).rev().max_by_key(|action| sums[*action]).unwrap_or(0);
        Node { action: action as u16, split: None }
    }

    /// The split that explains most, if any explains something.
    fn best(&self, members: &[u32]) -> Option<(i128, u16)> {
        if members.len() < 2 * LEAF_ROWS_MIN {
            return None;
        }
        let all = self.sums(members);
        let width = 256;
        let mut with = vec![0i64; width * self.actions];
        let mut counts = vec![0usize; width];
        for row in members {
            let gain = self.gain(*row);
            for (word, bits) in self.rows[*row as usize].0.iter().enumerate() {
                let mut left = *bits;
                while left != 0 {
                    let bit = word * 64 + left.trailing_zeros() as usize;
                    left &= left - 1;
                    counts[bit] += 1;
                    let sums = &mut with[bit * self.actions..][..self.actions];
                    sums.iter_mut().zip(gain).for_each(|(sum, gain)| *sum += gain);
                }
            }
        }
        let square = |sums: &mut dyn Iterator<Item = i64>, count: usize| -> i128 {
            let total: i128 = sums.map(|sum| i128::from(sum) * i128::from(sum)).sum();
            (total << 8) / count.max(1) as i128
        };
        let whole = square(&mut all.iter().copied(), members.len());
        let mut best: Option<(i128, u16)> = None;
        for bit in &self.bits {
            let place = usize::from(*bit);
            let count = counts[place];
            if count < LEAF_ROWS_MIN || members.len() - count < LEAF_ROWS_MIN {
                continue;
            }
            let sums = &with[place * self.actions..][..self.actions];
            let explained = square(&mut sums.iter().copied(), count)
                + square(&mut all.iter().zip(sums).map(|(all, with)| all - with), members.len() - count)
                - whole;
            if best.is_none_or(|(most, _)| most < explained) {
                best = Some((explained, *bit));
            }
        }
        best.filter(|(explained, _)| 0 < *explained)
    }
}

impl Tree {
    /// Leaves of the whole tree.
    pub fn leaves(&self) -> usize {
        self.splits + 1
    }

    /// What the tree cut to so many leaves does.
    pub fn choose(&self, row: &Bits, leaves: usize) -> u16 {
        let mut node = &self.nodes[0];
        while let Some((number, bit, without, with)) = node.split.filter(|split| split.0 + 1 < leaves) {
            let _ = number;
            node = &self.nodes[if row.get(usize::from(bit)) { with } else { without }];
        }
        node.action
    }

    /// The action's bits of the tree cut to so many leaves, over all observation bits.
    pub fn build(&self, builder: &mut Builder, actions: u16, leaves: usize) -> Vec<Signal> {
        self.build_node(builder, 0, action_bits(actions), leaves)
    }

    fn build_node(&self, builder: &mut Builder, node: usize, width: usize, leaves: usize) -> Vec<Signal> {
        let Node { action, split } = self.nodes[node];
        match split.filter(|split| split.0 + 1 < leaves) {
            None => (0..width).map(|bit| Signal::constant(action >> bit & 1 == 1)).collect(),
            Some((_, bit, without, with)) => {
                let otherwise = self.build_node(builder, without, width, leaves);
                let then = self.build_node(builder, with, width, leaves);
                let chooses = builder.input(usize::from(bit));
                (then.iter().zip(&otherwise))
                    .map(|(then, other)| builder.mux(chooses, *then, *other))
                    .collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;
    use bem_synth::policy::{Player, Policy};

    #[test]
    fn a_tree_is_found_again_and_its_circuit_does_the_same_at_every_size() {
        let mut prng = Prng::stream(1, "tree");
        let rows: Vec<Bits> = (0..2_000).map(|_| Bits([prng.below(256), 0, 0, 0])).collect();
        // Action 2 if bit 3; otherwise bit 5 decides between 0 and 1.
        let right = |row: &Bits| if row.get(3) { 2 } else { u16::from(row.get(5)) };
        let gains: Vec<i64> = rows
            .iter()
            .flat_map(|row| (0..3).map(|action| i64::from(action == right(row)) * 100).collect::<Vec<_>>())
            .collect();
        let members: Vec<u32> = (0..2_000).collect();
        let tree = grow(&rows, &members, &gains, 3, 16);
        assert_eq!(tree.leaves(), 3, "pure leaves are not split");
        assert!(rows.iter().all(|row| tree.choose(row, 3) == right(row)));
        for leaves in 1..=3 {
            let mut builder = Builder::new(8);
            let action = tree.build(&mut builder, 3, leaves);
            let policy = Policy::close(builder, 8, 3, &action, &[]).unwrap();
            let mut player = Player::new(&policy);
            assert!(rows.iter().all(|row| player.act(row) == tree.choose(row, leaves)));
        }
    }
}
