//! What a language model proposes, read from its words: templates, op trees and small circuits, all bounded.
//!
//! A model is shown the shape of a world and what some decisions brought, and answers with JSON. Its words are nobody's orders:
//! whatever is not one of the forms below, or is too large, is refused with a reason, and nothing else in an answer is looked
//! at. What is read becomes a machine with a statement of its own; the condition and the measured gate decide about it as about
//! every candidate. Must not know the bus, HTTP or the learner. Clauses: TOOL-8; decisions D-130, D-131.

mod circuit;

use bem_base::environment::{Bits, Shape};
use bem_engine::offer::{Machine, Offer, STATED_INPUTS_MAX};
use bem_runtime::offers::MACHINES_MAX;
use serde_json::{Map, Value, json};

/// Bytes of an answer that are looked at.
const ANSWER_MAX: usize = 64 << 10;
/// Letters of a proposal's own words that are kept.
const WORDS_MAX: usize = 80;
/// Bytes of a world's features that a model is shown.
const NOTE_MAX: usize = 4_096;
/// Decisions that a model is shown.
pub const ROWS_MAX: usize = 96;

/// What was read of an answer.
#[derive(Debug, Default)]
pub struct Read {
    /// What can be tried.
    pub machines: Vec<Machine>,
    /// Why something cannot, one line each.
    pub refused: Vec<String>,
}

/// What a model is told about the forms of an answer.
const FORMS: &str = "You propose decision rules for a machine. Answer with one JSON object and nothing else: \
{\"proposals\": [P, ...]}, at most 8, the best first. Observation bits are numbered from 0 (lowest). \
P has \"words\" (a short name) and one of: \
\"action\": A (always this action); \
\"tree\": T, where T is an action number or {\"bit\": I, \"set\": T, \"clear\": T}; \
\"bits\": [E, ...], one expression for each bit of the action number, lowest first, where E is a bit number, true, false, \
[\"not\", E], [\"and\"|\"or\"|\"xor\", E, ...] or [\"if\", E, E, E]; \
\"templates\": [F, ...], one for each bit of the action number, lowest first, where F is \
{\"parity\": [I, ...], \"inverted\": false}, {\"count\": [I, ...], \"numbers\": [N, ...]} (true where so many bits are set), \
{\"rules\": [{\"if\": {\"I\": 0|1, ...}, \"then\": 0|1}, ...], \"otherwise\": 0|1} or \
{\"rows\": [I, ...], \"ones\": [K, ...]} (true where these bits, the first the lowest, spell one of K); \
\"circuit\": {\"memory\": M, \"gates\": [[\"and\"|\"or\"|\"xor\"|\"nand\"|\"nor\"|\"xnor\", S, S], ...], \"action\": [S, ...], \
\"next\": [S, ...]}, where S is a bit number, then the memory bits, then the gates in order, -1 for false, -2 for true. \
A rule may read at most 12 bits, memory included, unless it is made of templates. Rules are tested; wrong ones are dropped.";

/// What a model is asked about a world: pairs of role and text.
pub fn question(shape: &Shape, note: &str, rows: &[(Bits, u16, i32)]) -> Vec<(&'static str, String)> {
    let width = usize::from(shape.observation_bits);
    let spelled =
        |bits: &Bits| -> String { (0..width).map(|bit| if bits.get(bit) { '1' } else { '0' }).collect() };
    let seen: Vec<Value> = rows
        .iter()
        .take(ROWS_MAX)
        .map(|(bits, action, reward)| json!([spelled(bits), action, reward]))
        .collect();
    let mut asked = json!({
        "observation_bits": width, "actions": shape.actions, "horizon": shape.horizon,
        "reward_range": [shape.reward_min, shape.reward_max],
        "decisions": seen, "decision_columns": ["observation, bit 0 first", "action", "reward"],
    });
    if !note.is_empty() && note.len() <= NOTE_MAX {
        match serde_json::from_str(note) {
            // With rules over the features, these are said as well.
            Ok(Value::Object(parts)) => parts.into_iter().for_each(|(name, part)| asked[name] = part),
            features => asked["features"] = features.unwrap_or(Value::Null),
        }
    }
    vec![("system", FORMS.to_string()), ("user", asked.to_string())]
}

/// Reads an answer; `source` says in the history whose proposal it is.
pub fn read(text: &str, shape: &Shape, source: &str) -> Read {
    let mut read = Read::default();
    match proposals(text) {
        Err(reason) => read.refused.push(reason),
        Ok(proposals) => {
            for (place, proposal) in proposals.iter().enumerate() {
                let taken = match place < MACHINES_MAX {
                    true => one(proposal, shape, source),
                    false => Err(format!("more than {MACHINES_MAX} proposals")),
                };
                match taken {
                    Ok(machine) => read.machines.push(machine),
                    Err(reason) => read.refused.push(format!("proposal {place}: {reason}")),
                }
                if MACHINES_MAX <= place {
                    break;
                }
            }
        }
    }
    read
}

/// The list in an answer; words around the object are skipped.
fn proposals(text: &str) -> Result<Vec<Value>, String> {
    if ANSWER_MAX < text.len() {
        return Err(format!("an answer of {} bytes: at most {ANSWER_MAX}", text.len()));
    }
    let (first, last) = (text.find('{'), text.rfind('}'));
    let object =
        first.zip(last).filter(|(first, last)| first < last).map(|(first, last)| &text[first..=last]);
    let object = object.ok_or("no JSON object")?;
    let value: Value = serde_json::from_str(object).map_err(|error| format!("no JSON: {error}"))?;
    match value.get("proposals") {
        Some(Value::Array(list)) if !list.is_empty() => Ok(list.clone()),
        _ => Err("proposals must be a list that is not empty".to_string()),
    }
}

const FORM_NAMES: [&str; 5] = ["action", "tree", "bits", "templates", "circuit"];

fn one(proposal: &Value, shape: &Shape, source: &str) -> Result<Machine, String> {
    let Value::Object(fields) = proposal else { return Err("no object".to_string()) };
    let said: Vec<&str> = FORM_NAMES.into_iter().filter(|name| fields.contains_key(*name)).collect();
    let [form] = said[..] else {
        return Err(format!("exactly one of {} is needed", FORM_NAMES.join(", ")));
    };
    let offer = circuit::offer(form, &fields[form], shape)?;
    let gates = match &offer {
        Offer::Circuit(policy) if STATED_INPUTS_MAX < policy.reads().len() + policy.memory_bits() => {
            let inputs = policy.reads().len() + policy.memory_bits();
            return Err(format!("reads {inputs} bits: at most {STATED_INPUTS_MAX}"));
        }
        Offer::Circuit(policy) => format!("{form}, {} gates", policy.gates()),
        Offer::Formulas(_) => form.to_string(),
    };
    let words = format!("{source}: {} ({gates})", own_words(fields));
    offer.machine(shape, words).ok_or_else(|| "does not fit the world or the machine".to_string())
}

/// The model's own name for it, as harmless letters.
fn own_words(fields: &Map<String, Value>) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || " .,+-=()|^!".contains(*letter);
    let said = fields.get("words").and_then(Value::as_str).unwrap_or_default();
    let kept: String = said.chars().filter(is_plain).take(WORDS_MAX).collect();
    let kept = kept.trim();
    if kept.is_empty() { "a rule".to_string() } else { kept.to_string() }
}

#[cfg(test)]
mod tests;
