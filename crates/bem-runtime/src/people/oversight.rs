//! Whether a change of the acting policy takes effect, waits for a person, or is turned down.
//!
//! It is asked about changes that are proven and measured already: nothing here lets anything in that the gate has not. A
//! policy that somebody rejected in a world is not put into force there again; one that was approved is. What is better by less
//! than the threshold waits in every mode for an approval that adds what is missing. Rollbacks never wait.
//! Clause: HUM-8; decisions D-78, D-181.

use super::People;
use crate::input::WorldIndex;
use crate::round::Brought;
use crate::world::World;
use bem_base::digest::{Digest, hash_parts};
use bem_base::fixed::Fixed;
use bem_engine::chronicle::PatchNote;
use bem_engine::payload::Payload;
use bem_engine::serving::{Acting, Round};
use bem_people::kinds::Mode;
use bem_people::payload::context::{PatchContext, WORDS_BYTES_MAX};

/// Why a change is turned down that was rejected before.
pub(crate) const REJECTED: &str = "a person has rejected this policy";

/// Touches a world in which something BAD has happened.
pub const RISK_BAD: u32 = 1;
/// Touches what is forbidden.
pub const RISK_FORBIDDEN: u32 = 2;
/// Forgets what was counted, so that it is explored again.
pub const RISK_EXPLORATION: u32 = 4;
/// Its score is near the threshold.
pub const RISK_THRESHOLD: u32 = 8;
/// Every change is asked about.
pub const RISK_EVERY: u32 = 16;
/// It is a template that the machine takes up by itself.
pub const RISK_TEMPLATE: u32 = 32;
/// Somebody has called an episode of the world unsafe.
pub const RISK_TAGGED: u32 = 64;
/// Those that make a change critical.
const CRITICAL: u32 = RISK_BAD | RISK_FORBIDDEN | RISK_EXPLORATION | RISK_TAGGED;

/// What is decided with.
pub(crate) struct Oversight<'p> {
    pub(crate) world: WorldIndex,
    pub(crate) people: &'p People,
}

/// What is decided.
pub(crate) enum Judged {
    /// It takes effect; with what is shown if people are asked about it afterwards.
    Let(Option<Box<PatchContext>>),
    /// It waits.
    Hold(Box<PatchContext>),
    /// It was rejected before.
    TurnDown,
}

/// What became of a round.
pub(crate) enum Publishing {
    /// It was too early to search.
    Nothing,
    /// It took effect or was turned down; people are asked about it afterwards.
    Brought(Brought, Option<Box<PatchContext>>),
    /// It waits.
    Held(Box<PatchContext>),
}

/// Names a policy in a world.
pub fn content(world: WorldIndex, policy: &Digest) -> Digest {
    hash_parts("bem/approved-policy", &[&world.0.to_le_bytes(), policy.as_bytes()])
}

/// The first eight bytes of a digest.
pub(crate) fn short(digest: &Digest) -> u64 {
    digest.as_bytes().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Oversight<'_> {
    pub(crate) fn judge(&self, world: &World, round: &Round) -> Judged {
        let mode = self.people.control.safety_override_mode;
        let policies = [world.acting.digest(), round.acting.digest()];
        let is_change = policies[0] != policies[1] && round.patches.iter().any(|note| note.accepted);
        let is_rollback = round.patches.iter().any(|note| note.rolled_back);
        let is_short = Fixed::ZERO < round.missing;
        if !is_short && (mode == Mode::Off || !is_change || is_rollback) {
            return Judged::Let(None);
        }
        let content = content(self.world, &policies[1]);
        if self.people.rejected.contains(&content) {
            return Judged::TurnDown;
        }
        let mut risks = risks(world, &round.patches, mode);
        risks |= if is_short { RISK_THRESHOLD } else { 0 };
        risks |= if self.people.is_tagged(self.world.0) { RISK_TAGGED } else { 0 };
        let is_critical = risks & CRITICAL != 0;
        let is_approved = self.people.approved.contains(&content);
        let context = |in_force: bool| {
            let task = self.world.0;
            let gates = |acting: &Acting| acting.in_force().agent.policy().gates() as i32;
            let smaller = Fixed::from_int(gates(&world.acting) - gates(&round.acting));
            Box::new(describe(
                &round.patches,
                PatchContext {
                    task,
                    risks,
                    in_force,
                    missing: round.missing,
                    deltas: [Fixed::ZERO, Fixed::ZERO, smaller, Fixed::ZERO],
                    ..blank(content, policies)
                },
            ))
        };
        match mode {
            _ if is_short => Judged::Hold(context(false)),
            Mode::RequireApproval if is_critical && !is_approved => Judged::Hold(context(false)),
            Mode::Whitelist if !is_approved => Judged::Hold(context(false)),
            Mode::Warn if is_critical || risks & RISK_THRESHOLD != 0 => Judged::Let(Some(context(true))),
            _ => Judged::Let(None),
        }
    }
}

fn blank(content: Digest, policies: [Digest; 2]) -> PatchContext {
    PatchContext {
        patch: short(&content),
        kind: 0,
        pox_score: Fixed::ZERO,
        deltas: [Fixed::ZERO; 4],
        risks: 0,
        task: 0,
        words: String::new(),
        policies: policies.map(|policy| short(&policy)),
        proofs: 0,
        in_force: false,
        missing: Fixed::ZERO,
    }
}

fn risks(world: &World, patches: &[PatchNote], mode: Mode) -> u32 {
    let mut risks = 0;
    if 0 < world.statistics().bad {
        risks |= RISK_BAD;
    }
    for note in patches.iter().filter(|note| note.accepted) {
        // The stored numbers of RESET and GUARD.
        risks |= match note.kind {
            1 => RISK_EXPLORATION,
            9 => RISK_FORBIDDEN,
            _ => 0,
        };
        if 0 < note.threshold && note.score < note.threshold + note.threshold / 4 {
            risks |= RISK_THRESHOLD;
        }
    }
    if !world.spec().forbidden.is_empty() {
        risks |= RISK_FORBIDDEN;
    }
    risks | if mode == Mode::Whitelist { RISK_EVERY } else { 0 }
}

/// Adds what the patches are, as far as it fits.
fn describe(patches: &[PatchNote], mut context: PatchContext) -> PatchContext {
    for note in patches.iter().filter(|note| note.accepted) {
        let words = Payload::from_bytes(&note.payload).map(|payload| payload.words).unwrap_or_default();
        if context.words.len() + words.len() < WORDS_BYTES_MAX {
            if !context.words.is_empty() {
                context.words.push('\n');
            }
            context.words.push_str(&words);
        }
        context.kind = note.kind;
        context.pox_score = Fixed::from_raw(note.score);
        context.deltas[0] = context.deltas[0].plus_saturating(Fixed::from_raw(note.score));
        context.proofs += note.proofs.len() as u32;
    }
    context
}
