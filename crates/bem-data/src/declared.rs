//! What a world of one's own declares about itself: named features, what is BAD, and what must never be done.
//!
//! `"bad_if"` lists rules over features. One without an action is about what is seen after a step; one with actions is about
//! what was seen before it, and then these actions are not only BAD but forbidden, like those of `"forbid"`. Forbidden pairs
//! of observation and action are listed in full, so that a machine can prove that it never takes one. What was declared has
//! one spelling ([`Declared::to_json`]) that is kept with a served world. Must not know games, files or who is served.
//! Clauses: GLE-9, VM-17, SCC-5, LOG-5; decision D-226.

use crate::feature::Value;
use crate::{DataError, Encoder, Feature, FeatureKind, NumberCode, Rule, grid};
use bem_base::environment::{Bits, Forbidden};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// Forbidden pairs of one world: as many as a guard may hold.
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
    /// something. The grid is the finest of those allowed at which the forbidden pairs can be listed. Decisions D-52, D-241.
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
            let encoder = Encoder::for_world(features.to_vec(), NumberCode::Binary, *levels, &rules)?;
            Declared::new(encoder, bad.to_vec(), forbid.to_vec(), actions)
        };
        let (coarsest, finer) = grids.split_last().expect("there is a grid");
        finer.iter().find_map(|levels| cut(levels).ok()).map_or_else(|| cut(coarsest), Ok)
    }

    /// Rules over what an encoder shows, whose thresholds must include the rules': an error where they forbid too much.
    pub fn new(
        encoder: Encoder,
        bad: Vec<Rule>,
        forbid: Vec<Rule>,
        actions: u16,
    ) -> Result<Declared, DataError> {
        let mut declared = Declared { encoder, forbidden: Vec::new(), bad, forbid };
        let mut pairs = BTreeSet::new();
        for rule in declared.forbidding() {
            for observation in rule.observations(&declared.encoder, FORBIDDEN_MAX)? {
                let of = (0..actions).filter(|action| rule.concerns(*action));
                pairs.extend(of.map(|action| Forbidden { observation, action }));
            }
        }
        declared.forbidden = checked(pairs, actions)?;
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
            pairs.extend((0..actions).filter(forbids).map(|action| Forbidden { observation, action }));
        }
        declared.forbidden = checked(pairs, actions)?;
        Ok(Some((declared, rows)))
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

/// The pairs in order, if they are few enough and leave an action for every observation.
fn checked(pairs: BTreeSet<Forbidden>, actions: u16) -> Result<Vec<Forbidden>, DataError> {
    if FORBIDDEN_MAX < pairs.len() {
        return Err(DataError::new(format!(
            "{} pairs of observation and action are forbidden; at most {FORBIDDEN_MAX} are allowed",
            pairs.len()
        )));
    }
    let pairs: Vec<Forbidden> = pairs.into_iter().collect();
    let same = |pair: &[Forbidden]| pair.iter().all(|one| one.observation == pair[0].observation);
    let all = usize::from(actions);
    if pairs.windows(all).any(same) {
        return Err(DataError::new("every action is forbidden for some observation: one must be left"));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Every level is shown by six observations, and two actions are forbidden in each.
        assert_eq!(levels(r#"[{"if":{"temp":">= 0"},"action":[0,1]}]"#, 1), 8);
        let many = r#"[{"name":"a","kind":"number","min":0,"max":1},{"name":"b","kind":"number","min":0,"max":1},
            {"name":"c","kind":"number","min":0,"max":1}]"#;
        let width = |forbid: Option<&str>, horizon: u32| {
            let texts = Texts { features: Some(many), bad_if: None, forbid };
            Declared::read(&texts, 3, horizon).unwrap().unwrap().encoder.bits()
        };
        assert_eq!([width(None, 1), width(None, 2)], [24, 18]);
        // An eighth of 256 levels of each of three numbers is far more than can be listed; of 32 levels it is not.
        let corner = r#"[{"if":{"a":">= 0.5","b":">= 0.5","c":">= 0.75"},"action":0}]"#;
        assert_eq!(width(Some(corner), 1), 15);
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
