//! C and Rust: a self-contained function that evaluates 64 lanes at once, one bit of each word a lane.
//!
//! With memory there is a state of one word per bit, all zero at the start, and a function that makes one step.

use super::model::Model;
use super::names::{Identifiers, expression};
use std::fmt::Write as _;

const C_KEYWORDS: &str = "\
    auto break case char const continue default do double else enum extern float for goto if inline int \
    long register restrict return short signed sizeof static struct switch typedef union unsigned void \
    volatile while bool true false nullptr asm typeof constexpr alignas alignof static_assert \
    thread_local class new delete this template namespace operator private public protected virtual try \
    catch throw using friend mutable explicit export typename and or not xor bitand bitor compl main \
    uint64_t UINT64_C unix linux inputs outputs state memory";

const RUST_KEYWORDS: &str = "\
    as break const continue crate dyn else enum extern false fn for if impl in let loop match mod move \
    mut pub ref return self static struct super trait true type unsafe use where while async await \
    abstract become box do final gen macro override priv try typeof unsized virtual yield union main u64 \
    inputs outputs memory";

/// Writes a C99 function `void NAME(const uint64_t *inputs, uint64_t *outputs)`; with memory, a type `NAME_state` to be
/// set to zero and a function `NAME_step` that also takes a pointer to it.
pub fn write_c(model: &Model) -> String {
    let circuit = model.circuit();
    let mut identifiers = Identifiers::new(C_KEYWORDS);
    let function = identifiers.take(model.name());
    let (state_type, step) =
        (identifiers.take(&format!("{function}_state")), identifiers.take(&format!("{function}_step")));
    let names = identifiers.signals(model, ["UINT64_C(0)", "~UINT64_C(0)"]);
    let mut text = String::from("#include <stdint.h>\n\n");
    let sequential = 0 < model.memory();
    let (free_inputs, free_outputs, memory) = (model.free_inputs(), model.free_outputs(), model.memory());
    let _ = writeln!(
        text,
        "/* Inputs: {free_inputs}, outputs: {free_outputs}, bits of memory: {memory}; 64 lanes a word. */"
    );
    if sequential {
        let _ = writeln!(text, "typedef struct {{ uint64_t memory[{memory}]; }} {state_type};\n");
        let _ =
            writeln!(text, "void {step}({state_type} *state, const uint64_t *inputs, uint64_t *outputs)\n{{");
    } else {
        let _ = writeln!(text, "void {function}(const uint64_t *inputs, uint64_t *outputs)\n{{");
    }
    for (input, name) in names[2..2 + circuit.inputs()].iter().enumerate() {
        match input.checked_sub(free_inputs) {
            None => writeln!(text, "    const uint64_t {name} = inputs[{input}];"),
            Some(bit) => writeln!(text, "    const uint64_t {name} = state->memory[{bit}];"),
        }
        .unwrap_or_default();
    }
    for (gate, name) in circuit.gates().iter().zip(&names[2 + circuit.inputs()..]) {
        let _ = writeln!(text, "    const uint64_t {name} = {};", expression(gate, &names, '~'));
    }
    for (output, signal) in circuit.outputs().iter().enumerate() {
        let value = &names[signal.index()];
        match output.checked_sub(free_outputs) {
            None => writeln!(text, "    outputs[{output}] = {value};"),
            Some(bit) => writeln!(text, "    state->memory[{bit}] = {value};"),
        }
        .unwrap_or_default();
    }
    // A circuit need not use all that it is given, and compilers would warn.
    let mut used = vec![false; names.len()];
    for signal in
        circuit.gates().iter().flat_map(|gate| [gate.a, gate.b]).chain(circuit.outputs().iter().copied())
    {
        used[signal.index()] = true;
    }
    let idle = names.iter().zip(used).skip(2).filter(|(_, used)| !used).map(|(name, _)| name.as_str());
    let arguments = [("inputs", free_inputs), ("outputs", free_outputs)];
    let idle = idle.chain(arguments.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name));
    for name in idle {
        let _ = writeln!(text, "    (void){name};");
    }
    text + "}\n"
}

/// Writes a Rust function `pub fn NAME(inputs: &[u64; N]) -> [u64; M]`; with memory, a structure `State` whose method
/// `step` has the same form.
pub fn write_rust(model: &Model) -> String {
    let circuit = model.circuit();
    let mut identifiers = Identifiers::new(RUST_KEYWORDS);
    let function = identifiers.take(&model.name().to_lowercase());
    let names = identifiers.signals(model, ["0", "!0"]);
    let (free_inputs, free_outputs, memory) = (model.free_inputs(), model.free_outputs(), model.memory());
    let sequential = 0 < memory;
    let mut text = String::new();
    let allowed = "#[allow(unused_variables, non_snake_case, clippy::all)]";
    let indent = if sequential {
        let _ = writeln!(text, "/// The memory of `{function}`, 64 lanes; false at the start.");
        let _ = writeln!(
            text,
            "#[derive(Clone, Debug)]\npub struct State {{\n    memory: [u64; {memory}],\n}}\n"
        );
        let _ = writeln!(text, "impl Default for State {{");
        let _ = writeln!(
            text,
            "    fn default() -> State {{\n        State {{ memory: [0; {memory}] }}\n    }}\n}}\n"
        );
        let _ = writeln!(text, "impl State {{\n    /// One step of 64 lanes.\n    {allowed}");
        let _ = writeln!(
            text,
            "    pub fn step(&mut self, inputs: &[u64; {free_inputs}]) -> [u64; {free_outputs}] {{"
        );
        "        "
    } else {
        let _ = writeln!(text, "/// Evaluates 64 lanes at once.\n{allowed}");
        let _ =
            writeln!(text, "pub fn {function}(inputs: &[u64; {free_inputs}]) -> [u64; {free_outputs}] {{");
        "    "
    };
    let (inputs, gates) = names[2..].split_at(circuit.inputs());
    let (inputs, bits) = inputs.split_at(free_inputs);
    for (names, place) in [(inputs, "*inputs"), (bits, "self.memory")] {
        if !names.is_empty() {
            let _ = writeln!(text, "{indent}let [{}] = {place};", names.join(", "));
        }
    }
    for (gate, name) in circuit.gates().iter().zip(gates) {
        let _ = writeln!(text, "{indent}let {name}: u64 = {};", expression(gate, &names, '!'));
    }
    let values: Vec<&str> = circuit.outputs().iter().map(|signal| names[signal.index()].as_str()).collect();
    let (free, next) = values.split_at(free_outputs);
    if sequential {
        let _ = writeln!(text, "{indent}self.memory = [{}];", next.join(", "));
    }
    let _ = writeln!(text, "{indent}[{}]", free.join(", "));
    text + if sequential { "    }\n}\n" } else { "}\n" }
}
