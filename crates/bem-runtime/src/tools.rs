//! Requests to tools as inputs: what was asked, what came back, and which are still under way.
//!
//! A request is an input and is durable before a worker sees it; its number and its payload make the key by which an effect
//! happens once. Its end is another input, so that a history is played again without any worker. Contents of sensitive
//! resources are not in the history: a keyed hash stands for them, and they lie in a volume of their own. Must not know the
//! bus or how requests are worked on. Clauses: TOOL-2, TOOL-9 to TOOL-11; decisions D-28, D-30, D-72.

use bem_base::digest::{Digest, hash, hash_parts};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::ids::{ObjectClass, ObjectId};
use bem_ledger::entry::{ToolCall, ToolPhase, ToolStatus};
use std::collections::BTreeMap;

/// The form of the tables in a snapshot. The form before it had no version of the layer.
const FORM: u64 = 3;
/// See [`FORM`].
const FORM_BEFORE: u64 = 2;
/// The version of the tool layer, 0.0.1, as it stands in snapshots: 16 bits each, the first highest.
pub const LAYER: u64 = 1;
/// Bytes of a request or a response at most.
pub const PAYLOAD_MAX: usize = 1 << 20;
/// Requests under way at most.
pub const IN_FLIGHT_MAX: usize = 2_048;
/// Kinds that are counted apart.
const KINDS_MAX: usize = 64;
/// The error of a request whose outcome nobody knows.
pub const OUTCOME_UNKNOWN: u16 = 10;

/// What is asked of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAsk {
    /// The kind of tool.
    pub tool: ObjectId,
    /// Its operation.
    pub operation: u16,
    /// The operation's flags.
    pub flags: u16,
    /// On what.
    pub resource: ObjectId,
    /// Bytes that the response may have.
    pub capacity: u32,
    /// Whether it may be tried again after a worker was lost.
    pub is_idempotent: bool,
    /// Whether contents stay out of the history; then `payload` is their keyed hash.
    pub is_sensitive: bool,
    /// The task at work; 0 for a request by hand.
    pub task: u64,
    /// The payload.
    pub payload: Vec<u8>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDone {
    /// The request's number.
    pub request: u64,
    /// The slot that it had.
    pub slot: u16,
    /// The generation that ended.
    pub generation: u32,
    /// The error; 0 if it is done.
    pub error: u16,
    /// How often it was tried.
    pub attempts: u32,
    /// The response; of a sensitive resource its keyed hash.
    pub response: Vec<u8>,
}

/// What was counted of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests that ended well.
    pub done: u64,
    /// Requests that failed.
    pub failed: u64,
}

/// The tools' part of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    in_flight: BTreeMap<u64, ToolAsk>,
    /// What was known of tools when each of them was asked.
    contexts: BTreeMap<u64, Digest>,
    /// A chain over every answer so far: what is known of tools.
    known: Digest,
    counted: BTreeMap<ObjectId, Counted>,
    /// The newest answer about a resource: the request's number and what names its response.
    newest: BTreeMap<(ObjectId, u16, ObjectId), (u64, Digest)>,
}

/// Newest answers that are kept.
const NEWEST_MAX: usize = 4_096;

fn id(reader: &mut Reader<'_>) -> Result<ObjectId, DecodeError> {
    let damaged = reader.error("a damaged identifier");
    ObjectId::from_word(reader.u32()?).map_err(|_| damaged)
}

/// What stands for contents that are not in the history.
pub fn keyed_hash(key: &[u8; 32], contents: &[u8]) -> Digest {
    hash_parts("bem/withheld", &[key, contents])
}

impl ToolAsk {
    /// Whether a service can take it.
    pub fn is_sound(&self) -> bool {
        self.tool.class() == ObjectClass::ToolKind
            && (1..=PAYLOAD_MAX).contains(&(self.capacity as usize))
            && self.payload.len() <= PAYLOAD_MAX
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u32(self.tool.to_word());
        writer.u16(self.operation);
        writer.u16(self.flags);
        writer.u32(self.resource.to_word());
        writer.u32(self.capacity);
        writer.u8(u8::from(self.is_idempotent) | u8::from(self.is_sensitive) << 1);
        writer.u64(self.task);
        writer.bytes(&self.payload);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<ToolAsk, DecodeError> {
        let refused = reader.error("a request that no tool can be asked");
        let tool = id(reader)?;
        let (operation, flags, resource) = (reader.u16()?, reader.u16()?, id(reader)?);
        let (capacity, bits, task) = (reader.u32()?, reader.u8()?, reader.u64()?);
        let payload = reader.bytes()?.to_vec();
        let (is_idempotent, is_sensitive) = (bits & 1 == 1, bits & 2 == 2);
        let ask = ToolAsk {
            tool,
            operation,
            flags,
            resource,
            capacity,
            is_idempotent,
            is_sensitive,
            task,
            payload,
        };
        if bits < 4 && ask.is_sound() { Ok(ask) } else { Err(refused) }
    }
}

impl ToolDone {
    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.request);
        writer.u16(self.slot);
        writer.u32(self.generation);
        writer.u16(self.error);
        writer.u32(self.attempts);
        writer.bytes(&self.response);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<ToolDone, DecodeError> {
        let long = reader.error("a response that is too long");
        let done = ToolDone {
            request: reader.u64()?,
            slot: reader.u16()?,
            generation: reader.u32()?,
            error: reader.u16()?,
            attempts: reader.u32()?,
            response: reader.bytes()?.to_vec(),
        };
        if done.response.len() <= PAYLOAD_MAX { Ok(done) } else { Err(long) }
    }
}

impl Tools {
    /// Requests under way, by number.
    pub fn in_flight(&self) -> &BTreeMap<u64, ToolAsk> {
        &self.in_flight
    }

    /// What was counted, by kind.
    pub fn counted(&self) -> impl Iterator<Item = (ObjectId, Counted)> {
        self.counted.iter().map(|(kind, counted)| (*kind, *counted))
    }

    /// The newest answer of an operation about a resource: the request's number, and what names the response.
    pub fn newest(&self, tool: ObjectId, operation: u16, resource: ObjectId) -> Option<(u64, Digest)> {
        self.newest.get(&(tool, operation, resource)).copied()
    }

    /// Whether nothing was ever asked.
    pub fn is_unused(&self) -> bool {
        self.in_flight.is_empty() && self.counted.is_empty()
    }

    /// A request is under way.
    pub fn ask(&mut self, number: u64, ask: &ToolAsk) -> Result<ToolCall, &'static str> {
        if !ask.is_sound() || IN_FLIGHT_MAX <= self.in_flight.len() {
            return Err("a request that no tool can be asked, or one too many");
        }
        self.in_flight.insert(number, ask.clone());
        self.contexts.insert(number, self.known);
        Ok(call((number, number), self.known, ask, None))
    }

    /// A request has ended.
    pub fn end(&mut self, step: u64, done: &ToolDone) -> Result<ToolCall, &'static str> {
        let ask = self.in_flight.remove(&done.request).ok_or("an answer to nothing that was asked")?;
        if done.error == 0 && (ask.capacity as usize) < done.response.len() {
            return Err("an answer that is longer than its buffer");
        }
        if KINDS_MAX <= self.counted.len() && !self.counted.contains_key(&ask.tool) {
            return Err("one kind of tool too many");
        }
        let counted = self.counted.entry(ask.tool).or_default();
        match done.error {
            0 => counted.done += 1,
            _ => counted.failed += 1,
        }
        let place = (ask.tool, ask.operation, ask.resource);
        if done.error == 0 && (self.newest.len() < NEWEST_MAX || self.newest.contains_key(&place)) {
            self.newest.insert(place, (done.request, hash(&done.response)));
        }
        let context = self.contexts.remove(&done.request).unwrap_or_default();
        let answer = [done.request.to_le_bytes(), u64::from(done.error).to_le_bytes()].concat();
        let response = hash(&done.response);
        let parts = [self.known.as_bytes(), &answer[..], response.as_bytes()];
        self.known = hash_parts("bem/tools/known", &parts);
        Ok(call((done.request, step), context, &ask, Some(done)))
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(FORM);
        writer.u64(LAYER);
        writer.length(self.in_flight.len());
        for (number, ask) in &self.in_flight {
            writer.u64(*number);
            ask.encode(writer);
            writer.raw(self.contexts.get(number).copied().unwrap_or_default().as_bytes());
        }
        writer.raw(self.known.as_bytes());
        writer.length(self.counted.len());
        for (kind, counted) in &self.counted {
            writer.u32(kind.to_word());
            writer.u64(counted.done);
            writer.u64(counted.failed);
        }
        writer.length(self.newest.len());
        for ((tool, operation, resource), (number, digest)) in &self.newest {
            writer.u32(tool.to_word());
            writer.u16(*operation);
            writer.u32(resource.to_word());
            writer.u64(*number);
            writer.raw(digest.as_bytes());
        }
    }

    /// Reads canonical bytes back. Kinds that no catalog here knows are kept: they are only numbers.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Tools, DecodeError> {
        let foreign = reader.error("another version of the tool layer, or tables out of order");
        match reader.u64()? {
            FORM if reader.u64()? == LAYER => {}
            FORM_BEFORE => {}
            _ => return Err(foreign),
        }
        let mut tools = Tools::default();
        for _ in 0..reader.length(40)? {
            let (number, ask) = (reader.u64()?, ToolAsk::decode(reader)?);
            if tools.in_flight.last_key_value().is_some_and(|(last, _)| number <= *last) {
                return Err(foreign);
            }
            tools.in_flight.insert(number, ask);
            tools.contexts.insert(number, Digest::decode(reader)?);
        }
        tools.known = Digest::decode(reader)?;
        for _ in 0..reader.length(20)? {
            let kind = id(reader)?;
            if tools.counted.last_key_value().is_some_and(|(last, _)| kind <= *last) {
                return Err(foreign);
            }
            tools.counted.insert(kind, Counted { done: reader.u64()?, failed: reader.u64()? });
        }
        for _ in 0..reader.length(50)? {
            let place = (id(reader)?, reader.u16()?, id(reader)?);
            if tools.newest.last_key_value().is_some_and(|(last, _)| place <= *last) {
                return Err(foreign);
            }
            tools.newest.insert(place, (reader.u64()?, Digest::decode(reader)?));
        }
        Ok(tools)
    }
}

/// The ledger's entry about a request: issued without an answer, consumed with one. Which slot it lies in is known when it comes
/// back.
fn call((request, step): (u64, u64), context: Digest, ask: &ToolAsk, done: Option<&ToolDone>) -> ToolCall {
    let status = match done {
        None => ToolStatus::Pending,
        Some(done) if done.error == 0 => ToolStatus::Done,
        Some(_) => ToolStatus::Failed,
    };
    let response = done.map_or(&[][..], |done| &done.response);
    let has_response = !response.is_empty();
    ToolCall {
        request,
        step,
        task: ask.task,
        context,
        tool: ask.tool,
        operation: ask.operation,
        flags: ask.flags,
        resource: ask.resource,
        slot: done.map_or(0, |done| done.slot),
        generation: done.map_or(0, |done| done.generation),
        phase: if done.is_some() { ToolPhase::Consumed } else { ToolPhase::Issued },
        status,
        error: done.map_or(0, |done| done.error),
        request_digest: if ask.payload.is_empty() { Digest::default() } else { hash(&ask.payload) },
        response_digest: if has_response { hash(response) } else { Digest::default() },
        response_capacity: ask.capacity.max(response.len() as u32),
        response_bytes: response.len() as u32,
        deadline: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> ToolAsk {
        ToolAsk {
            tool: ObjectId::new(ObjectClass::ToolKind, 1),
            operation: 0,
            flags: 2,
            resource: ObjectId::new(ObjectClass::DbConn, 0),
            capacity: 100,
            is_idempotent: true,
            is_sensitive: false,
            task: 0,
            payload: b"select".to_vec(),
        }
    }

    #[test]
    fn requests_are_under_way_until_they_end_and_survive_a_snapshot() {
        let mut tools = Tools::default();
        let issued = tools.ask(5, &ask()).unwrap();
        assert_eq!((issued.phase, issued.status), (ToolPhase::Issued, ToolStatus::Pending));
        // A kind that no catalog knows is a number like every other.
        let foreign = ToolAsk { tool: ObjectId::new(ObjectClass::ToolKind, 999), ..ask() };
        tools.ask(6, &foreign).unwrap();
        let mut writer = Writer::new();
        tools.encode(&mut writer);
        let mut restored = Tools::decode(&mut Reader::new(writer.as_bytes())).unwrap();
        assert_eq!(restored, tools);
        // The version of the layer stands in it; another one is refused, and the form before, without it, is read.
        assert_eq!(writer.as_bytes()[8..16], LAYER.to_le_bytes());
        let mut other = writer.as_bytes().to_vec();
        other[8] = 2;
        assert!(Tools::decode(&mut Reader::new(&other)).is_err());
        let before = [&FORM_BEFORE.to_le_bytes()[..], &writer.as_bytes()[16..]].concat();
        assert_eq!(Tools::decode(&mut Reader::new(&before)).unwrap(), tools);
        let done = ToolDone {
            request: 5,
            slot: 3,
            generation: 9,
            error: 0,
            attempts: 1,
            response: b"rows".to_vec(),
        };
        let consumed = restored.end(8, &done).unwrap();
        assert_eq!((consumed.request, consumed.step, consumed.slot), (5, 8, 3));
        assert_eq!(consumed.response_digest, hash(b"rows"));
        // The context is what was known when it was asked; whoever asks now knows more.
        assert_eq!((issued.context, consumed.context), (Digest::default(), Digest::default()));
        assert_ne!(restored.clone().ask(9, &ask()).unwrap().context, Digest::default());
        assert_eq!(restored.newest(ask().tool, 0, ask().resource), Some((5, hash(b"rows"))));
        assert!(restored.end(9, &done).is_err(), "a request ends once");
        assert!(restored.end(9, &ToolDone { request: 6, response: vec![0; 101], ..done }).is_err());
    }

    #[test]
    fn requests_come_back_from_their_bytes_and_malformed_ones_are_refused() {
        let mut writer = Writer::new();
        ask().encode(&mut writer);
        assert_eq!(ToolAsk::decode(&mut Reader::new(writer.as_bytes())).unwrap(), ask());
        for malformed in [
            ToolAsk { capacity: 0, ..ask() },
            ToolAsk { tool: ask().resource, ..ask() },
            ToolAsk { capacity: u32::MAX, ..ask() },
        ] {
            let mut writer = Writer::new();
            malformed.encode(&mut writer);
            assert!(ToolAsk::decode(&mut Reader::new(writer.as_bytes())).is_err());
        }
    }
}
