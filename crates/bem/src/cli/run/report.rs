//! `report.html`: one page without outside parts. Curves, ladder, patches with their reasons, circuits drawn.

use super::scoreboard::standing;
use crate::cli::solve::to_float;
use anyhow::{Context, Result};
use bem_base::digest::Digest;
use bem_circuit::netlist::Netlist;
use bem_engine::climb::{Climb, Climbed, Purpose, Track, UnitResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// What is drawn of one unit; kept beside the ledger so that a resumed run has its whole report.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Curve {
    /// Steps and mean return, one point for every change of the acting policy.
    points: Vec<(u64, f64)>,
    optimum: f64,
    random: f64,
    patches: Vec<Patch>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Patch {
    steps: u64,
    words: String,
    gates: usize,
    accepted: bool,
    pairs: u32,
    mean: f64,
    lower_bound: f64,
}

/// All curves of a run, by task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Curves(BTreeMap<String, Curve>);

const CURVES: &str = "curves.json";

impl Curves {
    /// Those of an earlier part of the run. A damaged file is an error: saving would overwrite what it holds.
    pub fn load(directory: &Path) -> Result<Curves> {
        let path = directory.join(CURVES);
        match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Curves::default()),
            read => serde_json::from_str(&read.with_context(|| path.display().to_string())?)
                .with_context(|| format!("{} is damaged: mend it or move it away", path.display())),
        }
    }

    /// Adds a unit.
    pub fn add(&mut self, result: &UnitResult) {
        let solution = &result.solution;
        let yardstick = solution.yardstick;
        let patches = solution
            .decisions
            .iter()
            .map(|decision| Patch {
                steps: decision.steps,
                words: decision.words.clone(),
                gates: decision.gates,
                accepted: decision.accepted,
                pairs: decision.evidence.pairs,
                mean: to_float(decision.evidence.mean),
                lower_bound: to_float(decision.evidence.lower_bound),
            })
            .collect();
        let curve = Curve {
            points: solution.curve.iter().map(|point| (point.steps, to_float(point.mean))).collect(),
            optimum: yardstick.map_or(0.0, |yardstick| to_float(yardstick.optimum)),
            random: yardstick.map_or(0.0, |yardstick| to_float(yardstick.random)),
            patches,
        };
        // Of practice only the counts are shown.
        if let Purpose::Rung { attempt, .. } = result.unit.purpose {
            self.0.insert(format!("{}#{attempt}", result.unit.task), curve);
        }
    }

    /// Writes them down.
    pub fn save(&self, directory: &Path) -> Result<()> {
        let path = directory.join(CURVES);
        std::fs::write(&path, serde_json::to_string(self)?).with_context(|| path.display().to_string())
    }

    fn of(&self, climbed: &Climbed) -> Option<&Curve> {
        self.0.get(&format!("{}#{}", climbed.task, climbed.attempt))
    }
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1c2733}\
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2.2rem;border-top:1px solid #d8dee6;padding-top:1rem}\
table{border-collapse:collapse;margin:.6rem 0;width:100%}td,th{padding:.2rem .6rem;border-bottom:1px solid #e3e8ee;text-align:right;vertical-align:top}\
td:first-child,th:first-child,td.left,th.left{text-align:left}.pass{color:#0a7a3d;font-weight:600}.fail{color:#b3261e}.muted{color:#667}\
.cell{display:inline-block;width:1.1rem;height:.9rem;margin-right:2px;border-radius:2px;background:#e3e8ee}.cell.on{background:#2f9e63}.cell.off{background:#e0a3a0}\
code{font-size:.85em;word-break:break-all}svg{background:#fafbfc;border:1px solid #e3e8ee;border-radius:4px;max-width:100%}details{margin:.4rem 0}summary{cursor:pointer}";

/// Text that cannot be taken for markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The whole page.
pub fn html(climb: &Climb, curves: &Curves, head: &Digest) -> String {
    let tops = climb.tracks().iter().filter(|track| track.is_at_top()).count();
    let mut page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <title>BEM run, seed {seed}</title><style>{STYLE}</style><h1>The Boolean Expert Machine</h1>\
         <p class=muted>seed {seed}, {} steps in all, history <code>{head}</code></p>\
         <p><b>{tops} of {}</b> families at the top of their ladder.</p>",
        climb.steps(),
        climb.tracks().len(),
        seed = climb.config().seed
    );
    page.push_str("<table><tr><th>family<th class=left>ladder<th>score<th>steps to 0.99<th>gates<th>memory bits<th>patches<th>proofs<th class=left>standing</tr>");
    for track in climb.tracks() {
        row(&mut page, track);
    }
    page.push_str("</table>");
    for track in climb.tracks() {
        family(&mut page, track, curves);
    }
    page.push_str("</html>\n");
    page
}

fn row(page: &mut String, track: &Track) {
    let cells: String = (0..track.stages())
        .map(|stage| {
            let class = if stage < track.solved() {
                "cell on"
            } else if stage == track.solved() && track.is_stuck() {
                "cell off"
            } else {
                "cell"
            };
            format!("<span class='{class}'></span>")
        })
        .collect();
    let best = track.climbed.iter().rev().find(|climbed| climbed.solved).or(track.climbed.last());
    let (score, steps, gates, memory) = best.map_or((0.0, "".into(), 0, 0), |climbed| {
        let steps = climbed.steps_to_99.map_or("never".to_string(), |steps| steps.to_string());
        (to_float(climbed.score), steps, climbed.policy.gates(), climbed.policy.memory_bits())
    });
    let (applied, rejected, proofs) = track.climbed.iter().fold((0, 0, 0), |sum, climbed| {
        (sum.0 + climbed.applied, sum.1 + climbed.rejected, sum.2 + climbed.proofs)
    });
    let _ = write!(
        page,
        "<tr><td><a href='#{0}'>{0}</a><td class=left>{cells}<td>{score:.3}<td>{steps}<td>{gates}<td>{memory}<td>{applied} of {1}<td>{proofs}<td class='left {2}'>{3}</tr>",
        track.family,
        applied + rejected,
        if track.is_at_top() { "pass" } else { "" },
        standing(track)
    );
}

fn family(page: &mut String, track: &Track, curves: &Curves) {
    if track.climbed.is_empty() {
        return;
    }
    let _ = write!(page, "<h2 id='{0}'>{0}</h2>", track.family);
    page.push_str(&chart(track, curves));
    page.push_str(
        "<table><tr><th>task<th>score<th>steps to 0.99<th>steps<th>gates<th class=left>learned</tr>",
    );
    for climbed in &track.climbed {
        let _ = write!(
            page,
            "<tr><td>{}<td class={}>{:.3}<td>{}<td>{}<td>{}<td class=left>{}</tr>",
            escaped(&climbed.task),
            if climbed.solved { "pass" } else { "fail" },
            to_float(climbed.score),
            climbed.steps_to_99.map_or("never".to_string(), |steps| steps.to_string()),
            climbed.steps,
            climbed.policy.gates(),
            escaped(&climbed.words)
        );
    }
    page.push_str("</table>");
    patches(page, track, curves);
    if let Some(climbed) = track.climbed.iter().rev().find(|climbed| climbed.solved) {
        let circuit = climbed.policy.circuit();
        let _ = write!(
            page,
            "<details><summary>circuit of {}: {} gates</summary>",
            escaped(&climbed.task),
            circuit.gates().len()
        );
        page.push_str(&drawing(circuit, climbed.policy.reads(), climbed.policy.memory_bits()));
        page.push_str("</details>");
    }
}

fn patches(page: &mut String, track: &Track, curves: &Curves) {
    page.push_str("<details><summary>patches, with what was measured</summary><table><tr><th>task<th>at step<th class=left>candidate<th>gates<th>pairs<th>mean gain<th>at least<th class=left>verdict</tr>");
    for climbed in &track.climbed {
        for patch in curves.of(climbed).map_or(&[][..], |curve| &curve.patches) {
            let (class, word) = if patch.accepted { ("pass", "installed") } else { ("fail", "rejected") };
            let _ = write!(
                page,
                "<tr><td>{}<td>{}<td class=left>{}<td>{}<td>{}<td>{:+.3}<td>{:+.3}<td class='left {class}'>{word}</tr>",
                escaped(&climbed.task),
                patch.steps,
                escaped(&patch.words),
                patch.gates,
                patch.pairs,
                patch.mean,
                patch.lower_bound
            );
        }
    }
    page.push_str("</table></details>");
}

const COLOURS: [&str; 6] = ["#1b6ca8", "#c4642d", "#2f9e63", "#8450a8", "#b3261e", "#667788"];

/// Score over steps, logarithmic, one line a rung.
fn chart(track: &Track, curves: &Curves) -> String {
    const WIDTH: f64 = 760.0;
    const HEIGHT: f64 = 190.0;
    let last = track.climbed.iter().map(|climbed| climbed.steps).max().unwrap_or(10).max(10) as f64;
    let x = |steps: u64| {
        40.0 + (WIDTH - 60.0) * ((steps.max(8) as f64) / 8.0).ln() / (last / 8.0).max(1.001).ln()
    };
    let y = |score: f64| 12.0 + (HEIGHT - 44.0) * (1.0 - score.clamp(-0.1, 1.05));
    let mut svg = format!(
        "<svg viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' role=img aria-label='score over steps'>"
    );
    for value in [0.0, 0.5, 1.0] {
        let _ = write!(
            svg,
            "<line x1='40' x2='{}' y1='{1:.1}' y2='{1:.1}' stroke='#e3e8ee'/><text x='6' y='{2:.1}' font-size='11' fill='#667'>{value:.1}</text>",
            WIDTH - 20.0,
            y(value),
            y(value) + 4.0
        );
    }
    let mut tick = 10u64;
    while (tick as f64) < last {
        let _ = write!(
            svg,
            "<text x='{:.1}' y='{}' font-size='11' fill='#667' text-anchor=middle>{tick}</text>",
            x(tick),
            HEIGHT - 12.0
        );
        tick *= 10;
    }
    for (place, climbed) in track.climbed.iter().enumerate() {
        let Some(curve) = curves.of(climbed) else { continue };
        let score = |mean: f64| (mean - curve.random) / (curve.optimum - curve.random).abs().max(1e-9);
        let mut points = String::new();
        let mut level = None;
        for (steps, mean) in &curve.points {
            if let Some(level) = level {
                let _ = write!(points, "{:.1},{:.1} ", x(*steps), y(level));
            }
            let _ = write!(points, "{:.1},{:.1} ", x(*steps), y(score(*mean)));
            level = Some(score(*mean));
        }
        let colour = COLOURS[place % COLOURS.len()];
        let _ = write!(
            svg,
            "<polyline fill=none stroke='{colour}' stroke-width='1.8' points='{points}'><title>{}</title></polyline>",
            escaped(&climbed.task)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Gates beyond which a drawing helps nobody.
const DRAWN_GATES_MAX: usize = 160;

/// The circuit by levels, inputs on the left, outputs on the right.
fn drawing(circuit: &Netlist, reads: &[u16], memory_bits: usize) -> String {
    if circuit.gates().is_empty() || DRAWN_GATES_MAX < circuit.gates().len() {
        return format!(
            "<p class=muted>{} gates: export it with <code>bem export</code>.</p>",
            circuit.gates().len()
        );
    }
    let signals = 2 + circuit.inputs() + circuit.gates().len();
    let mut level = vec![0usize; signals];
    for (position, gate) in circuit.gates().iter().enumerate() {
        level[circuit.gate_signal(position).index()] = 1 + level[gate.a.index()].max(level[gate.b.index()]);
    }
    let depth = level.iter().copied().max().unwrap_or(0) + 1;
    let used = |signal: usize| {
        circuit.gates().iter().any(|gate| gate.a.index() == signal || gate.b.index() == signal)
            || circuit.outputs().iter().any(|output| output.index() == signal)
    };
    let mut rows = vec![0usize; depth + 1];
    let mut place = vec![(0.0, 0.0); signals];
    for signal in (0..signals).filter(|signal| used(*signal)) {
        let column = level[signal];
        place[signal] = (60.0 + 70.0 * column as f64, 18.0 + 24.0 * rows[column] as f64);
        rows[column] += 1;
    }
    let height = 24.0 * rows.iter().copied().max().unwrap_or(1).max(circuit.outputs().len()) as f64 + 20.0;
    let width = 60.0 + 70.0 * depth as f64 + 60.0;
    let mut svg =
        format!("<svg viewBox='0 0 {width} {height}' width='{width}' role=img aria-label='circuit'>");
    let mut wires = String::new();
    let mut boxes = String::new();
    let name = |signal: usize| match signal {
        0 => "0".to_string(),
        1 => "1".to_string(),
        input => reads
            .get(input - 2)
            .map_or_else(|| format!("m{}", input - 2 - reads.len()), |bit| format!("o{bit}")),
    };
    for signal in (0..2 + circuit.inputs()).filter(|signal| used(*signal)) {
        let (x, y) = place[signal];
        let _ = write!(
            boxes,
            "<text x='{:.0}' y='{:.0}' font-size='11' text-anchor=end>{}</text>",
            x - 4.0,
            y + 4.0,
            name(signal)
        );
    }
    for (position, gate) in circuit.gates().iter().enumerate() {
        let (x, y) = place[circuit.gate_signal(position).index()];
        for source in [gate.a, gate.b] {
            let (from_x, from_y) = place[source.index()];
            let start = if level[source.index()] == 0 { from_x } else { from_x + 44.0 };
            let _ = write!(
                wires,
                "<line x1='{start:.0}' y1='{from_y:.0}' x2='{x:.0}' y2='{y:.0}' stroke='#9fb0c3'/>"
            );
        }
        let label = format!("{:?}", gate.op).to_lowercase();
        let _ = write!(
            boxes,
            "<rect x='{x:.0}' y='{:.0}' width='44' height='18' rx='4' fill='#eef3f9' stroke='#7d93ad'/><text x='{:.0}' y='{:.0}' font-size='10' text-anchor=middle>{label}</text>",
            y - 9.0,
            x + 22.0,
            y + 3.5
        );
    }
    let actions = circuit.outputs().len() - memory_bits;
    for (position, output) in circuit.outputs().iter().enumerate() {
        let (from_x, from_y) = place[output.index()];
        let start = if level[output.index()] == 0 { from_x } else { from_x + 44.0 };
        let (x, y) = (width - 46.0, 18.0 + 24.0 * position as f64);
        let label =
            if position < actions { format!("act{position}") } else { format!("m{}", position - actions) };
        let _ = write!(
            wires,
            "<line x1='{start:.0}' y1='{from_y:.0}' x2='{x:.0}' y2='{y:.0}' stroke='#2f9e63'/>"
        );
        let _ = write!(boxes, "<text x='{:.0}' y='{:.0}' font-size='11'>{label}</text>", x + 4.0, y + 4.0);
    }
    svg.push_str(&wires);
    svg.push_str(&boxes);
    svg.push_str("</svg>");
    svg
}
