//! Proofs that are accepted, proofs that are refused with their place, and bytes that are no proof.

use super::*;

fn square() -> Cnf {
    Cnf::from_dimacs(b"p cnf 2 4\n1 2 0\n1 -2 0\n-1 2 0\n-1 -2 0\n").unwrap()
}

fn verdict(proof: &str) -> String {
    match check(&square(), proof.as_bytes()) {
        Ok(_) => "accepted".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn hints_are_found_for_text_and_binary_proofs() {
    assert_eq!(verdict("1 0\n0\n"), "accepted");
    assert_eq!(verdict("c comment\n1 0\nd 1 2 0\nd 1 -2 0\n0\n"), "accepted");
    assert!(check(&square(), b"a\x02\0d\x02\x04\0a\0").is_ok());
}

#[test]
fn a_step_that_does_not_follow_is_rejected_with_its_place() {
    assert_eq!(verdict(""), "line 1: the proof never reaches the empty clause");
    assert_eq!(verdict("0\n"), "line 1: the hints end without a contradiction");
    assert_eq!(verdict("d 1 2 0\n1 0\n"), "line 2: the hints end without a contradiction");
    assert_eq!(verdict("1 x 0\n"), "line 1: \"x\" is not a number");
    assert_eq!(verdict("1\n"), "line 1: the step does not end with 0");
    assert_eq!(verdict("1 0 2\n"), "line 1: numbers after the end of the step");
    assert_eq!(verdict("99999999 0\n"), "line 1: literal 99999999 is out of range");
}

#[test]
fn formulas_that_propagation_refutes_need_no_steps() {
    let cnf = Cnf::from_dimacs(b"p cnf 3 4\n1 0\n-1 2 0\n-2 3 0\n-3 -1 0\n").unwrap();
    assert!(check(&cnf, b"").is_ok());
    let cnf = Cnf::from_dimacs(b"p cnf 1 2\n1 -1 0\n0\n").unwrap();
    assert!(check(&cnf, b"").is_ok());
}

#[test]
fn clauses_that_hold_already_are_explained() {
    // 1 and 2 are forced; learning `2 3` and `1` is allowed although they hold.
    let cnf = Cnf::from_dimacs(b"p cnf 4 6\n1 0\n-1 2 0\n-2 3 4 0\n-2 3 -4 0\n-3 4 0\n-3 -4 0\n").unwrap();
    assert!(check(&cnf, b"2 3 0\n1 0\n4 -4 0\n3 0\n0\n").is_ok());
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_elaborator_panic(bytes in proptest::collection::vec(0u8.., 0..60), first in 0usize..3) {
        let mut bytes = bytes;
        bytes.insert(0, [b'a', b'd', b'1'][first]);
        let _ = check(&square(), &bytes);
    }

    #[test]
    fn random_steps_on_a_satisfiable_formula_never_refute_it(text in "((d )?[-123 ]{0,8}0\n){0,12}") {
        let cnf = Cnf::from_dimacs(b"p cnf 3 5\n1 2 0\n1 -2 3 0\n-1 2 0\n-3 1 0\n-3 2 0\n").unwrap();
        proptest::prop_assert!(check(&cnf, text.as_bytes()).is_err());
    }
}
