//! 256 lanes at a time: one expert for all, lanes grouped by bucket, or every lane routed on its own.
//!
//! Each expert that some lane plays is evaluated once over all lanes of the block and written back under the mask of
//! those lanes. With few buckets the masks come from logic on signature planes; with many, signatures are transposed
//! into one number per lane, looked up, and transposed back. Lanes never see each other, so all three give what the
//! reference gives lane by lane. No allocation, no recursion. Clauses: VM-8, VM-13, VM-14, VM-15, D-32.

use super::schedule::{GROUPS_MAX, ROW, ROWS_MAX, Schedule};
use super::{Workspace, execute};
use crate::family::{Family, STEP_BY_STEP};
use crate::memory::context::FamilyIndex;
use crate::memory::segment::Caller;
use crate::memory::shared::SharedMemory;
use crate::memory::state::LaneState;
use crate::route::directory::DEPTH_MAX;
use crate::trace::{PLANES_PER_BLOCK, TraceBuffer, TraceEvent};
use bem_base::environment::Outcome;
use bem_base::lanes::{LANE_WORDS, LaneEnvironment, LaneMask, LaneOutcome, LaneWord};
use bem_base::limits::{ARMS_MAX, LANES, STATE_BITS_MAX};

/// Planes of the action's number that a world can have.
const ACTION_PLANES_MAX: usize = 10;
/// Planes of an arm's number.
const ARM_PLANES: usize = ARMS_MAX.ilog2() as usize;
/// Planes of a count of steps within an episode.
const COUNTER_PLANES: usize = 17;

const _: () = assert!(ARM_PLANES + 1 == PLANES_PER_BLOCK);
const _: () =
    assert!(ROWS_MAX * ROW == 1 << 15, "a counter's place fits fifteen bits, the sixteenth says: not booked");

/// What belongs to one block and outlives a step.
#[derive(Clone, Debug)]
struct Block<E> {
    state: LaneState,
    world: E,
    /// The lanes that each arm holds for their whole episode; those of arm 0 choose step by step.
    held: [LaneMask; ARMS_MAX],
    /// Within the running episode of each lane: steps with the high reward, all steps, BAD steps.
    wins: [LaneWord; COUNTER_PLANES],
    steps: [LaneWord; COUNTER_PLANES],
    bads: [LaneWord; COUNTER_PLANES],
    /// Sum of cost penalties per lane; empty when cost is free.
    costs: Vec<i64>,
}

/// All lanes of one family, in blocks of 256, and the statistics schedule they share.
#[derive(Clone, Debug)]
pub struct Lanes<E> {
    family: FamilyIndex,
    blocks: Vec<Block<E>>,
    schedule: Schedule,
    workspace: Workspace,
    /// The row of each lane, in the order of the transposed planes.
    rows: Box<[u16; LANES]>,
    /// Which expert each slot held when the plan was made.
    generations: [u32; ARMS_MAX],
    steps: u64,
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
    /// One block per world; each world is reset with its own seed.
    pub fn new(family: &Family, index: FamilyIndex, worlds: Vec<(E, u64)>) -> Lanes<E> {
        let schedule = Schedule::new(family);
        let cost_is_free = family.facts.iter().all(|facts| facts.penalty == 0);
        let blocks = worlds.into_iter().map(|(mut world, seed)| {
            let mut state = LaneState::new(STATE_BITS_MAX);
            world.reset(seed, &mut state.planes_mut()[family.layout().observation()]);
            let mut block = Block {
                state,
                world,
                held: [LaneWord::ZERO; ARMS_MAX],
                wins: [LaneWord::ZERO; COUNTER_PLANES],
                steps: [LaneWord::ZERO; COUNTER_PLANES],
                bads: [LaneWord::ZERO; COUNTER_PLANES],
                costs: if cost_is_free { Vec::new() } else { vec![0; LANES] },
            };
            block.assign_episodes(family, &schedule, LaneWord::ONES);
            block
        });
        Lanes {
            family: index,
            blocks: blocks.collect(),
            workspace: Workspace::default(),
            rows: vec![0; LANES].into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("LANES rows")),
            generations: core::array::from_fn(|arm| family.facts[arm].generation),
            steps: 0,
            schedule,
        }
    }

    /// How many blocks there are.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// The planes of one block.
    pub fn planes(&self, block: usize) -> &[LaneWord] {
        self.blocks[block].state.planes()
    }

    /// The shared schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Block steps taken so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Books everything that waits.
    pub fn flush(&mut self, family: &mut Family) {
        self.schedule.flush(family);
    }

    /// The structure has changed: plans anew, and lanes whose expert is gone go on step by step.
    #[cold]
    fn renew(&mut self, family: &Family) {
        self.schedule.rebuild(family);
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

    /// One step of every lane of one block. The outcome is returned for whoever measures.
    ///
    /// Cost: the static cost of the experts that some lane plays, plus a constant.
    #[doc(alias = "BEM_EXPERT_BATCH")]
    pub fn step(&mut self, index: usize, around: &mut LaneSurroundings<'_>) -> LaneOutcome {
        let family = &mut *around.family;
        if self.schedule.is_stale(family) {
            self.renew(family);
        }
        let block = &mut self.blocks[index];
        let stepwise = if family.has_sticky() { block.held[STEP_BY_STEP] } else { LaneWord::ONES };

        let mut arms = Arms { masks: [LaneWord::ZERO; ARMS_MAX], planes: [LaneWord::ZERO; ARM_PLANES] };
        let mut groups = [LaneWord::ZERO; GROUPS_MAX];
        let mut signature = [LaneWord::ZERO; DEPTH_MAX];
        let view = around.shared.view(Caller::FastPath);
        let shared_bit = |address, bit: u8| view.read_address(address).is_ok_and(|word| word >> bit & 1 == 1);
        family.directory.signature_planes(block.state.planes(), shared_bit, &mut signature);
        if self.schedule.is_grouped() {
            group_lanes(family, &signature, &mut groups);
            arms.take_groups(&self.schedule, &groups[..family.buckets.len()], stepwise);
        } else {
            arms.take_rows(&self.schedule, &signature, family.directory.depth(), &mut self.rows);
        }
        if family.has_sticky() {
            arms.hold(&block.held, stepwise);
        }

        for (slot, mask) in arms.masks.iter().enumerate() {
            if !mask.is_zero() {
                execute(family, slot, block.state.planes_mut(), mask, around.shared, &mut self.workspace);
            }
        }
        let outcome = block.take_action(family);
        let lost = !outcome.reward;
        around.trace.append_block(
            TraceEvent::Block { family: self.family.0, block: index as u16, step: self.steps as u32 },
            &[arms.planes[0], arms.planes[1], arms.planes[2], arms.planes[3], outcome.reward],
        );
        self.steps += 1;

        if self.schedule.is_grouped() {
            count_groups(&mut self.schedule, &groups[..family.buckets.len()], stepwise, lost);
        } else {
            count_rows(&mut self.schedule, &self.rows, &arms.planes, lost, stepwise);
        }
        if !outcome.bad.is_zero() {
            let place =
                Places { grouped: self.schedule.is_grouped(), groups: &groups, signature: &signature };
            count_bads(&mut self.schedule, &place, &arms.masks, stepwise, lost, outcome.bad);
            let worst = Outcome { reward: family.shape().reward_min, done: false, bad: true };
            family.notice(&worst);
            // The first BAD step resets statistics; what was counted so far has not been booked and still holds.
            if self.schedule.is_stale(family) {
                self.schedule.follow(family);
            }
        }
        block.end_episodes(family, &mut self.schedule, &arms.masks, &outcome);
        self.schedule.advance(family);
        outcome
    }
}

impl<E: LaneEnvironment> Block<E> {
    /// Hands the action to the world, and the world's answer to STATE.
    fn take_action(&mut self, family: &Family) -> LaneOutcome {
        let layout = family.layout();
        let (observation, rest) = self.state.planes_mut().split_at_mut(layout.observation().end);
        let width = layout.action().len();
        let mut action = [LaneWord::ZERO; ACTION_PLANES_MAX];
        action[..width].copy_from_slice(&rest[..width]);
        let actions = family.shape().actions;
        if !actions.is_power_of_two() {
            let valid = below(&action[..width], actions);
            action[..width].iter_mut().for_each(|plane| *plane &= valid);
        }
        let outcome = self.world.step(&action[..width], LaneWord::ONES, observation);
        let (reward, bad) = (layout.reward(), layout.bad());
        let shape = family.shape();
        let planes = self.state.planes_mut();
        planes[reward] = if shape.reward_min == shape.reward_max { LaneWord::ONES } else { outcome.reward };
        planes[bad] = outcome.bad;
        outcome
    }

    /// Adds the outcome to the running episodes; those that ended are counted, cleared and begin anew.
    #[inline]
    fn end_episodes(
        &mut self,
        family: &Family,
        schedule: &mut Schedule,
        arms: &[LaneMask; ARMS_MAX],
        outcome: &LaneOutcome,
    ) {
        if family.has_sticky() {
            increment(&mut self.wins, outcome.reward);
            increment(&mut self.steps, LaneWord::ONES);
            increment(&mut self.bads, outcome.bad);
            if !self.costs.is_empty() {
                for (arm, mask) in arms.iter().enumerate() {
                    mask.lanes().for_each(|lane| self.costs[lane] += family.facts[arm].penalty);
                }
            }
        }
        if outcome.done.is_zero() {
            return;
        }
        let layout = family.layout();
        let first = layout.action().start;
        let last = layout.memory().start + family.memory_used();
        self.state.clear(first, last - first, outcome.done);
        if family.has_sticky() {
            for lane in outcome.done.lanes() {
                let arm = self.held.iter().position(|mask| mask.get(lane)).expect("every lane has an arm");
                schedule.count_episode(family, arm, self.payoff_sum(family, lane));
            }
            self.assign_episodes(family, schedule, outcome.done);
        }
    }

    fn payoff_sum(&self, family: &Family, lane: usize) -> i64 {
        let column = |planes: &[LaneWord]| {
            planes.iter().enumerate().fold(0i64, |sum, (bit, plane)| sum | i64::from(plane.get(lane)) << bit)
        };
        let shape = family.shape();
        let (wins, steps, bads) = (column(&self.wins), column(&self.steps), column(&self.bads));
        let outcome = |reward, bad| family.payoff.payoff(&Outcome { reward, done: false, bad }, 0);
        let (high, low) = (outcome(shape.reward_max, false), outcome(shape.reward_min, false));
        let penalty = low - outcome(shape.reward_min, true);
        let cost = self.costs.get(lane).copied().unwrap_or(0);
        wins * high + (steps - wins) * low - bads * penalty - cost
    }

    /// New episodes: lanes are given to the arms of the plan, and their counters start at zero.
    fn assign_episodes(&mut self, family: &Family, schedule: &Schedule, starting: LaneMask) {
        if !family.has_sticky() {
            self.held = [LaneWord::ZERO; ARMS_MAX];
            self.held[STEP_BY_STEP] = LaneWord::ONES;
            return;
        }
        for mask in &mut self.held {
            *mask = mask.and_not(starting);
        }
        for word in 0..LANE_WORDS {
            self.held[usize::from(schedule.episode_arm(word))].0[word] |= starting.0[word];
        }
        for counter in [&mut self.wins, &mut self.steps, &mut self.bads] {
            counter.iter_mut().for_each(|plane| *plane = plane.and_not(starting));
        }
        if !self.costs.is_empty() {
            starting.lanes().for_each(|lane| self.costs[lane] = 0);
        }
    }
}

/// Which lanes play which arm, as masks and as planes of the arm's number.
struct Arms {
    masks: [LaneMask; ARMS_MAX],
    planes: [LaneWord; ARM_PLANES],
}

impl Arms {
    /// From the lanes of each bucket and the plan.
    fn take_groups(&mut self, schedule: &Schedule, groups: &[LaneMask], stepwise: LaneMask) {
        for (group, arms) in groups.iter().zip(schedule.plan()) {
            let group = *group & stepwise;
            if arms.iter().all(|arm| *arm == arms[0]) {
                self.masks[usize::from(arms[0]) % ARMS_MAX] |= group;
                continue;
            }
            for (word, arm) in arms.iter().enumerate() {
                self.masks[usize::from(*arm) % ARMS_MAX].0[word] |= group.0[word];
            }
        }
        self.number();
    }

    /// From the signature of every lane: transpose, look up, transpose back.
    fn take_rows(
        &mut self,
        schedule: &Schedule,
        signature: &[LaneWord; DEPTH_MAX],
        depth: usize,
        rows: &mut [u16; LANES],
    ) {
        let mut low: [LaneWord; 8] = core::array::from_fn(|bit| signature[bit]);
        transpose(&mut low);
        let low = bytes_of(&low);
        if 8 < depth {
            let mut high = [LaneWord::ZERO; 8];
            high[..DEPTH_MAX - 8].copy_from_slice(&signature[8..]);
            transpose(&mut high);
            let high = bytes_of(&high);
            for ((row, low), high) in rows.iter_mut().zip(low).zip(high) {
                *row = u16::from(low) | u16::from(high) << 8;
            }
        } else {
            for (row, low) in rows.iter_mut().zip(low) {
                *row = u16::from(low);
            }
        }
        let plan = schedule.plan();
        let mut arms = [0u8; LANES];
        // In transposed order eight neighbours share a word of lanes, and the words take turns.
        for (place, (arms, rows)) in arms.chunks_exact_mut(8).zip(rows.chunks_exact(8)).enumerate() {
            let word = place % LANE_WORDS;
            for (arm, row) in arms.iter_mut().zip(rows) {
                *arm = plan[usize::from(*row) % ROWS_MAX][word];
            }
        }
        let mut planes = lanes_of(&arms);
        transpose(&mut planes);
        self.planes.copy_from_slice(&planes[..ARM_PLANES]);
        split_lanes(&self.planes, &mut self.masks);
    }

    /// Lanes that an arm holds for their whole episode play it; the others play what was chosen step by step.
    fn hold(&mut self, held: &[LaneMask; ARMS_MAX], stepwise: LaneMask) {
        for (arm, (mask, held)) in self.masks.iter_mut().zip(held).enumerate() {
            *mask &= stepwise;
            if arm != STEP_BY_STEP {
                *mask |= *held;
            }
        }
        self.number();
    }

    /// Planes of the numbers from the masks.
    fn number(&mut self) {
        self.planes = core::array::from_fn(|bit| {
            let arms = self.masks.iter().enumerate().filter(|(arm, _)| arm >> bit & 1 == 1);
            arms.fold(LaneWord::ZERO, |plane, (_, mask)| plane | *mask)
        });
    }
}

/// The lanes of every number that the planes spell: each plane halves what is left.
fn split_lanes(planes: &[LaneWord], masks: &mut [LaneMask; 16]) {
    masks[0] = LaneWord::ONES;
    for (bit, plane) in planes.iter().enumerate().take(4) {
        let (low, high) = masks.split_at_mut(1 << bit);
        halve(low, high, plane);
    }
}

/// Divides each mask by a plane: where it is true, the lanes move to the upper half.
///
/// Not inlined, because unrolled into its caller it becomes scalar code, four instructions for each one here.
#[inline(never)]
fn halve(low: &mut [LaneMask], high: &mut [LaneMask], plane: &LaneWord) {
    for (low, high) in low.iter_mut().zip(high) {
        *high = *low & *plane;
        *low = low.and_not(*plane);
    }
}

const _: () = assert!(ARMS_MAX == 16 && GROUPS_MAX == 16);

/// The lanes of each bucket: the conjunction of the signature bits it depends on.
fn group_lanes(family: &Family, signature: &[LaneWord; DEPTH_MAX], groups: &mut [LaneMask; GROUPS_MAX]) {
    let (entries, depth) = (family.directory.entries(), family.directory.depth());
    if entries.len() <= GROUPS_MAX {
        let mut lanes = [LaneWord::ZERO; GROUPS_MAX];
        split_lanes(&signature[..depth], &mut lanes);
        for (entry, lanes) in entries.iter().zip(lanes) {
            groups[usize::from(*entry) % GROUPS_MAX] |= lanes;
        }
        return;
    }
    for (bucket, group) in groups.iter_mut().enumerate().take(family.buckets.len()) {
        let (mut depends_on, pattern) = family.subcubes[bucket];
        *group = LaneWord::ONES;
        while depends_on != 0 {
            let bit = depends_on.trailing_zeros() as usize;
            let plane = signature[bit];
            *group &= if pattern >> bit & 1 == 1 { plane } else { !plane };
            depends_on &= depends_on - 1;
        }
    }
}

/// Counts outcomes bucket by bucket: two population counts per word of lanes.
fn count_groups(schedule: &mut Schedule, groups: &[LaneMask], stepwise: LaneMask, lost: LaneWord) {
    for (bucket, group) in groups.iter().enumerate() {
        let group = *group & stepwise;
        let arms = schedule.plan()[bucket];
        if arms.iter().all(|arm| *arm == arms[0]) {
            let (all, losses) = (group.count_ones(), (group & lost).count_ones());
            schedule.count(bucket, usize::from(arms[0]), false, (all - losses) as u16);
            schedule.count(bucket, usize::from(arms[0]), true, losses as u16);
            continue;
        }
        for (word, arm) in arms.into_iter().enumerate() {
            let all = group.0[word].count_ones();
            let losses = (group.0[word] & lost.0[word]).count_ones();
            let arm = usize::from(arm);
            schedule.count(bucket, arm, false, (all - losses) as u16);
            schedule.count(bucket, arm, true, losses as u16);
        }
    }
}

/// Counts outcomes lane by lane: row, loss and arm together are the counter's place.
fn count_rows(
    schedule: &mut Schedule,
    rows: &[u16; LANES],
    arms: &[LaneWord; ARM_PLANES],
    lost: LaneWord,
    stepwise: LaneMask,
) {
    let mut planes = [LaneWord::ZERO; 8];
    planes[..ARM_PLANES].copy_from_slice(arms);
    planes[ARM_PLANES] = lost;
    planes[ARM_PLANES + 1] = !stepwise;
    transpose(&mut planes);
    let outcomes = bytes_of(&planes);
    let mut places = [0u16; LANES];
    for ((place, row), outcome) in places.iter_mut().zip(rows).zip(outcomes) {
        let outcome = u16::from(outcome);
        // The sixteenth bit sends lanes that are credited by the episode to counters that nobody books.
        *place = (row << 5) | (outcome & 31) | (outcome & 32) << 10;
    }
    let counts = schedule.counts_mut();
    for place in places {
        let count = &mut counts[usize::from(place)];
        *count = count.wrapping_add(1);
    }
}

/// How to find the row of a lane again.
struct Places<'a> {
    grouped: bool,
    groups: &'a [LaneMask; GROUPS_MAX],
    signature: &'a [LaneWord; DEPTH_MAX],
}

impl Places<'_> {
    fn row(&self, lane: usize) -> usize {
        if self.grouped {
            self.groups.iter().position(|group| group.get(lane)).expect("every lane has a bucket")
        } else {
            let bits = self.signature.iter().enumerate();
            bits.fold(0, |row, (bit, plane)| row | usize::from(plane.get(lane)) << bit)
        }
    }
}

/// Marks the BAD lanes among the counted outcomes, one by one: they are rare.
#[cold]
fn count_bads(
    schedule: &mut Schedule,
    places: &Places<'_>,
    arms: &[LaneMask; ARMS_MAX],
    stepwise: LaneMask,
    lost: LaneWord,
    bad: LaneWord,
) {
    for lane in (bad & stepwise).lanes() {
        let arm = arms.iter().position(|mask| mask.get(lane)).expect("every lane plays an arm");
        schedule.count_bad(places.row(lane), arm, lost.get(lane));
    }
}

/// The lanes in which the number is below `bound`.
fn below(number: &[LaneWord], bound: u16) -> LaneMask {
    let (mut less, mut equal) = (LaneWord::ZERO, LaneWord::ONES);
    for (bit, plane) in number.iter().enumerate().rev() {
        if bound >> bit & 1 == 1 {
            less |= equal.and_not(*plane);
            equal &= *plane;
        } else {
            equal = equal.and_not(*plane);
        }
    }
    less
}

/// Adds one to the counters of some lanes; a full counter wraps, but no episode is that long.
fn increment(counter: &mut [LaneWord; COUNTER_PLANES], mut carry: LaneWord) {
    for plane in counter {
        if carry.is_zero() {
            return;
        }
        (*plane, carry) = (*plane ^ carry, *plane & carry);
    }
}

/// Transposes every 8x8 block of bits: byte g of row j becomes the eight planes' bits of lane 8g + j.
///
/// It is its own inverse.
#[inline]
fn transpose(rows: &mut [LaneWord; 8]) {
    for (shift, mask) in [(1, 0x5555_5555_5555_5555), (2, 0x3333_3333_3333_3333), (4, 0x0F0F_0F0F_0F0F_0F0F)]
    {
        for row in (0..8).filter(|row| row & shift == 0) {
            let (low, high) = (rows[row], rows[row + shift]);
            let mut swap = [0; LANE_WORDS];
            for (swap, (low, high)) in swap.iter_mut().zip(low.0.iter().zip(&high.0)) {
                *swap = (low >> shift ^ high) & mask;
            }
            rows[row + shift] = high ^ LaneWord(swap);
            rows[row] = low ^ LaneWord(swap.map(|swap| swap << shift));
        }
    }
}

/// The bytes of eight rows, row by row.
#[inline]
fn bytes_of(rows: &[LaneWord; 8]) -> [u8; LANES] {
    let mut bytes = [0; LANES];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(rows.iter().flat_map(|row| row.0)) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Undoes [`bytes_of`].
#[inline]
fn lanes_of(bytes: &[u8; LANES]) -> [LaneWord; 8] {
    let word =
        |place: usize| u64::from_le_bytes(bytes[8 * place..8 * place + 8].try_into().expect("eight bytes"));
    core::array::from_fn(|row| LaneWord(core::array::from_fn(|index| word(LANE_WORDS * row + index))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    #[test]
    fn transposing_gives_every_lane_its_own_byte_and_comes_back() {
        let mut prng = Prng::stream(1, "transpose");
        let planes: [LaneWord; 8] =
            core::array::from_fn(|_| LaneWord(core::array::from_fn(|_| prng.next_u64())));
        let mut rows = planes;
        transpose(&mut rows);
        let bytes = bytes_of(&rows);
        for lane in 0..LANES {
            let want = (0..8).fold(0, |byte, bit| byte | u8::from(planes[bit].get(lane)) << bit);
            let (word, group, row) = (lane / 64, lane % 64 / 8, lane % 8);
            assert_eq!(bytes[row * 32 + word * 8 + group], want, "lane {lane}");
        }
        let mut back = lanes_of(&bytes);
        transpose(&mut back);
        assert_eq!(back, planes);
    }

    #[test]
    fn comparison_with_a_bound_holds_in_every_lane() {
        let mut prng = Prng::stream(2, "below");
        let number: [LaneWord; 5] =
            core::array::from_fn(|_| LaneWord(core::array::from_fn(|_| prng.next_u64())));
        for bound in 0..32 {
            let mask = below(&number, bound);
            for lane in 0..LANES {
                let value = (0..5).fold(0, |value, bit| value | u16::from(number[bit].get(lane)) << bit);
                assert_eq!(mask.get(lane), value < bound);
            }
        }
    }
}
