//! Changes to a family's structure: what patches do to the pool and to the buckets.
//!
//! Every change keeps the family's invariants or is refused without effect. Who may ask for one is not known here.
//! Clauses: VM-1, VM-5, D-32.

use super::choice::Samplers;
use super::{Family, FamilyError, STEP_BY_STEP, checked_expert};
use crate::config::GenesisConfig;
use crate::expert::{Expert, ExpertParts, OutputUse};
use crate::route::directory::{Directory, DirectoryError, RouteInput};
use bem_base::ids::ObjectId;
use bem_learn::bucket::Bucket;

/// Visits that the halves of a split bucket keep.
pub const SPLIT_VISITS_MAX: u32 = 32;

impl Family {
    pub(super) fn check_writes(&self, parts: &ExpertParts) -> Result<(), FamilyError> {
        for output in &parts.write.outputs {
            if let OutputUse::State(bit) = output {
                if !self.layout.may_write(usize::from(*bit)) {
                    return Err(FamilyError::WriteRefused { bit: *bit });
                }
                if self.layout.memory().contains(&usize::from(*bit)) && !parts.profile.sticky {
                    return Err(FamilyError::MemoryNeedsSticky { bit: *bit });
                }
            }
        }
        Ok(())
    }

    /// Installs an expert in the lowest free slot, live everywhere, with neutral statistics; returns the slot.
    #[doc(alias = "SYNTH")]
    pub fn install(
        &mut self,
        config: &GenesisConfig,
        id: ObjectId,
        parts: ExpertParts,
    ) -> Result<usize, FamilyError> {
        self.check_writes(&parts)?;
        let slots = self.slots;
        let slot =
            self.experts[..slots].iter().position(Option::is_none).ok_or(FamilyError::PoolFull { slots })?;
        let expert = checked_expert(config, id, parts)?;
        self.facts[slot].generation += 1;
        self.place(config, slot, expert);
        self.admit(slot);
        Ok(slot)
    }

    /// Puts an expert that was displaced back into its slot, with neutral statistics.
    pub(crate) fn readmit(
        &mut self,
        config: &GenesisConfig,
        slot: usize,
        expert: Expert,
    ) -> Result<(), FamilyError> {
        if self.slots <= slot || self.expert(slot).is_some() {
            return Err(FamilyError::PoolFull { slots: self.slots });
        }
        self.facts[slot].generation += 1;
        self.place(config, slot, expert);
        self.admit(slot);
        Ok(())
    }

    /// Statistics of a slot begin.
    fn admit(&mut self, slot: usize) {
        if self.is_sticky(slot) {
            self.statistics.episode.admit(&self.parameters, slot);
        } else {
            for bucket in &mut self.statistics.buckets {
                bucket.admit(&self.parameters, slot);
            }
        }
        self.statistics.samplers.admit(slot, self.is_sticky(slot));
        self.index_experts();
    }

    /// Puts another expert into a slot and keeps the slot's statistics: for experts that do the same at less cost.
    ///
    /// Whether the slot is sticky must not change.
    #[doc(alias = "SUPEROPT")]
    pub fn replace(
        &mut self,
        config: &GenesisConfig,
        slot: usize,
        id: ObjectId,
        parts: ExpertParts,
    ) -> Result<(), FamilyError> {
        self.check_writes(&parts)?;
        let old =
            self.expert(slot).filter(|_| slot != STEP_BY_STEP).ok_or(FamilyError::EmptySlot { slot })?;
        if old.profile().sticky != parts.profile.sticky {
            return Err(FamilyError::LastArm { slot });
        }
        let expert = checked_expert(config, id, parts)?;
        self.place(config, slot, expert);
        Ok(())
    }

    /// Masks a slot in every bucket and frees it.
    #[doc(alias = "RETIRE")]
    pub fn retire(&mut self, slot: usize) -> Result<(), FamilyError> {
        if self.expert(slot).is_none() {
            return Err(FamilyError::EmptySlot { slot });
        }
        if self.is_sticky(slot) {
            let retired = self.statistics.episode.retire(&self.parameters, slot);
            assert!(retired, "arm 0 of the episode's bucket lives for ever");
        } else {
            // A bucket that lost its last arm would have nothing to do; all of them are asked first.
            if self.statistics.buckets.iter().any(|bucket| bucket.live() & !(1 << slot) == 0) {
                return Err(FamilyError::LastArm { slot });
            }
            for bucket in &mut self.statistics.buckets {
                let retired = bucket.retire(&self.parameters, slot);
                assert!(retired, "every bucket has another live arm");
            }
        }
        self.statistics.samplers.retire(slot, self.is_sticky(slot));
        if slot != STEP_BY_STEP {
            self.experts[slot] = None;
            self.sticky &= !(1 << slot);
        }
        self.measure();
        self.index_experts();
        Ok(())
    }

    /// Forgets the statistics of one bucket.
    #[doc(alias = "RESET")]
    pub fn reset(&mut self, bucket: u16) -> Result<(), FamilyError> {
        let count = self.statistics.buckets.len();
        let statistics = self
            .statistics
            .buckets
            .get_mut(usize::from(bucket))
            .ok_or(DirectoryError::UnknownBucket { bucket, count })?;
        statistics.reset(&self.parameters);
        if let Some(sampler) = self.statistics.samplers.buckets.get_mut(usize::from(bucket)) {
            sampler.reset();
        }
        self.revision += 1;
        Ok(())
    }

    /// Splits one bucket by the parity of some bits; both halves keep the means with few visits.
    #[doc(alias = "SPLIT")]
    pub fn split(&mut self, bucket: u16, by: &[RouteInput]) -> Result<u16, FamilyError> {
        let child = self.directory.split(bucket, by)?;
        self.revision += 1;
        let parent = &mut self.statistics.buckets[usize::from(bucket)];
        parent.discount(&self.parameters, SPLIT_VISITS_MAX);
        let half = parent.clone();
        self.statistics.buckets.push(half);
        assert!(self.statistics.buckets.len() == usize::from(child) + 1);
        self.statistics.samplers.split(bucket);
        self.divide_world(bucket);
        self.prepare_routing();
        Ok(child)
    }

    /// Joins two buckets that one test tells apart; the whole keeps the statistics of the lower one.
    #[doc(alias = "MERGE")]
    pub fn join(&mut self, one: u16, other: u16) -> Result<(), FamilyError> {
        let (low, high) = (usize::from(one.min(other)), usize::from(one.max(other)));
        if self.held.actions.get(low) != self.held.actions.get(high) {
            return Err(FamilyError::JoinedApart { one, other });
        }
        self.directory.join(one, other)?;
        self.revision += 1;
        self.statistics.buckets.remove(high);
        self.statistics.samplers.join(high);
        self.join_world(low, high);
        self.prepare_routing();
        Ok(())
    }

    /// Takes another directory, with fresh statistics in every bucket: for families that start on hashed bits.
    pub fn reroute(&mut self, directory: Directory) {
        let live = self.statistics.buckets[0].live();
        self.statistics.buckets = vec![Bucket::new(&self.parameters, live); directory.bucket_count()];
        self.statistics.samplers = Samplers::new(self);
        self.directory = directory;
        self.revision += 1;
        self.prepare_routing();
    }
}
