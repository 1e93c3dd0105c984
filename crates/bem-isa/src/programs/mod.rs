//! STEP_FAST and BANDIT_UPDATE_STEP as programs of the control core, and a host that runs a family on them.
//!
//! Everything that the step knows is in words: statistics in BANDIT, the directory and tables in CFG, costs and code
//! positions in EXPERT, the episode in WORK, records in TRACE. The programs (`programs/*.basm`) compute; the host
//! copies observations and outcomes in, actions and records out. Covered: routing by bits of STATE, the UCB-V
//! index with priors, change detection, halving, BAD steps, experts for whole episodes, and the context hash. Not
//! covered, and refused by name: other choice rules, routing by and experts on bits of SHARED, late rewards.
//! Clauses: ISA-5, ISA-6, VM-13.

mod image;

use crate::assemble::assemble;
use crate::instruction::SegmentBase;
use crate::interpreter::{Core, NoCoprocessor};
use crate::memory::{Access, Memory};
use crate::program::Program;
use crate::trap::Trap;
use bem_base::environment::{Bits, Outcome};
use bem_machine::config::GenesisConfig;
use bem_machine::family::Family;
use bem_machine::memory::context::FamilyIndex;
use bem_machine::trace::Record;
use image::{Image, Layout};

/// Offsets of all words, shared by every program.
pub const LAYOUT: &str = include_str!("../../programs/layout.basm");
/// The statistics of one bucket: `update` and what it needs.
pub const BANDIT: &str = include_str!("../../programs/bandit.basm");
/// The start of an episode, to be assembled behind [`LAYOUT`].
pub const BEGIN_EPISODE: &str = include_str!("../../programs/begin_episode.basm");
/// From observation to action, to be assembled behind [`LAYOUT`] and before [`TRACE`] and the experts.
pub const STEP_FAST: &str = include_str!("../../programs/step_fast.basm");
/// From outcome to statistics, to be assembled behind [`LAYOUT`] and before [`BANDIT`] and [`TRACE`].
pub const BANDIT_UPDATE_STEP: &str = include_str!("../../programs/bandit_update_step.basm");
/// Appending a record.
pub const TRACE: &str = include_str!("../../programs/trace.basm");

/// Instructions that one program of the step may execute: far above what the largest expert needs.
const STEPS_MAX: u64 = 1 << 22;

/// Why a family cannot run on the programs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// A choice rule other than UCB-V.
    #[error("the programs choose by UCB-V; the configuration asks for another rule")]
    Rule,
    /// Routing by a word of SHARED.
    #[error("the programs route by bits of STATE; the directory declares a bit of SHARED")]
    Routing,
    /// An expert that reads or writes SHARED.
    #[error("the expert in slot {slot} uses words of SHARED, which the programs do not pass on")]
    Expert {
        /// Where it is.
        slot: usize,
    },
}

/// Why a step was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The program trapped.
    #[error(transparent)]
    Trap(#[from] Trap),
    /// The trace must be drained first.
    #[error("the trace is full: drain it before the next step")]
    TraceFull,
}

/// One family and one lane, run by programs.
#[derive(Clone, Debug)]
pub struct ProgramMachine {
    begin: Program,
    step: Program,
    update: Program,
    image: Image,
    layout: Layout,
    executed: u64,
}

impl ProgramMachine {
    /// Lays a family down as words and code. Its statistics are taken as they are; no episode runs yet.
    pub fn new(
        config: &GenesisConfig,
        family: &Family,
        index: FamilyIndex,
    ) -> Result<ProgramMachine, Unsupported> {
        let layout = Layout::read(LAYOUT);
        let (experts, scratch_vectors) = image::expert_code(family)?;
        let program = |texts: &[&str]| {
            assemble(&texts.concat()).expect("the programs of the step are assembled in every test")
        };
        let step = program(&[LAYOUT, STEP_FAST, TRACE, &experts]);
        let image = Image::new(config, family, index, &step, &layout, scratch_vectors)?;
        Ok(ProgramMachine {
            begin: program(&[LAYOUT, BEGIN_EPISODE]),
            step,
            update: program(&[LAYOUT, BANDIT_UPDATE_STEP, BANDIT, TRACE]),
            image,
            layout,
            executed: 0,
        })
    }

    /// Starts an episode.
    pub fn begin(&mut self) -> Result<(), StepError> {
        run(&self.begin, &mut self.image, &self.layout, &mut self.executed)
    }

    /// Chooses and acts.
    pub fn act(&mut self, observation: &Bits) -> Result<u16, StepError> {
        let first = self.layout.word("OBSERVATION");
        self.image.env_mut()[first..first + observation.0.len()].copy_from_slice(&observation.0);
        run(&self.step, &mut self.image, &self.layout, &mut self.executed)?;
        Ok(self.image.env_mut()[self.layout.word("ACTION")] as u16)
    }

    /// Learns from the outcome of the last action.
    pub fn learn(&mut self, outcome: &Outcome) -> Result<(), StepError> {
        let env = self.image.env_mut();
        env[self.layout.word("REWARD")] = i64::from(outcome.reward) as u64;
        env[self.layout.word("DONE")] = u64::from(outcome.done);
        env[self.layout.word("BAD")] = u64::from(outcome.bad);
        run(&self.update, &mut self.image, &self.layout, &mut self.executed)
    }

    /// Hands all waiting records over and makes room.
    pub fn drain<R>(&mut self, take: impl FnOnce(&[Record]) -> R) -> R {
        let records: Vec<Record> = self.image.records(&self.layout);
        self.image.trace_mut()[self.layout.word("WAITING")] = 0;
        take(&records)
    }

    /// The words of a bucket, as [`Bucket::words`](bem_learn::bucket::Bucket::words) gives them; `None` is the bucket of whole episodes.
    pub fn bucket(&self, bucket: Option<u16>) -> &[u64] {
        self.image.bucket(bucket)
    }

    /// The rolling hash of the recent past.
    pub fn context_hash(&self) -> u64 {
        self.image.work()[self.layout.word("CONTEXT_NOW")]
    }

    /// A word of WORK by its name in the layout, such as `STEP_GLOBAL`; `None` for a name that is not there.
    pub fn work_word(&self, name: &str) -> Option<u64> {
        self.image.work().get(self.layout.find(name)?).copied()
    }

    /// Instructions executed so far.
    pub fn executed(&self) -> u64 {
        self.executed
    }

    /// The three programs: start of an episode, step, update.
    pub fn programs(&self) -> [&Program; 3] {
        [&self.begin, &self.step, &self.update]
    }
}

/// Runs a program to its end on the image, each segment with the access it needs.
fn run(program: &Program, image: &mut Image, layout: &Layout, executed: &mut u64) -> Result<(), StepError> {
    let mut core = Core::new(program, 0, image.starts);
    let result = {
        let segments = image.segments;
        let mut memory = Memory::new(&mut image.shared, &mut image.state);
        for (base, segment) in segments {
            let constant = matches!(base, SegmentBase::Cfg | SegmentBase::Expert);
            memory.allow(segment.start, segment.words, if constant { Access::Read } else { Access::Write });
        }
        memory.allow_state(Access::Write);
        core.run(program, &mut memory, &mut NoCoprocessor, STEPS_MAX)
    };
    *executed += core.executed;
    result?;
    match image.work()[layout.word("STATUS")] {
        0 => Ok(()),
        _ => Err(StepError::TraceFull),
    }
}

#[cfg(test)]
mod tests;
