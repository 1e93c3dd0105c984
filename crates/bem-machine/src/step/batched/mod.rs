//! 256 lanes at a time: one expert for all, lanes grouped by bucket, or every lane routed on its own.
//!
//! Each expert that some lane plays is evaluated once over all lanes of the block and written back under the mask of
//! those lanes. Lanes never see each other, so all three give what the reference gives lane by lane. Rules that draw
//! and the Hamming router ask lane by lane. Only the world is generic: the rest is compiled once, here. No allocation, no recursion. Clauses: VM-8, VM-13, VM-14, VM-15, D-32.

mod block;
mod decision;
mod lanewise;
mod planes;

use self::block::{ACTION_PLANES_MAX, Block};
use self::decision::{ARM_PLANES, Decision};
use self::lanewise::Lanewise;
use super::schedule::Schedule;
use super::{Workspace, execute};
use crate::family::{Family, STEP_BY_STEP};
use crate::memory::context::FamilyIndex;
use crate::memory::segment::Caller;
use crate::memory::shared::SharedMemory;
use crate::route::signature::SignatureCircuit;
use crate::trace::{PLANES_PER_BLOCK, TraceBuffer, TraceEvent};
use bem_base::environment::Outcome;
use bem_base::lanes::{LaneEnvironment, LaneOutcome, LaneWord};
use bem_base::limits::ARMS_MAX;
use bem_base::prng::Prng;

const _: () = assert!(ARM_PLANES + 1 == PLANES_PER_BLOCK);

/// All lanes of one family, in blocks of 256, and the statistics schedule they share.
#[derive(Clone, Debug)]
pub struct Lanes<E> {
    worlds: Vec<E>,
    machinery: Machinery,
}

/// What a step over lanes borrows from the machine around it.
pub struct LaneSurroundings<'a> {
    /// The family that plays.
    pub family: &'a mut Family,
    /// SHARED, for experts that use it.
    pub shared: &'a mut SharedMemory,
    /// Where block records go; the caller keeps room for one block.
    pub trace: &'a mut TraceBuffer,
}

impl<E: LaneEnvironment> Lanes<E> {
    /// One block per world; each world is reset with its own seed. Rules that draw take their randomness from `prng`.
    pub fn new(family: &Family, index: FamilyIndex, worlds: Vec<(E, u64)>, prng: Prng) -> Lanes<E> {
        let mut machinery = Machinery::new(family, index, worlds.len(), prng);
        let observation = family.layout().observation();
        let reset = |((mut world, seed), block): ((E, u64), &mut Block)| {
            world.reset(seed, &mut block.state.planes_mut()[observation.clone()]);
            world
        };
        let worlds = worlds.into_iter().zip(&mut machinery.blocks).map(reset).collect();
        Lanes { worlds, machinery }
    }

    /// One step of every lane of one block. The outcome is returned for whoever measures.
    ///
    /// Cost: the static cost of the experts that some lane plays, plus a constant.
    #[doc(alias = "BEM_EXPERT_BATCH")]
    pub fn step(&mut self, index: usize, around: &mut LaneSurroundings<'_>) -> LaneOutcome {
        self.machinery.act(index, around);
        let layout = around.family.layout();
        let outcome = self.worlds[index].step(
            &self.machinery.action[..layout.action().len()],
            LaneWord::ONES,
            &mut self.machinery.blocks[index].state.planes_mut()[layout.observation()],
        );
        self.machinery.learn(index, around, &outcome);
        outcome
    }
}

impl<E> Lanes<E> {
    /// How many blocks there are.
    pub fn block_count(&self) -> usize {
        self.worlds.len()
    }

    /// The planes of one block.
    pub fn planes(&self, block: usize) -> &[LaneWord] {
        self.machinery.blocks[block].state.planes()
    }

    /// The shared schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.machinery.schedule
    }

    /// Block steps taken so far.
    pub fn steps(&self) -> u64 {
        self.machinery.steps
    }

    /// The most comparisons that one lane's search by the Hamming router has taken.
    pub fn route_work_max(&self) -> u32 {
        self.machinery.lanewise.work_max()
    }

    /// Books everything that waits.
    pub fn flush(&mut self, family: &mut Family) {
        self.machinery.schedule.flush(family);
    }
}

/// Everything but the worlds.
#[derive(Clone, Debug)]
struct Machinery {
    family: FamilyIndex,
    blocks: Vec<Block>,
    schedule: Schedule,
    signatures: SignatureCircuit,
    workspace: Workspace,
    /// The choices and the action of the step in flight.
    decision: Box<Decision>,
    lanewise: Lanewise,
    action: [LaneWord; ACTION_PLANES_MAX],
    /// Which expert each slot held when the plan was made.
    generations: [u32; ARMS_MAX],
    prng: Prng,
    steps: u64,
}

impl Machinery {
    fn new(family: &Family, index: FamilyIndex, blocks: usize, mut prng: Prng) -> Machinery {
        let schedule = Schedule::new(family);
        Machinery {
            family: index,
            blocks: (0..blocks).map(|_| Block::new(family, &schedule, &mut prng)).collect(),
            schedule,
            signatures: family.directory.compile(),
            workspace: Workspace::default(),
            decision: Box::new(Decision::NONE),
            lanewise: Lanewise::new(family),
            action: [LaneWord::ZERO; ACTION_PLANES_MAX],
            generations: core::array::from_fn(|arm| family.facts[arm].generation),
            prng,
            steps: 0,
        }
    }

    /// The structure has changed: plans anew, and lanes whose expert is gone go on step by step.
    #[cold]
    fn renew(&mut self, family: &Family) {
        self.schedule.rebuild(family);
        self.signatures = family.directory.compile();
        self.lanewise = Lanewise::new(family);
        for (arm, generation) in self.generations.iter_mut().enumerate() {
            let gone = *generation != family.facts[arm].generation || !family.is_sticky(arm);
            *generation = family.facts[arm].generation;
            if gone && arm != STEP_BY_STEP {
                for block in &mut self.blocks {
                    let lanes = core::mem::replace(&mut block.held[arm], LaneWord::ZERO);
                    block.held[STEP_BY_STEP] |= lanes;
                }
            }
        }
    }

    /// From the planes of a block to the planes of its action.
    fn act(&mut self, index: usize, around: &mut LaneSurroundings<'_>) {
        let family = &mut *around.family;
        if self.schedule.is_stale(family) {
            self.renew(family);
        }
        let (block, decision) = (&mut self.blocks[index], &mut *self.decision);
        let view = around.shared.view(Caller::FastPath);
        let shared_bit = |address, bit: u8| view.read_address(address).is_ok_and(|word| word >> bit & 1 == 1);
        self.signatures.signatures(block.state.planes_mut(), shared_bit, &mut decision.signature);
        decision.stepwise = if family.has_sticky() { block.held[STEP_BY_STEP] } else { LaneWord::ONES };
        if family.is_plain() {
            decision.choose(family, &self.schedule);
        } else {
            self.lanewise.choose(family, block.state.planes(), decision, &mut self.prng);
        }
        if family.has_sticky() {
            decision.hold(&block.held);
        }
        for (slot, mask) in decision.masks.iter().enumerate() {
            if !mask.is_zero() {
                execute(family, slot, block.state.planes_mut(), mask, around.shared, &mut self.workspace);
            }
        }
        block.read_action(family, &mut self.action);
    }

    /// From the world's answer to STATE, trace and statistics.
    fn learn(&mut self, index: usize, around: &mut LaneSurroundings<'_>, outcome: &LaneOutcome) {
        let family = &mut *around.family;
        let (block, decision) = (&mut self.blocks[index], &*self.decision);
        block.settle(family, outcome);
        let [a, b, c, d] = decision.planes;
        around.trace.append_block(
            TraceEvent::Block { family: self.family.0, block: index as u16, step: self.steps as u32 },
            &[a, b, c, d, outcome.reward],
        );
        self.steps += 1;

        let lost = !outcome.reward;
        if family.is_plain() {
            decision.count(&mut self.schedule, lost, family.statistics.buckets.len());
        }
        if !outcome.bad.is_zero() {
            if family.is_plain() {
                decision.count_bads(&mut self.schedule, lost, outcome.bad);
            }
            let worst = Outcome { reward: family.shape().reward_min, done: false, bad: true };
            family.notice(&worst);
            if self.schedule.is_stale(family) {
                self.schedule.follow(family);
            }
        }
        if !family.is_plain() {
            self.lanewise.book(family, decision.stepwise, outcome);
        }
        block.end_episodes(family, &mut self.schedule, &decision.masks, outcome, &mut self.prng);
        self.schedule.advance(family);
    }
}
