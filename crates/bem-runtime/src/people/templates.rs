//! Templates that the machine takes up by itself: under the whitelist they are learned only with a person's approval.
//!
//! A world that somebody makes over HTTP is approved by being made. One that the machine makes for itself, a rung of the ladder,
//! is a template that nobody has looked at: where only what people approved may be used, nothing is learned in it until somebody
//! says so. The question is that of a patch whose kind is TEACH_EDIT. Rejected templates are not asked about again; deferred ones
//! when more was played. What was learned stays when an approval is taken back, because each change of it was approved by itself.
//! Must not know what a ladder is. Clause: HUM-8; decision D-211.

use super::change::{Change, Inverse, What};
use super::oversight::{RISK_EVERY, RISK_TEMPLATE, short};
use crate::input::WorldIndex;
use crate::service::Service;
use crate::world::World;
use bem_base::digest::{Digest, hash_parts};
use bem_base::fixed::Fixed;
use bem_people::kinds::{Decision, Mode, Priority, QuestionKind};
use bem_people::payload::context::{Context, PatchContext, WORDS_BYTES_MAX};

/// The stored number of TEACH_EDIT.
const TEACH_EDIT: u8 = 5;
/// Inputs after which a question about a template is skipped.
const PATIENCE: u64 = 200_000;

/// Whether a question about a patch is about a template.
pub fn is_template(shown: &PatchContext) -> bool {
    shown.risks & RISK_TEMPLATE != 0
}

/// Names a template by what it is.
fn content(index: WorldIndex, world: &World) -> Digest {
    let spec = world.spec();
    let parts = [&index.0.to_le_bytes()[..], spec.name.as_bytes(), &[0], spec.note.as_bytes()];
    hash_parts("bem/approved-template", &parts)
}

impl Service {
    /// Whether rounds of learning may begin in a world.
    pub fn may_learn(&self, index: WorldIndex) -> bool {
        let Some(world) = self.world(index) else { return false };
        self.people.control.safety_override_mode != Mode::Whitelist
            || !world.spec().is_own()
            || self.people.approved.contains(&content(index, world))
    }

    /// Whether a person has said that this template is not to be taken up.
    pub fn is_turned_away(&self, index: WorldIndex) -> bool {
        let rejected = |world: &World| self.people.rejected.contains(&content(index, world));
        !self.may_learn(index) && self.world(index).is_some_and(rejected)
    }

    /// Asks whether a template may be taken up, when there is something to be learned in it.
    pub(crate) fn maybe_ask_template(&mut self, index: WorldIndex, number: u64) {
        if self.people.control.safety_override_mode != Mode::Whitelist
            || self.may_learn(index)
            || self.is_turned_away(index)
        {
            return;
        }
        let Some(world) = self.world(index) else { return };
        if !world.is_round_due(self.offered(index)) || self.is_template_asked(index) {
            return;
        }
        let (spec, acting) = (world.spec(), short(&world.acting().digest()));
        let words = format!("take up the template {}: {}", spec.name, spec.note);
        let shown = PatchContext {
            patch: short(&content(index, world)),
            kind: TEACH_EDIT,
            pox_score: Fixed::ZERO,
            deltas: [Fixed::ZERO; 4],
            risks: RISK_TEMPLATE | RISK_EVERY,
            task: index.0,
            words: words.chars().take(WORDS_BYTES_MAX / 4).collect(),
            policies: [acting, acting],
            proofs: 0,
            in_force: false,
            missing: Fixed::ZERO,
        };
        self.ask_itself(Context::Patch(shown), Priority::High, u32::MAX, number + PATIENCE, number);
    }

    fn is_template_asked(&self, index: WorldIndex) -> bool {
        let patches = self.people.table.open().filter(|open| open.kind == QuestionKind::ApprovePatch);
        patches.into_iter().any(|open| match Context::from_bytes(open.kind, &open.context) {
            Ok(Context::Patch(shown)) => is_template(&shown) && shown.task == index.0,
            _ => false,
        })
    }

    /// What an answer about a template changes.
    pub(crate) fn template_change(&self, decision: Decision, shown: &PatchContext) -> Vec<Change> {
        let before = i64::from(self.may_learn(WorldIndex(shown.task)));
        let after = i64::from(decision == Decision::Approve);
        vec![Change { what: What::Learned, world: shown.task, place: 0, action: 0, before, after }]
    }

    /// A person has decided about a template.
    pub(crate) fn decide_template(&mut self, decision: Decision, shown: &PatchContext) -> Inverse {
        let index = WorldIndex(shown.task);
        let Some(policy) = self.world(index).map(|world| content(index, world)) else {
            return Inverse::Nothing;
        };
        match decision {
            Decision::Approve => self.people.judge(policy, true),
            Decision::Reject => self.people.judge(policy, false),
            _ => self.rest_template(index),
        }
        Inverse::Patch { world: shown.task, decision, policy }
    }

    /// Nobody has approved it for now: it is asked about again when more was played.
    pub(crate) fn rest_template(&mut self, index: WorldIndex) {
        if let Some(world) = self.world_mut(index) {
            world.rest();
        }
    }

    /// Whether this names the template of a world, and not a policy.
    pub(crate) fn names_template(&self, world: u16, policy: &Digest) -> bool {
        let index = WorldIndex(world);
        self.world(index).is_some_and(|world| content(index, world) == *policy)
    }
}
