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
