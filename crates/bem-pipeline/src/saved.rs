//! A pipeline between two rounds as canonical bytes: everything that decides what comes next.
//!
//! With them nobody needs the answers that were taken in before. The plan's own part (seed, sizes, what is switched off) is given
//! by whoever reads them back, because it never changes; domains that came in later are in the bytes. They end with their
//! digest, so that damaged ones are refused. Must not know files. Clauses: PIPE-2, LOG-4; decisions D-237, D-278.

use crate::expert::Expert;
use crate::pipeline::{Done, Phase, Pipeline, Plan, PoolTally};
use crate::pool::{Pool, Route};
use crate::renaming::Renaming;
use crate::scoring::{ExpertScore, ExpertScores};
use crate::specialist::{Mastered, Specialist};
use crate::volume::Volume;
use bem_base::digest::{Digest, hash};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_base::fixed::Fixed;
use bem_engine::agent::Agent;
use bem_engine::climb::Climb;
use bem_engine::world_file::WorldFile;
use bem_engine::worlds::{Catalog, World, Worlds};
use bem_learn::bucket::Bucket;
use bem_machine::held::Adaptation;
use bem_synth::experience::Episode;
use bem_synth::library::Machine;
use std::collections::BTreeMap;

/// The first words.
const FORMAT: &str = "bem pipeline 4";
/// The version before, which knew no other names and kept nothing that was measured; it is still read.
const OLDER: &str = "bem pipeline 3";

impl Pipeline {
    /// Everything that decides what comes next.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.written_as(FORMAT)
    }

    fn written_as(&self, format: &str) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.text(format);
        writer.u64(self.plan.seed);
        texts(&mut writer, &self.plan.domains);
        texts(&mut writer, &self.plan.late);
        writer.bool(self.plan.endless);
        writer.u8(phase_code(self.phase));
        writer.u32(self.cycle as u32);
        writer.length(self.specialists.len());
        self.specialists.iter().for_each(|specialist| specialist.encode(&mut writer));
        writer.length(self.volumes.len());
        for volume in &self.volumes {
            writer.u32(volume.number);
            writer.bytes(&volume.climb.snapshot());
            writer.bytes(&volume.file);
            writer.length(volume.unseen.len());
            volume.unseen.iter().for_each(|task| writer.text(task));
        }
        writer.length(self.scratch.len());
        self.scratch.iter().for_each(|climb| writer.bytes(&climb.snapshot()));
        self.pool.encode(&mut writer, format == OLDER);
        let PoolTally { installed, replaced, known, blocked } = self.pool_tally;
        [installed, replaced, known, blocked].into_iter().for_each(|count| writer.u32(count));
        writer.length(self.done.len());
        for (task, done) in &self.done {
            writer.text(task);
            writer.i64(done.score.to_raw());
            writer.bool(done.steps_to_99.is_some());
            done.steps_to_99.iter().for_each(|steps| writer.u64(*steps));
            [done.steps, done.agreement.0, done.agreement.1].into_iter().for_each(|count| writer.u64(count));
        }
        writer.length(self.had.len());
        for (task, score) in &self.had {
            writer.text(task);
            writer.i64(score.to_raw());
        }
        self.scheduler.encode(&mut writer);
        writer.length(self.chosen.len());
        for (domain, count) in &self.chosen {
            writer.text(domain);
            writer.u32(*count);
        }
        writer.u32(self.round);
        writer.u32(self.units);
        writer.u64(self.steps);
        writer.u32(self.learned);
        writer.u32(self.begun);
        writer.length(self.passed.len());
        self.passed.iter().for_each(|number| writer.u32(*number));
        writer.bool(self.kept_least.is_some());
        self.kept_least.iter().for_each(|share| writer.i64(share.to_raw()));
        writer.raw(self.head.as_bytes());
        let digest = hash(writer.as_bytes());
        writer.raw(digest.as_bytes());
        writer.into_bytes()
    }

    /// Goes on from bytes of a pipeline with this plan.
    pub fn from_bytes(plan: Plan, bytes: &[u8]) -> Result<Pipeline, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a saved pipeline, or one of another version");
        let is_older = match reader.text().ok() {
            Some(FORMAT) => false,
            Some(OLDER) => true,
            _ => return Err(foreign),
        };
        let damaged = reader.error("a saved pipeline that is damaged");
        let whole = bytes.len().checked_sub(32).ok_or_else(|| damaged.clone())?;
        if hash(&bytes[..whole]).as_bytes()[..] != bytes[whole..] {
            return Err(damaged);
        }
        let mut reader = Reader::new(&bytes[..whole]);
        reader.text()?;
        let another = reader.error("a saved pipeline of another plan");
        let seed = reader.u64()?;
        let (domains, late) = (read_texts(&mut reader)?, read_texts(&mut reader)?);
        if (seed, &domains) != (plan.seed, &plan.domains) {
            return Err(another);
        }
        let plan = Plan { late, endless: reader.bool()?, ..plan };
        let phase = phase_of(&mut reader)?;
        let cycle = reader.u32()? as usize;
        let specialists = list(&mut reader, 16, Specialist::decode)?;
        let volumes = list(&mut reader, 16, decode_volume)?;
        let scratch = list(&mut reader, 4, decode_climb)?;
        let pool = Pool::decode(&mut reader, is_older)?;
        let mut count = || reader.u32();
        let pool_tally =
            PoolTally { installed: count()?, replaced: count()?, known: count()?, blocked: count()? };
        let done = list(&mut reader, 37, |reader| {
            let (task, score) = (reader.text()?.to_string(), Fixed::from_raw(reader.i64()?));
            let steps_to_99 = if reader.bool()? { Some(reader.u64()?) } else { None };
            let (steps, agreement) = (reader.u64()?, (reader.u64()?, reader.u64()?));
            Ok((task, Done { score, steps_to_99, steps, agreement }))
        })?;
        let had =
            list(&mut reader, 12, |reader| Ok((reader.text()?.to_string(), Fixed::from_raw(reader.i64()?))))?;
        let scheduler = Bucket::decode(&mut reader)?;
        let chosen = list(&mut reader, 8, |reader| Ok((reader.text()?.to_string(), reader.u32()?)))?;
        let (round, units, steps) = (reader.u32()?, reader.u32()?, reader.u64()?);
        let (learned, begun) = (reader.u32()?, reader.u32()?);
        let passed = list(&mut reader, 4, Reader::u32)?;
        let kept_least = if reader.bool()? { Some(Fixed::from_raw(reader.i64()?)) } else { None };
        let head = Digest::decode(&mut reader)?;
        reader.finish()?;
        Ok(Pipeline {
            plan,
            phase,
            cycle,
            specialists,
            volumes,
            scratch,
            pool,
            pool_tally,
            done: done.into_iter().collect(),
            had: had.into_iter().collect(),
            scheduler,
            chosen: chosen.into_iter().collect(),
            round,
            units,
            steps,
            learned,
            begun,
            passed,
            kept_least,
            head,
        })
    }
}

fn phase_code(phase: Phase) -> u8 {
    match phase {
        Phase::Specialists => 1,
        Phase::Distillation => 2,
        Phase::Mixed => 3,
        Phase::Over => 0,
    }
}

fn phase_of(reader: &mut Reader<'_>) -> Result<Phase, DecodeError> {
    let unknown = reader.error("an unknown phase");
    Ok(match reader.u8()? {
        0 => Phase::Over,
        1 => Phase::Specialists,
        2 => Phase::Distillation,
        3 => Phase::Mixed,
        _ => return Err(unknown),
    })
}

fn texts(writer: &mut Writer, all: &[String]) {
    writer.length(all.len());
    all.iter().for_each(|text| writer.text(text));
}

fn read_texts(reader: &mut Reader<'_>) -> Result<Vec<String>, DecodeError> {
    list(reader, 4, |reader| reader.text().map(str::to_string))
}

/// A list behind its length, whose items each take at least this many bytes.
fn list<'r, T>(
    reader: &mut Reader<'r>,
    item_size_min: usize,
    mut decode: impl FnMut(&mut Reader<'r>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    (0..reader.length(item_size_min)?).map(|_| decode(reader)).collect()
}

fn encode_option<T>(writer: &mut Writer, item: Option<&T>, encode: impl Fn(&T, &mut Writer)) {
    writer.bool(item.is_some());
    item.iter().for_each(|item| encode(item, writer));
}

fn decode_option<'r, T>(
    reader: &mut Reader<'r>,
    decode: impl Fn(&mut Reader<'r>) -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    Ok(if reader.bool()? { Some(decode(reader)?) } else { None })
}

fn decode_climb(reader: &mut Reader<'_>) -> Result<Climb, DecodeError> {
    Climb::restore(reader.bytes()?)
}

fn decode_volume(reader: &mut Reader<'_>) -> Result<Volume, DecodeError> {
    let number = reader.u32()?;
    let climb = decode_climb(reader)?;
    let foreign = reader.error("a volume whose file is none");
    let file = reader.bytes()?.to_vec();
    let WorldFile::Distilled(distilled) = WorldFile::from_bytes(&file)? else { return Err(foreign) };
    let unseen = read_texts(reader)?.into_iter().collect();
    Ok(Volume { number, climb, distilled, file, unseen })
}

impl Specialist {
    fn encode(&self, writer: &mut Writer) {
        writer.text(&self.domain);
        writer.bytes(&self.climb.snapshot());
        writer.length(self.gathered.len());
        for (task, played) in &self.gathered {
            writer.text(task);
            writer.length(played.len());
            for (seed, episode) in played {
                writer.u64(*seed);
                episode.encode(writer);
            }
        }
        writer.length(self.mastered.len());
        for (task, mastered) in &self.mastered {
            writer.text(task);
            writer.u64(mastered.instance);
            writer.bool(mastered.machine.is_some());
            mastered.machine.iter().for_each(|machine| machine.encode(writer));
            writer.bool(mastered.adapting.is_some());
            mastered.adapting.iter().for_each(|agent| agent.encode(writer));
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Specialist, DecodeError> {
        let domain = reader.text()?.to_string();
        let climb = decode_climb(reader)?;
        let gathered = list(reader, 8, |reader| {
            let task = reader.text()?.to_string();
            let played = list(reader, 20, |reader| Ok((reader.u64()?, Episode::decode(reader)?)))?;
            Ok((task, played))
        })?;
        let mastered = list(reader, 14, |reader| {
            let (task, instance) = (reader.text()?.to_string(), reader.u64()?);
            let machine = if reader.bool()? { Some(Machine::decode(reader)?) } else { None };
            let adapting = if reader.bool()? { Some(Agent::decode(reader)?) } else { None };
            Ok((task, Mastered { instance, machine, adapting }))
        })?;
        let (gathered, mastered) = (gathered.into_iter().collect(), mastered.into_iter().collect());
        Ok(Specialist { domain, climb, gathered, mastered })
    }
}

impl Pool {
    fn encode(&self, writer: &mut Writer, is_older: bool) {
        writer.u32(self.next);
        writer.length(self.experts.len());
        for (number, expert) in &self.experts {
            writer.u32(*number);
            match expert {
                Expert::Machine(machine) => {
                    writer.u8(0);
                    machine.encode(writer);
                }
                Expert::Agent(agent, shape) => {
                    writer.u8(1);
                    agent.encode(writer);
                    shape.encode(writer);
                }
                Expert::Rule(rule) => {
                    writer.u8(2);
                    rule.encode(writer);
                }
            }
        }
        writer.length(self.routes.len());
        for (task, route) in &self.routes {
            writer.text(task);
            writer.text(&route.domain);
            writer.u64(route.seed);
            writer.u64(route.instance);
            writer.u32(route.expert);
            writer.i64(route.score.to_raw());
            writer.i64(route.best.to_raw());
            if !is_older {
                encode_option(writer, route.renaming.as_ref(), Renaming::encode);
            }
        }
        if is_older {
            return;
        }
        writer.length(self.measured.len());
        for (task, scores) in &self.measured {
            writer.text(task);
            writer.length(scores.len());
            for (number, found) in scores {
                writer.u32(*number);
                encode_option(writer, found.as_ref(), |found, writer| {
                    writer.i64(found.score.to_raw());
                    encode_option(writer, found.renaming.as_ref(), Renaming::encode);
                });
            }
        }
    }

    fn decode(reader: &mut Reader<'_>, is_older: bool) -> Result<Pool, DecodeError> {
        let next = reader.u32()?;
        let experts = list(reader, 5, |reader| {
            let number = reader.u32()?;
            let unknown = reader.error("an unknown kind of expert");
            let expert = match reader.u8()? {
                0 => Expert::Machine(Machine::decode(reader)?),
                1 => Expert::Agent(Agent::decode(reader)?, Shape::decode(reader)?),
                2 => Expert::Rule(Adaptation::decode(reader)?),
                _ => return Err(unknown),
            };
            Ok((number, expert))
        })?;
        let experts: BTreeMap<u32, Expert> = experts.into_iter().collect();
        let routes = list(reader, 44, |reader| {
            let impossible = reader.error("a setting that this version cannot build");
            let lost = reader.error("a setting whose expert is not there");
            let (task, domain) = (reader.text()?.to_string(), reader.text()?.to_string());
            let (seed, instance, expert) = (reader.u64()?, reader.u64()?, reader.u32()?);
            let (score, best) = (Fixed::from_raw(reader.i64()?), Fixed::from_raw(reader.i64()?));
            let renaming = if is_older { None } else { decode_option(reader, Renaming::decode)? };
            let Ok(World::Game(game)) = Catalog.open(&task, instance) else { return Err(impossible) };
            if !experts.contains_key(&expert) {
                return Err(lost);
            }
            Ok((task, Route { domain, game, seed, instance, expert, renaming, score, best }))
        })?;
        let measured = if is_older { Vec::new() } else { list(reader, 8, decode_scores)? };
        let (routes, measured) = (routes.into_iter().collect(), measured.into_iter().collect());
        Ok(Pool { experts, next, routes, measured })
    }
}

fn decode_scores(reader: &mut Reader<'_>) -> Result<(String, ExpertScores), DecodeError> {
    let task = reader.text()?.to_string();
    let scores = list(reader, 5, |reader| {
        let number = reader.u32()?;
        let found = decode_option(reader, |reader| {
            let score = Fixed::from_raw(reader.i64()?);
            Ok(ExpertScore { score, renaming: decode_option(reader, Renaming::decode)? })
        })?;
        Ok((number, found))
    })?;
    Ok((task, scores.into_iter().collect()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::pool::tests::pool_of_codings;
    use std::sync::Arc;

    /// One domain, learned in short tries.
    pub(crate) fn small_plan(domain: &str) -> Plan {
        Plan {
            seed: 1,
            domains: vec![domain.to_string()],
            late: Vec::new(),
            stages: 2,
            unit_steps: 2_000,
            mixed_rounds: 1,
            distils: true,
            masks: true,
            compares: false,
            endless: false,
            parameters: Arc::default(),
            main: Arc::default(),
        }
    }

    #[test]
    fn a_pool_with_other_names_comes_back_and_the_version_before_is_still_read() {
        let mut pipeline = Pipeline::new(small_plan("algorithms")).unwrap();
        pipeline.pool = pool_of_codings();
        let older = pipeline.written_as(OLDER);
        let read = Pipeline::from_bytes(small_plan("algorithms"), &older).unwrap();
        // What the version before could say is all there, and it is saved as the present one.
        assert!(read.to_bytes() == pipeline.to_bytes() && read.to_bytes() != older);
        pipeline.pool.settle(Vec::new()).unwrap();
        assert!(pipeline.pool.routes().any(|(_, route)| route.renaming.is_some()));
        let bytes = pipeline.to_bytes();
        let read = Pipeline::from_bytes(small_plan("algorithms"), &bytes).unwrap();
        assert_eq!(read.to_bytes(), bytes);
        assert!(read.pool.measured == pipeline.pool.measured && !read.pool.measured.is_empty());
        let names = |pipeline: &Pipeline| -> Vec<_> {
            pipeline.pool.routes().map(|(task, route)| (task.to_string(), route.renaming.clone())).collect()
        };
        assert_eq!(names(&read), names(&pipeline));
        // Control: a version that nobody knows is refused.
        assert!(
            Pipeline::from_bytes(small_plan("algorithms"), &pipeline.written_as("bem pipeline 2")).is_err()
        );
    }
}
