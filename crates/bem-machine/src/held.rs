//! What acts when nothing is explored: a part of the structure, moved by patches alone.
//!
//! A family that stands for a world holds plain actions, one for every bucket, or an expert of its pool. Where nothing
//! tells contexts apart and episodes are long, plain actions may adapt within an episode by a rule that is held too;
//! the statistics of such a rule end with the episode. Must not know how anything was found. Clauses: VM-9, VM-16;
//! decisions D-4, D-41, D-42.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_learn::bucket::Bucket;
use bem_learn::index::{ChangeParameters, Parameters};
use bem_learn::loss::PayoffRange;
use bem_learn::switching::{Levels, Switching};

/// An episode that gives every action this many turns is long enough to adapt in.
const TURNS_MIN: u64 = 64;

/// What acts when nothing is explored: an expert of the pool for whole episodes, or else the boot expert ACTION with one
/// operand for every bucket. The plain actions stay while an expert is held, so that they can act again.
///
/// Invariant, kept by the family: as many actions as buckets; none in a family without plain actions, whose pool acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The slot of the expert that acts, if one does.
    pub member: Option<u8>,
    /// The plain action of every bucket.
    #[doc(alias = "ACTION")]
    pub actions: Vec<u16>,
    /// How plain actions adapt within an episode.
    pub rule: Adaptation,
}

/// How plain actions adapt within an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adaptation {
    /// They do not.
    #[default]
    Fixed,
    /// By the index rule with change detection, over all actions.
    Index,
    /// By the rule for worlds whose best action changes, at these levels.
    Switching(Levels),
}

/// The index rule with its change detector.
///
/// Within one episode there is less time to explore than in a whole run, so that the weight is the lowest that is safe
/// (D-3) and the alarm comes a little earlier; measured on four arms, gap 0.2, segments of 16,000 steps.
const PARAMETERS: Parameters = Parameters {
    exploration: Fixed::from_ratio(1, 4),
    change: Some(ChangeParameters { drift: Fixed::from_ratio(1, 20), threshold: Fixed::from_int(24) }),
    ..Parameters::DEFAULT
};

/// Whether episodes of such worlds are long enough to adapt in.
pub fn has_time_to_adapt(shape: &Shape) -> bool {
    TURNS_MIN <= u64::from(shape.horizon) / u64::from(shape.actions.max(1))
}

impl Adaptation {
    /// The rule that a world of this shape begins with.
    pub fn at_boot(shape: &Shape) -> Adaptation {
        let adapts = has_time_to_adapt(shape) && usize::from(shape.actions) <= ARMS_MAX;
        if adapts { Adaptation::Index } else { Adaptation::Fixed }
    }

    /// The state of the rule at the start of an episode; nothing where nothing adapts.
    pub fn begin(&self, shape: &Shape) -> Option<Adapting> {
        let (low, high) = (i64::from(shape.reward_min), i64::from(shape.reward_max));
        let range = PayoffRange::new(low, high.max(low + 1)).ok()?;
        let statistics = match self {
            Adaptation::Fixed => return None,
            Adaptation::Index => {
                let live = u16::MAX >> (ARMS_MAX as u16 - shape.actions.min(ARMS_MAX as u16));
                RuleState::Index(Box::new(Bucket::new(&PARAMETERS, live)))
            }
            Adaptation::Switching(levels) => {
                RuleState::Switching(Switching::new(*levels, usize::from(shape.actions)))
            }
        };
        Some(Adapting { range, statistics })
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Adaptation::Fixed => writer.u8(0),
            Adaptation::Index => writer.u8(1),
            Adaptation::Switching(Levels { best, other, lead_max }) => {
                writer.u8(2);
                [best, other, lead_max].into_iter().for_each(|level| writer.i64(level.to_raw()));
            }
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Adaptation, DecodeError> {
        let unknown = reader.error("a rule of adaptation that there is not");
        Ok(match reader.u8()? {
            0 => Adaptation::Fixed,
            1 => Adaptation::Index,
            2 => {
                let mut level = || reader.i64().map(Fixed::from_raw);
                let levels = Levels { best: level()?, other: level()?, lead_max: level()? };
                let inside = |level: Fixed| Fixed::ZERO < level && level < Fixed::ONE;
                let bounded = Fixed::ZERO <= levels.lead_max && levels.lead_max <= Fixed::from_int(64);
                if !inside(levels.best) || !inside(levels.other) || levels.other <= levels.best || !bounded {
                    return Err(unknown);
                }
                Adaptation::Switching(levels)
            }
            _ => return Err(unknown),
        })
    }
}

/// Statistics of the present episode.
#[derive(Clone, Debug)]
pub struct Adapting {
    range: PayoffRange,
    statistics: RuleState,
}

/// What a bucket of adapting actions has learned within the episode, by the rule it follows.
#[derive(Clone, Debug)]
enum RuleState {
    Index(Box<Bucket>),
    Switching(Switching),
}

impl Adapting {
    /// The action to take now.
    #[inline]
    pub fn choose(&self) -> u16 {
        match &self.statistics {
            RuleState::Index(bucket) => bucket.choose() as u16,
            RuleState::Switching(rule) => rule.choose() as u16,
        }
    }

    /// What an action brought.
    #[inline]
    pub fn see(&mut self, action: u16, reward: i32) {
        let loss = self.range.loss(i64::from(reward));
        match &mut self.statistics {
            RuleState::Index(bucket) => {
                bucket.update(&PARAMETERS, usize::from(action), loss);
            }
            RuleState::Switching(rule) => rule.update(usize::from(action), loss),
        }
    }
}

impl Held {
    /// The pool itself acts, step by step: families without plain actions.
    pub const POOL: Held = Held { member: None, actions: Vec::new(), rule: Adaptation::Fixed };

    /// What a world of this shape begins with: the first action everywhere.
    pub fn at_boot(shape: &Shape) -> Held {
        Held { member: None, actions: vec![0], rule: Adaptation::at_boot(shape) }
    }

    /// The slot of the expert that acts, if one does.
    pub fn member(&self) -> Option<usize> {
        self.member.map(usize::from)
    }

    /// The rule by which what acts adapts within an episode.
    pub fn acting_rule(&self) -> Adaptation {
        if self.member.is_some() { Adaptation::Fixed } else { self.rule }
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u8(self.member.unwrap_or(u8::MAX));
        self.rule.encode(writer);
        writer.length(self.actions.len());
        self.actions.iter().for_each(|action| writer.u16(*action));
    }

    /// Reads canonical bytes back; whether it fits a family is for the family to say.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Held, DecodeError> {
        let member = Some(reader.u8()?).filter(|slot| *slot != u8::MAX);
        let rule = Adaptation::decode(reader)?;
        let count = reader.length(2)?;
        let actions = (0..count).map(|_| reader.u16()).collect::<Result<_, DecodeError>>()?;
        Ok(Held { member, actions, rule })
    }
}
