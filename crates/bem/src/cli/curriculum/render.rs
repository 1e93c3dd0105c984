//! `bem curriculum render`: the grid in a terminal, with latch, option, variance and rule norm.

use super::super::Answer;
use super::trained;
use bem_curriculum::agent::Agent;
use bem_curriculum::episode::Onlooker;
use bem_curriculum::experiment::{Arm, pilot_grid};
use bem_curriculum::fraction::{ONE, THRESHOLD};
use bem_games::rulegrid::config::{DIFFICULTY_MAX, GridConfig};
use bem_games::rulegrid::world::{Cell, World};
use clap::Args;
use std::io::{IsTerminal, Write};
use std::time::Duration;

#[derive(Args)]
pub struct RenderArguments {
    /// The seed to train and watch
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// The arm to watch: emergent, forced_low, forced_high, no_hold, spike, spike_no_hold, strong
    #[arg(long, default_value = "emergent")]
    arm: String,
    /// With the delayed reward and the distractor
    #[arg(long)]
    delay: bool,
    /// Milliseconds between frames on a terminal
    #[arg(long, default_value_t = 80)]
    pause: u64,
    /// Stop after this many ticks
    #[arg(long, default_value_t = 200)]
    ticks: u32,
}

/// Draws every tick: in place on a terminal, one below the other into a pipe.
struct Screen {
    pause: Duration,
    live: bool,
    left: u32,
    total: i64,
}

impl Onlooker for Screen {
    fn see(&mut self, world: &World, agent: &Agent, reward: i32) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        self.total += i64::from(reward);
        let frame = frame(world, agent, self.total);
        let mut out = std::io::stdout().lock();
        // A reader that went away (head, less) is no reason to fail.
        let _ = if self.live { write!(out, "\x1b[H\x1b[2J{frame}") } else { writeln!(out, "{frame}") };
        let _ = out.flush();
        if self.live {
            std::thread::sleep(self.pause);
        }
    }
}

fn frame(world: &World, agent: &Agent, total: i64) -> String {
    let size = world.config().size as i32;
    let (waypoints, next) = world.waypoints();
    let letter = |cell: Cell| {
        if cell == world.agent() {
            '@'
        } else if world.is_wall(cell) {
            '#'
        } else if world.hazards().contains(&cell) {
            '!'
        } else if let Some(place) =
            waypoints.iter().position(|waypoint| *waypoint == cell).filter(|place| next <= *place)
        {
            if place == next { 'O' } else { 'o' }
        } else if let Some((_, kind)) = world.resources().iter().find(|(place, _)| *place == cell) {
            if *kind == 0 { 'a' } else { 'b' }
        } else {
            '.'
        }
    };
    let bar = |value: i64, full: i64| {
        let filled = (value * 20 / full.max(1)).clamp(0, 20) as usize;
        format!("[{}{}]", "=".repeat(filled), " ".repeat(20 - filled))
    };
    let lamp = if agent.latch().held().is_some() { "ON " } else { "off" };
    let variance = agent.gate().variance();
    let mut lines: Vec<String> = (0..size)
        .map(|y| (0..size).map(|x| letter(Cell { x, y })).flat_map(|sign| [sign, ' ']).collect())
        .collect();
    let side = [
        format!("tick {:>3}   return {total}", world.steps()),
        format!("latch {lamp}  option {}", agent.active().name()),
        format!(
            "variance  {} {:.3} (gate {:.2})",
            bar(variance, ONE),
            variance as f64 / ONE as f64,
            THRESHOLD as f64 / ONE as f64
        ),
        format!(
            "rule norm {} {:.3}",
            bar(agent.rule().norm(), 2 * ONE),
            agent.rule().norm() as f64 / ONE as f64
        ),
        format!("waiting for a delayed reward: {}", if world.is_waiting() { "yes" } else { "no" }),
        String::new(),
        "@ agent  O due waypoint  o later  ! hazard  a b resources".to_string(),
    ];
    for (line, text) in lines.iter_mut().skip(1).zip(side) {
        line.push_str("   ");
        line.push_str(&text);
    }
    lines.join("\n") + "\n"
}

/// `bem curriculum render`
pub fn run(arguments: &RenderArguments) -> anyhow::Result<Answer> {
    let arm = Arm::parse(&arguments.arm)?;
    let mut copy = trained(arguments.seed)?.arm(arm.agent_config());
    let mut grid = if arguments.delay { pilot_grid() } else { GridConfig::of_difficulty(DIFFICULTY_MAX) };
    grid.steps = grid.steps.min(arguments.ticks.max(1));
    let live = std::io::stdout().is_terminal();
    let mut screen =
        Screen { pause: Duration::from_millis(arguments.pause), live, left: arguments.ticks, total: 0 };
    copy.evaluate(&grid, 1, &mut screen);
    Ok(Answer::Yes)
}
