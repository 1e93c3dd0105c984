//! Why this action: the facts that force it, and the nearest change of what is seen that would change it.
//!
//! Both are questions to the prover. The inputs that force the action are found by leaving out one after the other and
//! asking whether any other action is still possible; what is left cannot be made smaller. The nearest change is asked
//! for with one difference, then with two, and so on.

use crate::action_of;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_prover::encode::{Wire, encode_circuit, fresh_inputs};
use bem_prover::solver::Profile;
use bem_prover::{Budget, Cnf, Literal, Outcome, Solver};
use bem_synth::policy::{Policy, action_bits};

/// Conflicts that one question may take.
const CONFLICTS: u32 = 100_000;
/// Changes beyond this many bits are no neighbours.
const CHANGES_MAX: usize = 16;

/// Why a policy acts as it does on one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The action.
    pub action: u16,
    /// The inputs that force it, by place: no other action is possible whatever the others are.
    pub forced_by: Vec<usize>,
    /// Whether none of them can be left out; false where the prover's budget ran out on one of them.
    pub is_minimal: bool,
    /// The nearest change.
    pub nearest: Nearest,
}

/// The nearest change of the observation that changes the action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nearest {
    /// Changing these inputs gives this action; no smaller number of changes does.
    Change {
        /// The inputs, by place.
        places: Vec<usize>,
        /// The action then.
        action: u16,
    },
    /// With what is remembered now, no observation changes the action.
    Never,
    /// Nothing within the bounds of the search.
    NotFound,
}

/// The reason for the policy's action on this input: the observation bits that it reads, then its memory.
pub fn reason(policy: &Policy, input: &[bool]) -> Reason {
    let code: Vec<usize> = (0..action_bits(policy.actions())).collect();
    let circuit = policy.circuit().cone(&code);
    let answer = circuit.evaluate(input);
    let (forced_by, is_minimal) = forcing(&circuit, input, &answer);
    let nearest = nearest(&circuit, policy.reads().len(), input, &answer);
    Reason { action: action_of(&answer), forced_by, is_minimal, nearest }
}

/// A solver that knows the circuit, the literals of its inputs, and one that says "another answer".
struct Question {
    solver: Solver,
    inputs: Vec<Literal>,
    differs: Option<Literal>,
    more: Vec<Option<Literal>>,
}

/// Asks about a circuit whose first output says that the answer differs; further ones are offered as conditions.
fn question(circuit: &Netlist) -> Question {
    let mut cnf = Cnf::new(0);
    let wires = fresh_inputs(&mut cnf, circuit.inputs());
    let outputs = encode_circuit(&mut cnf, circuit, &wires);
    let literal = |wire: &Wire| match wire {
        Wire::Literal(literal) => Some(*literal),
        Wire::Constant(_) => None,
    };
    let inputs = wires.iter().filter_map(literal).collect();
    let mut literals: Vec<Option<Literal>> = outputs.iter().map(literal).collect();
    let differs = literals.remove(0);
    let mut solver = Solver::new(Profile::Fast);
    solver.add_all(&cnf);
    Question { solver, inputs, differs, more: literals }
}

/// The circuit of "another answer than this".
fn differs(builder: &mut Builder, circuit: &Netlist, answer: &[bool]) -> Signal {
    let inputs: Vec<Signal> = (0..circuit.inputs()).map(Signal::input).collect();
    let outputs = builder.embed(circuit, &inputs);
    let wrong: Vec<Signal> = outputs
        .iter()
        .zip(answer)
        .map(|(output, bit)| builder.xor(*output, Signal::constant(*bit)))
        .collect();
    builder.or_all(&wrong)
}

fn forcing(circuit: &Netlist, input: &[bool], answer: &[bool]) -> (Vec<usize>, bool) {
    let mut builder = Builder::new(circuit.inputs());
    let wrong = differs(&mut builder, circuit, answer);
    let support = circuit.support();
    let Ok(whole) = builder.finish(&[wrong]) else { return (support, false) };
    let mut ask = question(&whole);
    let Some(wrong) = ask.differs else { return (Vec::new(), true) };
    let fixed =
        |place: usize, ask: &Question| if input[place] { ask.inputs[place] } else { !ask.inputs[place] };
    let (mut kept, mut is_minimal) = (support, true);
    let mut place = 0;
    while place < kept.len() {
        let mut fewer = kept.clone();
        fewer.remove(place);
        let mut assumed: Vec<Literal> = fewer.iter().map(|input| fixed(*input, &ask)).collect();
        assumed.push(wrong);
        match ask.solver.solve(&assumed, Budget::conflicts(CONFLICTS)) {
            Outcome::Unsatisfiable { .. } => kept = fewer,
            Outcome::Satisfiable { .. } => place += 1,
            Outcome::Undecided(_) => {
                is_minimal = false;
                place += 1;
            }
        }
    }
    (kept, is_minimal)
}

fn nearest(circuit: &Netlist, observed: usize, input: &[bool], answer: &[bool]) -> Nearest {
    let seen: Vec<usize> = circuit.support().into_iter().filter(|place| *place < observed).collect();
    let bound = seen.len().min(CHANGES_MAX);
    // Memory is what it is; of the observation, the number of changed bits is counted in unary.
    let mut builder = Builder::new(circuit.inputs());
    let inputs: Vec<Signal> = (0..circuit.inputs())
        .map(|place| if place < observed { Signal::input(place) } else { Signal::constant(input[place]) })
        .collect();
    let outputs = builder.embed(circuit, &inputs);
    let wrong: Vec<Signal> = outputs
        .iter()
        .zip(answer)
        .map(|(output, bit)| builder.xor(*output, Signal::constant(*bit)))
        .collect();
    let wrong = builder.or_all(&wrong);
    let mut at_least = vec![Signal::FALSE; bound + 2];
    at_least[0] = Signal::TRUE;
    for place in &seen {
        let changed = builder.xor(Signal::input(*place), Signal::constant(input[*place]));
        for number in (1..at_least.len()).rev() {
            let more = builder.and(at_least[number - 1], changed);
            at_least[number] = builder.or(at_least[number], more);
        }
    }
    let outputs: Vec<Signal> = std::iter::once(wrong).chain(at_least[2..].iter().copied()).collect();
    let Ok(whole) = builder.finish(&outputs) else { return Nearest::NotFound };
    let mut ask = question(&whole);
    let Some(wrong) = ask.differs else { return Nearest::Never };
    let budget = Budget::conflicts(CONFLICTS);
    match ask.solver.solve(&[wrong], budget) {
        Outcome::Unsatisfiable { .. } => return Nearest::Never,
        Outcome::Undecided(_) => return Nearest::NotFound,
        Outcome::Satisfiable { .. } => {}
    }
    for changes in 1..=bound {
        let assumed: Vec<Literal> =
            std::iter::once(wrong).chain(ask.more[changes - 1].map(|more| !more)).collect();
        if let Outcome::Satisfiable { model } = ask.solver.solve(&assumed, budget) {
            let places: Vec<usize> =
                seen.iter().copied().filter(|place| model[*place] != input[*place]).collect();
            let mut changed = input.to_vec();
            places.iter().for_each(|place| changed[*place] = !changed[*place]);
            return Nearest::Change { places, action: action_of(&circuit.evaluate(&changed)) };
        }
    }
    Nearest::NotFound
}
