//! Arithmetic on words of wires: what each scalar instruction means, bit by bit, as clauses.
//!
//! Constants fold away, so the same functions compute on known values; the tests use that to compare every
//! operation with the processor's own. Clause: SCC-6.

use bem_circuit::netlist::Op;
use bem_prover::Cnf;
use bem_prover::encode::{Wire, encode_gate, fresh_inputs};

/// Sixty-four wires, the lowest bit first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(pub Vec<Wire>);

/// The constant false.
pub const FALSE: Wire = Wire::Constant(false);
/// The constant true.
pub const TRUE: Wire = Wire::Constant(true);

impl Word {
    /// A known word.
    pub fn constant(value: u64) -> Word {
        Word((0..64).map(|bit| Wire::Constant(value >> bit & 1 == 1)).collect())
    }

    /// A word about which nothing is known.
    pub fn fresh(cnf: &mut Cnf) -> Word {
        Word(fresh_inputs(cnf, 64))
    }

    /// A truth value as the word 0 or 1.
    pub fn from_wire(wire: Wire) -> Word {
        let mut word = Word::constant(0);
        word.0[0] = wire;
        word
    }

    /// Its value under a model.
    pub fn value(&self, model: &[bool]) -> u64 {
        self.0.iter().enumerate().fold(0, |word, (bit, wire)| word | u64::from(wire.value(model)) << bit)
    }

    /// Its value, if every bit is known.
    pub fn known(&self) -> Option<u64> {
        let mut value = 0;
        for (bit, wire) in self.0.iter().enumerate() {
            match wire {
                Wire::Constant(set) => value |= u64::from(*set) << bit,
                Wire::Literal(_) => return None,
            }
        }
        Some(value)
    }

    /// The bits shifted up by a constant; zeros come in.
    pub fn shifted_left(&self, amount: usize) -> Word {
        Word((0..64).map(|bit| if bit < amount { FALSE } else { self.0[bit - amount] }).collect())
    }

    /// The bits shifted down by a constant; `fill` comes in.
    pub fn shifted_right(&self, amount: usize, fill: Wire) -> Word {
        Word((0..64).map(|bit| self.0.get(bit + amount).copied().unwrap_or(fill)).collect())
    }

    /// How many low bits may be set: the rest is known to be zero.
    pub fn width(&self) -> usize {
        64 - self.0.iter().rev().take_while(|wire| **wire == FALSE).count()
    }
}

/// One gate.
pub fn gate(cnf: &mut Cnf, op: Op, a: Wire, b: Wire) -> Wire {
    encode_gate(cnf, op, a, b)
}

/// `if choose { then } else { otherwise }`
pub fn mux(cnf: &mut Cnf, choose: Wire, then: Wire, otherwise: Wire) -> Wire {
    match choose {
        Wire::Constant(true) => then,
        Wire::Constant(false) => otherwise,
        Wire::Literal(_) if then == otherwise => then,
        Wire::Literal(_) => {
            let differs = gate(cnf, Op::Xor, then, otherwise);
            let taken = gate(cnf, Op::And, choose, differs);
            gate(cnf, Op::Xor, taken, otherwise)
        }
    }
}

/// The same choice for every bit.
pub fn mux_word(cnf: &mut Cnf, choose: Wire, then: &Word, otherwise: &Word) -> Word {
    Word(then.0.iter().zip(&otherwise.0).map(|(a, b)| mux(cnf, choose, *a, *b)).collect())
}

/// One operation for every bit.
pub fn bitwise(cnf: &mut Cnf, op: Op, a: &Word, b: &Word) -> Word {
    Word(a.0.iter().zip(&b.0).map(|(a, b)| gate(cnf, op, *a, *b)).collect())
}

/// The complement of every bit.
pub fn complement(a: &Word) -> Word {
    Word(a.0.iter().map(|wire| wire.complement()).collect())
}

/// `a + b + carry` modulo 2^64, and the carry out.
pub fn add(cnf: &mut Cnf, a: &Word, b: &Word, carry: Wire) -> (Word, Wire) {
    let mut carry = carry;
    let mut sum = Vec::with_capacity(64);
    for (a, b) in a.0.iter().zip(&b.0) {
        let half = gate(cnf, Op::Xor, *a, *b);
        sum.push(gate(cnf, Op::Xor, half, carry));
        let both = gate(cnf, Op::And, *a, *b);
        let passed = gate(cnf, Op::And, half, carry);
        carry = gate(cnf, Op::Or, both, passed);
    }
    (Word(sum), carry)
}

/// `a - b` modulo 2^64.
pub fn subtract(cnf: &mut Cnf, a: &Word, b: &Word) -> Word {
    add(cnf, a, &complement(b), TRUE).0
}

/// Whether `a < b`, unsigned: the subtraction borrows.
pub fn below(cnf: &mut Cnf, a: &Word, b: &Word) -> Wire {
    add(cnf, a, &complement(b), TRUE).1.complement()
}

/// Whether `a < b`, signed: as unsigned once the sign bits are flipped.
pub fn less(cnf: &mut Cnf, a: &Word, b: &Word) -> Wire {
    let (mut a, mut b) = (a.clone(), b.clone());
    a.0[63] = a.0[63].complement();
    b.0[63] = b.0[63].complement();
    below(cnf, &a, &b)
}

/// The disjunction of all wires.
pub fn any(cnf: &mut Cnf, wires: &[Wire]) -> Wire {
    wires.iter().fold(FALSE, |sum, wire| gate(cnf, Op::Or, sum, *wire))
}

/// Whether two words are equal.
pub fn equal(cnf: &mut Cnf, a: &Word, b: &Word) -> Wire {
    let differences = bitwise(cnf, Op::Xor, a, b);
    any(cnf, &differences.0).complement()
}

/// A shift by the low six bits of a word, in either direction.
pub fn shift_by_word(cnf: &mut Cnf, a: &Word, amount: &Word, left: bool) -> Word {
    let mut result = a.clone();
    for stage in 0..6 {
        let distance = 1 << stage;
        let moved = if left { result.shifted_left(distance) } else { result.shifted_right(distance, FALSE) };
        result = mux_word(cnf, amount.0[stage], &moved, &result);
    }
    result
}

/// The low 64 bits of a product when one factor is known or both are at most `bits` wide; else `None`, because
/// clause learning does not get through wide multipliers.
pub fn multiply(cnf: &mut Cnf, a: &Word, b: &Word, bits: usize) -> Option<Word> {
    let (a, b) = if a.known().is_some() { (b, a) } else { (a, b) };
    if b.known().is_none() && bits < a.width().max(b.width()) {
        return None;
    }
    let mut sum = Word::constant(0);
    for bit in 0..b.width() {
        let row = a.shifted_left(bit);
        let row = Word(row.0.iter().map(|wire| gate(cnf, Op::And, *wire, b.0[bit])).collect());
        sum = add(cnf, &sum, &row, FALSE).0;
    }
    Some(sum)
}

/// How many of the wires are true.
pub fn count(cnf: &mut Cnf, wires: &[Wire]) -> Word {
    wires.iter().fold(Word::constant(0), |sum, wire| add(cnf, &sum, &Word::from_wire(*wire), FALSE).0)
}

/// Leading zeros: the highest set bit wins.
pub fn leading_zeros(cnf: &mut Cnf, a: &Word) -> Word {
    let mut result = Word::constant(64);
    for bit in 0..64 {
        result = mux_word(cnf, a.0[bit], &Word::constant(63 - bit as u64), &result);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn operations_on_known_words_agree_with_the_processor(a in 0u64.., b in 0u64.., c in 0u64..256) {
            let cnf = &mut Cnf::new(0);
            let (x, y, z) = (Word::constant(a), Word::constant(b), Word::constant(c));
            let known = |word: Word| word.known().unwrap();
            proptest::prop_assert_eq!(known(add(cnf, &x, &y, FALSE).0), a.wrapping_add(b));
            proptest::prop_assert_eq!(known(subtract(cnf, &x, &y)), a.wrapping_sub(b));
            proptest::prop_assert_eq!(below(cnf, &x, &y), Wire::Constant(a < b));
            proptest::prop_assert_eq!(less(cnf, &x, &y), Wire::Constant((a as i64) < b as i64));
            proptest::prop_assert_eq!(equal(cnf, &x, &y), Wire::Constant(a == b));
            proptest::prop_assert_eq!(known(multiply(cnf, &x, &z, 8).unwrap()), a.wrapping_mul(c));
            proptest::prop_assert_eq!(known(shift_by_word(cnf, &x, &z, true)), a << (c & 63));
            proptest::prop_assert_eq!(known(shift_by_word(cnf, &x, &z, false)), a >> (c & 63));
            proptest::prop_assert_eq!(known(leading_zeros(cnf, &y)), u64::from(b.leading_zeros()));
            proptest::prop_assert_eq!(known(count(cnf, &x.0)), u64::from(a.count_ones()));
            proptest::prop_assert_eq!(cnf.clause_count(), 0);
        }
    }
}
