//! What every game can say about itself.
//!
//! The evaluator may ask for the optimum, the value of random play and a policy that reaches the optimum. A
//! learner is handed only the running world. Clauses: GLE-1, GLE-2, VM-15, VM-17.

use bem_base::environment::{Bits, Environment, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::lanes::LaneEnvironment;
use bem_base::prng::Prng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An expected return in milli-units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The expectation, rounded down at the 32nd fractional bit.
    pub mean: Fixed,
    /// Zero when the mean comes from a formula, dynamic programming or enumeration; else one standard error.
    pub standard_error: Fixed,
}

impl Value {
    /// A value known exactly.
    pub const fn exact(mean: Fixed) -> Value {
        Value { mean, standard_error: Fixed::ZERO }
    }
}

/// How many steps an episode takes, in expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Chance alone decides; this is the mean.
    Drawn(Fixed),
    /// The actions have a say.
    ByPolicy,
}

/// Plays with knowledge that a learner lacks; used by the evaluator and the conformance kit only.
pub trait Oracle {
    /// Called at the start of an episode, with its seed.
    fn begin(&mut self, seed: u64);
    /// The best action for what is seen now. Asking changes nothing: another action may be taken.
    fn act(&mut self, observation: &Bits) -> u16;
    /// Whether it makes a difference to best play which action is taken now, as far as the game can tell.
    fn matters(&mut self) -> bool {
        true
    }
    /// The action that was taken and what it brought.
    fn see(&mut self, action: u16, outcome: &Outcome);
}

/// One game with all hidden choices made: the same for every episode, whatever its seed.
pub trait Game: Send + Sync {
    /// What may be known before playing.
    fn shape(&self) -> &Shape;
    /// A new running world, to be reset before its first step.
    fn start(&self) -> Box<dyn Environment + Send>;
    /// 256 running worlds side by side, for games that have a bit-sliced form.
    fn start_sliced(&self) -> Option<Box<dyn LaneEnvironment + Send>> {
        None
    }
    /// The expected return of the best policy.
    fn optimum(&self) -> Value;
    /// The expected return of choosing every action with equal chance.
    fn random(&self) -> Value;
    /// The expected length of an episode.
    fn steps(&self) -> Steps;
    /// A policy that reaches the optimum.
    fn oracle(&self) -> Box<dyn Oracle>;
    /// The game as an evaluator may play it, where a learner plays it on harder terms: seeds are kept, rewards come at once.
    fn without_terms(&self) -> Option<&dyn Game> {
        None
    }
}

/// The values a parameter may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Whole numbers from `min` to `max`.
    Number {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
        /// What is taken when nothing is said.
        default: i64,
    },
    /// One of these words; the first is the default.
    Choice {
        /// All of them.
        words: &'static [&'static str],
    },
}

/// One parameter of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it means, in one short sentence.
    pub about: &'static str,
    /// What it may be.
    pub range: Range,
}

/// A checked value of one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// A number within its range.
    Number(i64),
    /// The index of the chosen word.
    Choice(usize),
}

/// Checked parameters: every parameter of the family has a value within its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<&'static str, Setting>,
}

impl Settings {
    /// Checks texts such as `n = 8` against the family's parameters; what is not named takes its default.
    pub fn parse(parameters: &[Parameter], texts: &BTreeMap<String, String>) -> Result<Settings, GameError> {
        for name in texts.keys() {
            if !parameters.iter().any(|parameter| parameter.name == name) {
                let known = parameters.iter().map(|parameter| parameter.name).collect::<Vec<_>>().join(", ");
                return Err(GameError::UnknownParameter { name: name.clone(), known });
            }
        }
        let mut values = BTreeMap::new();
        for parameter in parameters {
            let text = texts.get(parameter.name).map(String::as_str);
            values.insert(parameter.name, parameter.parse(text)?);
        }
        Ok(Settings { values })
    }

    /// Every parameter at its default.
    pub fn default_of(parameters: &[Parameter]) -> Settings {
        Settings {
            values: parameters.iter().map(|parameter| (parameter.name, parameter.default())).collect(),
        }
    }

    /// Every parameter drawn evenly from its range. Some families refuse some combinations.
    pub fn draw(parameters: &[Parameter], prng: &mut Prng) -> Settings {
        let mut drawn = |parameter: &Parameter| match parameter.range {
            Range::Number { min, max, .. } => Setting::Number(prng.between(min, max)),
            Range::Choice { words } => Setting::Choice(prng.below(words.len() as u64) as usize),
        };
        Settings { values: parameters.iter().map(|parameter| (parameter.name, drawn(parameter))).collect() }
    }

    /// The same settings with one value changed; the caller keeps it within its range.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Setting) -> Settings {
        let known = self.values.insert(name, value).is_some();
        assert!(known, "parameter {name} is not one of this family");
        self
    }

    /// The number called `name`; asking for a parameter the family does not have is a bug.
    pub fn number(&self, name: &str) -> i64 {
        match self.values.get(name) {
            Some(Setting::Number(value)) => *value,
            other => panic!("parameter {name} is no number of this family: {other:?}"),
        }
    }

    /// The index of the word chosen for `name`.
    pub fn choice(&self, name: &str) -> usize {
        match self.values.get(name) {
            Some(Setting::Choice(index)) => *index,
            other => panic!("parameter {name} is no choice of this family: {other:?}"),
        }
    }

    /// All names and values, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Setting)> + '_ {
        self.values.iter().map(|(name, setting)| (*name, *setting))
    }
}

impl Parameter {
    fn default(&self) -> Setting {
        match self.range {
            Range::Number { default, .. } => Setting::Number(default),
            Range::Choice { .. } => Setting::Choice(0),
        }
    }

    fn parse(&self, text: Option<&str>) -> Result<Setting, GameError> {
        let refuse = |text: &str, allowed: String| {
            Err(GameError::BadParameter { name: self.name, value: text.to_string(), allowed })
        };
        match (self.range, text) {
            (_, None) => Ok(self.default()),
            (Range::Number { min, max, .. }, Some(text)) => match text.parse::<i64>() {
                Ok(value) if (min..=max).contains(&value) => Ok(Setting::Number(value)),
                _ => refuse(text, format!("a whole number from {min} to {max}")),
            },
            (Range::Choice { words }, Some(text)) => match words.iter().position(|word| *word == text) {
                Some(index) => Ok(Setting::Choice(index)),
                None => refuse(text, format!("one of {}", words.join(", "))),
            },
        }
    }
}

/// Why a game cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GameError {
    /// No family has this name.
    #[error("there is no family called {name:?}; known are {known}")]
    UnknownFamily {
        /// The name asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// The family has no such parameter.
    #[error("there is no parameter called {name:?}; known are {known}")]
    UnknownParameter {
        /// The name asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// The value is not allowed.
    #[error("parameter {name} cannot be {value:?}: it must be {allowed}")]
    BadParameter {
        /// Which parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// What may be given.
        allowed: String,
    },
    /// The text of a composition cannot be read.
    #[error("column {column}: {reason}")]
    Syntax {
        /// Where, counted from one.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// Values that are fine alone do not go together, or the game would break a bound of the machine.
    #[error("{0}")]
    Impossible(String),
}

/// A kind of game.
pub trait Family: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// What one does in it, in one sentence.
    fn about(&self) -> &'static str;
    /// Its own parameters; `noise` and `scramble` are added for every family by the catalog.
    fn parameters(&self) -> &'static [Parameter];
    /// The game with these parameters whose hidden choices come from `instance_seed`.
    fn build(&self, settings: &Settings, instance_seed: u64) -> Result<Arc<dyn Game>, GameError>;
}
