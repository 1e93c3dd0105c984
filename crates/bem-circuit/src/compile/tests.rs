//! The compiler against the interpreter, on circuits made to hurt it.

use super::*;
use crate::netlist::{Gate, Netlist, Op, Signal};
use crate::placed::{Placement, Target};
use crate::testing::{random_dense_netlist, random_lanes, random_netlist, random_placement};
use bem_base::prng::Prng;

/// Runs both evaluators on random lanes and compares all of state and results.
fn check(placed: &PlacedCircuit, prng: &mut Prng, scratch: &mut Scratch) {
    let compiled = compile_all(core::slice::from_ref(placed)).expect("AVX2").remove(0);
    let state: Vec<LaneWord> = (0..placed.planes() + 2).map(|_| random_lanes(prng)).collect();
    let results: Vec<LaneWord> = (0..placed.results() + 2).map(|_| random_lanes(prng)).collect();
    for mask in [random_lanes(prng), LaneWord::ONES, LaneWord::ZERO] {
        let (mut state_compiled, mut results_compiled) = (state.clone(), results.clone());
        compiled.evaluate(&mut state_compiled, &mask, &mut results_compiled, scratch);
        let (mut state_interpreted, mut results_interpreted) = (state.clone(), results.clone());
        let interpreted = Interpreted::new(placed.clone());
        interpreted.evaluate(&mut state_interpreted, &mask, &mut results_interpreted, scratch);
        assert_eq!(state_compiled, state_interpreted, "{placed:?}");
        assert_eq!(results_compiled, results_interpreted, "{placed:?}");
    }
}

/// Whether there is anything to compare with here; on a machine without AVX2 the interpreter is all there is.
fn skip() -> bool {
    !is_supported()
}

#[test]
fn compiled_and_interpreted_circuits_agree_on_thousands_of_random_circuits() {
    if skip() {
        return;
    }
    let mut prng = Prng::stream(1, "compile");
    let mut scratch = Scratch::new();
    for _ in 0..6_000 {
        let (inputs, gates) = (prng.below(24) as usize, prng.below(90) as usize);
        let outputs = prng.below(16) as usize;
        let circuit = random_netlist(&mut prng, inputs, gates, outputs);
        let planes = 16 + prng.below(16) as usize;
        check(&random_placement(&mut prng, circuit, planes), &mut prng, &mut scratch);
    }
}

#[test]
fn dense_circuits_agree_on_few_planes_where_reads_and_writes_collide() {
    if skip() {
        return;
    }
    let mut prng = Prng::stream(2, "collide");
    let mut scratch = Scratch::new();
    for _ in 0..3_000 {
        let circuit = random_dense_netlist(&mut prng, 8, 24, 8);
        check(&random_placement(&mut prng, circuit, 8), &mut prng, &mut scratch);
    }
}

#[test]
fn circuits_that_spill_heavily_agree() {
    if skip() {
        return;
    }
    let mut prng = Prng::stream(3, "spill");
    let mut scratch = Scratch::new();
    let mut spilled = 0;
    for _ in 0..300 {
        let (inputs, gates) = (1 + prng.below(300) as usize, 500 + prng.below(1_500) as usize);
        let circuit = random_netlist(&mut prng, inputs, gates, 200);
        let placed = random_placement(&mut prng, circuit, 400);
        spilled += assemble(&placed).1;
        check(&placed, &mut prng, &mut scratch);
    }
    assert!(10_000 < spilled, "{spilled} words of working memory in all");
}

#[test]
fn circuits_without_gates_move_swap_and_invert_planes() {
    if skip() {
        return;
    }
    let mut prng = Prng::stream(4, "moves");
    let mut scratch = Scratch::new();
    for _ in 0..2_000 {
        // Inputs, constants and inverters only, written onto the planes that are read.
        let gates: Vec<Gate> =
            (0..4).map(|input| Gate { op: Op::Nand, a: Signal::input(input), b: Signal::TRUE }).collect();
        let outputs = (0..5).map(|_| Signal::from_index(prng.below(10) as usize)).collect();
        let circuit = Netlist::new(4, gates, outputs).unwrap();
        check(&random_placement(&mut prng, circuit, 5), &mut prng, &mut scratch);
    }
    let rotation = Netlist::new(20, vec![], (0..20).map(Signal::input).collect()).unwrap();
    let reads: Vec<u16> = (0..20).collect();
    let writes: Vec<u16> = (0..20).map(|plane| (plane + 1) % 20).collect();
    let placed = PlacedCircuit::new(rotation, Placement::on_planes(&reads, &writes), 100).unwrap();
    check(&placed, &mut prng, &mut scratch);
}

#[test]
fn guards_that_are_constant_write_everything_or_nothing() {
    if skip() {
        return;
    }
    let mut prng = Prng::stream(5, "guards");
    for guard in [Signal::FALSE, Signal::TRUE, Signal::input(0)] {
        for value in [Signal::FALSE, Signal::TRUE, Signal::input(0), Signal::input(1)] {
            let circuit = Netlist::new(2, vec![], vec![guard, value, value]).unwrap();
            let targets = vec![Target::Guard, Target::Plane(0), Target::Result(1)];
            let placed = PlacedCircuit::new(circuit, Placement { reads: vec![0, 1], targets }, 100).unwrap();
            check(&placed, &mut prng, &mut Scratch::new());
        }
    }
}

#[test]
fn the_largest_circuits_agree() {
    if skip() {
        return;
    }
    let mut prng = Prng::stream(6, "largest");
    let circuit = random_netlist(&mut prng, 512, 8_192, 256);
    check(&random_placement(&mut prng, circuit, 1_024), &mut prng, &mut Scratch::new());
}

#[test]
fn circuits_compiled_together_keep_their_own_meaning() {
    if skip() {
        return;
    }
    let mut prng = Prng::stream(7, "together");
    let circuits: Vec<PlacedCircuit> = (0..16)
        .map(|_| {
            let circuit = random_dense_netlist(&mut prng, 16, 64, 8);
            random_placement(&mut prng, circuit, 32)
        })
        .collect();
    let mut scratch = Scratch::new();
    let state: Vec<LaneWord> = (0..32).map(|_| random_lanes(&mut prng)).collect();
    for (circuit, evaluator) in circuits.iter().zip(Evaluator::for_all(&circuits)) {
        let (mut together, mut alone) = (state.clone(), state.clone());
        let (mut results, mut results_alone) = (vec![LaneWord::ZERO; 256], vec![LaneWord::ZERO; 256]);
        evaluator.evaluate(&mut together, &LaneWord::ONES, &mut results, &mut scratch);
        Interpreted::new(circuit.clone()).evaluate(
            &mut alone,
            &LaneWord::ONES,
            &mut results_alone,
            &mut scratch,
        );
        assert_eq!((together, results), (alone, results_alone));
    }
}

#[test]
fn a_circuit_means_the_same_at_every_place_and_places_do_not_share_cache_lines() {
    let mut prng = Prng::stream(8, "places");
    let circuit = random_dense_netlist(&mut prng, 16, 64, 8);
    let placed = random_placement(&mut prng, circuit, 24);
    let state: Vec<LaneWord> = (0..placed.planes()).map(|_| random_lanes(&mut prng)).collect();
    let mut offsets = Vec::new();
    let mut seen = Vec::new();
    for place in 0..16 {
        let (mut planes, mut results) = (state.clone(), vec![LaneWord::ZERO; placed.results()]);
        let evaluator = Evaluator::at(&placed, place);
        evaluator.evaluate(&mut planes, &LaneWord::ONES, &mut results, &mut Scratch::new());
        seen.push((planes, results));
        if let Evaluator::Compiled(compiled) = evaluator {
            offsets.push(compiled.offset % PAGE_BYTES / ALIGNMENT);
        }
    }
    assert!(seen.iter().all(|one| *one == seen[0]));
    let count = offsets.len();
    offsets.sort_unstable();
    offsets.dedup();
    assert_eq!(offsets.len(), count, "{offsets:?}");
}

#[test]
fn a_gate_never_takes_more_than_one_instruction() {
    // Sixteen inputs, 64 gates, eight masked writes of three operations each: complements and reads are free.
    let mut prng = Prng::stream(8, "instructions");
    let circuit = random_dense_netlist(&mut prng, 16, 64, 8);
    let placement = Placement { reads: (0..16).collect(), targets: (16..24).map(Target::Plane).collect() };
    let placed = PlacedCircuit::new(circuit, placement, 1_000).unwrap();
    let program = lower::lower(&placed);
    let combined = program.steps.iter().filter(|step| matches!(step, lower::Step::Combine { .. })).count();
    assert!(combined <= 64 + 8 * 3, "{combined}");
}

#[test]
#[should_panic(expected = "3 planes given, 4 needed")]
fn a_state_with_too_few_planes_is_refused() {
    let circuit = Netlist::new(1, vec![], vec![Signal::input(0)]).unwrap();
    let placed = PlacedCircuit::new(circuit, Placement::on_planes(&[3], &[0]), 100).unwrap();
    let mut state = [LaneWord::ZERO; 3];
    Evaluator::new(&placed).evaluate(&mut state, &LaneWord::ONES, &mut [], &mut Scratch::new());
}
