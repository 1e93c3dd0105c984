//! The frozen machine as it is evaluated and exported: one circuit, and the rule by which it adapts within an episode.
//!
//! A frozen agent begins every episode in the same state. The guard is part of the circuit; what adapts within an episode passes it
//! step by step. Clauses: VM-9, VM-16; decisions D-4, D-41.

use crate::codec::{decode_option, encode_option};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Shape};
use bem_machine::guard::Guard;
use bem_machine::held::{Adaptation, Adapting};
use bem_synth::policy::{Player, Policy};

/// What a machine does when nothing is explored.
#[derive(Clone, Debug)]
pub struct Agent {
    policy: Policy,
    rule: Adaptation,
    shape: Option<Shape>,
    /// What masks the actions of an agent that adapts; in a circuit it is built in.
    guard: Guard,
}

impl Agent {
    /// A circuit that acts as it is.
    pub fn circuit(policy: Policy) -> Agent {
        Agent { policy, rule: Adaptation::Fixed, shape: None, guard: Guard::default() }
    }

    /// A circuit that adapts within an episode by this rule, in worlds of this shape.
    pub fn adapting(policy: Policy, rule: Adaptation, shape: &Shape) -> Agent {
        Agent { policy, rule, shape: Some(shape.clone()), guard: Guard::default() }
    }

    /// The same behind a guard, which matters where it adapts.
    #[must_use]
    pub fn behind(self, guard: &Guard) -> Agent {
        let guard = if self.adapts() { guard.clone() } else { Guard::default() };
        Agent { guard, ..self }
    }

    /// The circuit; of an agent that adapts, what it would do before it has learned anything.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether it goes on learning within an episode.
    pub fn adapts(&self) -> bool {
        self.rule != Adaptation::Fixed
    }

    /// Whether nothing masks its actions beyond its circuit.
    pub fn is_unguarded(&self) -> bool {
        self.guard.is_empty()
    }

    /// The rule by which it does.
    pub fn rule(&self) -> Adaptation {
        self.rule
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.policy.encode(writer);
        self.rule.encode(writer);
        encode_option(writer, self.shape.as_ref(), Shape::encode);
        if self.adapts() {
            self.guard.encode(writer);
        }
    }

    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        writer.into_bytes()
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Agent, DecodeError> {
        let (policy, rule) = (Policy::decode(reader)?, Adaptation::decode(reader)?);
        let shape = decode_option(reader, Shape::decode)?;
        let guard = match rule {
            Adaptation::Fixed => Guard::default(),
            _ => Guard::decode(policy.actions(), reader)?,
        };
        Ok(Agent { policy, rule, shape, guard })
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
            Some(adapting) => self.agent.guard.pass(observation, adapting.choose()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::environment::Pattern;
    use bem_machine::guard::Rule;

    fn shape() -> Shape {
        Shape {
            observation_bits: 1,
            actions: 2,
            fields: Vec::new(),
            horizon: 64,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 64_000,
        }
    }

    #[test]
    fn what_adapts_within_an_episode_passes_the_guard_and_comes_back_with_it() {
        let rule = Rule { seen: Pattern::whole(Bits::ZERO), forbidden: 1, instead: 0 };
        let guard = Guard::new(vec![rule], 2).unwrap();
        let agent = Agent::adapting(Policy::constant(2, 0), Adaptation::Index, &shape());
        // Action 1 earns everything: without a guard it is taken sooner or later.
        let takes_it = |agent: &Agent| {
            let mut actor = Actor::new(agent);
            (0..64).any(|_| {
                let action = actor.act(&Bits::ZERO);
                actor.see(action, i32::from(action) * 1_000);
                action == 1
            })
        };
        let guarded = agent.clone().behind(&guard);
        assert!(takes_it(&agent) && !takes_it(&guarded));
        let mut writer = Writer::new();
        guarded.encode(&mut writer);
        let bytes = writer.into_bytes();
        let read = Agent::decode(&mut Reader::new(&bytes)).unwrap();
        assert!(!takes_it(&read));
        let mut again = Writer::new();
        read.encode(&mut again);
        assert_eq!(again.into_bytes(), bytes);
    }
}
