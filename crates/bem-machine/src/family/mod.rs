//! A family of tasks: its pool of experts, what is held, where statistics are kept, and how outcomes become credit.
//!
//! A family that stands for a world ([`Family::for_world`]) also chooses among plain actions, bucket by bucket ([`world`]).
//! Every bucket chooses among the same pool of at most sixteen experts; `EXPERT[b][k]` is slot k of the pool where
//! bucket b has it live. Experts that remember are chosen once per episode, all others step by step: the episode's
//! own bucket weighs each sticky expert against "step by step", which is its arm 0 (decision D-32). Slot 0 holds
//! NOOP for ever. How it chooses is in [`choice`]. Must not know lanes or worlds. Clauses: VM-1, VM-7, D-6,
//! VM-5, D-10, D-11, D-32, D-33.

mod change;
mod choice;
mod encode;
mod error;
mod freeze;
mod plain;
mod world;

pub use change::SPLIT_VISITS_MAX;
pub use choice::{ALL_ARMS, Pick, learning_parameters};
pub use error::FamilyError;
pub use freeze::FrozenCircuit;
pub use plain::Counted;

use self::choice::{Draw, Samplers};
use crate::boot::{self, BootExpert};
use crate::config::{GenesisConfig, RouterKind};
use crate::cost::StepCost;
use crate::expert::{Expert, ExpertParts};
use crate::guard::Guard;
use crate::held::Held;
use crate::layout::StateLayout;
use crate::payoff::{PayoffScale, cost_penalty};
use crate::route::FamilyRouter;
use crate::route::directory::{Directory, Subcube};
use crate::route::hamming::HammingIndex;
use crate::route::signature::SignatureTable;
use bem_base::environment::{Bits, Shape};
use bem_base::ids::ObjectId;
use bem_base::limits::ARMS_MAX;
use bem_circuit::compile::Evaluator;
use bem_learn::bucket::Bucket;
use bem_learn::index::Parameters;
use bem_learn::loss::Loss;
use bem_learn::wide::WideBucket;
use bem_learn::wide_draw::WideTsallisInf;
use core::cmp::Reverse;
use std::collections::BTreeSet;

/// The arm of the episode's bucket that stands for choosing step by step, and the slot of NOOP.
pub const STEP_BY_STEP: usize = 0;

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
    pub(crate) shape: Shape,
    layout: StateLayout,
    slots: usize,
    experts: Vec<Option<Expert>>,
    pub(crate) evaluators: Vec<Evaluator>,
    pub(crate) facts: [SlotFacts; ARMS_MAX],
    sticky: u16,
    memory_used: usize,
    shared_planes: usize,
    pub(crate) directory: Directory,
    /// What acts when nothing is explored.
    pub(crate) held: Held,
    /// For every bucket of a world the step of the run from which on it counts.
    since: Vec<u64>,
    pub(crate) guard: Guard,
    /// Who is measured and belongs to no pool.
    pub(crate) seat: Option<Box<Seat>>,
    pub(crate) statistics: Statistics,
    pub(crate) parameters: Parameters,
    draw: Draw,
    /// The descriptors of the experts that live in buckets, if the Hamming router finds the candidates.
    pub(crate) search: Option<HammingIndex>,
    /// The rule takes the lowest index of all arms.
    plain: bool,
    /// For every bucket, the signature bits it depends on and their values.
    pub(crate) subcubes: Vec<Subcube>,
    pub(crate) signatures: SignatureTable,
    revision: u64,
}

/// What was learned, apart from the structure: patches do not change it but where what it is about changes.
#[derive(Clone, Debug)]
pub(crate) struct Statistics {
    /// Slots of the pool, bucket by bucket.
    pub(crate) buckets: Vec<Bucket>,
    /// Whole episodes of sticky slots.
    pub(crate) episode: Bucket,
    /// Plain actions, bucket by bucket; none in a family without plain actions.
    pub(crate) plain: Vec<WideBucket>,
    /// What Tsallis-INF keeps of plain actions beside that, bucket by bucket; none under other rules.
    weighed: Vec<WideTsallisInf>,
    /// What the imagined visit of every plain action cost; nothing where that is the reference loss.
    pub(crate) imagined: Vec<Loss>,
    /// Pairs of observation and action that were BAD when they were last tried.
    pub(crate) suspects: BTreeSet<(Bits, u16)>,
    pub(crate) payoff: PayoffScale,
    samplers: Samplers,
}

/// A circuit that plays by name and is no part of the structure.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) expert: Expert,
    pub(crate) evaluator: Evaluator,
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
        let statistics = Statistics {
            buckets: vec![Bucket::new(&parameters, 1)],
            episode: Bucket::new(&parameters, 1 << STEP_BY_STEP),
            plain: Vec::new(),
            weighed: Vec::new(),
            imagined: Vec::new(),
            suspects: BTreeSet::new(),
            payoff: PayoffScale::new(config, &shape),
            samplers: Samplers::default(),
        };
        let mut family = Family {
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
            held: Held::POOL,
            since: vec![0],
            guard: Guard::default(),
            seat: None,
            statistics,
            parameters,
            draw: Draw::new(config),
            search: (config.router == RouterKind::Hamming).then(|| HammingIndex::new(config)),
            plain: false,
            subcubes: vec![Subcube { depends_on: 0, pattern: 0 }],
            signatures: Directory::new(1).tabulate(0),
            revision: 0,
        };
        family.plain = family.draw == Draw::Lowest && family.search.is_none();
        family.statistics.samplers = Samplers::new(&family);
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
        &self.statistics.buckets
    }

    /// The statistics of whole episodes.
    pub fn episode_bucket(&self) -> &Bucket {
        &self.statistics.episode
    }

    /// The payoff scale.
    pub fn payoff(&self) -> &PayoffScale {
        &self.statistics.payoff
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
        let live = self.statistics.buckets[0].live();
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
        let seat = self.seat.as_ref().map(|seat| &seat.expert);
        for expert in self.experts.iter().flatten().chain(seat) {
            let bits = expert.placed().written_planes().map(usize::from).filter(|bit| memory.contains(bit));
            memory_used = bits.map(|bit| bit + 1 - memory.start).fold(memory_used, usize::max);
            shared_planes = shared_planes.max(expert.read().inputs() - expert.read().state_bits.len());
        }
        (self.memory_used, self.shared_planes) = (memory_used, shared_planes);
    }
}

#[cfg(test)]
mod tests;
