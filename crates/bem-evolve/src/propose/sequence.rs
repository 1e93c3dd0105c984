//! MACRO: experts that keep following each other become one that does it all in a step.
//!
//! It only helps where a later expert reads what an earlier one wrote; where it does not, the last expert alone does the
//! same, and nothing is proposed.

use super::Proposal;
use crate::condition::circuits::{body_of, compose};
use crate::localize::{TracedEpisode, frequent_sequences};
use crate::patch::{Body, Change, ExpectedEffects};
use bem_base::fixed::Fixed;
use bem_machine::family::{Family, STEP_BY_STEP};

/// A sequence must occur this often before it becomes a macro.
const SEQUENCE_COUNT_MIN: u32 = 16;
/// Lengths that are looked at, the shortest first.
const LENGTHS: [usize; 2] = [2, 3];
/// Sequences of each length that are looked at, the most frequent first.
const SEQUENCES_MAX: usize = 16;
/// Macros that one call proposes: each of them costs rollouts.
const MACROS_MAX: usize = 2;

/// Frequent sequences that do something that no expert of the pool does, short and frequent ones first.
pub fn propose_macros(family: &Family, episodes: &[TracedEpisode]) -> Vec<Proposal> {
    let bodies: Vec<(u8, Body)> = family
        .occupied()
        .filter(|(slot, _)| *slot != STEP_BY_STEP && !family.is_sticky(*slot))
        .filter_map(|(slot, expert)| Some((slot as u8, body_of(expert).ok()?)))
        .collect();
    let body = |slot: u8| bodies.iter().find(|(known, _)| *known == slot).map(|(_, body)| body.clone());
    let mut proposals = Vec::new();
    for length in LENGTHS {
        let frequent = frequent_sequences(episodes, length).into_iter();
        for (sequence, count) in
            frequent.filter(|(_, count)| SEQUENCE_COUNT_MIN <= *count).take(SEQUENCES_MAX)
        {
            let parts: Option<Vec<Body>> = sequence.iter().map(|slot| body(*slot)).collect();
            let Some(whole) = parts.and_then(|parts| compose(&parts).ok()) else { continue };
            let is_known = |known: &Body| {
                (&known.reads, &known.writes, &known.circuit) == (&whole.reads, &whole.writes, &whole.circuit)
            };
            if bodies.iter().any(|(_, known)| is_known(&normal_form(known))) {
                continue;
            }
            proposals.push(Proposal {
                words: format!("slots {sequence:?} in one step, seen {count} times"),
                change: Change::Macro { sequence, body: whole },
                improvement: None,
                effects: ExpectedEffects { novelty: Fixed::ONE, ..ExpectedEffects::default() },
            });
        }
    }
    proposals.truncate(MACROS_MAX);
    proposals
}

/// The body as composing makes it, so that two that compute the same way look the same.
fn normal_form(body: &Body) -> Body {
    compose(core::slice::from_ref(body)).unwrap_or_else(|_| body.clone())
}
