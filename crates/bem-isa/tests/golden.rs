//! Every instruction has its lines in `golden/instructions.txt`: assembly, bytes, and what it does to a fixed state.
//!
//! `BEM_GOLDEN=renew cargo test --release -p bem-isa --test golden` writes the file anew; the commit says why.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::lanes::LaneWord;
use bem_base::prng::mix;
use bem_isa::assemble::assemble;
use bem_isa::coprocessor::Host;
use bem_isa::instruction::{Format, Opcode, Operation, SegmentBase};
use bem_isa::interpreter::{Core, SegmentStarts};
use bem_isa::memory::Memory;
use bem_isa::program::Program;
use std::fmt::Write as _;
use std::path::PathBuf;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/instructions.txt")
}

#[allow(clippy::disallowed_methods, reason = "renewal must be asked for from outside, and only in this test")]
fn renewal_is_asked_for() -> bool {
    std::env::var("BEM_GOLDEN").is_ok_and(|value| value == "renew")
}

/// Operands, once or for every way it can go, that show what the instruction does. `x1` is negative, `x2` small, `x4` an address.
fn operands(opcode: Opcode) -> &'static [&'static str] {
    match opcode.format() {
        Format::ThreeScalars => &["x3, x1, x2"],
        Format::TwoScalars => &["x3, x2"],
        Format::ScalarShift => &["x3, x1, 9"],
        Format::ScalarImmediate => &["x3, -77"],
        Format::OneScalar if opcode == Opcode::Return => &["x5"],
        Format::OneScalar => &["x3"],
        Format::ScalarMemory => &["x3, [x4 + 24]"],
        Format::VectorMemory => &["b3, [sb_env + 32]"],
        Format::ThreeVectors => &["b3, b1, b2"],
        Format::TwoVectors => &["b3, b1"],
        Format::VectorShift => &["b3, b1, 70"],
        Format::Blend => &["b3, b1, b2, b4"],
        Format::ScalarFromVector => &["x3, b1"],
        Format::Branch => &["x1, x2, 2", "x2, x1, 2", "x2, x2, 2"],
        Format::Jump => &["2"],
        Format::JumpAndLink => &["x3, 2"],
        Format::Predicate => &["p3, x1, x2", "p3, x2, x1", "p3, x2, x2"],
        Format::Select => &["x3, x1, x2, p1", "x3, x1, x2, p0"],
        Format::Coprocessor => &["HASH, x4, x3"],
    }
}

fn state(program: &Program) -> (Core, Vec<u64>) {
    let mut core = Core::new(program, 99, SegmentStarts::default().with(SegmentBase::Env, 64));
    core.x[1] = 0xF123_4567_89AB_CDEF;
    core.x[2] = 0x0216;
    core.x[3] = 0x3333;
    core.x[4] = 64;
    core.x[5] = 2;
    for (register, vector) in core.b.iter_mut().enumerate() {
        *vector = LaneWord(std::array::from_fn(|word| mix((4 * register + word) as u64)));
    }
    core.p[1] = true;
    let mut words: Vec<u64> = (0..64).map(|word| mix(1_000 + word)).collect();
    // The descriptor of HASH: three words from address 0, the digest to address 256.
    words[8..11].copy_from_slice(&[0, 3, 256]);
    (core, words)
}

/// One instruction, executed once in the middle of a program of three.
fn line(text: &str) -> String {
    let program = assemble(&format!("{text}\nadd x0, x0, x0\nadd x0, x0, x0\n")).unwrap();
    let (mut core, mut words) = state(&program);
    let (before, words_before) = (core.clone(), words.clone());
    let mut memory = Memory::open(&mut words, &mut []);
    let trap = core.run(&program, &mut memory, &mut Host::new(1), 1).unwrap_err();
    assert_eq!(trap.cause as u8, 6, "{text} did not execute: {trap}");
    let bytes: Vec<String> = program.words()[0].iter().map(|byte| format!("{byte:02x}")).collect();
    let mut effect = format!("pc={}", core.pc);
    for register in 0..32 {
        if core.x[register] != before.x[register] {
            write!(effect, " x{register}={:#x}", core.x[register]).unwrap();
        }
        if core.b[register] != before.b[register] {
            let [a, b, c, d] = core.b[register].0;
            write!(effect, " b{register}={d:016x}_{c:016x}_{b:016x}_{a:016x}").unwrap();
        }
    }
    for predicate in 0..16 {
        if core.p[predicate] != before.p[predicate] {
            write!(effect, " p{predicate}={}", u8::from(core.p[predicate])).unwrap();
        }
    }
    if core.seed != before.seed {
        write!(effect, " seed={:#x}", core.seed).unwrap();
    }
    for (index, (new, old)) in words.iter().zip(&words_before).enumerate() {
        if new != old {
            write!(effect, " [{}]={new:#x}", 8 * index).unwrap();
        }
    }
    format!("{text} | {} | {effect}\n", bytes.join(" "))
}

#[test]
fn every_instruction_does_what_its_golden_line_says() {
    let mut text =
        String::from("assembly | bytes | effect on the fixed state of crates/bem-isa/tests/golden.rs\n");
    for opcode in Opcode::ALL {
        for operands in operands(*opcode) {
            text.push_str(&line(&format!("{} {operands}", opcode.mnemonic())));
        }
    }
    // Operations of the co-processor have numbers of their own.
    for (operation, name) in Operation::ALL {
        writeln!(text, "cop {name} | operation {}", operation as u8).unwrap();
    }
    if renewal_is_asked_for() {
        std::fs::write(path(), text).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(path()).unwrap_or_default();
    let missing = text.lines().find(|line| !golden.lines().any(|known| known == *line));
    assert_eq!(missing, None, "a line is missing from golden/instructions.txt or differs");
    assert_eq!(golden, text, "golden/instructions.txt has other lines or another order");
}
