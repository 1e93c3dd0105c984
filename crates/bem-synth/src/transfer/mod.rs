//! What was learned in one shape, said apart from its size and built for another: other widths, fields, numbers of actions.
//!
//! A statement speaks of groups of bits: the fields of the observation and what a memory structure shows. Where two worlds have
//! groups that correspond, a statement that speaks of whole groups can be said of the other ones: the parity of all bits of a
//! field, more than half of them, one field below another, the sum of two fields, what a stack shows. Nothing here is believed:
//! what comes out is a candidate like any other, with a statement that its circuit must be shown to fulfil, and a gate to
//! pass. A statement that cannot be said of the other world is not carried over. Must not know games.
//! Clauses: SCC-2, GLE-10, PIPE-3; decision D-136.

mod build;
mod numbers;
mod renamed;
mod said;

pub use self::renamed::renamed;

use crate::function::Function;
use crate::hypothesis::{Stated, assemble};
use crate::memory::{Device, row_groups};
use crate::policy::action_bits;
use crate::statement::{Choice, Formula, Index, Statement};
use bem_base::environment::{Field, Shape};
use std::sync::Arc;

/// Which group of bits of one row stands for which of another.
#[derive(Clone, Debug)]
pub struct Moves {
    /// Groups of the row that a statement was made for, and those that take their place.
    groups: Vec<(Field, Field)>,
    /// Bits of the observation there.
    pub observation_bits: u16,
}

impl Moves {
    /// From one world's observation to another's; none where their fields do not correspond.
    pub fn between(from: &[Field], to: &[Field], bits: (u16, u16)) -> Option<Moves> {
        let singles = |fields: &[Field]| fields.iter().all(|field| field.width == 1);
        let mut groups: Vec<(Field, Field)> = if from.len() == to.len() && !from.is_empty() {
            from.iter().copied().zip(to.iter().copied()).collect()
        } else if singles(from) && singles(to) {
            vec![(Field { low: 0, width: bits.0 }, Field { low: 0, width: bits.1 })]
        } else {
            return None;
        };
        // Where nothing is seen there is nothing to speak of.
        groups.retain(|(from, to)| 0 < to.width || from.width == 0);
        Some(Moves { groups, observation_bits: bits.1 })
    }

    /// The field that takes the place of this one.
    pub fn field(&self, field: Field) -> Option<Field> {
        let same = self.groups.iter().find(|(from, _)| *from == field);
        let all = || self.groups.len() == 1 && field == self.groups[0].0;
        same.map(|(_, to)| *to).or_else(|| all().then(|| self.groups[0].1))
    }

    /// The bit that takes the place of this one: the same bit of a group that is as wide as before, or its first or last.
    pub fn bit(&self, bit: Index) -> Option<Index> {
        let (from, to) =
            self.groups.iter().find(|(from, _)| (from.low..from.low + from.width).contains(&bit))?;
        let offset = bit - from.low;
        match () {
            () if from.width == to.width => Some(to.low + offset),
            () if offset == 0 => Some(to.low),
            () if offset + 1 == from.width => Some(to.low + to.width - 1),
            () => None,
        }
    }

    /// The bits that take the place of a set: whole groups for whole groups, and single bits for others.
    pub fn bits(&self, bits: &[Index]) -> Option<Vec<Index>> {
        let mut moved = Vec::new();
        let mut left: Vec<Index> = bits.to_vec();
        for (from, to) in &self.groups {
            let whole = from.low..from.low + from.width;
            if 1 < from.width && whole.clone().all(|bit| left.contains(&bit)) {
                left.retain(|bit| !whole.contains(bit));
                moved.extend(to.low..to.low + to.width);
            }
        }
        for bit in left {
            moved.push(self.bit(bit)?);
        }
        moved.sort_unstable();
        let count = moved.len();
        moved.dedup();
        (moved.len() == count).then_some(moved)
    }

    /// The groups, before and after.
    fn pairs(&self) -> &[(Field, Field)] {
        &self.groups
    }
}

/// Formulas for the bits of an action's code as a circuit and what it says, with the bits that it takes to say; none where one
/// cannot be built for this world.
pub fn stated(shape: &Shape, formulas: Vec<Formula>) -> Option<(Stated, u32)> {
    let width = usize::from(shape.observation_bits);
    let functions: Vec<Function> =
        formulas.into_iter().map(|formula| build::function(formula, width)).collect::<Option<_>>()?;
    let length = functions.iter().map(|function| function.description_length).sum();
    Some((assemble(shape, None, &functions)?, length))
}

/// A circuit's statement said of another world and built there; none where it cannot be.
pub(crate) fn carried(
    statement: &Statement,
    (from_bits, from_fields): (u16, &[Field]),
    to: &Shape,
) -> Option<Stated> {
    let Statement::Acts { memory: None, choice } = statement else { return None };
    let moves = Moves::between(from_fields, &to.fields, (from_bits, to.observation_bits))?;
    let Choice::Bits(formulas) = choice else { return None };
    let functions = functions(formulas, &moves, usize::from(to.observation_bits), to)?;
    assemble(to, None, &functions)
}

/// A memory structure and its functions said of another world and built there; none where they cannot be.
pub(crate) fn carried_structure(
    device: &Arc<dyn Device>,
    bits: &[Function],
    (from_bits, from_fields): (u16, &[Field]),
    to: &Shape,
    cells: usize,
) -> Option<(Arc<dyn Device>, Vec<Function>)> {
    let moves = Moves::between(from_fields, &to.fields, (from_bits, to.observation_bits))?;
    let device_there = crate::memory::resize(&device.moved(&moves)?, cells);
    let before = row_groups(from_fields, usize::from(from_bits), Some(device.as_ref()));
    let after = row_groups(&to.fields, usize::from(to.observation_bits), Some(device_there.as_ref()));
    let width = usize::from(to.observation_bits) + device_there.shows().iter().sum::<usize>();
    let row = Moves::between(&before, &after, (from_bits, to.observation_bits))?;
    let formulas: Vec<Formula> = bits.iter().map(|function| function.statement.clone()).collect();
    Some((device_there, functions(&formulas, &row, width, to)?))
}

/// One function for every bit of the other world's action codes.
fn functions(formulas: &[Formula], moves: &Moves, width: usize, to: &Shape) -> Option<Vec<Function>> {
    let wanted = action_bits(to.actions);
    let one_by_one = || -> Option<Vec<Formula>> {
        if formulas.len() != wanted {
            return None;
        }
        formulas.iter().map(|formula| said::elsewhere(formula, moves)).collect()
    };
    let moved = one_by_one().or_else(|| numbers::as_a_number(formulas, moves, wanted))?;
    moved.into_iter().map(|formula| build::function(formula, width)).collect()
}
