//! Statements carried over to other widths and numbers of actions: the circuit does what the new statement says, and that is what
//! the old one says of the other shape. Clauses: SCC-2, GLE-10; decision D-136.

use bem_base::environment::{Field, Shape};
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Signal};
use bem_synth::function::Function;
use bem_synth::hypothesis::Stated;
use bem_synth::library::Machine;
use bem_synth::memory::Device;
use bem_synth::memory::condition::Condition;
use bem_synth::memory::stack::Stack;
use bem_synth::policy::Policy;
use bem_synth::statement::{
    Atom, Choice, Fact, Formula, Join, Making, Read, Relation, Rule, Statement, Word, World,
};
use std::sync::Arc;

fn shape(fields: &[u16], actions: u16) -> Shape {
    let mut low = 0;
    let fields: Vec<Field> = fields
        .iter()
        .map(|width| {
            low += width;
            Field { low: low - width, width: *width }
        })
        .collect();
    let (reward_min, reward_max, return_min, return_max) = (0, 1_000, 0, 9_000);
    Shape {
        observation_bits: low,
        actions,
        fields,
        horizon: 9,
        reward_min,
        reward_max,
        return_min,
        return_max,
    }
}

/// What says this at one shape, built for another. Only the statement is carried over, so that any circuit does for the first.
fn carry(formulas: Vec<Formula>, from: &Shape, to: &Shape) -> Option<Stated> {
    let statement = Statement::of(Choice::Bits(formulas));
    let stated = Stated { policy: Policy::constant(from.actions, 0), statement };
    let built = Machine::circuit(from, stated, ("said".to_string(), 9)).instantiate(to)?;
    Some(Stated { policy: built.policy, statement: built.statement? })
}

/// The circuit does what its statement says, and both do what is wanted.
fn check(stated: &Stated, to: &Shape, wanted: impl Fn(&[bool]) -> u64) {
    let mut prng = Prng::stream(9, "transfer/tests");
    let world = World { observation_bits: usize::from(to.observation_bits), actions: to.actions };
    for _ in 0..500 {
        let row: Vec<bool> = (0..to.observation_bits).map(|_| prng.bit()).collect();
        let read: Vec<bool> = stated.policy.reads().iter().map(|bit| row[usize::from(*bit)]).collect();
        let done = stated.policy.circuit().evaluate(&read);
        let (code, _) = stated.statement.step(&world, &row, &[]).expect("a statement about this world");
        assert_eq!(done, code);
        let number = done.iter().rev().fold(0, |number, bit| 2 * number + u64::from(*bit));
        assert_eq!(number, wanted(&row));
    }
}

fn ones(row: &[bool]) -> u64 {
    row.iter().filter(|bit| **bit).count() as u64
}

fn number(row: &[bool]) -> u64 {
    row.iter().rev().fold(0, |number, bit| 2 * number + u64::from(*bit))
}

#[test]
fn the_parity_of_a_field_is_that_of_a_wider_one() {
    let (from, to) = (shape(&[4], 2), shape(&[16], 2));
    let stated = carry(vec![Formula::Sum { bits: (0..4).collect(), inverted: true }], &from, &to).unwrap();
    check(&stated, &to, |row| 1 - ones(row) % 2);
}

#[test]
fn bits_that_stand_alone_are_one_group() {
    let (from, to) = (shape(&[1; 5], 2), shape(&[1; 9], 2));
    let stated = carry(vec![Formula::Sum { bits: (0..5).collect(), inverted: false }], &from, &to).unwrap();
    check(&stated, &to, |row| ones(row) % 2);
}

#[test]
fn more_than_half_of_a_field_is_more_than_half_of_a_wider_one() {
    let (from, to) = (shape(&[9], 2), shape(&[18], 2));
    let atoms = (0..9).map(|bit| Atom::Bit(bit, false)).collect();
    let table = (0..=9).map(|count| 5 <= count).collect();
    let stated = carry(vec![Formula::Count { atoms, table }], &from, &to).unwrap();
    check(&stated, &to, |row| u64::from(10 <= ones(row)));
}

#[test]
fn an_action_that_counts_bits_counts_more_bits_with_more_digits() {
    let (from, to) = (shape(&[7], 8), shape(&[14], 15));
    let digit = |place: usize| {
        let atoms = (0..7).map(|bit| Atom::Bit(bit, false)).collect();
        Formula::Count { atoms, table: (0..=7).map(|count: usize| count >> place & 1 == 1).collect() }
    };
    let parity = Formula::Sum { bits: (0..7).collect(), inverted: false };
    let stated = carry(vec![parity, digit(1), digit(2)], &from, &to).unwrap();
    check(&stated, &to, ones);
}

#[test]
fn an_action_that_is_a_sum_is_the_sum_of_wider_fields() {
    let (from, to) = (shape(&[3, 3], 16), shape(&[6, 6], 128));
    let fields = vec![Field { low: 0, width: 3 }, Field { low: 3, width: 3 }];
    let digit = |place: usize| Formula::About {
        facts: vec![Fact::Bits(Word::Made(Making::Sum, fields.clone()))],
        inner: Box::new(Formula::literal(place, false)),
    };
    let low = Formula::Sum { bits: vec![0, 3], inverted: false };
    let stated = carry(vec![low, digit(1), digit(2), digit(3)], &from, &to).unwrap();
    check(&stated, &to, |row| number(&row[..6]) + number(&row[6..]));
}

#[test]
fn rules_over_relations_of_fields_hold_for_wider_fields() {
    let (from, to) = (shape(&[4, 4], 2), shape(&[8, 8], 2));
    let fields = [Field { low: 0, width: 4 }, Field { low: 4, width: 4 }];
    let facts = Relation::ALL.map(|relation| Fact::Related(relation, fields[0], fields[1])).to_vec();
    let rules = vec![Rule { literals: vec![(3, true)], label: true }];
    let inner = Box::new(Formula::Rules { rules, otherwise: false });
    let stated = carry(vec![Formula::About { facts, inner }], &from, &to).unwrap();
    check(&stated, &to, |row| u64::from(number(&row[..8]) < number(&row[8..])));
}

#[test]
fn places_in_which_two_fields_differ_are_counted_in_wider_ones() {
    let (from, to) = (shape(&[4, 4], 5), shape(&[8, 8], 9));
    let digit = |place: usize| Formula::Count {
        atoms: (0..4).map(|place| Atom::Pair(Join::Xor, place, place + 4)).collect(),
        table: (0..=4).map(|count: usize| count >> place & 1 == 1).collect(),
    };
    let stated = carry((0..3).map(digit).collect(), &from, &to).unwrap();
    check(&stated, &to, |row| (0..8).filter(|place| row[*place] != row[place + 8]).count() as u64);
}

#[test]
fn a_stack_of_a_field_is_a_stack_of_a_wider_one() {
    let (from, to) = (shape(&[1, 1, 1], 2), shape(&[1, 1, 2], 4));
    let condition = |bit, value| Condition::new(vec![(bit, value)], 3);
    let stack = Stack {
        push: condition(0, true),
        pop: condition(1, true),
        field: Some(Field { low: 2, width: 1 }),
        cells: 4,
    };
    let shown = 3 + stack.shows().iter().sum::<usize>();
    let low = 3 + stack.shows().iter().take_while(|width| **width != 1).sum::<usize>();
    let circuit = Builder::new(shown).finish(&[Signal::input(low)]).unwrap();
    let statement = Formula::literal(low, false);
    let bit = Function { circuit, statement, description_length: 4, words: "the top".to_string() };
    let machine = Machine::structure(&from, Arc::new(stack), vec![bit], ("a stack".to_string(), 9));
    let built = machine.instantiate(&to).unwrap();
    assert_eq!(built.policy.actions(), 4);
    assert!(built.words.ends_with("carried over"), "{}", built.words);
}

#[test]
fn what_has_no_counterpart_is_not_carried_over() {
    let from = shape(&[6], 2);
    let middle = vec![Formula::literal(2, false)];
    assert!(carry(middle.clone(), &from, &shape(&[12], 2)).is_none());
    assert!(carry(middle, &from, &shape(&[6, 6], 2)).is_none());
}

#[test]
fn nothing_is_said_of_a_world_that_shows_nothing() {
    let (from, to) = (shape(&[1; 4], 2), shape(&[], 2));
    let places = (0..4).map(|bit| vec![bit]).collect();
    let scan = Formula::Scan { places, machine: 0b0110, answers: [(0, 0), (3, 1)].into(), read: Read::At(3) };
    let atoms = (0..4).map(|bit| Atom::Bit(bit, false)).collect();
    let count = Formula::Count { atoms, table: vec![false, true, false, true, false] };
    let rules = vec![Rule { literals: vec![(3, true)], label: true }];
    let all = [
        scan,
        count,
        Formula::Sum { bits: (0..4).collect(), inverted: false },
        Formula::Rules { rules, otherwise: false },
        Formula::Rules { rules: vec![Rule { literals: vec![(0, true)], label: true }], otherwise: false },
    ];
    for formula in all {
        assert!(carry(vec![formula.clone()], &from, &to).is_none(), "{formula:?}");
    }
}
