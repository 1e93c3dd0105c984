//! Everything that comes in, with one spelling each: new worlds, decisions asked, rewards, rounds of learning.
//!
//! Tools and the pipeline will add kinds of their own, people have theirs in [`crate::people::input`]; numbers are never used twice. Must not know what an input does.
//! Clauses: LOG-1, LOG-5.

use crate::limits::{
    EPISODE_BYTES_MAX, EXPIRE_AFTER_MAX, FORBIDDEN_MAX, HORIZON_MAX, NAME_BYTES_MAX, NOTE_BYTES_MAX,
    REWARD_MAX,
};
use crate::offers::Proposed;
use crate::people::input::{PeopleInput, TAGS};
use crate::tools::{ToolAsk, ToolDone};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Field, Forbidden, Shape};
use bem_base::fixed::Fixed;
use bem_base::forbidden::Unkept;
use bem_base::limits::OBSERVATION_BITS_MAX;
use bem_engine::serving::{FLOOR_MAX, is_floor};
use bem_engine::start::Start;

/// The place of a world among all that there ever were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorldIndex(pub u16);

/// What a world is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldSpec {
    /// Its name: letters, digits, dot, dash and underscore.
    pub name: String,
    /// Widths, counts and bounds.
    pub shape: Shape,
    /// The chance that every allowed action has at least.
    pub min_propensity: Fixed,
    /// Decisions of this world after which an outcome that has not come is lost.
    pub expire_after: u32,
    /// What must never be done, in rising order.
    pub forbidden: Vec<Forbidden>,
    /// What the owner says about features, for whoever encodes them, and the rules over them; empty where observations are bits.
    pub note: String,
    /// What must not be fallen below while it learns, if anything.
    pub floor: Option<FloorSpec>,
}

/// How the note of a world begins that the machine makes for itself; one that is made over HTTP cannot say it.
pub const OWN_NOTE: &str = "ladder ";

/// An action that is known to do, and how far below its return the service may fall while it learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloorSpec {
    /// The action.
    pub action: u16,
    /// Per mille of its return that may be risked.
    pub risk: u16,
}

/// Why a world cannot be: the field, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SpecError {
    /// The field that is wrong.
    pub field: &'static str,
    /// What is allowed.
    pub reason: String,
}

/// Whether a world may be called this.
pub fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_letter) && !name.starts_with('.')
}

impl WorldSpec {
    /// Whether the machine has made it for itself.
    pub fn is_own(&self) -> bool {
        self.note.starts_with(OWN_NOTE)
    }

    /// Refuses what no machine can serve.
    pub fn check(&self) -> Result<(), SpecError> {
        let Shape { observation_bits, actions, horizon, reward_min, reward_max, fields, .. } = &self.shape;
        let refuse = |field, reason: String| Err(SpecError { field, reason });
        if !is_name(&self.name) {
            let allowed = "1 to 64 letters, digits, dots, dashes and underscores, not beginning with a dot";
            return refuse("name", format!("name {:?} is not allowed: {allowed}", self.name));
        }
        if OBSERVATION_BITS_MAX < usize::from(*observation_bits) {
            return refuse(
                "obs_bits",
                format!("obs_bits {observation_bits} is out of range: 0 to {OBSERVATION_BITS_MAX}"),
            );
        }
        if !(1..=1_024).contains(actions) {
            return refuse("actions", format!("actions {actions} is out of range: 1 to 1024"));
        }
        if !(1..=HORIZON_MAX).contains(horizon) {
            return refuse("horizon", format!("horizon {horizon} is out of range: 1 to {HORIZON_MAX}"));
        }
        if reward_max < reward_min || *reward_min < -REWARD_MAX || REWARD_MAX < *reward_max {
            let allowed = format!("two whole numbers from -{REWARD_MAX} to {REWARD_MAX}, the smaller first");
            return refuse(
                "reward_range",
                format!("reward_range [{reward_min}, {reward_max}] is not allowed: {allowed}"),
            );
        }
        if !self.has_possible_returns() {
            let (low, high) = self.plain_returns();
            return refuse(
                "return_range",
                format!(
                    "return_range [{}, {}] is not allowed: two whole numbers from {low} to {high}, the smaller first; with a horizon of 1 \
                     it is the range of a reward",
                    self.shape.return_min, self.shape.return_max
                ),
            );
        }
        let mut next = 0;
        for field in fields {
            if field.width == 0 || 64 < field.width || field.low != next {
                return refuse(
                    "fields",
                    "fields must cover the bits from 0 on without gaps, 1 to 64 bits each".to_string(),
                );
            }
            next = field.low.saturating_add(field.width);
        }
        if next != *observation_bits {
            return refuse("fields", format!("fields cover {next} bits of {observation_bits}"));
        }
        let share = self.min_propensity.to_raw().saturating_mul(i64::from(*actions));
        if !is_floor(self.min_propensity) || FLOOR_MAX.to_raw() < share {
            return refuse(
                "min_propensity",
                "min_propensity must be between 0 and half of one over the actions".to_string(),
            );
        }
        if !(1..=EXPIRE_AFTER_MAX).contains(&self.expire_after) {
            return refuse(
                "expire_after",
                format!("expire_after {} is out of range: 1 to {EXPIRE_AFTER_MAX}", self.expire_after),
            );
        }
        self.check_forbidden()?;
        self.check_floor()?;
        if NOTE_BYTES_MAX < self.note.len() {
            return refuse("features", format!("features and rules take more than {NOTE_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    fn check_floor(&self) -> Result<(), SpecError> {
        let refuse = |reason: String| Err(SpecError { field: "floor", reason });
        let Some(FloorSpec { action, risk }) = self.floor else { return Ok(()) };
        if self.shape.actions <= action || 1_000 < risk {
            let last = self.shape.actions - 1;
            return refuse(format!("floor must name an action from 0 to {last} and a risk from 0 to 1"));
        }
        if self.forbidden.iter().any(|rule| rule.action == action) {
            return refuse(format!("floor names action {action}, which is forbidden somewhere"));
        }
        if Fixed::ZERO < self.min_propensity {
            return refuse(
                "floor and min_propensity exclude each other: draws would be no play of the baseline"
                    .to_string(),
            );
        }
        Ok(())
    }

    fn check_forbidden(&self) -> Result<(), SpecError> {
        let refuse = |reason: String| Err(SpecError { field: "forbidden", reason });
        if FORBIDDEN_MAX < self.forbidden.len() {
            return refuse(format!("forbidden names more than {FORBIDDEN_MAX} pairs"));
        }
        if !self.forbidden.windows(2).all(|pair| pair[0] < pair[1]) {
            return refuse("forbidden names a pair twice or out of order".to_string());
        }
        let (width, actions) = (usize::from(self.shape.observation_bits), self.shape.actions);
        let is_there = |pair: &Forbidden| pair.action < actions && pair.seen.fits(width);
        if !self.forbidden.iter().all(is_there) {
            return refuse("forbidden names an action or an observation that there is not".to_string());
        }
        match Forbidden::with_instead(&self.forbidden, (width, actions), FORBIDDEN_MAX) {
            Ok(_) => Ok(()),
            Err(Unkept::NothingLeft(seen)) => {
                refuse(format!("forbidden leaves no action for some observation: {}", seen.to_text(width)))
            }
            Err(Unkept::TooMany) => {
                refuse(format!("forbidden takes more than {FORBIDDEN_MAX} patterns of what is seen"))
            }
        }
    }

    fn encode(&self, writer: &mut Writer) {
        writer.text(&self.name);
        self.shape.encode(writer);
        writer.i64(self.min_propensity.to_raw());
        writer.u32(self.expire_after);
        writer.length(self.forbidden.len());
        self.forbidden.iter().for_each(|pair| pair.encode(writer));
        writer.text(&self.note);
        if let Some(FloorSpec { action, risk }) = self.floor {
            writer.u16(action);
            writer.u16(risk);
        }
    }

    fn decode(has_floor: bool, reader: &mut Reader<'_>) -> Result<WorldSpec, DecodeError> {
        let refused = reader.error("a world that cannot be served");
        let name = reader.text()?.to_string();
        let shape = Shape::decode(reader)?;
        let (min_propensity, expire_after) = (Fixed::from_raw(reader.i64()?), reader.u32()?);
        let forbidden = (0..reader.length(Forbidden::BYTES)?)
            .map(|_| Forbidden::decode(reader))
            .collect::<Result<_, DecodeError>>()?;
        let note = reader.text()?.to_string();
        let floor = match has_floor {
            true => Some(FloorSpec { action: reader.u16()?, risk: reader.u16()? }),
            false => None,
        };
        let spec = WorldSpec { name, shape, min_propensity, expire_after, forbidden, note, floor };
        if spec.check().is_ok() { Ok(spec) } else { Err(refused) }
    }

    /// What the rewards of all steps may add up to.
    fn plain_returns(&self) -> (i64, i64) {
        let Shape { horizon, reward_min, reward_max, .. } = self.shape;
        let (steps, low, high) = (i64::from(horizon), i64::from(reward_min), i64::from(reward_max));
        ((low * steps).min(low), (high * steps).max(high))
    }

    /// Returns lie within what the rewards of all steps may add up to; those of one step are its rewards.
    fn has_possible_returns(&self) -> bool {
        let Shape { horizon, return_min, return_max, .. } = self.shape;
        let (low, high) = self.plain_returns();
        match horizon {
            1 => (return_min, return_max) == (low, high),
            _ => low <= return_min && return_min <= return_max && return_max <= high,
        }
    }

    /// The shape of a world with these widths and bounds; without fields every bit stands alone.
    pub fn shape_of(
        observation_bits: u16,
        actions: u16,
        horizon: u32,
        (reward_min, reward_max): (i32, i32),
        fields: Vec<Field>,
    ) -> Shape {
        let steps = i64::from(horizon);
        let alone = || (0..observation_bits).map(|low| Field { low, width: 1 }).collect();
        let fields = if fields.is_empty() { alone() } else { fields };
        Shape {
            observation_bits,
            actions,
            horizon,
            reward_min,
            reward_max,
            return_min: (i64::from(reward_min) * steps).min(i64::from(reward_min)),
            return_max: (i64::from(reward_max) * steps).max(i64::from(reward_max)),
            fields,
        }
    }
}

/// Whether an observation has no bit beyond the width of the world.
pub fn fits(observation: &Bits, shape: &Shape) -> bool {
    (usize::from(shape.observation_bits)..OBSERVATION_BITS_MAX).all(|bit| !observation.get(bit))
}

/// One thing that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A new world.
    World(Box<WorldSpec>),
    /// A world begins with what others have learned or played; before its first decision.
    Start {
        /// Which.
        world: WorldIndex,
        /// What it begins with.
        start: Box<Start>,
    },
    /// A decision is asked for.
    Decide {
        /// In which world.
        world: WorldIndex,
        /// What is seen.
        observation: Bits,
        /// In which episode; empty in worlds of one step.
        episode: String,
    },
    /// What a decision brought.
    Reward {
        /// In which world.
        world: WorldIndex,
        /// Which decision.
        decision: u64,
        /// In milli-units.
        reward: i32,
        /// The episode is over.
        done: bool,
        /// It did something that must not happen.
        bad: bool,
    },
    /// What was seen after a decision says that its step was BAD, after its outcome came.
    Bad {
        /// In which world.
        world: WorldIndex,
        /// Which decision.
        decision: u64,
    },
    /// A world is forgotten; its history stays.
    Forget {
        /// Which.
        world: WorldIndex,
    },
    /// A round of learning begins with everything that is complete.
    Search {
        /// In which world.
        world: WorldIndex,
    },
    /// What the round brought takes effect.
    Publish {
        /// In which world.
        world: WorldIndex,
    },
    /// Something came from people.
    People(Box<PeopleInput>),
    /// A tool is asked.
    ToolAsk(Box<ToolAsk>),
    /// A request to a tool has ended.
    ToolDone(Box<ToolDone>),
    /// A model proposed machines for a world.
    Propose(Box<Proposed>),
}

impl Input {
    /// Whether entries of its own follow from it, so that a block ends with it.
    pub fn ends_block(&self) -> bool {
        !matches!(self, Input::Decide { .. } | Input::Reward { .. } | Input::Bad { .. })
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Input::World(spec) => {
                writer.u8(if spec.floor.is_some() { 6 } else { 0 });
                spec.encode(writer);
            }
            Input::Start { world, start } => {
                encode_plain(7, *world, writer);
                start.encode(writer);
            }
            Input::Decide { world, observation, episode } => {
                writer.u8(1);
                writer.u16(world.0);
                let bytes = observation.0.iter().flat_map(|word| word.to_le_bytes());
                let bytes: Vec<u8> = bytes.collect();
                let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                writer.u8(used as u8);
                writer.raw(&bytes[..used]);
                writer.u8(episode.len() as u8);
                writer.raw(episode.as_bytes());
            }
            Input::Reward { world, decision, reward, done, bad } => {
                writer.u8(2);
                writer.u16(world.0);
                writer.u64(*decision);
                writer.i32(*reward);
                writer.u8(u8::from(*done) | u8::from(*bad) << 1);
            }
            Input::Bad { world, decision } => {
                encode_plain(8, *world, writer);
                writer.u64(*decision);
            }
            Input::Forget { world } => encode_plain(3, *world, writer),
            Input::Search { world } => encode_plain(4, *world, writer),
            Input::Publish { world } => encode_plain(5, *world, writer),
            Input::People(input) => input.encode(writer),
            Input::ToolAsk(ask) => {
                writer.u8(16);
                ask.encode(writer);
            }
            Input::ToolDone(done) => {
                writer.u8(17);
                done.encode(writer);
            }
            Input::Propose(proposed) => {
                writer.u8(18);
                proposed.encode(writer);
            }
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Input, DecodeError> {
        let unknown = reader.error("an input of unknown kind");
        let kind = reader.u8()?;
        if kind == 0 || kind == 6 {
            return Ok(Input::World(Box::new(WorldSpec::decode(kind == 6, reader)?)));
        }
        if TAGS.contains(&kind) {
            return Ok(Input::People(Box::new(PeopleInput::decode(kind, reader)?)));
        }
        // Tools have the kinds from 16 to 23.
        if kind == 16 {
            return Ok(Input::ToolAsk(Box::new(ToolAsk::decode(reader)?)));
        }
        if kind == 17 {
            return Ok(Input::ToolDone(Box::new(ToolDone::decode(reader)?)));
        }
        if kind == 18 {
            return Ok(Input::Propose(Box::new(Proposed::decode(reader)?)));
        }
        let world = WorldIndex(reader.u16()?);
        Ok(match kind {
            1 => {
                let long = reader.error("an observation that is too long or ends in zeros");
                let used = usize::from(reader.u8()?);
                if 32 < used {
                    return Err(long);
                }
                let seen = reader.raw(used)?;
                if seen.last() == Some(&0) {
                    return Err(long);
                }
                let mut observation = Bits::ZERO;
                for (place, byte) in seen.iter().enumerate() {
                    observation.0[place / 8] |= u64::from(*byte) << (8 * (place % 8));
                }
                let malformed = reader.error("an episode's name that is too long or no text");
                let length = usize::from(reader.u8()?);
                let name = core::str::from_utf8(reader.raw(length)?);
                match name {
                    Ok(name) if length <= EPISODE_BYTES_MAX => {
                        Input::Decide { world, observation, episode: name.to_string() }
                    }
                    _ => return Err(malformed),
                }
            }
            2 => {
                let (decision, reward) = (reader.u64()?, reader.i32()?);
                let malformed = reader.error("unknown flags of a reward");
                let flags = reader.u8()?;
                if 3 < flags {
                    return Err(malformed);
                }
                Input::Reward { world, decision, reward, done: flags & 1 == 1, bad: flags & 2 == 2 }
            }
            3 => Input::Forget { world },
            4 => Input::Search { world },
            5 => Input::Publish { world },
            8 => Input::Bad { world, decision: reader.u64()? },
            7 => Input::Start { world, start: Box::new(Start::decode(reader)?) },
            _ => return Err(unknown),
        })
    }
}

fn encode_plain(kind: u8, world: WorldIndex, writer: &mut Writer) {
    writer.u8(kind);
    writer.u16(world.0);
}

/// Reads the inputs of a block to its end.
pub fn decode_all(bytes: &[u8]) -> Result<Vec<Input>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let mut inputs = Vec::new();
    while 0 < reader.remaining() {
        inputs.push(Input::decode(&mut reader)?);
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::environment::Pattern;
    use bem_base::prng::Prng;

    fn examples() -> Vec<Input> {
        let world = WorldIndex(3);
        let shape = WorldSpec::shape_of(10, 3, 1, (0, 1_000), Vec::new());
        let forbidden = vec![Forbidden::whole(Bits([5, 0, 0, 0]), 2)];
        let min_propensity = Fixed::from_ratio(1, 50);
        let (name, note) = ("ads".to_string(), String::new());
        let people = PeopleInput::examples().into_iter().map(|input| Input::People(Box::new(input)));
        let mut inputs = vec![
            Input::World(Box::new(WorldSpec {
                name,
                shape: shape.clone(),
                min_propensity,
                expire_after: 9,
                forbidden,
                note: note.clone(),
                floor: None,
            })),
            Input::World(Box::new(WorldSpec {
                name: "cautious".to_string(),
                shape: shape.clone(),
                min_propensity: Fixed::ZERO,
                expire_after: 9,
                forbidden: vec![Forbidden { seen: Pattern::ANY.with(3, true), action: 2 }],
                note,
                floor: Some(FloorSpec { action: 1, risk: 50 }),
            })),
            Input::Decide {
                world,
                observation: Bits([0x155, 0, 0, 1 << 63]),
                episode: "user-17".to_string(),
            },
            Input::Decide { world, observation: Bits::ZERO, episode: String::new() },
            Input::Reward { world, decision: 77, reward: -5, done: true, bad: false },
            Input::Bad { world, decision: 77 },
            Input::Forget { world },
            Input::Search { world },
            Input::Publish { world },
        ];
        inputs.extend(people);
        inputs.push(Input::Propose(Box::new(Proposed { world, request: 5, machines: machines(&shape) })));
        inputs
    }

    /// A proposal of two machines.
    fn machines(shape: &Shape) -> Vec<bem_engine::offer::Machine> {
        use bem_engine::offer::{Formula, Offer, Policy};
        let formulas = vec![Formula::constant(true), Formula::Sum { bits: vec![1, 4], inverted: false }];
        let offers = [Offer::Circuit(Policy::constant(shape.actions, 1)), Offer::Formulas(formulas)];
        offers.into_iter().filter_map(|offer| offer.machine(shape, "proposed".to_string())).collect()
    }

    #[test]
    fn inputs_come_back_and_damaged_ones_are_refused_or_are_the_one_spelling_of_others() {
        let mut writer = Writer::new();
        examples().iter().for_each(|input| input.encode(&mut writer));
        let bytes = writer.into_bytes();
        assert_eq!(decode_all(&bytes).unwrap(), examples());
        let mut prng = Prng::stream(1, "inputs");
        let mut refused = 0;
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            let place = prng.below(damaged.len() as u64) as usize;
            damaged[place] ^= 1 << prng.below(8);
            match decode_all(&damaged) {
                Err(_) => refused += 1,
                Ok(inputs) => {
                    let mut again = Writer::new();
                    inputs.iter().for_each(|input| input.encode(&mut again));
                    assert_eq!(again.as_bytes(), damaged);
                }
            }
        }
        assert!(1_000 < refused, "{refused}");
    }

    #[test]
    fn worlds_that_cannot_be_served_are_refused_by_field() {
        let Input::World(good) = examples().remove(0) else { unreachable!("the first is a world") };
        let check = |field: &str, change: &dyn Fn(&mut WorldSpec)| {
            let mut spec = (*good).clone();
            change(&mut spec);
            assert_eq!(spec.check().map_err(|error| error.field), Err(field), "{spec:?}");
        };
        assert_eq!(good.check(), Ok(()));
        check("name", &|spec| spec.name = "../etc".to_string());
        check("name", &|spec| spec.name = "<b>".to_string());
        check("obs_bits", &|spec| spec.shape.observation_bits = 257);
        check("actions", &|spec| spec.shape.actions = 0);
        check("horizon", &|spec| spec.shape.horizon = 0);
        check("reward_range", &|spec| spec.shape.reward_min = 2_000);
        check("min_propensity", &|spec| spec.min_propensity = Fixed::from_ratio(1, 5));
        check("expire_after", &|spec| spec.expire_after = 0);
        check("forbidden", &|spec| spec.forbidden[0].action = 3);
        let any = |action| Forbidden { seen: Pattern::ANY, action };
        check("forbidden", &|spec| spec.forbidden = [0, 1, 2].map(any).to_vec());
        let unseen = Forbidden { seen: Pattern::ANY.with(10, true), action: 0 };
        check("forbidden", &|spec| spec.forbidden.insert(0, unseen));
    }
}
