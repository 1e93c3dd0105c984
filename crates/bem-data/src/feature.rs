//! Named features, as a world or a log declares them.
//!
//! `{"name":"temp","kind":"number","min":-40,"max":60}`, `{"name":"mode","kind":"choice","of":4}` (the values 0 to 3) or
//! `"of":["off","eco","on"]`, and `{"name":"door","kind":"bit"}`. Clauses: GLE-9.

use crate::{DataError, Decimal};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// Features of one world or log.
pub const FEATURES_MAX: usize = 512;
/// Values of one choice.
pub const CHOICES_MAX: usize = 1_024;
/// Letters of a name.
pub const NAME_MAX: usize = 80;

/// What values a feature takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureKind {
    /// A decimal number within these bounds.
    Number {
        /// The smallest.
        min: Decimal,
        /// The largest.
        max: Decimal,
    },
    /// One of these words; they differ from each other.
    Choice(Vec<String>),
    /// Zero or one.
    Bit,
}

/// One named feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// What people call it.
    pub name: String,
    /// What values it takes.
    pub kind: FeatureKind,
}

/// The raw texts of an object, as they stand in the file: a number keeps all its digits.
pub type Object = BTreeMap<String, Box<RawValue>>;

/// The text of a JSON string, or the number or word itself.
pub fn plain(raw: &RawValue) -> String {
    serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_string())
}

impl Feature {
    /// Reads a list of features from JSON text.
    pub fn list(text: &str) -> Result<Vec<Feature>, DataError> {
        let objects: Vec<Object> = serde_json::from_str(text)
            .map_err(|_| DataError::new("\"features\" must be a list of objects such as {\"name\":\"temp\",\"kind\":\"number\",\"min\":-40,\"max\":60}"))?;
        if !(1..=FEATURES_MAX).contains(&objects.len()) {
            return Err(DataError(format!(
                "\"features\" has {} entries; allowed is 1 to {FEATURES_MAX}",
                objects.len()
            )));
        }
        let features: Vec<Feature> = objects.iter().enumerate().map(feature).collect::<Result<_, _>>()?;
        let names: BTreeSet<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
        if names.len() < features.len() {
            return Err(DataError::new("\"features\" names one feature twice"));
        }
        Ok(features)
    }

    /// The feature as a JSON object.
    pub fn to_json(&self) -> String {
        let name = quoted(&self.name);
        match &self.kind {
            FeatureKind::Number { min, max } => {
                format!("{{\"name\":{name},\"kind\":\"number\",\"min\":{min},\"max\":{max}}}")
            }
            FeatureKind::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                format!("{{\"name\":{name},\"kind\":\"choice\",\"of\":[{}]}}", words.join(","))
            }
            FeatureKind::Bit => format!("{{\"name\":{name},\"kind\":\"bit\"}}"),
        }
    }

    /// What the feature takes, in words.
    pub fn allowed(&self) -> String {
        match &self.kind {
            FeatureKind::Number { min, max } => format!("a number from {min} to {max}"),
            FeatureKind::Choice(words) if 8 < words.len() => {
                format!("one of {} values, {} to {}", words.len(), words[0], words[words.len() - 1])
            }
            FeatureKind::Choice(words) => format!("one of {}", words.join(", ")),
            FeatureKind::Bit => "0, 1, true or false".to_string(),
        }
    }

    /// The value that a text stands for.
    pub fn value(&self, text: &str) -> Result<Value, DataError> {
        let refused = || DataError(format!("{:?} is {text:?}; it must be {}", self.name, self.allowed()));
        match &self.kind {
            FeatureKind::Number { min, max } => {
                let value = Decimal::parse(text).map_err(|_| refused())?;
                if (*min..=*max).contains(&value) { Ok(Value::Number(value)) } else { Err(refused()) }
            }
            FeatureKind::Choice(words) => {
                let place = words.iter().position(|word| word == text.trim());
                place.map(|place| Value::Choice(place as u16)).ok_or_else(refused)
            }
            FeatureKind::Bit => match text.trim() {
                "0" | "false" => Ok(Value::Bit(false)),
                "1" | "true" => Ok(Value::Bit(true)),
                _ => Err(refused()),
            },
        }
    }
}

/// One value of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// Of a number.
    Number(Decimal),
    /// Of a choice: its place among the words.
    Choice(u16),
    /// Of a bit.
    Bit(bool),
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn feature((place, object): (usize, &Object)) -> Result<Feature, DataError> {
    let wrong = |words: String| DataError(format!("feature {place}: {words}"));
    let text = |key: &str| object.get(key).map(|raw| plain(raw));
    let name = text("name").ok_or_else(|| wrong("\"name\" is missing".to_string()))?;
    let is_name = !name.is_empty()
        && name.chars().count() <= NAME_MAX
        && !name.chars().any(|sign| sign.is_control() || matches!(sign, ',' | '=' | '<' | '>' | '"' | '\\'));
    if !is_name {
        let words =
            format!("\"name\" is {name:?}; it must have 1 to {NAME_MAX} letters, without , = < > \" \\");
        return Err(wrong(words));
    }
    let known: &[&str] = match text("kind").as_deref() {
        Some("number") => &["name", "kind", "min", "max"],
        Some("choice") => &["name", "kind", "of"],
        Some("bit") => &["name", "kind"],
        other => {
            let said = other.map_or("missing".to_string(), |kind| format!("{kind:?}"));
            return Err(wrong(format!("\"kind\" is {said}; allowed is number, choice or bit")));
        }
    };
    if let Some(key) = object.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(wrong(format!("{key:?} is unknown here; known are {}", known.join(", "))));
    }
    let kind = match known.len() {
        4 => {
            let end = |key: &str| {
                let text = text(key).ok_or_else(|| wrong(format!("{key:?} is missing")))?;
                Decimal::parse(&text).map_err(|error| wrong(format!("{key:?}: {error}")))
            };
            let (min, max) = (end("min")?, end("max")?);
            if max <= min {
                return Err(wrong(format!(
                    "\"min\" is {min} and \"max\" is {max}; the first must be smaller"
                )));
            }
            FeatureKind::Number { min, max }
        }
        3 => FeatureKind::Choice(choices(object).map_err(wrong)?),
        _ => FeatureKind::Bit,
    };
    Ok(Feature { name, kind })
}

fn choices(object: &Object) -> Result<Vec<String>, String> {
    let form =
        format!("\"of\" must be a number from 1 to {CHOICES_MAX} or a list of so many different words");
    let raw = object.get("of").ok_or_else(|| form.clone())?.get();
    let words: Vec<String> =
        match (serde_json::from_str::<usize>(raw), serde_json::from_str::<Vec<String>>(raw)) {
            (Ok(count), _) if count <= CHOICES_MAX => (0..count).map(|place| place.to_string()).collect(),
            (_, Ok(words)) => words,
            _ => return Err(form),
        };
    let different: BTreeSet<&String> = words.iter().collect();
    let fits = (1..=CHOICES_MAX).contains(&words.len()) && different.len() == words.len();
    if fits { Ok(words) } else { Err(form) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_with_all_their_digits_and_written_back() {
        let text = r#"[{"name":"temp","kind":"number","min":-40,"max":60.10000000000000005},
            {"name":"mode","kind":"choice","of":3},{"name":"day","kind":"choice","of":["mo","tu"]},{"name":"door","kind":"bit"}]"#;
        let features = Feature::list(text).unwrap();
        assert_eq!(features[0].allowed(), "a number from -40 to 60.10000000000000005");
        let json: Vec<String> = features.iter().map(Feature::to_json).collect();
        assert_eq!(Feature::list(&format!("[{}]", json.join(","))).unwrap(), features);
        assert_eq!(features[1].value("2"), Ok(Value::Choice(2)));
        assert_eq!(features[2].value("tu"), Ok(Value::Choice(1)));
        assert_eq!(features[3].value("true"), Ok(Value::Bit(true)));
        let error = features[0].value("61").unwrap_err().to_string();
        assert_eq!(error, "\"temp\" is \"61\"; it must be a number from -40 to 60.10000000000000005");
        let error = features[1].value("3").unwrap_err().to_string();
        assert_eq!(error, "\"mode\" is \"3\"; it must be one of 0, 1, 2");
    }

    #[test]
    fn wrong_features_are_named() {
        for (text, want) in [
            ("[]", "\"features\" has 0 entries; allowed is 1 to 512"),
            (r#"[{"kind":"bit"}]"#, "feature 0: \"name\" is missing"),
            (r#"[{"name":"a"}]"#, "feature 0: \"kind\" is missing; allowed is number, choice or bit"),
            (
                r#"[{"name":"a","kind":"bit","min":0}]"#,
                "feature 0: \"min\" is unknown here; known are name, kind",
            ),
            (
                r#"[{"name":"a","kind":"number","min":2,"max":1}]"#,
                "feature 0: \"min\" is 2 and \"max\" is 1; the first must be smaller",
            ),
            (
                r#"[{"name":"a","kind":"bit"},{"name":"a","kind":"bit"}]"#,
                "\"features\" names one feature twice",
            ),
        ] {
            assert_eq!(Feature::list(text).unwrap_err().to_string(), want);
        }
        assert!(Feature::list(r#"[{"name":"a","kind":"choice","of":0}]"#).is_err());
        assert!(Feature::list(r#"[{"name":"a","kind":"choice","of":["x","x"]}]"#).is_err());
        assert!(Feature::list(r#"[{"name":"a=b","kind":"bit"}]"#).is_err());
        assert!(Feature::list("7").is_err());
    }
}
