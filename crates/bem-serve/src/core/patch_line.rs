//! One line about a patch, as pages, lists and events show it. Clauses: LOG-1.

use bem_base::plain::plain;
use bem_runtime::service::Service;
use bem_runtime::world::{Patched, World};

/// One line about a patch, for people.
#[derive(Clone, Debug, serde::Serialize)]
pub struct PatchLine {
    /// The number of the input with which it was decided.
    pub step: u64,
    /// The world.
    pub world: String,
    /// What it changes.
    pub kind: &'static str,
    /// Whether it is in force.
    pub accepted: bool,
    /// The change in words, as people read them.
    pub words: String,
    /// Why it is not in force.
    pub reason: String,
    /// Proofs that the checker accepted.
    pub proofs: u32,
}

impl PatchLine {
    /// Of a decision about a patch in this world.
    pub fn of(world: &str, patched: &Patched) -> PatchLine {
        PatchLine {
            step: patched.number,
            world: world.to_string(),
            kind: kind_name(patched.kind),
            accepted: patched.accepted,
            words: plain(&patched.words),
            reason: patched.reason.clone(),
            proofs: patched.proofs,
        }
    }

    /// The latest of a service that were decided before a step, the newest first. What was decided with one step stays together,
    /// so that there may be a few more.
    pub fn latest(service: &Service, before: u64, count: usize) -> Vec<PatchLine> {
        let of = |world: &World| {
            world.patched().iter().map(|patched| PatchLine::of(&world.spec().name, patched)).collect()
        };
        let mut lines: Vec<PatchLine> =
            service.worlds().flat_map(|(_, world)| -> Vec<PatchLine> { of(world) }).collect();
        lines.retain(|line| line.step < before);
        lines.sort_by_key(|line| core::cmp::Reverse(line.step));
        let last = lines.get(count.saturating_sub(1)).map_or(0, |line| line.step);
        lines.retain(|line| last <= line.step);
        lines
    }
}

/// The name of a kind of patch by its stored number.
fn kind_name(kind: u8) -> &'static str {
    const NAMES: [&str; 10] = [
        "retire",
        "reset",
        "split",
        "merge",
        "superoptimize",
        "teach_edit",
        "macro",
        "synthesize",
        "hold",
        "guard",
    ];
    NAMES.get(usize::from(kind)).copied().unwrap_or("unknown")
}
