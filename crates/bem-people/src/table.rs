//! The HINL_TASK table: questions with their lifecycle, leases, deadlines and order.
//!
//! A question waits, is leased by one person, and is answered, skipped or given back; its place is used again afterwards,
//! its serial never. Whether a lease has run out is said from outside, with the generation it is about, so that a late word
//! changes nothing. Must not know what an answer does. Clauses: HUM-1, HUM-2, HUM-3; decisions D-29, D-76.

use crate::control::{Control, Counters};
use crate::kinds::{Priority, QuestionKind, Skip, Status};
use crate::payload::context::Context;
use crate::{ANSWER_BYTES_MAX, CONTEXT_BYTES_MAX, OPEN_MAX};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::ids::{ObjectClass, ObjectId};
use std::collections::BTreeMap;

/// Flag of a question that settles a conflict between answers.
pub const ADJUDICATES: u32 = 1;
/// Flag of a question that somebody outside has asked.
pub const FROM_OUTSIDE: u32 = 2;
/// Flag of a configuration question whose first answer loosens safety and waits for a second person.
pub const NEEDS_SECOND: u32 = 4;

/// A person, by an opaque number that is never zero.
pub type Person = u32;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_TASK")]
pub struct Question {
    /// Never used twice.
    pub serial: u64,
    /// Its identifier, used again after 2^20 questions.
    pub id: ObjectId,
    /// What is asked; what it is about follows from it.
    pub kind: QuestionKind,
    /// Which step, episode or patch it is about.
    pub target: u64,
    /// How much it matters.
    pub priority: Priority,
    /// Where it stands.
    pub status: Status,
    /// What is shown.
    pub context: Vec<u8>,
    /// The step after which it is skipped; zero for none.
    pub deadline: u64,
    /// When it was asked.
    pub created: u64,
    /// When it last moved.
    pub updated: u64,
    /// See [`ADJUDICATES`], [`FROM_OUTSIDE`], [`NEEDS_SECOND`].
    pub flags: u32,
    /// How unsure the machine is, the higher the earlier it is asked.
    pub doubt: u32,
    /// Who works on it; zero for nobody.
    pub owner: Person,
    /// Counts the leases; only the latest may answer.
    pub generation: u32,
    /// Questions of one group are the same question; zero for none.
    pub group: u64,
    /// Who answered before and must not answer this one; zero for nobody.
    pub barred: Person,
    /// An answer that waits for a second person; empty without one.
    pub first_answer: Vec<u8>,
}

/// What somebody wants to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_ENQUEUE_REQ")]
pub struct Request {
    /// What is asked.
    pub kind: QuestionKind,
    /// What it is about.
    pub target: u64,
    /// How much it matters.
    pub priority: Priority,
    /// What is shown.
    pub context: Vec<u8>,
    /// The step after which it is skipped; zero for none.
    pub deadline: u64,
    /// See [`Question::flags`].
    pub flags: u32,
    /// See [`Question::doubt`].
    pub doubt: u32,
    /// See [`Question::group`].
    pub group: u64,
    /// See [`Question::barred`].
    pub barred: Person,
}

/// Why a question does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// There is no such question, or it is over.
    #[error("the question is not open: it was answered, skipped, or never asked")]
    Gone,
    /// Somebody else works on it.
    #[error("somebody else works on this question")]
    Leased,
    /// The lease is not the latest, or somebody else's.
    #[error("the lease has run out or is somebody else's: lease the question again")]
    LeaseLost,
    /// The same person may not answer it.
    #[error("you have answered this question already: another person must")]
    Barred,
}

/// The questions that are open. Invariants: serials are unique; a question without an owner is pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    slots: Vec<Option<Question>>,
    last_serial: u64,
    /// The earliest deadline; no question has to be looked at before.
    next_deadline: u64,
    /// Of every world the contexts whose steps are asked about, in order, and how often each is: a function of the slots, so
    /// that no question has to be read at an outcome.
    contexts: BTreeMap<u16, Vec<(u64, u16)>>,
}

impl Default for Table {
    fn default() -> Table {
        let (slots, contexts) = (vec![None; OPEN_MAX], BTreeMap::new());
        Table { slots, last_serial: 0, next_deadline: u64::MAX, contexts }
    }
}

impl Table {
    /// The serial of the last question that was asked.
    pub fn last(&self) -> u64 {
        self.last_serial
    }

    /// The questions that are open.
    #[doc(alias = "QUERY_TASKS")]
    pub fn open(&self) -> impl Iterator<Item = &Question> {
        self.slots.iter().flatten()
    }

    /// A question by its serial.
    pub fn get(&self, serial: u64) -> Option<&Question> {
        self.open().find(|question| question.serial == serial)
    }

    fn get_mut(&mut self, serial: u64) -> Result<&mut Question, Stuck> {
        self.slots.iter_mut().flatten().find(|question| question.serial == serial).ok_or(Stuck::Gone)
    }

    /// The contexts of a world that are asked about.
    fn contexts_of(&self, world: u16) -> &[(u64, u16)] {
        self.contexts.get(&world).map_or(&[], Vec::as_slice)
    }

    /// Whether a step in this context of a world is asked about.
    pub fn asks_about(&self, world: u16, context: u64) -> bool {
        self.contexts_of(world).binary_search_by_key(&context, |entry| entry.0).is_ok()
    }

    /// Whether each of so many contexts of a world is asked about.
    pub fn asks_about_all(&self, world: u16, contexts: u64) -> bool {
        // Contexts are different and in order: only if none is missing before it has the last one its own place.
        let Some(last) = contexts.checked_sub(1) else { return true };
        self.contexts_of(world).get(last as usize).is_some_and(|entry| entry.0 == last)
    }

    /// Books a question that came to a place.
    fn enter(&mut self, place: usize, question: Question) {
        if let Some((world, context)) = context_of(&question) {
            let asked = self.contexts.entry(world).or_default();
            match asked.binary_search_by_key(&context, |entry| entry.0) {
                Ok(known) => asked[known].1 += 1,
                Err(free) => asked.insert(free, (context, 1)),
            }
        }
        self.slots[place] = Some(question);
    }

    /// Books that a question has left its place.
    fn leave(&mut self, question: &Question) {
        let Some((world, context)) = context_of(question) else { return };
        let Some(asked) = self.contexts.get_mut(&world) else { return };
        if let Some(entry) = asked.iter_mut().find(|entry| entry.0 == context) {
            entry.1 -= 1;
        }
        asked.retain(|entry| 0 < entry.1);
        if asked.is_empty() {
            self.contexts.remove(&world);
        }
    }

    /// Asks; nothing where no place is left, which is counted. Cost: one look at every place.
    #[doc(alias = "HINL_ALLOC_TASK")]
    #[doc(alias = "ENQUEUE_TASK")]
    pub fn ask(
        &mut self,
        request: Request,
        step: u64,
        control: &Control,
        counters: &mut Counters,
    ) -> Option<&Question> {
        let free = self.slots.iter().position(Option::is_none);
        let is_full = usize::from(control.max_pending_tasks) <= self.open().count();
        let place = match free {
            Some(place) if !is_full && request.context.len() <= CONTEXT_BYTES_MAX => place,
            _ => {
                counters.total_tasks_dropped += 1;
                return None;
            }
        };
        self.last_serial += 1;
        counters.last_task_id_seq = counters.last_task_id_seq.wrapping_add(1);
        counters.total_tasks_created += 1;
        if 0 < request.deadline {
            self.next_deadline = self.next_deadline.min(request.deadline);
        }
        let question = Question {
            serial: self.last_serial,
            id: ObjectId::new(ObjectClass::HinlTask, counters.last_task_id_seq & 0xf_ffff),
            kind: request.kind,
            target: request.target,
            priority: request.priority,
            status: Status::Pending,
            context: request.context,
            deadline: request.deadline,
            created: step,
            updated: step,
            flags: request.flags,
            doubt: request.doubt,
            owner: 0,
            generation: 0,
            group: request.group,
            barred: request.barred,
            first_answer: Vec::new(),
        };
        self.enter(place, question);
        self.slots[place].as_ref()
    }

    /// Whether this person may lease a question now.
    pub fn check_lease(&self, serial: u64, person: Person) -> Result<(), Stuck> {
        let question = self.get(serial).ok_or(Stuck::Gone)?;
        let is_taken = question.status == Status::InProgress && question.owner != person;
        // Answers of one group are blind to each other and come from different people.
        let is_barred = question.barred == person
            || question.group != 0
                && self.open().any(|other| {
                    other.group == question.group && other.serial != serial && other.owner == person
                });
        match (is_taken, is_barred) {
            (_, true) => Err(Stuck::Barred),
            (true, _) => Err(Stuck::Leased),
            _ => Ok(()),
        }
    }

    /// Somebody works on a question from now on; the generation of the lease.
    pub fn lease(&mut self, serial: u64, person: Person, step: u64) -> Result<&Question, Stuck> {
        self.check_lease(serial, person)?;
        let question = self.get_mut(serial)?;
        question.status = Status::InProgress;
        question.owner = person;
        question.generation = question.generation.wrapping_add(1);
        question.updated = step;
        Ok(question)
    }

    /// Whether a lease is the latest one of a question and belongs to this person.
    pub fn check_held(&self, serial: u64, generation: u32, person: Person) -> Result<&Question, Stuck> {
        let question = self.get(serial).ok_or(Stuck::Gone)?;
        let is_held = question.status == Status::InProgress
            && question.generation == generation
            && question.owner == person;
        if is_held { Ok(question) } else { Err(Stuck::LeaseLost) }
    }

    /// A question is given back, or its lease has run out.
    pub fn release(&mut self, serial: u64, generation: u32, step: u64) -> Result<&Question, Stuck> {
        let question = self.get_mut(serial)?;
        if question.status != Status::InProgress || question.generation != generation {
            return Err(Stuck::LeaseLost);
        }
        question.status = Status::Pending;
        question.owner = 0;
        question.updated = step;
        Ok(question)
    }

    /// A first answer waits for a second person, to whom the question is open again.
    pub fn wait_for_second(&mut self, serial: u64, answer: Vec<u8>, step: u64) -> Result<&Question, Stuck> {
        let question = self.get_mut(serial)?;
        question.barred = question.owner;
        question.first_answer = answer;
        question.flags |= NEEDS_SECOND;
        (question.status, question.owner, question.updated) = (Status::Pending, 0, step);
        Ok(question)
    }

    /// A question is over; its place is free again.
    pub fn close(&mut self, serial: u64) -> Option<Question> {
        let slot =
            self.slots.iter_mut().find(|slot| slot.as_ref().is_some_and(|open| open.serial == serial))?;
        let question = slot.take()?;
        self.leave(&question);
        Some(question)
    }

    /// Whether a deadline has passed.
    #[inline]
    pub fn is_late(&self, step: u64) -> bool {
        self.next_deadline < step
    }

    /// Skips what is past its deadline. Cost: one look at every place, and only when a deadline has passed.
    #[doc(alias = "HINL_MAINTENANCE")]
    pub fn expire(&mut self, step: u64, counters: &mut Counters) -> Vec<Question> {
        let is_late = |question: &Question| 0 < question.deadline && question.deadline < step;
        let mut skipped = Vec::new();
        for slot in &mut self.slots {
            if let Some(question) = slot.take_if(|question| is_late(question)) {
                counters.total_tasks_skipped += 1;
                skipped.push(question);
            }
        }
        skipped.iter().for_each(|question| self.leave(question));
        let deadlines = self.open().map(|question| question.deadline).filter(|deadline| 0 < *deadline);
        self.next_deadline = deadlines.min().unwrap_or(u64::MAX);
        skipped
    }

    /// The open questions that this person may answer, the most pressing first: by priority, then by doubt, then by
    /// deadline, then by age.
    pub fn queue(&self, person: Person, is_approver: bool) -> Vec<&Question> {
        let may = |question: &&Question| {
            (is_approver || !question.kind.needs_approver() && question.flags & ADJUDICATES == 0)
                && self.check_lease(question.serial, person).is_ok()
        };
        let mut open: Vec<&Question> = self.open().filter(may).collect();
        open.sort_by_key(|question| {
            let deadline = if question.deadline == 0 { u64::MAX } else { question.deadline };
            let own = question.owner != person;
            (own, core::cmp::Reverse((question.priority, question.doubt)), deadline, question.serial)
        });
        open
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.last_serial);
        writer.length(self.open().count());
        for (place, question) in self.slots.iter().enumerate() {
            if let Some(question) = question {
                writer.u16(place as u16);
                question.encode(writer);
            }
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Table, DecodeError> {
        let mut table = Table { last_serial: reader.u64()?, ..Table::default() };
        let mut next = 0;
        for _ in 0..reader.length(60)? {
            let malformed = reader.error("questions that no table can hold");
            let place = usize::from(reader.u16()?);
            let question = Question::decode(reader)?;
            let is_known = table.get(question.serial).is_some();
            if place < next || OPEN_MAX <= place || is_known || table.last_serial < question.serial {
                return Err(malformed);
            }
            next = place + 1;
            if 0 < question.deadline {
                table.next_deadline = table.next_deadline.min(question.deadline);
            }
            table.enter(place, question);
        }
        Ok(table)
    }
}

/// The world and the context that a question about a step is about.
fn context_of(question: &Question) -> Option<(u16, u64)> {
    match Context::from_bytes(question.kind, &question.context) {
        Ok(Context::Step(shown)) => Some((shown.task, shown.context_hash)),
        _ => None,
    }
}

impl Question {
    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.serial);
        writer.u32(self.id.to_word());
        writer.u8(self.kind as u8);
        writer.u64(self.target);
        writer.u8(self.priority as u8);
        writer.u8(self.status as u8);
        writer.bytes(&self.context);
        [self.deadline, self.created, self.updated].into_iter().for_each(|step| writer.u64(step));
        [self.flags, self.doubt, self.owner, self.generation].into_iter().for_each(|word| writer.u32(word));
        writer.u64(self.group);
        writer.u32(self.barred);
        writer.bytes(&self.first_answer);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Question, DecodeError> {
        let malformed = reader.error("a question in a state that none can be in");
        let serial = reader.u64()?;
        let id = ObjectId::from_word(reader.u32()?).map_err(|_| malformed.clone())?;
        let (kind, target) = (QuestionKind::decode(reader)?, reader.u64()?);
        let (priority, status) = (Priority::decode(reader)?, Status::decode(reader)?);
        let context = reader.bytes()?.to_vec();
        let (deadline, created, updated) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (flags, doubt, owner, generation) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        let (group, barred) = (reader.u64()?, reader.u32()?);
        let first_answer = reader.bytes()?.to_vec();
        let stands = match status {
            Status::Pending => owner == 0,
            Status::InProgress => owner != 0 && 0 < generation,
            _ => false,
        };
        if !stands
            || id.class() != ObjectClass::HinlTask
            || CONTEXT_BYTES_MAX < context.len()
            || ANSWER_BYTES_MAX < first_answer.len()
            || updated < created
        {
            return Err(malformed);
        }
        Ok(Question {
            serial,
            id,
            kind,
            target,
            priority,
            status,
            context,
            deadline,
            created,
            updated,
            flags,
            doubt,
            owner,
            generation,
            group,
            barred,
            first_answer,
        })
    }
}

/// Why somebody skips a question, as people may say it.
pub fn skip_reason(name: &str) -> Option<Skip> {
    Skip::from_name(name).filter(|reason| matches!(reason, Skip::Declined | Skip::Obsolete | Skip::Withdrawn))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::context::StepContext;
    use bem_base::environment::Bits;
    use bem_base::prng::Prng;

    fn request(kind: QuestionKind, deadline: u64, doubt: u32) -> Request {
        Request {
            kind,
            target: 1,
            priority: Priority::Normal,
            context: vec![0xa0],
            deadline,
            flags: 0,
            doubt,
            group: 0,
            barred: 0,
        }
    }

    #[test]
    fn the_table_is_bounded_places_are_used_again_and_serials_are_not() {
        let (mut table, mut counters) = (Table::default(), Counters::default());
        let control = Control { max_pending_tasks: 256, ..Control::default() };
        let mut prng = Prng::stream(1, "table");
        let mut seen = 0;
        for step in 1..5_000u64 {
            if let Some(asked) =
                table.ask(request(QuestionKind::LabelStep, step + 900, 0), step, &control, &mut counters)
            {
                assert!(seen < asked.serial);
                seen = asked.serial;
            }
            if prng.below(8) == 0 {
                let first = table.open().next().map(|question| question.serial);
                first.into_iter().for_each(|serial| drop(table.close(serial)));
            }
            if table.is_late(step) {
                for skipped in table.expire(step, &mut counters) {
                    assert!(skipped.deadline < step);
                }
            }
            assert!(table.open().count() <= OPEN_MAX);
        }
        assert!(0 < counters.total_tasks_dropped && 0 < counters.total_tasks_skipped);
        assert_eq!(seen, counters.total_tasks_created);
        let mut writer = Writer::new();
        table.encode(&mut writer);
        assert_eq!(Table::decode(&mut Reader::new(writer.as_bytes())), Ok(table));
    }

    #[test]
    fn only_the_latest_lease_of_its_owner_answers_and_a_late_expiry_changes_nothing() {
        let (mut table, mut counters) = (Table::default(), Counters::default());
        let control = Control::default();
        let serial =
            table.ask(request(QuestionKind::LabelStep, 0, 0), 1, &control, &mut counters).unwrap().serial;
        let first = table.lease(serial, 7, 2).unwrap().generation;
        assert_eq!(table.lease(serial, 8, 3).unwrap_err(), Stuck::Leased);
        assert!(table.check_held(serial, first, 7).is_ok());
        assert_eq!(table.check_held(serial, first, 8).unwrap_err(), Stuck::LeaseLost);
        table.release(serial, first, 4).unwrap();
        let second = table.lease(serial, 8, 5).unwrap().generation;
        // The tab that was closed comes back, and the expiry of its lease comes late.
        assert_eq!(table.check_held(serial, first, 7).unwrap_err(), Stuck::LeaseLost);
        assert_eq!(table.release(serial, first, 6).unwrap_err(), Stuck::LeaseLost);
        assert!(table.check_held(serial, second, 8).is_ok());
        table.close(serial);
        assert_eq!(table.lease(serial, 8, 7).unwrap_err(), Stuck::Gone);
    }

    #[test]
    fn the_queue_puts_doubt_first_then_deadlines_and_hides_what_is_not_for_this_person() {
        let (mut table, mut counters) = (Table::default(), Counters::default());
        let control = Control::default();
        let mut ask = |request| table.ask(request, 1, &control, &mut counters).unwrap().serial;
        let sure = ask(request(QuestionKind::LabelStep, 50, 1));
        let unsure = ask(request(QuestionKind::LabelStep, 90, 9));
        let soon = ask(request(QuestionKind::LabelStep, 20, 1));
        let patch =
            ask(Request { priority: Priority::Critical, ..request(QuestionKind::ApprovePatch, 0, 0) });
        let order = |table: &Table, person, is_approver| -> Vec<u64> {
            table.queue(person, is_approver).iter().map(|question| question.serial).collect()
        };
        assert_eq!(order(&table, 5, false), [unsure, soon, sure]);
        assert_eq!(order(&table, 5, true), [patch, unsure, soon, sure]);
        table.lease(unsure, 6, 2).unwrap();
        assert_eq!(order(&table, 5, false), [soon, sure]);
        // Who has begun goes on with it.
        table.lease(sure, 5, 3).unwrap();
        assert_eq!(order(&table, 5, false), [sure, soon]);
    }

    #[test]
    fn contexts_are_known_as_long_as_a_question_about_them_is_open() {
        let (mut table, mut counters) = (Table::default(), Counters::default());
        let mut ask = |table: &mut Table, context_hash: u64| {
            let shown = StepContext {
                task: 3,
                context_hash,
                candidates: Vec::new(),
                chosen: 0,
                reward: None,
                step_index: 0,
                episode: 0,
                decision: 0,
                observation: Bits::ZERO,
                bad: false,
                cause: 0,
            };
            let context = Context::Step(shown).to_bytes();
            let request = Request { context, ..request(QuestionKind::LabelStep, 0, 0) };
            table.ask(request, 1, &Control::default(), &mut counters).unwrap().serial
        };
        // Twice about one context, and about one that is told apart no more.
        let asked = [0, 0, 7].map(|context| ask(&mut table, context));
        assert!(table.asks_about(3, 0) && table.asks_about(3, 7));
        assert!(!table.asks_about(3, 1) && !table.asks_about(4, 0));
        assert!(table.asks_about_all(3, 1) && !table.asks_about_all(3, 2));
        table.close(asked[0]);
        assert!(table.asks_about(3, 0));
        let mut writer = Writer::new();
        table.encode(&mut writer);
        assert_eq!(Table::decode(&mut Reader::new(writer.as_bytes())), Ok(table.clone()));
        table.close(asked[1]);
        assert!(!table.asks_about(3, 0) && !table.asks_about_all(3, 1));
    }
}
