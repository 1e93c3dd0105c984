//! Whose turn an episode is: who proposes its actions, and how often they are drawn instead.
//!
//! The owner of the machine says whose turn it is when an episode begins; the machine chooses every action of it. Clauses:
//! VM-9, VM-13; decisions D-41 to D-43.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Bits;
use bem_base::limits::ACTIONS_MAX;
use bem_learn::tsallis_inf::Chance;

/// Who proposes the actions of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The index over what is eligible: plain actions where these are held, else the expert that is held.
    Index,
    /// What is held.
    Held,
    /// Plain actions as they are held, whether an expert is held above them or not.
    Plain,
    /// The expert in this slot.
    Member(u8),
    /// The circuit in the trial seat.
    Seat,
    /// The plan that the owner lends for the episode.
    Plan,
    /// The baseline that the owner lends.
    Baseline,
}

impl Actor {
    /// Whether the owner lends it, so that it stands in no slot.
    pub const fn is_lent(self) -> bool {
        matches!(self, Actor::Plan | Actor::Baseline)
    }
}

/// How often an action is drawn with equal chance instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// Never, unless the actor has nothing to propose.
    Never,
    /// At every step.
    Always,
    /// At one step in this many, by chance; at least two.
    OneIn(u8),
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Who proposes.
    pub actor: Actor,
    /// How often an action is drawn instead.
    pub drawn: Drawn,
}

impl Turn {
    /// The index chooses.
    pub const INDEX: Turn = Turn { actor: Actor::Index, drawn: Drawn::Never };
    /// What is held acts.
    pub const HELD: Turn = Turn { actor: Actor::Held, drawn: Drawn::Never };
    /// Every action is drawn.
    pub const DRAW: Turn = Turn { actor: Actor::Held, drawn: Drawn::Always };
    /// What is held acts, and one action in four is drawn.
    pub const PERTURBED: Turn = Turn { actor: Actor::Held, drawn: Drawn::OneIn(4) };
    /// Plain actions act as they are held, whether an expert is held above them or not.
    pub const PLAIN: Turn = Turn { actor: Actor::Plain, drawn: Drawn::Never };
    /// The circuit in the trial seat acts.
    pub const SEAT: Turn = Turn { actor: Actor::Seat, drawn: Drawn::Never };
    /// The plan acts, and one action in sixteen is drawn.
    pub const PLAN: Turn = Turn { actor: Actor::Plan, drawn: Drawn::OneIn(16) };

    /// The plan acts, and nothing is drawn.
    pub const STEADY: Turn = Turn { actor: Actor::Plan, drawn: Drawn::Never };

    /// The plan acts where people said something, and one action in 255 is drawn: fewer than in any other turn of a plan.
    pub const ADVISED: Turn = Turn { actor: Actor::Plan, drawn: Drawn::OneIn(u8::MAX) };

    /// The baseline that the owner lends acts, and nothing is drawn.
    pub const BASELINE: Turn = Turn { actor: Actor::Baseline, drawn: Drawn::Never };

    /// The expert in this slot acts.
    pub const fn member(slot: u8) -> Turn {
        Turn { actor: Actor::Member(slot), drawn: Drawn::Never }
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        let (actor, slot) = match self.actor {
            Actor::Index => (0, 0),
            Actor::Held => (1, 0),
            Actor::Member(slot) => (2, slot),
            Actor::Seat => (3, 0),
            Actor::Plan => (4, 0),
            Actor::Plain => (5, 0),
            Actor::Baseline => (6, 0),
        };
        let one_in = match self.drawn {
            Drawn::Never => 0,
            Drawn::Always => 1,
            Drawn::OneIn(count) => count,
        };
        [actor, slot, one_in].into_iter().for_each(|byte| writer.u8(byte));
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Turn, DecodeError> {
        let unknown = reader.error("a turn that there is not");
        let actor = match (reader.u8()?, reader.u8()?) {
            (0, 0) => Actor::Index,
            (1, 0) => Actor::Held,
            (2, slot) => Actor::Member(slot),
            (3, 0) => Actor::Seat,
            (4, 0) => Actor::Plan,
            (5, 0) => Actor::Plain,
            (6, 0) => Actor::Baseline,
            _ => return Err(unknown),
        };
        let drawn = match reader.u8()? {
            0 => Drawn::Never,
            1 => Drawn::Always,
            count => Drawn::OneIn(count),
        };
        Ok(Turn { actor, drawn })
    }
}

/// How chance took part in one action, in two bytes. Chances of rules that weigh are kept in parts of 2^15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Odds(u16);

/// The mark of a chance that a rule gave.
const WEIGHED: u16 = 1 << 15;
const _: () = assert!(ACTIONS_MAX < WEIGHED as usize);

impl Odds {
    /// It was not drawn.
    pub const CERTAIN: Odds = Odds(0);

    /// It was drawn with equal chance from so many.
    pub fn equal(count: u16) -> Odds {
        Odds(count.min(WEIGHED - 1))
    }

    /// It was drawn by a rule that gave it this chance.
    pub fn weighed(chance: Chance) -> Odds {
        Odds(WEIGHED | ((chance.to_raw() >> 17) as u16).max(1))
    }

    /// How many actions it was drawn from, if it was drawn with equal chance.
    #[inline]
    pub fn drawn_from(self) -> Option<u16> {
        (0 < self.0 && self.0 < WEIGHED).then_some(self.0)
    }

    /// The chance that it had, if it was drawn.
    pub fn chance(self) -> Option<Chance> {
        match self.0 {
            0 => None,
            count if count < WEIGHED => Some(Chance::one_of(count)),
            weighed => Some(Chance::from_raw(u32::from(weighed & !WEIGHED) << 17)),
        }
    }

    /// The two bytes.
    pub fn to_raw(self) -> u16 {
        self.0
    }

    /// From two bytes, in a world of so many actions.
    pub fn from_raw(raw: u16, actions: u16) -> Option<Odds> {
        (raw <= actions || WEIGHED < raw).then_some(Odds(raw))
    }
}

/// A table that proposes actions and stands in no slot: what the owner lends for one episode.
pub trait Plan {
    /// The action that it proposes; nothing where it knows none.
    fn advise(&self, observation: &Bits) -> Option<u16>;
}

/// Nobody is lent.
impl Plan for () {
    fn advise(&self, _: &Bits) -> Option<u16> {
        None
    }
}

/// Members in records: up to fifteen the slots of the pool, then these.
pub mod member {
    /// A plain action, chosen by the index or held.
    pub const ACTION: u8 = 16;
    /// A plain action, drawn with equal chance.
    pub const DRAWN: u8 = 17;
    /// The circuit in the trial seat.
    pub const SEAT: u8 = 18;
    /// The plan of the episode.
    pub const PLAN: u8 = 19;
}
