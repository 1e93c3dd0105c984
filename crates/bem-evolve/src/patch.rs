//! A patch: one proposed change to structure, with everything that is needed to judge it.
//!
//! The bytes are canonical: one patch has one encoding, and its digest covers all of it. A patch names the state
//! of the tables that it was made against and is worthless against any other. Its status is kept by the queue,
//! because it changes while the patch does not. Must not know whether the change is right.
//! Clauses: SCC-1, SCC-2; decisions D-24, D-35.
//!
//! | kind | what it does |
//! |---|---|
//! | RETIRE | the slot's expert is taken out of every bucket, its statistics go with it |
//! | RESET | the statistics of one bucket become neutral, no circuit changes |
//! | SPLIT | one bucket is divided by the parity of some bits; both halves keep the means with few visits |
//! | MERGE | several experts become one that does what each did on its own part of the inputs |
//! | SUPEROPT | the slot's circuit is replaced by a smaller one of the same meaning; statistics stay |
//! | TEACH_EDIT | a template is added to what the teacher may ask |
//! | MACRO | a sequence of experts, one working on what the other left, becomes one expert |
//! | SYNTH | a circuit synthesised from experience is installed in a free slot |

use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, OBSERVATION_WORDS};
use bem_base::fixed::Fixed;
use bem_circuit::netlist::Netlist;
use bem_machine::expert::{ExpertParts, OutputUse, Profile, ReadSpec, RoutingMetadata, WriteSpec};
use bem_machine::layout::StateLayout;
use bem_machine::route::directory::{Directory, RouteInput};
use bem_synth::policy::Policy;

/// Trace constraints that one patch may claim.
pub const EXAMPLES_MAX: usize = 4_096;
/// Steps of one trace constraint.
pub const EXAMPLE_STEPS_MAX: usize = 65_536;
/// Experts that one merge or macro may name.
pub const MEMBERS_MAX: usize = 16;
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
}

impl PatchKind {
    /// All kinds, in order of their numbers.
    pub const ALL: [PatchKind; 8] = [
        PatchKind::Retire,
        PatchKind::Reset,
        PatchKind::Split,
        PatchKind::Merge,
        PatchKind::Superoptimize,
        PatchKind::TeachEdit,
        PatchKind::Macro,
        PatchKind::Synthesize,
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
    /// Said to avoid every BAD action of the learned table.
    pub safe: bool,
}

impl Body {
    /// A policy placed into STATE: observation bits and memory are read, action and memory are written.
    pub fn from_policy(policy: &Policy, layout: &StateLayout, safe: bool) -> Body {
        let memory = layout.memory().take(policy.memory_bits()).map(|bit| bit as u16);
        let action = layout.action().map(|bit| bit as u16);
        Body {
            reads: policy.reads().iter().copied().chain(memory.clone()).collect(),
            writes: action.chain(memory).collect(),
            circuit: policy.circuit().clone(),
            sticky: 0 < policy.memory_bits(),
            safe,
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
            profile: Profile { sticky: self.sticky, safe: self.safe },
            routing: RoutingMetadata { macro_tag, ..RoutingMetadata::default() },
        }
    }

    fn encode(&self, writer: &mut Writer) {
        encode_words(writer, &self.reads);
        encode_words(writer, &self.writes);
        self.circuit.encode(writer);
        writer.bool(self.sticky);
        writer.bool(self.safe);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Body, DecodeError> {
        Ok(Body {
            reads: decode_words(reader)?,
            writes: decode_words(reader)?,
            circuit: Netlist::decode(reader)?,
            sticky: reader.bool()?,
            safe: reader.bool()?,
        })
    }
}

/// One step of a trace constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExampleStep {
    /// What was seen.
    pub observation: Bits,
    /// The action that the expert claims to take, if it claims one here.
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
    /// RESET.
    Reset {
        /// The bucket to forget.
        bucket: u16,
    },
    /// SPLIT.
    Split {
        /// The bucket to divide.
        bucket: u16,
        /// The bits whose parity divides it.
        by: Vec<RouteInput>,
        /// The directory afterwards, as the proposer sees it.
        after: Directory,
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
    /// MACRO.
    Macro {
        /// Slots in the order in which they act.
        sequence: Vec<u8>,
        /// The one expert.
        body: Body,
    },
    /// SYNTH.
    Synthesize {
        /// The circuit.
        policy: Policy,
        /// Whether it claims to avoid every BAD action of the learned table.
        safe: bool,
        /// What it claims to explain.
        examples: Vec<Example>,
    },
}

impl Change {
    /// Which kind this is.
    pub fn kind(&self) -> PatchKind {
        match self {
            Change::Retire { .. } => PatchKind::Retire,
            Change::Reset { .. } => PatchKind::Reset,
            Change::Split { .. } => PatchKind::Split,
            Change::Merge { .. } => PatchKind::Merge,
            Change::Superoptimize { .. } => PatchKind::Superoptimize,
            Change::TeachEdit { .. } => PatchKind::TeachEdit,
            Change::Macro { .. } => PatchKind::Macro,
            Change::Synthesize { .. } => PatchKind::Synthesize,
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

    /// The digest of the canonical bytes.
    pub fn digest(&self) -> Digest {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        digest::hash_parts("bem/patch", &[writer.as_bytes()])
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.serial);
        writer.u16(self.family);
        writer.raw(self.parent.as_bytes());
        writer.i64(self.effects.return_gain.to_raw());
        writer.i32(self.effects.gates_saved);
        writer.i64(self.effects.safety_gain.to_raw());
        writer.i64(self.effects.novelty.to_raw());
        writer.u8(self.kind() as u8);
        encode_change(&self.change, writer);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Patch, DecodeError> {
        let (serial, family) = (reader.u64()?, reader.u16()?);
        let mut parent = [0; 32];
        parent.copy_from_slice(reader.raw(32)?);
        let effects = ExpectedEffects {
            return_gain: Fixed::from_raw(reader.i64()?),
            gates_saved: reader.i32()?,
            safety_gain: Fixed::from_raw(reader.i64()?),
            novelty: Fixed::from_raw(reader.i64()?),
        };
        let change = decode_change(reader)?;
        Ok(Patch { serial, family, parent: Digest::from_bytes(parent), change, effects })
    }
}

fn encode_change(change: &Change, writer: &mut Writer) {
    match change {
        Change::Retire { slot } => writer.u8(*slot),
        Change::Reset { bucket } => writer.u16(*bucket),
        Change::Split { bucket, by, after } => {
            writer.u16(*bucket);
            writer.length(by.len());
            by.iter().for_each(|input| encode_route_input(*input, writer));
            after.encode(writer);
        }
        Change::Merge { members, body } => {
            writer.length(members.len());
            for member in members {
                writer.u8(member.slot);
                writer.length(member.domain.len());
                for (bit, value) in &member.domain {
                    writer.u16(*bit);
                    writer.bool(*value);
                }
            }
            body.encode(writer);
        }
        Change::Superoptimize { slot, circuit } => {
            writer.u8(*slot);
            circuit.encode(writer);
        }
        Change::TeachEdit { template, tree, difficulty } => {
            writer.u32(*template);
            writer.text(tree);
            writer.i64(difficulty.to_raw());
        }
        Change::Macro { sequence, body } => {
            writer.bytes(sequence);
            body.encode(writer);
        }
        Change::Synthesize { policy, safe, examples } => {
            policy.encode(writer);
            writer.bool(*safe);
            writer.length(examples.len());
            examples.iter().for_each(|example| encode_example(example, writer));
        }
    }
}

fn decode_change(reader: &mut Reader<'_>) -> Result<Change, DecodeError> {
    let unknown = reader.error("an unknown patch kind");
    let kind = *PatchKind::ALL.get(usize::from(reader.u8()?)).ok_or(unknown)?;
    Ok(match kind {
        PatchKind::Retire => Change::Retire { slot: reader.u8()? },
        PatchKind::Reset => Change::Reset { bucket: reader.u16()? },
        PatchKind::Split => {
            let bucket = reader.u16()?;
            let by = (0..reader.length(6)?)
                .map(|_| decode_route_input(reader))
                .collect::<Result<Vec<_>, DecodeError>>()?;
            Change::Split { bucket, by, after: Directory::decode(reader)? }
        }
        PatchKind::Merge => {
            let count = bounded(reader, 5, MEMBERS_MAX, "more members than a merge may have")?;
            let members = (0..count).map(|_| decode_member(reader)).collect::<Result<_, _>>()?;
            Change::Merge { members, body: Body::decode(reader)? }
        }
        PatchKind::Superoptimize => {
            Change::Superoptimize { slot: reader.u8()?, circuit: Netlist::decode(reader)? }
        }
        PatchKind::TeachEdit => {
            let template = reader.u32()?;
            let long = reader.error("a longer template than allowed");
            let tree = reader.text()?.to_string();
            if TREE_BYTES_MAX < tree.len() {
                return Err(long);
            }
            Change::TeachEdit { template, tree, difficulty: Fixed::from_raw(reader.i64()?) }
        }
        PatchKind::Macro => {
            let long = reader.error("a longer sequence than a macro may have");
            let sequence = reader.bytes()?.to_vec();
            if MEMBERS_MAX < sequence.len() {
                return Err(long);
            }
            Change::Macro { sequence, body: Body::decode(reader)? }
        }
        PatchKind::Synthesize => {
            let policy = Policy::decode(reader)?;
            let safe = reader.bool()?;
            let count = bounded(reader, 4, EXAMPLES_MAX, "more examples than a patch may have")?;
            let examples = (0..count).map(|_| decode_example(reader)).collect::<Result<_, _>>()?;
            Change::Synthesize { policy, safe, examples }
        }
    })
}

fn bounded(
    reader: &mut Reader<'_>,
    item_size_min: usize,
    maximum: usize,
    reason: &'static str,
) -> Result<usize, DecodeError> {
    let start = reader.clone();
    let count = reader.length(item_size_min)?;
    if count <= maximum { Ok(count) } else { Err(start.error(reason)) }
}

fn encode_words(writer: &mut Writer, words: &[u16]) {
    writer.length(words.len());
    words.iter().for_each(|word| writer.u16(*word));
}

fn decode_words(reader: &mut Reader<'_>) -> Result<Vec<u16>, DecodeError> {
    (0..reader.length(2)?).map(|_| reader.u16()).collect()
}

fn encode_route_input(input: RouteInput, writer: &mut Writer) {
    let (kind, place, bit) = match input {
        RouteInput::State(bit) => (0, u32::from(bit), 0),
        RouteInput::Shared { address, bit } => (1, address, bit),
    };
    writer.u8(kind);
    writer.u32(place);
    writer.u8(bit);
}

fn decode_route_input(reader: &mut Reader<'_>) -> Result<RouteInput, DecodeError> {
    let unknown = reader.error("an unknown routing input");
    match (reader.u8()?, reader.u32()?, reader.u8()?) {
        (0, bit, 0) if bit < 1 << 16 => Ok(RouteInput::State(bit as u16)),
        (1, address, bit) if bit < 64 => Ok(RouteInput::Shared { address, bit }),
        _ => Err(unknown),
    }
}

fn decode_member(reader: &mut Reader<'_>) -> Result<Member, DecodeError> {
    let slot = reader.u8()?;
    let domain = (0..reader.length(3)?)
        .map(|_| Ok((reader.u16()?, reader.bool()?)))
        .collect::<Result<_, DecodeError>>()?;
    Ok(Member { slot, domain })
}

fn encode_example(example: &Example, writer: &mut Writer) {
    writer.length(example.steps.len());
    for step in &example.steps {
        step.observation.0.iter().for_each(|word| writer.u64(*word));
        writer.bool(step.wanted.is_some());
        writer.u16(step.wanted.unwrap_or(0));
    }
}

fn decode_example(reader: &mut Reader<'_>) -> Result<Example, DecodeError> {
    let count =
        bounded(reader, 8 * OBSERVATION_WORDS + 3, EXAMPLE_STEPS_MAX, "a longer example than an episode")?;
    let mut steps = Vec::with_capacity(count);
    for _ in 0..count {
        let mut observation = Bits::ZERO;
        for word in &mut observation.0 {
            *word = reader.u64()?;
        }
        let stray = reader.error("an action where none is wanted");
        let wanted = match (reader.bool()?, reader.u16()?) {
            (true, action) => Some(action),
            (false, 0) => None,
            (false, _) => return Err(stray),
        };
        steps.push(ExampleStep { observation, wanted });
    }
    Ok(Example { steps })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::battery::Laboratory;
    use bem_base::prng::Prng;
    use proptest::prelude::*;

    fn bytes_of(patch: &Patch) -> Vec<u8> {
        let mut writer = Writer::new();
        patch.encode(&mut writer);
        writer.into_bytes()
    }

    #[test]
    fn a_patch_of_every_kind_comes_back_from_its_bytes() {
        let laboratory = Laboratory::new();
        for kind in PatchKind::ALL {
            let patch = laboratory.good_patch(kind, &mut Prng::stream(1, "bytes"));
            assert_eq!(patch.kind(), kind);
            let bytes = bytes_of(&patch);
            let mut reader = Reader::new(&bytes);
            assert_eq!(Patch::decode(&mut reader), Ok(patch));
            assert_eq!(reader.finish(), Ok(()));
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Patch::decode(&mut Reader::new(&bytes));
        }

        #[test]
        fn what_decodes_after_a_mutation_has_exactly_these_bytes(
            kind in 0usize..8, seed in 0u64..50, place in 0usize..4_096, flip in 1u8..,
        ) {
            let laboratory = Laboratory::new();
            let patch = laboratory.good_patch(PatchKind::ALL[kind], &mut Prng::stream(seed, "mutate"));
            let mut bytes = bytes_of(&patch);
            let place = place % bytes.len();
            bytes[place] ^= flip;
            let mut reader = Reader::new(&bytes);
            if let Ok(other) = Patch::decode(&mut reader) && reader.remaining() == 0 {
                prop_assert_eq!(bytes_of(&other), bytes);
                prop_assert_ne!(other.digest(), patch.digest());
            }
        }
    }
}
