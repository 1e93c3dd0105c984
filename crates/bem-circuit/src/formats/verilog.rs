//! Verilog: a module of continuous assignments; memory becomes registers with a synchronous reset.

use super::model::Model;
use super::names::{Identifiers, expression};
use std::fmt::Write as _;

const KEYWORDS: &str = "\
    always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign \
    default defparam design disable edge else end endcase endconfig endfunction endgenerate endmodule \
    endprimitive endspecify endtable endtask event for force forever fork function generate genvar \
    highz0 highz1 if ifnone incdir include initial inout input instance integer join large liblist \
    library localparam macromodule medium module nand negedge nmos nor noshowcancelled not notif0 notif1 \
    or output parameter pmos posedge primitive pull0 pull1 pulldown pullup pulsestyle_ondetect \
    pulsestyle_onevent rcmos real realtime reg release repeat rnmos rpmos rtran rtranif0 rtranif1 \
    scalared showcancelled signed small specify specparam strong0 strong1 supply0 supply1 table task \
    time tran tranif0 tranif1 tri tri0 tri1 triand trior trireg unsigned use uwire vectored wait wand \
    weak0 weak1 while wire wor xnor xor logic bit byte int do return static";

/// Writes a module. With memory its first ports are `clock` and `reset`; memory is 0 after a clock edge in reset.
pub fn write(model: &Model) -> String {
    let circuit = model.circuit();
    let mut identifiers = Identifiers::new(KEYWORDS);
    let module = identifiers.take(model.name());
    let sequential = 0 < model.memory();
    let (clock, reset) = if sequential {
        (identifiers.take("clock"), identifiers.take("reset"))
    } else {
        (String::new(), String::new())
    };
    let names = identifiers.signals(model, ["1'b0", "1'b1"]);
    let outputs: Vec<String> = model.output_names().iter().map(|name| identifiers.take(name)).collect();
    let (inputs, memory) = names[2..2 + circuit.inputs()].split_at(model.free_inputs());

    let mut ports = Vec::new();
    if sequential {
        ports.extend([format!("input wire {clock}"), format!("input wire {reset}")]);
    }
    ports.extend(inputs.iter().map(|input| format!("input wire {input}")));
    ports.extend(outputs.iter().map(|output| format!("output wire {output}")));
    let mut text = format!("module {module} (\n  {}\n);\n", ports.join(",\n  "));
    for bit in memory {
        let _ = writeln!(text, "  reg {bit};");
    }
    for (gate, name) in circuit.gates().iter().zip(&names[2 + circuit.inputs()..]) {
        let _ = writeln!(text, "  wire {name} = {};", expression(gate, &names, '~'));
    }
    let (free, next) = circuit.outputs().split_at(model.free_outputs());
    for (output, signal) in outputs.iter().zip(free) {
        let _ = writeln!(text, "  assign {output} = {};", names[signal.index()]);
    }
    if sequential {
        let _ = writeln!(text, "  always @(posedge {clock}) begin");
        for (bit, signal) in memory.iter().zip(next) {
            let _ = writeln!(text, "    {bit} <= {reset} ? 1'b0 : {};", names[signal.index()]);
        }
        text.push_str("  end\n");
    }
    text + "endmodule\n"
}
