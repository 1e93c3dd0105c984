//! DOT: a picture of the circuit for Graphviz, inputs on the left, outputs on the right.

use super::model::Model;
use crate::netlist::{Op, Signal};
use std::fmt::Write as _;

/// Writes a directed graph. A complemented first or second operand is drawn with a circle at its arrow head.
pub fn write(model: &Model) -> String {
    let circuit = model.circuit();
    let mut text =
        format!("digraph \"{}\" {{\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n", model.name());
    let node = |signal: Signal| format!("s{}", signal.index());
    let used = |constant: Signal| {
        circuit.gates().iter().any(|gate| gate.a == constant || gate.b == constant)
            || circuit.outputs().contains(&constant)
    };
    for (constant, label) in [(Signal::FALSE, "0"), (Signal::TRUE, "1")] {
        if used(constant) {
            let _ = writeln!(text, "  {} [shape=plaintext, label=\"{label}\"];", node(constant));
        }
    }
    text.push_str("  { rank=source;\n");
    for (input, name) in model.input_names().iter().enumerate() {
        let style = if input < model.free_inputs() { "shape=box" } else { "shape=box, style=dashed" };
        let _ = writeln!(text, "    {} [{style}, label=\"{name}\"];", node(Signal::input(input)));
    }
    text.push_str("  }\n");
    for (position, gate) in circuit.gates().iter().enumerate() {
        let (label, inverted) = match gate.op {
            Op::And => ("AND", false),
            Op::Or => ("OR", false),
            Op::Xor => ("XOR", false),
            Op::AndNot => ("AND", true),
            Op::Nand => ("NAND", false),
            Op::Nor => ("NOR", false),
            Op::Xnor => ("XNOR", false),
            Op::Implies => ("NAND", true),
        };
        let own = node(circuit.gate_signal(position));
        let _ = writeln!(text, "  {own} [label=\"{label}\"];");
        let _ = writeln!(text, "  {} -> {own};", node(gate.a));
        let arrow = if inverted { " [arrowhead=odot]" } else { "" };
        let _ = writeln!(text, "  {} -> {own}{arrow};", node(gate.b));
    }
    text.push_str("  { rank=sink;\n");
    let next = model.input_names()[model.free_inputs()..]
        .iter()
        .map(|name| (format!("next {name}"), "style=dashed"));
    let outputs = model.output_names().iter().map(|name| (name.clone(), "style=solid"));
    let outputs: Vec<(String, &str)> = outputs.chain(next).collect();
    for (position, (name, style)) in outputs.iter().enumerate() {
        let _ = writeln!(text, "    o{position} [shape=box, {style}, label=\"{name}\"];");
    }
    text.push_str("  }\n");
    for (position, output) in circuit.outputs().iter().enumerate() {
        let _ = writeln!(text, "  {} -> o{position};", node(*output));
    }
    text + "}\n"
}
