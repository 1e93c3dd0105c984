//! Exported programs, compiled and run by the tools that people use, against the circuit on a hundred thousand steps.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Signal};
use bem_circuit::testing::random_dense_netlist;
use bem_export::{FileNames, Language, Program, self_test, vectors, write};
use bem_synth::policy::{Policy, action_bits};
use std::path::Path;
use std::process::{Command, Output};

const STEPS: usize = 100_000;

/// A policy around a random circuit: so many observation bits, memory bits and actions.
fn random_policy(seed: u64, observation_bits: usize, memory: usize, actions: u16) -> Policy {
    let mut prng = Prng::stream(seed, "export");
    let inputs = observation_bits + memory;
    let circuit = random_dense_netlist(&mut prng, inputs, 12 * inputs, action_bits(actions) + memory);
    let mut builder = Builder::new(inputs);
    let all: Vec<Signal> = (0..inputs).map(Signal::input).collect();
    let outputs = builder.embed(&circuit, &all);
    let (action, next) = outputs.split_at(action_bits(actions));
    Policy::close(builder, observation_bits, actions, action, next).unwrap()
}

/// Policies of several kinds, each with the bits that its world shows.
fn policies() -> Vec<(&'static str, Policy, usize)> {
    vec![
        ("reacts", random_policy(1, 11, 0, 2), 14),
        ("remembers", random_policy(2, 6, 5, 4), 6),
        ("clamped", random_policy(3, 9, 3, 5), 40),
        ("xor", random_policy(4, 0, 4, 7), 0),
        ("constant", Policy::constant(3, 2), 3),
    ]
}

/// Writes program, self-test and vectors into a folder.
fn write_all(folder: &Path, language: Language, program: &Program<'_>) -> FileNames {
    let files = FileNames::of(language, &format!("{}.{}", program.name, language.extension()));
    let save = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    save(&files.program, write(language, program));
    save(&files.test, self_test(language, program, &files));
    save(&files.vectors, vectors(program, STEPS));
    files
}

/// Runs the command of a self-test; a tool that is not installed is an error with its name.
fn run(folder: &Path, files: &FileNames, language: Language) -> Output {
    let command = match language {
        Language::C => {
            files.command(language).replace("-std=c99", "-std=c99 -O1 -Wall -Wextra -Werror -pedantic")
        }
        Language::Rust => files.command(language).replace("2021", "2021 -D warnings"),
        Language::Verilog => files.command(language).replace("iverilog", "iverilog -Wall"),
        _ => files.command(language),
    };
    let tool = command.split(' ').next().unwrap().to_string();
    let there = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().unwrap();
    assert!(there.status.success(), "{tool} is not installed; `cargo xtask test` installs what tests need");
    Command::new("sh").args(["-c", &command]).current_dir(folder).output().unwrap()
}

fn check(language: Language) {
    let provenance = ["policy of a test".to_string(), "task: odd \\ names */ \"\"\" ".to_string()];
    for (name, policy, observation_bits) in policies() {
        let folder = tempfile::tempdir().unwrap();
        let program = Program {
            policy: &policy,
            observation_bits,
            horizon: Some(24),
            name,
            encoder: None,
            provenance: &provenance,
        };
        let files = write_all(folder.path(), language, &program);
        let output = run(folder.path(), &files, language);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}: {said}{errors}");
        assert!(said.starts_with(&format!("{STEPS} steps")) && said.trim_end().ends_with("ok"), "{said}");
        if language == Language::Python {
            assert!(
                said.contains("with numpy too"),
                "numpy is not installed; `cargo xtask test` installs it"
            );
        }
        // A program whose vectors are another policy's is found out.
        let other = random_policy(9, policy.reads().len().max(1), 2, policy.actions());
        let wrong = vectors(&Program { policy: &other, ..program }, STEPS);
        std::fs::write(folder.path().join(&files.vectors), wrong).unwrap();
        let output = run(folder.path(), &files, language);
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(" instead of "), "{name}: {said}");
    }
}

#[test]
fn c_headers_agree_with_the_circuit() {
    check(Language::C);
}

#[test]
fn rust_modules_agree_with_the_circuit_and_need_no_standard_library() {
    check(Language::Rust);
    let policy = random_policy(2, 6, 5, 4);
    let program = Program {
        policy: &policy,
        observation_bits: 6,
        horizon: None,
        name: "bare",
        encoder: None,
        provenance: &[],
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bare.rs"), write(Language::Rust, &program)).unwrap();
    std::fs::write(folder.path().join("lib.rs"), "#![no_std]\npub mod bare;\n").unwrap();
    let flags = ["--edition", "2021", "--crate-type", "rlib", "-D", "warnings", "lib.rs"];
    let output = Command::new("rustc").args(flags).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn python_modules_agree_with_the_circuit_row_by_row_and_in_batches() {
    check(Language::Python);
}

#[test]
fn javascript_modules_agree_with_the_circuit() {
    check(Language::JavaScript);
}

#[test]
fn verilog_modules_agree_with_the_circuit_in_simulation() {
    check(Language::Verilog);
}

#[test]
fn a_c_header_can_be_used_from_cpp() {
    let policy = random_policy(2, 6, 5, 4);
    let program = Program {
        policy: &policy,
        observation_bits: 6,
        horizon: Some(9),
        name: "x",
        encoder: None,
        provenance: &[],
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.h"), write(Language::C, &program)).unwrap();
    let main = "#include \"x.h\"\nint main() { bem_state s; uint8_t o[BEM_OBS_BITS] = {0}; bem_reset(&s); \
        return bem_decide(&s, o) < BEM_ACTIONS ? 0 : 1; }\n";
    std::fs::write(folder.path().join("main.cpp"), main).unwrap();
    let build = "c++ -Wall -Wextra -Werror main.cpp -o main && ./main";
    let output = Command::new("sh").args(["-c", build]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
