//! Nodes with their ranges, and where control may go from each instruction. Clause: ISA-6.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_isa::assemble::assemble;

const COUNTER: &str = "\
.macro count r
@_again: addi r, r, -1
bne r, x0, @_again
.endm
.node main \"x1 == 0\"
li x1, 3
count x1
jal x31, sub
jmp end
.node sub
sub: ret x31
.node end
end: add x0, x0, x0
";

#[test]
fn nodes_cover_the_program_in_order_with_their_ranges_and_invariants() {
    let program = assemble(COUNTER).unwrap();
    let nodes: Vec<(&str, u32, u32, &str, bool)> = program
        .nodes()
        .iter()
        .map(|node| (node.name.as_str(), node.start, node.end, node.invariant.as_str(), node.is_macro))
        .collect();
    assert_eq!(
        nodes,
        [
            ("main", 0, 1, "x1 == 0", false),
            ("count_1", 1, 3, "", true),
            ("main_after_count_1", 3, 5, "", false),
            ("sub", 5, 6, "", false),
            ("end", 6, 7, "", false),
        ]
    );
    for node in program.nodes() {
        assert_eq!(program.node_at(node.start), Some(node));
    }
    assert_eq!(program.node_at(2), None, "the middle of a node is no node");
}

#[test]
fn successors_are_the_next_instruction_the_target_or_both() {
    let program = assemble(COUNTER).unwrap();
    let successors: Vec<Vec<u32>> = (0..8).map(|position| program.successors(position)).collect();
    let wanted: [&[u32]; 8] = [
        &[1],    // li
        &[2],    // addi
        &[3, 1], // bne falls through or goes back
        &[5],    // jal
        &[6],    // jmp
        &[],     // ret goes where a register says
        &[7],    // add, past the end
        &[],     // there is no instruction 7
    ];
    assert_eq!(successors, wanted);
}
