//! The tool bus written once more, plainly: one request after another, no atomic words, no shared memory.
//!
//! It says what the real bus must do after every move of the machine and of a worker, honest or not. Memory is a word a slot for
//! state, claim and length, and bytes for windows; all of it can be written by a liar. A [`Slip`] breaks one rule of the model,
//! so that a comparison that would not notice shows itself. Must not know the real bus. Clauses: TOOL-2, TOOL-3, TOOL-9.

use bem_tools::error::{ErrorCode, Refused};
use bem_tools::layout::{Window, crc32};
use bem_tools::limits::{ATTEMPTS_MAX, PAYLOAD_FAST_MAX, SLOTS, WINDOWS_LARGE, WINDOWS_SMALL};
use std::collections::{BTreeMap, VecDeque};

/// A rule of the model that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slip {
    /// What must not be repeated goes out again after its worker was lost.
    RepeatsUnknown,
    /// A lease begins when a request goes out instead of when its claim is seen.
    LeaseFromTheStart,
    /// The window of a lost worker is given to the next request at once.
    NoQuarantine,
    /// An answer of an older generation counts.
    TakesLateAnswers,
    /// Length and checksum of an answer are not compared.
    BelievesLengths,
    /// One attempt more than allowed.
    OneAttemptMore,
    /// A full bus is not counted.
    ForgetsBackPressure,
    /// A second answer of the same worker counts as published.
    CountsTwice,
    /// Who held the claim of a request holds it when that has ended.
    LeavesClaims,
}

impl Slip {
    /// All of them.
    pub const ALL: [Slip; 9] = [
        Slip::RepeatsUnknown,
        Slip::LeaseFromTheStart,
        Slip::NoQuarantine,
        Slip::TakesLateAnswers,
        Slip::BelievesLengths,
        Slip::OneAttemptMore,
        Slip::ForgetsBackPressure,
        Slip::CountsTwice,
        Slip::LeavesClaims,
    ];
}

const PENDING: u64 = 1;
const DONE: u64 = 2;
const FAILED: u64 = 3;

fn word(status: u64, error: u16, generation: u32) -> u64 {
    status | u64::from(error) << 16 | u64::from(generation) << 32
}

fn generation_of(word: u64) -> u32 {
    (word >> 32) as u32
}

/// A request as the machine knows it.
#[derive(Clone, Debug)]
struct Asked {
    number: u64,
    is_idempotent: bool,
    input: Window,
    length: usize,
    output: Window,
    capacity: u32,
    began: u64,
    lease: u64,
    patience: u64,
    claimed: Option<u64>,
    attempt: u32,
}

/// What the machine is asked to send.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its number.
    pub number: u64,
    /// Whether it may be repeated.
    pub is_idempotent: bool,
    /// The payload.
    pub payload: Vec<u8>,
    /// Room for the response.
    pub capacity: u32,
    /// How long a worker may take.
    pub lease: u64,
    /// How long all of it may take; 0 for no end.
    pub patience: u64,
}

/// A request as a worker holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its slot.
    pub slot: usize,
    generation: u32,
    output: Window,
    /// Room for the response.
    pub capacity: u32,
    /// Its number.
    pub number: u64,
    /// How often it was tried before.
    pub attempt: u32,
    /// What it says.
    pub payload: Vec<u8>,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its number.
    pub number: u64,
    /// Its slot.
    pub slot: u16,
    /// The generation that ended.
    pub generation: u32,
    /// The error, if there is one.
    pub error: Option<ErrorCode>,
    /// The response.
    pub response: Vec<u8>,
    /// How often it was tried.
    pub attempts: u32,
    /// Time from its start.
    pub waited: u64,
}

/// What is counted: sent, done, failed, back-pressure, leases lost, bad answers.
pub type Counted = [u64; 6];

/// What one slot shows to everybody.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    state: u64,
    claim: u64,
    used: u64,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Model {
    slip: Option<Slip>,
    shown: [Shown; SLOTS],
    bytes: BTreeMap<u32, Vec<u8>>,
    /// The descriptor in each slot; it stays there when its request has ended.
    left: Vec<Option<Asked>>,
    asked: Vec<Option<Asked>>,
    generations: [u32; SLOTS],
    free: Vec<u16>,
    small: Vec<Window>,
    large: Vec<Window>,
    quarantine: VecDeque<Window>,
    /// Where each worker looks next.
    next: BTreeMap<u32, usize>,
    /// What was counted.
    pub counted: Counted,
}

impl Model {
    /// Nothing was asked yet.
    pub fn new(slip: Option<Slip>) -> Model {
        Model {
            slip,
            shown: [Shown::default(); SLOTS],
            bytes: BTreeMap::new(),
            left: vec![None; SLOTS],
            asked: vec![None; SLOTS],
            generations: [0; SLOTS],
            free: (0..SLOTS as u16).rev().collect(),
            small: (0..WINDOWS_SMALL).rev().map(Window::small).collect(),
            large: (0..WINDOWS_LARGE).rev().map(Window::large).collect(),
            quarantine: VecDeque::new(),
            next: BTreeMap::new(),
            counted: [0; 6],
        }
    }

    fn slips(&self, slip: Slip) -> bool {
        self.slip == Some(slip)
    }

    /// Requests under way.
    pub fn in_flight(&self) -> usize {
        self.asked.iter().flatten().count()
    }

    fn write(&mut self, window: Window, bytes: &[u8]) {
        let there = self.bytes.entry(window.word).or_default();
        let padded = bytes.len().next_multiple_of(8);
        if there.len() < padded {
            there.resize(padded, 0);
        }
        there[..bytes.len()].copy_from_slice(bytes);
        there[bytes.len()..padded].fill(0);
    }

    fn read(&self, window: Window, length: usize) -> Vec<u8> {
        let mut bytes = self.bytes.get(&window.word).cloned().unwrap_or_default();
        bytes.resize(length, 0);
        bytes
    }

    fn take_window(&mut self, bytes: usize) -> Option<Window> {
        let is_large = PAYLOAD_FAST_MAX < bytes;
        let stack = if is_large { &mut self.large } else { &mut self.small };
        if let Some(window) = stack.pop() {
            return Some(window);
        }
        let place = self.quarantine.iter().position(|window| window.is_large == is_large)?;
        self.quarantine.remove(place)
    }

    fn give_back(&mut self, window: Window) {
        if window.is_large { self.large.push(window) } else { self.small.push(window) }
    }

    /// The machine sends a request.
    pub fn enqueue(&mut self, wanted: &Wanted, now: u64) -> Result<u16, Refused> {
        let is_counted = u64::from(!self.slips(Slip::ForgetsBackPressure));
        let Some(slot) = self.free.pop() else {
            self.counted[3] += is_counted;
            return Err(Refused::NoSlot);
        };
        let input = self.take_window(wanted.payload.len());
        let output = self.take_window(wanted.capacity as usize);
        let (Some(input), Some(output)) = (input, output) else {
            input.into_iter().chain(output).for_each(|window| self.give_back(window));
            self.free.push(slot);
            self.counted[3] += is_counted;
            return Err(Refused::NoBuffer);
        };
        self.write(input, &wanted.payload);
        self.counted[0] += 1;
        let Wanted { number, is_idempotent, capacity, lease, patience, .. } = *wanted;
        let length = wanted.payload.len();
        let claimed = self.slips(Slip::LeaseFromTheStart).then_some(now);
        let (began, attempt) = (now, 0);
        let asked = Asked {
            number,
            is_idempotent,
            input,
            length,
            output,
            capacity,
            began,
            lease,
            patience,
            claimed,
            attempt,
        };
        self.show(slot, asked);
        Ok(slot)
    }

    fn show(&mut self, slot: u16, asked: Asked) {
        let place = usize::from(slot);
        self.generations[place] = self.generations[place].wrapping_add(1);
        let generation = self.generations[place];
        self.shown[place] =
            Shown { state: word(PENDING, 0, generation), claim: word(0, 0, generation), used: u64::MAX };
        self.left[place] = Some(asked.clone());
        self.asked[place] = Some(asked);
    }

    /// The machine's barrier.
    pub fn poll(&mut self, now: u64, max: usize) -> Vec<Ended> {
        let busy: Vec<usize> = (0..SLOTS).filter(|slot| self.asked[*slot].is_some()).collect();
        let mut ended = Vec::new();
        for slot in busy {
            if ended.len() == max {
                break;
            }
            ended.extend(self.look(slot, now));
        }
        ended
    }

    fn look(&mut self, slot: usize, now: u64) -> Option<Ended> {
        let asked = self.asked[slot].clone()?;
        let (shown, generation) = (self.shown[slot], self.generations[slot]);
        let status = shown.state & 0xFFFF;
        let is_of_now = generation_of(shown.state) == generation || self.slips(Slip::TakesLateAnswers);
        if (status == DONE || status == FAILED) && is_of_now {
            let error = (status == FAILED).then_some(ErrorCode((shown.state >> 16) as u16));
            return Some(self.answered(slot, &asked, error, now));
        }
        let holder = if generation_of(shown.claim) == generation { shown.claim as u32 } else { 0 };
        let claimed = match holder {
            0 if !self.slips(Slip::LeaseFromTheStart) => None,
            _ => asked.claimed.or(Some(now)),
        };
        let asked = Asked { claimed, ..asked };
        self.asked[slot] = Some(asked.clone());
        let is_lost = claimed.is_some_and(|since| asked.lease < now.saturating_sub(since));
        let is_late = asked.patience != 0 && asked.patience < now.saturating_sub(asked.began);
        if !is_lost && !is_late {
            return None;
        }
        if holder == 0 {
            self.shown[slot].claim = word(0, 0, generation) | u64::from(u32::MAX);
        }
        self.shown[slot].state = word(0, 0, generation);
        self.counted[4] += u64::from(is_lost);
        let began = holder != 0;
        let attempts = ATTEMPTS_MAX + u32::from(self.slips(Slip::OneAttemptMore));
        let may_repeat = asked.is_idempotent || self.slips(Slip::RepeatsUnknown);
        if began
            && may_repeat
            && !is_late
            && asked.attempt + 1 < attempts
            && let Some(output) = self.take_window(asked.capacity as usize)
        {
            match self.slips(Slip::NoQuarantine) {
                true => self.give_back(asked.output),
                false => self.quarantine.push_back(asked.output),
            }
            self.show(slot as u16, Asked { output, claimed: None, attempt: asked.attempt + 1, ..asked });
            return None;
        }
        let error = match (began, asked.is_idempotent) {
            (true, false) => ErrorCode::OUTCOME_UNKNOWN,
            (true, true) if !is_late => ErrorCode::WORKER_LOST,
            _ => ErrorCode::TIMEOUT,
        };
        Some(self.end(slot, &asked, Some(error), Vec::new(), began, now))
    }

    fn answered(&mut self, slot: usize, asked: &Asked, error: Option<ErrorCode>, now: u64) -> Ended {
        let used = self.shown[slot].used;
        let (length, checksum) = (used as u32, (used >> 32) as u32);
        let response =
            if length <= asked.capacity { self.read(asked.output, length as usize) } else { Vec::new() };
        let fits = length <= asked.capacity && crc32(&response) == checksum;
        if !fits && !self.slips(Slip::BelievesLengths) {
            self.counted[5] += 1;
            return self.end(slot, asked, Some(ErrorCode::BAD_RESPONSE), Vec::new(), false, now);
        }
        let error = error.map(|code| if code == ErrorCode(0) { ErrorCode::BAD_RESPONSE } else { code });
        self.end(slot, asked, error, response, false, now)
    }

    fn end(
        &mut self,
        slot: usize,
        asked: &Asked,
        error: Option<ErrorCode>,
        response: Vec<u8>,
        is_lost: bool,
        now: u64,
    ) -> Ended {
        let generation = self.generations[slot];
        self.shown[slot].state = word(0, 0, generation);
        if !self.slips(Slip::LeavesClaims) {
            self.shown[slot].claim = word(0, 0, generation) | u64::from(u32::MAX);
        }
        self.asked[slot] = None;
        self.free.push(slot as u16);
        self.give_back(asked.input);
        match is_lost && !self.slips(Slip::NoQuarantine) {
            true => self.quarantine.push_back(asked.output),
            false => self.give_back(asked.output),
        }
        self.counted[if error.is_none() { 1 } else { 2 }] += 1;
        let (number, attempts, waited) = (asked.number, asked.attempt + 1, now.saturating_sub(asked.began));
        Ended { number, slot: slot as u16, generation, error, response, attempts, waited }
    }

    /// A worker claims what waits.
    pub fn claim(&mut self, worker: u32) -> Option<Held> {
        let first = self.next.get(&worker).copied().unwrap_or(0);
        for slot in (0..SLOTS).map(|step| (first + step) % SLOTS) {
            let shown = self.shown[slot];
            let generation = generation_of(shown.state);
            let open = word(0, 0, generation);
            if shown.state & 0xFFFF != PENDING || shown.claim != open {
                continue;
            }
            self.next.insert(worker, (slot + 1) % SLOTS);
            self.shown[slot].claim = open | u64::from(worker);
            let asked = self.left[slot].clone()?;
            let payload = self.read(asked.input, asked.length);
            let Asked { number, attempt, output, capacity, .. } = asked;
            return Some(Held { slot, generation, output, capacity, number, attempt, payload });
        }
        None
    }

    /// A worker answers; whether that was published.
    pub fn finish(
        &mut self,
        worker: u32,
        held: &Held,
        outcome: &Result<Vec<u8>, (ErrorCode, String)>,
    ) -> bool {
        let (bytes, error) = match outcome {
            Ok(bytes) if bytes.len() <= held.capacity as usize => (bytes.clone(), None),
            Ok(_) => (Vec::new(), Some(ErrorCode::TOO_LONG)),
            Err((code, words)) => {
                let room = words.len().min(held.capacity as usize);
                (words.as_bytes()[..room].to_vec(), Some(*code))
            }
        };
        if self.shown[held.slot].claim != word(0, 0, held.generation) | u64::from(worker) {
            return false;
        }
        self.write(held.output, &bytes);
        let shown = &mut self.shown[held.slot];
        shown.used = bytes.len() as u64 | u64::from(crc32(&bytes)) << 32;
        let is_pending = shown.state == word(PENDING, 0, held.generation);
        if is_pending {
            shown.state = match error {
                None => word(DONE, 0, held.generation),
                Some(code) => word(FAILED, code.0, held.generation),
            };
        }
        is_pending || self.slips(Slip::CountsTwice)
    }

    /// A liar writes a state.
    pub fn write_state(&mut self, slot: usize, value: u64) {
        self.shown[slot].state = value;
    }

    /// A liar writes a claim.
    pub fn write_claim(&mut self, slot: usize, value: u64) {
        self.shown[slot].claim = value;
    }

    /// A liar writes a length and a checksum.
    pub fn write_used(&mut self, slot: usize, value: u64) {
        self.shown[slot].used = value;
    }

    /// A liar writes over the beginning of a window.
    pub fn write_window(&mut self, window: Window, value: u64) {
        self.write(window, &value.to_le_bytes());
    }

    /// The generation that a slot has.
    pub fn generation(&self, slot: usize) -> u32 {
        self.generations[slot]
    }
}
