//! The bytes of an entry, as `docs/formats/ledger.md` draws them.
//!
//! A decoder accepts exactly what an encoder can produce: lengths are checked before anything is reserved, lists are in
//! order, identifiers carry their check bits. Clauses: LOG-1, LOG-2, ID-2.

use super::{
    Certificate, ENTRY_FORMAT, Entry, Genesis, HumanTask, InputSource, PatchEvent, PatchKind, PatchStatus,
    ResetCause, StepBlock, Table, TableEdit, TableRoots, ToolCall, Verdict,
};
use crate::experience::{EXPERIENCE_BYTES_MIN, Experience};
use crate::limits::{
    CERTIFICATES_MAX, CODE_TEXT_MAX, EDITS_MAX, EVENT_VALUES_MAX, STEP_RECORD_BYTES, STEP_RECORDS_MAX,
    TABLE_SLOTS_MAX,
};
use crate::play::PlayBlock;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::ids::ObjectId;

impl Entry {
    /// The canonical bytes. Fields beyond the limits of `limits.rs` are a bug of the caller.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(ENTRY_FORMAT);
        writer.u8(self.kind());
        self.encode_body(&mut writer);
        writer.into_bytes()
    }

    fn encode_body(&self, writer: &mut Writer) {
        match self {
            Entry::Genesis(genesis) => {
                assert!(genesis.code.len() <= CODE_TEXT_MAX);
                put(writer, &genesis.instance);
                put(writer, &genesis.configuration);
                writer.text(&genesis.code);
                writer.raw(&genesis.public_key);
            }
            Entry::StepBlock(block) => encode_step_block(writer, block),
            Entry::Episode { episode, task, step, length, total_return, regret, discarded } => {
                writer.u64(*episode);
                writer.u64(*task);
                writer.u64(*step);
                writer.u32(*length);
                writer.i64(*total_return);
                writer.i64(*regret);
                writer.bool(*discarded);
            }
            Entry::Patch(patch) => encode_patch(writer, patch),
            Entry::Reset { step, family, bucket, cause } => {
                writer.u64(*step);
                writer.u32(family.to_word());
                writer.u32(*bucket);
                writer.u8(*cause as u8);
            }
            Entry::Tables { step, edits, roots } => {
                writer.u64(*step);
                encode_edits(writer, edits);
                roots.iter().for_each(|root| put(writer, root));
            }
            Entry::Snapshot { step, manifest, size_bytes, kept } => {
                writer.u64(*step);
                put(writer, manifest);
                writer.u64(*size_bytes);
                writer.u8(*kept);
            }
            Entry::ToolCall(call) => call.encode(writer),
            Entry::HumanTask(task) => task.encode(writer),
            Entry::Input { step, source, payload } => {
                writer.u64(*step);
                writer.u8(*source as u8);
                writer.bytes(payload);
            }
            Entry::Event { step, code, values, payload } => {
                assert!(values.len() <= EVENT_VALUES_MAX);
                writer.u64(*step);
                writer.u16(*code);
                writer.length(values.len());
                values.iter().for_each(|value| writer.i64(*value));
                writer.bytes(payload);
            }
            Entry::Play(block) => block.encode(writer),
        }
    }

    /// Reads an entry; anything that `to_bytes` could not have written is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Entry, DecodeError> {
        let mut reader = Reader::new(bytes);
        let format_error = reader.error("an entry written by another version of bem: its format is not 2");
        if reader.u8()? != ENTRY_FORMAT {
            return Err(format_error);
        }
        let entry = Entry::decode_body(&mut reader)?;
        reader.finish()?;
        Ok(entry)
    }

    fn decode_body(reader: &mut Reader<'_>) -> Result<Entry, DecodeError> {
        let kind_error = reader.error("an entry of unknown kind");
        Ok(match reader.u8()? {
            0 => Entry::Genesis(decode_genesis(reader)?),
            1 => Entry::StepBlock(decode_step_block(reader)?),
            2 => Entry::Episode {
                episode: reader.u64()?,
                task: reader.u64()?,
                step: reader.u64()?,
                length: reader.u32()?,
                total_return: reader.i64()?,
                regret: reader.i64()?,
                discarded: reader.bool()?,
            },
            3 => Entry::Patch(Box::new(decode_patch(reader)?)),
            4 => Entry::Reset {
                step: reader.u64()?,
                family: decode_id(reader)?,
                bucket: reader.u32()?,
                cause: ResetCause::decode(reader)?,
            },
            5 => Entry::Tables {
                step: reader.u64()?,
                edits: decode_edits(reader)?,
                roots: decode_roots(reader)?,
            },
            6 => Entry::Snapshot {
                step: reader.u64()?,
                manifest: Digest::decode(reader)?,
                size_bytes: reader.u64()?,
                kept: reader.u8()?,
            },
            7 => Entry::ToolCall(Box::new(ToolCall::decode(reader)?)),
            8 => Entry::HumanTask(Box::new(HumanTask::decode(reader)?)),
            9 => Entry::Input {
                step: reader.u64()?,
                source: InputSource::decode(reader)?,
                payload: reader.bytes()?.to_vec(),
            },
            10 => decode_event(reader)?,
            11 => Entry::Play(PlayBlock::decode(reader)?),
            _ => return Err(kind_error),
        })
    }
}

/// The bytes of a step block entry straight from the fast path's record bytes, without decoding them first.
///
/// `records` holds whole records of 16 bytes.
pub fn step_block_bytes(first_step: u64, records: &[u8], experience: &[Experience]) -> Vec<u8> {
    let count = records.len() / STEP_RECORD_BYTES;
    assert!(records.len().is_multiple_of(STEP_RECORD_BYTES) && count <= STEP_RECORDS_MAX);
    let mut writer = Writer::new();
    writer.u8(ENTRY_FORMAT);
    writer.u8(1);
    writer.u64(first_step);
    writer.length(count);
    writer.raw(records);
    writer.length(experience.len());
    experience.iter().for_each(|record| record.encode(&mut writer));
    writer.into_bytes()
}

pub(super) fn put(writer: &mut Writer, digest: &Digest) {
    writer.raw(digest.as_bytes());
}

/// A count with an item size for the reader's check and a limit of its own.
fn bounded_length(
    reader: &mut Reader<'_>,
    item_size_min: usize,
    limit: usize,
    reason: &'static str,
) -> Result<usize, DecodeError> {
    let error = reader.error(reason);
    let count = reader.length(item_size_min)?;
    if limit < count { Err(error) } else { Ok(count) }
}

pub(super) fn decode_id(reader: &mut Reader<'_>) -> Result<ObjectId, DecodeError> {
    let error = reader.error("a damaged identifier");
    ObjectId::from_word(reader.u32()?).map_err(|_| error)
}

fn decode_genesis(reader: &mut Reader<'_>) -> Result<Genesis, DecodeError> {
    let instance = Digest::decode(reader)?;
    let configuration = Digest::decode(reader)?;
    let error = reader.error("a code version longer than 256 bytes");
    let code = reader.text()?.to_owned();
    if CODE_TEXT_MAX < code.len() {
        return Err(error);
    }
    Ok(Genesis { instance, configuration, code, public_key: *Digest::decode(reader)?.as_bytes() })
}

fn encode_step_block(writer: &mut Writer, block: &StepBlock) {
    assert!(block.records.len() <= STEP_RECORDS_MAX);
    writer.u64(block.first_step);
    writer.length(block.records.len());
    block.records.iter().for_each(|record| writer.raw(record));
    writer.length(block.experience.len());
    block.experience.iter().for_each(|record| record.encode(writer));
}

fn decode_step_block(reader: &mut Reader<'_>) -> Result<StepBlock, DecodeError> {
    let first_step = reader.u64()?;
    let count =
        bounded_length(reader, STEP_RECORD_BYTES, STEP_RECORDS_MAX, "a step block with too many records")?;
    let records = reader.raw(count * STEP_RECORD_BYTES)?.as_chunks().0.to_vec();
    let count = reader.length(EXPERIENCE_BYTES_MIN)?;
    let experience = (0..count).map(|_| Experience::decode(reader)).collect::<Result<_, _>>()?;
    Ok(StepBlock { first_step, records, experience })
}

fn encode_patch(writer: &mut Writer, patch: &PatchEvent) {
    assert!(patch.certificates.len() <= CERTIFICATES_MAX);
    writer.u64(patch.serial);
    writer.u64(patch.step);
    writer.u8(patch.kind as u8);
    writer.u8(patch.status as u8);
    writer.u32(patch.target.to_word());
    writer.i64(patch.score);
    put(writer, &patch.payload);
    writer.length(patch.certificates.len());
    for certificate in &patch.certificates {
        writer.u8(certificate.verdict as u8);
        put(writer, &certificate.cnf);
        put(writer, &certificate.proof);
    }
    encode_edits(writer, &patch.edits);
    patch.roots_before.iter().chain(&patch.roots_after).for_each(|root| put(writer, root));
}

fn decode_patch(reader: &mut Reader<'_>) -> Result<PatchEvent, DecodeError> {
    let (serial, step) = (reader.u64()?, reader.u64()?);
    let (kind, status) = (PatchKind::decode(reader)?, PatchStatus::decode(reader)?);
    let (target, score, payload) = (decode_id(reader)?, reader.i64()?, Digest::decode(reader)?);
    let count = bounded_length(reader, 65, CERTIFICATES_MAX, "a patch with too many certificates")?;
    let certificates = (0..count).map(|_| decode_certificate(reader)).collect::<Result<_, _>>()?;
    let error = reader.error("edits in a patch that is neither applied nor rolled back");
    let edits = decode_edits(reader)?;
    let (roots_before, roots_after) = (decode_roots(reader)?, decode_roots(reader)?);
    let changes = !edits.is_empty() || roots_before != roots_after;
    if changes && !matches!(status, PatchStatus::Applied | PatchStatus::RolledBack) {
        return Err(error);
    }
    Ok(PatchEvent {
        serial,
        step,
        kind,
        status,
        target,
        score,
        payload,
        certificates,
        edits,
        roots_before,
        roots_after,
    })
}

fn decode_certificate(reader: &mut Reader<'_>) -> Result<Certificate, DecodeError> {
    let verdict = Verdict::decode(reader)?;
    let cnf = Digest::decode(reader)?;
    let error = reader.error("a proof that does not go with its verdict");
    let proof = Digest::decode(reader)?;
    if (verdict == Verdict::Undecided) != (proof == Digest::default()) {
        return Err(error);
    }
    Ok(Certificate { verdict, cnf, proof })
}

fn encode_edits(writer: &mut Writer, edits: &[TableEdit]) {
    assert!(edits.len() <= EDITS_MAX);
    assert!(edits.is_sorted_by(|left, right| (left.table, left.slot) < (right.table, right.slot)));
    writer.length(edits.len());
    for edit in edits {
        assert!(edit.slot < TABLE_SLOTS_MAX);
        writer.u8(edit.table as u8);
        writer.u32(edit.slot);
        put(writer, &edit.leaf);
    }
}

fn decode_edits(reader: &mut Reader<'_>) -> Result<Vec<TableEdit>, DecodeError> {
    let count = bounded_length(reader, 37, EDITS_MAX, "more table edits than an entry may hold")?;
    let mut edits: Vec<TableEdit> = Vec::with_capacity(count);
    for _ in 0..count {
        let table = Table::decode(reader)?;
        let error = reader.error("a table edit out of order or out of range");
        let slot = reader.u32()?;
        let ascends = edits.last().is_none_or(|last| (last.table, last.slot) < (table, slot));
        if !ascends || TABLE_SLOTS_MAX <= slot {
            return Err(error);
        }
        edits.push(TableEdit { table, slot, leaf: Digest::decode(reader)? });
    }
    Ok(edits)
}

fn decode_roots(reader: &mut Reader<'_>) -> Result<TableRoots, DecodeError> {
    Ok([Digest::decode(reader)?, Digest::decode(reader)?, Digest::decode(reader)?, Digest::decode(reader)?])
}

fn decode_event(reader: &mut Reader<'_>) -> Result<Entry, DecodeError> {
    let (step, code) = (reader.u64()?, reader.u16()?);
    let count = bounded_length(reader, 8, EVENT_VALUES_MAX, "an event with more than 16 values")?;
    let values = (0..count).map(|_| reader.i64()).collect::<Result<_, _>>()?;
    Ok(Entry::Event { step, code, values, payload: reader.bytes()?.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::super::KINDS;
    use super::*;
    use crate::testing;
    use bem_base::prng::Prng;

    #[test]
    fn every_kind_comes_back_as_written() {
        let mut prng = Prng::stream(1, "entries");
        let mut kinds = [0u32; KINDS];
        let genesis = Entry::Genesis(testing::genesis(1));
        for entry in core::iter::once(genesis).chain((0..2_000).map(|_| testing::entry(&mut prng))) {
            kinds[usize::from(entry.kind())] += 1;
            assert_eq!(Entry::from_bytes(&entry.to_bytes()), Ok(entry));
        }
        assert!(kinds.iter().all(|&count| 0 < count), "{kinds:?}");
    }

    #[test]
    fn mutated_bytes_are_refused_or_are_the_one_spelling_of_another_entry() {
        let mut prng = Prng::stream(2, "mutants");
        let mut accepted = 0;
        for _ in 0..20_000 {
            let mut bytes = testing::entry(&mut prng).to_bytes();
            match prng.below(3) {
                0 => {
                    let bit = prng.below(bytes.len() as u64 * 8) as usize;
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                1 => bytes.truncate(prng.below(bytes.len() as u64) as usize),
                _ => bytes.insert(prng.below(bytes.len() as u64) as usize, prng.next_u64() as u8),
            }
            if let Ok(entry) = Entry::from_bytes(&bytes) {
                accepted += 1;
                assert_eq!(entry.to_bytes(), bytes);
            }
        }
        // Most single flips land in a number or a digest and give another well-formed entry: the hash catches those.
        assert!(1_000 < accepted);
    }

    #[test]
    fn a_damaged_identifier_is_refused_for_every_flip_of_one_or_two_bits() {
        let family = ObjectId::sharded(bem_base::ids::ObjectClass::TaskFamily, 3, 77);
        let entry = Entry::Reset { step: 1, family, bucket: 2, cause: ResetCause::Commanded };
        let bytes = entry.to_bytes();
        for first in 0..32 {
            for second in 0..32 {
                let word = family.to_word() ^ 1 << first ^ if first == second { 0 } else { 1 << second };
                let mut damaged = bytes.clone();
                damaged[10..14].copy_from_slice(&word.to_le_bytes());
                let error = Entry::from_bytes(&damaged).unwrap_err();
                assert_eq!(error.to_string(), "a damaged identifier at byte 10");
            }
        }
    }

    #[test]
    fn the_fast_encoder_of_step_blocks_writes_the_same_bytes() {
        let mut prng = Prng::stream(3, "blocks");
        let records: Vec<[u8; 16]> = (0..100).map(|_| testing::step_record(&mut prng)).collect();
        let raw = records.as_flattened().to_vec();
        let block = StepBlock { first_step: 9, records, experience: Vec::new() };
        assert_eq!(step_block_bytes(9, &raw, &[]), Entry::StepBlock(block).to_bytes());
    }

    #[test]
    fn unknown_formats_and_kinds_are_refused() {
        assert_eq!(
            Entry::from_bytes(&[1, 0]).unwrap_err().to_string(),
            "an entry written by another version of bem: its format is not 2 at byte 0"
        );
        assert_eq!(
            Entry::from_bytes(&[2, 12]).unwrap_err().to_string(),
            "an entry of unknown kind at byte 1"
        );
    }
}
