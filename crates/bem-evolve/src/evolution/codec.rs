//! Evolution as bytes: everything that decides what becomes of the next patch.
//!
//! Reading is cheap and bounded; a patch that was shown comes as a [`Claim`], and showing it again is a step of its own,
//! because a stored word is no proof. Clauses: LOG-4, SCC-3.

use super::{Basis, Evolution, GUARDS_MAX, Guard, Trial, Waiting, Watched};
use crate::apply::{Receipt, Tables};
use crate::condition::{BadPair, Context, SafetyDemand};
use crate::improvement::{AlphaLedger, ImprovementTest};
use crate::patch::{Patch, PatchKind};
use crate::propose::Notebook;
use crate::queue::PatchQueue;
use crate::rollout::{Rollout, RolloutStep};
use crate::score::PoxState;
use crate::verify::{Improvement, verify};
use crate::watch::Watch;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, OBSERVATION_WORDS, Outcome};
use bem_base::fixed::Fixed;
use bem_machine::config::GenesisConfig;

/// A patch under trial as it was read: its condition is said to hold, and not shown yet.
#[derive(Clone, Debug)]
pub struct Claim {
    patch: Patch,
    bad: Vec<BadPair>,
    safety: SafetyDemand,
    words: String,
    test: ImprovementTest,
    guard: Guard,
    credits: Vec<Rollout>,
    /// What to answer when it does not hold.
    refusal: DecodeError,
}

impl Claim {
    /// The patch.
    pub fn patch(&self) -> &Patch {
        &self.patch
    }
}

impl Evolution {
    /// Writes everything but the configuration.
    pub fn encode(&self, writer: &mut Writer) {
        self.tables.encode(writer);
        self.queue.encode(writer);
        self.pox.encode(writer);
        self.notebook.encode(writer);
        writer.u32(self.trials.tested());
        writer.u32(self.watches.tested());
        writer.u64(self.serial);
        writer.length(self.waiting.len());
        for (serial, waiting) in &self.waiting {
            writer.u64(*serial);
            writer.text(&waiting.words);
            writer.bool(waiting.improvement.is_some());
            waiting.improvement.iter().for_each(|improvement| improvement.encode(writer));
        }
        writer.length(self.guards.len());
        self.guards.iter().for_each(|guard| guard.encode(writer));
        writer.bool(self.trial.is_some());
        self.trial.iter().for_each(|trial| trial.encode(writer));
        writer.bool(self.watched.is_some());
        self.watched.iter().for_each(|watched| {
            watched.receipt.encode(writer);
            writer.text(&watched.words);
            watched.watch.encode(writer);
        });
    }

    /// Reads canonical bytes back under the configuration they were written under, and shows what they claim.
    pub fn decode(config: GenesisConfig, reader: &mut Reader<'_>) -> Result<Evolution, DecodeError> {
        let (mut evolution, claim) = Evolution::parse(config, reader)?;
        claim.map_or(Ok(()), |claim| evolution.prove(claim))?;
        Ok(evolution)
    }

    /// Reads canonical bytes. A patch that was under trial is so again once its claim is proven.
    pub fn parse(
        config: GenesisConfig,
        reader: &mut Reader<'_>,
    ) -> Result<(Evolution, Option<Claim>), DecodeError> {
        let wild = reader.error("more than can ever have been kept");
        let tables = Tables::decode(&config, reader)?;
        let queue = PatchQueue::decode(config.patches_pending_max as usize, reader)?;
        let mut evolution = Evolution {
            pox: PoxState::decode(&config, reader)?,
            notebook: Notebook::decode(reader)?,
            trials: AlphaLedger::resume(reader.u32()?),
            watches: AlphaLedger::resume(reader.u32()?),
            serial: reader.u64()?,
            ..Evolution::new(config, Vec::new())
        };
        (evolution.tables, evolution.queue) = (tables, queue);
        let mut last = None;
        for _ in 0..reader.length(13)? {
            let serial = reader.u64()?;
            if evolution.serial < serial || last.is_some_and(|last| serial <= last) {
                return Err(wild);
            }
            last = Some(serial);
            let words = reader.text()?.to_string();
            let improvement = if reader.bool()? { Some(Improvement::decode(reader)?) } else { None };
            evolution.waiting.insert(serial, Waiting { words, improvement });
        }
        let count = reader.length(40)?;
        if GUARDS_MAX < count || evolution.serial == u64::MAX {
            return Err(wild);
        }
        evolution.guards = (0..count).map(|_| Guard::decode(reader)).collect::<Result<_, _>>()?;
        let claim = if reader.bool()? { Some(Claim::decode(reader)?) } else { None };
        if reader.bool()? {
            let receipt = Receipt::decode(&evolution.config, reader)?;
            let (words, watch) = (reader.text()?.to_string(), Watch::decode(reader)?);
            evolution.watched = Some(Box::new(Watched { receipt, words, watch }));
        }
        Ok((evolution, claim))
    }

    /// Shows the condition of a claim again; its trial goes on.
    pub fn prove(&mut self, claim: Claim) -> Result<(), DecodeError> {
        let Claim { patch, bad, safety, words, test, guard, credits, refusal } = claim;
        let context = Context { config: &self.config, tables: &self.tables, bad: &bad, safety };
        let verified = verify(patch, &context).map_err(|_| refusal.clone())?;
        let (candidate, slot) = self.preview(verified.patch()).map_err(|_| refusal.clone())?;
        let buckets = candidate.buckets().len();
        let known = |step: &RolloutStep| usize::from(step.bucket) < buckets;
        if !credits.iter().flat_map(|rollout| &rollout.steps).all(known) {
            return Err(refusal);
        }
        let trial = Trial { verified, bad, safety, words, test, candidate, slot, guard, credits };
        self.trial = Some(Box::new(trial));
        Ok(())
    }
}

impl Claim {
    fn decode(reader: &mut Reader<'_>) -> Result<Claim, DecodeError> {
        let refusal = reader.error("a patch whose condition does not hold");
        let patch = Patch::decode(reader)?;
        let words = reader.text()?.to_string();
        let safety = if reader.bool()? { SafetyDemand::Required } else { SafetyDemand::Optional };
        let mut bad = Vec::new();
        for _ in 0..reader.length(8 * OBSERVATION_WORDS + 2)? {
            bad.push(BadPair { observation: decode_bits(reader)?, action: reader.u16()? });
        }
        let test = ImprovementTest::decode(reader)?;
        let guard = Guard::decode(reader)?;
        let credits =
            (0..reader.length(4)?).map(|_| Rollout::decode(reader)).collect::<Result<Vec<_>, _>>()?;
        Ok(Claim { patch, bad, safety, words, test, guard, credits, refusal })
    }
}

impl Trial {
    fn encode(&self, writer: &mut Writer) {
        self.verified.patch().encode(writer);
        writer.text(&self.words);
        writer.bool(self.safety == SafetyDemand::Required);
        writer.length(self.bad.len());
        for pair in &self.bad {
            encode_bits(&pair.observation, writer);
            writer.u16(pair.action);
        }
        self.test.encode(writer);
        self.guard.encode(writer);
        writer.length(self.credits.len());
        self.credits.iter().for_each(|rollout| rollout.encode(writer));
    }
}

impl Guard {
    fn encode(&self, writer: &mut Writer) {
        writer.u64(self.serial);
        writer.u8(self.kind as u8);
        writer.u16(self.family);
        writer.u8(self.basis as u8);
        writer.u32(self.pairs);
        writer.i64(self.return_before.to_raw());
        writer.i64(self.return_after.to_raw());
        writer.i64(self.span);
        writer.bool(self.rolled_back);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Guard, DecodeError> {
        let unknown = reader.error("a guard of no known kind");
        let guard = Guard {
            serial: reader.u64()?,
            kind: *PatchKind::ALL.get(usize::from(reader.u8()?)).ok_or(unknown.clone())?,
            family: reader.u16()?,
            basis: *Basis::ALL.get(usize::from(reader.u8()?)).ok_or(unknown.clone())?,
            pairs: reader.u32()?,
            return_before: Fixed::from_raw(reader.i64()?),
            return_after: Fixed::from_raw(reader.i64()?),
            span: reader.i64()?,
            rolled_back: reader.bool()?,
        };
        // Means lie within the clamped returns that they are made of.
        let most = Fixed::from_int(Guard::RETURN_MAX as i32);
        let fits = |mean: Fixed| mean <= most && most.negated() <= mean;
        let counts = guard.pairs < u32::MAX && 1 <= guard.span;
        if counts && fits(guard.return_before) && fits(guard.return_after) { Ok(guard) } else { Err(unknown) }
    }
}

impl Rollout {
    fn encode(&self, writer: &mut Writer) {
        writer.length(self.steps.len());
        for step in &self.steps {
            writer.u16(step.bucket);
            writer.u8(step.slot);
            encode_bits(&step.observation, writer);
            writer.i32(step.outcome.reward);
            writer.u8(u8::from(step.outcome.done) | u8::from(step.outcome.bad) << 1);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Rollout, DecodeError> {
        let count = reader.length(8 * OBSERVATION_WORDS + 8)?;
        let mut steps = Vec::with_capacity(count);
        for _ in 0..count {
            let (bucket, slot) = (reader.u16()?, reader.u8()?);
            let (observation, reward) = (decode_bits(reader)?, reader.i32()?);
            let unknown = reader.error("unknown flags of a step");
            let flags = reader.u8()?;
            if 4 <= flags {
                return Err(unknown);
            }
            let outcome = Outcome { reward, done: flags & 1 == 1, bad: flags & 2 == 2 };
            steps.push(RolloutStep { bucket, slot, observation, outcome });
        }
        Ok(Rollout { steps })
    }
}

fn encode_bits(bits: &Bits, writer: &mut Writer) {
    bits.0.iter().for_each(|word| writer.u64(*word));
}

fn decode_bits(reader: &mut Reader<'_>) -> Result<Bits, DecodeError> {
    let mut bits = Bits::ZERO;
    for word in &mut bits.0 {
        *word = reader.u64()?;
    }
    Ok(bits)
}
