//! The best way to play a grid that is known here, for somebody who sees what a player sees.
//!
//! It looks three ticks ahead over the cells around it: resources pay when they are stepped on, hazards that are seen cost what
//! they cost, the pending waypoint pays where it comes within the band. Where that waypoint lies outside the view, all
//! places that its direction allows are equally likely, and what counts is how many of them a move brings into the band. Waypoints
//! that come later are planned for where they are seen. Beyond three ticks every tick on the way costs more than a resource pays.
//! It asks the world for the view, for the ticks that are left and for how many waypoints were reached, which a player who remembers
//! knows as well, so that its return is one that a player can reach. Integers only. Clause: CUR-3.

use super::config::Metric;
use super::view::{SIDE, View};
use super::world::{ACTIONS, World};

/// Ticks that are looked ahead.
const DEPTH: u32 = 3;
/// What a tick on the way to a waypoint is worth, in thousandths: more than two resources.
const TICK: i64 = 200;
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
    /// Waypoints after the pending one that are seen, in order, up to the first that is not.
    later: Vec<(i32, i32)>,
    band: i32,
    metric: Metric,
    /// What the pending waypoint pays, the one after it and the one after that.
    pays: [i64; 3],
    resource: i64,
    harm: i64,
}

/// Where a look ahead has come to.
#[derive(Clone, Copy)]
struct Standing {
    at: (i32, i32),
    /// Ticks that are looked ahead from here, and that are left at all.
    depth: u32,
    left: u32,
    /// Places of the pending waypoint that were within the band of a cell on the way.
    best: i64,
    /// Later waypoints that were reached.
    reached: usize,
    /// Resources that are gone, a bit for each cell.
    taken: u64,
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

/// Ticks from one place to the band of another.
fn ticks_between(from: (i32, i32), to: (i32, i32), band: i32, metric: Metric) -> i64 {
    let (wide, high) = ((to.0 - from.0).abs(), (to.1 - from.1).abs());
    i64::from(match metric {
        Metric::Chebyshev => (wide - band).max(0) + (high - band).max(0),
        Metric::Manhattan => (wide + high - band).max(0),
    })
}

impl Around {
    /// The cells that can be reached within so many ticks.
    fn of(world: &World, view: &View, depth: u32) -> Around {
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
        let (agent, (waypoints, next)) = (world.agent(), world.waypoints());
        let around = waypoints.iter().skip(next + 1).map(|cell| (cell.x - agent.x, cell.y - agent.y));
        let (visit, completion) = config.waypoint_rewards;
        let pays = |place: usize| i64::from(if place + 1 == waypoints.len() { completion } else { visit });
        let mut around = Around {
            closed: [false; WIDE * WIDE],
            hazards: [false; WIDE * WIDE],
            resources: [false; WIDE * WIDE],
            within: [0; WIDE * WIDE],
            ticks: [0; WIDE * WIDE],
            places: (places.len() as i64).max(1),
            later: around.take_while(|(x, y)| marked(view.planes[5], *x, *y)).take(2).collect(),
            band,
            metric,
            pays: [pays(next), pays(next + 1), pays(next + 2)],
            resource: i64::from(config.resource_benefit),
            harm: i64::from(config.hazard_harm),
        };
        let reach = depth as i32;
        let cells = (-reach..=reach).flat_map(|y| (-reach..=reach).map(move |x| (x, y)));
        for (x, y) in cells.filter(|(x, y)| x.abs() + y.abs() <= reach) {
            let at = index(x, y);
            around.closed[at] = marked(view.planes[0], x, y);
            around.hazards[at] = marked(view.planes[3] | view.planes[6], x, y);
            around.resources[at] = marked(view.planes[1] | view.planes[2], x, y);
            for place in &places {
                let ticks = ticks_between((x, y), *place, band, metric);
                around.within[at] += i64::from(ticks == 0);
                around.ticks[at] += ticks;
            }
        }
        around
    }

    /// Ticks from a cell to a later waypoint; none where it is not seen.
    fn to_later(&self, at: (i32, i32), reached: usize) -> Option<i64> {
        self.later.get(reached).map(|place| ticks_between(at, *place, self.band, self.metric))
    }

    /// What the ticks that are left bring at most, times the places of the waypoint.
    fn look(&self, standing: Standing) -> i64 {
        let Standing { at, depth, left, best, reached, .. } = standing;
        if depth == 0 || left == 0 {
            let open = self.places - best;
            // A waypoint that was reached is behind; every tick of the way to the next costs.
            if open == 0 {
                let way = self.to_later(at, reached).unwrap_or(0).min(i64::from(left));
                return -way * TICK * self.places;
            }
            let way = self.ticks[index(at.0, at.1)].min(i64::from(left) * self.places);
            return -way * TICK * open / self.places;
        }
        (0..ACTIONS).map(|action| self.value(action, standing)).max().unwrap_or(0)
    }

    fn value(&self, action: u16, standing: Standing) -> i64 {
        let Standing { at, depth, left, mut best, mut reached, mut taken } = standing;
        let target = match action {
            0 => (at.0, at.1 - 1),
            1 => (at.0, at.1 + 1),
            2 => (at.0 - 1, at.1),
            3 => (at.0 + 1, at.1),
            _ => at,
        };
        let at = if self.closed[index(target.0, target.1)] { at } else { target };
        let cell = index(at.0, at.1);
        let mut earned = if self.hazards[cell] { -self.harm * self.places } else { 0 };
        if self.resources[cell] && taken >> cell & 1 == 0 {
            earned += self.resource * self.places;
            taken |= 1 << cell;
        }
        // Reaching it earlier is better: what comes after it may not be seen, but there is something.
        let soon = if DEPTH < left { TICK * i64::from(depth - 1) } else { 0 };
        if best == self.places {
            // A tick pays for one waypoint at most.
            if self.to_later(at, reached) == Some(0) {
                reached += 1;
                earned += self.places * (self.pays[reached] + soon);
            }
        } else {
            earned += (self.within[cell] - best).max(0) * (self.pays[0] + soon);
            best = best.max(self.within[cell]);
        }
        earned + self.look(Standing { at, depth: depth - 1, left: left - 1, best, reached, taken })
    }
}

/// The move that promises most; of several the first.
pub fn act(world: &World) -> u16 {
    let view = View::of(world);
    let left = world.config().steps.saturating_sub(world.steps()).max(1);
    let depth = DEPTH.min(left);
    let around = Around::of(world, &view, depth);
    let standing = Standing { at: (0, 0), depth, left, best: 0, reached: 0, taken: 0 };
    // `max_by_key` takes the last of equals.
    (0..ACTIONS).rev().max_by_key(|action| around.value(*action, standing)).unwrap_or(ACTIONS - 1)
}
