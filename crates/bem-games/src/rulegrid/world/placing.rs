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

    fn inner_cells(&self) -> impl Iterator<Item = Cell> + use<> {
        let last = self.config.size as i32 - 1;
        (1..last).flat_map(move |y| (1..last).map(move |x| Cell { x, y }))
    }

    /// A free cell that suits, drawn from the layout or the dynamics stream; none is counted.
    pub(super) fn free_cell(&mut self, suits: impl Fn(Cell) -> bool, from_layout: bool) -> Option<Cell> {
        let cells: Vec<Cell> =
            self.inner_cells().filter(|cell| self.is_free(*cell) && suits(*cell)).collect();
        if cells.is_empty() {
            self.counts.spawns_skipped += 1;
            return None;
        }
        let stream = if from_layout { &mut self.layout } else { &mut self.dynamics };
        Some(cells[stream.below(cells.len() as u64) as usize])
    }

    /// Lays out a new sequence: each waypoint at the configured distance from the one before, if a cell is free there.
    pub(super) fn spawn_waypoints(&mut self, from_layout: bool) {
        self.waypoints.clear();
        let (least, most) = self.config.waypoint_distance;
        for _ in 0..self.config.waypoints {
            let previous = self.waypoints.last().copied().unwrap_or(self.agent);
            let near = |cell: Cell| (least..=most).contains(&cell.chebyshev(previous));
            let suits = self.inner_cells().any(|cell| self.is_free(cell) && near(cell));
            let cell = self.free_cell(|cell| !suits || near(cell), from_layout);
            self.waypoints.extend(cell);
        }
        (self.next, self.since_pending) = (0, 0);
    }
}
