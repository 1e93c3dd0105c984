//! The report's drawings: learning curves and circuits as SVG, coloured by the page's style.

use super::curves::{Curve, Curves, Earned};
use super::escaped;
use crate::measured::{Figure, Measured, units};
use bem_circuit::netlist::Netlist;
use bem_engine::climb::Track;
use std::fmt::Write;

/// Colours of lines, in the style sheet.
const COLOURS: usize = 6;

/// Score over steps, logarithmic, one line a try.
pub fn chart(track: &Track, curves: &Curves) -> String {
    const WIDTH: f64 = 760.0;
    const HEIGHT: f64 = 190.0;
    let last = track.climbed.iter().map(|climbed| climbed.steps).max().unwrap_or(100).max(100) as f64;
    let x = |steps: u64| 40.0 + (WIDTH - 60.0) * ((steps.max(8) as f64) / 8.0).ln() / (last / 8.0).ln();
    let y = |score: f64| 12.0 + (HEIGHT - 44.0) * (1.0 - score.clamp(-0.1, 1.05));
    let mut svg = format!(
        "<svg class=chart viewBox='0 0 {WIDTH} {HEIGHT}' role=img aria-label='score over steps'>\
         <text class=axis x='{}' y='{}' text-anchor=end>steps</text>",
        WIDTH - 6.0,
        HEIGHT - 12.0
    );
    for value in [0.0, 0.5, 1.0] {
        let _ = write!(
            svg,
            "<line class=grid x1='40' x2='{}' y1='{1:.1}' y2='{1:.1}'/><text class=axis x='6' y='{2:.1}'>{value:.1}</text>",
            WIDTH - 20.0,
            y(value),
            y(value) + 4.0
        );
    }
    let mut tick = 10u64;
    while (tick as f64) < last && x(tick) < WIDTH - 70.0 {
        let _ = write!(
            svg,
            "<text class=axis x='{:.1}' y='{}' text-anchor=middle>{}</text>",
            x(tick),
            HEIGHT - 12.0,
            super::grouped(tick)
        );
        tick *= 10;
    }
    for (place, climbed) in track.climbed.iter().enumerate() {
        let Some(curve) = curves.of(climbed) else { continue };
        let random = curve.random.unwrap_or(0.0);
        let score = |mean: f64| (mean - random) / curve.span().abs().max(1e-9);
        let mut points = String::new();
        let mut level = None;
        for (steps, mean) in &curve.points {
            if let Some(level) = level {
                let _ = write!(points, "{:.1},{:.1} ", x(*steps), y(level));
            }
            let _ = write!(points, "{:.1},{:.1} ", x(*steps), y(score(*mean)));
            level = Some(score(*mean));
        }
        let _ = write!(
            svg,
            "<polyline fill=none style='stroke:var(--c{})' stroke-width='1.8' points='{points}'><title>{}</title></polyline>",
            place % COLOURS,
            escaped(&climbed.task)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Returns as bars with their 95 % intervals: the policy, the baselines, the optimum where it is known.
pub fn bars(measured: &Measured) -> String {
    let mut rows = vec![("learned policy".to_string(), measured.policy, "fill own")];
    if let Some(compared) = &measured.baselines {
        rows.extend(compared.rows().into_iter().map(|(name, figure)| (name, figure, "fill")));
    }
    if let Some(optimum) = measured.optimum {
        let figure = Figure { mean: optimum, interval95: None, episodes: 0, bad: 0 };
        rows.push(("optimum".to_string(), figure, "fill best"));
    }
    let ends = |figure: &Figure| figure.interval95.unwrap_or((figure.mean, figure.mean));
    let low = rows.iter().map(|(_, figure, _)| ends(figure).0).min().unwrap_or(0).min(0);
    let high = rows.iter().map(|(_, figure, _)| ends(figure).1).max().unwrap_or(0).max(0);
    let width = (high - low).max(1) as f64;
    let place = |value: i64| 100.0 * (value - low) as f64 / width;
    let mut text = "<div class=bars>".to_string();
    for (name, figure, class) in &rows {
        let (from, to) = (place(figure.mean.min(0)), place(figure.mean.max(0)));
        let (left, right) = ends(figure);
        let _ = write!(
            text,
            "<div class=bar><span>{}</span><span class=number>{}</span><span class=track>\
             <span class='{class}' style='left:{from:.2}%;width:{:.2}%'></span>",
            escaped(name),
            figure.text(),
            to - from
        );
        if figure.interval95.is_some() {
            let _ = write!(
                text,
                "<span class=whisker style='left:{:.2}%;width:{:.2}%'></span>",
                place(left),
                place(right) - place(left)
            );
        }
        text.push_str("</span></div>");
    }
    text.push_str("</div>");
    text
}

/// A drawing over steps: its ranges, and where in it something lies.
struct Frame {
    height: f64,
    low: f64,
    high: f64,
    last: u64,
}

impl Frame {
    const WIDTH: f64 = 760.0;
    const LEFT: f64 = 84.0;
    const RIGHT: f64 = Frame::WIDTH - 16.0;

    /// A frame that these values fit in; none without a value.
    fn around(height: f64, last: u64, values: impl Iterator<Item = f64> + Clone) -> Option<Frame> {
        let (low, high) = (values.clone().fold(f64::MAX, f64::min), values.fold(f64::MIN, f64::max));
        let (low, high) = if high - low < 1e-3 { (low - 0.5, high + 0.5) } else { (low, high) };
        (low < high).then(|| Frame { height, low, high, last: last.max(1) })
    }

    fn x(&self, steps: u64) -> f64 {
        Frame::LEFT + (Frame::RIGHT - Frame::LEFT) * steps as f64 / self.last as f64
    }

    fn y(&self, value: f64) -> f64 {
        14.0 + (self.height - 48.0) * (self.high - value) / (self.high - self.low)
    }

    /// The beginning of the drawing, with its grid and the numbers at its sides.
    fn open(&self, label: &str, number: fn(f64) -> String) -> String {
        let mut svg = format!(
            "<svg class=chart viewBox='0 0 {} {}' role=img aria-label='{label}'>",
            Frame::WIDTH,
            self.height
        );
        for place in 0..=4u32 {
            let value = self.low + (self.high - self.low) * f64::from(place) / 4.0;
            let steps = self.last * u64::from(place) / 4;
            let anchor = if place == 4 { "end" } else { "middle" };
            let _ = write!(
                svg,
                "<line class=grid x1='{}' x2='{}' y1='{2:.1}' y2='{2:.1}'/><text class=axis x='{3}' y='{4:.1}' \
                 text-anchor=end>{5}</text>",
                Frame::LEFT,
                Frame::RIGHT,
                self.y(value),
                Frame::LEFT - 6.0,
                self.y(value) + 4.0,
                number(value)
            );
            // On a narrow screen every second number is enough.
            if place % 2 == 0 {
                let _ = write!(
                    svg,
                    "<text class=axis x='{:.1}' y='{}' text-anchor={anchor}>{}{}</text>",
                    self.x(steps),
                    self.height - 10.0,
                    super::grouped(steps),
                    if place == 4 { " steps" } else { "" }
                );
            }
        }
        svg
    }

    /// A line through points.
    fn line(&self, colour: usize, points: impl Iterator<Item = (u64, f64)>) -> String {
        let points: String =
            points.map(|(steps, value)| format!("{:.1},{:.1} ", self.x(steps), self.y(value))).collect();
        format!("<polyline fill=none style='stroke:var(--c{colour})' stroke-width='1.8' points='{points}'/>")
    }

    /// A dashed line at a level, with its name.
    fn level(&self, level: f64, colour: &str, name: &str) -> String {
        let y = self.y(level);
        format!(
            "<line x1='{}' x2='{}' y1='{y:.1}' y2='{y:.1}' style='stroke:var(--{colour})' stroke-dasharray='5 4'/>\
             <text class=axis x='{}' y='{:.1}' text-anchor=end>{name}</text>",
            Frame::LEFT,
            Frame::RIGHT,
            Frame::RIGHT - 6.0,
            if y < 30.0 { y + 14.0 } else { y - 5.0 }
        )
    }
}

/// Returns over steps: what was played, the frozen policy at every change, and the optimum where it is known.
pub fn returns(curve: &Curve) -> String {
    let last = curve.played.iter().chain(&curve.points).map(|(steps, _)| *steps).max().unwrap_or(1);
    let baseline = curve.measured.and_then(|measured| measured.baselines);
    let baseline = baseline.map(|compared| units(compared.best_fixed.mean.max(compared.random.mean)) * 1e3);
    let levels = curve.optimum.into_iter().chain(baseline);
    let values = curve.played.iter().chain(&curve.points).map(|(_, mean)| *mean).chain(levels);
    let Some(frame) = Frame::around(230.0, last, values) else {
        return "<p class=muted>Nothing was played.</p>".to_string();
    };
    let mut svg = frame.open("return over steps", |mean| format!("{:.2}", mean / 1e3));
    for (level, colour, name) in [(curve.optimum, "on", "optimum"), (baseline, "c5", "best baseline")] {
        svg.extend(level.map(|level| frame.level(level, colour, name)));
    }
    svg.push_str(&frame.line(0, curve.played.iter().copied()));
    for (steps, mean) in &curve.points {
        let _ = write!(
            svg,
            "<circle cx='{:.1}' cy='{:.1}' r='3.5' style='fill:var(--c1)'><title>step {steps}: {:.3}</title></circle>",
            frame.x(*steps),
            frame.y(*mean),
            mean / 1e3
        );
    }
    svg.push_str("</svg>");
    svg
}

/// What all episodes together fell short of best play, on the same seeds or in the mean, summed up over steps; nothing where no
/// optimum is known.
pub fn regret(curve: &Curve) -> Option<String> {
    let optimum = curve.optimum?;
    let expected = |sums: &Earned| optimum * sums.episodes as f64 - sums.earned as f64;
    let lost = |sums: &Earned| sums.lost.map_or_else(|| expected(sums), |lost| lost as f64).max(0.0);
    summed(curve, "cumulative regret over steps", lost)
}

/// What all episodes together fell short of what the final policy earns, summed up over steps, and its sum in the end, in
/// milli-units: all that can be said where no optimum is known; nothing where that policy was not measured. Episodes that
/// earned more than it does lower the line.
pub fn shortfall(curve: &Curve) -> Option<(String, f64)> {
    let level = units(curve.measured?.policy.mean) * 1e3;
    let short = |sums: &Earned| level * sums.episodes as f64 - sums.earned as f64;
    let drawn = summed(curve, "short of what the final policy earns, summed over steps", short)?;
    Some((drawn, short(curve.online.last()?)))
}

/// A sum that grows with steps.
fn summed(curve: &Curve, name: &str, sum: impl Fn(&Earned) -> f64) -> Option<String> {
    let points = || curve.online.iter().map(|sums| (sums.steps, sum(sums)));
    let last = curve.online.last()?.steps;
    let frame = Frame::around(190.0, last, points().map(|(_, sum)| sum).chain([0.0]))?;
    let mut svg = frame.open(name, |sum| format!("{:.1}", sum / 1e3));
    svg.push_str(&frame.line(2, points()));
    svg.push_str("</svg>");
    Some(svg)
}

/// The share of steps, part by part, whose action was not what the frozen machine would have done.
pub fn explored(curve: &Curve) -> Option<String> {
    let parts = || {
        curve.online.windows(2).map(|pair| {
            let (strayed, steps) = (pair[1].strayed - pair[0].strayed, pair[1].steps - pair[0].steps);
            (pair[1].steps, strayed as f64 / steps.max(1) as f64)
        })
    };
    let last = curve.online.last()?.steps;
    let frame = Frame::around(150.0, last, parts().map(|(_, share)| share).chain([0.0, 1.0]))?;
    let mut svg = frame.open("share of explored steps", |share| format!("{:.0} %", 100.0 * share));
    svg.push_str(&frame.line(3, parts()));
    svg.push_str("</svg>");
    Some(svg)
}

/// Which colour is which try.
pub fn legend(track: &Track) -> String {
    let mut text = "<ul class=legend>".to_string();
    for (place, climbed) in track.climbed.iter().enumerate() {
        let again =
            if climbed.attempt == 0 { String::new() } else { format!(", try {}", climbed.attempt + 1) };
        let colour = place % COLOURS;
        let task = escaped(&climbed.task);
        let _ = write!(text, "<li><i style='background:var(--c{colour})'></i>{task}{again}");
    }
    text.push_str("</ul>");
    text
}

/// Gates beyond which a drawing helps nobody.
const DRAWN_GATES_MAX: usize = 160;

/// The circuit by levels, inputs on the left, outputs on the right.
pub fn drawing(circuit: &Netlist, reads: &[u16], memory_bits: usize) -> String {
    let gates = circuit.gates().len();
    if DRAWN_GATES_MAX < gates {
        return format!(
            "<p class=muted>{gates} gates are too many to draw: take it out with <code>bem export</code>.</p>"
        );
    }
    let signals = 2 + circuit.inputs() + gates;
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
    let width = 60.0 + 70.0 * depth as f64 + 80.0;
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
        let (x, y) = (x - 4.0, y + 4.0);
        let _ =
            write!(boxes, "<text class=name x='{x:.0}' y='{y:.0}' text-anchor=end>{}</text>", name(signal));
    }
    let start_of = |signal: usize| if level[signal] == 0 { place[signal].0 } else { place[signal].0 + 44.0 };
    for (position, gate) in circuit.gates().iter().enumerate() {
        let (x, y) = place[circuit.gate_signal(position).index()];
        for source in [gate.a.index(), gate.b.index()] {
            let (start, from) = (start_of(source), place[source].1);
            let _ =
                write!(wires, "<line class=wire x1='{start:.0}' y1='{from:.0}' x2='{x:.0}' y2='{y:.0}'/>");
        }
        let label = format!("{:?}", gate.op).to_lowercase();
        let _ = write!(
            boxes,
            "<rect class=gate x='{x:.0}' y='{:.0}' width='44' height='18' rx='4'/><text class=op x='{:.0}' y='{:.0}' text-anchor=middle>{label}</text>",
            y - 9.0,
            x + 22.0,
            y + 3.5
        );
    }
    let actions = circuit.outputs().len() - memory_bits;
    for (position, output) in circuit.outputs().iter().enumerate() {
        let (start, from) = (start_of(output.index()), place[output.index()].1);
        let (x, y) = (width - 46.0, 18.0 + 24.0 * position as f64);
        let label =
            if position < actions { format!("act{position}") } else { format!("m{}", position - actions) };
        let _ = write!(wires, "<line class=out x1='{start:.0}' y1='{from:.0}' x2='{x:.0}' y2='{y:.0}'/>");
        let _ = write!(boxes, "<text class=name x='{:.0}' y='{:.0}'>{label}</text>", x + 4.0, y + 4.0);
    }
    format!(
        "<svg viewBox='0 0 {width} {height}' width='{width}' height='{height}' role=img aria-label='circuit'>{wires}{boxes}</svg>\
         <p class=muted>o: bits observed, m: memory bits (left: before the step, right: after it), act: bits of the action.</p>"
    )
}
