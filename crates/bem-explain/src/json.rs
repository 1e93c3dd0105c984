//! An explanation as JSON, the same from the command line and from the service.
//!
//! Must not know who asks. Clauses: GLE-9.

use crate::reason::Nearest;
use crate::states::State;
use crate::subject::digits;
use crate::text::{evidence, reason_words};
use crate::{
    Agreement, Explainable, Explanation, Meaning, Reason, Rule, RuleList, StateDiagram, Words, action_of,
};
use serde_json::{Map, Number, Value, json};

/// The whole policy: rules, memory, states.
pub fn policy(
    subject: &Explainable<'_>,
    whole: &Explanation,
    diagram: Option<&StateDiagram>,
) -> Map<String, Value> {
    let words = subject.words();
    let bit = |rules: &RuleList| list(rules, &words, |bits| json!(u8::from(bits[0])));
    let mut object = Map::new();
    object.insert("exact".to_string(), json!(whole.is_exact()));
    object.insert("action".to_string(), list(&whole.action, &words, |bits| json!(action_of(bits))));
    object.insert("memory".to_string(), whole.memory.iter().map(bit).collect());
    object.insert("clock".to_string(), json!(whole.clock));
    let observed = subject.policy.reads().len();
    let name = |place: usize| match words.places[place] {
        Meaning::Kept(_) => Value::Null,
        _ => json!(words.value(place, true)),
    };
    object.insert("remembers".to_string(), (observed..words.places.len()).map(name).collect());
    let states = diagram.map_or(Value::Null, |diagram| states(diagram, &words));
    object.insert("states".to_string(), states);
    object
}

/// Why: what forces the action and the nearest change.
pub fn reason(subject: &Explainable<'_>, reason: &Reason) -> Value {
    let words = reason_words(subject, reason);
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

/// The rules that were gone through for an input, each with which of its conditions hold; the last one decided. Nothing where
/// the rules are a summary that says otherwise than the circuit.
pub fn conditions(subject: &Explainable<'_>, rules: &RuleList, input: &[bool], action: u16) -> Value {
    let (deciding, then) = rules.deciding(input);
    if action_of(then) != action {
        return Value::Null;
    }
    let words = subject.words().for_list(rules);
    let rule = |(place, rule): (usize, &Rule)| {
        let held = words.held(&rule.when, input);
        let conditions = held.iter().map(|(condition, holds)| json!({ "if": condition, "holds": holds }));
        json!({ "rule": place + 1, "conditions": conditions.collect::<Vec<_>>(), "applies": place == deciding })
    };
    let mut gone: Vec<Value> = rules.rules.iter().take(deciding + 1).enumerate().map(rule).collect();
    if deciding == rules.rules.len() {
        gone.push(json!({ "rule": deciding + 1, "conditions": [], "applies": true }));
    }
    Value::Array(gone)
}

fn list(list: &RuleList, words: &Words<'_>, then: impl Fn(&[bool]) -> Value) -> Value {
    let words = words.for_list(list);
    let rule = |rule: &Rule| json!({ "if": words.parts(&rule.when), "then": then(&rule.then) });
    json!({ "rules": list.rules.iter().map(rule).collect::<Vec<_>>(), "otherwise": then(&list.otherwise),
        "exact": list.is_exact(), "agreement": agreement(list), "agreement_met": agreement_met(list),
        "evidence": evidence(list) })
}

/// The share of recorded steps at which a summary and its circuit agree; nothing where none are known.
#[expect(clippy::float_arithmetic, reason = "a share for JSON, which nothing is decided by")]
fn agreement_met(list: &RuleList) -> Value {
    match &list.agreement {
        Agreement::Summary { met: Some((agreed, steps)), .. } => {
            Number::from_f64(*agreed as f64 / (*steps).max(1) as f64).map_or(Value::Null, Value::Number)
        }
        _ => Value::Null,
    }
}

/// The share of inputs on which a list and its circuit agree.
#[expect(clippy::float_arithmetic, reason = "a share for JSON, which nothing is decided by")]
fn agreement(list: &RuleList) -> Value {
    let share = match &list.agreement {
        Agreement::Summary { agreed, tried, .. } => *agreed as f64 / (*tried).max(1) as f64,
        _ => 1.0,
    };
    Number::from_f64(share).map_or(Value::Null, Value::Number)
}

fn states(diagram: &StateDiagram, words: &Words<'_>) -> Value {
    let state = |state: &State| {
        let then = |bits: &[bool]| {
            let (action, next) = diagram.arrow(bits);
            json!({ "action": action, "next": next })
        };
        json!({ "remembered": digits(&state.memory), "rules": list(&state.rules, words, then) })
    };
    json!({ "states": diagram.states.iter().map(state).collect::<Vec<_>>(), "dot": diagram.to_dot(words) })
}
