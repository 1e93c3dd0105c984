//! The running grid: one tick at a time, in the order the protocol fixes.
//!
//! Walls surround the grid. The agent's position is apart from what lies in the cells, so walking over a waypoint
//! that is not due erases nothing. Must not know who plays. Clause: CUR-3.

use super::config::{Credit, GridConfig, Metric};
use bem_base::prng::{Prng, mix};

/// A cell, from the upper left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Column.
    pub x: i32,
    /// Row.
    pub y: i32,
}

impl Cell {
    fn chebyshev(self, other: Cell) -> u32 {
        self.x.abs_diff(other.x).max(self.y.abs_diff(other.y))
    }

    fn distance(self, other: Cell, metric: Metric) -> u32 {
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

/// What happened in a tick, as the agent perceives it; the strongest wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Event {
    /// Nothing to note.
    #[default]
    None = 0,
    /// Stepped on a hazard or a contaminated cell.
    Hazard = 1,
    /// Took a resource of the first kind.
    Consume0 = 2,
    /// Took a resource of the second kind.
    Consume1 = 3,
    /// Reached a waypoint that was not the last.
    Waypoint = 4,
    /// Reached the last waypoint.
    SequenceComplete = 5,
    /// Began to wait for a delayed reward.
    DelayOpen = 6,
    /// Left the band before the reward was paid.
    DelayBroken = 7,
    /// Waited long enough for a waypoint that was not the last.
    DelayPaidWaypoint = 8,
    /// Waited long enough for the last waypoint.
    DelayPaidComplete = 9,
}

impl Event {
    /// Whether waypoints or rewards changed in a way that no model of motion could foresee.
    pub fn is_discontinuity(self) -> bool {
        Event::Consume0 <= self
    }

    /// How complete the held behaviour is, in thousandths, judged from this event alone.
    pub fn completion_milli(self) -> u32 {
        match self {
            Event::SequenceComplete => 900,
            Event::DelayPaidWaypoint | Event::DelayPaidComplete => 800,
            Event::Waypoint => 500,
            _ => 0,
        }
    }
}

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoneCause {
    /// It goes on.
    Running,
    /// Health is used up.
    HealthDepleted,
    /// All ticks are played.
    StepLimit,
}

/// Counts over one episode, for the evaluator; the agent never sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the count of what its name says")]
pub struct GridCounts {
    pub contacts: u32,
    pub misses: u32,
    pub out_of_order: u32,
    pub sequences: u32,
    pub delays_opened: u32,
    pub delays_paid: u32,
    pub delays_broken: u32,
    pub ticks_waited: u32,
    pub distractors_taken: u32,
    pub counter_evidence_events: u32,
    pub ticks_both_cues: u32,
    pub spawns_skipped: u32,
    pub within_band_ticks: u32,
}

/// What one tick brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// In thousandths.
    pub reward: i32,
    /// The harm part of it, as a positive number.
    pub harm: i32,
    /// What was perceived.
    pub event: Event,
    /// Whether and why the episode ended.
    pub done: DoneCause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    remaining: u32,
    distractor: Option<Cell>,
}

/// A running grid.
#[derive(Clone, Debug)]
pub struct World {
    config: GridConfig,
    /// Ticks over all episodes; survives reset.
    global_step: u64,
    layout: Prng,
    dynamics: Prng,
    agent: Cell,
    hazards: Vec<Cell>,
    resources: Vec<(Cell, u8)>,
    waypoints: Vec<Cell>,
    contamination: Vec<u32>,
    next: usize,
    in_progress: bool,
    since_pending: u32,
    validity_milli: u32,
    window: Option<Window>,
    health: i32,
    energy: i32,
    steps: u32,
    last_event: Event,
    last_action: u16,
    on_later_waypoint: bool,
    valid: bool,
    counts: GridCounts,
    done: DoneCause,
}

impl World {
    /// A grid before its first reset.
    pub fn new(config: GridConfig) -> World {
        let cells = (config.size * config.size) as usize;
        World {
            global_step: 0,
            layout: Prng::quick(0),
            dynamics: Prng::quick(0),
            agent: Cell { x: 1, y: 1 },
            hazards: Vec::new(),
            resources: Vec::new(),
            waypoints: Vec::new(),
            contamination: vec![0; cells],
            next: 0,
            in_progress: false,
            since_pending: 0,
            validity_milli: 1_000,
            window: None,
            health: 1_000,
            energy: 1_000,
            steps: 0,
            last_event: Event::None,
            last_action: 4,
            on_later_waypoint: false,
            valid: true,
            counts: GridCounts::default(),
            done: DoneCause::StepLimit,
            config,
        }
    }

    /// Starts an episode. Layout and dynamics draw from streams of their own.
    pub fn reset(&mut self, seed: u64, global_step: u64) {
        self.layout = Prng::quick(mix(seed ^ 0x006C_6179_6F75_7400));
        self.dynamics = Prng::quick(mix(seed ^ 0x6479_6E61_6D69_6373));
        self.global_step = global_step;
        self.hazards.clear();
        self.resources.clear();
        self.waypoints.clear();
        self.contamination.fill(0);
        (self.next, self.in_progress, self.since_pending) = (0, false, 0);
        self.validity_milli = 1_000;
        self.window = None;
        (self.health, self.energy, self.steps) = (1_000, 1_000, 0);
        (self.last_event, self.last_action) = (Event::None, 4);
        (self.on_later_waypoint, self.valid) = (false, true);
        self.counts = GridCounts::default();
        self.done = DoneCause::Running;
        let inner = u64::from(self.config.size - 2);
        self.agent = Cell { x: 1 + self.layout.below(inner) as i32, y: 1 + self.layout.below(inner) as i32 };
        self.spawn_waypoints(true);
        for _ in 0..self.config.hazards {
            if let Some(cell) = self.free_cell(|_| true, true) {
                self.hazards.push(cell);
            }
        }
        self.spawn_resources();
    }

    /// Kinds whose introduction step has passed share the resources by weight.
    fn spawn_resources(&mut self) {
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

    fn is_free(&self, cell: Cell) -> bool {
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
    fn free_cell(&mut self, suits: impl Fn(Cell) -> bool, from_layout: bool) -> Option<Cell> {
        let cells: Vec<Cell> =
            self.inner_cells().filter(|cell| self.is_free(*cell) && suits(*cell)).collect();
        if cells.is_empty() {
            self.counts.spawns_skipped += 1;
            return None;
        }
        let stream = if from_layout { &mut self.layout } else { &mut self.dynamics };
        Some(cells[stream.below(cells.len() as u64) as usize])
    }

    fn spawn_waypoints(&mut self, from_layout: bool) {
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

    /// Whether a cell is a wall or outside.
    pub fn is_wall(&self, cell: Cell) -> bool {
        let last = self.config.size as i32 - 1;
        cell.x <= 0 || cell.y <= 0 || last <= cell.x || last <= cell.y
    }

    fn credit_milli(&self, distance: u32) -> i64 {
        match self.config.tolerance.map(|tolerance| tolerance.credit) {
            Some(Credit::Graded { scale_milli }) => graded_credit(distance, scale_milli),
            _ => 1_000,
        }
    }

    /// Takes a move. Nothing happens once the episode is over.
    pub fn step(&mut self, action: u16) -> Tick {
        if self.done != DoneCause::Running {
            return Tick { reward: 0, harm: 0, event: Event::None, done: self.done };
        }
        let target = self.agent.moved(action);
        if !self.is_wall(target) {
            self.agent = target;
        }
        let mut tick = Tick { reward: 0, harm: 0, event: Event::None, done: DoneCause::Running };
        self.touch(&mut tick);
        let before = self.next;
        if self.window.is_some() {
            self.wait(&mut tick);
        } else {
            self.visit(&mut tick);
        }
        self.energy = (self.energy - self.config.energy_decay).max(0);
        self.global_step += 1;
        self.degrade(before);
        self.watch_cues(tick.event);
        self.drift();
        self.time_out();
        self.steps += 1;
        self.done = if self.health <= 0 {
            DoneCause::HealthDepleted
        } else if self.config.steps <= self.steps {
            DoneCause::StepLimit
        } else {
            DoneCause::Running
        };
        (self.last_event, self.last_action) = (tick.event, action);
        tick.done = self.done;
        tick
    }

    /// Contact with what lies in the cell: hazard before contamination before resource.
    fn touch(&mut self, tick: &mut Tick) {
        let index = (self.agent.y as u32 * self.config.size + self.agent.x as u32) as usize;
        let (spread, level) = self.config.contamination;
        let contaminated = 0 < spread && level <= self.contamination[index];
        self.contamination[index] = self.contamination[index].saturating_add(spread);
        if self.hazards.contains(&self.agent) || contaminated {
            tick.harm = self.config.hazard_harm;
            tick.reward -= tick.harm;
            self.health -= tick.harm;
            tick.event = Event::Hazard;
        } else if let Some(place) = self.resources.iter().position(|(cell, _)| *cell == self.agent) {
            let (cell, kind) = self.resources.remove(place);
            tick.reward += self.config.resource_benefit;
            self.health = (self.health + self.config.resource_benefit / 2).min(1_000);
            tick.event = if kind == 0 { Event::Consume0 } else { Event::Consume1 };
            if let Some(window) = &mut self.window
                && window.distractor == Some(cell)
            {
                window.distractor = None;
                self.counts.distractors_taken += 1;
            }
            let too_early = self.config.dual_cue.filter(|cue| self.steps < cue.active_ticks_min);
            match too_early {
                Some(cue) if !cue.replace => self.valid = false,
                _ => {}
            }
            if let Some(cell) = self.free_cell(|_| true, false) {
                self.resources.push((cell, kind));
            }
        }
    }

    /// Contact with the waypoint that is due.
    fn visit(&mut self, tick: &mut Tick) {
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
    fn wait(&mut self, tick: &mut Tick) {
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
    fn degrade(&mut self, before: usize) {
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

    fn watch_cues(&mut self, event: Event) {
        let Some(cue) = self.config.dual_cue else { return };
        let there = |tag: u8| self.resources.iter().any(|(_, kind)| *kind == tag);
        if there(cue.tags.0) && there(cue.tags.1) && !matches!(event, Event::Consume0 | Event::Consume1) {
            self.counts.ticks_both_cues += 1;
        }
    }

    fn drift(&mut self) {
        let (interval, chance) = self.config.drift;
        if chance == 0 || self.steps == 0 || !self.steps.is_multiple_of(interval) {
            return;
        }
        for number in 0..self.hazards.len() {
            if self.dynamics.below(1_000) < u64::from(chance) {
                let mut directions = [0, 1, 2, 3];
                self.dynamics.shuffle(&mut directions);
                let here = self.hazards[number];
                let target = directions.into_iter().map(|direction| here.moved(direction));
                let free = |cell: &Cell| !self.is_wall(*cell) && self.is_free(*cell);
                if let Some(cell) = target.into_iter().find(free) {
                    self.hazards[number] = cell;
                }
            }
        }
    }

    fn time_out(&mut self) {
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

    /// What the grid is made of.
    pub fn config(&self) -> &GridConfig {
        &self.config
    }

    /// Where the agent is.
    pub fn agent(&self) -> Cell {
        self.agent
    }

    /// Where the hazards are.
    pub fn hazards(&self) -> &[Cell] {
        &self.hazards
    }

    /// Where the resources are, with their kinds.
    pub fn resources(&self) -> &[(Cell, u8)] {
        &self.resources
    }

    /// The waypoints in order, and which of them is due.
    pub fn waypoints(&self) -> (&[Cell], usize) {
        (&self.waypoints, self.next)
    }

    /// Whether a cell is contaminated.
    pub fn is_contaminated(&self, cell: Cell) -> bool {
        let (spread, level) = self.config.contamination;
        let index = (cell.y as u32 * self.config.size + cell.x as u32) as usize;
        0 < spread && !self.is_wall(cell) && level <= self.contamination[index]
    }

    /// Health and energy, from 0 to 1000.
    pub fn body(&self) -> (i32, i32) {
        (self.health, self.energy)
    }

    /// What was perceived last, and the last move.
    pub fn last(&self) -> (Event, u16) {
        (self.last_event, self.last_action)
    }

    /// Value left of the target that is due, in thousandths; for the evaluator.
    pub fn validity_milli(&self) -> u32 {
        self.validity_milli
    }

    /// Whether a wait for a delayed reward is open; for the evaluator.
    pub fn is_waiting(&self) -> bool {
        self.window.is_some()
    }

    /// Whether the episode counts for a cohort with a dual cue.
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// Counts of the episode so far; for the evaluator.
    pub fn counts(&self) -> &GridCounts {
        &self.counts
    }

    /// Ticks over all episodes.
    pub fn global_step(&self) -> u64 {
        self.global_step
    }

    /// Ticks of this episode.
    pub fn steps(&self) -> u32 {
        self.steps
    }
}

/// exp(-distance / scale) in thousandths: repeated multiplication by exp(-1/scale), itself from its series.
fn graded_credit(distance: u32, scale_milli: u32) -> i64 {
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

#[cfg(test)]
mod tests {
    use super::super::config::{CounterEvidence, Delay, DualCue, Tolerance};
    use super::super::view::View;
    use super::*;

    fn world(config: GridConfig, seed: u64) -> World {
        assert_eq!(config.check(), Ok(()));
        let mut world = World::new(config);
        world.reset(seed, 0);
        world
    }

    /// Puts the agent next to nothing but the waypoints given.
    fn staged(waypoints: &[(i32, i32)], agent: (i32, i32), config: GridConfig) -> World {
        let mut world = world(config, 1);
        world.hazards.clear();
        world.resources.clear();
        world.waypoints = waypoints.iter().map(|(x, y)| Cell { x: *x, y: *y }).collect();
        world.agent = Cell { x: agent.0, y: agent.1 };
        world
    }

    fn exact() -> GridConfig {
        GridConfig { tolerance: None, ..GridConfig::of_difficulty(0) }
    }

    #[test]
    fn features_that_are_off_leave_every_stream_untouched() {
        let off = GridConfig::of_difficulty(4);
        let zero_band = |cells| {
            let tolerance =
                off.tolerance.map(|tolerance| Tolerance { cells, fraction_milli: 0, ..tolerance });
            GridConfig { tolerance, ..off.clone() }
        };
        let pairs = [
            (off.clone(), GridConfig { counter_evidence: None, dual_cue: None, delay: None, ..off.clone() }),
            (GridConfig { tolerance: None, ..off.clone() }, zero_band(None)),
            (zero_band(Some(0)), zero_band(None)),
            (
                off.clone(),
                GridConfig { resource_weights: (1, 1), introduction: (0, u64::MAX), ..off.clone() },
            ),
        ];
        for (left, right) in pairs {
            let (mut a, mut b) = (world(left, 9), world(right, 9));
            let mut moves = Prng::stream(2, "moves");
            for _ in 0..300 {
                let action = moves.below(5) as u16;
                assert_eq!(a.step(action), b.step(action));
                assert_eq!(
                    (a.agent, &a.hazards, &a.resources, &a.waypoints),
                    (b.agent, &b.hazards, &b.resources, &b.waypoints)
                );
                assert_eq!((&a.layout, &a.dynamics), (&b.layout, &b.dynamics));
            }
        }
    }

    #[test]
    fn the_band_decides_what_counts_as_there() {
        let with_band = |cells| {
            let tolerance = Tolerance {
                fraction_milli: 0,
                cells: Some(cells),
                metric: Metric::Chebyshev,
                credit: Credit::Hard,
            };
            GridConfig { tolerance: Some(tolerance), ..exact() }
        };
        let mut near = staged(&[(5, 5), (8, 8)], (2, 5), with_band(2));
        assert_eq!(near.step(3).event, Event::Waypoint);
        let mut far = staged(&[(5, 5), (8, 8)], (2, 5), exact());
        assert_eq!(far.step(3).event, Event::None);
    }

    #[test]
    fn graded_credit_falls_with_distance_as_the_exponential_does() {
        assert_eq!(graded_credit(0, 1_000), 1_000);
        assert_eq!([1, 2, 3].map(|distance| graded_credit(distance, 1_000)), [367, 135, 49]);
        assert_eq!(graded_credit(1, 2_000), 606);
    }

    #[test]
    fn a_later_waypoint_is_not_erased_by_walking_over_it() {
        let mut world = staged(&[(5, 5), (4, 2)], (3, 2), exact());
        assert_eq!(world.step(3).event, Event::None);
        assert_eq!(world.counts.out_of_order, 1);
        for action in [1, 1, 1] {
            world.step(action);
        }
        assert_eq!(world.step(3).event, Event::Waypoint);
        for action in [2, 0, 0] {
            world.step(action);
        }
        assert_eq!(world.step(0).event, Event::SequenceComplete);
    }

    #[test]
    fn validity_falls_to_its_floor_only_while_a_sequence_runs_and_comes_back() {
        let evidence = CounterEvidence {
            interval: 1,
            chance_milli: 1_000,
            step_milli: 300,
            floor_milli: 200,
            ..Default::default()
        };
        let config = GridConfig { counter_evidence: Some(evidence), timeout: 100, ..exact() };
        let mut world = staged(&[(5, 5), (8, 8)], (4, 5), config);
        world.step(4);
        world.step(4);
        assert_eq!(world.validity_milli, 1_000, "nothing is in progress yet");
        assert_eq!(world.step(3).event, Event::Waypoint);
        let levels: Vec<u32> = (0..4)
            .map(|_| {
                world.step(4);
                world.validity_milli
            })
            .collect();
        assert_eq!(levels, [400, 200, 200, 200]);
        let events = world.counts.counter_evidence_events;
        world.step(4);
        assert_eq!(world.counts.counter_evidence_events, events, "at the floor nothing more is counted");
        world.agent = Cell { x: 8, y: 7 };
        assert_eq!(world.step(1).reward, 160, "the reward uses the validity before it comes back");
        assert_eq!(world.validity_milli, 1_000);
    }

    #[test]
    fn taking_a_cue_too_early_makes_the_episode_invalid() {
        let cue = DualCue { tags: (0, 1), active_ticks_min: 10, replace: false };
        let config = GridConfig { dual_cue: Some(cue), resource_weights: (1, 1), ..exact() };
        let mut world = staged(&[(8, 8)], (3, 3), config);
        world.resources = vec![(Cell { x: 5, y: 3 }, 0), (Cell { x: 7, y: 3 }, 1)];
        world.step(3);
        assert_eq!((world.counts.ticks_both_cues, world.is_valid()), (1, true));
        world.step(3);
        assert!(!world.is_valid());
    }

    #[test]
    fn a_kind_appears_on_the_first_reset_after_its_step() {
        let config = GridConfig { resource_weights: (1, 1), introduction: (5, 50), resources: 4, ..exact() };
        let mut world = World::new(config);
        let mut kinds = |global_step| {
            world.reset(3, global_step);
            let mut kinds: Vec<u8> = world.resources.iter().map(|(_, kind)| *kind).collect();
            kinds.sort_unstable();
            kinds
        };
        assert_eq!(kinds(4), [0u8; 0]);
        assert_eq!(kinds(5), [0, 0, 0, 0]);
        assert_eq!(kinds(49), [0, 0, 0, 0], "crossing in mid-episode has no effect");
        assert_eq!(kinds(50), [0, 0, 1, 1]);
    }

    #[test]
    fn a_delay_pays_once_after_its_ticks_and_leaving_forfeits_it() {
        let tolerance =
            Tolerance { fraction_milli: 0, cells: Some(1), metric: Metric::Chebyshev, credit: Credit::Hard };
        let config = GridConfig {
            delay: Some(Delay { ticks: 3, distractor: false }),
            tolerance: Some(tolerance),
            timeout: 2,
            ..exact()
        };
        let mut patient = staged(&[(5, 5), (8, 8)], (3, 5), config.clone());
        assert_eq!(patient.step(3).event, Event::DelayOpen);
        let events: Vec<Event> = (0..3).map(|_| patient.step(4).event).collect();
        assert_eq!(events, [Event::None, Event::None, Event::DelayPaidWaypoint]);
        assert_eq!((patient.counts.delays_paid, patient.counts.misses), (1, 0), "the timer stood still");
        let mut hasty = staged(&[(5, 5), (8, 8)], (3, 5), config);
        hasty.step(3);
        assert_eq!(hasty.step(2).event, Event::DelayBroken);
        assert_eq!((hasty.counts.delays_broken, hasty.next, hasty.in_progress), (1, 0, false));
    }

    #[test]
    fn all_features_work_in_one_episode() {
        let config = GridConfig {
            counter_evidence: Some(CounterEvidence { interval: 5, ..Default::default() }),
            dual_cue: Some(DualCue { tags: (0, 1), active_ticks_min: 10, replace: true }),
            resource_weights: (1, 1),
            resources: 4,
            timeout: 200,
            waypoints: 6,
            ..GridConfig::of_difficulty(0)
        };
        let mut world = world(config, 5);
        for _ in 0..200 {
            let target = world.pending().unwrap_or(world.agent);
            let action = if target.x != world.agent.x {
                if target.x < world.agent.x { 2 } else { 3 }
            } else if target.y < world.agent.y {
                0
            } else {
                1
            };
            // Dawdle, so that targets stay due long enough to degrade.
            world.step(if world.steps.is_multiple_of(3) { action } else { 4 });
        }
        assert!(0 < world.counts.within_band_ticks && 0 < world.counts.counter_evidence_events);
        assert!(10 <= world.counts.ticks_both_cues);
    }

    #[test]
    fn the_view_does_not_tell_later_waypoints_apart_nor_show_what_is_behind_it() {
        let mut plain = staged(&[(5, 5), (6, 4), (4, 3)], (5, 3), exact());
        let mut relabelled = staged(&[(5, 5), (4, 3), (6, 4)], (5, 3), exact());
        (relabelled.since_pending, relabelled.validity_milli, relabelled.in_progress) = (7, 400, true);
        for action in [0, 3, 2, 1, 4] {
            assert_eq!(View::of(&plain), View::of(&relabelled));
            plain.step(action);
            relabelled.step(action);
        }
        let (seen, due) = (View::of(&plain), staged(&[(6, 4), (5, 5), (4, 3)], (5, 3), exact()));
        assert_ne!(seen.planes, View::of(&due).planes, "which waypoint is due can be seen");
    }

    #[test]
    fn death_is_reported_before_the_step_limit() {
        let mut world = staged(&[(8, 8)], (3, 3), GridConfig { steps: 1, hazard_harm: 2_000, ..exact() });
        world.hazards = vec![Cell { x: 4, y: 3 }];
        assert_eq!(world.step(3).done, DoneCause::HealthDepleted);
    }
}
