//! A cell of the grid and the moves between cells. Clause: CUR-3.

use crate::rulegrid::config::Metric;

/// A cell, from the upper left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Column.
    pub x: i32,
    /// Row.
    pub y: i32,
}

impl Cell {
    pub(super) fn chebyshev(self, other: Cell) -> u32 {
        self.x.abs_diff(other.x).max(self.y.abs_diff(other.y))
    }

    pub(super) fn distance(self, other: Cell, metric: Metric) -> u32 {
        match metric {
            Metric::Chebyshev => self.chebyshev(other),
            Metric::Manhattan => self.x.abs_diff(other.x) + self.y.abs_diff(other.y),
        }
    }

    /// The neighbour in the direction of a move: up, down, left, right; 4 stays.
    pub fn moved(self, action: u16) -> Cell {
        match action {
            0 => Cell { y: self.y - 1, ..self },
            1 => Cell { y: self.y + 1, ..self },
            2 => Cell { x: self.x - 1, ..self },
            3 => Cell { x: self.x + 1, ..self },
            _ => self,
        }
    }
}

/// Moves: up, down, left, right, stay.
pub const ACTIONS: u16 = 5;
