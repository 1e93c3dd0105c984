//! What the inputs of a policy's circuit are: what is seen now, and what its memory bits stand for where that can be told.
//!
//! A memory bit whose next value is an observation bit, a bit of the action or another such memory bit holds what was seen or
//! done so many steps ago; one that becomes 1 and stays so tells how many steps were taken at least; a clock counts them. All
//! others are bits of their own. Copies are read off the circuit, a copied action is proven to be one. Must not know words.
//! Clauses: GLE-9.

use crate::clock::clock;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Netlist, Signal};
use bem_prover::Budget;
use bem_prover::equivalence::{EquivalenceOptions, check_equivalence_with};
use bem_synth::policy::{Policy, action_bits};

/// Conflicts that the comparison of a memory bit with a bit of the action may take.
const CONFLICTS: u32 = 2_000;
/// Words of 64 inputs by chance on which they are compared before.
const LOOKS: usize = 16;

/// What an input of the circuit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// An observation bit, as it was so many steps ago; 0 is now.
    Seen {
        /// Which bit of the observation.
        bit: u16,
        /// Steps ago.
        back: usize,
    },
    /// A bit of the action so many steps ago.
    Acted {
        /// Which bit of its code.
        digit: usize,
        /// Steps ago, at least one.
        back: usize,
    },
    /// Whether at least so many steps were taken in this episode.
    Begun(usize),
    /// This binary digit of the number of steps taken.
    Clock(usize),
    /// This bit of memory, which is none of the above.
    Kept(usize),
}

impl Meaning {
    /// How many steps ago; 0 for what is not about a step.
    pub fn back(&self) -> usize {
        match self {
            Meaning::Seen { back, .. } | Meaning::Acted { back, .. } => *back,
            _ => 0,
        }
    }

    /// Which bit of an observation it is.
    pub fn seen_bit(&self) -> Option<u16> {
        match self {
            Meaning::Seen { bit, .. } => Some(*bit),
            _ => None,
        }
    }
}

/// What every input is: the observation bits that are read, then the memory bits.
pub fn meanings(policy: &Policy) -> Vec<Meaning> {
    let clock = clock(policy);
    let acted = acted(policy, &clock);
    let seen = policy.reads().iter().map(|bit| Meaning::Seen { bit: *bit, back: 0 });
    let kept = (0..policy.memory_bits()).map(|bit| match clock.iter().position(|other| *other == bit) {
        Some(digit) => Meaning::Clock(digit),
        None => copied(policy, &acted, bit).unwrap_or(Meaning::Kept(bit)),
    });
    seen.chain(kept).collect()
}

/// The same where memory is taken as bits, apart from a clock.
pub fn plain(policy: &Policy) -> Vec<Meaning> {
    let clock = clock(policy);
    let seen = policy.reads().iter().map(|bit| Meaning::Seen { bit: *bit, back: 0 });
    let digit = |bit: usize| clock.iter().position(|other| *other == bit);
    let kept = (0..policy.memory_bits()).map(|bit| digit(bit).map_or(Meaning::Kept(bit), Meaning::Clock));
    seen.chain(kept).collect()
}

/// What a memory bit copies, directly or from another memory bit.
fn copied(policy: &Policy, acted: &[Option<usize>], bit: usize) -> Option<Meaning> {
    let (circuit, observed) = (policy.circuit(), policy.reads().len());
    let code = action_bits(policy.actions());
    let (mut bit, mut back) = (bit, 1);
    // A chain that is longer than the memory goes round in a circle.
    while back <= policy.memory_bits() {
        let next = circuit.outputs()[code + bit];
        let place = (0..circuit.inputs()).find(|place| Signal::input(*place) == next);
        match (place, acted[bit]) {
            (Some(place), _) if place < observed => {
                return Some(Meaning::Seen { bit: policy.reads()[place], back });
            }
            (_, Some(digit)) => return Some(Meaning::Acted { digit, back }),
            (Some(place), None) if place - observed == bit => return None,
            (Some(place), None) => bit = place - observed,
            (None, None) if next == Signal::TRUE => return Some(Meaning::Begun(back)),
            (None, None) => return None,
        }
        back += 1;
    }
    None
}

/// For every memory bit the bit of the action that it becomes, where that is proven.
fn acted(policy: &Policy, clock: &[usize]) -> Vec<Option<usize>> {
    let (circuit, code) = (policy.circuit(), action_bits(policy.actions()));
    let answers = answers(circuit);
    // A bit of the observation, a constant and another bit of memory are what they are.
    let is_gate = |bit: &usize| circuit.gate_position(circuit.outputs()[code + bit]).is_some();
    let gates: Vec<usize> =
        (0..policy.memory_bits()).filter(|bit| is_gate(bit) && !clock.contains(bit)).collect();
    // Codes beyond the last action are action 0: where the action is another one, the bits are its own.
    let counts = |look: usize| answers[..code].iter().fold(0, |any, digit| any | digit[look]);
    let could_be = |bit: usize, digit: usize| {
        (0..LOOKS).all(|look| (answers[code + bit][look] ^ answers[digit][look]) & counts(look) == 0)
    };
    let mut acted = vec![None; policy.memory_bits()];
    let mut chosen: Vec<Option<usize>> = Vec::with_capacity(code);
    for digit in 0..code {
        let own = gates.iter().copied().filter(|bit| could_be(*bit, digit) && !chosen.contains(&Some(*bit)));
        chosen.push(own.clone().find(|bit| answers[code + bit] == answers[digit]).or_else(|| own.min()));
    }
    let options =
        EquivalenceOptions { budget: Budget::conflicts(CONFLICTS), ..EquivalenceOptions::default() };
    let whole = circuit.cone(&(0..code).collect::<Vec<_>>());
    let is_shown = kept_action(policy, &chosen)
        .is_some_and(|kept| check_equivalence_with(&whole, &kept, options).is_equal());
    for (digit, bit) in chosen.iter().enumerate().filter(|_| is_shown) {
        bit.iter().for_each(|bit| acted[*bit] = Some(digit));
    }
    acted
}

/// The action that these memory bits come to stand for; where a digit has no bit, the action's own.
fn kept_action(policy: &Policy, bits: &[Option<usize>]) -> Option<Netlist> {
    let (circuit, code) = (policy.circuit(), bits.len());
    if bits.iter().all(Option::is_none) {
        return None;
    }
    let mut builder = Builder::new(circuit.inputs());
    let inputs: Vec<Signal> = (0..circuit.inputs()).map(Signal::input).collect();
    let outputs = builder.embed(circuit, &inputs);
    let digits: Vec<Signal> =
        (0..code).map(|digit| bits[digit].map_or(outputs[digit], |bit| outputs[code + bit])).collect();
    let beyond = beyond(&mut builder, policy.actions(), &digits);
    let action: Vec<Signal> = digits.iter().map(|digit| builder.and_not(*digit, beyond)).collect();
    builder.finish(&action).ok()
}

/// The circuit of "this code is none of the actions": at least as many as there are, from the lowest digit up.
fn beyond(builder: &mut Builder, actions: u16, digits: &[Signal]) -> Signal {
    if usize::from(actions) == 1 << digits.len() {
        return Signal::FALSE;
    }
    digits.iter().enumerate().fold(Signal::TRUE, |so_far, (digit, signal)| match actions >> digit & 1 == 1 {
        true => builder.and(*signal, so_far),
        false => builder.or(*signal, so_far),
    })
}

/// Whether memory is proven to hold codes of actions only where it holds what was done: so it begins, and from what can occur,
/// which `valid` builds and which counts such codes alone, it comes to hold no other.
pub fn remembers_actions_only(
    policy: &Policy,
    places: &[Meaning],
    valid: impl FnOnce(&mut Builder) -> Signal,
) -> bool {
    let (circuit, code, observed) = (policy.circuit(), action_bits(policy.actions()), policy.reads().len());
    let mut builder = Builder::new(circuit.inputs());
    let inputs: Vec<Signal> = (0..circuit.inputs()).map(Signal::input).collect();
    let outputs = builder.embed(circuit, &inputs);
    let place =
        |digit: usize| places.iter().position(|meaning| *meaning == Meaning::Acted { digit, back: 1 });
    let next = |digit: usize| place(digit).map_or(outputs[digit], |place| outputs[code + place - observed]);
    let next: Vec<Signal> = (0..code).map(next).collect();
    let (wrong, valid) = (beyond(&mut builder, policy.actions(), &next), valid(&mut builder));
    let wrong = builder.and(wrong, valid);
    let never = Builder::new(circuit.inputs()).finish(&[Signal::FALSE]);
    let options =
        EquivalenceOptions { budget: Budget::conflicts(CONFLICTS), ..EquivalenceOptions::default() };
    match (builder.finish(&[wrong]), never) {
        (Ok(wrong), Ok(never)) => check_equivalence_with(&wrong, &never, options).is_equal(),
        _ => false,
    }
}

/// Every output on inputs by chance.
fn answers(circuit: &Netlist) -> Vec<Vec<u64>> {
    let mut prng = Prng::stream(4, "explain/copies");
    let mut answers = vec![Vec::with_capacity(LOOKS); circuit.outputs().len()];
    let (mut values, mut outputs) = (Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        let inputs: Vec<u64> = (0..circuit.inputs()).map(|_| prng.next_u64()).collect();
        circuit.evaluate_words(&inputs, &mut values, &mut outputs);
        answers.iter_mut().zip(&outputs).for_each(|(answer, output)| answer.push(*output));
    }
    answers
}
