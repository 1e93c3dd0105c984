//! The waypoints in their order: reaching one, waiting for its reward, what it is still worth, and being late.
//!
//! Clause: CUR-3.

use super::World;
use super::cell::Cell;
use super::tick::{Event, Tick};
use crate::rulegrid::config::{Credit, Metric};

/// A wait for a delayed reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Ticks still to wait.
    remaining: u32,
    /// The resource laid out to lead the agent away, until it is taken.
    pub(super) distractor: Option<Cell>,
}

impl World {
    /// The waypoint that is due.
    pub fn pending(&self) -> Option<Cell> {
        self.waypoints.get(self.next).copied()
    }

    fn metric(&self) -> Metric {
        self.config.tolerance.map_or(Metric::Chebyshev, |tolerance| tolerance.metric)
    }

    fn in_band(&self, cell: Cell) -> bool {
        self.agent.distance(cell, self.metric()) <= self.config.tolerance_cells().unwrap_or(0)
    }

    /// Whether the agent is near enough to the waypoint that is due.
    pub fn is_in_band(&self) -> bool {
        self.pending().is_some_and(|cell| self.in_band(cell))
    }

    fn credit_milli(&self, distance: u32) -> i64 {
        match self.config.tolerance.map(|tolerance| tolerance.credit) {
            Some(Credit::Graded { scale_milli }) => graded_credit(distance, scale_milli),
            _ => 1_000,
        }
    }

    /// Contact with the waypoint that is due.
    pub(super) fn visit(&mut self, tick: &mut Tick) {
        let Some(waypoint) = self.pending() else { return };
        let later = self.waypoints.iter().skip(self.next + 1).any(|cell| *cell == self.agent);
        if later && !self.on_later_waypoint && !self.in_band(waypoint) {
            self.counts.out_of_order += 1;
        }
        self.on_later_waypoint = later;
        if !self.in_band(waypoint) {
            return;
        }
        self.counts.within_band_ticks += 1;
        self.counts.contacts += 1;
        match self.config.delay {
            None => self.pay(tick, false),
            Some(delay) => {
                self.counts.delays_opened += 1;
                let radius = self.config.tolerance_cells().unwrap_or(0);
                let agent = self.agent;
                let distractor = delay.distractor.then(|| {
                    let suits = |cell: Cell| {
                        let away = cell.chebyshev(waypoint);
                        radius < away && away <= radius + 2 && cell.chebyshev(agent) <= 2
                    };
                    self.free_cell(suits, false)
                });
                let distractor = distractor.flatten();
                if let Some(cell) = distractor {
                    self.resources.push((cell, 0));
                }
                self.window = Some(Window { remaining: delay.ticks, distractor });
                tick.event = Event::DelayOpen;
            }
        }
    }

    /// A tick of waiting: inside the band it counts down, outside everything is lost.
    pub(super) fn wait(&mut self, tick: &mut Tick) {
        let Some(mut window) = self.window else { return };
        if !self.is_in_band() {
            self.window = None;
            self.counts.delays_broken += 1;
            self.in_progress = false;
            self.spawn_waypoints(false);
            tick.event = Event::DelayBroken;
            return;
        }
        self.counts.ticks_waited += 1;
        window.remaining -= 1;
        self.window = Some(window);
        if window.remaining == 0 {
            self.window = None;
            self.counts.delays_paid += 1;
            self.pay(tick, true);
        }
    }

    /// Pays for the waypoint that is due and makes the next one due.
    fn pay(&mut self, tick: &mut Tick, delayed: bool) {
        let Some(waypoint) = self.pending() else { return };
        let distance = self.agent.distance(waypoint, self.metric());
        let worth = self.credit_milli(distance) * i64::from(self.validity_milli);
        let scaled = |reward: i32| (i64::from(reward) * worth / 1_000_000) as i32;
        self.next += 1;
        self.since_pending = 0;
        let complete = self.next == self.waypoints.len();
        let (visit, completion) = self.config.waypoint_rewards;
        tick.reward += scaled(if complete { completion } else { visit });
        tick.event = match (complete, delayed) {
            (false, false) => Event::Waypoint,
            (true, false) => Event::SequenceComplete,
            (false, true) => Event::DelayPaidWaypoint,
            (true, true) => Event::DelayPaidComplete,
        };
        self.in_progress = !complete;
        if complete {
            self.counts.sequences += 1;
            self.spawn_waypoints(false);
        }
    }

    /// Counter-evidence: the value of the target that is due falls while it stays due.
    pub(super) fn degrade(&mut self, before: usize) {
        let Some(evidence) = self.config.counter_evidence else { return };
        if before != self.next {
            self.validity_milli = 1_000;
        }
        let persistent = self.in_progress && self.next < self.waypoints.len();
        let due = 0 < self.steps && self.steps.is_multiple_of(evidence.interval);
        if (persistent || !evidence.requires_persistent_rule)
            && due
            && self.dynamics.below(1_000) < u64::from(evidence.chance_milli)
        {
            let lower = self.validity_milli.saturating_sub(evidence.step_milli).max(evidence.floor_milli);
            if lower < self.validity_milli {
                self.validity_milli = lower;
                self.counts.counter_evidence_events += 1;
            }
        }
    }

    /// A waypoint that is due for too long is missed, and a sequence that was begun starts anew.
    pub(super) fn time_out(&mut self) {
        if self.window.is_some() {
            return;
        }
        self.since_pending += 1;
        if self.config.timeout < self.since_pending {
            self.counts.misses += 1;
            self.since_pending = 0;
            if self.in_progress {
                self.in_progress = false;
                self.spawn_waypoints(false);
            }
        }
    }
}

/// exp(-distance / scale) in thousandths: repeated multiplication by exp(-1/scale), itself from its series.
pub(super) fn graded_credit(distance: u32, scale_milli: u32) -> i64 {
    const ONE: i64 = 1 << 30;
    let rate = ONE * 1_000 / i64::from(scale_milli.max(1));
    let (mut factor, mut term) = (0, ONE);
    for order in 1..40 {
        factor += term;
        term = -(term as i128 * rate as i128 / i128::from(ONE) / order) as i64;
    }
    let power = (0..distance).fold(ONE, |power, _| (power as i128 * factor as i128 / i128::from(ONE)) as i64);
    power * 1_000 / ONE
}
