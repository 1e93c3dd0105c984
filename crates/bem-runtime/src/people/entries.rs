//! Which entries of the ledger follow from what people do, and what an audit can say about them without a learner.
//!
//! A question that moves is one entry, with what was shown and answered as blobs; what an answer changed is another, with
//! every number before and after. Structures before the latest patches are kept, because people may take a patch back that
//! the machine's own watch would not. Clause: HUM-11; decisions D-29, D-78.

use super::change::decode_all;
use super::{Note, People, Phase, UNDO_STEPS, change};
use crate::input::WorldIndex;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_engine::chronicle::PatchNote;
use bem_engine::journal::entries::Sink;
use bem_evolve::apply::TablesError;
use bem_evolve::patch::PatchKind;
use bem_evolve::rebuild::{EXPERT_SLOTS, Twin};
use bem_ledger::LedgerError;
use bem_ledger::entry::{Entry, HumanPhase, HumanStatus, HumanTask, SkipReason, event_code};
use bem_people::kinds::Skip;
use std::collections::BTreeMap;

/// Patches of one world that people may take back.
const EARLIER_MAX: usize = 8;

/// Writes the entry of one note.
pub(crate) fn append(sink: &mut dyn Sink, note: &Note) -> Result<(), LedgerError> {
    match note {
        Note::Published(_) => Ok(()),
        Note::Changed { answer, question, undone, changes, step } => sink.append(&Entry::Event {
            step: *step,
            code: event_code::PEOPLE,
            values: vec![*answer as i64, *question as i64, i64::from(*undone)],
            payload: change::encode_all(changes),
        }),
        Note::Moved { question, phase, answer, decision, confirmed, step } => {
            let context = sink.put_blob(&question.context)?;
            let is_answered = matches!(phase, Phase::Answered | Phase::Applied);
            let stored = if is_answered { sink.put_blob(answer)? } else { Digest::default() };
            let (entered, status, skipped) = match phase {
                Phase::Created => (HumanPhase::Created, HumanStatus::Pending, SkipReason::None),
                Phase::Updated if question.owner == 0 => {
                    (HumanPhase::Updated, HumanStatus::Pending, SkipReason::None)
                }
                Phase::Updated => (HumanPhase::Updated, HumanStatus::InProgress, SkipReason::None),
                Phase::Answered => (HumanPhase::Answered, HumanStatus::Done, SkipReason::None),
                Phase::Applied => (HumanPhase::Applied, HumanStatus::Done, SkipReason::None),
                Phase::Skipped(reason) => {
                    let reason = match reason {
                        Skip::Deadline | Skip::None => SkipReason::Deadline,
                        Skip::Declined => SkipReason::Declined,
                        Skip::Obsolete => SkipReason::Obsolete,
                        Skip::Withdrawn => SkipReason::Withdrawn,
                    };
                    (HumanPhase::Skipped, HumanStatus::Skipped, reason)
                }
            };
            sink.append(&Entry::HumanTask(Box::new(HumanTask {
                question: question.serial,
                step: *step,
                kind: question.kind as u8,
                target_kind: question.kind.target() as u8,
                target: question.target,
                priority: question.priority as u8,
                phase: entered,
                status,
                skipped,
                decision: if is_answered { *decision as u8 } else { 0 },
                created: question.created,
                updated: question.updated,
                deadline: question.deadline,
                owner: question.owner,
                // A lease is timed by the host, so that its entry names the lease and not a step.
                lease: if question.owner == 0 { 0 } else { u64::from(question.generation) },
                group: question.group,
                undo: if is_answered { step + UNDO_STEPS } else { 0 },
                confirmed: *confirmed,
                context,
                answer: stored,
                answer_bytes: if is_answered { answer.len() as u32 } else { 0 },
            })))
        }
    }
}

/// Structures before the latest patches of every world, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Earlier(BTreeMap<u16, Vec<Twin>>);

impl Earlier {
    /// A patch is about to be followed.
    pub(crate) fn keep(&mut self, world: WorldIndex, twin: &Twin) {
        let kept = self.0.entry(world.0).or_default();
        kept.push(twin.clone());
        if EARLIER_MAX < kept.len() {
            kept.remove(0);
        }
    }

    /// The latest patch is taken back; whether there is one.
    pub(crate) fn take_back(
        &mut self,
        world: WorldIndex,
        twin: &mut Twin,
        kind: PatchKind,
    ) -> Result<bool, TablesError> {
        let earlier = self.0.get_mut(&world.0).and_then(Vec::pop);
        if twin.take_back(kind)? {
            return Ok(true);
        }
        let is_there = earlier.is_some();
        if let Some(earlier) = earlier {
            *twin = earlier;
        }
        Ok(is_there)
    }

    /// The structure after a patch, if it changes it.
    pub(crate) fn follow(
        &mut self,
        world: WorldIndex,
        twin: &mut Twin,
        note: &PatchNote,
    ) -> Option<[Digest; EXPERT_SLOTS]> {
        if note.rolled_back {
            let kind = PatchKind::ALL[usize::from(note.kind)];
            let is_taken_back = self.take_back(world, twin, kind).expect("the learner has taken it back");
            assert!(is_taken_back, "only the latest patches are taken back");
        } else {
            let (patch, _) = note.accepted()?;
            self.keep(world, twin);
            twin.follow(&patch).expect("the learner's tables have followed it");
        }
        Some(twin.leaves())
    }

    pub(crate) fn forget(&mut self, world: WorldIndex) {
        self.0.remove(&world.0);
    }

    /// Writes the canonical bytes.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.length(self.0.len());
        for (world, twins) in &self.0 {
            writer.u16(*world);
            writer.length(twins.len());
            for twin in twins {
                let mut bytes = Writer::new();
                twin.encode(&mut bytes);
                writer.bytes(bytes.as_bytes());
            }
        }
    }

    /// Reads canonical bytes back, of so many worlds.
    pub(crate) fn decode(worlds: u16, reader: &mut Reader<'_>) -> Result<Earlier, DecodeError> {
        let malformed = reader.error("structures that no world can have had");
        let mut earlier = BTreeMap::new();
        for _ in 0..reader.length(6)? {
            let (world, count) = (reader.u16()?, reader.length(4)?);
            let mut twins = Vec::new();
            for _ in 0..count {
                let mut bytes = Reader::new(reader.bytes()?);
                twins.push(Twin::decode(&mut bytes)?);
                bytes.finish()?;
            }
            let is_next = earlier.last_key_value().is_none_or(|(last, _)| *last < world);
            if worlds <= world || !is_next || EARLIER_MAX < count {
                return Err(malformed);
            }
            earlier.insert(world, twins);
        }
        Ok(Earlier(earlier))
    }
}

/// The lifecycle of questions, as entries tell it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lifecycle {
    /// Kind, target and context of the questions that are open.
    open: BTreeMap<u64, (u8, u64, Digest)>,
    answered: BTreeMap<u64, Digest>,
    last: u64,
    /// Questions up to this one were asked before the history that is read; of them nothing is known.
    before: u64,
}

impl Lifecycle {
    /// For a history that goes on from a saved state with these people.
    pub(crate) fn after(people: &People) -> Lifecycle {
        let last = people.table.last();
        Lifecycle { last, before: last, ..Lifecycle::default() }
    }

    pub(crate) fn take(&mut self, task: &HumanTask) -> Result<(), String> {
        let identity = (task.kind, task.target, task.context);
        let wrong = |what: &str| Err(format!("question {}: {what}", task.question));
        match task.phase {
            HumanPhase::Created => {
                if task.question != self.last + 1 {
                    return wrong("questions are not numbered one after the other");
                }
                self.last = task.question;
                self.open.insert(task.question, identity);
            }
            _ if task.question <= self.before => {}
            HumanPhase::Applied => {
                if self.answered.remove(&task.question) != Some(task.answer) {
                    return wrong("an answer took effect that was not given");
                }
            }
            _ => {
                if self.open.get(&task.question) != Some(&identity) {
                    return wrong("it moves and is not open, or is about something else");
                }
                if matches!(task.phase, HumanPhase::Answered | HumanPhase::Skipped) {
                    self.open.remove(&task.question);
                }
                if task.phase == HumanPhase::Answered {
                    self.answered.insert(task.question, task.answer);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn take_change(&mut self, values: &[i64], payload: &[u8]) -> Result<(), String> {
        let [_, question, undone] = values[..] else {
            return Err("a change by a person that names no answer".to_string());
        };
        if !(0..=1).contains(&undone) || self.last < question as u64 {
            return Err(format!("a change by an answer to question {question}, which was never asked"));
        }
        decode_all(payload).map(drop).map_err(|error| format!("a change by a person: {error}"))
    }
}
