//! Rules, diagrams and reasons on policies whose meaning is known, and against brute force on random ones.

use super::*;
use crate::reason::Nearest;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Netlist, Op, Signal};
use bem_circuit::testing::random_dense_netlist;

/// A policy over so many observation bits and memory bits.
fn policy(
    bits: usize,
    memory: usize,
    actions: u16,
    build: impl Fn(&mut Builder) -> (Vec<Signal>, Vec<Signal>),
) -> Policy {
    let mut builder = Builder::new(bits + memory);
    let (action, next) = build(&mut builder);
    Policy::close(builder, bits, actions, &action, &next).unwrap()
}

fn single_bits(bits: u16) -> Vec<Field> {
    (0..bits).map(|low| Field { low, width: 1 }).collect()
}

fn said(policy: &Policy, fields: &[Field]) -> Vec<String> {
    let words = Words::of(policy, fields, None);
    let list = explain(policy, fields, None).action;
    assert!(list.is_exact(), "{list:?}");
    let mut lines: Vec<String> = (list.rules.iter())
        .map(|rule| format!("{} -> {}", words.conditions(&rule.when), action_of(&rule.then)))
        .collect();
    lines.push(format!("-> {}", action_of(&list.otherwise)));
    lines
}

fn inputs(builder: &Builder, places: std::ops::Range<usize>) -> Vec<Signal> {
    places.map(|place| builder.input(place)).collect()
}

#[test]
fn a_conjunction_a_parity_a_majority_and_a_threshold_are_one_rule_each() {
    let conjunction = policy(20, 0, 2, |builder| {
        let bits = [3, 7, 19].map(|place| builder.input(place));
        (vec![builder.and_all(&bits)], vec![])
    });
    assert_eq!(said(&conjunction, &single_bits(20)), ["bit 3 = 1 and bit 7 = 1 and bit 19 = 1 -> 1", "-> 0"]);
    // Forty inputs: the parity is proven, not tried.
    let parity = policy(40, 0, 2, |builder| {
        let bits = inputs(builder, 0..40);
        (vec![builder.xor_all(&bits)], vec![])
    });
    let list = explain(&parity, &single_bits(40), None).action;
    assert_eq!((list.rules.len(), &list.agreement), (1, &Agreement::Proven));
    assert_eq!(said(&parity, &single_bits(40))[0], "an odd number of bits 0-39 are 1 -> 1");
    let majority = policy(7, 0, 2, |builder| (vec![Fact::Count((0..7).collect(), 4).build(builder)], vec![]));
    let lines = said(&majority, &single_bits(7));
    assert!(lines[0].contains(" 4 of bits 0-6 are 1") && lines.len() == 2, "{lines:?}");
    let number = facts::Number { places: (0..8).collect(), field: 0, back: 0, skipped: 0 };
    let threshold =
        policy(9, 0, 2, |builder| (vec![Fact::AtLeast(number.clone(), 37).build(builder)], vec![]));
    let fields = [Field { low: 0, width: 8 }, Field { low: 8, width: 1 }];
    let lines = said(&threshold, &fields);
    assert!(lines[0].contains("field 0") && lines[0].contains(" 37") && lines.len() == 2, "{lines:?}");
}

#[test]
fn lists_that_are_called_exact_equal_the_circuit_and_summaries_say_their_share() {
    let mut prng = Prng::stream(5, "explain");
    let (mut exact, mut summaries) = (0, 0);
    for round in 0..120u64 {
        let bits = 2 + (round % 9) as usize;
        let circuit = random_dense_netlist(&mut prng, bits, 2 + 2 * bits, 2);
        let (reads, fields) = (reads(bits), single_bits(bits as u16));
        let words = Words::seen(&reads, &fields, None, 4);
        let list = list::rule_list(&circuit, &facts::facts(&words, &circuit), &words, &StepsMet::default());
        let rules = list.circuit(bits).unwrap();
        let same = (0..1u32 << bits).filter(|row| {
            let input: Vec<bool> = (0..bits).map(|bit| row >> bit & 1 == 1).collect();
            circuit.evaluate(&input) == rules.evaluate(&input)
        });
        let same = same.count();
        match list.agreement {
            Agreement::Summary { agreed, tried, .. } => {
                // The support may be smaller than the inputs; the share is the same.
                assert_eq!(agreed << bits, (same as u64) * tried, "{list:?}");
                summaries += 1;
            }
            _ => {
                assert_eq!(same, 1 << bits, "{list:?}");
                exact += 1;
            }
        }
    }
    assert!(100 < exact, "{exact} exact, {summaries} summaries");
}

fn reads(bits: usize) -> Vec<u16> {
    (0..bits as u16).collect()
}

#[test]
fn a_sum_is_too_much_for_rules_and_is_marked_as_a_summary() {
    let adder = policy(16, 0, 512, |builder| {
        let (mut carry, mut sum) = (Signal::FALSE, Vec::new());
        for bit in 0..8 {
            let (a, b) = (builder.input(bit), builder.input(8 + bit));
            let half = builder.xor(a, b);
            sum.push(builder.xor(half, carry));
            carry = builder.mux(half, carry, a);
        }
        sum.push(carry);
        (sum, vec![])
    });
    let fields = [Field { low: 0, width: 8 }, Field { low: 8, width: 8 }];
    let list = explain(&adder, &fields, None).action;
    let Agreement::Summary { agreed, tried, .. } = list.agreement else { panic!("{list:?}") };
    assert!(agreed < tried && list.rules.len() <= 12, "{agreed} of {tried}");
}

/// Does the action of the bit before: remembers one bit.
fn delayed() -> Policy {
    policy(2, 1, 2, |builder| (vec![builder.input(2)], vec![builder.input(0)]))
}

#[test]
fn memory_becomes_a_state_diagram() {
    let policy = delayed();
    let fields = single_bits(2);
    let words = Words::of(&policy, &fields, None);
    let diagram = state_diagram(&policy, &words).unwrap();
    assert_eq!(diagram.states.len(), 2);
    assert!(diagram.is_exact());
    let dot = diagram.to_dot(&words);
    assert!(dot.contains("s0 -> s1") && dot.contains("s1 -> s0") && dot.contains("action 1"), "{dot}");
    assert_eq!(counts_steps(&policy), 0);
    // Two bits that count, and one that follows the observation.
    let clock = self::policy(1, 3, 2, |builder| {
        let (low, high) = (builder.input(1), builder.input(2));
        let next = vec![builder.not(low), builder.xor(low, high), builder.input(0)];
        (vec![builder.and(high, low)], next)
    });
    assert_eq!(counts_steps(&clock), 2);
    // A flag that says "not the first step" counts nothing.
    let flag = self::policy(1, 1, 2, |builder| (vec![builder.input(1)], vec![Signal::TRUE]));
    assert_eq!(counts_steps(&flag), 0);
    let without = self::policy(1, 0, 2, |builder| (vec![builder.input(0)], vec![]));
    assert!(state_diagram(&without, &Words::of(&without, &[], None)).is_none());
}

#[test]
fn memory_that_counts_steps_is_a_number_in_the_rules() {
    let number = facts::Number { places: (1..6).collect(), field: 0, back: 0, skipped: 0 };
    let counting = |moved_by: fn(&mut Builder) -> Signal| {
        policy(1, 5, 2, |builder| {
            let late = Fact::AtLeast(number.clone(), 21).build(builder);
            let (mut next, mut carry) = (Vec::new(), moved_by(builder));
            for bit in inputs(builder, 1..6) {
                next.push(builder.xor(bit, carry));
                carry = builder.and(bit, carry);
            }
            let seen = builder.input(0);
            (vec![builder.or(late, seen)], next)
        })
    };
    let every_step = counting(|_| Signal::TRUE);
    assert_eq!(explain(&every_step, &single_bits(1), None).clock, [0, 1, 2, 3, 4]);
    assert_eq!(said(&every_step, &single_bits(1)), ["bit 0 = 0 and steps so far < 21 -> 0", "-> 1"]);
    // One that counts only where the observation says so is no clock.
    let when_seen = counting(|builder| builder.input(0));
    assert_eq!(explain(&when_seen, &single_bits(1), None).clock, [0usize; 0]);
}

/// The inputs that findings without names are about.
fn places(findings: &[Finding]) -> Vec<usize> {
    let place = |finding: &Finding| match finding {
        Finding::Input { place, .. } => *place,
        Finding::Group { .. } => panic!("no feature has a name"),
    };
    findings.iter().map(place).collect()
}

#[test]
fn reasons_force_the_action_and_cannot_be_smaller_and_the_nearest_change_is_nearest() {
    let mut prng = Prng::stream(6, "reason");
    for round in 0..60 {
        let (bits, memory) = (6, round % 3);
        let circuit: Netlist = random_dense_netlist(&mut prng, bits + memory, 24, 2 + memory);
        let policy = policy(bits, memory, 3, |builder| {
            let all: Vec<Signal> = (0..bits + memory).map(Signal::input).collect();
            let outputs = builder.embed(&circuit, &all);
            (outputs[..2].to_vec(), outputs[2..].to_vec())
        });
        let inputs = policy.circuit().inputs();
        let act = |input: &[bool]| action_of(&policy.circuit().evaluate(input)[..2]);
        let input: Vec<bool> = (0..inputs).map(|_| prng.bit()).collect();
        let reason = reason(&policy, &Words::of_bits(&policy, &[]), &input);
        let forced_by = places(&reason.forced_by);
        assert_eq!(reason.action, act(&input));
        let forces = |places: &[usize]| {
            (0..1u32 << inputs).all(|row| {
                let other: Vec<bool> = (0..inputs)
                    .map(|place| if places.contains(&place) { input[place] } else { row >> place & 1 == 1 })
                    .collect();
                act(&other) == reason.action
            })
        };
        assert!(reason.is_minimal && forces(&forced_by));
        for left_out in &forced_by {
            let fewer: Vec<usize> = forced_by.iter().copied().filter(|place| place != left_out).collect();
            assert!(!forces(&fewer), "{left_out} is not needed");
        }
        let seen = policy.reads().len();
        let distance = (0..1u32 << seen)
            .filter_map(|row| {
                let other: Vec<bool> = (0..inputs)
                    .map(|place| if place < seen { row >> place & 1 == 1 } else { input[place] })
                    .collect();
                let changes = (0..seen).filter(|place| other[*place] != input[*place]).count();
                (act(&other) != reason.action).then_some(changes)
            })
            .min();
        match (&reason.nearest, distance) {
            (Nearest::Never, None) => {}
            (Nearest::Change { to, action, is_nearest: true }, Some(distance)) => {
                let (places, mut changed) = (places(to), input.clone());
                places.iter().for_each(|place| changed[*place] = !changed[*place]);
                assert_eq!((places.len(), *action), (distance, act(&changed)));
                assert_ne!(*action, reason.action);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_fact_means_what_it_says() {
    let number = |places: std::ops::Range<usize>| facts::Number {
        places: places.collect(),
        field: 0,
        back: 0,
        skipped: 0,
    };
    let value = |row: u64, low: u64| row >> low & 7;
    type Meaning = Box<dyn Fn(u64) -> bool>;
    let cases: Vec<(Fact, Meaning)> = vec![
        (Fact::AtLeast(number(0..3), 5), Box::new(move |row| 5 <= value(row, 0))),
        (Fact::Equals(number(0..3), 2), Box::new(move |row| value(row, 0) == 2)),
        (Fact::Less(number(0..3), number(3..6)), Box::new(move |row| value(row, 0) < value(row, 3))),
        (Fact::Same(number(0..3), number(3..6)), Box::new(move |row| value(row, 0) == value(row, 3))),
        (Fact::Odd(vec![0, 2, 5]), Box::new(|row| (row & 0b100101).count_ones() % 2 == 1)),
        (Fact::Count(vec![1, 2, 3, 4], 2), Box::new(|row| 2 <= (row & 0b11110).count_ones())),
    ];
    for (fact, holds) in cases {
        let mut builder = Builder::new(6);
        let signal = fact.build(&mut builder);
        let signal = builder.gate(Op::And, signal, Signal::TRUE);
        let circuit = builder.finish(&[signal]).unwrap();
        for row in 0..64u64 {
            let input: Vec<bool> = (0..6).map(|bit| row >> bit & 1 == 1).collect();
            assert_eq!(circuit.evaluate(&input)[0], holds(row), "{fact:?} on {row:06b}");
            assert_eq!(fact.holds(&|place| input[place]), holds(row), "{fact:?} on {row:06b}");
        }
    }
}
