//! The bytes of a served world: canonical, bounded, and refused where no world can have come to them. Clauses: LOG-4, LOG-5.

use super::{Open, Patched, World};
use crate::delays::Delays;
use crate::frozen::{Frozen, Shared};
use crate::input::WorldSpec;
use crate::known::{KnownDecisions, decode_odds, decode_step, encode_step};
use crate::people::standing::Standing;
use crate::round::Complete;
use crate::statistics::Statistics;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_engine::serving::{Acting, Begun, Searching, Settled};
use bem_engine::state::RestoreError;
use bem_machine::machine::PastStep;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

impl World {
    /// Writes the canonical bytes; no round may be under way.
    pub(crate) fn encode(&self, frozen: &mut Frozen) {
        assert!(self.searching.is_some(), "a world is saved between rounds");
        self.acting.encode(&mut frozen.writer);
        frozen.share(&self.searching_bytes);
        let writer = &mut frozen.writer;
        self.statistics.encode(writer);
        writer.length(self.by_step.len());
        for (count, sum) in &self.by_step {
            writer.u64(*count);
            writer.i64(*sum);
        }
        frozen.later(Box::new(self.known.clone()));
        let writer = &mut frozen.writer;
        self.delays.encode(writer);
        writer.length(self.open.len());
        for (number, open) in &self.open {
            writer.u64(*number);
            writer.text(&open.name);
            open.begun.encode(writer);
            writer.bool(open.is_over);
            writer.bool(self.by_name.get(&open.name) == Some(number));
            writer.length(open.decisions.len());
            open.decisions.iter().for_each(|number| writer.u64(*number));
        }
        writer.length(self.patched.len());
        for Patched { number, kind, accepted, words, reason, proofs } in &self.patched {
            writer.u64(*number);
            writer.u8(*kind);
            writer.bool(*accepted);
            writer.text(words);
            writer.text(reason);
            writer.u32(*proofs);
        }
        writer.length(self.waiting.len());
        self.waiting.iter().for_each(|episode| encode_complete(episode, writer));
        self.standing.encode(frozen);
    }

    /// Reads canonical bytes back.
    pub(crate) fn decode(spec: WorldSpec, reader: &mut Reader<'_>) -> Result<World, RestoreError> {
        let acting = Acting::decode(&spec.shape, reader)?;
        let searching_bytes = Shared::new(reader.bytes()?.to_vec());
        let mut inner = Reader::new(&searching_bytes);
        let searching = Searching::decode(&spec.shape, &mut inner)?;
        inner.finish()?;
        let statistics = Statistics::decode(spec.shape.actions, reader)?;
        let malformed = reader.error("decisions that this world cannot have made");
        let by_step = (0..reader.length(16)?)
            .map(|_| Ok((reader.u64()?, reader.i64()?)))
            .collect::<Result<Vec<_>, DecodeError>>()?;
        if (spec.shape.horizon as usize) < by_step.len()
            || by_step.iter().any(|(count, sum)| 1 << 32 <= *count || 1 << 62 <= sum.unsigned_abs())
        {
            return Err(malformed.into());
        }
        let known = KnownDecisions::decode(reader, |known| {
            known.place <= statistics.decisions && known.step.action < spec.shape.actions
        })?;
        let delays = Delays::decode(reader)?;
        let (mut open, mut by_name, mut over) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        for _ in 0..reader.length(20)? {
            let number = reader.u64()?;
            let name = reader.text()?.to_string();
            let (begun, is_over, is_named) = (Begun::decode(reader)?, reader.bool()?, reader.bool()?);
            let decisions = (0..reader.length(8)?).map(|_| reader.u64()).collect::<Result<Vec<_>, _>>()?;
            let are_known = decisions.iter().all(|number| known.get(*number).is_some());
            if decisions.is_empty() || !are_known || (spec.shape.horizon as usize) < decisions.len() {
                return Err(malformed.into());
            }
            let last = decisions.last().and_then(|last| known.get(*last));
            if let Some(last) = last.filter(|_| is_over) {
                over.insert((last.place, number));
            }
            if is_named {
                by_name.insert(name.clone(), number);
            }
            open.insert(number, Open { name, begun, decisions, is_over });
        }
        let mut patched = VecDeque::new();
        for _ in 0..reader.length(22)? {
            let (number, kind, accepted) = (reader.u64()?, reader.u8()?, reader.bool()?);
            let (words, reason) = (reader.text()?.to_string(), reader.text()?.to_string());
            patched.push_back(Patched { number, kind, accepted, words, reason, proofs: reader.u32()? });
        }
        let (mut waiting, mut waiting_steps) = (Vec::new(), 0);
        for _ in 0..reader.length(7)? {
            let episode = decode_complete(&spec.shape, reader)?;
            waiting_steps += episode.steps.len() as u64;
            waiting.push(episode);
        }
        let standing = Standing::decode(&spec.shape, reader)?;
        let searching = Some(Box::new(searching));
        let mut world = World {
            spec,
            acting,
            searching,
            searching_bytes,
            known,
            open,
            by_name,
            over,
            delays,
            waiting,
            waiting_steps,
            statistics,
            by_step,
            patched,
            standing,
        };
        world.tell();
        Ok(world)
    }
}

pub(crate) fn encode_complete(episode: &Complete, writer: &mut Writer) {
    writer.u64(episode.place);
    episode.begun.encode(writer);
    writer.length(episode.steps.len());
    for step in &episode.steps {
        let Settled { observation, action, odds, outcome, is_told } = *step;
        encode_step(&PastStep { observation, action, outcome: Some(outcome) }, writer);
        writer.u16(odds.to_raw());
        writer.bool(is_told);
    }
}

pub(crate) fn decode_complete(shape: &Shape, reader: &mut Reader<'_>) -> Result<Complete, DecodeError> {
    let malformed = reader.error("steps that this world cannot have taken");
    let (place, begun) = (reader.u64()?, Begun::decode(reader)?);
    let mut steps = Vec::new();
    for _ in 0..reader.length(36)? {
        let step = decode_step(reader)?;
        let (odds, is_told) = (decode_odds(reader)?, reader.bool()?);
        let Some(outcome) = step.outcome.filter(|_| step.action < shape.actions) else {
            return Err(malformed);
        };
        let PastStep { observation, action, .. } = step;
        steps.push(Settled { observation, action, odds, outcome, is_told });
    }
    Ok(Complete { begun, steps, place })
}
