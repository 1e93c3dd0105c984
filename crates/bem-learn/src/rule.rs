//! Every choice rule behind one interface, picked by configuration.
//!
//! The fast path talks to [`Bucket`] itself; this is for callers that let the configuration pick the rule, and
//! for the laboratory. Clauses: VM-9, VM-10.

use crate::bucket::Bucket;
use crate::change::Change;
use crate::index::{IndexRule, Parameters};
use crate::loss::Loss;
use crate::softmax::{self, Temperature};
use crate::tsallis_inf::{Chance, TsallisInf};
use bem_base::prng::Prng;

/// Anything that chooses arms and learns from their losses.
pub trait Player {
    /// The arm to play now.
    fn choose(&mut self) -> usize;
    /// Books the loss of that arm; says if the rule took it for a change of the world and forgot its past.
    fn learn(&mut self, arm: usize, loss: Loss) -> Option<Change>;
}

/// Which rule chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// The arm with the lowest index; the parameters name the formula.
    Lowest(IndexRule),
    /// A draw by softmax over the UCB-V indices.
    Softmax(Temperature),
    /// A draw that holds against adversaries.
    TsallisInf,
}

impl RuleKind {
    /// What the machine uses unless told otherwise.
    pub const DEFAULT: RuleKind = RuleKind::Lowest(IndexRule::UcbV);
}

/// One rule with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Index rules, softmax included, share the bucket.
    Index {
        /// Statistics and cached indices.
        bucket: Box<Bucket>,
        /// What all buckets share.
        parameters: Parameters,
        /// Draws instead of taking the lowest, with this temperature and stream.
        softmax: Option<(Temperature, Prng)>,
    },
    /// Tsallis-INF has a state of its own.
    TsallisInf {
        /// Importance-weighted sums.
        state: Box<TsallisInf>,
        /// The stream that arms are drawn from.
        prng: Prng,
        /// The chance of the arm drawn last.
        chance: Chance,
    },
}

impl Rule {
    /// A fresh rule over the live arms; `prng` is used by the rules that draw.
    pub fn new(kind: RuleKind, parameters: Parameters, live: u16, prng: Prng) -> Rule {
        let index = |formula, softmax| {
            let parameters = Parameters { rule: formula, ..parameters };
            Rule::Index { bucket: Box::new(Bucket::new(&parameters, live)), parameters, softmax }
        };
        match kind {
            RuleKind::Lowest(formula) => index(formula, None),
            RuleKind::Softmax(temperature) => index(IndexRule::UcbV, Some((temperature, prng))),
            RuleKind::TsallisInf => {
                Rule::TsallisInf { state: Box::new(TsallisInf::new(live)), prng, chance: Chance::CERTAIN }
            }
        }
    }
}

impl Player for Rule {
    #[inline]
    fn choose(&mut self) -> usize {
        match self {
            Rule::Index { bucket, softmax: None, .. } => bucket.choose(),
            Rule::Index { bucket, softmax: Some((temperature, prng)), .. } => {
                softmax::choose(bucket, *temperature, u16::MAX, prng)
            }
            Rule::TsallisInf { state, prng, chance } => {
                let (arm, drawn) = state.draw(u16::MAX, prng);
                *chance = drawn;
                arm
            }
        }
    }

    #[inline]
    fn learn(&mut self, arm: usize, loss: Loss) -> Option<Change> {
        match self {
            Rule::Index { bucket, parameters, .. } => bucket.update(parameters, arm, loss),
            Rule::TsallisInf { state, chance, .. } => {
                state.update(arm, loss, *chance);
                None
            }
        }
    }
}
