//! Equivalence answers beside those of abc and yosys, and the three circuit forms beside each other.
//!
//! Packages: berkeley-abc and yosys (Debian). Clauses: SCC-3, VM-2.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use bem_base::prng::Prng;
use bem_circuit::anf::Anf;
use bem_circuit::bdd::Bdd;
use bem_circuit::formats::{Format, Model};
use bem_circuit::netlist::{Builder, Netlist, Op, Signal};
use bem_circuit::testing::random_dense_netlist;
use bem_prover::Budget;
use bem_prover::equivalence::{Equivalence, check_equivalence, prove_equal};
use common::*;

/// The circuit with each gate written as a choice, and one gate's operation changed if asked for.
fn rewritten(circuit: &Netlist, changed: Option<(usize, Op)>) -> Netlist {
    let mut builder = Builder::new(circuit.inputs());
    let mut map: Vec<Signal> = (0..2 + circuit.inputs()).map(Signal::from_index).collect();
    for (position, gate) in circuit.gates().iter().enumerate() {
        let op = changed.filter(|(at, _)| *at == position).map_or(gate.op, |(_, op)| op);
        let (a, b) = (map[gate.a.index()], map[gate.b.index()]);
        let [low, high] = [Signal::FALSE, Signal::TRUE].map(|a| builder.gate(op, a, b));
        map.push(builder.mux(a, high, low));
    }
    let outputs: Vec<Signal> = circuit.outputs().iter().map(|output| map[output.index()]).collect();
    builder.finish(&outputs).unwrap()
}

/// Pairs of circuits, some equal and some not.
fn pairs() -> Vec<(Netlist, Netlist)> {
    let mut prng = Prng::stream(1, "other tools");
    let mut pairs = vec![
        (ripple_adder(16), prefix_adder(16)),
        (multiplier(4, false), multiplier(4, true)),
        (ripple_adder(16), rewritten(&prefix_adder(16), Some((60, Op::Nor)))),
    ];
    for round in 0..12 {
        let circuit = random_dense_netlist(&mut prng, 18, 60, 4);
        let changed = (round % 2 == 0).then(|| (prng.below(60) as usize, Op::ALL[prng.below(8) as usize]));
        let other = rewritten(&circuit, changed);
        pairs.push((circuit, other));
    }
    pairs
}

#[test]
fn abc_and_yosys_agree_on_every_pair() {
    let (mut equal, mut different) = (0, 0);
    for (left, right) in pairs() {
        let ours = match check_equivalence(&left, &right) {
            Equivalence::Equal(_) => true,
            Equivalence::Different { .. } => false,
            other => panic!("{other:?}"),
        };
        if ours {
            equal += 1
        } else {
            different += 1
        }
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        for (name, circuit) in [("gold", left), ("gate", right)] {
            let text = Format::Blif.write(&Model::new(name, circuit));
            std::fs::write(path(&format!("{name}.blif")), text).unwrap();
        }
        let (gold, gate) = (path("gold.blif"), path("gate.blif"));
        let output = run_tool("berkeley-abc", &["-c", &format!("cec {gold} {gate}")]);
        let text = String::from_utf8_lossy(&output.stdout);
        let abc = text.contains("Networks are equivalent");
        assert!(abc || text.contains("NOT EQUIVALENT"), "abc says: {text}");
        assert_eq!(ours, abc, "{text}");
        let script = format!(
            "read_blif {gold}; read_blif {gate}; miter -equiv -flatten gold gate both; \
             sat -verify -prove trigger 0 both"
        );
        let output = run_tool("yosys", &["-q", "-p", &script]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || text.contains("proof did fail"), "yosys says: {text}");
        assert_eq!(ours, output.status.success(), "{text}");
    }
    assert!(4 < equal && 2 < different, "{equal} equal, {different} different");
}

#[test]
fn netlist_anf_and_bdd_are_the_same_function_by_proof() {
    let mut prng = Prng::stream(2, "forms");
    for round in 0..60 {
        let circuit = random_dense_netlist(&mut prng, 3 + round % 6, 24, 3);
        let anf = Anf::from_netlist(&circuit).unwrap().to_netlist().unwrap();
        let bdd = Bdd::from_netlist(&circuit).unwrap().to_netlist().unwrap();
        for (left, right) in [(&circuit, &anf), (&circuit, &bdd), (&anf, &bdd)] {
            assert!(prove_equal(left, right, Budget::DEFAULT).is_equal());
        }
    }
}
