//! The first thing a report says: what was earned, beside what simple policies earn, and what is proven of it.
//!
//! Words for people who know reinforcement learning and not this program. Clauses: SCC-8, SCC-14, GLE-9.

use super::curves::{Curve, Curves};
use super::drawing::{bars, explored, regret, returns, shortfall};
use super::rules::PolicyPart;
use super::{escaped, grouped};
use crate::cli::solve::{COUNTING, Look};
use crate::learned::ADAPTING;
use crate::measured::{BesideBaseline, Figure, GainShown, Measured, units};
use bem_base::words::quantity;
use bem_engine::climb::{Climb, Climbed};
use bem_engine::learner::guarding::{USER_RULES_OUT, WERE_BAD};
use bem_explain::{Explanation, counts_steps};
use bem_tables::figures::to_float;
use std::fmt::Write;

/// Everything about one policy: return, curve, rules, states, reasons, and what was proven.
pub fn result(page: &mut String, climb: &Climb, curves: &Curves, climbed: &Climbed) {
    let Some(curve) = curves.of(climbed) else { return };
    let explained = PolicyPart::new(climb, curves, climbed);
    headline(page, climbed, curve);
    // Where it cannot be read, whoever goes on with the run is told so.
    if let Some(looked) = Look::kept(curves.directory()).unwrap_or_default().told() {
        let _ = write!(page, "<p class=muted>First {}.</p>", escaped(&looked));
    }
    warnings(page, climbed, curve);
    if let Some(measured) = &curve.measured {
        page.push_str(&bars(measured));
        comparison(page, measured);
    }
    page.push_str("<h3>Learning curve</h3>");
    page.push_str(&returns(curve));
    let _ = write!(
        page,
        "<p class=muted>Line: mean return of the episodes as they were played, exploration included. Dots: the frozen \
         policy, evaluated after each change.</p>"
    );
    while_learning(page, climbed, curve);
    explained.rules(page);
    explained.reasons(page);
    proven(page, climbed, curve, &explained.whole);
}

/// What learning cost: regret as it grew, and how much was explored.
fn while_learning(page: &mut String, climbed: &Climbed, curve: &Curve) {
    let (Some(share), steps) = (explored(curve), grouped(climbed.steps)) else { return };
    page.push_str("<h3>While it learned</h3>");
    if let (Some(drawn), Some(lost)) = (regret(curve), curve.regret) {
        let _ = write!(
            page,
            "{drawn}<p class=muted>Cumulative regret: what all episodes fell short of best play, exploration and measurements \
             included; {:.3} over all {steps} steps. A flat line costs nothing any more.</p>",
            lost / 1e3
        );
    } else if let (None, Some((drawn, short))) = (curve.optimum, shortfall(curve)) {
        let _ = write!(
            page,
            "{drawn}<p class=muted>Short of the final policy's return: what all episodes earned less than the policy does that \
             came out of them, exploration and measurements included; {:.3} over all {steps} steps. This is not regret: the \
             optimum is unknown, and a better policy may exist. A flat line costs nothing any more.</p>",
            short / 1e3
        );
    }
    let _ = write!(
        page,
        "{share}<p class=muted>Share of steps whose action was not what the policy in force would have done.</p>"
    );
}

fn headline(page: &mut String, climbed: &Climbed, curve: &Curve) {
    let (word, class) = match (curve.optimum, climbed.solved) {
        (None, _) => ("optimum unknown".to_string(), ""),
        (Some(_), true) => (format!("solved, score {:.3}", to_float(climbed.score)), "pass"),
        (Some(_), false) => (format!("not solved, score {:.3}", to_float(climbed.score)), "fail"),
    };
    let _ = write!(page, "<ul class=facts>");
    match &curve.measured {
        Some(Measured { policy, .. }) => {
            let _ = write!(
                page,
                "<li><b>{}</b>mean return, 95 % interval over {} episodes",
                policy.text(),
                grouped(u64::from(policy.episodes))
            );
        }
        None => page.push_str("<li><b>not measured</b>mean return"),
    }
    let below = match curve.optimum {
        Some(optimum) => format!("score: 0 is random play, 1 the optimum ({:.3})", optimum / 1e3),
        None => "the return counts, beside the baselines".to_string(),
    };
    let _ = write!(
        page,
        "<li><b class='{class}'>{word}</b>{below}\
         <li><b>{}</b>steps of learning, budget {}\
         <li><b>{}</b>{}, reads {}</ul>",
        grouped(climbed.steps),
        grouped(climbed.budget),
        quantity(climbed.policy.gates(), "gate"),
        quantity(climbed.policy.memory_bits(), "memory bit"),
        quantity(climbed.policy.reads().len(), "observation bit")
    );
}

fn warnings(page: &mut String, climbed: &Climbed, curve: &Curve) {
    let mut warn = |text: String| {
        let _ = write!(page, "<p class=warning><b>Warning:</b> {}</p>", escaped(&text));
    };
    if 0 < counts_steps(&climbed.policy) {
        warn(format!("{COUNTING}."));
    }
    if climbed.adapts {
        warn(format!("{ADAPTING}."));
    }
    if let Some(unexplained) = &curve.unexplained {
        warn(format!("{}.", unexplained.text()));
    }
    if let Some(Measured { policy: Figure { bad, episodes, .. }, .. }) = curve.measured
        && 0 < bad
    {
        warn(format!("in {bad} of {episodes} evaluation episodes something happened that must not."));
    }
}

/// Whether it beats the simple policies, in a sentence.
fn comparison(page: &mut String, measured: &Measured) {
    let Some(compared) = &measured.baselines else { return };
    let Some(BesideBaseline { name, gain, is_paired, verdict }) = measured.standing() else { return };
    let how = match is_paired {
        true => format!(
            "95 % interval of the difference in the {} that both played",
            quantity(gain.episodes, "episode")
        ),
        false => "by the two intervals, whose episodes are not paired".to_string(),
    };
    let (figure, less) = (gain.text(), units(-gain.mean));
    let text = match verdict {
        GainShown::More => format!("It earns {figure} more than the best baseline ({name}; {how})."),
        GainShown::Less => {
            format!("The best baseline ({name}) earns {less:.3} more: use that instead ({how}).")
        }
        GainShown::Open => {
            format!("No difference to the best baseline ({name}) is shown: {figure} ({how}).")
        }
    };
    let _ = write!(
        page,
        "<p>{} <span class=muted>Baselines: {} episodes each, the first of the same ones; the best fixed action was chosen \
         by them.</span></p>",
        escaped(&text),
        grouped(u64::from(compared.random.episodes))
    );
}

/// What is proven, and what is not.
/// What the guard forbids, told apart by who says so: the user, or what was seen.
fn masked(curve: &Curve) -> Vec<String> {
    let guards = || curve.patches.iter().filter(|patch| patch.accepted && patch.kind == "GUARD");
    let by_user = |words: &str| words.ends_with(USER_RULES_OUT);
    let (mut lines, cannot) = (Vec::new(), "for these observations the policy cannot choose them.");
    if guards().any(|patch| by_user(&patch.words)) {
        lines.push(format!("Actions that you declared to be forbidden are masked: {cannot}"));
    }
    if guards().any(|patch| patch.words.ends_with(WERE_BAD)) {
        lines.push(format!("Actions that were seen to do harm are masked: {cannot}"));
    }
    lines
}

fn proven(page: &mut String, climbed: &Climbed, curve: &Curve, whole: &Explanation) {
    let mut shown = Vec::new();
    if whole.is_exact() {
        shown.push(
            "The rules above are the circuit: equal for every observation and every content of memory."
                .to_string(),
        );
    }
    if 0 < climbed.proofs {
        shown.push(format!(
            "Every circuit in force does what its hypothesis states; {} certificates were accepted by the independent \
             checker.",
            climbed.proofs
        ));
    }
    shown.extend(masked(curve));
    shown.push(
        "Every change of the policy is an entry of a signed history; <code>bem verify</code> audits it."
            .to_string(),
    );
    let mut open =
        vec!["That the return holds: it was measured in this world, with the interval above.".to_string()];
    if curve.optimum.is_none() {
        open.push("That nothing better exists: the optimum of this world is unknown.".to_string());
    }
    if !whole.is_exact() {
        open.push("That the rules above are complete: they are a summary of the circuit.".to_string());
    }
    if masked(curve).is_empty() {
        open.push(
            "That no harm is done: no observation and action were declared or found to be forbidden."
                .to_string(),
        );
    }
    let list = |items: Vec<String>| items.iter().map(|item| format!("<li>{item}")).collect::<String>();
    let _ = write!(
        page,
        "<div class=two><section><h3>Proven</h3><ul>{}</ul></section><section><h3>Not proven</h3><ul>{}</ul></section></div>",
        list(shown),
        list(open)
    );
}
