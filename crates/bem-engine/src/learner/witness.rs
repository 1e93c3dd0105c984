//! Who watches a run, and what they are told: decisions about patches with their evidence, episodes, blocks of records.
//!
//! A witness cannot answer: nothing that it does reaches the learner. Clauses: LOG-1, SCC-8.

use super::Tally;
use crate::agent::Agent;
use bem_base::digest::Digest;
use bem_base::fixed::Fixed;
use bem_evolve::condition::Rejection;
use bem_evolve::improvement::Evidence;
use bem_evolve::patch::PatchKind;
use bem_evolve::verify::AcceptedPatch;
use bem_machine::trace::Record;
use bem_synth::experience::Episode;

/// One decision about a patch, as plain data: it is saved with a lesson that is put away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Steps taken when it was made.
    pub steps: u64,
    /// The serial of the patch.
    pub serial: u64,
    /// What the patch changes.
    pub kind: PatchKind,
    /// The change in words.
    pub words: String,
    /// Gates of the circuit that it brings.
    pub gates: usize,
    /// Whether it was put into force.
    pub accepted: bool,
    /// Whether it was in force and is taken back.
    pub rolled_back: bool,
    /// Why it is not in force; empty where it is.
    pub reason: String,
    /// What was measured; nothing if its condition was not shown.
    pub evidence: Evidence,
    /// What kind of evidence that is.
    pub basis: EvidenceBasis,
    /// The score that the next patch must reach.
    pub threshold: Fixed,
    /// The digest of the experience that the circuit was derived from; zero where it came from elsewhere.
    pub provenance: Digest,
    /// Proofs that the checker accepted, if it was put into force.
    pub proofs: u32,
}

impl Decision {
    /// Whether its condition was neither shown nor refuted within the budget of the proof.
    pub fn is_undecided(&self) -> bool {
        self.reason.contains(Rejection::UNDECIDED)
    }
}

/// What a decision about a patch rests on. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum EvidenceBasis {
    /// Nothing was measured: it was refused before, or taken back.
    #[default]
    None = 0,
    /// Pairs on fresh seeds.
    Rollouts = 1,
    /// A bound from logged steps.
    Logged = 2,
    /// The proof itself.
    Proof = 3,
    /// Counts that predicted what was earned; pairs have not shown the gain.
    Counted = 4,
    /// Means of the log.
    Means = 5,
    /// Episodes interleaved at random, where a world cannot be repeated.
    Interleaved = 6,
    /// Nothing: the user rules something out, or a task has ended.
    Given = 7,
}

impl EvidenceBasis {
    /// All of them, in order of their numbers.
    pub const ALL: [EvidenceBasis; 8] = [
        EvidenceBasis::None,
        EvidenceBasis::Rollouts,
        EvidenceBasis::Logged,
        EvidenceBasis::Proof,
        EvidenceBasis::Counted,
        EvidenceBasis::Means,
        EvidenceBasis::Interleaved,
        EvidenceBasis::Given,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            EvidenceBasis::None => "none",
            EvidenceBasis::Rollouts => "rollouts",
            EvidenceBasis::Logged => "log",
            EvidenceBasis::Proof => "proof",
            EvidenceBasis::Counted => "counts",
            EvidenceBasis::Means => "means",
            EvidenceBasis::Interleaved => "interleaved",
            EvidenceBasis::Given => "given",
        }
    }
}

/// Who watches a run. Nothing it does can reach the learner.
pub trait Witness {
    /// The policy that acts has changed.
    fn incumbent_changed(&mut self, agent: &Agent, words: &str, tally: &Tally);
    /// The gate has decided; `patch` is what was put into force, with its certificates and its score.
    fn decided(&mut self, decision: &Decision, patch: Option<&AcceptedPatch>);
    /// An episode was played, for experience or for the gate; so many of its steps strayed from what is held, and `chain` is
    /// the head of the run's own chain after it.
    fn played(&mut self, _episode: &Episode, _strayed: u64, _chain: &Digest) {}
    /// A block of step, reward and episode records is full, or the run is over; `chain` is the head after it.
    fn records(&mut self, _block: &[Record], _chain: &Digest) {}
    /// Called now and then; false asks the run to stop.
    fn tick(&mut self, tally: &Tally) -> bool;
}

/// Nobody watches.
impl Witness for () {
    fn incumbent_changed(&mut self, _: &Agent, _: &str, _: &Tally) {}

    fn decided(&mut self, _: &Decision, _: Option<&AcceptedPatch>) {}

    fn tick(&mut self, _: &Tally) -> bool {
        true
    }
}
