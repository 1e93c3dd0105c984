//! The control core: how many instructions a second its interpreter runs, and the step as a program beside the machine's own.
//! Clauses: ISA-5.

use super::{Benchmark, Measurement, minimum_nanoseconds};
use anyhow::{Context as _, ensure};
use bem_base::environment::{Environment, Outcome};
use bem_games::{catalog, game::Family};
use bem_isa::assemble::assemble;
use bem_isa::interpreter::{Core, NoCoprocessor, SegmentStarts};
use bem_isa::memory::Memory;
use bem_isa::programs::ProgramMachine;
use bem_machine::boot::experts;
use bem_machine::config::GenesisConfig;
use bem_machine::machine::Machine;
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::route::directory::{Directory, RouteInput};
use bem_machine::trace::Record;
use std::collections::BTreeMap;
use std::hint::black_box;

/// Benchmarks of this area.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "isa_interpreter",
        area: "isa",
        about: "instructions a second, mixed arithmetic, memory and branches",
        run: interpreter,
    },
    Benchmark {
        name: "isa_step",
        area: "isa",
        about: "STEP_FAST and its update as programs: held against the machine's own step in every family, then timed",
        run: step,
    },
];

/// Steps for which programs and machine are compared in each family.
const COMPARED: u64 = 2_000;
/// Steps between two looks at statistics and trace, which has room for those of as many steps.
const LOOK: u64 = 256;
/// The only family of a machine here.
const FAMILY: FamilyIndex = FamilyIndex(0);

/// A loop of sixteen instructions: arithmetic, shifts, loads, stores, a predicate and a branch.
const LOOP: &str = "
    li x1, 20000
    li x2, 64
    li x3, 12345
again:
    add x4, x3, x1
    xor x3, x4, x3
    shl x5, x3, 7
    xor x3, x3, x5
    shr x5, x3, 9
    xor x3, x3, x5
    mullo x6, x3, x2
    and x7, x6, x2
    st x3, [x2 + 8]
    ld x8, [x2 + 8]
    sub x9, x8, x3
    pltu p1, x6, x3
    sel x10, x6, x3, p1
    or x11, x10, x7
    addi x1, x1, -1
    bne x1, x0, again
";

fn interpreter() -> anyhow::Result<Measurement> {
    let program = assemble(LOOP)?;
    let mut executed = 0;
    let nanoseconds = minimum_nanoseconds(20, 1, || {
        let (mut shared, mut state) = (vec![0; 64], vec![0; 4]);
        let mut core = Core::new(&program, 1, SegmentStarts::default());
        let mut memory = Memory::open(&mut shared, &mut state);
        core.run(&program, &mut memory, &mut NoCoprocessor, 1_000_000).expect("the loop ends");
        executed = core.executed;
        black_box(core.x[3]);
    });
    // The floor is the same loop as the compiler lays it down: what no interpreter can reach.
    let native = minimum_nanoseconds(20, 1, || {
        let (mut x1, x2, mut x3) = (black_box(20_000u64), black_box(64u64), black_box(12_345u64));
        let (mut x9, mut x11) = (0, 0);
        let mut memory = [0u64; 64];
        while x1 != 0 {
            x3 ^= x3.wrapping_add(x1);
            x3 ^= x3 << 7;
            x3 ^= x3 >> 9;
            let x6 = x3.wrapping_mul(x2);
            // The place is opaque, so that the compiler really stores and really loads.
            memory[black_box(9)] = x3;
            x9 = memory[black_box(9)].wrapping_sub(x3);
            x11 = if x6 < x3 { x6 } else { x3 } | (x6 & x2);
            x1 -= 1;
        }
        black_box((x3, x9, x11));
    });
    let rate = executed as f64 / nanoseconds * 1e9;
    let floor = executed as f64 / native * 1e9;
    Ok(Measurement::new("isa_interpreter", rate, "instructions/s", floor, "the same loop compiled"))
}

/// One lane of one world: the machine with its boot experts, one of which is chosen in each of up to eight buckets.
struct Lane {
    world: Box<dyn Environment + Send>,
    machine: Machine,
    episodes: u64,
}

impl Lane {
    fn new(family: &dyn Family) -> anyhow::Result<Lane> {
        let settings = catalog::settings(family, &BTreeMap::new())?;
        let game = catalog::build(family, &settings, 1)?;
        let (shape, mut machine) = (game.shape().clone(), Machine::new(GenesisConfig::default(), 1));
        machine.add_family(shape.clone())?;
        machine.install_boot_experts(FAMILY, &experts(shape.actions, 16))?;
        if 0 < shape.observation_bits {
            let inputs: Vec<RouteInput> = (0..shape.observation_bits).map(RouteInput::State).collect();
            let directory = Directory::hashed(&inputs, inputs.len().min(3), 9)?;
            machine.family_mut(FAMILY)?.reroute(directory);
        }
        Ok(Lane { world: game.start(), machine, episodes: 0 })
    }

    fn programs(&self) -> anyhow::Result<ProgramMachine> {
        Ok(ProgramMachine::new(self.machine.config(), self.machine.family(FAMILY)?, FAMILY)?)
    }

    /// Begins the next episode of the world.
    fn reset(&mut self) -> anyhow::Result<()> {
        self.episodes += 1;
        Ok(self.world.reset(self.episodes)?)
    }

    /// A step of the machine's own; whether the episode is over.
    fn step(&mut self, is_new: bool) -> anyhow::Result<(u16, Outcome)> {
        if is_new {
            self.reset()?;
            self.machine.begin(FAMILY, TaskSerial(1))?;
        }
        let action = self.machine.act(self.world.observation())?;
        let outcome = self.world.step(action)?;
        self.machine.learn(&outcome)?;
        Ok((action, outcome))
    }

    /// The records that wait in the trace, which is empty afterwards.
    fn records(&mut self) -> Vec<Record> {
        self.machine.trace_mut().drain(<[Record]>::to_vec)
    }
}

/// The same steps by the machine and by the programs: actions and context after every step, and every now and then the records
/// and all statistics. The first difference is an error.
fn compare(family: &dyn Family, steps: u64) -> anyhow::Result<()> {
    let mut lane = Lane::new(family)?;
    let mut programs = lane.programs()?;
    let mut is_new = true;
    for step in 0..steps {
        if is_new {
            lane.reset()?;
            lane.machine.begin(FAMILY, TaskSerial(1))?;
            programs.begin()?;
        }
        let seen = *lane.world.observation();
        let (action, twin) = (lane.machine.act(&seen)?, programs.act(&seen)?);
        ensure!(action == twin, "step {step}: the machine takes action {action}, the program {twin}");
        let outcome = lane.world.step(action)?;
        lane.machine.learn(&outcome)?;
        programs.learn(&outcome)?;
        let is_same = programs.context_hash() == lane.machine.lane().context_hash();
        ensure!(is_same, "step {step}: the contexts differ");
        is_new = outcome.done;
        if step % LOOK == LOOK - 1 || step + 1 == steps {
            let twin = programs.drain(<[Record]>::to_vec);
            ensure!(lane.records() == twin && !twin.is_empty(), "step {step}: the records differ");
            compare_statistics(&lane.machine, &programs, step)?;
        }
    }
    Ok(())
}

fn compare_statistics(machine: &Machine, programs: &ProgramMachine, step: u64) -> anyhow::Result<()> {
    let family = machine.family(FAMILY)?;
    let is_same = programs.bucket(None) == family.episode_bucket().words();
    ensure!(is_same, "step {step}: the statistics of whole episodes differ");
    for (index, bucket) in family.buckets().iter().enumerate() {
        let is_same = programs.bucket(Some(index as u16)) == bucket.words();
        ensure!(is_same, "step {step}: the statistics of bucket {index} differ");
    }
    Ok(())
}

fn step() -> anyhow::Result<Measurement> {
    let families = catalog::families();
    for family in families {
        let name = family.name();
        compare(*family, COMPARED)
            .with_context(|| format!("{name}: the step as a program is not the machine's own"))?;
    }
    let family = catalog::family("contextual_bandit")?;
    let mut lane = Lane::new(family)?;
    let mut programs = lane.programs()?;
    let (mut is_new, mut taken, mut played) = (true, 0, 0);
    let own = minimum_nanoseconds(20, LOOK as u32, || {
        let (_, outcome) = lane.step(is_new).expect("the comparison took the same steps");
        is_new = outcome.done;
        taken += 1;
        if taken % LOOK == 0 {
            black_box(lane.records());
        }
    });
    let mut world = Lane::new(family)?;
    let mut is_new = true;
    let value = minimum_nanoseconds(20, LOOK as u32, || {
        if is_new {
            world.reset().and_then(|()| Ok(programs.begin()?)).expect("as above");
        }
        let action = programs.act(world.world.observation()).expect("as above");
        let outcome = world.world.step(action).expect("as above");
        programs.learn(&outcome).expect("as above");
        is_new = outcome.done;
        played += 1;
        if played % LOOK == 0 {
            programs.drain(|records| black_box(records.len()));
        }
    });
    let steps = COMPARED * families.len() as u64;
    Ok(Measurement::new("isa_step", value, "ns", own, "the machine's own step")
        .with("worlds", families.len() as f64)
        .with("steps_compared", steps as f64)
        .with("instructions_a_step", programs.executed() as f64 / played as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_as_a_program_takes_the_machines_own_steps_in_every_family() {
        for family in catalog::families() {
            compare(*family, LOOK).unwrap_or_else(|error| panic!("{}: {error:#}", family.name()));
        }
    }
}
