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
        let size = world.config().size as i32;
        for row in 0..5 {
            for column in 0..5 {
                let cell = Cell { x: agent.x + column - 2, y: agent.y + row - 2 };
                let inside = (0..size).contains(&cell.x) && (0..size).contains(&cell.y);
                if inside && world.is_wall(cell) {
                    mark(0, cell);
                } else if inside && world.is_contaminated(cell) {
                    mark(6, cell);
                }
            }
        }
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
