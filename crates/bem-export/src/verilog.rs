//! Verilog: one module over the whole observation, with a testbench that reads the vectors.
//!
//! Named features are comments: decimals do not exist in hardware, so that whoever drives `obs` compares them, as the first
//! lines of the file say bit by bit.

use crate::expression::{Complement, Input, gates, outputs, signal_names};
use crate::{FileNames, Language, Program, header, identifier};
use bem_synth::policy::action_bits;
use std::fmt::Write as _;

/// Words that a module may not be called, apart from those that no name of a task contains.
const KEYWORDS: &[&str] = &[
    "and", "begin", "case", "end", "for", "if", "module", "not", "or", "table", "task", "wait", "while",
    "xor",
];

fn module_name(program: &Program<'_>) -> String {
    let name = identifier(program.name);
    if KEYWORDS.contains(&name.as_str()) || name == "testbench" { format!("{name}_policy") } else { name }
}

fn widths(program: &Program<'_>) -> (usize, usize) {
    (program.observation_bits.max(1), action_bits(program.policy.actions()).max(1))
}

pub(crate) fn program(program: &Program<'_>) -> String {
    let policy = program.policy;
    let memory = policy.memory_bits();
    let (bits, code) = widths(program);
    let module = module_name(program);
    let mut text = header(Language::Verilog, program);
    if program.encoder.is_some() {
        text.push_str("// The module takes bits: obs[n] is bit n of the features above, which are compared outside of it.\n");
    }
    let _ = write!(
        text,
        "//\n// The action follows obs within the cycle; memory moves at the rising edge of clock. reset high at a rising edge\n\
         // starts an episode.\nmodule {module} (\n  input wire clock,\n  input wire reset,\n  \
         input wire [{}:0] obs,\n  output wire [{}:0] action\n);\n",
        bits - 1,
        code - 1
    );
    if 0 < memory {
        let _ = writeln!(text, "  reg [{}:0] memory;", memory - 1);
    }
    let names = signal_names(policy, ["1'b0", "1'b1"], |input| match input {
        Input::Observation(bit) => format!("obs[{bit}]"),
        Input::Memory(bit) => format!("memory[{bit}]"),
    });
    for (name, expression) in gates(policy.circuit(), &names, Complement("~")) {
        let _ = writeln!(text, "  wire {name} = {expression};");
    }
    let (action, next) = outputs(policy, &names);
    for (bit, signal) in action.iter().enumerate() {
        let _ = writeln!(text, "  assign action[{bit}] = {signal};");
    }
    if action.is_empty() {
        text.push_str("  assign action = 1'b0;\n");
    }
    if 0 < memory {
        let _ = write!(
            text,
            "  always @(posedge clock) begin\n    if (reset) memory <= {memory}'b0;\n    else begin\n"
        );
        for (bit, signal) in next.iter().enumerate() {
            let _ = writeln!(text, "      memory[{bit}] <= {signal};");
        }
        text.push_str("    end\n  end\n");
    }
    text + "endmodule\n"
}

pub(crate) fn self_test(program: &Program<'_>, files: &FileNames) -> String {
    let (bits, code) = widths(program);
    let module = module_name(program);
    let (last, top) = (bits - 1, code - 1);
    let FileNames { program: name, vectors, .. } = files;
    format!(
        r#"// Plays {vectors} on {name} and compares every action. Run it in their folder.
`timescale 1ns / 1ps
module testbench;
  reg clock = 0;
  reg reset = 1;
  reg [{last}:0] obs = 0;
  wire [{top}:0] action;
  {module} policy(.clock(clock), .reset(reset), .obs(obs), .action(action));

  reg [0:{last}] shown;
  integer file, starts, wanted, bit_index, steps, count;
  initial begin
    steps = 0;
    file = $fopen("{vectors}", "r");
    if (file == 0) begin
      $display("{vectors} cannot be read");
      $fatal;
    end
    count = $fscanf(file, "%d %b %d", starts, shown, wanted);
    while (count == 3) begin
      if (starts != 0) begin
        reset = 1;
        #1 clock = 1;
        #1 clock = 0;
        reset = 0;
      end
      for (bit_index = 0; bit_index < {bits}; bit_index = bit_index + 1) obs[bit_index] = shown[bit_index];
      #1;
      if (action !== wanted[{top}:0]) begin
        $display("step %0d: action %0d instead of %0d", steps, action, wanted);
        $fatal;
      end
      #1 clock = 1;
      #1 clock = 0;
      steps = steps + 1;
      count = $fscanf(file, "%d %b %d", starts, shown, wanted);
    end
    if (steps == 0) begin
      $display("nothing to compare");
      $fatal;
    end
    $display("%0d steps: ok", steps);
    $finish;
  end
endmodule
"#
    )
}
