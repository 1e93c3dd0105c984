//! What a server has, as tools of the protocol: one for every operation on its bus, and the questions.
//!
//! Names of the protocol are letters, digits, dashes and underscores, at most 64; kinds and operations that differ only in
//! other letters get a number behind their name. Must not know HTTP.

use crate::asking;
use crate::questions::QUESTIONS;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest name that clients take.
const NAME_MAX: usize = 64;

/// What a tool of the protocol stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An operation on the bus.
    Bus {
        /// The kind.
        kind: String,
        /// The operation.
        op: String,
    },
    /// An operation on questions, by its place in the list.
    Question(usize),
    /// The person at the client is asked.
    Ask,
}

/// All tools, by name.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    tools: BTreeMap<String, (Tool, Target)>,
}

impl Offer {
    /// What `GET /v1/tools` lists, and the questions.
    pub fn new(listed: &Value) -> Offer {
        let mut offer = Offer::default();
        for (place, question) in QUESTIONS.iter().enumerate() {
            let hints = ToolAnnotations::new().read_only(question.is_read).open_world(false);
            offer.add(
                question.name,
                question.about.to_string(),
                question.schema(),
                hints,
                Target::Question(place),
            );
        }
        let hints = ToolAnnotations::new().read_only(false).open_world(false);
        offer.add(asking::NAME, asking::ABOUT.to_string(), asking::schema(), hints, Target::Ask);
        for kind in listed["kinds"].as_array().into_iter().flatten() {
            let Some(name) = kind["name"].as_str() else { continue };
            let operations = kind["operations"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for op in operations {
                let about = format!(
                    "{op} of the tool {name} on the server's bus; the request and its answer are kept in its history"
                );
                let target = Target::Bus { kind: name.to_string(), op: op.to_string() };
                let hints = ToolAnnotations::new().read_only(is_read(name, op));
                offer.add(&format!("{name}_{op}"), about, kind["schemas"][op].clone(), hints, target);
            }
        }
        offer
    }

    fn add(&mut self, wanted: &str, about: String, schema: Value, hints: ToolAnnotations, target: Target) {
        let plain: String = wanted
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' })
            .take(NAME_MAX)
            .collect();
        let mut name = plain.clone();
        for number in 2.. {
            if !self.tools.contains_key(&name) {
                break;
            }
            let tail = format!("_{number}");
            name = format!("{}{tail}", &plain[..plain.len().min(NAME_MAX - tail.len())]);
        }
        let schema = match schema {
            Value::Object(schema) => schema,
            _ => Map::from_iter([("type".to_string(), Value::from("object"))]),
        };
        let tool = Tool::new(name.clone(), about, Arc::new(schema)).with_annotations(hints);
        self.tools.insert(name, (tool, target));
    }

    /// The tools, in order of their names.
    pub fn tools(&self) -> Vec<Tool> {
        self.tools.values().map(|(tool, _)| tool.clone()).collect()
    }

    /// What a name stands for.
    pub fn target(&self, name: &str) -> Option<&Target> {
        self.tools.get(name).map(|(_, target)| target)
    }
}

/// Whether a built-in operation changes nothing outside; of others that is not known.
fn is_read(kind: &str, op: &str) -> bool {
    matches!(
        (kind, op),
        ("fs", "stat" | "read" | "list") | ("db", "prepare" | "fetch" | "meta") | ("prover", "unsat")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_fit_the_protocol_and_no_two_are_the_same() {
        let long = "x".repeat(128);
        let listed = json!({ "kinds": [
            { "name": "fs", "operations": ["read"], "schemas": { "read": { "type": "object", "properties": { "resource": {} } } } },
            { "name": "a.b", "operations": ["c"] },
            { "name": "a/b", "operations": ["c"] },
            { "name": "questions", "operations": ["list"] },
            { "name": long, "operations": ["p", "q"] },
        ] });
        let offer = Offer::new(&listed);
        let tools = offer.tools();
        assert_eq!(tools.len(), QUESTIONS.len() + 7);
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        assert!(tools.iter().all(|tool| tool.name.len() <= NAME_MAX && tool.name.chars().all(is_plain)));
        let bus = |kind: &str, op: &str| Some(Target::Bus { kind: kind.to_string(), op: op.to_string() });
        assert_eq!(offer.target("fs_read").cloned(), bus("fs", "read"));
        assert_eq!(offer.target("a_b_c").cloned(), bus("a.b", "c"));
        assert_eq!(offer.target("a_b_c_2").cloned(), bus("a/b", "c"));
        assert_eq!(offer.target("questions_list"), Some(&Target::Question(0)));
        assert_eq!(offer.target("questions_list_2").cloned(), bus("questions", "list"));
        assert_eq!(offer.target("nothing"), None);
        let read = tools.iter().find(|tool| tool.name == "fs_read").unwrap();
        assert!(read.input_schema.contains_key("properties"));
    }
}
