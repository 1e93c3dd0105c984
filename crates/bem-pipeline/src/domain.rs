//! The domains: groups of families that one specialist learns, and the settings of each that nobody has learned before.
//!
//! Clauses: PIPE-1, GLE-1, GLE-2; decision D-133.

use crate::PipelineError;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_teacher::ladder;

/// A specialist's families, by name: the groups of the specification's list of base problems.
pub const DOMAINS: [(&str, &[&str]); 8] = [
    ("aggregation", &["parity", "parity_stream", "majority", "popcount"]),
    ("stack", &["dyck", "stack_machine"]),
    ("memory", &["key_value", "associative_recall"]),
    ("bandits", &["bandit", "contextual_bandit", "nonstationary_bandit"]),
    ("games", &["matrix_game", "signaling", "auction"]),
    ("safety", &["small_sat", "safety_grid"]),
    ("algorithms", &["compare", "add", "subtract", "sorting", "distance"]),
    ("sequences", &["next_token", "transducer", "copy", "reverse", "permute"]),
];

/// The families of a domain.
pub fn families_of(name: &str) -> Result<&'static [&'static str], PipelineError> {
    let known = || DOMAINS.map(|(name, _)| name).join(", ");
    let found = DOMAINS.iter().find(|(domain, _)| *domain == name);
    found
        .map(|(_, families)| *families)
        .ok_or_else(|| PipelineError::UnknownDomain { name: name.to_string(), known: known() })
}

/// The domain of a family; none for one that no specialist learns.
pub fn domain_of(family: &str) -> Option<&'static str> {
    DOMAINS.iter().find(|(_, families)| families.contains(&family)).map(|(domain, _)| *domain)
}

/// Settings of a family that were not learned, half as many as were: other sizes, no harder than what was solved, and the
/// solved ones with their fields in another order. Each comes with the solved one whose world it shows otherwise: of another size
/// that is the hardest. G of the domain at difficulties that its specialist did not see.
pub fn unseen(family: &str, solved: &[String]) -> Vec<(String, String)> {
    let wanted = solved.len().div_ceil(2);
    let Some(domain) = ladder::Domain::from_name(family) else { return Vec::new() };
    let ladder = ladder::Ladder::new(domain);
    let rungs = ladder.tried(ladder::STAGES_MAX.min(4 * ladder::BANDS));
    let difficulty =
        |task: &String| rungs.iter().find(|rung| rung.tree.to_string() == *task).map(|rung| rung.difficulty);
    let hardest = solved.iter().filter_map(difficulty).max();
    let others = rungs.iter().rev().filter(|rung| hardest.is_some_and(|hardest| rung.difficulty <= hardest));
    let Some(last) = solved.last() else { return Vec::new() };
    let sizes = others.map(|rung| rung.tree.to_string()).filter(|task| !solved.contains(task));
    let mut sizes = sizes.map(|task| (task, last.clone()));
    let mut moved = solved.iter().rev().filter_map(|task| Some((with_moved_fields(task)?, task.clone())));
    let mut unseen: Vec<(String, String)> = Vec::new();
    while unseen.len() < wanted {
        let turn = if unseen.len().is_multiple_of(2) {
            sizes.next().or_else(|| moved.next())
        } else {
            moved.next().or_else(|| sizes.next())
        };
        let Some(task) = turn else { break };
        unseen.push(task);
    }
    unseen
}

/// The task with its fields in another order; none where that is the same task.
fn with_moved_fields(task: &str) -> Option<String> {
    let text = match task.strip_suffix('}') {
        Some(open) => format!("{open},scramble=fields}}"),
        None => format!("{task}{{scramble=fields}}"),
    };
    let (plain, moved) = (TaskTree::parse(task).ok()?, TaskTree::parse(&text).ok()?);
    let game = plain.build(1, &NoPrograms).ok()?;
    (1 < game.shape().fields.len()).then(|| moved.to_string())
}
