//! What comes from people, with one spelling each: questions asked from outside, leases, answers, and what takes them back.
//!
//! Numbers 24 to 31 are theirs. Must not know what an input does. Clauses: HUM-2, HUM-3, LOG-5; decision D-76.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_people::control::Control;
use bem_people::kinds::{Priority, QuestionKind, Skip};
use bem_people::table::Person;
use bem_people::{ANSWER_BYTES_MAX, QUORUM_MAX, RANKED_MAX};

/// Bytes of what is said with a question from outside.
pub const WORDS_BYTES_MAX: usize = 512;
/// The numbers of people's inputs.
pub const TAGS: core::ops::RangeInclusive<u8> = 24..=31;

/// A question from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "HINL_ENQUEUE_REQ")]
pub struct Ask {
    /// What is asked.
    pub kind: QuestionKind,
    /// The world that it is about; zero where it is about none.
    pub world: u16,
    /// The decision, for steps and episodes.
    pub target: u64,
    /// The worlds to rank.
    pub worlds: Vec<u16>,
    /// How much it matters.
    pub priority: Priority,
    /// Inputs after which it is skipped; zero for never.
    pub patience: u64,
    /// People who are asked the same.
    pub quorum: u8,
    /// Who asks.
    pub person: Person,
    /// RefusalKind.
    pub words: String,
}

/// One thing that came from a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeopleInput {
    /// A question from outside.
    Ask(Box<Ask>),
    /// Somebody works on a question.
    Lease {
        /// Which.
        question: u64,
        /// Who.
        person: Person,
    },
    /// An answer.
    Answer {
        /// To which question.
        question: u64,
        /// Under which lease.
        generation: u32,
        /// Whose.
        person: Person,
        /// What was answered, as CBOR.
        answer: Vec<u8>,
    },
    /// Somebody skips a question.
    Skip {
        /// Which.
        question: u64,
        /// Under which lease.
        generation: u32,
        /// Who.
        person: Person,
        /// RefusalKind.
        reason: Skip,
    },
    /// A question is given back, or its lease has run out.
    Release {
        /// Which.
        question: u64,
        /// Which lease.
        generation: u32,
        /// The lease has run out.
        expired: bool,
    },
    /// An answer is taken back.
    Undo {
        /// The input with which it was given.
        answer: u64,
        /// Who takes it back.
        person: Person,
    },
    /// The owner sets the control.
    Control {
        /// As it is from now on.
        control: Box<Control>,
        /// Who.
        person: Person,
    },
}

impl PeopleInput {
    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            PeopleInput::Ask(ask) => {
                writer.u8(24);
                writer.u8(ask.kind as u8);
                writer.u16(ask.world);
                writer.u64(ask.target);
                writer.u8(ask.worlds.len() as u8);
                ask.worlds.iter().for_each(|world| writer.u16(*world));
                writer.u8(ask.priority as u8);
                writer.u64(ask.patience);
                writer.u8(ask.quorum);
                writer.u32(ask.person);
                writer.text(&ask.words);
            }
            PeopleInput::Lease { question, person } => {
                writer.u8(25);
                writer.u64(*question);
                writer.u32(*person);
            }
            PeopleInput::Answer { question, generation, person, answer } => {
                writer.u8(26);
                writer.u64(*question);
                writer.u32(*generation);
                writer.u32(*person);
                writer.bytes(answer);
            }
            PeopleInput::Skip { question, generation, person, reason } => {
                writer.u8(27);
                writer.u64(*question);
                writer.u32(*generation);
                writer.u32(*person);
                writer.u8(*reason as u8);
            }
            PeopleInput::Release { question, generation, expired } => {
                writer.u8(28);
                writer.u64(*question);
                writer.u32(*generation);
                writer.bool(*expired);
            }
            PeopleInput::Undo { answer, person } => {
                writer.u8(29);
                writer.u64(*answer);
                writer.u32(*person);
            }
            PeopleInput::Control { control, person } => {
                writer.u8(30);
                writer.u32(*person);
                control.encode(writer);
            }
        }
    }

    /// Reads what follows the number of its kind.
    pub fn decode(kind: u8, reader: &mut Reader<'_>) -> Result<PeopleInput, DecodeError> {
        let unknown = reader.error("a people's input of unknown kind");
        Ok(match kind {
            24 => {
                let malformed = reader.error("a question that nobody can ask");
                let (kind, world, target) = (QuestionKind::decode(reader)?, reader.u16()?, reader.u64()?);
                let count = usize::from(reader.u8()?);
                if RANKED_MAX < count {
                    return Err(malformed);
                }
                let worlds = (0..count).map(|_| reader.u16()).collect::<Result<_, _>>()?;
                let (priority, patience) = (Priority::decode(reader)?, reader.u64()?);
                let (quorum, person) = (reader.u8()?, reader.u32()?);
                let words = reader.text()?.to_string();
                if !(1..=QUORUM_MAX).contains(&quorum) || WORDS_BYTES_MAX < words.len() || 1 << 40 < patience
                {
                    return Err(malformed);
                }
                PeopleInput::Ask(Box::new(Ask {
                    kind,
                    world,
                    target,
                    worlds,
                    priority,
                    patience,
                    quorum,
                    person,
                    words,
                }))
            }
            25 => PeopleInput::Lease { question: reader.u64()?, person: reader.u32()? },
            26 => {
                let long = reader.error("an answer that is too long");
                let (question, generation, person) = (reader.u64()?, reader.u32()?, reader.u32()?);
                let answer = reader.bytes()?.to_vec();
                if ANSWER_BYTES_MAX < answer.len() {
                    return Err(long);
                }
                PeopleInput::Answer { question, generation, person, answer }
            }
            27 => PeopleInput::Skip {
                question: reader.u64()?,
                generation: reader.u32()?,
                person: reader.u32()?,
                reason: Skip::decode(reader)?,
            },
            28 => PeopleInput::Release {
                question: reader.u64()?,
                generation: reader.u32()?,
                expired: reader.bool()?,
            },
            29 => PeopleInput::Undo { answer: reader.u64()?, person: reader.u32()? },
            30 => {
                let person = reader.u32()?;
                PeopleInput::Control { control: Box::new(Control::decode(reader)?), person }
            }
            _ => return Err(unknown),
        })
    }

    /// One of each kind, for tests.
    #[cfg(test)]
    pub(crate) fn examples() -> Vec<PeopleInput> {
        vec![
            PeopleInput::Ask(Box::new(Ask {
                kind: QuestionKind::RankTemplates,
                world: 1,
                target: 2,
                worlds: vec![1, 2],
                priority: Priority::High,
                patience: 1_000,
                quorum: 3,
                person: 9,
                words: "why".to_string(),
            })),
            PeopleInput::Lease { question: 1, person: 9 },
            PeopleInput::Answer { question: 1, generation: 1, person: 9, answer: vec![0xa0] },
            PeopleInput::Skip { question: 1, generation: 2, person: 9, reason: Skip::Declined },
            PeopleInput::Release { question: 1, generation: 3, expired: true },
            PeopleInput::Undo { answer: 7, person: 9 },
            PeopleInput::Control { control: Box::default(), person: 9 },
        ]
    }
}
