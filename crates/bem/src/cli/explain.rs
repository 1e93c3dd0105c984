//! `bem explain`: what a learned policy does, as rules, and why it does it. The work is done by `bem-explain`.
//!
//! Clauses: GLE-9.

use super::Answer;
use super::fit::hanging;
use crate::learned::{self, Found, Learned};
use anyhow::{Context as _, Result, bail};
use bem_base::environment::Bits;
use bem_data::{Column, Encoder};
use bem_explain::reason::Nearest;
use bem_explain::states::State;
use bem_explain::{Agreement, Explanation, Reason, RuleList, StateDiagram, Words, action_of};
use bem_explain::{explain, reason, state_diagram};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A learned policy as rules that people read, and why it chooses what it chooses.
#[derive(Args)]
#[command(after_help = "Example: bem explain my-run --expert dyck\n\
    Example: bem explain my-run --obs 01101\n\
    Example: bem explain my-run --obs field0=3,bit7=1 --memory 10\n\
    Example: bem explain my-run --dot | dot -Tsvg > states.svg")]
pub struct ExplainArguments {
    /// A run, a snapshot, or a circuit in a file
    #[arg(value_name = "RUN|FILE")]
    source: PathBuf,
    /// Which expert; without it the run's experts are listed (a run over one task has only one)
    #[arg(long)]
    expert: Option<String>,
    /// Why this action: an observation as bits, as fieldN=VALUE and bitN=VALUE with all others 0, or as NAME=VALUE for
    /// every feature where features have names
    #[arg(long, value_name = "BITS|K=V,...")]
    obs: Option<String>,
    /// What is remembered when it is seen, as bits [default: the start of an episode, all 0]
    #[arg(long, value_name = "BITS", requires = "obs")]
    memory: Option<String>,
    /// Print the state diagram for Graphviz and nothing else
    #[arg(long, conflicts_with_all = ["obs", "json"])]
    dot: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `bem explain`
pub fn run(arguments: &ExplainArguments) -> Result<Answer> {
    let learned = match learned::open(&arguments.source, arguments.expert.as_deref())? {
        Found::One(learned) => learned,
        Found::Several(all) => {
            let names: Vec<String> = all.into_iter().map(|one| one.name).collect();
            bail!("the run has several policies: name one with --expert, {}", names.join(", "));
        }
    };
    let words =
        Words { reads: learned.policy.reads(), fields: &learned.fields, names: learned.names.as_ref() };
    let called = |action: u16| learned.action(action);
    let input = match &arguments.obs {
        None => None,
        Some(text) => Some(input(&learned, text, arguments.memory.as_deref())?),
    };
    if arguments.dot {
        let diagram = state_diagram(&learned.policy, &learned.fields, words.names)
            .context("there is no state diagram: the policy has no memory, or too many states or inputs")?;
        say_text!("{}", diagram.to_dot(&words));
        return Ok(Answer::Yes);
    }
    let why = input.as_ref().map(|input| reason(&learned.policy, words.names, input));
    // With one observation to explain, the whole policy is not worked out as well.
    let whole = why.is_none().then(|| explain(&learned.policy, &learned.fields, words.names));
    let diagram = whole.as_ref().and_then(|_| state_diagram(&learned.policy, &learned.fields, words.names));
    if arguments.json {
        let mut object = json!({ "expert": learned.name, "provenance": learned.provenance, "warnings": learned.warnings,
            "circuit": learned.policy.digest().to_hex(), "actions": learned.policy.actions(),
            "memory_bits": learned.policy.memory_bits(), "action_names": learned.actions });
        if let Some(whole) = &whole {
            object["exact"] = json!(whole.is_exact());
            object["action"] = list_json(&whole.action, &words, |bits| json!(action_of(bits)));
            let bit = |list: &RuleList| list_json(list, &words, |bits| json!(u8::from(bits[0])));
            object["memory"] = whole.memory.iter().map(bit).collect();
            object["clock"] = json!(whole.clock);
            object["states"] = diagram.as_ref().map_or(Value::Null, |diagram| diagram_json(diagram, &words));
        }
        if let Some(reason) = &why {
            object["why"] = reason_json(reason, &words);
        }
        say!("{object}");
        return Ok(Answer::Yes);
    }
    learned.lines().iter().flat_map(|line| hanging(line, 2)).for_each(|line| say!("{line}"));
    if let Some(whole) = &whole {
        say!();
        let text = text(whole, diagram.as_ref(), &words, &called);
        text.lines().flat_map(|line| hanging(line, 6)).for_each(|line| say!("{line}"));
    }
    if let Some(reason) = &why {
        say!();
        let text = reason_text(reason, &words, &called);
        text.lines().flat_map(|line| hanging(line, 2)).for_each(|line| say!("{line}"));
    }
    Ok(Answer::Yes)
}

/// The inputs of the circuit for an observation and what is remembered.
fn input(learned: &Learned, text: &str, memory: Option<&str>) -> Result<Vec<bool>> {
    let seen = observation(learned, text)?;
    let mut input: Vec<bool> = learned.policy.reads().iter().map(|bit| seen.get(usize::from(*bit))).collect();
    let count = learned.policy.memory_bits();
    match memory {
        None => input.extend(vec![false; count]),
        Some(text) if text.len() == count && text.bytes().all(|digit| matches!(digit, b'0' | b'1')) => {
            input.extend(text.bytes().map(|digit| digit == b'1'));
        }
        Some(text) => bail!("--memory {text:?} must be {count} zeros and ones"),
    }
    Ok(input)
}

fn observation(learned: &Learned, text: &str) -> Result<Bits> {
    let width = learned.observation_bits;
    if let Some(encoder) = learned.names.as_ref().filter(|_| text.contains('=')) {
        return named_observation(encoder, text);
    }
    if !text.contains('=') {
        let bits = Bits::from_text(text)
            .filter(|_| text.len() == width)
            .with_context(|| format!("--obs {text:?} must be {width} zeros and ones, or fieldN=VALUE,..."))?;
        let is_shown = |column: &&Column, value: usize| {
            let low = usize::from(column.low);
            (0..usize::from(column.width)).all(|bit| column.shows(value, bit) == bits.get(low + bit))
        };
        let columns = learned.names.as_ref().map_or(&[][..], Encoder::columns);
        let impossible =
            columns.iter().find(|column| !column.values().into_iter().any(|value| is_shown(column, value)));
        if let Some(column) = impossible {
            bail!("--obs {text:?} cannot occur: no value of {} has these bits", column.feature.name);
        }
        return Ok(bits);
    }
    let mut seen = Bits::ZERO;
    for pair in text.split(',') {
        let (name, value) = pair.split_once('=').with_context(|| format!("--obs {pair:?} has no value"))?;
        let value: u64 = value
            .trim()
            .parse()
            .ok()
            .with_context(|| format!("--obs {pair:?}: the value must be a whole number"))?;
        let number =
            |prefix: &str| name.trim().strip_prefix(prefix).and_then(|rest| rest.parse::<usize>().ok());
        let (low, bits) = match (number("field"), number("bit")) {
            (Some(field), _) if field < learned.fields.len() => {
                let field = learned.fields[field];
                (usize::from(field.low), usize::from(field.width))
            }
            (None, Some(bit)) if bit < width => (bit, 1),
            _ => bail!(
                "--obs {name:?} is unknown: there are field0 to field{} and bit0 to bit{}",
                learned.fields.len().saturating_sub(1),
                width.saturating_sub(1)
            ),
        };
        if bits < 64 && 1 << bits <= value {
            bail!("--obs {pair:?}: the value must be at most {}", (1u64 << bits) - 1);
        }
        seen.set_field(low, bits.min(64), value);
    }
    Ok(seen)
}

/// An observation of named features, each with its value.
fn named_observation(encoder: &Encoder, text: &str) -> Result<Bits> {
    let mut values = BTreeMap::new();
    for pair in text.split(',') {
        let (name, value) = pair.split_once('=').with_context(|| format!("--obs {pair:?} has no value"))?;
        let name = name.trim();
        if !encoder.columns().iter().any(|column| column.feature.name == name) {
            let known: Vec<&str> =
                encoder.columns().iter().map(|column| column.feature.name.as_str()).collect();
            bail!("--obs {name:?} is no feature: there are {}", known.join(", "));
        }
        values.insert(name, value.trim());
    }
    encoder.encode(|name| values.get(name).copied()).context("--obs")
}

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
            let share = 100.0 * *agreed as f64 / (*tried).max(1) as f64;
            let which = if list.of_features { "can occur and were tried" } else { "were tried" };
            format!("a summary: agrees with the circuit on {share:.1} % of {tried} inputs that {which}")
        }
    }
}

/// The rules of a list, one a line, numbered.
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

/// The whole policy in words.
pub fn text(
    whole: &Explanation,
    diagram: Option<&StateDiagram>,
    words: &Words<'_>,
    called: &dyn Fn(u16) -> String,
) -> String {
    let mut text = format!("What it does ({})\n", evidence(&whole.action));
    let action = |bits: &[bool]| called(action_of(bits));
    for (number, line) in lines(&whole.action, words, action).iter().enumerate() {
        text += &format!("{:>4}. {line}\n", number + 1);
    }
    if let Some(diagram) = diagram {
        let word = if diagram.is_exact() { "exact" } else { "some of it a summary" };
        text += &format!(
            "\nWhat it remembers, as {} states ({word}); every episode starts in S0\n",
            diagram.states.len()
        );
        for (number, state) in diagram.states.iter().enumerate() {
            text += &format!("  S{number} (remembered {})\n", digits(&state.memory));
            for line in state_lines(diagram, state, words, called) {
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
        for (number, line) in lines(list, words, |bits| u8::from(bits[0]).to_string()).iter().enumerate() {
            text += &format!("{:>4}. {line}\n", number + 1);
        }
    }
    text
}

fn state_lines(
    diagram: &StateDiagram,
    state: &State,
    words: &Words<'_>,
    called: &dyn Fn(u16) -> String,
) -> Vec<String> {
    lines(&state.rules, words, |then| {
        let (action, next) = diagram.arrow(then);
        format!("{}, then S{next}", called(action))
    })
}

fn digits(bits: &[bool]) -> String {
    bits.iter().map(|bit| if *bit { '1' } else { '0' }).collect()
}

fn reason_text(reason: &Reason, words: &Words<'_>, called: &dyn Fn(u16) -> String) -> String {
    let facts = words.findings(&reason.forced_by);
    let mut text = capital(&called(reason.action));
    text += &match (facts.is_empty(), reason.is_minimal) {
        (true, _) => ", whatever is seen and remembered\n".to_string(),
        (false, true) => {
            format!(
                " because {}\n  (proven: these facts force it, and none of them can be left out)\n",
                facts.join(" and ")
            )
        }
        (false, false) => {
            format!(" because {}\n  (these facts force it; perhaps fewer would)\n", facts.join(" and "))
        }
    };
    text += &match &reason.nearest {
        Nearest::Change { to, action, is_nearest } => {
            let claim = match (is_nearest, reason.of_features) {
                (true, true) => " (no change of fewer features alters the action)",
                (true, false) => " (no smaller change alters the action)",
                (false, _) => " (perhaps a smaller change would do)",
            };
            format!(
                "{} instead with {}{claim}\n",
                capital(&called(*action)),
                words.findings(to).join(" and ")
            )
        }
        Nearest::Never => "No observation would change it, with what is remembered now\n".to_string(),
        Nearest::NotFound => "No near change that alters it was found\n".to_string(),
    };
    text
}

/// The text with a capital letter in front.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn reason_json(reason: &Reason, words: &Words<'_>) -> Value {
    let nearest = match &reason.nearest {
        Nearest::Change { to, action, is_nearest } => {
            json!({ "change": words.findings(to), "action": action, "nearest": is_nearest })
        }
        Nearest::Never => json!({ "never": true }),
        Nearest::NotFound => Value::Null,
    };
    json!({ "action": reason.action, "because": words.findings(&reason.forced_by), "minimal": reason.is_minimal,
        "nearest": nearest })
}

fn list_json(list: &RuleList, words: &Words<'_>, then: impl Fn(&[bool]) -> Value) -> Value {
    let rule = |rule: &bem_explain::Rule| json!({ "if": words.parts(&rule.when), "then": then(&rule.then) });
    let agreement = match &list.agreement {
        Agreement::Summary { agreed, tried } => json!(*agreed as f64 / (*tried).max(1) as f64),
        _ => json!(1.0),
    };
    json!({ "rules": list.rules.iter().map(rule).collect::<Vec<_>>(), "otherwise": then(&list.otherwise),
        "exact": list.is_exact(), "agreement": agreement, "evidence": evidence(list) })
}

fn diagram_json(diagram: &StateDiagram, words: &Words<'_>) -> Value {
    let state = |state: &State| {
        let then = |bits: &[bool]| {
            let (action, next) = diagram.arrow(bits);
            json!({ "action": action, "next": next })
        };
        json!({ "remembered": digits(&state.memory), "rules": list_json(&state.rules, words, then) })
    };
    json!({ "states": diagram.states.iter().map(state).collect::<Vec<_>>(), "dot": diagram.to_dot(words) })
}
