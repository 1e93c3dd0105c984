//! An agent between two episodes as canonical bytes, and back. Clause: CUR-4.

use super::{Agent, AgentConfig};
use crate::closure::Closure;
use crate::gate::Gate;
use crate::latch::Latch;
use crate::policy::{Navigation, Options};
use crate::rule_state::RuleState;
use crate::world_model::WorldModel;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::prng::Prng;

impl Agent {
    /// Writes everything that influences the next episode; between episodes only.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.seed);
        writer.u64(self.looks);
        writer.bool(self.learning);
        writer.i64(self.error_baseline);
        self.model.encode(writer);
        self.gate.encode(writer);
        self.latch.encode(writer);
        self.rule.encode(writer);
        self.closure.encode(writer);
        self.navigation.encode(writer);
        self.options.encode(writer);
        self.prng.encode(writer);
    }

    /// Reads an agent with this set-up, between episodes.
    pub fn decode(config: AgentConfig, reader: &mut Reader<'_>) -> Result<Agent, DecodeError> {
        let seed = reader.u64()?;
        let mut agent = Agent::new(config, seed);
        (agent.looks, agent.learning) = (reader.u64()?, reader.bool()?);
        agent.error_baseline = reader.i64()?;
        agent.model = WorldModel::decode(reader)?;
        agent.gate = Gate::decode(config.gate, reader)?;
        agent.config.gate = agent.gate.config;
        agent.latch = Latch::decode(reader)?;
        agent.rule = RuleState::decode(seed, reader)?;
        agent.closure = Closure::decode(reader)?;
        agent.navigation = Navigation::decode(reader)?;
        agent.options = Options::decode(reader)?;
        agent.prng = Prng::decode(reader)?;
        Ok(agent)
    }
}
