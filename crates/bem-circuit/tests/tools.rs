//! Exported circuits, read and run by the tools that other people use, on all inputs up to 16 bits.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use bem_base::prng::Prng;
use bem_circuit::formats::{Format, Model, read};
use bem_circuit::netlist::Netlist;
use bem_circuit::simplify::simplify;
use bem_circuit::testing::{random_dense_netlist, random_netlist};
use bem_circuit::truth_table::{TruthTable, equal_exhaustive};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Runs a tool in a directory and returns what it prints.
fn run(directory: &Path, tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool).args(arguments).current_dir(directory).output();
    let output =
        output.unwrap_or_else(|error| panic!("{tool}: {error}; `cargo xtask test` installs what tests need"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{tool} {arguments:?}\n{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

fn write(directory: &Path, file: &str, content: impl AsRef<[u8]>) {
    std::fs::write(directory.join(file), content).unwrap();
}

/// Circuits of several sizes, one with names that are keywords somewhere.
fn models() -> Vec<Model> {
    let mut prng = Prng::stream(1, "tools");
    let mut models = vec![
        Model::new("constants", random_netlist(&mut prng, 3, 0, 5)),
        Model::new("raw", random_netlist(&mut prng, 6, 60, 5)),
        Model::new("dense", random_dense_netlist(&mut prng, 11, 80, 9)),
        Model::new("wide", random_dense_netlist(&mut prng, 16, 150, 3)),
    ];
    models.push(
        Model::new("module", random_dense_netlist(&mut prng, 4, 20, 4))
            .named(&["for", "a[0]", "wire", "n3"], &["fn", "int", "y", "for"]),
    );
    models
}

/// Every output word of the truth table in hexadecimal, one a line: 64 assignments, all outputs, and so on.
fn expected_words(circuit: &Netlist) -> String {
    let table = TruthTable::new(circuit).unwrap();
    let mask = if circuit.inputs() < 6 { (1u64 << (1 << circuit.inputs())) - 1 } else { u64::MAX };
    let mut text = String::new();
    for word in 0..table.words(0).len() {
        for output in 0..table.outputs() {
            let _ = writeln!(text, "{:016x}", table.words(output)[word] & mask);
        }
    }
    text
}

/// Words in which input `k` is bit `k` of the assignment, as an expression of both C and Rust over `word`.
const PATTERNS: [&str; 6] = [
    "0xAAAAAAAAAAAAAAAA",
    "0xCCCCCCCCCCCCCCCC",
    "0xF0F0F0F0F0F0F0F0",
    "0xFF00FF00FF00FF00",
    "0xFFFF0000FFFF0000",
    "0xFFFFFFFF00000000",
];

#[test]
fn a_c_compiler_agrees_on_all_inputs() {
    for model in models() {
        let directory = tempfile::tempdir().unwrap();
        let (inputs, outputs) = (model.circuit().inputs(), model.circuit().outputs().len());
        let source = String::from_utf8(Format::C.write(&model)).unwrap();
        let function =
            source.split("void ").nth(1).and_then(|rest| rest.split('(').next()).unwrap().to_owned();
        let patterns: Vec<String> = PATTERNS.iter().map(|pattern| format!("UINT64_C({pattern})")).collect();
        let words = (1usize << inputs).div_ceil(64);
        let mask = if inputs < 6 {
            format!("UINT64_C({})", (1u64 << (1 << inputs)) - 1)
        } else {
            "~UINT64_C(0)".into()
        };
        let main = format!(
            "{source}\n#include <inttypes.h>\n#include <stdio.h>\n\
            static const uint64_t patterns[6] = {{{}}};\n\
            int main(void) {{\n  for (uint64_t word = 0; word < {words}; word++) {{\n\
            uint64_t in[{inputs}], out[{outputs}];\n\
            for (int k = 0; k < {inputs}; k++) in[k] = k < 6 ? patterns[k] : (word >> (k - 6) & 1 ? ~UINT64_C(0) : 0);\n\
            {function}(in, out);\n\
            for (int k = 0; k < {outputs}; k++) printf(\"%016\" PRIx64 \"\\n\", out[k] & {mask});\n  }}\n  return 0;\n}}\n",
            patterns.join(", ")
        );
        write(directory.path(), "circuit.c", main);
        let flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "circuit.c", "-o", "circuit"];
        run(directory.path(), "cc", &flags);
        assert_eq!(
            run(directory.path(), "./circuit", &[]),
            expected_words(model.circuit()),
            "{}",
            model.name()
        );
    }
}

#[test]
fn the_rust_compiler_agrees_on_all_inputs() {
    for model in models() {
        let directory = tempfile::tempdir().unwrap();
        let inputs = model.circuit().inputs();
        let source = String::from_utf8(Format::Rust.write(&model)).unwrap();
        let function =
            source.split("pub fn ").nth(1).and_then(|rest| rest.split('(').next()).unwrap().to_owned();
        let words = (1usize << inputs).div_ceil(64);
        let mask = if inputs < 6 { (1u64 << (1 << inputs)) - 1 } else { u64::MAX };
        let main = format!(
            "{source}\nfn main() {{\n    let patterns: [u64; 6] = [{}];\n    for word in 0..{words}u64 {{\n\
            let inputs: [u64; {inputs}] = std::array::from_fn(|k| if k < 6 {{ patterns[k] }} else {{ 0u64.wrapping_sub(word >> (k - 6) & 1) }});\n\
            for value in {function}(&inputs) {{ println!(\"{{:016x}}\", value & {mask}); }}\n    }}\n}}\n",
            PATTERNS.join(", ")
        );
        write(directory.path(), "circuit.rs", main);
        run(
            directory.path(),
            "rustc",
            &["--edition", "2021", "-D", "warnings", "circuit.rs", "-o", "circuit"],
        );
        assert_eq!(
            run(directory.path(), "./circuit", &[]),
            expected_words(model.circuit()),
            "{}",
            model.name()
        );
    }
}

/// The ports of a written Verilog module, in order, and its name.
fn ports(verilog: &str) -> (String, Vec<String>, Vec<String>) {
    let name = verilog.split_whitespace().nth(1).unwrap().to_owned();
    let of = |kind: &str| {
        let lines = verilog.lines().map(str::trim).filter_map(|line| line.strip_prefix(kind));
        lines.map(|port| port.trim_end_matches(',').to_owned()).collect()
    };
    (name, of("input wire "), of("output wire "))
}

#[test]
fn a_verilog_simulator_agrees_on_all_inputs() {
    for model in models() {
        let directory = tempfile::tempdir().unwrap();
        let verilog = String::from_utf8(Format::Verilog.write(&model)).unwrap();
        let (name, inputs, outputs) = ports(&verilog);
        let last = |names: &[String]| names.len() - 1;
        let connect = |names: &[String], vector: &str| {
            let pins = names.iter().enumerate().map(|(bit, name)| format!(".{name}({vector}[{bit}])"));
            pins.collect::<Vec<_>>().join(", ")
        };
        let bench = format!(
            "{verilog}\nmodule bench;\n  reg [{}:0] x; wire [{}:0] y; integer i;\n  {name} unit({}, {});\n\
            initial for (i = 0; i < {}; i = i + 1) begin x = i; #1 $display(\"%b\", y); end\nendmodule\n",
            last(&inputs),
            last(&outputs),
            connect(&inputs, "x"),
            connect(&outputs, "y"),
            1 << inputs.len()
        );
        write(directory.path(), "circuit.v", bench);
        run(directory.path(), "iverilog", &["-Wall", "-o", "circuit", "circuit.v"]);
        let printed = run(directory.path(), "vvp", &["circuit"]);
        let table = TruthTable::new(model.circuit()).unwrap();
        let mut lines = 0;
        for (assignment, line) in printed.lines().enumerate() {
            let bits: String = (0..table.outputs())
                .rev()
                .map(|output| if table.get(output, assignment) { '1' } else { '0' })
                .collect();
            assert_eq!(line, bits, "{} {assignment}", model.name());
            lines += 1;
        }
        assert_eq!(lines, 1 << table.inputs());
    }
}

#[test]
fn yosys_reads_verilog_blif_and_aiger_and_means_the_same() {
    for model in models() {
        let directory = tempfile::tempdir().unwrap();
        for (format, command) in [
            (Format::Verilog, "read_verilog circuit.v; hierarchy -auto-top; proc; aigmap"),
            (Format::Blif, "read_blif circuit.blif; hierarchy -auto-top; techmap; aigmap"),
            (Format::Aiger, "read_aiger circuit.aig; aigmap"),
            (Format::AigerAscii, "read_aiger circuit.aag; aigmap"),
        ] {
            write(directory.path(), &format!("circuit.{}", format.extension()), format.write(&model));
            let script = format!("{command}; write_aiger -ascii -symbols back.aag");
            run(directory.path(), "yosys", &["-q", "-p", &script]);
            let back = read(&std::fs::read(directory.path().join("back.aag")).unwrap()).unwrap();
            assert_same(&model, &back, format);
        }
    }
}

/// Compares circuits whose inputs and outputs may have come back in another order, by name.
fn assert_same(model: &Model, back: &Model, format: Format) {
    let plain = |name: &String| name.replace(|sign: char| !sign.is_ascii_alphanumeric(), "_");
    let find = |names: &[String], wanted: &String, position: usize| {
        let found = names.iter().position(|name| plain(name).trim_start_matches('_') == plain(wanted));
        // A name that had to be changed for the format keeps its place.
        found.unwrap_or(position)
    };
    assert_eq!(back.circuit().inputs(), model.circuit().inputs());
    let mut builder = bem_circuit::netlist::Builder::new(model.circuit().inputs());
    let mut inputs = vec![None; model.circuit().inputs()];
    for (position, name) in model.input_names().iter().enumerate() {
        let place = find(back.input_names(), name, position);
        assert!(inputs[place].replace(builder.input(position)).is_none(), "{format:?} {name}");
    }
    let inputs: Vec<_> = inputs.into_iter().flatten().collect();
    let outputs = builder.embed(back.circuit(), &inputs);
    let order: Vec<usize> = model
        .output_names()
        .iter()
        .enumerate()
        .map(|(position, name)| find(back.output_names(), name, position))
        .chain(model.free_outputs()..outputs.len())
        .collect();
    let outputs: Vec<_> = order.into_iter().map(|place| outputs[place]).collect();
    let back = builder.finish(&outputs).unwrap();
    assert_eq!(equal_exhaustive(model.circuit(), &back), Ok(()), "{format:?} {}", model.name());
}

#[test]
fn abc_reads_blif_and_aiger_and_finds_them_equivalent() {
    for model in models() {
        let directory = tempfile::tempdir().unwrap();
        let smaller =
            Model::new("smaller", simplify(model.circuit())).named(model.input_names(), model.output_names());
        write(directory.path(), "circuit.blif", Format::Blif.write(&model));
        write(directory.path(), "circuit.aig", Format::Aiger.write(&smaller));
        let answer = run(directory.path(), "berkeley-abc", &["-c", "cec -n circuit.blif circuit.aig"]);
        assert!(answer.contains("Networks are equivalent"), "{} {answer}", model.name());
        run(
            directory.path(),
            "berkeley-abc",
            &["-c", "read_blif circuit.blif; strash; write_aiger back.aig"],
        );
        run(directory.path(), "berkeley-abc", &["-c", "read_aiger circuit.aig; write_blif back.blif"]);
        for file in ["back.aig", "back.blif"] {
            let back = read(&std::fs::read(directory.path().join(file)).unwrap()).unwrap();
            assert_eq!(equal_exhaustive(model.circuit(), back.circuit()), Ok(()), "{file} {}", model.name());
        }
    }
}

#[test]
fn abc_tells_a_changed_circuit_apart() {
    let mut prng = Prng::stream(2, "changed");
    let circuit = simplify(&random_dense_netlist(&mut prng, 8, 40, 1));
    let output = circuit.gate_position(circuit.outputs()[0]).unwrap();
    let mut gates = circuit.gates().to_vec();
    gates[output].op = gates[output].op.complement();
    let changed = Netlist::new(8, gates, circuit.outputs().to_vec()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "one.aig", Format::Aiger.write(&Model::new("one", circuit)));
    write(directory.path(), "two.blif", Format::Blif.write(&Model::new("two", changed)));
    let answer = run(directory.path(), "berkeley-abc", &["-c", "cec -n one.aig two.blif"]);
    assert!(answer.contains("NOT EQUIVALENT"), "{answer}");
}

/// A circuit with memory and a run of it: inputs of 64 lanes and the outputs that must follow.
struct Run {
    model: Model,
    inputs: Vec<Vec<u64>>,
    outputs: Vec<Vec<u64>>,
}

fn sequential_run(seed: u64) -> Run {
    let mut prng = Prng::stream(seed, "sequential");
    let model = Model::with_memory("policy", random_dense_netlist(&mut prng, 9, 60, 7), 4).unwrap();
    let inputs: Vec<Vec<u64>> = (0..40).map(|_| (0..5).map(|_| prng.next_u64()).collect()).collect();
    let outputs = outputs_by_name(&model, &inputs);
    Run { model, inputs, outputs }
}

/// Steps a model from zero memory; inputs are for `x0`, `x1`, ... and outputs of `y0`, `y1`, ... wherever those are.
fn outputs_by_name(model: &Model, inputs: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let place = |names: &[String], wanted: String| names.iter().position(|name| *name == wanted).unwrap();
    let mut memory = vec![0; model.memory()];
    let (mut values, mut all) = (Vec::new(), Vec::new());
    let mut trace = Vec::new();
    for given in inputs {
        let mut words = vec![0; model.free_inputs()];
        for (position, word) in given.iter().enumerate() {
            words[place(model.input_names(), format!("x{position}"))] = *word;
        }
        model.circuit().evaluate_words(&[words, memory].concat(), &mut values, &mut all);
        memory = all.split_off(model.free_outputs());
        let named = (0..all.len()).map(|position| all[place(model.output_names(), format!("y{position}"))]);
        trace.push(named.collect());
    }
    trace
}

fn listed(words: &[Vec<u64>], prefix: &str) -> String {
    words.concat().iter().map(|word| format!("{prefix}{word}")).collect::<Vec<_>>().join(", ")
}

#[test]
fn exported_memory_steps_alike_in_c_rust_and_verilog() {
    for seed in 0..3 {
        let run_of = sequential_run(seed);
        let directory = tempfile::tempdir().unwrap();
        let expected: String = run_of.outputs.concat().iter().map(|word| format!("{word:016x}\n")).collect();

        let c = String::from_utf8(Format::C.write(&run_of.model)).unwrap();
        let inputs = run_of
            .inputs
            .concat()
            .iter()
            .map(|word| format!("UINT64_C({word})"))
            .collect::<Vec<_>>()
            .join(", ");
        let main = format!(
            "{c}\n#include <inttypes.h>\n#include <stdio.h>\nstatic const uint64_t in[200] = {{{inputs}}};\n\
            int main(void) {{\n  policy_state state = {{{{0}}}};\n  uint64_t out[3];\n\
            for (int t = 0; t < 40; t++) {{\n    policy_step(&state, in + 5 * t, out);\n\
            for (int k = 0; k < 3; k++) printf(\"%016\" PRIx64 \"\\n\", out[k]);\n  }}\n  return 0;\n}}\n"
        );
        write(directory.path(), "policy.c", main);
        run(
            directory.path(),
            "cc",
            &["-std=c99", "-Wall", "-Wextra", "-Werror", "policy.c", "-o", "policy_c"],
        );
        assert_eq!(run(directory.path(), "./policy_c", &[]), expected);

        let rust = String::from_utf8(Format::Rust.write(&run_of.model)).unwrap();
        let main = format!(
            "{rust}\nfn main() {{\n    let all: [u64; 200] = [{}];\n    let mut state = State::default();\n\
            for inputs in all.chunks(5) {{\n        for value in state.step(inputs.try_into().unwrap()) {{\n\
            println!(\"{{value:016x}}\");\n        }}\n    }}\n}}\n",
            listed(&run_of.inputs, "")
        );
        write(directory.path(), "policy.rs", main);
        run(
            directory.path(),
            "rustc",
            &["--edition", "2021", "-D", "warnings", "policy.rs", "-o", "policy_rs"],
        );
        assert_eq!(run(directory.path(), "./policy_rs", &[]), expected);

        // Verilog has one lane: lane 0 of the run.
        let verilog = String::from_utf8(Format::Verilog.write(&run_of.model)).unwrap();
        let mut bench = format!(
            "{verilog}\nmodule bench;\n  reg clock = 0, reset = 1; reg [4:0] x = 0; wire [2:0] y;\n\
            policy unit(.clock(clock), .reset(reset), .x0(x[0]), .x1(x[1]), .x2(x[2]), .x3(x[3]), .x4(x[4]),\n\
            .y0(y[0]), .y1(y[1]), .y2(y[2]));\n  initial begin\n    #1 clock = 1; #1 clock = 0; reset = 0;\n"
        );
        for inputs in &run_of.inputs {
            let bits: String =
                inputs.iter().rev().map(|word| if word & 1 == 1 { '1' } else { '0' }).collect();
            let _ = writeln!(bench, "    x = 5'b{bits}; #1 $display(\"%b\", y); clock = 1; #1 clock = 0;");
        }
        bench.push_str("  end\nendmodule\n");
        write(directory.path(), "policy.v", bench);
        run(directory.path(), "iverilog", &["-Wall", "-o", "policy_v", "policy.v"]);
        let printed = run(directory.path(), "vvp", &["policy_v"]);
        let lane: Vec<String> = run_of
            .outputs
            .iter()
            .map(|words| words.iter().rev().map(|word| if word & 1 == 1 { '1' } else { '0' }).collect())
            .collect();
        assert_eq!(printed.lines().collect::<Vec<_>>(), lane);
    }
}

#[test]
fn latches_survive_abc_and_yosys() {
    for seed in 0..3 {
        let Run { model, inputs, outputs } = sequential_run(seed);
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "policy.blif", Format::Blif.write(&model));
        write(directory.path(), "policy.aig", Format::Aiger.write(&model));
        run(
            directory.path(),
            "berkeley-abc",
            &["-c", "read_blif policy.blif; strash; write_aiger -s abc.aig"],
        );
        run(directory.path(), "berkeley-abc", &["-c", "read_aiger policy.aig; write_blif abc.blif"]);
        for (reader, file) in [("read_aiger policy.aig", "one.aig"), ("read_blif policy.blif", "two.aig")] {
            let script =
                format!("{reader}; hierarchy -auto-top; techmap; aigmap; write_aiger -zinit -symbols {file}");
            run(directory.path(), "yosys", &["-q", "-p", &script]);
        }
        for file in ["abc.aig", "abc.blif", "one.aig", "two.aig"] {
            let back = read(&std::fs::read(directory.path().join(file)).unwrap()).unwrap();
            assert_eq!(back.memory(), 4, "{file}");
            assert_eq!(outputs_by_name(&back, &inputs), outputs, "{file}");
        }
    }
}

#[test]
fn graphviz_draws_every_gate() {
    for model in models() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "circuit.dot", Format::Dot.write(&model));
        let plain = run(directory.path(), "dot", &["-Tplain", "circuit.dot"]);
        let nodes = plain.lines().filter(|line| line.starts_with("node s")).count();
        assert!(model.circuit().gates().len() + model.circuit().inputs() <= nodes, "{}", model.name());
    }
}
