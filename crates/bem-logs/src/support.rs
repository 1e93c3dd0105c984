//! Where a log never took an action: cells of rows in which one is missing that should have come up many times.
//!
//! Of what an action brings there a log says nothing, and a model of rewards only guesses. Cells are found by cutting the rows
//! where the logged actions differ most ([`crate::cuts`]); an action that is missing in one counts as never taken there if, as often
//! as in the whole log, it would have been taken so many times. Decision D-315. Must not know rewards. Clauses: GLE-9.

use crate::cuts::{self, Cut, Gains};
use crate::log::Log;
use bem_circuit::netlist::{Builder, Signal};
use bem_data::feature::Value;

/// Cells that are looked at.
const CELLS_MAX: usize = 32;
/// How many times an action would have come up in a cell for its absence to be none of chance: that has one chance in e^20.
const EXPECTED_MIN: usize = 20;

/// One node: a cell, or a cut and where it goes on without and with it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Cell(usize),
    Split(Cut, Box<Node>, Box<Node>),
}

/// Where which actions were never taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    root: Node,
    /// For every cell, for every action whether it was never taken.
    never: Vec<Vec<bool>>,
    /// The cell of every row.
    of: Vec<u32>,
}

impl Support {
    /// What these rows of a log say; labels say of every action what it brings.
    pub fn new(log: &Log, rows: &[u32]) -> Support {
        let mut found = Support {
            root: Node::Cell(0),
            never: vec![vec![false; log.actions.len()]],
            of: vec![0; log.rows.len()],
        };
        if log.is_labelled {
            return found;
        }
        let parts = cuts::cut(log, rows, Gains::Taken(&log.outcomes), CELLS_MAX);
        let mut counts = vec![vec![0usize; log.actions.len()]; parts.parts.len()];
        for row in rows {
            let mut at = 0;
            loop {
                counts[at][usize::from(log.outcomes[*row as usize].action)] += 1;
                let Some((cut, without, with)) = &parts.parts[at].split else { break };
                at = if cut.holds(&log.rows[*row as usize]) { *with } else { *without };
            }
        }
        // Whether an action was taken at all is known of those that never were.
        let never = counts[0].iter().map(|count| *count == 0).collect();
        found.never.clear();
        found.root = found.joined(&parts, &counts, 0, never);
        found.of = log.rows.iter().map(|values| found.cell(values) as u32).collect();
        found
    }

    /// A part as cells; parts that miss the same actions are one.
    fn joined(&mut self, parts: &cuts::Parts, counts: &[Vec<usize>], at: usize, above: Vec<bool>) -> Node {
        let rows: usize = counts[at].iter().sum();
        let all: usize = counts[0].iter().sum();
        let is_missing = |action: usize| {
            counts[at][action] == 0 && EXPECTED_MIN * all <= counts[0][action].saturating_mul(rows)
        };
        let never: Vec<bool> =
            above.iter().enumerate().map(|(action, never)| *never || is_missing(action)).collect();
        if let Some((cut, without, with)) = parts.parts[at].split {
            let known = self.never.len();
            let without = self.joined(parts, counts, without, never.clone());
            let with = self.joined(parts, counts, with, never.clone());
            match (&without, &with) {
                (Node::Cell(left), Node::Cell(right)) if self.never[*left] == self.never[*right] => {
                    let same = self.never[*left].clone();
                    self.never.truncate(known);
                    self.never.push(same);
                    return Node::Cell(known);
                }
                _ => return Node::Split(cut, Box::new(without), Box::new(with)),
            }
        }
        self.never.push(never);
        Node::Cell(self.never.len() - 1)
    }

    fn cell(&self, values: &[Value]) -> usize {
        let mut node = &self.root;
        loop {
            match node {
                Node::Cell(cell) => return *cell,
                Node::Split(cut, without, with) => node = if cut.holds(values) { with } else { without },
            }
        }
    }

    /// Whether the log never took an action where it looks like in this row; one that the log does not know it never took.
    pub fn is_never(&self, row: u32, action: u16) -> bool {
        let never = &self.never[self.of[row as usize] as usize];
        never.get(usize::from(action)).copied().unwrap_or(true)
    }

    /// The cuts between cells.
    pub fn cuts(&self) -> Vec<Cut> {
        fn walk(node: &Node, cuts: &mut Vec<Cut>) {
            if let Node::Split(cut, without, with) = node {
                cuts.push(*cut);
                walk(without, cuts);
                walk(with, cuts);
            }
        }
        let mut cuts = Vec::new();
        walk(&self.root, &mut cuts);
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// About how many gates it takes to keep a circuit to it.
    pub fn cost(&self) -> usize {
        let (cells, actions) = (self.never.len(), self.never[0].len());
        let few = |never: &Vec<bool>| {
            let count = never.iter().filter(|never| **never).count();
            count.min(actions - count)
        };
        match self.never.iter().flatten().any(|never| *never) {
            true => 6 * actions + 36 * cells + self.never.iter().map(few).sum::<usize>(),
            false => 0,
        }
    }

    /// For every cell the action that gains most in these rows among those that the log took there.
    pub fn fallbacks(&self, rows: &[u32], gain: &dyn Fn(u32, u16) -> i64) -> Vec<u16> {
        let actions = self.never[0].len();
        let mut sums = vec![0i128; self.never.len() * actions];
        for row in rows {
            let cell = self.of[*row as usize] as usize;
            for action in 0..actions {
                sums[cell * actions + action] += i128::from(gain(*row, action as u16));
            }
        }
        let best = |(cell, never): (usize, &Vec<bool>)| {
            let taken = (0..actions).rev().filter(|action| !never[*action]);
            taken.max_by_key(|action| sums[cell * actions + action]).unwrap_or(0) as u16
        };
        self.never.iter().enumerate().map(best).collect()
    }

    /// What is done in a row in place of an action: the action itself, or the fallback where the log never took it.
    pub fn kept(&self, row: u32, action: u16, fallbacks: &[u16]) -> u16 {
        match self.is_never(row, action) {
            true => fallbacks[self.of[row as usize] as usize],
            false => action,
        }
    }

    /// Whether a policy that always does this is kept to something else somewhere.
    pub fn bars(&self, action: u16) -> bool {
        self.never.iter().any(|never| never[usize::from(action)])
    }

    /// The same as a circuit: the bits of an action, kept to what the log took. `bit` says where a cut is seen.
    pub fn build(
        &self,
        builder: &mut Builder,
        action: &[Signal],
        fallbacks: &[u16],
        bit: &dyn Fn(&Cut) -> usize,
    ) -> Vec<Signal> {
        self.build_node(&self.root, builder, action, fallbacks, bit)
    }

    fn build_node(
        &self,
        node: &Node,
        builder: &mut Builder,
        action: &[Signal],
        fallbacks: &[u16],
        bit: &dyn Fn(&Cut) -> usize,
    ) -> Vec<Signal> {
        match node {
            Node::Cell(cell) => {
                let never = &self.never[*cell];
                if never.iter().all(|never| !never) {
                    return action.to_vec();
                }
                let is_taken = is_among(builder, action, never, false);
                let other = |place: usize| Signal::constant(fallbacks[*cell] >> place & 1 == 1);
                (action.iter().enumerate())
                    .map(|(place, own)| builder.mux(is_taken, *own, other(place)))
                    .collect()
            }
            Node::Split(cut, without, with) => {
                let without = self.build_node(without, builder, action, fallbacks, bit);
                let with = self.build_node(with, builder, action, fallbacks, bit);
                let holds = builder.input(bit(cut));
                with.iter().zip(&without).map(|(with, without)| builder.mux(holds, *with, *without)).collect()
            }
        }
    }
}

/// Whether an action is one of those that are marked so.
fn is_among(builder: &mut Builder, action: &[Signal], marks: &[bool], mark: bool) -> Signal {
    let marked = marks.iter().filter(|own| **own == mark).count();
    // Of few and many the few are listed.
    if marks.len() < 2 * marked {
        let other = is_among(builder, action, marks, !mark);
        return builder.not(other);
    }
    let mut found = Signal::FALSE;
    for number in (0..marks.len()).filter(|number| marks[*number] == mark) {
        let mut same = Signal::TRUE;
        for (place, own) in action.iter().enumerate() {
            let wanted = if number >> place & 1 == 1 { *own } else { builder.not(*own) };
            same = builder.and(same, wanted);
        }
        found = builder.or(found, same);
    }
    found
}
