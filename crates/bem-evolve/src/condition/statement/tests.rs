//! Statements of every kind: their signals against their plain reading, circuits against them, and spoiled ones refused.

use super::*;
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Signal};
use bem_synth::statement::{
    Atom, Branch, Choice, Fact, Formula, Index, Join, Making, Memory, Number, Pair, Plan, Read, Relation,
    Rule, Table, Wire, Wiring, Word,
};
use std::collections::BTreeMap;

/// Bits of an observation, and actions: codes past the last one occur.
const WORLD: World = World { observation_bits: 12, actions: 3 };

fn field(low: u16, width: u16) -> Field {
    Field { low, width }
}

/// Everything that can be said in one bit, over a row of this many bits.
fn formulas(prng: &mut Prng, width: usize) -> Vec<Formula> {
    let mut indices: Vec<Index> = (0..width as u16).collect();
    prng.shuffle(&mut indices);
    let mut some = |count: usize| {
        prng.shuffle(&mut indices);
        indices[..count].to_vec()
    };
    let (summed, weighed, counted, keys, tested) = (some(5), some(6), some(7), some(6), some(6));
    let terms = (0..6).map(|size| some(size % 4)).collect();
    let mut draw = Prng::stream(prng.next_u64(), "formulas");
    let rows: Table = (0..24).map(|_| (draw.below(64), draw.below(2))).collect();
    let mut bit = || draw.bit();
    let literal = |bit: &Index, value: bool| (*bit, value);
    let atoms = counted
        .iter()
        .enumerate()
        .map(|(place, one)| match place % 3 {
            0 => Atom::Bit(*one, place % 2 == 0),
            1 => Atom::Pair(Join::Xor, *one, keys[0]),
            _ => Atom::Pair(Join::And, *one, keys[1]),
        })
        .collect();
    let rule = |bits: &[Index], label: bool| Rule {
        literals: bits.iter().map(|bit| literal(bit, bit % 2 == 0)).collect(),
        label,
    };
    let pair = |place: usize, differ: bool, inverted: bool| Pair {
        first: tested[place],
        second: tested[place + 1],
        differ,
        inverted,
    };
    let leaf = |answer: u16| Branch::Leaf(answer);
    let mut list = vec![
        Formula::Sum { bits: summed, inverted: bit() },
        Formula::Threshold {
            weights: weighed.iter().zip([3, -2, 7, -5, 1, 4]).map(|(bit, weight)| (*bit, weight)).collect(),
            bound: 2,
        },
        Formula::Count { atoms, table: (0..8).map(|_| bit()).collect() },
        Formula::Rows { bits: keys.clone(), rows },
        Formula::Rows { bits: keys.clone(), rows: Table::new() },
        Formula::Rules {
            rules: vec![rule(&tested[..2], true), rule(&tested[2..5], false), rule(&tested[5..], true)],
            otherwise: false,
        },
        Formula::Tree(vec![Branch::Test(tested[0]), leaf(1), Branch::Test(tested[1]), leaf(0), leaf(1)]),
        Formula::Pairs {
            pairs: vec![pair(0, true, false), pair(2, false, true), pair(4, true, true)],
            otherwise: true,
        },
        Formula::Polynomial(terms),
    ];
    let places =
        |step: u16| (0..4).map(|place| vec![place, (place + step) % width as u16]).collect::<Vec<_>>();
    let answers: Table = [(0, 1), (3, 0), (5, 1), (6, 0)].into();
    for read in [
        Read::At(2),
        Read::Named { field: field(8, 2), from_end: false },
        Read::Named { field: field(8, 3), from_end: true },
    ] {
        list.push(Formula::Scan { places: places(4), machine: 0b1001_0110, answers: answers.clone(), read });
    }
    let wide = (0..3).map(|place| (place..place + 4).collect()).collect();
    let answers: Table = [(0, 1), (9, 1), (22, 0), (31, 1)].into();
    list.push(Formula::Scan { places: wide, machine: 0x9669_5aa5, answers, read: Read::At(2) });
    let words = |making: Making| Word::Made(making, vec![field(0, 3), field(3, 3)]);
    for word in [Word::Plain(field(2, 2)), Word::Ones(field(1, 3)), words(Making::Larger)] {
        list.push(Formula::Select { selector: word, parts: list[..3].to_vec() });
    }
    let inner = |bits: usize| Box::new(Formula::Sum { bits: (0..bits as u16).collect(), inverted: false });
    for making in Making::ALL {
        let bits = words(making).bits(&vec![false; width]).unwrap().len();
        list.push(Formula::About { facts: vec![Fact::Bits(words(making))], inner: inner(bits - 1) });
    }
    let several = Word::Made(Making::Sum, vec![field(0, 3), field(3, 3), field(6, 3), field(9, 3)]);
    list.push(Formula::About { facts: vec![Fact::Bits(several)], inner: inner(4) });
    let mut facts = vec![
        Fact::Bit(3),
        Fact::Ones(field(0, 5), 3),
        Fact::Odd(field(4, 4)),
        Fact::Fewer(field(0, 4), field(4, 5)),
        Fact::Below(words(Making::Sum), Word::Plain(field(6, 4))),
    ];
    facts.extend(Relation::ALL.map(|relation| Fact::Related(relation, field(0, 4), field(5, 4))));
    for fact in facts {
        list.push(Formula::About { facts: vec![fact], inner: inner(1) });
    }
    list
}

/// One structure of every kind.
fn memories() -> Vec<Memory> {
    let one = || vec![(0, true)];
    let other = || vec![(1, false), (2, true)];
    let stack = |field| Memory::Stack { push: one(), pop: other(), field, cells: 3 };
    let raises: Table = [(1, 1), (70, 0), (4_097, 0), (8_000, 1), (4_100, 1)].into();
    vec![
        Memory::Toggle(one()),
        Memory::Latch { set: one(), clear: None },
        Memory::Latch { set: one(), clear: Some(other()) },
        Memory::Counter { up: one(), down: Some(other()), bits: 3, digits: true },
        Memory::Counter { up: one(), down: None, bits: 2, digits: false },
        Memory::Delay(2),
        Memory::Echo(field(3, 2), 3),
        stack(None),
        stack(Some(field(3, 2))),
        Memory::Queue { push: one(), pop: other(), field: field(4, 2), cells: 3 },
        Memory::Registers { write: one(), address: field(4, 2), data: field(6, 2), delayed: false },
        Memory::Registers { write: one(), address: field(4, 2), data: field(6, 2), delayed: true },
        Memory::Tape { write: one(), read: other(), field: field(4, 2), cell_bits: 2 },
        Memory::Sticky { inner: Box::new(stack(None)), raises },
        Memory::Both(Box::new(Memory::Toggle(other())), Box::new(stack(None))),
        Memory::After(Box::new(stack(Some(field(3, 1))))),
    ]
}

/// A statement of every kind, and every formula and structure in one.
fn statements(prng: &mut Prng) -> Vec<Statement> {
    let formulas = formulas(prng, WORLD.observation_bits);
    let mut draw = |count: u64, keys: u64, values: u64| -> Table {
        (0..count).map(|_| (prng.below(keys), prng.below(values))).collect()
    };
    let mut list: Vec<Statement> =
        formulas.windows(2).map(|pair| Statement::of(Choice::Bits(pair.to_vec()))).collect();
    for memory in memories() {
        let (shown, _) = memory
            .step(&[false; WORLD.observation_bits], &vec![false; memory.bits(WORLD.observation_bits)])
            .unwrap();
        let last = WORLD.observation_bits + shown.len() - 1;
        let choice = Choice::Bits(vec![Formula::literal(last, false), formulas[0].clone()]);
        list.push(Statement::Acts { memory: Some(memory), choice });
    }
    let models = vec![(2, formulas[1].clone()), (0, formulas[4].clone()), (1, formulas[5].clone())];
    list.push(Statement::of(Choice::FirstOf { models, otherwise: 2 }));
    let facts = vec![Fact::Related(Relation::Below, field(3, 2), field(12, 2)), Fact::Bit(1)];
    let model = Formula::About { facts, inner: Box::new(Formula::Sum { bits: vec![0, 1], inverted: false }) };
    list.push(Statement::of(Choice::FirstThatPays { model, order: vec![1, 2, 0] }));
    list.push(Statement::of(Choice::Highest(vec![
        Number::Digits(formulas[..3].to_vec()),
        Number::Weighted { base: 1, weights: vec![(2, true, 3), (5, false, 4)] },
        Number::Digits(formulas[2..4].to_vec()),
    ])));
    list.push(Statement::of(Choice::Rows { bits: vec![1, 4, 5, 9, 11], rows: draw(20, 32, 4) }));
    list.push(Statement::of(Choice::Tree(vec![Branch::Test(3), Branch::Leaf(3), Branch::Leaf(1)])));
    let machine = Statement::Machine { state_bits: 2, seen: vec![0, 3, 7], rows: draw(20, 32, 16) };
    let plan = |clock_bits: u8, recall_bits: u8, history: u8, rows: Table, recalls: Table| {
        Statement::Plan(Plan { seen: vec![2, 6], clock_bits, recall_bits, history, rows, recalls })
    };
    list.push(plan(2, 0, 0, draw(10, 16, 4), Table::new()));
    list.push(plan(1, 2, 0, draw(20, 32, 4), draw(30, 64, 4)));
    list.push(plan(0, 0, 2, draw(60, 4_096, 4), Table::new()));
    let through = |echo: bool, inner: Statement| Statement::Through {
        bits: (0..8).map(|bit| (11 - bit, bit % 3 == 0)).collect(),
        echo,
        inner: Box::new(inner),
    };
    // Every gate of two signals that there is, over what is seen, remembered and said before.
    let wire = |says: u8| Wire { says, of: [u32::from(says) % 9, 2 + u32::from(says) * 5 % 7] };
    let (seen, gates) = (vec![0, 3, 4, 7, 10], (0..16).map(wire).collect());
    list.push(Statement::Gates(Wiring { seen, memory_bits: 2, gates, outputs: vec![24, 15, 17, 19] }));
    list.push(through(true, machine.clone()));
    list.push(through(false, machine.clone()));
    list.push(machine);
    list
}

/// The signals of a statement.
fn written(statement: &Statement) -> (Graph, Vec<Bit>) {
    let mut graph = Graph::new(WORLD.observation_bits + statement.memory_bits(&WORLD));
    let signals: Vec<Bit> = (0..graph.inputs()).map(|input| graph.input(input)).collect();
    let parts = signals.split_at(WORLD.observation_bits);
    let (code, next) = policies::statement(&mut graph, &WORLD, parts, statement).expect("it fits the world");
    (graph, [code, next].concat())
}

/// In how many of some random rows the signals say something else than the plain reading.
fn mistakes(graph: &Graph, said: &[Bit], statement: &Statement, prng: &mut Prng) -> usize {
    let mut mistakes = 0;
    for _ in 0..4 {
        let words: Vec<u64> = (0..graph.inputs()).map(|_| prng.next_u64()).collect();
        let values = graph.evaluate(&words, said, &mut Vec::new());
        for lane in 0..64 {
            let row: Vec<bool> = words.iter().map(|word| word >> lane & 1 == 1).collect();
            let (seen, kept) = row.split_at(WORLD.observation_bits);
            let (code, next) = statement.step(&WORLD, seen, kept).expect("it fits the world");
            let found: Vec<bool> = values.iter().map(|word| word >> lane & 1 == 1).collect();
            mistakes += usize::from(found != [code, next].concat());
        }
    }
    mistakes
}

#[test]
fn the_signals_of_every_statement_say_what_its_plain_reading_says() {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..12 {
        let mut prng = Prng::stream(seed, "statements");
        for statement in statements(&mut prng) {
            let (graph, said) = written(&statement);
            assert_eq!(mistakes(&graph, &said, &statement, &mut prng), 0, "{statement:?}");
            *kinds.entry(statement.kind()).or_default() += 1;
        }
    }
    assert_eq!(kinds.len(), 11, "{kinds:?}");
}

#[test]
fn signals_that_are_wrong_in_one_place_are_caught_by_the_plain_reading() {
    let mut prng = Prng::stream(5, "statements/wrong");
    let (mut caught, mut tried) = (0, 0);
    for statement in statements(&mut prng) {
        let (mut graph, said) = written(&statement);
        for place in 0..said.len() {
            // One output is right unless two inputs are set: it is wrong in a quarter of the rows at most.
            let mut wrong = said.clone();
            let (one, other) = (graph.input(place % 12), graph.input((place + 5) % 12));
            let when = graph.and(one, other);
            wrong[place] = graph.xor(wrong[place], when);
            tried += 1;
            caught += usize::from(0 < mistakes(&graph, &wrong, &statement, &mut prng));
        }
    }
    assert_eq!((caught, 100 < tried), (tried, true));
}

/// The circuit of a statement, gate by gate from its plain reading where that is small, else from its signals by tables.
fn circuit_of(statement: &Statement) -> Option<Policy> {
    let inputs = WORLD.observation_bits + statement.memory_bits(&WORLD);
    if 16 < inputs {
        return None;
    }
    let mut builder = Builder::new(inputs);
    let signals: Vec<Signal> = (0..inputs).map(Signal::input).collect();
    let rows: Vec<(u64, Vec<bool>)> = (0..1u64 << inputs)
        .map(|row| {
            let bits: Vec<bool> = (0..inputs).map(|bit| row >> bit & 1 == 1).collect();
            let (seen, kept) = bits.split_at(WORLD.observation_bits);
            let (code, next) = statement.step(&WORLD, seen, kept).expect("it fits the world");
            (row, [code, next].concat())
        })
        .collect();
    let outputs: Vec<Signal> = (0..rows[0].1.len())
        .map(|output| {
            let table = rows.iter().map(|(row, outputs)| (*row, outputs[output])).collect();
            bem_synth::function::build_table(&mut builder, &signals, &table)
        })
        .collect();
    let (action, next) = outputs.split_at(WORLD.code_bits());
    Policy::close(builder, WORLD.observation_bits, WORLD.actions, action, next).ok()
}

fn is_shown(policy: &Policy, statement: &Statement) -> Result<Vec<Finding>, Rejection> {
    check(policy, statement, WORLD.observation_bits as u16, Budget::conflicts(20_000))
}

/// Whether two statements say the same about some thousands of rows, read plainly.
fn say_the_same(one: &Statement, other: &Statement, prng: &mut Prng) -> bool {
    let memory = one.memory_bits(&WORLD);
    memory == other.memory_bits(&WORLD)
        && (0..4_000).all(|_| {
            let row: Vec<bool> = (0..WORLD.observation_bits + memory).map(|_| prng.bit()).collect();
            let (seen, kept) = row.split_at(WORLD.observation_bits);
            one.step(&WORLD, seen, kept) == other.step(&WORLD, seen, kept)
        })
}

#[test]
fn a_circuit_is_shown_to_do_what_its_statement_says_and_never_what_another_one_says() {
    let mut prng = Prng::stream(8, "statements/circuits");
    let all = statements(&mut prng);
    let (mut shown, mut refused) = (0, 0);
    for (place, statement) in all.iter().enumerate() {
        let Some(policy) = circuit_of(statement) else { continue };
        assert!(is_shown(&policy, statement).is_ok(), "{statement:?}");
        shown += 1;
        let other = &all[(place + 1) % all.len()];
        if !say_the_same(statement, other, &mut prng) {
            assert!(is_shown(&policy, other).is_err(), "{statement:?} is not {other:?}");
            refused += 1;
        }
    }
    assert!(20 < shown && 20 < refused, "{shown} {refused}");
}

#[test]
fn bytes_of_every_statement_come_back_and_damaged_ones_never_panic() {
    use bem_base::encode::{Reader, Writer};
    let mut prng = Prng::stream(9, "statements/bytes");
    let bytes_of = |statement: &Statement| {
        let mut writer = Writer::new();
        statement.encode(&mut writer);
        writer.into_bytes()
    };
    let (mut read, mut refused) = (0, 0);
    for statement in statements(&mut prng) {
        let bytes = bytes_of(&statement);
        let mut reader = Reader::new(&bytes);
        assert_eq!(Statement::decode(&mut reader), Ok(statement));
        assert_eq!(reader.finish(), Ok(()));
        for _ in 0..200 {
            let mut damaged = bytes.clone();
            damaged[prng.below(bytes.len() as u64) as usize] = prng.next_u64() as u8;
            damaged.truncate(
                damaged.len() - if prng.below(4) == 0 { prng.below(bytes.len() as u64) as usize } else { 0 },
            );
            let mut reader = Reader::new(&damaged);
            match Statement::decode(&mut reader) {
                Ok(other) => {
                    assert_eq!(bytes_of(&other), damaged[..reader.position()]);
                    // Whatever it says, asking it does not panic.
                    let _ = is_shown(&Policy::constant(WORLD.actions, 1), &other);
                    let memory = other.memory_bits(&WORLD);
                    if memory <= 2_000 {
                        let _ = other.step(&WORLD, &[true; WORLD.observation_bits], &vec![true; memory]);
                    }
                    read += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(1_000 < read && 1_000 < refused, "{read} {refused}");
}

/// A statement, and the same with one thing about it changed.
fn spoiled() -> Vec<(&'static str, Statement, Statement)> {
    let formula = |formula: Formula| Statement::of(Choice::Bits(vec![formula, Formula::constant(false)]));
    let threshold = |weight: i32, bound: i64| {
        formula(Formula::Threshold { weights: vec![(0, 2), (3, weight), (7, 1), (9, -1)], bound })
    };
    let rows = |value: u64, last: Index| {
        let rows = (0..16).map(|key| (key, if key == 11 { value } else { key >> 1 & 1 })).collect();
        formula(Formula::Rows { bits: vec![1, 2, 4, last], rows })
    };
    let sum = |bits: &[Index]| formula(Formula::Sum { bits: bits.to_vec(), inverted: false });
    let rules = |label: bool| {
        let first = Rule { literals: vec![(1, true), (2, false)], label };
        let second = Rule { literals: vec![(3, true)], label: true };
        formula(Formula::Rules { rules: vec![first, second], otherwise: false })
    };
    let count = |last: bool| {
        let atoms = (0..3).map(|bit| Atom::Bit(bit, false)).collect();
        formula(Formula::Count { atoms, table: vec![true, false, true, last] })
    };
    let shown = |memory: Memory| Statement::Acts {
        memory: Some(memory),
        choice: Choice::Bits(vec![Formula::literal(12, false), Formula::constant(false)]),
    };
    let stack = |cells: u8, pop: bool| {
        let (push, pop) = (vec![(0, true)], vec![(1, pop)]);
        shown(Memory::Stack { push, pop, field: None, cells })
    };
    let latch = |clear: bool| shown(Memory::Latch { set: vec![(0, true)], clear: Some(vec![(1, clear)]) });
    let machine = |next: u64| {
        let rows = (0..4).map(|key| (key, (key & 1) | (if key == 3 { next << 2 } else { 0 }))).collect();
        Statement::Machine { state_bits: 1, seen: vec![5], rows }
    };
    vec![
        ("weight", threshold(3, 2), threshold(2, 2)),
        ("threshold", threshold(3, 2), threshold(3, 3)),
        ("row", rows(1, 6), rows(0, 6)),
        ("bit of a key", rows(0, 6), rows(0, 8)),
        ("bit of a sum", sum(&[1, 4, 8]), sum(&[1, 4, 9])),
        ("label of a rule", rules(false), rules(true)),
        ("entry of a count", count(true), count(false)),
        ("size of a structure", stack(3, true), stack(2, true)),
        ("condition of a structure", stack(3, true), stack(3, false)),
        ("next memory of a bit", latch(true), latch(false)),
        ("next state of a machine", machine(1), machine(0)),
    ]
}

#[test]
fn a_statement_with_one_thing_changed_is_refused() {
    for (what, good, bad) in spoiled() {
        let policy = circuit_of(&good).expect(what);
        assert!(is_shown(&policy, &good).is_ok(), "{what}");
        let refusal = is_shown(&policy, &bad).expect_err(what);
        let is_other_size = what == "size of a structure";
        assert_eq!(matches!(refusal, Rejection::Refuted { .. }), !is_other_size, "{what}: {refusal}");
        // What a refusal shows is an observation and a content of memory on which the two differ.
        if let Rejection::Refuted { counterexample: row, .. } = refusal {
            let (seen, kept) = row.split_at(WORLD.observation_bits);
            assert_ne!(good.step(&WORLD, seen, kept), bad.step(&WORLD, seen, kept), "{what}: {row:?}");
        }
    }
}

/// The signals of a statement for a world, given so many signals of each sort.
fn signals_for(world: &World, [seen, kept]: [usize; 2], said: &Statement) -> Option<Vec<Bit>> {
    let mut graph = Graph::new(seen + kept);
    let signals: Vec<Bit> = (0..seen + kept).map(|input| graph.input(input)).collect();
    policies::statement(&mut graph, world, signals.split_at(seen), said).map(|(code, _)| code)
}

#[test]
fn signals_of_another_number_than_the_world_and_the_memory_have_are_refused() {
    let one = Formula::Sum { bits: vec![0], inverted: false };
    let choice = Choice::Bits(vec![one.clone(), one]);
    let said = Statement::Acts { memory: Some(Memory::Toggle(vec![(0, true)])), choice };
    assert!(signals_for(&WORLD, [12, 1], &said).is_some());
    for (seen, kept) in [(11, 1), (13, 1), (12, 0), (12, 2), (11, 2)] {
        assert!(signals_for(&WORLD, [seen, kept], &said).is_none(), "{seen} and {kept}");
    }
}

#[test]
fn the_longest_numbers_and_keys_are_taken_and_longer_ones_are_not() {
    let world = World { observation_bits: 66, actions: 2 };
    let digits = |count: u16| {
        let digit = |bit| Formula::Sum { bits: vec![bit], inverted: false };
        Number::Digits((0..count).map(digit).collect())
    };
    let highest = |count| Choice::Highest(vec![digits(1), digits(count)]);
    let keys = |count: u16| Choice::Rows { bits: (0..count).collect(), rows: [(0, 0), (1 << 63, 1)].into() };
    for (choice, is_taken) in [(highest(64), true), (highest(65), false), (keys(64), true), (keys(65), false)]
    {
        let said = Statement::Acts { memory: None, choice };
        let row: Vec<bool> = (0..66).map(|bit| bit == 63).collect();
        let signals = signals_for(&world, [66, 0], &said);
        assert_eq!(signals.is_some(), is_taken, "{said:?}");
        if is_taken {
            assert_eq!(said.step(&world, &row, &[]).map(|(code, _)| code), Some(vec![true]), "{said:?}");
        }
    }
}

/// The parts that must be trusted for a circuit to be what it says.
const TRUSTED: [&str; 8] = [
    include_str!("formulas.rs"),
    include_str!("memories.rs"),
    include_str!("mod.rs"),
    include_str!("numbers.rs"),
    include_str!("policies.rs"),
    include_str!("rows.rs"),
    include_str!("wirings.rs"),
    include_str!("../../../../bem-prover/src/graph.rs"),
];

#[test]
fn the_lines_that_must_be_trusted_are_as_many_as_the_architecture_says() {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines = |file: &str| file.split("#[cfg(test)]").next().unwrap_or("").lines().filter(is_code).count();
    let (said, graph) = TRUSTED.split_at(7);
    let said: usize = said.iter().map(|file| lines(file)).sum();
    let sentence = format!("{said} lines of definitions and {} of the graph", lines(graph[0]));
    let architecture = include_str!("../../../../../ARCHITECTURE.md");
    assert!(architecture.contains(&sentence), "ARCHITECTURE.md must say: {sentence}");
}
