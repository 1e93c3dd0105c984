//! Where hazards, resources and waypoints come to lie: free cells only, from the stream the caller names.
//!
//! A kind that is switched off draws nothing, so that it leaves every stream where it was. Clause: CUR-3.

use super::World;
use super::cell::Cell;

impl World {
    /// Kinds whose introduction step has passed share the resources by weight.
    pub(super) fn spawn_resources(&mut self) {
        let (first, second) = self.config.resource_weights;
        let active = |start: u64, weight: u32| if start <= self.global_step { weight } else { 0 };
        let weights = (active(self.config.introduction.0, first), active(self.config.introduction.1, second));
        let total = weights.0 + weights.1;
        if total == 0 {
            return;
        }
        for number in 0..self.config.resources {
            // A fixed share instead of a draw, so that the second kind being off draws nothing.
            let kind = u8::from(number * total / self.config.resources >= weights.0);
            if let Some(cell) = self.free_cell(|_| true, true) {
                self.resources.push((cell, kind));
            }
        }
    }

    pub(super) fn is_free(&self, cell: Cell) -> bool {
        cell != self.agent
            && !self.hazards.contains(&cell)
            && !self.waypoints.contains(&cell)
            && !self.resources.iter().any(|(place, _)| *place == cell)
    }

    /// The inner cells where nothing lies, a bit for each column of every row. A grid has at most 32 of both.
    fn free_rows(&self) -> [u32; 32] {
        let (mut rows, last) = ([0; 32], self.config.size as usize - 1);
        rows[1..last].fill((1 << last) - 2);
        let resources = self.resources.iter().map(|(cell, _)| cell);
        let taken = self.hazards.iter().chain(&self.waypoints).chain(resources).chain([&self.agent]);
        taken.for_each(|cell| rows[cell.y as usize] &= !(1 << cell.x));
        rows
    }

    /// A free cell that suits, drawn from the layout or the dynamics stream; none is counted.
    pub(super) fn free_cell(&mut self, suits: impl Fn(Cell) -> bool, from_layout: bool) -> Option<Cell> {
        let mut rows = self.free_rows();
        for (y, row) in rows.iter_mut().enumerate() {
            let fits = |x: &u32| suits(Cell { x: *x as i32, y: y as i32 });
            *row = ones(*row).filter(fits).fold(0, |row, x| row | 1 << x);
        }
        self.drawn_from(&rows, from_layout)
    }

    /// One of these cells, drawn from the layout or the dynamics stream; that there is none is counted.
    fn drawn_from(&mut self, rows: &[u32; 32], from_layout: bool) -> Option<Cell> {
        let count: u32 = rows.iter().map(|row| row.count_ones()).sum();
        if count == 0 {
            self.counts.spawns_skipped += 1;
            return None;
        }
        let stream = if from_layout { &mut self.layout } else { &mut self.dynamics };
        let mut place = stream.below(u64::from(count)) as u32;
        for (y, row) in rows.iter().enumerate() {
            let here = row.count_ones();
            if place < here {
                return ones(*row).nth(place as usize).map(|x| Cell { x: x as i32, y: y as i32 });
            }
            place -= here;
        }
        None
    }

    /// Lays out a new sequence: each waypoint at the configured distance from the one before, if a cell is free there.
    pub(super) fn spawn_waypoints(&mut self, from_layout: bool) {
        self.waypoints.clear();
        let (least, most) = self.config.waypoint_distance;
        for _ in 0..self.config.waypoints {
            let previous = self.waypoints.last().copied().unwrap_or(self.agent);
            let mut rows = self.free_rows();
            let near = ring(&rows, previous, least, most);
            if near.iter().any(|row| *row != 0) {
                rows = near;
            }
            let cell = self.drawn_from(&rows, from_layout);
            self.waypoints.extend(cell);
        }
        (self.next, self.since_pending) = (0, 0);
    }
}

/// The places of the ones of a row, from the left.
fn ones(mut row: u32) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let place = row.trailing_zeros();
        row &= row.wrapping_sub(1);
        (place < u32::BITS).then_some(place)
    })
}

/// Those of the cells whose distance from another is within the bounds, diagonal moves counted as one.
fn ring(rows: &[u32; 32], from: Cell, least: u32, most: u32) -> [u32; 32] {
    // No cell is farther than 31 from another.
    let (least, most) = (least.min(32), most.min(32));
    // Columns at most so far away.
    let columns = |distance: i32| {
        let (low, high) = ((from.x - distance).max(0), (from.x + distance).min(31));
        ((1u64 << (high + 1)) - (1u64 << low)) as u32
    };
    let (wide, narrow) = (columns(most as i32), if least == 0 { 0 } else { columns(least as i32 - 1) });
    core::array::from_fn(|y| {
        let away = from.y.unsigned_abs().abs_diff(y as u32);
        match away {
            _ if most < away => 0,
            _ if least <= away => rows[y] & wide,
            _ => rows[y] & wide & !narrow,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_the_cells_of_its_distances() {
        let rows = core::array::from_fn(|y| 0x9E37_79B9u32.rotate_left(y as u32));
        for (from, least, most) in
            [((5, 5), 2, 4), ((1, 30), 0, 3), ((31, 0), 1, 1), ((16, 16), 40, 50), ((8, 3), 3, 7)]
        {
            let from = Cell { x: from.0, y: from.1 };
            let ring = ring(&rows, from, least, most);
            for (x, y) in (0..32).flat_map(|y| (0..32).map(move |x| (x, y))) {
                let is_near = (least..=most).contains(&Cell { x, y }.chebyshev(from));
                let is_there = rows[y as usize] >> x & 1 == 1;
                assert_eq!(ring[y as usize] >> x & 1 == 1, is_near && is_there, "{x}, {y} from {from:?}");
            }
        }
    }
}
