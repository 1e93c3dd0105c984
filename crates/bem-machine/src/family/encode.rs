//! The canonical bytes of a family.
//!
//! Clauses: LOG-4.

use super::choice::Draw;
use super::world::SUSPECTS_MAX;
use super::{Family, STEP_BY_STEP};
use crate::config::GenesisConfig;
use crate::cost::StepCost;
use crate::expert::Expert;
use crate::guard::Guard;
use crate::held::Held;
use crate::route::directory::Directory;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Shape};
use bem_base::limits::ARMS_MAX;
use bem_learn::bucket::Bucket;
use bem_learn::loss::Loss;
use bem_learn::tsallis_inf::TsallisInf;
use bem_learn::wide::WideBucket;

impl Family {
    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.shape.encode(writer);
        for (expert, facts) in self.experts.iter().zip(&self.facts) {
            writer.u32(facts.generation);
            writer.bool(expert.is_some());
            if let Some(expert) = expert {
                expert.encode(writer);
            }
        }
        self.directory.encode(writer);
        self.statistics.buckets.iter().for_each(|bucket| bucket.encode(writer));
        self.statistics.episode.encode(writer);
        self.held.encode(writer);
        if self.is_world() {
            self.since.iter().for_each(|step| writer.u64(*step));
            self.guard.encode(writer);
            writer.length(self.statistics.imagined.len());
            self.statistics.imagined.iter().for_each(|loss| writer.u64(loss.to_raw()));
            writer.length(self.statistics.suspects.len());
            for (observation, action) in &self.statistics.suspects {
                observation.0.iter().for_each(|word| writer.u64(*word));
                writer.u16(*action);
            }
            self.statistics.plain.iter().for_each(|bucket| bucket.encode(writer));
            self.encode_weighed(writer);
        }
        self.statistics
            .samplers
            .buckets
            .iter()
            .chain(&self.statistics.samplers.episode)
            .for_each(|sampler| sampler.encode(writer));
        writer.bool(self.statistics.payoff.covers_bad());
    }

    /// Reads canonical bytes and checks the invariants.
    pub fn decode(config: &GenesisConfig, reader: &mut Reader<'_>) -> Result<Family, DecodeError> {
        let start = reader.clone();
        let shape = Shape::decode(reader)?;
        let mut family =
            Family::new(config, shape).map_err(|_| start.error("a family whose world does not fit"))?;
        for slot in 0..ARMS_MAX {
            family.facts[slot].generation = reader.u32()?;
            let error = reader.error("an expert where none may be");
            if reader.bool()? {
                let expert = Expert::decode(config, reader)?;
                let cost = StepCost::new(config, expert.cost()).total();
                let other_noop = slot == STEP_BY_STEP && family.expert(0) != Some(&expert);
                if family.slots <= slot || other_noop || config.step_cost_max < cost {
                    return Err(error);
                }
                family.place(config, slot, expert);
            } else if slot == STEP_BY_STEP {
                return Err(error);
            }
        }
        family.directory = Directory::decode(reader)?;
        family.prepare_routing();
        let count = family.directory.bucket_count();
        family.statistics.buckets =
            (0..count).map(|_| Bucket::decode(reader)).collect::<Result<Vec<_>, _>>()?;
        family.statistics.episode = Bucket::decode(reader)?;
        family.decode_world(reader)?;
        if family.draw == Draw::TsallisInf {
            family.statistics.samplers.buckets =
                (0..count).map(|_| TsallisInf::decode(reader)).collect::<Result<Vec<_>, _>>()?;
            family.statistics.samplers.episode = Some(TsallisInf::decode(reader)?);
        }
        if reader.bool()? {
            family.statistics.payoff.widen();
        }
        if !family.is_consistent() {
            return Err(start.error("live arms without experts"));
        }
        family.index_experts();
        Ok(family)
    }

    /// What is held, and what a family that stands for a world keeps besides.
    fn decode_world(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let misfit = reader.error("what is held does not fit the family");
        let held = Held::decode(reader)?;
        if held == Held::POOL {
            return Ok(());
        }
        let count = self.directory.bucket_count();
        let (shape, parameters) = (self.shape.clone(), self.plain_parameters());
        self.since = (0..count).map(|_| reader.u64()).collect::<Result<_, _>>()?;
        self.guard = Guard::decode(shape.actions, reader)?;
        let imagined = reader.length(8)?;
        let losses = (0..imagined).map(|_| reader.u64()).collect::<Result<Vec<u64>, DecodeError>>()?;
        if losses.iter().any(|loss| Loss::ONE.to_raw() < *loss)
            || !losses.is_empty() && losses.len() != usize::from(shape.actions)
        {
            return Err(misfit);
        }
        self.statistics.imagined = losses.into_iter().map(Loss::from_raw).collect();
        self.decode_suspects(reader)?;
        self.statistics.plain = (0..count)
            .map(|_| WideBucket::decode(&parameters, usize::from(shape.actions), reader))
            .collect::<Result<_, _>>()?;
        self.decode_weighed(reader)?;
        self.hold(held).map_err(|_| misfit)
    }

    fn decode_suspects(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let misfit = reader.error("pairs that were BAD out of order or bounds");
        for _ in 0..reader.length(34)? {
            let mut observation = Bits::ZERO;
            for word in &mut observation.0 {
                *word = reader.u64()?;
            }
            let pair = (observation, reader.u16()?);
            let suspects = &mut self.statistics.suspects;
            let is_next = suspects.last().is_none_or(|last| *last < pair);
            if !is_next || self.shape.actions <= pair.1 || SUSPECTS_MAX <= suspects.len() {
                return Err(misfit);
            }
            suspects.insert(pair);
        }
        Ok(())
    }

    fn is_consistent(&self) -> bool {
        let occupied = self.occupied().fold(0u16, |mask, (slot, _)| mask | 1 << slot);
        let stepwise = occupied & !self.sticky;
        self.statistics.episode.live() == self.sticky | 1 << STEP_BY_STEP
            && self.statistics.buckets.iter().all(|bucket| bucket.live() & !stepwise == 0)
            && self
                .statistics
                .samplers
                .episode
                .iter()
                .all(|sampler| sampler.live() == self.statistics.episode.live())
            && self
                .statistics
                .buckets
                .iter()
                .zip(&self.statistics.samplers.buckets)
                .all(|(bucket, sampler)| bucket.live() == sampler.live())
    }
}
