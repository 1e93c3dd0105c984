//! The machine's barrier: what is done between episodes, in bounded work, and never within a step.
//!
//! Finished episodes are kept until the next barrier. There they are compared within groups of the same task and the
//! same first bucket, and the mean advantage of the episodes that used an expert moves its prior (GRPO-lite); then the
//! tables are published in SHARED. Must not know worlds or patches. Clauses: VM-12, MEM-2, D-2, D-10.

use super::Machine;
use crate::family::Family;
use crate::memory::context::FamilyIndex;
use crate::memory::tables;
use crate::step::single::Progress;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use bem_base::limits::ARMS_MAX;
use bem_learn::group_advantage::{self, EpisodeOutcome, GroupParameters, PriorChange};
use std::collections::VecDeque;

/// A finished episode, as the barrier needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EpisodeRecord {
    family: FamilyIndex,
    task: u64,
    first_bucket: u16,
    /// The slots that acted, one bit each.
    arms: u16,
    /// One less the normalised loss.
    payoff: Fixed,
    /// Which pool it was: advantages of experts that are gone are not credited to their successors.
    pool: u64,
}

/// Episodes since the last barrier. Invariant: no more than `capacity`; when it is full the oldest gives way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EpisodeLog {
    records: VecDeque<EpisodeRecord>,
    capacity: usize,
}

impl EpisodeLog {
    /// Room for this many episodes, none where groups are left out; all memory is taken now.
    pub(super) fn new(capacity: usize) -> EpisodeLog {
        EpisodeLog { records: VecDeque::with_capacity(capacity), capacity }
    }

    /// Forgets all episodes.
    pub(super) fn clear(&mut self) {
        self.records.clear();
    }

    /// Whether a barrier has enough episodes to compare; never without room for any.
    pub(super) fn is_full(&self) -> bool {
        0 < self.capacity && self.records.len() == self.capacity
    }

    /// Keeps a finished episode. Cost: constant, no allocation.
    pub(crate) fn push(&mut self, family: &Family, progress: &Progress) {
        if self.capacity == 0 {
            return;
        }
        if self.is_full() {
            self.records.pop_front();
        }
        let loss = family.statistics.payoff.episode_loss(progress.payoff_sum);
        self.records.push_back(EpisodeRecord {
            family: progress.family,
            task: progress.task.0,
            first_bucket: progress.first_bucket,
            arms: progress.arms_used,
            payoff: Fixed::from_raw((1 << 32) - loss.to_raw() as i64),
            pool: family.pool_generation(),
        });
    }

    /// The episodes that this family's present pool played, as groups are made of them.
    fn of_family(&self, index: FamilyIndex, family: &Family) -> Vec<EpisodeOutcome> {
        let own = |record: &&EpisodeRecord| record.family == index && record.pool == family.pool_generation();
        let outcome = |record: &EpisodeRecord| EpisodeOutcome {
            task: record.task,
            first_bucket: u32::from(record.first_bucket),
            payoff: record.payoff,
            arms: (0..ARMS_MAX as u32).filter(|arm| record.arms >> arm & 1 == 1).collect(),
        };
        self.records.iter().filter(own).map(outcome).collect()
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.length(self.records.len());
        for record in &self.records {
            writer.u16(record.family.0);
            writer.u64(record.task);
            writer.u16(record.first_bucket);
            writer.u16(record.arms);
            writer.i64(record.payoff.to_raw());
            writer.u64(record.pool);
        }
    }

    pub(super) fn decode(capacity: usize, reader: &mut Reader<'_>) -> Result<EpisodeLog, DecodeError> {
        let start = reader.clone();
        let mut log = EpisodeLog::new(capacity);
        for _ in 0..reader.length(30)? {
            let record = EpisodeRecord {
                family: FamilyIndex(reader.u16()?),
                task: reader.u64()?,
                first_bucket: reader.u16()?,
                arms: reader.u16()?,
                payoff: Fixed::from_raw(reader.i64()?),
                pool: reader.u64()?,
            };
            if capacity == log.records.len() || record.payoff < Fixed::ZERO || Fixed::ONE < record.payoff {
                return Err(start.error("episodes past the bounds of their log"));
            }
            log.records.push_back(record);
        }
        Ok(log)
    }
}

impl<P> Machine<P> {
    /// Whether as many episodes have ended since the last barrier as are compared at once (T_group).
    #[inline]
    pub fn is_barrier_due(&self) -> bool {
        self.episodes.is_full()
    }

    /// What the owner calls between episodes: priors from group advantages, and the tables in SHARED.
    ///
    /// Returns the priors that moved, family by family. Lanes that share these families must be flushed before. Cost:
    /// bounded by the episodes kept and the size of the tables.
    #[doc(alias = "GRPO_LITE_UPDATE")]
    pub fn barrier(&mut self) -> Vec<(FamilyIndex, PriorChange)> {
        let parameters = GroupParameters {
            rate: self.config.group_rate,
            spread_min: self.config.group_spread_min,
            size_max: self.config.group_size as usize,
        };
        let mut moved = Vec::new();
        for (index, family) in self.families.iter_mut().enumerate() {
            let index = FamilyIndex(index as u16);
            let episodes = self.episodes.of_family(index, family);
            for change in group_advantage::update(&parameters, &episodes) {
                if change.change != Fixed::ZERO && family.expert(change.arm as usize).is_some() {
                    family.adjust_prior(change.arm as usize, change.change);
                    moved.push((index, change));
                }
            }
        }
        self.episodes.records.clear();
        self.publish();
        moved
    }

    /// Writes the tables into BANDIT, ROUTE_META and EXPERT, where programs see them.
    pub fn publish(&mut self) {
        tables::publish(&self.families, &mut self.shared, self.steps);
    }
}
