//! Algebraic normal form: every output as an exclusive or of products of inputs.
//!
//! The form is unique, so two circuits mean the same exactly if their normal forms are equal. Its size is bounded by
//! [`MONOMIALS_MAX`] per output when it is built. Must not know what the inputs mean. Clauses: VM-1, VM-2.

use crate::lanes::LaneWord;
use crate::netlist::{Builder, Netlist, NetlistError, Op, Signal};
use crate::truth_table::TruthTable;
use bem_base::limits::{CIRCUIT_INPUTS_MAX, MONOMIALS_MAX};

/// Up to this many inputs an output is transformed through its truth table, which cannot meet a large intermediate
/// result; beyond, through the polynomials of its gates.
const TABLE_SUPPORT_MAX: usize = 16;

/// Monomials of all polynomials alive at once while gates are multiplied out.
const MONOMIALS_ALIVE_MAX: usize = 1 << 20;

const MONOMIAL_WORDS: usize = CIRCUIT_INPUTS_MAX / 64;

/// A product of inputs: bit `k` of the set stands for input `k`. The empty product is true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monomial([u64; MONOMIAL_WORDS]);

impl Monomial {
    /// The empty product, which is true.
    pub const ONE: Monomial = Monomial([0; MONOMIAL_WORDS]);

    /// The product of these inputs.
    pub fn product(inputs: impl IntoIterator<Item = usize>) -> Monomial {
        let mut words = [0; MONOMIAL_WORDS];
        for input in inputs {
            words[input / 64] |= 1 << (input % 64);
        }
        Monomial(words)
    }

    /// The inputs in it, in rising order.
    pub fn inputs(self) -> impl Iterator<Item = usize> {
        (0..CIRCUIT_INPUTS_MAX).filter(move |input| self.0[input / 64] >> (input % 64) & 1 == 1)
    }

    /// How many inputs are in it.
    pub fn degree(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    fn times(self, other: Monomial) -> Monomial {
        Monomial(core::array::from_fn(|word| self.0[word] | other.0[word]))
    }
}

/// Why a normal form cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnfError {
    /// An output, or a gate on the way to it, has too many monomials.
    #[error("output {output} needs more than {MONOMIALS_MAX} monomials (M_mono_max)")]
    TooManyMonomials {
        /// The output.
        output: usize,
    },
    /// A monomial names an input that does not exist.
    #[error("output {output} refers to input {input}, of {inputs}")]
    UnknownInput {
        /// The output.
        output: usize,
        /// The input named.
        input: usize,
        /// How many inputs there are.
        inputs: usize,
    },
}

/// A polynomial over GF(2). Invariant: sorted, each monomial once.
type Polynomial = Vec<Monomial>;

/// A circuit in algebraic normal form. Invariants: the monomials of an output are sorted and distinct, at most
/// [`MONOMIALS_MAX`], and name only existing inputs; so equality of values is equality of functions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Anf {
    inputs: usize,
    outputs: Vec<Polynomial>,
}

impl Anf {
    /// Sorts the monomials of each output and cancels equal pairs.
    pub fn new(inputs: usize, outputs: Vec<Vec<Monomial>>) -> Result<Anf, AnfError> {
        let outputs: Vec<Polynomial> = outputs.into_iter().map(cancel).collect();
        for (output, monomials) in outputs.iter().enumerate() {
            if MONOMIALS_MAX < monomials.len() {
                return Err(AnfError::TooManyMonomials { output });
            }
            let unknown =
                monomials.iter().flat_map(|monomial| monomial.inputs()).find(|input| inputs <= *input);
            if let Some(input) = unknown {
                return Err(AnfError::UnknownInput { output, input, inputs });
            }
        }
        Ok(Anf { inputs, outputs })
    }

    /// The normal form of a circuit.
    pub fn from_netlist(circuit: &Netlist) -> Result<Anf, AnfError> {
        let polynomial = |output| {
            let (cone, support) = circuit.cone(&[output]).compact();
            let polynomial = if support.len() <= TABLE_SUPPORT_MAX {
                moebius(&cone).filter(|polynomial| polynomial.len() <= MONOMIALS_MAX)
            } else {
                multiply_out(&cone)
            };
            let polynomial = polynomial.ok_or(AnfError::TooManyMonomials { output })?;
            let original =
                |monomial: Monomial| Monomial::product(monomial.inputs().map(|input| support[input]));
            Ok(cancel(polynomial.into_iter().map(original).collect()))
        };
        let outputs = (0..circuit.outputs().len()).map(polynomial).collect::<Result<_, _>>()?;
        Ok(Anf { inputs: circuit.inputs(), outputs })
    }

    /// A circuit that computes the same: products share their beginnings.
    pub fn to_netlist(&self) -> Result<Netlist, NetlistError> {
        let mut builder = Builder::new(self.inputs);
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for monomials in &self.outputs {
            let mut terms = Vec::with_capacity(monomials.len());
            for monomial in monomials {
                let factors = monomial.inputs().map(Signal::input);
                terms.push(factors.fold(Signal::TRUE, |product, input| builder.and(product, input)));
            }
            outputs.push(builder.xor_all(&terms));
        }
        builder.finish(&outputs)
    }

    /// How many inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The monomials of each output.
    pub fn outputs(&self) -> &[Vec<Monomial>] {
        &self.outputs
    }

    /// Evaluates all lanes at once.
    pub fn evaluate(&self, inputs: &[LaneWord], outputs: &mut [LaneWord]) {
        assert!(inputs.len() == self.inputs, "{} inputs given, {} expected", inputs.len(), self.inputs);
        assert!(
            outputs.len() == self.outputs.len(),
            "{} outputs, {} expected",
            outputs.len(),
            self.outputs.len()
        );
        for (output, monomials) in outputs.iter_mut().zip(&self.outputs) {
            *output = LaneWord::ZERO;
            for monomial in monomials {
                *output ^= monomial.inputs().fold(LaneWord::ONES, |product, input| product & inputs[input]);
            }
        }
    }
}

/// Sorts and removes pairs of equal monomials, which add up to nothing.
fn cancel(mut monomials: Vec<Monomial>) -> Polynomial {
    monomials.sort_unstable();
    let mut kept: Polynomial = Vec::with_capacity(monomials.len());
    for monomial in monomials {
        if kept.last() == Some(&monomial) {
            kept.pop();
        } else {
            kept.push(monomial);
        }
    }
    kept
}

/// The only output's polynomial, by the Moebius transform of its truth table.
fn moebius(circuit: &Netlist) -> Option<Polynomial> {
    let table = TruthTable::new(circuit).ok()?;
    let mut words = table.words(0).to_vec();
    // Inside a word: add the half where input k is false to the half where it is true.
    const FALSE_HALVES: [u64; 6] = [
        0x5555_5555_5555_5555,
        0x3333_3333_3333_3333,
        0x0F0F_0F0F_0F0F_0F0F,
        0x00FF_00FF_00FF_00FF,
        0x0000_FFFF_0000_FFFF,
        0x0000_0000_FFFF_FFFF,
    ];
    for word in &mut words {
        for (input, half) in FALSE_HALVES.iter().enumerate().take(circuit.inputs()) {
            *word ^= (*word & half) << (1 << input);
        }
    }
    // Across words: the same with strides of whole words.
    let mut stride = 1;
    while stride < words.len() {
        for block in words.chunks_exact_mut(2 * stride) {
            let (low, high) = block.split_at_mut(stride);
            high.iter_mut().zip(low).for_each(|(high, low)| *high ^= *low);
        }
        stride *= 2;
    }
    let set = |assignment: &usize| words[assignment / 64] >> (assignment % 64) & 1 == 1;
    let monomial =
        |assignment: usize| Monomial::product((0..circuit.inputs()).filter(|k| assignment >> k & 1 == 1));
    Some((0..1usize << circuit.inputs()).filter(set).map(monomial).collect())
}

/// The only output's polynomial, gate by gate; nothing if a bound is passed on the way.
fn multiply_out(circuit: &Netlist) -> Option<Polynomial> {
    let mut uses = vec![0u32; 2 + circuit.inputs() + circuit.gates().len()];
    for signal in
        circuit.gates().iter().flat_map(|gate| [gate.a, gate.b]).chain(circuit.outputs().iter().copied())
    {
        uses[signal.index()] += 1;
    }
    let mut polynomials: Vec<Polynomial> = vec![vec![], vec![Monomial::ONE]];
    polynomials.extend((0..circuit.inputs()).map(|input| vec![Monomial::product([input])]));
    let mut alive = 0;
    for gate in circuit.gates() {
        let (a, b) = (&polynomials[gate.a.index()], &polynomials[gate.b.index()]);
        let one = [Monomial::ONE];
        let terms: Polynomial = match gate.op {
            Op::Xor => sum(&[a, b]),
            Op::Xnor => sum(&[a, b, &one]),
            Op::And => product(a, b)?,
            Op::Nand => sum(&[&product(a, b)?, &one]),
            Op::Or => sum(&[a, b, &product(a, b)?]),
            Op::Nor => sum(&[a, b, &product(a, b)?, &one]),
            Op::AndNot => sum(&[a, &product(a, b)?]),
            Op::Implies => sum(&[a, &product(a, b)?, &one]),
        };
        if MONOMIALS_MAX < terms.len() {
            return None;
        }
        alive += terms.len();
        polynomials.push(terms);
        for signal in [gate.a, gate.b] {
            uses[signal.index()] -= 1;
            if uses[signal.index()] == 0 && circuit.gate_position(signal).is_some() {
                alive -= core::mem::take(&mut polynomials[signal.index()]).len();
            }
        }
        if MONOMIALS_ALIVE_MAX < alive {
            return None;
        }
    }
    let output = circuit.outputs()[0];
    Some(core::mem::take(&mut polynomials[output.index()]))
}

fn sum(polynomials: &[&[Monomial]]) -> Polynomial {
    cancel(polynomials.concat())
}

/// The product of two polynomials, unless it is far over the bound even before cancelling.
fn product(a: &[Monomial], b: &[Monomial]) -> Option<Polynomial> {
    if 16 * MONOMIALS_MAX < a.len() * b.len() {
        return None;
    }
    Some(cancel(a.iter().flat_map(|left| b.iter().map(|right| left.times(*right))).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{random_lanes, random_netlist};
    use crate::truth_table::equal_exhaustive;
    use bem_base::prng::Prng;

    #[test]
    fn conversion_there_and_back_keeps_the_meaning() {
        let mut prng = Prng::stream(1, "anf");
        for round in 0..if cfg!(miri) { 3 } else { 200 } {
            let circuit = random_netlist(&mut prng, round % 11, 25, 3);
            let anf = Anf::from_netlist(&circuit).unwrap();
            let back = anf.to_netlist().unwrap();
            assert_eq!(equal_exhaustive(&circuit, &back), Ok(()));
            assert_eq!(Anf::from_netlist(&back), Ok(anf), "the form is unique");
        }
    }

    #[test]
    fn both_ways_to_the_polynomial_agree() {
        let mut prng = Prng::stream(2, "two ways");
        for round in 0..if cfg!(miri) { 3 } else { 200 } {
            let circuit = random_netlist(&mut prng, 1 + round % 10, 20, 1);
            assert_eq!(multiply_out(&circuit), moebius(&circuit).map(cancel));
        }
    }

    #[test]
    fn lanes_agree_with_the_circuit() {
        let mut prng = Prng::stream(3, "anf lanes");
        for _ in 0..if cfg!(miri) { 2 } else { 50 } {
            let circuit = random_netlist(&mut prng, 9, 30, 4);
            let inputs: Vec<LaneWord> = (0..9).map(|_| random_lanes(&mut prng)).collect();
            let mut outputs = [LaneWord::ZERO; 4];
            Anf::from_netlist(&circuit).unwrap().evaluate(&inputs, &mut outputs);
            for word in 0..crate::lanes::WORDS {
                let words: Vec<u64> = inputs.iter().map(|input| input.0[word]).collect();
                let (mut values, mut expected) = (Vec::new(), Vec::new());
                circuit.evaluate_words(&words, &mut values, &mut expected);
                assert!(outputs.iter().map(|output| output.0[word]).eq(expected));
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much work for Miri")]
    fn the_bound_on_monomials_is_enforced() {
        // Thirteen inverted inputs multiplied: all 2^13 subsets appear.
        let complement_product = |inputs: usize| {
            let mut builder = Builder::new(inputs);
            let signals: Vec<Signal> = (0..inputs).map(Signal::input).collect();
            let any = builder.or_all(&signals);
            let none = builder.not(any);
            builder.finish(&[none]).unwrap()
        };
        assert_eq!(Anf::from_netlist(&complement_product(12)).unwrap().outputs()[0].len(), MONOMIALS_MAX);
        let error = AnfError::TooManyMonomials { output: 0 };
        assert_eq!(Anf::from_netlist(&complement_product(13)), Err(error.clone()));
        assert_eq!(Anf::from_netlist(&complement_product(200)), Err(error));
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much work for Miri")]
    fn wide_circuits_with_few_monomials_are_multiplied_out() {
        let mut builder = Builder::new(512);
        let inputs: Vec<Signal> = (0..512).map(Signal::input).collect();
        let parity = builder.xor_all(&inputs);
        let all = builder.and_all(&inputs);
        let output = builder.xor(parity, all);
        let circuit = builder.finish(&[output]).unwrap();
        let anf = Anf::from_netlist(&circuit).unwrap();
        assert_eq!(anf.outputs()[0].len(), 513);
        assert!(anf.outputs()[0].iter().any(|monomial| monomial.degree() == 512));
    }

    #[test]
    fn equal_monomials_cancel_and_unknown_inputs_are_refused() {
        let (x, xy) = (Monomial::product([0]), Monomial::product([0, 1]));
        assert_eq!(Anf::new(2, vec![vec![xy, x, xy]]).unwrap().outputs(), [vec![x]]);
        let error = AnfError::UnknownInput { output: 0, input: 1, inputs: 1 };
        assert_eq!(Anf::new(1, vec![vec![xy]]), Err(error));
    }
}
