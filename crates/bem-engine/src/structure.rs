//! Structure: what the log and the pool suggest themselves, beside new circuits.
//!
//! With every search the proposers of `bem-evolve` look at the pool and at the log. A smaller circuit for the incumbent is
//! proven to do the same and costs no step. Once an incumbent has stood for a while, two experts that are right on the
//! sides of a bit become one, which must win its rollouts like every candidate; experts that are dominated go, a bucket is
//! divided where the log says that its halves want different experts, and statistics that late steps contradict are
//! forgotten. Where every episode of the incumbent goes the same way, the sequence itself becomes an expert: a counter in
//! its memory takes the place of what the incumbent looks at (MACRO), if that is smaller and wins or ties its rollouts.
//!
//! Statistics for this are made anew from the log each time, from steps whose action was drawn with equal chance: each
//! counts for every expert that would have done the same. So nothing has to be saved, and what the machine has booked for
//! its own choice stays its own. Clauses: SCC-2, SCC-13; decisions D-20, D-33.

use crate::learner::{Learner, Witness};
use bem_base::environment::{Bits, Outcome};
use bem_base::fixed::Fixed;
use bem_evolve::condition::circuits::body_of;
use bem_evolve::evolution::{Record, Verdict};
use bem_evolve::localize::{TracedEpisode, TracedStep};
use bem_evolve::patch::{Body, Change, PatchKind};
use bem_evolve::propose::{Notebook, Proposal, Sources, propose_all, propose_superoptimized};
use bem_evolve::score::PoxState;
use bem_machine::family::{Family, STEP_BY_STEP};
use bem_machine::route::directory::RouteInput;
use bem_synth::experience::{Episode, Step};
use bem_synth::hypothesis::Hypothesis;
use bem_synth::policy::Policy;
use bem_synth::propose;
use std::sync::Arc;

/// The newest steps of the log that structure is judged by.
pub(crate) const LOG_STEPS_MAX: usize = 8_192;
/// Steps that an incumbent must have stood before its pool is changed: until then it may soon be replaced, and its patch may
/// be taken back, which only the latest can be. Its circuit is also made smaller when the run is about to end.
const SETTLED_STEPS: u64 = 8_192;

impl Learner {
    /// Makes patches of what the pool and the log suggest; whether there are any.
    pub(crate) fn submit_structure(&mut self) -> bool {
        let is_settled = self.last_gain + SETTLED_STEPS <= self.tally.steps;
        if self.incumbent.is_choice || !is_settled && !self.is_done() {
            return false;
        }
        let episodes = propose::recent(&self.experience, if is_settled { LOG_STEPS_MAX } else { 0 });
        let Some(machinery) = &mut self.machinery else { return false };
        let Some(slot) = machinery.incumbent_slot() else { return false };
        let (family, pox) = (machinery.family().clone(), machinery.evolution().pox().clone());
        let suggested = suggest(&family, slot, &episodes, &pox, machinery.notebook_mut());
        let Some(proposal) = suggested.or_else(|| self.propose_play(slot as u8, is_settled)) else {
            return false;
        };
        let candidate = self.candidate(&family, &proposal);
        let Some(serial) = self.machinery.as_mut().and_then(|machinery| machinery.submit(proposal)) else {
            return false;
        };
        self.waiting.extend(candidate.map(|candidate| (serial, candidate)));
        true
    }

    /// Who plays the rollouts of a merged expert or a macro.
    fn candidate(&self, family: &Family, proposal: &Proposal) -> Option<Hypothesis> {
        let (policy, machine) = match &proposal.change {
            Change::Merge { body, .. } => (policy_of(family, body.clone())?, None),
            // What it stands for is still what can be built for other sizes.
            Change::Play { policy, .. } => (policy.clone(), self.incumbent.machine.clone()),
            _ => return None,
        };
        Some(Hypothesis {
            policy,
            statement: None,
            words: proposal.words.clone(),
            description_length: u32::MAX,
            exact: false,
            foreseen: None,
            provenance: self.experience.digest(),
            machine,
        })
    }

    /// What follows for the incumbent from an applied patch that brings no new one.
    pub(crate) fn follow(&mut self, record: &Record, witness: &mut dyn Witness) {
        let Verdict::Applied { accepted, .. } = &record.verdict else { return };
        let Change::Superoptimize { slot, circuit } = &accepted.patch().change else {
            // Only the latest patch can be taken back.
            (self.previous, self.watched, self.alarm) = (None, None, None);
            return;
        };
        let is_incumbents = self.machinery.as_ref().and_then(|machinery| machinery.incumbent_slot())
            == Some(usize::from(*slot));
        if self.incumbent.is_choice || !is_incumbents {
            return;
        }
        let old = &self.incumbent.policy;
        let smaller = Policy::new(circuit.clone(), old.reads().to_vec(), old.memory_bits(), old.actions());
        self.incumbent.policy =
            Arc::new(smaller.expect("it has the inputs and outputs of the one it replaces"));
        witness.incumbent_changed(&self.agent(), &self.incumbent.words, &self.tally);
    }
}

/// The one change that promises most: a smaller circuit for what acts, else what keeps the pool in order.
///
/// One at a time, because what is applied makes the others obsolete. The incumbent's expert is never retired.
fn suggest(
    family: &Family,
    incumbent: usize,
    episodes: &[&Episode],
    pox: &PoxState,
    notebook: &mut Notebook,
) -> Option<Proposal> {
    // The incumbent is what acts, so that its circuit is the one worth making smaller.
    let (slot, observation) = (incumbent as u8, Bits::ZERO);
    let acting = vec![vec![TracedStep { bucket: 0, slot, loss: Fixed::ZERO, observation }]];
    let smaller = propose_superoptimized(family, &acting, notebook);
    let is_incumbents = |proposal: &Proposal| matches!(proposal.change, Change::Superoptimize { slot: changed, .. } if changed == slot);
    if let Some(smaller) = smaller.filter(is_incumbents) {
        return Some(smaller);
    }
    let (view, traced) = view(family, episodes)?;
    let sources = Sources { family: &view, episodes: &traced, edits: &[] };
    let mut proposals = propose_all(&sources, pox, notebook);
    proposals.retain(|proposal| match &proposal.change {
        Change::Retire { slot: retired } => *retired != slot,
        Change::Merge { body, .. } => policy_of(family, body.clone()).is_some(),
        Change::Split { .. } | Change::Reset { .. } => true,
        _ => false,
    });
    // A merged expert can become the incumbent, which a divided bucket cannot.
    let merged = proposals.iter().position(|proposal| proposal.kind() == PatchKind::Merge);
    (!proposals.is_empty()).then(|| proposals.swap_remove(merged.unwrap_or(0)))
}

/// Gates of the circuit that a change brings.
pub(crate) fn gates_of(change: &Change) -> usize {
    match change {
        Change::Merge { body, .. } | Change::Macro { body, .. } => body.circuit.gates().len(),
        Change::Superoptimize { circuit, .. } => circuit.gates().len(),
        Change::Synthesize { policy, .. } | Change::Play { policy, .. } => policy.gates(),
        Change::Retire { .. }
        | Change::Reset { .. }
        | Change::Split { .. }
        | Change::Divide { .. }
        | Change::Join { .. }
        | Change::Forget { .. }
        | Change::TeachEdit { .. } => 0,
    }
}

/// The family with statistics from the log alone, and the log as proposers look at it; none if there is nothing to choose
/// among.
fn view(family: &Family, episodes: &[&Episode]) -> Option<(Family, Vec<TracedEpisode>)> {
    let acted: Vec<(u8, Vec<Vec<u16>>)> = family
        .occupied()
        .filter_map(|(slot, _)| {
            Some((slot as u8, memoryless(family, slot)?.replay(episodes.iter().copied())))
        })
        .collect();
    if acted.len() < 2 {
        return None;
    }
    let mut view = family.clone();
    for bucket in 0..view.buckets().len() as u16 {
        view.reset(bucket).expect("every bucket counted is there");
    }
    let mut traced = Vec::with_capacity(episodes.len());
    for (place, episode) in episodes.iter().enumerate() {
        let mut steps = TracedEpisode::new();
        for (time, step) in episode.steps.iter().enumerate().filter(|(_, step)| step.uniform) {
            let bucket = bucket_of(family, step);
            let outcome = Outcome { reward: step.reward, done: step.done, bad: step.bad };
            let loss = Fixed::from_raw(family.payoff().step_loss(&outcome, 0).to_raw() as i64);
            for (slot, _) in acted.iter().filter(|(_, actions)| actions[place][time] == step.action) {
                view.credit(bucket, usize::from(*slot), &outcome);
                steps.push(TracedStep { bucket, slot: *slot, loss, observation: step.observation });
            }
        }
        traced.push(steps);
    }
    Some((view, traced))
}

/// The expert in a slot as a policy, if it looks at observations only and remembers nothing.
fn memoryless(family: &Family, slot: usize) -> Option<Policy> {
    let expert = family.expert(slot).filter(|_| slot != STEP_BY_STEP && !family.is_sticky(slot))?;
    policy_of(family, body_of(expert).ok()?)
}

/// A body as a policy, if it looks at observations only and remembers nothing.
fn policy_of(family: &Family, body: Body) -> Option<Policy> {
    let layout = family.layout();
    let sees = body.reads.iter().all(|bit| layout.observation().contains(&usize::from(*bit)));
    let acts = body.writes.iter().map(|bit| usize::from(*bit)).eq(layout.action());
    if !sees || !acts {
        return None;
    }
    Policy::new(body.circuit, body.reads, 0, family.shape().actions)
}

/// The bucket that an observation is routed to.
fn bucket_of(family: &Family, step: &Step) -> u16 {
    let (directory, width) = (family.directory(), family.layout().observation().len());
    directory.bucket(directory.signature(|input| match input {
        RouteInput::State(bit) => usize::from(bit) < width && step.observation.get(usize::from(bit)),
        RouteInput::Shared { .. } => false,
    }))
}

#[cfg(test)]
mod tests;
