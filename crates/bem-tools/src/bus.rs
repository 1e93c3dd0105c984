//! The machine's side of the bus: requests go out in constant time, answers are taken at the barrier.
//!
//! Everything that decides anything is kept here, in the machine's own memory: which slots are busy, their generations, windows
//! and leases. Of the mapping only a state word, a claim, a length, a checksum and the bytes of a response are read, each once.
//! A free slot and free windows are popped from stacks; when there are none, that is counted and said, and nobody waits.
//! Must not know clocks: time is a number that the caller gives. Clauses: TOOL-2, TOOL-3, TOOL-9, TOOL-12; decisions D-28, D-71.

use crate::catalog::Catalog;
use crate::error::{ErrorCode, Refused};
use crate::layout::{
    self, HEADER_WORDS, MAGIC, MAPPING_WORDS, Mapping, WINDOWS_AT, Window, header, request, request_word,
    side, side_word,
};
use crate::limits::{ATTEMPTS_MAX, PAYLOAD_FAST_MAX, PAYLOAD_MAX, SLOTS, WINDOWS_LARGE, WINDOWS_SMALL};
use crate::word::{self, Ordering, Status};
use bem_base::digest::{Digest, hash_parts};
use bem_base::ids::ObjectId;
use std::collections::VecDeque;

/// What is asked of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Request<'p> {
    /// Which operation.
    pub operation: u16,
    /// Its flags.
    pub flags: u16,
    /// On what.
    pub resource: ObjectId,
    /// The payload.
    pub payload: &'p [u8],
    /// Room for the response.
    pub capacity: u32,
    /// The request's number; never used twice.
    pub number: u64,
    /// Names the effect: the same key is the same effect.
    pub key: Digest,
    /// Whether it may be tried again after a worker was lost.
    pub is_idempotent: bool,
    /// How long a worker may take, in the caller's unit of time.
    pub lease: u64,
    /// How long all of it may take; 0 for no end.
    pub patience: u64,
}

/// The key of a request: where it stands in the history, and what it says.
pub fn key(number: u64, payload: &[u8]) -> Digest {
    hash_parts("bem/tool-key", &[&number.to_le_bytes(), payload])
}

/// A request that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Its number.
    pub number: u64,
    /// The tool.
    pub kind: ObjectId,
    /// The operation.
    pub operation: u16,
    /// Its flags.
    pub flags: u16,
    /// The resource.
    pub resource: ObjectId,
    /// Its slot.
    pub slot: u16,
    /// The generation that ended.
    pub generation: u32,
    /// Why it failed; nothing if it is done.
    pub error: Option<ErrorCode>,
    /// The response; of a failed request what the tool says about it.
    pub response: Vec<u8>,
    /// Room that the response had.
    pub capacity: u32,
    /// How often it was tried.
    pub attempts: u32,
    /// Time from enqueue to the barrier.
    pub waited: u64,
}

/// What was counted of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that went out.
    pub enqueued: u64,
    /// Requests done.
    pub done: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Enqueues without a free slot or buffer.
    pub back_pressure: u64,
    /// Leases that ran out.
    pub leases_lost: u64,
    /// Answers that did not fit their checksum or length.
    pub bad_answers: u64,
    /// Sum of times from enqueue to the barrier.
    pub waited_sum: u64,
    /// The longest of them.
    pub waited_max: u64,
}

/// A slot whose request is under way: what was asked, and where its input lies.
#[derive(Clone, Copy, Debug)]
struct Busy {
    number: u64,
    key: Digest,
    operation: u16,
    flags: u16,
    resource: ObjectId,
    input: Window,
    length: u32,
    output: Window,
    capacity: u32,
    is_idempotent: bool,
    began: u64,
    lease: u64,
    patience: u64,
    /// Since when somebody works on it.
    claimed: Option<u64>,
    attempt: u32,
}

/// The requests of one kind.
pub struct Channel<M> {
    kind: ObjectId,
    mapping: M,
    generations: [u32; SLOTS],
    slots: [Option<Busy>; SLOTS],
    busy: u64,
    free: Vec<u16>,
    small: Vec<Window>,
    large: Vec<Window>,
    /// Windows that a lost worker may still write to, oldest first.
    quarantine: VecDeque<Window>,
    counts: Counts,
}

impl<M: Mapping> Channel<M> {
    /// Takes a mapping over, and writes its header.
    pub fn new(kind: ObjectId, mapping: M) -> Channel<M> {
        let words = mapping.words();
        assert!(MAPPING_WORDS <= words.len(), "a mapping has {MAPPING_WORDS} words");
        words[..HEADER_WORDS].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        for (place, value) in [
            (header::VERSION, crate::VERSION_WORD),
            (header::KIND, u64::from(kind.to_word())),
            (header::SLOTS, SLOTS as u64),
            (header::WINDOWS, 8 * WINDOWS_AT as u64),
            (header::BYTES, 8 * MAPPING_WORDS as u64),
        ] {
            words[place].store(value, Ordering::Relaxed);
        }
        words[header::MAGIC].store(MAGIC, Ordering::Release);
        Channel {
            kind,
            generations: [0; SLOTS],
            slots: [None; SLOTS],
            busy: 0,
            free: (0..SLOTS as u16).rev().collect(),
            small: (0..WINDOWS_SMALL).rev().map(Window::small).collect(),
            large: (0..WINDOWS_LARGE).rev().map(Window::large).collect(),
            quarantine: VecDeque::with_capacity(WINDOWS_SMALL + WINDOWS_LARGE),
            counts: Counts::default(),
            mapping,
        }
    }

    /// The kind.
    pub fn kind(&self) -> ObjectId {
        self.kind
    }

    /// The mapping.
    pub fn mapping(&self) -> &M {
        &self.mapping
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Requests under way.
    pub fn in_flight(&self) -> u32 {
        self.busy.count_ones()
    }

    fn window(&mut self, bytes: usize) -> Option<Window> {
        let is_large = PAYLOAD_FAST_MAX < bytes;
        let stack = if is_large { &mut self.large } else { &mut self.small };
        stack.pop().or_else(|| {
            // The oldest window of a lost worker: by now it is most likely gone, and the checksum finds it if not.
            let place = self.quarantine.iter().position(|window| window.is_large == is_large)?;
            self.quarantine.remove(place)
        })
    }

    fn give_back(&mut self, window: Window) {
        let stack = if window.is_large { &mut self.large } else { &mut self.small };
        stack.push(window);
    }

    /// Puts a request on the bus: its slot, or why not. It copies the payload, allocates nothing and waits for nobody.
    pub fn enqueue(&mut self, asked: &Request<'_>, now: u64) -> Result<u16, Refused> {
        if PAYLOAD_MAX < asked.payload.len() {
            return Err(Refused::TooLong);
        }
        if asked.capacity == 0 || PAYLOAD_MAX < asked.capacity as usize {
            return Err(Refused::BadCapacity);
        }
        let Some(slot) = self.free.pop() else {
            self.counts.back_pressure += 1;
            return Err(Refused::NoSlot);
        };
        let input = self.window(asked.payload.len());
        let output = self.window(asked.capacity as usize);
        let (Some(input), Some(output)) = (input, output) else {
            input.into_iter().chain(output).for_each(|window| self.give_back(window));
            self.free.push(slot);
            self.counts.back_pressure += 1;
            return Err(Refused::NoBuffer);
        };
        layout::write_bytes(self.mapping.words(), input.pointer(), asked.payload);
        let busy = Busy {
            number: asked.number,
            key: asked.key,
            operation: asked.operation,
            flags: asked.flags,
            resource: asked.resource,
            input,
            length: asked.payload.len() as u32,
            output,
            capacity: asked.capacity,
            is_idempotent: asked.is_idempotent,
            began: now,
            lease: asked.lease,
            patience: asked.patience,
            claimed: None,
            attempt: 0,
        };
        self.counts.enqueued += 1;
        self.busy |= 1 << slot;
        self.show(slot, busy);
        Ok(slot)
    }

    /// Writes a descriptor and makes it visible under a new generation.
    fn show(&mut self, slot: u16, busy: Busy) {
        let place = usize::from(slot);
        let words = self.mapping.words();
        let set = |word: usize, value: u64| words[request_word(place, word)].store(value, Ordering::Relaxed);
        let kind = u64::from(self.kind.to_word());
        set(request::KIND, kind | u64::from(busy.operation) << 32 | u64::from(busy.flags) << 48);
        set(request::RESOURCE, u64::from(busy.resource.to_word()) | u64::from(busy.length) << 32);
        set(request::IN_POINTER, busy.input.pointer());
        set(request::OUT_POINTER, busy.output.pointer());
        set(request::OUT_CAPACITY, u64::from(busy.capacity));
        set(request::NUMBER, busy.number);
        let set = |word: usize, value: u64| words[side_word(place, word)].store(value, Ordering::Relaxed);
        // No response has this length: a worker that publishes without writing is found.
        set(side::USED, u64::MAX);
        set(side::LEASE, busy.lease);
        set(side::ATTEMPT, u64::from(busy.attempt));
        let (key, _) = busy.key.as_bytes().as_chunks::<8>();
        for (word, bytes) in key.iter().enumerate() {
            set(side::KEY + word, u64::from_le_bytes(*bytes));
        }
        self.generations[place] = self.generations[place].wrapping_add(1);
        self.slots[place] = Some(busy);
        word::enqueue(
            &words[request_word(place, request::STATE)],
            &words[side_word(place, side::CLAIM)],
            self.generations[place],
        );
        layout::ring(&self.mapping, header::REQUEST_BELL, header::WORKERS_ASLEEP);
    }

    /// Takes at most `max` ended requests, in the order of their slots.
    pub fn poll(&mut self, now: u64, max: usize, into: &mut Vec<Completed>) {
        let mut left = self.busy;
        let mut taken = 0;
        while left != 0 && taken < max {
            let slot = left.trailing_zeros() as u16;
            left &= left - 1;
            if let Some(completed) = self.look(slot, now) {
                into.push(completed);
                taken += 1;
            }
        }
    }

    /// Whether a request has ended, and how. A lease that ran out is renewed or given up here.
    fn look(&mut self, slot: u16, now: u64) -> Option<Completed> {
        let place = usize::from(slot);
        let busy = self.slots[place]?;
        let generation = self.generations[place];
        let words = self.mapping.words();
        let state_word = &words[request_word(place, request::STATE)];
        let state = word::load(state_word);
        let is_answer = matches!(state.status, Some(Status::Done | Status::Error));
        if is_answer && state.generation == generation {
            let error = (state.status == Some(Status::Error)).then_some(state.error);
            return Some(self.take_answer(slot, busy, error, now));
        }
        let holder = word::holder(&words[side_word(place, side::CLAIM)], generation);
        let claimed = if holder == 0 { None } else { busy.claimed.or(Some(now)) };
        self.slots[place] = Some(Busy { claimed, ..busy });
        let is_lost = claimed.is_some_and(|since| busy.lease < now.saturating_sub(since));
        let is_late = busy.patience != 0 && busy.patience < now.saturating_sub(busy.began);
        if !is_lost && !is_late {
            return None;
        }
        // Whoever works on it may end just now: then its answer counts.
        if holder == 0 && !word::close(&words[side_word(place, side::CLAIM)], generation) {
            return None;
        }
        if !word::withdraw(state_word, generation) {
            return None;
        }
        let began = holder != 0;
        self.counts.leases_lost += u64::from(is_lost);
        if began && busy.is_idempotent && !is_late && busy.attempt + 1 < ATTEMPTS_MAX {
            // The lost worker may still write to the old window: the next one gets another.
            if let Some(output) = self.window(busy.capacity as usize) {
                self.quarantine.push_back(busy.output);
                self.show(slot, Busy { output, claimed: None, attempt: busy.attempt + 1, ..busy });
                return None;
            }
        }
        let error = match (began, busy.is_idempotent) {
            (false, _) => ErrorCode::TIMEOUT,
            (true, false) => ErrorCode::OUTCOME_UNKNOWN,
            (true, true) if is_late => ErrorCode::TIMEOUT,
            (true, true) => ErrorCode::WORKER_LOST,
        };
        Some(self.end(slot, busy, Some(error), Vec::new(), began, now))
    }

    fn take_answer(&mut self, slot: u16, busy: Busy, error: Option<ErrorCode>, now: u64) -> Completed {
        let words = self.mapping.words();
        let used = words[side_word(usize::from(slot), side::USED)].load(Ordering::Relaxed);
        let (length, checksum) = (used as u32, (used >> 32) as u32);
        let mut response = Vec::new();
        let fits = length <= busy.capacity
            && layout::read_bytes(words, busy.output.pointer(), length as usize, &mut response)
            && layout::crc32(&response) == checksum;
        let error = match error {
            _ if !fits => {
                self.counts.bad_answers += 1;
                response.clear();
                Some(ErrorCode::BAD_RESPONSE)
            }
            // An error without a number is none.
            Some(ErrorCode(0)) => Some(ErrorCode::BAD_RESPONSE),
            error => error,
        };
        self.end(slot, busy, error, response, false, now)
    }

    fn end(
        &mut self,
        slot: u16,
        busy: Busy,
        error: Option<ErrorCode>,
        response: Vec<u8>,
        is_lost: bool,
        now: u64,
    ) -> Completed {
        let place = usize::from(slot);
        let generation = self.generations[place];
        let words = self.mapping.words();
        let (state, claim) = (request_word(place, request::STATE), side_word(place, side::CLAIM));
        word::free(&words[state], &words[claim], generation);
        self.slots[place] = None;
        self.busy &= !(1 << slot);
        self.free.push(slot);
        self.give_back(busy.input);
        if is_lost {
            self.quarantine.push_back(busy.output)
        } else {
            self.give_back(busy.output)
        }
        let waited = now.saturating_sub(busy.began);
        match error {
            None => self.counts.done += 1,
            Some(_) => self.counts.failed += 1,
        }
        self.counts.waited_sum += waited;
        self.counts.waited_max = self.counts.waited_max.max(waited);
        Completed {
            number: busy.number,
            kind: self.kind,
            operation: busy.operation,
            flags: busy.flags,
            resource: busy.resource,
            slot,
            generation,
            error,
            response,
            capacity: busy.capacity,
            attempts: busy.attempt + 1,
            waited,
        }
    }

    /// The slots for SHARED's TOOL_BUS: eight words each, from the machine's own tables.
    fn mirror(&self, words: &mut [u64]) {
        for (place, entry) in words.chunks_exact_mut(layout::REQUEST_WORDS).enumerate().take(SLOTS) {
            entry.fill(0);
            let generation = u64::from(self.generations[place]) << 32;
            entry[request::STATE] = generation;
            let Some(busy) = &self.slots[place] else { continue };
            let kind = u64::from(self.kind.to_word());
            entry[request::KIND] = kind | u64::from(busy.operation) << 32 | u64::from(busy.flags) << 48;
            entry[request::RESOURCE] = u64::from(busy.resource.to_word()) | u64::from(busy.length) << 32;
            entry[request::IN_POINTER] = busy.input.pointer();
            entry[request::OUT_POINTER] = busy.output.pointer();
            entry[request::OUT_CAPACITY] = u64::from(busy.capacity);
            entry[request::STATE] = generation | Status::Pending as u64;
            entry[request::NUMBER] = busy.number;
        }
    }

    /// Asks workers to leave.
    pub fn stop(&self) {
        self.mapping.words()[header::STOP].store(1, Ordering::Release);
        layout::ring(&self.mapping, header::REQUEST_BELL, header::WORKERS_ASLEEP);
    }
}

/// All kinds.
pub struct Bus<M> {
    channels: Vec<Channel<M>>,
}

impl<M: Mapping> Bus<M> {
    /// A bus with a channel for every kind of the catalog; `map` makes their memory.
    pub fn new<E>(catalog: &Catalog, mut map: impl FnMut(ObjectId) -> Result<M, E>) -> Result<Bus<M>, E> {
        let channels = catalog.kinds().iter().map(|kind| Ok(Channel::new(kind.id, map(kind.id)?)));
        Ok(Bus { channels: channels.collect::<Result<_, E>>()? })
    }

    /// The channels, in the order of TOOL_KIND.
    pub fn channels(&self) -> &[Channel<M>] {
        &self.channels
    }

    /// The channel of a kind.
    pub fn channel(&mut self, kind: ObjectId) -> Option<&mut Channel<M>> {
        self.channels.iter_mut().find(|channel| channel.kind == kind)
    }

    /// Somebody was told that a kind has no room before anything was put on the bus.
    pub fn count_refusal(&mut self, kind: ObjectId) {
        self.channel(kind).into_iter().for_each(|channel| channel.counts.back_pressure += 1);
    }

    /// Puts a request on the bus.
    pub fn enqueue(&mut self, kind: ObjectId, asked: &Request<'_>, now: u64) -> Result<u16, Refused> {
        self.channel(kind).ok_or(Refused::UnknownKind)?.enqueue(asked, now)
    }

    /// Takes at most `max` ended requests, by kind and slot.
    pub fn poll(&mut self, now: u64, max: usize, into: &mut Vec<Completed>) {
        let end = into.len() + max;
        for channel in &mut self.channels {
            let left = end - into.len();
            channel.poll(now, left, into);
        }
    }

    /// Requests under way.
    pub fn in_flight(&self) -> u32 {
        self.channels.iter().map(Channel::in_flight).sum()
    }

    /// The slots of all kinds for SHARED's TOOL_BUS, as far as they fit.
    pub fn mirror(&self, words: &mut [u64]) {
        let size = SLOTS * layout::REQUEST_WORDS;
        for (channel, words) in self.channels.iter().zip(words.chunks_mut(size)) {
            channel.mirror(words);
        }
    }

    /// Asks all workers to leave.
    pub fn stop(&self) {
        self.channels.iter().for_each(Channel::stop);
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests;
