//! The decision tree of a directory: derived from the buckets' subcubes, walked where no table is kept, and frozen into
//! a circuit.
//!
//! Clauses: VM-6, D-41.

use super::{Directory, RouteInput, Subcube};
use bem_circuit::netlist::{Builder, Netlist, NetlistError, Signal};

/// One place of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A leaf.
    Bucket(u16),
    /// A tested signature bit: the side where it is zero comes next, the other one at `odd`.
    Test { bit: u8, odd: u16 },
}

/// One place of a tree that tests single bits of STATE, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreePlace {
    /// A tested bit: the side where it is zero comes next.
    Bit(u16),
    /// A leaf.
    Bucket(u16),
}

/// The tree whose leaves are these subcubes, parents before children and the even side first; nothing if there is none.
///
/// Every place tests the lowest signature bit that all buckets below it depend on, so that equal subcubes give equal trees.
pub(super) fn nodes_of(subcubes: &[Subcube]) -> Option<Vec<Node>> {
    let mut nodes = Vec::with_capacity(2 * subcubes.len());
    // What is still to be built: its buckets, the bits tested above it, and the test whose odd side it is.
    let all: Vec<u16> = (0..subcubes.len() as u16).collect();
    let mut open = vec![(all, 0u64, None)];
    while let Some((buckets, tested, odd_of)) = open.pop() {
        let place = nodes.len();
        if let Some(test) = odd_of
            && let Node::Test { odd, .. } = &mut nodes[test]
        {
            *odd = place as u16;
        }
        let common =
            buckets.iter().fold(u64::MAX, |all, bucket| all & subcubes[usize::from(*bucket)].depends_on);
        match buckets[..] {
            [] => return None,
            [bucket] if subcubes[usize::from(bucket)].depends_on == tested => {
                nodes.push(Node::Bucket(bucket))
            }
            _ => {
                let free = common & !tested;
                if free == 0 {
                    return None;
                }
                let bit = free.trailing_zeros() as u8;
                nodes.push(Node::Test { bit, odd: 0 });
                let is_odd = |bucket: &u16| subcubes[usize::from(*bucket)].pattern >> bit & 1 == 1;
                let (odd, even) = buckets.into_iter().partition(is_odd);
                open.extend([(odd, tested | 1 << bit, Some(place)), (even, tested | 1 << bit, None)]);
            }
        }
    }
    Some(nodes)
}

/// The bucket of a signature.
#[inline]
pub(super) fn walk(nodes: &[Node], signature: u64) -> u16 {
    let mut place = 0;
    loop {
        match nodes[place] {
            Node::Bucket(bucket) => return bucket,
            Node::Test { bit, odd } if signature >> bit & 1 == 1 => place = usize::from(odd),
            Node::Test { .. } => place += 1,
        }
    }
}

impl Directory {
    /// The circuit that gives each bucket its code: inputs are the declared bits in their order. Nothing where routing
    /// depends on SHARED, which is no input of a circuit.
    pub fn freeze(&self, codes: &[u16], width: usize) -> Option<Result<Netlist, NetlistError>> {
        assert!(codes.len() == self.bucket_count(), "every bucket has a code");
        if self.inputs().iter().any(|input| matches!(input, RouteInput::Shared { .. })) {
            return None;
        }
        let mut builder = Builder::new(self.inputs().len());
        let parity = |builder: &mut Builder, bit: u8| {
            let members = self.columns().iter().enumerate().filter(|(_, column)| **column >> bit & 1 == 1);
            let terms: Vec<Signal> = members.map(|(place, _)| Signal::input(place)).collect();
            builder.xor_all(&terms)
        };
        // From the last place to the first, so that both sides of a test are built before it.
        let mut built: Vec<Vec<Signal>> = vec![Vec::new(); self.nodes.len()];
        for place in (0..self.nodes.len()).rev() {
            built[place] = match self.nodes[place] {
                Node::Bucket(bucket) => {
                    let code = codes[usize::from(bucket)];
                    (0..width).map(|bit| Signal::constant(code >> bit & 1 == 1)).collect()
                }
                Node::Test { bit, odd } => {
                    let test = parity(&mut builder, bit);
                    let sides: Vec<(Signal, Signal)> = built[usize::from(odd)]
                        .iter()
                        .copied()
                        .zip(built[place + 1].iter().copied())
                        .collect();
                    sides.into_iter().map(|(odd, even)| builder.mux(test, odd, even)).collect()
                }
            };
        }
        Some(builder.finish(&built[0]))
    }

    /// The tree, parents before children and the even side first; nothing where a test is more than one bit of STATE.
    pub fn places(&self) -> Option<Vec<TreePlace>> {
        let place = |node: &Node| match node {
            Node::Bucket(bucket) => Some(TreePlace::Bucket(*bucket)),
            Node::Test { bit, .. } => {
                let mut members = self.parity(usize::from(*bit));
                match (members.next(), members.next()) {
                    (Some(RouteInput::State(bit)), None) => Some(TreePlace::Bit(bit)),
                    _ => None,
                }
            }
        };
        self.nodes.iter().map(place).collect()
    }

    /// Pairs of buckets that are the two sides of one test, the even side first, in the order of the tree.
    pub fn siblings(&self) -> Vec<(u16, u16)> {
        let pair = |place: usize| match self.nodes.get(place..place + 3)? {
            [Node::Test { .. }, Node::Bucket(even), Node::Bucket(odd)] => Some((*even, *odd)),
            _ => None,
        };
        (0..self.nodes.len()).filter_map(pair).collect()
    }
}
