//! Everything that a world outside was asked and has answered, in order, so that it can be played again without it.
//!
//! ```text
//! reset    0, seed 8 bytes, observation
//! step     1 + 2 done + 4 bad + 16 reward awaited + 32 late rewards, action 2 bytes, reward 4 bytes, observation;
//!          late rewards: their count 4 bytes, and of each the step 4 bytes and the reward 4 bytes
//! failure  8, the world's words
//! lost     64: the episode in flight is gone
//! ```
//!
//! An observation takes as many bytes as its bits need. A playback that is asked for anything but the next call of the
//! record says so and goes no further. Clauses: LOG-5, GLE-9.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{
    Bits, Environment, EnvironmentError, Forbidden, Late, OBSERVATION_WORDS, Outcome, Shape,
};
use bem_base::limits::{ACTIONS_MAX, OBSERVATION_BITS_MAX};
use bem_synth::experience::{Episode, Step};

const RESET: u8 = 0;
const STEP: u8 = 1;
const DONE: u8 = 2;
const BAD: u8 = 4;
const FAILURE: u8 = 8;
const AWAITED: u8 = 16;
const LATE: u8 = 32;
const LOST: u8 = 64;

/// Whether a call is a step.
fn is_step(tag: u8) -> bool {
    tag & STEP == STEP && tag & !(STEP | DONE | BAD | AWAITED | LATE) == 0
}

/// Reads the late rewards of a step, if it has any.
fn read_late(reader: &mut Reader<'_>, tag: u8) -> Result<Vec<Late>, DecodeError> {
    if tag & LATE == 0 {
        return Ok(Vec::new());
    }
    (0..reader.length(8)?).map(|_| Ok(Late { step: reader.u32()?, reward: reader.i32()? })).collect()
}

/// What a world outside has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    shape: Shape,
    calls: Vec<u8>,
    /// What must never be done, in rising order.
    forbidden: Vec<Forbidden>,
    /// How named features became bits, in the words of whoever encodes them.
    features: Option<String>,
    /// Whether the world says that an episode comes back by its seed.
    repeats: bool,
}

impl Record {
    /// The record of a world of this shape with these calls, which forbids nothing and names no features.
    pub fn new(shape: Shape, calls: Vec<u8>) -> Record {
        Record { shape, calls, forbidden: Vec::new(), features: None, repeats: true }
    }

    /// The shape of the world.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The episodes that were played to their end, as far as the calls can be read. How an action was chosen is not in them.
    pub fn episodes(&self) -> Vec<Episode> {
        let mut reader = Reader::new(&self.calls);
        let mut episodes: Vec<Episode> = Vec::new();
        let mut steps: Vec<Step> = Vec::new();
        let mut seen = Bits::ZERO;
        while let Ok(tag) = reader.u8() {
            let outcome = match tag {
                RESET => reader.u64().map(|_| None),
                LOST => {
                    steps.clear();
                    continue;
                }
                tag if is_step(tag) => {
                    reader.u16().and_then(|action| reader.i32().map(|reward| Some((action, reward))))
                }
                _ => break,
            };
            let Ok(outcome) = outcome else { break };
            let Ok(bytes) = reader.raw(observation_bytes(&self.shape)) else { break };
            let Ok(late) = read_late(&mut reader, tag) else { break };
            match outcome {
                None => steps.clear(),
                Some((action, reward)) => {
                    let done = tag & DONE == DONE;
                    for Late { step, reward } in late {
                        steps.get_mut(step as usize).into_iter().for_each(|step| step.reward = reward);
                    }
                    let (bad, uniform, propensity) = (tag & 4 == 4, false, u16::MAX);
                    steps.push(Step { observation: seen, action, reward, done, bad, uniform, propensity });
                    if done {
                        let serial = episodes.len() as u64;
                        episodes.push(Episode { serial, steps: core::mem::take(&mut steps) });
                    }
                }
            }
            seen = observation_of(bytes);
        }
        episodes
    }

    /// How named features became bits.
    pub fn features(&self) -> Option<&str> {
        self.features.as_deref()
    }

    /// The same record of a world with named features.
    #[must_use]
    pub fn named(mut self, features: Option<String>) -> Record {
        self.features = features;
        self
    }

    /// The record of the same world with these calls.
    #[must_use]
    pub fn with_calls(mut self, calls: Vec<u8>) -> Record {
        self.calls = calls;
        self
    }

    /// Whether it is of the same world: shape, what is forbidden and features.
    pub fn is_of_same_world(&self, other: &Record) -> bool {
        self.shape == other.shape
            && self.forbidden == other.forbidden
            && self.features == other.features
            && self.repeats == other.repeats
    }

    /// Whether it holds more than shape and calls.
    pub(super) fn is_extended(&self) -> bool {
        self.features.is_some() || !self.forbidden.is_empty()
    }

    /// Whether the world says that an episode comes back by its seed.
    pub fn repeats(&self) -> bool {
        self.repeats
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.shape.encode(writer);
        writer.bytes(&self.calls);
        if !self.is_extended() && self.repeats {
            return;
        }
        writer.length(self.forbidden.len());
        self.forbidden.iter().for_each(|pair| pair.encode(writer));
        writer.text(self.features.as_deref().unwrap_or(""));
    }

    /// Reads a record that holds forbidden actions or features besides.
    pub(super) fn decode_extended(reader: &mut Reader<'_>) -> Result<Record, DecodeError> {
        let plain = reader.error("a record that holds nothing besides shape and calls");
        let record = Record::decode_besides(reader)?;
        if record.is_extended() { Ok(record) } else { Err(plain) }
    }

    /// Reads the record of a world that cannot be repeated.
    pub(super) fn decode_unrepeated(reader: &mut Reader<'_>) -> Result<Record, DecodeError> {
        Ok(Record { repeats: false, ..Record::decode_besides(reader)? })
    }

    fn decode_besides(reader: &mut Reader<'_>) -> Result<Record, DecodeError> {
        let mut record = Record::decode(reader)?;
        let malformed = reader.error("forbidden actions that are out of order or out of range");
        for _ in 0..reader.length(Forbidden::BYTES)? {
            let forbidden = Forbidden::decode(reader)?;
            let rises = record.forbidden.last().is_none_or(|last| *last < forbidden);
            if !rises || record.shape.actions <= forbidden.action {
                return Err(malformed);
            }
            record.forbidden.push(forbidden);
        }
        let text = reader.text()?;
        record.features = (!text.is_empty()).then(|| text.to_string());
        Ok(record)
    }

    /// Reads the shape and takes the calls as they are: they are looked at when they are played.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Record, DecodeError> {
        let malformed = reader.error("a world that cannot be");
        let shape = Shape::decode(reader)?;
        let Shape { observation_bits, actions, horizon, .. } = shape;
        let ordered = shape.reward_min <= shape.reward_max && shape.return_min <= shape.return_max;
        let counts = (1..=ACTIONS_MAX).contains(&usize::from(actions)) && 1 <= horizon;
        if OBSERVATION_BITS_MAX < usize::from(observation_bits) || !counts || !ordered {
            return Err(malformed);
        }
        Ok(Record::new(shape, reader.bytes()?.to_vec()))
    }

    /// The calls as bytes, without the rest.
    pub fn into_calls(self) -> Vec<u8> {
        self.calls
    }

    /// The calls as bytes.
    pub fn calls(&self) -> &[u8] {
        &self.calls
    }

    /// Whether it ends because the world failed or somebody asked to stop.
    pub fn is_cut(&self) -> bool {
        self.scan().1 == End::Failed
    }

    /// The same up to the last episode that was played to its end: from there a world that is started anew can go on. What
    /// is damaged or was cut off while it was written ends it as well.
    #[must_use]
    pub fn whole_episodes(&self) -> Record {
        let (whole, _) = self.scan();
        Record { calls: self.calls[..whole].to_vec(), ..self.clone() }
    }

    /// How many bytes hold whole episodes, and why the walk ended.
    fn scan(&self) -> (usize, End) {
        let seen = observation_bytes(&self.shape);
        let (mut position, mut whole, mut is_done) = (0, 0, true);
        loop {
            let mut reader = Reader::new(&self.calls[position..]);
            let call = match reader.u8() {
                Err(_) if position == self.calls.len() => return (whole, End::Whole),
                Ok(FAILURE) => return (whole, End::Failed),
                Ok(RESET) => reader.raw(8 + seen).map(|_| true),
                Ok(LOST) if !is_done => {
                    is_done = true;
                    Ok(false)
                }
                Ok(tag) if is_step(tag) && !is_done => {
                    is_done = tag & DONE == DONE;
                    reader.raw(6 + seen).and_then(|_| read_late(&mut reader, tag)).map(|_| false)
                }
                _ => return (whole, End::Failed),
            };
            let Ok(is_reset) = call else { return (whole, End::Failed) };
            if is_reset {
                // An episode that was looked at and not played is over when the next one begins.
                (whole, is_done) = (position, false);
            }
            position += reader.position();
            if is_done {
                whole = position;
            }
        }
    }
}

/// Why a walk through a record ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole,
    Failed,
}

/// Bytes of an observation.
fn observation_bytes(shape: &Shape) -> usize {
    usize::from(shape.observation_bits).div_ceil(8)
}

fn observation_of(seen: &[u8]) -> Bits {
    let mut bytes = [0; 8 * OBSERVATION_WORDS];
    bytes[..seen.len()].copy_from_slice(seen);
    let (words, _) = bytes.as_chunks::<8>();
    let mut observation = Bits::ZERO;
    for (word, bytes) in observation.0.iter_mut().zip(words) {
        *word = u64::from_le_bytes(*bytes);
    }
    observation
}

/// Who takes bytes.
pub type Sink<'a> = &'a mut dyn FnMut(&[u8]);

/// A world outside, with somebody who writes along.
///
/// It can be told to stop: the next call then fails, and the failure is written down like any other. A learner in the
/// playback therefore comes to the same end, whatever it thought about between its last call and this one.
pub struct Recorder<'a> {
    world: &'a mut dyn Environment,
    calls: Writer,
    is_asked_to_stop: &'a dyn Fn() -> bool,
    /// Who is given the bytes of every episode when it is over, and how many bytes they have.
    sink: Option<(Sink<'a>, usize)>,
}

impl<'a> Recorder<'a> {
    /// Nothing was asked yet.
    pub fn new(world: &'a mut dyn Environment) -> Recorder<'a> {
        Recorder::until(world, &|| false)
    }

    /// The same until somebody asks to stop.
    pub fn until(world: &'a mut dyn Environment, is_asked_to_stop: &'a dyn Fn() -> bool) -> Recorder<'a> {
        Recorder { world, calls: Writer::new(), is_asked_to_stop, sink: None }
    }

    /// The same, and every episode's bytes go to the sink when it is over.
    #[must_use]
    pub fn into_sink(mut self, sink: Sink<'a>) -> Recorder<'a> {
        self.sink = Some((sink, 0));
        self
    }

    fn give(&mut self) {
        if let Some((sink, given)) = &mut self.sink {
            sink(&self.calls.as_bytes()[*given..]);
            *given = self.calls.as_bytes().len();
        }
    }

    /// What was answered so far.
    pub fn into_record(self) -> Record {
        Record {
            shape: self.world.shape().clone(),
            calls: self.calls.into_bytes(),
            forbidden: self.world.forbidden().to_vec(),
            features: None,
            repeats: self.world.repeats(),
        }
    }

    fn see(&mut self) {
        let words = self.world.observation().0.map(u64::to_le_bytes);
        self.calls.raw(&words.as_flattened()[..observation_bytes(self.world.shape())]);
    }

    fn check_stop(&mut self) -> Result<(), EnvironmentError> {
        if !(self.is_asked_to_stop)() {
            return Ok(());
        }
        Err(self.fail(EnvironmentError::External("stopped on request".to_string())))
    }

    fn fail(&mut self, error: EnvironmentError) -> EnvironmentError {
        if error == EnvironmentError::Lost {
            self.calls.u8(LOST);
            self.give();
            return error;
        }
        self.calls.u8(FAILURE);
        self.calls.text(&error.to_string());
        error
    }
}

impl Environment for Recorder<'_> {
    fn shape(&self) -> &Shape {
        self.world.shape()
    }

    fn forbidden(&self) -> &[Forbidden] {
        self.world.forbidden()
    }

    fn repeats(&self) -> bool {
        self.world.repeats()
    }

    fn is_awaited(&self) -> bool {
        self.world.is_awaited()
    }

    fn late(&self) -> &[Late] {
        self.world.late()
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.check_stop()?;
        self.world.reset(seed).map_err(|error| self.fail(error))?;
        self.calls.u8(RESET);
        self.calls.u64(seed);
        self.see();
        Ok(())
    }

    fn observation(&self) -> &Bits {
        self.world.observation()
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        self.check_stop()?;
        let outcome = self.world.step(action).map_err(|error| self.fail(error))?;
        let (is_awaited, late) = (self.world.is_awaited(), self.world.late().to_vec());
        let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        let terms = flag(AWAITED, is_awaited) | flag(LATE, !late.is_empty());
        self.calls.u8(STEP | flag(DONE, outcome.done) | flag(BAD, outcome.bad) | terms);
        self.calls.u16(action);
        self.calls.i32(outcome.reward);
        self.see();
        if !late.is_empty() {
            self.calls.length(late.len());
            for Late { step, reward } in late {
                self.calls.u32(step);
                self.calls.i32(reward);
            }
        }
        if outcome.done {
            self.give();
        }
        Ok(outcome)
    }
}

/// Makes the range of rewards hold what a step has paid; how much that was.
pub(super) fn widen(shape: &mut Shape, outcome: &Outcome, is_awaited: bool, late: &[Late]) -> i64 {
    let own = (!is_awaited).then_some(outcome.reward);
    let rewards = own.into_iter().chain(late.iter().map(|late| late.reward));
    rewards.map(|reward| (shape.cover_reward(reward), i64::from(reward)).1).sum()
}

/// A world that answers as it did before.
pub struct Playback {
    record: Record,
    position: usize,
    observation: Bits,
    is_awaited: bool,
    late: Vec<Late>,
    /// The shape of the world, as wide as what it has paid so far.
    shape: Shape,
    /// What the episode has paid.
    total: i64,
}

impl Playback {
    /// Whether everything has been played.
    pub(super) fn is_over(&self) -> bool {
        self.position == self.record.calls.len()
    }

    /// At the start of a record.
    pub fn new(record: &Record) -> Playback {
        Playback {
            record: record.clone(),
            position: 0,
            observation: Bits::ZERO,
            is_awaited: false,
            late: Vec::new(),
            shape: record.shape.clone(),
            total: 0,
        }
    }

    /// Reads the next call with this function; it must be the one that is asked for.
    fn next<T>(
        &mut self,
        what: &str,
        read: impl FnOnce(&mut Reader<'_>, u8) -> Result<Option<T>, DecodeError>,
    ) -> Result<T, EnvironmentError> {
        let place = self.position;
        let other =
            || EnvironmentError::External(format!("{what} is not what byte {place} of the record holds"));
        let cut = |error: DecodeError| EnvironmentError::External(format!("the record ends: {error}"));
        let mut reader = Reader::new(&self.record.calls[place..]);
        let tag = reader.u8().map_err(cut)?;
        if tag == FAILURE {
            return Err(EnvironmentError::External(reader.text().map_err(cut)?.to_string()));
        }
        if tag == LOST {
            self.position = place + reader.position();
            return Err(EnvironmentError::Lost);
        }
        let answer = read(&mut reader, tag).map_err(cut)?.ok_or_else(other)?;
        let seen = reader.raw(observation_bytes(&self.record.shape)).map_err(cut)?;
        self.late = read_late(&mut reader, tag).map_err(cut)?;
        self.is_awaited = tag & AWAITED == AWAITED;
        self.observation = observation_of(seen);
        self.position = place + reader.position();
        Ok(answer)
    }
}

impl Environment for Playback {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn forbidden(&self) -> &[Forbidden] {
        &self.record.forbidden
    }

    fn repeats(&self) -> bool {
        self.record.repeats
    }

    fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    fn late(&self) -> &[Late] {
        &self.late
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.total = 0;
        self.next(&format!("an episode with seed {seed}"), |reader, tag| {
            Ok((tag == RESET && reader.u64()? == seed).then_some(()))
        })
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let outcome = self.next(&format!("action {action}"), |reader, tag| {
            let is_asked = is_step(tag) && reader.u16()? == action;
            let reward = reader.i32()?;
            Ok(is_asked.then_some(Outcome { reward, done: tag & DONE == DONE, bad: tag & BAD == BAD }))
        })?;
        self.total += widen(&mut self.shape, &outcome, self.is_awaited, &self.late);
        if outcome.done {
            self.shape.cover_return(self.total);
        }
        Ok(outcome)
    }
}
