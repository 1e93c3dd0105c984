//! The host behind `cop`: every operation of the specification, through descriptors in memory.
//!
//! The argument is the byte address of a descriptor; all words are 64 bits. Addresses in descriptors are byte
//! addresses, multiples of 8. The result goes to a register.
//!
//! ```text
//! ANN_QUERY     0 features (address of 4 words)  1 experts (address, 5 words each: 4 of descriptor, 1 of number)
//!               2 how many experts  3 list (address: count, then numbers)  4 how many are wanted, 1 to 64
//!               result: the address of the list
//! SAT_CHECK     0 formula (address)  1 conflicts allowed  2 model (address, 0 for none: 64 variables a word)
//!               3 proof (address, 0 for none: length in bytes, then bytes)  4 words of room for the proof
//!               result: 1 satisfiable, 2 unsatisfiable, 3 undecided, 4 unsatisfiable but the proof has no room
//! PROOF_CHECK   0 formula (address)  1 proof (address: length in bytes, then bytes, LRAT)
//!               result: 1 accepted, 0 rejected
//! HOARE_CHECK   0 program (address: length in bytes, then its binary form)  1 words of memory to model, 0 to 64
//!               2 conflicts allowed for each way out
//!               result: 1 every invariant holds, 2 one is refuted, 3 undecided, 4 one can never hold,
//!               0 cannot be checked
//! CEGIS         0 inputs, at most 6  1 outputs, 1 to 8  2 tables (address, one word an output)  3 rows that matter
//!               (address, one word an output; 0 for all)  4 most gates, at most 12  5 conflicts allowed a size
//!               6 circuit (address: gates, then op | a << 8 | b << 32 for each, then one signal an output)
//!               7 words of room for it
//!               result: 1 found and smallest, 2 found, 3 there is none, 4 none found, 5 found but without room
//! HASH          0 words (address)  1 how many  2 digest (address of 4 words); result: that address
//! LOG           0 words (address)  1 how many  2 head of the log's chain (address of 4 words, 0 for none)
//!               result: the entry's index, or REFUSED when the log is full
//! TEACH         0 domain  1 difficulty  2 context  3 task (address, 0 for none)  4 words of room for it, 7 or more
//!               result: the task's number, or REFUSED; the task is number, domain, band, template, difficulty, seed of its
//!               hidden choices, and its tree: length in bytes, then as many of the bytes as there is room for
//! TOOL_ENQUEUE  0 tool_kind_id  1 op  2 flags  3 resource_id  4 in_ptr (address)  5 in_len, bytes, at most 4096
//!               6 out_ptr (address)  7 out_cap, bytes; result: the slot, or a negative number that says why not
//!               (`bem_tools::error::Refused`); the response is in memory after a later barrier
//! ```
//!
//! A formula is: variables, clauses, then the literals of each clause as signed numbers, each clause ended by 0.
//! REFUSED is all ones. A descriptor that cannot be loaded traps like any load; one that makes no sense, or names
//! words that may not be touched, traps with [`Cause::BadDescriptor`]. All work is bounded by the constants below;
//! budgets above the host's are cut to it. Must not know who fills the slots. Clauses: ISA-4, SCC-3 to SCC-7.

mod prover;

use crate::instruction::Operation;
use crate::interpreter::Coprocessor;
use crate::memory::{Memory, PAGE_WORDS};
use crate::trap::Cause;
use bem_base::digest::{self, Digest};
use bem_base::environment::{Bits, OBSERVATION_WORDS};
use bem_machine::config::GenesisConfig;
use bem_machine::route::hamming::HammingIndex;
use bem_machine::route::{CANDIDATES_MAX, Candidates};
use bem_tools::error::Refused;
use bem_tools::limits::{PAYLOAD_FAST_MAX, PAYLOAD_MAX};

/// What a slot that declines, or a full log, answers.
pub const REFUSED: u64 = u64::MAX;
/// Words of one message to HASH or LOG.
pub const MESSAGE_WORDS_MAX: u64 = 1 << 16;
/// Entries of the log.
pub const LOG_ENTRIES_MAX: usize = 1 << 16;

/// A task that a teacher made, as a program and the world that it is played in read it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "teacher_task_desc")]
pub struct TaskDescriptor {
    /// Its number: what TEACH gives.
    pub number: u64,
    /// The domain that was asked for.
    pub domain: u64,
    /// The band that it is in.
    pub band: u64,
    /// The template it was made from.
    pub template: u64,
    /// Its difficulty, raw `Fixed`.
    pub difficulty: i64,
    /// The seed of its hidden choices.
    pub seed: u64,
    /// Its tree, in one line: a game is built from it.
    pub tree: String,
}

/// Words of a task before the bytes of its tree.
pub const TASK_WORDS_MIN: u64 = 7;

impl TaskDescriptor {
    /// As words of memory, at most `room` of them.
    fn words(&self, room: usize) -> Vec<u64> {
        let TaskDescriptor { number, domain, band, template, difficulty, seed, tree } = self;
        let mut words = vec![*number, *domain, *band, *template, *difficulty as u64, *seed];
        words.extend(packed(tree.as_bytes()));
        words.truncate(room);
        words
    }
}

/// Answers TEACH; the engine puts its teacher here.
pub trait TeachSlot {
    /// A task for this domain, difficulty and context, or nothing.
    fn teach(&mut self, domain: u64, difficulty: u64, context: u64) -> Option<TaskDescriptor>;
}

/// What a program asks of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolDescriptor {
    /// The kind of tool, as a word.
    pub tool: u32,
    /// The operation.
    pub operation: u16,
    /// Its flags.
    pub flags: u16,
    /// The resource, as a word.
    pub resource: u32,
    /// The address of the payload.
    pub input: u64,
    /// The address for the response.
    pub output: u64,
    /// Bytes that the response may have.
    pub capacity: u32,
}

/// Answers TOOL_ENQUEUE; whoever has a bus puts it here.
pub trait ToolSlot {
    /// Takes a request and gives its slot, or says why not. It must not wait.
    fn enqueue(&mut self, asked: &ToolDescriptor, payload: &[u8]) -> Result<u16, Refused>;
}

/// An empty slot: declines and counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declining {
    /// How often it was asked.
    pub refusals: u64,
}

impl TeachSlot for Declining {
    fn teach(&mut self, _domain: u64, _difficulty: u64, _context: u64) -> Option<TaskDescriptor> {
        self.refusals += 1;
        None
    }
}

impl ToolSlot for Declining {
    fn enqueue(&mut self, _asked: &ToolDescriptor, _payload: &[u8]) -> Result<u16, Refused> {
        self.refusals += 1;
        Err(Refused::NoBus)
    }
}

/// The host: a log, a bound on conflicts, and two slots.
#[derive(Clone, Debug)]
pub struct Host<T = Declining, U = Declining> {
    /// The most conflicts that any one question to the solver may cost.
    pub conflicts_max: u32,
    /// The teacher's slot.
    pub teacher: T,
    /// The tools' slot.
    pub tools: U,
    log: Vec<Vec<u64>>,
    head: Digest,
}

impl Host {
    /// A host with empty slots.
    pub fn new(conflicts_max: u32) -> Host {
        Host::with_slots(conflicts_max, Declining::default(), Declining::default())
    }
}

impl<T: TeachSlot, U: ToolSlot> Host<T, U> {
    /// A host with these slots.
    pub fn with_slots(conflicts_max: u32, teacher: T, tools: U) -> Host<T, U> {
        Host { conflicts_max, teacher, tools, log: Vec::new(), head: digest::hash_parts("isa/log", &[]) }
    }

    /// The entries of the log.
    pub fn log(&self) -> &[Vec<u64>] {
        &self.log
    }

    /// The digest that every entry was hashed into, each with the head before it.
    pub fn log_head(&self) -> Digest {
        self.head
    }

    fn budget(&self, wanted: u64) -> u32 {
        wanted.min(u64::from(self.conflicts_max)) as u32
    }

    fn append(&mut self, entry: Vec<u64>) -> u64 {
        if LOG_ENTRIES_MAX <= self.log.len() {
            return REFUSED;
        }
        self.head = digest::hash_parts("isa/log", &[self.head.as_bytes(), &bytes_of(&entry)]);
        self.log.push(entry);
        self.log.len() as u64 - 1
    }
}

impl<T: TeachSlot, U: ToolSlot> Coprocessor for Host<T, U> {
    fn call(&mut self, operation: u8, argument: u64, memory: &mut Memory<'_>) -> Result<u64, Cause> {
        let known = Operation::ALL.iter().find(|(known, _)| *known as u8 == operation);
        let (operation, _) = known.ok_or(Cause::NoCoprocessor)?;
        match operation {
            Operation::AnnQuery => nearest(&descriptor(memory, argument)?, memory),
            Operation::SatCheck => {
                let mut words: [u64; 5] = descriptor(memory, argument)?;
                words[1] = u64::from(self.budget(words[1]));
                prover::sat_check(&words, memory)
            }
            Operation::ProofCheck => prover::proof_check(&descriptor(memory, argument)?, memory),
            Operation::HoareCheck => {
                let mut words: [u64; 3] = descriptor(memory, argument)?;
                words[2] = u64::from(self.budget(words[2]));
                prover::hoare_check(&words, memory)
            }
            Operation::Cegis => {
                let mut words: [u64; 8] = descriptor(memory, argument)?;
                words[5] = u64::from(self.budget(words[5]));
                prover::cegis(&words, memory)
            }
            Operation::Hash => {
                let [address, count, result] = descriptor(memory, argument)?;
                let digest = digest::hash(&bytes_of(&message(memory, address, count)?));
                store(memory, result, &digest_words(&digest))?;
                Ok(result)
            }
            Operation::Log => {
                let [address, count, head] = descriptor(memory, argument)?;
                let entry = message(memory, address, count)?;
                let index = self.append(entry);
                if head != 0 {
                    store(memory, head, &digest_words(&self.head))?;
                }
                Ok(index)
            }
            Operation::Teach => {
                let [domain, difficulty, context, task, room] = descriptor(memory, argument)?;
                if task != 0 {
                    // A place that cannot be written is found before the teacher is asked.
                    if !(TASK_WORDS_MIN..=MESSAGE_WORDS_MAX).contains(&room) {
                        return Err(Cause::BadDescriptor);
                    }
                    let there = load(memory, task, room as usize)?;
                    store(memory, task, &there)?;
                }
                let Some(taught) = self.teacher.teach(domain, difficulty, context) else {
                    return Ok(REFUSED);
                };
                if task != 0 {
                    store(memory, task, &taught.words(room as usize))?;
                }
                Ok(taught.number)
            }
            Operation::ToolEnqueue => {
                let words = descriptor(memory, argument)?;
                Ok(match asked(&words, memory) {
                    Ok((asked, payload)) => match self.tools.enqueue(&asked, &payload) {
                        Ok(slot) => u64::from(slot),
                        Err(refused) => refused.code() as u64,
                    },
                    Err(refused) => refused.code() as u64,
                })
            }
        }
    }
}

/// TOOL_ENQUEUE: what the descriptor asks, with its payload copied out of memory.
fn asked(words: &[u64; 8], memory: &mut Memory<'_>) -> Result<(ToolDescriptor, Vec<u8>), Refused> {
    let [tool, operation, flags, resource, input, length, output, capacity] = *words;
    let tool = u32::try_from(tool).map_err(|_| Refused::UnknownKind)?;
    let operation = u16::try_from(operation).map_err(|_| Refused::BadOperation)?;
    let flags = u16::try_from(flags).map_err(|_| Refused::BadOperation)?;
    let resource = u32::try_from(resource).map_err(|_| Refused::BadResource)?;
    if (PAYLOAD_FAST_MAX as u64) < length {
        return Err(Refused::TooLong);
    }
    if capacity == 0 || (PAYLOAD_MAX as u64) < capacity {
        return Err(Refused::BadCapacity);
    }
    let length = length as usize;
    let words = load(memory, input, length.div_ceil(8)).map_err(|_| Refused::BadBuffer)?;
    // A word of every page and the last one tell: rights are those of pages.
    let last = output.checked_add(8 * (capacity.div_ceil(8) - 1)).ok_or(Refused::BadBuffer)?;
    for place in (output..last).step_by(8 * PAGE_WORDS).chain([last]) {
        let there = memory.load(place);
        there.and_then(|word| memory.store(place, word)).map_err(|_| Refused::BadBuffer)?;
    }
    let mut payload = bytes_of(&words);
    payload.truncate(length);
    let capacity = capacity as u32;
    Ok((ToolDescriptor { tool, operation, flags, resource, input, output, capacity }, payload))
}

/// ANN_QUERY: the experts whose descriptors are nearest to the features.
fn nearest(words: &[u64; 5], memory: &mut Memory<'_>) -> Result<u64, Cause> {
    const EXPERT_WORDS: usize = OBSERVATION_WORDS + 1;
    let [features, experts, count, list, wanted] = *words;
    if !(1..=CANDIDATES_MAX as u64).contains(&wanted) {
        return Err(Cause::BadDescriptor);
    }
    let bounds =
        GenesisConfig { feature_bits: 256, candidates_max: wanted as u32, ..GenesisConfig::default() };
    let mut index = HammingIndex::new(&bounds);
    if index.capacity() as u64 <= count {
        return Err(Cause::BadDescriptor);
    }
    let bits = |words: &[u64]| Bits(core::array::from_fn(|word| words[word]));
    let features = bits(&load(memory, features, OBSERVATION_WORDS)?);
    for entry in load(memory, experts, count as usize * EXPERT_WORDS)?.chunks_exact(EXPERT_WORDS) {
        let expert = u32::try_from(entry[OBSERVATION_WORDS]).map_err(|_| Cause::BadDescriptor)?;
        index.insert(bits(entry), expert).map_err(|_| Cause::BadDescriptor)?;
    }
    let mut candidates = Candidates::EMPTY;
    index.nearest(&features, &mut candidates);
    let members = candidates.members();
    let answer: Vec<u64> = core::iter::once(members.len() as u64)
        .chain(members.iter().map(|member| u64::from(*member)))
        .collect();
    store(memory, list, &answer)?;
    Ok(list)
}

/// The words of a descriptor; it traps as a load would.
fn descriptor<const N: usize>(memory: &Memory<'_>, address: u64) -> Result<[u64; N], Cause> {
    let mut words = [0; N];
    for (word, offset) in words.iter_mut().zip((0..).step_by(8)) {
        *word = memory.load(address.checked_add(offset).ok_or(Cause::OutOfSegment)?)?;
    }
    Ok(words)
}

/// Words that a descriptor points to.
fn load(memory: &Memory<'_>, address: u64, count: usize) -> Result<Vec<u64>, Cause> {
    let place = |index: usize| address.checked_add(8 * index as u64).ok_or(Cause::BadDescriptor);
    (0..count).map(|index| memory.load(place(index)?).map_err(|_| Cause::BadDescriptor)).collect()
}

fn message(memory: &Memory<'_>, address: u64, count: u64) -> Result<Vec<u64>, Cause> {
    if MESSAGE_WORDS_MAX < count {
        return Err(Cause::BadDescriptor);
    }
    load(memory, address, count as usize)
}

/// Puts an answer where a descriptor wants it. All of it must fit, or nothing is written.
fn store(memory: &mut Memory<'_>, address: u64, words: &[u64]) -> Result<(), Cause> {
    let old = load(memory, address, words.len())?;
    // The first words may be writable and later ones not: what was written is taken back then.
    for (index, word) in words.iter().enumerate() {
        if memory.store(address + 8 * index as u64, *word).is_err() {
            for (index, word) in old.iter().enumerate().take(index) {
                memory.store(address + 8 * index as u64, *word)?;
            }
            return Err(Cause::BadDescriptor);
        }
    }
    Ok(())
}

/// Words as bytes, lowest first.
fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn digest_words(digest: &Digest) -> [u64; 4] {
    let (words, _) = digest.as_bytes().as_chunks::<8>();
    core::array::from_fn(|word| u64::from_le_bytes(words[word]))
}

/// Bytes behind their length, as formulas' proofs and programs are stored.
pub fn packed(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![bytes.len() as u64];
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        words.push(u64::from_le_bytes(word));
    }
    words
}

#[cfg(test)]
mod tests;
