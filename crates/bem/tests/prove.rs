//! `bem prove` and `bem synth` as a user meets them. Clauses: SCC-3, SCC-4, SCC-7.

use std::path::Path;
use std::process::Command;

/// Exit code, standard output and standard error of a call in a directory.
fn bem(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("the binary was built");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
    (output.status.code().expect("it exits"), text(output.stdout), text(output.stderr))
}

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory can be made");
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).expect("a file can be written");
    }
    directory
}

const SQUARE: &str = "p cnf 2 4\n1 2 0\n1 -2 0\n-1 2 0\n-1 -2 0\n";

#[test]
fn a_refutation_is_written_checked_and_refused_for_another_formula() {
    let files = directory(&[("square.cnf", SQUARE), ("open.cnf", "p cnf 2 3\n1 2 0\n1 -2 0\n-1 2 0\n")]);
    let (code, output, _) = bem(files.path(), &["prove", "sat", "square.cnf", "--proof", "square.lrat"]);
    assert_eq!((code, output.lines().next()), (0, Some("s UNSATISFIABLE")));
    let (code, output, _) = bem(files.path(), &["prove", "check", "square.cnf", "square.lrat"]);
    assert_eq!((code, output.lines().next()), (0, Some("s VERIFIED UNSAT")));
    let (code, output, _) = bem(files.path(), &["prove", "check", "open.cnf", "square.lrat"]);
    assert_eq!((code, output.lines().next()), (1, Some("s NOT VERIFIED")));
    let (code, output, _) = bem(files.path(), &["prove", "sat", "open.cnf"]);
    assert_eq!((code, output.as_str()), (0, "s SATISFIABLE\nv 1 2\nv 0\n"));
}

#[test]
fn bad_input_is_one_line_with_the_place_and_exit_code_2() {
    let files = directory(&[
        ("bad.cnf", "p cnf 2 1\n1 x 0\n"),
        ("bad.txt", "01 1\n0x 1\n"),
        ("bad.net", "n0 = ?\n"),
        ("empty.net", ""),
    ]);
    let (code, _, error) = bem(files.path(), &["prove", "sat", "bad.cnf"]);
    assert_eq!(
        (code, error.as_str()),
        (2, "bem: bad.cnf is not a DIMACS formula: line 2: \"x\" is not a literal\n")
    );
    let (code, _, error) = bem(files.path(), &["synth", "bad.txt"]);
    assert_eq!(
        (code, error.as_str()),
        (2, "bem: bad.txt is not a table: line 2: 'x' is none of 0, 1 and -\n")
    );
    let (code, _, error) = bem(files.path(), &["prove", "equiv", "bad.net", "bad.net"]);
    assert!(
        code == 2 && error.starts_with("bem: bad.net is not a circuit: ") && error.lines().count() == 1,
        "{error}"
    );
    let (code, _, error) = bem(files.path(), &["prove", "equiv", "empty.net", "empty.net"]);
    assert_eq!((code, error.as_str()), (2, "bem: empty.net is not a circuit: it has no outputs\n"));
    let (code, _, error) = bem(files.path(), &["prove", "sat", "missing.cnf"]);
    assert!(code == 2 && error == "bem: missing.cnf does not exist\n", "{error}");
}

#[test]
fn a_full_adder_takes_five_gates_and_equals_its_other_forms() {
    let files = directory(&[
        ("adder.txt", "01101001 # sum\n00010111 # carry\n"),
        ("sum.txt", "01101001\n00010110\n"),
    ]);
    let (code, output, _) = bem(files.path(), &["synth", "adder.txt", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&output).expect("one object");
    assert_eq!((code, &object["gates"], &object["minimal"]), (0, &5.into(), &true.into()));
    for (table, format) in
        [("adder.txt", "net"), ("adder.txt", "blif"), ("adder.txt", "aiger-ascii"), ("sum.txt", "net")]
    {
        let (code, text, _) = bem(files.path(), &["synth", table, "--format", format]);
        assert_eq!(code, 0);
        std::fs::write(files.path().join(format!("{table}.{format}")), text).expect("a file can be written");
    }
    for other in ["adder.txt.blif", "adder.txt.aiger-ascii"] {
        let (code, output, _) = bem(files.path(), &["prove", "equiv", "adder.txt.net", other]);
        assert_eq!((code, output.as_str()), (0, "equal: all 8 assignments agree\n"));
        let (code, output, _) =
            bem(files.path(), &["prove", "equiv", "adder.txt.net", other, "--exhaustive", "0"]);
        assert!(code == 0 && output.starts_with("equal: proof of "), "{output}");
    }
    let (code, output, _) = bem(files.path(), &["prove", "equiv", "adder.txt.net", "sum.txt.net"]);
    assert_eq!((code, output.as_str()), (1, "different\ninputs  111\nleft    11\nright   10\n"));
}

#[test]
fn too_few_gates_and_too_small_budgets_are_told_apart() {
    let files = directory(&[("majority.txt", "00010111\n")]);
    let (code, output, _) = bem(files.path(), &["synth", "majority.txt", "--max-gates", "3"]);
    assert!(code == 1 && output.starts_with("no circuit within the bound"), "{output}");
    let (code, output, _) =
        bem(files.path(), &["synth", "majority.txt", "--conflicts", "0", "--max-gates", "3"]);
    assert!(
        code == 1 && output.starts_with("no circuit found within the bound; the budget ran out"),
        "{output}"
    );
}

#[test]
fn assumptions_that_clash_are_named_by_a_core_whose_proof_is_accepted() {
    // 1 -> 2 -> 3, and 4 is of no concern.
    let files = directory(&[("chain.cnf", "p cnf 4 2\n-1 2 0\n-2 3 0\n"), ("square.cnf", SQUARE)]);
    let sat = |rest: &[&str]| bem(files.path(), &[&["prove", "sat", "chain.cnf"], rest].concat());
    let (code, output, _) = sat(&["--assume", "4,1,-3", "--proof", "chain.lrat"]);
    assert_eq!(code, 0);
    assert!(output.starts_with("s UNSATISFIABLE\n") && output.ends_with("a 1 -3\na 0\n"), "{output}");
    let check =
        |rest: &[&str]| bem(files.path(), &[&["prove", "check", "chain.cnf", "chain.lrat"], rest].concat());
    assert_eq!((check(&["--assume", "1,-3"]).0, check(&["--assume", "1,-3,4"]).0), (0, 0));
    // Neither the formula alone nor other assumptions are refuted by that proof.
    assert_eq!((check(&[]).0, check(&["--assume", "1,4"]).0), (1, 1));
    let (_, output, _) = sat(&["--assume", "4,1,-3", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&output).expect("one object");
    assert_eq!((&object["core"], &object["answer"]), (&serde_json::json!([1, -3]), &"unsatisfiable".into()));
    let (code, output, _) = sat(&["--assume", "1"]);
    assert_eq!((code, output.lines().nth(1)), (0, Some("v 1 2 3 -4")));
    // A formula without models needs no assumption; the core is what the solver used, and need not be the smallest.
    let (code, output, _) = bem(files.path(), &["prove", "sat", "square.cnf", "--assume", "1"]);
    assert!(code == 0 && output.starts_with("s UNSATISFIABLE\n") && output.ends_with("\na 0\n"), "{output}");
    assert!(!output.contains("a -1") && !output.contains("a 2"), "{output}");
}

#[test]
fn assumptions_that_are_no_literals_or_opposites_are_refused_in_one_line() {
    let files = directory(&[("square.cnf", SQUARE)]);
    for (text, said) in [
        ("3", "bem: --assume 3 is no literal of the formula, whose variables are 1 to 2\n"),
        ("0", "bem: --assume 0 is no literal of the formula, whose variables are 1 to 2\n"),
        ("1,-1", "bem: --assume -1 and 1 are opposites: no model has both\n"),
    ] {
        let (code, _, error) = bem(files.path(), &["prove", "sat", "square.cnf", "--assume", text]);
        assert_eq!((code, error.as_str()), (2, said));
    }
}

#[test]
fn conditions_over_one_base_hold_fail_or_say_nothing_each_for_itself() {
    let files = directory(&[
        ("base.cnf", "p cnf 2 2\n-1 2 0\n1 0\n"),
        ("two.cnf", "p cnf 2 1\n-2 0\n"),
        // Variables above the base's are the condition's own: 3 may be said again by another.
        ("own.cnf", "p cnf 3 2\n-2 3 0\n-3 0\n"),
        ("open.cnf", "p cnf 3 1\n3 0\n"),
        ("none.cnf", "p cnf 1 2\n1 0\n-1 0\n"),
    ]);
    let holds = |rest: &[&str]| bem(files.path(), &[&["prove", "holds"], rest].concat());
    let (code, output, _) = holds(&["base.cnf", "two.cnf", "own.cnf", "two.cnf"]);
    assert_eq!((code, output.matches(": holds: proof of ").count()), (0, 3), "{output}");
    let (code, output, _) = holds(&["base.cnf", "two.cnf", "open.cnf", "own.cnf", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&output).expect("one object");
    let answers: Vec<&str> = object["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["answer"].as_str().unwrap())
        .collect();
    assert_eq!((code, answers), (1, vec!["holds", "refuted", "holds"]), "{object}");
    assert_eq!(object["conditions"][1]["model"], serde_json::json!([1, 2]));
    let (code, output, _) = holds(&["none.cnf", "two.cnf"]);
    assert!(code == 1 && output.starts_with("two.cnf: vacuous: "), "{output}");
    let (code, _, error) = holds(&["base.cnf", "missing.cnf"]);
    assert_eq!((code, error.as_str()), (2, "bem: missing.cnf does not exist\n"));
}
