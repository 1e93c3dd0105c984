//! One episode of one agent on one grid, with everything the protocol counts.
//!
//! The evaluator's counts come from the world and from looking at the agent; the agent itself is handed views and
//! rewards. A committed step is a tick on which an option is held, never the mere length of an episode.
//! Clause: CUR-8.

use crate::agent::Agent;
use crate::closure::STABLE_TICKS;
use crate::latch::Release;
use crate::trace::Trace;
use bem_games::rulegrid::view::View;
use bem_games::rulegrid::world::{DoneCause, Event, GridCounts, World};
use bem_ledger::entry::event_code;

/// A maximal run of ticks of one hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldWindow {
    /// Its ticks.
    pub ticks: u32,
    /// Norm of the rule state at its first and last tick.
    pub norms: (i64, i64),
}

/// Everything counted over one episode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the count or value of what its name says")]
pub struct EpisodeReport {
    pub length: u32,
    pub died: bool,
    pub committed_steps: u32,
    pub gate_open_steps: u32,
    pub held_open_steps: u32,
    pub releases: [u32; 6],
    pub windows: Vec<HoldWindow>,
    pub variance_max: i64,
    pub variance_min: i64,
    pub variance_end: i64,
    pub error_sum: i64,
    pub informative_ticks: u32,
    pub counts: GridCounts,
    pub total_return: i64,
    pub harm: i64,
    pub norm_max: i64,
    pub stable_while_held: u32,
    pub closures_automatic: u32,
    pub closures_explicit: u32,
    pub explicit_near_pay: u32,
    pub broken_by_closure: u32,
    pub spikes_while_held: u32,
    pub releases_on_spike: u32,
    pub valid: bool,
}

impl EpisodeReport {
    /// Ticks held while the gate was open, as a share of ticks with an open gate, in thousandths.
    pub fn hold_rate_milli(&self) -> i64 {
        if self.gate_open_steps == 0 {
            0
        } else {
            i64::from(self.held_open_steps) * 1_000 / i64::from(self.gate_open_steps)
        }
    }

    /// Releases that should not happen: by a rise of the variance.
    pub fn premature_releases(&self) -> u32 {
        self.releases[Release::Variance as usize]
    }
}

/// Contacts as a share of contacts, misses and contacts out of order, in thousandths.
pub fn competence_milli<'a>(reports: impl IntoIterator<Item = &'a EpisodeReport>) -> i64 {
    let (mut contacts, mut all) = (0i64, 0i64);
    for report in reports {
        contacts += i64::from(report.counts.contacts);
        all += i64::from(report.counts.contacts + report.counts.misses + report.counts.out_of_order);
    }
    if all == 0 { 0 } else { contacts * 1_000 / all }
}

/// Looks on, tick by tick; for drawing.
pub trait Onlooker {
    /// After each tick.
    fn see(&mut self, world: &World, agent: &Agent, reward: i32);
}

impl Onlooker for () {
    fn see(&mut self, _world: &World, _agent: &Agent, _reward: i32) {}
}

/// Plays an episode to its end.
pub fn play(
    world: &mut World,
    agent: &mut Agent,
    seed: u64,
    global_step: u64,
    trace: &mut Trace,
    onlooker: &mut impl Onlooker,
) -> EpisodeReport {
    world.reset(seed, global_step);
    agent.begin();
    let mut report = EpisodeReport { variance_min: i64::MAX, ..EpisodeReport::default() };
    let mut view = View::of(world);
    let mut window: Option<(u64, HoldWindow)> = None;
    let mut ticks_since_paid = u32::MAX;
    loop {
        let action = agent.act(&view);
        let waited = world.is_waiting();
        let tick = world.step(action);
        let after = View::of(world);
        agent.observe(&view, action, &after, tick.reward);
        trace.tick();
        note(agent, trace);
        report.length += 1;
        report.total_return += i64::from(tick.reward);
        report.harm += i64::from(tick.harm);
        let paid = matches!(tick.event, Event::DelayPaidWaypoint | Event::DelayPaidComplete);
        ticks_since_paid = if paid { 0 } else { ticks_since_paid.saturating_add(1) };
        count(&mut report, agent, waited, ticks_since_paid);
        let norm = agent.rule().norm();
        match (&mut window, agent.latch().held()) {
            (Some((epoch, open)), Some(_)) if *epoch == agent.latch().epoch() => {
                open.ticks += 1;
                open.norms.1 = norm;
            }
            (_, held) => {
                report.windows.extend(window.take().map(|(_, closed)| closed));
                window = held.map(|_| (agent.latch().epoch(), HoldWindow { ticks: 1, norms: (norm, norm) }));
            }
        }
        onlooker.see(world, agent, tick.reward);
        view = after;
        if tick.done != DoneCause::Running {
            report.died = tick.done == DoneCause::HealthDepleted;
            break;
        }
    }
    report.windows.extend(window.map(|(_, open)| open));
    report.counts = *world.counts();
    report.variance_end = agent.gate().variance();
    report.valid = world.is_valid();
    report
}

fn note(agent: &Agent, trace: &mut Trace) {
    let inside = agent.inside();
    if inside.latched {
        trace.event(event_code::LATCH_ON, &[agent.active() as i64, agent.gate().variance()], "");
    }
    if let Some(cause) = inside.released {
        trace.event(event_code::LATCH_OFF, &[cause as i64], "");
    }
    if let Some(token) = inside.closure {
        let values = [
            i64::from(token.explicit),
            i64::from(token.option),
            token.mode as i64,
            token.gate,
            i64::from(token.released),
            i64::from(token.nogo_pushed),
            i64::from(token.cells_discharged),
            i64::from(token.baseline_reset),
            i64::from(token.refractory),
        ];
        trace.event(event_code::CLOSURE, &values, "");
    }
}

fn count(report: &mut EpisodeReport, agent: &Agent, waited: bool, ticks_since_paid: u32) {
    let inside = agent.inside();
    let held = agent.latch().held().is_some();
    report.committed_steps += u32::from(held);
    report.gate_open_steps += u32::from(inside.gate_open);
    report.held_open_steps += u32::from(inside.gate_open && held);
    if let Some(cause) = inside.released {
        report.releases[cause as usize] += 1;
    }
    if let Some(token) = inside.closure {
        if token.explicit {
            report.closures_explicit += 1;
            report.explicit_near_pay += u32::from(ticks_since_paid <= 2);
        } else {
            report.closures_automatic += 1;
            report.broken_by_closure += u32::from(waited);
        }
    }
    report.spikes_while_held += u32::from(inside.spiked_while_held);
    report.releases_on_spike += u32::from(inside.released_on_spike);
    let variance = agent.gate().variance();
    report.variance_max = report.variance_max.max(variance);
    report.variance_min = report.variance_min.min(variance);
    if inside.informative {
        report.error_sum += inside.error;
        report.informative_ticks += 1;
    }
    let norm = agent.rule().norm();
    report.norm_max = report.norm_max.max(norm);
    let fired = inside.closure.is_some_and(|token| !token.explicit);
    report.stable_while_held += u32::from(held && STABLE_TICKS <= agent.closure().stable() || fired);
}
