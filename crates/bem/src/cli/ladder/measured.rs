//! Measurements from a file: what `bem solve --json` prints, one object per line.

use anyhow::{Context as _, Result, anyhow};
use bem_games::compose::TaskTree;
use serde_json::Value;
use std::path::Path;

/// Results of solved and unsolved tasks.
pub struct Measurements {
    rows: Vec<Value>,
}

impl Measurements {
    /// Reads a file; a line out of form is an error that names it.
    pub fn read(path: &Path) -> Result<Measurements> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut rows = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let named =
                || anyhow!("{}: line {} is no result of `bem solve --json`", path.display(), index + 1);
            let row: Value = serde_json::from_str(line).map_err(|_| named())?;
            if row["task"].as_str().is_none() || !row["params"].is_object() {
                return Err(named());
            }
            rows.push(row);
        }
        Ok(Measurements { rows })
    }

    /// The median over all results for this task of the steps to a score of 0.99; none without a result, or when
    /// half of them never got there.
    pub fn median_steps(&self, tree: &TaskTree) -> Option<u64> {
        let fits = |row: &&Value| {
            let param = |name: &str| match &row["params"][name] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            row["task"] == tree.name() && tree.settings().iter().all(|(name, value)| param(name) == *value)
        };
        let never = u64::MAX;
        let mut steps: Vec<u64> =
            self.rows.iter().filter(fits).map(|row| row["steps_to_99"].as_u64().unwrap_or(never)).collect();
        steps.sort_unstable();
        steps.get(steps.len() / 2).copied().filter(|steps| *steps != never)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_right_rows_counts() {
        let row = |n: u32, steps: &str| {
            serde_json::from_str(&format!(
                r#"{{"task":"parity","params":{{"n":{n}}},"steps_to_99":{steps}}}"#
            ))
        };
        let rows =
            [row(4, "90"), row(4, "70"), row(4, "null"), row(8, "200")].map(|row| row.expect("well formed"));
        let measurements = Measurements { rows: rows.to_vec() };
        let median = |text: &str| measurements.median_steps(&TaskTree::parse(text).expect("well formed"));
        assert_eq!(median("parity{n=4}"), Some(90));
        assert_eq!(median("parity{n=8}"), Some(200));
        assert_eq!(median("parity{n=9}"), None);
    }
}
