//! What a world of one's own declares about itself: named features, what is BAD, and what must never be done.
//!
//! `"bad_if"` lists rules over features. One without an action is about what is seen after a step; one with actions is about
//! what was seen before it, and then these actions are not only BAD but forbidden, like those of `"forbid"`. What is forbidden
//! is listed as patterns of the bits that a rule looks at, so that a machine can prove that it never does it, however much else
//! is seen. What was declared has one spelling ([`Declared::to_json`]) that is kept with a served world. Must not know games,
//! files or who is served. Clauses: GLE-9, VM-17, SCC-5, LOG-5; decisions D-226, D-275.

use crate::feature::Value;
use crate::{DataError, Encoder, Feature, FeatureKind, NumberCode, Rule, grid};
use bem_base::environment::{Bits, Forbidden, Pattern};
use bem_base::forbidden::Unkept;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// Patterns of bits with a forbidden action, of one world: as many as a guard may hold.
pub const FORBIDDEN_MAX: usize = 4_096;

/// The texts of the declarations, as they stand in a file or a line.
pub struct Texts<'t> {
    /// The list of features.
    pub features: Option<&'t str>,
    /// The rules of what is BAD.
    pub bad_if: Option<&'t str>,
    /// The rules of what must never be done.
    pub forbid: Option<&'t str>,
}

/// What was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// How named values become bits.
    pub encoder: Encoder,
    /// What must never be done, in rising order.
    pub forbidden: Vec<Forbidden>,
    /// What is BAD.
    bad: Vec<Rule>,
    /// What is forbidden besides.
    forbid: Vec<Rule>,
}

impl Declared {
    /// Reads the declarations of a world of which only the bounds are known.
    pub fn read(texts: &Texts<'_>, actions: u16, horizon: u32) -> Result<Option<Declared>, DataError> {
        let Some((features, bad, forbid)) = parts(texts, actions)? else { return Ok(None) };
        Declared::of_world(&features, (&bad, &forbid), actions, horizon).map(Some)
    }

    /// Features of a world of which only the bounds are known, with what is BAD and what is forbidden. Numbers become binary
    /// fields, which is the code that planners do better with; a learner looks at more of a field's bits only where they tell
    /// something. The grid is the finest of those allowed at which few patterns say what is forbidden. Decisions D-52, D-241.
    pub fn of_world(
        features: &[Feature],
        (bad, forbid): (&[Rule], &[Rule]),
        actions: u16,
        horizon: u32,
    ) -> Result<Declared, DataError> {
        let rules: Vec<Rule> = bad.iter().chain(forbid).cloned().collect();
        let is_number = |feature: &&Feature| matches!(feature.kind, FeatureKind::Number { .. });
        let grids = grid::levels(features.iter().filter(is_number).count(), horizon);
        let cut = |levels: &usize| {
            let places = |min, max| grid::places(min, max, levels - 1, horizon);
            let encoder = Encoder::cut_by(features.to_vec(), NumberCode::Binary, places, &rules)?;
            Declared::new(encoder, bad.to_vec(), forbid.to_vec(), actions)
        };
        let (coarsest, finer) = grids.split_last().expect("there is a grid");
        finer.iter().find_map(|levels| cut(levels).ok()).map_or_else(|| cut(coarsest), Ok)
    }

    /// Rules over what an encoder shows that was cut for them: an error where they forbid too much.
    pub fn new(
        encoder: Encoder,
        bad: Vec<Rule>,
        forbid: Vec<Rule>,
        actions: u16,
    ) -> Result<Declared, DataError> {
        let mut declared = Declared { encoder, forbidden: Vec::new(), bad, forbid };
        let mut pairs = BTreeSet::new();
        for rule in declared.forbidding() {
            for seen in rule.patterns(&declared.encoder, FORBIDDEN_MAX)? {
                let of = (0..actions).filter(|action| rule.concerns(*action));
                pairs.extend(of.map(|action| Forbidden { seen, action }));
            }
            if FORBIDDEN_MAX < pairs.len() {
                return Err(rule.too_many(FORBIDDEN_MAX));
            }
        }
        declared.forbidden = declared.encoder.checked(pairs, actions)?;
        Ok(declared)
    }

    /// Reads the declarations of a world whose observations are all known: the objects of its states.
    pub fn of_states(
        texts: &Texts<'_>,
        actions: u16,
        states: &[&str],
    ) -> Result<Option<OfStates>, DataError> {
        let Some((features, bad, forbid)) = parts(texts, actions)? else { return Ok(None) };
        let rules: Vec<Rule> = bad.iter().chain(&forbid).cloned().collect();
        let plain = Encoder::unread(features.clone())?;
        let read = |(state, text): (usize, &&str)| {
            plain
                .values_json(text)
                .map_err(|error| DataError::new(format!("\"observe\" entry {state}: {error}")))
        };
        let rows: Vec<Vec<Value>> = states.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let encoder = Encoder::for_states(features, &rows, &rules)?;
        let mut declared = Declared { encoder, forbidden: Vec::new(), bad, forbid };
        let mut pairs = BTreeSet::new();
        for values in &rows {
            let observation = declared.encoder.encode_values(values);
            let forbids =
                |action: &u16| declared.forbidding().any(|rule| rule.concerns(*action) && rule.holds(values));
            pairs.extend((0..actions).filter(forbids).map(|action| Forbidden::whole(observation, action)));
        }
        declared.forbidden = declared.encoder.checked(pairs, actions)?;
        Ok(Some((declared, rows)))
    }

    /// Rules over an encoder that may have been cut for others: an error where it lacks a threshold of theirs, so that one of its
    /// levels would be forbidden, or BAD, for a part of its values only.
    pub fn over(
        encoder: Encoder,
        bad: Vec<Rule>,
        forbid: Vec<Rule>,
        actions: u16,
    ) -> Result<Declared, DataError> {
        let missing = |rule: &Rule| {
            let (name, threshold) = rule.missing(&encoder)?;
            let text = rule.text();
            Some(DataError(format!(
                "the rule {text} needs the threshold {threshold} of {name:?}, which is not there"
            )))
        };
        match bad.iter().chain(&forbid).find_map(missing) {
            Some(error) => Err(error),
            None => Declared::new(encoder, bad, forbid, actions),
        }
    }

    /// The same rules over another encoder of the same features: an error where it lacks a threshold of theirs.
    pub fn coded(&self, encoder: Encoder, actions: u16) -> Result<Declared, DataError> {
        Declared::over(encoder, self.bad.clone(), self.forbid.clone(), actions)
    }

    /// What is BAD, and what is forbidden besides.
    pub(crate) fn lists(&self) -> (&[Rule], &[Rule]) {
        (&self.bad, &self.forbid)
    }

    /// The rules that forbid actions.
    fn forbidding(&self) -> impl Iterator<Item = &Rule> {
        self.bad.iter().filter(|rule| rule.names_actions()).chain(&self.forbid)
    }

    /// Whether a step is BAD: by what was seen before it and what was done, or by what is seen after it.
    pub fn is_bad(&self, before: &[Value], action: u16, after: &[Value]) -> bool {
        self.bad.iter().any(|rule| match rule.names_actions() {
            true => rule.concerns(action) && rule.holds(before),
            false => rule.holds(after),
        })
    }

    /// Whether what is seen after a step makes the step BAD. Bits tell, because the rules' thresholds are the encoder's.
    pub fn is_bad_after(&self, seen: &Bits) -> bool {
        let mut rules = self.bad.iter().filter(|rule| !rule.names_actions()).peekable();
        rules.peek().is_some() && {
            let values = self.encoder.values_of(seen);
            rules.any(|rule| rule.holds(&values))
        }
    }

    /// What is BAD, as it was written.
    pub fn bad_if(&self) -> impl Iterator<Item = &str> {
        self.bad.iter().map(Rule::text)
    }

    /// What must never be done, as it was written.
    pub fn forbid(&self) -> impl Iterator<Item = &str> {
        self.forbid.iter().map(Rule::text)
    }

    /// Everything that was declared, as JSON; without rules it is the encoder alone.
    pub fn to_json(&self) -> String {
        let features = self.encoder.to_json();
        if self.bad.is_empty() && self.forbid.is_empty() {
            return features;
        }
        let list = |rules: &[Rule]| rules.iter().map(Rule::text).collect::<Vec<_>>().join(",");
        let (bad, forbid) = (list(&self.bad), list(&self.forbid));
        format!("{{\"features\":{features},\"bad_if\":[{bad}],\"forbid\":[{forbid}]}}")
    }

    /// Reads back what was declared.
    pub fn from_json(text: &str, actions: u16) -> Result<Declared, DataError> {
        if text.starts_with('[') {
            return Declared::new(Encoder::from_json(text)?, Vec::new(), Vec::new(), actions);
        }
        let (encoder, rules) = parts_of(text)?;
        let features: Vec<Feature> = encoder.columns().iter().map(|column| column.feature.clone()).collect();
        let list = |what: &str| rules.get(what).map_or("[]", |rules| rules.get()).to_string();
        let bad = Rule::list("bad_if", &list("bad_if"), &features, actions)?;
        let forbid = Rule::list("forbid", &list("forbid"), &features, actions)?;
        Declared::new(encoder, bad, forbid, actions)
    }

    /// The encoder of what was declared, whatever rules go with it.
    pub fn encoder_of(text: &str) -> Result<Encoder, DataError> {
        if text.starts_with('[') { Encoder::from_json(text) } else { Ok(parts_of(text)?.0) }
    }
}

/// The encoder and the lists of rules of what was declared with rules.
fn parts_of(text: &str) -> Result<(Encoder, BTreeMap<String, Box<RawValue>>), DataError> {
    let mut parts: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text)
        .map_err(|_| DataError::new("a declaration is a list of features, or features with rules"))?;
    let features = parts.remove("features").ok_or_else(|| DataError::new("\"features\" are missing"))?;
    Ok((Encoder::from_json(features.get())?, parts))
}

/// What was declared, and the named values of every state.
pub type OfStates = (Declared, Vec<Vec<Value>>);

/// Named features, rules of what is BAD, and rules of what must never be done.
type Parts = (Vec<Feature>, Vec<Rule>, Vec<Rule>);

fn parts(texts: &Texts<'_>, actions: u16) -> Result<Option<Parts>, DataError> {
    let Some(features) = texts.features else {
        if texts.bad_if.is_some() || texts.forbid.is_some() {
            return Err(DataError::new("\"bad_if\" and \"forbid\" need \"features\" that they speak of"));
        }
        return Ok(None);
    };
    let features = Feature::list(features)?;
    let bad = texts.bad_if.map_or(Ok(Vec::new()), |text| Rule::list("bad_if", text, &features, actions))?;
    let forbid =
        texts.forbid.map_or(Ok(Vec::new()), |text| Rule::list("forbid", text, &features, actions))?;
    Ok(Some((features, bad, forbid)))
}

impl Encoder {
    fn checked(&self, pairs: BTreeSet<Forbidden>, actions: u16) -> Result<Vec<Forbidden>, DataError> {
        checked(pairs, (self.bits(), actions), |seen| self.pattern_is(seen))
    }
}

/// One forbidden pair as a line says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    obs: String,
    action: u64,
}

/// What must never be done where observations are bits without names: `[{"obs":"01-","action":1}]`, a dash for a bit that may
/// be any. In rising order; for every observation some action is left.
pub fn forbidden_bits(text: &str, bits: usize, actions: u16) -> Result<Vec<Forbidden>, DataError> {
    let form = "\"forbidden\" must be a list such as [{\"obs\":\"01-\",\"action\":1}]";
    let pairs: Vec<Pair> = serde_json::from_str(text).map_err(|_| DataError::new(form))?;
    let read = |(place, Pair { obs, action }): (usize, &Pair)| {
        let named = |reason: String| DataError(format!("\"forbidden\" entry {place}: {reason}"));
        let seen = Pattern::from_text(obs).filter(|_| obs.len() == bits).ok_or_else(|| {
            named(format!("\"obs\" is {obs:?}; it must be {bits} zeros, ones and dashes, a dash for any"))
        })?;
        let known = u16::try_from(*action).ok().filter(|action| *action < actions);
        let action =
            known.ok_or_else(|| named(format!("\"action\" is {action}; it must be 0 to {}", actions - 1)))?;
        Ok(Forbidden { seen, action })
    };
    let pairs: BTreeSet<Forbidden> = pairs.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    checked(pairs, (bits, actions), |seen| seen.to_text(bits))
}

/// The pairs in order, if they can be kept to: they leave an action for every observation, and are few enough.
fn checked(
    pairs: BTreeSet<Forbidden>,
    world: (usize, u16),
    said: impl Fn(&Pattern) -> String,
) -> Result<Vec<Forbidden>, DataError> {
    let pairs: Vec<Forbidden> = pairs.into_iter().collect();
    match Forbidden::with_instead(&pairs, world, FORBIDDEN_MAX) {
        Ok(_) => Ok(pairs),
        Err(Unkept::NothingLeft(seen)) => Err(DataError(format!(
            "every action is forbidden for some observation ({}): one must be left",
            said(&seen)
        ))),
        Err(Unkept::TooMany) => Err(DataError(format!(
            "what is forbidden takes more than {FORBIDDEN_MAX} patterns of bits with their actions; that many are allowed: \
             leave one action that no rule forbids, or use fewer rules"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Column, Decimal};

    const FEATURES: &str = r#"[{"name":"temp","kind":"number","min":0,"max":40},
        {"name":"mode","kind":"choice","of":["off","slow  spin","on"]},{"name":"door","kind":"bit"}]"#;

    fn declared(bad_if: &str, forbid: &str) -> Result<Declared, DataError> {
        let texts = Texts { features: Some(FEATURES), bad_if: Some(bad_if), forbid: Some(forbid) };
        Declared::read(&texts, 3, 1).map(|declared| declared.expect("there are features"))
    }

    #[test]
    fn what_was_declared_comes_back_from_its_spelling() {
        let bad = r#"[{"if": {"temp": "> 30.25",
            "mode": ["slow  spin", "on"]}}, {"if":{"door":1,"temp":">= 39"},"action":2}]"#;
        let all = declared(bad, r#"[{"if":{"temp":"<= 1.5"},"action":[0,1]}]"#).unwrap();
        assert_eq!(Declared::from_json(&all.to_json(), 3).unwrap(), all);
        assert_eq!(Declared::encoder_of(&all.to_json()).unwrap(), all.encoder);
        assert_eq!(all.bad_if().next(), Some(r#"{"if": {"temp": "> 30.25", "mode": ["slow  spin", "on"]}}"#));
        let plain = declared("[]", "[]").unwrap();
        assert_eq!(plain.to_json(), plain.encoder.to_json());
        assert_eq!(Declared::from_json(&plain.to_json(), 3).unwrap(), plain);
        for damaged in ["", "{}", "{\"features\":7}", r#"{"features":[],"forbid":[{"if":{}}]}"#] {
            assert!(Declared::from_json(damaged, 3).is_err(), "{damaged}");
        }
    }

    #[test]
    fn the_grid_is_as_fine_as_forbidden_pairs_and_steps_allow() {
        let levels = |forbid: &str, horizon: u32| {
            let texts = Texts { features: Some(FEATURES), bad_if: None, forbid: Some(forbid) };
            let declared = Declared::read(&texts, 3, horizon).unwrap().unwrap();
            declared.encoder.columns()[0].width
        };
        assert_eq!([levels("[]", 1), levels("[]", 24)], [8, 8]);
        // What holds always takes one pattern for each action.
        assert_eq!(levels(r#"[{"if":{"temp":">= 0"},"action":[0,1]}]"#, 1), 8);
        let many = r#"[{"name":"a","kind":"number","min":0,"max":1},{"name":"b","kind":"number","min":0,"max":1},
            {"name":"c","kind":"number","min":0,"max":1}]"#;
        let width = |forbid: Option<&str>, horizon: u32| {
            let texts = Texts { features: Some(many), bad_if: None, forbid };
            Declared::read(&texts, 3, horizon).unwrap().unwrap().encoder.bits()
        };
        assert_eq!([width(None, 1), width(None, 2)], [24, 18]);
        // An eighth of 256 levels of each of three numbers takes few patterns.
        let corner = r#"[{"if":{"a":">= 0.5","b":">= 0.5","c":">= 0.75"},"action":0}]"#;
        assert_eq!(width(Some(corner), 1), 24);
    }

    /// Three numbers, a choice and a bit: far more observations than could be listed.
    const WIDE: &str = r#"[{"name":"temp","kind":"number","min":-40,"max":60},{"name":"load","kind":"number","min":0,"max":100},
        {"name":"age","kind":"number","min":0,"max":30},{"name":"hour","kind":"choice","of":24},{"name":"door","kind":"bit"}]"#;

    #[test]
    fn one_rule_over_one_of_many_features_takes_few_patterns() {
        let of = |forbid: &str, horizon: u32| {
            let texts = Texts { features: Some(WIDE), bad_if: None, forbid: Some(forbid) };
            Declared::read(&texts, 3, horizon).map(|declared| declared.expect("there are features"))
        };
        for horizon in [1, 24] {
            let warm = of(r#"[{"if":{"temp":">= 28"},"action":2}]"#, horizon).unwrap();
            let temp = &warm.encoder.columns()[0];
            assert!(warm.forbidden.len() <= usize::from(temp.width), "{}", warm.forbidden.len());
            for (value, wanted) in [("27.999", false), ("28", true), ("60", true), ("-40", false)] {
                let row = format!("{{\"temp\":{value},\"load\":7,\"age\":3,\"hour\":23,\"door\":1}}");
                let seen = warm.encoder.encode_json(&row).unwrap();
                assert_eq!(Forbidden::forbids(&warm.forbidden, seen, 2), wanted, "{value}");
                assert!(!Forbidden::forbids(&warm.forbidden, seen, 1));
            }
            assert_eq!(Declared::from_json(&warm.to_json(), 3).unwrap(), warm);
        }
        // Where nothing is left it is said where; tests that exclude each other leave enough.
        let all = r#"[{"if":{"temp":">= 28"},"action":2},{"if":{"door":1},"action":[0,1]}]"#;
        let error = of(all, 1).unwrap_err().to_string();
        assert!(error.contains("(temp >= ") && error.contains("door = 1"), "{error}");
        let apart = r#"[{"if":{"hour":[22,23]},"action":[0,1]},{"if":{"hour":[1,21]},"action":[1,2]},{"if":{"hour":0},"action":[0,2]}]"#;
        assert!(of(apart, 1).is_ok());
    }

    #[test]
    fn pairs_of_bits_are_read_with_dashes_and_wrong_ones_are_named() {
        let read = |text: &str| forbidden_bits(text, 3, 2).map_err(|error| error.to_string());
        let found = read(r#"[{"obs":"1-0","action":1},{"obs":"011","action":0},{"obs":"1-0","action":1}]"#);
        let found = found.unwrap();
        assert_eq!(found.len(), 2);
        assert!(Forbidden::forbids(&found, Bits([0b011, 0, 0, 0]), 1));
        assert!(Forbidden::forbids(&found, Bits([0b110, 0, 0, 0]), 0));
        for (text, want) in [
            ("{}", "\"forbidden\" must be a list"),
            (r#"[{"obs":"01","action":1}]"#, "\"forbidden\" entry 0: \"obs\" is \"01\"; it must be 3 zeros"),
            (r#"[{"obs":"01x","action":1}]"#, "\"forbidden\" entry 0: \"obs\" is \"01x\""),
            (r#"[{"obs":"011","action":2}]"#, "\"forbidden\" entry 0: \"action\" is 2; it must be 0 to 1"),
            (
                r#"[{"obs":"1--","action":0},{"obs":"--1","action":1}]"#,
                "every action is forbidden for some observation (1-1)",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(want), "{error}");
        }
    }

    #[test]
    fn ragged_ranges_of_many_numbers_ask_for_a_coarser_grid_and_then_are_refused_by_name() {
        let of = |numbers: usize| {
            let feature = |place: usize| format!(r#"{{"name":"n{place}","kind":"number","min":0,"max":1}}"#);
            let range = |place: usize| format!(r#""n{place}":">= 0.0123 and < 0.987""#);
            let list = |one: &dyn Fn(usize) -> String| (0..numbers).map(one).collect::<Vec<_>>().join(",");
            let forbid = format!(r#"[{{"if":{{{}}},"action":[0,1]}}]"#, list(&range));
            let features = format!("[{}]", list(&feature));
            let texts = Texts { features: Some(&features), bad_if: None, forbid: Some(&forbid) };
            Declared::read(&texts, 3, 1).map(|declared| declared.expect("there are features").encoder.bits())
        };
        assert_eq!(of(2).unwrap(), 16);
        assert!((4..32).contains(&of(4).unwrap()));
        let error = of(8).unwrap_err().to_string();
        assert!(error.starts_with("the rule {\"if\":{\"n0\"") && error.contains("4096 patterns"), "{error}");
    }

    #[test]
    fn rules_are_refused_over_places_that_lack_a_threshold_of_theirs() {
        let one = |rule: &str| format!("[{rule}]");
        let forbid = one(r#"{"if":{"temp":">= 28.3"},"action":1}"#);
        // Cut at whole degrees for a rule of before: 28.5 shows the level of 28, which is not forbidden.
        let before = declared("[]", &one(r#"{"if":{"temp":">= 30"},"action":1}"#)).unwrap();
        let degrees: Vec<Decimal> = (1..=40).map(Decimal::from_int).collect();
        let cut = |more: &str| {
            let mut places = degrees.clone();
            places.extend(more.split_whitespace().map(|text| Decimal::parse(text).unwrap()));
            places.sort_unstable();
            let code = |column: &Column| match column.code {
                Code::Level(_) => (column.feature.clone(), Code::Level(places.clone())),
                _ => (column.feature.clone(), column.code.clone()),
            };
            Encoder::new(before.encoder.columns().iter().map(code).collect()).unwrap()
        };
        let refused = |of: &Declared, places: &str| of.coded(cut(places), 3).unwrap_err().to_string();
        let now = declared("[]", &forbid).unwrap();
        assert!(before.coded(cut(""), 3).is_ok());
        let error = refused(&now, "28.4");
        assert!(
            error.contains("needs the threshold 28.3 of \"temp\"") && error.contains(">= 28.3"),
            "{error}"
        );
        let fits = now.coded(cut("28.3"), 3).unwrap();
        for (temp, wanted) in [("28", false), ("28.299", false), ("28.3", true), ("28.5", true), ("40", true)]
        {
            let row = format!("{{\"temp\":{temp},\"mode\":\"on\",\"door\":0}}");
            let seen = fits.encoder.encode_json(&row).unwrap();
            assert_eq!(Forbidden::forbids(&fits.forbidden, seen, 1), wanted, "{temp}");
        }
        // The same for what is BAD, with an action or without; both ends of a range count, ends beyond the bounds do not.
        let warm = declared(&one(r#"{"if":{"temp":"> 30.25"}}"#), "[]").unwrap();
        assert!(refused(&warm, "30.25").contains("30.250000000000000001"));
        assert!(warm.coded(cut("30.250000000000000001"), 3).is_ok());
        let range = declared(&one(r#"{"if":{"temp":">= 7 and < 8.5"},"action":2}"#), "[]").unwrap();
        assert!(refused(&range, "").contains("8.5") && range.coded(cut("8.5"), 3).is_ok());
        let beyond = declared("[]", &one(r#"{"if":{"temp":">= 0 and < 40.5"},"action":2}"#)).unwrap();
        assert!(beyond.coded(cut(""), 3).is_ok());
        // A number that is not shown at all says nothing of a rule.
        let unread = now.encoder.columns().iter().map(|column| column.feature.clone()).collect();
        assert!(now.coded(Encoder::unread(unread).unwrap(), 3).is_err());
    }

    #[test]
    fn bits_say_whether_a_step_was_bad() {
        let bad = r#"[{"if":{"temp":"> 30.25","mode":["slow  spin"]}},{"if":{"door":1},"action":2}]"#;
        let all = declared(bad, "[]").unwrap();
        for (temp, mode, door, want) in [
            ("30.25", "slow  spin", 1, false),
            ("30.250001", "slow  spin", 0, true),
            ("40", "slow  spin", 0, true),
            ("40", "on", 1, false),
            ("0", "slow  spin", 0, false),
        ] {
            let row = format!("{{\"temp\":{temp},\"mode\":{mode:?},\"door\":{door}}}");
            let (seen, values) =
                (all.encoder.encode_json(&row).unwrap(), all.encoder.values_json(&row).unwrap());
            assert_eq!((all.is_bad_after(&seen), all.is_bad(&values, 0, &values)), (want, want), "{row}");
        }
        // A rule with an action forbids it, and says nothing about what is seen after a step.
        assert!(!all.forbidden.is_empty() && all.forbidden.iter().all(|pair| pair.action == 2));
    }
}
