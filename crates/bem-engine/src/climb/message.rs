//! A unit as messages: what a worker is sent and what it answers, both as canonical bytes.
//!
//! An order holds all that a unit needs, the files of its worlds included; an answer holds all that the climb and its history
//! need of the result. So a thread, another process and another machine do the same work, and who did it shows nowhere: an
//! answer's bytes are a function of the order's. Every decoder is bounded by what it is given, and accepts only what this
//! version could have written. Must not know how messages travel. Clauses: SCC-15, PIPE-4, LOG-5; decision D-132.

use super::ClimbError;
use super::unit::{Assignment, Unit, UnitResult, Worked};
use crate::chronicle::Chronicle;
use crate::codec::{decode_list, decode_option, encode_list, encode_option};
use crate::evaluate::{Evaluation, Yardstick};
use crate::learner::Learned;
use crate::online::Online;
use crate::shard::Shard;
use crate::solve::Solution;
use crate::suspend::{decode_curve, decode_decisions, encode_curve, encode_decisions};
use crate::world_file::WorldFile;
use crate::worlds::{Catalog, Worlds};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use bem_machine::config::GenesisConfig;
use bem_synth::experience::Episode;
use bem_synth::library::Machine;
use std::sync::Arc;

/// The first words of what a worker is sent.
const ORDER: &str = "bem order 1";
/// The first words of what it answers.
const ANSWER: &str = "bem answer 1";

/// What a worker is sent.
#[derive(Clone, Debug)]
pub struct Order {
    /// The unit with all that it needs.
    pub assignment: Assignment,
    /// The files that its worlds are made of; none for the catalog's.
    pub files: Vec<Vec<u8>>,
    /// Where the unit was put away, if it was.
    pub put_away: Option<Vec<u8>>,
}

impl Order {
    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.text(ORDER);
        self.assignment.encode(&mut writer);
        encode_list(&mut writer, self.files.iter(), |file, writer| writer.bytes(file));
        encode_option(&mut writer, self.put_away.as_ref(), |bytes, writer| writer.bytes(bytes));
        writer.into_bytes()
    }

    /// Reads canonical bytes back.
    pub fn from_bytes(bytes: &[u8]) -> Result<Order, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a unit to work on, or one of another version");
        if reader.text()? != ORDER {
            return Err(foreign);
        }
        let assignment = Assignment::decode(&mut reader)?;
        let files = decode_list(&mut reader, |reader| reader.bytes().map(<[u8]>::to_vec))?;
        let put_away = decode_option(&mut reader, |reader| reader.bytes().map(<[u8]>::to_vec))?;
        reader.finish()?;
        Ok(Order { assignment, files, put_away })
    }

    /// Works on it in these worlds and answers; the answer names what went wrong where something did.
    pub fn work(self, worlds: &dyn Worlds, go_on: &mut dyn FnMut() -> bool) -> Vec<u8> {
        answer(&self.assignment.go_on_in(worlds, self.put_away.as_deref(), go_on))
    }
}

/// Works on an order over the catalog's worlds, distilled or not, and answers: what every worker does, wherever it runs.
pub fn work(bytes: &[u8], go_on: &mut dyn FnMut() -> bool) -> Vec<u8> {
    let failed = |reason: String| answer(&Err(ClimbError::Elsewhere(reason)));
    let order = match Order::from_bytes(bytes) {
        Ok(order) => order,
        Err(error) => return failed(error.to_string()),
    };
    match order.files.as_slice() {
        [] => order.work(&Catalog, go_on),
        [file] => match WorldFile::from_bytes(file) {
            Ok(WorldFile::Distilled(distilled)) => order.work(&distilled, go_on),
            Ok(_) => failed("a unit over worlds that no worker can open".to_string()),
            Err(error) => failed(error.to_string()),
        },
        _ => failed("a unit over worlds of several files".to_string()),
    }
}

/// How far a worker came, as canonical bytes.
pub fn answer(worked: &Result<Worked, ClimbError>) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.text(ANSWER);
    match worked {
        Ok(Worked::Done(result)) => {
            writer.u8(0);
            result.encode(&mut writer);
        }
        Ok(Worked::PutAway(bytes)) => {
            writer.u8(1);
            writer.bytes(bytes);
        }
        Err(error) => {
            writer.u8(2);
            writer.text(&error.to_string());
        }
    }
    writer.into_bytes()
}

/// Reads an answer to this unit; one to another unit is refused.
pub fn read_answer(
    unit: &Unit,
    parameters: &GenesisConfig,
    bytes: &[u8],
) -> Result<Result<Worked, ClimbError>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let foreign = reader.error("not the answer of a worker, or one of another version");
    if reader.text()? != ANSWER {
        return Err(foreign);
    }
    let worked = match reader.u8()? {
        0 => {
            let other = reader.error("the answer to another unit");
            let result = UnitResult::decode(parameters, &mut reader)?;
            if result.unit != *unit {
                return Err(other);
            }
            Ok(Worked::Done(Box::new(result)))
        }
        1 => Ok(Worked::PutAway(reader.bytes()?.to_vec())),
        2 => Err(ClimbError::Elsewhere(reader.text()?.to_string())),
        _ => return Err(foreign),
    };
    reader.finish()?;
    Ok(worked)
}

impl Assignment {
    /// What a learner of this unit works with.
    pub fn parameters(&self) -> &GenesisConfig {
        &self.parameters
    }

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.unit.to_bytes());
        writer.u64(self.seed);
        self.parameters.encode(writer);
        encode_option(writer, self.shard.as_ref(), Shard::encode);
        encode_list(writer, self.library.iter(), Machine::encode);
        encode_list(writer, self.borrowed.iter(), Machine::encode);
        writer.bool(self.until_solved);
        writer.bool(self.gathers);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Assignment, DecodeError> {
        let unit = Unit::from_bytes(reader.bytes()?)?;
        let seed = reader.u64()?;
        let parameters = Arc::new(GenesisConfig::decode(reader)?);
        let shard = decode_option(reader, |reader| Shard::decode(&parameters, reader))?;
        let library = decode_list(reader, Machine::decode)?;
        let borrowed = decode_list(reader, Machine::decode)?;
        let (until_solved, gathers) = (reader.bool()?, reader.bool()?);
        Ok(Assignment { unit, seed, parameters, shard, library, borrowed, until_solved, gathers })
    }
}

impl UnitResult {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.unit.to_bytes());
        writer.u64(self.seed);
        writer.bool(self.reused);
        self.solution.encode(writer);
    }

    fn decode(parameters: &GenesisConfig, reader: &mut Reader<'_>) -> Result<UnitResult, DecodeError> {
        let unit = Unit::from_bytes(reader.bytes()?)?;
        let (seed, reused) = (reader.u64()?, reader.bool()?);
        Ok(UnitResult { unit, seed, solution: Solution::decode(parameters, reader)?, reused })
    }
}

impl Solution {
    fn encode(&self, writer: &mut Writer) {
        self.learned.encode(writer);
        encode_option(writer, self.yardstick.as_ref(), |yardstick, writer| {
            writer.i64(yardstick.optimum.to_raw());
            writer.i64(yardstick.random.to_raw());
        });
        writer.i64(self.evaluation.mean.to_raw());
        writer.i64(self.evaluation.error.to_raw());
        writer.u32(self.evaluation.bad);
        writer.u32(self.evaluation.episodes);
        for steps in [self.steps_to_99, self.first_to_99] {
            encode_option(writer, steps.as_ref(), |steps, writer| writer.u64(*steps));
        }
        encode_curve(&self.curve, writer);
        encode_decisions(&self.decisions, writer);
        self.chronicle.encode(writer);
        self.online.encode(writer);
        self.shard.encode(writer);
        encode_list(writer, self.gathered.iter(), Episode::encode);
    }

    fn decode(parameters: &GenesisConfig, reader: &mut Reader<'_>) -> Result<Solution, DecodeError> {
        let learned = Learned::decode(reader)?;
        let fixed = |reader: &mut Reader<'_>| reader.i64().map(Fixed::from_raw);
        let yardstick = decode_option(reader, |reader| {
            Ok(Yardstick { optimum: fixed(reader)?, random: fixed(reader)? })
        })?;
        let (mean, error) = (fixed(reader)?, fixed(reader)?);
        let evaluation = Evaluation { mean, error, bad: reader.u32()?, episodes: reader.u32()? };
        let mut steps = || decode_option(reader, Reader::u64);
        let (steps_to_99, first_to_99) = (steps()?, steps()?);
        let (curve, decisions) = (decode_curve(reader)?, decode_decisions(reader)?);
        let (chronicle, online) = (Chronicle::decode(reader)?, Online::decode(reader)?);
        let unplayed = reader.error("a machine that has worked in no world");
        let shard = Shard::decode(parameters, reader)?;
        if shard.shape().is_none() {
            return Err(unplayed);
        }
        let gathered = decode_list(reader, Episode::decode)?;
        Ok(Solution {
            learned,
            yardstick,
            evaluation,
            steps_to_99,
            first_to_99,
            curve,
            decisions,
            chronicle,
            online,
            shard,
            gathered,
        })
    }
}
