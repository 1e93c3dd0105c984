//! Formulas and circuits whose answers are known, for tests and benchmarks of this and other crates.
//!
//! Nothing that learns may use them.

use bem_base::prng::Prng;
use bem_checker::{Cnf, Literal};
use bem_circuit::netlist::{Builder, Netlist, Signal};

/// One pigeon more than there are holes: no model.
pub fn pigeonhole(holes: u32) -> Cnf {
    let variable = |pigeon: u32, hole: u32| Literal::positive(pigeon * holes + hole + 1);
    let mut cnf = Cnf::new(0);
    for pigeon in 0..=holes {
        let clause: Vec<Literal> = (0..holes).map(|hole| variable(pigeon, hole)).collect();
        cnf.add(&clause);
    }
    for hole in 0..holes {
        for pigeon in 0..=holes {
            for other in 0..pigeon {
                cnf.add(&[!variable(pigeon, hole), !variable(other, hole)]);
            }
        }
    }
    cnf
}

/// Random clauses of three different variables, as in the SATLIB collection.
pub fn random_3_sat(prng: &mut Prng, variables: u32, clauses: usize) -> Cnf {
    let mut cnf = Cnf::new(variables);
    for _ in 0..clauses {
        let mut clause: Vec<Literal> = Vec::new();
        while clause.len() < 3 {
            let variable = 1 + prng.below(u64::from(variables)) as u32;
            if clause.iter().all(|literal| literal.variable() != variable) {
                clause.push(Literal::positive(variable).xor(prng.bit()));
            }
        }
        cnf.add(&clause);
    }
    cnf
}

/// Sum of two words by passing the carry from bit to bit.
pub fn ripple_adder(bits: usize) -> Netlist {
    let mut builder = Builder::new(2 * bits);
    let mut carry = Signal::FALSE;
    let mut outputs = Vec::new();
    for bit in 0..bits {
        let (a, b) = (builder.input(bit), builder.input(bits + bit));
        let half = builder.xor(a, b);
        outputs.push(builder.xor(half, carry));
        let (generate, propagate) = (builder.and(a, b), builder.and(half, carry));
        carry = builder.or(generate, propagate);
    }
    outputs.push(carry);
    builder.finish(&outputs).expect("the caller stays within the bounds")
}

/// Sum of two words by the parallel prefix network of Kogge and Stone.
pub fn prefix_adder(bits: usize) -> Netlist {
    let mut builder = Builder::new(2 * bits);
    let pairs: Vec<(Signal, Signal)> =
        (0..bits).map(|bit| (builder.input(bit), builder.input(bits + bit))).collect();
    let half: Vec<Signal> = pairs.iter().map(|(a, b)| builder.xor(*a, *b)).collect();
    let mut generate: Vec<Signal> = pairs.iter().map(|(a, b)| builder.and(*a, *b)).collect();
    let mut propagate: Vec<Signal> = pairs.iter().map(|(a, b)| builder.or(*a, *b)).collect();
    let mut reach = 1;
    while reach < bits {
        let (old_generate, old_propagate) = (generate.clone(), propagate.clone());
        for bit in reach..bits {
            let through = builder.and(old_propagate[bit], old_generate[bit - reach]);
            generate[bit] = builder.or(old_generate[bit], through);
            propagate[bit] = builder.and(old_propagate[bit], old_propagate[bit - reach]);
        }
        reach *= 2;
    }
    let mut outputs = vec![half[0]];
    for bit in 1..bits {
        outputs.push(builder.xor(half[bit], generate[bit - 1]));
    }
    outputs.push(generate[bits - 1]);
    builder.finish(&outputs).expect("the caller stays within the bounds")
}

/// Product of two words, one row of partial products after the other; `swapped` exchanges the factors.
pub fn multiplier(bits: usize, swapped: bool) -> Netlist {
    let mut builder = Builder::new(2 * bits);
    let (first, second) = if swapped { (bits, 0) } else { (0, bits) };
    let mut sum = vec![Signal::FALSE; 2 * bits];
    for row in 0..bits {
        let factor = builder.input(second + row);
        let mut carry = Signal::FALSE;
        for bit in 0..bits {
            let wire = builder.input(first + bit);
            let product = builder.and(wire, factor);
            let half = builder.xor(sum[row + bit], product);
            let (generate, propagate) = (builder.and(sum[row + bit], product), builder.and(half, carry));
            sum[row + bit] = builder.xor(half, carry);
            carry = builder.or(generate, propagate);
        }
        sum[row + bits] = carry;
    }
    builder.finish(&sum).expect("the caller stays within the bounds")
}
