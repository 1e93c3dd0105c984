//! What every run of a table must show of the machine behind it: all actions are its own, every change of what acts has a
//! patch, and which conditions stayed undecided.
//!
//! The counts are the learner's; nothing here looks into a machine. Clauses: VM-3, SCC-2, SCC-3.

use bem_engine::learner::Tally;
use bem_engine::solve::Solution;
use serde_json::{Map, Value, json};

/// Sums over the runs of a row.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    steps: u64,
    steps_by_machine: u64,
    changes: u64,
    changes_patched: u64,
    /// Patches that were decided about.
    decided: u64,
    undecided: Vec<Undecided>,
}

/// A patch whose condition was neither shown nor refuted within its budget; it is not in force.
#[derive(Clone, Debug)]
struct Undecided {
    task: String,
    seed: u64,
    steps: u64,
    change: String,
    reason: String,
}

impl Counters {
    /// Adds a run of a task.
    pub fn take(&mut self, task: &str, seed: u64, solution: &Solution) {
        self.count(&solution.learned.tally);
        let decided = || solution.decisions.iter().filter(|decision| !decision.rolled_back);
        self.decided += decided().count() as u64;
        let undecided = decided().filter(|decision| decision.is_undecided()).map(|decision| Undecided {
            task: task.to_string(),
            seed,
            steps: decision.steps,
            change: decision.words.clone(),
            reason: decision.reason.clone(),
        });
        self.undecided.extend(undecided);
    }

    fn count(&mut self, tally: &Tally) {
        self.steps += tally.steps;
        self.steps_by_machine += tally.steps_by_machine;
        self.changes += u64::from(tally.acting_changes);
        self.changes_patched += u64::from(tally.acting_changes_patched);
    }

    /// Adds the sums of another row.
    pub fn add(&mut self, other: &Counters) {
        self.steps += other.steps;
        self.steps_by_machine += other.steps_by_machine;
        self.changes += other.changes;
        self.changes_patched += other.changes_patched;
        self.decided += other.decided;
        self.undecided.extend_from_slice(&other.undecided);
    }

    /// Whether every step was the machine's own and every change of what acts has its patch.
    pub fn is_one_machine(&self) -> bool {
        self.steps == self.steps_by_machine && self.changes == self.changes_patched
    }

    /// Adds the counts to an object, under the names that `bem solve --json` has for them.
    pub fn add_to(&self, object: &mut Map<String, Value>) {
        let counts = [
            ("steps", self.steps),
            ("steps_by_machine", self.steps_by_machine),
            ("acting_changes", self.changes),
            ("acting_changes_patched", self.changes_patched),
            ("patches_decided", self.decided),
        ];
        object.extend(counts.map(|(name, count)| (name.to_string(), json!(count))));
        let undecided = self.undecided.iter().map(|one| {
            json!({
                "task": one.task, "seed": one.seed, "at_step": one.steps, "change": one.change, "reason": one.reason,
            })
        });
        object.insert("patches_undecided".to_string(), undecided.collect());
    }

    /// The counts in words, and a line for every patch that stayed undecided.
    pub fn to_lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("Steps that the machine chose: {} of {}.", self.steps_by_machine, self.steps),
            format!("Changes of what acts with a patch: {} of {}.", self.changes_patched, self.changes),
            format!(
                "Patches whose condition stayed undecided: {} of {}.",
                self.undecided.len(),
                self.decided
            ),
        ];
        lines.extend(self.undecided.iter().map(|one| {
            format!("  {}, seed {}, step {}: {}: {}", one.task, one.seed, one.steps, one.change, one.reason)
        }));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_somebody_else_or_a_change_without_patch_shows() {
        let tally = |steps_by_machine, acting_changes_patched| Tally {
            steps: 10,
            steps_by_machine,
            acting_changes: 3,
            acting_changes_patched,
            ..Tally::default()
        };
        for (machine, patched, is_one) in [(10, 3, true), (9, 3, false), (10, 2, false)] {
            let mut row = Counters::default();
            row.count(&tally(10, 3));
            let mut all = Counters::default();
            all.count(&tally(machine, patched));
            all.add(&row);
            assert_eq!(all.is_one_machine(), is_one, "{machine} {patched}");
        }
    }
}
