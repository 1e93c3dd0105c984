//! Changes of structure in real runs: what acts is made smaller by proof, and goes on doing the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its world has failed")]

use bem_engine::learner::{Decision, Settings};
use bem_engine::solve::{Solution, solve};
use bem_evolve::patch::{Change, PatchKind};
use bem_games::compose::{NoPrograms, TaskTree};

fn run(task: &str, budget: u64) -> Solution {
    let game = TaskTree::parse(task).unwrap().build(1, &NoPrograms).unwrap();
    solve(game.as_ref(), Settings { budget, ..Settings::new(1) }, &mut |_| true).unwrap()
}

fn applied(solution: &Solution, kind: PatchKind) -> Vec<&Decision> {
    solution.decisions.iter().filter(|decision| decision.kind == kind && decision.accepted).collect()
}

#[test]
fn the_circuit_that_acts_at_the_end_was_made_smaller_by_proof() {
    // Without memory, and with a stack.
    for task in ["compare{bits=4}", "dyck{types=1,depth=3,length=8}"] {
        let solution = run(task, 30_000);
        assert!(solution.is_solved(), "{task}");
        let synthesized = applied(&solution, PatchKind::Synthesize);
        let smaller = applied(&solution, PatchKind::Superoptimize);
        let last = smaller.last().expect("there is a smaller circuit");
        assert!(last.gates < synthesized.last().unwrap().gates, "{task}: {}", last.words);
        let change =
            solution.chronicle.applied().last().expect("what is in force is in the chronicle").change;
        let Change::Superoptimize { circuit, .. } = &change else { panic!("another kind") };
        assert_eq!(solution.learned.agent.policy().circuit(), circuit, "{task}");
        assert_eq!(solution.learned.tally.applied as usize, synthesized.len() + smaller.len());
        assert_eq!(solution.learned.tally.rolled_back, 0);
    }
}

#[test]
fn without_synthesis_no_structure_changes() {
    let game = TaskTree::parse("compare{bits=2}").unwrap().build(1, &NoPrograms).unwrap();
    let settings = Settings { budget: 4_000, synthesis: false, ..Settings::new(1) };
    let solution = solve(game.as_ref(), settings, &mut |_| true).unwrap();
    assert!(solution.decisions.is_empty());
}
