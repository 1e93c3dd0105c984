//! Parts of pages that the report and the served page share: the state diagram, and the reasons for a few actions.
//!
//! Every text is escaped here. Must not know where the observations come from, nor what else is on the page. Clauses: GLE-9.

use crate::examples::{EXAMPLE_GATES_MAX, ExampleInput};
use crate::{Explainable, Explanation, Reason, RuleList, StateDiagram, action_of, drawing, text};
use bem_base::words::quantity;
use std::fmt::Write as _;

/// Conflicts that a question about an example may take.
const EXAMPLE_CONFLICTS: u32 = 10_000;

/// Text that cannot be taken for markup.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// What a policy remembers, as a diagram, or what is known of it without; nothing where it has no memory.
pub fn states(subject: &Explainable<'_>, whole: &Explanation, diagram: Option<&StateDiagram>) -> String {
    if subject.policy.memory_bits() == 0 {
        return String::new();
    }
    let title = "<h3 id=states>What it remembers: state diagram</h3>";
    let Some(diagram) = diagram else {
        let bits = quantity(subject.policy.memory_bits(), "memory bit");
        return format!(
            "{title}<p class=muted>{bits}: too many states or inputs for a diagram. {}</p>",
            escaped(&text::without_diagram(subject, whole))
        );
    };
    let exact = match diagram.is_exact() {
        true => "The rules of every state are exact.",
        false => "Some of its rules are a summary.",
    };
    format!(
        "{title}<div class=wide tabindex=0 role=region aria-label='State diagram'>{}</div><p class=muted>Every episode starts in \
         S0. An arrow says what is seen / what is done. {exact} Point at a state or an arrow for all of its rules.</p>",
        drawing::svg(subject, diagram)
    )
}

/// Why the policy acts as it does on each of these.
pub fn reasons(
    subject: &Explainable<'_>,
    diagram: Option<&StateDiagram>,
    examples: &[ExampleInput],
    source: &str,
) -> String {
    let mut page = "<h3 id=reasons>Why this action</h3>".to_string();
    if EXAMPLE_GATES_MAX < subject.policy.gates() {
        let _ = write!(
            page,
            "<p class=muted>{} gates are too many to give reasons unasked: <code>bem explain</code> gives them for one \
             observation.</p>",
            subject.policy.gates()
        );
        return page;
    }
    page.push_str("<dl class=reasons>");
    for example in examples {
        let seen = subject.seen(&example.input);
        let remembered = subject.remembered(&example.input, diagram);
        let remembered = remembered.map_or_else(String::new, |words| format!(", {words}"));
        let why = subject.reason(&example.input, EXAMPLE_CONFLICTS);
        let _ =
            write!(page, "<dt>{}{}</dt>{}", escaped(&seen), escaped(&remembered), why_item(subject, &why));
    }
    let _ = write!(
        page,
        "</dl><p class=muted>One observation for each of the rules that decide most often; {}.</p>",
        escaped(source)
    );
    page
}

/// What forces an action, and the nearest change that would alter it.
pub fn why_item(subject: &Explainable<'_>, reason: &Reason) -> String {
    let [why, claim, nearest] = text::reason(subject, reason);
    format!("<dd>{} <small>{}</small></dd><dd>{}</dd>", escaped(&why), escaped(&claim), escaped(&nearest))
}

/// The rules that were gone through for an input, each condition with whether it holds.
pub fn conditions(subject: &Explainable<'_>, rules: &RuleList, input: &[bool], action: u16) -> String {
    let (deciding, then) = rules.deciding(input);
    if action_of(then) != action {
        return "<p class=muted>The rules are a summary, and the circuit decides otherwise here.</p>"
            .to_string();
    }
    let words = subject.words().for_list(rules);
    let mut page = "<ol class=gone>".to_string();
    let gone = rules.rules.iter().take(deciding + 1).enumerate();
    for (place, rule) in gone.filter(|(_, rule)| rules.is_row_of(rule, input)) {
        let held = words.held(&rule.when, input).into_iter().map(|(condition, holds)| {
            let (class, word) = if holds { ("pass", "holds") } else { ("fail", "does not hold") };
            format!("{} <span class={class}>{word}</span>", escaped(&condition))
        });
        let then = match place == deciding {
            true => format!(": <b>{}</b>", escaped(&subject.action(action))),
            false => String::new(),
        };
        let _ = write!(page, "<li>{}{then}", held.collect::<Vec<_>>().join(", "));
    }
    if deciding == rules.rules.len() {
        let word = if rules.rules.is_empty() { "always" } else { "no rule applies" };
        let _ = write!(page, "<li>{word}: <b>{}</b>", escaped(&subject.action(action)));
    }
    page + "</ol>"
}
