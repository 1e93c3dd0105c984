//! What webhooks are told of an input: how questions moved, which answers were taken back, what was decided about patches.
//!
//! Contents of questions and answers stay here. Clause: HUM-12; decision D-182.

use super::PatchLine;
use crate::people::tasks::task;
use bem_runtime::book::{Derived, Line};
use bem_runtime::people::{Note, Phase};
use bem_runtime::service::Service;
use serde_json::{Value, json};

/// The messages of one input, in order.
pub(super) fn of(line: &Line, service: &Service, number: u64) -> Vec<(&'static str, Value)> {
    let mut told: Vec<(&'static str, Value)> = line.people.iter().filter_map(of_note).collect();
    let is_decided = matches!(line.derived, Derived::Opened(..) | Derived::Published(..))
        || line.people.iter().any(|note| matches!(note, Note::Published(_)));
    if is_decided {
        let patches = service.worlds().flat_map(|(_, world)| {
            let decided = world.patched().iter().filter(|patched| patched.number == number);
            decided.map(|patched| PatchLine::of(&world.spec().name, patched)).collect::<Vec<_>>()
        });
        told.extend(patches.map(|line| ("patch.decided", json!(line))));
    }
    told
}

fn of_note(note: &Note) -> Option<(&'static str, Value)> {
    match note {
        Note::Moved { question, phase, step, .. } => {
            let mut told = task(question);
            told["step"] = json!(step);
            match phase {
                Phase::Created => Some(("question.created", told)),
                Phase::Answered => Some(("question.answered", told)),
                Phase::Skipped(reason) => {
                    told["reason"] = json!(reason.name());
                    Some(("question.skipped", told))
                }
                Phase::Updated | Phase::Applied => None,
            }
        }
        Note::Changed { answer, question, undone: true, step, .. } => {
            let (answer, question) = (answer.to_string(), question.to_string());
            Some(("answer.undone", json!({ "answer": answer, "question": question, "step": step })))
        }
        Note::Changed { .. } | Note::Published(_) => None,
    }
}
