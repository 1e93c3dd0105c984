//! The queue of people as tools of the protocol: list, lease, preview, answer, skip, release.
//!
//! They are the requests of the page `/queue`. What an answer must look like stands in the question. Clause: HUM-12.

use serde_json::{Value, json};

/// One operation on questions.
pub struct Question {
    /// The tool's name.
    pub name: &'static str,
    /// What it does, for whoever chooses a tool.
    pub about: &'static str,
    /// The last part of its path; empty for the list.
    pub action: &'static str,
    /// Whether nothing changes by it.
    pub is_read: bool,
    /// Fields of the body, with whether each must be there.
    pub fields: &'static [(&'static str, bool)],
}

/// All of them.
pub const QUESTIONS: [Question; 6] = [
    Question {
        name: "questions_list",
        about: "The questions to people that are open, with what each is about",
        action: "",
        is_read: true,
        fields: &[("state", false), ("after", false), ("limit", false)],
    },
    Question {
        name: "questions_lease",
        about: "Take a question for ten minutes; the lease is needed to answer, skip or release it",
        action: "lease",
        is_read: false,
        fields: &[],
    },
    Question {
        name: "questions_preview",
        about: "What an answer would change, without giving it",
        action: "preview",
        is_read: true,
        fields: &[("answer", true)],
    },
    Question {
        name: "questions_answer",
        about: "Answer a question; it takes effect once and can be taken back. label_step: {\"accept\":true} or \
                {\"accept\":false,\"best\":ACTION}; score_episode: {\"score\":0.75,\"keep\":\"keep\"}; approve_patch: \
                {\"decision\":\"approve\"}; rank_templates: {\"order\":[WORLD,...]}",
        action: "answer",
        is_read: false,
        fields: &[("lease", true), ("answer", true)],
    },
    Question {
        name: "questions_skip",
        about: "Skip a question: nobody will answer it",
        action: "skip",
        is_read: false,
        fields: &[("lease", true), ("reason", false)],
    },
    Question {
        name: "questions_release",
        about: "Give a leased question back to the queue",
        action: "release",
        is_read: false,
        fields: &[("lease", true)],
    },
];

impl Question {
    /// What a call of it takes.
    pub fn schema(&self) -> Value {
        let mut fields = serde_json::Map::new();
        let mut required = Vec::new();
        if !self.action.is_empty() {
            let number =
                json!({ "type": "string", "pattern": "^[0-9]+$", "description": "the question's number" });
            fields.insert("question".to_string(), number);
            required.push("question");
        }
        for (name, must) in self.fields {
            let field = match *name {
                "state" => json!({ "enum": ["open", "pending", "in_progress"] }),
                "after" => json!({ "type": "string", "pattern": "^[0-9]+$" }),
                "limit" => json!({ "type": "integer", "minimum": 1 }),
                "reason" => json!({ "enum": ["declined", "obsolete", "withdrawn"] }),
                "answer" => json!({ "type": "object" }),
                _ => json!({ "type": "string" }),
            };
            fields.insert((*name).to_string(), field);
            required.extend(must.then_some(*name));
        }
        json!({ "type": "object", "properties": fields, "required": required, "additionalProperties": false })
    }

    /// Method, path and body of a call.
    pub fn request(&self, mut arguments: Value) -> Result<(&'static str, String, Option<Value>), String> {
        let Some(fields) = arguments.as_object_mut() else {
            return Err("the arguments must be an object".to_string());
        };
        if self.action.is_empty() {
            let mut words = Vec::new();
            for (name, _) in self.fields {
                let value = match fields.remove(*name) {
                    None | Some(Value::Null) => continue,
                    Some(Value::String(text)) => text,
                    Some(other) => other.to_string(),
                };
                if !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                    return Err(format!("{name} must be a word or a number"));
                }
                words.push(format!("{name}={value}"));
            }
            refuse_others(fields, self.fields)?;
            let query = if words.is_empty() { String::new() } else { format!("?{}", words.join("&")) };
            return Ok(("GET", format!("/v1/questions{query}"), None));
        }
        let number = match fields.remove("question") {
            Some(Value::String(text)) => text,
            Some(Value::Number(number)) => number.to_string(),
            _ => return Err("question is missing: the number of a question".to_string()),
        };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("question must be the number of a question".to_string());
        }
        refuse_others(fields, self.fields)?;
        let body = if self.fields.is_empty() { None } else { Some(arguments) };
        Ok(("POST", format!("/v1/questions/{number}/{}", self.action), body))
    }
}

fn refuse_others(fields: &serde_json::Map<String, Value>, known: &[(&str, bool)]) -> Result<(), String> {
    match fields.keys().find(|name| !known.iter().any(|(known, _)| known == name)) {
        None => Ok(()),
        Some(name) => {
            let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            Err(format!("{name:?} is no field: question {}", known.join(" ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, arguments: Value, expected: Result<(&str, &str, Option<Value>), &str>) {
        let question = QUESTIONS.iter().find(|question| question.name == name).unwrap();
        let made = question.request(arguments);
        match (made, expected) {
            (Ok((method, path, body)), Ok(wanted)) => assert_eq!((method, path.as_str(), body), wanted),
            (Err(reason), Err(words)) => assert!(reason.contains(words), "{reason}"),
            (made, expected) => panic!("{made:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_call_becomes_one_request_and_nothing_slips_into_its_path() {
        check("questions_list", json!({}), Ok(("GET", "/v1/questions", None)));
        check(
            "questions_list",
            json!({ "state": "pending", "limit": 5 }),
            Ok(("GET", "/v1/questions?state=pending&limit=5", None)),
        );
        check("questions_list", json!({ "state": "a&b" }), Err("state must be"));
        check("questions_lease", json!({ "question": "7" }), Ok(("POST", "/v1/questions/7/lease", None)));
        check("questions_lease", json!({ "question": "../worlds" }), Err("the number of a question"));
        check("questions_lease", json!({}), Err("question is missing"));
        check(
            "questions_answer",
            json!({ "question": 7, "lease": "7-1", "answer": { "accept": true } }),
            Ok((
                "POST",
                "/v1/questions/7/answer",
                Some(json!({ "lease": "7-1", "answer": { "accept": true } })),
            )),
        );
        check("questions_skip", json!({ "question": "7", "why": 1 }), Err("\"why\" is no field"));
        check("questions_skip", json!([]), Err("must be an object"));
    }
}
