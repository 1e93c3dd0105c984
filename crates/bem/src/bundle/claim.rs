//! What a bundle claims, as clauses that have no model: by definitions of its own, gate by gate.
//!
//! The clauses are not in the file: whoever checks it writes them down anew from the circuit and the claim, in the order
//! that `docs/formats/bundle.md` gives, and holds the proof against them. Nothing is simplified on the way, so that two
//! checkers in two languages write the same clauses. Clauses: SCC-3, SCC-4.

use super::{Circuit, Condition, Forbidden, List, Statement};
use anyhow::{Context as _, Result, bail, ensure};
use bem_checker::{Cnf, Literal};
use bem_circuit::netlist::Op;
use bem_synth::policy::action_bits;

/// Gates that a claim may have, those of the circuit included.
const GATES_MAX: usize = 1 << 20;

const AND: u8 = Op::And as u8;
const OR: u8 = Op::Or as u8;
const XOR: u8 = Op::Xor as u8;
const AND_NOT: u8 = Op::AndNot as u8;
const FALSE: u32 = 0;
const TRUE: u32 = 1;

/// Gates over the inputs of a circuit, in order.
pub struct Gates {
    inputs: u32,
    gates: Vec<(u8, u32, u32)>,
}

impl Circuit {
    /// Inputs: bits that are read, then memory.
    pub fn inputs(&self) -> u32 {
        self.reads.len() as u32 + self.memory_bits
    }

    /// Outputs that are the action's code.
    pub fn code(&self) -> usize {
        action_bits(self.actions)
    }

    fn gates(&self) -> Gates {
        Gates { inputs: self.inputs(), gates: self.gates.clone() }
    }
}

impl Gates {
    fn gate(&mut self, op: u8, a: u32, b: u32) -> u32 {
        self.gates.push((op, a, b));
        1 + self.inputs + self.gates.len() as u32
    }

    fn input(&self, place: u32) -> Result<u32> {
        ensure!(place < self.inputs, "a rule speaks of input {place}, and there are {}", self.inputs);
        Ok(2 + place)
    }

    fn not(&mut self, signal: u32) -> u32 {
        self.gate(XOR, signal, TRUE)
    }

    /// Whether a condition is met.
    fn condition(&mut self, condition: &Condition) -> Result<u32> {
        let of = condition.of.iter().map(|place| self.input(*place)).collect::<Result<Vec<u32>>>()?;
        let than = condition.than.iter().map(|place| self.input(*place)).collect::<Result<Vec<u32>>>()?;
        let value = condition.value;
        let bit = |place: usize| place < 64 && value >> place & 1 == 1;
        let is_compared = matches!(condition.fact.as_str(), "less" | "same");
        ensure!(is_compared != than.is_empty(), "the fact {:?} has a wrong second number", condition.fact);
        let is_valued = matches!(condition.fact.as_str(), "at_least" | "equals" | "count");
        ensure!(is_valued || value == 0, "the fact {:?} has no value", condition.fact);
        let signal = match condition.fact.as_str() {
            "bit" => {
                ensure!(of.len() == 1, "the fact \"bit\" is about one input");
                of[0]
            }
            "at_least" => {
                let mut so_far = TRUE;
                for (place, signal) in of.iter().enumerate() {
                    so_far = self.gate(if bit(place) { AND } else { OR }, *signal, so_far);
                }
                so_far
            }
            "equals" => {
                let mut so_far = TRUE;
                for (place, signal) in of.iter().enumerate() {
                    let signal = if bit(place) { *signal } else { self.not(*signal) };
                    so_far = self.gate(AND, so_far, signal);
                }
                so_far
            }
            "less" | "same" => {
                ensure!(
                    of.len() == than.len(),
                    "numbers of {} and {} bits are compared",
                    of.len(),
                    than.len()
                );
                let (mut less, mut same) = (FALSE, TRUE);
                for (a, b) in of.iter().zip(&than) {
                    let differ = self.gate(XOR, *a, *b);
                    let above = self.gate(AND, differ, *b);
                    let kept = self.gate(AND_NOT, less, differ);
                    less = self.gate(OR, above, kept);
                    same = self.gate(AND_NOT, same, differ);
                }
                if condition.fact == "less" { less } else { same }
            }
            "odd" => of.iter().fold(FALSE, |sum, signal| self.gate(XOR, sum, *signal)),
            "count" => {
                let least = usize::try_from(value).ok().filter(|least| *least <= of.len());
                let least = least.context("a count of more inputs than there are")?;
                let mut reached = vec![FALSE; least + 1];
                reached[0] = TRUE;
                for signal in &of {
                    for number in (1..=least).rev() {
                        let more = self.gate(AND, reached[number - 1], *signal);
                        reached[number] = self.gate(OR, reached[number], more);
                    }
                }
                reached[least]
            }
            other => bail!("there is no fact {other:?}"),
        };
        ensure!(self.gates.len() <= GATES_MAX, "a claim of more than {GATES_MAX} gates");
        Ok(if condition.holds { signal } else { self.not(signal) })
    }

    /// The outputs of a list of rules.
    fn list(&mut self, list: &List, outputs: usize) -> Result<Vec<u32>> {
        let is_answer = |bits: &[u8]| bits.len() == outputs && bits.iter().all(|bit| *bit <= 1);
        ensure!(is_answer(&list.otherwise), "a list of rules has {outputs} outputs of 0 or 1");
        let mut signals: Vec<u32> = list.otherwise.iter().map(|bit| u32::from(*bit)).collect();
        for rule in list.rules.iter().rev() {
            ensure!(is_answer(&rule.then), "a rule has {outputs} outputs of 0 or 1");
            let mut applies = TRUE;
            for condition in &rule.when {
                let met = self.condition(condition)?;
                applies = self.gate(AND, applies, met);
            }
            for (signal, bit) in signals.iter_mut().zip(&rule.then) {
                *signal = self.gate(if *bit == 1 { OR } else { AND_NOT }, *signal, applies);
            }
        }
        Ok(signals)
    }

    /// The clauses of all gates: variable k + 1 is signal k.
    fn clauses(&self) -> Result<Cnf> {
        let literal = |signal: u32, value: bool| {
            let number = i64::from(signal) + 1;
            Literal::from_dimacs(if value { number } else { -number }).context("a variable out of range")
        };
        let mut cnf = Cnf::new(2 + self.inputs + self.gates.len() as u32);
        cnf.add(&[literal(FALSE, false)?]);
        cnf.add(&[literal(TRUE, true)?]);
        for (place, (op, a, b)) in self.gates.iter().enumerate() {
            let gate = 2 + self.inputs + place as u32;
            let op = Op::ALL[usize::from(*op)];
            for (left, right) in [(false, false), (false, true), (true, false), (true, true)] {
                // Both inputs may be one signal: then only equal values are possible.
                if a == b && left != right {
                    continue;
                }
                let value = op.apply(u64::from(left), u64::from(right)) & 1 == 1;
                let mut clause = vec![literal(*a, !left)?];
                if a != b {
                    clause.push(literal(*b, !right)?);
                }
                clause.push(literal(gate, value)?);
                cnf.add(&clause);
            }
        }
        Ok(cnf)
    }

    /// The value of every signal for 64 cases at once.
    fn evaluate(&self, inputs: &[u64]) -> Vec<u64> {
        let mut values = vec![0, u64::MAX];
        values.extend_from_slice(inputs);
        for (op, a, b) in &self.gates {
            values.push(Op::ALL[usize::from(*op)].apply(values[*a as usize], values[*b as usize]));
        }
        values
    }
}

fn unit(cnf: &mut Cnf, signal: u32, value: bool) -> Result<()> {
    let number = i64::from(signal) + 1;
    let literal =
        Literal::from_dimacs(if value { number } else { -number }).context("a variable out of range")?;
    cnf.add(&[literal]);
    Ok(())
}

/// The circuit beside what is stated of it: gates, and the pairs of signals that must be equal.
fn compared(circuit: &Circuit, statement: &Statement) -> Result<(Gates, Vec<(u32, u32)>)> {
    let code = circuit.code();
    ensure!(statement.memory.len() == circuit.memory_bits as usize, "one list of rules for every memory bit");
    let mut gates = circuit.gates();
    let mut stated = gates.list(&statement.action, code)?;
    for list in &statement.memory {
        stated.extend(gates.list(list, 1)?);
    }
    let pairs = circuit.outputs.iter().copied().zip(stated).collect();
    Ok((gates, pairs))
}

/// Clauses that have a model exactly where the circuit differs from the statement.
pub fn statement_clauses(circuit: &Circuit, statement: &Statement) -> Result<Cnf> {
    let (mut gates, pairs) = compared(circuit, statement)?;
    let differ: Vec<u32> = pairs.iter().map(|(is, said)| gates.gate(XOR, *is, *said)).collect();
    let mut cnf = gates.clauses()?;
    let literals: Option<Vec<Literal>> =
        differ.iter().map(|signal| Literal::from_dimacs(i64::from(*signal) + 1)).collect();
    cnf.add(&literals.context("a variable out of range")?);
    Ok(cnf)
}

/// Whether circuit and statement agree, by trying every case.
pub fn statement_holds(circuit: &Circuit, statement: &Statement) -> Result<bool> {
    let (gates, pairs) = compared(circuit, statement)?;
    let free: Vec<u32> = (0..circuit.inputs()).collect();
    every_case(&gates, &vec![None; free.len()], |values| {
        pairs.iter().fold(0, |differs, (is, said)| differs | (values[*is as usize] ^ values[*said as usize]))
    })
}

/// What the inputs are for a forbidden observation: those that are read and named are fixed; others and memory are free.
fn fixed(circuit: &Circuit, forbidden: &Forbidden) -> Result<Vec<Option<bool>>> {
    let seen = forbidden.observation.as_bytes();
    let is_form =
        seen.len() == usize::from(circuit.observation_bits) && seen.iter().all(|bit| b"01-".contains(bit));
    ensure!(is_form, "a forbidden observation has {} zeros, ones and dashes", circuit.observation_bits);
    ensure!(forbidden.action < circuit.actions, "action {} is none", forbidden.action);
    let value = |bit: u8| (bit != b'-').then_some(bit == b'1');
    let read = circuit.reads.iter().map(|bit| value(seen[usize::from(*bit)]));
    Ok(read.chain((0..circuit.memory_bits).map(|_| None)).collect())
}

/// Clauses that have a model exactly where the circuit takes the forbidden action.
pub fn forbidden_clauses(circuit: &Circuit, forbidden: &Forbidden) -> Result<Cnf> {
    let inputs = fixed(circuit, forbidden)?;
    let mut cnf = circuit.gates().clauses()?;
    for (place, value) in inputs.iter().enumerate() {
        if let Some(value) = value {
            unit(&mut cnf, 2 + place as u32, *value)?;
        }
    }
    for (bit, output) in circuit.outputs.iter().take(circuit.code()).enumerate() {
        unit(&mut cnf, *output, forbidden.action >> bit & 1 == 1)?;
    }
    Ok(cnf)
}

/// How many inputs are free where a forbidden observation is seen.
pub fn free_inputs(circuit: &Circuit, forbidden: &Forbidden) -> Result<usize> {
    Ok(fixed(circuit, forbidden)?.iter().filter(|input| input.is_none()).count())
}

/// Whether the forbidden action is never taken, by trying every content of memory and every value of the bits that are free.
pub fn forbidden_holds(circuit: &Circuit, forbidden: &Forbidden) -> Result<bool> {
    let inputs = fixed(circuit, forbidden)?;
    let (gates, code) = (circuit.gates(), circuit.code());
    every_case(&gates, &inputs, |values| {
        let is_taken = |(bit, output): (usize, &u32)| {
            let wanted = if forbidden.action >> bit & 1 == 1 { 0 } else { u64::MAX };
            values[*output as usize] ^ wanted
        };
        circuit.outputs[..code].iter().enumerate().map(is_taken).fold(u64::MAX, |all, word| all & word)
    })
}

/// Whether the function is zero for every value of the inputs that are free.
fn every_case(gates: &Gates, inputs: &[Option<bool>], wrong: impl Fn(&[u64]) -> u64) -> Result<bool> {
    const WITHIN: [u64; 6] = [
        0xaaaa_aaaa_aaaa_aaaa,
        0xcccc_cccc_cccc_cccc,
        0xf0f0_f0f0_f0f0_f0f0,
        0xff00_ff00_ff00_ff00,
        0xffff_0000_ffff_0000,
        0xffff_ffff_0000_0000,
    ];
    let free: Vec<usize> = (0..inputs.len()).filter(|place| inputs[*place].is_none()).collect();
    ensure!(
        free.len() <= super::EXHAUSTIVE_INPUTS_MAX,
        "{} free inputs: every case of at most {} is tried",
        free.len(),
        super::EXHAUSTIVE_INPUTS_MAX
    );
    let mut words: Vec<u64> =
        inputs.iter().map(|value| if *value == Some(true) { u64::MAX } else { 0 }).collect();
    for (number, place) in free.iter().enumerate().take(WITHIN.len()) {
        words[*place] = WITHIN[number];
    }
    for block in 0..1u64 << free.len().saturating_sub(WITHIN.len()) {
        for (number, place) in free.iter().enumerate().skip(WITHIN.len()) {
            words[*place] = if block >> (number - WITHIN.len()) & 1 == 1 { u64::MAX } else { 0 };
        }
        if wrong(&gates.evaluate(&words)) != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
