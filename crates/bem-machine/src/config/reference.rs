//! What is told of a parameter, and where it is shown to matter.
//!
//! Must not know the runs: they are played in tests, here for the machine alone and in `bem-engine` for learners and
//! teachers. Clauses: MEM-3.

/// One parameter with its value, as it is shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The part of the table it stands in.
    pub section: &'static str,
    /// Its name in a file.
    pub name: &'static str,
    /// Its name in the specification.
    pub specification: &'static str,
    /// What it means.
    pub meaning: String,
    /// The values it may have, in words.
    pub allowed: String,
    /// Its default, as it stands in a file.
    pub default: String,
    /// Its value, as it stands in a file.
    pub value: String,
}

/// A small run, or a part of the machine, whose outcome a parameter changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// No run: the other value is refused before anything starts.
    Refused,
    /// The map of SHARED.
    Map,
    /// A machine with a full pool in a world of noise.
    Machine,
    /// The teacher of one family with reports of all kinds.
    Teacher,
    /// The scheduler with rewards of all kinds.
    Schedule,
    /// A search over a log that a small circuit explains.
    Search,
    /// The improvement score of a list of measurements.
    Score,
    /// A condition that only a search with conflicts proves.
    Condition,
    /// A learner in a world in which the best action depends on the steps that are left.
    Clock,
    /// A learner in a world of one step in which the best action changes.
    Change,
    /// A learner in this task of the catalog.
    Task {
        /// The task.
        task: &'static str,
        /// Steps at most.
        steps: u64,
    },
}

/// How a parameter is shown to matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The parameter.
    pub name: &'static str,
    /// Lines of the file without which it would not be asked for.
    pub given: &'static str,
    /// Another value than the default.
    pub other: &'static str,
    /// What it changes.
    pub reference: Reference,
}

impl Trial {
    /// The file in which the parameter has its default.
    pub fn file(&self) -> String {
        self.given.to_string()
    }

    /// The same file with the other value.
    pub fn changed_file(&self) -> String {
        format!("{}\n{} = {}\n", self.given, self.name, self.other)
    }
}
