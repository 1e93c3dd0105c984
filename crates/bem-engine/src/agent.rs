//! The frozen machine as it is evaluated and exported: one circuit, and the rule by which it adapts within an episode.
//!
//! A frozen agent begins every episode in the same state. Clauses: VM-9, VM-16; decisions D-4, D-41.

use crate::codec::{decode_option, encode_option};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Shape};
use bem_machine::held::{Adaptation, Adapting};
use bem_synth::policy::{Player, Policy};

/// What a machine does when nothing is explored.
#[derive(Clone, Debug)]
pub struct Agent {
    policy: Policy,
    rule: Adaptation,
    shape: Option<Shape>,
}

impl Agent {
    /// A circuit that acts as it is.
    pub fn circuit(policy: Policy) -> Agent {
        Agent { policy, rule: Adaptation::Fixed, shape: None }
    }

    /// A circuit that adapts within an episode by this rule, in worlds of this shape.
    pub fn adapting(policy: Policy, rule: Adaptation, shape: &Shape) -> Agent {
        Agent { policy, rule, shape: Some(shape.clone()) }
    }

    /// The circuit; of an agent that adapts, what it would do before it has learned anything.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether it goes on learning within an episode.
    pub fn adapts(&self) -> bool {
        self.rule != Adaptation::Fixed
    }

    /// The rule by which it does.
    pub fn rule(&self) -> Adaptation {
        self.rule
    }

    /// Writes the canonical bytes.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        self.policy.encode(writer);
        self.rule.encode(writer);
        encode_option(writer, self.shape.as_ref(), Shape::encode);
    }

    /// Reads canonical bytes back.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Agent, DecodeError> {
        let (policy, rule) = (Policy::decode(reader)?, Adaptation::decode(reader)?);
        Ok(Agent { policy, rule, shape: decode_option(reader, Shape::decode)? })
    }

    fn begin(&self) -> Option<Adapting> {
        self.shape.as_ref().and_then(|shape| self.rule.begin(shape))
    }
}

/// An agent at work.
#[derive(Clone, Debug)]
pub struct Actor<'a> {
    agent: &'a Agent,
    player: Player<'a>,
    adapting: Option<Adapting>,
}

impl<'a> Actor<'a> {
    /// Ready for its first episode.
    pub fn new(agent: &'a Agent) -> Actor<'a> {
        Actor { agent, player: Player::new(&agent.policy), adapting: agent.begin() }
    }

    /// An episode starts: private memory is cleared and statistics are as frozen.
    pub fn begin(&mut self) {
        self.player.begin();
        self.adapting = self.agent.begin();
    }

    /// The action for what is seen.
    #[inline]
    pub fn act(&mut self, observation: &Bits) -> u16 {
        match &self.adapting {
            Some(adapting) => adapting.choose(),
            None => self.player.act(observation),
        }
    }

    /// What the action brought.
    #[inline]
    pub fn see(&mut self, action: u16, reward: i32) {
        if let Some(adapting) = &mut self.adapting {
            adapting.see(action, reward);
        }
    }
}
