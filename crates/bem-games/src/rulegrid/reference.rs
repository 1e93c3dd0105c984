//! The best way to play a grid that is known here, for somebody who sees what a player sees.
//!
//! It looks three ticks ahead over the cells around it: resources pay when they are stepped on, hazards that are seen are
//! walked around, the pending waypoint pays where it comes within the band. Where that waypoint lies outside the view, all
//! places that its direction allows are equally likely, and what counts is how many of them a move brings into the band. Beyond
//! three ticks every tick on the way costs more than a resource pays. It asks the world for nothing but the view and the ticks that
//! are left, so that its return is one that a player can reach. Integers only. Clause: CUR-3.

use super::config::Metric;
use super::view::{SIDE, View};
use super::world::{ACTIONS, World};

/// Ticks that are looked ahead.
const DEPTH: u32 = 3;
/// What a tick on the way to a waypoint is worth, in thousandths: more than half a resource.
const TICK: i64 = 100;
/// Cells from the agent that can be reached within the ticks looked ahead, along one axis.
const REACH: i32 = DEPTH as i32;
/// Cells along a side of what is looked at.
const WIDE: usize = 2 * DEPTH as usize + 1;
/// A waypoint is nowhere farther than this.
const FAR: i32 = 9;
/// The half of the view.
const HALF: i32 = SIDE as i32 / 2;

/// What a move may bring, by cell around the agent.
struct Around {
    closed: [bool; WIDE * WIDE],
    hazards: [bool; WIDE * WIDE],
    resources: [bool; WIDE * WIDE],
    /// Places where the waypoint may be that lie within the band of this cell.
    within: [i64; WIDE * WIDE],
    /// Ticks to the band, summed over all places where the waypoint may be.
    ticks: [i64; WIDE * WIDE],
    places: i64,
    rewards: (i64, i64),
}

fn index(x: i32, y: i32) -> usize {
    ((y + REACH) * WIDE as i32 + x + REACH) as usize
}

/// Whether a cell of the view is marked; what lies outside is not.
fn marked(plane: u32, x: i32, y: i32) -> bool {
    x.abs() <= HALF && y.abs() <= HALF && plane >> ((y + HALF) * SIDE as i32 + x + HALF) & 1 == 1
}

/// Places where the pending waypoint may be, around the agent.
fn places(view: &View, least: i32) -> Vec<(i32, i32)> {
    let cells = |side: i32| (-side..=side).flat_map(move |y| (-side..=side).map(move |x| (x, y)));
    let seen = cells(HALF).find(|(x, y)| marked(view.planes[4], *x, *y));
    if let Some(place) = seen {
        return vec![place];
    }
    // Behind a wall that is seen nothing lies.
    let open = |toward: i32, is_x: bool| {
        let wall = (1..=HALF).find(|away| {
            let (x, y) = if is_x { (toward * away, 0) } else { (0, toward * away) };
            marked(view.planes[0], x, y)
        });
        wall.unwrap_or(FAR + 1)
    };
    let (right, left, down, up) = (open(1, true), open(-1, true), open(1, false), open(-1, false));
    let fits = |(x, y): &(i32, i32)| {
        let away = x.abs().max(y.abs());
        (x.signum(), y.signum()) == view.direction
            && HALF < away
            && least <= away
            && (-left < *x && *x < right && -up < *y && *y < down)
    };
    cells(FAR).filter(fits).collect()
}

impl Around {
    fn of(world: &World, view: &View) -> Around {
        let config = world.config();
        let band = config.tolerance_cells().unwrap_or(0) as i32;
        let metric = config.tolerance.map_or(Metric::Chebyshev, |tolerance| tolerance.metric);
        // At the first tick the agent is where the first waypoint was laid out from.
        let (least, most) = config.waypoint_distance;
        let is_first = world.steps() == 0;
        let mut places = places(view, if is_first { least as i32 } else { 1 });
        if is_first {
            places.retain(|(x, y)| x.abs().max(y.abs()) <= most as i32);
        }
        let mut around = Around {
            closed: [false; WIDE * WIDE],
            hazards: [false; WIDE * WIDE],
            resources: [false; WIDE * WIDE],
            within: [0; WIDE * WIDE],
            ticks: [0; WIDE * WIDE],
            places: (places.len() as i64).max(1),
            rewards: (i64::from(config.waypoint_rewards.0), i64::from(config.resource_benefit)),
        };
        for (x, y) in (-REACH..=REACH).flat_map(|y| (-REACH..=REACH).map(move |x| (x, y))) {
            let at = index(x, y);
            around.closed[at] = marked(view.planes[0], x, y);
            around.hazards[at] = marked(view.planes[3] | view.planes[6], x, y);
            around.resources[at] = marked(view.planes[1] | view.planes[2], x, y);
            for (to_x, to_y) in &places {
                let (wide, high) = ((to_x - x).abs(), (to_y - y).abs());
                let ticks = match metric {
                    Metric::Chebyshev => (wide - band).max(0) + (high - band).max(0),
                    Metric::Manhattan => (wide + high - band).max(0),
                };
                around.within[at] += i64::from(ticks == 0);
                around.ticks[at] += i64::from(ticks);
            }
        }
        around
    }

    /// What the ticks that are left bring at most, times the places of the waypoint. `best` are the places that were within the
    /// band of a cell on the way, `taken` the resources that are gone.
    fn look(&self, at: (i32, i32), depth: u32, left: u32, best: i64, taken: u64) -> i64 {
        if depth == 0 || left == 0 {
            // A waypoint that was reached is behind; of the others every tick of the way costs.
            let open = self.places - best;
            let way = self.ticks[index(at.0, at.1)].min(i64::from(left) * self.places);
            return -way * TICK * open / self.places;
        }
        (0..ACTIONS).map(|action| self.value(action, at, depth, left, best, taken)).max().unwrap_or(0)
    }

    fn value(&self, action: u16, at: (i32, i32), depth: u32, left: u32, best: i64, taken: u64) -> i64 {
        let target = match action {
            0 => (at.0, at.1 - 1),
            1 => (at.0, at.1 + 1),
            2 => (at.0 - 1, at.1),
            3 => (at.0 + 1, at.1),
            _ => at,
        };
        let at = if self.closed[index(target.0, target.1)] { at } else { target };
        let cell = index(at.0, at.1);
        // Nothing that can be earned within the view is worth a hazard.
        let mut earned = if self.hazards[cell] { -1_000_000 * self.places } else { 0 };
        let mut taken = taken;
        if self.resources[cell] && taken >> cell & 1 == 0 {
            earned += self.rewards.1 * self.places;
            taken |= 1 << cell;
        }
        // Reaching it earlier is better: what comes after it is not seen, but there is something.
        let newly = (self.within[cell] - best).max(0);
        let soon = if DEPTH < left { TICK * i64::from(depth - 1) } else { 0 };
        earned += newly * (self.rewards.0 + soon);
        earned + self.look(at, depth - 1, left - 1, best.max(self.within[cell]), taken)
    }
}

/// The move that promises most; of several the first.
pub fn act(world: &World) -> u16 {
    let view = View::of(world);
    let around = Around::of(world, &view);
    let left = world.config().steps.saturating_sub(world.steps()).max(1);
    let depth = DEPTH.min(left);
    let value = |action: &u16| around.value(*action, (0, 0), depth, left, 0, 0);
    // `max_by_key` takes the last of equals.
    (0..ACTIONS).rev().max_by_key(value).unwrap_or(ACTIONS - 1)
}
