//! What an agent sees of the grid: seven planes of five by five cells around it, and its own body.
//!
//! No identity of a rule, no progress, no validity, no open window. The plane of the pending waypoint is part of
//! what is perceived, in training and test alike; nothing is ever taught from it. Clauses: CUR-3, CUR-9.

use super::world::{Cell, Event, World};
use bem_base::environment::{Bits, Field};

/// Planes of the view: wall, first and second kind of resource, hazard, pending and later waypoint, contamination.
pub const PLANES: usize = 7;
/// Cells along a side of the view.
pub const SIDE: usize = 5;
/// Cells of a plane.
pub const CELLS: usize = SIDE * SIDE;
/// Widths of the body fields: horizontal and vertical direction of the pending waypoint, in the band, health and
/// energy in quarters, last event, last move.
pub const BODY_WIDTHS: [u16; 7] = [2, 2, 1, 2, 2, 4, 3];

/// All cells of one row of the view.
const ROW: u32 = (1 << SIDE) - 1;

/// The walls that are seen from a cell: the edge of the grid. Row by row, since it is worked out at every tick.
fn walls(agent: Cell, size: i32) -> u32 {
    let seen = |place: i32, agent: i32| {
        let at = place - agent + 2;
        if (0..SIDE as i32).contains(&at) { 1u32 << at } else { 0 }
    };
    // Columns of the view that lie in the grid, and those of the edge.
    let left = (2 - agent.x).max(0);
    let right = (agent.x + 3 - size).max(0);
    let inside = ROW >> right & ROW << left;
    let edge = seen(0, agent.x) | seen(size - 1, agent.x);
    (0..SIDE as i32).fold(0, |plane, row| {
        let y = agent.y + row - 2;
        let cells = match y {
            _ if y < 0 || size <= y => 0,
            _ if y == 0 || y == size - 1 => inside,
            _ => edge,
        };
        plane | cells << (SIDE as i32 * row)
    })
}

/// The contaminated cells that are seen.
fn contaminated(world: &World) -> u32 {
    if world.config().contamination.0 == 0 {
        return 0;
    }
    let agent = world.agent();
    (0..CELLS as i32).fold(0, |plane, place| {
        let cell = Cell { x: agent.x + place % SIDE as i32 - 2, y: agent.y + place / SIDE as i32 - 2 };
        plane | u32::from(world.is_contaminated(cell)) << place
    })
}

/// One tick's perception.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Bit `5 * row + column` of each plane, the agent in the middle.
    pub planes: [u32; PLANES],
    /// Sign of the way to the pending waypoint, right and down positive.
    pub direction: (i32, i32),
    /// Whether the pending waypoint is within the band.
    pub in_band: bool,
    /// Health and energy, in quarters from 0 to 3.
    pub body: (u8, u8),
    /// What was perceived last.
    pub event: Event,
    /// The last move.
    pub last_action: u16,
}

impl View {
    /// Looks around.
    pub fn of(world: &World) -> View {
        let agent = world.agent();
        let mut planes = [0; PLANES];
        let mut mark = |plane: usize, cell: Cell| {
            let (column, row) = (cell.x - agent.x + 2, cell.y - agent.y + 2);
            if (0..5).contains(&column) && (0..5).contains(&row) {
                planes[plane] |= 1u32 << (5 * row + column);
            }
        };
        for (cell, kind) in world.resources() {
            mark(1 + usize::from(*kind), *cell);
        }
        world.hazards().iter().for_each(|cell| mark(3, *cell));
        let (waypoints, next) = world.waypoints();
        for (position, cell) in waypoints.iter().enumerate().skip(next) {
            mark(if position == next { 4 } else { 5 }, *cell);
        }
        planes[0] = walls(agent, world.config().size as i32);
        planes[6] = contaminated(world);
        let direction =
            world.pending().map_or((0, 0), |cell| ((cell.x - agent.x).signum(), (cell.y - agent.y).signum()));
        let quarter = |value: i32| (value.clamp(0, 999) / 250) as u8;
        let (health, energy) = world.body();
        let (event, last_action) = world.last();
        View {
            planes,
            direction,
            in_band: world.is_in_band(),
            body: (quarter(health), quarter(energy)),
            event,
            last_action,
        }
    }

    /// The same as observation bits: the planes, then the body fields.
    pub fn to_bits(&self) -> Bits {
        let mut bits = Bits::ZERO;
        for (plane, cells) in self.planes.iter().enumerate() {
            bits.set_field(plane * CELLS, CELLS, u64::from(*cells));
        }
        let sign = |value: i32| (value + 1) as u64;
        let values = [
            sign(self.direction.0),
            sign(self.direction.1),
            u64::from(self.in_band),
            u64::from(self.body.0),
            u64::from(self.body.1),
            self.event as u64,
            u64::from(self.last_action),
        ];
        let mut low = PLANES * CELLS;
        for (width, value) in BODY_WIDTHS.iter().zip(values) {
            bits.set_field(low, usize::from(*width), value);
            low += usize::from(*width);
        }
        bits
    }

    /// The unnamed grouping of those bits: one field a row of each plane, then the body.
    pub fn fields() -> Vec<Field> {
        let rows = (0..PLANES * SIDE).map(|row| Field { low: (row * SIDE) as u16, width: SIDE as u16 });
        let mut low = (PLANES * CELLS) as u16;
        let body = BODY_WIDTHS.iter().map(|width| {
            let field = Field { low, width: *width };
            low += width;
            field
        });
        rows.chain(body).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rulegrid::config::GridConfig;

    #[test]
    fn walls_are_the_edge_of_the_grid_wherever_one_stands() {
        for size in [6i32, 7, 10, 32] {
            let world = World::new(GridConfig { size: size as u32, ..GridConfig::of_difficulty(0) });
            for (x, y) in (1..size - 1).flat_map(|y| (1..size - 1).map(move |x| (x, y))) {
                for place in 0..CELLS as i32 {
                    let cell = Cell { x: x + place % 5 - 2, y: y + place / 5 - 2 };
                    let inside = (0..size).contains(&cell.x) && (0..size).contains(&cell.y);
                    let seen = walls(Cell { x, y }, size) >> place & 1 == 1;
                    assert_eq!(seen, inside && world.is_wall(cell), "{cell:?} from {x}, {y} of {size}");
                }
            }
        }
    }
}
