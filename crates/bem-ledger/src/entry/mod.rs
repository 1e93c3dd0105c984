//! What the ledger records: twelve kinds of entry with one canonical encoding each.
//!
//! The bytes are drawn in `docs/formats/ledger.md` and made in `codec.rs`: an entry has one spelling, its hash one
//! meaning. Nothing here knows the engine: payloads are digests or opaque bytes. Clauses: LOG-1, LOG-2, ID-2, TOOL-10, HUM-11.

mod codec;
mod outside;
mod unit;

pub use codec::step_block_bytes;
pub use outside::{HumanTask, ToolCall};
pub use unit::{Artefact, Proven, UnitEnd};

use crate::experience::Experience;
use crate::limits::STEP_RECORD_BYTES;
use crate::play::PlayBlock;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader};
use bem_base::ids::ObjectId;

/// The version of the encoding, first byte of every entry.
pub const ENTRY_FORMAT: u8 = 2;
/// Tables that have a root.
pub const TABLES: usize = 4;
/// How many kinds of entry there are.
pub const KINDS: usize = 12;
/// The kinds of entry, by stored number.
pub const KIND_NAMES: [&str; KINDS] = [
    "genesis",
    "step_block",
    "episode",
    "patch",
    "reset",
    "tables",
    "snapshot",
    "tool_call",
    "human_task",
    "input",
    "event",
    "play",
];
/// The roots of EXPERT, TEACH, WORK and CFG, in this order.
pub type TableRoots = [Digest; TABLES];

/// Declares an enum that is stored as one byte, with a checked way back.
macro_rules! stored_enum {
    ($(#[$meta:meta])* $name:ident, $what:literal, { $($(#[$variant_meta:meta])* $variant:ident = $number:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_meta])* $variant = $number),+ }

        impl $name {
            /// Every value, in order of the stored numbers.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            pub(super) fn decode(reader: &mut Reader<'_>) -> Result<$name, DecodeError> {
                let error = reader.error(concat!("an unknown ", $what));
                match reader.u8()? {
                    $($number => Ok($name::$variant),)+
                    _ => Err(error),
                }
            }
        }
    };
}

stored_enum! {
    /// A table whose content is under a Merkle root.
    Table, "table", {
        /// Experts and routes.
        #[doc(alias = "EXPERT")]
        Expert = 0,
        /// Templates.
        #[doc(alias = "TEACH")]
        Teach = 1,
        /// Configuration and hyperparameters.
        #[doc(alias = "WORK")]
        Work = 2,
        /// What the history is played from: the configuration, programs, files of worlds.
        #[doc(alias = "CFG")]
        Program = 3,
    }
}

stored_enum! {
    /// What a patch changes, as it is stored: the numbers are those of `bem-evolve`, which the ledger does not see.
    PatchKind, "patch kind", {
        /// Takes an expert out.
        Retire = 0,
        /// Makes statistics neutral again.
        Reset = 1,
        /// Divides a bucket by one more bit.
        Split = 2,
        /// Makes one expert of two.
        Merge = 3,
        /// A smaller circuit of the same meaning.
        Superoptimize = 4,
        /// A template is added or changed.
        TeachEdit = 5,
        /// A frequent sequence becomes one expert.
        Macro = 6,
        /// An expert synthesised from experience.
        Synthesize = 7,
        /// Other plain actions are held.
        Hold = 8,
        /// Other actions are masked.
        Guard = 9,
    }
}

stored_enum! {
    /// Where a patch stands, as it is stored.
    PatchStatus, "patch status", {
        /// Proposed.
        Pending = 0,
        /// Its condition was proven.
        Verified = 1,
        /// Refuted, undecided or not worth it.
        Rejected = 2,
        /// In force.
        Applied = 3,
        /// Taken back because what it promised did not come.
        RolledBack = 4,
    }
}

stored_enum! {
    /// A solver's answer on the negation of a condition.
    Verdict, "verdict", {
        /// Unsatisfiable: the condition holds, and the proof shows it.
        #[doc(alias = "UNSAT")]
        Holds = 0,
        /// Satisfiable: the model is a counterexample.
        #[doc(alias = "SAT")]
        Refuted = 1,
        /// The budget ran out.
        #[doc(alias = "UNKNOWN")]
        Undecided = 2,
        /// Satisfiable, and meant to be: the assumptions do not contradict each other (decision D-21).
        Consistent = 3,
    }
}

stored_enum! {
    /// Why statistics were reset.
    ResetCause, "reset cause", {
        /// Losses rose.
        LossRose = 0,
        /// Losses fell.
        LossFell = 1,
        /// Somebody asked for it.
        Commanded = 2,
    }
}

stored_enum! {
    /// Where a tool call stands.
    ToolPhase, "tool phase", {
        /// Put on the bus.
        Issued = 0,
        /// Its response took effect.
        Consumed = 1,
        /// Given up.
        Dropped = 2,
    }
}

stored_enum! {
    /// The status in a request's status word.
    ToolStatus, "tool status", {
        /// The slot is free again.
        Empty = 0,
        /// Waits for the tool.
        Pending = 1,
        /// The response is there.
        Done = 2,
        /// The tool failed.
        #[doc(alias = "error")]
        Failed = 3,
    }
}

stored_enum! {
    /// What happened to a question to a human.
    HumanPhase, "human phase", {
        /// Asked.
        Created = 0,
        /// Changed hands or deadline.
        Updated = 1,
        /// Answered.
        Answered = 2,
        /// The answer took effect.
        Applied = 3,
        /// Nobody answered, or nobody needs to any more.
        Skipped = 4,
    }
}

stored_enum! {
    /// Where a question stands in its table.
    #[doc(alias = "HINL_STATUS")]
    HumanStatus, "human status", {
        /// The place is free again.
        Empty = 0,
        /// Nobody works on it.
        Pending = 1,
        /// Somebody does.
        InProgress = 2,
        /// Answered.
        Done = 3,
        /// It will not be answered.
        Skipped = 4,
    }
}

stored_enum! {
    /// Why a question is skipped.
    SkipReason, "reason to skip", {
        /// It is not skipped.
        None = 0,
        /// Its deadline passed.
        Deadline = 1,
        /// A person declined it.
        Declined = 2,
        /// What it is about is gone.
        Obsolete = 3,
        /// The machine was told not to ask any more.
        Withdrawn = 4,
    }
}

stored_enum! {
    /// Where an input came from.
    InputSource, "input source", {
        /// A person.
        Human = 0,
        /// A tool.
        Tool = 1,
        /// A world outside this process.
        Environment = 2,
        /// Whoever runs the machine.
        Operator = 3,
    }
}

/// A solver's answer with what it rests on: two blobs, by digest (decision D-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The answer.
    pub verdict: Verdict,
    /// The clauses, DIMACS.
    pub cnf: Digest,
    /// The checker's certificate if it holds, a model if it is refuted or consistent, zero if undecided.
    pub proof: Digest,
}

/// One slot of one table gets a new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEdit {
    /// Which table.
    pub table: Table,
    /// Which slot.
    pub slot: u32,
    /// Digest of what stands there now; zero for nothing.
    pub leaf: Digest,
}

/// The first entry: who this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// Names this instance and no other.
    pub instance: Digest,
    /// Digest of the frozen configuration; the bytes are a blob.
    pub configuration: Digest,
    /// Version of the code.
    pub code: String,
    /// The ed25519 key that signs this instance's checkpoints.
    pub public_key: [u8; 32],
}

/// A sealed block of the fast path's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepBlock {
    /// Step number that offset 0 stands for.
    pub first_step: u64,
    /// Choices, rewards and the rest, 16 bytes each; what they mean the machine says (`docs/formats/ledger.md`).
    pub records: Vec<[u8; STEP_RECORD_BYTES]>,
    /// What the learner keeps.
    pub experience: Vec<Experience>,
}

/// A patch changed its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchEvent {
    /// The patch.
    pub serial: u64,
    /// When.
    pub step: u64,
    /// What it changes.
    pub kind: PatchKind,
    /// Its new status.
    pub status: PatchStatus,
    /// What it is about.
    pub target: ObjectId,
    /// Measured improvement, raw `Fixed`.
    pub score: i64,
    /// Digest of its content.
    pub payload: Digest,
    /// What the prover said.
    pub certificates: Vec<Certificate>,
    /// What it did to the tables, ascending by table and slot; empty unless applied or rolled back.
    pub edits: Vec<TableEdit>,
    /// Table roots before it.
    pub roots_before: TableRoots,
    /// Table roots after it.
    pub roots_after: TableRoots,
}

/// One entry of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "TRACE")]
#[allow(missing_docs, reason = "the fields are drawn in docs/formats/ledger.md and named after it")]
pub enum Entry {
    /// Who this is; entry 0 and no other.
    Genesis(Genesis),
    /// Steps, rewards and experience.
    StepBlock(StepBlock),
    /// An episode ended.
    Episode {
        episode: u64,
        task: u64,
        step: u64,
        length: u32,
        total_return: i64,
        regret: i64,
        discarded: bool,
    },
    /// A patch changed its status.
    Patch(Box<PatchEvent>),
    /// A bucket's statistics start again.
    Reset { step: u64, family: ObjectId, bucket: u32, cause: ResetCause },
    /// Tables changed without a patch (at boot, by the teacher), or just their roots.
    Tables { step: u64, edits: Vec<TableEdit>, roots: TableRoots },
    /// A snapshot was written that holds the state before this entry. From here on the newest `kept` snapshots are kept,
    /// this one included; the files of older ones may be gone.
    Snapshot { step: u64, manifest: Digest, size_bytes: u64, kept: u8 },
    /// A tool was called, or its answer was used.
    ToolCall(Box<ToolCall>),
    /// A question to a human moved on.
    HumanTask(Box<HumanTask>),
    /// Something came from outside; it takes effect only after this entry.
    Input { step: u64, source: InputSource, payload: Vec<u8> },
    /// Anything else worth a line, by code.
    Event { step: u64, code: u16, values: Vec<i64>, payload: Vec<u8> },
    /// Episodes that a learner played, in few bytes.
    Play(PlayBlock),
}

/// Codes of events: those that the curriculum writes (clause CUR-4 to CUR-7), and those of a run.
#[allow(missing_docs, reason = "the names are the specification's own")]
pub mod event_code {
    pub const PHASE: u16 = 1;
    pub const PROBE: u16 = 2;
    pub const LATCH_ON: u16 = 3;
    pub const LATCH_OFF: u16 = 4;
    pub const CLOSURE: u16 = 5;
    pub const ABORT: u16 = 6;
    pub const THRESH_STEP: u16 = 7;
    pub const RATCHET: u16 = 8;
    /// A unit of a run has ended: family, rung, try, solved, score, gates, steps.
    pub const UNIT_END: u16 = 64;
    /// A history goes on from another's snapshot.
    pub const RESTORED: u16 = 65;
    /// A unit of a run begins: family, rung, try. What was played follows, from step 0 of its learner on.
    pub const UNIT_BEGIN: u16 = 66;
    /// A file was written beside the ledger: its bytes as value, digest and name as payload.
    pub const ARTEFACT: u16 = 67;
    /// What a block of inputs to a service was answered: how many decisions as value, each of them as payload.
    pub const SERVED: u16 = 68;
    /// A round of learning took effect in a served world: world, steps learned from, patches let in and turned down.
    pub const PUBLISHED: u16 = 69;
    /// A person's answer changed something, or was taken back: the answer's input, the question, whether it was taken back;
    /// every number before and after as payload.
    pub const PEOPLE: u16 = 80;

    /// Segments were archived: first entry and end of what is gone as values, digest of the saved state and image as payload.
    pub const ARCHIVED: u16 = 88;

    /// A program of the control core logged words: its index as value, the words as payload.
    pub const LOGGED: u16 = 96;
    /// A program of the control core asked the teacher: domain, difficulty, context, seed and the task's number as values, the
    /// task's tree as payload.
    pub const TAUGHT: u16 = 97;
    /// The conditions of a program of the control core were shown before it may run: how many of them as value, programs and
    /// certificates as payload.
    pub const PROVEN: u16 = 98;
    /// What the scheduler and the barrier of a unit did: units of ACT, SYNTH and VERIFY, those that the safety override chose,
    /// barriers passed, priors moved.
    pub const SCHEDULED: u16 = 99;

    /// The name of a code, if it has one.
    pub fn name(code: u16) -> Option<&'static str> {
        let curriculum =
            ["PHASE", "PROBE", "LATCH_ON", "LATCH_OFF", "CLOSURE", "ABORT", "THRESH_STEP", "RATCHET"];
        match code {
            LOGGED => Some("LOGGED"),
            TAUGHT => Some("TAUGHT"),
            PROVEN => Some("PROVEN"),
            SCHEDULED => Some("SCHEDULED"),
            UNIT_END => Some("UNIT_END"),
            RESTORED => Some("RESTORED"),
            UNIT_BEGIN => Some("UNIT_BEGIN"),
            ARTEFACT => Some("ARTEFACT"),
            SERVED => Some("SERVED"),
            PUBLISHED => Some("PUBLISHED"),
            ARCHIVED => Some("ARCHIVED"),
            PEOPLE => Some("PEOPLE"),
            _ => curriculum.get(usize::from(code).wrapping_sub(1)).copied(),
        }
    }
}

impl Entry {
    /// The stored number of this entry's kind.
    pub fn kind(&self) -> u8 {
        match self {
            Entry::Genesis(_) => 0,
            Entry::StepBlock(_) => 1,
            Entry::Episode { .. } => 2,
            Entry::Patch(_) => 3,
            Entry::Reset { .. } => 4,
            Entry::Tables { .. } => 5,
            Entry::Snapshot { .. } => 6,
            Entry::ToolCall(_) => 7,
            Entry::HumanTask(_) => 8,
            Entry::Input { .. } => 9,
            Entry::Event { .. } => 10,
            Entry::Play(_) => 11,
        }
    }

    /// The step this entry belongs to, if it has one.
    pub fn step(&self) -> Option<u64> {
        match self {
            Entry::Genesis(_) => None,
            Entry::StepBlock(block) => Some(block.first_step),
            Entry::Play(block) => Some(block.first_step),
            Entry::Patch(patch) => Some(patch.step),
            Entry::ToolCall(call) => Some(call.step),
            Entry::HumanTask(task) => Some(task.step),
            Entry::Episode { step, .. }
            | Entry::Reset { step, .. }
            | Entry::Tables { step, .. }
            | Entry::Snapshot { step, .. }
            | Entry::Input { step, .. }
            | Entry::Event { step, .. } => Some(*step),
        }
    }

    /// One word for people.
    pub fn kind_name(&self) -> &'static str {
        KIND_NAMES[usize::from(self.kind())]
    }
}
