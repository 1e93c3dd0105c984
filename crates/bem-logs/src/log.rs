//! A log: rows of named features with what was done and what it brought, or with the label that is right.
//!
//! Clauses: GLE-9.

use bem_base::fixed::Fixed;
use bem_data::feature::{CHOICES_MAX, FEATURES_MAX, Value};
use bem_data::{DataError, Decimal, Feature, FeatureKind, Table};
use std::collections::BTreeSet;

/// Actions of a log.
pub const ACTIONS_MAX: usize = 64;
/// The smallest chance with which a logged action may have been taken.
pub const PROPENSITY_MIN: Decimal = Decimal::MICRO;

/// Which column is what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// The columns that a policy may look at; behind a colon may stand what a column is: choice, number or bit.
    pub features: Vec<String>,
    /// What was done.
    pub action: Option<String>,
    /// What it brought.
    pub reward: Option<String>,
    /// The chance with which it was done.
    pub propensity: Option<String>,
    /// Rows with the same value here, one after the other, are one episode.
    pub episode: Option<String>,
    /// What would have been right.
    pub label: Option<String>,
}

/// What is known of one row besides its features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was done, or what would have been right.
    pub action: u16,
    /// What it brought; one where the action is a label.
    pub reward: Fixed,
    /// The chance with which it was done, where the log says it.
    pub propensity: Option<Fixed>,
    /// Which episode it belongs to.
    pub episode: u32,
}

/// A log. Invariant: as many outcomes as rows, and every row has a value for every feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The features.
    pub features: Vec<Feature>,
    /// The values, row by row.
    pub rows: Vec<Vec<Value>>,
    /// What the actions are called.
    pub actions: Vec<String>,
    /// What was done and what it brought.
    pub outcomes: Vec<Outcome>,
    /// The action is a label: every other action would have brought nothing.
    pub is_labelled: bool,
    /// Rows belong to episodes.
    pub has_episodes: bool,
}

impl Log {
    /// Reads the columns of a table. Features and actions come from the table where they are not given.
    pub fn new(
        table: &Table,
        roles: &Roles,
        known: Option<(&[Feature], &[String])>,
    ) -> Result<Log, DataError> {
        let place = |name: &Option<String>| name.as_deref().map(|name| table.column(name)).transpose();
        let (action, reward, label) = (place(&roles.action)?, place(&roles.reward)?, place(&roles.label)?);
        let (propensity, episode) = (place(&roles.propensity)?, place(&roles.episode)?);
        let (action, is_labelled) = match (action, reward, label) {
            (None, None, Some(label)) => (label, true),
            (Some(action), Some(_), None) => (action, false),
            _ => return Err(DataError::new("a log needs --action and --reward, or --label alone")),
        };
        if is_labelled && (propensity.is_some() || episode.is_some()) {
            return Err(DataError::new("--propensity and --episode have no effect with --label"));
        }
        if table.rows.is_empty() {
            return Err(DataError::new("the log has no rows"));
        }
        let features = match known {
            Some((features, _)) => features.to_vec(),
            None => features(table, &roles.features)?,
        };
        let actions = match known {
            Some((_, actions)) => actions.to_vec(),
            None => words(table, action, ACTIONS_MAX)?,
        };
        let mut log = Log {
            rows: Log::values(table, &features)?,
            features,
            actions,
            outcomes: Vec::with_capacity(table.rows.len()),
            is_labelled,
            has_episodes: episode.is_some(),
        };
        let mut last_episode: Option<(&str, u32)> = None;
        for (number, cells) in table.rows.iter().enumerate() {
            let wrong = |error: DataError| DataError::new(format!("row {}: {error}", number + 1));
            let word = cells[action].trim();
            let chosen = log.actions.iter().position(|known| known == word).ok_or_else(|| {
                wrong(DataError::new(format!(
                    "action {word:?} is unknown; known are {}",
                    log.actions.join(", ")
                )))
            })?;
            let decimal = |column: usize| {
                let name = &table.names[column];
                Decimal::parse(&cells[column])
                    .map_err(|error| wrong(DataError::new(format!("{name:?}: {error}"))))
            };
            let reward = match reward {
                Some(column) => reward_of(decimal(column)?).ok_or_else(|| {
                    wrong(DataError::new(format!(
                        "the reward {:?} is out of range: -10^6 to 10^6",
                        cells[column]
                    )))
                })?,
                None => Fixed::ONE,
            };
            let propensity = match propensity {
                Some(column) => Some(propensity_of(decimal(column)?).ok_or_else(|| {
                    let text = &cells[column];
                    wrong(DataError::new(format!("the propensity {text:?} is out of range: 0.000001 to 1")))
                })?),
                None => None,
            };
            let episode = match (episode, last_episode) {
                (None, _) => number as u32,
                (Some(column), Some((name, index))) if name == cells[column] => index,
                (Some(_), Some((_, index))) => index + 1,
                (Some(_), None) => 0,
            };
            if let Some(column) = place(&roles.episode)? {
                last_episode = Some((cells[column].as_str(), episode));
            }
            log.outcomes.push(Outcome { action: chosen as u16, reward, propensity, episode });
        }
        Ok(log)
    }

    /// The values of these features in every row of a table, which needs no other column.
    pub fn values(table: &Table, features: &[Feature]) -> Result<Vec<Vec<Value>>, DataError> {
        let columns: Vec<usize> =
            features.iter().map(|feature| table.column(&feature.name)).collect::<Result<_, _>>()?;
        let row = |(number, cells): (usize, &Vec<String>)| {
            let values =
                features.iter().zip(&columns).map(|(feature, column)| feature.value(&cells[*column]));
            let values: Result<Vec<Value>, DataError> = values.collect();
            values.map_err(|error| DataError::new(format!("row {}: {error}", number + 1)))
        };
        table.rows.iter().enumerate().map(row).collect()
    }

    /// How often each action was taken.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.actions.len()];
        self.outcomes.iter().for_each(|outcome| counts[usize::from(outcome.action)] += 1);
        counts
    }

    /// The smallest and the largest reward; labels pay zero or one.
    pub fn reward_range(&self) -> (Fixed, Fixed) {
        if self.is_labelled {
            return (Fixed::ZERO, Fixed::ONE);
        }
        let rewards = || self.outcomes.iter().map(|outcome| outcome.reward);
        (rewards().min().unwrap_or_default(), rewards().max().unwrap_or_default())
    }
}

fn reward_of(value: Decimal) -> Option<Fixed> {
    let largest = Decimal::from_int(1_000_000);
    (Decimal::from_int(-1_000_000) <= value && value <= largest).then(|| value.to_fixed()).flatten()
}

fn propensity_of(value: Decimal) -> Option<Fixed> {
    (PROPENSITY_MIN <= value && value <= Decimal::ONE).then(|| value.to_fixed()).flatten()
}

/// The words of a column in order: by number where all are whole numbers.
fn words(table: &Table, column: usize, most: usize) -> Result<Vec<String>, DataError> {
    let different: BTreeSet<&str> = table.rows.iter().map(|cells| cells[column].trim()).collect();
    let name = &table.names[column];
    if different.contains("") {
        return Err(DataError::new(format!("column {name:?} has an empty cell")));
    }
    if most < different.len() {
        return Err(DataError::new(format!(
            "column {name:?} has {} different values; at most {most} are allowed",
            different.len()
        )));
    }
    let mut words: Vec<String> = different.into_iter().map(str::to_string).collect();
    if words.iter().all(|word| word.parse::<i64>().is_ok()) {
        words.sort_by_key(|word| word.parse::<i64>().unwrap_or(0));
    }
    Ok(words)
}

/// The features of these columns, their kinds as they are given or read off the cells.
fn features(table: &Table, names: &[String]) -> Result<Vec<Feature>, DataError> {
    if !(1..=FEATURES_MAX).contains(&names.len()) {
        return Err(DataError::new(format!(
            "--features names {} columns; allowed is 1 to {FEATURES_MAX}",
            names.len()
        )));
    }
    let declared = names.iter().map(|text| declared(table, text)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    for (name, _) in &declared {
        if !seen.insert(*name) {
            return Err(DataError::new(format!("--features names {name:?} twice")));
        }
    }
    declared.into_iter().map(|(name, kind)| feature(table, name, kind)).collect()
}

/// What somebody says that a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GivenKind {
    Choice,
    Number,
    Bit,
}

/// The name of a column, and its kind where it is given behind a colon. A column that has the whole as its name is that one.
fn declared<'t>(table: &Table, text: &'t str) -> Result<(&'t str, Option<GivenKind>), DataError> {
    let Some((name, kind)) = text.rsplit_once(':').filter(|_| table.column(text).is_err()) else {
        return Ok((text, None));
    };
    match kind.trim() {
        "choice" => Ok((name.trim(), Some(GivenKind::Choice))),
        "number" => Ok((name.trim(), Some(GivenKind::Number))),
        "bit" => Ok((name.trim(), Some(GivenKind::Bit))),
        _ => Err(DataError::new(format!(
            "--features {text:?}: {kind:?} is no kind; there are choice, number and bit"
        ))),
    }
}

/// A feature; where its kind is not given, it is read off the cells.
fn feature(table: &Table, name: &str, kind: Option<GivenKind>) -> Result<Feature, DataError> {
    let column = table.column(name)?;
    let texts = || table.rows.iter().map(|cells| cells[column].trim());
    if let Some(row) = texts().position(str::is_empty) {
        return Err(DataError::new(format!(
            "row {}: feature {name:?} is empty; missing values need a value",
            row + 1
        )));
    }
    let is_bit = texts().all(|text| matches!(text, "0" | "1" | "true" | "false"));
    let is_number = || texts().all(|text| Decimal::parse(text).is_ok());
    let kind = match kind {
        Some(GivenKind::Bit) => FeatureKind::Bit,
        None if is_bit => FeatureKind::Bit,
        // New rows may lie outside of what was logged.
        Some(GivenKind::Number) => FeatureKind::Number { min: Decimal::MIN, max: Decimal::MAX },
        None if is_number() => FeatureKind::Number { min: Decimal::MIN, max: Decimal::MAX },
        _ => FeatureKind::Choice(words(table, column, CHOICES_MAX)?),
    };
    Feature::list(&format!("[{}]", Feature { name: name.to_string(), kind }.to_json()))?
        .pop()
        .ok_or_else(|| DataError::new("a feature is lost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(words: [&str; 5]) -> Roles {
        let some = |word: &str| (!word.is_empty()).then(|| word.to_string());
        Roles {
            features: vec!["x".to_string(), "c".to_string()],
            action: some(words[0]),
            reward: some(words[1]),
            propensity: some(words[2]),
            episode: some(words[3]),
            label: some(words[4]),
        }
    }

    #[test]
    fn columns_become_features_actions_and_outcomes() {
        let table =
            Table::from_csv("x,c,a,r,p,e\n1.5,red,buy,0.25,0.5,u\n-2,blue,wait,0,0.5,u\n3,red,buy,1,1,v\n")
                .unwrap();
        let log = Log::new(&table, &roles(["a", "r", "p", "e", ""]), None).unwrap();
        assert_eq!(log.actions, ["buy", "wait"]);
        assert_eq!(log.features[1].kind, FeatureKind::Choice(vec!["blue".to_string(), "red".to_string()]));
        assert_eq!(log.outcomes.iter().map(|outcome| outcome.episode).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(log.outcomes[0].reward, Fixed::from_ratio(1, 4));
        assert_eq!(log.counts(), [2, 1]);
        let labelled = Log::new(&table, &roles(["", "", "", "", "a"]), None).unwrap();
        assert!(labelled.is_labelled && labelled.reward_range() == (Fixed::ZERO, Fixed::ONE));
    }

    #[test]
    fn the_kind_of_a_feature_may_be_given_behind_its_name() {
        let table = Table::from_csv("x,c,a:bit,l\n0,17,0,u\n1,4,1,v\n2,17,1,v\n").unwrap();
        let read = |features: &[&str]| {
            let features = features.iter().map(ToString::to_string).collect();
            let roles = Roles { features, label: Some("l".to_string()), ..Roles::default() };
            Log::new(&table, &roles, None)
        };
        let kinds = |features: &[&str]| -> Vec<FeatureKind> {
            read(features).unwrap().features.into_iter().map(|feature| feature.kind).collect()
        };
        let number = FeatureKind::Number { min: Decimal::MIN, max: Decimal::MAX };
        let choice = FeatureKind::Choice(vec!["4".to_string(), "17".to_string()]);
        assert_eq!(kinds(&["x", "c", "a:bit"]), [number.clone(), number.clone(), FeatureKind::Bit]);
        assert_eq!(kinds(&["x:number", "c:choice", "a:bit:number"]), [number.clone(), choice, number]);
        let log = read(&["c:choice"]).unwrap();
        assert_eq!((log.features[0].name.as_str(), &log.rows[0][0]), ("c", &Value::Choice(1)));
        for (features, error) in [
            (&["x:bit"][..], "row 3: "),
            (&["c:word"], "\"word\" is no kind; there are choice, number and bit"),
            (&["c", "c:choice"], "--features names \"c\" twice"),
            (&["y:choice"], "y"),
        ] {
            let said = read(features).unwrap_err().to_string();
            assert!(said.contains(error), "{said}");
        }
    }

    #[test]
    fn wrong_logs_name_row_and_column() {
        let table = |text: &str| Table::from_csv(text).unwrap();
        let bad = table("x,c,a,r,p\n1,red,buy,1,0\n");
        let error = Log::new(&bad, &roles(["a", "r", "p", "", ""]), None).unwrap_err().to_string();
        assert_eq!(error, "row 1: the propensity \"0\" is out of range: 0.000001 to 1");
        let bad = table("x,c,a,r\n1,red,buy,much\n");
        let error = Log::new(&bad, &roles(["a", "r", "", "", ""]), None).unwrap_err().to_string();
        assert!(error.starts_with("row 1: \"r\": \"much\" is no decimal number"), "{error}");
        let error = Log::new(&bad, &roles(["a", "", "", "", ""]), None).unwrap_err().to_string();
        assert_eq!(error, "a log needs --action and --reward, or --label alone");
        let bad = table("x,c,a\n,red,buy\n");
        let error = Log::new(&bad, &roles(["", "", "", "", "a"]), None).unwrap_err().to_string();
        assert!(error.starts_with("row 1: feature \"x\" is empty"), "{error}");
    }
}
