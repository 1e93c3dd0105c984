//! What a learner leaves for the ledger: blocks of what it played and notes of what was decided, in the order of events.
//!
//! All of it is plain data, so that a learner can be put away in the middle and its chronicle with it. Only a patch that
//! was accepted brings its proofs along; of a refused one the ledger keeps a digest of the reasons.
//! Clauses: LOG-1, SCC-4; decisions D-16, D-20.

use crate::learner::Decision;
use crate::payload::Payload;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_evolve::patch::{Patch, PatchKind};
use bem_evolve::verify::AcceptedPatch;
use bem_ledger::play::{PlayBlock, PlayedStep, Sealer};
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

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Episodes were played.
    Play(PlayBlock),
    /// A patch was decided on.
    Patch(PatchNote),
}

/// Everything that happened to one learner, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chronicle {
    happenings: Vec<Happening>,
    sealer: Sealer,
}

impl Default for Chronicle {
    fn default() -> Chronicle {
        Chronicle::new()
    }
}

impl Chronicle {
    /// Nothing has happened yet.
    pub fn new() -> Chronicle {
        Chronicle { happenings: Vec::new(), sealer: Sealer::new(0) }
    }

    /// An episode was played; `chain` is the head of the learner's chain after it.
    pub fn played(&mut self, episode: &Episode, chain: &Digest) {
        let steps = episode.steps.iter().map(|step| PlayedStep {
            action: step.action,
            reward: step.reward,
            uniform: step.uniform,
            bad: step.bad,
        });
        let block = self.sealer.push(episode.serial, steps, chain);
        self.happenings.extend(block.map(Happening::Play));
    }

    /// The gate has decided; what was played before it is sealed first.
    pub fn decided(&mut self, decision: &Decision, patch: Option<&AcceptedPatch>) {
        self.seal();
        self.happenings.push(Happening::Patch(note(decision, patch)));
    }

    /// Seals what still waits.
    pub fn seal(&mut self) {
        self.happenings.extend(self.sealer.seal().map(Happening::Play));
    }

    /// The patches that were let in, in order.
    pub fn applied(&self) -> impl Iterator<Item = Patch> {
        self.happenings.iter().filter_map(|happening| match happening {
            Happening::Patch(note) => note.accepted().map(|(patch, _)| patch),
            Happening::Play(_) => None,
        })
    }

    /// What happened so far, what waits to be sealed not included.
    pub fn happenings(&self) -> &[Happening] {
        &self.happenings
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
            }
        }
        self.sealer.encode(writer);
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
                _ => return Err(unknown),
            });
        }
        Ok(Chronicle { happenings, sealer: Sealer::decode(reader)? })
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
            chronicle.played(&Episode { serial, steps }, &hash(&[serial as u8]));
            if serial == 2 {
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
        assert_eq!(read.happenings().len(), 2);
        read.seal();
        assert_eq!(read.happenings().len(), 3);
        for cut in 0..bytes.len() {
            assert!(Chronicle::decode(&mut Reader::new(&bytes[..cut])).is_err());
        }
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
