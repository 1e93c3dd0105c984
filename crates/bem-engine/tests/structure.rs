//! Changes of structure in real runs: what acts is made smaller by proof and goes on doing the same, contexts come and go,
//! and sequences become macros.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its world has failed")]

use bem_base::fixed::Fixed;
use bem_engine::learner::{Decision, Settings};
use bem_engine::solve::{Solution, solve};
use bem_evolve::patch::{Change, PatchKind, Subject};
use bem_games::compose::{NoPrograms, TaskTree};

fn run(task: &str, budget: u64) -> Solution {
    run_seeded(task, budget, 1)
}

fn run_seeded(task: &str, budget: u64, seed: u64) -> Solution {
    let game = TaskTree::parse(task).unwrap().build(seed, &NoPrograms).unwrap();
    solve(game.as_ref(), Settings { budget, ..Settings::new(seed) }, &mut |_| true).unwrap()
}

/// What was put into force, with the decision about it.
fn all_applied(solution: &Solution) -> Vec<(&Decision, Change)> {
    let decisions = solution.decisions.iter().filter(|decision| decision.accepted);
    let changes = solution.chronicle.applied().map(|patch| patch.change);
    decisions.zip(changes).collect()
}

fn applied(solution: &Solution, kind: PatchKind) -> Vec<(&Decision, Change)> {
    all_applied(solution).into_iter().filter(|(decision, _)| decision.kind == kind).collect()
}

#[test]
fn the_circuit_that_acts_at_the_end_was_made_smaller_by_proof() {
    // Without memory, and with a stack.
    for task in ["compare{bits=4}", "dyck{types=1,depth=3,length=8}"] {
        let solution = run(task, 30_000);
        assert!(solution.is_solved(), "{task}");
        let (synthesized, _) = applied(&solution, PatchKind::Synthesize).pop().unwrap();
        let (last, change) =
            applied(&solution, PatchKind::Superoptimize).pop().expect("there is a smaller circuit");
        assert!(last.gates < synthesized.gates, "{task}: {}", last.words);
        let Change::Superoptimize { circuit, .. } = &change else { panic!("another kind") };
        assert_eq!(solution.learned.agent.policy().circuit(), circuit, "{task}");
        assert_eq!(solution.learned.tally.applied as usize, all_applied(&solution).len());
        assert_eq!(solution.learned.tally.rolled_back, 0);
    }
}

#[test]
fn contexts_of_the_choice_come_and_go_by_patches_alone() {
    let solution = run("contextual_bandit{context_bits=3,noise_bits=5,arms=4}", 40_000);
    assert!(solution.is_solved());
    let (divided, joined) = (applied(&solution, PatchKind::Split), applied(&solution, PatchKind::Merge));
    assert!(!divided.is_empty() && !joined.is_empty(), "{:?}", solution.decisions);
    for (decision, change) in divided {
        assert!(matches!(change, Change::Split { .. }), "{}", decision.words);
        // What speaks for it was measured on the log.
        let bound = decision.evidence.lower_bound;
        assert!(Fixed::ZERO < bound && bound <= Fixed::ONE);
    }
    assert!(joined.iter().all(|(_, change)| matches!(change, Change::Join { .. })));
    let contexts = all_applied(&solution).iter().fold(1, |count, (_, change)| match change {
        Change::Split { after, .. } | Change::Join { after, .. } => after.bucket_count(),
        _ => count,
    });
    assert_eq!(solution.learned.words, format!("best action in each of {contexts} contexts"));
}

#[test]
fn a_context_whose_late_steps_contradict_it_forgets_what_came_before() {
    let solution = run_seeded("nonstationary_bandit{arms=4,segment=1000,gap=40}", 4_000, 2);
    let reset = applied(&solution, PatchKind::Reset);
    assert_eq!(reset.len(), 1, "{:?}", solution.decisions);
    let (decision, change) = &reset[0];
    assert!(
        // The first episode; its step is in the lower twenty bits.
        matches!(change, Change::Reset { bucket: 0, before } if (2_000..4_000).contains(&(before & 0xF_FFFF))),
        "{change:?}"
    );
    assert!(Fixed::ZERO < decision.evidence.lower_bound);
}

#[test]
fn a_sequence_that_is_played_in_every_episode_becomes_a_macro_that_does_the_same_with_fewer_gates() {
    let text = include_str!("../../../examples/games/key_and_door.json");
    let game = bem_games::import::mdp::read(text).unwrap();
    let settings = Settings { budget: 120_000, ..Settings::new(1) };
    let solution = solve(game.as_ref(), settings, &mut |_| true).unwrap();
    assert!(solution.is_solved(), "{:?}", solution.score());
    let macros = applied(&solution, PatchKind::Macro);
    assert_eq!(macros.len(), 1, "{:?}", solution.decisions);
    let (decision, change) = &macros[0];
    let Change::Play { sequence, policy, examples, .. } = change else { panic!("another form") };
    // Six steps to the key and three to the door, whatever is seen on the way.
    assert_eq!((sequence.len(), policy.reads().len()), (9, 0));
    assert!(!examples.is_empty() && 0 < decision.evidence.pairs && decision.evidence.mean == Fixed::ZERO);
    let (synthesized, _) = applied(&solution, PatchKind::Synthesize).pop().unwrap();
    assert!(policy.gates() < synthesized.gates);
    assert_eq!(solution.learned.agent.policy(), policy);
}

#[test]
fn without_synthesis_no_expert_changes() {
    let game = TaskTree::parse("compare{bits=2}").unwrap().build(1, &NoPrograms).unwrap();
    let settings = Settings { budget: 4_000, ..Settings::new(1) }.with(|config| config.synthesis = false);
    let solution = solve(game.as_ref(), settings, &mut |_| true).unwrap();
    assert_eq!(all_applied(&solution).len(), solution.decisions.len());
    assert!(all_applied(&solution).iter().all(|(_, change)| change.subject() == Subject::Routing));
}
