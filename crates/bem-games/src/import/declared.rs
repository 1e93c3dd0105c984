//! What a world of one's own declares about itself: named features, what is BAD, and what must never be done.
//!
//! `"bad_if"` lists rules over features. One without an action is about what is seen after a step; one with actions is about
//! what was seen before it, and then these actions are not only BAD but forbidden, like those of `"forbid"`. Forbidden pairs
//! of observation and action are listed in full, so that a machine can prove that it never takes one.
//! Clauses: GLE-9, VM-17, SCC-5.

use bem_base::environment::Forbidden;
use bem_data::feature::Value;
use bem_data::{DataError, Encoder, Feature, NumberCode, Rule};
use std::collections::BTreeSet;

/// Forbidden pairs of one world: as many as a guard may hold.
pub const FORBIDDEN_MAX: usize = 4_096;

/// The texts of the declarations, as they stand in a file or a line.
pub(super) struct Texts<'t> {
    pub features: Option<&'t str>,
    pub bad_if: Option<&'t str>,
    pub forbid: Option<&'t str>,
}

/// What was declared.
#[derive(Clone, Debug)]
pub(super) struct Declared {
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
    /// Reads the declarations of a world of which only the bounds are known; numbers become binary fields, which is the
    /// code that planners do better with (`docs/decisions.md`).
    pub fn read(texts: &Texts<'_>, actions: u16) -> Result<Option<Declared>, DataError> {
        let Some((features, bad, forbid)) = parts(texts, actions)? else { return Ok(None) };
        let rules: Vec<Rule> = bad.iter().chain(&forbid).cloned().collect();
        let encoder = Encoder::for_world_with(features, NumberCode::Binary, &rules)?;
        let mut declared = Declared { encoder, forbidden: Vec::new(), bad, forbid };
        let mut pairs = BTreeSet::new();
        for rule in declared.forbidding() {
            for observation in rule.observations(&declared.encoder, FORBIDDEN_MAX)? {
                let of = (0..actions).filter(|action| rule.concerns(*action));
                pairs.extend(of.map(|action| Forbidden { observation, action }));
            }
        }
        declared.forbidden = checked(pairs, actions)?;
        Ok(Some(declared))
    }

    /// Reads the declarations of a world whose observations are all known: the objects of its states.
    pub fn of_states(
        texts: &Texts<'_>,
        actions: u16,
        states: &[&str],
    ) -> Result<Option<OfStates>, DataError> {
        let Some((features, bad, forbid)) = parts(texts, actions)? else { return Ok(None) };
        let rules: Vec<Rule> = bad.iter().chain(&forbid).cloned().collect();
        let plain = Encoder::for_world(features.clone(), NumberCode::Binary)?;
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
}

/// What was declared, and the named values of every state.
pub(super) type OfStates = (Declared, Vec<Vec<Value>>);

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
