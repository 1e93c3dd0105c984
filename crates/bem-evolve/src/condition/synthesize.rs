//! The condition of SYNTH: a circuit learned from experience is what it claims to be.
//!
//! Promised, for every observation and *every* content of memory, reachable or not: the action exists; only action
//! and own memory are written; all bounds of the machine hold. For every trace constraint that it claims to
//! explain: played from the start of the episode, it takes the wanted actions. With the safety tag: for no pair of
//! the learned BAD table does it take that action, whatever it remembers. Its other forms (algebraic normal form
//! and machine code up to 16 inputs, decision diagram where it fits) are the same function.
//!
//! Not promised: that the trace was typical, that the learned BAD table is complete, that the action is good. The
//! circuit is proven against what was learned, not against the world (decision D-35); the world is asked by the
//! improvement gate. Clauses: SCC-2, SCC-3, VM-1, VM-2.

use super::{BadPair, Context, Finding, Rejection, SafetyDemand, budget, misfit, prove, prove_same};
use crate::patch::{Body, EXAMPLES_MAX, Example};
use bem_base::lanes::LaneWord;
use bem_base::limits::LANES;
use bem_checker::{Cnf, Literal};
use bem_circuit::anf::Anf;
use bem_circuit::bdd::Bdd;
use bem_circuit::compile::Evaluator;
use bem_circuit::netlist::{Netlist, Op};
use bem_circuit::placed::{Evaluate, PlacedCircuit, Placement, Scratch};
use bem_machine::family::Family;
use bem_prover::Budget;
use bem_prover::encode::{Wire, encode_circuit, encode_gate, fresh_inputs, require_any};
use bem_synth::policy::{Policy, action_bits};
use std::collections::BTreeSet;

/// Up to this many inputs that matter, all forms are compared row by row.
const FORM_INPUTS_MAX: usize = 16;
/// Above that, a decision diagram is compared if it has no more nodes than this.
const FORM_NODES_MAX: usize = 2_048;

/// Shows all of the condition.
pub fn check(
    context: &Context<'_>,
    family: &Family,
    policy: &Policy,
    safe: bool,
    examples: &[Example],
) -> Result<Vec<Finding>, Rejection> {
    if context.safety == SafetyDemand::Required && !safe {
        return Err(Rejection::SafetyDropped);
    }
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
    let body = Body::from_policy(policy, family.layout(), safe);
    let mut findings = vec![super::circuits::check_bounds(context, family, &body)?];
    let budget = budget(context.config);
    let mut statement = Statement::new(policy);
    findings.push(statement.prove_range(policy, budget)?);
    if !examples.is_empty() {
        findings.push(statement.prove_examples(policy, examples, budget)?);
    }
    if safe {
        findings.push(statement.prove_avoidance(policy, context.bad, budget)?);
    }
    findings.extend(check_forms(policy.circuit(), budget)?);
    Ok(findings)
}

/// The circuit as clauses, over free inputs.
struct Statement {
    base: Cnf,
    inputs: Vec<Literal>,
    outputs: Vec<Wire>,
}

/// One row that is looked at: some inputs have these values, and the outputs must not.
struct Row {
    inputs: Vec<(usize, bool)>,
    /// Outputs and values, of which one must differ (`disagree`) or all must agree.
    outputs: Vec<(usize, bool)>,
}

impl Statement {
    fn new(policy: &Policy) -> Statement {
        let mut base = Cnf::new(0);
        let wires = fresh_inputs(&mut base, policy.circuit().inputs());
        let outputs = encode_circuit(&mut base, policy.circuit(), &wires);
        let literal = |wire: &Wire| match wire {
            Wire::Literal(literal) => *literal,
            Wire::Constant(_) => unreachable!("inputs are free"),
        };
        Statement { inputs: wires.iter().map(literal).collect(), base, outputs }
    }

    fn prove(&self, condition: &'static str, negation: &Cnf, budget: Budget) -> Result<Finding, Rejection> {
        prove(condition, &self.base, negation, self.inputs.len(), budget)
    }

    /// No input makes the action's code reach the number of actions.
    fn prove_range(&mut self, policy: &Policy, budget: Budget) -> Result<Finding, Rejection> {
        let condition = "action range";
        let code = &self.outputs[..action_bits(policy.actions())];
        if usize::from(policy.actions()).is_power_of_two() {
            return Ok(Finding::Compared { condition });
        }
        let mut negation = Cnf::new(self.base.variables());
        let last = policy.actions() - 1;
        let mut exceeds = Wire::Constant(false);
        for (place, bit) in code.iter().enumerate() {
            let op = if last >> place & 1 == 1 { Op::And } else { Op::Or };
            exceeds = encode_gate(&mut negation, op, *bit, exceeds);
        }
        require_any(&mut negation, &[exceeds]);
        self.prove(condition, &negation, budget)
    }

    /// In no step of any example does the circuit do other than wanted, or go on to another memory.
    fn prove_examples(
        &mut self,
        policy: &Policy,
        examples: &[Example],
        budget: Budget,
    ) -> Result<Finding, Rejection> {
        let condition = "trace constraints";
        let rows = example_rows(policy, examples)?;
        if rows.is_empty() {
            // Nothing is claimed; a proof of nothing would only look like one.
            return Ok(Finding::Compared { condition });
        }
        let mut negation = Cnf::new(self.base.variables());
        let mut selectors = Vec::new();
        for row in &rows {
            let selector = self.select(&mut negation, row);
            // One of the outputs differs; those that are constant and as wanted cannot.
            let mut clause = vec![!selector];
            let mut differs = false;
            for (output, value) in &row.outputs {
                match self.outputs[*output] {
                    Wire::Literal(literal) => clause.push(literal.xor(*value)),
                    Wire::Constant(found) => differs |= found != *value,
                }
            }
            if !differs {
                negation.add(&clause);
            }
            selectors.push(selector);
        }
        negation.add(&selectors);
        self.prove(condition, &negation, budget)
    }

    /// For no pair of the BAD table does the circuit take the action.
    fn prove_avoidance(
        &mut self,
        policy: &Policy,
        bad: &[BadPair],
        budget: Budget,
    ) -> Result<Finding, Rejection> {
        let condition = "BAD avoidance";
        let code_bits = action_bits(policy.actions());
        let mut negation = Cnf::new(self.base.variables());
        let mut selectors = Vec::new();
        for pair in bad.iter().filter(|pair| pair.action < policy.actions()) {
            let seen = policy.reads().iter().enumerate();
            let row = Row {
                inputs: seen.map(|(place, bit)| (place, pair.observation.get(usize::from(*bit)))).collect(),
                outputs: (0..code_bits).map(|bit| (bit, pair.action >> bit & 1 == 1)).collect(),
            };
            let impossible =
                |(output, value): &(usize, bool)| self.outputs[*output] == Wire::Constant(!value);
            if row.outputs.iter().any(impossible) {
                continue;
            }
            let selector = self.select(&mut negation, &row);
            for (output, value) in &row.outputs {
                if let Wire::Literal(literal) = self.outputs[*output] {
                    negation.add(&[!selector, literal.xor(!value)]);
                }
            }
            selectors.push(selector);
        }
        if selectors.is_empty() {
            return Ok(Finding::Compared { condition });
        }
        negation.add(&selectors);
        self.prove(condition, &negation, budget)
    }

    /// A new variable that says: the inputs are those of the row.
    fn select(&self, negation: &mut Cnf, row: &Row) -> Literal {
        let selector = negation.fresh();
        for (input, value) in &row.inputs {
            negation.add(&[!selector, self.inputs[*input].xor(!value)]);
        }
        selector
    }
}

/// The steps of all examples as rows of the circuit: what it sees and remembers, what it must do and remember then.
///
/// What it remembers is found by playing it; that is only a guess at the rows, which the proof then confirms.
fn example_rows(policy: &Policy, examples: &[Example]) -> Result<Vec<Row>, Rejection> {
    if EXAMPLES_MAX < examples.len() {
        return Err(misfit(format!("{} examples exceed the bound of {EXAMPLES_MAX}", examples.len())));
    }
    let code_bits = action_bits(policy.actions());
    let mut rows: BTreeSet<(Vec<bool>, Option<u16>)> = BTreeSet::new();
    for example in examples {
        let mut memory = vec![false; policy.memory_bits()];
        for step in &example.steps {
            if step.wanted.is_some_and(|action| policy.actions() <= action) {
                return Err(misfit("an example wants an action that does not exist"));
            }
            let mut inputs: Vec<bool> =
                policy.reads().iter().map(|bit| step.observation.get(usize::from(*bit))).collect();
            inputs.append(&mut memory);
            memory = policy.circuit().evaluate(&inputs)[code_bits..].to_vec();
            if step.wanted.is_some() || !memory.is_empty() {
                rows.insert((inputs, step.wanted));
            }
        }
    }
    let row = |(inputs, wanted): (Vec<bool>, Option<u16>)| {
        let memory = policy.circuit().evaluate(&inputs)[code_bits..].to_vec();
        let action = wanted
            .into_iter()
            .flat_map(|action| (0..code_bits).map(move |bit| (bit, action >> bit & 1 == 1)));
        let outputs =
            action.chain(memory.into_iter().enumerate().map(|(bit, value)| (code_bits + bit, value)));
        Row { outputs: outputs.collect(), inputs: inputs.into_iter().enumerate().collect() }
    };
    Ok(rows.into_iter().map(row).collect())
}

/// Compares the circuit with its other forms, as far as these exist.
fn check_forms(circuit: &Netlist, budget: Budget) -> Result<Vec<Finding>, Rejection> {
    let (compact, _) = circuit.compact();
    let mut findings = Vec::new();
    let few = compact.inputs() <= FORM_INPUTS_MAX;
    if few && let Some(other) = Anf::from_netlist(&compact).ok().and_then(|anf| anf.to_netlist().ok()) {
        findings.push(prove_same("algebraic normal form", &compact, &other, budget)?);
    }
    let diagram = Bdd::from_netlist_within(&compact, FORM_NODES_MAX).ok();
    if let Some(other) = diagram.and_then(|bdd| bdd.to_netlist().ok()) {
        findings.push(prove_same("decision diagram", &compact, &other, budget)?);
    }
    if few {
        findings.push(check_compiled(&compact)?);
    }
    Ok(findings)
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
