//! Changes to a family's structure: what patches do to the pool and to the buckets.
//!
//! Every change keeps the family's invariants or is refused without effect. Who may ask for one is not known here.
//! Clauses: VM-1, VM-5, D-32.

use super::choice::Samplers;
use super::{Family, FamilyError, STEP_BY_STEP, checked_expert};
use crate::config::GenesisConfig;
use crate::expert::{ExpertParts, OutputUse};
use crate::route::directory::{Directory, DirectoryError, RouteInput};
use bem_base::ids::ObjectId;
use bem_learn::bucket::Bucket;

/// Visits that the halves of a split bucket keep.
pub const SPLIT_VISITS_MAX: u32 = 32;

impl Family {
    fn check_writes(&self, parts: &ExpertParts) -> Result<(), FamilyError> {
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
        if self.is_sticky(slot) {
            self.episode.admit(&self.parameters, slot);
        } else {
            for bucket in &mut self.buckets {
                bucket.admit(&self.parameters, slot);
            }
        }
        self.samplers.admit(slot, self.is_sticky(slot));
        self.index_experts();
        Ok(slot)
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
            let retired = self.episode.retire(&self.parameters, slot);
            assert!(retired, "arm 0 of the episode's bucket lives for ever");
        } else {
            // A bucket that lost its last arm would have nothing to do; all of them are asked first.
            if self.buckets.iter().any(|bucket| bucket.live() & !(1 << slot) == 0) {
                return Err(FamilyError::LastArm { slot });
            }
            for bucket in &mut self.buckets {
                let retired = bucket.retire(&self.parameters, slot);
                assert!(retired, "every bucket has another live arm");
            }
        }
        self.samplers.retire(slot, self.is_sticky(slot));
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
        let count = self.buckets.len();
        let statistics = self
            .buckets
            .get_mut(usize::from(bucket))
            .ok_or(DirectoryError::UnknownBucket { bucket, count })?;
        statistics.reset(&self.parameters);
        if let Some(sampler) = self.samplers.buckets.get_mut(usize::from(bucket)) {
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
        let parent = &mut self.buckets[usize::from(bucket)];
        parent.discount(&self.parameters, SPLIT_VISITS_MAX);
        let half = parent.clone();
        self.buckets.push(half);
        assert!(self.buckets.len() == usize::from(child) + 1);
        self.samplers.split(bucket);
        self.prepare_routing();
        Ok(child)
    }

    /// Takes another directory, with fresh statistics in every bucket: for families that start on hashed bits.
    pub fn reroute(&mut self, directory: Directory) {
        let live = self.buckets[0].live();
        self.buckets = vec![Bucket::new(&self.parameters, live); directory.bucket_count()];
        self.samplers = Samplers::new(self);
        self.directory = directory;
        self.revision += 1;
        self.prepare_routing();
    }
}
