//! A self-contained page: the variance crossing the gate, the ladder, the arms, the pilot and the five verdicts.

use bem_curriculum::experiment::{self, Criterion, Outcome, SeedResult, Trained};
use bem_curriculum::fraction::{ONE, THRESHOLD};
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1c2733}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;margin:.5rem 0}\
td,th{padding:.25rem .7rem;border-bottom:1px solid #d8dee6;text-align:right}td:first-child,th:first-child{text-align:left}\
.pass{color:#0a7a3d;font-weight:600}.fail{color:#b3261e;font-weight:600}.muted{color:#667}\
svg{background:#fafbfc;border:1px solid #e3e8ee;border-radius:4px}";

/// The whole page.
pub fn html(results: &[(SeedResult, Trained)], outcome: Outcome, criteria: &[Criterion]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Commitment curriculum</title><style>{STYLE}</style>\
         <h1>Phased commitment curriculum</h1><p>Outcome: <span class={}>{outcome:?}</span>, {} seeds.</p>",
        if outcome == Outcome::Pass { "pass" } else { "fail" },
        results.len()
    );
    page.push_str("<h2>Criteria</h2><table><tr><th>criterion<th>measured<th>verdict</tr>");
    for criterion in criteria {
        let (class, word) = if criterion.passed { ("pass", "PASS") } else { ("fail", "FAIL") };
        let _ = write!(
            page,
            "<tr><td>{}<br><span class=muted>{}</span><td>{}<td class={class}>{word}</tr>",
            criterion.name, criterion.bar, criterion.value
        );
    }
    let plain: Vec<SeedResult> = results.iter().map(|(result, _)| result.clone()).collect();
    let _ = write!(
        page,
        "</table><p>Emergent against forced low: the behaviour <b>{}</b>.</p>",
        experiment::contrast(&plain)
    );
    for (result, _) in results {
        seed(&mut page, result);
    }
    page.push_str("</html>\n");
    page
}

fn seed(page: &mut String, result: &SeedResult) {
    let _ = write!(
        page,
        "<h2>Seed {}</h2><p class=muted>trace head {}{}</p>",
        result.seed,
        result.trace_head,
        if result.threshold_step_used { "; the threshold was raised once to 0.45" } else { "" }
    );
    let mut curve = result.warmup.variance_curve.clone();
    let border = curve.len();
    curve.extend(result.consolidate.iter().flat_map(|phase| phase.variance_curve.iter().copied()));
    let ladder: Vec<(usize, usize)> =
        result.ladder().iter().map(|step| (border + step.episode as usize, step.difficulty)).collect();
    page.push_str(&chart(&curve, border, &ladder));
    page.push_str(
        "<table><tr><th>arm<th>committed<th>length<th>hold rate<th>premature<th>closures<th>contacts<th>error</tr>",
    );
    for arm in &result.arms {
        let _ = write!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{:.2}<td>{}<td>{}<td>{}<td>{:.3}</tr>",
            arm.arm.name(),
            arm.committed_median,
            arm.length_median,
            super::milli(arm.hold_rate_milli),
            arm.premature_releases,
            arm.closures_automatic + arm.closures_explicit,
            arm.contacts_mean,
            super::milli(arm.error_mean_milli)
        );
    }
    page.push_str("</table><table><tr><th>delayed reward<th>opened<th>paid<th>broken<th>unresolved<th>success<th>window<th>persistence</tr>");
    for arm in &result.pilot {
        let _ = write!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{:.2}<td>{:.1}<td>{:.2}</tr>",
            arm.arm.name(),
            arm.opened,
            arm.paid,
            arm.broken,
            arm.unresolved,
            super::milli(arm.success_milli),
            super::milli(arm.window_mean_milli),
            super::milli(arm.persistence_milli)
        );
    }
    page.push_str("</table><table><tr><th>starved control<th>aborted at episode<th>variance</tr>");
    for control in &result.starved {
        let at = control.aborted_at.map_or("never".into(), |episode| episode.to_string());
        let _ = write!(
            page,
            "<tr><td>{}<td>{at}<td>{:.3}</tr>",
            control.control,
            super::milli(control.variance_milli)
        );
    }
    page.push_str("</table>");
}

/// Running variance per episode, the gate as a line, phases and difficulties marked.
fn chart(curve: &[i64], border: usize, ladder: &[(usize, usize)]) -> String {
    const WIDTH: f64 = 860.0;
    const HEIGHT: f64 = 220.0;
    const LEFT: f64 = 40.0;
    let count = curve.len().max(2) as f64 - 1.0;
    let x = |episode: f64| LEFT + (WIDTH - LEFT - 10.0) * episode / count;
    let y = |value: f64| 10.0 + (HEIGHT - 40.0) * (1.0 - value);
    let share = |value: i64| value as f64 / ONE as f64;
    let points: Vec<String> = curve
        .iter()
        .enumerate()
        .map(|(episode, value)| format!("{:.1},{:.1}", x(episode as f64), y(share(*value).min(1.0))))
        .collect();
    let gate = y(share(THRESHOLD));
    let mut svg = format!(
        "<svg viewBox='0 0 {WIDTH} {HEIGHT}' width='100%' role=img aria-label='running variance per episode'>\
         <line x1='{LEFT}' x2='{WIDTH}' y1='{gate}' y2='{gate}' stroke='#b3261e' stroke-dasharray='5 4'/>\
         <text x='{}' y='{}' font-size='12' fill='#b3261e' text-anchor='end'>gate 0.40</text>",
        WIDTH - 12.0,
        gate - 5.0
    );
    for value in [0.0, 0.5, 1.0] {
        let _ =
            write!(svg, "<text x='4' y='{:.1}' font-size='12' fill='#667'>{value:.1}</text>", y(value) + 4.0);
    }
    let edge = x(border as f64 - 0.5);
    let _ = write!(
        svg,
        "<line x1='{edge:.1}' x2='{edge:.1}' y1='10' y2='{}' stroke='#98a4b3'/>\
         <text x='{:.1}' y='{}' font-size='12' fill='#667'>P0</text><text x='{:.1}' y='{}' font-size='12' fill='#667'>P1</text>",
        HEIGHT - 30.0,
        LEFT + 4.0,
        HEIGHT - 8.0,
        edge + 4.0,
        HEIGHT - 8.0
    );
    for (episode, difficulty) in ladder {
        let place = x(*episode as f64 - 0.5);
        let _ = write!(
            svg,
            "<line x1='{place:.1}' x2='{place:.1}' y1='{}' y2='{}' stroke='#3867d6'/>\
             <text x='{:.1}' y='{}' font-size='12' fill='#3867d6'>d{difficulty}</text>",
            HEIGHT - 42.0,
            HEIGHT - 30.0,
            place + 2.0,
            HEIGHT - 18.0
        );
    }
    let _ = write!(
        svg,
        "<polyline fill='none' stroke='#1c2733' stroke-width='1.8' points='{}'/></svg>",
        points.join(" ")
    );
    svg
}
