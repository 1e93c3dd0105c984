//! What an answer changed: every number before and after, for the ledger, for people, and for taking it back.
//!
//! Must not know how a change is made. Clauses: HUM-11; decisions D-29, D-76.

use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_learn::wide::Advice;
use bem_people::control::Control;
use bem_people::kinds::{Decision, QuestionKind};
use bem_people::table::Person;

/// One number of the machine that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// What it is.
    pub what: What,
    /// In which world; zero where it is about none.
    pub world: u16,
    /// Which context, or which field of the control.
    pub place: u32,
    /// Which action.
    pub action: u16,
    /// Before, raw `Fixed` unless it is a count.
    pub before: i64,
    /// After.
    pub after: i64,
}

macro_rules! whats {
    ($($(#[$doc:meta])* $variant:ident = $number:literal $name:literal),+ $(,)?) => {
        /// Which number of the machine it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum What { $($(#[$doc])* $variant = $number),+ }

        impl What {
            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(What::$variant => $name),+ }
            }

            fn from_number(number: u8) -> Option<What> {
                match number { $($number => Some(What::$variant),)+ _ => None }
            }
        }
    };
}

whats! {
    /// Visits that people gave an action.
    Visits = 0 "visits",
    /// The sum of their losses.
    LossSum = 1 "loss_sum",
    /// The sum of their squares.
    LossSquares = 2 "loss_sq_sum",
    /// The optimistic loss of an action, by which it is chosen.
    Index = 3 "index",
    /// The action that the index chooses.
    Choice = 4 "choice",
    /// The prior of an action.
    Prior = 5 "prior",
    /// The return that an episode counts for.
    Return = 6 "return",
    /// Whether an episode is learned from.
    Keep = 7 "keep",
    /// The prior of a world: what is learned first.
    Template = 8 "template_prior",
    /// The policy that acts, by the first bytes of its digest.
    Policy = 9 "policy",
    /// The score of a patch.
    Score = 10 "pox_score",
    /// A field of the control.
    Control = 11 "control",
    /// Whether a template of the machine's own is learned.
    Learned = 12 "learned",
}

impl Change {
    fn encode(&self, writer: &mut Writer) {
        writer.u8(self.what as u8);
        writer.u16(self.world);
        writer.u32(self.place);
        writer.u16(self.action);
        writer.i64(self.before);
        writer.i64(self.after);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Change, DecodeError> {
        let unknown = reader.error("a change of something unknown");
        let what = What::from_number(reader.u8()?).ok_or(unknown)?;
        let (world, place, action) = (reader.u16()?, reader.u32()?, reader.u16()?);
        Ok(Change { what, world, place, action, before: reader.i64()?, after: reader.i64()? })
    }

    /// The same, from after to before.
    #[must_use]
    pub const fn reversed(self) -> Change {
        Change { before: self.after, after: self.before, ..self }
    }
}

/// Writes a list of changes, as the ledger keeps it.
pub fn encode_all(changes: &[Change]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.length(changes.len());
    changes.iter().for_each(|change| change.encode(&mut writer));
    writer.into_bytes()
}

/// Reads it back.
pub fn decode_all(bytes: &[u8]) -> Result<Vec<Change>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let changes = (0..reader.length(25)?).map(|_| Change::decode(&mut reader)).collect::<Result<_, _>>()?;
    reader.finish()?;
    Ok(changes)
}

/// What somebody said of an action where something is seen, in force until it is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The input with which it was said.
    pub answer: u64,
    /// What is seen.
    pub observation: Bits,
    /// The action.
    pub action: u16,
    /// Steps of its episode before it.
    pub time: u32,
    /// What was said.
    pub advice: Advice,
    /// Choices of the context, and the action's cached index when nobody had spoken of it there: with the last word that is
    /// taken back, and no choice in between, the index is put back. `UNKNOWN` where another label has it.
    pub before: (u64, i32),
}

/// The index of an action before anybody spoke of it is another label's to put back.
pub(crate) const UNKNOWN: (u64, i32) = (u64::MAX, 0);

impl Label {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.u64(self.answer);
        self.observation.0.iter().for_each(|word| writer.u64(*word));
        writer.u16(self.action);
        writer.u32(self.time);
        let Advice { visits, loss_sum, loss_sq_sum, prior } = self.advice;
        [visits, loss_sum, loss_sq_sum].into_iter().for_each(|sum| writer.u64(sum));
        writer.i32(prior);
        writer.u64(self.before.0);
        writer.i32(self.before.1);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Label, DecodeError> {
        let answer = reader.u64()?;
        let observation = Bits([reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?]);
        let (action, time) = (reader.u16()?, reader.u32()?);
        let (visits, loss_sum, loss_sq_sum) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let advice = Advice { visits, loss_sum, loss_sq_sum, prior: reader.i32()? };
        Ok(Label { answer, observation, action, time, advice, before: (reader.u64()?, reader.i32()?) })
    }
}

/// How an answer is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inverse {
    /// It waits for others, or changed nothing.
    Nothing,
    /// Its labels are taken out of this world.
    Labels(u16),
    /// Its labels are taken out of this world, and this episode is kept as before: place and flag; and its score is put back.
    Episode {
        /// The world.
        world: u16,
        /// The episode.
        place: u64,
        /// Whether it was learned from.
        keep: u8,
        /// What somebody had said of it, raw `Fixed`; negative for nothing.
        score: i64,
    },
    /// What was put into force in this world with it is taken back.
    Patch {
        /// The world.
        world: u16,
        /// What was decided.
        decision: Decision,
        /// About which policy in that world.
        policy: Digest,
    },
    /// What was thought of a policy in its world before: approved, rejected or neither. What is in force stays.
    Judgement {
        /// The policy in its world.
        policy: Digest,
        /// Whether it was approved; nothing if it was not judged.
        before: Option<bool>,
    },
    /// Priors of worlds are put back by these differences.
    Templates(Vec<(u16, Fixed)>),
    /// The control is put back.
    Control(Box<Control>),
}

/// An answer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The question.
    pub question: u64,
    /// Its kind.
    pub kind: QuestionKind,
    /// Who answered.
    pub person: Person,
    /// Under which lease.
    pub generation: u32,
    /// What was answered.
    pub answer: Vec<u8>,
    /// What was shown.
    pub context: Vec<u8>,
    /// What it changed.
    pub changes: Vec<Change>,
    /// How it is taken back.
    pub inverse: Inverse,
    /// It was taken back with this input; zero if it is in force.
    pub undone: u64,
}

impl Given {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.u64(self.question);
        writer.u8(self.kind as u8);
        writer.u32(self.person);
        writer.u32(self.generation);
        writer.bytes(&self.answer);
        writer.bytes(&self.context);
        writer.bytes(&encode_all(&self.changes));
        writer.u64(self.undone);
        match &self.inverse {
            Inverse::Nothing => writer.u8(0),
            Inverse::Labels(world) => {
                writer.u8(1);
                writer.u16(*world);
            }
            Inverse::Episode { world, place, keep, score } => {
                writer.u8(2);
                writer.u16(*world);
                writer.u64(*place);
                writer.u8(*keep);
                writer.i64(*score);
            }
            Inverse::Patch { world, decision, policy } => {
                writer.u8(3);
                writer.u16(*world);
                writer.u8(*decision as u8);
                writer.raw(policy.as_bytes());
            }
            Inverse::Templates(priors) => {
                writer.u8(4);
                writer.length(priors.len());
                for (world, change) in priors {
                    writer.u16(*world);
                    writer.i64(change.to_raw());
                }
            }
            Inverse::Control(control) => {
                writer.u8(5);
                control.encode(writer);
            }
            Inverse::Judgement { policy, before } => {
                writer.u8(6);
                writer.raw(policy.as_bytes());
                writer.u8(before.map_or(2, u8::from));
            }
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Given, DecodeError> {
        let question = reader.u64()?;
        let (kind, person, generation) = (QuestionKind::decode(reader)?, reader.u32()?, reader.u32()?);
        let (answer, context) = (reader.bytes()?.to_vec(), reader.bytes()?.to_vec());
        let changes = decode_all(reader.bytes()?)?;
        let undone = reader.u64()?;
        let unknown = reader.error("an answer that is taken back in an unknown way");
        let inverse = match reader.u8()? {
            0 => Inverse::Nothing,
            1 => Inverse::Labels(reader.u16()?),
            2 => Inverse::Episode {
                world: reader.u16()?,
                place: reader.u64()?,
                keep: reader.u8()?,
                score: reader.i64()?,
            },
            3 => Inverse::Patch {
                world: reader.u16()?,
                decision: Decision::decode(reader)?,
                policy: Digest::decode(reader)?,
            },
            4 => {
                let count = reader.length(10)?;
                let prior = |_| Ok((reader.u16()?, Fixed::from_raw(reader.i64()?)));
                Inverse::Templates((0..count).map(prior).collect::<Result<_, DecodeError>>()?)
            }
            5 => Inverse::Control(Box::new(Control::decode(reader)?)),
            6 => {
                let policy = Digest::decode(reader)?;
                let before = match reader.u8()? {
                    2 => None,
                    before @ (0 | 1) => Some(before == 1),
                    _ => return Err(unknown),
                };
                Inverse::Judgement { policy, before }
            }
            _ => return Err(unknown),
        };
        Ok(Given { question, kind, person, generation, answer, context, changes, inverse, undone })
    }
}
