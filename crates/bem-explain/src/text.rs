//! An explanation in plain lines: the whole policy, what stands behind its rules, and the reason for one action.
//!
//! Lines are as long as they come; whoever prints them breaks them. Must not know where they are shown. Clauses: GLE-9.

use crate::reason::Nearest;
use crate::states::State;
use crate::words::ago;
use crate::{
    Agreement, Explainable, Explanation, Meaning, Reason, Rule, RuleList, StateDiagram, Words, action_of,
};
use bem_base::words::quantity;

/// What stands behind a list.
pub fn evidence(list: &RuleList) -> String {
    let whose = if list.of_features { " that can occur" } else { "" };
    match &list.agreement {
        Agreement::Exhaustive { rows: 1 } => {
            format!("exact: the same as the circuit on the only input{whose}")
        }
        Agreement::Exhaustive { rows } => {
            format!("exact: the same as the circuit on all {rows} inputs{whose}")
        }
        Agreement::Proven if list.of_features => {
            "exact: proven equal to the circuit on all that can occur, certificate checked".to_string()
        }
        Agreement::Proven => "exact: proven equal to the circuit, certificate checked".to_string(),
        Agreement::Summary { agreed, tried, met } => {
            let which = if list.of_features { "can occur and were tried" } else { "were tried" };
            match met {
                None => format!(
                    "a summary: agrees with the circuit on {} of {tried} inputs that {which}",
                    share(*agreed, *tried)
                ),
                Some((agreed, steps)) => format!(
                    "a summary: agrees with the circuit at {} of {steps} steps of recorded episodes; what was not \
                     recorded may be decided otherwise",
                    share(*agreed, *steps)
                ),
            }
        }
    }
}

/// A share in percent; what is not all is never called all.
fn share(part: u64, all: u64) -> String {
    let tenths = (1_000 * part + all / 2) / all.max(1);
    let tenths = if part < all { tenths.min(999) } else { tenths };
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// The rules of a list, one a line; of a table, one line for every row.
pub fn lines(list: &RuleList, words: &Words<'_>, then: impl Fn(&[bool]) -> String) -> Vec<String> {
    let words = &words.for_list(list);
    if list.rules.is_empty() {
        return vec![format!("always {}", then(&list.otherwise))];
    }
    if list.group.is_some() {
        let rows = list.rules.chunk_by(|left, right| list.is_same_row(left, right));
        return rows.map(|rules| row(list, rules, words, &then)).collect();
    }
    let mut lines: Vec<String> = (list.rules.iter())
        .map(|rule| format!("if {}: {}", words.conditions(&rule.when), then(&rule.then)))
        .collect();
    lines.push(format!("otherwise: {}", then(&list.otherwise)));
    lines
}

/// One row of a table.
fn row(list: &RuleList, rules: &[Rule], words: &Words<'_>, then: impl Fn(&[bool]) -> String) -> String {
    let ranges: Vec<String> = (rules.iter())
        .map(|rule| match list.split(rule).1 {
            [] if rules.len() == 1 => then(&rule.then),
            [] => format!("otherwise {}", then(&rule.then)),
            range => format!("{}: {}", words.conditions(range), then(&rule.then)),
        })
        .collect();
    let ranges = ranges.join("; ");
    match rules.first().map(|rule| list.split(rule).0) {
        None | Some([]) => ranges,
        Some(own) => format!("if {}: {ranges}", words.conditions(own)),
    }
}

/// The whole policy, with all of its rules.
pub fn policy(subject: &Explainable<'_>, whole: &Explanation, diagram: Option<&StateDiagram>) -> String {
    policy_within(subject, whole, diagram, usize::MAX)
}

/// The policy with at most so many rules of a list, and how many more there are.
pub fn policy_within(
    subject: &Explainable<'_>,
    whole: &Explanation,
    diagram: Option<&StateDiagram>,
    rules_max: usize,
) -> String {
    let words = subject.words();
    let mut text = format!("What it does ({})\n", evidence(&whole.action));
    let action = |bits: &[bool]| subject.action(action_of(bits));
    text += &numbered(lines(&whole.action, &words, action), rules_max);
    if !whole.action.is_exact() {
        text += "      (not the whole policy: what these rules do not tell, the circuit decides)\n";
    }
    if let Some(diagram) = diagram {
        let word = if diagram.is_exact() { "exact" } else { "some of it a summary" };
        text += &format!(
            "\nWhat it remembers, as {} ({word}); every episode starts in S0\n",
            quantity(diagram.states.len(), "state")
        );
        for (number, state) in diagram.states.iter().enumerate() {
            text += &format!("  S{number} ({})\n", subject.memory(&state.memory));
            for line in state_lines(subject, diagram, state) {
                text += &format!("      {line}\n");
            }
        }
        return text;
    }
    text += &remembered(subject, whole);
    for (bit, list) in whole.memory.iter().enumerate() {
        // A bit that stays as it begins says nothing.
        let is_idle = list.rules.is_empty() && !list.otherwise.contains(&true);
        if matches!(whole.kept[bit], Meaning::Kept(_)) && !is_idle {
            text += &format!("\nWhat becomes of remembered {bit} ({})\n", evidence(list));
            text += &numbered(lines(list, &words, |bits| u8::from(bits[0]).to_string()), rules_max);
        }
    }
    text
}

/// Lines with their numbers, and how many more there are.
fn numbered(lines: Vec<String>, lines_max: usize) -> String {
    let mut text = String::new();
    for (number, line) in lines.iter().take(lines_max).enumerate() {
        text += &format!("{:>4}. {line}\n", number + 1);
    }
    let more = lines.len().saturating_sub(lines_max);
    if 0 < more {
        text +=
            &format!("      ... and {} (all of them: --json, or the report)\n", quantity(more, "more rule"));
    }
    text
}

/// What memory holds besides bits of its own: steps, and what was seen and done before.
fn remembered(subject: &Explainable<'_>, whole: &Explanation) -> String {
    let mut text = String::new();
    if let Some(low) = whole.clock.first() {
        let bits: Vec<String> = whole.clock.iter().map(usize::to_string).collect();
        text += &format!(
            "\nSteps so far are what remembered {} count, bit {low} the lowest: 0 at the start of an episode, one more at \
             every step, 0 again after {}",
            bits.join(", "),
            (1 << whole.clock.len()) - 1
        );
        text += &subject.horizon.map_or_else(
            || "\n".to_string(),
            |steps| format!("; the rules are for episodes of at most {}\n", quantity(steps, "step")),
        );
    }
    let held = held(subject);
    if !held.is_empty() {
        text += &format!(
            "\nWhat it remembers: {}; before the first step all of it is 0 or the first of its values\n",
            held.join(", ")
        );
    }
    text
}

/// Where there is no diagram: what the memory holds, and how far the rules tell what becomes of it.
pub fn without_diagram(subject: &Explainable<'_>, whole: &Explanation) -> String {
    let steps = (!whole.clock.is_empty()).then(|| "steps so far".to_string());
    let held: Vec<String> = steps.into_iter().chain(held(subject)).collect();
    let is_own = |(_, kept): &(&RuleList, &Meaning)| matches!(kept, Meaning::Kept(_));
    let mut own = whole.memory.iter().zip(&whole.kept).filter(is_own).map(|(list, _)| list).peekable();
    let holds = match held.is_empty() {
        true => Vec::new(),
        false => vec![format!("It holds {}.", held.join(", "))],
    };
    let becomes = own.peek().is_some().then(|| match (held.is_empty(), own.all(RuleList::is_exact)) {
        (true, true) => "The rules say what becomes of every remembered bit.",
        (false, true) => "The rules say what becomes of every other remembered bit.",
        (_, false) => "What becomes of some remembered bits the rules tell only as a summary.",
    });
    holds.into_iter().chain(becomes.map(str::to_string)).collect::<Vec<_>>().join(" ")
}

/// What memory holds of earlier steps, by name.
fn held(subject: &Explainable<'_>) -> Vec<String> {
    let words = subject.words();
    let mut held: Vec<String> = Vec::new();
    let observed = subject.policy.reads().len();
    for place in observed..words.places.len() {
        let name = match words.places[place] {
            Meaning::Kept(_) | Meaning::Clock(_) => continue,
            Meaning::Begun(_) => "how many steps there were before".to_string(),
            Meaning::Acted { back, .. } => format!("action{}", ago(back)),
            Meaning::Seen { bit, back } => {
                match words.names.and_then(|names| names.column_of(usize::from(bit))) {
                    Some(column) => format!("{}{}", column.feature.name, ago(back)),
                    None => words.place(place),
                }
            }
        };
        if !held.contains(&name) {
            held.push(name);
        }
    }
    held
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
    let facts = reason_words(subject, reason).findings(&reason.forced_by);
    let action = capital(&subject.action(reason.action));
    let (why, claim) = match (facts.is_empty(), reason.is_minimal) {
        (true, _) => (format!("{action}, whatever is seen and remembered"), ""),
        (false, true) if reason.of_actions => (
            format!("{action} because {}", facts.join(" and ")),
            "(proven: these facts force it wherever what was done before is remembered as one of the actions, and none of them \
             can be left out)",
        ),
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

/// The words in which a reason speaks.
pub fn reason_words<'a>(subject: &Explainable<'a>, reason: &Reason) -> Words<'a> {
    let words = subject.words();
    Words { holds_codes_beyond: words.holds_codes_beyond && !reason.of_actions, ..words }
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
            let change = reason_words(subject, reason).findings(to).join(" and ");
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
