//! A circuit does what its hypothesis says, for every observation and every content of memory.
//!
//! The statement is written out as signals by the files beside this one: one definition for each thing that can be said,
//! as plain as it can be put, without the builder of circuits and without the class that found the hypothesis. The
//! circuit is then held against it, action and next memory: row by row where at most [`EXHAUSTIVE_INPUTS`] inputs
//! matter, and always by a proof. Both are put into one graph ([`bem_prover::graph`]), in which sums know no order (decision
//! D-36), and what is still two signals is proven: one formula that follows from the patch alone, so that an audit states
//! it again. These files, that graph and the checker are what a reader must trust; `ARCHITECTURE.md` counts their lines.
//!
//! Not promised: that the statement is a good one, or that it agrees with the log. Clauses: SCC-2, SCC-3, SCC-4, VM-2;
//! decisions D-36, D-45.

mod formulas;
mod memories;
mod numbers;
mod policies;
mod rows;
mod wirings;

use super::{Finding, NONE, Rejection, accept_proof, misfit};
use bem_base::prng::Prng;
use bem_prover::Budget;
use bem_prover::graph::{Bit, Graph, Sameness};
use bem_synth::policy::Policy;
use bem_synth::statement::{Statement, World};

/// Up to this many inputs that matter, every row is tried.
const EXHAUSTIVE_INPUTS: usize = 16;
/// Rows on which the plain reading of the statement is asked as well; at most 64.
const GUARD_ROWS: usize = 8;
const CONDITION: &str = "statement";

/// Shows that the policy does what the statement says.
pub fn check(
    policy: &Policy,
    statement: &Statement,
    observation_bits: u16,
    budget: Budget,
) -> Result<Vec<Finding>, Rejection> {
    let world = World { observation_bits: usize::from(observation_bits), actions: policy.actions() };
    if statement.memory_bits(&world) != policy.memory_bits() {
        return Err(misfit("the statement speaks of another memory than the circuit has"));
    }
    let inputs = world.observation_bits + policy.memory_bits();
    let mut graph = Graph::new(inputs);
    let signals: Vec<Bit> = (0..inputs).map(|input| graph.input(input)).collect();
    let said = policies::statement(&mut graph, &world, signals.split_at(world.observation_bits), statement)
        .filter(|_| !graph.is_full())
        .map(|(code, next)| [code, next].concat())
        .ok_or_else(|| misfit("the statement does not fit what can be seen and done"))?;
    guard(&graph, &said, &world, statement)?;
    let seen = policy.reads().iter().map(|bit| usize::from(*bit));
    let places: Vec<usize> = seen.chain(world.observation_bits..inputs).collect();
    let mut support = graph.support(&said);
    support.extend(policy.circuit().support().iter().map(|input| places[*input]));
    support.sort_unstable();
    support.dedup();
    let mut findings = Vec::new();
    if support.len() <= EXHAUSTIVE_INPUTS {
        findings.push(try_all(policy, &places, &graph, &said, &support)?);
    }
    let driven: Vec<Bit> = places.iter().map(|place| signals[*place]).collect();
    let done = graph.circuit(policy.circuit(), &driven);
    if budget == NONE {
        findings.push(Finding::Stated { condition: CONDITION, formula: graph.difference(&done, &said) });
        return Ok(findings);
    }
    match graph.compare(&done, &said, budget) {
        Sameness::Same { formula, certificate } => {
            findings.push(accept_proof(CONDITION, formula, certificate)?);
            Ok(findings)
        }
        Sameness::Different(row) => Err(Rejection::Refuted { condition: CONDITION, counterexample: row }),
        Sameness::Undecided(why) => Err(Rejection::Undecided { condition: CONDITION, why }),
    }
}

/// Compares all rows of the inputs that matter, 64 at a time; all others are false.
fn try_all(
    policy: &Policy,
    places: &[usize],
    graph: &Graph,
    said: &[Bit],
    support: &[usize],
) -> Result<Finding, Rejection> {
    let (condition, rows) = (CONDITION, 1u64 << support.len());
    let (mut values, mut found) = (Vec::new(), Vec::new());
    for block in 0..rows.div_ceil(64) {
        let bit = |place: usize, lane: u64| (block * 64 + lane) >> place & 1 == 1;
        let mut words = vec![0u64; graph.inputs()];
        for (place, input) in support.iter().enumerate() {
            words[*input] = (0..64).fold(0, |word, lane| word | u64::from(bit(place, lane)) << lane);
        }
        let driven: Vec<u64> = places.iter().map(|place| words[*place]).collect();
        policy.circuit().evaluate_words(&driven, &mut values, &mut found);
        let wanted = graph.evaluate(&words, said, &mut values);
        let differs = found.iter().zip(&wanted).fold(0, |all, (found, wanted)| all | (found ^ wanted));
        if differs != 0 {
            let lane = differs.trailing_zeros();
            let counterexample = words.iter().map(|word| word >> lane & 1 == 1).collect();
            return Err(Rejection::Refuted { condition, counterexample });
        }
    }
    Ok(Finding::Exhausted { condition, rows })
}

/// Asks the plain reading of the statement on some rows: signals that say something else are a mistake in these files, and
/// nothing is accepted by them.
fn guard(graph: &Graph, said: &[Bit], world: &World, statement: &Statement) -> Result<(), Rejection> {
    let mut prng = Prng::stream(said.len() as u64, "condition/statement");
    let mut values = Vec::new();
    let words: Vec<u64> = (0..graph.inputs()).map(|_| prng.next_u64()).collect();
    let wanted = graph.evaluate(&words, said, &mut values);
    for lane in 0..GUARD_ROWS {
        let row: Vec<bool> = words.iter().map(|word| word >> lane & 1 == 1).collect();
        let (seen, kept) = row.split_at(world.observation_bits);
        let read = statement.step(world, seen, kept).map(|(code, next)| [code, next].concat());
        let written: Vec<bool> = wanted.iter().map(|word| word >> lane & 1 == 1).collect();
        if read != Some(written) {
            return Err(misfit("the statement has another plain reading than its signals"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
