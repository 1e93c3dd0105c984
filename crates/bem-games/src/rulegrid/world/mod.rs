//! The running grid: one tick at a time, in the order the protocol fixes.
//!
//! Walls surround the grid. The agent's position is apart from what lies in the cells, so walking over a waypoint
//! that is not due erases nothing. Where things come to lie is in `placing`, what waypoints pay in `waypoints`.
//! Must not know who plays. Clause: CUR-3.

mod cell;
mod placing;
mod tick;
mod waypoints;

pub use cell::{ACTIONS, Cell};
pub use tick::{DoneCause, Event, GridCounts, Tick};

use self::waypoints::Window;
use super::config::GridConfig;
use bem_base::prng::{Prng, mix};

/// A running grid.
#[derive(Clone, Debug)]
pub struct World {
    config: GridConfig,
    /// Ticks over all episodes; survives reset.
    global_step: u64,
    /// Draws what an episode begins with.
    layout: Prng,
    /// Draws what changes during an episode.
    dynamics: Prng,
    agent: Cell,
    hazards: Vec<Cell>,
    resources: Vec<(Cell, u8)>,
    waypoints: Vec<Cell>,
    /// How often each cell was stepped on, times the spread.
    contamination: Vec<u32>,
    /// The waypoint that is due.
    next: usize,
    /// The first waypoint is reached and the last is not.
    in_progress: bool,
    /// Ticks for which the waypoint has been due.
    since_pending: u32,
    /// What is left of the waypoint's value.
    validity_milli: u32,
    /// The wait for a delayed reward, while one is open.
    window: Option<Window>,
    health: i32,
    energy: i32,
    steps: u32,
    last_event: Event,
    last_action: u16,
    /// Walking over a waypoint out of order counts once, not at every tick on it.
    on_later_waypoint: bool,
    /// No cue was taken before its time.
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

    /// Whether a cell is a wall or outside.
    pub fn is_wall(&self, cell: Cell) -> bool {
        let last = self.config.size as i32 - 1;
        cell.x <= 0 || cell.y <= 0 || last <= cell.x || last <= cell.y
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

#[cfg(test)]
mod tests;
