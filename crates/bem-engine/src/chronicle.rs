//! What a learner leaves for the ledger: blocks of what it played and notes of what was decided, in the order of events.
//!
//! Of every block of the machine's trace the first records are kept as they are (bucket, member, cost), and of the episodes
//! those whose number is a power of two, so that both cost less than a byte a step in long units. What change detection
//! reset is kept up to a bound.
//! Where nobody will write a ledger, neither is kept, so that a long run needs no more memory for it. Where a ledger holds what
//! has happened so far, patches alone are kept, so that what is put away does not grow with the steps.
//! All of it is plain data, so that a learner can be put away in the middle and its chronicle with it. Only a patch that
//! was accepted brings its proofs along; of a refused one the ledger keeps a digest of the reasons.
//! Clauses: LOG-1, SCC-4; decisions D-16, D-20, D-308.

use crate::codec::{decode_option, encode_option};
use crate::learner::Decision;
use crate::payload::Payload;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_evolve::patch::{Patch, PatchKind};
use bem_evolve::verify::AcceptedPatch;
use bem_learn::change::Change;
use bem_ledger::limits::STEP_RECORD_BYTES;
use bem_ledger::play::{PlayBlock, PlayedStep, Sealer};
use bem_machine::trace::{Record, TraceEvent};
use bem_synth::experience::Episode;

/// What was decided about one patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchNote {
    /// Steps the learner had taken.
    pub step: u64,
    /// What the patch changes, by stored number.
    pub kind: u8,
    /// Whether it was let in.
    pub accepted: bool,
    /// Whether it was in force and is taken back.
    pub rolled_back: bool,
    /// The score that the next patch must reach, raw `Fixed`.
    pub threshold: i64,
    /// The lower bound of what it gains, raw `Fixed`.
    pub score: i64,
    /// The reasons, and of an accepted patch the patch itself.
    pub payload: Vec<u8>,
    /// What was proven: clauses in DIMACS and the checker's certificate.
    pub proofs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Records of the machine's trace that are kept of one block.
pub const SAMPLE_RECORDS: usize = 32;
/// Resets of change detection that are kept of one unit.
const RESETS_MAX: u32 = 256;

/// The first records of a block of the machine's trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSample {
    /// The step of the first record, as the machine counts.
    pub first_step: u64,
    /// The records, as `bem_machine::trace` writes them.
    pub records: Vec<[u8; STEP_RECORD_BYTES]>,
}

/// An episode that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodeNote {
    /// Its number.
    pub serial: u64,
    /// Steps that the learner had taken at its end.
    pub step: u64,
    /// Its steps.
    pub length: u32,
    /// Its return, in milli-units.
    pub total: i64,
    /// What it earned less than the best policy does on average; where nobody knows that, than the best episode so far.
    pub regret: i64,
}

/// Change detection has reset a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetNote {
    /// When, as the machine counts.
    pub step: u64,
    /// Which bucket.
    pub bucket: u16,
    /// Whether losses rose; they fell otherwise.
    pub rose: bool,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Episodes were played.
    Play(PlayBlock),
    /// A patch was decided on.
    Patch(PatchNote),
    /// A block of the machine's trace was sealed.
    Steps(StepSample),
    /// An episode ended.
    Episode(EpisodeNote),
    /// Statistics began again.
    Reset(ResetNote),
}

/// Everything that happened to one learner, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chronicle {
    happenings: Vec<Happening>,
    /// How many happenings a ledger holds already. Of these only the patches are still here, in front.
    written: u64,
    /// How many patches these are.
    written_patches: usize,
    sealer: Sealer,
    /// The highest return of an episode so far.
    best: Option<i64>,
    resets: u32,
    /// What was played and traced is let go: nobody will read it. Whoever takes the bytes up says so again.
    forgets_play: bool,
}

impl Default for Chronicle {
    fn default() -> Chronicle {
        Chronicle::new()
    }
}

impl Chronicle {
    /// Nothing has happened yet.
    pub fn new() -> Chronicle {
        Chronicle {
            happenings: Vec::new(),
            written: 0,
            written_patches: 0,
            sealer: Sealer::new(0),
            best: None,
            resets: 0,
            forgets_play: false,
        }
    }

    /// From now on nothing is kept of what is played and traced; decisions, notes of episodes and resets still are.
    pub fn forget_play(&mut self) {
        self.forgets_play = true;
    }

    /// An episode was played; `chain` is the head of the learner's chain after it, `optimum` what the best policy earns in an
    /// episode, if that is known.
    pub fn played(&mut self, episode: &Episode, chain: &Digest, optimum: Option<Fixed>) {
        let steps = episode.steps.iter().map(|step| PlayedStep {
            action: step.action,
            reward: step.reward,
            uniform: step.uniform,
            bad: step.bad,
        });
        let block = self.sealer.push(episode.serial, steps, chain);
        let step = block.as_ref().map_or_else(|| self.sealer.end(), PlayBlock::end);
        self.keep(block);
        let (total, serial) = (episode.total(), episode.serial);
        let best = self.best.map_or(total, |best| best.max(total));
        self.best = Some(best);
        if serial.is_power_of_two() {
            let reference = optimum.map_or(best, |optimum| optimum.to_raw() >> FRACTION_BITS);
            let (length, regret) = (episode.steps.len() as u32, reference.saturating_sub(total));
            self.happenings.push(Happening::Episode(EpisodeNote { serial, step, length, total, regret }));
        }
    }

    /// A block of the machine's trace was sealed.
    pub fn traced(&mut self, block: &[Record]) {
        let bytes = |record: &Record| {
            let mut bytes = [0; STEP_RECORD_BYTES];
            for (half, word) in bytes.chunks_exact_mut(8).zip(record.0) {
                half.copy_from_slice(&word.to_le_bytes());
            }
            bytes
        };
        if !self.forgets_play {
            let first_step = block.first().map_or(0, |record| record.0[1] & u64::from(u32::MAX));
            let records = block.iter().take(SAMPLE_RECORDS).map(bytes).collect();
            self.happenings.push(Happening::Steps(StepSample { first_step, records }));
        }
        for record in block {
            if let Some(TraceEvent::Reset { bucket, way, step, .. }) = TraceEvent::from_record(*record)
                && self.resets < RESETS_MAX
            {
                self.resets += 1;
                let rose = way == Change::Worse;
                self.happenings.push(Happening::Reset(ResetNote { step: u64::from(step), bucket, rose }));
            }
        }
    }

    /// The gate has decided; what was played before it is sealed first.
    pub fn decided(&mut self, decision: &Decision, patch: Option<&AcceptedPatch>) {
        self.seal();
        self.happenings.push(Happening::Patch(note(decision, patch)));
    }

    /// Seals what still waits.
    pub fn seal(&mut self) {
        let block = self.sealer.seal();
        self.keep(block);
    }

    fn keep(&mut self, block: Option<PlayBlock>) {
        self.happenings.extend(block.filter(|_| !self.forgets_play).map(Happening::Play));
    }

    /// The patches that were let in, in order.
    pub fn applied(&self) -> impl Iterator<Item = Patch> {
        self.happenings.iter().filter_map(|happening| match happening {
            Happening::Patch(note) => note.accepted().map(|(patch, _)| patch),
            _ => None,
        })
    }

    /// What happened so far, what waits to be sealed not included. Of what a ledger holds already only the patches.
    pub fn happenings(&self) -> &[Happening] {
        &self.happenings
    }

    /// Steps that the learner had taken at the end of the latest episode.
    pub fn end(&self) -> u64 {
        self.sealer.end()
    }

    /// How many happenings a ledger holds already.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// What no ledger holds yet.
    pub fn unwritten(&self) -> &[Happening] {
        &self.happenings[self.written_patches..]
    }

    /// A ledger holds everything now: patches are kept, and all else is let go.
    pub fn write_off(&mut self) {
        self.written += self.unwritten().len() as u64;
        self.happenings.retain(|happening| matches!(happening, Happening::Patch(_)));
        self.written_patches = self.happenings.len();
    }

    /// The same as if no ledger held anything. `held` is what a ledger holds, in order, nothing standing for a patch; nothing
    /// where that is not what was written.
    pub fn whole(mut self, held: Vec<Option<Happening>>) -> Option<Chronicle> {
        if held.len() as u64 != self.written {
            return None;
        }
        let later = self.happenings.split_off(self.written_patches);
        let mut patches = core::mem::take(&mut self.happenings).into_iter();
        for happening in held {
            self.happenings.push(happening.or_else(|| patches.next())?);
        }
        if patches.next().is_some() {
            return None;
        }
        self.happenings.extend(later);
        Some(Chronicle { written: 0, written_patches: 0, ..self })
    }

    /// Writes how much of it a ledger holds already, beside [`Chronicle::encode`].
    pub(crate) fn encode_written(&self, writer: &mut Writer) {
        writer.u64(self.written);
        writer.length(self.written_patches);
    }

    /// Reads back how much of it a ledger holds already.
    pub(crate) fn decode_written(mut self, reader: &mut Reader<'_>) -> Result<Chronicle, DecodeError> {
        let wrong = reader.error("more is written of a chronicle than has happened");
        (self.written, self.written_patches) = (reader.u64()?, reader.u32()? as usize);
        let front = self.happenings.get(..self.written_patches);
        let is_right = |front: &[Happening]| {
            front.len() as u64 <= self.written && front.iter().all(|one| matches!(one, Happening::Patch(_)))
        };
        if front.is_some_and(is_right) { Ok(self) } else { Err(wrong) }
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.happenings.len());
        for happening in &self.happenings {
            match happening {
                Happening::Play(block) => {
                    writer.u8(0);
                    block.encode(writer);
                }
                Happening::Patch(note) => {
                    writer.u8(1);
                    note.encode(writer);
                }
                Happening::Steps(sample) => {
                    writer.u8(2);
                    sample.encode(writer);
                }
                Happening::Episode(note) => {
                    writer.u8(3);
                    note.encode(writer);
                }
                Happening::Reset(ResetNote { step, bucket, rose }) => {
                    writer.u8(4);
                    writer.u64(*step);
                    writer.u16(*bucket);
                    writer.bool(*rose);
                }
            }
        }
        self.sealer.encode(writer);
        encode_option(writer, self.best.as_ref(), |best, writer| writer.i64(*best));
        writer.u32(self.resets);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Chronicle, DecodeError> {
        let count = reader.length(1)?;
        let mut happenings = Vec::new();
        for _ in 0..count {
            let unknown = reader.error("a happening of unknown kind");
            happenings.push(match reader.u8()? {
                0 => Happening::Play(PlayBlock::decode(reader)?),
                1 => Happening::Patch(PatchNote::decode(reader)?),
                2 => Happening::Steps(StepSample::decode(reader)?),
                3 => Happening::Episode(EpisodeNote::decode(reader)?),
                4 => Happening::Reset(ResetNote {
                    step: reader.u64()?,
                    bucket: reader.u16()?,
                    rose: reader.bool()?,
                }),
                _ => return Err(unknown),
            });
        }
        let sealer = Sealer::decode(reader)?;
        let (best, resets) = (decode_option(reader, Reader::i64)?, reader.u32()?);
        let (written, written_patches) = (0, 0);
        Ok(Chronicle { happenings, written, written_patches, sealer, best, resets, forgets_play: false })
    }
}

impl StepSample {
    fn encode(&self, writer: &mut Writer) {
        writer.u64(self.first_step);
        writer.length(self.records.len());
        self.records.iter().for_each(|record| writer.raw(record));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<StepSample, DecodeError> {
        let first_step = reader.u64()?;
        let long = reader.error("more records than a sample holds");
        let count = reader.length(STEP_RECORD_BYTES)?;
        if SAMPLE_RECORDS < count {
            return Err(long);
        }
        let records = reader.raw(count * STEP_RECORD_BYTES)?.as_chunks().0.to_vec();
        Ok(StepSample { first_step, records })
    }
}

impl EpisodeNote {
    fn encode(&self, writer: &mut Writer) {
        writer.u64(self.serial);
        writer.u64(self.step);
        writer.u32(self.length);
        writer.i64(self.total);
        writer.i64(self.regret);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<EpisodeNote, DecodeError> {
        let (serial, step, length) = (reader.u64()?, reader.u64()?, reader.u32()?);
        Ok(EpisodeNote { serial, step, length, total: reader.i64()?, regret: reader.i64()? })
    }
}

fn note(decision: &Decision, patch: Option<&AcceptedPatch>) -> PatchNote {
    let mut proofs = Vec::new();
    let findings = patch.into_iter().flat_map(|accepted| accepted.verified().findings());
    for (formula, certificate) in findings.filter_map(|found| found.proof()) {
        let mut proof = Writer::new();
        certificate.encode(&mut proof);
        proofs.push((formula.to_dimacs().into_bytes(), proof.into_bytes()));
    }
    let payload = Payload {
        words: decision.words.clone(),
        reason: decision.reason.clone(),
        evidence: decision.evidence,
        accepted: patch
            .and_then(|accepted| Some((accepted.patch().clone(), accepted.verified().shape()?.clone()))),
    };
    PatchNote {
        step: decision.steps,
        kind: decision.kind as u8,
        accepted: decision.accepted,
        rolled_back: decision.rolled_back,
        threshold: decision.threshold.to_raw(),
        score: decision.evidence.lower_bound.to_raw(),
        payload: payload.to_bytes(),
        proofs,
    }
}

impl PatchNote {
    /// The same patch, turned down for another reason than the gate's.
    #[must_use]
    pub fn turned_down(&self, reason: &str) -> PatchNote {
        let payload = match Payload::from_bytes(&self.payload) {
            Ok(payload) => Payload { reason: reason.to_string(), accepted: None, ..payload }.to_bytes(),
            Err(_) => self.payload.clone(),
        };
        PatchNote { accepted: false, rolled_back: false, payload, proofs: Vec::new(), ..self.clone() }
    }

    /// The same patch, which was in force and is taken back.
    #[must_use]
    pub fn taken_back(&self, reason: &str) -> PatchNote {
        PatchNote { rolled_back: true, ..self.turned_down(reason) }
    }

    /// The patch itself and the world that its condition was shown for, if it was let in.
    pub fn accepted(&self) -> Option<(Patch, Shape)> {
        Payload::from_bytes(&self.payload).ok()?.accepted.filter(|_| self.accepted)
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.step);
        writer.u8(self.kind);
        writer.bool(self.accepted);
        writer.bool(self.rolled_back);
        writer.i64(self.threshold);
        writer.i64(self.score);
        writer.bytes(&self.payload);
        writer.length(self.proofs.len());
        for (formula, proof) in &self.proofs {
            writer.bytes(formula);
            writer.bytes(proof);
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<PatchNote, DecodeError> {
        let step = reader.u64()?;
        let unknown = reader.error("an unknown patch kind");
        let kind = reader.u8()?;
        if PatchKind::ALL.len() <= usize::from(kind) {
            return Err(unknown);
        }
        let (accepted, rolled_back, threshold) = (reader.bool()?, reader.bool()?, reader.i64()?);
        let (score, payload) = (reader.i64()?, reader.bytes()?.to_vec());
        let mut proofs = Vec::new();
        for _ in 0..reader.length(8)? {
            proofs.push((reader.bytes()?.to_vec(), reader.bytes()?.to_vec()));
        }
        Ok(PatchNote { step, kind, accepted, rolled_back, threshold, score, payload, proofs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::digest::hash;
    use bem_base::environment::Bits;
    use bem_base::prng::Prng;
    use bem_synth::experience::Step;

    fn example() -> Chronicle {
        let mut chronicle = Chronicle::new();
        let step = |reward, done| Step {
            observation: Bits::ZERO,
            action: 1,
            reward,
            done,
            bad: false,
            uniform: true,
            propensity: 9,
        };
        for serial in 1..=3 {
            let steps = vec![step(0, false), step(1_000, true)];
            chronicle.played(&Episode { serial, steps }, &hash(&[serial as u8]), None);
            if serial == 2 {
                let reset = TraceEvent::Reset { family: 0, bucket: 3, way: Change::Worse, step: 7 };
                chronicle.traced(&[reset.to_record(); 2]);
                chronicle.seal();
                chronicle.happenings.push(Happening::Patch(PatchNote {
                    step: 4,
                    kind: 7,
                    accepted: true,
                    rolled_back: false,
                    threshold: 9,
                    score: -5,
                    payload: vec![1, 2, 3],
                    proofs: vec![(b"p cnf 1 0".to_vec(), vec![9])],
                }));
            }
        }
        chronicle
    }

    #[test]
    fn a_chronicle_comes_back_from_its_bytes_with_what_waits() {
        let mut writer = Writer::new();
        example().encode(&mut writer);
        let bytes = writer.into_bytes();
        let mut read = Chronicle::decode(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(read, example());
        // Two episodes, a sample of records with two resets, what was played, and a patch.
        assert_eq!(read.happenings().len(), 7);
        read.seal();
        assert_eq!(read.happenings().len(), 8);
        for cut in 0..bytes.len() {
            assert!(Chronicle::decode(&mut Reader::new(&bytes[..cut])).is_err());
        }
    }

    #[test]
    fn what_nobody_will_read_is_not_kept_and_what_was_decided_is() {
        let (mut chronicle, whole) = (Chronicle::new(), example());
        chronicle.forget_play();
        let step = Step {
            observation: Bits::ZERO,
            action: 1,
            reward: 1_000,
            done: true,
            bad: false,
            uniform: true,
            propensity: 9,
        };
        let record = TraceEvent::Reset { family: 0, bucket: 3, way: Change::Worse, step: 7 }.to_record();
        for serial in 1..=100_000 {
            chronicle.played(&Episode { serial, steps: vec![step; 2] }, &hash(b"chain"), None);
            chronicle.traced(&[record]);
        }
        chronicle.seal();
        let is_large = |happening: &Happening| matches!(happening, Happening::Play(_) | Happening::Steps(_));
        assert!(whole.happenings().iter().any(is_large) && !chronicle.happenings().iter().any(is_large));
        // Seventeen episodes whose number is a power of two, and as many resets as are kept.
        assert_eq!(chronicle.happenings().len(), 17 + RESETS_MAX as usize);
        // The notes say the steps that they would say beside what was played.
        let last = chronicle.happenings().iter().rev().find_map(|happening| match happening {
            Happening::Episode(note) => Some(note.step),
            _ => None,
        });
        assert_eq!(last, Some(2 * 65_536));
    }

    #[test]
    fn what_a_ledger_holds_is_let_go_and_comes_back_from_there() {
        let whole = example();
        let all = whole.happenings().iter().cloned();
        let held: Vec<_> =
            all.map(|one| Some(one).filter(|one| !matches!(one, Happening::Patch(_)))).collect();
        let mut short = whole.clone();
        short.write_off();
        assert_eq!((short.written(), short.happenings().len(), short.unwritten().len()), (7, 1, 0));
        // What comes later is not written.
        short.seal();
        assert_eq!((short.unwritten().len(), short.happenings().len()), (1, 2));
        let mut writer = Writer::new();
        short.encode(&mut writer);
        short.encode_written(&mut writer);
        let bytes = writer.into_bytes();
        let mut reader = Reader::new(&bytes);
        let read = Chronicle::decode(&mut reader).and_then(|read| read.decode_written(&mut reader));
        assert_eq!(read, Ok(short.clone()));
        let mut sealed = whole;
        sealed.seal();
        assert_eq!(short.clone().whole(held.clone()), Some(sealed));
        assert_eq!(short.clone().whole(held[1..].to_vec()), None);
        // A patch more or less than is here.
        let mut other = held.clone();
        other.swap_remove(0);
        other.push(None);
        assert_eq!(short.whole(other), None);
        let mut forged = bytes.clone();
        let place = forged.len() - 4;
        forged[place] = 9;
        let mut reader = Reader::new(&forged);
        assert!(Chronicle::decode(&mut reader).and_then(|read| read.decode_written(&mut reader)).is_err());
    }

    #[test]
    fn damaged_chronicles_are_refused_or_are_the_one_spelling_of_another() {
        let mut writer = Writer::new();
        example().encode(&mut writer);
        let honest = writer.into_bytes();
        let mut prng = Prng::stream(1, "chronicle");
        for _ in 0..20_000 {
            let mut bytes = honest.clone();
            let place = prng.below(bytes.len() as u64) as usize;
            bytes[place] ^= 1 << prng.below(8);
            if let Ok(read) = Chronicle::decode(&mut Reader::new(&bytes)) {
                let mut again = Writer::new();
                read.encode(&mut again);
                assert_eq!(again.as_bytes(), &bytes[..again.as_bytes().len()]);
            }
        }
    }
}
