//! The condition of SYNTH: a circuit learned from experience is what it claims to be.
//!
//! Promised, for every observation and *every* content of memory, reachable or not: the circuit does and keeps what its
//! statement says ([`super::statement`]); the action exists; only action and own memory are written; all bounds of the
//! machine hold. Of the rows of the log that the patch carries: played from the start of the episode, it takes another
//! action in just as many as the patch says. Its machine code is the same function, tried on every row up to 16 inputs.
//!
//! Not promised: that the log was typical, that the action is good, that it is not BAD: forbidden actions are masked by the
//! guard ([`super::guard`]). The circuit is proven against what was said, not against the world (decisions D-35, D-45); the
//! world is asked by the improvement gate. Clauses: SCC-2, SCC-3, VM-1, VM-2.

use super::{Context, Finding, Rejection, budget, misfit, prove, statement};
use crate::patch::{Body, EXAMPLES_MAX, Example};
use bem_base::lanes::LaneWord;
use bem_base::limits::LANES;
use bem_checker::Cnf;
use bem_circuit::compile::Evaluator;
use bem_circuit::netlist::{Netlist, Op};
use bem_circuit::placed::{Evaluate, PlacedCircuit, Placement, Scratch};
use bem_machine::family::Family;
use bem_prover::Budget;
use bem_prover::encode::{Wire, encode_circuit, encode_gate, fresh_inputs, require_any};
use bem_synth::policy::{Player, Policy, action_bits};
use bem_synth::statement::Statement;

/// Up to this many inputs that matter, machine code is compared row by row.
const FORM_INPUTS_MAX: usize = 16;

/// What a patch says about its circuit.
#[derive(Clone, Copy, Debug)]
pub struct Claims<'p> {
    /// What the circuit does.
    pub statement: &'p Statement,
    /// Rows of the log.
    pub examples: &'p [Example],
    /// In how many of them it does something else.
    pub exceptions: u32,
}

/// Shows all of the condition.
pub fn check(
    context: &Context<'_>,
    family: &Family,
    policy: &Policy,
    claims: &Claims<'_>,
) -> Result<Vec<Finding>, Rejection> {
    let mut findings = check_policy(context, family, policy)?;
    let seen = family.shape().observation_bits;
    findings.extend(statement::check(policy, claims.statement, seen, budget(context.config))?);
    findings.push(check_rows(policy, claims.examples, claims.exceptions)?);
    Ok(findings)
}

/// Shows what must hold for any policy, whatever is said about it: bounds, range, machine code.
pub fn check_policy(
    context: &Context<'_>,
    family: &Family,
    policy: &Policy,
) -> Result<Vec<Finding>, Rejection> {
    let shape = family.shape();
    if policy.actions() != shape.actions {
        return Err(misfit(format!(
            "the circuit chooses among {} actions, the world has {}",
            policy.actions(),
            shape.actions
        )));
    }
    if policy.reads().last().is_some_and(|bit| shape.observation_bits <= *bit) {
        return Err(misfit(format!(
            "the circuit reads past the {} bits that can be seen",
            shape.observation_bits
        )));
    }
    if family.layout().memory().len() < policy.memory_bits() {
        return Err(misfit(format!(
            "{} bits of memory are wanted, STATE has {}",
            policy.memory_bits(),
            family.layout().memory().len()
        )));
    }
    if family.layout().action().len() != action_bits(policy.actions()) {
        return Err(misfit("the action does not fit the place it has in STATE"));
    }
    let body = Body::from_policy(policy, family.layout());
    let mut findings = vec![super::circuits::check_bounds(context, family, &body)?];
    findings.push(prove_range(policy, budget(context.config))?);
    let (compact, _) = policy.circuit().compact();
    if compact.inputs() <= FORM_INPUTS_MAX {
        findings.push(check_compiled(&compact)?);
    }
    Ok(findings)
}

/// No input makes the action's code reach the number of actions.
fn prove_range(policy: &Policy, budget: Budget) -> Result<Finding, Rejection> {
    let condition = "action range";
    if usize::from(policy.actions()).is_power_of_two() {
        return Ok(Finding::Compared { condition });
    }
    let mut base = Cnf::new(0);
    let inputs = fresh_inputs(&mut base, policy.circuit().inputs());
    let outputs = encode_circuit(&mut base, policy.circuit(), &inputs);
    let mut negation = Cnf::new(base.variables());
    let last = policy.actions() - 1;
    let mut exceeds = Wire::Constant(false);
    for (place, bit) in outputs[..action_bits(policy.actions())].iter().enumerate() {
        let op = if last >> place & 1 == 1 { Op::And } else { Op::Or };
        exceeds = encode_gate(&mut negation, op, *bit, exceeds);
    }
    require_any(&mut negation, &[exceeds]);
    prove(condition, &base, &negation, inputs.len(), budget)
}

/// Plays the rows of the log, memory zero at the start of each, and counts where the circuit does something else.
pub(super) fn check_rows(
    policy: &Policy,
    examples: &[Example],
    exceptions: u32,
) -> Result<Finding, Rejection> {
    if EXAMPLES_MAX < examples.len() {
        return Err(misfit(format!("{} examples exceed the bound of {EXAMPLES_MAX}", examples.len())));
    }
    let (mut rows, mut found) = (0, 0);
    for example in examples {
        let mut player = Player::new(policy);
        for step in &example.steps {
            let action = player.act(&step.observation);
            let Some(wanted) = step.wanted else { continue };
            if policy.actions() <= wanted {
                return Err(misfit("an example wants an action that does not exist"));
            }
            rows += 1;
            found += u32::from(action != wanted);
        }
    }
    if found != exceptions {
        return Err(misfit(format!(
            "{found} of {rows} rows of the log are exceptions, the patch says {exceptions}"
        )));
    }
    Ok(Finding::Exhausted { condition: "rows of the log", rows })
}

/// Runs the machine code on every row, 256 at a time, beside the plain definition.
fn check_compiled(circuit: &Netlist) -> Result<Finding, Rejection> {
    let condition = "machine code";
    let placed = PlacedCircuit::new(circuit.clone(), Placement::simulation(circuit), u32::MAX)
        .map_err(|error| misfit(error.to_string()))?;
    let evaluator = Evaluator::new(&placed);
    let rows = 1u64 << circuit.inputs();
    let (mut scratch, mut values, mut wanted) = (Scratch::new(), Vec::new(), Vec::new());
    for block in 0..rows.div_ceil(LANES as u64) {
        let bit = |input: usize, lane: usize| (block * LANES as u64 + lane as u64) >> input & 1 == 1;
        let mut state: Vec<LaneWord> = (0..circuit.inputs())
            .map(|input| {
                let mut word = LaneWord::ZERO;
                (0..LANES).for_each(|lane| word.set(lane, bit(input, lane)));
                word
            })
            .collect();
        let seen = state.clone();
        let mut results = vec![LaneWord::ZERO; circuit.outputs().len()];
        evaluator.evaluate(&mut state, &LaneWord::ONES, &mut results, &mut scratch);
        for part in 0..LANES / 64 {
            let inputs: Vec<u64> = seen.iter().map(|word| word.0[part]).collect();
            circuit.evaluate_words(&inputs, &mut values, &mut wanted);
            let differs =
                results.iter().zip(&wanted).fold(0, |all, (found, want)| all | (found.0[part] ^ want));
            if differs != 0 {
                let lane = 64 * part + differs.trailing_zeros() as usize;
                let counterexample = (0..circuit.inputs()).map(|input| bit(input, lane)).collect();
                return Err(Rejection::Refuted { condition, counterexample });
            }
        }
    }
    Ok(Finding::Exhausted { condition, rows })
}
