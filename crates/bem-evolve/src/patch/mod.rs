//! A patch: one proposed change to structure, with everything that is needed to judge it.
//!
//! The bytes are canonical: one patch has one encoding, and its digest covers all of it. A patch names the state
//! of the tables that it was made against and is worthless against any other. Its status is kept by the queue,
//! because it changes while the patch does not. Must not know whether the change is right.
//! Clauses: SCC-1, SCC-2; decisions D-24, D-35.
//!
//! | kind | what it does |
//! |---|---|
//! | RETIRE | an expert that is not held goes |
//! | RESET | a bucket forgets what came before a moment; no circuit changes |
//! | SPLIT | buckets are divided by the parity of some bits; what is held stays the same |
//! | MERGE | buckets that hold the same action become one; or several experts become one that does what each did on its own part of the inputs, and is held |
//! | SUPEROPT | the slot's circuit is replaced by a smaller one of the same meaning |
//! | TEACH_EDIT | a template is added to what the teacher may ask |
//! | MACRO | what an expert does from the start of an episode on is played by a counter, which is held |
//! | SYNTH | a circuit synthesised from experience is installed in a free slot and held |
//! | HOLD | other plain actions are held, or they adapt by another rule |
//! | GUARD | other actions are masked for what is seen |

mod codec;

use bem_base::digest::{self, Digest};
use bem_base::encode::Writer;
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_circuit::netlist::Netlist;
use bem_machine::expert::{ExpertParts, OutputUse, Profile, ReadSpec, RoutingMetadata, WriteSpec};
use bem_machine::guard::Rule;
use bem_machine::held::Adaptation;
use bem_machine::layout::StateLayout;
use bem_machine::route::directory::{Directory, RouteInput};
use bem_synth::policy::Policy;
use bem_synth::statement::Statement;

/// Trace constraints that one patch may claim.
pub const EXAMPLES_MAX: usize = 4_096;
/// Steps of one trace constraint.
pub const EXAMPLE_STEPS_MAX: usize = 65_536;
/// Experts that one merge or macro may name.
pub const MEMBERS_MAX: usize = 16;
/// Steps of a sequence that one macro may play.
pub const PLAY_STEPS_MAX: usize = 64;
/// Bytes of a template's text.
pub const TREE_BYTES_MAX: usize = 4_096;

/// What a patch changes. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PatchKind {
    /// Takes an expert out.
    Retire = 0,
    /// Makes statistics neutral again.
    Reset = 1,
    /// Divides a bucket.
    Split = 2,
    /// Makes one expert of several.
    Merge = 3,
    /// A smaller circuit of the same meaning.
    #[doc(alias = "SUPEROPT")]
    Superoptimize = 4,
    /// A new template.
    #[doc(alias = "TEACH_EDIT")]
    TeachEdit = 5,
    /// A sequence of experts becomes one.
    Macro = 6,
    /// An expert synthesised from experience.
    #[doc(alias = "SYNTH")]
    Synthesize = 7,
    /// Other plain actions are held.
    Hold = 8,
    /// Other actions are masked.
    Guard = 9,
}

impl PatchKind {
    /// All kinds, in order of their numbers.
    pub const ALL: [PatchKind; 10] = [
        PatchKind::Retire,
        PatchKind::Reset,
        PatchKind::Split,
        PatchKind::Merge,
        PatchKind::Superoptimize,
        PatchKind::TeachEdit,
        PatchKind::Macro,
        PatchKind::Synthesize,
        PatchKind::Hold,
        PatchKind::Guard,
    ];
}

/// An expert as patches carry it: it reads and writes STATE only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The bits of STATE that the circuit's inputs are.
    pub reads: Vec<u16>,
    /// The bits of STATE that the circuit's outputs go to.
    pub writes: Vec<u16>,
    /// The circuit.
    pub circuit: Netlist,
    /// Chosen for whole episodes, because it remembers.
    pub sticky: bool,
}

impl Body {
    /// A policy placed into STATE: observation bits and memory are read, action and memory are written.
    pub fn from_policy(policy: &Policy, layout: &StateLayout) -> Body {
        let memory = layout.memory().take(policy.memory_bits()).map(|bit| bit as u16);
        let action = layout.action().map(|bit| bit as u16);
        Body {
            reads: policy.reads().iter().copied().chain(memory.clone()).collect(),
            writes: action.chain(memory).collect(),
            circuit: policy.circuit().clone(),
            sticky: 0 < policy.memory_bits(),
        }
    }

    /// What an expert is built from.
    pub fn to_parts(&self, macro_tag: u32) -> ExpertParts {
        ExpertParts {
            read: ReadSpec { state_bits: self.reads.clone(), shared: Vec::new() },
            write: WriteSpec {
                outputs: self.writes.iter().map(|bit| OutputUse::State(*bit)).collect(),
                integers: Vec::new(),
            },
            circuit: self.circuit.clone(),
            profile: Profile { sticky: self.sticky },
            routing: RoutingMetadata { macro_tag, ..RoutingMetadata::default() },
        }
    }
}

/// One step of a trace constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExampleStep {
    /// What was seen.
    pub observation: Bits,
    /// The action that the log speaks for, or that a macro claims to take, if there is one here.
    pub wanted: Option<u16>,
}

/// A trace constraint: what was seen from the start of an episode on, and what is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Steps in order; memory is zero before the first.
    pub steps: Vec<ExampleStep>,
}

/// One expert that is merged, and where: all states in which these bits have these values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its slot.
    pub slot: u8,
    /// Bits of STATE and their values.
    pub domain: Vec<(u16, bool)>,
}

/// The payload, which says the kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// RETIRE.
    Retire {
        /// The slot to empty.
        slot: u8,
    },
    /// RESET of one bucket of a world.
    Reset {
        /// The bucket.
        bucket: u16,
        /// What came before this moment no longer counts.
        before: u64,
    },
    /// SPLIT: all divisions between two barriers at once.
    Split {
        /// The buckets, one after the other, and the bits whose parity divides each.
        cuts: Vec<(u16, Vec<RouteInput>)>,
        /// The directory afterwards, as the proposer sees it.
        after: Directory,
    },
    /// MERGE of buckets that hold the same action.
    Join {
        /// The two sides of one test, one pair after the other.
        pairs: Vec<(u16, u16)>,
        /// The directory afterwards, as the proposer sees it.
        after: Directory,
    },
    /// HOLD.
    Hold {
        /// The action of every bucket.
        actions: Vec<u16>,
        /// How they adapt within an episode.
        rule: Adaptation,
    },
    /// GUARD.
    Guard {
        /// All rules from now on.
        rules: Vec<Rule>,
    },
    /// MERGE.
    Merge {
        /// Who is merged, and where each is right.
        members: Vec<Member>,
        /// The one expert.
        body: Body,
    },
    /// SUPEROPT.
    Superoptimize {
        /// The slot.
        slot: u8,
        /// The smaller circuit.
        circuit: Netlist,
    },
    /// TEACH_EDIT.
    TeachEdit {
        /// The template it came from.
        template: u32,
        /// The new tree as text.
        tree: String,
        /// Its difficulty by structure, as the proposer sees it.
        difficulty: Fixed,
    },
    /// MACRO in time: what a sequence of experts does from the start of an episode on, by a counter.
    Play {
        /// The slot that acts at each step.
        sequence: Vec<u8>,
        /// The one expert.
        policy: Policy,
        /// Episodes in which the sequence acted, and what it did.
        examples: Vec<Example>,
    },
    /// SYNTH.
    Synthesize {
        /// The circuit.
        policy: Policy,
        /// What the circuit does for every observation and every content of memory.
        statement: Statement,
        /// Rows of the log, chosen without a look at the circuit.
        examples: Vec<Example>,
        /// In how many of the rows the circuit does something else.
        exceptions: u32,
    },
}

/// The form of a change: its kind, and which of the kind's subjects it is about. The numbers are stored and never change; those
/// between that are missing were in use once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Form {
    /// RETIRE.
    Retire = 0,
    /// MERGE of experts.
    Merge = 3,
    /// SUPEROPT.
    Superoptimize = 4,
    /// TEACH_EDIT.
    TeachEdit = 5,
    /// SYNTH.
    Synthesize = 7,
    /// MACRO.
    Play = 11,
    /// SPLIT of buckets.
    Split = 12,
    /// MERGE of buckets.
    Join = 13,
    /// RESET of a bucket.
    Reset = 14,
    /// HOLD.
    Hold = 15,
    /// GUARD.
    Guard = 16,
}

impl Form {
    /// All forms, in order of their numbers.
    pub const ALL: [Form; 11] = [
        Form::Retire,
        Form::Merge,
        Form::Superoptimize,
        Form::TeachEdit,
        Form::Synthesize,
        Form::Play,
        Form::Split,
        Form::Join,
        Form::Reset,
        Form::Hold,
        Form::Guard,
    ];

    /// The form with this stored number.
    pub fn from_number(number: u8) -> Option<Form> {
        Form::ALL.into_iter().find(|form| *form as u8 == number)
    }

    /// The kind that it is a form of.
    pub const fn kind(self) -> PatchKind {
        match self {
            Form::Retire => PatchKind::Retire,
            Form::Reset => PatchKind::Reset,
            Form::Split => PatchKind::Split,
            Form::Merge | Form::Join => PatchKind::Merge,
            Form::Superoptimize => PatchKind::Superoptimize,
            Form::TeachEdit => PatchKind::TeachEdit,
            Form::Play => PatchKind::Macro,
            Form::Synthesize => PatchKind::Synthesize,
            Form::Hold => PatchKind::Hold,
            Form::Guard => PatchKind::Guard,
        }
    }
}

impl Change {
    /// Which form this is.
    pub fn form(&self) -> Form {
        match self {
            Change::Retire { .. } => Form::Retire,
            Change::Reset { .. } => Form::Reset,
            Change::Split { .. } => Form::Split,
            Change::Merge { .. } => Form::Merge,
            Change::Superoptimize { .. } => Form::Superoptimize,
            Change::Join { .. } => Form::Join,
            Change::Hold { .. } => Form::Hold,
            Change::Guard { .. } => Form::Guard,
            Change::TeachEdit { .. } => Form::TeachEdit,
            Change::Play { .. } => Form::Play,
            Change::Synthesize { .. } => Form::Synthesize,
        }
    }

    /// Which kind this is.
    pub fn kind(&self) -> PatchKind {
        self.form().kind()
    }
}

/// What a patch is about: each subject has its own parent digest, so that a change of one leaves patches about the others
/// as they are. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Subject {
    /// The experts of a family and which of them is held.
    Pool = 0,
    /// Buckets, plain actions and guard of a family.
    Routing = 1,
    /// The teacher's templates.
    Templates = 2,
}

impl Subject {
    /// All of them, in order of their numbers.
    pub const ALL: [Subject; 3] = [Subject::Pool, Subject::Routing, Subject::Templates];
}

impl Change {
    /// What it is about.
    pub fn subject(&self) -> Subject {
        match self {
            Change::Split { .. }
            | Change::Join { .. }
            | Change::Reset { .. }
            | Change::Hold { .. }
            | Change::Guard { .. } => Subject::Routing,
            Change::TeachEdit { .. } => Subject::Templates,
            _ => Subject::Pool,
        }
    }
}

/// What the proposer expects. Nothing is decided by it: it orders the queue's work and is compared with what comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(alias = "effects_est")]
pub struct ExpectedEffects {
    /// Gain in return, over the declared range.
    pub return_gain: Fixed,
    /// Gates saved.
    pub gates_saved: i32,
    /// Fewer BAD episodes, as a share.
    pub safety_gain: Fixed,
    /// What is new about it, from zero to one.
    pub novelty: Fixed,
}

/// One proposed change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "PATCH")]
pub struct Patch {
    /// Never used twice; a later patch has a higher one.
    pub serial: u64,
    /// The family it is about; TEACH_EDIT belongs to none and says zero.
    pub family: u16,
    /// The digest of what it was made against: see [`crate::apply::Tables::parent`].
    pub parent: Digest,
    /// What it does.
    pub change: Change,
    /// What it is expected to bring.
    pub effects: ExpectedEffects,
}

impl Patch {
    /// Which kind this is.
    pub fn kind(&self) -> PatchKind {
        self.change.kind()
    }

    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        writer.into_bytes()
    }

    /// The digest of the canonical bytes.
    pub fn digest(&self) -> Digest {
        digest::hash_parts("bem/patch", &[&self.to_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_that_can_be_written_down_has_a_form_at_its_number() {
        // The list cannot be compared with the enum by the compiler, so its source is read.
        let source = include_str!("mod.rs");
        let body = source.split("\npub enum Change {\n").nth(1).unwrap().split("\n}\n").next().unwrap();
        let is_variant = |line: &&str| {
            line.strip_prefix("    ").is_some_and(|rest| rest.starts_with(|first: char| first.is_uppercase()))
        };
        let mut variants: Vec<&str> = body
            .lines()
            .filter(is_variant)
            .map(|line| line.trim().trim_end_matches([' ', '{', ',']))
            .collect();
        let mut forms: Vec<String> = Form::ALL.iter().map(|form| format!("{form:?}")).collect();
        assert!(Form::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        for form in Form::ALL {
            assert_eq!(Form::from_number(form as u8), Some(form));
        }
        variants.sort_unstable();
        forms.sort_unstable();
        assert_eq!(variants, forms);
    }
}
