//! Every format: there and back, in the eyes of other tools, and damaged.

use super::*;
use crate::netlist::{Netlist, Signal};
use crate::testing::{random_dense_netlist, random_netlist};
use crate::truth_table::equal_exhaustive;
use bem_base::prng::Prng;
use expect_test::{Expect, expect};

/// A full adder that keeps its carry.
const ADDER: &str = "circuit adder\ninput a b\nmemory carry\nn0 = xor a b\nn1 = xor n0 carry\nn2 = and a b\n\
    n3 = and n0 carry\nn4 = or n2 n3\noutput sum = n1\nnext carry = n4\n";

const READABLE: [Format; 4] = [Format::Aiger, Format::AigerAscii, Format::Blif, Format::Net];

fn adder() -> Model {
    net::read(ADDER).unwrap()
}

fn random_model(prng: &mut Prng) -> Model {
    let (inputs, outputs) = (2 + prng.below(7) as usize, 1 + prng.below(6) as usize);
    let gates = prng.below(40) as usize;
    let circuit = if prng.bit() {
        random_netlist(prng, inputs, gates, outputs)
    } else {
        random_dense_netlist(prng, inputs, gates.max(outputs), outputs)
    };
    let memory = prng.below(1 + inputs.min(outputs) as u64) as usize;
    Model::with_memory("random", circuit, memory).unwrap()
}

#[test]
fn every_readable_format_brings_the_circuit_and_its_names_back() {
    let mut prng = Prng::stream(1, "formats");
    for _ in 0..if cfg!(miri) { 3 } else { 300 } {
        let model = random_model(&mut prng);
        for format in READABLE {
            let bytes = format.write(&model);
            let back = read(&bytes).unwrap();
            assert_eq!(equal_exhaustive(model.circuit(), back.circuit()), Ok(()), "{format:?}");
            assert_eq!(back.memory(), model.memory());
            assert_eq!(back.input_names(), model.input_names());
            assert_eq!(back.output_names(), model.output_names());
            assert_eq!(back.name(), "random");
        }
        assert_eq!(net::read(&net::write(&model)), Ok(model), "our own form is exact");
    }
}

#[test]
fn an_exclusive_or_survives_formats_that_do_not_have_it() {
    let mut prng = Prng::stream(2, "xor");
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        let circuit = random_dense_netlist(&mut prng, 8, 30, 8);
        let circuit = crate::simplify::simplify(&circuit);
        for format in READABLE {
            let back = read(&format.write(&Model::new("xor", circuit.clone()))).unwrap();
            assert!(back.circuit().gates().len() <= circuit.gates().len() + 8, "{format:?}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too much work for Miri")]
fn the_largest_circuits_come_back() {
    let mut prng = Prng::stream(3, "largest");
    let circuit = random_dense_netlist(&mut prng, 512, 8_192, 256);
    let model = Model::with_memory("large", circuit, 256).unwrap();
    for format in READABLE {
        let back = read(&format.write(&model)).unwrap();
        let words: Vec<u64> = (0..512).map(|_| prng.next_u64()).collect();
        let (mut values, mut want, mut got) = (Vec::new(), Vec::new(), Vec::new());
        model.circuit().evaluate_words(&words, &mut values, &mut want);
        back.circuit().evaluate_words(&words, &mut values, &mut got);
        assert_eq!(want, got, "{format:?}");
    }
}

#[test]
fn damaged_files_are_refused_or_read_but_never_panic() {
    let mut prng = Prng::stream(4, "damage");
    let mut refused = 0;
    for _ in 0..if cfg!(miri) { 10 } else { 4_000 } {
        let model = random_model(&mut prng);
        let format = READABLE[prng.below(4) as usize];
        let mut bytes = format.write(&model);
        for _ in 0..=prng.below(4) {
            let place = prng.below(bytes.len() as u64) as usize;
            match prng.below(5) {
                0 => bytes[place] = prng.next_u64() as u8,
                1 => bytes[place] = b"0123456789 \n\\.-=#"[prng.below(17) as usize],
                2 => drop(bytes.remove(place)),
                3 => bytes.insert(place, b"0123456789 \n\\.-=#"[prng.below(17) as usize]),
                _ => bytes.truncate(place.max(1)),
            }
            if bytes.is_empty() {
                break;
            }
        }
        refused += u32::from(read(&bytes).is_err());
    }
    assert!(0 < refused);
}

#[test]
fn random_words_of_each_format_never_panic() {
    let words = [
        "aag",
        "aig",
        ".model",
        ".inputs",
        ".outputs",
        ".names",
        ".latch",
        ".end",
        "circuit",
        "input",
        "memory",
        "output",
        "next",
        "and",
        "xor",
        "=",
        "a",
        "b",
        "c",
        "n0",
        "0",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "-",
        "11",
        "01 1",
        "4294967295",
        "99999999999999999999",
        "i0",
        "o0",
        "l0",
        "\\",
        "#",
        "\u{e9}",
    ];
    let mut prng = Prng::stream(5, "words");
    for _ in 0..if cfg!(miri) { 20 } else { 20_000 } {
        let mut text = String::new();
        for _ in 0..prng.below(60) {
            text.push_str(words[prng.below(words.len() as u64) as usize]);
            text.push(if prng.below(4) == 0 { '\n' } else { ' ' });
        }
        let _ = read(text.as_bytes());
        let _ = aiger::read(text.as_bytes());
        let _ = blif::read(&text);
        let _ = net::read(&text);
    }
}

#[test]
fn names_that_clash_are_told_apart_in_every_language() {
    let circuit = Netlist::new(4, vec![], (0..4).map(Signal::input).collect()).unwrap();
    let model =
        Model::new("module", circuit).named(&["wire", "a b", "a_b", "n0"], &["wire", "for", "", "for"]);
    assert_eq!(model.input_names(), ["wire", "a_b", "a_b_2", "n0"]);
    assert_eq!(model.output_names(), ["wire_2", "for", "y2", "for_2"]);
    let verilog = verilog::write(&model);
    for part in ["module module_2 (", "input wire wire_2", "output wire wire_2_2", "output wire for_2_2"] {
        assert!(verilog.contains(part), "{part} in {verilog}");
    }
    let back = blif::read(&blif::write(&model)).unwrap();
    assert_eq!(equal_exhaustive(model.circuit(), back.circuit()), Ok(()));
}

fn check_error(text: &str, expected: &str) {
    assert_eq!(read(text.as_bytes()).unwrap_err().to_string(), expected, "{text}");
}

#[test]
fn errors_of_our_own_form_name_line_and_reason() {
    check_error("input a\noutput y = b\n", "line 2: b is not defined before");
    check_error("input a a\n", "line 1: a is defined twice");
    check_error(
        "input a\nn0 = plus a a\n",
        "line 2: unknown operation plus: known are and, or, xor, andnot, nand, nor, xnor, implies",
    );
    check_error("input a\nn0 = and a a\ninput b\n", "line 3: input comes after the first gate or output");
    check_error("memory m\n", "line 1: the next value of m is not given");
    check_error("input a\nnext a = 1\n", "line 2: a is not a bit of memory");
    check_error("output y = 1\noutput y = 0", "line 2: output y is given twice");
    check_error("input a\noutput a = 1\n", "line 2: output a has the name of an input");
    check_error("input 1\n", "line 1: \"1\" is not a name: printable ASCII, at most 128 signs, not 0 or 1");
}

#[test]
fn errors_of_aiger_name_line_and_reason() {
    check_error("aag 1 1 0\n", "line 1: the header has fewer than five numbers");
    check_error("aag 1 1 0 0 0 1\n2\n", "line 1: properties and constraints are not supported");
    check_error("aag 9 600 0 0 0\n", "line 1: 600 inputs exceed the bound of 512");
    check_error("aag 1 1 0 1 0\n3\n", "line 2: 3 is complemented and cannot be defined");
    check_error("aag 1 1 0 1 0\n2\n4\n", "line 3: literal 4 has no definition");
    check_error("aag 1 1 0 1 0\n2\n", "line 3: an output is missing");
    check_error("aag 2 1 0 0 1\n2\n2 2 2\n", "line 3: variable 1 is defined twice");
    check_error("aag 3 1 0 0 2\n2\n4 6 2\n6 4 2\n", "line 3: the gate depends on itself");
    check_error("aag 1 0 1 0 0\n2 2 1\n", "line 2: only latches that start at 0 are supported");
    check_error("aag 1 1 0 0 0\n2\nq\n", "line 3: \"q\" is neither a symbol nor the start of the comment");
    check_error("aag 1 1 0 0 0\n2\ni4 x\n", "line 3: symbol i4 names nothing in the file");
    check_error("aig 2 1 0 0 1\n", "line 1: the gates end too early");
}

#[test]
fn errors_of_blif_name_line_and_reason() {
    check_error(
        ".model m\n.subckt x a=b\n",
        "line 2: .subckt is not supported here: known are .model .inputs .outputs .names .latch .end",
    );
    check_error(".inputs a\n.outputs y\n.names a b \\\n y\n11 1\n", "line 3: b is used but not defined");
    check_error(".names a\n12 1\n", "line 2: row \"12\" is not 0 signs of 0, 1 and -");
    check_error(".inputs a\n.names a y\n1 1\n0 0\n", "line 4: the rows of one table have different outputs");
    check_error(".names a b\n1 1\n.names b a\n1 1\n", "line 1: the table depends on itself");
    check_error(".inputs a\n.names a\n1\n", "line 2: a is defined twice");
    check_error(".latch a b 1\n", "line 1: the latch starts at 1: only 0 is supported");
    check_error(".inputs a \\\n", "line 1: the last line is continued but nothing follows");
}

#[test]
fn gates_may_come_in_any_order_where_the_format_allows_it() {
    let ascii = aiger::read(b"aag 4 2 0 1 2\n2\n4\n9\n8 6 2\n6 2 5\n").unwrap();
    assert_eq!(ascii.circuit().evaluate(&[true, false]), [false]);
    let tables = blif::read(".inputs a b\n.outputs y\n.names t y\n0 1\n.names a b t\n0- 0\n-1 0\n").unwrap();
    assert_eq!(equal_exhaustive(ascii.circuit(), tables.circuit()), Ok(()));
}

#[test]
#[cfg_attr(miri, ignore = "too much work for Miri")]
fn too_long_a_file_is_refused() {
    let long = vec![b' '; TEXT_BYTES_MAX + 1];
    let reason = "line 1: the file has 4194305 bytes, more than the bound of 4194304";
    assert_eq!(read(&long).unwrap_err().to_string(), reason);
}

fn check_text(format: Format, expected: Expect) {
    expected.assert_eq(&String::from_utf8(format.write(&adder())).unwrap());
}

#[test]
#[cfg_attr(miri, ignore = "too much work for Miri")]
fn the_adder_in_every_text_format() {
    assert_eq!(net::write(&adder()), ADDER);
    check_text(
        Format::AigerAscii,
        expect![[r#"
        aag 12 2 1 1 9
        2
        4
        6 25
        19
        8 5 2
        10 4 3
        12 11 9
        14 13 7
        16 12 6
        18 17 15
        20 4 2
        22 13 6
        24 23 21
        i0 a
        i1 b
        l0 carry
        o0 sum
        c
        adder
    "#]],
    );
    check_text(
        Format::Blif,
        expect![[r#"
            .model adder
            .inputs a b
            .outputs sum
            .latch carry_next carry 0
            .names a b n0
            10 1
            01 1
            .names n0 carry n1
            10 1
            01 1
            .names a b n2
            11 1
            .names n0 carry n3
            11 1
            .names n2 n3 n4
            1- 1
            -1 1
            .names n1 sum
            1 1
            .names n4 carry_next
            1 1
            .end
        "#]],
    );
    check_text(
        Format::Verilog,
        expect![[r#"
        module adder (
          input wire clock,
          input wire reset,
          input wire a,
          input wire b,
          output wire sum
        );
          reg carry;
          wire n0 = a ^ b;
          wire n1 = n0 ^ carry;
          wire n2 = a & b;
          wire n3 = n0 & carry;
          wire n4 = n2 | n3;
          assign sum = n1;
          always @(posedge clock) begin
            carry <= reset ? 1'b0 : n4;
          end
        endmodule
    "#]],
    );
    check_text(
        Format::C,
        expect![[r#"
            #include <stdint.h>

            /* Inputs: 2, outputs: 1, bits of memory: 1; 64 lanes a word. */
            typedef struct { uint64_t memory[1]; } adder_state;

            void adder_step(adder_state *state, const uint64_t *inputs, uint64_t *outputs)
            {
                const uint64_t a = inputs[0];
                const uint64_t b = inputs[1];
                const uint64_t carry = state->memory[0];
                const uint64_t n0 = a ^ b;
                const uint64_t n1 = n0 ^ carry;
                const uint64_t n2 = a & b;
                const uint64_t n3 = n0 & carry;
                const uint64_t n4 = n2 | n3;
                outputs[0] = n1;
                state->memory[0] = n4;
            }
        "#]],
    );
    check_text(
        Format::Rust,
        expect![[r#"
        /// The memory of `adder`, 64 lanes; false at the start.
        #[derive(Clone, Debug)]
        pub struct State {
            memory: [u64; 1],
        }

        impl Default for State {
            fn default() -> State {
                State { memory: [0; 1] }
            }
        }

        impl State {
            /// One step of 64 lanes.
            #[allow(unused_variables, non_snake_case, clippy::all)]
            pub fn step(&mut self, inputs: &[u64; 2]) -> [u64; 1] {
                let [a, b] = *inputs;
                let [carry] = self.memory;
                let n0: u64 = a ^ b;
                let n1: u64 = n0 ^ carry;
                let n2: u64 = a & b;
                let n3: u64 = n0 & carry;
                let n4: u64 = n2 | n3;
                self.memory = [n4];
                [n1]
            }
        }
    "#]],
    );
    check_text(
        Format::Dot,
        expect![[r#"
        digraph "adder" {
          rankdir=LR;
          node [fontname="sans-serif"];
          { rank=source;
            s2 [shape=box, label="a"];
            s3 [shape=box, label="b"];
            s4 [shape=box, style=dashed, label="carry"];
          }
          s5 [label="XOR"];
          s2 -> s5;
          s3 -> s5;
          s6 [label="XOR"];
          s5 -> s6;
          s4 -> s6;
          s7 [label="AND"];
          s2 -> s7;
          s3 -> s7;
          s8 [label="AND"];
          s5 -> s8;
          s4 -> s8;
          s9 [label="OR"];
          s7 -> s9;
          s8 -> s9;
          { rank=sink;
            o0 [shape=box, style=solid, label="sum"];
            o1 [shape=box, style=dashed, label="next carry"];
          }
          s6 -> o0;
          s9 -> o1;
        }
    "#]],
    );
}
