//! The whole machine as canonical bytes: everything that influences its next step.
//!
//! Clauses: LOG-4.

use super::{EpisodeLog, Machine, Mode, PENDING_MAX, TRACE_RECORDS};
use crate::config::GenesisConfig;
use crate::family::{Family, STEP_BY_STEP};
use crate::memory::shared::SharedMemory;
use crate::step::single::SingleLane;
use crate::trace::TraceBuffer;
use crate::turn::{Actor, member};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::limits::ARMS_MAX;
use bem_base::prng::Prng;
use core::marker::PhantomData;

/// Version of the canonical bytes.
const ENCODING_VERSION: u32 = 4;

impl<P> Machine<P> {
    /// Writes everything that influences the next step. The trace must have been drained: its records are the
    /// owner's.
    pub fn encode(&self, writer: &mut Writer) {
        assert!(self.trace.records().is_empty(), "drain the trace before saving the machine");
        writer.u32(ENCODING_VERSION);
        self.config.encode(writer);
        writer.bool(self.mode == Mode::Frozen);
        writer.length(self.families.len());
        self.families.iter().for_each(|family| family.encode(writer));
        self.shared.encode(writer);
        self.lane.encode(writer);
        self.episodes.encode(writer);
        self.prng.encode(writer);
        writer.u64(self.steps);
        writer.u32(self.expert_next);
        writer.u64(self.trace.appended());
    }

    /// Reads a machine back; what it does next is what the saved one would have done.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Machine<P>, DecodeError> {
        let start = reader.clone();
        if reader.u32()? != ENCODING_VERSION {
            return Err(start.error("an unknown version of the machine"));
        }
        let config = GenesisConfig::decode(reader)?;
        let mode = if reader.bool()? { Mode::Frozen } else { Mode::Learning };
        let count = reader.length(1)?;
        if config.families_max < count as u32 {
            return Err(start.error("more families than the configuration allows"));
        }
        let mut families = Vec::new();
        for _ in 0..count {
            let mut family = Family::decode(&config, reader)?;
            if mode == Mode::Frozen {
                family.make_pessimistic();
            }
            families.push(family);
        }
        let shared = SharedMemory::decode(&config, reader)?;
        let lane = SingleLane::decode(PENDING_MAX, reader)?;
        let episodes = EpisodeLog::decode(config.group_period as usize, reader)?;
        let prng = Prng::decode(reader)?;
        let (steps, expert_next, appended) = (reader.u64()?, reader.u32()?, reader.u64()?);
        let trace = TraceBuffer::resumed(TRACE_RECORDS, appended);
        let machine = Machine {
            config,
            mode,
            families,
            shared,
            trace,
            lane,
            episodes,
            prng,
            steps,
            expert_next,
            permits: PhantomData,
        };
        if machine.lane_is_consistent() { Ok(machine) } else { Err(start.error("a lane out of step")) }
    }

    /// The lane plays a family that exists, and every pending choice is one that this machine could have made.
    fn lane_is_consistent(&self) -> bool {
        let progress = &self.lane.progress;
        if !progress.running && self.lane.pending.is_empty() {
            return true;
        }
        let Ok(family) = self.family(progress.family) else { return false };
        let arm = usize::from(progress.episode_arm);
        let may_act = family.is_sticky(arm) || family.is_world() && family.expert(arm).is_some();
        let is_named = matches!(progress.turn.actor, Actor::Member(slot) if usize::from(slot) == arm)
            && family.expert(arm).is_some();
        let arm_holds = arm == STEP_BY_STEP || arm < ARMS_MAX && (may_act || is_named);
        let choices_hold = self.lane.pending.choices().all(|choice| {
            let is_member =
                usize::from(choice.arm) < ARMS_MAX || family.is_world() && choice.arm <= member::PLAN;
            is_member
                && choice.action < family.shape().actions
                && usize::from(choice.bucket) < family.buckets().len()
        });
        let steps_hold = self.lane.pending.choices().next_back().is_none_or(|last| last.step.0 < self.steps);
        arm_holds && choices_hold && steps_hold && (progress.steps == 0 || 0 < self.steps)
    }
}
