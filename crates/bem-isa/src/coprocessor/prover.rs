//! The operations that prove, check and synthesise: from words to the prover's types and back.
//!
//! Must not know memory's permissions beyond load and store. Clauses: ISA-4, SCC-3 to SCC-7.

use super::{load, packed, store};
use crate::hoare::{self, Options, Verdict};
use crate::memory::Memory;
use crate::program::Program;
use crate::trap::Cause;
use bem_checker::lrat;
use bem_circuit::netlist::Netlist;
use bem_prover::cegis::LowerBound;
use bem_prover::{
    Budget, Cnf, Literal, Outcome, Specification, Synthesis, SynthesisOptions, solve, synthesize,
};

/// Variables of a formula in memory.
pub const VARIABLES_MAX: u64 = 1 << 16;
/// Clauses of a formula in memory.
pub const CLAUSES_MAX: u64 = 1 << 18;
/// Words of a formula in memory, the two counts included.
pub const FORMULA_WORDS_MAX: usize = 1 << 20;
/// Bytes of a proof or a program in memory.
pub const BYTES_MAX: u64 = 1 << 22;
/// Instructions of a program whose invariants are checked.
pub const HOARE_INSTRUCTIONS_MAX: usize = 1 << 10;
/// Words of memory that HOARE_CHECK models.
pub const HOARE_WORDS_MAX: u64 = 64;
/// Inputs, outputs and gates of CEGIS.
pub const CEGIS_MAX: (u64, u64, u64) = (6, 8, 12);

/// Reads a formula: variables, clauses, literals with a zero after each clause.
fn formula(memory: &Memory<'_>, address: u64) -> Result<Cnf, Cause> {
    let bad = Cause::BadDescriptor;
    let counts = load(memory, address, 2)?;
    if VARIABLES_MAX < counts[0] || CLAUSES_MAX < counts[1] {
        return Err(bad);
    }
    let mut cnf = Cnf::new(counts[0] as u32);
    let mut clause = Vec::new();
    for place in 2..FORMULA_WORDS_MAX {
        if cnf.clause_count() as u64 == counts[1] {
            return Ok(cnf);
        }
        let word = load(memory, address.checked_add(8 * place as u64).ok_or(bad)?, 1)?[0] as i64;
        match Literal::from_dimacs(word) {
            Some(literal) if u64::from(literal.variable()) <= counts[0] => clause.push(literal),
            None if word == 0 => {
                cnf.add(&clause);
                clause.clear();
            }
            _ => return Err(bad),
        }
    }
    Err(bad)
}

/// Reads bytes behind their length.
fn unpacked(memory: &Memory<'_>, address: u64) -> Result<Vec<u8>, Cause> {
    let length = load(memory, address, 1)?[0];
    if BYTES_MAX < length {
        return Err(Cause::BadDescriptor);
    }
    let length = length as usize;
    let words = load(memory, address.checked_add(8).ok_or(Cause::BadDescriptor)?, length.div_ceil(8))?;
    let mut bytes = super::bytes_of(&words);
    bytes.truncate(length);
    Ok(bytes)
}

/// SAT_CHECK.
pub fn sat_check(words: &[u64; 5], memory: &mut Memory<'_>) -> Result<u64, Cause> {
    let [address, conflicts, model_address, proof_address, room] = *words;
    let cnf = formula(memory, address)?;
    match solve(&cnf, &[], Budget::conflicts(conflicts as u32)) {
        Outcome::Satisfiable { model } => {
            if model_address != 0 {
                let pack = |bits: &[bool]| {
                    bits.iter().enumerate().fold(0, |word, (bit, value)| word | u64::from(*value) << bit)
                };
                let packed: Vec<u64> = model.chunks(64).map(pack).collect();
                store(memory, model_address, &packed)?;
            }
            Ok(1)
        }
        Outcome::Unsatisfiable { certificate, .. } => {
            if proof_address == 0 {
                return Ok(2);
            }
            let proof = packed(&certificate.proof);
            if room < proof.len() as u64 {
                return Ok(4);
            }
            store(memory, proof_address, &proof)?;
            Ok(2)
        }
        Outcome::Undecided(_) => Ok(3),
    }
}

/// PROOF_CHECK.
pub fn proof_check(words: &[u64; 2], memory: &Memory<'_>) -> Result<u64, Cause> {
    let cnf = formula(memory, words[0])?;
    let proof = unpacked(memory, words[1])?;
    Ok(u64::from(lrat::check(&cnf, &proof).is_ok()))
}

/// HOARE_CHECK.
pub fn hoare_check(words: &[u64; 3], memory: &Memory<'_>) -> Result<u64, Cause> {
    let [address, memory_words, conflicts] = *words;
    let bytes = unpacked(memory, address)?;
    let program = Program::from_bytes(&bytes).map_err(|_| Cause::BadDescriptor)?;
    if HOARE_INSTRUCTIONS_MAX < program.words().len() || HOARE_WORDS_MAX < memory_words {
        return Err(Cause::BadDescriptor);
    }
    let options =
        Options { memory_words: memory_words as usize, budget: Budget::conflicts(conflicts as u32) };
    let Ok(checked) = hoare::check(&program, options) else { return Ok(0) };
    let any = |wanted: fn(&Verdict) -> bool| checked.iter().any(|edge| wanted(&edge.verdict));
    Ok(if any(|verdict| matches!(verdict, Verdict::Refuted(_))) {
        2
    } else if any(|verdict| matches!(verdict, Verdict::Vacuous)) {
        4
    } else if hoare::all_hold(&checked) {
        1
    } else {
        3
    })
}

/// CEGIS.
pub fn cegis(words: &[u64; 8], memory: &mut Memory<'_>) -> Result<u64, Cause> {
    let [inputs, outputs, tables, wanted, gates_max, conflicts, result, room] = *words;
    let (inputs_max, outputs_max, bound) = CEGIS_MAX;
    if inputs_max < inputs || outputs == 0 || outputs_max < outputs || bound < gates_max {
        return Err(Cause::BadDescriptor);
    }
    let tables = load(memory, tables, outputs as usize)?;
    let wanted = match wanted {
        0 => vec![u64::MAX; outputs as usize],
        address => load(memory, address, outputs as usize)?,
    };
    let specification = Specification::from_function(inputs as usize, outputs as usize, |row| {
        let answer =
            |(table, wanted): (&u64, &u64)| (wanted >> row & 1 == 1).then_some(table >> row & 1 == 1);
        tables.iter().zip(&wanted).map(answer).collect()
    });
    let options = SynthesisOptions {
        gates_max: gates_max as usize,
        budget: Budget::conflicts(conflicts as u32),
        ..SynthesisOptions::default()
    };
    let is_complete = |smaller: &LowerBound| smaller.is_complete();
    match synthesize(&specification, options, &mut |_| ()) {
        Synthesis::Found { circuit, smaller, .. } => {
            let code = circuit_words(&circuit);
            if room < code.len() as u64 {
                return Ok(5);
            }
            store(memory, result, &code)?;
            Ok(if is_complete(&smaller) { 1 } else { 2 })
        }
        Synthesis::NotFound { smaller } => Ok(if is_complete(&smaller) { 3 } else { 4 }),
    }
}

/// A circuit as CEGIS stores it.
pub fn circuit_words(circuit: &Netlist) -> Vec<u64> {
    let gate = |gate: &bem_circuit::netlist::Gate| {
        gate.op as u64 | (gate.a.index() as u64) << 8 | (gate.b.index() as u64) << 32
    };
    let gates = circuit.gates().iter().map(gate);
    let outputs = circuit.outputs().iter().map(|output| output.index() as u64);
    core::iter::once(circuit.gates().len() as u64).chain(gates).chain(outputs).collect()
}
