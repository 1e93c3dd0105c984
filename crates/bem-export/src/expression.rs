//! Gates as expressions, and what every writer needs to know of a policy's circuit.

use bem_circuit::netlist::{Gate, Netlist, Op};
use bem_synth::policy::{Policy, action_bits};

/// How a language writes the complement of an expression in parentheses or of a name.
#[derive(Clone, Copy)]
pub(crate) struct Complement(pub &'static str);

impl Complement {
    /// The gate as an expression over named signals.
    pub fn gate(self, gate: &Gate, names: &[String]) -> String {
        let (a, b, not) = (&names[gate.a.index()], &names[gate.b.index()], self.0);
        match gate.op {
            Op::And => format!("{a} & {b}"),
            Op::Or => format!("{a} | {b}"),
            Op::Xor => format!("{a} ^ {b}"),
            Op::AndNot => format!("{a} & ({not}{b})"),
            Op::Nand => format!("{not}({a} & {b})"),
            Op::Nor => format!("{not}({a} | {b})"),
            Op::Xnor => format!("{not}({a} ^ {b})"),
            Op::Implies => format!("({not}{a}) | {b}"),
        }
    }
}

/// The names of all signals: two constants, the inputs, then `n0`, `n1`, ... for the gates.
pub(crate) fn signal_names(
    policy: &Policy,
    constants: [&str; 2],
    input: impl Fn(Input) -> String,
) -> Vec<String> {
    let mut names: Vec<String> = constants.map(str::to_owned).to_vec();
    names.extend(policy.reads().iter().map(|bit| input(Input::Observation(usize::from(*bit)))));
    names.extend((0..policy.memory_bits()).map(|bit| input(Input::Memory(bit))));
    names.extend((0..policy.gates()).map(|gate| format!("n{gate}")));
    names
}

/// What an input of the circuit stands for.
#[derive(Clone, Copy)]
pub(crate) enum Input {
    /// A bit of the observation, by its place there.
    Observation(usize),
    /// A bit of memory.
    Memory(usize),
}

/// The gates with their names and expressions, in order.
pub(crate) fn gates<'a>(
    circuit: &'a Netlist,
    names: &'a [String],
    complement: Complement,
) -> impl Iterator<Item = (&'a String, String)> {
    let own = &names[2 + circuit.inputs()..];
    circuit.gates().iter().zip(own).map(move |(gate, name)| (name, complement.gate(gate, names)))
}

/// The names of the signals that are the action's bits, and of those that are the next memory.
pub(crate) fn outputs<'a>(policy: &Policy, names: &'a [String]) -> (Vec<&'a String>, Vec<&'a String>) {
    let mut all: Vec<&String> =
        policy.circuit().outputs().iter().map(|output| &names[output.index()]).collect();
    let memory = all.split_off(action_bits(policy.actions()));
    (all, memory)
}

/// Writes one line for every input that is used and for every gate, and hands back the names of all signals: `o` and `m` with
/// their places for the inputs.
pub(crate) fn write_circuit(
    text: &mut String,
    policy: &Policy,
    constants: [&str; 2],
    complement: Complement,
    source: impl Fn(Input) -> String,
    line: impl Fn(&str, &str) -> String,
) -> Vec<String> {
    let names = signal_names(policy, constants, |input| match input {
        Input::Observation(bit) => format!("o{bit}"),
        Input::Memory(bit) => format!("m{bit}"),
    });
    let observed = policy.reads().iter().map(|bit| Input::Observation(usize::from(*bit)));
    let inputs = observed.chain((0..policy.memory_bits()).map(Input::Memory));
    let used = is_used(policy);
    for (place, input) in inputs.enumerate().filter(|(place, _)| used[2 + place]) {
        text.push_str(&line(&names[2 + place], &source(input)));
        text.push('\n');
    }
    for (name, expression) in gates(policy.circuit(), &names, complement) {
        text.push_str(&line(name, &expression));
        text.push('\n');
    }
    names
}

/// The names of inputs that no gate and no output refers to: compilers would warn of them.
fn is_used(policy: &Policy) -> Vec<bool> {
    let circuit = policy.circuit();
    let mut used = vec![false; 2 + circuit.inputs() + circuit.gates().len()];
    let operands = circuit.gates().iter().flat_map(|gate| [gate.a, gate.b]);
    operands.chain(circuit.outputs().iter().copied()).for_each(|signal| used[signal.index()] = true);
    used
}

/// The action code as a sum of shifted bits; `zero` where there are none.
pub(crate) fn action_code(bits: &[&String], zero: &str, shifted: impl Fn(&str, usize) -> String) -> String {
    if bits.is_empty() {
        return zero.to_string();
    }
    bits.iter().enumerate().map(|(place, bit)| shifted(bit, place)).collect::<Vec<_>>().join(" | ")
}
