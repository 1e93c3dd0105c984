//! A lesson put away in the middle: the learner's bytes, and what its evaluator had seen and written down.
//!
//! Decisions that were made before keep their words and their evidence; their proofs are in the chronicle already.
//! What a ledger holds already of it may be taken out ([`write_off`]) and put back ([`whole`]).
//! Must not know files. Clauses: LOG-4; decisions D-19, D-308.

use crate::agent::Agent;
use crate::chronicle::{Chronicle, Happening};
use crate::codec::{decode_list, decode_option, encode_list, encode_option};
use crate::evaluate::Evaluation;
use crate::learner::{Decision, EvidenceBasis};
use crate::online::Online;
use crate::solve::Point;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use bem_evolve::improvement::Evidence;
use bem_evolve::patch::PatchKind;
use bem_machine::held::Adaptation;
use bem_synth::experience::Episode;
use bem_synth::policy::Policy;
use std::collections::VecDeque;

const FORMAT: &str = "bem lesson 6";
/// Episodes that are gathered at most, the latest.
const GATHERED_MAX: usize = 48;

/// An evaluation with the agent that it is about.
#[derive(Clone, Debug)]
pub(crate) struct Evaluated {
    pub(crate) policy: Policy,
    /// How the agent adapts within an episode.
    pub(crate) rule: Adaptation,
    pub(crate) evaluation: Evaluation,
}

impl Evaluated {
    pub(crate) fn is_of(&self, agent: &Agent) -> bool {
        self.rule == agent.rule() && self.policy == *agent.policy()
    }

    fn encode(&self, writer: &mut Writer) {
        self.policy.encode(writer);
        self.rule.encode(writer);
        writer.i64(self.evaluation.mean.to_raw());
        writer.i64(self.evaluation.error.to_raw());
        writer.u32(self.evaluation.bad);
        writer.u32(self.evaluation.episodes);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Evaluated, DecodeError> {
        let (policy, rule) = (Policy::decode(reader)?, Adaptation::decode(reader)?);
        let (mean, error) = (Fixed::from_raw(reader.i64()?), Fixed::from_raw(reader.i64()?));
        let evaluation = Evaluation { mean, error, bad: reader.u32()?, episodes: reader.u32()? };
        Ok(Evaluated { policy, rule, evaluation })
    }
}

/// What an evaluator has seen so far.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The last evaluation.
    pub(crate) last: Option<Evaluated>,
    /// Steps when the score first was high enough.
    pub(crate) first_to_99: Option<u64>,
    /// Since when every evaluation has been high enough.
    pub(crate) solved_since: Option<u64>,
    pub(crate) curve: Vec<Point>,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) chronicle: Chronicle,
    pub(crate) online: Online,
    /// The latest episodes, where they are gathered.
    pub(crate) gathered: VecDeque<Episode>,
}

impl Seen {
    /// Nothing yet.
    pub(crate) fn nothing() -> Seen {
        Seen {
            last: None,
            first_to_99: None,
            solved_since: None,
            curve: Vec::new(),
            decisions: Vec::new(),
            chronicle: Chronicle::new(),
            online: Online::default(),
            gathered: VecDeque::new(),
        }
    }

    /// Keeps an episode, and lets go of the oldest one where there are too many.
    pub(crate) fn gather(&mut self, episode: &Episode) {
        if self.gathered.len() == GATHERED_MAX {
            self.gathered.pop_front();
        }
        self.gathered.push_back(episode.clone());
    }

    /// The canonical bytes, with those of the learner.
    pub(crate) fn put_away(&self, learner: &[u8]) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.text(FORMAT);
        writer.bytes(learner);
        encode_option(&mut writer, self.last.as_ref(), Evaluated::encode);
        for steps in [self.first_to_99, self.solved_since] {
            encode_option(&mut writer, steps.as_ref(), |steps, writer| writer.u64(*steps));
        }
        encode_curve(&self.curve, &mut writer);
        encode_decisions(&self.decisions, &mut writer);
        self.chronicle.encode(&mut writer);
        self.chronicle.encode_written(&mut writer);
        self.online.encode(&mut writer);
        encode_list(&mut writer, self.gathered.iter(), Episode::encode);
        writer.into_bytes()
    }

    /// Reads what was put away, and the learner's bytes.
    pub(crate) fn take_up(bytes: &[u8]) -> Result<(Seen, &[u8]), DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a lesson, or one of another version");
        if reader.text()? != FORMAT {
            return Err(foreign);
        }
        let learner = reader.bytes()?;
        let last = decode_option(&mut reader, Evaluated::decode)?;
        let mut steps = || decode_option(&mut reader, Reader::u64);
        let (first_to_99, solved_since) = (steps()?, steps()?);
        let curve = decode_curve(&mut reader)?;
        let decisions = decode_decisions(&mut reader)?;
        let chronicle = Chronicle::decode(&mut reader)?.decode_written(&mut reader)?;
        let online = Online::decode(&mut reader)?;
        let gathered = decode_list(&mut reader, Episode::decode)?.into();
        reader.finish()?;
        Ok((Seen { last, first_to_99, solved_since, curve, decisions, chronicle, online, gathered }, learner))
    }
}

/// The chronicle of a lesson that was put away, and the lesson's bytes once a ledger holds all of it.
pub fn write_off(lesson: &[u8]) -> Result<(Chronicle, Vec<u8>), DecodeError> {
    let (mut seen, learner) = Seen::take_up(lesson)?;
    let chronicle = seen.chronicle.clone();
    seen.chronicle.write_off();
    Ok((chronicle, seen.put_away(learner)))
}

/// How many happenings of a lesson that was put away a ledger holds already; nothing where it cannot be read.
pub fn written(lesson: &[u8]) -> Option<u64> {
    Seen::take_up(lesson).ok().map(|(seen, _)| seen.chronicle.written())
}

/// A lesson with what a ledger holds of it put back, so that it can go on beside another one; nothing where the two do not fit.
pub(crate) fn whole(lesson: &[u8], held: Vec<Option<Happening>>) -> Option<Vec<u8>> {
    let (seen, learner) = Seen::take_up(lesson).ok()?;
    let chronicle = seen.chronicle.whole(held)?;
    Some(Seen { chronicle, ..seen }.put_away(learner))
}

/// Writes a learning curve.
pub(crate) fn encode_curve(curve: &[Point], writer: &mut Writer) {
    writer.length(curve.len());
    for point in curve {
        writer.u64(point.steps);
        writer.i64(point.mean.to_raw());
        encode_option(writer, point.gain.as_ref(), |gain, writer| writer.i64(gain.to_raw()));
    }
}

/// Reads a learning curve back.
pub(crate) fn decode_curve(reader: &mut Reader<'_>) -> Result<Vec<Point>, DecodeError> {
    let point = |reader: &mut Reader<'_>| {
        let (steps, mean) = (reader.u64()?, Fixed::from_raw(reader.i64()?));
        let gain = decode_option(reader, Reader::i64)?.map(Fixed::from_raw);
        Ok(Point { steps, mean, gain })
    };
    (0..reader.length(17)?).map(|_| point(reader)).collect()
}

/// Writes what was decided about patches.
pub(crate) fn encode_decisions(decisions: &[Decision], writer: &mut Writer) {
    writer.length(decisions.len());
    for decision in decisions {
        writer.u64(decision.steps);
        writer.u64(decision.serial);
        writer.u8(decision.kind as u8);
        writer.text(&decision.words);
        writer.text(&decision.reason);
        writer.u64(decision.gates as u64);
        writer.bool(decision.accepted);
        writer.bool(decision.rolled_back);
        writer.i64(decision.threshold.to_raw());
        decision.evidence.encode(writer);
        writer.u8(decision.basis as u8);
        writer.raw(decision.provenance.as_bytes());
        writer.u32(decision.proofs);
    }
}

/// Reads decisions back.
pub(crate) fn decode_decisions(reader: &mut Reader<'_>) -> Result<Vec<Decision>, DecodeError> {
    (0..reader.length(111)?).map(|_| decode_decision(reader)).collect()
}

fn decode_decision(reader: &mut Reader<'_>) -> Result<Decision, DecodeError> {
    let (steps, serial) = (reader.u64()?, reader.u64()?);
    let unknown = reader.error("an unknown patch kind");
    let kind = *PatchKind::ALL.get(usize::from(reader.u8()?)).ok_or(unknown)?;
    let (words, reason) = (reader.text()?.to_string(), reader.text()?.to_string());
    let large = reader.error("more gates than this machine can count");
    let gates = usize::try_from(reader.u64()?).map_err(|_| large)?;
    let (accepted, rolled_back) = (reader.bool()?, reader.bool()?);
    let threshold = Fixed::from_raw(reader.i64()?);
    let evidence = Evidence::decode(reader)?;
    let unnamed = reader.error("evidence of no known kind");
    let basis = *EvidenceBasis::ALL.get(usize::from(reader.u8()?)).ok_or(unnamed)?;
    let provenance = Digest::decode(reader)?;
    let proofs = reader.u32()?;
    Ok(Decision {
        steps,
        serial,
        kind,
        words,
        gates,
        accepted,
        rolled_back,
        reason,
        evidence,
        basis,
        threshold,
        provenance,
        proofs,
    })
}
