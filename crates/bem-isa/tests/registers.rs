//! Every register of the control core is written, read and told apart from its neighbours. Clause: ISA-1.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_isa::assemble::assemble;
use bem_isa::instruction::{PREDICATES, SCALARS, SegmentBase, VECTORS};
use bem_isa::interpreter::{Core, NoCoprocessor, SegmentStarts};
use bem_isa::memory::Memory;

/// Runs a text to its end; the segments begin a word apart in an otherwise empty memory.
fn run(text: &str) -> (Core, Vec<u64>) {
    let program = assemble(text).unwrap();
    let (mut shared, mut state) = (vec![0; 64], vec![0; 64]);
    let starts = SegmentBase::ALL.iter().zip(1u64..);
    let starts = starts.fold(SegmentStarts::default(), |all, ((base, _), word)| all.with(*base, 8 * word));
    let mut core = Core::new(&program, 7, starts);
    core.run(&program, &mut Memory::open(&mut shared, &mut state), &mut NoCoprocessor, 1_000).unwrap();
    assert_eq!(core.pc as usize, program.words().len());
    (core, shared)
}

#[test]
fn scalars_hold_what_was_put_into_them_but_for_the_zero() {
    let text: String =
        (0..SCALARS).map(|number| format!("li x{number}, {}\n", 1_000 + i32::from(number))).collect();
    let (core, _) = run(&text);
    let wanted: Vec<u64> = (0..32).map(|number| if number == 0 { 0 } else { 1_000 + number }).collect();
    assert_eq!(core.x.as_slice(), wanted);
}

#[test]
fn vectors_and_predicates_are_registers_of_their_own() {
    let mut text = String::from("li x1, 1\n");
    for number in 0..VECTORS {
        text.push_str(&format!("b_not b{number}, b{number}\nb_shr b{number}, b{number}, {number}\n"));
    }
    // Every third predicate holds: zero is below one, one is not below zero.
    for number in 0..PREDICATES {
        let (left, right) = if number % 3 == 0 { (0, 1) } else { (1, 0) };
        text.push_str(&format!("plt p{number}, x{left}, x{right}\n"));
    }
    text.push_str("rdsr x2\nrand x3\n");
    let (core, _) = run(&text);
    let lanes = |word: &bem_base::lanes::LaneWord| word.0.iter().map(|part| part.count_ones()).sum::<u32>();
    assert!(core.b.iter().map(lanes).eq((0..u32::from(VECTORS)).map(|number| 256 - number)));
    let wanted = |number: usize| number.is_multiple_of(3);
    assert!(core.p.iter().enumerate().all(|(number, holds)| *holds == wanted(number)), "{:?}", core.p);
    let status =
        (0..usize::from(PREDICATES)).fold(0, |bits, number| bits | u64::from(wanted(number)) << number);
    assert_eq!(core.x[2], status, "the status register shows the predicates, lowest first");
    assert_ne!((core.seed, core.x[3]), (7, 0), "the seed moves on and gives a number");
}

#[test]
fn every_segment_base_leads_to_its_own_word() {
    let text: String = SegmentBase::ALL
        .iter()
        .zip(1..)
        .map(|((_, name), number)| format!("li x1, {}\nst x1, [{name}]\n", 100 + number))
        .collect();
    let (_, shared) = run(&text);
    let wanted: Vec<u64> = (1..=SegmentBase::ALL.len() as u64).map(|number| 100 + number).collect();
    assert_eq!(shared[1..=wanted.len()], wanted);
}
