//! The committed agent: looks, decides, moves, is surprised, and closes what it finished.
//!
//! Every tenth tick, or when something happened, it looks up: scores its options, asks the gate, and may latch.
//! Between looks it only moves. It is handed views and rewards and nothing else. Clauses: CUR-1, CUR-2, CUR-9.

mod config;
mod encode;

pub use config::{AgentConfig, Interference, Starvation};

use crate::closure::{Closure, DECOMMIT_TICKS, Residue, Token};
use crate::fraction::{THRESHOLD_STEP, VARIANCE_RATE, moving_average};
use crate::gate::{Gate, GateConfig};
use crate::latch::{Latch, Release, URGENCY_RELEASE};
use crate::policy::{Choice, NEIGHBOURS, Navigation, Options};
use crate::rule_state::{Mode, RuleState};
use crate::world_model::WorldModel;
use bem_base::prng::Prng;
use bem_games::rulegrid::view::View;
use bem_games::rulegrid::world::{Cell, Event};

/// Ticks between looks.
pub const LOOK_PERIOD: u32 = 10;
/// Dead reckoning happens on a field this wide, begun in its middle: no grid reaches its edge.
const RECKONED_SIZE: u32 = 64;
const ORIGIN: (i32, i32) = (32, 32);

/// What happened inside the agent in one tick, for the trace and the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// It looked up.
    pub looked: bool,
    /// The gate was open at the last look.
    pub gate_open: bool,
    /// The latch closed.
    pub latched: bool,
    /// The latch opened, and why.
    pub released: Option<Release>,
    /// Something was closed.
    pub closure: Option<Token>,
    /// A spike was shown to the gate while an option was held.
    pub spiked_while_held: bool,
    /// The spike made the latch open.
    pub released_on_spike: bool,
    /// The measured error, if the tick had any.
    pub error: i64,
    /// Whether the error counted.
    pub informative: bool,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its set-up; an arm may change it on a clone.
    pub config: AgentConfig,
    seed: u64,
    model: WorldModel,
    gate: Gate,
    latch: Latch,
    rule: RuleState,
    closure: Closure,
    residue: Residue,
    navigation: Navigation,
    options: Options,
    running: Choice,
    mode: Mode,
    clock: u32,
    reset_pending: bool,
    episode_tick: u32,
    looks: u64,
    gate_open: bool,
    was_in_band: bool,
    waiting: bool,
    /// Where it is, by dead reckoning from where the episode began.
    position: (i32, i32),
    /// Average error since the last closure, kept for the record.
    error_baseline: i64,
    learning: bool,
    prng: Prng,
    inside: Inside,
}

impl Agent {
    /// An agent that has seen nothing.
    pub fn new(config: AgentConfig, seed: u64) -> Agent {
        Agent {
            config,
            seed,
            model: WorldModel::default(),
            gate: Gate::new(config.gate),
            latch: Latch::new(config.bistable),
            rule: RuleState::new(seed),
            closure: Closure::default(),
            residue: Residue::new(RECKONED_SIZE),
            navigation: Navigation::default(),
            options: Options::default(),
            running: Choice::Wander,
            mode: Mode::ExternalTask,
            clock: 0,
            reset_pending: true,
            episode_tick: 0,
            looks: 0,
            gate_open: false,
            was_in_band: false,
            waiting: false,
            position: ORIGIN,
            error_baseline: 0,
            learning: true,
            prng: Prng::stream(seed, "curriculum/agent"),
            inside: Inside::default(),
        }
    }

    /// The same agent under another set-up, its latch open: how an arm starts.
    #[must_use]
    pub fn cloned_into(&self, config: AgentConfig) -> Agent {
        let mut clone = self.clone();
        let threshold = clone.gate.config.threshold;
        clone.config = AgentConfig { gate: GateConfig { threshold, ..config.gate }, ..config };
        clone.gate.config = clone.config.gate;
        clone.latch = Latch::new(config.bistable);
        clone
    }

    /// Stops or resumes learning. The running variance goes on being measured.
    pub fn set_learning(&mut self, learning: bool) {
        self.learning = learning;
    }

    /// A new episode.
    pub fn begin(&mut self) {
        self.latch.reset();
        self.rule.reset();
        self.closure.reset();
        self.options.turn(None, self.learning);
        self.running = Choice::Wander;
        self.mode = Mode::ExternalTask;
        (self.clock, self.episode_tick, self.reset_pending) = (0, 0, true);
        (self.was_in_band, self.waiting, self.gate_open) = (false, false, false);
        self.residue = Residue::new(RECKONED_SIZE);
        self.position = ORIGIN;
    }

    /// The move for this view.
    pub fn act(&mut self, view: &View) -> u16 {
        self.inside = Inside { gate_open: self.gate_open, ..Inside::default() };
        self.clock += 1;
        if self.reset_pending || LOOK_PERIOD <= self.clock {
            self.look(view);
            self.clock = 0;
        }
        self.navigation.choose(self.active(), view, !self.learning, &mut self.prng)
    }

    /// The option that moves serve now.
    pub fn active(&self) -> Choice {
        self.latch.held().and_then(Choice::from_code).unwrap_or(self.running)
    }

    /// Looks up: values, gate, latch.
    fn look(&mut self, view: &View) {
        self.reset_pending = false;
        self.inside.looked = true;
        self.looks += 1;
        if self.mode == Mode::InternalPlanning {
            self.mode = Mode::ExternalTask;
        }
        if let Interference::Pinned(variance) = self.config.interference {
            self.gate.force(variance);
        }
        let spiking = self.config.interference == Interference::Spiked && self.looks.is_multiple_of(2);
        let kept = spiking.then(|| self.gate.inject(THRESHOLD_STEP));
        let open = self.gate.is_open(self.episode_tick);
        if let Some(variance) = kept {
            self.gate.restore(variance);
        }
        self.gate_open = open;
        self.inside.gate_open = open;
        let closure = &self.closure;
        let weight = self.config.nogo_weight;
        let penalty = |choice: Choice| weight * closure.nogo_share_milli(choice as u8) / 1_000;
        let selection = self.options.select(view, self.waiting, open, self.learning, penalty, &mut self.prng);
        let held = self.latch.held();
        self.inside.spiked_while_held = spiking && held.is_some();
        if held.is_none() || !self.latch.bistable {
            self.running = selection.choice;
            if open && !selection.for_coverage {
                if self.latch.elevate(selection.choice as u8) {
                    self.inside.latched = true;
                    self.reset_pending = true;
                }
            } else if self.latch.variance_rose() {
                self.note_release(Release::Variance);
                self.inside.released_on_spike = spiking;
            }
        }
        self.options.turn(Some((self.active(), self.waiting)), self.learning);
    }

    fn note_release(&mut self, cause: Release) {
        self.inside.released = Some(cause);
        self.reset_pending = true;
    }

    /// What the move brought: surprise, learning, the rule, and what may end the hold.
    pub fn observe(&mut self, before: &View, action: u16, after: &View, reward: i32) {
        let event = after.event;
        let discontinuity = event.is_discontinuity();
        let reached = Cell { x: self.position.0, y: self.position.1 }.moved(action);
        let blocked =
            NEIGHBOURS.get(usize::from(action)).is_some_and(|cell| before.planes[0] >> cell & 1 == 1);
        if !blocked {
            self.position = (reached.x, reached.y);
        }
        let predicted = self.model.predict(before, action);
        let mut surprise = WorldModel::surprise(&predicted, before, after);
        if let Some(error) = self.config.scripted_error {
            surprise.error = error;
            self.gate.note_injection();
        }
        (self.inside.error, self.inside.informative) =
            (surprise.error, surprise.informative && !discontinuity);
        self.error_baseline = moving_average(self.error_baseline, surprise.error, VARIANCE_RATE);
        if self.config.starvation != Starvation::NoErrorSignal {
            self.gate.measure(surprise, discontinuity);
        }
        if self.learning {
            match self.config.starvation {
                Starvation::FrozenModel => {}
                Starvation::ScrambledActions => {
                    let other = self.prng.below(5) as u16;
                    self.model.learn(before, other, after);
                }
                _ => self.model.learn(before, action, after),
            }
            self.navigation.learn(self.active(), before, action, after);
        }
        self.gate.feel((-reward).max(0));
        self.options.earn(event, reward);
        // Waiting: in the band now and a tick ago, and nothing was paid or begun in between.
        self.waiting =
            after.in_band && self.was_in_band && event != Event::DelayOpen && event < Event::Waypoint;
        self.was_in_band = after.in_band;
        if event == Event::Hazard {
            self.residue.mark(self.position.0, self.position.1);
            self.reset_pending = true;
        }
        let option = self.latch.held().unwrap_or(self.running as u8);
        self.rule.follow(Some(option), after, self.mode);
        self.settle(event, after);
        self.latch.tick();
        self.episode_tick += 1;
    }

    /// The four ways a hold ends, in their order.
    fn settle(&mut self, event: Event, after: &View) {
        let completion = event.completion_milli();
        if self.latch.held().is_some() && self.config.release_threshold_milli <= completion {
            if self.closure.may_close_explicitly(&self.rule, self.mode) {
                self.close(true);
            } else {
                self.latch.release(Release::Completion);
            }
            self.note_release(Release::Completion);
            return;
        }
        let elevated = self.latch.held().is_some();
        let gate = self.mode.write_gate();
        let settled = self.closure.watch(&self.rule, elevated, self.mode, gate).is_ok();
        if settled && self.config.automatic_closure {
            self.close(false);
            self.note_release(Release::Closure);
        } else if elevated && URGENCY_RELEASE < self.gate.harm_level() {
            self.latch.release(Release::Urgency);
            self.note_release(Release::Urgency);
        } else if elevated && self.active().direction(after).is_none() {
            self.latch.release(Release::TargetLost);
            self.note_release(Release::TargetLost);
        }
    }

    /// All five parts of a closure, together.
    fn close(&mut self, explicit: bool) {
        let option = self.active() as u8;
        let (mode, gate) = (self.mode, self.mode.write_gate());
        let released = self.latch.release(if explicit { Release::Completion } else { Release::Closure });
        let refractory = if explicit { 0 } else { DECOMMIT_TICKS };
        self.latch.refract(refractory);
        let nogo_pushed = self.closure.push_nogo(option);
        let cells_discharged = self.residue.discharge(self.position.0, self.position.1);
        self.mode = Mode::InternalPlanning;
        self.error_baseline = self.inside.error;
        self.inside.closure = Some(Token {
            explicit,
            option,
            mode,
            gate,
            released,
            nogo_pushed,
            cells_discharged,
            baseline_reset: true,
            refractory,
        });
    }

    /// What happened inside during the last tick.
    pub fn inside(&self) -> &Inside {
        &self.inside
    }

    /// The gate.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Sets the registered threshold; the protocol allows that once.
    pub(crate) fn set_threshold(&mut self, threshold: i64) {
        self.config.gate.threshold = threshold;
        self.gate.config.threshold = threshold;
    }

    /// The latch.
    pub fn latch(&self) -> &Latch {
        &self.latch
    }

    /// The rule state.
    pub fn rule(&self) -> &RuleState {
        &self.rule
    }

    /// The closure operator.
    pub fn closure(&self) -> &Closure {
        &self.closure
    }

    /// Whether every option has enough evidence.
    pub fn is_covered(&self) -> bool {
        self.options.is_covered()
    }

    /// Ticks of this episode.
    pub fn episode_tick(&self) -> u32 {
        self.episode_tick
    }
}

#[cfg(test)]
mod tests;
