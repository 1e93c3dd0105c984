//! Measurements as lines of a file: one JSON object for every rung, or what `bem solve --json` prints.

use crate::files;
use anyhow::{Result, anyhow};
use bem_games::catalog;
use bem_games::compose::TaskTree;
use bem_games::game::Settings;
use bem_teacher::order::{GROUP_MAX, median};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// What `bem ladder --measure --save` wrote when this build was made.
const SHIPPED: &str = include_str!("measured.jsonl");

/// Steps that the runs of one rung took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Steps that a run could have taken.
    pub budget: u64,
    /// Steps to a score of 0.99 of every run; none if the budget ended before. At least one run.
    pub steps: Vec<Option<u64>>,
}

impl Measurement {
    /// The steps, where a run without counts as one that took the whole budget.
    pub fn censored(&self) -> Vec<u64> {
        self.steps.iter().map(|steps| steps.unwrap_or(self.budget).min(self.budget)).collect()
    }

    /// The median of these.
    pub fn median_censored(&self) -> u64 {
        median(&self.censored())
    }

    /// The median; none if half of the runs never got there.
    pub fn median(&self) -> Option<u64> {
        let never = u64::MAX;
        let steps: Vec<u64> = self.steps.iter().map(|steps| steps.unwrap_or(never)).collect();
        Some(median(&steps)).filter(|steps| *steps != never)
    }

    /// One line of a file.
    pub fn to_line(&self, tree: &TaskTree) -> String {
        json!({
            "task": tree.name(),
            "params": tree.settings(),
            "budget": self.budget,
            "steps_to_99": self.steps,
        })
        .to_string()
    }
}

/// Results of solved and unsolved tasks.
pub struct Measurements {
    rows: Vec<Value>,
}

impl Measurements {
    /// Reads a file; a line out of form is an error that names it.
    pub fn read(path: &Path) -> Result<Measurements> {
        let name = path.display().to_string();
        let text = files::read_text(path)?;
        Measurements::parse(&text, &name)
    }

    /// The measurement that came with this build.
    pub fn shipped() -> Result<Measurements> {
        Measurements::parse(SHIPPED, "the measurement of this build")
    }

    fn parse(text: &str, name: &str) -> Result<Measurements> {
        let mut rows = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let refused = || {
                let forms = "`bem ladder --measure --save` or `bem solve --json`";
                anyhow!("{name}: line {} is nothing that {forms} writes", index + 1)
            };
            let row: Value = serde_json::from_str(line).map_err(|_| refused())?;
            if row["task"].as_str().is_none() || !row["params"].is_object() || steps_of(&row).is_none() {
                return Err(refused());
            }
            rows.push(row);
        }
        Ok(Measurements { rows })
    }

    /// All runs of this task together; none if there are none.
    pub fn of(&self, tree: &TaskTree) -> Option<Measurement> {
        let asked = complete(tree.name(), tree.settings());
        let fits = |row: &&Value| {
            let given = || params_of(row);
            row["task"] == tree.name()
                && match &asked {
                    Some(asked) => complete(tree.name(), &given()).as_ref() == Some(asked),
                    None => given() == *tree.settings(),
                }
        };
        let rows: Vec<&Value> = self.rows.iter().filter(fits).collect();
        let mut steps: Vec<Option<u64>> = rows.iter().filter_map(|row| steps_of(row)).flatten().collect();
        steps.truncate(GROUP_MAX);
        // A result of `bem solve` does not say its budget, but no run took more.
        let longest = steps.iter().flatten().copied().max().unwrap_or(0);
        let budget = rows.iter().filter_map(|row| row["budget"].as_u64()).max().unwrap_or(longest + 1);
        (!steps.is_empty()).then_some(Measurement { budget, steps })
    }
}

/// The settings of one line as texts.
fn params_of(row: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), String::from);
    let params = row["params"].as_object().into_iter().flatten();
    params.map(|(name, value)| (name.clone(), text(value))).collect()
}

/// All settings of a family's task, those at their defaults too; none if no family has this name and these settings.
fn complete(name: &str, texts: &BTreeMap<String, String>) -> Option<Settings> {
    catalog::settings(catalog::family(name).ok()?, texts).ok()
}

/// The steps of one line: a number, nothing, or a list of these.
fn steps_of(row: &Value) -> Option<Vec<Option<u64>>> {
    let one = |value: &Value| match value {
        Value::Null => Some(None),
        value => value.as_u64().map(Some),
    };
    match &row["steps_to_99"] {
        Value::Array(values) => values.iter().map(one).collect(),
        value => one(value).map(|steps| vec![steps]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &str, text: &str) -> Option<Measurement> {
        let measurements = Measurements::parse(lines, "test").expect("well formed");
        measurements.of(&TaskTree::parse(text).expect("well formed"))
    }

    #[test]
    fn the_median_of_the_right_rows_counts() {
        let row = |n: u32, steps: &str| {
            format!(r#"{{"task":"parity","params":{{"n":{n}}},"steps_to_99":{steps}}}"#)
        };
        let rows = [row(4, "90"), row(4, "70"), row(4, "null"), row(8, "200")].join("\n");
        let median = |text: &str| of(&rows, text).and_then(|measurement| measurement.median());
        assert_eq!(median("parity{n=4}"), Some(90));
        assert_eq!(median("parity{n=8}"), Some(200));
        assert_eq!(median("parity{n=9}"), None);
        assert_eq!(of(&rows, "parity{n=4}").expect("measured").censored(), [90, 70, 91]);
    }

    #[test]
    fn a_row_counts_for_the_same_complete_settings_only() {
        let row = |params: &str, steps: u32| {
            format!(r#"{{"task":"sorting","params":{{"key_bits":"1",{params}}},"steps_to_99":{steps}}}"#)
        };
        let noisy = row(r#""keys":"3","noise":"30""#, 169);
        let rows = [noisy.clone(), row(r#""keys":3"#, 85), row(r#""keys":"3","noise":"0""#, 87)].join("\n");
        let steps = |text: &str| of(&rows, text).map(|measurement| measurement.steps);
        assert_eq!(steps("sorting{key_bits=1,keys=3}"), Some(vec![Some(85), Some(87)]));
        assert_eq!(steps("sorting{key_bits=1,keys=3,noise=0}"), Some(vec![Some(85), Some(87)]));
        assert_eq!(steps("sorting{key_bits=1,keys=3,noise=30}"), Some(vec![Some(169)]));
        assert_eq!(of(&noisy, "sorting{key_bits=1,keys=3}"), None);
    }

    #[test]
    fn a_saved_line_is_read_back() {
        let tree = TaskTree::parse("add{bits=3,form=word}").expect("well formed");
        let measurement = Measurement { budget: 500, steps: vec![Some(3), None, Some(400)] };
        let line = measurement.to_line(&tree);
        assert_eq!(of(&line, "add{bits=3,form=word}"), Some(measurement));
        assert_eq!(of(&line, "add{bits=3,form=serial}"), None);
    }

    #[test]
    fn lines_out_of_form_are_named() {
        let good = r#"{"task":"parity","params":{},"steps_to_99":[1,null]}"#;
        for bad in ["oops", "{}", r#"{"task":"parity","params":{},"steps_to_99":"x"}"#, r#"{"task":1}"#] {
            let error = Measurements::parse(&format!("{good}\n{bad}\n"), "file").err().expect("refused");
            assert!(error.to_string().starts_with("file: line 2 is nothing that"), "{error}");
        }
    }
}
