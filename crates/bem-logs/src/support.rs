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
/// How many times an action would have come up in a cell, taken as often as in the whole log, for its absence to be none of
/// chance. Where the logger acts there as on the whole, chance leaves it out in one case of e^20. Where the logger takes it more
/// rarely there, chance may do so more often (one case of 24, where 62 rows have a chance of 0.05): such an action is called
/// never taken, which costs a policy or a value, and makes no claim wrong.
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

    /// How many gates it takes at most to keep a circuit to it: six for every action, one more wherever it is listed, and for every
    /// cell three for each of two choices over a code of six bits. A wider code takes more of these and is that of more actions,
    /// which share most of what is counted for them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roles;
    use crate::cuts::Test;
    use crate::design::Design;
    use bem_base::environment::Bits;
    use bem_base::prng::Prng;
    use bem_data::Table;
    use bem_synth::policy::{Player, Policy, action_bits};
    use std::fmt::Write as _;

    /// Features of drawn cells; each is one bit.
    const FEATURES: usize = 8;

    /// A tree with so many cells, in each of which about so many of a hundred actions were never taken, but not all of them.
    fn drawn(prng: &mut Prng, actions: usize, cells: usize, missing: u64) -> Support {
        fn node(prng: &mut Prng, first: usize, cells: usize) -> Node {
            if cells == 1 {
                return Node::Cell(first);
            }
            let without = 1 + prng.below(cells as u64 - 1) as usize;
            let cut = Cut { feature: prng.below(FEATURES as u64) as usize, test: Test::Set };
            let (left, right) = (node(prng, first, without), node(prng, first + without, cells - without));
            Node::Split(cut, Box::new(left), Box::new(right))
        }
        let root = node(prng, 0, cells);
        let mut never = Vec::new();
        for _ in 0..cells {
            let mut own: Vec<bool> = (0..actions).map(|_| prng.below(100) < missing).collect();
            own[prng.below(actions as u64) as usize] = false;
            never.push(own);
        }
        Support { root, never, of: Vec::new() }
    }

    #[test]
    fn what_it_costs_to_keep_to_a_log_is_counted_before_it_is_built() {
        let mut prng = Prng::stream(1, "support");
        for actions in [2usize, 3, 5, 17, 64, 65, 200, 1_024] {
            for cells in [1, 2, 7, CELLS_MAX] {
                for missing in [0, 5, 50, 95] {
                    let found = drawn(&mut prng, actions, cells, missing);
                    let code = action_bits(actions as u16);
                    let mut builder = Builder::new(FEATURES + code);
                    let action: Vec<Signal> =
                        (0..code).map(|place| builder.input(FEATURES + place)).collect();
                    let fallbacks: Vec<u16> = (0..cells).map(|_| prng.below(actions as u64) as u16).collect();
                    let kept = found.build(&mut builder, &action, &fallbacks, &|cut| cut.feature);
                    let (gates, cost) = (builder.gate_count(), found.cost());
                    assert!(gates <= cost, "{actions} {cells} {missing}: {gates} gates cost {cost}");
                    if missing == 0 {
                        assert_eq!((kept, cost), (action, 0), "nothing is missing");
                    }
                    // What is counted is taken from what a vote may cost: twice as much would be too much.
                    if (actions, cells, missing) == (64, CELLS_MAX, 50) {
                        assert!(cost < 2 * gates, "{gates} gates cost {cost}");
                    }
                }
            }
        }
    }

    #[test]
    fn in_place_of_what_was_never_done_comes_what_gains_most_among_the_rest() {
        let cut = Cut { feature: 0, test: Test::Set };
        let found = Support {
            root: Node::Split(cut, Box::new(Node::Cell(0)), Box::new(Node::Cell(1))),
            never: vec![vec![false; 3], vec![false, true, false]],
            of: vec![0, 0, 1, 1, 1],
        };
        // By row and action; action 1 gains most everywhere.
        let gains = [[1, 5, 0], [0, 5, 4], [3, 9, 1], [0, 9, 4], [1, 9, 0]];
        let gain = |row: u32, action: u16| gains[row as usize][usize::from(action)];
        assert_eq!(found.fallbacks(&[0, 1, 2, 3, 4], &gain), [1, 2], "4 and 5 in the second cell");
        assert_eq!(found.fallbacks(&[0, 1, 2, 4], &gain), [1, 0], "4 and 1 without one of its rows");
        assert_eq!(found.fallbacks(&[], &gain), [0, 0], "of equals the first");
        assert_eq!((found.kept(0, 1, &[1, 2]), found.kept(2, 1, &[1, 2])), (1, 2));
        assert_eq!((found.kept(2, 0, &[1, 2]), found.kept(2, 7, &[1, 2])), (0, 2), "no log knows action 7");
        assert_eq!((found.bars(0), found.bars(1)), (false, true));
    }

    #[test]
    fn an_action_is_found_among_few_and_among_many() {
        const ACTIONS: usize = 5;
        for pattern in 0..1u32 << ACTIONS {
            for mark in [false, true] {
                let marks: Vec<bool> = (0..ACTIONS).map(|action| pattern >> action & 1 == 1).collect();
                let mut builder = Builder::new(3);
                let code: Vec<Signal> = (0..3).map(|place| builder.input(place)).collect();
                let found = is_among(&mut builder, &code, &marks, mark);
                // At most two of five are listed: two inverters aside three bits take two gates each, and one joins the two.
                assert!(builder.gate_count() <= 3 + 2 * 2 + 1 + 1, "{marks:?} {mark}");
                let policy = Policy::close(builder, 3, 2, &[found], &[]).unwrap();
                let mut player = Player::new(&policy);
                for (action, own) in marks.iter().enumerate() {
                    player.begin();
                    let said = player.act(&Bits([action as u64, 0, 0, 0])) == 1;
                    assert_eq!(said, *own == mark, "{marks:?} {mark} {action}");
                }
            }
        }
    }

    #[test]
    fn the_circuit_keeps_every_action_of_every_row_to_what_the_log_did() {
        let mut prng = Prng::stream(2, "support");
        let mut text = "x,c,b,a,r\n".to_string();
        for _ in 0..3_000 {
            let (x, word, bit) = (prng.below(10), ["u", "v", "w"][prng.below(3) as usize], prng.below(2));
            // Action 2 is never taken above 5, action 0 never below with v, and action 1 never where only the bit is set.
            let action = match prng.below(3) {
                2 if 5 < x => prng.below(2),
                0 if x <= 5 && word == "v" => 1 + prng.below(2),
                1 if x <= 5 && word == "w" && bit == 1 => 2 * prng.below(2),
                other => other,
            };
            let _ = writeln!(text, "{x},{word},{bit},{action},{}", prng.below(2));
        }
        let roles = Roles {
            features: ["x", "c", "b"].map(str::to_string).to_vec(),
            action: Some("a".to_string()),
            reward: Some("r".to_string()),
            ..Roles::default()
        };
        let log = Log::new(&Table::from_csv(&text).unwrap(), &roles, None).unwrap();
        let every: Vec<u32> = (0..3_000).collect();
        let support = Support::new(&log, &every);
        assert!(
            (0..3).all(|action| support.bars(action)),
            "each of them is missing somewhere: {:?}",
            support.cuts()
        );
        assert!(every.iter().all(|row| !support.is_never(*row, log.outcomes[*row as usize].action)));
        let fallbacks = support.fallbacks(&every, &|row, action| i64::from(row) * i64::from(action) % 7);
        let design = Design::of(&log, &support.cuts()).unwrap();
        let bits = design.encoder.bits();
        let mut builder = Builder::new(bits + 2);
        let action = [builder.input(bits), builder.input(bits + 1)];
        let kept = support.build(&mut builder, &action, &fallbacks, &|cut| design.bit_of(cut));
        let policy = Policy::close(builder, bits + 2, 3, &kept, &[]).unwrap();
        let mut player = Player::new(&policy);
        let mut replaced = 0;
        for row in every {
            for action in 0..3u16 {
                let mut seen = design.rows[row as usize];
                seen.set_field(bits, 2, u64::from(action));
                player.begin();
                let want = support.kept(row, action, &fallbacks);
                assert_eq!(player.act(&seen), want, "row {row}, action {action}");
                assert!(!support.is_never(row, want), "row {row}: the log never took {want}");
                replaced += u32::from(want != action);
            }
        }
        // Four rows of ten lack action 2, two of ten action 0, and one of ten action 1.
        assert!((1_800..2_400).contains(&replaced), "{replaced}");
    }
}
