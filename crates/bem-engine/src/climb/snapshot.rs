//! A climb as canonical bytes: everything that decides what comes next, and nothing that a ladder of another version
//! would decide otherwise.
//!
//! Restoring accepts only what this version could have written; `snapshot(restore(bytes))` is `bytes`.
//! Clauses: LOG-5, GLE-10; decision D-19.

use super::practice::Asked;
use super::track::{Climbed, Edit, Practised, Track, budget_of};
use super::unit::{Purpose, Unit};
use super::{ATTEMPTS_MAX, Acting, Climb, ClimbConfig};
use crate::codec::{decode_option, encode_option};
use crate::learner::{Barriers, Scheduled};
use crate::parameters::teacher_config;
use crate::shard::Shard;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_machine::config::GenesisConfig;
use bem_synth::library::Machine;
use bem_synth::policy::Policy;
use bem_teacher::ladder::{Domain, STAGES_MAX};
use bem_teacher::teacher::Teacher;
use bem_teacher::template::TemplateId;
use std::sync::Arc;

/// The first words of a snapshot.
const FORMAT: &str = "bem climb 7";

impl Climb {
    /// Everything that decides the next units, as canonical bytes.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.text(FORMAT);
        self.config.parameters.encode(&mut writer);
        writer.u64(self.config.seed);
        writer.u32(self.config.stages as u32);
        writer.u64(self.config.unit_steps);
        let Acting { steps_by_machine, changes, changes_patched, scheduled, barriers } = self.acting;
        [self.steps, steps_by_machine, changes, changes_patched].iter().for_each(|sum| writer.u64(*sum));
        let counts = scheduled.units.into_iter().chain([scheduled.alarms, barriers.passed, barriers.moved]);
        counts.for_each(|count| writer.u64(count));
        writer.length(self.tracks.len());
        self.tracks.iter().for_each(|track| track.encode(&mut writer));
        writer.length(self.files.len());
        self.files.iter().for_each(|file| writer.raw(file.as_bytes()));
        // Only climbs that pass rungs over say so: all others are the bytes that they were before there were such climbs.
        self.tries.iter().for_each(|tries| writer.u32(*tries));
        writer.into_bytes()
    }

    /// Continues from a snapshot.
    pub fn restore(bytes: &[u8]) -> Result<Climb, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a snapshot of a climb, or one of another version");
        if reader.text()? != FORMAT {
            return Err(foreign);
        }
        let malformed = reader.error("a climb that this version cannot have made");
        let parameters = Arc::new(GenesisConfig::decode(&mut reader)?);
        let (seed, stages, unit_steps) = (reader.u64()?, reader.u32()? as usize, reader.u64()?);
        if !(1..=STAGES_MAX).contains(&stages) {
            return Err(malformed);
        }
        let (steps, steps_by_machine) = (reader.u64()?, reader.u64()?);
        let mut count = || reader.u64();
        let acting = Acting {
            steps_by_machine,
            changes: count()?,
            changes_patched: count()?,
            scheduled: Scheduled { units: [count()?, count()?, count()?], alarms: count()? },
            barriers: Barriers { passed: count()?, moved: count()? },
        };
        let mut config = ClimbConfig { seed, stages, unit_steps, families: Vec::new(), parameters };
        let mut tracks: Vec<Track> = Vec::new();
        for place in 0..reader.length(64)? {
            let track = Track::decode(&mut reader, &config, place)?;
            if tracks.iter().any(|other| other.family == track.family) {
                return Err(malformed);
            }
            tracks.push(track);
        }
        let files = decode_list(&mut reader, 32, Digest::decode)?;
        let tries = if 0 < reader.remaining() { Some(reader.u32()?) } else { None };
        if tries.is_some_and(|tries| !(1..=ATTEMPTS_MAX).contains(&tries)) {
            return Err(malformed);
        }
        reader.finish()?;
        config.families = tracks.iter().map(|track| track.family.clone()).collect();
        Ok(Climb { config, tracks, steps, acting, files, tries })
    }
}

impl Track {
    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.text(&self.family);
        writer.length(self.tasks.len());
        self.tasks.iter().for_each(|task| writer.text(task));
        writer.u32(self.stage as u32);
        writer.u32(self.attempt);
        writer.u32(self.units);
        writer.u64(self.steps);
        writer.u64(self.spent);
        writer.raw(self.head.as_bytes());
        writer.length(self.climbed.len());
        self.climbed.iter().for_each(|climbed| climbed.encode(writer));
        writer.length(self.practised.len());
        self.practised.iter().for_each(|practised| practised.encode(writer));
        encode_option(writer, self.shard.as_ref(), Shard::encode);
        for machines in [&self.library, &self.lent] {
            writer.length(machines.len());
            machines.iter().for_each(|machine| machine.encode(writer));
        }
        writer.bool(self.teacher.is_some());
        if let Some(teacher) = &self.teacher {
            teacher.encode(writer);
        }
        writer.u32(self.requests);
        encode_option(writer, self.asked.as_ref(), encode_asked);
        writer.length(self.fresh.len());
        self.fresh.iter().for_each(|template| writer.u32(template.0));
        writer.length(self.edits.len());
        self.edits.iter().for_each(|edit| edit.encode(writer));
        writer.length(self.origins.len());
        for (template, transformation) in &self.origins {
            writer.u32(*template);
            writer.u8(*transformation);
        }
        encode_next(self.next.as_ref(), writer);
    }

    fn decode(reader: &mut Reader<'_>, config: &ClimbConfig, place: usize) -> Result<Track, DecodeError> {
        let malformed = reader.error("a family that this version cannot have climbed");
        let family = reader.text()?.to_string();
        let tasks = decode_list(reader, 4, |reader| reader.text().map(str::to_string))?;
        let (stage, attempt, units) = (reader.u32()? as usize, reader.u32()?, reader.u32()?);
        let (steps, spent, head) = (reader.u64()?, reader.u64()?, Digest::decode(reader)?);
        if tasks.is_empty() || tasks.len() < stage || ATTEMPTS_MAX < attempt {
            return Err(malformed);
        }
        let climbed = decode_list(reader, 64, Climbed::decode)?;
        let practised = decode_list(reader, 64, Practised::decode)?;
        let shard = decode_option(reader, |reader| Shard::decode(&config.parameters, reader))?;
        let library = decode_list(reader, 16, Machine::decode)?;
        let lent = decode_list(reader, 16, Machine::decode)?;
        let teacher = if reader.bool()? {
            let domain = Domain::from_name(&family).ok_or_else(|| malformed.clone())?;
            Some(Teacher::decode(teacher_config(&config.parameters, config.seed, domain), reader)?)
        } else {
            None
        };
        let requests = reader.u32()?;
        let asked = decode_option(reader, decode_asked)?;
        let fresh = decode_list(reader, 4, |reader| reader.u32().map(TemplateId))?;
        let known = teacher.as_ref().map_or(0, |teacher: &Teacher| teacher.templates().len());
        if fresh.iter().any(|template| known <= template.0 as usize) {
            return Err(malformed);
        }
        let edits = decode_list(reader, 10, Edit::decode)?;
        let disorder = reader.error("origins of templates out of order");
        let origins = decode_list(reader, 5, |reader| Ok((reader.u32()?, reader.u8()?)))?;
        if !origins.is_sorted_by(|one: &(u32, u8), other| one.0 < other.0) {
            return Err(disorder);
        }
        let origins = origins.into_iter().collect();
        let next = None;
        let mut track = Track {
            family,
            place,
            tasks,
            stage,
            attempt,
            units,
            steps,
            spent,
            head,
            climbed,
            practised,
            shard,
            library,
            lent,
            teacher,
            requests,
            asked,
            fresh,
            edits,
            origins,
            next,
        };
        track.next = track.decode_next(reader, config)?;
        Ok(track)
    }

    fn decode_next(
        &self,
        reader: &mut Reader<'_>,
        config: &ClimbConfig,
    ) -> Result<Option<Unit>, DecodeError> {
        let malformed = reader.error("a next unit that does not follow");
        let kind = reader.u8()?;
        let (purpose, task) = match kind {
            0 => return Ok(None),
            1 if self.is_climbing() => {
                let purpose = Purpose::Rung { stage: self.stage, attempt: self.attempt };
                (purpose, self.tasks[self.stage].clone())
            }
            2 | 3 => {
                let template = TemplateId(reader.u32()?);
                let known = self.teacher.as_ref().map_or(self.tasks.len(), |_| self.templates());
                if known <= template.0 as usize {
                    return Err(malformed);
                }
                let purpose =
                    if kind == 2 { Purpose::Replay { template } } else { Purpose::Practice { template } };
                (purpose, reader.text()?.to_string())
            }
            _ => return Err(malformed),
        };
        let budget = budget_of(config, purpose);
        let (track, number, spent) = (self.place, self.units, self.spent);
        Ok(Some(Unit { track, number, purpose, spent, budget, task }))
    }
}

fn encode_next(next: Option<&Unit>, writer: &mut Writer) {
    let Some(unit) = next else { return writer.u8(0) };
    let (kind, template) = match unit.purpose {
        Purpose::Rung { .. } => return writer.u8(1),
        Purpose::Replay { template } => (2, template),
        Purpose::Practice { template } => (3, template),
    };
    writer.u8(kind);
    writer.u32(template.0);
    writer.text(&unit.task);
}

impl Climbed {
    fn encode(&self, writer: &mut Writer) {
        writer.text(&self.task);
        writer.u32(self.stage as u32);
        writer.u32(self.attempt);
        writer.i64(self.score.to_raw());
        writer.bool(self.solved);
        writer.bool(self.reused);
        writer.u64(self.budget);
        writer.u64(self.steps);
        writer.bool(self.steps_to_99.is_some());
        if let Some(steps) = self.steps_to_99 {
            writer.u64(steps);
        }
        for count in [self.applied, self.rejected, self.proofs] {
            writer.u32(count);
        }
        writer.text(&self.words);
        self.policy.encode(writer);
        writer.bool(self.adapts);
        writer.raw(self.head.as_bytes());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Climbed, DecodeError> {
        Ok(Climbed {
            task: reader.text()?.to_string(),
            stage: reader.u32()? as usize,
            attempt: reader.u32()?,
            score: Fixed::from_raw(reader.i64()?),
            solved: reader.bool()?,
            reused: reader.bool()?,
            budget: reader.u64()?,
            steps: reader.u64()?,
            steps_to_99: if reader.bool()? { Some(reader.u64()?) } else { None },
            applied: reader.u32()?,
            rejected: reader.u32()?,
            proofs: reader.u32()?,
            words: reader.text()?.to_string(),
            policy: Policy::decode(reader)?,
            adapts: reader.bool()?,
            head: Digest::decode(reader)?,
        })
    }
}

impl Practised {
    fn encode(&self, writer: &mut Writer) {
        writer.u32(self.number);
        writer.text(&self.task);
        writer.u8(self.band);
        encode_option(writer, self.origin.as_ref(), |origin, writer| writer.u8(*origin));
        writer.i64(self.score.to_raw());
        writer.bool(self.solved);
        writer.u64(self.steps);
        writer.raw(self.head.as_bytes());
        encode_option(writer, self.asked.as_ref(), encode_asked);
        writer.length(self.edits.len());
        self.edits.iter().for_each(|edit| edit.encode(writer));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Practised, DecodeError> {
        Ok(Practised {
            number: reader.u32()?,
            task: reader.text()?.to_string(),
            band: reader.u8()?,
            origin: decode_option(reader, Reader::u8)?,
            score: Fixed::from_raw(reader.i64()?),
            solved: reader.bool()?,
            steps: reader.u64()?,
            head: Digest::decode(reader)?,
            asked: decode_option(reader, decode_asked)?,
            edits: decode_list(reader, 10, Edit::decode)?,
        })
    }
}

impl Edit {
    fn encode(&self, writer: &mut Writer) {
        writer.text(&self.tree);
        writer.u8(self.transformation);
        writer.bool(self.situation.is_some());
        self.situation.iter().flat_map(|bits| bits.0).for_each(|word| writer.u64(word));
        writer.bytes(&self.patch);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Edit, DecodeError> {
        let tree = reader.text()?.to_string();
        let transformation = reader.u8()?;
        let mut situation = reader.bool()?.then_some(Bits::ZERO);
        for word in situation.iter_mut().flat_map(|bits| &mut bits.0) {
            *word = reader.u64()?;
        }
        Ok(Edit { tree, transformation, situation, patch: reader.bytes()?.to_vec() })
    }
}

fn encode_asked(asked: &Asked, writer: &mut Writer) {
    [asked.place, asked.band, asked.context].into_iter().for_each(|word| writer.u64(word));
    encode_option(writer, asked.template.as_ref(), |template, writer| writer.u64(*template));
    writer.u64(asked.executed);
    writer.length(asked.line.len());
    asked.line.iter().for_each(|word| writer.u64(*word));
}

fn decode_asked(reader: &mut Reader<'_>) -> Result<Asked, DecodeError> {
    let (place, band, context) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let template = decode_option(reader, Reader::u64)?;
    let executed = reader.u64()?;
    let line = decode_list(reader, 8, |reader| reader.u64())?;
    Ok(Asked { place, band, context, template, executed, line })
}

/// A list behind its length, whose items each take at least this many bytes.
fn decode_list<T>(
    reader: &mut Reader<'_>,
    item_size_min: usize,
    mut decode: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = reader.length(item_size_min)?;
    (0..count).map(|_| decode(reader)).collect()
}
