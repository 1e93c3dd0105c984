//! Solvers that nobody here wrote: their proofs before our checker, their answers beside ours.
//!
//! Packages: cadical, picosat, minisat, cryptominisat (Debian) and python-sat (PyPI). Clauses: SCC-3, SCC-4.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use bem_base::prng::Prng;
use bem_checker::drat;
use bem_prover::encode::miter;
use bem_prover::{Budget, Cnf, Outcome, solve};
use common::*;
use std::path::Path;

/// A formula on disk, for tools.
struct OnDisk {
    directory: tempfile::TempDir,
}

impl OnDisk {
    fn new(cnf: &Cnf) -> OnDisk {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("formula.cnf"), cnf.to_dimacs()).unwrap();
        OnDisk { directory }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }
}

fn unsatisfiable_formulas() -> Vec<Cnf> {
    let mut formulas: Vec<Cnf> =
        vec![pigeonhole(5), pigeonhole(6), miter(&ripple_adder(8), &prefix_adder(8))];
    formulas.push(miter(&multiplier(4, false), &multiplier(4, true)));
    let mut prng = Prng::stream(1, "other solvers");
    while formulas.len() < 10 {
        let cnf = random_3_sat(&mut prng, 80, 420);
        if solve(&cnf, &[], Budget::DEFAULT).is_unsatisfiable() {
            formulas.push(cnf);
        }
    }
    formulas
}

/// The proof is accepted for its formula and refused for a formula without clauses.
fn assert_proves(cnf: &Cnf, proof: &Path, solver: &str) {
    let proof = std::fs::read(proof).unwrap();
    let accepted = drat::check(cnf, &proof);
    assert!(accepted.is_ok(), "{solver}: {accepted:?}");
    let empty = Cnf::new(cnf.variables());
    assert!(drat::check(&empty, &proof).is_err(), "{solver}: nothing follows from no clauses");
}

#[test]
fn proofs_by_debians_cadical_are_accepted_in_text_and_binary() {
    for cnf in unsatisfiable_formulas() {
        let disk = OnDisk::new(&cnf);
        for form in ["--binary", "--no-binary"] {
            let proof = disk.path("proof");
            let output = run_tool("cadical", &["-q", form, &disk.path("formula.cnf"), &proof]);
            assert_eq!(output.status.code(), Some(20));
            assert_proves(&cnf, Path::new(&proof), form);
        }
    }
}

#[test]
fn proofs_by_picosat_are_accepted() {
    for cnf in unsatisfiable_formulas() {
        let disk = OnDisk::new(&cnf);
        let proof = disk.path("proof");
        run_tool("picosat.trace", &[&disk.path("formula.cnf"), "-R", &proof]);
        // Its first line names the format; the rest is DRUP.
        let text = std::fs::read_to_string(&proof).unwrap();
        let (header, steps) = text.split_once('\n').unwrap();
        assert!(header.starts_with("%RUPD32"), "{header}");
        std::fs::write(&proof, steps).unwrap();
        assert_proves(&cnf, Path::new(&proof), "picosat");
    }
}

/// Glucose, Lingeling, MapleCOMSPS, MapleCM and two more versions of CaDiCaL through python-sat.
const PYTHON_SAT: &str = "
import sys
from pysat.solvers import Solver
from pysat.formula import CNF
formula = CNF(from_file=sys.argv[1])
for name in ['g3', 'g4', 'lgl', 'cd153', 'cd195', 'mcb', 'mcm']:
    with Solver(name=name, bootstrap_with=formula, with_proof=True) as solver:
        assert solver.solve() is False
        with open(sys.argv[2] + name, 'w') as file:
            file.write('\\n'.join(solver.get_proof()) + '\\n')
";

#[test]
fn proofs_by_seven_solvers_of_python_sat_are_accepted() {
    for cnf in unsatisfiable_formulas().iter().take(6) {
        let disk = OnDisk::new(cnf);
        let proof = disk.path("proof.");
        let output = run_tool("python3", &["-c", PYTHON_SAT, &disk.path("formula.cnf"), &proof]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "python-sat is there: run `cargo xtask test`, which installs it: {message}"
        );
        for name in ["g3", "g4", "lgl", "cd153", "cd195", "mcb", "mcm"] {
            assert_proves(cnf, Path::new(&format!("{proof}{name}")), name);
        }
    }
}

#[test]
fn four_other_solvers_give_the_same_answers() {
    let mut prng = Prng::stream(2, "answers");
    let (mut with, mut without) = (0, 0);
    for _ in 0..25 {
        let cnf = random_3_sat(&mut prng, 100, 426);
        let disk = OnDisk::new(&cnf);
        let expected = match solve(&cnf, &[], Budget::DEFAULT) {
            Outcome::Satisfiable { .. } => 10,
            Outcome::Unsatisfiable { .. } => 20,
            Outcome::Undecided(why) => panic!("{why}"),
        };
        if expected == 10 {
            with += 1
        } else {
            without += 1
        }
        for (solver, options) in [
            ("cadical", &["-q"][..]),
            ("minisat", &["-verb=0"]),
            ("picosat", &[]),
            ("cryptominisat5", &["--verb", "0"]),
        ] {
            let formula = disk.path("formula.cnf");
            let arguments: Vec<&str> = options.iter().copied().chain([formula.as_str()]).collect();
            assert_eq!(run_tool(solver, &arguments).status.code(), Some(expected), "{solver}");
        }
    }
    assert!(3 < with && 3 < without, "{with} with a model, {without} without");
}
