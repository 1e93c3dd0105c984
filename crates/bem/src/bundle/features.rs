//! What the bits of a bundle's observations mean: named features and how their values become bits.
//!
//! Decimals are text, so that all numbers of a bundle are whole. A checker holds the part against the run's file, which the
//! history names, and its shape against the width of what is seen. Clauses: GLE-9.

use super::{Body, FORMAT_OF_FIGURES, FORMAT_WITH_FEATURES};
use anyhow::{Result, bail, ensure};
use bem_base::environment::Pattern;
use bem_data::{Code, Column, Decimal, Encoder, Feature, FeatureKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Thresholds of a feature at most.
const THRESHOLDS_MAX: usize = 255;

/// One feature. Their bits follow each other, the first feature's first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedFeature {
    /// What people call it.
    pub name: String,
    /// `number`, `choice` or `bit`.
    pub kind: String,
    /// The least and the largest number, as decimal text; empty elsewhere.
    pub range: Vec<String>,
    /// The words of a choice; empty elsewhere.
    pub of: Vec<String>,
    /// `steps`, `levels`, `index`, `words`, `bit` or `unread`.
    pub code: String,
    /// The thresholds of `steps` and `levels`, rising, as decimal text; empty elsewhere.
    pub thresholds: Vec<String>,
    /// The places of the words of `words`, rising; empty elsewhere.
    pub places: Vec<u16>,
}

/// The features of an encoder.
pub fn of(encoder: &Encoder) -> Vec<NamedFeature> {
    let texts = |numbers: &[Decimal]| numbers.iter().map(ToString::to_string).collect::<Vec<String>>();
    let one = |column: &Column| {
        let (kind, range, of) = match &column.feature.kind {
            FeatureKind::Number { min, max } => ("number", texts(&[*min, *max]), Vec::new()),
            FeatureKind::Choice(words) => ("choice", Vec::new(), words.clone()),
            FeatureKind::Bit => ("bit", Vec::new(), Vec::new()),
        };
        let (code, thresholds, places) = match &column.code {
            Code::Steps(thresholds) => ("steps", texts(thresholds), Vec::new()),
            Code::Level(thresholds) => ("levels", texts(thresholds), Vec::new()),
            Code::Index => ("index", Vec::new(), Vec::new()),
            Code::Words(places) => ("words", Vec::new(), places.clone()),
            Code::Bit => ("bit", Vec::new(), Vec::new()),
            Code::Unread => ("unread", Vec::new(), Vec::new()),
        };
        let (kind, code) = (kind.to_string(), code.to_string());
        NamedFeature { name: column.feature.name.clone(), kind, range, of, code, thresholds, places }
    };
    encoder.columns().iter().map(one).collect()
}

/// The encoder that a body's features make up, if it has some; refused where they have another form or do not fill the
/// bits that are seen.
pub fn check(body: &Body) -> Result<Option<Encoder>> {
    let Some(features) = &body.features else {
        ensure!(body.format != FORMAT_WITH_FEATURES, "the format {:?} has features", body.format);
        return Ok(None);
    };
    ensure!(body.format != FORMAT_OF_FIGURES, "the format {:?} has no features", body.format);
    let names: BTreeSet<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
    ensure!(!features.is_empty() && names.len() == features.len(), "features have names that differ");
    let encoder = Encoder::new(features.iter().map(part).collect::<Result<Vec<_>>>()?)?;
    ensure!(of(&encoder) == *features, "a feature is not in its one form");
    let (bits, seen) = (encoder.bits(), usize::from(body.policy.observation_bits));
    ensure!(bits == seen, "the features have {bits} bits, and {seen} are seen");
    Ok(Some(encoder))
}

fn part(feature: &NamedFeature) -> Result<(Feature, Code)> {
    let NamedFeature { name, kind, range, of, code, thresholds, places } = feature;
    let numbers = |texts: &[String]| -> Result<Vec<Decimal>> {
        Ok(texts.iter().map(|text| Decimal::parse(text)).collect::<Result<Vec<_>, _>>()?)
    };
    ensure!(!name.is_empty(), "a feature has no name");
    let kind = match (kind.as_str(), numbers(range)?.as_slice()) {
        ("number", [min, max]) if min < max => FeatureKind::Number { min: *min, max: *max },
        ("choice", []) => {
            let different: BTreeSet<&String> = of.iter().collect();
            ensure!(
                !of.is_empty() && different.len() == of.len(),
                "{name:?} has no words, or one of them twice"
            );
            FeatureKind::Choice(of.clone())
        }
        ("bit", []) => FeatureKind::Bit,
        (kind, _) => bail!("{name:?} is a feature of kind {kind:?} with another range"),
    };
    ensure!(thresholds.len() <= THRESHOLDS_MAX, "{name:?} has too many thresholds");
    let thresholds = numbers(thresholds)?;
    let code = match code.as_str() {
        "steps" => Code::Steps(thresholds),
        "levels" => Code::Level(thresholds),
        "index" => Code::Index,
        "words" => Code::Words(places.clone()),
        "bit" => Code::Bit,
        "unread" => Code::Unread,
        code => bail!("{name:?} has a code {code:?}"),
    };
    Ok((Feature { name: name.clone(), kind }, code))
}

/// What is seen in an observation of one letter a bit, in words.
pub fn in_words(encoder: &Encoder, observation: &str) -> String {
    Pattern::from_text(observation).map_or_else(String::new, |pattern| encoder.pattern_is(&pattern))
}
