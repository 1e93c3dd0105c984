//! A world that is a program: what LEAF_ISA plays.
//!
//! The program runs from its first instruction at every call and finds in MODE what is wanted; everything it wants
//! to remember is in its memory. Words of ENV, counted from `sb_env`:
//!
//! ```text
//! 0 action   1 reward (signed)   2 done   3 BAD   4..8 observation
//! 8 mode: 0 describe, 1 reset, 2 step, 3 say the best action
//! 16 observation bits   17 actions   18 horizon   19 and 20 lowest and highest reward
//! 21 and 22 lowest and highest return   32..40 settings, from outside   64.. the program's own
//! ```
//!
//! Describing fills words 16 to 22, once. Reset and step fill words 1 to 7. `rand` draws from the episode's seed. A
//! program that knows the best action puts it into word 0 when asked; one that does not leaves the word alone. A
//! program that traps, shows bits it did not declare, or pays outside its range breaks the contract: the episode
//! ends with an error, never a panic. Must not know games: bem-games adapts this. Clauses: GLE-3, ISA-5.

use crate::instruction::SegmentBase;
use crate::interpreter::{Core, NoCoprocessor, SegmentStarts};
use crate::memory::Memory;
use crate::program::Program;
use bem_base::environment::{Bits, Environment, EnvironmentError, Field, OBSERVATION_WORDS, Outcome, Shape};
use bem_base::limits::{ACTIONS_MAX, EPISODE_STEPS_MAX, OBSERVATION_BITS_MAX};
use bem_base::prng::Prng;

/// Words that a program world has.
pub const WORLD_WORDS: usize = 4_096;
/// Settings that a program world can be given.
pub const SETTINGS_MAX: usize = 8;
/// Instructions that one call may execute.
pub const CALL_STEPS_MAX: u64 = 1 << 16;

mod word {
    pub const ACTION: usize = 0;
    pub const REWARD: usize = 1;
    pub const DONE: usize = 2;
    pub const BAD: usize = 3;
    pub const OBSERVATION: usize = 4;
    pub const MODE: usize = 8;
    pub const SHAPE: usize = 16;
    pub const SETTINGS: usize = 32;
}

/// What the world asks its program for.
#[derive(Clone, Copy)]
enum Mode {
    Describe = 0,
    Reset = 1,
    Step = 2,
    Best = 3,
}

/// Why a program is no world.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program is no world: {0}")]
pub struct WorldError(String);

/// A program with its memory, as a world. Same seed and same actions: same observations and outcomes.
#[derive(Clone, Debug)]
#[doc(alias = "LEAF_ISA")]
pub struct ProgramWorld {
    program: Program,
    shape: Shape,
    words: Vec<u64>,
    /// The words as they are before an episode.
    fresh: Vec<u64>,
    seed: u64,
    observation: Bits,
    steps: u32,
    running: bool,
}

impl ProgramWorld {
    /// Asks the program to describe itself under these settings.
    pub fn new(program: Program, settings: &[u64]) -> Result<ProgramWorld, WorldError> {
        if SETTINGS_MAX < settings.len() {
            let given = settings.len();
            return Err(WorldError(format!("{given} settings, at most {SETTINGS_MAX} are possible")));
        }
        let mut fresh = vec![0; WORLD_WORDS];
        fresh[word::SETTINGS..word::SETTINGS + settings.len()].copy_from_slice(settings);
        let mut world = ProgramWorld {
            program,
            shape: Shape {
                observation_bits: 0,
                actions: 1,
                horizon: 1,
                reward_min: 0,
                reward_max: 0,
                return_min: 0,
                return_max: 0,
                fields: Vec::new(),
            },
            words: fresh.clone(),
            fresh,
            seed: 0,
            observation: Bits::ZERO,
            steps: 0,
            running: false,
        };
        world.call(Mode::Describe).map_err(|error| WorldError(error.to_string()))?;
        world.shape = described(&world.words[word::SHAPE..word::SHAPE + 7])?;
        Ok(world)
    }

    /// Runs the program once.
    fn call(&mut self, mode: Mode) -> Result<(), EnvironmentError> {
        self.words[word::MODE] = mode as u64;
        let starts = SegmentStarts::default().with(SegmentBase::Env, 0);
        let mut core = Core::new(&self.program, self.seed, starts);
        let mut memory = Memory::open(&mut self.words, &mut []);
        let result = core.run(&self.program, &mut memory, &mut NoCoprocessor, CALL_STEPS_MAX);
        self.seed = core.seed;
        result.map_err(|trap| EnvironmentError::External(trap.to_string()))
    }

    /// The best action by the program's own knowledge, if it has any. Asking changes nothing. For evaluators only.
    pub fn best_action(&self) -> Result<Option<u16>, EnvironmentError> {
        let mut asked = self.clone();
        asked.words[word::ACTION] = u64::MAX;
        asked.call(Mode::Best)?;
        match asked.words[word::ACTION] {
            u64::MAX => Ok(None),
            action if action < u64::from(self.shape.actions) => Ok(Some(action as u16)),
            action => Err(broken(format!("best action {action} of {}", self.shape.actions))),
        }
    }

    /// Takes the observation out of the words.
    fn look(&mut self) -> Result<(), EnvironmentError> {
        let mut bits = Bits::ZERO;
        bits.0.copy_from_slice(&self.words[word::OBSERVATION..word::OBSERVATION + OBSERVATION_WORDS]);
        let width = usize::from(self.shape.observation_bits);
        if let Some(bit) = (width..OBSERVATION_BITS_MAX).find(|bit| bits.get(*bit)) {
            return Err(broken(format!("observation bit {bit} is set, {width} bits are declared")));
        }
        self.observation = bits;
        Ok(())
    }

    fn outcome(&self) -> Result<Outcome, EnvironmentError> {
        let flag = |name: &str, place: usize| match self.words[place] {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(broken(format!("{name} is {other}, allowed: 0 or 1"))),
        };
        let reward = self.words[word::REWARD] as i64;
        let (low, high) = (i64::from(self.shape.reward_min), i64::from(self.shape.reward_max));
        if reward < low || high < reward {
            return Err(broken(format!("reward {reward}, declared: {low} to {high}")));
        }
        let outcome =
            Outcome { reward: reward as i32, done: flag("done", word::DONE)?, bad: flag("BAD", word::BAD)? };
        if self.shape.horizon <= self.steps && !outcome.done {
            return Err(broken(format!("no end after {} steps, its horizon", self.steps)));
        }
        Ok(outcome)
    }
}

fn broken(reason: String) -> EnvironmentError {
    EnvironmentError::External(format!("a program world broke its contract: {reason}"))
}

/// The shape that the program described, if it is one.
fn described(words: &[u64]) -> Result<Shape, WorldError> {
    let within = |name: &str, value: u64, low: i64, high: i64| {
        let value = value as i64;
        if low <= value && value <= high {
            Ok(value)
        } else {
            Err(WorldError(format!("{name} = {value}, allowed: {low} to {high}")))
        }
    };
    let observation_bits = within("observation bits", words[0], 0, OBSERVATION_BITS_MAX as i64)? as u16;
    let actions = within("actions", words[1], 1, ACTIONS_MAX as i64)? as u16;
    let horizon = within("horizon", words[2], 1, i64::from(EPISODE_STEPS_MAX))? as u32;
    let reward_min = within("lowest reward", words[3], i64::from(i32::MIN), i64::from(i32::MAX))?;
    let reward_max = within("highest reward", words[4], reward_min, i64::from(i32::MAX))?;
    let bound = i64::from(i32::MAX) * i64::from(EPISODE_STEPS_MAX);
    let return_min = within("lowest return", words[5], -bound, bound)?;
    let return_max = within("highest return", words[6], return_min, bound)?;
    let fields =
        if observation_bits == 0 { Vec::new() } else { vec![Field { low: 0, width: observation_bits }] };
    Ok(Shape {
        observation_bits,
        actions,
        horizon,
        reward_min: reward_min as i32,
        reward_max: reward_max as i32,
        return_min,
        return_max,
        fields,
    })
}

impl Environment for ProgramWorld {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.words.copy_from_slice(&self.fresh);
        self.seed = Prng::stream(seed, "isa/world").next_u64();
        (self.steps, self.running) = (0, false);
        self.call(Mode::Reset)?;
        self.look()?;
        self.running = true;
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        if !self.running {
            return Err(EnvironmentError::EpisodeOver);
        }
        if self.shape.actions <= action {
            return Err(EnvironmentError::ActionOutOfRange { action, last: self.shape.actions - 1 });
        }
        self.running = false;
        self.words[word::ACTION] = u64::from(action);
        self.words[word::REWARD] = 0;
        self.call(Mode::Step)?;
        self.steps += 1;
        self.look()?;
        let outcome = self.outcome()?;
        self.running = !outcome.done;
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::assemble;

    const NIM: &str = include_str!("../../../examples/programs/nim.basm");

    fn nim(stones_max: u64) -> Result<ProgramWorld, WorldError> {
        ProgramWorld::new(assemble(NIM).unwrap(), &[stones_max])
    }

    /// Plays one episode by a policy from stones to action; its return and its record.
    fn play(world: &mut ProgramWorld, seed: u64, policy: impl Fn(u64) -> u16) -> (i64, Vec<(u64, Outcome)>) {
        world.reset(seed).unwrap();
        let (mut total, mut record) = (0, Vec::new());
        loop {
            let stones = world.observation().0[0];
            let outcome = world.step(policy(stones)).unwrap();
            total += i64::from(outcome.reward);
            record.push((stones, outcome));
            if outcome.done {
                return (total, record);
            }
        }
    }

    #[test]
    fn the_example_program_is_a_game_that_perfect_play_always_wins() {
        let mut world = nim(21).unwrap();
        assert_eq!((world.shape().actions, world.shape().observation_bits), (3, 5));
        let (mut lost, mut lengths) = (0, std::collections::BTreeSet::new());
        for seed in 0..200 {
            let (won, record) = play(&mut world, seed, |stones| ((stones + 3) % 4) as u16 % 3);
            assert_eq!(won, 1_000, "seed {seed}");
            assert_eq!(play(&mut world, seed, |stones| ((stones + 3) % 4) as u16 % 3).1, record);
            lengths.insert(record.len());
            world.reset(seed).unwrap();
            let stones = world.observation().0[0];
            assert_eq!(world.best_action(), Ok(Some(((stones + 3) % 4) as u16)), "the program knows as much");
            lost += u64::from(play(&mut world, seed, |_| 0).0 == 0);
        }
        assert!(2 < lengths.len(), "games differ: {lengths:?}");
        assert!(20 < lost, "taking one always is often beaten: {lost}");
        assert_eq!(world.step(0), Err(EnvironmentError::EpisodeOver));
        world.reset(1).unwrap();
        assert_eq!(world.step(3), Err(EnvironmentError::ActionOutOfRange { action: 3, last: 2 }));
    }

    #[test]
    fn a_program_that_breaks_the_contract_is_named_and_never_panics() {
        let world = |text: &str| ProgramWorld::new(assemble(text).unwrap(), &[]);
        let reason = |text: &str| world(text).unwrap_err().to_string();
        assert_eq!(
            reason("jmp 0"),
            "the program is no world: trap 6 at instruction 0: the step budget is used up"
        );
        assert_eq!(reason("add x0, x0, x0"), "the program is no world: actions = 0, allowed: 1 to 1024");
        let shape = "li x1, 2\nst x1, [sb_env + 136]\nst x1, [sb_env + 144]\nst x1, [sb_env + 160]\n";
        let rich = format!(
            "{shape}ld x2, [sb_env + 64]\nli x3, 2\nbne x2, x3, end\nli x4, 9\nst x4, [sb_env + 8]\nend:\n"
        );
        let mut rich = world(&rich).unwrap();
        rich.reset(1).unwrap();
        let error = rich.step(0).unwrap_err().to_string();
        assert_eq!(error, "a program world broke its contract: reward 9, declared: 0 to 2");
        let mut endless = world(shape).unwrap();
        endless.reset(1).unwrap();
        endless.step(0).unwrap();
        let error = endless.step(0).unwrap_err().to_string();
        assert_eq!(error, "a program world broke its contract: no end after 2 steps, its horizon");
        let mut wide = world(&format!("{shape}st x1, [sb_env + 32]\n")).unwrap();
        let error = wide.reset(1).unwrap_err().to_string();
        assert_eq!(
            error,
            "a program world broke its contract: observation bit 1 is set, 0 bits are declared"
        );
        assert!(nim(4).is_err(), "settings are checked by the program's own description");
        assert_eq!(endless.best_action(), Ok(None), "a program need not know what is best");
    }
}
