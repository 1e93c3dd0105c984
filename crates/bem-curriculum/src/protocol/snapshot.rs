//! A run between two episodes as canonical bytes, and back. Clause: CUR-4.

use super::consolidate::Consolidation;
use super::{ProtocolConfig, Run};
use crate::agent::{Agent, AgentConfig};
use crate::trace::Trace;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};

impl Run {
    /// Everything that decides the next episode, as canonical bytes.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.text("bem curriculum run 1");
        writer.u64(self.seed);
        writer.u64(self.global_step);
        writer.u32(self.steps_used);
        writer.raw(self.trace.head().as_bytes());
        writer.u64(self.trace.step());
        self.agent.encode(&mut writer);
        writer.bool(self.consolidation.is_some());
        if let Some(state) = &self.consolidation {
            state.encode(&mut writer);
        }
        writer.into_bytes()
    }

    /// Continues from a snapshot under the same set-up.
    pub fn restore(config: ProtocolConfig, agent: AgentConfig, bytes: &[u8]) -> Result<Run, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a snapshot of a curriculum run");
        if reader.text()? != "bem curriculum run 1" {
            return Err(foreign);
        }
        let (seed, global_step, steps_used) = (reader.u64()?, reader.u64()?, reader.u32()?);
        let head = Digest::decode(&mut reader)?;
        let trace = Trace::resumed(head, reader.u64()?);
        let agent = Agent::decode(agent, &mut reader)?;
        let consolidation = if reader.bool()? { Some(Consolidation::decode(&mut reader)?) } else { None };
        reader.finish()?;
        Ok(Run { config, agent, trace, seed, global_step, steps_used, consolidation })
    }
}
