//! A family of tasks: its pool of experts, where their statistics are kept, and how outcomes become credit.
//!
//! Every bucket chooses among the same pool of at most sixteen experts; `EXPERT[b][k]` is slot k of the pool where
//! bucket b has it live. Experts that remember are chosen once per episode, all others step by step: the episode's
//! own bucket weighs each sticky expert against "step by step", which is its arm 0 (decision D-32). Slot 0 holds
//! NOOP for ever. How it chooses is in [`choice`]. Must not know lanes or worlds. Clauses: VM-1, VM-7, D-6,
//! VM-5, D-10, D-11, D-32, D-33.

mod choice;
mod encode;

pub use choice::{ALL_ARMS, Pick, learning_parameters};

use self::choice::{Draw, Samplers};
use crate::boot::{self, BootExpert};
use crate::config::{GenesisConfig, RouterKind};
use crate::cost::StepCost;
use crate::expert::{Expert, ExpertError, ExpertParts, OutputUse};
use crate::layout::{LayoutError, StateLayout};
use crate::payoff::{PayoffScale, cost_penalty};
use crate::route::FamilyRouter;
use crate::route::directory::{Directory, DirectoryError, RouteInput};
use crate::route::hamming::HammingIndex;
use crate::route::signature::SignatureTable;
use bem_base::environment::Shape;
use bem_base::ids::ObjectId;
use bem_base::limits::ARMS_MAX;
use bem_circuit::compile::Evaluator;
use bem_learn::bucket::Bucket;
use bem_learn::index::Parameters;
use core::cmp::Reverse;

/// The arm of the episode's bucket that stands for choosing step by step, and the slot of NOOP.
pub const STEP_BY_STEP: usize = 0;
/// Visits that the halves of a split bucket keep.
pub const SPLIT_VISITS_MAX: u32 = 32;

/// Why a change to a family was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// The world does not fit into STATE.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The expert breaks a bound.
    #[error(transparent)]
    Expert(#[from] ExpertError),
    /// The directory refused.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Every slot is taken.
    #[error("all {slots} slots of the pool are taken (K_exp)")]
    PoolFull {
        /// Slots there are.
        slots: usize,
    },
    /// No expert is in this slot.
    #[error("slot {slot} of the pool is empty")]
    EmptySlot {
        /// The slot asked for.
        slot: usize,
    },
    /// The expert would write what the world says.
    #[error("state bit {bit} belongs to the world: experts write actions and memory only")]
    WriteRefused {
        /// The bit named.
        bit: u16,
    },
    /// The expert writes memory but is not sticky.
    #[error("an expert that writes memory bit {bit} must be sticky, so that it is chosen for whole episodes")]
    MemoryNeedsSticky {
        /// The bit named.
        bit: u16,
    },
    /// A step with this expert could cost too much.
    #[error(
        "a step with this expert could cost {found} work units, {overhead} of them beside the expert; the bound is \
         {bound} (C_step_max)"
    )]
    StepCost {
        /// What a step could cost.
        found: u32,
        /// What of that is not the expert's.
        overhead: u32,
        /// What it may cost.
        bound: u32,
    },
    /// NOOP stays, and a bucket keeps at least one live arm.
    #[error("slot {slot} cannot be retired: a bucket would be left without an expert")]
    LastArm {
        /// The slot asked for.
        slot: usize,
    },
}

/// What the step needs of a slot, beside the code itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotFacts {
    pub(crate) cost: u32,
    pub(crate) penalty: i64,
    /// Reads SHARED bits or writes SHARED words: the slow way round.
    pub(crate) uses_shared: bool,
    /// Counts the experts that the slot has held.
    pub(crate) generation: u32,
}

/// One family. Invariants: slot 0 is NOOP; a bucket's live arms are memoryless experts, the episode bucket's live
/// arms are arm 0 and the sticky experts; there are as many buckets as the directory names.
#[derive(Clone, Debug)]
#[doc(alias = "tau_f")]
pub struct Family {
    shape: Shape,
    layout: StateLayout,
    slots: usize,
    experts: Vec<Option<Expert>>,
    pub(crate) evaluators: Vec<Evaluator>,
    pub(crate) facts: [SlotFacts; ARMS_MAX],
    sticky: u16,
    memory_used: usize,
    shared_planes: usize,
    pub(crate) directory: Directory,
    pub(crate) buckets: Vec<Bucket>,
    pub(crate) episode: Bucket,
    pub(crate) parameters: Parameters,
    pub(crate) payoff: PayoffScale,
    draw: Draw,
    samplers: Samplers,
    /// The descriptors of the experts that live in buckets, if the Hamming router finds the candidates.
    pub(crate) search: Option<HammingIndex>,
    /// The rule takes the lowest index of all arms.
    plain: bool,
    /// For every bucket, the signature bits it depends on and their values.
    pub(crate) subcubes: Vec<(u64, u64)>,
    pub(crate) signatures: SignatureTable,
    revision: u64,
}

/// Builds an expert and checks that a whole step with it stays within its bound.
fn checked_expert(config: &GenesisConfig, id: ObjectId, parts: ExpertParts) -> Result<Expert, FamilyError> {
    let expert = Expert::new(config, id, parts)?;
    let (cost, bound) = (StepCost::new(config, expert.cost()), config.step_cost_max);
    if bound < cost.total() {
        return Err(FamilyError::StepCost {
            found: cost.total(),
            overhead: cost.total() - expert.cost(),
            bound,
        });
    }
    Ok(expert)
}

impl Family {
    /// A family for worlds of this shape, with NOOP alone in its pool and one bucket.
    pub fn new(config: &GenesisConfig, shape: Shape) -> Result<Family, FamilyError> {
        let layout = StateLayout::new(config, &shape)?;
        let parameters = learning_parameters(config);
        let noop = boot::parts(&layout, BootExpert::Noop).expect("NOOP has no gates");
        let noop = checked_expert(config, ObjectId::expert(0, 0), noop)?;
        let mut family = Family {
            payoff: PayoffScale::new(config, &shape),
            shape,
            layout,
            slots: config.expert_slots as usize,
            experts: vec![None; ARMS_MAX],
            evaluators: vec![Evaluator::new(noop.placed()); ARMS_MAX],
            facts: [SlotFacts::default(); ARMS_MAX],
            sticky: 0,
            memory_used: 0,
            shared_planes: 0,
            directory: Directory::new(config.buckets as usize),
            buckets: vec![Bucket::new(&parameters, 1)],
            episode: Bucket::new(&parameters, 1 << STEP_BY_STEP),
            parameters,
            draw: Draw::new(config),
            samplers: Samplers::default(),
            search: (config.router == RouterKind::Hamming).then(|| HammingIndex::new(config)),
            plain: false,
            subcubes: vec![(0, 0)],
            signatures: Directory::new(1).tabulate(0),
            revision: 0,
        };
        family.plain = family.draw == Draw::Lowest && family.search.is_none();
        family.samplers = Samplers::new(&family);
        family.place(config, STEP_BY_STEP, noop);
        Ok(family)
    }

    /// What the world looks like.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Where its bits stand.
    pub fn layout(&self) -> &StateLayout {
        &self.layout
    }

    /// The expert in a slot.
    pub fn expert(&self, slot: usize) -> Option<&Expert> {
        self.experts.get(slot)?.as_ref()
    }

    /// The slots in use, lowest first.
    pub fn occupied(&self) -> impl Iterator<Item = (usize, &Expert)> {
        self.experts.iter().enumerate().filter_map(|(slot, expert)| Some((slot, expert.as_ref()?)))
    }

    /// What finds the bucket and the candidates of a step.
    pub fn router(&self) -> FamilyRouter<'_> {
        FamilyRouter { directory: &self.directory, search: self.search.as_ref() }
    }

    /// The routing directory.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The statistics of each bucket.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The statistics of whole episodes.
    pub fn episode_bucket(&self) -> &Bucket {
        &self.episode
    }

    /// The payoff scale.
    pub fn payoff(&self) -> &PayoffScale {
        &self.payoff
    }

    /// Grows with every change of structure: pool, directory or scale. What is derived from them is stale then.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many experts a slot has held.
    pub fn generation(&self, slot: usize) -> u32 {
        self.facts[slot].generation
    }

    /// Changes whenever another expert is installed: names the pool that an episode was played with.
    pub fn pool_generation(&self) -> u64 {
        self.facts.iter().map(|facts| u64::from(facts.generation)).sum()
    }

    /// Whether any expert is chosen for whole episodes.
    #[inline]
    pub fn has_sticky(&self) -> bool {
        self.sticky != 0
    }

    /// Whether the expert in this slot is chosen for whole episodes.
    #[inline]
    pub fn is_sticky(&self, slot: usize) -> bool {
        self.sticky >> slot & 1 == 1
    }

    /// Memory bits that some expert of the pool uses: what an episode's start must clear.
    pub fn memory_used(&self) -> usize {
        self.memory_used
    }

    /// Planes that a block of lanes needs: STATE and the SHARED bits behind it.
    pub fn planes(&self) -> usize {
        self.layout.state_bits() + self.shared_planes
    }

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

    /// Prepares what the step looks up, whenever the directory has changed.
    fn prepare_routing(&mut self) {
        self.signatures = self.directory.tabulate(self.layout.observation().len());
        let buckets = 0..self.directory.bucket_count() as u16;
        self.subcubes = buckets.map(|bucket| self.directory.subcube(bucket)).collect();
    }

    /// Renews the descriptors among which the Hamming router searches: those of live memoryless experts, by priority.
    fn index_experts(&mut self) {
        let Some(mut search) = self.search.take() else { return };
        search.clear();
        let live = self.buckets[0].live();
        let mut slots: Vec<usize> = (0..ARMS_MAX).filter(|slot| live >> slot & 1 == 1).collect();
        slots.sort_by_key(|slot| Reverse(self.expert(*slot).map(|expert| expert.routing().priority)));
        for slot in slots {
            let expert = self.expert(slot).expect("a live slot holds an expert");
            let descriptor = search.fold(&expert.descriptor());
            search.insert(descriptor, slot as u32).expect("the configuration makes room for a whole pool");
        }
        self.search = Some(search);
    }

    /// Puts an expert into a slot; statistics are the caller's business.
    fn place(&mut self, config: &GenesisConfig, slot: usize, expert: Expert) {
        self.evaluators[slot] = Evaluator::at(expert.placed(), slot);
        self.facts[slot] = SlotFacts {
            cost: expert.cost(),
            penalty: cost_penalty(config, expert.cost()),
            uses_shared: !expert.read().shared.is_empty() || !expert.write().integers.is_empty(),
            generation: self.facts[slot].generation,
        };
        self.sticky = self.sticky & !(1 << slot) | u16::from(expert.profile().sticky) << slot;
        self.experts[slot] = Some(expert);
        self.measure();
        self.index_experts();
    }

    /// Counts memory bits and SHARED planes that the pool uses.
    fn measure(&mut self) {
        let memory = self.layout.memory();
        self.revision += 1;
        let (mut memory_used, mut shared_planes) = (0, 0);
        for (_, expert) in self.occupied() {
            let bits = expert.placed().written_planes().map(usize::from).filter(|bit| memory.contains(bit));
            memory_used = bits.map(|bit| bit + 1 - memory.start).fold(memory_used, usize::max);
            shared_planes = shared_planes.max(expert.read().inputs() - expert.read().state_bits.len());
        }
        (self.memory_used, self.shared_planes) = (memory_used, shared_planes);
    }
}

#[cfg(test)]
mod tests;
