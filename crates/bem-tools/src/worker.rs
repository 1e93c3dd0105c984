//! A worker's side of the bus: find a request, claim it, read it, write the response, publish.
//!
//! A worker changes its claim, the response with its length and checksum, and status with error; nothing else. It never
//! writes beyond the room that it was given. [`serve_one`] does all of that around a [`Tool`]. Must not know how a worker
//! waits. Clause: TOOL-3; decision D-28.

use crate::error::ErrorCode;
use crate::layout::{self, MAGIC, MAPPING_WORDS, Mapping, header, request, request_word, side, side_word};
use crate::limits::SLOTS;
use crate::word::{self, Ordering, Status};
use bem_base::digest::Digest;
use bem_base::ids::ObjectId;

/// A request as a worker sees it; all of it is a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    slot: usize,
    generation: u32,
    output: u64,
    /// The kind.
    pub kind: u32,
    /// The operation.
    pub operation: u16,
    /// Its flags.
    pub flags: u16,
    /// The resource; none if its identifier is damaged.
    pub resource: Option<ObjectId>,
    /// The payload.
    pub payload: Vec<u8>,
    /// Room for the response.
    pub capacity: u32,
    /// The request's number.
    pub number: u64,
    /// Names the effect.
    pub key: Digest,
    /// How often it was tried before.
    pub attempt: u32,
}

/// What a tool answers when it fails: a code, and what it says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code.
    pub code: ErrorCode,
    /// For people; it enters the ledger, so that it must hold no secrets.
    pub words: String,
}

impl Failure {
    /// A failure with words.
    pub fn new(code: ErrorCode, words: impl Into<String>) -> Failure {
        Failure { code, words: words.into() }
    }
}

impl From<ErrorCode> for Failure {
    fn from(code: ErrorCode) -> Failure {
        Failure { code, words: String::new() }
    }
}

/// Does the work of one kind.
pub trait Tool {
    /// Works on a request: the response, or why there is none.
    fn run(&mut self, job: &Job) -> Result<Vec<u8>, Failure>;
}

/// A worker's place at a mapping.
pub struct Port<M> {
    mapping: M,
    worker: u32,
    next: usize,
}

/// Why a mapping cannot be worked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// It is something else.
    #[error("this is no mapping of a tool bus")]
    Foreign,
    /// It has another version.
    #[error("the bus has another version than {}", crate::VERSION_TEXT)]
    Version,
}

impl<M: Mapping> Port<M> {
    /// Takes a place; `worker` is a number that no other worker has, not 0.
    pub fn open(mapping: M, worker: u32) -> Result<Port<M>, PortError> {
        let words = mapping.words();
        if words.len() < MAPPING_WORDS || words[header::MAGIC].load(Ordering::Acquire) != MAGIC {
            return Err(PortError::Foreign);
        }
        if words[header::VERSION].load(Ordering::Relaxed) != crate::VERSION_WORD {
            return Err(PortError::Version);
        }
        assert!(worker != 0 && worker != u32::MAX, "0 is nobody, and the last number is the machine");
        Ok(Port { mapping, worker, next: 0 })
    }

    /// The mapping.
    pub fn mapping(&self) -> &M {
        &self.mapping
    }

    /// Whether workers shall leave.
    pub fn is_over(&self) -> bool {
        self.mapping.words()[header::STOP].load(Ordering::Acquire) != 0
    }

    /// The bell as it is now; a worker that finds no request sleeps until it changes.
    pub fn bell(&self) -> u32 {
        self.mapping.words()[header::REQUEST_BELL].load(Ordering::SeqCst) as u32
    }

    /// Claims a request that waits.
    pub fn claim(&mut self) -> Option<Job> {
        let words = self.mapping.words();
        for step in 0..SLOTS {
            let slot = (self.next + step) % SLOTS;
            let state = word::load(&words[request_word(slot, request::STATE)]);
            if state.status != Some(Status::Pending) {
                continue;
            }
            if !word::claim(&words[side_word(slot, side::CLAIM)], state.generation, self.worker) {
                continue;
            }
            self.next = (slot + 1) % SLOTS;
            return Some(self.read(slot, state.generation));
        }
        None
    }

    fn read(&self, slot: usize, generation: u32) -> Job {
        let words = self.mapping.words();
        let get = |word: usize| words[request_word(slot, word)].load(Ordering::Relaxed);
        let aside = |word: usize| words[side_word(slot, word)].load(Ordering::Relaxed);
        let (first, second) = (get(request::KIND), get(request::RESOURCE));
        let mut payload = Vec::new();
        layout::read_bytes(words, get(request::IN_POINTER), (second >> 32) as usize, &mut payload);
        let mut key = [0; 32];
        for (word, bytes) in key.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&aside(side::KEY + word).to_le_bytes());
        }
        Job {
            slot,
            generation,
            output: get(request::OUT_POINTER),
            kind: first as u32,
            operation: (first >> 32) as u16,
            flags: (first >> 48) as u16,
            resource: ObjectId::from_word(second as u32).ok(),
            payload,
            capacity: get(request::OUT_CAPACITY) as u32,
            number: get(request::NUMBER),
            key: Digest::from_bytes(key),
            attempt: aside(side::ATTEMPT) as u32,
        }
    }

    /// Publishes what came of it; false if the lease is lost. A response that has no room becomes an error.
    pub fn finish(&self, job: &Job, outcome: &Result<Vec<u8>, Failure>) -> bool {
        let words = self.mapping.words();
        let is_inside = |bytes: usize| {
            let end = (job.output as usize / 8).checked_add(bytes.div_ceil(8));
            job.output.is_multiple_of(8) && end.is_some_and(|end| end <= words.len())
        };
        let (bytes, error) = match outcome {
            Ok(bytes) if bytes.len() <= job.capacity as usize => (bytes.as_slice(), None),
            Ok(_) => (&[][..], Some(ErrorCode::TOO_LONG)),
            Err(failure) => {
                let words = failure.words.as_bytes();
                (&words[..words.len().min(job.capacity as usize)], Some(failure.code))
            }
        };
        if !is_inside(bytes.len())
            || word::holder(&words[side_word(job.slot, side::CLAIM)], job.generation) != self.worker
        {
            return false;
        }
        layout::write_bytes(words, job.output, bytes);
        let used = bytes.len() as u64 | u64::from(layout::crc32(bytes)) << 32;
        words[side_word(job.slot, side::USED)].store(used, Ordering::Relaxed);
        let is_published =
            word::publish(&words[request_word(job.slot, request::STATE)], job.generation, error);
        if is_published {
            layout::ring(&self.mapping, header::ANSWER_BELL, header::MACHINE_ASLEEP);
        }
        is_published
    }
}

/// Works on one request if one waits.
pub fn serve_one<M: Mapping>(port: &mut Port<M>, tool: &mut dyn Tool) -> bool {
    let Some(job) = port.claim() else { return false };
    let outcome = tool.run(&job);
    port.finish(&job, &outcome);
    true
}
