//! Every operation called by a program, and random descriptors.

use super::*;
use crate::assemble::assemble;
use crate::instruction::SegmentBase;
use crate::interpreter::{Core, NoCoprocessor, SegmentStarts};
use bem_base::prng::Prng;
use bem_circuit::netlist::{Gate, Netlist, Op, Signal};

const WORDS: usize = 1_024;
/// Where descriptors, inputs and answers stand, in words.
const INPUT: usize = 64;
const ANSWER: usize = 512;

struct Bench {
    shared: Vec<u64>,
    host: Host,
}

impl Bench {
    fn new() -> Bench {
        Bench { shared: vec![0; WORDS], host: Host::new(10_000) }
    }

    fn put(&mut self, place: usize, words: &[u64]) -> u64 {
        self.shared[place..place + words.len()].copy_from_slice(words);
        8 * place as u64
    }

    /// Calls an operation from a program, with the descriptor at the start of memory.
    fn call(&mut self, name: &str, descriptor: &[u64]) -> Result<u64, Cause> {
        self.put(0, descriptor);
        let program = assemble(&format!("cop {name}, x1, x2")).unwrap();
        let mut core = Core::new(&program, 1, SegmentStarts::default().with(SegmentBase::Proof, 0));
        let mut memory = Memory::open(&mut self.shared, &mut []);
        core.run(&program, &mut memory, &mut self.host, 10).map_err(|trap| trap.cause)?;
        Ok(core.x[2])
    }
}

/// A formula in its words.
fn formula(variables: u64, clauses: &[&[i64]]) -> Vec<u64> {
    let literals = clauses.iter().flat_map(|clause| clause.iter().copied().chain([0]));
    [variables, clauses.len() as u64].into_iter().chain(literals.map(|word| word as u64)).collect()
}

#[test]
fn the_nearest_experts_come_first_and_ties_in_order() {
    let mut bench = Bench::new();
    let features = bench.put(INPUT, &[0b1111, 0, 0, 0]);
    let experts: Vec<u64> = [(0b0000, 7), (0b1110, 8), (0b1111, 9), (0b0111, 10)]
        .iter()
        .flat_map(|(bits, number)| [*bits, 0, 0, 0, *number])
        .collect();
    let experts = bench.put(INPUT + 8, &experts);
    let list = 8 * ANSWER as u64;
    assert_eq!(bench.call("ANN_QUERY", &[features, experts, 4, list, 3]), Ok(list));
    assert_eq!(bench.shared[ANSWER..ANSWER + 4], [3, 9, 8, 10]);
    assert_eq!(bench.call("ANN_QUERY", &[features, experts, 4, list, 0]), Err(Cause::BadDescriptor));
    assert_eq!(bench.call("ANN_QUERY", &[features, experts, 512, list, 1]), Err(Cause::BadDescriptor));
}

#[test]
fn a_formula_is_decided_and_its_proof_is_checked_by_another_operation() {
    let mut bench = Bench::new();
    let open = bench.put(INPUT, &formula(3, &[&[1, 2], &[-1], &[-2, 3]]));
    assert_eq!(bench.call("SAT_CHECK", &[open, 1_000, 8 * ANSWER as u64, 0, 0]), Ok(1));
    assert_eq!(bench.shared[ANSWER] & 7, 0b110);

    let closed = bench.put(INPUT, &formula(2, &[&[1, 2], &[1, -2], &[-1, 2], &[-1, -2]]));
    let proof = 8 * ANSWER as u64;
    assert_eq!(bench.call("SAT_CHECK", &[closed, 1_000, 0, 0, 0]), Ok(2));
    assert_eq!(bench.call("SAT_CHECK", &[closed, 1_000, 0, proof, 1]), Ok(4));
    assert_eq!(bench.call("SAT_CHECK", &[closed, 1_000, 0, proof, 100]), Ok(2));
    assert_eq!(bench.call("PROOF_CHECK", &[closed, proof]), Ok(1));
    bench.shared[ANSWER] = 0;
    assert_eq!(bench.call("PROOF_CHECK", &[closed, proof]), Ok(0), "an empty proof proves nothing");
    let crooked = bench.put(INPUT, &formula(2, &[&[1, 9]]));
    assert_eq!(bench.call("SAT_CHECK", &[crooked, 1, 0, 0, 0]), Err(Cause::BadDescriptor));
}

#[test]
fn invariants_of_a_program_in_memory_are_checked() {
    let verdict = |text: &str| {
        let mut bench = Bench::new();
        let program = bench.put(INPUT, &packed(&assemble(text).unwrap().to_bytes()));
        bench.call("HOARE_CHECK", &[program, 4, 10_000])
    };
    assert_eq!(verdict(".node a\nli x1, 5\n.node b \"x1 == 5\"\nadd x2, x1, x0\n"), Ok(1));
    assert_eq!(verdict(".node a\nli x1, 5\n.node b \"x1 == 6\"\nadd x2, x1, x0\n"), Ok(2));
    assert_eq!(verdict(".node a \"x1 == 6 && x1 == 5\"\nadd x2, x1, x0\n"), Ok(4));
    assert_eq!(verdict("add x2, x1, x0\n"), Ok(0), "no nodes, nothing to check");
    let mut bench = Bench::new();
    let noise = bench.put(INPUT, &[9, 1, 2]);
    assert_eq!(bench.call("HOARE_CHECK", &[noise, 4, 10]), Err(Cause::BadDescriptor));
}

#[test]
fn a_smallest_circuit_is_found_for_a_table() {
    let mut bench = Bench::new();
    let (parity, result) = (bench.put(INPUT, &[0b1001_0110]), 8 * ANSWER as u64);
    assert_eq!(bench.call("CEGIS", &[3, 1, parity, 0, 4, 10_000, result, 16]), Ok(1));
    let count = bench.shared[ANSWER] as usize;
    assert_eq!(count, 2, "parity of three bits takes two gates");
    let gates = bench.shared[ANSWER + 1..=ANSWER + count].iter().map(|word| Gate {
        op: Op::ALL[(word & 0xFF) as usize],
        a: Signal::from_index((word >> 8 & 0xFF_FFFF) as usize),
        b: Signal::from_index((word >> 32) as usize),
    });
    let output = Signal::from_index(bench.shared[ANSWER + 1 + count] as usize);
    let circuit = Netlist::new(3, gates.collect(), vec![output]).unwrap();
    for row in 0..8u64 {
        let bits: Vec<bool> = (0..3).map(|bit| row >> bit & 1 == 1).collect();
        assert_eq!(circuit.evaluate(&bits), [row.count_ones() % 2 == 1]);
    }
    assert_eq!(bench.call("CEGIS", &[3, 1, parity, 0, 1, 10_000, result, 16]), Ok(3));
    assert_eq!(bench.call("CEGIS", &[3, 1, parity, 0, 4, 10_000, result, 2]), Ok(5));
    assert_eq!(bench.call("CEGIS", &[7, 1, parity, 0, 4, 10_000, result, 16]), Err(Cause::BadDescriptor));
    // With only the rows that matter wanted, a constant will do.
    let wanted = bench.put(INPUT + 1, &[0b1001_0110]);
    assert_eq!(bench.call("CEGIS", &[3, 1, parity, wanted, 4, 10_000, result, 16]), Ok(1));
    assert_eq!(bench.shared[ANSWER], 0);
}

#[test]
fn words_are_hashed_and_logged_in_a_chain() {
    let mut bench = Bench::new();
    let (message, result) = (bench.put(INPUT, &[1, 2, 3]), 8 * ANSWER as u64);
    assert_eq!(bench.call("HASH", &[message, 3, result]), Ok(result));
    let expected = digest::hash(&bytes_of(&[1, 2, 3]));
    assert_eq!(bench.shared[ANSWER..ANSWER + 4], digest_words(&expected));
    let empty = bench.host.log_head();
    assert_eq!(bench.call("LOG", &[message, 3, result]), Ok(0));
    assert_eq!(bench.call("LOG", &[message, 1, 0]), Ok(1));
    assert_eq!(bench.host.log(), [vec![1, 2, 3], vec![1]]);
    let first = digest::hash_parts("isa/log", &[empty.as_bytes(), &bytes_of(&[1, 2, 3])]);
    assert_eq!(bench.shared[ANSWER..ANSWER + 4], digest_words(&first));
    assert_ne!(bench.host.log_head(), first);
}

#[test]
fn empty_slots_refuse_and_count_and_filled_ones_answer() {
    let mut bench = Bench::new();
    let request = bench.put(INPUT, &[4, 5]);
    assert_eq!(bench.call("TEACH", &[1, 2, 3]), Ok(REFUSED));
    let asked = |change: &dyn Fn(&mut [u64; 8])| {
        let mut words = [9, 1, 0, 5, request, 12, request, 64];
        change(&mut words);
        words
    };
    assert_eq!(bench.call("TOOL_ENQUEUE", &asked(&|_| {})), Ok(Refused::NoBus.code() as u64));
    for (place, value, refused) in [
        (0, 1 << 32, Refused::UnknownKind),
        (1, 1 << 16, Refused::BadOperation),
        (2, 1 << 16, Refused::BadOperation),
        (3, 1 << 32, Refused::BadResource),
        (4, 3, Refused::BadBuffer),
        (4, 1 << 50, Refused::BadBuffer),
        (5, 4_097, Refused::TooLong),
        (6, 8 * WORDS as u64, Refused::BadBuffer),
        (6, u64::MAX - 7, Refused::BadBuffer),
        (7, 0, Refused::BadCapacity),
        (7, 1 << 21, Refused::BadCapacity),
    ] {
        let words = asked(&|words| words[place] = value);
        assert_eq!(bench.call("TOOL_ENQUEUE", &words), Ok(refused.code() as u64), "{place} {value}");
    }
    assert_eq!((bench.host.teacher.refusals, bench.host.tools.refusals), (1, 1));

    struct Sum;
    impl TeachSlot for Sum {
        fn teach(&mut self, domain: u64, difficulty: u64, context: u64) -> Option<TaskDescriptor> {
            let (number, tree) = (domain + difficulty + context, "parity{n=4}".to_string());
            Some(TaskDescriptor {
                number,
                domain,
                band: difficulty,
                template: 6,
                difficulty: -1,
                seed: context,
                tree,
            })
        }
    }
    impl ToolSlot for Sum {
        fn enqueue(&mut self, asked: &ToolDescriptor, payload: &[u8]) -> Result<u16, Refused> {
            Ok(asked.operation + payload.iter().map(|byte| u16::from(*byte)).sum::<u16>())
        }
    }
    let mut host = Host::with_slots(1, Sum, Sum);
    let mut memory = Memory::open(&mut bench.shared, &mut []);
    for (place, word) in (0..).step_by(8).zip([9, 1, 0, 5, request, 12, request, 64]) {
        memory.store(place, word).unwrap();
    }
    assert_eq!(host.call(Operation::ToolEnqueue as u8, 0, &mut memory), Ok(1 + 4 + 5));
    // Without a place for the task its number is all that a program gets.
    for (place, word) in (0..).step_by(8).zip([9, 1, 0, 0]) {
        memory.store(place, word).unwrap();
    }
    assert_eq!(host.call(Operation::Teach as u8, 0, &mut memory), Ok(10));
    let place = 8 * ANSWER as u64;
    let mut teach = |room: u64, place: u64| {
        memory.store(24, place).unwrap();
        memory.store(32, room).unwrap();
        let number = host.call(Operation::Teach as u8, 0, &mut memory);
        (number, memory.shared()[ANSWER..ANSWER + 10].to_vec())
    };
    let (number, words) = teach(7, place);
    assert_eq!((number, &words[..8]), (Ok(10), &[10, 9, 1, 6, u64::MAX, 0, 11, 0][..]), "without the bytes");
    let (_, words) = teach(9, place);
    let tree = [u64::from_le_bytes(*b"parity{n"), u64::from_le_bytes(*b"=4}\0\0\0\0\0")];
    assert_eq!((&words[7..9], words[9]), (&tree[..], 0));
    assert_eq!(teach(6, place).0, Err(Cause::BadDescriptor), "no room for what every task has");
    assert_eq!(teach(9, 8 * WORDS as u64).0, Err(Cause::BadDescriptor));
    assert_eq!(host.call(77, 0, &mut memory), Err(Cause::NoCoprocessor));
    assert_eq!(NoCoprocessor.call(1, 0, &mut memory), Err(Cause::NoCoprocessor));
}

#[test]
fn an_answer_that_meets_a_read_only_page_leaves_nothing_behind() {
    let mut shared = vec![0; 256];
    shared[..3].copy_from_slice(&[0, 1, 8 * 126]);
    let mut memory = Memory::new(&mut shared, &mut []);
    memory.allow(0, 128, crate::memory::Access::Write);
    memory.allow(128, 128, crate::memory::Access::Read);
    let result = Host::new(1).call(Operation::Hash as u8, 0, &mut memory);
    assert_eq!(result, Err(Cause::BadDescriptor));
    assert!(memory.shared()[64..].iter().all(|word| *word == 0));
}

#[test]
fn random_descriptors_never_panic() {
    let mut prng = Prng::stream(21, "descriptors");
    let mut answered = [0u32; 10];
    for _ in 0..6_000 {
        let mut bench = Bench::new();
        bench.host.conflicts_max = 50;
        for word in &mut bench.shared[..160] {
            *word = match prng.below(8) {
                0 => prng.next_u64(),
                1 => prng.below(8 * WORDS as u64),
                2 => (-(prng.below(4) as i64)) as u64,
                3 => 0,
                4 => 8 * prng.below(WORDS as u64),
                _ => prng.below(6),
            };
        }
        let operation = 1 + prng.below(9) as u8;
        let argument = if prng.below(20) == 0 { prng.next_u64() } else { 8 * prng.below(20) };
        let mut memory = Memory::open(&mut bench.shared, &mut []);
        answered[usize::from(operation)] +=
            u32::from(bench.host.call(operation, argument, &mut memory).is_ok());
    }
    assert!(answered[1..].iter().filter(|count| 0 < **count).count() >= 7, "{answered:?}");
}
