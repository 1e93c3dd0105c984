//! An explanation in plain lines: the whole policy, what stands behind its rules, and the reason for one action.
//!
//! Lines are as long as they come; whoever prints them breaks them. Must not know where they are shown. Clauses: GLE-9.

use crate::reason::Nearest;
use crate::states::State;
use crate::subject::digits;
use crate::{Agreement, Explainable, Explanation, Reason, RuleList, StateDiagram, Words, action_of};
use bem_base::words::quantity;

/// What stands behind a list.
pub fn evidence(list: &RuleList) -> String {
    let whose = if list.of_features { " that can occur" } else { "" };
    match &list.agreement {
        Agreement::Exhaustive { rows } => {
            format!("exact: the same as the circuit on all {rows} inputs{whose}")
        }
        Agreement::Proven if list.of_features => {
            "exact: proven equal to the circuit on all that can occur, certificate checked".to_string()
        }
        Agreement::Proven => "exact: proven equal to the circuit, certificate checked".to_string(),
        Agreement::Summary { agreed, tried } => {
            let all = (*tried).max(1);
            let tenths = (1_000 * agreed + all / 2) / all;
            let which = if list.of_features { "can occur and were tried" } else { "were tried" };
            format!(
                "a summary: agrees with the circuit on {}.{} % of {tried} inputs that {which}",
                tenths / 10,
                tenths % 10
            )
        }
    }
}

/// The rules of a list, one a line.
pub fn lines(list: &RuleList, words: &Words<'_>, then: impl Fn(&[bool]) -> String) -> Vec<String> {
    if list.rules.is_empty() {
        return vec![format!("always {}", then(&list.otherwise))];
    }
    let mut lines: Vec<String> = (list.rules.iter())
        .map(|rule| format!("if {}: {}", words.conditions(&rule.when), then(&rule.then)))
        .collect();
    lines.push(format!("otherwise: {}", then(&list.otherwise)));
    lines
}

/// The whole policy.
pub fn policy(subject: &Explainable<'_>, whole: &Explanation, diagram: Option<&StateDiagram>) -> String {
    let words = subject.words();
    let mut text = format!("What it does ({})\n", evidence(&whole.action));
    let action = |bits: &[bool]| subject.action(action_of(bits));
    for (number, line) in lines(&whole.action, &words, action).iter().enumerate() {
        text += &format!("{:>4}. {line}\n", number + 1);
    }
    if let Some(diagram) = diagram {
        let word = if diagram.is_exact() { "exact" } else { "some of it a summary" };
        text += &format!(
            "\nWhat it remembers, as {} ({word}); every episode starts in S0\n",
            quantity(diagram.states.len(), "state")
        );
        for (number, state) in diagram.states.iter().enumerate() {
            text += &format!("  S{number} (remembered {})\n", digits(&state.memory));
            for line in state_lines(subject, diagram, state) {
                text += &format!("      {line}\n");
            }
        }
        return text;
    }
    if let Some(low) = whole.clock.first() {
        let bits: Vec<String> = whole.clock.iter().map(usize::to_string).collect();
        text += &format!(
            "\nSteps so far are what remembered {} count, bit {low} the lowest: 0 at the start of an episode, one more at \
             every step, 0 again after {}\n",
            bits.join(", "),
            (1 << whole.clock.len()) - 1
        );
    }
    for (bit, list) in whole.memory.iter().enumerate().filter(|(bit, _)| !whole.clock.contains(bit)) {
        text += &format!("\nWhat becomes of remembered {bit} ({})\n", evidence(list));
        for (number, line) in lines(list, &words, |bits| u8::from(bits[0]).to_string()).iter().enumerate() {
            text += &format!("{:>4}. {line}\n", number + 1);
        }
    }
    text
}

/// The rules of one state, with where each leads.
pub fn state_lines(subject: &Explainable<'_>, diagram: &StateDiagram, state: &State) -> Vec<String> {
    lines(&state.rules, &subject.words(), |then| {
        let (action, next) = diagram.arrow(then);
        format!("{}, then S{next}", subject.action(action))
    })
}

/// Why: what forces the action, with what is known of it, and the nearest change.
pub fn reason(subject: &Explainable<'_>, reason: &Reason) -> [String; 3] {
    let facts = subject.words().findings(&reason.forced_by);
    let action = capital(&subject.action(reason.action));
    let (why, claim) = match (facts.is_empty(), reason.is_minimal) {
        (true, _) => (format!("{action}, whatever is seen and remembered"), ""),
        (false, true) => (
            format!("{action} because {}", facts.join(" and ")),
            "(proven: these facts force it, and none of them can be left out)",
        ),
        (false, false) => (
            format!("{action} because {}", facts.join(" and ")),
            "(these facts force it; perhaps fewer would)",
        ),
    };
    [why, claim.to_string(), nearest(subject, reason)]
}

/// The nearest change that would alter the action.
fn nearest(subject: &Explainable<'_>, reason: &Reason) -> String {
    match &reason.nearest {
        Nearest::Change { to, action, is_nearest } => {
            let claim = match (is_nearest, reason.of_features) {
                (true, true) => "no change of fewer features alters the action",
                (true, false) => "no smaller change alters the action",
                (false, _) => "perhaps a smaller change would do",
            };
            let change = subject.words().findings(to).join(" and ");
            format!("{} instead with {change} ({claim})", capital(&subject.action(*action)))
        }
        Nearest::Never => "No observation would change it, with what is remembered now".to_string(),
        Nearest::NotFound => "No near change that alters it was found".to_string(),
    }
}

/// The text with a capital letter in front.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
