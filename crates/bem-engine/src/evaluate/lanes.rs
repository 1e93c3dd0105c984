//! Up to 256 episodes side by side: one policy, and one running world a lane.
//!
//! What the lanes see becomes planes, the circuit runs once for all of them, and each world takes its own action. A lane
//! whose episode is over takes the next seed, so that none waits for another. Worlds and rewards stay plain, so that every
//! game can be played; what an episode brings depends on its seed alone, not on its lane or its neighbours.
//!
//! Must not know what an episode is played for, nor who owns the policy. Clauses: MEM-1, VM-2.

use super::Played;
use super::transpose::{ROWS, Rows, transpose};
use bem_base::environment::{Bits, Environment, EnvironmentError};
use bem_base::lanes::{LANE_WORDS, LaneWord};
use bem_base::limits::LANES;
use bem_circuit::compile::Evaluator;
use bem_circuit::interpret::Interpreted;
use bem_circuit::placed::{Evaluate, PlacedCircuit, Placement, Scratch, Target};
use bem_games::game::Game;
use bem_synth::policy::{Policy, action_bits};

/// Blocks that are interpreted before the circuit is compiled: compiling a gate takes as long as interpreting it about
/// this many times. A thousand episodes of one step are over before that.
const BLOCKS_INTERPRETED: u32 = 128;
/// Circuits with fewer gates play in [`NARROW_LANES`]: the worlds cost more than the circuit, and fewer of them have to be
/// started and stay in the cache.
const NARROW_GATES: usize = 64;
/// Lanes for small circuits.
const NARROW_LANES: usize = 64;
/// Bits that may be moved to the planes one by one in the time that one column of a transposition takes.
const BITS_A_COLUMN: usize = 2;

/// The running worlds of a game, one a lane. They are started when they are first needed.
pub struct LaneWorlds<'g> {
    game: &'g dyn Game,
    lanes: Vec<Lane>,
}

/// One running world with the episode that it plays.
struct Lane {
    world: Box<dyn Environment + Send>,
    /// The place of the seed that it plays.
    episode: usize,
    played: Played,
}

impl<'g> LaneWorlds<'g> {
    /// No world has been started yet.
    pub fn new(game: &'g dyn Game) -> LaneWorlds<'g> {
        LaneWorlds { game, lanes: Vec::new() }
    }

    /// Plays the episodes of these seeds; `played` is what each of them brought, in the order of the seeds.
    ///
    /// If worlds fail, the error is that of one of them: the first in the order of steps, then of lanes.
    pub fn play(
        &mut self,
        player: &mut LanePlayer,
        seeds: &[u64],
        played: &mut Vec<Played>,
    ) -> Result<(), EnvironmentError> {
        played.clear();
        played.resize(seeds.len(), Played::default());
        let width = seeds.len().min(player.lanes);
        while self.lanes.len() < width {
            let world = self.game.start();
            self.lanes.push(Lane { world, episode: 0, played: Played::default() });
        }
        for (place, lane) in self.lanes[..width].iter_mut().enumerate() {
            lane.begin(place, seeds)?;
            player.begin(place, lane.world.observation());
        }
        let mut next = width;
        let mut live = LaneWord::first(width);
        while !live.is_zero() {
            player.act(live);
            for group in 0..LANE_WORDS {
                let mut rest = live.0[group];
                while rest != 0 {
                    let place = 64 * group + rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    let lane = &mut self.lanes[place];
                    let outcome = lane.world.step(player.action(place))?;
                    lane.played.take(&outcome);
                    lane.played.take_late(lane.world.late());
                    if !outcome.done {
                        player.see(place, lane.world.observation());
                        continue;
                    }
                    played[lane.episode] = lane.played;
                    if next < seeds.len() {
                        lane.begin(next, seeds)?;
                        player.begin(place, lane.world.observation());
                        next += 1;
                    } else {
                        live.set(place, false);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Lane {
    #[inline]
    fn begin(&mut self, episode: usize, seeds: &[u64]) -> Result<(), EnvironmentError> {
        self.episode = episode;
        self.played = Played::default();
        self.world.reset(seeds[episode])
    }
}

/// A policy at work in 256 lanes. Each has a memory of its own.
pub struct LanePlayer {
    evaluator: Evaluator,
    blocks: u32,
    /// Lanes to be used.
    lanes: usize,
    scratch: Scratch,
    /// The inputs of the circuit: what is read, then the memory.
    planes: Vec<LaneWord>,
    reads: usize,
    words: Vec<Word>,
    /// The lanes whose memory has yet to be cleared.
    fresh: LaneWord,
    /// The code of the action, lowest bit first.
    code: Vec<LaneWord>,
}

/// One word of the observation, as far as the policy reads it.
struct Word {
    index: usize,
    /// Bit and plane of each input, ascending.
    inputs: Vec<(usize, usize)>,
    /// One more than the last bit.
    columns: usize,
    rows: Box<Rows>,
}

impl LanePlayer {
    /// Prepares a policy. Its circuit is interpreted first, and compiled if it is used for long.
    pub fn new(policy: &Policy) -> LanePlayer {
        let (reads, bits) = (policy.reads().len(), action_bits(policy.actions()));
        // Memory is written back to the planes that it is read from.
        let inputs = policy.circuit().inputs();
        let memory = (reads..inputs).map(|plane| Target::Plane(plane as u16));
        let placement = Placement {
            reads: (0..inputs).map(|plane| plane as u16).collect(),
            targets: (0..bits).map(|bit| Target::Result(bit as u16)).chain(memory).collect(),
        };
        let placed = PlacedCircuit::new(policy.circuit().clone(), placement, u32::MAX)
            .expect("inputs and outputs of a circuit have room in a block");
        LanePlayer {
            evaluator: Evaluator::Interpreted(Interpreted::new(placed)),
            blocks: 0,
            lanes: if policy.gates() < NARROW_GATES { NARROW_LANES } else { LANES },
            scratch: Scratch::new(),
            planes: vec![LaneWord::ZERO; inputs],
            reads,
            words: Word::all(policy.reads()),
            fresh: LaneWord::ONES,
            code: vec![LaneWord::ZERO; bits],
        }
    }

    /// An episode starts in this lane.
    #[inline]
    fn begin(&mut self, lane: usize, observation: &Bits) {
        self.fresh.set(lane, true);
        self.see(lane, observation);
    }

    /// What this lane sees now.
    #[inline]
    fn see(&mut self, lane: usize, observation: &Bits) {
        for word in &mut self.words {
            word.rows[lane % ROWS].0[lane / ROWS] = observation.0[word.index];
        }
    }

    /// One step of all lanes; those that are not live may do anything.
    fn act(&mut self, live: LaneWord) {
        let count = live.count_ones() as usize;
        for word in &mut self.words {
            word.fill(&mut self.planes, live, count);
        }
        if !self.fresh.is_zero() {
            for plane in &mut self.planes[self.reads..] {
                *plane = plane.and_not(self.fresh);
            }
            self.fresh = LaneWord::ZERO;
        }
        self.blocks = self.blocks.saturating_add(1);
        if self.blocks == BLOCKS_INTERPRETED
            && let Evaluator::Interpreted(interpreted) = &self.evaluator
        {
            self.evaluator = Evaluator::new(interpreted.circuit());
        }
        self.evaluator.evaluate(&mut self.planes, &LaneWord::ONES, &mut self.code, &mut self.scratch);
    }

    /// The action of this lane.
    #[inline]
    fn action(&self, lane: usize) -> u16 {
        let bit = |plane: &LaneWord| (plane.0[lane / 64] >> (lane % 64) & 1) as u16;
        self.code.iter().rev().fold(0, |code, plane| code << 1 | bit(plane))
    }
}

impl Word {
    fn all(reads: &[u16]) -> Vec<Word> {
        let mut words: Vec<Word> = Vec::new();
        for (plane, bit) in reads.iter().map(|bit| usize::from(*bit)).enumerate() {
            let (index, column) = (bit / ROWS, bit % ROWS);
            if words.last().is_none_or(|word| word.index != index) {
                let rows = Box::new([LaneWord::ZERO; ROWS]);
                words.push(Word { index, inputs: Vec::new(), columns: 0, rows });
            }
            if let Some(word) = words.last_mut() {
                word.inputs.push((column, plane));
                word.columns = column + 1;
            }
        }
        words
    }

    /// Moves what the lanes see to the planes: all of them together, or bit by bit where few lanes are left.
    fn fill(&mut self, planes: &mut [LaneWord], live: LaneWord, count: usize) {
        if count * self.inputs.len() <= BITS_A_COLUMN * self.columns {
            for lane in live.lanes() {
                let seen = self.rows[lane % ROWS].0[lane / ROWS];
                for (column, plane) in &self.inputs {
                    planes[*plane].set(lane, seen >> column & 1 == 1);
                }
            }
            return;
        }
        // Every live lane sees something new after the step, so that the rows may be used up.
        transpose(&mut self.rows, self.columns);
        for (column, plane) in &self.inputs {
            planes[*plane] = self.rows[*column];
        }
    }
}
