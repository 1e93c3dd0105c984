//! `report.html`: one page without outside parts. First the result: return beside baselines, learning curve, the policy as
//! rules and as a state diagram, why it acts as it does, what is proven and what is not; then the evidence: every patch with
//! its reason, its proof and the return before and after it, circuits drawn. Readable in the dark, on a narrow screen and on paper. Clauses: SCC-14.

mod curves;
mod drawing;
mod result;
mod rules;

pub use curves::{Curves, Played, Unexplained};
pub use rules::recorded_in;

use super::scoreboard::{best, standing};
use crate::cli::solve::support;
use crate::measured::Figure;
use bem_base::digest::Digest;
use bem_base::plain::plain;
use bem_base::words::quantity;
use bem_engine::climb::{Climb, Climbed, Edit, Practised, Track};
use bem_engine::learner::EvidenceBasis;
use bem_explain::html::escaped;
use bem_tables::figures::to_float;
use bem_teacher::mutate::Transformation;
use curves::{Curve, Patch, tolerance};
use drawing::{chart, drawing, legend};
use result::result;
use std::collections::BTreeMap;
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// A whole number with narrow spaces that do not break between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if 0 < place && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

fn steps_or_never(steps: Option<u64>) -> String {
    steps.map_or("never".to_string(), grouped)
}

/// The page's file in the run's folder.
pub const NAME: &str = "report.html";

/// The whole page: the result first, then the evidence.
pub fn html(climb: &Climb, curves: &Curves, head: &Digest) -> String {
    let seed = climb.config().seed;
    let single = (climb.config().stages == 1).then(|| climb.tracks().first().and_then(best)).flatten();
    let title = single.map_or("BEM run".to_string(), |climbed| escaped(&climbed.task));
    let mut page = format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8>\
         <meta name=viewport content='width=device-width,initial-scale=1'>\
         <meta name=color-scheme content='light dark'><title>{title}, seed {seed}</title><style>{STYLE}</style></head>\
         <body><h1>{title}</h1><p class=muted>seed {seed}, {} steps in all, history <code>{head}</code></p>",
        grouped(climb.steps())
    );
    match single {
        Some(climbed) => {
            result(&mut page, climb, curves, climbed);
            page.push_str("<h2 id=evidence>Evidence</h2>");
            evidence(&mut page, climb, curves);
            climb.tracks().iter().for_each(|track| details(&mut page, track, curves));
        }
        None => {
            scoreboard(&mut page, climb, curves);
            evidence(&mut page, climb, curves);
            climb.tracks().iter().for_each(|track| family(&mut page, climb, track, curves));
        }
    }
    applied_patches(&mut page, climb, curves);
    page.push_str("</body></html>\n");
    page
}

/// One line a family.
fn scoreboard(page: &mut String, climb: &Climb, curves: &Curves) {
    let tops = climb.tracks().iter().filter(|track| track.is_at_top()).count();
    let _ = write!(
        page,
        "<h2 id=scoreboard>Scoreboard</h2><p><b>{tops} of {}</b> at the top of their ladder of tasks.</p>\
         <div class=wide><table><tr><th class=left>family<th class=left>ladder<th>score<th>return<th>random play\
         <th>best fixed action<th>steps to 0.99<th>gates<th>patches<th>proofs</tr>",
        quantity(climb.tracks().len(), "family")
    );
    climb.tracks().iter().for_each(|track| row(page, track, curves));
    page.push_str(
        "</table></div><p class=muted>A filled cell is a rung that was solved, a ringed one was solved at once by a policy \
         from a lower rung, a crossed one resists. Score: 0 is random play, 1 is the optimum. Returns are means over at \
         least 1,000 episodes never used in learning, with their 95 % interval. Patches: installed of tried.</p>",
    );
}

/// What was installed and proven, in numbers.
fn evidence(page: &mut String, climb: &Climb, curves: &Curves) {
    let tries = || climb.tracks().iter().flat_map(|track| &track.climbed);
    let proofs: u32 = tries().map(|climbed| climbed.proofs).sum();
    let reused = tries().filter(|climbed| climbed.solved && climbed.reused).count();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lowered = 0;
    for (_, curve, patch) in installed(climb, curves) {
        *kinds.entry(&patch.kind).or_default() += 1;
        lowered += usize::from(patch.lowers(curve.span()));
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if kinds.is_empty() { "none".to_string() } else { kinds.join(", ") };
    let _ = write!(
        page,
        "<ul class=facts><li><b>{}</b>patches installed ({kinds})\
         <li><b>{lowered}</b>of them lowered the measured return by more than {:.1} % (<a href='#patches'>all of them</a>)\
         <li><b>{}</b>proofs accepted by the independent checker",
        installed(climb, curves).count(),
        100.0 * tolerance(),
        grouped(u64::from(proofs)),
    );
    if 1 < climb.config().stages {
        let _ = write!(page, "<li><b>{reused}</b>rungs solved at once by what a lower rung had taught");
    }
    page.push_str("</ul>");
}

/// Every installed patch with its task and its curve, in the order of families and tries.
fn installed<'a>(
    climb: &'a Climb,
    curves: &'a Curves,
) -> impl Iterator<Item = (&'a Climbed, &'a Curve, &'a Patch)> {
    let tries = climb.tracks().iter().flat_map(|track| &track.climbed);
    let with_curves = tries.filter_map(|climbed| curves.of(climbed).map(|curve| (climbed, curve)));
    with_curves.flat_map(|(climbed, curve)| {
        let accepted = curve.patches.iter().filter(|patch| patch.accepted);
        accepted.map(move |patch| (climbed, curve, patch))
    })
}

fn row(page: &mut String, track: &Track, curves: &Curves) {
    let cell = |stage: usize| {
        let solved = track.climbed.iter().find(|climbed| climbed.stage == stage && climbed.solved);
        let (class, word) = match solved {
            Some(climbed) if climbed.reused => ("cell on reused", "solved at once by a known machine"),
            Some(_) => ("cell on", "solved"),
            None if stage == track.solved() && track.is_stuck() => ("cell off", "resists"),
            None => ("cell", "not reached"),
        };
        format!("<span class='{class}' title='{}: {word}'></span>", escaped(&track.tasks()[stage]))
    };
    let cells: String = (0..track.stages()).map(cell).collect();
    let sum = |count: fn(&Climbed) -> u32| track.climbed.iter().map(count).sum::<u32>();
    let (applied, rejected) = (sum(|climbed| climbed.applied), sum(|climbed| climbed.rejected));
    let name = escaped(&track.family);
    let class = if track.is_at_top() { "class=pass" } else { "" };
    let _ = write!(
        page,
        "<tr><td class=left><a href='#{name}'>{name}</a><small {class}>{}</small><td class='left cells'>{cells}",
        escaped(&standing(track, curves))
    );
    match best(track) {
        Some(climbed) => {
            let measured = curves.of(climbed).and_then(|curve| curve.measured);
            let compared = measured.and_then(|measured| measured.baselines);
            let text = |figure: Option<Figure>| figure.map_or(String::new(), |figure| figure.text());
            let _ = write!(
                page,
                "<td>{:.3}<td>{}<td>{}<td>{}<td>{}<td>{}",
                to_float(climbed.score),
                text(measured.map(|measured| measured.policy)),
                text(compared.map(|compared| compared.random)),
                text(compared.map(|compared| compared.best_fixed)),
                steps_or_never(climbed.steps_to_99),
                climbed.policy.gates()
            );
        }
        None => page.push_str("<td><td><td><td><td><td>"),
    }
    let _ =
        write!(page, "<td>{applied} of {}<td>{}</tr>", applied + rejected, sum(|climbed| climbed.proofs),);
}

/// One family of a ladder: its tries, and what was learned for the highest rung.
fn family(page: &mut String, climb: &Climb, track: &Track, curves: &Curves) {
    let Some(climbed) = best(track) else { return };
    let name = escaped(&track.family);
    let standing = escaped(&standing(track, curves));
    let _ = write!(page, "<h2 id='{name}'>{name} <span class=muted>{standing}</span></h2>");
    page.push_str(&chart(track, curves));
    page.push_str(&legend(track));
    tries(page, track);
    let _ = write!(
        page,
        "<details><summary>the policy for {}: return, rules, proofs</summary>",
        escaped(&climbed.task)
    );
    result(page, climb, curves, climbed);
    page.push_str("</details>");
    details(page, track, curves);
}

fn tries(page: &mut String, track: &Track) {
    page.push_str(
        "<div class=wide><table><tr><th class=left>task<th>try<th>score<th>expected steps<th>steps to 0.99<th>steps<th>gates<th class='left long'>learned</tr>",
    );
    for climbed in &track.climbed {
        let _ = write!(
            page,
            "<tr><td class=left>{}<td>{}<td class={}>{:.3}<td>{}<td>{}<td>{}<td>{}<td class=left>{}{}</tr>",
            breakable(&climbed.task),
            climbed.attempt + 1,
            if climbed.solved { "pass" } else { "fail" },
            to_float(climbed.score),
            expected_steps(track, climbed),
            steps_or_never(climbed.steps_to_99),
            grouped(climbed.steps),
            climbed.policy.gates(),
            escaped(&plain(&climbed.words)),
            if climbed.reused { " <span class=tag>known</span>" } else { "" }
        );
    }
    page.push_str("</table></div>");
}

/// Steps that learning a rung should take by its structure, and as re-estimated while the run goes on.
fn expected_steps(track: &Track, climbed: &Climbed) -> String {
    let steps = |difficulty| grouped(to_float(difficulty).exp2().round() as u64);
    match track.difficulty_of(&climbed.task) {
        Some([structural, now]) if structural == now => steps(structural),
        Some([structural, now]) => format!("{} → {}", steps(structural), steps(now)),
        None => "-".to_string(),
    }
}

/// What is folded away: candidates, practice, the circuit drawn.
fn details(page: &mut String, track: &Track, curves: &Curves) {
    patches(page, track, curves);
    practice(page, track);
    if let Some(climbed) = best(track) {
        let circuit = climbed.policy.circuit();
        let _ = write!(
            page,
            "<details><summary>the circuit for {}: {}, {}</summary><div class=wide>",
            escaped(&climbed.task),
            quantity(circuit.gates().len(), "gate"),
            quantity(climbed.policy.memory_bits(), "memory bit")
        );
        page.push_str(&drawing(circuit, climbed.policy.reads(), climbed.policy.memory_bits()));
        page.push_str("</div></details>");
    }
}

/// A task for a narrow column: it may be broken between its settings.
fn breakable(task: &str) -> String {
    escaped(task).replace('{', "{<wbr>").replace(',', ",<wbr>")
}

/// The head of a table of patches; of a run over one task the task is not said again.
fn patch_head(task: bool) -> String {
    let task = if task { "<th class='left long'>task" } else { "" };
    format!("<div class=wide><table><tr>{task}{PATCH_HEAD}")
}

const PATCH_HEAD: &str = "<th>at step<th class=left>kind<th class='left long'>candidate\
    <th>gates<th>proofs<th class=left>what speaks for it<th>return<th class=left>verdict</tr>";

fn patch_row(page: &mut String, task: Option<&str>, span: f64, patch: &Patch) {
    let (class, word) = match patch.accepted {
        _ if patch.lowers(span) => ("fail", "installed, return fell"),
        true => ("pass", "installed"),
        false if patch.rolled_back => ("fail", "taken back"),
        false => ("fail", "refused"),
    };
    let reason =
        if patch.reason.is_empty() { String::new() } else { format!(": {}", escaped(&patch.reason)) };
    let units = |value: f64| format!("{:.3}", value / 1000.0);
    let returns = patch
        .returns
        .map_or(String::new(), |(before, after)| format!("{} → {}", units(before), units(after)));
    let (words, kind) = (escaped(&plain(&patch.words)), escaped(&patch.kind));
    let task = task.map_or(String::new(), |task| format!("<td class=left>{}", breakable(task)));
    let _ = write!(
        page,
        "<tr>{task}<td>{}<td class=left>{kind}<td class=left>{words}<td>{}<td>{}",
        grouped(patch.steps),
        patch.gates,
        patch.proofs,
    );
    let basis = EvidenceBasis::ALL.get(usize::from(patch.basis)).copied().unwrap_or_default();
    let speaks = support(basis, patch.accepted, patch.pairs, patch.mean, patch.lower_bound);
    let _ = write!(
        page,
        "<td class=left>{speaks}<td>{returns}<td class=left><span class={class}>{word}</span>{reason}</tr>"
    );
}

fn patches(page: &mut String, track: &Track, curves: &Curves) {
    let all = || track.climbed.iter().filter_map(|climbed| curves.of(climbed).map(|curve| (climbed, curve)));
    let count: usize = all().map(|(_, curve)| curve.patches.len()).sum();
    if count == 0 {
        return;
    }
    let _ = write!(
        page,
        "<details><summary>all {count} candidates, with what was measured</summary>{}",
        patch_head(1 < track.stages())
    );
    for (climbed, curve) in all() {
        for patch in &curve.patches {
            let task = (1 < track.stages()).then_some(climbed.task.as_str());
            patch_row(page, task, curve.span(), patch);
        }
    }
    page.push_str("</table></div></details>");
}

/// The latest tasks of practice.
fn practice(page: &mut String, track: &Track) {
    const SHOWN: usize = 20;
    if track.practised.is_empty() {
        return;
    }
    let tasks = if track.practised.len() == 1 { "task" } else { "tasks" };
    let _ = write!(
        page,
        "<details><summary>{} {tasks} of practice, chosen among {} templates</summary><div class=wide><table>\
         <tr><th class=left>task<th>score<th>steps<th class=left>templates that came of it (TEACH_EDIT)</tr>",
        track.practised.len(),
        track.templates()
    );
    for practised in track.practised.iter().rev().take(SHOWN) {
        let _ = write!(
            page,
            "<tr><td class=left>{}<td class={}>{:.3}<td>{}<td class='left long'>{}</tr>",
            escaped(&practised.task),
            if practised.solved { "pass" } else { "fail" },
            to_float(practised.score),
            grouped(practised.steps),
            edits_text(practised)
        );
    }
    page.push_str("</table></div></details>");
}

/// What a unit of practice made of the templates, and why.
fn edits_text(practised: &Practised) -> String {
    let reason = |edit: &Edit| match edit.situation {
        Some(_) => "for a counterexample",
        None if edit.transformation == Transformation::Compose as u8 => "by composition",
        None if edit.transformation == Transformation::Extract as u8 => "out of the trace",
        None => "by mutation",
    };
    let words = practised.edits.iter().map(|edit| format!("{} {}", escaped(&edit.tree), reason(edit)));
    words.collect::<Vec<_>>().join("; ")
}

/// The regression guard: every installed patch, with the return before and after it.
fn applied_patches(page: &mut String, climb: &Climb, curves: &Curves) {
    let _ = write!(
        page,
        "<h2 id=patches>Every installed patch</h2><p class=muted>Returns, before → after, are means of frozen policies on evaluation episodes. \
         A patch may lower them by {:.1} % of what there is to gain, the tolerance, and not more. Mean gain \
         over paired episodes, and what it is at least, are shares of the range of returns.</p>{}",
        100.0 * tolerance(),
        patch_head(1 < climb.config().stages)
    );
    for (climbed, curve, patch) in installed(climb, curves) {
        let task = (1 < climb.config().stages).then_some(climbed.task.as_str());
        patch_row(page, task, curve.span(), patch);
    }
    page.push_str("</table></div>");
}
