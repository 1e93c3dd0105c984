//! A lesson put away in the middle: the learner's bytes, and what its evaluator had seen and written down.
//!
//! Decisions that were made before keep their words and their evidence; their proofs are in the chronicle already.
//! Must not know files. Clauses: LOG-4; decision D-19.

use crate::agent::Agent;
use crate::chronicle::Chronicle;
use crate::codec::{decode_option, encode_option};
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
use bem_synth::policy::Policy;

const FORMAT: &str = "bem lesson 3";

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
        }
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
        writer.length(self.curve.len());
        for point in &self.curve {
            writer.u64(point.steps);
            writer.i64(point.mean.to_raw());
            encode_option(&mut writer, point.gain.as_ref(), |gain, writer| writer.i64(gain.to_raw()));
        }
        writer.length(self.decisions.len());
        for decision in &self.decisions {
            writer.u64(decision.steps);
            writer.u64(decision.serial);
            writer.u8(decision.kind as u8);
            writer.text(&decision.words);
            writer.text(&decision.reason);
            writer.u64(decision.gates as u64);
            writer.bool(decision.accepted);
            writer.bool(decision.rolled_back);
            writer.i64(decision.threshold.to_raw());
            decision.evidence.encode(&mut writer);
            writer.u8(decision.basis as u8);
            writer.raw(decision.provenance.as_bytes());
            writer.u32(decision.proofs);
        }
        self.chronicle.encode(&mut writer);
        self.online.encode(&mut writer);
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
        let mut curve = Vec::new();
        for _ in 0..reader.length(17)? {
            let (steps, mean) = (reader.u64()?, Fixed::from_raw(reader.i64()?));
            let gain = decode_option(&mut reader, Reader::i64)?.map(Fixed::from_raw);
            curve.push(Point { steps, mean, gain });
        }
        let mut decisions = Vec::new();
        for _ in 0..reader.length(111)? {
            decisions.push(decode_decision(&mut reader)?);
        }
        let chronicle = Chronicle::decode(&mut reader)?;
        let online = Online::decode(&mut reader)?;
        reader.finish()?;
        Ok((Seen { last, first_to_99, solved_since, curve, decisions, chronicle, online }, learner))
    }
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
