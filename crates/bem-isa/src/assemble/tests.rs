//! What is refused and how it is said, and what macros become.

use super::*;

fn error(text: &str) -> String {
    assemble(text).unwrap_err().to_string()
}

#[test]
fn errors_name_the_line_and_what_would_be_right() {
    assert_eq!(error("nop"), "line 1: there is no instruction or macro nop");
    assert_eq!(error("\nadd x1, x2"), "line 2: add takes x, x, x, 2 operands given");
    assert_eq!(error("add x1, x2, x32"), "line 1: \"x32\" is no register: expected x0 to x31");
    assert_eq!(error("shl x1, x1, 64"), "line 1: 64 is out of range: shl takes 0 to 63");
    assert_eq!(error("jmp nowhere"), "line 1: \"nowhere\" is no number, constant or label");
    assert_eq!(error("ld x1, x2"), "line 1: \"x2\" is no address: write [base + offset]");
    assert_eq!(error("a: a:"), "line 1: label a stands twice");
    assert_eq!(error(".macro m\nadd x1, x1, x1"), "line 1: macro m has no .endm");
    assert!(
        error("cop DANCE, x1, x2").starts_with("line 1: there is no operation DANCE; known are ANN_QUERY")
    );
    assert_eq!(
        error(".equ A, 9223372036854775807 + 1"),
        "line 1: 9223372036854775807 + 1 does not fit 64 bits"
    );
}

#[test]
fn a_macro_that_uses_itself_ends() {
    let text = ".macro m\nm\n.endm\nm";
    assert!(error(text).contains("macros are nested deeper than 8"));
}

#[test]
fn macros_become_nodes_with_labels_of_their_own() {
    let text = ".node main \"x1 == 0\"\nli x1, 3\n.macro count r\n@_again: addi r, r, -1\nbne r, x0, @_again\n.endm\n\
                count x1\ncount x2\nadd x0, x0, x0";
    let program = assemble(text).unwrap();
    let names: Vec<(&str, bool)> =
        program.nodes().iter().map(|node| (node.name.as_str(), node.is_macro)).collect();
    assert_eq!(names[0], ("main", false));
    assert_eq!(names[1], ("count_1", true));
    assert!(names.contains(&("count_2", true)));
    assert_eq!(program.nodes()[0].invariant, "x1 == 0");
    assert_eq!(program.words().len(), 6);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_assembler_panic(text in "[ -~\n]{0,200}") {
        let _ = assemble(&text);
    }

    #[test]
    fn no_likely_text_makes_the_assembler_panic(
        words in proptest::collection::vec("add|ld|x1|x2|,|\\[x1 \\+ 8\\]|\n|a:|jmp a|.equ|.node|-|0x|li64 x1, 5|.macro m|.endm|m", 0..40)
    ) {
        let _ = assemble(&words.join(" "));
    }
}
