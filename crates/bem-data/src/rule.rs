//! Conditions over named features that a user writes: what counts as BAD, and what must never be done.
//!
//! `{"if":{"temp":">= 28","door":1},"action":[1,2]}`: every feature that is named must meet its condition, and the action
//! must be one of those (without `"action"`, any; a rule of `"forbid"` must name it). A number takes `>= x`, `> x`, `<= x`, `< x` or `= x`, or two of them
//! joined by `and`; a choice or bit takes a value or a list of values. Clauses: GLE-9, VM-17.

use crate::feature::{Object, Value, plain};
use crate::{Code, Column, DataError, Decimal, Encoder, Feature, FeatureKind};
use bem_base::environment::{Bits, Pattern};
use serde_json::value::RawValue;

/// Rules of one list.
pub const RULES_MAX: usize = 256;

/// What one feature must be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    /// A number from `low` on and below `high`.
    Within { low: Decimal, high: Decimal },
    /// One of these places or bits.
    OneOf(Vec<u16>),
}

/// One rule that a user declares: what is BAD, or what must never be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The place of a feature and what it must be; all must hold.
    tests: Vec<(usize, Test)>,
    /// The actions that it is about; none stands for all.
    actions: Vec<u16>,
    /// As it was written.
    text: String,
}

impl Rule {
    /// Reads a list of rules.
    pub fn list(what: &str, text: &str, features: &[Feature], actions: u16) -> Result<Vec<Rule>, DataError> {
        let form =
            format!("{what:?} must be a list such as [{{\"if\":{{\"temp\":\">= 28\"}},\"action\":1}}]");
        let raws: Vec<Box<RawValue>> = serde_json::from_str(text).map_err(|_| DataError(form))?;
        if RULES_MAX < raws.len() {
            return Err(DataError(format!(
                "{what:?} has {} rules; at most {RULES_MAX} are allowed",
                raws.len()
            )));
        }
        let read = |(place, raw): (usize, &str)| {
            let named = |error| DataError(format!("{what:?} rule {place}: {error}"));
            let rule = rule(raw, features, actions).map_err(named)?;
            if what == "forbid" && !rule.names_actions() {
                return Err(named(DataError(format!(
                    "\"action\" is missing; it must be 0 to {} or a list of them",
                    actions - 1
                ))));
            }
            Ok(rule)
        };
        raws.iter().map(|raw| raw.get()).enumerate().map(read).collect()
    }

    /// Whether it concerns an action.
    pub fn concerns(&self, action: u16) -> bool {
        self.actions.is_empty() || self.actions.contains(&action)
    }

    /// Whether it is about some actions only.
    pub fn names_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Whether its conditions hold for these values, one for every feature in order.
    pub fn holds(&self, values: &[Value]) -> bool {
        self.tests.iter().all(|(place, test)| values.get(*place).is_some_and(|value| test.holds(*value)))
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The thresholds at which a number's test changes its answer.
    pub fn thresholds(&self, feature: usize) -> Vec<Decimal> {
        let of = |(place, test): &(usize, Test)| match test {
            Test::Within { low, high } if *place == feature => vec![*low, *high],
            _ => Vec::new(),
        };
        self.tests.iter().flat_map(of).filter(|end| Decimal::MIN < *end && *end <= Decimal::MAX).collect()
    }

    /// The first number in one of whose levels the rule holds for a part of the values only, and the threshold that is missing
    /// there. What bits say of the rule is wrong for the rest of that level.
    pub(crate) fn missing<'e>(&self, encoder: &'e Encoder) -> Option<(&'e str, Decimal)> {
        let of = |(place, column): (usize, &'e Column)| {
            let FeatureKind::Number { min, max } = &column.feature.kind else { return None };
            let own = match &column.code {
                Code::Steps(thresholds) | Code::Level(thresholds) => thresholds.as_slice(),
                _ => &[],
            };
            let is_missing = |end: &Decimal| min < end && end <= max && own.binary_search(end).is_err();
            let end = self.thresholds(place).into_iter().find(is_missing)?;
            Some((column.feature.name.as_str(), end))
        };
        encoder.columns().iter().enumerate().find_map(of)
    }

    /// Patterns that together mean the observations for which the rule holds, at most so many; an error where they are more. Only
    /// bits of features that it names are looked at. The encoder's thresholds must include the rule's.
    pub fn patterns(&self, encoder: &Encoder, most: usize) -> Result<Vec<Pattern>, DataError> {
        let mut all = vec![Pattern::ANY];
        for (place, test) in &self.tests {
            let column = &encoder.columns()[*place];
            let shows = |value: Value| (column.with(Bits::ZERO, value), test.holds(value));
            let shown: Vec<(Bits, bool)> =
                samples(&column.feature, &column.code).into_iter().map(shows).collect();
            let mut parts = Vec::new();
            divide(column, &shown, Pattern::ANY, &mut parts);
            if most < all.len() * parts.len() {
                return Err(self.too_many(most));
            }
            let bits = column.low..column.low + column.width;
            let joined = |one: Pattern, part: &Pattern| {
                let asked =
                    bits.clone().filter_map(|bit| Some((usize::from(bit), part.bit(usize::from(bit))?)));
                asked.fold(one, |one, (bit, value)| one.with(bit, value))
            };
            all = all.iter().flat_map(|one| parts.iter().map(|part| joined(*one, part))).collect();
        }
        Ok(all.into_iter().map(|pattern| pattern.within(encoder.bits())).collect())
    }

    /// What is said where this rule, or the rules up to it, take more patterns than are allowed.
    pub(crate) fn too_many(&self, most: usize) -> DataError {
        DataError(format!(
            "the rule {} is one too many: what is forbidden takes more than {most} patterns of bits in all; name fewer features \
             in it, ranges in place of single values, or fewer actions",
            self.text
        ))
    }
}

impl Test {
    fn holds(&self, value: Value) -> bool {
        match (self, value) {
            (Test::Within { low, high }, Value::Number(number)) => *low <= number && number < *high,
            (Test::OneOf(places), Value::Choice(word)) => places.contains(&word),
            (Test::OneOf(places), Value::Bit(bit)) => places.contains(&u16::from(bit)),
            _ => false,
        }
    }
}

/// Divides what a feature can show by its bits until each part holds or does not. A field is divided from its highest bit on, so
/// that a range takes at most two patterns a bit; steps in their middle. Bits that no value shows belong to a part by the bits
/// that divide, which are the same for every test: tests that exclude each other have no pattern in common.
fn divide(column: &Column, shown: &[(Bits, bool)], seen: Pattern, parts: &mut Vec<Pattern>) {
    if shown.iter().all(|(_, holds)| !holds) {
        return;
    }
    let bits = usize::from(column.low)..usize::from(column.low + column.width);
    let tells = |bit: &usize| shown.iter().any(|(bits, _)| bits.get(*bit) != shown[0].0.get(*bit));
    let telling: Vec<usize> = bits.filter(tells).collect();
    let bit = match column.code {
        Code::Steps(_) => telling.get(telling.len() / 2),
        _ => telling.last(),
    };
    match bit {
        Some(bit) if shown.iter().any(|(_, holds)| !holds) => {
            for value in [false, true] {
                let part: Vec<(Bits, bool)> =
                    shown.iter().filter(|(bits, _)| bits.get(*bit) == value).copied().collect();
                divide(column, &part, seen.with(*bit, value), parts);
            }
        }
        _ => parts.push(seen),
    }
}

/// One value for every level of a feature.
fn samples(feature: &Feature, code: &Code) -> Vec<Value> {
    match (&feature.kind, code) {
        (FeatureKind::Number { min, .. }, Code::Steps(thresholds) | Code::Level(thresholds)) => {
            let below = thresholds.iter().all(|threshold| min < threshold).then_some(Value::Number(*min));
            below.into_iter().chain(thresholds.iter().map(|threshold| Value::Number(*threshold))).collect()
        }
        (FeatureKind::Choice(words), _) => (0..words.len() as u16).map(Value::Choice).collect(),
        _ => vec![Value::Bit(false), Value::Bit(true)],
    }
}

fn rule(text: &str, features: &[Feature], actions: u16) -> Result<Rule, DataError> {
    let mut object: Object = serde_json::from_str(text)
        .map_err(|_| DataError::new("it must be an object with \"if\" and \"action\""))?;
    let conditions = object.remove("if").ok_or_else(|| DataError::new("\"if\" is missing"))?;
    let named = match object.remove("action") {
        None => Vec::new(),
        Some(raw) => {
            numbers(&raw).filter(|list| list.iter().all(|action| *action < actions)).ok_or_else(|| {
                DataError(format!("\"action\" is {raw}; it must be 0 to {} or a list of them", actions - 1))
            })?
        }
    };
    if let Some(key) = object.keys().next() {
        return Err(DataError(format!("{key:?} is unknown; known are if, action")));
    }
    let conditions: Object = serde_json::from_str(conditions.get())
        .map_err(|_| DataError::new("\"if\" must be an object of conditions by feature"))?;
    let mut tests = Vec::new();
    for (name, raw) in &conditions {
        let place = features.iter().position(|feature| feature.name == *name).ok_or_else(|| {
            let known: Vec<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
            DataError(format!("{name:?} is no feature; there are {}", known.join(", ")))
        })?;
        tests.push((place, test(&features[place], raw)?));
    }
    Ok(Rule { tests, actions: named, text: in_one_line(text) })
}

/// The text with one space for all white space between its words; what is quoted stays as it is.
fn in_one_line(text: &str) -> String {
    let (mut line, mut is_quoted, mut is_escaped) = (String::new(), false, false);
    for letter in text.trim().chars() {
        if is_quoted || !letter.is_whitespace() {
            line.push(letter);
        } else if !line.ends_with(' ') {
            line.push(' ');
        }
        is_quoted ^= letter == '"' && !is_escaped;
        is_escaped = is_quoted && letter == '\\' && !is_escaped;
    }
    line
}

fn numbers(raw: &RawValue) -> Option<Vec<u16>> {
    let one = serde_json::from_str::<u16>(raw.get()).ok().map(|one| vec![one]);
    one.or_else(|| serde_json::from_str(raw.get()).ok())
}

fn test(feature: &Feature, raw: &RawValue) -> Result<Test, DataError> {
    if let FeatureKind::Number { .. } = feature.kind {
        return within(&plain(raw)).ok_or_else(|| {
            DataError(format!(
                "the condition of {:?} is {}; a number takes \">= x\", \"> x\", \"<= x\", \"< x\", \"= x\" or two of them with \"and\"",
                feature.name,
                raw.get()
            ))
        });
    }
    let words: Vec<String> = match serde_json::from_str::<Vec<Box<RawValue>>>(raw.get()) {
        Ok(list) => list.iter().map(|word| plain(word)).collect(),
        Err(_) => vec![plain(raw)],
    };
    let place = |word: &String| {
        feature.value(word).map(|value| match value {
            Value::Choice(word) => word,
            Value::Bit(bit) => u16::from(bit),
            Value::Number(_) => 0,
        })
    };
    Ok(Test::OneOf(words.iter().map(place).collect::<Result<_, _>>()?))
}

fn within(text: &str) -> Option<Test> {
    let (mut low, mut high) = (Decimal::MIN, Decimal::MAX.next_up());
    for part in text.split(" and ") {
        let part = part.trim();
        let number = |rest: &str| Decimal::parse(rest).ok();
        if let Some(rest) = part.strip_prefix(">=") {
            low = low.max(number(rest)?);
        } else if let Some(rest) = part.strip_prefix("<=") {
            high = high.min(number(rest)?.next_up());
        } else if let Some(rest) = part.strip_prefix('>') {
            low = low.max(number(rest)?.next_up());
        } else if let Some(rest) = part.strip_prefix('<') {
            high = high.min(number(rest)?);
        } else {
            let value = number(part.strip_prefix('=').unwrap_or(part))?;
            (low, high) = (low.max(value), high.min(value.next_up()));
        }
    }
    Some(Test::Within { low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NumberCode;

    fn features() -> Vec<Feature> {
        Feature::list(
            r#"[{"name":"temp","kind":"number","min":0,"max":40},{"name":"mode","kind":"choice","of":["off","on"]},{"name":"door","kind":"bit"}]"#,
        )
        .unwrap()
    }

    #[test]
    fn rules_hold_where_they_say_and_so_do_their_patterns() {
        let features = features();
        let text = r#"[{"if":{"temp":">= 28 and < 30.5","mode":["on"]},"action":1},{"if":{"door":true}}]"#;
        let rules = Rule::list("bad_if", text, &features, 3).unwrap();
        assert!(rules[0].concerns(1) && !rules[0].concerns(2) && rules[1].concerns(2));
        let values = |temp: &str, mode: u16, door: bool| {
            [Value::Number(Decimal::parse(temp).unwrap()), Value::Choice(mode), Value::Bit(door)]
        };
        assert!(rules[0].holds(&values("28", 1, false)) && rules[0].holds(&values("30.4999", 1, true)));
        assert!(!rules[0].holds(&values("30.5", 1, false)) && !rules[0].holds(&values("29", 0, false)));
        assert!(rules[1].holds(&values("1", 0, true)));
        for code in [NumberCode::Binary, NumberCode::Thermometer] {
            let encoder = Encoder::for_world(features.clone(), code, 32, &rules).unwrap();
            for rule in &rules {
                let patterns = rule.patterns(&encoder, 12).unwrap();
                for temp in ["0", "27.9", "28", "29.7", "30.4", "30.5", "31", "40"] {
                    for (mode, door) in [(0, false), (1, false), (0, true), (1, true)] {
                        let values = values(temp, mode, door);
                        let bits = encoder.encode_values(&values);
                        let count = patterns.iter().filter(|pattern| pattern.covers(&bits)).count();
                        assert_eq!(count, usize::from(rule.holds(&values)), "{temp} {mode} {door}");
                    }
                }
            }
            // A rule about one bit looks at that bit, whatever else is shown.
            let door = encoder.bits() - 1;
            assert_eq!(rules[1].patterns(&encoder, 1).unwrap(), [Pattern::ANY.with(door, true)]);
            let error = rules[0].patterns(&encoder, 0).unwrap_err().to_string();
            assert!(error.starts_with("the rule {\"if\":{\"temp\":\">= 28 and < 30.5\""), "{error}");
        }
    }

    #[test]
    fn tests_that_exclude_each_other_have_no_pattern_in_common_not_even_where_no_value_is_shown() {
        let features = Feature::list(
            r#"[{"name":"temp","kind":"number","min":0,"max":10},{"name":"mode","kind":"choice","of":5}]"#,
        )
        .unwrap();
        let text = r#"[{"if":{"mode":4},"action":0},{"if":{"mode":[0,3]},"action":0},{"if":{"mode":[1,2]},"action":0},
            {"if":{"temp":"< 3.5"},"action":0},{"if":{"temp":">= 3.5 and < 9"},"action":0},{"if":{"temp":">= 9"},"action":0}]"#;
        let rules = Rule::list("forbid", text, &features, 2).unwrap();
        for code in [NumberCode::Binary, NumberCode::Thermometer] {
            let encoder = Encoder::for_world(features.clone(), code, 16, &rules).unwrap();
            for kind in [&rules[..3], &rules[3..]] {
                let parts: Vec<Vec<Pattern>> =
                    kind.iter().map(|rule| rule.patterns(&encoder, 99).unwrap()).collect();
                for (place, one) in parts.iter().enumerate() {
                    let others = parts[place + 1..].iter().flatten();
                    assert!(others.clone().all(|other| one.iter().all(|one| !one.meets(other))));
                }
            }
        }
    }

    #[test]
    fn wrong_rules_are_named() {
        for (text, want) in [
            (r#"[{"if":{"tmp":1}}]"#, "\"bad_if\" rule 0: \"tmp\" is no feature; there are temp, mode, door"),
            (
                r#"[{"if":{"door":2}}]"#,
                "\"bad_if\" rule 0: \"door\" is \"2\"; it must be 0, 1, true or false",
            ),
            (
                r#"[{"if":{},"action":3}]"#,
                "\"bad_if\" rule 0: \"action\" is 3; it must be 0 to 2 or a list of them",
            ),
            (r#"[{"action":1}]"#, "\"bad_if\" rule 0: \"if\" is missing"),
        ] {
            assert_eq!(Rule::list("bad_if", text, &features(), 3).unwrap_err().to_string(), want);
        }
        // What is forbidden is forbidden to do: without an action nothing would be left.
        assert_eq!(
            Rule::list("forbid", r#"[{"if":{"door":1}}]"#, &features(), 3).unwrap_err().to_string(),
            "\"forbid\" rule 0: \"action\" is missing; it must be 0 to 2 or a list of them"
        );
        assert!(
            Rule::list("bad_if", r#"[{"if":{"temp":"warm"}}]"#, &features(), 3)
                .unwrap_err()
                .to_string()
                .contains("a number takes")
        );
    }
}
