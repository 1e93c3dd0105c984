//! A question to people as a form that a client of the protocol can show, and the answer that a filled form is.
//!
//! Forms of the protocol are flat: words, numbers and choices. What is asked, what was seen, the units, the deadline and what
//! each answer would change stand in the message, so that whoever reads nothing else can judge. Must not know HTTP, nor the
//! protocol's messages. Clause: HUM-12; decision D-212.

use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// What is left as it is.
const UNCHANGED: &str = "unchanged";
/// Choices of an episode's use.
const KEEPS: [(&str, &str); 3] = [
    ("keep", "Learn from it"),
    ("discard", "Do not learn from it"),
    ("curriculum", "For the curriculum only"),
];
/// How far changes of the policy need people.
const MODES: [(&str, &str); 5] = [
    (UNCHANGED, "As it is"),
    ("off", "Changes need nobody"),
    ("warn", "Changes take effect, and people are asked about critical ones"),
    ("require_approval", "Critical changes wait for an approval"),
    ("whitelist", "All changes wait for an approval"),
];
/// Numbers that an answer about the configuration may move.
const DELTAS: [(&str, &str); 5] = [
    (
        "min_conf_auto_delta",
        "Ask about steps whose lead is smaller than this more, as a share of the range of losses",
    ),
    ("weight_bandit_delta", "Labels of steps count for this much more"),
    ("weight_grpo_delta", "Scores of episodes count for this much more"),
    ("weight_teacher_delta", "Rankings count for this much more"),
    (
        "weight_pox_delta",
        "An approval adds this much more to a score (more of it loosens safety: two approvers)",
    ),
];

/// A form.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// What is asked.
    pub message: String,
    /// What may be filled in, as a JSON schema.
    pub schema: Value,
}

/// An answer that can be chosen by itself, with the words for it.
pub struct Choice {
    /// The word in the form.
    pub word: String,
    /// What it means.
    pub title: String,
    /// The answer that it is.
    pub answer: Value,
}

/// The answers among which a question of this kind lets people choose, if it does.
pub fn choices(question: &Value) -> Vec<Choice> {
    let choice = |word: String, title: String, answer: Value| Choice { word, title, answer };
    let shown = &question["context"];
    match question["kind"].as_str() {
        Some("label_step") => {
            let chosen = &shown["chosen"];
            let mut list = vec![
                choice("right".into(), format!("Action {chosen} was right"), json!({ "accept": true })),
                choice(
                    "wrong".into(),
                    "It was wrong, and I do not know which is best".into(),
                    json!({ "accept": false }),
                ),
            ];
            let others = shown["candidates"].as_array().into_iter().flatten().map(|one| &one["action"]);
            for action in others.filter(|action| *action != chosen) {
                let words = format!("Action {action} would have been best");
                list.push(choice(
                    format!("action {action}"),
                    words,
                    json!({ "accept": false, "best": action }),
                ));
            }
            list
        }
        Some("approve_patch") => {
            let words = match shown["in_force"].as_bool() {
                Some(true) => ["Right: it stays", "Wrong: take it back", "Leave it for now"],
                _ => [
                    "Approve: it takes effect",
                    "Reject: this policy is not proposed again",
                    "Defer: not now",
                ],
            };
            let decisions = ["approve", "reject", "defer"].into_iter().zip(words);
            let decide =
                |(word, title): (&str, &str)| choice(word.into(), title.into(), json!({ "decision": word }));
            decisions.map(decide).collect()
        }
        _ => Vec::new(),
    }
}

/// A choice of one of these words.
fn pick(title: &str, words: impl IntoIterator<Item = (String, String)>) -> Value {
    let list: Vec<Value> =
        words.into_iter().map(|(word, title)| json!({ "const": word, "title": title })).collect();
    json!({ "type": "string", "title": title, "oneOf": list })
}

fn pick_of(title: &str, words: &[(&str, &str)]) -> Value {
    pick(title, words.iter().map(|(word, title)| ((*word).to_string(), (*title).to_string())))
}

/// The form of a question; `consequences` says of each choice what it would change.
pub fn form(question: &Value, choices: &[Choice], consequences: &[String]) -> Result<Form, String> {
    let shown = &question["context"];
    let mut fields = Map::new();
    let mut required: Vec<String> = Vec::new();
    let mut add = |name: String, field: Value, must: bool| {
        required.extend(must.then(|| name.clone()));
        fields.insert(name, field);
    };
    let listed = || choices.iter().map(|one| (one.word.clone(), one.title.clone()));
    let asked = match question["kind"].as_str() {
        Some("label_step") => {
            add("verdict".into(), pick("Your answer", listed()), true);
            let bad = if shown["bad"] == true { ", and it was BAD" } else { "" };
            let reward = match &shown["reward"] {
                Value::Null => "no reward yet".to_string(),
                reward => format!("reward {reward} milli-units"),
            };
            format!(
                "Was action {} right in world {}? What was seen, bit by bit: {}. Outcome: {reward}{bad}.",
                shown["chosen"],
                text(&shown["world"]),
                text(&shown["obs"])
            )
        }
        Some("score_episode") => {
            let score = json!({ "type": "number", "title": "Score, 0 very bad to 1 very good", "minimum": 0, "maximum": 1 });
            add("score".into(), score, true);
            add("keep".into(), pick_of("What it is used for", &KEEPS), false);
            let mut asked = format!(
                "How good was this episode in world {}? {} steps earned {} milli-units, {} below the mean. Its steps (seen, action, \
                 reward in milli-units):",
                text(&shown["world"]),
                shown["length"],
                shown["return"],
                shown["below_mean"]
            );
            for step in shown["steps"].as_array().into_iter().flatten() {
                let bad = if step["bad"] == true { " BAD" } else { "" };
                let _ = write!(asked, "\n{} {} {}{bad}", text(&step["obs"]), step["action"], step["reward"]);
            }
            asked
                + "\nThe score moves the priors of the actions that were taken; an episode that is not kept is not learned from."
        }
        Some("approve_patch") => {
            add("decision".into(), pick("Your answer", listed()), true);
            format!(
                "A change of the policy of world {}: {}. Measured gain, lower bound: {} of the range; {} proofs accepted; an approval \
                 replaces neither. Missing to the threshold: {}.",
                text(&shown["world"]),
                text(&shown["words"]),
                shown["score"],
                shown["proofs"],
                shown["missing"]
            )
        }
        Some("rank_templates") => {
            let worlds: Vec<&Value> = shown["worlds"].as_array().into_iter().flatten().collect();
            let names = || worlds.iter().map(|one| (text(&one["world"]), text(&one["world"])));
            for place in 1..=worlds.len() {
                add(format!("place_{place}"), pick(&format!("Wanted as number {place}"), names()), true);
            }
            let mut asked =
                "What should be learned first? The more wanted world is worked on first where several have something to learn."
                    .to_string();
            for one in worlds {
                let _ = write!(
                    asked,
                    "\n{}: {} decisions, mean return {} of the range",
                    text(&one["world"]),
                    one["decisions"],
                    one["mean_return_share"]
                );
            }
            asked
        }
        Some("adjust_config") => {
            add("safety_override_mode".into(), pick_of("Changes of the policy", &MODES), true);
            let online = [(UNCHANGED, "As it is"), ("true", "Yes"), ("false", "No")];
            add("enable_online".into(), pick_of("The machine asks by itself", &online), false);
            for (name, title) in DELTAS {
                let delta = json!({ "type": "number", "title": title, "minimum": -0.5, "maximum": 0.5 });
                add(name.into(), delta, false);
            }
            format!(
                "Should the limits of people's questions change? {}. {} decisions, {} of them BAD. In force now: {}",
                text(&shown["reason"]),
                shown["decisions"],
                shown["bad"],
                shown["control"]
            )
        }
        other => return Err(format!("{other:?} is no kind of question that can be asked here")),
    };
    let left = match &question["steps_left"] {
        Value::Null => "no deadline".to_string(),
        left => format!("skipped after {left} more inputs"),
    };
    let mut message = format!("{asked}\nPriority {}, {left}.", text(&question["priority"]));
    for (choice, consequence) in choices.iter().zip(consequences) {
        let _ = write!(message, "\n{}: {consequence}", choice.title);
    }
    Ok(Form { message, schema: json!({ "type": "object", "properties": fields, "required": required }) })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// The answer that a filled form is; the server says whether it fits.
pub fn answer(kind: &str, filled: &Value) -> Result<Value, String> {
    let word = |name: &str| filled[name].as_str().unwrap_or_default();
    Ok(match kind {
        "label_step" => match word("verdict") {
            "right" => json!({ "accept": true }),
            "wrong" => json!({ "accept": false }),
            other => {
                let action = other.strip_prefix("action ").and_then(|action| action.parse::<u16>().ok());
                let action = action.ok_or_else(|| format!("verdict {other:?} is no answer"))?;
                json!({ "accept": false, "best": action })
            }
        },
        "score_episode" => match &filled["keep"] {
            Value::Null => json!({ "score": filled["score"] }),
            keep => json!({ "score": filled["score"], "keep": keep }),
        },
        "approve_patch" => json!({ "decision": filled["decision"] }),
        "rank_templates" => {
            let places = (1..).map(|place| &filled[format!("place_{place}")]);
            let order: Vec<&Value> = places.take_while(|name| !name.is_null()).collect();
            json!({ "order": order })
        }
        "adjust_config" => {
            let mut said = Map::new();
            if !["", UNCHANGED].contains(&word("safety_override_mode")) {
                said.insert("safety_override_mode".into(), filled["safety_override_mode"].clone());
            }
            if !["", UNCHANGED].contains(&word("enable_online")) {
                said.insert("enable_online".into(), json!(word("enable_online") == "true"));
            }
            for (name, _) in DELTAS {
                if filled[name].is_number() {
                    said.insert(name.into(), filled[name].clone());
                }
            }
            Value::Object(said)
        }
        other => return Err(format!("{other:?} is no kind of question")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(kind: &str, context: &Value) -> Value {
        json!({ "kind": kind, "priority": "high", "steps_left": 500, "context": context })
    }

    /// The form of a question, without what its choices would change.
    fn drawn(kind: &str, context: &Value) -> Form {
        let question = question(kind, context);
        let choices = choices(&question);
        let consequences: Vec<String> = choices.iter().map(|one| format!("changes {}", one.word)).collect();
        form(&question, &choices, &consequences).unwrap()
    }

    #[test]
    fn every_kind_has_a_form_with_units_deadline_and_consequences_and_its_answers_come_back() {
        let step = json!({ "world": "ads", "obs": "0101", "chosen": 1, "reward": 300, "bad": true,
            "candidates": [{ "action": 0 }, { "action": 1 }, { "action": 2 }] });
        let label = drawn("label_step", &step);
        for words in [
            "action 1 right in world ads",
            "0101",
            "300 milli-units",
            "BAD",
            "500 more inputs",
            "changes action 2",
        ] {
            assert!(label.message.contains(words), "{words}: {}", label.message);
        }
        assert_eq!(label.schema["properties"]["verdict"]["oneOf"].as_array().map(Vec::len), Some(4));
        assert_eq!(
            answer("label_step", &json!({ "verdict": "action 2" })),
            Ok(json!({ "accept": false, "best": 2 }))
        );
        assert_eq!(answer("label_step", &json!({ "verdict": "right" })), Ok(json!({ "accept": true })));
        assert!(answer("label_step", &json!({ "verdict": "maybe" })).is_err());
        let episode = json!({ "world": "maze", "length": 1, "return": -5, "below_mean": 7,
            "steps": [{ "obs": "1", "action": 3, "reward": -5, "bad": false }] });
        let scored = drawn("score_episode", &episode);
        assert!(scored.message.contains("earned -5 milli-units") && scored.message.contains("\n1 3 -5"));
        let said = answer("score_episode", &json!({ "score": 0.5, "keep": "discard" }));
        assert_eq!(said, Ok(json!({ "score": 0.5, "keep": "discard" })));
        let patch = json!({ "world": "maze", "words": "hold", "score": 0.02, "proofs": 3, "missing": 0.0, "in_force": false });
        let decided = drawn("approve_patch", &patch);
        assert!(
            decided.message.contains("0.02 of the range; 3 proofs")
                && decided.message.contains("Defer: not now")
        );
        assert_eq!(
            answer("approve_patch", &json!({ "decision": "defer" })),
            Ok(json!({ "decision": "defer" }))
        );
        let worlds =
            json!({ "worlds": [{ "world": "a", "decisions": 1 }, { "world": "b", "decisions": 2 }] });
        let ranked = drawn("rank_templates", &worlds);
        assert_eq!(ranked.schema["required"], json!(["place_1", "place_2"]));
        let said = answer("rank_templates", &json!({ "place_1": "b", "place_2": "a" }));
        assert_eq!(said, Ok(json!({ "order": ["b", "a"] })));
        let config = json!({ "reason": "8 BAD", "decisions": 9, "bad": 8, "control": {} });
        let adjusted = drawn("adjust_config", &config);
        assert!(adjusted.message.contains("8 BAD"));
        let filled =
            json!({ "safety_override_mode": "warn", "enable_online": "unchanged", "weight_pox_delta": 0.1 });
        let said = answer("adjust_config", &filled);
        assert_eq!(said, Ok(json!({ "safety_override_mode": "warn", "weight_pox_delta": 0.1 })));
        assert!(form(&question("riddle", &json!({})), &[], &[]).is_err());
    }
}
