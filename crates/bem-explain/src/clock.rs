//! A clock in a policy's memory: bits that together count the steps of an episode, so that rules can speak of a number.

use bem_synth::policy::{Policy, action_bits};

/// Bits of a clock at most.
const BITS_MAX: usize = 10;

/// The memory bits that count steps, lowest first: for as many steps as they have values they hold how many were taken, and
/// nothing but they themselves moves them. Empty where there are not at least two.
pub fn clock(policy: &Policy) -> Vec<usize> {
    let (observed, code) = (policy.reads().len(), action_bits(policy.actions()));
    let mut input = vec![false; policy.circuit().inputs()];
    let mut held: Vec<Vec<bool>> = Vec::with_capacity(1 << BITS_MAX);
    for _ in 0..1 << BITS_MAX {
        let outputs = policy.circuit().evaluate(&input);
        held.push(input[observed..].to_vec());
        input[observed..].copy_from_slice(&outputs[code..]);
    }
    let counts = |bit: usize, digit: usize, steps: usize| {
        (0..steps).all(|step| held[step][bit] == (step >> digit & 1 == 1))
    };
    let mut bits: Vec<usize> = Vec::new();
    while bits.len() < BITS_MAX {
        let digit = bits.len();
        match (0..policy.memory_bits()).find(|bit| counts(*bit, digit, 2 << digit)) {
            Some(bit) => bits.push(bit),
            None => break,
        }
    }
    let is_right = bits.iter().enumerate().all(|(digit, bit)| counts(*bit, digit, 1 << bits.len()));
    let is_own = |bit: &usize| {
        let reads = policy.circuit().cone(&[code + bit]).support();
        reads.iter().all(|place| place.checked_sub(observed).is_some_and(|bit| bits.contains(&bit)))
    };
    if 2 <= bits.len() && is_right && bits.iter().all(is_own) { bits } else { Vec::new() }
}
