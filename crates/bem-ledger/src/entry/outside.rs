//! Entries about tools and people: what the machine asked outside, what came back, and when it took effect.
//!
//! Payloads are named by digest and kept as blobs; credentials have no field here and resources are opaque identifiers
//! (D-30). A reader accepts only combinations that the bus and the question table can be in.
//! Clauses: TOOL-10, HUM-1, HUM-11; decisions D-28, D-29, D-30.

use super::codec::{decode_id, put};
use super::{HumanPhase, HumanStatus, SkipReason, ToolPhase, ToolStatus};
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::ids::ObjectId;

/// A request on the tool bus moved on (003/8.1 with the fields of D-28).
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "TOOL_REQ")]
pub struct ToolCall {
    /// The request; never used twice.
    pub request: u64,
    /// When: of a consumed one the step from which on its response has effect.
    pub step: u64,
    /// The task at work.
    pub task: u64,
    /// What the machine knew when it asked.
    pub context: Digest,
    /// Which tool.
    pub tool: ObjectId,
    /// Which of the tool's operations.
    pub operation: u16,
    /// The operation's flags.
    pub flags: u16,
    /// The resource, as the host's tables name it.
    pub resource: ObjectId,
    /// The slot on the bus.
    pub slot: u16,
    /// How often the slot had been used.
    pub generation: u32,
    /// Where the call stands.
    pub phase: ToolPhase,
    /// The status word's status.
    pub status: ToolStatus,
    /// The tool's error; zero unless the status is an error.
    pub error: u16,
    /// The request's payload, a blob.
    pub request_digest: Digest,
    /// The response's payload, a blob; zero unless it is consumed with a response.
    pub response_digest: Digest,
    /// Bytes that the response may have.
    pub response_capacity: u32,
    /// Bytes that it has.
    pub response_bytes: u32,
    /// The step after which nobody waits any more; zero for no deadline.
    pub deadline: u64,
}

impl ToolCall {
    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.u64(self.request);
        writer.u64(self.step);
        writer.u64(self.task);
        put(writer, &self.context);
        writer.u32(self.tool.to_word());
        writer.u16(self.operation);
        writer.u16(self.flags);
        writer.u32(self.resource.to_word());
        writer.u16(self.slot);
        writer.u32(self.generation);
        writer.u8(self.phase as u8);
        writer.u8(self.status as u8);
        writer.u16(self.error);
        put(writer, &self.request_digest);
        put(writer, &self.response_digest);
        writer.u32(self.response_capacity);
        writer.u32(self.response_bytes);
        writer.u64(self.deadline);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<ToolCall, DecodeError> {
        let impossible = reader.error("a tool call in a state that the bus cannot be in");
        let call = ToolCall {
            request: reader.u64()?,
            step: reader.u64()?,
            task: reader.u64()?,
            context: Digest::decode(reader)?,
            tool: decode_id(reader)?,
            operation: reader.u16()?,
            flags: reader.u16()?,
            resource: decode_id(reader)?,
            slot: reader.u16()?,
            generation: reader.u32()?,
            phase: ToolPhase::decode(reader)?,
            status: ToolStatus::decode(reader)?,
            error: reader.u16()?,
            request_digest: Digest::decode(reader)?,
            response_digest: Digest::decode(reader)?,
            response_capacity: reader.u32()?,
            response_bytes: reader.u32()?,
            deadline: reader.u64()?,
        };
        if call.is_possible() { Ok(call) } else { Err(impossible) }
    }

    fn is_possible(&self) -> bool {
        let is_open = self.response_digest == Digest::default() && self.response_bytes == 0;
        let stands = match self.phase {
            ToolPhase::Issued => self.status == ToolStatus::Pending && is_open,
            ToolPhase::Consumed => matches!(self.status, ToolStatus::Done | ToolStatus::Failed),
            ToolPhase::Dropped => is_open,
        };
        let fails = (self.status == ToolStatus::Failed) == (self.error != 0);
        stands && fails && self.response_bytes <= self.response_capacity
    }
}

/// A question to a person moved on (002/8.3 with the fields of D-29).
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_TASK")]
pub struct HumanTask {
    /// The question; never used twice.
    pub question: u64,
    /// When.
    pub step: u64,
    /// What is asked: 0 label a step, 1 score an episode, 2 approve a patch, 3 rank templates, 4 adjust the configuration.
    pub kind: u8,
    /// What it is about: 0 step, 1 episode, 2 patch, 3 template, 4 configuration.
    pub target_kind: u8,
    /// Which of them.
    pub target: u64,
    /// 0 low, 1 normal, 2 high, 3 critical.
    pub priority: u8,
    /// What happened to it.
    pub phase: HumanPhase,
    /// Where it stands.
    pub status: HumanStatus,
    /// Why nobody will answer; none unless it is skipped.
    pub skipped: SkipReason,
    /// Of a patch: 0 undecided, 1 approved, 2 rejected, 3 deferred. Of everything else zero.
    pub decision: u8,
    /// When it was asked.
    pub created: u64,
    /// When it last moved.
    pub updated: u64,
    /// The step after which it is skipped; zero for no deadline.
    pub deadline: u64,
    /// Who works on it, by an opaque number; zero for nobody.
    pub owner: u32,
    /// The step until which it is the owner's; zero without an owner.
    pub lease: u64,
    /// Questions of one group are the same question to several people; zero for none.
    pub group: u64,
    /// The step until which the answer can be taken back; zero if it cannot.
    pub undo: u64,
    /// Whether it was confirmed a second time, which loosening safety needs.
    pub confirmed: bool,
    /// What was shown, a blob.
    pub context: Digest,
    /// What was answered, a blob; zero without an answer.
    pub answer: Digest,
    /// Bytes of the answer.
    pub answer_bytes: u32,
}

impl HumanTask {
    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.u64(self.question);
        writer.u64(self.step);
        writer.u8(self.kind);
        writer.u8(self.target_kind);
        writer.u64(self.target);
        writer.u8(self.priority);
        writer.u8(self.phase as u8);
        writer.u8(self.status as u8);
        writer.u8(self.skipped as u8);
        writer.u8(self.decision);
        writer.u64(self.created);
        writer.u64(self.updated);
        writer.u64(self.deadline);
        writer.u32(self.owner);
        writer.u64(self.lease);
        writer.u64(self.group);
        writer.u64(self.undo);
        writer.bool(self.confirmed);
        put(writer, &self.context);
        put(writer, &self.answer);
        writer.u32(self.answer_bytes);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<HumanTask, DecodeError> {
        let impossible = reader.error("a question in a state that none can be in");
        let task = HumanTask {
            question: reader.u64()?,
            step: reader.u64()?,
            kind: reader.u8()?,
            target_kind: reader.u8()?,
            target: reader.u64()?,
            priority: reader.u8()?,
            phase: HumanPhase::decode(reader)?,
            status: HumanStatus::decode(reader)?,
            skipped: SkipReason::decode(reader)?,
            decision: reader.u8()?,
            created: reader.u64()?,
            updated: reader.u64()?,
            deadline: reader.u64()?,
            owner: reader.u32()?,
            lease: reader.u64()?,
            group: reader.u64()?,
            undo: reader.u64()?,
            confirmed: reader.bool()?,
            context: Digest::decode(reader)?,
            answer: Digest::decode(reader)?,
            answer_bytes: reader.u32()?,
        };
        if task.is_possible() { Ok(task) } else { Err(impossible) }
    }

    fn is_possible(&self) -> bool {
        let in_range = self.kind <= 4 && self.target_kind <= 4 && self.priority <= 3 && self.decision <= 3;
        let is_patch = self.kind == 2;
        let is_answered = self.answer != Digest::default();
        let stands = match self.phase {
            HumanPhase::Created => self.status == HumanStatus::Pending && !is_answered,
            HumanPhase::Updated => {
                matches!(self.status, HumanStatus::Pending | HumanStatus::InProgress) && !is_answered
            }
            HumanPhase::Answered | HumanPhase::Applied => self.status == HumanStatus::Done && is_answered,
            HumanPhase::Skipped => self.status == HumanStatus::Skipped && !is_answered,
        };
        in_range
            && stands
            && (is_patch || self.decision == 0)
            && (is_answered || self.answer_bytes == 0)
            && (self.status == HumanStatus::Skipped) == (self.skipped != SkipReason::None)
            && (self.owner != 0 || self.lease == 0)
            && self.created <= self.updated
            && self.updated <= self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Entry;
    use crate::testing;
    use bem_base::prng::Prng;

    /// The entry is refused, and for being in an impossible state.
    fn is_refused(entry: Entry) -> bool {
        Entry::from_bytes(&entry.to_bytes()).is_err_and(|error| error.to_string().contains("be in"))
    }

    #[test]
    fn calls_and_questions_in_states_that_cannot_be_are_refused() {
        let mut prng = Prng::stream(1, "outside");
        let (mut calls, mut questions) = (0, 0);
        while calls < 40 || questions < 40 {
            match testing::entry(&mut prng) {
                Entry::ToolCall(call) => {
                    let with = |change: fn(&mut ToolCall)| {
                        let mut call = call.clone();
                        change(&mut call);
                        is_refused(Entry::ToolCall(call))
                    };
                    assert!(with(|call| call.error = u16::from(call.error == 0)));
                    assert!(with(|call| (call.response_bytes, call.response_capacity) = (2, 1)));
                    assert!(call.phase == ToolPhase::Dropped || with(|call| call.status = ToolStatus::Empty));
                    calls += 1;
                }
                Entry::HumanTask(task) => {
                    let with = |change: fn(&mut HumanTask)| {
                        let mut task = task.clone();
                        change(&mut task);
                        is_refused(Entry::HumanTask(task))
                    };
                    assert!(with(|task| task.kind = 5) && with(|task| task.priority = 4));
                    assert!(with(|task| task.status = HumanStatus::Empty));
                    assert!(with(|task| (task.owner, task.lease) = (0, 1)));
                    assert!(
                        with(|task| task.updated = task.step.wrapping_add(1).max(1)) || task.step == u64::MAX
                    );
                    assert!(with(|task| {
                        let is_skipped = task.skipped != SkipReason::None;
                        task.skipped = if is_skipped { SkipReason::None } else { SkipReason::Deadline };
                    }));
                    questions += 1;
                }
                _ => {}
            }
        }
    }
}
