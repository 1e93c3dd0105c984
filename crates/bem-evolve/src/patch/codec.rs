//! The canonical bytes of patches: one patch, one encoding.
//!
//! Decoding is bounded: every count is held against the bytes that are left and against the bounds of a patch before
//! anything is allocated. Must not know whether the change is right. Clauses: SCC-1, SCC-2.

use super::{
    Body, Change, EXAMPLE_STEPS_MAX, EXAMPLES_MAX, Example, ExampleStep, ExpectedEffects, Form, MEMBERS_MAX,
    Member, PLAY_STEPS_MAX, Patch, TREE_BYTES_MAX,
};
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, OBSERVATION_WORDS};
use bem_base::fixed::Fixed;
use bem_base::limits::BUCKETS_MAX;
use bem_circuit::netlist::Netlist;
use bem_machine::guard::{RULES_MAX, Rule};
use bem_machine::held::Adaptation;
use bem_machine::route::directory::{Directory, RouteInput};
use bem_synth::policy::Policy;
use bem_synth::statement::Statement;

impl Patch {
    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.serial);
        writer.u16(self.family);
        writer.raw(self.parent.as_bytes());
        writer.i64(self.effects.return_gain.to_raw());
        writer.i32(self.effects.gates_saved);
        writer.i64(self.effects.safety_gain.to_raw());
        writer.i64(self.effects.novelty.to_raw());
        self.change.encode(writer);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Patch, DecodeError> {
        let (serial, family) = (reader.u64()?, reader.u16()?);
        let parent = Digest::decode(reader)?;
        let effects = ExpectedEffects {
            return_gain: Fixed::from_raw(reader.i64()?),
            gates_saved: reader.i32()?,
            safety_gain: Fixed::from_raw(reader.i64()?),
            novelty: Fixed::from_raw(reader.i64()?),
        };
        let change = decode_change(reader)?;
        Ok(Patch { serial, family, parent, change, effects })
    }
}

impl Body {
    fn encode(&self, writer: &mut Writer) {
        encode_words(writer, &self.reads);
        encode_words(writer, &self.writes);
        self.circuit.encode(writer);
        writer.bool(self.sticky);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Body, DecodeError> {
        Ok(Body {
            reads: decode_words(reader)?,
            writes: decode_words(reader)?,
            circuit: Netlist::decode(reader)?,
            sticky: reader.bool()?,
        })
    }
}

impl Change {
    /// Writes the canonical bytes: the form, which says the kind, and what it needs.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.u8(self.form() as u8);
        match self {
            Change::Retire { slot } => writer.u8(*slot),
            Change::Reset { bucket, before } => {
                writer.u16(*bucket);
                writer.u64(*before);
            }
            Change::Split { cuts, after } => {
                writer.length(cuts.len());
                for (bucket, by) in cuts {
                    writer.u16(*bucket);
                    writer.length(by.len());
                    by.iter().for_each(|input| encode_route_input(*input, writer));
                }
                after.encode(writer);
            }
            Change::Join { pairs, after } => {
                writer.length(pairs.len());
                for (one, other) in pairs {
                    writer.u16(*one);
                    writer.u16(*other);
                }
                after.encode(writer);
            }
            Change::Hold { actions, rule } => {
                rule.encode(writer);
                encode_words(writer, actions);
            }
            Change::Guard { rules } => {
                writer.length(rules.len());
                rules.iter().for_each(|rule| rule.encode(writer));
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
            Change::Play { sequence, policy, examples } => {
                writer.bytes(sequence);
                encode_policy(policy, examples, writer);
            }
            Change::Synthesize { policy, statement, examples, exceptions } => {
                encode_policy(policy, examples, writer);
                statement.encode(writer);
                writer.u32(*exceptions);
            }
        }
    }
}

fn decode_change(reader: &mut Reader<'_>) -> Result<Change, DecodeError> {
    let unknown = reader.error("an unknown patch kind");
    let form = Form::from_number(reader.u8()?).ok_or(unknown)?;
    Ok(match form {
        Form::Reset => Change::Reset { bucket: reader.u16()?, before: reader.u64()? },
        Form::Hold => {
            let rule = Adaptation::decode(reader)?;
            Change::Hold { actions: decode_words(reader)?, rule }
        }
        Form::Guard => {
            let count = bounded(reader, Rule::BYTES, RULES_MAX, "more rules than a guard may have")?;
            let rules = (0..count).map(|_| Rule::decode(reader)).collect::<Result<_, _>>()?;
            Change::Guard { rules }
        }
        Form::Join => {
            let count = bounded(reader, 4, BUCKETS_MAX, "more pairs than there can be buckets")?;
            let pairs = (0..count)
                .map(|_| Ok((reader.u16()?, reader.u16()?)))
                .collect::<Result<Vec<_>, DecodeError>>()?;
            Change::Join { pairs, after: Directory::decode(reader)? }
        }
        Form::Play => {
            let sequence = decode_sequence(reader, PLAY_STEPS_MAX)?;
            let (policy, examples) = decode_policy(reader)?;
            Change::Play { sequence, policy, examples }
        }
        Form::Retire => Change::Retire { slot: reader.u8()? },
        Form::Split => {
            let count = bounded(reader, 6, BUCKETS_MAX, "more divisions than there can be buckets")?;
            let cuts = (0..count).map(|_| decode_cut(reader)).collect::<Result<_, _>>()?;
            Change::Split { cuts, after: Directory::decode(reader)? }
        }
        Form::Merge => {
            let count = bounded(reader, 5, MEMBERS_MAX, "more members than a merge may have")?;
            let members = (0..count).map(|_| decode_member(reader)).collect::<Result<_, _>>()?;
            Change::Merge { members, body: Body::decode(reader)? }
        }
        Form::Superoptimize => {
            Change::Superoptimize { slot: reader.u8()?, circuit: Netlist::decode(reader)? }
        }
        Form::TeachEdit => {
            let template = reader.u32()?;
            let long = reader.error("a longer template than allowed");
            let tree = reader.text()?.to_string();
            if TREE_BYTES_MAX < tree.len() {
                return Err(long);
            }
            Change::TeachEdit { template, tree, difficulty: Fixed::from_raw(reader.i64()?) }
        }
        Form::Synthesize => {
            let (policy, examples) = decode_policy(reader)?;
            let (statement, exceptions) = (Statement::decode(reader)?, reader.u32()?);
            Change::Synthesize { policy, statement, examples, exceptions }
        }
    })
}

fn encode_policy(policy: &Policy, examples: &[Example], writer: &mut Writer) {
    policy.encode(writer);
    // Words of an observation that are clear in all examples are left out.
    let steps = examples.iter().flat_map(|example| &example.steps);
    let words = steps.map(|step| words_of(&step.observation)).max().unwrap_or(0);
    writer.u8(words as u8);
    writer.length(examples.len());
    examples.iter().for_each(|example| encode_example(example, words, writer));
}

fn decode_policy(reader: &mut Reader<'_>) -> Result<(Policy, Vec<Example>), DecodeError> {
    let policy = Policy::decode(reader)?;
    let malformed = reader.error("observations of another width than they need");
    let words = usize::from(reader.u8()?);
    if OBSERVATION_WORDS < words {
        return Err(malformed);
    }
    let count = bounded(reader, 4, EXAMPLES_MAX, "more examples than a patch may have")?;
    let examples = (0..count).map(|_| decode_example(reader, words)).collect::<Result<Vec<Example>, _>>()?;
    let steps = examples.iter().flat_map(|example| &example.steps);
    if steps.map(|step| words_of(&step.observation)).max().unwrap_or(0) != words {
        return Err(malformed);
    }
    Ok((policy, examples))
}

fn decode_sequence(reader: &mut Reader<'_>, maximum: usize) -> Result<Vec<u8>, DecodeError> {
    let long = reader.error("a longer sequence than a macro may have");
    let sequence = reader.bytes()?.to_vec();
    if sequence.len() <= maximum { Ok(sequence) } else { Err(long) }
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

fn decode_cut(reader: &mut Reader<'_>) -> Result<(u16, Vec<RouteInput>), DecodeError> {
    let bucket = reader.u16()?;
    let by = (0..reader.length(6)?).map(|_| decode_route_input(reader)).collect::<Result<_, _>>()?;
    Ok((bucket, by))
}

fn decode_member(reader: &mut Reader<'_>) -> Result<Member, DecodeError> {
    let slot = reader.u8()?;
    let domain = (0..reader.length(3)?)
        .map(|_| Ok((reader.u16()?, reader.bool()?)))
        .collect::<Result<_, DecodeError>>()?;
    Ok(Member { slot, domain })
}

/// Words up to the last one that is not clear.
fn words_of(observation: &Bits) -> usize {
    observation.0.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1)
}

fn encode_example(example: &Example, words: usize, writer: &mut Writer) {
    writer.length(example.steps.len());
    for step in &example.steps {
        step.observation.0[..words].iter().for_each(|word| writer.u64(*word));
        writer.bool(step.wanted.is_some());
        writer.u16(step.wanted.unwrap_or(0));
    }
}

fn decode_example(reader: &mut Reader<'_>, words: usize) -> Result<Example, DecodeError> {
    let count = bounded(reader, 8 * words + 3, EXAMPLE_STEPS_MAX, "a longer example than an episode")?;
    let mut steps = Vec::with_capacity(count);
    for _ in 0..count {
        let mut observation = Bits::ZERO;
        for word in &mut observation.0[..words] {
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
    fn a_patch_of_every_form_comes_back_from_its_bytes() {
        let laboratory = Laboratory::new();
        for form in Form::ALL {
            let patch = laboratory.good_patch(form, &mut Prng::stream(1, "bytes"));
            assert_eq!(patch.change.form(), form);
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
            form in 0usize..Form::ALL.len(), seed in 0u64..50, place in 0usize..4_096, flip in 1u8..,
        ) {
            let laboratory = Laboratory::new();
            let patch = laboratory.good_patch(Form::ALL[form], &mut Prng::stream(seed, "mutate"));
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
