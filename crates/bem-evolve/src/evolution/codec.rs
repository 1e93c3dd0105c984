//! Evolution as bytes: everything that decides what becomes of the next patch.
//!
//! Reading is cheap and bounded; a patch that was shown comes as a [`Claim`], and showing it again is a step of its own,
//! because a stored word is no proof. Clauses: LOG-4, SCC-3.

use super::trial::Test;
use super::{Basis, Evolution, GUARDS_MAX, Guard, Trial, Waiting, Watched};
use crate::apply::{Live, Tables};
use crate::condition::Context;
use crate::improvement::AlphaLedger;
use crate::improvement::interleaved::InterleavedTest;
use crate::patch::{Patch, PatchKind};
use crate::propose::Notebook;
use crate::queue::PatchQueue;
use crate::score::PoxState;
use crate::verify::{Improvement, verify};
use crate::watch::Watch;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use bem_machine::config::GenesisConfig;
use bem_machine::machine::Undo;
use bem_machine::memory::context::FamilyIndex;

/// A patch under trial as it was read: its condition is said to hold, and not shown yet.
#[derive(Clone, Debug)]
pub struct Claim {
    patch: Patch,
    words: String,
    test: Test,
    guard: Guard,
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
        self.alpha.entered().iter().for_each(|count| writer.u32(*count));
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
            writer.u64(watched.serial);
            writer.u8(watched.kind as u8);
            watched.undo.encode(writer);
            writer.text(&watched.words);
            watched.watch.encode(writer);
            writer.bool(watched.interleaved.is_some());
            watched.interleaved.iter().for_each(|test| test.encode(writer));
        });
    }

    /// Reads canonical bytes. A patch that was under trial is so again once its claim is proven.
    pub fn parse(
        config: GenesisConfig,
        reader: &mut Reader<'_>,
    ) -> Result<(Evolution, Option<Claim>), DecodeError> {
        let malformed = reader.error("more than can ever have been kept");
        let tables = Tables::decode(&config, reader)?;
        let queue = PatchQueue::decode(config.patches_pending_max as usize, reader)?;
        let mut evolution = Evolution {
            pox: PoxState::decode(&config, reader)?,
            notebook: Notebook::decode(reader)?,
            alpha: AlphaLedger::resume([reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?]),
            serial: reader.u64()?,
            ..Evolution::new(config)
        };
        (evolution.tables, evolution.queue) = (tables, queue);
        let mut last = None;
        for _ in 0..reader.length(13)? {
            let serial = reader.u64()?;
            if evolution.serial < serial || last.is_some_and(|last| serial <= last) {
                return Err(malformed);
            }
            last = Some(serial);
            let words = reader.text()?.to_string();
            let improvement = if reader.bool()? { Some(Improvement::decode(reader)?) } else { None };
            evolution.waiting.insert(serial, Waiting { words, improvement });
        }
        let count = reader.length(40)?;
        if GUARDS_MAX < count || evolution.serial == u64::MAX {
            return Err(malformed);
        }
        evolution.guards = (0..count).map(|_| Guard::decode(reader)).collect::<Result<_, _>>()?;
        let claim = if reader.bool()? { Some(Claim::decode(reader)?) } else { None };
        if reader.bool()? {
            let (serial, kind) = (reader.u64()?, reader.u8()?);
            let kind = *PatchKind::ALL.get(usize::from(kind)).ok_or(malformed)?;
            let undo = Undo::decode(&evolution.config, reader)?;
            let (words, watch) = (reader.text()?.to_string(), Watch::decode(reader)?);
            let interleaved = if reader.bool()? { Some(InterleavedTest::decode(reader)?) } else { None };
            evolution.watched = Some(Box::new(Watched { serial, kind, undo, words, watch, interleaved }));
        }
        Ok((evolution, claim))
    }

    /// Shows the condition of a claim again; its candidate takes the seat, and its trial goes on.
    pub fn prove(&mut self, machine: &mut Live, claim: Claim) -> Result<(), DecodeError> {
        let Claim { patch, words, test, guard, refusal } = claim;
        let family = machine.family(FamilyIndex(patch.family)).ok();
        let context = Context { config: &self.config, tables: &self.tables, family };
        let verified = verify(patch, &context).map_err(|_| refusal.clone())?;
        self.seat(machine, &verified).map_err(|_| refusal)?;
        self.trial = Some(Box::new(Trial { verified, words, test, guard }));
        Ok(())
    }
}

impl Claim {
    fn decode(reader: &mut Reader<'_>) -> Result<Claim, DecodeError> {
        let refusal = reader.error("a patch whose condition does not hold");
        let patch = Patch::decode(reader)?;
        let words = reader.text()?.to_string();
        let test = Test::decode(reader)?;
        let guard = Guard::decode(reader)?;
        Ok(Claim { patch, words, test, guard, refusal })
    }
}

impl Trial {
    fn encode(&self, writer: &mut Writer) {
        self.verified.patch().encode(writer);
        writer.text(&self.words);
        self.test.encode(writer);
        self.guard.encode(writer);
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
